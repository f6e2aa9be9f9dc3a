/* redis_check.c - `glia store check` for Redis: opens a store in check mode, waits for the
 * handshake of the writer link, and reports what it found. In check mode nothing is created and no
 * setting is refused. */
#include "base/check.h"
#include "store/redis/redis.h"
#include "store/redis/redis_parts.h"

/* Run the loop until the handshake is complete or the timeout has passed. */
static int wait_until_ready(struct gl_redis *s, struct gl_why *reterr_why)
{
    gl_ms end = gl_calls_now(&s->calls) + s->url.timeout_ms;

    GL_ASSERT(s->check_only);
    while (s->links[GL_REDIS_WRITER].state != GL_REDIS_READY) {
        if (gl_calls_now(&s->calls) >= end) {
            return gl_why(reterr_why, GL_E_UNAVAILABLE, "%s",
                          s->last_loss.code != 0 ? s->last_loss.text
                                                 : "the Redis server does not answer");
        }
        gl_calls_run_loop_once(&s->calls);
    }
    return 0;
}

/* Report the store that was found, or why it is the wrong one. */
static void add_identity(const struct gl_redis *s, struct gl_arena *a, struct gl_findings *ret)
{
    GL_ASSERT(s->check_only);
    if (s->check_why.code != 0) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", s->check_why.text);
    } else if (s->found_identity[0] == '\0') {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "there is no store yet in database %u: the first start creates one",
                        s->url.database);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "it holds the store %s", s->found_identity);
    }
}

/* A plain connection needs no finding: the URL says so. */
static void add_transport(const struct gl_redis *s, struct gl_arena *a, struct gl_findings *ret)
{
    if (s->url.tls && s->url.tls_no_verify) {
        gl_findings_add(ret, a, GL_FINDING_WARNING,
                        "its certificate is not verified (tls_verify=no): anyone in between can "
                        "read and change everything; set tls_ca to the certificate authority");
    } else if (s->url.tls) {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "the connection is encrypted");
    }
}

int gl_redis_check(const struct gl_redis_config *cfg, struct gl_arena *a, struct gl_findings *ret,
                   struct gl_why *reterr_why)
{
    struct gl_loop *loop = NULL;
    struct gl_store *port = NULL;
    int err = gl_loop_new(&loop, reterr_why);
    if (err < 0) {
        return err;
    }
    err = gl_redis_open(&port, cfg, loop, reterr_why);
    if (err == 0) {
        struct gl_redis *s = GL_CONTAINER(port, struct gl_redis, calls.port);
        s->check_only = true;
        err = wait_until_ready(s, reterr_why);
        if (err == 0) {
            gl_redis_info_diagnose(&s->info, a, ret);
            add_identity(s, a, ret);
            add_transport(s, a, ret);
        }
        gl_calls_close(&s->calls);
    }
    gl_loop_free(loop);
    return err;
}
