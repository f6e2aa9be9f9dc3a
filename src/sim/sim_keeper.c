#include "sim/sim_keeper.h"

#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "sim/sim_blobs.h"
#include "sim/sim_exec.h"
#include "sim/sim_workers.h"

enum {
    SHORT_MS = 8000,  /* the longest run of an ordinary process */
    LONG_MS = 240000, /* of a slow one */
    TERM_MS = 200,    /* how long a process takes to end after SIGTERM */
    SYNC_MS = 400,    /* how long a slow sync of an exit record takes */
    PINGS_PER_GRACE = 3,
};

struct sim_floor {
    gl_str key;
    uint64_t token;
};

static void on_restart(struct sim_call *call);
static void on_orphan(struct sim_call *call);

/* Unique, also across machines. */
static void name_epoch(struct sim_keeper *k)
{
    bool first = strcmp(k->node, "n1") == 0;
    k->epoch_n++;
    (void)snprintf(k->epoch, sizeof(k->epoch), "k%llu%s%s", (unsigned long long)k->epoch_n,
                   first ? "" : ".", first ? "" : k->node);
}

void sim_keeper_init(struct sim_keeper *k, struct sim_world *w)
{
    sim_keeper_init_at(k, w, 1, &w->wall_offset);
}

void sim_keeper_init_at(struct sim_keeper *k, struct sim_world *w, uint32_t machine,
                        const gl_ms *wall)
{
    *k = (struct sim_keeper){.world = w, .up = true, .wall = wall};
    (void)snprintf(k->node, sizeof(k->node), "n%u", machine);
    gl_rng_fork(&w->rng, &k->rng, "keeper");
    gl_map_init(&k->attempts);
    gl_map_init(&k->floors);
    gl_list_init(&k->commands);
    gl_list_init(&k->clients);
    sim_call_init(&k->restart, on_restart, NULL);
    sim_call_init(&k->orphan, on_orphan, NULL);
    name_epoch(k);
}

void sim_keeper_give_folder(struct sim_keeper *k)
{
    k->folder = gl_mem_alloc(sizeof(*k->folder));
    sim_blobs_init(k->folder, k->world, "folder");
}

static void attempt_free(struct sim_attempt *at)
{
    struct sim_world *w = at->keeper->world;
    sim_world_cancel(w, &at->ending);
    sim_world_cancel(w, &at->syncing);
    sim_world_cancel(w, &at->beacon);
    sim_world_cancel(w, &at->saying);
    (void)gl_map_remove(&at->keeper->attempts, at->key); /* it is this one */
    gl_mem_free(at);
}

static void floors_forget(struct sim_keeper *k)
{
    struct sim_floor *f;
    for (size_t i = 0; (f = gl_map_next(&k->floors, &i)) != NULL;) {
        gl_mem_free(f);
    }
    gl_map_done(&k->floors);
    gl_map_init(&k->floors);
}

void sim_keeper_done(struct sim_keeper *k)
{
    GL_ASSERT(gl_list_empty(&k->clients));
    struct gl_link *l;
    while ((l = gl_list_first(&k->commands)) != NULL) {
        sim_command_free(GL_CONTAINER(l, struct sim_command, link));
    }
    struct sim_attempt *at;
    for (size_t i = 0; (at = gl_map_next(&k->attempts, &i)) != NULL;) {
        attempt_free(at);
    }
    floors_forget(k);
    for (size_t i = 0; i < k->ledger_n; i++) {
        gl_buf_done(&k->ledger[i]->said);
        gl_buf_done(&k->ledger[i]->message);
        gl_buf_done(&k->ledger[i]->state);
        gl_mem_free(k->ledger[i]);
    }
    gl_mem_free(k->ledger);
    gl_map_done(&k->attempts);
    gl_map_done(&k->floors);
    sim_world_cancel(k->world, &k->restart);
    sim_world_cancel(k->world, &k->orphan);
    if (k->folder != NULL) {
        sim_blobs_done(k->folder);
        gl_mem_free(k->folder);
    }
}

/* ---- floors ---- */

static gl_str copy_into(char **at, gl_str s)
{
    gl_str copy = {.p = *at, .n = s.n};
    if (s.n > 0) {
        memcpy(*at, s.p, s.n);
    }
    *at += s.n;
    return copy;
}

/* Raises the floor of the job; false: the token is below it. */
static bool floor_raise(struct sim_keeper *k, const struct sim_command *cmd)
{
    char key[512];
    int n = snprintf(key, sizeof(key), "%.*s/%.*s", GL_STR_ARG(cmd->context), GL_STR_ARG(cmd->job));
    GL_ASSERT(n > 0 && (size_t)n < sizeof(key));
    gl_str name = {.p = key, .n = (size_t)n};
    struct sim_floor *f = gl_map_find(&k->floors, name);
    if (f == NULL) {
        f = gl_mem_alloc(sizeof(*f) + name.n);
        char *at = (char *)(f + 1);
        f->key = copy_into(&at, name);
        gl_map_add(&k->floors, f->key, f);
    }
    if (cmd->token < f->token) {
        return false;
    }
    f->token = cmd->token;
    return true;
}

/* ---- processes ---- */

static void cut_attempt(gl_str attempt, gl_str *ret_step, uint32_t *ret_number)
{
    size_t i = attempt.n;
    while (i > 0 && attempt.p[i - 1] != ':') {
        i--;
    }
    uint64_t number = 0;
    gl_str digits = {.p = attempt.p + i, .n = attempt.n - i};
    bool ok = gl_str_u64(digits, &number);
    GL_ASSERT(ok);
    size_t tail = digits.n + sizeof(":attempt:") - 1;
    GL_ASSERT(attempt.n > tail);
    *ret_step = (gl_str){.p = attempt.p, .n = attempt.n - tail};
    *ret_number = (uint32_t)number;
}

static struct sim_process *ledger_add(struct sim_keeper *k, const struct sim_command *cmd)
{
    struct sim_process *p = gl_mem_alloc(sizeof(*p) + cmd->context.n + cmd->job.n + cmd->attempt.n +
                                         cmd->by.n + cmd->given.n);
    char *at = (char *)(p + 1);
    p->context = copy_into(&at, cmd->context);
    p->job = copy_into(&at, cmd->job);
    p->attempt = copy_into(&at, cmd->attempt);
    p->by = copy_into(&at, cmd->by);
    p->given = copy_into(&at, gl_buf_view(&cmd->given));
    p->node = gl_str_of(k->node);
    cut_attempt(p->attempt, &p->step, &p->number);
    gl_buf_str(&p->message, gl_buf_view(&cmd->message));
    gl_buf_str(&p->state, gl_buf_view(&cmd->state));
    p->token = cmd->token;
    p->started_at = k->world->now;
    p->epoch = k->epoch_n;
    if (k->ledger_n == k->ledger_cap) {
        k->ledger_cap = k->ledger_cap == 0 ? 256 : k->ledger_cap * 2;
        k->ledger = gl_mem_realloc(k->ledger, k->ledger_cap * sizeof(struct sim_process *));
    }
    k->ledger[k->ledger_n++] = p;
    return p;
}

static void process_end(struct sim_attempt *at, const char *what)
{
    struct sim_keeper *k = at->keeper;
    struct sim_process *p = at->process;
    GL_ASSERT(p->ended_at == 0);
    p->ended_at = k->world->now;
    k->running_n--;
    SIM_TRACE(k->world, EXEC, .job = p->job, .step = p->step, .number = p->number,
              .token = p->token, .what = what);
    if (k->watch.on_end != NULL) {
        k->watch.on_end(k->watch.owner, p);
    }
}

/* A slow step is slow in every attempt, so that it runs when faults happen; but the end of the
 * history need not take hours. */
static bool is_slow(const struct sim_attempt *at)
{
    const struct sim_world *w = at->keeper->world;
    struct gl_rng r;
    gl_rng_init(&r, w->seed ^ gl_str_hash(at->job) ^ gl_str_hash(at->process->step));
    return gl_rng_chance(&r, w->options.process_slow) && w->faults;
}

/* A number derived from the attempt's name. Its context counts as "default": the seeds kept in the
 * tests were found when every context had that name. */
static uint64_t name_number(const struct sim_attempt *at)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf name = {0};

    gl_buf_fmt(&name, "default/%.*s/%.*s", GL_STR_ARG(at->job), GL_STR_ARG(at->attempt));
    return gl_str_hash(gl_buf_view(&name));
}

/* Derived from the attempt's name, so that it does the same in every replay of the history,
 * whatever else was drawn before. */
static struct sim_behaviour draw_behaviour(const struct sim_attempt *at, bool noop)
{
    static const gl_str outputs[] = {GL_S("{\"n\":1,\"list\":[],\"ok\":true}"),
                                     GL_S("{\"n\":3,\"list\":[1,2,3],\"ok\":false}"),
                                     GL_S("{\"n\":6,\"list\":[\"a\",2],\"ok\":true}"),
                                     GL_S("{\"n\":9,\"list\":[0,1,2,3,4,5,6,7,8],\"ok\":1}"),
                                     GL_S("[1,2,3]"),
                                     GL_S("\"text\"")};
    const struct sim_world *w = at->keeper->world;
    const struct sim_options *o = &w->options;
    struct gl_rng r;
    gl_rng_init(&r, w->seed ^ name_number(at));
    bool breaks = gl_rng_chance(&r, o->process_breaks);
    bool slow = is_slow(at);
    bool fails = gl_rng_chance(&r, o->process_fails);
    bool killed = fails && gl_rng_chance(&r, 200000);
    bool says = gl_rng_chance(&r, 700000);
    uint64_t what = gl_rng_below(&r, GL_COUNT(outputs));
    gl_ms longest = slow ? LONG_MS : SHORT_MS >> gl_rng_below(&r, 8);
    struct sim_behaviour b = {.result = {.end = GL_EXEC_EXITED}};
    b.lasts_ms = noop || breaks ? 0 : gl_rng_range(&r, 0, longest);
    b.deaf = gl_rng_chance(&r, o->process_deaf);
    b.term_ms = gl_rng_range(&r, 0, TERM_MS);
    if (noop) {
        return b;
    }
    if (breaks) {
        b.result.end = GL_EXEC_NOT_EXECUTED;
        b.result.error = GL_S("simulated: no such program");
    } else if (killed) {
        b.result.end = GL_EXEC_SIGNALED;
        b.result.signal = 11;
    } else if (fails) {
        b.result.exit_code = 1;
    } else if (says) {
        b.result.output = outputs[what];
    }
    b.mute = at->beacon_ms > 0 && !breaks && gl_rng_chance(&r, o->process_mute);
    return b;
}

static void plan(struct sim_attempt *at, const struct sim_command *cmd)
{
    struct sim_keeper *k = at->keeper;
    struct sim_behaviour b = draw_behaviour(at, cmd->noop);
    if (cmd->is_unit) {
        sim_workers_speak(k->world, cmd, &b, &at->process->said);
    }
    if (k->watch.on_plan != NULL) {
        k->watch.on_plan(k->watch.owner, at->process, &b);
        if (cmd->is_unit) { /* the checkers know its output */
            struct gl_buf said = {0};
            gl_buf_str(&said, b.result.output);
            gl_buf_done(&at->process->said);
            at->process->said = said;
            b.result.output = gl_buf_view(&at->process->said);
        }
    }
    gl_ms now = k->world->now;
    at->planned = b.result;
    at->deaf = b.deaf;
    at->term_ms = b.term_ms;
    at->ends_at = b.mute ? INT64_MAX : now + b.lasts_ms;
    at->beacon_ms = b.mute ? 0 : at->beacon_ms;
    at->says_ms = b.says_ms;
    gl_ms killed_at = now + cmd->timeout_ms + (at->deaf ? cmd->grace_ms : 0);
    if (cmd->timeout_ms != 0 && killed_at < at->ends_at) {
        at->planned = (struct gl_exec_result){.end = GL_EXEC_TIMEOUT, .signal = at->deaf ? 9 : 15};
        at->ends_at = killed_at;
    }
}

/* Delivers the lines that no node has received to the connected node, each line once. */
void sim_keeper_tell(struct sim_attempt *at)
{
    struct sim_keeper *k = at->keeper;
    for (struct gl_link *l = k->clients.prev; l != &k->clients; l = l->prev) {
        while (at->told_n < at->process->lines_n) {
            char line[SIM_WORKERS_LINE];
            bool beats = sim_workers_line(k->world, at->process, at->told_n, line);
            if (!sim_exec_on_said(GL_CONTAINER(l, struct sim_exec, link), at, gl_str_of(line))) {
                break; /* not this one: it is not connected */
            }
            at->process->told_at[at->told_n++] = k->world->now;
            at->process->beat_at = beats ? k->world->now : at->process->beat_at;
        }
    }
}

static void on_saying(struct sim_call *call)
{
    struct sim_attempt *at = GL_CONTAINER(call, struct sim_attempt, saying);
    at->process->lines_n++;
    sim_keeper_tell(at);
    if (at->process->lines_n < SIM_LINES_MAX) {
        sim_world_at(at->keeper->world, call, at->keeper->world->now + at->says_ms);
    }
}

static void on_synced(struct sim_call *call)
{
    struct sim_attempt *at = GL_CONTAINER(call, struct sim_attempt, syncing);
    struct sim_keeper *k = at->keeper;
    at->running = false;
    at->result = at->planned;
    at->process->recorded = true;
    at->process->end = at->result.end;
    at->process->exit_code = at->result.exit_code;
    at->result.started_at = at->process->started_at + *k->wall;
    at->result.ended_at = at->process->ended_at + *k->wall;
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        sim_exec_on_ended(GL_CONTAINER(l, struct sim_exec, link), at);
    }
}

static void on_ending(struct sim_call *call)
{
    struct sim_attempt *at = GL_CONTAINER(call, struct sim_attempt, ending);
    struct sim_world *w = at->keeper->world;
    process_end(at, "process ended");
    sim_world_cancel(w, &at->beacon);
    sim_world_cancel(w, &at->saying);
    bool slow = sim_world_fault(w, &at->keeper->rng, w->options.keeper_unsynced);
    gl_ms takes = slow ? gl_rng_range(&at->keeper->rng, 1, SYNC_MS) : 0;
    sim_world_at(w, &at->syncing, w->now + takes);
}

static void on_beacon(struct sim_call *call)
{
    struct sim_attempt *at = GL_CONTAINER(call, struct sim_attempt, beacon);
    struct sim_keeper *k = at->keeper;
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        sim_exec_on_beacon(GL_CONTAINER(l, struct sim_exec, link), at);
    }
    sim_world_at(k->world, &at->beacon, k->world->now + at->beacon_ms);
}

static struct sim_attempt *attempt_new(struct sim_keeper *k, const struct sim_command *cmd)
{
    size_t n = cmd->context.n + cmd->job.n + cmd->attempt.n + 2;
    struct sim_attempt *at = gl_mem_alloc(sizeof(*at) + n);
    char *to = (char *)(at + 1);
    at->key = (gl_str){.p = to, .n = n};
    at->context = copy_into(&to, cmd->context);
    *to++ = '/';
    at->job = copy_into(&to, cmd->job);
    *to++ = '/';
    at->attempt = copy_into(&to, cmd->attempt);
    at->keeper = k;
    at->token = cmd->token;
    at->grace_ms = cmd->grace_ms;
    at->beacon_ms = cmd->beacon_ms;
    sim_call_init(&at->ending, on_ending, NULL);
    sim_call_init(&at->syncing, on_synced, NULL);
    sim_call_init(&at->beacon, on_beacon, NULL);
    sim_call_init(&at->saying, on_saying, NULL);
    gl_map_add(&k->attempts, at->key, at);
    return at;
}

static struct sim_attempt *attempt_find(const struct sim_keeper *k, const struct sim_command *cmd)
{
    char key[768];
    int n = snprintf(key, sizeof(key), "%.*s/%.*s/%.*s", GL_STR_ARG(cmd->context),
                     GL_STR_ARG(cmd->job), GL_STR_ARG(cmd->attempt));
    GL_ASSERT(n > 0 && (size_t)n < sizeof(key));
    return gl_map_find(&k->attempts, (gl_str){.p = key, .n = (size_t)n});
}

/* Its node has vouched for it, with a session until then. */
static void note_heard(struct sim_attempt *at, gl_ms session_until)
{
    gl_ms now = at->keeper->world->now;
    gl_ms heard = at->needs_session && session_until < now ? session_until : now;
    at->heard_at = heard > at->heard_at ? heard : at->heard_at;
}

static void vouch(struct sim_attempt *at, const struct sim_command *cmd)
{
    at->incarnation = cmd->incarnation;
    note_heard(at, cmd->session_until);
}

static void attempt_start(struct sim_keeper *k, const struct sim_command *cmd)
{
    struct sim_attempt *at = attempt_new(k, cmd);
    at->running = true;
    at->process = ledger_add(k, cmd);
    k->running_n++;
    at->needs_session = cmd->needs_session;
    at->heard_at = k->world->now; /* in time: see on_start() */
    vouch(at, cmd);
    plan(at, cmd);
    SIM_TRACE(k->world, EXEC, .job = cmd->job, .step = at->process->step,
              .number = at->process->number, .token = cmd->token, .what = "process started");
    if (k->watch.on_start != NULL) {
        k->watch.on_start(k->watch.owner, at->process);
    }
    sim_world_at(k->world, &at->ending, at->ends_at);
    if (at->beacon_ms > 0) {
        sim_world_at(k->world, &at->beacon, k->world->now + at->beacon_ms);
    }
    if (at->says_ms > 0) {
        sim_world_at(k->world, &at->saying, k->world->now + at->says_ms);
    }
    if (k->orphan_grace_ms > 0 && !sim_call_waits(&k->orphan)) {
        sim_world_at(k->world, &k->orphan, k->world->now + k->orphan_grace_ms / PINGS_PER_GRACE);
    }
}

/* Sends SIGTERM, and SIGKILL if the process ignores that: after its grace, or `most_ms`. */
static void attempt_stop(struct sim_attempt *at, enum gl_exec_end why, gl_ms most_ms)
{
    struct sim_keeper *k = at->keeper;
    gl_ms takes = at->deaf ? at->grace_ms : at->term_ms;
    takes = takes < most_ms ? takes : most_ms;
    if (sim_call_waits(&at->ending) && k->world->now + takes < at->ends_at) {
        at->planned = (struct gl_exec_result){.end = why, .signal = at->deaf ? 9 : 15};
        at->ends_at = k->world->now + takes;
        sim_world_cancel(k->world, &at->ending);
        sim_world_at(k->world, &at->ending, at->ends_at);
    }
}

/* ---- orphans ---- */

/* A node that is connected and awake sends messages regularly. */
static const struct sim_exec *find_awake(const struct sim_keeper *k)
{
    for (const struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        const struct sim_exec *x = GL_CONTAINER(l, struct sim_exec, link);
        if (x->connected && (x->gate == NULL || !x->gate->shut) &&
            (x->fuse == NULL || !x->fuse->blown)) {
            return x;
        }
    }
    return NULL;
}

/* A slow message delays everything after it, including the proof that the node lives; and a node
 * that cannot read messages sends none. */
static bool is_behind(const struct sim_exec *x)
{
    gl_ms soon = x->world->now + x->world->options.exec_delay_ms;
    return x->last_arrival > soon || x->last_delivery > soon;
}

/* A node vouches for attempts it has started or asked about, not for those of an earlier one. */
static gl_ms last_heard(struct sim_attempt *at, const struct sim_exec *awake)
{
    if (awake != NULL && (awake->incarnation == at->incarnation || GL_PLANT(64))) {
        note_heard(at, awake->session_until);
    }
    return at->heard_at;
}

static void on_orphan(struct sim_call *call)
{
    struct sim_keeper *k = GL_CONTAINER(call, struct sim_keeper, orphan);
    const struct sim_exec *x = find_awake(k);
    gl_ms last = k->orphan_grace_ms / 4; /* for terminating: when the grace is over they are dead */
    gl_ms now = k->world->now, next = now + k->orphan_grace_ms / PINGS_PER_GRACE + 1;
    struct sim_attempt *at;
    if (k->running_n == 0) {
        return; /* the next process schedules it again */
    }
    x = x != NULL && !is_behind(x) ? x : NULL;
    for (size_t i = 0; (at = gl_map_next(&k->attempts, &i)) != NULL;) {
        gl_ms due = last_heard(at, x) + k->orphan_grace_ms - last;
        if (at->running && due > now) {
            next = due < next ? due : next;
        } else if (at->running && at->planned.end != GL_EXEC_ORPHANED) {
            SIM_TRACE(k->world, EXEC, .number = now - at->heard_at, .what = "an orphan is ended",
                      .from = k->node);
            attempt_stop(at, GL_EXEC_ORPHANED, last);
        }
    }
    sim_world_at(k->world, call, next); /* a node may connect, and disconnect again */
}

/* ---- commands ---- */

static gl_str step_part(gl_str attempt)
{
    while (attempt.n > 0 && attempt.p[attempt.n - 1] != ':') {
        attempt.n--;
    }
    return attempt;
}

/* Like the real one: an earlier attempt of the same step ends first. */
static bool earlier_runs(struct sim_keeper *k, const struct sim_command *cmd)
{
    struct sim_attempt *at;
    bool runs = false;
    for (size_t i = 0; (at = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (at->running && gl_str_eq(at->process->job, cmd->job) &&
            gl_str_eq(step_part(at->process->attempt), step_part(cmd->attempt))) {
            attempt_stop(at, GL_EXEC_STOPPED, INT64_MAX);
            runs = true;
        }
    }
    return runs;
}

static int on_start(struct sim_keeper *k, const struct sim_command *cmd)
{
    struct sim_attempt *at = attempt_find(k, cmd);
    if (!floor_raise(k, cmd)) {
        return GL_E_STALE;
    }
    if (at != NULL) {
        vouch(at, cmd);
        return 0;
    }
    /* Floors die with a keeper: a decision from before its time may be older than one it has never
     * received. */
    if (!gl_str_is(cmd->epoch, k->epoch)) {
        return GL_E_STALE;
    }
    if (k->world->now + cmd->offset > cmd->start_by) {
        return GL_E_STALE;
    }
    if (earlier_runs(k, cmd)) {
        return GL_E_UNAVAILABLE;
    }
    attempt_start(k, cmd);
    return 0;
}

static int on_attach(struct sim_keeper *k, const struct sim_command *cmd, struct sim_answer *answer)
{
    if (!floor_raise(k, cmd)) {
        return GL_E_STALE;
    }
    struct sim_attempt *at = attempt_find(k, cmd);
    if (at != NULL) {
        vouch(at, cmd);
    }
    if (at == NULL) {
        answer->state = gl_str_is(cmd->epoch, k->epoch) ? GL_EXEC_NEVER : GL_EXEC_LOST;
    } else if (at->running) {
        answer->state = GL_EXEC_RUNNING;
    } else {
        answer->state = GL_EXEC_ENDED;
        answer->result = at->result;
    }
    return 0;
}

static int on_stop(struct sim_keeper *k, const struct sim_command *cmd)
{
    if (!floor_raise(k, cmd)) {
        return GL_E_STALE;
    }
    struct sim_attempt *at = attempt_find(k, cmd);
    if (at != NULL) {
        attempt_stop(at, GL_EXEC_STOPPED, cmd->grace_ms > 0 ? cmd->grace_ms : INT64_MAX);
    }
    return 0;
}

static void on_ack(struct sim_keeper *k, const struct sim_command *cmd)
{
    struct sim_attempt *at = attempt_find(k, cmd);
    if (floor_raise(k, cmd) && at != NULL && !at->running) {
        attempt_free(at);
    }
}

static void on_arrival(struct sim_call *call)
{
    struct sim_command *cmd = GL_CONTAINER(call, struct sim_command, arrival);
    struct sim_keeper *k = cmd->keeper;
    GL_ASSERT(k->up);
    struct sim_answer answer = {0};
    switch (cmd->type) {
    case SIM_COMMAND_START:
        answer.status = on_start(k, cmd);
        break;
    case SIM_COMMAND_ATTACH:
        answer.status = on_attach(k, cmd, &answer);
        break;
    case SIM_COMMAND_STOP:
        answer.status = on_stop(k, cmd);
        break;
    case SIM_COMMAND_ACK:
        on_ack(k, cmd);
        break;
    case SIM_COMMAND_LIST:
        break; /* the handle copies the list itself */
    }
    if (cmd->op != NULL) {
        sim_exec_on_answer(cmd->op, &answer);
    }
    sim_command_free(cmd);
}

struct sim_command *sim_keeper_command(struct sim_keeper *k, enum sim_command_type type,
                                       const struct gl_attempt_key *key, gl_str epoch, gl_str by)
{
    size_t n = key->context.n + key->job.n + key->attempt.n + epoch.n + by.n;
    struct sim_command *cmd = gl_mem_alloc(sizeof(*cmd) + n);
    char *at = (char *)(cmd + 1);
    cmd->context = copy_into(&at, key->context);
    cmd->job = copy_into(&at, key->job);
    cmd->attempt = copy_into(&at, key->attempt);
    cmd->epoch = copy_into(&at, epoch);
    cmd->by = copy_into(&at, by);
    cmd->keeper = k;
    cmd->type = type;
    gl_list_init(&cmd->link);
    sim_call_init(&cmd->arrival, on_arrival, NULL);
    return cmd;
}

void sim_keeper_send(struct sim_keeper *k, struct sim_command *command, gl_ms arrives_at)
{
    GL_ASSERT(k->up);
    gl_list_push(&k->commands, &command->link);
    sim_world_at(k->world, &command->arrival, arrives_at);
}

void sim_command_free(struct sim_command *command)
{
    sim_world_cancel(command->keeper->world, &command->arrival);
    gl_list_remove(&command->link);
    gl_buf_done(&command->given);
    gl_buf_done(&command->message);
    gl_buf_done(&command->state);
    gl_mem_free(command);
}

bool sim_keeper_welcome(struct sim_keeper *k, struct sim_exec *x)
{
    if (k->world->options.keeper_lenient != 0) {
        return true;
    }
    if (x->incarnation < k->incarnation) {
        return false;
    }
    k->incarnation = x->incarnation;
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        struct sim_exec *other = GL_CONTAINER(l, struct sim_exec, link);
        if (other != x) {
            sim_exec_hang_up(other);
        }
    }
    for (struct gl_link *l = k->commands.next, *next; l != &k->commands; l = next) {
        struct sim_command *command = GL_CONTAINER(l, struct sim_command, link);
        next = l->next;
        if (command->incarnation != x->incarnation) {
            sim_command_free(command); /* it was sent over a connection that is closed */
        }
    }
    return true;
}

/* ---- crashes ---- */

static void children_die(struct sim_keeper *k)
{
    struct sim_attempt *at;
    for (size_t i = 0; (at = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (at->running) {
            if (sim_call_waits(&at->ending)) {
                process_end(at, "process died with the keeper");
            }
            attempt_free(at); /* its end can never be known */
        }
    }
}

void sim_keeper_crash(struct sim_keeper *k, gl_ms away_ms)
{
    if (!k->up) {
        return;
    }
    SIM_TRACE(k->world, EXEC, .number = (int64_t)k->epoch_n, .what = "keeper dies");
    k->up = false;
    children_die(k);
    floors_forget(k);
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        sim_exec_on_keeper_down(GL_CONTAINER(l, struct sim_exec, link));
    }
    struct gl_link *l;
    while ((l = gl_list_first(&k->commands)) != NULL) {
        sim_command_free(GL_CONTAINER(l, struct sim_command, link));
    }
    sim_world_at(k->world, &k->restart, k->world->now + away_ms);
}

static void on_restart(struct sim_call *call)
{
    struct sim_keeper *k = GL_CONTAINER(call, struct sim_keeper, restart);
    k->up = true;
    name_epoch(k);
    SIM_TRACE(k->world, EXEC, .number = (int64_t)k->epoch_n, .what = "keeper starts");
    for (struct gl_link *l = k->clients.next; l != &k->clients; l = l->next) {
        sim_exec_on_keeper_up(GL_CONTAINER(l, struct sim_exec, link));
    }
}
