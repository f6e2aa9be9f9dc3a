/* signals.c - kept signals: a list in job->signals, in the order of arrival, and a record for each.
 */
#include "core/flow/signals.h"

#include "base/check.h"
#include "base/suggest.h"
#include "core/flow/ledger.h"
#include "core/flow/txn.h"
#include "core/snapshot.h"

enum { SIGNALS_LISTED_MAX = 5 };

struct signal {
    struct gl_link link; /* in job->signals */
    gl_str id;           /* of its record, "job/number" */
    gl_str name, data;
};

/* In memory only; the caller writes or has read the record. */
static struct signal *signal_new(struct gl_core *c, struct gl_job *j, gl_str id, gl_str name,
                                 gl_str data)
{
    struct signal *s = gl_pool_alloc(&c->mem, sizeof(*s));

    *s = (struct signal){0};
    gl_core_set(c, &s->id, id);
    gl_core_set(c, &s->name, name);
    gl_core_set(c, &s->data, data);
    gl_list_push(&j->signals, &s->link);
    j->signals_n++;
    return s;
}

static void signal_free(struct gl_core *c, struct gl_job *j, struct signal *s)
{
    GL_ASSERT(j->signals_n > 0);
    gl_core_set(c, &s->id, (gl_str){0});
    gl_core_set(c, &s->name, (gl_str){0});
    gl_core_set(c, &s->data, (gl_str){0});
    gl_list_remove(&s->link);
    gl_pool_free(&c->mem, s, sizeof(*s));
    j->signals_n--;
}

void gl_signals_clear(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l; (l = gl_list_first(&j->signals)) != NULL;) {
        signal_free(c, j, GL_CONTAINER(l, struct signal, link));
    }
    GL_ASSERT(j->signals_n == 0);
}

bool gl_signals_take(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;

    GL_ASSERT(st->r.status == GL_STEP_READY);
    GL_ASSERT(gl_step_spec_of(st)->signal.n > 0);
    for (struct gl_link *l = j->signals.next; l != &j->signals; l = l->next) {
        struct signal *s = GL_CONTAINER(l, struct signal, link);

        if (gl_str_eq(s->name, gl_step_spec_of(st)->signal)) {
            GL_MARK(c->trace, "signals.was_there_before");
            if (!GL_PLANT(22)) { /* planted: the record stays */
                (void)gl_txn_write(c, j, GL_WRITE_DELETE, GL_S("signal"), s->id);
            }
            gl_ledger_succeed(c, st, s->data);
            signal_free(c, j, s);
            return true;
        }
    }
    return false;
}

/* The first step, in the order in which steps came into memory, that waits for the signal. */
static struct gl_step *find_waiting(struct gl_job *j, gl_str name)
{
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_SIGNAL &&
            gl_str_eq(gl_step_spec_of(st)->signal, name)) {
            return st;
        }
    }
    return NULL;
}

/* No step waits yet: keeps the signal, in memory and as a record. */
static void store_signal(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    gl_str id =
        gl_str_fmt(c->out->arena, "%.*s/%010lld", GL_STR_ARG(j->id), (long long)j->r.signals_n);
    struct gl_buf value = {0};
    struct gl_jw w;

    GL_ASSERT(j->signals_n < GL_SIGNALS_MAX);
    gl_jw_init(&w, &value);
    gl_jw_object(&w);
    gl_jw_key(&w, "name");
    gl_jw_str(&w, ev->command.step);
    gl_jw_key(&w, "data");
    gl_jw_raw(&w, ev->command.output.n > 0 ? ev->command.output : GL_S("null"));
    gl_jw_end(&w);
    gl_txn_write(c, j, GL_WRITE_PUT, GL_S("signal"), id)->value =
        gl_str_dup(c->out->arena, gl_buf_view(&value));
    gl_buf_done(&value);
    (void)signal_new(c, j, id, ev->command.step, ev->command.output);
}

/* Does any step wait for a signal of this name? A misspelled one would never be consumed. */
static bool is_known(const struct gl_flow *flow, gl_str name, struct gl_suggest *near)
{
    gl_suggest_init(near, name);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        gl_str signal = gl_flow_step(flow, i)->signal;

        if (signal.n > 0 && gl_str_eq(signal, name)) {
            return true;
        }
        if (signal.n > 0) {
            gl_suggest_offer(near, signal);
        }
    }
    return false;
}

/* "; its signals: go, stop", the first few; "" if it has none. */
static gl_str list_signals(struct gl_core *c, const struct gl_flow *flow)
{
    gl_str names[SIGNALS_LISTED_MAX] = {0}, list = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < flow->steps.n && n < SIGNALS_LISTED_MAX; i++) {
        gl_str signal = gl_flow_step(flow, i)->signal;
        bool is_new = signal.n > 0;

        for (uint32_t k = 0; k < n; k++) {
            is_new = is_new && !gl_str_eq(names[k], signal);
        }
        if (is_new) {
            names[n++] = signal;
            list = gl_str_fmt(c->out->arena, "%.*s%s%.*s", GL_STR_ARG(list),
                              list.n > 0 ? ", " : "; its signals: ", GL_STR_ARG(signal));
        }
    }
    return list;
}

static void refuse_unknown(struct gl_core *c, struct gl_job *j, const struct gl_event *ev,
                           const struct gl_suggest *near)
{
    GL_ASSERT(ev->command.verb == GL_CMD_SIGNAL);
    if (near->best.n > 0) {
        gl_txn_reply(c, j, ev->command.request, GL_R_SIGNAL_UNWANTED,
                     "no step of job %.*s has `signal: %.*s`; did you mean '%.*s'?",
                     GL_STR_ARG(j->id), GL_STR_ARG(ev->command.step), GL_STR_ARG(near->best));
    } else {
        gl_txn_reply(c, j, ev->command.request, GL_R_SIGNAL_UNWANTED,
                     "no step of job %.*s has `signal: %.*s`%.*s", GL_STR_ARG(j->id),
                     GL_STR_ARG(ev->command.step), GL_STR_ARG(list_signals(c, j->spec->flow)));
    }
}

void gl_signals_on_command(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    struct gl_step *st = find_waiting(j, ev->command.step);
    gl_str who = ev->command.who.n > 0 ? ev->command.who : GL_S("someone");
    struct gl_suggest near;

    GL_ASSERT(ev->type == GL_EV_COMMAND);
    GL_ASSERT(ev->command.verb == GL_CMD_SIGNAL);
    if (j->r.verdict != GL_VERDICT_NONE) {
        gl_txn_reply(c, j, ev->command.request, GL_R_JOB_ENDING, "job %.*s is already ending",
                     GL_STR_ARG(j->id));
        return;
    }
    if (st == NULL && !is_known(j->spec->flow, ev->command.step, &near)) {
        refuse_unknown(c, j, ev, &near);
        return;
    }
    if (st == NULL && j->signals_n >= GL_SIGNALS_MAX) {
        gl_txn_reply(c, j, ev->command.request, GL_R_SIGNALS_WAITING,
                     "job %.*s already holds %d signals that no step has received yet",
                     GL_STR_ARG(j->id), GL_SIGNALS_MAX);
        return;
    }
    j->r.signals_n++; /* numbers the records; never goes back */
    gl_txn_log(c, j, st, "signal_received",
               gl_str_fmt(c->out->arena, "sent by %.*s", GL_STR_ARG(who)),
               gl_str_fmt(c->out->arena, "\"signal\":\"%.*s\"", GL_STR_ARG(ev->command.step)));
    if (st != NULL) {
        gl_ledger_succeed(c, st, ev->command.output);
    } else {
        store_signal(c, j, ev);
    }
    gl_txn_reply(c, j, ev->command.request, 0, NULL);
}

int gl_signals_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec)
{
    struct gl_json json;
    gl_jnode name, data;
    int rc = gl_json_parse(&json, rec->value, GL_RECORD_BYTES_MAX, c->out->arena, NULL);

    GL_ASSERT(j->memory == GL_MEM_LOADING);
    if (rc != 0) {
        return rc;
    }
    name = gl_json_get(&json, gl_json_root(&json), "name");
    data = gl_json_get(&json, gl_json_root(&json), "data");
    if (!gl_json_is(name, GL_JSON_STRING) || data == NULL) {
        return GL_E_DAMAGED;
    }
    if (GL_PLANT(13)) { /* planted: kept signals are lost when their job is loaded */
        return 0;
    }
    GL_MARK(c->trace, "signals.kept_over_a_load");
    (void)signal_new(c, j, rec->id, gl_json_str(&json, name, c->out->arena),
                     gl_json_raw(&json, data));
    return 0;
}

/* ---- snapshots ---- */

struct saved_signal {
    gl_str id, name, data;
};

static const struct gl_field signal_fields[] = {
    GL_FIELD(saved_signal, id, STR, GL_FF_REQUIRED, ""),
    GL_FIELD(saved_signal, name, STR, 0, ""),
    GL_FIELD(saved_signal, data, RAW, 0, ""),
};

GL_SNAPSHOT_SCHEMA(signal);

void gl_signals_save(const struct gl_job *j, struct gl_buf *out)
{
    GL_ASSERT(GL_IMPLIES(j->signals_n == 0, gl_list_empty(&j->signals)));
    for (const struct gl_link *l = j->signals.next; l != &j->signals; l = l->next) {
        const struct signal *s = GL_CONTAINER(l, struct signal, link);
        struct saved_signal saved = {.id = s->id, .name = s->name, .data = s->data};

        gl_snapshot_put(out, "signal", &signal_schema, &saved);
    }
}

int gl_signals_restore_kept(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_signal s;
    int rc = gl_snapshot_get(l, &signal_schema, &s);

    if (rc == 0 && (l->job == NULL || l->job->memory != GL_MEM_HOT || s.id.n == 0)) {
        rc = gl_snapshot_bad(l, "a signal belongs to no job");
    }
    if (rc == 0) {
        (void)signal_new(c, l->job, s.id, s.name, s.data);
    }
    return rc;
}
