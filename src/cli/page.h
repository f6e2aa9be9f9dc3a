/* page.h - answers of the API, as a command sees them: a JSON document and easy ways to its
 * members. */
#ifndef GL_CLI_PAGE_H
#define GL_CLI_PAGE_H

#include "base/json.h"
#include "cli/reach.h"

struct gl_page {
    struct gl_arena arena;
    struct gl_buf body;
    struct gl_json j;
    gl_jnode root;
};

/* Ask, and parse what comes back. To be given back in any case. */
int gl_page_ask(struct gl_page *p, struct gl_reach *r, struct gl_request *rq,
                struct gl_why *reterr_why);
void gl_page_done(struct gl_page *p);
/* STATUS with every step, however many answers that takes. */
int gl_page_ask_all(struct gl_page *p, struct gl_reach *r, struct gl_request *rq,
                    struct gl_why *reterr_why);
/* Are all steps in this answer to STATUS? Else say on stderr how many are not. */
bool gl_page_is_whole(struct gl_page *p);
void gl_page_say_partial(struct gl_page *p, struct gl_cli *cli);

gl_str gl_page_text(struct gl_page *p, gl_jnode n, const char *name);          /* "" if absent */
int64_t gl_page_number(const struct gl_page *p, gl_jnode n, const char *name); /* 0 if absent */
gl_ms gl_page_time(struct gl_page *p, gl_jnode n, const char *name);           /* 0 if absent */
bool gl_page_is(const struct gl_page *p, gl_jnode n, const char *name);        /* false if absent */

/* Of a job or a step: why it stands as it does, or why it did not end well; "" where there is
 * nothing to say. */
gl_str gl_page_reason(struct gl_page *p, gl_jnode n);

/* The whole answer, on stdout. */
int gl_page_print_json(const struct gl_page *p, struct gl_cli *cli);

/* A list of jobs: if there is no node, and one of them would need it, say so. */
void gl_page_say_alone(struct gl_page *p, const struct gl_reach *r);

/* "1.2s", from `since` to `until`; "" if one of them is 0. */
gl_str gl_page_span(struct gl_page *p, gl_ms since, gl_ms until);

#endif
