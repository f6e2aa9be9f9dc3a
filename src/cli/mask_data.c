#include "cli/mask_data.h"

#include "base/check.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "base/times.h"
#include "model/bundle/agent.h"
#include "model/bundle/route_parts.h"
#include "model/bundle/worker_output.h"
#include "model/text/compare.h"
#include "port/exec.h"

enum { LITERALS_MAX = 256, TEXT_MAX = 4096, COMMON_MAX = 16, COUNT_DIGITS_MAX = 6 };

/* Words that the core itself looks for in the data of agents. */
static const char protocol[] =
    "mn-msg/1 mn.agent.beacon.v1 application/json identity gzip base64 utf-8 text/plain "
    "command event query reply error data control init runtime worker agent system "
    "workflow_step_completed workflow_step_attempt_completed workflow_step_partial "
    "workflow_step_skipped workflow_step_failed workflow_step_branch workflow_step_scatter "
    "workflow_step_started workflow_graph_patch agent_beacon executor_result working started "
    "completed failed partial skipped success ok done next pending running cancelled "
    "add_step add_edge remove_edge remove_step replace_path retryable transient permanent timeout";

/* ---- literals ---- */

static void add_literal(struct gl_strs *list, gl_str text)
{
    if (text.n <= TEXT_MAX && list->n < LITERALS_MAX) {
        ((gl_str *)list->items)[list->n++] = text;
    }
}

static void add_text(struct gl_mask_data *d, enum gl_route_op op, gl_str text)
{
    add_literal(&d->texts, text);
    if (op == GT || op == GE || op == LT || op == LE) {
        add_literal(&d->ordered, text);
    } else if (op == CONTAINS) {
        add_literal(&d->parts, text);
    } else if (op == IN) {
        add_literal(&d->wholes, text);
    }
}

static void add_value(struct gl_mask_data *d, enum gl_route_op op, const struct gl_json *j,
                      gl_jnode value, struct gl_arena *a)
{
    if (gl_json_is(value, GL_JSON_STRING)) {
        add_text(d, op, gl_str_dup(a, gl_json_str(j, value, a)));
    } else if (gl_json_is(value, GL_JSON_NUMBER)) {
        add_literal(&d->numbers, gl_str_dup(a, gl_json_raw(j, value)));
    } else if (gl_json_is(value, GL_JSON_ARRAY)) {
        for (gl_jnode e = gl_json_first(j, value); e != NULL; e = gl_json_after(j, value, e)) {
            add_value(d, EQ, j, e, a);
        }
    } else if (gl_json_is(value, GL_JSON_OBJECT)) {
        for (gl_jnode k = gl_json_first(j, value); k != NULL; k = gl_json_after(j, value, k)) {
            add_value(d, EQ, j, gl_json_value(k), a);
        }
    }
}

static void add_expr(struct gl_mask_data *d, gl_str text, struct gl_arena *a)
{
    struct gl_route_expr x;
    struct gl_json j;

    if (gl_route_parse_expr(text, &x) != NULL || x.op == EXISTS) {
        return;
    }
    if (gl_json_parse(&j, x.value, TEXT_MAX, a, NULL) == 0) {
        add_value(d, x.op, &j, gl_json_root(&j), a);
        return;
    }
    if (x.value.n >= 2 && (x.value.p[0] == '\'' || x.value.p[0] == '"') &&
        x.value.p[x.value.n - 1] == x.value.p[0]) {
        x.value = (gl_str){.p = x.value.p + 1, .n = x.value.n - 2};
    }
    add_text(d, x.op, gl_str_dup(a, x.value));
}

/* The recursion is bounded: the parser limits nesting. */
static void add_condition(struct gl_mask_data *d, const struct gl_json *j, gl_jnode n,
                          struct gl_arena *a)
{
    gl_jnode value = gl_json_get(j, n, "value"), op = gl_json_get(j, n, "op");
    gl_jnode expr = gl_json_get(j, n, "expr"), other = gl_json_get(j, n, "not");
    static const char *const lists[] = {"all", "any"};
    int which = op == NULL ? EQ : gl_schema_word(gl_route_op_words, gl_json_str(j, op, a));

    if (expr != NULL) {
        add_expr(d, gl_str_dup(a, gl_json_str(j, expr, a)), a);
    }
    if (value != NULL && which >= 0) {
        add_value(d, (enum gl_route_op)which, j, value, a);
    }
    if (gl_json_is(other, GL_JSON_OBJECT)) {
        add_condition(d, j, other, a);
    }
    for (size_t i = 0; i < GL_COUNT(lists); i++) {
        gl_jnode list = gl_json_get(j, n, lists[i]);

        if (gl_json_is(list, GL_JSON_ARRAY)) {
            for (gl_jnode e = gl_json_first(j, list); e != NULL; e = gl_json_after(j, list, e)) {
                add_condition(d, j, e, a);
            }
        }
    }
}

static void add_conditions(struct gl_mask_data *d, gl_str conditions, struct gl_arena *a)
{
    struct gl_json j;

    if (conditions.n > 0 && gl_json_parse(&j, conditions, SIZE_MAX, a, NULL) == 0 &&
        gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        add_condition(d, &j, gl_json_root(&j), a);
    }
}

void gl_mask_data_init(struct gl_mask_data *d, const uint8_t key[GL_MASK_KEY_BYTES],
                       const struct gl_flow *flow, gl_str shown, struct gl_arena *a)
{
    const struct gl_route *routes = flow->bundle->routes.items;

    *d = (struct gl_mask_data){.shown = gl_str_dup(a, shown), .arena = a};
    memcpy(d->key, key, GL_MASK_KEY_BYTES);
    struct gl_strs *lists[] = {&d->texts, &d->ordered, &d->parts, &d->wholes, &d->numbers};

    for (size_t i = 0; i < GL_COUNT(lists); i++) {
        lists[i]->items = GL_NEW_ARRAY(a, gl_str, LITERALS_MAX);
    }
    for (size_t i = 0; i < flow->bundle->routes.n; i++) {
        add_conditions(d, routes[i].conditions, a);
    }
}

/* ---- texts ---- */

static bool has(gl_str all, gl_str part)
{
    return part.n == 0 || (all.n >= part.n && memmem(all.p, all.n, part.p, part.n) != NULL);
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

/* Does every condition have the same result as before? */
static bool agrees(const struct gl_mask_data *d, gl_str text, gl_str token)
{
    bool agree = gl_worker_output_is_transient(text, (gl_str){0}, (gl_str){0}) ==
                 gl_worker_output_is_transient(token, (gl_str){0}, (gl_str){0});

    for (size_t i = 0; i < d->texts.n && agree; i++) {
        agree = gl_str_eq(text, d->texts.items[i]) == gl_str_eq(token, d->texts.items[i]);
    }
    for (size_t i = 0; i < d->ordered.n && agree; i++) {
        agree = sign(gl_str_cmp(text, d->ordered.items[i])) ==
                sign(gl_str_cmp(token, d->ordered.items[i]));
    }
    for (size_t i = 0; i < d->parts.n && agree; i++) {
        agree = has(text, d->parts.items[i]) == has(token, d->parts.items[i]);
    }
    for (size_t i = 0; i < d->wholes.n && agree; i++) {
        agree = has(d->wholes.items[i], text) == has(d->wholes.items[i], token);
    }
    return agree;
}

static bool is_shown(const struct gl_mask_data *d, gl_str text)
{
    gl_ms when;

    return has(d->shown, text) || has(d->added, text) || has(gl_str_of(protocol), text) ||
           gl_id_valid(text) || gl_times_parse(text, &when);
}

static bool is_small(gl_str text)
{
    uint64_t n;

    return text.n <= 5 && gl_str_u64(text, &n);
}

/* Ids that the runtime derives from others: "<job>/step:attempt:2". */
static bool is_made_id(const struct gl_mask_data *d, gl_str text)
{
    size_t from = 0, ids_n = 0;

    for (size_t i = 0; i <= text.n; i++) {
        gl_str part = {.p = text.p + from, .n = i - from};

        if (i < text.n && text.p[i] != ':' && text.p[i] != '/') {
            continue;
        }
        if (!gl_id_valid(part) && !is_small(part) && !gl_str_is(part, "attempt") &&
            !has(d->shown, part)) {
            return false;
        }
        ids_n += gl_id_valid(part) || gl_str_is(part, "attempt");
        from = i + 1;
    }
    return ids_n > 0;
}

/* `front`, an asterisk and a keyed hash, with the length of the text. */
static gl_str token_of(const struct gl_mask_data *d, gl_str front, gl_str text, size_t bytes,
                       struct gl_arena *a)
{
    size_t n = front.n + 2 > bytes ? front.n + 2 : bytes;
    char *p = gl_arena_alloc(a, n + 1);
    uint8_t sum[GL_SHA256_BYTES];
    struct gl_sha256 s;

    gl_sha256_init(&s);
    gl_sha256_add(&s, d->key, sizeof(d->key));
    gl_sha256_add(&s, text.p, text.n);
    gl_sha256_done(&s, sum);
    n = front.n + 1 > bytes ? front.n + 1 : bytes;
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = sum[i / 2 % sizeof(sum)];

        p[i] = i < front.n    ? front.p[i]
               : i == front.n ? '*'
                              : "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
    }
    p[n] = '\0';
    return (gl_str){.p = p, .n = n};
}

/* All literals that occur in the text, one after the other. */
static gl_str parts_of(const struct gl_mask_data *d, gl_str text, struct gl_arena *a)
{
    gl_str parts = {0};

    for (size_t i = 0; i < d->parts.n; i++) {
        if (has(text, d->parts.items[i]) && !has(parts, d->parts.items[i])) {
            parts = gl_str_fmt(a, "%.*s%.*s ", GL_STR_ARG(parts), GL_STR_ARG(d->parts.items[i]));
        }
    }
    return parts;
}

static bool is_token(const struct gl_mask_data *d, gl_str text, gl_str front, size_t bytes,
                     struct gl_arena *a, gl_str *ret)
{
    *ret = token_of(d, front, text, bytes, a);
    return agrees(d, text, *ret);
}

/* A token that sorts between the same literals: some bytes of one literal, and another byte. */
static bool find_ordered(const struct gl_mask_data *d, gl_str text, gl_str parts, size_t bytes,
                         struct gl_arena *a, gl_str *ret)
{
    for (size_t i = 0; i < d->ordered.n; i++) {
        gl_str l = d->ordered.items[i];

        for (size_t k = 0; k <= l.n && k <= COMMON_MAX; k++) {
            for (int c = '!'; c <= '~'; c++) {
                gl_str front = gl_str_fmt(a, "%.*s%c%.*s", (int)k, l.p != NULL ? l.p : "", c,
                                          GL_STR_ARG(parts));

                if (is_token(d, text, front, bytes, a, ret)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static gl_str hide_text(struct gl_mask_data *d, gl_str text, size_t bytes, struct gl_arena *a)
{
    gl_str parts = parts_of(d, text, a), token;
    gl_str fronts[] = {parts, gl_str_fmt(a, "unavailable %.*s", GL_STR_ARG(parts))};

    for (size_t i = 0; i < GL_COUNT(fronts); i++) {
        if (is_token(d, text, fronts[i], bytes, a, &token) ||
            find_ordered(d, text, fronts[i], bytes, a, &token)) {
            return token;
        }
    }
    d->kept_n++;
    return text;
}

static bool rewrite(struct gl_mask_data *d, gl_str text, struct gl_arena *a, gl_str *ret)
{
    struct gl_buf out = {0};
    struct gl_json j;
    struct gl_jw w;

    if (text.n == 0 || (text.p[0] != '{' && text.p[0] != '[') ||
        gl_json_parse(&j, text, SIZE_MAX, a, NULL) != 0) {
        return false;
    }
    gl_jw_init(&w, &out);
    gl_mask_data_value(d, &j, gl_json_root(&j), a, &w);
    *ret = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return true;
}

gl_str gl_mask_data_text(struct gl_mask_data *d, gl_str text, size_t bytes, struct gl_arena *a)
{
    static const char *const prefixes[] = {GL_EXEC_BEACON, GL_EXEC_SAYS};
    const char *cut = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
    gl_str inner, trimmed = gl_str_trim(text);

    if (trimmed.n == 0) {
        return text;
    }
    if (rewrite(d, trimmed, a, &inner)) {
        return inner;
    }
    for (size_t i = 0; i < GL_COUNT(prefixes); i++) {
        gl_str prefix = gl_str_of(prefixes[i]);
        gl_str rest = {.p = text.p + prefix.n, .n = text.n - prefix.n};

        if (gl_str_starts(text, prefix)) {
            return gl_str_fmt(a, "%s%.*s", prefixes[i],
                              GL_STR_ARG(gl_mask_data_text(d, rest, rest.n, a)));
        }
    }
    if (cut != NULL) { /* the last line of a worker may be its result */
        gl_str head = {.p = text.p, .n = (size_t)(cut - text.p)};
        gl_str last = {.p = cut + 1, .n = text.n - head.n - 1};

        if (rewrite(d, gl_str_trim(last), a, &inner)) {
            return gl_str_fmt(a, "%.*s\n%.*s", GL_STR_ARG(hide_text(d, head, head.n, a)),
                              GL_STR_ARG(inner));
        }
    }
    return is_shown(d, text) || is_made_id(d, text) ? text : hide_text(d, text, bytes, a);
}

/* ---- numbers ---- */

/* The core reads counts, sizes and times. Sizes and times may be large; a large value under a key
 * that names a number or a maximum is more likely an account number. */
static bool is_protocol_number(gl_str key, gl_str number)
{
    static const char *const names[] = {"attempt",  "priority", "map_index", "index",
                                        "sequence", "count",    "number",    "exit_code"};
    static const char *const large[] = {"_ms", "_bytes", "_seconds", "revision"};
    static const char *const small[] = {"_attempts", "_n", "attempt"};
    bool is_small_one = gl_str_starts(key, GL_S("max_"));

    for (size_t i = 0; i < GL_COUNT(large); i++) {
        if (gl_str_ends(key, gl_str_of(large[i]))) {
            return true;
        }
    }
    for (size_t i = 0; i < GL_COUNT(small); i++) {
        is_small_one |= gl_str_ends(key, gl_str_of(small[i]));
    }
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        is_small_one |= gl_str_is(key, names[i]);
    }
    return is_small_one && number.n <= COUNT_DIGITS_MAX;
}

static bool number_agrees(const struct gl_mask_data *d, gl_str a, gl_str b)
{
    for (size_t i = 0; i < d->numbers.n; i++) {
        if (sign(gl_compare_numbers(a, d->numbers.items[i])) !=
            sign(gl_compare_numbers(b, d->numbers.items[i]))) {
            return false;
        }
    }
    return true;
}

/* Zero, or a number derived from a literal that compares like the original: 7 gives 7.5, 7.25 gives
 * 7.255. */
static gl_str hide_number(struct gl_mask_data *d, gl_str number, struct gl_arena *a)
{
    gl_str best = GL_S("0");

    if (number_agrees(d, number, best)) {
        return best;
    }
    for (size_t i = 0; i < d->numbers.n; i++) {
        gl_str l = d->numbers.items[i];
        bool is_negative = l.p[0] == '-';
        bool is_plain = memchr(l.p, 'e', l.n) == NULL && memchr(l.p, 'E', l.n) == NULL;
        bool has_point = memchr(l.p, '.', l.n) != NULL;
        gl_str candidates[] = {
            l,
            is_plain ? gl_str_fmt(a, "%.*s%s5", GL_STR_ARG(l), has_point ? "" : ".") : l,
            is_plain && !has_point ? gl_str_fmt(a, "%.*s0", GL_STR_ARG(l)) : l,
            is_negative ? (gl_str){.p = l.p + 1, .n = l.n - 1}
                        : gl_str_fmt(a, "-%.*s", GL_STR_ARG(l)),
            is_plain && !is_negative ? gl_str_fmt(a, "0.%.*s", 1, "1") : l,
        };

        for (size_t k = 0; k < GL_COUNT(candidates); k++) {
            if (number_agrees(d, number, candidates[k])) {
                return candidates[k];
            }
        }
    }
    d->kept_n++;
    return number;
}

/* ---- documents ---- */

/* In a patch: names of steps and edges, which are kept from then on. */
static void note_name(struct gl_mask_data *d, gl_str key, gl_str text)
{
    bool is_name = gl_str_is(key, "id") || gl_str_is(key, "from") || gl_str_is(key, "to") ||
                   gl_str_is(key, "patch_id");

    if (is_name && gl_str_is_step_id(text) && !has(d->shown, text) && !has(d->added, text)) {
        d->added = gl_str_fmt(d->arena, "%.*s\n%.*s", GL_STR_ARG(d->added), GL_STR_ARG(text));
    }
}

/* {"patch_id": ..., "operations": [{"op": ..., "id": ...}]} */
static void note_names(struct gl_mask_data *d, const struct gl_json *j, gl_jnode object,
                       struct gl_arena *a)
{
    gl_jnode list = gl_json_get(j, object, "operations");

    if (!gl_json_is(list, GL_JSON_ARRAY) || gl_json_get(j, object, "patch_id") == NULL) {
        return;
    }
    note_name(d, GL_S("patch_id"), gl_json_str(j, gl_json_get(j, object, "patch_id"), a));
    for (gl_jnode e = gl_json_first(j, list); e != NULL; e = gl_json_after(j, list, e)) {
        for (gl_jnode k = gl_json_is(e, GL_JSON_OBJECT) ? gl_json_first(j, e) : NULL; k != NULL;
             k = gl_json_after(j, e, k)) {
            note_name(d, gl_json_str(j, k, a), gl_json_str(j, gl_json_value(k), a));
        }
    }
}

static void write_value(struct gl_mask_data *d, const struct gl_json *j, gl_jnode value, gl_str key,
                        struct gl_arena *a, struct gl_jw *w)
{
    switch ((enum gl_json_type)value->type) {
    case GL_JSON_STRING:
        gl_jw_str(w,
                  gl_mask_data_text(d, gl_json_str(j, value, a), gl_json_raw(j, value).n - 2, a));
        return;
    case GL_JSON_NUMBER:
        gl_jw_raw(w, is_protocol_number(key, gl_json_raw(j, value))
                         ? gl_json_raw(j, value)
                         : hide_number(d, gl_json_raw(j, value), a));
        return;
    case GL_JSON_ARRAY:
        gl_jw_array(w);
        for (gl_jnode e = gl_json_first(j, value); e != NULL; e = gl_json_after(j, value, e)) {
            write_value(d, j, e, key, a, w);
        }
        gl_jw_end(w);
        return;
    case GL_JSON_OBJECT:
        note_names(d, j, value, a);
        gl_jw_object(w);
        for (gl_jnode k = gl_json_first(j, value); k != NULL; k = gl_json_after(j, value, k)) {
            gl_str name = gl_json_str(j, k, a);

            gl_jw_key_str(w, name);
            write_value(d, j, gl_json_value(k), name, a, w);
        }
        gl_jw_end(w);
        return;
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
    case GL_JSON_TRUE:
        gl_jw_raw(w, gl_json_raw(j, value));
        return;
    }
    GL_UNREACHABLE();
}

void gl_mask_data_value(struct gl_mask_data *d, const struct gl_json *j, gl_jnode value,
                        struct gl_arena *a, struct gl_jw *w)
{
    write_value(d, j, value, (gl_str){0}, a, w);
}
