#include "model/flow/flow_check.h"

#include "base/check.h"
#include "model/bundle/agent.h"
#include "model/labels.h"
#include "model/text/ref.h"

/* Ten years, as base/times.h reads them. */
#define SPAN_MS_MAX ((gl_ms)3650 * 24 * 3600 * 1000)

bool gl_flow_check_name(gl_str name)
{
    if (name.n == 0 || name.n > GL_NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c < 0x20 || c == 0x7f) {
            return false;
        }
    }
    return true;
}

bool gl_flow_check_env_name(gl_str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        bool digit = c >= '0' && c <= '9';
        if (!letter && !(digit && i > 0)) {
            return false;
        }
    }
    return name.n > 0;
}

bool gl_flow_check_file_name(gl_str name)
{
    return name.n > 0 && name.n <= GL_FLOW_FILE_NAME_BYTES_MAX && !gl_str_is(name, ".") &&
           !gl_str_is(name, "..") && gl_flow_check_is_text(name) && !memchr(name.p, '/', name.n);
}

bool gl_flow_check_file_path(gl_str path)
{
    gl_str rest = path;
    if (path.n == 0 || path.n >= 4096 || path.p[path.n - 1] == '/') {
        return false;
    }
    while (rest.n) {
        if (!gl_flow_check_file_name(gl_str_cut(rest, '/', &rest))) {
            return false;
        }
    }
    return true;
}

bool gl_flow_check_retry_on(gl_str word)
{
    uint64_t code;
    return gl_str_is(word, "timeout") || gl_str_is(word, "signal") ||
           (gl_str_u64(word, &code) && code >= 1 && code <= 255 && word.p[0] != '0');
}

bool gl_flow_check_secret(gl_str source)
{
    gl_str rest, kind = gl_str_cut(source, ':', &rest);
    return (gl_str_is(kind, "env") && gl_flow_check_env_name(rest)) ||
           (gl_str_is(kind, "file") && rest.n && rest.n < 4096 && rest.p[0] == '/' &&
            gl_flow_check_is_text(rest));
}

bool gl_flow_check_is_ref_name(gl_str name)
{
    gl_str prefix = GL_S("GLIA_REF_");
    uint64_t number;
    return gl_str_starts(name, prefix) &&
           gl_str_u64((gl_str){name.p + prefix.n, name.n - prefix.n}, &number);
}

bool gl_flow_check_is_text(gl_str s)
{
    return s.n == 0 || !memchr(s.p, 0, s.n);
}

size_t gl_flow_check_command_bytes(const struct gl_step_spec *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->argv.n; i++) {
        bytes += s->argv.items[i].n + 1;
    }
    for (size_t i = 0; i < s->env.n; i++) {
        bytes += s->env.items[i].n + 1;
    }
    return bytes;
}

bool gl_flow_check_rule_needs_parents(enum gl_rule rule)
{
    return rule != GL_RULE_ALL_SUCCESS && rule != GL_RULE_ALL_DONE;
}

static bool is_span(gl_ms span, gl_ms least)
{
    return span >= least && span <= SPAN_MS_MAX;
}

static const char *check_strings(const struct gl_strs *list, size_t max)
{
    if (list->n > max) {
        return "too many arguments or environment entries";
    }
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].n > GL_ARG_BYTES_MAX) {
            return "an argument or environment entry is too long";
        }
        if (!gl_flow_check_is_text(list->items[i])) {
            return "an argument or environment entry holds a NUL byte";
        }
    }
    return NULL;
}

static const char *check_env(const struct gl_step_spec *s)
{
    const char *bad = check_strings(&s->env, GL_ENVS_MAX);
    bad = bad ? bad : check_strings(&s->secrets, GL_SECRETS_MAX);
    for (size_t i = 0; !bad && i < s->env.n; i++) {
        gl_str value, name = gl_str_cut(s->env.items[i], '=', &value);
        bool reserved = gl_str_starts(name, GL_S("GLIA_")) && !gl_flow_check_is_ref_name(name);
        /* Unusual names are allowed here: `glia run -- cmd` passes its environment on unchanged. */
        if (name.n == s->env.items[i].n || name.n == 0 || reserved) {
            bad = "an environment entry is not NAME=value, or its name is reserved";
        }
    }
    for (size_t i = 0; !bad && i < s->secrets.n; i++) {
        gl_str source, name = gl_str_cut(s->secrets.items[i], '=', &source);
        if (!gl_flow_check_env_name(name) || gl_str_starts(name, GL_S("GLIA_")) ||
            !gl_flow_check_secret(source)) {
            bad = "a secret is not NAME=env:VARIABLE or NAME=file:/path";
        }
    }
    return bad;
}

static const char *check_command(const struct gl_step_spec *s)
{
    bool is_process = gl_str_is(s->driver, "process");
    if (is_process ? s->argv.n == 0 || s->argv.items[0].n == 0 : s->argv.n != 0) {
        return is_process ? "the command is missing"
                          : "a step that runs no program takes no command";
    }
    const char *bad = check_strings(&s->argv, GL_ARGS_MAX);
    bad = bad ? bad : check_strings(&s->refs, GL_ARGS_MAX);
    bad = bad ? bad : check_env(s);
    if (!bad && s->expand > (GL_EXPAND_ARGV | GL_EXPAND_ENV | GL_EXPAND_CWD)) {
        bad = "it has neither a command nor anything to expand";
    }
    return bad ? bad
           : gl_flow_check_command_bytes(s) > GL_COMMAND_BYTES_MAX
               ? "the command and its environment are too long"
               : NULL;
}

static const char *check_decisions(const struct gl_step_spec *s)
{
    bool found = s->on_timeout.n == 0;
    if (s->decisions.n < 1 || s->decisions.n > GL_FLOW_DECISIONS_MAX) {
        return "an approval has too few or too many decisions";
    }
    for (size_t i = 0; i < s->decisions.n; i++) {
        if (!gl_str_is_id(s->decisions.items[i])) {
            return "the name of a decision is not valid";
        }
        found = found || gl_str_eq(s->decisions.items[i], s->on_timeout);
    }
    return found ? NULL : "`on_timeout` is not one of its decisions";
}

/* The driver determines which of the fields a step has. */
static const char *check_driver(const struct gl_step_spec *s)
{
    const struct {
        const char *driver;
        gl_str text;
    } waiting[] = {
        {"sleep", s->sleep},
        {"until", s->until},
        {"signal", s->signal},
        {"approval", s->approval},
    };
    bool waits = false;
    for (size_t i = 0; i < GL_COUNT(waiting); i++) {
        bool mine = gl_str_is(s->driver, waiting[i].driver);
        waits = waits || mine;
        if (mine != (waiting[i].text.n > 0)) {
            return "its fields do not match its driver";
        }
    }
    if (!waits && !gl_str_is(s->driver, "process") && !gl_str_is(s->driver, "noop")) {
        return "there is no such driver";
    }
    if (waits &&
        (s->argv.n || s->env.n || s->secrets.n || s->refs.n || s->files.n || s->cwd.n ||
         s->expand || s->foreach.n || s->limit_key.n || s->rate_key.n || s->heartbeat_ms)) {
        return "a step that waits has no process and cannot have settings for one";
    }
    if (s->approval.n) {
        return check_decisions(s);
    }
    return s->decisions.n || s->on_timeout.n ? "only an approval has decisions" : NULL;
}

static const char *check_waiting(const struct gl_step_spec *s)
{
    gl_ms span;
    if (s->sleep.n && !gl_ref_is_one(s->sleep) && !gl_times_parse_span(s->sleep, &span)) {
        return "`sleep` is not a duration";
    }
    if (s->until.n && !gl_ref_is_one(s->until) && !gl_times_parse(s->until, &span)) {
        return "`until` is not a time";
    }
    if (s->signal.n && !gl_str_is_id(s->signal)) {
        return "the name of its signal is not valid";
    }
    return s->approval.n > GL_FLOW_MESSAGE_BYTES_MAX ? "the message is too long" : NULL;
}

static bool is_list(gl_str json)
{
    struct gl_arena a = {0};
    struct gl_json j;
    bool ok = gl_json_parse(&j, json, GL_FLOW_BYTES_MAX, &a, NULL) == 0 &&
              gl_json_is(gl_json_root(&j), GL_JSON_ARRAY) && j.depth <= GL_VALUE_DEPTH_MAX;
    gl_arena_done(&a);
    return ok;
}

/* `foreach`, `concurrency`, `rate`. */
static const char *check_limits(const struct gl_step_spec *s)
{
    if (s->foreach.n && !gl_ref_is_one(s->foreach) && !is_list(s->foreach)) {
        return "`foreach` is neither a reference nor a list";
    }
    bool has_items = s->items_max || s->parallel;
    if (s->foreach.n ? s->items_max < 1 || s->items_max > GL_ITEMS_MAX : has_items) {
        return "`max_items` is out of range";
    }
    if (s->limit_key.n ? s->limit_max < 1 || s->limit_max > GL_FLOW_LIMIT_MAX : s->limit_max != 0) {
        return "`concurrency` is out of range";
    }
    if (s->rate_key.n ? !is_span(s->rate_ms, 1) : s->rate_ms != 0) {
        return "`rate` is out of range";
    }
    bool long_key = s->limit_key.n > GL_KEY_BYTES_MAX || s->rate_key.n > GL_KEY_BYTES_MAX;
    return long_key ? "a key is too long" : NULL;
}

static bool is_hash(gl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) {
            return false;
        }
    }
    return s.n == 64;
}

static const char *check_files(const struct gl_step_spec *s)
{
    const struct gl_flow_file *files = s->files.items;
    if (s->files.n > GL_FILES_MAX) {
        return "too many files";
    }
    if (s->files.n && s->cwd.n) {
        return "files need a private folder, so they cannot be combined with `cwd`";
    }
    for (size_t i = 0; i < s->files.n; i++) {
        if (!gl_flow_check_file_path(files[i].name) || !is_hash(files[i].blob)) {
            return "a file has an invalid name or no hash";
        }
    }
    bool is_work = s->cwd.n && s->cwd.p[0] == 1 && gl_str_is(s->driver, "worker");
    bool starts = s->cwd.n && (s->cwd.p[0] == '/' || (s->expand & GL_EXPAND_CWD) || is_work);
    if (s->cwd.n && (!starts || s->cwd.n >= 4096 || !gl_flow_check_is_text(s->cwd))) {
        return "`cwd` is not an absolute path";
    }
    return NULL;
}

static const char *check_numbers(const struct gl_step_spec *s)
{
    const struct gl_retry *r = &s->retry;
    if (r->attempts < 1 || r->attempts > GL_ATTEMPTS_MAX || !is_span(r->backoff_ms, 0) ||
        !is_span(r->backoff_max_ms, r->backoff_ms) || r->factor_pct < 100 ||
        r->factor_pct > GL_FLOW_FACTOR_PCT_MAX || r->jitter_pct > 100 ||
        r->on.n > GL_FLOW_RETRY_ON_MAX) {
        return "`retry` is out of range";
    }
    for (size_t i = 0; i < r->on.n; i++) {
        if (!gl_flow_check_retry_on(r->on.items[i])) {
            return "`retry.on` has an invalid value";
        }
    }
    if (!is_span(s->timeout_ms, 0) || !is_span(s->grace_ms, 1) || !is_span(s->heartbeat_ms, 0)) {
        return "a time is out of range";
    }
    if (s->priority < -GL_FLOW_PRIORITY_MAX || s->priority > GL_FLOW_PRIORITY_MAX) {
        return "`priority` is out of range";
    }
    return s->slots < 1 || s->slots > GL_SLOTS_MAX ? "`slots` is out of range" : NULL;
}

/* In a bundle a rule may never hold; the step is then skipped. */
static const char *check_rule(const struct gl_step_spec *s, bool in_bundle)
{
    if (s->needs_ids.n > GL_NEEDS_MAX) {
        return "it needs too many steps";
    }
    if (!in_bundle && s->needs_ids.n == 0 && gl_flow_check_rule_needs_parents(s->rule)) {
        return "its trigger rule cannot hold without needs";
    }
    bool in_range =
        s->rule == GL_RULE_QUORUM ? s->quorum >= 1 && s->quorum <= s->needs_ids.n : s->quorum == 0;
    return in_range ? NULL : "its quorum is out of range";
}

/* Units and ledger of a bundle. Only flow files have references and gates. */
static const char *check_agent_step(const struct gl_step_spec *s, bool is_unit)
{
    static const char *const units[] = {"worker", "module", "relay", NULL};
    if (is_unit ? gl_schema_word(units, s->driver) < 0 : !gl_str_is(s->driver, "agent")) {
        return "there is no such driver in a bundle";
    }
    if (s->refs.n || s->expand || s->secrets.n || s->when.n || s->foreach.n || s->sleep.n ||
        s->until.n || s->signal.n || s->approval.n || s->decisions.n || s->limit_key.n ||
        s->rate_key.n || (is_unit && s->needs_ids.n) || (!is_unit && (s->argv.n || s->env.n))) {
        return "it has a field that a step of a bundle cannot have";
    }
    const char *bad = check_strings(&s->argv, GL_ARGS_MAX);
    return bad ? bad : check_strings(&s->env, GL_ENVS_MAX);
}

static bool is_agent_id(gl_str id, bool is_unit)
{
    gl_str name = is_unit && id.n > 0 ? (gl_str){id.p + 1, id.n - 1} : id;
    return is_unit ? id.n > 0 && id.p[0] == '@' && gl_str_is_id(name) : gl_str_is_step_id(name);
}

static const char *check_labels(const struct gl_step_spec *s)
{
    for (size_t i = 0; i < s->node_labels.n; i++) {
        if (i == GL_LABELS_MAX || !gl_labels_is_rule(s->node_labels.items[i])) {
            return "what it requires of a node's labels is not valid";
        }
    }
    return NULL;
}

static const char *check_step(const struct gl_flow *f, uint32_t number)
{
    const struct gl_step_spec *s = gl_flow_step(f, number);
    bool is_unit = gl_flow_is_unit(f, number);
    if (f->bundle ? !is_agent_id(s->id, is_unit) : !gl_str_is_id(s->id)) {
        return "that is not a valid id";
    }
    const char *bad = f->bundle ? check_agent_step(s, is_unit) : check_driver(s);
    bad = bad || f->bundle ? bad : check_command(s);
    bad = bad ? bad : check_waiting(s);
    bad = bad ? bad : check_limits(s);
    bad = bad ? bad : check_files(s);
    bad = bad ? bad : check_numbers(s);
    bad = bad ? bad : check_labels(s);
    bad = bad ? bad : check_rule(s, f->bundle != NULL);
    return bad || gl_str_is_id(s->pool) ? bad : "the name of its pool is not valid";
}

static bool is_fallback(const struct gl_flow_input *in)
{
    struct gl_arena a = {0};
    struct gl_json j;
    bool ok =
        in->fallback.n == 0 ||
        (!in->required && gl_json_parse(&j, in->fallback, GL_INPUTS_BYTES_MAX, &a, NULL) == 0 &&
         j.depth < GL_VALUE_DEPTH_MAX && gl_flow_check_input_type(in->type, &j, gl_json_root(&j)));
    gl_arena_done(&a);
    return ok;
}

static int check_inputs(const struct gl_flow *f, struct gl_why *why)
{
    const struct gl_flow_input *inputs = f->inputs.items;
    if (f->inputs.n > GL_INPUTS_MAX) {
        return gl_why(why, GL_E_INVALID, "a flow can have at most %d inputs", GL_INPUTS_MAX);
    }
    for (size_t i = 0; i < f->inputs.n; i++) {
        bool twice = false;
        for (size_t k = 0; k < i; k++) {
            twice = twice || gl_str_eq(inputs[i].name, inputs[k].name);
        }
        if (twice || inputs[i].name.n > GL_ID_BYTES_MAX ||
            !gl_flow_check_env_name(inputs[i].name) || !is_fallback(&inputs[i])) {
            return gl_why(why, GL_E_INVALID,
                          "input %zu has an invalid or duplicate name, or an invalid default",
                          i + 1);
        }
    }
    return 0;
}

int gl_flow_check(const struct gl_flow *f, struct gl_why *reterr_why)
{
    if (!gl_flow_check_name(f->name)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the flow's name is empty, too long or not printable");
    }
    if (f->steps.n == 0 || f->steps.n > GL_STEPS_MAX) {
        return gl_why(reterr_why, GL_E_INVALID, "a flow has 1 to %d steps, not %zu", GL_STEPS_MAX,
                      f->steps.n);
    }
    for (uint32_t i = 0; i < f->steps.n; i++) {
        const char *bad = check_step(f, i);
        if (bad) {
            gl_str id = gl_flow_step(f, i)->id;
            return gl_why(reterr_why, GL_E_INVALID, "step %u (%.*s): %s", i + 1,
                          (int)(id.n < 100 ? id.n : 100), id.p ? id.p : "", bad);
        }
    }
    return check_inputs(f, reterr_why);
}
