#include "cli/connect/claim_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "os/random.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

const char *gl_claim_client_default_owner(struct gl_cli *cli, const char *suffix)
{
    char host[65] = "localhost";

    (void)gethostname(host, sizeof(host) - 1);
    return gl_str_fmt(&cli->arena, "%.40s@%s%s", gl_cli_user(), host, suffix).p;
}

void gl_claim_client_new_nonce(struct gl_claim_client *c)
{
    struct gl_entropy entropy = gl_random_entropy();
    uint8_t bytes[16];

    entropy.fill(&entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(c->nonce + i * 2, 3, "%02x", bytes[i]);
    }
}

/* ---- one call ---- */

/* A renewal keeps the lease unless a new one is given. */
static struct gl_request request_of(const struct gl_claim_client *c, enum gl_verb verb)
{
    return (struct gl_request){.verb = verb,
                               .claim = {.key = gl_str_of(c->key),
                                         .owner = gl_str_of(c->owner),
                                         .lease = c->lease_ms,
                                         .work_type = gl_str_of(c->work_type),
                                         .nonce = gl_str_of(c->nonce),
                                         .once = c->once,
                                         .fence = c->fence,
                                         .error_detail = gl_str_of(c->error_detail)}};
}

/* Parse the reply, whether it succeeded or failed. */
static void read_answer(struct gl_claim_client *c, int err, gl_str body,
                        struct gl_claim_answer *ret)
{
    struct gl_api_reply *p = &ret->page;
    gl_jnode claim;
    uint64_t n;

    gl_buf_str(&p->body, body);
    if (gl_json_parse(&p->j, gl_buf_view(&p->body), ANSWER_BYTES_MAX, &p->arena, NULL) != 0) {
        return;
    }
    p->root = gl_json_root(&p->j);
    claim = err == 0 ? p->root : gl_json_get(&p->j, gl_json_get(&p->j, p->root, "error"), "claim");
    ret->remaining_ms = gl_api_reply_number(p, claim, "remaining_ms");
    if (err == 0 && gl_json_u64(&p->j, gl_json_get(&p->j, claim, "fence"), &n)) {
        c->fence = n;
        c->attempt = (uint64_t)gl_api_reply_number(p, claim, "attempt");
        c->lease_ms = gl_api_reply_number(p, claim, "lease_ms");
    }
}

static bool is_answer(int err)
{
    return err == 0 || err == GL_E_BUSY || err == GL_E_NOT_OWNER || err == GL_E_EXISTS;
}

int gl_claim_client_call(struct gl_claim_client *c, enum gl_verb verb, bool insist,
                         struct gl_claim_answer *ret, struct gl_why *reterr_why)
{
    struct gl_request rq = request_of(c, verb);
    struct gl_http_client_reply reply = {0};
    struct gl_connection connection;
    int err;

    *ret = (struct gl_claim_answer){0};
    gl_connect_init(&connection, c->cli);
    connection.is_passive = true;
    connection.client.wait = c->wait;
    connection.client.owner = c->wait_owner;
    err = gl_connect_send(&connection, insist ? GL_CONNECT_RETRY : GL_CONNECT_OPEN, &rq, &reply,
                          reterr_why);
    if (is_answer(err)) {
        read_answer(c, err, reply.body, ret);
    }
    gl_connect_done(&connection);
    return err;
}

void gl_claim_answer_done(struct gl_claim_answer *answer)
{
    gl_api_reply_done(&answer->page);
}

int gl_claim_client_fail(struct gl_cli *cli, int code, const char *why)
{
    int exit = gl_cli_fail(cli, code, why);

    code = gl_err_code(code);
    return code == GL_E_BUSY        ? GL_EXIT_CLAIM_BUSY
           : code == GL_E_NOT_OWNER ? GL_EXIT_CLAIM_LOST
                                    : exit;
}
