/* postgres_session.c - sessions, the clock, and the outcomes of transactions: statements on the
 * control connection, outside of any context. Deadlines are compared only with the server's
 * clock. */
#include "base/check.h"
#include "base/limits.h"
#include "store/postgres/postgres_parts.h"

/* Send a statement of the store with these parameters. */
static bool send(struct gl_postgres_conn *c, int statement, const struct gl_arg *args, size_t n)
{
    GL_ASSERT(statement >= 0);
    GL_ASSERT(statement < GL_POSTGRES_STATEMENTS);
    gl_postgres_args_put(&c->store->args, args, n);
    return gl_postgres_conn_send(c, statement, NULL);
}

bool gl_postgres_session_send(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    const struct gl_call *call = &op->call;
    const struct gl_session_options *w = call->options;
    struct gl_arg id = gl_arg_text(call->session.id);

    GL_ASSERT(call->type < GL_CALLS_N);
    switch (call->type) {
    case GL_CALL_SESSION_OPEN:
        return send(c, GL_POSTGRES_SESSION_OPEN,
                    GL_ARGS(gl_arg_text(w->node), gl_arg_text(w->nonce), gl_arg_i64(w->ttl_ms),
                            gl_arg_text(w->about)));
    case GL_CALL_SESSION_RENEW:
        return send(
            c, GL_POSTGRES_SESSION_RENEW,
            GL_ARGS(id, gl_arg_i64(call->session.ttl_ms), gl_arg_text(call->session.about)));
    case GL_CALL_SESSION_END:
        return send(c, GL_POSTGRES_SESSION_END, &id, 1);
    case GL_CALL_SESSION_DEAD:
        return send(c, GL_POSTGRES_SESSION_DEAD, GL_ARGS(id, gl_arg_bool(call->session.declare)));
    case GL_CALL_SESSION_LIST:
        return send(c, GL_POSTGRES_SESSION_LIST, GL_ARGS(gl_arg_i32(GL_SESSIONS_LISTED)));
    case GL_CALL_RESOLVE:
        return send(c, GL_POSTGRES_RESOLVE,
                    GL_ARGS(gl_arg_text(call->resolve.session), gl_arg_u64(call->resolve.tx_id)));
    case GL_CALL_TIME:
        return send(c, GL_POSTGRES_TIME, NULL, 0);
    default:
        GL_UNREACHABLE();
    }
}

/* See resolve_1 in postgres_scripts.c for the numbers. */
static int fill_resolve(struct gl_postgres_op *op)
{
    struct gl_store_req *req = op->call.req;

    GL_ASSERT(op->call.type == GL_CALL_RESOLVE);
    switch (gl_postgres_args_get_int(&op->store->lib, op->result, 0, 0)) {
    case 0:
        return 0;
    case 1:
        return gl_why(&req->why, GL_E_CONFLICT, "transaction %llu was refused or never arrived",
                      (unsigned long long)op->call.resolve.tx_id);
    default:
        return gl_why(
            &req->why, GL_E_UNKNOWN,
            "transaction %llu is too old: the store remembers the last %d of each session",
            (unsigned long long)op->call.resolve.tx_id, (int)GL_POSTGRES_IDS_KEPT);
    }
}

static int no_session(struct gl_postgres_op *op)
{
    return gl_why(&op->call.req->why, GL_E_GONE, "session %.*s is dead or unknown",
                  GL_STR_ARG(op->call.session.id));
}

void gl_postgres_session_fill(struct gl_postgres_op *op)
{
    struct gl_store_req *req = op->call.req;
    const struct gl_postgres_lib *lib = &op->store->lib;
    int rows = lib->PQntuples(op->result);
    /* No row, or a null: the session is unknown (see the functions in postgres_scripts.c). */
    bool is_null = rows == 0 || lib->PQgetisnull(op->result, 0, 0) != 0;
    switch (op->call.type) {
    case GL_CALL_SESSION_OPEN:
        req->session.incarnation = (uint64_t)gl_postgres_args_get_int(lib, op->result, 0, 0);
        req->session.id = gl_postgres_args_get_text(lib, op->result, 0, 1);
        return;
    case GL_CALL_SESSION_RENEW:
    case GL_CALL_SESSION_END:
        req->status = is_null ? no_session(op) : 0;
        return;
    case GL_CALL_SESSION_DEAD:
        req->session_dead = is_null || gl_postgres_args_get_int(lib, op->result, 0, 0) != 0;
        return;
    case GL_CALL_SESSION_LIST:
        gl_postgres_read_fill(op);
        return;
    case GL_CALL_RESOLVE:
        req->status = fill_resolve(op);
        return;
    case GL_CALL_TIME:
        req->time = gl_postgres_args_get_int(lib, op->result, 0, 0);
        return;
    default:
        GL_UNREACHABLE();
    }
}
