/* check_full.c - what nodes publish about a store without room: a node that was refused something
 * reports room again only if there was room meanwhile, even if small writes fit all the time; when
 * the history is over, no node still reports that the store is full, and none that lives has left
 * its test record. */
#include "base/check.h"
#include "base/mem.h"
#include "core/event.h"
#include "sim/sim_checks.h"

struct reporter {
    const struct sim_disk_session *session;
    gl_ms since;   /* when it first reported that the store is full; 0: it does not */
    bool has_left; /* it has written its test record and not deleted it */
};

struct full_state {
    struct reporter *all;
    size_t n, cap;
};

static struct reporter *reporter_of(struct full_state *s, const struct sim_disk_session *session)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->all[i].session == session) {
            return &s->all[i];
        }
    }
    if (s->n == s->cap) {
        s->cap = s->cap * 2 + 16;
        s->all = gl_mem_realloc(s->all, s->cap * sizeof(*s->all));
    }
    s->all[s->n] = (struct reporter){.session = session};
    return &s->all[s->n++];
}

static bool reports_full(const struct sim_disk_session *session)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    return gl_json_parse(&j, gl_buf_view(&session->about), GL_RECORD_BYTES_MAX, &a, NULL) == 0 &&
           gl_str_is(gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "state"), &a),
                     GL_STATE_NO_ROOM);
}

static void on_renewed(struct sim_checks *c, void *me, const struct sim_disk_session *session)
{
    const struct sim_disk *d = c->disk;
    struct reporter *r = reporter_of(me, session);
    bool is_full = reports_full(session);
    if (!is_full && r->since != 0 && d->is_full && d->full_since <= r->since) {
        sim_world_fail(c->world,
                       "full: %.*s has reported since %lld that the store is full, and reports "
                       "room, which there has not been since %lld",
                       GL_STR_ARG(session->id), (long long)r->since, (long long)d->full_since);
    }
    r->since = !is_full ? 0 : r->since != 0 ? r->since : c->world->now;
}

/* What a dead node has left goes with the next test of its successor. */
static void on_any(struct sim_checks *c, void *me, const struct gl_tx *tx,
                   const struct gl_record *before, const struct gl_record *after)
{
    struct full_state *s = me;
    const struct sim_disk_session *writer = sim_disk_session_find(c->disk, tx->session);
    if (!gl_str_is(before->kind, "room") || writer == NULL) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        s->all[i].has_left = s->all[i].has_left && !gl_str_eq(s->all[i].session->node, before->id);
    }
    reporter_of(s, writer)->has_left = after->rev != 0;
}

/* What is wrong with the first one of which something is; NULL: nothing. */
static const char *find_wrong(const struct sim_checks *c, const struct full_state *s,
                              const struct sim_disk_session **ret)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct reporter *r = &s->all[i];
        *ret = r->session;
        if (r->session->dead || r->session->deadline < sim_disk_time(c->disk)) {
            continue;
        }
        if (r->since != 0) {
            return "still reports that the store is full";
        }
        if (r->has_left &&
            sim_disk_peek(c->disk, SIM_CONTEXT, GL_S("room"), r->session->node) != NULL) {
            return "has left its test record";
        }
    }
    return NULL;
}

bool sim_check_full_is_over(const struct sim_checks *c)
{
    const struct sim_disk_session *session;
    return find_wrong(c, c->states[SIM_CHECK_full], &session) == NULL;
}

static void at_end(struct sim_checks *c, void *me)
{
    const struct sim_disk_session *session = NULL;
    const char *wrong = find_wrong(c, me, &session);
    if (wrong != NULL) {
        sim_world_fail(c->world, "full: %.*s %s", GL_STR_ARG(session->id), wrong);
    }
}

static void done(void *me)
{
    gl_mem_free(((struct full_state *)me)->all);
}

const struct sim_check sim_check_full = {.name = "full",
                                         .state_bytes = sizeof(struct full_state),
                                         .on_any = on_any,
                                         .on_renewed = on_renewed,
                                         .at_end = at_end,
                                         .done = done};
