/* query_status.c - a job and its steps (STATUS), and why they are in their states (WHY).
 *
 * Three ways to read the steps:
 *   scan   all of them, reduced to what one answer holds (scan.h): a status, or why
 *   page   some of them in the order of the flow, from a position on: the pages of a large job
 *   step   one, with its whole output
 *
 * The control thread asks the store and copies what comes back; parsing and rendering are done on
 * another thread (port/work.h). What only the node's memory knows is collected in between, for a
 * bounded number of steps (live_facts.h). Pages, and scans of large jobs, take turns, so that
 * memory does not grow with the number of clients. */
#include "api/live_facts.h"
#include "api/offered.h"
#include "api/places.h"
#include "api/query_parts.h"
#include "api/render.h"
#include "api/scan.h"
#include "api/worker_questions.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "model/bundle/agent.h"

enum {
    PAGE_STEPS = 500,          /* records of one read, ... */
    PAGE_BYTES = 1 << 20,      /* ... and about their bytes; */
    FIRST_BYTES = 256 << 10,   /* bytes of the first read, which needs no turn */
    CHUNK = 16,                /* records read by name in one call: they may be large */
    INBOX_MAX = 100,           /* commands in the inbox to count */
    ITEMS_BYTES_MAX = 8 << 20, /* total size of the outputs of one step's instances in an answer */
};

struct status_query {
    struct gl_work_task task;
    struct gl_query *q;
    struct gl_job_record job;
    const struct gl_flow *flow;
    void *ref;    /* the node's reference to the flow; NULL: the flow is ours */
    gl_str graph; /* the record of a flow changed by patches; "": none */
    struct gl_scan scan;
    struct gl_view view;
    struct gl_facts facts;
    struct gl_places places;
    struct gl_view_offer *offers;
    size_t offers_n;

    struct gl_arena page; /* the records read last, while they are being parsed */
    struct gl_record *records;
    size_t records_n;
    size_t bytes; /* size of all records so far */
    bool has_more;
    void (*then)(
        struct status_query *s); /* runs on the control thread when they have been parsed */

    struct gl_link turn; /* in context->turns while waiting for a turn */
    bool has_turn;

    /* Pages, and single steps: the position. */
    uint32_t number;
    int64_t item;
    uint32_t limit;
    struct gl_view_pick *picks;
    struct gl_view_pick asked[CHUNK];
    size_t picks_n, asked_n;

    int code;
    struct gl_why why;
};

static struct status_query *state(struct gl_query *q)
{
    return q->counts;
}

/* ---- turns ---- */

static void list_steps(struct status_query *s);
static void read_flow(struct status_query *s);

static void give_turn(struct gl_query_context *c)
{
    struct gl_link *l = c->is_closing || c->has_turn ? NULL : gl_list_first(&c->turns);

    if (l != NULL) {
        struct status_query *s = GL_CONTAINER(l, struct status_query, turn);

        gl_list_remove(l);
        c->has_turn = s->has_turn = true;
        s->then(s);
    }
}

/* Runs `then` when no other large job is being read. */
static void wait_turn(struct status_query *s, void (*then)(struct status_query *s))
{
    if (s->has_turn) {
        then(s);
        return;
    }
    s->then = then;
    gl_list_push(&s->q->context->turns, &s->turn);
    give_turn(s->q->context);
}

static void free_status(struct gl_query *q)
{
    struct status_query *s = state(q);
    struct gl_query_context *c = q->context;

    gl_list_remove(&s->turn);
    gl_scan_done(&s->scan);
    gl_arena_done(&s->page);
    if (s->ref != NULL) {
        c->live->flow_done(c->live->owner, s->ref);
    }
    if (s->has_turn) {
        c->has_turn = false;
        give_turn(c);
    }
    gl_mem_free(s);
}

/* ---- work ---- */

static void work(struct status_query *s, bool is_small, void (*run)(struct gl_work_task *t),
                 void (*done)(struct gl_work_task *t))
{
    s->task = (struct gl_work_task){.run = run, .done = done};
    gl_work_post(is_small ? NULL : s->q->context->work, &s->task);
}

static struct status_query *status_of(struct gl_work_task *t)
{
    return GL_CONTAINER(t, struct status_query, task);
}

/* ---- the answer ---- */

static void run_render(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);
    struct gl_query *q = s->q;

    if (q->rq->verb == GL_VERB_WHY) {
        s->code = gl_render_why(&q->arena, &s->view, q->rq->status.step, gl_facts_live(&s->facts),
                                &q->w, &s->why);
    } else {
        gl_render_status(&q->arena, &s->view, gl_facts_live(&s->facts), &q->w);
    }
}

static void on_rendered(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);

    if (s->code != 0) {
        gl_query_fail(s->q, gl_why_whole(&s->why), s->why.text);
    } else {
        gl_query_succeed(s->q);
    }
}

static void answer(struct status_query *s)
{
    struct gl_query *q = s->q;

    if (q->nodes.engine != NULL) {
        s->view.owner = &q->job_owner;
        s->view.nodes = &q->nodes;
        s->view.offers = s->offers;
        s->view.offers_n = s->offers_n;
        gl_places_begin(&s->places, &q->arena, &s->view, q->context->live);
    }
    s->view.asks = gl_worker_question_of(q->context->asks, &s->view, &q->arena);
    s->view.context = q->tenant;
    gl_facts_collect(&s->facts, &q->arena, &s->view, q->context->live);
    work(s,
         s->bytes <= GL_QUERY_AT_ONCE_BYTES && s->flow->steps.n <= GL_QUERY_AT_ONCE_STEPS &&
             gl_flow_agents_n(s->flow) <= GL_QUERY_AT_ONCE_STEPS,
         run_render, on_rendered);
}

/* ---- attempts on other nodes ---- */

static void on_offers(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct status_query *s = state(q);

    GL_ASSERT(req->records_n == s->offers_n); /* one for each key */
    gl_offered_read(&q->arena, req->records, s->offers_n, s->offers);
    answer(s);
}

static void read_offers(struct status_query *s)
{
    struct gl_query *q = s->q;
    struct gl_store *store = q->context->store;

    s->offers_n = gl_offered_keys(&q->arena, &s->view, &q->keys, &s->offers);
    if (s->offers_n == 0) {
        answer(s);
        return;
    }
    store->ops->get(store, gl_query_call(q, on_offers), q->tenant, q->keys, s->offers_n);
}

static void on_inbox(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    q->job_owner.inbox_n = (uint32_t)req->records_n;
    read_offers(state(q));
}

static void find_owner(struct gl_query *q)
{
    q->job_owner = gl_nodes_find_owner(&q->nodes, q->job_record.owner);
    q->job_owner.has_successors = gl_nodes_has_successor(
        &q->arena, &q->nodes, gl_render_text(&q->arena, q->job_record.value, "stack"),
        gl_render_text(&q->arena, q->job_record.value, "env_scope"));
}

static void on_owner(struct gl_query *q)
{
    find_owner(q);
    q->listing = (struct gl_listing){.kind = GL_S("inbox"),
                                     .prefix = gl_str_fmt(&q->arena, "%.*s/", GL_STR_ARG(q->job)),
                                     .limit = INBOX_MAX,
                                     .ids_only = true};
    gl_query_read(q, on_inbox);
}

/* All steps that the answer needs have been read; next, the owner of the job. */
static void on_all_steps(struct status_query *s)
{
    struct gl_query *q = s->q;

    gl_scan_end(&s->scan, &s->view);
    if (s->picks != NULL) {
        s->view.picks = s->picks;
        s->view.picks_n = s->picks_n;
        s->view.is_partial = s->view.is_page = true;
        if (s->number < s->flow->steps.n && q->rq->status.step.n == 0) {
            s->view.next = gl_str_fmt(&q->arena, "%u.%lld", s->number, (long long)s->item);
        }
    } else if (s->view.is_partial) {
        s->view.next = gl_str_fmt(&q->arena, "%u.-1", gl_flow_agents_n(s->flow));
    }
    if (q->context->store->ops->shared && q->job_record.live) {
        gl_query_sessions(q, on_owner);
    } else {
        answer(s);
    }
}

/* ---- a page of records ---- */

static void run_add(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);

    gl_scan_add(&s->scan, s->records, s->records_n);
}

static void on_added(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);

    gl_arena_done(&s->page);
    s->then(s);
}

/* Copies the records, because the store frees them, and has them parsed. */
static void add(struct status_query *s, const struct gl_store_req *req,
                void (*then)(struct status_query *s))
{
    size_t before = s->bytes;

    s->records = GL_NEW_ARRAY(&s->page, struct gl_record, req->records_n + 1);
    s->records_n = 0;
    for (size_t i = 0; i < req->records_n; i++) {
        struct gl_record r = req->records[i];

        if (r.rev == 0) {
            continue; /* requested by name, but it does not exist */
        }
        r.id = gl_str_dup(&s->page, r.id);
        r.value = gl_str_dup(&s->page, r.value);
        r.kind = r.owner = (gl_str){0};
        s->bytes += r.value.n;
        s->records[s->records_n++] = r;
    }
    s->then = then;
    work(s, s->bytes - before <= GL_QUERY_AT_ONCE_BYTES, run_add, on_added);
}

/* ---- all steps ---- */

static void after_page(struct status_query *s)
{
    if (s->has_more) {
        wait_turn(s, list_steps);
    } else {
        on_all_steps(s);
    }
}

static void on_steps(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct status_query *s = state(q);

    s->has_more = gl_listing_has_more(&q->listing, req->records, req->records_n);
    if (s->has_more && req->records_n > 0) {
        q->listing.after = gl_str_dup(&q->arena, req->records[req->records_n - 1].id);
    }
    s->has_more &= req->records_n > 0;
    add(s, req, after_page);
}

static void list_steps(struct status_query *s)
{
    s->q->listing.bytes_max = s->has_turn ? PAGE_BYTES : FIRST_BYTES;
    gl_query_read(s->q, on_steps);
}

static void begin_scan(struct status_query *s)
{
    struct gl_query *q = s->q;

    q->listing = (struct gl_listing){.kind = GL_S("step"),
                                     .prefix = gl_str_fmt(&q->arena, "%.*s/", GL_STR_ARG(q->job)),
                                     .limit = PAGE_STEPS};
    list_steps(s);
}

/* ---- some steps, by name ---- */

static void read_chunk(struct status_query *s);

static bool at_end(const struct status_query *s)
{
    return s->picks_n >= s->limit || s->number >= s->flow->steps.n;
}

/* Steps removed by a patch are on no page, but a position may still name one. */
static void skip_removed(struct status_query *s)
{
    while (s->item < 0 && s->number < s->flow->steps.n &&
           gl_flow_step(s->flow, s->number)->is_removed) {
        s->number++;
    }
}

/* Moves past position (number, item): to the next instance of that step, then to the next step. */
static void advance(struct status_query *s)
{
    if (s->item + 1 < (int64_t)s->scan.items_n[s->number]) {
        s->item++;
    } else {
        s->number++;
        s->item = -1;
    }
    skip_removed(s);
}

/* Takes the steps that were read, up to the first with instances, because those come before the
 * next step. */
static void after_chunk(struct status_query *s)
{
    for (size_t i = 0; i < s->asked_n && !at_end(s); i++) {
        struct gl_view_pick p = s->asked[i];
        const struct gl_view_items *items = &s->scan.view.items[p.number];

        if (p.number != s->number || p.item != s->item) {
            break;
        }
        if (p.item < 0 || (p.item < (int64_t)items->n && items->records[p.item] != NULL)) {
            s->picks[s->picks_n++] = p;
        }
        advance(s);
    }
    read_chunk(s);
}

static void on_chunk(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    add(state(q), req, after_chunk);
}

static gl_str key_of(struct status_query *s, struct gl_view_pick p)
{
    gl_str id = gl_flow_step(s->flow, p.number)->id;

    return p.item < 0 ? gl_str_fmt(&s->q->arena, "%.*s/%.*s", GL_STR_ARG(s->q->job), GL_STR_ARG(id))
                      : gl_str_fmt(&s->q->arena, "%.*s/%.*s[%lld]", GL_STR_ARG(s->q->job),
                                   GL_STR_ARG(id), (long long)p.item);
}

static void read_chunk(struct status_query *s)
{
    struct gl_query *q = s->q;
    struct gl_store *store = q->context->store;
    struct gl_view_pick p = {.number = s->number, .item = s->item};

    if (at_end(s)) {
        on_all_steps(s);
        return;
    }
    for (s->asked_n = 0; s->asked_n < CHUNK && p.number < s->flow->steps.n;) {
        if (p.item >= 0 && p.item >= (int64_t)s->scan.items_n[p.number]) {
            break;
        }
        if (p.item >= 0 || !gl_flow_step(s->flow, p.number)->is_removed) {
            q->keys[s->asked_n] = (struct gl_key){.kind = GL_S("step"), .id = key_of(s, p)};
            s->asked[s->asked_n++] = p;
        }
        p.number += p.item < 0;
        p.item += p.item >= 0;
    }
    store->ops->get(store, gl_query_call(q, on_chunk), q->tenant, q->keys, s->asked_n);
}

static void begin_page(struct status_query *s, uint32_t limit)
{
    s->limit = limit;
    s->picks = GL_NEW_ARRAY(&s->q->arena, struct gl_view_pick, limit + 1);
    s->q->keys = GL_NEW_ARRAY(&s->q->arena, struct gl_key, CHUNK);
    skip_removed(s);
    wait_turn(s, read_chunk);
}

/* "12.-1": the step's number and, for an instance, its item. */
static bool read_position(struct status_query *s, gl_str text)
{
    gl_str rest = {0}, number = gl_str_cut(text, '.', &rest);
    int64_t n = -1;

    if (!gl_str_i64(number, &n) || !gl_str_i64(rest, &s->item) || n < 0 || s->item < -1 ||
        n < gl_flow_agents_n(s->flow) || n >= (int64_t)s->flow->steps.n ||
        s->item >= GL_ITEMS_MAX) {
        return false;
    }
    s->number = (uint32_t)n;
    return true;
}

/* A page that begins among the instances of a step must know how many there are. The step's record
 * says so; it is read first, although it is not on the page. */
static void on_parent_added(struct status_query *s)
{
    if (s->item >= (int64_t)s->scan.items_n[s->number]) {
        gl_query_fail(s->q, GL_R_NO_SUCH_PAGE, "no such page; use `next` of the previous page");
    } else {
        begin_page(s, s->q->limit);
    }
}

static void on_parent(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    add(state(q), req, on_parent_added);
}

/* ---- one step ---- */

static void no_such_step(struct status_query *s)
{
    struct gl_query *q = s->q;

    gl_query_fail(q, GL_R_NO_SUCH_STEP,
                  gl_str_fmt(&q->arena, "job %.*s has no %sstep '%.*s'", GL_STR_ARG(q->job),
                             s->flow->bundle != NULL ? "agent or " : "",
                             GL_STR_ARG(q->rq->status.step))
                      .p);
}

static void after_items(struct status_query *s);

static void on_items(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct status_query *s = state(q);

    s->has_more =
        gl_listing_has_more(&q->listing, req->records, req->records_n) && req->records_n > 0;
    if (s->has_more) {
        q->listing.after = gl_str_dup(&q->arena, req->records[req->records_n - 1].id);
    }
    add(s, req, after_items);
}

static void list_items(struct status_query *s)
{
    gl_query_read(s->q, on_items);
}

/* If the outputs are too large for one answer, clients must ask for the instances one by one. */
static void after_items(struct status_query *s)
{
    if (s->has_more && s->scan.items_bytes[s->number] <= ITEMS_BYTES_MAX) {
        list_items(s);
    } else {
        s->picks[s->picks_n++] = (struct gl_view_pick){.number = s->number, .item = -1};
        on_all_steps(s);
    }
}

static void on_one_added(struct status_query *s)
{
    struct gl_query *q = s->q;

    s->picks = GL_NEW_ARRAY(&q->arena, struct gl_view_pick, 1);
    if (s->item >= 0 && (s->item >= (int64_t)s->scan.view.items[s->number].n ||
                         s->scan.view.items[s->number].records[s->item] == NULL)) {
        no_such_step(s);
    } else if (s->item >= 0 || s->scan.items_n[s->number] == 0) {
        s->picks[s->picks_n++] = (struct gl_view_pick){.number = s->number, .item = s->item};
        on_all_steps(s);
    } else {
        q->listing = (struct gl_listing){
            .kind = GL_S("step"),
            .prefix = gl_str_fmt(&q->arena, "%.*s/%.*s[", GL_STR_ARG(q->job),
                                 GL_STR_ARG(gl_flow_step(s->flow, s->number)->id)),
            .limit = PAGE_STEPS,
            .bytes_max = PAGE_BYTES};
        wait_turn(s, list_items);
    }
}

static void on_one(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    add(state(q), req, on_one_added);
}

/* ---- the flow ---- */

static void on_flow_ready(struct status_query *s)
{
    struct gl_query *q = s->q;
    /* For a bundle the agents that work for the step are included: that is a scan. */
    bool is_one =
        q->rq->verb == GL_VERB_STATUS && q->rq->status.step.n > 0 && s->flow->bundle == NULL;
    bool is_page = q->rq->verb == GL_VERB_STATUS && q->rq->status.page.n > 0;
    uint32_t limit = is_one || is_page ? UINT32_MAX : q->limit;

    gl_scan_begin(&s->scan, &q->arena, &s->job, s->flow, limit,
                  is_one ? GL_OUTPUT_BYTES_MAX : GL_STATUS_OUTPUT_BYTES);
    s->scan.outputs_max = is_one ? ITEMS_BYTES_MAX + GL_OUTPUT_BYTES_MAX : GL_STATUS_BYTES;
    s->scan.items_max = is_one ? ITEMS_BYTES_MAX : GL_STATUS_OUTPUT_BYTES;
    if (q->rq->status.step.n > 0 && !gl_scan_want(&s->scan, q->rq->status.step)) {
        no_such_step(s);
    } else if (is_one) {
        s->number = (uint32_t)s->scan.wanted_number;
        s->item = s->scan.wanted_item;
        gl_query_get(q, GL_S("step"),
                     key_of(s, (struct gl_view_pick){.number = s->number, .item = s->item}),
                     on_one);
    } else if (is_page && !read_position(s, q->rq->status.page)) {
        gl_query_fail(q, GL_R_NO_SUCH_PAGE, "no such page; use `next` of the previous page");
    } else if (is_page && s->item >= 0) {
        gl_query_get(q, GL_S("step"),
                     key_of(s, (struct gl_view_pick){.number = s->number, .item = -1}), on_parent);
    } else if (is_page) {
        begin_page(s, q->limit);
    } else {
        begin_scan(s);
    }
}

/* A flow that was changed while its job ran is stored whole, changes included. */
static void take_graph(struct status_query *s)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    struct gl_json j;
    gl_jnode flow;

    if (s->graph.n == 0 || gl_json_parse(&j, s->graph, GL_RECORD_BYTES_MAX, &scratch, NULL) != 0) {
        return;
    }
    flow = gl_json_get(&j, gl_json_root(&j), "flow");
    s->q->flow = flow != NULL ? gl_json_raw(&j, flow) : s->q->flow;
}

static void run_decode(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);

    take_graph(s);
    s->code = gl_view_read_flow(&s->q->arena, s->q->job, s->q->flow, &s->flow, &s->why);
}

static void on_decoded(struct gl_work_task *t)
{
    struct status_query *s = status_of(t);

    if (s->code != 0) {
        gl_query_fail(s->q, gl_err_join(GL_E_DAMAGED, s->why.reason), s->why.text);
    } else {
        on_flow_ready(s);
    }
}

static void decode(struct status_query *s)
{
    work(s, s->q->flow.n + s->graph.n <= GL_QUERY_AT_ONCE_BYTES, run_decode, on_decoded);
}

/* A decoded flow takes several times the memory of its text. */
static void on_flow_text(struct status_query *s)
{
    if (s->q->flow.n + s->graph.n > PAGE_BYTES) {
        wait_turn(s, decode);
    } else {
        decode(s);
    }
}

static void on_graph(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct status_query *s = state(q);

    if (req->records[0].rev != 0 && !req->records[0].damaged) {
        s->graph = gl_str_dup(&q->arena, req->records[0].value);
    }
    on_flow_text(s);
}

static void on_flow(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct status_query *s = state(q);

    q->flow = gl_str_dup(&q->arena, req->records[0].value);
    if (s->job.patches_n > 0) {
        gl_query_get(q, GL_S("patch"), gl_str_fmt(&q->arena, "%.*s/graph", GL_STR_ARG(q->job)),
                     on_graph);
    } else {
        on_flow_text(s);
    }
}

static void read_flow(struct status_query *s)
{
    gl_query_get(s->q, GL_S("flow"), s->job.flow, on_flow);
}

/* The node has the flows of jobs in memory. Decoding one of 100,000 steps again would take more
 * memory than everything else. */
static void find_flow(struct status_query *s)
{
    const struct gl_reason_live *live = s->q->context->live;

    if (live != NULL && live->flow != NULL && s->job.patches_n == 0) {
        s->flow = live->flow(live->owner, s->job.flow, &s->ref);
    }
    if (s->flow != NULL) {
        on_flow_ready(s);
    } else if ((uint64_t)s->job.steps_n > GL_PAGE_MAX) {
        wait_turn(s, read_flow);
    } else {
        read_flow(s);
    }
}

/* ---- the job ---- */

/* Only the job and what may be wrong with it; a waiting command needs no more. */
static void answer_brief(struct gl_query *q)
{
    const struct gl_reason_live *live = q->context->live;
    struct gl_view v = {.flow = NULL};
    struct gl_why why;

    if (q->nodes.engine != NULL) {
        find_owner(q);
        v.owner = &q->job_owner;
    }
    if (gl_view_read_job(&q->arena, &q->job_record, &v.job, &why) == 0) {
        gl_render_brief(&q->arena, &v,
                        q->context->store->ops->shared ? q->job_record.owner : (gl_str){0}, live,
                        &q->w);
    } else {
        gl_render_job(&q->arena, &q->job_record, q->context->store->ops->shared, &q->w);
    }
    gl_query_succeed(q);
}

/* A job whose flow is gone will never finish, so clients must not wait for it. */
static void on_brief_flow(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    if (req->records[0].rev == 0 || req->records[0].damaged) {
        gl_query_fail(q, GL_R_JOB_DAMAGED,
                      gl_str_fmt(&q->arena,
                                 "the record of the flow of job %.*s is damaged or missing: %s",
                                 GL_STR_ARG(q->job), GL_JOB_DAMAGED_ADVICE)
                          .p);
    } else if (q->context->store->ops->shared) {
        gl_query_sessions(q, answer_brief);
    } else {
        answer_brief(q);
    }
}

static void brief(struct gl_query *q)
{
    const struct gl_reason_live *live = q->context->live;
    gl_str hash = gl_render_text(&q->arena, q->job_record.value, "flow");
    void *ref = NULL;

    if (!q->job_record.live || (q->job_record.damaged && !gl_query_is_unrecoverable(q))) {
        answer_brief(q);
        return;
    }
    if (live != NULL && live->flow != NULL && live->flow(live->owner, hash, &ref) != NULL) {
        live->flow_done(live->owner, ref);
        if (q->context->store->ops->shared) {
            gl_query_sessions(q, answer_brief);
        } else {
            answer_brief(q);
        }
        return;
    }
    gl_query_get(q, GL_S("flow"), hash, on_brief_flow);
}

static void on_job(struct gl_query *q)
{
    struct status_query *s;
    struct gl_why why = {0};
    struct gl_job_record job;

    if (q->rq->status.brief) {
        brief(q);
        return;
    }
    if (gl_view_read_job(&q->arena, &q->job_record, &job, &why) != 0) {
        gl_query_fail(q, gl_err_join(GL_E_DAMAGED, why.reason), why.text);
        return;
    }
    s = gl_mem_alloc(sizeof(*s));
    s->q = q;
    s->job = job;
    gl_list_init(&s->turn);
    q->counts = s;
    q->cleanup = free_status;
    find_flow(s);
}

void gl_query_status(struct gl_query *q)
{
    const struct gl_status_request *rq = &q->rq->status;

    if ((rq->step.n > 0) + (rq->page.n > 0) + rq->brief > 1) {
        gl_query_fail(q, GL_R_ARGUMENTS_EXCLUSIVE,
                      "'step', 'page' and 'brief' are mutually exclusive");
        return;
    }
    q->limit = gl_query_limit(rq->limit, GL_PAGE_MAX);
    gl_query_get_job(q, on_job);
}
