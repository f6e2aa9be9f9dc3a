/* chain.h - calls of ports that follow one another, and the memory that lives as long as they do.
 *
 * A call (struct gl_chain_call) is embedded by whoever makes it. While it is under way it counts in
 * node->outstanding, so that a node that stops waits for it. When the answer is there the call is
 * over: it is counted down, the clock is read, and `next`, which was named when the call was made,
 * goes on with the answer; at the end of that, or of the call's chain, the node is armed anew.
 * `next` is the port's own type of function, and finds its owner in the request.
 *
 * A chain (struct gl_chain) is a piece of work of several calls, one at a time: the job that is
 * loaded, the file that is fetched. It stands first in its owner's struct, and is the owner:
 *
 *     struct load { struct gl_chain chain; ... };
 *     static const struct gl_chain_kind loads = {.bytes = sizeof(struct load), ...};
 *
 *     struct load *l = gl_chain_new(n, &loads, context);
 *     gl_chain_get(&l->chain, GL_S("job"), id, on_job);       on_job() makes the next call, ...
 *     gl_chain_end(&l->chain);                                ... or ends the chain
 *
 * What a chain needs until its end lies in its arena, and goes with it. Between two calls it may
 * wait for something else, another chain perhaps; it is not counted then.
 *
 * The kind's `failed` hears of calls that failed; or, if the kind says `ends_at_stop`, of answers
 * that come when the node is stopping. It ends the chain.
 *
 * gl_chain_free_all() is for a node that is freed, whether it was stopped or has crashed: chains go
 * as they are, with calls under way. The ports must not call back any more; nobody is told. */
#ifndef GL_NODE_CHAIN_H
#define GL_NODE_CHAIN_H

#include "base/arena.h"
#include "base/list.h"
#include "port/blob.h"
#include "port/exec.h"
#include "port/store.h"

struct gl_node;

struct gl_chain_call {
    struct gl_node *node;
    const struct gl_chain_kind *kind; /* of its chain; NULL: it belongs to none */
    union {                           /* who goes on with the answer */
        gl_store_done *store;
        gl_blob_done *blob;
        gl_exec_done *exec;
    } next;
    bool is_under_way;
    union {
        struct gl_store_req store;
        struct gl_blob_req blob;
        struct gl_exec_req exec;
    } req;
};

/* To be given to the port. What an earlier call brought is gone. */
struct gl_store_req *gl_chain_call_store(struct gl_chain_call *c, struct gl_node *n,
                                         gl_store_done *next, void *owner);
struct gl_exec_req *gl_chain_call_exec(struct gl_chain_call *c, struct gl_node *n,
                                       gl_exec_done *next, void *owner);

struct gl_chain_kind {
    size_t bytes; /* of the struct whose first member is the chain */
    /* Called instead of `next`. NULL: all answers go to `next`. */
    void (*failed)(void *chain, int code, const char *why);
    bool ends_at_stop; /* `failed` is called when the node stops, and for nothing else */
    /* What it has besides its arena is given back. NULL: nothing. */
    void (*done)(void *chain);
};

struct gl_chain {
    struct gl_link link; /* in node->chains */
    struct gl_node *node;
    struct gl_arena arena;
    gl_str context;
    struct gl_chain_call call;
    union { /* borrowed by the call under way */
        struct gl_key key;
        struct gl_listing listing;
        struct gl_range range;
        struct gl_tx tx;
    } given;
};

void *gl_chain_new(struct gl_node *n, const struct gl_chain_kind *kind, gl_str context);
/* No call is under way. The last thing its owner does: the node may stop. */
void gl_chain_end(struct gl_chain *c);
/* The same where an answer is not what ends it: whoever called us arms the node. */
void gl_chain_drop(struct gl_chain *c);
void gl_chain_free_all(struct gl_node *n);
/* The next one of this kind, in the order in which they were made; `after` NULL: the first. */
void *gl_chain_next(struct gl_node *n, const struct gl_chain_kind *kind,
                    const struct gl_chain *after);

/* Of the store, in the chain's context. Texts, keys, guards and writes are borrowed until the
 * answer. */
void gl_chain_get(struct gl_chain *c, gl_str kind, gl_str id, gl_store_done *next);
void gl_chain_get_all(struct gl_chain *c, const struct gl_key *keys, size_t n, gl_store_done *next);
void gl_chain_list(struct gl_chain *c, struct gl_listing what, gl_store_done *next);
void gl_chain_range(struct gl_chain *c, struct gl_range what, gl_store_done *next);
/* One write, if one guard holds. It carries no number: it may be repeated. */
void gl_chain_commit(struct gl_chain *c, const struct gl_guard *guard, const struct gl_write *write,
                     gl_store_done *next);
/* Any other call: the request for it. */
struct gl_store_req *gl_chain_store(struct gl_chain *c, gl_store_done *next);
struct gl_exec_req *gl_chain_exec(struct gl_chain *c, gl_exec_done *next);

/* Of the folder's blobs (port/blob.h). */
void gl_chain_look(struct gl_chain *c, gl_str hash, bool check, gl_blob_done *next);
void gl_chain_read(struct gl_chain *c, gl_str hash, uint64_t at, void *buffer, size_t bytes,
                   gl_blob_done *next);
void gl_chain_write(struct gl_chain *c, gl_str hash, uint64_t at, gl_str piece, gl_blob_done *next);
void gl_chain_seal(struct gl_chain *c, gl_str hash, gl_blob_done *next);

#endif
