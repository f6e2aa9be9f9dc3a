#include "cli/reach.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/json.h"
#include "daemon.h"
#include "os/paths.h"

enum { PAUSE_MS = 20, ANSWER_BYTES_MAX = 1 << 30 };

void gl_reach_init(struct gl_reach *r, struct gl_cli *cli)
{
    *r = (struct gl_reach){.cli = cli};
    gl_client_init(&r->client, gl_paths_in(&cli->arena, cli->data, GL_PATHS_SOCKET));
}

void gl_reach_done(struct gl_reach *r)
{
    gl_client_done(&r->client);
    gl_daemon_stop(r->daemon);
    r->daemon = NULL;
}

void gl_reach_rest(void)
{
    struct timespec t = {.tv_nsec = PAUSE_MS * 1000000L};

    (void)nanosleep(&t, NULL);
}

static int become(struct gl_reach *r, struct gl_why *reterr_why)
{
    const char *log = getenv("GLIA_LOG");
    struct gl_daemon_config config = {
        .data = r->cli->data,
        .pools = getenv("GLIA_POOLS"),
        .debug = log != NULL && strcmp(log, "debug") == 0,
    };

    return gl_daemon_start(&r->daemon, &config, reterr_why);
}

static bool is_nobody(int code)
{
    return code == GL_E_NOT_FOUND || code == GL_E_GONE;
}

int gl_reach_open(struct gl_reach *r, struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + GL_REACH_PATIENCE_MS;

    for (;;) {
        int err = gl_client_connect(&r->client, reterr_why);

        if (!is_nobody(err) || r->daemon != NULL) {
            return err;
        }
        err = become(r, reterr_why);
        if (err == 0) {
            continue; /* and connect to ourselves */
        }
        if (err != GL_E_BUSY) {
            return err;
        }
        /* Someone has the lock and does not listen yet, or not any more. */
        if (gl_term_now() > until) {
            (void)gl_why_prefix(reterr_why, "no node answers");
            return GL_E_UNAVAILABLE;
        }
        gl_reach_rest();
    }
}

int gl_reach_find(struct gl_reach *r, struct gl_why *reterr_why)
{
    int err = gl_client_connect(&r->client, reterr_why);

    return !is_nobody(err)
               ? err
               : gl_why(reterr_why, GL_E_UNAVAILABLE,
                        "no node is running in %s; 'glia serve' starts one", r->cli->data);
}

/* ---- calls ---- */

static gl_str member(struct gl_arena *a, const struct gl_json *j, gl_jnode n, const char *name)
{
    return gl_json_str(j, gl_json_get(j, n, name), a);
}

static int read_error(const struct gl_client_reply *reply, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    gl_jnode error, first;
    gl_str hint, code;

    if (gl_json_parse(&j, reply->body, ANSWER_BYTES_MAX, &a, NULL) != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "the node answered with status %u",
                      reply->status);
    }
    error = gl_json_get(&j, gl_json_root(&j), "error");
    code = member(&a, &j, error, "code");
    hint = member(&a, &j, error, "hint");
    first = gl_json_first(&j, gl_json_get(&j, error, "details"));
    if (first != NULL) {
        return gl_why(reterr_why, gl_err_from_word(gl_str_c(&a, code)), "%.*s: %.*s",
                      GL_STR_ARG(member(&a, &j, first, "path")),
                      GL_STR_ARG(member(&a, &j, first, "message")));
    }
    return gl_why(reterr_why, gl_err_from_word(gl_str_c(&a, code)), "%.*s%s%.*s",
                  GL_STR_ARG(member(&a, &j, error, "message")), hint.n > 0 ? "; " : "",
                  GL_STR_ARG(hint));
}

int gl_reach_call(struct gl_reach *r, const char *method, const char *path, gl_str body,
                  struct gl_client_reply *ret, struct gl_why *reterr_why)
{
    int err = gl_client_call(&r->client, method, path, body, ret, reterr_why);

    return err != 0 || ret->status < 400 ? err : read_error(ret, reterr_why);
}

bool gl_reach_is_gone(const struct gl_reach *r, int code)
{
    return r->daemon == NULL && (code == GL_E_GONE || code == GL_E_UNAVAILABLE);
}

int gl_reach_insist(struct gl_reach *r, const char *method, const char *path, gl_str body,
                    struct gl_client_reply *ret, struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + GL_REACH_PATIENCE_MS;

    for (;;) {
        int err = gl_reach_open(r, reterr_why);

        if (err != 0) {
            return err;
        }
        err = gl_reach_call(r, method, path, body, ret, reterr_why);
        /* "not_found" may also be the answer: only a broken connection means nobody. */
        if (err == 0 || (err == GL_E_NOT_FOUND && r->client.fd >= 0) || !gl_reach_is_gone(r, err) ||
            gl_term_now() > until) {
            return err;
        }
        gl_client_disconnect(&r->client);
        gl_reach_rest();
    }
}

/* ---- paths ---- */

gl_str gl_reach_escape(struct gl_arena *a, gl_str word)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.';

        if (plain) {
            gl_buf_char(&out, c);
        } else {
            gl_buf_fmt(&out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
    return gl_str_dup(a, gl_buf_view(&out));
}

const char *gl_reach_job_path(struct gl_cli *cli, gl_str job, const char *fmt, ...)
{
    char rest[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(rest, sizeof(rest), fmt, args);
    va_end(args);
    return gl_str_fmt(&cli->arena, "/v1/contexts/default/jobs/%.*s%s",
                      GL_STR_ARG(gl_reach_escape(&cli->arena, job)), rest)
        .p;
}

/* ---- questions ---- */

static const char *path_of(struct gl_arena *a, const struct gl_request *rq)
{
    gl_str job = gl_reach_escape(a, rq->job);

    switch (rq->verb) {
    case GL_VERB_LIST:
        return gl_str_fmt(a, "/v1/contexts/default/jobs?limit=%u&status=%.*s&name=%.*s&after=%.*s",
                          rq->limit, GL_STR_ARG(gl_reach_escape(a, rq->status)),
                          GL_STR_ARG(gl_reach_escape(a, rq->name)),
                          GL_STR_ARG(gl_reach_escape(a, rq->after)))
            .p;
    case GL_VERB_STATUS:
        return gl_str_fmt(a, "/v1/contexts/default/jobs/%.*s", GL_STR_ARG(job)).p;
    case GL_VERB_EVENTS:
        return gl_str_fmt(
                   a, "/v1/contexts/default/jobs/%.*s/events?from=%lld&limit=%u&wait_ms=%lld",
                   GL_STR_ARG(job), (long long)rq->from_seq, rq->limit, (long long)rq->wait_ms)
            .p;
    case GL_VERB_HUMAN:
        return gl_str_fmt(a, "/v1/contexts/default/human?limit=%u", rq->limit).p;
    case GL_VERB_WHY:
        return gl_str_fmt(a, "/v1/contexts/default/jobs/%.*s/why?step=%.*s", GL_STR_ARG(job),
                          GL_STR_ARG(gl_reach_escape(a, rq->step)))
            .p;
    default:
        GL_UNREACHABLE();
    }
}

int gl_reach_ask(struct gl_reach *r, struct gl_request *rq, struct gl_buf *body,
                 struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0}; /* some ask again and again */
    struct gl_client_reply reply;
    int err = gl_client_connect(&r->client, reterr_why);

    rq->context = GL_S("default");
    if (err == 0) {
        err = gl_reach_call(r, "GET", path_of(&a, rq), (gl_str){0}, &reply, reterr_why);
        if (err == 0) {
            gl_buf_str(body, reply.body);
        }
    } else if (is_nobody(err)) {
        err = GL_E_GONE;
    }
    r->is_alone = gl_reach_is_gone(r, err);
    return r->is_alone ? gl_daemon_query(r->cli->data, rq, body, reterr_why) : err;
}

bool gl_reach_say_alone(const struct gl_reach *r, gl_str status)
{
    static const char *const driven[] = {"pending", "running", "pausing", "cancelling"};

    for (size_t i = 0; i < GL_COUNT(driven) && r->is_alone && !r->cli->json; i++) {
        if (gl_str_is(status, driven[i])) {
            gl_cli_say(r->cli,
                       "no node is running: nothing drives unfinished jobs; '%s' goes on with one",
                       gl_cli_hint(r->cli, "job resume ID"));
            return true;
        }
    }
    return false;
}
