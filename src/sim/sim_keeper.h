/* sim_keeper.h - the simulated keeper, which owns the child processes and outlives every node, and
 * the processes themselves.
 *
 * It keeps the promises of port/exec.h: token floors per job, the start-by time, a known attempt
 * never starts again, a result is kept until acknowledged. When it dies its children die with it,
 * synced results survive, and its successor has a new epoch and no floors: it refuses starts that
 * were decided in another epoch.
 *
 * The behaviour of a process (how long it runs, how it ends, whether it obeys SIGTERM) depends only
 * on the seed and on the attempt's name. The keeper also writes a ledger of every real start and
 * end, which no node ever sees. The checkers compare it with what the nodes claim. */
#ifndef GL_SIM_SIM_KEEPER_H
#define GL_SIM_SIM_KEEPER_H

#include "base/list.h"
#include "base/map.h"
#include "model/flow/flow.h"
#include "port/exec.h"
#include "sim/world.h"

enum { SIM_LINES_MAX = 40 }; /* that an agent's process reports while it runs */

/* One line of the ledger: a process that really ran. Never removed. */
struct sim_process {
    gl_str context, job, attempt; /* "step:attempt:n" */
    gl_str step;                  /* cut from the attempt's name, with its number */
    uint32_t number;
    uint64_t token;
    const struct gl_step_spec *spec; /* of its step in the flow: set by the checkers */
    gl_str limit_key;                /* from the step's record: likewise */
    gl_str node;                     /* whose keeper runs it: the machine's name */
    gl_str by;                       /* which handle requested it: the incarnation's name */
    gl_str given;                    /* its arguments and environment, one per line */
    gl_ms started_at, ended_at;      /* true time; ended_at 0: it still runs */
    enum gl_exec_end end;            /* the end and the exit code, if `recorded` */
    int exit_code;
    bool recorded; /* its exit record was synced, so its end can be known */
    uint64_t epoch;
    struct gl_buf said; /* of an agent: its output, even if it was stopped before printing it */
    struct gl_buf message, state; /* given to an agent: JSON */
    uint32_t lines_n; /* of an agent: how many lines it has reported while running, ... */
    gl_ms told_at[SIM_LINES_MAX]; /* ... when each was delivered to a node, ... */
    gl_ms beat_at;                /* ... and when the last beacon was; 0: never */
};

/* What a process does without interference. */
struct sim_behaviour {
    gl_ms lasts_ms;
    struct gl_exec_result result;
    bool deaf;     /* ignores SIGTERM */
    gl_ms term_ms; /* else: how long it takes to end after SIGTERM */
    bool mute;     /* hangs until it is stopped, without a beacon */
    gl_ms says_ms; /* of an agent: interval between its lines for the runtime; 0: none */
};

struct sim_keeper_watch {
    void *owner;
    /* May change what was drawn for this process: stories prescribe it. */
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
    gl_ms orphan_grace_ms; /* ends processes whose node has been silent this long; 0: never */
    bool is_left;          /* its machine has no node, and never will again */
    struct sim_call orphan;
    struct sim_blobs *folder; /* of its machine; NULL: none */
    bool up;
    uint64_t epoch_n;
    char epoch[24];
    uint64_t incarnation;    /* the highest of any node that connected; on its disk */
    struct gl_map attempts;  /* "context/job/attempt" -> struct sim_attempt: running or kept */
    struct gl_map floors;    /* "context/job" -> struct sim_floor */
    struct gl_link commands; /* requests in flight */
    struct gl_link clients;  /* struct sim_exec.link: the open handles */
    struct sim_call restart;
    struct sim_process **ledger;
    size_t ledger_n, ledger_cap;
    size_t running_n;
    struct sim_keeper_watch watch;
};

void sim_keeper_init(struct sim_keeper *k, struct sim_world *w);
/* The same for one of several machines, with its own wall clock; numbers begin with 1. */
void sim_keeper_init_at(struct sim_keeper *k, struct sim_world *w, uint32_t machine,
                        const gl_ms *wall);
void sim_keeper_done(struct sim_keeper *k); /* all handles must be closed */
/* Gives its machine a folder for files, which lives as long as the keeper. */
void sim_keeper_give_folder(struct sim_keeper *k);

/* The keeper and its children die; it is back after `away_ms`. */
void sim_keeper_crash(struct sim_keeper *k, gl_ms away_ms);

/* ---- between the keeper and its handles (sim_exec.c) ---- */

enum sim_command_type {
    SIM_COMMAND_START,
    SIM_COMMAND_ATTACH,
    SIM_COMMAND_STOP,
    SIM_COMMAND_ACK,
    SIM_COMMAND_LIST
};

struct sim_exec_op;

/* A request in flight. It copies everything, because its sender may be dead when it arrives. */
struct sim_command {
    struct gl_link link;
    struct sim_call arrival;
    struct sim_keeper *keeper;
    struct sim_exec_op *op; /* waits for the answer; NULL: nothing does (any more) */
    enum sim_command_type type;
    gl_str context, job, attempt, epoch, by;
    struct gl_buf given;  /* START: arguments and environment, one per line */
    uint64_t incarnation; /* of its sender */
    gl_ms offset;         /* of its sender's clock, by which start_by is meant */
    uint64_t token;
    gl_ms start_by, timeout_ms, grace_ms, beacon_ms;
    gl_ms session_until; /* true time: end of its sender's session */
    bool needs_session;
    bool noop;
    bool is_unit, is_module;      /* START of an agent's worker or module, ... */
    struct gl_buf message, state; /* ... the message it is given, and the agent's state: JSON */
};

/* The keeper's answer to a command. Slices are valid until the next call of the keeper. */
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
    bool running;         /* by the keeper's account: also while its exit record is being synced */
    uint64_t incarnation; /* of the last node that started it or asked about it, ... */
    gl_ms heard_at;       /* ... and when that node was last heard */
    bool needs_session;   /* reports count only as long as its node has a session */
    struct sim_process *process;
    struct gl_exec_result result, planned;
    gl_ms ends_at; /* as planned; a stop may make it earlier */
    gl_ms grace_ms, beacon_ms, term_ms;
    bool deaf;
    struct sim_call ending, syncing, beacon;
    struct sim_call saying; /* of an agent: the next line for the runtime, ... */
    gl_ms says_ms;          /* ... and their interval; 0: none */
    uint32_t told_n;        /* how many of its lines have been delivered to a node; each once */
};

struct sim_command *sim_keeper_command(struct sim_keeper *k, enum sim_command_type type,
                                       const struct gl_attempt_key *key, gl_str epoch, gl_str by);
/* A node has connected: delivers the lines an agent reported meanwhile. */
void sim_keeper_tell(struct sim_attempt *at);
void sim_keeper_send(struct sim_keeper *k, struct sim_command *command, gl_ms arrives_at);
void sim_command_free(struct sim_command *command);
/* A node sends HELLO: false if a later incarnation has connected before. Earlier connections are
 * ignored from now on. */
bool sim_keeper_welcome(struct sim_keeper *k, struct sim_exec *x);

/* Calls from the keeper to a handle (in sim_exec.c). */
void sim_exec_on_answer(struct sim_exec_op *op, const struct sim_answer *answer);
void sim_exec_on_ended(struct sim_exec *x, const struct sim_attempt *at);
void sim_exec_on_beacon(struct sim_exec *x, const struct sim_attempt *at);
bool sim_exec_on_said(struct sim_exec *x, const struct sim_attempt *at, gl_str line);
void sim_exec_on_keeper_down(struct sim_exec *x);
void sim_exec_on_keeper_up(struct sim_exec *x);
void sim_exec_hang_up(struct sim_exec *x);

#endif
