/* snapshot_agents.c - saves what bundles have in memory in a snapshot of the core, and restores it:
 * the flow of a patched job, mailboxes with their messages, and idle agents.
 *
 * The mailboxes of agent units come before those of ledger steps, which may point to a message that
 * a unit handles. The senders an aggregator remembers are not saved: they follow from its counted
 * messages. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/agents/message_order.h"
#include "core/snapshot.h"

/* ---- a job ---- */

struct saved_agents {
    gl_str known; /* a bit for each unit, in hex: it has a record; "": unknown */
    gl_str graph; /* the job's own flow and the patches applied to it */
    gl_ms mail_at;
};

static const struct gl_field agents_fields[] = {
    GL_FIELD(saved_agents, known, STR, 0, ""),
    GL_FIELD(saved_agents, graph, RAW, 0, ""),
    GL_FIELD(saved_agents, mail_at, TIME, 0, ""),
};

GL_SNAPSHOT_SCHEMA(agents);

static size_t known_bytes(const struct gl_job *j)
{
    return gl_flow_agents_n(j->spec->flow) / 8 + 1;
}

static int digit_of(char ch)
{
    return ch >= '0' && ch <= '9' ? ch - '0' : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

void gl_snapshot_agents_job(const struct gl_job *j, struct gl_buf *out)
{
    struct gl_buf known = {0}, graph = {0};
    struct saved_agents s = {0};

    if (j->known == NULL && j->graph == NULL && j->last_message_at == 0) {
        return;
    }
    GL_ASSERT(j->memory == GL_MEM_HOT);
    for (size_t i = 0; j->known != NULL && i < known_bytes(j); i++) {
        gl_buf_fmt(&known, "%02x", j->known[i]);
    }
    if (j->graph != NULL) {
        gl_patch_apply_write(j, &graph);
    }
    s.known = gl_buf_view(&known);
    s.graph = gl_buf_view(&graph);
    s.mail_at = j->last_message_at;
    gl_snapshot_put(out, "agents", &agents_schema, &s);
    gl_buf_done(&known);
    gl_buf_done(&graph);
}

int gl_snapshot_agents_restore_job(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_job *j = l->job;
    struct saved_agents s;
    int rc = gl_snapshot_get(l, &agents_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (j == NULL || j->memory != GL_MEM_HOT || j->spec->flow->bundle == NULL || j->known != NULL ||
        !gl_list_empty(&j->live) || (s.known.n > 0 && s.known.n != 2 * known_bytes(j))) {
        return gl_snapshot_bad(l, "agents of a job that is missing or has none");
    }
    j->last_message_at = s.mail_at > 0 ? s.mail_at : 0;
    if (s.known.n > 0) {
        j->known = gl_pool_alloc(&c->mem, known_bytes(j));
    }
    for (size_t i = 0; i < s.known.n; i++) {
        int digit = digit_of(s.known.p[i]);

        if (digit < 0) {
            return gl_snapshot_bad(l, "the bits of known agents are not in hex");
        }
        j->known[i / 2] = (uint8_t)(j->known[i / 2] | (i % 2 == 0 ? digit << 4 : digit));
    }
    return s.graph.n > 0 ? gl_patch_apply_read(c, j, s.graph, l->arena) : 0;
}

/* ---- mailboxes ---- */

struct saved_mail {
    uint32_t number; /* of the step */
    bool is_pressed, is_fetched;
    uint64_t asked;
    uint64_t now;  /* ledger step: the number of its message, ... */
    uint32_t unit; /* ... which this unit handles */
};

static const struct gl_field mail_fields[] = {
    GL_FIELD(saved_mail, number, U32, 0, ""),      GL_FIELD(saved_mail, is_pressed, BOOL, 0, ""),
    GL_FIELD(saved_mail, is_fetched, BOOL, 0, ""), GL_FIELD(saved_mail, asked, U64, 0, ""),
    GL_FIELD(saved_mail, now, U64, 0, ""),         GL_FIELD(saved_mail, unit, U32, 0, ""),
};

GL_SNAPSHOT_SCHEMA(mail);

/* gathered: counted, and its turn has not ended */
static const char *const place_words[] = {"inbox", "counted", "now", "gathered", NULL};
enum { INBOX, COUNTED, NOW, GATHERED };

struct saved_letter {
    uint32_t number; /* of the step whose mailbox it is in */
    uint8_t place;
    bool body_is_kept;
    struct gl_message_record r;
};

static const struct gl_field letter_fields[] = {
    GL_FIELD(saved_letter, number, U32, 0, ""),
    GL_FIELD_ENUM(saved_letter, place, place_words, GL_FF_ALWAYS, ""),
    GL_FIELD(saved_letter, body_is_kept, BOOL, 0, ""),
    GL_FIELD_SUB(saved_letter, r, OBJECT, &gl_message_schema, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
};

GL_SNAPSHOT_SCHEMA(letter);

static void save_message(const struct gl_step *st, const struct gl_queued_message *q, uint8_t place,
                         struct gl_buf *out)
{
    struct saved_letter s = {.number = st->number,
                             .place = place,
                             .body_is_kept = q->body != NULL && q->body->is_kept,
                             .r = q->r};

    GL_ASSERT(place <= GATHERED);
    gl_snapshot_put(out, "letter", &letter_schema, &s);
}

static void save_messages(const struct gl_step *st, const struct gl_link *list, uint8_t place,
                          struct gl_buf *out)
{
    for (const struct gl_link *k = list->next; k != list; k = k->next) {
        const struct gl_queued_message *q = GL_CONTAINER(k, struct gl_queued_message, link);

        save_message(st, q, q == st->mailbox->now ? GATHERED : place, out);
    }
}

static void save_mail(const struct gl_step *st, struct gl_buf *out)
{
    const struct gl_mailbox *m = st->mailbox;
    bool is_own = m->now != NULL && (gl_step_is_unit(st) || m->now->r.status == GL_MESSAGE_KEPT);
    bool is_counted = is_own && m->now->r.status == GL_MESSAGE_COUNTED;
    struct saved_mail s = {.number = st->number,
                           .is_pressed = m->is_pressed,
                           .is_fetched = m->is_fetched,
                           .asked = m->asked,
                           .now = m->now != NULL && !is_own ? m->now->r.number : 0,
                           .unit = m->now != NULL && !is_own ? m->now->unit : 0};

    GL_ASSERT(m->unit == st);
    gl_snapshot_put(out, "mail", &mail_schema, &s);
    save_messages(st, &m->messages, INBOX, out);
    save_messages(st, &m->counted, COUNTED, out);
    if (is_own && !is_counted) {
        save_message(st, m->now, NOW, out);
    }
}

struct saved_number {
    uint32_t number;
};

static const struct gl_field number_fields[] = {GL_FIELD(saved_number, number, U32, 0, "")};

GL_SNAPSHOT_SCHEMA(number);

void gl_snapshot_agents_mailboxes(const struct gl_job *j, struct gl_buf *out)
{
    for (int ledger = 0; ledger < 2; ledger++) {
        for (const struct gl_link *k = j->live.next; k != &j->live; k = k->next) {
            const struct gl_step *st = GL_CONTAINER(k, struct gl_step, live);

            if (st->mailbox != NULL && gl_step_is_unit(st) == (ledger == 0)) {
                save_mail(st, out);
            }
        }
    }
    for (const struct gl_link *k = j->due_units.next; k != &j->due_units; k = k->next) {
        struct saved_number s = {.number = GL_CONTAINER(k, struct gl_mailbox, due)->unit->number};

        gl_snapshot_put(out, "mailed", &number_schema, &s);
    }
}

/* ---- restoring ---- */

static struct gl_step *step_of(const struct gl_snapshot_line *l, uint32_t number)
{
    return l->job != NULL && l->job->memory == GL_MEM_HOT && l->job->spec->flow->bundle != NULL
               ? gl_step_find(l->job, number)
               : NULL;
}

int gl_snapshot_agents_restore_mailbox(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_mail s;
    struct gl_step *st, *unit;
    int rc = gl_snapshot_get(l, &mail_schema, &s);

    if (rc != 0) {
        return rc;
    }
    st = step_of(l, s.number);
    if (st == NULL || st->mailbox != NULL) {
        return gl_snapshot_bad(l, "a mailbox belongs to no step, or is a duplicate");
    }
    gl_mailbox_of(c, st);
    st->mailbox->is_pressed = s.is_pressed;
    st->mailbox->is_fetched = s.is_fetched;
    st->mailbox->asked = s.asked;
    l->job->asked_n += s.asked != 0;
    if (s.now == 0) {
        return 0;
    }
    unit = gl_flow_is_unit(l->job->spec->flow, s.unit) ? gl_step_find(l->job, s.unit) : NULL;
    if (gl_step_is_unit(st) || unit == NULL || unit->mailbox == NULL ||
        unit->mailbox->now == NULL || unit->mailbox->now->r.number != s.now) {
        return gl_snapshot_bad(l, "no agent handles the message that a step waits for");
    }
    st->mailbox->now = unit->mailbox->now;
    return 0;
}

static void put_message(struct gl_core *c, struct gl_step *st, struct gl_queued_message *x,
                        uint8_t place)
{
    GL_ASSERT(place <= GATHERED);
    if (place == NOW) {
        st->mailbox->now = x;
    } else if (place == COUNTED || place == GATHERED) {
        gl_list_push(&st->mailbox->counted, &x->link);
        gl_builtin_agent_count(c, st, x);
        st->mailbox->now = place == GATHERED ? x : st->mailbox->now;
    } else if (gl_step_is_unit(st)) {
        gl_message_order_enqueue(st, x);
    } else {
        gl_list_push(&st->mailbox->messages, &x->link);
        st->mailbox->n++;
    }
}

int gl_snapshot_agents_restore_message(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_effects scratch = {.arena = l->arena}; /* for its arena: no effect is emitted */
    struct saved_letter s;
    struct gl_queued_message *x;
    struct gl_step *st;
    int64_t to;
    int rc = gl_snapshot_get(l, &letter_schema, &s);

    if (rc != 0) {
        return rc;
    }
    st = step_of(l, s.number);
    to = st != NULL ? gl_flow_find_agent(l->job->spec->flow, s.r.to) : -1;
    if (to < 0 || st->mailbox == NULL || !gl_message_order_is_valid(&s.r) ||
        (s.place == INBOX && gl_step_is_unit(st) && (uint32_t)to != st->of) ||
        ((s.place == NOW || s.place == GATHERED) && st->mailbox->now != NULL) ||
        ((s.place == COUNTED || s.place == GATHERED) && !gl_step_is_unit(st))) {
        return gl_snapshot_bad(l, "a message has no mailbox, or no receiver");
    }
    c->out = &scratch;
    x = gl_mailbox_message_new(c, l->job, (uint32_t)to, &s.r);
    put_message(c, st, x, s.place);
    if (x->body != NULL) {
        x->body->is_kept = s.body_is_kept;
    }
    c->out = NULL;
    return 0;
}

int gl_snapshot_agents_restore_due(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_number s;
    struct gl_step *st;
    int rc = gl_snapshot_get(l, &number_schema, &s);

    (void)c;
    if (rc != 0) {
        return rc;
    }
    st = step_of(l, s.number);
    if (st == NULL || st->mailbox == NULL || !gl_list_empty(&st->mailbox->due)) {
        return gl_snapshot_bad(l, "a scheduled agent has no mailbox");
    }
    gl_list_push(&l->job->due_units, &st->mailbox->due);
    return 0;
}

/* ---- idle agents ---- */

struct saved_idle {
    gl_str job;
    uint32_t number;
};

static const struct gl_field idle_fields[] = {
    GL_FIELD(saved_idle, job, STR, GL_FF_REQUIRED, ""),
    GL_FIELD(saved_idle, number, U32, 0, ""),
};

GL_SNAPSHOT_SCHEMA(idle);

void gl_snapshot_agents_idle(const struct gl_core *c, struct gl_buf *out)
{
    for (const struct gl_link *k = c->idle.next; k != &c->idle; k = k->next) {
        const struct gl_step *st = GL_CONTAINER(k, struct gl_mailbox, idle)->unit;
        GL_ASSERT(st->mailbox->n == 0);
        struct saved_idle s = {.job = st->job->id, .number = st->number};

        gl_snapshot_put(out, "idle", &idle_schema, &s);
    }
}

int gl_snapshot_agents_restore_idle(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_idle s;
    struct gl_job *j;
    struct gl_step *st;
    int rc = gl_snapshot_get(l, &idle_schema, &s);

    if (rc != 0) {
        return rc;
    }
    j = gl_job_find(c, s.job);
    st = j != NULL && j->memory == GL_MEM_HOT ? gl_step_find(j, s.number) : NULL;
    if (st == NULL || st->mailbox == NULL || !gl_list_empty(&st->mailbox->idle) ||
        st->mailbox->now != NULL || st->mailbox->n > 0) {
        return gl_snapshot_bad(l, "an idle agent does not exist, or has work");
    }
    gl_list_push(&c->idle, &st->mailbox->idle);
    c->idle_n++;
    return 0;
}
