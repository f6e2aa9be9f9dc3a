/* postgres_url.c - separates our options from libpq's, and splits the host lists. libpq parses the
 * URL; we only need the hosts, in order to try them one by one. */
#include "store/postgres/postgres_url.h"

#include <string.h>

#include "base/check.h"
#include "port/storeurl.h"
#include "store/common/options.h"

/* One lane would cost the node 7 % less CPU, but makes fan-out a fifth slower: bench/RESULTS.md. */
enum { TIMEOUT_MS = 5000, TIMEOUT_MS_MIN = 100, TIMEOUT_MS_MAX = 600000, LANES = 3 };

/* ---- options of our own ---- */

static const struct gl_option options_known[] = {
    GL_OPTION_TO_NUMBER(struct gl_postgres_url, timeout_ms, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX),
    GL_OPTION_TO_NUMBER(struct gl_postgres_url, connections, 1, GL_POSTGRES_LANES_MAX),
};

/* Set our options and rebuild the URL without them. */
static int take_options(struct gl_postgres_url *u, struct gl_arena *arena, gl_str text,
                        struct gl_why *reterr_why)
{
    gl_str rest, base = gl_str_cut(text, '?', &rest);
    struct gl_buf left = {0};
    int err = 0;
    gl_buf_str(&left, base);
    for (char mark = '?'; rest.n > 0 && err >= 0;) {
        gl_str option = gl_str_cut(rest, '&', &rest);
        err = gl_options_set(options_known, GL_COUNT(options_known), u, option, arena, reterr_why);
        if (err == 0 && option.n > 0) {
            gl_buf_char(&left, mark);
            gl_buf_str(&left, option);
            mark = '&';
        }
    }
    u->url = gl_str_c(arena, gl_buf_view(&left));
    gl_buf_done(&left);
    return err < 0 ? err : 0;
}

/* "postgres://user:***@host/db". Options may contain a password, too, and are left out. */
static const char *without_password(struct gl_arena *arena, gl_str url)
{
    gl_str options;
    return gl_str_c(arena, gl_str_cut(gl_storeurl_safe(arena, url), '?', &options));
}

/* ---- hosts ---- */

/* Number of parts in "a,b,c"; 0 if empty. */
static size_t parts_of(gl_str list)
{
    size_t n = list.n > 0 ? 1 : 0;
    for (size_t i = 0; i < list.n; i++) {
        n += list.p[i] == ',';
    }
    return n;
}

/* Part `i` of "a,b,c". A list of one part applies to every host. NULL: not given. */
static const char *part_of(struct gl_arena *arena, gl_str list, size_t i)
{
    gl_str part = list, rest = list;
    if (parts_of(list) > 1) {
        for (size_t k = 0; k <= i; k++) {
            part = gl_str_cut(rest, ',', &rest);
        }
    }
    return part.n > 0 ? gl_str_c(arena, part) : NULL;
}

static int set_hosts(struct gl_postgres_url *u, struct gl_arena *arena, gl_str hosts,
                     gl_str addresses, gl_str ports, struct gl_why *reterr_why)
{
    size_t n = parts_of(hosts), m = parts_of(addresses), p = parts_of(ports);
    u->hosts_n = n > m ? n : m;
    u->hosts_n = u->hosts_n > 0 ? u->hosts_n : 1;
    if (u->hosts_n > GL_POSTGRES_HOSTS_MAX) {
        return gl_why(reterr_why, GL_E_INVALID, "the store URL has %zu hosts (at most %d)",
                      u->hosts_n, (int)GL_POSTGRES_HOSTS_MAX);
    }
    if ((n > 0 && m > 0 && n != m) || (p > 1 && p != u->hosts_n)) {
        return gl_why(
            reterr_why, GL_E_INVALID,
            "the store URL has %zu hosts, %zu addresses and %zu ports: these numbers do not "
            "match",
            n, m, p);
    }
    GL_ASSERT(u->hosts_n > 0);
    for (size_t i = 0; i < u->hosts_n; i++) {
        u->hosts[i] = (struct gl_postgres_host){.host = part_of(arena, hosts, i),
                                                .address = part_of(arena, addresses, i),
                                                .port = part_of(arena, ports, i)};
    }
    return 0;
}

/* How much of libpq's error message may be shown. It ends with the part of the URL that it could
 * not parse, in quotes, and that may be the password. The name of an unknown option is harmless,
 * unless an '@' after it shows that it was meant to be part of a password. */
static size_t printable_bytes(const char *error, const char *url)
{
    size_t n = error != NULL ? strcspn(error, "\n") : 0;
    const char *quote = n > 0 ? strstr(error, ": \"") : NULL;
    const char *options = strchr(url, '?');
    if (quote == NULL || (size_t)(quote - error) >= n) {
        return n;
    }
    bool is_option = gl_str_starts(gl_str_of(error), GL_S("invalid URI query parameter")) &&
                     options != NULL && strchr(options, '@') == NULL;
    return is_option ? n : (size_t)(quote - error);
}

static int read_hosts(struct gl_postgres_url *u, const struct gl_postgres_lib *lib,
                      struct gl_arena *arena, struct gl_why *reterr_why)
{
    char *error = NULL;
    gl_str hosts = {0}, addresses = {0}, ports = {0};
    PQconninfoOption *all = lib->PQconninfoParse(u->url, &error);
    if (all == NULL) {
        int err =
            gl_why(reterr_why, GL_E_INVALID,
                   "%s is not a valid PostgreSQL URL: %.*s (in user and password, write "
                   "a '%%' as '%%25', a '/' as '%%2F')",
                   u->display, (int)printable_bytes(error, u->url), error != NULL ? error : "");
        lib->PQfreemem(error);
        return err;
    }
    for (const PQconninfoOption *o = all; o->keyword != NULL; o++) {
        gl_str value = gl_str_dup(arena, gl_str_of(o->val));
        if (strcmp(o->keyword, "host") == 0) {
            hosts = value;
        } else if (strcmp(o->keyword, "hostaddr") == 0) {
            addresses = value;
        } else if (strcmp(o->keyword, "port") == 0) {
            ports = value;
        }
    }
    lib->PQconninfoFree(all);
    return set_hosts(u, arena, hosts, addresses, ports, reterr_why);
}

int gl_postgres_url_read(struct gl_postgres_url *ret, const struct gl_postgres_lib *lib,
                         struct gl_arena *arena, const char *text, struct gl_why *reterr_why)
{
    struct gl_postgres_url u = {.timeout_ms = TIMEOUT_MS, .connections = LANES};
    u.display = without_password(arena, gl_str_of(text));
    int err = take_options(&u, arena, gl_str_of(text), reterr_why);
    u.lanes_n = (size_t)u.connections;
    if (err == 0) {
        err = read_hosts(&u, lib, arena, reterr_why);
    }
    if (err == 0) {
        *ret = u;
    }
    GL_ASSERT(err != 0 || ret->lanes_n > 0);
    return err;
}
