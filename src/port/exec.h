/* exec.h - the interface to an executor, which runs attempts: a keeper, a module host, or nothing
 * at all.
 *
 * An attempt is named by (context, job, attempt id). Each call carries the owner token of the job
 * and raises the job's floor: a call with a lower token is refused (GL_E_STALE), so a late start by
 * a former owner cannot happen. A result is durable before it is reported and is kept until
 * acknowledged, so it can be asked for again (attach) after any crash of the node.
 *
 * Order of calls: wait for `up`; `start`, or `attach` for an attempt of an earlier process; then
 * `ended` arrives, until `ack`. `stop` may come at any time, and `close` last. Calls about one
 * attempt take effect in the order they were made.
 *
 * Rules, as for the store: requests are embedded; `done` runs exactly once, later, on the control
 * thread; arguments are borrowed until then; results are valid only inside `done`. */
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
        attempt; /* attempt: "step:attempt:n"; for an instance "step[i]:attempt:n" */
};

/* The state of an attempt, as far as the executor can prove it. */
#define GL_EXEC_STATES(X)                                                                \
    X(RUNNING, "running")                                                                \
    X(ENDED, "ended") /* with a result */                                                \
    X(NEVER, "never") /* it never started, and a lower token cannot start it any more */ \
    X(LOST, "lost")   /* it may have run; it is certainly not running now; no result is known */

enum gl_exec_state {
#define X(name, word) GL_EXEC_##name,
    GL_EXEC_STATES(X)
#undef X
        GL_EXEC_STATE_COUNT
};

/* How an attempt ended. */
#define GL_EXEC_ENDS(X)                                                                      \
    X(EXITED, "exited")     /* exit_code */                                                  \
    X(SIGNALED, "signaled") /* signal */                                                     \
    X(TIMEOUT, "timeout")   /* killed at its deadline */                                     \
    X(STOPPED, "stopped")   /* killed at its owner's request */                              \
    X(NOT_EXECUTED,                                                                          \
      "not_executed")       /* exec failed, folder could not be created, ...: see `error` */ \
    X(ORPHANED, "orphaned") /* killed because its node was silent for too long */

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
    gl_str output;              /* JSON document, validated; "" = none */
    gl_str error;               /* sentence for people; "" = none */
};

struct gl_exec_file {
    gl_str name; /* path inside the working folder; no "..", not absolute */
    gl_str blob; /* SHA-256 in hex of its content, in the context's blob area; "" : the content is
                    `text` */
    gl_str text;
    bool executable;
};

struct gl_exec_start {
    struct gl_attempt_key key;
    uint64_t token;
    gl_str epoch;   /* the executor's when this start was decided: see gl_exec_events.up */
    gl_ms start_by; /* by the node's clock; a later start is refused (GL_E_STALE) */
    gl_str driver;  /* "process", "worker", "module" or "noop" */
    const gl_str *argv;
    size_t argv_n;
    const gl_str *env; /* "NAME=value"; the executor adds only GLIA_INPUT_FILE, GLIA_OUTPUT and, if
                          absent, HOME/PATH/LANG/TZ */
    size_t env_n;
    const gl_str *secrets; /* "NAME=env:VARIABLE" or "NAME=file:/path": read by the executor at the
                              start; the value goes into the step's environment and nowhere else. An
                              unreadable secret fails with GL_E_INVALID */
    size_t secrets_n;
    gl_str cwd; /* "" : a private folder of the attempt */
    const struct gl_exec_file *files;
    size_t files_n;
    gl_str input;       /* JSON; becomes the input file */
    gl_ms timeout_ms;   /* 0: none */
    gl_ms grace_ms;     /* between SIGTERM and SIGKILL */
    gl_ms beacon_ms;    /* 0: none; else report a beacon at least this often */
    bool needs_session; /* when its node's session ends, others may run it again or take its
                           concurrency slot: see `session` */

    /* A worker of a bundle. It runs in its private folder, which is removed when it ends, whatever
     * the outcome. In `argv`, `env` and `cwd`, GL_EXEC_WORK stands for the absolute path of that
     * folder; file texts are bytes and are left alone. `cwd` may be "", GL_EXEC_WORK, a path below
     * it, or another absolute path. Nothing is added to `env`. Up to stdout_max bytes of stdout and
     * 64 KiB of stderr are kept; whatever the exit code, the result's output is
     * {"stdout","stderr","is_cut","stdout_bytes"} (model/bundle/worker_output.h). Lines of stdout
     * that begin with GL_EXEC_BEACON or GL_EXEC_SAYS are not part of it: they are reported at once
     * (gl_exec_events.said). */
    bool is_worker;
    uint32_t stdout_max;
    gl_str make_folder; /* absolute path, created with its parents, mode 0700, before the worker
                           starts, and not removed; "" : none */
    gl_str take_folder; /* absolute path of the job's run folder, under an id that another job may
                           have used. Created and taken over for the job first (os/run_owner.h); ""
                           : none */
};

#define GL_EXEC_WORK "\001"
#define GL_EXEC_BEACON "__MN_AGENT_BEACON__"
#define GL_EXEC_SAYS "__MN_EVENT__"

struct gl_exec_info { /* one entry of a list */
    struct gl_attempt_key key;
    uint64_t token;
    enum gl_exec_state state; /* RUNNING or ENDED */
};

struct gl_exec_req {
    gl_exec_done *done;
    void *owner;

    int status; /* 0 | GL_E_STALE (token or start-by) | GL_E_UNAVAILABLE (retry) | GL_E_LIMIT,
                   GL_E_INVALID (do not retry) */
    struct gl_why why;
    enum gl_exec_state state;         /* attach */
    struct gl_exec_result result;     /* attach, when ENDED */
    const struct gl_exec_info *infos; /* list */
    size_t infos_n;

    void *maker[6];
};

/* What the executor reports on its own. Called on the control thread, never from inside a call. */
struct gl_exec_events {
    void *owner;
    /* The executor is usable. `epoch` names its unbroken memory: if an executor answers with the
     * epoch in which a start was decided and does not know the attempt, it never started. */
    void (*up)(void *owner, gl_str epoch);
    void (*down)(void *owner, const char *why);
    void (*ended)(void *owner, const struct gl_attempt_key *key, uint64_t token,
                  const struct gl_exec_result *result); /* at least once, until acknowledged */
    void (*beacon)(void *owner, const struct gl_attempt_key *key, uint64_t token);
    /* A line a worker printed for the runtime (with its prefix), in order, before `ended`. Lines
     * printed while no node is connected are kept, up to a limit, and delivered later. NULL:
     * ignored. */
    void (*said)(void *owner, const struct gl_attempt_key *key, uint64_t token, gl_str line);
};

struct gl_exec_ops {
    const char *name;
    /* Done when the attempt is running, or has ended already (`ended` follows). A known attempt is
     * not started again: the call succeeds and only raises the floor. After GL_E_UNAVAILABLE it is
     * unknown whether the attempt started; attach resolves that. If an earlier attempt of the same
     * step is still running (its node was thought dead and came back to the same job), it is
     * stopped, and the start fails with GL_E_UNAVAILABLE until it has ended. */
    void (*start)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_exec_start *start);
    void (*attach)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_attempt_key *key,
                   uint64_t token, gl_str epoch);
    /* SIGTERM, grace period, SIGKILL to the whole process tree; `ended` follows. Succeeds for
     * unknown attempts. The grace period is the one of the start, but at most `grace_ms` if that is
     * not 0. */
    void (*stop)(struct gl_exec *x, struct gl_exec_req *req, const struct gl_attempt_key *key,
                 uint64_t token, gl_ms grace_ms);
    /* The result is committed: the executor may drop it. */
    void (*ack)(struct gl_exec *x, const struct gl_attempt_key *key, uint64_t token);
    void (*list)(struct gl_exec *x, struct gl_exec_req *req);
    /* The node's session is valid until `until`, by the node's clock. After that the node no longer
     * vouches for attempts that need a session: the executor ends them within the orphan grace
     * unless it learns of a later time first. NULL: nothing of this executor outlives the node. */
    void (*session)(struct gl_exec *x, gl_ms until);
    void (*close)(struct gl_exec *x, void (*closed)(void *owner), void *owner);
};

struct gl_exec {
    const struct gl_exec_ops *ops;
};

#endif
