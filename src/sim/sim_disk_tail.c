/* sim_disk_tail.c - what a failover may undo: the rows that the newest transactions have replaced,
 * kept until a replica has the transactions, or must have them because of their age. */
#include "sim/sim_disk_state.h"

#define LAG_MAX_MS 5000 /* the largest lag of a replica */

enum sim_tail_type { TAIL_ROW, TAIL_DECIDED, TAIL_SESSION };

struct sim_tail_change {
    enum sim_tail_type type;
    struct sim_table *table;
    struct sim_row *old, *fresh; /* `old` is kept only here */
    struct sim_decided *decided;
    struct sim_disk_session *session; /* the previous state: */
    gl_ms deadline;
    bool dead;
};

struct sim_tail_tx {
    uint64_t seq;
    gl_ms at; /* true time */
    gl_str session;
    uint64_t id;
    bool confirm;
    size_t changes_n;
};

static void drop(struct sim_disk *d, size_t txs_n)
{
    size_t changes_n = 0;
    for (size_t i = 0; i < txs_n; i++) {
        changes_n += d->tail[i].changes_n;
        gl_mem_free((char *)d->tail[i].session.p);
    }
    for (size_t i = 0; i < changes_n; i++) {
        gl_mem_free(d->changes[i].old);
    }
    d->tail_n -= txs_n;
    d->changes_n -= changes_n;
    if (txs_n > 0) {
        memmove(d->tail, d->tail + txs_n, d->tail_n * sizeof(*d->tail));
    }
    if (changes_n > 0) {
        memmove(d->changes, d->changes + changes_n, d->changes_n * sizeof(*d->changes));
    }
}

void sim_disk_tail_begin(struct sim_disk *d, gl_str session, uint64_t tx_id, bool confirm)
{
    d->tail_seq++;
    if (!d->keeps_tail) {
        return;
    }
    size_t old = 0;
    while (old < d->tail_n && d->tail[old].at + LAG_MAX_MS < d->now) {
        old++;
    }
    drop(d, old);
    if (d->tail_n == d->tail_cap) {
        d->tail_cap = d->tail_cap == 0 ? 64 : d->tail_cap * 2;
        d->tail = gl_mem_realloc(d->tail, d->tail_cap * sizeof(*d->tail));
    }
    char *copy = gl_mem_alloc(session.n + 1);
    char *at = copy;
    d->tail[d->tail_n++] = (struct sim_tail_tx){.seq = d->tail_seq,
                                                .at = d->now,
                                                .session = sim_disk_text(&at, session),
                                                .id = tx_id,
                                                .confirm = confirm};
}

static void add(struct sim_disk *d, struct sim_tail_change change)
{
    GL_ASSERT(d->tail_n > 0);
    if (d->changes_n == d->changes_cap) {
        d->changes_cap = d->changes_cap == 0 ? 256 : d->changes_cap * 2;
        d->changes = gl_mem_realloc(d->changes, d->changes_cap * sizeof(*d->changes));
    }
    d->changes[d->changes_n++] = change;
    d->tail[d->tail_n - 1].changes_n++;
}

void sim_disk_tail_row(struct sim_disk *d, struct sim_table *t, struct sim_row *old,
                       struct sim_row *fresh)
{
    if (d->keeps_tail) {
        add(d, (struct sim_tail_change){.type = TAIL_ROW, .table = t, .old = old, .fresh = fresh});
    } else {
        gl_mem_free(old);
    }
}

void sim_disk_tail_decided(struct sim_disk *d, struct sim_decided *decided)
{
    if (d->keeps_tail) {
        add(d, (struct sim_tail_change){.type = TAIL_DECIDED, .decided = decided});
    }
}

void sim_disk_tail_session(struct sim_disk *d, struct sim_disk_session *s)
{
    if (d->keeps_tail) {
        add(d, (struct sim_tail_change){
                   .type = TAIL_SESSION, .session = s, .deadline = s->deadline, .dead = s->dead});
    }
}

void sim_disk_confirm(struct sim_disk *d, uint64_t seq)
{
    size_t n = 0;
    while (n < d->tail_n && d->tail[n].seq <= seq) {
        n++;
    }
    drop(d, n);
}

uint64_t sim_disk_unconfirmed(const struct sim_disk *d, gl_str session, uint64_t tx_id)
{
    for (size_t i = 0; i < d->tail_n; i++) {
        const struct sim_tail_tx *t = &d->tail[i];
        if (t->confirm && t->id == tx_id && gl_str_eq(t->session, session)) {
            return t->seq;
        }
    }
    return 0;
}

/* The table must be as it was right after this change. `fresh` is removed, and kept for the watch.
 */
static void undo(struct sim_tail_change *ch)
{
    if (ch->type == TAIL_DECIDED) {
        GL_ASSERT(ch->decided->n > 0);
        ch->decided->n--;
        return;
    }
    if (ch->type == TAIL_SESSION) {
        ch->session->deadline = ch->deadline;
        ch->session->dead = ch->dead;
        return;
    }
    struct sim_sorted *rows = &ch->table->rows;
    if (ch->fresh != NULL) {
        size_t at = sim_sorted_seek(rows, ch->fresh->score, ch->fresh->id);
        GL_ASSERT(at < rows->n && rows->rows[at] == ch->fresh);
        (void)sim_sorted_remove_at(rows, at); /* it is `fresh` */
    }
    if (ch->old != NULL) {
        sim_sorted_add(rows, ch->old);
    }
}

static void tell(struct sim_disk *d, const struct sim_tail_change *ch)
{
    if (ch->type == TAIL_ROW && ch->table->shape == SIM_RECORDS && d->watch.on_undone != NULL) {
        gl_str id = ch->fresh != NULL ? ch->fresh->id : ch->old->id;
        d->watch.on_undone(d->watch.owner, ch->table->kind, id);
    }
}

void sim_disk_promote(struct sim_disk *d, gl_ms lag_ms)
{
    size_t keep = 0;
    while (keep < d->tail_n && d->tail[keep].at <= d->now - lag_ms) {
        keep++;
    }
    d->undone_n += d->tail_n - keep;
    size_t first = d->changes_n;
    for (size_t i = keep; i < d->tail_n; i++) {
        first -= d->tail[i].changes_n;
    }
    for (size_t i = d->changes_n; i > first; i--) {
        undo(&d->changes[i - 1]);
    }
    for (size_t i = first; i < d->changes_n; i++) {
        tell(d, &d->changes[i]);
    }
    for (size_t i = first; i < d->changes_n; i++) {
        gl_mem_free(d->changes[i].fresh);
        d->changes[i].old = NULL; /* it is in its table again */
    }
    drop(d, d->tail_n); /* the rest is on the replica, which is the primary now */
}

void sim_disk_tail_done(struct sim_disk *d)
{
    drop(d, d->tail_n);
    gl_mem_free(d->tail);
    gl_mem_free(d->changes);
}
