/* component_calls.c - what components of the core ask of the store (core/component.h), and the
 * answers.
 *
 * Nothing is decided here. What other nodes tell of themselves is JSON, perhaps of another release:
 * it is read into the fields of the event, and what cannot be read is left out. */
#include "node/node_state.h"

struct call { /* in its batch's arena */
    struct gl_chain_call call;
    struct gl_batch *batch;
    const struct gl_core_call *asked;
};

/* ---- what others have told ---- */

static uint64_t number(const struct gl_json *j, gl_jnode object, const char *key)
{
    uint64_t value;

    return gl_json_u64(j, gl_json_get(j, object, key), &value) ? value : 0;
}

static void read_pools(const struct gl_json *j, gl_jnode pools, struct gl_arena *a,
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
                                   .waiting = number(j, e, "waiting")};
    }
    ret->pools.items = all;
}

static struct gl_event_peer read_session(const struct gl_session_info *s, struct gl_arena *a)
{
    struct gl_event_peer ret = {.id = s->id, .left_ms = s->left_ms, .dead = s->dead};
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
    read_pools(&j, gl_json_get(&j, root, "pools"), a, &ret);
    return ret;
}

static struct gl_items read_sessions(const struct gl_store_req *req, struct gl_arena *a)
{
    struct gl_event_peer *all = GL_NEW_ARRAY(a, struct gl_event_peer, req->sessions_n + 1);

    for (size_t i = 0; i < req->sessions_n; i++) {
        all[i] = read_session(&req->sessions[i], a);
    }
    return (struct gl_items){.items = all, .n = req->sessions_n};
}

static struct gl_items read_records(const struct gl_store_req *req, struct gl_arena *a)
{
    struct gl_event_record *all = GL_NEW_ARRAY(a, struct gl_event_record, req->records_n + 1);

    for (size_t i = 0; i < req->records_n; i++) {
        const struct gl_record *r = &req->records[i];

        all[i] = (struct gl_event_record){.kind = r->kind,
                                          .id = r->id,
                                          .owner = r->owner,
                                          .value = r->damaged ? (gl_str){0} : r->value,
                                          .rev = r->rev,
                                          .token = r->token,
                                          .damaged = r->damaged};
    }
    return (struct gl_items){.items = all, .n = req->records_n};
}

static struct gl_items read_entries(const struct gl_store_req *req, struct gl_arena *a)
{
    struct gl_event_entry *all = GL_NEW_ARRAY(a, struct gl_event_entry, req->entries_n + 1);

    for (size_t i = 0; i < req->entries_n; i++) {
        all[i] = (struct gl_event_entry){.score = req->entries[i].score, .id = req->entries[i].id};
    }
    return (struct gl_items){.items = all, .n = req->entries_n};
}

/* ---- calls ---- */

/* What a call has brought, in the fields of its type. */
static void read_answer(const struct gl_core_call *call, const struct gl_store_req *req,
                        struct gl_arena *a, struct gl_event_answer *ret)
{
    bool is_good = req->status == 0;

    switch (call->type) {
    case GL_CORE_CALL_GET:
        ret->records = is_good ? read_records(req, a) : (struct gl_items){0};
        break;
    case GL_CORE_CALL_RANGE:
        ret->entries = is_good ? read_entries(req, a) : (struct gl_items){0};
        break;
    case GL_CORE_CALL_TIME:
        ret->time = is_good ? req->time : 0;
        break;
    case GL_CORE_CALL_SESSIONS:
        ret->sessions = is_good ? read_sessions(req, a) : (struct gl_items){0};
        break;
    case GL_CORE_CALL_DECLARE:
        ret->session = call->session;
        ret->is_dead = is_good && req->session_dead;
        break;
    case GL_CORE_CALL_COMMIT:
    case GL_CORE_CALL_RENEW:
        break;
    }
}

static void on_done(struct gl_store_req *req)
{
    struct call *x = req->owner;
    struct gl_node *n = x->call.node;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_event ev = {.type = GL_EV_ANSWER,
                          .context = n->config.context,
                          .answer = {.by = (uint8_t)x->asked->by,
                                     .number = x->asked->number,
                                     .code = req->status,
                                     .why = gl_str_of(req->status != 0 ? req->why.text : ""),
                                     .needs_help = gl_sessions_needs_room(req)}};

    n->config.trace->now = n->now;
    read_answer(x->asked, req, &a, &ev.answer);
    if (x->asked->type == GL_CORE_CALL_RENEW) {
        gl_sessions_note(n, req);
    }
    gl_node_feed(n, &ev);
    gl_sessions_tell(n);
    gl_node_release(n, x->batch);
}

void gl_calls_begin(struct gl_node *n, struct gl_batch *b, size_t number_of)
{
    const struct gl_core_call *call = b->effects.items[number_of].call;
    struct call *x = GL_NEW(&b->arena, struct call);
    struct gl_store_req *req = gl_chain_call_store(&x->call, n, on_done, x);
    struct gl_store *s = n->ports.store;

    GL_ASSERT(b->effects.items[number_of].type == GL_FX_CALL);
    x->batch = b;
    x->asked = call;
    b->refs++;
    switch (call->type) {
    case GL_CORE_CALL_GET:
        s->ops->get(s, req, n->config.context, call->keys, call->keys_n);
        break;
    case GL_CORE_CALL_RANGE:
        s->ops->range(s, req, n->config.context, &call->range);
        break;
    case GL_CORE_CALL_TIME:
        (s->ops->time)(s, req); /* in brackets: plain, the name belongs to the C library */
        break;
    case GL_CORE_CALL_COMMIT:
        s->ops->commit(s, req, call->tx);
        break;
    case GL_CORE_CALL_RENEW:
        gl_sessions_renew(n, req);
        break;
    case GL_CORE_CALL_SESSIONS:
        gl_sessions_say_taken(n);
        s->ops->session_list(s, req);
        break;
    case GL_CORE_CALL_DECLARE:
        s->ops->session_dead(s, req, call->session, true);
        break;
    }
}
