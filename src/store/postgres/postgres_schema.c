/* postgres_schema.c - builds the text of statements and scripts by replacing '@' with the quoted
 * schema of a context. */
#include "store/postgres/postgres_schema.h"

#include "base/check.h"
#include "base/limits.h"
#include "store/postgres/postgres_scripts.h"

enum {
    NAME_BYTES_MAX = 63,
    PREFIX_BYTES = 5,
    KEPT_BYTES = 40
}; /* limits of identifiers on the server */

/* The server would truncate a long name, possibly to the same name as another: it is truncated
 * here, with a hash of the whole name appended. */
void gl_postgres_schema_name(struct gl_buf *out, gl_str context)
{
    GL_ASSERT(context.n > 0);
    if (PREFIX_BYTES + context.n <= NAME_BYTES_MAX) {
        gl_buf_fmt(out, "\"glia_%.*s\"", GL_STR_ARG(context));
        return;
    }
    gl_buf_fmt(out, "\"glia_%.*s_%016llx\"", (int)KEPT_BYTES, context.p,
               (unsigned long long)gl_str_hash(context));
}

/* Copy `text`, replacing '@' with the schema. */
static void fill_in(struct gl_buf *out, const char *text, gl_str schema)
{
    GL_ASSERT(schema.n > 0 || text[0] != '@');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '@') {
            gl_buf_str(out, schema);
        } else {
            gl_buf_char(out, *p);
        }
    }
}

/* ---- statements ---- */

/* Parameters are sent in binary, without types; they are cast where the server could not infer the
 * type. */
static const char *const statements[] = {
    [GL_POSTGRES_SESSION_OPEN] = "SELECT incarnation, id FROM glia.session_open_1($1, $2, $3, $4)",
    [GL_POSTGRES_SESSION_RENEW] =
        "UPDATE glia.session SET deadline = glia.now_ms() + $2::bigint, about = $3::text"
        " WHERE id = $1::text AND NOT dead RETURNING true",
    [GL_POSTGRES_SESSION_END] = "SELECT glia.session_end_1($1)",
    [GL_POSTGRES_SESSION_DEAD] = "SELECT glia.session_dead_1($1, $2)",
    [GL_POSTGRES_SESSION_LIST] =
        "SELECT id, incarnation, node, about, deadline - glia.now_ms(), dead"
        " FROM ((SELECT *, 0 AS place FROM glia.session WHERE NOT dead ORDER BY id LIMIT $1::int)"
        " UNION ALL"
        " (SELECT *, 1 FROM glia.session WHERE dead ORDER BY ended DESC, incarnation DESC"
        " LIMIT $1::int)) AS s"
        " ORDER BY place, ended DESC, incarnation DESC, id LIMIT $1::int",
    [GL_POSTGRES_RESOLVE] = "SELECT glia.resolve_1($1, $2)",
    [GL_POSTGRES_TIME] = "SELECT glia.now_ms()",
    [GL_POSTGRES_CONTEXT_GET] = "SELECT version FROM glia.context WHERE name = $1::text",
    [GL_POSTGRES_COMMIT] =
        "SELECT @.commit_1($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,"
        "$21,$22,$23,$24,$25,$26,$27,$28,$29,$30,$31,$32,$33,$34,$35,$36,$37,$38,$39,$40,$41,$42,"
        "'{}','{}','{}','{}','{}')",
    [GL_POSTGRES_GET] = "SELECT k.n, r.rev, r.owner, r.token, r.live, r.sum, r.value"
                        " FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k(kind, id, n)"
                        " JOIN @.record r ON r.kind = k.kind AND r.id = k.id",
    [GL_POSTGRES_RANGE] = "SELECT score, id FROM @.entry WHERE name = $1::text"
                          " AND score >= $2::bigint AND score <= $3::bigint"
                          " ORDER BY score, id LIMIT $4::int",
    [GL_POSTGRES_RANGE_AFTER] = "SELECT score, id FROM @.entry WHERE name = $1::text"
                                " AND (score, id) > ($2::bigint, $5::bytea)"
                                " AND score <= $3::bigint ORDER BY score, id LIMIT $4::int",
    [GL_POSTGRES_LOG_READ] = "SELECT seq, value FROM @.log WHERE kind = $1::text AND id = $2::bytea"
                             " AND seq >= $3::bigint ORDER BY seq LIMIT $4::int",
    [GL_POSTGRES_MEASURE] = "SELECT @.measure_1()",
    [GL_POSTGRES_EXPORT_RECORDS] =
        "SELECT kind, id, rev, owner, token, live, sum, value FROM @.record"
        " WHERE (kind, id) > ($1::text, $2::bytea) ORDER BY kind, id LIMIT $3::int",
    [GL_POSTGRES_EXPORT_ENTRIES] = "SELECT name, id, score FROM @.entry"
                                   " WHERE (name, score, id) > ($1::text, $4::bigint, $2::bytea)"
                                   " ORDER BY name, score, id LIMIT $3::int",
    [GL_POSTGRES_EXPORT_LOG] = "SELECT kind, id, seq, value FROM @.log"
                               " WHERE (kind, id, seq) > ($1::text, $2::bytea, $4::bigint)"
                               " ORDER BY kind, id, seq LIMIT $3::int",
};

static void list_page(struct gl_buf *out, int flags, gl_str schema)
{
    GL_ASSERT(flags >= 0);
    GL_ASSERT(flags < GL_POSTGRES_LISTS);
    gl_buf_c(out, "SELECT id, rev, owner, token, live, ");
    gl_buf_c(out, flags & GL_POSTGRES_LIST_IDS ? "0::bigint, ''::bytea FROM " : "sum, value FROM ");
    gl_buf_str(out, schema);
    gl_buf_c(out, ".record WHERE kind = $1::text AND id >= $2::bytea");
    gl_buf_c(out, flags & GL_POSTGRES_LIST_BELOW ? " AND id < $4::bytea" : "");
    gl_buf_c(out, flags & GL_POSTGRES_LIST_LIVE ? " AND live" : "");
    gl_buf_c(out, flags & GL_POSTGRES_LIST_DOWN ? " ORDER BY id DESC" : " ORDER BY id");
    gl_buf_c(out, " LIMIT $3::int");
}

/* A page that ends at a total size is cut on the server: a row belongs to it if the rows before it
 * have not reached the size. */
static void list_statement(struct gl_buf *out, int flags, gl_str schema)
{
    const char *order = flags & GL_POSTGRES_LIST_DOWN ? "ORDER BY id DESC" : "ORDER BY id";

    GL_ASSERT(flags >= 0);
    GL_ASSERT(flags < GL_POSTGRES_LISTS);
    if (!(flags & GL_POSTGRES_LIST_BYTES)) {
        list_page(out, flags, schema);
        return;
    }
    gl_buf_fmt(out,
               "SELECT id, rev, owner, token, live, sum, value FROM (SELECT page.*,"
               " sum(octet_length(value)) OVER (%s ROWS UNBOUNDED PRECEDING)"
               " - octet_length(value) AS before FROM (",
               order);
    list_page(out, flags, schema);
    gl_buf_fmt(out, ") AS page) AS rows WHERE before < $%d::bigint %s",
               flags & GL_POSTGRES_LIST_BELOW ? 5 : 4, order);
}

void gl_postgres_schema_statement(struct gl_buf *out, int statement, gl_str schema)
{
    GL_ASSERT(statement >= 0);
    GL_ASSERT(statement < GL_POSTGRES_STATEMENTS);
    if (statement >= GL_POSTGRES_LIST) {
        list_statement(out, statement - GL_POSTGRES_LIST, schema);
        return;
    }
    fill_in(out, statements[statement], schema);
}

/* ---- scripts ---- */

/* Two nodes may create the store at the same moment: one waits for the lock and finds it done. */
static const char lock[] = "SELECT pg_advisory_xact_lock(1196181825)"; /* "GLIA" */

void gl_postgres_schema_store(struct gl_buf *out, gl_str identity)
{
    GL_ASSERT(identity.n > 0);
    gl_buf_fmt(out, "%s;", lock);
    for (size_t i = 0; gl_postgres_script_store[i] != NULL; i++) {
        gl_buf_fmt(out, "%s;", gl_postgres_script_store[i]);
    }
    /* an older version would be upgraded here; there is none yet */
    gl_buf_fmt(out,
               "INSERT INTO glia.store(identity, version, made_by)"
               " VALUES('%.*s', %d, 'glia " GL_VERSION "') ON CONFLICT DO NOTHING",
               GL_STR_ARG(identity), (int)GL_POSTGRES_STORE_VERSION);
}

bool gl_postgres_schema_context(struct gl_buf *out, size_t i, gl_str context, gl_str schema)
{
    GL_ASSERT(context.n > 0);
    if (i == 0) {
        gl_buf_c(out, lock);
        return true;
    }
    for (size_t k = 0; k < i; k++) {
        if (gl_postgres_script_context[k] == NULL) {
            if (k == i - 1) {
                /* The name is an id, and the schema name is quoted: neither contains anything to
                 * escape. */
                gl_buf_fmt(out,
                           "INSERT INTO glia.context(name, schema, version)"
                           " VALUES('%.*s', '%.*s', %d) ON CONFLICT DO NOTHING",
                           GL_STR_ARG(context), GL_STR_ARG(schema),
                           (int)GL_POSTGRES_CONTEXT_VERSION);
                return true;
            }
            return false;
        }
    }
    fill_in(out, gl_postgres_script_context[i - 1], schema);
    return true;
}
