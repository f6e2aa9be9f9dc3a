#include "cli/settings.h"

#include <sys/stat.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "base/times.h"
#include "model/labels.h"
#include "model/text/yaml.h"
#include "os/fs.h"
#include "os/pools.h"
#include "os/tcp.h"
#include "port/storeurl.h"

enum { FILE_BYTES_MAX = 1 << 20, NAME_BYTES_MAX = 40 };

const struct gl_setting_spec gl_settings_table[GL_SET_COUNT] = {
    [GL_SET_DATA_DIR] = {.name = "data_dir",
                         .flag = "--data-dir",
                         .env = "GLIA_DATA_DIR",
                         .kind = GL_KIND_FOLDER,
                         .doc = "the data folder; default: /var/lib/glia for root, "
                                "$XDG_DATA_HOME/glia or ~/.local/share/glia for others"},
    [GL_SET_SERVER] = {.name = "server",
                       .flag = "--server",
                       .env = "GLIA_SERVER",
                       .kind = GL_KIND_SERVER,
                       .doc = "connect to this node, never become one: unix:/path/node.sock or "
                              "http://host:port"},
    [GL_SET_STORE] = {.name = "store",
                      .flag = "--store",
                      .env = "GLIA_STORE",
                      .kind = GL_KIND_STORE,
                      .doc = "where jobs are kept: sqlite: (in the data folder), redis://, "
                             "rediss://, redis+sentinel://, postgres:// or postgresql://; several "
                             "nodes may share all but the first"},
    [GL_SET_STORE_ALLOW_LOSS] = {.name = "store_allow_loss",
                                 .flag = "--store-allow-loss",
                                 .env = "GLIA_STORE_ALLOW_LOSS",
                                 .initial = "false",
                                 .kind = GL_KIND_BOOL,
                                 .doc = "accept a store whose settings may lose data "
                                        "silently; 'glia store check' lists them"},
    [GL_SET_SESSION_TTL] = {.name = "session_ttl",
                            .flag = "--session-ttl",
                            .env = "GLIA_SESSION_TTL",
                            .initial = "10s",
                            .kind = GL_KIND_SPAN,
                            .least = 1000,
                            .most = 300000,
                            .doc = "on a shared store, mark a node dead after this long without a "
                                   "heartbeat; other nodes take over its jobs"},
    [GL_SET_ORPHAN_GRACE] = {.name = "orphan_grace",
                             .flag = "--orphan-grace",
                             .env = "GLIA_ORPHAN_GRACE",
                             .initial = "60s",
                             .kind = GL_KIND_SPAN,
                             .least = 1000,
                             .most = 3600000,
                             .doc = "on a shared store, a keeper ends the steps of a node that has "
                                    "been silent, or without a session, for this long; must be the "
                                    "same on all nodes"},
    [GL_SET_NODE_NAME] = {.name = "node_name",
                          .flag = "--node-name",
                          .env = "GLIA_NODE_NAME",
                          .kind = GL_KIND_NAME,
                          .doc =
                              "the name of the node, to which six characters are appended to make "
                              "it unique; default: the name of the machine"},
    [GL_SET_STACK] = {.name = "stack",
                      .flag = "--stack",
                      .env = "GLIA_STACK",
                      .kind = GL_KIND_NAME,
                      .doc = "nodes share jobs only with nodes of the same stack"},
    [GL_SET_ENV_SCOPE] =
        {.name = "env_scope",
         .flag = "--env-scope",
         .env = "GLIA_ENV_SCOPE",
         .kind = GL_KIND_NAME,
         .doc = "nodes share jobs only with nodes of the same scope, like prod or test"},
    [GL_SET_TOKEN_FILE] = {.name = "token_file",
                           .flag = "",
                           .env = "GLIA_TOKEN_FILE",
                           .kind = GL_KIND_FILE,
                           .doc = "the file with the token for a server over HTTP; GLIA_TOKEN is "
                                  "the token itself; default: the file token in the data folder"},
    [GL_SET_LISTEN] = {.name = "listen",
                       .flag = "--listen",
                       .env = "GLIA_LISTEN",
                       .kind = GL_KIND_ADDRESS,
                       .doc = "the TCP address on which serve also listens, like 127.0.0.1:7464; "
                              "clients need the token"},
    [GL_SET_POOLS] = {.name = "pools",
                      .flag = "--pools",
                      .env = "GLIA_POOLS",
                      .kind = GL_KIND_POOLS,
                      .doc =
                          "slots by pool, like default=8,gpu=1; default: a pool default with four "
                          "slots per core"},
    [GL_SET_LABELS] = {.name = "labels",
                       .flag = "--labels",
                       .env = "GLIA_LABELS",
                       .kind = GL_KIND_LABELS,
                       .doc = "labels of the node, like zone=a,disk=ssd; steps can require them"},
    [GL_SET_EXECUTOR_SLOTS] = {.name = "executor_slots",
                               .flag = "--executor-slots",
                               .env = "MN_EXECUTOR_MAX_CONCURRENCY",
                               .initial = "50",
                               .kind = GL_KIND_COUNT,
                               .least = 1,
                               .most = GL_SLOTS_MAX,
                               .doc = "slots of the default pool for workers of bundles"},
    [GL_SET_EXECUTOR_POOLS] = {.name = "executor_pools",
                               .flag = "--executor-pools",
                               .env = "MN_EXECUTOR_POOL_CAPACITIES",
                               .kind = GL_KIND_POOLS,
                               .doc = "more pools for workers of bundles, like gpu=1,io=8"},
    [GL_SET_RUNS_ROOT] = {.name = "runs_root",
                          .flag = "--runs-root",
                          .env = "MN_RUNS_ROOT",
                          .kind = GL_KIND_FOLDER,
                          .doc = "the folder of all run folders, which workers of bundles use; "
                                 "default: ~/.mn/runs"},
    [GL_SET_MODULES] = {.name = "modules",
                        .flag = "",
                        .env = "GLIA_MODULES_DIR",
                        .kind = GL_KIND_FOLDERS,
                        .doc = "folders with native modules for agents of bundles, like "
                               "/srv/modules:/opt/modules"},
    [GL_SET_MODULES_TRUSTED] = {.name = "modules_trusted",
                                .flag = "",
                                .env = "GLIA_TRUSTED_MODULES",
                                .kind = GL_KIND_NAMES,
                                .doc = "native modules that run in the node itself, by name, like "
                                       "acme.sort,acme.join; all others run in separate "
                                       "processes"},
    [GL_SET_FINISH] = {.name = "finish",
                       .flag = "--finish",
                       .env = "GLIA_FINISH",
                       .initial = "false",
                       .kind = GL_KIND_BOOL,
                       .doc = "when serve is stopped, wait for running steps first"},
    [GL_SET_GRACE] =
        {.name = "grace",
         .flag = "--grace",
         .env = "GLIA_GRACE",
         .initial = "30s",
         .kind = GL_KIND_SPAN,
         .doc = "with finish: wait at most this long, then leave running steps to the keeper"},
    [GL_SET_KEEP_FOR] = {.name = "keep_for",
                         .flag = "--keep-for",
                         .env = "GLIA_KEEP_FOR",
                         .initial = "30d",
                         .kind = GL_KIND_SPAN,
                         .doc = "remove ended jobs after this time; 0: never"},
    [GL_SET_KEEP_JOBS] = {.name = "keep_jobs",
                          .flag = "--keep-jobs",
                          .env = "GLIA_KEEP_JOBS",
                          .initial = "100000",
                          .kind = GL_KIND_COUNT,
                          .doc = "keep at most this many ended jobs; 0: any number"},
    [GL_SET_KEEP_BYTES] = {.name = "keep_bytes",
                           .flag = "--keep-bytes",
                           .env = "GLIA_KEEP_BYTES",
                           .initial = "0",
                           .kind = GL_KIND_BYTES,
                           .doc = "remove the oldest ended jobs above this size, like 20G; 0: any"},
    [GL_SET_KEEP_WORKSPACES_FOR] = {.name = "keep_workspaces_for",
                                    .flag = "--keep-workspaces-for",
                                    .env = "GLIA_KEEP_WORKSPACES_FOR",
                                    .initial = "3d",
                                    .kind = GL_KIND_SPAN,
                                    .doc = "how long the folders of failed steps are kept"},
    [GL_SET_BODY_BYTES] = {.name = "body_bytes",
                           .flag = "",
                           .env = "GLIA_BODY_BYTES",
                           .initial = "256K",
                           .kind = GL_KIND_BYTES,
                           .least = GL_BODY_BYTES_MIN,
                           .most = GL_MESSAGE_BYTES_MAX,
                           .doc = "store larger bodies of messages between agents apart from the "
                                  "message"},
    [GL_SET_LOG_STORE_BYTES] = {.name = "log_store_bytes",
                                .flag = "",
                                .env = "GLIA_LOG_STORE_BYTES",
                                .initial = "1M",
                                .kind = GL_KIND_BYTES,
                                .most = GL_LOG_BYTES_MAX,
                                .doc = "on a shared store, how much of the end of each log is "
                                       "copied into the store; 0: nothing"},
    [GL_SET_RECORD_BYTES] = {.name = "record_bytes",
                             .flag = "",
                             .env = "GLIA_RECORD_BYTES",
                             .initial = "32M",
                             .kind = GL_KIND_BYTES,
                             .doc = "how much recent history the flight recorder keeps; 0: "
                                    "record nothing"},
    [GL_SET_LOG] = {.name = "log",
                    .flag = "--log",
                    .env = "GLIA_LOG",
                    .initial = "info",
                    .kind = GL_KIND_WORD,
                    .words = "info|debug",
                    .doc = "debug: the node logs everything it does, on stderr"},
    [GL_SET_COLOR] = {.name = "color",
                      .flag = "",
                      .env = "GLIA_COLOR",
                      .initial = "auto",
                      .kind = GL_KIND_WORD,
                      .words = "auto|always|never",
                      .doc = "auto: on a terminal, and if NO_COLOR is not set"},
};

struct settings_reader {
    struct gl_settings *to;
    struct gl_arena *a;
    struct gl_buf wrong; /* sentences, one per line */
    struct gl_json j;
};

enum gl_setting_id gl_settings_by_flag(gl_str flag)
{
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        if (flag.n > 0 && gl_str_is(flag, gl_settings_table[i].flag)) {
            return (enum gl_setting_id)i;
        }
    }
    return GL_SET_COUNT;
}

const char *gl_settings_origin(const struct gl_settings *s, enum gl_setting_id id,
                               struct gl_arena *a)
{
    const struct gl_setting_spec *spec = &gl_settings_table[id];

    switch (s->values[id].origin) {
    case GL_ORIGIN_FLAG:
        return gl_str_fmt(a, "flag %s", spec->flag).p;
    case GL_ORIGIN_ENVIRONMENT:
        return gl_str_fmt(a, "environment %s", spec->env).p;
    case GL_ORIGIN_FILE:
        return gl_str_fmt(a, "file %s:%u", s->path, s->values[id].line).p;
    case GL_ORIGIN_DEFAULT:
        return "default";
    }
    GL_UNREACHABLE();
}

const char *gl_settings_shown(const struct gl_settings *s, enum gl_setting_id id,
                              struct gl_arena *a)
{
    const char *text = s->values[id].text;

    return gl_settings_table[id].kind == GL_KIND_STORE
               ? gl_str_c(a, gl_storeurl_safe(a, gl_str_of(text)))
               : text;
}

/* ---- what a value may be ---- */

/* "512M", "20GiB". "1.5G" is not accepted: whole numbers are enough here. */
static bool read_bytes(gl_str text, int64_t *ret)
{
    static const char letters[] = "KMGT";
    size_t digits = 0;
    uint64_t number;
    int64_t unit = 1;
    gl_str rest;

    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9') {
        digits++;
    }
    rest = gl_str_trim((gl_str){.p = text.p + digits, .n = text.n - digits});
    for (size_t i = 0; rest.n > 0 && i < sizeof(letters) - 1; i++) {
        unit *= 1024;
        if (rest.p[0] == letters[i]) {
            rest = (gl_str){.p = rest.p + 1, .n = rest.n - 1};
            if (rest.n > 0 && !gl_str_is(rest, "B") && !gl_str_is(rest, "iB")) {
                return false;
            }
            rest.n = 0;
            break;
        }
    }
    if (rest.n > 0 || !gl_str_u64((gl_str){.p = text.p, .n = digits}, &number) ||
        number > (uint64_t)(INT64_MAX / unit)) {
        return false;
    }
    *ret = (int64_t)number * unit;
    return true;
}

static bool read_bool(gl_str text, int64_t *ret)
{
    bool yes = gl_str_is(text, "true") || gl_str_is(text, "1") || gl_str_is(text, "yes");

    *ret = yes;
    return yes || gl_str_is(text, "false") || gl_str_is(text, "0") || gl_str_is(text, "no");
}

static bool read_word(gl_str text, const char *words, int64_t *ret)
{
    gl_str rest = gl_str_of(words);

    for (int64_t i = 0; rest.n > 0; i++) {
        if (gl_str_eq(gl_str_cut(rest, '|', &rest), text)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool is_server(gl_str text)
{
    gl_str unix_prefix = GL_S("unix:/"), http_prefix = GL_S("http://");

    if (gl_str_starts(text, unix_prefix)) {
        return text.n > unix_prefix.n;
    }
    return gl_str_starts(text, http_prefix) &&
           gl_tcp_split((gl_str){.p = text.p + http_prefix.n, .n = text.n - http_prefix.n}, NULL,
                        NULL);
}

/* NULL: the value is within its bounds. */
static const char *span_rule(const struct gl_setting_spec *spec, struct gl_arena *a, gl_ms span)
{
    char least[GL_TIMES_BYTES], most[GL_TIMES_BYTES];

    if (spec->most == 0 || (span >= spec->least && span <= spec->most)) {
        return NULL;
    }
    return gl_str_fmt(a, "must be between %.*s and %.*s",
                      GL_STR_ARG(gl_times_format_span(spec->least, least)),
                      GL_STR_ARG(gl_times_format_span(spec->most, most)))
        .p;
}

static const char *count_rule(const struct gl_setting_spec *spec, struct gl_arena *a, gl_str value,
                              int64_t *ret)
{
    if (gl_str_i64(value, ret) && *ret >= spec->least && (spec->most == 0 || *ret <= spec->most)) {
        return NULL;
    }
    return spec->most == 0 ? "must be a number, 0 or more"
                           : gl_str_fmt(a, "must be a number from %lld to %lld",
                                        (long long)spec->least, (long long)spec->most)
                                 .p;
}

static const char *bytes_rule(const struct gl_setting_spec *spec, struct gl_arena *a, gl_str value,
                              int64_t *ret)
{
    if (!read_bytes(value, ret)) {
        return "must be a size like 500M or 20G";
    }
    if (*ret >= spec->least && (spec->most == 0 || *ret <= spec->most)) {
        return NULL;
    }
    return gl_str_fmt(a, "must be a size from %lldK to %lldK", (long long)spec->least / 1024,
                      (long long)spec->most / 1024)
        .p;
}

static bool are_folders(gl_str value)
{
    while (value.n > 0) {
        gl_str one = gl_str_cut(value, ':', &value);

        if (one.n > 0 && one.p[0] != '/') {
            return false;
        }
    }
    return true;
}

static bool are_names(gl_str value)
{
    while (value.n > 0) {
        if (!gl_str_is_id(gl_str_trim(gl_str_cut(value, ',', &value)))) {
            return false;
        }
    }
    return true;
}

/* The rule that the value violates; NULL: none. */
static const char *rule_of(const struct gl_setting_spec *spec, const char *text, bool from_file,
                           struct gl_arena *a, int64_t *ret)
{
    gl_str value = gl_str_of(text);

    switch (spec->kind) {
    case GL_KIND_FOLDER:
    case GL_KIND_FILE:
        return from_file && text[0] != '/' ? "must be an absolute path in the file" : NULL;
    case GL_KIND_FOLDERS:
        return are_folders(value) ? NULL : "must be absolute paths, with ':' between them";
    case GL_KIND_NAMES:
        return are_names(value) ? NULL : "must be names, with ',' between them";
    case GL_KIND_SERVER:
        return is_server(value) ? NULL : "must be unix:/path/node.sock or http://host:port";
    case GL_KIND_ADDRESS:
        return gl_tcp_check(value, NULL) == 0 ? NULL
                                              : "must be an address and a port, like "
                                                "127.0.0.1:7464 or [::1]:7464";
    case GL_KIND_NAME:
        return gl_str_is_id(value) && value.n <= NAME_BYTES_MAX
                   ? NULL
                   : "must be a name of at most 40 letters, digits, '_', '.' or '-', beginning "
                     "with a letter or digit";
    case GL_KIND_SPAN:
        if (!gl_times_parse_span(value, ret)) {
            return "must be a time like 30s, 10m, 12h or 7d";
        }
        return span_rule(spec, a, *ret);
    case GL_KIND_COUNT:
        return count_rule(spec, a, value, ret);
    case GL_KIND_BYTES:
        return bytes_rule(spec, a, value, ret);
    case GL_KIND_BOOL:
        return read_bool(value, ret) ? NULL : "must be true or false";
    case GL_KIND_WORD:
        return read_word(value, spec->words, ret)
                   ? NULL
                   : gl_str_fmt(a, "must be one of %s", spec->words).p;
    case GL_KIND_STORE:
    case GL_KIND_POOLS:
    case GL_KIND_LABELS:
        break;
    }
    GL_UNREACHABLE();
}

/* NULL: the value is valid. Otherwise a sentence about it. */
static const char *check(const struct gl_setting_spec *spec, const char *text, bool from_file,
                         struct gl_arena *a, int64_t *ret)
{
    struct gl_pools_entry *pools;
    struct gl_labels labels;
    enum gl_storeurl_kind kind;
    const char *rule;
    struct gl_why why;
    size_t n;

    if (text[0] == '\0') {
        return "the value is empty";
    }
    if (spec->kind == GL_KIND_POOLS) { /* these sentences name the invalid part */
        return gl_pools_read(text, a, &pools, &n, &why) == 0 ? NULL
                                                             : gl_str_dup(a, gl_str_of(why.text)).p;
    }
    if (spec->kind == GL_KIND_LABELS) {
        return gl_labels_parse(gl_str_of(text), a, &labels, &why) == 0
                   ? NULL
                   : gl_str_dup(a, gl_str_of(why.text)).p;
    }
    if (spec->kind == GL_KIND_STORE) { /* without its password */
        return gl_storeurl_kind(gl_str_of(text), &kind, &why) == 0
                   ? NULL
                   : gl_str_dup(a, gl_str_of(why.text)).p;
    }
    rule = rule_of(spec, text, from_file, a, ret);
    return rule != NULL ? gl_str_fmt(a, "'%s' %s", text, rule).p : NULL;
}

static void add_error(struct settings_reader *r, const char *text)
{
    gl_buf_fmt(&r->wrong, "%s%s", r->wrong.n > 0 ? "\n" : "", text);
}

/* From a flag, the environment, or the table. */
static void set(struct settings_reader *r, enum gl_setting_id id, const char *text,
                enum gl_setting_origin origin)
{
    const struct gl_setting_spec *spec = &gl_settings_table[id];
    struct gl_setting *s = &r->to->values[id];
    const char *what;

    if (text == NULL || (text[0] == '\0' && origin != GL_ORIGIN_FLAG)) {
        return;
    }
    if (spec->kind == GL_KIND_BOOL && origin == GL_ORIGIN_FLAG && text[0] == '\0') {
        text = "true"; /* a flag without a value */
    }
    what = check(spec, text, false, r->a, &s->number);
    if (what != NULL) {
        add_error(
            r,
            gl_str_fmt(r->a, "%s: %s", origin == GL_ORIGIN_FLAG ? spec->flag : spec->env, what).p);
        return;
    }
    s->text = text;
    s->origin = origin;
}

/* ---- the file ---- */

static void add_error_at(struct settings_reader *r, gl_jnode at, gl_str what)
{
    unsigned line, column;

    gl_json_place(&r->j, at, &line, &column);
    add_error(r, gl_str_fmt(r->a, "%s: line %u, column %u: %.*s", r->to->path, line, column,
                            GL_STR_ARG(what))
                     .p);
}

/* A text that would be read as more than one value keeps its quotes, which are refused. */
static gl_str member_text(struct settings_reader *r, gl_jnode n)
{
    gl_str text = gl_json_str(&r->j, n, r->a);
    bool is_plain =
        text.n > 0 && memchr(text.p, ',', text.n) == NULL && memchr(text.p, '=', text.n) == NULL;

    return is_plain ? text : gl_json_raw(&r->j, n);
}

/* {default: 8, gpu: 1} is default=8,gpu=1 */
static gl_str join_members(struct settings_reader *r, const struct gl_setting_spec *spec,
                           gl_jnode object)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (gl_jnode k = gl_json_first(&r->j, object); k; k = gl_json_after(&r->j, object, k)) {
        gl_jnode value = gl_json_value(k);

        gl_buf_fmt(&out, "%s%.*s=%.*s", out.n > 0 ? "," : "", GL_STR_ARG(member_text(r, k)),
                   GL_STR_ARG(spec->kind == GL_KIND_LABELS ? member_text(r, value)
                                                           : gl_json_raw(&r->j, value)));
    }
    return gl_str_dup(r->a, gl_buf_view(&out));
}

/* The value in the form of a command-line flag. */
static bool text_of(struct settings_reader *r, const struct gl_setting_spec *spec, gl_jnode value,
                    gl_str *ret)
{
    if (gl_json_is(value, GL_JSON_STRING)) {
        *ret = gl_json_str(&r->j, value, r->a);
    } else if (gl_json_is(value, GL_JSON_OBJECT) &&
               (spec->kind == GL_KIND_POOLS || spec->kind == GL_KIND_LABELS)) {
        *ret = join_members(r, spec, value);
    } else if (gl_json_is(value, GL_JSON_NUMBER) || gl_json_is(value, GL_JSON_TRUE) ||
               gl_json_is(value, GL_JSON_FALSE)) {
        *ret = gl_json_raw(&r->j, value);
    } else {
        add_error_at(r, value,
                     gl_str_fmt(r->a, "%s cannot be %s", spec->name, gl_json_type_name(value)));
        return false;
    }
    return true;
}

static void take_member(struct settings_reader *r, gl_jnode key)
{
    gl_str name = gl_json_str(&r->j, key, r->a), text;
    gl_jnode value = gl_json_value(key);
    struct gl_suggest near;

    gl_suggest_init(&near, name);
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        const struct gl_setting_spec *spec = &gl_settings_table[i];
        struct gl_setting *s = &r->to->values[i];
        const char *what;

        if (!gl_str_is(name, spec->name)) {
            gl_suggest_offer(&near, gl_str_of(spec->name));
            continue;
        }
        if (gl_json_is(value, GL_JSON_NULL) || !text_of(r, spec, value, &text)) {
            return; /* null: as if it were not there */
        }
        s->text = gl_str_c(r->a, text);
        what = check(spec, s->text, true, r->a, &s->number);
        if (what != NULL) {
            add_error_at(r, value, gl_str_fmt(r->a, "%s: %s", spec->name, what));
        }
        s->origin = GL_ORIGIN_FILE;
        gl_json_place(&r->j, key, &s->line, &(unsigned){0});
        return;
    }
    add_error_at(r, key,
                 near.best.n > 0
                     ? gl_str_fmt(r->a, "there is no setting '%.*s'; did you mean '%.*s'?",
                                  GL_STR_ARG(name), GL_STR_ARG(near.best))
                     : gl_str_fmt(r->a, "there is no setting '%.*s'; 'glia config show' lists them",
                                  GL_STR_ARG(name)));
}

/* Only comments, which the YAML parser would reject as an empty document. */
static bool is_blank(gl_str text)
{
    while (text.n > 0) {
        gl_str line = gl_str_trim(gl_str_cut(text, '\n', &text));

        if (line.n > 0 && line.p[0] != '#') {
            return false;
        }
    }
    return true;
}

static int read_file(struct settings_reader *r, const char *path, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct gl_why why;
    struct stat st;
    gl_jnode root;
    gl_str text;
    int err;

    /* Check the type before opening: opening a FIFO would wait for a writer. */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return gl_why(reterr_why, GL_R_FILE_NOT_REGULAR, "%s is not a regular file", path);
    }
    err = gl_fs_read(path, FILE_BYTES_MAX, &content, reterr_why);
    if (err != 0) {
        return err;
    }
    r->to->path = gl_str_dup(r->a, gl_str_of(path)).p;
    text = gl_str_dup(r->a, gl_buf_view(&content));
    if (is_blank(text)) {
        return 0;
    }
    err = gl_str_ends(gl_str_of(path), GL_S(".json"))
              ? gl_json_parse(&r->j, text, FILE_BYTES_MAX, r->a, &why)
              : gl_yaml_parse(&r->j, text, FILE_BYTES_MAX, r->a, &why);
    if (err != 0) {
        return gl_why(reterr_why, GL_R_CONFIG_INVALID, "%s: %s", path, why.text);
    }
    root = gl_json_root(&r->j);
    if (!gl_json_is(root, GL_JSON_OBJECT)) {
        return gl_why(reterr_why, GL_R_CONFIG_INVALID, "%s must be a list of `name: value`, not %s",
                      path, gl_json_type_name(root));
    }
    for (gl_jnode k = gl_json_first(&r->j, root); k; k = gl_json_after(&r->j, root, k)) {
        take_member(r, k);
    }
    return 0;
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* One of the default files. A folder that we may not read (a HOME of another user) counts as having
 * none; a file that exists but cannot be read is an error. */
static int read_usual(struct settings_reader *r, const char *path, struct gl_why *reterr_why)
{
    struct stat st;

    return stat(path, &st) == 0 ? read_file(r, path, reterr_why) : GL_E_NOT_FOUND;
}

/* A file given with --config must exist; the default ones need not. */
static int find_file(struct settings_reader *r, const struct gl_settings_sources *from,
                     struct gl_why *reterr_why)
{
    const char *named = from->config != NULL ? from->config : from->env("GLIA_CONFIG");
    const char *xdg = from->env("XDG_CONFIG_HOME"), *home = from->env("HOME");
    const char *usual = NULL;
    int err;

    if (is_set(named)) {
        err = read_file(r, named, reterr_why);
        return err == GL_E_NOT_FOUND ? GL_E_INVALID : err;
    }
    if (from->config != NULL) {
        return gl_why(reterr_why, GL_E_INVALID, "--config needs the name of a file");
    }
    if (is_set(xdg) && xdg[0] == '/') {
        usual = gl_str_fmt(r->a, "%s/glia/config.yaml", xdg).p;
    } else if (is_set(home)) {
        usual = gl_str_fmt(r->a, "%s/.config/glia/config.yaml", home).p;
    }
    err = usual != NULL ? read_usual(r, usual, reterr_why) : GL_E_NOT_FOUND;
    if (err == GL_E_NOT_FOUND && from->root) {
        err = read_usual(r, "/etc/glia/config.yaml", reterr_why);
    }
    return err == GL_E_NOT_FOUND ? 0 : err;
}

int gl_settings_read(struct gl_settings *ret, const struct gl_settings_sources *from,
                     struct gl_arena *a, struct gl_why *reterr_why)
{
    struct settings_reader r = {.to = ret, .a = a};
    int err;

    *ret = (struct gl_settings){.path = ""};
    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        ret->values[i].text = "";
        set(&r, (enum gl_setting_id)i, gl_settings_table[i].initial, GL_ORIGIN_DEFAULT);
    }
    GL_ASSERT(r.wrong.n == 0);
    err = find_file(&r, from, reterr_why);
    for (size_t i = 0; i < GL_SET_COUNT && err == 0; i++) {
        set(&r, (enum gl_setting_id)i, from->env(gl_settings_table[i].env), GL_ORIGIN_ENVIRONMENT);
        set(&r, (enum gl_setting_id)i, from->flags[i], GL_ORIGIN_FLAG);
    }
    if (err == 0 && r.wrong.n > 0) {
        err = gl_why(reterr_why, GL_R_SETTING_INVALID, "%.*s", GL_STR_ARG(gl_buf_view(&r.wrong)));
    }
    gl_buf_done(&r.wrong);
    return err;
}
