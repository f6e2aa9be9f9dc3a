/* full_store.c - commits of one store, one by one, for bench/full, which fills the store meanwhile.
 *
 *   full_store DATA URL      URL: "" is SQLite in the folder DATA
 *
 * Reads lines and answers each with the code of the commit (0: committed) and 1 if the store has no
 * room:
 *   probe BYTES      one record of random bytes, always the same, as core/cluster/store_full.c
 *   forget           delete it
 *   job BYTES        what a submission of about this size writes: records, indexes, logs
 *   step             what the end of a step writes: the last job's records again, two log entries
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/stores.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "os/loop.h"

enum { STEP_BYTES = 500, LOG_BYTES = 150, WRITES_MAX = 16 };

struct full {
    struct gl_loop *loop;
    struct gl_store *store;
    struct gl_store_req req;
    struct gl_rng rng;
    struct gl_arena arena;
    struct gl_write writes[WRITES_MAX];
    size_t writes_n;
    unsigned jobs_n;
    int64_t seq;
};

static void on_done(struct gl_store_req *req)
{
    gl_loop_stop(((struct full *)req->owner)->loop);
}

static gl_str random_text(struct full *f, size_t n)
{
    char *p = gl_arena_alloc(&f->arena, n + 1);

    gl_rng_fill(&f->rng, p, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        p[i] = (char)('a' + (unsigned char)p[i] % 26);
    }
    return (gl_str){.p = p, .n = n};
}

static struct gl_write *add(struct full *f, enum gl_write_type type, const char *kind, gl_str id)
{
    struct gl_write *w = &f->writes[f->writes_n++];

    GL_ASSERT(f->writes_n <= WRITES_MAX);
    *w = (struct gl_write){.type = type, .kind = gl_str_of(kind), .id = id};
    return w;
}

static void put(struct full *f, const char *kind, gl_str id, size_t bytes)
{
    struct gl_write *w = add(f, GL_WRITE_PUT, kind, id);

    w->rev = 1;
    w->live = true;
    w->value = random_text(f, bytes);
}

static void add_logs(struct full *f, gl_str id)
{
    for (int i = 0; i < 2; i++) {
        struct gl_write *w = add(f, GL_WRITE_LOG, "event", id);

        w->seq = ++f->seq;
        w->value = random_text(f, LOG_BYTES);
    }
}

static void put_job(struct full *f, bool is_new, size_t bytes)
{
    f->jobs_n += is_new;
    f->seq = is_new ? 0 : f->seq;
    gl_str id = gl_str_fmt(&f->arena, "01MCC5T7EBAJZCWMCM%08u", f->jobs_n);
    gl_str step = gl_str_fmt(&f->arena, "%.*s/build", GL_STR_ARG(id));

    put(f, "job", id, STEP_BYTES);
    put(f, "step", step, STEP_BYTES);
    if (is_new) {
        put(f, "flow", gl_str_fmt(&f->arena, "%.*s-flow", GL_STR_ARG(id)), bytes);
        add(f, GL_WRITE_INDEX, "wake", id)->score = f->jobs_n;
        add(f, GL_WRITE_INDEX, "state/running", id)->score = f->jobs_n;
    }
    add_logs(f, id);
}

static void commit(struct full *f)
{
    struct gl_tx tx = {.context = GL_CONTEXT_DEFAULT, .writes = f->writes, .writes_n = f->writes_n};

    f->req = (struct gl_store_req){.done = on_done, .owner = f};
    f->store->ops->commit(f->store, &f->req, &tx);
    gl_loop_run(f->loop);
    (void)printf("%d %d %s\n", f->req.status, f->req.status != 0 && f->req.why.needs_help,
                 f->req.status != 0 ? f->req.why.text : "");
    (void)fflush(stdout);
    gl_arena_reset(&f->arena);
    f->writes_n = 0;
}

static void obey(struct full *f, const char *line)
{
    if (strncmp(line, "probe ", 6) == 0) {
        put(f, "room", GL_S("n1"), (size_t)atoi(line + 6));
        f->writes[0].live = false;
    } else if (strncmp(line, "job ", 4) == 0) {
        put_job(f, true, (size_t)atoi(line + 4));
    } else if (strncmp(line, "step", 4) == 0) {
        put_job(f, false, 0);
    } else {
        (void)add(f, GL_WRITE_DELETE, "room", GL_S("n1"));
    }
    commit(f);
}

int main(int argc, char **argv)
{
    struct full f = {0};
    struct gl_why why;
    char line[100];

    if (argc != 3) {
        (void)fprintf(stderr, "usage: full_store DATA URL\n");
        return 2;
    }
    struct gl_stores_config config = {.url = argv[2], .data = argv[1]};
    if (gl_loop_new(&f.loop, &why) != 0 || gl_stores_open(&f.store, &config, f.loop, &why) != 0) {
        (void)fprintf(stderr, "full_store: %s\n", why.text);
        return 1;
    }
    gl_rng_init(&f.rng, 1);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        obey(&f, line);
    }
    exit(0); /* the store is thrown away */
}
