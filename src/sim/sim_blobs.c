#include "sim/sim_blobs.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/sha256.h"

struct sim_blobs_file {
    char hex[GL_SHA256_HEX];
    gl_str key;
    struct gl_buf content;
    gl_ms used_at;
};

struct sim_blob_op {
    struct gl_link link;
    struct sim_blobs *blobs;
    struct gl_blob_req *req;
    struct sim_call call;
    void (*run)(struct sim_blob_op *op);
    gl_str hex;
    uint64_t at;
    void *buffer;
    size_t n;
    gl_str piece;
    bool check;
};

/* ---- files ---- */

static struct sim_blobs_file *file_get(struct gl_map *m, gl_str hex)
{
    struct sim_blobs_file *f = gl_map_find(m, hex);
    if (f == NULL) {
        GL_ASSERT(hex.n == GL_SHA256_HEX - 1);
        f = gl_mem_alloc(sizeof(*f));
        memcpy(f->hex, hex.p, hex.n);
        f->key = gl_str_of(f->hex);
        gl_map_add(m, f->key, f);
    }
    return f;
}

static void file_free(struct gl_map *m, struct sim_blobs_file *f)
{
    (void)gl_map_remove(m, f->key); /* it is there */
    gl_buf_done(&f->content);
    gl_mem_free(f);
}

static bool is_true(const struct sim_blobs_file *f)
{
    char hex[GL_SHA256_HEX];
    return gl_str_eq(gl_sha256_hex(gl_buf_view(&f->content), hex), f->key);
}

static int blob_put(struct gl_blob *port, gl_str context, gl_str hex, gl_str content,
                    struct gl_why *reterr_why)
{
    struct sim_blobs *b = GL_CONTAINER(port, struct sim_blobs, port);
    struct sim_blobs_file *f = file_get(&b->folder->files, hex);
    (void)context;
    (void)reterr_why;
    gl_buf_reset(&f->content);
    gl_buf_str(&f->content, content);
    f->used_at = b->world->now;
    return 0;
}

static bool blob_has(struct gl_blob *port, gl_str context, gl_str hex)
{
    struct sim_blobs *b = GL_CONTAINER(port, struct sim_blobs, port);
    struct sim_blobs_file *f = gl_map_find(&b->folder->files, hex);
    (void)context;
    if (f != NULL) {
        f->used_at = b->world->now;
    }
    return f != NULL;
}

bool sim_blobs_find(const struct sim_blobs *b, gl_str hex, gl_str *ret_content)
{
    const struct sim_blobs_file *f = gl_map_find(&b->folder->files, hex);
    if (f != NULL) {
        *ret_content = gl_buf_view(&f->content);
    }
    return f != NULL;
}

void sim_blobs_remove_old(struct sim_blobs *b, gl_ms before)
{
    struct sim_blobs_file *f;
    for (size_t i = 0; (f = gl_map_next(&b->files, &i)) != NULL;) {
        if (f->used_at < before) {
            file_free(&b->files, f);
        }
    }
}

void sim_blobs_remove(struct sim_blobs *b, gl_str hex)
{
    struct sim_blobs_file *f = gl_map_find(&b->folder->files, hex);
    if (f != NULL) {
        file_free(&b->files, f);
    }
}

void sim_blobs_spoil(struct sim_blobs *b, gl_str hex)
{
    gl_buf_char(&file_get(&b->files, hex)->content, '!');
}

/* ---- requests ---- */

static void fail(struct sim_blob_op *op, int code)
{
    op->req->status = gl_why(&op->req->why, code, "simulated disk: %s", gl_err_text(code));
}

static void run_look(struct sim_blob_op *op)
{
    const struct sim_blobs_file *f = gl_map_find(&op->blobs->folder->files, op->hex);
    if (!blob_has(&op->blobs->port, (gl_str){0}, op->hex)) {
        fail(op, GL_E_NOT_FOUND);
    } else if (op->check && !is_true(f)) {
        fail(op, GL_E_DAMAGED);
    } else {
        op->req->size = f->content.n;
    }
}

static void run_read(struct sim_blob_op *op)
{
    const struct sim_blobs_file *f = gl_map_find(&op->blobs->folder->files, op->hex);
    if (f == NULL) {
        fail(op, GL_E_NOT_FOUND);
        return;
    }
    size_t left = op->at < f->content.n ? f->content.n - (size_t)op->at : 0;
    op->req->n = left < op->n ? left : op->n;
    if (op->req->n > 0) {
        memcpy(op->buffer, f->content.p + op->at, op->req->n);
    }
}

static void run_write(struct sim_blob_op *op)
{
    struct sim_blobs_file *f = gl_map_find(&op->blobs->parts, op->hex);
    if (op->at > 0 && (f == NULL || f->content.n != op->at)) {
        fail(op, GL_E_NOT_FOUND);
        return;
    }
    f = file_get(&op->blobs->parts, op->hex);
    f->content.n = (size_t)op->at;
    gl_buf_str(&f->content, op->piece);
}

static void run_seal(struct sim_blob_op *op)
{
    struct sim_blobs *b = op->blobs;
    struct sim_blobs_file *f = gl_map_find(&b->parts, op->hex);
    if (f == NULL) {
        fail(op, GL_E_NOT_FOUND);
        return;
    }
    if (is_true(f)) {
        (void)blob_put(&b->port, (gl_str){0}, op->hex, gl_buf_view(&f->content), NULL);
        b->fetched_n++;
    } else {
        fail(op, GL_E_DAMAGED);
    }
    file_free(&b->parts, f);
}

static void op_free(struct sim_blob_op *op)
{
    sim_world_cancel(op->blobs->world, &op->call);
    gl_list_remove(&op->link);
    gl_mem_free(op);
}

static void on_due(struct sim_call *call)
{
    struct sim_blob_op *op = GL_CONTAINER(call, struct sim_blob_op, call);
    struct gl_blob_req *req = op->req;
    if (sim_world_fault(op->blobs->world, &op->blobs->rng, op->blobs->refuses)) {
        fail(op, GL_E_IO);
    } else {
        op->run(op);
    }
    op_free(op);
    req->done(req);
}

static struct sim_blob_op *begin(struct gl_blob *port, struct gl_blob_req *req, gl_str hex,
                                 void (*run)(struct sim_blob_op *op))
{
    struct sim_blobs *b = GL_CONTAINER(port, struct sim_blobs, port);
    struct sim_blob_op *op = gl_mem_alloc(sizeof(*op));
    bool heard = b->fuse == NULL || !sim_fuse_call(b->fuse);
    req->status = 0;
    req->size = 0;
    req->n = 0;
    op->blobs = b;
    op->req = req;
    op->run = run;
    op->hex = hex;
    b->asked_n++;
    gl_list_push(&b->ops, &op->link);
    sim_call_init(&op->call, on_due, b->gate);
    if (heard) {
        sim_world_at(b->world, &op->call,
                     b->world->now + b->slow_ms +
                         (gl_ms)gl_rng_below(&b->rng, (uint64_t)b->delay_ms + 1));
    }
    return op;
}

static void blob_look(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                      bool check)
{
    (void)context;
    begin(port, req, hex, run_look)->check = check;
}

static void blob_read(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                      uint64_t at, void *buffer, size_t n)
{
    struct sim_blob_op *op = begin(port, req, hex, run_read);
    (void)context;
    op->at = at;
    op->buffer = buffer;
    op->n = n;
}

static void blob_write(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex,
                       uint64_t at, gl_str piece)
{
    struct sim_blob_op *op = begin(port, req, hex, run_write);
    (void)context;
    op->at = at;
    op->piece = piece;
}

static void blob_seal(struct gl_blob *port, struct gl_blob_req *req, gl_str context, gl_str hex)
{
    (void)context;
    (void)begin(port, req, hex, run_seal);
}

/* ---- life cycle ---- */

static void set_up(struct sim_blobs *b, struct sim_world *w)
{
    *b = (struct sim_blobs){.port = {.put = blob_put,
                                     .has = blob_has,
                                     .look = blob_look,
                                     .read = blob_read,
                                     .write = blob_write,
                                     .seal = blob_seal},
                            .world = w,
                            .folder = b};
    gl_map_init(&b->files);
    gl_map_init(&b->parts);
    gl_list_init(&b->ops);
}

void sim_blobs_init(struct sim_blobs *b, struct sim_world *w, const char *name)
{
    set_up(b, w);
    gl_rng_fork(&w->rng, &b->rng, name);
}

void sim_blobs_open(struct sim_blobs *b, struct sim_blobs *folder, struct sim_gate *gate,
                    struct sim_fuse *fuse)
{
    set_up(b, folder->world);
    gl_rng_fork(&folder->rng, &b->rng, "a node's");
    b->folder = folder;
    b->gate = gate;
    b->fuse = fuse;
    b->delay_ms = folder->delay_ms;
    b->refuses = folder->refuses;
}

void sim_blobs_crash(struct sim_blobs *b)
{
    for (struct gl_link *l; (l = gl_list_first(&b->ops)) != NULL;) {
        op_free(GL_CONTAINER(l, struct sim_blob_op, link));
    }
}

void sim_blobs_done(struct sim_blobs *b)
{
    struct sim_blobs_file *f;
    sim_blobs_crash(b);
    for (size_t i = 0; (f = gl_map_next(&b->files, &i)) != NULL;) {
        file_free(&b->files, f);
    }
    for (size_t i = 0; (f = gl_map_next(&b->parts, &i)) != NULL;) {
        file_free(&b->parts, f);
    }
    gl_map_done(&b->files);
    gl_map_done(&b->parts);
}
