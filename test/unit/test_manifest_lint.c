/* What looks mistyped gets a note, wherever it stands; what is right gets none. */
#include "support/golden.h"
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

static void has_note(const struct gl_flow *f, const char *what)
{
    assert_int_equal(f->bundle->notes.n, 1);
    golden_say(what, f->bundle->notes.items[0]);
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
    has_note(with(*state, ",'policies':{'reschedule':{'unlimited':true}}", "", "", "", ""),
             "reschedule");
    has_note(with(*state, "", "},'resources':{'memory_mb':64", "", "", ""), "memory_mb");
    has_note(with(*state, ",'policies':{'strategy':'spread'}", "", "", "", ""), "strategy");
}

static void names_that_are_nearly_right(void **state)
{
    static const struct {
        const char *root, *config, *edge, *workflow, *control;
    } cases[] = {
        {",'polices':{}", "", "", "", ""},
        {",'policies':{'recovery_mod':1}", "", "", "", ""},
        {",'policies':{'restart':{'atempts':1}}", "", "", "", ""},
        {",'runtime':{'bindngs':{}}", "", "", "", ""},
        {"", ",'pool_slot':1", "", "", ""},
        {"", ",'backpressure':{'low_watermrk':1}", "", "", ""},
        {"", "", ",'condition':{}", "", ""},
        {"", "", "", ",'sinks':'a'", ""},
        {"", "", "", ",'edegs':[]", ""},
        {"", "", "", ",'dynamic':{'enabeld':true}", ""},
        {"", "", "", "", "'retry':{'max_attemps':2}"},
        {"", "", "", "", "'timeout_secods':2"},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_flow *f = with(*state, cases[i].root, cases[i].config, cases[i].edge,
                                 cases[i].workflow, cases[i].control);

        has_note(f, "a name that is nearly right");
    }
}

/* The one mistake that loses messages without a word: their type. */
static void types_that_no_edge_takes(void **state)
{
    static const struct {
        const char *config, *edge;
        bool has_note;
    } cases[] = {
        {",'output_message_type':'papers'", "", true},
        {",'failure_message_type':'sorry'", "", true},
        {",'output_message_type':'papers'", "},{'from':'a','to':'b','event':'*'", false},
        {",'output_message_type':'papers'", "},{'from':'a','to':'b','event':'papers'", false},
        {",'output_message_type':null", "", false},
        {"", "", false}, /* nobody has named `executor_result` */
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_flow *f = with(*state, "", cases[i].config, cases[i].edge, "", "");

        if (cases[i].has_note) {
            has_note(f, cases[i].config);
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

    has_note(f, "emit_type");
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
            golden_say("workflow", text);
        } else if (gl_str_is(path, "manifest_version")) {
            golden_say("manifest_version", text);
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

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/manifest_lint.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_right_gets_no_note),
        TEST(what_has_no_effect_gets_a_note),
        TEST(names_that_are_nearly_right),
        TEST(types_that_no_edge_takes),
        TEST(routers_and_last_agents),
        TEST(only_some_are_told),
        TEST(what_is_missing_because_of_a_slip),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
