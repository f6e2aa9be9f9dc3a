#include "exec/noop_exec.h"

#include "base/check.h"
#include "base/json.h"
#include "exec/attempt_book.h"

static struct gl_book *of(struct gl_exec *x)
{
    return GL_CONTAINER(x, struct gl_book, exec);
}

/* The output a command asks for, if it is JSON. */
static gl_str wanted_output(const struct gl_exec_start *s, struct gl_arena *a)
{
    struct gl_json j;
    if (s->argv_n > 1 && gl_str_is(s->argv[0], "output") &&
        gl_json_parse(&j, s->argv[1], GL_OUTPUT_BYTES_MAX, a, NULL) == 0) {
        return s->argv[1];
    }
    return (gl_str){0};
}

/* Do what the command says. */
static void run(struct gl_book *b, struct gl_book_attempt *a, const struct gl_exec_start *s)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena arena = {0};
    struct gl_exec_result result = {.end = GL_EXEC_EXITED};
    uint64_t code = 0;
    gl_str verb = s->argv_n > 0 ? s->argv[0] : (gl_str){0};
    if (gl_str_is(verb, "hold")) {
        return;
    }
    if (gl_str_is(verb, "exit") && s->argv_n > 1 && gl_str_u64(s->argv[1], &code)) {
        result.exit_code = (int)(code & 0xff);
    }
    result.output = wanted_output(s, &arena);
    gl_book_end(b, a, &result);
}

/* ---- the port ---- */

static void exec_start(struct gl_exec *port, struct gl_exec_req *req, const struct gl_exec_start *s)
{
    struct gl_book *b = of(port);
    if (gl_book_may_begin(b, req, s)) {
        run(b, gl_book_begin(b, s), s);
        gl_book_answer(b, req, 0);
    }
}

static void exec_stop(struct gl_exec *port, struct gl_exec_req *req,
                      const struct gl_attempt_key *key, uint64_t token, gl_ms grace_ms)
{
    (void)grace_ms; /* there is nothing to wait for */
    struct gl_book *b = of(port);
    struct gl_exec_result stopped = {.end = GL_EXEC_STOPPED};
    if (!gl_book_raise_floor(b, key, token, req)) {
        return;
    }
    struct gl_book_attempt *a = gl_book_find(b, key);
    if (a != NULL && a->running) {
        gl_book_end(b, a, &stopped);
    }
    gl_book_answer(b, req, 0);
}

static const struct gl_exec_ops ops = {
    .name = "noop",
    .start = exec_start,
    .attach = gl_book_attach,
    .stop = exec_stop,
    .ack = gl_book_ack,
    .list = gl_book_list,
    .close = gl_book_close,
};

int gl_noop_exec_open(struct gl_exec **ret, const struct gl_noop_exec_config *config,
                      struct gl_loop *loop, const struct gl_exec_events *events,
                      struct gl_why *reterr_why)
{
    struct gl_book *b = gl_mem_alloc(sizeof(*b));
    *b = (struct gl_book){.exec = {.ops = &ops},
                          .loop = loop,
                          .events = *events,
                          .attempt_bytes = sizeof(struct gl_book_attempt)};
    int err = gl_book_open(b, config->quiet, reterr_why);
    if (err != 0) {
        gl_book_free(b);
        return err;
    }
    *ret = &b->exec;
    return 0;
}

bool gl_noop_exec_knows(struct gl_exec *port, const struct gl_attempt_key *key)
{
    GL_ASSERT(port->ops == &ops);
    return gl_book_find(of(port), key) != NULL;
}
