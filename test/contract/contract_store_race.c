/* Several clients of one store at once: each event happens to exactly one of them. A maker with one
 * client races against itself. */
#include <stdio.h>

#include "contract/contract.h"

enum { CLIENTS = 8, LONG_MS = 600000 };

struct racers {
    struct contract *clients[CLIENTS];
};

/* Clients with sessions. If only the newest session lives, they share one. */
static struct racers line_up(struct contract *c)
{
    static const char *const names[CLIENTS] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};
    struct racers r;
    gl_str together = contract_session_for(c, "host", LONG_MS, "{}");
    for (size_t i = 0; i < CLIENTS; i++) {
        r.clients[i] = contract_other(c);
        r.clients[i]->session = together;
        r.clients[i]->tx_id = i << 32; /* in one session, without repeating a number */
        if (c->store->ops->shared) {
            contract_session_for(r.clients[i], names[i], LONG_MS, "{}");
        }
    }
    return r;
}

/* Numbers ascend within a session: with a shared one they are not used. */
static void forget_numbers(struct contract *c)
{
    if (!c->store->ops->shared) {
        c->tx_id = UINT64_MAX; /* the next one has id 0 */
    }
}

static struct contract_call *start(struct contract *c, const struct gl_guard *guards,
                                   size_t guards_n, const struct gl_write *writes, size_t writes_n)
{
    forget_numbers(c);
    return contract_start(c, guards, guards_n, writes, writes_n);
}

static char *id_of(struct contract *c, const char *prefix, int n)
{
    char *id = gl_arena_alloc(&c->arena, 16);
    (void)snprintf(id, 16, "%s%04d", prefix, n);
    return id;
}

static void each_of_a_thousand_keys_has_one_winner(void **state)
{
    struct contract *c = *state;
    struct racers r = line_up(c);
    enum { KEYS = 1000, AT_ONCE = 100 };
    size_t won[CLIENTS] = {0};
    for (int first = 0; first < KEYS; first += AT_ONCE) {
        struct contract_call *calls[AT_ONCE][CLIENTS];
        for (int k = 0; k < AT_ONCE; k++) {
            char *id = id_of(c, "k", first + k);
            for (size_t i = 0; i < CLIENTS; i++) {
                size_t who = (i + (size_t)k) % CLIENTS; /* each client is first at times */
                calls[k][who] =
                    start(r.clients[who], GUARDS(absent("key", id)),
                          WRITES(put("key", id, who + 1, "{}"), into_index("keys", first + k, id)));
            }
        }
        for (int k = 0; k < AT_ONCE; k++) {
            size_t winner = CLIENTS;
            for (size_t i = 0; i < CLIENTS; i++) {
                contract_wait(calls[k][i]);
                if (calls[k][i]->req.status == 0) {
                    assert_int_equal(winner, CLIENTS); /* only one wins */
                    winner = i;
                    continue;
                }
                assert_int_equal(calls[k][i]->req.status, GL_E_CONFLICT);
                assert_int_equal(calls[k][i]->req.refused, 0);
            }
            assert_in_range(winner, 0, CLIENTS - 1);
            assert_int_equal(contract_get(c, "key", id_of(c, "k", first + k)).rev, winner + 1);
            won[winner]++;
        }
    }
    struct gl_range all = {GL_S("keys"), INT64_MIN, INT64_MAX, 0, {0}, 2 * KEYS};
    assert_int_equal(contract_range(c, &all)->entries_n, KEYS);
    size_t total = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        total += won[i];
    }
    assert_int_equal(total, KEYS);
}

static void a_counter_loses_no_step(void **state)
{
    struct contract *c = *state;
    struct racers r = line_up(c);
    enum { STEPS = 200 };
    assert_int_equal(contract_commit(c, NO_GUARDS, WRITES(put("counter", "n", 1, "{}"))), 0);
    uint64_t seen = 1, applied = 0;
    while (seen < STEPS) { /* all read the same revision and try to write the next */
        struct contract_call *calls[CLIENTS];
        for (size_t i = 0; i < CLIENTS; i++) {
            calls[i] = start(r.clients[i], GUARDS(at("counter", "n", seen)),
                             WRITES(put("counter", "n", seen + 1, "{}"),
                                    append("steps", "n", (int64_t)seen, "{}")));
        }
        size_t winners = 0;
        for (size_t i = 0; i < CLIENTS; i++) {
            contract_wait(calls[i]);
            winners += calls[i]->req.status == 0;
        }
        assert_int_equal(winners, 1);
        applied++;
        seen = contract_get(c, "counter", "n").rev;
    }
    assert_int_equal(applied, STEPS - 1);
    assert_int_equal(contract_log(c, "steps", "n", 0, 2 * STEPS)->log_n, STEPS - 1);
}

/* ---- opening at once ---- */

static void openings_at_once_have_different_incarnations(void **state)
{
    struct contract *c = *state;
    struct contract *clients[CLIENTS];
    struct contract_call *calls[CLIENTS];
    struct gl_session_options wish = {GL_S("a"), GL_S("0123456789abcdef"), LONG_MS, GL_S("{}")};
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = contract_other(c);
        calls[i] = contract_call_new(clients[i]);
        clients[i]->store->ops->session_open(clients[i]->store, &calls[i]->req, &wish);
    }
    bool seen[CLIENTS + 1] = {false};
    size_t alive_n = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        bool is_dead;
        contract_wait(calls[i]);
        assert_int_equal(calls[i]->req.status, 0);
        assert_in_range(calls[i]->req.session.incarnation, 1, CLIENTS);
        assert_false(seen[calls[i]->req.session.incarnation]);
        seen[calls[i]->req.session.incarnation] = true;
        for (size_t k = 0; i == CLIENTS - 1 && k < CLIENTS; k++) {
            assert_int_equal(contract_dead(c, calls[k]->req.session.id, &is_dead), 0);
            alive_n += !is_dead;
        }
    }
    assert_int_equal(alive_n, 1);
}

int main(void)
{
    const struct contract_test tests[] = {
        CONTRACT_TEST(each_of_a_thousand_keys_has_one_winner),
        CONTRACT_TEST(a_counter_loses_no_step),
        CONTRACT_TEST(openings_at_once_have_different_incarnations),
    };
    return contract_run(tests, GL_COUNT(tests));
}
