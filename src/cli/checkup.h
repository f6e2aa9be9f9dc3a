/* checkup.h - what a node needs, looked at one by one. For `glia doctor`.
 *
 * A check changes nothing. It says what it found and, where something is wrong, what to do. */
#ifndef GL_CLI_CHECKUP_H
#define GL_CLI_CHECKUP_H

#include "cli/cli.h"

enum gl_checkup_verdict { GL_CHECKUP_OK, GL_CHECKUP_WARN, GL_CHECKUP_FAIL };

struct gl_checkup {
    struct gl_cli *cli;
    enum gl_checkup_verdict verdict;
    const char *found; /* a sentence, in the command's arena */
    const char *todo;  /* "" : nothing */
};

struct gl_checkup_item {
    const char *name;
    void (*look)(struct gl_checkup *c);
};

/* Say what was found; `todo` is copied, too. */
void gl_checkup_say(struct gl_checkup *c, enum gl_checkup_verdict verdict, const char *todo,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The machine: disk, clock, programs, limits. */
extern const struct gl_checkup_item gl_checkup_machine[];
extern const size_t gl_checkup_machine_n;

#endif
