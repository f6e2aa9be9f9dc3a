/* cond_eval.c - is a condition true? Exact: numbers are compared as the decimals they are written
 * as, never as floating point. */
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/cond_tree.h"

enum { LIST_BYTES_MAX = GL_INPUT_BYTES_MAX, FEW_MEMBERS = 8, EXPONENT_MAX = 1000000000 };

struct eval {
    const struct gl_json *facts;
    struct gl_arena *a;
    struct gl_why *why;
};

/* A value is a node of some document: the facts, or a literal. */
struct value {
    const struct gl_json *j;
    gl_jnode n;
};

/* Numbers. */

/* 0.<digits> times ten to the `point`; zero has no digits. Digits have no zeros at their ends; the
 * decimal point may still stand among them. */
struct decimal {
    bool negative;
    gl_str digits;
    int64_t point;
};

static int64_t read_exponent(gl_str s)
{
    uint64_t v = EXPONENT_MAX;
    bool negative = s.n && s.p[0] == '-';
    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
        s.p++;
        s.n--;
    }
    if (!gl_str_u64(s, &v) || v > EXPONENT_MAX) {
        v = EXPONENT_MAX;
    }
    return negative ? -(int64_t)v : (int64_t)v;
}

static struct decimal decimal_of(gl_str s)
{
    struct decimal d = {0};
    d.negative = s.p[0] == '-';
    s.p += d.negative;
    s.n -= d.negative;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == 'e' || s.p[i] == 'E') {
            d.point = read_exponent((gl_str){s.p + i + 1, s.n - i - 1});
            s.n = i;
        }
    }
    gl_str rest;
    d.point += (int64_t)gl_str_cut(s, '.', &rest).n;
    while (s.n && (s.p[0] == '0' || s.p[0] == '.')) {
        d.point -= s.p[0] == '0';
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == '0' || s.p[s.n - 1] == '.')) {
        s.n--;
    }
    d.digits = s;
    d.negative = d.negative && s.n;
    return d;
}

/* Both positive, with the same point: digit by digit, over the decimal points. */
static int cmp_digits(gl_str a, gl_str b)
{
    size_t i = 0, k = 0;
    for (;;) {
        i += i < a.n && a.p[i] == '.';
        k += k < b.n && b.p[k] == '.';
        if (i >= a.n || k >= b.n) {
            return (i < a.n) - (k < b.n);
        }
        if (a.p[i] != b.p[k]) {
            return a.p[i] < b.p[k] ? -1 : 1;
        }
        i++;
        k++;
    }
}

static int cmp_numbers(gl_str a, gl_str b)
{
    struct decimal x = decimal_of(a), y = decimal_of(b);
    int sign = x.negative ? -1 : 1;
    if (x.negative != y.negative || x.digits.n == 0 || y.digits.n == 0) {
        int left = x.digits.n == 0 ? 0 : sign, right = y.digits.n == 0 ? 0 : y.negative ? -1 : 1;
        return (left > right) - (left < right);
    }
    if (x.point != y.point) {
        return x.point < y.point ? -sign : sign;
    }
    return sign * cmp_digits(x.digits, y.digits);
}

/* Equality. */

static gl_str raw(struct value v)
{
    return gl_json_raw(v.j, v.n);
}

static bool is_equal(struct eval *e, struct value a, struct value b);

static bool equal_lists(struct eval *e, struct value a, struct value b)
{
    gl_jnode x = gl_json_first(a.j, a.n), y = gl_json_first(b.j, b.n);
    while (x && y && is_equal(e, (struct value){a.j, x}, (struct value){b.j, y})) {
        x = gl_json_after(a.j, a.n, x);
        y = gl_json_after(b.j, b.n, y);
    }
    return !x && !y;
}

static gl_jnode find_key(struct eval *e, struct value object, gl_str name)
{
    for (gl_jnode k = gl_json_first(object.j, object.n); k;
         k = gl_json_after(object.j, object.n, k)) {
        if (gl_str_eq(gl_json_str(object.j, k, e->a), name)) {
            return k;
        }
    }
    return NULL;
}

/* Members in any order. A map for the large ones: an output may have a hundred thousand. */
static bool equal_objects(struct eval *e, struct value a, struct value b)
{
    struct gl_map map = {0};
    bool few = b.n->count <= FEW_MEMBERS, equal = true;
    for (gl_jnode k = few ? NULL : gl_json_first(b.j, b.n); k; k = gl_json_after(b.j, b.n, k)) {
        gl_map_add(&map, gl_json_str(b.j, k, e->a), (void *)(uintptr_t)k);
    }
    for (gl_jnode k = gl_json_first(a.j, a.n); k && equal; k = gl_json_after(a.j, a.n, k)) {
        gl_str name = gl_json_str(a.j, k, e->a);
        gl_jnode other = few ? find_key(e, b, name) : gl_map_find(&map, name);
        equal = other && is_equal(e, (struct value){a.j, gl_json_value(k)},
                                  (struct value){b.j, gl_json_value(other)});
    }
    gl_map_done(&map);
    return equal;
}

static bool is_equal(struct eval *e, struct value a, struct value b)
{
    if (a.n->type != b.n->type) {
        return false;
    }
    switch ((enum gl_json_type)a.n->type) {
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
    case GL_JSON_TRUE:
        return true;
    case GL_JSON_NUMBER:
        return cmp_numbers(raw(a), raw(b)) == 0;
    case GL_JSON_STRING:
        return gl_str_eq(gl_json_str(a.j, a.n, e->a), gl_json_str(b.j, b.n, e->a));
    case GL_JSON_ARRAY:
        return a.n->count == b.n->count && equal_lists(e, a, b);
    case GL_JSON_OBJECT:
        return a.n->count == b.n->count && equal_objects(e, a, b);
    }
    GL_UNREACHABLE();
}

/* The other comparisons. */

static gl_str clip(gl_str s)
{
    s.n = s.n < 60 ? s.n : 60;
    return s;
}

static int no_order(struct eval *e, const struct gl_cond *c, struct value a, struct value b)
{
    return gl_why(e->why, GL_E_INVALID,
                  "`%.*s` is %s and `%.*s` is %s: there is no order between them; ask about both "
                  "with ==, or first with `exists`",
                  GL_STR_ARG(clip(c->left->text)), gl_json_type_name(a.n),
                  GL_STR_ARG(clip(c->right->text)), gl_json_type_name(b.n));
}

static int eval_order(struct eval *e, const struct gl_cond *c, struct value a, struct value b,
                      bool *ret)
{
    int cmp;
    if (gl_json_is(a.n, GL_JSON_NUMBER) && gl_json_is(b.n, GL_JSON_NUMBER)) {
        cmp = cmp_numbers(raw(a), raw(b));
    } else if (gl_json_is(a.n, GL_JSON_STRING) && gl_json_is(b.n, GL_JSON_STRING)) {
        cmp = gl_str_cmp(gl_json_str(a.j, a.n, e->a), gl_json_str(b.j, b.n, e->a));
    } else {
        return no_order(e, c, a, b);
    }
    *ret = c->op == GL_COND_LT   ? cmp < 0
           : c->op == GL_COND_LE ? cmp <= 0
           : c->op == GL_COND_GT ? cmp > 0
                                 : cmp >= 0;
    return 0;
}

static bool is_element(struct eval *e, struct value what, struct value list)
{
    for (gl_jnode n = gl_json_first(list.j, list.n); n; n = gl_json_after(list.j, list.n, n)) {
        if (is_equal(e, what, (struct value){list.j, n})) {
            return true;
        }
    }
    return false;
}

/* Nothing is in what is not there, and what is not there is in no text and no object. */
static int eval_in(struct eval *e, struct value what, struct value where, bool *ret)
{
    gl_str text = gl_json_str(what.j, what.n, e->a);
    bool nothing = gl_json_is(what.n, GL_JSON_NULL), is_text = gl_json_is(what.n, GL_JSON_STRING);
    *ret = false;
    if (gl_json_is(where.n, GL_JSON_NULL)) {
        return 0;
    }
    if (gl_json_is(where.n, GL_JSON_ARRAY)) {
        *ret = is_element(e, what, where);
        return 0;
    }
    bool is_object = gl_json_is(where.n, GL_JSON_OBJECT);
    if (!(is_object || gl_json_is(where.n, GL_JSON_STRING)) || !(is_text || nothing)) {
        return gl_why(e->why, GL_E_INVALID,
                      "%s cannot be in %s: `in` asks for an element of a list, a key of an object "
                      "or a part of a text",
                      gl_json_type_name(what.n), gl_json_type_name(where.n));
    }
    if (is_text && is_object) {
        *ret = find_key(e, where, text) != NULL;
    } else if (is_text) {
        gl_str all = gl_json_str(where.j, where.n, e->a);
        *ret = text.n == 0 || (all.n && memmem(all.p, all.n, text.p, text.n));
    }
    return 0;
}

static bool is_true(struct eval *e, struct value v)
{
    switch ((enum gl_json_type)v.n->type) {
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
        return false;
    case GL_JSON_TRUE:
        return true;
    case GL_JSON_NUMBER:
        return cmp_numbers(raw(v), GL_S("0")) != 0;
    case GL_JSON_STRING:
        return gl_json_str(v.j, v.n, e->a).n > 0;
    case GL_JSON_ARRAY:
    case GL_JSON_OBJECT:
        return v.n->count > 0;
    }
    GL_UNREACHABLE();
}

/* Values. */

static struct value resolve(struct eval *e, const struct gl_ref *ref)
{
    static const struct gl_json_node nothing = {.end = 4, .next = 1, .type = GL_JSON_NULL};
    static const struct gl_json null_document = {
        .text = {.p = "null", .n = 4}, .nodes = &nothing, .nodes_n = 1};
    gl_jnode n;
    if (gl_ref_value(ref, e->facts, e->a, &n, NULL)) {
        return (struct value){&null_document, &nothing};
    }
    return (struct value){e->facts, n};
}

static int put_list(struct eval *e, const struct gl_cond_value *v, struct gl_buf *out)
{
    gl_buf_char(out, '[');
    for (size_t i = 0; i < v->items_n; i++) {
        const struct gl_cond_value *item = &v->items[i];
        gl_buf_c(out, i ? "," : "");
        if (item->items) {
            int rc = put_list(e, item, out);
            if (rc) {
                return rc;
            }
        } else {
            gl_buf_str(out, item->is_ref ? raw(resolve(e, &item->ref)) : item->literal.text);
        }
        if (out->n > LIST_BYTES_MAX) {
            return gl_why(e->why, GL_E_LIMIT, "a list in a condition has more than %d bytes",
                          LIST_BYTES_MAX);
        }
    }
    gl_buf_char(out, ']');
    return 0;
}

static int list_value(struct eval *e, const struct gl_cond_value *v, struct value *ret)
{
    struct gl_buf out = {0};
    struct gl_json *j = GL_NEW(e->a, struct gl_json);
    int rc = put_list(e, v, &out);
    rc = rc ? rc
            : gl_json_parse(j, gl_str_dup(e->a, gl_buf_view(&out)), LIST_BYTES_MAX + 2, e->a,
                            e->why);
    gl_buf_done(&out);
    *ret = (struct value){j, rc ? NULL : gl_json_root(j)};
    return rc;
}

static int value_of(struct eval *e, const struct gl_cond_value *v, struct value *ret)
{
    if (v->items) {
        return list_value(e, v, ret);
    }
    *ret = v->is_ref ? resolve(e, &v->ref) : (struct value){&v->literal, gl_json_root(&v->literal)};
    return 0;
}

/* Conditions. */

static int eval_test(struct eval *e, const struct gl_cond *c, bool *ret)
{
    struct value a, b = {0};
    int rc = value_of(e, c->left, &a);
    rc = rc || !c->right ? rc : value_of(e, c->right, &b);
    if (rc) {
        return rc;
    }
    switch (c->op) {
    case GL_COND_TRUTH:
        *ret = is_true(e, a);
        return 0;
    case GL_COND_EXISTS:
        *ret = !gl_json_is(a.n, GL_JSON_NULL);
        return 0;
    case GL_COND_EQ:
    case GL_COND_NE:
        *ret = is_equal(e, a, b) == (c->op == GL_COND_EQ);
        return 0;
    case GL_COND_IN:
        return eval_in(e, a, b, ret);
    case GL_COND_CONTAINS:
        return eval_in(e, b, a, ret);
    default:
        return eval_order(e, c, a, b, ret);
    }
}

static int eval_any(struct eval *e, const struct gl_cond *c, bool *ret)
{
    if (c->op != GL_COND_OR && c->op != GL_COND_AND && c->op != GL_COND_NOT) {
        return eval_test(e, c, ret);
    }
    for (const struct gl_cond *part = c->first; part; part = part->next) {
        int rc = eval_any(e, part, ret);
        if (rc) {
            return rc;
        }
        if (c->op == GL_COND_NOT) {
            *ret = !*ret;
            return 0;
        }
        if (*ret == (c->op == GL_COND_OR)) {
            return 0; /* decided: what follows is not asked */
        }
    }
    return 0;
}

int gl_cond_eval(const struct gl_cond *c, const struct gl_json *facts, struct gl_arena *a,
                 bool *ret, struct gl_why *reterr_why)
{
    struct eval e = {.facts = facts, .a = a, .why = reterr_why};
    bool result = false;
    int rc = eval_any(&e, c, &result);
    if (!rc) {
        *ret = result;
    }
    return rc;
}
