/* inbox.c - commands for jobs that live with another node travel through the store.
 *
 *   asking node:  PUT inbox/<job>/<number>, into the index "inbox"      word "inbox"
 *   owner:        carries it out; the entry goes with the same transaction
 *   owner:        PUT answer/<number>                                   word "answer"
 *   asking node:  reads the answer, removes it, tells its client
 *
 * The words are only hints; both sides look again by themselves. An entry is done once, because
 * what it does and its removal are one transaction, which demands that it is still there. If the
 * owner dies, whoever takes the job over finds the entry. If nobody takes it in time, the asking
 * node takes it back and says so: then nothing has been done. */
#include "node/node_state.h"

#include "base/id.h"
#include "model/job.h"

enum {
    LOOK_MS = 1000,      /* between two looks into the inbox without a word */
    ANSWER_MS = 300,     /* between two looks for an answer */
    PATIENCE_MS = 30000, /* until a command is taken back */
    LAST_MS = 5000,      /* for the answer of one that has been taken, but not by us */
    PAGE = 64,
};

/* ---- a command on its way to another node ---- */

struct forward {
    struct gl_link link;
    struct gl_node *node;
    struct gl_arena arena;
    struct gl_store_req req;
    uint64_t request;
    gl_str job, id, number, index; /* `id`: "<job>/<number>" */
    gl_ms sent_at, due, until;
    bool busy, sent, withdrawn;
    struct gl_key key;
    struct gl_guard guard;
    struct gl_write writes[2];
    struct gl_tx tx;
};

struct gl_inbox_entry { /* one that we found and are carrying out */
    struct gl_link link;
    struct gl_node *node;
    struct gl_arena arena;
    struct gl_store_req req;
    gl_str id, number, index;
    gl_ms sent_at;
    bool answering;
    struct gl_guard guard;
    struct gl_write writes[3];
    struct gl_tx tx;
};

struct gl_inbox {
    struct gl_link forwards, entries;
    gl_str index; /* of our scope */
    bool looking, again;
    gl_ms due;
    struct gl_arena arena; /* of one page */
    /* The last entry of a full page: the next page begins after it. "": at the beginning. */
    int64_t after_score;
    struct gl_buf after_id;
    struct gl_store_req req;
    struct gl_range range;
    struct gl_index_entry found[PAGE];
    size_t found_n;
    struct gl_key keys[PAGE * 2];
};

static bool is_on(const struct gl_node *n)
{
    return n->ports.store->ops->shared && n->session.n > 0 && !n->stopping && !n->lost;
}

static void forward_free(struct forward *f)
{
    gl_list_remove(&f->link);
    gl_arena_done(&f->arena);
    gl_mem_free(f);
}

static void forward_end(struct forward *f, int code, gl_str why)
{
    struct gl_effect e = {.type = GL_FX_REPLY,
                          .request = f->request,
                          .job = f->job,
                          .code = code,
                          .why = gl_str_of(gl_str_c(&f->arena, why))};

    gl_requests_reply(f->node, &e);
    forward_free(f);
}

static void commit(struct forward *f, size_t guards_n, size_t writes_n, const char *word,
                   gl_store_done *done)
{
    struct gl_node *n = f->node;

    f->tx = (struct gl_tx){.context = n->config.context,
                           .session = n->session,
                           .guards = &f->guard,
                           .guards_n = guards_n,
                           .writes = f->writes,
                           .writes_n = writes_n,
                           .wake = gl_str_of(word)};
    f->busy = true;
    f->req = (struct gl_store_req){.done = done, .owner = f};
    n->outstanding++;
    n->ports.store->ops->commit(n->ports.store, &f->req, &f->tx);
}

static void done_with(struct forward *f)
{
    f->busy = false;
    f->node->outstanding--;
    f->node->now = f->node->ports.clock->now(f->node->ports.clock);
}

static void on_sent(struct gl_store_req *req)
{
    struct forward *f = req->owner;
    struct gl_node *n = f->node;

    done_with(f);
    gl_sessions_note_refused(n, req);
    if (req->status == GL_E_CONFLICT) {
        forward_end(f, GL_E_NOT_FOUND, GL_S("that job has been removed"));
    } else if (req->status == GL_E_LIMIT || req->status == GL_E_UNAVAILABLE) {
        forward_end(f, req->status, gl_str_of(req->why.text));
    } else { /* if it is unknown, an answer will tell; it must not be sent twice */
        f->sent = true;
        f->due = n->now + ANSWER_MS;
    }
    gl_node_rearm(n);
}

void gl_inbox_forward(struct gl_node *n, const struct gl_effect *e)
{
    struct forward *f = gl_mem_alloc(sizeof(*f));
    struct gl_event ev;
    struct gl_buf text = {0};
    struct gl_ulid id;
    uint8_t chance[10];

    gl_list_init(&f->link);
    f->node = n;
    f->request = e->request;
    if (!gl_requests_event(n, e->request, e->job, &ev)) {
        gl_mem_free(f);
        return;
    }
    gl_list_push(&n->inbox->forwards, &f->link);
    n->ports.entropy->fill(n->ports.entropy, chance, sizeof(chance));
    gl_id_make(&id, n->now, chance);
    f->sent_at = n->now;
    f->until = n->now + PATIENCE_MS;
    f->due = INT64_MAX;
    f->job = gl_str_dup(&f->arena, e->job);
    f->number = gl_str_dup(&f->arena, gl_str_of(id.text));
    f->id = gl_str_fmt(&f->arena, "%.*s/%s", GL_STR_ARG(e->job), id.text);
    f->index = gl_job_index(&f->arena, "inbox", e->stack, e->env_scope);
    ev.command.request = 0;
    ev.now = n->now;
    gl_event_encode(&ev, &text);
    f->guard = (struct gl_guard){.type = GL_GUARD_PRESENT, .kind = GL_S("job"), .id = f->job};
    f->writes[0] = (struct gl_write){.type = GL_WRITE_PUT,
                                     .kind = GL_S("inbox"),
                                     .id = f->id,
                                     .rev = 1,
                                     .value = gl_str_dup(&f->arena, gl_buf_view(&text))};
    f->writes[1] = (struct gl_write){
        .type = GL_WRITE_INDEX, .kind = f->index, .id = f->id, .score = f->sent_at};
    gl_buf_done(&text);
    commit(f, 1, 2, "inbox", on_sent);
}

/* ---- its answer ---- */

static void on_taken_back(struct gl_store_req *req)
{
    struct forward *f = req->owner;
    struct gl_node *n = f->node;

    done_with(f);
    if (req->status == 0) {
        forward_end(f, GL_E_UNAVAILABLE,
                    GL_S("no node that may run this job has taken the command within 30 s; "
                         "nothing was done: 'glia why' shows which node owns the job"));
    } else if (req->status == GL_E_CONFLICT && !f->withdrawn) {
        f->withdrawn = true; /* it has been taken, so there will be an answer */
        f->until = n->now + LAST_MS;
        f->due = n->now;
    } else if (req->status == GL_E_CONFLICT) {
        forward_end(f, GL_E_UNKNOWN,
                    GL_S("the command was taken, but its answer is lost: look at the job"));
    } else {
        f->due = n->now + ANSWER_MS;
    }
    gl_node_rearm(n);
}

static void take_back(struct forward *f)
{
    f->guard = (struct gl_guard){.type = GL_GUARD_PRESENT, .kind = GL_S("inbox"), .id = f->id};
    f->writes[0] = (struct gl_write){.type = GL_WRITE_DELETE, .kind = GL_S("inbox"), .id = f->id};
    f->writes[1] = (struct gl_write){
        .type = GL_WRITE_UNINDEX, .kind = f->index, .id = f->id, .score = f->sent_at};
    commit(f, 1, 2, "", on_taken_back);
}

static void on_removed(struct gl_store_req *req)
{
    struct forward *f = req->owner;
    struct gl_node *n = f->node;

    done_with(f);
    forward_free(f); /* if it has not been removed, retention finds it */
    gl_node_rearm(n);
}

static void answered(struct forward *f, gl_str text)
{
    struct gl_json j;
    int64_t code = GL_E_DAMAGED;
    gl_str why = GL_S("the answer to this command cannot be read");
    struct gl_effect e = {.type = GL_FX_REPLY, .request = f->request, .job = f->job};

    if (gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, &f->arena, NULL) == 0 &&
        gl_json_i64(&j, gl_json_get(&j, gl_json_root(&j), "code"), &code)) {
        why = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "why"), &f->arena);
        e.reason = gl_reason_from_word(gl_str_c(
            &f->arena, gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reason"), &f->arena)));
    }
    e.code = (int)code;
    e.why = gl_str_of(gl_str_c(&f->arena, why));
    gl_requests_reply(f->node, &e);
    f->due = INT64_MAX;
    f->writes[0] =
        (struct gl_write){.type = GL_WRITE_DELETE, .kind = GL_S("answer"), .id = f->number};
    commit(f, 0, 1, "", on_removed);
}

static void on_looked(struct gl_store_req *req)
{
    struct forward *f = req->owner;
    struct gl_node *n = f->node;

    done_with(f);
    if (req->status == 0 && req->records[0].rev > 0) {
        answered(f, req->records[0].value);
    } else if (n->now >= f->until && f->withdrawn) {
        forward_end(f, GL_E_UNKNOWN,
                    GL_S("the command was taken, but its answer is lost: look at the job"));
    } else if (n->now >= f->until) {
        take_back(f);
    } else {
        f->due = n->now + ANSWER_MS;
    }
    gl_node_rearm(n);
}

static void look_for_answer(struct forward *f)
{
    struct gl_node *n = f->node;

    f->busy = true;
    f->due = INT64_MAX;
    f->key = (struct gl_key){.kind = GL_S("answer"), .id = f->number};
    f->req = (struct gl_store_req){.done = on_looked, .owner = f};
    n->outstanding++;
    n->ports.store->ops->get(n->ports.store, &f->req, n->config.context, &f->key, 1);
}

/* ---- the owner's side ---- */

static void entry_free(struct gl_inbox_entry *e)
{
    gl_list_remove(&e->link);
    gl_arena_done(&e->arena);
    gl_mem_free(e);
}

static void on_answered(struct gl_store_req *req)
{
    struct gl_inbox_entry *e = req->owner;
    struct gl_node *n = e->node;

    n->outstanding--;
    entry_free(e); /* whoever waits for an answer that did not get there gives up some time */
    gl_node_rearm(n);
}

void gl_inbox_replied(struct gl_node *n, struct gl_inbox_entry *e, bool again, int code, gl_str why)
{
    struct gl_buf text = {0};
    struct gl_jw w;

    if (again || gl_err_code(code) == GL_E_UNAVAILABLE || n->lost) {
        entry_free(e);
        return;
    }
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
    e->answering = true;
    e->writes[0] = (struct gl_write){.type = GL_WRITE_DELETE, .kind = GL_S("inbox"), .id = e->id};
    e->writes[1] = (struct gl_write){
        .type = GL_WRITE_UNINDEX, .kind = e->index, .id = e->id, .score = e->sent_at};
    e->writes[2] = (struct gl_write){.type = GL_WRITE_PUT,
                                     .kind = GL_S("answer"),
                                     .id = e->number,
                                     .rev = 1,
                                     .value = gl_str_dup(&e->arena, gl_buf_view(&text))};
    gl_buf_done(&text);
    /* What was carried out is gone with the job's transaction. A refusal counts only if the entry
     * is still there: another node, which owns the job, may have carried it out since we read it.
     */
    e->guard = (struct gl_guard){.type = GL_GUARD_PRESENT, .kind = GL_S("inbox"), .id = e->id};
    e->tx = (struct gl_tx){.context = n->config.context,
                           .session = n->session,
                           .guards = &e->guard,
                           .guards_n = code != 0 && !GL_PLANT(75), /* planted: whoever is last */
                           .writes = e->writes,
                           .writes_n = GL_COUNT(e->writes),
                           .wake = GL_S("answer")};
    e->req = (struct gl_store_req){.done = on_answered, .owner = e};
    n->outstanding++;
    n->ports.store->ops->commit(n->ports.store, &e->req, &e->tx);
}

static bool is_handled(const struct gl_inbox *in, gl_str id)
{
    for (const struct gl_link *l = in->entries.next; l != &in->entries; l = l->next) {
        if (gl_str_eq(GL_CONTAINER(l, struct gl_inbox_entry, link)->id, id)) {
            return true;
        }
    }
    return false;
}

/* One whose job is ours, or nobody's. What is no command of ours is left to retention. */
static void carry_out(struct gl_node *n, const struct gl_index_entry *found, gl_str text)
{
    struct gl_inbox_entry *e = gl_mem_alloc(sizeof(*e));
    struct gl_event ev;

    e->node = n;
    gl_list_init(&e->link);
    gl_list_push(&n->inbox->entries, &e->link);
    e->id = gl_str_dup(&e->arena, found->id);
    e->number = (gl_str){.p = e->id.p + GL_ULID_BYTES + 1, .n = e->id.n - GL_ULID_BYTES - 1};
    e->index = gl_str_dup(&e->arena, n->inbox->index);
    e->sent_at = found->score;
    if (gl_event_decode(gl_str_dup(&e->arena, text), &e->arena, &ev, NULL) != 0 ||
        ev.type != GL_EV_COMMAND || ev.command.verb >= GL_CMD_COUNT ||
        memcmp(ev.job.p, e->id.p, GL_ULID_BYTES) != 0) {
        gl_inbox_replied(n, e, false, GL_E_DAMAGED, GL_S("the command cannot be read"));
        return;
    }
    ev.context = n->config.context;
    ev.command.inbox = e->id;
    ev.command.sent_at = found->score;
    gl_requests_from_inbox(n, &ev, e);
}

static void look(struct gl_node *n);

/* Entries that this node cannot carry out stay where they are: they must not hide those after them.
 * So a look goes through the whole index, a page at a time. */
static void look_again(struct gl_node *n)
{
    struct gl_inbox *in = n->inbox;

    if (in->after_id.n > 0 && is_on(n)) {
        GL_MARK(n->config.trace, "inbox.next_page");
        look(n);
        gl_node_rearm(n);
        return;
    }
    in->looking = false;
    gl_buf_reset(&in->after_id);
    in->due = in->again ? n->now : n->now + LOOK_MS;
    in->again = false;
    gl_node_rearm(n);
}

static void note_page(struct gl_inbox *in, const struct gl_store_req *req)
{
    gl_buf_reset(&in->after_id);
    if (req->status == 0 && req->entries_n == PAGE) {
        in->after_score = req->entries[PAGE - 1].score;
        gl_buf_str(&in->after_id, req->entries[PAGE - 1].id);
    }
}

static void on_read(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_inbox *in = n->inbox;
    size_t have = req->status == 0 && !n->stopping && !n->lost ? in->found_n : 0;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    for (size_t i = 0; i < have; i++) {
        const struct gl_record *job = &req->records[i * 2], *entry = &req->records[i * 2 + 1];

        if (entry->rev == 0 || is_handled(in, in->found[i].id) ||
            (job->rev > 0 && gl_core_is_anothers(n->core, job->owner, true))) {
            continue;
        }
        carry_out(n, &in->found[i], entry->damaged ? (gl_str){0} : entry->value);
    }
    look_again(n);
}

static void on_found(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_inbox *in = n->inbox;
    struct gl_store *s = n->ports.store;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    in->found_n = 0;
    note_page(in, req);
    for (size_t i = 0; req->status == 0 && i < req->entries_n && !n->stopping; i++) {
        gl_str id = req->entries[i].id;
        gl_str copy;

        if (id.n != GL_ULID_BYTES * 2 + 1 || is_handled(in, id)) {
            continue; /* not ours, whoever wrote it */
        }
        copy = gl_str_dup(&in->arena, id);
        in->keys[in->found_n * 2] =
            (struct gl_key){.kind = GL_S("job"), .id = {.p = copy.p, .n = GL_ULID_BYTES}};
        in->keys[in->found_n * 2 + 1] = (struct gl_key){.kind = GL_S("inbox"), .id = copy};
        in->found[in->found_n++] =
            (struct gl_index_entry){.id = copy, .score = req->entries[i].score};
    }
    if (in->found_n == 0) {
        look_again(n);
        return;
    }
    in->req = (struct gl_store_req){.done = on_read, .owner = n};
    n->outstanding++;
    s->ops->get(s, &in->req, n->config.context, in->keys, in->found_n * 2);
    gl_node_rearm(n);
}

static void look(struct gl_node *n)
{
    struct gl_inbox *in = n->inbox;

    gl_arena_reset(&in->arena);
    in->looking = true;
    in->due = INT64_MAX;
    in->range = (struct gl_range){.index = in->index,
                                  .score_min = 0,
                                  .score_max = INT64_MAX,
                                  .after_score = in->after_score,
                                  .after_id = gl_buf_view(&in->after_id),
                                  .limit = PAGE};
    in->req = (struct gl_store_req){.done = on_found, .owner = n};
    n->outstanding++;
    n->ports.store->ops->range(n->ports.store, &in->req, n->config.context, &in->range);
}

/* ---- time and words ---- */

gl_ms gl_inbox_due(const struct gl_node *n)
{
    const struct gl_inbox *in = n->inbox;
    gl_ms due = INT64_MAX;

    if (!is_on(n)) {
        return due;
    }
    due = in->looking ? due : in->due;
    for (const struct gl_link *l = in->forwards.next; l != &in->forwards; l = l->next) {
        const struct forward *f = GL_CONTAINER(l, struct forward, link);

        due = !f->busy && f->due < due ? f->due : due;
    }
    return due;
}

void gl_inbox_on_time(struct gl_node *n)
{
    struct gl_inbox *in = n->inbox;

    if (!is_on(n)) {
        return;
    }
    if (!in->looking && in->due <= n->now) {
        look(n);
    }
    for (struct gl_link *l = in->forwards.next; l != &in->forwards; l = l->next) {
        struct forward *f = GL_CONTAINER(l, struct forward, link);

        if (!f->busy && f->due <= n->now) {
            look_for_answer(f);
        }
    }
}

void gl_inbox_on_woken(struct gl_node *n, gl_str word)
{
    struct gl_inbox *in = n->inbox;

    if (gl_str_is(word, "inbox")) {
        in->due = n->now;
        in->again = in->looking;
        return;
    }
    for (struct gl_link *l = in->forwards.next; l != &in->forwards; l = l->next) {
        struct forward *f = GL_CONTAINER(l, struct forward, link);

        f->due = f->sent && f->due != INT64_MAX ? n->now : f->due;
    }
}

/* ---- life ---- */

void gl_inbox_init(struct gl_node *n)
{
    struct gl_inbox *in = gl_mem_alloc(sizeof(*in));

    n->inbox = in;
    gl_list_init(&in->forwards);
    gl_list_init(&in->entries);
    in->index = gl_job_index(&n->strings, "inbox", n->config.stack, n->config.env_scope);
}

/* What others have not answered yet nobody here waits for any more: its command is refused. */
void gl_inbox_stop(struct gl_node *n)
{
    struct gl_link *next;

    for (struct gl_link *l = n->inbox->forwards.next; l != &n->inbox->forwards; l = next) {
        struct forward *f = GL_CONTAINER(l, struct forward, link);

        next = l->next;
        if (!f->busy) {
            forward_free(f);
        }
    }
}

void gl_inbox_done(struct gl_node *n)
{
    struct gl_inbox *in = n->inbox;

    for (struct gl_link *l; (l = gl_list_first(&in->forwards)) != NULL;) {
        forward_free(GL_CONTAINER(l, struct forward, link));
    }
    for (struct gl_link *l; (l = gl_list_first(&in->entries)) != NULL;) {
        entry_free(GL_CONTAINER(l, struct gl_inbox_entry, link));
    }
    gl_arena_done(&in->arena);
    gl_buf_done(&in->after_id);
    gl_mem_free(in);
    n->inbox = NULL;
}
