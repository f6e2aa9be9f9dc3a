/* sqlite_contexts.c - a map from context to open database, one per thread. Slots are never removed:
 * a slot remembers that a COMMIT failed even while its database is closed. */
#include "store/sqlite/sqlite_parts.h"

#include "base/check.h"
#include "os/failpoint.h"
#include "store/sqlite/sqlite_error.h"

struct slot {
    struct gl_sqlite_db *db; /* NULL: closed */
    bool in_doubt;           /* a COMMIT failed and its outcome is not settled yet */
    size_t name_n;
    char name[]; /* the key in the map */
};

void gl_sqlite_contexts_init(struct gl_sqlite_contexts *c, const struct gl_sqlite *s,
                             enum gl_sqlite_role role)
{
    GL_ASSERT(role < GL_SQLITE_ROLES_N);
    c->store = s;
    c->role = role;
    gl_map_init(&c->slots);
}

void gl_sqlite_contexts_done(struct gl_sqlite_contexts *c)
{
    struct slot *slot;
    for (size_t i = 0; (slot = gl_map_next(&c->slots, &i)) != NULL;) {
        gl_sqlite_db_free(slot->db);
        gl_mem_free(slot);
    }
    gl_map_done(&c->slots);
}

/* Settle the outcome of a failed COMMIT, without trusting the failed sync: copy everything visible
 * in the write-ahead log into the database and sync that, truncate the log, and start a new log
 * with a synced commit. Frames of the old log that reappear after a power cut then belong to no
 * log, and frames that the failed sync left only in memory are written once more. If the process
 * dies here, callers have received only GL_E_UNKNOWN, and the next process settles the outcome when
 * it opens the file. */
static int recover_commit(struct gl_sqlite_db *db)
{
    GL_ASSERT(db->context.n > 0);
    GL_FAILPOINT("sqlite.before_recovery");
    int rc = sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    rc = rc != SQLITE_OK ? rc : gl_sqlite_db_run(db, GL_SQLITE_BEGIN);
    rc = rc != SQLITE_OK ? rc : gl_sqlite_db_run(db, GL_SQLITE_MARK);
    rc = rc != SQLITE_OK ? rc : gl_sqlite_db_run(db, GL_SQLITE_COMMIT);
    GL_FAILPOINT("sqlite.after_recovery");
    return rc;
}

static int open_db(struct gl_sqlite_contexts *c, gl_str context, bool in_doubt,
                   struct gl_sqlite_db **ret, struct gl_why *reterr_why)
{
    struct gl_sqlite_db *db = NULL;
    int err = gl_sqlite_db_open(&db, c->store, context, c->role, reterr_why);
    if (err < 0) {
        return err;
    }
    int rc = in_doubt ? recover_commit(db) : SQLITE_OK;
    if (rc != SQLITE_OK) {
        err = gl_sqlite_error_why(db, rc, reterr_why);
        gl_sqlite_db_free(db);
        return err;
    }
    *ret = db;
    return 0;
}

static struct slot *add_slot(struct gl_sqlite_contexts *c, gl_str context)
{
    struct slot *slot = gl_mem_alloc(sizeof(*slot) + context.n);

    GL_ASSERT(context.n > 0);
    slot->name_n = context.n;
    memcpy(slot->name, context.p, context.n);
    gl_map_add(&c->slots, (gl_str){slot->name, slot->name_n}, slot);
    return slot;
}

int gl_sqlite_contexts_get(struct gl_sqlite_contexts *c, gl_str context, struct gl_sqlite_db **ret,
                           struct gl_why *reterr_why)
{
    if (!gl_str_is_id(context)) {
        return gl_why(reterr_why, GL_E_INVALID, "\"%.*s\" is not a valid context name",
                      GL_STR_ARG(context));
    }
    if (c->store->read_only && c->role == GL_SQLITE_ROLE_W) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "store unavailable: %s is open read-only",
                      c->store->folder);
    }
    struct slot *slot = gl_map_find(&c->slots, context);
    if (slot != NULL && slot->db != NULL) {
        *ret = slot->db;
        return 0;
    }
    struct gl_sqlite_db *db = NULL;
    int err = open_db(c, context, slot != NULL && slot->in_doubt, &db, reterr_why);
    if (err < 0) {
        return err;
    }
    if (slot == NULL) { /* Only now: requests for contexts that do not exist cost no memory. */
        slot = add_slot(c, context);
    }
    slot->db = *ret = db;
    slot->in_doubt = false;
    GL_ASSERT(!slot->in_doubt);
    return 0;
}

struct gl_sqlite_db *gl_sqlite_contexts_find(struct gl_sqlite_contexts *c, gl_str context)
{
    struct slot *slot = gl_map_find(&c->slots, context);
    return slot != NULL ? slot->db : NULL;
}

void gl_sqlite_contexts_drop(struct gl_sqlite_contexts *c, struct gl_sqlite_db *db, bool in_doubt)
{
    struct slot *slot = gl_map_find(&c->slots, db->context);
    GL_ASSERT(slot != NULL);
    GL_ASSERT(slot->db == db);
    slot->db = NULL;
    slot->in_doubt = slot->in_doubt || in_doubt;
    gl_sqlite_db_free(db);
}

void gl_sqlite_contexts_each(struct gl_sqlite_contexts *c, void (*each)(struct gl_sqlite_db *db))
{
    struct slot *slot;
    for (size_t i = 0; (slot = gl_map_next(&c->slots, &i)) != NULL;) {
        if (slot->db != NULL) {
            each(slot->db);
        }
    }
}
