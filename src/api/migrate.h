/* migrate.h - everything of a context, from one store into another, whatever the engines.
 *
 * Nobody may be using either of them: a session that lives is a reason to refuse, at the beginning
 * and at the end. The target must be empty, or hold what an earlier try of this very migration has
 * brought: how far it is stands there as a record (kind "migration"), which each transaction moves
 * on, so that a try that was cut short is continued, and nothing comes twice.
 *
 * Records that are owned arrive released: the target has never heard of the sessions that owned
 * them, and would never call them dead. Leases stay behind.
 *
 * At the end both are read once more, and compared by number and by a hash over all of it that does
 * not depend on the order. Pure: it makes no call but to the two stores. */
#ifndef GL_API_MIGRATE_H
#define GL_API_MIGRATE_H

#include "base/sha256.h"
#include "port/store.h"

/* The name its session goes by. */
#define GL_MIGRATE_NODE "glia-migrate"

/* Counted and summed up: SHA-256 of each write, added as four numbers. */
struct gl_migrate_sum {
    uint64_t writes_n;
    uint64_t words[4];
};

struct gl_migrate {
    /* Set by the caller. */
    struct gl_store *from, *to;
    gl_str context;
    gl_str source; /* what the target remembers of where it came from */
    gl_str nonce;  /* 16 random characters, for the session */
    size_t page;   /* writes in one page; 0: 200. A try is continued with the same */
    /* Called once, not from inside the call; m->code and m->why tell. */
    void (*done)(struct gl_migrate *m);
    void (*on_progress)(struct gl_migrate *m); /* after each transaction; may be NULL */
    void *owner;

    /* The answer. */
    int code;
    struct gl_why why;
    struct gl_migrate_sum sum; /* what has been copied so far */
    uint64_t jobs_n;           /* of them, by this try */
    bool is_continued;
    uint64_t newest; /* the highest incarnation of any session of the source */

    /* Its own. */
    struct gl_arena arena, page_arena, tx_arena;
    struct gl_store_req req;
    gl_store_done *next_done; /* who goes on with the answer */
    struct gl_key key;
    struct gl_session_options wish;
    gl_str session;
    uint64_t tx_id, rev;
    struct gl_tx tx;
    struct gl_guard guards[2];
    gl_str after, next; /* of the page at hand, and of the one behind it */
    struct gl_write *writes;
    size_t writes_n, at; /* of the page; those before `at` have arrived */
    size_t chunk;        /* under way */
    struct gl_migrate_sum chunk_sum;
    struct gl_migrate_sum seen; /* by the reader */
    struct gl_store *reading;
    unsigned resolves_n, commits;
    bool is_at_end;
};

void gl_migrate_run(struct gl_migrate *m);
/* When it is done. */
void gl_migrate_done(struct gl_migrate *m);

#endif
