#include "os/crash_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "os/fs.h"
#include "os/paths.h"

enum { PAGE_BYTES = 4096, FILE_BYTES_MAX = 64 << 10 };

static const char magic[8] = "gliacm1";

struct gl_crash_counter_page {
    char magic[8];
    char job[GL_ULID_BYTES + 6]; /* NUL-terminated; "": nothing is handled */
};

static gl_ms system_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the counts ---- */

static void remove_suspect(struct gl_crash_counter *m, size_t i)
{
    m->suspects_n--;
    memmove(&m->suspects[i], &m->suspects[i + 1], (m->suspects_n - i) * sizeof(m->suspects[0]));
}

static struct gl_crash_counter_suspect *find(struct gl_crash_counter *m, gl_str job)
{
    for (size_t i = 0; i < m->suspects_n; i++) {
        if (gl_str_is(job, m->suspects[i].job)) {
            return &m->suspects[i];
        }
    }
    return NULL;
}

/* They are in the order of their last crashes. */
static struct gl_crash_counter_suspect *add(struct gl_crash_counter *m, gl_str job)
{
    struct gl_crash_counter_suspect *s;

    if (m->suspects_n == GL_CRASH_COUNTER_SUSPECTS_MAX) {
        remove_suspect(m, 0);
    }
    s = &m->suspects[m->suspects_n++];
    *s = (struct gl_crash_counter_suspect){0};
    memcpy(s->job, job.p, job.n);
    return s;
}

static bool is_job(gl_str job)
{
    return job.n <= GL_ULID_BYTES && gl_str_is_id(job);
}

static void write_counts(const struct gl_crash_counter *m)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "suspects");
    gl_jw_array(&w);
    for (size_t i = 0; i < m->suspects_n; i++) {
        char when[GL_TIMES_BYTES];

        gl_jw_object(&w);
        gl_jw_key(&w, "job_id");
        gl_jw_c(&w, m->suspects[i].job);
        gl_jw_key(&w, "crashes");
        gl_jw_u64(&w, m->suspects[i].crashes);
        gl_jw_key(&w, "last");
        gl_jw_str(&w, gl_times_format(m->suspects[i].seen_at, when));
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_buf_char(&out, '\n');
    /* If the disk cannot take the counts, more important writes report that. */
    (void)gl_fs_write(m->path, gl_buf_view(&out), NULL);
}

static void read_counts(struct gl_crash_counter *m)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_json j;
    gl_jnode all;

    if (gl_fs_read(m->path, FILE_BYTES_MAX, &text, NULL) != 0 ||
        gl_json_parse(&j, gl_buf_view(&text), FILE_BYTES_MAX, &a, NULL) != 0) {
        return;
    }
    all = gl_json_get(&j, gl_json_root(&j), "suspects");
    for (gl_jnode e = gl_json_first(&j, all); e; e = gl_json_after(&j, all, e)) {
        gl_str job = gl_json_str(&j, gl_json_get(&j, e, "job_id"), &a);
        struct gl_crash_counter_suspect *s;
        uint64_t crashes;

        if (!is_job(job) || find(m, job) != NULL ||
            !gl_json_u64(&j, gl_json_get(&j, e, "crashes"), &crashes)) {
            continue;
        }
        s = add(m, job);
        s->crashes = crashes > UINT32_MAX ? UINT32_MAX : (uint32_t)crashes;
        (void)gl_times_parse(gl_json_str(&j, gl_json_get(&j, e, "last"), &a), &s->seen_at);
    }
}

/* The last process died while it handled this job. */
static void count_crash(struct gl_crash_counter *m, gl_str job)
{
    struct gl_crash_counter_suspect *s = find(m, job);
    uint32_t before = s != NULL ? s->crashes : 0;

    if (s != NULL) {
        remove_suspect(m, (size_t)(s - m->suspects));
    }
    s = add(m, job);
    s->crashes = before == UINT32_MAX ? before : before + 1;
    s->seen_at = m->now();
    write_counts(m);
}

static void list_quarantined(struct gl_crash_counter *m, struct gl_arena *a)
{
    for (size_t i = 0; i < m->suspects_n; i++) {
        if (m->suspects[i].crashes >= GL_CRASH_COUNTER_CRASHES_MAX) {
            m->quarantined[m->quarantined_n++] = gl_str_dup(a, gl_str_of(m->suspects[i].job));
        }
    }
}

/* ---- the mark ---- */

static int map_page(struct gl_crash_counter *m, const char *path, struct gl_why *reterr_why)
{
    struct gl_crash_counter_page *page;
    char bytes[PAGE_BYTES] = "";
    GL_CLEANUP(gl_fs_closep)
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0) {
        return gl_fs_why(reterr_why, errno, "open", path);
    }
    if (pread(fd, bytes, sizeof(bytes), 0) < 0) {
        return gl_fs_why(reterr_why, errno, "read", path);
    }
    /* The page is written in full, so that it has its space on the disk: storing into the mapping
     * later cannot kill the process when the disk is full. */
    if (pwrite(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return gl_fs_why(reterr_why, errno != 0 ? errno : ENOSPC, "write", path);
    }
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        return gl_fs_why(reterr_why, errno, "map", path);
    }
    m->page = page;
    return 0;
}

/* The job in the mark that was left behind; "": none. */
static gl_str left_behind(const struct gl_crash_counter_page *p)
{
    size_t n = strnlen(p->job, sizeof(p->job));
    gl_str job = {.p = p->job, .n = n};

    return memcmp(p->magic, magic, sizeof(magic)) == 0 && is_job(job) ? job : (gl_str){0};
}

int gl_crash_counter_open(struct gl_crash_counter *ret, const char *data, gl_ms (*now)(void),
                          struct gl_arena *a, struct gl_why *reterr_why)
{
    gl_str job;
    int err;

    *ret = (struct gl_crash_counter){
        .path = gl_paths_in(a, data, "crash.json"),
        .now = now != NULL ? now : system_now,
        .suspects = GL_NEW_ARRAY(a, struct gl_crash_counter_suspect, GL_CRASH_COUNTER_SUSPECTS_MAX),
    };
    err = map_page(ret, gl_paths_in(a, data, "crash.mark"), reterr_why);
    if (err != 0) {
        return err;
    }
    read_counts(ret);
    job = left_behind(ret->page);
    if (job.n > 0) {
        count_crash(ret, job);
    }
    memset(ret->page, 0, sizeof(*ret->page));
    memcpy(ret->page->magic, magic, sizeof(magic));
    list_quarantined(ret, a);
    return 0;
}

/* Forget jobs that were handled without a crash since `until`. */
static void forget_well(struct gl_crash_counter *m, gl_ms until)
{
    size_t before = m->suspects_n;

    for (size_t i = m->suspects_n; i > 0; i--) {
        const struct gl_crash_counter_suspect *s = &m->suspects[i - 1];

        if (s->well_at != 0 && s->well_at <= until) {
            remove_suspect(m, i - 1);
        }
    }
    if (m->suspects_n != before) {
        write_counts(m);
    }
}

void gl_crash_counter_close(struct gl_crash_counter *m)
{
    if (m->page == NULL) {
        return;
    }
    gl_crash_counter_set(m, (gl_str){0});
    forget_well(m, INT64_MAX);
    (void)munmap(m->page, PAGE_BYTES);
    m->page = NULL;
}

/* Rare: a job has crashed the node, and we want to know whether it does so again. */
static void watch_suspects(struct gl_crash_counter *m)
{
    struct gl_crash_counter_suspect *s = m->current.n > 0 ? find(m, m->current) : NULL;
    gl_ms now = m->now();

    if (s != NULL && s->well_at == 0 &&
        (m->is_quarantined == NULL || !m->is_quarantined(m->owner, m->current))) {
        s->well_at = now;
    }
    forget_well(m, now - GL_CRASH_COUNTER_WELL_MS);
}

void gl_crash_counter_set(struct gl_crash_counter *m, gl_str job)
{
    size_t n = job.n < sizeof(m->page->job) ? job.n : sizeof(m->page->job) - 1;

    /* The previous job was handled without a crash. */
    if (m->suspects_n > 0) {
        watch_suspects(m);
    }
    if (n > 0) {
        memcpy(m->page->job, job.p, n);
    }
    m->page->job[n] = '\0';
    m->current = job;
}
