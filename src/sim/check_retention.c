/* check_retention.c - retention removes nothing that a live job still needs, and nothing on behalf
 * of a dead session. check_promises.c checks that no flow is removed that a job names. This file
 * checks the files of flows, jobs that are being retried, and, on a shared store, that everything
 * was condemned by the same session before it is removed. */
#include "base/sha256.h"
#include "model/gc_state.h"
#include "sim/sim_checks.h"

enum { HEX = GL_SHA256_HEX - 1 };

static bool is_shared_content(const struct gl_record *r)
{
    return gl_str_is(r->kind, "flow") || (gl_str_is(r->kind, "blob") && r->id.n == HEX);
}

static void check_condemned(struct sim_checks *c, const struct gl_tx *tx,
                            const struct gl_record *before)
{
    if (before->rev != GL_GC_CONDEMNED || !gl_str_eq(before->owner, tx->session)) {
        sim_world_fail(c->world,
                       "retention: %.*s %.*s was removed by %.*s, which had not condemned it",
                       GL_STR_ARG(before->kind), GL_STR_ARG(before->id), GL_STR_ARG(tx->session));
    }
}

static void check_unnamed(struct sim_checks *c, const struct gl_record *blob)
{
    const struct sim_sorted *flows = sim_disk_kind(c->disk, SIM_CONTEXT, GL_S("flow"));
    for (size_t i = 0; i < flows->n; i++) {
        const struct sim_disk_record *flow = (const void *)flows->rows[i];
        if (memmem(flow->value.p, flow->value.n, blob->id.p, blob->id.n) != NULL) {
            sim_world_fail(c->world, "retention: a file was removed that flow %.*s names",
                           GL_STR_ARG(flow->row.id));
        }
    }
}

/* The session that removes it must be alive when the transaction is applied: another node may have
 * taken over what it relied on. */
static void on_any(struct sim_checks *c, void *me, const struct gl_tx *tx,
                   const struct gl_record *before, const struct gl_record *after)
{
    bool is_removal = after->rev == 0 && before->rev != 0 &&
                      (is_shared_content(before) || gl_str_is(before->kind, "job") ||
                       gl_str_is(before->kind, "rate"));
    const struct sim_disk_session *s =
        is_removal ? sim_disk_session_find(c->disk, tx->session) : NULL;
    (void)me;
    if (!is_removal) {
        return;
    }
    if (s == NULL || s->dead) {
        sim_world_fail(c->world, "retention: %.*s %.*s was removed by %.*s, which is dead",
                       GL_STR_ARG(before->kind), GL_STR_ARG(before->id), GL_STR_ARG(tx->session));
    }
    if (c->disk->shared && is_shared_content(before)) {
        check_condemned(c, tx, before);
    }
    if (gl_str_is(before->kind, "blob") && is_shared_content(before)) {
        check_unnamed(c, before);
    }
}

/* Its outputs are still to be read. */
static void on_removed(struct sim_checks *c, void *me, struct sim_fact_job *j)
{
    const struct sim_fact_job *other;
    (void)me;
    for (size_t i = 0; (other = gl_map_next(&c->facts.jobs, &i)) != NULL;) {
        if (other->known && !other->removed && !gl_job_status_is_terminal(other->r.status) &&
            gl_str_eq(other->retry_of, j->id)) {
            sim_world_fail(c->world, "retention: job %.*s was removed, which job %.*s retries",
                           GL_STR_ARG(j->id), GL_STR_ARG(other->id));
        }
    }
}

const struct sim_check sim_check_retention = {
    .name = "retention", .on_any = on_any, .on_removed = on_removed};
