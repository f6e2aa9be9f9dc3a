/* store_full.c - the state "full", and the test write that ends it. */
#include "core/cluster/store_full.h"

#include "base/check.h"
#include "base/rng.h"
#include "core/component.h"

enum {
    /* Sizes of the test write, by measurement: see bench/RESULTS.md. */
    SHARED_BYTES =
        16 << 10,          /* PostgreSQL needs them; Redis any, and counts them as memory in use */
    OWN_BYTES = 256 << 10, /* SQLite needs them: its log has pages in reserve */
    QUIET_MS_MIN = 1500,   /* longer than the pause before a failed commit is retried */
    QUIET_MS_MAX = 30000,
    SOON_FACTOR = 10, /* full again within this many quiet periods: test half as often */
};

static void mark_full(struct gl_core *c)
{
    struct gl_store_full_state *r = &c->room;
    bool is_soon = r->opened_at != 0 && c->now - r->opened_at < r->quiet_ms * SOON_FACTOR;

    GL_ASSERT(!r->is_shut);
    GL_ASSERT(r->opened_at <= c->now);
    r->quiet_ms = !is_soon                         ? QUIET_MS_MIN
                  : r->quiet_ms * 2 < QUIET_MS_MAX ? r->quiet_ms * 2
                                                   : QUIET_MS_MAX;
    r->is_shut = true;
    r->since = c->now;
    GL_MARK(c->trace, "room.shut");
    GL_ASSERT(r->quiet_ms >= QUIET_MS_MIN);
    GL_ASSERT(r->quiet_ms <= QUIET_MS_MAX);
}

void gl_store_full_on_refused(struct gl_core *c, gl_str why)
{
    struct gl_store_full_state *r = &c->room;

    if (!gl_components_are_on(c)) {
        return;
    }
    if (!r->is_shut) {
        mark_full(c);
    }
    gl_core_set(c, &r->why, why);
    r->due = GL_PLANT(99) ? INT64_MAX : c->now + r->quiet_ms; /* planted: never */
    GL_ASSERT(r->is_shut);
    GL_ASSERT(r->since <= c->now);
    GL_ASSERT(r->due > c->now);
}

void gl_store_full_suspect(struct gl_core *c)
{
    struct gl_store_full_state *r = &c->room;

    GL_ASSERT(c->shared);
    GL_ASSERT(gl_components_are_on(c));
    if (!r->is_shut && r->call == 0 && r->due == INT64_MAX) {
        r->is_doubted = true;
        r->due = c->now;
    }
}

/* ---- the test write ---- */

/* Random bytes, because some engines compress their data. */
static gl_str test_value(struct gl_core *c)
{
    uint32_t n = c->shared ? SHARED_BYTES : OWN_BYTES;
    char *bytes = gl_arena_alloc(c->out->arena, n);
    struct gl_rng rng;

    gl_rng_init(&rng, 1);
    gl_rng_fill(&rng, bytes, n);
    return (gl_str){.p = bytes, .n = n};
}

static void send_test_write(struct gl_core *c, bool is_removing)
{
    struct gl_write write = {.type = is_removing ? GL_WRITE_DELETE : GL_WRITE_PUT,
                             .kind = GL_S("room"),
                             .id = c->node,
                             .rev = 1};

    GL_ASSERT(c->room.call == 0);
    GL_ASSERT(is_removing ? c->room.is_left : c->room.is_shut || c->room.is_doubted);
    if (!is_removing) {
        write.value = test_value(c);
        write.value.n = GL_PLANT(101) ? 100 : write.value.n; /* planted: it fits anywhere */
    }
    c->room.is_removing = is_removing;
    c->room.call =
        gl_component_commit(c, GL_COMPONENT_ROOM, gl_component_tx(c, NULL, 0, &write, 1));
    GL_ASSERT(c->room.call == c->last_call);
}

static gl_ms due(const struct gl_core *c)
{
    return c->room.call == 0 ? c->room.due : INT64_MAX;
}

static void on_time(struct gl_core *c)
{
    struct gl_store_full_state *r = &c->room;

    GL_ASSERT(r->call == 0);
    r->due = INT64_MAX; /* the answer sets it */
    if (r->is_shut || r->is_doubted) {
        send_test_write(c, false);
    } else if (r->is_left) {
        send_test_write(c, true);
    }
}

static void on_test_written(struct gl_core *c, int64_t code)
{
    struct gl_store_full_state *r = &c->room;

    GL_ASSERT(r->call == 0);
    GL_ASSERT(!r->is_removing);
    r->is_left = r->is_left || code == 0 || code == GL_E_UNKNOWN;
    if (code == 0) {
        r->due = GL_PLANT(100) ? INT64_MAX : c->now; /* to delete it; planted: it stays */
        r->opened_at = r->is_shut ? c->now : r->opened_at;
        r->is_shut = false;
    }
    GL_ASSERT(GL_IMPLIES(code == 0, r->is_left)); /* or it would never be deleted */
    GL_ASSERT(GL_IMPLIES(code != 0, r->due > c->now));
}

static void on_test_removed(struct gl_core *c, int64_t code)
{
    GL_ASSERT(c->room.is_removing);
    GL_ASSERT(c->room.call == 0);
    if (code == 0) {
        c->room.is_left = false;
        c->room.due = INT64_MAX;
    }
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_store_full_state *r = &c->room;

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    GL_ASSERT(ev->answer.by == GL_COMPONENT_ROOM);
    if (ev->answer.number != r->call) {
        return;
    }
    r->call = 0;
    if (!gl_components_are_on(c)) {
        return;
    }
    r->due = c->now + (r->quiet_ms > 0 ? r->quiet_ms : QUIET_MS_MIN); /* unless set below */
    r->is_doubted = false;
    if (r->is_removing) {
        on_test_removed(c, ev->answer.code);
    } else {
        on_test_written(c, ev->answer.code);
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(gl_store_full_state, member, type, 0, "")

static const struct gl_field fields[] = {
    F(call, U64),     F(due, I64),         F(since, I64),    F(opened_at, I64),    F(quiet_ms, I64),
    F(is_shut, BOOL), F(is_doubted, BOOL), F(is_left, BOOL), F(is_removing, BOOL), F(why, STR),
};
#undef F

static const struct gl_schema schema = {.name = "room",
                                        .bytes = sizeof(struct gl_store_full_state),
                                        .fields = fields,
                                        .fields_n = GL_COUNT(fields)};

static void save(const struct gl_core *c, struct gl_buf *out)
{
    gl_snapshot_put(out, "room", &schema, &c->room);
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_store_full_state read;
    gl_str why = c->room.why;
    int rc = gl_snapshot_get(l, &schema, &read);

    if (rc == 0) {
        c->room = read;
        c->room.why = why;
        gl_core_set(c, &c->room.why, read.why);
    }
    return rc;
}

const struct gl_component gl_store_full = {.name = "room",
                                           .due = due,
                                           .on_time = on_time,
                                           .on_answer = on_answer,
                                           .save = save,
                                           .restore = restore};
