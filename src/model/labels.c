#include "model/labels.h"

#include "base/limits.h"

#define RULE "must be 1 to 64 letters, digits, '_', '.', '-' or '/'"

static_assert(GL_LABEL_BYTES_MAX == 64 && GL_LABELS_MAX == 32, "the sentences name the limits");

static bool is_word(gl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-' || c == '/')) {
            return false;
        }
    }
    return s.n > 0 && s.n <= GL_LABEL_BYTES_MAX;
}

/* NULL: it may follow the first `n` of `all`. */
static const char *rule_against(const struct gl_label *all, size_t n, const struct gl_label *one)
{
    if (!is_word(one->name)) {
        return "the name of a label " RULE;
    }
    if (!is_word(one->value)) {
        return "the value of a label " RULE;
    }
    for (size_t i = 0; i < n; i++) {
        if (gl_str_eq(all[i].name, one->name)) {
            return "this label is named twice";
        }
    }
    return n == GL_LABELS_MAX ? "there can be at most 32 labels" : NULL;
}

int gl_labels_parse(gl_str text, struct gl_arena *a, struct gl_labels *ret,
                    struct gl_why *reterr_why)
{
    struct gl_label *all = GL_NEW_ARRAY(a, struct gl_label, GL_LABELS_MAX);
    gl_str rest = gl_str_trim(text);
    size_t n = 0;

    while (rest.n > 0) {
        gl_str value, part = gl_str_trim(gl_str_cut(rest, ',', &rest));
        struct gl_label one = {.name = gl_str_trim(gl_str_cut(part, '=', &value))};
        const char *rule;

        one.value = gl_str_trim(value);
        rule = rule_against(all, n, &one);
        if (rule != NULL) {
            return gl_why(reterr_why, GL_E_INVALID, "'%.*s': %s; write labels like zone=a,disk=ssd",
                          GL_STR_ARG(part), rule);
        }
        all[n++] = one;
    }
    *ret = (struct gl_labels){.items = all, .n = n};
    return 0;
}

struct gl_labels gl_labels_copy(const struct gl_labels *labels, struct gl_arena *a)
{
    struct gl_label *all = GL_NEW_ARRAY(a, struct gl_label, labels->n + 1);

    for (size_t i = 0; i < labels->n; i++) {
        all[i].name = gl_str_dup(a, labels->items[i].name);
        all[i].value = gl_str_dup(a, labels->items[i].value);
    }
    return (struct gl_labels){.items = all, .n = labels->n};
}

void gl_labels_write(const struct gl_labels *labels, struct gl_jw *w)
{
    gl_jw_object(w);
    for (size_t i = 0; i < labels->n; i++) {
        gl_jw_key_str(w, labels->items[i].name);
        gl_jw_str(w, labels->items[i].value);
    }
    gl_jw_end(w);
}

bool gl_labels_read(const struct gl_json *j, gl_jnode n, struct gl_arena *a, struct gl_labels *ret)
{
    struct gl_label *all = GL_NEW_ARRAY(a, struct gl_label, GL_LABELS_MAX);
    size_t found = 0;

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return false;
    }
    for (gl_jnode k = gl_json_first(j, n); k; k = gl_json_after(j, n, k)) {
        struct gl_label one = {.name = gl_json_str(j, k, a),
                               .value = gl_json_str(j, gl_json_value(k), a)};

        if (rule_against(all, found, &one) != NULL) {
            return false; /* a value that is no text is "", and refused with the empty ones */
        }
        all[found++] = one;
    }
    *ret = (struct gl_labels){.items = all, .n = found};
    return true;
}

/* ---- rules ---- */

bool gl_labels_is_rule(gl_str rule)
{
    gl_str values, name = gl_str_cut(rule, '=', &values);

    if (name.n == rule.n) { /* "gpu" or "!spot" */
        return is_word(rule.n > 0 && rule.p[0] == '!' ? (gl_str){.p = rule.p + 1, .n = rule.n - 1}
                                                      : rule);
    }
    while (values.n > 0) {
        if (!is_word(gl_str_cut(values, '|', &values))) {
            return false;
        }
    }
    return is_word(name) && rule.p[rule.n - 1] != '|' && rule.p[rule.n - 1] != '=';
}

/* The value of a label; "": the node does not have it. */
static gl_str value_of(gl_str labels, gl_str name)
{
    while (labels.n > 0) {
        gl_str value, one = gl_str_cut(gl_str_trim(gl_str_cut(labels, ',', &labels)), '=', &value);

        if (gl_str_eq(one, name)) {
            return value;
        }
    }
    return (gl_str){0};
}

bool gl_labels_meet(gl_str labels, gl_str rule)
{
    gl_str values, value, name = gl_str_cut(rule, '=', &values);

    if (rule.n > 0 && rule.p[0] == '!') {
        return value_of(labels, (gl_str){.p = rule.p + 1, .n = rule.n - 1}).n == 0;
    }
    value = value_of(labels, name);
    if (name.n == rule.n) {
        return value.n > 0;
    }
    while (values.n > 0) {
        if (gl_str_eq(gl_str_cut(values, '|', &values), value) && value.n > 0) {
            return true;
        }
    }
    return false;
}

bool gl_labels_meet_all(gl_str labels, const struct gl_strs *rules, gl_str *ret_rule)
{
    for (size_t i = 0; i < rules->n; i++) {
        if (!gl_labels_meet(labels, rules->items[i])) {
            *ret_rule = rules->items[i];
            return false;
        }
    }
    return true;
}

gl_str gl_labels_text(const struct gl_labels *labels, struct gl_arena *a)
{
    struct gl_buf out = {0};
    gl_str text;

    for (size_t i = 0; i < labels->n; i++) {
        gl_buf_fmt(&out, "%s%.*s=%.*s", i > 0 ? "," : "", GL_STR_ARG(labels->items[i].name),
                   GL_STR_ARG(labels->items[i].value));
    }
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}
