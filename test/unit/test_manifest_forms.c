/* The forms of manifests, first messages, layers of a configuration, sizes, and the page. */
#include "support/manifest_rig.h"

#include <stdio.h>
#include <string.h>

/* Seeds. */

static void check_seeds(struct fixture *x, const char *inputs, const char *wanted)
{
    struct gl_flow *f =
        compile(x, gl_str_fmt(&x->a,
                              "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':[{"
                              "'id':'a','agent_type':'router'},{'id':'b','agent_type':'router'}],"
                              "'entrypoints':['b','a']%s}",
                              inputs)
                       .p);
    const struct gl_seed *seeds = f->bundle->seeds.items;
    struct gl_buf got = {0};

    for (size_t i = 0; i < f->bundle->seeds.n; i++) {
        gl_buf_fmt(&got, "%.*s%.*s ", GL_STR_ARG(seeds[i].agent), GL_STR_ARG(seeds[i].message));
    }
    assert_text(gl_buf_view(&got), quoted(x, wanted).p);
    gl_buf_done(&got);
}

static void each_entrypoint_gets_its_messages(void **state)
{
    struct fixture *x = *state;

    check_seeds(x, "", "b{} a{} ");
    check_seeds(x, ",'initial_inputs':{'a':[{'x': 1}, 2],'b':{'y':1}}", "b{'y':1} a{'x':1} a2 ");
    check_seeds(x, ",'initial_inputs':{'a':[]}", "b{} ");
    check_seeds(x, ",'initial_inputs':[1,{'k':[ ]}]", "b1 b{'k':[]} a1 a{'k':[]} ");
    check_seeds(x,
                ",'initial_inputs':{'a':[1]},'runtime':{'bindings':{'s':{'workers':[{'id':'a'},"
                "{'id':'b'}],'seed_inputs':[7]}}}",
                "b7 a1 ");
}

static void what_is_set_reaches_every_object(void **state)
{
    struct fixture *x = *state;
    gl_str sets[] = {GL_S("inputs.payload.gap=false"), GL_S("inputs.payload.deep.n=2"),
                     GL_S("other=1")};
    struct gl_strs list = {.items = sets, .n = 3};

    assert_int_equal(gl_manifest_overlay(&list, &x->a, &x->given.overlay, NULL), 0);
    assert_text(x->given.overlay, "{\"gap\":false,\"deep\":{\"n\":2}}");
    check_seeds(
        x,
        ",'initial_inputs':{'a':[{'type':'init','gap':true,'deep':{'m':1}},{'body':{'z':1}},"
        "{'payload':'text'},5]}",
        "b{'body':{'gap':false,'deep':{'n':2}}} "
        "a{'type':'init','body':{'gap':false,'deep':{'m':1,'n':2}}} "
        "a{'body':{'z':1,'gap':false,'deep':{'n':2}}} a{'payload':'text'} a5 ");
}

/* Forms. */

static void the_later_of_two_wins_in_the_catalog(void **state)
{
    struct gl_flow *f = compile(
        *state,
        "{'apiVersion':'mn.workflow/v1','id':'i','manifest_version':1,"
        "'workflow':{'workflow_id':'g'},"
        "'agents':{'nodes':[{'id':'a','agent_type':'router'},"
        "{'id':'b','agent_type':'router'},{'id':"
        "'a','agent_type':'sensor'}],'edges':[{'id':'e','from':'a','to':'b','event':'x'},{'id':'e',"
        "'from':'b','to':'a','event':'y'}],'entrypoints':'a'}}");

    assert_text(f->name, "i");
    assert_text(f->bundle->graph_id, "g");
    assert_int_equal(f->bundle->agents.n, 2);
    assert_int_equal(agent(f, "a")->kind, GL_AGENT_SENSOR);
    assert_int_equal(f->bundle->routes.n, 1);
    assert_text(((const struct gl_route *)f->bundle->routes.items)->type, "y");
}

static void bindings_alone_make_agents(void **state)
{
    struct gl_flow *f = compile(
        *state,
        "{'manifest_version':'1.0','graph_id':'g','job_name':'j','flow':{'entrypoint':'s','steps':["
        "{'id':'s'},{'id':'t','run':'tt'}],'graph':{'edges':[{'from':'s','to':'t'}]}},'runtime':{"
        "'bindings':{'s':{'workers':[{'node_id':'p',"
        "'with':{'command':['true']}},{'node':'q','uses':"
        "'mn/control_router'}],'start_workers':['q'],'routes':[{'from':'q','to':'p','event':'*'}]},"
        "'tt':{'workers':[{'id':'k','role':'sink'},{'id':'m','uses':'x.data_module','config':{"
        "'module':'M'}},{'id':'n','role':'control_join'}]}}}}");

    assert_int_equal(f->bundle->agents.n, 5);
    assert_int_equal(agent(f, "p")->kind, GL_AGENT_EXECUTOR);
    assert_text(step(f, "@p")->argv.items[0], "true");
    assert_int_equal(agent(f, "q")->kind, GL_AGENT_ROUTER);
    assert_int_equal(agent(f, "k")->kind, GL_AGENT_AGGREGATOR);
    assert_int_equal(agent(f, "m")->kind, GL_AGENT_MODULE);
    assert_int_equal(agent(f, "n")->kind, GL_AGENT_AGGREGATOR);
    assert_int_equal(f->bundle->routes.n, 1);
    assert_int_equal(f->bundle->seeds.n, 1);
    assert_text(((const struct gl_seed *)f->bundle->seeds.items)->agent, "q");
    assert_text(step(f, "s")->agent_ids.items[0], "p");
    assert_int_equal(step(f, "t")->agent_ids.n, 3);
}

static void a_flow_file_is_no_manifest(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"{'steps':{'a':{'sh':'true'}}}", false},
        {"{'name':'x','inputs':{},'steps':[]}", false},
        {"[]", false},
        {"{'apiVersion':'mn.workflow/v2'}", true},
        {"{'apiVersion':'blueprint/v1'}", true},
        {"{'graph_id':'g'}", true},
        {"{'flow':{'nodes':[]}}", true},
        {"{'nodes':[],'entrypoints':[]}", true},
        {"{'runtime':{'bindings':{}}}", true},
    };
    struct fixture *x = *state;

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_json j;

        assert_int_equal(gl_json_parse(&j, quoted(x, cases[i].text), 1000, &x->a, NULL), 0);
        assert_int_equal(gl_manifest_is(&j, gl_json_root(&j)), cases[i].is);
    }
}

/* Layers. */

static void layers_of_a_configuration(void **state)
{
    struct fixture *x = *state;
    gl_str sets[] = {GL_S("a.c={\"d\":1}"), GL_S("a.e=plain text"), GL_S("new.deep=true"),
                     GL_S("l=[2]"), GL_S("empty=")};
    struct gl_strs list = {.items = sets, .n = 5};
    gl_str out = {0};

    assert_int_equal(gl_manifest_config(quoted(x, "{'a':{'b':1,'c':2},'l':[1],'k':0}"),
                                        quoted(x, "{'a':{'c':3},'k':{'x':1}}"), &list, &x->a, &out,
                                        NULL),
                     0);
    assert_text(out,
                quoted(x, "{'a':{'b':1,'c':{'d':1},'e':'plain text'},'l':[2],'k':{'x':1},'new':"
                          "{'deep':true},'empty':''}")
                    .p);
    assert_int_equal(gl_manifest_config((gl_str){0}, (gl_str){0}, NULL, &x->a, &out, NULL), 0);
    assert_text(out, "{}");
}

static void settings_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"novalue", "=1",     "a..b=1", ".a=1",
                                      "a.=1",    "\xff=1", "a=\xff"};
    struct fixture *x = *state;

    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        gl_str set = gl_str_of(bad[i]), out = {0};
        struct gl_strs list = {.items = &set, .n = 1};
        struct gl_why why = {0};

        assert_int_not_equal(gl_manifest_config((gl_str){0}, (gl_str){0}, &list, &x->a, &out, &why),
                             0);
        assert_true(why.text[0] != 0);
    }
}

static void the_configuration_may_stand_in_for_parts(void **state)
{
    struct fixture *x = *state;
    struct gl_flow *f;

    x->given.config = quoted(x, "{'m':{'t':9,'n':'x'},'manifest_config_bindings':[{'config':'m.t',"
                                "'manifest':'nodes[0].config.timeout_seconds'},{'config':'m.n',"
                                "'manifest':'nodes[w].config.environment.N'}]}");
    f = with_config(x, "{'timeout_seconds':1,'environment':{}}");
    assert_int_equal(step(f, "@w")->timeout_ms, 9000);
    assert_true(has_env(step(f, "@w"), "N=x"));
    assert_text(f->bundle->config, x->given.config.p);
}

/* Size. */

static void a_hundred_thousand_agents_compile(void **state)
{
    enum { AGENTS = 100000 };
    struct fixture *x = *state;
    struct gl_buf text = {0}, out = {0};
    struct gl_flow *f;

    gl_buf_c(&text, "{\"manifest_version\":\"1.0\",\"graph_id\":\"g\",\"job_name\":\"j\",\"flow\":{"
                    "\"nodes\":[");
    for (int i = 0; i < AGENTS; i++) {
        gl_buf_fmt(&text,
                   "%s{\"node_id\":\"n%d\",\"agent_type\":\"executor\",\"config\":{\"command\":["
                   "\"true\"]}}",
                   i > 0 ? "," : "", i);
    }
    gl_buf_c(&text, "],\"edges\":[");
    for (int i = 0; i + 1 < AGENTS; i++) {
        gl_buf_fmt(&text, "%s{\"from\":\"n%d\",\"to\":\"n%d\",\"event\":\"x\"}", i > 0 ? "," : "",
                   i, i + 1);
    }
    gl_buf_c(&text, "]},\"entrypoints\":[\"n0\"]}");
    assert_int_equal(parse(x, gl_buf_view(&text), &f), 0);
    assert_int_equal(gl_flow_agents_n(f), AGENTS);
    gl_flow_encode(f, &out);
    assert_true(out.n < GL_FLOW_BYTES_MAX);
    assert_int_equal(gl_flow_decode(gl_buf_view(&out), &x->a, &f, NULL), 0);
    assert_int_equal(f->bundle->routes.n, AGENTS - 1);
    gl_buf_done(&text);
    gl_buf_done(&out);
}

static void what_would_be_multiplied_is_limited(void **state)
{
    struct fixture *x = *state;
    struct gl_buf text = {0};
    struct gl_flow *f;

    gl_buf_c(&text,
             "{\"manifest_version\":\"1.0\",\"graph_id\":\"g\",\"job_name\":\"j\",\"nodes\":[");
    for (int i = 0; i < 1000; i++) {
        gl_buf_fmt(&text, "%s{\"id\":\"n%d\",\"agent_type\":\"router\",\"role\":\"root\"}",
                   i > 0 ? "," : "", i);
    }
    gl_buf_c(&text, "],\"initial_inputs\":[\"");
    for (int i = 0; i < 100000; i++) {
        gl_buf_char(&text, 'x');
    }
    gl_buf_c(&text, "\"]}");
    assert_int_equal(parse(x, gl_buf_view(&text), &f), GL_E_INVALID);
    assert_int_equal(x->errors.total, 1);
    gl_buf_done(&text);
}

static void errors_beyond_the_last_are_counted(void **state)
{
    struct fixture *x = *state;
    struct gl_buf text = {0};
    struct gl_flow *f;

    gl_buf_c(&text,
             "{\"manifest_version\":\"1.0\",\"graph_id\":\"g\",\"job_name\":\"j\",\"nodes\":[");
    for (int i = 0; i < 20000; i++) {
        gl_buf_fmt(&text, "%s{\"id\":\"n%d\",\"agent_type\":\"oops\"}", i > 0 ? "," : "", i);
    }
    gl_buf_c(&text, "],\"entrypoints\":[\"n1\"]}");
    assert_int_equal(parse(x, gl_buf_view(&text), &f), GL_E_INVALID);
    assert_int_equal(x->errors.n, 64);
    assert_int_equal(x->errors.total, 20000);
    assert_text(x->errors.items[63].path, "nodes[63].agent_type");
    gl_buf_done(&text);
}

/* The page. */

static void the_reference_page_has_every_field(void **state)
{
    static char page[200000];
    struct fixture *x = *state;
    FILE *file = fopen(GL_SOURCE_ROOT "/docs/bundle-manifest.md", "r");
    size_t n;

    assert_non_null(file);
    n = fread(page, 1, sizeof(page) - 1, file);
    (void)fclose(file);
    page[n] = 0;
    for (int t = GL_TABLE_NONE + 1; t < GL_TABLE_COUNT; t++) {
        for (size_t i = 0; i < gl_manifest_tables[t].n; i++) {
            const struct gl_manifest_field *f = &gl_manifest_tables[t].rows[i];
            gl_str row;

            if (f->doc == NULL) {
                continue;
            }
            row = gl_str_fmt(&x->a, "| `%s` | %s | %s | %s |", f->name, f->type,
                             f->fallback != NULL ? f->fallback : "none", f->doc);
            if (strstr(page, row.p) == NULL) {
                fail_msg("docs/bundle-manifest.md has no row\n%s", row.p);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_entrypoint_gets_its_messages),    TEST(what_is_set_reaches_every_object),
        TEST(the_later_of_two_wins_in_the_catalog), TEST(bindings_alone_make_agents),
        TEST(a_flow_file_is_no_manifest),           TEST(layers_of_a_configuration),
        TEST(settings_that_are_none_are_refused),   TEST(the_configuration_may_stand_in_for_parts),
        TEST(a_hundred_thousand_agents_compile),    TEST(what_would_be_multiplied_is_limited),
        TEST(errors_beyond_the_last_are_counted),   TEST(the_reference_page_has_every_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
