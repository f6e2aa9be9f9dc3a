#include "support/cmocka_all.h"

#include <string.h>

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/patch.h"
#include "model/flow/flow_graph.h"
#include "support/golden.h"

/* start -> control -> finish -> last, and a service of its own. `control` may change what lies
 * between it and `finish`; `serve` adds steps behind itself. */
static const char flow_text[] =
    "{\"format\":1,\"name\":\"f\",\"steps\":["
    "{\"id\":\"@a\",\"driver\":\"worker\",\"argv\":[\"true\"]},"
    "{\"id\":\"@b\",\"driver\":\"worker\",\"argv\":[\"true\"]},"
    "{\"id\":\"start\",\"driver\":\"agent\",\"agent_ids\":[\"a\"]},"
    "{\"id\":\"control\",\"driver\":\"agent\",\"agent_ids\":[\"a\"],\"needs\":[\"start\"],"
    "\"edges\":[{\"id\":\"e1\",\"accepts\":1}]},"
    "{\"id\":\"finish\",\"driver\":\"agent\",\"agent_ids\":[\"a\"],"
    "\"needs\":[\"start\",\"control\"],"
    "\"edges\":[{\"id\":\"e2\",\"accepts\":3},{\"id\":\"direct\",\"accepts\":1}]},"
    "{\"id\":\"last\",\"driver\":\"agent\",\"agent_ids\":[\"a\"],\"needs\":[\"finish\"],"
    "\"edges\":[{\"id\":\"e3\",\"accepts\":1}]},"
    "{\"id\":\"serve\",\"driver\":\"agent\",\"agent_ids\":[\"a\"]}"
    "],\"bundle\":{\"agents\":[{\"id\":\"a\"},{\"id\":\"b\"}],"
    "\"dynamic\":{\"enabled\":true,\"operations_max\":6,\"active_max\":4,\"patches_max\":3,"
    "\"regions\":["
    "{\"id\":\"middle\",\"controller\":\"control\",\"exit\":\"finish\",\"templates\":[\"t\"],"
    "\"mutable_edges\":[\"direct\"]},"
    "{\"id\":\"calls\",\"is_fanout\":true,\"controller\":\"serve\",\"templates\":[\"t\",\"u\"]}],"
    "\"templates\":[{\"id\":\"t\",\"agent\":\"b\",\"label\":\"T\",\"control\":"
    "{\"trigger_rule\":\"all_done\",\"failure_policy\":\"continue_partial\",\"timeout_ms\":7000,"
    "\"beacon_timeout_ms\":5000,\"max_attempts\":2,\"retry_backoff_ms\":100,"
    "\"retry_backoff_pct\":300}},{\"id\":\"u\",\"agent\":\"b\"}]}}}";

enum { START = 2, CONTROL, FINISH, LAST, SERVE, STEPS };

static struct gl_arena arena;
static struct gl_why why;
static struct gl_flow *flow;
static struct gl_patch_job job;
static struct gl_patch_report report;
static bool started[32];

static uint32_t ready; /* a step; UINT32_MAX: none */

static bool has_started(void *owner, uint32_t step)
{
    return ((bool *)owner)[step];
}

static bool is_ready(void *owner, uint32_t step)
{
    return has_started(owner, step) || step == ready;
}

static int set_up(void **state)
{
    (void)state;
    memset(started, 0, sizeof started);
    started[START] = started[CONTROL] = started[SERVE] = true;
    ready = UINT32_MAX;
    job = (struct gl_patch_job){
        .owner = started, .has_started = has_started, .is_ready = is_ready, .controller = CONTROL};
    if (gl_flow_decode(gl_str_of(flow_text), &arena, &flow, &why) != 0) {
        fail_msg("%s", why.text);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

#define EQ(str, literal) assert_string_equal(gl_str_c(&arena, (str)), literal)
#define PATCH(ops) \
    "{\"patch_id\":\"p1\",\"base_revision\":0,\"region_id\":\"middle\",\"operations\":[" ops "]}"
#define CALLS(ops) \
    "{\"patch_id\":\"p1\",\"base_revision\":0,\"region_id\":\"calls\",\"operations\":[" ops "]}"
#define SECOND(region, ops)                                                                      \
    "{\"patch_id\":\"p2\",\"base_revision\":0,\"region_id\":\"" region "\",\"operations\":[" ops \
    "]}"
#define ADD(id) "{\"op\":\"add_step\",\"id\":\"" id "\",\"template\":\"t\",\"with\":{\"q\":1}}"
#define EDGE(id, from, to) \
    "{\"op\":\"add_edge\",\"id\":\"" id "\",\"from\":\"" from "\",\"to\":\"" to "\"}"
#define REMOVE(id) "{\"op\":\"remove_step\",\"id\":\"" id "\"}"
#define CUT(id) "{\"op\":\"remove_edge\",\"id\":\"" id "\"}"
#define DETOUR \
    PATCH(ADD("x") "," EDGE("cx", "control", "x") "," EDGE("xf", "x", "finish") "," CUT("direct"))

static int apply(const char *patch, struct gl_flow **ret)
{
    return gl_patch_apply(flow, &job, gl_str_of(patch), &arena, ret, &report, &why);
}

static struct gl_flow *applied(const char *patch)
{
    struct gl_flow *f;

    if (apply(patch, &f) != 0) {
        fail_msg("%s: %s", patch, why.text);
    }
    return f;
}

/* All edges as "child<parent(accepts)", in order. */
static const char *edges_of(const struct gl_flow *f)
{
    struct gl_buf b = {0};
    const char *text;

    for (uint32_t i = START; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(f, i);

        assert_int_equal(s->needs_n, s->needs_ids.n);
        for (uint32_t k = 0; k < s->needs_n; k++) {
            const struct gl_step_edge *e = s->edges.items;

            assert_true(gl_str_eq(s->needs_ids.items[k], gl_flow_step(f, s->needs[k])->id));
            gl_buf_fmt(&b, "%.*s<%.*s(%u) ", GL_STR_ARG(s->id), GL_STR_ARG(s->needs_ids.items[k]),
                       e[k].accepts);
        }
    }
    text = gl_str_c(&arena, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

static void check_links(const struct gl_flow *f)
{
    for (uint32_t i = START; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(f, i);

        assert_int_equal(gl_flow_find(f, s->id), i);
        for (uint32_t k = 0; k < s->children_n; k++) {
            const struct gl_step_spec *child = gl_flow_step(f, s->children[k]);
            const struct gl_step_edge *edges = child->edges.items;
            uint32_t n = 0;

            while (child->needs[n] != i) {
                n++;
            }
            assert_int_equal(s->tells[k], edges[n].accepts);
        }
    }
}

/* Changes. */

static void a_detour_is_put_between_controller_and_exit(void **state)
{
    struct gl_flow *f = applied(DETOUR);
    const struct gl_step_spec *s = gl_flow_step(f, STEPS);

    (void)state;
    assert_string_equal(edges_of(f), "control<start(1) finish<start(3) finish<x(1) last<finish(1) "
                                     "x<control(1) ");
    check_links(f);
    EQ(s->id, "x");
    EQ(s->driver, "agent");
    EQ(s->label, "T");
    EQ(s->template_id, "t");
    EQ(s->region_id, "middle");
    EQ(s->patch_id, "p1");
    EQ(s->agent_ids.items[0], "b");
    assert_int_equal(s->agent, 1);
    assert_true(s->is_bound);
    assert_int_equal(s->rule, GL_RULE_ALL_DONE);
    assert_int_equal(s->on_failure, GL_ON_FAILURE_CONTINUE);
    assert_int_equal(s->timeout_ms, 7000);
    assert_int_equal(s->heartbeat_ms, 5000);
    assert_int_equal(s->retry.attempts, 2);
    assert_int_equal(s->retry.backoff_ms, 100);
    assert_int_equal(s->retry.factor_pct, 300);
}

static void the_report_tells_what_has_changed(void **state)
{
    (void)state;
    applied(DETOUR);
    EQ(report.patch_id, "p1");
    EQ(report.region_id, "middle");
    assert_false(report.is_fanout);
    assert_int_equal(report.added_n, 1);
    assert_int_equal(report.with.n, 1);
    EQ(report.with.items[0], "{\"q\":1}");
    EQ(report.delta, "{\"added_steps\":[{\"id\":\"x\",\"template\":\"t\"}],\"removed_steps\":[],"
                     "\"added_edges\":[{\"id\":\"cx\",\"from\":\"control\",\"to\":\"x\"},"
                     "{\"id\":\"xf\",\"from\":\"x\",\"to\":\"finish\"}],"
                     "\"removed_edges\":[\"direct\"]}");
}

static void the_old_flow_stays_as_it_was(void **state)
{
    struct gl_buf before = {0}, after = {0};

    (void)state;
    gl_flow_encode(flow, &before);
    applied(DETOUR);
    gl_flow_encode(flow, &after);
    assert_true(gl_str_eq(gl_buf_view(&before), gl_buf_view(&after)));
    check_links(flow);
    assert_int_equal(flow->steps.n, STEPS);
    gl_buf_done(&before);
    gl_buf_done(&after);
}

/* As it comes back from a store. */
static struct gl_flow *again(const struct gl_flow *f)
{
    struct gl_buf text = {0};
    struct gl_flow *back;

    gl_flow_encode(f, &text);
    if (gl_flow_decode(gl_buf_view(&text), &arena, &back, &why) != 0) {
        fail_msg("%s", why.text);
    }
    gl_buf_done(&text);
    return back;
}

static void a_changed_flow_can_be_encoded(void **state)
{
    struct gl_flow *f = applied(DETOUR), *back = again(f);

    (void)state;
    assert_string_equal(edges_of(back), edges_of(f));
    check_links(back);
}

static void what_was_added_can_be_removed_before_it_starts(void **state)
{
    (void)state;
    flow = applied(DETOUR);
    job.revision = 1;
    job.patches_n = 1;
    job.active_n = 1;
    flow = applied("{\"patch_id\":\"p2\",\"base_revision\":1,\"region_id\":\"middle\","
                   "\"operations\":[" REMOVE("x") "," CUT("cx") "," CUT(
                       "xf") ","
                             "{\"type\":\"add_edge\",\"id\":\"direct\",\"from\":\"control\","
                             "\"to\":\"finish\",\"accepts\":[\"done\",\"skipped\"]}]}");
    assert_string_equal(edges_of(flow), "control<start(1) finish<start(3) finish<control(5) "
                                        "last<finish(1) ");
    assert_int_equal(flow->steps.n, STEPS + 1); /* its number is not given to another */
    assert_true(gl_flow_step(flow, STEPS)->is_removed);
    assert_int_equal(flow->roots_n, 2);
    check_links(flow);
    assert_int_equal(report.added_n, 0);
    flow = again(flow);
    assert_true(gl_flow_step(flow, STEPS)->is_removed);
    assert_int_equal(flow->roots_n, 2);
    job.revision = 2;
    assert_int_equal(apply("{\"patch_id\":\"p3\",\"base_revision\":2,\"region_id\":\"middle\","
                           "\"operations\":[" ADD("x") "]}",
                           &flow),
                     GL_E_EXISTS);
}

static void a_fanout_has_roots_of_its_own(void **state)
{
    struct gl_flow *f;

    (void)state;
    job.controller = SERVE;
    f = applied(CALLS(ADD("c1") "," ADD("c2") "," EDGE("c12", "c1", "c2")));
    assert_true(report.is_fanout);
    assert_int_equal(report.added_n, 2);
    assert_string_equal(edges_of(f), "control<start(1) finish<start(3) finish<control(1) "
                                     "last<finish(1) c2<c1(1) ");
    assert_int_equal(f->roots_n, 3);
    check_links(f);
}

static void a_template_without_control_has_the_usual(void **state)
{
    const struct gl_step_spec *s;

    (void)state;
    job.controller = SERVE;
    s = gl_flow_step(applied(CALLS("{\"op\":\"add_step\",\"id\":\"c\",\"template\":\"u\","
                                   "\"label\":\"C\"}")),
                     STEPS);
    EQ(s->label, "C");
    assert_int_equal(s->rule, GL_RULE_ALL_SUCCESS);
    assert_int_equal(s->retry.attempts, 1);
    EQ(report.with.items[0], "");
}

static void operations_have_several_names(void **state)
{
    static const char *const cases[] = {
        CALLS("{\"op\":\"add_step\",\"id\":\"c\",\"template\":\"t\",\"with\":{\"k\":1}}"),
        CALLS("{\"type\":\"add_step\",\"id\":\"c\",\"template\":\"t\",\"input\":{\"k\":1}}"),
        CALLS("{\"operation\":\"add_step\",\"id\":\"c\",\"template\":\"t\","
              "\"step_input\":{\"k\":1}}"),
        CALLS("{\"action\":\"add_step\",\"id\":\"c\",\"template\":\"t\",\"with\":{\"k\":1}}"),
    };

    (void)state;
    job.controller = SERVE;
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        applied(cases[i]);
        assert_int_equal(report.added_n, 1);
        EQ(report.with.items[0], "{\"k\":1}");
    }
}

/* Refusals. */

struct refusal {
    const char *patch;
    int code;
    const char *says;
};

static void refused(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct gl_flow *f = flow;
        int rc = apply(cases[i].patch, &f);

        if (rc != cases[i].code || strstr(why.text, cases[i].says) == NULL) {
            fail_msg("%s: %d %s", cases[i].patch, rc, rc == 0 ? "" : why.text);
        }
        assert_ptr_equal(f, flow);
    }
}

static void only_a_dynamic_flow_can_be_changed(void **state)
{
    struct gl_flow *f;

    (void)state;
    flow->bundle->dynamic.enabled = false;
    assert_int_equal(apply("no JSON", &f), GL_E_DENIED);
    assert_non_null(strstr(why.text, "dynamic_dag"));
    flow->bundle = NULL;
    assert_int_equal(apply(DETOUR, &f), GL_E_DENIED);
}

static void a_patch_must_be_well_formed(void **state)
{
    static const struct refusal cases[] = {
        {"{", GL_E_INVALID, "line 1"},
        {"[]", GL_E_INVALID, "patch_id"},
        {"{\"patch_id\":\"@x\"}", GL_E_INVALID, "patch_id"},
        {"{\"patch_id\":\"_x\"}", GL_E_INVALID, "patch_id"},
        {"{\"patch_id\":\"p\"}", GL_E_INVALID, "operations"},
        {"{\"patch_id\":\"p\",\"operations\":[]}", GL_E_INVALID, "operations"},
        {"{\"patch_id\":\"p\",\"operations\":{}}", GL_E_INVALID, "operations"},
        {"{\"patch_id\":\"p\",\"operations\":[1]}", GL_E_NOT_FOUND, "region_id"},
        {"{\"patch_id\":\"p\",\"operations\":[1],\"region_id\":\"nowhere\"}", GL_E_NOT_FOUND,
         "no region `nowhere`"},
        {CALLS("1"), GL_E_DENIED, "only `serve` may change the region `calls`, not control"},
        {"{\"patch_id\":\"p\",\"operations\":[1],\"region_id\":\"middle\"}", GL_E_INVALID,
         "base_revision: it is missing"},
        {"{\"patch_id\":\"p\",\"operations\":[1],\"region_id\":\"middle\",\"base_revision\":3}",
         GL_E_CONFLICT, "it is 3, but the graph is at revision 0"},
        {PATCH("1"), GL_E_INVALID, "operations[0].op"},
        {PATCH("{\"op\":\"add\"}"), GL_E_INVALID, "operations[0].op"},
        {PATCH("{\"op\":\"add_step\"}"), GL_E_INVALID, "operations[0].id: it is missing"},
        {PATCH(ADD("x y")), GL_E_INVALID, "operations[0].id: that is not an id"},
        {PATCH("{\"op\":\"add_step\",\"id\":\"x\"}"), GL_E_INVALID, "operations[0].template"},
        {PATCH("{\"op\":\"add_step\",\"id\":\"x\",\"template\":\"t\",\"with\":1}"), GL_E_INVALID,
         "operations[0].with"},
        {PATCH("{\"op\":\"add_step\",\"id\":\"x\",\"template\":\"t\",\"label\":1}"), GL_E_INVALID,
         "operations[0].label"},
        {PATCH("{\"op\":\"add_edge\",\"id\":\"x\",\"from\":\"control\",\"to\":\"finish\","
               "\"accepts\":[]}"),
         GL_E_INVALID, "operations[0].accepts"},
        {PATCH("{\"op\":\"add_edge\",\"id\":\"x\",\"from\":\"control\",\"to\":\"finish\","
               "\"accepts\":[\"good\"]}"),
         GL_E_INVALID, "operations[0].accepts"},
    };

    (void)state;
    refused(cases, GL_COUNT(cases));
}

static void a_patch_stays_in_its_region(void **state)
{
    static const struct refusal cases[] = {
        {PATCH("{\"op\":\"add_step\",\"id\":\"x\",\"template\":\"u\"}"), GL_E_NOT_FOUND,
         "the region `middle` has no template `u`"},
        {PATCH(ADD("start")), GL_E_EXISTS, "a step `start`"},
        {PATCH(ADD("x") "," ADD("x")), GL_E_EXISTS, "operations[1].id"},
        {PATCH(REMOVE("finish")), GL_E_NOT_FOUND, "no patch added a step `finish`"},
        {PATCH(REMOVE("x")), GL_E_NOT_FOUND, "no patch added a step `x`"},
        {PATCH(EDGE("n", "start", "finish")), GL_E_DENIED, "`start` is not in the region"},
        {PATCH(EDGE("n", "control", "last")), GL_E_DENIED, "`last` is not in the region"},
        {PATCH(EDGE("n", "control", "x")), GL_E_NOT_FOUND, "operations[0].to: there is no step"},
        {PATCH(EDGE("n", "control", "@a")), GL_E_INVALID, "operations[0].to: that is not an id"},
        {PATCH(EDGE("n", "control", "finish")), GL_E_EXISTS, "from `control` to `finish`"},
        {PATCH(ADD("x") "," EDGE("e1", "control", "x")), GL_E_EXISTS, "an edge `e1`"},
        {PATCH(ADD("x") "," EDGE("n", "x", "x")), GL_E_INVALID, "to itself"},
        {PATCH(CUT("e1")), GL_E_DENIED, "the edge `e1`"},
        {PATCH(CUT("e2")), GL_E_DENIED, "the edge `e2`"},
        {PATCH(CUT("e3")), GL_E_DENIED, "the edge `e3`"},
        {PATCH(CUT("none")), GL_E_NOT_FOUND, "no edge `none`"},
    };

    (void)state;
    refused(cases, GL_COUNT(cases));
}

static void a_patch_leaves_a_flow_that_can_be_finished(void **state)
{
    static const struct refusal cases[] = {
        {PATCH(CUT("direct")), GL_E_INVALID, "no path would lead from `control` to `finish`"},
        {PATCH(ADD("x")), GL_E_INVALID, "`x` would not be on a path"},
        {PATCH(ADD("x") "," EDGE("cx", "control", "x")), GL_E_INVALID, "would not be on a path"},
        {PATCH(ADD("x") "," EDGE("xf", "x", "finish")), GL_E_INVALID, "would not be on a path"},
        {PATCH(ADD("x") "," ADD("y") "," EDGE("xy", "x", "y") "," EDGE("yx", "y", "x")),
         GL_E_INVALID, "wait for each other"},
        {PATCH(ADD("x") "," EDGE("fx", "finish", "x") "," EDGE("xf", "x", "finish")), GL_E_INVALID,
         "wait for each other"},
        {PATCH(ADD("x") "," EDGE("cx", "control", "x") "," REMOVE("x")), GL_E_INVALID,
         "the edge `cx` from `control` to `x` would be left dangling"},
        {PATCH(ADD("x") "," EDGE("xf", "x", "finish") "," REMOVE("x")), GL_E_INVALID,
         "the edge `xf` from `x` to `finish` would be left dangling"},
    };

    (void)state;
    refused(cases, GL_COUNT(cases));
    job.controller = SERVE; /* in a fanout, too */
    assert_int_equal(
        apply(CALLS(ADD("x") "," ADD("y") "," EDGE("xy", "x", "y") "," EDGE("yx", "y", "x")),
              &flow),
        GL_E_INVALID);
}

static void what_has_started_is_not_changed(void **state)
{
    static const struct refusal direct[] = {
        {DETOUR, GL_E_STATE, "operations[2]: the step `finish` has started"},
        {PATCH(CUT("direct")), GL_E_STATE, "operations[0]: the step `finish` has started"},
        {PATCH(ADD("x") "," EDGE("xc", "x", "control")), GL_E_STATE, "`control` has started"},
    };
    static const struct refusal later[] = {
        {SECOND("calls", REMOVE("c1")), GL_E_STATE, "operations[0].id: the step `c1` has started"},
        {SECOND("calls", ADD("c3") "," EDGE("c13", "c1", "c3")), GL_E_STATE,
         "operations[1]: the step `c1` has started"},
        {SECOND("calls", CUT("c12")), GL_E_STATE, "operations[0]: the step `c1` has started"},
    };

    static const struct refusal soon[] = {
        {DETOUR, GL_E_STATE, "operations[2]: the step `finish` is ready to start"},
    };

    (void)state;
    ready = FINISH;
    refused(soon, GL_COUNT(soon));
    started[FINISH] = true;
    refused(direct, GL_COUNT(direct));
    job.controller = SERVE;
    flow = applied(CALLS(ADD("c1") "," ADD("c2") "," EDGE("c12", "c1", "c2")));
    started[STEPS] = true;
    refused(later, GL_COUNT(later));
}

static void regions_keep_apart(void **state)
{
    static const struct refusal cases[] = {
        {SECOND("middle", REMOVE("c1")), GL_E_NOT_FOUND, "to the region `middle`"},
        {SECOND("middle", CUT("c12")), GL_E_DENIED, "the edge `c12`"},
        {SECOND("middle", EDGE("n", "c1", "finish")), GL_E_DENIED, "`c1` is not in the region"},
    };

    (void)state;
    job.controller = SERVE;
    flow = applied(CALLS(ADD("c1") "," ADD("c2") "," EDGE("c12", "c1", "c2")));
    job.controller = CONTROL;
    refused(cases, GL_COUNT(cases));
}

static void another_patch_under_the_same_name_is_refused(void **state)
{
    struct gl_flow *f;

    (void)state;
    flow = applied(DETOUR);
    assert_int_equal(apply(PATCH(ADD("y")), &f), GL_E_EXISTS);
    golden_say("another content", gl_str_of(why.text));
}

static void patches_have_limits(void **state)
{
    struct gl_flow *f;
    struct gl_buf b = {0};

    (void)state;
    assert_int_equal(apply(PATCH("1,2,3,4,5,6,7"), &f), GL_E_LIMIT);
    golden_say("operations", gl_str_of(why.text));
    job.patches_n = 3;
    assert_int_equal(apply(DETOUR, &f), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "3 patches"));
    job.patches_n = 2;
    job.active_n = 4;
    assert_int_equal(apply(DETOUR, &f), GL_E_LIMIT);
    golden_say("active", gl_str_of(why.text));
    job.active_n = 3;
    assert_int_equal(apply(DETOUR, &f), 0);
    gl_buf_c(&b, "{\"patch_id\":\"p\",\"base_revision\":0,\"region_id\":\"middle\",\"operations\":["
                 "{\"op\":\"add_step\",\"id\":\"x\",\"template\":\"t\",\"with\":{\"k\":\"");
    memset(gl_buf_reserve(&b, 32 << 10), 'k', 32 << 10);
    b.n += 32 << 10;
    gl_buf_c(&b, "\"}}]}");
    gl_buf_char(&b, 0);
    assert_int_equal(apply(b.p, &f), GL_E_LIMIT);
    assert_non_null(strstr(why.text, "operations[0].with"));
    gl_buf_done(&b);
}

static void a_quorum_can_still_be_reached(void **state)
{
    struct gl_flow *f;
    struct gl_step_spec *finish = gl_flow_graph_step(flow, FINISH);

    (void)state;
    finish->rule = GL_RULE_QUORUM;
    finish->quorum = 2;
    applied(DETOUR); /* one goes, one comes */
    finish->quorum = 3;
    assert_int_equal(apply(DETOUR, &f), GL_E_INVALID);
    golden_say("quorum", gl_str_of(why.text));
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/patch.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_detour_is_put_between_controller_and_exit),
        T(the_report_tells_what_has_changed),
        T(the_old_flow_stays_as_it_was),
        T(a_changed_flow_can_be_encoded),
        T(what_was_added_can_be_removed_before_it_starts),
        T(a_fanout_has_roots_of_its_own),
        T(a_template_without_control_has_the_usual),
        T(operations_have_several_names),
        T(only_a_dynamic_flow_can_be_changed),
        T(a_patch_must_be_well_formed),
        T(a_patch_stays_in_its_region),
        T(a_patch_leaves_a_flow_that_can_be_finished),
        T(what_has_started_is_not_changed),
        T(regions_keep_apart),
        T(another_patch_under_the_same_name_is_refused),
        T(patches_have_limits),
        T(a_quorum_can_still_be_reached),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
