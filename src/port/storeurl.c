/* storeurl.c - looks at store URLs without parsing them completely: a URL that is wrong must still
 * be printable without its password. */
#include "port/storeurl.h"

#include "base/check.h"

static const struct {
    const char *prefix;
    enum gl_storeurl_kind kind;
} schemes[] = {
    {"sqlite:", GL_STOREURL_SQLITE},           {"redis://", GL_STOREURL_REDIS},
    {"rediss://", GL_STOREURL_REDIS},          {"redis+sentinel://", GL_STOREURL_REDIS},
    {"postgres://", GL_STOREURL_POSTGRES},     {"postgresql://", GL_STOREURL_POSTGRES},
    {"rediss+sentinel://", GL_STOREURL_REDIS},
};

int gl_storeurl_kind(gl_str url, enum gl_storeurl_kind *ret, struct gl_why *reterr_why)
{
    struct gl_arena a = {0};
    gl_str safe;
    int err;

    if (url.n == 0) {
        *ret = GL_STOREURL_SQLITE;
        return 0;
    }
    for (size_t i = 0; i < GL_COUNT(schemes); i++) {
        if (gl_str_starts(url, gl_str_of(schemes[i].prefix))) {
            *ret = schemes[i].kind;
            return 0;
        }
    }
    safe = gl_storeurl_safe(&a, url);
    err = gl_why(reterr_why, GL_E_INVALID,
                 "'%.*s' must begin with sqlite:, redis://, rediss://, redis+sentinel://, "
                 "rediss+sentinel://, postgres:// or postgresql://",
                 GL_STR_ARG(safe));
    gl_arena_done(&a);
    return err;
}

bool gl_storeurl_is_shared(gl_str url)
{
    enum gl_storeurl_kind kind;

    return gl_storeurl_kind(url, &kind, NULL) == 0 && kind != GL_STOREURL_SQLITE;
}

/* ---- passwords ---- */

/* The position of `word` in `s`; s.n: not found. */
static size_t find(gl_str s, const char *word)
{
    gl_str w = gl_str_of(word);

    for (size_t i = 0; i + w.n <= s.n; i++) {
        if (memcmp(s.p + i, w.p, w.n) == 0) {
            return i;
        }
    }
    return s.n;
}

static gl_str from(gl_str s, size_t at)
{
    return (gl_str){.p = s.p + at, .n = s.n - at};
}

/* The end of "user:password". An unescaped password may contain '@' or '/', so the last '@' counts:
 * better to hide too much than too little. s.n: there is none. */
static size_t userinfo_end(gl_str s)
{
    for (size_t i = s.n; i > 0; i--) {
        if (s.p[i - 1] == '@') {
            return i - 1;
        }
    }
    return s.n;
}

/* Mask options such as "password=x", "sslpassword=x", "sentinel_password=x". */
static void hide_options(struct gl_buf *out, gl_str query)
{
    while (query.n > 0) {
        gl_str rest, value, option = gl_str_cut(query, '&', &rest);
        bool has_more = option.n < query.n;
        gl_str name = gl_str_cut(option, '=', &value);

        gl_buf_str(out, name);
        if (name.n < option.n) {
            gl_buf_char(out, '=');
            gl_buf_str(out, find(name, "pass") < name.n ? GL_S("***") : value);
        }
        gl_buf_c(out, has_more ? "&" : "");
        query = rest;
    }
}

gl_str gl_storeurl_safe(struct gl_arena *a, gl_str url)
{
    size_t start = find(url, "://");
    gl_str rest = from(url, start < url.n ? start + 3 : 0), options;
    size_t end = userinfo_end(rest);
    struct gl_buf out = {0};
    gl_str safe;

    gl_buf_str(&out, (gl_str){.p = url.p, .n = url.n - rest.n});
    if (end < rest.n) {
        gl_str secret, user = gl_str_cut((gl_str){.p = rest.p, .n = end}, ':', &secret);

        gl_buf_str(&out, user);
        gl_buf_c(&out, user.n < end ? ":***" : "");
        rest = from(rest, end);
    }
    gl_buf_str(&out, gl_str_cut(rest, '?', &options));
    gl_buf_c(&out, options.n > 0 ? "?" : "");
    hide_options(&out, options);
    safe = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return safe;
}

/* ---- the same place ---- */

/* "redis host:6379/0": engine, server, database, with defaults filled in. */
static gl_str place_of(struct gl_arena *a, gl_str url)
{
    enum gl_storeurl_kind kind = GL_STOREURL_SQLITE;
    size_t start;
    gl_str rest, options, host, path;
    bool is_sentinel = find(url, "+sentinel://") < url.n;

    (void)gl_storeurl_kind(url, &kind, NULL); /* an invalid URL is treated as SQLite */
    if (kind == GL_STOREURL_SQLITE) {
        return gl_str_starts(url, GL_S("sqlite:")) ? url : GL_S("sqlite:");
    }
    url = gl_storeurl_safe(a, url);
    start = find(url, "://") + 3;
    rest = gl_str_cut(from(url, start), '?', &options);
    if (userinfo_end(rest) < rest.n) {
        rest = from(rest, userinfo_end(rest) + 1);
    }
    host = gl_str_cut(rest, '/', &path);
    return gl_str_fmt(a, "%s %.*s%s/%.*s",
                      kind == GL_STOREURL_POSTGRES ? "postgres"
                      : is_sentinel                ? "sentinel"
                                                   : "redis",
                      GL_STR_ARG(host),
                      is_sentinel || find(host, ":") < host.n ? ""
                      : kind == GL_STOREURL_POSTGRES          ? ":5432"
                                                              : ":6379",
                      GL_STR_ARG(path.n == 0 && kind == GL_STOREURL_REDIS ? GL_S("0") : path));
}

bool gl_storeurl_is_same(gl_str x, gl_str y)
{
    struct gl_arena a = {0};
    bool is_same = gl_str_eq(place_of(&a, x), place_of(&a, y));

    gl_arena_done(&a);
    return is_same;
}
