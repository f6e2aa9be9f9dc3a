#include "model/flow_check.h"

#include "base/check.h"

/* Ten years, as base/when.h reads them. */
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
        if (list->items[i].n > GL_FLOW_ARG_BYTES_MAX) {
            return "an argument or environment entry is too long";
        }
        if (!gl_flow_check_is_text(list->items[i])) {
            return "an argument or environment entry holds a NUL byte";
        }
    }
    return NULL;
}

static const char *check_command(const struct gl_step_spec *s)
{
    bool noop = gl_str_is(s->driver, "noop");
    if (!noop && !gl_str_is(s->driver, "process")) {
        return "there is no such driver";
    }
    if (noop ? s->argv.n != 0 : s->argv.n == 0 || s->argv.items[0].n == 0) {
        return noop ? "a step that does nothing takes no command" : "the command is missing";
    }
    const char *bad = check_strings(&s->argv, GL_ARGS_MAX);
    bad = bad ? bad : check_strings(&s->env, GL_ENVS_MAX);
    if (bad) {
        return bad;
    }
    for (size_t i = 0; i < s->env.n; i++) {
        gl_str value, name = gl_str_cut(s->env.items[i], '=', &value);
        /* Odd names are fine here: `glia run -- cmd` hands over an environment as it finds it. */
        if (name.n == s->env.items[i].n || name.n == 0 || gl_str_starts(name, GL_S("GLIA_"))) {
            return "an environment entry is not NAME=value, or its name is reserved";
        }
    }
    return gl_flow_check_command_bytes(s) > GL_COMMAND_BYTES_MAX
               ? "the command and its environment are too long"
               : NULL;
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
        return "files can only stand in a private folder, not in `cwd`";
    }
    for (size_t i = 0; i < s->files.n; i++) {
        if (!gl_flow_check_file_name(files[i].name) || !is_hash(files[i].blob)) {
            return "a file has no plain name or no hash";
        }
    }
    if (s->cwd.n && (s->cwd.p[0] != '/' || s->cwd.n >= 4096 || !gl_flow_check_is_text(s->cwd))) {
        return "`cwd` is no absolute path";
    }
    return NULL;
}

static const char *check_numbers(const struct gl_step_spec *s)
{
    const struct gl_retry *r = &s->retry;
    if (r->attempts < 1 || r->attempts > GL_ATTEMPTS_MAX || !is_span(r->backoff_ms, 0) ||
        !is_span(r->backoff_max_ms, r->backoff_ms) || r->factor_pct < 100 ||
        r->factor_pct > GL_FLOW_FACTOR_PCT_MAX) {
        return "`retry` is out of range";
    }
    if (!is_span(s->timeout_ms, 0) || !is_span(s->grace_ms, 1) || !is_span(s->heartbeat_ms, 0)) {
        return "a time is out of range";
    }
    if (s->priority < -GL_FLOW_PRIORITY_MAX || s->priority > GL_FLOW_PRIORITY_MAX) {
        return "`priority` is out of range";
    }
    return s->slots < 1 || s->slots > GL_SLOTS_MAX ? "`slots` is out of range" : NULL;
}

static const char *check_rule(const struct gl_step_spec *s)
{
    if (s->needs_ids.n > GL_NEEDS_MAX) {
        return "it needs too many steps";
    }
    if (s->needs_ids.n == 0 && gl_flow_check_rule_needs_parents(s->rule)) {
        return "its trigger rule cannot hold without needs";
    }
    bool in_range =
        s->rule == GL_RULE_QUORUM ? s->quorum >= 1 && s->quorum <= s->needs_ids.n : s->quorum == 0;
    return in_range ? NULL : "its quorum is out of range";
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
        const struct gl_step_spec *s = gl_flow_step(f, i);
        if (!gl_str_is_id(s->id)) {
            return gl_why(reterr_why, GL_E_INVALID, "step %u has no valid id", i + 1);
        }
        const char *bad = check_command(s);
        bad = bad ? bad : check_files(s);
        bad = bad ? bad : check_numbers(s);
        bad = bad ? bad : check_rule(s);
        bad = bad || gl_str_is_id(s->pool) ? bad : "its pool has no valid name";
        if (bad) {
            return gl_why(reterr_why, GL_E_INVALID, "step %.*s: %s", GL_STR_ARG(s->id), bad);
        }
    }
    return 0;
}
