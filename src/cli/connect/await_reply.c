#include "cli/connect/await_reply.h"

#include <errno.h>
#include <poll.h>

#include "base/check.h"
#include "base/json.h"

enum {
    LATE_MS = 3000,   /* check the health of the node if there is no reply after this time */
    ASK_MS = 10000,   /* between two health checks */
    HEALTH_MS = 3000, /* limit for the health check after a long wait */
    ANSWER_BYTES_MAX = 1 << 20,
};

struct awaited_reply {
    struct gl_connection *connection;
    const char *method, *path;
    int silence_ms;
    gl_ms begun_at, asked_at;
    gl_ms answered_at;      /* when the node last answered on the second connection */
    struct gl_why reported; /* the last reason reported */
    uint64_t removed_n;     /* jobs that retention has removed so far */
};

/* Removing jobs reports progress, and may take minutes. */
static bool is_removal(const struct awaited_reply *w)
{
    return strcmp(w->method, "DELETE") == 0 || strstr(w->path, "/trim") != NULL;
}

/* A query on a separate connection. */
static int query_path(const struct gl_connection *connection, const char *path, int silence_ms,
                      struct gl_arena *a, struct gl_json *ret)
{
    const struct gl_http_client *main = &connection->client;
    struct gl_http_client_reply reply;
    struct gl_http_client c;
    int err;

    gl_http_client_init(&c, main->path);
    c.is_tcp = main->is_tcp;
    c.token = main->token;
    c.silence_ms = silence_ms;
    err = gl_http_client_connect(&c, NULL);
    if (err == 0) {
        err = gl_http_client_call(&c, "GET", path, (gl_str){0}, &reply, NULL);
    }
    if (err == 0 && ret != NULL) {
        err = reply.status != 200
                  ? GL_E_UNAVAILABLE
                  : gl_json_parse(ret, gl_str_dup(a, reply.body), ANSWER_BYTES_MAX, a, NULL);
    }
    gl_http_client_done(&c);
    return err;
}

static int query_node(struct awaited_reply *w, const char *path, struct gl_arena *a,
                      struct gl_json *ret)
{
    return query_path(w->connection, path, GL_CONNECT_SILENCE_SHORT_MS, a, ret);
}

static gl_str text_of(const struct gl_json *j, const char *name, struct gl_arena *a)
{
    return gl_json_str(j, gl_json_get(j, gl_json_root(j), name), a);
}

/* The reason why a command for a job waits: "" if unknown. */
static gl_str explain_job(struct awaited_reply *w, struct gl_arena *a)
{
    const char *jobs = strstr(w->path, "/jobs/");
    gl_str job = jobs == NULL ? (gl_str){0} : gl_str_of(jobs + strlen("/jobs/")), rest;
    bool is_stranded = false;
    struct gl_json status, node;
    gl_str owner;

    job = gl_str_cut(job, '/', &rest);
    if (job.n == 0 ||
        query_node(w, gl_str_fmt(a, "/v1/contexts/default/jobs/%.*s", GL_STR_ARG(job)).p, a,
                   &status) != 0) {
        return (gl_str){0};
    }
    (void)gl_json_bool(gl_json_get(&status, gl_json_root(&status), "stranded"), &is_stranded);
    if (is_stranded) {
        return text_of(&status, "why", a);
    }
    owner = text_of(&status, "node", a);
    if (owner.n > 0 && query_node(w, "/v1/node", a, &node) == 0 &&
        !gl_str_eq(owner, text_of(&node, "name", a))) {
        return gl_str_fmt(a, "node %.*s owns the job and has not accepted the command yet",
                          GL_STR_ARG(owner));
    }
    return (gl_str){0};
}

/* Why the reply is late, according to the node. */
static gl_str explain(struct awaited_reply *w, struct gl_arena *a)
{
    struct gl_json node;
    gl_str text = (gl_str){0};

    if (query_node(w, "/v1/node", a, &node) == 0) {
        text = text_of(&node, "reason", a); /* for example, its store is full */
        (void)gl_json_u64(&node, gl_json_get(&node, gl_json_root(&node), "removed_jobs"),
                          &w->removed_n);
    }
    if (text.n == 0 && is_removal(w)) {
        return gl_str_fmt(a, "the node is removing jobs and their files (%llu jobs so far)",
                          (unsigned long long)w->removed_n);
    }
    text = text.n > 0 ? text : explain_job(w, a);
    return text.n > 0 ? text : GL_S("the node is busy");
}

bool gl_await_reply_is_healthy(const struct gl_connection *connection, struct gl_arena *a,
                               gl_str *ret_reason)
{
    struct gl_json node;

    *ret_reason = (gl_str){0};
    if (query_path(connection, "/healthz", HEALTH_MS, a, NULL) != 0) {
        return false;
    }
    if (query_path(connection, "/v1/node", HEALTH_MS, a, &node) == 0) {
        *ret_reason = text_of(&node, "reason", a);
    }
    return true;
}

static void check_health(struct awaited_reply *w, gl_ms now)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_why text;

    w->asked_at = now;
    if (query_node(w, "/healthz", &a, NULL) != 0) {
        return;
    }
    w->answered_at = gl_term_now();
    (void)gl_why(&text, GL_E_BUSY, "%.*s", GL_STR_ARG(explain(w, &a)));
    if (strcmp(text.text, w->reported.text) != 0) { /* the reason may become known later */
        w->reported = text;
        gl_cli_note(w->connection->cli, "%s; waiting", text.text);
    }
}

static int on_wait(void *owner, int fd)
{
    struct awaited_reply *w = owner;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        gl_ms now = gl_term_now();
        gl_ms due = w->asked_at == 0 ? w->begun_at + LATE_MS : w->asked_at + ASK_MS;
        gl_ms until = w->silence_ms > 0 ? w->answered_at + w->silence_ms : INT64_MAX;

        gl_ms next = due < until ? due : until;
        int n = poll(&p, 1, next > now ? (int)(next - now) : 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n != 0) {
            return 0; /* readable, or broken: the caller handles both */
        }
        now = gl_term_now();
        if (now >= due && due < until) {
            check_health(w, now);
        } else if (now >= until) {
            w->connection->client.is_silent = true;
            gl_http_client_disconnect(&w->connection->client); /* drop a late reply */
            return GL_E_UNAVAILABLE;
        }
    }
}

int gl_await_reply(struct gl_connection *connection, const char *method, const char *path,
                   gl_str body, int silence_ms, struct gl_http_client_reply *ret,
                   struct gl_why *reterr_why)
{
    struct awaited_reply w = {.connection = connection,
                              .method = method,
                              .path = path,
                              .silence_ms = silence_ms,
                              .begun_at = gl_term_now()};
    int err;

    w.answered_at = w.begun_at;
    if (silence_ms > 0 || is_removal(&w)) {
        connection->client.wait = on_wait;
        connection->client.owner = &w;
    }
    err = gl_http_client_call(&connection->client, method, path, body, ret, reterr_why);
    connection->client.wait = NULL;
    return err;
}
