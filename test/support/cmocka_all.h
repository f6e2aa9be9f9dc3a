/* cmocka_all.h - cmocka with the headers it wants in front of it. */
#ifndef GL_TEST_CMOCKA_ALL_H
#define GL_TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
