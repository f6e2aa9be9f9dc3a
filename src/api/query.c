/* query.c - running queries: resolving names of jobs, calling the store, rendering pages; and the
 * simple queries (list, events, claims, nodes).
 *
 * A query has one call in flight at a time. It ends with gl_query_succeed() or gl_query_fail(),
 * which free it. */
#include "api/query.h"

#include "api/query_parts.h"
#include "api/render.h"
#include "base/check.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/claims/claim.h"
#include "model/job.h"

enum {
    ENTRIES_PAGE = 64, /* entries of a log in one read */
    RECORDS_PAGE = 100,
    PAGE_BYTES = 1 << 20,
    SCAN_MAX = 20000,
    PREFIX_BYTES_MIN = 4,
};

void gl_query_init(struct gl_query_context *q, struct gl_store *store)
{
    *q = (struct gl_query_context){.store = store};
    gl_list_init(&q->under_way);
    gl_list_init(&q->turns);
}

/* Must run before the answer is delivered: its receiver may ask whether any query is still in
 * flight. */
static void query_unlink(struct gl_query *q)
{
    gl_list_remove(&q->link);
    q->context->under_way_n--;
    if (q->cleanup != NULL) {
        q->cleanup(q);
        q->cleanup = NULL;
    }
}

static void query_free(struct gl_query *q)
{
    gl_buf_done(&q->body);
    gl_arena_done(&q->page);
    gl_arena_done(&q->arena);
    gl_mem_free(q);
}

void gl_query_done(struct gl_query_context *q)
{
    q->is_closing = true;
    for (struct gl_link *l; (l = gl_list_first(&q->under_way)) != NULL;) {
        struct gl_query *one = GL_CONTAINER(l, struct gl_query, link);

        query_unlink(one);
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
        rq->code = gl_why(&rq->why, code, "%s", why); /* `why` may go with the query */
        rq->body = (gl_str){0};
        query_unlink(q);
        q->answer(q->owner, rq);
    } else {
        query_unlink(q);
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
    query_unlink(q);
    q->answer(q->owner, rq);
    query_free(q);
}

static void on_answer(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    if (req->status != 0) {
        gl_query_fail(q, gl_err_join(req->status, req->why.reason), req->why.text);
    } else {
        q->answered(req);
    }
}

struct gl_store_req *gl_query_call(struct gl_query *q, gl_store_done *next)
{
    q->answered = next;
    q->req = (struct gl_store_req){.done = on_answer, .owner = q};
    return &q->req;
}

void gl_query_get(struct gl_query *q, gl_str kind, gl_str id, gl_store_done *done)
{
    struct gl_store *s = q->context->store;

    q->key = (struct gl_key){.kind = kind, .id = id};
    s->ops->get(s, gl_query_call(q, done), q->tenant, &q->key, 1);
}

void gl_query_read(struct gl_query *q, gl_store_done *done)
{
    struct gl_store *s = q->context->store;

    s->ops->list(s, gl_query_call(q, done), q->tenant, &q->listing);
}

static void on_job_read(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    if (req->records[0].rev == 0) {
        gl_query_no_such_job(q);
    } else {
        q->job_record = gl_query_copy_record(q, &req->records[0]);
        q->with_job(q);
    }
}

void gl_query_get_job(struct gl_query *q, void (*next)(struct gl_query *q))
{
    q->with_job = next;
    gl_query_get(q, GL_S("job"), q->job, on_job_read);
}

static struct gl_record record_copy(struct gl_arena *a, const struct gl_record *r)
{
    struct gl_record copy = *r;

    copy.kind = gl_str_dup(a, r->kind);
    copy.id = gl_str_dup(a, r->id);
    copy.owner = gl_str_dup(a, r->owner);
    copy.value = gl_str_dup(a, r->value);
    return copy;
}

struct gl_record gl_query_copy_record(struct gl_query *q, const struct gl_record *r)
{
    return record_copy(&q->arena, r);
}

/* ---- rendering ---- */

static void run_render(struct gl_work_task *t)
{
    struct gl_query *q = GL_CONTAINER(t, struct gl_query, task);

    q->render(q);
}

static void on_rendered(struct gl_work_task *t)
{
    struct gl_query *q = GL_CONTAINER(t, struct gl_query, task);

    gl_arena_reset(&q->page);
    q->rendered(q);
}

static size_t answer_bytes(const struct gl_store_req *req)
{
    size_t bytes = 0;

    for (size_t i = 0; i < req->records_n; i++) {
        bytes += req->records[i].value.n;
    }
    for (size_t i = 0; i < req->log_n; i++) {
        bytes += req->log[i].value.n;
    }
    return bytes;
}

static void copy_answer(struct gl_query *q)
{
    struct gl_record *records = GL_NEW_ARRAY(&q->page, struct gl_record, q->records_n + 1);
    struct gl_log_entry *entries = GL_NEW_ARRAY(&q->page, struct gl_log_entry, q->entries_n + 1);

    for (size_t i = 0; i < q->records_n; i++) {
        records[i] = record_copy(&q->page, &q->records[i]);
    }
    for (size_t i = 0; i < q->entries_n; i++) {
        entries[i].seq = q->entries[i].seq;
        entries[i].value = gl_str_dup(&q->page, q->entries[i].value);
    }
    q->records = records;
    q->entries = entries;
}

void gl_query_render(struct gl_query *q, void (*render)(struct gl_query *q),
                     void (*rendered)(struct gl_query *q))
{
    bool is_small = answer_bytes(&q->req) <= GL_QUERY_AT_ONCE_BYTES;

    q->records = q->req.records;
    q->records_n = q->req.records_n;
    q->entries = q->req.log;
    q->entries_n = q->req.log_n;
    q->render = render;
    q->rendered = rendered;
    q->task = (struct gl_work_task){.run = run_render, .done = on_rendered};
    if (!is_small) {
        copy_answer(q);
    }
    gl_work_post(is_small ? NULL : q->context->work, &q->task);
}

/* ---- finding the job ---- */

static void found_job(struct gl_query *q, gl_str job)
{
    q->job = gl_str_dup(&q->arena, job);
    if (q->rq != NULL) {
        memset(q->rq->job_id, 0, sizeof(q->rq->job_id));
        memcpy(q->rq->job_id, job.p, job.n < GL_ULID_BYTES ? job.n : GL_ULID_BYTES);
        q->next(q);
        return;
    }
    query_unlink(q);
    q->resolved(q->owner, 0, q->job, "");
    query_free(q);
}

bool gl_query_is_unrecoverable(const struct gl_query *q)
{
    const struct gl_reason_live *live = q->context->live;

    return q->job_record.damaged &&
           !(live != NULL && live->owns != NULL && live->owns(live->owner, q->job));
}

void gl_query_no_such_job(struct gl_query *q)
{
    gl_query_fail(q, GL_R_NO_SUCH_JOB,
                  gl_str_fmt(&q->arena, "there is no job '%.*s'; 'glia job list' shows all jobs",
                             GL_STR_ARG(q->name))
                      .p);
}

static void on_prefix(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    if (req->records_n == 1) {
        found_job(q, req->records[0].id);
    } else if (req->records_n == 0) {
        gl_query_no_such_job(q);
    } else {
        gl_query_fail(q, GL_R_JOB_AMBIGUOUS,
                      gl_str_fmt(&q->arena,
                                 "more than one job id begins with '%.*s'; give more of the id",
                                 GL_STR_ARG(q->name))
                          .p);
    }
}

static void on_run(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    char *upper;

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
            q, GL_R_NO_SUCH_JOB,
            gl_str_fmt(&q->arena,
                       "there is no job '%.*s'; a prefix of an id needs at least %d characters",
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
    gl_query_read(q, on_prefix);
}

static void find_job(struct gl_query *q)
{
    if (q->name.n == 0 || q->name.n > GL_ID_BYTES_MAX) {
        gl_query_fail(q, GL_R_JOB_NAME_INVALID, "a job id or run id is 1 to 128 characters");
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

/* ---- lists ---- */

static void run_list(struct gl_query *q)
{
    for (size_t i = 0; i < q->records_n && !q->is_full; i++) {
        q->scanned++;
        q->last = q->records[i].id;
        if (q->each(q, &q->records[i])) {
            q->is_full = ++q->taken == q->limit;
        }
    }
    q->last = gl_str_dup(&q->arena, q->last);
}

static void on_list(struct gl_store_req *req);

static void list_rendered(struct gl_query *q)
{
    bool has_more = q->is_full || q->has_more;

    if (!q->is_full && has_more && q->scanned < SCAN_MAX) {
        q->listing.after = q->last;
        gl_query_read(q, on_list);
        return;
    }
    gl_jw_end(&q->w);
    gl_jw_key(&q->w, "next");
    if (has_more) {
        gl_jw_str(&q->w, q->last);
    } else {
        gl_jw_null(&q->w);
    }
    gl_jw_end(&q->w);
    gl_query_succeed(q);
}

static void on_list(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    q->has_more = gl_listing_has_more(&q->listing, req->records, req->records_n);
    gl_query_render(q, run_list, list_rendered);
}

/* Writes the records of q->listing that `each` accepts as the array `name`, up to q->limit. */
static void list_all(struct gl_query *q, const char *name, gl_str after,
                     bool (*each)(struct gl_query *q, const struct gl_record *r))
{
    gl_jw_object(&q->w);
    gl_jw_put_array(&q->w, name);
    q->each = each;
    q->listing.after = gl_str_dup(&q->arena, after);
    q->listing.limit = q->limit < RECORDS_PAGE ? q->limit : RECORDS_PAGE;
    q->listing.bytes_max = PAGE_BYTES;
    gl_query_read(q, on_list);
}

static bool write_job(struct gl_query *q, const struct gl_record *r)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    gl_str status = q->rq->list.status, name = q->rq->list.name;
    bool is_wanted =
        (status.n == 0 || gl_str_eq(gl_render_text(&scratch, r->value, "status"), status)) &&
        (name.n == 0 || gl_str_eq(gl_render_text(&scratch, r->value, "name"), name));

    if (is_wanted) {
        gl_render_job(&scratch, r, q->context->store->ops->shared, &q->w);
    }
    return is_wanted;
}

void gl_query_list(struct gl_query *q)
{
    const struct gl_list_request *rq = &q->rq->list;

    if (rq->status.n > 0 && gl_schema_word(gl_job_status_words, rq->status) < 0) {
        gl_query_fail(
            q, GL_R_NO_SUCH_STATUS,
            "unknown status; use pending, running, pausing, paused, cancelling, completed, failed "
            "or cancelled");
        return;
    }
    if (rq->after.n > 0 && !gl_id_valid(rq->after)) {
        gl_query_fail(q, GL_R_AFTER_INVALID,
                      gl_str_fmt(&q->arena,
                                 "'%.*s' is not a job id; give `next` of the previous page as "
                                 "`after`",
                                 GL_STR_ARG(rq->after))
                          .p);
        return;
    }
    q->limit = gl_query_limit(rq->limit, GL_QUERY_ROWS);
    q->listing = (struct gl_listing){.kind = GL_S("job"), .descending = true};
    list_all(q, "jobs", rq->after, write_job);
}

/* ---- events ---- */

/* A page counts events, but the store counts entries, and an entry has up to a few hundred events.
 * So entries are read a few at a time until the page is full or the log ends. */
static void read_entries(struct gl_query *q);

static void answer_events(struct gl_query *q, struct gl_events *e)
{
    q->rq->count = gl_render_events_end(e, !q->job_record.live, &q->w);
    q->rq->ended = !q->job_record.live && q->rq->count < q->limit;
    if (q->rq->count == 0 && gl_query_is_unrecoverable(q)) { /* do not wait for more */
        gl_query_fail(q, GL_R_JOB_DAMAGED, "the job's record is damaged: " GL_JOB_DAMAGED_ADVICE);
        return;
    }
    gl_query_succeed(q);
}

static void run_events(struct gl_query *q)
{
    struct gl_events *e = q->counts;

    for (size_t i = 0; i < q->entries_n; i++) {
        gl_render_events_add(e, q->entries[i].value, &q->w);
        e->at = q->entries[i].seq + 1;
    }
}

static void events_rendered(struct gl_query *q)
{
    struct gl_events *e = q->counts;

    if (q->entries_n == ENTRIES_PAGE && e->taken < e->limit) {
        read_entries(q);
    } else {
        answer_events(q, e);
    }
}

static void on_events(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    gl_query_render(q, run_events, events_rendered);
}

static void read_entries(struct gl_query *q)
{
    const struct gl_events *e = q->counts;
    struct gl_store *s = q->context->store;

    s->ops->log_read(s, gl_query_call(q, on_events), q->tenant, GL_S("events"), q->job, e->at,
                     ENTRIES_PAGE);
}

static void on_events_job(struct gl_query *q)
{
    struct gl_events *e = GL_NEW(&q->arena, struct gl_events);
    struct gl_job_record job;

    if (gl_view_record(&q->arena, &gl_job_schema, q->job_record.value, &job, NULL) != 0) {
        job.last_seq = INT64_MAX; /* damaged: return everything there is */
    }
    *e = (struct gl_events){.from = q->rq->events.from,
                            .at = q->rq->events.from,
                            .last = job.last_seq,
                            .limit = q->limit,
                            .status = gl_render_text(&q->arena, q->job_record.value, "status")};
    q->counts = e;
    gl_render_events_begin(e, &q->w);
    read_entries(q);
}

/* The job is read before its log. So if the record says that the job has ended, the log is
 * complete. */
void gl_query_events(struct gl_query *q)
{
    q->limit = gl_query_limit(q->rq->events.limit, GL_QUERY_ROWS);
    gl_query_get_job(q, on_events_job);
}

/* ---- claims ---- */

static bool read_claim(struct gl_arena *a, const struct gl_record *r, struct gl_claim *ret)
{
    return !r->damaged && gl_claim_decode(r->value, a, ret, NULL) == 0;
}

static bool write_claim(struct gl_query *q, const struct gl_record *r)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    gl_str state = q->rq->claims.state;
    struct gl_claim c;
    bool is_wanted = read_claim(&scratch, r, &c) &&
                     (state.n == 0 || gl_str_is(state, gl_claim_state_words[c.state]));

    if (is_wanted) {
        gl_claim_write(&q->w, r->id, &c, 0);
    }
    return is_wanted;
}

void gl_query_claims(struct gl_query *q)
{
    const struct gl_claims_request *rq = &q->rq->claims;

    if (rq->state.n > 0 && gl_schema_word(gl_claim_state_words, rq->state) < 0) {
        gl_query_fail(q, GL_R_NO_SUCH_STATE, "unknown state; use claimed, done, failed or expired");
        return;
    }
    q->limit = gl_query_limit(rq->limit, GL_QUERY_ROWS);
    q->listing = (struct gl_listing){.kind = GL_S("claim"),
                                     .prefix = gl_str_dup(&q->arena, rq->prefix),
                                     .live_only = gl_str_is(rq->state, "claimed")};
    list_all(q, "claims", rq->after, write_claim);
}

static void on_claim(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    struct gl_claim c;

    if (req->records[0].rev == 0) {
        gl_query_fail(q, GL_R_NO_SUCH_CLAIM,
                      "that key has never been claimed; 'glia claim list' shows all claims");
    } else if (!read_claim(&q->arena, &req->records[0], &c)) {
        gl_query_fail(q, GL_R_CLAIM_DAMAGED, "the claim's record is damaged");
    } else {
        gl_claim_write(&q->w, q->rq->claim.key, &c, 0);
        gl_query_succeed(q);
    }
}

void gl_query_claim(struct gl_query *q)
{
    gl_query_get(q, GL_S("claim"), q->rq->claim.key, on_claim);
}

/* ---- nodes ---- */

static void on_sessions(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;
    const struct gl_reason_live *live = q->context->live;

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
    s->ops->session_list(s, gl_query_call(q, on_sessions));
}

static void write_nodes(struct gl_query *q)
{
    gl_nodes_write(&q->arena, &q->nodes, q->rq->nodes.all, &q->w);
    gl_query_succeed(q);
}

static void write_cluster(struct gl_query *q)
{
    gl_nodes_write_cluster(&q->arena, &q->nodes, &q->w);
    gl_query_succeed(q);
}

static void write_node(struct gl_query *q)
{
    struct gl_why why;
    int rc = gl_nodes_write_one(&q->arena, &q->nodes, q->rq->nodes.name, &q->w, &why);

    if (rc != 0) {
        gl_query_fail(q, gl_why_whole(&why), why.text);
    } else {
        gl_query_succeed(q);
    }
}

static void on_leader(struct gl_store_req *req)
{
    struct gl_query *q = req->owner;

    q->nodes.leader = gl_str_dup(&q->arena, req->records[0].owner);
    q->with_nodes(q);
}

static void find_leader(struct gl_query *q)
{
    gl_query_get(q, GL_S("lease"), GL_S("leader"), on_leader);
}

static void with_nodes(struct gl_query *q, void (*then)(struct gl_query *q))
{
    q->with_nodes = then;
    gl_query_sessions(q, find_leader);
}

void gl_query_nodes(struct gl_query *q)
{
    with_nodes(q, write_nodes);
}

void gl_query_node_show(struct gl_query *q)
{
    with_nodes(q, write_node);
}

void gl_query_cluster(struct gl_query *q)
{
    with_nodes(q, write_cluster);
}

/* ---- entry ---- */

uint32_t gl_query_limit(uint32_t asked, uint32_t otherwise)
{
    uint32_t limit = asked != 0 ? asked : otherwise;

    return limit < GL_PAGE_MAX ? limit : GL_PAGE_MAX;
}

#define gl_query_none NULL

static void (*const queries[GL_VERB_COUNT])(struct gl_query *q) = {
#define VERB(name, word, kind, method, path, takes, body, http, query, ...) \
    [GL_VERB_##name] = gl_query_##query,
#include "api/verbs.def"
#undef VERB
};

void gl_query_run(struct gl_query_context *context, struct gl_request *rq, gl_query_answer *answer,
                  void *owner)
{
    struct gl_query *q = query_new(context, rq->context, rq->job);

    GL_ASSERT(queries[rq->verb] != NULL);
    q->rq = rq;
    q->answer = answer;
    q->owner = owner;
    q->next = queries[rq->verb];
    gl_jw_init(&q->w, &q->body);
    if (strstr(gl_verbs[rq->verb].path, "/{job}") != NULL) {
        find_job(q);
    } else {
        q->next(q);
    }
}
