/* served.h - a node in a process of its own, to be measured from outside.
 *
 * Its keeper and the steps come to us when the node ends, because this process adopts orphans; all
 * of them are ended by served_stop(). */
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

/* `pools` as for --pools. Gives back when the node answers. */
void served_start(struct served *s, const char *glia, const char *data, const char *pools,
                  bool with_tcp);
void served_stop(struct served *s);
double served_cpu_s(const struct served *s);   /* used by the node so far */
double served_rss_mib(const struct served *s); /* of its memory, resident now */

#endif
