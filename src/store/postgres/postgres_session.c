/* Sessions, the clock, and what became of a transaction. */
#include "base/check.h"
#include "base/limits.h"
#include "store/postgres/postgres_parts.h"

bool gl_postgres_session_send(struct gl_postgres_conn *c, struct gl_postgres_op *op)
{
    struct gl_postgres_args *a = &c->store->args;
    switch (op->type) {
    case GL_POSTGRES_OP_SESSION_OPEN:
        gl_postgres_args_text(a, op->u.open.node);
        gl_postgres_args_text(a, op->u.open.nonce);
        gl_postgres_args_i64(a, op->u.open.ttl_ms);
        gl_postgres_args_text(a, op->u.open.about);
        return gl_postgres_conn_send(c, GL_POSTGRES_SESSION_OPEN, NULL);
    case GL_POSTGRES_OP_SESSION_RENEW:
        gl_postgres_args_text(a, op->u.session.session);
        gl_postgres_args_i64(a, op->u.session.ttl_ms);
        gl_postgres_args_text(a, op->u.session.about);
        return gl_postgres_conn_send(c, GL_POSTGRES_SESSION_RENEW, NULL);
    case GL_POSTGRES_OP_SESSION_END:
        gl_postgres_args_text(a, op->u.session.session);
        return gl_postgres_conn_send(c, GL_POSTGRES_SESSION_END, NULL);
    case GL_POSTGRES_OP_SESSION_DEAD:
        gl_postgres_args_text(a, op->u.session.session);
        gl_postgres_args_bool(a, op->u.session.declare);
        return gl_postgres_conn_send(c, GL_POSTGRES_SESSION_DEAD, NULL);
    case GL_POSTGRES_OP_SESSION_LIST:
        gl_postgres_args_i32(a, GL_SESSIONS_LISTED);
        return gl_postgres_conn_send(c, GL_POSTGRES_SESSION_LIST, NULL);
    case GL_POSTGRES_OP_RESOLVE:
        gl_postgres_args_text(a, op->u.resolve.session);
        gl_postgres_args_i64(a, (int64_t)op->u.resolve.id);
        return gl_postgres_conn_send(c, GL_POSTGRES_RESOLVE, NULL);
    case GL_POSTGRES_OP_TIME:
        return gl_postgres_conn_send(c, GL_POSTGRES_TIME, NULL);
    default:
        GL_UNREACHABLE();
    }
}

static void fill_sessions(struct gl_postgres_op *op, int rows)
{
    struct gl_postgres *s = op->store;
    const struct gl_postgres_lib *lib = &s->lib;
    const PGresult *r = op->result;
    struct gl_session_info *all = GL_NEW_ARRAY(&s->results, struct gl_session_info, rows + 1);
    for (int i = 0; i < rows; i++) {
        all[i].id = gl_postgres_args_get_text(lib, r, i, 0);
        all[i].incarnation = (uint64_t)gl_postgres_args_get_int(lib, r, i, 1);
        all[i].node = gl_postgres_args_get_text(lib, r, i, 2);
        all[i].about = gl_postgres_args_get_text(lib, r, i, 3);
        all[i].left_ms = gl_postgres_args_get_int(lib, r, i, 4);
        all[i].dead = gl_postgres_args_get_int(lib, r, i, 5) != 0;
    }
    op->req->sessions = all;
    op->req->sessions_n = (size_t)rows;
}

static int fill_resolve(struct gl_postgres_op *op)
{
    struct gl_store_req *req = op->req;
    switch (gl_postgres_args_get_int(&op->store->lib, op->result, 0, 0)) {
    case 0:
        return 0;
    case 1:
        return gl_why(&req->why, GL_E_CONFLICT, "transaction %llu was refused or never arrived",
                      (unsigned long long)op->u.resolve.id);
    default:
        return gl_why(&req->why, GL_E_UNKNOWN,
                      "transaction %llu is too old: the store remembers the last %d of a session",
                      (unsigned long long)op->u.resolve.id, (int)GL_POSTGRES_IDS_KEPT);
    }
}

static int no_session(struct gl_postgres_op *op)
{
    return gl_why(&op->req->why, GL_E_GONE, "the session %.*s is dead, or there never was one",
                  GL_STR_ARG(op->u.session.session));
}

void gl_postgres_session_fill(struct gl_postgres_op *op)
{
    struct gl_store_req *req = op->req;
    const struct gl_postgres_lib *lib = &op->store->lib;
    int rows = lib->PQntuples(op->result);
    bool is_null = rows == 0 || lib->PQgetisnull(op->result, 0, 0) != 0;
    switch (op->type) {
    case GL_POSTGRES_OP_SESSION_OPEN:
        req->session.incarnation = (uint64_t)gl_postgres_args_get_int(lib, op->result, 0, 0);
        req->session.id = gl_postgres_args_get_text(lib, op->result, 0, 1);
        return;
    case GL_POSTGRES_OP_SESSION_RENEW:
        req->status = is_null ? no_session(op) : 0;
        return;
    case GL_POSTGRES_OP_SESSION_END:
        req->status = is_null ? no_session(op) : 0;
        return;
    case GL_POSTGRES_OP_SESSION_DEAD:
        req->session_dead = is_null || gl_postgres_args_get_int(lib, op->result, 0, 0) != 0;
        return;
    case GL_POSTGRES_OP_SESSION_LIST:
        fill_sessions(op, rows);
        return;
    case GL_POSTGRES_OP_RESOLVE:
        req->status = fill_resolve(op);
        return;
    case GL_POSTGRES_OP_TIME:
        req->time = gl_postgres_args_get_int(lib, op->result, 0, 0);
        return;
    default:
        GL_UNREACHABLE();
    }
}
