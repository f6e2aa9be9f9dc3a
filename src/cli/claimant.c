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

static void write_text(struct gl_jw *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        gl_jw_key(w, key);
        gl_jw_c(w, text);
    }
}

static void write_wish(const struct gl_claimant *c, const char *verb, struct gl_buf *body)
{
    bool is_acquire = strcmp(verb, "acquire") == 0;
    char lease[32];
    struct gl_jw w;

    (void)snprintf(lease, sizeof(lease), "%lldms", (long long)c->lease_ms);
    gl_jw_init(&w, body);
    gl_jw_object(&w);
    write_text(&w, "key", c->key);
    write_text(&w, "owner", c->owner);
    if (c->lease_ms != 0 && (is_acquire || strcmp(verb, "renew") == 0)) {
        write_text(&w, "lease", lease);
    }
    if (is_acquire) {
        write_text(&w, "work_type", c->work_type);
        write_text(&w, "nonce", c->nonce);
        if (c->once) {
            gl_jw_key(&w, "once");
            gl_jw_bool(&w, true);
        }
    } else {
        gl_jw_key(&w, "fence");
        gl_jw_u64(&w, c->fence);
    }
    if (strcmp(verb, "fail") == 0) {
        write_text(&w, "error_detail", c->error_detail);
    }
    gl_jw_end(&w);
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

int gl_claimant_call(struct gl_claimant *c, const char *verb, bool insist,
                     struct gl_claim_answer *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_str_fmt(&a, "/v1/contexts/default/claims/%s", verb).p;
    struct gl_client_reply reply = {0};
    struct gl_reach reach;
    int err;

    *ret = (struct gl_claim_answer){0};
    write_wish(c, verb, &body);
    gl_reach_init(&reach, c->cli);
    reach.is_passive = true;
    reach.client.wait = c->wait;
    reach.client.owner = c->wait_owner;
    if (insist) {
        err = gl_reach_insist(&reach, "POST", path, gl_buf_view(&body), &reply, reterr_why);
    } else {
        err = gl_reach_open(&reach, reterr_why);
        if (err == 0) {
            err = gl_reach_call(&reach, "POST", path, gl_buf_view(&body), &reply, reterr_why);
        }
    }
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

    return code == GL_E_BUSY        ? GL_EXIT_CLAIM_BUSY
           : code == GL_E_NOT_OWNER ? GL_EXIT_CLAIM_LOST
                                    : exit;
}
