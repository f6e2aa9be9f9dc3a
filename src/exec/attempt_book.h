/* attempt_book.h - what executors without a keeper know of their attempts.
 *
 * Executors that do their work inside this process (noop, modules) keep nothing over its end: their
 * epoch is new with each life. Which attempts there are, how they ended until that is acknowledged,
 * and the floor under each job's token is the same for all of them, and so is most of the port.
 *
 * Nothing is answered or told from inside a call: `later` does it, in the loop's next turn. */
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

/* What an executor knows more of an attempt stands in a struct of its own that begins with this. */
struct gl_book_attempt {
    struct gl_link link; /* the executor's while it runs; then in `ended` until it is told */
    struct gl_book_job *job;
    gl_str id; /* "context/job/attempt" */
    struct gl_attempt_key key;
    uint64_t token;
    bool running;
    struct gl_exec_result result; /* its texts are the book's */
};

/* The first member of an executor, which is one piece of the heap. */
struct gl_book {
    struct gl_exec exec;
    struct gl_loop *loop;
    struct gl_exec_events events;
    size_t attempt_bytes; /* of the executor's own struct */
    /* The rest of the executor; may be NULL. */
    void (*work)(struct gl_book *b); /* in each turn, before anything is told */
    void (*done)(struct gl_book *b); /* it goes: what is not the book's is let go first */
    struct event *later;
    bool scheduled;
    bool announce; /* `up` is due */
    bool closing;
    char epoch[GL_KEEPER_EPOCH_BYTES + 1];
    struct gl_map jobs, attempts;
    struct gl_pool pool;
    struct gl_link answers; /* requests to be answered */
    struct gl_link ended;   /* attempts to be told of */
    struct gl_arena infos;
    void (*closed)(void *owner);
    void *closed_owner;
};

/* Its members down to `done` have been set. `quiet`: `up` is not told. */
int gl_book_open(struct gl_book *b, bool quiet, struct gl_why *reterr_why);
/* The whole executor. Closing does it, so it is for one that could not be opened. */
void gl_book_free(struct gl_book *b);

void gl_book_schedule(struct gl_book *b); /* a turn */
void gl_book_answer(struct gl_book *b, struct gl_exec_req *req, int status);
gl_ms gl_book_now(struct gl_book *b);

struct gl_book_attempt *gl_book_find(struct gl_book *b, const struct gl_attempt_key *key);
/* Compare with the floor of the job, if it is known, and raise it. False: answered as stale. */
bool gl_book_raise_floor(struct gl_book *b, const struct gl_attempt_key *key, uint64_t token,
                         struct gl_exec_req *req);
/* May this attempt begin now? False: the request has been answered; with 0 if it has begun
 * already. */
bool gl_book_may_begin(struct gl_book *b, struct gl_exec_req *req, const struct gl_exec_start *s);
struct gl_book_attempt *gl_book_begin(struct gl_book *b, const struct gl_exec_start *s);
/* How it ended; the texts of the result are copied. */
void gl_book_end(struct gl_book *b, struct gl_book_attempt *a, const struct gl_exec_result *result);
void gl_book_forget(struct gl_book *b, struct gl_book_attempt *a);

/* ---- of the port ---- */
void gl_book_attach(struct gl_exec *port, struct gl_exec_req *req, const struct gl_attempt_key *key,
                    uint64_t token, gl_str epoch);
void gl_book_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token);
void gl_book_list(struct gl_exec *port, struct gl_exec_req *req);
void gl_book_close(struct gl_exec *port, void (*closed)(void *owner), void *owner);

#endif
