/* Order across several connections: however commits are pipelined, the outcome is that of running
 * them one after the other. A random workload is compared with a model that applies each
 * transaction at its call. */
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "contract/maker_postgres.h"

enum { KEYS = 24, TXS = 1500, PER_TX = 4 };

struct model {
    uint64_t rev[KEYS]; /* 0: absent */
    int64_t log[KEYS];  /* last number */
    int64_t at[KEYS];   /* its score in the index; 0: absent */
};

struct plan {
    struct contract_call *call;
    int want;       /* status */
    size_t refused; /* guard */
};

static const char *name_of(struct contract *c, int key)
{
    return gl_str_fmt(&c->arena, "k%02d", key).p;
}

/* One transaction on some keys, mostly with correct guards, and its effect on the model. */
struct making {
    struct contract *c;
    struct model *m;
    struct gl_rng *rng;
    struct gl_guard guards[PER_TX * 2];
    struct gl_write writes[PER_TX * 8];
    size_t guards_n, writes_n;
};

static void touch(struct making *t, int key, uint64_t number)
{
    struct model *m = t->m;
    const char *id = name_of(t->c, key);
    t->guards[t->guards_n++] = m->rev[key] == 0 ? absent("job", id) : at("job", id, m->rev[key]);
    if (gl_rng_below(t->rng, 6) == 0) {
        t->writes[t->writes_n++] = delete_record("job", id);
        m->rev[key] = 0;
    } else {
        m->rev[key] = number + 1;
        t->writes[t->writes_n++] = put("job", id, m->rev[key], id);
    }
    t->writes[t->writes_n++] = append("events", id, ++m->log[key], id);
    if (m->at[key] != 0) {
        t->writes[t->writes_n++] = out_of_index("due", m->at[key], id);
    }
    m->at[key] = gl_rng_range(t->rng, 1, 5);
    t->writes[t->writes_n++] = into_index("due", m->at[key], id);
}

static void begin(struct making *t, struct plan *p, uint64_t number)
{
    t->guards_n = t->writes_n = 0;
    if (gl_rng_below(t->rng, 5) == 0) { /* refused: it has no effect */
        int key = (int)gl_rng_below(t->rng, KEYS);
        const char *id = name_of(t->c, key);
        t->guards[t->guards_n++] = not_live("job", id);
        t->guards[t->guards_n++] = at("job", id, t->m->rev[key] + 1000000);
        t->writes[t->writes_n++] = put("job", id, 1, "wrong");
        t->writes[t->writes_n++] = append("events", id, t->m->log[key] + 1, "wrong");
        p->want = GL_E_CONFLICT;
        p->refused = 1;
    } else {
        size_t n = 1 + (size_t)gl_rng_below(t->rng, PER_TX);
        int first = (int)gl_rng_below(t->rng, KEYS);
        for (size_t i = 0; i < n; i++) {
            touch(t, (first + (int)i * 7) % KEYS, number);
        }
        p->want = 0;
    }
    p->call = contract_start(t->c, t->guards, t->guards_n, t->writes, t->writes_n);
}

static void check_model(struct contract *c, const struct model *m)
{
    for (int key = 0; key < KEYS; key++) {
        const char *id = name_of(c, key);
        assert_int_equal(contract_get(c, "job", id).rev, m->rev[key]);
        const struct gl_store_req *log = contract_log(c, "events", id, 0, TXS);
        assert_int_equal(log->log_n, m->log[key]);
    }
    struct gl_range all = {GL_S("due"), INT64_MIN, INT64_MAX, 0, {0}, 1000};
    const struct gl_store_req *due = contract_range(c, &all);
    size_t n = 0;
    for (int key = 0; key < KEYS; key++) {
        n += m->at[key] != 0;
    }
    assert_int_equal(due->entries_n, n);
}

static void pipelined_commits_end_as_if_one_after_the_other(void **state)
{
    const struct contract_maker *maker = &contract_maker_postgres;
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct contract c;
        struct gl_rng rng;
        struct model *m = gl_mem_alloc(sizeof(*m));
        struct plan *plans = gl_mem_alloc(TXS * sizeof(*plans));
        contract_begin(&c, maker);
        contract_session(&c, "a");
        gl_rng_init(&rng, seed);
        struct making t = {.c = &c, .m = m, .rng = &rng};
        for (uint64_t i = 0; i < TXS; i++) {
            begin(&t, &plans[i], i);
        }
        contract_wait(plans[TXS - 1].call);
        for (size_t i = 0; i < TXS; i++) {
            const struct gl_store_req *req = &plans[i].call->req;
            assert_true(plans[i].call->done);
            assert_int_equal(req->status, plans[i].want);
            assert_int_equal(req->refused, plans[i].refused);
        }
        check_model(&c, m);
        contract_end(&c);
        gl_mem_free(plans);
        gl_mem_free(m);
    }
}

/* Two clients insert the same new keys in opposite order: the server detects the deadlock, and the
 * callers do not notice. */
static void commits_that_lock_each_other_out_are_tried_again(void **state)
{
    enum { N = 40, KEYS_EACH = 30 };
    struct contract c;
    (void)state;
    contract_begin(&c, &contract_maker_postgres);
    struct contract *both[2] = {&c, contract_other(&c)};
    contract_session(both[0], "a");
    contract_session(both[1], "b");
    struct contract_call *calls[2 * N];
    struct gl_write writes[KEYS_EACH];
    for (int i = 0; i < 2 * N; i++) {
        for (int k = 0; k < KEYS_EACH; k++) {
            int key = i % 2 == 0 ? k : KEYS_EACH - 1 - k;
            writes[k] = into_index("due", key, gl_str_fmt(&c.arena, "%d-%d", i / 2, key).p);
            if (k % 3 == 0) {
                writes[k] = put_new("flow", gl_str_fmt(&c.arena, "%d-%d", i / 2, key).p, 1, "{}");
            }
        }
        calls[i] = contract_start(both[i % 2], NO_GUARDS, writes, KEYS_EACH);
    }
    for (int i = 0; i < 2 * N; i++) {
        contract_wait(calls[i]);
        assert_int_equal(calls[i]->req.status, 0);
    }
    contract_end(&c);
}

static int start(void **state)
{
    (void)state;
    contract_maker_postgres.start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    contract_maker_postgres.stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined_commits_end_as_if_one_after_the_other),
        cmocka_unit_test(commits_that_lock_each_other_out_are_tried_again),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
