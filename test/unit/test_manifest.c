/* Agents, steps and policies of good manifests: what becomes of their fields. (Those that are not
 * good: test_manifest_broken.) */
#include "support/manifest_rig.h"

#include "port/exec.h"

/* Agents. */

static void an_executor_has_the_usual_fields(void **state)
{
    struct gl_flow *f =
        with_config(*state, "{'runner_module':'X.Runner.HostLocal','command':['p']}");
    const struct gl_agent_spec *a = agent(f, "w");
    const struct gl_step_spec *u = step(f, "@w");

    assert_int_equal(a->kind, GL_AGENT_EXECUTOR);
    assert_text(a->template_type, "generic");
    assert_text(a->runner, "host_local");
    assert_int_equal(a->output, GL_OUTPUT_USUAL);
    assert_text(a->output_type, "executor_result");
    assert_text(a->allocation,
                "{\"devices\":[],\"ports\":[],\"volumes\":[],\"runtime_driver\":\"host_local\"}");
    assert_int_equal(a->tries, 1);
    assert_int_equal(a->try_backoff_ms, 500);
    assert_int_equal(a->stdout_max, 1 << 20);
    assert_int_equal(a->lease_timeout_ms, 30000);
    assert_int_equal(a->lease_queue_max, 1000);
    assert_false(a->beacons);
    assert_int_equal(a->beacon_ms, 15000);
    assert_int_equal(a->beacon_timeout_ms, 45000);
    assert_int_equal(a->depth_max, 100);
    assert_int_equal(a->high_mark, 75);
    assert_int_equal(a->low_mark, 25);
    assert_int_equal(a->retry_after_ms, 250);
    assert_int_equal(a->step, -1);
    assert_text(u->driver, "worker");
    assert_text(u->pool, "executor.default");
    assert_int_equal(u->slots, 1);
    assert_int_equal(u->timeout_ms, 0);
    assert_int_equal(u->heartbeat_ms, 0);
    assert_text(u->cwd, GL_EXEC_WORK);
    assert_int_equal(f->bundle->notes.n, 0);
    assert_int_equal(f->roots_n, 0); /* units are nobody's business but the agents' */
}

static void an_executor_has_what_its_config_says(void **state)
{
    struct gl_flow *f = with_config(
        *state,
        "{'command':'a | b','environment':{'A':1,'B':true,'C':'x y','D':null,'E':[1, 2]},"
        "'pass_env':['HOME'],'workdir':'/sandbox/job/worker/','upload_path':'worker',"
        "'upload_as':'w','timeout_seconds':1.5,'max_attempts':3,'retry_backoff_ms':0,"
        "'pool':'gpu','pool_slots':25,'beacon_enabled':true,'beacon_interval_ms':1000,"
        "'beacon_timeout_ms':5000,'agent_beacon_required':true,'max_output_bytes':100,"
        "'output_message_type':null,'workflow_complete_step':false,'failure_message_type':'bad',"
        "'backpressure':{'max_queue_depth':3,'drop_policy':'block'},'startup_delay_ms':5,"
        "'python_environment':{'packages':['x']},'own':{'k': 1}}");
    const struct gl_agent_spec *a = agent(f, "w");
    const struct gl_upload *upload = a->uploads.items;
    const struct gl_step_spec *u = step(f, "@w");

    assert_int_equal(u->argv.n, 3);
    assert_text(u->argv.items[0], "bash");
    assert_text(u->argv.items[1], "-lc");
    assert_text(u->argv.items[2], "a | b");
    assert_true(has_env(u, "A=1") && has_env(u, "B=true") && has_env(u, "C=x y"));
    assert_true(has_env(u, "D=") && has_env(u, "E=[1,2]"));
    assert_text(u->cwd, GL_EXEC_WORK "/worker");
    assert_int_equal(u->timeout_ms, 1500);
    assert_text(u->pool, "executor.gpu");
    assert_int_equal(u->slots, 25);
    assert_text(a->pass_env.items[0], "HOME");
    assert_int_equal(a->uploads.n, 1);
    assert_text(upload->source, "worker");
    assert_text(upload->target, "w");
    assert_int_equal(a->tries, 3);
    assert_int_equal(a->try_backoff_ms, 0);
    assert_true(a->beacons && a->beacon_required);
    assert_int_equal(a->beacon_ms, 1000);
    assert_int_equal(a->stdout_max, 100);
    assert_int_equal(a->output, GL_OUTPUT_NOTHING);
    assert_true(a->leaves_step);
    assert_text(a->failure_type, "bad");
    assert_int_equal(a->depth_max, 3);
    assert_int_equal(a->high_mark, 2);
    assert_int_equal(a->low_mark, 2);
    assert_text(a->python_env, "{\"packages\":[\"x\"]}");
    assert_text(a->config, "{\"own\":{\"k\":1}}");
    assert_int_equal(f->bundle->notes.n, 1); /* no runner is named */
    assert_text(a->runner, "");
}

static void a_folder_may_be_named_in_three_ways(void **state)
{
    static const struct {
        const char *config, *cwd;
    } cases[] = {
        {"{}", GL_EXEC_WORK},
        {"{'workdir':'/sandbox/job'}", GL_EXEC_WORK},
        {"{'workdir':'/sandbox/job/a/b'}", GL_EXEC_WORK "/a/b"},
        {"{'workdir':'/w/x','sandbox_upload_path':'/w/'}", GL_EXEC_WORK "/x"},
        {"{'workdir':'/sandbox/jobs'}", "/sandbox/jobs"},
        {"{'workdir':'/srv/data'}", "/srv/data"},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        assert_text(step(with_config(*state, cases[i].config), "@w")->cwd, cases[i].cwd);
    }
}

static void files_may_be_named_in_four_ways(void **state)
{
    static const struct {
        const char *config, *source, *target;
    } cases[] = {
        {"{'upload_path':'worker'}", "worker", "worker"},
        {"{'upload_path':'./worker/'}", "worker", "worker"},
        {"{'upload_path':'worker/run.py'}", "worker/run.py", "run.py"},
        {"{'upload_path':'.'}", "", ""},
        {"{'upload_path':'worker','upload_as':'.'}", "worker", ""},
        {"{'upload_path':'gone','upload_paths':[{'source':'data.txt','target':'in/x'}]}",
         "data.txt", "in/x"},
        {"{'uploads':[{'source':'worker/lib'}]}", "worker/lib", "lib"},
        {"{'uploads':['data.txt']}", "data.txt", "data.txt"},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        const struct gl_agent_spec *a = agent(with_config(*state, cases[i].config), "w");
        const struct gl_upload *u = a->uploads.items;

        assert_int_equal(a->uploads.n, 1);
        assert_text(u->source, cases[i].source);
        assert_text(u->target, cases[i].target);
    }
}

static void unsafe_marks_win_and_no_mark_is_unsafe(void **state)
{
    static const struct {
        const char *config;
        uint8_t safety;
    } cases[] = {
        {"{}", GL_SAFETY_UNSAFE},
        {"{'safe_to_retry':true}", GL_SAFETY_IDEMPOTENT},
        {"{'idempotent':true}", GL_SAFETY_IDEMPOTENT},
        {"{'idempotency_key':'k'}", GL_SAFETY_IDEMPOTENT},
        {"{'recovery_idempotency_key':'k'}", GL_SAFETY_IDEMPOTENT},
        {"{'safe_to_retry':false,'idempotent':true}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'unsafe':true}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'requires_approval':true}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'manual_review_on_recovery':true}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'side_effects':['external_write']}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'side_effect':'external'}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'side_effects':{'external_writes':true}}", GL_SAFETY_UNSAFE},
        {"{'idempotent':true,'side_effects':{'external_writes':false}}", GL_SAFETY_IDEMPOTENT},
        {"{'idempotent':true,'side_effects':'none'}", GL_SAFETY_IDEMPOTENT},
        {"{'idempotent':true,'unsafe':false,'side_effects':[]}", GL_SAFETY_IDEMPOTENT},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_flow *f = with_config(*state, cases[i].config);

        if (step(f, "@w")->safety != cases[i].safety) {
            fail_msg("%s", cases[i].config);
        }
    }
}

static void skills_are_uploaded_and_importable(void **state)
{
    struct gl_flow *f =
        compile(*state, "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':["
                        "{'node_id':'w','agent_type':'executor','role':'root','config':{"
                        "'environment':{'PYTHONPATH':'lib'}}},{'id':'v','agent_type':'executor'}],"
                        "'skill_dependencies':[{'name':'alpha','source':'payload'}]}");
    const struct gl_upload *u = agent(f, "w")->uploads.items;

    assert_text(u->source, "skills/alpha");
    assert_text(u->target, "skills/alpha");
    assert_true(has_env(step(f, "@w"), "PYTHONPATH=" GL_EXEC_WORK "/skills/alpha/src:lib"));
    assert_true(has_env(step(f, "@v"), "PYTHONPATH=" GL_EXEC_WORK "/skills/alpha/src"));
}

static void what_is_no_executor_has_a_relay_or_its_module(void **state)
{
    struct gl_flow *f = compile(
        *state,
        "{'manifest_version':'1.0','graph_id':'g','job_name':'j','entrypoints':['s'],'nodes':["
        "{'id':'s','agent_type':'sensor'},{'id':'g','agent_type':'collector','type':'accumulator',"
        "'config':{'complete_after':2,'output_message_type':'out'}},{'id':'r','agent_type':'relay',"
        "'config':{'emit_type':'e'}},{'id':'m','agent_type':'module','config':{'module':'A.B',"
        "'threshold': 60}}],'edges':[{'id':'e','from':'s','to':'g','event':'*'},"
        "{'from_node':'g','to_node':'r','message_type':'out','routing_mode':'first_match',"
        "'conditions':{'path':'payload.x','value':1}},{'from':'s','to':'r','event':'t'}]}");
    const struct gl_route *routes = f->bundle->routes.items;

    assert_text(step(f, "@s")->driver, "relay");
    assert_text(step(f, "@s")->pool, "default");
    assert_int_equal(step(f, "@g")->safety, GL_SAFETY_IDEMPOTENT);
    assert_text(step(f, "@m")->driver, "module");
    assert_text(agent(f, "s")->output_type, "sensor_ready");
    assert_int_equal(agent(f, "r")->output, GL_OUTPUT_NOTHING);
    assert_text(agent(f, "r")->emit_type, "e");
    assert_int_equal(agent(f, "g")->kind, GL_AGENT_AGGREGATOR);
    assert_text(agent(f, "g")->template_type, "reduce");
    assert_int_equal(agent(f, "g")->complete_after, 2);
    assert_text(agent(f, "m")->module, "A.B");
    assert_text(agent(f, "m")->config, "{\"module\":\"A.B\",\"threshold\":60}");
    assert_int_equal(f->bundle->routes.n, 3);
    assert_text(routes[1].id, "g->r");
    assert_int_equal(routes[1].mode, GL_ROUTE_FIRST_MATCH);
    assert_text(routes[1].conditions, "{\"path\":\"payload.x\",\"value\":1}");
    assert_int_equal(agent(f, "s")->routes_n, 2);
    assert_int_equal(agent(f, "s")->routes[1], 2);
}

/* Steps. */

static void a_step_takes_from_its_node_what_it_does_not_say(void **state)
{
    struct gl_flow *f = with_workflow(
        *state,
        "[{'id':'a'},{'id':'w'},{'id':'x','run':'w','control':{'timeout_seconds':60,"
        "'beacon_timeout_ms':9000,'retry':{'max_attempts':4,'backoff_seconds':3,"
        "'backoff_multiplier':1.5}}},{'id':'y:1','agent_id':'w','control':{'retry_backoff_ms':20,"
        "'max_attempts':5}},{'id':'z','run':'c','label':'Z',"
        "'control':{'retry':{'backoff_seconds':3,"
        "'max_attempts':2}}}]",
        "[]", "");

    assert_int_equal(step(f, "a")->timeout_ms, 300000);
    assert_int_equal(step(f, "a")->heartbeat_ms, 300000);
    assert_int_equal(step(f, "a")->retry.attempts, 1);
    assert_int_equal(step(f, "a")->retry.backoff_ms, 1000);
    assert_int_equal(step(f, "w")->timeout_ms, 7000);
    assert_int_equal(step(f, "w")->heartbeat_ms, 5000);
    assert_int_equal(step(f, "w")->retry.attempts, 2);
    assert_int_equal(step(f, "x")->timeout_ms, 60000);
    assert_int_equal(step(f, "x")->heartbeat_ms, 9000);
    assert_int_equal(step(f, "x")->retry.attempts, 4);
    assert_int_equal(step(f, "x")->retry.backoff_ms, 100); /* the node's comes first */
    assert_int_equal(step(f, "x")->retry.factor_pct, 150);
    assert_int_equal(step(f, "y:1")->retry.backoff_ms, 20);
    assert_int_equal(step(f, "y:1")->retry.attempts, 5);
    assert_int_equal(step(f, "y:1")->retry.factor_pct, 200);
    assert_int_equal(step(f, "z")->retry.backoff_ms, 3000);
    assert_text(step(f, "z")->label, "Z");
    assert_true(step(f, "z")->is_bound);
    assert_text(gl_flow_agent(f, step(f, "z")->agent)->id, "c");
    assert_text(gl_flow_step(f, (uint32_t)agent(f, "w")->step)->id, "w"); /* the first */
}

static void failure_policies(void **state)
{
    struct gl_flow *f = with_workflow(
        *state,
        "[{'id':'a'},{'id':'b','control':{'required':false}},{'id':'c','control':{'failure_policy':"
        "'skip'}},{'id':'w','control':{'failure_policy':'continue_partial'}},{'id':'d','run':'a',"
        "'control':{'failure_policy':'continue'}},{'id':'e','run':'a','control':{'failure_policy':"
        "'fail_workflow'}}]",
        "[]", "");

    assert_int_equal(step(f, "a")->on_failure, GL_ON_FAILURE_FAIL);
    assert_int_equal(step(f, "b")->on_failure, GL_ON_FAILURE_CONTINUE);
    assert_int_equal(step(f, "c")->on_failure, GL_ON_FAILURE_SKIP);
    assert_int_equal(step(f, "w")->on_failure, GL_ON_FAILURE_CONTINUE);
    assert_int_equal(step(f, "d")->on_failure, GL_ON_FAILURE_CONTINUE);
    assert_int_equal(step(f, "e")->on_failure, GL_ON_FAILURE_FAIL);
}

static void every_rule_and_alias_in_every_place(void **state)
{
    static const struct {
        const char *written;
        uint8_t rule;
        uint32_t quorum;
    } cases[] = {
        {"'trigger_rule':'all_required'", GL_RULE_ALL_SUCCESS, 0},
        {"'trigger_rule':'all_done'", GL_RULE_ALL_DONE, 0},
        {"'trigger_rule':{'type':'any_success'}", GL_RULE_ONE_SUCCESS, 0},
        {"'trigger_rule':{'mode':'any_done'}", GL_RULE_ONE_DONE, 0},
        {"'control':{'trigger_rule':'any_failed'}", GL_RULE_ONE_FAILED, 0},
        {"'join':{'rule':'partial_success'}", GL_RULE_NONE_FAILED, 0},
        {"'join':{'mode':'quorum','minimum':2}", GL_RULE_QUORUM, 2},
        {"'join':{'trigger_rule':'one_done'}", GL_RULE_ONE_DONE, 0},
        {"'trigger_rule':{'rule':'quorum_success','count':1}", GL_RULE_QUORUM, 1},
        {"'label':'none'", GL_RULE_ALL_DONE, 0}, /* join_default */
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct fixture *x = *state;
        struct gl_flow *f = with_workflow(
            x, gl_str_fmt(&x->a, "[{'id':'a'},{'id':'b'},{'id':'c',%s}]", cases[i].written).p,
            "[{'from':'a','to':'b'},{'from':'a','to':'c'},{'from':'b','to':'c'}]",
            ",'graph':{'join_default':'all_done'}");

        assert_int_equal(step(f, "c")->rule, cases[i].rule);
        assert_int_equal(step(f, "c")->quorum, cases[i].quorum);
        assert_int_equal(step(f, "a")->rule, GL_RULE_ALL_SUCCESS); /* joins nothing */
    }
}

static void edges_become_needs_with_what_they_accept(void **state)
{
    struct gl_flow *f =
        with_workflow(*state, "[{'id':'a'},{'id':'b'},{'id':'c'}]",
                      "[{'id':'1','from':'b','to':'c','accepts':['done','partial']},"
                      "{'id':'2','from':'a','to':'c'},"
                      "{'id':'3','from':'a','to':'b','accepts':['failed','skipped','odd']},"
                      "{'id':'4','from':'b','to':'c','accepts':['partial','failed']}]",
                      ",'source':'a','entrypoint':'a','sink':'c'");
    const struct gl_step_edge *edges = step(f, "c")->edges.items;

    assert_int_equal(step(f, "c")->needs_n, 2);
    assert_text(step(f, "c")->needs_ids.items[0], "b");
    assert_text(edges[0].id, "1");
    assert_int_equal(edges[0].accepts, GL_ACCEPT_PARTIAL); /* both edges must accept it */
    assert_int_equal(edges[1].accepts, GL_ACCEPT_DONE);
    assert_int_equal(((const struct gl_step_edge *)step(f, "b")->edges.items)[0].accepts,
                     GL_ACCEPT_FAILED | GL_ACCEPT_SKIPPED);
    assert_int_equal(step(f, "b")->tells[0], GL_ACCEPT_PARTIAL);
    assert_int_equal(f->roots_n, 1);
    assert_int_equal(f->bundle->notes.n, 2); /* `odd`, and a runner */
}

static void agents_of_a_step(void **state)
{
    struct gl_flow *f =
        with_workflow(*state,
                      "[{'id':'a','agent_id':'gone','run':'b','agent_ids':['c','b']},{'id':'x',"
                      "'agent_ids':['c','w']},{'id':'c','run':'zzz'}]",
                      "[]", "");

    assert_int_equal(step(f, "a")->agent_ids.n, 2);
    assert_text(step(f, "a")->agent_ids.items[0], "b");
    assert_text(step(f, "a")->agent_ids.items[1], "c");
    assert_text(step(f, "x")->agent_ids.items[0], "c");
    assert_text(step(f, "c")->agent_ids.items[0], "c");
    assert_text(gl_flow_step(f, (uint32_t)agent(f, "c")->step)->id, "a");
}

/* Bundles in the field say so: the field that switches changes on is the one that counts. */
static void a_static_flow_may_change_if_it_says_so(void **state)
{
    struct gl_flow *f = with_workflow(
        *state, "[{'id':'a'},{'id':'b'}]", "[{'id':'ab','from':'a','to':'b'}]",
        ",'mode':'static_dag','dynamic':{'enabled':true,'apply_at':'between_steps','templates':{"
        "'t':{'agent_id':'w'}},'regions':[{'id':'r','controller':'a','exit':'b','mutable_edges':"
        "['ab']}]}");

    assert_true(f->bundle->dynamic.enabled);
    assert_int_equal(f->bundle->notes.n, 2); /* and a runner */
    assert_non_null(strstr(f->bundle->notes.items[1].p, "workflow.mode"));
    assert_non_null(strstr(f->bundle->notes.items[1].p, "dynamic.enabled"));
}

static void what_may_change(void **state)
{
    struct gl_flow *f = with_workflow(
        *state, "[{'id':'a'},{'id':'b'}]", "[{'id':'ab','from':'a','to':'b'}]",
        ",'mode':'dynamic_dag','dynamic':{'enabled':true,'apply_at':'between_steps','templates':{"
        "'t':{'agent_id':'w','label':'T','control':{'failure_policy':'skip','retry':{"
        "'max_attempts':3}}}},'regions':[{'id':'r','controller':'a','exit':'b','mutable_edges':"
        "['ab']},{'id':'f','strategy':'checkpoint_fanout','controller':'b','templates':['t']}],"
        "'limits':{'max_active_steps':9}}");
    const struct gl_dynamic *d = &f->bundle->dynamic;
    const struct gl_region *r = d->regions.items;
    const struct gl_template *t = d->templates.items;

    assert_true(d->enabled);
    assert_int_equal(d->patches_max, 10000);
    assert_int_equal(d->active_max, 9);
    assert_int_equal(d->operations_max, 64);
    assert_int_equal(d->regions.n, 2);
    assert_text(r[0].exit, "b");
    assert_text(r[0].templates.items[0], "t"); /* all, if none are named */
    assert_text(r[0].mutable_edges.items[0], "ab");
    assert_true(r[1].is_fanout);
    assert_text(t->agent, "w");
    assert_text(t->control,
                "{\"trigger_rule\":\"all_success\",\"failure_policy\":\"skip\",\"timeout_ms\":7000,"
                "\"beacon_timeout_ms\":5000,\"max_attempts\":3,\"retry_backoff_ms\":100,"
                "\"retry_backoff_pct\":200}");
}

/* Policies. */

static void restarts_by_type_and_mode(void **state)
{
    static const struct {
        const char *root;
        struct gl_restart r;
    } cases[] = {
        {"", {3, 86400000, 1000, 30000, GL_DELAY_EXPONENTIAL, false}},
        {",'type':'service'", {3, 600000, 1000, 30000, GL_DELAY_EXPONENTIAL, true}},
        {",'daemon':true", {3, 600000, 1000, 30000, GL_DELAY_EXPONENTIAL, true}},
        {",'policies':{'job_type':'service','recovery_mode':'cluster_recover'}",
         {3, 600000, 1000, 30000, GL_DELAY_EXPONENTIAL, false}},
        {",'policies':{'recovery_mode':'manual_recover','restart':{'attempts':5}}",
         {0, 86400000, 1000, 30000, GL_DELAY_EXPONENTIAL, false}},
        {",'policies':{'recovery_mode':'local_restart','restart':{'attempts':2,'interval_ms':60000,"
         "'delay_ms':100,'delay_function':'constant','mode':'delay'}}",
         {2, 60000, 100, 30000, GL_DELAY_CONSTANT, true}},
        {",'policies':{'max_agent_restart_attempts':7}",
         {7, 86400000, 1000, 30000, GL_DELAY_EXPONENTIAL, false}},
        {",'policies':{'max_agent_restart_attempts':7,'restart':{'attempts':1,'delay_ms':40000}}",
         {1, 86400000, 40000, 40000, GL_DELAY_EXPONENTIAL, false}},
    };

    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct fixture *x = *state;
        struct gl_flow *f = compile(
            x, gl_str_fmt(&x->a,
                          "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':[{'id':"
                          "'r','agent_type':'router','role':'root','policies':{'restart':{"
                          "'max_delay_ms':9}}}]%s}",
                          cases[i].root)
                   .p);
        const struct gl_restart *r = &f->bundle->policies.restart, *w = &cases[i].r;

        assert_int_equal(r->attempts, w->attempts);
        assert_int_equal(r->interval_ms, w->interval_ms);
        assert_int_equal(r->delay_ms, w->delay_ms);
        assert_int_equal(r->max_delay_ms, w->max_delay_ms);
        assert_int_equal(r->delay_function, w->delay_function);
        assert_int_equal(r->waits, w->waits);
        assert_true(agent(f, "r")->has_restart);
        assert_int_equal(agent(f, "r")->restart.max_delay_ms, 9);
        assert_int_equal(agent(f, "r")->restart.attempts, w->attempts);
        assert_int_equal(f->bundle->notes.n, i == 3 ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_executor_has_the_usual_fields),
        TEST(an_executor_has_what_its_config_says),
        TEST(a_folder_may_be_named_in_three_ways),
        TEST(files_may_be_named_in_four_ways),
        TEST(unsafe_marks_win_and_no_mark_is_unsafe),
        TEST(skills_are_uploaded_and_importable),
        TEST(what_is_no_executor_has_a_relay_or_its_module),
        TEST(a_step_takes_from_its_node_what_it_does_not_say),
        TEST(failure_policies),
        TEST(every_rule_and_alias_in_every_place),
        TEST(edges_become_needs_with_what_they_accept),
        TEST(agents_of_a_step),
        TEST(a_static_flow_may_change_if_it_says_so),
        TEST(what_may_change),
        TEST(restarts_by_type_and_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
