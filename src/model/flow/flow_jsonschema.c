#include "model/flow/flow_jsonschema.h"

#include "base/check.h"
#include "model/flow/flow.h"

/* Definitions that fields share, with ' for ". */
static const struct {
    const char *name, *schema;
} shared[] = {
    {"id", "{'anyOf':[{'type':'string','pattern':'^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'},"
           "{'type':'number'}]}"},
    {"scalar", "{'type':['string','number','boolean','null']}"},
    {"path", "{'type':'string','pattern':'^(?!/)(?!(.*/)?\\\\.\\\\.(/|$)).*[^/]$'}"},
    {"duration", "{'description':'Like 90s, 5m, 1.5h or 2m30s; a number means seconds.',"
                 "'anyOf':[{'type':'number','minimum':0},"
                 "{'type':'string','pattern':'^\\\\s*[0-9][0-9. dhms]*$'}]}"},
    {"time", "{'type':'string','pattern':'^\\\\s*[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]'}"},
    {"reference", "{'type':'string','pattern':'^\\\\s*\\\\$\\\\{.+\\\\}\\\\s*$'}"},
    {"failure", "{'anyOf':[{'type':'integer','minimum':1,'maximum':255},"
                "{'enum':['timeout','signal']},{'type':'string','pattern':'^[0-9]+$'}]}"},
};

static const char *const rule_aliases[] = {
#define X(name, word, alias) alias,
    GL_RULES(X)
#undef X
};

/* JSON written with ' for ", so that it can be read in C. */
static void put_quoted(struct gl_jw *w, const char *text)
{
    struct gl_buf out = {0};
    for (const char *c = text; *c; c++) {
        gl_buf_char(&out, *c == '\'' ? '"' : *c);
    }
    gl_jw_raw(w, gl_buf_view(&out));
    gl_buf_done(&out);
}

static void put_words(struct gl_jw *w, const char *name, const char *const *words, size_t n,
                      const char *const *aliases)
{
    gl_jw_key(w, name);
    gl_jw_object(w);
    gl_jw_key(w, "enum");
    gl_jw_array(w);
    for (size_t i = 0; i < n; i++) {
        gl_jw_c(w, words[i]);
        if (aliases && aliases[i]) {
            gl_jw_c(w, aliases[i]);
        }
    }
    gl_jw_end(w);
    gl_jw_end(w);
}

/* {"$ref": ...} with the description of the field, which editors show. */
static void put_field(struct gl_jw *w, const struct gl_flow_field *f)
{
    gl_jw_key(w, f->name);
    if (f->schema[0] != '{') {
        put_quoted(w, f->schema);
        return;
    }
    gl_jw_object(w);
    gl_jw_key(w, "description");
    gl_jw_c(w, f->doc);
    gl_jw_key(w, "allOf");
    gl_jw_array(w);
    put_quoted(w, f->schema);
    gl_jw_end(w);
    gl_jw_end(w);
}

/* The members of an object with the fields of `of`. */
static void put_members(struct gl_jw *w, const char *of)
{
    gl_jw_key(w, "type");
    gl_jw_c(w, "object");
    gl_jw_key(w, "additionalProperties");
    gl_jw_bool(w, false);
    gl_jw_key(w, "properties");
    gl_jw_object(w);
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        if (strcmp(gl_flow_fields[i].of, of) == 0) {
            put_field(w, &gl_flow_fields[i]);
        }
    }
    gl_jw_end(w);
    gl_jw_key(w, "required");
    gl_jw_array(w);
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        if (strcmp(gl_flow_fields[i].of, of) == 0 && gl_flow_fields[i].is_required) {
            gl_jw_c(w, gl_flow_fields[i].name);
        }
    }
    gl_jw_end(w);
}

/* Exactly one of its kinds, and for those that wait no field that concerns a process. */
static void put_kinds(struct gl_jw *w)
{
    static const char *const runs[] = {"sh", "run", "python", "script", "noop"};
    static const char *const waits[] = {"sleep", "until", "signal", "approval"};
    gl_jw_key(w, "oneOf");
    gl_jw_array(w);
    for (size_t i = 0; i < GL_COUNT(runs) + GL_COUNT(waits); i++) {
        bool has_process = i < GL_COUNT(runs);
        gl_jw_object(w);
        gl_jw_key(w, "required");
        gl_jw_array(w);
        gl_jw_c(w, has_process ? runs[i] : waits[i - GL_COUNT(runs)]);
        gl_jw_end(w);
        if (!has_process) {
            gl_jw_key(w, "propertyNames");
            put_quoted(w, "{'enum':['id','needs','trigger_rule','when','on_failure','timeout',"
                          "'sleep','until','signal','approval']}");
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void put_defs(struct gl_jw *w)
{
    const char *last = "flow";
    for (size_t i = 0; i < GL_COUNT(shared); i++) {
        gl_jw_key(w, shared[i].name);
        put_quoted(w, shared[i].schema);
    }
    put_words(w, "rule", gl_rule_words, GL_RULE_COUNT, rule_aliases);
    put_words(w, "type", gl_input_type_words, GL_INPUT_TYPE_COUNT, NULL);
    for (size_t i = 0; i < gl_flow_fields_n; i++) {
        const char *of = gl_flow_fields[i].of;
        if (strcmp(of, last) == 0) {
            continue; /* the fields of one object are adjacent */
        }
        last = of;
        gl_jw_key(w, of);
        gl_jw_object(w);
        put_members(w, of);
        if (strcmp(of, "step") == 0) {
            put_kinds(w);
        }
        gl_jw_end(w);
    }
}

void gl_flow_jsonschema(struct gl_buf *out)
{
    struct gl_jw w;
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, "$schema");
    gl_jw_c(&w, "https://json-schema.org/draft/2020-12/schema");
    gl_jw_key(&w, "title");
    gl_jw_c(&w, "A flow of Glia");
    put_members(&w, "flow");
    gl_jw_key(&w, "$defs");
    gl_jw_object(&w);
    put_defs(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
}
