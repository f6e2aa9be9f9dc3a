/* attempt_book.h - the attempts of executors that work inside this process (noop, modules).
 *
 * Such executors keep nothing across restarts: their epoch is new each time. The list of attempts,
 * their unacknowledged results, the token floor of each job and most of the port are the same for
 * all of them, and live here.
 *
 * Nothing is answered or reported from inside a call: `later` does it in the loop's next turn.
 *
 * Call order: gl_book_open(); per attempt gl_book_may_begin(), gl_book_begin(), gl_book_end(), and
 * gl_book_ack() or gl_book_forget(); gl_book_close(). */
#ifndef GL_EXEC_ATTEMPT_BOOK_H
#define GL_EXEC_ATTEMPT_BOOK_H

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "os/loop.h"
#include "port/exec.h"
#include "port/keeper_protocol.h"

struct event;
struct gl_book_job;

/* An executor embeds this as the first member of its own attempt struct. */
struct gl_book_attempt {
    struct gl_link link; /* the executor's while it runs; then in `ended` until reported */
    struct gl_book_job *job;
    gl_str id; /* "context/job/attempt" */
    struct gl_attempt_key key;
    uint64_t token;
    bool running;
    struct gl_exec_result result; /* its texts are owned by the book */
};

/* The first member of an executor, which is one heap allocation. */
struct gl_book {
    struct gl_exec exec;
    struct gl_loop *loop;
    struct gl_exec_events events;
    size_t attempt_bytes; /* size of the executor's own struct */
    /* Hooks of the executor; may be NULL. */
    void (*work)(struct gl_book *b); /* in each turn, before anything is reported */
    void (*done)(struct gl_book *b); /* before the book is freed: release what the executor owns */
    struct event *later;
    bool scheduled;
    bool announce; /* `up` must be called */
    bool closing;
    char epoch[GL_KEEPER_EPOCH_BYTES + 1];
    struct gl_map jobs, attempts;
    struct gl_pool pool;
    struct gl_link answers; /* requests to answer */
    struct gl_link ended;   /* attempts whose end must be reported */
    struct gl_arena infos;
    void (*closed)(void *owner);
    void *closed_owner;
};

/* The caller has set the members down to `done`. `quiet`: do not call `up`. */
int gl_book_open(struct gl_book *b, bool quiet, struct gl_why *reterr_why);
/* Free the whole executor. Closing does this; call it only if opening failed. */
void gl_book_free(struct gl_book *b);

void gl_book_schedule(struct gl_book *b); /* a turn of the loop */
void gl_book_answer(struct gl_book *b, struct gl_exec_req *req, int status);
gl_ms gl_book_now(struct gl_book *b);

struct gl_book_attempt *gl_book_find(struct gl_book *b, const struct gl_attempt_key *key);
/* Compare with the job's floor, if it is known, and raise it. False: answered as stale. */
bool gl_book_raise_floor(struct gl_book *b, const struct gl_attempt_key *key, uint64_t token,
                         struct gl_exec_req *req);
/* May this attempt begin now? False: the request was answered, with 0 if the attempt is known
 * already. */
bool gl_book_may_begin(struct gl_book *b, struct gl_exec_req *req, const struct gl_exec_start *s);
struct gl_book_attempt *gl_book_begin(struct gl_book *b, const struct gl_exec_start *s);
/* Record its result; the texts are copied. */
void gl_book_end(struct gl_book *b, struct gl_book_attempt *a, const struct gl_exec_result *result);
void gl_book_forget(struct gl_book *b, struct gl_book_attempt *a);

/* ---- of the port ---- */
void gl_book_attach(struct gl_exec *port, struct gl_exec_req *req, const struct gl_attempt_key *key,
                    uint64_t token, gl_str epoch);
void gl_book_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token);
void gl_book_list(struct gl_exec *port, struct gl_exec_req *req);
void gl_book_close(struct gl_exec *port, void (*closed)(void *owner), void *owner);

#endif
