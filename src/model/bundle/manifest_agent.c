/* Compiles an agent's config, except for its process (manifest_process.c). */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

static const char allocation_usual[] = GL_AGENT_ALLOCATION;

/* Finds complete_job at any depth. The tape has all keys in a row, so no recursion is needed. */
static void refuse_old_names(struct gl_manifest *m, gl_jnode config)
{
    const struct gl_json *j = m->r.j;

    for (gl_jnode n = config + 1; (uint32_t)(n - j->nodes) < config->next; n++) {
        if (n->is_key && n->end - n->start >= sizeof("complete_job") + 1) {
            gl_str key = gl_json_str(j, n, m->r.a);

            if (gl_str_is(key, "complete_job") || gl_str_is(key, "complete_job?")) {
                gl_manifest_error(m, n, NULL, GL_REASON_OLD_NAME,
                                  "`%.*s` is no longer supported: a worker completes its step with "
                                  "`complete_step`, a terminal sink the job with `complete_run`",
                                  GL_STR_ARG(key));
            }
        }
    }
}

void gl_manifest_output(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_agent_spec *a = &((struct gl_manifest_config *)into)->agent;
    bool has_usual = a->kind == GL_AGENT_EXECUTOR || a->kind == GL_AGENT_SENSOR;

    a->output = has_usual ? GL_OUTPUT_USUAL : GL_OUTPUT_NOTHING;
    a->output_type = a->kind == GL_AGENT_EXECUTOR ? GL_S(GL_AGENT_EXECUTOR_TYPE)
                     : a->kind == GL_AGENT_SENSOR ? GL_S(GL_AGENT_SENSOR_TYPE)
                                                  : (gl_str){0};
    if (gl_json_is(gl_json_get(m->r.j, obj, key), GL_JSON_NULL)) {
        a->output = GL_OUTPUT_NOTHING;
        a->output_type = (gl_str){0};
    } else if (gl_manifest_text(m, obj, key, &a->output_type)) {
        a->output = GL_OUTPUT_TYPED;
    }
}

static void check_completion(struct gl_manifest *m, gl_jnode config, const struct gl_agent_spec *a)
{
    if ((a->complete_on_message || a->complete_after > 0) && a->output != GL_OUTPUT_TYPED &&
        !(a->terminal_sink && a->complete_run)) {
        gl_manifest_error(m, config,
                          a->complete_on_message ? "complete_on_message" : "complete_after",
                          GL_REASON_GOES_NOWHERE,
                          "the result is sent nowhere: set `output_message_type`, or make "
                          "this the last agent with `terminal_sink` and `complete_run`");
    }
}

/* Watermarks that are absent follow those that are set. */
static void read_backpressure(struct gl_manifest *m, gl_jnode config, struct gl_agent_spec *a)
{
    gl_jnode b = gl_manifest_object(m, config, "backpressure");
    uint32_t high = a->high_mark, low = a->low_mark;

    a->high_mark = a->low_mark = UINT32_MAX;
    gl_manifest_read(m, GL_TABLE_BACKPRESSURE, b, a);
    if (a->high_mark == UINT32_MAX) {
        a->high_mark = a->depth_max > high ? high : a->depth_max > 1 ? a->depth_max - 1 : 1;
    }
    if (a->low_mark == UINT32_MAX) {
        a->low_mark = low < a->high_mark ? low : a->high_mark;
    }
    if (a->high_mark > a->depth_max || a->low_mark > a->high_mark) {
        gl_manifest_error(m, b, NULL, GL_REASON_MARKS_UNORDERED,
                          "it must be low_watermark <= high_watermark <= max_queue_depth, not "
                          "%u, %u, %u",
                          a->low_mark, a->high_mark, a->depth_max);
    }
}

void gl_manifest_python(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_manifest_config *c = into;
    gl_jnode python = gl_manifest_object(m, obj, key);
    gl_jnode needs = gl_manifest_get(m, python, "requirements");
    gl_str ignored;

    (void)gl_manifest_texts(m, python, "packages");
    (void)gl_manifest_text(m, python, "path", &ignored);
    if (needs != NULL && !gl_json_is(needs, GL_JSON_STRING)) {
        (void)gl_manifest_texts(m, python, "requirements");
    }
    if (gl_manifest_is_set(python)) {
        c->agent.python_env = gl_manifest_compact(m, python);
    }
}

/* Keeps the keys that have no field in the compiled form. A module gets all keys. */
static gl_str keep_config(struct gl_manifest *m, const struct gl_manifest_node *node)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str ret = {0};
    bool is_empty = true;

    if (node->config == NULL) {
        return ret;
    }
    if (node->kind == GL_AGENT_MODULE) {
        return gl_manifest_compact(m, node->config);
    }
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    for (gl_jnode e = gl_json_first(m->r.j, node->config); e;
         e = gl_json_after(m->r.j, node->config, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);

        if (gl_manifest_field(GL_TABLE_CONFIG, key) == NULL) {
            gl_jw_key_str(&w, key);
            gl_jw_raw(&w, gl_manifest_compact(m, gl_json_value(e)));
            is_empty = false;
        }
    }
    gl_jw_end(&w);
    ret = is_empty ? ret : gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

void gl_manifest_module(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    const struct gl_manifest_node *node = ((struct gl_manifest_config *)into)->node;
    gl_str *name = &((struct gl_manifest_config *)into)->agent.module;

    if (node->kind != GL_AGENT_MODULE) {
        return;
    }
    if (gl_manifest_get(m, obj, key) == NULL) {
        gl_manifest_error(m, obj != NULL ? obj : node->n, obj != NULL ? key : "config.module",
                          GL_REASON_MISSING,
                          "it is missing: the name of the native module that runs this agent");
    } else if (gl_manifest_text(m, obj, key, name) &&
               (name->n > GL_NAME_BYTES_MAX || !gl_manifest_is_program_text(*name))) {
        gl_manifest_error(m, obj, key, GL_REASON_NAME_INVALID,
                          "a module's name has at most %d bytes of text", GL_NAME_BYTES_MAX);
    }
}

void gl_manifest_agent(struct gl_manifest *m, struct gl_manifest_node *node,
                       struct gl_manifest_config *c)
{
    struct gl_agent_spec *a = &c->agent, usual;

    a->id = node->id;
    a->kind = node->kind;
    gl_agent_defaults(a);
    a->allocation = GL_S(allocation_usual);
    if (node->config != NULL) {
        refuse_old_names(m, node->config);
    }
    usual = *a;
    a->try_backoff_ms = a->beacon_timeout_ms = -1; /* not written */
    gl_manifest_read(m, GL_TABLE_CONFIG, node->config, c);
    node->timeout_ms = c->timeout_ms;
    node->max_attempts = a->tries;
    node->retry_backoff_ms = a->try_backoff_ms;
    node->beacon_timeout_ms = a->beacon_timeout_ms;
    a->try_backoff_ms = a->try_backoff_ms < 0 ? usual.try_backoff_ms : a->try_backoff_ms;
    a->beacon_timeout_ms =
        a->beacon_timeout_ms < 0 ? usual.beacon_timeout_ms : a->beacon_timeout_ms;
    check_completion(m, node->config, a);
    read_backpressure(m, node->config, a);
    a->config = keep_config(m, node);
}
