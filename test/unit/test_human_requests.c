/* When does the default decision of a request that nobody has answered become the answer? The core
 * is told deadlines (ASKED) and what the store holds, and says what is to be written (EXPIRE). */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/core.h"
#include "core/effect.h"
#include "core/snapshot.h"

enum { TTL_MS = 1000000000, RUNS = 6, CALLS_MAX = 16, HISTORY_STEPS = 400, HISTORIES = 40 };

struct run { /* what the file and the store of a job hold */
    char job[32];
    gl_ms due; /* of its open request; INT64_MAX: none */
    const char *owner;
    bool has_ended, is_answered;
    unsigned written_n; /* defaults written */
};

struct pending { /* a call that has not been answered */
    uint64_t number;
    bool is_expiry;
    char job[32];
    gl_ms at;
};

struct rig {
    struct gl_trace trace;
    struct gl_core_pool pool;
    struct gl_core_config config;
    struct gl_core *core;
    gl_ms now;
    struct run runs[RUNS];
    bool fails;   /* writing a file */
    bool is_slow; /* calls are answered when time passes, not at once */
    struct pending pending[CALLS_MAX];
    size_t pending_n;
    bool is_away;                        /* the store: calls are not answered */
    unsigned says_n;                     /* lines for the operator */
    unsigned early_n, foreign_n, late_n; /* what must not happen */
};

static void feed(struct rig *r, struct gl_event ev);

static struct run *find_run(struct rig *r, gl_str job)
{
    for (size_t i = 0; i < RUNS; i++) {
        if (gl_str_is(job, r->runs[i].job)) {
            return &r->runs[i];
        }
    }
    return NULL;
}

static void report(struct rig *r, const struct run *x)
{
    feed(r, (struct gl_event){.type = GL_EV_ASKED,
                              .job = gl_str_of(x->job),
                              .asked = {.due = x->is_answered ? INT64_MAX : x->due}});
}

static void answer_check(struct rig *r, const struct pending *call)
{
    const struct run *x = find_run(r, gl_str_of(call->job));
    struct gl_event_record record = {.kind = GL_S("job"), .id = gl_str_of(call->job)};
    char value[64];

    assert_non_null(x);
    (void)snprintf(value, sizeof(value), "{\"status\":\"%s\"}",
                   x->has_ended ? "completed" : "running");
    record.rev = 1;
    record.owner = gl_str_of(x->owner);
    record.value = gl_str_of(value);
    feed(r, (struct gl_event){.type = GL_EV_ANSWER,
                              .answer = {.number = call->number,
                                         .by = GL_COMPONENT_HUMAN,
                                         .code = r->is_away ? GL_E_UNAVAILABLE : 0,
                                         .records = {.items = &record, .n = !r->is_away}}});
}

static void answer_expiry(struct rig *r, const struct pending *call)
{
    struct run *x = find_run(r, gl_str_of(call->job));
    bool is_over = x != NULL && !x->is_answered && x->due <= call->at && !r->fails;

    assert_non_null(x);
    x->written_n += is_over;
    x->is_answered |= is_over;
    feed(r, (struct gl_event){.type = GL_EV_ANSWER,
                              .answer = {.number = call->number,
                                         .by = GL_COMPONENT_HUMAN,
                                         .code = r->fails ? GL_E_BUSY : 0,
                                         .why = gl_str_of(r->fails ? "it is locked" : ""),
                                         .n = is_over}});
}

static void answer_all(struct rig *r)
{
    for (size_t n = r->pending_n; n > 0 && r->pending_n > 0; n--) {
        struct pending call = r->pending[0];

        memmove(&r->pending[0], &r->pending[1], --r->pending_n * sizeof(call));
        if (call.is_expiry) {
            answer_expiry(r, &call);
        } else {
            answer_check(r, &call);
        }
    }
}

/* An expiry is judged when it is decided: what becomes of the job before it is carried out, nobody
 * can know. */
static void note_call(struct rig *r, const struct gl_core_call *call)
{
    struct pending *p = &r->pending[r->pending_n++];
    gl_str job = call->type == GL_CORE_CALL_GET ? call->keys[0].id : call->job;

    assert_in_range(r->pending_n, 1, CALLS_MAX);
    *p = (struct pending){
        .number = call->number, .is_expiry = call->type == GL_CORE_CALL_EXPIRE, .at = call->at};
    (void)snprintf(p->job, sizeof(p->job), "%.*s", GL_STR_ARG(job));
    if (p->is_expiry) {
        r->foreign_n += !gl_str_is(gl_str_of(find_run(r, job)->owner), "us#1.x");
        r->late_n += find_run(r, job)->has_ended;
        r->early_n += call->at > r->now;
    } else {
        assert_int_equal(call->type, GL_CORE_CALL_GET);
    }
}

static void feed(struct rig *r, struct gl_event ev)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = r->now;
    ev.context = GL_S("default");
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        const struct gl_core_call *call = out.items[i].call;

        r->says_n += out.items[i].type == GL_FX_SAY;
        if (call != NULL && call->by == GL_COMPONENT_HUMAN) {
            note_call(r, call);
        }
    }
    if (!r->is_slow) {
        answer_all(r);
    }
}

static void wait_ms(struct rig *r, gl_ms ms)
{
    r->now += ms;
    answer_all(r);
    feed(r, (struct gl_event){.type = GL_EV_TICK});
}

static void begin(struct rig *r)
{
    r->core = gl_core_new(&r->config);
    feed(r, (struct gl_event){.type = GL_EV_SESSION,
                              .session = {.session = GL_S("us#1.x"), .number = 1}});
}

static int set_up(void **state)
{
    static struct rig rig;

    rig = (struct rig){.now = 1000, .pool = {.name = GL_S("default"), .slots = 1}};
    rig.config = (struct gl_core_config){.context = GL_S("default"),
                                         .pools = &rig.pool,
                                         .pools_n = 1,
                                         .shared = true,
                                         .node = GL_S("us"),
                                         .ttl_ms = TTL_MS,
                                         .trace = &rig.trace};
    for (size_t i = 0; i < RUNS; i++) {
        rig.runs[i].due = INT64_MAX;
        rig.runs[i].owner = "us#1.x";
        (void)snprintf(rig.runs[i].job, sizeof(rig.runs[i].job), "01J0000000000000000000000%zu", i);
    }
    begin(&rig);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;

    gl_core_free(r->core);
    return 0;
}

static void ask(struct rig *r, struct run *x, gl_ms due)
{
    x->due = due;
    x->is_answered = false;
    report(r, x);
}

static void the_default_is_written_once_when_the_time_is_over(void **state)
{
    struct rig *r = *state;

    ask(r, &r->runs[0], 5000);
    wait_ms(r, 3999);
    assert_int_equal(r->runs[0].written_n, 0);
    wait_ms(r, 1);
    assert_int_equal(r->runs[0].written_n, 1);
    assert_int_equal(r->says_n, 1);
    wait_ms(r, 100000);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void a_request_that_was_answered_in_time_is_left_alone(void **state)
{
    struct rig *r = *state;

    ask(r, &r->runs[0], 5000);
    r->runs[0].is_answered = true;
    report(r, &r->runs[0]);
    wait_ms(r, 10000);
    assert_int_equal(r->runs[0].written_n, 0);
}

static void a_deadline_may_move(void **state)
{
    struct rig *r = *state;

    ask(r, &r->runs[0], 5000);
    ask(r, &r->runs[0], 9000);
    wait_ms(r, 5000);
    assert_int_equal(r->runs[0].written_n, 0);
    ask(r, &r->runs[0], 6000);
    wait_ms(r, 0);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void the_owner_writes_and_nobody_else(void **state)
{
    struct rig *r = *state;

    r->runs[0].owner = "other#1.y";
    ask(r, &r->runs[0], 5000);
    wait_ms(r, 60000);
    assert_int_equal(r->foreign_n, 0);
    r->runs[0].owner = "us#1.x"; /* the job moves here */
    wait_ms(r, 30000);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void of_a_job_that_has_ended_nothing_is_written(void **state)
{
    struct rig *r = *state;

    ask(r, &r->runs[0], 5000);
    r->runs[0].has_ended = true;
    wait_ms(r, 60000);
    assert_int_equal(r->runs[0].written_n, 0);
    assert_int_equal(r->late_n, 0);
}

static void a_deadline_that_comes_while_the_job_is_looked_at_counts(void **state)
{
    struct rig *r = *state;

    r->is_slow = true;
    ask(r, &r->runs[0], 5000);
    wait_ms(r, 4000); /* the job is being looked at */
    ask(r, &r->runs[0], 8000);
    wait_ms(r, 1000);
    wait_ms(r, 1000);
    assert_int_equal(r->runs[0].written_n, 0);
    wait_ms(r, 1000);
    wait_ms(r, 0);
    wait_ms(r, 0);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void a_deadline_that_comes_while_a_default_is_written_counts(void **state)
{
    struct rig *r = *state;

    r->is_slow = true;
    ask(r, &r->runs[0], 5000);
    wait_ms(r, 4000);              /* the job is being looked at */
    wait_ms(r, 0);                 /* the default is being written, ... */
    r->runs[0].is_answered = true; /* ... too late: a person was faster, and there is another one */
    ask(r, &r->runs[0], 8000);
    r->is_slow = false;
    wait_ms(r, 3000);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void a_failed_write_is_logged_once_and_repeated(void **state)
{
    struct rig *r = *state;

    r->fails = true;
    ask(r, &r->runs[0], 5000);
    for (unsigned i = 0; i < 10; i++) {
        wait_ms(r, 1000);
    }
    assert_int_equal(r->says_n, 1);
    r->fails = false;
    wait_ms(r, 1000);
    assert_int_equal(r->runs[0].written_n, 1);
}

static void a_store_that_is_away_only_delays_it(void **state)
{
    struct rig *r = *state;

    r->is_away = true;
    ask(r, &r->runs[0], 5000);
    wait_ms(r, 60000);
    assert_int_equal(r->runs[0].written_n, 0);
    r->is_away = false;
    wait_ms(r, 30000);
    assert_int_equal(r->runs[0].written_n, 1);
}

/* A core that is restored from a snapshot goes on where the other one stopped. */
static void save_and_restore(struct rig *r)
{
    struct gl_buf text = {0};
    struct gl_why why = {0};
    struct gl_core *core;

    if (!gl_core_save(r->core, SIZE_MAX, &text)) {
        gl_buf_done(&text);
        return;
    }
    assert_int_equal(gl_core_restore(gl_buf_view(&text), &r->trace, NULL, &core, &why), 0);
    gl_core_free(r->core);
    r->core = core;
    gl_buf_done(&text);
}

static void happen(struct rig *r, struct gl_rng *rng)
{
    struct run *x = &r->runs[gl_rng_below(rng, RUNS)];

    switch (gl_rng_below(rng, 10)) {
    case 0:
    case 1:
        ask(r, x, r->now + (gl_ms)gl_rng_below(rng, 20000));
        break;
    case 2:
        x->is_answered = true;
        report(r, x);
        break;
    case 3:
        x->owner = gl_rng_below(rng, 2) == 0 ? "us#1.x" : "other#1.y";
        break;
    case 4:
        x->has_ended = gl_rng_below(rng, 4) == 0;
        break;
    case 5:
        r->fails = gl_rng_below(rng, 3) == 0;
        r->is_away = gl_rng_below(rng, 3) == 0;
        r->is_slow = gl_rng_below(rng, 2) == 0;
        break;
    case 6:
        save_and_restore(r);
        break;
    default:
        wait_ms(r, (gl_ms)gl_rng_below(rng, 8000));
        break;
    }
}

static void no_history_breaks_a_rule(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        void *own;
        struct rig *r;
        struct gl_rng rng;

        assert_int_equal(set_up(&own), 0);
        r = own;
        gl_rng_init(&rng, seed);
        for (unsigned i = 0; i < HISTORY_STEPS; i++) {
            happen(r, &rng);
        }
        assert_int_equal(r->foreign_n + r->late_n + r->early_n, 0);
        /* Then all is well: whatever is over, of jobs of ours, is answered. */
        r->fails = r->is_away = r->is_slow = false;
        for (size_t i = 0; i < RUNS; i++) {
            r->runs[i].owner = "us#1.x";
            r->runs[i].has_ended = false;
            report(r, &r->runs[i]);
        }
        for (unsigned i = 0; i < 4; i++) {
            wait_ms(r, 30000);
        }
        for (size_t i = 0; i < RUNS; i++) {
            assert_true(r->runs[i].is_answered || r->runs[i].due > r->now);
        }
        assert_int_equal(tear_down(&own), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_default_is_written_once_when_the_time_is_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_request_that_was_answered_in_time_is_left_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_deadline_may_move, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_owner_writes_and_nobody_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_a_job_that_has_ended_nothing_is_written, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_deadline_that_comes_while_the_job_is_looked_at_counts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deadline_that_comes_while_a_default_is_written_counts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_write_is_logged_once_and_repeated, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_store_that_is_away_only_delays_it, set_up, tear_down),
        cmocka_unit_test(no_history_breaks_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
