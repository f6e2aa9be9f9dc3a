#include "api/query.h"

#include "api/nodes.h"
#include "api/query_parts.h"
#include "api/render.h"
#include "base/check.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/cluster/claim.h"
#include "model/job.h"

enum {
    LIMIT_DEFAULT = 100,
    ENTRIES_PAGE = 64, /* of a log, in one read */
    SCAN_MAX = 20000,
    PREFIX_BYTES_MIN = 4,
};

void gl_query_init(struct gl_query_context *q, struct gl_store *store)
{
    *q = (struct gl_query_context){.store = store};
    gl_list_init(&q->under_way);
    gl_list_init(&q->turns);
}

/* Before its answer is given: whoever hears it may ask whether anything is still under way. */
static void query_leave(struct gl_query *q)
{
    gl_list_remove(&q->link);
    q->context->under_way_n--;
    if (q->leave != NULL) {
        q->leave(q);
        q->leave = NULL;
    }
}

static void query_free(struct gl_query *q)
{
    gl_buf_done(&q->body);
    gl_arena_done(&q->arena);
    gl_mem_free(q);
}

void gl_query_done(struct gl_query_context *q)
{
    q->is_closing = true;
    for (struct gl_link *l; (l = gl_list_first(&q->under_way)) != NULL;) {
        struct gl_query *one = GL_CONTAINER(l, struct gl_query, link);

        query_leave(one);
        query_free(one);
    }
}

static struct gl_query *query_new(struct gl_query_context *context, gl_str tenant, gl_str name)
{
    struct gl_query *q = gl_mem_alloc(sizeof(*q));

    q->context = context;
    q->tenant = gl_str_dup(&q->arena, tenant);
    q->name = gl_str_dup(&q->arena, name);
    gl_list_push(&context->under_way, &q->link);
    context->under_way_n++;
    return q;
}

/* ---- answering ---- */

void gl_query_fail(struct gl_query *q, int code, const char *why)
{
    struct gl_request *rq = q->rq;

    if (rq != NULL) {
        rq->code = gl_why(&rq->why, code, "%s", why); /* which may go when the query leaves */
        rq->body = (gl_str){0};
        query_leave(q);
        q->answer(q->owner, rq);
    } else {
        query_leave(q);
        q->resolved(q->owner, code, (gl_str){0}, why);
    }
    query_free(q);
}

void gl_query_succeed(struct gl_query *q)
{
    struct gl_request *rq = q->rq;

    GL_ASSERT(q->w.depth == 0);
    rq->code = 0;
    rq->body = gl_buf_view(&q->body);
    query_leave(q);
    q->answer(q->owner, rq);
    query_free(q);
}

/* True if the store has answered; else the question has ended. */
bool gl_query_answered(struct gl_query *q)
{
    if (q->req.status != 0) {
        gl_query_fail(q, q->req.status, q->req.why.text);
        return false;
    }
    return true;
}

void gl_query_get(struct gl_query *q, gl_str kind, gl_str id, gl_store_done *done)
{
    struct gl_store *s = q->context->store;

    q->key = (struct gl_key){.kind = kind, .id = id};
    q->req = (struct gl_store_req){.done = done, .owner = q};
    s->ops->get(s, &q->req, q->tenant, &q->key, 1);
}

void gl_query_list(struct gl_query *q, gl_store_done *done)
{
    struct gl_store *s = q->context->store;

    q->req = (struct gl_store_req){.done = done, .owner = q};
    s->ops->list(s, &q->req, q->tenant, &q->listing);
}

struct gl_record gl_query_keep(struct gl_query *q, const struct gl_record *r)
{
    struct gl_record copy = *r;

    copy.kind = gl_str_dup(&q->arena, r->kind);
    copy.id = gl_str_dup(&q->arena, r->id);
    copy.owner = gl_str_dup(&q->arena, r->owner);
    copy.value = gl_str_dup(&q->arena, r->value);
    return copy;
}

/* ---- which job? ---- */

static void found_job(struct gl_query *q, gl_str job)
{
    q->job = gl_str_dup(&q->arena, job);
    if (q->rq != NULL) {
        memset(q->rq->job_id, 0, sizeof(q->rq->job_id));
        memcpy(q->rq->job_id, job.p, job.n < GL_ULID_BYTES ? job.n : GL_ULID_BYTES);
        q->next(q);
        return;
    }
    query_leave(q);
    q->resolved(q->owner, 0, q->job, "");
    query_free(q);
}

void gl_query_no_such_job(struct gl_query *q)
{
    gl_query_fail(q, GL_E_NOT_FOUND,
                  gl_str_fmt(&q->arena, "there is no job '%.*s': 'glia job list' shows them",
                             GL_STR_ARG(q->name))
                      .p);
}

static void on_prefix(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    if (!gl_query_answered(q)) {
        return;
    }
    if (req->records_n == 1) {
        found_job(q, req->records[0].id);
    } else if (req->records_n == 0) {
        gl_query_no_such_job(q);
    } else {
        gl_query_fail(q, GL_E_INVALID,
                      gl_str_fmt(&q->arena,
                                 "more than one job begins with '%.*s': give more of its id",
                                 GL_STR_ARG(q->name))
                          .p);
    }
}

static void on_run(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    char *upper;

    if (!gl_query_answered(q)) {
        return;
    }
    if (req->records[0].rev != 0) {
        struct gl_json j;

        if (gl_json_parse(&j, gl_str_dup(&q->arena, req->records[0].value), GL_RECORD_BYTES_MAX,
                          &q->arena, NULL) == 0) {
            found_job(q, gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &q->arena));
            return;
        }
    }
    if (q->name.n < PREFIX_BYTES_MIN) {
        gl_query_fail(
            q, GL_E_NOT_FOUND,
            gl_str_fmt(&q->arena,
                       "there is no job '%.*s', and it is too short for the beginning of an id: "
                       "that needs %d characters at least",
                       GL_STR_ARG(q->name), PREFIX_BYTES_MIN)
                .p);
        return;
    }
    if (q->name.n > GL_ULID_BYTES) {
        gl_query_no_such_job(q);
        return;
    }
    upper = gl_arena_copy(&q->arena, q->name.p, q->name.n);
    for (size_t i = 0; i < q->name.n; i++) {
        upper[i] = (char)(upper[i] >= 'a' && upper[i] <= 'z' ? upper[i] - 'a' + 'A' : upper[i]);
    }
    q->listing = (struct gl_listing){
        .kind = GL_S("job"), .prefix = {.p = upper, .n = q->name.n}, .limit = 2};
    gl_query_list(q, on_prefix);
}

static void find_job(struct gl_query *q)
{
    if (q->name.n == 0 || q->name.n > GL_ID_BYTES_MAX) {
        gl_query_fail(q, GL_E_NOT_FOUND, "a job's name has 1 to 128 characters");
    } else if (gl_id_valid(q->name)) {
        found_job(q, q->name);
    } else {
        gl_query_get(q, GL_S("run"), q->name, on_run);
    }
}

void gl_query_resolve(struct gl_query_context *context, gl_str tenant, gl_str name,
                      gl_query_resolved *done, void *owner)
{
    struct gl_query *q = query_new(context, tenant, name);

    q->resolved = done;
    q->owner = owner;
    find_job(q);
}

/* ---- list ---- */

static bool is_wanted(struct gl_query *q, const struct gl_record *r)
{
    gl_str status_word = q->rq->status, name = q->rq->name;

    return (status_word.n == 0 ||
            gl_str_eq(gl_render_text(&q->arena, r->value, "status"), status_word)) &&
           (name.n == 0 || gl_str_eq(gl_render_text(&q->arena, r->value, "name"), name));
}

static void on_list(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    uint32_t limit = q->rq->limit;
    gl_str last = {0};
    bool full = false;

    if (!gl_query_answered(q)) {
        return;
    }
    for (size_t i = 0; i < req->records_n && !full; i++) {
        q->scanned++;
        last = gl_str_dup(&q->arena, req->records[i].id);
        if (is_wanted(q, &req->records[i])) {
            gl_render_job(&q->arena, &req->records[i], q->context->store->ops->shared, &q->w);
            full = ++q->taken == limit;
        }
    }
    if (!full && req->records_n == q->listing.limit && q->scanned < SCAN_MAX) {
        q->listing.after = last;
        gl_query_list(q, on_list);
        return;
    }
    gl_jw_end(&q->w);
    gl_jw_key(&q->w, "next");
    if (full || (req->records_n == q->listing.limit)) {
        gl_jw_str(&q->w, last);
    } else {
        gl_jw_null(&q->w);
    }
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

static void list(struct gl_query *q)
{
    if (q->rq->status.n > 0 && gl_schema_word(gl_job_status_words, q->rq->status) < 0) {
        gl_query_fail(
            q, GL_E_INVALID,
            "there is no such status: pending, running, pausing, paused, cancelling, completed, "
            "failed or cancelled");
        return;
    }
    gl_jw_object(&q->w);
    gl_jw_key(&q->w, "jobs");
    gl_jw_array(&q->w);
    q->listing = (struct gl_listing){.kind = GL_S("job"),
                                     .after = gl_str_dup(&q->arena, q->rq->after),
                                     .limit = q->rq->limit,
                                     .descending = true};
    gl_query_list(q, on_list);
}

/* ---- events ---- */

/* A page counts events, the store counts entries, and an entry has up to a few hundred events: so
 * entries are read a few at a time until the page is full or the log ends. */
static void read_entries(struct gl_query *q);

static void tell_events(struct gl_query *q, struct gl_events *e)
{
    q->rq->count = gl_render_events_end(e, !q->job_record.live, &q->w);
    q->rq->ended = !q->job_record.live && q->rq->count < q->rq->limit;
    if (q->job_record.damaged && q->rq->count == 0) { /* nobody should wait for more */
        gl_query_fail(q, GL_E_DAMAGED, "the record of this job is damaged: " GL_JOB_DAMAGED_ADVICE);
        return;
    }
    gl_query_succeed(q);
}

static void on_events(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_events *e = q->counts;

    if (!gl_query_answered(q)) {
        return;
    }
    for (size_t i = 0; i < req->log_n; i++) {
        gl_render_events_add(e, req->log[i].value, &q->w);
        e->at = req->log[i].seq + 1;
    }
    if (req->log_n == ENTRIES_PAGE && e->taken < e->limit) {
        read_entries(q);
    } else {
        tell_events(q, e);
    }
}

static void read_entries(struct gl_query *q)
{
    const struct gl_events *e = q->counts;
    struct gl_store *s = q->context->store;

    q->req = (struct gl_store_req){.done = on_events, .owner = q};
    s->ops->log_read(s, &q->req, q->tenant, GL_S("events"), q->job, e->at, ENTRIES_PAGE);
}

static void on_events_job(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_events *e = GL_NEW(&q->arena, struct gl_events);
    struct gl_job_record job;

    if (!gl_query_answered(q)) {
        return;
    }
    if (req->records[0].rev == 0) {
        gl_query_no_such_job(q);
        return;
    }
    q->job_record = gl_query_keep(q, &req->records[0]);
    if (gl_view_record(&q->arena, &gl_job_schema, q->job_record.value, &job, NULL) != 0) {
        job.last_seq = INT64_MAX; /* damaged: all there is */
    }
    *e = (struct gl_events){.from = q->rq->from_seq,
                            .at = q->rq->from_seq,
                            .last = job.last_seq,
                            .limit = q->rq->limit,
                            .status = gl_render_text(&q->arena, q->job_record.value, "status")};
    q->counts = e;
    gl_render_events_begin(e, &q->w);
    read_entries(q);
}

/* The job first, its log after: so a job that is said to have ended has told everything. */
static void events(struct gl_query *q)
{
    gl_query_get(q, GL_S("job"), q->job, on_events_job);
}

/* ---- claims ---- */

static bool read_claim(struct gl_query *q, const struct gl_record *r, struct gl_claim *ret)
{
    return !r->damaged &&
           gl_claim_decode(gl_str_dup(&q->arena, r->value), &q->arena, ret, NULL) == 0;
}

static bool is_wanted_claim(struct gl_query *q, const struct gl_claim *c)
{
    return q->rq->status.n == 0 || gl_str_is(q->rq->status, gl_claim_state_words[c->state]);
}

static void on_claims(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    gl_str last = {0};
    bool full = false;

    if (!gl_query_answered(q)) {
        return;
    }
    for (size_t i = 0; i < req->records_n && !full; i++) {
        struct gl_claim c;

        q->scanned++;
        last = gl_str_dup(&q->arena, req->records[i].id);
        if (read_claim(q, &req->records[i], &c) && is_wanted_claim(q, &c)) {
            gl_claim_write(&q->w, last, &c, 0);
            full = ++q->taken == q->rq->limit;
        }
    }
    if (!full && req->records_n == q->listing.limit && q->scanned < SCAN_MAX) {
        q->listing.after = last;
        gl_query_list(q, on_claims);
        return;
    }
    gl_jw_end(&q->w);
    gl_jw_key(&q->w, "next");
    if (full || req->records_n == q->listing.limit) {
        gl_jw_str(&q->w, last);
    } else {
        gl_jw_null(&q->w);
    }
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

static void claims(struct gl_query *q)
{
    if (q->rq->status.n > 0 && gl_schema_word(gl_claim_state_words, q->rq->status) < 0) {
        gl_query_fail(q, GL_E_INVALID, "there is no such state: claimed, done, failed or expired");
        return;
    }
    gl_jw_object(&q->w);
    gl_jw_key(&q->w, "claims");
    gl_jw_array(&q->w);
    q->listing = (struct gl_listing){.kind = GL_S("claim"),
                                     .prefix = gl_str_dup(&q->arena, q->rq->claim_key),
                                     .after = gl_str_dup(&q->arena, q->rq->after),
                                     .limit = q->rq->limit,
                                     .live_only = gl_str_is(q->rq->status, "claimed")};
    gl_query_list(q, on_claims);
}

static void on_claim(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_claim c;

    if (!gl_query_answered(q)) {
        return;
    }
    if (req->records[0].rev == 0) {
        gl_query_fail(q, GL_E_NOT_FOUND,
                      "nobody has ever claimed that key: 'glia claim list' shows them");
    } else if (!read_claim(q, &req->records[0], &c)) {
        gl_query_fail(q, GL_E_DAMAGED, "the record of this claim is damaged");
    } else {
        gl_claim_write(&q->w, q->rq->claim_key, &c, 0);
        gl_query_succeed(q);
    }
}

/* ---- nodes ---- */

static void on_sessions(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    const struct gl_reason_live *live = q->context->live;

    if (!gl_query_answered(q)) {
        return;
    }
    q->nodes = (struct gl_nodes){
        .sessions = gl_nodes_copy(&q->arena, req->sessions, req->sessions_n),
        .sessions_n = req->sessions_n,
        .engine = q->context->store->ops->name,
        .is_shared = q->context->store->ops->shared,
        .has_node = live != NULL,
        .own = live != NULL && live->session != NULL
                   ? gl_str_dup(&q->arena, live->session(live->owner))
                   : (gl_str){0},
    };
    q->next(q);
}

void gl_query_sessions(struct gl_query *q, void (*then)(struct gl_query *q))
{
    struct gl_store *s = q->context->store;

    q->next = then;
    q->req = (struct gl_store_req){.done = on_sessions, .owner = q};
    s->ops->session_list(s, &q->req);
}

static void on_leader(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_why why;
    int rc = 0;

    if (!gl_query_answered(q)) {
        return;
    }
    q->nodes.leader = gl_str_dup(&q->arena, req->records[0].owner);
    if (q->rq->verb == GL_VERB_NODES) {
        gl_nodes_write(&q->arena, &q->nodes, q->rq->all, &q->w);
    } else if (q->rq->verb == GL_VERB_CLUSTER) {
        gl_nodes_write_cluster(&q->arena, &q->nodes, &q->w);
    } else {
        rc = gl_nodes_write_one(&q->arena, &q->nodes, q->rq->name, &q->w, &why);
    }
    if (rc != 0) {
        gl_query_fail(q, rc, why.text);
    } else {
        gl_query_succeed(q);
    }
}

static void find_leader(struct gl_query *q)
{
    gl_query_get(q, GL_S("lease"), GL_S("leader"), on_leader);
}

/* ---- the door ---- */

void gl_query_run(struct gl_query_context *context, struct gl_request *rq, gl_query_answer *answer,
                  void *owner)
{
    struct gl_query *q = query_new(context, rq->context, rq->job);

    q->rq = rq;
    q->answer = answer;
    q->owner = owner;
    rq->limit = rq->limit != 0                                          ? rq->limit
                : rq->verb == GL_VERB_STATUS || rq->verb == GL_VERB_WHY ? GL_PAGE_MAX
                                                                        : LIMIT_DEFAULT;
    rq->limit = rq->limit > GL_PAGE_MAX ? GL_PAGE_MAX : rq->limit;
    gl_jw_init(&q->w, &q->body);
    switch (rq->verb) {
    case GL_VERB_LIST:
        list(q);
        return;
    case GL_VERB_HUMAN:
        gl_query_human(q);
        return;
    case GL_VERB_NODES:
    case GL_VERB_NODE_SHOW:
    case GL_VERB_CLUSTER:
        gl_query_sessions(q, find_leader);
        return;
    case GL_VERB_CLAIM_LIST:
        claims(q);
        return;
    case GL_VERB_CLAIM_SHOW:
        gl_query_get(q, GL_S("claim"), rq->claim_key, on_claim);
        return;
    case GL_VERB_STATUS:
    case GL_VERB_WHY:
        q->next = gl_query_status;
        break;
    case GL_VERB_EVENTS:
        q->next = events;
        break;
    case GL_VERB_AGENTS:
        q->next = gl_query_agents;
        break;
    case GL_VERB_MESSAGES:
    case GL_VERB_DEAD_LETTERS:
        q->next = gl_query_messages;
        break;
    default:
        GL_UNREACHABLE();
    }
    find_job(q);
}
