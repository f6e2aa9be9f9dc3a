/* migrate.c - the migration: check sessions, open a session on the target, copy page by page,
 * verify, mark as done.
 *
 * Every transaction writes some records together with the progress record, guarded by the revision
 * of that record and by our session being alive. So two migrations into one target cannot
 * interleave, and a transaction with unknown outcome can be resolved by its id. */
#include "api/migrate.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/log_state.h"

enum {
    PAGE_WRITES = 200,
    CHUNK_BYTES = 4 << 20, /* one transaction */
    TTL_MS = 120000,
    RENEW_EVERY = 16, /* transactions */
    ASKED_MAX = 20,   /* attempts to resolve a transaction */
    STATE_BYTES_MAX = 4096,
};

#define KIND GL_S("migration")
#define ID GL_S("state")

/* ---- ending ---- */

static void end(struct gl_migrate *m, int code, const char *why)
{
    m->code = code == 0 ? 0 : gl_why(&m->why, code, "%s", why);
    m->done(m);
}

static void on_session_ended(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    m->done(m); /* if session_end was lost, the session expires */
}

/* Ends the session as well, so that the next user need not wait for its deadline. */
static void finish_session(struct gl_migrate *m, int code, const char *why)
{
    m->code = code == 0 ? 0 : gl_why(&m->why, code, "%s", why);
    m->req = (struct gl_store_req){.done = on_session_ended, .owner = m};
    m->to->ops->session_end(m->to, &m->req, m->session);
}

static void on_answer(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (req->status == 0) {
        m->next_done(req);
    } else if (m->session.n > 0) {
        finish_session(m, req->status, req->why.text);
    } else {
        end(m, req->status, req->why.text);
    }
}

/* The request for a call: `next` gets the answer. If the call fails, the migration ends. */
static struct gl_store_req *call(struct gl_migrate *m, gl_store_done *next)
{
    m->next_done = next;
    m->req = (struct gl_store_req){.done = on_answer, .owner = m};
    return &m->req;
}

/* ---- sums ---- */

static void add_text(struct gl_sha256 *s, gl_str text)
{
    uint64_t n = text.n;

    gl_sha256_add(s, &n, sizeof(n));
    gl_sha256_add(s, text.p, text.n);
}

static void add_write(struct gl_migrate_sum *sum, const struct gl_write *w)
{
    bool is_put = w->type == GL_WRITE_PUT; /* other writes do not have these */
    uint64_t numbers[] = {
        (uint64_t)w->type,
        is_put ? w->rev : 0,
        is_put ? w->token : 0,
        is_put ? w->live : 0,
        w->type == GL_WRITE_INDEX ? (uint64_t)w->score : 0,
        w->type == GL_WRITE_LOG ? (uint64_t)w->seq : 0,
    };
    union {
        uint8_t bytes[GL_SHA256_BYTES];
        uint64_t words[4];
    } digest;
    struct gl_sha256 s;

    gl_sha256_init(&s);
    gl_sha256_add(&s, numbers, sizeof(numbers));
    add_text(&s, w->kind);
    add_text(&s, w->id);
    add_text(&s, w->value);
    gl_sha256_done(&s, digest.bytes);
    sum->writes_n++;
    for (size_t i = 0; i < GL_COUNT(sum->words); i++) {
        sum->words[i] += digest.words[i];
    }
}

static void add_sum(struct gl_migrate_sum *to, const struct gl_migrate_sum *sum)
{
    to->writes_n += sum->writes_n;
    for (size_t i = 0; i < GL_COUNT(to->words); i++) {
        to->words[i] += sum->words[i];
    }
}

static bool is_same(const struct gl_migrate_sum *a, const struct gl_migrate_sum *b)
{
    return a->writes_n == b->writes_n && memcmp(a->words, b->words, sizeof(a->words)) == 0;
}

static bool is_excluded(const struct gl_write *w)
{
    return gl_str_is(w->kind, "lease") || gl_str_eq(w->kind, KIND);
}

/* ---- progress ---- */

static gl_str write_state(struct gl_migrate *m, size_t at, gl_str after, const char *state)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "source", m->source);
    gl_jw_put_c(&w, "state", state);
    gl_jw_put_str(&w, "after", after);
    gl_jw_put_u64(&w, "at", at);
    gl_jw_put_u64(&w, "writes", m->sum.writes_n + m->chunk_sum.writes_n);
    gl_jw_put_array(&w, "sum");
    for (size_t i = 0; i < GL_COUNT(m->sum.words); i++) {
        gl_jw_u64(&w, m->sum.words[i] + m->chunk_sum.words[i]);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    text = gl_str_dup(&m->tx_arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* GL_E_EXISTS: it belongs to another migration, or is complete. */
static int read_state(struct gl_migrate *m, gl_str text)
{
    struct gl_json j;
    gl_jnode root, sum;
    uint64_t at = 0;
    size_t i = 0;

    if (gl_json_parse(&j, gl_str_dup(&m->arena, text), STATE_BYTES_MAX, &m->arena, &m->why) != 0) {
        return GL_E_DAMAGED;
    }
    root = gl_json_root(&j);
    if (!gl_str_eq(gl_json_str(&j, gl_json_get(&j, root, "source"), &m->arena), m->source)) {
        return gl_why(&m->why, GL_R_MIGRATION_OTHER,
                      "the target holds a migration from another source: %.*s",
                      GL_STR_ARG(gl_json_str(&j, gl_json_get(&j, root, "source"), &m->arena)));
    }
    if (!gl_str_is(gl_json_str(&j, gl_json_get(&j, root, "state"), &m->arena), "copying")) {
        return gl_why(&m->why, GL_R_MIGRATION_DONE, "this migration is already complete");
    }
    m->after = gl_json_str(&j, gl_json_get(&j, root, "after"), &m->arena);
    (void)gl_json_u64(&j, gl_json_get(&j, root, "at"), &at);
    (void)gl_json_u64(&j, gl_json_get(&j, root, "writes"), &m->sum.writes_n);
    m->at = (size_t)at;
    sum = gl_json_get(&j, root, "sum");
    for (gl_jnode e = gl_json_first(&j, sum); e && i < 4; e = gl_json_after(&j, sum, e)) {
        (void)gl_json_u64(&j, e, &m->sum.words[i++]);
    }
    m->is_continued = true;
    return 0;
}

/* ---- committing ---- */

static void commit(struct gl_migrate *m);
static void on_arrived(struct gl_migrate *m);

static void on_resolved(struct gl_store_req *req);

static void resolve(struct gl_migrate *m)
{
    m->req = (struct gl_store_req){.done = on_resolved, .owner = m};
    m->to->ops->resolve(m->to, &m->req, m->context, m->session, m->tx.id);
}

static void on_resolved(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (req->status == 0) {
        on_arrived(m);
    } else if (req->status == GL_E_CONFLICT) {
        commit(m); /* it was never applied */
    } else if (++m->resolves_n < ASKED_MAX) {
        resolve(m);
    } else {
        finish_session(m, GL_E_UNAVAILABLE, req->why.text);
    }
}

static void on_committed(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (req->status == 0) {
        on_arrived(m);
    } else if (req->status == GL_E_UNKNOWN) {
        m->resolves_n = 0;
        resolve(m);
    } else if (req->status == GL_E_CONFLICT) {
        finish_session(m, GL_E_CONFLICT, "another migration or a node is writing to the target");
    } else {
        finish_session(m, req->status, req->why.text);
    }
}

static void commit(struct gl_migrate *m)
{
    m->tx.id = ++m->tx_id;
    m->req = (struct gl_store_req){.done = on_committed, .owner = m};
    m->to->ops->commit(m->to, &m->req, &m->tx);
}

/* Commits `n` writes and, in the free place after them, the new progress. */
static void commit_progress(struct gl_migrate *m, struct gl_write *writes, size_t n, gl_str state)
{
    writes[n] = (struct gl_write){
        .type = GL_WRITE_PUT, .kind = KIND, .id = ID, .rev = m->rev + 1, .value = state};
    m->guards[0] = (struct gl_guard){
        .type = m->rev == 0 ? GL_GUARD_ABSENT : GL_GUARD_AT, .kind = KIND, .id = ID, .rev = m->rev};
    m->guards[1] = (struct gl_guard){.type = GL_GUARD_ALIVE, .owner = m->session};
    m->tx = (struct gl_tx){.context = m->context,
                           .session = m->session,
                           .guards = m->guards,
                           .guards_n = 2,
                           .writes = writes,
                           .writes_n = n + 1};
    commit(m);
}

/* ---- reading ---- */

static void read_page(struct gl_migrate *m, struct gl_store *store, gl_str after,
                      gl_store_done *done)
{
    store->ops->export(store, call(m, done), m->context, after, m->page);
}

/* Logs are in a store for other nodes to read. One that is not shared has no use for them, and its
 * retention does not look for them. */
static bool is_log(const struct gl_write *w)
{
    return w->type == GL_WRITE_PUT &&
           (gl_str_eq(w->kind, GL_LOG_KIND) || gl_str_eq(w->kind, GL_LOG_CHUNK_KIND));
}

/* Copies a page of writes in the form in which they are to arrive. */
static void keep_page(struct gl_migrate *m, const struct gl_store_req *req)
{
    struct gl_arena *a = &m->page_arena;

    gl_arena_reset(a);
    m->writes = GL_NEW_ARRAY(a, struct gl_write, req->writes_n + 1);
    m->writes_n = 0;
    for (size_t i = 0; i < req->writes_n; i++) {
        struct gl_write w = req->writes[i];

        if (is_excluded(&w) || (!m->to->ops->shared && is_log(&w))) {
            continue;
        }
        w.kind = gl_str_dup(a, w.kind);
        w.id = gl_str_dup(a, w.id);
        w.value = gl_str_dup(a, w.value);
        w.owner = (gl_str){0};
        m->writes[m->writes_n++] = w;
    }
    m->next = gl_str_dup(a, req->next);
}

/* ---- verifying ---- */

static void finish_ok(struct gl_migrate *m)
{
    finish_session(m, 0, "");
}

static void finish(struct gl_migrate *m)
{
    struct gl_write *writes = GL_NEW(&m->tx_arena, struct gl_write);

    m->is_at_end = true;
    m->chunk_sum = (struct gl_migrate_sum){0};
    commit_progress(m, writes, 0, write_state(m, 0, (gl_str){0}, "done"));
}

static bool refuse_live_session(struct gl_migrate *m, const struct gl_store_req *req,
                                const char *which);

static void on_last_sessions(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (m->from->ops->shared && refuse_live_session(m, req, "source")) {
        finish_session(m, gl_why_whole(&m->why), gl_str_c(&m->arena, gl_str_of(m->why.text)));
    } else {
        finish(m);
    }
}

static void check_sum(struct gl_migrate *m)
{
    const char *which = m->reading == m->to ? "target" : "source";

    if (!is_same(&m->seen, &m->sum)) {
        finish_session(
            m, GL_E_CONFLICT,
            gl_str_fmt(&m->arena,
                       "the %s does not match what was copied (it has %llu entries, %llu were "
                       "copied): it changed during the migration; empty the target and start over",
                       which, (unsigned long long)m->seen.writes_n,
                       (unsigned long long)m->sum.writes_n)
                .p);
        return;
    }
    if (m->reading == m->from) {
        m->from->ops->session_list(m->from, call(m, on_last_sessions));
        return;
    }
    m->reading = m->from;
    m->seen = (struct gl_migrate_sum){0};
    m->next = (gl_str){0};
}

static void verify(struct gl_migrate *m);

static void on_verified(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;
    struct gl_store *was = m->reading;

    keep_page(m, req);
    for (size_t i = 0; i < m->writes_n; i++) {
        add_write(&m->seen, &m->writes[i]);
    }
    if (m->next.n > 0) {
        verify(m);
        return;
    }
    check_sum(m);
    if (was == m->to && m->reading == m->from) {
        verify(m);
    }
}

static void verify(struct gl_migrate *m)
{
    read_page(m, m->reading, m->next, on_verified);
}

/* ---- copying ---- */

static void copy_page(struct gl_migrate *m);

static void on_page(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    keep_page(m, req);
    if (m->at > m->writes_n) {
        finish_session(m, GL_E_CONFLICT,
                       "the source has changed since the last run; empty the target and "
                       "start over");
        return;
    }
    copy_page(m);
}

static void next_page(struct gl_migrate *m)
{
    read_page(m, m->from, m->after, on_page);
}

static size_t bytes_of(const struct gl_write *w)
{
    return w->kind.n + w->id.n + w->value.n;
}

/* Copies the next part of the page as one transaction; with the last part the position moves to the
 * next page. */
static void copy_page(struct gl_migrate *m)
{
    struct gl_write *writes;
    size_t bytes = 0;

    gl_arena_reset(&m->tx_arena);
    m->chunk = 0;
    m->chunk_sum = (struct gl_migrate_sum){0};
    while (m->at + m->chunk < m->writes_n && bytes < CHUNK_BYTES) {
        const struct gl_write *w = &m->writes[m->at + m->chunk++];

        bytes += bytes_of(w);
        add_write(&m->chunk_sum, w);
        m->jobs_n += w->type == GL_WRITE_PUT && gl_str_is(w->kind, "job");
    }
    writes = GL_NEW_ARRAY(&m->tx_arena, struct gl_write, m->chunk + 1);
    if (m->chunk > 0) {
        memcpy(writes, m->writes + m->at, m->chunk * sizeof(*writes));
    }
    if (m->at + m->chunk == m->writes_n && m->next.n > 0) {
        commit_progress(m, writes, m->chunk, write_state(m, 0, m->next, "copying"));
    } else {
        commit_progress(m, writes, m->chunk, write_state(m, m->at + m->chunk, m->after, "copying"));
    }
}

static void on_renewed(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (req->status == GL_E_GONE) {
        finish_session(m, GL_E_CONFLICT, "another migration into this target has started");
    } else if (m->at < m->writes_n) {
        copy_page(m); /* a failed renewal is made up for by the next */
    } else {
        next_page(m);
    }
}

static void continue_copy(struct gl_migrate *m)
{
    if (++m->commits % RENEW_EVERY == 0) {
        m->req = (struct gl_store_req){.done = on_renewed, .owner = m};
        m->to->ops->session_renew(m->to, &m->req, m->session, TTL_MS, (gl_str){0});
    } else if (m->at < m->writes_n) {
        copy_page(m);
    } else {
        next_page(m);
    }
}

static void on_arrived(struct gl_migrate *m)
{
    m->rev++;
    if (m->is_at_end) {
        finish_ok(m);
        return;
    }
    add_sum(&m->sum, &m->chunk_sum);
    m->at += m->chunk;
    if (m->on_progress != NULL) {
        m->on_progress(m);
    }
    if (m->at == m->writes_n && m->next.n == 0) {
        m->reading = m->to;
        m->seen = (struct gl_migrate_sum){0};
        verify(m);
        return;
    }
    if (m->at == m->writes_n) {
        m->after = gl_str_dup(&m->arena, m->next);
        m->at = m->writes_n = 0;
    }
    continue_copy(m);
}

/* ---- beginning ---- */

static void on_session(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    m->session = gl_str_dup(&m->arena, req->session.id);
    next_page(m);
}

static void open_session(struct gl_migrate *m)
{
    m->wish = (struct gl_session_options){.node = GL_S(GL_MIGRATE_NODE),
                                          .nonce = m->nonce,
                                          .ttl_ms = TTL_MS,
                                          .about = GL_S("{\"state\":\"migrating\"}")};
    m->to->ops->session_open(m->to, call(m, on_session), &m->wish);
}

static void on_empty(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (req->writes_n > 0) {
        end(m, GL_E_EXISTS,
            "the target is not empty; it may hold only an unfinished run of this migration");
    } else {
        open_session(m);
    }
}

static void on_state(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;
    int rc;

    m->rev = req->records[0].rev;
    if (m->rev == 0) {
        read_page(m, m->to, (gl_str){0}, on_empty);
        return;
    }
    rc = read_state(m, req->records[0].value);
    if (rc != 0) {
        end(m, gl_err_join(rc, m->why.reason), gl_str_c(&m->arena, gl_str_of(m->why.text)));
    } else {
        open_session(m);
    }
}

/* True: a node is using that store; m->code and m->why are set. */
static bool refuse_live_session(struct gl_migrate *m, const struct gl_store_req *req,
                                const char *which)
{
    for (size_t i = 0; i < req->sessions_n; i++) {
        const struct gl_session_info *s = &req->sessions[i];

        if (!s->dead && s->left_ms >= 0 && !gl_str_is(s->node, GL_MIGRATE_NODE)) {
            m->code =
                gl_why(&m->why, GL_R_STORE_IN_USE,
                       "node %.*s is using the %s; stop it first, or wait until its session has "
                       "expired",
                       GL_STR_ARG(s->node), which);
            return true;
        }
    }
    return false;
}

static void on_to_sessions(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    if (m->to->ops->shared && refuse_live_session(m, req, "target")) {
        m->done(m);
    } else {
        m->key = (struct gl_key){.kind = KIND, .id = ID};
        m->to->ops->get(m->to, call(m, on_state), m->context, &m->key, 1);
    }
}

static void on_from_sessions(struct gl_store_req *req)
{
    struct gl_migrate *m = req->owner;

    for (size_t i = 0; i < req->sessions_n; i++) {
        uint64_t n = req->sessions[i].incarnation;

        m->newest = n > m->newest ? n : m->newest;
    }
    if (m->from->ops->shared && refuse_live_session(m, req, "source")) {
        m->done(m);
        return;
    }
    m->to->ops->session_list(m->to, call(m, on_to_sessions));
}

void gl_migrate_run(struct gl_migrate *m)
{
    m->page = m->page == 0 ? PAGE_WRITES : m->page;
    m->from->ops->session_list(m->from, call(m, on_from_sessions));
}

void gl_migrate_done(struct gl_migrate *m)
{
    gl_arena_done(&m->arena);
    gl_arena_done(&m->page_arena);
    gl_arena_done(&m->tx_arena);
}
