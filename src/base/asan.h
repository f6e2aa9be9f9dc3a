/* asan.h - tells AddressSanitizer which bytes of an arena or pool are unused, so that a slice kept
 * beyond a reset, or an overrun by one byte, is found although the heap block is alive. Does
 * nothing in other builds. */
#ifndef GL_BASE_ASAN_H
#define GL_BASE_ASAN_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define GL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GL_ASAN 1
#endif
#endif

#ifdef GL_ASAN
void __asan_poison_memory_region(void const volatile *p, size_t n);
void __asan_unpoison_memory_region(void const volatile *p, size_t n);
#define GL_ASAN_POISON(p, n) __asan_poison_memory_region((p), (n))
#define GL_ASAN_UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
enum { GL_ASAN_GAP = 16 }; /* unused bytes after each piece */
#else
#define GL_ASAN_POISON(p, n) ((void)(p), (void)(n))
#define GL_ASAN_UNPOISON(p, n) ((void)(p), (void)(n))
enum { GL_ASAN_GAP = 0 };
#endif

#endif
