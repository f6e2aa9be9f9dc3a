/* claims.h - claims for outside programs: what is read and written for a request.
 *
 *   acquire, renew, complete, fail
 *     READING ──► WRITING ──► (answered)      READING asks for the time and the record at once
 *        ▲           │
 *        └───────────┘                        after a conflict or an unknown outcome
 *
 *   reclaim (reclaim.c)
 *     READING ──► LISTING ──► FETCHING ──► MARKING ──► (answered)
 *
 * Any number of nodes may do this on one store at the same time. gl_claim_decide() decides every
 * change from the record and the store's time, and the change is committed under the guard that the
 * record is still as it was read. After a conflict the record is read again and decided again, so
 * an answer is never out of date. An unknown outcome is resolved in the same way, because every
 * request here can be repeated; so these transactions carry no number.
 *
 * Order of calls: gl_claims_init(), gl_claims_on_request() for each request, gl_claims_done().
 * Between these, answers of the store arrive through `gl_claims`, the component. */
#ifndef GL_CORE_CLAIMS_CLAIMS_H
#define GL_CORE_CLAIMS_CLAIMS_H

#include "core/core_state.h"

void gl_claims_init(struct gl_core *c);
void gl_claims_done(struct gl_core *c);

/* The event CLAIM, which the node has checked with gl_claim_check(). One REPLY follows. With code 0
 * its body is the claim, or what was reclaimed; with an error, the conflicting claim, or
 * empty. */
void gl_claims_on_request(struct gl_core *c, const struct gl_event *ev);

#endif
