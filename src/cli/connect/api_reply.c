#include "cli/connect/api_reply.h"

#include "base/check.h"

enum { ANSWER_BYTES_MAX = 1 << 30 };

int gl_api_reply_parse(struct gl_api_reply *p, struct gl_why *reterr_why)
{
    int err = gl_json_parse(&p->j, gl_buf_view(&p->body), ANSWER_BYTES_MAX, &p->arena, reterr_why);

    p->root = err == 0 ? gl_json_root(&p->j) : NULL;
    return err;
}

int gl_api_reply_ask(struct gl_api_reply *p, struct gl_connection *r, struct gl_request *rq,
                     struct gl_why *reterr_why)
{
    int err;

    *p = (struct gl_api_reply){0};
    err = gl_connect_ask(r, rq, &p->body, reterr_why);
    return err != 0 ? err : gl_api_reply_parse(p, reterr_why);
}

void gl_api_reply_done(struct gl_api_reply *p)
{
    gl_buf_done(&p->body);
    gl_arena_done(&p->arena);
}

/* ---- all steps ---- */

static gl_jnode state_of(const struct gl_api_reply *p)
{
    return gl_json_get(&p->j, p->root, "workflow_state");
}

bool gl_api_reply_is_complete(struct gl_api_reply *p)
{
    return gl_api_reply_is(p, state_of(p), "complete");
}

void gl_api_reply_report_partial(struct gl_api_reply *p, struct gl_cli *cli)
{
    gl_jnode steps = gl_json_get(&p->j, state_of(p), "steps");

    if (!gl_api_reply_is_complete(p)) {
        gl_cli_note(cli, "showing %u of %lld steps, failed and running ones first; --all shows all",
                    steps != NULL ? (unsigned)steps->count : 0,
                    (long long)gl_api_reply_number(p, state_of(p), "steps_total"));
    }
}

static void put_members(struct gl_jw *w, const struct gl_json *j, gl_jnode object,
                        const char *except, struct gl_arena *a)
{
    for (gl_jnode k = gl_json_first(j, object); k; k = gl_json_after(j, object, k)) {
        gl_str key = gl_json_str(j, k, a);

        if (except == NULL || !gl_str_is(key, except)) {
            gl_jw_key_str(w, key);
            gl_jw_raw(w, gl_json_raw(j, gl_json_value(k)));
        }
    }
}

/* The steps of all pages, as members of the object that is open in `w`. */
static int put_pages(struct gl_jw *w, struct gl_api_reply *first, struct gl_connection *r,
                     struct gl_request *rq, struct gl_why *reterr_why)
{
    gl_str next = gl_api_reply_text(first, state_of(first), "next");
    int err = 0;

    while (err == 0 && next.n > 0) {
        struct gl_request one = *rq;
        struct gl_api_reply page;

        one.status.page = next;
        one.status.limit = 0;
        err = gl_api_reply_ask(&page, r, &one, reterr_why);
        if (err == 0) {
            put_members(w, &page.j, gl_json_get(&page.j, state_of(&page), "steps"), NULL,
                        &page.arena);
            next = gl_str_dup(&first->arena, gl_api_reply_text(&page, state_of(&page), "next"));
        }
        gl_api_reply_done(&page);
    }
    return err;
}

int gl_api_reply_ask_all(struct gl_api_reply *p, struct gl_connection *r, struct gl_request *rq,
                         struct gl_why *reterr_why)
{
    struct gl_buf whole = {0};
    struct gl_jw w;
    int err = gl_api_reply_ask(p, r, rq, reterr_why);

    if (err != 0 || gl_api_reply_is_complete(p)) {
        return err;
    }
    gl_jw_init(&w, &whole);
    gl_jw_object(&w);
    put_members(&w, &p->j, p->root, "workflow_state", &p->arena);
    gl_jw_put_object(&w, "workflow_state");
    gl_jw_put_str(&w, "status", gl_api_reply_text(p, p->root, "status"));
    gl_jw_put_bool(&w, "complete", true);
    gl_jw_put_object(&w, "steps");
    err = put_pages(&w, p, r, rq, reterr_why);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    if (err == 0) {
        gl_api_reply_done(p);
        *p = (struct gl_api_reply){.body = whole};
        err = gl_api_reply_parse(p, reterr_why);
    } else {
        gl_buf_done(&whole);
    }
    return err;
}

/* ---- members ---- */

gl_str gl_api_reply_text(struct gl_api_reply *p, gl_jnode n, const char *name)
{
    return gl_json_str(&p->j, gl_json_get(&p->j, n, name), &p->arena);
}

int64_t gl_api_reply_number(const struct gl_api_reply *p, gl_jnode n, const char *name)
{
    int64_t v = 0;

    (void)gl_json_i64(&p->j, gl_json_get(&p->j, n, name), &v);
    return v;
}

bool gl_api_reply_is(const struct gl_api_reply *p, gl_jnode n, const char *name)
{
    bool v = false;

    (void)gl_json_bool(gl_json_get(&p->j, n, name), &v);
    return v;
}

gl_ms gl_api_reply_time(struct gl_api_reply *p, gl_jnode n, const char *name)
{
    gl_ms t = 0;

    (void)gl_times_parse(gl_api_reply_text(p, n, name), &t);
    return t;
}

gl_str gl_api_reply_reason(struct gl_api_reply *p, gl_jnode n)
{
    static const char *const fields[] = {"terminal_reason", "why", "reason", "last_error"};
    bool is_well = gl_str_is(gl_api_reply_text(p, n, "status"), "completed");
    gl_str text = {0}, from = gl_api_reply_text(p, n, "reused_from");

    if (is_well && from.n > 0) {
        return gl_str_fmt(&p->arena, "not run: reused from job %.*s", GL_STR_ARG(from));
    }
    for (size_t i = 0; i < GL_COUNT(fields) && text.n == 0 && !is_well; i++) {
        text = gl_api_reply_text(p, n, fields[i]);
    }
    return text;
}

int gl_api_reply_print_json(const struct gl_api_reply *p, struct gl_cli *cli)
{
    gl_str text = gl_str_trim(gl_buf_view(&p->body));

    gl_term_print(&cli->out, text);
    return GL_EXIT_OK;
}

bool gl_api_reply_warn_no_node(struct gl_api_reply *p, const struct gl_connection *r)
{
    gl_jnode jobs = gl_json_get(&p->j, p->root, "jobs");

    for (gl_jnode e = gl_json_first(&p->j, jobs); e; e = gl_json_after(&p->j, jobs, e)) {
        if (gl_connect_warn_no_node(r, gl_api_reply_text(p, e, "status"))) {
            return true;
        }
    }
    return false;
}

gl_str gl_api_reply_span(struct gl_api_reply *p, gl_ms since, gl_ms until)
{
    char span[GL_TIMES_BYTES];

    if (since == 0 || until == 0 || until < since) {
        return (gl_str){0};
    }
    return gl_str_dup(&p->arena, gl_times_format_span(until - since, span));
}
