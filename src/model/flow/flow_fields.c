#include "base/check.h"
#include "model/flow/flow.h"

/* Fragments of JSON Schema, with ' for ". */
#define TEXT "{'type':'string','pattern':'\\\\S'}"
#define BOOL "{'type':'boolean'}"
#define COUNT "{'type':'integer','minimum':1}"
#define REF(name) "{'$ref':'#/$defs/" name "'}"
#define EITHER(a, b) "{'anyOf':[" a "," b "]}"
#define LIST_OF(item) "{'type':'array','minItems':1,'items':" item "}"
#define MAP_OF(names, value) \
    "{'type':'object','propertyNames':{'pattern':'" names "'},'additionalProperties':" value "}"
#define ID_PATTERN "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"

const struct gl_flow_field gl_flow_fields[] = {
    {"flow", "name", "text", "flow", false, "What the flow is called, in lists and events.", TEXT},
    {"flow", "inputs", "map", "none", false,
     "What a job is given: a map from a name to its default, or to a table.",
     MAP_OF("^[A-Za-z_][A-Za-z0-9_]*$",
            EITHER("{'type':['string','number','boolean','array','null']}", REF("input")))},
    {"flow", "steps", "map or list", "", true,
     "The steps: a map from id to step, or a list of steps that each carry an `id`.",
     EITHER(MAP_OF(ID_PATTERN, REF("step")), LIST_OF("{'$ref':'#/$defs/step','required':['id']}"))},

    {"step", "id", "id", "", false,
     "The step's name. Only in a list of steps; in a map the key is the id.", REF("id")},
    {"step", "sh", "text", "", false,
     "Shell text, run by `sh -ec`: it stops at the first command that fails.", TEXT},
    {"step", "run", "list", "", false, "A program and its arguments, run without a shell.",
     LIST_OF("{'type':['string','number','boolean']}")},
    {"step", "python", "text", "", false, "A Python program, run by `python3`.", TEXT},
    {"step", "script", "path", "", false,
     "A file beside the flow file, run by its own first line if it is executable, else by "
     "its ending (`.py`, `.sh`).",
     TEXT},
    {"step", "noop", "`true`", "", false, "Does nothing: for tests and benchmarks.",
     "{'const':true}"},
    {"step", "sleep", "duration or reference", "", false, "Waits for so long, without a process.",
     EITHER(REF("duration"), REF("reference"))},
    {"step", "until", "time or reference", "", false,
     "Waits until this time (RFC 3339), without a process.", EITHER(REF("time"), REF("reference"))},
    {"step", "signal", "id", "", false, "Waits until the job is sent this signal.", REF("id")},
    {"step", "approval", "text or table", "", false, "Waits until a person decides.",
     EITHER(TEXT, REF("approval"))},
    {"step", "needs", "id or list of ids", "none", false,
     "The steps that must end before this one.",
     EITHER(REF("id"), "{'type':'array','items':" REF("id") "}")},
    {"step", "trigger_rule", "word or table", "all_success", false,
     "How the needed steps must have ended.", EITHER(REF("rule"), REF("trigger_rule"))},
    {"step", "when", "condition", "true", false,
     "The step runs only if this holds; else it is skipped.",
     "{'type':['string','number','boolean']}"},
    {"step", "foreach", "reference or list", "none", false,
     "The step runs once for each element of this list.",
     EITHER(REF("reference"), "{'type':'array'}")},
    {"step", "max_items", "number", "1000", false,
     "With `foreach`: a longer list is a failure (at most 10000).", COUNT},
    {"step", "max_parallel", "number", "none", false,
     "With `foreach`: how many elements at a time.", COUNT},
    {"step", "env", "map", "none", false, "Environment variables of the step: texts and secrets.",
     MAP_OF("^(?!GLIA_)[A-Za-z_][A-Za-z0-9_]*$", EITHER(REF("scalar"), REF("secret")))},
    {"step", "cwd", "absolute path", "a private folder", false,
     "The folder it runs in. Only with `sh` and `run`, and without `files`.",
     "{'type':'string','pattern':'^(/|\\\\$\\\\{)'}"},
    {"step", "files", "list or map", "none", false,
     "Files beside the flow file that the step finds in its folder: paths, or a map from "
     "name to path.",
     EITHER("{'type':'array','items':" REF("path") "}",
            "{'type':'object','additionalProperties':" REF("path") "}")},
    {"step", "timeout", "duration", "none", false,
     "How long one try may take; then it is stopped and counts as failed. With `signal` and "
     "`approval`: how long to wait.",
     REF("duration")},
    {"step", "grace", "duration", "10s", false,
     "How long a try that is being stopped may take to end before it is killed.", REF("duration")},
    {"step", "heartbeat", "duration", "none", false,
     "How long the node may hear nothing of a running try before it counts as failed.",
     REF("duration")},
    {"step", "retry", "number or table", "1", false, "How often the step is tried altogether.",
     EITHER(COUNT, REF("retry"))},
    {"step", "on_failure", "`fail`, `continue` or `skip`", "fail", false,
     "What happens when the last try has failed.", "{'enum':['fail','continue','skip']}"},
    {"step", "idempotent", "`true` or `false`", "false", false,
     "Running it twice does no harm: after a crash it may be started again at once.", BOOL},
    {"step", "unsafe", "`true` or `false`", "false", false,
     "Running it twice does harm: after a crash a person decides.", BOOL},
    {"step", "pool", "id", "default", false, "The pool whose slots it takes.", REF("id")},
    {"step", "slots", "number", "1", false, "How many slots it takes while it runs.", COUNT},
    {"step", "priority", "number", "0", false,
     "Higher goes first among the steps that wait for the same pool (-1000 to 1000).",
     "{'type':'integer','minimum':-1000,'maximum':1000}"},
    {"step", "concurrency", "number or table", "none", false,
     "How many steps with the same key may run at a time, in all jobs.",
     EITHER(COUNT, REF("concurrency"))},
    {"step", "rate", "rate or table", "none", false,
     "How many steps with the same key may start in a time, like `10/1m`.",
     EITHER("{'type':'string','pattern':'^\\\\s*[0-9]+\\\\s*(/|per\\\\s)'}", REF("rate"))},

    {"retry", "attempts", "number", "", true, "Tries altogether, the first included.", COUNT},
    {"retry", "backoff", "duration", "1s", false, "The wait before the second try.",
     REF("duration")},
    {"retry", "factor", "number", "2", false,
     "The wait grows by this factor with each further try.",
     "{'type':'number','minimum':1,'maximum':100}"},
    {"retry", "max_backoff", "duration", "5m", false, "The wait never grows beyond this.",
     REF("duration")},
    {"retry", "jitter", "number", "0", false,
     "How far the wait varies, up and down: 0.2 is by up to a fifth (0 to 1).",
     "{'type':'number','minimum':0,'maximum':1}"},
    {"retry", "on", "list", "every failure", false,
     "What is tried again: exit codes, `timeout`, `signal` (killed by one).",
     EITHER(REF("failure"), LIST_OF(REF("failure")))},

    {"trigger_rule", "rule", "word", "", true, "One of the seven rules below.", REF("rule")},
    {"trigger_rule", "quorum", "number", "", false,
     "With `quorum_success`: how many needed steps must succeed.", COUNT},

    {"approval", "message", "text", "", true, "What the person is asked. May contain references.",
     TEXT},
    {"approval", "decisions", "list of ids", "approve, reject", false,
     "What can be answered. The first means yes; every other one fails the step.",
     LIST_OF(REF("id"))},
    {"approval", "on_timeout", "id", "the step fails", false,
     "The decision if nobody has decided when `timeout` is over.", REF("id")},

    {"concurrency", "key", "text", "flow/step", false,
     "Steps with the same key count together, whatever flow they are of. May contain "
     "references.",
     REF("scalar")},
    {"concurrency", "max", "number", "1", false, "How many of them at a time.", COUNT},

    {"rate", "limit", "number", "", true, "How many may start ...", COUNT},
    {"rate", "per", "duration", "", true, "... in this time, evenly spread over it.",
     REF("duration")},
    {"rate", "key", "text", "flow/step", false,
     "Steps with the same key count together, whatever flow they are of.", REF("scalar")},

    {"secret", "secret", "text", "", true,
     "Where the value comes from: `env:VARIABLE` of the node, or `file:/path`.",
     "{'type':'string','pattern':'^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$'}"},

    {"input", "type", "word", "that of the default", false,
     "One of any, string, number, integer, boolean, list, object.", REF("type")},
    {"input", "default", "anything", "null", false, "The value if none is given.", "true"},
    {"input", "required", "`true` or `false`", "false", false,
     "It must be given. Excludes `default`.", BOOL},
    {"input", "doc", "text", "", false, "What it is for, in a sentence.", TEXT},
};

const size_t gl_flow_fields_n = GL_COUNT(gl_flow_fields);
