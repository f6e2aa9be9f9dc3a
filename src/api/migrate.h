/* migrate.h - copies all records of a context from one store to another, whatever their engines.
 *
 * Neither store may be in use: the migration fails if it finds a live session, in either store at
 * the beginning, and in the source again at the end. The target must be empty or hold an unfinished
 * run of the same migration. Progress is a record in the target (kind "migration") that every
 * transaction advances, so an interrupted run can be continued and nothing is copied twice.
 *
 * Owned records arrive without an owner: the target has never seen the sessions that owned them and
 * would never declare them dead. Leases are not copied.
 *
 * At the end both stores are read again and compared, by number of entries and by a hash that does
 * not depend on their order.
 *
 * Pure: the only calls are those of the two stores. Order of calls: fill in the first part of the
 * struct, gl_migrate_run(), wait for `done`, gl_migrate_done(). */
#ifndef GL_API_MIGRATE_H
#define GL_API_MIGRATE_H

#include "base/sha256.h"
#include "port/store.h"

/* The node name of the migration's session. */
#define GL_MIGRATE_NODE "glia-migrate"

/* An order-independent checksum: the number of writes, and the SHA-256 of each added up as four
 * numbers. */
struct gl_migrate_sum {
    uint64_t writes_n;
    uint64_t words[4];
};

struct gl_migrate {
    /* Set by the caller. */
    struct gl_store *from, *to;
    gl_str context;
    gl_str source; /* the source's URL, as remembered in the target */
    gl_str nonce;  /* 16 random characters, for the session */
    size_t page;   /* writes per page; 0: 200. A continued run must use the same */
    /* Called once, never from inside gl_migrate_run(); the result is in m->code and m->why. */
    void (*done)(struct gl_migrate *m);
    void (*on_progress)(struct gl_migrate *m); /* after each transaction; may be NULL */
    void *owner;

    /* The result. */
    int code;
    struct gl_why why;
    struct gl_migrate_sum sum; /* what has been copied so far */
    uint64_t jobs_n;           /* jobs copied by this run */
    bool is_continued;
    uint64_t newest; /* the highest incarnation of any session of the source */

    /* Private. */
    struct gl_arena arena, page_arena, tx_arena;
    struct gl_store_req req;
    gl_store_done *next_done; /* called with the answer */
    struct gl_key key;
    struct gl_session_options wish;
    gl_str session;
    uint64_t tx_id, rev;
    struct gl_tx tx;
    struct gl_guard guards[2];
    gl_str after, next; /* positions of this page, and of the next */
    struct gl_write *writes;
    size_t writes_n, at; /* of the page; those before `at` have been copied */
    size_t chunk;        /* in flight */
    struct gl_migrate_sum chunk_sum;
    struct gl_migrate_sum seen; /* sum of what verification has read */
    struct gl_store *reading;
    unsigned resolves_n, commits;
    bool is_at_end;
};

void gl_migrate_run(struct gl_migrate *m);
/* Frees its memory, after `done`. */
void gl_migrate_done(struct gl_migrate *m);

#endif
