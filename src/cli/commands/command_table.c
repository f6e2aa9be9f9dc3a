/* command_table.c - the table of commands; parsing, help, manual pages and completion use it. */
#include "base/check.h"
#include "build.h"
#include "cli/cli.h"

#define DETAILS "Without a node, the command reads the store and starts nothing.\n"

#define CLAIM_DETAILS                                                              \
    "Exits with 76, and changes nothing, if the caller does not hold the claim.\n" \
    "Inside 'glia claim run' KEY, --fence and --owner come from the environment.\n"

const struct gl_command gl_cli_commands[] = {
    {
        .name = "run",
        .arguments = "FILE|DIR|- [--set KEY=VALUE]... [--run-id RUN] [--detach] | [--run-id RUN] "
                     "[--detach] -- COMMAND [ARGUMENT...]",
        .summary = "run a flow, a bundle or one command, and wait for it",
        .help =
            "DIR is a bundle if it has a manifest.json; otherwise its flow.yaml, flow.yml or\n"
            "flow.json is used. - reads a flow from standard input. A bundle's files are copied\n"
            "when it is submitted; see docs/bundles.md.\n"
            "\n"
            "If a node is running in the data folder, it gets the job; otherwise this command is\n"
            "the node until the job is done. A flow's steps get private folders and a clean\n"
            "environment; a command after -- gets the caller's folder and environment.\n"
            "\n"
            "The output of a command after -- passes through its log, which is bounded; see\n"
            "docs/cli.md.\n"
            "\n"
            "If this command is the node, Ctrl-C pauses the job (steps marked unsafe run to\n"
            "their end) and a second Ctrl-C exits at once. With another node, Ctrl-C only stops\n"
            "waiting; the job continues.\n"
            "\n"
            "The command waits for approvals. Exit code 0: the job completed; 1: it failed; 6:\n"
            "it is paused, or needs a person. Scripts that must not wait use --detach, and later\n"
            "'glia job result'; --detach exits with 5 if there is no node.\n",
        .words_min = 1,
        .words_max = 1,
        .takes_rest = true,
        .run = gl_cmd_run,
        .options = {{"--set", "KEY=VALUE...",
                     "an input of the flow, or a bundle setting; dots name nested members"},
                    {"--input-file", "FILE", "inputs of the flow, as JSON or YAML; --set wins"},
                    {"--run-id", "RUN",
                     "your name for the job; the same flow under the same name runs once"},
                    {"--raw", NULL, "print step output unescaped, even on a terminal"},
                    {"--detach", NULL, "submit to the node, print the job's id and exit"}},
    },
    {
        .name = "validate",
        .arguments = "FILE|DIR [--set KEY=VALUE]... [--input-file FILE]",
        .summary = "check a flow or a bundle, and show which steps can run twice",
        .help = "Reports every error at once, with its place and how to fix it. Runs nothing. If\n"
                "inputs of a flow are given, they are checked as for run.\n",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .run = gl_cmd_validate,
        .options = {{"--set", "KEY=VALUE...",
                     "an input of the flow, or a bundle setting; dots name nested members"},
                    {"--input-file", "FILE", "inputs of the flow, as JSON or YAML; --set wins"}},
    },
    {
        .name = "schema",
        .arguments = "",
        .summary = "print the flow format as a JSON Schema, for editors",
        .help = "Many editors complete and check a file whose first line is\n"
                "# yaml-language-server: $schema=PATH\n",
        .needs_no_data = true,
        .run = gl_cmd_schema,
    },
    {
        .name = "job list",
        .arguments = "[--status STATUS] [--name NAME] [--after ID] [--limit N | --all]",
        .summary = "list jobs, newest first",
        .help = DETAILS,
        .run = gl_cmd_list,
        .options = {{"--status", "STATUS", "only running, paused, completed, failed, ..."},
                    {"--name", "NAME", "only jobs of flows with this name"},
                    {"--after", "ID", "start after this job"},
                    {"--limit", "N", "at most N (100)"},
                    {"--all", NULL, "all jobs"}},
    },
    {
        .name = "job status",
        .arguments = "ID [--all]",
        .summary = "show a job and its steps, and the reason for their state",
        .help = "ID is a job's id, the start of one, or a run id. For a job with more than 1000\n"
                "steps, shows 1000, failed and running ones first.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_status,
        .options = {{"--all", NULL, "every step, in flow order"}},
    },
    {
        .name = "job events",
        .arguments = "ID [--from N] [--follow]",
        .summary = "show the events of a job",
        .help = DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_events,
        .options = {{"--from", "N", "start at this event"},
                    {"--follow", NULL, "keep printing until the job ends"}},
    },
    {
        .name = "job logs",
        .arguments = "ID [STEP|AGENT] [--attempt N|all] [--timestamps] [--follow] [--raw]",
        .summary = "show step and agent logs",
        .help =
            "Without STEP, shows the last attempt of every step. Both streams of a step go to\n"
            "stdout. For a bundle, shows the logs of all agents, of AGENT, or of the agents of\n"
            "STEP.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_logs,
        .options = {{"--attempt", "N", "this attempt, or all of them (the last one)"},
                    {"--timestamps", NULL, "print the time of every line"},
                    {"--follow", NULL, "keep printing until the step (for a bundle: the job) ends"},
                    {"--raw", NULL, "print control characters unescaped on a terminal"}},
    },
    {
        .name = "job result",
        .arguments = "ID [STEP]",
        .summary = "print the output of a job or of one step as JSON",
        .help =
            "The output of a job is that of the steps that no other step needs; of a bundle, what\n"
            "its sink completed it with.\n"
            "Exit code 0 if the job or the step completed, 1 if it ended otherwise.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_job_result,
    },
    {
        .name = "job agents",
        .arguments = "ID [AGENT]",
        .summary = "list the agents of a bundle's job",
        .help =
            "Shows how many messages each agent has handled and how many are queued for it, where\n"
            "it last ran and the size of its state; with --json also the state.\n" DETAILS,
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_agents_list,
    },
    {
        .name = "job messages",
        .arguments = "ID [--agent AGENT] [--number N]",
        .summary = "list messages queued for the agents of a job",
        .help = "Lists messages that are queued, held until their step may run, or being handled.\n"
                "With --number, prints that message in full as JSON.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_agents_messages,
        .options = {{"--agent", "AGENT", "only messages to this agent"},
                    {"--number", "N", "this message, in full"}},
    },
    {
        .name = "job dead-letters",
        .arguments = "ID [--agent AGENT] [--number N] [--redrive N|all]",
        .summary = "list messages that could not be delivered, with the reason",
        .help =
            "--redrive delivers one or all of them again. The job must not have ended, and the\n"
            "agent must exist.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_agents_dead,
        .options = {{"--agent", "AGENT", "only messages to this agent"},
                    {"--number", "N", "this message, in full"},
                    {"--redrive", "N|all", "deliver it again"}},
    },
    {
        .name = "job artifacts",
        .arguments = "ID [PATH]",
        .summary = "list the files in the run folder of a bundle's job",
        .help =
            "Shows sizes, SHA-256 and types; with PATH, prints that file. The files are on the\n"
            "node where the workers ran.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_artifacts_list,
    },
    {
        .name = "job export",
        .arguments = "ID --to FILE.tar",
        .summary = "write a job to one file, with its events and artifacts",
        .help = "A tar archive with status.json, events.jsonl, result.json, manifest.json (of a\n"
                "bundle) and the folder artifacts/. An existing file is not overwritten.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_artifacts_export,
        .options = {{"--to", "FILE", "the file to write; - is standard output"}},
    },
    {
        .name = "job pause",
        .arguments = "ID [--reason TEXT]",
        .summary = "pause a job",
        .help =
            "Stops running steps, which run again later; steps marked unsafe run to their end.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_pause,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job resume",
        .arguments = "ID [--reason TEXT]",
        .summary = "resume a job and wait for it",
        .help = "Also resumes a job that was left without a node.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_resume,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job cancel",
        .arguments = "ID [--reason TEXT]",
        .summary = "cancel a job",
        .help = "",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_cancel,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job retry",
        .arguments = "ID [--from STEP] [--run-id RUN] [--detach]",
        .summary = "rerun an ended job as a new job, and wait for it",
        .help =
            "The new job reuses the outputs of completed steps and runs the others. --from also\n"
            "reruns that step and every step after it.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_retry,
        .options = {{"--from", "STEP", "rerun this step and every step after it"},
                    {"--run-id", "RUN", "your name for the new job"},
                    {"--detach", NULL, "submit to the node, print the new job's id and exit"}},
    },
    {
        .name = "job rm",
        .arguments = "ID... [--yes]",
        .summary = "remove ended jobs with their events, outputs and logs",
        .help = "Refuses a job that has not ended: cancel it first. On a terminal, asks for\n"
                "confirmation.\n",
        .words_min = 1,
        .words_max = GL_CLI_WORDS_MAX,
        .run = gl_cmd_job_rm,
        .options = {{"--yes", NULL, "do not ask for confirmation"}},
    },
    {
        .name = "job signal",
        .arguments = "ID NAME [--data JSON | --data-file FILE]",
        .summary = "send a signal to a job",
        .help = "The job keeps a signal until a step waits for it.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_job_signal,
        .options = {{"--data", "JSON", "the signal's data, which becomes the step's output"},
                    {"--data-file", "FILE", "the same, from a file; - is standard input"}},
    },
    {
        .name = "job shell",
        .arguments = "ID STEP [--attempt N]",
        .summary = "open a shell in the working folder of a step that failed",
        .help = "The shell has the step's environment without its secrets. Working folders of\n"
                "failed attempts are kept for some days.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_shell,
        .options = {{"--attempt", "N", "this attempt (the last one)"}},
    },
    {
        .name = "send",
        .arguments = "JOB AGENT [--type TYPE] [--priority N] [--body JSON | --body-file FILE]",
        .summary = "send a message to an agent of a running job",
        .help = "Fails while the agent's inbox is full; try again later.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_agents_send,
        .options = {{"--type", "TYPE", "the type of the message (input)"},
                    {"--priority", "N", "0 to 1000: higher is handled sooner (100)"},
                    {"--body", "JSON", "the body of the message (null)"},
                    {"--body-file", "FILE", "the same, from a file; - is standard input"}},
    },
    {
        .name = "human list",
        .arguments = "[--runs-root DIR]",
        .summary = "list what waits for a person",
        .help = "Lists steps that wait for an approval or a review, and requests that workers of\n"
                "bundles wrote to the file human.jsonl of their run.\n" DETAILS,
        .run = gl_cmd_human_list,
        .options = {{"--runs-root", "DIR", "where the folders of runs are (MN_RUNS_ROOT)"}},
    },
    {
        .name = "human respond",
        .arguments = "JOB STEP --decision WORD [--output JSON] [--reviewer WHO] [--reason TEXT]",
        .summary = "decide on a step, or answer a request",
        .help =
            "An approval has its own decisions; 'glia human list' shows them. A review asks about\n"
            "an unsafe step that may or may not have run, and has these decisions:\n"
            "\n"
            "rerun   the step did not run, or may run twice: run it again\n"
            "done    the step did run: complete it with the given output\n"
            "failed  mark the step as failed\n"
            "\n"
            "STEP may also be an agent of a bundle, or a request of one of its workers. The\n"
            "answer to a request is written to the file human.jsonl of the run. Put an id that\n"
            "begins with '-' after all options and '--'.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_human_respond,
        .options = {{"--decision", "WORD", "the decision"},
                    {"--output", "JSON", "the output of the step"},
                    {"--reviewer", "WHO", "who decides (the calling user)"},
                    {"--reason", "TEXT", "why, for the record"},
                    {"--runs-root", "DIR", "where the folders of runs are (MN_RUNS_ROOT)"}},
    },
    {
        .name = "why",
        .arguments = "ID [STEP]",
        .summary = "explain the state of a job or step",
        .help =
            "Shows what it waits for, what blocks it and until when, or how it ended; for a step\n"
            "that waits for slots on a shared store, also why each node does not run it.\n" DETAILS,
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_why,
    },
    {
        .name = "status",
        .arguments = "",
        .summary = "show the node, its pools and the number of jobs",
        .help = "Works without a node.\n",
        .run = gl_cmd_status,
    },
    {
        .name = "serve",
        .arguments = "[--listen ADDRESS] [--pools POOLS] [--finish] [--grace TIME]",
        .summary = "run a node until stopped",
        .help =
            "Resumes every unfinished job and accepts new ones on its socket, and on TCP with\n"
            "--listen. Takes over from a 'glia run' that is the node; fails if another serve is\n"
            "running.\n"
            "\n"
            "On SIGTERM or SIGINT it accepts no new work, leaves running steps to the keeper\n"
            "(--finish waits for them first) and exits with 0. A second signal exits at once. See\n"
            "docs/operations.md, also for systemd.\n",
        .run = gl_cmd_serve,
        .options = {{"--listen", "ADDRESS", "also listen on this TCP address, like 127.0.0.1:7464"},
                    {"--pools", "POOLS", "slots by pool, like default=8,gpu=1"},
                    {"--labels", "LABELS", "labels of the node, like zone=a,disk=ssd"},
                    {"--executor-slots", "N", "slots for bundle workers (50)"},
                    {"--executor-pools", "POOLS", "more pools for bundle workers, like gpu=1,io=8"},
                    {"--runs-root", "DIR", "the folder of bundles' run folders (~/.mn/runs)"},
                    {"--finish", NULL, "wait for running steps before exiting"},
                    {"--grace", "TIME", "wait at most this long (30s)"},
                    {"--keep-for", "TIME", "remove ended jobs after this time (30d)"},
                    {"--keep-jobs", "N", "keep at most N ended jobs (100000)"},
                    {"--keep-bytes", "SIZE", "remove the oldest ended jobs above this size"},
                    {"--keep-workspaces-for", "TIME",
                     "keep folders of failed steps this long (3d)"},
                    {"--session-ttl", "TIME",
                     "mark a node dead after this long without a heartbeat (10s)"},
                    {"--orphan-grace", "TIME",
                     "the keeper of a dead node ends its steps after this time (60s)"},
                    {"--store-allow-loss", NULL, "accept a store that may lose data silently"},
                    {"--node-name", "NAME", "the node's name (the machine's name)"},
                    {"--stack", "NAME", "share jobs only with nodes of this stack"},
                    {"--env-scope", "NAME", "share jobs only with nodes of this environment"},
                    {"--log", "LEVEL", "info or debug"}},
    },
    {
        .name = "node list",
        .arguments = "[--all]",
        .summary = "list the nodes that share the store",
        .help = "Shows which nodes are alive, late (heartbeat overdue) or dead, which one leads,\n"
                "their slots, and the cores, memory and disk they may use. Works without a node.\n",
        .run = gl_cmd_node_list,
        .options = {{"--all", NULL, "include dead nodes"}},
    },
    {
        .name = "node status",
        .arguments = "[NODE]",
        .summary = "show one node: its session, pools, capacity, labels, jobs, release",
        .help = "NODE is a name or the start of one; the default is the node of the data folder.\n",
        .words_max = 1,
        .run = gl_cmd_node_status,
    },
    {
        .name = "cluster status",
        .arguments = "",
        .summary = "show the cluster: nodes, leader, slots by pool, what runs and waits",
        .help = "Adds up what the nodes that are alive have published. Works without a node.\n",
        .run = gl_cmd_cluster_status,
    },
    {
        .name = "claim run",
        .arguments = "KEY [--lease TIME] [--wait TIME] [--once] -- COMMAND [ARGUMENT...]",
        .summary = "run a command while holding a claim",
        .help =
            "At most one holder of KEY runs at a time on all nodes that share the store. The\n"
            "claim is renewed while the command runs, completed if it exits with 0, and failed\n"
            "otherwise. If the claim is lost or cannot be renewed in time, the command is stopped\n"
            "before anyone else can acquire it: SIGTERM, then SIGKILL.\n"
            "\n"
            "The command gets GLIA_CLAIM_KEY, GLIA_CLAIM_OWNER, GLIA_CLAIM_FENCE and\n"
            "GLIA_CLAIM_ATTEMPT. The exit code is that of the command, 75 if someone else holds\n"
            "the claim, or 76 if it was lost. See docs/claims.md.\n",
        .words_max = 1,
        .takes_rest = true,
        .run = gl_cmd_claim_run,
        .options = {{"--lease", "TIME",
                     "the claim ends this long after the last renewal, 1s to 1d (60s)"},
                    {"--owner", "NAME", "the holder (user@host:process)"},
                    {"--work-type", "WORD", "the kind of work, for the record"},
                    {"--wait", "TIME", "wait this long if someone else holds it (do not wait)"},
                    {"--once", NULL, "do nothing, and succeed, if the claim is already completed"},
                    {"--grace", "TIME", "at most this long from SIGTERM to SIGKILL (5s)"}},
    },
    {
        .name = "claim acquire",
        .arguments = "KEY [--lease TIME] [--owner NAME] [--work-type WORD] [--once]",
        .summary = "acquire a claim, or exit with 75 if someone else holds it",
        .help =
            "Prints the fence, the number that the other commands need. The claim ends with its\n"
            "lease unless it is renewed. 'glia claim run' does all of this for you.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_claim_acquire,
        .options = {{"--lease", "TIME",
                     "the claim ends this long after the last renewal, 1s to 1d (60s)"},
                    {"--owner", "NAME", "the holder (user@host)"},
                    {"--work-type", "WORD", "the kind of work, for the record"},
                    {"--once", NULL, "fail if the claim is already completed"}},
    },
    {
        .name = "claim renew",
        .arguments = "[KEY] [--fence N] [--owner NAME] [--lease TIME]",
        .summary = "renew a claim: its lease starts again",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_renew,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "the holder (user@host)"},
                    {"--lease", "TIME", "the new lease (as before)"}},
    },
    {
        .name = "claim complete",
        .arguments = "[KEY] [--fence N] [--owner NAME]",
        .summary = "end a claim: the work is done",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_complete,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "the holder (user@host)"}},
    },
    {
        .name = "claim fail",
        .arguments = "[KEY] [--fence N] [--owner NAME] [--error TEXT]",
        .summary = "end a claim: the work failed",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_fail,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "the holder (user@host)"},
                    {"--error", "TEXT", "why, for the record"}},
    },
    {
        .name = "claim reclaim",
        .arguments = "[--limit N]",
        .summary = "mark claims with expired leases, and list them",
        .help = "Optional: an expired claim can be acquired anyway. The list shows whose work was\n"
                "left unfinished.\n",
        .run = gl_cmd_claim_reclaim,
        .options = {{"--limit", "N", "at most N (100)"}},
    },
    {
        .name = "claim list",
        .arguments = "[--state STATE] [--prefix TEXT] [--after KEY] [--limit N]",
        .summary = "list claims by key",
        .help = DETAILS,
        .run = gl_cmd_claim_list,
        .options = {{"--state", "STATE", "only claimed, done, failed or expired"},
                    {"--prefix", "TEXT", "only keys that begin with this text"},
                    {"--after", "KEY", "start after this key"},
                    {"--limit", "N", "at most N (100)"}},
    },
    {
        .name = "claim show",
        .arguments = "KEY",
        .summary = "show a claim: its holder, lease and attempt",
        .help = DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_claim_show,
    },
    {
        .name = "store trim",
        .arguments = "[--keep-for TIME] [--keep-jobs N]",
        .summary = "remove ended jobs and unused files now",
        .help = "Removes ended jobs with their events, outputs and logs, then flows that no job\n"
                "uses, files that no flow uses, and old working folders of failed steps. The\n"
                "default limits are the settings ('glia config show') that a node applies by\n"
                "itself. Without a node, this command removes them and starts nothing.\n",
        .run = gl_cmd_store_trim,
        .options = {{"--keep-for", "TIME", "keep jobs that ended within this time, like 7d"},
                    {"--keep-jobs", "N", "keep at most the N newest ended jobs"}},
    },
    {
        .name = "store status",
        .arguments = "",
        .summary = "show how much space the data folder takes",
        .help = "",
        .run = gl_cmd_store_status,
    },
    {
        .name = "store check",
        .arguments = "[URL]",
        .summary = "check that the store is sound and configured not to lose data",
        .help = "Checks release, persistence, memory and replicas of a server, or the file of\n"
                "SQLite. The default is the configured store. Changes nothing. Exit code 1 if a\n"
                "check fails.\n",
        .words_max = 1,
        .run = gl_cmd_store_check,
    },
    {
        .name = "store migrate",
        .arguments = "FROM TO",
        .summary = "copy everything from one store into another",
        .help =
            "FROM and TO are URLs; sqlite: is the store of the data folder, sqlite:DIR that of\n"
            "another. Stop all nodes first. TO must be empty, or hold an unfinished run of\n"
            "the same migration, which continues. Both are compared at the end.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_store_migrate,
        .options = {{"--store-allow-loss", NULL, "accept a TO that may lose data silently"}},
    },
    {
        .name = "backup",
        .arguments = "DIR [--logs] [--salvage]",
        .summary = "copy the data folder, even while a node runs",
        .help =
            "DIR must be empty or must not exist. The backup has the jobs with their events and\n"
            "outputs, and the files of their flows; with --logs also the logs of steps.\n"
            "\n"
            "Refuses a store with a damaged write-ahead log. --salvage copies what precedes the\n"
            "damage and accepts the loss of later commits: jobs are missing or in an earlier\n"
            "state, and steps may run again. Restore the copy without --resume and decide on\n"
            "each job.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_backup,
        .options = {{"--logs", NULL, "include the logs, inputs and outputs of attempts"},
                    {"--salvage", NULL, "copy a damaged store up to the damage"}},
    },
    {
        .name = "restore",
        .arguments = "DIR --data-dir FOLDER [--resume]",
        .summary = "make a data folder from a backup",
        .help =
            "The data folder must be empty or must not exist. Every file is checked.\n"
            "\n"
            "Unfinished jobs are paused, because the backup does not know what ran after it was\n"
            "made. Steps that were running count as lost: unsafe ones wait for review, others\n"
            "run again. See docs/retention.md.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_backup_restore,
        .options = {{"--resume", NULL, "resume unfinished jobs"}},
    },
    {
        .name = "config show",
        .arguments = "",
        .summary = "show every setting, its value and its source",
        .help = "A flag overrides the environment, which overrides the file, which overrides the\n"
                "default.\n",
        .needs_no_data = true,
        .run = gl_cmd_config_show,
    },
    {
        .name = "debug dump",
        .arguments = "[--output FILE] [--no-redact]",
        .summary = "write what the node did recently to one file, to share",
        .help = "The flight recorder's segments, the settings and the end of the node's log.\n"
                "Scripts, environments, inputs, outputs and sentences are replaced by ***; the\n"
                "command lists what it left in. The file can still be replayed.\n",
        .run = gl_cmd_debug_dump,
        .options = {{"--output", "FILE",
                     "the file to write; - is stdout (a new file in this folder)"},
                    {"--no-redact", NULL, "leave everything in; do not share the file"}},
    },
    {
        .name = "replay",
        .arguments = "FILE [--until N] [--job ID] [--trace]",
        .summary = "replay what a node did, in the simulator",
        .help =
            "FILE is the output of 'glia debug dump' or a segment of the recorder. Exit code 0 if\n"
            "every decision is the same, 1 if one differs, 2 if FILE cannot be replayed.\n",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .run = gl_cmd_debug_replay,
        .options = {{"--until", "N", "stop after event number N"},
                    {"--job", "ID",
                     "print what happened to this job; the start of its id is enough"},
                    {"--trace", NULL, "print everything that happened"}},
    },
    {
        .name = "top",
        .arguments = "[--interval TIME]",
        .summary = "show jobs and steps live, full-screen",
        .help = "Keys: q quits, up and down select a job, enter shows its steps, space refreshes.\n"
                "Needs a terminal; otherwise use 'glia status'.\n",
        .run = gl_cmd_top,
        .options = {{"--interval", "TIME", "refresh interval (1s)"}},
    },
    {
        .name = "doctor",
        .arguments = "",
        .summary = "check what a node needs, and show how to fix problems",
        .help = "Checks data folder, lock, store, keeper, disk, clock, programs, limits and\n"
                "permissions. Changes nothing. Exit code 1 if a check fails.\n",
        .run = gl_cmd_doctor,
    },
    {
        .name = "completion",
        .arguments = "bash|zsh|fish",
        .summary = "print the shell completion script",
        .help = "bash   source <(glia completion bash)\n"
                "zsh    source <(glia completion zsh)\n"
                "fish   glia completion fish | source\n"
                "\n"
                "Completes the names of existing jobs and steps, too.\n",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .run = gl_cmd_completion,
    },
    {
        .name = "__complete",
        .arguments = "-- WORD...",
        .summary = "candidates for the last word",
        .help = "",
        .takes_rest = true,
        .needs_no_data = true, /* the completed words name the data folder */
        .is_hidden = true,
        .run = gl_cmd_complete,
    },
    {
        .name = "pyenv",
        .arguments = "CACHE SPEC -- COMMAND [ARGUMENT...]",
        .summary = "run a command in a Python environment",
        .help = "",
        .words_min = 2,
        .words_max = 2,
        .takes_rest = true,
        .needs_no_data = true,
        .is_hidden = true,
        .run = gl_cmd_pyenv,
    },
    {
        .name = "__man",
        .arguments = "DIR",
        .summary = "write the manual pages",
        .help = "",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .is_hidden = true,
        .run = gl_cmd_man,
    },
    {
        .name = "version",
        .arguments = "",
        .summary = "show the release",
        .help = "",
        .needs_no_data = true,
        .run = gl_cmd_version,
    },
    {
        .name = "help",
        .arguments = "[COMMAND]",
        .summary = "show this list, or help for one command",
        .help = "",
        .words_max = 2,
        .needs_no_data = true,
        .run = gl_cmd_help,
    },
};

const size_t gl_cli_commands_n = GL_COUNT(gl_cli_commands);

int gl_cmd_version(struct gl_cli *cli)
{
    if (cli->json) {
        (void)fprintf(cli->out.file, "{\"version\":\"%s\",\"build\":\"%s\"}\n", GL_VERSION,
                      GL_BUILD);
    } else {
        (void)fprintf(cli->out.file, "glia %s (%s)\n", GL_VERSION, GL_BUILD);
    }
    return GL_EXIT_OK;
}
