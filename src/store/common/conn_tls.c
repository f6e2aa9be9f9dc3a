/* conn_tls.c - builds an SSL_CTX from the settings of a store, and bufferevents from it. TLS 1.2 is
 * the minimum. The certificate is verified against the host name or address unless the user turned
 * that off. */
#include "store/common/conn_tls.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#include "base/mem.h"

struct gl_conn_tls {
    SSL_CTX *ctx;
    char *name; /* NULL: the host's */
};

static const char *openssl_text(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *text = e != 0 ? ERR_reason_error_string(e) : NULL;
    return text != NULL ? text : "no reason given by OpenSSL";
}

static int set_trusted_cas(SSL_CTX *ctx, const struct gl_conn_tls_config *cfg,
                           struct gl_why *reterr_why)
{
    if (cfg->no_verify) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
        return 0;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (cfg->ca_file == NULL) {
        /* Without any, nothing is trusted, and the handshake says so. */
        (void)SSL_CTX_set_default_verify_paths(ctx);
        return 0;
    }
    if (SSL_CTX_load_verify_locations(ctx, cfg->ca_file, NULL) != 1) {
        return gl_why(reterr_why, GL_E_INVALID, "cannot read the certificates in tls_ca '%s': %s",
                      cfg->ca_file, openssl_text());
    }
    return 0;
}

/* The client certificate is optional; the key is checked against it here rather than at the first
 * connection. */
static int set_client_certificate(SSL_CTX *ctx, const struct gl_conn_tls_config *cfg,
                                  struct gl_why *reterr_why)
{
    if (cfg->cert_file == NULL && cfg->key_file == NULL) {
        return 0;
    }
    if (cfg->cert_file == NULL || cfg->key_file == NULL) {
        return gl_why(reterr_why, GL_E_INVALID, "tls_cert and tls_key must be given together");
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, cfg->cert_file) != 1) {
        return gl_why(reterr_why, GL_E_INVALID, "cannot read the certificate in tls_cert '%s': %s",
                      cfg->cert_file, openssl_text());
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, cfg->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "cannot use the key in tls_key '%s' with that certificate: %s", cfg->key_file,
                      openssl_text());
    }
    return 0;
}

int gl_conn_tls_new(struct gl_conn_tls **ret, const struct gl_conn_tls_config *cfg,
                    struct gl_why *reterr_why)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL) {
        return gl_why(reterr_why, GL_E_IO, "cannot prepare TLS: %s", openssl_text());
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    int err = set_trusted_cas(ctx, cfg, reterr_why);
    if (err == 0) {
        err = set_client_certificate(ctx, cfg, reterr_why);
    }
    if (err < 0) {
        SSL_CTX_free(ctx);
        return err;
    }
    struct gl_conn_tls *t = gl_mem_alloc(sizeof(*t));
    t->ctx = ctx;
    if (cfg->name != NULL) {
        size_t n = strlen(cfg->name) + 1;
        t->name = gl_mem_alloc(n);
        memcpy(t->name, cfg->name, n);
    }
    *ret = t;
    return 0;
}

void gl_conn_tls_free(struct gl_conn_tls *t)
{
    if (t != NULL) {
        SSL_CTX_free(t->ctx);
        gl_mem_free(t->name);
        gl_mem_free(t);
    }
}

/* The certificate must match this name; an IP address is compared as an address and is not sent as
 * SNI. */
static void set_expected_name(SSL *ssl, const char *name)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1) {
        (void)X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
        return;
    }
    (void)SSL_set1_host(ssl, name);
    (void)SSL_set_tlsext_host_name(ssl, name);
}

struct bufferevent *gl_conn_tls_bufferevent(const struct gl_conn_tls *t, struct event_base *base,
                                            const char *host)
{
    SSL *ssl = SSL_new(t->ctx);
    if (ssl == NULL) {
        return NULL;
    }
    set_expected_name(ssl, t->name != NULL ? t->name : host);
    struct bufferevent *bev = bufferevent_openssl_socket_new(
        base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (bev == NULL) {
        SSL_free(ssl);
        return NULL;
    }
    /* Servers often close the socket without a TLS close_notify. The protocols on top are framed,
     * so a truncated message is noticed there. */
    bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

bool gl_conn_tls_why(struct bufferevent *bev, const char *host, struct gl_why *ret)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    long verified = ssl != NULL ? SSL_get_verify_result(ssl) : X509_V_OK;
    unsigned long e = bufferevent_get_openssl_error(bev);
    if (e == 0) {
        return false;
    }
    /* A verification failure has a better explanation than the alert it causes. */
    if (verified != X509_V_OK) {
        (void)gl_why(ret, GL_E_UNAVAILABLE,
                     "the certificate of %s is not trusted: %s (tls_ca names the file with the "
                     "certificates to trust)",
                     host, X509_verify_cert_error_string(verified));
        return true;
    }
    const char *text = ERR_reason_error_string(e);
    (void)gl_why(ret, GL_E_UNAVAILABLE, "TLS with %s failed: %s", host,
                 text != NULL ? text : "no reason given");
    return true;
}
