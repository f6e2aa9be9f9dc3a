/* chain.c - calls to ports, counted from the moment they leave until they are answered.
 *
 * Every answer comes through take_answer(), so counting, reading the clock and ending chains
 * happens in one place. */
#include "node/chain.h"

#include "base/check.h"
#include "node/node_state.h"

/* ---- calls ---- */

static void begin(struct gl_chain_call *c, struct gl_node *n)
{
    GL_ASSERT(!c->is_under_way);
    c->node = n;
    c->is_under_way = true;
    n->outstanding++;
    GL_ASSERT(n->outstanding > 0);
}

/* An answer has arrived. False: it ended the chain. */
static bool take_answer(struct gl_chain_call *c, void *owner, int status, const char *why)
{
    const struct gl_chain_kind *kind = c->kind;
    struct gl_node *n = c->node;

    GL_ASSERT(c->is_under_way);
    GL_ASSERT(n->outstanding > 0);
    c->is_under_way = false;
    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    if (kind == NULL || kind->failed == NULL) {
        return true;
    }
    if (kind->ends_at_stop) {
        status = n->stopping ? GL_E_UNAVAILABLE : 0;
        why = "this node is stopping";
    }
    if (status != 0) {
        kind->failed(owner, status, why);
    }
    return status == 0;
}

static void on_store(struct gl_store_req *req)
{
    struct gl_chain_call *c = GL_CONTAINER(req, struct gl_chain_call, req.store);
    struct gl_node *unchained = c->kind == NULL ? c->node : NULL;

    if (take_answer(c, req->owner, req->status, req->why.text)) {
        c->next.store(req);
    }
    if (unchained != NULL) {
        gl_node_rearm(unchained);
    }
}

static void on_blob(struct gl_blob_req *req)
{
    struct gl_chain_call *c = GL_CONTAINER(req, struct gl_chain_call, req.blob);

    if (take_answer(c, req->owner, req->status, req->why.text)) {
        c->next.blob(req);
    }
}

static void on_exec(struct gl_exec_req *req)
{
    struct gl_chain_call *c = GL_CONTAINER(req, struct gl_chain_call, req.exec);
    struct gl_node *unchained = c->kind == NULL ? c->node : NULL;

    if (take_answer(c, req->owner, req->status, req->why.text)) {
        c->next.exec(req);
    }
    if (unchained != NULL) {
        gl_node_rearm(unchained);
    }
}

struct gl_store_req *gl_chain_call_store(struct gl_chain_call *c, struct gl_node *n,
                                         gl_store_done *next, void *owner)
{
    begin(c, n);
    c->next.store = next;
    c->req.store = (struct gl_store_req){.done = on_store, .owner = owner};
    return &c->req.store;
}

static struct gl_blob_req *call_blob(struct gl_chain *c, gl_blob_done *next)
{
    begin(&c->call, c->node);
    c->call.next.blob = next;
    c->call.req.blob = (struct gl_blob_req){.done = on_blob, .owner = c};
    return &c->call.req.blob;
}

struct gl_exec_req *gl_chain_call_exec(struct gl_chain_call *c, struct gl_node *n,
                                       gl_exec_done *next, void *owner)
{
    begin(c, n);
    c->next.exec = next;
    c->req.exec = (struct gl_exec_req){.done = on_exec, .owner = owner};
    return &c->req.exec;
}

static struct gl_chain *chain_of(struct gl_work_task *t)
{
    return GL_CONTAINER(t, struct gl_chain, call.req.work.task);
}

static void run_work(struct gl_work_task *t)
{
    struct gl_chain *c = chain_of(t);

    c->call.req.work.run(c);
}

static void on_worked(struct gl_work_task *t)
{
    struct gl_chain *c = chain_of(t);

    if (take_answer(&c->call, c, 0, "")) {
        c->call.next.work(c);
    }
}

void gl_chain_work(struct gl_chain *c, struct gl_work *w, void (*run)(void *chain),
                   void (*next)(void *chain))
{
    begin(&c->call, c->node);
    c->call.next.work = next;
    c->call.req.work =
        (struct gl_chain_work){.task = {.run = run_work, .done = on_worked}, .run = run};
    gl_work_post(w, &c->call.req.work.task);
}

/* ---- chains ---- */

void *gl_chain_new(struct gl_node *n, const struct gl_chain_kind *kind, gl_str context)
{
    struct gl_chain *c;

    GL_ASSERT(kind->bytes >= sizeof(*c));
    c = gl_mem_alloc(kind->bytes);
    c->node = n;
    c->call.kind = kind;
    c->context = gl_str_dup(&c->arena, context);
    gl_list_push(&n->chains, &c->link);
    GL_ASSERT(!c->call.is_under_way);
    return c;
}

static void chain_free(struct gl_chain *c)
{
    GL_ASSERT(gl_list_empty(&c->link) == false);
    gl_list_remove(&c->link);
    if (c->call.kind->done != NULL) {
        c->call.kind->done(c);
    }
    gl_arena_done(&c->arena);
    gl_mem_free(c);
}

void gl_chain_drop(struct gl_chain *c)
{
    GL_ASSERT(!c->call.is_under_way);
    GL_ASSERT(!gl_list_empty(&c->link));
    chain_free(c);
}

void gl_chain_end(struct gl_chain *c)
{
    struct gl_node *n = c->node;

    gl_chain_drop(c);
    gl_node_rearm(n);
}

void gl_chain_free_all(struct gl_node *n)
{
    for (struct gl_link *l; (l = gl_list_first(&n->chains)) != NULL;) {
        chain_free(GL_CONTAINER(l, struct gl_chain, link));
    }
    GL_ASSERT(gl_list_empty(&n->chains));
}

void *gl_chain_next(struct gl_node *n, const struct gl_chain_kind *kind,
                    const struct gl_chain *after)
{
    struct gl_link *l = after != NULL ? after->link.next : n->chains.next;

    GL_ASSERT(after == NULL || after->call.kind == kind);
    for (; l != &n->chains; l = l->next) {
        struct gl_chain *c = GL_CONTAINER(l, struct gl_chain, link);

        if (c->call.kind == kind) {
            return c;
        }
    }
    return NULL;
}

/* ---- calls of the store ---- */

struct gl_store_req *gl_chain_store(struct gl_chain *c, gl_store_done *next)
{
    return gl_chain_call_store(&c->call, c->node, next, c);
}

void gl_chain_get_all(struct gl_chain *c, const struct gl_key *keys, size_t n, gl_store_done *next)
{
    struct gl_store *s = c->node->ports.store;

    GL_ASSERT(n > 0);
    s->ops->get(s, gl_chain_store(c, next), c->context, keys, n);
}

void gl_chain_get(struct gl_chain *c, gl_str kind, gl_str id, gl_store_done *next)
{
    GL_ASSERT(kind.n > 0);
    GL_ASSERT(id.n > 0);
    c->given.key = (struct gl_key){.kind = kind, .id = id};
    gl_chain_get_all(c, &c->given.key, 1, next);
}

void gl_chain_list(struct gl_chain *c, struct gl_listing what, gl_store_done *next)
{
    struct gl_store *s = c->node->ports.store;

    GL_ASSERT(what.kind.n > 0);
    GL_ASSERT(what.limit > 0);
    c->given.listing = what;
    s->ops->list(s, gl_chain_store(c, next), c->context, &c->given.listing);
}

void gl_chain_range(struct gl_chain *c, struct gl_range what, gl_store_done *next)
{
    struct gl_store *s = c->node->ports.store;

    GL_ASSERT(what.index.n > 0);
    GL_ASSERT(what.limit > 0);
    c->given.range = what;
    s->ops->range(s, gl_chain_store(c, next), c->context, &c->given.range);
}

void gl_chain_commit(struct gl_chain *c, const struct gl_guard *guard, const struct gl_write *write,
                     gl_store_done *next)
{
    struct gl_store *s = c->node->ports.store;

    GL_ASSERT(c->node->session.n > 0);
    c->given.tx = (struct gl_tx){.context = c->context,
                                 .session = c->node->session,
                                 .guards = guard,
                                 .guards_n = 1,
                                 .writes = write,
                                 .writes_n = 1};
    s->ops->commit(s, gl_chain_store(c, next), &c->given.tx);
}

/* ---- calls of the executor, and of the folder's blobs ---- */

struct gl_exec_req *gl_chain_exec(struct gl_chain *c, gl_exec_done *next)
{
    return gl_chain_call_exec(&c->call, c->node, next, c);
}

void gl_chain_look(struct gl_chain *c, gl_str hash, bool check, gl_blob_done *next)
{
    struct gl_blob *b = c->node->ports.blob;

    GL_ASSERT(hash.n > 0);
    GL_ASSERT(c->node->ports.blob->look != NULL);
    b->look(b, call_blob(c, next), c->context, hash, check);
}

void gl_chain_read(struct gl_chain *c, gl_str hash, uint64_t at, void *buffer, size_t bytes,
                   gl_blob_done *next)
{
    struct gl_blob *b = c->node->ports.blob;

    GL_ASSERT(hash.n > 0);
    GL_ASSERT(bytes > 0);
    b->read(b, call_blob(c, next), c->context, hash, at, buffer, bytes);
}

void gl_chain_write(struct gl_chain *c, gl_str hash, uint64_t at, gl_str piece, gl_blob_done *next)
{
    struct gl_blob *b = c->node->ports.blob;

    GL_ASSERT(hash.n > 0);
    GL_ASSERT(c->node->ports.blob->write != NULL);
    b->write(b, call_blob(c, next), c->context, hash, at, piece);
}

void gl_chain_seal(struct gl_chain *c, gl_str hash, gl_blob_done *next)
{
    struct gl_blob *b = c->node->ports.blob;

    GL_ASSERT(hash.n > 0);
    GL_ASSERT(c->node->ports.blob->seal != NULL);
    b->seal(b, call_blob(c, next), c->context, hash);
}
