/* agent_input.c - reads what an agent needs to handle a message: the message, if it is too large to
 * be kept in memory, the agent's own record, or the messages an aggregator has collected.
 *
 * What the core needs comes back as the event RESOLVED, what a worker needs through a callback.
 * Reads for relays (agents that run inside the core) hold whole bodies in memory, so only a few of
 * them run at a time; the others wait in order. */
#include "node/agent_input.h"

#include "base/check.h"
#include "base/limits.h"
#include "node/body_chunks.h"
#include "node/node_state.h"
#include "node/workers.h"

enum {
    PAGE = 256,
    RELAY_READS_MAX = 4, /* messages read for relays at once; each may be large */
};

#define TOO_LARGE \
    "the messages the aggregator has collected exceed 16 MiB; pass large data as files"

/* ---- the message a worker is given ---- */

struct gl_turn *gl_agent_input_copy(struct gl_arena *a, const struct gl_turn *t)
{
    struct gl_turn *copy = GL_NEW(a, struct gl_turn);
    gl_str *texts[] = {
        &copy->message,
        &copy->state,
        &copy->ledger.run_id,
        &copy->ledger.step_id,
        &copy->ledger.template_id,
        &copy->ledger.region_id,
        &copy->ledger.attempt_id,
        &copy->ledger.idempotency_key,
        &copy->ledger.source_step_id,
    };

    *copy = *t;
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        *texts[i] = gl_str_dup(a, *texts[i]);
    }
    return copy;
}

/* The message as it was sent, plus what the ledger knows about this attempt. */
gl_str gl_agent_input_message(const struct gl_turn *t, gl_str text, struct gl_arena *a,
                              struct gl_why *reterr_why)
{
    struct gl_message_ledger ledger = t->ledger, sent;
    struct gl_message m;
    struct gl_buf buf = {0};
    gl_str whole;

    if (gl_message_read(text, a, &m, reterr_why) != 0) {
        return (gl_str){0};
    }
    gl_message_ledger_of(m.headers, a, &sent);
    ledger.source_step_id = sent.source_step_id; /* only the sender knew this */
    m.headers = gl_message_headers(a, m.headers, &ledger);
    if (t->ledger.attempt > 1) { /* a redelivery is not a duplicate */
        m.attempt = t->ledger.attempt;
        m.message_id = gl_str_fmt(a, "%.*s.%u", GL_STR_ARG(m.message_id), t->ledger.attempt);
    }
    gl_message_write(&m, &buf);
    whole = gl_str_dup(a, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return whole;
}

/* ---- reading ---- */

struct input_read {
    struct gl_chain chain;
    struct gl_key keys[2];
    gl_str job, unit, agent, after;
    uint32_t step_number, wants;
    uint64_t number, question; /* of the message; of the RESOLVE */
    gl_str unit_text, message;
    gl_str body; /* if it is stored apart */
    bool to_blob;
    bool is_for_relay;             /* RESOLVE of a message */
    struct gl_link waiting;        /* in relay_reads.waiting, until it begins */
    struct gl_body_ref ref;        /* the body being read */
    struct gl_buf joined, counted; /* a message with its body; bodies, joined by commas */
    uint64_t counted_n;
    gl_agent_input_done *done;
    void *owner;
};

static gl_str id_of(struct input_read *r, uint64_t number)
{
    GL_ASSERT(number > 0);
    return gl_str_fmt(&r->chain.arena, "%.*s/%012llu", GL_STR_ARG(r->job),
                      (unsigned long long)number);
}

static gl_str body_of(struct input_read *r, gl_str message)
{
    struct gl_message m;

    return gl_message_read(message, &r->chain.arena, &m, NULL) == 0 && m.body.n > 0 ? m.body
                                                                                    : GL_S("null");
}

/* Is the body of this message stored apart? */
static bool has_ref(struct input_read *r, gl_str message, bool *ret_is_plain)
{
    struct gl_message m;

    if (gl_message_read(message, &r->chain.arena, &m, NULL) != 0 || m.body.n > 0 ||
        !gl_message_body_ref(m.artifacts, &r->chain.arena, &r->ref)) {
        return false;
    }
    *ret_is_plain = gl_message_is_plain(&m);
    return true;
}

/* Inserts the body into the message. */
static gl_str join(struct input_read *r, gl_str message, gl_str body)
{
    struct gl_message m;

    GL_ASSERT(r->joined.n == 0);
    if (gl_message_read(message, &r->chain.arena, &m, NULL) != 0) {
        return message;
    }
    m.body = body;
    gl_message_write(&m, &r->joined);
    return gl_buf_view(&r->joined);
}

static void compose(struct input_read *r, struct gl_buf *out)
{
    struct gl_jw w;

    GL_ASSERT(r->wants != 0);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_put_raw(&w, "unit", r->unit_text);
    gl_jw_put_raw(&w, "message", r->message);
    if ((r->wants & GL_WANT_COUNTED) != 0) {
        gl_jw_put_object(&w, "counted");
        gl_jw_put_array(&w, "messages");
        if (r->counted.n > 0) {
            gl_jw_raw(&w, gl_buf_view(&r->counted));
        }
        gl_jw_end(&w);
        gl_jw_put_u64(&w, "count", r->counted_n);
        gl_jw_put_raw(&w, "last_message", body_of(r, r->message));
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
}

static void on_end(void *chain)
{
    struct input_read *r = chain;

    gl_list_remove(&r->waiting);
    gl_buf_done(&r->joined);
    gl_buf_done(&r->counted);
}

static void on_failed(void *chain, int code, const char *why);

static const struct gl_chain_kind readings = {
    .bytes = sizeof(struct input_read), .failed = on_failed, .done = on_end};

/* ---- reads for relays: few at a time ---- */

/* The memory of this part. */
struct relay_reads {
    size_t under_way_n;
    struct gl_link waiting; /* struct input_read, the oldest first */
};

static struct relay_reads *own(const struct gl_node *n)
{
    return n->parts[GL_PART_AGENT_INPUT];
}

static void init(struct gl_node *n)
{
    gl_list_init(&own(n)->waiting);
}

static void begin(struct input_read *r);

/* One has ended: lets the first of those that wait begin. */
static void begin_next(struct gl_node *n)
{
    struct gl_link *l = gl_list_first(&own(n)->waiting);

    GL_ASSERT(own(n)->under_way_n > 0);
    if (l == NULL) {
        own(n)->under_way_n--;
    } else { /* it takes the turn of the one that has ended */
        gl_list_remove(l);
        begin(GL_CONTAINER(l, struct input_read, waiting));
    }
}

static void finish(struct input_read *r, int code, const char *why)
{
    struct gl_buf facts = {0};
    struct gl_event ev = {.type = GL_EV_RESOLVED,
                          .context = r->chain.context,
                          .job = r->job,
                          .resolved = {.step_number = r->step_number,
                                       .number = r->question,
                                       .code = code,
                                       .why = gl_str_of(why)}};

    GL_ASSERT(gl_list_empty(&r->waiting));
    if (r->done != NULL) {
        r->done(r->owner, code, why, r->message, r->body);
    } else {
        if (code == 0) {
            compose(r, &facts);
            ev.resolved.facts = gl_buf_view(&facts);
        }
        gl_node_feed(r->chain.node, &ev);
        gl_buf_done(&facts);
    }
    if (r->is_for_relay) {
        begin_next(r->chain.node);
    }
    gl_chain_end(&r->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    (void)code; /* whatever it was, the read may be retried */
    finish(chain, GL_E_UNAVAILABLE, why);
}

static void list_counted(struct input_read *r);

static void add_counted(struct input_read *r, gl_str body)
{
    if (r->counted.n > 0) {
        gl_buf_char(&r->counted, ',');
    }
    gl_buf_str(&r->counted, body);
    r->counted_n++;
}

static void on_counted_body(void *owner, int code, const char *why, gl_str body)
{
    struct input_read *r = owner;

    GL_ASSERT((r->wants & GL_WANT_COUNTED) != 0);
    if (code != 0) {
        finish(r, code, why);
        return;
    }
    add_counted(r, body);
    list_counted(r);
}

/* True: its body is being read; the list continues after that. */
static bool add_message(struct input_read *r, gl_str message)
{
    bool is_plain;

    GL_ASSERT(message.n > 0);
    if (has_ref(r, message, &is_plain)) {
        gl_body_chunks_read(r->chain.node, r->chain.context, r->job, &r->ref, on_counted_body, r);
        return true;
    }
    add_counted(r, body_of(r, message));
    return false;
}

static void on_large(struct gl_store_req *req)
{
    struct input_read *r = req->owner;

    GL_ASSERT(req->records_n == 1);
    if (req->records[0].rev == 0 || req->records[0].damaged) {
        finish(r, GL_E_DAMAGED, "a message the aggregator has collected is missing from the store");
    } else if (!add_message(r, gl_str_dup(&r->chain.arena, req->records[0].value))) {
        list_counted(r);
    }
}

/* Large messages are read one at a time: few aggregators have them. */
static void on_counted(struct gl_store_req *req)
{
    struct input_read *r = req->owner;
    struct gl_json j;
    gl_jnode root;

    GL_ASSERT(req->records_n <= PAGE);
    for (size_t i = 0; i < req->records_n; i++) {
        gl_str text = gl_str_dup(&r->chain.arena, req->records[i].value);

        r->after = gl_str_dup(&r->chain.arena, req->records[i].id);
        if (gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, &r->chain.arena, NULL) != 0) {
            continue;
        }
        root = gl_json_root(&j);
        if (!gl_str_eq(gl_json_str(&j, gl_json_get(&j, root, "to"), &r->chain.arena), r->agent) ||
            !gl_str_is(gl_json_str(&j, gl_json_get(&j, root, "status"), &r->chain.arena),
                       "counted")) {
            continue;
        }
        if (gl_json_get(&j, root, "large") != NULL) {
            gl_chain_get(&r->chain, GL_S("message"), r->after, on_large);
            return;
        }
        if (add_message(r, gl_json_raw(&j, gl_json_get(&j, root, "message")))) {
            return;
        }
    }
    if (req->records_n == PAGE) {
        list_counted(r);
    } else if (r->counted.n + r->message.n > GL_MESSAGE_BYTES_MAX) { /* last one is in both */
        finish(r, GL_E_LIMIT, TOO_LARGE);
    } else {
        finish(r, 0, "");
    }
}

static void list_counted(struct input_read *r)
{
    struct gl_listing what;

    GL_ASSERT(gl_list_empty(&r->waiting));
    GL_ASSERT((r->wants & GL_WANT_COUNTED) != 0);
    if (r->counted.n > GL_MESSAGE_BYTES_MAX) {
        finish(r, GL_E_LIMIT, TOO_LARGE);
        return;
    }
    what = (struct gl_listing){
        .kind = GL_S("letter"),
        .prefix = gl_str_fmt(&r->chain.arena, "%.*s/", GL_STR_ARG(r->job)),
        .after = r->after,
        .limit = PAGE,
        .live_only = true,
    };
    gl_chain_list(&r->chain, what, on_counted);
}

/* The text of a message: in its record "letter" or, if it is large, in a record of its own. */
static gl_str whole(struct input_read *r, const struct gl_record *queued,
                    const struct gl_record *message)
{
    struct gl_json j;
    gl_jnode n;

    if (message->rev != 0) {
        return gl_str_dup(&r->chain.arena, message->value);
    }
    if (queued->rev == 0 || gl_json_parse(&j, gl_str_dup(&r->chain.arena, queued->value),
                                          GL_RECORD_BYTES_MAX, &r->chain.arena, NULL) != 0) {
        return (gl_str){0};
    }
    if (gl_json_get(&j, gl_json_root(&j), "large") != NULL) {
        return (gl_str){0}; /* that record has the envelope only */
    }
    n = gl_json_get(&j, gl_json_root(&j), "message");
    return n != NULL ? gl_json_raw(&j, n) : (gl_str){0};
}

static void on_message_ready(struct input_read *r)
{
    GL_ASSERT(r->message.n > 0);
    if ((r->wants & GL_WANT_COUNTED) != 0) {
        list_counted(r);
    } else {
        finish(r, 0, "");
    }
}

static void on_body(void *owner, int code, const char *why, gl_str body)
{
    struct input_read *r = owner;

    GL_ASSERT(r->message.n > 0);
    if (code != 0) {
        finish(r, code, why);
        return;
    }
    if (r->done != NULL) {
        r->body = gl_str_dup(&r->chain.arena, body);
    } else { /* a relay reads it as a whole */
        r->message = join(r, r->message, body);
    }
    on_message_ready(r);
}

static void read_body(struct input_read *r, bool is_plain)
{
    const struct gl_blob *b = r->chain.node->ports.blob;

    GL_ASSERT(r->ref.bytes > 0);
    GL_ASSERT(r->message.n > 0);
    if (r->to_blob && is_plain && b != NULL && b->write != NULL) {
        gl_body_chunks_to_blob(r->chain.node, r->chain.context, r->job, &r->ref, on_body, r);
    } else {
        gl_body_chunks_read(r->chain.node, r->chain.context, r->job, &r->ref, on_body, r);
    }
}

static void on_records(struct gl_store_req *req)
{
    struct input_read *r = req->owner;
    bool is_plain;

    GL_ASSERT(req->records_n > 0);
    for (size_t i = 0; i < req->records_n; i++) {
        if (req->records[i].damaged) {
            finish(r, GL_E_DAMAGED, "a record it needs is damaged");
            return;
        }
    }
    if ((r->wants & GL_WANT_UNIT) != 0) {
        if (req->records[0].rev != 0) {
            r->unit_text = gl_str_dup(&r->chain.arena, req->records[0].value);
        }
        finish(r, 0, "");
        return;
    }
    r->message = whole(r, &req->records[0], &req->records[1]);
    if (r->message.n == 0) {
        finish(r, GL_E_DAMAGED, "the message is missing from the store");
    } else if (has_ref(r, r->message, &is_plain)) {
        read_body(r, is_plain);
    } else {
        on_message_ready(r);
    }
}

static void begin(struct input_read *r)
{
    size_t n = 1;

    GL_ASSERT(r->wants != 0);
    GL_ASSERT(gl_list_empty(&r->waiting));
    if ((r->wants & GL_WANT_UNIT) != 0) {
        r->keys[0] = (struct gl_key){.kind = GL_S("step"),
                                     .id = gl_str_fmt(&r->chain.arena, "%.*s/%.*s",
                                                      GL_STR_ARG(r->job), GL_STR_ARG(r->unit))};
    } else {
        r->keys[0] = (struct gl_key){.kind = GL_S("letter"), .id = id_of(r, r->number)};
        r->keys[1] = (struct gl_key){.kind = GL_S("message"), .id = r->keys[0].id};
        n = 2;
    }
    gl_chain_get_all(&r->chain, r->keys, n, on_records);
}

static struct input_read *reading_new(struct gl_node *n, gl_str context, gl_str job)
{
    struct input_read *r = gl_chain_new(n, &readings, context);

    GL_ASSERT(job.n == GL_ULID_BYTES);
    gl_list_init(&r->waiting);
    r->job = gl_str_dup(&r->chain.arena, job);
    return r;
}

void gl_agent_input_resolve(struct gl_node *n, const struct gl_effect *e)
{
    struct input_read *r = reading_new(n, e->context, e->job);

    GL_ASSERT(e->type == GL_FX_RESOLVE);
    GL_ASSERT(e->wants != 0);
    GL_ASSERT(e->step_id.n > 0);
    r->unit = gl_str_dup(&r->chain.arena, e->step_id);
    r->agent = (gl_str){.p = r->unit.p + 1, .n = r->unit.n - 1};
    r->step_number = e->step_number;
    r->wants = e->wants;
    r->number = e->message_number;
    r->question = e->start_number;
    r->is_for_relay = (e->wants & GL_WANT_MESSAGE) != 0;
    gl_spec_unref(e->spec); /* the effect's reference */
    if (r->is_for_relay && own(n)->under_way_n == RELAY_READS_MAX) {
        gl_list_push(&own(n)->waiting, &r->waiting);
        return;
    }
    own(n)->under_way_n += r->is_for_relay;
    begin(r);
}

void gl_agent_input_read(struct gl_node *n, gl_str context, gl_str job, uint64_t number,
                         bool to_blob, gl_agent_input_done *done, void *owner)
{
    struct input_read *r = reading_new(n, context, job);

    GL_ASSERT(job.n > 0);
    GL_ASSERT(number > 0);
    r->wants = GL_WANT_MESSAGE;
    r->number = number;
    r->to_blob = to_blob;
    r->done = done;
    r->owner = owner;
    begin(r);
}

const struct gl_node_part gl_agent_input_part = {.bytes = sizeof(struct relay_reads), .init = init};
