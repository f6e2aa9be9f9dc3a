/* check_messages.c - no message is lost: a message that is gone was handled by its receiver, or its
 * step has ended, or it is a dead letter. None is deferred for a step that may run. An agent
 * handles one at a time, and takes none from its inbox before one with a higher priority, to which
 * each second of waiting adds a point. Those of one sender with one priority for one step are
 * handled in the order in which they were sent. A message whose time to live is over is not handled
 * any more, and none expires early. */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "model/bundle/message.h"
#include "sim/sim_bundles.h"
#include "sim/sim_checks.h"

enum { GONE_MAX = 512 };

enum status { QUEUED, DEFERRED, HANDLING, KEPT, COUNTED, GONE };

struct message {
    char key[64]; /* "<job>/<number>" */
    gl_str job;   /* in the job's arena */
    uint64_t number;
    uint32_t to;
    enum status status;
    gl_str step, from; /* in the job's arena */
    gl_ms expires_at;  /* by its node's clock; 0: never */
    gl_ms created_at;
    int64_t priority;
    bool again;         /* a retry gets it again */
    uint64_t queued_in; /* the transaction that put it into its agent's inbox */
};

struct last { /* handled, of one sender for one step */
    uint64_t number;
    char key[];
};

struct messages_state {
    struct gl_map messages, lasts;
    bool is_made;
    struct {
        struct message *m;
        enum status was;
        bool begins;  /* its handling has begun; else it is gone */
    } acts[GONE_MAX]; /* of this transaction, in order */
    size_t acts_n;
    uint64_t dead[GONE_MAX];
    size_t dead_n;
    uint64_t begun[SIM_AGENTS_MAX]; /* by agent: what it handles since this transaction; 0: none */
    uint64_t handled[SIM_AGENTS_MAX]; /* by agent: how many in this transaction */
    uint64_t transactions_n;
    /* By agent: of those that it has taken from its inbox in this transaction, the one that should
     * go last; NULL: it has taken none. */
    const struct message *taken[SIM_AGENTS_MAX];
};

static void make(struct messages_state *s)
{
    if (!s->is_made) {
        gl_map_init(&s->messages);
        gl_map_init(&s->lasts);
        s->is_made = true;
    }
}

static const char *const words[] = {"queued", "held", "handling", "kept", "counted", "gone"};

static enum status status_of(gl_str word)
{
    for (size_t i = 0; i < GL_COUNT(words); i++) {
        if (gl_str_is(word, words[i])) {
            return (enum status)i;
        }
    }
    return QUEUED;
}

static void check_order(struct sim_checks *c, struct messages_state *s, const struct message *m)
{
    char key[256];
    (void)snprintf(key, sizeof(key), "%.*s %u %lld %.*s %.*s", GL_STR_ARG(m->job), m->to,
                   (long long)m->priority, GL_STR_ARG(m->from), GL_STR_ARG(m->step));
    struct last *last = gl_map_find(&s->lasts, gl_str_of(key));
    if (last == NULL) {
        last = gl_mem_alloc(sizeof(*last) + strlen(key) + 1);
        memcpy(last->key, key, strlen(key) + 1);
        gl_map_add(&s->lasts, gl_str_of(last->key), last);
    }
    if (m->number < last->number) {
        sim_world_fail(c->world,
                       "messages: message %s from %.*s is handled after number %llu of the same",
                       m->key, GL_STR_ARG(m->from), (unsigned long long)last->number);
    }
    last->number = m->number;
}

/* ---- the order of an inbox ---- */

/* Must an agent that has both waiting take `a` first? */
static bool goes_before(const struct message *a, const struct message *b)
{
    gl_ms at = a->created_at - a->priority * GL_MESSAGE_AGEING_MS;
    gl_ms bt = b->created_at - b->priority * GL_MESSAGE_AGEING_MS;
    if (a->again != b->again) {
        return a->again;
    }
    return at != bt && !a->again ? at < bt : a->number < b->number;
}

static void note_taken(struct messages_state *s, const struct message *m)
{
    const struct message **last = m->to - 1 < SIM_AGENTS_MAX ? &s->taken[m->to - 1] : NULL;
    if (last != NULL && (*last == NULL || goes_before(*last, m))) {
        *last = m;
    }
}

/* `m` is in an inbox: has its agent taken another one before it in this transaction? One that
 * joined the inbox in this transaction may have done so after that. */
static void check_overtaken(struct sim_checks *c, const struct messages_state *s,
                            const struct message *m)
{
    const struct message *taken = s->taken[m->to - 1];
    if (taken != NULL && m->queued_in < s->transactions_n && goes_before(m, taken)) {
        sim_world_fail(c->world,
                       "messages: message %s of priority %lld waits longer than number %llu of "
                       "priority %lld, sent %lld ms after it",
                       m->key, (long long)m->priority, (unsigned long long)taken->number,
                       (long long)taken->priority, (long long)(taken->created_at - m->created_at));
    }
}

/* The envelope's, as agents see it: what the record makes of it is up to the node. */
static int64_t priority_of(const struct gl_json *j, gl_jnode message)
{
    gl_jnode envelope = gl_json_get(j, message, "envelope");
    int64_t priority = GL_MESSAGE_PRIORITY;
    (void)gl_json_i64(j, gl_json_get(j, envelope, "priority"), &priority); /* else the usual one */
    return gl_message_clamp_priority(priority);
}

/* Its handling begins now. */
static void check_begin(struct sim_checks *c, struct messages_state *s, const struct message *m,
                        gl_ms now)
{
    check_order(c, s, m);
    if (m->expires_at != 0 && m->expires_at <= now) {
        sim_world_fail(c->world, "messages: message %s is handled %lld ms after its time to live",
                       m->key, (long long)(now - m->expires_at));
    }
}

static void check_death(struct sim_checks *c, struct messages_state *s, const struct sim_change *ch,
                        const struct gl_record *dead)
{
    struct gl_json j;
    const struct message *m = gl_map_find(&s->messages, dead->id);
    gl_ms now = ch->job_now->updated_at;
    if (m == NULL || gl_json_parse(&j, dead->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    gl_str why = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reason"), &c->arena);
    if (gl_str_is(why, "its time to live has expired") &&
        (m->expires_at == 0 || m->expires_at > now)) {
        sim_world_fail(c->world, "messages: message %s expired %lld ms too early", m->key,
                       (long long)(m->expires_at - now));
    }
}

static struct message *find(struct messages_state *s, const struct sim_fact_job *j, gl_str id)
{
    struct message *m = gl_map_find(&s->messages, id);
    gl_str digits;
    if (m == NULL) {
        m = gl_mem_alloc(sizeof(*m));
        (void)snprintf(m->key, sizeof(m->key), "%.*s", GL_STR_ARG(id));
        m->job = j->id;
        m->status = GONE;
        (void)gl_str_cut(gl_str_of(m->key), '/', &digits);
        (void)gl_str_u64(digits, &m->number);
        gl_map_add(&s->messages, gl_str_of(m->key), m);
    }
    return m;
}

static void act(struct messages_state *s, struct message *m, bool begins)
{
    if (s->acts_n < GONE_MAX) {
        s->acts[s->acts_n].m = m;
        s->acts[s->acts_n].was = m->status;
        s->acts[s->acts_n++].begins = begins;
    }
}

static void on_put(struct sim_checks *c, struct messages_state *s, const struct sim_change *ch,
                   const struct gl_record *before, const struct gl_record *after)
{
    struct gl_json j;
    struct message *m = find(s, ch->job, after->id);
    if (gl_json_parse(&j, after->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        sim_world_fail(c->world, "messages: %s cannot be read", m->key);
        return;
    }
    gl_jnode root = gl_json_root(&j);
    enum status now = status_of(gl_json_str(&j, gl_json_get(&j, root, "status"), &c->arena));
    if (before->rev == 0 && m->to != 0) {
        sim_world_fail(c->world, "messages: %s existed before", m->key);
    }
    if (before->rev == 0) {
        int64_t to = gl_flow_find_agent(ch->job->flow,
                                        gl_json_str(&j, gl_json_get(&j, root, "to"), &c->arena));
        m->to = (uint32_t)to + 1; /* 0: unknown */
        m->expires_at = 0;
        (void)gl_json_i64(&j, gl_json_get(&j, root, "expires_at"), &m->expires_at); /* 0: none */
        (void)gl_json_i64(&j, gl_json_get(&j, root, "created_at"), &m->created_at);
        m->priority = priority_of(&j, gl_json_get(&j, root, "message"));
        m->from =
            gl_str_dup(&ch->job->arena, gl_json_str(&j, gl_json_get(&j, root, "from"), &c->arena));
        m->step =
            gl_str_dup(&ch->job->arena, gl_json_str(&j, gl_json_get(&j, root, "step"), &c->arena));
    }
    if (now == COUNTED && m->status != now && m->status != HANDLING) {
        act(s, m, true);
    }
    if (now == QUEUED && (before->rev == 0 || m->status != QUEUED)) {
        m->again = m->again || (before->rev != 0 && m->status == KEPT);
        m->queued_in = s->transactions_n;
    } else if (now != QUEUED && before->rev != 0 && m->status == QUEUED) {
        note_taken(s, m);
    }
    m->status = now;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct messages_state *s = me;
    gl_str digits;
    make(s);
    if (gl_str_is(before->kind, "deadletter") && after->rev != 0 && s->dead_n < GONE_MAX) {
        (void)gl_str_cut(after->id, '/', &digits);
        (void)gl_str_u64(digits, &s->dead[s->dead_n++]);
        check_death(c, s, ch, after);
    }
    if (!gl_str_is(before->kind, "letter")) {
        return;
    }
    if (after->rev != 0) {
        on_put(c, s, ch, before, after);
        return;
    }
    struct message *m = find(s, ch->job, before->id);
    act(s, m, false);
    if (m->status == QUEUED) {
        note_taken(s, m);
    }
    m->status = GONE;
}

static bool is_over(const struct sim_fact_job *j, gl_str step)
{
    const struct sim_fact_step *st =
        step.n > 0 ? sim_facts_step((struct sim_fact_job *)(uintptr_t)j, step) : NULL;
    return st != NULL && st->known && gl_step_status_is_terminal(st->r.status);
}

static bool is_dead(const struct messages_state *s, uint64_t number)
{
    for (size_t i = 0; i < s->dead_n; i++) {
        if (s->dead[i] == number) {
            return true;
        }
    }
    return false;
}

static void judge_gone(struct sim_checks *c, struct messages_state *s, const struct sim_fact_job *j,
                       const struct gl_job_record *r)
{
    gl_ms now = r->updated_at;
    bool ends = r->verdict != GL_VERDICT_NONE;
    for (size_t i = 0; i < s->acts_n; i++) {
        const struct message *m = s->acts[i].m;
        enum status was = s->acts[i].was;
        uint32_t to = m->to - 1;
        if (s->acts[i].begins) {
            check_begin(c, s, m, now);
            continue;
        }
        if (was == KEPT || is_dead(s, m->number) || to >= SIM_AGENTS_MAX) {
            continue;
        }
        if (was == COUNTED && ends) {
            continue; /* its aggregator no longer needs it */
        }
        if (was != HANDLING && is_over(j, m->step)) {
            continue; /* too late, or a relay has ended its step with it */
        }
        if (s->handled[to] == 0 && !is_over(j, m->step)) {
            sim_world_fail(c->world, "messages: message %s to a%u is gone, and was not handled",
                           m->key, to);
        } else if (s->handled[to] > 0) {
            s->handled[to]--;
        }
        if (was != HANDLING) {
            check_begin(c, s, m, now);
        }
    }
}

static void judge_rest(struct sim_checks *c, const struct messages_state *s, struct sim_fact_job *j)
{
    uint32_t handling[SIM_AGENTS_MAX] = {0};
    const struct message *m;
    for (size_t i = 0; (m = gl_map_next(&s->messages, &i)) != NULL;) {
        uint32_t to = m->to - 1;
        if (m->status == GONE || !gl_str_eq(m->job, j->id) || to >= SIM_AGENTS_MAX) {
            continue;
        }
        const struct sim_fact_step *st = m->step.n > 0 ? sim_facts_step(j, m->step) : NULL;
        bool may_run = st != NULL && st->known &&
                       (st->r.status == GL_STEP_READY || st->r.status == GL_STEP_RUNNING ||
                        gl_step_status_is_terminal(st->r.status));
        if (m->status == DEFERRED && may_run) {
            sim_world_fail(c->world, "messages: message %s is deferred, and its step %.*s is %s",
                           m->key, GL_STR_ARG(m->step), gl_step_status_words[st->r.status]);
        }
        if (m->status == QUEUED) {
            check_overtaken(c, s, m);
        }
        handling[to] += m->status == HANDLING;
        if (handling[to] > 1 || (m->status == HANDLING && j->steps[to].r.letter != m->number)) {
            sim_world_fail(c->world, "messages: agent a%u handles message %s, and %llu", to, m->key,
                           (unsigned long long)j->steps[to].r.letter);
        }
    }
}

/* The unit's record names the message it handles: the last one it took in this transaction. */
static void judge_begun(struct sim_checks *c, struct messages_state *s,
                        const struct sim_fact_job *j, gl_ms now)
{
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "%.*s/%012llu", GL_STR_ARG(j->id),
                       (unsigned long long)s->begun[i]);
        struct message *m = s->begun[i] != 0 ? gl_map_find(&s->messages, gl_str_of(key)) : NULL;
        if (m != NULL && m->status != GONE) {
            check_begin(c, s, m, now);
            if (m->status == QUEUED) {
                note_taken(s, m);
            }
            m->status = m->status == COUNTED ? COUNTED : HANDLING;
        }
    }
    memset(s->begun, 0, sizeof(s->begun));
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct messages_state *s = me;
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    make(s);
    if (ch->step == NULL) {
        judge_gone(c, s, ch->job, ch->job_now);
        judge_begun(c, s, ch->job, ch->job_now->updated_at);
        if (ch->job_now->verdict == GL_VERDICT_NONE) { /* the rest then stays as it is */
            judge_rest(c, s, ch->job);
        }
        s->acts_n = s->dead_n = 0;
        s->transactions_n++;
        memset(s->handled, 0, sizeof(s->handled));
        memset(s->taken, 0, sizeof(s->taken));
    } else if (ch->step->group == NULL && ch->step - ch->job->steps < SIM_AGENTS_MAX &&
               gl_str_starts(ch->step->spec->id, GL_S("@"))) {
        s->handled[ch->step - ch->job->steps] += ch->step_now->processed - ch->step->r.processed;
        s->begun[ch->step - ch->job->steps] =
            ch->step_now->letter != ch->step->r.letter ? ch->step_now->letter : 0;
    }
}

/* No message is on its way in a job that completed by itself. */
static void at_end(struct sim_checks *c, void *me)
{
    const struct messages_state *s = me;
    const struct message *m;
    for (size_t i = 0; s->is_made && (m = gl_map_next(&s->messages, &i)) != NULL;) {
        const struct sim_fact_job *j = sim_facts_job(&c->facts, m->job);
        bool by_word = false;
        if (j == NULL || !j->known || j->torn || j->removed || j->r.status != GL_JOB_COMPLETED) {
            continue;
        }
        for (uint32_t k = 0; k < gl_flow_agents_n(j->flow); k++) {
            by_word = by_word || gl_flow_agent(j->flow, k)->complete_run;
        }
        if (!by_word && (m->status == QUEUED || m->status == DEFERRED || m->status == HANDLING)) {
            sim_world_fail(c->world, "messages: message %s is %s, and its job has completed",
                           m->key, words[m->status]);
        }
    }
}

static void done(void *me)
{
    struct messages_state *s = me;
    struct message *m;
    struct last *last;
    for (size_t i = 0; s->is_made && (m = gl_map_next(&s->messages, &i)) != NULL;) {
        gl_mem_free(m);
    }
    for (size_t i = 0; s->is_made && (last = gl_map_next(&s->lasts, &i)) != NULL;) {
        gl_mem_free(last);
    }
    if (s->is_made) {
        gl_map_done(&s->messages);
        gl_map_done(&s->lasts);
    }
}

const struct sim_check sim_check_messages = {.name = "messages",
                                             .state_bytes = sizeof(struct messages_state),
                                             .on_change = on_change,
                                             .on_record = on_record,
                                             .at_end = at_end,
                                             .done = done};
