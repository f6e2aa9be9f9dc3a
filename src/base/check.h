/* check.h - assertions, kept on in release builds.
 *
 * Programmer errors abort; operating errors return. Never assert on bytes from outside. */
#ifndef GL_BASE_CHECK_H
#define GL_BASE_CHECK_H

#include <stddef.h>

#define GL_ASSERT(cond) ((cond) ? (void)0 : gl_check_failed(#cond, __FILE__, __LINE__))
#define GL_IMPLIES(a, b) (!(a) || (b))
#define GL_UNREACHABLE() gl_check_failed("unreachable", __FILE__, __LINE__)
#define GL_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GL_BIT(n) (1u << (n))
#define GL_CLEANUP(fn) __attribute__((cleanup(fn)))

#define GL_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

_Noreturn void gl_check_failed(const char *what, const char *file, int line);

/* The system refuses memory. No defect, and the sentence does not look like one: what is committed
 * is safe, and the next process goes on. */
_Noreturn void gl_check_out_of_memory(size_t bytes);

#endif
