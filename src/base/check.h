/* check.h - assertions, enabled in release builds, and small macros.
 *
 * Programmer errors abort; operating errors return. Never assert on bytes from outside. One
 * condition per assertion. */
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

/* Abort because the system refused memory. This is no defect, and the message does not look like
 * one: committed work is safe, and the next process continues. */
_Noreturn void gl_check_out_of_memory(size_t bytes);

#endif
