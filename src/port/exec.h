/* exec.h - running attempts, behind which a keeper, a remote node or nothing at all may stand.
 *
 * An attempt is named by (context, job, attempt id). Each call carries the token of the job's owner
 * and raises the floor of that job: a call with a lower token is refused (GL_E_STALE), so a late
 * start from an old owner cannot happen. A result is durable before it is reported and is kept
 * until acknowledged, so it can be asked for again (attach) after any crash of the asker.
 *
 * Calls about one attempt arrive in the order in which they were made.
 *
 * As with the store: requests are embedded, `done` runs exactly once, later, on the control thread;
 * what was given is borrowed until then; results are valid inside `done` only. */
#ifndef GL_PORT_EXEC_H
#define GL_PORT_EXEC_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

struct gl_exec;
struct gl_exec_req;
typedef void gl_exec_done(struct gl_exec_req *req);

struct gl_attempt_key {
    gl_str context, job,
        attempt; /* attempt: "step:attempt:n", of an instance "step[i]:attempt:n" */
};

/* Where an attempt stands, as far as the executor can prove it. */
#define GL_EXEC_STATES(X)                                                            \
    X(RUNNING, "running")                                                            \
    X(ENDED, "ended") /* with a result */                                            \
    X(NEVER, "never") /* it never started, and cannot any more with a lower token */ \
    X(LOST, "lost")   /* it may have run; it is certainly not running now; no result is known */

enum gl_exec_state {
#define X(name, word) GL_EXEC_##name,
    GL_EXEC_STATES(X)
#undef X
        GL_EXEC_STATE_COUNT
};

/* How an attempt ended. */
#define GL_EXEC_ENDS(X)                                                                       \
    X(EXITED, "exited")             /* exit_code */                                           \
    X(SIGNALED, "signaled")         /* signal */                                              \
    X(TIMEOUT, "timeout")           /* killed at its deadline */                              \
    X(STOPPED, "stopped")           /* killed because its owner asked */                      \
    X(NOT_EXECUTED, "not_executed") /* exec failed, folder could not be made, ...: `error` */ \
    X(ORPHANED, "orphaned")         /* killed because its node was silent for too long */

enum gl_exec_end {
#define X(name, word) GL_EXEC_##name,
    GL_EXEC_ENDS(X)
#undef X
        GL_EXEC_END_COUNT
};

struct gl_exec_result {
    enum gl_exec_end end;
    int exit_code; /* EXITED; NOT_EXECUTED: GL_E_DAMAGED if a file's blob is gone or damaged */
    int signal;
    gl_ms started_at, ended_at; /* wall clock */
    gl_str output;              /* JSON document, checked; "" = none */
    gl_str error;               /* for people; "" = none */
};

struct gl_exec_file {
    gl_str name; /* path inside the working folder; no "..", not absolute */
    gl_str blob; /* its content, by SHA-256 in hex, in the context's blob area; "" : `text` is */
    gl_str text;
    bool executable;
};

struct gl_exec_start {
    struct gl_attempt_key key;
    uint64_t token;
    gl_str epoch;   /* of the executor when this start was decided: see gl_exec_events.up */
    gl_ms start_by; /* by the node's clock: later it must not start (GL_E_STALE) */
    gl_str driver;  /* "process", "worker", "module" or "noop" */
    const gl_str *argv;
    size_t argv_n;
    const gl_str *env; /* "NAME=value"; nothing else is added but GLIA_INPUT_FILE, GLIA_OUTPUT and
                          HOME/PATH/LANG/TZ where absent */
    size_t env_n;
    const gl_str *secrets; /* "NAME=env:VARIABLE", "NAME=file:/path": read by the executor when it
                              starts; the value goes into the step's environment and nowhere else.
                              What cannot be read is GL_E_INVALID */
    size_t secrets_n;
    gl_str cwd; /* "" : a private folder of this attempt */
    const struct gl_exec_file *files;
    size_t files_n;
    gl_str input;       /* JSON, becomes the input file */
    gl_ms timeout_ms;   /* 0: none */
    gl_ms grace_ms;     /* between SIGTERM and SIGKILL */
    gl_ms beacon_ms;    /* 0: none; else report at least this often that it lives */
    bool needs_session; /* others run it again, or take its seat, when its node's session is over:
                           see `session` */

    /* A worker of a bundle. It runs in its private folder, which is removed when it has ended, well
     * or not. In `argv`, `env` and `cwd` GL_EXEC_WORK stands for that folder's absolute path;
     * files' texts are bytes, and are left as they are. `cwd` may be "" , GL_EXEC_WORK, a path
     * below it, or another absolute path.
     * Nothing is added to `env`. stdout is kept up to stdout_max bytes, stderr up to 64 KiB; the
     * result's output is {"stdout","stderr","is_cut","stdout_bytes"}
     * (model/bundle/worker_output.h), whatever the exit code. Lines of stdout that begin with
     * GL_EXEC_BEACON or GL_EXEC_SAYS are not part of it: they are told at once
     * (gl_exec_events.said). */
    bool is_worker;
    uint32_t stdout_max;
    gl_str make_folder; /* absolute: made, with those above it, for its owner only, before the
                           worker starts, and left where it is; "" : none */
    gl_str take_folder; /* absolute: of the job's run, under an id that another job may have had.
                           Made and taken for the job before that (os/run_owner.h); "" : none */
};

#define GL_EXEC_WORK "\001"
#define GL_EXEC_BEACON "__MN_AGENT_BEACON__"
#define GL_EXEC_SAYS "__MN_EVENT__"

struct gl_exec_info { /* one line of a list */
    struct gl_attempt_key key;
    uint64_t token;
    enum gl_exec_state state; /* RUNNING or ENDED */
};

struct gl_exec_req {
    gl_exec_done *done;
    void *owner;

    int status; /* 0 | GL_E_STALE (token or start-by) | GL_E_UNAVAILABLE (ask again) | GL_E_LIMIT,
                   GL_E_INVALID (never) */
    struct gl_why why;
    enum gl_exec_state state;         /* attach */
    struct gl_exec_result result;     /* attach, when ENDED */
    const struct gl_exec_info *infos; /* list */
    size_t infos_n;

    void *maker[6];
};

/* What the executor tells without being asked. Called on the control thread, never from inside a
 * call. */
struct gl_exec_events {
    void *owner;
    /* The executor can be used. `epoch` names its unbroken memory: an executor that answers with
     * the epoch in which a start was decided, and knows nothing of the attempt, proves that it
     * never started. */
    void (*up)(void *owner, gl_str epoch);
    void (*down)(void *owner, const char *why);
    void (*ended)(void *owner, const struct gl_attempt_key *key, uint64_t token,
                  const struct gl_exec_result *result); /* at least once, until acknowledged */
    void (*beacon)(void *owner, const struct gl_attempt_key *key, uint64_t token);
    /* A line a worker said for the runtime (with its prefix), in order, before `ended`. What is
     * said while nobody listens is kept, up to a limit, and told later; NULL: nobody cares. */
    void (*said)(void *owner, const struct gl_attempt_key *key, uint64_t token, gl_str line);
};

struct gl_exec_ops {
    const char *name;
    /* Done when the attempt is running (or has ended already: `ended` follows). An attempt that is
     * known already is not started again: the call succeeds and changes nothing but the floor.
     * GL_E_UNAVAILABLE leaves open whether it started: attach tells. An earlier attempt of the same
     * step that still runs is stopped, and until it has ended the start is GL_E_UNAVAILABLE: its
     * node was thought dead, and came back to the same job. */
    void (*start)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_exec_start *start);
    void (*attach)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_attempt_key *key,
                   uint64_t token, gl_str epoch);
    /* SIGTERM, grace, SIGKILL to the whole tree; `ended` follows. Unknown attempts are fine. The
     * grace is the one it was started with, but at most `grace_ms` if that is not 0. */
    void (*stop)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_attempt_key *key,
                 uint64_t token, gl_ms grace_ms);
    /* The result is committed: it need not be kept. */
    void (*ack)(struct gl_exec *x, const struct gl_attempt_key *key, uint64_t token);
    void (*list)(struct gl_exec *x, struct gl_exec_req *req);
    /* The node has a session until then, by its own clock. Beyond that it does not speak for
     * attempts that need one: the executor ends them within the orphan grace, unless it hears of a
     * later time first. NULL: this executor has nothing that outlives the node. */
    void (*session)(struct gl_exec *x, gl_ms until);
    void (*close)(struct gl_exec *x, void (*closed)(void *owner), void *owner);
};

struct gl_exec {
    const struct gl_exec_ops *ops;
};

#endif
