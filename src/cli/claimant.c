#include "cli/claimant.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "os/random.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

const char *gl_claimant_name(struct gl_cli *cli, const char *suffix)
{
    char host[65] = "localhost";

    (void)gethostname(host, sizeof(host) - 1);
    return gl_str_fmt(&cli->arena, "%.40s@%s%s", gl_cli_who(), host, suffix).p;
}

void gl_claimant_renonce(struct gl_claimant *c)
{
    struct gl_entropy entropy = gl_random_entropy();
    uint8_t bytes[16];

    entropy.fill(&entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(c->nonce + i * 2, 3, "%02x", bytes[i]);
    }
}

/* ---- one call ---- */

/* A renewal leaves the lease as it was if none is given. */
static struct gl_request request_of(const struct gl_claimant *c, enum gl_verb verb)
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

/* What the answer says, also of one that refuses. */
static void read_answer(struct gl_claimant *c, int err, gl_str body, struct gl_claim_answer *ret)
{
    struct gl_page *p = &ret->page;
    gl_jnode claim;
    uint64_t n;

    gl_buf_str(&p->body, body);
    if (gl_json_parse(&p->j, gl_buf_view(&p->body), ANSWER_BYTES_MAX, &p->arena, NULL) != 0) {
        return;
    }
    p->root = gl_json_root(&p->j);
    claim = err == 0 ? p->root : gl_json_get(&p->j, gl_json_get(&p->j, p->root, "error"), "claim");
    ret->remaining_ms = gl_page_number(p, claim, "remaining_ms");
    if (err == 0 && gl_json_u64(&p->j, gl_json_get(&p->j, claim, "fence"), &n)) {
        c->fence = n;
        c->attempt = (uint64_t)gl_page_number(p, claim, "attempt");
        c->lease_ms = gl_page_number(p, claim, "lease_ms");
    }
}

static bool is_answer(int err)
{
    return err == 0 || err == GL_E_BUSY || err == GL_E_NOT_OWNER || err == GL_E_EXISTS;
}

int gl_claimant_call(struct gl_claimant *c, enum gl_verb verb, bool insist,
                     struct gl_claim_answer *ret, struct gl_why *reterr_why)
{
    struct gl_request rq = request_of(c, verb);
    struct gl_client_reply reply = {0};
    struct gl_reach reach;
    int err;

    *ret = (struct gl_claim_answer){0};
    gl_reach_init(&reach, c->cli);
    reach.is_passive = true;
    reach.client.wait = c->wait;
    reach.client.owner = c->wait_owner;
    err = gl_reach_send(&reach, insist ? GL_REACH_INSIST : GL_REACH_OPEN, &rq, &reply, reterr_why);
    if (is_answer(err)) {
        read_answer(c, err, reply.body, ret);
    }
    gl_reach_done(&reach);
    return err;
}

void gl_claimant_done(struct gl_claim_answer *answer)
{
    gl_page_done(&answer->page);
}

int gl_claimant_fail(struct gl_cli *cli, int code, const char *why)
{
    int exit = gl_cli_fail(cli, code, why);

    code = gl_err_code(code);
    return code == GL_E_BUSY        ? GL_EXIT_CLAIM_BUSY
           : code == GL_E_NOT_OWNER ? GL_EXIT_CLAIM_LOST
                                    : exit;
}
