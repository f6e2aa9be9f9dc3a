/* banned.h - turns names that would break determinism or memory safety into compile errors.
 *
 * The build includes this file before every source of the pure rooms. It only improves the error
 * message: tools/tidy enforces the rule by checking the symbols that the objects import. The system
 * headers come first, so that their own declarations stay intact. base/mem.c, the only file that
 * may use the heap, takes the four names it needs back with #undef. */
#ifndef GL_BASE_BANNED_H
#define GL_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define GL_BANNED(name) gl_sorry_##name##_is_banned_in_the_pure_rooms

/* Clocks: `now` is an argument. */
#undef time
#define time(...) GL_BANNED(time)
#undef clock_gettime
#define clock_gettime(...) GL_BANNED(clock_gettime)
#undef gettimeofday
#define gettimeofday(...) GL_BANNED(gettimeofday)
#undef localtime
#define localtime(...) GL_BANNED(localtime)
#undef localtime_r
#define localtime_r(...) GL_BANNED(localtime_r)
#undef gmtime
#define gmtime(...) GL_BANNED(gmtime)
#undef mktime
#define mktime(...) GL_BANNED(mktime)
#undef strftime
#define strftime(...) GL_BANNED(strftime)
#undef sleep
#define sleep(...) GL_BANNED(sleep)
#undef usleep
#define usleep(...) GL_BANNED(usleep)
#undef nanosleep
#define nanosleep(...) GL_BANNED(nanosleep)

/* Randomness: base/rng.h, or the entropy port. */
#undef rand
#define rand(...) GL_BANNED(rand)
#undef srand
#define srand(...) GL_BANNED(srand)
#undef random
#define random(...) GL_BANNED(random)
#undef srandom
#define srandom(...) GL_BANNED(srandom)
#undef drand48
#define drand48(...) GL_BANNED(drand48)

/* The environment: configuration is an argument. */
#undef getenv
#define getenv(...) GL_BANNED(getenv)
#undef setenv
#define setenv(...) GL_BANNED(setenv)
#undef getpid
#define getpid(...) GL_BANNED(getpid)
#undef fopen
#define fopen(...) GL_BANNED(fopen)
#undef system
#define system(...) GL_BANNED(system)

/* The heap: base/mem.h, base/arena.h. */
#undef malloc
#define malloc(...) GL_BANNED(malloc)
#undef calloc
#define calloc(...) GL_BANNED(calloc)
#undef realloc
#define realloc(...) GL_BANNED(realloc)
#undef free
#define free(...) GL_BANNED(free)
#undef strdup
#define strdup(...) GL_BANNED(strdup)
#undef strndup
#define strndup(...) GL_BANNED(strndup)
#undef asprintf
#define asprintf(...) GL_BANNED(asprintf)

/* Unbounded or locale-dependent text: base/str.h. */
#undef sprintf
#define sprintf(...) GL_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) GL_BANNED(vsprintf)
#undef strcpy
#define strcpy(...) GL_BANNED(strcpy)
#undef strcat
#define strcat(...) GL_BANNED(strcat)
#undef strncpy
#define strncpy(...) GL_BANNED(strncpy)
#undef strncat
#define strncat(...) GL_BANNED(strncat)
#undef strtok
#define strtok(...) GL_BANNED(strtok)
#undef atoi
#define atoi(...) GL_BANNED(atoi)
#undef atof
#define atof(...) GL_BANNED(atof)
#undef strtod
#define strtod(...) GL_BANNED(strtod)

#endif
