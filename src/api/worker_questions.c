/* worker_questions.c - which questions of workers belong to a job, and how they are shown. */
#include "api/worker_questions.h"

#include "base/check.h"
#include "model/bundle/agent.h"

/* Another node owns the job. */
static bool is_elsewhere(const struct gl_view *v)
{
    return v->owner != NULL && !v->owner->is_own && !v->owner->was_own && v->owner->session.n > 0;
}

/* When the earliest of the running workers started; INT64_MAX: none is running. */
static gl_ms working_since(const struct gl_view *v)
{
    gl_ms since = INT64_MAX;

    for (uint32_t i = 0; i < gl_flow_agents_n(v->flow); i++) {
        if (v->steps[i] != NULL && v->steps[i]->status == GL_STEP_RUNNING &&
            v->steps[i]->attempt_at < since) {
            since = v->steps[i]->attempt_at;
        }
    }
    return since;
}

const struct gl_questions_run *gl_worker_question_of(const struct gl_questions *asks,
                                                     const struct gl_view *v, struct gl_arena *a)
{
    const struct gl_questions_run *r;

    if (asks == NULL || v->flow->bundle == NULL || gl_job_status_is_terminal(v->job.status)) {
        return NULL;
    }
    r = asks->find(asks->owner, v->job.run_id, a);
    if (r == NULL || (r->job_id.n > 0 && !gl_str_eq(r->job_id, v->job.job_id))) {
        return NULL;
    }
    /* Another node has a file of its own, unless the nodes share a disk. The file here may be left
     * over from an earlier time. */
    return is_elsewhere(v) && !gl_question_is_since(r->asked_at, working_since(v)) ? NULL : r;
}

bool gl_worker_question_has_reader(const struct gl_view *v)
{
    return gl_question_is_since(v->asks->asked_at, working_since(v));
}

struct gl_strs gl_worker_question_decisions(const struct gl_question *r)
{
    static const gl_str usual[] = {{"approve", 7}, {"reject", 6}};

    return r->decisions.n > 0 ? r->decisions
                              : (struct gl_strs){.items = usual, .n = GL_COUNT(usual)};
}

/* ---- the command ---- */

/* Is this word safe in a shell without quotes? */
static bool is_plain(gl_str word)
{
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == ':' || c == '-')) {
            return false;
        }
    }
    return word.n > 0;
}

static gl_str quoted(struct gl_arena *a, gl_str word)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    if (is_plain(word)) {
        return word;
    }
    gl_buf_char(&out, '\'');
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] == '\'') {
            gl_buf_c(&out, "'\\''");
        } else {
            gl_buf_char(&out, word.p[i]);
        }
    }
    gl_buf_char(&out, '\'');
    return gl_str_dup(a, gl_buf_view(&out));
}

gl_str gl_worker_question_command(struct gl_arena *a, gl_str job, gl_str request_id,
                                  struct gl_strs decisions)
{
    bool is_option = request_id.n > 0 && request_id.p[0] == '-';
    gl_str id = quoted(a, request_id);
    gl_str word = quoted(a, decisions.n > 0 ? decisions.items[0] : GL_S("WORD"));

    return is_option ? gl_str_fmt(a, "human respond %.*s --decision %.*s -- %.*s", GL_STR_ARG(job),
                                  GL_STR_ARG(word), GL_STR_ARG(id))
                     : gl_str_fmt(a, "human respond %.*s %.*s --decision %.*s", GL_STR_ARG(job),
                                  GL_STR_ARG(id), GL_STR_ARG(word));
}

gl_str gl_worker_question_others(struct gl_arena *a, struct gl_strs decisions)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 1; i < decisions.n; i++) {
        gl_buf_fmt(&out, "%s%.*s", i == 1 ? " (or " : ", ",
                   GL_STR_ARG(quoted(a, decisions.items[i])));
    }
    gl_buf_c(&out, out.n > 0 ? ")" : "");
    return gl_str_dup(a, gl_buf_view(&out));
}

/* ---- sentences ---- */

/* " (until 2026-...; then: reject)" */
static gl_str until(struct gl_arena *a, const struct gl_question *r)
{
    char when[GL_TIMES_BYTES];
    bool has_default = r->default_decision.n > 0 && !r->is_refused;

    return r->expires_at == 0
               ? (gl_str){0}
               : gl_str_fmt(a, " (until %.*s%s%.*s)",
                            GL_STR_ARG(gl_times_format(r->expires_at, when)),
                            has_default ? "; then: " : "",
                            GL_STR_ARG(has_default ? r->default_decision : (gl_str){0}));
}

gl_str gl_worker_question_sentence(struct gl_arena *a, const struct gl_view *v)
{
    const struct gl_questions_run *run = v->asks;
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    if (run == NULL) {
        return (gl_str){0};
    }
    if (run->n > 0) {
        const struct gl_question *r = &run->open[0];
        struct gl_strs words = gl_worker_question_decisions(r);

        /* The command may contain quotes, so it is not quoted itself. */
        gl_buf_fmt(&out,
                   "; request '%.*s' waits for a person%s%.*s%.*s; answer with: glia %.*s%.*s",
                   GL_STR_ARG(r->request_id), r->prompt.n > 0 ? ": " : "", GL_STR_ARG(r->prompt),
                   GL_STR_ARG(until(a, r)),
                   GL_STR_ARG(gl_worker_question_command(a, v->job.job_id, r->request_id, words)),
                   GL_STR_ARG(gl_worker_question_others(a, words)));
    }
    if (run->n == 0 && run->open_n > 0) { /* too many runs: only counts are known */
        gl_buf_fmt(&out, "; %llu request%s of its workers wait%s for a person ('glia human list')",
                   (unsigned long long)run->open_n, run->open_n == 1 ? "" : "s",
                   run->open_n == 1 ? "s" : "");
    } else if (run->open_n > 1) {
        gl_buf_fmt(&out, "; %llu more wait%s ('glia human list')",
                   (unsigned long long)(run->open_n - 1), run->open_n == 2 ? "s" : "");
    }
    if (run->n > 0 && !gl_worker_question_has_reader(v)) {
        gl_buf_c(&out, "; " GL_WORKER_QUESTION_NO_READER);
    }
    if (run->trouble.n > 0) {
        gl_buf_fmt(&out, "; %.*s", GL_STR_ARG(run->trouble));
    }
    return gl_str_dup(a, gl_buf_view(&out));
}

static void write_decisions(struct gl_jw *w, const struct gl_question *r)
{
    gl_jw_put_array(w, "decisions");
    for (size_t i = 0; i < r->decisions.n; i++) {
        gl_jw_str(w, r->decisions.items[i]);
    }
    if (r->decisions.n == 0) {
        gl_jw_c(w, "approve");
        gl_jw_c(w, "reject");
    }
    gl_jw_end(w);
}

void gl_worker_question_write(struct gl_jw *w, gl_str job, gl_str run_id,
                              const struct gl_question *r, bool listens)
{
    char when[GL_TIMES_BYTES];

    gl_jw_object(w);
    gl_jw_put_str(w, "job_id", job);
    gl_jw_put_str(w, "run_id", run_id);
    gl_jw_put_str(w, "request_id", r->request_id);
    gl_jw_put_str(w, "kind", GL_S("request"));
    gl_jw_put_str(w, "reason", r->prompt);
    write_decisions(w, r);
    if (r->expires_at != 0) {
        gl_jw_put_str(w, "expires_at", gl_times_format(r->expires_at, when));
    }
    if (r->default_decision.n > 0) {
        gl_jw_put_str(w, "default_decision", r->default_decision);
    }
    if (r->is_refused) {
        gl_jw_put_bool(w, "default_refused", true);
    }
    gl_jw_put_bool(w, "listens", listens);
    gl_jw_end(w);
}

static void write_elsewhere(const struct gl_view *v, struct gl_jw *w)
{
    gl_ms since = working_since(v);
    char when[GL_TIMES_BYTES];

    gl_jw_put_str(w, "requests_node", v->owner->node);
    if (since != INT64_MAX) {
        gl_jw_put_str(w, "requests_since", gl_times_format(since, when));
    }
}

void gl_worker_question_write_job(const struct gl_view *v, struct gl_jw *w)
{
    const struct gl_questions_run *run = v->asks;
    bool listens = run != NULL && gl_worker_question_has_reader(v);

    if (is_elsewhere(v) && !gl_job_status_is_terminal(v->job.status)) {
        write_elsewhere(v, w);
    }
    if (run == NULL) {
        return;
    }
    gl_jw_put_u64(w, "human_requests", run->open_n);
    gl_jw_put_array(w, "requests");
    for (size_t i = 0; i < run->n; i++) {
        gl_worker_question_write(w, v->job.job_id, v->job.run_id, &run->open[i], listens);
    }
    gl_jw_end(w);
    if (run->trouble.n > 0) {
        gl_jw_put_str(w, "requests_trouble", run->trouble);
    }
}
