/* txn.c - builds the transaction of a job: its guards, its place in the index "wake", its log, the
 * records of its changed steps, its names, and last its own record. */
#include "core/flow/txn.h"

#include "base/check.h"
#include "core/cluster/inbox.h"
#include "core/cluster/session.h"
#include "core/flow/ledger.h"
#include "core/recovery/sweep.h"
#include "model/gc_state.h"

#include <stdarg.h>
#include <stdio.h>

void gl_txn_touch(struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->memory == GL_MEM_HOT);
    if (gl_list_empty(&j->touched)) { /* the first time in this step of the core */
        j->pend = (struct gl_effects){.arena = c->out->arena};
        j->extra = NULL;
        j->extra_n = j->extra_cap = 0;
        j->demands = NULL;
        j->demands_n = j->demands_cap = 0;
        gl_list_push(&c->touched, &j->touched);
    }
    GL_ASSERT(!gl_list_empty(&j->touched));
}

void gl_txn_changed(struct gl_core *c, struct gl_job *j)
{
    gl_txn_touch(c, j);
    j->changed = true;
    GL_ASSERT(!gl_list_empty(&j->touched));
}

void gl_txn_dirty(struct gl_core *c, struct gl_step *st)
{
    gl_txn_changed(c, st->job);
    if (gl_list_empty(&st->dirty)) {
        gl_list_push(&st->job->dirty, &st->dirty);
    }
    GL_ASSERT(!gl_list_empty(&st->dirty));
}

static gl_str attempt_id(struct gl_core *c, const struct gl_step *st)
{
    GL_ASSERT(st->r.attempt_count > 0);
    return gl_str_fmt(c->out->arena, "%.*s:attempt:%u", GL_STR_ARG(st->r.step_id),
                      st->r.attempt_count);
}

void gl_txn_log(struct gl_core *c, struct gl_job *j, const struct gl_step *st, const char *type,
                gl_str reason, gl_str raw)
{
    char when[GL_TIMES_BYTES];
    struct gl_jw w;

    GL_ASSERT(st == NULL || st->job == j);
    gl_txn_changed(c, j);
    gl_jw_init(&w, &j->log);
    gl_jw_object(&w);
    gl_jw_key(&w, "seq");
    gl_jw_i64(&w, ++j->r.last_seq);
    gl_jw_key(&w, "type");
    gl_jw_c(&w, type);
    gl_jw_key(&w, "job_id");
    gl_jw_str(&w, j->id);
    gl_jw_key(&w, "timestamp");
    gl_jw_str(&w, gl_times_format(c->now, when));
    if (st != NULL) {
        gl_jw_key(&w, "step_id");
        gl_jw_str(&w, st->r.step_id);
        gl_jw_key(&w, "status");
        gl_jw_c(&w, gl_step_status_words[st->r.status]);
        if (st->r.attempt_count > 0) {
            gl_jw_key(&w, "attempt");
            gl_jw_u64(&w, st->r.attempt_count);
            gl_jw_key(&w, "attempt_id");
            gl_jw_str(&w, attempt_id(c, st));
        }
    } else {
        gl_jw_key(&w, "status");
        gl_jw_c(&w, gl_job_status_words[j->r.status]);
    }
    if (reason.n > 0) {
        gl_jw_key(&w, "reason");
        gl_jw_str(&w, reason);
    }
    if (raw.n > 0) {
        gl_buf_char(&j->log, ',');
        gl_buf_str(&j->log, raw);
    }
    gl_jw_end(&w);
    gl_buf_char(&j->log, '\n');
    GL_ASSERT(j->log.n > 0);
    GL_ASSERT(j->r.last_seq > 0);
}

struct gl_write *gl_txn_write(struct gl_core *c, struct gl_job *j, enum gl_write_type type,
                              gl_str kind, gl_str id)
{
    struct gl_write *w;

    GL_ASSERT(kind.n > 0);
    GL_ASSERT(id.n > 0);
    gl_txn_changed(c, j);
    if (j->extra_n == j->extra_cap) {
        struct gl_write *more = GL_NEW_ARRAY(c->out->arena, struct gl_write, j->extra_cap * 2 + 4);

        if (j->extra_n > 0) {
            memcpy(more, j->extra, j->extra_n * sizeof(*more));
        }
        j->extra = more;
        j->extra_cap = j->extra_cap * 2 + 4;
    }
    w = &j->extra[j->extra_n++];
    *w = (struct gl_write){
        .type = type, .kind = kind, .id = gl_str_dup(c->out->arena, id), .rev = 1};
    GL_ASSERT(j->extra_n <= j->extra_cap);
    return w;
}

struct gl_guard *gl_txn_guard(struct gl_core *c, struct gl_job *j, enum gl_guard_type type,
                              gl_str kind, gl_str id)
{
    GL_ASSERT(kind.n > 0);
    GL_ASSERT(id.n > 0);
    gl_txn_changed(c, j);
    if (j->demands_n == j->demands_cap) {
        struct gl_guard *more =
            GL_NEW_ARRAY(c->out->arena, struct gl_guard, j->demands_cap * 2 + 2);

        if (j->demands_n > 0) {
            memcpy(more, j->demands, j->demands_n * sizeof(*more));
        }
        j->demands = more;
        j->demands_cap = j->demands_cap * 2 + 2;
    }
    j->demands[j->demands_n] =
        (struct gl_guard){.type = type, .kind = kind, .id = gl_str_dup(c->out->arena, id)};
    GL_ASSERT(j->demands_n < j->demands_cap);
    return &j->demands[j->demands_n++];
}

struct gl_effect *gl_txn_effect(struct gl_core *c, struct gl_job *j, enum gl_effect_type type)
{
    struct gl_effect *e;

    GL_ASSERT(type < GL_FX_COUNT);
    GL_ASSERT(type != GL_FX_COMMIT);
    gl_txn_touch(c, j);
    e = gl_effect_add(&j->pend, type, 0);
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, j->id);
    e->token = j->token;
    return e;
}

struct gl_effect *gl_txn_attempt(struct gl_core *c, struct gl_step *st, enum gl_effect_type type)
{
    struct gl_effect *e = gl_txn_effect(c, st->job, type);

    GL_ASSERT(type == GL_FX_START || type == GL_FX_ATTACH || type == GL_FX_STOP);
    GL_ASSERT(st->r.attempt_count > 0);
    e->attempt = attempt_id(c, st);
    e->attempt_number = st->r.attempt_count;
    e->epoch = gl_str_dup(c->out->arena, st->r.epoch);
    return e;
}

static void fill_reply(struct gl_core *c, struct gl_effect *e, uint64_t request, int code,
                       const char *fmt, va_list args)
{
    char text[GL_WHY_BYTES];

    GL_ASSERT(request != 0);
    GL_ASSERT(e->type == GL_FX_REPLY);
    GL_ASSERT(GL_IMPLIES(code != 0, fmt != NULL));
    e->request = request;
    e->code = gl_err_code(code);
    e->reason = gl_err_reason(code);
    if (fmt != NULL) {
        (void)vsnprintf(text, sizeof(text), fmt, args); /* a long sentence is truncated */
        e->why = gl_str_dup(c->out->arena, gl_str_of(text));
    }
}

void gl_txn_reply(struct gl_core *c, struct gl_job *j, uint64_t request, int code, const char *fmt,
                  ...)
{
    va_list args;

    if (request == 0) {
        return;
    }
    va_start(args, fmt);
    fill_reply(c, gl_txn_effect(c, j, GL_FX_REPLY), request, code, fmt, args);
    va_end(args);
}

void gl_txn_refuse(struct gl_core *c, uint64_t request, int code, const char *fmt, ...)
{
    struct gl_effect inner = {.type = GL_FX_REPLY};
    va_list args;

    GL_ASSERT(code != 0);
    if (request == 0) {
        return;
    }
    va_start(args, fmt);
    if (gl_inbox_has(request)) {
        fill_reply(c, &inner, request, code, fmt, args);
        gl_inbox_on_reply(c, 0, &inner);
    } else {
        fill_reply(c, gl_effect_add(c->out, GL_FX_REPLY, 0), request, code, fmt, args);
    }
    va_end(args);
}

bool gl_txn_may_drop(const struct gl_step *st)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);

    GL_ASSERT(st->job->memory == GL_MEM_HOT);
    if (gl_step_is_unit(st)) {
        return st->r.status == GL_STEP_WAITING || st->r.status == GL_STEP_PENDING;
    }
    if (gl_step_is_bound(st)) { /* a message for it may still come, and must find it ended */
        return false;
    }
    if (st->item >= 0) { /* an instance has neither parents nor children */
        return gl_step_status_is_terminal(st->r.status);
    }
    /* A step that ended before its last parent (one_success, quorum, ...) must stay in memory until
     * that parent has notified it. Otherwise the parent would create it again, as pending. */
    return gl_step_status_is_terminal(st->r.status) && st->r.spread == spec->children_n &&
           (st->r.up_ended == spec->needs_n || GL_PLANT(11));
}

/* ---- building the transaction ---- */

struct builder {
    struct gl_arena *arena;
    struct gl_guard *guards;
    struct gl_write *writes;
    size_t guards_n, writes_n, writes_cap;
};

static struct gl_write *add_write(struct builder *b, enum gl_write_type type, gl_str kind,
                                  gl_str id)
{
    struct gl_write *w = &b->writes[b->writes_n++];

    GL_ASSERT(kind.n > 0);
    GL_ASSERT(id.n > 0);
    GL_ASSERT(b->writes_n <= b->writes_cap);
    *w = (struct gl_write){.type = type, .kind = kind, .id = id};
    return w;
}

static struct gl_guard *add_guard(struct builder *b, enum gl_guard_type type, gl_str kind,
                                  gl_str id)
{
    struct gl_guard *g = &b->guards[b->guards_n++];

    GL_ASSERT(GL_IMPLIES(type == GL_GUARD_OWNED || type == GL_GUARD_AT, id.n > 0));
    *g = (struct gl_guard){.type = type, .kind = kind, .id = id};
    return g;
}

gl_str gl_txn_encode(struct gl_arena *a, const struct gl_schema *schema, const void *object)
{
    struct gl_buf buf = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_schema_write(schema, object, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return text;
}

/* The index "human" finds the steps that wait for a person without reading every job. */
static void write_human_index(struct gl_step *st, struct builder *b, gl_str id)
{
    bool waits = gl_step_asks_a_person(&st->r);

    GL_ASSERT(id.n > 0);
    if (waits != st->is_listed) {
        (void)add_write(b, waits ? GL_WRITE_INDEX : GL_WRITE_UNINDEX, GL_S("human"), id);
        st->is_listed = waits;
    }
}

/* Writes the changed steps and frees those that are done. */
static void write_steps(struct gl_core *c, struct gl_job *j, struct builder *b)
{
    for (struct gl_link *l; (l = gl_list_first(&j->dirty)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, dirty);
        GL_ASSERT(st->job == j);
        gl_str id = gl_str_fmt(b->arena, "%.*s/%.*s", GL_STR_ARG(j->id), GL_STR_ARG(st->r.step_id));
        struct gl_write *w = add_write(b, GL_WRITE_PUT, GL_S("step"), id);

        write_human_index(st, b, id);
        w->rev = j->rev;
        w->live = !gl_txn_may_drop(st);
        w->value = gl_txn_encode(b->arena, &gl_step_schema, &st->r);
        if (st->r.is_elsewhere) { /* what its node needs to know of the owner */
            w->owner = gl_str_dup(b->arena, j->owner);
            w->token = j->token;
        }
        gl_list_remove(&st->dirty);
        if (!w->live && !gl_step_is_unit(st)) {
            gl_step_free(c, st);
        }
    }
    GL_ASSERT(gl_list_empty(&j->dirty));
}

/* A name that only one job may have: taken in the transaction that creates the job, freed in the
 * one that ends it. Two submissions that race are settled by the guard. */
static void write_unique_name(struct gl_job *j, struct builder *b, gl_str kind, gl_str id,
                              bool is_new, bool ends)
{
    struct gl_write *w;

    GL_ASSERT(j->rev > 0);
    GL_ASSERT(!is_new || j->rev == 1);
    if (id.n == 0 || (!is_new && !ends)) {
        return;
    }
    id = gl_str_dup(b->arena, id);
    if (is_new) {
        /* A run id names one job for as long as the job is kept; a dedupe key one live job. */
        (void)add_guard(b, gl_str_is(kind, "run") ? GL_GUARD_ABSENT : GL_GUARD_NOT_LIVE, kind, id);
    }
    w = add_write(b, GL_WRITE_PUT, kind, id);
    w->rev = j->rev;
    w->live = !ends;
    w->value = gl_str_fmt(b->arena, "{\"job_id\":\"%.*s\"}", GL_STR_ARG(j->id));
}

/* The request key names the submission that created the job, for as long as the job is kept: the
 * same submission sent again must find the job even after it has ended. Written once, never freed.
 */
static void write_request(const struct gl_job *j, struct builder *b)
{
    gl_str id = gl_str_dup(b->arena, j->r.request_key);
    struct gl_write *w;

    GL_ASSERT(j->rev == 1);
    if (id.n == 0) {
        return;
    }
    if (!GL_PLANT(71)) { /* planted: every submission makes a job */
        (void)add_guard(b, GL_GUARD_ABSENT, GL_S("request"), id);
    }
    w = add_write(b, GL_WRITE_PUT, GL_S("request"), id);
    w->rev = j->rev;
    w->value = gl_str_fmt(b->arena, "{\"job_id\":\"%.*s\"}", GL_STR_ARG(j->id));
}

/* A retry reads the earlier job until it has ended itself. For that time it is listed in an index
 * of the earlier job, which keeps retention from removing that job. */
static void write_retry(const struct gl_core *c, struct gl_job *j, struct builder *b, gl_str id,
                        bool is_new, bool ends)
{
    gl_str earlier = gl_str_dup(b->arena, j->r.retry_of);
    struct gl_write *w;

    GL_ASSERT(!is_new || j->rev == 1);
    if (earlier.n == 0) {
        return;
    }
    if (is_new) {
        (void)add_guard(b, GL_GUARD_PRESENT, GL_S("job"), earlier);
    }
    /* Another node may have read the index just before and be about to remove the earlier job. Its
     * transaction guards on this record, so one of the two is refused. */
    if (is_new && c->shared) {
        w = add_write(b, GL_WRITE_PUT, GL_S("retried"), earlier);
        w->rev = 1;
        w->owner = gl_str_dup(b->arena, c->session);
        w->token = c->last_op + 1; /* this transaction's number: unique */
        w->value = GL_S("{}");
    }
    if (is_new || ends) {
        (void)add_write(b, ends ? GL_WRITE_UNINDEX : GL_WRITE_INDEX,
                        gl_str_fmt(b->arena, "retry/%.*s", GL_STR_ARG(earlier)), id);
    }
}

/* The name of the wake index that lists the job: a matter of its stack and environment, not of the
 * node that owns it. */
static gl_str wake_index(const struct gl_core *c, const struct gl_job *j, struct gl_arena *a)
{
    if (gl_session_in_scope(c, j->r.stack, j->r.env_scope)) {
        return gl_str_dup(a, c->wake_index);
    }
    return gl_job_index(a, "wake", j->r.stack, j->r.env_scope);
}

/* Moves the job's entry in the index: its place says when the job must be looked at next. */
static void write_wake(const struct gl_core *c, struct gl_job *j, struct builder *b, gl_str id)
{
    int64_t wake = gl_sweep_wake_of(j);
    gl_str index;

    GL_ASSERT((wake == GL_WAKE_NONE) == gl_job_status_is_terminal(j->r.status));
    if (wake == j->r.wake) {
        return;
    }
    index = wake_index(c, j, b->arena);
    if (j->r.wake != GL_WAKE_NONE) {
        add_write(b, GL_WRITE_UNINDEX, index, id)->score = j->r.wake;
    }
    if (wake != GL_WAKE_NONE) {
        add_write(b, GL_WRITE_INDEX, index, id)->score = wake;
    } else {
        add_write(b, GL_WRITE_INDEX, GL_S("ended"), id)->score = j->r.ended_at;
    }
    j->r.wake = wake;
}

/* Appends the events of this step of the core to the job's history. */
static void write_log(struct gl_job *j, struct builder *b, gl_str id)
{
    struct gl_write *w;

    if (j->log.n == 0) {
        return;
    }
    GL_ASSERT(j->r.last_seq > 0);
    w = add_write(b, GL_WRITE_LOG, GL_S("events"), id);
    w->seq = j->r.last_seq;
    w->value = gl_str_dup(b->arena, gl_buf_view(&j->log));
    gl_buf_reset(&j->log);
}

/* Adds the guards that make this transaction ours to commit. One of three holds: the job does not
 * exist yet; it is ours, at the revision we know; or its owner is dead and this transaction takes
 * it over with a higher token. */
static void guard_owner(struct gl_core *c, struct gl_job *j, struct builder *b, gl_str id)
{
    struct gl_guard *g;

    GL_ASSERT(c->session.n > 0);
    GL_ASSERT(b->guards_n == 0);
    if (j->rev == 0) {
        /* A superseded session may not create jobs: its successor may have removed the flow. */
        add_guard(b, GL_GUARD_ALIVE, (gl_str){0}, (gl_str){0})->owner =
            gl_str_dup(b->arena, c->session);
        (void)add_guard(b, GL_GUARD_ABSENT, GL_S("job"), id);
        j->token = 1;
    } else if (gl_job_is_mine(c, j)) {
        if (GL_PLANT(1)) {
            return; /* planted: the guard dropped */
        }
        g = add_guard(b, GL_GUARD_OWNED, GL_S("job"), id);
        g->rev = j->rev;
        g->owner = gl_str_dup(b->arena, j->owner);
        g->token = j->token;
        if (j->outbid > 0) { /* the executor has seen a higher token, which the store has lost */
            GL_MARK(c->trace, "owner.token_raised");
            j->token = (j->outbid > j->token ? j->outbid : j->token) + 1;
            j->outbid = 0;
            j->token_in_flight = true;
        }
        return;
    } else {
        g = add_guard(b, GL_GUARD_OWNED, GL_S("job"), id);
        g->rev = j->rev;
        g->owner = gl_str_dup(b->arena, j->owner);
        g->token = j->token;
        if (j->owner.n > 0 && !GL_PLANT(23)) { /* no owner: it was given back */
            g = add_guard(b, GL_GUARD_DEAD, (gl_str){0}, (gl_str){0});
            g->owner = gl_str_dup(b->arena, j->owner);
        }
        gl_core_set(c, &j->r.pools_next, (gl_str){0});
        j->confirms = c->shared;
        j->token += GL_PLANT(2) ? 0 : 1;
        GL_MARK(c->trace, "owner.taken_over");
    }
    gl_core_set(c, &j->owner, c->session);
    j->token_in_flight = true;
    GL_TRACE(c->trace, OWNER, .job = j->id, .token = j->token, .what = "taken");
    GL_ASSERT(j->token > 0);
}

/* Adds a blob unless it is in the list already. */
static void add_blob(struct gl_map *seen, struct gl_arena *a, gl_str blob, gl_str *all, size_t *n)
{
    if (blob.n > 0 && gl_map_find(seen, blob) == NULL) {
        all[*n] = gl_str_dup(a, blob);
        gl_map_add(seen, all[*n], &all[*n]);
        (*n)++;
    }
}

/* The blobs that a flow names, each once. None if the store is not shared: then blobs are files of
 * the data folder and no records. */
static size_t list_blobs(const struct gl_core *c, const struct gl_flow *flow, struct gl_arena *a,
                         const gl_str **ret)
{
    const struct gl_payload *payloads = flow->bundle != NULL ? flow->bundle->payloads.items : NULL;
    size_t payloads_n = flow->bundle != NULL ? flow->bundle->payloads.n : 0;
    size_t n = flow->bundle != NULL ? payloads_n + 1 : 0;
    struct gl_map seen;
    gl_str *all;

    for (uint32_t i = 0; i < flow->steps.n; i++) {
        n += gl_flow_step(flow, i)->files.n;
    }
    if (n == 0 || !c->shared) {
        return 0;
    }
    *ret = all = GL_NEW_ARRAY(a, gl_str, n);
    n = 0;
    gl_map_init(&seen);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_items *files = &gl_flow_step(flow, i)->files;

        for (size_t f = 0; f < files->n; f++) {
            add_blob(&seen, a, ((const struct gl_flow_file *)files->items)[f].blob, all, &n);
        }
    }
    for (size_t i = 0; i < payloads_n; i++) {
        add_blob(&seen, a, payloads[i].blob, all, &n);
    }
    if (flow->bundle != NULL) {
        add_blob(&seen, a, flow->bundle->manifest, all, &n);
    }
    gl_map_done(&seen);
    return n;
}

/* Guards a new job against garbage collection: another node may be about to delete the flow that
 * the job names, or its blobs, because nothing named them so far (model/gc_state.h). */
static void guard_collectable(struct gl_core *c, const struct gl_job *j, struct builder *b,
                              const gl_str *blobs, size_t blobs_n)
{
    GL_ASSERT(j->rev == 0);
    if (!c->shared) {
        return;
    }
    GL_ASSERT(b->guards_n == GL_TXN_FLOW_GUARD);
    if (j->spec->is_stored) {
        add_guard(b, GL_GUARD_AT, GL_S("flow"), gl_str_dup(b->arena, j->spec->hash))->rev =
            GL_GC_WHOLE;
    }
    for (size_t i = 0; i < blobs_n; i++) {
        add_guard(b, GL_GUARD_AT, GL_S("blob"), blobs[i])->rev = GL_GC_WHOLE;
    }
}

/* On a shared store the record may exist but be condemned; writing it makes it whole again. */
static void write_flow(const struct gl_core *c, const struct gl_job *j, struct builder *b)
{
    struct gl_write *w = add_write(b, c->shared ? GL_WRITE_PUT : GL_WRITE_PUT_NEW, GL_S("flow"),
                                   gl_str_dup(b->arena, j->spec->hash));

    GL_ASSERT(!j->spec->is_stored);
    GL_ASSERT(j->spec->hash.n > 0);
    w->rev = GL_GC_WHOLE;
    w->value = gl_str_dup(b->arena, j->spec->text);
}

static size_t count_dirty(const struct gl_job *j)
{
    size_t n = 0;

    for (const struct gl_link *l = j->dirty.next; l != &j->dirty; l = l->next) {
        n++;
    }
    return n;
}

/* Builds the transaction. Guards first, in a fixed order (GL_TXN_FLOW_GUARD); the job's own record
 * is the last write, because the parts before it change its counters. */
static const struct gl_tx *build(struct gl_core *c, struct gl_job *j)
{
    struct builder b = {.arena = c->out->arena};
    struct gl_tx *tx = GL_NEW(b.arena, struct gl_tx);
    gl_str id = gl_str_dup(b.arena, j->id);
    bool is_new = j->rev == 0, ends = gl_job_status_is_terminal(j->r.status);
    bool frees_names = ends && (j->has_names || is_new); /* a job without steps ends at once */
    bool brings_flow = is_new && !j->spec->is_stored;
    const gl_str *blobs = NULL;
    size_t blobs_n = brings_flow ? list_blobs(c, j->spec->flow, b.arena, &blobs) : 0;
    struct gl_write *w;

    GL_ASSERT(j->memory == GL_MEM_HOT);
    b.writes_cap = count_dirty(j) * 2 + j->extra_n + 12;
    b.writes = GL_NEW_ARRAY(b.arena, struct gl_write, b.writes_cap);
    b.guards = GL_NEW_ARRAY(b.arena, struct gl_guard, 8 + j->demands_n + blobs_n);
    guard_owner(c, j, &b, id);
    if (is_new) {
        guard_collectable(c, j, &b, blobs, blobs_n);
    }
    for (size_t i = 0; i < j->demands_n; i++) {
        b.guards[b.guards_n++] = j->demands[i];
    }
    j->demands_n = 0;
    if (j->releases) {
        gl_core_set(c, &j->owner, (gl_str){0});
    }
    j->rev++;
    j->r.updated_at = c->now;
    write_wake(c, j, &b, id);
    write_log(j, &b, id);
    write_steps(c, j, &b);
    for (size_t i = 0; i < j->extra_n; i++) {
        *add_write(&b, j->extra[i].type, j->extra[i].kind, j->extra[i].id) = j->extra[i];
    }
    j->extra_n = 0;
    if (is_new) { /* first: a resubmission has the same names, and is refused for the key */
        write_request(j, &b);
    }
    if (!gl_str_eq(j->r.run_id, j->id)) {
        write_unique_name(j, &b, GL_S("run"), j->r.run_id, is_new, frees_names);
    }
    write_unique_name(j, &b, GL_S("dedupe"), j->r.dedupe_key, is_new, frees_names);
    write_retry(c, j, &b, id, is_new, ends);
    j->has_names = !ends;
    if (brings_flow) {
        write_flow(c, j, &b);
    }
    w = add_write(&b, GL_WRITE_PUT, GL_S("job"), id);
    w->rev = j->rev;
    w->owner = gl_str_dup(b.arena, j->owner);
    w->token = j->token;
    w->live = !ends;
    w->value = gl_txn_encode(b.arena, &gl_job_schema, &j->r);
    *tx = (struct gl_tx){.context = gl_str_dup(c->out->arena, c->context),
                         .session = gl_str_dup(b.arena, c->session),
                         .id = ++c->last_op,
                         .guards = b.guards,
                         .guards_n = b.guards_n,
                         .writes = b.writes,
                         .writes_n = b.writes_n,
                         .confirm = j->confirms && !GL_PLANT(29), /* planted: never */
                         .wake = j->releases ? GL_S("ready") : j->wakes};
    j->releases = j->confirms = false;
    j->wakes = (gl_str){0};
    return tx;
}

/* May this effect happen only after everything in flight has committed? A client must not learn of,
 * and nothing may start from, a state that could still be lost. Nor may the executor see a token
 * before it is committed: it would then refuse the token of the true owner. */
static bool needs_commit(const struct gl_job *j, const struct gl_effect *e)
{
    GL_ASSERT(e->type < GL_FX_COUNT);
    return j->token_in_flight || e->type == GL_FX_REPLY || e->type == GL_FX_START ||
           e->type == GL_FX_ACK || e->type == GL_FX_RESOLVE;
}

/* Emits the pending effects, to happen after transaction `op`, or at once if that is 0. */
static void move_effects(struct gl_core *c, struct gl_job *j, uint64_t op)
{
    GL_ASSERT(GL_IMPLIES(op != 0, op == j->last_op));
    for (size_t i = 0; i < j->pend.n; i++) {
        struct gl_effect *e;

        if (j->pend.items[i].type == GL_FX_REPLY && gl_inbox_has(j->pend.items[i].request)) {
            gl_inbox_on_reply(c, op, &j->pend.items[i]);
            continue;
        }
        e = gl_effect_add(c->out, j->pend.items[i].type, 0);
        *e = j->pend.items[i];
        /* Set only now: this transaction may have taken the job over with a new token. */
        e->token = j->token;
        e->after = (GL_PLANT(3) && e->type == GL_FX_START) || (GL_PLANT(9) && e->type == GL_FX_ACK)
                       ? 0
                       : op;
    }
    j->pend = (struct gl_effects){0};
}

/* The transaction leaves before the effects that wait for it; the node keeps that order. */
void gl_txn_flush(struct gl_core *c, struct gl_job *j)
{
    struct gl_effect *e;
    const struct gl_tx *tx;

    gl_list_remove(&j->touched);
    /* An effect that must wait for a transaction in flight makes an empty one of its own: it fails
     * if its predecessors do, and its effects are dropped with it. */
    for (size_t i = 0; i < j->pend.n && j->inflight_n > 0 && !j->changed; i++) {
        j->changed = needs_commit(j, &j->pend.items[i]);
    }
    if (!j->changed) {
        move_effects(c, j, 0);
        return;
    }
    GL_ASSERT(j->memory == GL_MEM_HOT);
    j->changed = false;
    tx = build(c, j);
    j->inflight_n++;
    c->inflight_n++;
    j->last_op = tx->id;
    e = gl_effect_add(c->out, GL_FX_COMMIT, 0);
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, j->id);
    e->op = tx->id;
    e->tx = tx;
    move_effects(c, j, tx->id);
    e = gl_effect_add(c->out, GL_FX_TELL, tx->id);
    e->context = gl_str_dup(c->out->arena, c->context);
    e->job = gl_str_dup(c->out->arena, j->id);
    e->ended = gl_job_status_is_terminal(j->r.status);
    GL_ASSERT(c->inflight_n >= j->inflight_n);
    GL_ASSERT(j->pend.n == 0);
}
