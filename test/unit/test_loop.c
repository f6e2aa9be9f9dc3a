#include "support/cmocka_all.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "os/loop.h"

enum { POSTERS = 4, POSTS = 5000 };

static int make_loop(void **state)
{
    struct gl_loop *l;
    struct gl_why why;
    assert_int_equal(gl_loop_new(&l, &why), 0);
    *state = l;
    return 0;
}

static int free_loop(void **state)
{
    gl_loop_free(*state);
    return 0;
}

static void stop_run(struct gl_loop_task *t)
{
    gl_loop_stop(t->owner);
}

/* ---- tasks ---- */

struct numbered {
    struct gl_loop_task task;
    unsigned poster, number;
    struct tally *tally;
};

struct tally {
    struct gl_loop *loop;
    unsigned next[POSTERS]; /* the number expected from each */
    unsigned total, out_of_order;
};

struct poster {
    struct tally *tally;
    struct numbered items[POSTS];
};

static void numbered_run(struct gl_loop_task *t)
{
    struct numbered *n = GL_CONTAINER(t, struct numbered, task);
    struct tally *y = n->tally;
    y->out_of_order += n->number != y->next[n->poster];
    y->next[n->poster]++;
    y->total++;
    if (y->total == POSTERS * POSTS) {
        gl_loop_stop(y->loop);
    }
}

static void *post_all(void *arg)
{
    struct poster *p = arg;
    for (unsigned i = 0; i < POSTS; i++) {
        gl_loop_post(p->tally->loop, &p->items[i].task);
    }
    return NULL;
}

static void tasks_of_many_threads_all_run_in_the_order_of_each(void **state)
{
    static struct poster posters[POSTERS];
    struct tally tally = {.loop = *state};
    pthread_t threads[POSTERS];
    for (unsigned i = 0; i < POSTERS; i++) {
        posters[i].tally = &tally;
        for (unsigned k = 0; k < POSTS; k++) {
            posters[i].items[k] = (struct numbered){
                .task.run = numbered_run, .poster = i, .number = k, .tally = &tally};
        }
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    gl_loop_run(*state);
    for (unsigned i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(tally.total, POSTERS * POSTS);
    assert_int_equal(tally.out_of_order, 0);
}

struct repost {
    struct gl_loop_task task;
    struct gl_loop *loop;
    int runs;
    bool running;
    bool nested;
};

static void repost_run(struct gl_loop_task *t)
{
    struct repost *r = GL_CONTAINER(t, struct repost, task);
    r->nested |= r->running;
    r->running = true;
    if (++r->runs == 3) {
        gl_loop_stop(r->loop);
    } else {
        gl_loop_post(r->loop, t); /* the task is ours again as soon as it runs */
    }
    r->running = false;
}

static void a_task_may_post_itself_again_and_never_runs_inside_the_post(void **state)
{
    struct repost r = {.task.run = repost_run, .loop = *state};
    gl_loop_post(*state, &r.task);
    assert_int_equal(r.runs, 0);
    gl_loop_run(*state);
    assert_int_equal(r.runs, 3);
    assert_false(r.nested);
}

static void a_stop_before_the_run_counts_and_the_loop_can_run_again(void **state)
{
    gl_loop_stop(*state);
    gl_loop_run(*state); /* returns at once */
    struct gl_loop_task stop = {.run = stop_run, .owner = *state};
    gl_loop_post(*state, &stop);
    gl_loop_run(*state);
}

struct noted {
    struct gl_loop_task task;
    struct diary *diary;
    char name;
    struct noted *post_urgent; /* when it runs; NULL: nothing */
};

struct diary {
    struct gl_loop *loop;
    char text[16];
    size_t n, wanted;
};

static void noted_run(struct gl_loop_task *t)
{
    struct noted *l = GL_CONTAINER(t, struct noted, task);
    struct diary *d = l->diary;
    d->text[d->n++] = l->name;
    if (l->post_urgent != NULL) {
        gl_loop_post(d->loop, &l->post_urgent->task);
    }
    if (d->n == d->wanted) {
        gl_loop_stop(d->loop);
    }
}

static void urgent_tasks_go_before_the_others_also_those_posted_meanwhile(void **state)
{
    struct diary d = {.loop = *state, .wanted = 6};
    struct noted tasks[6];
    for (size_t i = 0; i < 6; i++) {
        tasks[i] = (struct noted){
            .task = {.run = noted_run, .is_urgent = i >= 3}, .diary = &d, .name = "abcXYZ"[i]};
    }
    tasks[0].post_urgent = &tasks[5];
    for (size_t i = 0; i < 5; i++) { /* Z is posted by a */
        gl_loop_post(*state, &tasks[i].task);
    }
    gl_loop_run(*state);
    assert_string_equal(d.text, "XYaZbc");
}

static void urgent_tasks_without_end_do_not_keep_the_others_from_running(void **state)
{
    struct diary d = {.loop = *state, .wanted = 6};
    struct noted again = {.task = {.run = noted_run, .is_urgent = true}, .diary = &d, .name = 'U'};
    struct noted a = {.task.run = noted_run, .diary = &d, .name = 'a'};
    struct noted b = {.task.run = noted_run, .diary = &d, .name = 'b'};
    again.post_urgent = &again;
    gl_loop_post(*state, &again.task);
    gl_loop_post(*state, &a.task);
    gl_loop_post(*state, &b.task);
    gl_loop_run(*state);
    assert_string_equal(d.text, "UaUbUU");
    again.post_urgent = NULL; /* the loop still has it */
    d.wanted = 7;
    gl_loop_run(*state);
}

/* ---- the clock ---- */

struct alarm {
    struct gl_loop *loop;
    struct gl_clock *clock;
    gl_ms at[4];
    int fired;
    int wanted;
};

static void on_alarm(void *owner)
{
    struct alarm *a = owner;
    a->at[a->fired++] = a->clock->now(a->clock);
    if (a->fired == a->wanted) {
        gl_loop_stop(a->loop);
    }
}

static struct alarm make_alarm(struct gl_loop *l, int wanted)
{
    return (struct alarm){.loop = l, .clock = gl_loop_clock(l), .wanted = wanted};
}

static void an_alarm_fires_once_and_not_before_its_time(void **state)
{
    struct alarm a = make_alarm(*state, 1);
    a.clock->fire = on_alarm;
    a.clock->owner = &a;
    gl_ms due = a.clock->now(a.clock) + 20;
    a.clock->alarm(a.clock, due);
    gl_loop_run(*state);
    assert_int_equal(a.fired, 1);
    assert_true(a.at[0] >= due);
}

static void an_alarm_in_the_past_fires_but_not_from_inside_the_call(void **state)
{
    struct alarm a = make_alarm(*state, 1);
    a.clock->fire = on_alarm;
    a.clock->owner = &a;
    a.clock->alarm(a.clock, 0);
    assert_int_equal(a.fired, 0);
    gl_loop_run(*state);
    assert_int_equal(a.fired, 1);
}

static void a_second_alarm_replaces_the_first_be_it_earlier_or_later(void **state)
{
    struct alarm a = make_alarm(*state, 1);
    a.clock->fire = on_alarm;
    a.clock->owner = &a;
    gl_ms start = a.clock->now(a.clock);
    a.clock->alarm(a.clock, start + 60000);
    a.clock->alarm(a.clock, start + 5);
    a.clock->alarm(a.clock, start + 40);
    gl_loop_run(*state);
    assert_int_equal(a.fired, 1);
    assert_true(a.at[0] >= start + 40);
    assert_true(a.at[0] < start + 30000);
}

static void a_cancelled_alarm_never_fires(void **state)
{
    /* The cancelled one was due before the other, so the other's end proves it. */
    struct alarm a = make_alarm(*state, 1);
    a.clock->fire = on_alarm;
    a.clock->owner = &a;
    gl_ms start = a.clock->now(a.clock);
    a.clock->alarm(a.clock, start + 5);
    a.clock->alarm(a.clock, INT64_MAX);
    a.clock->alarm(a.clock, start + 30);
    gl_loop_run(*state);
    assert_int_equal(a.fired, 1);
    assert_true(a.at[0] >= start + 30);
}

static void the_clock_starts_at_wall_time(void **state)
{
    struct gl_clock *c = gl_loop_clock(*state);
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
    gl_ms wall = (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    gl_ms difference = c->now(c) - wall;
    assert_true(difference > -5000 && difference < 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks_of_many_threads_all_run_in_the_order_of_each,
                                        make_loop, free_loop),
        cmocka_unit_test_setup_teardown(a_task_may_post_itself_again_and_never_runs_inside_the_post,
                                        make_loop, free_loop),
        cmocka_unit_test_setup_teardown(
            urgent_tasks_go_before_the_others_also_those_posted_meanwhile, make_loop, free_loop),
        cmocka_unit_test_setup_teardown(
            urgent_tasks_without_end_do_not_keep_the_others_from_running, make_loop, free_loop),
        cmocka_unit_test_setup_teardown(a_stop_before_the_run_counts_and_the_loop_can_run_again,
                                        make_loop, free_loop),
        cmocka_unit_test_setup_teardown(an_alarm_fires_once_and_not_before_its_time, make_loop,
                                        free_loop),
        cmocka_unit_test_setup_teardown(an_alarm_in_the_past_fires_but_not_from_inside_the_call,
                                        make_loop, free_loop),
        cmocka_unit_test_setup_teardown(a_second_alarm_replaces_the_first_be_it_earlier_or_later,
                                        make_loop, free_loop),
        cmocka_unit_test_setup_teardown(a_cancelled_alarm_never_fires, make_loop, free_loop),
        cmocka_unit_test_setup_teardown(the_clock_starts_at_wall_time, make_loop, free_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
