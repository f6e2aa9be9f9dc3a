/* command_table.c - the list of commands, and which release this is. */
#include "base/check.h"
#include "build.h"
#include "cli/cli.h"

#define DETAILS "Without a node, the answer is read from the store; nothing is started.\n"

#define CLAIM_DETAILS                                                                            \
    "Exits with 76 if the claim is not, or no longer, the caller's; nothing has changed then.\n" \
    "Inside 'glia claim run' nothing need be given.\n"

const struct gl_command gl_cli_commands[] = {
    {
        .name = "run",
        .arguments = "FILE|DIR|- [--set KEY=VALUE]... | -- COMMAND [ARGUMENT...]",
        .summary = "run a flow, a bundle or one command, and wait for it",
        .help =
            "DIR is a bundle if it has a manifest.json; else it stands for the flow.yaml,\n"
            "flow.yml or flow.json in it. - is a flow on standard input. What a bundle consists\n"
            "of is copied when it is submitted: docs/bundles.md tells more.\n"
            "\n"
            "If a node is running in the data folder it gets the job; else this command is the\n"
            "node until the job is done. A flow's steps get private folders and a clean\n"
            "environment; a command behind -- gets the caller's folder and environment.\n"
            "\n"
            "What a command behind -- prints comes through its log, which is bounded:\n"
            "docs/cli.md tells more.\n"
            "\n"
            "Ctrl-C pauses the job if this command is the node (steps marked unsafe are left to\n"
            "end), again leaves at once. With another node it only leaves; the job goes on.\n"
            "\n"
            "An approval is waited for. Exit code 0: the job completed; 1: it failed; 6: it is\n"
            "paused, or a person has to look at it. Scripts that must not wait use --detach,\n"
            "and glia job result later; --detach exits with 5 if no node is there.\n",
        .words_min = 1,
        .words_max = 1,
        .takes_rest = true,
        .run = gl_cmd_run,
        .options = {{"--set", "KEY=VALUE...",
                     "an input of the flow, or a bundle's configuration; dots reach deeper"},
                    {"--input-file", "FILE", "inputs of the flow, as JSON or YAML; --set wins"},
                    {"--run-id", "RUN",
                     "your name for the job: the same flow again is not run "
                     "twice"},
                    {"--raw", NULL, "do not escape what steps print, also on a terminal"},
                    {"--detach", NULL, "leave it to the node, and print the job's id"}},
    },
    {
        .name = "validate",
        .arguments = "FILE|DIR",
        .summary = "check a flow or a bundle, and say what can run twice",
        .help = "Every error is told at once, with its place and what to do. Nothing is run.\n",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .run = gl_cmd_validate,
        .options = {{"--set", "KEY=VALUE...", "a bundle's configuration, as for run"}},
    },
    {
        .name = "schema",
        .arguments = "",
        .summary = "print the flow format as a JSON Schema, for editors",
        .help = "Many editors complete and check a file that begins with the line\n"
                "# yaml-language-server: $schema=PATH\n",
        .needs_no_data = true,
        .run = gl_cmd_schema,
    },
    {
        .name = "job list",
        .arguments = "[--status STATUS] [--name NAME] [--after ID] [--limit N | --all]",
        .summary = "jobs, newest first",
        .help = DETAILS,
        .run = gl_cmd_list,
        .options = {{"--status", "STATUS", "only running, paused, completed, failed, ..."},
                    {"--name", "NAME", "only jobs of flows with this name"},
                    {"--after", "ID", "go on behind this job"},
                    {"--limit", "N", "at most so many (100)"},
                    {"--all", NULL, "all there are"}},
    },
    {
        .name = "job status",
        .arguments = "ID [--all]",
        .summary = "a job and its steps, and why they stand as they do",
        .help =
            "ID is a job's id, the beginning of one, or a run id. Of a job with more than 1000\n"
            "steps, 1000 are shown, failed and running ones first.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_status,
        .options = {{"--all", NULL, "every step, in the order of the flow"}},
    },
    {
        .name = "job events",
        .arguments = "ID [--from N] [--follow]",
        .summary = "what has happened to a job",
        .help = DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_events,
        .options = {{"--from", "N", "only from this event on"},
                    {"--follow", NULL, "go on until the job has ended"}},
    },
    {
        .name = "job logs",
        .arguments = "ID [STEP|AGENT] [--attempt N|all] [--timestamps] [--follow] [--raw]",
        .summary = "what steps and agents have said",
        .help =
            "Without STEP, the last attempt of every step. What a step wrote to stderr is told\n"
            "on stdout like the rest: it is the data here. Of a bundle: what its agents have said\n"
            "about all their messages, or the AGENT that is named, or those of the STEP.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_logs,
        .options = {{"--attempt", "N", "of this attempt (the last one), or of all"},
                    {"--timestamps", NULL, "with the time of every line"},
                    {"--follow", NULL, "until the step (of a bundle: the job) has ended"},
                    {"--raw", NULL, "do not escape control characters on a terminal"}},
    },
    {
        .name = "job result",
        .arguments = "ID [STEP]",
        .summary = "the output of a job, or of one step, as JSON",
        .help =
            "The output of a job is that of its last steps: those that no other step needs; of\n"
            "a bundle what its sink has completed it with.\n"
            "Exit code 0 if the job, or the step, completed, 1 if it ended otherwise.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_job_result,
    },
    {
        .name = "job agents",
        .arguments = "ID [AGENT]",
        .summary = "the agents of a bundle's job, and what each has done",
        .help =
            "How many messages each has handled and how many wait for it, where it last ran, and\n"
            "how large its state is; with --json also the state.\n" DETAILS,
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_agents_list,
    },
    {
        .name = "job messages",
        .arguments = "ID [--agent AGENT] [--number N]",
        .summary = "messages that wait for the agents of a job",
        .help = "Those that are queued, held until their step may run, or being handled. With\n"
                "--number that one, whole, as JSON.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_agents_messages,
        .options = {{"--agent", "AGENT", "only those to this agent"},
                    {"--number", "N", "this one, whole"}},
    },
    {
        .name = "job dead-letters",
        .arguments = "ID [--agent AGENT] [--number N] [--redrive N|all]",
        .summary = "messages that could not be delivered, and why",
        .help =
            "--redrive delivers one, or all of them, again: to an agent that is there, while the\n"
            "job has not ended.\n" DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_agents_dead,
        .options = {{"--agent", "AGENT", "only those to this agent"},
                    {"--number", "N", "this one, whole"},
                    {"--redrive", "N|all", "deliver it again"}},
    },
    {
        .name = "job artifacts",
        .arguments = "ID [PATH]",
        .summary = "files that workers have left in the folder of a run",
        .help =
            "With their sizes, SHA-256 and types; with PATH, that file on stdout. They lie on the\n"
            "node where the workers ran.\n",
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_artifacts_list,
    },
    {
        .name = "job export",
        .arguments = "ID --to FILE.tar",
        .summary = "a job as one file, with events and artifacts",
        .help = "A tar archive with status.json, events.jsonl, result.json, manifest.json (of a\n"
                "bundle) and the folder artifacts/. A file that is there is not overwritten.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_artifacts_export,
        .options = {{"--to", "FILE", "where to; - is standard output"}},
    },
    {
        .name = "job pause",
        .arguments = "ID [--reason TEXT]",
        .summary = "stop a job so that it can go on later",
        .help =
            "Running steps are stopped and will run again; steps marked unsafe are left to end.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_pause,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job resume",
        .arguments = "ID",
        .summary = "go on with a job, and wait for it",
        .help = "Also for a job that was left without a node.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_resume,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job cancel",
        .arguments = "ID [--reason TEXT]",
        .summary = "end a job",
        .help = "",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_cancel,
        .options = {{"--reason", "TEXT", "why, for the record"}},
    },
    {
        .name = "job retry",
        .arguments = "ID [--from STEP] [--run-id RUN] [--detach]",
        .summary = "do an ended job again, as a new one, and wait for it",
        .help = "The new job takes over the outputs of the steps that completed, and runs the\n"
                "others. With --from that step and all that come after it run again, too.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_job_retry,
        .options = {{"--from", "STEP", "run this step and what follows it, whatever became of it"},
                    {"--run-id", "RUN", "your name for the new job"},
                    {"--detach", NULL, "leave it to the node, and print the new job's id"}},
    },
    {
        .name = "job rm",
        .arguments = "ID... [--yes]",
        .summary = "remove ended jobs with their events, outputs and logs",
        .help = "A job that has not ended is refused: cancel it first. On a terminal you are\n"
                "asked first.\n",
        .words_min = 1,
        .words_max = GL_CLI_WORDS_MAX,
        .run = gl_cmd_job_rm,
        .options = {{"--yes", NULL, "do not ask"}},
    },
    {
        .name = "job signal",
        .arguments = "ID NAME [--data JSON | --data-file FILE]",
        .summary = "send a signal to a job, for a step that waits for it",
        .help = "A signal that no step waits for yet is kept until one does.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_job_signal,
        .options = {{"--data", "JSON", "what goes with it: the output of the step"},
                    {"--data-file", "FILE", "the same from a file; - is standard input"}},
    },
    {
        .name = "job shell",
        .arguments = "ID STEP [--attempt N]",
        .summary = "open a shell in the working folder of a step that failed",
        .help = "With the environment the step had, its secrets left out. Working folders of\n"
                "failed attempts are kept for some days.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_shell,
        .options = {{"--attempt", "N", "of this attempt (the last one)"}},
    },
    {
        .name = "send",
        .arguments = "JOB AGENT [--type TYPE] [--body JSON | --body-file FILE]",
        .summary = "send a message to an agent of a running job",
        .help = "It is refused while the agent has too much to do: try again later then.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_agents_send,
        .options = {{"--type", "TYPE", "the type of the message (input)"},
                    {"--body", "JSON", "what it says"},
                    {"--body-file", "FILE", "the same from a file; - is standard input"}},
    },
    {
        .name = "human list",
        .arguments = "[--runs-root DIR]",
        .summary = "what waits for a person",
        .help =
            "Steps that wait for an approval or a review, and requests that workers of bundles\n"
            "have left in the file human.jsonl of their run.\n" DETAILS,
        .run = gl_cmd_human_list,
        .options = {{"--runs-root", "DIR", "where the folders of runs are (MN_RUNS_ROOT)"}},
    },
    {
        .name = "human respond",
        .arguments = "JOB STEP --decision WORD [--output JSON] [--reviewer WHO] [--reason TEXT]",
        .summary = "decide about a step, or answer a request",
        .help =
            "An approval offers its own decisions: 'glia human list' shows them. A review, of\n"
            "an unsafe step of which nobody knows whether it ran, has these:\n"
            "\n"
            "rerun   it did not happen, or may happen again: start it once more\n"
            "done    it did happen: the step is completed, with the output given\n"
            "failed  the step has failed\n"
            "\n"
            "STEP may also be an agent of a bundle, or a request of one of its workers: that is\n"
            "answered in the file human.jsonl of the run. An id that begins with '-' stands\n"
            "behind all options and '--'.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_human_respond,
        .options = {{"--decision", "WORD", "what was decided"},
                    {"--output", "JSON", "the output of the step"},
                    {"--reviewer", "WHO", "who decides; otherwise the user who calls"},
                    {"--reason", "TEXT", "why, for the record"},
                    {"--runs-root", "DIR", "where the folders of runs are (MN_RUNS_ROOT)"}},
    },
    {
        .name = "why",
        .arguments = "ID [STEP]",
        .summary = "why a job, or a step of it, stands as it does",
        .help = "What it waits for, who holds it, until when; or how it ended.\n" DETAILS,
        .words_min = 1,
        .words_max = 2,
        .run = gl_cmd_why,
    },
    {
        .name = "status",
        .arguments = "",
        .summary = "the node, its pools, and how many jobs there are",
        .help = "Works without a node, too.\n",
        .run = gl_cmd_status,
    },
    {
        .name = "serve",
        .arguments = "[--listen ADDRESS] [--pools POOLS] [--finish] [--grace TIME]",
        .summary = "be the node of the data folder until told to stop",
        .help =
            "Picks up every unfinished job and takes new ones over its socket, and over TCP with\n"
            "--listen. A 'glia run' that is the node just now makes way; another serve does not.\n"
            "\n"
            "SIGTERM or SIGINT: no new work is taken, running steps are left to the keeper (with\n"
            "--finish they may end first), exit 0. Again: leave at once. docs/operations.md tells\n"
            "more, also about systemd.\n",
        .run = gl_cmd_serve,
        .options = {{"--listen", "ADDRESS", "also listen on TCP, like 127.0.0.1:7464"},
                    {"--pools", "POOLS", "slots, like default=8,gpu=1"},
                    {"--executor-slots", "N", "slots for workers of bundles (50)"},
                    {"--executor-pools", "POOLS", "more pools for them, like gpu=1,io=8"},
                    {"--runs-root", "DIR", "where the folders of their runs are (~/.mn/runs)"},
                    {"--finish", NULL, "let running steps end before leaving"},
                    {"--grace", "TIME", "how long that may take (30s)"},
                    {"--keep-for", "TIME", "remove ended jobs after this time (30d)"},
                    {"--keep-jobs", "N", "keep at most so many ended jobs (100000)"},
                    {"--keep-bytes", "SIZE", "remove the oldest ended jobs above this size"},
                    {"--keep-workspaces-for", "TIME", "folders of failed steps (3d)"},
                    {"--session-ttl", "TIME", "on a shared store: silent so long is dead (10s)"},
                    {"--orphan-grace", "TIME", "... and then its keeper ends its steps (60s)"},
                    {"--store-allow-loss", NULL, "use a store that may lose data silently"},
                    {"--node-name", "NAME", "what it is called (the machine's name)"},
                    {"--stack", "NAME", "share jobs only with nodes of this stack"},
                    {"--env-scope", "NAME", "... and of this environment"},
                    {"--log", "LEVEL", "info or debug"}},
    },
    {
        .name = "node list",
        .arguments = "[--all]",
        .summary = "the nodes that share the store",
        .help = "Alive, late (silent beyond its deadline) or dead; which one leads; its slots.\n"
                "Works without a node, too.\n",
        .run = gl_cmd_node_list,
        .options = {{"--all", NULL, "also those that are dead"}},
    },
    {
        .name = "node status",
        .arguments = "[NODE]",
        .summary = "one node: its session, pools, jobs, release",
        .help = "NODE is its name or the beginning of it; without it, the node of the data\n"
                "folder.\n",
        .words_max = 1,
        .run = gl_cmd_node_status,
    },
    {
        .name = "cluster status",
        .arguments = "",
        .summary = "all nodes together: how many, who leads, slots by pool",
        .help = "",
        .run = gl_cmd_cluster_status,
    },
    {
        .name = "claim run",
        .arguments = "KEY [--lease TIME] [--wait TIME] [--once] -- COMMAND [ARGUMENT...]",
        .summary = "run a command only while nobody else has this claim",
        .help =
            "At most one holder of KEY runs at a time, on all nodes that share the store. The\n"
            "claim is renewed while the command runs, completed if it exits with 0, and failed\n"
            "otherwise. If it is lost, or cannot be renewed in time, the command is stopped\n"
            "before anybody else can get the claim: SIGTERM, then SIGKILL.\n"
            "\n"
            "The command gets GLIA_CLAIM_KEY, GLIA_CLAIM_OWNER, GLIA_CLAIM_FENCE and\n"
            "GLIA_CLAIM_ATTEMPT. The exit code is the command's; 75: somebody else has the\n"
            "claim; 76: it was lost. docs/claims.md tells more.\n",
        .words_max = 1,
        .takes_rest = true,
        .run = gl_cmd_claim_run,
        .options = {{"--lease", "TIME", "how long it is held without a word, 1s to 1d (60s)"},
                    {"--owner", "NAME", "who has it (user@host:process)"},
                    {"--work-type", "WORD", "what kind of work, for the record"},
                    {"--wait", "TIME", "wait so long if somebody else has it (not at all)"},
                    {"--once", NULL, "not if the claim is completed already; that is fine then"},
                    {"--grace", "TIME", "from SIGTERM to SIGKILL, at most (5s)"}},
    },
    {
        .name = "claim acquire",
        .arguments = "KEY [--lease TIME] [--owner NAME] [--work-type WORD] [--once]",
        .summary = "get a claim, or exit with 75 if somebody else has it",
        .help =
            "Tells the fence: the number that the other commands need. The claim ends with its\n"
            "lease unless it is renewed. 'glia claim run' does all of it for you.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_claim_acquire,
        .options = {{"--lease", "TIME", "how long it is held without a word, 1s to 1d (60s)"},
                    {"--owner", "NAME", "who has it (user@host)"},
                    {"--work-type", "WORD", "what kind of work, for the record"},
                    {"--once", NULL, "not if it is completed already"}},
    },
    {
        .name = "claim renew",
        .arguments = "[KEY] [--fence N] [--owner NAME] [--lease TIME]",
        .summary = "keep a claim: its lease begins anew",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_renew,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "who has it (user@host)"},
                    {"--lease", "TIME", "how long (as before)"}},
    },
    {
        .name = "claim complete",
        .arguments = "[KEY] [--fence N] [--owner NAME]",
        .summary = "the work is done: the claim ends",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_complete,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "who has it (user@host)"}},
    },
    {
        .name = "claim fail",
        .arguments = "[KEY] [--fence N] [--owner NAME] [--error TEXT]",
        .summary = "the work has failed: the claim ends",
        .help = CLAIM_DETAILS,
        .words_max = 1,
        .run = gl_cmd_claim_fail,
        .options = {{"--fence", "N", "the number that came with the claim"},
                    {"--owner", "NAME", "who has it (user@host)"},
                    {"--error", "TEXT", "why, for the record"}},
    },
    {
        .name = "claim reclaim",
        .arguments = "[--limit N]",
        .summary = "mark claims whose leases are over, and tell which",
        .help =
            "Nobody needs to do this: such a claim can be acquired anyway. It tells whose work\n"
            "was left behind.\n",
        .run = gl_cmd_claim_reclaim,
        .options = {{"--limit", "N", "at most so many (100)"}},
    },
    {
        .name = "claim list",
        .arguments = "[--state STATE] [--prefix TEXT] [--after KEY] [--limit N]",
        .summary = "claims, by key",
        .help = DETAILS,
        .run = gl_cmd_claim_list,
        .options = {{"--state", "STATE", "only claimed, done, failed or expired"},
                    {"--prefix", "TEXT", "only those whose keys begin so"},
                    {"--after", "KEY", "go on behind this one"},
                    {"--limit", "N", "at most so many (100)"}},
    },
    {
        .name = "claim show",
        .arguments = "KEY",
        .summary = "a claim: who has it, until when, which try it is",
        .help = DETAILS,
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_claim_show,
    },
    {
        .name = "store trim",
        .arguments = "[--keep-for TIME] [--keep-jobs N]",
        .summary = "remove ended jobs now, and what nobody needs any more",
        .help = "Ended jobs go with their events, outputs and logs; then flows that no job names,\n"
                "files that no flow names, and old working folders of failed steps. Without\n"
                "options by the bounds that are set ('glia config show'), which a node keeps to\n"
                "by itself. Without a node, this command removes them; nothing is started.\n",
        .run = gl_cmd_store_trim,
        .options = {{"--keep-for", "TIME", "keep jobs that ended less long ago, like 7d"},
                    {"--keep-jobs", "N", "keep at most so many ended jobs, the newest"}},
    },
    {
        .name = "store status",
        .arguments = "",
        .summary = "how much room the data folder takes",
        .help = "",
        .run = gl_cmd_store_status,
    },
    {
        .name = "store check",
        .arguments = "[URL]",
        .summary = "is the store sound, and set up so that it loses nothing?",
        .help = "Of a server: release, persistence, memory, replicas; of SQLite: its file.\n"
                "Without URL the store that is set. Changes nothing. Exit code 1 if something is\n"
                "bad.\n",
        .words_max = 1,
        .run = gl_cmd_store_check,
    },
    {
        .name = "store migrate",
        .arguments = "FROM TO",
        .summary = "copy everything from one store into another",
        .help = "FROM and TO are URLs; sqlite: is that of the data folder, sqlite:DIR that of\n"
                "another. No node may use them. TO must be empty, or hold an earlier try of the\n"
                "same migration, which is continued. Both are compared at the end.\n",
        .words_min = 2,
        .words_max = 2,
        .run = gl_cmd_store_migrate,
        .options = {{"--store-allow-loss", NULL, "TO may be a store that loses data silently"}},
    },
    {
        .name = "backup",
        .arguments = "DIR [--logs] [--salvage]",
        .summary = "copy the data folder as it is now, also while a node runs",
        .help = "DIR must be empty, or not there yet. It gets the jobs with their events and\n"
                "outputs, and the files of their flows; with --logs also the logs of steps.\n"
                "\n"
                "A store whose write-ahead log is damaged is refused. --salvage copies what\n"
                "precedes the damage and accepts the loss of later commits: jobs are missing or\n"
                "in an earlier state, and steps may run again. Restore the copy without --resume\n"
                "and decide about each job.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_backup,
        .options = {{"--logs", NULL, "also the logs, inputs and outputs of attempts"},
                    {"--salvage", NULL, "copy a damaged store without the commits it has lost"}},
    },
    {
        .name = "restore",
        .arguments = "DIR --data-dir FOLDER [--resume]",
        .summary = "make a data folder from a backup",
        .help = "The data folder must be empty, or not there yet. Every file is checked.\n"
                "\n"
                "Jobs that had not ended are paused: what ran after the backup was made is not\n"
                "known in it. Steps that ran at that moment count as lost: unsafe ones wait for\n"
                "review, others run again. docs/retention.md tells more.\n",
        .words_min = 1,
        .words_max = 1,
        .run = gl_cmd_backup_restore,
        .options = {{"--resume", NULL, "unfinished jobs go on by themselves"}},
    },
    {
        .name = "config show",
        .arguments = "",
        .summary = "every setting, its value, and where that comes from",
        .help = "A flag beats the environment, that beats the file, that beats the default.\n",
        .needs_no_data = true,
        .run = gl_cmd_config_show,
    },
    {
        .name = "debug dump",
        .arguments = "[--output FILE] [--no-redact]",
        .summary = "what the node did last, as one file to show somebody",
        .help = "The flight recorder's segments, the settings and the end of the node's log.\n"
                "scripts, environments, inputs, outputs and sentences are replaced by ***; what\n"
                "was left in is told at the end. The file can be replayed all the same.\n",
        .run = gl_cmd_debug_dump,
        .options = {{"--output", "FILE", "where to; - is stdout (a new file in this folder)"},
                    {"--no-redact", NULL, "leave everything in: for your own eyes"}},
    },
    {
        .name = "replay",
        .arguments = "FILE [--until N] [--job ID] [--trace]",
        .summary = "what a node did, told again by the simulator",
        .help =
            "FILE is made by 'glia debug dump', or a segment of the recorder. Exit code 0 if\n"
            "every decision is the same again, 1 if one is not, 2 if FILE cannot be replayed.\n",
        .words_min = 1,
        .words_max = 1,
        .needs_no_data = true,
        .run = gl_cmd_debug_replay,
        .options = {{"--until", "N", "stop behind event number N"},
                    {"--job", "ID", "tell what happened to this job; the beginning is enough"},
                    {"--trace", NULL, "tell everything that happened"}},
    },
    {
        .name = "top",
        .arguments = "[--interval TIME]",
        .summary = "jobs and steps live, on the whole screen",
        .help = "Keys: q leaves, up and down choose a job, enter shows its steps, space asks at\n"
                "once. When stdout is no terminal, 'glia status' is what you want.\n",
        .run = gl_cmd_top,
        .options = {{"--interval", "TIME", "how often it looks (1s)"}},
    },
    {
        .name = "doctor",
        .arguments = "",
        .summary = "check what a node needs, and say what to do",
        .help = "Data folder, lock, store, keeper, disk, clock, programs, limits, permissions.\n"
                "Changes nothing. Exit code 1 if a check fails.\n",
        .run = gl_cmd_doctor,
    },
    {
        .name = "completion",
        .arguments = "bash|zsh|fish",
        .summary = "what a shell needs to complete words of this command",
        .help = "bash   source <(glia completion bash)\n"
                "zsh    source <(glia completion zsh)\n"
                "fish   glia completion fish | source\n"
                "\n"
                "Jobs and steps are completed with those there are.\n",
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
        .needs_no_data = true, /* the words tell which folder */
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
        .summary = "which release this is",
        .help = "",
        .needs_no_data = true,
        .run = gl_cmd_version,
    },
    {
        .name = "help",
        .arguments = "[COMMAND]",
        .summary = "this list, or more about one command",
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
