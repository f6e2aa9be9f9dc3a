#include "keeper/proctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/fs.h"

enum {
    MARK_SEQ_BITS = 24,          /* numbers the attempts of one keeper */
    END_ROUNDS_MAX = 200,        /* rounds of killing leftovers ... */
    END_ROUND_NS = 10 * 1000000, /* ... and the pause between them */
    ENVIRON_BYTES_MAX = 256 << 10,
    CHILD_BYTES_MAX = 16, /* a pid and a space */
};

/* ---- marks ---- */

/* All marks of one keeper share their upper bits: a power of two below the limit we may set, plus
 * random bits. */
static uint64_t choose_marks(void)
{
    struct rlimit now;
    uint64_t chance;
    if (getrlimit(RLIMIT_RTTIME, &now) < 0 ||
        getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance)) {
        return 0;
    }
    uint64_t top = 1ull << 61;
    while (top > now.rlim_max / 2 &&
           top > 0) { /* inside a step of another keeper: stay below its mark */
        top >>= 1;
    }
    if (top < 1ull << (MARK_SEQ_BITS + 16)) {
        return 0;
    }
    return (top | (chance & (top - 1))) >> MARK_SEQ_BITS << MARK_SEQ_BITS;
}

uint64_t gl_proctree_new_mark(struct gl_keeper *k)
{
    if (k->epoch.mark == 0) {
        return 0;
    }
    k->mark_seq = (k->mark_seq + 1) & ((1u << MARK_SEQ_BITS) - 1);
    GL_ASSERT(k->mark_seq < 1u << MARK_SEQ_BITS);
    return k->epoch.mark | k->mark_seq;
}

static bool same_keeper(uint64_t mark, uint64_t base)
{
    return base != 0 && mark >> MARK_SEQ_BITS == base >> MARK_SEQ_BITS;
}

static uint64_t mark_of(pid_t pid)
{
    struct rlimit r;
    return prlimit(pid, RLIMIT_RTTIME, NULL, &r) == 0 ? r.rlim_max : 0;
}

/* ---- opening ---- */

int gl_proctree_open(struct gl_keeper *k, struct gl_why *reterr_why)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        return gl_why(reterr_why, GL_E_IO, "cannot become a sub-reaper: %s", strerror(errno));
    }
    k->epoch.mark = choose_marks();
    k->children_fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    return 0;
}

void gl_proctree_close(struct gl_keeper *k)
{
    struct gl_proc *p;
    for (size_t i = 0; (p = gl_map_next(&k->procs, &i)) != NULL;) {
        gl_proctree_remove(k, p);
    }
    GL_ASSERT(gl_map_count(&k->procs) == 0);
    gl_map_done(&k->procs);
    gl_fs_closep(&k->children_fd);
}

/* ---- known processes ---- */

static gl_str pid_key(const pid_t *pid)
{
    return (gl_str){.p = (const char *)pid, .n = sizeof(*pid)};
}

void gl_proctree_add(struct gl_keeper *k, struct gl_proc *p)
{
    GL_ASSERT(p->pid > 0);
    gl_map_add(&k->procs, pid_key(&p->pid), p);
}

struct gl_proc *gl_proctree_find(struct gl_keeper *k, pid_t pid)
{
    return gl_map_find(&k->procs, pid_key(&pid));
}

void gl_proctree_remove(struct gl_keeper *k, struct gl_proc *p)
{
    (void)gl_map_remove(&k->procs, pid_key(&p->pid));
    if (!p->direct) {
        GL_ASSERT(k->strays_n > 0 || p->attempt != NULL);
        k->strays_n -= p->attempt == NULL;
        gl_list_remove(&p->link);
        gl_mem_free(p);
    }
}

/* ---- orphans ---- */

static bool environ_says(gl_str entries, const char *name, gl_str value)
{
    while (entries.n > 0) {
        gl_str found;
        gl_str entry = gl_str_cut(entries, 0, &entries);
        gl_str key = gl_str_cut(entry, '=', &found);
        if (gl_str_is(key, name)) {
            return gl_str_eq(found, value);
        }
    }
    return false;
}

static struct gl_attempt *find_by_environ(struct gl_keeper *k, pid_t pid)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (gl_fs_read(path, ENVIRON_BYTES_MAX, &text, NULL) < 0) {
        return NULL;
    }
    struct gl_attempt *a;
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (a->state <= GL_ATTEMPT_CLEARING &&
            environ_says(gl_buf_view(&text), "GLIA_ATTEMPT_ID", a->key.attempt) &&
            environ_says(gl_buf_view(&text), "GLIA_JOB_ID", a->key.job)) {
            return a;
        }
    }
    return NULL;
}

static struct gl_attempt *find_by_mark(struct gl_keeper *k, uint64_t mark)
{
    struct gl_attempt *a;
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (a->mark == mark && a->state <= GL_ATTEMPT_CLEARING) {
            return a;
        }
    }
    return NULL;
}

static void adopt(struct gl_keeper *k, pid_t pid)
{
    uint64_t mark = mark_of(pid);
    bool ours = same_keeper(mark, k->epoch.mark);
    struct gl_attempt *a = ours ? find_by_mark(k, mark) : find_by_environ(k, pid);
    struct gl_proc *p = gl_mem_alloc(sizeof(*p));
    p->pid = pid;
    p->attempt = a;
    gl_list_init(&p->link);
    gl_proctree_add(k, p);
    if (a != NULL) {
        gl_list_push(&a->adopted, &p->link);
    } else {
        k->strays_n++;
    }
    /* It is our child and was not waited for, so the pid cannot have been reused. */
    if (a != NULL ? a->state != GL_ATTEMPT_RUNNING : ours || k->running_n == 0) {
        (void)kill(pid, SIGKILL);
    }
}

static void kill_strays(struct gl_keeper *k)
{
    struct gl_proc *p;

    GL_ASSERT(k->running_n == 0);
    for (size_t i = 0; (p = gl_map_next(&k->procs, &i)) != NULL;) {
        if (p->attempt == NULL) {
            (void)kill(p->pid, SIGKILL);
        }
    }
}

void gl_proctree_kill_adopted(struct gl_attempt *a)
{
    for (struct gl_link *l = a->adopted.next; l != &a->adopted; l = l->next) {
        (void)kill(GL_CONTAINER(l, struct gl_proc, link)->pid, SIGKILL);
    }
}

/* Read the list of our children: numbers separated by spaces. */
static bool read_children(struct gl_keeper *k, struct gl_buf *out)
{
    char bytes[4096];
    ssize_t n;
    if (k->children_fd < 0) {
        return false;
    }
    while ((n = pread(k->children_fd, bytes, sizeof(bytes), (off_t)out->n)) > 0) {
        gl_buf_add(out, bytes, (size_t)n);
        if ((size_t)n < sizeof(bytes) - CHILD_BYTES_MAX) {
            break; /* another number would have fitted: this was the end */
        }
    }
    return n >= 0;
}

/* The same from /proc, for kernels without that list. */
static void find_children(struct gl_buf *out)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    while (proc != NULL && (e = readdir(proc)) != NULL) {
        char path[64], text[512];
        int ppid = 0;
        long pid = strtol(e->d_name, NULL, 10);
        if (pid <= 0) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
        GL_CLEANUP(gl_fs_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0) {
            continue;
        }
        text[n] = 0;
        const char *name_end = strrchr(text, ')'); /* the name may contain anything, even ')' */
        if (name_end != NULL && sscanf(name_end + 1, " %*c %d", &ppid) == 1 && ppid == getpid()) {
            gl_buf_fmt(out, "%ld ", pid);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
}

void gl_proctree_sweep(struct gl_keeper *k)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf list = {0};
    if (!read_children(k, &list)) {
        gl_buf_reset(&list);
        find_children(&list);
    }
    size_t n = 0;
    for (size_t i = 0; i < list.n; i++) {
        n += list.p[i] == ' ';
    }
    gl_str rest = gl_buf_view(&list);
    while (n > gl_map_count(&k->procs) && rest.n > 0) { /* otherwise all children are known */
        uint64_t pid;
        if (gl_str_u64(gl_str_cut(rest, ' ', &rest), &pid) &&
            gl_proctree_find(k, (pid_t)pid) == NULL) {
            adopt(k, (pid_t)pid);
        }
    }
    if (k->strays_n > 0 && k->running_n == 0) {
        kill_strays(k);
    }
}

/* ---- leftovers of an earlier keeper ---- */

uint64_t gl_proctree_ticks(void)
{
    struct timespec t;
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000u;
}

void gl_proctree_end_process(uint64_t pid, uint64_t ticks_min, uint64_t ticks_max)
{
    char path[64];
    unsigned long long ticks = 0;
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    (void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
    if (pid <= 1 || pid > INT32_MAX || gl_fs_read(path, 4096, &text, NULL) < 0) {
        return;
    }
    gl_buf_char(&text, 0);
    const char *name_end = strrchr(text.p, ')');
    /* Field 22 is the start time; the state, field 3, follows the name. */
    if (name_end == NULL ||
        sscanf(name_end + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1) {
        return;
    }
    if (ticks >= ticks_min && ticks <= ticks_max) {
        (void)kill(-(pid_t)pid, SIGKILL); /* it leads its own group */
        (void)kill((pid_t)pid, SIGKILL);
    }
}

/* A zombie keeps its limits and still accepts signals. */
static bool is_dead(pid_t pid)
{
    char path[64];
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};

    GL_ASSERT(pid > 0);
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (gl_fs_read(path, 4096, &text, NULL) < 0) {
        return true;
    }
    gl_buf_char(&text, 0);
    const char *name_end = strrchr(text.p, ')');
    return name_end == NULL || strlen(name_end) < 3 || name_end[2] == 'Z' || name_end[2] == 'X';
}

static size_t kill_marked(uint64_t mark)
{
    size_t n = 0;
    DIR *proc = opendir("/proc");
    struct dirent *e;

    GL_ASSERT(mark != 0);
    while (proc != NULL && (e = readdir(proc)) != NULL) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 1 && pid != getpid() && same_keeper(mark_of((pid_t)pid), mark) &&
            !is_dead((pid_t)pid)) {
            n += kill((pid_t)pid, SIGKILL) == 0;
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return n;
}

size_t gl_proctree_end_marked(uint64_t mark)
{
    size_t left = 0;
    if (mark == 0 || same_keeper(mark_of(getpid()), mark)) {
        return 0; /* no marks, or we were started by one of its steps */
    }
    for (int i = 0; i < END_ROUNDS_MAX; i++) {
        left = kill_marked(mark);
        if (left == 0) {
            break;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = END_ROUND_NS}, NULL);
    }
    return left;
}
