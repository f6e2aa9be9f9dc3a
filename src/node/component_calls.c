/* component_calls.c - makes the store and file calls of the core's components (core/component.h),
 * and returns the answers as events.
 *
 * Nothing is decided here. What other nodes publish about themselves is JSON, possibly written by
 * another release: known members become fields of the event, and what cannot be read is left out.
 */
#include "node/blobs.h"
#include "node/node_state.h"
#include "node/views.h"
#include "port/questions.h"
#include "port/tidy.h"

struct component_call { /* lives in its batch's arena */
    struct gl_chain_call call;
    struct gl_batch *batch;
    const struct gl_core_call *asked;
    struct gl_node *node;
    struct gl_tidy_req files;
    struct gl_ask_expiry expiry;
    struct gl_key key; /* RESTAMP: the key of its write, ... */
    struct gl_tx tx;   /* ... and the transaction that writes the value back */
    struct gl_write write;
};

/* ---- what other nodes publish ---- */

static uint64_t number(const struct gl_json *j, gl_jnode object, const char *key)
{
    uint64_t value;

    return gl_json_u64(j, gl_json_get(j, object, key), &value) ? value : 0;
}

/* The slots that attempts of this node's jobs use there. */
static uint64_t read_ours(const struct gl_json *j, gl_jnode taken, gl_str node, struct gl_arena *a)
{
    uint64_t ours = 0;

    if (!gl_json_is(taken, GL_JSON_ARRAY)) {
        return 0;
    }
    for (gl_jnode e = gl_json_first(j, taken); e != NULL; e = gl_json_after(j, taken, e)) {
        if (gl_str_eq(gl_json_str(j, gl_json_get(j, e, "owner"), a), node)) {
            ours += number(j, e, "slots");
        }
    }
    return ours;
}

static void read_pools(const struct gl_json *j, gl_jnode pools, gl_str node, struct gl_arena *a,
                       struct gl_event_peer *ret)
{
    struct gl_event_pool *all;

    ret->has_pools = gl_json_is(pools, GL_JSON_ARRAY);
    if (!ret->has_pools) {
        return;
    }
    all = GL_NEW_ARRAY(a, struct gl_event_pool, pools->count + 1);
    for (gl_jnode e = gl_json_first(j, pools); e != NULL; e = gl_json_after(j, pools, e)) {
        all[ret->pools.n++] =
            (struct gl_event_pool){.name = gl_json_str(j, gl_json_get(j, e, "name"), a),
                                   .slots = number(j, e, "slots"),
                                   .in_use = number(j, e, "in_use"),
                                   .waiting = number(j, e, "waiting"),
                                   .ours = read_ours(j, gl_json_get(j, e, "taken"), node, a)};
    }
    ret->pools.items = all;
}

/* A number that makes no sense counts as a long one, which is the safe side. */
static gl_ms grace_of(uint64_t ms)
{
    enum { DAY_MS = 86400000 };

    return ms < DAY_MS ? (gl_ms)ms : DAY_MS;
}

static struct gl_event_peer read_session(const struct gl_session_info *s, gl_str node,
                                         struct gl_arena *a)
{
    struct gl_event_peer ret = {.id = s->id, .left_ms = s->left_ms, .dead = s->dead};
    struct gl_labels labels;
    struct gl_json j;
    gl_jnode root;

    if (s->dead || gl_json_parse(&j, s->about, GL_ABOUT_BYTES_MAX, a, NULL) != 0) {
        return ret;
    }
    root = gl_json_root(&j);
    ret.is_told = true;
    ret.state = gl_json_str(&j, gl_json_get(&j, root, "state"), a);
    ret.stack = gl_json_str(&j, gl_json_get(&j, root, "stack"), a);
    ret.env_scope = gl_json_str(&j, gl_json_get(&j, root, "env_scope"), a);
    ret.takes = number(&j, root, "offers") > 0;
    if (gl_labels_read(&j, gl_json_get(&j, root, "labels"), a, &labels)) {
        ret.labels = gl_labels_text(&labels, a);
    }
    ret.grace_ms = grace_of(number(&j, root, "orphan_grace_ms"));
    read_pools(&j, gl_json_get(&j, root, "pools"), node, a, &ret);
    return ret;
}

static struct gl_items read_sessions(const struct gl_store_req *req, gl_str node,
                                     struct gl_arena *a)
{
    struct gl_event_peer *all = GL_NEW_ARRAY(a, struct gl_event_peer, req->sessions_n + 1);

    for (size_t i = 0; i < req->sessions_n; i++) {
        all[i] = read_session(&req->sessions[i], node, a);
    }
    return (struct gl_items){.items = all, .n = req->sessions_n};
}

static struct gl_items read_entries(const struct gl_store_req *req, struct gl_arena *a)
{
    struct gl_event_entry *all = GL_NEW_ARRAY(a, struct gl_event_entry, req->entries_n + 1);

    for (size_t i = 0; i < req->entries_n; i++) {
        all[i] = (struct gl_event_entry){.score = req->entries[i].score, .id = req->entries[i].id};
    }
    return (struct gl_items){.items = all, .n = req->entries_n};
}

static struct gl_items last_of(struct gl_items entries)
{
    const struct gl_event_entry *all = entries.items;

    return entries.n > 1
               ? (struct gl_items){.items = (void *)(uintptr_t)&all[entries.n - 1], .n = 1}
               : entries;
}

/* ---- calls ---- */

/* Copies the result of a call into the fields of its type. */
static void read_answer(const struct gl_core_call *call, const struct gl_store_req *req,
                        gl_str node, struct gl_arena *a, struct gl_event_answer *ret)
{
    bool is_good = req->status == 0;

    switch (call->type) {
    case GL_CORE_CALL_GET:
    case GL_CORE_CALL_LIST:
        if (is_good) {
            gl_views_read(call, req, a, ret);
        }
        break;
    case GL_CORE_CALL_RANGE:
        ret->entries = is_good ? read_entries(req, a) : (struct gl_items){0};
        break;
    case GL_CORE_CALL_COUNT:
        ret->entries = is_good ? last_of(read_entries(req, a)) : (struct gl_items){0};
        ret->n = is_good ? req->entries_n : 0;
        break;
    case GL_CORE_CALL_MEASURE:
        ret->bytes = is_good ? req->bytes : 0;
        break;
    case GL_CORE_CALL_TIME:
        ret->time = is_good ? req->time : 0;
        break;
    case GL_CORE_CALL_SESSIONS:
        ret->sessions = is_good ? read_sessions(req, node, a) : (struct gl_items){0};
        break;
    case GL_CORE_CALL_DECLARE:
        ret->session = call->session;
        ret->is_dead = is_good && req->session_dead;
        break;
    case GL_CORE_CALL_COMMIT:
    case GL_CORE_CALL_RESTAMP:
    case GL_CORE_CALL_RENEW:
    case GL_CORE_CALL_FILES:
    case GL_CORE_CALL_EXPIRE:
        break;
    }
}

static void on_done(struct gl_store_req *req)
{
    struct component_call *x = req->owner;
    struct gl_node *n = x->call.node;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_event ev = {.type = GL_EV_ANSWER,
                          .context = n->config.context,
                          .answer = {.by = (uint8_t)x->asked->by,
                                     .number = x->asked->number,
                                     .code = req->status,
                                     .why = gl_str_of(req->status != 0 ? req->why.text : ""),
                                     .needs_help = gl_sessions_is_store_full(req)}};

    n->config.trace->now = n->now;
    read_answer(x->asked, req, n->config.name, &a, &ev.answer);
    if (x->asked->type == GL_CORE_CALL_RENEW) {
        gl_sessions_on_renewed(n, req);
    }
    gl_node_feed(n, &ev);
    gl_sessions_report(n);
    gl_node_release(n, x->batch);
}

/* ---- a record that keeps its value ---- */

static void on_value(struct gl_store_req *req)
{
    struct component_call *x = req->owner;
    struct gl_node *n = x->call.node;
    const struct gl_record *r = req->records;
    struct gl_store *s = n->ports.store;

    if (req->status == 0 && (r->rev == 0 || r->damaged)) {
        req->status = gl_why(&req->why, r->rev == 0 ? GL_E_NOT_FOUND : GL_E_DAMAGED,
                             "the record has no value to keep");
    }
    if (req->status != 0) {
        on_done(req);
        return;
    }
    x->write = x->asked->tx->writes[0];
    x->write.value = gl_str_dup(&x->batch->arena, r->value);
    x->tx = *x->asked->tx;
    x->tx.writes = &x->write;
    s->ops->commit(s, gl_chain_call_store(&x->call, n, on_done, x), &x->tx);
}

static void restamp(struct gl_node *n, struct component_call *x)
{
    const struct gl_write *w = &x->asked->tx->writes[0];
    struct gl_store *s = n->ports.store;

    GL_ASSERT(x->asked->tx->writes_n == 1);
    x->key = (struct gl_key){.kind = w->kind, .id = w->id};
    s->ops->get(s, gl_chain_call_store(&x->call, n, on_value, x), n->config.context, &x->key, 1);
}

/* Blobs that are being deleted must not be remembered as present. */
static void forget_blobs(struct gl_node *n, const struct gl_tx *tx)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];

        if (w->type == GL_WRITE_DELETE && gl_str_is(w->kind, "blob") &&
            memchr(w->id.p, '/', w->id.n) == NULL) {
            gl_blobs_forget(n->blobs, w->id);
        }
    }
}

/* ---- files ---- */

static void on_files(struct gl_tidy_req *req)
{
    struct component_call *x = req->owner;
    struct gl_node *n = x->node;
    struct gl_event ev = {.type = GL_EV_ANSWER,
                          .context = n->config.context,
                          .answer = {.by = (uint8_t)x->asked->by,
                                     .number = x->asked->number,
                                     .code = req->status,
                                     .why = gl_str_of(req->status != 0 ? req->why.text : ""),
                                     .names = {.items = req->names, .n = req->names_n},
                                     .n = req->removed_n,
                                     .bytes = req->bytes,
                                     .young = req->young}};

    if (!n->stopping) {
        n->config.trace->now = n->now;
        gl_node_feed(n, &ev);
    }
    gl_node_release(n, x->batch);
    if (!n->stopping) {
        gl_node_rearm(n);
    }
}

/* Not counted as outstanding: a stopping node does not wait for files to be removed. */
static void begin_files(struct gl_node *n, struct component_call *x)
{
    const struct gl_core_files *f = &x->asked->files;
    struct gl_tidy_req *req = &x->files;
    struct gl_tidy *t = n->ports.tidy;
    gl_str context = n->config.context;

    *req = (struct gl_tidy_req){.done = on_files, .owner = x};
    switch (f->type) {
    case GL_FILES_MEASURE:
        t->measure(t, req, context);
        break;
    case GL_FILES_LIST_JOBS:
        t->list_jobs(t, req, context);
        break;
    case GL_FILES_LIST_WORK:
        t->list_work(t, req, context, f->age_ms, f->limit);
        break;
    case GL_FILES_REMOVE_JOBS:
        t->remove_jobs(t, req, context, f->names, f->names_n);
        break;
    case GL_FILES_REMOVE_WORK:
        t->remove_work(t, req, context, f->names, f->names_n);
        break;
    case GL_FILES_REMOVE_BLOBS:
        t->remove_blobs(t, req, context, f->names, f->names_n, f->age_ms);
        break;
    }
}

/* ---- requests to people ---- */

static void on_expired(struct gl_ask_expiry *req)
{
    struct component_call *x = req->owner;
    struct gl_node *n = x->node;
    struct gl_event ev = {.type = GL_EV_ANSWER,
                          .context = n->config.context,
                          .answer = {.by = (uint8_t)x->asked->by,
                                     .number = x->asked->number,
                                     .code = req->status,
                                     .why = gl_str_of(req->status != 0 ? req->why.text : ""),
                                     .n = req->n}};

    if (!n->stopping) {
        n->now = n->ports.clock->now(n->ports.clock);
        n->config.trace->now = n->now;
        gl_node_feed(n, &ev);
    }
    gl_node_release(n, x->batch);
    if (!n->stopping) {
        gl_node_rearm(n);
    }
}

/* Not counted as outstanding: a stopping node does not wait for a file. */
static void begin_expiry(struct gl_node *n, struct component_call *x)
{
    struct gl_ask_writer *w = n->ports.ask_writer;

    GL_ASSERT(w != NULL); /* their times are reported only if there is a writer */
    x->expiry = (struct gl_ask_expiry){
        .job = x->asked->job, .now = x->asked->at, .done = on_expired, .owner = x};
    w->expire(w, &x->expiry);
}

/* ---- each call ---- */

static void begin_on_store(struct gl_node *n, struct component_call *x)
{
    const struct gl_core_call *call = x->asked;
    struct gl_store *s = n->ports.store;
    struct gl_store_req *req = gl_chain_call_store(&x->call, n, on_done, x);

    switch (call->type) {
    case GL_CORE_CALL_GET:
        s->ops->get(s, req, n->config.context, call->keys, call->keys_n);
        break;
    case GL_CORE_CALL_RANGE:
    case GL_CORE_CALL_COUNT:
        s->ops->range(s, req, n->config.context, &call->range);
        break;
    case GL_CORE_CALL_LIST:
        s->ops->list(s, req, n->config.context, &call->listing);
        break;
    case GL_CORE_CALL_MEASURE:
        s->ops->measure(s, req, n->config.context);
        break;
    case GL_CORE_CALL_TIME:
        (s->ops->time)(s, req); /* in parentheses: `time` may be a macro of the C library */
        break;
    case GL_CORE_CALL_COMMIT:
        forget_blobs(n, call->tx);
        s->ops->commit(s, req, call->tx);
        break;
    case GL_CORE_CALL_RENEW:
        gl_sessions_renew(n, req);
        break;
    case GL_CORE_CALL_SESSIONS:
        gl_sessions_log_taken(n);
        s->ops->session_list(s, req);
        break;
    case GL_CORE_CALL_DECLARE:
        s->ops->session_dead(s, req, call->session, true);
        break;
    case GL_CORE_CALL_RESTAMP:
    case GL_CORE_CALL_FILES:
    case GL_CORE_CALL_EXPIRE:
        GL_UNREACHABLE();
    }
}

void gl_component_calls_begin(struct gl_node *n, struct gl_batch *b, size_t number_of)
{
    struct component_call *x = GL_NEW(&b->arena, struct component_call);

    GL_ASSERT(b->effects.items[number_of].type == GL_FX_CALL);
    x->node = n;
    x->batch = b;
    x->asked = b->effects.items[number_of].call;
    b->refs++;
    if (x->asked->type == GL_CORE_CALL_FILES) {
        begin_files(n, x);
    } else if (x->asked->type == GL_CORE_CALL_EXPIRE) {
        begin_expiry(n, x);
    } else if (x->asked->type == GL_CORE_CALL_RESTAMP) {
        restamp(n, x);
    } else {
        begin_on_store(n, x);
    }
}
