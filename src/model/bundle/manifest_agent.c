/* Compiles an agent's config, except for its process (manifest_process.c). */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

static const char allocation_usual[] = GL_AGENT_ALLOCATION;

/* complete_job, anywhere. The tape has all keys in a row, so nothing need be descended into. */
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

static void read_output(struct gl_manifest *m, const struct gl_manifest_node *node,
                        struct gl_agent_spec *a)
{
    gl_jnode n = gl_json_get(m->r.j, node->config, "output_message_type");
    bool has_usual = node->kind == GL_AGENT_EXECUTOR || node->kind == GL_AGENT_SENSOR;

    a->output = has_usual ? GL_OUTPUT_USUAL : GL_OUTPUT_NOTHING;
    a->output_type = node->kind == GL_AGENT_EXECUTOR ? GL_S(GL_AGENT_EXECUTOR_TYPE)
                     : node->kind == GL_AGENT_SENSOR ? GL_S(GL_AGENT_SENSOR_TYPE)
                                                     : (gl_str){0};
    if (gl_json_is(n, GL_JSON_NULL)) {
        a->output = GL_OUTPUT_NOTHING;
        a->output_type = (gl_str){0};
    } else if (gl_manifest_text(m, node->config, "output_message_type", &a->output_type)) {
        a->output = GL_OUTPUT_TYPED;
    }
    (void)gl_manifest_text(m, node->config, "emit_type", &a->emit_type);
    (void)gl_manifest_text(m, node->config, "failure_message_type", &a->failure_type);
}

static void read_completion(struct gl_manifest *m, const struct gl_manifest_node *node,
                            struct gl_agent_spec *a)
{
    gl_jnode c = node->config;
    bool completes = true;

    (void)gl_manifest_bool(m, c, "workflow_complete_step", &completes);
    a->leaves_step = !completes;
    (void)gl_manifest_bool(m, c, "terminal_sink", &a->terminal_sink);
    (void)gl_manifest_bool(m, c, "complete_run", &a->complete_run);
    (void)gl_manifest_bool(m, c, "complete_on_message", &a->complete_on_message);
    (void)gl_manifest_u32(m, c, "complete_after", 1, GL_JOB_LETTERS_MAX, &a->complete_after);
    if ((a->complete_on_message || a->complete_after > 0) && a->output != GL_OUTPUT_TYPED &&
        !(a->terminal_sink && a->complete_run)) {
        gl_manifest_error(m, c, a->complete_on_message ? "complete_on_message" : "complete_after",
                          GL_REASON_GOES_NOWHERE,
                          "the result is sent nowhere: set `output_message_type`, or make "
                          "this the last agent with `terminal_sink` and `complete_run`");
    }
}

/* Tries at once, and what the ledger falls back to. */
static void read_tries(struct gl_manifest *m, struct gl_manifest_node *node,
                       struct gl_agent_spec *a)
{
    gl_jnode c = node->config;

    if (gl_manifest_u32(m, c, "max_attempts", 1, GL_ATTEMPTS_MAX, &a->tries)) {
        node->max_attempts = a->tries;
    }
    if (gl_manifest_ms(m, c, "retry_backoff_ms", 0, &a->try_backoff_ms)) {
        node->retry_backoff_ms = a->try_backoff_ms;
    }
    (void)gl_manifest_seconds(m, c, "timeout_seconds", 1, &node->timeout_ms);
    (void)gl_manifest_u32(m, c, "max_output_bytes", 1, GL_STDOUT_BYTES_MAX, &a->stdout_max);
    (void)gl_manifest_ms(m, c, "startup_delay_ms", 0, &a->startup_delay_ms);
    (void)gl_manifest_ms(m, c, "lease_queue_timeout_ms", 1, &a->lease_timeout_ms);
    (void)gl_manifest_u32(m, c, "lease_max_queue_length", 1, GL_WAITING_MAX, &a->lease_queue_max);
}

static void read_beacons(struct gl_manifest *m, struct gl_manifest_node *node,
                         struct gl_agent_spec *a)
{
    static const char *const actions[] = {"fail_attempt", NULL};
    gl_jnode c = node->config;
    uint8_t action;

    (void)gl_manifest_bool(m, c, "beacon_enabled", &a->beacons);
    (void)gl_manifest_bool(m, c, "agent_beacon_required", &a->beacon_required);
    (void)gl_manifest_ms(m, c, "beacon_interval_ms", 1, &a->beacon_ms);
    if (gl_manifest_ms(m, c, "beacon_timeout_ms", 1, &a->beacon_timeout_ms)) {
        node->beacon_timeout_ms = a->beacon_timeout_ms;
    }
    (void)gl_manifest_word(m, c, "beacon_missed_action", actions, &action);
}

static void read_backpressure(struct gl_manifest *m, gl_jnode config, struct gl_agent_spec *a)
{
    gl_jnode b = gl_manifest_object(m, config, "backpressure");

    (void)gl_manifest_u32(m, b, "max_queue_depth", 1, GL_INBOX_MAX, &a->depth_max);
    if (a->depth_max <= a->high_mark) {
        a->high_mark = a->depth_max > 1 ? a->depth_max - 1 : 1;
    }
    (void)gl_manifest_u32(m, b, "high_watermark", 1, GL_INBOX_MAX, &a->high_mark);
    a->low_mark = a->low_mark < a->high_mark ? a->low_mark : a->high_mark;
    (void)gl_manifest_u32(m, b, "low_watermark", 0, GL_INBOX_MAX, &a->low_mark);
    (void)gl_manifest_ms(m, b, "retry_after_ms", 1, &a->retry_after_ms);
    if (a->high_mark > a->depth_max || a->low_mark > a->high_mark) {
        gl_manifest_error(m, b, NULL, GL_REASON_MARKS_UNORDERED,
                          "it must be low_watermark <= high_watermark <= max_queue_depth, not "
                          "%u, %u, %u",
                          a->low_mark, a->high_mark, a->depth_max);
    }
}

static void check_python(struct gl_manifest *m, gl_jnode python)
{
    gl_jnode needs = gl_manifest_get(m, python, "requirements");
    gl_str ignored;

    (void)gl_manifest_texts(m, python, "packages");
    (void)gl_manifest_text(m, python, "path", &ignored);
    if (needs != NULL && !gl_json_is(needs, GL_JSON_STRING)) {
        (void)gl_manifest_texts(m, python, "requirements");
    }
}

/* What the compiled form has in fields of its own is not kept again. A module gets all of it. */
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

        if (!gl_manifest_is_field("config", key)) {
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

static void read_module(struct gl_manifest *m, const struct gl_manifest_node *node,
                        struct gl_agent_spec *a)
{
    if (node->kind != GL_AGENT_MODULE) {
        return;
    }
    if (gl_manifest_get(m, node->config, "module") == NULL) {
        gl_manifest_error(m, node->config != NULL ? node->config : node->n,
                          node->config != NULL ? "module" : "config.module", GL_REASON_MISSING,
                          "it is missing: the name of the native module that runs this agent");
    } else if (gl_manifest_text(m, node->config, "module", &a->module) &&
               (a->module.n > GL_NAME_BYTES_MAX || !gl_manifest_is_program_text(a->module))) {
        gl_manifest_error(m, node->config, "module", GL_REASON_NAME_INVALID,
                          "a module's name has at most %d bytes of text", GL_NAME_BYTES_MAX);
    }
}

void gl_manifest_agent(struct gl_manifest *m, struct gl_manifest_node *node,
                       struct gl_agent_spec *ret)
{
    gl_jnode c = node->config;

    ret->id = node->id;
    ret->kind = node->kind;
    gl_agent_defaults(ret);
    ret->allocation = GL_S(allocation_usual);
    node->retry_backoff_ms = -1;
    if (c != NULL) {
        refuse_old_names(m, c);
    }
    read_output(m, node, ret);
    read_completion(m, node, ret);
    read_tries(m, node, ret);
    read_beacons(m, node, ret);
    read_backpressure(m, c, ret);
    read_module(m, node, ret);
    check_python(m, gl_manifest_object(m, c, "python_environment"));
    if (gl_manifest_is_set(gl_manifest_get(m, c, "python_environment"))) {
        ret->python_env = gl_manifest_compact(m, gl_manifest_get(m, c, "python_environment"));
    }
    ret->config = keep_config(m, node);
}
