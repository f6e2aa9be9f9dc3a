/* A store that answers and has no room: what a node says of it, and how it finds out that there is
 * room again. Renewals of sessions fit all the time. */
#include <string.h>

#include "support/cmocka_all.h"
#include "support/files_rig.h"

enum { LITTLE = 8 << 10 /* ordinary commits fit, files of flows do not */ };

static struct files_rig rig;
static struct files_rig *const r = &rig;

static int begin(void **state)
{
    (void)state;
    files_rig_init(r, 1, 1, &(struct gl_keep){0});
    return 0;
}

static int end(void **state)
{
    (void)state;
    files_rig_done(r);
    return 0;
}

static void fill(size_t left_bytes)
{
    r->disk.is_full = true;
    r->disk.left_bytes = left_bytes;
}

/* ---- what it says ---- */

static void on_told(void *owner, struct sim_ask *ask, bool answered)
{
    struct gl_buf *out = owner;
    assert_true(answered);
    gl_buf_reset(out);
    gl_buf_str(out, ask->rq.code == 0 ? ask->rq.body : gl_str_of(ask->rq.why.text));
    gl_buf_char(out, 0);
}

static const char *ask_at(size_t machine, struct sim_ask *ask)
{
    ask->done = on_told;
    ask->owner = &r->body;
    gl_buf_reset(&r->body);
    sim_node_ask(r->machines[machine].node, ask);
    for (int i = 0; i < 100 && r->body.n == 0; i++) {
        files_rig_run(r, 10);
    }
    return r->body.p;
}

static bool is_ready_at(size_t machine)
{
    return strstr(ask_at(machine, sim_ask_new(GL_VERB_NODE)), "\"ready\":true") != NULL;
}

static bool is_ready(void)
{
    return is_ready_at(0);
}

static void submit_in_vain(const char *files)
{
    struct files_job *job = files_rig_submit(r, 0, files, false);
    for (int i = 0; i < 100 && job->code == 1; i++) {
        files_rig_run(r, 10);
    }
    assert_int_equal(job->code, GL_E_UNAVAILABLE);
}

static void complete_one(void)
{
    struct files_job *job = files_rig_submit(r, 0, "1", false);
    for (int i = 0; i < 600 && !gl_str_is(files_rig_status(r, job), "completed"); i++) {
        files_rig_run(r, 100);
    }
    assert_int_equal(job->code, 0);
    assert_true(gl_str_is(files_rig_status(r, job), "completed"));
}

static void a_store_without_room_is_not_ready_though_renewals_fit(void **state)
{
    (void)state;
    complete_one();
    fill(0);
    assert_true(is_ready()); /* nothing was refused yet */
    submit_in_vain("1");
    assert_false(is_ready());
    assert_non_null(strstr(r->body.p, "\"reason_code\":\"store_read_only\""));
    files_rig_run(r, 60000);
    assert_false(is_ready());
    assert_int_equal(r->machines[0].incarnation, 1);
    r->disk.is_full = false;
    files_rig_run(r, 3000);
    assert_true(is_ready()); /* and nobody had asked for anything */
    files_rig_run(r, 3000);
    assert_int_equal(files_rig_count(r, "room"), 0);
    complete_one();
}

static void what_still_fits_does_not_end_it(void **state)
{
    (void)state;
    fill(LITTLE);
    submit_in_vain("4");
    assert_false(is_ready());
    for (int i = 0; i < 5; i++) {
        complete_one();
        assert_false(is_ready());
    }
    files_rig_run(r, 60000);
    assert_false(is_ready());
    assert_int_equal(files_rig_count(r, "room"), 0);
    r->disk.is_full = false;
    files_rig_run(r, 3000);
    assert_true(is_ready());
}

static void others_learn_of_it_before_they_are_refused_anything(void **state)
{
    (void)state;
    files_rig_start(r, 1);
    files_rig_run(r, 10000);
    fill(0);
    submit_in_vain("1");
    files_rig_run(r, 20000);
    assert_false(is_ready_at(0));
    assert_false(is_ready_at(1));
    r->disk.is_full = false;
    files_rig_run(r, 10000);
    assert_true(is_ready_at(0));
    assert_true(is_ready_at(1));
    files_rig_run(r, 20000);
    assert_int_equal(files_rig_count(r, "room"), 0);
}

static void a_claim_that_finds_no_room_is_such_a_refusal_too(void **state)
{
    (void)state;
    struct sim_ask *claim = sim_ask_new(GL_VERB_CLAIM_ACQUIRE);
    claim->rq.claim.key = GL_S("k");
    claim->rq.claim.owner = GL_S("me");
    claim->rq.claim.lease = 60000;
    fill(0);
    assert_non_null(strstr(ask_at(0, claim), "unavailable"));
    assert_false(is_ready());
}

/* An engine may have room for what is asked of it, and none for what is wanted. */
static void a_store_that_shuts_again_and_again_is_asked_less_often(void **state)
{
    (void)state;
    int took = 0;
    for (int round = 0; round < 4; round++) {
        fill(128 << 10);
        submit_in_vain("4");
        assert_false(is_ready());
        gl_ms since = r->world.now;
        while (!is_ready()) {
            files_rig_run(r, 100);
        }
        assert_true(r->world.now - since >= took * 3 / 2);
        took = (int)(r->world.now - since);
    }
    assert_in_range(took, 8000, 30000);
    r->disk.is_full = false;
    complete_one();
}

static void a_node_stops_and_starts_while_there_is_no_room(void **state)
{
    (void)state;
    fill(0);
    submit_in_vain("1");
    struct sim_node *n = r->machines[0].node;
    files_rig_run(r, 1490); /* it is about to ask again */
    sim_node_stop(n);
    for (int i = 0; i < 1000 && !n->stopped; i++) {
        files_rig_run(r, 10);
    }
    assert_true(n->stopped);
    files_rig_kill(r, 0);
    files_rig_start(r, 0);
    files_rig_run(r, 2000);
    submit_in_vain("1");
    assert_false(is_ready());
    r->disk.is_full = false;
    files_rig_run(r, 3000);
    assert_true(is_ready());
}

static void what_a_dead_node_has_left_goes_with_the_next_question(void **state)
{
    (void)state;
    fill(0);
    submit_in_vain("1");
    r->disk.is_full = false;
    r->world.options.store_delay_ms =
        50; /* so that there is a moment between keeping and removing */
    for (int i = 0; i < 5000 && files_rig_count(r, "room") == 0; i++) {
        files_rig_run(r, 1);
    }
    assert_int_equal(files_rig_count(r, "room"), 1);
    files_rig_kill(r, 0);
    files_rig_start(r, 0);
    files_rig_run(r, 10000);
    fill(0);
    submit_in_vain("1");
    r->disk.is_full = false;
    files_rig_run(r, 10000);
    assert_int_equal(files_rig_count(r, "room"), 0);
    assert_true(is_ready());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
        T(a_store_without_room_is_not_ready_though_renewals_fit),
        T(what_still_fits_does_not_end_it),
        T(others_learn_of_it_before_they_are_refused_anything),
        T(a_claim_that_finds_no_room_is_such_a_refusal_too),
        T(a_store_that_shuts_again_and_again_is_asked_less_often),
        T(a_node_stops_and_starts_while_there_is_no_room),
        T(what_a_dead_node_has_left_goes_with_the_next_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
