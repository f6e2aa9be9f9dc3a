/* outbox.c - the sender's side of a command for a job of another node. The states are drawn in
 * outbox.h. Every state but WAITING has one call in flight, so `call` identifies the command that
 * an answer belongs to. */
#include "core/cluster/outbox.h"

#include "base/limits.h"
#include "core/cluster/inbox.h"
#include "core/component.h"

enum {
    LOOK_MS = 300,       /* between two reads of the answer */
    PATIENCE_MS = 30000, /* until the command is withdrawn */
    LAST_MS = 5000,      /* for the answer, once we know that the command was executed */
};

#define SENT_STATES(X)            \
    X(SENDING, "sending")         \
    X(WAITING, "waiting")         \
    X(LOOKING, "looking")         \
    X(TAKING_BACK, "taking_back") \
    X(REMOVING, "removing")

enum sent_state {
#define X(name, word) name,
    SENT_STATES(X)
#undef X
};

static const char *const state_words[] = {
#define X(name, word) word,
    SENT_STATES(X)
#undef X
        NULL};

struct gl_sent_command {
    struct gl_link link;
    uint8_t state;    /* enum sent_state */
    uint64_t request; /* the client's */
    uint64_t call;    /* in flight in every state but WAITING */
    gl_str job, number, index;
    gl_ms sent_at; /* its score in the index */
    gl_ms due;     /* WAITING: when to read the answer next */
    gl_ms until;   /* after this it is withdrawn, or given up if `is_taken` */
    bool is_taken; /* it could not be withdrawn: a node has executed it */
};

#define F(member, type) GL_FIELD(gl_sent_command, member, type, 0, "")

static const struct gl_field sent_fields[] = {
    GL_FIELD_ENUM(gl_sent_command, state, state_words, GL_FF_ALWAYS, ""),
    F(request, U64),
    F(call, U64),
    F(job, STR),
    F(number, STR),
    F(index, STR),
    F(sent_at, I64),
    F(due, I64),
    F(until, I64),
    F(is_taken, BOOL),
};
#undef F

static const struct gl_schema sent_schema = {.name = "sent",
                                             .bytes = sizeof(struct gl_sent_command),
                                             .fields = sent_fields,
                                             .fields_n = GL_COUNT(sent_fields)};

static struct gl_sent_command *sent_of(struct gl_link *l)
{
    return GL_CONTAINER(l, struct gl_sent_command, link);
}

static void drop(struct gl_core *c, struct gl_sent_command *s)
{
    GL_ASSERT(!gl_list_empty(&s->link));
    gl_list_remove(&s->link);
    gl_core_disown(c, &sent_schema, s);
    gl_pool_free(&c->mem, s, sizeof(*s));
}

void gl_outbox_init(struct gl_core *c)
{
    gl_list_init(&c->outbox.sent);
}

void gl_outbox_done(struct gl_core *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->outbox.sent)) != NULL;) {
        drop(c, sent_of(l));
    }
    GL_ASSERT(gl_list_empty(&c->outbox.sent));
}

/* ---- replies ---- */

static void reply(struct gl_core *c, const struct gl_sent_command *s, int code, gl_str why)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_REPLY, 0);

    GL_ASSERT(s->request != 0);
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, s->job);
    e->request = s->request;
    e->code = gl_err_code(code);
    e->reason = gl_err_reason(code);
    e->why = gl_str_dup(c->out->arena, why);
}

static void reply_and_drop(struct gl_core *c, struct gl_sent_command *s, int code, gl_str why)
{
    GL_ASSERT(s->state != REMOVING); /* it has had its reply */
    GL_ASSERT(s->call == 0);
    GL_ASSERT(code != 0);
    reply(c, s, code, why);
    drop(c, s);
}

/* ---- sending ---- */

static gl_str entry_id(const struct gl_core *c, const struct gl_sent_command *s)
{
    GL_ASSERT(s->job.n == GL_ULID_BYTES);
    GL_ASSERT(s->number.n == GL_ULID_BYTES);
    return gl_str_fmt(c->out->arena, "%.*s/%.*s", GL_STR_ARG(s->job), GL_STR_ARG(s->number));
}

/* What the owner needs to know. Nodes of other releases read this format. */
static gl_str command_text(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_event less = *ev;
    struct gl_buf text = {0};
    gl_str ret;

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    less.now = c->now;
    less.command.request = 0;
    less.command.send_as = (gl_str){0};
    gl_event_encode(&less, &text);
    ret = gl_str_dup(c->out->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return ret;
}

static void put_entry(struct gl_core *c, struct gl_sent_command *s, const struct gl_event *ev)
{
    struct gl_guard guard = {.type = GL_GUARD_PRESENT, .kind = GL_S("job"), .id = s->job};
    struct gl_write writes[] = {
        {.type = GL_WRITE_PUT,
         .kind = GL_S("inbox"),
         .id = entry_id(c, s),
         .rev = 1,
         .value = command_text(c, ev)},
        {.type = GL_WRITE_INDEX, .kind = s->index, .id = entry_id(c, s), .score = s->sent_at}};
    struct gl_tx *tx = gl_component_tx(c, &guard, 1, writes, GL_COUNT(writes));

    GL_ASSERT(s->call == 0);
    GL_ASSERT(s->sent_at == c->now);
    tx->wake = GL_S("inbox");
    s->state = SENDING;
    s->call = gl_component_commit(c, GL_COMPONENT_OUTBOX, tx);
    GL_ASSERT(s->call == c->last_call);
}

void gl_outbox_send(struct gl_core *c, const struct gl_job *j, const struct gl_event *ev)
{
    struct gl_sent_command *s;

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    GL_ASSERT(ev->command.request != 0);
    GL_ASSERT(!gl_inbox_has(ev->command.request)); /* a command from an inbox is not forwarded */
    GL_ASSERT(gl_str_eq(ev->job, j->id));
    GL_ASSERT(c->shared);
    GL_MARK(c->trace, "load.forwarded");
    if (!gl_components_are_on(c) || ev->command.send_as.n != GL_ULID_BYTES) {
        return; /* a node that ends refuses all its pending requests itself */
    }
    s = gl_pool_alloc(&c->mem, sizeof(*s));
    gl_list_init(&s->link);
    gl_list_push(&c->outbox.sent, &s->link);
    s->request = ev->command.request;
    s->sent_at = c->now;
    s->until = c->now + PATIENCE_MS;
    s->due = INT64_MAX;
    gl_core_set(c, &s->job, j->id);
    gl_core_set(c, &s->number, ev->command.send_as);
    gl_core_set(c, &s->index, gl_job_index(c->out->arena, "inbox", j->r.stack, j->r.env_scope));
    put_entry(c, s, ev);
}

static void wait_until(struct gl_sent_command *s, gl_ms until)
{
    GL_ASSERT(s->call == 0);
    GL_ASSERT(s->state != REMOVING);
    s->state = WAITING;
    s->due = until;
}

static void on_sent(struct gl_core *c, struct gl_sent_command *s, const struct gl_event *ev)
{
    int code = (int)ev->answer.code;

    GL_ASSERT(s->state == SENDING);
    GL_ASSERT(!s->is_taken);
    if (code == GL_E_CONFLICT) {
        reply_and_drop(c, s, GL_R_JOB_REMOVED, GL_S("the job has been removed"));
    } else if (code == GL_E_LIMIT || code == GL_E_UNAVAILABLE) {
        reply_and_drop(c, s, code, ev->answer.why);
    } else if (code == 0 && GL_PLANT(95)) { /* planted: sent is as good as done */
        reply(c, s, 0, (gl_str){0});
        drop(c, s);
    } else if (code != 0 && GL_PLANT(97)) { /* planted: nobody waits for it any more */
        drop(c, s);
    } else { /* if the outcome is unknown, wait for an answer: it must not be sent twice */
        wait_until(s, c->now + LOOK_MS);
    }
}

/* ---- its answer ---- */

static void read_answer(struct gl_core *c, struct gl_sent_command *s)
{
    struct gl_key key = {.kind = GL_S("answer"), .id = s->number};

    if (GL_PLANT(96)) { /* planted: the answer to the oldest command, whichever this is */
        key.id = sent_of(gl_list_first(&c->outbox.sent))->number;
    }
    GL_ASSERT(s->state == WAITING);
    GL_ASSERT(s->due <= c->now);
    GL_ASSERT(s->call == 0);
    s->state = LOOKING;
    s->due = INT64_MAX;
    s->call = gl_component_get(c, GL_COMPONENT_OUTBOX, &key, 1);
    GL_ASSERT(s->call == c->last_call);
}

static void withdraw(struct gl_core *c, struct gl_sent_command *s)
{
    gl_str id = entry_id(c, s);
    struct gl_guard guard = {.type = GL_GUARD_PRESENT, .kind = GL_S("inbox"), .id = id};
    struct gl_write writes[] = {
        {.type = GL_WRITE_DELETE, .kind = GL_S("inbox"), .id = id},
        {.type = GL_WRITE_UNINDEX, .kind = s->index, .id = id, .score = s->sent_at}};

    GL_ASSERT(s->state == LOOKING);
    GL_ASSERT(!s->is_taken);
    GL_ASSERT(c->now >= s->until);
    s->state = TAKING_BACK;
    s->call = gl_component_commit(c, GL_COMPONENT_OUTBOX,
                                  gl_component_tx(c, &guard,
                                                  GL_PLANT(98) ? 0 : 1, /* planted: done or not */
                                                  writes, GL_COUNT(writes)));
    GL_ASSERT(s->call == c->last_call);
}

static void on_withdrawn(struct gl_core *c, struct gl_sent_command *s, const struct gl_event *ev)
{
    GL_ASSERT(s->state == TAKING_BACK);
    GL_ASSERT(s->call == 0);
    if (ev->answer.code == 0) {
        reply_and_drop(
            c, s, GL_R_COMMAND_WITHDRAWN,
            GL_S("no node accepted the command within 30 s, so nothing was done: 'glia why' "
                 "shows which node owns the job"));
    } else if (ev->answer.code == GL_E_CONFLICT && !s->is_taken) {
        s->is_taken = true; /* the entry is gone, so there should be an answer */
        s->until = c->now + LAST_MS;
        wait_until(s, c->now);
    } else if (ev->answer.code == GL_E_CONFLICT) {
        reply_and_drop(c, s, GL_R_OUTCOME_UNKNOWN,
                       GL_S("the command was executed, but its reply was lost: check the job"));
    } else {
        wait_until(s, c->now + LOOK_MS);
    }
}

static void reply_from_answer(struct gl_core *c, const struct gl_sent_command *s, gl_str text)
{
    struct gl_arena *a = c->out->arena;
    enum gl_reason reason = GL_REASON_NONE;
    int64_t code = GL_E_DAMAGED;
    gl_str why = GL_S("cannot decode the reply to this command");
    struct gl_json j;

    GL_ASSERT(s->state == LOOKING);
    if (gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, NULL) != 0 ||
        !gl_json_i64(&j, gl_json_get(&j, gl_json_root(&j), "code"), &code) ||
        !gl_err_is_plain(code)) {
        code = GL_E_DAMAGED;
    } else {
        why = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "why"), a);
        reason = gl_reason_from_word(
            gl_str_c(a, gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reason"), a)));
    }
    reply(c, s, gl_err_join((int)code, reason), why);
}

static void on_answer_read(struct gl_core *c, struct gl_sent_command *s, const struct gl_event *ev)
{
    const struct gl_event_record *r = ev->answer.records.items;
    bool is_there = ev->answer.code == 0 && ev->answer.records.n > 0 && r->rev > 0;
    struct gl_write write = {.type = GL_WRITE_DELETE, .kind = GL_S("answer"), .id = s->number};

    GL_ASSERT(s->state == LOOKING);
    GL_ASSERT(s->call == 0);
    if (is_there) {
        reply_from_answer(c, s, r->value);
        s->state = REMOVING;
        s->call =
            gl_component_commit(c, GL_COMPONENT_OUTBOX, gl_component_tx(c, NULL, 0, &write, 1));
    } else if (c->now >= s->until && s->is_taken) {
        reply_and_drop(c, s, GL_R_OUTCOME_UNKNOWN,
                       GL_S("the command was executed, but its reply was lost: check the job"));
    } else if (c->now >= s->until && gl_components_are_on(c)) {
        withdraw(c, s);
    } else {
        wait_until(s, c->now + LOOK_MS);
    }
}

/* ---- the component ---- */

void gl_outbox_on_woken(struct gl_core *c)
{
    for (struct gl_link *l = c->outbox.sent.next; l != &c->outbox.sent; l = l->next) {
        if (sent_of(l)->state == WAITING) {
            sent_of(l)->due = c->now;
        }
    }
}

static gl_ms due(const struct gl_core *c)
{
    gl_ms due = INT64_MAX;

    for (const struct gl_link *l = c->outbox.sent.next; l != &c->outbox.sent; l = l->next) {
        const struct gl_sent_command *s = GL_CONTAINER(l, struct gl_sent_command, link);

        due = s->state == WAITING && s->due < due ? s->due : due;
    }
    return due;
}

static void on_time(struct gl_core *c)
{
    for (struct gl_link *l = c->outbox.sent.next; l != &c->outbox.sent; l = l->next) {
        if (sent_of(l)->state == WAITING && sent_of(l)->due <= c->now) {
            read_answer(c, sent_of(l));
        }
    }
}

static struct gl_sent_command *find(struct gl_core *c, uint64_t call)
{
    for (struct gl_link *l = c->outbox.sent.next; l != &c->outbox.sent; l = l->next) {
        if (sent_of(l)->state != WAITING && sent_of(l)->call == call) {
            return sent_of(l);
        }
    }
    return NULL;
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_sent_command *s = find(c, ev->answer.number);

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_OUTBOX);
    if (s == NULL) {
        return;
    }
    s->call = 0;
    if (s->state == REMOVING) {
        drop(c, s); /* retention removes an answer that could not be deleted */
        return;
    }
    if (!gl_components_may_finish(c)) {
        drop(c, s); /* our session is lost: the node refuses its pending requests */
        return;
    }
    switch ((enum sent_state)s->state) {
    case SENDING:
        on_sent(c, s, ev);
        break;
    case LOOKING:
        on_answer_read(c, s, ev);
        break;
    case TAKING_BACK:
        on_withdrawn(c, s, ev);
        break;
    case WAITING:
    case REMOVING:
        GL_UNREACHABLE();
    }
}

/* ---- in a snapshot of the core ---- */

struct saved_outbox {
    struct gl_items sent; /* struct gl_sent_command */
};

static const struct gl_field outbox_fields[] = {
    GL_FIELD_SUB(saved_outbox, sent, LIST, &sent_schema, 0, ""),
};

GL_SNAPSHOT_SCHEMA(outbox);

static void save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_link *head = &c->outbox.sent;
    struct saved_outbox s = {0};
    struct gl_sent_command *all;

    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        s.sent.n++;
    }
    s.sent.items = all = GL_NEW_ARRAY(&a, struct gl_sent_command, s.sent.n + 1);
    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        *all++ = *GL_CONTAINER(l, struct gl_sent_command, link);
    }
    GL_ASSERT(all == (struct gl_sent_command *)s.sent.items + s.sent.n);
    gl_snapshot_put(out, "outbox", &outbox_schema, &s);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    const struct gl_sent_command *all;
    struct saved_outbox s = {0};
    int rc = gl_snapshot_get(l, &outbox_schema, &s);

    all = s.sent.items;
    for (size_t i = 0; rc == 0 && i < s.sent.n; i++) {
        struct gl_sent_command *to;

        if (all[i].job.n != GL_ULID_BYTES || all[i].number.n != GL_ULID_BYTES) {
            return gl_snapshot_bad(l, "a sent command has no valid id");
        }
        to = gl_pool_alloc(&c->mem, sizeof(*to));
        gl_list_init(&to->link);
        gl_core_adopt(c, &sent_schema, to, &all[i]);
        gl_list_push(&c->outbox.sent, &to->link);
    }
    return rc;
}

const struct gl_component gl_outbox = {.name = "outbox",
                                       .due = due,
                                       .on_time = on_time,
                                       .on_answer = on_answer,
                                       .save = save,
                                       .restore = restore};
