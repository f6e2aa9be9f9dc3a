/* check_letters.c - no message is lost: a message that is gone was handled by its receiver, or its
 * step has ended, or it is a dead letter. None is held for a step that may run. An agent handles
 * one at a time, and takes none from its inbox before one with a higher priority, to which each
 * second of waiting adds a point. Those of one sender with one priority for one step are handled in
 * the order in which they were sent. A message whose time to live is over is not handled any more,
 * and none expires early. */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "model/bundle/message.h"
#include "sim/sim_bundles.h"
#include "sim/sim_checks.h"

enum { GONE_MAX = 512 };

enum status { QUEUED, HELD, HANDLING, KEPT, COUNTED, GONE };

struct letter {
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

struct letters_state {
    struct gl_map letters, lasts;
    bool is_made;
    struct {
        struct letter *l;
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
    const struct letter *taken[SIM_AGENTS_MAX];
};

static void make(struct letters_state *s)
{
    if (!s->is_made) {
        gl_map_init(&s->letters);
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

static void check_order(struct sim_checks *c, struct letters_state *s, const struct letter *l)
{
    char key[256];
    (void)snprintf(key, sizeof(key), "%.*s %u %lld %.*s %.*s", GL_STR_ARG(l->job), l->to,
                   (long long)l->priority, GL_STR_ARG(l->from), GL_STR_ARG(l->step));
    struct last *last = gl_map_find(&s->lasts, gl_str_of(key));
    if (last == NULL) {
        last = gl_mem_alloc(sizeof(*last) + strlen(key) + 1);
        memcpy(last->key, key, strlen(key) + 1);
        gl_map_add(&s->lasts, gl_str_of(last->key), last);
    }
    if (l->number < last->number) {
        sim_world_fail(c->world,
                       "letters: message %s from %.*s is handled after number %llu of the same",
                       l->key, GL_STR_ARG(l->from), (unsigned long long)last->number);
    }
    last->number = l->number;
}

/* ---- the order of an inbox ---- */

/* Must an agent that has both waiting take `a` first? */
static bool goes_before(const struct letter *a, const struct letter *b)
{
    gl_ms at = a->created_at - a->priority * GL_MESSAGE_AGEING_MS;
    gl_ms bt = b->created_at - b->priority * GL_MESSAGE_AGEING_MS;
    if (a->again != b->again) {
        return a->again;
    }
    return at != bt && !a->again ? at < bt : a->number < b->number;
}

static void note_taken(struct letters_state *s, const struct letter *l)
{
    const struct letter **last = l->to - 1 < SIM_AGENTS_MAX ? &s->taken[l->to - 1] : NULL;
    if (last != NULL && (*last == NULL || goes_before(*last, l))) {
        *last = l;
    }
}

/* `l` is in an inbox: has its agent taken another one before it in this transaction? One that
 * joined the inbox in this transaction may have done so after that. */
static void check_overtaken(struct sim_checks *c, const struct letters_state *s,
                            const struct letter *l)
{
    const struct letter *taken = s->taken[l->to - 1];
    if (taken != NULL && l->queued_in < s->transactions_n && goes_before(l, taken)) {
        sim_world_fail(c->world,
                       "letters: message %s of priority %lld waits longer than number %llu of "
                       "priority %lld, sent %lld ms after it",
                       l->key, (long long)l->priority, (unsigned long long)taken->number,
                       (long long)taken->priority, (long long)(taken->created_at - l->created_at));
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
static void check_begin(struct sim_checks *c, struct letters_state *s, const struct letter *l,
                        gl_ms now)
{
    check_order(c, s, l);
    if (l->expires_at != 0 && l->expires_at <= now) {
        sim_world_fail(c->world, "letters: message %s is handled %lld ms after its time to live",
                       l->key, (long long)(now - l->expires_at));
    }
}

static void check_death(struct sim_checks *c, struct letters_state *s, const struct sim_change *ch,
                        const struct gl_record *dead)
{
    struct gl_json j;
    const struct letter *l = gl_map_find(&s->letters, dead->id);
    gl_ms now = ch->job_now->updated_at;
    if (l == NULL || gl_json_parse(&j, dead->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    gl_str why = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reason"), &c->arena);
    if (gl_str_is(why, "its time to live has expired") &&
        (l->expires_at == 0 || l->expires_at > now)) {
        sim_world_fail(c->world, "letters: message %s expired %lld ms too early", l->key,
                       (long long)(l->expires_at - now));
    }
}

static struct letter *find(struct letters_state *s, const struct sim_fact_job *j, gl_str id)
{
    struct letter *l = gl_map_find(&s->letters, id);
    gl_str digits;
    if (l == NULL) {
        l = gl_mem_alloc(sizeof(*l));
        (void)snprintf(l->key, sizeof(l->key), "%.*s", GL_STR_ARG(id));
        l->job = j->id;
        l->status = GONE;
        (void)gl_str_cut(gl_str_of(l->key), '/', &digits);
        (void)gl_str_u64(digits, &l->number);
        gl_map_add(&s->letters, gl_str_of(l->key), l);
    }
    return l;
}

static void act(struct letters_state *s, struct letter *l, bool begins)
{
    if (s->acts_n < GONE_MAX) {
        s->acts[s->acts_n].l = l;
        s->acts[s->acts_n].was = l->status;
        s->acts[s->acts_n++].begins = begins;
    }
}

static void on_put(struct sim_checks *c, struct letters_state *s, const struct sim_change *ch,
                   const struct gl_record *before, const struct gl_record *after)
{
    struct gl_json j;
    struct letter *l = find(s, ch->job, after->id);
    if (gl_json_parse(&j, after->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        sim_world_fail(c->world, "letters: %s cannot be read", l->key);
        return;
    }
    gl_jnode root = gl_json_root(&j);
    enum status now = status_of(gl_json_str(&j, gl_json_get(&j, root, "status"), &c->arena));
    if (before->rev == 0 && l->to != 0) {
        sim_world_fail(c->world, "letters: %s existed before", l->key);
    }
    if (before->rev == 0) {
        int64_t to = gl_flow_find_agent(ch->job->flow,
                                        gl_json_str(&j, gl_json_get(&j, root, "to"), &c->arena));
        l->to = (uint32_t)to + 1; /* 0: unknown */
        l->expires_at = 0;
        (void)gl_json_i64(&j, gl_json_get(&j, root, "expires_at"), &l->expires_at); /* 0: none */
        (void)gl_json_i64(&j, gl_json_get(&j, root, "created_at"), &l->created_at);
        l->priority = priority_of(&j, gl_json_get(&j, root, "message"));
        l->from =
            gl_str_dup(&ch->job->arena, gl_json_str(&j, gl_json_get(&j, root, "from"), &c->arena));
        l->step =
            gl_str_dup(&ch->job->arena, gl_json_str(&j, gl_json_get(&j, root, "step"), &c->arena));
    }
    if (now == COUNTED && l->status != now && l->status != HANDLING) {
        act(s, l, true);
    }
    if (now == QUEUED && (before->rev == 0 || l->status != QUEUED)) {
        l->again = l->again || (before->rev != 0 && l->status == KEPT);
        l->queued_in = s->transactions_n;
    } else if (now != QUEUED && before->rev != 0 && l->status == QUEUED) {
        note_taken(s, l);
    }
    l->status = now;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct letters_state *s = me;
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
    struct letter *l = find(s, ch->job, before->id);
    act(s, l, false);
    if (l->status == QUEUED) {
        note_taken(s, l);
    }
    l->status = GONE;
}

static bool is_over(const struct sim_fact_job *j, gl_str step)
{
    const struct sim_fact_step *st =
        step.n > 0 ? sim_facts_step((struct sim_fact_job *)(uintptr_t)j, step) : NULL;
    return st != NULL && st->known && gl_step_status_is_terminal(st->r.status);
}

static bool is_dead(const struct letters_state *s, uint64_t number)
{
    for (size_t i = 0; i < s->dead_n; i++) {
        if (s->dead[i] == number) {
            return true;
        }
    }
    return false;
}

static void judge_gone(struct sim_checks *c, struct letters_state *s, const struct sim_fact_job *j,
                       const struct gl_job_record *r)
{
    gl_ms now = r->updated_at;
    bool ends = r->verdict != GL_VERDICT_NONE;
    for (size_t i = 0; i < s->acts_n; i++) {
        const struct letter *l = s->acts[i].l;
        enum status was = s->acts[i].was;
        uint32_t to = l->to - 1;
        if (s->acts[i].begins) {
            check_begin(c, s, l, now);
            continue;
        }
        if (was == KEPT || is_dead(s, l->number) || to >= SIM_AGENTS_MAX) {
            continue;
        }
        if (was == COUNTED && ends) {
            continue; /* its aggregator no longer needs it */
        }
        if (was != HANDLING && is_over(j, l->step)) {
            continue; /* too late, or a relay has ended its step with it */
        }
        if (s->handled[to] == 0 && !is_over(j, l->step)) {
            sim_world_fail(c->world, "letters: message %s to a%u is gone, and was not handled",
                           l->key, to);
        } else if (s->handled[to] > 0) {
            s->handled[to]--;
        }
        if (was != HANDLING) {
            check_begin(c, s, l, now);
        }
    }
}

static void judge_rest(struct sim_checks *c, const struct letters_state *s, struct sim_fact_job *j)
{
    uint32_t handling[SIM_AGENTS_MAX] = {0};
    const struct letter *l;
    for (size_t i = 0; (l = gl_map_next(&s->letters, &i)) != NULL;) {
        uint32_t to = l->to - 1;
        if (l->status == GONE || !gl_str_eq(l->job, j->id) || to >= SIM_AGENTS_MAX) {
            continue;
        }
        const struct sim_fact_step *st = l->step.n > 0 ? sim_facts_step(j, l->step) : NULL;
        bool may_run = st != NULL && st->known &&
                       (st->r.status == GL_STEP_READY || st->r.status == GL_STEP_RUNNING ||
                        gl_step_status_is_terminal(st->r.status));
        if (l->status == HELD && may_run) {
            sim_world_fail(c->world, "letters: message %s is held, and its step %.*s is %s", l->key,
                           GL_STR_ARG(l->step), gl_step_status_words[st->r.status]);
        }
        if (l->status == QUEUED) {
            check_overtaken(c, s, l);
        }
        handling[to] += l->status == HANDLING;
        if (handling[to] > 1 || (l->status == HANDLING && j->steps[to].r.letter != l->number)) {
            sim_world_fail(c->world, "letters: agent a%u handles message %s, and %llu", to, l->key,
                           (unsigned long long)j->steps[to].r.letter);
        }
    }
}

/* The unit's record names the letter it handles: the last one it took in this transaction. */
static void judge_begun(struct sim_checks *c, struct letters_state *s, const struct sim_fact_job *j,
                        gl_ms now)
{
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        char key[64];
        (void)snprintf(key, sizeof(key), "%.*s/%012llu", GL_STR_ARG(j->id),
                       (unsigned long long)s->begun[i]);
        struct letter *l = s->begun[i] != 0 ? gl_map_find(&s->letters, gl_str_of(key)) : NULL;
        if (l != NULL && l->status != GONE) {
            check_begin(c, s, l, now);
            if (l->status == QUEUED) {
                note_taken(s, l);
            }
            l->status = l->status == COUNTED ? COUNTED : HANDLING;
        }
    }
    memset(s->begun, 0, sizeof(s->begun));
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct letters_state *s = me;
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
    const struct letters_state *s = me;
    const struct letter *l;
    for (size_t i = 0; s->is_made && (l = gl_map_next(&s->letters, &i)) != NULL;) {
        const struct sim_fact_job *j = sim_facts_job(&c->facts, l->job);
        bool by_word = false;
        if (j == NULL || !j->known || j->torn || j->removed || j->r.status != GL_JOB_COMPLETED) {
            continue;
        }
        for (uint32_t k = 0; k < gl_flow_agents_n(j->flow); k++) {
            by_word = by_word || gl_flow_agent(j->flow, k)->complete_run;
        }
        if (!by_word && (l->status == QUEUED || l->status == HELD || l->status == HANDLING)) {
            sim_world_fail(c->world, "letters: message %s is %s, and its job has completed", l->key,
                           words[l->status]);
        }
    }
}

static void done(void *me)
{
    struct letters_state *s = me;
    struct letter *l;
    struct last *last;
    for (size_t i = 0; s->is_made && (l = gl_map_next(&s->letters, &i)) != NULL;) {
        gl_mem_free(l);
    }
    for (size_t i = 0; s->is_made && (last = gl_map_next(&s->lasts, &i)) != NULL;) {
        gl_mem_free(last);
    }
    if (s->is_made) {
        gl_map_done(&s->letters);
        gl_map_done(&s->lasts);
    }
}

const struct sim_check sim_check_letters = {.name = "letters",
                                            .state_bytes = sizeof(struct letters_state),
                                            .on_change = on_change,
                                            .on_record = on_record,
                                            .at_end = at_end,
                                            .done = done};
