/* trim.c - when ended jobs go, and how far: passes, requests, the answers. */
#include "node/trim_state.h"

enum {
    PASS_MS = 60 * 1000,
    FIRST_MS = 1000, /* after the node has become ready: short lives do not count jobs */
    PAUSE_MS = 20,   /* between two handfuls */
    FLOWS_MS = 60 * 60 * 1000,
    FILES_MS = 60 * 60 * 1000,
    REST_MS = 6 * 60 * 60 * 1000,
    COPY_AGE_MS = 60 * 60 * 1000, /* of a file that is in a shared store, too */
    COUNT_PAGE = 1000,
};

struct gl_trim *gl_trim_new(struct gl_node *n, const struct gl_keep *keep, struct gl_tidy *tidy)
{
    struct gl_trim *t = gl_mem_alloc(sizeof(*t));

    t->node = n;
    t->keep = *keep;
    t->tidy = tidy;
    t->due = INT64_MAX;
    t->seek_begun = n->config.may_be_half;
    t->seek_orphans = true;
    gl_list_init(&t->asks);
    gl_list_init(&t->naming);
    gl_list_init(&t->pins);
    gl_map_init(&t->flows.used);
    gl_map_init(&t->flows.named);
    gl_map_init(&t->flows.blobs);
    gl_map_init(&t->flows.known);
    gl_map_init(&t->damaged);
    gl_map_init(&t->reserved);
    return t;
}

void gl_trim_free(struct gl_trim *t)
{
    for (struct gl_link *l;
         (l = gl_list_first(&t->asks)) != NULL || (l = gl_list_first(&t->naming)) != NULL;) {
        gl_list_remove(l);
        gl_mem_free(GL_CONTAINER(l, struct gl_trim_ask, link));
    }
    gl_mem_free(t->ask);
    gl_trim_jobs_unpin(t, true);
    gl_trim_damaged_free(t);
    gl_trim_flows_end(t);
    gl_arena_done(&t->arena);
    gl_mem_free(t);
}

static bool is_bounded(const struct gl_trim *t)
{
    return t->keep.job_ms > 0 || t->keep.jobs > 0 || t->keep.bytes > 0 || t->keep.work_ms > 0;
}

/* One node looks after a shared store: then it is as with a store of one's own. */
static bool leads(const struct gl_trim *t)
{
    return gl_core_leads(t->node->core);
}

/* ---- calls ---- */

struct gl_store_req *gl_trim_call(struct gl_trim *t, gl_store_done *done)
{
    t->req = (struct gl_store_req){.done = done, .owner = t};
    t->node->outstanding++;
    return &t->req;
}

/* The node has been woken by an answer: what time is it? */
static bool may_go_on(struct gl_trim *t)
{
    struct gl_node *n = t->node;

    n->now = n->ports.clock->now(n->ports.clock);
    if (t->is_stopped) {
        gl_node_rearm(n);
    }
    return !t->is_stopped;
}

bool gl_trim_answered(struct gl_trim *t, const struct gl_store_req *req)
{
    t->node->outstanding--;
    if (!may_go_on(t)) {
        return false;
    }
    if (req->status != 0) {
        gl_trim_fail(t, req->status, req->why.text);
        return false;
    }
    return true;
}

bool gl_trim_landed(struct gl_trim *t, const struct gl_store_req *req, bool *ret_refused)
{
    *ret_refused = req->status == GL_E_CONFLICT;
    if (*ret_refused) {
        t->node->outstanding--;
        return may_go_on(t);
    }
    return gl_trim_answered(t, req);
}

/* Not counted as outstanding: a node does not wait with its end until files have been removed. */
struct gl_tidy_req *gl_trim_tidy(struct gl_trim *t, gl_tidy_done *done)
{
    t->tidy_req = (struct gl_tidy_req){.done = done, .owner = t};
    return &t->tidy_req;
}

bool gl_trim_tidied(struct gl_trim *t, const struct gl_tidy_req *req)
{
    if (t->is_stopped) {
        return false;
    }
    (void)may_go_on(t); /* it may: only the time was wanted */
    if (req->status != 0) {
        gl_trim_fail(t, req->status, req->why.text);
        return false;
    }
    t->files_bytes -= req->bytes < t->files_bytes ? req->bytes : t->files_bytes;
    return true;
}

void gl_trim_commit(struct gl_trim *t, struct gl_tx *tx, gl_store_done *done)
{
    struct gl_store *s = t->node->ports.store;

    tx->context = t->node->config.context;
    tx->session = t->node->session;
    s->ops->commit(s, gl_trim_call(t, done), tx);
}

bool gl_trim_read_job(struct gl_trim *t, gl_str value, struct gl_job_record *ret)
{
    struct gl_json j;
    gl_str text = gl_str_dup(&t->arena, value);

    return gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, &t->arena, NULL) == 0 &&
           gl_schema_read(&gl_job_schema, &j, gl_json_root(&j), false, &t->arena, ret, NULL) == 0;
}

/* ---- the end of a pass ---- */

static void begin(struct gl_trim *t);

static void answer(struct gl_trim *t, int code, const char *why)
{
    struct gl_trim_ask *ask = t->ask;
    struct gl_buf body = {0};
    struct gl_jw w;

    t->ask = NULL;
    if (ask == NULL) {
        return;
    }
    if (code == 0) {
        uint64_t freed =
            t->store_bytes_before > t->store_bytes ? t->store_bytes_before - t->store_bytes : 0;

        gl_jw_init(&w, &body);
        gl_jw_object(&w);
        gl_jw_key(&w, ask->rq->verb == GL_VERB_REMOVE ? "job_id" : "removed_jobs");
        if (ask->rq->verb == GL_VERB_REMOVE) {
            gl_jw_c(&w, ask->job);
            gl_jw_key(&w, "removed");
            gl_jw_bool(&w, true);
        } else {
            gl_jw_u64(&w, t->tally.jobs_n);
            gl_jw_key(&w, "removed_flows");
            gl_jw_u64(&w, t->tally.flows_n);
            gl_jw_key(&w, "removed_blobs");
            gl_jw_u64(&w, t->tally.blobs_n);
            gl_jw_key(&w, "removed_workspaces");
            gl_jw_u64(&w, t->tally.work_n);
        }
        gl_jw_key(&w, "freed_bytes");
        gl_jw_u64(&w, t->tally.bytes + freed);
        gl_jw_end(&w);
    }
    gl_requests_answer(t->node, ask->rq, code, why, code == 0 ? &body : NULL);
    gl_mem_free(ask);
}

static void pass_over(struct gl_trim *t, int code, const char *why)
{
    answer(t, code, why);
    gl_trim_flows_end(t);
    gl_arena_reset(&t->arena);
    t->is_busy = t->is_paused = false;
    t->due = is_bounded(t) || t->seek_begun ? t->node->now + PASS_MS : INT64_MAX;
    if (!gl_list_empty(&t->asks)) {
        begin(t);
    }
    gl_node_rearm(t->node);
}

void gl_trim_fail(struct gl_trim *t, int code, const char *why)
{
    /* What was being removed may have been removed, and its files not; or only a part of it. */
    t->seek_orphans = t->seek_begun = true;
    pass_over(t, code, why);
}

/* ---- the last parts ---- */

static void on_measured_after(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_answered(t, req)) {
        t->store_bytes = req->bytes;
        pass_over(t, 0, "");
    }
}

void gl_trim_files_over(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    if (t->ask != NULL) {
        s->ops->measure(s, gl_trim_call(t, on_measured_after), t->node->config.context);
    } else {
        pass_over(t, 0, "");
    }
}

/* What is here besides the store is every node's own business. */
static void begin_files(struct gl_trim *t)
{
    bool is_time = t->ask != NULL || t->node->now >= t->files_due;
    bool orphans = t->seek_orphans || t->ask != NULL || (gl_trim_is_shared(t) && is_time);
    bool work = t->keep.work_ms > 0 && is_time;

    if (t->tidy == NULL || (!orphans && !work)) {
        gl_trim_files_over(t);
        return;
    }
    t->seek_orphans = false;
    t->files_due = t->node->now + FILES_MS;
    gl_trim_files_begin(t, orphans, work);
}

static void on_copies(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_tidied(t, req)) {
        t->tally.bytes += req->bytes;
        begin_files(t);
    }
}

void gl_trim_rest_over(struct gl_trim *t)
{
    bool is_time = t->ask != NULL || t->node->now >= t->files_due;

    gl_trim_flows_end(t);
    if (gl_trim_is_shared(t) && t->tidy != NULL && is_time) { /* whoever needs one fetches it */
        t->tidy->remove_blobs(t->tidy, gl_trim_tidy(t, on_copies), t->node->config.context, NULL, 0,
                              COPY_AGE_MS);
    } else {
        begin_files(t);
    }
}

void gl_trim_flows_over(struct gl_trim *t)
{
    if (t->ask == NULL && leads(t) && t->node->now >= t->rest_due) {
        t->rest_due = t->node->now + REST_MS;
        if (gl_trim_is_shared(t)) { /* what whoever led before us has left, nobody knows */
            t->flows_due = t->node->now + FLOWS_MS;
            t->again = true;
        }
        gl_trim_rest_begin(t);
    } else {
        gl_trim_rest_over(t);
    }
}

static void no_more_jobs(struct gl_trim *t)
{
    bool is_time = t->node->now >= t->flows_due || t->has_shrunk;

    if (t->ask != NULL || ((t->removed_n > 0 || t->young_bytes > 0 || t->again) && is_time)) {
        t->flows_due = t->node->now + FLOWS_MS;
        t->removed_n = 0;
        t->again = false;
        gl_trim_flows_begin(t);
    } else {
        gl_trim_flows_over(t);
    }
}

/* ---- pages of ended jobs ---- */

static bool is_too_large(const struct gl_trim *t)
{
    return t->keep.bytes > 0 &&
           t->store_bytes + t->files_bytes > (uint64_t)t->keep.bytes + t->young_bytes;
}

/* How many jobs make up for what is too much, if they are of the usual size? Rather too few: it is
 * measured again before the next ones go. */
static int64_t count_by_size(const struct gl_trim *t)
{
    uint64_t all = t->store_bytes + t->files_bytes, ended = (uint64_t)t->ended_n + 1;
    uint64_t excess = is_too_large(t) ? all - (uint64_t)t->keep.bytes - t->young_bytes : 0;
    uint64_t n = excess / (all / ended + 1) + (excess > 0);

    return n < GL_TRIM_HANDFUL ? (int64_t)n : GL_TRIM_HANDFUL;
}

/* Is this one to go? Asked from the oldest on. */
static bool is_to_go(struct gl_trim *t, const struct gl_index_entry *e, size_t before_n)
{
    if (e->score == GL_TRIM_BEGUN) {
        return true;
    }
    if (t->keep_ms >= 0 && e->score <= t->node->now - t->keep_ms) {
        return true;
    }
    if (t->keep_jobs >= 0 && t->ended_n - (int64_t)before_n > t->keep_jobs) {
        return true;
    }
    if (t->by_size_n > 0) {
        t->by_size_n--;
        t->has_shrunk = true;
        return true;
    }
    return false;
}

static void set_after(struct gl_trim *t, const struct gl_index_entry *e)
{
    size_t n = e->id.n < GL_ULID_BYTES ? e->id.n : GL_ULID_BYTES;

    t->after_score = e->score;
    memcpy(t->after_id, e->id.p, n);
    t->after_id[n] = '\0';
}

/* Nothing goes by itself here, but what has begun to go is finished. */
static bool only_begun(const struct gl_trim *t)
{
    return t->ask == NULL && !is_bounded(t);
}

static void pass_is_over(struct gl_trim *t)
{
    pass_over(t, 0, "");
}

static void on_page(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    size_t n = 0;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    gl_arena_reset(&t->arena);
    for (; n < req->entries_n && is_to_go(t, &req->entries[n], n); n++) {
        const struct gl_index_entry *e = &req->entries[n];

        t->jobs.items[n] = (struct gl_trim_going){.id = gl_str_dup(&t->arena, e->id)};
        t->jobs.items[n].r.ended_at = e->score;
        set_after(t, e);
    }
    t->jobs.n = n;
    if (n == 0) {
        t->seek_begun = false; /* they stand in front of all others */
        (only_begun(t) && t->removed_n == 0 ? pass_is_over : no_more_jobs)(t);
    } else {
        gl_trim_jobs_begin(t);
    }
}

static bool is_in_a_hurry(const struct gl_trim *t)
{
    return t->ask != NULL || (t->keep_jobs >= 0 && t->ended_n > t->keep_jobs * 11 / 10);
}

static void page(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    t->by_size_n = count_by_size(t);
    t->range = (struct gl_range){.index = GL_S("ended"),
                                 .score_min = INT64_MIN,
                                 .score_max = only_begun(t) ? GL_TRIM_BEGUN : INT64_MAX,
                                 .after_score = t->after_score,
                                 .after_id = gl_str_of(t->after_id),
                                 .limit = is_in_a_hurry(t) ? GL_TRIM_ARMFUL : GL_TRIM_HANDFUL};
    s->ops->range(s, gl_trim_call(t, on_page), t->node->config.context, &t->range);
}

static void pause_then_page(struct gl_trim *t)
{
    if (t->ask == NULL && !gl_list_empty(&t->asks)) {
        pass_over(t, 0, ""); /* somebody waits: the rest can wait */
        return;
    }
    if (is_in_a_hurry(t)) {
        page(t);
        return;
    }
    t->is_paused = true;
    t->due = t->node->now + PAUSE_MS;
    gl_node_rearm(t->node);
}

static void on_measured_between(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_answered(t, req)) {
        t->store_bytes = req->bytes;
        pause_then_page(t);
    }
}

void gl_trim_jobs_over(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    if (t->ask != NULL && t->ask->rq->verb == GL_VERB_REMOVE) {
        if (t->jobs.removed_n == 0) {
            pass_over(t, gl_why_whole(&t->jobs.why), t->jobs.why.text);
        } else {
            gl_trim_files_over(t);
        }
    } else if (t->keep.bytes > 0) {
        s->ops->measure(s, gl_trim_call(t, on_measured_between), t->node->config.context);
    } else {
        pause_then_page(t);
    }
}

/* ---- the beginning of a pass ---- */

static void set_out(struct gl_trim *t)
{
    if (t->ask != NULL && t->ask->rq->verb == GL_VERB_REMOVE) {
        gl_arena_reset(&t->arena);
        t->jobs.items[0] = (struct gl_trim_going){.id = gl_str_of(t->ask->job)};
        t->jobs.n = 1;
        gl_trim_jobs_begin(t);
    } else {
        page(t);
    }
}

static void on_measured_files(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;
    uint64_t bytes = req->bytes;

    req->bytes = 0; /* measured, not freed */
    if (gl_trim_tidied(t, req)) {
        t->files_bytes = bytes;
        set_out(t);
    }
}

static void on_measured(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    t->store_bytes = t->store_bytes_before = req->bytes;
    /* What lies in the folders of others nobody can tell: then only the store counts. */
    if (t->keep.bytes > 0 && t->tidy != NULL && !gl_trim_is_shared(t)) {
        t->tidy->measure(t->tidy, gl_trim_tidy(t, on_measured_files), t->node->config.context);
    } else {
        set_out(t);
    }
}

static void measure(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    if (t->ask != NULL || t->keep.bytes > 0) {
        s->ops->measure(s, gl_trim_call(t, on_measured), t->node->config.context);
    } else {
        set_out(t);
    }
}

static void count(struct gl_trim *t);

static void on_counted(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    t->ended_n += (int64_t)req->entries_n;
    if (req->entries_n == COUNT_PAGE) {
        set_after(t, &req->entries[COUNT_PAGE - 1]);
        count(t);
        return;
    }
    t->is_counted = true;
    t->after_id[0] = '\0';
    measure(t);
}

static void count(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    t->range = (struct gl_range){.index = GL_S("ended"),
                                 .score_min = INT64_MIN,
                                 .score_max = INT64_MAX,
                                 .after_score = t->after_score,
                                 .after_id = gl_str_of(t->after_id),
                                 .limit = COUNT_PAGE};
    s->ops->range(s, gl_trim_call(t, on_counted), t->node->config.context, &t->range);
}

static void begin(struct gl_trim *t)
{
    struct gl_link *l = gl_list_first(&t->asks);

    GL_ASSERT(!t->is_busy && t->ask == NULL);
    t->is_busy = true;
    t->due = INT64_MAX;
    t->keep_ms = t->keep.job_ms > 0 ? t->keep.job_ms : -1;
    t->keep_jobs = t->keep.jobs > 0 ? t->keep.jobs : -1;
    if (l != NULL) {
        t->ask = GL_CONTAINER(l, struct gl_trim_ask, link);
        gl_list_remove(l);
        t->keep_ms = t->ask->rq->trim.keep_for >= 0 ? t->ask->rq->trim.keep_for : t->keep_ms;
        t->keep_jobs = t->ask->rq->trim.keep_jobs >= 0 ? t->ask->rq->trim.keep_jobs : t->keep_jobs;
    }
    t->tally = (struct gl_trim_tally){0};
    t->store_bytes = t->store_bytes_before = t->files_bytes = 0;
    t->has_shrunk = false;
    t->after_id[0] = '\0';
    if (t->ask == NULL && !leads(t)) {
        gl_trim_rest_over(t); /* the store is looked after by another node */
        return;
    }
    if (only_begun(t)) {
        page(t);
        return;
    }
    /* A job may tell twice that it has ended: what is near the bound is counted anew. And those of
     * other nodes have not told us. */
    if (t->is_counted && (t->keep_jobs < 0 || (!gl_trim_is_shared(t) &&
                                               t->ended_n < t->keep_jobs - t->keep_jobs / 10))) {
        measure(t);
    } else {
        t->is_counted = false;
        t->ended_n = 0;
        count(t);
    }
}

/* ---- from outside ---- */

gl_ms gl_trim_due(const struct gl_trim *t)
{
    return t->due;
}

void gl_trim_on_ready(struct gl_trim *t)
{
    t->rest_due = t->node->now + REST_MS;
    if (is_bounded(t) || t->seek_begun) {
        t->due = t->node->now + FIRST_MS;
    }
}

void gl_trim_on_time(struct gl_trim *t)
{
    if (t->due > t->node->now) {
        return;
    }
    t->due = INT64_MAX;
    if (t->is_stopped) {
        return;
    }
    if (t->flows.is_under_way) {
        gl_trim_flows_on_time(t);
    } else if (t->is_paused) {
        t->is_paused = false;
        page(t);
    } else if (!t->is_busy) {
        begin(t);
    }
}

void gl_trim_on_ended(struct gl_trim *t)
{
    /* While they are being counted it is found there: it has the latest time of all. */
    t->ended_n += !t->is_busy || t->is_counted;
    /* A load of short jobs does not wait for the minute. If they are to be counted anew, this is
     * at least how many there are. */
    if (!t->is_busy && !t->is_stopped && t->keep.jobs > 0 && leads(t) &&
        t->ended_n > t->keep.jobs + t->keep.jobs / 10 + GL_TRIM_HANDFUL) {
        t->due = t->node->now;
    }
}

void gl_trim_stop(struct gl_trim *t)
{
    t->is_stopped = true;
    t->due = INT64_MAX;
    answer(t, GL_E_UNAVAILABLE, "this node is stopping");
    for (struct gl_link *l; (l = gl_list_first(&t->asks)) != NULL;) {
        t->ask = GL_CONTAINER(l, struct gl_trim_ask, link);
        gl_list_remove(l);
        answer(t, GL_E_UNAVAILABLE, "this node is stopping");
    }
}

static void add_ask(struct gl_trim *t, struct gl_trim_ask *ask)
{
    gl_list_push(&t->asks, &ask->link);
    if (!t->is_busy) {
        begin(t);
    }
}

static void on_named(void *owner, int code, gl_str job, const char *why)
{
    struct gl_trim_ask *ask = owner;
    struct gl_node *n = ask->node;
    struct gl_trim *t = n->trim;

    gl_list_remove(&ask->link);
    if (code == GL_E_NOT_FOUND && ask->rq->job.n == GL_ULID_BYTES) {
        code = 0; /* a part of it may be left */
        job = ask->rq->job;
    }
    if (code == 0 && t->is_stopped) {
        code = GL_E_UNAVAILABLE;
        why = "this node is stopping";
    }
    if (code != 0) {
        gl_requests_answer(n, ask->rq, code, why, NULL);
        gl_mem_free(ask);
    } else {
        memcpy(ask->job, job.p, job.n < GL_ULID_BYTES ? job.n : GL_ULID_BYTES);
        add_ask(t, ask);
    }
    gl_node_rearm(n);
}

bool gl_trim_progress(const struct gl_trim *t, uint64_t *ret_removed)
{
    *ret_removed = t->tally.jobs_n;
    return t->is_busy && t->ask != NULL;
}

void gl_trim_request(struct gl_trim *t, struct gl_request *rq)
{
    struct gl_trim_ask *ask = gl_mem_alloc(sizeof(*ask));

    gl_list_init(&ask->link);
    ask->rq = rq;
    ask->node = t->node;
    if (rq->verb == GL_VERB_TRIM) {
        add_ask(t, ask);
        return;
    }
    gl_list_push(&t->naming, &ask->link);
    gl_query_resolve(&t->node->queries, rq->context, rq->job, on_named, ask);
}
