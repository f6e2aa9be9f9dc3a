/* tcp.h - listening on TCP.
 *
 * An address is written "127.0.0.1:7464", "[::1]:7464" or "localhost:7464"; port 0 lets the system
 * choose one. Names other than localhost are not looked up: where a node listens must not depend on
 * a name server. */
#ifndef GL_OS_TCP_H
#define GL_OS_TCP_H

#include "base/err.h"
#include "base/str.h"

enum { GL_TCP_TEXT_BYTES = 64 }; /* "[address]:port" and NUL */

/* Split "host:port" into its parts, without the brackets of an IPv6 address; false: invalid. Either
 * result may be NULL. */
bool gl_tcp_split(gl_str text, gl_str *ret_host, uint16_t *ret_port);

/* Is it an address to listen on? GL_E_INVALID says what is expected. */
int gl_tcp_check(gl_str text, struct gl_why *reterr_why);

/* Listen there; the descriptor is non-blocking. `ret_text` is the actual address, with the port
 * that was chosen; *ret_is_local: only this machine can reach it. GL_E_UNAVAILABLE: it is in
 * use. */
int gl_tcp_listen(gl_str text, int *ret_fd, char ret_text[static GL_TCP_TEXT_BYTES],
                  bool *ret_is_local, struct gl_why *reterr_why);

#endif
