/* nodes.h - who shares the store: sessions, as people and programs want to see them.
 *
 * A node has many sessions over the time: the newest tells how it stands. What it says of itself
 * (`about`) is passed on as it is. Pure: what is looked at has been read from the store. */
#ifndef GL_API_NODES_H
#define GL_API_NODES_H

#include "base/json.h"
#include "model/flow/flow.h"
#include "model/job.h"
#include "port/store.h"

/* alive: it renews its session. late: its deadline is over, and nobody has declared it dead yet.
 * dead: so it stays; its jobs are free. */
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
    const char *engine; /* of the store */
    bool is_shared;
    bool has_node; /* without a shared store: is there a node? Its session does not tell */
    gl_str own;    /* the session of the node that is asked; "" : none */
    gl_str leader; /* the session that owns the lease; "" : none */
};

/* Copied: the answer of the store is gone when the leader is asked for. */
struct gl_session_info *gl_nodes_copy(struct gl_arena *a, const struct gl_session_info *sessions,
                                      size_t n);

/* {"nodes": [...]}: the dead ones only with `all`. */
void gl_nodes_write(struct gl_arena *a, const struct gl_nodes *n, bool all, struct gl_jw *w);
/* One node, by its name or the beginning of it. GL_E_NOT_FOUND, GL_E_INVALID: more than one. */
int gl_nodes_write_one(struct gl_arena *a, const struct gl_nodes *n, gl_str name, struct gl_jw *w,
                       struct gl_why *reterr_why);
/* How the whole stands: how many nodes, who leads, slots of all. */
void gl_nodes_write_cluster(struct gl_arena *a, const struct gl_nodes *n, struct gl_jw *w);

/* Who has a job. */
struct gl_nodes_owner {
    gl_str session; /* "" : nobody; it was released */
    gl_str node;
    enum gl_node_status status;
    gl_ms left_ms;       /* until its deadline; negative: so long over; INT64_MAX: none */
    bool is_own;         /* the node that is asked */
    bool was_own;        /* or that was it, before it began anew */
    bool has_successors; /* a node that may take its job over lives, or any that comes may */
    uint32_t inbox_n;    /* commands that wait for it */
};

struct gl_nodes_owner gl_nodes_find_owner(const struct gl_nodes *n, gl_str session);
/* Does a node of this stack and env scope live? */
bool gl_nodes_has_successor(struct gl_arena *a, const struct gl_nodes *n, gl_str stack,
                            gl_str env_scope);

/* The live nodes of this stack and env scope that offer so many slots of a pool to any job. */
struct gl_nodes_offer {
    gl_str names; /* "'n2'", "'n2' and 'n3'", "'n2', 'n3' and 4 more"; "" : none */
    bool by_node; /* the node that was asked about is one of them */
};

struct gl_nodes_offer gl_nodes_find_offer(struct gl_arena *a, const struct gl_nodes *n,
                                          const struct gl_job_record *job,
                                          const struct gl_step_spec *spec, gl_str node);

#endif
