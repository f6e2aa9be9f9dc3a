#include "cli/job_inputs.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/text/yaml.h"
#include "os/fs.h"

/* A member, or the whole value. A value from a file stays unchanged unless --set names a member. */
struct member {
    struct member *next, *first;
    gl_str key;
    gl_str raw; /* JSON; "": an object of the members below */
};

static struct member *add(struct gl_arena *a, struct member *parent, gl_str key)
{
    struct member **end = &parent->first;

    while (*end != NULL) {
        if (gl_str_eq((*end)->key, key)) {
            return *end;
        }
        end = &(*end)->next;
    }
    *end = GL_NEW(a, struct member);
    (*end)->key = key;
    return *end;
}

static void take_members(struct gl_arena *a, struct member *m, const struct gl_json *j)
{
    gl_jnode root = gl_json_root(j);

    for (gl_jnode k = gl_json_first(j, root); k; k = gl_json_after(j, root, k)) {
        add(a, m, gl_json_str(j, k, a))->raw = gl_json_raw(j, gl_json_value(k));
    }
}

/* Make it an object whose members can be set. Any other value is replaced: --set wins. */
static void open_up(struct gl_arena *a, struct member *m)
{
    struct gl_json j;

    if (m->raw.n > 0 && gl_json_parse(&j, m->raw, GL_FLOW_BYTES_MAX, a, NULL) == 0 &&
        gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        take_members(a, m, &j);
    }
    m->raw = (gl_str){0};
}

static void write_member(const struct member *m, struct gl_jw *w)
{
    if (m->raw.n > 0) {
        gl_jw_raw(w, m->raw);
        return;
    }
    gl_jw_object(w);
    for (const struct member *c = m->first; c != NULL; c = c->next) {
        gl_jw_key_str(w, c->key);
        write_member(c, w);
    }
    gl_jw_end(w);
}

static gl_str as_json(struct gl_arena *a, gl_str text, bool is_text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_str trimmed = gl_str_trim(text);
    struct gl_json j;
    struct gl_jw w;

    if (!is_text && gl_json_parse(&j, trimmed, GL_INPUTS_BYTES_MAX, a, NULL) == 0) {
        return trimmed;
    }
    gl_jw_init(&w, &out);
    gl_jw_str(&w, text);
    return gl_str_dup(a, gl_buf_view(&out));
}

/* NULL: no input has that name; the node reports it. */
static const struct gl_flow_input *input_of(const struct gl_flow *flow, gl_str name)
{
    const struct gl_flow_input *all = flow->inputs.items;

    for (size_t i = 0; i < flow->inputs.n; i++) {
        if (gl_str_eq(all[i].name, name)) {
            return &all[i];
        }
    }
    return NULL;
}

/* --set names a member of an input that was not given so far: start from its default. */
static void begin_with_default(struct member *m, const struct gl_flow_input *in)
{
    if (in != NULL && m->raw.n == 0 && m->first == NULL) {
        m->raw = in->fallback;
    }
}

static int set(struct gl_cli *cli, const struct gl_flow *flow, struct member *root,
               const char *text)
{
    gl_str value, path = gl_str_cut(gl_str_of(text), '=', &value), rest = path;
    const struct gl_flow_input *in = input_of(flow, path); /* NULL if dots name a member */
    struct member *m = root;
    unsigned depth = 0;

    if (strchr(text, '=') == NULL) {
        return gl_cli_usage(cli, "--set takes KEY=VALUE, not '%s'", text);
    }
    if (!gl_str_is_utf8(gl_str_of(text), NULL)) {
        return gl_cli_usage(cli, "--set %.*s: the value is not UTF-8", GL_STR_ARG(path));
    }
    do {
        gl_str key = gl_str_cut(rest, '.', &rest);

        if (key.n == 0 || path.p[path.n - 1] == '.' || ++depth > GL_VALUE_DEPTH_MAX) {
            return gl_cli_usage(cli, "--set %.*s: not a valid key", GL_STR_ARG(path));
        }
        open_up(&cli->arena, m);
        m = add(&cli->arena, m, key);
        if (depth == 1 && rest.n > 0) {
            begin_with_default(m, input_of(flow, key));
        }
    } while (rest.n > 0);
    m->first = NULL;
    m->raw = as_json(&cli->arena, value, in != NULL && in->type == GL_INPUT_STRING);
    return 0;
}

static int read_file(struct gl_cli *cli, const char *path, struct member *root)
{
    struct gl_buf text = {0};
    struct gl_why why;
    struct gl_json j;
    gl_str copy;
    bool is_stdin = strcmp(path, "-") == 0;
    int err = gl_fs_read(is_stdin ? "/dev/stdin" : path, GL_INPUTS_BYTES_MAX, &text, &why);

    if (err != 0) {
        (void)gl_cli_fail_why(cli, err, &why);
        return GL_EXIT_USAGE;
    }
    copy = gl_str_dup(&cli->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    err = gl_str_ends(gl_str_of(path), GL_S(".json"))
              ? gl_json_parse(&j, copy, GL_INPUTS_BYTES_MAX, &cli->arena, &why)
              : gl_yaml_parse(&j, copy, GL_INPUTS_BYTES_MAX, &cli->arena, &why);
    if (err == 0 && !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        err = gl_why(&why, GL_E_INVALID, "an object of inputs is needed, not %s",
                     gl_json_type_name(gl_json_root(&j)));
    }
    if (err != 0) {
        (void)gl_why_prefix(&why, "%s", path);
        return gl_cli_fail_why(cli, err, &why);
    }
    take_members(&cli->arena, root, &j);
    return 0;
}

int gl_job_inputs_read(struct gl_cli *cli, const struct gl_flow *flow, struct gl_buf *out)
{
    const char *file = gl_cli_option(cli, "--input-file");
    const struct gl_cli_value *sets = gl_cli_option_list(cli, "--set");
    struct member root = {0};
    struct gl_jw w;
    int code = 0;

    if (flow->bundle != NULL && file != NULL) {
        return gl_cli_usage(cli, "--input-file is for flows only; configure a bundle in "
                                 "config/overwrite.json or with --set");
    }
    if (flow->bundle != NULL || (file == NULL && sets == NULL)) {
        return 0;
    }
    if (file != NULL) {
        code = read_file(cli, file, &root);
    }
    for (const struct gl_cli_value *v = sets; v != NULL && code == 0; v = v->next) {
        code = set(cli, flow, &root, v->text);
    }
    if (code == 0) {
        gl_jw_init(&w, out);
        write_member(&root, &w);
    }
    return code;
}

int gl_job_inputs_check(struct gl_cli *cli, const struct gl_flow *flow)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf given = {0};
    struct gl_why why;
    gl_str filled;
    int err, code = gl_job_inputs_read(cli, flow, &given);

    if (code != 0 || given.n == 0) {
        return code;
    }
    err = gl_flow_inputs(flow, gl_buf_view(&given), &cli->arena, &filled, &why);
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
        gl_job_inputs_report_missing(cli, why.text);
    }
    return code;
}

void gl_job_inputs_report_missing(struct gl_cli *cli, const char *text)
{
    static const char *const front = "input `", *const back = "`: " GL_FLOW_INPUT_MISSING;
    GL_CLEANUP(gl_buf_done) struct gl_buf hint = {0};

    for (const char *at = strstr(text, front); at != NULL; at = strstr(at, front)) {
        const char *end;

        at += strlen(front);
        end = strchr(at, '`');
        if (end != NULL && strncmp(end, back, strlen(back)) == 0) {
            gl_buf_fmt(&hint, " --set %.*s=...", (int)(end - at), at);
        }
    }
    if (hint.n > 0) {
        gl_cli_note(cli, "set it with%.*s", GL_STR_ARG(gl_buf_view(&hint)));
    }
}
