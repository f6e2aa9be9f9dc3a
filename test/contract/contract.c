#include "contract/contract.h"

#include <stdio.h>

#include "base/mem.h"

/* A new maker is one line here. */
static const struct contract_maker *const makers[] = {
    &contract_maker_memory,
    &contract_maker_sqlite,
};

/* ---- running ---- */

void contract_adopt(struct contract *c, const struct contract_maker *maker, void *world,
                    struct gl_store *store)
{
    *c = (struct contract){.maker = maker, .world = world, .store = store};
}

void contract_begin(struct contract *c, const struct contract_maker *maker)
{
    void *world = NULL;
    struct gl_store *store = maker->open(&world);
    contract_adopt(c, maker, world, store);
}

void contract_reopen(struct contract *c)
{
    c->store = c->maker->reopen(c->world);
}

void contract_end(struct contract *c)
{
    c->maker->close(c->world);
    gl_arena_done(&c->arena);
}

static int set_up(void **state)
{
    const struct contract_maker *maker = *state;
    struct contract *c = gl_mem_alloc(sizeof(*c));
    contract_begin(c, maker);
    *state = c;
    return 0;
}

static int tear_down(void **state)
{
    struct contract *c = *state;
    contract_end(c);
    gl_mem_free(c);
    return 0;
}

int contract_run(const struct contract_test *tests, size_t n)
{
    size_t total = n * GL_COUNT(makers);
    struct CMUnitTest *all = gl_mem_alloc(total * sizeof(*all));
    struct gl_arena names = {0};
    for (size_t i = 0; i < total; i++) {
        const struct contract_maker *maker = makers[i / n];
        const struct contract_test *t = &tests[i % n];
        all[i] = (struct CMUnitTest){
            .name = gl_str_fmt(&names, "%s: %s", maker->name, t->name).p,
            .test_func = t->run,
            .setup_func = set_up,
            .teardown_func = tear_down,
            .initial_state = (void *)(uintptr_t)maker,
        };
    }
    int failed = _cmocka_run_group_tests("store contract", all, total, NULL, NULL);
    gl_arena_done(&names);
    gl_mem_free(all);
    return failed;
}

/* ---- guards and writes ---- */

static struct gl_guard guard(enum gl_guard_type type, const char *kind, const char *id)
{
    return (struct gl_guard){.type = type, .kind = gl_str_of(kind), .id = gl_str_of(id)};
}

struct gl_guard at(const char *kind, const char *id, uint64_t rev)
{
    struct gl_guard g = guard(GL_GUARD_AT, kind, id);
    g.rev = rev;
    return g;
}

struct gl_guard absent(const char *kind, const char *id)
{
    return guard(GL_GUARD_ABSENT, kind, id);
}

struct gl_guard present(const char *kind, const char *id)
{
    return guard(GL_GUARD_PRESENT, kind, id);
}

struct gl_guard not_live(const char *kind, const char *id)
{
    return guard(GL_GUARD_NOT_LIVE, kind, id);
}

struct gl_guard owned(const char *kind, const char *id, const char *owner, uint64_t token)
{
    struct gl_guard g = guard(GL_GUARD_OWNED, kind, id);
    g.owner = gl_str_of(owner);
    g.token = token;
    return g;
}

struct gl_guard dead(gl_str session)
{
    struct gl_guard g = guard(GL_GUARD_DEAD, NULL, NULL);
    g.owner = session;
    return g;
}

struct gl_guard alive(gl_str session)
{
    struct gl_guard g = guard(GL_GUARD_ALIVE, NULL, NULL);
    g.owner = session;
    return g;
}

static struct gl_write write_of(enum gl_write_type type, const char *kind, const char *id)
{
    return (struct gl_write){.type = type, .kind = gl_str_of(kind), .id = gl_str_of(id)};
}

struct gl_write put(const char *kind, const char *id, uint64_t rev, const char *value)
{
    struct gl_write w = write_of(GL_WRITE_PUT, kind, id);
    w.rev = rev;
    w.value = gl_str_of(value);
    return w;
}

struct gl_write put_live(const char *kind, const char *id, uint64_t rev, const char *value)
{
    struct gl_write w = put(kind, id, rev, value);
    w.live = true;
    return w;
}

struct gl_write put_new(const char *kind, const char *id, uint64_t rev, const char *value)
{
    struct gl_write w = put(kind, id, rev, value);
    w.type = GL_WRITE_PUT_NEW;
    return w;
}

struct gl_write put_owned(const char *kind, const char *id, uint64_t rev, const char *owner,
                          uint64_t token)
{
    struct gl_write w = put(kind, id, rev, "{}");
    w.owner = gl_str_of(owner);
    w.token = token;
    return w;
}

struct gl_write put_bytes(const char *kind, const char *id, gl_str value)
{
    struct gl_write w = put(kind, id, 1, NULL);
    w.value = value;
    return w;
}

struct gl_write delete_record(const char *kind, const char *id)
{
    return write_of(GL_WRITE_DELETE, kind, id);
}

struct gl_write into_index(const char *index, int64_t score, const char *id)
{
    struct gl_write w = write_of(GL_WRITE_INDEX, index, id);
    w.score = score;
    return w;
}

struct gl_write out_of_index(const char *index, int64_t score, const char *id)
{
    struct gl_write w = write_of(GL_WRITE_UNINDEX, index, id);
    w.score = score;
    return w;
}

struct gl_write append(const char *kind, const char *id, int64_t seq, const char *value)
{
    struct gl_write w = write_of(GL_WRITE_LOG, kind, id);
    w.seq = seq;
    w.value = gl_str_of(value);
    return w;
}

struct gl_write trim(const char *kind, const char *id, int64_t below)
{
    struct gl_write w = write_of(GL_WRITE_LOG_TRIM, kind, id);
    w.seq = below;
    return w;
}

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

static void on_done(struct gl_store_req *req)
{
    struct contract_call *call = req->owner;
    assert_false(call->done); /* exactly once */
    call->done = true;
    call->order = ++call->c->done_n;
    keep_records(call->c, req);
    keep_others(call->c, req);
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

gl_str contract_session(struct contract *c, const char *node)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_open(
        c->store, &call->req,
        &(struct gl_session_wish){
            .node = gl_str_of(node), .nonce = GL_S("0123456789abcdef"), .ttl_ms = 30000});
    contract_wait(call);
    assert_int_equal(call->req.status, 0);
    c->session = call->req.session.id;
    c->tx_id = 0;
    return c->session;
}

int contract_renew(struct contract *c, gl_str session)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_renew(c->store, &call->req, session, 30000, (gl_str){0});
    contract_wait(call);
    return call->req.status;
}

int contract_dead(struct contract *c, gl_str session, bool *ret)
{
    struct contract_call *call = contract_call_new(c);
    c->store->ops->session_dead(c->store, &call->req, session, false);
    contract_wait(call);
    *ret = call->req.session_dead;
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

/* ---- checks ---- */

void check_value(struct contract *c, const char *kind, const char *id, const char *value)
{
    struct gl_record r = contract_get(c, kind, id);
    assert_int_not_equal(r.rev, 0);
    assert_string_equal(r.value.p, value); /* contract.c's copies end in NUL */
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
