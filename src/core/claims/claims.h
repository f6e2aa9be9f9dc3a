/* claims.h - claims for outside programs: what is read and written for a request.
 *
 *   acquire, renew, complete, fail
 *     READING ──► WRITING ──► (answered)      time and record are asked for at once
 *        ▲           │
 *        └───────────┘                        a conflict, or an outcome that is unknown
 *
 *   reclaim (reclaim.c)
 *     READING ──► LISTING ──► FETCHING ──► MARKING ──► (answered)
 *
 * Any number of nodes may do this on one store at the same time. Every change is decided by
 * gl_claim_decide() from the record and the store's time, and committed under the guard that the
 * record is still as it was read. After a conflict it is read and decided again, so an answer is
 * true. An unknown outcome is found out in the same way, because everything that is asked for here
 * may be repeated; therefore these transactions carry no number. */
#ifndef GL_CORE_CLAIMS_CLAIMS_H
#define GL_CORE_CLAIMS_CLAIMS_H

#include "core/core_state.h"

void gl_claims_init(struct gl_core *c);
void gl_claims_done(struct gl_core *c);

/* The event CLAIM: one REPLY follows. With code 0 its body is the claim, or what was reclaimed;
 * else the claim that stands in the way, or empty. */
void gl_claims_on_request(struct gl_core *c, const struct gl_event *ev);

#endif
