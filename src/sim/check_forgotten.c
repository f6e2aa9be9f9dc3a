/* check_forgotten.c - no job is forgotten: while it is live it has an entry in the index "wake". At
 * the end it is terminal, its steps are idle or ended, and the keeper holds nothing of it any more.
 */
#include "sim/sim_checks.h"

static bool writes_index(const struct gl_tx *tx, enum gl_write_type type, int64_t score, gl_str id)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];
        bool wake = gl_str_is(w->kind, "wake") || gl_str_starts(w->kind, GL_S("wake/"));
        if (w->type == type && wake && w->score == score && gl_str_eq(w->id, id)) {
            return true;
        }
    }
    return false;
}

/* The score of a job's index entry is the one in its record, at every commit. */
static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    (void)me;
    const struct sim_fact_job *j = ch->job;
    if (ch->step != NULL) {
        return;
    }
    int64_t was = j->known ? j->r.wake : GL_WAKE_NONE;
    int64_t now = ch->job_now->wake;
    if ((now == GL_WAKE_NONE) != gl_job_status_is_terminal(ch->job_now->status)) {
        sim_world_fail(c->world, "forgotten: job %.*s is %s and wakes at %lld", GL_STR_ARG(j->id),
                       gl_job_status_words[ch->job_now->status], (long long)now);
    }
    if (was == now) {
        return;
    }
    bool put = now == GL_WAKE_NONE || writes_index(ch->tx, GL_WRITE_INDEX, now, j->id);
    bool taken = was == GL_WAKE_NONE || writes_index(ch->tx, GL_WRITE_UNINDEX, was, j->id);
    if (!put || !taken) {
        sim_world_fail(c->world,
                       "forgotten: job %.*s moved from %lld to %lld, its index entry did not",
                       GL_STR_ARG(j->id), (long long)was, (long long)now);
    }
}

static void check_job(struct sim_checks *c, struct sim_fact_job *j)
{
    struct sim_fact_pos pos = {0};
    if (!gl_job_status_is_terminal(j->r.status)) {
        const struct sim_fact_step *st;
        while ((st = sim_facts_next(j, &pos)) != NULL &&
               (!st->known || gl_step_status_is_terminal(st->r.status))) {
        }
        sim_world_fail(c->world,
                       "forgotten: job %.*s is still %s, its step %.*s %s (%s); it is %.*s's and "
                       "wakes at %lld",
                       GL_STR_ARG(j->id), gl_job_status_words[j->r.status],
                       GL_STR_ARG(st != NULL ? st->spec->id : GL_S("?")),
                       st != NULL ? gl_step_status_words[st->r.status] : "-",
                       st != NULL ? gl_block_words[st->r.blocked_on] : "-",
                       GL_STR_ARG(j->owner.n > 0 ? gl_buf_view(&j->owner) : GL_S("nobody")),
                       (long long)j->r.wake);
    }
    if (sim_fact_was_spoilt(j)) {
        return; /* it may have ended while some of its records could not be read: its steps stay as
                   they were */
    }
    pos = (struct sim_fact_pos){0};
    for (const struct sim_fact_step *st; (st = sim_facts_next(j, &pos)) != NULL;) {
        /* An agent's unit becomes idle; it never ends. */
        bool rests = gl_str_starts(st->spec->id, GL_S("@")) &&
                     (st->r.status == GL_STEP_WAITING || st->r.status == GL_STEP_PENDING);
        if (st->known && !gl_step_status_is_terminal(st->r.status) && !rests) {
            sim_world_fail(c->world, "forgotten: job %.*s is %s, its step %.*s%s is %s",
                           GL_STR_ARG(j->id), gl_job_status_words[j->r.status],
                           GL_STR_ARG(st->spec->id), st->group != NULL ? "[]" : "",
                           gl_step_status_words[st->r.status]);
        }
    }
}

static void at_end(struct sim_checks *c, void *me)
{
    (void)me;
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        if (j->known) {
            check_job(c, j);
        }
    }
    struct gl_range all = {
        .index = GL_S("wake"), .score_min = INT64_MIN, .score_max = INT64_MAX, .limit = 4};
    size_t n = 0;
    const struct gl_index_entry *e = sim_disk_range(c->disk, SIM_CONTEXT, &all, &c->arena, &n);
    if (n > 0) {
        sim_world_fail(c->world, "forgotten: job %.*s has ended and is still in the index",
                       GL_STR_ARG(e[0].id));
    }
    for (size_t k = 0; k < c->keepers_n; k++) {
        size_t i = 0;
        const struct sim_attempt *at = gl_map_next(&c->keepers[k]->attempts, &i);
        if (at != NULL && !c->keepers[k]->is_left) {
            sim_world_fail(c->world, "forgotten: the keeper still has %.*s", GL_STR_ARG(at->key));
        }
    }
}

const struct sim_check sim_check_forgotten = {
    .name = "forgotten", .sees_torn = true, .on_change = on_change, .at_end = at_end};
