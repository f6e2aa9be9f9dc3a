#include "cli/page.h"

#include "base/check.h"

enum { ANSWER_BYTES_MAX = 1 << 30 };

int gl_page_ask(struct gl_page *p, struct gl_reach *r, struct gl_request *rq,
                struct gl_why *reterr_why)
{
    int err;

    *p = (struct gl_page){0};
    err = gl_reach_ask(r, rq, &p->body, reterr_why);
    if (err == 0) {
        err = gl_json_parse(&p->j, gl_buf_view(&p->body), ANSWER_BYTES_MAX, &p->arena, reterr_why);
    }
    if (err == 0) {
        p->root = gl_json_root(&p->j);
    }
    return err;
}

void gl_page_done(struct gl_page *p)
{
    gl_buf_done(&p->body);
    gl_arena_done(&p->arena);
}

gl_str gl_page_text(struct gl_page *p, gl_jnode n, const char *name)
{
    return gl_json_str(&p->j, gl_json_get(&p->j, n, name), &p->arena);
}

int64_t gl_page_number(const struct gl_page *p, gl_jnode n, const char *name)
{
    int64_t v = 0;

    (void)gl_json_i64(&p->j, gl_json_get(&p->j, n, name), &v);
    return v;
}

bool gl_page_is(const struct gl_page *p, gl_jnode n, const char *name)
{
    bool v = false;

    (void)gl_json_bool(gl_json_get(&p->j, n, name), &v);
    return v;
}

gl_ms gl_page_time(struct gl_page *p, gl_jnode n, const char *name)
{
    gl_ms t = 0;

    (void)gl_when_parse(gl_page_text(p, n, name), &t);
    return t;
}

gl_str gl_page_reason(struct gl_page *p, gl_jnode n)
{
    static const char *const fields[] = {"terminal_reason", "why", "reason", "last_error"};
    bool is_well = gl_str_is(gl_page_text(p, n, "status"), "completed");
    gl_str text = {0}, from = gl_page_text(p, n, "reused_from");

    if (is_well && from.n > 0) {
        return gl_str_fmt(&p->arena, "not run: taken over from job %.*s", GL_STR_ARG(from));
    }
    for (size_t i = 0; i < GL_COUNT(fields) && text.n == 0 && !is_well; i++) {
        text = gl_page_text(p, n, fields[i]);
    }
    return text;
}

int gl_page_print_json(const struct gl_page *p, struct gl_cli *cli)
{
    gl_str text = gl_str_trim(gl_buf_view(&p->body));

    (void)fwrite(text.p, 1, text.n, cli->out.file);
    (void)fputc('\n', cli->out.file);
    return GL_EXIT_OK;
}

void gl_page_say_alone(struct gl_page *p, const struct gl_reach *r)
{
    gl_jnode jobs = gl_json_get(&p->j, p->root, "jobs");

    for (gl_jnode e = gl_json_first(&p->j, jobs); e; e = gl_json_after(&p->j, jobs, e)) {
        if (gl_reach_say_alone(r, gl_page_text(p, e, "status"))) {
            return;
        }
    }
}

gl_str gl_page_span(struct gl_page *p, gl_ms since, gl_ms until)
{
    char span[GL_WHEN_BYTES];

    if (since == 0 || until == 0 || until < since) {
        return (gl_str){0};
    }
    return gl_str_dup(&p->arena, gl_when_span(until - since, span));
}
