/* query_parts.h - one question under way, shared by the files that answer questions and by nobody
 * else. */
#ifndef GL_API_QUERY_PARTS_H
#define GL_API_QUERY_PARTS_H

#include "api/nodes.h"
#include "api/query.h"
#include "base/json.h"
#include "model/flow/flow.h"
#include "port/work.h"

/* What is quicker to parse and render than to hand over to another thread. */
enum { GL_QUERY_ROWS = 100 }; /* of a page, unless asked otherwise */
enum { GL_QUERY_AT_ONCE_BYTES = 16 << 10, GL_QUERY_AT_ONCE_STEPS = 64 };

/* One question under way. What it has found stays in its arena until the answer is written. */
struct gl_query {
    struct gl_link link;
    struct gl_query_context *context;
    struct gl_arena arena;
    struct gl_store_req req;
    gl_store_done *answered; /* who goes on with what the store has answered */
    struct gl_request *rq;   /* NULL: only a name is to be resolved */
    gl_query_answer *answer;
    gl_query_resolved *resolved;
    void *owner;
    uint32_t limit;           /* rows of the answer */
    gl_str tenant, name, job; /* context, the name as given, the id it means */
    struct gl_key key;
    struct gl_key *keys;
    struct gl_listing listing;
    struct gl_range range;
    void (*next)(struct gl_query *q);     /* once the job is known, */
    void (*with_job)(struct gl_query *q); /* ... and once its record has been read */
    struct gl_record job_record;
    gl_str flow;
    struct gl_nodes nodes;
    void (*with_nodes)(struct gl_query *q); /* once they and their leader are known */
    struct gl_nodes_owner job_owner;
    size_t scanned, taken;
    bool (*each)(struct gl_query *q, const struct gl_record *r); /* a listing: written, if wanted */
    gl_str last;                                                 /* the record it has come to */
    bool is_full, has_more;
    const struct gl_flow *graph;         /* agents, messages: the flow, read */
    struct gl_agents_reading *reading;   /* of query_agents.c */
    void *counts;                        /* of query_agents.c, query_status.c */
    void (*cleanup)(struct gl_query *q); /* it ends: gives back what is not in the arena; or NULL */
    struct gl_questions_run *asks;       /* human: of runs, ... */
    size_t asks_n;
    uint64_t asks_open_n; /* ... with so many questions */
    struct gl_buf body;
    struct gl_jw w;

    /* What the store has answered last, and what is being made of it: gl_query_render(). */
    struct gl_work_task task;
    struct gl_arena page;
    const struct gl_record *records;
    const struct gl_log_entry *entries;
    size_t records_n, entries_n;
    void (*render)(struct gl_query *q), (*rendered)(struct gl_query *q);
};

/* ---- query.c ---- */
/* It ends with this. */
void gl_query_fail(struct gl_query *q, int code, const char *why);
void gl_query_succeed(struct gl_query *q);
void gl_query_no_such_job(struct gl_query *q);
/* The job's record (q->job_record) is damaged, and this node does not have the job in memory, from
 * which the next transaction would mend the record. On the control thread. */
bool gl_query_is_unrecoverable(const struct gl_query *q);
/* For a call of the store. `next` goes on with the answer; if the call fails, the question ends. */
struct gl_store_req *gl_query_call(struct gl_query *q, gl_store_done *next);
void gl_query_get(struct gl_query *q, gl_str kind, gl_str id, gl_store_done *done);
void gl_query_read(struct gl_query *q, gl_store_done *done); /* q->listing */
/* The record of q->job: q->job_record, when `next` runs. If there is none, the question ends. */
void gl_query_get_job(struct gl_query *q, void (*next)(struct gl_query *q));
struct gl_record gl_query_copy_record(struct gl_query *q, const struct gl_record *r);

/* Parse and write what the store has just answered: `render` runs on any thread with q->records or
 * q->entries, which are gone afterwards, then `rendered` on the control thread. */
void gl_query_render(struct gl_query *q, void (*render)(struct gl_query *q),
                     void (*rendered)(struct gl_query *q));

/* Who has the store: q->nodes. */
void gl_query_sessions(struct gl_query *q, void (*then)(struct gl_query *q));

/* What was asked for within the bounds, or the default. */
uint32_t gl_query_limit(uint32_t asked, uint32_t otherwise);

/* ---- the queries of verbs.def; where the path names a job, q->job is its id ---- */
#define VERB(name, word, kind, method, path, takes, body, http, query, ...) \
    void gl_query_##query(struct gl_query *q);
#include "api/verbs.def"
#undef VERB

#endif
