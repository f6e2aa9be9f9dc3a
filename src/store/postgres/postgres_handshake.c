/* postgres_handshake.c - the handshake on a new connection: check the server's version and
 * settings, check that it holds the store we know, apply our session settings. Only then is the
 * connection used. The control connection also creates what is missing.
 *
 *     SERVER -> [MAKE ->] IDENTITY -> [MAKE -> IDENTITY ->] SETTINGS -> DONE
 *
 * MAKE creates the store if there is none, or upgrades an older one. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "store/postgres/postgres_check.h"
#include "store/postgres/postgres_parts.h"

static const char ask_identity[] = "SELECT identity, version FROM glia.store";

/* Session settings. The tables grow faster than the server's statistics, and a plan made for an
 * empty table must not scan a full one. Every statement except those of the control connection has
 * a matching index, so sequential scans are disabled. */
static void settings(struct gl_postgres_conn *c, struct gl_buf *out)
{
    long long ms = (long long)c->store->url.timeout_ms;
    gl_buf_c(out, "SET jit = off; SET lock_timeout = 0;"
                  "SET default_transaction_isolation = 'read committed';");
    switch (c->number) {
    case GL_POSTGRES_CONTROL:
        gl_buf_fmt(out, "SET statement_timeout = %lld", ms * 12);
        return;
    case GL_POSTGRES_LISTENER:
        /* the next sweep makes up for a lost wake-up: no need to wait for the disk */
        gl_buf_fmt(out, "SET synchronous_commit = off; SET statement_timeout = %lld; LISTEN glia",
                   ms);
        return;
    case GL_POSTGRES_READER:
        gl_buf_fmt(out, "SET statement_timeout = %lld;", ms * 12);
        break;
    default:
        /* Shorter than our own timeout: what the server cancelled was certainly not written. */
        gl_buf_fmt(out, "SET statement_timeout = %lld;", ms * 4 / 5);
        /* How long two nodes that lock in opposite order wait for the deadlock detector. Not every
         * user may set this; the default of one second is only slower. */
        gl_buf_c(out, "DO $$ BEGIN PERFORM set_config('deadlock_timeout', '100ms', false);"
                      " EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;");
    }
    gl_buf_c(out, "SET enable_seqscan = off; SET enable_hashjoin = off;"
                  "SET enable_mergejoin = off; SET enable_bitmapscan = off;"
                  "SET plan_cache_mode = force_generic_plan");
}

/* Enter a step and send its query. False: the connection is broken. */
static bool send_question(struct gl_postgres_conn *c, enum gl_postgres_handshake what)
{
    struct gl_postgres *s = c->store;
    struct gl_buf *b = &s->text;
    gl_buf_reset(b);
    c->handshake = what;
    switch (what) {
    case GL_POSTGRES_HANDSHAKE_SERVER:
        gl_buf_c(b, gl_postgres_check_query);
        break;
    case GL_POSTGRES_HANDSHAKE_IDENTITY:
        gl_buf_c(b, ask_identity);
        break;
    case GL_POSTGRES_HANDSHAKE_MAKE:
        c->made = true;
        gl_postgres_schema_store(b, gl_str_of(gl_calls_new_id(&s->calls).text));
        break;
    case GL_POSTGRES_HANDSHAKE_SETTINGS:
        settings(c, b);
        break;
    case GL_POSTGRES_HANDSHAKE_DONE:
        if (c->number != GL_POSTGRES_LISTENER && s->lib.PQenterPipelineMode(c->pg) == 0) {
            return false;
        }
        return true;
    }
    gl_buf_char(b, '\0');
    return s->lib.PQsendQuery(c->pg, b->p) != 0;
}

bool gl_postgres_handshake_begin(struct gl_postgres_conn *c)
{
    c->made = false;
    return send_question(c, GL_POSTGRES_HANDSHAKE_SERVER);
}

/* Refuse the server: requests fail with `why` until a later handshake succeeds. */
static void reject_server(struct gl_postgres_conn *c, const struct gl_why *why)
{
    struct gl_postgres *s = c->store;
    s->rejection = why->code;
    s->rejection_why = *why;
    gl_postgres_conn_drop(c, why->text);
}

static void accept_server(struct gl_postgres *s)
{
    s->rejection = 0;
}

/* ---- answers ---- */

static void on_server(struct gl_postgres_conn *c, const PGresult *r)
{
    struct gl_postgres *s = c->store;
    struct gl_postgres_server look;
    gl_postgres_check_read(&look, &s->lib, r);
    bool is_lost = !look.has_store && s->identity.n > 0;
    if (s->findings != NULL) {
        gl_postgres_check_diagnose(&look, s->findings_arena, s->findings);
        if (!is_lost) { /* else that is the finding, and no new store may be suggested in its place
                         */
            gl_postgres_check_diagnose_store(&look, s->findings_arena, s->findings);
        }
    }
    struct gl_why why;
    if (gl_postgres_check_server(&look, s->allow_loss || s->check_only, &why) < 0) {
        reject_server(c, &why);
        return;
    }
    /* An empty database is only accepted if this data folder has not used a store there. */
    if (look.has_store) {
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_IDENTITY);
    } else if (is_lost) {
        (void)gl_why(&why, GL_R_STORE_EMPTIED,
                     "the database %s is not the store %.*s that was used before: it has no store "
                     "at all. Restore it from a backup, correct the URL, or start with a new data "
                     "folder",
                     s->url.display, GL_STR_ARG(gl_buf_view(&s->identity)));
        reject_server(c, &why);
    } else if (s->check_only) {
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_SETTINGS);
    } else {
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_MAKE);
    }
}

/* The first contact: adopt the identity and report it, so that the data folder remembers it. */
static void set_identity(struct gl_postgres *s, gl_str identity)
{
    if (s->identity.n == 0) {
        gl_buf_str(&s->identity, identity);
        gl_calls_identified(&s->calls, identity);
    }
}

static void on_identity(struct gl_postgres_conn *c, const PGresult *r)
{
    struct gl_postgres *s = c->store;
    struct gl_why why;
    if (s->lib.PQntuples(r) !=
        1) { /* an interrupted creation cannot cause this: it is one transaction */
        (void)gl_why(&why, GL_E_DAMAGED, "the table glia.store of %s is empty: restore a backup",
                     s->url.display);
        reject_server(c, &why);
        return;
    }
    gl_str identity = gl_postgres_args_get_text(&s->lib, r, 0, 0);
    int version = atoi(s->lib.PQgetvalue(r, 0, 1));
    if (version > GL_POSTGRES_STORE_VERSION) {
        (void)gl_why(&why, GL_E_VERSION,
                     "the store in %s has schema version %d, written by a newer release of glia; "
                     "this one supports up to version %d: use the newer release",
                     s->url.display, version, (int)GL_POSTGRES_STORE_VERSION);
        reject_server(c, &why);
        return;
    }
    if (s->identity.n > 0 && !gl_str_eq(identity, gl_buf_view(&s->identity))) {
        (void)gl_why(&why, GL_R_STORE_REPLACED,
                     "the database %s holds the store %.*s, not the store %.*s that was used "
                     "before: correct the URL, restore the right database, or start with a new "
                     "data folder",
                     s->url.display, GL_STR_ARG(identity), GL_STR_ARG(gl_buf_view(&s->identity)));
        reject_server(c, &why);
        return;
    }
    set_identity(s, identity);
    if (version < GL_POSTGRES_STORE_VERSION && c->number == GL_POSTGRES_CONTROL && !c->made) {
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_MAKE);
    } else {
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_SETTINGS);
    }
}

/* A missing privilege or damage needs a person; any other error may pass. */
static void on_failed(struct gl_postgres_conn *c, const PGresult *r)
{
    struct gl_postgres_outcome o;
    gl_postgres_error_outcome(c->store, r, &o);
    if (o.status == GL_E_DENIED || o.status == GL_E_DAMAGED) {
        reject_server(c, &o.why);
        return;
    }
    gl_postgres_conn_drop(c, o.why.text);
}

static bool is_failed(struct gl_postgres *s, const PGresult *r)
{
    ExecStatusType status = s->lib.PQresultStatus(r);
    return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
}

/* The result of a step is complete: go to the next. */
static void on_answer(struct gl_postgres_conn *c, const PGresult *last)
{
    switch (c->handshake) {
    case GL_POSTGRES_HANDSHAKE_SERVER:
        on_server(c, last);
        return;
    case GL_POSTGRES_HANDSHAKE_IDENTITY:
        on_identity(c, last);
        return;
    case GL_POSTGRES_HANDSHAKE_MAKE:
        (void)send_question(c,
                            GL_POSTGRES_HANDSHAKE_IDENTITY); /* another node may have been first */
        return;
    case GL_POSTGRES_HANDSHAKE_SETTINGS:
        accept_server(c->store);
        (void)send_question(c, GL_POSTGRES_HANDSHAKE_DONE);
        return;
    case GL_POSTGRES_HANDSHAKE_DONE:
        return;
    }
}

/* A script of several statements returns several results. The last one counts, once nothing more
 * comes. Always returns true: a failure drops the connection by itself. */
bool gl_postgres_handshake_readable(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;
    while (c->state == GL_POSTGRES_IN_HANDSHAKE && c->handshake != GL_POSTGRES_HANDSHAKE_DONE &&
           s->lib.PQisBusy(c->pg) == 0) {
        PGresult *r = s->lib.PQgetResult(c->pg), *last = c->handshake_last;
        c->handshake_last = r;
        if (r == NULL && last == NULL) {
            break;
        }
        if (r == NULL) {
            on_answer(c, last);
        } else if (is_failed(s, r)) {
            on_failed(c, r); /* also clears `r` */
        }
        s->lib.PQclear(last);
    }
    return true;
}
