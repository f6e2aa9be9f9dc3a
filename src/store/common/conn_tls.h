/* conn_tls.h - TLS settings shared by the connections of one store: trusted authorities and the
 * client certificate. */
#ifndef GL_STORE_CONN_TLS_H
#define GL_STORE_CONN_TLS_H

#include <stdbool.h>

#include "base/err.h"

struct bufferevent;
struct event_base;
struct gl_conn_tls;

struct gl_conn_tls_config { /* PEM files; NULL: not set */
    const char *ca_file;    /* NULL: the system's trust store */
    const char *cert_file, *key_file;
    const char *name; /* expected name in the certificate, if not the host's */
    bool no_verify;   /* accept any certificate: encrypted, but not authenticated */
};

/* Load the files. GL_E_INVALID: a file is unreadable or not what it should be. */
int gl_conn_tls_new(struct gl_conn_tls **ret, const struct gl_conn_tls_config *cfg,
                    struct gl_why *reterr_why);
void gl_conn_tls_free(struct gl_conn_tls *t); /* NULL is fine */

/* A bufferevent that performs the handshake on connecting; NULL if out of memory. */
struct bufferevent *gl_conn_tls_bufferevent(const struct gl_conn_tls *t, struct event_base *base,
                                            const char *host);
/* The TLS error that ended a connection; false: it did not end because of TLS. */
bool gl_conn_tls_why(struct bufferevent *bev, const char *host, struct gl_why *ret);

#endif
