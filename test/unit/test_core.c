/* The core driven by hand: a store that commits at once, an executor that is the test itself. */
#include "core/core.h"
#include "core/flow/backoff.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

struct started {
    char job[32], attempt[64];
    uint64_t token;
};

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    struct gl_arena arena;
    gl_ms now;
    struct started starts[4096];
    size_t starts_n, taken_n;
    size_t commits_n, writes_n, writes_max;
    int reply_code;
    enum gl_reason reply_reason;
    size_t replies_n;
    bool ended;
    uint32_t next_job;
    char job[32];
};

static void feed(struct rig *r, struct gl_event ev);

static void on_effect(struct rig *r, const struct gl_effect *e)
{
    switch (e->type) {
    case GL_FX_COMMIT:
        r->commits_n++;
        r->writes_n += e->tx->writes_n;
        r->writes_max = e->tx->writes_n > r->writes_max ? e->tx->writes_n : r->writes_max;
        feed(r, (struct gl_event){.type = GL_EV_DONE, .job = e->job, .done = {.op = e->op}});
        break;
    case GL_FX_START: {
        struct started *s = &r->starts[r->starts_n++ % 4096];

        (void)snprintf(s->job, sizeof(s->job), "%.*s", GL_STR_ARG(e->job));
        (void)snprintf(s->attempt, sizeof(s->attempt), "%.*s", GL_STR_ARG(e->attempt));
        s->token = e->token;
        gl_spec_unref(e->spec);
        feed(r, (struct gl_event){.type = GL_EV_STARTED,
                                  .job = e->job,
                                  .started = {.attempt = e->attempt, .number = e->start_number}});
        break;
    }
    case GL_FX_FIND:
        feed(r, (struct gl_event){.type = GL_EV_FOUND});
        break;
    case GL_FX_LIST:
        feed(r, (struct gl_event){.type = GL_EV_LISTED});
        break;
    case GL_FX_REPLY:
        r->replies_n++;
        r->reply_code = e->code;
        r->reply_reason = e->reason;
        break;
    case GL_FX_TELL:
        r->ended = r->ended || e->ended;
        break;
    default:
        break;
    }
}

static void feed(struct rig *r, struct gl_event ev)
{
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = r->now;
    ev.context = GL_S("default");
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        on_effect(r, &out.items[i]);
    }
    gl_arena_done(&arena);
}

static void settle(struct rig *r)
{
    while (gl_core_next_due(r->core) <= r->now) {
        feed(r, (struct gl_event){.type = GL_EV_TICK});
    }
}

static struct rig *rig_new(uint32_t slots)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct gl_core_pool pool = {.name = GL_S("default"), .slots = slots};
    struct gl_core_config config = {
        .context = GL_S("default"), .pools = &pool, .pools_n = 1, .trace = &r->trace};

    r->now = 1000;
    r->core = gl_core_new(&config);
    feed(r, (struct gl_event){.type = GL_EV_SESSION,
                              .session = {.session = GL_S("n#1.x"), .number = 1}});
    feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e1")}});
    return r;
}

static void rig_free(struct rig *r)
{
    gl_core_free(r->core);
    gl_arena_done(&r->arena);
    free(r);
}

/* Compile a flow written as JSON. */
static gl_str compile(struct rig *r, gl_str text)
{
    struct gl_flow_errors *errors = GL_NEW(&r->arena, struct gl_flow_errors);
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str compiled;

    assert_int_equal(gl_json_parse(&j, text, GL_FLOW_BYTES_MAX, &r->arena, NULL), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &r->arena, &flow, errors), 0);
    gl_flow_encode(flow, &out);
    compiled = gl_str_dup(&r->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

static void submit(struct rig *r, gl_str flow_json)
{
    gl_str flow = compile(r, flow_json);

    (void)snprintf(r->job, sizeof(r->job), "01HZZZZZZZZZZZZZZZZZ%06u", ++r->next_job);
    r->ended = false;
    feed(r,
         (struct gl_event){.type = GL_EV_SUBMIT,
                           .job = gl_str_of(r->job),
                           .submit = {.request = 1,
                                      .flow = flow,
                                      .flow_hash = gl_str_fmt(&r->arena, "hash%u", r->next_job)}});
    settle(r);
}

static void end_attempt(struct rig *r, const struct started *s, int exit_code)
{
    feed(r,
         (struct gl_event){.type = GL_EV_ENDED,
                           .job = gl_str_of(s->job),
                           .ended = {.attempt = gl_str_of(s->attempt),
                                     .token = s->token,
                                     .result = {.end = GL_EXEC_EXITED, .exit_code = exit_code}}});
    settle(r);
}

/* The next start that has not been looked at. */
static const struct started *take(struct rig *r)
{
    assert_true(r->taken_n < r->starts_n);
    return &r->starts[r->taken_n++ % 4096];
}

static void run_all(struct rig *r)
{
    while (r->taken_n < r->starts_n) {
        struct started s = *take(r);

        end_attempt(r, &s, 0);
    }
}

static void command(struct rig *r, enum gl_command verb)
{
    feed(r,
         (struct gl_event){.type = GL_EV_COMMAND,
                           .job = gl_str_of(r->job),
                           .command = {.request = 2, .verb = (uint8_t)verb, .who = GL_S("test")}});
    settle(r);
}

/* ---- stories ---- */

static void submit_and_start_share_one_transaction(void **state)
{
    struct rig *r = rig_new(4);

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true}}}"));
    assert_int_equal(r->commits_n, 1);
    assert_int_equal(r->starts_n, 1);
    assert_string_equal(r->starts[0].attempt, "a:attempt:1");
    assert_int_equal(r->reply_code, 0);
    end_attempt(r, take(r), 0);
    assert_int_equal(r->commits_n, 2);
    assert_true(r->ended);
    rig_free(r);
}

static void finishing_one_and_starting_the_next_share_one_transaction(void **state)
{
    struct rig *r = rig_new(1);

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true},\"b\":{\"noop\":true,\"needs\":[\"a\"]}}}"));
    end_attempt(r, take(r), 0);
    assert_int_equal(r->commits_n, 2);
    assert_string_equal(take(r)->attempt, "b:attempt:1");
    rig_free(r);
}

static void a_failed_attempt_waits_for_its_backoff(void **state)
{
    struct rig *r = rig_new(1);

    (void)state;
    submit(
        r,
        GL_S("{\"steps\":{\"a\":{\"noop\":true,\"retry\":{\"attempts\":2,\"backoff\":\"3s\"}}}}"));
    end_attempt(r, take(r), 7);
    assert_int_equal(r->starts_n, 1);
    assert_int_equal(gl_core_next_due(r->core), 4000);
    r->now = 4000;
    settle(r);
    assert_string_equal(take(r)->attempt, "a:attempt:2");
    end_attempt(r, &r->starts[1], 7);
    assert_true(r->ended);
    rig_free(r);
}

static void a_result_of_an_old_attempt_changes_nothing(void **state)
{
    struct rig *r = rig_new(1);
    struct started old;
    size_t commits;

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true,\"retry\":{\"attempts\":3,\"backoff\":0}}}}"));
    old = *take(r);
    end_attempt(r, &old, 1);
    commits = r->commits_n;
    end_attempt(r, &old, 0);
    assert_int_equal(r->commits_n, commits);
    assert_false(r->ended);
    rig_free(r);
}

static void nothing_happens_twice_when_nothing_has_happened(void **state)
{
    struct rig *r = rig_new(1);
    size_t commits, starts;

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true},\"b\":{\"noop\":true},\"c\":{\"noop\":true,"
                   "\"needs\":[\"a\",\"b\"]}}}"));
    commits = r->commits_n;
    starts = r->starts_n;
    for (int i = 0; i < 10; i++) {
        feed(r, (struct gl_event){.type = GL_EV_TICK});
    }
    assert_int_equal(r->commits_n, commits);
    assert_int_equal(r->starts_n, starts);
    rig_free(r);
}

static void slots_are_given_in_order_and_never_beyond_capacity(void **state)
{
    struct rig *r = rig_new(2);
    struct gl_core_metrics f;

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true},\"b\":{\"noop\":true},\"c\":{\"noop\":true},"
                   "\"d\":{\"noop\":true,\"priority\":5}}}"));
    gl_core_metrics(r->core, &f);
    assert_int_equal(f.pools[0].in_use, 2);
    assert_int_equal(f.steps_waiting, 2);
    assert_string_equal(take(r)->attempt, "d:attempt:1");
    assert_string_equal(take(r)->attempt, "a:attempt:1");
    end_attempt(r, &r->starts[0], 0);
    assert_string_equal(take(r)->attempt, "b:attempt:1");
    rig_free(r);
}

static void a_pool_that_is_too_small_is_refused_at_submission(void **state)
{
    struct rig *r = rig_new(2);

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true,\"slots\":3}}}"));
    assert_int_equal(r->reply_code, GL_E_INVALID);
    assert_int_equal(r->reply_reason, GL_REASON_POOL_TOO_SMALL);
    assert_int_equal(r->commits_n, 0);
    rig_free(r);
}

static void a_paused_job_starts_nothing_until_it_is_resumed(void **state)
{
    struct rig *r = rig_new(1);

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true,\"unsafe\":true},\"b\":{\"noop\":true}}}"));
    command(r, GL_CMD_PAUSE);
    assert_int_equal(r->reply_code, 0);
    end_attempt(r, take(r), 0);
    assert_int_equal(r->starts_n, 1);
    command(r, GL_CMD_RESUME);
    assert_string_equal(take(r)->attempt, "b:attempt:1");
    rig_free(r);
}

static void a_cancelled_job_ends_when_its_last_attempt_has(void **state)
{
    struct rig *r = rig_new(1);

    (void)state;
    submit(r, GL_S("{\"steps\":{\"a\":{\"noop\":true},\"b\":{\"noop\":true}}}"));
    command(r, GL_CMD_CANCEL);
    assert_false(r->ended);
    feed(r, (struct gl_event){.type = GL_EV_ENDED,
                              .job = gl_str_of(r->job),
                              .ended = {.attempt = GL_S("a:attempt:1"),
                                        .token = 1,
                                        .result = {.end = GL_EXEC_STOPPED}}});
    assert_true(r->ended);
    assert_int_equal(r->starts_n, 1);
    rig_free(r);
}

/* ---- cost ---- */

static gl_str chain(struct rig *r, uint32_t n)
{
    struct gl_buf b = {0};
    gl_str text;

    gl_buf_c(&b, "{\"steps\":{\"s0\":{\"noop\":true}");
    for (uint32_t i = 1; i < n; i++) {
        gl_buf_fmt(&b, ",\"s%u\":{\"noop\":true,\"needs\":[\"s%u\"]}", i, i - 1);
    }
    gl_buf_c(&b, "}}");
    text = gl_str_dup(&r->arena, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

static void a_transition_writes_as_much_in_a_long_job_as_in_a_short_one(void **state)
{
    size_t writes[2], sizes[2] = {100, 20000};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new(1);

        submit(r, chain(r, (uint32_t)sizes[i]));
        r->writes_max = 0;
        for (int k = 0; k < 50; k++) {
            struct started s = *take(r);

            end_attempt(r, &s, 0);
        }
        writes[i] = r->writes_max;
        rig_free(r);
    }
    assert_int_equal(writes[0], writes[1]);
}

static void a_wide_fan_out_is_spread_over_bounded_transactions(void **state)
{
    struct rig *r = rig_new(8);
    struct gl_buf b = {0};

    (void)state;
    gl_buf_c(&b, "{\"steps\":{\"root\":{\"noop\":true}");
    for (int i = 0; i < 3000; i++) {
        gl_buf_fmt(&b, ",\"c%d\":{\"noop\":true,\"needs\":[\"root\"]}", i);
    }
    gl_buf_c(&b, ",\"join\":{\"noop\":true,\"trigger_rule\":\"one_success\",\"needs\":[\"c0\"");
    for (int i = 1; i < 3000; i++) {
        gl_buf_fmt(&b, ",\"c%d\"", i);
    }
    gl_buf_c(&b, "]}}}");
    submit(r, gl_str_dup(&r->arena, gl_buf_view(&b)));
    run_all(r);
    assert_true(r->ended);
    assert_int_equal(r->starts_n, 3002); /* the join exactly once, though told 3,000 times */
    assert_true(r->writes_max <= 2 * GL_SPREAD_MAX + 16);
    gl_buf_done(&b);
    rig_free(r);
}

static void backoff_grows_by_its_factor_up_to_its_cap(void **state)
{
    struct gl_retry retry = {
        .attempts = 9, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 5000};

    (void)state;
    assert_int_equal(gl_backoff_after(&retry, 1), 1000);
    assert_int_equal(gl_backoff_after(&retry, 3), 4000);
    assert_int_equal(gl_backoff_after(&retry, 4), 5000);
    assert_int_equal(gl_backoff_after(&retry, 1000000), 5000);
    retry.factor_pct = 100;
    assert_int_equal(gl_backoff_after(&retry, 8), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_and_start_share_one_transaction),
        cmocka_unit_test(finishing_one_and_starting_the_next_share_one_transaction),
        cmocka_unit_test(a_failed_attempt_waits_for_its_backoff),
        cmocka_unit_test(a_result_of_an_old_attempt_changes_nothing),
        cmocka_unit_test(nothing_happens_twice_when_nothing_has_happened),
        cmocka_unit_test(slots_are_given_in_order_and_never_beyond_capacity),
        cmocka_unit_test(a_pool_that_is_too_small_is_refused_at_submission),
        cmocka_unit_test(a_paused_job_starts_nothing_until_it_is_resumed),
        cmocka_unit_test(a_cancelled_job_ends_when_its_last_attempt_has),
        cmocka_unit_test(a_transition_writes_as_much_in_a_long_job_as_in_a_short_one),
        cmocka_unit_test(a_wide_fan_out_is_spread_over_bounded_transactions),
        cmocka_unit_test(backoff_grows_by_its_factor_up_to_its_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
