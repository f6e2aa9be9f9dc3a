#include "stores.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/json.h"
#include "os/fs.h"
#include "os/paths.h"
#include "port/storeurl.h"
#include "store/postgres.h"
#include "store/redis.h"
#include "store/sqlite.h"

enum { FILE_BYTES_MAX = 8192 };

/* ---- opening ---- */

/* The folder of the contexts: "sqlite:/srv/old" names another data folder than ours. */
static const char *sqlite_folder(struct gl_arena *a, const struct gl_stores_config *c)
{
    const char *prefix = "sqlite:";
    size_t n = strlen(prefix);
    bool has_own = strncmp(c->url, prefix, n) == 0 && c->url[n] != '\0';

    return gl_paths_in(a, has_own ? c->url + n : c->data, "contexts");
}

static int open_sqlite(struct gl_store **ret, const struct gl_stores_config *c,
                       struct gl_loop *loop, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_sqlite_config config = {
        .folder = sqlite_folder(&a, c), .read_only = c->read_only, .vfs = c->vfs};

    return gl_sqlite_open(ret, &config, loop, reterr_why);
}

static int open_redis(struct gl_store **ret, const struct gl_stores_config *c, struct gl_loop *loop,
                      struct gl_why *reterr_why)
{
#ifdef GL_WITH_REDIS
    struct gl_redis_config config = {.url = c->url,
                                     .identity = c->identity != NULL ? c->identity : "",
                                     .allow_loss = c->allow_loss};

    return gl_redis_open(ret, &config, loop, reterr_why);
#else
    (void)ret, (void)c, (void)loop;
    return gl_why(reterr_why, GL_E_INVALID, "this build has no Redis");
#endif
}

static int open_postgres(struct gl_store **ret, const struct gl_stores_config *c,
                         struct gl_loop *loop, struct gl_why *reterr_why)
{
#ifdef GL_WITH_POSTGRES
    struct gl_postgres_config config = {.url = c->url,
                                        .identity = c->identity != NULL ? c->identity : "",
                                        .allow_loss = c->allow_loss};

    return gl_postgres_open(ret, &config, loop, reterr_why);
#else
    (void)ret, (void)c, (void)loop;
    return gl_why(reterr_why, GL_E_INVALID, "this build has no PostgreSQL");
#endif
}

int gl_stores_open(struct gl_store **ret, const struct gl_stores_config *config,
                   struct gl_loop *loop, struct gl_why *reterr_why)
{
    enum gl_storeurl_kind kind;
    int err = gl_storeurl_kind(gl_str_of(config->url), &kind, reterr_why);

    if (err != 0) {
        return err;
    }
    switch (kind) {
    case GL_STOREURL_SQLITE:
        return open_sqlite(ret, config, loop, reterr_why);
    case GL_STOREURL_REDIS:
        return open_redis(ret, config, loop, reterr_why);
    case GL_STOREURL_POSTGRES:
        return open_postgres(ret, config, loop, reterr_why);
    }
    GL_UNREACHABLE();
}

/* ---- which store a folder is used with ---- */

static bool copy(char *to, gl_str from)
{
    if (from.n >= GL_STORES_TEXT_MAX) {
        return false;
    }
    (void)snprintf(to, GL_STORES_TEXT_MAX, "%.*s", GL_STR_ARG(from));
    return true;
}

int gl_stores_recall(const char *data, struct gl_stores_memory *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *path = gl_paths_in(&a, data, GL_PATHS_STORE);
    struct gl_json j;
    gl_jnode root;
    int err = gl_fs_read(path, FILE_BYTES_MAX, &text, reterr_why);

    ret->url[0] = ret->identity[0] = '\0';
    if (err == GL_E_NOT_FOUND) {
        return 0;
    }
    if (err != 0) {
        return err;
    }
    if (gl_json_parse(&j, gl_buf_view(&text), FILE_BYTES_MAX, &a, NULL) == 0) {
        root = gl_json_root(&j);
        if (copy(ret->url, gl_json_str(&j, gl_json_get(&j, root, "url"), &a)) &&
            copy(ret->identity, gl_json_str(&j, gl_json_get(&j, root, "identity"), &a)) &&
            ret->url[0] != '\0') {
            return 0;
        }
    }
    return gl_why(reterr_why, GL_E_DAMAGED,
                  "%s does not tell which store this folder belongs to; if you are sure of that, "
                  "remove the file",
                  path);
}

int gl_stores_remember(const char *data, const char *url, gl_str identity,
                       struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "url");
    gl_jw_str(&w, gl_storeurl_safe(&a, gl_str_of(url)));
    gl_jw_key(&w, "identity");
    gl_jw_str(&w, identity);
    gl_jw_end(&w);
    gl_buf_char(&text, '\n');
    return gl_fs_write(gl_paths_in(&a, data, GL_PATHS_STORE), gl_buf_view(&text), reterr_why);
}

int gl_stores_match(const char *data, const char *url, const struct gl_stores_memory *m,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    bool is_shared = gl_storeurl_is_shared(gl_str_of(url));
    struct stat st;

    if (!is_shared && m->url[0] != '\0') {
        return gl_why(reterr_why, GL_E_STATE,
                      "the data folder %s belongs to the store %s: give that with --store or "
                      "GLIA_STORE, or choose another folder with --data-dir",
                      data, m->url);
    }
    if (is_shared && m->url[0] == '\0' &&
        stat(gl_paths_context(&a, data, GL_S("default"), GL_PATHS_STATE), &st) == 0) {
        return gl_why(reterr_why, GL_E_STATE,
                      "the data folder %s has a SQLite store of its own: choose another folder "
                      "with --data-dir, or move its jobs with 'glia store migrate sqlite: %.*s'",
                      data, GL_STR_ARG(gl_storeurl_safe(&a, gl_str_of(url))));
    }
    return 0;
}
