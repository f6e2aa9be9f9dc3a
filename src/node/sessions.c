/* sessions.c - the one thing a node renews, and what must be known before it may begin. */
#include "node/node_state.h"

enum { TTL_MS = 15000, RETRY_MS = 500, RATES_PAGE = 1000 };

static void feed_session(struct gl_node *n)
{
    struct gl_event ev = {
        .type = GL_EV_SESSION, .session = n->opened.id, .number = n->opened.incarnation};

    n->session = n->opened.id;
    gl_node_feed(n, &ev);
    if (n->config.on_session != NULL) {
        n->config.on_session(n->config.owner, n->opened.incarnation);
    }
}

/* ---- rates: a start in an earlier life counts ---- */

static void feed_rates(struct gl_node *n, const struct gl_store_req *req)
{
    struct gl_arena a = {0};
    struct gl_event_record *records = GL_NEW_ARRAY(&a, struct gl_event_record, req->records_n + 1);
    struct gl_event ev = {.type = GL_EV_RATES,
                          .context = n->config.context,
                          .records = {.items = records, .n = req->records_n}};

    for (size_t i = 0; i < req->records_n; i++) {
        records[i] = (struct gl_event_record){.kind = req->records[i].kind,
                                              .id = req->records[i].id,
                                              .value = req->records[i].value,
                                              .rev = req->records[i].rev};
    }
    gl_node_feed(n, &ev);
    gl_arena_done(&a);
}

static void read_rates(struct gl_node *n);

static void on_rates(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;

    n->outstanding--;
    n->session_busy = false;
    if (n->stopping) {
        n->session_due = INT64_MAX;
    } else if (req->status != 0) {
        n->session_due = n->ports.clock->now(n->ports.clock) + RETRY_MS;
    } else {
        if (req->records_n > 0) {
            n->rates_after = gl_str_dup(&n->strings, req->records[req->records_n - 1].id);
            feed_rates(n, req);
        }
        if (req->records_n == RATES_PAGE) {
            read_rates(n);
        } else {
            n->session_due = n->ports.clock->now(n->ports.clock) + TTL_MS / 3;
            feed_session(n);
        }
    }
    gl_node_rearm(n);
}

static void read_rates(struct gl_node *n)
{
    struct gl_store *s = n->ports.store;

    n->session_busy = true;
    n->session_due = INT64_MAX;
    n->outstanding++;
    n->rates_listing =
        (struct gl_listing){.kind = GL_S("rate"), .after = n->rates_after, .limit = RATES_PAGE};
    n->session_req = (struct gl_store_req){.done = on_rates, .owner = n};
    s->ops->list(s, &n->session_req, n->config.context, &n->rates_listing);
}

/* ---- the session ---- */

static void on_session(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;
    struct gl_event stop = {.type = GL_EV_STOP};

    n->outstanding--;
    n->session_busy = false;
    n->now = n->ports.clock->now(n->ports.clock);
    n->config.trace->now = n->now;
    if (n->stopping) {
        n->session_due = INT64_MAX;
    } else if (req->status == GL_E_GONE) {
        n->lost = true;
        n->session_due = INT64_MAX;
        GL_TRACE(n->config.trace, NODE, .what = "session lost");
        gl_node_feed(n, &stop); /* someone else may own our jobs: start nothing more */
        if (n->config.on_session_lost != NULL) {
            n->config.on_session_lost(n->config.owner, "this node's session was declared dead");
        }
    } else if (req->status != 0) {
        n->session_due = n->now + RETRY_MS;
        if (n->session.n == 0 && n->config.on_trouble != NULL) {
            n->config.on_trouble(n->config.owner, req->status, req->why.text);
        }
    } else {
        n->session_due = n->now + TTL_MS / 3;
        n->renewed_at = n->now;
        if (n->session.n == 0) {
            n->opened = req->session;
            n->opened.id = gl_str_dup(&n->strings, req->session.id);
            read_rates(n);
        }
    }
    gl_node_rearm(n);
}

static void make_nonce(struct gl_node *n)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[16];

    n->ports.entropy->fill(n->ports.entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        n->nonce[i] = alphabet[bytes[i] & 31];
    }
}

void gl_sessions_on_time(struct gl_node *n)
{
    struct gl_store *s = n->ports.store;

    if (n->session_due > n->now || n->session_busy) {
        return;
    }
    n->session_due = INT64_MAX;
    n->session_busy = true;
    n->outstanding++;
    n->session_req = (struct gl_store_req){.done = on_session, .owner = n};
    if (n->session.n == 0 && n->opened.id.n > 0) { /* the rates could not be read */
        n->session_busy = false;
        n->outstanding--;
        read_rates(n);
    } else if (n->session.n == 0) {
        make_nonce(n);
        n->session_wish = (struct gl_session_wish){
            .node = n->config.name, .nonce = gl_str_of(n->nonce), .ttl_ms = TTL_MS};
        s->ops->session_open(s, &n->session_req, &n->session_wish);
    } else {
        s->ops->session_renew(s, &n->session_req, n->session, TTL_MS, (gl_str){0});
    }
}
