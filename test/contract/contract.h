/* contract.h - the contract of port/store.h, which every engine must keep: the kit for its tests. A
 * maker creates stores of one engine: one file that fills a struct contract_maker, and one line in
 * contract.c. Each test of the contract_store_*.c programs runs once per maker, on a store of its
 * own. */
#ifndef GL_TEST_CONTRACT_H
#define GL_TEST_CONTRACT_H

#include "base/check.h"
#include "port/store.h"
#include "support/cmocka_all.h"

struct contract_maker {
    const char *name;
    bool rare; /* runs only if GLIA_CONTRACT_MAKER names it, or with GLIA_CONTRACT_FULL */
    /* Run once per program, before its first test and after its last, for example to start a
     * server. May be NULL. */
    void (*start)(void);
    void (*stop)(void);
    /* A new, empty store; several may be open at once. The maker has made no request of it, so that
     * the kit can listen first. `world` is the maker's own data, passed to every other call. */
    struct gl_store *(*open)(void **ret_world);
    /* Run completions until *flag is true. */
    void (*pump_until)(void *world, const bool *flag);
    /* Close the store and reopen what it left behind. */
    struct gl_store *(*reopen)(void *world);
    /* Close it and its other clients, and remove everything. */
    void (*close)(void *world);
    /* Another client of the same store, with connections of its own; pump_until() serves it, too.
     * NULL: only one client is possible, and the kit uses the same one again. */
    struct gl_store *(*open_other)(void *world);
    /* Advance the store's clock. NULL: it advances by itself, and the kit waits for it. */
    void (*advance)(void *world, gl_ms ms);
    /* Change a byte in the value of a record of "default" without going through the store. */
    void (*damage)(void *world, const char *kind, const char *id);
};

extern const struct contract_maker contract_maker_memory, contract_maker_memory_shared,
    contract_maker_sqlite, contract_maker_redis, contract_maker_sentinel, contract_maker_postgres;

struct contract { /* one client of a store */
    const struct contract_maker *maker;
    void *world;
    struct gl_store *store;
    struct gl_arena arena;   /* lives as long as the test; results are copied here */
    uint64_t tx_id;          /* id of the last transaction */
    gl_str session;          /* "" before contract_session() */
    size_t done_n;           /* completions so far */
    struct contract *others; /* clients of the same store, by contract_other(); a list */
    struct contract *next;
    struct gl_buf words; /* wake-ups received: "context/word " for each */
    size_t met_n, changed_n;
};

/* A pending or completed call; results are copied, so they remain valid after `done`. */
struct contract_call {
    struct gl_store_req req;
    struct contract *c;
    bool done;
    size_t order; /* 1 for the first completion of the test */
    struct gl_tx tx;
};

struct contract_test {
    const char *name;
    void (*run)(void **state); /* *state is a struct contract */
};
#define CONTRACT_TEST(f) ((struct contract_test){.name = #f, .run = f})
/* Run all tests for each maker: `main` of each program. */
int contract_run(const struct contract_test *tests, size_t n);

/* One maker's store without the table, for tests of that maker only. */
void contract_begin(struct contract *c, const struct contract_maker *maker);
void contract_adopt(struct contract *c, const struct contract_maker *maker, void *world,
                    struct gl_store *store);
void contract_end(struct contract *c);
void contract_forget(
    struct contract *c); /* the same without the world, which the test closes itself */
void contract_reopen(struct contract *c);
/* Another client, closed together with `c`. It has no session. If only one client is possible, this
 * is `c` itself. */
struct contract *contract_other(struct contract *c);
/* Run completions until the store's clock has advanced by `ms`. */
void contract_advance(struct contract *c, gl_ms ms);

/* ---- guards and writes ---- */

#define GUARDS(...)                         \
    (const struct gl_guard[]){__VA_ARGS__}, \
        sizeof((const struct gl_guard[]){__VA_ARGS__}) / sizeof(struct gl_guard)
#define WRITES(...)                         \
    (const struct gl_write[]){__VA_ARGS__}, \
        sizeof((const struct gl_write[]){__VA_ARGS__}) / sizeof(struct gl_write)
#define NO_GUARDS NULL, 0
#define NO_WRITES NULL, 0

struct gl_guard at(const char *kind, const char *id, uint64_t rev);
struct gl_guard absent(const char *kind, const char *id);
struct gl_guard present(const char *kind, const char *id);
struct gl_guard not_live(const char *kind, const char *id);
struct gl_guard owned(const char *kind, const char *id, const char *owner, uint64_t token);
struct gl_guard dead(gl_str session);
struct gl_guard alive(gl_str session);

struct gl_write put(const char *kind, const char *id, uint64_t rev, const char *value);
struct gl_write put_live(const char *kind, const char *id, uint64_t rev, const char *value);
struct gl_write put_new(const char *kind, const char *id, uint64_t rev, const char *value);
struct gl_write put_owned(const char *kind, const char *id, uint64_t rev, const char *owner,
                          uint64_t token);
struct gl_write put_bytes(const char *kind, const char *id, gl_str value);
struct gl_write delete_record(const char *kind, const char *id);
struct gl_write into_index(const char *index, int64_t score, const char *id);
struct gl_write out_of_index(const char *index, int64_t score, const char *id);
struct gl_write append(const char *kind, const char *id, int64_t seq, const char *value);
struct gl_write trim(const char *kind, const char *id, int64_t below);

/* ---- calls, in the context "default" ---- */

/* Start a transaction with the next id; guards and writes are copied, their texts are not. */
struct contract_call *contract_start(struct contract *c, const struct gl_guard *guards,
                                     size_t guards_n, const struct gl_write *writes,
                                     size_t writes_n);
struct contract_call *contract_start_in(struct contract *c, const char *context,
                                        const struct gl_guard *guards, size_t guards_n,
                                        const struct gl_write *writes, size_t writes_n);
void contract_wait(struct contract_call *call);
/* Start the transaction, wait, and return its status. */
int contract_commit(struct contract *c, const struct gl_guard *guards, size_t guards_n,
                    const struct gl_write *writes, size_t writes_n);
int contract_commit_in(struct contract *c, const char *context, const struct gl_guard *guards,
                       size_t guards_n, const struct gl_write *writes, size_t writes_n);
/* A new call, for operations not covered here: fill in its arguments, then contract_wait(). */
struct contract_call *contract_call_new(struct contract *c);

gl_str contract_session(struct contract *c,
                        const char *node); /* opens a session and uses it from now on */
/* The same, with a deadline and a published text. */
gl_str contract_session_for(struct contract *c, const char *node, gl_ms ttl_ms, const char *about);
int contract_renew(struct contract *c, gl_str session);
int contract_renew_for(struct contract *c, gl_str session, gl_ms ttl_ms, const char *about);
int contract_dead(struct contract *c, gl_str session, bool *ret);
int contract_declare(struct contract *c, gl_str session, bool *ret);
int contract_leave(struct contract *c, gl_str session);
int contract_resolve(struct contract *c, gl_str session, uint64_t tx_id);

/* Reads that must succeed. */
struct gl_record contract_get(struct contract *c, const char *kind, const char *id);
struct gl_record contract_get_in(struct contract *c, const char *context, const char *kind,
                                 const char *id);
const struct gl_store_req *contract_range(struct contract *c, const struct gl_range *r);
const struct gl_store_req *contract_list(struct contract *c, const struct gl_listing *l);
const struct gl_store_req *contract_log(struct contract *c, const char *kind, const char *id,
                                        int64_t from, size_t limit);
uint64_t contract_measure(struct contract *c);
const struct gl_store_req *contract_sessions(struct contract *c);
gl_ms contract_time(struct contract *c);
const struct gl_store_req *contract_export(struct contract *c, gl_str after, size_t limit);

/* ---- checks ---- */

void check_value(struct contract *c, const char *kind, const char *id, const char *value);
void check_absent(struct contract *c, const char *kind, const char *id);
/* The ids (or "score:id", or "seq:value") of a result, separated by spaces. */
void check_ids(const struct gl_store_req *req, const char *want);
void check_entries(const struct gl_store_req *req, const char *want);
void check_log(const struct gl_store_req *req, const char *want);

#endif
