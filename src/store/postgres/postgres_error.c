#include <stdio.h>
#include <string.h>

#include "store/postgres/postgres_parts.h"

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

bool gl_postgres_error_is_poison(const char *state)
{
    return has_class(state, "21") || has_class(state, "22") || has_class(state, "23") ||
           has_class(state, "54");
}

/* Another server must be looked for, or this one has to be looked at again: a standby, one that is
 * going down, one whose tables are gone. */
bool gl_postgres_error_ends_connection(const char *state)
{
    return is(state, "25006") || has_class(state, "57P") || is(state, "42P01") ||
           is(state, "42883") || is(state, "3F000") || is(state, "3D000") || has_class(state, "08");
}

/* A disk without room, by all its names: a quota is an internal error to the server. Some of what
 * else has that name passes by itself, and asking again soon is right for that, too. */
static bool needs_help(const char *state)
{
    return is(state, "53000") || is(state, "53100") || is(state, "53400") || is(state, "XX000") ||
           has_class(state, "58");
}

/* What is missing from this table is the state of the server: nothing was written, ask again. */
static const struct {
    const char *state; /* or its class */
    int status;
    const char *sentence;
} known[] = {
    {"25006", GL_E_UNAVAILABLE,
     "the server takes no writes: it is a standby, or default_transaction_read_only is set"},
    {"40001", GL_E_UNAVAILABLE, "others were faster every time; try again"},
    {"40P01", GL_E_UNAVAILABLE, "others held its locks every time; try again"},
    {"53100", GL_E_UNAVAILABLE,
     "the server's disk is full; free some space and the store goes on by itself"},
    {"58", GL_E_UNAVAILABLE,
     "the server cannot write to its disk: look at its log and at the room there"},
    {"53300", GL_E_UNAVAILABLE, "the server has too many connections (max_connections)"},
    {"57014", GL_E_UNAVAILABLE, "the server took too long (timeout_ms in the store's URL)"},
    {"55P03", GL_E_UNAVAILABLE, "somebody holds a lock for too long"},
    {"42501", GL_E_DENIED,
     "the user of the store's URL lacks a right; it needs CREATE on the database and its own "
     "schemas"},
    {"42P01", GL_E_DAMAGED, "tables of the store are gone: restore a backup of the database"},
    {"42883", GL_E_DAMAGED, "functions of the store are gone: restore a backup of the database"},
    {"3F000", GL_E_DAMAGED, "a schema of the store is gone: restore a backup of the database"},
    {"XX001", GL_E_DAMAGED, "the server's data is damaged"},
    {"XX002", GL_E_DAMAGED, "an index of the server is damaged (REINDEX may help)"},
    {"23505", GL_E_INVALID, "a write breaks a rule of the store"},
    {"54", GL_E_LIMIT, "it is larger than the server takes"},
    {"21", GL_E_INVALID, "a write breaks a rule of the store"},
    {"22", GL_E_INVALID, "a write breaks a rule of the store"},
    {"23", GL_E_INVALID, "a write breaks a rule of the store"},
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
    ret->status = gl_why(&ret->why, GL_E_UNAVAILABLE, "store unavailable: PostgreSQL says: %s (%s)",
                         said, state);
    ret->why.needs_help = needs_help(state);
}
