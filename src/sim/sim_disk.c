#include "sim/sim_disk_state.h"

gl_str sim_disk_text(char **at, gl_str s)
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
    gl_list_init(&d->handles);
}

static void table_free(struct sim_table *t)
{
    for (size_t i = 0; i < t->rows.n; i++) {
        gl_mem_free(t->rows.rows[i]);
    }
    sim_sorted_done(&t->rows);
    gl_mem_free(t);
}

static void context_free(struct sim_disk_context *c)
{
    for (struct sim_table *t = c->tables; t != NULL;) {
        struct sim_table *next = t->next;
        table_free(t);
        t = next;
    }
    struct sim_decided *done;
    for (size_t i = 0; (done = gl_map_next(&c->decided, &i)) != NULL;) {
        gl_mem_free(done->ids);
        gl_mem_free(done);
    }
    gl_map_done(&c->decided);
    gl_mem_free(c);
}

void sim_disk_done(struct sim_disk *d)
{
    sim_disk_tail_done(d);
    struct sim_disk_context *c;
    for (size_t i = 0; (c = gl_map_next(&d->contexts, &i)) != NULL;) {
        context_free(c);
    }
    struct sim_disk_session *s;
    for (size_t i = 0; (s = gl_map_next(&d->sessions, &i)) != NULL;) {
        gl_buf_done(&s->about);
        gl_mem_free(s);
    }
    gl_map_done(&d->contexts);
    gl_map_done(&d->sessions);
}

struct sim_disk_context *sim_disk_context_make(struct sim_disk *d, gl_str name)
{
    struct sim_disk_context *c = gl_map_find(&d->contexts, name);
    if (c == NULL) {
        c = gl_mem_alloc(sizeof(*c) + name.n);
        char *at = (char *)(c + 1);
        c->name = sim_disk_text(&at, name);
        gl_map_init(&c->decided);
        gl_map_add(&d->contexts, c->name, c);
    }
    return c;
}

static struct sim_table *table_find(const struct sim_disk_context *c, enum sim_shape shape,
                                    gl_str kind)
{
    struct sim_table *t = c == NULL ? NULL : c->tables;
    while (t != NULL && (t->shape != shape || !gl_str_eq(t->kind, kind))) {
        t = t->next;
    }
    return t;
}

struct sim_table *sim_disk_table_make(struct sim_disk_context *c, enum sim_shape shape, gl_str kind)
{
    struct sim_table *t = table_find(c, shape, kind);
    if (t == NULL) {
        t = gl_mem_alloc(sizeof(*t) + kind.n);
        char *at = (char *)(t + 1);
        t->kind = sim_disk_text(&at, kind);
        t->shape = shape;
        sim_sorted_init(&t->rows, shape == SIM_RECORDS || shape == SIM_LOG);
        t->next = c->tables;
        c->tables = t;
    }
    return t;
}

struct sim_table *sim_disk_table(const struct sim_disk *d, gl_str context, enum sim_shape shape,
                                 gl_str kind)
{
    return table_find(gl_map_find(&d->contexts, context), shape, kind);
}

/* ---- guards ---- */

const struct sim_disk_record *sim_disk_peek(const struct sim_disk *d, gl_str context, gl_str kind,
                                            gl_str id)
{
    const struct sim_table *t = sim_disk_table(d, context, SIM_RECORDS, kind);
    return t == NULL ? NULL : (const void *)sim_sorted_find(&t->rows, 0, id);
}

static bool holds(const struct sim_disk *d, gl_str context, const struct gl_guard *g)
{
    if (g->type == GL_GUARD_DEAD) {
        return sim_disk_is_dead(d, g->owner);
    }
    if (g->type == GL_GUARD_ALIVE) {
        return sim_disk_is_alive(d, g->owner);
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
    r->row.id = sim_disk_text(&at, w->id);
    r->owner = sim_disk_text(&at, w->owner);
    r->value = sim_disk_text(&at, w->value);
    r->rev = w->rev;
    r->token = w->token;
    r->live = w->live;
    return r;
}

void sim_disk_swap(struct sim_disk *d, struct sim_table *t, struct sim_row *old,
                   struct sim_row *fresh)
{
    if (old == NULL && fresh == NULL) {
        return;
    }
    if (old != NULL) {
        size_t at = sim_sorted_seek(&t->rows, old->score, old->id);
        GL_ASSERT(at < t->rows.n && t->rows.rows[at] == old);
        if (fresh != NULL && fresh->score == old->score) {
            t->rows.rows[at] = fresh;
        } else {
            (void)sim_sorted_remove_at(&t->rows, at); /* it is `old` */
        }
    }
    if (fresh != NULL && (old == NULL || fresh->score != old->score)) {
        sim_sorted_add(&t->rows, fresh);
    }
    sim_disk_tail_row(d, t, old, fresh);
}

/* Replaces the record with that id by `fresh`; NULL removes it. */
static void record_replace(struct sim_disk *d, const struct gl_tx *tx, const struct gl_write *w,
                           struct sim_table *t, struct sim_disk_record *fresh)
{
    size_t at = sim_sorted_seek(&t->rows, 0, w->id);
    bool there = at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, w->id);
    struct sim_disk_record *old = there ? (void *)t->rows.rows[at] : NULL;
    if (d->watch.on_write != NULL && (old != NULL || fresh != NULL)) {
        struct gl_record before = record_view(w->kind, w->id, old);
        struct gl_record after = record_view(w->kind, w->id, fresh);
        d->watch.on_write(d->watch.owner, tx, &before, &after);
    }
    if (old != NULL) { /* repaired, even if this write is undone */
        old->damaged = old->is_missing = false;
    }
    sim_disk_swap(d, t, old == NULL ? NULL : &old->row, fresh == NULL ? NULL : &fresh->row);
}

static void entry_put(struct sim_disk *d, struct sim_table *t, int64_t score, gl_str id,
                      gl_str value)
{
    struct sim_entry *e = gl_mem_alloc(sizeof(*e) + id.n + value.n);
    char *at = (char *)(e + 1);
    e->row.id = sim_disk_text(&at, id);
    e->row.score = score;
    e->value = sim_disk_text(&at, value);
    sim_disk_swap(d, t, sim_sorted_find(&t->rows, score, id), &e->row);
}

static void log_trim(struct sim_disk *d, struct sim_table *t, gl_str id, int64_t below)
{
    size_t at = sim_sorted_seek(&t->rows, INT64_MIN, id);
    while (at < t->rows.n && gl_str_eq(t->rows.rows[at]->id, id) &&
           (t->rows.rows[at]->score < below || below == INT64_MAX)) {
        sim_disk_swap(d, t, t->rows.rows[at], NULL);
    }
}

static void write_one(struct sim_disk *d, struct sim_disk_context *c, const struct gl_tx *tx,
                      const struct gl_write *w)
{
    struct sim_table *t;
    switch (w->type) {
    case GL_WRITE_PUT:
        record_replace(d, tx, w, sim_disk_table_make(c, SIM_RECORDS, w->kind), record_new(w));
        return;
    case GL_WRITE_PUT_NEW:
        if (sim_disk_peek(d, c->name, w->kind, w->id) == NULL) {
            record_replace(d, tx, w, sim_disk_table_make(c, SIM_RECORDS, w->kind), record_new(w));
        }
        return;
    case GL_WRITE_DELETE:
        record_replace(d, tx, w, sim_disk_table_make(c, SIM_RECORDS, w->kind), NULL);
        return;
    case GL_WRITE_INDEX:
        entry_put(d, sim_disk_table_make(c, SIM_INDEX, w->kind), w->score, w->id, (gl_str){0});
        return;
    case GL_WRITE_UNINDEX:
        t = sim_disk_table_make(c, SIM_INDEX, w->kind);
        sim_disk_swap(d, t, sim_sorted_find(&t->rows, w->score, w->id), NULL);
        return;
    case GL_WRITE_LOG:
        entry_put(d, sim_disk_table_make(c, SIM_LOG, w->kind), w->seq, w->id, w->value);
        return;
    case GL_WRITE_LOG_TRIM:
        log_trim(d, sim_disk_table_make(c, SIM_LOG, w->kind), w->id, w->seq);
        return;
    }
    GL_UNREACHABLE();
}

static struct sim_decided *decided_make(struct sim_disk_context *c, gl_str session)
{
    struct sim_decided *done = gl_map_find(&c->decided, session);
    if (done == NULL) {
        done = gl_mem_alloc(sizeof(*done) + session.n);
        char *at = (char *)(done + 1);
        done->session = sim_disk_text(&at, session);
        gl_map_add(&c->decided, done->session, done);
    }
    return done;
}

static void remember(struct sim_disk *d, struct sim_disk_context *c, const struct gl_tx *tx)
{
    struct sim_decided *done = decided_make(c, tx->session);
    if (done->n == done->cap) {
        done->cap = done->cap == 0 ? 64 : done->cap * 2;
        done->ids = gl_mem_realloc(done->ids, done->cap * sizeof(uint64_t));
    }
    done->ids[done->n++] = tx->id;
    sim_disk_tail_decided(d, done);
}

bool sim_disk_resolve(struct sim_disk *d, gl_str context, gl_str session, uint64_t tx_id)
{
    struct sim_decided *done = decided_make(sim_disk_context_make(d, context), session);
    for (size_t i = done->n; i > 0; i--) { /* only the newest are queried */
        if (done->ids[i - 1] == tx_id) {
            return true;
        }
    }
    done->floor = done->floor < tx_id ? tx_id : done->floor;
    return false;
}

/* A caller was told that it had not arrived, and would not. */
static bool comes_too_late(const struct sim_disk *d, const struct gl_tx *tx)
{
    const struct sim_disk_context *c = gl_map_find(&d->contexts, tx->context);
    const struct sim_decided *done = c == NULL ? NULL : gl_map_find(&c->decided, tx->session);
    return done != NULL && tx->id != 0 && tx->id <= done->floor;
}

int sim_disk_commit(struct sim_disk *d, const struct gl_tx *tx, size_t *ret_refused)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        if (tx->writes[i].value.n > GL_RECORD_BYTES_MAX) {
            return GL_E_LIMIT;
        }
    }
    if (comes_too_late(d, tx)) {
        *ret_refused = tx->guards_n;
        return GL_E_CONFLICT;
    }
    for (size_t i = 0; i < tx->guards_n; i++) {
        if (!holds(d, tx->context, &tx->guards[i])) {
            *ret_refused = i;
            d->refusals_n++;
            return GL_E_CONFLICT;
        }
    }
    d->commits_n++;
    sim_disk_tail_begin(d, tx->session, tx->id, tx->confirm);
    struct sim_disk_context *c = sim_disk_context_make(d, tx->context);
    if (d->watch.on_tx != NULL) {
        d->watch.on_tx(d->watch.owner, tx);
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        write_one(d, c, tx, &tx->writes[i]);
    }
    if (tx->id != 0) {
        remember(d, c, tx);
    }
    return 0;
}

static struct sim_disk_record *record_at(struct sim_disk *d, gl_str context, gl_str kind, gl_str id)
{
    struct sim_table *t = sim_disk_table(d, context, SIM_RECORDS, kind);
    return t == NULL ? NULL : (void *)sim_sorted_find(&t->rows, 0, id);
}

uint64_t sim_disk_spoil(struct sim_disk *d, gl_str context, gl_str kind, gl_str id, bool is_missing)
{
    struct sim_disk_record *r = record_at(d, context, kind, id);
    GL_ASSERT(r != NULL);
    r->damaged = !is_missing; /* the result of verifying its checksum */
    r->is_missing = is_missing;
    return r->rev;
}

void sim_disk_damage(struct sim_disk *d, gl_str context, gl_str kind, gl_str id)
{
    (void)sim_disk_spoil(d, context, kind, id, false); /* permanently */
}

bool sim_disk_mend(struct sim_disk *d, gl_str context, gl_str kind, gl_str id, uint64_t rev)
{
    struct sim_disk_record *r = record_at(d, context, kind, id);
    if (r == NULL || r->rev != rev || (!r->damaged && !r->is_missing)) {
        return false;
    }
    r->damaged = r->is_missing = false;
    return true;
}
