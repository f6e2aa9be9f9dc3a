#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* All makers; a new one is one line here. */
static const struct contract_maker *const makers[] = {
    &contract_maker_memory, &contract_maker_memory_shared, &contract_maker_sqlite,
    &contract_maker_redis,  &contract_maker_sentinel,      &contract_maker_postgres,
};

/* ---- events of the store ---- */

static void on_woken(void *owner, gl_str context, gl_str word)
{
    struct contract *c = owner;
    gl_buf_fmt(&c->words, "%.*s/%.*s ", GL_STR_ARG(context), GL_STR_ARG(word));
}

static void on_met(void *owner, gl_str identity)
{
    struct contract *c = owner;
    assert_int_not_equal(identity.n, 0);
    c->met_n++;
}

static void on_changed(void *owner, const char *why)
{
    struct contract *c = owner;
    assert_non_null(why);
    c->changed_n++;
}

static void listen(struct contract *c)
{
    c->store->ops->listen(c->store,
                          &(struct gl_store_events){
                              .owner = c, .woken = on_woken, .met = on_met, .changed = on_changed});
}

/* ---- running ---- */

void contract_adopt(struct contract *c, const struct contract_maker *maker, void *world,
                    struct gl_store *store)
{
    *c = (struct contract){.maker = maker, .world = world, .store = store};
    listen(c);
}

void contract_begin(struct contract *c, const struct contract_maker *maker)
{
    void *world = NULL;
    struct gl_store *store = maker->open(&world);
    contract_adopt(c, maker, world, store);
}

struct contract *contract_other(struct contract *c)
{
    struct contract *other = gl_mem_alloc(sizeof(*other));
    *other = (struct contract){
        .maker = c->maker, .world = c->world, .store = c->store, .next = c->others};
    c->others = other;
    if (c->maker->open_other != NULL) {
        other->store = c->maker->open_other(c->world);
        listen(other);
    }
    return other;
}

void contract_reopen(struct contract *c)
{
    assert_null(c->others); /* a reopened store has one client */
    c->store = c->maker->reopen(c->world);
    listen(c);
}

void contract_forget(struct contract *c)
{
    while (c->others != NULL) {
        struct contract *other = c->others;
        c->others = other->next;
        gl_arena_done(&other->arena);
        gl_buf_done(&other->words);
        gl_mem_free(other);
    }
    gl_arena_done(&c->arena);
    gl_buf_done(&c->words);
}

void contract_end(struct contract *c)
{
    c->maker->close(c->world);
    contract_forget(c);
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

/* GLIA_CONTRACT_MAKER restricts a run to one maker, for work on that maker. */
static bool is_wanted(const struct contract_maker *maker)
{
    const char *only = getenv("GLIA_CONTRACT_MAKER");
    if (only == NULL) {
        return !maker->rare || getenv("GLIA_CONTRACT_FULL") != NULL;
    }
    return strcmp(only, maker->name) == 0;
}

static int run_maker(const struct contract_maker *maker, const struct contract_test *tests,
                     size_t n)
{
    struct CMUnitTest *all = gl_mem_alloc(n * sizeof(*all));
    struct gl_arena names = {0};
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct CMUnitTest){
            .name = gl_str_fmt(&names, "%s: %s", maker->name, tests[i].name).p,
            .test_func = tests[i].run,
            .setup_func = set_up,
            .teardown_func = tear_down,
            .initial_state = (void *)(uintptr_t)maker,
        };
    }
    if (maker->start != NULL) {
        maker->start();
    }
    int failed = _cmocka_run_group_tests(maker->name, all, n, NULL, NULL);
    if (maker->stop != NULL) {
        maker->stop();
    }
    gl_arena_done(&names);
    gl_mem_free(all);
    return failed;
}

int contract_run(const struct contract_test *tests, size_t n)
{
    int failed = 0;
    for (size_t i = 0; i < GL_COUNT(makers); i++) {
        failed += is_wanted(makers[i]) ? run_maker(makers[i], tests, n) : 0;
    }
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
