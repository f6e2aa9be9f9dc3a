/* stores.c - opens and checks stores by URL; reads and writes the file `store` of a data folder. */
#include "app/stores.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/json.h"
#include "os/fs.h"
#include "os/paths.h"
#include "port/storeurl.h"
#include "store/postgres/postgres.h"
#include "store/redis/redis.h"
#include "store/sqlite/sqlite.h"

enum { FILE_BYTES_MAX = 8192 };

/* ---- opening ---- */

/* "sqlite:/srv/old" names another data folder. */
const char *gl_stores_folder(struct gl_arena *a, const char *url, const char *data)
{
    gl_str rest;

    if (gl_storeurl_is_shared(gl_str_of(url))) {
        return NULL;
    }
    (void)gl_str_cut(gl_str_of(url), ':', &rest);
    return gl_str_c(a, rest.n > 0 ? rest : gl_str_of(data));
}

static int open_sqlite(struct gl_store **ret, const struct gl_stores_config *c,
                       struct gl_loop *loop, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_sqlite_config config = {
        .folder = gl_paths_in(&a, gl_stores_folder(&a, c->url, c->data), "contexts"),
        .read_only = c->read_only,
        .vfs = c->vfs};

    return gl_sqlite_open(ret, &config, loop, reterr_why);
}

static int open_redis(struct gl_store **ret, const struct gl_stores_config *c, struct gl_loop *loop,
                      struct gl_why *reterr_why)
{
    struct gl_redis_config config = {.url = c->url,
                                     .identity = c->identity != NULL ? c->identity : "",
                                     .allow_loss = c->allow_loss,
                                     .read_only = c->read_only};

    return gl_redis_open(ret, &config, loop, reterr_why);
}

static int open_postgres(struct gl_store **ret, const struct gl_stores_config *c,
                         struct gl_loop *loop, struct gl_why *reterr_why)
{
    struct gl_postgres_config config = {.url = c->url,
                                        .identity = c->identity != NULL ? c->identity : "",
                                        .allow_loss = c->allow_loss};

    return gl_postgres_open(ret, &config, loop, reterr_why);
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

static int check_sqlite(const struct gl_stores_config *c, struct gl_arena *a,
                        struct gl_findings *ret, struct gl_why *reterr_why)
{
    const char *path = gl_paths_context(a, gl_stores_folder(a, c->url, c->data), GL_CONTEXT_DEFAULT,
                                        GL_PATHS_STATE);
    struct gl_why why;
    int err = gl_sqlite_check(path, &why);

    if (err == GL_E_DAMAGED) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", why.text);
        return 0;
    }
    if (err != 0) {
        return gl_why(reterr_why, err, "%s", why.text);
    }
    gl_findings_add(ret, a, GL_FINDING_GOOD, "%s is intact", path);
    return 0;
}

int gl_stores_check(const struct gl_stores_config *config, struct gl_arena *a,
                    struct gl_findings *ret, struct gl_why *reterr_why)
{
    const char *identity = config->identity != NULL ? config->identity : "";
    enum gl_storeurl_kind kind;
    int err = gl_storeurl_kind(gl_str_of(config->url), &kind, reterr_why);

    if (err != 0) {
        return err;
    }
    switch (kind) {
    case GL_STOREURL_SQLITE:
        return check_sqlite(config, a, ret, reterr_why);
    case GL_STOREURL_REDIS: {
        struct gl_redis_config redis = {
            .url = config->url, .identity = identity, .allow_loss = config->allow_loss};

        return gl_redis_check(&redis, a, ret, reterr_why);
    }
    case GL_STOREURL_POSTGRES: {
        struct gl_postgres_config postgres = {
            .url = config->url, .identity = identity, .allow_loss = config->allow_loss};

        return gl_postgres_check(&postgres, a, ret, reterr_why);
    }
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

int gl_stores_load(const char *data, struct gl_stores_memory *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *path = gl_paths_in(&a, data, GL_PATHS_STORE);
    struct gl_json j;
    gl_jnode root;
    int err = gl_fs_read(path, FILE_BYTES_MAX, &text, reterr_why);

    ret->url[0] = ret->identity[0] = ret->node[0] = '\0';
    ret->incarnations = 0;
    if (err == GL_E_NOT_FOUND) {
        return 0;
    }
    if (err != 0) {
        return err;
    }
    if (gl_json_parse(&j, gl_buf_view(&text), FILE_BYTES_MAX, &a, NULL) == 0) {
        root = gl_json_root(&j);
        (void)gl_json_u64(&j, gl_json_get(&j, root, "incarnations"), &ret->incarnations);
        if (copy(ret->url, gl_json_str(&j, gl_json_get(&j, root, "url"), &a)) &&
            copy(ret->identity, gl_json_str(&j, gl_json_get(&j, root, "identity"), &a)) &&
            copy(ret->node, gl_json_str(&j, gl_json_get(&j, root, "node"), &a)) &&
            ret->url[0] != '\0') {
            return 0;
        }
    }
    return gl_why(reterr_why, GL_E_DAMAGED,
                  "%s is damaged: it does not say which store this folder belongs to; if you know "
                  "that, remove the file",
                  path);
}

void gl_stores_set(struct gl_stores_memory *m, const char *url, gl_str identity)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    if (!copy(m->url, gl_storeurl_safe(&a, gl_str_of(url))) || !copy(m->identity, identity)) {
        m->identity[0] = '\0'; /* too long to be an identity */
    }
}

uint64_t gl_stores_incarnations(const char *data)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *folder = gl_paths_in(&a, data, GL_PATHS_KEEPER);
    uint64_t n = 0;
    gl_str rest;

    if (gl_fs_read(gl_paths_in(&a, folder, "epoch"), FILE_BYTES_MAX, &text, NULL) != 0) {
        return 0;
    }
    for (rest = gl_buf_view(&text); rest.n > 0;) {
        gl_str value, name = gl_str_cut(gl_str_cut(rest, '\n', &rest), ' ', &value);

        if (gl_str_is(name, "incarnation")) {
            (void)gl_str_u64(value, &n); /* damaged: 0, which is how the keeper reads it */
        }
    }
    return n;
}

bool gl_stores_rename(const char *data, struct gl_stores_memory *m, gl_str node)
{
    if (gl_str_is(node, m->node) || node.n >= GL_STORES_TEXT_MAX) {
        return false;
    }
    if (m->node[0] != '\0') {
        m->incarnations = gl_stores_incarnations(data);
    }
    return copy(m->node, node);
}

int gl_stores_save(const char *data, const struct gl_stores_memory *m, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "url");
    gl_jw_c(&w, m->url);
    gl_jw_key(&w, "identity");
    gl_jw_c(&w, m->identity);
    gl_jw_key(&w, "node");
    gl_jw_c(&w, m->node);
    gl_jw_key(&w, "incarnations");
    gl_jw_u64(&w, m->incarnations);
    gl_jw_end(&w);
    gl_buf_char(&text, '\n');
    return gl_fs_write(gl_paths_in(&a, data, GL_PATHS_STORE), gl_buf_view(&text), reterr_why);
}

int gl_stores_match(const char *data, const char *url, const struct gl_stores_memory *m,
                    struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    bool is_shared = gl_storeurl_is_shared(gl_str_of(url));
    bool was_shared = gl_storeurl_is_shared(gl_str_of(m->url));
    struct stat st;

    if (!is_shared && was_shared) {
        return gl_why(reterr_why, GL_R_STORE_WRONG,
                      "the data folder %s belongs to the store %s; name that with --store or "
                      "GLIA_STORE, or choose another folder with --data-dir",
                      data, m->url);
    }
    if (is_shared && !was_shared &&
        stat(gl_paths_context(&a, data, GL_CONTEXT_DEFAULT, GL_PATHS_STATE), &st) == 0) {
        return gl_why(reterr_why, GL_R_STORE_OWN_SQLITE,
                      "the data folder %s has a SQLite store of its own; choose another folder "
                      "with --data-dir, or move its jobs with 'glia store migrate sqlite: %.*s'",
                      data, GL_STR_ARG(gl_storeurl_safe(&a, gl_str_of(url))));
    }
    return 0;
}
