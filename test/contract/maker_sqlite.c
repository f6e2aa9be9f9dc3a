#include "contract/maker_sqlite.h"

#include <event2/event.h>
#include <sqlite3.h>
#include <stdio.h>

#include "base/mem.h"

static void pump_until(void *world, const bool *flag)
{
    struct sqlite_world *w = world;
    while (!*flag) {
        int err = event_base_loop(gl_loop_base(w->loop), EVLOOP_ONCE);
        assert_int_equal(err, 0);
    }
}

void sqlite_world_init(struct sqlite_world *w, struct vfs_cut *vfs)
{
    *w = (struct sqlite_world){.vfs = vfs};
    struct gl_why why;
    test_folder_make(&w->folder);
    (void)snprintf(w->contexts, sizeof(w->contexts), "%s/contexts", w->folder.path);
    (void)snprintf(w->path, sizeof(w->path), "%s/default/state.db", w->contexts);
    assert_int_equal(gl_loop_new(&w->loop, &why), 0);
}

void sqlite_world_done(struct sqlite_world *w)
{
    assert_null(w->store);
    gl_loop_free(w->loop);
    test_folder_remove(&w->folder);
}

int sqlite_world_open(struct sqlite_world *w, struct gl_why *reterr_why)
{
    struct gl_sqlite_config cfg = {
        .folder = w->contexts,
        .read_only = w->read_only,
        .vfs = w->vfs != NULL ? "cut" : NULL,
        .idle_ms = w->idle_ms > 0 ? w->idle_ms
                                  : 3600000}; /* otherwise a busy machine would change a test */
    return gl_sqlite_open(&w->store, &cfg, w->loop, reterr_why);
}

static void on_closed(void *flag)
{
    *(bool *)flag = true;
}

void sqlite_world_close(struct sqlite_world *w)
{
    bool closed = false;
    w->store->ops->close(w->store, on_closed, &closed);
    pump_until(w, &closed);
    w->store = NULL;
}

static struct gl_store *open_fresh(void **ret_world)
{
    struct sqlite_world *w = gl_mem_alloc(sizeof(*w));
    struct gl_why why;
    sqlite_world_init(w, NULL);
    assert_int_equal(sqlite_world_open(w, &why), 0);
    *ret_world = w;
    return w->store;
}

static struct gl_store *reopen(void *world)
{
    struct sqlite_world *w = world;
    struct gl_why why;
    sqlite_world_close(w);
    assert_int_equal(sqlite_world_open(w, &why), 0);
    return w->store;
}

static void close_all(void *world)
{
    struct sqlite_world *w = world;
    sqlite_world_close(w);
    sqlite_world_done(w);
    gl_mem_free(w);
}

static void damage(void *world, const char *kind, const char *id)
{
    char sql[300];
    int n = snprintf(sql, sizeof(sql),
                     "UPDATE record SET value = '!' || substr(value, 2) WHERE kind = '%s' AND id = "
                     "'%s' RETURNING 1",
                     kind, id);
    assert_in_range(n, 1, sizeof(sql) - 1);
    assert_int_equal(sqlite_world_sql(world, sql), 1);
}

const struct contract_maker contract_maker_sqlite = {
    .name = "sqlite",
    .open = open_fresh,
    .pump_until = pump_until,
    .reopen = reopen,
    .close = close_all,
    .damage = damage,
};

void sqlite_contract_begin(struct contract *c, struct sqlite_world *w, struct vfs_cut *vfs)
{
    struct gl_why why;
    sqlite_world_init(w, vfs);
    assert_int_equal(sqlite_world_open(w, &why), 0);
    contract_adopt(c, &contract_maker_sqlite, w, w->store);
}

void sqlite_contract_end(struct contract *c, struct sqlite_world *w)
{
    if (w->store != NULL) {
        sqlite_world_close(w);
    }
    sqlite_world_done(w);
    contract_forget(c);
}

int64_t sqlite_world_sql(struct sqlite_world *w, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t value = 0;
    assert_int_equal(sqlite3_open_v2(w->path, &db, SQLITE_OPEN_READWRITE, w->vfs ? "cut" : NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        value = sqlite3_column_int64(st, 0);
    } else {
        assert_int_equal(rc, SQLITE_DONE);
    }
    (void)sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}
