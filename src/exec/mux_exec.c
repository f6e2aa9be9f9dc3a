#include "exec/mux_exec.h"

#include "base/check.h"
#include "base/mem.h"
#include "exec/noop_exec.h"

enum { SIDES_MAX = 4 };

/* An executor for one driver. */
struct mux_side {
    const char *driver;
    struct gl_exec *exec;
    gl_mux_knows *knows;
};

struct mux_exec {
    struct gl_exec exec;
    struct mux_side sides[SIDES_MAX];
    size_t sides_n;
    struct gl_exec *other;
    size_t closed_n; /* sides closed so far */
    void (*closed)(void *owner);
    void *closed_owner;
};

/* A list request: asks one side after another, then the keeper. */
struct listing {
    struct gl_exec_req req;
    struct mux_exec *mux;
    size_t next;               /* side to ask next; sides_n: the keeper */
    struct gl_exec_req *asked; /* the caller's request */
    struct gl_arena arena;
    struct gl_exec_info *infos;
    size_t infos_n;
};

static struct mux_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct mux_exec, exec);
}

static struct gl_exec *find_exec(struct mux_exec *x, const struct gl_attempt_key *key)
{
    for (size_t i = 0; i < x->sides_n; i++) {
        if (x->sides[i].knows(x->sides[i].exec, key)) {
            return x->sides[i].exec;
        }
    }
    return x->other;
}

static void mux_start(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_exec_start *start)
{
    struct mux_exec *x = of(port);
    struct gl_exec *to = x->other;
    for (size_t i = 0; i < x->sides_n; i++) {
        if (gl_str_is(start->driver, x->sides[i].driver)) {
            to = x->sides[i].exec;
        }
    }
    to->ops->start(to, req, start);
}

static void mux_attach(struct gl_exec *port, struct gl_exec_req *req,
                       const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct gl_exec *to = find_exec(of(port), key);
    to->ops->attach(to, req, key, token, epoch);
}

static void mux_stop(struct gl_exec *port, struct gl_exec_req *req,
                     const struct gl_attempt_key *key, uint64_t token, gl_ms grace_ms)
{
    struct gl_exec *to = find_exec(of(port), key);
    to->ops->stop(to, req, key, token, grace_ms);
}

static void mux_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct gl_exec *to = find_exec(of(port), key);
    to->ops->ack(to, key, token);
}

/* Texts are copied: one list is gone when the next arrives. */
static void append_infos(struct listing *l, const struct gl_exec_req *from)
{
    struct gl_arena *a = &l->arena;
    struct gl_exec_info *all = GL_NEW_ARRAY(a, struct gl_exec_info, l->infos_n + from->infos_n + 1);
    if (l->infos_n > 0) {
        memcpy(all, l->infos, l->infos_n * sizeof(*all));
    }
    for (size_t i = 0; i < from->infos_n; i++) {
        struct gl_exec_info info = from->infos[i];
        info.key.context = gl_str_dup(a, info.key.context);
        info.key.job = gl_str_dup(a, info.key.job);
        info.key.attempt = gl_str_dup(a, info.key.attempt);
        all[l->infos_n++] = info;
    }
    l->infos = all;
}

static void on_last_list(struct gl_exec_req *req)
{
    struct listing *l = GL_CONTAINER(req, struct listing, req);
    struct gl_exec_req *asked = l->asked;
    if (req->status == 0) {
        append_infos(l, req);
        asked->infos = l->infos;
        asked->infos_n = l->infos_n;
    }
    asked->status = req->status;
    asked->why = req->why;
    asked->done(asked);
    gl_arena_done(&l->arena);
    gl_mem_free(l);
}

static void on_side_list(struct gl_exec_req *req);

static void list_next(struct listing *l)
{
    struct mux_exec *x = l->mux;
    bool is_last = l->next == x->sides_n;
    struct gl_exec *to = is_last ? x->other : x->sides[l->next++].exec;
    l->req.done = is_last ? on_last_list : on_side_list;
    to->ops->list(to, &l->req);
}

static void on_side_list(struct gl_exec_req *req)
{
    struct listing *l = GL_CONTAINER(req, struct listing, req);
    if (req->status == 0) { /* on failure it has nothing that would outlive it */
        append_infos(l, req);
    }
    list_next(l);
}

static void mux_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct listing *l = gl_mem_alloc(sizeof(*l));
    l->mux = of(port);
    l->asked = req;
    list_next(l);
}

static void mux_session(struct gl_exec *port, gl_ms until)
{
    struct gl_exec *other = of(port)->other;
    if (other->ops->session != NULL) {
        other->ops->session(other, until);
    }
}

static void on_other_closed(void *owner)
{
    struct mux_exec *x = owner;
    void (*closed)(void *) = x->closed;
    void *closed_owner = x->closed_owner;
    gl_mem_free(x);
    closed(closed_owner);
}

/* Close in the order of lists: a side answers all its requests before it is closed, so a list in
 * progress reaches the next side in time. */
static void close_next(void *owner)
{
    struct mux_exec *x = owner;
    if (x->closed_n < x->sides_n) {
        struct gl_exec *side = x->sides[x->closed_n++].exec;
        side->ops->close(side, close_next, x);
    } else {
        x->other->ops->close(x->other, on_other_closed, x);
    }
}

static void mux_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct mux_exec *x = of(port);
    x->closed = closed;
    x->closed_owner = owner;
    close_next(x);
}

static const struct gl_exec_ops ops = {
    .name = "mux",
    .start = mux_start,
    .attach = mux_attach,
    .stop = mux_stop,
    .ack = mux_ack,
    .list = mux_list,
    .session = mux_session,
    .close = mux_close,
};

struct gl_exec *gl_mux_exec_new(struct gl_exec *noop, struct gl_exec *other)
{
    struct mux_exec *x = gl_mem_alloc(sizeof(*x));
    x->exec.ops = &ops;
    x->other = other;
    gl_mux_exec_add(&x->exec, "noop", noop, gl_noop_exec_knows);
    return &x->exec;
}

void gl_mux_exec_add(struct gl_exec *port, const char *driver, struct gl_exec *exec,
                     gl_mux_knows *knows)
{
    struct mux_exec *x = of(port);
    GL_ASSERT(port->ops == &ops);
    GL_ASSERT(x->sides_n < SIDES_MAX);
    x->sides[x->sides_n++] = (struct mux_side){driver, exec, knows};
}
