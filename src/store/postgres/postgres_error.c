/* postgres_error.c - what SQLSTATE codes mean to a request, a group and a connection. An error
 * reported by the server always means that the transaction was rolled back: nothing was written. An
 * unknown outcome arises only from a lost connection. */
#include <stdio.h>
#include <string.h>

#include "store/postgres/postgres_parts.h"

/* The first two characters of a SQLSTATE are its class. */
static bool has_class(const char *state, const char *class)
{
    return strncmp(state, class, 2) == 0;
}

static bool is(const char *state, const char *code)
{
    return strcmp(state, code) == 0;
}

bool gl_postgres_error_is_retried(const char *state)
{
    return is(state, "40001") || is(state, "40P01"); /* serialization_failure, deadlock_detected */
}

/* Classes 21-23 (bad data, constraints) and 54 (limits): retrying one by one isolates the
 * transaction that causes it. */
bool gl_postgres_error_is_poison(const char *state)
{
    return has_class(state, "21") || has_class(state, "22") || has_class(state, "23") ||
           has_class(state, "54");
}

/* Must the connection be closed, to find another server or to check this one again? It is a
 * standby, shutting down, or its tables are gone. */
bool gl_postgres_error_ends_connection(const char *state)
{
    return is(state, "25006") || has_class(state, "57P") || is(state, "42P01") ||
           is(state, "42883") || is(state, "3F000") || is(state, "3D000") || has_class(state, "08");
}

/* Out of disk space, under all its names: a quota is an internal error to the server. Some errors
 * of the same codes pass by themselves; asking again soon is right for them, too. */
static bool needs_help(const char *state)
{
    return is(state, "53000") || is(state, "53100") || is(state, "53400") || is(state, "XX000") ||
           has_class(state, "58");
}

/* A code that is not in this table is taken for a temporary state of the server: nothing was
 * written, ask again. Exact codes come before their class. */
static const struct {
    const char *state; /* or its class */
    int status;
    const char *sentence;
} known[] = {
    {"25006", GL_E_UNAVAILABLE,
     "the server accepts no writes: it is a standby, or default_transaction_read_only is set"},
    {"40001", GL_E_UNAVAILABLE, "serialization failures persisted; retry"},
    {"40P01", GL_E_UNAVAILABLE, "deadlocks persisted; retry"},
    {"53100", GL_E_UNAVAILABLE,
     "the server's disk is full; free some space, and the store resumes by itself"},
    {"58", GL_E_UNAVAILABLE,
     "the server cannot write to its disk: check its log and its free disk space"},
    {"53300", GL_E_UNAVAILABLE, "the server has too many connections (max_connections)"},
    {"57014", GL_E_UNAVAILABLE, "the server took too long (timeout_ms in the store's URL)"},
    {"55P03", GL_E_UNAVAILABLE, "another session held a lock for too long"},
    {"42501", GL_E_DENIED,
     "the user in the store URL lacks a privilege; it needs CREATE on the database and its own "
     "schemas"},
    {"42P01", GL_E_DAMAGED, "tables of the store are missing: restore a backup of the database"},
    {"42883", GL_E_DAMAGED, "functions of the store are missing: restore a backup of the database"},
    {"3F000", GL_E_DAMAGED, "a schema of the store is missing: restore a backup of the database"},
    {"XX001", GL_E_DAMAGED, "the server's data is damaged"},
    {"XX002", GL_E_DAMAGED, "an index of the server is damaged (REINDEX may help)"},
    {"23505", GL_E_INVALID, "a write violates a constraint of the store"},
    {"54", GL_E_LIMIT, "it exceeds a limit of the server"},
    {"21", GL_E_INVALID, "a write violates a constraint of the store"},
    {"22", GL_E_INVALID, "a write violates a constraint of the store"},
    {"23", GL_E_INVALID, "a write violates a constraint of the store"},
};

void gl_postgres_error_outcome(struct gl_postgres *s, const PGresult *r,
                               struct gl_postgres_outcome *ret)
{
    const char *state = s->lib.PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *said = s->lib.PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    state = state != NULL ? state : "";
    said = said != NULL ? said : s->lib.PQresultErrorMessage(r);
    ret->end = GL_POSTGRES_END_ERROR;
    (void)snprintf(ret->state, sizeof(ret->state), "%s", state);
    for (size_t i = 0; i < GL_COUNT(known); i++) {
        if (strncmp(state, known[i].state, strlen(known[i].state)) == 0) {
            bool away = known[i].status == GL_E_UNAVAILABLE;
            ret->status = gl_why(&ret->why, known[i].status, "%s%s (PostgreSQL: %s)",
                                 away ? "store unavailable: " : "", known[i].sentence, said);
            ret->why.needs_help = needs_help(state);
            return;
        }
    }
    ret->status =
        gl_why(&ret->why, GL_E_UNAVAILABLE, "store unavailable: PostgreSQL: %s (%s)", said, state);
    ret->why.needs_help = needs_help(state);
}
