/* sim_disk_read.c - reads a simulated disk. */
#include "sim/sim_disk_state.h"

static void record_copy(struct gl_record *ret, gl_str kind, const struct sim_disk_record *r,
                        bool with_value, struct gl_arena *a)
{
    *ret = (struct gl_record){
        .kind = gl_str_dup(a, kind),
        .id = gl_str_dup(a, r->row.id),
        .rev = r->rev,
        .owner = gl_str_dup(a, r->owner),
        .token = r->token,
        .live = r->live,
        .damaged = r->damaged,
        .value = gl_str_dup(a, with_value ? r->value : (gl_str){0}),
    };
    if (r->damaged && ret->value.n > 0) {
        ((char *)(uintptr_t)ret->value.p)[ret->value.n / 2] ^= 1;
    }
}

struct gl_record sim_disk_get(const struct sim_disk *d, gl_str context, gl_str kind, gl_str id,
                              struct gl_arena *a)
{
    const struct sim_disk_record *r = sim_disk_peek(d, context, kind, id);
    struct gl_record ret = {.kind = gl_str_dup(a, kind), .id = gl_str_dup(a, id)};
    if (r != NULL && !r->is_missing) {
        record_copy(&ret, kind, r, true, a);
    }
    return ret;
}

const struct sim_sorted *sim_disk_kind(const struct sim_disk *d, gl_str context, gl_str kind)
{
    static const struct sim_sorted none = {0};
    const struct sim_table *t = sim_disk_table(d, context, SIM_RECORDS, kind);
    return t == NULL ? &none : &t->rows;
}

/* The row of the listing at distance `i` from its start; NULL: after its end. */
static const struct sim_row *listing_row(const struct sim_sorted *rows, const struct gl_listing *l,
                                         size_t start, size_t i)
{
    if (l->descending) {
        return i < start ? rows->rows[start - 1 - i] : NULL;
    }
    return start + i < rows->n ? rows->rows[start + i] : NULL;
}

/* Ascending: the position of the first row. Descending: the one after the first row. */
static size_t listing_start(const struct sim_sorted *rows, const struct gl_listing *l)
{
    if (l->after.n > 0) {
        size_t at = sim_sorted_seek(rows, 0, l->after);
        bool exact = at < rows->n && gl_str_eq(rows->rows[at]->id, l->after);
        return l->descending || !exact ? at : at + 1;
    }
    size_t at = sim_sorted_seek(rows, 0, l->prefix);
    if (l->descending) {
        while (at < rows->n && gl_str_starts(rows->rows[at]->id, l->prefix)) {
            at++;
        }
    }
    return at;
}

const struct gl_record *sim_disk_list(const struct sim_disk *d, gl_str context,
                                      const struct gl_listing *l, struct gl_arena *a, size_t *ret_n)
{
    const struct sim_sorted *rows = sim_disk_kind(d, context, l->kind);
    size_t start = listing_start(rows, l);
    size_t cap = l->limit < rows->n ? l->limit : rows->n;
    struct gl_record *out = GL_NEW_ARRAY(a, struct gl_record, cap + 1);
    size_t n = 0, bytes = 0;
    const struct sim_row *row;
    for (size_t i = 0; n < cap && (row = listing_row(rows, l, start, i)) != NULL; i++) {
        const struct sim_disk_record *r = (const void *)row;
        if (!gl_str_starts(row->id, l->prefix)) {
            bool before = gl_str_cmp(row->id, l->prefix) < 0;
            if (before == l->descending) {
                break;
            }
            continue; /* `after` is outside of the prefix: its rows are still to come */
        }
        if (!l->live_only || r->live) {
            record_copy(&out[n], l->kind, r, !l->ids_only, a);
            bytes += out[n++].value.n;
            if (l->bytes_max > 0 && bytes >= l->bytes_max) {
                break;
            }
        }
    }
    *ret_n = n;
    return out;
}

const struct gl_index_entry *sim_disk_range(const struct sim_disk *d, gl_str context,
                                            const struct gl_range *r, struct gl_arena *a,
                                            size_t *ret_n)
{
    const struct sim_table *t = sim_disk_table(d, context, SIM_INDEX, r->index);
    *ret_n = 0;
    if (t == NULL) {
        return NULL;
    }
    size_t at = sim_sorted_seek(&t->rows, r->score_min, (gl_str){0});
    if (r->after_id.n > 0 && r->after_score >= r->score_min) {
        at = sim_sorted_seek(&t->rows, r->after_score, r->after_id);
        bool exact = at < t->rows.n && t->rows.rows[at]->score == r->after_score &&
                     gl_str_eq(t->rows.rows[at]->id, r->after_id);
        at += exact ? 1 : 0;
    }
    size_t cap = r->limit < t->rows.n ? r->limit : t->rows.n;
    struct gl_index_entry *out = GL_NEW_ARRAY(a, struct gl_index_entry, cap + 1);
    size_t n = 0;
    for (; n < cap && at < t->rows.n && t->rows.rows[at]->score <= r->score_max; at++) {
        out[n].score = t->rows.rows[at]->score;
        out[n].id = gl_str_dup(a, t->rows.rows[at]->id);
        n++;
    }
    *ret_n = n;
    return out;
}

const struct gl_log_entry *sim_disk_log(const struct sim_disk *d, gl_str context, gl_str kind,
                                        gl_str id, int64_t from, size_t limit, struct gl_arena *a,
                                        size_t *ret_n)
{
    const struct sim_table *t = sim_disk_table(d, context, SIM_LOG, kind);
    *ret_n = 0;
    if (t == NULL) {
        return NULL;
    }
    size_t at = sim_sorted_seek(&t->rows, from, id);
    size_t cap = limit < t->rows.n ? limit : t->rows.n;
    struct gl_log_entry *out = GL_NEW_ARRAY(a, struct gl_log_entry, cap + 1);
    size_t n = 0;
    for (; n < cap && at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, id); at++) {
        const struct sim_entry *e = (const void *)t->rows.rows[at];
        out[n].seq = e->row.score;
        out[n].value = gl_str_dup(a, e->value);
        n++;
    }
    *ret_n = n;
    return out;
}

static gl_str value_of(const struct sim_table *t, const struct sim_row *row)
{
    const void *r = row;
    return t->shape == SIM_RECORDS ? ((const struct sim_disk_record *)r)->value
                                   : ((const struct sim_entry *)r)->value;
}

uint64_t sim_disk_measure(const struct sim_disk *d, gl_str context)
{
    const struct sim_disk_context *c = gl_map_find(&d->contexts, context);
    uint64_t bytes = 0;
    for (const struct sim_table *t = c == NULL ? NULL : c->tables; t != NULL; t = t->next) {
        for (size_t i = 0; i < t->rows.n; i++) {
            bytes += t->rows.rows[i]->id.n + 1 + value_of(t, t->rows.rows[i]).n;
        }
    }
    return bytes;
}

/* ---- export ---- */

static struct gl_write as_write(const struct sim_table *t, const struct sim_row *row,
                                struct gl_arena *a)
{
    static const enum gl_write_type types[] = {
        [SIM_RECORDS] = GL_WRITE_PUT, [SIM_INDEX] = GL_WRITE_INDEX, [SIM_LOG] = GL_WRITE_LOG};
    struct gl_write w = {.type = types[t->shape],
                         .kind = gl_str_dup(a, t->kind),
                         .id = gl_str_dup(a, row->id),
                         .value = gl_str_dup(a, value_of(t, row))};
    if (t->shape == SIM_RECORDS) {
        const struct sim_disk_record *r = (const void *)row;
        w.rev = r->rev;
        w.owner = gl_str_dup(a, r->owner);
        w.token = r->token;
        w.live = r->live;
    }
    w.score = t->shape == SIM_INDEX ? row->score : 0;
    w.seq = t->shape == SIM_LOG ? row->score : 0;
    return w;
}

static bool is_damaged(const struct sim_table *t, const struct sim_row *row)
{
    return t->shape == SIM_RECORDS && ((const struct sim_disk_record *)(const void *)row)->damaged;
}

/* Where to continue: "<table>.<row>". */
static void read_place(gl_str after, uint64_t *ret_table, uint64_t *ret_row)
{
    gl_str rest = {0};
    gl_str table = gl_str_cut(after, '.', &rest);
    bool ok = gl_str_u64(table, ret_table) && gl_str_u64(rest, ret_row);
    GL_ASSERT(ok || after.n == 0);
}

const struct gl_write *sim_disk_export(const struct sim_disk *d, gl_str context, gl_str after,
                                       size_t limit, struct gl_arena *a, size_t *ret_n,
                                       gl_str *ret_next)
{
    const struct sim_disk_context *c = gl_map_find(&d->contexts, context);
    struct gl_write *out = GL_NEW_ARRAY(a, struct gl_write, limit + 1);
    uint64_t first = 0;
    uint64_t at = 0;
    uint64_t number = 0;
    *ret_n = 0;
    *ret_next = (gl_str){0};
    read_place(after, &first, &at);
    for (const struct sim_table *t = c == NULL ? NULL : c->tables; t != NULL; t = t->next) {
        if (number++ < first) {
            continue;
        }
        for (; at < t->rows.n; at++) {
            if (*ret_n == limit) {
                *ret_next = gl_str_fmt(a, "%llu.%llu", (unsigned long long)number - 1,
                                       (unsigned long long)at);
                return out;
            }
            if (is_damaged(t, t->rows.rows[at])) {
                return NULL;
            }
            out[(*ret_n)++] = as_write(t, t->rows.rows[at], a);
        }
        at = 0;
    }
    return out;
}
