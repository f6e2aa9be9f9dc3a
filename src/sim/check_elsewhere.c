/* check_elsewhere.c - attempts on nodes other than the owner of their job: an attempt is taken
 * once, by the node its step names; what its record says is what its process did; the record goes
 * only together with the step's decision; and nothing of it is left at the end. While nothing is
 * wrong, no step waits for slots that are free on some machine. */
#include "model/offer.h"
#include "sim/sim_checks.h"

enum { PATIENCE_MS = 20000 }; /* a step may wait this long for slots that are free */

static bool decode(struct sim_checks *c, gl_str text, struct gl_taken_record *ret)
{
    struct gl_json json;
    return gl_json_parse(&json, text, GL_RECORD_BYTES_MAX, &c->arena, NULL) == 0 &&
           gl_schema_read(&gl_taken_schema, &json, gl_json_root(&json), false, &c->arena, ret,
                          NULL) == 0;
}

/* "<job>/<step>:attempt:<n>" */
static bool parse(struct sim_checks *c, gl_str id, struct sim_fact_job **ret_job,
                  struct sim_fact_step **ret_step, uint32_t *ret_number)
{
    gl_str attempt, number, job = gl_str_cut(id, '/', &attempt);
    gl_str step = gl_str_cut(attempt, ':', &number);
    uint64_t n = 0;
    number = number.n > 8 ? (gl_str){.p = number.p + 8, .n = number.n - 8} : (gl_str){0};
    *ret_job = sim_facts_job(&c->facts, job);
    *ret_step = *ret_job != NULL ? sim_facts_step(*ret_job, step) : NULL;
    if (*ret_step == NULL || !gl_str_u64(number, &n)) {
        sim_world_fail(c->world, "elsewhere: %.*s is no attempt", GL_STR_ARG(id));
        return false;
    }
    *ret_number = (uint32_t)n;
    return true;
}

static void check_taken(struct sim_checks *c, const struct sim_fact_job *j,
                        const struct sim_fact_step *st, uint32_t number,
                        const struct gl_taken_record *r)
{
    bool is_current = st->r.status == GL_STEP_RUNNING && st->r.attempt_count == number;
    if (!is_current) {
        sim_world_fail(c->world,
                       "elsewhere: attempt %u of step %.*s of job %.*s was %s, though the "
                       "step is %s at attempt %u",
                       number, GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id),
                       r->state == GL_TAKEN_WITHDRAWN ? "withdrawn" : "taken",
                       gl_step_status_words[st->r.status], st->r.attempt_count);
    }
}

static bool is_end(gl_str word, uint8_t end)
{
    static const char *const words[] = {
#define X(name, word) word,
        GL_EXEC_ENDS(X)
#undef X
    };
    return gl_str_is(word, words[end]);
}

static void check_result(struct sim_checks *c, const struct sim_fact_job *j,
                         const struct sim_fact_step *st, uint32_t number,
                         const struct gl_taken_record *r)
{
    const struct sim_process *p = st->last;
    bool has_run = p != NULL && p->number == number;
    if (r->state != GL_TAKEN_ENDED || r->is_final || gl_str_is(r->end, "not_executed")) {
        return;
    }
    if (!has_run || p->ended_at == 0 || !p->recorded || !is_end(r->end, (uint8_t)p->end) ||
        (p->end == GL_EXEC_EXITED && r->exit_code != p->exit_code)) {
        sim_world_fail(c->world,
                       "elsewhere: attempt %u of step %.*s of job %.*s has a result that "
                       "its process did not have",
                       number, GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id));
    }
}

static bool writes_step(const struct gl_tx *tx, gl_str job, gl_str step)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        gl_str rest, head = gl_str_cut(tx->writes[i].id, '/', &rest);
        if (tx->writes[i].type == GL_WRITE_PUT && gl_str_is(tx->writes[i].kind, "step") &&
            gl_str_eq(head, job) && gl_str_eq(rest, step)) {
            return true;
        }
    }
    return false;
}

static void on_any(struct sim_checks *c, void *me, const struct gl_tx *tx,
                   const struct gl_record *before, const struct gl_record *after)
{
    struct gl_taken_record was = {0}, now = {0};
    struct sim_fact_job *j;
    struct sim_fact_step *st;
    uint32_t number;
    gl_str rest, step;
    (void)me;
    if (!gl_str_is(before->kind, "taken") || !parse(c, before->id, &j, &st, &number) || j->torn ||
        sim_fact_was_spoilt(j)) {
        return;
    }
    if ((before->rev > 0 && !decode(c, before->value, &was)) ||
        (after->rev > 0 && !decode(c, after->value, &now))) {
        sim_world_fail(c->world, "elsewhere: the record of %.*s is unreadable",
                       GL_STR_ARG(before->id));
        return;
    }
    (void)gl_str_cut(before->id, '/', &rest);
    step = gl_str_cut(rest, ':', &rest);
    if (after->rev == 0) {
        if (!writes_step(tx, j->id, step)) {
            sim_world_fail(c->world, "elsewhere: the record of %.*s was deleted without its step",
                           GL_STR_ARG(before->id));
        }
    } else if (before->rev == 0) {
        check_taken(c, j, st, number, &now);
        check_result(c, j, st, number, &now);
    } else if (was.state == GL_TAKEN_WITHDRAWN || !gl_str_eq(was.node, now.node)) {
        sim_world_fail(c->world, "elsewhere: %.*s of %.*s was written by %.*s",
                       GL_STR_ARG(before->id), GL_STR_ARG(was.node), GL_STR_ARG(now.node));
    } else {
        check_result(c, j, st, number, &now);
    }
}

/* ---- nothing waits for what is free ---- */

static uint32_t free_slots(const struct sim_checks *c, size_t machine, gl_str pool)
{
    uint32_t have = sim_pools_slots(&c->pools[machine], pool), used = 0;
    const struct sim_attempt *at;
    for (size_t i = 0; (at = gl_map_next(&c->keepers[machine]->attempts, &i)) != NULL;) {
        const struct sim_process *p = at->process;
        used += p->ended_at == 0 && p->spec != NULL && gl_str_eq(p->spec->pool, pool)
                    ? p->spec->slots
                    : 0;
    }
    return used < have ? have - used : 0;
}

static bool waits(const struct sim_fact_job *j, const struct sim_fact_step *st)
{
    return st->known && st->r.status == GL_STEP_QUEUED && st->spec->limit_key.n == 0 &&
           st->spec->rate_key.n == 0 && j->r.status == GL_JOB_RUNNING &&
           j->r.verdict == GL_VERDICT_NONE && !j->torn && !sim_fact_was_spoilt(j);
}

/* A step may wait for one that needs more slots and comes first. */
static uint32_t most_slots(const struct sim_checks *c, gl_str pool)
{
    uint32_t most = 0;
    struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        struct sim_fact_pos pos = {0};
        const struct sim_fact_step *st;
        while (j->known && (st = sim_facts_next(j, &pos)) != NULL) {
            bool counts = st->known && st->r.status == GL_STEP_QUEUED &&
                          gl_str_eq(st->spec->pool, pool) && st->spec->slots > most;
            most = counts ? st->spec->slots : most;
        }
    }
    return most;
}

void sim_check_elsewhere_calm(struct sim_checks *c, const bool *has_node, size_t n)
{
    struct sim_fact_job *j;
    const gl_ms most = (gl_ms)c->world->cluster.ttl_ms + PATIENCE_MS;
    for (size_t i = 0; (j = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        struct sim_fact_pos pos = {0};
        struct sim_fact_step *st;
        while (j->known && (st = sim_facts_next(j, &pos)) != NULL) {
            bool fits = false;
            size_t at = 0;
            for (size_t m = 0; m < n && !fits && waits(j, st); m++) {
                fits = has_node[m] &&
                       free_slots(c, m, st->spec->pool) >= most_slots(c, st->spec->pool);
                at = m;
            }
            st->fits_since = !fits ? 0 : st->fits_since == 0 ? c->world->now : st->fits_since;
            if (fits && c->world->now - st->fits_since > most) {
                sim_world_fail(c->world,
                               "elsewhere: step %.*s of job %.*s has waited for %lld ms "
                               "for slots that are free on %s",
                               GL_STR_ARG(st->spec->id), GL_STR_ARG(j->id),
                               (long long)(c->world->now - st->fits_since), c->keepers[at]->node);
            }
        }
    }
}

/* ---- the end ---- */

static void check_index(struct sim_checks *c, const char *name, const char *node)
{
    struct gl_range all = {.index = gl_str_fmt(&c->arena, "%s/%s", name, node),
                           .score_min = INT64_MIN,
                           .score_max = INT64_MAX,
                           .limit = 1};
    size_t n = 0;
    const struct gl_index_entry *e = sim_disk_range(c->disk, SIM_CONTEXT, &all, &c->arena, &n);
    if (n > 0) {
        sim_world_fail(c->world, "elsewhere: %.*s is still in the index %s/%s", GL_STR_ARG(e[0].id),
                       name, node);
    }
}

static void at_end(struct sim_checks *c, void *me)
{
    const struct sim_sorted *left = sim_disk_kind(c->disk, SIM_CONTEXT, GL_S("taken"));
    (void)me;
    if (c->disk->undone_n > 0 || !c->disk->shared) {
        return; /* what a failover brings back is removed by its node, if that ever returns */
    }
    if (left != NULL && left->n > 0) {
        const struct sim_disk_record *r = (const void *)left->rows[0];
        sim_world_fail(c->world, "elsewhere: the record of %.*s is left over",
                       GL_STR_ARG(r->row.id));
    }
    for (size_t i = 0; i < c->keepers_n; i++) {
        check_index(c, "offers", c->keepers[i]->node);
        check_index(c, "taken", c->keepers[i]->node);
        check_index(c, "results", c->keepers[i]->node);
    }
}

const struct sim_check sim_check_elsewhere = {
    .name = "elsewhere", .on_any = on_any, .at_end = at_end};
