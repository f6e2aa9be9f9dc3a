/* What looks mistyped gets a note, wherever it stands; what is right gets none. */
#include "support/manifest_rig.h"

#define RUNNER "'runner_module':'HostLocal','command':['p']"

/* A catalog manifest whose parts can be told apart; `%s`: what is added there. */
static struct gl_flow *with(struct fixture *x, const char *root, const char *config,
                            const char *edge, const char *workflow, const char *control)
{
    return compile(
        x, gl_str_fmt(&x->a,
                      "{'apiVersion':'mn.workflow/v2','id':'i','manifest_version':'1.0'%s,"
                      "'workflow':{'workflow_id':'g','steps':[{'id':'a','control':{%s}}]%s},"
                      "'agents':{'nodes':[{'node_id':'a','agent_type':'executor','config':{" RUNNER
                      "%s}},{'node_id':'b','agent_type':'aggregator'}],'entrypoints':['a'],"
                      "'edges':[{'from_node':'a','to_node':'b','message_type':'paper'%s}]}}",
                      root, control, workflow, config, edge)
               .p);
}

static void assert_note(const struct gl_flow *f, const char *text)
{
    assert_int_equal(f->bundle->notes.n, 1);
    assert_text(f->bundle->notes.items[0], text);
}

static void what_is_right_gets_no_note(void **state)
{
    struct gl_flow *f =
        with(*state, ",'policies':{'restart':{'attempts':1}}",
             ",'output_message_type':'paper','own_thing':1", ",'conditions':{},'id':'e'",
             ",'sink':'a'", "'retry':{'max_attempts':2}");

    assert_int_equal(f->bundle->notes.n, 0);
}

static void what_has_no_effect_gets_a_note(void **state)
{
    assert_note(with(*state, ",'policies':{'reschedule':{'unlimited':true}}", "", "", "", ""),
                "policies.reschedule has no effect: a job moves as a whole when its node is lost, "
                "as often as needed");
    assert_note(with(*state, "", "},'resources':{'memory_mb':64", "", "", ""),
                "resources.memory_mb of 1 agent has no effect: memory is neither limited nor "
                "reserved");
    assert_note(with(*state, ",'policies':{'strategy':'spread'}", "", "", "", ""),
                "policies.strategy has no effect: nodes with free slots take jobs");
}

static void names_that_are_nearly_right(void **state)
{
    static const struct {
        const char *root, *config, *edge, *workflow, *control, *note;
    } cases[] = {
        {",'polices':{}", "", "", "", "", "polices is not read; did you mean `policies`?"},
        {",'policies':{'recovery_mod':1}", "", "", "", "",
         "policies.recovery_mod is not read; did you mean `recovery_mode`?"},
        {",'policies':{'restart':{'atempts':1}}", "", "", "", "",
         "policies.restart.atempts is not read; did you mean `attempts`?"},
        {",'runtime':{'bindngs':{}}", "", "", "", "",
         "runtime.bindngs is not read; did you mean `bindings`?"},
        {"", ",'pool_slot':1", "", "", "",
         "agents.nodes[0].config.pool_slot is not read; did you mean `pool_slots`?"},
        {"", ",'backpressure':{'low_watermrk':1}", "", "", "",
         "agents.nodes[0].config.backpressure.low_watermrk is not read; did you mean "
         "`low_watermark`?"},
        {"", "", ",'condition':{}", "", "",
         "agents.edges[0].condition is not read; did you mean `conditions`?"},
        {"", "", "", ",'sinks':'a'", "", "workflow.sinks is not read; did you mean `sink`?"},
        {"", "", "", ",'edegs':[]", "", "workflow.edegs is not read; did you mean `edges`?"},
        {"", "", "", ",'dynamic':{'enabeld':true}", "",
         "workflow.dynamic.enabeld is not read; did you mean `enabled`?"},
        {"", "", "", "", "'retry':{'max_attemps':2}",
         "workflow.steps[0].control.retry.max_attemps is not read; did you mean `max_attempts`?"},
        {"", "", "", "", "'timeout_secods':2",
         "workflow.steps[0].control.timeout_secods is not read; did you mean `timeout_seconds`?"},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        assert_note(with(*state, cases[i].root, cases[i].config, cases[i].edge, cases[i].workflow,
                         cases[i].control),
                    cases[i].note);
    }
}

/* The one mistake that loses messages without a word: their type. */
static void types_that_no_edge_takes(void **state)
{
    static const struct {
        const char *config, *edge, *note;
    } cases[] = {
        {",'output_message_type':'papers'", "",
         "agent `a` sends `papers` (output_message_type), but no edge from it takes that type: "
         "nobody gets it; an edge takes `paper`"},
        {",'failure_message_type':'sorry'", "",
         "agent `a` sends `sorry` (failure_message_type), but no edge from it takes that type: "
         "nobody gets it"},
        {",'output_message_type':'papers'", "},{'from':'a','to':'b','event':'*'", NULL},
        {",'output_message_type':'papers'", "},{'from':'a','to':'b','event':'papers'", NULL},
        {",'output_message_type':null", "", NULL},
        {"", "", NULL}, /* nobody has named `executor_result` */
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_flow *f = with(*state, "", cases[i].config, cases[i].edge, "", "");

        if (cases[i].note != NULL) {
            assert_note(f, cases[i].note);
        } else {
            assert_int_equal(f->bundle->notes.n, 0);
        }
    }
}

static void routers_and_last_agents(void **state)
{
    struct gl_flow *f = compile(
        *state, "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':["
                "{'node_id':'r','agent_type':'router','role':'root','config':{'emit_type':'lef'}},"
                "{'node_id':'s','agent_type':'sensor','config':{'output_message_type':'heard'}}],"
                "'edges':[{'from':'r','to':'s','event':'left'}]}");

    assert_note(f, "agent `r` sends `lef` (emit_type), but no edge from it takes that type: nobody "
                   "gets it; an edge takes `left`");
}

/* Notes are not told with errors, so what is missing because of a slip says so itself. */
static void what_is_missing_because_of_a_slip(void **state)
{
    struct fixture *x = *state;
    struct gl_flow *f;

    assert_int_equal(
        parse(x,
              quoted(x, "{'apiVersion':'mn.workflow/v2','manifest_versio':'1.0','id':'i',"
                        "'wokflow':{},'agnets':{}}"),
              &f),
        GL_E_INVALID);
    for (size_t i = 0; i < x->errors.n; i++) {
        gl_str path = x->errors.items[i].path, text = x->errors.items[i].text;

        if (gl_str_is(path, "workflow")) {
            assert_text(text, "it is missing: the steps and their edges; `wokflow` is not read: "
                              "did you mean `workflow`?");
        } else if (gl_str_is(path, "manifest_version")) {
            assert_text(text, "it is missing: write \"1.0\"; `manifest_versio` is not read: did "
                              "you mean `manifest_version`?");
        }
    }
    assert_true(x->errors.n >= 3);
}

static void only_some_are_told(void **state)
{
    struct fixture *x = *state;
    struct gl_buf text = {0};

    gl_buf_c(&text, "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':[");
    for (int i = 0; i < 100; i++) {
        gl_buf_fmt(&text, "%s{'node_id':'r%d','agent_type':'router','role':'root','confg':{}}",
                   i > 0 ? "," : "", i);
    }
    gl_buf_c(&text, "]}");
    gl_buf_char(&text, 0);
    assert_int_equal(compile(x, text.p)->bundle->notes.n, 8);
    gl_buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_right_gets_no_note),        TEST(what_has_no_effect_gets_a_note),
        TEST(names_that_are_nearly_right),       TEST(types_that_no_edge_takes),
        TEST(routers_and_last_agents),           TEST(only_some_are_told),
        TEST(what_is_missing_because_of_a_slip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
