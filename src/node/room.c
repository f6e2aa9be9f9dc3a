/* room.c - a store that answers and does not write any more: its disk is full, or its memory.
 *
 * What fits into room that is there already is still taken: renewals of the session, small changes.
 * So that proves nothing, and neither do jobs, if there are none to be tried again. While the store
 * is shut, and nothing was refused for a while, it is asked to keep something of some size; when it
 * does, it is open again. */
#include "node/node_state.h"

#include "base/rng.h"

enum {
    PROBE_BYTES = 64 << 10, /* more than is left over in what the engine has already */
    QUIET_MS_MIN = 1500,    /* longer than the pause before a job is tried again */
    QUIET_MS_MAX = 30000,
    SOON_FACTOR = 10, /* shut again so soon: it is asked less often */
};

/* Nothing that an engine can make smaller, as some do with what repeats itself. */
static gl_str ballast(struct gl_node *n)
{
    struct gl_room *r = &n->room;
    struct gl_rng rng;

    if (r->ballast.n == 0) {
        char *bytes = gl_arena_alloc(&n->strings, PROBE_BYTES);

        gl_rng_init(&rng, 1);
        gl_rng_fill(&rng, bytes, PROBE_BYTES);
        r->ballast = (gl_str){.p = bytes, .n = PROBE_BYTES};
    }
    return r->ballast;
}

static void shut(struct gl_node *n)
{
    struct gl_room *r = &n->room;
    bool is_soon = r->opened_at != 0 && n->now - r->opened_at < r->quiet_ms * SOON_FACTOR;

    r->quiet_ms = !is_soon                         ? QUIET_MS_MIN
                  : r->quiet_ms * 2 < QUIET_MS_MAX ? r->quiet_ms * 2
                                                   : QUIET_MS_MAX;
    r->is_shut = true;
    r->since = n->now;
}

static void open(struct gl_node *n)
{
    n->room.is_shut = false;
    n->room.opened_at = n->now;
}

void gl_room_note(struct gl_node *n, const struct gl_store_req *req)
{
    struct gl_room *r = &n->room;

    if (req->status != GL_E_UNAVAILABLE || !req->why.needs_help || n->session.n == 0 ||
        n->stopping) {
        return;
    }
    if (!r->is_shut) {
        shut(n);
    }
    r->why = req->why;
    r->due = n->now + r->quiet_ms;
    gl_sessions_tell(n);
}

void gl_room_doubt(struct gl_node *n)
{
    struct gl_room *r = &n->room;

    if (!r->is_shut && !r->is_busy && r->due == INT64_MAX) {
        r->is_doubted = true;
        r->due = n->now;
    }
}

/* ---- asking ---- */

static void ask(struct gl_node *n, enum gl_write_type type, gl_store_done *done)
{
    struct gl_room *r = &n->room;
    struct gl_store *s = n->ports.store;

    r->write =
        (struct gl_write){.type = type, .kind = GL_S("room"), .id = n->config.name, .rev = 1};
    if (type == GL_WRITE_PUT) {
        r->write.value = ballast(n);
    }
    r->tx = (struct gl_tx){
        .context = n->config.context, .session = n->session, .writes = &r->write, .writes_n = 1};
    r->req = (struct gl_store_req){.done = done, .owner = n};
    r->is_busy = true;
    n->outstanding++;
    s->ops->commit(s, &r->req, &r->tx);
}

static void answered(struct gl_node *n)
{
    n->room.is_busy = false;
    n->outstanding--;
    n->now = n->ports.clock->now(n->ports.clock);
    n->room.due = n->now + (n->room.quiet_ms > 0 ? n->room.quiet_ms : QUIET_MS_MIN); /* or never */
    n->room.is_doubted = false;
    gl_room_note(n, &n->room.req);
}

static void on_removed(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;

    answered(n);
    if (req->status == 0) {
        n->room.is_left = false;
        n->room.due = INT64_MAX;
    }
    gl_node_rearm(n);
}

static void on_kept(struct gl_store_req *req)
{
    struct gl_node *n = req->owner;

    answered(n);
    n->room.is_left = n->room.is_left || req->status == 0 || req->status == GL_E_UNKNOWN;
    if (req->status == 0) {
        n->room.due = n->now; /* to be removed */
        if (n->room.is_shut) {
            open(n);
            gl_sessions_tell(n);
        }
    }
    gl_node_rearm(n);
}

void gl_room_on_time(struct gl_node *n)
{
    struct gl_room *r = &n->room;

    if (r->due > n->now) {
        return;
    }
    r->due = INT64_MAX; /* the answer says when again */
    if (r->is_busy || n->stopping || n->lost) {
        return;
    }
    if (r->is_shut || r->is_doubted) {
        ask(n, GL_WRITE_PUT, on_kept);
    } else if (r->is_left) {
        ask(n, GL_WRITE_DELETE, on_removed);
    }
}
