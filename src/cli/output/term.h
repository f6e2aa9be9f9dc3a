/* term.h - the terminal, if there is one: colours, width, and escaping of untrusted text. */
#ifndef GL_CLI_OUTPUT_TERM_H
#define GL_CLI_OUTPUT_TERM_H

#include <stdio.h>

#include "base/str.h"
#include "base/times.h"

struct gl_term {
    FILE *file;
    bool is_tty, has_color;
    bool is_raw; /* do not escape untrusted text, even on a terminal (--raw) */
    unsigned columns, rows;
};

enum gl_color { GL_PLAIN, GL_DIM, GL_RED, GL_GREEN, GL_YELLOW, GL_CYAN, GL_BOLD };

/* `no_color`: the environment disables colours (NO_COLOR). */
void gl_term_init(struct gl_term *t, FILE *file, bool no_color);
void gl_term_measure(struct gl_term *t); /* update the size, which may have changed */
const char *gl_term_on(const struct gl_term *t, enum gl_color color);
const char *gl_term_off(const struct gl_term *t, enum gl_color color);
enum gl_color gl_term_status_color(gl_str status); /* colour for the status of a job or step */

gl_ms gl_term_now(void); /* wall clock */

/* Untrusted text may contain control characters that affect a terminal: set its title, fill the
 * clipboard, overwrite the screen. Escape them as \\x1b or \\u009b, and also bytes that are not
 * UTF-8 and characters that reverse the direction of writing. */
gl_str gl_term_safe(struct gl_arena *a, gl_str text); /* as part of a line: a tab becomes a space */
/* Write untrusted text: escaped on a terminal (newlines and tabs stay), else byte for byte. */
void gl_term_write(const struct gl_term *t, gl_str text);
void gl_term_print(const struct gl_term *t, gl_str text); /* the same, with a newline */
size_t gl_term_width(gl_str text);                        /* code points */
gl_str gl_term_clip(gl_str text, size_t width);
/* The same, with a mark where text was cut: "a long st…". */
gl_str gl_term_cut(struct gl_arena *a, gl_str text, size_t width);
/* The next line of a text: as many words as fit, at least one. */
gl_str gl_term_line(gl_str text, size_t room, gl_str *ret_rest);
/* "2026-11-15T10:00:00.123Z" without the fraction; other text is unchanged. */
gl_str gl_term_time(struct gl_arena *a, gl_str time);

#endif
