/* retention.c - passes: when one starts, how much it removes, and which client it answers.
 *
 * Jobs are removed from the front of the index "ended", the oldest first. Those that are partly
 * removed come before all others there (GL_ENDED_BEGUN), so every pass finishes them first. */
#include "core/retention/retention.h"

#include "base/limits.h"
#include "core/flow/txn.h"
#include "core/retention/parts.h"

enum {
    PASS_MS = 60 * 1000,
    FIRST_MS = 1000, /* after the node is ready: one that ends sooner does not count jobs */
    PAUSE_MS = 20,   /* between two batches */
    COUNT_PAGE = 1000,
};

static bool is_bounded(const struct gl_core *c)
{
    const struct gl_keep *k = &c->retention.keep;

    return k->job_ms > 0 || k->jobs > 0 || k->bytes > 0 || k->work_ms > 0;
}

/* Nothing is configured or asked for: the pass only finishes what is partly removed. */
static bool only_finishes(const struct gl_core *c)
{
    return !c->retention.pass.is_asked && !is_bounded(c);
}

/* A client waits, or jobs end faster than small batches remove them: large batches, no pauses. */
static bool is_urgent(const struct gl_core *c)
{
    const struct gl_retention_pass *p = &c->retention.pass;

    GL_ASSERT(p->keep_jobs >= -1);
    GL_ASSERT(c->retention.ended_n >= 0);
    return p->is_asked ||
           (p->keep_jobs >= 0 && c->retention.ended_n - p->keep_jobs > p->keep_jobs / 10);
}

void gl_retention_init(struct gl_core *c, const struct gl_core_config *config)
{
    struct gl_retention_state *r = &c->retention;

    GL_ASSERT(config->keep.job_ms >= 0);
    GL_ASSERT(config->keep.jobs >= 0);
    GL_ASSERT(config->keep.bytes >= 0);
    GL_ASSERT(config->keep.work_ms >= 0);
    r->keep = config->keep;
    r->has_files = config->has_files;
    r->has_logs = config->has_logs && config->shared;
    r->due = INT64_MAX;
    r->seek_begun = config->may_be_half;
    r->seek_orphans = true;
    gl_list_init(&r->asks);
    gl_list_init(&r->pins);
    gl_map_init(&r->damaged);
    gl_map_init(&r->reserved);
    gl_map_init(&r->pass.used);
}

static void free_request(struct gl_core *c, struct gl_clean *ask)
{
    GL_ASSERT(!gl_list_empty(&ask->link));
    gl_list_remove(&ask->link);
    gl_core_set(c, &ask->job, (gl_str){0});
    gl_pool_free(&c->mem, ask, sizeof(*ask));
}

void gl_retention_done(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    for (struct gl_link *l; (l = gl_list_first(&c->retention.asks)) != NULL;) {
        free_request(c, GL_CONTAINER(l, struct gl_clean, link));
    }
    gl_pins_drop(c, true);
    gl_reserved_done(c);
    gl_chores_clear(c);
    gl_map_done(&p->used);
    gl_arena_done(&p->arena);
    gl_core_set(c, &p->broken_why, (gl_str){0});
    gl_core_set(c, &p->job, (gl_str){0});
    gl_core_set(c, &p->after, (gl_str){0});
    gl_core_set(c, &p->why, (gl_str){0});
    GL_ASSERT(gl_list_empty(&c->retention.asks));
    GL_ASSERT(gl_list_empty(&c->retention.pins));
}

/* ---- for the other files ---- */

const struct gl_core_view gl_view_stamps = {.type = GL_VIEW_STAMPS};
const struct gl_core_view gl_view_ids = {.type = GL_VIEW_IDS};

bool gl_retention_has_many(enum gl_retention_stage stage)
{
    return stage == GL_STAGE_BELONGINGS || stage == GL_STAGE_DROP || stage == GL_STAGE_CONDEMN;
}

void gl_retention_enter(struct gl_core *c, enum gl_retention_stage stage, uint64_t call)
{
    struct gl_retention_pass *p = gl_pass(c);
    bool is_single = stage > GL_STAGE_SUBMISSIONS && !gl_retention_has_many(stage);

    GL_ASSERT(p->call == 0);
    GL_ASSERT(p->calls_n == 0);
    GL_ASSERT(stage > GL_STAGE_IDLE && stage < GL_STAGES);
    GL_ASSERT(is_single == (call != 0));
    GL_ASSERT(gl_chores_have_stage(p->chore, stage));
    GL_ASSERT(c->retention.due == INT64_MAX);
    p->stage = (uint8_t)stage;
    p->call = call;
}

void gl_retention_get(struct gl_core *c, enum gl_retention_stage stage, const struct gl_key *keys,
                      size_t n, const struct gl_core_view *view)
{
    gl_retention_enter(c, stage, gl_component_view(c, GL_COMPONENT_RETENTION, keys, n, view));
}

void gl_retention_range(struct gl_core *c, enum gl_retention_stage stage, struct gl_range range)
{
    gl_retention_enter(c, stage, gl_component_range(c, GL_COMPONENT_RETENTION, &range));
}

void gl_retention_list(struct gl_core *c, enum gl_retention_stage stage, const char *kind,
                       size_t bytes_max, const struct gl_core_view *view)
{
    bool needs_values = view->type != GL_VIEW_IDS && view->type != GL_VIEW_STAMPS;
    struct gl_listing listing = {.kind = gl_str_of(kind),
                                 .after = gl_pass(c)->after,
                                 .limit = GL_TRIM_PAGE,
                                 .ids_only = !needs_values,
                                 .bytes_max = bytes_max};

    GL_ASSERT(GL_IMPLIES(bytes_max > 0, needs_values));
    gl_retention_enter(c, stage, gl_component_list(c, GL_COMPONENT_RETENTION, &listing, view));
}

void gl_retention_measure(struct gl_core *c, enum gl_retention_stage stage)
{
    gl_retention_enter(c, stage, gl_component_measure(c, GL_COMPONENT_RETENTION));
}

void gl_retention_files(struct gl_core *c, enum gl_retention_stage stage,
                        enum gl_core_files_type type, const gl_str *names, size_t n, gl_ms age_ms)
{
    struct gl_core_files files = {
        .type = type, .names = names, .names_n = n, .age_ms = age_ms, .limit = GL_PAGE_MAX};

    GL_ASSERT(c->retention.has_files);
    GL_ASSERT(age_ms >= 0);
    GL_ASSERT(GL_IMPLIES(type == GL_FILES_REMOVE_JOBS || type == GL_FILES_REMOVE_WORK, n > 0));
    gl_retention_enter(c, stage, gl_component_files(c, GL_COMPONENT_RETENTION, &files));
}

struct gl_tx *gl_retention_tx(struct gl_core *c, struct gl_guard *guards, size_t guards_n,
                              const struct gl_write *writes, size_t writes_n)
{
    GL_ASSERT(guards_n < GL_TRIM_WRITES);
    GL_ASSERT(writes_n > 0 && writes_n <= 2 * GL_TRIM_PAGE);
    GL_ASSERT(c->session.n > 0);
    /* planted: a node that has lost its session still removes jobs */
    guards[guards_n] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = c->session};
    return gl_component_tx(c, guards, guards_n + !GL_PLANT(81), writes, writes_n);
}

bool gl_retention_read(struct gl_arena *a, const struct gl_schema *schema, gl_str value, void *ret)
{
    gl_str text = gl_str_dup(a, value);
    struct gl_json j;

    return gl_json_parse(&j, text, GL_RECORD_BYTES_MAX, a, NULL) == 0 &&
           gl_schema_read(schema, &j, gl_json_root(&j), false, a, ret, NULL) == 0;
}

void gl_retention_add_text(struct gl_retention_pass *p, struct gl_map *set, gl_str text)
{
    if (text.n > 0 && gl_map_find(set, text) == NULL) {
        gl_str *copy = GL_NEW(&p->arena, gl_str);

        *copy = gl_str_dup(&p->arena, text);
        gl_map_add(set, *copy, copy);
    }
}

void *gl_retention_grow(struct gl_retention_pass *p, void *items, size_t n, size_t *cap,
                        size_t bytes)
{
    void *more;

    GL_ASSERT(n <= *cap);
    if (n < *cap) {
        return items;
    }
    *cap = *cap * 2 + 64;
    GL_ASSERT(n < *cap);
    more = gl_arena_alloc(&p->arena, *cap * bytes);
    if (n > 0) {
        memcpy(more, items, n * bytes);
    }
    return more;
}

struct gl_candidate *gl_retention_add_candidate(struct gl_retention_pass *p, gl_str id)
{
    GL_ASSERT(p->stage == GL_STAGE_CANDIDATES || p->stage == GL_STAGE_LEFT_LIST);
    p->candidates = gl_retention_grow(p, p->candidates, p->candidates_n, &p->candidates_cap,
                                      sizeof(*p->candidates));
    GL_ASSERT(p->candidates_n < p->candidates_cap);
    p->candidates[p->candidates_n] = (struct gl_candidate){.id = gl_str_dup(&p->arena, id)};
    return &p->candidates[p->candidates_n++];
}

/* ---- the end of a pass ---- */

static void begin(struct gl_core *c);

/* The answer to a client. */
static gl_str body_of(struct gl_core *c)
{
    const struct gl_retention_pass *p = gl_pass(c);
    uint64_t freed =
        p->store_bytes_before > p->store_bytes ? p->store_bytes_before - p->store_bytes : 0;
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str body;

    GL_ASSERT(p->is_asked);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->gone_n == 1));
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    if (p->is_removal) {
        gl_jw_put_str(&w, "job_id", p->job);
        gl_jw_put_bool(&w, "removed", true);
    } else {
        gl_jw_put_u64(&w, "removed_jobs", p->jobs_n);
        gl_jw_put_u64(&w, "removed_flows", p->flows_n);
        gl_jw_put_u64(&w, "removed_blobs", p->blobs_n);
        gl_jw_put_u64(&w, "removed_workspaces", p->work_n);
    }
    gl_jw_put_u64(&w, "freed_bytes", p->freed + freed);
    gl_jw_end(&w);
    body = gl_str_dup(c->out->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return body;
}

static void reply(struct gl_core *c, int64_t code, gl_str why)
{
    const struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->is_asked);
    if (code != 0) {
        gl_txn_refuse(c, p->request, (int)code, "%.*s", GL_STR_ARG(why));
    } else {
        gl_str body = body_of(c);
        struct gl_effect *e = gl_effect_add(c->out, GL_FX_REPLY, 0);

        e->request = p->request;
        e->body = body;
    }
}

void gl_retention_finish(struct gl_core *c, int64_t code, gl_str why)
{
    struct gl_retention_state *r = &c->retention;
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->call == 0);
    GL_ASSERT(p->calls_n == 0);
    GL_ASSERT(p->broken == 0);
    if (p->is_asked) {
        reply(c, code, why);
    }
    gl_chores_clear(c);
    p->stage = GL_STAGE_IDLE;
    p->chore = GL_CHORE_NONE;
    p->is_asked = false;
    gl_arena_done(&p->arena); /* not only reset: most of the time retention is idle */
    r->due = is_bounded(c) || r->seek_begun ? c->now + PASS_MS : INT64_MAX;
    if (!gl_list_empty(&r->asks)) {
        begin(c);
    }
}

void gl_retention_fail(struct gl_core *c, int64_t code, gl_str why)
{
    GL_ASSERT(code != 0);
    /* The transactions in flight may have been committed: a job may be partly removed, or removed
     * without its files. */
    c->retention.seek_orphans = c->retention.seek_begun = true;
    gl_retention_finish(c, code, gl_str_dup(c->out->arena, why));
}

/* ---- answers ---- */

/* A RESTAMP answers "not found" or "damaged" if it has nothing to keep the value of. From any other
 * transaction these codes mean that the store itself is damaged. */
bool gl_retention_is_refused(struct gl_core *c, const struct gl_event *ev)
{
    enum gl_retention_stage stage = gl_pass(c)->stage;
    bool may_restamp = stage == GL_STAGE_CONDEMN || stage == GL_STAGE_SPARE;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    return ev->answer.code == GL_E_CONFLICT ||
           ((may_restamp || GL_PLANT(92)) && /* planted: in every stage */
            (ev->answer.code == GL_E_NOT_FOUND || ev->answer.code == GL_E_DAMAGED));
}

bool gl_retention_check(struct gl_core *c, bool is_as_asked)
{
    GL_ASSERT(gl_pass(c)->call == 0);
    GL_ASSERT(!gl_retention_has_many(gl_pass(c)->stage));
    if (!is_as_asked) {
        gl_retention_fail(c, GL_E_DAMAGED, gl_str_of(gl_err_text(GL_E_DAMAGED)));
    }
    return is_as_asked;
}

bool gl_retention_all_answered(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->calls_n > 0);
    GL_ASSERT(gl_retention_has_many(p->stage));
    p->calls_n--;
    if (ev->answer.code != 0 && !gl_retention_is_refused(c, ev)) {
        p->broken = ev->answer.code;
        gl_core_set(c, &p->broken_why, ev->answer.why);
    }
    if (p->calls_n == 0 && p->broken != 0) {
        int64_t code = p->broken;

        p->broken = 0;
        gl_retention_fail(c, code, p->broken_why);
        return false;
    }
    return p->calls_n == 0;
}

/* Never called: in these stages on_answer() ignores every answer. */
void gl_retention_on_unexpected(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(gl_pass(c)->stage <= GL_STAGE_SUBMISSIONS);
    (void)ev;
}

/* ---- pages of ended jobs ---- */

/* Where the next page begins. Jobs that are kept are passed over, so every pass comes to an end. */
static void set_after(struct gl_core *c, int64_t score, gl_str id)
{
    gl_pass(c)->after_score = score;
    gl_core_set(c, &gl_pass(c)->after, id);
}

static bool is_too_large(const struct gl_core *c)
{
    const struct gl_retention_state *r = &c->retention;

    GL_ASSERT(r->keep.bytes >= 0);
    return r->keep.bytes > 0 &&
           r->pass.store_bytes + r->pass.files_bytes > (uint64_t)r->keep.bytes + r->young_bytes;
}

/* How many jobs of average size to remove to get below the limit. Errs on the low side, because the
 * store is measured again after every batch. */
static int64_t count_by_size(const struct gl_core *c)
{
    const struct gl_retention_state *r = &c->retention;
    uint64_t all = r->pass.store_bytes + r->pass.files_bytes, ended = (uint64_t)r->ended_n + 1;
    uint64_t excess = is_too_large(c) ? all - (uint64_t)r->keep.bytes - r->young_bytes : 0;
    uint64_t average = all / ended < UINT64_MAX ? all / ended + 1 : UINT64_MAX;
    uint64_t n = excess / average + (excess > 0);

    GL_ASSERT(r->ended_n >= 0);
    GL_ASSERT((excess > 0) == (n > 0));
    return n < GL_TRIM_BATCH ? (int64_t)n : GL_TRIM_BATCH;
}

/* Is this job to be removed? Asked from the oldest on; `before_n` of this page are. */
static bool must_remove(struct gl_core *c, const struct gl_event_entry *e, size_t before_n)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(!p->is_removal);
    GL_ASSERT(p->by_size_n >= 0);
    if (e->score == GL_ENDED_BEGUN) {
        return true;
    }
    if (p->keep_ms >= 0 && e->score <= c->now - p->keep_ms) {
        return true;
    }
    if (p->keep_jobs >= 0 && c->retention.ended_n - (int64_t)before_n > p->keep_jobs) {
        return true;
    }
    if (p->by_size_n > 0) {
        p->by_size_n--;
        p->has_shrunk = true;
        return true;
    }
    return false;
}

static void new_batch(struct gl_core *c, size_t n)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->call == 0);
    GL_ASSERT(p->calls_n == 0);
    GL_ASSERT(p->chore == GL_CHORE_NONE);
    gl_arena_reset(&p->arena);
    p->jobs = GL_NEW_ARRAY(&p->arena, struct gl_trim_job, n + 1);
    p->jobs_n_now = n;
}

static void page(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    p->by_size_n = count_by_size(c);
    GL_ASSERT(p->by_size_n >= 0 && p->by_size_n <= GL_TRIM_BATCH);
    GL_ASSERT(!p->is_removal);
    gl_retention_range(c, GL_STAGE_PAGE,
                       (struct gl_range){
                           .index = GL_S("ended"),
                           .score_min = INT64_MIN,
                           .score_max = only_finishes(c) ? GL_ENDED_BEGUN : INT64_MAX,
                           .after_score = p->after_score,
                           .after_id = p->after,
                           .limit = is_urgent(c) ? GL_TRIM_BATCH_MAX : GL_TRIM_BATCH,
                       });
}

void gl_retention_on_page(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;
    struct gl_retention_pass *p = gl_pass(c);
    size_t n = 0;

    GL_ASSERT(p->stage == GL_STAGE_PAGE);
    new_batch(c, ev->answer.entries.n);
    /* The index is sorted by time: once a job is kept, all after it are. */
    for (; n < ev->answer.entries.n && must_remove(c, &all[n], n); n++) {
        p->jobs[n].id = gl_str_dup(&p->arena, all[n].id);
        p->jobs[n].r.ended_at = all[n].score;
    }
    p->jobs_n_now = n;
    if (n > 0) {
        set_after(c, all[n - 1].score, all[n - 1].id);
        gl_ended_begin(c);
        return;
    }
    c->retention.seek_begun = false; /* they come first in the index */
    if (only_finishes(c) && c->retention.removed_n == 0) {
        gl_retention_finish(c, 0, (gl_str){0});
    } else {
        gl_chores_begin(c, GL_CHORE_FLOWS);
    }
}

static void pause_then_page(struct gl_core *c)
{
    GL_ASSERT(!gl_pass(c)->is_removal);
    if (!gl_pass(c)->is_asked && !gl_list_empty(&c->retention.asks)) {
        gl_retention_finish(c, 0, (gl_str){0}); /* serve the client first */
    } else if (is_urgent(c)) {
        page(c);
    } else {
        gl_retention_enter(c, GL_STAGE_PAUSE, 0);
        c->retention.due = c->now + PAUSE_MS;
    }
}

void gl_retention_batch_done(struct gl_core *c)
{
    const struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage == GL_STAGE_DROP || p->stage == GL_STAGE_JOB_FILES);
    GL_ASSERT(p->gone_n <= p->jobs_n_now);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->jobs_n_now == 1));
    GL_ASSERT(GL_IMPLIES(p->is_removal && p->gone_n == 0, p->why_code != 0));
    if (p->is_removal && p->gone_n == 0) {
        gl_retention_finish(c, p->why_code, p->why);
    } else if (p->is_removal) {
        gl_chores_begin(c, GL_CHORE_MEASURE);
    } else if (c->retention.keep.bytes > 0) {
        gl_retention_measure(c, GL_STAGE_MEASURE_AGAIN);
    } else {
        pause_then_page(c);
    }
}

/* ---- the beginning of a pass ---- */

static void begin_jobs(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->chore == GL_CHORE_NONE);
    GL_ASSERT(c->retention.is_counted);
    if (p->is_removal) {
        new_batch(c, 1);
        p->jobs[0].id = gl_str_dup(&p->arena, p->job);
        gl_ended_begin(c);
    } else {
        page(c);
    }
}

void gl_retention_on_measured(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage >= GL_STAGE_MEASURE && p->stage <= GL_STAGE_MEASURE_AFTER);
    GL_ASSERT(GL_IMPLIES(p->stage == GL_STAGE_MEASURE_FILES, c->retention.has_files));
    if (p->stage == GL_STAGE_MEASURE_FILES) {
        p->files_bytes = ev->answer.bytes;
        begin_jobs(c);
        return;
    }
    p->store_bytes = ev->answer.bytes;
    if (p->stage == GL_STAGE_MEASURE_AGAIN) {
        pause_then_page(c);
    } else if (p->stage == GL_STAGE_MEASURE_AFTER) {
        gl_chores_next(c);
    } else {
        p->store_bytes_before = p->store_bytes;
        /* On a shared store the size of other nodes' folders is unknown: only the store counts. */
        if (c->retention.keep.bytes > 0 && c->retention.has_files && !c->shared) {
            gl_retention_files(c, GL_STAGE_MEASURE_FILES, GL_FILES_MEASURE, NULL, 0, 0);
        } else {
            begin_jobs(c);
        }
    }
}

static void measure(struct gl_core *c)
{
    GL_ASSERT(c->retention.is_counted);
    if (gl_pass(c)->is_asked || c->retention.keep.bytes > 0) {
        gl_retention_measure(c, GL_STAGE_MEASURE);
    } else {
        begin_jobs(c);
    }
}

static void count(struct gl_core *c)
{
    struct gl_range range = {.index = GL_S("ended"),
                             .score_min = INT64_MIN,
                             .score_max = INT64_MAX,
                             .after_score = gl_pass(c)->after_score,
                             .after_id = gl_pass(c)->after,
                             .limit = COUNT_PAGE};

    GL_ASSERT(!c->retention.is_counted);
    gl_retention_enter(c, GL_STAGE_COUNT, gl_component_count(c, GL_COMPONENT_RETENTION, &range));
}

void gl_retention_on_counted(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *last = ev->answer.entries.items;

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_COUNT);
    GL_ASSERT(!c->retention.is_counted);
    if (!gl_retention_check(c, ev->answer.n <= COUNT_PAGE)) {
        return;
    }
    c->retention.ended_n += (int64_t)ev->answer.n;
    if (ev->answer.n == COUNT_PAGE && ev->answer.entries.n == 1) {
        set_after(c, last->score, last->id);
        count(c);
        return;
    }
    c->retention.is_counted = true;
    set_after(c, 0, (gl_str){0}); /* back to the front: now come the pages */
    measure(c);
}

/* Reset the pass, and take the first request from the queue. */
static void take_request(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_link *l = gl_list_first(&r->asks);

    GL_ASSERT(p->stage == GL_STAGE_IDLE);
    GL_ASSERT(!p->is_asked);
    p->keep_ms = r->keep.job_ms > 0 ? r->keep.job_ms : -1;
    p->keep_jobs = r->keep.jobs > 0 ? r->keep.jobs : -1;
    p->is_asked = l != NULL;
    p->is_removal = false;
    if (l != NULL) {
        struct gl_clean *ask = GL_CONTAINER(l, struct gl_clean, link);

        p->is_removal = ask->is_removal;
        p->request = ask->request;
        gl_core_set(c, &p->job, ask->job);
        p->keep_ms = ask->keep_for >= 0 ? ask->keep_for : p->keep_ms;
        p->keep_jobs = ask->keep_jobs >= 0 ? ask->keep_jobs : p->keep_jobs;
        free_request(c, ask);
    }
    p->jobs_n = p->flows_n = p->blobs_n = p->work_n = p->freed = 0;
    p->store_bytes = p->store_bytes_before = p->files_bytes = 0;
    p->has_shrunk = false;
    set_after(c, 0, (gl_str){0});
    GL_ASSERT(p->keep_ms >= -1);
    GL_ASSERT(p->keep_jobs >= -1);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->is_asked));
}

static void begin(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage == GL_STAGE_IDLE);
    GL_ASSERT(p->chore == GL_CHORE_NONE);
    GL_ASSERT(p->jobs_n_now == 0);
    GL_ASSERT(p->candidates_n == 0);
    r->due = INT64_MAX;
    take_request(c);
    if (!p->is_asked && !c->leader.leads) {
        gl_chores_begin(c, GL_CHORE_COPIES); /* the leader cleans the store; our files are ours */
        return;
    }
    if (only_finishes(c)) {
        page(c);
        return;
    }
    /* Count again when the number is near the limit: a job that ends while it is being counted may
     * be counted twice. On a shared store count always: jobs end at other nodes, too. */
    if (r->is_counted &&
        (p->keep_jobs < 0 || (!c->shared && r->ended_n < p->keep_jobs - p->keep_jobs / 10))) {
        measure(c);
    } else {
        r->is_counted = false;
        r->ended_n = 0;
        count(c);
    }
}

/* ---- called by the core ---- */

void gl_retention_on_ready(struct gl_core *c)
{
    struct gl_retention_state *r = &c->retention;

    if (r->is_ready || c->session.n == 0 || !c->exec_up) {
        return;
    }
    r->is_ready = true;
    r->rest_due = c->now + GL_TRIM_RECORDS_MS; /* not at once, or every restart would scan them */
    if ((is_bounded(c) || r->seek_begun) && r->pass.stage == GL_STAGE_IDLE) {
        r->due = c->now + FIRST_MS;
    }
}

void gl_retention_enqueue(struct gl_core *c, const struct gl_clean *ask)
{
    struct gl_clean *copy = gl_pool_alloc(&c->mem, sizeof(*copy));

    GL_ASSERT(GL_IMPLIES(ask->is_removal, ask->job.n > 0));
    *copy = *ask;
    copy->job = (gl_str){0};
    gl_core_set(c, &copy->job, ask->job);
    gl_list_init(&copy->link);
    gl_list_push(&c->retention.asks, &copy->link);
}

void gl_retention_on_clean(struct gl_core *c, const struct gl_event *ev)
{
    /* A job that does not exist may have been removed in part. */
    bool may_be_left =
        gl_err_code((int)ev->clean.code) == GL_E_NOT_FOUND && ev->clean.name.n == GL_ULID_BYTES;
    struct gl_clean ask = {.request = ev->clean.request,
                           .is_removal = ev->clean.is_removal,
                           .job = may_be_left ? ev->clean.name : ev->job,
                           .keep_for = ev->clean.keep_for,
                           .keep_jobs = ev->clean.keep_jobs};

    GL_ASSERT(ev->type == GL_EV_CLEAN);
    if (!gl_components_are_on(c)) {
        gl_txn_refuse(c, ev->clean.request, GL_R_NODE_STOPPING, "this node is stopping");
        return;
    }
    if (ev->clean.code != 0 && !may_be_left) {
        gl_txn_refuse(c, ev->clean.request, (int)ev->clean.code, "%.*s", GL_STR_ARG(ev->clean.why));
        return;
    }
    gl_retention_enqueue(c, &ask); /* a pass without a request ends after its batch */
    if (gl_pass(c)->stage == GL_STAGE_IDLE) {
        begin(c);
    }
}

void gl_retention_on_ended(struct gl_core *c, bool has_ended)
{
    struct gl_retention_state *r = &c->retention;
    bool is_idle = r->pass.stage == GL_STAGE_IDLE;

    GL_ASSERT(r->ended_n >= 0);
    if (!has_ended) {
        return;
    }
    /* During a count it is counted there: it has the latest time, so it comes last in the index. */
    r->ended_n += is_idle || r->is_counted;
    /* Under a load of short jobs, do not wait for the next minute. `ended_n` is a lower bound if
     * they have not been counted yet. */
    if (is_idle && r->keep.jobs > 0 && c->leader.leads &&
        r->ended_n > r->keep.jobs + r->keep.jobs / 10 + GL_TRIM_BATCH) {
        r->due = c->now;
    }
}

bool gl_retention_progress(const struct gl_core *c, uint64_t *ret_removed)
{
    const struct gl_retention_pass *p = &c->retention.pass;

    GL_ASSERT(GL_IMPLIES(p->stage == GL_STAGE_IDLE, !p->is_asked));
    *ret_removed = p->jobs_n;
    return p->stage != GL_STAGE_IDLE && p->is_asked;
}

/* ---- the component ---- */

static const struct {
    uint32_t how;
    void (*on_answer)(struct gl_core *c, const struct gl_event *ev);
} stages[GL_STAGES] = {
#define X(name, word, how, handler) {how, handler},
    GL_RETENTION_STAGES(X)
#undef X
};

static gl_ms due(const struct gl_core *c)
{
    GL_ASSERT(
        GL_IMPLIES(c->retention.pass.stage > GL_STAGE_SUBMISSIONS, c->retention.due == INT64_MAX));
    return c->retention.due;
}

static void on_time(struct gl_core *c)
{
    GL_ASSERT(c->retention.due <= c->now);
    GL_ASSERT(gl_pass(c)->call == 0);
    GL_ASSERT(gl_pass(c)->stage <= GL_STAGE_SUBMISSIONS);
    c->retention.due = INT64_MAX;
    if (gl_pass(c)->stage == GL_STAGE_SUBMISSIONS) {
        gl_garbage_wait_for_submissions(c);
    } else if (gl_pass(c)->stage == GL_STAGE_PAUSE) {
        page(c);
    } else if (gl_pass(c)->stage == GL_STAGE_IDLE) {
        begin(c);
    }
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    uint32_t how = stages[p->stage].how;
    bool has_many = (how & GL_ANSWERS_MANY) != 0;
    bool is_fine = ev->answer.code == 0 || has_many ||
                   ((how & GL_ANSWER_REFUSED) != 0 && gl_retention_is_refused(c, ev));

    GL_ASSERT(ev->answer.by == GL_COMPONENT_RETENTION);
    GL_ASSERT(has_many == gl_retention_has_many(p->stage));
    if (!gl_components_are_on(c) || ev->answer.number == 0 ||
        (has_many ? p->calls_n == 0 : p->call == 0 || ev->answer.number != p->call)) {
        return;
    }
    p->call = 0; /* before the handler, which may make the next call */
    if ((how & GL_ANSWER_FREES) != 0 && is_fine) {
        p->freed += ev->answer.bytes;
        p->files_bytes -= ev->answer.bytes < p->files_bytes ? ev->answer.bytes : p->files_bytes;
    }
    if (is_fine) {
        stages[p->stage].on_answer(c, ev);
    } else {
        gl_retention_fail(c, ev->answer.code, ev->answer.why);
    }
}

const struct gl_component gl_retention = {.name = "retention",
                                          .due = due,
                                          .on_time = on_time,
                                          .on_answer = on_answer,
                                          .save = gl_retention_save,
                                          .restore = gl_retention_restore};
