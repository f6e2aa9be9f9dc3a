/* redis_url.c - parses the URL. A password may contain characters that should have been escaped, so
 * the parser takes the last '@' as its end and never quotes a part of the URL that could belong to
 * it. */
#include "store/redis/redis_url.h"

#include <string.h>

#include "base/check.h"
#include "store/common/options.h"

enum { PORT = 6379, SENTINEL_PORT = 26379, DATABASE_MAX = 1 << 20, TIMEOUT_MAX_MS = 3600000 };

static int parse_scheme(struct gl_redis_url *u, gl_str *text, struct gl_why *why)
{
    static const struct {
        gl_str scheme;
        bool tls, sentinel;
    } schemes[] = {
        {GL_S("redis://"), false, false},
        {GL_S("rediss://"), true, false},
        {GL_S("redis+sentinel://"), false, true},
        {GL_S("rediss+sentinel://"), true, true},
    };
    for (size_t i = 0; i < GL_COUNT(schemes); i++) {
        if (gl_str_starts(*text, schemes[i].scheme)) {
            u->tls = schemes[i].tls;
            u->sentinel = schemes[i].sentinel;
            text->p += schemes[i].scheme.n;
            text->n -= schemes[i].scheme.n;
            return 0;
        }
    }
    return gl_why(why, GL_E_INVALID,
                  "the store URL must begin with redis://, rediss://, redis+sentinel:// or "
                  "rediss+sentinel://");
}

/* "user:password", percent-encoded; either may be empty. */
static int parse_user(struct gl_redis_url *u, gl_str text, struct gl_arena *a, struct gl_why *why)
{
    gl_str password, user = gl_str_cut(text, ':', &password);
    if (!gl_options_decode(user, a, &u->user) || !gl_options_decode(password, a, &u->password)) {
        return gl_why(why, GL_E_INVALID,
                      "store URL: user or password has a '%%' that is not followed by two "
                      "hexadecimal digits (write '%%25' for a '%%' itself)");
    }
    return 0;
}

/* "host[:port]" or "[IPv6 address][:port]". The default port depends on whether it is a
 * sentinel. */
static int parse_host(struct gl_redis_url *u, gl_str text, struct gl_arena *a, struct gl_why *why)
{
    struct gl_redis_host *h = &u->hosts[u->hosts_n];
    gl_str port = {0}, host = text;
    uint64_t number = u->sentinel ? SENTINEL_PORT : PORT;
    bool ok = u->hosts_n < GL_REDIS_HOSTS_MAX;
    if (!ok) {
        return gl_why(why, GL_E_INVALID, "the store URL names more than %d hosts",
                      GL_REDIS_HOSTS_MAX);
    }
    if (gl_str_starts(text, GL_S("["))) {
        const char *end = memchr(text.p, ']', text.n);
        ok = end != NULL;
        if (ok) {
            host = (gl_str){text.p + 1, (size_t)(end - text.p) - 1};
            port = (gl_str){end + 1, text.n - host.n - 2};
            ok = port.n == 0 || port.p[0] == ':';
            port = port.n > 0 ? (gl_str){port.p + 1, port.n - 1} : port;
        }
    } else {
        host = gl_str_cut(text, ':', &port);
    }
    ok = ok && host.n > 0 && host.n < 256 &&
         (port.n == 0 || (gl_str_u64(port, &number) && number > 0 && number < 65536));
    if (!ok || !gl_options_decode(host, a, &h->host)) {
        return gl_why(why, GL_E_INVALID,
                      "store URL: '%.*s' is not host or host:port (put an IPv6 address "
                      "in brackets)",
                      GL_STR_ARG(text));
    }
    h->port = (uint16_t)number;
    u->hosts_n++;
    return 0;
}

static int parse_hosts(struct gl_redis_url *u, gl_str text, struct gl_arena *a, struct gl_why *why)
{
    if (!u->sentinel && memchr(text.p != NULL ? text.p : "", ',', text.n) != NULL) {
        return gl_why(why, GL_E_INVALID,
                      "the store URL names several hosts; only redis+sentinel:// allows that");
    }
    do {
        int err = parse_host(u, gl_str_trim(gl_str_cut(text, ',', &text)), a, why);
        if (err < 0) {
            return err;
        }
    } while (text.n > 0);
    return 0;
}

/* "/database", or with Sentinel "/name[/database]". An empty database is 0. */
static int parse_path(struct gl_redis_url *u, gl_str path, struct gl_arena *a, struct gl_why *why)
{
    gl_str database = path;
    if (u->sentinel) {
        gl_str name = gl_str_cut(path, '/', &database);
        if (name.n == 0 || !gl_options_decode(name, a, &u->name)) {
            return gl_why(why, GL_E_INVALID,
                          "the store URL must contain the primary's name as configured in "
                          "Sentinel: redis+sentinel://host/NAME");
        }
    }
    uint64_t number = 0;
    if (database.n > 0 && (!gl_str_u64(database, &number) || number > DATABASE_MAX)) {
        return gl_why(why, GL_E_INVALID, "store URL: '%.*s' is not a database number",
                      GL_STR_ARG(database));
    }
    u->database = (uint32_t)number;
    return 0;
}

/* ---- options ---- */

#define TEXT(member) GL_OPTION_TO_TEXT(struct gl_redis_url, member)
#define NUMBER(member, min, max) GL_OPTION_TO_NUMBER(struct gl_redis_url, member, min, max)
#define WORD(name, member, off, on) GL_OPTION_TO_WORD(name, struct gl_redis_url, member, off, on)
/* Documented in docs/store-redis.md. The names of the options are those of the members, except
 * where given. */
static const struct gl_option options_known[] = {
    NUMBER(timeout_ms, 10, TIMEOUT_MAX_MS),
    NUMBER(connect_timeout_ms, 10, TIMEOUT_MAX_MS),
    NUMBER(wait_ms, 1, TIMEOUT_MAX_MS),
    NUMBER(wait_replicas, 0, 100),
    WORD("wait", wait_all, "needed", "all"),
    TEXT(sentinel_user),
    TEXT(sentinel_password),
    TEXT(tls_ca),
    TEXT(tls_cert),
    TEXT(tls_key),
    TEXT(tls_name),
    WORD("tls_verify", tls_no_verify, "yes", "no"),
};

static int parse_options(struct gl_redis_url *u, gl_str text, struct gl_arena *a,
                         struct gl_why *why)
{
    while (text.n > 0) {
        gl_str option = gl_str_cut(text, '&', &text), value, name = gl_str_cut(option, '=', &value);
        int err = gl_options_set(options_known, GL_COUNT(options_known), u, option, a, why);
        if (err == 0 && name.n > 0) {
            return gl_why(why, GL_E_INVALID, "store URL: unknown option '%.*s'; allowed: %.*s",
                          GL_STR_ARG(name),
                          GL_STR_ARG(gl_options_names(options_known, GL_COUNT(options_known), a)));
        }
        if (err < 0) {
            return err;
        }
    }
    return 0;
}

static bool has_at(gl_str s)
{
    return s.n > 0 && memchr(s.p, '@', s.n) != NULL;
}

/* An unescaped '/' or '?' in a password ends the host part too early. What looks like a host is
 * then part of the password and must not be shown. */
static int split_password_why(struct gl_why *why)
{
    return gl_why(why, GL_E_INVALID,
                  "the store URL cannot be parsed: write a '/' in user or password as '%%2F', "
                  "a '?' as '%%3F'");
}

int gl_redis_url_parse(struct gl_redis_url *ret, gl_str text, struct gl_arena *a,
                       struct gl_why *reterr_why)
{
    struct gl_redis_url u = {
        .timeout_ms = 5000, .connect_timeout_ms = 3000, .wait_replicas = -1, .wait_ms = 1000};
    int err = parse_scheme(&u, &text, reterr_why);
    if (err < 0) {
        return err;
    }
    gl_str options, path, rest = gl_str_cut(text, '?', &options);
    rest = gl_str_cut(rest, '/', &path);
    bool is_torn = !has_at(rest) && (has_at(path) || has_at(options));
    for (size_t i = rest.n; i > 0; i--) { /* the last '@': a password may contain others */
        if (rest.p[i - 1] == '@') {
            err = parse_user(&u, (gl_str){rest.p, i - 1}, a, reterr_why);
            rest = (gl_str){rest.p + i, rest.n - i};
            break;
        }
    }
    err = err < 0 ? err : parse_hosts(&u, rest, a, reterr_why);
    err = err < 0 ? err : parse_path(&u, path, a, reterr_why);
    if (err < 0 && is_torn) {
        return split_password_why(reterr_why);
    }
    err = err < 0 ? err : parse_options(&u, options, a, reterr_why);
    if (err == 0) {
        /* Waiting for replicas or for a connection must end before the request times out. */
        u.wait_ms = u.wait_ms < u.timeout_ms ? u.wait_ms : u.timeout_ms / 2;
        if (u.connect_timeout_ms >= u.timeout_ms) {
            u.connect_timeout_ms = u.timeout_ms / 2;
        }
        *ret = u;
    }
    return err;
}
