/* blobs.h - the files of flows, on a store that several nodes share.
 *
 * Whoever is given a job is given its files, too, and has them in its own data folder; but another
 * node may run its steps. So before a job is submitted its files are in the store, and before a
 * step starts they are in the folder of the node that starts it. How they lie in the store, and why
 * what is needed stays there, says model/gc_state.h.
 *
 *   blobs.c         what is known to be where; the way in
 *   blobs_keep.c    from the folder into the store
 *   blobs_fetch.c   from the store into the folder
 *
 * Content moves one piece at a time, and few blobs at once. What is known is a guess that saves
 * questions: a guard refuses a submission for which it was wrong, and then it is forgotten. */
#ifndef GL_NODE_BLOBS_H
#define GL_NODE_BLOBS_H

#include "base/err.h"
#include "base/str.h"
#include "model/flow/flow.h"

struct gl_blobs;
struct gl_event;
struct gl_node;

/* node->blobs is NULL if there is nothing to do: the node has its store, or its files, for itself.
 * Every call below is fine with that. */

/* GL_E_UNAVAILABLE: ask again. Anything else that is not 0: it will stay so. */
typedef void gl_blobs_done(void *owner, int code, const char *why);

/* Does this flow look as if it had files? If not, nothing below need be asked of it. */
bool gl_blobs_may_have_files(const struct gl_blobs *b, gl_str flow);

/* Are the files of this flow in the store? True: as far as we know, and nothing else happens. Else
 * they will be, and `done` runs once, not from inside the call; never if the node is freed before.
 * `flow` is borrowed during the call only. */
bool gl_blobs_keep(struct gl_blobs *b, gl_str hash, gl_str flow, gl_blobs_done *done, void *owner);

/* The same: are these files here? They are borrowed until `done` runs. */
bool gl_blobs_fetch(struct gl_blobs *b, const struct gl_flow_file *files, size_t files_n,
                    gl_blobs_done *done, void *owner);

/* What was known of this flow or blob was wrong. */
void gl_blobs_forget(struct gl_blobs *b, gl_str hash);

/* An attempt has ended. If it was for a file that should be here and is not, or is damaged, nothing
 * is taken for granted for a while, and what is not whole is fetched again. The event then says
 * that trying again helps; not if that has just been done, nor if there is no other copy. */
void gl_blobs_on_ended(struct gl_blobs *b, struct gl_event *ev);

#endif
