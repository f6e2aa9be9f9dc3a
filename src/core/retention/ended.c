/* ended.c - decides which jobs of a batch may be removed, and finds what belongs to them.
 *
 * A job that is being retried is kept, because its outputs are still to be read. The index
 * "retry/<job>" lists the live jobs that retry it once their submissions are committed. Before that
 * we know the submissions made at this node (pins); a retry that another node is submitting marks
 * the record "retried", on which drop.c guards.
 *
 * A job whose record or flow is damaged can neither continue nor be cancelled. It is removed only
 * on a client's request, and only if no node has it in memory, with everything that can still be
 * read from its record. If one of its steps still runs, the step's node stops it as soon as it
 * finds that the job does not exist. */
#include <stdarg.h>
#include <stdio.h>

#include "core/cluster/membership.h"
#include "core/retention/parts.h"

enum { SIMILAR_IDS_MAX = 32 }; /* ids that differ in their last character only */

#define F(member, type) GL_FIELD(gl_job_record, member, type, 0, "")

static const struct gl_field leaving_fields[] = {
    F(flow, STR),
    F(run_id, STR),
    F(dedupe_key, STR),
    F(request_key, STR),
    F(stack, STR),
    F(env_scope, STR),
    GL_FIELD_ENUM(gl_job_record, status, gl_job_status_words, 0, ""),
    F(ended_at, I64),
    F(wake, I64),
    F(last_seq, I64),
    F(signals_n, I64),
    F(letters_n, U64),
};
#undef F

const struct gl_schema gl_trim_job_schema = {.name = "job",
                                             .bytes = sizeof(struct gl_job_record),
                                             .fields = leaving_fields,
                                             .fields_n = GL_COUNT(leaving_fields)};

static const struct gl_core_view job_view = {
    .type = GL_VIEW_MEMBERS, .schema = &gl_job_schema, .members = &gl_trim_job_schema};

struct naming { /* a record that names a job: run, dedupe, request */
    gl_str job_id;
};

static const struct gl_field naming_fields[] = {GL_FIELD(naming, job_id, STR, 0, "")};

static const struct gl_schema naming_schema = {
    .name = "name", .bytes = sizeof(struct naming), .fields = naming_fields, .fields_n = 1};

static const struct gl_core_view naming_view = {
    .type = GL_VIEW_MEMBERS, .schema = &naming_schema, .members = &naming_schema};

void gl_ended_keep(struct gl_core *c, struct gl_trim_job *g, int reason, const char *fmt, ...)
{
    char text[GL_WHY_BYTES];
    va_list args;

    GL_ASSERT(!g->is_over);
    GL_ASSERT(!g->is_removed);
    GL_ASSERT(reason != 0);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a long sentence is cut */
    va_end(args);
    g->is_over = true;
    gl_pass(c)->why_code = reason;
    gl_core_set(c, &gl_pass(c)->why, gl_str_of(text));
}

/* ---- pins: jobs that are being retried ---- */

bool gl_ended_is_submitted(const struct gl_job *j)
{
    return j != NULL && !j->is_created && j->inflight_n > 0;
}

void gl_pins_drop(struct gl_core *c, bool all)
{
    struct gl_link *next;

    for (struct gl_link *l = c->retention.pins.next; l != &c->retention.pins; l = next) {
        struct gl_pin *p = GL_CONTAINER(l, struct gl_pin, link);

        next = l->next;
        if (all || !gl_ended_is_submitted(gl_job_find(c, p->by))) {
            gl_list_remove(l);
            gl_core_set(c, &p->job, (gl_str){0});
            gl_core_set(c, &p->by, (gl_str){0});
            gl_pool_free(&c->mem, p, sizeof(*p));
        }
    }
    GL_ASSERT(GL_IMPLIES(all, gl_list_empty(&c->retention.pins)));
}

bool gl_pins_have(const struct gl_core *c, gl_str job)
{
    for (const struct gl_link *l = c->retention.pins.next; l != &c->retention.pins; l = l->next) {
        if (gl_str_eq(job, GL_CONTAINER(l, struct gl_pin, link)->job)) {
            return true;
        }
    }
    return false;
}

void gl_pins_add(struct gl_core *c, gl_str job, gl_str by)
{
    struct gl_pin *p = gl_pool_alloc(&c->mem, sizeof(*p));

    *p = (struct gl_pin){0};
    gl_list_init(&p->link);
    gl_core_set(c, &p->job, job);
    gl_core_set(c, &p->by, by);
    gl_list_push(&c->retention.pins, &p->link);
}

/* A pin outlives its submission until the next batch begins: by then the index lists the retry. */
void gl_retention_on_submit(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_state *r = &c->retention;

    GL_ASSERT(ev->type == GL_EV_SUBMIT);
    GL_ASSERT(ev->job.n == GL_ULID_BYTES);
    if (r->pass.chore == GL_CHORE_FLOWS) {
        gl_retention_add_text(&r->pass, &r->pass.used, ev->submit.flow_hash);
    }
    if (ev->submit.retry_of.n != GL_ULID_BYTES) {
        return;
    }
    if (r->pass.stage == GL_STAGE_IDLE) {
        gl_pins_drop(c, false); /* or they would pile up where nothing is ever removed */
    }
    gl_pins_add(c, ev->submit.retry_of, ev->job);
}

/* ---- what belongs to them ---- */

/* Listed page by page, in this order. */
static const struct {
    const char *kind;
    bool of_signals, of_agents, of_logs; /* only jobs with signals, agents or logs have these */
} kinds[] = {{.kind = "step"},
             {.kind = "signal", .of_signals = true},
             {.kind = "letter", .of_agents = true},
             {.kind = "message", .of_agents = true},
             {.kind = "body", .of_agents = true},
             {.kind = "deadletter", .of_agents = true},
             {.kind = "patch", .of_agents = true},
             {.kind = "log", .of_logs = true},
             {.kind = "logchunk", .of_logs = true}};

const char *gl_ended_kind(const struct gl_trim_job *g, size_t place)
{
    GL_ASSERT(g->ids_kind < GL_COUNT(kinds));
    GL_ASSERT(g->logs_at <= g->chunks_at && g->chunks_at <= g->ids.n);
    return place < g->logs_at ? kinds[g->ids_kind].kind : place < g->chunks_at ? "log" : "logchunk";
}

bool gl_ended_has_kind(uint32_t kind)
{
    return kind < GL_COUNT(kinds);
}

/* The next kind that the job may have; GL_COUNT(kinds): there is none. */
static uint32_t kind_after(const struct gl_core *c, const struct gl_trim_job *g)
{
    bool has_logs = c->retention.has_logs && (g->log_rev != 0 || g->is_headless);
    uint32_t next = g->kind + 1;

    while (next < GL_COUNT(kinds) &&
           ((kinds[next].of_signals && g->r.signals_n == 0) ||
            (kinds[next].of_agents && g->r.letters_n == 0) || (kinds[next].of_logs && !has_logs))) {
        next++;
    }
    GL_ASSERT(next > g->kind && next <= GL_COUNT(kinds));
    return next;
}

static void list_kind(struct gl_core *c, struct gl_trim_job *g)
{
    struct gl_listing page = {
        .kind = gl_str_of(kinds[g->kind].kind),
        .prefix = gl_str_fmt(c->out->arena, "%.*s/", GL_STR_ARG(g->id)),
        .limit = GL_TRIM_PAGE,
        .ids_only = true,
    };

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_BELONGINGS);
    GL_ASSERT(!g->is_over);
    GL_ASSERT(g->call == 0);
    g->is_retried = false;
    g->call = gl_component_list(c, GL_COMPONENT_RETENTION, &page, &gl_view_ids);
    gl_pass(c)->calls_n++;
}

void gl_ended_list(struct gl_core *c, struct gl_trim_job *g)
{
    GL_ASSERT(!g->is_over);
    g->ids = (struct gl_strs){0};
    g->logs_at = g->chunks_at = 0;
    g->is_adding = false;
    list_kind(c, g);
}

static void on_retries(struct gl_core *c, struct gl_trim_job *g, const struct gl_event *ev)
{
    const struct gl_event_entry *retries = ev->answer.entries.items;

    GL_ASSERT(g->is_retried);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(!g->is_over);
    if (ev->answer.entries.n > 0 && !GL_PLANT(83)) { /* planted: retries are ignored */
        GL_MARK(c->trace, "trim.is_retried");
        gl_ended_keep(c, g, GL_R_JOB_RETRIED,
                      "job %.*s is needed by job %.*s, which retries it and has not ended",
                      GL_STR_ARG(g->id), GL_STR_ARG(retries[0].id));
    } else {
        gl_ended_list(c, g);
    }
}

/* Add a page to `ids`. False: it does not fit. */
static bool add_page(struct gl_core *c, struct gl_trim_job *g, const struct gl_strs *names)
{
    struct gl_arena *a = &gl_pass(c)->arena;
    size_t had = g->ids.n;
    gl_str *all = GL_NEW_ARRAY(a, gl_str, had + names->n + 1);

    GL_ASSERT(GL_IMPLIES(!g->is_adding, had == 0));
    if (had + names->n > GL_TRIM_PAGE) {
        return false;
    }
    for (size_t i = 0; i < had; i++) {
        all[i] = g->ids.items[i];
    }
    for (size_t i = 0; i < names->n; i++) {
        all[had + i] = gl_str_dup(a, names->items[i]);
    }
    g->ids = (struct gl_strs){.items = all, .n = had + names->n};
    if (!g->is_adding) {
        g->ids_kind = g->kind;
        g->logs_at = (uint32_t)g->ids.n;
    }
    if (!g->is_adding || strcmp(kinds[g->kind].kind, "logchunk") != 0) {
        g->chunks_at = (uint32_t)g->ids.n;
    }
    return true;
}

/* A job with a few steps and logs should take one transaction, so what belongs to its logs is added
 * to the same page. Any other kind is listed when nothing of this one is left. */
static void on_listed(struct gl_core *c, struct gl_trim_job *g, const struct gl_event *ev)
{
    uint32_t next = kind_after(c, g);
    bool fits = add_page(c, g, &ev->answer.names), has_next = ev->answer.next.n > 0;

    GL_ASSERT(!g->is_retried);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(fits || g->is_adding); /* the caller has checked the size of one page */
    if (fits && !has_next && next < GL_COUNT(kinds) && (g->ids.n == 0 || kinds[next].of_logs)) {
        g->kind = next;
        g->is_adding = g->ids.n > 0;
        list_kind(c, g);
        return;
    }
    g->has_more = !fits || has_next || next < GL_COUNT(kinds);
}

/* If something of a job cannot be read, the job is kept; the others are removed. */
void gl_ended_on_belongings(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_trim_job *g = NULL;

    GL_ASSERT(p->stage == GL_STAGE_BELONGINGS);
    for (size_t i = 0; i < p->jobs_n_now && g == NULL; i++) {
        g = p->jobs[i].call == ev->answer.number ? &p->jobs[i] : NULL;
    }
    if (g == NULL) {
        return;
    }
    g->call = 0;
    GL_ASSERT(p->calls_n > 0);
    GL_ASSERT(!g->is_over);
    if (ev->answer.names.n > GL_TRIM_PAGE) {
        gl_ended_keep(c, g, GL_E_DAMAGED, "%s", gl_err_text(GL_E_DAMAGED));
    } else if (ev->answer.code != 0) {
        gl_ended_keep(c, g, (int)ev->answer.code, "%.*s", GL_STR_ARG(ev->answer.why));
    } else if (g->is_retried) {
        on_retries(c, g, ev);
    } else {
        on_listed(c, g, ev);
    }
    if (--p->calls_n == 0) {
        gl_drop_next(c);
    }
}

static void find_belongings(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->jobs_n_now > 0);
    gl_retention_enter(c, GL_STAGE_BELONGINGS, 0);
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        struct gl_trim_job *g = &p->jobs[i];
        struct gl_range range = {
            .index = gl_str_fmt(c->out->arena, "retry/%.*s", GL_STR_ARG(g->id)),
            .score_min = INT64_MIN,
            .score_max = INT64_MAX,
            .limit = 1,
        };

        GL_ASSERT(g->call == 0);
        if (!g->is_over) { /* on_retries() lists the belongings of those that nothing retries */
            g->is_retried = true;
            g->call = gl_component_range(c, GL_COMPONENT_RETENTION, &range);
            p->calls_n++;
        }
    }
    GL_ASSERT(p->calls_n <= p->jobs_n_now);
    if (p->calls_n == 0) {
        gl_drop_next(c);
    }
}

/* ---- names ---- */

enum { NAMES = 5 };

/* The records of the names that a job has: their keys, and where to put the revision of a record
 * that names this job. Asked twice, before the call and after the answer, with the same result. */
static size_t names_of(const struct gl_core *c, struct gl_trim_job *g,
                       struct gl_key keys[static NAMES], uint64_t *revs[static NAMES])
{
    const struct {
        gl_str kind, id;
        bool is_there;
        uint64_t *rev;
    } all[NAMES] = {
        {GL_S("run"), g->r.run_id, !gl_str_eq(g->r.run_id, g->id), &g->run_rev},
        {GL_S("dedupe"), g->r.dedupe_key, true, &g->dedupe_rev},
        {GL_S("request"), g->r.request_key, true, &g->request_rev},
        {GL_S("retried"), g->id, c->shared, NULL},
        {GL_S("log"), g->id, c->retention.has_logs, &g->log_rev},
    };
    size_t n = 0;

    for (size_t i = 0; i < NAMES && !g->is_over && !g->is_headless; i++) {
        if (all[i].is_there && all[i].id.n > 0) {
            revs[n] = all[i].rev;
            keys[n++] = (struct gl_key){.kind = all[i].kind, .id = all[i].id};
        }
    }
    GL_ASSERT(n <= NAMES);
    GL_ASSERT(GL_IMPLIES(g->is_over || g->is_headless, n == 0));
    return n;
}

static bool names_job(struct gl_core *c, const struct gl_event_record *r, gl_str job)
{
    struct naming name;

    return r->rev != 0 && gl_retention_read(c->out->arena, &naming_schema, r->value, &name) &&
           gl_str_eq(name.job_id, job);
}

void gl_ended_on_names(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *r = ev->answer.records.items;
    struct gl_key keys[NAMES];
    uint64_t *revs[NAMES];
    size_t names_n = 0;

    GL_ASSERT(p->stage == GL_STAGE_NAMES);
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        names_n += names_of(c, &p->jobs[i], keys, revs);
    }
    if (!gl_retention_check(c, ev->answer.records.n == names_n)) {
        return;
    }
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        struct gl_trim_job *g = &p->jobs[i];
        size_t n = names_of(c, g, keys, revs);

        for (size_t k = 0; k < n; k++, r++) {
            if (revs[k] == &g->log_rev) {
                g->log_rev = r->rev;
            } else if (revs[k] != NULL) {
                *revs[k] = names_job(c, r, g->id) ? r->rev : 0;
            } else {
                g->retried_rev = r->rev;
                g->retried_by = gl_str_dup(&p->arena, r->owner);
                g->retried_token = r->token;
            }
        }
    }
    GL_ASSERT(r == (const struct gl_event_record *)ev->answer.records.items + names_n);
    find_belongings(c);
}

/* The names are removed with the job, under guards on the revisions read here. */
static void get_names(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_key *keys = GL_NEW_ARRAY(c->out->arena, struct gl_key, NAMES * (p->jobs_n_now + 1));
    uint64_t *revs[NAMES];
    size_t n = 0;

    for (size_t i = 0; i < p->jobs_n_now; i++) {
        n += names_of(c, &p->jobs[i], keys + n, revs);
    }
    GL_ASSERT(n <= NAMES * p->jobs_n_now);
    if (n == 0) {
        find_belongings(c);
    } else {
        gl_retention_get(c, GL_STAGE_NAMES, keys, n, &naming_view);
    }
}

/* ---- the jobs themselves ---- */

/* A node has the job in memory, and may write it at any time. */
static bool is_in_memory(const struct gl_core *c, const struct gl_trim_job *g, gl_str owner)
{
    return gl_core_owns(c, g->id) || gl_membership_lives(c, owner);
}

static void note_owner(struct gl_core *c, struct gl_trim_job *g, const struct gl_event_record *r)
{
    GL_ASSERT(g->is_damaged || g->is_doubtful);
    GL_ASSERT(g->owner.n == 0);
    if (c->shared && !gl_str_eq(r->owner, c->session)) {
        g->owner = gl_str_dup(&gl_pass(c)->arena, r->owner);
    }
}

static void keep_alive_job(struct gl_core *c, struct gl_trim_job *g)
{
    GL_ASSERT(!gl_job_status_is_terminal(g->r.status));
    gl_ended_keep(c, g, GL_R_JOB_NOT_ENDED, "job %.*s is %s: cancel it first", GL_STR_ARG(g->id),
                  gl_job_status_words[g->r.status]);
}

void gl_ended_on_flow(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *flow = ev->answer.records.items;
    struct gl_trim_job *g = &gl_pass(c)->jobs[0];

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_FLOW);
    GL_ASSERT(gl_pass(c)->is_removal);
    GL_ASSERT(gl_pass(c)->jobs_n_now == 1);
    GL_ASSERT(g->is_doubtful);
    if (!gl_retention_check(c, ev->answer.records.n == 1)) {
        return;
    }
    if (flow->rev == 0 || flow->damaged) {
        GL_MARK(c->trace, "trim.damaged_flow");
        g->is_damaged = true;
    } else {
        keep_alive_job(c, g);
    }
    get_names(c);
}

/* Read what can be read of the record; strings live in the pass's arena. */
static bool read_job(struct gl_core *c, struct gl_trim_job *g, gl_str value)
{
    struct gl_job_record r;
    bool is_readable = gl_retention_read(&gl_pass(c)->arena, &gl_trim_job_schema, value, &r);

    if (is_readable) {
        g->r = r;
    } else { /* assume that it had everything */
        g->r = (struct gl_job_record){
            .stack = c->stack, .env_scope = c->env_scope, .signals_n = 1, .letters_n = 1};
    }
    return is_readable;
}

/* Decide from the job's record whether it may be removed. */
static void decide(struct gl_core *c, struct gl_trim_job *g, const struct gl_event_record *r)
{
    gl_ms listed_at = g->r.ended_at;
    bool is_asked = gl_pass(c)->is_removal, is_held = is_in_memory(c, g, r->owner);
    bool is_readable = r->rev != 0 && read_job(c, g, r->value);
    bool has_ended = is_readable && gl_job_status_is_terminal(g->r.status);

    GL_ASSERT(!g->is_over);
    GL_ASSERT(g->call == 0);
    GL_ASSERT(!g->is_damaged && !g->is_doubtful);
    g->rev = r->rev;
    g->is_headless = r->rev == 0; /* removed in part, as far as the index "ended" says */
    if (g->is_headless) {
        g->r.signals_n = 1; /* it may have had some */
        g->r.letters_n = 1;
        return;
    }
    if (is_asked && (r->damaged || !is_readable) && !is_held) {
        GL_MARK(c->trace, "trim.damaged");
        g->is_damaged = true;
        note_owner(c, g, r);
    } else if (!is_readable) {
        gl_ended_keep(c, g, GL_R_JOB_DAMAGED, "the record of job %.*s is damaged",
                      GL_STR_ARG(g->id));
    } else if (is_asked && !has_ended && !is_held) { /* ask for its flow */
        g->is_doubtful = true;
        note_owner(c, g, r);
    } else if (!has_ended) {
        keep_alive_job(c, g);
    }
    g->r.ended_at = is_asked ? g->r.ended_at : listed_at; /* its score in the index */
    GL_ASSERT(g->rev != 0);
    GL_ASSERT(GL_IMPLIES(g->is_damaged || g->is_doubtful, is_asked && !g->is_over));
    GL_ASSERT(has_ended || g->is_over || g->is_damaged || g->is_doubtful);
}

void gl_ended_on_begun(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *e = ev->answer.entries.items;
    struct gl_trim_job *g = &gl_pass(c)->jobs[0];
    bool is_begun = false;

    GL_ASSERT(gl_pass(c)->stage == GL_STAGE_BEGUN);
    GL_ASSERT(gl_pass(c)->is_removal);
    GL_ASSERT(gl_pass(c)->jobs_n_now == 1);
    GL_ASSERT(g->is_headless);
    for (size_t i = 0; i < ev->answer.entries.n; i++) {
        is_begun = is_begun || gl_str_eq(e[i].id, g->id);
    }
    if (is_begun) {
        GL_MARK(c->trace, "trim.begun_again");
    } else {
        gl_ended_keep(c, g, GL_R_NO_SUCH_JOB, "there is no job '%.*s'", GL_STR_ARG(g->id));
    }
    g->r.ended_at = GL_ENDED_BEGUN;
    get_names(c);
}

/* The job to be removed does not exist: is it partly removed? Then the index still lists it. The
 * range begins after the id without its last character, so that it includes the id. */
static void find_begun(struct gl_core *c)
{
    gl_str id = gl_pass(c)->jobs[0].id;

    GL_ASSERT(gl_pass(c)->jobs[0].is_headless);
    GL_ASSERT(id.n > 0);
    gl_retention_range(c, GL_STAGE_BEGUN,
                       (struct gl_range){.index = GL_S("ended"),
                                         .score_min = GL_ENDED_BEGUN,
                                         .score_max = GL_ENDED_BEGUN,
                                         .after_score = GL_ENDED_BEGUN,
                                         .after_id = {.p = id.p, .n = id.n - 1},
                                         .limit = SIMILAR_IDS_MAX});
}

void gl_ended_on_jobs(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *all = ev->answer.records.items;

    GL_ASSERT(p->stage == GL_STAGE_JOBS);
    GL_ASSERT(p->jobs_n_now > 0);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->jobs_n_now == 1));
    if (!gl_retention_check(c, ev->answer.records.n == p->jobs_n_now)) {
        return;
    }
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        decide(c, &p->jobs[i], &all[i]);
    }
    if (p->is_removal && p->jobs[0].is_headless) {
        find_begun(c);
    } else if (p->jobs[0].is_doubtful) { /* without its flow it cannot be cancelled */
        struct gl_key flow = {.kind = GL_S("flow"), .id = p->jobs[0].r.flow};

        gl_retention_get(c, GL_STAGE_FLOW, &flow, 1, &gl_view_stamps);
    } else {
        get_names(c);
    }
}

void gl_ended_begin(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_key *keys = GL_NEW_ARRAY(c->out->arena, struct gl_key, p->jobs_n_now);

    GL_ASSERT(p->jobs_n_now > 0);
    GL_ASSERT(GL_IMPLIES(p->is_removal, p->jobs_n_now == 1));
    GL_ASSERT(p->chore == GL_CHORE_NONE);
    gl_pins_drop(c, false);
    p->is_single = p->has_conflict = false;
    p->gone_n = 0;
    p->why_code = GL_E_UNAVAILABLE;
    gl_core_set(c, &p->why, GL_S("the job was not removed: try again"));
    for (size_t i = 0; i < p->jobs_n_now; i++) {
        keys[i] = (struct gl_key){.kind = GL_S("job"), .id = p->jobs[i].id};
    }
    gl_retention_get(c, GL_STAGE_JOBS, keys, p->jobs_n_now, &job_view);
}
