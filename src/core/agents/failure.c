/* failure.c - explains why a bundle failed: a sentence for people, and for programs an error
 * envelope (model/bundle/error_envelope.h). */
#include "core/agents/agents.h"

#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/error_envelope.h"
#include "model/bundle/worker_output.h"

enum { LAST_LINE_BYTES_MAX = 300 }; /* of a worker's last line, in a sentence */

/* Classifies a failure by how its sentence begins, since the ledger passes reasons on as text. The
 * runtime writes these sentences; any other one was declared by a worker. */
static const struct {
    const char *prefix;
    enum gl_failure failure;
} sentences[] = {
    {"exit code ", GL_FAILURE_EXIT},
    {"killed by signal ", GL_FAILURE_SIGNAL},
    {"host local command timed out", GL_FAILURE_TIMEOUT},
    {"step attempt deadline exceeded", GL_FAILURE_TIMEOUT},
    {"it was not started in time", GL_FAILURE_TIMEOUT},
    {"agent beacon deadline exceeded", GL_FAILURE_BEACON},
    {"the wait for executor slots", GL_FAILURE_LEASE},
    {"cannot ", GL_FAILURE_NOT_STARTED}, /* from the keeper */
    {"could not be started", GL_FAILURE_NOT_STARTED},
    {"graph patch rejected: ", GL_FAILURE_PATCH},
    {"the variable ", GL_FAILURE_NOT_STARTED},
    {"argument ", GL_FAILURE_NOT_STARTED},
    {"the worker's arguments ", GL_FAILURE_NOT_STARTED},
    {"payloads/", GL_FAILURE_NOT_STARTED},
    {"stdout names `complete_job`", GL_FAILURE_OUTPUT},
    {"its agent tried to complete the run", GL_FAILURE_OUTPUT},
    {"its state is larger ", GL_FAILURE_LIMIT},
};

static enum gl_failure failure_of(gl_str why)
{
    for (size_t i = 0; i < GL_COUNT(sentences); i++) {
        if (gl_str_starts(why, gl_str_of(sentences[i].prefix))) {
            return sentences[i].failure;
        }
    }
    return GL_FAILURE_DECLARED;
}

static gl_str last_line(gl_str text)
{
    text = gl_str_trim(text);
    while (text.n > 0 && memchr(text.p, '\n', text.n) != NULL) {
        (void)gl_str_cut(text, '\n', &text); /* an earlier line */
    }
    return gl_str_trim(text);
}

/* At most `max` bytes of `s`, not ending inside a character. */
static gl_str truncate_utf8(gl_str s, size_t max)
{
    size_t at = 0, n;

    while (at < s.n && (n = gl_str_utf8_at((gl_str){.p = s.p + at, .n = s.n - at})) > 0 &&
           at + n <= max) {
        at += n;
    }
    GL_ASSERT(at <= s.n);
    return (gl_str){.p = s.p, .n = at};
}

gl_str gl_failure_text(struct gl_core *c, const struct gl_step *unit,
                       const struct gl_event_result *how, gl_str why)
{
    const struct gl_step_spec *spec = gl_step_spec_of(unit);
    struct gl_worker_result r = {0};
    gl_str line;

    GL_ASSERT(gl_step_is_unit(unit));
    if (how->end != GL_EXEC_EXITED ||
        gl_worker_result_read(how->output, c->out->arena, &r, NULL) != 0) {
        return why;
    }
    line = last_line(r.stderr_text);
    line = gl_redaction_apply(line, spec->env.items, spec->env.n, c->out->arena);
    line = truncate_utf8(line, LAST_LINE_BYTES_MAX);
    return line.n == 0 ? why
                       : gl_str_fmt(c->out->arena, "%.*s: %.*s", GL_STR_ARG(why), GL_STR_ARG(line));
}

static gl_str result_of(const struct gl_error_envelope *e, gl_str error, struct gl_arena *a)
{
    struct gl_buf buf = {0};
    struct gl_jw w;
    gl_str text;

    GL_ASSERT(error.n > 0);
    gl_jw_init(&w, &buf);
    gl_jw_object(&w);
    gl_jw_key(&w, "step_id");
    gl_jw_str(&w, e->step_id);
    gl_jw_key(&w, "agent_id");
    gl_jw_str(&w, e->agent_id);
    gl_jw_key(&w, "error");
    gl_jw_raw(&w, error);
    gl_jw_end(&w);
    text = gl_str_dup(a, gl_buf_view(&buf));
    gl_buf_done(&buf);
    return text;
}

void gl_failure_record(struct gl_core *c, struct gl_step *st, gl_str why)
{
    const struct gl_step_spec *spec = gl_step_spec_of(st);
    struct gl_job *j = st->job;
    bool is_unit = gl_step_is_unit(st);
    const struct gl_agent_spec *agent =
        gl_flow_agent(j->spec->flow, is_unit ? st->number : spec->agent);
    struct gl_error_envelope e = {
        .failure = is_unit ? GL_FAILURE_RESTARTS : failure_of(why),
        .is_transient = gl_worker_output_is_transient(why, (gl_str){0}, (gl_str){0}),
        .message = why,
        .step_id = is_unit ? (gl_str){0} : st->r.step_id,
        .agent_id = agent->id,
        .attempt = is_unit ? 0 : st->r.counted,
        .max_attempts = is_unit ? 0 : spec->retry.attempts,
        .occurred_at = c->now,
        .event_id = gl_str_fmt(c->out->arena, "%lld", (long long)j->r.last_seq),
        .env = spec->env.items,
        .env_n = spec->env.n,
    };
    gl_str error = gl_error_envelope_text(&e, c->out->arena);

    GL_ASSERT(is_unit || gl_step_is_bound(st));
    gl_core_set(c, &j->r.error, error);
    gl_core_set(c, &j->r.result, result_of(&e, error, c->out->arena));
}
