/* exec_world.h - a loop, a folder, an executor and the calls to it: shared by the contract tests of
 * port/exec.h.
 *
 * Every call checks that no callback comes from inside it. */
#ifndef GL_TEST_EXEC_WORLD_H
#define GL_TEST_EXEC_WORLD_H

#include <sys/types.h>

#include "os/loop.h"
#include "port/exec.h"
#include "support/cmocka_all.h"
#include "support/folder.h"

enum { ENDS_MAX = 64, LINES_MAX = 20000, PATIENCE_S = 120 };

/* How to make each executor do the same. */
struct exec_maker {
    const char *name;
    const char *driver;
    bool has_keeper;
    const char *ok[4], *exit3[4], *output[4], *hold[4];
};

extern const struct exec_maker exec_keeper, exec_noop, exec_mux;

struct reported_end {
    char attempt[64];
    uint64_t token;
    struct gl_exec_result result;
    const char *output; /* lives in the world's arena */
    char error[GL_WHY_BYTES];
};

struct worker_line {
    char attempt[64];
    const char *text;
};

struct exec_world {
    const struct exec_maker *maker;
    struct test_folder folder;
    const char *data_dir;
    struct gl_loop *loop;
    struct gl_exec *x;
    bool has_disk; /* the folder is a mount of its own */
    bool waiting;
    bool inside; /* a call of the port is in progress */

    char epoch[64];
    int ups, downs;
    char down_why[GL_WHY_BYTES];
    struct reported_end ends[ENDS_MAX];
    size_t ends_n;
    int beacons;
    struct worker_line *lines; /* LINES_MAX of them */
    size_t lines_n;
    struct gl_arena arena;
    bool closed;
    uint64_t incarnation;
};

struct exec_question {
    struct gl_exec_req req;
    struct exec_world *w;
    bool answered;
    char output[256];
    size_t infos_n;
    struct reported_end first_info;
};

struct exec_options {
    const char *const *argv;
    const char *attempt;
    uint64_t token;
    gl_ms start_by;
    gl_ms beacon_ms;
    gl_ms timeout_ms;
    const char *driver;
    const char *epoch;
    const char *secret; /* one, "NAME=env:VARIABLE"; NULL: none */

    /* A worker. */
    bool is_worker;
    uint32_t stdout_max;
    const char *cwd, *make_folder;
    const char *const *env; /* NULL-terminated */
    const struct gl_exec_file *files;
    size_t files_n;
};

/* Setup and teardown for cmocka. */
int exec_world_open(void **state, const struct exec_maker *maker);
int exec_world_close(void **state);
/* The same with a data folder on a disk of this many MiB (a mount: root only). */
int exec_world_open_small(void **state, const struct exec_maker *maker, unsigned mib);

/* Another executor on the same folder, for the next incarnation; waits until it is up. */
void exec_open(struct exec_world *w);
/* The same with the keeper, without waiting. */
struct gl_exec *exec_open_keeper(struct exec_world *w);
void exec_close(struct exec_world *w);
pid_t exec_keeper_pid(struct exec_world *w);
/* Close the executor, stop the keeper and remove the folder. */
void exec_end_keeper(struct exec_world *w);

/* Run the loop until something happens. */
void exec_wait(struct exec_world *w);

void exec_prepare(struct exec_world *w, struct exec_question *q);
void exec_wait_answer(struct exec_question *q);
struct gl_attempt_key exec_key(const char *attempt);
void exec_ask_start(struct exec_world *w, struct exec_question *q, struct exec_options options);
int exec_start(struct exec_world *w, struct exec_options options);
void exec_attach(struct exec_world *w, struct exec_question *q, const char *attempt, uint64_t token,
                 const char *epoch);
int exec_stop(struct exec_world *w, const char *attempt, uint64_t token);
void exec_ack(struct exec_world *w, const char *attempt, uint64_t token);
size_t exec_list(struct exec_world *w);
struct reported_end *exec_wait_end(struct exec_world *w, const char *attempt);

#endif
