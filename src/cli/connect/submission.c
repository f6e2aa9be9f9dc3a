#include "cli/connect/submission.h"

#include "base/check.h"
#include "os/random.h"

void gl_submission_init(struct gl_submission *s, struct gl_connection *connection, bool is_detached)
{
    struct gl_entropy chance = gl_random_entropy();
    uint64_t numbers[2];

    *s = (struct gl_submission){.connection = connection, .is_detached = is_detached};
    chance.fill(&chance, numbers, sizeof(numbers));
    (void)snprintf(s->key, sizeof(s->key), "cli-%016llx%016llx", (unsigned long long)numbers[0],
                   (unsigned long long)numbers[1]);
}

void gl_submission_write_key(const struct gl_submission *s, struct gl_jw *w)
{
    gl_jw_put_c(w, "request_key", s->key);
}

/* A node of an earlier release refuses fields it does not know. */
static bool is_unknown_field(int err, const struct gl_why *why)
{
    return err == GL_E_INVALID &&
           gl_str_starts(gl_str_of(why->text), GL_S("request_key: there is no such field"));
}

/* The key is the first field of the body. */
static void take_key_out(struct gl_submission *s, struct gl_buf *body)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str field = gl_str_fmt(&a, "{\"request_key\":\"%s\"", s->key);
    gl_str text = gl_buf_view(body), rest;

    GL_ASSERT(gl_str_starts(text, field));
    rest = (gl_str){.p = text.p + field.n, .n = text.n - field.n};
    if (rest.n > 0 && rest.p[0] == ',') {
        rest = (gl_str){.p = rest.p + 1, .n = rest.n - 1};
    }
    text = gl_str_fmt(&a, "{%.*s", GL_STR_ARG(rest));
    gl_buf_reset(body);
    gl_buf_str(body, text);
    s->is_unkeyed = true;
}

static int send_once(struct gl_submission *s, const char *path, struct gl_buf *body,
                     struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    int err;

    s->sent++;
    err = gl_connect_call(s->connection, "POST", path, gl_buf_view(body), ret, reterr_why);
    if (!s->is_unkeyed && is_unknown_field(err, reterr_why)) {
        take_key_out(s, body);
        err = gl_connect_call(s->connection, "POST", path, gl_buf_view(body), ret, reterr_why);
    }
    return err;
}

/* A submission, this one or an earlier one, got no reply. */
static int in_doubt(const struct gl_submission *s, int err, struct gl_why *reterr_why)
{
    struct gl_why why = *reterr_why;

    return !s->is_doubtful
               ? err
               : gl_why(reterr_why, gl_err_join(err, GL_REASON_MAYBE_SUBMITTED),
                        "%s; the job may have been submitted: 'glia job list' shows it", why.text);
}

int gl_submission_send(struct gl_submission *s, struct gl_request *rq, struct gl_buf *body,
                       struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    const char *path = gl_connect_path(s->connection, rq);
    struct gl_why why;
    gl_ms until = 0;

    for (;;) {
        int err = (s->is_detached ? gl_connect_find : gl_connect_open)(s->connection, &why);

        if (err != 0) {
            (void)gl_why(reterr_why, gl_err_join(err, why.reason), "%s", why.text);
            return in_doubt(s, err, reterr_why);
        }
        err = send_once(s, path, body, ret, reterr_why);
        s->is_doubtful |= err == GL_E_GONE || (err != 0 && s->connection->client.is_silent);
        if (err == GL_E_GONE && s->is_unkeyed) {
            return gl_why(
                reterr_why, gl_err_join(err, GL_REASON_MAYBE_SUBMITTED),
                "lost the connection to the node before it answered; the job may have been "
                "submitted: 'glia job list' shows it");
        }
        if (!gl_connect_is_lost(s->connection, err)) { /* a reply, or a silent node */
            return s->connection->client.is_silent ? in_doubt(s, err, reterr_why) : err;
        }
        until = until == 0 ? gl_term_now() + GL_CONNECT_TIMEOUT_MS : until;
        if (gl_term_now() > until) {
            return in_doubt(s, err, reterr_why);
        }
        gl_http_client_disconnect(&s->connection->client);
        gl_connect_pause();
    }
}
