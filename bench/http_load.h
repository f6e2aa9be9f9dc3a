/* http_load.h - shared by the parts of http_bench: flows, submissions, and a load of jobs.
 *
 *   http_load.c    this        http_reads.c   status reads during work
 *   http_watch.c   watchers    http_bench.c   the rest, and main() */
#ifndef GL_BENCH_HTTP_LOAD_H
#define GL_BENCH_HTTP_LOAD_H

#include "httpc.h"
#include "served.h"

#define HB_JOBS "/v1/contexts/default/jobs"

enum {
    HB_CONNS_MAX = 64,
    HB_BATCH = 256,
    /* Outstanding jobs: enough to keep the node busy between two polls of its metrics, and as many
       as a thousand slots and some queue can hold. */
    HB_WINDOW = 4096,
};

struct bench {
    const char *glia, *data, *figures;
    bool with_tcp, quick;
};

/* Record a figure for bench/table. */
void hb_figure(const struct bench *b, const char *name, double value);
struct httpc hb_client(const struct served *s);
int hb_by_value(const void *a, const void *b); /* of doubles, for qsort() */
/* The number after a name, in the text of /metrics or in JSON. */
double hb_value(gl_str text, const char *name);
gl_str hb_id(gl_str body, struct gl_arena *a); /* of the job in an answer */

gl_str hb_one_step(struct gl_arena *a, const char *action);
gl_str hb_chain(struct gl_arena *a, unsigned n, const char *first); /* the action of the first */
gl_str hb_fan(struct gl_arena *a, unsigned n);
/* `count` jobs of one flow; 0: one job outside a batch. */
gl_str hb_submission(struct gl_arena *a, gl_str flow, size_t count);

double hb_ended(struct httpc *c); /* number of jobs the node has completed */
/* Seconds until all of `total` jobs have ended. Each request holds `batch` jobs; 0: one job per
 * request. About `window` jobs at most are outstanding. */
double hb_run_load(const struct served *s, gl_str flow, size_t total, size_t batch, size_t conns,
                   size_t window);

void hb_reads(struct bench *b);
void hb_watch(struct bench *b);
void hb_crowd(struct bench *b);

#endif
