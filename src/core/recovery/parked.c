/* parked.c - a parked event is copied by encoding and decoding it, so it owns all its strings. */
#include "core/recovery/parked.h"

#include "base/check.h"
#include "core/cluster/inbox.h"
#include "core/flow/txn.h"
#include "core/snapshot.h"

struct parked {
    struct gl_link link;
    struct gl_arena arena;
    struct gl_event ev;
};

uint64_t gl_parked_request(const struct gl_event *ev)
{
    return ev->type == GL_EV_COMMAND ? ev->command.request : 0;
}

void gl_parked_add(struct gl_core *c, struct gl_job *j, const struct gl_event *ev)
{
    struct gl_buf text = {0};
    struct parked *p;
    int rc;

    GL_ASSERT(j->memory != GL_MEM_HOT);
    if (j->parked_n >= GL_PARKED_MAX) {
        gl_txn_refuse(c, gl_parked_request(ev), GL_R_TOO_MANY_REQUESTS,
                      "too many requests are waiting for job %.*s", GL_STR_ARG(j->id));
        return; /* the executor will resend its reports */
    }
    p = gl_pool_alloc(&c->mem, sizeof(*p));
    gl_event_encode(ev, &text);
    rc = gl_event_decode(gl_str_dup(&p->arena, gl_buf_view(&text)), &p->arena, &p->ev, NULL);
    GL_ASSERT(rc == 0);
    gl_buf_done(&text);
    gl_list_push(&j->parked, &p->link);
    j->parked_n++;
    GL_ASSERT(j->parked_n <= GL_PARKED_MAX);
}

void gl_parked_take_all(struct gl_core *c, struct gl_job *j,
                        void (*each)(struct gl_core *c, struct gl_job *j,
                                     const struct gl_event *ev))
{
    struct gl_link todo;

    gl_list_init(&todo);
    for (struct gl_link *l; (l = gl_list_first(&j->parked)) != NULL;) {
        gl_list_remove(l);
        gl_list_push(&todo, l);
    }
    j->parked_n = 0;
    for (struct gl_link *l; (l = gl_list_first(&todo)) != NULL;) {
        struct parked *p = GL_CONTAINER(l, struct parked, link);

        gl_list_remove(l);
        p->ev.now = c->now;
        if (each != NULL) {
            each(c, j, &p->ev);
        } else {
            gl_inbox_abandon(c, gl_parked_request(&p->ev));
        }
        gl_arena_done(&p->arena);
        gl_pool_free(&c->mem, p, sizeof(*p));
    }
}

void gl_parked_save(const struct gl_job *j, struct gl_buf *out)
{
    for (const struct gl_link *l = j->parked.next; l != &j->parked; l = l->next) {
        const struct gl_event *ev = &GL_CONTAINER(l, struct parked, link)->ev;

        gl_snapshot_put(out, "parked", gl_event_schema(ev->type), ev);
    }
}

int gl_parked_restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct parked *p;
    int rc;

    if (l->job == NULL || l->job->parked_n >= GL_PARKED_MAX) {
        return gl_snapshot_bad(l, "an event is parked without a job, or there are too many");
    }
    p = gl_pool_alloc(&c->mem, sizeof(*p));
    rc = gl_event_decode(gl_str_dup(&p->arena, gl_json_raw(l->json, l->value)), &p->arena, &p->ev,
                         l->why);
    if (rc != 0) {
        gl_arena_done(&p->arena);
        gl_pool_free(&c->mem, p, sizeof(*p));
        return rc;
    }
    gl_list_push(&l->job->parked, &p->link);
    l->job->parked_n++;
    GL_ASSERT(l->job->parked_n <= GL_PARKED_MAX);
    return 0;
}
