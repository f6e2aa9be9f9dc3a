/* check_signals.c - a signal is neither lost nor used twice: an acknowledged signal has ended
 * exactly one step that waited for its name, or is kept until one does, the oldest first.
 *
 * Every signal of the simulated client has a unique number in its data, which identifies it in
 * records and outputs. */
#include "base/mem.h"
#include "sim/sim_checks.h"

enum fate { SENT, KEPT, USED };

struct sent {
    const struct sim_fact_job *job;
    gl_str name; /* in the job's arena */
    enum fate fate;
    bool is_new;     /* used by this transaction */
    bool is_refused; /* a client was told that nothing was done, and never will be */
    bool is_due;     /* used, and its record must be deleted in this transaction */
};

struct signals_state {
    struct sent *all; /* by number */
    uint64_t n, cap;
};

static struct sent *find(struct sim_checks *c, struct signals_state *s, gl_str data)
{
    struct gl_json j;
    uint64_t n;
    if (gl_json_parse(&j, data, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0 ||
        !gl_json_u64(&j, gl_json_get(&j, gl_json_root(&j), "n"), &n) || n >= s->n ||
        s->all[n].job == NULL) {
        return NULL;
    }
    return &s->all[n];
}

static void on_ask(struct sim_checks *c, void *me, const struct gl_request *rq,
                   struct sim_fact_job *j)
{
    struct signals_state *s = me;
    struct gl_json json;
    uint64_t n = 0;
    if (rq->verb != GL_VERB_SIGNAL ||
        gl_json_parse(&json, rq->command.value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0 ||
        !gl_json_u64(&json, gl_json_get(&json, gl_json_root(&json), "n"), &n)) {
        return;
    }
    while (s->n <= n) {
        if (s->n == s->cap) {
            s->cap = s->cap * 2 + 64;
            s->all = gl_mem_realloc(s->all, s->cap * sizeof(*s->all));
        }
        s->all[s->n++] = (struct sent){0};
    }
    s->all[n] = (struct sent){.job = j, .name = gl_str_dup(&j->arena, rq->command.about)};
}

/* A step that waits already gets it first; the numbers of signals say nothing about their order. */
static bool is_any_kept(const struct signals_state *s, const struct sim_fact_job *j, gl_str name)
{
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->all[i].job == j && s->all[i].fate == KEPT && gl_str_eq(s->all[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void use(struct sim_checks *c, struct signals_state *s, const struct sim_change *ch)
{
    struct sent *e = find(c, s, ch->step_now->output);
    const char *wrong = NULL;
    if (e == NULL || e->job != ch->job || !gl_str_eq(e->name, ch->step->spec->signal)) {
        wrong = "that no client has sent";
    } else if (e->fate == USED) {
        wrong = "that has been used before";
    } else if (e->is_refused) {
        wrong = "that was refused";
    } else if (e->fate == SENT && is_any_kept(s, e->job, e->name)) {
        wrong = "although another one was kept";
    } else {
        e->is_due = e->fate == KEPT;
        e->is_new = true;
        e->fate = USED;
    }
    if (wrong != NULL) {
        sim_world_fail(c->world, "signals: step %.*s of job %.*s was ended by a signal %s",
                       GL_STR_ARG(ch->step->spec->id), GL_STR_ARG(ch->job->id), wrong);
    }
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct signals_state *s = me;
    struct gl_json j;
    if (!gl_str_is(before->kind, "signal")) {
        return;
    }
    bool put = after->rev != 0;
    bool ok = gl_json_parse(&j, put ? after->value : before->value, GL_RECORD_BYTES_MAX, &c->arena,
                            NULL) == 0;
    gl_jnode data = ok ? gl_json_get(&j, gl_json_root(&j), "data") : NULL;
    struct sent *e = data != NULL ? find(c, s, gl_json_raw(&j, data)) : NULL;
    if (e == NULL || e->job != ch->job) {
        sim_world_fail(c->world, "signals: job %.*s keeps a signal that no client has sent",
                       GL_STR_ARG(ch->job->id));
    } else if (put && e->is_refused && e->fate == SENT) {
        sim_world_fail(c->world, "signals: one for job %.*s was refused and is kept",
                       GL_STR_ARG(ch->job->id));
    } else if (put && e->fate == SENT) {
        e->fate = KEPT;
    } else if (put && e->is_new && !e->is_due) {
        e->is_due = true; /* it arrived and was used in one transaction */
    } else if (!put && e->is_due) {
        e->is_due = false;
    } else {
        sim_world_fail(c->world, "signals: one of job %.*s was %s", GL_STR_ARG(ch->job->id),
                       put ? "kept twice" : "thrown away");
    }
}

static void judge(struct sim_checks *c, struct signals_state *s, const struct sim_change *ch)
{
    int64_t received = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->all[i].job != ch->job) {
            continue;
        }
        received += s->all[i].fate != SENT;
        s->all[i].is_new = false;
        if (s->all[i].is_due) {
            sim_world_fail(c->world, "signals: one of job %.*s was used and is still kept",
                           GL_STR_ARG(ch->job->id));
        }
    }
    if (received != ch->job_now->signals_n) {
        sim_world_fail(c->world, "signals: job %.*s counts %lld and has received %lld",
                       GL_STR_ARG(ch->job->id), (long long)ch->job_now->signals_n,
                       (long long)received);
    }
    for (uint32_t i = 0; received > 0 && i < ch->job->flow->steps.n; i++) {
        const struct sim_fact_step *st = &ch->job->steps[i];
        if (st->known && st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_SIGNAL &&
            is_any_kept(s, ch->job, st->spec->signal)) {
            sim_world_fail(c->world,
                           "signals: step %.*s of job %.*s waits for a signal that is kept",
                           GL_STR_ARG(st->spec->id), GL_STR_ARG(ch->job->id));
        }
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    const struct sim_fact_step *st = ch->step;
    if (st == NULL) {
        judge(c, me, ch);
        return;
    }
    const struct gl_step_record *now = ch->step_now;
    bool ends =
        gl_step_status_is_terminal(now->status) && !gl_step_status_is_terminal(st->r.status);
    if (st->spec->signal.n == 0 || !ends || (now->gate & GL_GATE_REUSED) != 0) {
        return;
    }
    if (now->status == GL_STEP_COMPLETED) {
        use(c, me, ch);
    } else if (now->terminal_outcome == GL_OUTCOME_FAILED && (now->gate & GL_GATE_OPEN) != 0 &&
               (st->r.due_at == 0 || now->ended_at < st->r.due_at)) {
        sim_world_fail(c->world, "signals: step %.*s of job %.*s gave up before its time was over",
                       GL_STR_ARG(now->step_id), GL_STR_ARG(ch->job->id));
    }
}

static void on_answer(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j)
{
    struct sent *e = rq->verb == GL_VERB_SIGNAL ? find(c, me, rq->command.value) : NULL;
    if (e != NULL && e->fate == SENT) {
        sim_world_fail(c->world, "signals: one for job %.*s was acknowledged and is lost",
                       GL_STR_ARG(j->id));
    }
}

static void on_refused(struct sim_checks *c, void *me, const struct gl_request *rq,
                       struct sim_fact_job *j)
{
    struct sent *e = rq->verb == GL_VERB_SIGNAL ? find(c, me, rq->command.value) : NULL;
    bool is_sure = rq->code != GL_E_UNAVAILABLE && rq->code != GL_E_UNKNOWN;
    bool is_withdrawn = rq->why.reason == GL_REASON_COMMAND_WITHDRAWN;
    if (e != NULL && is_withdrawn) {
        e->is_refused = true;
    }
    if (e != NULL && e->fate != SENT && (is_sure || is_withdrawn)) {
        sim_world_fail(c->world, "signals: one for job %.*s was refused and used anyway: %s",
                       GL_STR_ARG(j->id), rq->why.text);
    }
}

static void done(void *me)
{
    gl_mem_free(((struct signals_state *)me)->all);
}

const struct sim_check sim_check_signals = {.name = "signals",
                                            .state_bytes = sizeof(struct signals_state),
                                            .on_change = on_change,
                                            .on_record = on_record,
                                            .on_ask = on_ask,
                                            .on_answer = on_answer,
                                            .on_refused = on_refused,
                                            .done = done};
