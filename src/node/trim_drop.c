/* trim_drop.c - jobs that trim_jobs.c has found go: first their records, then their files.
 *
 * For everybody else a job goes in one transaction. Small jobs share one. A large job leaves its
 * steps and its log behind at first, and they follow page by page, so that no transaction holds up
 * others for long. Its place in the index "ended" moves to the very front, GL_TRIM_BEGUN, and goes
 * last: whatever breaks off, the next pass, the first one of a node, or who removes it once more
 * finds there what is left.
 *
 * Each transaction guards on the revision of the job that was read. It cannot move any more, but
 * the names can: a run id may have been given to a new job meanwhile, and then it is not ours to
 * remove. */
#include "node/trim_state.h"

enum {
    /* Besides the steps: log, inputs, run, dedupe, request, ended, job, retried; and of a damaged
     * one where it may stand in the index "wake". */
    OWN_WRITES = 12,
    LOG_PAGE = 1000,
};

static_assert(GL_TRIM_PAGE + OWN_WRITES <= GL_TRIM_WRITES, "a small job fits one transaction");

/* ---- files ---- */

static void on_files(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;

    if (gl_trim_tidied(t, req)) {
        t->tally.bytes += req->bytes;
        gl_trim_jobs_over(t);
    }
}

static void remove_files(struct gl_trim *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->jobs.n; i++) {
        if (t->jobs.items[i].is_removed) {
            t->jobs.removed[n++] = t->jobs.items[i].id;
        }
    }
    t->jobs.removed_n = n;
    t->tally.jobs_n += n;
    t->removed_n += n;
    t->ended_n -= (int64_t)n < t->ended_n ? (int64_t)n : t->ended_n;
    if (n == 0 || t->tidy == NULL) {
        gl_trim_jobs_over(t);
        return;
    }
    t->tidy->remove_jobs(t->tidy, gl_trim_tidy(t, on_files), t->node->config.context,
                         t->jobs.removed, n);
}

/* ---- transactions ---- */

static struct gl_guard *add_guard(struct gl_trim_tx *x, gl_str kind, gl_str id, uint64_t rev)
{
    struct gl_guard *g = &x->guards[x->tx.guards_n++];

    GL_ASSERT(x->tx.guards_n <= GL_TRIM_WRITES);
    *g = (struct gl_guard){.type = GL_GUARD_AT, .kind = kind, .id = id, .rev = rev};
    return g;
}

static struct gl_write *add_write(struct gl_trim_tx *x, enum gl_write_type type, gl_str kind,
                                  gl_str id)
{
    struct gl_write *w = &x->writes[x->tx.writes_n++];

    GL_ASSERT(x->tx.writes_n <= GL_TRIM_WRITES);
    *w = (struct gl_write){.type = type, .kind = kind, .id = id};
    return w;
}

static struct gl_trim_tx *begin_tx(struct gl_trim *t)
{
    struct gl_trim_tx *x = &t->jobs.txs[t->jobs.flying_n];

    x->trim = t;
    x->tx = (struct gl_tx){.context = t->node->config.context,
                           .session = t->node->session,
                           .guards = x->guards,
                           .writes = x->writes};
    x->guards[x->tx.guards_n++] =
        (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = t->node->session};
    return x;
}

static void commit(struct gl_trim_tx *x, gl_store_done *done)
{
    struct gl_trim *t = x->trim;
    struct gl_store *s = t->node->ports.store;

    x->req = (struct gl_store_req){.done = done, .owner = x};
    t->jobs.flying_n++;
    t->node->outstanding++;
    s->ops->commit(s, &x->req, &x->tx);
}

static void add_ids(struct gl_trim_tx *x, const struct gl_trim_going *g)
{
    for (size_t i = 0; i < g->ids_n; i++) {
        (void)add_write(x, GL_WRITE_DELETE, gl_str_of(g->kind), g->ids[i]);
    }
}

static void add_wake(struct gl_trim_tx *x, const struct gl_trim_going *g)
{
    const int64_t scores[] = {GL_WAKE_RUNNING, GL_WAKE_READY, GL_WAKE_NEVER, g->r.wake};
    gl_str index = gl_trim_is_shared(g->trim)
                       ? gl_job_index(&g->trim->arena, "wake", g->r.stack, g->r.env_scope)
                       : GL_S("wake");

    for (size_t i = 0; i < GL_COUNT(scores); i++) {
        add_write(x, GL_WRITE_UNINDEX, index, g->id)->score = scores[i];
    }
}

/* The job itself, and its names. */
static void add_head(struct gl_trim_tx *x, const struct gl_trim_going *g)
{
    (void)add_guard(x, GL_S("job"), g->id, g->rev);
    (void)add_write(x, GL_WRITE_DELETE, GL_S("inputs"), g->id);
    if (g->run_rev != 0) {
        (void)add_guard(x, GL_S("run"), g->r.run_id, g->run_rev);
        (void)add_write(x, GL_WRITE_DELETE, GL_S("run"), g->r.run_id);
    }
    if (g->dedupe_rev != 0) {
        (void)add_guard(x, GL_S("dedupe"), g->r.dedupe_key, g->dedupe_rev);
        if (!g->is_damaged) {
            add_guard(x, GL_S("dedupe"), g->r.dedupe_key, 0)->type = GL_GUARD_NOT_LIVE;
        }
        (void)add_write(x, GL_WRITE_DELETE, GL_S("dedupe"), g->r.dedupe_key);
    }
    if (g->request_rev != 0) {
        (void)add_guard(x, GL_S("request"), g->r.request_key, g->request_rev);
        (void)add_write(x, GL_WRITE_DELETE, GL_S("request"), g->r.request_key);
    }
    if (gl_trim_is_shared(g->trim)) {
        struct gl_guard *r = add_guard(x, GL_S("retried"), g->id, g->retried_rev);

        r->type = g->retried_rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_OWNED;
        r->owner = g->retried_by;
        r->token = g->retried_token;
    }
    if (g->retried_rev != 0) {
        (void)add_write(x, GL_WRITE_DELETE, GL_S("retried"), g->id);
    }
    (void)add_write(x, GL_WRITE_DELETE, GL_S("job"), g->id);
    if (g->is_damaged) {
        add_wake(x, g);
    }
    if (g->owner.n > 0) { /* it seemed to be dead, or is not known yet */
        struct gl_guard *had = add_guard(x, (gl_str){0}, (gl_str){0}, 0);

        had->type = GL_GUARD_DEAD;
        had->owner = g->owner;
    }
}

/* All that is left of it. */
static void add_job(struct gl_trim_tx *x, struct gl_trim_going *g)
{
    g->tx = x;
    if (!g->is_headless) {
        add_head(x, g);
    }
    add_ids(x, g);
    add_write(x, GL_WRITE_LOG_TRIM, GL_S("events"), g->id)->seq = INT64_MAX;
    add_write(x, GL_WRITE_UNINDEX, GL_S("ended"), g->id)->score = g->r.ended_at;
}

/* One has ended. True if it was the last, and the rest can go on; `*ret_refused`: it was refused.
 */
static bool has_landed(struct gl_trim_tx *x, bool *ret_refused)
{
    struct gl_trim *t = x->trim;
    struct gl_node *n = t->node;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    t->jobs.flying_n--;
    *ret_refused = x->req.status == GL_E_CONFLICT;
    if (x->req.status != 0 && !*ret_refused) {
        t->jobs.broken = x->req.why;
        t->jobs.broken.code = x->req.status;
    }
    if (t->is_stopped) {
        gl_node_rearm(n);
    } else if (t->jobs.flying_n == 0 && t->jobs.broken.code != 0) {
        gl_trim_fail(t, t->jobs.broken.code, t->jobs.broken.text);
    }
    return !t->is_stopped && t->jobs.flying_n == 0 && t->jobs.broken.code == 0;
}

static void leave_changed(struct gl_trim_going *g)
{
    gl_trim_leave(g, gl_why(&g->trim->jobs.why, GL_R_JOB_OWNER_ALIVE,
                            g->owner.n > 0 ? "the node that has the job seems to be alive: cancel "
                                             "it first, or try again when that node is gone"
                                           : "the job was changed by someone else meanwhile: try "
                                             "again"));
}

static void settle(struct gl_trim_going *g, int status)
{
    struct gl_trim *t = g->trim;

    g->tx = NULL;
    if (status == 0) {
        g->is_over = g->is_removed = true;
    } else if (status == GL_E_CONFLICT && t->jobs.is_single) {
        leave_changed(g);
    }
}

static void on_removed(struct gl_store_req *req)
{
    struct gl_trim_tx *x = req->owner;
    struct gl_trim *t = x->trim;
    bool is_refused, goes_on;

    for (size_t i = 0; i < t->jobs.n; i++) {
        if (t->jobs.items[i].tx == x) {
            settle(&t->jobs.items[i], req->status);
        }
    }
    goes_on = has_landed(x, &is_refused);
    if (is_refused) {
        GL_MARK(t->node->config.trace, "trim.conflict");
        t->jobs.has_conflict = true;
    }
    if (goes_on) {
        t->jobs.is_single = t->jobs.is_single || t->jobs.has_conflict;
        gl_trim_drop_next(t);
    }
}

static struct gl_trim_going *the_one_in(struct gl_trim_tx *x)
{
    struct gl_trim *t = x->trim;

    for (size_t i = 0; i < t->jobs.n; i++) {
        if (t->jobs.items[i].tx == x) {
            t->jobs.items[i].tx = NULL;
            return &t->jobs.items[i];
        }
    }
    GL_UNREACHABLE();
}

static void on_part_removed(struct gl_store_req *req)
{
    struct gl_trim_tx *x = req->owner;
    struct gl_trim *t = x->trim;
    struct gl_trim_going *g = the_one_in(x);
    bool is_refused;

    if (!has_landed(x, &is_refused)) {
        return;
    }
    if (is_refused) {
        leave_changed(g);
        gl_trim_drop_next(t);
    } else if (!g->is_headless) {
        g->is_headless = true;
        g->r.ended_at = GL_TRIM_BEGUN;
        gl_trim_drop_next(t);
    } else {
        gl_trim_jobs_list(g);
    }
}

/* The head, then a page, of a job that is too large to go at once. */
static void remove_part(struct gl_trim *t, struct gl_trim_going *g)
{
    struct gl_trim_tx *x = begin_tx(t);

    g->tx = x;
    if (!g->is_headless) {
        add_head(x, g);
        add_write(x, GL_WRITE_UNINDEX, GL_S("ended"), g->id)->score = g->r.ended_at;
        add_write(x, GL_WRITE_INDEX, GL_S("ended"), g->id)->score = GL_TRIM_BEGUN;
    } else {
        add_ids(x, g);
    }
    if (g->is_headless && g->log_from + LOG_PAGE < g->r.last_seq) {
        g->log_from += LOG_PAGE;
        add_write(x, GL_WRITE_LOG_TRIM, GL_S("events"), g->id)->seq = g->log_from;
    }
    commit(x, on_part_removed);
}

static bool is_large(const struct gl_trim_going *g)
{
    return g->more || g->log_from + LOG_PAGE < g->r.last_seq;
}

static void leave_pinned(struct gl_trim *t)
{
    for (size_t i = 0; i < t->jobs.n; i++) {
        struct gl_trim_going *g = &t->jobs.items[i];

        if (!g->is_over && !g->is_headless && gl_trim_jobs_is_pinned(t, g->id)) {
            GL_MARK(t->node->config.trace, "trim.is_pinned");
            gl_trim_leave(g, gl_why(&t->jobs.why, GL_R_JOB_RETRIED, "job %.*s is being retried",
                                    GL_STR_ARG(g->id)));
        }
    }
}

/* As many of those that are left as fit one transaction. False: none is left. */
static bool remove_some(struct gl_trim *t)
{
    struct gl_trim_tx *x = begin_tx(t);
    bool has_any = false;

    for (size_t i = 0; i < t->jobs.n && !(has_any && t->jobs.is_single); i++) {
        struct gl_trim_going *g = &t->jobs.items[i];

        if (!g->is_over && g->tx == NULL &&
            x->tx.writes_n + g->ids_n + OWN_WRITES <= GL_TRIM_WRITES) {
            add_job(x, g);
            has_any = true;
        }
    }
    if (has_any) {
        commit(x, on_removed);
    }
    return has_any;
}

void gl_trim_drop_next(struct gl_trim *t)
{
    GL_ASSERT(t->jobs.flying_n == 0);
    t->jobs.has_conflict = false;
    leave_pinned(t);
    for (size_t i = 0; i < t->jobs.n; i++) {
        if (!t->jobs.items[i].is_over && is_large(&t->jobs.items[i])) {
            remove_part(t, &t->jobs.items[i]);
            return;
        }
    }
    while (t->jobs.flying_n < GL_TRIM_FLYING && remove_some(t)) {
    }
    if (t->jobs.flying_n == 0) {
        remove_files(t);
    }
}
