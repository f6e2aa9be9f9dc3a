/* Work for readers, on a thread of its own. */
#include "os/workthread.h"

#include <stdatomic.h>

#include "base/check.h"
#include "support/cmocka_all.h"

enum { TASKS = 100 };

struct rig {
    struct gl_loop *loop;
    struct gl_workthread *work;
    struct one {
        struct gl_work_task task;
        struct rig *rig;
        int number;
    } tasks[TASKS];
    int ran[TASKS], ran_n; /* written by the worker, read after `done` */
    int done_n;
    int wanted_n; /* then the loop stops */
    atomic_bool is_open, is_running;
};

static int make_rig(void **state)
{
    struct rig *r = test_calloc(1, sizeof(*r));

    assert_int_equal(gl_loop_new(&r->loop, NULL), 0);
    assert_int_equal(gl_workthread_open(&r->work, r->loop, NULL), 0);
    for (int i = 0; i < TASKS; i++) {
        r->tasks[i] = (struct one){.rig = r, .number = i};
    }
    *state = r;
    return 0;
}

static void stop(struct gl_loop_task *t)
{
    struct rig *r = t->owner;

    gl_workthread_stop(r->work);
    gl_loop_stop(r->loop);
}

static int free_rig(void **state)
{
    struct rig *r = *state;

    struct gl_loop_task t = {.run = stop, .owner = r};

    gl_loop_post(r->loop, &t);
    gl_loop_run(r->loop);
    gl_loop_free(r->loop);
    gl_workthread_free(r->work);
    test_free(r);
    return 0;
}

static struct one *one_of(struct gl_work_task *t)
{
    return GL_CONTAINER(t, struct one, task);
}

static void run(struct gl_work_task *t)
{
    struct rig *r = one_of(t)->rig;

    r->ran[r->ran_n++] = one_of(t)->number;
}

static void post(struct rig *r, int number, void (*run_task)(struct gl_work_task *t),
                 void (*done)(struct gl_work_task *t))
{
    r->tasks[number].task = (struct gl_work_task){.run = run_task, .done = done};
    gl_work_post(gl_workthread_port(r->work), &r->tasks[number].task);
}

/* The first half posts the second. */
static void done(struct gl_work_task *t)
{
    struct one *o = one_of(t);
    struct rig *r = o->rig;

    assert_int_equal(o->number, r->done_n);
    r->done_n++;
    if (o->number < TASKS / 2) {
        post(r, o->number + TASKS / 2, run, done);
    }
    if (r->done_n == r->wanted_n) {
        gl_loop_stop(r->loop);
    }
}

static void tasks_run_in_order_and_are_done_on_the_loop(void **state)
{
    struct rig *r = *state;

    r->wanted_n = TASKS;
    for (int i = 0; i < TASKS / 2; i++) {
        post(r, i, run, done);
    }
    gl_loop_run(r->loop);
    assert_int_equal(r->done_n, TASKS);
    assert_int_equal(r->ran_n, TASKS);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(r->ran[i], i);
    }
}

static void run_long(struct gl_work_task *t)
{
    struct rig *r = one_of(t)->rig;

    atomic_store(&r->is_running, true);
    while (!atomic_load(&r->is_open)) {
    }
    atomic_store(&r->is_running, false);
}

static void never_done(struct gl_work_task *t)
{
    (void)t;
    fail();
}

static void open_gate(struct gl_loop_task *t)
{
    struct rig *r = t->owner;

    while (!atomic_load(&r->is_running)) {
    }
    atomic_store(&r->is_open, true);
    gl_workthread_clear(r->work); /* waits for the one that runs, forgets the other */
    assert_false(atomic_load(&r->is_running));
    gl_loop_stop(r->loop);
}

static void what_is_cleared_is_not_done(void **state)
{
    struct rig *r = *state;
    struct gl_loop_task t = {.run = open_gate, .owner = r};

    post(r, 0, run_long, never_done);
    post(r, 1, run_long, never_done);
    gl_loop_post(r->loop, &t);
    gl_loop_run(r->loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, make_rig, free_rig)
        T(tasks_run_in_order_and_are_done_on_the_loop),
        T(what_is_cleared_is_not_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
