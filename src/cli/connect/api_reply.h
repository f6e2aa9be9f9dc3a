/* api_reply.h - a reply of the API: a JSON document, and functions to read its members.
 *
 *   gl_api_reply_ask()     send a query and parse the reply
 *   gl_api_reply_text()    ... and _number(), _time(), _is(): read a member
 *   gl_api_reply_done()    in any case */
#ifndef GL_CLI_CONNECT_API_REPLY_H
#define GL_CLI_CONNECT_API_REPLY_H

#include "base/json.h"
#include "cli/connect/connect.h"

struct gl_api_reply {
    struct gl_arena arena;
    struct gl_buf body;
    struct gl_json j;
    gl_jnode root;
};

/* Send a query and parse the reply. Always call gl_api_reply_done(). */
int gl_api_reply_ask(struct gl_api_reply *p, struct gl_connection *r, struct gl_request *rq,
                     struct gl_why *reterr_why);
/* Parse p->body. */
int gl_api_reply_parse(struct gl_api_reply *p, struct gl_why *reterr_why);
void gl_api_reply_done(struct gl_api_reply *p);
/* STATUS with all steps, in as many requests as needed. */
int gl_api_reply_ask_all(struct gl_api_reply *p, struct gl_connection *r, struct gl_request *rq,
                         struct gl_why *reterr_why);
/* Does this reply to STATUS have all steps? If not, print the number of steps it has. */
bool gl_api_reply_is_complete(struct gl_api_reply *p);
void gl_api_reply_report_partial(struct gl_api_reply *p, struct gl_cli *cli);

gl_str gl_api_reply_text(struct gl_api_reply *p, gl_jnode n, const char *name); /* "" if absent */
int64_t gl_api_reply_number(const struct gl_api_reply *p, gl_jnode n,
                            const char *name);                                 /* 0 if absent */
gl_ms gl_api_reply_time(struct gl_api_reply *p, gl_jnode n, const char *name); /* 0 if absent */
bool gl_api_reply_is(const struct gl_api_reply *p, gl_jnode n,
                     const char *name); /* false if absent */

/* Why a job or step is in its state, or why it failed; "": no reason. */
gl_str gl_api_reply_reason(struct gl_api_reply *p, gl_jnode n);

/* Print the whole reply on stdout. */
int gl_api_reply_print_json(const struct gl_api_reply *p, struct gl_cli *cli);

/* For a list of jobs: warn that there is no node if one of them needs it. True: a warning was
 * printed. */
bool gl_api_reply_warn_no_node(struct gl_api_reply *p, const struct gl_connection *r);

/* "1.2s", from `since` to `until`; "" if one of them is 0. */
gl_str gl_api_reply_span(struct gl_api_reply *p, gl_ms since, gl_ms until);

#endif
