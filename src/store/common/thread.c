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
