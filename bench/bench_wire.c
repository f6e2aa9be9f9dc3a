/* The kernel counts the traffic of each connection, so stores need not. */
#include "bench_node.h"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static void add(struct bench_wire *w, int fd)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0) { /* else it is something else */
        w->bytes_out += (double)info.tcpi_bytes_acked;
        w->bytes_in += (double)info.tcpi_bytes_received;
        w->sends += info.tcpi_data_segs_out;
    }
}

struct bench_wire bench_wire(void)
{
    struct bench_wire w = {0};
    DIR *fds = opendir("/proc/self/fd");

    for (struct dirent *d; fds != NULL && (d = readdir(fds)) != NULL;) {
        add(&w, atoi(d->d_name));
    }
    if (fds != NULL) {
        closedir(fds);
    }
    return w;
}
