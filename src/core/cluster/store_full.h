/* store_full.h - detects a store that still answers but refuses writes, because its disk or memory
 * is full, and notices when it accepts writes again.
 *
 * A full engine still accepts what fits into space it has reserved: session renewals, small
 * changes. So a small write that succeeds proves nothing. Jobs repeat what was refused, several
 * times a second, and each refusal puts the test off: while a commit waits, the store counts as
 * full without any test. When nothing has been refused for a while, this component writes a record
 * of 16 KiB to a shared store, of 256 KiB to SQLite; when that succeeds the store counts as
 * writable again, and the record is deleted. The sizes are the smallest that were right whenever
 * they were measured: see bench/RESULTS.md.
 *
 * An idle node learns from the other nodes' published state that the store is full
 * (gl_store_full_suspect), and tests it.
 *
 * Called: gl_store_full_on_refused() for every write refused for lack of space. The tests run by
 * themselves, as a component (core/component.h). */
#ifndef GL_CORE_CLUSTER_STORE_FULL_H
#define GL_CORE_CLUSTER_STORE_FULL_H

#include "core/core_state.h"

/* The store refused a write for lack of space; `why` is its error. */
void gl_store_full_on_refused(struct gl_core *c, gl_str why);
/* Another node reports that the store is full: test whether it is for us. */
void gl_store_full_suspect(struct gl_core *c);

#endif
