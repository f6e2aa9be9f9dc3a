/* doctor_check.h - the checks of `glia doctor`.
 *
 * A check changes nothing. It reports what it found and, if something is wrong, how to fix it. */
#ifndef GL_CLI_COMMANDS_DOCTOR_CHECK_H
#define GL_CLI_COMMANDS_DOCTOR_CHECK_H

#include "cli/cli.h"

enum gl_doctor_check_grade { GL_DOCTOR_OK, GL_DOCTOR_WARN, GL_DOCTOR_FAIL };

struct gl_doctor_check {
    struct gl_cli *cli;
    enum gl_doctor_check_grade grade;
    const char *found; /* a sentence, in the command's arena */
    const char *todo;  /* "": nothing to do */
};

struct gl_doctor_check_item {
    const char *name;
    void (*look)(struct gl_doctor_check *c);
};

/* Report the result; `todo` is copied. */
void gl_doctor_check_report(struct gl_doctor_check *c, enum gl_doctor_check_grade grade,
                            const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The machine: disk, clock, programs, limits. */
extern const struct gl_doctor_check_item gl_doctor_checks_machine[];
extern const size_t gl_doctor_checks_machine_n;

#endif
