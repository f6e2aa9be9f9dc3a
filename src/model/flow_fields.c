#include "base/check.h"
#include "model/flow.h"

const struct gl_flow_field gl_flow_fields[] = {
    {"flow", "name", "text", "flow", "What the flow is called, in lists and events."},
    {"flow", "inputs", "map", "none",
     "What a job is given: a map from a name to its default, or to a table."},
    {"flow", "steps", "map or list", "",
     "The steps: a map from id to step, or a list of steps that each carry an `id`."},

    {"step", "id", "id", "",
     "The step's name. Only in a list of steps; in a map the key is the id."},
    {"step", "sh", "text", "",
     "Shell text, run by `sh -ec`: it stops at the first command that fails."},
    {"step", "run", "list", "", "A program and its arguments, run without a shell."},
    {"step", "python", "text", "", "A Python program, run by `python3`."},
    {"step", "script", "path", "",
     "A file beside the flow file, run by its own first line if it is executable, else "
     "by its ending (`.py`, `.sh`)."},
    {"step", "noop", "`true`", "", "Does nothing: for tests and benchmarks."},
    {"step", "sleep", "duration or reference", "", "Waits for so long, without a process."},
    {"step", "until", "time or reference", "",
     "Waits until this time (RFC 3339), without a process."},
    {"step", "signal", "id", "", "Waits until the job is sent this signal."},
    {"step", "approval", "text or table", "", "Waits until a person decides."},
    {"step", "needs", "id or list of ids", "none", "The steps that must end before this one."},
    {"step", "trigger_rule", "word or table", "all_success",
     "How the needed steps must have ended."},
    {"step", "when", "condition", "true", "The step runs only if this holds; else it is skipped."},
    {"step", "foreach", "reference or list", "none",
     "The step runs once for each element of this list."},
    {"step", "max_items", "number", "1000",
     "With `foreach`: a longer list is a failure (at most 10000)."},
    {"step", "max_parallel", "number", "none", "With `foreach`: how many elements at a time."},
    {"step", "env", "map", "none", "Environment variables of the step: texts and secrets."},
    {"step", "cwd", "absolute path", "a private folder",
     "The folder it runs in. Only with `sh` and `run`, and without `files`."},
    {"step", "files", "list or map", "none",
     "Files beside the flow file that the step finds in its folder: paths, or a map from name to "
     "path."},
    {"step", "timeout", "duration", "none",
     "How long one try may take; then it is stopped and counts as failed. With `signal` and "
     "`approval`: how long to wait."},
    {"step", "grace", "duration", "10s",
     "How long a try that is being stopped may take to end before it is killed."},
    {"step", "heartbeat", "duration", "none",
     "How long the node may hear nothing of a running try before it counts as failed."},
    {"step", "retry", "number or table", "1", "How often the step is tried altogether."},
    {"step", "on_failure", "`fail`, `continue` or `skip`", "fail",
     "What happens when the last try has failed."},
    {"step", "idempotent", "`true` or `false`", "false",
     "Running it twice does no harm: after a crash it may be started again at once."},
    {"step", "unsafe", "`true` or `false`", "false",
     "Running it twice does harm: after a crash a person decides."},
    {"step", "pool", "id", "default", "The pool whose slots it takes."},
    {"step", "slots", "number", "1", "How many slots it takes while it runs."},
    {"step", "priority", "number", "0",
     "Higher goes first among the steps that wait for the same pool (-1000 to 1000)."},

    {"step", "concurrency", "number or table", "none",
     "How many steps with the same key may run at a time, in all jobs."},
    {"step", "rate", "rate or table", "none",
     "How many steps with the same key may start in a time, like `10/1m`."},

    {"retry", "attempts", "number", "", "Tries altogether, the first included."},
    {"retry", "backoff", "duration", "1s", "The wait before the second try."},
    {"retry", "factor", "number", "2", "The wait grows by this factor with each further try."},
    {"retry", "max_backoff", "duration", "5m", "The wait never grows beyond this."},
    {"retry", "jitter", "number", "0",
     "How far the wait varies, up and down: 0.2 is by up to a fifth (0 to 1)."},
    {"retry", "on", "list", "every failure",
     "What is tried again: exit codes, `timeout`, `signal` (killed by one)."},

    {"trigger_rule", "rule", "word", "", "One of the seven rules below."},
    {"trigger_rule", "quorum", "number", "",
     "With `quorum_success`: how many needed steps must succeed."},

    {"approval", "message", "text", "", "What the person is asked. May contain references."},
    {"approval", "decisions", "list of ids", "approve, reject",
     "What can be answered. The first means yes; every other one fails the step."},
    {"approval", "on_timeout", "id", "the step fails",
     "The decision if nobody has decided when `timeout` is over."},

    {"concurrency", "key", "text", "flow/step",
     "Steps with the same key count together, whatever flow they are of. May contain "
     "references."},
    {"concurrency", "max", "number", "1", "How many of them at a time."},

    {"rate", "limit", "number", "", "How many may start ..."},
    {"rate", "per", "duration", "", "... in this time, evenly spread over it."},
    {"rate", "key", "text", "flow/step",
     "Steps with the same key count together, whatever flow they are of."},

    {"secret", "secret", "text", "",
     "Where the value comes from: `env:VARIABLE` of the node, or `file:/path`."},

    {"input", "type", "word", "that of the default",
     "One of any, string, number, integer, boolean, list, object."},
    {"input", "default", "anything", "null", "The value if none is given."},
    {"input", "required", "`true` or `false`", "false", "It must be given. Excludes `default`."},
    {"input", "doc", "text", "", "What it is for, in a sentence."},
};

const size_t gl_flow_fields_n = GL_COUNT(gl_flow_fields);
