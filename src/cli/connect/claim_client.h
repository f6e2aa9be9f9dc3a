/* claim_client.h - claim requests: one call each, to the node or to the store. */
#ifndef GL_CLI_CONNECT_CLAIM_CLIENT_H
#define GL_CLI_CONNECT_CLAIM_CLIENT_H

#include "cli/connect/api_reply.h"

struct gl_claim_client {
    struct gl_cli *cli;
    const char *key, *owner;
    gl_ms lease_ms; /* 0: the default; for a renewal, the previous lease */
    const char *work_type, *error_detail;
    bool once;
    char nonce[33]; /* for acquisitions: repeating it with the same nonce returns the same claim */
    uint64_t fence, attempt;
    /* Called while waiting for a reply, as in struct gl_http_client; may be NULL. */
    int (*wait)(void *owner, int fd);
    void *wait_owner;
};

/* remaining_ms: how long another holder keeps the claim at least; 0: unknown. */
struct gl_claim_answer {
    struct gl_api_reply page; /* JSON of the claim, or of the error */
    gl_ms remaining_ms;
};

void gl_claim_client_new_nonce(struct gl_claim_client *c);

/* GL_VERB_CLAIM_ACQUIRE, _RENEW, _COMPLETE, _FAIL: the first sets c->fence and c->attempt. Without
 * a node, this process is the node for the duration of the call. `insist`: look for another node if
 * one goes away. GL_E_BUSY, GL_E_NOT_OWNER, GL_E_EXISTS: as reported by the node. Always call
 * gl_claim_answer_done(). */
int gl_claim_client_call(struct gl_claim_client *c, enum gl_verb verb, bool insist,
                         struct gl_claim_answer *ret, struct gl_why *reterr_why);
void gl_claim_answer_done(struct gl_claim_answer *answer);

/* Print the error; returns its exit code. */
int gl_claim_client_fail(struct gl_cli *cli, int code, const char *why);

/* cmd_claim.c: read --lease, --owner and so on; 0, or an exit code. */
int gl_claim_client_read_options(struct gl_claim_client *c, struct gl_cli *cli, const char *owner);
/* "user@host", followed by `suffix` */
const char *gl_claim_client_default_owner(struct gl_cli *cli, const char *suffix);

#endif
