#include "base/check.h"
#include "model/flow.h"

const struct gl_flow_field gl_flow_fields[] = {
    {"flow", "name", "text", "flow", "What the flow is called, in lists and events."},
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
    {"step", "needs", "id or list of ids", "none", "The steps that must end before this one."},
    {"step", "trigger_rule", "word or table", "all_success",
     "How the needed steps must have ended."},
    {"step", "env", "map", "none", "Environment variables of the step."},
    {"step", "cwd", "absolute path", "a private folder",
     "The folder it runs in. Only with `sh` and `run`."},
    {"step", "timeout", "duration", "none",
     "How long one try may take; then it is stopped and counts as failed."},
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

    {"retry", "attempts", "number", "", "Tries altogether, the first included."},
    {"retry", "backoff", "duration", "1s", "The wait before the second try."},
    {"retry", "factor", "number", "2", "The wait grows by this factor with each further try."},
    {"retry", "max_backoff", "duration", "5m", "The wait never grows beyond this."},

    {"trigger_rule", "rule", "word", "", "One of the seven rules below."},
    {"trigger_rule", "quorum", "number", "",
     "With `quorum_success`: how many needed steps must succeed."},
};

const size_t gl_flow_fields_n = GL_COUNT(gl_flow_fields);
