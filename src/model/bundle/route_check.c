/* route_check.c - checks a condition, and reports all errors at once. */
#include <stdio.h>

#include "base/suggest.h"
#include "model/bundle/route_parts.h"

static bool is_text_root(enum gl_route_root r)
{
    return r == ROOT_TYPE || r == ROOT_CLASS || r == ROOT_FROM || r == ROOT_TO;
}

struct check {
    const struct gl_json *j;
    struct gl_arena a;
    struct gl_buf path, out; /* the current path; all errors */
};

static void error(struct check *c, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void error(struct check *c, const char *field, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args); /* truncated, if it is too long */
    va_end(args);
    if (c->out.n > 0) {
        gl_buf_c(&c->out, "; ");
    }
    gl_buf_fmt(&c->out, "%.*s%s%s: %s", GL_STR_ARG(gl_buf_view(&c->path)), field[0] ? "." : "",
               field, text);
}

static gl_str clip(gl_str s)
{
    s.n = s.n < 60 ? s.n : 60;
    return s;
}

static void check_path(struct check *c, const char *field, gl_str path)
{
    enum gl_route_root root;
    gl_str rest;

    if (!gl_route_find_root(path, &root, &rest)) {
        error(c, field,
              "the path `%.*s` does not exist: begin it with payload, state, agent_state, or "
              "message.body, .headers, .type, .class, .from or .to",
              GL_STR_ARG(clip(path)));
    } else if (is_text_root(root) && rest.n > 0) {
        error(c, field, "there is nothing below `%s`, which is text", gl_route_root_words[root]);
    }
}

static void check_expr(struct check *c, gl_jnode n)
{
    struct gl_route_expr e;
    const char *wrong;
    gl_str text = gl_json_str(c->j, n, &c->a);

    if (!gl_json_is(n, GL_JSON_STRING)) {
        error(c, "expr", "it is %s, not text", gl_json_type_name(n));
    } else if (text.n > GL_COND_BYTES_MAX) {
        error(c, "expr", "it has %zu bytes; at most %d are allowed", text.n, GL_COND_BYTES_MAX);
    } else if ((wrong = gl_route_parse_expr(text, &e)) != NULL) {
        error(c, "expr", "%s", wrong);
    } else {
        check_path(c, "expr", e.path);
    }
}

static const char *near_op(struct check *c, gl_str word)
{
    struct gl_suggest near;

    gl_suggest_init(&near, word);
    for (size_t i = 0; gl_route_op_words[i] != NULL; i++) {
        gl_suggest_offer(&near, gl_str_of(gl_route_op_words[i]));
    }
    return near.best.n > 0
               ? gl_str_c(&c->a, gl_str_fmt(&c->a, "; did you mean `%.*s`?", GL_STR_ARG(near.best)))
               : "";
}

static void check_op(struct check *c, gl_jnode n)
{
    gl_str word = gl_json_str(c->j, n, &c->a);

    if (!gl_json_is(n, GL_JSON_STRING)) {
        error(c, "op", "it is %s, not text", gl_json_type_name(n));
    } else if (gl_schema_word(gl_route_op_words, word) < 0) {
        error(c, "op", "unknown operator `%.*s`: use == != > >= < <= contains in or exists%s",
              GL_STR_ARG(clip(word)), near_op(c, word));
    }
}

static void check_test(struct check *c, gl_jnode n)
{
    gl_jnode path = gl_json_get(c->j, n, "path"), op = gl_json_get(c->j, n, "op");

    if (gl_json_is(path, GL_JSON_STRING)) {
        check_path(c, "path", gl_json_str(c->j, path, &c->a));
    } else {
        error(c, "path", "it is %s, not text", gl_json_type_name(path));
    }
    if (op != NULL) {
        check_op(c, op);
    }
    if (gl_json_get(c->j, n, "value") == NULL &&
        !gl_str_is(gl_json_str(c->j, op, &c->a), "exists")) {
        error(c, "value", "it is missing: the value to compare with");
    }
}

static void check_any(struct check *c, gl_jnode n, unsigned depth);

static void check_list(struct check *c, const char *name, gl_jnode list, unsigned depth)
{
    size_t before = c->path.n, number = 0;

    if (!gl_json_is(list, GL_JSON_ARRAY)) {
        error(c, name, "it is %s, not a list of conditions", gl_json_type_name(list));
        return;
    }
    for (gl_jnode n = gl_json_first(c->j, list); n != NULL; n = gl_json_after(c->j, list, n)) {
        gl_buf_fmt(&c->path, ".%s[%zu]", name, number++);
        check_any(c, n, depth + 1);
        c->path.n = before;
    }
}

static const char *const forms[] = {"expr", "all", "any", "not", "path", NULL};
static const char *const companions[] = {"op", "value", "id", "name", "label", "description", NULL};

/* It must have exactly one of the forms, and no other fields. */
static const char *form_of(struct check *c, gl_jnode n)
{
    const char *found = NULL;

    for (gl_jnode k = gl_json_first(c->j, n); k != NULL; k = gl_json_after(c->j, n, k)) {
        gl_str key = gl_json_str(c->j, k, &c->a);
        int form = gl_schema_word(forms, key);

        if (form < 0 && gl_schema_word(companions, key) < 0) {
            error(
                c, "",
                "`%.*s` has no meaning here; a condition has `expr`, or `path`, `op` and `value`, "
                "or `all`, `any` or `not`",
                GL_STR_ARG(clip(key)));
            return NULL;
        }
        if (form >= 0 && found != NULL) {
            error(c, "", "it has both `%s` and `%s`: put them into the list of an `all`", found,
                  forms[form]);
            return NULL;
        }
        found = form >= 0 ? forms[form] : found;
    }
    if (found == NULL) {
        error(c, "", "`path` is missing: the value to test");
    }
    return found;
}

static void check_any(struct check *c, gl_jnode n, unsigned depth)
{
    const char *form;
    gl_jnode value;
    size_t before = c->path.n;

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        error(c, "", "it is %s, not an object", gl_json_type_name(n));
        return;
    }
    if (depth > GL_COND_DEPTH_MAX) {
        error(c, "", "conditions have more than %d levels of nesting", GL_COND_DEPTH_MAX);
        return;
    }
    if (n->count == 0 || (form = form_of(c, n)) == NULL) {
        return; /* {} always holds */
    }
    value = gl_json_get(c->j, n, form);
    if (gl_str_is(gl_str_of(form), "expr")) {
        check_expr(c, value);
    } else if (gl_str_is(gl_str_of(form), "path")) {
        check_test(c, n);
    } else if (gl_str_is(gl_str_of(form), "not")) {
        gl_buf_c(&c->path, ".not");
        check_any(c, value, depth + 1);
        c->path.n = before;
    } else {
        check_list(c, form, value, depth);
    }
}

int gl_route_check(const struct gl_json *j, gl_jnode n, struct gl_why *reterr_why)
{
    struct check c = {.j = j};
    int rc = 0;

    gl_buf_c(&c.path, "conditions");
    if (n != NULL && n->type != GL_JSON_NULL) {
        gl_str raw = gl_json_raw(j, n);

        if (raw.n > GL_ROUTE_BYTES_MAX) {
            error(&c, "", "they have %zu bytes; at most %d are allowed", raw.n, GL_ROUTE_BYTES_MAX);
        } else {
            check_any(&c, n, 0);
        }
    }
    if (c.out.n > 0) {
        rc = gl_why(reterr_why, GL_E_INVALID, "%.*s", GL_STR_ARG(gl_buf_view(&c.out)));
    }
    gl_buf_done(&c.path);
    gl_buf_done(&c.out);
    gl_arena_done(&c.a);
    return rc;
}
