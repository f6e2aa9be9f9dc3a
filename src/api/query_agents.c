/* query_agents.c - the agents of a bundle's job, the messages that wait for them, and dead letters.
 *
 * Records are read member by member, because they may come from a release that knows more members.
 * The node's flow is used if it has it. Units are read a few at a time, because each may have a
 * large state, and are parsed and rendered on another thread (port/work.h). */
#include "api/query_parts.h"
#include "api/render.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/bundle/agent.h"
#include "model/job.h"

enum {
    MESSAGES_PAGE = 500,
    MESSAGES_COUNTED = 20000, /* beyond that, the counts per agent are left out */
    NUMBER_DIGITS = 12,       /* digits of a message's number in its id */
    CHUNK = 16,               /* units in one read */
};

/* One query in flight: the flow it needs, and the units it reads. */
struct gl_agents_reading {
    struct gl_work_task task;
    struct gl_query *q;
    void *ref; /* the node's reference to the flow; NULL: the flow is ours */
    int code;
    struct gl_why why;

    struct gl_arena page; /* the units read last, while they are being parsed */
    struct gl_record *units;
    size_t at, units_n, all_n; /* positions in q->keys */
    void (*each)(struct gl_query *q, size_t i, const struct gl_record *unit); /* on any thread */
    void (*then)(struct gl_query *q);
};

/* ---- records ---- */

struct doc {
    struct gl_json j;
    gl_jnode root;
};

/* An unreadable record becomes an empty object. */
static struct doc doc_of(struct gl_arena *a, const struct gl_record *r)
{
    struct doc d;

    if (r->rev == 0 || r->damaged ||
        gl_json_parse(&d.j, gl_str_dup(a, r->value), GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        (void)gl_json_parse(&d.j, GL_S("{}"), 2, a, NULL); /* valid JSON */
    }
    d.root = gl_json_root(&d.j);
    return d;
}

static gl_str text_in(struct gl_arena *a, const struct doc *d, const char *name)
{
    return gl_json_str(&d->j, gl_json_get(&d->j, d->root, name), a);
}

static int64_t number_in(const struct doc *d, const char *name)
{
    int64_t n = 0;

    (void)gl_json_i64(&d->j, gl_json_get(&d->j, d->root, name), &n);
    return n;
}

static gl_str raw_in(const struct doc *d, const char *name)
{
    gl_jnode n = gl_json_get(&d->j, d->root, name);

    return n != NULL ? gl_json_raw(&d->j, n) : (gl_str){0};
}

static void put_text(struct gl_jw *w, const char *name, gl_str text)
{
    if (text.n > 0) {
        gl_jw_put_str(w, name, text);
    }
}

static void put_time(struct gl_jw *w, const char *name, gl_ms time)
{
    char when[GL_TIMES_BYTES];

    if (time > 0) {
        gl_jw_put_str(w, name, gl_times_format(time, when));
    }
}

/* The first members of all these answers. */
static void begin(struct gl_query *q, const char *list)
{
    gl_jw_object(&q->w);
    gl_jw_put_str(&q->w, "job_id", q->job);
    put_text(&q->w, "run_id", gl_render_text(&q->arena, q->job_record.value, "run_id"));
    put_text(&q->w, "status", gl_render_text(&q->arena, q->job_record.value, "status"));
    gl_jw_put_array(&q->w, list);
}

/* `next` "": there are no more pages. */
static void end(struct gl_query *q, gl_str next)
{
    gl_jw_end(&q->w);
    gl_jw_key(&q->w, "next");
    if (next.n > 0) {
        gl_jw_str(&q->w, next);
    } else {
        gl_jw_null(&q->w);
    }
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

/* ---- work ---- */

static void free_reading(struct gl_query *q)
{
    const struct gl_reason_live *live = q->context->live;

    gl_arena_done(&q->reading->page);
    if (q->reading->ref != NULL) {
        live->flow_done(live->owner, q->reading->ref);
    }
}

static void work(struct gl_agents_reading *r, void (*run)(struct gl_work_task *t),
                 void (*done)(struct gl_work_task *t))
{
    r->task = (struct gl_work_task){.run = run, .done = done};
    gl_work_post(r->q->context->work, &r->task);
}

static struct gl_agents_reading *reading_of(struct gl_work_task *t)
{
    return GL_CONTAINER(t, struct gl_agents_reading, task);
}

/* ---- the flow, for the agents it has ---- */

static void on_flow_ready(struct gl_query *q)
{
    if (q->graph->bundle == NULL) {
        gl_query_fail(q, GL_R_JOB_NOT_BUNDLE,
                      gl_str_fmt(&q->arena, "job %.*s is not a bundle, so it has no agents",
                                 GL_STR_ARG(q->job))
                          .p);
    } else if (q->rq->messages.agent.n > 0 &&
               gl_flow_find_agent(q->graph, q->rq->messages.agent) < 0) {
        gl_query_fail(q, GL_R_NO_SUCH_AGENT,
                      gl_str_fmt(&q->arena, "job %.*s has no agent '%.*s'", GL_STR_ARG(q->job),
                                 GL_STR_ARG(q->rq->messages.agent))
                          .p);
    } else {
        q->next(q);
    }
}

static void run_decode(struct gl_work_task *t)
{
    struct gl_agents_reading *r = reading_of(t);
    struct gl_flow *flow = NULL;

    r->code = gl_flow_decode(r->q->flow, &r->q->arena, &flow, &r->why);
    r->q->graph = flow;
}

static void on_decoded(struct gl_work_task *t)
{
    struct gl_agents_reading *r = reading_of(t);

    if (r->code != 0) {
        gl_query_fail(r->q, gl_err_join(GL_E_DAMAGED, r->why.reason), r->why.text);
    } else {
        on_flow_ready(r->q);
    }
}

static void on_flow(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    q->flow = gl_str_dup(&q->arena, req->records[0].value);
    work(q->reading, run_decode, on_decoded);
}

static void on_job(struct gl_query *q)
{
    const struct gl_reason_live *live = q->context->live;
    gl_str hash;

    hash = gl_render_text(&q->arena, q->job_record.value, "flow");
    if (live != NULL && live->flow != NULL) {
        q->graph = live->flow(live->owner, hash, &q->reading->ref);
    }
    if (q->graph != NULL) {
        on_flow_ready(q);
    } else {
        gl_query_get(q, GL_S("flow"), hash, on_flow);
    }
}

static void read_graph(struct gl_query *q, void (*then)(struct gl_query *q))
{
    q->next = then;
    q->reading = GL_NEW(&q->arena, struct gl_agents_reading);
    q->reading->q = q;
    q->cleanup = free_reading;
    gl_query_get_job(q, on_job);
}

/* ---- units ---- */

static void read_chunk(struct gl_agents_reading *r);

static void run_each(struct gl_work_task *t)
{
    struct gl_agents_reading *r = reading_of(t);

    for (size_t i = 0; i < r->units_n; i++) {
        r->each(r->q, r->at + i, &r->units[i]);
    }
}

static void on_each(struct gl_work_task *t)
{
    struct gl_agents_reading *r = reading_of(t);

    gl_arena_done(&r->page);
    r->at += r->units_n;
    if (r->at < r->all_n) {
        read_chunk(r);
    } else {
        r->then(r->q);
    }
}

static void on_chunk(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_agents_reading *r = q->reading;

    r->units = GL_NEW_ARRAY(&r->page, struct gl_record, r->units_n);
    for (size_t i = 0; i < r->units_n; i++) {
        r->units[i] = (struct gl_record){.rev = req->records[i].rev,
                                         .damaged = req->records[i].damaged,
                                         .value = gl_str_dup(&r->page, req->records[i].value)};
    }
    work(r, run_each, on_each);
}

static void read_chunk(struct gl_agents_reading *r)
{
    struct gl_query *q = r->q;
    struct gl_store *s = q->context->store;

    r->units_n = r->all_n - r->at < CHUNK ? r->all_n - r->at : CHUNK;
    s->ops->get(s, gl_query_call(q, on_chunk), q->tenant, q->keys + r->at, r->units_n);
}

/* Reads the units that q->keys name, at least one. */
static void read_units(struct gl_query *q, size_t n,
                       void (*each)(struct gl_query *q, size_t i, const struct gl_record *unit),
                       void (*then)(struct gl_query *q))
{
    struct gl_agents_reading *r = q->reading;

    r->all_n = n;
    r->each = each;
    r->then = then;
    read_chunk(r);
}

/* ---- agents ---- */

struct counts {
    uint32_t *of; /* by number of the agent: messages waiting for it */
    uint32_t from, n;
    bool is_cut;
    uint64_t bytes; /* size of the states written so far */
};

static bool is_idle(gl_str status)
{
    return status.n == 0 || gl_str_is(status, "pending") || gl_str_is(status, "waiting");
}

/* When it last started or ended something, or gave a sign of life. */
static gl_ms last_activity(const struct doc *d)
{
    static const char *const times[] = {"attempt_at", "ended_at", "started_at", "active_at"};
    gl_ms latest = 0;

    for (size_t i = 0; i < GL_COUNT(times); i++) {
        gl_ms at = number_in(d, times[i]);

        latest = at > latest ? at : latest;
    }
    return latest;
}

/* The message that a unit's worker is handling; 0: none. Taking up a message is recorded with the
 * unit, not with the message. */
static int64_t handled_by(struct gl_arena *a, const struct doc *unit)
{
    return gl_str_is(text_in(a, unit, "status"), "running") ? number_in(unit, "letter") : 0;
}

/* If several agents are listed, large states are left out; `state_bytes` shows their size, and a
 * query for one agent includes it. */
static bool has_room(struct gl_query *q, gl_str state)
{
    struct counts *c = q->counts;
    bool is_small = state.n <= GL_STATUS_OUTPUT_BYTES && c->bytes + state.n <= GL_STATUS_BYTES;

    c->bytes += is_small ? state.n : 0;
    return is_small || q->rq->messages.agent.n > 0;
}

static void write_agent(struct gl_query *q, size_t i, const struct gl_record *unit)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    const struct counts *c = q->counts;
    uint32_t number = c->from + (uint32_t)i;
    const struct gl_agent_spec *a = gl_flow_agent(q->graph, number);
    struct doc d = doc_of(&scratch, unit);
    gl_str status = text_in(&scratch, &d, "status"), state = raw_in(&d, "output");
    struct gl_jw *w = &q->w;

    gl_jw_object(w);
    gl_jw_put_str(w, "agent_id", a->id);
    gl_jw_put_c(w, "agent_type", gl_agent_kind_words[a->kind]);
    put_text(w, "type", a->template_type);
    put_text(w, "role", a->role);
    put_text(w, "alias", a->alias);
    if (a->step >= 0) {
        put_text(w, "step_id", gl_flow_step(q->graph, (uint32_t)a->step)->id);
    }
    gl_jw_put_str(w, "status",
                  unit->damaged     ? GL_S("damaged")
                  : is_idle(status) ? GL_S("idle")
                                    : status);
    gl_jw_put_i64(w, "processed", number_in(&d, "processed"));
    if (!c->is_cut) {
        gl_jw_put_u64(w, "waiting",
                      c->of[number] - (handled_by(&scratch, &d) > 0 && c->of[number] > 0));
    }
    if (number_in(&d, "letter") > 0) {
        gl_jw_put_i64(w, "handling", number_in(&d, "letter"));
    }
    put_text(w, "node", text_in(&scratch, &d, "node"));
    put_time(w, "last_activity", last_activity(&d));
    put_text(w, "last_error", text_in(&scratch, &d, "last_error"));
    gl_jw_put_u64(w, "state_bytes", state.n);
    if (has_room(q, state)) {
        gl_jw_put_raw(w, "state", state.n > 0 ? state : GL_S("{}"));
    }
    gl_jw_end(w);
}

static void on_agents(struct gl_query *q)
{
    const struct counts *c = q->counts;
    uint32_t last = c->from + c->n;

    end(q, q->rq->messages.agent.n == 0 && last < gl_flow_agents_n(q->graph)
               ? gl_flow_agent(q->graph, last - 1)->id
               : (gl_str){0});
}

static void read_agents(struct gl_query *q)
{
    const struct counts *c = q->counts;

    q->keys = GL_NEW_ARRAY(&q->arena, struct gl_key, c->n + 1);
    for (uint32_t i = 0; i < c->n; i++) {
        gl_str unit = gl_flow_step(q->graph, c->from + i)->id;

        q->keys[i] = (struct gl_key){
            .kind = GL_S("step"),
            .id = gl_str_fmt(&q->arena, "%.*s/%.*s", GL_STR_ARG(q->job), GL_STR_ARG(unit))};
    }
    begin(q, "agents");
    if (c->n > 0) {
        read_units(q, c->n, write_agent, on_agents);
    } else {
        on_agents(q);
    }
}

/* Messages being handled do not wait, nor do those that an aggregator has collected and keeps. */
static bool waits(gl_str status)
{
    return !gl_str_is(status, "handling") && !gl_str_is(status, "counted");
}

static void on_counted(struct gl_store_req *req)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0}; /* freed per page: there may be many */
    struct gl_query *q = req->owner;
    struct counts *c = q->counts;
    gl_str last = {0};

    for (size_t i = 0; i < req->records_n; i++) {
        struct doc d = doc_of(&a, &req->records[i]);
        int64_t to = gl_flow_find_agent(q->graph, text_in(&a, &d, "to"));

        if (to >= 0 && waits(text_in(&a, &d, "status"))) {
            c->of[to]++;
        }
        last = req->records[i].id;
    }
    q->scanned += req->records_n;
    if (req->records_n == MESSAGES_PAGE && q->scanned < MESSAGES_COUNTED) {
        q->listing.after = gl_str_dup(&q->arena, last);
        gl_query_read(q, on_counted);
        return;
    }
    c->is_cut = req->records_n == MESSAGES_PAGE;
    read_agents(q);
}

static gl_str job_prefix(struct gl_query *q)
{
    return gl_str_fmt(&q->arena, "%.*s/", GL_STR_ARG(q->job));
}

/* Selects agents by number: one, or a page. */
static bool choose_agents(struct gl_query *q, struct counts *c)
{
    uint32_t all = gl_flow_agents_n(q->graph);

    if (q->rq->messages.agent.n > 0) {
        c->from = (uint32_t)gl_flow_find_agent(q->graph, q->rq->messages.agent);
        c->n = 1;
        return true;
    }
    if (q->rq->messages.after.n > 0) {
        int64_t after = gl_flow_find_agent(q->graph, q->rq->messages.after);

        if (after < 0) {
            return false;
        }
        c->from = (uint32_t)after + 1;
    }
    c->n = all - c->from < q->limit ? all - c->from : q->limit;
    return true;
}

static void count_messages(struct gl_query *q)
{
    struct counts *c = GL_NEW(&q->arena, struct counts);

    if (!choose_agents(q, c)) {
        gl_query_fail(q, GL_E_NOT_FOUND, "`after` is not an agent of this job");
        return;
    }
    c->of = GL_NEW_ARRAY(&q->arena, uint32_t, gl_flow_agents_n(q->graph) + 1);
    q->counts = c;
    q->listing = (struct gl_listing){
        .kind = GL_S("letter"), .prefix = job_prefix(q), .limit = MESSAGES_PAGE};
    gl_query_read(q, on_counted);
}

void gl_query_agents(struct gl_query *q)
{
    q->limit = gl_query_limit(q->rq->messages.limit, GL_QUERY_ROWS);
    read_graph(q, count_messages);
}

/* ---- messages ---- */

static bool wants_dead_letters(const struct gl_query *q)
{
    return q->rq->verb == GL_VERB_DEAD_LETTERS;
}

static gl_str message_kind(const struct gl_query *q)
{
    return wants_dead_letters(q) ? GL_S("deadletter") : GL_S("letter");
}

static gl_str message_id(struct gl_query *q, int64_t number)
{
    return gl_str_fmt(&q->arena, "%.*s/%0*lld", GL_STR_ARG(q->job), NUMBER_DIGITS,
                      (long long)number);
}

/* The number of a message, from "<job>/<number>". */
static int64_t message_number(gl_str id)
{
    gl_str rest;
    int64_t n = 0;

    (void)gl_str_cut(id, '/', &rest);
    while (rest.n > 1 && rest.p[0] == '0') {
        rest.p++;
        rest.n--;
    }
    (void)gl_str_i64(rest, &n); /* not a number: 0, which no message has */
    return n;
}

/* The queued messages, or dead letters, to write, once it is known which are being handled. */
struct message_page {
    struct queued_message {
        struct gl_record r;
        gl_str whole; /* the message, if it is not in its record */
        int64_t to;   /* number of the receiving agent; -1: no such agent */
    } * messages;
    size_t n, n_max;
    int64_t *units; /* the receiving agents, by number */
    size_t units_n;
    int64_t *handled; /* by number of the agent: the message it is handling; -1: still to be read */
    gl_str next;
};

/* `is_handled`: its agent's worker is handling it. */
static void write_message(struct gl_query *q, struct gl_arena *a, const struct queued_message *x,
                          const struct doc *d, bool is_handled)
{
    static const char *const texts[] = {"to", "from", "step", "status", "type", "reason"};
    struct gl_jw *w = &q->w;
    gl_str message = x->whole.n > 0 ? x->whole : raw_in(d, "message");

    gl_jw_object(w);
    gl_jw_put_i64(w, "number", message_number(x->r.id));
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        bool is_status = strcmp(texts[i], "status") == 0;

        put_text(w, texts[i], is_status && is_handled ? GL_S("handling") : text_in(a, d, texts[i]));
    }
    if (!wants_dead_letters(q)) {
        gl_jw_put_i64(w, "priority", GL_MESSAGE_PRIORITY + number_in(d, "urgency"));
    }
    put_time(w, "created_at", number_in(d, "created_at"));
    put_time(w, "died_at", number_in(d, "died_at"));
    gl_jw_put_raw(w, "message", message.n > 0 ? message : GL_S("null"));
    gl_jw_end(w);
}

static void write_messages(struct gl_query *q)
{
    struct message_page *m = q->counts;

    begin(q, wants_dead_letters(q) ? "dead_letters" : "messages");
    for (size_t i = 0; i < m->n; i++) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        const struct queued_message *x = &m->messages[i];
        struct doc d = doc_of(&a, &x->r);

        write_message(q, &a, x, &d, x->to >= 0 && m->handled[x->to] == message_number(x->r.id));
    }
    end(q, m->next);
}

static void note_handler(struct gl_query *q, size_t i, const struct gl_record *record)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct doc unit = doc_of(&a, record);
    struct message_page *m = q->counts;

    m->handled[m->units[i]] = handled_by(&a, &unit);
}

/* Reads the unit of every receiving agent, to find which messages are being handled. */
static void read_handlers(struct gl_query *q, gl_str next)
{
    struct message_page *m = q->counts;

    m->next = next;
    m->units = GL_NEW_ARRAY(&q->arena, int64_t, m->n + 1);
    m->handled = GL_NEW_ARRAY(&q->arena, int64_t, gl_flow_agents_n(q->graph) + 1);
    q->keys = GL_NEW_ARRAY(&q->arena, struct gl_key, m->n + 1);
    for (size_t i = 0; i < m->n && !wants_dead_letters(q); i++) {
        int64_t to = m->messages[i].to;

        if (to >= 0 && m->handled[to] == 0) {
            m->handled[to] = -1;
            m->units[m->units_n] = to;
            q->keys[m->units_n++] = (struct gl_key){
                .kind = GL_S("step"),
                .id = gl_str_fmt(&q->arena, "%.*s/%.*s", GL_STR_ARG(q->job),
                                 GL_STR_ARG(gl_flow_step(q->graph, (uint32_t)to)->id))};
        }
    }
    if (m->units_n == 0) {
        write_messages(q);
        return;
    }
    read_units(q, m->units_n, note_handler, write_messages);
}

static void add_message(struct gl_query *q, const struct gl_record *r, gl_str to, gl_str whole)
{
    struct message_page *m = q->counts;

    m->messages[m->n++] = (struct queued_message){
        .r = gl_query_copy_record(q, r), .whole = whole, .to = gl_flow_find_agent(q->graph, to)};
}

/* What an aggregator has collected belongs to it; once the job has ended, it is not needed. */
static bool is_over(struct gl_query *q, struct gl_arena *a, const struct doc *d)
{
    return !q->job_record.live && gl_str_is(text_in(a, d, "status"), "counted");
}

static void on_messages(struct gl_store_req *req)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_query *q = req->owner;
    const struct message_page *m = q->counts;
    int64_t last = 0;
    bool full = false;

    for (size_t i = 0; i < req->records_n && !full; i++) {
        struct doc d = doc_of(&a, &req->records[i]);

        last = message_number(req->records[i].id);
        q->scanned++;
        if ((q->rq->messages.agent.n == 0 ||
             gl_str_eq(text_in(&a, &d, "to"), q->rq->messages.agent)) &&
            !is_over(q, &a, &d)) {
            add_message(q, &req->records[i], text_in(&a, &d, "to"), (gl_str){0});
            full = m->n == m->n_max;
        }
    }
    if (!full && req->records_n == MESSAGES_PAGE && q->scanned < MESSAGES_COUNTED) {
        q->listing.after = message_id(q, last);
        gl_query_read(q, on_messages);
        return;
    }
    read_handlers(q, full || req->records_n == MESSAGES_PAGE
                         ? gl_str_fmt(&q->arena, "%lld", (long long)last)
                         : (gl_str){0});
}

/* A single message, whole. */
static void on_message(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct doc d;

    if (req->records[0].rev == 0) {
        gl_query_fail(q, GL_R_NO_SUCH_MESSAGE,
                      gl_str_fmt(&q->arena, "job %.*s has no %s %lld", GL_STR_ARG(q->job),
                                 wants_dead_letters(q) ? "dead letter" : "waiting message",
                                 (long long)q->rq->messages.number)
                          .p);
        return;
    }
    d = doc_of(&q->arena, &req->records[0]);
    add_message(q, &req->records[0], text_in(&q->arena, &d, "to"),
                req->records[1].rev != 0 && !req->records[1].damaged
                    ? gl_str_dup(&q->arena, req->records[1].value)
                    : (gl_str){0});
    read_handlers(q, (gl_str){0});
}

static void read_message(struct gl_query *q)
{
    struct gl_store *s = q->context->store;
    gl_str id = message_id(q, q->rq->messages.number);

    q->keys = GL_NEW_ARRAY(&q->arena, struct gl_key, 2);
    q->keys[0] = (struct gl_key){.kind = message_kind(q), .id = id};
    q->keys[1] = (struct gl_key){.kind = GL_S("message"), .id = id};
    s->ops->get(s, gl_query_call(q, on_message), q->tenant, q->keys, 2);
}

static void list_messages(struct gl_query *q)
{
    struct message_page *m = GL_NEW(&q->arena, struct message_page);
    int64_t after = 0;

    m->n_max = q->limit;
    m->messages = GL_NEW_ARRAY(&q->arena, struct queued_message, m->n_max);
    q->counts = m;
    if (q->rq->messages.number > 0) {
        read_message(q);
        return;
    }
    if (q->rq->messages.after.n > 0 && (!gl_str_i64(q->rq->messages.after, &after) || after < 0)) {
        gl_query_fail(q, GL_R_AFTER_INVALID, "`after` must be the number of a message");
        return;
    }
    q->listing = (struct gl_listing){.kind = message_kind(q),
                                     .prefix = job_prefix(q),
                                     .after = after > 0 ? message_id(q, after) : (gl_str){0},
                                     .limit = MESSAGES_PAGE};
    gl_query_read(q, on_messages);
}

void gl_query_messages(struct gl_query *q)
{
    q->limit = gl_query_limit(q->rq->messages.limit, GL_QUERY_ROWS);
    read_graph(q, list_messages);
}
