/* trim_jobs.c - a handful of ended jobs is to go: which of them may, and what belongs to them.
 *
 * A job that is being retried stays: its outputs are still to be read. On a shared store a retry
 * that another node is submitting leaves its mark in the record "retried", on which trim_drop.c
 * guards.
 *
 * A job whose own record, or that of its flow, is damaged can neither go on nor be cancelled. It
 * goes if a person asks for it, unless a node has it in memory, and with it what its record still
 * tells. What runs of it is stopped as soon as its node finds that there is no such job. */
#include "node/trim_state.h"

enum { ALIKE_MAX = 32 }; /* ids that differ in their last letter only */

/* ---- jobs that are being retried ---- */

/* The index of retries tells of those whose submission has been committed when it is read. Of the
 * others we were told: each is kept in mind until a handful begins after its submission has ended,
 * and then it stands in the index. */
struct pin {
    struct gl_link link;
    char job[GL_ULID_BYTES + 1];
    uint64_t number; /* of the last request at that time */
};

void gl_trim_jobs_pin(struct gl_trim *t, gl_str job)
{
    struct pin *p;

    if (job.n != GL_ULID_BYTES) {
        return;
    }
    if (!t->is_busy) {
        gl_trim_jobs_unpin(t, false); /* else they would pile up where nothing is removed */
    }
    p = gl_mem_alloc(sizeof(*p));
    memcpy(p->job, job.p, job.n);
    p->number = gl_requests_last(t->node);
    gl_list_push(&t->pins, &p->link);
}

bool gl_trim_jobs_is_pinned(const struct gl_trim *t, gl_str job)
{
    for (const struct gl_link *l = t->pins.next; l != &t->pins; l = l->next) {
        if (gl_str_is(job, GL_CONTAINER(l, struct pin, link)->job)) {
            return true;
        }
    }
    return false;
}

void gl_trim_jobs_unpin(struct gl_trim *t, bool all)
{
    struct gl_link *next;

    for (struct gl_link *l = t->pins.next; l != &t->pins; l = next) {
        struct pin *p = GL_CONTAINER(l, struct pin, link);

        next = l->next;
        if (all || !gl_requests_have_submit(t->node, p->number)) {
            gl_list_remove(l);
            gl_mem_free(p);
        }
    }
}

/* ---- what belongs to them ---- */

static void listed(struct gl_trim *t)
{
    if (--t->jobs.reading_n == 0) {
        gl_trim_drop_next(t);
    }
}

/* False: the node is stopping, or this one stays. */
static bool has_read(struct gl_trim_going *g)
{
    struct gl_trim *t = g->trim;
    struct gl_node *n = t->node;

    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    if (t->is_stopped) {
        gl_node_rearm(n);
        return false;
    }
    if (g->req.status != 0) {
        gl_trim_leave(g, gl_why(&t->jobs.why, g->req.status, "%s", g->req.why.text));
    }
    if (g->is_over) {
        listed(t);
    }
    return !g->is_over;
}

/* What a job has besides its steps, each kind page by page, in this order; NULL: that was all. */
static const char *kind_behind(const struct gl_trim_going *g)
{
    bool has_signals = g->r.signals_n > 0, has_agents = g->r.letters_n > 0;
    const struct {
        const char *kind;
        bool is_there;
    } kinds[] = {{"step", true},          {"signal", has_signals}, {"letter", has_agents},
                 {"message", has_agents}, {"body", has_agents},    {"deadletter", has_agents},
                 {"patch", has_agents}};
    size_t i = 0;

    while (strcmp(kinds[i].kind, g->kind) != 0) {
        i++;
    }
    while (++i < GL_COUNT(kinds)) {
        if (kinds[i].is_there) {
            return kinds[i].kind;
        }
    }
    return NULL;
}

static void on_listed(struct gl_store_req *req)
{
    struct gl_trim_going *g = req->owner;
    struct gl_trim *t = g->trim;
    const char *next = kind_behind(g);

    if (!has_read(g)) {
        return;
    }
    g->ids = GL_NEW_ARRAY(&t->arena, gl_str, req->records_n + 1);
    for (size_t i = 0; i < req->records_n; i++) {
        g->ids[g->ids_n++] = gl_str_dup(&t->arena, req->records[i].id);
    }
    g->more = req->records_n == GL_TRIM_PAGE;
    if (g->ids_n == 0 && next != NULL) {
        g->kind = next;
        gl_trim_jobs_list(g);
        t->jobs.reading_n--; /* it is the same reading */
        return;
    }
    /* The next kind comes when nothing is left of this one: a page of its own. */
    g->more = g->more || next != NULL;
    listed(t);
}

void gl_trim_jobs_list(struct gl_trim_going *g)
{
    struct gl_trim *t = g->trim;
    struct gl_store *s = t->node->ports.store;

    g->ids_n = 0;
    g->listing = (struct gl_listing){.kind = gl_str_of(g->kind),
                                     .prefix = gl_str_fmt(&t->arena, "%.*s/", GL_STR_ARG(g->id)),
                                     .limit = GL_TRIM_PAGE,
                                     .ids_only = true};
    g->req = (struct gl_store_req){.done = on_listed, .owner = g};
    t->jobs.reading_n++;
    t->node->outstanding++;
    s->ops->list(s, &g->req, t->node->config.context, &g->listing);
}

static void on_retries(struct gl_store_req *req)
{
    struct gl_trim_going *g = req->owner;
    struct gl_trim *t = g->trim;

    if (!has_read(g)) {
        return;
    }
    if (req->entries_n > 0) {
        GL_MARK(t->node->config.trace, "trim.is_retried");
        gl_trim_leave(g,
                      gl_why(&t->jobs.why, GL_R_JOB_RETRIED,
                             "job %.*s is needed by job %.*s, which retries it and has not ended",
                             GL_STR_ARG(g->id), GL_STR_ARG(req->entries[0].id)));
        listed(t);
        return;
    }
    gl_trim_jobs_list(g);
    t->jobs.reading_n--; /* it is the same reading */
}

static void find_retries(struct gl_trim_going *g)
{
    struct gl_trim *t = g->trim;
    struct gl_store *s = t->node->ports.store;

    g->range = (struct gl_range){.index = gl_str_fmt(&t->arena, "retry/%.*s", GL_STR_ARG(g->id)),
                                 .score_min = INT64_MIN,
                                 .score_max = INT64_MAX,
                                 .limit = 1};
    g->req = (struct gl_store_req){.done = on_retries, .owner = g};
    t->jobs.reading_n++;
    t->node->outstanding++;
    s->ops->range(s, &g->req, t->node->config.context, &g->range);
}

static void read_all(struct gl_trim *t)
{
    t->jobs.reading_n = 1; /* so that it does not end before all have begun */
    for (size_t i = 0; i < t->jobs.n; i++) {
        if (!t->jobs.items[i].is_over) {
            t->jobs.items[i].kind = "step";
            find_retries(&t->jobs.items[i]);
        }
    }
    listed(t);
}

/* ---- their names ---- */

static bool names_job(struct gl_trim *t, const struct gl_record *r, gl_str job)
{
    struct gl_json j;

    return r->rev != 0 && gl_json_parse(&j, r->value, GL_RECORD_BYTES_MAX, &t->arena, NULL) == 0 &&
           gl_str_eq(gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &t->arena), job);
}

static bool has_run_id(const struct gl_trim_going *g)
{
    return !g->is_headless && g->r.run_id.n > 0 && !gl_str_eq(g->r.run_id, g->id);
}

static bool has_dedupe_key(const struct gl_trim_going *g)
{
    return !g->is_headless && g->r.dedupe_key.n > 0;
}

static bool has_request_key(const struct gl_trim_going *g)
{
    return !g->is_headless && g->r.request_key.n > 0;
}

static bool may_be_retried(const struct gl_trim_going *g)
{
    return !g->is_headless && gl_trim_is_shared(g->trim);
}

static void on_names(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    size_t at = 0;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < t->jobs.n; i++) {
        struct gl_trim_going *g = &t->jobs.items[i];

        if (!g->is_over && has_run_id(g)) {
            const struct gl_record *r = &req->records[at++];

            g->run_rev = names_job(t, r, g->id) ? r->rev : 0;
        }
        if (!g->is_over && has_dedupe_key(g)) {
            const struct gl_record *r = &req->records[at++];

            g->dedupe_rev = names_job(t, r, g->id) ? r->rev : 0;
        }
        if (!g->is_over && has_request_key(g)) {
            const struct gl_record *r = &req->records[at++];

            g->request_rev = names_job(t, r, g->id) ? r->rev : 0;
        }
        if (!g->is_over && may_be_retried(g)) {
            const struct gl_record *r = &req->records[at++];

            g->retried_rev = r->rev;
            g->retried_by = gl_str_dup(&t->arena, r->owner);
            g->retried_token = r->token;
        }
    }
    read_all(t);
}

static void get_names(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    size_t n = 0;

    for (size_t i = 0; i < t->jobs.n; i++) {
        const struct gl_trim_going *g = &t->jobs.items[i];

        if (!g->is_over && has_run_id(g)) {
            t->jobs.keys[n++] = (struct gl_key){.kind = GL_S("run"), .id = g->r.run_id};
        }
        if (!g->is_over && has_dedupe_key(g)) {
            t->jobs.keys[n++] = (struct gl_key){.kind = GL_S("dedupe"), .id = g->r.dedupe_key};
        }
        if (!g->is_over && has_request_key(g)) {
            t->jobs.keys[n++] = (struct gl_key){.kind = GL_S("request"), .id = g->r.request_key};
        }
        if (!g->is_over && may_be_retried(g)) {
            t->jobs.keys[n++] = (struct gl_key){.kind = GL_S("retried"), .id = g->id};
        }
    }
    if (n == 0) {
        read_all(t);
    } else {
        s->ops->get(s, gl_trim_call(t, on_names), t->node->config.context, t->jobs.keys, n);
    }
}

/* ---- the jobs themselves ---- */

static bool is_removal(const struct gl_trim *t)
{
    return t->ask != NULL && t->ask->rq->verb == GL_VERB_REMOVE;
}

static bool is_in_memory(const struct gl_trim_going *g, const struct gl_record *r)
{
    const struct gl_node *n = g->trim->node;

    return gl_core_owns(n->core, g->id) || gl_core_lives(n->core, r->owner);
}

/* Its record is damaged, and nobody remembers what it said; `g->r` is what can be read of it. */
static bool is_unusable(struct gl_trim_going *g, const struct gl_record *r)
{
    struct gl_node *n = g->trim->node;
    bool is_readable = gl_trim_read_job(g->trim, r->value, &g->r);

    if (!is_readable) {
        g->r = (struct gl_job_record){.stack = n->config.stack,
                                      .env_scope = n->config.env_scope,
                                      .signals_n = 1,
                                      .letters_n = 1};
    }
    return (r->damaged || !is_readable) && !is_in_memory(g, r);
}

static void note_owner(struct gl_trim_going *g, const struct gl_record *r)
{
    struct gl_trim *t = g->trim;

    if (gl_trim_is_shared(t) && !gl_str_eq(r->owner, t->node->session)) {
        g->owner = gl_str_dup(&t->arena, r->owner);
    }
}

static void leave_alive(struct gl_trim_going *g)
{
    gl_trim_leave(g,
                  gl_why(&g->trim->jobs.why, GL_R_JOB_NOT_ENDED, "job %.*s is %s: cancel it first",
                         GL_STR_ARG(g->id), gl_job_status_words[g->r.status]));
}

static void on_doubtful_flow(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    struct gl_trim_going *g = &t->jobs.items[0];

    if (!gl_trim_answered(t, req)) {
        return;
    }
    if (req->records[0].rev == 0 || req->records[0].damaged) {
        GL_MARK(t->node->config.trace, "trim.damaged_flow");
        g->is_damaged = true;
    } else {
        leave_alive(g);
    }
    get_names(t);
}

/* Without its flow it cannot be cancelled either. */
static void look_at_flow(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    t->jobs.keys[0] = (struct gl_key){.kind = GL_S("flow"), .id = t->jobs.items[0].r.flow};
    s->ops->get(s, gl_trim_call(t, on_doubtful_flow), t->node->config.context, t->jobs.keys, 1);
}

static void look_at(struct gl_trim_going *g, const struct gl_record *r)
{
    struct gl_trim *t = g->trim;
    gl_ms listed_at = g->r.ended_at;
    bool is_asked = is_removal(t);
    struct gl_why *why = &t->jobs.why;

    g->rev = r->rev;
    g->is_headless = r->rev == 0;
    if (g->is_headless) {
        g->r.signals_n = 1; /* as far as anybody knows */
        g->r.letters_n = 1;
        return;
    }
    if (is_asked && is_unusable(g, r)) {
        GL_MARK(t->node->config.trace, "trim.damaged");
        g->is_damaged = true;
        note_owner(g, r);
    } else if (!gl_trim_read_job(t, r->value, &g->r)) {
        gl_trim_leave(g, gl_why(why, GL_R_JOB_DAMAGED, "the record of job %.*s is damaged",
                                GL_STR_ARG(g->id)));
    } else if (is_asked && !gl_job_status_is_terminal(g->r.status) && !is_in_memory(g, r)) {
        g->is_doubtful = true;
        note_owner(g, r);
    } else if (!gl_job_status_is_terminal(g->r.status)) {
        leave_alive(g);
    }
    g->r.ended_at = is_asked ? g->r.ended_at : listed_at; /* its place in the index */
}

static void on_begun(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    struct gl_trim_going *g = &t->jobs.items[0];
    bool is_begun = false;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < req->entries_n; i++) {
        is_begun = is_begun || gl_str_eq(req->entries[i].id, g->id);
    }
    if (is_begun) {
        GL_MARK(t->node->config.trace, "trim.begun_again");
    } else {
        gl_trim_leave(
            g, gl_why(&t->jobs.why, GL_R_NO_SUCH_JOB, "there is no job '%.*s'", GL_STR_ARG(g->id)));
    }
    g->r.ended_at = GL_TRIM_BEGUN;
    get_names(t);
}

/* A job is to be removed that is not there: has somebody begun to? */
static void find_begun(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    gl_str id = t->jobs.items[0].id;

    t->range = (struct gl_range){.index = GL_S("ended"),
                                 .score_min = GL_TRIM_BEGUN,
                                 .score_max = GL_TRIM_BEGUN,
                                 .after_score = GL_TRIM_BEGUN,
                                 .after_id = {.p = id.p, .n = id.n - 1},
                                 .limit = ALIKE_MAX};
    s->ops->range(s, gl_trim_call(t, on_begun), t->node->config.context, &t->range);
}

static void on_jobs(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i < t->jobs.n; i++) {
        look_at(&t->jobs.items[i], &req->records[i]);
    }
    if (is_removal(t) && t->jobs.items[0].is_headless) {
        find_begun(t);
    } else if (t->jobs.items[0].is_doubtful) {
        look_at_flow(t);
    } else {
        get_names(t);
    }
}

void gl_trim_jobs_begin(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;

    t->jobs.is_single = false;
    gl_trim_jobs_unpin(t, false);
    t->jobs.flying_n = 0;
    t->jobs.broken = (struct gl_why){0};
    t->jobs.removed_n = 0;
    (void)gl_why(&t->jobs.why, GL_E_UNAVAILABLE, "the job could not be removed");
    for (size_t i = 0; i < t->jobs.n; i++) {
        t->jobs.items[i].trim = t;
        t->jobs.keys[i] = (struct gl_key){.kind = GL_S("job"), .id = t->jobs.items[i].id};
    }
    s->ops->get(s, gl_trim_call(t, on_jobs), t->node->config.context, t->jobs.keys, t->jobs.n);
}
