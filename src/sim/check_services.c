/* check_services.c - an agent without a step is restarted as its policy prescribes: at most the
 * allowed number of times within the window, each after its delay, counted when it starts. Then it
 * waits for the window, or fails, or (a service) asks a person. A service does not end when nothing
 * is left to do.
 *
 * Counted from committed states, not from the history that the record keeps. */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "sim/sim_bundles.h"
#include "sim/sim_checks.h"

enum { STARTS_MAX = 256 };

struct history {   /* "<job> <agent>" */
    uint64_t said; /* hash of the policy's state */
    gl_ms starts[STARTS_MAX];
    size_t n;
    char key[];
};

struct services_state {
    struct gl_map histories;
    bool is_made;
};

static struct history *history_of(struct services_state *s, const struct sim_change *ch)
{
    char key[96];
    if (!s->is_made) {
        gl_map_init(&s->histories);
        s->is_made = true;
    }
    (void)snprintf(key, sizeof(key), "%.*s %.*s", GL_STR_ARG(ch->job->id),
                   GL_STR_ARG(ch->step->spec->id));
    struct history *h = gl_map_find(&s->histories, gl_str_of(key));
    if (h == NULL) {
        h = gl_mem_alloc(sizeof(*h) + strlen(key) + 1);
        memcpy(h->key, key, strlen(key) + 1);
        h->said = gl_str_hash((gl_str){0});
        gl_map_add(&s->histories, gl_str_of(h->key), h);
    }
    return h;
}

/* A restart that has left the window does not return to it, even if the clock is set back. */
static size_t inside(struct history *h, const struct gl_restart *p, gl_ms now, gl_ms *ret_oldest)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (h->starts[i] > now - p->interval_ms) {
            h->starts[n++] = h->starts[i];
        }
    }
    h->n = n;
    *ret_oldest = n > 0 ? h->starts[0] : 0;
    return n;
}

/* The delay of the restart that follows this many others: 1, 2, 4, 8 or 1, 1, 2, 3 times the first.
 */
static gl_ms delay_of(const struct gl_restart *p, size_t earlier)
{
    uint64_t times = 1, before = 0;
    for (size_t i = 0; i < earlier && times < 1u << 20; i++) {
        uint64_t next = p->delay_function == GL_DELAY_EXPONENTIAL ? times * 2
                        : p->delay_function == GL_DELAY_FIBONACCI ? times + before
                                                                  : times;
        before = times;
        times = next;
    }
    gl_ms delay = p->delay_ms * (gl_ms)times;
    return p->max_delay_ms > 0 && delay > p->max_delay_ms ? p->max_delay_ms : delay;
}

static void judge(struct sim_checks *c, struct history *h, const struct sim_change *ch,
                  gl_str action, const struct gl_restart *p)
{
    const struct gl_step_record *now = ch->step_now;
    const struct gl_policies *job = &ch->job->flow->bundle->policies;
    gl_ms at = ch->job_now->updated_at, oldest = 0;
    size_t n = inside(h, p, at, &oldest);
    bool is_manual = job->recovery_mode == GL_RECOVERY_MANUAL_RECOVER;
    bool is_over = ch->job_now->verdict != GL_VERDICT_NONE; /* the job ends with this transaction */
    const char *wrong = NULL;
    if (gl_str_is(action, "restart")) {
        wrong = is_manual                           ? "is restarted, and not by a person"
                : n >= p->attempts                  ? "is restarted too often"
                : is_over                           ? NULL
                : now->status != GL_STEP_RETRY_WAIT ? "is to restart and does not wait for it"
                : now->retry_at != at + delay_of(p, n)
                    ? "waits for a different time than its policy prescribes"
                    : NULL;
        if (h->n < STARTS_MAX) {
            h->starts[h->n++] = at;
        }
    } else if (gl_str_is(action, "wait")) {
        wrong = is_manual || !p->waits || n < p->attempts ? "waits for a window that is not full"
                : is_over                                 ? NULL
                : now->retry_at < oldest + p->interval_ms ? "waits for less than its window"
                                                          : NULL;
    } else if (gl_str_is(action, "exhausted")) {
        bool asks = now->status == GL_STEP_BLOCKED && now->blocked_on == GL_BLOCK_REVIEW;
        bool fails = ch->job_now->verdict == GL_VERDICT_FAILED;
        wrong = !is_manual && n < p->attempts ? "gives up with restarts left"
                : !asks && !fails             ? "gives up, and the job does not end"
                                              : NULL;
    } else if (!gl_str_is(action, "review") || !is_manual) {
        wrong = "does what no policy allows";
    }
    if (wrong != NULL) {
        sim_world_fail(c->world,
                       "services: agent %.*s of job %.*s %s (%.*s, %zu of %u in its window)",
                       GL_STR_ARG(ch->step->spec->id), GL_STR_ARG(ch->job->id), wrong,
                       GL_STR_ARG(action), n, p->attempts);
    }
}

static void check_unit(struct sim_checks *c, struct services_state *s, const struct sim_change *ch)
{
    uint32_t number = (uint32_t)(ch->step - ch->job->steps);
    const struct gl_agent_spec *a = gl_flow_agent(ch->job->flow, number);
    struct history *h = history_of(s, ch);
    struct gl_json j;
    uint64_t said = gl_str_hash(ch->step_now->policy_state);
    if (said == h->said ||
        gl_json_parse(&j, ch->step_now->policy_state, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    h->said = said;
    judge(c, h, ch, gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "next_action"), &c->arena),
          a->has_restart ? &a->restart : &ch->job->flow->bundle->policies.restart);
}

/* It completes because an agent that may end it reports completion. */
static void check_end(struct sim_checks *c, const struct sim_change *ch)
{
    const struct gl_flow *f = ch->job->flow;
    bool by_word = false;
    if (f->bundle->policies.job_type != GL_TYPE_SERVICE ||
        ch->job_now->verdict != GL_VERDICT_COMPLETED ||
        ch->job->r.verdict == GL_VERDICT_COMPLETED) {
        return;
    }
    for (uint32_t i = 0; i < gl_flow_agents_n(f); i++) {
        by_word =
            by_word || (gl_flow_agent(f, i)->terminal_sink && gl_flow_agent(f, i)->complete_run);
    }
    if (!by_word || ch->job_now->result.n == 0) {
        sim_world_fail(c->world, "services: job %.*s is a service and ends by itself",
                       GL_STR_ARG(ch->job->id));
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    if (ch->step == NULL) {
        check_end(c, ch);
    } else if (ch->step->group == NULL &&
               gl_flow_is_unit(ch->job->flow, (uint32_t)(ch->step - ch->job->steps))) {
        check_unit(c, me, ch);
    }
}

static void done(void *me)
{
    struct services_state *s = me;
    struct history *h;
    for (size_t i = 0; s->is_made && (h = gl_map_next(&s->histories, &i)) != NULL;) {
        gl_mem_free(h);
    }
    if (s->is_made) {
        gl_map_done(&s->histories);
    }
}

const struct sim_check sim_check_services = {.name = "services",
                                             .state_bytes = sizeof(struct services_state),
                                             .on_change = on_change,
                                             .done = done};
