/* Where could a step run that waits for slots: one row per node. */
#include "api/places.h"
#include "core/scheduling/placement.h"
#include "support/cmocka_all.h"

#include <string.h>

#define ABOUT(state, more, pools) \
    GL_S("{\"state\":\"" state "\"," more "\"pools\":[{\"name\":\"default\",\"slots\":" pools "}]}")
#define OFFERS "\"offers\":1,"

static const struct gl_session_info four[] = {
    {.id = GL_S("b#1.x"), .node = GL_S("b"), .about = ABOUT("ready", OFFERS, "4,\"in_use\":1")},
    {.id = GL_S("own#1.x"), .node = GL_S("own"), .about = ABOUT("ready", OFFERS, "2,\"in_use\":2")},
    {.id = GL_S("c#1.x"), .node = GL_S("c"), .about = ABOUT("ready", OFFERS, "2,\"in_use\":2")},
    {.id = GL_S("d#1.x"), .node = GL_S("d"), .about = ABOUT("stopping", OFFERS, "2")},
    {.id = GL_S("old#1.x"), .node = GL_S("old"), .about = ABOUT("ready", "", "2")},
};

static const char flow_text[] =
    "{\"format\":2,\"name\":\"f\",\"steps\":["
    "{\"id\":\"free\",\"argv\":[\"true\"],\"pool\":\"default\",\"slots\":2},"
    "{\"id\":\"bound\",\"argv\":[\"true\"],\"pool\":\"default\",\"slots\":1,\"cwd\":\"/tmp\"},"
    "{\"id\":\"large\",\"argv\":[\"true\"],\"pool\":\"default\",\"slots\":3},"
    "{\"id\":\"gpu\",\"argv\":[\"true\"],\"pool\":\"gpu\",\"slots\":1}]}";

struct rig {
    struct gl_arena arena;
    struct gl_view view;
    struct gl_nodes nodes;
    struct gl_nodes_owner owner;
    struct gl_places places;
    struct gl_buf text;
};

static int make_rig(void **state)
{
    static const struct gl_record job = {
        .id = GL_S("01J"),
        .value = GL_S("{\"job_id\":\"01J\",\"run_id\":\"r\",\"flow\":\"h\",\"status\":\"running\","
                      "\"steps_n\":4}")};
    struct rig *r = test_calloc(1, sizeof(*r));

    assert_int_equal(gl_view_read(&r->arena, &job, gl_str_of(flow_text), NULL, 0, &r->view, NULL),
                     0);
    r->nodes = (struct gl_nodes){
        .sessions = four, .sessions_n = 4, .is_shared = true, .has_node = true, .engine = "redis"};
    r->owner = gl_nodes_find_owner(&r->nodes, GL_S("own#1.x"));
    r->view.owner = &r->owner;
    r->view.nodes = &r->nodes;
    *state = r;
    return 0;
}

static int free_rig(void **state)
{
    struct rig *r = *state;

    gl_buf_done(&r->text);
    gl_arena_done(&r->arena);
    test_free(r);
    return 0;
}

/* "own=busy b=fits", from the JSON. */
static const char *rows(struct rig *r, uint32_t number, enum gl_why_code code)
{
    struct gl_buf out = {0};
    struct gl_json j;
    struct gl_jw w;
    gl_jnode all;
    const char *text;

    gl_buf_reset(&r->text);
    gl_jw_init(&w, &r->text);
    gl_jw_object(&w);
    gl_places_write(&r->arena, &r->view, number, code, &w);
    gl_jw_end(&w);
    assert_int_equal(gl_json_parse(&j, gl_buf_view(&r->text), 1 << 20, &r->arena, NULL), 0);
    all = gl_json_get(&j, gl_json_root(&j), "nodes");
    for (gl_jnode e = gl_json_first(&j, all); e; e = gl_json_after(&j, all, e)) {
        gl_str node = gl_json_str(&j, gl_json_get(&j, e, "node"), &r->arena);
        gl_str result = gl_json_str(&j, gl_json_get(&j, e, "result"), &r->arena);

        assert_true(gl_json_str(&j, gl_json_get(&j, e, "why"), &r->arena).n > 0);
        gl_buf_fmt(&out, "%s%.*s=%.*s", out.n > 0 ? " " : "", GL_STR_ARG(node), GL_STR_ARG(result));
    }
    text = gl_str_c(&r->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static void begin(struct rig *r, const struct gl_reason_live *live)
{
    static const struct gl_step_record queued = {.step_id = GL_S("free"), .status = GL_STEP_QUEUED};
    static struct gl_view_pick pick = {.number = 0, .item = -1};

    r->view.steps[0] = &queued;
    r->view.picks = &pick;
    r->view.picks_n = 1;
    gl_places_begin(&r->places, &r->arena, &r->view, live);
}

static void every_node_has_a_row_and_the_owner_the_first(void **state)
{
    struct rig *r = *state;

    begin(r, NULL);
    assert_string_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_SLOTS),
                        "own=busy b=fits c=busy d=not_taking");
    assert_string_equal(rows(r, 2, GL_BECAUSE_WAITS_FOR_SLOTS),
                        "own=pool_too_small b=fits c=pool_too_small d=not_taking");
    assert_string_equal(rows(r, 3, GL_BECAUSE_POOL_NOT_OFFERED),
                        "own=no_pool b=no_pool c=no_pool d=not_taking");
}

static void a_step_with_a_folder_of_its_own_stays_where_its_job_is(void **state)
{
    struct rig *r = *state;

    begin(r, NULL);
    assert_string_equal(rows(r, 1, GL_BECAUSE_WAITS_FOR_SLOTS),
                        "own=busy b=step_stays c=step_stays d=step_stays");
    r->owner = gl_nodes_find_owner(&r->nodes, GL_S("")); /* any node may take the job */
    r->places.is_read = false;
    assert_string_equal(rows(r, 1, GL_BECAUSE_WAITS_FOR_NODE),
                        "b=fits own=busy c=busy d=not_taking");
}

static void nothing_is_offered_beside_a_node_of_an_earlier_release(void **state)
{
    struct rig *r = *state;

    r->nodes.sessions_n = 5;
    begin(r, NULL);
    assert_string_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_SLOTS),
                        "own=busy b=not_offered c=not_offered d=not_taking old=not_taking");
}

static void core_places(void *owner, struct gl_arena *a, struct gl_core_places *ret)
{
    static struct gl_place_pool pool = {
        .name = GL_S("default"), .slots = 2, .others = 0, .ours = 1};
    static struct gl_place_node node = {
        .id = GL_S("own"), .takes = true, .pools = &pool, .pools_n = 1};

    (void)owner;
    (void)a;
    *ret = (struct gl_core_places){.nodes = &node, .nodes_n = 1, .is_placing = true};
}

static void the_core_of_the_owner_knows_better(void **state)
{
    static const struct gl_reason_live live = {.places = core_places};
    struct rig *r = *state;

    begin(r, &live);
    assert_string_equal(rows(r, 1, GL_BECAUSE_WAITS_FOR_SLOTS),
                        "own=busy b=step_stays c=step_stays d=step_stays");
    r->owner.is_own = true;
    begin(r, &live);
    assert_string_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_SLOTS), "own=busy");
    assert_string_equal(rows(r, 1, GL_BECAUSE_WAITS_FOR_SLOTS), "own=fits");
}

static void a_few_steps_of_an_answer_have_a_table(void **state)
{
    struct rig *r = *state;

    begin(r, NULL);
    assert_string_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_CONCURRENCY), "");
    for (int i = 0; i < GL_PLACES_STEPS_MAX; i++) {
        assert_string_not_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_SLOTS), "");
    }
    assert_string_equal(rows(r, 0, GL_BECAUSE_WAITS_FOR_SLOTS), "");
    r->view.picks_n = 0; /* nothing waits: nothing is copied */
    gl_places_begin(&r->places, &r->arena, &r->view, NULL);
    assert_null(r->view.places);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_node_has_a_row_and_the_owner_the_first),
        T(a_step_with_a_folder_of_its_own_stays_where_its_job_is),
        T(nothing_is_offered_beside_a_node_of_an_earlier_release),
        T(the_core_of_the_owner_knows_better),
        T(a_few_steps_of_an_answer_have_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
