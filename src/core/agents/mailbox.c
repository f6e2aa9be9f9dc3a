/* mailbox.c - queued messages: their records, and the mailboxes they are in.
 *
 * A job counts its queued messages (waiting_n) and numbers every message it has ever sent
 * (letters_n). Both are in the job's record, which the same transactions write; so
 * gl_mailbox_is_complete() can tell after a load whether the store has lost a message. */
#include "core/agents/mailbox.h"

#include "base/check.h"
#include "base/sha256.h"
#include "core/agents/agents.h"
#include "core/agents/message_order.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"

static const char *const status_words[] = {
#define X(name, word) word,
    GL_MESSAGE_STATUSES(X)
#undef X
        NULL,
};

#define LF(member, type, flags, doc) GL_FIELD(gl_message_record, member, type, flags, doc)

static const struct gl_field message_fields[] = {
    LF(number, U64, GL_FF_REQUIRED, "Its number in the job."),
    GL_FIELD_ENUM(gl_message_record, status, status_words, GL_FF_ALWAYS, "Its status."),
    LF(to, STR, GL_FF_REQUIRED, "The agent that receives it."),
    LF(from, STR, 0, "Its sender."),
    LF(type, STR, 0, "Its type."),
    LF(step, STR, 0, "The step it is for."),
    LF(sender, STR, 0, "The sender named in its body."),
    LF(created_at, TIME, 0, "When it was sent."),
    LF(expires_at, TIME, 0, "When it expires."),
    LF(urgency, I64, 0, "Its priority, less the usual one."),
    LF(again, BOOL, 0, "A retry gets it again: it goes before all others."),
    LF(body, U64, 0, "The number of the message that brought its body, if that is a large one."),
    LF(body_bytes, U64, 0, "The size of that body."),
    LF(large, BOOL, 0, "The whole message is a record of its own."),
    LF(message, RAW, 0, "The message; without its body if it is large."),
};

const struct gl_schema gl_message_schema = {
    .name = "letter",
    .doc = "A message between agents that has not been handled.",
    .bytes = sizeof(struct gl_message_record),
    .fields = message_fields,
    .fields_n = GL_COUNT(message_fields),
};

struct gl_mailbox *gl_mailbox_of(struct gl_core *c, struct gl_step *st)
{
    if (st->mailbox == NULL) {
        st->mailbox = gl_pool_alloc(&c->mem, sizeof(*st->mailbox));
        st->mailbox->unit = st;
        gl_list_init(&st->mailbox->messages);
        gl_message_order_init(&st->mailbox->inbox);
        gl_list_init(&st->mailbox->counted);
        gl_list_init(&st->mailbox->due);
        gl_list_init(&st->mailbox->idle);
    }
    GL_ASSERT(st->mailbox->unit == st);
    return st->mailbox;
}

void gl_mailbox_schedule(struct gl_core *c, struct gl_step *unit)
{
    struct gl_mailbox *m = gl_mailbox_of(c, unit);

    GL_ASSERT(gl_step_is_unit(unit));
    gl_txn_touch(c, unit->job);
    if (!gl_list_empty(&m->idle)) {
        gl_list_remove(&m->idle);
        GL_ASSERT(c->idle_n > 0);
        c->idle_n--;
    }
    if (gl_list_empty(&m->due)) {
        gl_list_push(&unit->job->due_units, &m->due);
    }
    GL_ASSERT(gl_list_empty(&m->idle));
    GL_ASSERT(!gl_list_empty(&m->due));
}

/* ---- records ---- */

/* The number has a fixed width, so that listing the records yields the messages in order. */
static gl_str id_of(struct gl_core *c, const struct gl_job *j, uint64_t number)
{
    return gl_str_fmt(c->out->arena, "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
}

/* Writes the record as it is now; later writes in the same transaction replace it. */
static void write_message(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q)
{
    struct gl_buf buf = {0};
    struct gl_write *w = gl_txn_write(c, j, GL_WRITE_PUT, GL_S("letter"), id_of(c, j, q->r.number));
    struct gl_jw jw;

    GL_ASSERT(q->r.status != GL_MESSAGE_HANDLING);
    GL_ASSERT(q->r.number > 0);
    gl_jw_init(&jw, &buf);
    gl_jw_object(&jw);
    gl_schema_write(&gl_message_schema, &q->r, &jw, GL_FOR_STORE);
    gl_jw_end(&jw);
    w->live = true;
    w->value = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
}

/* From memory only. Its body loses a reference but keeps its records. */
static void message_free(struct gl_core *c, struct gl_queued_message *q)
{
    GL_ASSERT(q->r.number > 0);
    gl_list_remove(&q->link);
    gl_body_release(c, q->body);
    gl_core_set(c, &q->r.from, (gl_str){0});
    gl_core_set(c, &q->r.type, (gl_str){0});
    gl_core_set(c, &q->r.step, (gl_str){0});
    gl_core_set(c, &q->r.sender, (gl_str){0});
    gl_core_set(c, &q->r.message, (gl_str){0});
    gl_pool_free(&c->mem, q, sizeof(*q));
}

struct gl_queued_message *gl_mailbox_message_new(struct gl_core *c, struct gl_job *j, uint32_t unit,
                                                 const struct gl_message_record *r)
{
    struct gl_queued_message *q = gl_pool_alloc(&c->mem, sizeof(*q));

    GL_ASSERT(unit < gl_flow_agents_n(j->spec->flow));
    gl_list_init(&q->link);
    q->unit = unit;
    q->r = (struct gl_message_record){.number = r->number,
                                      .status = r->status,
                                      .to = gl_flow_agent(j->spec->flow, unit)->id,
                                      .created_at = r->created_at,
                                      .expires_at = r->expires_at,
                                      .urgency = r->urgency,
                                      .again = r->again,
                                      .body = r->body,
                                      .body_bytes = r->body_bytes,
                                      .large = r->large};
    q->body = r->body > 0 ? gl_body_acquire(c, j, r->body, r->body_bytes) : NULL;
    gl_core_set(c, &q->r.from, r->from);
    gl_core_set(c, &q->r.type, r->type);
    gl_core_set(c, &q->r.step, r->step);
    gl_core_set(c, &q->r.sender, r->sender);
    gl_core_set(c, &q->r.message, r->message);
    return q;
}

/* ---- sending ---- */

/* Backpressure begins at the high watermark and ends at the low one. */
static void update_backpressure(struct gl_core *c, struct gl_step *unit)
{
    const struct gl_agent_spec *a = gl_flow_agent(unit->job->spec->flow, unit->of);
    struct gl_mailbox *m = unit->mailbox;
    bool was = m->is_pressed;

    GL_ASSERT(gl_step_is_unit(unit));
    if (a->high_mark == 0) {
        return;
    }
    m->is_pressed = was ? m->n > a->low_mark : m->n >= a->high_mark;
    if (was != m->is_pressed) {
        gl_agents_log(c, unit, "backpressure_state", (gl_str){0},
                      gl_str_fmt(c->out->arena,
                                 "{\"state\":\"%s\",\"queue_depth\":%u,\"high_watermark\":%u,"
                                 "\"low_watermark\":%u,\"max_queue_depth\":%u}",
                                 m->is_pressed ? "high" : "normal", m->n, a->high_mark, a->low_mark,
                                 a->depth_max));
    }
}

static gl_str text_of(struct gl_core *c, const struct gl_message *m)
{
    struct gl_buf buf = {0};
    gl_str text;

    gl_message_write(m, &buf);
    text = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return text;
}

/* By what an aggregator recognises a sender: body.agent_id, or its hash if it is long. */
static gl_str sender_of(struct gl_core *c, const struct gl_message *m)
{
    char hex[GL_SHA256_HEX];
    struct gl_json json;
    gl_jnode n;
    gl_str name;

    if (m->body.n == 0 || m->body.p[0] != '{' ||
        gl_json_parse(&json, m->body, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0) {
        return (gl_str){0};
    }
    n = gl_json_get(&json, gl_json_root(&json), "agent_id");
    name = n != NULL && gl_json_is(n, GL_JSON_STRING) ? gl_json_str(&json, n, c->out->arena)
                                                      : (gl_str){0};
    if (name.n > GL_WORD_BYTES_MAX) { /* it stays in memory; a hash identifies it as well */
        name = gl_str_dup(c->out->arena, gl_sha256_hex(name, hex));
    }
    GL_ASSERT(name.n <= GL_WORD_BYTES_MAX);
    return name;
}

/* Writes the record "deadletter" and the event; fails the job if it has too many of them. */
static void write_dead_letter(struct gl_core *c, struct gl_job *j, const struct gl_message *m,
                              gl_str text, uint64_t number, gl_str why)
{
    struct gl_write *w = gl_txn_write(c, j, GL_WRITE_PUT, GL_S("deadletter"), id_of(c, j, number));
    struct gl_buf buf = {0};
    struct gl_jw jw;

    GL_ASSERT(number > 0);
    GL_ASSERT(why.n > 0);
    GL_MARK(c->trace, "mail.dead");
    gl_jw_init(&jw, &buf);
    gl_jw_object(&jw);
    gl_jw_key(&jw, "number");
    gl_jw_u64(&jw, number);
    gl_jw_key(&jw, "to");
    gl_jw_str(&jw, m->to);
    gl_jw_key(&jw, "from");
    gl_jw_str(&jw, m->from);
    gl_jw_key(&jw, "type");
    gl_jw_str(&jw, m->type);
    gl_jw_key(&jw, "reason");
    gl_jw_str(&jw, why);
    gl_jw_key(&jw, "died_at");
    gl_jw_i64(&jw, c->now);
    gl_jw_key(&jw, "message");
    gl_jw_raw(&jw, text);
    gl_jw_end(&jw);
    w->value = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
    j->r.dead_n++;
    GL_ASSERT(j->r.dead_n > 0);
    if (j->r.dead_n > GL_DEAD_LETTERS_MAX && j->r.verdict == GL_VERDICT_NONE) {
        gl_ledger_set_verdict(c, j, GL_VERDICT_FAILED,
                              GL_S("more than 10000 of its messages could not be delivered"));
    }
    gl_txn_log(c, j, NULL, "dead_letter", why,
               gl_str_fmt(c->out->arena,
                          "\"number\":%llu,\"payload\":{\"message_id\":\"%.*s\",\"to\":\"%.*s\","
                          "\"from\":\"%.*s\",\"type\":\"%.*s\"}",
                          (unsigned long long)number,
                          GL_STR_ARG(gl_agents_json_safe(c, m->message_id)),
                          GL_STR_ARG(gl_agents_json_safe(c, m->to)),
                          GL_STR_ARG(gl_agents_json_safe(c, m->from)),
                          GL_STR_ARG(gl_agents_json_safe(c, m->type))));
}

/* Why the message cannot be delivered; NULL: it can. */
static const char *why_undeliverable(const struct gl_job *j, const struct gl_step *unit,
                                     gl_str text)
{
    if (text.n > GL_MESSAGE_BYTES_MAX) {
        return "it is larger than 16 MiB: pass large data as a file";
    }
    if (unit != NULL && unit->mailbox != NULL && unit->mailbox->n >= GL_INBOX_MAX) {
        return "the receiver's inbox is full";
    }
    return j->r.waiting_n >= GL_JOB_MESSAGES_MAX ? "the job has too many waiting messages" : NULL;
}

/* A dead letter refers to the body from now on: its records stay until the job is removed. */
static void keep_body(struct gl_core *c, struct gl_body *b)
{
    GL_ASSERT(b == NULL || b->refs > 0);
    if (b != NULL) {
        b->is_kept = true;
        gl_body_release(c, b);
    }
}

static void log_queued(struct gl_core *c, const struct gl_step *unit, const struct gl_message *m)
{
    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(m->message_id.n > 0);
    gl_agents_log(c, unit, "message_queued", (gl_str){0},
                  gl_str_fmt(c->out->arena,
                             "{\"message_id\":\"%.*s\",\"type\":\"%.*s\",\"from\":\"%.*s\"}",
                             GL_STR_ARG(m->message_id), GL_STR_ARG(gl_agents_json_safe(c, m->type)),
                             GL_STR_ARG(gl_agents_json_safe(c, m->from))));
}

/* Gives the message its id and returns it as text, without its body if that is a large one. */
static gl_str assign_number(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                            uint64_t number, struct gl_body **ret_body)
{
    GL_ASSERT(number > 0);
    GL_ASSERT(number <= j->r.letters_n);
    m->message_id =
        gl_str_fmt(c->out->arena, "%.*s-%llu", GL_STR_ARG(j->id), (unsigned long long)number);
    m->job_id = j->id;
    m->timestamp = c->now;
    *ret_body = gl_body_of(c, j, m, number);
    return text_of(c, m);
}

/* Makes a dead letter of a message that was never queued. */
static void make_dead(struct gl_core *c, struct gl_job *j, const struct gl_message *m, gl_str text,
                      uint64_t number, gl_str why, struct gl_body *body)
{
    GL_ASSERT(number <= j->r.letters_n);
    write_dead_letter(c, j, m, text.n <= GL_MESSAGE_BYTES_MAX ? text : GL_S("null"), number, why);
    keep_body(c, body);
}

void gl_mailbox_send_dead(struct gl_core *c, struct gl_job *j, struct gl_message *m, gl_str why)
{
    uint64_t number = ++j->r.letters_n;
    struct gl_body *body;
    gl_str text = assign_number(c, j, m, number, &body);

    GL_ASSERT(why.n > 0);
    make_dead(c, j, m, text, number, why, body);
    GL_ASSERT(j->r.dead_n > 0);
}

/* Sets r->message. A long message becomes a record of its own; memory keeps the envelope. */
static void set_text(struct gl_core *c, struct gl_job *j, const struct gl_message *m, gl_str text,
                     struct gl_message_record *r)
{
    struct gl_message head = *m;

    GL_ASSERT(r->number > 0);
    GL_ASSERT(text.n > 0);
    r->large = text.n > GL_SHORT_MESSAGE_BYTES_MAX;
    r->message = text;
    if (r->large) {
        head.body = (gl_str){0};
        r->message = text_of(c, &head);
        gl_txn_write(c, j, GL_WRITE_PUT, GL_S("message"), id_of(c, j, r->number))->value = text;
    }
}

struct gl_queued_message *gl_mailbox_send(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                                          uint32_t to, const struct gl_step *step)
{
    struct gl_step *unit = gl_step_get(c, j, to);
    const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, to);
    struct gl_message_record r = {.number = ++j->r.letters_n,
                                  .from = m->from,
                                  .type = m->type,
                                  .step = step != NULL ? step->r.step_id : (gl_str){0},
                                  .created_at = gl_message_order_date(c, j),
                                  .expires_at = m->ttl_ms > 0 ? c->now + m->ttl_ms : 0,
                                  .urgency = gl_message_order_urgency(m)};
    struct gl_body *body;
    struct gl_queued_message *q;
    const char *bad;
    gl_str text;

    GL_ASSERT(to < gl_flow_agents_n(j->spec->flow));
    GL_ASSERT(step == NULL || gl_step_is_bound(step));
    r.sender = a->kind == GL_AGENT_AGGREGATOR ? sender_of(c, m) : (gl_str){0};
    m->to = a->id;
    text = assign_number(c, j, m, r.number, &body);
    bad = why_undeliverable(j, unit, text);
    /* Dead, not refused: the sender's turn commits whatever happens to its messages. */
    if (bad != NULL) {
        gl_agents_log(c, unit, "backpressure_rejected", gl_str_of(bad), (gl_str){0});
        make_dead(c, j, m, text, r.number, gl_str_of(bad), body);
        return NULL;
    }
    if (body != NULL) {
        r.body = body->number;
        r.body_bytes = body->bytes;
    }
    set_text(c, j, m, text, &r);
    q = gl_mailbox_message_new(c, j, to, &r);
    gl_body_release(c, body); /* the message has a reference of its own */
    write_message(c, j, q);
    (void)gl_mailbox_of(c, unit); /* created if it has none */
    gl_message_order_enqueue(unit, q);
    j->r.waiting_n++;
    log_queued(c, unit, m);
    update_backpressure(c, unit);
    gl_mailbox_schedule(c, unit);
    GL_ASSERT(unit->mailbox->n > 0);
    GL_ASSERT(unit->mailbox->n <= GL_INBOX_MAX);
    GL_ASSERT(j->r.waiting_n > 0);
    GL_ASSERT(q->unit == unit->of);
    return q;
}

/* ---- handling ---- */

void gl_mailbox_set_status(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q,
                           enum gl_message_status status)
{
    GL_ASSERT(status != GL_MESSAGE_HANDLING); /* never written */
    if (q->r.status != status) {
        q->r.status = (uint8_t)status;
        write_message(c, j, q);
    }
}

void gl_mailbox_take(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q)
{
    struct gl_mailbox *m = unit->mailbox;

    GL_ASSERT(m->n > 0);
    GL_ASSERT(q->unit == unit->of);
    gl_list_remove(&q->link);
    gl_heap_remove(&m->inbox, &q->waits);
    m->n--;
    if (m->n == 0) { /* an agent that is idle takes no memory for messages */
        gl_heap_done(&m->inbox);
        gl_message_order_init(&m->inbox);
    }
    update_backpressure(c, unit);
}

void gl_mailbox_drop(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q)
{
    gl_str id = id_of(c, j, q->r.number);

    GL_ASSERT(!gl_heap_has(&q->waits)); /* gl_mailbox_take() comes first */
    /* In the transaction of the turn: if it fails, the message is still there and is handled again.
     */
    (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("letter"), id);
    if (q->r.large) {
        (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("message"), id);
    }
    GL_ASSERT(j->r.waiting_n > 0);
    j->r.waiting_n--;
    gl_body_delete(c, q->body);
    q->body = NULL;
    message_free(c, q);
}

void gl_mailbox_make_dead(struct gl_core *c, struct gl_job *j, struct gl_queued_message *q,
                          gl_str why)
{
    struct gl_message m = {.to = q->r.to, .from = q->r.from, .type = q->r.type};

    GL_ASSERT(why.n > 0);
    write_dead_letter(c, j, &m, q->r.large ? GL_S("null") : q->r.message, q->r.number, why);
    q->r.large = false; /* the dead letter needs the record "message" */
    keep_body(c, q->body);
    q->body = NULL;
    gl_mailbox_drop(c, j, q);
}

void gl_mailbox_defer(struct gl_core *c, struct gl_step *step, struct gl_queued_message *q)
{
    GL_ASSERT(gl_step_is_bound(step));
    GL_ASSERT(!gl_heap_has(&q->waits));
    gl_mailbox_set_status(c, step->job, q, GL_MESSAGE_DEFERRED);
    gl_list_push(&gl_mailbox_of(c, step)->messages, &q->link);
    step->mailbox->n++;
    GL_ASSERT(q->r.status == GL_MESSAGE_DEFERRED);
    GL_ASSERT(step->mailbox->n > 0);
}

void gl_mailbox_release(struct gl_core *c, struct gl_step *step)
{
    struct gl_job *j = step->job;

    GL_ASSERT(gl_step_is_bound(step));
    while (step->mailbox != NULL && step->mailbox->n > 0) {
        struct gl_queued_message *q =
            GL_CONTAINER(step->mailbox->messages.next, struct gl_queued_message, link);
        struct gl_step *unit = gl_step_get(c, j, q->unit);

        gl_list_remove(&q->link);
        step->mailbox->n--;
        gl_mailbox_set_status(c, j, q, GL_MESSAGE_QUEUED);
        (void)gl_mailbox_of(c, unit); /* created if it has none */
        gl_message_order_enqueue(unit, q);
        gl_mailbox_schedule(c, unit);
        if (GL_PLANT(32)) {
            break; /* planted: only the first one is released */
        }
    }
}

void gl_mailbox_discard(struct gl_core *c, struct gl_step *step)
{
    GL_ASSERT(gl_step_is_bound(step));
    if (step->mailbox == NULL) {
        return;
    }
    for (struct gl_link *k; (k = gl_list_first(&step->mailbox->messages)) != NULL;) {
        gl_txn_log(c, step->job, step, "workflow_step_duplicate_message_ignored",
                   GL_S("the step has ended"), (gl_str){0});
        gl_mailbox_drop(c, step->job, GL_CONTAINER(k, struct gl_queued_message, link));
    }
    step->mailbox->n = 0;
    if (step->mailbox->now != NULL && step->mailbox->now->r.status == GL_MESSAGE_KEPT) {
        gl_mailbox_drop(c, step->job, step->mailbox->now);
    }
    step->mailbox->now = NULL;
    GL_ASSERT(gl_list_empty(&step->mailbox->messages));
}

struct gl_step *gl_mailbox_step_of(struct gl_core *c, struct gl_job *j,
                                   const struct gl_queued_message *q)
{
    uint32_t of;
    int32_t item;

    if (q->r.step.n == 0 || !gl_step_split_id(j->spec->flow, q->r.step, &of, &item)) {
        return NULL;
    }
    return item < 0 ? gl_step_get(c, j, of) : gl_step_by_id(j, q->r.step);
}

/* ---- loading and unloading ---- */

static void free_messages(struct gl_core *c, struct gl_link *list)
{
    for (struct gl_link *k; (k = gl_list_first(list)) != NULL;) {
        message_free(c, GL_CONTAINER(k, struct gl_queued_message, link));
    }
    GL_ASSERT(gl_list_empty(list));
}

/* The message is about to be freed: its ledger step must not point to it. */
static void clear_step_pointer(struct gl_job *j, const struct gl_queued_message *q)
{
    struct gl_step *step = q->r.step.n > 0 ? gl_step_by_id(j, q->r.step) : NULL;

    if (step != NULL && step->mailbox != NULL && step->mailbox->now == q) {
        step->mailbox->now = NULL;
    }
}

void gl_mailbox_free_step(struct gl_core *c, struct gl_step *st)
{
    struct gl_mailbox *m = st->mailbox;

    if (m == NULL) {
        return;
    }
    /* A message being handled belongs to its unit; the ledger step only points to it. */
    if (m->now != NULL && gl_step_is_unit(st)) {
        clear_step_pointer(st->job, m->now);
        message_free(c, m->now); /* leaves the list `counted`, too, if it is in it */
    } else if (m->now != NULL && m->now->r.status == GL_MESSAGE_KEPT) {
        message_free(c, m->now);
    }
    gl_heap_done(&m->inbox);
    free_messages(c, &m->messages);
    free_messages(c, &m->counted);
    if (!gl_list_empty(&m->idle)) {
        gl_list_remove(&m->idle);
        GL_ASSERT(c->idle_n > 0);
        c->idle_n--;
    }
    gl_list_remove(&m->due);
    GL_ASSERT(st->job->asked_n >= (m->asked != 0));
    st->job->asked_n -= m->asked != 0;
    gl_pool_free(&c->mem, m, sizeof(*m));
    st->mailbox = NULL;
}

int gl_mailbox_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec)
{
    struct gl_message_record r;
    struct gl_json json;
    struct gl_queued_message *q;
    struct gl_step *unit;
    int64_t to;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (gl_json_parse(&json, rec->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0 ||
        gl_schema_read(&gl_message_schema, &json, gl_json_root(&json), false, c->out->arena, &r,
                       NULL) != 0) {
        return GL_E_DAMAGED;
    }
    to = gl_flow_find_agent(j->spec->flow, r.to);
    /* Bytes from the store are checked, not asserted on. */
    if (to < 0 || !gl_message_order_is_valid(&r) || r.number > j->r.letters_n ||
        r.body > j->r.letters_n) {
        return GL_E_DAMAGED;
    }
    /* They come in the order of their numbers. Releases that ordered them by number let the dates
     * of a job go back when a node with a slow clock took it over. */
    r.created_at = r.created_at > j->last_message_at ? r.created_at : j->last_message_at;
    j->last_message_at = r.created_at;
    unit = gl_step_get(c, j, (uint32_t)to);
    q = gl_mailbox_message_new(c, j, (uint32_t)to, &r);
    if (q->body != NULL) { /* a dead letter may refer to the same body (bodies.c) */
        q->body->is_kept = j->r.dead_n > 0;
    }
    /* In its receiver's inbox for now; gl_mailbox_on_load() places it once all steps are known. */
    gl_list_push(&gl_mailbox_of(c, unit)->messages, &q->link);
    unit->mailbox->n++;
    return 0;
}

/* Has the message been loaded that the unit's record says it handles? */
static bool has_message(const struct gl_step *unit)
{
    GL_ASSERT(unit->r.letter != 0);
    for (const struct gl_link *k = unit->mailbox != NULL ? unit->mailbox->messages.next : NULL;
         k != NULL && k != &unit->mailbox->messages; k = k->next) {
        if (GL_CONTAINER(k, struct gl_queued_message, link)->r.number == unit->r.letter) {
            return true;
        }
    }
    return false;
}

bool gl_mailbox_is_complete(struct gl_job *j)
{
    uint64_t messages = 0;

    for (uint32_t i = 0; i < gl_flow_agents_n(j->spec->flow); i++) {
        const struct gl_step *unit = gl_step_find(j, i);

        if (unit != NULL && unit->r.letter != 0 && !has_message(unit)) {
            return false;
        }
        messages += unit != NULL && unit->mailbox != NULL ? unit->mailbox->n : 0;
    }
    return messages == j->r.waiting_n;
}

/* Moves a loaded message from its receiver's inbox to where its status says it belongs. */
static void place_message(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q)
{
    struct gl_job *j = unit->job;
    struct gl_step *step = NULL;

    GL_ASSERT(unit->mailbox->n > 0);
    GL_ASSERT(q->unit == unit->of);
    switch ((enum gl_message_status)q->r.status) {
    case GL_MESSAGE_QUEUED:
    case GL_MESSAGE_HANDLING:
        step = gl_mailbox_step_of(c, j, q);
        if (unit->r.letter != q->r.number) {
            gl_message_order_put(unit, q);
            if (GL_PLANT(35)) { /* planted: the newest is handled first */
                q->rank = -(gl_ms)q->r.number;
                gl_heap_moved(&unit->mailbox->inbox, &q->waits);
            }
            return;
        }
        q->r.status = GL_MESSAGE_HANDLING;
        unit->mailbox->now = q;
        if (step != NULL && step->r.letter == q->r.number) {
            gl_mailbox_of(c, step)->now = q;
        }
        break;
    case GL_MESSAGE_DEFERRED:
    case GL_MESSAGE_KEPT:
        step = gl_mailbox_step_of(c, j, q);
        if (step == NULL) {
            gl_message_order_put(unit, q);
            return;
        }
        break;
    case GL_MESSAGE_COUNTED:
        break;
    }
    gl_list_remove(&q->link);
    unit->mailbox->n--;
    if (q->r.status == GL_MESSAGE_COUNTED) {
        gl_message_order_collect(unit, q);
        gl_builtin_agent_count(c, unit, q);
        if (unit->r.letter == q->r.number) { /* the unit was about to complete with this one */
            unit->mailbox->now = q;
        }
    } else if (q->r.status == GL_MESSAGE_DEFERRED) {
        gl_list_push(&gl_mailbox_of(c, step)->messages, &q->link);
        step->mailbox->n++;
    } else if (q->r.status == GL_MESSAGE_KEPT) {
        gl_mailbox_of(c, step)->now = q;
    }
}

void gl_mailbox_on_load(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    for (uint32_t i = 0; i < gl_flow_agents_n(j->spec->flow); i++) {
        struct gl_step *unit = gl_step_find(j, i);
        struct gl_link *next;

        if (unit == NULL || unit->mailbox == NULL) {
            continue;
        }
        for (struct gl_link *k = unit->mailbox->messages.next; k != &unit->mailbox->messages;
             k = next) {
            next = k->next;
            place_message(c, unit, GL_CONTAINER(k, struct gl_queued_message, link));
        }
        GL_ASSERT(unit->mailbox->inbox.n == unit->mailbox->n);
        gl_mailbox_schedule(c, unit);
    }
}
