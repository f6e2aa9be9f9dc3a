/* Who shares the store: what sessions tell of nodes. */
#include "api/nodes.h"
#include "support/cmocka_all.h"

#include <string.h>

#include "api/reason.h"
#include "support/golden.h"

static const struct gl_session_info sessions[] = {
    {.id = GL_S("a.1#3.x"),
     .incarnation = 3,
     .node = GL_S("a.1"),
     .left_ms = 7000,
     .about = GL_S("{\"name\":\"lie\",\"version\":\"1.0\",\"started_at\":1000,\"jobs\":2,"
                   "\"later\":[1],\"running\":3,\"elsewhere\":1,\"waiting\":2,"
                   "\"longest_waiting\":{\"job_id\":\"01J\",\"step_id\":\"s\",\"pool\":\"gpu\"},"
                   "\"longest_waiting_at\":2000,"
                   "\"pools\":[{\"name\":\"default\",\"slots\":8,\"in_use\":3,"
                   "\"waiting\":1}]}")},
    {.id = GL_S("b.2#1.x"),
     .incarnation = 1,
     .node = GL_S("b.2"),
     .left_ms = 5000,
     .about = GL_S("{\"version\":\"1.1\",\"jobs\":1,\"pools\":[{\"name\":\"default\",\"slots\":4,"
                   "\"in_use\":4,\"taken\":[{\"owner\":\"a.1\",\"slots\":1},{\"owner\":\"x\","
                   "\"slots\":2}]},{\"name\":\"gpu\",\"slots\":1}]}")},
    {.id = GL_S("late.3#9.x"),
     .incarnation = 9,
     .node = GL_S("late.3"),
     .left_ms = -2500,
     .about = GL_S("this is no JSON")},
    {.id = GL_S("a.1#2.x"), .incarnation = 2, .node = GL_S("a.1"), .dead = true},
    {.id = GL_S("gone.4#5.x"), .incarnation = 5, .node = GL_S("gone.4"), .dead = true},
    {.id = GL_S("gone.4#6.x"), .incarnation = 6, .node = GL_S("gone.4"), .dead = true},
};

static const struct gl_nodes nodes = {.sessions = sessions,
                                      .sessions_n = 6,
                                      .engine = "redis",
                                      .is_shared = true,
                                      .has_node = true,
                                      .own = GL_S("b.2#1.x"),
                                      .leader = GL_S("a.1#3.x")};

struct rig {
    struct gl_arena arena;
    struct gl_buf text;
    struct gl_jw w;
};

static int make_rig(void **state)
{
    struct rig *r = test_calloc(1, sizeof(*r));

    gl_jw_init(&r->w, &r->text);
    *state = r;
    return 0;
}

static int free_rig(void **state)
{
    struct rig *r = *state;

    gl_arena_done(&r->arena);
    gl_buf_done(&r->text);
    test_free(r);
    return 0;
}

static void assert_has(struct rig *r, const char *part)
{
    const char *text = gl_str_c(&r->arena, gl_buf_view(&r->text));

    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in %s", part, text);
    }
}

static void assert_lacks(struct rig *r, const char *part)
{
    const char *text = gl_str_c(&r->arena, gl_buf_view(&r->text));

    if (strstr(text, part) != NULL) {
        fail_msg("'%s' is in %s", part, text);
    }
}

static void a_node_is_told_once_by_its_newest_session(void **state)
{
    struct rig *r = *state;

    gl_nodes_write(&r->arena, &nodes, false, &r->w);
    assert_has(r, "{\"name\":\"a.1\",\"session\":\"a.1#3.x\",\"incarnation\":3,\"status\":"
                  "\"alive\",\"leader\":true,\"own\":false,\"deadline_in_ms\":7000,");
    assert_has(r, "\"later\":[1]"); /* what a later release tells passes */
    assert_has(r, "\"started_at\":\"1970-01-01T00:00:01.000Z\"");
    assert_has(r, "{\"name\":\"b.2\"");
    assert_has(r, "\"own\":true");
    assert_has(r, "{\"name\":\"late.3\",\"session\":\"late.3#9.x\",\"incarnation\":9,\"status\":"
                  "\"late\",\"leader\":false,\"own\":false,\"deadline_in_ms\":-2500,"
                  "\"capacity\":null,\"labels\":null}");
    assert_lacks(r, "lie"); /* a node does not choose its name there */
    assert_lacks(r, "a.1#2.x");
    assert_lacks(r, "gone.4");
}

static void the_dead_are_told_when_asked_for(void **state)
{
    struct rig *r = *state;

    gl_nodes_write(&r->arena, &nodes, true, &r->w);
    assert_has(r, "{\"name\":\"gone.4\",\"session\":\"gone.4#6.x\",\"incarnation\":6,\"status\":"
                  "\"dead\",\"leader\":false,\"own\":false,\"deadline_in_ms\":null,"
                  "\"capacity\":null,\"labels\":null}");
    assert_lacks(r, "gone.4#5.x");
}

static void one_node_is_found_by_the_beginning_of_its_name(void **state)
{
    static const struct gl_session_info two[] = {
        {.id = GL_S("web#1.x"), .node = GL_S("web"), .incarnation = 1},
        {.id = GL_S("web-2#1.x"), .node = GL_S("web-2"), .incarnation = 1}};
    struct gl_nodes n = {.sessions = two, .sessions_n = 2, .is_shared = true, .engine = "redis"};
    struct rig *r = *state;
    struct gl_why why;

    assert_int_equal(gl_nodes_write_one(&r->arena, &nodes, GL_S("la"), &r->w, &why), 0);
    assert_has(r, "\"name\":\"late.3\"");
    assert_int_equal(gl_nodes_write_one(&r->arena, &n, GL_S("we"), &r->w, &why), GL_E_INVALID);
    assert_int_equal(why.reason, GL_REASON_NODE_AMBIGUOUS);
    assert_int_equal(gl_nodes_write_one(&r->arena, &n, GL_S("web"), &r->w, &why), 0);
    assert_int_equal(gl_nodes_write_one(&r->arena, &n, GL_S(""), &r->w, &why), GL_E_NOT_FOUND);
    assert_int_equal(gl_nodes_write_one(&r->arena, &n, GL_S("x"), &r->w, &why), GL_E_NOT_FOUND);
}

static void the_slots_of_all_that_live_are_summed_up(void **state)
{
    struct rig *r = *state;

    gl_nodes_write_cluster(&r->arena, &nodes, &r->w);
    assert_has(r, "{\"store\":\"redis\",\"shared\":true,\"alive\":2,\"late\":1,\"dead\":1,"
                  "\"leader\":\"a.1\",\"jobs\":3,\"running\":3,\"elsewhere\":1,\"waiting\":2,"
                  "\"longest_waiting\":{\"job_id\":\"01J\",\"step_id\":\"s\",\"pool\":\"gpu\","
                  "\"node\":\"a.1\",\"since\":\"1970-01-01T00:00:02.000Z\"},"
                  "\"versions\":[\"1.0\",\"1.1\"],\"pools\":["
                  "{\"name\":\"default\",\"slots\":12,\"in_use\":7,\"waiting\":1,\"taken\":3},"
                  "{\"name\":\"gpu\",\"slots\":1,\"in_use\":0,\"waiting\":0,\"taken\":0}]}");
}

static void a_store_of_one_node_has_no_deadlines(void **state)
{
    static const struct gl_session_info one[] = {
        {.id = GL_S("n#1.x"), .node = GL_S("n"), .incarnation = 1, .left_ms = INT64_MAX}};
    struct gl_nodes n = {.sessions = one, .sessions_n = 1, .engine = "sqlite", .has_node = true};
    struct rig *r = *state;

    gl_nodes_write(&r->arena, &n, false, &r->w);
    assert_has(r, "\"status\":\"alive\",\"leader\":true,\"own\":false,\"deadline_in_ms\":null");
    gl_buf_reset(&r->text);
    gl_jw_init(&r->w, &r->text);
    n.has_node = false; /* the session does not end before the next one begins */
    gl_nodes_write(&r->arena, &n, false, &r->w);
    assert_string_equal(gl_str_c(&r->arena, gl_buf_view(&r->text)), "{\"nodes\":[]}");
}

/* What a node offers is shown as far as it makes sense: anyone who can write to the store could
 * have written it. */
static void capacity_and_labels_are_checked(void **state)
{
    static const struct gl_session_info three[] = {
        {.id = GL_S("good#1.x"),
         .node = GL_S("good"),
         .about = GL_S("{\"labels\":{\"zone\":\"a\",\"disk\":\"ssd\"},\"capacity\":{\"cores\":1.5,"
                       "\"memory_bytes\":1024,\"disk_bytes\":10,\"disk_free_bytes\":2,"
                       "\"later\":1}}")},
        {.id = GL_S("old#1.x"), .node = GL_S("old"), .about = GL_S("{\"version\":\"0.1\"}")},
        {.id = GL_S("bad#1.x"),
         .node = GL_S("bad"),
         .about = GL_S("{\"labels\":{\"zone\":\"a b\"},\"capacity\":{\"cores\":\"many\","
                       "\"memory_bytes\":-1,\"disk_bytes\":{}}}")}};
    struct gl_nodes n = {.sessions = three, .sessions_n = 3, .is_shared = true, .engine = "redis"};
    struct rig *r = *state;

    gl_nodes_write(&r->arena, &n, false, &r->w);
    assert_has(r, "\"capacity\":{\"cores\":1.5,\"memory_bytes\":1024,\"disk_bytes\":10,"
                  "\"disk_free_bytes\":2},\"labels\":{\"zone\":\"a\",\"disk\":\"ssd\"}}");
    assert_has(r, "\"version\":\"0.1\",\"capacity\":null,\"labels\":null}");
    assert_has(r, "\"capacity\":{\"cores\":null,\"memory_bytes\":null,\"disk_bytes\":null,"
                  "\"disk_free_bytes\":null},\"labels\":null}");
}

/* ---- why, across nodes ---- */

static gl_str why_of(struct rig *r, struct gl_nodes_owner *owner)
{
    static const char flow[] = "{\"format\":2,\"name\":\"f\",\"steps\":[{\"id\":\"a\",\"argv\":["
                               "\"true\"],\"pool\":\"gpu\",\"slots\":1}]}";
    static const struct gl_record job = {
        .id = GL_S("01J"),
        .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\",\"status\":\"running\","
                      "\"steps_n\":1}")};
    static const struct gl_record step = {.kind = GL_S("step"),
                                          .id = GL_S("01J/a"),
                                          .value =
                                              GL_S("{\"step_id\":\"a\",\"status\":\"queued\"}")};
    struct gl_view v;

    assert_int_equal(gl_view_read(&r->arena, &job, gl_str_of(flow), &step, 1, &v, NULL), 0);
    v.owner = owner;
    return gl_reason_job(&r->arena, &v, NULL).text;
}

static void assert_why(struct rig *r, const char *session, uint32_t inbox_n)
{
    struct gl_nodes_owner owner = gl_nodes_find_owner(&nodes, gl_str_of(session));

    owner.inbox_n = inbox_n;
    golden_say(session, why_of(r, &owner));
}

static void why_names_the_node_that_has_the_job(void **state)
{
    struct rig *r = *state;

    assert_why(r, "a.1#3.x", 0);
    assert_why(r, "late.3#9.x", 1);
    assert_why(r, "gone.4#6.x", 2);
    assert_why(r, "forgotten.5#1.x", 0); /* longer dead than sessions are listed */
    assert_why(r, "", 0);
}

static void only_nodes_of_its_group_are_promised_to_take_a_job(void **state)
{
    static const struct gl_session_info groups[] = {
        {.id = GL_S("a#1.x"), .node = GL_S("a"), .about = GL_S("{\"stack\":\"blue\"}")},
        {.id = GL_S("b#1.x"),
         .node = GL_S("b"),
         .about = GL_S("{\"stack\":\"red\",\"env_scope\":\"test\"}")},
        {.id = GL_S("c#1.x"), .node = GL_S("c"), .about = GL_S("{}"), .dead = true},
    };
    struct gl_nodes n = {.sessions = groups, .sessions_n = 3, .is_shared = true};
    struct rig *r = *state;
    struct gl_nodes_owner owner = gl_nodes_find_owner(&n, GL_S("c#1.x"));

    assert_true(gl_nodes_has_successor(&r->arena, &n, GL_S("blue"), GL_S("")));
    assert_true(gl_nodes_has_successor(&r->arena, &n, GL_S("red"), GL_S("test")));
    assert_false(gl_nodes_has_successor(&r->arena, &n, GL_S("red"), GL_S("")));
    assert_false(gl_nodes_has_successor(&r->arena, &n, GL_S("blue"), GL_S("test")));
    owner.has_successors = gl_nodes_has_successor(&r->arena, &n, GL_S(""), GL_S(""));
    golden_say("c#1.x, without mates", why_of(r, &owner));
    n.sessions_n = 0; /* anybody who comes will do, or not */
    assert_true(gl_nodes_has_successor(&r->arena, &n, GL_S(""), GL_S("")));
    assert_false(gl_nodes_has_successor(&r->arena, &n, GL_S("green"), GL_S("")));
}

static void of_its_own_jobs_a_node_speaks_as_ever(void **state)
{
    struct rig *r = *state;

    assert_why(r, "b.2#1.x", 0);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/nodes.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_is_told_once_by_its_newest_session, make_rig,
                                        free_rig),
        cmocka_unit_test_setup_teardown(the_dead_are_told_when_asked_for, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(one_node_is_found_by_the_beginning_of_its_name, make_rig,
                                        free_rig),
        cmocka_unit_test_setup_teardown(the_slots_of_all_that_live_are_summed_up, make_rig,
                                        free_rig),
        cmocka_unit_test_setup_teardown(a_store_of_one_node_has_no_deadlines, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(capacity_and_labels_are_checked, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(why_names_the_node_that_has_the_job, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(only_nodes_of_its_group_are_promised_to_take_a_job,
                                        make_rig, free_rig),
        cmocka_unit_test_setup_teardown(of_its_own_jobs_a_node_speaks_as_ever, make_rig, free_rig),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
