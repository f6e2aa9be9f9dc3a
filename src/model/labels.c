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
