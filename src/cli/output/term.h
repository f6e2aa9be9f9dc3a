/* term.h - the terminal, if there is one: colours, width, and text that cannot steer it. */
#ifndef GL_CLI_OUTPUT_TERM_H
#define GL_CLI_OUTPUT_TERM_H

#include <stdio.h>

#include "base/str.h"
#include "base/times.h"

struct gl_term {
    FILE *file;
    bool is_tty, has_color;
    bool is_raw; /* text of others passes as it is, also to a terminal (--raw) */
    unsigned columns, rows;
};

enum gl_color { GL_PLAIN, GL_DIM, GL_RED, GL_GREEN, GL_YELLOW, GL_CYAN, GL_BOLD };

/* `no_color`: the environment asks for none (NO_COLOR). */
void gl_term_init(struct gl_term *t, FILE *file, bool no_color);
void gl_term_measure(struct gl_term *t); /* its size, which may have changed */
const char *gl_term_on(const struct gl_term *t, enum gl_color color);
const char *gl_term_off(const struct gl_term *t, enum gl_color color);
enum gl_color gl_term_status_color(gl_str status); /* of a job or a step */

gl_ms gl_term_now(void); /* wall clock */

/* Text of others may hold control characters that steer a terminal: set its title, fill the
 * clipboard, overwrite what is on the screen. They are shown as \\x1b or \\u009b, and so are bytes
 * that are not UTF-8 and characters that reverse the direction of writing. */
gl_str gl_term_safe(struct gl_arena *a, gl_str text); /* as part of a line: a tab becomes a space */
/* Writes text of others: escaped to a terminal (newlines and tabs stay), else byte for byte. */
void gl_term_write(const struct gl_term *t, gl_str text);
void gl_term_print(const struct gl_term *t, gl_str text); /* the same, with a newline */
size_t gl_term_width(gl_str text);                        /* code points */
gl_str gl_term_clip(gl_str text, size_t width);
/* The same, and what was cut can be seen: "a long st…". */
gl_str gl_term_cut(struct gl_arena *a, gl_str text, size_t width);
/* The next line of a text: as many words as there is room for, and one in any case. */
gl_str gl_term_line(gl_str text, size_t room, gl_str *ret_rest);
/* "2026-11-15T10:00:00.123Z" without the fraction; all else as it is. */
gl_str gl_term_time(struct gl_arena *a, gl_str time);

#endif
