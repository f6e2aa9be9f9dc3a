/* blobs_state.h - the memory that blobs.c, blobs_keep.c and blobs_fetch.c share.
 *
 * Private to these three files; other code uses node/blobs.h. A copy waits for its turn with
 * gl_blobs_wait_turn() before it moves content, and ends it with gl_blobs_end_turn(). */
#ifndef GL_NODE_BLOBS_STATE_H
#define GL_NODE_BLOBS_STATE_H

#include "base/limits.h"
#include "base/sha256.h"
#include "model/gc_state.h"
#include "node/blobs.h"
#include "node/node_state.h"
#include "port/blob.h"

enum {
    GL_BLOBS_KNOWN_MAX = 8192, /* hashes remembered, per cache */
    GL_BLOBS_MOVES_MAX = 4,    /* blobs moving at once, in either direction */
    GL_BLOBS_ATTEMPTS_MAX = 8, /* other nodes may be writing or removing the same blob */
    /* How long a hash counts as present, here or in the store. Retention keeps files that were used
     * within the last hour, and every use makes them fresh again. */
    GL_BLOBS_TRUST_MS = 10 * 60 * 1000,
    /* If files are damaged more often than this, the disk is failing and a person must look. */
    GL_BLOBS_REFETCH_MS = 60 * 1000,
};

/* A cache of hashes known to be present; the least recently used are evicted. */
struct gl_blobs_known {
    struct gl_map by_hash; /* struct known */
    struct gl_link order;
};

/* A blob that waits for its turn to move, or has it. */
struct gl_blobs_turn {
    struct gl_link link;
    bool is_on;
    void (*begin)(struct gl_blobs_turn *t);
};

struct gl_blobs {
    struct gl_node *node;
    struct gl_blobs_known stored; /* blobs, and flows with all their blobs */
    struct gl_blobs_known local;  /* blobs in our folder */
    struct gl_map keeps;          /* by flow: struct keep */
    struct gl_map fetches;        /* by blob: struct fetch */
    struct gl_link wants;         /* struct want */
    struct gl_link waiting;       /* struct gl_blobs_turn */
    size_t moves_n;
    gl_ms verify_until; /* until then files in our folder are verified before they are used */
    uint64_t claims_n;  /* how many blobs were begun or condemned: the tokens of their records */
};

/* ---- blobs.c ---- */
bool gl_blobs_knows(const struct gl_blobs *b, struct gl_blobs_known *k, gl_str hash);
void gl_blobs_remember(const struct gl_blobs *b, struct gl_blobs_known *k, gl_str hash);
void gl_blobs_drop(struct gl_blobs_known *k, gl_str hash);
/* Calls `begin` at once or, if too many blobs are moving, when another has finished. */
void gl_blobs_wait_turn(struct gl_blobs *b, struct gl_blobs_turn *t);
void gl_blobs_end_turn(struct gl_blobs *b, struct gl_blobs_turn *t);
/* The key of a blob's record, or of one of its pieces. */
struct gl_key gl_blobs_key(gl_str hash);
struct gl_key gl_blobs_piece(struct gl_arena *a, gl_str hash, uint32_t number);

/* ---- blobs_fetch.c ---- */
void gl_blobs_fetch_free_all(struct gl_blobs *b);

#endif
