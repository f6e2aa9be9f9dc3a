/* core_rig.h - the core driven by hand, over a store that is a list of records and outlives it, and
 * an executor that is the test itself: what is started runs until the test says that it has ended.
 *
 * Every transaction commits at once, unless the test wants it refused; time moves when the test
 * says so. Flows are written in words: "a c=db/1; b r=api/1000 p=2". */
#ifndef GL_TEST_CORE_RIG_H
#define GL_TEST_CORE_RIG_H

#include "base/map.h"
#include "core/core.h"

enum { RIG_RUNS_MAX = 16384 };

struct rig_row { /* a record, or an entry of the index */
    gl_str kind, id, value, owner;
    uint64_t rev, token;
    int64_t score;
    bool live;
};

struct rig_run { /* an attempt that was started */
    char job[32], attempt[64];
    uint64_t token;
    gl_ms at;
    bool ended;
};

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    struct gl_arena arena;
    gl_ms now;
    struct gl_core_pool pools[2];
    uint32_t hot_max;
    unsigned life;
    struct rig_row *rows;
    size_t rows_n, rows_cap;
    struct gl_map index; /* "kind/id" -> number of its row + 1 */
    struct rig_run *runs;
    size_t runs_n, taken_n;
    size_t ended_n, loads_n, stopped_n;
    uint64_t refused_op;
    bool refuse_next, deaf; /* refuse the next commit; keep loads to ourselves */
    enum gl_exec_state attached;
    uint32_t jobs_n;
    char job[32]; /* the latest */
};

/* A node with the pools "default" and "gpu". */
struct rig *rig_new(uint32_t slots, uint32_t gpu_slots);
void rig_free(struct rig *r);
/* A node begins, over what the last one has left behind; `restart` ends the last one before it. */
void rig_begin(struct rig *r);
void rig_restart(struct rig *r);

void rig_feed(struct rig *r, struct gl_event ev);
void rig_settle(struct rig *r);
void rig_at(struct rig *r, gl_ms now); /* it is later now */

/* Steps without parents, each with its wishes: "c=KEY/MAX r=KEY/MS p=PRIORITY pool=NAME n=SLOTS".
 */
void rig_submit(struct rig *r, const char *text);
void rig_command(struct rig *r, const char *job, enum gl_command verb);
void rig_finish(struct rig *r, size_t run); /* this attempt ends well */
/* The steps started since the last call, in order: "a b". */
const char *rig_started(struct rig *r);
const char *rig_why(struct rig *r, const char *job, uint32_t step); /* "" : it waits for nothing */

/* The record of that name, made if there is none. */
struct rig_row *rig_row(struct rig *r, gl_str kind, gl_str id);
void rig_load(struct rig *r, gl_str job); /* the answer to a LOAD */

#endif
