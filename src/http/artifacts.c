/* artifacts.c - files that the workers of a job left in its run folder, and blobs. The node itself
 * never reads them. */
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "http/http_call.h"
#include "http/routes.h"
#include "os/run_files.h"
#include "os/run_owner.h"

enum { STATE_BYTES_MAX = 1 << 30, PIECE_BYTES = 64 << 10 };
#define HASHED_BYTES_MAX ((uint64_t)4 << 30)

/* The run id from the reply to STATUS, which is taken out of c->out. */
static bool read_run(struct gl_http_call *c, gl_str *ret)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));
    struct gl_json j;

    gl_buf_reset(&c->out);
    if (gl_json_parse(&j, text, STATE_BYTES_MAX, &c->arena, NULL) != 0) {
        gl_reply_error(c, GL_R_JOB_DAMAGED, "the state of this job cannot be read", NULL);
        return false;
    }
    *ret = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "run_id"), &c->arena);
    return true;
}

/* ---- the list ---- */

static void list_files(struct gl_http_call *c)
{
    struct gl_run_files_list files = {0};

    /* Files of an earlier job with the same run id are not listed. */
    c->rq.code = gl_run_owner_is_job(c->config->runs_root, c->run, gl_str_of(c->rq.job_id))
                     ? gl_run_files_list(c->config->runs_root, c->run, HASHED_BYTES_MAX, &c->arena,
                                         &files, &c->rq.why)
                     : 0;
    if (c->rq.code != 0) {
        return;
    }
    gl_run_files_write(&files, c->config->runs_root, gl_str_of(c->rq.job_id), c->run, &c->out);
    gl_buf_char(&c->out, '\n');
}

static void reply_list(struct gl_http_call *c)
{
    c->status = MHD_HTTP_OK;
    c->type = "application/json";
}

/* ---- one file ---- */

/* A browser must not render it as a page of this node. */
static const char *safe_type(gl_str path)
{
    const char *type = gl_run_files_type(path);

    return strstr(type, "html") != NULL || strstr(type, "xml") != NULL ||
                   strstr(type, "javascript") != NULL
               ? "application/octet-stream"
               : type;
}

/* Takes ownership of the descriptor. */
static void send_file(struct gl_http_call *c, int fd, uint64_t bytes, const char *type)
{
    c->stream = MHD_create_response_from_fd64(bytes, fd);
    if (c->stream == NULL) {
        (void)close(fd); /* nothing was written */
        gl_reply_error(c, GL_R_NODE_BUSY, "out of memory for this file", NULL);
        return;
    }
    c->status = MHD_HTTP_OK;
    c->type = type;
}

static void reply_file(struct gl_http_call *c, gl_str run)
{
    gl_str path = c->path;
    struct gl_why why = {0};
    uint64_t bytes;
    int fd, err = gl_run_owner_is_job(c->config->runs_root, run, gl_str_of(c->rq.job_id))
                      ? gl_run_files_open(c->config->runs_root, run, path, &fd, &bytes, &why)
                      : gl_why(&why, GL_E_NOT_FOUND, "the job has no files yet");

    if (err != 0) {
        gl_reply_error_at(c, gl_why_whole(&why), why.text, NULL, "path", NULL);
    } else {
        send_file(c, fd, bytes, safe_type(path));
    }
}

static void on_status(struct gl_http_call *c)
{
    gl_str run;

    if (!read_run(c, &run)) {
        return;
    }
    if (c->path.n > 0) {
        reply_file(c, run);
    } else {
        c->run = run;
        gl_http_run_worker(c, list_files, reply_list);
    }
}

void gl_route_artifacts(struct gl_http_call *c)
{
    if (c->config->runs_root == NULL) {
        gl_reply_error(c, GL_R_NO_RUNS_FOLDER, "this node has no folder for runs", NULL);
        return;
    }
    c->path = c->rq.artifacts.path;
    c->rq.verb = GL_VERB_STATUS;
    c->rq.status = (struct gl_status_request){0};
    c->then = on_status;
    gl_http_call_ask_node(c);
}

/* ---- blobs ---- */

void gl_route_get_blob(struct gl_http_call *c)
{
    struct gl_why why = {0};
    uint64_t bytes;
    int fd, err;

    if (c->config->blob->open == NULL) {
        gl_reply_error(c, GL_E_STATE, "this node does not serve blobs", NULL);
        return;
    }
    err =
        c->config->blob->open(c->config->blob, c->rq.context, c->rq.blob.sha256, &fd, &bytes, &why);
    if (err != 0) {
        gl_reply_error(c, gl_why_whole(&why), why.text, NULL);
    } else {
        send_file(c, fd, bytes, "application/octet-stream");
    }
}
