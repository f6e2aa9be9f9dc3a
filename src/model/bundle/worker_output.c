#include "model/bundle/worker_output.h"

#include "base/check.h"
#include "base/limits.h"

enum {
    /* Of a result: every byte may have become an escape of six bytes. */
    RESULT_BYTES_MAX = 6 * GL_STDOUT_BYTES_MAX + (1 << 20),
    RAW_BYTES_MAX = 16 << 10, /* of stdout, included a second time */
};

/* The result, as the executor reports it. */

static int read_text(const struct gl_json *j, const char *name, struct gl_arena *a, gl_str *ret,
                     struct gl_why *why)
{
    gl_jnode n = gl_json_get(j, gl_json_root(j), name);

    if (n != NULL && !gl_json_is(n, GL_JSON_STRING) && !gl_json_is(n, GL_JSON_NULL)) {
        return gl_why(why, GL_E_INVALID, "the worker's result: `%s` is %s, not text", name,
                      gl_json_type_name(n));
    }
    *ret = gl_json_str(j, n, a);
    return 0;
}

int gl_worker_result_read(gl_str output, struct gl_arena *a, struct gl_worker_result *ret,
                          struct gl_why *reterr_why)
{
    struct gl_worker_result r = {0};
    struct gl_json j;
    gl_jnode n;

    if (output.n == 0) { /* it ended before it could print anything */
        *ret = r;
        return 0;
    }
    int rc = gl_json_parse(&j, output, RESULT_BYTES_MAX, a, reterr_why);
    if (rc != 0) {
        (void)gl_why_prefix(reterr_why, "the worker's result"); /* rc is returned */
        return rc;
    }
    if (!gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        return gl_why(reterr_why, GL_E_INVALID, "the worker's result is %s, not an object",
                      gl_json_type_name(gl_json_root(&j)));
    }
    rc = read_text(&j, "stdout", a, &r.stdout_text, reterr_why);
    rc = rc == 0 ? read_text(&j, "stderr", a, &r.stderr_text, reterr_why) : rc;
    if (rc != 0) {
        return rc;
    }
    n = gl_json_get(&j, gl_json_root(&j), "is_cut");
    if (n != NULL && !gl_json_bool(n, &r.is_cut)) {
        return gl_why(reterr_why, GL_E_INVALID, "the worker's result: `is_cut` is %s",
                      gl_json_type_name(n));
    }
    n = gl_json_get(&j, gl_json_root(&j), "stdout_bytes");
    r.stdout_bytes = r.stdout_text.n;
    if (n != NULL && !gl_json_u64(&j, n, &r.stdout_bytes)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the worker's result: `stdout_bytes` is not a "
                      "number");
    }
    *ret = r;
    return 0;
}

void gl_worker_result_write(const struct gl_worker_result *r, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_name(&w, "stdout");
    gl_jw_str(&w, r->stdout_text);
    gl_jw_name(&w, "stderr");
    gl_jw_str(&w, r->stderr_text);
    if (r->is_cut) {
        gl_jw_name(&w, "is_cut");
        gl_jw_bool(&w, true);
    }
    gl_jw_name(&w, "stdout_bytes");
    gl_jw_u64(&w, r->stdout_bytes);
    gl_jw_end(&w);
}

/* The answer on stdout. */

static gl_str last_line(gl_str text)
{
    const char *cut = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;

    if (cut == NULL) {
        return (gl_str){0};
    }
    return gl_str_trim((gl_str){.p = cut + 1, .n = (size_t)(text.p + text.n - cut - 1)});
}

/* JSON that is too long or too deep to be embedded in other documents does not count as JSON. */
static bool parse(gl_str text, struct gl_arena *a, struct gl_json *ret)
{
    return text.n > 0 && gl_json_parse(ret, text, GL_STDOUT_BYTES_MAX, a, NULL) == 0 &&
           ret->depth <= GL_VALUE_DEPTH_MAX;
}

static bool parse_stdout(gl_str text, struct gl_arena *a, struct gl_json *ret)
{
    struct gl_json j;

    text = gl_str_trim(text);
    if (parse(text, a, &j)) {
        *ret = j;
        return true;
    }
    text = last_line(text);
    if (text.n > 0 && text.p[0] == '{' && parse(text, a, &j)) {
        *ret = j;
        return true;
    }
    return false;
}

static void read_events(struct gl_worker_output *said, gl_jnode list, struct gl_arena *a)
{
    const struct gl_json *j = &said->json;
    struct gl_worker_event *events;

    if (!gl_json_is(list, GL_JSON_ARRAY) || list->count == 0) {
        return;
    }
    events = GL_NEW_ARRAY(a, struct gl_worker_event, list->count);
    said->events.items = events;
    for (gl_jnode n = gl_json_first(j, list); n != NULL; n = gl_json_after(j, list, n)) {
        gl_jnode type = gl_json_get(j, n, "type"), payload = gl_json_get(j, n, "payload");

        if (gl_json_is(type, GL_JSON_STRING) && gl_json_is(payload, GL_JSON_OBJECT)) {
            events[said->events.n++] = (struct gl_worker_event){.type = gl_json_str(j, type, a),
                                                                .payload = gl_json_raw(j, payload)};
        }
    }
}

/* complete_step and complete_run: null and false mean absent, true means the default payload. */
static bool read_completion(const struct gl_worker_output *said, const char *name,
                            gl_str *ret_value)
{
    gl_jnode n = gl_json_get(&said->json, gl_json_root(&said->json), name);

    if (n == NULL || n->type == GL_JSON_NULL || n->type == GL_JSON_FALSE) {
        return false;
    }
    if (n->type != GL_JSON_TRUE) {
        *ret_value = gl_json_raw(&said->json, n);
    }
    return true;
}

static bool has_step_shape(const struct gl_json *j, gl_jnode root)
{
    return gl_json_is(gl_json_get(j, root, "outputs"), GL_JSON_OBJECT) &&
           gl_json_is(gl_json_get(j, root, "artifacts"), GL_JSON_ARRAY) &&
           gl_json_is(gl_json_get(j, root, "metrics"), GL_JSON_OBJECT) &&
           gl_json_is(gl_json_get(j, root, "status"), GL_JSON_STRING);
}

static bool is_structured(const struct gl_json *j, gl_jnode root)
{
    static const char *const names[] = {"events", "emit_messages", "next_state", "complete_step",
                                        "complete_run"};

    for (size_t i = 0; i < GL_COUNT(names); i++) {
        if (gl_json_get(j, root, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static int read_state(struct gl_worker_output *said, struct gl_why *why)
{
    gl_jnode n = gl_json_get(&said->json, gl_json_root(&said->json), "next_state");
    gl_str text;

    if (n == NULL || n->type == GL_JSON_NULL) {
        return 0;
    }
    text = gl_json_raw(&said->json, n);
    if (text.n > GL_STATE_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "`next_state` has %zu bytes; at most %d are allowed: put larger data in a "
                      "file in the run's folder",
                      text.n, GL_STATE_BYTES_MAX);
    }
    said->has_state = true;
    said->next_state = text;
    return 0;
}

static int read_emits(struct gl_worker_output *said, struct gl_why *why)
{
    gl_jnode n = gl_json_get(&said->json, gl_json_root(&said->json), "emit_messages");

    if (!gl_json_is(n, GL_JSON_ARRAY) || n->count == 0) {
        return 0;
    }
    if (n->count > GL_EMITS_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "`emit_messages` has %u messages; at most %d can be sent at once", n->count,
                      GL_EMITS_MAX);
    }
    said->emits = n;
    return 0;
}

static int read_object(struct gl_worker_output *said, struct gl_arena *a, struct gl_why *why)
{
    const struct gl_json *j = &said->json;
    gl_jnode root = gl_json_root(j);

    if (gl_json_get(j, root, "complete_job") != NULL ||
        gl_json_get(j, root, "complete_job?") != NULL) {
        return gl_why(
            why, GL_E_INVALID,
            "stdout names `complete_job`, which is no longer supported: use `complete_step` to end "
            "the step, or `complete_run` in the terminal sink to end the job");
    }
    said->has_step_shape = has_step_shape(j, root);
    said->is_structured = is_structured(j, root);
    if (!said->is_structured) {
        return 0;
    }
    int rc = read_state(said, why);
    rc = rc == 0 ? read_emits(said, why) : rc;
    if (rc != 0) {
        return rc;
    }
    read_events(said, gl_json_get(j, root, "events"), a);
    said->completes_step = read_completion(said, "complete_step", &said->step_value);
    said->completes_run =
        !said->completes_step && read_completion(said, "complete_run", &said->run_value);
    return 0;
}

int gl_worker_output_read(gl_str stdout_text, struct gl_arena *a, struct gl_worker_output *ret,
                          struct gl_why *reterr_why)
{
    struct gl_worker_output said = {0};

    said.is_json = parse_stdout(stdout_text, a, &said.json);
    if (said.is_json && gl_json_is(gl_json_root(&said.json), GL_JSON_OBJECT)) {
        int rc = read_object(&said, a, reterr_why);

        if (rc != 0) {
            return rc;
        }
    }
    *ret = said;
    return 0;
}

/* The default payload. */

static void put(struct gl_jw *w, const char *name, gl_str value)
{
    gl_jw_name(w, name);
    gl_jw_str(w, value);
}

/* Metadata that the SDK passes from step to step, without the parts of a single step. */
static void put_metadata(struct gl_jw *w, gl_str body, struct gl_arena *a)
{
    static const char name[] = "_mn_step";
    struct gl_json j;
    gl_jnode meta;

    if (body.n == 0 || memmem(body.p, body.n, name, sizeof name - 1) == NULL ||
        gl_json_parse(&j, body, RESULT_BYTES_MAX, a, NULL) != 0) {
        return;
    }
    meta = gl_json_get(&j, gl_json_root(&j), name);
    if (!gl_json_is(meta, GL_JSON_OBJECT)) {
        return;
    }
    gl_jw_name(w, name);
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(&j, meta); k != NULL; k = gl_json_after(&j, meta, k)) {
        gl_str key = gl_json_str(&j, k, a);

        if (!gl_str_is(key, "run_inputs") && !gl_str_is(key, "step_input")) {
            gl_jw_key_str(w, key);
            gl_jw_raw(w, gl_json_raw(&j, gl_json_value(k)));
        }
    }
    gl_jw_end(w);
}

static void put_lease(struct gl_jw *w, const struct gl_worker_turn_facts *t)
{
    static const gl_str own = {.p = "executor.", .n = 9}; /* the prefix of such pools on a node */
    gl_str pool = t->pool;

    if (gl_str_starts(pool, own)) {
        pool = (gl_str){.p = pool.p + own.n, .n = pool.n - own.n};
    }
    gl_jw_name(w, "lease");
    gl_jw_object(w);
    put(w, "lease_id", t->lease_id);
    put(w, "pool", pool);
    gl_jw_name(w, "slots");
    gl_jw_u64(w, t->slots);
    gl_jw_name(w, "queue_wait_ms");
    gl_jw_i64(w, t->queue_wait_ms);
    gl_jw_end(w);
}

/* A text, truncated to this many bytes with a note. */
static gl_str cut(gl_str text, size_t max, const char *note, struct gl_arena *a)
{
    struct gl_buf out = {0};
    gl_str ret;

    if (text.n <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.p[max] & 0xc0) == 0x80) {
        max--; /* not inside a character */
    }
    gl_buf_add(&out, text.p, max);
    gl_buf_fmt(&out, "... (%zu bytes; %s)", text.n, note);
    ret = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

static void put_sandbox(struct gl_jw *w, const struct gl_worker_turn_facts *t,
                        const struct gl_worker_result *r, size_t stdout_max, struct gl_arena *a)
{
    gl_str runner = t->runner.n > 0 ? t->runner : GL_S("host_local");

    gl_jw_name(w, "sandbox");
    gl_jw_object(w);
    gl_jw_name(w, "exit_code");
    gl_jw_i64(w, t->exit_code);
    gl_jw_name(w, "runner_exit_code");
    gl_jw_i64(w, t->exit_code);
    put(w, "stdout", cut(r->stdout_text, stdout_max, "the log of the attempt has more", a));
    put(w, "stderr", r->stderr_text);
    /* The same texts a second time, since old bundles read them here; but not megabytes of them */
    put(w, "logs", cut(r->stderr_text, RAW_BYTES_MAX, "there is more in `stderr`", a));
    put(w, "raw_output", cut(r->stdout_text, RAW_BYTES_MAX, "there is more in `stdout`", a));
    put(w, "sandbox_name", runner);
    put(w, "remote_dir", t->remote_dir);
    put(w, "runner", runner);
    put(w, "node_name", t->node_name);
    gl_jw_name(w, "attempts");
    gl_jw_u64(w, t->attempts);
    put_lease(w, t);
    gl_jw_end(w);
}

static void put_step_shape(struct gl_jw *w, const struct gl_json *j)
{
    static const char *const names[] = {"outputs",          "artifacts",        "metrics",
                                        "status",           "workflow_step_id", "run_id",
                                        "runtime_step_mode"};

    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_jnode n = gl_json_get(j, gl_json_root(j), names[i]);

        if (n != NULL) {
            gl_jw_name(w, names[i]);
            gl_jw_raw(w, gl_json_raw(j, n));
        }
    }
}

static void put_payload(const struct gl_worker_turn_facts *t, const struct gl_worker_result *r,
                        const struct gl_worker_output *said, size_t stdout_max, struct gl_arena *a,
                        struct gl_buf *out)
{
    struct gl_jw w;

    gl_buf_reset(out);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    put(&w, "agent_id", t->agent_id);
    if (said->has_step_shape) {
        put_step_shape(&w, &said->json);
    } else {
        put_sandbox(&w, t, r, stdout_max, a);
    }
    put_metadata(&w, t->input_body, a);
    gl_jw_end(&w);
}

/* It becomes the output of a step: if stdout is too long for that with its escapes, its end is
 * dropped. */
gl_str gl_worker_output_payload(const struct gl_worker_turn_facts *t,
                                const struct gl_worker_result *r,
                                const struct gl_worker_output *said, struct gl_arena *a)
{
    struct gl_buf out = {0};
    size_t stdout_max = r->stdout_text.n;
    gl_str text;

    put_payload(t, r, said, stdout_max, a, &out);
    while (out.n > GL_OUTPUT_BYTES_MAX && !said->has_step_shape && stdout_max > RAW_BYTES_MAX) {
        stdout_max = stdout_max / 10 * 9 * GL_OUTPUT_BYTES_MAX / out.n;
        put_payload(t, r, said, stdout_max, a, &out);
    }
    text = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* Transient failures. */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool begins(gl_str text, const char *lowered)
{
    size_t i = 0;

    while (lowered[i] != 0 && i < text.n && lower(text.p[i]) == lowered[i]) {
        i++;
    }
    return lowered[i] == 0;
}

static bool looks_transient(gl_str text)
{
    static const char *const signs[] = {
        "h2 protocol error", "peer closed connection",
        "status: unknown",   "error reading a body from connection",
        "tls close_notify",  "transport error",
        "connection reset",  "connection refused",
        "timed out",         "agent beacon deadline exceeded",
        "deadline exceeded", "artifact_not_ready",
        "unavailable",
    };
    static const char firsts[] = "hpsetcadu"; /* ... of these: most positions are skipped at once */

    for (size_t at = 0; at < text.n; at++) {
        char c = lower(text.p[at]);

        if (memchr(firsts, c, sizeof firsts - 1) == NULL) {
            continue;
        }
        for (size_t i = 0; i < GL_COUNT(signs); i++) {
            if (signs[i][0] == c && begins((gl_str){text.p + at, text.n - at}, signs[i])) {
                return true;
            }
        }
    }
    return false;
}

bool gl_worker_output_is_transient(gl_str error, gl_str stdout_text, gl_str stderr_text)
{
    return looks_transient(error) || looks_transient(stderr_text) || looks_transient(stdout_text);
}

/* The step that an event names. */

gl_str gl_worker_output_event_step(gl_str payload, struct gl_arena *a)
{
    static const char *const names[] = {"step", "step_id", "workflow_step_id", "phase", "phase_id"};
    struct gl_json j;

    if (payload.p == NULL || (memmem(payload.p, payload.n, "step", 4) == NULL &&
                              memmem(payload.p, payload.n, "phase", 5) == NULL)) {
        return (gl_str){0}; /* most events: no need to parse them */
    }
    if (gl_json_parse(&j, payload, GL_STDOUT_BYTES_MAX, a, NULL) != 0) {
        return (gl_str){0};
    }
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        gl_jnode n = gl_json_get(&j, gl_json_root(&j), names[i]);
        gl_str text = gl_json_is(n, GL_JSON_NUMBER) ? gl_json_raw(&j, n) : gl_json_str(&j, n, a);

        if (text.n > 0) {
            return text;
        }
    }
    return (gl_str){0};
}
