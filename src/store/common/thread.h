/* thread.h - threads that get no signals: those are for the control thread. */
#ifndef GL_STORE_THREAD_H
#define GL_STORE_THREAD_H

#include <pthread.h>

/* 0 or an errno. */
int gl_thread_start(pthread_t *ret, void *(*run)(void *), void *arg);

#endif
