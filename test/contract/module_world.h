/* module_world.h - a loop, a folder with modules, their executor and messages for them: shared by
 * the tests of native modules. */
#ifndef GL_TEST_MODULE_WORLD_H
#define GL_TEST_MODULE_WORLD_H

#include "base/map.h"
#include "os/loop.h"
#include "port/exec.h"
#include "support/cmocka_all.h"
#include "support/folder.h"

enum { MODULE_ENDS_MAX = 128 };

struct module_end {
    char attempt[64];
    struct gl_exec_result result;
    char output[2048], error[GL_WHY_BYTES];
};

struct module_world {
    struct test_folder folder; /* with the modules of the tests and the examples */
    struct gl_loop *loop;
    struct gl_exec *x;
    struct gl_arena arena;
    const char *folders; /* instead of `folder`; NULL */
    char epoch[64];
    bool is_closed, acks; /* acks: an end is acknowledged, and only counted */
    struct module_end ends[MODULE_ENDS_MAX];
    size_t ends_n;
};

/* One message. Fields that are 0 or NULL have their defaults. */
struct module_message {
    const char *module, *body; /* {} */
    const char *attempt;
    const char *config, *state, *agent;
    const char *input; /* instead of all of these */
    gl_ms timeout_ms, grace_ms, start_by;
    uint64_t token; /* 1 */
};

struct module_question {
    struct gl_exec_req req;
    struct module_world *w;
    bool is_answered;
    size_t infos_n;
    char output[2048];
};

/* `trusted`: names with commas; "" : none. */
void module_world_open(struct module_world *w, const char *trusted);
void module_world_close(struct module_world *w);
void module_exec_start(struct module_world *w, const char *trusted); /* the executor only */
void module_exec_stop(struct module_world *w);

/* Run the loop until something happens. */
void module_wait(struct module_world *w);
void module_ask(struct module_world *w, struct module_question *q, struct module_message options);
void module_wait_answer(struct module_question *q);
/* Send a request and wait for the answer: returns its status. */
int module_start(struct module_world *w, struct module_message options);
struct module_end *module_end_of(struct module_world *w, const char *attempt);
/* Start it and wait for its end. */
struct module_end *module_run(struct module_world *w, struct module_message options);
struct gl_attempt_key module_key(const char *attempt);
void module_prepare(struct module_world *w, struct module_question *q);

#endif
