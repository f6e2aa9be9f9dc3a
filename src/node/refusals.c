/* refusals.c - a small ring of the starts that failed most recently, and why. */
#include "node/refusals.h"

#include <stdio.h>

#include "base/check.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "node/node_state.h"

enum {
    KEPT_MAX = 64,
    TEXT_BYTES = 384,
    FRESH_MS = 60 * 1000,        /* longer than the longest pause between two attempts */
    LOG_INTERVAL_MS = 10 * 1000, /* write one line at most in this time */
};

struct start_refusal {
    char job[GL_ULID_BYTES + 1];
    char step[GL_STEP_ID_BYTES_MAX + 2];
    char text[TEXT_BYTES]; /* "": unused */
    gl_ms at;
};

struct refusals {
    struct start_refusal all[KEPT_MAX];
    size_t next;
    gl_ms logged_at;
};

static struct refusals *own(const struct gl_node *n)
{
    return n->parts[GL_PART_REFUSALS];
}

static struct start_refusal *find(const struct gl_node *n, gl_str job, gl_str step)
{
    GL_ASSERT(job.n > 0);
    GL_ASSERT(step.n > 0);
    for (size_t i = 0; i < KEPT_MAX && i < own(n)->next; i++) {
        struct start_refusal *x = &own(n)->all[i];

        if (x->text[0] != '\0' && gl_str_is(job, x->job) && gl_str_is(step, x->step)) {
            return x;
        }
    }
    return NULL;
}

static void log_refusal(struct gl_node *n, const struct start_refusal *x)
{
    char line[TEXT_BYTES + 256];

    GL_ASSERT(x->text[0] != '\0');
    if (n->config.on_notice != NULL &&
        (own(n)->logged_at == 0 || n->now >= own(n)->logged_at + LOG_INTERVAL_MS)) {
        (void)snprintf(line, sizeof(line), "cannot start step '%s' of job %s: %s", x->step, x->job,
                       x->text);
        n->config.on_notice(n->config.owner, line);
        own(n)->logged_at = n->now;
    }
}

void gl_refusals_note(struct gl_node *n, gl_str job, gl_str step, gl_str why)
{
    struct start_refusal *x = find(n, job, step);
    bool is_new = x == NULL;

    GL_ASSERT(job.n > 0);
    GL_ASSERT(step.n > 0);
    if (why.n == 0) {
        if (x != NULL) {
            x->text[0] = '\0';
        }
        return;
    }
    if (is_new) {
        x = &own(n)->all[own(n)->next++ % KEPT_MAX];
        (void)snprintf(x->job, sizeof(x->job), "%.*s", GL_STR_ARG(job));
        (void)snprintf(x->step, sizeof(x->step), "%.*s", GL_STR_ARG(step));
    }
    x->at = n->now;
    (void)snprintf(x->text, sizeof(x->text), "%.*s", GL_STR_ARG(why));
    if (is_new) {
        log_refusal(n, x);
    }
    GL_ASSERT(x->at == n->now);
}

gl_str gl_refusals_find(const struct gl_node *n, gl_str job, gl_str step)
{
    const struct start_refusal *x = find(n, job, step);

    return x != NULL && n->now - x->at < FRESH_MS ? gl_str_of(x->text) : (gl_str){0};
}

const struct gl_node_part gl_refusals_part = {.bytes = sizeof(struct refusals)};
