/* The kit's calls: one function per operation of the port, and the checks of results. */
#include <poll.h>
#include <stdio.h>

#include "contract/contract.h"

/* ---- calls ---- */

static gl_str keep(struct contract *c, gl_str s)
{
    return gl_str_dup(&c->arena, s);
}

static void keep_records(struct contract *c, struct gl_store_req *req)
{
    struct gl_record *r = GL_NEW_ARRAY(&c->arena, struct gl_record, req->records_n + 1);
    for (size_t i = 0; i < req->records_n; i++) {
        r[i] = req->records[i];
        r[i].kind = keep(c, r[i].kind);
        r[i].id = keep(c, r[i].id);
        r[i].owner = keep(c, r[i].owner);
        r[i].value = keep(c, r[i].value);
    }
    req->records = r;
}

static void keep_others(struct contract *c, struct gl_store_req *req)
{
    struct gl_index_entry *e = GL_NEW_ARRAY(&c->arena, struct gl_index_entry, req->entries_n + 1);
    for (size_t i = 0; i < req->entries_n; i++) {
        e[i] = req->entries[i];
        e[i].id = keep(c, e[i].id);
    }
    req->entries = e;
    struct gl_log_entry *l = GL_NEW_ARRAY(&c->arena, struct gl_log_entry, req->log_n + 1);
    for (size_t i = 0; i < req->log_n; i++) {
        l[i] = req->log[i];
        l[i].value = keep(c, l[i].value);
    }
    req->log = l;
    req->session.id = keep(c, req->session.id);
}

static void keep_sessions(struct contract *c, struct gl_store_req *req)
{
    struct gl_session_info *s =
        GL_NEW_ARRAY(&c->arena, struct gl_session_info, req->sessions_n + 1);
    for (size_t i = 0; i < req->sessions_n; i++) {
        s[i] = req->sessions[i];
        s[i].id = keep(c, s[i].id);
        s[i].node = keep(c, s[i].node);
        s[i].about = keep(c, s[i].about);
    }
    req->sessions = s;
}

static void keep_writes(struct contract *c, struct gl_store_req *req)
{
    struct gl_write *w = GL_NEW_ARRAY(&c->arena, struct gl_write, req->writes_n + 1);
    for (size_t i = 0; i < req->writes_n; i++) {
        w[i] = req->writes[i];
        w[i].kind = keep(c, w[i].kind);
        w[i].id = keep(c, w[i].id);
        w[i].owner = keep(c, w[i].owner);
        w[i].value = keep(c, w[i].value);
    }
    req->writes = w;
    req->next = keep(c, req->next);
}

static void on_done(struct gl_store_req *req)
{
    struct contract_call *call = req->owner;
    assert_false(call->done); /* exactly once */
    call->done = true;
    call->order = ++call->c->done_n;
    keep_records(call->c, req);
    keep_others(call->c, req);
    keep_sessions(call->c, req);
    keep_writes(call->c, req);
}

struct contract_call *contract_call_new(struct contract *c)
{
    struct contract_call *call = GL_NEW(&c->arena, struct contract_call);
    call->c = c;
    call->req.done = on_done;
    call->req.owner = call;
    return call;
}

void contract_wait(struct contract_call *call)
{
    call->c->maker->pump_until(call->c->world, &call->done);
}

struct contract_call *contract_start_in(struct contract *c, const char *context,
                                        const struct gl_guard *guards, size_t guards_n,
                                        const struct gl_write *writes, size_t writes_n)
{
    struct contract_call *call = contract_call_new(c);
    call->tx = (struct gl_tx){
        .context = gl_str_of(context),
        .session = c->session,
        .id = ++c->tx_id,
        .guards = gl_arena_copy(&c->arena, guards, guards_n * sizeof(*guards)),
        .guards_n = guards_n,
        .writes = gl_arena_copy(&c->arena, writes, writes_n * sizeof(*writes)),
        .writes_n = writes_n,
    };
    c->store->ops->commit(c->store, &call->req, &call->tx);
    assert_false(call->done); /* never from inside the call */
    return call;
}

struct contract_call *contract_start(struct contract *c, const struct gl_guard *guards,
                                     size_t guards_n, const struct gl_write *writes,
                                     size_t writes_n)
{
    return contract_start_in(c, "default", guards, guards_n, writes, writes_n);
}

int contract_commit_in(struct contract *c, const char *context, const struct gl_guard *guards,
                       size_t guards_n, const struct gl_write *writes, size_t writes_n)
{
    struct contract_call *call = contract_start_in(c, context, guards, guards_n, writes, writes_n);
    contract_wait(call);
    return call->req.status;
}

int contract_commit(struct contract *c, const struct gl_guard *guards, size_t guards_n,
                    const struct gl_write *writes, size_t writes_n)
{
    return contract_commit_in(c, "default", guards, guards_n, writes, writes_n);
}

gl_str contract_session_for(struct contract *c, const char *node, gl_ms ttl_ms, const char *about)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_open(c->store, &call->req,
                                &(struct gl_session_options){.node = gl_str_of(node),
                                                             .nonce = GL_S("0123456789abcdef"),
                                                             .ttl_ms = ttl_ms,
                                                             .about = gl_str_of(about)});
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    c->session = call->req.session.id;
    c->tx_id = 0;
    return c->session;
}

gl_str contract_session(struct contract *c, const char *node)
{
    return contract_session_for(c, node, 30000, "{}");
}

int contract_renew_for(struct contract *c, gl_str session, gl_ms ttl_ms, const char *about)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_renew(c->store, &call->req, session, ttl_ms, gl_str_of(about));
    contract_wait(call);
    return call->req.status;
}

int contract_renew(struct contract *c, gl_str session)
{
    return contract_renew_for(c, session, 30000, "{}");
}

static int ask_dead(struct contract *c, gl_str session, bool declare, bool *ret)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_dead(c->store, &call->req, session, declare);
    contract_wait(call);
    *ret = call->req.session_dead;
    return call->req.status;
}

int contract_dead(struct contract *c, gl_str session, bool *ret)
{
    return ask_dead(c, session, false, ret);
}

int contract_declare(struct contract *c, gl_str session, bool *ret)
{
    return ask_dead(c, session, true, ret);
}

int contract_leave(struct contract *c, gl_str session)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_end(c->store, &call->req, session);
    contract_wait(call);
    return call->req.status;
}

int contract_resolve(struct contract *c, gl_str session, uint64_t tx_id)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->resolve(c->store, &call->req, GL_S("default"), session, tx_id);
    contract_wait(call);
    return call->req.status;
}

/* ---- reads ---- */

static const struct gl_store_req *finish(struct contract_call *call)
{
    assert_false(call->done);
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    return &call->req;
}

struct gl_record contract_get_in(struct contract *c, const char *context, const char *kind,
                                 const char *id)
{
    struct contract_call *call = contract_call_new(c);
    struct gl_key key = {gl_str_of(kind), gl_str_of(id)};
    c->store->ops->get(c->store, &call->req, gl_str_of(context), &key, 1);
    const struct gl_store_req *req = finish(call);
    assert_int_equal(req->records_n, 1);
    assert_true(gl_str_is(req->records[0].kind, kind));
    assert_true(gl_str_is(req->records[0].id, id));
    return req->records[0];
}

struct gl_record contract_get(struct contract *c, const char *kind, const char *id)
{
    return contract_get_in(c, "default", kind, id);
}

const struct gl_store_req *contract_range(struct contract *c, const struct gl_range *r)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->range(c->store, &call->req, GL_S("default"), r);
    return finish(call);
}

const struct gl_store_req *contract_list(struct contract *c, const struct gl_listing *l)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->list(c->store, &call->req, GL_S("default"), l);
    return finish(call);
}

const struct gl_store_req *contract_log(struct contract *c, const char *kind, const char *id,
                                        int64_t from, size_t limit)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->log_read(c->store, &call->req, GL_S("default"), gl_str_of(kind), gl_str_of(id),
                            from, limit);
    return finish(call);
}

uint64_t contract_measure(struct contract *c)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->measure(c->store, &call->req, GL_S("default"));
    return finish(call)->bytes;
}

const struct gl_store_req *contract_sessions(struct contract *c)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_list(c->store, &call->req);
    return finish(call);
}

gl_ms contract_time(struct contract *c)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->time(c->store, &call->req);
    return finish(call)->time;
}

const struct gl_store_req *contract_export(struct contract *c, gl_str after, size_t limit)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->export(c->store, &call->req, GL_S("default"), after, limit);
    return finish(call);
}

void contract_advance(struct contract *c, gl_ms ms)
{
    if (c->maker->advance != NULL) {
        c->maker->advance(c->world, ms);
        return;
    }
    gl_ms until = contract_time(c) + ms;
    while (contract_time(c) <= until) {
        (void)poll(NULL, 0, 2); /* polls the store's clock */
    }
}

/* ---- checks ---- */

void check_value(struct contract *c, const char *kind, const char *id, const char *value)
{
    struct gl_record r = contract_get(c, kind, id);
    assert_int_not_equal(r.rev, 0);
    assert_string_equal(r.value.p, value); /* the kit's copies end in NUL */
}

void check_absent(struct contract *c, const char *kind, const char *id)
{
    assert_int_equal(contract_get(c, kind, id).rev, 0);
}

static void check_text(struct gl_buf *have, const char *want)
{
    gl_buf_char(have, '\0');
    assert_string_equal(have->p, want);
    gl_buf_done(have);
}

void check_ids(const struct gl_store_req *req, const char *want)
{
    struct gl_buf have = {0};
    for (size_t i = 0; i < req->records_n; i++) {
        gl_buf_fmt(&have, "%s%.*s", i > 0 ? " " : "", GL_STR_ARG(req->records[i].id));
    }
    check_text(&have, want);
}

void check_entries(const struct gl_store_req *req, const char *want)
{
    struct gl_buf have = {0};
    for (size_t i = 0; i < req->entries_n; i++) {
        gl_buf_fmt(&have, "%s%lld:%.*s", i > 0 ? " " : "", (long long)req->entries[i].score,
                   GL_STR_ARG(req->entries[i].id));
    }
    check_text(&have, want);
}

void check_log(const struct gl_store_req *req, const char *want)
{
    struct gl_buf have = {0};
    for (size_t i = 0; i < req->log_n; i++) {
        gl_buf_fmt(&have, "%s%lld:%.*s", i > 0 ? " " : "", (long long)req->log[i].seq,
                   GL_STR_ARG(req->log[i].value));
    }
    check_text(&have, want);
}
