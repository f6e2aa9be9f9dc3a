#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <signal.h>

#include "base/check.h"
#include "os/fs.h"
#include "store/sqlite/sqlite_batch.h"
#include "store/sqlite/sqlite_parts.h"

static const gl_str home = GL_S("default"); /* the context whose database holds the sessions */

static struct gl_sqlite *of_port(struct gl_store *port)
{
    return GL_CONTAINER(port, struct gl_sqlite, port);
}

/* ---- requests ---- */

static struct gl_sqlite_op *new_op(struct gl_sqlite *s, struct gl_store_req *req,
                                   enum gl_sqlite_op_type type, gl_str context)
{
    GL_ASSERT(req->done != NULL);
    req->status = 0;
    req->refused = 0;
    req->records = NULL;
    req->entries = NULL;
    req->log = NULL;
    req->records_n = req->entries_n = req->log_n = 0;
    req->session = (struct gl_session_info){0};
    req->session_dead = false;
    req->sessions = NULL;
    req->writes = NULL;
    req->sessions_n = req->writes_n = 0;
    req->next = (gl_str){0};
    req->time = 0;
    req->bytes = 0;
    struct gl_sqlite_op *op = gl_pool_alloc(&s->pool, sizeof(*op));
    op->req = req;
    op->type = type;
    op->context = context;
    s->pending_n++;
    return op;
}

/* No thread is needed for its answer, which is there already. */
static void answer(struct gl_sqlite *s, struct gl_sqlite_op *op)
{
    struct gl_sqlite_batch *batch = gl_sqlite_batch_new(s);
    gl_sqlite_op_push(&batch->ops, op);
    gl_sqlite_batch_post(batch);
}

static void send(struct gl_sqlite *s, struct gl_sqlite_queue *q, struct gl_sqlite_op *op)
{
    if (!s->closing) {
        gl_sqlite_queue_push(q, op);
        return;
    }
    op->req->status = gl_why(&op->req->why, GL_E_UNAVAILABLE, "store unavailable: it is closing");
    answer(s, op);
}

void gl_sqlite_complete(struct gl_sqlite *s, struct gl_sqlite_op *op)
{
    struct gl_store_req *req = op->req;
    gl_pool_free(&s->pool, op, sizeof(*op));
    s->pending_n--;
    req->done(req); /* Last: it may start the next request, or free this one. */
}

static void session_open(struct gl_store *port, struct gl_store_req *req,
                         const struct gl_session_wish *wish)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_SESSION_OPEN, home);
    op->u.open.node = wish->node;
    op->u.open.nonce = wish->nonce;
    op->u.open.about = wish->about; /* and no deadline: the folder's lock is it */
    send(s, &s->writer.queue, op);
}

static void session_renew(struct gl_store *port, struct gl_store_req *req, gl_str session,
                          gl_ms ttl_ms, gl_str about)
{
    (void)ttl_ms;
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_SESSION_RENEW, home);
    op->u.session.session = session;
    op->u.session.about = about;
    send(s, &s->writer.queue, op);
}

static void session_end(struct gl_store *port, struct gl_store_req *req, gl_str session)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_SESSION_END, home);
    op->u.session.session = session;
    send(s, &s->writer.queue, op);
}

static void session_dead(struct gl_store *port, struct gl_store_req *req, gl_str session,
                         bool declare)
{
    (void)declare; /* Nothing is ever past its deadline. */
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_SESSION_DEAD, home);
    op->u.session.session = session;
    send(s, &s->writer.queue, op);
}

static void session_list(struct gl_store *port, struct gl_store_req *req)
{
    struct gl_sqlite *s = of_port(port);
    send(s, &s->reader.queue, new_op(s, req, GL_SQLITE_OP_SESSION_LIST, home));
}

static void commit(struct gl_store *port, struct gl_store_req *req, const struct gl_tx *tx)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_COMMIT, tx->context);
    op->u.tx = tx;
    send(s, &s->writer.queue, op);
}

static void resolve(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str session,
                    uint64_t tx_id)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_RESOLVE, context);
    op->u.resolve.session = session;
    op->u.resolve.tx_id = tx_id;
    send(s, &s->writer.queue, op); /* Behind every commit that was called before. */
}

static void get(struct gl_store *port, struct gl_store_req *req, gl_str context,
                const struct gl_key *keys, size_t keys_n)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_GET, context);
    op->u.get.keys = keys;
    op->u.get.n = keys_n;
    send(s, &s->reader.queue, op);
}

static void range(struct gl_store *port, struct gl_store_req *req, gl_str context,
                  const struct gl_range *r)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_RANGE, context);
    op->u.range = r;
    send(s, &s->reader.queue, op);
}

static void list(struct gl_store *port, struct gl_store_req *req, gl_str context,
                 const struct gl_listing *l)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_LIST, context);
    op->u.listing = l;
    send(s, &s->reader.queue, op);
}

static void log_read(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str kind,
                     gl_str id, int64_t from, size_t limit)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_LOG_READ, context);
    op->u.log.kind = kind;
    op->u.log.id = id;
    op->u.log.from = from;
    op->u.log.limit = limit;
    send(s, &s->reader.queue, op);
}

static void export(struct gl_store *port, struct gl_store_req *req, gl_str context, gl_str after,
                   size_t limit)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_EXPORT, context);
    op->u.export.after = after;
    op->u.export.limit = limit;
    send(s, &s->reader.queue, op);
}

static void tell_time(struct gl_store *port, struct gl_store_req *req)
{
    struct gl_sqlite *s = of_port(port);
    struct gl_sqlite_op *op = new_op(s, req, GL_SQLITE_OP_TIME, home);
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* Cannot fail with a clock that exists. */
    req->time = (gl_ms)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    answer(s, op);
}

/* Whoever could commit a word is the one who would hear it, and nothing is reached or lost. */
static void listen(struct gl_store *port, const struct gl_store_events *events)
{
    (void)port;
    (void)events;
}

static void measure(struct gl_store *port, struct gl_store_req *req, gl_str context)
{
    struct gl_sqlite *s = of_port(port);
    send(s, &s->reader.queue, new_op(s, req, GL_SQLITE_OP_MEASURE, context));
}

/* ---- closing ---- */

static void close_store(struct gl_store *port, void (*closed)(void *owner), void *owner)
{
    struct gl_sqlite *s = of_port(port);
    GL_ASSERT(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_owner = owner;
    gl_sqlite_queue_close(&s->writer.queue);
    gl_sqlite_queue_close(&s->reader.queue);
}

static void free_store(struct gl_sqlite *s)
{
    gl_sqlite_contexts_done(&s->writer.contexts); /* Empty, unless its thread never ran. */
    gl_sqlite_contexts_done(&s->reader.contexts);
    gl_sqlite_queue_done(&s->writer.queue);
    gl_sqlite_queue_done(&s->reader.queue);
    gl_buf_done(&s->writer.session);
    gl_buf_done(&s->writer.about);
    gl_buf_done(&s->writer.barred);
    gl_buf_done(&s->writer.text);
    gl_pool_done(&s->pool);
    gl_arena_done(&s->arena);
    gl_mem_free(s);
}

void gl_sqlite_settle(struct gl_sqlite *s)
{
    if (!s->closing || s->threads_n > 0 || s->pending_n > 0) {
        return;
    }
    void (*closed)(void *owner) = s->closed;
    void *owner = s->closed_owner;
    free_store(s);
    if (closed != NULL) {
        closed(owner);
    }
}

static void on_writer_ended(struct gl_loop_task *t)
{
    struct gl_sqlite_writer *w = GL_CONTAINER(t, struct gl_sqlite_writer, ended);
    (void)pthread_join(w->thread, NULL);
    w->store->threads_n--;
    gl_sqlite_settle(w->store);
}

static void on_reader_ended(struct gl_loop_task *t)
{
    struct gl_sqlite_reader *r = GL_CONTAINER(t, struct gl_sqlite_reader, ended);
    (void)pthread_join(r->thread, NULL);
    r->store->threads_n--;
    gl_sqlite_settle(r->store);
}

/* ---- opening ---- */

static const struct gl_store_ops ops = {
    .name = "sqlite",
    .session_open = session_open,
    .session_renew = session_renew,
    .session_end = session_end,
    .session_dead = session_dead,
    .session_list = session_list,
    .commit = commit,
    .resolve = resolve,
    .get = get,
    .range = range,
    .list = list,
    .log_read = log_read,
    .time = tell_time,
    .export = export,
    .listen = listen,
    .measure = measure,
    .close = close_store,
};

static struct gl_sqlite *new_store(const struct gl_sqlite_config *cfg, struct gl_loop *loop)
{
    struct gl_sqlite *s = gl_mem_alloc(sizeof(*s));
    s->port.ops = &ops;
    s->loop = loop;
    s->folder = gl_str_c(&s->arena, gl_str_of(cfg->folder));
    s->vfs = cfg->vfs != NULL ? gl_str_c(&s->arena, gl_str_of(cfg->vfs)) : NULL;
    s->read_only = cfg->read_only;
    s->group_max = cfg->group_max > 0 ? cfg->group_max : GL_SQLITE_GROUP_MAX;
    s->idle_ms = cfg->idle_ms > 0 ? cfg->idle_ms : GL_SQLITE_IDLE_MS;
    gl_pool_init(&s->pool);
    s->writer.store = s->reader.store = s;
    s->writer.ended.run = on_writer_ended;
    s->reader.ended.run = on_reader_ended;
    gl_sqlite_queue_init(&s->writer.queue);
    gl_sqlite_queue_init(&s->reader.queue);
    gl_sqlite_contexts_init(&s->writer.contexts, s, GL_SQLITE_ROLE_W);
    gl_sqlite_contexts_init(&s->reader.contexts, s, GL_SQLITE_ROLE_R);
    return s;
}

/* Look at what is there before anyone relies on it. The connection stays open for its thread. */
static int check(struct gl_sqlite *s, struct gl_why *reterr_why)
{
    if (!s->read_only) {
        int err = gl_fs_mkdirs(s->folder, reterr_why);
        if (err < 0) {
            return err;
        }
    }
    if (!gl_sqlite_db_exists(s, home)) {
        return 0;
    }
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_contexts_get(s->read_only ? &s->reader.contexts : &s->writer.contexts, home,
                                     &db, reterr_why);
    return err == GL_E_NOT_FOUND ? 0 : err;
}

/* Signals are for the control thread. */
static int start_thread(pthread_t *ret, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(ret, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static int start(struct gl_sqlite *s, struct gl_why *reterr_why)
{
    int err = start_thread(&s->writer.thread, gl_sqlite_writer_main, &s->writer);
    if (err == 0) {
        s->threads_n++;
        err = start_thread(&s->reader.thread, gl_sqlite_reader_main, &s->reader);
    }
    if (err != 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot start a thread for the store: %s",
                      strerror(err));
    }
    s->threads_n++;
    return 0;
}

int gl_sqlite_open(struct gl_store **ret, const struct gl_sqlite_config *cfg, struct gl_loop *loop,
                   struct gl_why *reterr_why)
{
    GL_ASSERT(cfg->folder != NULL);
    GL_ASSERT(loop != NULL);
    struct gl_sqlite *s = new_store(cfg, loop);
    int err = check(s, reterr_why);
    if (err == 0) {
        err = start(s, reterr_why);
    }
    if (err < 0) {
        close_store(&s->port, NULL, NULL);
        gl_sqlite_settle(s); /* Now, or by the end of the thread that did start. */
        return err;
    }
    *ret = &s->port;
    return 0;
}
