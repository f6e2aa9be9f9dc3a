/* postgres_lib.h - libpq, loaded when a PostgreSQL store is opened.
 *
 * libpq is not linked: the binary runs on machines without PostgreSQL. All functions in use are in
 * one table; a library that lacks one of them (before PostgreSQL 14) is refused. A loaded library
 * is never unloaded. */
#ifndef GL_STORE_POSTGRES_LIB_H
#define GL_STORE_POSTGRES_LIB_H

#include <postgresql/libpq-fe.h>

#include "base/err.h"

#define GL_POSTGRES_FUNCTIONS(X) \
    X(PQlibVersion)              \
    X(PQconninfoParse)           \
    X(PQconninfoFree)            \
    X(PQfreemem)                 \
    X(PQconnectStartParams)      \
    X(PQconnectPoll)             \
    X(PQfinish)                  \
    X(PQstatus)                  \
    X(PQsocket)                  \
    X(PQerrorMessage)            \
    X(PQsetnonblocking)          \
    X(PQsetNoticeReceiver)       \
    X(PQflush)                   \
    X(PQconsumeInput)            \
    X(PQisBusy)                  \
    X(PQgetResult)               \
    X(PQnotifies)                \
    X(PQenterPipelineMode)       \
    X(PQpipelineSync)            \
    X(PQsendQuery)               \
    X(PQsendQueryParams)         \
    X(PQsendPrepare)             \
    X(PQsendQueryPrepared)       \
    X(PQresultStatus)            \
    X(PQresultErrorField)        \
    X(PQresultErrorMessage)      \
    X(PQntuples)                 \
    X(PQgetvalue)                \
    X(PQgetlength)               \
    X(PQgetisnull)               \
    X(PQclear)

struct gl_postgres_lib {
    void *handle;
#define X(name) __typeof__(&(name)) name;
    GL_POSTGRES_FUNCTIONS(X)
#undef X
};

/* GL_E_UNAVAILABLE: the sentence names the missing package. */
int gl_postgres_lib_load(struct gl_postgres_lib *ret, struct gl_why *reterr_why);
void gl_postgres_lib_free(struct gl_postgres_lib *lib);

#endif
