/* served.h - a node in a separate process, measured from outside.
 *
 * This process adopts orphans, so the node's keeper and steps become its children when the node
 * exits; served_stop() ends all of them. */
#ifndef GL_BENCH_SERVED_H
#define GL_BENCH_SERVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct served {
    pid_t pid;
    char data[512];
    char socket[540];
    char token[65];
    uint16_t port; /* 0: only the unix socket */
};

/* `pools` as for --pools. Returns when the node answers. */
void served_start(struct served *s, const char *glia, const char *data, const char *pools,
                  bool with_tcp);
void served_stop(struct served *s);
double served_cpu_s(const struct served *s);   /* CPU time used by the node so far */
double served_rss_mib(const struct served *s); /* resident memory now */

#endif
