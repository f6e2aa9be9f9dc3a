/* chain.h - sequences of calls to ports, and the memory they share.
 *
 * A call (struct gl_chain_call) is embedded by its maker. While it is in flight it counts in
 * node->outstanding, so that a stopping node waits for it. When the answer arrives the call is
 * finished: it is uncounted, the clock is read, and `next`, named when the call was made, gets the
 * answer. After that, or at the end of the call's chain, the node is rearmed. `next` has the port's
 * own function type and finds its owner in the request.
 *
 * A chain (struct gl_chain) is a task of several calls, one at a time: loading a job, fetching a
 * file. It is the first member of its owner's struct, so a pointer to it is one to its owner:
 *
 *     struct load { struct gl_chain chain; ... };
 *     static const struct gl_chain_kind loads = {.bytes = sizeof(struct load), ...};
 *
 *     struct load *l = gl_chain_new(n, &loads, context);
 *     gl_chain_get(&l->chain, GL_S("job"), id, on_job);       on_job() makes the next call, ...
 *     gl_chain_end(&l->chain);                                ... or ends the chain
 *
 * Whatever a chain needs until its end lives in its arena and is freed with it. Between two calls a
 * chain may wait for something else, such as another chain; it is not counted then.
 *
 * The kind's `failed` gets the calls that failed or, if the kind sets `ends_at_stop`, the answers
 * that arrive while the node is stopping. It must end the chain.
 *
 * gl_chain_free_all() is for a node that is being freed, whether it was stopped or has crashed:
 * chains are freed as they are, even with calls in flight. The ports must not call back any more,
 * and no callback runs. */
#ifndef GL_NODE_CHAIN_H
#define GL_NODE_CHAIN_H

#include "base/arena.h"
#include "base/list.h"
#include "port/blob.h"
#include "port/exec.h"
#include "port/store.h"
#include "port/work.h"

struct gl_node;

struct gl_chain_call {
    struct gl_node *node;
    const struct gl_chain_kind *kind; /* of its chain; NULL: it belongs to no chain */
    union {                           /* called with the answer */
        gl_store_done *store;
        gl_blob_done *blob;
        gl_exec_done *exec;
        void (*work)(void *chain);
    } next;
    bool is_under_way;
    union {
        struct gl_store_req store;
        struct gl_blob_req blob;
        struct gl_exec_req exec;
        struct gl_chain_work {
            struct gl_work_task task;
            void (*run)(void *chain);
        } work;
    } req;
};

/* Returns the request to give to the port. The results of an earlier call are gone. */
struct gl_store_req *gl_chain_call_store(struct gl_chain_call *c, struct gl_node *n,
                                         gl_store_done *next, void *owner);
struct gl_exec_req *gl_chain_call_exec(struct gl_chain_call *c, struct gl_node *n,
                                       gl_exec_done *next, void *owner);

struct gl_chain_kind {
    size_t bytes; /* size of the struct whose first member is the chain */
    /* Called instead of `next`. NULL: all answers go to `next`. */
    void (*failed)(void *chain, int code, const char *why);
    bool ends_at_stop; /* `failed` is called only when the node is stopping */
    /* Frees what the chain owns outside its arena. NULL: nothing. */
    void (*done)(void *chain);
};

struct gl_chain {
    struct gl_link link; /* in node->chains */
    struct gl_node *node;
    struct gl_arena arena;
    gl_str context;
    struct gl_chain_call call;
    union { /* borrowed by the call in flight */
        struct gl_key key;
        struct gl_listing listing;
        struct gl_range range;
        struct gl_tx tx;
    } given;
};

void *gl_chain_new(struct gl_node *n, const struct gl_chain_kind *kind, gl_str context);
/* No call may be in flight. Must be the last thing its owner does, because the node may stop here.
 */
void gl_chain_end(struct gl_chain *c);
/* The same, when the chain does not end in an answer: our caller rearms the node. */
void gl_chain_drop(struct gl_chain *c);
void gl_chain_free_all(struct gl_node *n);
/* The next chain of this kind, in order of creation; `after` NULL: the first. */
void *gl_chain_next(struct gl_node *n, const struct gl_chain_kind *kind,
                    const struct gl_chain *after);

/* Calls of the store, in the chain's context. Texts, keys, guards and writes are borrowed until the
 * answer. */
void gl_chain_get(struct gl_chain *c, gl_str kind, gl_str id, gl_store_done *next);
void gl_chain_get_all(struct gl_chain *c, const struct gl_key *keys, size_t n, gl_store_done *next);
void gl_chain_list(struct gl_chain *c, struct gl_listing what, gl_store_done *next);
void gl_chain_range(struct gl_chain *c, struct gl_range what, gl_store_done *next);
/* One write under one guard. The transaction has no id, so it must be safe to repeat. */
void gl_chain_commit(struct gl_chain *c, const struct gl_guard *guard, const struct gl_write *write,
                     gl_store_done *next);
/* The request for any other call. */
struct gl_store_req *gl_chain_store(struct gl_chain *c, gl_store_done *next);
struct gl_exec_req *gl_chain_exec(struct gl_chain *c, gl_exec_done *next);

/* Runs `run` on the thread of `w`, then `next` on the control thread. `run` uses only memory of the
 * chain. */
void gl_chain_work(struct gl_chain *c, struct gl_work *w, void (*run)(void *chain),
                   void (*next)(void *chain));

/* Calls on the folder's blobs (port/blob.h). */
void gl_chain_look(struct gl_chain *c, gl_str hash, bool check, gl_blob_done *next);
void gl_chain_read(struct gl_chain *c, gl_str hash, uint64_t at, void *buffer, size_t bytes,
                   gl_blob_done *next);
void gl_chain_write(struct gl_chain *c, gl_str hash, uint64_t at, gl_str piece, gl_blob_done *next);
void gl_chain_seal(struct gl_chain *c, gl_str hash, gl_blob_done *next);

#endif
