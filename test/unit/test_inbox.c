/* Commands of other nodes: which are executed here, and what is written about them. The test plays
 * the store: it answers the calls of the inbox and looks at what it commits. */
#include "support/cmocka_all.h"

#include "base/check.h"
#include "core/core.h"
#include "core/effect.h"

#define ENTRY "01MCC5T7EBAJZCWMCM0BWRJCJY/01MCC5T7EBAJZCWMCM0BWRJCJZ"

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    gl_ms now;
    uint64_t range, get, commit; /* numbers of the latest calls; 0: none */
    bool is_guarded;             /* the latest commit demands that the entry is still there */
    unsigned writes_n;
};

static void note_call(struct rig *r, const struct gl_core_call *call)
{
    if (call->by != GL_COMPONENT_INBOX) {
        return;
    }
    switch (call->type) {
    case GL_CORE_CALL_RANGE:
        r->range = call->number;
        break;
    case GL_CORE_CALL_GET:
        r->get = call->number;
        break;
    case GL_CORE_CALL_COMMIT:
        r->commit = call->number;
        r->writes_n = (unsigned)call->tx->writes_n;
        r->is_guarded = false;
        for (size_t i = 0; i < call->tx->guards_n; i++) {
            const struct gl_guard *g = &call->tx->guards[i];

            r->is_guarded |= g->type == GL_GUARD_PRESENT && gl_str_is(g->kind, "inbox") &&
                             gl_str_is(g->id, ENTRY);
        }
        break;
    default:
        break;
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
        if (out.items[i].call != NULL) {
            note_call(r, out.items[i].call);
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
                                    .ttl_ms = 9000,
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

static void answer(struct rig *r, uint64_t number, struct gl_event ev)
{
    ev.type = GL_EV_ANSWER;
    ev.answer.number = number;
    ev.answer.by = GL_COMPONENT_INBOX;
    feed(r, ev);
}

/* A scan finds one entry, whose record has this value and this revision. */
static void scan(struct rig *r, gl_str value, uint64_t rev)
{
    struct gl_event_entry entry = {.id = GL_S(ENTRY), .score = r->now};
    struct gl_event_record records[] = {{.kind = GL_S("job")},
                                        {.kind = GL_S("inbox"), .rev = rev, .value = value}};

    r->range = r->get = 0;
    r->now += 2000;
    feed(r, (struct gl_event){.type = GL_EV_TICK});
    assert_int_not_equal(r->range, 0);
    answer(r, r->range, (struct gl_event){.answer = {.entries = {.items = &entry, .n = 1}}});
    if (r->get != 0) {
        answer(
            r, r->get,
            (struct gl_event){.answer = {.records = {.items = records, .n = GL_COUNT(records)}}});
    }
}

/* Another node may have executed the same command meanwhile. Its transaction deletes the entry, and
 * its answer is the one that counts. */
static void a_refusal_counts_only_while_its_entry_is_there(void **state)
{
    struct rig *r = *state;

    scan(r, GL_S("{"), 1);
    assert_int_not_equal(r->commit, 0);
    assert_true(r->is_guarded);
    assert_int_equal(r->writes_n, 3); /* the entry goes, with its place in the index; an answer */
}

static void a_command_is_in_progress_at_most_once(void **state)
{
    struct rig *r = *state;
    uint64_t first;

    scan(r, GL_S("{"), 1);
    first = r->commit;
    scan(r, GL_S("{"), 1);
    assert_int_equal(r->get, 0); /* it is not even read again */
    assert_int_equal(r->commit, first);
}

static void an_answer_that_could_not_be_written_is_written_later(void **state)
{
    struct rig *r = *state;
    uint64_t first;

    scan(r, GL_S("{"), 1);
    first = r->commit;
    answer(r, first, (struct gl_event){.answer = {.code = GL_E_UNAVAILABLE}});
    scan(r, GL_S("{"), 1);
    assert_int_not_equal(r->commit, first);
}

static void an_entry_without_a_record_is_left_alone(void **state)
{
    struct rig *r = *state;

    scan(r, (gl_str){0}, 0);
    assert_int_not_equal(r->get, 0);
    assert_int_equal(r->commit, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refusal_counts_only_while_its_entry_is_there, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_command_is_in_progress_at_most_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_that_could_not_be_written_is_written_later,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_entry_without_a_record_is_left_alone, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
