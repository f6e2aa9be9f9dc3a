/* postgres_conn.c - one connection: connect, handshake, pipeline, lose, reconnect. Calls are sent
 * in the order they were pushed and answered in that order. A Sync after each call makes it one
 * transaction.
 *
 * After an error all later statements of the same call are skipped by the server, up to the Sync. A
 * lost connection ends every sent call as END_LOST, whatever its progress; the caller of the call
 * decides whether to repeat it. */
#include <event2/event.h>
#include <stdio.h>

#include "base/check.h"
#include "store/postgres/postgres_parts.h"

enum {
    BACKOFF_MS_MIN = 50,
    BACKOFF_MS_MAX = 2000,
    SLOW_FACTOR = 12, /* slow calls get this many times the timeout */
    READS_DEPTH = 64, /* calls in flight on one connection */
};

void gl_postgres_conn_init(struct gl_postgres *s, int number)
{
    struct gl_postgres_conn *c = &s->conns[number];
    *c = (struct gl_postgres_conn){.store = s, .number = number, .fd = -1};
    c->depth = number >= GL_POSTGRES_LANE ? 1 : READS_DEPTH;
    gl_list_init(&c->waiting);
    gl_list_init(&c->sent);
}

/* ---- the socket ---- */

static void on_event(evutil_socket_t fd, short what, void *conn);

static void unwatch(struct gl_postgres_conn *c)
{
    if (c->event != NULL) {
        event_free(c->event);
    }
    c->event = NULL;
    c->fd = -1;
    c->watched = 0;
}

/* Watch the socket. libpq may replace the socket while connecting, so the descriptor is compared,
 * too. */
static void watch(struct gl_postgres_conn *c, short what)
{
    int fd = c->store->lib.PQsocket(c->pg);
    if (fd == c->fd && what == c->watched) {
        return;
    }
    unwatch(c);
    c->event =
        event_new(gl_loop_base(c->store->calls.loop), fd, (short)(what | EV_PERSIST), on_event, c);
    GL_ASSERT(c->event != NULL);
    (void)event_add(c->event, NULL); /* fails only if out of memory */
    c->fd = fd;
    c->watched = what;
}

static gl_ms limit_of(const struct gl_postgres_conn *c, const struct gl_postgres_call *call)
{
    return c->store->url.timeout_ms * (call->slow ? SLOW_FACTOR : 1);
}

/* The timeout applies to the first call in flight and starts over whenever there is progress. */
static void extend_deadline(struct gl_postgres_conn *c)
{
    struct gl_link *first = gl_list_first(&c->sent);
    if (first != NULL) {
        c->until = gl_calls_now(&c->store->calls) +
                   limit_of(c, GL_CONTAINER(first, struct gl_postgres_call, link));
    }
}

bool gl_postgres_conn_write(struct gl_postgres_conn *c)
{
    int left = c->store->lib.PQflush(c->pg);
    if (left < 0) {
        return false;
    }
    watch(c, left > 0 ? EV_READ | EV_WRITE : EV_READ);
    return true;
}

/* ---- losing the connection ---- */

/* Try the hosts one after the other without a pause; back off after each full round. */
static void schedule_retry(struct gl_postgres_conn *c, bool was_ready)
{
    struct gl_postgres *s = c->store;
    gl_ms now = gl_calls_now(&s->calls);
    if (was_ready) {
        c->hosts_tried = 0;
        c->backoff_ms = 0;
    } else {
        c->host = (c->host + 1) % s->url.hosts_n;
        c->hosts_tried++;
    }
    if (!was_ready && c->hosts_tried % s->url.hosts_n != 0) {
        c->retry_at = now; /* the next host at once */
    } else {
        gl_ms more = c->backoff_ms * 2;
        more = more < BACKOFF_MS_MIN ? BACKOFF_MS_MIN : more;
        c->backoff_ms = more > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : more;
        c->retry_at = now + c->backoff_ms / 2 + gl_rng_range(&s->calls.rng, 0, c->backoff_ms / 2);
    }
    gl_postgres_schedule_turn(s);
}

static void close_conn(struct gl_postgres_conn *c)
{
    unwatch(c);
    c->store->lib.PQclear(c->handshake_last);
    c->handshake_last = NULL;
    if (c->pg != NULL) {
        c->store->lib.PQfinish(c->pg);
    }
    c->pg = NULL;
    c->state = GL_POSTGRES_DOWN;
    gl_buf_reset(&c->asked);
    gl_buf_reset(&c->prepared);
    c->asked_at = 0;
}

void gl_postgres_conn_drop(struct gl_postgres_conn *c, const char *why)
{
    bool was_ready = c->state == GL_POSTGRES_READY;
    (void)gl_why(&c->why, GL_E_UNAVAILABLE, "%.*s", (int)strcspn(why, "\n"), why);
    close_conn(c);
    c->failure.end = GL_POSTGRES_END_OK;
    schedule_retry(c, was_ready);
    /* Called for each sent call; the connection is closed already, so `end` may push the call
     * again. */
    struct gl_postgres_outcome lost = {.end = GL_POSTGRES_END_LOST};
    lost.status =
        gl_why(&lost.why, GL_E_UNAVAILABLE, "store unavailable: the connection to %s was lost: %s",
               c->store->url.display, c->why.text);
    struct gl_link *l;
    while ((l = gl_list_first(&c->sent)) != NULL) {
        struct gl_postgres_call *call = GL_CONTAINER(l, struct gl_postgres_call, link);
        gl_list_remove(l);
        c->sent_n--;
        call->type->end(c, call, &lost);
    }
}

static void drop_broken(struct gl_postgres_conn *c)
{
    char said[512]; /* libpq's copy is freed with the connection */
    (void)snprintf(said, sizeof(said), "%s", c->store->lib.PQerrorMessage(c->pg));
    gl_postgres_conn_drop(c, said[0] != '\0' ? said : "connection closed");
}

void gl_postgres_conn_fail_waiting(struct gl_postgres_conn *c, int status, const struct gl_why *why)
{
    struct gl_postgres_outcome o = {.end = GL_POSTGRES_END_UNSENT, .status = status, .why = *why};
    struct gl_link *l;
    while ((l = gl_list_first(&c->waiting)) != NULL) {
        struct gl_postgres_call *call = GL_CONTAINER(l, struct gl_postgres_call, link);
        gl_list_remove(l);
        call->type->end(c, call, &o);
    }
}

void gl_postgres_conn_done(struct gl_postgres_conn *c)
{
    gl_list_init(&c->waiting); /* at most context lookups are left, and no request waits for them */
    gl_list_init(&c->sent);
    close_conn(c);
    gl_buf_done(&c->asked);
    gl_buf_done(&c->prepared);
}

/* ---- connecting ---- */

/* The control connection is first: it creates what the others use. Readers and lanes follow when
 * the store is open for work. */
static bool may_connect(const struct gl_postgres_conn *c)
{
    const struct gl_postgres *s = c->store;
    switch (c->number) {
    case GL_POSTGRES_CONTROL:
        return true;
    case GL_POSTGRES_LISTENER:
        return s->conns[GL_POSTGRES_CONTROL].was_ready;
    default:
        return s->is_open;
    }
}

static void on_notice(void *arg, const PGresult *r)
{
    (void)arg; /* "already exists, skipping" and the like: not interesting */
    (void)r;
}

/* Keywords before "dbname" (the URL) are defaults that it may override; those after it may not be
 * overridden. */
static void connect_now(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    const struct gl_postgres_host *h = &s->url.hosts[c->host];
    const char *keys[16] = {"application_name", "keepalives_idle", "keepalives_interval",
                            "keepalives_count", "dbname"};
    const char *values[16] = {"glia", "10", "5", "3", s->url.url};
    const struct {
        const char *key, *value;
    } more[] = {
        {"host", h->host},
        {"hostaddr", h->address},
        {"port", h->port},
        {"client_encoding", "UTF8"},
        {"target_session_attrs", s->check_only ? "any" : "read-write"},
    };
    size_t n = 5;
    for (size_t i = 0; i < GL_COUNT(more); i++) {
        if (more[i].value != NULL) {
            keys[n] = more[i].key;
            values[n++] = more[i].value;
        }
    }
    c->until = gl_calls_now(&s->calls) + s->url.timeout_ms / 2;
    c->pg = s->lib.PQconnectStartParams(keys, values, 1);
    if (c->pg == NULL || s->lib.PQstatus(c->pg) == CONNECTION_BAD) {
        drop_broken(c);
        return;
    }
    (void)s->lib.PQsetNoticeReceiver(c->pg, on_notice, NULL);
    c->state = GL_POSTGRES_CONNECTING;
    watch(c, EV_WRITE);
}

/* Called whenever the socket is ready while connecting. */
static void poll_connect(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    switch (s->lib.PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING:
        watch(c, EV_READ);
        return;
    case PGRES_POLLING_WRITING:
        watch(c, EV_WRITE);
        return;
    case PGRES_POLLING_OK:
        break;
    default:
        drop_broken(c);
        return;
    }
    if (s->lib.PQsetnonblocking(c->pg, 1) != 0) {
        drop_broken(c);
        return;
    }
    c->state = GL_POSTGRES_IN_HANDSHAKE;
    c->until = gl_calls_now(&s->calls) + s->url.timeout_ms * SLOW_FACTOR;
    if (gl_postgres_handshake_begin(c) && !gl_postgres_conn_write(c)) {
        drop_broken(c);
    }
}

static void on_ready(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    bool again = c->was_ready;
    c->state = GL_POSTGRES_READY;
    c->was_ready = true;
    c->hosts_tried = 0;
    c->backoff_ms = 0;
    if (c->number == GL_POSTGRES_LISTENER) {
        s->notify_sent = false; /* a notification in flight may be lost */
    }
    if (c->number == GL_POSTGRES_CONTROL && again) {
        /* This may be another server, one that lags behind a little. */
        gl_postgres_contexts_recheck(s);
    }
    if (again && c->number != GL_POSTGRES_LISTENER) {
        gl_calls_changed(&s->calls, c->why.text);
    }
    gl_postgres_schedule_turn(s);
}

/* ---- sending ---- */

bool gl_postgres_conn_send(struct gl_postgres_conn *c, int statement,
                           const struct gl_postgres_context *context)
{
    struct gl_postgres *s = c->store;
    size_t number = context != NULL ? context->number : 0;
    size_t slot = number * GL_POSTGRES_STATEMENTS + (size_t)statement;
    while (c->prepared.n <= slot) {
        gl_buf_char(&c->prepared, 0);
    }
    char name[48];
    (void)snprintf(name, sizeof(name), "glia_%d_%zu", statement, number);
    /* Prepared on first use, in the same pipeline: no extra round trip. */
    if (c->prepared.p[slot] == 0) {
        gl_buf_reset(&s->text);
        gl_postgres_schema_statement(&s->text, statement,
                                     context != NULL ? context->schema : (gl_str){0});
        gl_buf_char(&s->text, '\0');
        if (s->lib.PQsendPrepare(c->pg, name, s->text.p, 0, NULL) == 0) {
            return false;
        }
        c->prepared.p[slot] = 1;
        gl_buf_add(&c->asked, &(int32_t){(int32_t)slot}, sizeof(int32_t));
    }
    gl_postgres_args_finish(&s->args);
    gl_buf_add(&c->asked, &(int32_t){-1}, sizeof(int32_t));
    return s->lib.PQsendQueryPrepared(c->pg, name, s->args.n, s->args.values, s->args.lengths,
                                      s->args.formats, 1) != 0;
}

bool gl_postgres_conn_send_text(struct gl_postgres_conn *c, const char *sql)
{
    gl_buf_add(&c->asked, &(int32_t){-1}, sizeof(int32_t));
    return c->store->lib.PQsendQueryParams(c->pg, sql, 0, NULL, NULL, NULL, NULL, 1) != 0;
}

void gl_postgres_conn_push(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    gl_list_push(&c->waiting, &call->link);
    gl_postgres_schedule_turn(c->store);
}

void gl_postgres_conn_flush(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    if (c->dropped) {
        c->dropped = false;
        if (c->state == GL_POSTGRES_READY) {
            gl_postgres_conn_drop(c, "the server must be checked again");
        }
    }
    if (c->state == GL_POSTGRES_DOWN && may_connect(c) && c->retry_at <= gl_calls_now(&s->calls)) {
        connect_now(c);
    }
    struct gl_link *l;
    bool any = false;
    while (c->state == GL_POSTGRES_READY && c->sent_n < c->depth &&
           (l = gl_list_first(&c->waiting)) != NULL) {
        struct gl_postgres_call *call = GL_CONTAINER(l, struct gl_postgres_call, link);
        gl_list_remove(l);
        gl_list_push(&c->sent, l);
        c->sent_n++;
        any = true;
        if (c->sent_n == 1) {
            extend_deadline(c);
        }
        if (!call->type->send(c, call) || s->lib.PQpipelineSync(c->pg) == 0) {
            drop_broken(c);
            return;
        }
    }
    if (any && !gl_postgres_conn_write(c)) {
        drop_broken(c);
    }
}

/* ---- answers ---- */

/* What does this result answer: a PREPARE (its slot) or a statement that was run (-1)? */
static int32_t next_asked(struct gl_postgres_conn *c)
{
    int32_t what = -1;
    if (c->asked_at + sizeof(what) <= c->asked.n) {
        memcpy(&what, c->asked.p + c->asked_at, sizeof(what));
        c->asked_at += sizeof(what);
    }
    if (c->asked_at == c->asked.n) {
        gl_buf_reset(&c->asked);
        c->asked_at = 0;
    }
    return what;
}

/* The Sync of the first call has arrived: its transaction is over, and the outcome is final. */
static void end_first(struct gl_postgres_conn *c)
{
    struct gl_postgres_call *call =
        GL_CONTAINER(gl_list_first(&c->sent), struct gl_postgres_call, link);
    struct gl_postgres_outcome o = c->failure;
    c->failure = (struct gl_postgres_outcome){.end = GL_POSTGRES_END_OK};
    gl_list_remove(&call->link);
    c->sent_n--;
    extend_deadline(c);
    if (o.end == GL_POSTGRES_END_ERROR && gl_postgres_error_ends_connection(o.state)) {
        c->dropped = true;
    }
    call->type->end(c, call, &o);
    gl_postgres_schedule_turn(c->store);
}

static void on_result(struct gl_postgres_conn *c, PGresult *r)
{
    struct gl_postgres *s = c->store;
    struct gl_postgres_call *call =
        GL_CONTAINER(gl_list_first(&c->sent), struct gl_postgres_call, link);
    ExecStatusType status = s->lib.PQresultStatus(r);
    if (status == PGRES_PIPELINE_SYNC) {
        s->lib.PQclear(r);
        end_first(c);
        return;
    }
    int32_t slot = next_asked(c);
    extend_deadline(c); /* progress */
    bool ok = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    /* Preparing failed: try again with the next use. */
    if (!ok && slot >= 0) {
        c->prepared.p[slot] = 0;
    }
    /* The first error explains the failure; the statements skipped after it do not. */
    if (!ok && status != PGRES_PIPELINE_ABORTED && c->failure.end == GL_POSTGRES_END_OK) {
        gl_postgres_error_outcome(s, r, &c->failure);
    }
    if (!ok || slot >= 0 || !call->type->result(c, call, r)) {
        s->lib.PQclear(r);
    }
}

/* libpq returns a NULL after each statement's results; two in a row mean that nothing is left for
 * now. */
static void read_results(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    int nulls = 0;
    while (c->state == GL_POSTGRES_READY && !gl_list_empty(&c->sent) && nulls < 2 &&
           s->lib.PQisBusy(c->pg) == 0) {
        PGresult *r = s->lib.PQgetResult(c->pg);
        nulls = r == NULL ? nulls + 1 : 0;
        if (r != NULL) {
            on_result(c, r);
        }
    }
}

static void on_readable(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    bool is_up = s->lib.PQconsumeInput(c->pg) != 0;
    if (c->state == GL_POSTGRES_IN_HANDSHAKE) {
        is_up = is_up && gl_postgres_handshake_readable(c);
        if (c->state == GL_POSTGRES_DOWN) {
            return; /* refused and closed by the handshake */
        }
        if (is_up && c->handshake == GL_POSTGRES_HANDSHAKE_DONE) {
            on_ready(c);
        }
    } else if (c->number == GL_POSTGRES_LISTENER) {
        gl_postgres_notify_readable(c);
    } else {
        read_results(c); /* even if the connection is gone: answers that still arrived count */
    }
    if (!is_up || s->lib.PQstatus(c->pg) == CONNECTION_BAD) {
        drop_broken(c);
    }
}

static void on_event(evutil_socket_t fd, short what, void *conn)
{
    struct gl_postgres_conn *c = conn;
    (void)fd;
    if (c->state == GL_POSTGRES_CONNECTING) {
        poll_connect(c);
        return;
    }
    if ((what & EV_WRITE) != 0) {
        extend_deadline(c); /* progress */
    }
    if ((what & EV_READ) != 0) {
        on_readable(c);
    }
    if (c->state != GL_POSTGRES_DOWN && !gl_postgres_conn_write(c)) {
        drop_broken(c);
    }
    gl_postgres_schedule_turn(c->store);
}

/* ---- time ---- */

const char *gl_postgres_conn_why(const struct gl_postgres_conn *c)
{
    const struct gl_postgres_conn *first = &c->store->conns[GL_POSTGRES_CONTROL];
    if (c->why.text[0] != '\0') {
        return c->why.text;
    }
    return first->why.text[0] != '\0' ? first->why.text : "timed out";
}

/* Fail waiting calls whose time is up. They were never sent, so nothing was written. */
static void fail_overdue(struct gl_postgres_conn *c, gl_ms now)
{
    struct gl_postgres_outcome o = {.end = GL_POSTGRES_END_UNSENT};
    o.status = gl_why(&o.why, GL_E_UNAVAILABLE, "store unavailable: no connection to %s: %s",
                      c->store->url.display, gl_postgres_conn_why(c));
    for (struct gl_link *l = c->waiting.next, *next; l != &c->waiting; l = next) {
        struct gl_postgres_call *call = GL_CONTAINER(l, struct gl_postgres_call, link);
        next = l->next;
        if (call->until < now) {
            gl_list_remove(l);
            call->type->end(c, call, &o);
        }
    }
}

void gl_postgres_conn_tick(struct gl_postgres_conn *c, gl_ms now)
{
    char why[96];
    bool waits = c->sent_n > 0 || (c->number == GL_POSTGRES_LISTENER && c->store->notify_sent);
    if (c->state == GL_POSTGRES_READY && waits && c->until < now) {
        (void)snprintf(why, sizeof(why), "no answer within %lld ms (timeout_ms)",
                       (long long)c->store->url.timeout_ms);
        gl_postgres_conn_drop(c, why);
    } else if ((c->state == GL_POSTGRES_CONNECTING || c->state == GL_POSTGRES_IN_HANDSHAKE) &&
               c->until < now) {
        gl_postgres_conn_drop(c, "the server does not answer");
    }
    fail_overdue(c, now);
}
