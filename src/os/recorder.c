#include "os/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/fs.h"

enum {
    QUEUE_BYTES_MAX = 8 << 20, /* waiting to be written */
    GATHER_MS = 20,            /* how long lines are collected before they are written */
    DIGITS = 6,
    PIECE_BYTES = 256 << 10, /* about one check per this many bytes */
};

struct piece {
    struct piece *next;
    size_t begins_with; /* size of a snapshot that begins a segment; 0: none */
    bool ends;          /* the segment ends: the queue was full */
    struct gl_buf text;
};

struct gl_recorder {
    struct gl_recording_port port;
    struct gl_arena strings;
    const char *folder;
    uint64_t bytes_max;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t moved;
    struct piece *first, *last;
    size_t queued;
    bool closing;

    /* Used by the thread only. */
    int fd;          /* -1: no segment is open */
    uint64_t number; /* of the last segment */
    struct gl_recording_chain chain;
    bool lost; /* a write failed, and no segment records that yet */
};

/* ---- segments as files ---- */

const char *gl_recorder_path(struct gl_arena *a, const char *folder, uint64_t number)
{
    return gl_str_fmt(a, "%s/%0*llu" GL_RECORDER_ENDING, folder, DIGITS, (unsigned long long)number)
        .p;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int gl_recorder_list(const char *folder, struct gl_arena *a, uint64_t **ret, size_t *ret_n,
                     struct gl_why *reterr_why)
{
    DIR *d = opendir(folder);
    uint64_t *all = NULL;
    size_t n = 0, cap = 0;

    if (d == NULL && errno != ENOENT) {
        return gl_fs_why(reterr_why, errno, "open", folder);
    }
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        gl_str name = gl_str_of(e->d_name);
        uint64_t number;

        if (!gl_str_ends(name, GL_S(GL_RECORDER_ENDING)) ||
            !gl_str_u64((gl_str){.p = name.p, .n = name.n - sizeof(GL_RECORDER_ENDING) + 1},
                        &number)) {
            continue;
        }
        if (n == cap) {
            uint64_t *more = GL_NEW_ARRAY(a, uint64_t, cap * 2 + 8);

            if (n > 0) {
                memcpy(more, all, n * sizeof(*more));
            }
            all = more;
            cap = cap * 2 + 8;
        }
        all[n++] = number;
    }
    if (d != NULL) {
        (void)closedir(d); /* it was only read */
    }
    if (n > 0) {
        qsort(all, n, sizeof(*all), by_number);
    }
    *ret = all;
    *ret_n = n;
    return 0;
}

static uint64_t bytes_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Remove the oldest segments until there is room for `bytes`. */
static void make_room(struct gl_recorder *r, uint64_t bytes)
{
    struct gl_arena a = {0};
    uint64_t *numbers = NULL, sum = 0;
    size_t n = 0;

    if (gl_recorder_list(r->folder, &a, &numbers, &n, NULL) == 0) {
        uint64_t room = bytes < r->bytes_max ? r->bytes_max - bytes : 0;

        for (size_t i = n; i-- > 0;) {
            const char *path = gl_recorder_path(&a, r->folder, numbers[i]);

            sum += bytes_of(path);
            if (sum > room || n - i >= GL_RECORDER_FILES_MAX) {
                (void)unlink(path); /* one that cannot be removed is found again */
            }
        }
    }
    gl_arena_done(&a);
}

/* The target size of a segment that begins with this many bytes, as node/flight_recorder.c decides
 * it. */
static uint64_t expected_bytes(const struct gl_recorder *r, size_t begins_with)
{
    uint64_t events = (uint64_t)begins_with * GL_RECORDING_EVENTS_PER_SNAPSHOT;

    events = events > r->port.segment_bytes ? events : r->port.segment_bytes;
    return begins_with + events + events / 16;
}

static void begin_segment(struct gl_recorder *r, size_t begins_with)
{
    struct gl_arena a = {0};

    gl_fs_closep(&r->fd);
    make_room(r, expected_bytes(r, begins_with));
    r->fd = open(gl_recorder_path(&a, r->folder, r->number + 1),
                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* A number is used only once its file exists, so a missing number means that its file was
     * there. */
    r->number += r->fd >= 0 || errno == EEXIST;
    gl_arena_done(&a);
}

static bool write_all(int fd, gl_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        bytes.p += n;
        bytes.n -= (size_t)n;
    }
    return true;
}

static void write_piece(struct gl_recorder *r, struct piece *p)
{
    struct gl_recording_chain chain = r->chain;

    if (p->begins_with > 0) {
        begin_segment(r, p->begins_with);
    }
    if (p->ends) {
        gl_buf_c(&p->text, "{\"gap\":\"the node was faster than the disk\"}\n");
    }
    if (r->fd < 0 || p->text.n == 0) {
        r->lost = r->lost || p->text.n > 0;
        return;
    }
    if (p->begins_with > 0 && r->lost) {
        gl_buf_c(&p->text, "{\"gap\":\"the disk did not take what came before\"}\n");
    }
    gl_recording_put_check(&chain, gl_buf_view(&p->text), &p->text);
    if (write_all(r->fd, gl_buf_view(&p->text))) {
        r->chain = chain;
        r->lost = r->lost && p->begins_with == 0;
    } else {
        gl_fs_closep(&r->fd); /* the disk is full: continue with the next segment, if possible */
        r->lost = true;
    }
}

/* ---- the thread ---- */

static void piece_free(struct piece *p)
{
    gl_buf_done(&p->text);
    gl_mem_free(p);
}

static void gather(void)
{
    struct timespec t = {.tv_nsec = GATHER_MS * 1000000L};

    (void)nanosleep(&t, NULL); /* a little less is fine */
}

static struct piece *take_all(struct gl_recorder *r, bool *ret_closing)
{
    struct piece *all;

    pthread_mutex_lock(&r->mutex);
    while (r->first == NULL && !r->closing) {
        pthread_cond_wait(&r->moved, &r->mutex);
    }
    if (!r->closing) {
        pthread_mutex_unlock(&r->mutex);
        gather();
        pthread_mutex_lock(&r->mutex);
    }
    all = r->first;
    r->first = r->last = NULL;
    r->queued = 0;
    *ret_closing = r->closing;
    pthread_mutex_unlock(&r->mutex);
    return all;
}

static void *run(void *owner)
{
    struct gl_recorder *r = owner;
    bool closing = false;

    (void)pthread_setname_np(pthread_self(),
                             "glia-recorder"); /* for people inspecting the threads */
    while (!closing) {
        for (struct piece *p = take_all(r, &closing), *next; p != NULL; p = next) {
            next = p->next;
            write_piece(r, p);
            piece_free(p);
        }
    }
    gl_fs_closep(&r->fd);
    return NULL;
}

/* ---- the port ---- */

static struct piece *piece_add(struct gl_recorder *r)
{
    struct piece *p = gl_mem_alloc(sizeof(*p));

    if (r->last != NULL) {
        r->last->next = p;
    } else {
        r->first = p;
        pthread_cond_signal(&r->moved);
    }
    r->last = p;
    return p;
}

static bool begin(struct gl_recording_port *port, gl_str bytes)
{
    struct gl_recorder *r = GL_CONTAINER(port, struct gl_recorder, port);
    struct piece *p;
    bool fits;

    GL_ASSERT(bytes.n > 0);
    pthread_mutex_lock(&r->mutex);
    fits = r->queued + bytes.n <= QUEUE_BYTES_MAX + port->begin_bytes_max;
    if (fits) {
        p = piece_add(r);
        p->begins_with = bytes.n;
        gl_buf_str(&p->text, bytes);
        r->queued += bytes.n;
    }
    pthread_mutex_unlock(&r->mutex);
    return fits;
}

static bool add(struct gl_recording_port *port, gl_str bytes)
{
    struct gl_recorder *r = GL_CONTAINER(port, struct gl_recorder, port);
    struct piece *p;
    bool fits;

    pthread_mutex_lock(&r->mutex);
    fits = r->queued + bytes.n <= QUEUE_BYTES_MAX + port->begin_bytes_max;
    p = r->last != NULL && r->last->text.n < PIECE_BYTES ? r->last : piece_add(r);
    if (fits) {
        if (p->text.n == 0) { /* once, not again and again as it grows */
            (void)gl_buf_reserve(&p->text, PIECE_BYTES + PIECE_BYTES / 4);
        }
        gl_buf_str(&p->text, bytes);
        r->queued += bytes.n;
    } else {
        p->ends = true;
    }
    pthread_mutex_unlock(&r->mutex);
    return fits;
}

/* ---- life ---- */

static int last_number(struct gl_recorder *r, struct gl_why *reterr_why)
{
    struct gl_arena a = {0};
    uint64_t *numbers;
    size_t n;
    int rc = gl_recorder_list(r->folder, &a, &numbers, &n, reterr_why);

    if (rc == 0) {
        r->number = n > 0 ? numbers[n - 1] : 0;
    }
    gl_arena_done(&a);
    return rc;
}

static void recorder_free(struct gl_recorder *r)
{
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    gl_arena_done(&r->strings);
    gl_mem_free(r);
}

int gl_recorder_open(struct gl_recorder **ret, const char *folder, uint64_t bytes_max,
                     struct gl_why *reterr_why)
{
    struct gl_recorder *r;
    int rc = gl_fs_mkdirs(folder, reterr_why);

    if (rc != 0) {
        return rc;
    }
    r = gl_mem_alloc(sizeof(*r));
    r->folder = gl_str_c(&r->strings, gl_str_of(folder));
    r->bytes_max = bytes_max > GL_RECORDER_BYTES_MIN ? bytes_max : GL_RECORDER_BYTES_MIN;
    r->fd = -1;
    r->port =
        (struct gl_recording_port){.segment_bytes = (size_t)(r->bytes_max / GL_RECORDER_SEGMENTS),
                                   .begin_bytes_max = (size_t)(r->bytes_max / GL_RECORDER_SEGMENTS),
                                   .begin = begin,
                                   .add = add};
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->moved, NULL);
    rc = last_number(r, reterr_why);
    if (rc == 0 && pthread_create(&r->thread, NULL, run, r) != 0) {
        rc = gl_why(reterr_why, GL_E_IO, "cannot start a thread for the recorder");
    }
    if (rc != 0) {
        recorder_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

struct gl_recording_port *gl_recorder_port(struct gl_recorder *r)
{
    return r != NULL ? &r->port : NULL;
}

void gl_recorder_close(struct gl_recorder *r)
{
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->mutex);
    r->closing = true;
    pthread_cond_signal(&r->moved);
    pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL); /* it exists and was started */
    recorder_free(r);
}
