/* Whose is a job whose owner's session has died? The core is told which sessions there are, and
 * asked (gl_membership_owned_elsewhere). */
#include "support/cmocka_all.h"

#include "base/check.h"
#include "core/cluster/membership.h"

enum { TTL_MS = 9000 };

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    gl_ms now;
    uint64_t listing; /* number of the call that lists the sessions; 0: none is under way */
};

static void feed(struct rig *r, struct gl_event ev)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = r->now;
    ev.context = GL_S("default");
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        const struct gl_core_call *call = out.items[i].call;

        if (call != NULL && call->type == GL_CORE_CALL_SESSIONS) {
            r->listing = call->number;
        }
    }
}

static int set_up(void **state)
{
    static struct rig rig;
    struct gl_core_pool pool = {.name = GL_S("default"), .slots = 1};
    struct gl_core_config config = {.context = GL_S("default"),
                                    .pools = &pool,
                                    .pools_n = 1,
                                    .shared = true,
                                    .node = GL_S("us"),
                                    .ttl_ms = TTL_MS,
                                    .trace = &rig.trace};

    rig = (struct rig){.now = 1000};
    rig.core = gl_core_new(&config);
    feed(&rig, (struct gl_event){.type = GL_EV_SESSION,
                                 .session = {.session = GL_S("us#1.x"), .number = 1}});
    feed(&rig, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e1")}});
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;

    gl_core_free(r->core);
    return 0;
}

static struct gl_event_peer alive(const char *session, const char *stack)
{
    return (struct gl_event_peer){.id = gl_str_of(session),
                                  .left_ms = TTL_MS,
                                  .is_told = true,
                                  .state = GL_S("ready"),
                                  .stack = gl_str_of(stack),
                                  .env_scope = GL_S("")};
}

static struct gl_event_peer dead(const char *session)
{
    return (struct gl_event_peer){.id = gl_str_of(session), .dead = true};
}

/* Sessions are listed, and these are there. */
static void list(struct rig *r, struct gl_event_peer *peers, size_t n)
{
    r->listing = 0;
    r->now += TTL_MS / 2;
    feed(r, (struct gl_event){.type = GL_EV_TICK});
    assert_int_not_equal(r->listing, 0);
    feed(r, (struct gl_event){.type = GL_EV_ANSWER,
                              .answer = {.number = r->listing,
                                         .by = GL_COMPONENT_PEERS,
                                         .sessions = {.items = peers, .n = n}}});
}

static bool is_anothers(const struct rig *r, bool runs)
{
    return gl_membership_owned_elsewhere(r->core, GL_S("n#1.x"), runs);
}

static void what_runs_of_a_node_that_has_restarted_is_its_own(void **state)
{
    struct rig *r = *state;
    struct gl_event_peer peers[] = {dead("n#1.x"), alive("n#2.y", "")};

    list(r, peers, GL_COUNT(peers));
    assert_true(is_anothers(r, true));
    assert_false(is_anothers(r, false));
}

static void what_runs_of_a_node_that_has_left_is_anybodys(void **state)
{
    struct rig *r = *state;
    struct gl_event_peer before[] = {dead("n#1.x"), alive("n#2.y", ""), alive("m#1.x", "")};
    struct gl_event_peer after[] = {dead("n#1.x"), dead("n#2.y"), alive("m#1.x", "")};

    list(r, before, GL_COUNT(before));
    list(r, after, GL_COUNT(after));
    assert_false(is_anothers(r, true));
}

/* It comes back in another stack, whose nodes do not touch these jobs. */
static void what_runs_of_a_node_that_has_changed_its_stack_is_anybodys(void **state)
{
    struct rig *r = *state;
    struct gl_event_peer peers[] = {dead("n#1.x"), alive("n#2.y", "blue")};

    list(r, peers, GL_COUNT(peers));
    assert_false(is_anothers(r, true));
}

static void a_job_of_a_session_that_lives_is_its_own(void **state)
{
    struct rig *r = *state;
    struct gl_event_peer peers[] = {alive("n#1.x", "")};

    assert_false(is_anothers(r, true));
    list(r, peers, GL_COUNT(peers));
    assert_true(is_anothers(r, true));
    assert_true(is_anothers(r, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_runs_of_a_node_that_has_restarted_is_its_own, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_runs_of_a_node_that_has_left_is_anybodys, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_runs_of_a_node_that_has_changed_its_stack_is_anybodys,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_of_a_session_that_lives_is_its_own, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
