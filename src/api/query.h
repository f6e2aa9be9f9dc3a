/* query.h - questions: they read the store and never enter the core.
 *
 *   gl_query_run()       list, status, events, human, why, nodes, cluster, ...: the request is
 * answered through its own `done` gl_query_resolve()   which job does this name mean?
 *
 * Works on any store, with a node around it or without one (a command that only reads opens the
 * store by itself). */
#ifndef GL_API_QUERY_H
#define GL_API_QUERY_H

#include "api/reason.h"
#include "api/request.h"
#include "base/list.h"
#include "base/map.h"
#include "port/questions.h"
#include "port/store.h"
#include "port/work.h"

struct gl_query_context {
    struct gl_store *store;
    struct gl_link under_way;
    size_t under_way_n;
    const struct gl_reason_live *live; /* borrowed; NULL: no node is running */
    const struct gl_questions *asks;   /* borrowed; NULL: what workers ask is not known */
    struct gl_work *work;              /* borrowed; NULL: answers are rendered at once */
    struct gl_link turns;              /* readers of large jobs that wait: query_status.c */
    bool has_turn;                     /* one of them reads */
    bool is_closing;
};

void gl_query_init(struct gl_query_context *q, struct gl_store *store);
/* Forget what is under way: only after neither the store nor the worker can call back any more. */
void gl_query_done(struct gl_query_context *q);

/* Fill in the answer; `rq->done` is called by `answer`, which the caller provides (so that a node
 * can keep its own books). */
typedef void gl_query_answer(void *owner, struct gl_request *rq);
void gl_query_run(struct gl_query_context *q, struct gl_request *rq, gl_query_answer *answer,
                  void *owner);

/* Called with code 0 and the job's id, or an error and a sentence. */
typedef void gl_query_resolved(void *owner, int code, gl_str job, const char *why);
void gl_query_resolve(struct gl_query_context *q, gl_str context, gl_str name,
                      gl_query_resolved *done, void *owner);

#endif
