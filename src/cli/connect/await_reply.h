/* await_reply.h - waits for the reply to a command as long as the node is healthy.
 *
 * A command may take long: it waits for the store, for the node that owns the job, or for thousands
 * of files to be removed. If its reply is late, a second connection checks the health of the node.
 * As long as the node is healthy, the command waits and prints once what it is waiting for. Only a
 * node that fails the health check, too, is reported as silent. */
#ifndef GL_CLI_CONNECT_AWAIT_REPLY_H
#define GL_CLI_CONNECT_AWAIT_REPLY_H

#include "cli/connect/connect.h"

/* One call of connection->client, with `method` and `path`; returns 0 or the result of
 * gl_http_client_call(). If the node is silent for `silence_ms`, sets client.is_silent; 0: no
 * limit. */
int gl_await_reply(struct gl_connection *connection, const char *method, const char *path,
                   gl_str body, int silence_ms, struct gl_http_client_reply *ret,
                   struct gl_why *reterr_why);

/* Does the node answer now, on a separate connection? *ret_reason, in the arena: why it is not
 * ready; "" if the node gives no reason. */
bool gl_await_reply_is_healthy(const struct gl_connection *connection, struct gl_arena *a,
                               gl_str *ret_reason);

#endif
