#include "model/bundle/route.h"

#include "base/check.h"
#include "model/bundle/route_parts.h"
#include "model/text/compare.h"

/* Longer ones first, if one is a prefix of the other. */
const char *const gl_route_op_words[] = {"==", "!=",       ">=", "<=",     ">",
                                         "<",  "contains", "in", "exists", NULL};

/* Paths. */

const char *const gl_route_root_words[] = {
#define X(name, word) word,
    GL_ROUTE_ROOTS(X)
#undef X
};

bool gl_route_find_root(gl_str path, enum gl_route_root *ret, gl_str *ret_rest)
{
    for (enum gl_route_root r = 0; r < ROOT_COUNT; r++) {
        gl_str word = gl_str_of(gl_route_root_words[r]);

        if (gl_str_starts(path, word) && (path.n == word.n || path.p[word.n] == '.')) {
            size_t skip = path.n == word.n ? word.n : word.n + 1;

            *ret = r;
            *ret_rest = (gl_str){.p = path.p + skip, .n = path.n - skip};
            return true;
        }
    }
    return false;
}

/* Expressions: ${path} OP value. */

static bool is_word_end(gl_str s, size_t at)
{
    return at >= s.n || s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '"' || s.p[at] == '\'' ||
           s.p[at] == '[' || s.p[at] == '{' || s.p[at] == '$';
}

static bool take_op(gl_str *s, enum gl_route_op *ret)
{
    for (enum gl_route_op op = 0; op < OP_COUNT; op++) {
        gl_str word = gl_str_of(gl_route_op_words[op]);

        if (gl_str_starts(*s, word) && (op < CONTAINS || is_word_end(*s, word.n))) {
            *ret = op;
            *s = gl_str_trim((gl_str){.p = s->p + word.n, .n = s->n - word.n});
            return true;
        }
    }
    return false;
}

const char *gl_route_parse_expr(gl_str text, struct gl_route_expr *ret)
{
    const char *end;
    gl_str rest;

    text = gl_str_trim(text);
    if (!gl_str_starts(text, GL_S("${"))) {
        return "it must begin with a path, like \"${payload.score} >= 10\"";
    }
    end = memchr(text.p, '}', text.n);
    if (end == NULL) {
        return "`${` is not closed: add `}`";
    }
    ret->path = gl_str_trim((gl_str){.p = text.p + 2, .n = (size_t)(end - text.p) - 2});
    rest = gl_str_trim((gl_str){.p = end + 1, .n = text.n - (size_t)(end + 1 - text.p)});
    if (!take_op(&rest, &ret->op)) {
        return "the path must be followed by one of == != > >= < <= contains in exists";
    }
    if (ret->op == EXISTS && rest.n > 0) {
        return "nothing can follow `exists`";
    }
    if (ret->op != EXISTS && rest.n == 0) {
        return "the value is missing";
    }
    ret->value = rest;
    return NULL;
}

/* Evaluating. */

struct route_value {
    const struct gl_json *j;
    gl_jnode n;
};

struct route_evaluation {
    const struct gl_json *j; /* the conditions */
    const struct gl_route_facts *facts;
    struct gl_arena *a;
    struct route_value roots[ROOT_COUNT]; /* read on demand */
};

static bool parse(struct route_evaluation *e, gl_str text, struct route_value *ret)
{
    struct gl_json *j = GL_NEW(e->a, struct gl_json);

    if (gl_json_parse(j, text, GL_RECORD_BYTES_MAX, e->a, NULL) != 0) {
        return false;
    }
    *ret = (struct route_value){j, gl_json_root(j)};
    return true;
}

static struct route_value nothing(void)
{
    static const struct gl_json_node node = {.end = 4, .next = 1, .type = GL_JSON_NULL};
    static const struct gl_json document = {
        .text = {.p = "null", .n = 4}, .nodes = &node, .nodes_n = 1};

    return (struct route_value){&document, &node};
}

static struct route_value text_value(struct route_evaluation *e, gl_str text)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    struct route_value v = nothing();

    gl_jw_init(&w, &out);
    gl_jw_str(&w, text);
    if (!parse(e, gl_str_dup(e->a, gl_buf_view(&out)), &v)) {
        v = nothing();
    }
    gl_buf_done(&out);
    return v;
}

static struct route_value json_value(struct route_evaluation *e, gl_str text, const char *fallback)
{
    struct route_value v = nothing();

    if (!parse(e, text.n > 0 ? text : gl_str_of(fallback), &v)) {
        v = nothing();
    }
    return v;
}

static struct route_value load_root(struct route_evaluation *e, enum gl_route_root r)
{
    const struct gl_message *m = e->facts->incoming;

    if (r == ROOT_PAYLOAD) {
        return json_value(e, e->facts->payload, "null");
    }
    if (r == ROOT_STATE || r == ROOT_AGENT_STATE) {
        return json_value(e, e->facts->state, "{}");
    }
    if (m == NULL) {
        return nothing();
    }
    switch (r) {
    case ROOT_BODY:
        return json_value(e, m->body, "null");
    case ROOT_HEADERS:
        return json_value(e, m->headers, "{}");
    case ROOT_TYPE:
        return text_value(e, m->type);
    case ROOT_CLASS:
        return text_value(e, m->class_name);
    case ROOT_FROM:
        return text_value(e, m->from);
    default:
        return text_value(e, m->to);
    }
}

/* One step down: a member by its name, an element by its number. */
static bool go(struct route_evaluation *e, struct route_value *v, gl_str name)
{
    uint64_t number;
    gl_jnode n;

    if (gl_json_is(v->n, GL_JSON_OBJECT)) {
        n = gl_compare_find_key(v->j, v->n, name, e->a);
        v->n = n != NULL ? gl_json_value(n) : NULL;
        return v->n != NULL;
    }
    if (!gl_json_is(v->n, GL_JSON_ARRAY) || !gl_str_u64(name, &number) || number >= v->n->count) {
        return false;
    }
    for (n = gl_json_first(v->j, v->n); number > 0; number--) {
        n = gl_json_after(v->j, v->n, n);
    }
    v->n = n;
    return true;
}

static struct route_value follow(struct route_evaluation *e, gl_str path)
{
    struct route_value v;
    enum gl_route_root root;
    gl_str rest;

    if (!gl_route_find_root(path, &root, &rest)) {
        return nothing();
    }
    if (e->roots[root].n == NULL) {
        e->roots[root] = load_root(e, root);
    }
    v = e->roots[root];
    if (root == ROOT_HEADERS && rest.n > 0 && go(e, &v, rest)) {
        return v; /* names of headers have dots in them */
    }
    v = e->roots[root];
    while (rest.n > 0) {
        gl_str name = gl_str_cut(rest, '.', &rest);

        if (!go(e, &v, name)) {
            return nothing();
        }
    }
    return v;
}

static bool is_in(struct route_evaluation *e, struct route_value what, struct route_value where)
{
    if (gl_json_is(where.n, GL_JSON_STRING) && gl_json_is(what.n, GL_JSON_STRING)) {
        gl_str all = gl_json_str(where.j, where.n, e->a), part = gl_json_str(what.j, what.n, e->a);

        return part.n == 0 || (all.n > 0 && memmem(all.p, all.n, part.p, part.n) != NULL);
    }
    if (!gl_json_is(where.n, GL_JSON_ARRAY)) {
        return false;
    }
    for (gl_jnode n = gl_json_first(where.j, where.n); n != NULL;
         n = gl_json_after(where.j, where.n, n)) {
        if (gl_compare_equal(what.j, what.n, where.j, n, e->a)) {
            return true;
        }
    }
    return false;
}

static bool is_ordered(struct route_evaluation *e, struct route_value a, enum gl_route_op op,
                       struct route_value b)
{
    int cmp;

    if (gl_json_is(a.n, GL_JSON_NUMBER) && gl_json_is(b.n, GL_JSON_NUMBER)) {
        cmp = gl_compare_numbers(gl_json_raw(a.j, a.n), gl_json_raw(b.j, b.n));
    } else if (gl_json_is(a.n, GL_JSON_STRING) && gl_json_is(b.n, GL_JSON_STRING)) {
        cmp = gl_str_cmp(gl_json_str(a.j, a.n, e->a), gl_json_str(b.j, b.n, e->a));
    } else {
        return false;
    }
    return op == GT ? cmp > 0 : op == GE ? cmp >= 0 : op == LT ? cmp < 0 : cmp <= 0;
}

static bool compare(struct route_evaluation *e, struct route_value a, enum gl_route_op op,
                    struct route_value b)
{
    switch (op) {
    case EXISTS:
        return !gl_json_is(a.n, GL_JSON_NULL);
    case EQ:
    case NE:
        return gl_compare_equal(a.j, a.n, b.j, b.n, e->a) == (op == EQ);
    case CONTAINS:
        return is_in(e, b, a);
    case IN:
        return is_in(e, a, b);
    default:
        return is_ordered(e, a, op, b);
    }
}

/* JSON, else text, with or without quotes. */
static struct route_value literal(struct route_evaluation *e, gl_str text)
{
    struct route_value v;

    if (parse(e, text, &v)) {
        return v;
    }
    if (text.n >= 2 && (text.p[0] == '\'' || text.p[0] == '"') && text.p[text.n - 1] == text.p[0]) {
        text = (gl_str){.p = text.p + 1, .n = text.n - 2};
    }
    return text_value(e, text);
}

static bool expr_holds(struct route_evaluation *e, gl_str text)
{
    struct gl_route_expr x;

    if (gl_route_parse_expr(text, &x) != NULL) {
        return false;
    }
    return compare(e, follow(e, x.path), x.op, x.op == EXISTS ? nothing() : literal(e, x.value));
}

static bool test_holds(struct route_evaluation *e, gl_jnode n)
{
    gl_jnode path = gl_json_get(e->j, n, "path"), op = gl_json_get(e->j, n, "op");
    gl_jnode value = gl_json_get(e->j, n, "value");
    int which = op == NULL ? EQ : gl_schema_word(gl_route_op_words, gl_json_str(e->j, op, e->a));

    if (!gl_json_is(path, GL_JSON_STRING) || which < 0) {
        return false;
    }
    return compare(e, follow(e, gl_json_str(e->j, path, e->a)), (enum gl_route_op)which,
                   value != NULL ? (struct route_value){e->j, value} : nothing());
}

/* The reader has limited the depth. */
static bool holds(struct route_evaluation *e, gl_jnode n)
{
    gl_jnode list, all = gl_json_get(e->j, n, "all"), any = gl_json_get(e->j, n, "any");
    gl_jnode expr = gl_json_get(e->j, n, "expr"), other = gl_json_get(e->j, n, "not");

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return false;
    }
    if (n->count == 0) {
        return true;
    }
    if (expr != NULL) {
        return expr_holds(e, gl_json_str(e->j, expr, e->a));
    }
    if (other != NULL) {
        return gl_json_is(other, GL_JSON_OBJECT) && !holds(e, other);
    }
    list = all != NULL ? all : any;
    if (list == NULL) {
        return test_holds(e, n);
    }
    if (!gl_json_is(list, GL_JSON_ARRAY)) {
        return false;
    }
    for (gl_jnode k = gl_json_first(e->j, list); k != NULL; k = gl_json_after(e->j, list, k)) {
        if (holds(e, k) != (list == all)) {
            return list != all; /* decided */
        }
    }
    return list == all;
}

static bool is_always(gl_str conditions)
{
    return conditions.n == 0 || gl_str_is(conditions, "{}") || gl_str_is(conditions, "null");
}

bool gl_route_holds(gl_str conditions, const struct gl_route_facts *facts, struct gl_arena *a)
{
    struct gl_arena scratch = {0}; /* a payload is read for each edge: free what that allocated */
    struct gl_json j;
    struct route_evaluation e = {.j = &j, .facts = facts, .a = &scratch};
    bool result = false;

    (void)a;
    if (is_always(conditions)) {
        return true;
    }
    if (gl_json_parse(&j, conditions, GL_ROUTE_BYTES_MAX, &scratch, NULL) == 0) {
        result = holds(&e, gl_json_root(&j));
    }
    gl_arena_done(&scratch);
    return result;
}

/* Use of the agent's state. */

static bool reads_state(gl_str path)
{
    enum gl_route_root root;
    gl_str rest;

    return gl_route_find_root(gl_str_trim(path), &root, &rest) &&
           (root == ROOT_STATE || root == ROOT_AGENT_STATE);
}

bool gl_route_reads_state(gl_str conditions)
{
    struct gl_arena scratch = {0};
    struct gl_json j;
    struct gl_route_expr e;
    bool result = false;

    if (is_always(conditions) || (memmem(conditions.p, conditions.n, "state", 5) == NULL &&
                                  memchr(conditions.p, '\\', conditions.n) == NULL)) {
        return false;
    }
    if (gl_json_parse(&j, conditions, GL_ROUTE_BYTES_MAX, &scratch, NULL) == 0) {
        /* At any position: a false match only costs reading the state. */
        for (size_t i = 0; i + 1 < j.nodes_n && !result; i++) {
            gl_jnode key = &j.nodes[i];
            gl_str name = key->is_key ? gl_json_str(&j, key, &scratch) : (gl_str){0};
            gl_str text = key->is_key ? gl_json_str(&j, key + 1, &scratch) : (gl_str){0};

            result = (gl_str_is(name, "path") && reads_state(text)) ||
                     (gl_str_is(name, "expr") && gl_route_parse_expr(text, &e) == NULL &&
                      reads_state(e.path));
        }
    }
    gl_arena_done(&scratch);
    return result;
}
