/* wallclock.c - preloaded into a program: its wall clock is set, and the machine's is not.
 *
 * The file $WALL_CLOCK_FILE says by how many seconds it is ahead; a negative number: behind. It is
 * read with each look at the clock. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void)
{
    const char *path = getenv("WALL_CLOCK_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32] = {0};
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return n > 0 ? (time_t)strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    long err = syscall(SYS_clock_gettime, id, t);

    if (err == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        t->tv_sec += ahead();
    }
    return (int)err;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    int err = clock_gettime(CLOCK_REALTIME, &now);

    (void)zone;
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return err;
}

time_t time(time_t *ret)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}
