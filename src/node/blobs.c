/* blobs.c - the caches of what is present, and the turns of blobs that move.
 *
 * Both caches may be wrong; node/blobs.h says why that is harmless. */
#include "base/check.h"
#include "node/blobs_state.h"

/* ---- hashes known to be present ---- */

struct present_blob {
    struct gl_link link;
    gl_str key; /* `hash` */
    gl_ms at;
    char hash[GL_SHA256_HEX - 1];
};

static void known_free(struct gl_blobs_known *k, struct present_blob *x)
{
    GL_ASSERT(gl_map_count(&k->by_hash) > 0);
    GL_ASSERT(x->key.n == sizeof(x->hash));
    gl_list_remove(&x->link);
    (void)gl_map_remove(&k->by_hash, x->key); /* it is there: gl_blobs_remember() added it */
    gl_mem_free(x);
}

bool gl_blobs_knows(const struct gl_blobs *b, struct gl_blobs_known *k, gl_str hash)
{
    struct present_blob *x = gl_map_find(&k->by_hash, hash);

    if (x == NULL || x->at < b->node->now - GL_BLOBS_TRUST_MS) {
        return false;
    }
    gl_list_remove(&x->link);
    gl_list_push(&k->order, &x->link);
    return true;
}

void gl_blobs_drop(struct gl_blobs_known *k, gl_str hash)
{
    struct present_blob *x = gl_map_find(&k->by_hash, hash);

    if (x != NULL) {
        known_free(k, x);
    }
}

void gl_blobs_remember(const struct gl_blobs *b, struct gl_blobs_known *k, gl_str hash)
{
    struct present_blob *x;

    if (hash.n != sizeof(x->hash)) {
        return; /* not a hash: the caller's next call reports that */
    }
    gl_blobs_drop(k, hash);
    if (gl_map_count(&k->by_hash) >= GL_BLOBS_KNOWN_MAX) {
        known_free(k, GL_CONTAINER(gl_list_first(&k->order), struct present_blob, link));
    }
    x = gl_mem_alloc(sizeof(*x));
    memcpy(x->hash, hash.p, hash.n);
    x->key = (gl_str){.p = x->hash, .n = sizeof(x->hash)};
    x->at = b->node->now;
    gl_list_push(&k->order, &x->link);
    gl_map_add(&k->by_hash, x->key, x);
    GL_ASSERT(gl_map_count(&k->by_hash) <= GL_BLOBS_KNOWN_MAX);
}

static void known_init(struct gl_blobs_known *k)
{
    gl_map_init(&k->by_hash);
    gl_list_init(&k->order);
}

static void known_done(struct gl_blobs_known *k)
{
    for (struct gl_link *l; (l = gl_list_first(&k->order)) != NULL;) {
        known_free(k, GL_CONTAINER(l, struct present_blob, link));
    }
    gl_map_done(&k->by_hash);
    GL_ASSERT(gl_list_empty(&k->order));
}

void gl_blobs_forget(struct gl_blobs *b, gl_str hash)
{
    if (b != NULL) {
        gl_blobs_drop(&b->stored, hash);
    }
}

void gl_blobs_on_ended(struct gl_blobs *b, struct gl_event *ev)
{
    GL_ASSERT(ev->type == GL_EV_ENDED);
    if (b == NULL || ev->ended.result.end != GL_EXEC_NOT_EXECUTED ||
        ev->ended.result.exit_code != GL_E_DAMAGED) {
        return;
    }
    if (b->node->now >= b->verify_until - GL_BLOBS_TRUST_MS + GL_BLOBS_REFETCH_MS) {
        ev->ended.result.exit_code = GL_E_UNAVAILABLE;
    }
    known_done(&b->local);
    known_init(&b->local);
    b->verify_until = b->node->now + GL_BLOBS_TRUST_MS;
}

/* ---- turns ---- */

void gl_blobs_wait_turn(struct gl_blobs *b, struct gl_blobs_turn *t)
{
    GL_ASSERT(!t->is_on);
    if (b->moves_n >= GL_BLOBS_MOVES_MAX) {
        gl_list_push(&b->waiting, &t->link);
        return;
    }
    GL_ASSERT(b->moves_n < GL_BLOBS_MOVES_MAX);
    GL_ASSERT(gl_list_empty(&t->link));
    b->moves_n++;
    t->is_on = true;
    t->begin(t);
}

void gl_blobs_end_turn(struct gl_blobs *b, struct gl_blobs_turn *t)
{
    struct gl_link *l;

    gl_list_remove(&t->link);
    if (!t->is_on) {
        return;
    }
    t->is_on = false;
    GL_ASSERT(b->moves_n > 0);
    b->moves_n--;
    l = gl_list_first(&b->waiting);
    if (l != NULL) {
        gl_list_remove(l);
        gl_blobs_wait_turn(b, GL_CONTAINER(l, struct gl_blobs_turn, link));
    }
}

/* ---- names ---- */

struct gl_key gl_blobs_key(gl_str hash)
{
    GL_ASSERT(hash.n > 0);
    return (struct gl_key){.kind = GL_S("blob"), .id = hash};
}

struct gl_key gl_blobs_piece(struct gl_arena *a, gl_str hash, uint32_t number)
{
    GL_ASSERT(hash.n > 0);
    return (struct gl_key){.kind = GL_S("blob"),
                           .id = gl_str_fmt(a, "%.*s/%u", GL_STR_ARG(hash), number)};
}

/* ---- the part ---- */

static void init(struct gl_node *n)
{
    struct gl_blobs *b;

    if (!n->ports.store->ops->shared || n->ports.blob == NULL) {
        return;
    }
    GL_ASSERT(n->ports.blob->look != NULL);
    b = gl_mem_alloc(sizeof(*b));
    b->node = n;
    known_init(&b->stored);
    known_init(&b->local);
    gl_map_init(&b->keeps);
    gl_map_init(&b->fetches);
    gl_list_init(&b->wants);
    gl_list_init(&b->waiting);
    n->blobs = b;
}

static void done(struct gl_node *n)
{
    struct gl_blobs *b = n->blobs;

    if (b == NULL) {
        return;
    }
    gl_blobs_fetch_free_all(b);
    known_done(&b->stored);
    known_done(&b->local);
    gl_map_done(&b->keeps);
    gl_map_done(&b->fetches);
    gl_mem_free(b);
}

const struct gl_node_part gl_blobs_part = {.init = init, .done = done};
