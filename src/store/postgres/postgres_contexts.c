/* postgres_contexts.c - contexts and their schemas. A context is looked up once, at its first use,
 * and its schema is created by its first commit.
 *
 *     UNKNOWN -> ASKED -> READY        found, or created
 *                ASKED -> UNKNOWN      not found, and nothing to commit; or an error
 *
 * Reads of a context that does not exist complete at once with nothing. A struct is kept as long as
 * anything refers to it. */
#include "base/check.h"
#include "store/postgres/postgres_parts.h"

static const struct gl_postgres_call_type lookup_call, make_call;

struct gl_postgres_context *gl_postgres_context_of(struct gl_postgres *s, gl_str name)
{
    struct gl_postgres_context *x = gl_map_find(&s->contexts, name);
    if (x != NULL) {
        return x;
    }
    struct gl_buf schema = {0};
    gl_postgres_schema_name(&schema, name);
    x = gl_mem_alloc(sizeof(*x) + name.n + schema.n);
    memcpy(x->text, name.p, name.n);
    memcpy(x->text + name.n, schema.p, schema.n);
    x->name = (gl_str){x->text, name.n};
    x->schema = (gl_str){x->text + name.n, schema.n};
    gl_buf_done(&schema);
    x->store = s;
    x->hash = gl_str_hash(name);
    gl_list_init(&x->reads);
    gl_list_init(&x->call.link);
    gl_map_add(&s->contexts, x->name, x);
    return x;
}

void gl_postgres_context_free_if_unused(struct gl_postgres_context *x)
{
    /* A context that was ready once may be named by reads in flight: it stays. */
    if (!x->was_ready && x->state == GL_POSTGRES_CONTEXT_UNKNOWN && gl_list_empty(&x->reads) &&
        x->commits_n == 0) {
        (void)gl_map_remove(&x->store->contexts, x->name);
        gl_mem_free(x);
    }
}

void gl_postgres_contexts_done(struct gl_postgres *s)
{
    struct gl_postgres_context *x;
    for (size_t i = 0; (x = gl_map_next(&s->contexts, &i)) != NULL;) {
        gl_mem_free(x);
    }
    gl_map_done(&s->contexts);
}

/* After a failover the server may lack a context that was created last. */
void gl_postgres_contexts_recheck(struct gl_postgres *s)
{
    struct gl_postgres_context *x;
    for (size_t i = 0; (x = gl_map_next(&s->contexts, &i)) != NULL;) {
        if (x->state == GL_POSTGRES_CONTEXT_READY) {
            x->state = GL_POSTGRES_CONTEXT_UNKNOWN;
        }
    }
}

/* With `make`, create the schema and then look it up, in one call. */
void gl_postgres_context_ask(struct gl_postgres_context *x, bool make)
{
    struct gl_postgres *s = x->store;
    if (x->state != GL_POSTGRES_CONTEXT_UNKNOWN) {
        return;
    }
    x->state = GL_POSTGRES_CONTEXT_ASKED;
    x->call.type = make ? &make_call : &lookup_call;
    x->call.slow = make;
    x->call.until = gl_calls_now(&s->calls) + s->url.timeout_ms;
    x->found = false;
    gl_postgres_conn_push(&s->conns[GL_POSTGRES_CONTROL], &x->call);
}

/* ---- lookup ---- */

static struct gl_postgres_context *of_call(struct gl_postgres_call *call)
{
    return GL_CONTAINER(call, struct gl_postgres_context, call);
}

static bool send_lookup(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    struct gl_postgres *s = c->store;
    gl_postgres_args_reset(&s->args);
    gl_postgres_args_put(&s->args, GL_ARGS(gl_arg_text(of_call(call)->name)));
    return gl_postgres_conn_send(c, GL_POSTGRES_CONTEXT_GET, NULL);
}

static bool on_lookup(struct gl_postgres_conn *c, struct gl_postgres_call *call, PGresult *r)
{
    struct gl_postgres_context *x = of_call(call);
    x->found = c->store->lib.PQntuples(r) == 1;
    x->version = x->found ? (int)gl_postgres_args_get_int(&c->store->lib, r, 0, 0) : 0;
    return false;
}

/* The lookup is done: reads continue, or find nothing. Commits make lanes retry, and create the
 * context if needed. */
static void release_reads(struct gl_postgres_context *x)
{
    struct gl_link *l;
    while ((l = gl_list_first(&x->reads)) != NULL) {
        struct gl_postgres_op *op = GL_CONTAINER(l, struct gl_postgres_op, query.link);
        gl_list_remove(l);
        if (x->state == GL_POSTGRES_CONTEXT_READY) {
            gl_postgres_push_read(op);
        } else {
            gl_postgres_finish(op);
        }
    }
}

static void fail_all(struct gl_postgres_context *x, int status, const struct gl_why *why)
{
    struct gl_link *l;
    x->state = GL_POSTGRES_CONTEXT_UNKNOWN;
    while ((l = gl_list_first(&x->reads)) != NULL) {
        gl_list_remove(l);
        gl_postgres_fail(GL_CONTAINER(l, struct gl_postgres_op, query.link), status, why);
    }
    gl_postgres_lanes_fail(x->store, x, status, why);
    gl_postgres_context_free_if_unused(x);
}

static void on_lookup_end(struct gl_postgres_conn *c, struct gl_postgres_call *call,
                          const struct gl_postgres_outcome *o)
{
    struct gl_postgres_context *x = of_call(call);
    struct gl_why why;
    if (o->end == GL_POSTGRES_END_LOST) { /* repeating is safe: ask again */
        x->state = GL_POSTGRES_CONTEXT_UNKNOWN;
        gl_postgres_context_ask(x, x->call.type == &make_call);
        return;
    }
    if (o->end != GL_POSTGRES_END_OK) {
        fail_all(x, o->status, &o->why);
        return;
    }
    if (x->version > GL_POSTGRES_CONTEXT_VERSION) {
        int err = gl_why(&why, GL_E_VERSION,
                         "the context %.*s has schema version %d, written by a newer release of "
                         "glia; this one supports up to version %d: use the newer release",
                         GL_STR_ARG(x->name), x->version, (int)GL_POSTGRES_CONTEXT_VERSION);
        fail_all(x, err, &why);
        return;
    }
    x->state = x->found ? GL_POSTGRES_CONTEXT_READY : GL_POSTGRES_CONTEXT_UNKNOWN;
    if (x->found && !x->was_ready) {
        x->was_ready = true;
        x->number = ++x->store->contexts_n;
    }
    release_reads(x);
    if (!x->found && x->commits_n > 0) {
        gl_postgres_context_ask(x, true);
    }
    gl_postgres_schedule_turn(c->store);
    gl_postgres_context_free_if_unused(x);
}

static const struct gl_postgres_call_type lookup_call = {
    .send = send_lookup, .result = on_lookup, .end = on_lookup_end};

/* ---- creation ---- */

/* All statements in one transaction; two nodes that create the same context serialize on a lock. */
static bool send_make(struct gl_postgres_conn *c, struct gl_postgres_call *call)
{
    struct gl_postgres *s = c->store;
    struct gl_postgres_context *x = of_call(call);
    for (size_t i = 0;; i++) {
        gl_buf_reset(&s->text);
        if (!gl_postgres_schema_context(&s->text, i, x->name, x->schema)) {
            break;
        }
        gl_buf_char(&s->text, '\0');
        if (!gl_postgres_conn_send_text(c, s->text.p)) {
            return false;
        }
    }
    return send_lookup(c, call);
}

static const struct gl_postgres_call_type make_call = {
    .send = send_make, .result = on_lookup, .end = on_lookup_end};
