/* check_names.c - one job per run id and per request key, as long as it is kept, and at most one
 * live job per dedupe key. */
#include "base/mem.h"
#include "sim/sim_checks.h"

struct name {
    gl_str key; /* "r", "d" or "q" (request key), then the name */
    const struct sim_fact_job *holder;
};

struct names_state {
    struct gl_map names;
    bool ready;
};

static void hold(struct sim_checks *c, struct names_state *s, char type, gl_str text,
                 const struct sim_change *ch)
{
    if (text.n == 0) {
        return;
    }
    gl_str key = gl_str_fmt(&c->arena, "%c%.*s", type, GL_STR_ARG(text));
    struct name *n = gl_map_find(&s->names, key);
    if (n == NULL) {
        n = gl_mem_alloc(sizeof(*n) + key.n);
        char *copy = (char *)(n + 1);
        memcpy(copy, key.p, key.n);
        n->key = (gl_str){.p = copy, .n = key.n};
        gl_map_add(&s->names, n->key, n);
    }
    if (n->holder != NULL && n->holder != ch->job && ch->job_live_now) {
        sim_world_fail(c->world, "names: jobs %.*s and %.*s are both live under the %s '%.*s'",
                       GL_STR_ARG(n->holder->id), GL_STR_ARG(ch->job->id),
                       type == 'r'   ? "run id"
                       : type == 'q' ? "request key"
                                     : "dedupe key",
                       GL_STR_ARG(text));
    }
    if (ch->job_live_now) {
        n->holder = ch->job;
    } else if (n->holder == ch->job && type == 'd') {
        n->holder = NULL;
    }
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct names_state *s = me;
    if (ch->step != NULL) {
        return;
    }
    if (!s->ready) {
        gl_map_init(&s->names);
        s->ready = true;
    }
    hold(c, s, 'r', ch->job_now->run_id, ch);
    hold(c, s, 'd', ch->job_now->dedupe_key, ch);
    hold(c, s, 'q', ch->job_now->request_key, ch);
}

static void on_torn(struct sim_checks *c, void *me, struct sim_fact_job *j)
{
    struct names_state *s = me;
    struct name *n;
    (void)c;
    for (size_t i = 0; s->ready && (n = gl_map_next(&s->names, &i)) != NULL;) {
        gl_str text = {.p = n->key.p + 1, .n = n->key.n - 1};
        bool has = n->key.p[0] == 'r' ? gl_str_eq(text, j->run_id)
                   : n->key.p[0] == 'q'
                       ? gl_str_eq(text, j->request_key)
                       : gl_str_eq(text, j->dedupe_key) && !gl_job_status_is_terminal(j->r.status);
        if (n->holder == j && !(has && j->known)) {
            n->holder = NULL;
        } else if (n->holder == NULL && has && j->known) {
            n->holder = j;
        }
    }
}

static void on_removed(struct sim_checks *c, void *me, struct sim_fact_job *j)
{
    struct names_state *s = me;
    struct name *n;
    (void)c;
    for (size_t i = 0; s->ready && (n = gl_map_next(&s->names, &i)) != NULL;) {
        n->holder = n->holder == j ? NULL : n->holder;
    }
}

static void done(void *me)
{
    struct names_state *s = me;
    struct name *n;
    for (size_t i = 0; s->ready && (n = gl_map_next(&s->names, &i)) != NULL;) {
        gl_mem_free(n);
    }
    if (s->ready) {
        gl_map_done(&s->names);
    }
}

const struct sim_check sim_check_names = {.name = "names",
                                          .state_bytes = sizeof(struct names_state),
                                          .on_change = on_change,
                                          .sees_torn = true,
                                          .on_removed = on_removed,
                                          .on_torn = on_torn,
                                          .done = done};
