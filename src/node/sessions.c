/* sessions.c - opens the session, and reads what must be known before it may be used.
 *
 * From then on core/cluster/renewal.h decides when the session is renewed. This file carries that
 * out and reports changes of the store's health to the owner of the node. */
#include "base/check.h"
#include "node/node_state.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    OWNERS_MAX = 64,   /* nodes whose attempts are published one by one, for each pool, ... */
    USES_MAX = 128,    /* ... and for all pools: GL_ABOUT_BYTES_MAX has room for these */
    OFFERS_FORMAT = 1, /* this node understands offers of attempts (model/offer.h) */
};

enum {
    RETRY_MS = 500,
    RATES_PAGE = 1000,
    MIGRATION_BYTES_MAX = 4096,
    LINE_BYTES = 512,
    UNSHARED_TTL_MS = 15000,
};

struct sessions {
    struct gl_chain_call
        call;  /* to open the session, to read what must be known first, to close it */
    gl_ms due; /* when to continue opening it; INT64_MAX: it is open */
    gl_ms ttl;
    gl_ms started_at; /* when the node started */
    gl_ms sent_at;    /* when the call that opened the session was sent */
    char nonce[17];
    struct gl_session_options wish; /* borrowed by the call in flight, like the next two */
    struct gl_key migration;
    struct gl_listing rates;
    gl_str rates_after;
    bool has_checked_migration;    /* there is no unfinished migration into the store */
    struct gl_session_info opened; /* as the store opened it; ours once the rates have been read */
    gl_ms valid_until;
    gl_ms renewed_at;             /* when the store last accepted a write of ours for the session */
    struct gl_buf about;          /* what we publish about ourselves */
    struct gl_capacity published; /* the capacity in it */
    bool is_unreachable;          /* the store has not accepted the last renewal ... */
    struct gl_why unreachable_why; /* ... and why */
    enum gl_store_health health;   /* as last reported */
    bool has_left;                 /* session_end has been sent */
    bool is_lost_reported;
    gl_str lost_why;
    uint64_t taken_n;              /* jobs taken from dead nodes since the last line about it ... */
    char taken[GL_ULID_BYTES + 1]; /* ... and the last of them */
};

static struct sessions *own(const struct gl_node *n)
{
    return n->parts[GL_PART_SESSIONS];
}

static void feed_session(struct gl_node *n)
{
    struct gl_event ev = {.type = GL_EV_SESSION,
                          .session = {.session = own(n)->opened.id,
                                      .number = own(n)->opened.incarnation,
                                      .sent_at = own(n)->sent_at}};

    GL_ASSERT(own(n)->opened.id.n > 0);
    GL_ASSERT(n->session.n == 0);
    n->session = own(n)->opened.id;
    gl_node_feed(n, &ev);
    if (n->config.on_session != NULL) {
        n->config.on_session(n->config.owner, own(n)->opened.incarnation);
    }
    GL_ASSERT(n->session.n > 0);
}

/* ---- rates: starts before a restart of the node count, too ---- */

static void feed_rates(struct gl_node *n, const struct gl_store_req *req)
{
    struct gl_arena a = {0};
    struct gl_event_record *records = GL_NEW_ARRAY(&a, struct gl_event_record, req->records_n + 1);
    struct gl_event ev = {.type = GL_EV_RATES,
                          .context = n->config.context,
                          .rates = {.records = {.items = records, .n = req->records_n}}};

    GL_ASSERT(req->records_n <= RATES_PAGE);
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

    GL_ASSERT(n->session.n == 0);
    if (n->stopping) {
        own(n)->due = INT64_MAX;
    } else if (req->status != 0) {
        own(n)->due = n->now + RETRY_MS;
    } else {
        if (req->records_n > 0) {
            own(n)->rates_after = gl_str_dup(&n->strings, req->records[req->records_n - 1].id);
            feed_rates(n, req);
        }
        if (req->records_n == RATES_PAGE) {
            read_rates(n);
        } else {
            own(n)->due = INT64_MAX;
            feed_session(n);
        }
    }
}

static void read_rates(struct gl_node *n)
{
    struct gl_store *s = n->ports.store;
    struct sessions *m = own(n);

    GL_ASSERT(n->session.n == 0);
    GL_ASSERT(!m->call.is_under_way);
    GL_ASSERT(m->opened.id.n > 0);
    m->due = INT64_MAX;
    m->rates =
        (struct gl_listing){.kind = GL_S("rate"), .after = m->rates_after, .limit = RATES_PAGE};
    s->ops->list(s, gl_chain_call_store(&m->call, n, on_rates, n), n->config.context, &m->rates);
}

/* ---- a rate that another node has used ---- */

static void on_rate(struct gl_store_req *req)
{
    struct gl_chain *c = req->owner;

    if (req->status == 0 &&
        !c->node->stopping) { /* if it failed, the next start is refused and we read it again */
        feed_rates(c->node, req);
    }
    gl_chain_end(c);
}

void gl_sessions_read_rate(struct gl_node *n, gl_str key)
{
    static const struct gl_chain_kind rates = {.bytes = sizeof(struct gl_chain)};
    struct gl_chain *c = gl_chain_new(n, &rates, n->config.context);

    GL_ASSERT(key.n > 0);
    gl_chain_get(c, GL_S("rate"), gl_str_dup(&c->arena, key), on_rate);
}

/* ---- what the node publishes about itself ---- */

/* The slots of one pool that attempts of each other node's jobs use. */
struct pool_use {
    gl_str pool;
    struct {
        gl_str owner;
        uint64_t slots;
    } owners[OWNERS_MAX];
    size_t n;
};

static void add_use(void *arg, gl_str pool, gl_str owner, uint32_t slots)
{
    struct pool_use *u = arg;
    size_t i = 0;

    if (!gl_str_eq(pool, u->pool)) {
        return;
    }
    while (i < u->n && !gl_str_eq(u->owners[i].owner, owner)) {
        i++;
    }
    if (i == OWNERS_MAX) {
        return; /* the rest counts as this node's own */
    }
    u->owners[i].owner = owner;
    u->owners[i].slots += slots;
    u->n += i == u->n;
    GL_ASSERT(u->n <= OWNERS_MAX);
}

static void write_use(const struct gl_node *n, gl_str pool, size_t *left, struct gl_jw *w)
{
    struct pool_use u = {.pool = pool};

    gl_core_taken(n->core, add_use, &u);
    if (u.n == 0 || *left == 0) {
        return;
    }
    gl_jw_put_array(w, "taken");
    for (size_t i = 0; i<u.n && * left> 0; i++, --*left) {
        gl_jw_object(w);
        gl_jw_put_str(w, "owner", u.owners[i].owner);
        gl_jw_put_u64(w, "slots", u.owners[i].slots);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_pools(const struct gl_node *n, const struct gl_core_metrics *f, struct gl_jw *w)
{
    size_t left = USES_MAX;

    GL_ASSERT(f->pools_n <= GL_POOLS_MAX);
    gl_jw_put_array(w, "pools");
    for (size_t i = 0; i < f->pools_n; i++) {
        gl_jw_object(w);
        gl_jw_put_str(w, "name", f->pools[i].name);
        gl_jw_put_u64(w, "slots", f->pools[i].slots);
        gl_jw_put_u64(w, "in_use", f->pools[i].in_use);
        gl_jw_put_u64(w, "waiting", f->pools[i].waiting);
        write_use(n, f->pools[i].name, &left, w);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_longest_waiting(const struct gl_node *n, struct gl_jw *w)
{
    struct gl_core_waiting waiting;

    if (!gl_core_longest_waiting(n->core, &waiting)) {
        return;
    }
    gl_jw_put_object(w, "longest_waiting");
    gl_jw_put_str(w, "job_id", waiting.job);
    if (waiting.step.n > 0) {
        gl_jw_put_str(w, "step_id", waiting.step);
    }
    gl_jw_put_str(w, "pool", waiting.pool);
    gl_jw_end(w);
    if (waiting.since > 0) {
        gl_jw_put_i64(w, "longest_waiting_at", waiting.since);
    }
}

static void write_capacity(struct gl_node *n, struct gl_jw *w)
{
    struct gl_capacity *published = &own(n)->published;
    struct gl_capacity now = n->config.capacity(n->config.owner);

    GL_ASSERT(now.disk_free_bytes <= now.disk_bytes);
    gl_capacity_update(published, &now);
    GL_ASSERT(published->disk_free_bytes <= published->disk_bytes);
    gl_jw_key(w, "capacity");
    gl_capacity_write(published, w);
}

static const char *state_of(const struct gl_node *n)
{
    gl_ms since;
    gl_str why;

    return n->stopping || n->draining               ? "stopping"
           : n->config.passive                      ? "passive"
           : n->config.guest                        ? "guest"
           : gl_core_is_shut(n->core, &since, &why) ? GL_STATE_NO_ROOM
           : n->ready                               ? "ready"
                                                    : "starting";
}

static gl_str describe(struct gl_node *n)
{
    const struct gl_node_config *config = &n->config;
    const gl_str names[] = {config->name,    config->host,  gl_str_of(state_of(n)),
                            config->version, config->stack, config->env_scope};
    const char *const keys[] = {"name", "host", "state", "version", "stack", "env_scope"};
    struct gl_core_metrics f;
    struct gl_jw w;

    gl_core_metrics(n->core, &f);
    gl_buf_reset(&own(n)->about);
    gl_jw_init(&w, &own(n)->about);
    gl_jw_object(&w);
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        if (names[i].n > 0) {
            gl_jw_put_str(&w, keys[i], names[i]);
        }
    }
    gl_jw_put_i64(&w, "pid", config->pid);
    gl_jw_put_i64(&w, "started_at", own(n)->started_at);
    if (n->ports.store->ops->shared) {
        gl_jw_put_i64(&w, "orphan_grace_ms", n->config.orphan_grace_ms);
    }
    gl_jw_put_u64(&w, "jobs", f.jobs_hot);
    gl_jw_put_u64(&w, "running", f.attempts_running);
    gl_jw_put_u64(&w, "elsewhere", f.attempts_elsewhere);
    gl_jw_put_u64(&w, "taken", f.attempts_taken);
    gl_jw_put_u64(&w, "waiting", f.steps_waiting);
    write_longest_waiting(n, &w);
    gl_jw_put_u64(&w, "offers", OFFERS_FORMAT);
    write_pools(n, &f, &w);
    gl_jw_key(&w, "labels");
    gl_labels_write(&n->config.labels, &w);
    if (n->config.capacity != NULL) {
        write_capacity(n, &w);
    }
    gl_jw_end(&w);
    GL_ASSERT(own(n)->about.n <= GL_ABOUT_BYTES_MAX);
    return gl_buf_view(&own(n)->about);
}

/* ---- what the core decides about the session, and reports ---- */

void gl_sessions_on_changed(struct gl_node *n)
{
    struct gl_event ev = {.type = GL_EV_CHANGED, .context = n->config.context};

    if (n->session.n > 0 && !n->stopping && !n->lost) {
        gl_node_feed(n, &ev);
    }
}

void gl_sessions_limit_exec(const struct gl_node *n)
{
    struct gl_exec *x = n->ports.exec;

    if (n->ports.store->ops->shared && n->session.n > 0 && x != NULL && x->ops->session != NULL) {
        x->ops->session(x, GL_PLANT(69) ? INT64_MAX : own(n)->valid_until);
    }
}

void gl_sessions_set_valid_until(struct gl_node *n, const struct gl_effect *e)
{
    GL_ASSERT(n->session.n > 0);
    GL_ASSERT(e->type == GL_FX_VALID);
    own(n)->valid_until = e->deadline_at;
    if (n->exec_up) { /* if it is down, it gets this when it is up */
        gl_sessions_limit_exec(n);
    }
    GL_ASSERT(own(n)->valid_until == e->deadline_at);
}

void gl_sessions_set_lost(struct gl_node *n, const struct gl_effect *e)
{
    GL_ASSERT(e->why.n > 0);
    GL_ASSERT(e->type == GL_FX_LOST);
    n->lost = true;
    own(n)->lost_why = gl_str_dup(&n->strings, e->why);
}

bool gl_sessions_is_store_full(const struct gl_store_req *req)
{
    return req->status == GL_E_UNAVAILABLE && req->why.needs_help;
}

void gl_sessions_on_refused(struct gl_node *n, const struct gl_store_req *req)
{
    struct gl_event ev = {
        .type = GL_EV_REFUSED,
        .context = n->config.context,
        .refused = {.code = req->status, .why = gl_str_of(req->why.text), .needs_help = true}};

    if (gl_sessions_is_store_full(req) && n->session.n > 0 && !n->stopping) {
        gl_node_feed(n, &ev);
        gl_sessions_report(n);
    }
}

/* A store that refuses renewals because it is full is not unreachable. */
enum gl_store_health gl_sessions_store_health(const struct gl_node *n)
{
    gl_ms since;
    gl_str why;
    bool is_read_only = gl_core_is_shut(n->core, &since, &why);
    bool is_unreachable =
        own(n)->is_unreachable && !(is_read_only && own(n)->unreachable_why.needs_help);

    return is_unreachable ? GL_STORE_UNREACHABLE : is_read_only ? GL_STORE_READ_ONLY : GL_STORE_OK;
}

static void report_health(struct gl_node *n, enum gl_store_health health)
{
    GL_ASSERT(health != own(n)->health);
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_ms since;
    gl_str why;

    own(n)->health = health;
    (void)gl_core_is_shut(n->core, &since, &why); /* only `why` is needed here */
    if (n->config.on_store_health != NULL) {
        n->config.on_store_health(n->config.owner, health,
                                  health == GL_STORE_UNREACHABLE ? own(n)->unreachable_why.text
                                  : health == GL_STORE_READ_ONLY ? gl_str_c(&a, why)
                                                                 : "");
    }
}

/* Must not run inside a step of the core: the callbacks may stop the node. */
void gl_sessions_report(struct gl_node *n)
{
    enum gl_store_health health = gl_sessions_store_health(n);

    if (n->lost && !own(n)->is_lost_reported) {
        own(n)->is_lost_reported = true;
        if (n->config.on_session_lost != NULL) {
            n->config.on_session_lost(n->config.owner, own(n)->lost_why.p);
        }
    }
    if (n->session.n > 0 && health != own(n)->health) {
        report_health(n, health);
    }
}

void gl_sessions_log(const struct gl_node *n, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;

    if (n->config.on_notice == NULL) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args); /* a long line is truncated */
    va_end(args);
    n->config.on_notice(n->config.owner, line);
}

void gl_sessions_note_taken(struct gl_node *n, gl_str job, gl_str from)
{
    bool is_own = gl_str_starts(from, n->config.name) && from.n > n->config.name.n &&
                  from.p[n->config.name.n] == '#';

    if (n->ports.store->ops->shared && job.n == GL_ULID_BYTES && !is_own) {
        own(n)->taken_n++;
        memcpy(own(n)->taken, job.p, GL_ULID_BYTES);
    }
}

void gl_sessions_log_taken(struct gl_node *n)
{
    if (own(n)->taken_n == 1) {
        gl_sessions_log(n, "took over job %s from a dead node", own(n)->taken);
    } else if (own(n)->taken_n > 1) {
        gl_sessions_log(n, "took over %llu jobs from dead nodes, most recently %s",
                        (unsigned long long)own(n)->taken_n, own(n)->taken);
    }
    own(n)->taken_n = 0;
    GL_ASSERT(own(n)->taken_n == 0);
}

/* ---- opening it ---- */

static void open_failed(struct gl_node *n, const struct gl_store_req *req)
{
    GL_ASSERT(own(n)->ttl > 0);
    GL_ASSERT(req->status != 0);
    own(n)->due = n->now + (own(n)->ttl / 6 < RETRY_MS ? own(n)->ttl / 6 : RETRY_MS);
    if (n->config.on_trouble != NULL) {
        n->config.on_trouble(n->config.owner, gl_err_join(req->status, req->why.reason),
                             req->why.text);
    }
}

static void on_opened(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;

    GL_ASSERT(n->session.n == 0);
    GL_ASSERT(own(n)->opened.id.n == 0);
    GL_ASSERT(!own(n)->call.is_under_way);
    n->config.trace->now = n->now;
    if (n->stopping) {
        own(n)->due = INT64_MAX;
    } else if (req->status != 0) {
        open_failed(n, req);
    } else {
        own(n)->renewed_at = n->now;
        own(n)->opened = req->session;
        own(n)->opened.id = gl_str_dup(&n->strings, req->session.id);
        read_rates(n);
    }
}

void gl_sessions_renew(struct gl_node *n, struct gl_store_req *req)
{
    struct gl_store *s = n->ports.store;

    GL_ASSERT(own(n)->ttl > 0);
    GL_ASSERT(n->session.n > 0);
    s->ops->session_renew(s, req, n->session, own(n)->ttl, describe(n));
}

void gl_sessions_on_renewed(struct gl_node *n, const struct gl_store_req *req)
{
    own(n)->is_unreachable = req->status != 0 && req->status != GL_E_GONE;
    if (own(n)->is_unreachable) {
        own(n)->unreachable_why = req->why;
    } else if (req->status == 0) {
        own(n)->renewed_at = n->now;
    }
}

/* ---- an unfinished migration into the store ---- */

static bool is_migration_unfinished(const struct gl_store_req *req, struct gl_why *ret)
{
    struct gl_arena a = {0};
    struct gl_json j;
    bool is = req->records_n > 0 && req->records[0].rev > 0 &&
              gl_json_parse(&j, req->records[0].value, MIGRATION_BYTES_MAX, &a, NULL) == 0 &&
              gl_str_is(gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "state"), &a), "copying");

    if (is) {
        gl_str from = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "source"), &a);

        (void)gl_why(ret, GL_R_MIGRATION_UNFINISHED,
                     "the migration from %.*s into this store is unfinished; run the same "
                     "'glia store migrate' again to continue it",
                     GL_STR_ARG(from));
    }
    gl_arena_done(&a);
    return is;
}

static void on_migration(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;

    GL_ASSERT(n->session.n == 0);
    if (n->stopping) {
        own(n)->due = INT64_MAX;
    } else {
        if (req->status == 0 && is_migration_unfinished(req, &req->why)) {
            req->status = GL_E_STATE;
        }
        own(n)->has_checked_migration = req->status == 0;
        own(n)->due = n->now;
        if (req->status != 0) {
            open_failed(n, req);
        }
    }
}

/* A half-migrated store's jobs still exist in the source as well. Running them here would run steps
 * twice. */
static void check_migration(struct gl_node *n)
{
    struct sessions *m = own(n);

    GL_ASSERT(n->config.may_be_half);
    GL_ASSERT(!own(n)->has_checked_migration);
    m->migration = (struct gl_key){.kind = GL_S("migration"), .id = GL_S("state")};
    n->ports.store->ops->get(n->ports.store, gl_chain_call_store(&m->call, n, on_migration, n),
                             n->config.context, &m->migration, 1);
}

static void make_nonce(struct gl_node *n)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[16];

    n->ports.entropy->fill(n->ports.entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        own(n)->nonce[i] = alphabet[bytes[i] & 31];
    }
    GL_ASSERT(own(n)->nonce[sizeof(bytes)] == '\0');
}

static gl_ms due(const struct gl_node *n)
{
    return own(n)->due;
}

static void on_time(struct gl_node *n)
{
    struct gl_store *s = n->ports.store;
    struct sessions *m = own(n);

    if (m->due > n->now || m->call.is_under_way) {
        return;
    }
    m->due = INT64_MAX;
    if (n->config.may_be_half && !m->has_checked_migration) {
        check_migration(n);
        return;
    }
    if (m->opened.id.n > 0) { /* reading the rates had failed */
        read_rates(n);
        return;
    }
    m->sent_at = n->now;
    make_nonce(n);
    m->wish = (struct gl_session_options){.node = n->config.name,
                                          .nonce = gl_str_of(m->nonce),
                                          .ttl_ms = m->ttl,
                                          .about = describe(n)};
    s->ops->session_open(s, gl_chain_call_store(&m->call, n, on_opened, n), &m->wish);
}

void gl_node_publish(struct gl_node *n)
{
    struct gl_event ev = {.type = GL_EV_SHOW};

    if (n->session.n > 0 && !n->stopping && !n->lost) {
        gl_node_feed(n, &ev);
        gl_node_rearm(n);
    }
}

/* ---- closing it ---- */

static void on_left(struct gl_store_req *req)
{
    (void)req; /* if it failed, the session expires by itself */
}

bool gl_sessions_close(struct gl_node *n)
{
    struct gl_core_metrics f;
    struct gl_store *s = n->ports.store;
    struct sessions *m = own(n);

    GL_ASSERT(!own(n)->call.is_under_way);
    GL_ASSERT(n->stopping);
    GL_ASSERT(n->outstanding == 0);
    gl_core_metrics(n->core, &f);
    if (!s->ops->shared || n->session.n == 0 || n->lost || m->has_left || f.attempts_running > 0 ||
        f.attempts_taken > 0) {
        return false; /* our next session asks the keeper for running attempts, of our jobs and of
                         those of other nodes; until then nobody may take over or give them up */
    }
    m->has_left = true;
    s->ops->session_end(s, gl_chain_call_store(&m->call, n, on_left, n), n->session);
    return true;
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    struct sessions *m = own(n);

    m->valid_until = m->due = INT64_MAX;
    m->ttl = n->config.session_ttl_ms > 0 ? n->config.session_ttl_ms : GL_SESSION_TTL_MS;
    if (!n->ports.store->ops->shared) {
        m->ttl = UNSHARED_TTL_MS; /* no other node relies on it */
    }
    GL_ASSERT(m->ttl > 0);
}

void gl_sessions_start(struct gl_node *n)
{
    GL_ASSERT(n->session.n == 0);
    GL_ASSERT(own(n)->due == INT64_MAX);
    own(n)->started_at = own(n)->due = n->now;
}

gl_ms gl_sessions_ttl(const struct gl_node *n)
{
    return own(n)->ttl;
}

gl_ms gl_sessions_valid_until(const struct gl_node *n)
{
    return own(n)->valid_until;
}

gl_ms gl_sessions_renewed_at(const struct gl_node *n)
{
    return own(n)->renewed_at;
}

static void stop(struct gl_node *n)
{
    GL_ASSERT(n->stopping);
    own(n)->due = INT64_MAX;
}

static void done(struct gl_node *n)
{
    gl_buf_done(&own(n)->about);
}

const struct gl_node_part gl_sessions_part = {.bytes = sizeof(struct sessions),
                                              .init = init,
                                              .due = due,
                                              .on_time = on_time,
                                              .stop = stop,
                                              .done = done};
