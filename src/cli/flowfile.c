#include "cli/flowfile.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/flowpath.h"
#include "model/text/yaml.h"
#include "os/fs.h"

/* ---- the files it names ---- */

static const char *beside(struct gl_flowfile *f, gl_str source)
{
    const char *slash = strrchr(f->path, '/');

    if (source.p[0] == '/' || slash == NULL) {
        return gl_str_c(&f->arena, source);
    }
    return gl_str_fmt(&f->arena, "%.*s/%.*s", (int)(slash - f->path), f->path, GL_STR_ARG(source))
        .p;
}

static int read_part(struct gl_flowfile *f, struct gl_flowfile_part *p, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    const char *path = beside(f, p->source);
    struct stat st;
    int err;

    /* Check the type before opening: opening a FIFO would wait for a writer. */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return gl_why(reterr_why, GL_R_FILE_NOT_REGULAR, "%s is not a regular file", path);
    }
    err = gl_fs_read(path, GL_BLOB_BYTES_MAX, &content, reterr_why);
    if (err != 0) {
        return err;
    }
    p->executable = (st.st_mode & S_IXUSR) != 0;
    p->content = gl_str_dup(&f->arena, gl_buf_view(&content));
    return 0;
}

static int load(struct gl_flow_loader *loader, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    struct gl_flowfile *f = GL_CONTAINER(loader, struct gl_flowfile, loader);
    struct gl_flowfile_part *p = GL_NEW(&f->arena, struct gl_flowfile_part);

    p->source = source;
    p->content = text;
    if (source.n > 0) {
        int err = read_part(f, p, reterr_why);

        if (err != 0) {
            return err;
        }
    }
    (void)gl_sha256_hex(p->content, p->hex);
    memcpy(ret_hex, p->hex, sizeof(p->hex));
    *ret_executable = p->executable;
    gl_list_push(&f->parts, &p->link);
    return 0;
}

/* ---- syntax errors ---- */

/* The JSON and YAML parsers report "line 3, column 7 (byte 41): message". */
static void take_syntax_error(struct gl_flowfile *f, const struct gl_why *why)
{
    struct gl_flow_error *e = &f->errors.items[0];
    const char *what = strstr(why->text, "): ");

    f->errors.n = f->errors.total = 1;
    *e = (struct gl_flow_error){.reason = GL_REASON_SYNTAX_INVALID};
    if (sscanf(why->text, "line %u, column %u", &e->line, &e->column) == 2 && what != NULL) {
        e->text = gl_str_dup(&f->arena, gl_str_of(what + 3));
    } else {
        e->text = gl_str_dup(&f->arena, gl_str_of(why->text));
    }
}

/* ---- bundles ---- */

static struct gl_strs sets_of(struct gl_flowfile *f)
{
    const struct gl_cli_value *first = gl_cli_option_list(f->cli, "--set");
    size_t n = 0;
    gl_str *items;

    for (const struct gl_cli_value *v = first; v != NULL; v = v->next) {
        n++;
    }
    items = GL_NEW_ARRAY(&f->arena, gl_str, n + 1);
    n = 0;
    for (const struct gl_cli_value *v = first; v != NULL; v = v->next) {
        items[n++] = gl_str_of(v->text);
    }
    return (struct gl_strs){.items = items, .n = n};
}

static void add_problems(struct gl_flowfile *f)
{
    for (size_t i = 0; i < f->bundle.problems.n; i++) {
        if (f->errors.n < GL_COUNT(f->errors.items)) {
            f->errors.items[f->errors.n++] = (struct gl_flow_error){
                .reason = f->bundle.reasons[i], .text = f->bundle.problems.items[i]};
        }
        f->errors.total++;
    }
}

static void parse_bundle(struct gl_flowfile *f)
{
    const char *slash = strrchr(f->path, '/');
    size_t n = slash == NULL ? 0 : slash == f->path ? 1 : (size_t)(slash - f->path);
    struct gl_strs sets = sets_of(f);

    f->is_bundle = true;
    (void)gl_bundle_folder_read(&f->bundle, gl_str_c(&f->arena, (gl_str){.p = f->path, .n = n}),
                                &sets, &f->arena); /* its errors are reported with all others */
    (void)gl_manifest_parse(&f->j, gl_json_root(&f->j), &f->bundle.given, &f->arena, &f->flow,
                            &f->errors);
    add_problems(f);
}

/* ---- reading ---- */

static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

static int read_text(struct gl_flowfile *f, const char *word, struct gl_why *reterr_why)
{
    bool is_json;
    struct stat st;
    int err = gl_flowpath_find(&f->arena, word, &f->path, reterr_why);

    if (err != 0) {
        return err;
    }
    is_json = gl_str_ends(gl_str_of(f->path), GL_S(".json"));
    if (is_json && stat(f->path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
        return gl_why(reterr_why, GL_R_FILE_NOT_REGULAR, "%s is not a file", f->path);
    }
    if (strcmp(f->path, word) != 0 && is_named(f->path, "manifest.json")) {
        err = gl_bundle_folder_check_link(word, f->path, reterr_why);
    }
    return err != 0 ? err
                    : gl_fs_read(gl_flowpath_open(f->path),
                                 is_json ? GL_MANIFEST_BYTES_MAX : GL_FLOW_BYTES_MAX, &f->text,
                                 reterr_why);
}

static int parse_flow(struct gl_flowfile *f, struct gl_why *reterr_why)
{
    if (f->text.n > GL_FLOW_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "%s is larger than 32 MiB", f->path);
    }
    (void)gl_flow_parse(&f->j, gl_json_root(&f->j), &f->loader, &f->arena, &f->flow, &f->errors);
    return 0;
}

static int parse(struct gl_flowfile *f, struct gl_why *reterr_why)
{
    gl_str text = gl_buf_view(&f->text);
    bool is_json = gl_str_ends(gl_str_of(f->path), GL_S(".json"));
    int err = is_json ? gl_json_parse(&f->j, text, GL_MANIFEST_BYTES_MAX, &f->arena, reterr_why)
                      : gl_yaml_parse(&f->j, text, GL_FLOW_BYTES_MAX, &f->arena, reterr_why);

    if (err != 0) {
        take_syntax_error(f, reterr_why);
        return 0;
    }
    if (is_json &&
        (is_named(f->path, "manifest.json") || gl_manifest_is(&f->j, gl_json_root(&f->j)))) {
        parse_bundle(f);
        return 0;
    }
    if (gl_manifest_is(&f->j, gl_json_root(&f->j))) {
        return gl_why(reterr_why, GL_R_MANIFEST_NOT_JSON,
                      "this is the manifest of a bundle: give its folder, or the file by a name "
                      "that ends in .json");
    }
    return parse_flow(f, reterr_why);
}

int gl_flowfile_read(struct gl_flowfile *f, struct gl_cli *cli, const char *path,
                     struct gl_why *reterr_why)
{
    int err;

    *f = (struct gl_flowfile){.loader = {.load = load}, .cli = cli, .path = path};
    gl_list_init(&f->parts);
    err = read_text(f, path, reterr_why);
    err = err == 0 ? parse(f, reterr_why) : err;
    if (err == 0 && f->errors.total > 0) {
        err = gl_why(reterr_why, f->is_bundle ? GL_R_MANIFEST_INVALID : GL_R_FLOW_INVALID,
                     "%s has %zu error%s", path, f->errors.total, f->errors.total == 1 ? "" : "s");
    }
    return err;
}

void gl_flowfile_done(struct gl_flowfile *f)
{
    gl_buf_done(&f->text);
    gl_arena_done(&f->arena);
}

/* ---- errors ---- */

static gl_str line_of(gl_str text, unsigned number)
{
    gl_str line = {0};

    for (unsigned i = 0; i < number; i++) {
        line = gl_str_cut(text, '\n', &text);
    }
    return line;
}

static void print_error(const struct gl_flowfile *f, const struct gl_flow_error *e)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_term *t = &f->cli->err;
    gl_str line;

    if (f->is_bundle && e->line == 0 && e->path.n == 0) { /* in a file that the message names */
        (void)fprintf(t->file, "%.*s\n", GL_STR_ARG(gl_term_safe(&a, e->text)));
        return;
    }
    (void)fprintf(t->file, "%s%s", gl_term_on(t, GL_BOLD), f->path);
    if (e->line > 0) {
        (void)fprintf(t->file, ":%u:%u", e->line, e->column);
    }
    (void)fprintf(t->file, "%s: %.*s%s%.*s\n", gl_term_off(t, GL_BOLD),
                  GL_STR_ARG(gl_term_safe(&a, e->path)), e->path.n > 0 ? ": " : "",
                  GL_STR_ARG(gl_term_safe(&a, e->text)));
    if (e->line == 0) {
        return;
    }
    line = gl_term_safe(&a, gl_term_clip(line_of(gl_buf_view(&f->text), e->line), 160));
    (void)fprintf(t->file, "%6u | %.*s\n", e->line, GL_STR_ARG(line));
    if (e->column > 0 && e->column <= 161) {
        (void)fprintf(t->file, "       | %*s%s^%s\n", (int)e->column - 1, "", gl_term_on(t, GL_RED),
                      gl_term_off(t, GL_RED));
    }
}

void gl_flowfile_print_errors(const struct gl_flowfile *f)
{
    for (size_t i = 0; i < f->errors.n; i++) {
        print_error(f, &f->errors.items[i]);
    }
    if (f->errors.total > f->errors.n) {
        gl_cli_note(f->cli, "%zu further errors are not shown", f->errors.total - f->errors.n);
    }
    if (f->is_bundle && !f->bundle.has_payloads) {
        gl_cli_note(f->cli, "there is no folder payloads/ next to the manifest");
    }
}

/* ---- sending ---- */

static void write_files(const struct gl_flowfile *f, struct gl_jw *w)
{
    gl_jw_put_object(w, "files");
    for (struct gl_link *l = f->parts.next; l != &f->parts; l = l->next) {
        const struct gl_flowfile_part *p = GL_CONTAINER(l, struct gl_flowfile_part, link);

        if (p->source.n > 0) {
            gl_jw_key_str(w, p->source);
            gl_jw_object(w);
            gl_jw_put_c(w, "sha256", p->hex);
            gl_jw_put_bool(w, "executable", p->executable);
            gl_jw_end(w);
        }
    }
    gl_jw_end(w);
}

static void write_errors(const struct gl_flow_errors *errors, struct gl_jw *w)
{
    gl_jw_put_array(w, "errors");
    for (size_t i = 0; i < errors->n; i++) {
        gl_jw_object(w);
        gl_jw_put_u64(w, "line", errors->items[i].line);
        gl_jw_put_u64(w, "column", errors->items[i].column);
        gl_jw_put_str(w, "path", errors->items[i].path);
        gl_jw_put_str(w, "message", errors->items[i].text);
        if (errors->items[i].reason != GL_REASON_NONE) {
            gl_jw_put_c(w, "reason", gl_reason_word(errors->items[i].reason));
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

void gl_flowfile_print_json_errors(const struct gl_flowfile *f)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_put_bool(&w, "valid", false);
    write_errors(&f->errors, &w);
    gl_jw_end(&w);
    gl_term_print(&f->cli->out, gl_buf_view(&out));
}

void gl_flowfile_write(const struct gl_flowfile *f, const struct gl_submission *s, gl_str run_id,
                       gl_str inputs, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_submission_write_key(s, &w);
    if (run_id.n > 0) {
        gl_jw_put_str(&w, "run_id", run_id);
    }
    if (inputs.n > 0) {
        gl_jw_put_raw(&w, "inputs", inputs);
    }
    if (f->is_bundle) {
        gl_jw_put_object(&w, "bundle");
        gl_bundle_folder_write(&f->bundle, &w);
        gl_jw_put_raw(&w, "manifest", f->j.text);
        gl_jw_end(&w);
    } else {
        write_files(f, &w);
        gl_jw_put_raw(&w, "flow", f->j.text);
    }
    gl_jw_end(&w);
}
