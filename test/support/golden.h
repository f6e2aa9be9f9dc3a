/* golden.h - sentences for people, compared with a file: the one place in which tests know them.
 *
 *   golden_say()     once for each sentence, in the order of the tests: behind its reason, or
 * behind the text that it is about golden_check()   in the last test: have they been those of the
 * file?
 *
 * With GLIA_GOLDEN=write in the environment the file is written instead. */
#ifndef GL_TEST_SUPPORT_GOLDEN_H
#define GL_TEST_SUPPORT_GOLDEN_H

#include "base/str.h"

void golden_say(const char *code, gl_str sentence);
void golden_hide(const char *folder);
void golden_check(const char *path);

#endif
