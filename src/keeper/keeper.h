/* keeper.h - the process that owns the steps of one data folder, and outlives its node.
 *
 * One epoll, and one thread but for the syncing. A turn of the loop takes what has happened
 * (output, ended processes, due times, words of the node), lets every room do its part in memory,
 * and then settles: the journal is written, and synced for all attempts that ended since the last
 * sync; only then does anybody take_worker_text of them.
 *
 *     main.c      arguments, becoming a daemon       keeper.c    the turn, timers, the end
 *     client.c    connections                        serve.c     what a node may ask for
 *     attempt.c    the attempts in memory, floors     attempt_life.c      what is done with an
 * attempt rundir.c    its folder and files               launch.c    its process capture.c   its
 * output                         proctree.c  its descendants journal.c   what must survive the
 * keeper       results.c    ends, and when they count cgroup.c    a control group, where possible
 * epoch.c     the name of an unbroken memory dir_cache.c     folders that can serve again
 * worker_lines.c     what a worker has said redact.c    keeping secrets out                trash.c
 * folders that are not wanted
 *
 * This header is private to the folder. */
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

/* A due time on CLOCK_BOOTTIME: it counts while the machine sleeps. */
struct gl_timer {
    struct gl_heap_item item;
    gl_ms due;
    uint64_t seq; /* breaks ties: who was set first fires first */
    void (*fire)(struct gl_keeper *k, struct gl_timer *t);
};

struct gl_keeper_config {
    const char *data_dir; /* absolute; borrowed */
    gl_ms idle_ms;        /* with nothing to keep and nobody connected, it ends after this */
    /* When the lock is held, before anything is read: what is said from then on belongs into the
     * log. May be NULL. */
    void (*locked)(const char *data_dir);
};

enum {
    GL_KEEPER_IDLE_MS = 10000,
    GL_KEEPER_SHUTDOWN_MS = 5000, /* the longest grace when the keeper itself is told to end */
    GL_KEEPER_FLOORS_MAX = 8192,  /* idle jobs whose floor is remembered */
    /* Results not yet acknowledged; with more, starts are refused. */
    GL_KEEPER_RESULT_BYTES_MAX = 64 << 20,
    /* stdout of workers in memory, of all of them; what comes then is cut. */
    GL_KEEPER_WORKER_BYTES_MAX = 512 << 20,
};

struct gl_keeper {
    struct gl_keeper_config config;
    char contexts[4096]; /* path of the folder of all contexts */
    int contexts_fd;
    int lock_fd;
    int epoll_fd, timer_fd, null_fd, children_fd;
    struct gl_watch signals, alarm, listener, synced;

    struct gl_epoch epoch;
    struct gl_epoch before; /* of the keeper before this one */
    bool epoch_saved;       /* the folder says that this keeper lives */
    struct gl_journal journal;
    char boot[40]; /* id of this boot of the machine */

    /* Time, taken once per turn. */
    gl_ms now;         /* CLOCK_BOOTTIME */
    gl_ms wall_offset; /* wall time = now + this; once a node has said hello, as the node sees it */
    struct gl_heap timers;
    gl_ms alarm_at; /* what timer_fd is set for; INT64_MAX: nothing */
    uint64_t timer_seq;

    /* Attempts. */
    struct gl_map attempts;     /* by "context/job/attempt" */
    struct gl_map floors;       /* by "context/job" */
    struct gl_link floors_idle; /* those without attempts, longest unused first */
    size_t floors_idle_n;
    struct gl_link floors_empty; /* of these, jobs whose folder another job may have */
    size_t floors_empty_n;
    struct gl_cached_dir *cached; /* folders for later attempts: see dir_cache.h */
    size_t cached_n;
    struct gl_link clearing;     /* over, with descendants that are not */
    struct gl_link ending;       /* ended, not yet synced */
    struct gl_link unreported;   /* synced, not yet told to this caller */
    struct gl_link reported;     /* told, not yet acknowledged */
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
    bool child_ended; /* SIGCHLD came in this turn */
    bool reaped;      /* some process was waited for, and nobody has looked for its orphans yet */

    /* Nodes. */
    struct gl_link clients;
    struct gl_link closed_clients; /* closed in this turn */
    struct gl_client *active;      /* the one that has said hello; NULL: none */
    size_t clients_n;
    bool frames_left; /* a caller has whole frames that were left for the next turn */
    gl_ms orphan_grace_ms;
    gl_ms session_until; /* how long the node has a session, as it has said; INT64_MAX: it is of a
                            release that does not say */
    gl_ms logged_contact_at; /* the time since which nobody had been heard when orphans were last
                                ended */
    gl_ms contact_at;
    struct gl_timer idle, orphan, retry, shutdown;
    bool shutting_down; /* SIGTERM came: end everything */
    bool lost;          /* ... and something was running then */
    bool over;

    pid_t pid;            /* our own */
    struct rlimit nofile; /* as it was: for the steps */
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

void gl_keeper_set_timer(struct gl_keeper *k, struct gl_timer *t, gl_ms due); /* INT64_MAX: never */
void gl_keeper_clear_timer(struct gl_keeper *k, struct gl_timer *t);

/* `now` plus a span, without overflow. */
gl_ms gl_keeper_after(const struct gl_keeper *k, gl_ms span);

static inline gl_ms gl_keeper_wall(const struct gl_keeper *k)
{
    return k->now + k->wall_offset;
}

/* A line in the keeper's own log (stderr). */
void gl_keeper_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
