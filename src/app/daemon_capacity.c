/* daemon_capacity.c - measures what this process may use of its machine.
 *
 * The node asks on its control thread, which must not wait for a disk, so it gets the last values;
 * if they are old, the work thread measures again, for the next question. The node asks with every
 * renewal of its session, so no timer is needed. */
#include "app/daemon_state.h"
#include "os/machine.h"

enum { FRESH_MS = 15000 };

static gl_ms now_of(struct gl_daemon *d)
{
    struct gl_clock *clock = gl_loop_clock(d->loop);

    return clock->now(clock);
}

static void measure(struct gl_work_task *t)
{
    struct gl_daemon_capacity *c = GL_CONTAINER(t, struct gl_daemon_capacity, task);

    gl_machine_measure("", GL_CONTAINER(c, struct gl_daemon, capacity)->data, &c->next);
}

static void on_measured(struct gl_work_task *t)
{
    struct gl_daemon_capacity *c = GL_CONTAINER(t, struct gl_daemon_capacity, task);

    c->last = c->next;
    c->is_posted = false;
}

void gl_daemon_capacity_open(struct gl_daemon *d)
{
    d->capacity.task = (struct gl_work_task){.run = measure, .done = on_measured};
    gl_machine_measure("", d->data, &d->capacity.last);
    d->capacity.measured_at = now_of(d);
}

struct gl_capacity gl_daemon_capacity(void *owner)
{
    struct gl_daemon *d = owner;
    gl_ms now = now_of(d), age = now - d->capacity.measured_at;

    /* The clock may have been set back. */
    if (d->work != NULL && !d->capacity.is_posted && (age < 0 || age >= FRESH_MS)) {
        d->capacity.is_posted = true;
        d->capacity.measured_at = now;
        gl_work_post(gl_workthread_port(d->work), &d->capacity.task);
    }
    return d->capacity.last;
}

void gl_daemon_capacity_reset(struct gl_daemon *d)
{
    d->capacity.is_posted = false;
}
