/* flow_inputs.c - checks the inputs of a job against the declarations of its flow. */
#include "base/check.h"
#include "base/suggest.h"
#include "model/flow/flow_check.h"
#include "model/text/ref.h"

const char *const gl_input_type_words[] = {
#define X(name, word) word,
    GL_INPUT_TYPES(X)
#undef X
        NULL,
};

enum { INPUTS_LISTED_MAX = 10 };

static bool is_whole(gl_str number)
{
    return !memchr(number.p, '.', number.n) && !memchr(number.p, 'e', number.n) &&
           !memchr(number.p, 'E', number.n);
}

bool gl_flow_check_input_type(uint8_t type, const struct gl_json *j, gl_jnode value)
{
    switch ((enum gl_input_type)type) {
    case GL_INPUT_ANY:
        return true;
    case GL_INPUT_STRING:
        return gl_json_is(value, GL_JSON_STRING);
    case GL_INPUT_NUMBER:
        return gl_json_is(value, GL_JSON_NUMBER);
    case GL_INPUT_INTEGER:
        return gl_json_is(value, GL_JSON_NUMBER) && is_whole(gl_json_raw(j, value));
    case GL_INPUT_BOOLEAN:
        return gl_json_is(value, GL_JSON_TRUE) || gl_json_is(value, GL_JSON_FALSE);
    case GL_INPUT_LIST:
        return gl_json_is(value, GL_JSON_ARRAY);
    case GL_INPUT_OBJECT:
        return gl_json_is(value, GL_JSON_OBJECT);
    case GL_INPUT_TYPE_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

struct giving {
    const struct gl_flow *f;
    const struct gl_json *j;
    gl_jnode given; /* an object, or NULL */
    struct gl_arena *a;
    struct gl_buf errors;
    int reason; /* of all errors, if they have the same */
};

static const struct gl_flow_input *input_of(const struct gl_flow *f, size_t i)
{
    return &((const struct gl_flow_input *)f->inputs.items)[i];
}

static void complain(struct giving *g, int reason, gl_str name, const char *what)
{
    g->reason = g->reason == 0 || g->reason == reason ? reason : GL_R_INPUTS_INVALID;
    name.n = name.n < 80 ? name.n : 80;
    gl_buf_fmt(&g->errors, "%sinput `%.*s`: %s", g->errors.n ? "; " : "", GL_STR_ARG(name), what);
}

/* "there is no such input; the flow's inputs: a, b", at most the first few. */
static gl_str list_inputs(const struct giving *g)
{
    gl_str text = GL_S("there is no such input; the flow's inputs: ");
    for (size_t i = 0; i < g->f->inputs.n && i < INPUTS_LISTED_MAX; i++) {
        text = gl_str_fmt(g->a, "%.*s%s%.*s", GL_STR_ARG(text), i > 0 ? ", " : "",
                          GL_STR_ARG(input_of(g->f, i)->name));
    }
    return g->f->inputs.n > INPUTS_LISTED_MAX ? gl_str_fmt(g->a, "%.*s, ...", GL_STR_ARG(text))
                                              : text;
}

static bool is_declared(struct giving *g, gl_str name)
{
    struct gl_suggest near;
    gl_suggest_init(&near, name);
    for (size_t i = 0; i < g->f->inputs.n; i++) {
        if (gl_str_eq(input_of(g->f, i)->name, name)) {
            return true;
        }
        gl_suggest_offer(&near, input_of(g->f, i)->name);
    }
    complain(g, GL_R_INPUT_UNKNOWN, name,
             near.best.n ? gl_str_fmt(g->a, "there is no such input; did you mean `%.*s`?",
                                      GL_STR_ARG(near.best))
                               .p
             : g->f->inputs.n ? list_inputs(g).p
                              : "the flow has no inputs");
    return false;
}

static void write_one(struct giving *g, const struct gl_flow_input *in, struct gl_jw *w,
                      struct gl_buf *scratch)
{
    gl_jnode value = gl_json_get(g->j, g->given, gl_str_c(g->a, in->name));
    gl_jw_key_str(w, in->name);
    if (!value) {
        if (in->required) {
            complain(g, GL_R_INPUT_MISSING, in->name, GL_FLOW_INPUT_MISSING);
        }
        gl_jw_raw(w, in->fallback.n ? in->fallback : GL_S("null"));
        return;
    }
    bool is_no_value = gl_json_is(value, GL_JSON_NULL) && !in->required && !in->fallback.n;
    if (!is_no_value && !gl_flow_check_input_type(in->type, g->j, value)) {
        complain(g, GL_R_INPUT_WRONG_TYPE, in->name,
                 gl_str_fmt(g->a, "expected %s, not %s", gl_input_type_words[in->type],
                            gl_json_type_name(value))
                     .p);
    }
    gl_buf_reset(scratch);
    gl_ref_compact(gl_json_raw(g->j, value), scratch);
    gl_jw_raw(w, gl_buf_view(scratch));
}

static void write_all(struct giving *g, struct gl_buf *out)
{
    struct gl_buf scratch = {0};
    struct gl_jw w;
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    for (gl_jnode k = gl_json_first(g->j, g->given); k; k = gl_json_after(g->j, g->given, k)) {
        (void)is_declared(g, gl_json_str(g->j, k, g->a)); /* it reports the error */
    }
    for (size_t i = 0; i < g->f->inputs.n; i++) {
        write_one(g, input_of(g->f, i), &w, &scratch);
    }
    gl_jw_end(&w);
    gl_buf_done(&scratch);
}

int gl_flow_inputs(const struct gl_flow *f, gl_str given, struct gl_arena *a, gl_str *ret,
                   struct gl_why *reterr_why)
{
    struct gl_json j;
    given = given.n ? given : GL_S("{}");
    int rc = gl_json_parse(&j, given, GL_INPUTS_BYTES_MAX, a, reterr_why);
    if (rc) {
        return reterr_why ? gl_why_prefix(reterr_why, "inputs") : rc;
    }
    if (!gl_json_is(gl_json_root(&j), GL_JSON_OBJECT) || j.depth > GL_VALUE_DEPTH_MAX) {
        return gl_why(reterr_why, GL_R_INPUTS_INVALID,
                      "inputs: expected an object with at most %d levels, not %s",
                      GL_VALUE_DEPTH_MAX, gl_json_type_name(gl_json_root(&j)));
    }
    struct giving g = {.f = f, .j = &j, .given = gl_json_root(&j), .a = a};
    struct gl_buf out = {0};
    write_all(&g, &out);
    if (g.errors.n) {
        rc = gl_why(reterr_why, g.reason, "%.*s", GL_STR_ARG(gl_buf_view(&g.errors)));
    } else if (out.n > GL_INPUTS_BYTES_MAX) {
        rc =
            gl_why(reterr_why, GL_R_FILLED_INPUTS_TOO_LARGE,
                   "the inputs have %zu bytes; at most %d are allowed", out.n, GL_INPUTS_BYTES_MAX);
    } else {
        *ret = f->inputs.n ? gl_str_dup(a, gl_buf_view(&out)) : (gl_str){0};
    }
    gl_buf_done(&g.errors);
    gl_buf_done(&out);
    return rc;
}
