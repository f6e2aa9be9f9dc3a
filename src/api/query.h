/* query.h - queries: they read the store and never enter the core.
 *
 *   gl_query_init()      once per store
 *   gl_query_run()       list, status, events, human, why, nodes, cluster, ...: the answer goes to
 *                        `answer`
 *   gl_query_resolve()   finds the job that a name refers to
 *   gl_query_done()      at the end
 *
 * Works on any store, inside a node or without one (a command that only reads opens the store
 * itself). */
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
    const struct gl_questions *asks;   /* borrowed; NULL: questions of workers cannot be read */
    struct gl_work *work; /* borrowed; NULL: answers are rendered on the calling thread */
    struct gl_link turns; /* readers of large jobs waiting for their turn: query_status.c */
    bool has_turn;        /* one of them is reading */
    bool is_closing;
};

void gl_query_init(struct gl_query_context *q, struct gl_store *store);
/* Drops the queries in flight. Call it only once neither the store nor the worker thread can call
 * back. */
void gl_query_done(struct gl_query_context *q);

/* Runs a query. The answer is filled into `rq`, which is passed to `answer`; that must call
 * rq->done. So a node can keep its own records of its requests. */
typedef void gl_query_answer(void *owner, struct gl_request *rq);
void gl_query_run(struct gl_query_context *q, struct gl_request *rq, gl_query_answer *answer,
                  void *owner);

/* Called with code 0 and the job's id, or with an error and a sentence. */
typedef void gl_query_resolved(void *owner, int code, gl_str job, const char *why);
void gl_query_resolve(struct gl_query_context *q, gl_str context, gl_str name,
                      gl_query_resolved *done, void *owner);

#endif
