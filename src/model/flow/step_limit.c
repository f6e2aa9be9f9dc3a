/* step_limit.c - whether a step runs, how often, and how many run at a time. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"
#include "model/text/cond.h"

#define AT(s, name) GL_STEP_AT(s, name)

struct noting {
    struct gl_flow_reader *r;
    struct gl_step_reading *s;
    gl_jnode n;
    gl_str text;
};

static void note(void *owner, const struct gl_ref *ref)
{
    struct noting *t = owner;
    size_t offset = (size_t)(ref->text.p - t->text.p); /* borrows from the condition */
    while (offset > 0 && memcmp(t->text.p + offset, "${", 2) != 0) {
        offset--;
    }
    gl_step_refs_note(t->r, t->s, t->n, AT(t->s, "when"), ref, t->text, offset);
}

void gl_step_limit_when(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    struct noting t = {.r = r, .s = s, .n = n};
    const struct gl_cond *cond;
    struct gl_why why;
    size_t at = 0;
    if (!gl_flow_read_scalar(r, n, AT(s, "when"), &t.text)) {
        return;
    }
    if (gl_cond_parse(t.text, r->a, &cond, &at, &why)) {
        gl_flow_read_error_in(r, n, AT(s, "when"), t.text, at, why.reason, "%s", why.text);
        return;
    }
    gl_cond_refs(cond, note, &t);
    s->spec->when = t.text;
}

/* foreach */

static void read_items(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str raw = gl_json_raw(r->j, n);
    struct gl_buf json = {0};
    if (n->count > GL_ITEMS_MAX) {
        gl_flow_read_error(r, n, AT(s, "foreach"), GL_REASON_TOO_MANY,
                           "a list can have at most %d elements", GL_ITEMS_MAX);
        return;
    }
    if (gl_ref_has(raw)) {
        gl_flow_read_error(
            r, n, AT(s, "foreach"), GL_REASON_LITERAL_ONLY,
            "the elements of a list are literal: for references, give the whole list as one "
            "reference, like ${steps.list.output}, or write `$${` for `${`");
        return;
    }
    gl_ref_compact(gl_ref_literal(raw, r->a), &json);
    s->spec->foreach = gl_str_dup(r->a, gl_buf_view(&json));
    gl_buf_done(&json);
}

void gl_step_limit_foreach(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str text = gl_str_trim(gl_json_str(r->j, n, r->a));
    if (gl_json_is(n, GL_JSON_ARRAY)) {
        read_items(r, s, n);
    } else if (gl_ref_is_one(text)) {
        if (gl_step_refs_text(r, s, n, AT(s, "foreach"), text)) {
            s->spec->foreach = text;
        }
    } else {
        gl_flow_read_error(r, n, AT(s, "foreach"), GL_REASON_WRONG_TYPE,
                           "expected one reference to a list, like ${steps.list.output}, or a "
                           "list");
    }
}

void gl_step_limit_items(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    int64_t v;
    if (gl_flow_read_int(r, n, AT(s, "max_items"), 1, GL_ITEMS_MAX, &v)) {
        s->spec->items_max = (uint32_t)v;
    }
}

void gl_step_limit_parallel(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    int64_t v;
    if (gl_flow_read_int(r, n, AT(s, "max_parallel"), 1, GL_ITEMS_MAX, &v)) {
        s->spec->parallel = (uint32_t)v;
    }
}

/* Keys. */

/* The default key: only this step, in all jobs of this flow. */
static gl_str own_key(struct gl_flow_reader *r, const struct gl_step_reading *s)
{
    return gl_str_fmt(r->a, "%.*s/%.*s", GL_STR_ARG(r->flow->name), GL_STR_ARG(s->spec->id));
}

static bool read_key(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at, gl_str *ret)
{
    gl_str key;
    if (!gl_flow_read_scalar(r, n, at, &key)) {
        return false;
    }
    if (key.n == 0 || key.n > GL_KEY_BYTES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_OUT_OF_RANGE, "a key has 1 to %d bytes",
                           GL_KEY_BYTES_MAX);
        return false;
    }
    *ret = key;
    return true;
}

static void read_max(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                     struct gl_flow_path at)
{
    int64_t v;
    if (gl_flow_read_int(r, n, at, 1, GL_FLOW_LIMIT_MAX, &v)) {
        s->spec->limit_max = (uint32_t)v;
    }
}

void gl_step_limit_concurrency(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    struct gl_flow_path where = AT(s, "concurrency");
    s->spec->limit_key = gl_ref_escape(own_key(r, s), r->a);
    s->spec->limit_max = 1;
    if (s->spec->limit_key.n > GL_KEY_BYTES_MAX) {
        gl_flow_read_error(r, n, where, GL_REASON_TOO_LARGE,
                           "the names of the flow and the step are too long; set `key`");
        return;
    }
    if (gl_json_is(n, GL_JSON_NUMBER)) {
        read_max(r, s, n, where);
        return;
    }
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        gl_flow_read_error(r, n, where, GL_REASON_WRONG_TYPE,
                           "expected the number of steps at a time, like 1, or a table {key: "
                           "${inputs.customer}, max: 1}");
        return;
    }
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a), text;
        gl_jnode value = gl_json_value(key);
        struct gl_flow_path at = GL_STEP_AT_KEY(where, "key");
        if (gl_str_is(name, "max")) {
            read_max(r, s, value, GL_STEP_AT_KEY(where, "max"));
        } else if (!gl_str_is(name, "key")) {
            gl_flow_read_unknown(r, key, "concurrency", where);
        } else if (read_key(r, value, at, &text) && gl_step_refs_text(r, s, value, at, text)) {
            s->spec->limit_key = text;
        }
    }
}

/* Rates. */

static bool eat_unit(gl_str text, gl_ms *ret)
{
    static const struct {
        const char *word;
        gl_ms ms;
    } units[] = {
        {"second", 1000}, {"sec", 1000},     {"s", 1000},    {"minute", 60000}, {"min", 60000},
        {"m", 60000},     {"hour", 3600000}, {"h", 3600000}, {"day", 86400000}, {"d", 86400000},
    };
    for (size_t i = 0; i < GL_COUNT(units); i++) {
        if (gl_str_is(text, units[i].word)) {
            *ret = units[i].ms;
            return true;
        }
    }
    return gl_times_parse_span(text, ret);
}

/* "10/1m", "10/m", "10 per minute" */
static bool read_rate_text(gl_str text, uint64_t *ret_limit, gl_ms *ret_per)
{
    gl_str rest, limit = gl_str_trim(gl_str_cut(text, '/', &rest));
    const char *per = memmem(text.p, text.n, " per ", 5);
    if (per) {
        size_t at = (size_t)(per - text.p);
        limit = gl_str_trim((gl_str){text.p, at});
        rest = (gl_str){per + 5, text.n - at - 5};
    }
    return gl_str_u64(limit, ret_limit) && eat_unit(gl_str_trim(rest), ret_per);
}

static bool read_rate_table(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                            struct gl_flow_path where, uint64_t *ret_limit, gl_ms *ret_per)
{
    int64_t limit = 0;
    bool ok = true, has_limit = false, has_per = false;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        gl_jnode value = gl_json_value(key);
        struct gl_flow_path at = GL_STEP_AT_KEY(where, "key");
        if (gl_str_is(name, "limit")) {
            has_limit = true;
            ok = gl_flow_read_int(r, value, GL_STEP_AT_KEY(where, "limit"), 1, INT32_MAX, &limit) &&
                 ok;
        } else if (gl_str_is(name, "per")) {
            has_per = true;
            ok = gl_flow_read_span(r, value, GL_STEP_AT_KEY(where, "per"), 1, ret_per) && ok;
        } else if (!gl_str_is(name, "key")) {
            gl_flow_read_unknown(r, key, "rate", where);
        } else if (read_key(r, value, at, &s->spec->rate_key) && gl_ref_has(s->spec->rate_key)) {
            gl_flow_read_error(r, value, at, GL_REASON_LITERAL_ONLY,
                               "the key of `rate` cannot contain a reference");
        } else {
            s->spec->rate_key = gl_ref_literal(s->spec->rate_key, r->a);
        }
    }
    if (!has_limit || !has_per) {
        gl_flow_read_error(r, n, where, GL_REASON_MISSING, "`%s` is missing",
                           has_limit ? "per" : "limit");
        return false;
    }
    *ret_limit = (uint64_t)limit;
    return ok;
}

void gl_step_limit_rate(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    struct gl_flow_path where = AT(s, "rate");
    uint64_t limit = 0;
    gl_ms per = 0;
    s->spec->rate_key = own_key(r, s);
    if (gl_json_is(n, GL_JSON_OBJECT)) {
        if (!read_rate_table(r, s, n, where, &limit, &per)) {
            return;
        }
    } else if (!gl_json_is(n, GL_JSON_STRING) ||
               !read_rate_text(gl_json_str(r->j, n, r->a), &limit, &per)) {
        gl_flow_read_error(r, n, where, GL_REASON_NOT_A_RATE,
                           "expected a rate like 10/1m, \"10 per minute\" or a table {limit: 10, "
                           "per: 1m}");
        return;
    }
    if (limit == 0 || per <= 0 || limit > (uint64_t)per) {
        gl_flow_read_error(r, n, where, GL_REASON_OUT_OF_RANGE,
                           "a rate is at least one start, and at most one per "
                           "millisecond");
        return;
    }
    /* Rounded up: never more than requested. */
    s->spec->rate_ms = (gl_ms)(((uint64_t)per + limit - 1) / limit);
}

void gl_step_limit_finish(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    static const char *const parts[] = {"max_items", "max_parallel"};
    struct gl_step_spec *spec = s->spec;
    gl_jnode n = gl_json_get(r->j, s->node, "foreach");
    if (n && spec->items_max == 0) {
        spec->items_max = GL_ITEMS_DEFAULT;
    }
    if (gl_json_is(n, GL_JSON_ARRAY) && n->count > spec->items_max) {
        gl_flow_read_error(r, n, AT(s, "foreach"), GL_REASON_LIST_TOO_LONG,
                           "the list has %u elements; `max_items` allows %u", n->count,
                           spec->items_max);
    }
    for (size_t i = 0; !n && i < GL_COUNT(parts); i++) {
        gl_jnode part = gl_json_get(r->j, s->node, parts[i]);
        if (part) {
            gl_flow_read_error(r, part, AT(s, parts[i]), GL_REASON_FOREACH_MISSING,
                               "`%s` is only allowed with `foreach`", parts[i]);
        }
    }
}
