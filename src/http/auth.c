/* auth.c - which clients may talk to the node. Checked before the body of a request is read.
 *
 * The unix socket accepts the user of the node and root. TCP requires the node's token, one Host
 * header that names this node, and no foreign Origin. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/check.h"
#include "http/http_call.h"
#include "http/http_text.h"
#include "os/sock.h"

static int socket_of(const struct gl_http_call *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info != NULL ? info->connect_fd : -1;
}

static bool is_user(const struct gl_http_call *c)
{
    uid_t uid;
    pid_t pid;

    return gl_sock_peer(socket_of(c), &uid, &pid, NULL) == 0 && (uid == c->config->uid || uid == 0);
}

static bool has_token(const struct gl_http_call *c)
{
    gl_str given = gl_http_call_header(c, MHD_HTTP_HEADER_AUTHORIZATION);
    gl_str scheme = gl_str_cut(given, ' ', &given);

    return scheme.n == 6 && strncasecmp(scheme.p, "bearer", 6) == 0 &&
           gl_http_text_is_secret(gl_str_trim(given), gl_str_of(c->config->token));
}

/* ---- Host and Origin ---- */

/* The address at which the client reached this node, as text. */
static bool is_own_address(const struct gl_http_call *c, gl_str name)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } own = {0};
    socklen_t n = sizeof(own);
    char text[INET6_ADDRSTRLEN] = "";

    if (getsockname(socket_of(c), &own.any, &n) < 0) {
        return false;
    }
    if (own.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &own.v4.sin_addr, text, sizeof(text));
    } else if (own.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &own.v6.sin6_addr, text, sizeof(text));
        if (IN6_IS_ADDR_V4MAPPED(&own.v6.sin6_addr)) {
            return gl_str_is(name, strrchr(text, ':') + 1);
        }
    }
    return text[0] != '\0' && gl_str_is(name, text);
}

/* A name that an attacker's DNS can point at this node is refused, whatever it resolves to. */
static bool is_own_host(const struct gl_http_call *c, gl_str host)
{
    gl_str name = gl_http_text_host(host);

    return (name.n == 9 && strncasecmp(name.p, "localhost", 9) == 0) ||
           gl_str_is(name, "127.0.0.1") || gl_str_is(name, "::1") || is_own_address(c, name);
}

struct request_origin {
    const struct gl_http_call *call;
    gl_str host;
    size_t hosts_n;
    bool is_foreign;
};

static enum MHD_Result check_header(void *owner, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct request_origin *o = owner;
    gl_str text = gl_str_of(value);

    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0) {
        o->host = text;
        o->hosts_n++;
    } else if (strcasecmp(key, MHD_HTTP_HEADER_ORIGIN) == 0) {
        gl_str host = gl_http_call_header(o->call, MHD_HTTP_HEADER_HOST);
        bool is_own = o->call->listener->is_tcp && gl_str_starts(text, GL_S("http://")) &&
                      gl_str_eq((gl_str){.p = text.p + 7, .n = text.n - 7}, host);

        o->is_foreign |= !is_own;
    } else if (strcasecmp(key, "Sec-Fetch-Site") == 0) {
        /* Browsers also send this where they omit Origin. */
        o->is_foreign |= !gl_str_is(text, "same-origin") && !gl_str_is(text, "none");
    }
    return MHD_YES;
}

bool gl_auth_check(struct gl_http_call *c)
{
    struct request_origin o = {.call = c};

    (void)MHD_get_connection_values(c->connection, MHD_HEADER_KIND, check_header, &o);
    if (!c->listener->is_tcp && !is_user(c)) {
        gl_reply_error(c, GL_R_OTHER_USER, "only the user who runs this node may talk to it", NULL);
    } else if (o.is_foreign) {
        gl_reply_error(c, GL_R_WEB_PAGE, "requests from web pages are not allowed", NULL);
    } else if (c->listener->is_tcp && (o.hosts_n != 1 || !is_own_host(c, o.host))) {
        gl_reply_error_at(c, GL_R_HOST_NOT_ALLOWED, "Host header not allowed",
                          "use localhost, or the address the node listens on", "Host", NULL);
    } else if (c->listener->is_tcp && !has_token(c)) {
        bool is_wrong = gl_http_call_header(c, MHD_HTTP_HEADER_AUTHORIZATION).n > 0;

        gl_reply_error(
            c, is_wrong ? GL_R_TOKEN_WRONG : GL_R_TOKEN_MISSING,
            is_wrong ? "the token is wrong" : "a request over TCP needs the token of this node",
            "send `Authorization: Bearer TOKEN`; the token is in the file `token` of the "
            "node's data folder");
        c->status = MHD_HTTP_UNAUTHORIZED;
    }
    return c->status == 0;
}
