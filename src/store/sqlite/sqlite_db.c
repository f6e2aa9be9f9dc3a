/* sqlite_db.c - opens and closes a connection, and wraps its prepared statements.
 *
 * The order of opening matters: check the log against the note before SQLite can drop anything,
 * connect, check that the noted group is there, upgrade the schema, prepare the statements, and
 * only then (writer) start to update the note. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "store/sqlite/sqlite_error.h"
#include "store/sqlite/sqlite_parts.h"
#include "store/sqlite/sqlite_query.h"
#include "store/sqlite/sqlite_schema.h"

/* Measured, see docs/store-sqlite.md. Automatic checkpoints are off: the writer runs them after the
 * completions of a group have been posted. Freed pages are not overwritten: nothing in them is more
 * secret than what stays. */
static const char writer_settings[] = "PRAGMA page_size = 8192;"
                                      "PRAGMA auto_vacuum = NONE;"
                                      "PRAGMA journal_mode = WAL;"
                                      "PRAGMA synchronous = FULL;"
                                      "PRAGMA wal_autocheckpoint = 0;"
                                      "PRAGMA journal_size_limit = 16777216;"
                                      "PRAGMA temp_store = MEMORY;"
                                      "PRAGMA secure_delete = OFF;"
                                      "PRAGMA cache_size = -4096;";
static const char reader_settings[] = "PRAGMA temp_store = MEMORY;"
                                      "PRAGMA cache_size = -2048;";

static const struct {
    enum gl_sqlite_role role;
    const char *sql;
} statements[GL_SQLITE_STATEMENTS_N] = {
#define X(name, role, sql) [GL_SQLITE_##name] = {GL_SQLITE_ROLE_##role, sql},
    GL_SQLITE_STATEMENTS(X)
#undef X
};

static const char *path_of(struct gl_arena *a, const struct gl_sqlite *s, gl_str context)
{
    GL_ASSERT(context.n > 0);
    return gl_str_fmt(a, "%s/%.*s/state.db", s->folder, GL_STR_ARG(context)).p;
}

bool gl_sqlite_db_exists(const struct gl_sqlite *s, gl_str context)
{
    struct gl_arena a = {0};
    bool exists = access(path_of(&a, s, context), F_OK) == 0;
    gl_arena_done(&a);
    return exists;
}

/* The parent folder is synced, too: otherwise a power cut could remove the folder together with
 * commits that were acknowledged. */
static int make_folder(struct gl_sqlite_db *db, const struct gl_sqlite *s,
                       struct gl_why *reterr_why)
{
    const char *folder = gl_str_fmt(&db->arena, "%s/%.*s", s->folder, GL_STR_ARG(db->context)).p;
    struct stat st;

    GL_ASSERT(db->context.n > 0);
    if (stat(folder, &st) == 0) {
        return 0;
    }
    int err = gl_fs_mkdirs(folder, reterr_why);
    if (err == 0) {
        err = gl_fs_sync_folder(s->folder, reterr_why);
    }
    if (err < 0) {
        (void)gl_why_prefix(reterr_why, "store unavailable");
        return GL_E_UNAVAILABLE;
    }
    return 0;
}

static int connect_file(struct gl_sqlite_db *db, const struct gl_sqlite *s,
                        enum gl_sqlite_role role)
{
    int flags = role == GL_SQLITE_ROLE_W ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                         : SQLITE_OPEN_READONLY;
    int rc = sqlite3_open_v2(db->path, &db->conn, flags | SQLITE_OPEN_NOMUTEX, s->vfs);

    GL_ASSERT(role < GL_SQLITE_ROLES_N);
    if (rc != SQLITE_OK) {
        return rc;
    }
    (void)sqlite3_extended_result_codes(db->conn, 1);
    (void)sqlite3_busy_timeout(db->conn, GL_SQLITE_BUSY_MS);
    if (role == GL_SQLITE_ROLE_W && sqlite3_db_readonly(db->conn, "main") != 0) {
        return SQLITE_READONLY; /* SQLite falls back to read-only, and the connection would stay so
                                 */
    }
    return sqlite3_exec(db->conn, role == GL_SQLITE_ROLE_W ? writer_settings : reader_settings,
                        NULL, NULL, NULL);
}

/* Without WAL a commit would be as durable, but readers and the writer would block each other. */
static int require_wal(struct gl_sqlite_db *db, struct gl_why *reterr_why)
{
    char mode[16];
    if (gl_sqlite_query_text(db->conn, "PRAGMA journal_mode", mode, sizeof(mode)) != SQLITE_OK ||
        strcmp(mode, "wal") != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "store unavailable: the file system of %s does not support shared memory, "
                      "which SQLite needs: use a local file system",
                      db->path);
    }
    return 0;
}

static int prepare(struct gl_sqlite_db *db, enum gl_sqlite_role role, struct gl_why *reterr_why)
{
    GL_ASSERT(role < GL_SQLITE_ROLES_N);
    for (int i = 0; i < GL_SQLITE_STATEMENTS_N; i++) {
        if (statements[i].role != role) {
            continue;
        }
        int rc = sqlite3_prepare_v3(db->conn, statements[i].sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &db->stmts[i], NULL);
        if (rc == SQLITE_ERROR) { /* a table or column is missing */
            return gl_why(reterr_why, GL_E_DAMAGED,
                          "%s is damaged (%s): stop the node and restore a backup", db->path,
                          sqlite3_errmsg(db->conn));
        }
        if (rc != SQLITE_OK) {
            return gl_sqlite_error_why(db, rc, reterr_why);
        }
    }
    return 0;
}

/* Called after each commit, once it is synced and before it is reported. */
static int on_wal_grown(void *owner, sqlite3 *conn, const char *name, int pages)
{
    GL_ASSERT(pages >= 0);
    (void)name;
    struct gl_sqlite_db *db = owner;
    db->wal_pages = pages;
    gl_sqlite_synced_note(&db->synced, conn, (uint32_t)pages, db->group_n);
    return SQLITE_OK;
}

/* Continue the numbering of groups, and open the note. */
static int set_up_writer(struct gl_sqlite_db *db, struct gl_why *reterr_why)
{
    int64_t n = 0, page_bytes = 0;
    int rc = gl_sqlite_db_number(db, GL_SQLITE_GROUP_LAST, &n);

    GL_ASSERT(db->synced.fd < 0);
    rc = rc != SQLITE_OK ? rc : gl_sqlite_db_number(db, GL_SQLITE_PAGE_BYTES, &page_bytes);
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(db, rc, reterr_why);
    }
    db->group_n = (uint64_t)n;
    gl_sqlite_synced_open(&db->synced, db->path, (uint32_t)page_bytes);
    (void)sqlite3_wal_hook(db->conn, on_wal_grown, db);
    return 0;
}

static int set_up(struct gl_sqlite_db *db, const struct gl_sqlite *s, enum gl_sqlite_role role,
                  struct gl_why *reterr_why)
{
    bool writer = role == GL_SQLITE_ROLE_W;
    int err = writer ? make_folder(db, s, reterr_why) : 0;
    if (err < 0) {
        return err;
    }
    /* Before SQLite sees the log: what it drops cannot be detected afterwards. */
    struct gl_sqlite_wal_mark mark;
    err = gl_sqlite_synced_check(db->path, writer, &mark, reterr_why);
    if (err < 0) {
        return err;
    }
    int rc = connect_file(db, s, role);
    if (rc != SQLITE_OK) {
        return gl_sqlite_error_why(db, rc, reterr_why);
    }
    err = writer ? require_wal(db, reterr_why) : 0;
    if (err == 0) {
        err = gl_sqlite_synced_check_group(db->conn, db->path, &mark, reterr_why);
    }
    if (err == 0) {
        err = gl_sqlite_schema_upgrade(db, gl_sqlite_schema_steps, gl_sqlite_schema_steps_n,
                                       !writer, reterr_why);
    }
    if (err == 0) {
        err = prepare(db, role, reterr_why);
    }
    return err < 0 || !writer ? err : set_up_writer(db, reterr_why);
}

static int open_db(struct gl_sqlite_db **ret, const struct gl_sqlite *s, gl_str context,
                   enum gl_sqlite_role role, struct gl_why *reterr_why)
{
    GL_ASSERT(gl_str_is_id(context)); /* it becomes part of a path */
    struct gl_sqlite_db *db = gl_mem_alloc(sizeof(*db));
    db->context = gl_str_dup(&db->arena, context);
    db->path = path_of(&db->arena, s, context);
    db->synced.fd = -1;
    int err = 0;
    if (role == GL_SQLITE_ROLE_R && access(db->path, F_OK) != 0) {
        err = gl_why(reterr_why, GL_E_NOT_FOUND, "there is no %s", db->path);
        /* The note of a deleted database would make the new one look as if it had lost commits. */
    } else if (access(db->path, F_OK) != 0) {
        gl_sqlite_synced_forget(db->path);
    }
    if (err == 0) {
        err = set_up(db, s, role, reterr_why);
    }
    if (err < 0) {
        gl_sqlite_db_free(db);
        return err;
    }
    *ret = db;
    return 0;
}

int gl_sqlite_db_open(struct gl_sqlite_db **ret, const struct gl_sqlite *s, gl_str context,
                      enum gl_sqlite_role role, struct gl_why *reterr_why)
{
    int err = open_db(ret, s, context, role, reterr_why);

    GL_ASSERT(role < GL_SQLITE_ROLES_N);
    if (err != GL_E_VERSION || role == GL_SQLITE_ROLE_W || s->read_only) {
        return err;
    }
    /* An older schema, or a creation that was interrupted, and no commit since. Do what a writer
     * would do at its first commit: reads must not have to wait for one. */
    struct gl_sqlite_db *writer = NULL;
    err = open_db(&writer, s, context, GL_SQLITE_ROLE_W, reterr_why);
    if (err < 0) {
        return err;
    }
    gl_sqlite_db_free(writer);
    return open_db(ret, s, context, role, reterr_why);
}

void gl_sqlite_db_free(struct gl_sqlite_db *db)
{
    if (db == NULL) {
        return;
    }
    for (int i = 0; i < GL_SQLITE_STATEMENTS_N; i++) {
        (void)sqlite3_finalize(db->stmts[i]); /* returns the statement's last error again */
    }
    int rc = sqlite3_close(db->conn);
    GL_ASSERT(rc == SQLITE_OK); /* else a statement was not finalized */
    gl_sqlite_synced_close(&db->synced);
    gl_arena_done(&db->arena);
    gl_mem_free(db);
}

void gl_sqlite_db_bind_n(struct gl_sqlite_db *db, enum gl_sqlite_statement st,
                         const struct gl_arg *args, size_t n)
{
    GL_ASSERT(st < GL_SQLITE_STATEMENTS_N);
    for (int i = 0; (size_t)i < n; i++) {
        const struct gl_arg *a = &args[i];
        /* In SQLite's order blobs sort after texts. A NULL pointer would bind an SQL null. */
        int rc = a->type == GL_ARG_TOP ? sqlite3_bind_zeroblob(db->stmts[st], i + 1, 0)
                 : a->type == GL_ARG_TEXT
                     ? sqlite3_bind_text64(db->stmts[st], i + 1, a->text.p != NULL ? a->text.p : "",
                                           a->text.n, SQLITE_STATIC, SQLITE_UTF8)
                     : sqlite3_bind_int64(db->stmts[st], i + 1, a->number);
        GL_ASSERT(rc == SQLITE_OK); /* GL_RECORD_BYTES_MAX is far below SQLite's limit */
    }
}

int gl_sqlite_db_run(struct gl_sqlite_db *db, enum gl_sqlite_statement st)
{
    int rc = sqlite3_step(db->stmts[st]);

    GL_ASSERT(st < GL_SQLITE_STATEMENTS_N);
    (void)sqlite3_reset(db->stmts[st]); /* returns rc again */
    GL_ASSERT(rc != SQLITE_ROW);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int gl_sqlite_db_step(struct gl_sqlite_db *db, enum gl_sqlite_statement st)
{
    GL_ASSERT(st < GL_SQLITE_STATEMENTS_N);
    return sqlite3_step(db->stmts[st]);
}

void gl_sqlite_db_reset(struct gl_sqlite_db *db, enum gl_sqlite_statement st)
{
    (void)sqlite3_reset(db->stmts[st]); /* returns the result of the step again */
}

int64_t gl_sqlite_db_int(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int column)
{
    GL_ASSERT(column >= 0);
    return sqlite3_column_int64(db->stmts[st], column);
}

gl_str gl_sqlite_db_str(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int column)
{
    /* As a blob: the bytes as they are, without the copy that would append a NUL. */
    const char *p = sqlite3_column_blob(db->stmts[st], column);

    GL_ASSERT(column >= 0);
    return (gl_str){.p = p, .n = (size_t)sqlite3_column_bytes(db->stmts[st], column)};
}

int gl_sqlite_db_number(struct gl_sqlite_db *db, enum gl_sqlite_statement st, int64_t *ret)
{
    *ret = 0;
    int rc = gl_sqlite_db_step(db, st);
    if (rc == SQLITE_ROW) {
        *ret = gl_sqlite_db_int(db, st, 0);
        rc = SQLITE_OK;
    }
    gl_sqlite_db_reset(db, st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
