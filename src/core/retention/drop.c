/* drop.c - removes the jobs that ended.c has chosen: first their records, then their files.
 *
 * To clients and other nodes, a job disappears in one transaction. Small jobs share a transaction.
 * Of a large job the first transaction removes its record and its names; its steps and its log
 * follow page by page, so that no transaction blocks others for long. The same first transaction
 * moves the job to the very front of the index "ended", to GL_ENDED_BEGUN, and the last one removes
 * it from there. So whatever interrupts the removal, what is left can be found: by the next pass,
 * by the first pass of a new node, or when a client removes the job again.
 *
 * Files come last. If the process dies in between, the files are orphans, which the next pass finds
 * because their job has no record.
 *
 * Each transaction guards on the revision of the job as it was read. An ended job does not change,
 * but its names may: a run id may belong to a new job by now, and then it must stay. */
#include "core/retention/parts.h"

enum {
    /* Besides the belongings: log, inputs, run, dedupe, request, ended, job, retried, logs; and the
     * four places in the index "wake" where a damaged job may be. */
    OWN_WRITES = 13,
    LOG_PAGE = 1000,       /* log entries removed at once */
    LOG_PAGES_MAX = 10000, /* more than any job has */
};

static_assert(GL_TRIM_PAGE + OWN_WRITES <= GL_TRIM_WRITES, "a small job fits one transaction");

struct pending_tx { /* a transaction being built */
    struct gl_guard guards[GL_TRIM_WRITES];
    struct gl_write writes[GL_TRIM_WRITES];
    size_t guards_n, writes_n;
};

/* ---- files ---- */

void gl_drop_on_files(struct gl_core *c, const struct gl_event *ev)
{
    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_JOB_FILES);
    GL_ASSERT(gl_pass(c)->gone_n > 0);
    (void)ev;
    gl_retention_batch_done(c);
}

static void remove_files(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_retention_state *r = &c->retention;
    gl_str *gone = GL_NEW_ARRAY(c->out->arena, gl_str, p->jobs_n_now + 1);
    size_t n = 0;

    GL_ASSERT(p->stage == GL_STAGE_DROP);
    GL_ASSERT(p->calls_n == 0);
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        GL_ASSERT(GL_IMPLIES(p->jobs[i].is_removed, p->jobs[i].is_over));
        if (p->jobs[i].is_removed) {
            gone[n++] = p->jobs[i].id;
        }
    }
    p->gone_n = n;
    p->jobs_n += n;
    r->removed_n += n;
    /* The count is an estimate: it may be lower than what was there. */
    r->ended_n -= (int64_t)n < r->ended_n ? (int64_t)n : r->ended_n;
    GL_ASSERT(r->ended_n >= 0);
    GL_ASSERT(p->gone_n <= p->jobs_n_now);
    if (n == 0 || !r->has_files) {
        gl_retention_batch_done(c);
    } else {
        gl_retention_files(c, GL_STAGE_JOB_FILES, GL_FILES_REMOVE_JOBS, gone, n, 0);
    }
}

/* ---- transactions ---- */

static struct gl_guard *add_guard(struct pending_tx *b, gl_str kind, gl_str id, uint64_t rev)
{
    struct gl_guard *g = &b->guards[b->guards_n++];

    GL_ASSERT(b->guards_n < GL_TRIM_WRITES); /* one more is for our session */
    *g = (struct gl_guard){.type = GL_GUARD_AT, .kind = kind, .id = id, .rev = rev};
    return g;
}

static struct gl_write *add_write(struct pending_tx *b, enum gl_write_type type, gl_str kind,
                                  gl_str id)
{
    struct gl_write *w = &b->writes[b->writes_n++];

    GL_ASSERT(b->writes_n <= GL_TRIM_WRITES);
    *w = (struct gl_write){.type = type, .kind = kind, .id = id};
    return w;
}

static uint64_t commit(struct gl_core *c, struct pending_tx *b)
{
    const struct gl_tx *tx = gl_retention_tx(c, b->guards, b->guards_n, b->writes, b->writes_n);

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_DROP);
    gl_pass(c)->calls_n++;
    GL_ASSERT(gl_pass(c)->calls_n <= GL_TRIM_IN_FLIGHT);
    return gl_component_commit(c, GL_COMPONENT_RETENTION, tx);
}

static void add_ids(struct pending_tx *b, const struct gl_trim_job *g)
{
    GL_ASSERT(g->ids.n <= GL_TRIM_PAGE);
    GL_ASSERT(b->writes_n + g->ids.n <= GL_TRIM_WRITES);
    for (size_t i = 0; i < g->ids.n; i++) {
        (void)add_write(b, GL_WRITE_DELETE, gl_str_of(gl_ended_kind(g, i)), g->ids.items[i]);
    }
}

/* The score of a damaged job is not known, so it is removed from every place it may have. */
static void add_wake(struct gl_core *c, struct pending_tx *b, const struct gl_trim_job *g)
{
    const int64_t scores[] = {GL_WAKE_RUNNING, GL_WAKE_READY, GL_WAKE_NEVER, g->r.wake};
    gl_str index =
        c->shared ? gl_job_index(c->out->arena, "wake", g->r.stack, g->r.env_scope) : GL_S("wake");

    GL_ASSERT(g->is_damaged);
    for (size_t i = 0; i < GL_COUNT(scores); i++) {
        add_write(b, GL_WRITE_UNINDEX, index, g->id)->score = scores[i];
    }
}

/* A name that still belongs to this job is removed with it. */
static void add_name(struct pending_tx *b, gl_str kind, gl_str id, uint64_t rev)
{
    if (rev != 0) {
        (void)add_guard(b, kind, id, rev);
        (void)add_write(b, GL_WRITE_DELETE, kind, id);
    }
}

/* The job's record and its names. */
static void add_head(struct gl_core *c, struct pending_tx *b, const struct gl_trim_job *g)
{
    GL_ASSERT(!g->is_headless);
    GL_ASSERT(g->rev != 0);
    GL_ASSERT(b->guards_n + OWN_WRITES <= GL_TRIM_WRITES);
    (void)add_guard(b, GL_S("job"), g->id, g->rev);
    (void)add_write(b, GL_WRITE_DELETE, GL_S("inputs"), g->id);
    add_name(b, GL_S("run"), g->r.run_id, g->run_rev);
    add_name(b, GL_S("dedupe"), g->r.dedupe_key, g->dedupe_rev);
    if (g->dedupe_rev != 0 && !g->is_damaged) {
        add_guard(b, GL_S("dedupe"), g->r.dedupe_key, 0)->type = GL_GUARD_NOT_LIVE;
    }
    add_name(b, GL_S("request"), g->r.request_key, g->request_rev);
    if (c->shared) { /* no other node has submitted a retry since its record was read */
        struct gl_guard *r = add_guard(b, GL_S("retried"), g->id, g->retried_rev);

        r->type = g->retried_rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_OWNED;
        r->owner = g->retried_by;
        r->token = g->retried_token;
    }
    if (g->retried_rev != 0) {
        (void)add_write(b, GL_WRITE_DELETE, GL_S("retried"), g->id);
    }
    /* Nothing has been written to its logs since they were listed. Planted: that is not checked. */
    if (c->retention.has_logs && !GL_PLANT(93)) {
        add_guard(b, GL_S("log"), g->id, g->log_rev)->type =
            g->log_rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_AT;
    }
    if (g->log_rev != 0) {
        (void)add_write(b, GL_WRITE_DELETE, GL_S("log"), g->id);
    }
    (void)add_write(b, GL_WRITE_DELETE, GL_S("job"), g->id);
    if (g->is_damaged) {
        add_wake(c, b, g);
    }
    if (g->owner.n > 0) { /* it seemed to be dead, or we did not know it: the store decides */
        struct gl_guard *had = add_guard(b, (gl_str){0}, (gl_str){0}, 0);

        had->type = GL_GUARD_DEAD;
        had->owner = g->owner;
    }
}

/* All of a small job, or the last page of a large one. */
static void add_job(struct gl_core *c, struct pending_tx *b, const struct gl_trim_job *g)
{
    GL_ASSERT(!g->is_over);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(!g->has_more);
    GL_ASSERT(b->writes_n + g->ids.n + OWN_WRITES <= GL_TRIM_WRITES);
    if (!g->is_headless) {
        add_head(c, b, g);
    }
    add_ids(b, g);
    add_write(b, GL_WRITE_LOG_TRIM, GL_S("events"), g->id)->seq = INT64_MAX;
    add_write(b, GL_WRITE_UNINDEX, GL_S("ended"), g->id)->score = g->r.ended_at;
}

/* The last event that is removed page by page; whatever is after it goes with the job. A record
 * that was edited may say anything. */
static int64_t last_seq_of(const struct gl_trim_job *g)
{
    return g->r.last_seq < LOG_PAGES_MAX * LOG_PAGE ? g->r.last_seq : LOG_PAGES_MAX * LOG_PAGE;
}

/* Of a job too large for one transaction: its record first, then page by page what belongs to it.
 */
static void remove_part(struct gl_core *c, struct gl_trim_job *g)
{
    struct pending_tx *b = GL_NEW(c->out->arena, struct pending_tx);

    GL_ASSERT(!g->is_over);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(gl_pass(c)->calls_n == 0);
    if (!g->is_headless) {
        add_head(c, b, g);
        add_write(b, GL_WRITE_UNINDEX, GL_S("ended"), g->id)->score = g->r.ended_at;
        add_write(b, GL_WRITE_INDEX, GL_S("ended"), g->id)->score = GL_ENDED_BEGUN;
    } else {
        add_ids(b, g);
    }
    if (g->is_headless && g->log_from + LOG_PAGE < last_seq_of(g)) {
        g->log_from += LOG_PAGE;
        add_write(b, GL_WRITE_LOG_TRIM, GL_S("events"), g->id)->seq = g->log_from;
    }
    gl_pass(c)->is_part = true;
    g->call = commit(c, b);
    GL_ASSERT(gl_pass(c)->calls_n == 1);
}

/* One transaction with as many of the remaining jobs as fit. False: none remains. */
static bool remove_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct pending_tx *b = GL_NEW(c->out->arena, struct pending_tx);
    struct gl_trim_job **in = GL_NEW_ARRAY(c->out->arena, struct gl_trim_job *, p->jobs_n_now);
    size_t n = 0;
    uint64_t call;

    GL_ASSERT(!p->is_part);
    for (size_t i = 0; i < p->jobs_n_now && !(n > 0 && p->is_single); i++) {
        struct gl_trim_job *g = &p->jobs[i];

        if (!g->is_over && g->call == 0 && b->writes_n + g->ids.n + OWN_WRITES <= GL_TRIM_WRITES) {
            add_job(c, b, g);
            in[n++] = g;
        }
    }
    GL_ASSERT(GL_IMPLIES(p->is_single, n <= 1));
    GL_ASSERT((n > 0) == (b->writes_n > 0));
    GL_ASSERT(b->writes_n <= GL_TRIM_WRITES);
    call = n > 0 ? commit(c, b) : 0;
    for (size_t i = 0; i < n; i++) {
        in[i]->call = call;
    }
    return n > 0;
}

/* ---- answers ---- */

static bool is_large(const struct gl_trim_job *g)
{
    GL_ASSERT(g->ids.n <= GL_TRIM_PAGE);
    return g->has_more || g->log_from + LOG_PAGE < last_seq_of(g);
}

static void keep_changed(struct gl_core *c, struct gl_trim_job *g)
{
    gl_ended_keep(c, g, GL_R_JOB_OWNER_ALIVE, "%s",
                  g->owner.n > 0
                      ? "the node that owns the job may still be running: cancel the job first, "
                        "or try again when that node is gone"
                      : "the job was changed concurrently: try again");
}

/* A transaction of a large job was answered. True: list the next page of what belongs to it. */
static bool on_part_removed(struct gl_core *c, struct gl_trim_job *g, int64_t code)
{
    GL_ASSERT(gl_pass(c)->is_part);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(!g->is_over);
    if (code == GL_E_CONFLICT) {
        keep_changed(c, g);
    } else if (code == 0 && !g->is_headless) {
        g->is_headless = true;
        g->r.ended_at = GL_ENDED_BEGUN;
    } else {
        return code == 0;
    }
    return false;
}

/* A transaction was answered. A refused one is repeated with one job at a time, which shows the job
 * it was refused for; that one is kept. */
static void on_job_answered(struct gl_core *c, struct gl_trim_job *g, int64_t code)
{
    GL_ASSERT(!gl_pass(c)->is_part);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(!g->is_over);
    if (code == 0) {
        g->is_over = g->is_removed = true;
    } else if (code == GL_E_CONFLICT && gl_pass(c)->is_single) {
        keep_changed(c, g);
    }
}

void gl_drop_on_done(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_trim_job *large = NULL;
    int64_t code = ev->answer.code;

    GL_ASSERT(p->stage == GL_STAGE_DROP);
    GL_ASSERT(GL_IMPLIES(p->is_part, p->calls_n == 1));
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        struct gl_trim_job *g = &p->jobs[i];

        if (g->call != ev->answer.number) {
            continue;
        }
        g->call = 0;
        if (!p->is_part) {
            on_job_answered(c, g, code);
        } else if (on_part_removed(c, g, code)) {
            large = g;
        }
    }
    if (code == GL_E_CONFLICT && !p->is_part) {
        GL_MARK(c->trace, "trim.conflict");
        p->has_conflict = true;
    }
    if (!gl_retention_all_answered(c, ev)) {
        return;
    }
    if (large != NULL) { /* its next page; the other jobs of the batch wait */
        gl_retention_enter(c, GL_STAGE_BELONGINGS, 0);
        gl_ended_list(c, large);
    } else {
        p->is_single = p->is_single || p->has_conflict;
        gl_drop_next(c);
    }
}

/* A retry may have been submitted since the jobs were read. */
static void keep_pinned(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage == GL_STAGE_DROP);
    GL_ASSERT(p->calls_n == 0);
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        struct gl_trim_job *g = &p->jobs[i];

        if (!g->is_over && !g->is_headless && gl_pins_have(c, g->id)) {
            GL_MARK(c->trace, "trim.is_pinned");
            gl_ended_keep(c, g, GL_R_JOB_RETRIED, "job %.*s is being retried", GL_STR_ARG(g->id));
        }
    }
}

void gl_drop_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->jobs_n_now > 0);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->jobs_n_now == 1));
    gl_retention_enter(c, GL_STAGE_DROP, 0);
    p->has_conflict = p->is_part = false;
    keep_pinned(c);
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        if (!p->jobs[i].is_over && is_large(&p->jobs[i])) { /* one large job at a time */
            remove_part(c, &p->jobs[i]);
            return;
        }
    }
    while (p->calls_n < GL_TRIM_IN_FLIGHT && remove_next(c)) {
    }
    GL_ASSERT(p->calls_n <= GL_TRIM_IN_FLIGHT);
    if (p->calls_n == 0) {
        remove_files(c);
    }
}
