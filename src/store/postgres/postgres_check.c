/* postgres_check.c - reads the server's settings with one query and judges them. The handshake
 * refuses settings that lose data silently, unless the user allowed that; `glia store check`
 * reports everything. */
#include "store/postgres/postgres_check.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres_parts.h"

enum { VERSION_MIN = 140000, CONNECTIONS_FEW = 50 };

/* The order of the columns is that of gl_postgres_check_read(). */
const char gl_postgres_check_query[] =
    "SELECT current_setting('server_version_num'), pg_is_in_recovery(),"
    " to_regclass('glia.store') IS NOT NULL,"
    " has_database_privilege(current_database(), 'CREATE'),"
    " current_setting('data_checksums') = 'on', current_setting('autovacuum') = 'on',"
    " current_setting('fsync'), current_setting('synchronous_commit'),"
    " current_setting('full_page_writes'), current_setting('server_encoding'),"
    " current_setting('synchronous_standby_names'),"
    " (SELECT count(*) FROM pg_stat_replication), current_setting('max_connections')";

void gl_postgres_check_read(struct gl_postgres_server *ret, const struct gl_postgres_lib *lib,
                            const PGresult *r)
{
    *ret = (struct gl_postgres_server){
        .version = atoi(lib->PQgetvalue(r, 0, 0)),
        .is_standby = lib->PQgetvalue(r, 0, 1)[0] == 't',
        .has_store = lib->PQgetvalue(r, 0, 2)[0] == 't',
        .may_create = lib->PQgetvalue(r, 0, 3)[0] == 't',
        .has_checksums = lib->PQgetvalue(r, 0, 4)[0] == 't',
        .has_autovacuum = lib->PQgetvalue(r, 0, 5)[0] == 't',
        .fsync = lib->PQgetvalue(r, 0, 6),
        .synchronous_commit = lib->PQgetvalue(r, 0, 7),
        .full_page_writes = lib->PQgetvalue(r, 0, 8),
        .encoding = lib->PQgetvalue(r, 0, 9),
        .standby_names = lib->PQgetvalue(r, 0, 10),
        .standbys_n = atoi(lib->PQgetvalue(r, 0, 11)),
        .connections_max = atoi(lib->PQgetvalue(r, 0, 12)),
    };
}

static bool is_off(const char *setting)
{
    return strcmp(setting, "off") == 0;
}

/* The first setting that can lose data silently, and how; NULL: none. */
static const char *loses(const struct gl_postgres_server *l)
{
    if (is_off(l->fsync)) {
        return "fsync is off: a power cut can destroy the whole database. Set it to on";
    }
    if (is_off(l->full_page_writes)) {
        return "full_page_writes is off: a power cut can leave torn pages. Set it to on";
    }
    if (is_off(l->synchronous_commit)) {
        return "synchronous_commit is off: acknowledged commits can be lost in a crash. "
               "Set it to on, for the server, the database or the user";
    }
    return NULL;
}

int gl_postgres_check_server(const struct gl_postgres_server *l, bool allow_loss,
                             struct gl_why *reterr_why)
{
    if (l->version < VERSION_MIN) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the server is PostgreSQL %d.%d; version 14 or later is required",
                      l->version / 10000, l->version % 10000);
    }
    if (l->is_standby) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the server is a standby, which accepts no writes: name the primary in the "
                      "store's URL, or all hosts, separated by commas");
    }
    if (strcmp(l->encoding, "UTF8") != 0 && strcmp(l->encoding, "SQL_ASCII") != 0) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "the database has the encoding %s: create one with UTF8 (CREATE DATABASE ... "
                      "ENCODING 'UTF8' TEMPLATE template0)",
                      l->encoding);
    }
    const char *lost = loses(l);
    if (lost != NULL && !allow_loss) {
        return gl_why(reterr_why, GL_E_INVALID, "%s; or set store_allow_loss", lost);
    }
    return 0;
}

/* ---- findings ---- */

/* With standbys, does a commit wait for one? If not, a failover can lose acknowledged commits. */
static void replication_findings(const struct gl_postgres_server *l, struct gl_arena *a,
                                 struct gl_findings *ret)
{
    bool waits = l->standby_names[0] != '\0';
    if (waits && strcmp(l->synchronous_commit, "local") == 0) {
        gl_findings_add(ret, a, GL_FINDING_WARNING,
                        "synchronous_standby_names is set, but synchronous_commit is local: no "
                        "commit waits for a standby. After a failover unsafe steps may run twice; "
                        "set it to on");
    } else if (waits) {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "every commit waits for a standby (synchronous_standby_names = %s)",
                        l->standby_names);
    } else if (l->standbys_n > 0) {
        gl_findings_add(
            ret, a, GL_FINDING_WARNING,
            "%d standby(s) are connected, but no commit waits for them: a failover can lose "
            "the last commits, and unsafe steps may run twice. Set "
            "synchronous_standby_names, for example to 'ANY 1 (*)'",
            l->standbys_n);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "no standby is connected: a failover cannot lose commits");
    }
}

void gl_postgres_check_diagnose(const struct gl_postgres_server *l, struct gl_arena *a,
                                struct gl_findings *ret)
{
    struct gl_why why;
    const char *lost = loses(l);
    /* With allow_loss, because the settings that lose data get a finding of their own below. */
    if (gl_postgres_check_server(l, true, &why) < 0) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", why.text);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "PostgreSQL %d.%d, encoding %s",
                        l->version / 10000, l->version % 10000, l->encoding);
    }
    if (lost != NULL) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", lost);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "every commit is on disk (fsync and full_page_writes on, "
                        "synchronous_commit %s)",
                        l->synchronous_commit);
    }
    replication_findings(l, a, ret);
    if (!l->has_checksums) {
        gl_findings_add(ret, a, GL_FINDING_WARNING,
                        "the server has no page checksums: it detects a failing disk late. Records "
                        "have checksums of their own; pg_checksums --enable adds the server's");
    }
    if (!l->has_autovacuum) {
        gl_findings_add(
            ret, a, GL_FINDING_WARNING,
            "autovacuum is off: tables grow without bound and become slow. Set it to on");
    }
    if (l->connections_max < CONNECTIONS_FEW) {
        gl_findings_add(
            ret, a, GL_FINDING_WARNING,
            "max_connections is %d; each node uses 3 plus its `connections` (default 3)",
            l->connections_max);
    }
}

void gl_postgres_check_diagnose_store(const struct gl_postgres_server *l, struct gl_arena *a,
                                      struct gl_findings *ret)
{
    if (!l->has_store && !l->may_create) {
        gl_findings_add(ret, a, GL_FINDING_BAD,
                        "there is no store yet, and this user may not create one: GRANT CREATE ON "
                        "DATABASE ... TO ...");
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        l->has_store ? "it holds a store"
                                     : "it is empty; a node will create the store");
    }
}
