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
    {"flow", "name", "text", "flow", false, "Name of the flow in lists and events.", TEXT},
    {"flow", "inputs", "map", "none", false,
     "The inputs of a job: a map from each name to its default, or to a table.",
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
     "A file next to the flow file. If it is executable, its first line selects the interpreter; "
     "otherwise its suffix (`.py`, `.sh`) does.",
     TEXT},
    {"step", "noop", "`true`", "", false, "Does nothing: for tests and benchmarks.",
     "{'const':true}"},
    {"step", "sleep", "duration or reference", "", false,
     "Waits for this duration, without a process.", EITHER(REF("duration"), REF("reference"))},
    {"step", "until", "time or reference", "", false,
     "Waits until this time (RFC 3339), without a process.", EITHER(REF("time"), REF("reference"))},
    {"step", "signal", "id", "", false, "Waits until the job receives this signal.", REF("id")},
    {"step", "approval", "text or table", "", false, "Waits until a person decides.",
     EITHER(TEXT, REF("approval"))},
    {"step", "needs", "id or list of ids", "none", false,
     "The steps that must end before this one.",
     EITHER(REF("id"), "{'type':'array','items':" REF("id") "}")},
    {"step", "trigger_rule", "word or table", "all_success", false,
     "Which outcomes of the needed steps let this one run.",
     EITHER(REF("rule"), REF("trigger_rule"))},
    {"step", "when", "condition", "true", false,
     "The step runs only if this is true; otherwise it is skipped.",
     "{'type':['string','number','boolean']}"},
    {"step", "foreach", "reference or list", "none", false,
     "The step runs once for each element of this list.",
     EITHER(REF("reference"), "{'type':'array'}")},
    {"step", "max_items", "number", "1000", false,
     "With `foreach`: a longer list fails the step (at most 10000).", COUNT},
    {"step", "max_parallel", "number", "none", false,
     "With `foreach`: how many elements run at a time.", COUNT},
    {"step", "env", "map", "none", false,
     "Environment variables of the step: texts and secrets. A step with secrets runs only on the "
     "node that has its job.",
     MAP_OF("^(?!GLIA_)[A-Za-z_][A-Za-z0-9_]*$", EITHER(REF("scalar"), REF("secret")))},
    {"step", "cwd", "absolute path", "a private folder", false,
     "The folder the step runs in. Only with `sh` and `run`, and without `files`.",
     "{'type':'string','pattern':'^(/|\\\\$\\\\{)'}"},
    {"step", "files", "list or map", "none", false,
     "Files next to the flow file that are copied to the step's folder: paths, or a map from "
     "name to path.",
     EITHER("{'type':'array','items':" REF("path") "}",
            "{'type':'object','additionalProperties':" REF("path") "}")},
    {"step", "timeout", "duration", "none", false,
     "How long one attempt may take; then it is stopped and counts as failed. With `signal` and "
     "`approval`: how long to wait.",
     REF("duration")},
    {"step", "grace", "duration", "10s", false,
     "How long an attempt that is being stopped may take to exit before it is killed.",
     REF("duration")},
    {"step", "heartbeat", "duration", "none", false,
     "How long a running attempt may go without a sign of life before it counts as failed.",
     REF("duration")},
    {"step", "retry", "number or table", "1", false, "How many attempts the step has in all.",
     EITHER(COUNT, REF("retry"))},
    {"step", "on_failure", "`fail`, `continue` or `skip`", "fail", false,
     "What happens when the last attempt has failed.", "{'enum':['fail','continue','skip']}"},
    {"step", "idempotent", "`true` or `false`", "false", false,
     "Running it twice does no harm: after a crash it may be started again at once.", BOOL},
    {"step", "unsafe", "`true` or `false`", "false", false,
     "Running it twice does harm: after a crash a person decides.", BOOL},
    {"step", "pool", "id", "default", false, "The pool the step takes its slots from.", REF("id")},
    {"step", "slots", "number", "1", false, "How many slots the step takes while it runs.", COUNT},
    {"step", "priority", "number", "0", false,
     "Among steps that wait for the same pool, higher goes first (-1000 to 1000).",
     "{'type':'integer','minimum':-1000,'maximum':1000}"},
    {"step", "node_labels", "table", "none", false,
     "Labels of the nodes that may run the step: a value, a list of values, `true` (the node has "
     "the label) or `false` (it has not).",
     "{'type':'object','additionalProperties':{'anyOf':[{'type':['string','number',"
     "'boolean']},{'type':'array','items':{'type':['string','number']},'minItems':1}]}}"},
    {"step", "concurrency", "number or table", "none", false,
     "How many steps with the same key may run at a time, across all jobs.",
     EITHER(COUNT, REF("concurrency"))},
    {"step", "rate", "rate or table", "none", false,
     "How many steps with the same key may start per time, such as `10/1m`.",
     EITHER("{'type':'string','pattern':'^\\\\s*[0-9]+\\\\s*(/|per\\\\s)'}", REF("rate"))},

    {"retry", "attempts", "number", "", true, "Attempts in all, including the first.", COUNT},
    {"retry", "backoff", "duration", "1s", false, "The wait before the second attempt.",
     REF("duration")},
    {"retry", "factor", "number", "2", false,
     "The wait grows by this factor with each further attempt.",
     "{'type':'number','minimum':1,'maximum':100}"},
    {"retry", "max_backoff", "duration", "5m", false, "The maximum wait.", REF("duration")},
    {"retry", "jitter", "number", "0", false,
     "How far the wait varies randomly, up and down: 0.2 is up to a fifth (0 to 1).",
     "{'type':'number','minimum':0,'maximum':1}"},
    {"retry", "on", "list", "every failure", false,
     "Which failures are retried: exit codes, `timeout`, `signal` (killed by a signal).",
     EITHER(REF("failure"), LIST_OF(REF("failure")))},

    {"trigger_rule", "rule", "word", "", true, "One of the seven rules.", REF("rule")},
    {"trigger_rule", "quorum", "number", "", false,
     "With `quorum_success`: how many needed steps must succeed.", COUNT},

    {"approval", "message", "text", "", true, "The question. May contain references.", TEXT},
    {"approval", "decisions", "list of ids", "approve, reject", false,
     "The possible answers. The first completes the step; every other one fails it.",
     LIST_OF(REF("id"))},
    {"approval", "on_timeout", "id", "the step fails", false,
     "The decision if nobody has decided before `timeout`.", REF("id")},

    {"concurrency", "key", "text", "flow/step", false,
     "Steps with the same key count together, across all flows. May contain references.",
     REF("scalar")},
    {"concurrency", "max", "number", "1", false, "How many of them may run at a time.", COUNT},

    {"rate", "limit", "number", "", true, "How many may start within `per`.", COUNT},
    {"rate", "per", "duration", "", true, "The time over which `limit` starts are spread evenly.",
     REF("duration")},
    {"rate", "key", "text", "flow/step", false,
     "Steps with the same key count together, across all flows.", REF("scalar")},

    {"secret", "secret", "text", "", true,
     "The source of the value: `env:VARIABLE` of the node, or `file:/path`.",
     "{'type':'string','pattern':'^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$'}"},

    {"input", "type", "word", "that of the default", false,
     "One of any, string, number, integer, boolean, list, object.", REF("type")},
    {"input", "default", "anything", "null", false, "The value if none is given.", "true"},
    {"input", "required", "`true` or `false`", "false", false,
     "The input must be given. Excludes `default`.", BOOL},
    {"input", "doc", "text", "", false, "The purpose of the input, in a sentence.", TEXT},
};

const size_t gl_flow_fields_n = GL_COUNT(gl_flow_fields);
