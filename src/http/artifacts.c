/* artifacts.c - what the workers of a job have left in the folder of its run, and blobs: files,
 * which the node itself never reads. */
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "http/call.h"
#include "http/routes.h"
#include "os/runfs.h"

enum { STATE_BYTES_MAX = 1 << 30, PIECE_BYTES = 64 << 10 };
#define HASHED_BYTES_MAX ((uint64_t)4 << 30)

/* The run id from the answer to STATUS, which is taken out of c->out. */
static bool read_run(struct gl_call *c, gl_str *ret)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));
    struct gl_json j;

    gl_buf_reset(&c->out);
    if (gl_json_parse(&j, text, STATE_BYTES_MAX, &c->arena, NULL) != 0) {
        gl_reply_error(c, GL_E_DAMAGED, "the state of this job cannot be read", NULL);
        return false;
    }
    *ret = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "run_id"), &c->arena);
    return true;
}

/* ---- the list ---- */

static void write_file(struct gl_jw *w, const struct gl_runfs_file *f)
{
    char when[GL_WHEN_BYTES];

    gl_jw_object(w);
    gl_jw_key(w, "path");
    gl_jw_str(w, f->path);
    gl_jw_key(w, "bytes");
    gl_jw_u64(w, f->bytes);
    gl_jw_key(w, "sha256");
    if (f->hex[0] != '\0') {
        gl_jw_c(w, f->hex);
    } else {
        gl_jw_null(w);
    }
    gl_jw_key(w, "content_type");
    gl_jw_c(w, gl_runfs_type(f->path));
    gl_jw_key(w, "modified_at");
    gl_jw_str(w, gl_when_format(f->modified_at, when));
    gl_jw_end(w);
}

static void list_files(struct gl_call *c)
{
    struct gl_runfs_list files;
    struct gl_jw w;

    c->rq.code = gl_runfs_list(c->config->runs_root, c->rq.run_id, HASHED_BYTES_MAX, &c->arena,
                               &files, &c->rq.why);
    if (c->rq.code != 0) {
        return;
    }
    gl_jw_init(&w, &c->out);
    gl_jw_object(&w);
    gl_jw_key(&w, "job_id");
    gl_jw_c(&w, c->rq.job_id);
    gl_jw_key(&w, "run_id");
    gl_jw_str(&w, c->rq.run_id);
    gl_jw_key(&w, "folder");
    gl_jw_str(&w, gl_str_fmt(&c->arena, "%s/%.*s", c->config->runs_root, GL_STR_ARG(c->rq.run_id)));
    gl_jw_key(&w, "artifacts");
    gl_jw_array(&w);
    for (size_t i = 0; i < files.n; i++) {
        write_file(&w, &files.files[i]);
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "truncated");
    gl_jw_bool(&w, files.is_cut);
    gl_jw_end(&w);
    gl_buf_char(&c->out, '\n');
}

static void tell_list(struct gl_call *c)
{
    c->status = MHD_HTTP_OK;
    c->type = "application/json";
}

/* ---- one of them ---- */

/* A browser must not take it for a page of ours. */
static const char *safe_type(gl_str path)
{
    const char *type = gl_runfs_type(path);

    return strstr(type, "html") != NULL || strstr(type, "xml") != NULL ||
                   strstr(type, "javascript") != NULL
               ? "application/octet-stream"
               : type;
}

/* Takes the descriptor. */
static void send_file(struct gl_call *c, int fd, uint64_t bytes, const char *type)
{
    c->stream = MHD_create_response_from_fd64(bytes, fd);
    if (c->stream == NULL) {
        (void)close(fd); /* nothing was written */
        gl_reply_error(c, GL_E_UNAVAILABLE, "there is no memory for this file", NULL);
        return;
    }
    c->status = MHD_HTTP_OK;
    c->type = type;
}

static void tell_file(struct gl_call *c, gl_str run)
{
    gl_str path = gl_call_argument(c, "path");
    struct gl_why why = {0};
    uint64_t bytes;
    int fd, err = gl_runfs_open(c->config->runs_root, run, path, &fd, &bytes, &why);

    if (err != 0) {
        gl_reply_error_at(c, err, why.text, NULL, "path", NULL);
    } else {
        send_file(c, fd, bytes, safe_type(path));
    }
}

static void on_state(struct gl_call *c)
{
    gl_str run;

    if (!read_run(c, &run)) {
        return;
    }
    if (gl_call_argument(c, "path").n > 0) {
        tell_file(c, run);
    } else {
        c->rq.run_id = run;
        gl_http_work(c, list_files, tell_list);
    }
}

void gl_artifacts_route(struct gl_call *c)
{
    if (c->config->runs_root == NULL) {
        gl_reply_error(c, GL_E_STATE, "this node has no folder for runs", NULL);
        return;
    }
    c->then = on_state;
    gl_call_ask(c);
}

/* ---- blobs ---- */

void gl_artifacts_blob_route(struct gl_call *c)
{
    struct gl_why why = {0};
    uint64_t bytes;
    int fd, err;

    if (c->config->blob->open == NULL) {
        gl_reply_error(c, GL_E_STATE, "this node gives no blobs away", NULL);
        return;
    }
    err = c->config->blob->open(c->config->blob, c->rq.context, c->sha256, &fd, &bytes, &why);
    if (err != 0) {
        gl_reply_error(c, err, why.text, NULL);
    } else {
        send_file(c, fd, bytes, "application/octet-stream");
    }
}
