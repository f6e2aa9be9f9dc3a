/* step_command.c - what a step runs, and the files in its folder. */
#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/step_read.h"

#define AT(s, name) GL_STEP_AT(s, name)

static void set_argv(struct gl_flow_reader *r, struct gl_step_reading *s, const gl_str *words,
                     size_t n)
{
    s->spec->argv =
        (struct gl_strs){.items = gl_arena_copy(r->a, words, n * sizeof(words[0])), .n = n};
}

static void add_file(struct gl_step_reading *s, struct gl_flow_file file)
{
    gl_buf_add(&s->own_files, &file, sizeof(file));
}

/* Programs with references. */

static void put_variable(struct gl_step_code *c, size_t number, gl_str ref)
{
    (void)ref;
    gl_buf_fmt(&c->out, "${GLIA_REF_%zu}", number + 1);
}

static void put_lookup(struct gl_step_code *c, size_t number, gl_str ref)
{
    struct gl_jw w;
    (void)number;
    gl_buf_c(&c->out, "(__import__(\"json\").load(open(__import__(\"os\").environ["
                      "\"GLIA_INPUT_FILE\"]))[\"refs\"][");
    gl_jw_init(&w, &c->out);
    gl_jw_str(&w, ref); /* a JSON string is also a Python string */
    gl_buf_c(&c->out, "])");
}

static struct gl_strs list_of(struct gl_flow_reader *r, const struct gl_step_code *c)
{
    return (struct gl_strs){.items = gl_arena_copy(r->a, c->refs.p, c->refs_n * sizeof(gl_str)),
                            .n = c->refs_n};
}

static void code_done(struct gl_step_code *c)
{
    gl_buf_done(&c->out);
    gl_buf_done(&c->refs);
}

void gl_step_command_sh(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str text;
    if (gl_json_is(n, GL_JSON_ARRAY)) {
        gl_flow_read_error(r, n, AT(s, "sh"), GL_REASON_TEXT_NOT_LIST,
                           "`sh` takes text; for a list of arguments use `run`");
        return;
    }
    if (!gl_flow_read_text(r, n, AT(s, "sh"), &text)) {
        return;
    }
    struct gl_step_code c = {
        .r = r, .s = s, .n = n, .at = AT(s, "sh"), .text = text, .put = put_variable};
    text = gl_str_dup(r->a, gl_code_sh(&c));
    gl_str *env = GL_NEW_ARRAY(r->a, gl_str, c.refs_n);
    for (size_t i = 0; i < c.refs_n; i++) {
        gl_str ref = ((const gl_str *)(void *)c.refs.p)[i];
        env[i] = gl_str_fmt(r->a, "GLIA_REF_%zu=${%.*s}", i + 1, GL_STR_ARG(ref));
    }
    s->code_env = (struct gl_strs){.items = env, .n = c.refs_n};
    code_done(&c);
    if (text.n <= GL_FLOW_SH_BYTES_MAX) {
        set_argv(r, s, (gl_str[]){GL_S("sh"), GL_S("-ec"), text}, 3);
        return;
    }
    /* Too long for one argument of a command (128 KiB on Linux). */
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "sh"), (gl_str){0}, text);
    if (file) {
        add_file(s, (struct gl_flow_file){.name = GL_S("step.sh"), .blob = file->blob});
        set_argv(r, s, (gl_str[]){GL_S("sh"), GL_S("-e"), GL_S("./step.sh")}, 3);
    }
}

void gl_step_command_python(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str text;
    if (!gl_flow_read_text(r, n, AT(s, "python"), &text)) {
        return;
    }
    struct gl_step_code c = {
        .r = r, .s = s, .n = n, .at = AT(s, "python"), .text = text, .put = put_lookup};
    text = gl_str_dup(r->a, gl_code_python(&c));
    s->spec->refs = list_of(r, &c);
    code_done(&c);
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "python"), (gl_str){0}, text);
    if (file) {
        add_file(s, (struct gl_flow_file){.name = GL_S("step.py"), .blob = file->blob});
        set_argv(r, s, (gl_str[]){GL_S("python3"), GL_S("step.py")}, 2);
    }
}

/* Programs in files. */

static void read_argument(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n, size_t i,
                          gl_str *ret)
{
    struct gl_flow_path at = AT(s, "run");
    at.item = (uint32_t)i + 1;
    if (gl_json_is(n, GL_JSON_NULL)) {
        gl_flow_read_error(r, n, at, GL_REASON_NULL_ARGUMENT,
                           "expected text, not null; write \"\" for an empty argument");
    } else if (gl_flow_read_scalar(r, n, at, ret) && ret->n > GL_ARG_BYTES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_LARGE, "one argument can have at most %d bytes",
                           GL_ARG_BYTES_MAX);
    } else if (i == 0 && ret->n == 0) {
        gl_flow_read_error(r, n, at, GL_REASON_EMPTY_PROGRAM, "the program's name is empty");
    } else if (gl_step_refs_text(r, s, n, at, *ret) && gl_ref_has(*ret)) {
        s->spec->expand |= GL_EXPAND_ARGV;
    }
}

void gl_step_command_run(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        gl_flow_read_error(
            r, n, AT(s, "run"), GL_REASON_LIST_NOT_TEXT,
            "`run` takes a list: the program and its arguments, like [ls, -l]; for shell "
            "text use `sh`");
        return;
    }
    if (n->count == 0 || n->count > GL_ARGS_MAX) {
        gl_flow_read_error(r, n, AT(s, "run"), GL_REASON_WRONG_TYPE,
                           "expected 1 to %d words, not %u", GL_ARGS_MAX, n->count);
        return;
    }
    gl_str *words = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t i = 0;
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e), i++) {
        read_argument(r, s, e, i, &words[i]);
    }
    for (size_t k = 0; k < i && !(s->spec->expand & GL_EXPAND_ARGV); k++) {
        words[k] = gl_ref_literal(words[k], r->a);
    }
    s->spec->argv = (struct gl_strs){.items = words, .n = i};
}

static gl_str base_name(gl_str path)
{
    for (size_t i = path.n; i > 0; i--) {
        if (path.p[i - 1] == '/') {
            return (gl_str){path.p + i, path.n - i};
        }
    }
    return path;
}

void gl_step_command_script(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    gl_str path;
    if (!gl_flow_read_text(r, n, AT(s, "script"), &path)) {
        return;
    }
    gl_str name = base_name(path);
    if (!gl_flow_check_file_name(name)) {
        gl_flow_read_error(r, n, AT(s, "script"), GL_REASON_NOT_A_PATH,
                           "expected the path of a file");
        return;
    }
    const struct gl_flow_file *file = gl_flow_read_file(r, n, AT(s, "script"), path, (gl_str){0});
    if (!file) {
        return;
    }
    add_file(s, (struct gl_flow_file){name, file->blob, file->executable});
    gl_str here = gl_str_fmt(r->a, "./%.*s", GL_STR_ARG(name));
    if (file->executable) {
        set_argv(r, s, &here, 1);
    } else if (gl_str_ends(name, GL_S(".py"))) {
        set_argv(r, s, (gl_str[]){GL_S("python3"), here}, 2);
    } else if (gl_str_ends(name, GL_S(".sh"))) {
        set_argv(r, s, (gl_str[]){GL_S("sh"), here}, 2);
    } else {
        gl_flow_read_error(
            r, n, AT(s, "script"), GL_REASON_NOT_EXECUTABLE,
            "the file is not executable and does not end in .py or .sh: make it executable "
            "(chmod +x) or name its program with `run`");
    }
}

void gl_step_command_noop(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    if (!gl_json_is(n, GL_JSON_TRUE)) {
        gl_flow_read_error(r, n, AT(s, "noop"), GL_REASON_ONLY_TRUE, "`noop` can only be true");
    }
    s->spec->driver = GL_S("noop");
}

/* Files next to the flow file. */

static gl_str without_dot(gl_str path)
{
    while (gl_str_starts(path, GL_S("./"))) {
        path.p += 2;
        path.n -= 2;
    }
    return path;
}

static void read_one_file(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                          struct gl_flow_path at, gl_str name)
{
    gl_str path;
    if (!gl_flow_read_text(r, n, at, &path)) {
        return;
    }
    path = without_dot(path);
    name = name.n ? without_dot(name) : path;
    if (!gl_flow_check_file_path(path) || !gl_flow_check_file_path(name)) {
        gl_flow_read_error(r, n, at, GL_REASON_LEADS_OUT,
                           "expected the path of a file next to the flow file, like data/a.csv, "
                           "without `..`");
        return;
    }
    const struct gl_flow_file *file = gl_flow_read_file(r, n, at, path, (gl_str){0});
    if (file) {
        add_file(s, (struct gl_flow_file){name, file->blob, file->executable});
    }
}

void gl_step_command_files(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n)
{
    bool is_map = gl_json_is(n, GL_JSON_OBJECT), is_list = gl_json_is(n, GL_JSON_ARRAY);
    struct gl_flow_path at = AT(s, "files");
    s->files = n;
    if (!is_map && !is_list) {
        gl_flow_read_error(
            r, n, at, GL_REASON_WRONG_TYPE,
            "expected a list of paths, or a map from the name in the folder to a path");
        return;
    }
    if (n->count > GL_FILES_MAX) {
        gl_flow_read_error(r, n, at, GL_REASON_TOO_MANY, "a step can have at most %d files",
                           GL_FILES_MAX);
        return;
    }
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e)) {
        at.key = is_map ? gl_json_str(r->j, e, r->a) : (gl_str){0};
        at.item = is_map ? 0 : at.item + 1;
        read_one_file(r, s, is_map ? gl_json_value(e) : e, at, at.key);
    }
}

/* Whether one is the other, or a folder that contains it. */
static bool are_in_the_way(gl_str a, gl_str b)
{
    gl_str shorter = a.n < b.n ? a : b, longer = a.n < b.n ? b : a;
    return gl_str_starts(longer, shorter) && (longer.n == shorter.n || longer.p[shorter.n] == '/');
}

void gl_step_command_finish(struct gl_flow_reader *r, struct gl_step_reading *s)
{
    size_t n = s->own_files.n / sizeof(struct gl_flow_file);
    struct gl_flow_file *files = gl_arena_copy(r->a, s->own_files.p, s->own_files.n);
    gl_buf_done(&s->own_files);
    s->spec->files = (struct gl_items){.items = files, .n = n};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (are_in_the_way(files[i].name, files[k].name)) {
                gl_flow_read_error(r, s->files ? s->files : s->node, AT(s, "files"),
                                   GL_REASON_SAME_FILE,
                                   "`%.*s` and `%.*s` cannot both be in the working folder",
                                   GL_STR_ARG(gl_flow_read_clip(files[k].name)),
                                   GL_STR_ARG(gl_flow_read_clip(files[i].name)));
                return;
            }
        }
    }
    if (n > GL_FILES_MAX) {
        gl_flow_read_error(r, s->files, AT(s, "files"), GL_REASON_TOO_MANY,
                           "a step can have at most %d files", GL_FILES_MAX);
    }
    if (s->cwd && n) {
        gl_flow_read_error(
            r, s->cwd, AT(s, "cwd"), GL_REASON_FILES_AND_CWD,
            "`%s` puts a file into a private folder, so it cannot be combined with `cwd`",
            s->files ? "files" : s->command);
    }
}
