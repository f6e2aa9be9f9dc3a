/* routes.c - which request means what. */
#include "base/check.h"
#include "base/limits.h"
#include "http/call.h"
#include "model/job.h"

enum { SEGMENTS_MAX = 9 };

/* A path, cut at its slashes. */
struct path {
    gl_str segments[SEGMENTS_MAX];
    size_t n; /* SEGMENTS_MAX + 1: too many */
};

struct route {
    const char *method;
    const char *pattern; /* "*" stands for any one segment */
    void (*handle)(struct gl_call *c, const struct path *p);
};

static struct path split(gl_str url)
{
    struct path p = {0};

    if (url.n > 0 && url.p[0] == '/') {
        url.p++;
        url.n--;
    }
    while (url.n > 0 && p.n <= SEGMENTS_MAX) {
        gl_str segment = gl_str_cut(url, '/', &url);

        if (p.n < SEGMENTS_MAX) {
            p.segments[p.n] = segment;
        }
        p.n++;
    }
    return p;
}

static bool matches(const struct path *p, const char *pattern)
{
    struct path want = split(gl_str_of(pattern));

    if (p->n != want.n) {
        return false;
    }
    for (size_t i = 0; i < want.n; i++) {
        if (!gl_str_is(want.segments[i], "*") && !gl_str_eq(want.segments[i], p->segments[i])) {
            return false;
        }
    }
    return true;
}

/* ---- arguments ---- */

/* A number in the query; absent leaves *ret as it is. False: an answer was given. */
static bool number_argument(struct gl_call *c, const char *name, uint64_t max, uint64_t *ret)
{
    gl_str text = gl_call_argument(c, name);
    uint64_t number;

    if (text.p == NULL) {
        return true;
    }
    if (!gl_str_u64(text, &number) || number > max) {
        gl_reply_error_at(c, GL_E_INVALID,
                          gl_str_fmt(&c->arena, "'%s' must be a number from 0 to %llu", name,
                                     (unsigned long long)max)
                              .p,
                          NULL, name, NULL);
        return false;
    }
    *ret = number;
    return true;
}

static bool page_argument(struct gl_call *c)
{
    uint64_t limit = 0;

    if (!number_argument(c, "limit", GL_PAGE_MAX, &limit)) {
        return false;
    }
    c->rq.limit = (uint32_t)limit;
    return true;
}

static void begin(struct gl_call *c, enum gl_verb verb, const struct path *p)
{
    c->rq.verb = verb;
    c->rq.context = gl_str_dup(&c->arena, p->segments[2]);
    if (p->n > 4) {
        c->rq.job = gl_str_dup(&c->arena, p->segments[4]);
    }
}

/* ---- the node ---- */

static void tell_health(struct gl_call *c)
{
    gl_reply_json(c, MHD_HTTP_OK, GL_S("{\"status\":\"ok\"}"));
}

/* Asked of the node, so that the answer shows that its loop turns. */
static void health(struct gl_call *c, const struct path *p)
{
    (void)p;
    c->rq.verb = GL_VERB_NODE;
    c->rq.context = GL_S("default");
    c->then = tell_health;
    gl_call_ask(c);
}

static void node(struct gl_call *c, const struct path *p)
{
    (void)p;
    c->rq.verb = GL_VERB_NODE;
    c->rq.context = GL_S("default");
    gl_call_ask(c);
}

static void yield(struct gl_call *c, const struct path *p)
{
    (void)p;
    if (c->config->yield == NULL) {
        gl_reply_error(c, GL_E_STATE, "this node stays", NULL);
        return;
    }
    c->config->yield(c->config->owner);
    gl_reply_json(c, MHD_HTTP_ACCEPTED, GL_S("{\"yielding\":true}"));
}

/* ---- jobs ---- */

static void submit(struct gl_call *c, const struct path *p)
{
    begin(c, GL_VERB_SUBMIT, p);
    if (gl_posted_submit(c)) {
        gl_call_ask(c);
    }
}

static void list(struct gl_call *c, const struct path *p)
{
    begin(c, GL_VERB_LIST, p);
    c->rq.status = gl_call_argument(c, "status");
    c->rq.after = gl_call_argument(c, "after");
    if (c->rq.status.n > 0 && gl_schema_word(gl_job_status_words, c->rq.status) < 0) {
        gl_reply_error_at(c, GL_E_INVALID, "there is no such status of a job", NULL, "status",
                          NULL);
    } else if (page_argument(c)) {
        gl_call_ask(c);
    }
}

static void status(struct gl_call *c, const struct path *p)
{
    begin(c, GL_VERB_STATUS, p);
    gl_call_ask(c);
}

static void events(struct gl_call *c, const struct path *p)
{
    uint64_t from = 0, wait_ms = 0;

    begin(c, GL_VERB_EVENTS, p);
    if (page_argument(c) && number_argument(c, "from", INT64_MAX, &from) &&
        number_argument(c, "wait_ms", GL_CALL_WAIT_MS_MAX, &wait_ms)) {
        c->rq.from_seq = (int64_t)from;
        c->rq.wait_ms = (gl_ms)wait_ms;
        gl_call_ask(c);
    }
}

static void logs(struct gl_call *c, const struct path *p)
{
    uint64_t attempt = 0, offset = 0;

    begin(c, GL_VERB_STATUS, p);
    c->step = gl_call_argument(c, "step");
    if (number_argument(c, "attempt", UINT32_MAX, &attempt) &&
        number_argument(c, "offset", INT64_MAX, &offset)) {
        c->attempt = (uint32_t)attempt;
        c->offset = offset;
        gl_paper_route(c);
    }
}

static void command(struct gl_call *c, const struct path *p, enum gl_verb verb)
{
    begin(c, verb, p);
    if (gl_posted_command(c)) {
        gl_call_ask(c);
    }
}

static void pause_job(struct gl_call *c, const struct path *p)
{
    command(c, p, GL_VERB_PAUSE);
}

static void resume_job(struct gl_call *c, const struct path *p)
{
    command(c, p, GL_VERB_RESUME);
}

static void cancel_job(struct gl_call *c, const struct path *p)
{
    command(c, p, GL_VERB_CANCEL);
}

static void respond(struct gl_call *c, const struct path *p)
{
    begin(c, GL_VERB_RESPOND, p);
    c->rq.step = gl_str_dup(&c->arena, p->segments[6]);
    if (gl_posted_respond(c)) {
        gl_call_ask(c);
    }
}

static void human(struct gl_call *c, const struct path *p)
{
    begin(c, GL_VERB_HUMAN, p);
    if (page_argument(c)) {
        gl_call_ask(c);
    }
}

/* ---- blobs ---- */

static void put_blob(struct gl_call *c, const struct path *p)
{
    struct gl_why why = {0};
    int err;

    if (!gl_str_is(p->segments[2], "default")) {
        gl_reply_error(c, GL_E_NOT_FOUND, "there is no such context", NULL);
        return;
    }
    err = c->config->blob->put(c->config->blob, p->segments[2], p->segments[4],
                               gl_buf_view(&c->body), &why);
    if (err == GL_E_LIMIT) {
        gl_reply_refusal(c, MHD_HTTP_CONTENT_TOO_LARGE, err, why.text);
    } else if (err != 0) {
        gl_reply_error(c, err == GL_E_IO ? GL_E_UNAVAILABLE : err, why.text, NULL);
    } else {
        gl_reply_json(c, MHD_HTTP_CREATED,
                      gl_str_fmt(&c->arena, "{\"sha256\":\"%.*s\",\"bytes\":%zu}",
                                 GL_STR_ARG(p->segments[4]), c->body.n));
    }
}

/* ---- the table ---- */

#define JOBS "/v1/contexts/*/jobs"

static const struct route routes[] = {
    {"GET", "/healthz", health},
    {"GET", "/v1/node", node},
    {"POST", "/v1/node/yield", yield},
    {"POST", JOBS, submit},
    {"GET", JOBS, list},
    {"GET", JOBS "/*", status},
    {"GET", JOBS "/*/events", events},
    {"GET", JOBS "/*/logs", logs},
    {"POST", JOBS "/*/pause", pause_job},
    {"POST", JOBS "/*/resume", resume_job},
    {"POST", JOBS "/*/cancel", cancel_job},
    {"POST", JOBS "/*/steps/*/respond", respond},
    {"GET", "/v1/contexts/*/human", human},
    {"PUT", "/v1/contexts/*/blobs/*", put_blob},
};

void gl_routes_find(struct gl_call *c)
{
    struct path p = split(gl_str_of(c->url));
    bool is_known = false;

    for (size_t i = 0; i < GL_COUNT(routes); i++) {
        if (!matches(&p, routes[i].pattern)) {
            continue;
        }
        is_known = true;
        if (strcmp(routes[i].method, c->method) == 0) {
            routes[i].handle(c, &p);
            return;
        }
    }
    if (is_known) {
        gl_reply_refusal(c, MHD_HTTP_METHOD_NOT_ALLOWED, GL_E_INVALID,
                         "this path does not know that method");
    } else {
        gl_reply_error(c, GL_E_NOT_FOUND, "there is no such path", "docs/api.md lists them");
    }
}
