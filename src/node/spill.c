/* spill.c - a worker's large files go through the context's blobs, not through the executor's
 * protocol: a message of some MiB stands in three of them. */
#include "node/spill.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "node/node_state.h"

enum { LARGE = 64 << 10 };

struct gl_spill {
    struct gl_link link; /* in node->spills */
    struct gl_node *node;
    struct gl_blob_req req;
    struct gl_exec_file *files;
    size_t files_n, at;
    char hex[GL_SHA256_HEX];
    struct gl_arena *arena;
    gl_spill_done *done;
    void *owner;
};

static void spill_free(struct gl_spill *p)
{
    gl_list_remove(&p->link);
    gl_mem_free(p);
}

void gl_spill_free_all(struct gl_node *n)
{
    for (struct gl_link *l; (l = gl_list_first(&n->spills)) != NULL;) {
        spill_free(GL_CONTAINER(l, struct gl_spill, link));
    }
}

static void finish(struct gl_spill *p, int code, const char *why)
{
    struct gl_node *n = p->node;

    p->done(p->owner, code, why);
    spill_free(p);
    gl_node_rearm(n);
}

static void next(struct gl_spill *p);

static bool answered(struct gl_spill *p)
{
    p->node->outstanding--;
    if (p->req.status != 0) { /* this disk, this time */
        finish(p, GL_E_UNAVAILABLE, p->req.why.text);
        return false;
    }
    return true;
}

static void on_sealed(struct gl_blob_req *req)
{
    struct gl_spill *p = req->owner;
    struct gl_exec_file *f = &p->files[p->at];

    if (!answered(p)) {
        return;
    }
    f->blob = gl_str_dup(p->arena, gl_str_of(p->hex));
    f->text = (gl_str){0};
    p->at++;
    next(p);
}

static void on_written(struct gl_blob_req *req)
{
    struct gl_spill *p = req->owner;
    struct gl_blob *b = p->node->ports.blob;

    if (!answered(p)) {
        return;
    }
    p->req = (struct gl_blob_req){.done = on_sealed, .owner = p};
    p->node->outstanding++;
    b->seal(b, &p->req, p->node->config.context, gl_str_of(p->hex));
}

static void next(struct gl_spill *p)
{
    struct gl_blob *b = p->node->ports.blob;

    while (p->at < p->files_n && p->files[p->at].text.n <= LARGE) {
        p->at++;
    }
    if (p->at == p->files_n) {
        finish(p, 0, "");
        return;
    }
    (void)gl_sha256_hex(p->files[p->at].text, p->hex);
    p->req = (struct gl_blob_req){.done = on_written, .owner = p};
    p->node->outstanding++;
    b->write(b, &p->req, p->node->config.context, gl_str_of(p->hex), 0, p->files[p->at].text);
}

size_t gl_spill_sort(struct gl_exec_start *x, struct gl_arena *arena)
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
    return blobs_n;
}

bool gl_spill_files(struct gl_node *n, struct gl_exec_file *files, size_t files_n,
                    struct gl_arena *arena, gl_spill_done *done, void *owner)
{
    struct gl_spill *p;
    bool any = false;

    for (size_t i = 0; i < files_n; i++) {
        any |= files[i].text.n > LARGE;
    }
    if (!any || n->ports.blob == NULL || n->ports.blob->write == NULL) {
        return true;
    }
    p = gl_mem_alloc(sizeof(*p));
    p->node = n;
    p->files = files;
    p->files_n = files_n;
    p->arena = arena;
    p->done = done;
    p->owner = owner;
    gl_list_push(&n->spills, &p->link);
    next(p);
    return false;
}
