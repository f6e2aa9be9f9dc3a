#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "keeper/attempt_life.h"
#include "keeper/cgroup.h"
#include "keeper/client.h"
#include "keeper/dir_cache.h"
#include "keeper/launch.h"
#include "keeper/proctree.h"
#include "keeper/results.h"
#include "keeper/trash.h"
#include "os/fs.h"

enum {
    EVENTS_PER_TURN = 64,
    LOCK_WAIT_MS = 2000, /* a keeper that is exiting holds the lock a little longer */
    LOCK_PAUSE_MS = 2,
    LINGER_FACTOR = 6, /* longer idle time while results are unfetched; they are on disk, so it need
                          not be forever */
    ORPHANS_LATE_MS = 100,  /* look again after this for steps that were just being started */
    FOREVER_MS = 315360000, /* x 1000: ten years, the longest timer span */
};

void gl_keeper_log(const char *fmt, ...)
{
    char when[GL_TIMES_BYTES], text[1024];
    struct timespec t;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)clock_gettime(CLOCK_REALTIME, &t);
    gl_str at = gl_times_format((gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000, when);
    (void)fprintf(stderr, "%.*s [%d] %s\n", GL_STR_ARG(at), (int)getpid(), text);
}

/* ---- time ---- */

static gl_ms read_clock(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

gl_ms gl_keeper_after(const struct gl_keeper *k, gl_ms span)
{
    gl_ms longest = (gl_ms)FOREVER_MS * 1000;

    GL_ASSERT(span >= 0);
    return k->now + (span < longest ? span : longest);
}

static bool timer_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_timer *x = GL_CONTAINER(a, struct gl_timer, item);
    const struct gl_timer *y = GL_CONTAINER(b, struct gl_timer, item);
    return x->due != y->due ? x->due < y->due : x->seq < y->seq;
}

static void set_alarm(struct gl_keeper *k, gl_ms at)
{
    struct itimerspec when = {0};

    GL_ASSERT(at < INT64_MAX);
    k->alarm_at = at;
    when.it_value.tv_sec = at / 1000;
    when.it_value.tv_nsec = at % 1000 * 1000000 + 1; /* all zero would disarm it */
    (void)timerfd_settime(k->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The alarm only ever moves to an earlier time. An early alarm costs one idle turn; rearming for
 * every timer would cost a system call each. */
void gl_keeper_set_timer(struct gl_keeper *k, struct gl_timer *t, gl_ms due)
{
    gl_keeper_clear_timer(k, t);
    if (due == INT64_MAX) {
        return;
    }
    t->due = due;
    t->seq = k->timer_seq++;
    GL_ASSERT(due >= 0);
    gl_heap_push(&k->timers, &t->item);
    if (due < k->alarm_at) {
        set_alarm(k, due);
    }
    GL_ASSERT(gl_heap_has(&t->item));
    GL_ASSERT(k->alarm_at <= due);
}

void gl_keeper_clear_timer(struct gl_keeper *k, struct gl_timer *t)
{
    if (gl_heap_has(&t->item)) {
        gl_heap_remove(&k->timers, &t->item);
    }
    GL_ASSERT(!gl_heap_has(&t->item));
}

static void on_synced(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    (void)w;
    (void)events;
    gl_results_synced(k);
}

static void on_alarm(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    uint64_t count;
    (void)events;
    (void)!read(w->fd, &count,
                sizeof(count)); /* the count is irrelevant: the heap knows what is due */
    k->alarm_at = INT64_MAX;
}

static void fire_timers(struct gl_keeper *k)
{
    struct gl_heap_item *top;
    while ((top = gl_heap_top(&k->timers)) != NULL) {
        struct gl_timer *t = GL_CONTAINER(top, struct gl_timer, item);
        if (t->due > k->now) {
            break;
        }
        gl_heap_remove(&k->timers, top);
        if (t->fire != NULL) {
            t->fire(k, t);
        }
    }
    if (top != NULL && k->alarm_at == INT64_MAX) {
        set_alarm(k, GL_CONTAINER(top, struct gl_timer, item)->due);
    }
}

/* ---- descriptors ---- */

int gl_keeper_watch(struct gl_keeper *k, struct gl_watch *w, struct gl_why *reterr_why)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};
    GL_ASSERT(w->fd >= 0);
    w->set = k->epoll_fd;
    if (epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, w->fd, &e) < 0) {
        return gl_fs_why(reterr_why, errno, "watch", "a descriptor");
    }
    return 0;
}

void gl_keeper_set_watch(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    int err = epoll_ctl(k->epoll_fd, EPOLL_CTL_MOD, w->fd, &e);

    GL_ASSERT(w->fd >= 0);
    GL_ASSERT(err == 0);
}

/* Closing alone would not remove it from the set: for a moment after the parent continues, a new
 * child still holds a copy of every descriptor (the kernel closes them late in exec), and epoll
 * would keep reporting it with a pointer to freed memory. */
int gl_keeper_release_watch(struct gl_watch *w)
{
    int fd = w->fd;
    if (fd >= 0) {
        (void)epoll_ctl(w->set, EPOLL_CTL_DEL, fd, NULL); /* fine if it was never added */
    }
    w->fd = -1;
    return fd;
}

void gl_keeper_unwatch(struct gl_watch *w)
{
    int fd = gl_keeper_release_watch(w);
    gl_fs_closep(&fd);
    GL_ASSERT(w->fd < 0);
}

static int compare_fds(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* A pipe's ends are usually neighbours, and the pipes of one step too: one close_range() instead of
 * four close(). Everything in a range is in `fds`, so nothing else can be closed by it. */
void gl_keeper_close_fds(int *fds, size_t n)
{
    qsort(fds, n, sizeof(*fds), compare_fds);
    for (size_t i = 0, next; i < n; i = next) {
        next = i + 1;
        while (fds[i] >= 0 && next < n && fds[next] == fds[next - 1] + 1) {
            next++;
        }
        if (next - i > 1 && close_range((unsigned)fds[i], (unsigned)fds[next - 1], 0) == 0) {
            continue;
        }
        for (size_t j = i; j < next; j++) { /* a single one, or Linux before 5.9 */
            gl_fs_closep(&fds[j]);
        }
    }
}

static void on_signal(struct gl_keeper *k, struct gl_watch *w, uint32_t events)
{
    struct signalfd_siginfo info[16];
    ssize_t n = read(w->fd, info, sizeof(info));
    (void)events;
    for (ssize_t i = 0; i < n / (ssize_t)sizeof(info[0]); i++) {
        if (info[i].ssi_signo == SIGCHLD) {
            k->child_ended = true;
        } else if (!k->shutting_down) {
            gl_keeper_log("signal %u: terminating all steps", info[i].ssi_signo);
            k->shutting_down = true;
            gl_attempt_life_shut_down(k);
            gl_keeper_set_timer(k, &k->shutdown, gl_keeper_after(k, 2 * GL_KEEPER_SHUTDOWN_MS));
        }
    }
}

/* ---- when to exit ---- */

static void on_shutdown_timeout(struct gl_keeper *k, struct gl_timer *t)
{
    GL_ASSERT(k->shutting_down);
    (void)t;
    k->over = true; /* some process will not die: the next keeper kills it */
}

static bool is_idle(const struct gl_keeper *k)
{
    GL_ASSERT(k->running_n <= gl_map_count(&k->attempts));
    return k->clients_n == 0 && k->running_n == 0 && gl_list_empty(&k->clearing) &&
           gl_list_empty(&k->ending);
}

static void on_idle(struct gl_keeper *k, struct gl_timer *t)
{
    (void)t;
    k->over = is_idle(k);
}

/* The node may have sent messages while this process was suspended: handle them first. */
static void on_orphan(struct gl_keeper *k, struct gl_timer *t)
{
    if (k->frames_left) {
        gl_keeper_set_timer(k, t, gl_keeper_after(k, 1));
    } else if (k->orphan_grace_ms > 0 && k->running_n > 0) {
        gl_ms next = gl_attempt_life_end_orphans(k);
        gl_keeper_set_timer(k, t, next != INT64_MAX ? next : gl_keeper_after(k, ORPHANS_LATE_MS));
    }
}

static void plan_exit(struct gl_keeper *k)
{
    GL_ASSERT(k->running_n <= gl_map_count(&k->attempts));
    if (k->shutting_down && k->running_n == 0 && gl_list_empty(&k->clearing) &&
        gl_list_empty(&k->ending)) {
        k->over = true;
    }
    if (!is_idle(k)) {
        gl_keeper_clear_timer(k, &k->idle);
    } else if (!gl_heap_has(&k->idle.item)) {
        bool unfetched = gl_map_count(&k->attempts) > 0;
        gl_keeper_set_timer(
            k, &k->idle, gl_keeper_after(k, k->config.idle_ms * (unfetched ? LINGER_FACTOR : 1)));
    }
    if (k->orphan_grace_ms > 0 && k->running_n > 0 && !gl_heap_has(&k->orphan.item)) {
        gl_keeper_set_timer(k, &k->orphan, k->now);
    }
}

/* ---- the turn ---- */

static void turn(struct gl_keeper *k)
{
    struct epoll_event events[EVENTS_PER_TURN];
    int n;
    do { /* Interrupted by a stop or suspend: still look at sockets before timers. */
        n = epoll_wait(k->epoll_fd, events, EVENTS_PER_TURN, k->frames_left ? 0 : -1);
    } while (n < 0 && errno == EINTR);
    k->now = read_clock(CLOCK_BOOTTIME);
    gl_arena_reset(&k->scratch);
    for (int i = 0; i < n; i++) {
        struct gl_watch *w = events[i].data.ptr;
        if (w->fd >= 0) { /* it may have been closed by an earlier event of this turn */
            w->ready(k, w, events[i].events);
        }
    }
    if (k->frames_left) {
        gl_client_resume(k);
    }
    fire_timers(k);
    if (k->child_ended || k->reaped) {
        k->child_ended = false;
        gl_attempt_life_reap(k);
    }
    gl_results_flush(k);
    gl_client_flush(k);
    gl_attempt_free_removed(k);
    gl_capture_free_closed(k);
    plan_exit(k);
    GL_ASSERT(gl_list_empty(&k->removed));
    GL_ASSERT(gl_list_empty(&k->closed_clients));
    GL_ASSERT(gl_list_empty(&k->pipes_closed));
}

void gl_keeper_run(struct gl_keeper *k)
{
    while (!k->over) {
        turn(k);
    }
}

/* ---- opening ---- */

static int take_lock(struct gl_keeper *k, const char *folder, struct gl_why *why)
{
    const char *path = gl_str_fmt(&k->scratch, "%s/lock", folder).p;

    GL_ASSERT(k->lock_fd < 0);
    k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0) {
        return gl_fs_why(why, errno, "open", path);
    }
    gl_ms until = read_clock(CLOCK_BOOTTIME) + LOCK_WAIT_MS;
    while (flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return gl_fs_why(why, errno, "lock", path);
        }
        if (read_clock(CLOCK_BOOTTIME) >= until) {
            return gl_why(why, GL_E_BUSY, "%s is locked by another keeper", path);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_MS * 1000000}, NULL);
    }
    (void)!ftruncate(k->lock_fd, 0); /* the pid in it is informational */
    (void)dprintf(k->lock_fd, "%d\n", (int)getpid());
    return 0;
}

/* Are both descriptors the same device, and does a child inherit `fd` as it needs it? */
static bool is_same_device(int fd, int device)
{
    struct stat a, b;
    int flags = fcntl(fd, F_GETFD), mode = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0 && (mode & O_ACCMODE) == O_RDWR &&
           fstat(fd, &a) == 0 && fstat(device, &b) == 0 && S_ISCHR(a.st_mode) &&
           a.st_rdev == b.st_rdev;
}

static int open_descriptors(struct gl_keeper *k, struct gl_why *why)
{
    GL_ASSERT(k->epoll_fd < 0);
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    k->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    k->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    k->stdin_is_null = k->null_fd >= 0 && is_same_device(0, k->null_fd);
    int signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    k->signals = (struct gl_watch){.ready = on_signal, .fd = signal_fd};
    k->alarm = (struct gl_watch){.ready = on_alarm, .fd = k->timer_fd};
    if (k->epoll_fd < 0 || k->timer_fd < 0 || k->null_fd < 0 || k->signals.fd < 0) {
        return gl_fs_why(why, errno, "set up", "the keeper's descriptors");
    }
    int r = gl_keeper_watch(k, &k->signals, why);
    return r < 0 ? r : gl_keeper_watch(k, &k->alarm, why);
}

/* Pipes need descriptors, so raise the limit as far as allowed. Steps get the original limit. */
static void set_limits(struct gl_keeper *k)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)getrlimit(RLIMIT_NOFILE, &k->nofile);
    struct rlimit most = k->nofile;
    most.rlim_cur = most.rlim_max < GL_KEEPER_FILES_MAX ? most.rlim_max : GL_KEEPER_FILES_MAX;
    if (most.rlim_cur > k->nofile.rlim_cur && setrlimit(RLIMIT_NOFILE, &most) < 0) {
        most = k->nofile;
    }
    k->nofile_raised = most.rlim_cur != k->nofile.rlim_cur;
    k->running_max = gl_keeper_attempts_max(most.rlim_cur);
}

static void read_boot_id(struct gl_keeper *k)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    (void)gl_fs_read("/proc/sys/kernel/random/boot_id", 64, &text,
                     NULL); /* if unreadable: "", all boots look alike */
    gl_str id = gl_str_trim(gl_buf_view(&text));
    (void)snprintf(k->boot, sizeof(k->boot), "%.*s", GL_STR_ARG(id));
}

static int draw_epoch(struct gl_keeper *k, struct gl_why *why)
{
    uint8_t chance[GL_KEEPER_EPOCH_BYTES / 2];
    if (getrandom(chance, sizeof(chance), 0) != (ssize_t)sizeof(chance)) {
        return gl_fs_why(why, errno, "get", "random bytes");
    }
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(k->epoch.id + 2 * i, 3, "%02x", chance[i]);
    }
    return 0;
}

static int begin_epoch(struct gl_keeper *k, const char *folder, struct gl_why *why)
{
    int r = gl_epoch_load(&k->before, folder, why);
    if (r < 0) {
        return r;
    }
    uint64_t mark = k->epoch.mark;
    k->epoch = k->before;
    k->epoch.mark = mark;
    k->epoch.running = true;
    k->epoch.cgroup[0] = 0;
    (void)snprintf(k->epoch.boot, sizeof(k->epoch.boot), "%s", k->boot);
    GL_ASSERT(k->epoch.running);
    return k->before.running || k->before.id[0] == 0 ? draw_epoch(k, why) : 0;
}

/* A predecessor that shut down in order left a whole journal. If it is not whole now, results may
 * be missing, and this keeper must not answer "never started" for their attempts: it begins a new
 * epoch in which unknown attempts count as lost. The epoch is saved before the journal is repaired,
 * because a keeper that dies in between must come to the same conclusion. */
static int open_journal(struct gl_keeper *k, struct gl_why *why)
{
    const char *folder = gl_str_fmt(&k->scratch, "%s/keeper", k->config.data_dir).p;
    int r = gl_journal_open(&k->journal, folder, gl_results_replay, k, why);
    bool is_damaged = r == 0 && k->journal.bad_bytes > 0 &&
                      (k->journal.has_hole || !k->before.running); /* else only a torn end */

    GL_ASSERT(k->lock_fd >= 0);
    if (is_damaged) {
        gl_keeper_log("%s is damaged: %llu bytes cannot be read. Results may be missing; attempts "
                      "without a result count as lost, and unsafe steps wait for review",
                      k->journal.path, (unsigned long long)k->journal.bad_bytes);
        r = k->before.running ? 0 : draw_epoch(k, why);
        folder = gl_str_fmt(&k->scratch, "%s/keeper", k->config.data_dir)
                     .p; /* replay resets the scratch arena */
        r = r < 0 ? r : gl_epoch_save(&k->epoch, folder, why);
    }
    return r < 0 ? r : gl_journal_repair(&k->journal, why);
}

static void enter_cgroup(struct gl_keeper *k)
{
    char name[48];
    (void)snprintf(name, sizeof(name), "%.16s-%d", k->epoch.id, (int)getpid());
    (void)gl_cgroup_enter(k->epoch.cgroup, sizeof(k->epoch.cgroup), name); /* optional */
}

static int open_folders(struct gl_keeper *k, const char *folder, struct gl_why *why)
{
    gl_str contexts = gl_str_fmt(&k->scratch, "%s/contexts", k->config.data_dir);
    (void)snprintf(k->contexts, sizeof(k->contexts), "%s", contexts.p);
    int r = gl_fs_mkdirs(folder, why);
    if (r == 0) {
        r = gl_fs_mkdirs(k->contexts, why);
    }
    if (r < 0) {
        return r;
    }
    k->contexts_fd = open(k->contexts, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return k->contexts_fd < 0 ? gl_fs_why(why, errno, "open", k->contexts) : 0;
}

static void init(struct gl_keeper *k, const struct gl_keeper_config *config)
{
    GL_ASSERT(config->idle_ms >= 0);
    *k = (struct gl_keeper){.config = *config};
    k->contexts_fd = k->lock_fd = k->epoll_fd = k->timer_fd = k->null_fd = k->children_fd = -1;
    k->signals.fd = k->alarm.fd = k->listener.fd = k->journal.fd = k->journal.done_fd = -1;
    struct gl_link *lists[] = {&k->floors_idle,    &k->floors_empty, &k->clearing,     &k->ending,
                               &k->unreported,     &k->reported,     &k->removed,      &k->clients,
                               &k->closed_clients, &k->pipes_closed, &k->lines_waiting};
    for (size_t i = 0; i < GL_COUNT(lists); i++) {
        gl_list_init(lists[i]);
    }
    gl_heap_init(&k->timers, timer_before);
    k->alarm_at = INT64_MAX;
    k->now = read_clock(CLOCK_BOOTTIME);
    k->wall_offset = read_clock(CLOCK_REALTIME) - k->now;
    k->idle.fire = on_idle;
    k->orphan.fire = on_orphan;
    k->shutdown.fire = on_shutdown_timeout;
    k->pid = getpid();
    read_boot_id(k);
}

int gl_keeper_open(struct gl_keeper *k, const struct gl_keeper_config *config,
                   struct gl_why *reterr_why)
{
    init(k, config);
    const char *folder = gl_str_fmt(&k->scratch, "%s/keeper", config->data_dir).p;
    int r = open_folders(k, folder, reterr_why);
    if (r == 0) {
        r = take_lock(k, folder, reterr_why);
    }
    if (r == 0 && config->locked != NULL) {
        config->locked(config->data_dir);
    }
    if (r == 0) {
        r = open_descriptors(k, reterr_why);
    }
    if (r < 0) {
        return r;
    }
    set_limits(k);
    k->stack = mmap(NULL, GL_LAUNCH_STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (k->stack == MAP_FAILED) {
        return gl_fs_why(reterr_why, errno, "map", "a stack");
    }
    r = gl_proctree_open(k, reterr_why);
    if (r == 0) {
        r = begin_epoch(k, folder, reterr_why);
    }
    if (r == 0) {
        r = open_journal(k, reterr_why);
    }
    if (r < 0) {
        return r;
    }
    gl_results_replayed(k);
    gl_trash_open(k);
    enter_cgroup(k);
    k->synced = (struct gl_watch){.ready = on_synced, .fd = k->journal.done_fd};
    r = gl_keeper_watch(k, &k->synced, reterr_why);
    if (r < 0) {
        return r;
    }
    r = gl_client_listen(k, reterr_why);
    plan_exit(k);
    return r;
}

/* ---- closing ---- */

/* Everything this keeper knew is on disk or acknowledged, and none of its processes runs: the next
 * keeper may continue its epoch. */
static void end_epoch(struct gl_keeper *k)
{
    struct gl_why why;
    const char *folder = gl_str_fmt(&k->scratch, "%s/keeper", k->config.data_dir).p;

    GL_ASSERT(k->over);
    if (k->lost || !k->epoch_saved || !is_idle(k)) {
        return;
    }
    k->epoch.running = false;
    k->epoch.mark = 0;
    k->epoch.cgroup[0] = 0;
    bool synced = gl_journal_wait(&k->journal, &why) == 0;
    if (synced && gl_map_count(&k->attempts) == 0) {
        gl_journal_clear(&k->journal);
    }
    if (!synced || fdatasync(k->journal.fd) < 0 || gl_epoch_save(&k->epoch, folder, &why) < 0) {
        gl_keeper_log("cannot shut down cleanly: the next keeper begins a new epoch");
    }
}

void gl_keeper_close(struct gl_keeper *k)
{
    char cgroup[sizeof(k->epoch.cgroup)];
    memcpy(cgroup, k->epoch.cgroup, sizeof(cgroup));
    if (k->listener.fd >= 0) {
        (void)unlink(gl_str_fmt(&k->scratch, "%s/keeper/sock", k->config.data_dir).p);
    }
    gl_client_close_all(k);
    if (k->over) {
        end_epoch(k);
    }
    gl_cgroup_leave(cgroup);
    gl_dir_cache_clear(k);
    gl_trash_close(k);
    gl_proctree_close(k);
    gl_attempt_free_all(k);
    gl_capture_free_closed(k);
    gl_journal_close(&k->journal);
    gl_heap_done(&k->timers);
    gl_buf_done(&k->lines);
    gl_buf_done(&k->clean);
    gl_buf_done(&k->plain);
    gl_map_done(&k->redactors);
    gl_keeper_unwatch(&k->signals);
    gl_keeper_unwatch(&k->alarm);
    gl_fs_closep(&k->epoll_fd);
    gl_fs_closep(&k->null_fd);
    gl_fs_closep(&k->contexts_fd);
    if (k->stack != NULL && k->stack != MAP_FAILED) {
        (void)munmap(k->stack, GL_LAUNCH_STACK_BYTES);
    }
    gl_arena_done(&k->scratch);
    gl_fs_closep(&k->lock_fd); /* last: the next holder must find everything in order */
}
