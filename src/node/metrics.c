/* metrics.c - what the node reports about itself: /v1/node, /readyz and Prometheus metrics.
 *
 * Parts write their own metrics through `measure` (node/part.h), with the functions here. */
#include "base/check.h"
#include "node/node_state.h"

#include "model/job.h"

enum { STORE_SILENT_MS = 15000, SHARED_SILENT_MS = 2000 /* on top of the renewal interval */ };

/* ---- ready? ---- */

gl_str gl_metrics_store_read_only(const struct gl_node *n, struct gl_arena *a)
{
    char text[GL_TIMES_BYTES];
    gl_ms since;
    gl_str why;

    if (gl_sessions_store_health(n) != GL_STORE_READ_ONLY ||
        !gl_core_is_shut(n->core, &since, &why)) {
        return (gl_str){0};
    }
    return gl_str_fmt(a, "the store has accepted no commits since %.*s: %.*s",
                      GL_STR_ARG(gl_times_format(since, text)), GL_STR_ARG(why));
}

/* Why the node is not ready; NULL: it is. */
static const char *not_ready(const struct gl_node *n, struct gl_arena *a, int *ret_reason)
{
    char since[GL_TIMES_BYTES];

    if (n->stopping) {
        *ret_reason = GL_R_NODE_STOPPING;
        return "this node is stopping";
    }
    if (n->lost) {
        *ret_reason = GL_R_NODE_LOST;
        return "this node has lost its session";
    }
    if (!n->ready) {
        *ret_reason = GL_R_NODE_STARTING;
        return "this node is starting";
    }
    if (!n->exec_up) {
        *ret_reason = GL_R_EXECUTOR_DOWN;
        return "the executor is unreachable; no steps start";
    }
    if (gl_sessions_store_health(n) == GL_STORE_READ_ONLY) {
        *ret_reason = GL_R_STORE_READ_ONLY;
        return gl_metrics_store_read_only(n, a).p;
    }
    if (n->now - gl_sessions_renewed_at(n) > (n->ports.store->ops->shared
                                                  ? gl_sessions_ttl(n) / 3 + SHARED_SILENT_MS
                                                  : STORE_SILENT_MS)) {
        *ret_reason = GL_R_STORE_SILENT;
        return gl_str_fmt(a, "the store has accepted no writes since %.*s",
                          GL_STR_ARG(gl_times_format(gl_sessions_renewed_at(n), since)))
            .p;
    }
    return NULL;
}

/* Slots of one pool that attempts of other nodes' jobs use. */
struct taken_slots {
    gl_str pool;
    uint64_t n;
};

static void add_taken(void *arg, gl_str pool, gl_str owner, uint32_t slots)
{
    struct taken_slots *t = arg;

    (void)owner;
    t->n += gl_str_eq(pool, t->pool) ? slots : 0;
}

static void write_pools(const struct gl_node *n, const struct gl_core_metrics *f, struct gl_jw *w)
{
    GL_ASSERT(f->pools_n <= GL_POOLS_MAX);
    gl_jw_put_object(w, "pools");
    for (size_t i = 0; i < f->pools_n; i++) {
        struct taken_slots taken = {.pool = f->pools[i].name};

        gl_core_taken(n->core, add_taken, &taken);
        gl_jw_key_str(w, f->pools[i].name);
        gl_jw_object(w);
        gl_jw_put_u64(w, "slots", f->pools[i].slots);
        gl_jw_put_u64(w, "in_use", f->pools[i].in_use);
        if (taken.n > 0) {
            gl_jw_put_u64(w, "taken", taken.n);
        }
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_machine(const struct gl_node *n, struct gl_jw *w)
{
    struct gl_capacity capacity;

    if (n->config.capacity != NULL) {
        capacity = n->config.capacity(n->config.owner);
        gl_jw_key(w, "capacity");
        gl_capacity_write(&capacity, w);
    }
    gl_jw_key(w, "labels");
    gl_labels_write(&n->config.labels, w);
}

static void write_claims(const struct gl_claim_counts *c, struct gl_jw *w)
{
    gl_jw_put_object(w, "claims");
    gl_jw_put_u64(w, "acquired", c->acquired);
    gl_jw_put_u64(w, "steals", c->steals);
    gl_jw_put_u64(w, "busy", c->busy);
    gl_jw_put_u64(w, "renewed", c->renewed);
    gl_jw_put_u64(w, "renew_failed", c->renew_failed);
    gl_jw_put_u64(w, "completed", c->completed);
    gl_jw_put_u64(w, "failed", c->failed);
    gl_jw_put_u64(w, "expired", c->expired);
    gl_jw_end(w);
}

void gl_metrics_write_node(struct gl_node *n, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    int code = 0;
    const char *reason = not_ready(n, &a, &code);
    struct gl_core_metrics f;
    uint64_t removed;
    char now[GL_TIMES_BYTES];
    struct gl_jw w;

    gl_core_metrics(n->core, &f);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "now", gl_times_format(n->ports.clock->now(n->ports.clock), now));
    gl_jw_put_str(&w, "name", n->config.name);
    gl_jw_put_str(&w, "session", n->session);
    gl_jw_put_str(&w, "store", n->config.store);
    gl_jw_put_bool(&w, "ready", reason == NULL);
    if (reason != NULL) {
        gl_jw_put_c(&w, "reason", reason);
        gl_jw_put_c(&w, "reason_code", gl_reason_word(gl_err_reason(code)));
    }
    if (n->config.warning.n > 0) {
        gl_jw_put_str(&w, "warning", n->config.warning);
    }
    if (n->config.worker.runs_root.n > 0) {
        gl_jw_put_str(&w, "runs_root", n->config.worker.runs_root);
    }
    gl_jw_put_bool(&w, "idle", gl_core_idle(n->core));
    gl_jw_put_bool(&w, "watchers", gl_requests_have_watchers(n));
    gl_jw_put_u64(&w, "jobs_hot", f.jobs_hot);
    gl_jw_put_u64(&w, "attempts_running", f.attempts_running);
    if (n->ports.store->ops->shared) {
        gl_jw_put_u64(&w, "attempts_elsewhere", f.attempts_elsewhere);
        gl_jw_put_u64(&w, "attempts_taken", f.attempts_taken);
        gl_jw_put_u64(&w, "offers_waiting", f.offers_waiting);
    }
    gl_jw_put_u64(&w, "steps_waiting", f.steps_waiting);
    gl_jw_put_u64(&w, "quarantined", f.quarantined);
    if (gl_core_is_cleaning(n->core, &removed)) {
        gl_jw_put_u64(&w, "removed_jobs", removed);
    }
    write_pools(n, &f, &w);
    write_machine(n, &w);
    write_claims(gl_core_claim_counts(n->core), &w);
    gl_jw_end(&w);
}

/* ---- Prometheus ---- */

static void head(struct gl_buf *out, const char *name, const char *type, const char *help)
{
    gl_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct gl_buf *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    head(out, name, type, help);
    gl_buf_fmt(out, "%s %llu\n", name, (unsigned long long)value);
}

void gl_metrics_counter(struct gl_buf *out, const char *name, const char *help, uint64_t value)
{
    number(out, name, "counter", help, value);
}

static void gauge(struct gl_buf *out, const char *name, const char *help, uint64_t value)
{
    number(out, name, "gauge", help, value);
}

void gl_metrics_histogram(struct gl_buf *out, const char *name, const char *help,
                          const struct gl_histogram *h)
{
    uint64_t n = 0;

    head(out, name, "histogram", help);
    for (size_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++) {
        gl_ms bound = gl_histogram_bounds[i];

        n += h->counts[i];
        gl_buf_fmt(out, "%s_bucket{le=\"%lld.%03lld\"} %llu\n", name, (long long)(bound / 1000),
                   (long long)(bound % 1000), (unsigned long long)n);
    }
    gl_buf_fmt(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)h->n);
    gl_buf_fmt(out, "%s_sum %lld.%03lld\n", name, (long long)(h->sum_ms / 1000),
               (long long)(h->sum_ms % 1000));
    gl_buf_fmt(out, "%s_count %llu\n", name, (unsigned long long)h->n);
    GL_ASSERT(n <= h->n);
}

static void pools(struct gl_buf *out, const struct gl_core_metrics *f)
{
    GL_ASSERT(f->pools_n <= GL_POOLS_MAX);
    head(out, "glia_slots", "gauge", "Slots of each pool.");
    for (size_t i = 0; i < f->pools_n; i++) {
        gl_buf_fmt(out, "glia_slots{pool=\"%.*s\"} %u\n", GL_STR_ARG(f->pools[i].name),
                   f->pools[i].slots);
    }
    head(out, "glia_slots_in_use", "gauge",
         "Slots held by running attempts, and by agents between two attempts.");
    for (size_t i = 0; i < f->pools_n; i++) {
        gl_buf_fmt(out, "glia_slots_in_use{pool=\"%.*s\"} %u\n", GL_STR_ARG(f->pools[i].name),
                   f->pools[i].in_use);
    }
}

/* A metric that is unknown has no line. */
static void capacity(struct gl_node *n, struct gl_buf *out)
{
    char text[GL_CAPACITY_CORES_BYTES];
    struct gl_capacity c = {0};

    if (n->config.capacity != NULL) {
        c = n->config.capacity(n->config.owner);
    }
    if (c.cores_milli > 0) {
        head(out, "glia_node_cores", "gauge", "Cores that the node may use.");
        gl_buf_fmt(out, "glia_node_cores %.*s\n",
                   GL_STR_ARG(gl_capacity_cores_text(c.cores_milli, text)));
    }
    if (c.memory_bytes > 0) {
        gauge(out, "glia_node_memory_bytes", "Memory that the node may use.", c.memory_bytes);
    }
    if (c.disk_bytes > 0) {
        GL_ASSERT(c.disk_free_bytes <= c.disk_bytes);
        gauge(out, "glia_node_disk_bytes", "Size of the disk of the data folder.", c.disk_bytes);
        gauge(out, "glia_node_disk_free_bytes", "Free bytes on the disk of the data folder.",
              c.disk_free_bytes);
    }
}

/* Attempts that run on a node other than their job's owner. */
static void elsewhere(struct gl_buf *out, const struct gl_core_metrics *f,
                      const struct gl_core_counts *c)
{
    gauge(out, "glia_attempts_elsewhere",
          "Attempts of this node's jobs that run on other nodes, or are offered to them.",
          f->attempts_elsewhere);
    gauge(out, "glia_attempts_taken", "Attempts of other nodes' jobs that this node has taken.",
          f->attempts_taken);
    gauge(out, "glia_offers_waiting", "Offers of other nodes that wait for slots of this node.",
          f->offers_waiting);
    gl_metrics_counter(out, "glia_offers_made_total", "Attempts offered to other nodes.",
                       c->offers_made);
    gl_metrics_counter(out, "glia_offers_withdrawn_total",
                       "Offers of this node withdrawn before another node took them.",
                       c->offers_withdrawn);
    gl_metrics_counter(out, "glia_offers_lost_total",
                       "Attempts given up because the node that had taken them is dead.",
                       c->offers_lost);
    gl_metrics_counter(out, "glia_offers_taken_total", "Offers of other nodes that this node took.",
                       c->offers_taken);
    gl_metrics_counter(out, "glia_offers_refused_total",
                       "Offers withdrawn or changed before this node could take them.",
                       c->offers_refused);
}

static void jobs(struct gl_buf *out, const struct gl_core_counts *c)
{
    gl_metrics_counter(out, "glia_jobs_submitted_total", "Jobs accepted by this node.",
                       c->jobs_submitted);
    head(out, "glia_jobs_ended_total", "counter", "Jobs that ended, by final status.");
    gl_buf_fmt(out, "glia_jobs_ended_total{status=\"completed\"} %llu\n",
               (unsigned long long)c->jobs_completed);
    gl_buf_fmt(out, "glia_jobs_ended_total{status=\"failed\"} %llu\n",
               (unsigned long long)c->jobs_failed);
    gl_buf_fmt(out, "glia_jobs_ended_total{status=\"cancelled\"} %llu\n",
               (unsigned long long)c->jobs_cancelled);
    gl_metrics_counter(out, "glia_attempts_started_total",
                       "Attempts that this node decided to start.", c->attempts_started);
    gl_metrics_counter(out, "glia_attempts_succeeded_total", "Attempts that completed their step.",
                       c->attempts_succeeded);
    gl_metrics_counter(out, "glia_attempts_failed_total", "Attempts that failed.",
                       c->attempts_failed);
    gl_metrics_counter(out, "glia_attempts_lost_total", "Attempts whose outcome is unknown.",
                       c->attempts_lost);
    head(out, "glia_persons_asked_total", "counter",
         "Times that a step or job began to wait for a person.");
    gl_buf_fmt(out, "glia_persons_asked_total{for=\"review\"} %llu\n",
               (unsigned long long)c->reviews_asked);
    gl_buf_fmt(out, "glia_persons_asked_total{for=\"approval\"} %llu\n",
               (unsigned long long)c->approvals_asked);
}

void gl_metrics_claims(struct gl_buf *out, const struct gl_claim_counts *c)
{
    gl_metrics_counter(out, "glia_claims_acquired_total", "Claims acquired, including takeovers.",
                       c->acquired);
    gl_metrics_counter(out, "glia_claims_steals_total",
                       "Claims acquired after the previous holder failed or expired.", c->steals);
    gl_metrics_counter(out, "glia_claims_busy_total",
                       "Acquisitions refused because the claim is held.", c->busy);
    gl_metrics_counter(out, "glia_claims_renewed_total", "Claims renewed.", c->renewed);
    gl_metrics_counter(out, "glia_claims_renew_failed_total", "Claim renewals refused.",
                       c->renew_failed);
    gl_metrics_counter(out, "glia_claims_completed_total", "Claims completed by their holder.",
                       c->completed);
    gl_metrics_counter(out, "glia_claims_failed_total", "Claims whose holder reported failure.",
                       c->failed);
    gl_metrics_counter(out, "glia_claims_expired_total", "Claims marked as expired by reclaim.",
                       c->expired);
}

void gl_metrics_write(struct gl_node *n, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_core_counts *c = gl_core_counts(n->core);
    struct gl_core_metrics f;

    gl_core_metrics(n->core, &f);
    gauge(out, "glia_node_ready", "1 if the node is ready.", not_ready(n, &a, &(int){0}) == NULL);
    jobs(out, c);
    gauge(out, "glia_attempts_running",
          "Attempts of this node's jobs running now, here or elsewhere.", f.attempts_running);
    elsewhere(out, &f, c);
    gauge(out, "glia_steps_waiting", "Steps waiting for slots or limits.", f.steps_waiting);
    gauge(out, "glia_jobs_in_memory", "Jobs held in memory.", f.jobs_hot);
    gauge(out, "glia_jobs_quarantined", "Jobs in quarantine because they crashed the node.",
          f.quarantined);
    pools(out, &f);
    capacity(n, out);
    gl_metrics_histogram(out, "glia_step_schedule_to_start_seconds",
                         "Time from a step becoming ready to the decision to start it.",
                         &c->schedule_to_start);
    gl_metrics_histogram(out, "glia_step_run_seconds",
                         "Time from the decision to start an attempt to its end.", &c->run);
    for (size_t i = 0; i < GL_PARTS; i++) {
        if (gl_node_parts[i]->measure != NULL) {
            gl_node_parts[i]->measure(n, out);
        }
    }
    gauge(out, "glia_transactions_in_flight", "Transactions in flight.", f.ops_in_flight);
}
