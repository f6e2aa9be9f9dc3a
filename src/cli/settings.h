/* settings.h - what a user can set, where each value comes from, and the file they are read from.
 *
 * One table describes each setting: its name in the file, its flag, its environment variable, its
 * default and its allowed values. A flag overrides the environment, which overrides the file, which
 * overrides the default; an empty variable counts as unset. The file is YAML or JSON: one object,
 * whose keys are the names below.
 *
 * Reading reports all errors of the file at once, also in settings that another source overrides:
 * they would fail later, when that source is gone. */
#ifndef GL_CLI_SETTINGS_H
#define GL_CLI_SETTINGS_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

enum gl_setting_id {
    GL_SET_DATA_DIR,
    GL_SET_SERVER,
    GL_SET_STORE,
    GL_SET_STORE_ALLOW_LOSS,
    GL_SET_SESSION_TTL,
    GL_SET_ORPHAN_GRACE,
    GL_SET_NODE_NAME,
    GL_SET_STACK,
    GL_SET_ENV_SCOPE,
    GL_SET_TOKEN_FILE,
    GL_SET_LISTEN,
    GL_SET_POOLS,
    GL_SET_LABELS,
    GL_SET_EXECUTOR_SLOTS,
    GL_SET_EXECUTOR_POOLS,
    GL_SET_RUNS_ROOT,
    GL_SET_MODULES,
    GL_SET_MODULES_TRUSTED,
    GL_SET_FINISH,
    GL_SET_GRACE,
    GL_SET_KEEP_FOR,
    GL_SET_KEEP_JOBS,
    GL_SET_KEEP_BYTES,
    GL_SET_KEEP_WORKSPACES_FOR,
    GL_SET_BODY_BYTES,
    GL_SET_LOG_STORE_BYTES,
    GL_SET_RECORD_BYTES,
    GL_SET_LOG,
    GL_SET_COLOR,
    GL_SET_COUNT
};

enum gl_setting_kind {
    GL_KIND_FOLDER,  /* a path; must be absolute in the file */
    GL_KIND_FILE,    /* the same */
    GL_KIND_FOLDERS, /* absolute paths with ':' between them */
    GL_KIND_NAMES,   /* ids with ',' between them */
    GL_KIND_SERVER,  /* unix:/path, http://host:port */
    GL_KIND_STORE,   /* redis://host/0; never shown with its password */
    GL_KIND_NAME,    /* an id, like web-1 */
    GL_KIND_ADDRESS, /* 127.0.0.1:7464, [::1]:7464 */
    GL_KIND_POOLS,   /* default=8,gpu=1; in the file also an object */
    GL_KIND_LABELS,  /* zone=a,disk=ssd; in the file also an object */
    GL_KIND_SPAN,    /* 30s, 7d; its number is in milliseconds */
    GL_KIND_COUNT,
    GL_KIND_BYTES, /* 512M, 20G; its number is in bytes */
    GL_KIND_BOOL,  /* its number is 0 or 1 */
    GL_KIND_WORD,  /* one of `words`; its number is the place in that list */
};

/* Description of a setting. */
struct gl_setting_spec {
    const char *name; /* in the file */
    const char *flag; /* "": it has none */
    const char *env;
    const char *initial; /* "" : none */
    enum gl_setting_kind kind;
    const char *words;   /* "info|debug"; for other kinds the form of a value */
    int64_t least, most; /* of a span or a count; 0: any */
    const char *doc;
};

enum gl_setting_origin {
    GL_ORIGIN_DEFAULT,
    GL_ORIGIN_FILE,
    GL_ORIGIN_ENVIRONMENT,
    GL_ORIGIN_FLAG,
};

struct gl_setting {
    const char *text; /* as written; "": not set */
    int64_t number;   /* its numeric value, for kinds that have one */
    enum gl_setting_origin origin;
    unsigned line; /* in the file */
};

struct gl_settings {
    struct gl_setting values[GL_SET_COUNT];
    const char *path; /* path of the file that was read; "": none */
};

/* Sources of values besides the file. */
struct gl_settings_sources {
    const char *flags[GL_SET_COUNT]; /* NULL: not given */
    const char *config;              /* --config; NULL: not given */
    const char *(*env)(const char *name);
    bool root;
};

extern const struct gl_setting_spec gl_settings_table[GL_SET_COUNT];

/* Everything lives in `a`. GL_E_INVALID: *reterr_why has one sentence per line, each with its
 * place. */
int gl_settings_read(struct gl_settings *ret, const struct gl_settings_sources *from,
                     struct gl_arena *a, struct gl_why *reterr_why);

/* "flag --listen", "environment GLIA_LISTEN", "file /etc/glia/config.yaml:3", "default" */
const char *gl_settings_origin(const struct gl_settings *s, enum gl_setting_id id,
                               struct gl_arena *a);

/* The value for display: a store's URL without its password. */
const char *gl_settings_shown(const struct gl_settings *s, enum gl_setting_id id,
                              struct gl_arena *a);

/* GL_SET_COUNT: no setting has this flag ("--listen"). */
enum gl_setting_id gl_settings_by_flag(gl_str flag);

#endif
