/* keeper.h - the process that owns the steps of one data folder, and outlives its node.
 *
 * One epoll loop. Only syncing the journal and emptying the trash have threads of their own. A turn
 * of the loop takes what has happened (output, exited processes, due timers, messages of the node),
 * lets each file do its part in memory, then writes the journal and syncs it once for all attempts
 * that have ended since the last sync. Only after that are their ends reported.
 *
 *     main.c         arguments, becoming a daemon
 *     keeper.c       the turn, timers, opening and closing
 *     client.c       connections
 *     serve.c        what a node may ask for
 *     attempt.c      the attempts in memory, and the token floors of jobs
 *     attempt_life.c starting, stopping and finishing attempts
 *     rundir.c       an attempt's folder and its files
 *     workdir.c      the folder it runs in
 *     dir_cache.c    untouched folders, reused by later attempts
 *     launch.c       starting its process
 *     capture.c      its output
 *     worker_lines.c the output of a bundle's worker
 *     redact.c       keeping secrets out of the output
 *     proctree.c     its descendants
 *     cgroup.c       a control group, where possible
 *     journal.c      what must survive the keeper
 *     results.c      the ends of attempts, and when they count
 *     epoch.c        one unbroken memory of a keeper
 *     trash.c        removing folders in the background
 *
 * Call order: gl_keeper_open(), gl_keeper_run() until it is over, gl_keeper_close() (also after a
 * failed open). This header is private to the folder. */
#ifndef GL_KEEPER_KEEPER_H
#define GL_KEEPER_KEEPER_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "keeper/epoch.h"
#include "keeper/journal.h"
#include "port/keeper_protocol.h"

struct gl_keeper;
struct gl_watch;
struct gl_timer;

/* A descriptor in the epoll set. */
struct gl_watch {
    void (*ready)(struct gl_keeper *k, struct gl_watch *w, uint32_t events);
    int fd;  /* negative: not watched */
    int set; /* the epoll set it is in */
};

/* A timer on CLOCK_BOOTTIME, which also counts while the machine is suspended. */
struct gl_timer {
    struct gl_heap_item item;
    gl_ms due;
    uint64_t seq; /* breaks ties: the timer set first fires first */
    void (*fire)(struct gl_keeper *k, struct gl_timer *t);
};

struct gl_keeper_config {
    const char *data_dir; /* absolute; borrowed */
    gl_ms idle_ms;        /* with nothing to do and no node connected, exit after this */
    /* Called once the lock is held, before anything is read: from here on messages belong in the
     * log. May be NULL. */
    void (*locked)(const char *data_dir);
};

enum {
    GL_KEEPER_IDLE_MS = 10000,
    GL_KEEPER_SHUTDOWN_MS = 5000, /* the longest grace when the keeper itself shuts down */
    GL_KEEPER_FLOORS_MAX = 8192,  /* idle jobs whose floor is remembered */
    /* Results not yet acknowledged; with more, starts are refused. */
    GL_KEEPER_RESULT_BYTES_MAX = 64 << 20,
    /* Total stdout of workers in memory; the rest is cut. */
    GL_KEEPER_WORKER_BYTES_MAX = 512 << 20,
};

struct gl_keeper {
    struct gl_keeper_config config;
    char contexts[4096]; /* path of the folder of all contexts */
    int contexts_fd;
    int lock_fd;
    int epoll_fd, timer_fd, null_fd, children_fd;
    bool stdin_is_null; /* descriptor 0 is /dev/null already: steps inherit it */
    struct gl_watch signals, alarm, listener, synced;

    struct gl_epoch epoch;
    struct gl_epoch before; /* of the keeper before this one */
    bool epoch_saved;       /* the epoch file says that this keeper is running */
    struct gl_journal journal;
    char boot[40]; /* id of this boot of the machine */

    /* Time, taken once per turn. */
    gl_ms now;         /* CLOCK_BOOTTIME */
    gl_ms wall_offset; /* wall time = now + this; after HELLO, by the node's clock */
    struct gl_heap timers;
    gl_ms alarm_at; /* when timer_fd fires; INT64_MAX: not set */
    uint64_t timer_seq;

    /* Attempts. */
    struct gl_map attempts;     /* by "context/job/attempt" */
    struct gl_map floors;       /* by "context/job" */
    struct gl_link floors_idle; /* those without attempts, longest unused first */
    size_t floors_idle_n;
    struct gl_link floors_empty; /* of these, jobs whose folder another job may take */
    size_t floors_empty_n;
    struct gl_cached_dir *cached; /* folders kept for later attempts: see dir_cache.h */
    size_t cached_n;
    struct gl_link clearing;     /* exited, with descendants still running */
    struct gl_link ending;       /* ended, not yet synced */
    struct gl_link unreported;   /* synced, not yet reported to this node */
    struct gl_link reported;     /* reported, not yet acknowledged */
    struct gl_link removed;      /* freed at the end of the turn: its events may still name them */
    struct gl_link pipes_closed; /* see capture.h */
    size_t running_n, running_max; /* each needs two descriptors */
    size_t result_bytes;
    struct gl_link lines_waiting; /* struct gl_worker_lines with lines for the node */
    size_t worker_bytes;          /* of workers' stdout in memory */

    /* Processes: children, and grandchildren that lost their parent. */
    struct gl_map procs; /* by pid */
    size_t strays_n;
    uint64_t mark_seq;
    bool child_ended; /* SIGCHLD arrived in this turn */
    bool reaped;      /* a process was waited for, and its orphans have not been looked for yet */

    /* Nodes. */
    struct gl_link clients;
    struct gl_link closed_clients; /* closed in this turn */
    struct gl_client *active;      /* the node: the last to send HELLO; NULL: none */
    size_t clients_n;
    bool frames_left; /* a client has whole frames left for the next turn */
    gl_ms orphan_grace_ms;
    gl_ms session_until;     /* when the node's session ends, as it reported; INT64_MAX: its release
                                does not report it */
    gl_ms logged_contact_at; /* the last contact that was logged when orphans were stopped */
    gl_ms contact_at;
    struct gl_timer idle, orphan, retry, shutdown;
    bool shutting_down; /* SIGTERM arrived: stop everything */
    bool lost;          /* ... while something was running */
    bool over;

    pid_t pid;            /* our own */
    struct rlimit nofile; /* as it was at start: for the steps */
    bool nofile_raised;   /* ours differs from it */
    void *stack;          /* of a child between clone and exec */
    struct gl_arena scratch;
    struct gl_buf lines, clean, plain; /* scratch of capture.c */
    struct gl_map redactors;           /* in use: see redact.h */
    struct gl_trash *trash;            /* NULL: nothing to remove yet */
};

int gl_keeper_open(struct gl_keeper *k, const struct gl_keeper_config *config,
                   struct gl_why *reterr_why);
void gl_keeper_run(struct gl_keeper *k);
void gl_keeper_close(struct gl_keeper *k);

/* Watch `w->fd` for input. */
int gl_keeper_watch(struct gl_keeper *k, struct gl_watch *w, struct gl_why *reterr_why);
void gl_keeper_set_watch(struct gl_keeper *k, struct gl_watch *w, uint32_t events);
void gl_keeper_unwatch(struct gl_watch *w); /* closes it; fine when not watched */
/* Remove it from the epoll set without closing it; returns the descriptor, or -1. */
int gl_keeper_release_watch(struct gl_watch *w);
/* Close descriptors, each run of consecutive ones in a single system call. Negative ones are
 * skipped; the array is sorted. */
void gl_keeper_close_fds(int *fds, size_t n);

void gl_keeper_set_timer(struct gl_keeper *k, struct gl_timer *t, gl_ms due); /* INT64_MAX: never */
void gl_keeper_clear_timer(struct gl_keeper *k, struct gl_timer *t);

/* `now` plus a span, without overflow. */
gl_ms gl_keeper_after(const struct gl_keeper *k, gl_ms span);

static inline gl_ms gl_keeper_wall(const struct gl_keeper *k)
{
    return k->now + k->wall_offset;
}

/* Write a line to the keeper's own log (stderr). */
void gl_keeper_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
