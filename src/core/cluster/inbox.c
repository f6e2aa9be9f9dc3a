/* inbox.c - scans the inbox of this node's scope and executes the commands in it.
 *
 *   FOUND ──► GIVEN ──► COMMITTING ──► ANSWERING ──► (gone)
 *               │           │
 *               └───────────┴──► (gone: nothing was done; the entry is found again)
 *
 * An entry in `accepted` is skipped by later scans, so a command is in progress at most once here.
 * A guard in the store keeps other nodes from executing it as well: see inbox.h. */
#include "core/cluster/inbox.h"

#include "base/limits.h"
#include "core/cluster/membership.h"
#include "core/component.h"

enum { LOOK_MS = 1000, PAGE = 64, ENTRY_ID_BYTES = GL_ULID_BYTES * 2 + 1 };

/* Set in this component's request numbers. The node's own request numbers never get that high. */
#define REQUEST_BIT (1ull << 62)

#define ENTRY_STATES(X)         \
    X(FOUND, "found")           \
    X(GIVEN, "given")           \
    X(COMMITTING, "committing") \
    X(ANSWERING, "answering")

enum entry_state {
#define X(name, word) name,
    ENTRY_STATES(X)
#undef X
};

static const char *const state_words[] = {
#define X(name, word) word,
    ENTRY_STATES(X)
#undef X
        NULL};

struct gl_inbox_entry {
    struct gl_link link; /* in `found` or `accepted` */
    uint8_t state;       /* enum entry_state */
    gl_str id;           /* "<job>/<number>" */
    gl_ms sent_at;       /* its score in the index */
    uint64_t request;    /* GIVEN: the number of the COMMAND event; 0 once there is a reply */
    bool is_consumed;    /* the job's transaction deletes the entry */
    uint64_t op;         /* COMMITTING: that transaction */
    uint64_t call;       /* ANSWERING: the write of the answer */
    int64_t code;        /* the reply's code joined with its reason */
    gl_str why;
};

#define F(member, type) GL_FIELD(gl_inbox_entry, member, type, 0, "")

static const struct gl_field entry_fields[] = {
    GL_FIELD_ENUM(gl_inbox_entry, state, state_words, GL_FF_ALWAYS, ""),
    F(id, STR),
    F(sent_at, I64),
    F(request, U64),
    F(is_consumed, BOOL),
    F(op, U64),
    F(call, U64),
    F(code, I64),
    F(why, STR),
};
#undef F

static const struct gl_schema entry_schema = {.name = "entry",
                                              .bytes = sizeof(struct gl_inbox_entry),
                                              .fields = entry_fields,
                                              .fields_n = GL_COUNT(entry_fields)};

static struct gl_inbox_entry *entry_of(struct gl_link *l)
{
    return GL_CONTAINER(l, struct gl_inbox_entry, link);
}

static struct gl_inbox_entry *add(struct gl_core *c, gl_str id, gl_ms sent_at)
{
    struct gl_inbox_entry *e = gl_pool_alloc(&c->mem, sizeof(*e));

    GL_ASSERT(id.n == ENTRY_ID_BYTES);
    gl_list_init(&e->link);
    gl_core_set(c, &e->id, id);
    e->sent_at = sent_at;
    GL_ASSERT(e->state == FOUND);
    GL_ASSERT(e->request == 0);
    return e;
}

static void drop(struct gl_core *c, struct gl_inbox_entry *e)
{
    GL_ASSERT(!gl_list_empty(&e->link));
    gl_list_remove(&e->link);
    gl_core_disown(c, &entry_schema, e);
    gl_pool_free(&c->mem, e, sizeof(*e));
}

static void drop_found(struct gl_core *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->inbox.found)) != NULL;) {
        drop(c, entry_of(l));
    }
    GL_ASSERT(gl_list_empty(&c->inbox.found));
}

void gl_inbox_init(struct gl_core *c)
{
    GL_ASSERT(c->inbox.call == 0);
    GL_ASSERT(c->inbox.last_request == 0);
    gl_list_init(&c->inbox.found);
    gl_list_init(&c->inbox.accepted);
}

void gl_inbox_done(struct gl_core *c)
{
    drop_found(c);
    for (struct gl_link *l; (l = gl_list_first(&c->inbox.accepted)) != NULL;) {
        drop(c, entry_of(l));
    }
    gl_core_set(c, &c->inbox.after_id, (gl_str){0});
    GL_ASSERT(gl_list_empty(&c->inbox.found));
    GL_ASSERT(gl_list_empty(&c->inbox.accepted));
}

static struct gl_inbox_entry *find(struct gl_core *c, uint64_t request)
{
    GL_ASSERT(request != 0); /* 0 would match every entry that has its reply already */
    for (struct gl_link *l = c->inbox.accepted.next; l != &c->inbox.accepted; l = l->next) {
        if (entry_of(l)->request == request) {
            return entry_of(l);
        }
    }
    return NULL;
}

static bool is_accepted(struct gl_core *c, gl_str id)
{
    GL_ASSERT(id.n == ENTRY_ID_BYTES);
    for (struct gl_link *l = c->inbox.accepted.next; l != &c->inbox.accepted; l = l->next) {
        if (gl_str_eq(entry_of(l)->id, id)) {
            return true;
        }
    }
    return false;
}

static gl_str job_of(gl_str id)
{
    GL_ASSERT(id.n == ENTRY_ID_BYTES);
    return (gl_str){.p = id.p, .n = GL_ULID_BYTES};
}

static gl_str number_of(gl_str id)
{
    GL_ASSERT(id.n == ENTRY_ID_BYTES);
    return (gl_str){.p = id.p + GL_ULID_BYTES + 1, .n = GL_ULID_BYTES};
}

static gl_str index_name(const struct gl_core *c)
{
    return gl_job_index(c->out->arena, "inbox", c->stack, c->env_scope);
}

/* ---- answering ---- */

static gl_str answer_text(struct gl_core *c, int code, gl_str why)
{
    struct gl_buf text = {0};
    struct gl_jw w;
    gl_str ret;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "code");
    gl_jw_i64(&w, gl_err_code(code));
    if (gl_err_reason(code) != GL_REASON_NONE) {
        gl_jw_key(&w, "reason");
        gl_jw_c(&w, gl_reason_word(gl_err_reason(code)));
    }
    gl_jw_key(&w, "why");
    gl_jw_str(&w, why);
    gl_jw_end(&w);
    ret = gl_str_dup(c->out->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return ret;
}

static void write_answer(struct gl_core *c, struct gl_inbox_entry *e)
{
    struct gl_guard guard = {.type = GL_GUARD_PRESENT, .kind = GL_S("inbox"), .id = e->id};
    struct gl_write writes[] = {
        {.type = GL_WRITE_DELETE, .kind = GL_S("inbox"), .id = e->id},
        {.type = GL_WRITE_UNINDEX, .kind = index_name(c), .id = e->id, .score = e->sent_at},
        {.type = GL_WRITE_PUT,
         .kind = GL_S("answer"),
         .id = number_of(e->id),
         .rev = 1,
         .value = answer_text(c, (int)e->code, e->why)},
    };
    bool is_guarded = !e->is_consumed && !GL_PLANT(75); /* planted: the last answer counts */
    struct gl_tx *tx;

    GL_ASSERT(e->state == GIVEN || e->state == COMMITTING);
    GL_ASSERT(e->call == 0);
    if (gl_err_code((int)e->code) == GL_E_UNAVAILABLE || !gl_components_may_finish(c)) {
        drop(c, e); /* nothing was done: the entry stays, and is found again */
        return;
    }
    tx = gl_component_tx(c, &guard, is_guarded, writes, GL_COUNT(writes));
    tx->wake = GL_S("answer");
    e->state = ANSWERING;
    e->request = 0;
    e->call = gl_component_commit(c, GL_COMPONENT_INBOX, tx);
    GL_ASSERT(e->call == c->last_call);
}

bool gl_inbox_has(uint64_t request)
{
    return (request & REQUEST_BIT) != 0;
}

void gl_inbox_on_consumed(struct gl_core *c, uint64_t request)
{
    struct gl_inbox_entry *e = find(c, request);

    if (e != NULL) {
        GL_ASSERT(e->state == GIVEN);
        GL_ASSERT(!e->is_consumed);
        e->is_consumed = true;
    }
}

void gl_inbox_on_reply(struct gl_core *c, uint64_t op, const struct gl_effect *reply)
{
    struct gl_inbox_entry *e = find(c, reply->request);

    GL_ASSERT(reply->type == GL_FX_REPLY);
    GL_ASSERT(gl_inbox_has(reply->request));
    GL_ASSERT(op <= c->last_op);
    if (e == NULL) {
        return;
    }
    GL_ASSERT(e->state == GIVEN);
    e->request = 0;
    e->code = gl_err_join(reply->code, reply->reason);
    gl_core_set(c, &e->why, reply->why);
    if (op == 0 || GL_PLANT(86)) { /* planted: the answer does not wait for the commit */
        write_answer(c, e);
    } else {
        e->state = COMMITTING;
        e->op = op;
    }
}

void gl_inbox_abandon(struct gl_core *c, uint64_t request)
{
    struct gl_inbox_entry *e = request != 0 ? find(c, request) : NULL;

    if (e != NULL) {
        GL_ASSERT(e->state == GIVEN);
        GL_ASSERT(!e->is_consumed);
        drop(c, e);
    }
}

void gl_inbox_on_done(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_link *next;

    GL_ASSERT(ev->type == GL_EV_DONE);
    GL_ASSERT(ev->done.op <= c->last_op);
    for (struct gl_link *l = c->inbox.accepted.next; l != &c->inbox.accepted; l = next) {
        struct gl_inbox_entry *e = entry_of(l);

        next = l->next;
        if (e->state != COMMITTING || e->op != ev->done.op) {
            continue;
        }
        if (ev->done.code == 0) {
            write_answer(c, e);
        } else { /* the command was not executed, or another node has executed it */
            GL_MARK(c->trace, "inbox.found_again");
            drop(c, e);
        }
    }
}

/* ---- executing ---- */

static void refuse_unreadable(struct gl_core *c, struct gl_inbox_entry *e)
{
    GL_ASSERT(e->state == GIVEN);
    GL_ASSERT(e->request == 0);
    e->code = GL_E_DAMAGED;
    gl_core_set(c, &e->why, GL_S("cannot decode the command"));
    write_answer(c, e);
}

static bool read_command(struct gl_core *c, const struct gl_inbox_entry *e, gl_str text,
                         struct gl_event *ret)
{
    GL_ASSERT(e->state == GIVEN);
    return gl_event_decode(text, c->out->arena, ret, NULL) == 0 && ret->type == GL_EV_COMMAND &&
           ret->command.verb < GL_CMD_COUNT && gl_str_eq(ret->job, job_of(e->id));
}

static void execute(struct gl_core *c, struct gl_inbox_entry *e, gl_str text)
{
    struct gl_event ev;

    GL_ASSERT(e->state == FOUND);
    GL_ASSERT(c->inbox.is_reading);
    gl_list_remove(&e->link);
    gl_list_push(&c->inbox.accepted, &e->link);
    e->state = GIVEN;
    if (!read_command(c, e, text, &ev)) {
        refuse_unreadable(c, e);
        return;
    }
    GL_ASSERT(!gl_inbox_has(c->inbox.last_request + 1));
    e->request = REQUEST_BIT | ++c->inbox.last_request;
    ev.now = c->now;
    ev.context = c->context;
    ev.command.request = e->request;
    ev.command.send_as = (gl_str){0};
    ev.command.inbox = gl_str_dup(c->out->arena, e->id); /* `e` may be freed first */
    ev.command.sent_at = e->sent_at;
    gl_core_dispatch(c, &ev);
}

/* ---- scanning ---- */

static void scan_page(struct gl_core *c)
{
    struct gl_range range = {.index = index_name(c),
                             .score_max = INT64_MAX,
                             .after_score = c->inbox.after_score,
                             .after_id = c->inbox.after_id,
                             .limit = PAGE};

    GL_ASSERT(c->inbox.call == 0);
    GL_ASSERT(gl_list_empty(&c->inbox.found));
    c->inbox.due = INT64_MAX;
    c->inbox.is_reading = false;
    c->inbox.call = gl_component_range(c, GL_COMPONENT_INBOX, &range);
    GL_ASSERT(c->inbox.call == c->last_call);
}

/* Entries that this node may not execute stay in the index and must not hide those after them. So a
 * scan reads the whole index, a page at a time. */
static void scan_next_page(struct gl_core *c)
{
    struct gl_inbox_state *in = &c->inbox;

    GL_ASSERT(in->call == 0);
    drop_found(c);
    if (in->after_id.n > 0 && gl_components_are_on(c)) {
        GL_MARK(c->trace, "inbox.next_page");
        scan_page(c);
        return;
    }
    gl_core_set(c, &in->after_id, (gl_str){0});
    in->after_score = 0;
    in->due = in->is_again ? c->now : c->now + LOOK_MS;
    in->is_again = false;
    GL_ASSERT(in->due >= c->now);
    GL_ASSERT(in->after_id.n == 0);
}

static void note_end_of_page(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;
    bool is_full = ev->answer.code == 0 && ev->answer.entries.n == PAGE;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(!c->inbox.is_reading);
    gl_core_set(c, &c->inbox.after_id, is_full ? all[PAGE - 1].id : (gl_str){0});
    c->inbox.after_score = is_full ? all[PAGE - 1].score : 0;
}

static void on_listed(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;
    struct gl_key keys[PAGE * 2];
    size_t n = 0;

    GL_ASSERT(c->inbox.call == 0);
    note_end_of_page(c, ev);
    for (size_t i = 0; ev->answer.code == 0 && i < ev->answer.entries.n && i < PAGE; i++) {
        struct gl_inbox_entry *e;

        if (all[i].id.n != ENTRY_ID_BYTES || is_accepted(c, all[i].id)) {
            continue; /* not a command's id, or a command that is in progress */
        }
        e = add(c, all[i].id, all[i].score);
        gl_list_push(&c->inbox.found, &e->link);
        keys[n++] = (struct gl_key){.kind = GL_S("job"), .id = job_of(e->id)};
        keys[n++] = (struct gl_key){.kind = GL_S("inbox"), .id = e->id};
    }
    GL_ASSERT(n % 2 == 0);
    GL_ASSERT(n <= GL_COUNT(keys));
    if (n == 0 || !gl_components_are_on(c)) {
        scan_next_page(c);
        return;
    }
    c->inbox.is_reading = true;
    c->inbox.call = gl_component_get(c, GL_COMPONENT_INBOX, keys, n);
}

/* The job's record and the command's, in pairs. Executes those for jobs that are ours or have no
 * living owner. */
static void on_read(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *r = ev->answer.records.items;
    size_t n = ev->answer.code == 0 && gl_components_are_on(c) ? ev->answer.records.n : 0;

    GL_ASSERT(c->inbox.call == 0);
    GL_ASSERT(c->inbox.is_reading);
    for (size_t i = 0; i + 1 < n; i += 2) {
        struct gl_link *l = gl_list_first(&c->inbox.found);
        bool is_others = r[i].rev > 0 && gl_membership_owned_elsewhere(c, r[i].owner, true);

        if (l == NULL) {
            break;
        }
        if (r[i + 1].rev == 0 || is_others) {
            drop(c, entry_of(l));
        } else {
            execute(c, entry_of(l), r[i + 1].damaged ? (gl_str){0} : r[i + 1].value);
        }
    }
    scan_next_page(c);
}

void gl_inbox_on_woken(struct gl_core *c)
{
    c->inbox.due = c->now;
    c->inbox.is_again = c->inbox.call != 0;
}

static gl_ms due(const struct gl_core *c)
{
    return c->shared && c->inbox.call == 0 ? c->inbox.due : INT64_MAX;
}

static void on_answer_written(struct gl_core *c, uint64_t call)
{
    for (struct gl_link *l = c->inbox.accepted.next; l != &c->inbox.accepted; l = l->next) {
        if (entry_of(l)->state == ANSWERING && entry_of(l)->call == call) {
            drop(c, entry_of(l)); /* if the write failed, the sender times out */
            return;
        }
    }
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_INBOX);
    if (c->inbox.call == 0 || ev->answer.number != c->inbox.call) {
        on_answer_written(c, ev->answer.number);
        return;
    }
    c->inbox.call = 0;
    if (c->inbox.is_reading) {
        on_read(c, ev);
    } else {
        on_listed(c, ev);
    }
}

/* ---- in a snapshot of the core ---- */

struct saved_inbox {
    uint64_t call, last_request;
    bool is_reading, is_again;
    gl_ms due;
    int64_t after_score;
    gl_str after_id;
    struct gl_items found, accepted; /* struct gl_inbox_entry */
};

#define F(member, type) GL_FIELD(saved_inbox, member, type, 0, "")

static const struct gl_field inbox_fields[] = {
    F(call, U64),
    F(last_request, U64),
    F(is_reading, BOOL),
    F(is_again, BOOL),
    F(due, I64),
    F(after_score, I64),
    F(after_id, STR),
    GL_FIELD_SUB(saved_inbox, found, LIST, &entry_schema, 0, ""),
    GL_FIELD_SUB(saved_inbox, accepted, LIST, &entry_schema, 0, ""),
};
#undef F

GL_SNAPSHOT_SCHEMA(inbox);

static struct gl_items copy_list(const struct gl_link *head, struct gl_arena *a)
{
    struct gl_inbox_entry *all;
    struct gl_items ret = {0};

    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        ret.n++;
    }
    ret.items = all = GL_NEW_ARRAY(a, struct gl_inbox_entry, ret.n + 1);
    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        *all++ = *GL_CONTAINER(l, struct gl_inbox_entry, link);
    }
    GL_ASSERT(all == (struct gl_inbox_entry *)ret.items + ret.n);
    return ret;
}

static void save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_inbox_state *in = &c->inbox;
    struct saved_inbox s = {.call = in->call,
                            .last_request = in->last_request,
                            .is_reading = in->is_reading,
                            .is_again = in->is_again,
                            .due = in->due,
                            .after_score = in->after_score,
                            .after_id = in->after_id,
                            .found = copy_list(&in->found, &a),
                            .accepted = copy_list(&in->accepted, &a)};

    gl_snapshot_put(out, "inbox", &inbox_schema, &s);
}

static int fill(struct gl_core *c, struct gl_snapshot_line *l, struct gl_link *head,
                const struct gl_items *from)
{
    const struct gl_inbox_entry *all = from->items;

    for (size_t i = 0; i < from->n; i++) {
        struct gl_inbox_entry *e;

        if (all[i].id.n != ENTRY_ID_BYTES) {
            return gl_snapshot_bad(l, "an inbox entry has no valid id");
        }
        e = gl_pool_alloc(&c->mem, sizeof(*e));
        gl_list_init(&e->link);
        gl_core_adopt(c, &entry_schema, e, &all[i]);
        gl_list_push(head, &e->link);
    }
    return 0;
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_inbox_state *in = &c->inbox;
    struct saved_inbox s;
    int rc = gl_snapshot_get(l, &inbox_schema, &s);

    if (rc == 0) {
        in->call = s.call;
        in->last_request = s.last_request;
        in->is_reading = s.is_reading;
        in->is_again = s.is_again;
        in->due = s.due;
        in->after_score = s.after_score;
        gl_core_set(c, &in->after_id, s.after_id);
        rc = fill(c, l, &in->found, &s.found);
    }
    return rc == 0 ? fill(c, l, &in->accepted, &s.accepted) : rc;
}

const struct gl_component gl_inbox = {.name = "inbox",
                                      .due = due,
                                      .on_time = scan_page,
                                      .on_answer = on_answer,
                                      .save = save,
                                      .restore = restore};
