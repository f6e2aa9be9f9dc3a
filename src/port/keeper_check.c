/* keeper_check.c - validates the requests a keeper receives: names that become paths, sizes,
 * secrets. The node runs the same checks first; the keeper repeats them because it trusts no
 * one. */
#include "port/keeper_protocol.h"

enum {
    FILE_NAMES_BYTES_MAX = 768 << 10,
    WORKER_NAMES_BYTES_MAX = 4 << 20,
    SMALL_BYTES_MAX = 128 << 10, /* of a start, apart from its command, its files and its input:
                                    names, numbers, and the lengths of its texts */
    WORK_PLACES_MAX = 4096,
    PATH_BYTES_MAX = 4095,
};

static_assert(GL_COMMAND_BYTES_MAX + WORKER_NAMES_BYTES_MAX + GL_TEXTS_BYTES_MAX +
                      GL_INPUT_BYTES_MAX + SMALL_BYTES_MAX <=
                  GL_FRAME_BYTES_MAX,
              "every valid start fits a frame");
static_assert(GL_COMMAND_BYTES_MAX + FILE_NAMES_BYTES_MAX + GL_INPUT_BYTES_MAX + SMALL_BYTES_MAX <=
                  GL_KEEPER_FRAME_BYTES_OLD,
              "... and that of a step fits a frame of earlier releases");
static_assert(4 * (GL_ARGS_MAX + GL_ENVS_MAX + GL_SECRETS_MAX) < SMALL_BYTES_MAX / 2,
              "the lengths of its texts are small");

static bool is_attempt_id(gl_str s)
{
    if (s.n > GL_ATTEMPT_ID_BYTES_MAX) {
        return false;
    }
    if (s.n > 0 && s.p[0] == '@') { /* the step of an agent */
        s = (gl_str){.p = s.p + 1, .n = s.n - 1};
    }
    if (s.n == 0 || s.p[0] == '.' || s.p[0] == '-') {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (memchr(":[].-", s.p[i], 5) == NULL && !gl_str_is_id((gl_str){.p = s.p + i, .n = 1})) {
            return false;
        }
    }
    return true;
}

int gl_keeper_check_key(const struct gl_attempt_key *key, struct gl_why *reterr_why)
{
    if (!gl_str_is_id(key->context)) {
        return gl_why(reterr_why, GL_E_INVALID, "'%.*s' is not a valid context name",
                      GL_STR_ARG(key->context));
    }
    if (!gl_str_is_id(key->job)) {
        return gl_why(reterr_why, GL_E_INVALID, "'%.*s' is not a valid job id",
                      GL_STR_ARG(key->job));
    }
    if (!is_attempt_id(key->attempt)) {
        return gl_why(reterr_why, GL_E_INVALID, "'%.*s' is not a valid attempt id",
                      GL_STR_ARG(key->attempt));
    }
    return 0;
}

int gl_keeper_check_file(gl_str name, struct gl_why *reterr_why)
{
    gl_str rest = name;
    bool good = name.n > 0 && name.n < 4096 && memchr(name.p, 0, name.n) == NULL &&
                name.p[name.n - 1] != '/';
    while (good && rest.n > 0) {
        gl_str part = gl_str_cut(rest, '/', &rest);
        good = part.n > 0 && part.n <= 255 && !gl_str_is(part, ".") && !gl_str_is(part, "..");
    }
    if (!good) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "'%.*s' is not a file name inside the working folder", GL_STR_ARG(name));
    }
    return 0;
}

static bool has_nul(gl_str s)
{
    return s.n > 0 && memchr(s.p, 0, s.n) != NULL;
}

/* Secrets as they are sent: "NAME=value". No message contains a value. */
static int check_secrets(const struct gl_exec_start *s, size_t *bytes, struct gl_why *why)
{
    size_t total = 0;
    if (s->secrets_n > GL_SECRETS_MAX) {
        return gl_why(why, GL_E_LIMIT, "%zu secrets (at most %d)", s->secrets_n, GL_SECRETS_MAX);
    }
    for (size_t i = 0; i < s->secrets_n; i++) {
        gl_str value = {0};
        gl_str name = gl_str_cut(s->secrets[i], '=', &value);
        if (name.n == 0 || name.n > GL_ID_BYTES_MAX || has_nul(name) || value.n == 0) {
            return gl_why(why, GL_E_INVALID, "a secret is not of the form NAME=value");
        }
        if (gl_str_starts(
                name, GL_S("GLIA_"))) { /* reserved: the keeper identifies its processes by them */
            return gl_why(why, GL_E_INVALID, "secret %.*s: names beginning with GLIA_ are reserved",
                          GL_STR_ARG(name));
        }
        int r = gl_keeper_check_secret(name, value, why);
        if (r < 0) {
            return r;
        }
        total += value.n;
        *bytes += s->secrets[i].n + 1;
    }
    if (total > GL_SECRETS_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT, "the secrets take %zu bytes (at most %d)", total,
                      GL_SECRETS_BYTES_MAX);
    }
    return 0;
}

int gl_keeper_check_secret(gl_str name, gl_str value, struct gl_why *reterr_why)
{
    if (has_nul(value)) {
        return gl_why(reterr_why, GL_E_INVALID, "secret %.*s: its value contains a NUL byte",
                      GL_STR_ARG(name));
    }
    if (value.n < GL_SECRET_BYTES_MIN) {
        return gl_why(
            reterr_why, GL_E_INVALID,
            "secret %.*s: its value has %zu bytes; with less than %d it could not be kept "
            "out of the log",
            GL_STR_ARG(name), value.n, GL_SECRET_BYTES_MIN);
    }
    if (value.n > GL_SECRET_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_INVALID, "secret %.*s: its value has more than %d KiB",
                      GL_STR_ARG(name), GL_SECRET_BYTES_MAX >> 10);
    }
    return 0;
}

static int check_command(const struct gl_exec_start *s, struct gl_why *why)
{
    size_t bytes = 0;
    if (s->argv_n == 0 || s->argv[0].n == 0) {
        return gl_why(why, GL_E_INVALID, "the command is empty");
    }
    size_t files_max = s->is_worker ? GL_WORKER_FILES_MAX : GL_FILES_MAX;
    if (s->argv_n > GL_ARGS_MAX || s->env_n > GL_ENVS_MAX || s->files_n > files_max) {
        return gl_why(why, GL_E_LIMIT,
                      "too many arguments, environment entries or files (at most %d, %d, %zu)",
                      GL_ARGS_MAX, GL_ENVS_MAX, files_max);
    }
    for (size_t i = 0; i < s->argv_n; i++) {
        bytes += s->argv[i].n + 1;
        if (has_nul(s->argv[i])) {
            return gl_why(why, GL_E_INVALID, "argument %zu contains a NUL byte", i);
        }
    }
    for (size_t i = 0; i < s->env_n; i++) {
        gl_str e = s->env[i];
        bytes += e.n + 1;
        if (has_nul(e) || e.n == 0 || e.p[0] == '=' || memchr(e.p, '=', e.n) == NULL) {
            return gl_why(why, GL_E_INVALID, "'%.*s' is not of the form NAME=value",
                          e.n > 80 ? 80 : (int)e.n, e.p ? e.p : "");
        }
    }
    int r = check_secrets(s, &bytes, why);
    if (r < 0) {
        return r;
    }
    if (bytes > GL_COMMAND_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT, "arguments and environment take %zu bytes (at most %d)",
                      bytes, GL_COMMAND_BYTES_MAX);
    }
    return 0;
}

static bool is_hash(gl_str s)
{
    if (s.n != 64) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f')) {
            return false;
        }
    }
    return true;
}

/* Each name is counted with its hash and lengths. Only a worker's files may have their text in the
 * start. */
static int check_files(const struct gl_exec_start *s, struct gl_why *why)
{
    size_t bytes = 0, texts = 0;
    if (s->files_n > 0 && s->cwd.n > 0 && !s->is_worker) {
        return gl_why(why, GL_E_INVALID, "a step with files must run in a private folder");
    }
    for (size_t i = 0; i < s->files_n; i++) {
        const struct gl_exec_file *f = &s->files[i];
        int r = gl_keeper_check_file(f->name, why);
        if (r < 0) {
            return r;
        }
        bool is_text = s->is_worker && f->blob.n == 0;
        if (!is_text && (!is_hash(f->blob) || f->text.n > 0)) {
            return gl_why(why, GL_E_INVALID, "'%.*s': its content is not identified by a SHA-256",
                          GL_STR_ARG(f->name));
        }
        bytes += f->name.n + 128;
        texts += f->text.n;
    }
    if (bytes > (s->is_worker ? WORKER_NAMES_BYTES_MAX : FILE_NAMES_BYTES_MAX)) {
        return gl_why(why, GL_E_LIMIT, "the names of the files are too long");
    }
    if (texts > GL_TEXTS_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT, "the texts of the files take %zu bytes (at most %d)", texts,
                      GL_TEXTS_BYTES_MAX);
    }
    return 0;
}

static size_t count_work(gl_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        n += s.p[i] == GL_EXEC_WORK[0];
    }
    return n;
}

/* Each mention of the working folder grows when it is replaced by the path, so their number is
 * limited. */
static int check_work(const struct gl_exec_start *s, struct gl_why *why)
{
    size_t n = 0;
    for (size_t i = 0; i < s->argv_n; i++) {
        n += count_work(s->argv[i]);
    }
    for (size_t i = 0; i < s->env_n; i++) {
        n += count_work(s->env[i]);
    }
    return n <= WORK_PLACES_MAX
               ? 0
               : gl_why(why, GL_E_LIMIT, "the working folder is named %zu times (at most %d)", n,
                        WORK_PLACES_MAX);
}

static bool is_absolute(gl_str path)
{
    return path.n > 0 && path.n <= PATH_BYTES_MAX && path.p[0] == '/' && !has_nul(path);
}

/* The folder to run in: an absolute path, or a worker's own folder or one below it. */
static int check_cwd(const struct gl_exec_start *s, struct gl_why *why)
{
    if (s->cwd.n == 0 || is_absolute(s->cwd)) {
        return 0;
    }
    if (s->is_worker && gl_str_starts(s->cwd, GL_S(GL_EXEC_WORK))) {
        gl_str below = {.p = s->cwd.p + 1, .n = s->cwd.n - 1};
        if (below.n == 0) {
            return 0;
        }
        if (below.p[0] == '/') {
            return gl_keeper_check_file((gl_str){.p = below.p + 1, .n = below.n - 1}, why);
        }
    }
    return gl_why(why, GL_E_INVALID, "the working folder must be an absolute path");
}

static int check_worker(const struct gl_exec_start *s, struct gl_why *why)
{
    if (s->make_folder.n > 0 && (!s->is_worker || !is_absolute(s->make_folder))) {
        return gl_why(why, GL_E_INVALID, "the folder to create must be an absolute path");
    }
    if (s->take_folder.n > 0 && (!s->is_worker || !is_absolute(s->take_folder))) {
        return gl_why(why, GL_E_INVALID, "the run folder must be an absolute path");
    }
    if (!s->is_worker) {
        return 0;
    }
    if (s->stdout_max > GL_STDOUT_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT, "the limit for stdout is %u bytes (at most %d)",
                      s->stdout_max, GL_STDOUT_BYTES_MAX);
    }
    return check_work(s, why);
}

int gl_keeper_check_start(const struct gl_exec_start *s, struct gl_why *reterr_why)
{
    int r = gl_keeper_check_key(&s->key, reterr_why);
    if (r == 0) {
        r = check_command(s, reterr_why);
    }
    if (r == 0) {
        r = check_files(s, reterr_why);
    }
    if (r == 0) {
        r = check_cwd(s, reterr_why);
    }
    if (r == 0) {
        r = check_worker(s, reterr_why);
    }
    if (r < 0) {
        return r;
    }
    if (s->input.n > GL_INPUT_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT, "the input takes %zu bytes (at most %d)", s->input.n,
                      GL_INPUT_BYTES_MAX);
    }
    if (s->timeout_ms < 0 || s->grace_ms < 0 || s->beacon_ms < 0) {
        return gl_why(reterr_why, GL_E_INVALID, "a duration is negative");
    }
    return 0;
}
