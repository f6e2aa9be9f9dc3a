/* query_parts.h - one query in flight, shared by the files query*.c.
 *
 * A query makes one call of the store at a time: gl_query_get(), gl_query_read() or, for anything
 * else, gl_query_call(). Large answers are rendered by gl_query_render(). The query ends with
 * gl_query_succeed() or gl_query_fail(), which free it.
 *
 * Other code uses api/query.h. */
#ifndef GL_API_QUERY_PARTS_H
#define GL_API_QUERY_PARTS_H

#include "api/nodes.h"
#include "api/query.h"
#include "base/json.h"
#include "model/flow/flow.h"
#include "port/work.h"

enum { GL_QUERY_ROWS = 100 }; /* rows per page, unless the request says otherwise */
/* Answers up to this size are quicker to render than to hand over to another thread. */
enum { GL_QUERY_AT_ONCE_BYTES = 16 << 10, GL_QUERY_AT_ONCE_STEPS = 64 };

/* One query in flight. What it has read stays in its arena until the answer is written. */
struct gl_query {
    struct gl_link link;
    struct gl_query_context *context;
    struct gl_arena arena;
    struct gl_store_req req;
    gl_store_done *answered; /* called with the store's answer */
    struct gl_request *rq;   /* NULL: only resolve a name */
    gl_query_answer *answer;
    gl_query_resolved *resolved;
    void *owner;
    uint32_t limit;           /* maximal rows of the answer */
    gl_str tenant, name, job; /* context; the name as given; the job id it refers to */
    struct gl_key key;
    struct gl_key *keys;
    struct gl_listing listing;
    struct gl_range range;
    void (*next)(struct gl_query *q);     /* when the job is known, ... */
    void (*with_job)(struct gl_query *q); /* ... and when its record has been read */
    struct gl_record job_record;
    gl_str flow;
    struct gl_nodes nodes;
    void (*with_nodes)(struct gl_query *q); /* when they and their leader are known */
    struct gl_nodes_owner job_owner;
    size_t scanned, taken;
    bool (*each)(struct gl_query *q, const struct gl_record *r); /* writes it, if it matches */
    gl_str last;                                                 /* id of the last record handled */
    bool is_full, has_more;
    const struct gl_flow *graph;         /* agents, messages: the decoded flow */
    struct gl_agents_reading *reading;   /* of query_agents.c */
    void *counts;                        /* private to query.c, query_agents.c, query_status.c */
    void (*cleanup)(struct gl_query *q); /* frees what is not in the arena; or NULL */
    struct gl_questions_run *asks;       /* human: runs with questions, ... */
    size_t asks_n;
    uint64_t asks_open_n; /* ... and how many open questions are not listed yet */
    struct gl_buf body;
    struct gl_jw w;

    /* The store's last answer while it is being rendered: gl_query_render(). */
    struct gl_work_task task;
    struct gl_arena page;
    const struct gl_record *records;
    const struct gl_log_entry *entries;
    size_t records_n, entries_n;
    void (*render)(struct gl_query *q), (*rendered)(struct gl_query *q);
};

/* ---- query.c ---- */
/* Ends the query with an error. */
void gl_query_fail(struct gl_query *q, int code, const char *why);
void gl_query_succeed(struct gl_query *q);
void gl_query_no_such_job(struct gl_query *q);
/* Is the job's record (q->job_record) damaged, and does this node not have the job in memory? (If
 * it has, the next transaction writes the record again.) On the control thread. */
bool gl_query_is_unrecoverable(const struct gl_query *q);
/* The request for a call of the store: `next` gets the answer. If the call fails, the query ends.
 */
struct gl_store_req *gl_query_call(struct gl_query *q, gl_store_done *next);
void gl_query_get(struct gl_query *q, gl_str kind, gl_str id, gl_store_done *done);
void gl_query_read(struct gl_query *q, gl_store_done *done); /* lists q->listing */
/* Reads the record of q->job into q->job_record, then runs `next`. If there is none, the query
 * ends. */
void gl_query_get_job(struct gl_query *q, void (*next)(struct gl_query *q));
struct gl_record gl_query_copy_record(struct gl_query *q, const struct gl_record *r);

/* Parses and renders the store's last answer: `render` runs on any thread with q->records or
 * q->entries, which are gone afterwards; then `rendered` runs on the control thread. */
void gl_query_render(struct gl_query *q, void (*render)(struct gl_query *q),
                     void (*rendered)(struct gl_query *q));

/* Reads the sessions of the store into q->nodes. */
void gl_query_sessions(struct gl_query *q, void (*then)(struct gl_query *q));

/* The requested limit within bounds, or the default. */
uint32_t gl_query_limit(uint32_t asked, uint32_t otherwise);

/* ---- the queries of verbs.def; if the path names a job, q->job is its id ---- */
#define VERB(name, word, kind, method, path, takes, body, http, query, ...) \
    void gl_query_##query(struct gl_query *q);
#include "api/verbs.def"
#undef VERB

#endif
