/* submission.h - send a submission until a node has certainly accepted or refused it.
 *
 * Every submission carries a request key, drawn once per command, that the store enforces for as
 * long as the job is kept. So a submission whose answer was lost is simply sent again: if the first
 * one became a job, the node returns that job.
 *
 * Call gl_submission_init(), write the body with gl_submission_write_key() as its first field, then
 * gl_submission_send(). */
#ifndef GL_CLI_CONNECT_SUBMISSION_H
#define GL_CLI_CONNECT_SUBMISSION_H

#include "base/json.h"
#include "cli/connect/connect.h"

struct gl_submission {
    struct gl_connection *connection;
    bool is_detached; /* do not become the node */
    char key[40];     /* the request key */
    unsigned sent;    /* number of times sent */
    bool is_unkeyed;  /* the node is older than request keys: sent once only */
    bool is_doubtful; /* a submission got no reply: the job may exist */
};

void gl_submission_init(struct gl_submission *s, struct gl_connection *connection,
                        bool is_detached);
void gl_submission_write_key(const struct gl_submission *s, struct gl_jw *w);

/* Send `body` to the path of `rq`. May remove the key from the body, for a node that does not know
 * it. */
int gl_submission_send(struct gl_submission *s, struct gl_request *rq, struct gl_buf *body,
                       struct gl_http_client_reply *ret, struct gl_why *reterr_why);

#endif
