/* blobs.h - the files of flows, on a store that several nodes share.
 *
 * A client gives a job's files to one node, which keeps them in its own data folder, but another
 * node may run the steps. So before a job is submitted its files are copied into the store, and
 * before a step starts they are copied into the folder of the node that starts it. model/gc_state.h
 * describes how they are stored and what keeps them from being collected.
 *
 *   blobs.c         caches of what is known to be where; turns
 *   blobs_keep.c    from the folder into the store
 *   blobs_fetch.c   from the store into the folder
 *
 * Content moves one piece at a time, and few blobs move at once. What is known is only a cache that
 * saves reads: if it is wrong, a guard refuses the submission and the entry is forgotten.
 *
 * Order of calls: gl_blobs_keep() before a submission, gl_blobs_fetch() before a start,
 * gl_blobs_forget() when a guard refused, gl_blobs_on_ended() for every attempt that ends. */
#ifndef GL_NODE_BLOBS_H
#define GL_NODE_BLOBS_H

#include "base/err.h"
#include "base/str.h"
#include "model/flow/flow.h"

struct gl_blobs;
struct gl_event;
struct gl_node;

/* node->blobs is NULL if the node has its store, or its files, to itself. All functions below
 * accept that. */

/* GL_E_UNAVAILABLE: retry later. Any other error is permanent. */
typedef void gl_blobs_done(void *owner, int code, const char *why);

/* Might this flow have files? If not, nothing below needs to be called for it. */
bool gl_blobs_may_have_files(const struct gl_blobs *b, gl_str flow);

/* Are the files of this flow in the store? True: as far as we know, and `done` is not called.
 * Otherwise they are copied, and `done` runs once, never from inside the call, and not at all if
 * the node is freed first. `flow` is borrowed during the call only. */
bool gl_blobs_keep(struct gl_blobs *b, gl_str hash, gl_str flow, gl_blobs_done *done, void *owner);

/* The same for these files and our folder. They are borrowed until `done` runs. */
bool gl_blobs_fetch(struct gl_blobs *b, const struct gl_flow_file *files, size_t files_n,
                    gl_blobs_done *done, void *owner);

/* What we knew about this flow or blob was wrong. */
void gl_blobs_forget(struct gl_blobs *b, gl_str hash);

/* An attempt has ended. If the reason is a file that should be here but is missing or damaged,
 * files are verified before use for a while, and damaged ones are fetched again. The event then
 * allows a retry, unless that has just been tried, or there is no other copy. */
void gl_blobs_on_ended(struct gl_blobs *b, struct gl_event *ev);

#endif
