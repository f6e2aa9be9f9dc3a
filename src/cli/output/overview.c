#include "cli/output/overview.h"

#include "base/check.h"
#include "base/limits.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

bool gl_overview_node(struct gl_connection *r, struct gl_api_reply *page)
{
    struct gl_http_client_reply reply;

    *page = (struct gl_api_reply){0};
    r->client.is_silent = false; /* set by an earlier call; there may be no node now */
    if (gl_connect_find(r, NULL) != 0 ||
        gl_connect_call(r, "GET", "/v1/node", (gl_str){0}, &reply, NULL) != 0) {
        return false;
    }
    gl_buf_str(&page->body, reply.body);
    if (gl_json_parse(&page->j, gl_buf_view(&page->body), ANSWER_BYTES_MAX, &page->arena, NULL) !=
        0) {
        return false;
    }
    page->root = gl_json_root(&page->j);
    return true;
}

gl_str gl_overview_reason(struct gl_api_reply *node)
{
    return gl_api_reply_text(node, node->root, "reason");
}

static void count_page(struct gl_overview *o, struct gl_api_reply *p, uint64_t *n)
{
    gl_jnode jobs = gl_json_get(&p->j, p->root, "jobs");

    for (gl_jnode e = gl_json_first(&p->j, jobs); e; e = gl_json_after(&p->j, jobs, e)) {
        int64_t status = gl_schema_word(gl_job_status_words, gl_api_reply_text(p, e, "status"));

        if (status >= 0) {
            o->counts[status]++;
        }
        ++*n;
    }
}

static int count_jobs(struct gl_overview *o, struct gl_connection *r, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_request rq = {.verb = GL_VERB_LIST, .list.limit = GL_PAGE_MAX};
    uint64_t n = 0;
    int err;

    do {
        struct gl_api_reply page;

        err = gl_api_reply_ask(&page, r, &rq, reterr_why);
        if (err == 0) {
            count_page(o, &page, &n);
            rq.list.after = gl_str_dup(&a, gl_api_reply_text(&page, page.root, "next"));
        }
        gl_api_reply_done(&page);
    } while (err == 0 && rq.list.after.n > 0 && n < GL_OVERVIEW_JOBS_MAX);
    o->has_more = rq.list.after.n > 0;
    return err;
}

int gl_overview_human(struct gl_connection *r, struct gl_api_reply *page, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_HUMAN, .human.limit = GL_PAGE_MAX};

    return gl_api_reply_ask(page, r, &rq, reterr_why);
}

static uint64_t count(struct gl_api_reply *human, gl_str job, bool has_steps, bool has_requests)
{
    gl_jnode all = gl_json_get(&human->j, human->root, "requests");
    uint64_t n = 0;

    for (gl_jnode e = gl_json_first(&human->j, all); e; e = gl_json_after(&human->j, all, e)) {
        bool is_request = gl_str_is(gl_api_reply_text(human, e, "kind"), "request");

        n += (is_request ? has_requests : has_steps) &&
             (job.n == 0 || gl_str_eq(gl_api_reply_text(human, e, "job_id"), job));
    }
    return job.n == 0 && has_requests
               ? n + (uint64_t)gl_api_reply_number(human, human->root, "more")
               : n;
}

uint64_t gl_overview_requests(struct gl_api_reply *human, gl_str job)
{
    return count(human, job, true, true);
}

uint64_t gl_overview_asking_steps(struct gl_api_reply *human, gl_str job)
{
    return count(human, job, true, false);
}

int64_t gl_overview_ended(const struct gl_api_reply *p, gl_jnode job)
{
    return gl_api_reply_number(p, job, "completed_n") + gl_api_reply_number(p, job, "partial_n") +
           gl_api_reply_number(p, job, "skipped_n") + gl_api_reply_number(p, job, "failed_n");
}

gl_str gl_overview_steps(struct gl_api_reply *p, gl_jnode job, uint64_t asks)
{
    long long ended = gl_overview_ended(p, job), all = gl_api_reply_number(p, job, "steps_n");

    return asks == 0 ? gl_str_fmt(&p->arena, "%lld/%lld", ended, all)
                     : gl_str_fmt(&p->arena, "%lld/%lld, %llu ask%s", ended, all,
                                  (unsigned long long)asks, asks == 1 ? "s" : "");
}

static int count_human(struct gl_overview *o, struct gl_connection *r, struct gl_why *reterr_why)
{
    struct gl_api_reply page;
    int err = gl_overview_human(r, &page, reterr_why);

    o->human_n = err == 0 ? gl_overview_requests(&page, (gl_str){0}) : 0;
    o->requests_n = err == 0 ? count(&page, (gl_str){0}, false, true) : 0;
    gl_api_reply_done(&page);
    return err;
}

int gl_overview_read(struct gl_overview *o, struct gl_connection *r, struct gl_why *reterr_why)
{
    int err;

    *o = (struct gl_overview){0};
    o->has_node = gl_overview_node(r, &o->node);
    if (gl_connect_is_silent(r)) {
        return gl_connect_explain_silence(r, r->client.silence_ms, reterr_why);
    }
    if (o->has_node) {
        r->silence_ms = GL_CONNECT_SILENCE_STORE_MS;
    }
    err = count_jobs(o, r, reterr_why);
    err = err != 0 ? err : count_human(o, r, reterr_why);
    o->has_jobs = err == 0;
    if (err != 0 && o->has_node) {
        (void)gl_why_prefix(reterr_why, "the jobs cannot be read");
    }
    return err;
}

void gl_overview_done(struct gl_overview *o)
{
    gl_api_reply_done(&o->node);
}

gl_str gl_overview_running(struct gl_api_reply *p, gl_jnode node)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    long long elsewhere = gl_api_reply_number(p, node, "attempts_elsewhere"),
              taken = gl_api_reply_number(p, node, "attempts_taken");

    gl_buf_fmt(&out, "%lld running", (long long)gl_api_reply_number(p, node, "attempts_running"));
    if (elsewhere > 0) {
        gl_buf_fmt(&out, " (%lld elsewhere)", elsewhere);
    }
    if (taken > 0) {
        gl_buf_fmt(&out, ", %lld for other nodes", taken);
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

gl_str gl_overview_pools(struct gl_api_reply *node)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode pools = gl_json_get(&node->j, node->root, "pools");

    for (gl_jnode k = gl_json_first(&node->j, pools); k; k = gl_json_after(&node->j, pools, k)) {
        gl_jnode pool = gl_json_value(k);
        gl_str name = gl_json_str(&node->j, k, &node->arena);

        if (gl_str_starts(name, GL_S("executor.")) &&
            gl_api_reply_number(node, pool, "in_use") == 0) {
            continue; /* pools of bundles: shown while in use */
        }
        gl_buf_fmt(&out, "%s%.*s %lld of %lld", out.n > 0 ? ", " : "", GL_STR_ARG(name),
                   (long long)gl_api_reply_number(node, pool, "in_use"),
                   (long long)gl_api_reply_number(node, pool, "slots"));
    }
    return gl_str_dup(&node->arena, gl_buf_view(&out));
}

gl_str gl_overview_counts(const struct gl_overview *o, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < GL_JOB_STATUS_COUNT; i++) {
        if (o->counts[i] > 0) {
            gl_buf_fmt(&out, "%s%llu %s", out.n > 0 ? ", " : "", (unsigned long long)o->counts[i],
                       gl_job_status_words[i]);
        }
    }
    gl_buf_c(&out, out.n == 0 ? "none" : o->has_more ? ", and older ones" : "");
    return gl_str_dup(a, gl_buf_view(&out));
}
