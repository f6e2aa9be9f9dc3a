/* placement.h - decides on which node an attempt runs.
 *
 * Pure: a request and the nodes as they are known here; the result is a node, or for each node the
 * reason why not. What is known of other nodes may be outdated, so the result is only a guide: a
 * node that gets an offer decides itself when it takes it (cluster/taken.h).
 *
 * Called: gl_place() to choose, gl_place_judge() to explain. */
#ifndef GL_CORE_SCHEDULING_PLACEMENT_H
#define GL_CORE_SCHEDULING_PLACEMENT_H

#include "base/str.h"
#include "base/times.h"
#include "model/schema.h"

struct gl_place_pool {
    gl_str name;
    uint32_t slots;
    uint32_t others; /* slots used by attempts that are not ours, as the node last reported */
    uint32_t ours;   /* slots of our attempts there, offered or running */
};

struct gl_place_node {
    gl_str id;
    bool takes;     /* it takes offers: it is ready, of our scope, and not stopping */
    gl_ms grace_ms; /* of its keeper: see recovery/safety.h */
    gl_str labels;  /* as in GLIA_LABELS */
    struct gl_place_pool *pools;
    size_t pools_n;
};

struct gl_place_request {
    gl_str pool;
    uint32_t slots;
    const struct gl_strs *labels; /* rules (model/labels.h); NULL: none */
    gl_str avoid;                 /* a node to use only if there is no other one; "": none */
    gl_str except;                /* a node that is not considered; "": none */
};

/* In the order of preference: a better reason for one node does not outweigh a worse one. The last
 * two are not about the node; gl_place_judge() never returns them (api/places.c does). */
#define GL_PLACE_RESULTS(X)                                                         \
    X(FITS, "fits", "it has enough free slots")                                     \
    X(BUSY, "busy", "it has the slots, but they are in use")                        \
    X(POOL_TOO_SMALL, "pool_too_small", "its pool has fewer slots than are needed") \
    X(NO_POOL, "no_pool", "it does not have the pool")                              \
    X(LABELS, "labels", "its labels are not those that are required")               \
    X(NOT_TAKING, "not_taking", "it does not run attempts for other nodes")         \
    X(STEP_STAYS, "step_stays", "the step runs only on the node that has its job")  \
    X(NOT_OFFERED, "not_offered", "the node that has the job offers nothing to others")

enum gl_place_result {
#define X(name, word, doc) GL_PLACE_##name,
    GL_PLACE_RESULTS(X)
#undef X
};

const char *gl_place_word(enum gl_place_result result);
const char *gl_place_doc(enum gl_place_result result);

/* The node's pool of that name; NULL: it has none. */
struct gl_place_pool *gl_place_pool(const struct gl_place_node *node, gl_str name);
enum gl_place_result gl_place_judge(const struct gl_place_node *node,
                                    const struct gl_place_request *request);
/* The number of the best node, and what speaks for it: FITS if one has free slots now; otherwise
 * BUSY with a node that could run it later. -1: none could, and *ret is the best of the reasons.
 * Work spreads: the node with the largest part of its slots free is preferred, then the smaller
 * id. */
int64_t gl_place(const struct gl_place_node *nodes, size_t n,
                 const struct gl_place_request *request, enum gl_place_result *ret);

#endif
