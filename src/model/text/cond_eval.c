/* cond_eval.c - evaluates conditions. Exact: numbers are compared as written, as decimals, never
 * as floating point. */
#include "base/check.h"
#include "base/limits.h"
#include "model/text/compare.h"
#include "model/text/cond_tree.h"

enum { LIST_BYTES_MAX = GL_INPUT_BYTES_MAX };

struct cond_evaluation {
    const struct gl_json *facts;
    struct gl_arena *a;
    struct gl_why *why;
};

/* A value is a node of a document: the facts, or a literal. */
struct cond_operand {
    const struct gl_json *j;
    gl_jnode n;
};

static gl_str raw(struct cond_operand v)
{
    return gl_json_raw(v.j, v.n);
}

static bool is_equal(struct cond_evaluation *e, struct cond_operand a, struct cond_operand b)
{
    return gl_compare_equal(a.j, a.n, b.j, b.n, e->a);
}

/* The other comparisons. */

static gl_str clip(gl_str s)
{
    s.n = s.n < 60 ? s.n : 60;
    return s;
}

static int no_order(struct cond_evaluation *e, const struct gl_cond *c, struct cond_operand a,
                    struct cond_operand b)
{
    return gl_why(
        e->why, GL_R_NO_ORDER,
        "`%.*s` is %s and `%.*s` is %s: they have no order; compare them with ==, or test "
        "`exists` first",
        GL_STR_ARG(clip(c->left->text)), gl_json_type_name(a.n), GL_STR_ARG(clip(c->right->text)),
        gl_json_type_name(b.n));
}

static int eval_order(struct cond_evaluation *e, const struct gl_cond *c, struct cond_operand a,
                      struct cond_operand b, bool *ret)
{
    int cmp;
    if (gl_json_is(a.n, GL_JSON_NUMBER) && gl_json_is(b.n, GL_JSON_NUMBER)) {
        cmp = gl_compare_numbers(raw(a), raw(b));
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

static bool is_element(struct cond_evaluation *e, struct cond_operand what,
                       struct cond_operand list)
{
    for (gl_jnode n = gl_json_first(list.j, list.n); n; n = gl_json_after(list.j, list.n, n)) {
        if (is_equal(e, what, (struct cond_operand){list.j, n})) {
            return true;
        }
    }
    return false;
}

/* An absent value contains nothing, and is in no text and no object. */
static int eval_in(struct cond_evaluation *e, struct cond_operand what, struct cond_operand where,
                   bool *ret)
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
        return gl_why(e->why, GL_R_NO_CONTAINER,
                      "%s cannot be in %s: `in` looks for an element of a list, a key of an object "
                      "or a part of a text",
                      gl_json_type_name(what.n), gl_json_type_name(where.n));
    }
    if (is_text && is_object) {
        *ret = gl_compare_find_key(where.j, where.n, text, e->a) != NULL;
    } else if (is_text) {
        gl_str all = gl_json_str(where.j, where.n, e->a);
        *ret = text.n == 0 || (all.n && memmem(all.p, all.n, text.p, text.n));
    }
    return 0;
}

static bool is_true(struct cond_evaluation *e, struct cond_operand v)
{
    switch ((enum gl_json_type)v.n->type) {
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
        return false;
    case GL_JSON_TRUE:
        return true;
    case GL_JSON_NUMBER:
        return gl_compare_numbers(raw(v), GL_S("0")) != 0;
    case GL_JSON_STRING:
        return gl_json_str(v.j, v.n, e->a).n > 0;
    case GL_JSON_ARRAY:
    case GL_JSON_OBJECT:
        return v.n->count > 0;
    }
    GL_UNREACHABLE();
}

/* Values. */

static struct cond_operand resolve(struct cond_evaluation *e, const struct gl_ref *ref)
{
    static const struct gl_json_node nothing = {.end = 4, .next = 1, .type = GL_JSON_NULL};
    static const struct gl_json null_document = {
        .text = {.p = "null", .n = 4}, .nodes = &nothing, .nodes_n = 1};
    gl_jnode n;
    if (gl_ref_value(ref, e->facts, e->a, &n, NULL)) {
        return (struct cond_operand){&null_document, &nothing};
    }
    return (struct cond_operand){e->facts, n};
}

static int put_list(struct cond_evaluation *e, const struct gl_cond_value *v, struct gl_buf *out)
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
            return gl_why(e->why, GL_R_CONDITION_LIST_TOO_LARGE,
                          "a list in a condition has more than %d bytes", LIST_BYTES_MAX);
        }
    }
    gl_buf_char(out, ']');
    return 0;
}

static int list_value(struct cond_evaluation *e, const struct gl_cond_value *v,
                      struct cond_operand *ret)
{
    struct gl_buf out = {0};
    struct gl_json *j = GL_NEW(e->a, struct gl_json);
    int rc = put_list(e, v, &out);
    rc = rc ? rc
            : gl_json_parse(j, gl_str_dup(e->a, gl_buf_view(&out)), LIST_BYTES_MAX + 2, e->a,
                            e->why);
    gl_buf_done(&out);
    *ret = (struct cond_operand){j, rc ? NULL : gl_json_root(j)};
    return rc;
}

static int value_of(struct cond_evaluation *e, const struct gl_cond_value *v,
                    struct cond_operand *ret)
{
    if (v->items) {
        return list_value(e, v, ret);
    }
    *ret = v->is_ref ? resolve(e, &v->ref)
                     : (struct cond_operand){&v->literal, gl_json_root(&v->literal)};
    return 0;
}

/* Conditions. */

static int eval_test(struct cond_evaluation *e, const struct gl_cond *c, bool *ret)
{
    struct cond_operand a, b = {0};
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

static int eval_any(struct cond_evaluation *e, const struct gl_cond *c, bool *ret)
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
            return 0; /* decided: the rest is not evaluated */
        }
    }
    return 0;
}

int gl_cond_eval(const struct gl_cond *c, const struct gl_json *facts, struct gl_arena *a,
                 bool *ret, struct gl_why *reterr_why)
{
    struct cond_evaluation e = {.facts = facts, .a = a, .why = reterr_why};
    bool result = false;
    int rc = eval_any(&e, c, &result);
    if (!rc) {
        *ret = result;
    }
    return rc;
}
