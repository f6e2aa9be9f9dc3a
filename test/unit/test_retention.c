/* Retention, call by call: the test plays a store that answers with errors and damaged records,
 * which the simulator's store does not do here. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/check.h"
#include "core/core.h"
#include "core/effect.h"
#include "model/gc_state.h"

enum { CALLS_MAX = 64, STEPS_MAX = 50000 };

#define JOB "01J00000000000000000000001"
#define HASH "000000000000000000000000000000000000000000000000000000000000000f"

struct call { /* the parts of a call that the test looks at */
    uint64_t number;
    enum gl_core_call_type type;
    char what[32]; /* the kind or index that is read */
    enum gl_write_type write;
    uint64_t rev;
    bool has_value;
};

struct rig {
    struct gl_trace trace;
    struct gl_core *core;
    gl_ms now;
    struct call calls[CALLS_MAX]; /* not answered yet */
    size_t calls_n;
    unsigned replies_n, commits_n, restamps_n, deletes_n, condemned_n, whole_n;
    int64_t reply_code;
};

static void note_call(struct rig *r, const struct gl_core_call *call)
{
    struct call *x = &r->calls[r->calls_n++];
    gl_str what = call->keys_n > 0           ? call->keys[0].kind
                  : call->listing.kind.n > 0 ? call->listing.kind
                                             : call->range.index;

    assert_true(r->calls_n <= CALLS_MAX);
    *x = (struct call){.number = call->number, .type = call->type};
    (void)snprintf(x->what, sizeof(x->what), "%.*s", GL_STR_ARG(what));
    if (call->tx != NULL) {
        x->write = call->tx->writes[0].type;
        x->rev = call->tx->writes[0].rev;
        x->has_value = call->tx->writes[0].value.n > 0;
    }
}

static void feed(struct rig *r, struct gl_event ev)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};

    ev.now = r->now;
    ev.context = GL_S("default");
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        const struct gl_effect *e = &out.items[i];

        if (e->type == GL_FX_REPLY) {
            r->replies_n++;
            r->reply_code = e->code;
        }
        if (e->call != NULL && e->call->by == GL_COMPONENT_RETENTION) {
            note_call(r, e->call);
        }
    }
}

static struct call pop(struct rig *r)
{
    struct call first = r->calls[0];

    memmove(r->calls, r->calls + 1, --r->calls_n * sizeof(first));
    return first;
}

static struct rig *begin(struct rig *r, bool shared)
{
    struct gl_core_pool pool = {.name = GL_S("default"), .slots = 1};
    struct gl_core_config config = {.context = GL_S("default"),
                                    .pools = &pool,
                                    .pools_n = 1,
                                    .shared = shared,
                                    .node = GL_S("us"),
                                    .ttl_ms = 1000000000,
                                    .trace = &r->trace};

    r->now = 1000000000;
    r->core = gl_core_new(&config);
    feed(r, (struct gl_event){.type = GL_EV_SESSION,
                              .session = {.session = GL_S("us#1.x"), .number = 1}});
    feed(r, (struct gl_event){.type = GL_EV_CLEAN,
                              .clean = {.request = 7, .keep_for = 0, .keep_jobs = -1}});
    return r;
}

/* Answer calls until the request is answered; `answer` fills in what the store has. */
static void run(struct rig *r,
                void (*answer)(struct rig *r, const struct call *x, struct gl_event_answer *a))
{
    for (unsigned i = 0; r->replies_n == 0 && i < STEPS_MAX; i++) {
        struct gl_event ev = {.type = GL_EV_ANSWER};
        struct call x;

        assert_true(r->calls_n > 0);
        x = pop(r);
        r->commits_n += x.type == GL_CORE_CALL_COMMIT;
        r->restamps_n += x.type == GL_CORE_CALL_RESTAMP;
        r->deletes_n += x.type == GL_CORE_CALL_COMMIT && x.write == GL_WRITE_DELETE;
        ev.answer = (struct gl_event_answer){.number = x.number, .by = GL_COMPONENT_RETENTION};
        answer(r, &x, &ev.answer);
        feed(r, ev);
    }
    gl_core_free(r->core);
    assert_int_equal(r->replies_n, 1);
}

/* ---- a store that cannot remove ---- */

static struct gl_event_entry ended = {.score = 5, .id = {.p = JOB, .n = sizeof(JOB) - 1}};

static void answer_drop(struct rig *r, const struct call *x, struct gl_event_answer *a)
{
    static struct gl_event_record job = {
        .kind = {.p = "job", .n = 3}, .id = {.p = JOB, .n = sizeof(JOB) - 1}, .rev = 3};

    job.value = GL_S("{\"status\":\"completed\",\"flow\":\"aa\",\"ended_at\":5}");
    if (x->type == GL_CORE_CALL_RANGE && strcmp(x->what, "ended") == 0 && r->commits_n == 0) {
        a->entries = (struct gl_items){.items = &ended, .n = 1};
    } else if (x->type == GL_CORE_CALL_GET && strcmp(x->what, "job") == 0) {
        a->records = (struct gl_items){.items = &job, .n = 1};
    } else if (x->type == GL_CORE_CALL_COMMIT) {
        a->code = GL_E_DAMAGED;
        a->why = GL_S("the database is damaged");
    }
}

/* The damage is the store's: the same transaction would fail again, without end. */
static void a_removal_that_meets_damage_is_not_repeated_at_once(void **state)
{
    struct rig r = {0};

    (void)state;
    run(begin(&r, false), answer_drop);
    assert_int_equal(r.commits_n, 1);
    assert_int_equal(gl_err_code((int)r.reply_code), GL_E_DAMAGED);
}

/* ---- a record that says too much ---- */

static void answer_long(struct rig *r, const struct call *x, struct gl_event_answer *a)
{
    static struct gl_event_record job = {
        .kind = {.p = "job", .n = 3}, .id = {.p = JOB, .n = sizeof(JOB) - 1}, .rev = 3};

    answer_drop(r, x, a);
    a->code = 0;
    job.value = GL_S("{\"status\":\"completed\",\"flow\":\"aa\",\"ended_at\":5,"
                     "\"last_seq\":4611686018427387904}");
    if (x->type == GL_CORE_CALL_GET && strcmp(x->what, "job") == 0) {
        a->records = (struct gl_items){.items = &job, .n = 1};
    }
}

/* Its events are removed page by page, but not for ever. */
static void a_job_with_endless_events_is_removed(void **state)
{
    struct rig r = {0};

    (void)state;
    run(begin(&r, false), answer_long);
    assert_int_equal(r.reply_code, 0);
    assert_true(r.commits_n > 1);
}

/* ---- damaged garbage on a shared store ---- */

static struct gl_event_record damaged_thing(const char *kind)
{
    return (struct gl_event_record){
        .kind = gl_str_of(kind), .id = GL_S(HASH), .rev = GL_GC_WHOLE, .damaged = true};
}

static void answer_garbage(struct rig *r, const struct call *x, struct gl_event_answer *a,
                           const char *kind)
{
    static struct gl_event_record thing;

    thing = damaged_thing(kind);
    if ((x->type == GL_CORE_CALL_LIST || x->type == GL_CORE_CALL_GET) &&
        strcmp(x->what, kind) == 0) {
        a->records = (struct gl_items){.items = &thing, .n = 1};
    } else if (x->type == GL_CORE_CALL_RESTAMP) { /* as node/component_calls.c answers */
        a->code = GL_E_DAMAGED;
        a->why = GL_S("the record is damaged");
    } else if (x->type == GL_CORE_CALL_COMMIT && x->rev == GL_GC_CONDEMNED) {
        assert_true(x->has_value);
        r->condemned_n++;
    } else if (x->type == GL_CORE_CALL_COMMIT && x->rev == GL_GC_WHOLE) {
        r->whole_n++;
    }
}

static void answer_blob(struct rig *r, const struct call *x, struct gl_event_answer *a)
{
    answer_garbage(r, x, a, "blob");
}

static void answer_flow(struct rig *r, const struct call *x, struct gl_event_answer *a)
{
    answer_garbage(r, x, a, "flow");
    if (x->type == GL_CORE_CALL_LIST && strcmp(x->what, "flow") == 0 && r->deletes_n > 0) {
        a->records = (struct gl_items){0}; /* gone when blobs are looked at */
    }
}

static void a_damaged_blob_that_nothing_names_is_removed(void **state)
{
    struct rig r = {0};

    (void)state;
    run(begin(&r, true), answer_blob);
    assert_int_equal(r.condemned_n, 1);
    assert_int_equal(r.deletes_n, 1);
    assert_int_equal(r.whole_n, 0);
}

static void a_damaged_flow_that_no_job_names_is_removed(void **state)
{
    struct rig r = {0};

    (void)state;
    run(begin(&r, true), answer_flow);
    assert_int_equal(r.restamps_n, 1);
    assert_int_equal(r.condemned_n, 1);
    assert_int_equal(r.deletes_n, 1);
    assert_int_equal(r.whole_n, 0);
}

/* A job that names it was submitted between the two looks. */
static void answer_flow_used(struct rig *r, const struct call *x, struct gl_event_answer *a)
{
    static gl_str name = {.p = HASH, .n = sizeof(HASH) - 1};

    answer_flow(r, x, a);
    if (x->type == GL_CORE_CALL_LIST && strcmp(x->what, "job") == 0 && r->condemned_n > 0) {
        a->names = (struct gl_strs){.items = &name, .n = 1};
    }
}

/* Making it WHOLE would give a text that is lost a checksum that is right. */
static void a_damaged_flow_is_never_made_whole_again(void **state)
{
    struct rig r = {0};

    (void)state;
    run(begin(&r, true), answer_flow_used);
    assert_int_equal(r.condemned_n, 1);
    assert_int_equal(r.deletes_n, 0);
    assert_int_equal(r.whole_n, 0);
    assert_int_equal(r.restamps_n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removal_that_meets_damage_is_not_repeated_at_once),
        cmocka_unit_test(a_job_with_endless_events_is_removed),
        cmocka_unit_test(a_damaged_blob_that_nothing_names_is_removed),
        cmocka_unit_test(a_damaged_flow_that_no_job_names_is_removed),
        cmocka_unit_test(a_damaged_flow_is_never_made_whole_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
