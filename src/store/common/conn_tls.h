/* conn_tls.h - TLS for connections: whom to trust, and who we are. */
#ifndef GL_STORE_CONN_TLS_H
#define GL_STORE_CONN_TLS_H

#include <stdbool.h>

#include "base/err.h"

struct bufferevent;
struct event_base;
struct gl_conn_tls;

struct gl_conn_tls_config { /* files in PEM; NULL: none */
    const char *ca_file;    /* NULL: what the system trusts */
    const char *cert_file, *key_file;
    const char *name; /* the certificate's, if it is not the host's */
    bool no_verify;   /* take any certificate: encrypted, but to whom? */
};

/* GL_E_INVALID: a file cannot be read, or is not what it should be. */
int gl_conn_tls_new(struct gl_conn_tls **ret, const struct gl_conn_tls_config *cfg,
                    struct gl_why *reterr_why);
void gl_conn_tls_free(struct gl_conn_tls *t); /* NULL is fine */

/* NULL if there is no memory. */
struct bufferevent *gl_conn_tls_bufferevent(const struct gl_conn_tls *t, struct event_base *base,
                                            const char *host);
/* The reason TLS had to end it; false: it had none. */
bool gl_conn_tls_why(struct bufferevent *bev, const char *host, struct gl_why *ret);

#endif
