/* sim_keeper.h - the simulated keeper: the process beside the nodes that owns the children and
 * outlives every node, and the processes themselves.
 *
 * It keeps the promises of port/exec.h: token floors per job, the start-by time, a known attempt is
 * never started again, a result is kept until acknowledged. When it dies its children die with it,
 * synced results survive, and its successor has a new epoch and no floors: it refuses starts that
 * were decided in another epoch.
 *
 * What a process does (how long it runs, how it ends, whether it listens when asked to stop) hangs
 * on the seed and on the attempt's name alone. Beside all this the keeper writes a ledger that no
 * node ever sees: every real start and end. The checkers hold the nodes' claims against it. */
#ifndef GL_SIM_SIM_KEEPER_H
#define GL_SIM_SIM_KEEPER_H

#include "base/list.h"
#include "base/map.h"
#include "model/flow/flow.h"
#include "port/exec.h"
#include "sim/world.h"

enum { SIM_LINES_MAX = 40 }; /* that an agent's process says on its way */

/* One line of the ledger: a process that really ran. Kept for ever. */
struct sim_process {
    gl_str context, job, attempt; /* "step:attempt:n" */
    gl_str step;                  /* cut from the attempt's name, with its number */
    uint32_t number;
    uint64_t token;
    const struct gl_step_spec *spec; /* what the flow says of its step: filled in by the checkers */
    gl_str limit_key;                /* as its record says: likewise */
    gl_str node;                     /* whose keeper runs it: the machine's name */
    gl_str by;                       /* which handle asked for it: the incarnation's name */
    gl_str given;                    /* its arguments and environment, each with a newline */
    gl_ms started_at, ended_at;      /* true time; ended_at 0: it runs */
    enum gl_exec_end end;            /* how, and with which code, if `recorded` */
    int exit_code;
    bool recorded; /* its exit record was synced: somebody can know how it ended */
    uint64_t epoch;
    struct gl_buf said; /* by an agent's: its output, also if it was stopped before it said it */
    struct gl_buf message, state; /* an agent's was given these: JSON */
    uint32_t lines_n;             /* of an agent's: how many it has said on its way, ... */
    gl_ms told_at[SIM_LINES_MAX]; /* ... when a node was told of each, ... */
    gl_ms beat_at;                /* ... and last of a sign of life; 0: never */
};

/* What a process does if nobody interferes. */
struct sim_behaviour {
    gl_ms lasts_ms;
    struct gl_exec_result result;
    bool deaf;     /* does not listen when asked to stop */
    gl_ms term_ms; /* else: how long it then takes */
    bool mute;     /* hangs until it is stopped, without a sign of life */
    gl_ms says_ms; /* an agent's: says something for the runtime so often; 0: nothing */
};

struct sim_keeper_watch {
    void *owner;
    /* May change what was drawn for this process: stories know what they want. */
    void (*on_plan)(void *owner, const struct sim_process *p, struct sim_behaviour *b);
    void (*on_start)(void *owner, struct sim_process *p);
    void (*on_end)(void *owner, const struct sim_process *p);
};

struct sim_exec;
struct sim_blobs;

struct sim_keeper {
    struct sim_world *world;
    struct gl_rng rng;
    char node[16];         /* the machine: "n1" */
    const gl_ms *wall;     /* offset of the machine's wall clock against true time; borrowed */
    gl_ms orphan_grace_ms; /* ends processes nobody has spoken for so long; 0: never */
    bool is_left;          /* its machine has no node, and will have none */
    struct sim_call orphan;
    struct sim_blobs *folder; /* of its machine; NULL: none */
    bool up;
    uint64_t epoch_n;
    char epoch[24];
    uint64_t incarnation;   /* the highest a node has come with; on its disk */
    struct gl_map attempts; /* "context/job/attempt" -> struct sim_attempt: running or kept */
    struct gl_map floors;   /* "context/job" -> struct sim_floor */
    struct gl_link letters; /* requests on their way to it */
    struct gl_link clients; /* struct sim_exec.link: the open handles */
    struct sim_call restart;
    struct sim_process **ledger;
    size_t ledger_n, ledger_cap;
    size_t running_n;
    struct sim_keeper_watch watch;
};

void sim_keeper_init(struct sim_keeper *k, struct sim_world *w);
/* The same for one of several machines, with a wall clock of its own; numbers begin with 1. */
void sim_keeper_init_at(struct sim_keeper *k, struct sim_world *w, uint32_t machine,
                        const gl_ms *wall);
void sim_keeper_done(struct sim_keeper *k); /* every handle must be gone */
/* Its machine has a folder for files, which lives as long as the keeper. */
void sim_keeper_give_folder(struct sim_keeper *k);

/* It dies, its children with it; it is back after `away_ms`. */
void sim_keeper_crash(struct sim_keeper *k, gl_ms away_ms);

/* ---- between the keeper and its handles (sim_exec.c) ---- */

enum sim_letter_type {
    SIM_LETTER_START,
    SIM_LETTER_ATTACH,
    SIM_LETTER_STOP,
    SIM_LETTER_ACK,
    SIM_LETTER_LIST
};

struct sim_exec_op;

/* A request on its way. It holds copies of everything, because its sender may be dead when it
 * arrives. */
struct sim_letter {
    struct gl_link link;
    struct sim_call arrival;
    struct sim_keeper *keeper;
    struct sim_exec_op *op; /* who waits for the answer; NULL: nobody (any more) */
    enum sim_letter_type type;
    gl_str context, job, attempt, epoch, by;
    struct gl_buf given;  /* START: arguments and environment, each with a newline */
    uint64_t incarnation; /* of its sender */
    gl_ms offset;         /* of its sender's clock: start_by is meant by that */
    uint64_t token;
    gl_ms start_by, timeout_ms, grace_ms, beacon_ms;
    gl_ms session_until; /* true time: of its sender's session */
    bool needs_session;
    bool noop;
    bool is_unit, is_module;      /* START of an agent's worker or module, ... */
    struct gl_buf message, state; /* ... the message it is given, and the agent's state: JSON */
};

/* What the keeper makes of a letter. Slices are valid until the keeper is called again. */
struct sim_answer {
    int status;
    enum gl_exec_state state;
    struct gl_exec_result result;
};

struct sim_attempt {
    gl_str key; /* "context/job/attempt", of which the next are slices */
    gl_str context, job, attempt;
    struct sim_keeper *keeper;
    uint64_t token;
    bool running;         /* as the keeper says: also while its exit record is being synced */
    uint64_t incarnation; /* of the last node that has started it or asked about it, ... */
    gl_ms heard_at;       /* ... and when that was last heard */
    bool needs_session;   /* a word counts only as long as its node has a session */
    struct sim_process *process;
    struct gl_exec_result result, planned;
    gl_ms ends_at; /* as planned; a stop may bring it forward */
    gl_ms grace_ms, beacon_ms, term_ms;
    bool deaf;
    struct sim_call ending, syncing, beacon;
    struct sim_call saying; /* of an agent's: the next line for the runtime, ... */
    gl_ms says_ms;          /* ... which comes so often; 0: never */
    uint32_t told_n;        /* of its lines, to a node; each once */
};

struct sim_letter *sim_keeper_letter(struct sim_keeper *k, enum sim_letter_type type,
                                     const struct gl_attempt_key *key, gl_str epoch, gl_str by);
/* What an agent's has said while nobody listened: a node has come. */
void sim_keeper_tell(struct sim_attempt *at);
void sim_keeper_send(struct sim_keeper *k, struct sim_letter *letter, gl_ms arrives_at);
void sim_letter_free(struct sim_letter *letter);
/* A node says hello: false if a later incarnation has been here. Whoever was connected before is
 * not heard any more. */
bool sim_keeper_welcome(struct sim_keeper *k, struct sim_exec *x);

/* Told by the keeper to a handle (in sim_exec.c). */
void sim_exec_on_answer(struct sim_exec_op *op, const struct sim_answer *answer);
void sim_exec_on_ended(struct sim_exec *x, const struct sim_attempt *at);
void sim_exec_on_beacon(struct sim_exec *x, const struct sim_attempt *at);
bool sim_exec_on_said(struct sim_exec *x, const struct sim_attempt *at, gl_str line);
void sim_exec_on_keeper_down(struct sim_exec *x);
void sim_exec_on_keeper_up(struct sim_exec *x);
void sim_exec_hang_up(struct sim_exec *x);

#endif
