#include "os/overdue.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/mem.h"
#include "os/fs.h"
#include "os/humanfile.h"

enum { SEEN_MAX = 100000, PATH_BYTES = 512 };

struct seen {
    gl_str run_id; /* behind it */
    struct timespec changed;
    off_t bytes;
    gl_ms due; /* INT64_MAX: nothing in it */
    int told;  /* the error that stands in the log */
};

void gl_overdue_init(struct gl_overdue *o)
{
    *o = (struct gl_overdue){0};
    atomic_init(&o->stops, false);
    gl_map_init(&o->seen);
}

static void forget_all(struct gl_overdue *o)
{
    struct seen *s;

    for (size_t i = 0; (s = gl_map_next(&o->seen, &i)) != NULL;) {
        gl_mem_free(s);
    }
    gl_map_done(&o->seen);
}

void gl_overdue_done(struct gl_overdue *o)
{
    forget_all(o);
}

static struct seen *remember(struct gl_overdue *o, gl_str run_id)
{
    struct seen *s = gl_map_find(&o->seen, run_id);

    if (s != NULL) {
        return s;
    }
    if (gl_map_count(&o->seen) >= SEEN_MAX) { /* they are read once more */
        forget_all(o);
        gl_map_init(&o->seen);
    }
    s = gl_mem_alloc(sizeof(*s) + run_id.n);
    memcpy(s + 1, run_id.p, run_id.n);
    s->run_id = (gl_str){.p = (const char *)(s + 1), .n = run_id.n};
    s->bytes = -1;
    gl_map_add(&o->seen, s->run_id, s);
    return s;
}

static void say(struct gl_overdue *o, gl_str run_id, const char *what)
{
    char line[2048];

    (void)snprintf(line, sizeof(line), "run %.*s: %.1500s", GL_STR_ARG(run_id), what);
    o->log(o->owner, line);
}

/* Something in it is over. */
static void expire(struct gl_overdue *o, struct seen *s, gl_ms now)
{
    struct gl_why why;
    size_t n;
    int err;

    switch (o->ask(o->owner, s->run_id)) {
    case GL_OVERDUE_LATER:
        return;
    case GL_OVERDUE_OTHER:
        s->due = INT64_MAX; /* unless it changes */
        return;
    case GL_OVERDUE_LIVE:
        break;
    }
    err = gl_humanfile_expire(o->root, s->run_id, now, &n, &why);
    if (err != 0) {
        if (err != s->told) { /* it is met again at every look */
            say(o, s->run_id, why.text);
        }
        s->told = err;
        return;
    }
    s->told = 0;
    s->bytes = -1; /* it is another now */
    if (n > 0) {
        say(o, s->run_id, "nobody has answered in time: the default decision is written down");
    }
}

static void look_at(struct gl_overdue *o, gl_str run_id, const struct stat *st, gl_ms now)
{
    struct seen *s = remember(o, run_id);

    if (s->bytes != st->st_size || s->changed.tv_sec != st->st_mtim.tv_sec ||
        s->changed.tv_nsec != st->st_mtim.tv_nsec) {
        if (gl_humanfile_due(o->root, run_id, &s->due, NULL) != 0) {
            return; /* next time */
        }
        s->bytes = st->st_size;
        s->changed = st->st_mtim;
    }
    if (s->due <= now) {
        expire(o, s, now);
    }
}

void gl_overdue_look(struct gl_overdue *o, gl_ms now)
{
    DIR *folder = opendir(o->root);
    const struct dirent *e;

    while (folder != NULL && !atomic_load(&o->stops) && (e = readdir(folder)) != NULL) {
        gl_str run_id = gl_str_of(e->d_name);
        char path[PATH_BYTES];
        struct stat st;

        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || !gl_str_is_id(run_id)) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/human.jsonl", e->d_name);
        if (fstatat(dirfd(folder), path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            look_at(o, run_id, &st, now);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}
