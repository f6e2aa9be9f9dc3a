/* workers.c - composes the start of a worker or module: command, files, working folder, input. */
#include "node/workers.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "node/workers_env.h"

enum { GRACE_MS = 2000 };

/* ---- the command ---- */

struct placeholder {
    gl_str name, value;
};

/* A single pass: inserted values are not substituted again. */
static gl_str substituted(gl_str text, const struct placeholder *words, size_t words_n,
                          struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    size_t i = 0, k;

    GL_ASSERT(words_n > 0);
    if (text.n == 0 || memchr(text.p, '{', text.n) == NULL) {
        return text;
    }
    while (i < text.n) {
        gl_str rest = {.p = text.p + i, .n = text.n - i};

        for (k = 0; k < words_n && !gl_str_starts(rest, words[k].name); k++) {
        }
        if (k < words_n) {
            gl_buf_str(&out, words[k].value);
            i += words[k].name.n;
        } else {
            gl_buf_char(&out, text.p[i++]);
        }
    }
    return gl_str_dup(a, gl_buf_view(&out));
}

/* The command that prepares a Python environment comes before the agent's own. */
static int wrap_python(const struct gl_worker_facts *f, gl_str *argv, size_t *n, struct gl_why *why)
{
    GL_ASSERT(*n == 0);
    if (f->agent->python_env.n == 0) {
        return 0;
    }
    if (f->place->glia_path.n == 0 || f->place->pyenv_folder.n == 0) {
        return gl_why(
            why, GL_E_INVALID,
            "the agent needs a python_environment, but this node has no folder for Python "
            "environments");
    }
    argv[(*n)++] = f->place->glia_path;
    argv[(*n)++] = GL_S("pyenv");
    argv[(*n)++] = f->place->pyenv_folder;
    argv[(*n)++] = f->agent->python_env;
    argv[(*n)++] = GL_S("--");
    return 0;
}

static int make_argv(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                     struct gl_why *why)
{
    enum { OF_PYTHON = 5 };
    const struct placeholder words[] = {
        {GL_S("{input_file}"), GL_S(GL_EXEC_WORK "/" GL_WORKER_INPUT)},
        {GL_S("{context_file}"), GL_S(GL_EXEC_WORK "/" GL_WORKER_CONTEXT)},
        {GL_S("{message_file}"), GL_S(GL_EXEC_WORK "/" GL_WORKER_MESSAGE)},
        {GL_S("{body_file}"), GL_S(GL_EXEC_WORK "/" GL_WORKER_BODY)},
        {GL_S("{workdir}"), f->workdir},
        {GL_S("{job_id}"), f->turn->job_id},
        {GL_S("{agent_id}"), f->agent->id},
    };
    const struct gl_strs *given = &f->unit->argv;
    gl_str *argv = GL_NEW_ARRAY(a, gl_str, given->n + OF_PYTHON);
    size_t n = 0;
    int rc = wrap_python(f, argv, &n, why);

    for (size_t i = 0; i < given->n && rc == 0; i++) {
        if (given->items[i].n > 0 &&
            memchr(given->items[i].p, GL_EXEC_WORK[0], given->items[i].n) != NULL) {
            rc = gl_why(why, GL_E_INVALID, "command[%zu] contains the byte 0x01", i);
        }
        argv[n++] = substituted(given->items[i], words, GL_COUNT(words), a);
    }
    if (rc == 0 && given->n == 0) {
        rc = gl_why(why, GL_E_INVALID, "the agent has no command");
    }
    x->argv = argv;
    x->argv_n = n;
    GL_ASSERT(n <= given->n + OF_PYTHON);
    return rc;
}

/* ---- the files ---- */

struct files {
    struct gl_arena *a;
    struct gl_map places; /* name -> its entry */
    struct gl_exec_file *items;
    size_t n, cap;
};

/* A later file replaces an earlier one of the same name. */
static void add_file(struct files *fs, struct gl_exec_file file)
{
    struct gl_exec_file *at = gl_map_find(&fs->places, file.name);

    GL_ASSERT(file.name.n > 0);
    if (at == NULL) {
        GL_ASSERT(fs->n < fs->cap);
        at = &fs->items[fs->n++];
        gl_map_add(&fs->places, file.name, at);
    }
    *at = file;
}

static gl_str from(gl_str s, size_t at)
{
    GL_ASSERT(at <= s.n);
    return (gl_str){.p = s.p + at, .n = s.n - at};
}

/* "./worker/" is "worker", "." is "". */
static gl_str plain_path(gl_str s)
{
    while (gl_str_starts(s, GL_S("./"))) {
        s = from(s, 2);
    }
    while (s.n > 0 && s.p[s.n - 1] == '/') {
        s.n--;
    }
    return gl_str_is(s, ".") ? (gl_str){0} : s;
}

/* The index of the first payload that does not sort before `path`. */
static size_t lower_bound(const struct gl_payload *items, size_t n, gl_str path)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (gl_str_cmp(items[mid].path, path) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    GL_ASSERT(low <= n);
    return low;
}

static gl_str base_name(gl_str path)
{
    gl_str rest = path;

    while (rest.n > 0 && memchr(rest.p, '/', rest.n) != NULL) {
        (void)gl_str_cut(rest, '/', &rest); /* the part before is a folder */
    }
    return rest;
}

/* Where a payload goes; "": it does not belong to this upload. */
static gl_str target_of(const struct gl_upload *u, gl_str source, gl_str path, struct gl_arena *a)
{
    gl_str target = plain_path(u->target), rest;

    if (source.n > 0 && gl_str_eq(path, source)) {
        return target.n > 0 ? target : base_name(path);
    }
    if (source.n > 0 &&
        (!gl_str_starts(path, source) || path.n <= source.n || path.p[source.n] != '/')) {
        return (gl_str){0};
    }
    rest = source.n > 0 ? from(path, source.n + 1) : path;
    return target.n > 0 ? gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(target), GL_STR_ARG(rest)) : rest;
}

/* All payloads below `source` are adjacent, because payloads are sorted, but others that share the
 * prefix may come between: "lib", "lib.txt", "lib/a". */
static size_t count_upload(const struct gl_bundle_spec *b, const struct gl_upload *u,
                           struct files *to)
{
    const struct gl_payload *items = b->payloads.items;
    gl_str source = plain_path(u->source);
    size_t n = 0;

    for (size_t i = lower_bound(items, b->payloads.n, source);
         i < b->payloads.n && gl_str_starts(items[i].path, source); i++) {
        gl_str name = target_of(u, source, items[i].path, to->a);

        if (name.n > 0) {
            n++;
            if (to->items != NULL) {
                add_file(to, (struct gl_exec_file){.name = name,
                                                   .blob = items[i].blob,
                                                   .executable = items[i].executable});
            }
        }
    }
    GL_ASSERT(n <= b->payloads.n);
    return n;
}

static int add_uploads(const struct gl_worker_facts *f, struct files *fs, struct gl_why *why)
{
    enum { OF_THE_RUNTIME = 4 };
    const struct gl_bundle_spec *b = f->turn->flow->bundle;
    const struct gl_upload *uploads = f->agent->uploads.items;

    GL_ASSERT(fs->n == 0);
    GL_ASSERT(fs->items == NULL);
    fs->cap = OF_THE_RUNTIME;
    for (size_t i = 0; i < f->agent->uploads.n; i++) {
        size_t n = count_upload(b, &uploads[i], fs);

        if (n == 0) {
            return gl_why(why, GL_E_INVALID,
                          "the agent needs payloads/%.*s, which the bundle does not have",
                          GL_STR_ARG(uploads[i].source));
        }
        fs->cap += n;
    }
    if (fs->cap > GL_PAYLOADS_MAX + OF_THE_RUNTIME) {
        return gl_why(why, GL_E_LIMIT,
                      "the agent needs %zu files in its working folder, over the limit of %d",
                      fs->cap - OF_THE_RUNTIME, GL_PAYLOADS_MAX);
    }
    fs->items = GL_NEW_ARRAY(fs->a, struct gl_exec_file, fs->cap);
    for (size_t i = 0; i < f->agent->uploads.n; i++) {
        (void)count_upload(b, &uploads[i], fs); /* the same number as before */
    }
    GL_ASSERT(fs->n <= fs->cap);
    return 0;
}

static gl_str dup_buf(struct gl_arena *a, struct gl_buf *b)
{
    return gl_str_dup(a, gl_buf_view(b));
}

static void put_known(struct gl_jw *w, const char *key, gl_str value)
{
    if (value.n > 0) {
        gl_jw_put_str(w, key, value);
    }
}

static void write_workflow(struct gl_jw *w, const struct gl_message_ledger *l, struct gl_arena *a)
{
    gl_jw_object(w);
    put_known(w, "run_id", l->run_id);
    put_known(w, "step_id", l->step_id);
    if (l->has_revision) {
        gl_jw_put_u64(w, "graph_revision", l->graph_revision);
    }
    put_known(w, "template_id", l->template_id);
    put_known(w, "region_id", l->region_id);
    put_known(w, "attempt_id", l->attempt_id);
    gl_jw_put_u64(w, "attempt", l->attempt);
    put_known(w, "deadline_at", gl_worker_time(l->deadline_at, a));
    put_known(w, "heartbeat_deadline_at", gl_worker_time(l->heartbeat_deadline_at, a));
    put_known(w, "idempotency_key", l->idempotency_key);
    gl_jw_end(w);
}

static gl_str context_text(const struct gl_worker_facts *f, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "job_id", f->turn->job_id);
    gl_jw_put_str(&w, "agent_id", f->agent->id);
    gl_jw_put_c(&w, "agent_type", gl_agent_kind_words[f->agent->kind]);
    gl_jw_put_str(&w, "template_type", f->agent->template_type);
    gl_jw_put_raw(&w, "agent_state", f->turn->state.n > 0 ? f->turn->state : GL_S("{}"));
    gl_jw_key(&w, "workflow");
    write_workflow(&w, &f->ledger, a);
    gl_jw_put_str(&w, "timestamp", gl_worker_time(f->turn->now, a));
    gl_jw_end(&w);
    return dup_buf(a, &out);
}

/* A large body is not in the message the worker reads but in these two files. */
static int add_own(const struct gl_worker_facts *f, struct files *fs, struct gl_why *why)
{
    struct gl_message whole = f->message;
    struct gl_body_ref ref = {0};
    gl_str body = {0}, input = {0};
    int rc = 0;

    GL_ASSERT(fs->n <= fs->cap);
    if (whole.body.n == 0) {
        whole.body = f->turn->body;
    }
    if (whole.body.n > 0 || !gl_message_body_ref(whole.artifacts, fs->a, &ref)) {
        input = whole.body.n > 0 ? whole.body : GL_S("null");
        rc = gl_message_body(&whole, fs->a, &body, why);
    }
    add_file(fs, (struct gl_exec_file){
                     .name = GL_S(GL_WORKER_INPUT), .blob = ref.sha256, .text = input});
    add_file(fs,
             (struct gl_exec_file){.name = GL_S(GL_WORKER_BODY), .blob = ref.sha256, .text = body});
    add_file(fs, (struct gl_exec_file){.name = GL_S(GL_WORKER_MESSAGE), .text = f->turn->message});
    add_file(
        fs, (struct gl_exec_file){.name = GL_S(GL_WORKER_CONTEXT), .text = context_text(f, fs->a)});
    return rc;
}

static int make_files(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                      struct gl_why *why)
{
    struct files fs = {.a = a};
    int rc;

    gl_map_init(&fs.places);
    rc = add_uploads(f, &fs, why);
    if (rc == 0) {
        rc = add_own(f, &fs, why);
    }
    gl_map_done(&fs.places);
    x->files = fs.items;
    x->files_n = fs.n;
    GL_ASSERT(fs.n <= fs.cap || rc != 0);
    return rc;
}

/* ---- limits of the system ---- */

static int check_one(gl_str v, bool is_variable, size_t number, struct gl_arena *a,
                     struct gl_why *why)
{
    gl_str rest, name;

    GL_ASSERT(is_variable || number < GL_ARGS_MAX);
    if (v.n <= GL_ARG_BYTES_MAX && (v.n == 0 || memchr(v.p, '\0', v.n) == NULL)) {
        return 0;
    }
    name = is_variable ? gl_str_fmt(a, "the variable %.*s", GL_STR_ARG(gl_str_cut(v, '=', &rest)))
                       : gl_str_fmt(a, "argument %zu of the command", number);
    if (v.n <= GL_ARG_BYTES_MAX) {
        return gl_why(why, GL_E_INVALID, "%.*s contains a NUL byte", GL_STR_ARG(name));
    }
    return gl_why(why, GL_E_LIMIT,
                  "%.*s is %zu bytes, over the limit of %d; pass large values to the worker in "
                  "payloads/ or in its message",
                  GL_STR_ARG(name), v.n, GL_ARG_BYTES_MAX);
}

static int check_start(const struct gl_exec_start *x, struct gl_arena *a, struct gl_why *why)
{
    size_t bytes = x->cwd.n;
    int rc = 0;

    if (x->argv_n > GL_ARGS_MAX || x->env_n > GL_ENVS_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "the worker has %zu arguments and %zu variables; the limits are %d and %d",
                      x->argv_n, x->env_n, GL_ARGS_MAX, GL_ENVS_MAX);
    }
    for (size_t i = 0; i < x->argv_n + x->env_n && rc == 0; i++) {
        bool is_variable = i >= x->argv_n;
        gl_str v = is_variable ? x->env[i - x->argv_n] : x->argv[i];

        rc = check_one(v, is_variable, i, a, why);
        bytes += v.n + 1;
    }
    if (rc == 0 && bytes > GL_COMMAND_BYTES_MAX) {
        rc = gl_why(why, GL_E_LIMIT,
                    "the worker's arguments and environment total %zu bytes, over the limit of %d; "
                    "make the bundle's `environment`, its configuration or the node's own "
                    "environment smaller",
                    bytes, GL_COMMAND_BYTES_MAX);
    }
    return rc;
}

/* These members of a message become variables unchanged. */
static int check_words(const struct gl_message *m, struct gl_why *why)
{
    const gl_str words[] = {m->content_type, m->content_encoding};

    for (size_t i = 0; i < GL_COUNT(words); i++) {
        for (size_t k = 0; k < words[i].n; k++) {
            if ((unsigned char)words[i].p[k] < 0x20) {
                return gl_why(why, GL_E_INVALID,
                              "the message's %s contains the byte 0x%02x; it must be a single line",
                              i == 0 ? "content_type" : "content_encoding",
                              (unsigned)words[i].p[k]);
            }
        }
    }
    return 0;
}

/* ---- the whole start ---- */

/* If the step has no ledger entry, use the one in the message itself. */
static void take_ledger(struct gl_worker_facts *f, struct gl_arena *a)
{
    GL_ASSERT(f->ledger.run_id.n == 0);
    if (f->turn->ledger != NULL) {
        f->ledger = *f->turn->ledger;
    } else {
        gl_message_ledger_of(f->message.headers, a, &f->ledger);
    }
    if (f->ledger.run_id.n == 0) {
        f->ledger.run_id = f->turn->run_id;
    }
    if (f->ledger.attempt == 0) {
        f->ledger.attempt = 1;
    }
    GL_ASSERT(f->ledger.attempt > 0);
}

static int compose_worker(struct gl_worker_facts *f, struct gl_arena *a, struct gl_exec_start *x,
                          struct gl_why *why)
{
    uint32_t max = f->agent->stdout_max;
    int rc = gl_message_read(f->turn->message, a, &f->message, why);

    GL_ASSERT(!x->is_worker);
    if (rc != 0) {
        return gl_why_prefix(why, "the message");
    }
    take_ledger(f, a);
    f->workdir = f->unit->cwd.n > 0 ? f->unit->cwd : GL_S(GL_EXEC_WORK);
    x->is_worker = true;
    x->cwd = f->workdir;
    x->stdout_max = max == 0                    ? GL_STDOUT_BYTES
                    : max < GL_STDOUT_BYTES_MAX ? max
                                                : GL_STDOUT_BYTES_MAX;
    x->grace_ms = GRACE_MS;
    x->beacon_ms = f->agent->beacons ? f->agent->beacon_ms : 0;
    x->make_folder = gl_worker_data_folder(f->place, f->turn->run_id, a);
    if (!gl_str_eq(f->turn->run_id, f->turn->job_id)) { /* run ids may be reused */
        x->take_folder = gl_worker_run_folder(f->place, f->turn->run_id, a);
    }
    GL_ASSERT(x->stdout_max > 0);
    GL_ASSERT(x->stdout_max <= GL_STDOUT_BYTES_MAX);
    rc = check_words(&f->message, why);
    if (rc == 0) {
        rc = make_argv(f, a, x, why);
    }
    if (rc == 0) {
        rc = gl_worker_env(f, a, x, why);
    }
    if (rc == 0) {
        rc = make_files(f, a, x, why);
    }
    return rc == 0 ? check_start(x, a, why) : rc;
}

/* Modules have no files: they get the whole message. */
static int write_message(const struct gl_worker_facts *f, struct gl_arena *a, struct gl_jw *w,
                         struct gl_why *why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_message m;

    if (f->turn->body.n == 0) {
        gl_jw_raw(w, f->turn->message);
        return 0;
    }
    if (gl_message_read(f->turn->message, a, &m, why) != 0) {
        gl_jw_raw(w, GL_S("null"));
        return gl_why_prefix(why, "the message");
    }
    m.body = f->turn->body;
    m.artifacts = gl_message_artifacts(a, m.artifacts, (gl_str){0});
    gl_message_write(&m, &out);
    gl_jw_raw(w, gl_buf_view(&out));
    return 0;
}

static int compose_module(const struct gl_worker_facts *f, struct gl_arena *a,
                          struct gl_exec_start *x, struct gl_why *why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_str *argv = GL_NEW(a, gl_str);
    struct gl_jw w;
    int rc;

    GL_ASSERT(f->agent->module.n > 0);
    *argv = f->agent->module;
    x->argv = argv;
    x->argv_n = 1;
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_name(&w, "job_id");
    gl_jw_str(&w, f->turn->job_id);
    gl_jw_name(&w, "agent_id");
    gl_jw_str(&w, f->agent->id);
    gl_jw_name(&w, "config");
    gl_jw_raw(&w, f->agent->config.n > 0 ? f->agent->config : GL_S("{}"));
    gl_jw_name(&w, "state");
    gl_jw_raw(&w, f->turn->state.n > 0 ? f->turn->state : GL_S("null"));
    gl_jw_name(&w, "message");
    rc = write_message(f, a, &w, why);
    gl_jw_end(&w);
    if (rc != 0) {
        return rc;
    }
    if (out.n > GL_MODULE_FRAME_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "configuration, state and message of the module total %zu bytes, over the "
                      "limit of %d",
                      out.n, GL_MODULE_FRAME_BYTES_MAX);
    }
    x->input = dup_buf(a, &out);
    return 0;
}

int gl_worker_compose(const struct gl_worker_place *p, const struct gl_worker_turn *t,
                      struct gl_arena *a, struct gl_exec_start *x, struct gl_why *reterr_why)
{
    struct gl_worker_facts f = {.place = p,
                                .turn = t,
                                .agent = gl_flow_agent(t->flow, t->agent),
                                .unit = gl_flow_step(t->flow, t->agent)};

    GL_ASSERT(t->agent < gl_flow_agents_n(t->flow));
    x->driver = f.unit->driver;
    x->timeout_ms = f.unit->timeout_ms;
    if (gl_str_is(x->driver, "module")) {
        return compose_module(&f, a, x, reterr_why);
    }
    GL_ASSERT(gl_str_is(x->driver, "worker")); /* relays run inside the core */
    return compose_worker(&f, a, x, reterr_why);
}
