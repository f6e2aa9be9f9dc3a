/* await_reply.h - wait for the answer to a command for as long as the node is healthy.
 *
 * A command may take long: it waits for the store, for the node that owns the job, or for thousands
 * of files to be removed. When its answer is late, the node is asked on a second connection whether
 * it answers at all. While it does, the command waits on and says once what it is waiting for. Only
 * a node that answers neither is reported as silent. */
#ifndef GL_CLI_CONNECT_AWAIT_REPLY_H
#define GL_CLI_CONNECT_AWAIT_REPLY_H

#include "cli/connect/connect.h"

/* One call of connection->client, with `method` and `path`; 0 or what gl_http_client_call()
 * returns. A node that stays silent for `silence_ms` sets client.is_silent; 0: it is waited for. */
int gl_await_reply(struct gl_connection *connection, const char *method, const char *path,
                   gl_str body, int silence_ms, struct gl_http_client_reply *ret,
                   struct gl_why *reterr_why);

/* Does the node answer now, on a connection of its own? *ret_reason is in the arena: why it is not
 * ready, "" if it does not say. */
bool gl_await_reply_is_healthy(const struct gl_connection *connection, struct gl_arena *a,
                               gl_str *ret_reason);

#endif
