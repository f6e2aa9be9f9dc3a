/* thread.h - starts threads with all signals blocked: signals are handled by the control thread. */
#ifndef GL_STORE_THREAD_H
#define GL_STORE_THREAD_H

#include <pthread.h>

/* Returns 0 or an errno. */
int gl_thread_start(pthread_t *ret, void *(*run)(void *), void *arg);

#endif
