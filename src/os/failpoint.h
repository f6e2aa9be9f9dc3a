/* failpoint.h - places where a crash test kills the process, as kill -9 would.
 *
 * GLIA_FAILPOINT="store.committed:3" kills the process when that place is reached for the third
 * time; without a number, the first time. In builds without -Dfailpoints=true the macro expands to
 * nothing. The names are listed in docs/HACKING.md. */
#ifndef GL_OS_FAILPOINT_H
#define GL_OS_FAILPOINT_H

#ifdef GL_WITH_FAILPOINTS
#define GL_FAILPOINT(name) gl_failpoint_hit(name)
void gl_failpoint_hit(const char *name);
#else
#define GL_FAILPOINT(name) ((void)0)
#endif

#endif
