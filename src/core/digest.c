/* digest.c - mixes 64-bit numbers, in the order in which the core traces and decides. Changing what
 * is mixed makes every older recording diverge. */
#include "core/digest.h"

#include "base/check.h"

static void add(struct gl_digest *d, uint64_t value)
{
    d->sum = (d->sum ^ value) * 0x9e3779b97f4a7c15u;
    d->sum ^= d->sum >> 32;
}

static void add_str(struct gl_digest *d, gl_str s)
{
    add(d, s.n > 0 ? gl_str_hash(s) : 0);
}

static void add_word(struct gl_digest *d, const char *word)
{
    add_str(d, gl_str_of(word));
}

static void on_trace(struct gl_trace *t, const struct gl_trace_record *r)
{
    struct gl_digest *d = GL_CONTAINER(t, struct gl_digest, tap);

    GL_ASSERT(r->kind < GL_TR_COUNT);
    add(d, (uint64_t)r->kind ^ r->token << 8 ^ (uint64_t)r->number << 24);
    add_str(d, r->job);
    add_str(d, r->step);
    add_word(d, r->what);
    add_word(d, r->from);
    add_word(d, r->to);
    if (d->inner->write != NULL) {
        d->inner->now = r->now;
        gl_trace_write(d->inner, *r);
    }
}

void gl_digest_init(struct gl_digest *d, struct gl_trace *inner)
{
    *d = (struct gl_digest){.tap = {.write = on_trace, .node = inner->node}, .inner = inner};
}

/* GL_WRITE_PUT_NEW is left out. It writes a flow's text if that is not known to be in the store,
 * which depends on whether the compiled flow was still cached: not a decision of the core. */
static void add_tx(struct gl_digest *d, const struct gl_tx *tx)
{
    GL_ASSERT(tx->writes_n > 0);
    add(d, tx->guards_n);
    for (size_t i = 0; i < tx->writes_n; i++) {
        const struct gl_write *w = &tx->writes[i];

        if (w->type != GL_WRITE_PUT_NEW) {
            add(d, (uint64_t)w->type | (uint64_t)w->live << 8 | w->rev << 16);
            add(d, (uint64_t)w->score ^ (uint64_t)w->seq << 40);
        }
    }
}

uint64_t gl_digest_end(struct gl_digest *d, const struct gl_effects *effects)
{
    uint64_t sum;

    for (size_t i = 0; i < effects->n; i++) {
        const struct gl_effect *e = &effects->items[i];
        GL_ASSERT(e->type < GL_FX_COUNT);
        GL_ASSERT(GL_IMPLIES(e->type == GL_FX_COMMIT, e->op != 0));
        GL_ASSERT(GL_IMPLIES(e->type == GL_FX_FIND, e->range.limit > 0));
        GL_ASSERT((e->call != NULL) == (e->type == GL_FX_CALL));
        GL_ASSERT(GL_IMPLIES(e->type == GL_FX_REPLY, e->request != 0));

        add(d, (uint64_t)e->type | (uint64_t)e->ended << 8 | e->after << 16);
        add(d, e->op ^ e->token << 32);
        add(d, e->step_number ^ e->start_number << 32);
        add(d, e->request ^ (uint64_t)(int64_t)e->code << 32);
        add_str(d, e->job);
        add_str(d, e->attempt);
        if (e->type == GL_FX_FIND) {
            add(d, (uint64_t)e->range.score_min ^ (uint64_t)e->range.score_max << 1);
            add_str(d, e->range.after_id);
        }
        if (e->call != NULL) {
            add(d, (uint64_t)e->call->by | (uint64_t)e->call->type << 8 | e->call->number << 16);
            add_str(d, e->call->session);
            add_str(d, e->call->job);
            add(d, e->call->keys_n | (uint64_t)e->call->range.limit << 32);
            add(d, (uint64_t)e->call->files.type | (uint64_t)e->call->files.names_n << 8);
            add(d, e->call->listing.limit);
            add_str(d, e->call->listing.kind);
            add_str(d, e->call->listing.after);
        }
        if (e->type == GL_FX_VALID) {
            add(d, (uint64_t)e->deadline_at);
        }
        if (e->call != NULL && e->call->tx != NULL) {
            add_tx(d, e->call->tx);
        }
        if (e->tx != NULL) {
            add_tx(d, e->tx);
        }
    }
    sum = d->sum;
    d->sum = 0;
    return sum;
}
