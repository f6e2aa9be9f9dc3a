#include "sim/sim_disk.h"

#include "base/check.h"
#include "base/limits.h"

enum shape { RECORDS, INDEX, LOG, SHAPES };

struct table {
    enum shape shape;
    gl_str kind;
    struct sim_sorted rows;
    struct table *next;
};

struct entry { /* of an index or a log */
    struct sim_row row;
    gl_str value;
};

struct decided { /* the committed transactions of one session */
    gl_str session;
    uint64_t *ids; /* rising */
    size_t n, cap;
};

struct sim_disk_context {
    gl_str name;
    struct table *tables;
    struct gl_map decided; /* session -> struct decided */
};

static gl_str text_into(char **at, gl_str s)
{
    gl_str copy = {.p = *at, .n = s.n};
    if (s.n > 0) {
        memcpy(*at, s.p, s.n);
    }
    *at += s.n;
    return copy;
}

void sim_disk_init(struct sim_disk *d)
{
    *d = (struct sim_disk){0};
    gl_map_init(&d->contexts);
    gl_map_init(&d->sessions);
}

static void table_free(struct table *t)
{
    for (size_t i = 0; i < t->rows.n; i++) {
        gl_mem_free(t->rows.rows[i]);
    }
    sim_sorted_done(&t->rows);
    gl_mem_free(t);
}

static void context_free(struct sim_disk_context *c)
{
    for (struct table *t = c->tables; t != NULL;) {
        struct table *next = t->next;
        table_free(t);
        t = next;
    }
    struct decided *done;
    for (size_t i = 0; (done = gl_map_next(&c->decided, &i)) != NULL;) {
        gl_mem_free(done->ids);
        gl_mem_free(done);
    }
    gl_map_done(&c->decided);
    gl_mem_free(c);
}

void sim_disk_done(struct sim_disk *d)
{
    struct sim_disk_context *c;
    for (size_t i = 0; (c = gl_map_next(&d->contexts, &i)) != NULL;) {
        context_free(c);
    }
    struct sim_disk_session *s;
    for (size_t i = 0; (s = gl_map_next(&d->sessions, &i)) != NULL;) {
        gl_mem_free(s);
    }
    gl_map_done(&d->contexts);
    gl_map_done(&d->sessions);
}

static struct sim_disk_context *context_make(struct sim_disk *d, gl_str name)
{
    struct sim_disk_context *c = gl_map_find(&d->contexts, name);
    if (c == NULL) {
        c = gl_mem_alloc(sizeof(*c) + name.n);
        char *at = (char *)(c + 1);
        c->name = text_into(&at, name);
        gl_map_init(&c->decided);
        gl_map_add(&d->contexts, c->name, c);
    }
    return c;
}

static struct table *table_find(const struct sim_disk_context *c, enum shape shape, gl_str kind)
{
    struct table *t = c == NULL ? NULL : c->tables;
    while (t != NULL && (t->shape != shape || !gl_str_eq(t->kind, kind))) {
        t = t->next;
    }
    return t;
}

static struct table *table_make(struct sim_disk_context *c, enum shape shape, gl_str kind)
{
    struct table *t = table_find(c, shape, kind);
    if (t == NULL) {
        t = gl_mem_alloc(sizeof(*t) + kind.n);
        char *at = (char *)(t + 1);
        t->kind = text_into(&at, kind);
        t->shape = shape;
        sim_sorted_init(&t->rows, shape != INDEX);
        t->next = c->tables;
        c->tables = t;
    }
    return t;
}

static struct table *table_at(const struct sim_disk *d, gl_str context, enum shape shape,
                              gl_str kind)
{
    return table_find(gl_map_find(&d->contexts, context), shape, kind);
}

/* ---- sessions ---- */

struct sim_disk_session *sim_disk_session_find(const struct sim_disk *d, gl_str id)
{
    return gl_map_find(&d->sessions, id);
}

struct sim_disk_session *sim_disk_session_open(struct sim_disk *d, gl_str node, gl_str nonce)
{
    uint64_t incarnation = 1;
    struct sim_disk_session *old;
    for (size_t i = 0; (old = gl_map_next(&d->sessions, &i)) != NULL;) {
        old->dead = true;
        if (gl_str_eq(old->node, node) && old->incarnation >= incarnation) {
            incarnation = old->incarnation + 1;
        }
    }
    struct gl_buf id = {0};
    gl_buf_fmt(&id, "%.*s#%llu.%.*s", GL_STR_ARG(node), (unsigned long long)incarnation,
               GL_STR_ARG(nonce));
    struct sim_disk_session *s = gl_mem_alloc(sizeof(*s) + id.n + node.n);
    char *at = (char *)(s + 1);
    s->id = text_into(&at, gl_buf_view(&id));
    s->node = text_into(&at, node);
    s->incarnation = incarnation;
    s->deadline = INT64_MAX;
    gl_map_add(&d->sessions, s->id, s);
    gl_buf_done(&id);
    return s;
}

/* ---- guards ---- */

const struct sim_disk_record *sim_disk_peek(const struct sim_disk *d, gl_str context, gl_str kind,
                                            gl_str id)
{
    const struct table *t = table_at(d, context, RECORDS, kind);
    return t == NULL ? NULL : (const void *)sim_sorted_find(&t->rows, 0, id);
}

static bool is_dead(const struct sim_disk *d, gl_str session)
{
    const struct sim_disk_session *s = sim_disk_session_find(d, session);
    return s != NULL && s->dead;
}

static bool holds(const struct sim_disk *d, gl_str context, const struct gl_guard *g)
{
    if (g->type == GL_GUARD_DEAD) {
        return is_dead(d, g->owner);
    }
    if (g->type == GL_GUARD_ALIVE) {
        return sim_disk_session_find(d, g->owner) != NULL && !is_dead(d, g->owner);
    }
    const struct sim_disk_record *r = sim_disk_peek(d, context, g->kind, g->id);
    switch (g->type) {
    case GL_GUARD_AT:
        return r != NULL && r->rev == g->rev;
    case GL_GUARD_ABSENT:
        return r == NULL;
    case GL_GUARD_PRESENT:
        return r != NULL;
    case GL_GUARD_NOT_LIVE:
        return r == NULL || !r->live;
    case GL_GUARD_OWNED:
        return r != NULL && gl_str_eq(r->owner, g->owner) && r->token == g->token &&
               (g->rev == 0 || r->rev == g->rev);
    case GL_GUARD_DEAD:
    case GL_GUARD_ALIVE:
        break;
    }
    GL_UNREACHABLE();
}

/* ---- writes ---- */

static struct gl_record record_view(gl_str kind, gl_str id, const struct sim_disk_record *r)
{
    if (r == NULL) {
        return (struct gl_record){.kind = kind, .id = id};
    }
    return (struct gl_record){.kind = kind,
                              .id = id,
                              .rev = r->rev,
                              .owner = r->owner,
                              .token = r->token,
                              .live = r->live,
                              .value = r->value};
}

static struct sim_disk_record *record_new(const struct gl_write *w)
{
    struct sim_disk_record *r = gl_mem_alloc(sizeof(*r) + w->id.n + w->owner.n + w->value.n);
    char *at = (char *)(r + 1);
    r->row.id = text_into(&at, w->id);
    r->owner = text_into(&at, w->owner);
    r->value = text_into(&at, w->value);
    r->rev = w->rev;
    r->token = w->token;
    r->live = w->live;
    return r;
}

/* Put `fresh` in the place of the record with that id; NULL takes it away. */
static void record_replace(struct sim_disk *d, const struct gl_tx *tx, const struct gl_write *w,
                           struct table *t, struct sim_disk_record *fresh)
{
    size_t at = sim_sorted_seek(&t->rows, 0, w->id);
    bool there = at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, w->id);
    struct sim_disk_record *old = there ? (void *)t->rows.rows[at] : NULL;
    if (d->watch.on_write != NULL && (old != NULL || fresh != NULL)) {
        struct gl_record before = record_view(w->kind, w->id, old);
        struct gl_record after = record_view(w->kind, w->id, fresh);
        d->watch.on_write(d->watch.owner, tx, &before, &after);
    }
    if (old != NULL && fresh != NULL) {
        t->rows.rows[at] = &fresh->row;
    } else if (old != NULL) {
        (void)sim_sorted_remove_at(&t->rows, at); /* it is `old` */
    } else if (fresh != NULL) {
        sim_sorted_add(&t->rows, &fresh->row);
    }
    gl_mem_free(old);
}

static void entry_remove(struct table *t, int64_t score, gl_str id)
{
    size_t at = sim_sorted_seek(&t->rows, score, id);
    bool there =
        at < t->rows.n && t->rows.rows[at]->score == score && gl_str_eq(t->rows.rows[at]->id, id);
    if (there) {
        gl_mem_free(sim_sorted_remove_at(&t->rows, at));
    }
}

static void entry_put(struct table *t, int64_t score, gl_str id, gl_str value)
{
    entry_remove(t, score, id);
    struct entry *e = gl_mem_alloc(sizeof(*e) + id.n + value.n);
    char *at = (char *)(e + 1);
    e->row.id = text_into(&at, id);
    e->row.score = score;
    e->value = text_into(&at, value);
    sim_sorted_add(&t->rows, &e->row);
}

static void log_trim(struct table *t, gl_str id, int64_t below)
{
    size_t at = sim_sorted_seek(&t->rows, INT64_MIN, id);
    while (at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, id) &&
           (t->rows.rows[at]->score < below || below == INT64_MAX)) {
        gl_mem_free(sim_sorted_remove_at(&t->rows, at));
    }
}

static void write_one(struct sim_disk *d, struct sim_disk_context *c, const struct gl_tx *tx,
                      const struct gl_write *w)
{
    switch (w->type) {
    case GL_WRITE_PUT:
        record_replace(d, tx, w, table_make(c, RECORDS, w->kind), record_new(w));
        return;
    case GL_WRITE_PUT_NEW:
        if (sim_disk_peek(d, c->name, w->kind, w->id) == NULL) {
            record_replace(d, tx, w, table_make(c, RECORDS, w->kind), record_new(w));
        }
        return;
    case GL_WRITE_DELETE:
        record_replace(d, tx, w, table_make(c, RECORDS, w->kind), NULL);
        return;
    case GL_WRITE_INDEX:
        entry_put(table_make(c, INDEX, w->kind), w->score, w->id, (gl_str){0});
        return;
    case GL_WRITE_UNINDEX:
        entry_remove(table_make(c, INDEX, w->kind), w->score, w->id);
        return;
    case GL_WRITE_LOG:
        entry_put(table_make(c, LOG, w->kind), w->seq, w->id, w->value);
        return;
    case GL_WRITE_LOG_TRIM:
        log_trim(table_make(c, LOG, w->kind), w->id, w->seq);
        return;
    }
    GL_UNREACHABLE();
}

static void remember(struct sim_disk_context *c, const struct gl_tx *tx)
{
    struct decided *done = gl_map_find(&c->decided, tx->session);
    if (done == NULL) {
        done = gl_mem_alloc(sizeof(*done) + tx->session.n);
        char *at = (char *)(done + 1);
        done->session = text_into(&at, tx->session);
        gl_map_add(&c->decided, done->session, done);
    }
    if (done->n == done->cap) {
        done->cap = done->cap == 0 ? 64 : done->cap * 2;
        done->ids = gl_mem_realloc(done->ids, done->cap * sizeof(uint64_t));
    }
    done->ids[done->n++] = tx->id;
}

bool sim_disk_committed(const struct sim_disk *d, gl_str context, gl_str session, uint64_t tx_id)
{
    const struct sim_disk_context *c = gl_map_find(&d->contexts, context);
    const struct decided *done = c == NULL ? NULL : gl_map_find(&c->decided, session);
    for (size_t i = done == NULL ? 0 : done->n; i > 0; i--) { /* the newest are asked for */
        if (done->ids[i - 1] == tx_id) {
            return true;
        }
    }
    return false;
}

int sim_disk_commit(struct sim_disk *d, const struct gl_tx *tx, size_t *ret_refused)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        if (tx->writes[i].value.n > GL_RECORD_BYTES_MAX) {
            return GL_E_LIMIT;
        }
    }
    for (size_t i = 0; i < tx->guards_n; i++) {
        if (!holds(d, tx->context, &tx->guards[i])) {
            *ret_refused = i;
            d->refusals_n++;
            return GL_E_CONFLICT;
        }
    }
    d->commits_n++;
    struct sim_disk_context *c = context_make(d, tx->context);
    if (d->watch.on_tx != NULL) {
        d->watch.on_tx(d->watch.owner, tx);
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        write_one(d, c, tx, &tx->writes[i]);
    }
    if (tx->id != 0) {
        remember(c, tx);
    }
    return 0;
}

/* ---- reading ---- */

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
        .value = gl_str_dup(a, with_value ? r->value : (gl_str){0}),
    };
}

struct gl_record sim_disk_get(const struct sim_disk *d, gl_str context, gl_str kind, gl_str id,
                              struct gl_arena *a)
{
    const struct sim_disk_record *r = sim_disk_peek(d, context, kind, id);
    struct gl_record ret = {.kind = gl_str_dup(a, kind), .id = gl_str_dup(a, id)};
    if (r != NULL) {
        record_copy(&ret, kind, r, true, a);
    }
    return ret;
}

const struct sim_sorted *sim_disk_kind(const struct sim_disk *d, gl_str context, gl_str kind)
{
    static const struct sim_sorted none = {0};
    const struct table *t = table_at(d, context, RECORDS, kind);
    return t == NULL ? &none : &t->rows;
}

/* A row of the listing at distance `i` from its start, NULL behind its end. */
static const struct sim_row *listing_row(const struct sim_sorted *rows, const struct gl_listing *l,
                                         size_t start, size_t i)
{
    if (l->descending) {
        return i < start ? rows->rows[start - 1 - i] : NULL;
    }
    return start + i < rows->n ? rows->rows[start + i] : NULL;
}

/* Ascending: the place of the first row. Descending: one behind the place of the first row. */
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
    size_t n = 0;
    const struct sim_row *row;
    for (size_t i = 0; n < cap && (row = listing_row(rows, l, start, i)) != NULL; i++) {
        const struct sim_disk_record *r = (const void *)row;
        if (!gl_str_starts(row->id, l->prefix)) {
            bool before = gl_str_cmp(row->id, l->prefix) < 0;
            if (before == l->descending) {
                break;
            }
            continue; /* `after` stands outside the prefix: its rows are still to come */
        }
        if (!l->live_only || r->live) {
            record_copy(&out[n++], l->kind, r, !l->ids_only, a);
        }
    }
    *ret_n = n;
    return out;
}

const struct gl_index_entry *sim_disk_range(const struct sim_disk *d, gl_str context,
                                            const struct gl_range *r, struct gl_arena *a,
                                            size_t *ret_n)
{
    const struct table *t = table_at(d, context, INDEX, r->index);
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
    const struct table *t = table_at(d, context, LOG, kind);
    *ret_n = 0;
    if (t == NULL) {
        return NULL;
    }
    size_t at = sim_sorted_seek(&t->rows, from, id);
    size_t cap = limit < t->rows.n ? limit : t->rows.n;
    struct gl_log_entry *out = GL_NEW_ARRAY(a, struct gl_log_entry, cap + 1);
    size_t n = 0;
    for (; n < cap && at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, id); at++) {
        const struct entry *e = (const void *)t->rows.rows[at];
        out[n].seq = e->row.score;
        out[n].value = gl_str_dup(a, e->value);
        n++;
    }
    *ret_n = n;
    return out;
}

uint64_t sim_disk_measure(const struct sim_disk *d, gl_str context)
{
    const struct sim_disk_context *c = gl_map_find(&d->contexts, context);
    uint64_t bytes = 0;
    for (const struct table *t = c == NULL ? NULL : c->tables; t != NULL; t = t->next) {
        for (size_t i = 0; i < t->rows.n; i++) {
            const void *row = t->rows.rows[i];
            bytes += t->rows.rows[i]->id.n + 1;
            bytes += t->shape == RECORDS ? ((const struct sim_disk_record *)row)->value.n
                                         : ((const struct entry *)row)->value.n;
        }
    }
    return bytes;
}
