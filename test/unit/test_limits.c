/* Who may start when: ageing, concurrency and rates. The core driven by hand, over a store that is
 * a list of records and outlives it, and an executor that is the test itself. */
#include "core/place/quotas.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS_MAX = 16384 };

struct row { /* a record, or an entry of the index */
    gl_str kind, id, value, owner;
    uint64_t rev, token;
    int64_t score;
    bool live;
};

struct run { /* an attempt that was started */
    char job[32], attempt[64];
    uint64_t token;
    gl_ms at;
    bool ended;
};

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    struct gl_arena arena;
    gl_ms now;
    struct gl_core_pool pools[2];
    uint32_t hot_max;
    unsigned life;
    struct row *rows;
    size_t rows_n, rows_cap;
    struct gl_map index; /* "kind/id" -> number of its row + 1 */
    struct run *runs;
    size_t runs_n, taken_n;
    size_t ended_n, loads_n;
    uint64_t refused_op;
    bool refuse_next, deaf; /* refuse the next commit; keep loads to ourselves */
    enum gl_exec_state attached;
    uint32_t jobs_n;
    char job[32]; /* the latest */
};

static void feed(struct rig *r, struct gl_event ev);

/* ---- the store ---- */

static gl_str row_key(struct rig *r, gl_str kind, gl_str id)
{
    return gl_str_fmt(&r->arena, "%.*s/%.*s", GL_STR_ARG(kind), GL_STR_ARG(id));
}

static struct row *row_find(struct rig *r, gl_str kind, gl_str id)
{
    uintptr_t number = (uintptr_t)gl_map_find(&r->index, row_key(r, kind, id));

    return number > 0 ? &r->rows[number - 1] : NULL;
}

static struct row *row_get(struct rig *r, gl_str kind, gl_str id)
{
    struct row *row = row_find(r, kind, id);

    if (row == NULL) {
        if (r->rows_n == r->rows_cap) {
            r->rows_cap = r->rows_cap * 2 + 64;
            r->rows = realloc(r->rows, r->rows_cap * sizeof(*r->rows));
        }
        row = &r->rows[r->rows_n++];
        *row = (struct row){.kind = gl_str_dup(&r->arena, kind), .id = gl_str_dup(&r->arena, id)};
        gl_map_add(&r->index, row_key(r, kind, id), (void *)(uintptr_t)r->rows_n);
    }
    return row;
}

static void apply(struct rig *r, const struct gl_write *w)
{
    struct row *row;

    switch (w->type) {
    case GL_WRITE_PUT:
    case GL_WRITE_PUT_NEW:
        row = row_get(r, w->kind, w->id);
        row->value = gl_str_dup(&r->arena, w->value);
        row->owner = gl_str_dup(&r->arena, w->owner);
        row->rev = w->rev;
        row->token = w->token;
        row->live = w->live;
        break;
    case GL_WRITE_INDEX:
        row = row_get(r, w->kind, w->id);
        row->score = w->score;
        row->live = true;
        break;
    case GL_WRITE_UNINDEX:
        row_get(r, w->kind, w->id)->live = false;
        break;
    default:
        break;
    }
}

static void commit(struct rig *r, const struct gl_effect *e)
{
    int64_t code = r->refuse_next ? GL_E_CONFLICT : 0;

    r->refused_op = r->refuse_next ? e->op : r->refused_op;
    r->refuse_next = false;
    for (size_t i = 0; code == 0 && i < e->tx->writes_n; i++) {
        apply(r, &e->tx->writes[i]);
    }
    feed(r, (struct gl_event){.type = GL_EV_DONE, .job = e->job, .op = e->op, .code = code});
}

static struct gl_event_record record_of(const struct rig *r, const struct row *row)
{
    char session[16];

    (void)snprintf(session, sizeof(session), "n#%u", r->life);
    return (struct gl_event_record){.kind = row->kind,
                                    .id = row->id,
                                    .owner = row->owner,
                                    .value = row->value,
                                    .rev = row->rev,
                                    .token = row->token,
                                    .owner_dead = !gl_str_is(row->owner, session)};
}

static void load(struct rig *r, gl_str job)
{
    struct gl_event_record *records = calloc(r->rows_n + 1, sizeof(*records));
    gl_str prefix = gl_str_fmt(&r->arena, "%.*s/", GL_STR_ARG(job));
    struct row *row = row_find(r, GL_S("job"), job);
    size_t n = 0;
    gl_str flow = {0};

    r->loads_n++;
    assert_non_null(row);
    records[n++] = record_of(r, row);
    for (size_t i = 0; i < r->rows_n; i++) {
        row = &r->rows[i];
        if (gl_str_is(row->kind, "step") && row->live && gl_str_starts(row->id, prefix)) {
            records[n++] = record_of(r, row);
        }
    }
    for (size_t i = 0; i < r->rows_n; i++) { /* flows are named like the jobs of this test */
        row = &r->rows[i];
        flow = gl_str_is(row->kind, "flow") && gl_str_ends(row->id, job) ? row->value : flow;
    }
    feed(r, (struct gl_event){.type = GL_EV_LOADED,
                              .job = job,
                              .flow = flow,
                              .records = {.items = records, .n = n}});
    free(records);
}

static void find(struct rig *r, const struct gl_range *range)
{
    struct gl_event_entry *entries = calloc(r->rows_n + 1, sizeof(*entries));
    size_t n = 0;

    for (int64_t score = GL_WAKE_RUNNING; score <= GL_WAKE_READY; score++) {
        for (size_t i = 0; i < r->rows_n && score >= range->score_min && score <= range->score_max;
             i++) {
            const struct row *row = &r->rows[i];

            if (gl_str_is(row->kind, "wake") && row->live && row->score == score) {
                entries[n++] = (struct gl_event_entry){.score = score, .id = row->id};
            }
        }
    }
    feed(r, (struct gl_event){.type = GL_EV_FOUND, .entries = {.items = entries, .n = n}});
    free(entries);
}

/* ---- the executor, and the rest of the world ---- */

static void start(struct rig *r, const struct gl_effect *e)
{
    struct run *run = &r->runs[r->runs_n++];

    assert_true(r->runs_n < RUNS_MAX);
    (void)snprintf(run->job, sizeof(run->job), "%.*s", GL_STR_ARG(e->job));
    (void)snprintf(run->attempt, sizeof(run->attempt), "%.*s", GL_STR_ARG(e->attempt));
    run->token = e->token;
    run->at = r->now;
    run->ended = false;
    gl_spec_unref(e->spec);
    feed(r, (struct gl_event){.type = GL_EV_STARTED,
                              .job = e->job,
                              .attempt = e->attempt,
                              .number = e->start_number});
}

static void on_effect(struct rig *r, const struct gl_effect *e)
{
    if (e->after != 0 && e->after == r->refused_op) { /* what depends on it does not happen */
        if (e->spec != NULL) {
            gl_spec_unref(e->spec);
        }
        return;
    }
    switch (e->type) {
    case GL_FX_COMMIT:
        commit(r, e);
        break;
    case GL_FX_START:
        start(r, e);
        break;
    case GL_FX_LOAD:
        if (!r->deaf) {
            load(r, e->job);
        }
        break;
    case GL_FX_FIND:
        find(r, &e->range);
        break;
    case GL_FX_LIST:
        feed(r, (struct gl_event){.type = GL_EV_LISTED});
        break;
    case GL_FX_ATTACH:
        feed(r, (struct gl_event){.type = GL_EV_ATTACHED,
                                  .job = e->job,
                                  .attempt = e->attempt,
                                  .token = e->token,
                                  .state = (uint8_t)r->attached});
        break;
    case GL_FX_TELL:
        r->ended_n += e->ended;
        break;
    default:
        break;
    }
}

static void feed(struct rig *r, struct gl_event ev)
{
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};
    struct gl_arena mine = {0}; /* the event may borrow from effects that are freed meanwhile */

    ev.now = r->now;
    ev.context = GL_S("default");
    ev.job = gl_str_dup(&mine, ev.job);
    ev.attempt = gl_str_dup(&mine, ev.attempt);
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        on_effect(r, &out.items[i]);
    }
    gl_arena_done(&arena);
    gl_arena_done(&mine);
}

static void settle(struct rig *r)
{
    while (gl_core_next_due(r->core) <= r->now) {
        feed(r, (struct gl_event){.type = GL_EV_TICK});
    }
}

static void at(struct rig *r, gl_ms now)
{
    r->now = now;
    settle(r);
}

/* A node begins, over what the last one left behind. */
static void begin(struct rig *r)
{
    struct gl_core_config config = {.context = GL_S("default"),
                                    .pools = r->pools,
                                    .pools_n = GL_COUNT(r->pools),
                                    .hot_jobs_max = r->hot_max,
                                    .trace = &r->trace};
    struct gl_event_record *rates = calloc(r->rows_n + 1, sizeof(*rates));
    char session[16];
    size_t n = 0;

    r->core = gl_core_new(&config);
    (void)snprintf(session, sizeof(session), "n#%u", ++r->life);
    for (size_t i = 0; i < r->rows_n; i++) {
        if (gl_str_is(r->rows[i].kind, "rate")) {
            rates[n++] = record_of(r, &r->rows[i]);
        }
    }
    feed(r, (struct gl_event){.type = GL_EV_RATES, .records = {.items = rates, .n = n}});
    free(rates);
    feed(r, (struct gl_event){
                .type = GL_EV_SESSION, .session = gl_str_of(session), .number = r->life});
    feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .epoch = GL_S("e1")});
    settle(r);
}

static void crash_and_begin(struct rig *r)
{
    gl_core_free(r->core);
    begin(r);
}

static struct rig *rig_new(uint32_t slots, uint32_t gpu_slots)
{
    struct rig *r = calloc(1, sizeof(*r));

    r->runs = calloc(RUNS_MAX, sizeof(*r->runs));
    r->now = 1000000;
    r->attached = GL_EXEC_RUNNING;
    r->pools[0] = (struct gl_core_pool){.name = GL_S("default"), .slots = slots};
    r->pools[1] = (struct gl_core_pool){.name = GL_S("gpu"), .slots = gpu_slots};
    begin(r);
    return r;
}

static void rig_free(struct rig *r)
{
    gl_core_free(r->core);
    gl_arena_done(&r->arena);
    gl_map_done(&r->index);
    free(r->rows);
    free(r->runs);
    free(r);
}

/* ---- flows ---- */

/* What limits a step, in words: "c=KEY/MAX r=KEY/MS p=PRIORITY pool=NAME n=SLOTS". */
static void wish(struct gl_step_spec *s, gl_str word)
{
    gl_str value, number, name = gl_str_cut(word, '=', &value);
    gl_str key = gl_str_cut(value, '/', &number);
    int64_t n = 0;

    (void)gl_str_i64(gl_str_is(name, "p") || gl_str_is(name, "n") ? value : number, &n);
    if (gl_str_is(name, "c")) {
        s->limit_key = key;
        s->limit_max = (uint32_t)n;
    } else if (gl_str_is(name, "r")) {
        s->rate_key = key;
        s->rate_ms = n;
    } else if (gl_str_is(name, "p")) {
        s->priority = n;
    } else if (gl_str_is(name, "pool")) {
        s->pool = value;
    } else if (gl_str_is(name, "n")) {
        s->slots = (uint32_t)n;
    } else {
        fail_msg("no such wish: %.*s", GL_STR_ARG(name));
    }
}

/* "a c=db/1; b c=db/1": steps without parents, and what each wishes. */
static gl_str compile(struct rig *r, const char *text)
{
    gl_str rest = gl_str_dup(&r->arena, gl_str_of(text)), word;
    struct gl_flow flow = {.name = GL_S("test")};
    struct gl_step_spec *steps = GL_NEW_ARRAY(&r->arena, struct gl_step_spec, strlen(text) / 2 + 2);
    struct gl_buf out = {0};
    gl_str compiled;

    while (rest.n > 0) {
        gl_str one = gl_str_trim(gl_str_cut(rest, ';', &rest));
        struct gl_step_spec *s = &steps[flow.steps.n++];

        s->id = gl_str_cut(one, ' ', &one);
        s->driver = GL_S("noop");
        s->pool = GL_S("default");
        s->slots = 1;
        s->grace_ms = GL_GRACE_MS;
        s->retry = (struct gl_retry){
            .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 300000};
        while (one.n > 0) {
            word = gl_str_cut(one, ' ', &one);
            wish(s, word);
        }
    }
    flow.steps.items = steps;
    gl_flow_encode(&flow, &out);
    compiled = gl_str_dup(&r->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

static void submit(struct rig *r, const char *text)
{
    gl_str flow = compile(r, text);

    (void)snprintf(r->job, sizeof(r->job), "01HZZZZZZZZZZZZZZZZZ%06u", ++r->jobs_n);
    feed(r, (struct gl_event){.type = GL_EV_SUBMIT,
                              .job = gl_str_of(r->job),
                              .request = 1,
                              .flow = flow,
                              .flow_hash = gl_str_fmt(&r->arena, "flow of %s", r->job)});
    settle(r);
}

static void finish(struct rig *r, size_t run)
{
    struct run *it = &r->runs[run];

    assert_true(run < r->runs_n);
    assert_false(it->ended);
    it->ended = true;
    feed(r, (struct gl_event){.type = GL_EV_ENDED,
                              .job = gl_str_of(it->job),
                              .attempt = gl_str_of(it->attempt),
                              .token = row_find(r, GL_S("job"), gl_str_of(it->job))->token,
                              .end = GL_EXEC_EXITED});
    settle(r);
}

static void command(struct rig *r, const char *job, enum gl_command verb)
{
    feed(r, (struct gl_event){
                .type = GL_EV_COMMAND, .job = gl_str_of(job), .request = 2, .verb = (uint8_t)verb});
    settle(r);
}

/* The steps started since the last call, in order: "a b". */
static const char *started(struct rig *r)
{
    struct gl_buf b = {0};
    const char *text;

    for (; r->taken_n < r->runs_n; r->taken_n++) {
        gl_str rest;

        gl_buf_c(&b, b.n > 0 ? " " : "");
        gl_buf_str(&b, gl_str_cut(gl_str_of(r->runs[r->taken_n].attempt), ':', &rest));
    }
    text = gl_str_c(&r->arena, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

static const char *why(struct rig *r, const char *job, uint32_t step)
{
    struct gl_buf b = {0};
    const char *text = "";

    if (gl_slots_explain(r->core, gl_str_of(job), step, &b)) {
        text = gl_str_c(&r->arena, gl_buf_view(&b));
    }
    gl_buf_done(&b);
    return text;
}

/* ---- ageing ---- */

static void waiting_is_worth_a_point_of_priority_every_ten_seconds(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    submit(r, "a");
    submit(r, "old");
    at(r, r->now + 15000);
    submit(r, "keen p=1");
    submit(r, "keener p=2");
    assert_string_equal(started(r), "a");
    finish(r, 0);
    finish(r, 1);
    finish(r, 2);
    assert_string_equal(started(r), "keener old keen");
    rig_free(r);
}

static void what_a_step_has_waited_is_not_lost_in_a_restart(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    submit(r, "a");
    submit(r, "old");
    at(r, r->now + 15000);
    submit(r, "keen p=1");
    crash_and_begin(r);
    finish(r, 0);
    finish(r, 1);
    assert_string_equal(started(r), "a old keen");
    rig_free(r);
}

/* ---- concurrency ---- */

static void a_key_is_used_by_no_more_than_its_max_and_blocks_nobody_else(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/2; b c=db/2; c c=db/2; d c=db/2; x; y c=other/1");
    assert_string_equal(started(r), "a b x y");
    finish(r, 2);
    assert_string_equal(started(r), "");
    finish(r, 1);
    assert_string_equal(started(r), "c");
    finish(r, 0);
    assert_string_equal(started(r), "d");
    rig_free(r);
}

static void a_key_is_shared_by_jobs_and_goes_by_priority_then_age(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/1");
    at(r, r->now + 1000);
    submit(r, "b c=db/1");
    at(r, r->now + 1000);
    submit(r, "c c=db/1; d c=db/1 p=3");
    finish(r, 0);
    finish(r, 1);
    finish(r, 2);
    assert_string_equal(started(r), "a d b c");
    rig_free(r);
}

static void who_was_held_back_comes_back_to_its_old_place(void **state)
{
    struct rig *r = rig_new(2, 1);

    (void)state;
    submit(r, "a c=db/1; x; early c=db/1");
    at(r, r->now + 1000);
    submit(r, "late1");
    submit(r, "late2");
    finish(r, 0); /* frees the key and one slot: `early` has waited longest */
    finish(r, 1);
    assert_string_equal(started(r), "a x early late1");
    rig_free(r);
}

static void one_end_moves_one_of_many_that_wait(void **state)
{
    struct rig *r = rig_new(8, 1);
    struct gl_buf flow = {0};
    uint64_t calls;

    (void)state;
    for (int i = 0; i < 200; i++) {
        gl_buf_fmt(&flow, "s%d c=db/1;", i);
    }
    submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
    gl_buf_done(&flow);
    assert_int_equal(r->runs_n, 1);
    calls = r->core->quotas->calls_n;
    finish(r, 0);
    assert_int_equal(r->runs_n, 2);
    assert_int_equal(r->core->quotas->calls_n - calls, 1);
    rig_free(r);
}

static void a_full_pool_does_not_keep_a_key_from_another_pool(void **state)
{
    struct rig *r = rig_new(1, 4);

    (void)state;
    submit(r, "a c=db/1 pool=gpu; x; b c=db/1; c c=db/1 pool=gpu");
    assert_string_equal(started(r), "a x");
    finish(r, 0); /* `b` is first, but its pool is full */
    assert_string_equal(started(r), "c");
    rig_free(r);
}

static void a_large_request_that_is_held_back_starves_nobody(void **state)
{
    struct rig *r = rig_new(4, 1);

    (void)state;
    submit(r, "a c=db/1; big c=db/1 n=4; x; y");
    assert_string_equal(started(r), "a x y");
    finish(r, 1);
    finish(r, 0);
    submit(r, "later"); /* `big` is called now, and being first it keeps the slots free */
    assert_string_equal(started(r), "");
    finish(r, 2);
    assert_string_equal(started(r), "big");
    rig_free(r);
}

static void the_latest_asker_says_how_many(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/1; b c=db/1; c c=db/1");
    assert_string_equal(started(r), "a");
    submit(r, "d c=db/3");
    assert_string_equal(started(r), "b c");
    submit(r, "e c=db/1");
    finish(r, 0);
    finish(r, 1);
    assert_string_equal(started(r), "");
    finish(r, 2);
    assert_string_equal(started(r), "d");
    rig_free(r);
}

static void running_attempts_are_counted_again_after_a_restart(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/2; b c=db/2");
    submit(r, "c c=db/2; x");
    assert_string_equal(started(r), "a b x");
    crash_and_begin(r);
    submit(r, "d c=db/2");
    assert_string_equal(started(r), "");
    finish(r, 0);
    assert_string_equal(started(r), "c");
    rig_free(r);
}

static void attempts_in_a_pool_that_is_gone_still_count(void **state)
{
    struct rig *r = rig_new(8, 4);

    (void)state;
    submit(r, "a c=db/1 pool=gpu");
    r->pools[1].name = GL_S("other");
    crash_and_begin(r);
    submit(r, "b c=db/1");
    assert_string_equal(started(r), "a");
    finish(r, 0);
    assert_string_equal(started(r), "b");
    rig_free(r);
}

static void a_start_that_was_not_committed_gives_its_key_back(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/1");
    submit(r, "b c=db/1");
    command(r, r->job, GL_CMD_PAUSE);
    finish(r, 0);
    r->refuse_next = true;
    command(r, r->job, GL_CMD_RESUME); /* the start of `b` is refused, and its job loaded again */
    assert_int_equal(r->loads_n, 1);
    assert_string_equal(started(r), "a");
    submit(r, "c c=db/1");
    assert_string_equal(started(r), "c");
    rig_free(r);
}

static void an_attempt_counts_on_while_its_job_is_loaded_again(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a c=db/1; x");
    submit(r, "b c=db/1");
    r->refuse_next = r->deaf = true;
    finish(r, 1); /* the end of `x` is refused */
    submit(r, "c c=db/1 p=1");
    assert_string_equal(started(r), "a x");
    r->deaf = false;
    load(r, GL_S("01HZZZZZZZZZZZZZZZZZ000001"));
    assert_int_equal(r->core->running_n, 2);
    assert_string_equal(started(r), "");
    finish(r, 0);
    assert_string_equal(started(r), "c");
    rig_free(r);
}

static void a_pause_or_a_cancellation_leaves_the_key_to_others(void **state)
{
    struct rig *r = rig_new(1, 1);
    char paused[32], cancelled[32];

    (void)state;
    submit(r, "a c=db/1");
    submit(r, "p c=db/1");
    (void)snprintf(paused, sizeof(paused), "%s", r->job);
    submit(r, "q c=db/1");
    (void)snprintf(cancelled, sizeof(cancelled), "%s", r->job);
    submit(r, "b c=db/1");
    command(r, paused, GL_CMD_PAUSE);
    command(r, cancelled, GL_CMD_CANCEL);
    finish(r, 0);
    assert_string_equal(started(r), "a b");
    command(r, paused, GL_CMD_RESUME);
    assert_string_equal(started(r), "");
    finish(r, 1);
    assert_string_equal(started(r), "p");
    rig_free(r);
}

static void who_is_called_and_then_paused_is_replaced_by_the_next(void **state)
{
    struct rig *r = rig_new(2, 1);
    char paused[32];

    (void)state;
    submit(r, "a c=db/1; x");
    submit(r, "p c=db/1 n=2");
    (void)snprintf(paused, sizeof(paused), "%s", r->job);
    submit(r, "b c=db/1");
    finish(r, 0); /* calls `p`, which wants two slots: there is one */
    assert_string_equal(started(r), "a x");
    command(r, paused, GL_CMD_PAUSE);
    assert_string_equal(started(r), "b");
    rig_free(r);
}

static void jobs_out_of_memory_keep_their_place_and_their_key(void **state)
{
    struct rig *r = rig_new(8, 1);
    char cold[32];

    (void)state;
    gl_core_free(r->core);
    r->hot_max = 1;
    begin(r);
    submit(r, "a c=db/1");
    submit(r, "b c=db/1");
    (void)snprintf(cold, sizeof(cold), "%s", r->job);
    submit(r, "c c=db/1");
    submit(r, "d c=db/1");
    assert_int_equal(r->loads_n, 0);
    assert_non_null(strstr(why(r, cold, 0), "concurrency key 'db' (1 of 1 in use, held by job "
                                            "01HZZZZZZZZZZZZZZZZZ000001 step 'a')"));
    r->deaf = true;
    finish(r, 0); /* granted to `b`, whose job is asked for */
    assert_string_equal(why(r, cold, 0),
                        "it has its slots and starts as soon as its job has been read");
    submit(r, "e c=db/1 p=9"); /* comes too late */
    assert_string_equal(started(r), "a");
    r->deaf = false;
    load(r, gl_str_of(cold));
    assert_string_equal(started(r), "b");
    finish(r, 1);
    assert_string_equal(started(r), "e");
    rig_free(r);
}

/* ---- rates ---- */

static void starts_with_one_rate_key_keep_their_distance(void **state)
{
    struct rig *r = rig_new(8, 4);
    gl_ms t0 = r->now;

    (void)state;
    submit(r, "a r=api/1000; b r=api/1000 pool=gpu; c r=api/1000; x");
    assert_string_equal(started(r), "a x");
    finish(r, 0); /* an end does not bring the next one forward */
    assert_int_equal(gl_quotas_next_due(r->core), t0 + 1000);
    at(r, t0 + 999);
    assert_string_equal(started(r), "");
    at(r, t0 + 1000);
    assert_string_equal(started(r), "b");
    at(r, t0 + 5000);
    assert_string_equal(started(r), "c");
    submit(r, "d r=api/1000");
    assert_string_equal(started(r), "");
    at(r, t0 + 6000);
    assert_string_equal(started(r), "d");
    rig_free(r);
}

static void a_rate_outlives_the_node(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    submit(r, "a r=api/60000; b r=api/60000");
    at(r, t0 + 30000);
    crash_and_begin(r);
    at(r, t0 + 59999);
    assert_string_equal(started(r), "a");
    at(r, t0 + 60000);
    assert_string_equal(started(r), "b");
    rig_free(r);
}

static void a_rate_comes_due_also_while_nothing_can_start(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a r=api/1000; b r=api/1000");
    feed(r, (struct gl_event){.type = GL_EV_EXEC_DOWN});
    at(r, r->now + 1000); /* would not return if it stayed due */
    assert_string_equal(started(r), "a");
    feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .epoch = GL_S("e2")});
    assert_string_equal(started(r), "b");
    rig_free(r);
}

static void a_rate_whose_time_is_over_costs_no_memory(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    submit(r, "a r=api/1000; b c=db/1");
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 2);
    finish(r, 0);
    finish(r, 1);
    at(r, r->now + 1000);
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 0);
    assert_int_equal(gl_map_count(&r->core->quotas->groups), 0);
    assert_int_equal(r->core->quotas->active_n, 0);
    crash_and_begin(r);
    assert_int_equal(gl_map_count(&r->core->quotas->keys), 0);
    rig_free(r);
}

static void a_damaged_rate_holds_nobody_up(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    row_get(r, GL_S("rate"), GL_S("api"))->value = GL_S("{\"next_at\":\"soon\"");
    row_get(r, GL_S("rate"), GL_S(""))->value = GL_S("{\"next_at\":9999999999999}");
    crash_and_begin(r);
    submit(r, "a r=api/1000");
    assert_string_equal(started(r), "a");
    rig_free(r);
}

static void a_time_that_a_wrong_clock_wrote_is_not_waited_for(void **state)
{
    struct rig *r = rig_new(8, 1);

    (void)state;
    row_get(r, GL_S("rate"), GL_S("api"))->value = GL_S("{\"next_at\":9999999999999}");
    crash_and_begin(r);
    submit(r, "a r=api/1000");
    assert_string_equal(started(r), "");
    at(r, r->now + 1000);
    assert_string_equal(started(r), "a");
    rig_free(r);
}

static void a_start_that_never_was_asks_for_its_rate_again(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    submit(r, "a r=api/1000; b r=api/1000");
    r->attached = GL_EXEC_NEVER;
    at(r, t0 + 500);
    crash_and_begin(r);
    assert_string_equal(started(r), "a");
    at(r, t0 + 1000);
    at(r, t0 + 2000);
    assert_string_equal(started(r), "b a");
    assert_string_equal(r->runs[2].attempt, "a:attempt:2");
    rig_free(r);
}

static void a_cold_job_has_its_rate_from_its_real_start_on(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;
    char cold[32];

    (void)state;
    gl_core_free(r->core);
    r->hot_max = 1;
    begin(r);
    submit(r, "a r=api/1000");
    submit(r, "b r=api/1000");
    (void)snprintf(cold, sizeof(cold), "%s", r->job);
    submit(r, "c r=api/1000");
    submit(r, "d");
    r->deaf = true;
    at(r, t0 + 1000);
    at(r, t0 + 3000);
    assert_string_equal(started(r), "a d");
    r->deaf = false;
    load(r, gl_str_of(cold));
    assert_string_equal(started(r), "b");
    at(r, t0 + 3999);
    assert_string_equal(started(r), "");
    at(r, t0 + 4000);
    assert_string_equal(started(r), "c");
    rig_free(r);
}

/* ---- together ---- */

static void both_limits_of_a_step_must_be_free_together(void **state)
{
    struct rig *r = rig_new(8, 1);
    gl_ms t0 = r->now;

    (void)state;
    submit(r, "a c=db/1 r=api/1000; b c=db/1 r=api/1000; c c=db/1; d r=api/1000");
    assert_string_equal(started(r), "a");
    at(r, t0 + 1000); /* the rate is free, the key is not: `d` needs the rate alone */
    assert_string_equal(started(r), "d");
    finish(r, 0); /* the key is free, the rate is not: `c` needs the key alone */
    assert_string_equal(started(r), "c");
    at(r, t0 + 5000);
    assert_string_equal(started(r), "");
    finish(r, 2);
    assert_string_equal(started(r), "b");
    rig_free(r);
}

static void a_key_beyond_the_most_that_are_kept_waits_with_a_reason(void **state)
{
    struct rig *r = rig_new(GL_LIMITS_MAX + 10, 1);
    struct gl_buf flow = {0};

    (void)state;
    for (int i = 0; i < GL_LIMITS_MAX; i++) {
        gl_buf_fmt(&flow, "s%d c=k%d/1;", i, i);
    }
    submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
    gl_buf_done(&flow);
    assert_int_equal(r->runs_n, GL_LIMITS_MAX);
    (void)started(r);
    submit(r, "more c=more/1");
    submit(r, "known c=k7/2"); /* needs no other key */
    assert_string_equal(started(r), "known");
    assert_non_null(strstr(why(r, "01HZZZZZZZZZZZZZZZZZ000002", 0),
                           "10000 concurrency and rate keys are in use"));
    finish(r, 3);
    assert_string_equal(started(r), "more");
    rig_free(r);
}

static void whatever_ends_in_whatever_order_nobody_waits_for_ever(void **state)
{
    uint32_t rng = 12345;

    (void)state;
    for (int round = 0; round < 30; round++) {
        struct rig *r = rig_new(1 + (uint32_t)round % 5, 2);
        size_t jobs = 0, ended = 0;

        for (int i = 0; i < 60; i++) {
            struct gl_buf flow = {0};

            for (int k = 0; k < 4; k++) {
                rng = rng * 1664525u + 1013904223u;
                gl_buf_fmt(&flow, "s%d p=%u", k, (rng >> 8) % 3);
                gl_buf_c(&flow, (rng >> 12) % 3 == 0 ? " pool=gpu" : "");
                if ((rng >> 16) % 3 != 0) {
                    gl_buf_fmt(&flow, " c=k%u/%u", (rng >> 20) % 3, (rng >> 20) % 3 + 1);
                }
                if ((rng >> 24) % 3 == 0) {
                    gl_buf_fmt(&flow, " r=q%u/%u", (rng >> 28) % 2, 50 + (rng >> 28) % 2 * 50);
                }
                gl_buf_c(&flow, ";");
            }
            submit(r, gl_str_c(&r->arena, gl_buf_view(&flow)));
            gl_buf_done(&flow);
            jobs++;
        }
        for (int turns = 0; r->ended_n < jobs && turns < 20000; turns++) {
            size_t n = 0, pick = 0;

            for (size_t i = 0; i < r->runs_n; i++) {
                rng = rng * 1664525u + 1013904223u;
                n += !r->runs[i].ended;
                pick = !r->runs[i].ended && (rng >> 8) % n == 0 ? i : pick;
            }
            if (n > 0 && turns % 3 != 0) {
                finish(r, pick);
                ended++;
            } else {
                at(r, r->now + 7);
            }
            if (turns % 97 == 96) {
                crash_and_begin(r);
            }
        }
        assert_int_equal(r->ended_n, jobs);
        assert_int_equal(ended, r->runs_n);
        rig_free(r);
    }
}

/* ---- why ---- */

static void a_step_can_say_what_it_waits_for(void **state)
{
    struct rig *r = rig_new(2, 2);

    (void)state;
    r->now = 1800000000000;
    submit(r, "a c=db/1 r=api/60000 pool=gpu; b c=db/1; c c=db/1; d r=api/60000; e r=api/60000; "
              "f c=db/1 r=api/60000; x; y; z n=2; last");
    assert_string_equal(started(r), "a x y");
    assert_string_equal(why(r, r->job, 0), "");
    assert_string_equal(why(r, r->job, 1),
                        "it waits for concurrency key 'db' (1 of 1 in use, held by job "
                        "01HZZZZZZZZZZZZZZZZZ000001 step 'a')");
    assert_non_null(strstr(why(r, r->job, 2), "; 1 other is before it"));
    assert_string_equal(why(r, r->job, 3),
                        "it waits for rate key 'api' (one start per 1m 0s, the next at "
                        "2027-01-15T08:01:00.000Z)");
    assert_non_null(strstr(why(r, r->job, 5), "step 'a') and rate key 'api' (one start per 1m"));
    assert_string_equal(why(r, r->job, 8),
                        "it waits for 2 slots of pool 'default' (2 of 2 in use, held by job "
                        "01HZZZZZZZZZZZZZZZZZ000001 step 'x', job 01HZZZZZZZZZZZZZZZZZ000001 step "
                        "'y'), as number 1 in the queue");
    assert_non_null(strstr(why(r, r->job, 9), "as number 2 in the queue"));
    rig_free(r);
}

static void a_node_that_starts_nothing_says_so(void **state)
{
    struct rig *r = rig_new(1, 1);

    (void)state;
    submit(r, "a; b");
    feed(r, (struct gl_event){.type = GL_EV_EXEC_DOWN});
    assert_non_null(strstr(why(r, r->job, 1), "waits for the executor"));
    feed(r, (struct gl_event){.type = GL_EV_STOP});
    assert_non_null(strstr(why(r, r->job, 1), "waits for a node that starts work"));
    assert_string_equal(why(r, "no job", 1), "");
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_worth_a_point_of_priority_every_ten_seconds),
        cmocka_unit_test(what_a_step_has_waited_is_not_lost_in_a_restart),
        cmocka_unit_test(a_key_is_used_by_no_more_than_its_max_and_blocks_nobody_else),
        cmocka_unit_test(a_key_is_shared_by_jobs_and_goes_by_priority_then_age),
        cmocka_unit_test(who_was_held_back_comes_back_to_its_old_place),
        cmocka_unit_test(one_end_moves_one_of_many_that_wait),
        cmocka_unit_test(a_full_pool_does_not_keep_a_key_from_another_pool),
        cmocka_unit_test(a_large_request_that_is_held_back_starves_nobody),
        cmocka_unit_test(the_latest_asker_says_how_many),
        cmocka_unit_test(running_attempts_are_counted_again_after_a_restart),
        cmocka_unit_test(attempts_in_a_pool_that_is_gone_still_count),
        cmocka_unit_test(a_start_that_was_not_committed_gives_its_key_back),
        cmocka_unit_test(an_attempt_counts_on_while_its_job_is_loaded_again),
        cmocka_unit_test(a_pause_or_a_cancellation_leaves_the_key_to_others),
        cmocka_unit_test(who_is_called_and_then_paused_is_replaced_by_the_next),
        cmocka_unit_test(jobs_out_of_memory_keep_their_place_and_their_key),
        cmocka_unit_test(starts_with_one_rate_key_keep_their_distance),
        cmocka_unit_test(a_rate_outlives_the_node),
        cmocka_unit_test(a_rate_comes_due_also_while_nothing_can_start),
        cmocka_unit_test(a_rate_whose_time_is_over_costs_no_memory),
        cmocka_unit_test(a_damaged_rate_holds_nobody_up),
        cmocka_unit_test(a_time_that_a_wrong_clock_wrote_is_not_waited_for),
        cmocka_unit_test(a_start_that_never_was_asks_for_its_rate_again),
        cmocka_unit_test(a_cold_job_has_its_rate_from_its_real_start_on),
        cmocka_unit_test(both_limits_of_a_step_must_be_free_together),
        cmocka_unit_test(a_key_beyond_the_most_that_are_kept_waits_with_a_reason),
        cmocka_unit_test(whatever_ends_in_whatever_order_nobody_waits_for_ever),
        cmocka_unit_test(a_step_can_say_what_it_waits_for),
        cmocka_unit_test(a_node_that_starts_nothing_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
