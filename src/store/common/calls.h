/* calls.h - request handling shared by all engines: it accepts a request from the port, hands it to
 * the engine as a struct gl_call, and completes it.
 *
 * An engine's store struct begins with a struct gl_calls, its per-request struct with a struct
 * gl_call. Order of calls:
 *     gl_calls_init()       first
 *     engine->begin         for each request, from inside the port's call
 *     gl_calls_complete()   once per request, later, never from inside `begin`
 *     engine->close         no request that could be served follows
 *     gl_calls_closed()     by the engine, when no call is pending; frees the store */
#ifndef GL_STORE_CALLS_H
#define GL_STORE_CALLS_H

#include "base/id.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/rng.h"
#include "os/loop.h"
#include "port/store.h"

enum gl_call_type {
#define CALL(NAME, name, context, arguments, parameters) GL_CALL_##NAME,
#include "store/common/calls.def"
#undef CALL
    GL_CALLS_N,
};

struct gl_call {
    struct gl_link link; /* in one of the engine's lists */
    struct gl_store_req *req;
    enum gl_call_type type;
    gl_str context;
    union {
        const struct gl_tx *tx;
        const struct gl_session_options *options;
        struct {
            gl_str id, about;
            gl_ms ttl_ms;
            bool declare;
        } session;
        struct {
            gl_str session;
            uint64_t tx_id;
        } resolve;
        struct {
            const struct gl_key *keys;
            size_t n;
        } get;
        const struct gl_range *range;
        const struct gl_listing *listing;
        struct {
            gl_str kind, id;
            int64_t from;
            size_t limit;
        } log;
        struct {
            gl_str after;
            size_t limit, table; /* table: see sql.h */
        } export;
    };
};

struct gl_calls;

struct gl_calls_engine {
    const char *name;
    bool shared;
    size_t call_bytes; /* size of the struct that begins with a struct gl_call */
    void (*begin)(struct gl_calls *s, struct gl_call *call);
    void (*close)(struct gl_calls *s); /* called with `closing` set */
    void (*free)(struct gl_calls *s);
};

struct gl_calls {
    struct gl_store port;
    struct gl_store_ops ops;
    const struct gl_calls_engine *engine;
    struct gl_loop *loop;
    struct gl_rng rng;
    struct gl_pool pool; /* of struct gl_call */
    size_t pending_n;    /* calls not yet completed */
    struct gl_store_events events;
    bool closing;
    void (*closed)(void *owner);
    void *closed_owner;
};

void gl_calls_init(struct gl_calls *s, const struct gl_calls_engine *engine, struct gl_loop *loop);
void gl_calls_done(struct gl_calls *s);
/* Free the call and run `done`, which may issue the next request. */
void gl_calls_complete(struct gl_calls *s, struct gl_call *call);
/* Free the store, then run `closed`. */
void gl_calls_closed(struct gl_calls *s);

gl_ms gl_calls_now(const struct gl_calls *s);
/* A new random identity, for a store that is being created. */
struct gl_ulid gl_calls_new_id(const struct gl_calls *s);
/* Report events to the listener, if there is one. */
void gl_calls_identified(struct gl_calls *s, gl_str identity);
void gl_calls_changed(struct gl_calls *s, const char *why);
void gl_calls_woken(struct gl_calls *s, gl_str context, gl_str word);

/* For synchronous callers with a loop of their own: run the loop once; close the store and wait
 * until it is closed. */
void gl_calls_run_loop_once(struct gl_calls *s);
void gl_calls_close(struct gl_calls *s);

/* True if the call cannot be served because the store is closing or the context name is invalid;
 * sets the status. */
bool gl_call_is_refused(const struct gl_calls *s, struct gl_call *call);
/* GL_E_LIMIT if a record exceeds GL_RECORD_BYTES_MAX, or their sum `bytes_max`. */
int gl_call_check_sizes(const struct gl_tx *tx, size_t bytes_max, struct gl_why *reterr_why);
/* Set the status to GL_E_CONFLICT because guard `i` did not hold. */
void gl_call_conflict(struct gl_call *call, size_t i);
/* The checksum (port/checksum.h) of the record that a PUT creates. */
uint32_t gl_call_checksum(const struct gl_write *w);

/* ---- lists of calls ---- */

static inline struct gl_call *gl_call_first(struct gl_link *list) /* NULL if empty */
{
    struct gl_link *l = gl_list_first(list);
    return l != NULL ? GL_CONTAINER(l, struct gl_call, link) : NULL;
}

static inline struct gl_call *gl_call_next(const struct gl_call *call)
{
    return GL_CONTAINER(call->link.next, struct gl_call, link);
}

static inline struct gl_call *gl_call_pop(struct gl_link *list) /* NULL if empty */
{
    struct gl_call *call = gl_call_first(list);
    if (call != NULL) {
        gl_list_remove(&call->link);
    }
    return call;
}

#endif
