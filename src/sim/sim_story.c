#include "sim/sim_story.h"

#include <stdio.h>

#include "base/check.h"
#include "base/id.h"

enum {
    PATIENCE_MS = 3600 * 1000,
    USUAL_MS = 1000,
    USUAL_TERM_MS = 100,
    TTL_MS = 10000, /* of sessions, if there are several machines */
    GRACE_MS = 10000
};

/* ---- the trace ---- */

/* The letter of a job, by the order of first appearance. */
static char letter_of(struct sim_story *s, gl_str id)
{
    for (size_t i = 0; i < s->jobs_n; i++) {
        if (gl_str_is(id, s->jobs[i])) {
            return (char)('A' + i);
        }
    }
    GL_ASSERT(s->jobs_n < SIM_STORY_JOBS_MAX);
    memcpy(s->jobs[s->jobs_n], id.p, id.n);
    s->jobs[s->jobs_n][id.n] = 0;
    return (char)('A' + s->jobs_n++);
}

static bool is_wanted(const struct sim_story *s, gl_str kind)
{
    gl_str rest = gl_str_of(s->options.kinds);
    while (rest.n > 0) {
        if (gl_str_eq(gl_str_cut(rest, ' ', &rest), kind)) {
            return true;
        }
    }
    return false;
}

/* "t=3000 n1.1 step job=01J... step=a ready->queued" becomes "3000 n1.1 step job=A step=a
 * ready->queued". */
static void on_line(void *owner, const char *line)
{
    struct sim_story *s = owner;
    gl_str rest = gl_str_of(line);
    gl_str time = gl_str_cut(rest, ' ', &rest);
    gl_str node = gl_str_cut(rest, ' ', &rest);
    gl_str kind = gl_str_cut(rest, ' ', &rest);
    bool by_sim = gl_str_is(node, "sim");
    if (!is_wanted(s, kind) || (by_sim && !is_wanted(s, GL_S("sim")))) {
        return;
    }
    struct gl_buf *out = &s->lines;
    gl_buf_fmt(out, "%.*s %.*s %.*s", (int)time.n - 2, time.p + 2, GL_STR_ARG(node),
               GL_STR_ARG(kind));
    while (rest.n > 0) {
        gl_str word = gl_str_cut(rest, ' ', &rest);
        gl_str job = {.p = word.p + 4, .n = word.n > 4 ? word.n - 4 : 0};
        if (gl_str_starts(word, GL_S("job=")) && gl_id_valid(job)) {
            gl_buf_fmt(out, " job=%c", letter_of(s, job));
        } else {
            gl_buf_fmt(out, " %.*s", GL_STR_ARG(word));
        }
    }
    gl_buf_char(out, '\n');
    s->lines_n++;
}

void sim_story_skip(struct sim_story *s)
{
    gl_buf_reset(&s->lines);
    s->lines_n = 0;
}

static size_t count_lines(gl_str text)
{
    size_t n = text.n > 0 && text.p[text.n - 1] != '\n' ? 1 : 0;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '\n' ? 1 : 0;
    }
    return n;
}

/* Without the spaces that align lines on the page. */
static gl_str next_line(gl_str *rest)
{
    return gl_str_trim(gl_str_cut(*rest, '\n', rest));
}

const char *sim_story_expect(struct sim_story *s, const char *text)
{
    gl_str want = gl_str_of(text);
    size_t n = count_lines(want);
    gl_ms until = s->world.now + PATIENCE_MS;
    while (s->lines_n < n && s->world.now <= until && !s->world.failed &&
           sim_world_step(&s->world)) {
    }
    gl_str have = gl_buf_view(&s->lines);
    bool same = s->lines_n >= n && !s->world.failed;
    for (size_t i = 0; i < n && same; i++) {
        same = gl_str_eq(next_line(&want), next_line(&have));
    }
    if (!same) {
        (void)snprintf(s->text, sizeof(s->text), "expected:\n%s\ntraced:\n%.*s\n%s", text,
                       GL_STR_ARG(gl_buf_view(&s->lines)), s->world.failure);
        return s->text;
    }
    memmove(s->lines.p, have.p, have.n); /* lines traced beyond it are expected next */
    s->lines.n = have.n;
    s->lines_n -= n;
    return NULL;
}

/* ---- processes ---- */

void sim_story_process(struct sim_story *s, const char *attempt, gl_ms lasts_ms, int exit_code)
{
    GL_ASSERT(s->processes_n < SIM_STORY_PROCESSES_MAX);
    struct sim_story_process *p = &s->processes[s->processes_n++];
    (void)snprintf(p->attempt, sizeof(p->attempt), "%s", attempt);
    p->behaviour = (struct sim_behaviour){
        .lasts_ms = lasts_ms,
        .result = {.end = GL_EXEC_EXITED, .exit_code = exit_code},
        .term_ms = USUAL_TERM_MS,
    };
}

void sim_story_says(struct sim_story *s, const char *attempt, const char *document)
{
    sim_story_process(s, attempt, USUAL_MS, 0);
    s->processes[s->processes_n - 1].behaviour.result.output = gl_str_of(document);
}

static void on_plan(void *owner, const struct sim_process *p, struct sim_behaviour *b)
{
    struct sim_checks *c = owner;
    struct sim_story *s = GL_CONTAINER(c, struct sim_story, checks);
    *b = (struct sim_behaviour){
        .lasts_ms = USUAL_MS, .result = {.end = GL_EXEC_EXITED}, .term_ms = USUAL_TERM_MS};
    for (size_t i = s->processes_n; i > 0; i--) {
        const struct sim_story_process *mine = &s->processes[i - 1];
        if (gl_str_is(p->attempt, mine->attempt) || gl_str_is(p->step, mine->attempt)) {
            *b = mine->behaviour;
            return;
        }
    }
}

/* ---- nodes ---- */

static bool are_several(const struct sim_story *s)
{
    return s->machines_n > 1;
}

void sim_story_start(struct sim_story *s)
{
    struct sim_story_machine *m = s->at;
    GL_ASSERT(m->node == NULL);
    struct sim_node_options options = {.incarnation = ++m->incarnations,
                                       .guest = s->options.guests,
                                       .stack = s->options.stack,
                                       .pools = m->pools,
                                       .hot_jobs_max = s->options.hot_jobs_max,
                                       .keep = s->options.keep,
                                       .round_trip = true};
    if (are_several(s)) {
        options.machine = (uint32_t)(m - s->machines) + 1;
        options.session_ttl_ms = TTL_MS;
        options.orphan_grace_ms = m->keeper.orphan_grace_ms;
    }
    m->node = sim_node_new(&s->world, &s->disk, &m->keeper, &options);
    gl_list_push(&s->nodes, &m->node->link);
}

void sim_story_kill(struct sim_story *s)
{
    GL_ASSERT(s->at->node != NULL);
    sim_node_kill(s->at->node);
    s->at->node = NULL;
}

void sim_story_sleep(struct sim_story *s)
{
    GL_ASSERT(s->at->node != NULL && s->at->sleeper == NULL);
    s->at->sleeper = s->at->node;
    s->at->node = NULL;
    sim_node_sleep(s->at->sleeper);
}

void sim_story_wake(struct sim_story *s)
{
    GL_ASSERT(s->at->sleeper != NULL);
    sim_node_wake(s->at->sleeper);
}

void sim_story_run(struct sim_story *s, gl_ms span)
{
    sim_world_run(&s->world, s->world.now + span);
}

/* ---- several machines ---- */

void sim_story_at(struct sim_story *s, uint32_t machine)
{
    GL_ASSERT(machine >= 1 && machine <= s->machines_n);
    s->at = &s->machines[machine - 1];
}

static void cut(struct sim_story_machine *m, gl_ms until)
{
    struct sim_node *nodes[] = {m->node, m->sleeper};
    for (size_t i = 0; i < GL_COUNT(nodes); i++) {
        if (nodes[i] != NULL) {
            sim_store_cut(&nodes[i]->store, until);
        }
    }
}

void sim_story_cut(struct sim_story *s, gl_ms span)
{
    cut(s->at, s->world.now + span);
}

void sim_story_outage(struct sim_story *s, gl_ms span)
{
    s->disk.away_until = s->world.now + span;
    for (size_t i = 0; i < s->machines_n; i++) {
        cut(&s->machines[i], s->disk.away_until);
    }
}

size_t sim_story_ran(const struct sim_story *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->machines_n; i++) {
        n += s->machines[i].keeper.ledger_n;
    }
    return n;
}

/* ---- beginning and end ---- */

static void add_machine(struct sim_story *s)
{
    gl_ms grace = s->options.graces[s->machines_n];
    struct sim_story_machine *m = &s->machines[s->machines_n++];
    sim_keeper_init_at(&m->keeper, &s->world, (uint32_t)s->machines_n, &m->wall);
    m->pools = s->pools;
    if (s->options.gpu_at != 0 && s->options.gpu_at != s->machines_n) {
        m->pools.gpu_slots = 0;
    } else if (s->options.is_split) {
        m->pools.default_slots = m->pools.executor_slots = 0;
    }
    m->keeper.orphan_grace_ms = !s->disk.shared ? 0 : grace > 0 ? grace : GRACE_MS;
    if (s->machines_n == 1) {
        sim_checks_init(&s->checks, &s->world, &s->disk, &m->keeper, &m->pools);
    } else {
        sim_checks_add_keeper(&s->checks, &m->keeper, &m->pools);
    }
    m->keeper.watch.on_plan = on_plan;
}

void sim_story_begin(struct sim_story *s, const struct sim_story_options *options)
{
    *s = (struct sim_story){.options = *options};
    if (s->options.kinds == NULL) {
        s->options.kinds = "job step exec owner";
    }
    sim_world_init(&s->world, 1);
    s->world.options.store_delay_ms = options->store_ms;
    s->world.cluster.ttl_ms = TTL_MS;
    s->world.print = on_line;
    s->world.print_owner = s;
    s->pools = (struct sim_pools){.default_slots = options->slots == 0 ? 8 : options->slots,
                                  .gpu_slots = 1};
    sim_disk_init(&s->disk);
    s->disk.shared = options->machines > 1;
    gl_list_init(&s->nodes);
    do {
        add_machine(s);
    } while (s->machines_n < options->machines);
    for (size_t i = s->machines_n; i > 0; i--) {
        s->at = &s->machines[i - 1];
        sim_story_start(s);
    }
}

static void bury(struct sim_story_machine *m)
{
    if (m->sleeper != NULL) {
        sim_node_kill(m->sleeper);
    }
    if (m->node != NULL) {
        sim_node_kill(m->node);
    }
}

bool sim_story_end(struct sim_story *s)
{
    for (size_t i = 0; i < s->machines_n; i++) {
        bury(&s->machines[i]);
    }
    bool ok = !s->world.failed;
    sim_checks_done(&s->checks);
    for (size_t i = 0; i < s->machines_n; i++) {
        sim_keeper_done(&s->machines[i].keeper);
    }
    sim_disk_done(&s->disk);
    sim_world_done(&s->world);
    gl_buf_done(&s->lines);
    gl_buf_done(&s->body);
    return ok;
}

/* ---- requests ---- */

static void on_answer(void *owner, struct sim_ask *ask, bool answered)
{
    struct sim_story *s = owner;
    gl_buf_reset(&s->body);
    if (!answered) {
        return;
    }
    s->answer = ask->rq.code;
    s->reason = ask->rq.code == 0 ? GL_REASON_NONE : ask->rq.why.reason;
    if (ask->rq.code == 0) {
        gl_buf_str(&s->body, ask->rq.body);
    } else {
        gl_buf_c(&s->body, ask->rq.why.text);
    }
    gl_buf_char(&s->body, 0);
}

static void send(struct sim_story *s, struct sim_ask *ask)
{
    GL_ASSERT(s->at->node != NULL);
    s->answer = 1;
    ask->done = on_answer;
    ask->owner = s;
    sim_node_ask(s->at->node, ask);
}

static void submit(struct sim_story *s, const char *run_id, gl_str flow)
{
    struct sim_ask *ask = sim_ask_new(GL_VERB_SUBMIT);
    ask->rq.submission.compiled = gl_str_dup(&ask->arena, flow);
    ask->rq.submission.run_id = gl_str_dup(&ask->arena, gl_str_of(run_id));
    send(s, ask);
}

void sim_story_submit(struct sim_story *s, const char *run_id, const char *flow, uint32_t attempts)
{
    struct gl_buf text = {0};
    sim_flows_plain(flow, attempts, &text);
    submit(s, run_id, gl_buf_view(&text));
    gl_buf_done(&text);
}

void sim_story_compiled(struct sim_story *s, const char *run_id, const char *text)
{
    submit(s, run_id, gl_str_of(text));
}

void sim_story_flow(struct sim_story *s, const char *run_id, const char *json)
{
    struct gl_arena a = {0};
    struct gl_buf text = {0};
    struct gl_json j;
    struct gl_flow *flow;
    struct gl_flow_errors errors = {0};
    int rc = gl_json_parse(&j, gl_str_of(json), GL_FLOW_BYTES_MAX, &a, NULL);
    if (rc == 0) {
        rc = gl_flow_parse(&j, gl_json_root(&j), NULL, &a, &flow, &errors);
    }
    if (rc != 0) {
        sim_world_fail(&s->world, "story: a flow cannot be parsed: %.*s",
                       GL_STR_ARG(errors.items[0].text));
    } else {
        gl_flow_encode(flow, &text);
        submit(s, run_id, gl_buf_view(&text));
    }
    gl_buf_done(&text);
    gl_arena_done(&a);
}

static void tell_checkers(struct sim_story *s, const struct gl_request *rq)
{
    const struct sim_fact_job *j;
    for (size_t i = 0; (j = gl_map_next(&s->checks.facts.jobs, &i)) != NULL;) {
        if (gl_str_eq(j->run_id, rq->job)) {
            sim_checks_ask(&s->checks, rq, j->id);
        }
    }
}

static enum gl_verb verb_of(const char *word)
{
    size_t i = 0;
    while (strcmp(gl_verbs[i].word, word) != 0) {
        GL_ASSERT(++i < GL_VERB_COUNT);
    }
    return (enum gl_verb)i;
}

void sim_story_ask(struct sim_story *s, const char *verb, const char *run_id, const char *step,
                   const char *decision)
{
    struct sim_ask *ask = sim_ask_new(verb_of(verb));
    gl_str about = gl_str_dup(&ask->arena, gl_str_of(step));
    gl_str said = gl_str_dup(&ask->arena, gl_str_of(decision));
    ask->rq.job = gl_str_dup(&ask->arena, gl_str_of(run_id));
    if (ask->rq.verb == GL_VERB_STATUS || ask->rq.verb == GL_VERB_WHY) {
        ask->rq.status.step = about;
    } else if (ask->rq.verb == GL_VERB_RETRY) {
        ask->rq.submission.from = about;
    } else if (ask->rq.verb == GL_VERB_SIGNAL) { /* the checkers identify it by its number */
        ask->rq.command.about = about;
        ask->rq.command.value =
            gl_str_fmt(&ask->arena, "{\"n\":%llu}", (unsigned long long)++s->signals_n);
    } else if (ask->rq.verb == GL_VERB_SEND) {
        ask->rq.command = (struct gl_command_request){.about = about, .value = said};
    } else if (gl_verbs[ask->rq.verb].kind == GL_KIND_COMMAND) {
        ask->rq.command = (struct gl_command_request){.about = about, .decision = said};
    } else {
        GL_ASSERT(about.n == 0 && said.n == 0);
    }
    if (gl_verbs[ask->rq.verb].kind == GL_KIND_COMMAND) {
        ask->rq.command.who = GL_S("a person");
    }
    tell_checkers(s, &ask->rq);
    send(s, ask);
}

void sim_story_trim(struct sim_story *s, int64_t keep_jobs)
{
    struct sim_ask *ask = sim_ask_new(GL_VERB_TRIM);
    ask->rq.trim.keep_jobs = keep_jobs;
    send(s, ask);
}
