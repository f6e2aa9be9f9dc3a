#include "model/flow/input_parse.h"

#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/text/ref.h"

static uint8_t type_of(gl_jnode n)
{
    static const uint8_t types[] = {
        [GL_JSON_NULL] = GL_INPUT_ANY,      [GL_JSON_FALSE] = GL_INPUT_BOOLEAN,
        [GL_JSON_TRUE] = GL_INPUT_BOOLEAN,  [GL_JSON_NUMBER] = GL_INPUT_NUMBER,
        [GL_JSON_STRING] = GL_INPUT_STRING, [GL_JSON_ARRAY] = GL_INPUT_LIST,
        [GL_JSON_OBJECT] = GL_INPUT_OBJECT,
    };
    return types[n->type];
}

static gl_str compact(struct gl_flow_reader *r, gl_jnode n)
{
    struct gl_buf out = {0};
    gl_ref_compact(gl_json_raw(r->j, n), &out);
    gl_str ret = gl_str_dup(r->a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

/* The default, once the type is known. null counts as none. */
static void set_fallback(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                         struct gl_flow_input *ret)
{
    if (gl_json_is(n, GL_JSON_NULL)) {
        return;
    }
    if (!gl_flow_check_input_type(ret->type, r->j, n)) {
        gl_flow_read_error(r, n, at, GL_REASON_DEFAULT_WRONG_TYPE,
                           "the default is %s, but the type is %s", gl_json_type_name(n),
                           gl_input_type_words[ret->type]);
        return;
    }
    if (ret->required) {
        gl_flow_read_error(r, n, at, GL_REASON_DEFAULT_OF_REQUIRED,
                           "a required input cannot have a default");
        return;
    }
    ret->fallback = compact(r, n);
}

static void read_table(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                       struct gl_flow_input *ret)
{
    gl_jnode fallback = NULL;
    bool has_type = false;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        gl_jnode value = gl_json_value(key);
        if (gl_str_is(name, "type")) {
            has_type = gl_flow_read_word(r, value, at, gl_input_type_words, NULL, &ret->type);
        } else if (gl_str_is(name, "default")) {
            fallback = value;
        } else if (gl_str_is(name, "required")) {
            (void)gl_flow_read_bool(r, value, at, &ret->required);
        } else if (gl_str_is(name, "doc")) {
            (void)gl_flow_read_text(r, value, at, &ret->doc);
        } else {
            struct gl_flow_path of = {.of = gl_str_fmt(r->a, "inputs.%.*s", GL_STR_ARG(at.key))};
            gl_flow_read_unknown(r, key, "input", of);
        }
    }
    if (fallback) {
        ret->type = has_type ? ret->type : type_of(fallback);
        set_fallback(r, fallback, at, ret);
    }
}

static void read_input(struct gl_flow_reader *r, gl_jnode key, struct gl_flow_input *ret)
{
    gl_jnode n = gl_json_value(key);
    struct gl_flow_path at = {.field = "inputs", .key = gl_json_str(r->j, key, r->a)};
    if (!gl_flow_check_env_name(at.key) || at.key.n > GL_ID_BYTES_MAX) {
        gl_flow_read_error(r, key, at, GL_REASON_NAME_INVALID,
                           "a name has 1 to %d letters, digits and _, and does not start with a "
                           "digit",
                           GL_ID_BYTES_MAX);
        return;
    }
    ret->name = at.key;
    if (gl_json_is(n, GL_JSON_OBJECT)) {
        read_table(r, n, at, ret);
    } else {
        ret->type = type_of(n);
        set_fallback(r, n, at, ret);
    }
}

struct gl_items gl_input_parse(struct gl_flow_reader *r, gl_jnode n)
{
    struct gl_flow_path at = {.field = "inputs"};
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        gl_flow_read_error(r, n, at, GL_REASON_WRONG_TYPE,
                           "expected a map from the name of an input to its default, or to a "
                           "table {type: string, required: true}");
        return (struct gl_items){0};
    }
    if (n->count > GL_INPUTS_MAX || n->end - n->start > GL_INPUTS_BYTES_MAX / 2) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_MANY,
                           "a flow can have at most %d inputs, of %d KiB in all", GL_INPUTS_MAX,
                           GL_INPUTS_BYTES_MAX >> 11);
        return (struct gl_items){0};
    }
    struct gl_flow_input *inputs = GL_NEW_ARRAY(r->a, struct gl_flow_input, n->count);
    size_t count = 0;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        read_input(r, key, &inputs[count]);
        count += inputs[count].name.n > 0;
    }
    return (struct gl_items){.items = inputs, .n = count};
}
