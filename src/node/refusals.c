#include "node/refusals.h"

#include <stdio.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "node/node_state.h"

enum {
    KEPT_MAX = 64,
    TEXT_BYTES = 384,
    FRESH_MS = 60 * 1000, /* longer than the longest pause between two tries */
    TOLD_MS = 10 * 1000,  /* a full disk refuses many: the log has a line now and then */
};

struct refusal {
    char job[GL_ULID_BYTES + 1];
    char step[GL_STEP_ID_BYTES_MAX + 2];
    char text[TEXT_BYTES]; /* "" : free */
    gl_ms at;
};

struct gl_refusals {
    struct refusal all[KEPT_MAX];
    size_t next;
    gl_ms told_at;
};

void gl_refusals_free(struct gl_refusals *r)
{
    gl_mem_free(r);
}

static struct refusal *find(struct gl_refusals *r, gl_str job, gl_str step)
{
    for (size_t i = 0; r != NULL && i < KEPT_MAX; i++) {
        struct refusal *x = &r->all[i];

        if (x->text[0] != '\0' && gl_str_is(job, x->job) && gl_str_is(step, x->step)) {
            return x;
        }
    }
    return NULL;
}

static void tell(struct gl_node *n, const struct refusal *x)
{
    char line[TEXT_BYTES + 256];

    if (n->config.on_news != NULL && n->now >= n->refusals->told_at + TOLD_MS) {
        (void)snprintf(line, sizeof(line), "step '%s' of job %s cannot be started: %s", x->step,
                       x->job, x->text);
        n->config.on_news(n->config.owner, line);
        n->refusals->told_at = n->now;
    }
}

void gl_refusals_note(struct gl_node *n, gl_str job, gl_str step, gl_str why)
{
    struct refusal *x = find(n->refusals, job, step);
    bool is_new = x == NULL;

    if (why.n == 0) {
        if (x != NULL) {
            x->text[0] = '\0';
        }
        return;
    }
    if (n->refusals == NULL) {
        n->refusals = gl_mem_alloc(sizeof(*n->refusals));
        n->refusals->told_at = -TOLD_MS;
    }
    if (is_new) {
        x = &n->refusals->all[n->refusals->next++ % KEPT_MAX];
        (void)snprintf(x->job, sizeof(x->job), "%.*s", GL_STR_ARG(job));
        (void)snprintf(x->step, sizeof(x->step), "%.*s", GL_STR_ARG(step));
    }
    x->at = n->now;
    (void)snprintf(x->text, sizeof(x->text), "%.*s", GL_STR_ARG(why));
    if (is_new) {
        tell(n, x);
    }
}

gl_str gl_refusals_find(const struct gl_node *n, gl_str job, gl_str step)
{
    const struct refusal *x = find(n->refusals, job, step);

    return x != NULL && n->now - x->at < FRESH_MS ? gl_str_of(x->text) : (gl_str){0};
}
