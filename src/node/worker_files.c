/* worker_files.c - stores a worker's large files as blobs of the context.
 *
 * The executor's protocol carries files as text. A message of several MiB is contained in three of
 * a worker's files, so large ones are passed by hash. */
#include "node/worker_files.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "node/node_state.h"

enum { LARGE = 64 << 10 };

struct gl_worker_files {
    struct gl_chain chain;
    struct gl_exec_file *files;
    size_t files_n, at;
    char hex[GL_SHA256_HEX];
    struct gl_arena *arena; /* the caller's */
    gl_worker_files_done *done;
    void *owner;
};

static void finish(struct gl_worker_files *p, int code, const char *why)
{
    GL_ASSERT(code != 0 || p->at == p->files_n);
    p->done(p->owner, code, why);
    gl_chain_end(&p->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    (void)code; /* a local disk error: may succeed later */
    finish(chain, GL_E_UNAVAILABLE, why);
}

static const struct gl_chain_kind kind = {.bytes = sizeof(struct gl_worker_files),
                                          .failed = on_failed};

static void next(struct gl_worker_files *p);

static void on_sealed(struct gl_blob_req *req)
{
    struct gl_worker_files *p = req->owner;
    struct gl_exec_file *f = &p->files[p->at];

    GL_ASSERT(p->at < p->files_n);
    f->blob = gl_str_dup(p->arena, gl_str_of(p->hex));
    f->text = (gl_str){0};
    p->at++;
    next(p);
}

static void on_written(struct gl_blob_req *req)
{
    struct gl_worker_files *p = req->owner;

    GL_ASSERT(p->at < p->files_n);
    gl_chain_seal(&p->chain, gl_str_of(p->hex), on_sealed);
}

static void next(struct gl_worker_files *p)
{
    GL_ASSERT(p->at <= p->files_n);
    while (p->at < p->files_n && p->files[p->at].text.n <= LARGE) {
        p->at++;
    }
    if (p->at == p->files_n) {
        finish(p, 0, "");
        return;
    }
    (void)gl_sha256_hex(p->files[p->at].text, p->hex);
    gl_chain_write(&p->chain, gl_str_of(p->hex), 0, p->files[p->at].text, on_written);
    GL_ASSERT(p->at < p->files_n);
}

size_t gl_worker_files_sort(struct gl_exec_start *x, struct gl_arena *arena)
{
    struct gl_exec_file *to = GL_NEW_ARRAY(arena, struct gl_exec_file, x->files_n);
    size_t n = 0, blobs_n;

    for (size_t i = 0; i < x->files_n; i++) {
        if (x->files[i].blob.n > 0) {
            to[n++] = x->files[i];
        }
    }
    blobs_n = n;
    for (size_t i = 0; i < x->files_n; i++) {
        if (x->files[i].blob.n == 0) {
            to[n++] = x->files[i];
        }
    }
    x->files = to;
    GL_ASSERT(n == x->files_n);
    GL_ASSERT(blobs_n <= n);
    return blobs_n;
}

bool gl_worker_files_store(struct gl_node *n, struct gl_exec_file *files, size_t files_n,
                           struct gl_arena *arena, gl_worker_files_done *done, void *owner)
{
    struct gl_worker_files *p;
    bool any = false;

    for (size_t i = 0; i < files_n; i++) {
        any |= files[i].text.n > LARGE;
    }
    if (!any || n->ports.blob == NULL || n->ports.blob->write == NULL) {
        return true;
    }
    p = gl_chain_new(n, &kind, n->config.context);
    p->files = files;
    p->files_n = files_n;
    p->arena = arena;
    p->done = done;
    p->owner = owner;
    next(p);
    return false;
}
