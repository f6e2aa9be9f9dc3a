/* mailbox.c - letters: their records, and the mailboxes they are in.
 *
 * A job counts its letters (waiting_n) and numbers every message it has ever sent (letters_n). Both
 * are in the job's record, which the same transactions write; so gl_mailbox_is_complete() can tell
 * after a load whether the store has lost a letter. */
#include "core/agents/mailbox.h"

#include "base/check.h"
#include "base/sha256.h"
#include "core/agents/agents.h"
#include "core/agents/letter_order.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"

static const char *const status_words[] = {
#define X(name, word) word,
    GL_LETTER_STATUSES(X)
#undef X
        NULL,
};

#define LF(member, type, flags, doc) GL_FIELD(gl_letter_record, member, type, flags, doc)

static const struct gl_field letter_fields[] = {
    LF(number, U64, GL_FF_REQUIRED, "Its number in the job."),
    GL_FIELD_ENUM(gl_letter_record, status, status_words, GL_FF_ALWAYS, "Its status."),
    LF(to, STR, GL_FF_REQUIRED, "The agent that receives it."),
    LF(from, STR, 0, "Its sender."),
    LF(type, STR, 0, "Its type."),
    LF(step, STR, 0, "The step it is for."),
    LF(sender, STR, 0, "The sender named in its body."),
    LF(created_at, TIME, 0, "When it was sent."),
    LF(expires_at, TIME, 0, "When it expires."),
    LF(urgency, I64, 0, "Its priority, less the usual one."),
    LF(again, BOOL, 0, "A retry gets it again: it goes before all others."),
    LF(body, U64, 0, "The number of the letter that brought its body, if that is a large one."),
    LF(body_bytes, U64, 0, "The size of that body."),
    LF(large, BOOL, 0, "The whole message is a record of its own."),
    LF(message, RAW, 0, "The message; without its body if it is large."),
};

const struct gl_schema gl_letter_schema = {
    .name = "letter",
    .doc = "A message between agents that has not been handled.",
    .bytes = sizeof(struct gl_letter_record),
    .fields = letter_fields,
    .fields_n = GL_COUNT(letter_fields),
};

struct gl_mailbox *gl_mailbox_of(struct gl_core *c, struct gl_step *st)
{
    if (st->mail == NULL) {
        st->mail = gl_pool_alloc(&c->mem, sizeof(*st->mail));
        st->mail->unit = st;
        gl_list_init(&st->mail->letters);
        gl_letter_order_init(&st->mail->inbox);
        gl_list_init(&st->mail->counted);
        gl_list_init(&st->mail->due);
        gl_list_init(&st->mail->idle);
    }
    GL_ASSERT(st->mail->unit == st);
    return st->mail;
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
        gl_list_push(&unit->job->mailed, &m->due);
    }
    GL_ASSERT(gl_list_empty(&m->idle));
    GL_ASSERT(!gl_list_empty(&m->due));
}

/* ---- records ---- */

/* The number has a fixed width, so that listing the records yields the letters in order. */
static gl_str id_of(struct gl_core *c, const struct gl_job *j, uint64_t number)
{
    return gl_str_fmt(c->out->arena, "%.*s/%012llu", GL_STR_ARG(j->id), (unsigned long long)number);
}

/* Writes the record as it is now; later writes in the same transaction replace it. */
static void write_letter(struct gl_core *c, struct gl_job *j, struct gl_letter *l)
{
    struct gl_buf buf = {0};
    struct gl_write *w = gl_txn_write(c, j, GL_WRITE_PUT, GL_S("letter"), id_of(c, j, l->r.number));
    struct gl_jw jw;

    GL_ASSERT(l->r.status != GL_LETTER_HANDLING);
    GL_ASSERT(l->r.number > 0);
    gl_jw_init(&jw, &buf);
    gl_jw_object(&jw);
    gl_schema_write(&gl_letter_schema, &l->r, &jw, GL_FOR_STORE);
    gl_jw_end(&jw);
    w->live = true;
    w->value = gl_str_dup(c->out->arena, gl_buf_view(&buf));
    gl_buf_done(&buf);
}

/* From memory only. Its body loses a reference but keeps its records. */
static void letter_free(struct gl_core *c, struct gl_letter *l)
{
    GL_ASSERT(l->r.number > 0);
    gl_list_remove(&l->link);
    gl_body_release(c, l->body);
    gl_core_set(c, &l->r.from, (gl_str){0});
    gl_core_set(c, &l->r.type, (gl_str){0});
    gl_core_set(c, &l->r.step, (gl_str){0});
    gl_core_set(c, &l->r.sender, (gl_str){0});
    gl_core_set(c, &l->r.message, (gl_str){0});
    gl_pool_free(&c->mem, l, sizeof(*l));
}

struct gl_letter *gl_mailbox_letter_new(struct gl_core *c, struct gl_job *j, uint32_t unit,
                                        const struct gl_letter_record *r)
{
    struct gl_letter *l = gl_pool_alloc(&c->mem, sizeof(*l));

    GL_ASSERT(unit < gl_flow_agents_n(j->spec->flow));
    gl_list_init(&l->link);
    l->unit = unit;
    l->r = (struct gl_letter_record){.number = r->number,
                                     .status = r->status,
                                     .to = gl_flow_agent(j->spec->flow, unit)->id,
                                     .created_at = r->created_at,
                                     .expires_at = r->expires_at,
                                     .urgency = r->urgency,
                                     .again = r->again,
                                     .body = r->body,
                                     .body_bytes = r->body_bytes,
                                     .large = r->large};
    l->body = r->body > 0 ? gl_body_acquire(c, j, r->body, r->body_bytes) : NULL;
    gl_core_set(c, &l->r.from, r->from);
    gl_core_set(c, &l->r.type, r->type);
    gl_core_set(c, &l->r.step, r->step);
    gl_core_set(c, &l->r.sender, r->sender);
    gl_core_set(c, &l->r.message, r->message);
    return l;
}

/* ---- sending ---- */

/* Backpressure begins at the high watermark and ends at the low one. */
static void update_backpressure(struct gl_core *c, struct gl_step *unit)
{
    const struct gl_agent_spec *a = gl_flow_agent(unit->job->spec->flow, unit->of);
    struct gl_mailbox *m = unit->mail;
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
    if (unit != NULL && unit->mail != NULL && unit->mail->n >= GL_INBOX_MAX) {
        return "the receiver's inbox is full";
    }
    return j->r.waiting_n >= GL_JOB_LETTERS_MAX ? "the job has too many waiting messages" : NULL;
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

/* Makes a message that never became a letter a dead letter. */
static void make_dead(struct gl_core *c, struct gl_job *j, const struct gl_message *m, gl_str text,
                      uint64_t number, gl_str why, struct gl_body *body)
{
    GL_ASSERT(number <= j->r.letters_n);
    write_dead_letter(c, j, m, text.n <= GL_MESSAGE_BYTES_MAX ? text : GL_S("null"), number, why);
    keep_body(c, body);
}

void gl_mailbox_post_dead(struct gl_core *c, struct gl_job *j, struct gl_message *m, gl_str why)
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
                     struct gl_letter_record *r)
{
    struct gl_message head = *m;

    GL_ASSERT(r->number > 0);
    GL_ASSERT(text.n > 0);
    r->large = text.n > GL_LETTER_BYTES_MAX;
    r->message = text;
    if (r->large) {
        head.body = (gl_str){0};
        r->message = text_of(c, &head);
        gl_txn_write(c, j, GL_WRITE_PUT, GL_S("message"), id_of(c, j, r->number))->value = text;
    }
}

struct gl_letter *gl_mailbox_post(struct gl_core *c, struct gl_job *j, struct gl_message *m,
                                  uint32_t to, const struct gl_step *step)
{
    struct gl_step *unit = gl_step_get(c, j, to);
    const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, to);
    struct gl_letter_record r = {.number = ++j->r.letters_n,
                                 .from = m->from,
                                 .type = m->type,
                                 .step = step != NULL ? step->r.step_id : (gl_str){0},
                                 .created_at = gl_letter_order_date(c, j),
                                 .expires_at = m->ttl_ms > 0 ? c->now + m->ttl_ms : 0,
                                 .urgency = gl_letter_order_urgency(m)};
    struct gl_body *body;
    struct gl_letter *l;
    const char *bad;
    gl_str text;

    GL_ASSERT(to < gl_flow_agents_n(j->spec->flow));
    GL_ASSERT(step == NULL || gl_step_is_bound(step));
    r.sender = a->kind == GL_AGENT_AGGREGATOR ? sender_of(c, m) : (gl_str){0};
    m->to = a->id;
    text = assign_number(c, j, m, r.number, &body);
    bad = why_undeliverable(j, unit, text);
    if (bad !=
        NULL) { /* dead, not refused: the sender's turn commits whatever happens to its mail */
        gl_agents_log(c, unit, "backpressure_rejected", gl_str_of(bad), (gl_str){0});
        make_dead(c, j, m, text, r.number, gl_str_of(bad), body);
        return NULL;
    }
    if (body != NULL) {
        r.body = body->number;
        r.body_bytes = body->bytes;
    }
    set_text(c, j, m, text, &r);
    l = gl_mailbox_letter_new(c, j, to, &r);
    gl_body_release(c, body); /* the letter has a reference of its own */
    write_letter(c, j, l);
    (void)gl_mailbox_of(c, unit); /* created if it has none */
    gl_letter_order_enqueue(unit, l);
    j->r.waiting_n++;
    log_queued(c, unit, m);
    update_backpressure(c, unit);
    gl_mailbox_schedule(c, unit);
    GL_ASSERT(unit->mail->n > 0);
    GL_ASSERT(unit->mail->n <= GL_INBOX_MAX);
    GL_ASSERT(j->r.waiting_n > 0);
    GL_ASSERT(l->unit == unit->of);
    return l;
}

/* ---- handling ---- */

void gl_mailbox_set_status(struct gl_core *c, struct gl_job *j, struct gl_letter *l,
                           enum gl_letter_status status)
{
    GL_ASSERT(status != GL_LETTER_HANDLING); /* never written */
    if (l->r.status != status) {
        l->r.status = (uint8_t)status;
        write_letter(c, j, l);
    }
}

void gl_mailbox_take(struct gl_core *c, struct gl_step *unit, struct gl_letter *l)
{
    struct gl_mailbox *m = unit->mail;

    GL_ASSERT(m->n > 0);
    GL_ASSERT(l->unit == unit->of);
    gl_list_remove(&l->link);
    gl_heap_remove(&m->inbox, &l->waits);
    m->n--;
    if (m->n == 0) { /* an agent that is idle takes no memory for messages */
        gl_heap_done(&m->inbox);
        gl_letter_order_init(&m->inbox);
    }
    update_backpressure(c, unit);
}

void gl_mailbox_drop(struct gl_core *c, struct gl_job *j, struct gl_letter *l)
{
    gl_str id = id_of(c, j, l->r.number);

    GL_ASSERT(!gl_heap_has(&l->waits)); /* gl_mailbox_take() comes first */
    /* In the transaction of the turn: if it fails, the letter is still there and is handled again.
     */
    (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("letter"), id);
    if (l->r.large) {
        (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("message"), id);
    }
    GL_ASSERT(j->r.waiting_n > 0);
    j->r.waiting_n--;
    gl_body_delete(c, l->body);
    l->body = NULL;
    letter_free(c, l);
}

void gl_mailbox_make_dead(struct gl_core *c, struct gl_job *j, struct gl_letter *l, gl_str why)
{
    struct gl_message m = {.to = l->r.to, .from = l->r.from, .type = l->r.type};

    GL_ASSERT(why.n > 0);
    write_dead_letter(c, j, &m, l->r.large ? GL_S("null") : l->r.message, l->r.number, why);
    l->r.large = false; /* the dead letter needs the record "message" */
    keep_body(c, l->body);
    l->body = NULL;
    gl_mailbox_drop(c, j, l);
}

void gl_mailbox_hold(struct gl_core *c, struct gl_step *step, struct gl_letter *l)
{
    GL_ASSERT(gl_step_is_bound(step));
    GL_ASSERT(!gl_heap_has(&l->waits));
    gl_mailbox_set_status(c, step->job, l, GL_LETTER_HELD);
    gl_list_push(&gl_mailbox_of(c, step)->letters, &l->link);
    step->mail->n++;
    GL_ASSERT(l->r.status == GL_LETTER_HELD);
    GL_ASSERT(step->mail->n > 0);
}

void gl_mailbox_release(struct gl_core *c, struct gl_step *step)
{
    struct gl_job *j = step->job;

    GL_ASSERT(gl_step_is_bound(step));
    while (step->mail != NULL && step->mail->n > 0) {
        struct gl_letter *l = GL_CONTAINER(step->mail->letters.next, struct gl_letter, link);
        struct gl_step *unit = gl_step_get(c, j, l->unit);

        gl_list_remove(&l->link);
        step->mail->n--;
        gl_mailbox_set_status(c, j, l, GL_LETTER_QUEUED);
        (void)gl_mailbox_of(c, unit); /* created if it has none */
        gl_letter_order_enqueue(unit, l);
        gl_mailbox_schedule(c, unit);
        if (GL_PLANT(32)) {
            break; /* planted: only the first one is released */
        }
    }
}

void gl_mailbox_discard(struct gl_core *c, struct gl_step *step)
{
    GL_ASSERT(gl_step_is_bound(step));
    if (step->mail == NULL) {
        return;
    }
    for (struct gl_link *k; (k = gl_list_first(&step->mail->letters)) != NULL;) {
        gl_txn_log(c, step->job, step, "workflow_step_duplicate_message_ignored",
                   GL_S("the step has ended"), (gl_str){0});
        gl_mailbox_drop(c, step->job, GL_CONTAINER(k, struct gl_letter, link));
    }
    step->mail->n = 0;
    if (step->mail->now != NULL && step->mail->now->r.status == GL_LETTER_KEPT) {
        gl_mailbox_drop(c, step->job, step->mail->now);
    }
    step->mail->now = NULL;
    GL_ASSERT(gl_list_empty(&step->mail->letters));
}

struct gl_step *gl_mailbox_step_of(struct gl_core *c, struct gl_job *j, const struct gl_letter *l)
{
    uint32_t of;
    int32_t item;

    if (l->r.step.n == 0 || !gl_step_split_id(j->spec->flow, l->r.step, &of, &item)) {
        return NULL;
    }
    return item < 0 ? gl_step_get(c, j, of) : gl_step_by_id(j, l->r.step);
}

/* ---- loading and unloading ---- */

static void free_letters(struct gl_core *c, struct gl_link *list)
{
    for (struct gl_link *k; (k = gl_list_first(list)) != NULL;) {
        letter_free(c, GL_CONTAINER(k, struct gl_letter, link));
    }
    GL_ASSERT(gl_list_empty(list));
}

/* The letter is about to be freed: its ledger step must not point to it. */
static void clear_step_pointer(struct gl_job *j, const struct gl_letter *l)
{
    struct gl_step *step = l->r.step.n > 0 ? gl_step_by_id(j, l->r.step) : NULL;

    if (step != NULL && step->mail != NULL && step->mail->now == l) {
        step->mail->now = NULL;
    }
}

void gl_mailbox_free_step(struct gl_core *c, struct gl_step *st)
{
    struct gl_mailbox *m = st->mail;

    if (m == NULL) {
        return;
    }
    /* A letter being handled belongs to its unit; the ledger step only points to it. */
    if (m->now != NULL && gl_step_is_unit(st)) {
        clear_step_pointer(st->job, m->now);
        letter_free(c, m->now); /* leaves the list `counted`, too, if it is in it */
    } else if (m->now != NULL && m->now->r.status == GL_LETTER_KEPT) {
        letter_free(c, m->now);
    }
    gl_heap_done(&m->inbox);
    free_letters(c, &m->letters);
    free_letters(c, &m->counted);
    if (!gl_list_empty(&m->idle)) {
        gl_list_remove(&m->idle);
        GL_ASSERT(c->idle_n > 0);
        c->idle_n--;
    }
    gl_list_remove(&m->due);
    GL_ASSERT(st->job->asked_n >= (m->asked != 0));
    st->job->asked_n -= m->asked != 0;
    gl_pool_free(&c->mem, m, sizeof(*m));
    st->mail = NULL;
}

int gl_mailbox_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec)
{
    struct gl_letter_record r;
    struct gl_json json;
    struct gl_letter *l;
    struct gl_step *unit;
    int64_t to;

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (gl_json_parse(&json, rec->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL) != 0 ||
        gl_schema_read(&gl_letter_schema, &json, gl_json_root(&json), false, c->out->arena, &r,
                       NULL) != 0) {
        return GL_E_DAMAGED;
    }
    to = gl_flow_find_agent(j->spec->flow, r.to);
    /* Bytes from the store are checked, not asserted on. */
    if (to < 0 || !gl_letter_order_is_valid(&r) || r.number > j->r.letters_n ||
        r.body > j->r.letters_n) {
        return GL_E_DAMAGED;
    }
    /* They come in the order of their numbers. Releases that ordered them by number let the dates
     * of a job go back when a node with a slow clock took it over. */
    r.created_at = r.created_at > j->mail_at ? r.created_at : j->mail_at;
    j->mail_at = r.created_at;
    unit = gl_step_get(c, j, (uint32_t)to);
    l = gl_mailbox_letter_new(c, j, (uint32_t)to, &r);
    if (l->body != NULL) { /* a dead letter may refer to the same body (bodies.c) */
        l->body->is_kept = j->r.dead_n > 0;
    }
    /* In its receiver's inbox for now; gl_mailbox_on_load() places it once all steps are known. */
    gl_list_push(&gl_mailbox_of(c, unit)->letters, &l->link);
    unit->mail->n++;
    return 0;
}

/* Has the letter been loaded that the unit's record says it handles? */
static bool has_letter(const struct gl_step *unit)
{
    GL_ASSERT(unit->r.letter != 0);
    for (const struct gl_link *k = unit->mail != NULL ? unit->mail->letters.next : NULL;
         k != NULL && k != &unit->mail->letters; k = k->next) {
        if (GL_CONTAINER(k, struct gl_letter, link)->r.number == unit->r.letter) {
            return true;
        }
    }
    return false;
}

bool gl_mailbox_is_complete(struct gl_job *j)
{
    uint64_t letters = 0;

    for (uint32_t i = 0; i < gl_flow_agents_n(j->spec->flow); i++) {
        const struct gl_step *unit = gl_step_find(j, i);

        if (unit != NULL && unit->r.letter != 0 && !has_letter(unit)) {
            return false;
        }
        letters += unit != NULL && unit->mail != NULL ? unit->mail->n : 0;
    }
    return letters == j->r.waiting_n;
}

/* Moves a loaded letter from its receiver's inbox to where its status says it belongs. */
static void place_letter(struct gl_core *c, struct gl_step *unit, struct gl_letter *l)
{
    struct gl_job *j = unit->job;
    struct gl_step *step = NULL;

    GL_ASSERT(unit->mail->n > 0);
    GL_ASSERT(l->unit == unit->of);
    switch ((enum gl_letter_status)l->r.status) {
    case GL_LETTER_QUEUED:
    case GL_LETTER_HANDLING:
        step = gl_mailbox_step_of(c, j, l);
        if (unit->r.letter != l->r.number) {
            gl_letter_order_put(unit, l);
            if (GL_PLANT(35)) { /* planted: the newest is handled first */
                l->rank = -(gl_ms)l->r.number;
                gl_heap_moved(&unit->mail->inbox, &l->waits);
            }
            return;
        }
        l->r.status = GL_LETTER_HANDLING;
        unit->mail->now = l;
        if (step != NULL && step->r.letter == l->r.number) {
            gl_mailbox_of(c, step)->now = l;
        }
        break;
    case GL_LETTER_HELD:
    case GL_LETTER_KEPT:
        step = gl_mailbox_step_of(c, j, l);
        if (step == NULL) {
            gl_letter_order_put(unit, l);
            return;
        }
        break;
    case GL_LETTER_COUNTED:
        break;
    }
    gl_list_remove(&l->link);
    unit->mail->n--;
    if (l->r.status == GL_LETTER_COUNTED) {
        gl_letter_order_collect(unit, l);
        gl_builtin_agent_count(c, unit, l);
        if (unit->r.letter == l->r.number) { /* the unit was about to complete with this one */
            unit->mail->now = l;
        }
    } else if (l->r.status == GL_LETTER_HELD) {
        gl_list_push(&gl_mailbox_of(c, step)->letters, &l->link);
        step->mail->n++;
    } else if (l->r.status == GL_LETTER_KEPT) {
        gl_mailbox_of(c, step)->now = l;
    }
}

void gl_mailbox_on_load(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    for (uint32_t i = 0; i < gl_flow_agents_n(j->spec->flow); i++) {
        struct gl_step *unit = gl_step_find(j, i);
        struct gl_link *next;

        if (unit == NULL || unit->mail == NULL) {
            continue;
        }
        for (struct gl_link *k = unit->mail->letters.next; k != &unit->mail->letters; k = next) {
            next = k->next;
            place_letter(c, unit, GL_CONTAINER(k, struct gl_letter, link));
        }
        GL_ASSERT(unit->mail->inbox.n == unit->mail->n);
        gl_mailbox_schedule(c, unit);
    }
}
