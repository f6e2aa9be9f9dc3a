#include "exec/keeper_exec.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "exec/keeper_conn.h"
#include "exec/secrets.h"
#include "model/bundle/worker_output.h"

enum {
    OUT_BYTES_MAX = 64 << 20, /* the keeper reads too slowly: refuse more */
    DEFAULTS_MAX = 4,
};

struct keeper_exec {
    struct gl_exec exec;
    struct gl_exec_events events;
    struct gl_keeper_conn conn;
    struct gl_arena config_arena;
    gl_str defaults[DEFAULTS_MAX]; /* our own PATH, HOME, LANG, TZ: "NAME=value" */
    size_t defaults_n;

    struct event *later;
    struct gl_link sent;   /* not answered yet; in the order sent */
    struct gl_link failed; /* failed at once, to be answered later */
    uint64_t req;
    struct gl_map
        rejected; /* attempts that exited with 0 but whose output is invalid, which only we know.
                     struct rejected_attempt by "context/job/attempt", until acknowledged */

    struct gl_exec_req retiring; /* asks whether an old keeper is idle */
    bool is_retiring;

    struct gl_arena infos_arena; /* of the list in progress */
    struct gl_exec_info *infos;
    size_t infos_n, infos_cap;

    void (*closed)(void *owner);
    void *closed_owner;
};

struct rejected_attempt {
    gl_str key;
    char text[];
};

/* Our part of a request. */
struct keeper_req {
    struct gl_link link;
    uint64_t req;
};

static_assert(sizeof(struct keeper_req) <= sizeof(((struct gl_exec_req *)0)->maker),
              "the maker's part of a request is large enough");

static struct keeper_exec *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct keeper_exec, exec);
}

static struct keeper_req *pending_of(struct gl_exec_req *req)
{
    return (struct keeper_req *)(void *)req->maker;
}

static struct gl_exec_req *req_of(struct gl_link *l)
{
    return GL_CONTAINER(GL_CONTAINER(l, struct keeper_req, link), struct gl_exec_req, maker);
}

/* ---- answering ---- */

static void finish(struct gl_exec_req *req, int status, const char *text)
{
    gl_list_remove(&pending_of(req)->link);
    req->status = status;
    if (status < 0) {
        (void)gl_why(&req->why, status, "%s", text);
    }
    req->done(req);
}

/* Move out the current content of a list: a callback may add new requests to it. */
static void take_all(struct gl_link *from, struct gl_link *to)
{
    gl_list_init(to);
    while (!gl_list_empty(from)) {
        struct gl_link *l = gl_list_first(from);
        gl_list_remove(l);
        gl_list_push(to, l);
    }
}

static void fail_sent(struct keeper_exec *x, const char *why)
{
    struct gl_link all;
    take_all(&x->sent, &all);
    while (!gl_list_empty(&all)) {
        finish(req_of(gl_list_first(&all)), GL_E_UNAVAILABLE, why);
    }
}

/* Answer later, without asking anyone. */
static void fail(struct keeper_exec *x, struct gl_exec_req *req, int status, const char *text)
{
    req->status = status;
    (void)gl_why(&req->why, status, "%s", text);
    gl_list_init(&pending_of(req)->link);
    gl_list_push(&x->failed, &pending_of(req)->link);
    event_active(x->later, EV_TIMEOUT, 0);
}

/* ---- results ---- */

/* A document, or nothing. The slice is of the value alone, without space around it. */
static int check_json(gl_str text, struct gl_arena *a, gl_str *ret, struct gl_why *why)
{
    struct gl_json j;
    int r = gl_json_parse(&j, text, GL_OUTPUT_BYTES_MAX, a, why);
    if (r == 0 && j.depth > GL_VALUE_DEPTH_MAX) { /* it will be embedded in other documents */
        r = gl_why(why, GL_E_LIMIT, "it is nested more than %d deep", GL_VALUE_DEPTH_MAX);
    }
    if (r == 0) {
        *ret = gl_json_raw(&j, gl_json_root(&j));
    }
    return r;
}

static gl_str key_text(struct gl_arena *a, const struct gl_attempt_key *key)
{
    return gl_str_fmt(a, "%.*s/%.*s/%.*s", GL_STR_ARG(key->context), GL_STR_ARG(key->job),
                      GL_STR_ARG(key->attempt));
}

/* Remember to report the failure with the acknowledgement. */
static void mark_rejected(struct keeper_exec *x, const struct gl_attempt_key *key,
                          struct gl_arena *a)
{
    gl_str text = key_text(a, key);
    if (gl_map_find(&x->rejected, text) == NULL) {
        struct rejected_attempt *b = gl_mem_alloc(sizeof(*b) + text.n);
        memcpy(b->text, text.p, text.n);
        b->key = (gl_str){.p = b->text, .n = text.n};
        gl_map_add(&x->rejected, b->key, b);
    }
}

static bool take_rejected(struct keeper_exec *x, const struct gl_attempt_key *key)
{
    if (gl_map_count(&x->rejected) == 0) {
        return false;
    }
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct rejected_attempt *b = gl_map_remove(&x->rejected, key_text(&a, key));
    gl_mem_free(b);
    return b != NULL;
}

/* A worker's output becomes a JSON document here; on the wire and in the journal it is bytes. */
static gl_str worker_output(const struct gl_keeper_worker *w, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_worker_result r = {
        .stdout_text = w->out,
        .stderr_text = w->err,
        .is_cut = w->is_cut,
        .stdout_bytes = w->out_bytes,
    };
    gl_worker_result_write(&r, &out);
    return gl_str_dup(a, gl_buf_view(&out));
}

static void check_output(struct keeper_exec *x, struct gl_keeper_msg *m, struct gl_arena *a)
{
    struct gl_why why;
    if (m->output_source == GL_KEEPER_FROM_WORKER) {
        m->result.output = worker_output(&m->worker, a);
        return;
    }
    gl_str text = m->result.output;
    m->result.output = (gl_str){0};
    if (m->output_source == GL_KEEPER_NO_OUTPUT ||
        check_json(text, a, &m->result.output, &why) == 0) {
        return;
    }
    bool succeeded = m->result.end == GL_EXEC_EXITED && m->result.exit_code == 0;
    if (m->output_source == GL_KEEPER_FROM_FILE && succeeded && m->result.error.n == 0) {
        m->result.error = gl_str_fmt(a, "the output is not valid JSON: %s", why.text);
        mark_rejected(x, &m->start.key, a);
    }
}

/* ---- messages of the keeper ---- */

static struct gl_exec_req *find_sent(struct keeper_exec *x, uint64_t number)
{
    for (struct gl_link *l = x->sent.next; l != &x->sent; l = l->next) {
        if (GL_CONTAINER(l, struct keeper_req, link)->req == number) {
            return req_of(l);
        }
    }
    return NULL;
}

static void on_info(struct keeper_exec *x, const struct gl_keeper_msg *m)
{
    struct gl_arena *a = &x->infos_arena;
    if (x->infos_n == x->infos_cap) {
        size_t cap = x->infos_cap > 0 ? x->infos_cap * 2 : 64;
        struct gl_exec_info *more = GL_NEW_ARRAY(a, struct gl_exec_info, cap);
        if (x->infos_n > 0) {
            memcpy(more, x->infos, x->infos_n * sizeof(*more));
        }
        x->infos = more;
        x->infos_cap = cap;
    }
    x->infos[x->infos_n++] = (struct gl_exec_info){
        .key = {gl_str_dup(a, m->start.key.context), gl_str_dup(a, m->start.key.job),
                gl_str_dup(a, m->start.key.attempt)},
        .token = m->start.token,
        .state = (enum gl_exec_state)m->state,
    };
}

static void forget_infos(struct keeper_exec *x)
{
    gl_arena_reset(&x->infos_arena);
    x->infos = NULL;
    x->infos_n = x->infos_cap = 0;
}

static void on_reply(struct keeper_exec *x, struct gl_keeper_msg *m, struct gl_arena *a)
{
    struct gl_exec_req *req = find_sent(x, m->req);
    if (req != NULL) {
        check_output(x, m, a);
        req->state = (enum gl_exec_state)m->state;
        req->result = m->result;
        req->infos = x->infos;
        req->infos_n = x->infos_n;
        finish(req, m->status, gl_str_c(a, m->text));
    }
    forget_infos(x);
}

static void on_message(void *owner, struct gl_keeper_msg *m, struct gl_arena *a)
{
    struct keeper_exec *x = owner;
    if (m->type == GL_KEEPER_REPLY) {
        on_reply(x, m, a);
    } else if (m->type == GL_KEEPER_INFO) {
        on_info(x, m);
    } else if (m->type == GL_KEEPER_ENDED) {
        check_output(x, m, a);
        x->events.ended(x->events.owner, &m->start.key, m->start.token, &m->result);
    } else if (m->type == GL_KEEPER_BEACON) {
        x->events.beacon(x->events.owner, &m->start.key, m->start.token);
    } else if (m->type == GL_KEEPER_LINE && x->events.said != NULL) {
        x->events.said(x->events.owner, &m->start.key, m->start.token, m->line);
    }
    /* Other messages come from a newer keeper and can be ignored. */
}

static void on_up(void *owner, gl_str epoch)
{
    struct keeper_exec *x = owner;
    x->events.up(x->events.owner, epoch);
}

static void on_down(void *owner, const char *why)
{
    struct keeper_exec *x = owner;
    forget_infos(x);
    x->events.down(x->events.owner, why);
    fail_sent(x, why);
}

/* ---- the port ---- */

static void ask(struct keeper_exec *x, struct gl_exec_req *req, struct gl_keeper_msg *m)
{
    GL_ASSERT(req->done != NULL);
    if (!gl_keeper_conn_is_up(&x->conn)) {
        fail(x, req, GL_E_UNAVAILABLE, "the keeper is not running");
    } else if (x->conn.out.n > OUT_BYTES_MAX) {
        fail(x, req, GL_E_UNAVAILABLE, "the keeper is not keeping up");
    } else {
        m->req = pending_of(req)->req = ++x->req;
        gl_list_init(&pending_of(req)->link);
        gl_list_push(&x->sent, &pending_of(req)->link);
        gl_keeper_conn_send(&x->conn, m);
    }
}

/* An idle keeper of an older release is replaced by ours. Nothing can have been sent to it between
 * its answer and the signal. */
static void on_old_listed(struct gl_exec_req *req)
{
    struct keeper_exec *x = req->owner;
    x->is_retiring = false;
    if (req->status == 0 && req->infos_n == 0 && gl_list_empty(&x->sent)) {
        gl_keeper_conn_terminate(&x->conn);
    }
}

static void retire_old(struct keeper_exec *x)
{
    struct gl_keeper_msg m = {.type = GL_KEEPER_LIST};
    if (!x->is_retiring && x->closed == NULL) {
        x->is_retiring = true;
        x->retiring = (struct gl_exec_req){.done = on_old_listed, .owner = x};
        ask(x, &x->retiring, &m);
    }
}

static bool has_variable(const struct gl_exec_start *s, gl_str variable)
{
    gl_str ignored;
    gl_str name = gl_str_cut(variable, '=', &ignored);
    name.n++; /* with the '=' */
    for (size_t i = 0; i < s->env_n; i++) {
        if (gl_str_starts(s->env[i], name)) {
            return true;
        }
    }
    return false;
}

/* Steps inherit PATH, HOME, LANG and TZ from this node unless they set their own. */
static void add_defaults(struct keeper_exec *x, struct gl_arena *a, struct gl_exec_start *s)
{
    gl_str *env = GL_NEW_ARRAY(a, gl_str, s->env_n + x->defaults_n);
    size_t n = s->env_n;
    if (n > 0) {
        memcpy(env, s->env, n * sizeof(*env));
    }
    for (size_t i = 0; i < x->defaults_n; i++) {
        if (!has_variable(s, x->defaults[i])) {
            env[n++] = x->defaults[i];
        }
    }
    s->env = env;
    s->env_n = n;
}

/* A keeper of an older release would skip what it does not know and start a step without its
 * secrets. It cannot be replaced while connected, so the request fails for good. A worker can wait:
 * an idle keeper is replaced (retire_old). */
static int check_version(const struct keeper_exec *x, const struct gl_exec_start *s,
                         struct gl_why *why)
{
    if (!gl_keeper_conn_is_up(&x->conn) || x->conn.version >= GL_KEEPER_VERSION_WORKERS) {
        return 0;
    }
    if (s->is_worker) {
        return gl_why(why, GL_E_UNAVAILABLE,
                      "the running keeper is from an older release and cannot run workers of "
                      "bundles: waiting for it to exit");
    }
    if (x->conn.version >= GL_KEEPER_VERSION_SECRETS) {
        return 0;
    }
    if (s->secrets_n > 0 || s->input.n > GL_OUTPUT_BYTES_MAX) {
        return gl_why(why, GL_E_INVALID,
                      "the running keeper is from an older release and cannot take %s: stop the "
                      "node, wait until glia-keeper has exited too, then start the node again",
                      s->secrets_n > 0 ? "secrets" : "an input of more than 1 MiB");
    }
    return 0;
}

static void exec_start(struct gl_exec *port, struct gl_exec_req *req,
                       const struct gl_exec_start *start)
{
    struct keeper_exec *x = of(port);
    struct gl_why why;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_START, .start = *start};
    if (!start->is_worker) {
        add_defaults(x, &a, &m.start);
    }
    int r = gl_secrets_read(start->secrets, start->secrets_n, &a, &m.start.secrets, &why);
    if (r == 0) {
        r = check_version(x, &m.start, &why);
    }
    if (r == 0) {
        r = gl_keeper_check_start(&m.start, &why);
    }
    if (r < 0) {
        fail(x, req, r, why.text);
        if (r == GL_E_UNAVAILABLE) {
            retire_old(x);
        }
        return;
    }
    ask(x, req, &m);
}

static void exec_attach(struct gl_exec *port, struct gl_exec_req *req,
                        const struct gl_attempt_key *key, uint64_t token, gl_str epoch)
{
    struct gl_keeper_msg m = {.type = GL_KEEPER_ATTACH,
                              .start = {.key = *key, .token = token, .epoch = epoch}};
    ask(of(port), req, &m);
}

static void exec_stop(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token, gl_ms grace_ms)
{
    struct gl_keeper_msg m = {.type = GL_KEEPER_STOP,
                              .start = {.key = *key, .token = token, .grace_ms = grace_ms}};
    ask(of(port), req, &m);
}

static void exec_ack(struct gl_exec *port, const struct gl_attempt_key *key, uint64_t token)
{
    struct keeper_exec *x = of(port);
    struct gl_keeper_msg m = {.type = GL_KEEPER_ACK, .start = {.key = *key, .token = token}};
    if (gl_keeper_conn_is_up(
            &x->conn)) { /* otherwise the result is offered and acknowledged again */
        m.status = take_rejected(x, key) ? GL_E_INVALID : 0;
        gl_keeper_conn_send(&x->conn, &m);
    }
}

static void exec_list(struct gl_exec *port, struct gl_exec_req *req)
{
    struct gl_keeper_msg m = {.type = GL_KEEPER_LIST};
    ask(of(port), req, &m);
}

static void exec_close(struct gl_exec *port, void (*closed)(void *owner), void *owner)
{
    struct keeper_exec *x = of(port);
    gl_keeper_conn_close(&x->conn);
    x->closed = closed;
    x->closed_owner = owner;
    event_active(x->later, EV_TIMEOUT, 0);
}

static void exec_session(struct gl_exec *port, gl_ms until)
{
    gl_keeper_conn_session(&of(port)->conn, until);
}

static const struct gl_exec_ops ops = {
    .name = "keeper",
    .start = exec_start,
    .attach = exec_attach,
    .stop = exec_stop,
    .ack = exec_ack,
    .list = exec_list,
    .session = exec_session,
    .close = exec_close,
};

/* ---- opening and closing ---- */

static void free_exec(struct keeper_exec *x)
{
    gl_keeper_conn_done(&x->conn);
    if (x->later != NULL) {
        event_free(x->later);
    }
    struct rejected_attempt *b;
    for (size_t i = 0; (b = gl_map_next(&x->rejected, &i)) != NULL;) {
        gl_mem_free(b);
    }
    gl_map_done(&x->rejected);
    gl_arena_done(&x->infos_arena);
    gl_arena_done(&x->config_arena);
    gl_mem_free(x);
}

/* What must not be done inside a call: answer requests and close. */
static void on_later(evutil_socket_t fd, short what, void *owner)
{
    struct keeper_exec *x = owner;
    struct gl_link all;
    (void)fd;
    (void)what;
    take_all(&x->failed, &all);
    while (!gl_list_empty(&all)) {
        struct gl_exec_req *req = req_of(gl_list_first(&all));
        gl_list_remove(&pending_of(req)->link);
        req->done(req);
    }
    if (x->closed == NULL) {
        return;
    }
    fail_sent(x, "the executor was closed");
    if (!gl_list_empty(&x->failed)) { /* sent from inside one of these answers */
        event_active(x->later, EV_TIMEOUT, 0);
        return;
    }
    void (*closed)(void *) = x->closed;
    void *closed_owner = x->closed_owner;
    free_exec(x);
    closed(closed_owner);
}

static void read_defaults(struct keeper_exec *x)
{
    static const char *const names[DEFAULTS_MAX] = {"PATH", "HOME", "LANG", "TZ"};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            x->defaults[x->defaults_n++] = gl_str_fmt(&x->config_arena, "%s=%s", names[i], value);
        }
    }
}

static int prepare(struct keeper_exec *x, const struct gl_keeper_exec_config *config,
                   struct gl_why *why)
{
    struct gl_arena *a = &x->config_arena;
    struct gl_keeper_conn *c = &x->conn;
    c->events = (struct gl_keeper_conn_events){x, on_up, on_down, on_message};
    c->orphan_grace_ms = config->orphan_grace_ms;
    c->spawn.data_dir = gl_str_c(a, gl_str_of(config->data_dir));
    c->spawn.idle_ms = config->idle_ms;
    c->sock_path = gl_str_fmt(a, "%s/keeper/sock", config->data_dir).p;
    x->later = event_new(gl_loop_base(c->loop), -1, 0, on_later, x);
    int r = gl_keeper_conn_init(c, why);
    if (r < 0 || x->later == NULL) {
        return gl_why(why, GL_E_IO, "cannot create the events of the executor");
    }
    if (config->keeper_path == NULL) {
        return gl_keeper_spawn_find(a, &c->spawn.program, why);
    }
    c->spawn.program = gl_str_c(a, gl_str_of(config->keeper_path));
    return 0;
}

int gl_keeper_exec_open(struct gl_exec **ret, const struct gl_keeper_exec_config *config,
                        struct gl_loop *loop, const struct gl_exec_events *events,
                        struct gl_why *reterr_why)
{
    GL_ASSERT(config->data_dir != NULL);
    GL_ASSERT(events->up != NULL && events->down != NULL);
    struct keeper_exec *x = gl_mem_alloc(sizeof(*x));
    x->exec.ops = &ops;
    x->events = *events;
    x->conn.loop = loop;
    gl_list_init(&x->sent);
    gl_list_init(&x->failed);
    read_defaults(x);
    int r = prepare(x, config, reterr_why);
    if (r < 0) {
        free_exec(x);
        return r;
    }
    *ret = &x->exec;
    return 0;
}

void gl_keeper_exec_connect(struct gl_exec *port, uint64_t incarnation)
{
    GL_ASSERT(port->ops == &ops);
    gl_keeper_conn_connect(&of(port)->conn, incarnation);
}
