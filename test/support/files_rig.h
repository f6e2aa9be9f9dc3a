/* files_rig.h - several machines on one simulated store, each with a folder of files: production
 * nodes over simulated ports, and flows whose steps need files.
 *
 * After every step of the world the rig checks what must always hold: a job in the store has its
 * flow there, a flow that can be relied on has its files there, and no step starts on a machine
 * that has not got its files. */
#ifndef GL_TEST_FILES_RIG_H
#define GL_TEST_FILES_RIG_H

#include "sim/sim_blobs.h"
#include "sim/sim_node.h"

enum { FILES_MACHINES = 3, FILES_CONTENTS = 6, FILES_JOBS = 128 };

struct files_machine {
    struct files_rig *rig;
    struct sim_keeper keeper;
    struct sim_blobs blobs;
    struct sim_node *node; /* NULL: none runs */
    uint32_t incarnation;
};

struct files_job {              /* a submission */
    char id[GL_ULID_BYTES + 1]; /* "" : not acknowledged */
    char run_id[32];
    int code; /* 1: no answer yet; GL_E_UNAVAILABLE also if its node died */
    struct gl_why why;
};

struct files_rig {
    struct sim_world world;
    struct sim_disk disk;
    struct gl_keep keep;
    struct files_machine machines[FILES_MACHINES];
    gl_ms wall;
    gl_str contents[FILES_CONTENTS]; /* "file0.sh" has the first, ... */
    gl_str hashes[FILES_CONTENTS];
    struct gl_arena arena;
    struct files_job jobs[FILES_JOBS];
    size_t jobs_n, runs_n;
    gl_ms lasts_ms;       /* a process */
    struct gl_logs *logs; /* of machines started from now on; NULL: they copy none */
    uint64_t log_bytes;   /* ... how much of each log */
    int trimmed;          /* code of the last trim; 1: no answer yet */
    struct gl_buf body;
    uint64_t checked_at;   /* commits of the disk */
    uint64_t checked_what; /* which flows and blobs there were */
    bool is_meddled;       /* a test has changed the store itself: nothing is checked */
};

void files_rig_init(struct files_rig *r, uint64_t seed, size_t machines_n,
                    const struct gl_keep *keep);
void files_rig_done(struct files_rig *r);

void files_rig_start(struct files_rig *r, size_t machine);
void files_rig_kill(struct files_rig *r, size_t machine);
/* Let time pass; nodes that lose their session are made anew, as the daemon does. */
void files_rig_run(struct files_rig *r, gl_ms span);

/* Submit a flow of one step for each digit in `files` ("013": three steps, the second needs
 * file1.sh) to a machine, which is given the files first unless `bare`. */
struct files_job *files_rig_submit(struct files_rig *r, size_t machine, const char *files,
                                   bool bare);
struct files_job *files_rig_retry(struct files_rig *r, size_t machine,
                                  const struct files_job *earlier);
void files_rig_trim(struct files_rig *r, size_t machine, int64_t keep_jobs);

/* The revision of a blob's record; 0: none. */
uint64_t files_rig_rev(struct files_rig *r, size_t content);
/* "" : it is gone. */
gl_str files_rig_status(struct files_rig *r, const struct files_job *job);
size_t files_rig_count(struct files_rig *r, const char *kind);

#endif
