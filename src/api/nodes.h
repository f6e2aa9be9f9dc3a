/* nodes.h - the nodes that share the store, from their sessions: as JSON, and as facts about the
 * owner of a job.
 *
 * A node has many sessions over time; the newest one gives its state. What a node publishes about
 * itself (`about`) is passed on unchanged, except capacity and labels, which are checked: what is
 * not valid is unknown. Pure: the sessions have already been read.
 *
 * Order of calls: fill in struct gl_nodes from the store's sessions (gl_nodes_copy() keeps them),
 * then call any of the functions that write or find. */
#ifndef GL_API_NODES_H
#define GL_API_NODES_H

#include "base/json.h"
#include "model/flow/flow.h"
#include "model/job.h"
#include "port/store.h"

/* alive: it renews its session. late: its deadline has passed, but no node has declared it dead
 * yet. dead: final; its jobs may be taken over. */
#define GL_NODE_STATUSES(X) \
    X(ALIVE, "alive")       \
    X(LATE, "late")         \
    X(DEAD, "dead")

enum gl_node_status {
#define X(name, word) GL_NODE_##name,
    GL_NODE_STATUSES(X)
#undef X
        GL_NODE_STATUS_COUNT
};

extern const char *const gl_node_status_words[];

struct gl_nodes {
    const struct gl_session_info *sessions; /* as the store lists them; borrowed */
    size_t sessions_n;
    const char *engine; /* the store's engine */
    bool is_shared;
    bool has_node; /* is a node running? On a store that is not shared, its session does not show it
                    */
    gl_str own;    /* the session of the node that answers; "": none */
    gl_str leader; /* the session that holds the leader lease; "": none */
};

/* A copy, because the store's answer is gone by the time the leader has been read. */
struct gl_session_info *gl_nodes_copy(struct gl_arena *a, const struct gl_session_info *sessions,
                                      size_t n);

/* {"nodes": [...]}; dead ones only with `all`. */
void gl_nodes_write(struct gl_arena *a, const struct gl_nodes *n, bool all, struct gl_jw *w);
/* One node, by its name or a prefix of it. GL_E_NOT_FOUND; GL_E_INVALID: the prefix is ambiguous.
 */
int gl_nodes_write_one(struct gl_arena *a, const struct gl_nodes *n, gl_str name, struct gl_jw *w,
                       struct gl_why *reterr_why);
/* The cluster as a whole: number of nodes, leader, slots of all pools. */
void gl_nodes_write_cluster(struct gl_arena *a, const struct gl_nodes *n, struct gl_jw *w);

/* The owner of a job. */
struct gl_nodes_owner {
    gl_str session; /* "": no owner; the job was released */
    gl_str node;
    enum gl_node_status status;
    gl_ms left_ms;       /* until its deadline; negative: overdue; INT64_MAX: no deadline */
    bool is_own;         /* it is the node that answers */
    bool was_own;        /* it is an earlier session of that node */
    bool has_successors; /* a node that may take over is alive, or any node may */
    uint32_t inbox_n;    /* commands queued for it */
};

struct gl_nodes_owner gl_nodes_find_owner(const struct gl_nodes *n, gl_str session);
/* The nodes on which steps of this job may run, as far as their sessions tell: the owner first. */
struct gl_core_places;
void gl_nodes_read_places(struct gl_arena *a, const struct gl_nodes *n,
                          const struct gl_job_record *job, gl_str owner,
                          struct gl_core_places *ret);
/* Do all nodes that may take over the job understand offers (model/offer.h)? */
bool gl_nodes_are_placing(struct gl_arena *a, const struct gl_nodes *n,
                          const struct gl_job_record *job);
/* Is a node of this stack and env scope alive? */
bool gl_nodes_has_successor(struct gl_arena *a, const struct gl_nodes *n, gl_str stack,
                            gl_str env_scope);

/* The live nodes that offer enough slots of a pool for a step of this job. */
struct gl_nodes_offer {
    gl_str names; /* "'n2'", "'n2' and 'n3'", "'n2', 'n3' and 4 more"; "": none */
    bool by_node; /* `node` is one of them */
};

struct gl_nodes_offer gl_nodes_find_offer(struct gl_arena *a, const struct gl_nodes *n,
                                          const struct gl_job_record *job,
                                          const struct gl_step_spec *spec, gl_str node);

#endif
