/* harden.h - hides the memory and environment of this process from other processes of the same
 * user.
 *
 * The environment holds secrets: the password of the store, a token, every variable that a flow
 * declares as a secret. Steps run as the same user, and /proc shows a process to the other
 * processes of its user.
 *
 * Call gl_harden_arguments() and gl_harden_environment() first in main(), before any thread
 * starts and before anything keeps a pointer into the environment; call gl_harden_memory()
 * before the first step or module runs. None of them protects against root. */
#ifndef GL_OS_HARDEN_H
#define GL_OS_HARDEN_H

/* Returns a copy of argv for this program to use. In the original, which /proc/PID/cmdline shows to
 * every user, the passwords of URLs are overwritten with '*'. Free it with gl_mem_free(). */
char **gl_harden_arguments(char **argv);

/* Moves the environment to the heap and wipes the place where the kernel put it, which is what
 * /proc/PID/environ shows. getenv() and environ work as before. */
void gl_harden_environment(void);

/* Makes /proc/PID/{environ,mem,maps,fd,...} inaccessible to everyone but root, and disables core
 * files, which would contain the same. If GLIA_CORE=1 is set, neither is changed, for debugging. */
void gl_harden_memory(void);

#endif
