/* trim_damaged.c - flows of jobs whose records cannot be read.
 *
 * A damaged record usually still shows which flow the job names: then that flow stays, like every
 * other that is named. The hash itself may be what is damaged, so it counts only if there is such a
 * flow.
 *
 * If the flow cannot be found out, it may be any of those that were there when the job was first
 * found damaged: these are reserved until the record has been mended or the job removed. Flows that
 * come later are collected as usual, so one record does not stop garbage collection. What is
 * reserved is known in memory only: the next node reserves anew. */
#include "node/trim_state.h"

#include "base/sha256.h"

enum { HEX = GL_SHA256_HEX - 1 };

struct damaged_job { /* in trim->damaged */
    gl_str id;
    uint64_t look; /* the last one that found it damaged */
};

struct suspect { /* in the arena of flows */
    struct suspect *next;
    gl_str job, flow;
};

void gl_trim_damaged_begin(struct gl_trim *t)
{
    t->damaged_look++;
    t->flows.suspects = NULL;
}

static bool is_hex(gl_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
    }
    return true;
}

/* What stands where the record names its flow; "": nothing that looks like a hash. */
static gl_str find_flow(gl_str value)
{
    static const gl_str key = GL_S("\"flow\":\"");
    const char *at = value.n > 0 ? memmem(value.p, value.n, key.p, key.n) : NULL;
    size_t left = at != NULL ? value.n - (size_t)(at - value.p) - key.n : 0;
    gl_str hash = {.p = at != NULL ? at + key.n : NULL, .n = HEX};

    return left >= HEX && is_hex(hash) ? hash : (gl_str){0};
}

/* Its flow is not known. */
static void note_unknown(struct gl_trim *t, gl_str id)
{
    struct damaged_job *d = gl_map_find(&t->damaged, id);

    if (d == NULL) {
        d = gl_mem_alloc(sizeof(*d) + id.n);
        memcpy(d + 1, id.p, id.n);
        d->id = (gl_str){.p = (const char *)(d + 1), .n = id.n};
        gl_map_add(&t->damaged, d->id, d);
        t->reserve_all = true;
    }
    d->look = t->damaged_look;
}

/* ---- reserved flows ---- */

void gl_trim_damaged_list(struct gl_trim *t, bool is_begin)
{
    if (is_begin) {
        t->is_reserving = t->reserve_all;
    } else if (t->is_reserving) { /* all of them have been listed */
        t->reserve_all = t->is_reserving = false;
    }
}

bool gl_trim_damaged_reserves(struct gl_trim *t, gl_str flow)
{
    bool is_reserved = gl_map_find(&t->reserved, flow) != NULL;

    if (t->reserve_all && !is_reserved) {
        gl_str *copy = GL_NEW(&t->reserved_arena, gl_str);

        GL_MARK(t->node->config.trace, "trim.flow_reserved");
        *copy = gl_str_dup(&t->reserved_arena, flow);
        gl_map_add(&t->reserved, *copy, copy);
        is_reserved = true;
    }
    return is_reserved;
}

static void release_reserved(struct gl_trim *t)
{
    gl_map_done(&t->reserved);
    gl_map_init(&t->reserved);
    gl_arena_done(&t->reserved_arena);
    t->reserve_all = false;
}

/* ---- what a look has found ---- */

void gl_trim_damaged_note(struct gl_trim *t, const struct gl_record *r)
{
    gl_str hash = find_flow(r->value);
    struct suspect *s;

    if (hash.n == 0) {
        note_unknown(t, r->id);
        return;
    }
    s = GL_NEW(&t->flows.arena, struct suspect);
    s->job = gl_str_dup(&t->flows.arena, r->id);
    s->flow = gl_str_dup(&t->flows.arena, hash);
    s->next = t->flows.suspects;
    t->flows.suspects = s;
}

static void forget(struct gl_trim *t, bool all)
{
    struct damaged_job *d;

    for (size_t i = 0; (d = gl_map_next(&t->damaged, &i)) != NULL;) {
        if (all || d->look != t->damaged_look) {
            (void)gl_map_remove(&t->damaged, d->id);
            gl_mem_free(d);
        }
    }
}

static void on_flow(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    struct suspect *s = t->flows.suspects;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    t->flows.suspects = s->next;
    if (req->records[0].rev > 0) {
        GL_MARK(t->node->config.trace, "trim.flow_of_damaged");
        gl_trim_flows_use(t, s->flow);
    } else {
        note_unknown(t, s->job);
    }
    gl_trim_damaged_settle(t);
}

void gl_trim_damaged_settle(struct gl_trim *t)
{
    struct gl_store *store = t->node->ports.store;

    if (t->flows.suspects != NULL) {
        t->flows.keys[0] = (struct gl_key){.kind = GL_S("flow"), .id = t->flows.suspects->flow};
        store->ops->get(store, gl_trim_call(t, on_flow), t->node->config.context, t->flows.keys, 1);
        return;
    }
    forget(t, false);
    if (gl_map_count(&t->damaged) == 0) {
        release_reserved(t);
    }
    t->flows.looked(t);
}

void gl_trim_damaged_free(struct gl_trim *t)
{
    forget(t, true);
    release_reserved(t);
    gl_map_done(&t->damaged);
    gl_map_done(&t->reserved);
}
