/* thread.c - a new thread inherits the signal mask of its creator, so the mask is changed around
 * the creation: blocking signals in the thread itself would leave a window. */
#include "store/common/thread.h"

#include <signal.h>

int gl_thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(ret, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}
