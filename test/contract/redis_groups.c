/* Transactions that wait together are sent as one MULTI: the outcome of each of them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "contract/maker_redis.h"

enum { N = 150 };

struct fixture {
    struct redis_server server;
    struct redis_world world;
    struct contract c;
    struct gl_arena arena;
};

static int set_up(void **state)
{
    struct fixture *f = gl_mem_alloc(sizeof(*f));
    redis_server_start(&f->server, "user plain on >plain ~glia:* &glia:* +@all -multi\n");
    redis_world_init(&f->world, &f->server);
    (void)snprintf(f->world.options, sizeof(f->world.options), "?timeout_ms=60000");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    redis_world_done(&f->world);
    contract_forget(&f->c);
    redis_server_stop(&f->server);
    gl_arena_done(&f->arena);
    gl_mem_free(f);
    return 0;
}

static struct contract *begin(struct fixture *f)
{
    contract_adopt(&f->c, &contract_maker_redis, &f->world, redis_world_open(&f->world));
    (void)contract_session(&f->c, "a");
    return &f->c;
}

/* The number of calls of a command. */
static long calls_of(struct fixture *f, const char *command)
{
    char key[64];
    gl_str info = redis_server_do(&f->server, &f->arena, "INFO commandstats");
    (void)snprintf(key, sizeof(key), "cmdstat_%s:calls=", command);
    const char *at = strstr(gl_str_c(&f->arena, info), key);
    return at != NULL ? strtol(at + strlen(key), NULL, 10) : 0;
}

static const char *name(struct fixture *f, int i)
{
    return gl_str_c(&f->arena, gl_str_fmt(&f->arena, "%d", i));
}

/* All at once. Every seventh has a guard that does not hold. */
static void start_all(struct fixture *f, struct contract_call *calls[static N])
{
    for (int i = 0; i < N; i++) {
        struct gl_guard g = i % 7 == 3 ? at("job", "none", 1) : absent("job", name(f, i));
        calls[i] = contract_start(&f->c, GUARDS(g), WRITES(put("job", name(f, i), 1, "{}")));
    }
    contract_wait(calls[N - 1]);
}

static int wanted(int i)
{
    return i % 7 == 3 ? GL_E_CONFLICT : 0;
}

static void each_of_a_group_has_its_own_outcome(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    struct contract_call *calls[N];
    start_all(f, calls);
    for (int i = 0; i < N; i++) {
        assert_true(calls[i]->done);
        assert_int_equal(calls[i]->req.status, wanted(i));
        assert_int_equal(contract_get(c, "job", name(f, i)).rev, wanted(i) == 0 ? 1 : 0);
    }
    assert_in_range(calls_of(f, "exec"), 1, N / 10);
}

static void what_is_alone_is_no_group(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    for (uint64_t i = 1; i < 5; i++) {
        assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("job", "a", i, "{}"))), 0);
    }
    assert_int_equal(calls_of(f, "multi"), 0);
}

static void a_full_server_writes_nothing_of_a_group(void **state)
{
    struct fixture *f = *state;
    struct contract *c = begin(f);
    struct contract_call *calls[N];
    (void)redis_server_do(&f->server, &f->arena, "CONFIG SET maxmemory 1mb");
    start_all(f, calls);
    for (int i = 0; i < N; i++) {
        assert_int_equal(calls[i]->req.status, GL_E_UNAVAILABLE);
        assert_non_null(strstr(calls[i]->req.why.text, "maxmemory"));
        assert_int_equal(contract_get(c, "job", name(f, i)).rev, 0);
    }
    (void)redis_server_do(&f->server, &f->arena, "CONFIG SET maxmemory 0");
    start_all(f, calls);
    assert_int_equal(calls[N - 1]->req.status, wanted(N - 1));
}

/* The server then carries them out one by one, although the client expects a group. */
static void without_the_right_to_multi_nothing_is_taken_for_what_it_is_not(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(f->world.before, sizeof(f->world.before), "plain:plain@");
    struct contract *c = begin(f);
    struct contract_call *calls[N];
    int unknown = 0;
    start_all(f, calls);
    for (int i = 0; i < N; i++) {
        int status = calls[i]->req.status;
        if (status == GL_E_UNKNOWN) {
            unknown++;
            status = contract_resolve(c, c->session, calls[i]->tx.id);
        }
        assert_int_equal(contract_get(c, "job", name(f, i)).rev, status == 0 ? 1 : 0);
    }
    assert_true(unknown > 0);
    struct contract_call *last = NULL;
    for (uint64_t i = 1; i < 100; i++) {
        last = contract_start(c, NO_GUARDS, WRITES(put("job", "z", i, "{}")));
    }
    contract_wait(last);
    assert_int_equal(last->req.status, 0);
    assert_int_equal(c->changed_n, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(each_of_a_group_has_its_own_outcome),
        T(what_is_alone_is_no_group),
        T(a_full_server_writes_nothing_of_a_group),
        T(without_the_right_to_multi_nothing_is_taken_for_what_it_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
