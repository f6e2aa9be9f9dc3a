/* gc_state.h - flows and blobs in the store: content that many jobs share, by its hash.
 *
 * Nobody owns such a record, and any node of a shared store may need it, write it, or remove it.
 * Its revision says where it stands, and every change guards on it:
 *
 *     none ─► PARTIAL ─► WHOLE ◄─► CONDEMNED ─► none
 *
 * WHOLE: it can be relied on. Who relies on it without writing it guards on that: a submission on
 * its flow's record, and the one that writes a flow's record on those of all its blobs. So whatever
 * a job in the store names is in the store.
 *
 * CONDEMNED: retention has found nobody who names it. From then on nobody can begin to; it looks
 * again, and then removes it or lets it live. It is owned by whoever has condemned it, with a
 * number of its own, so that nobody removes what another has condemned. A submission may write a
 * condemned flow anew, which makes it WHOLE. A flow may have come to rely on a blob just before
 * that was condemned, so one that was whole stays so: who needs it makes it WHOLE again as it is.
 *
 * PARTIAL: a blob is written piece by piece, in the name of whoever has begun it. Pieces are
 * written under PARTIAL and removed under CONDEMNED, so that who writes and who removes never meet.
 */
#ifndef GL_MODEL_GC_STATE_H
#define GL_MODEL_GC_STATE_H

#include "model/schema.h"

enum gl_gc_state { /* the revision of the record */
                   GL_GC_WHOLE = 1,
                   GL_GC_CONDEMNED = 2,
                   GL_GC_PARTIAL = 3,
};

/* A blob: the record "blob"/<sha256>. Its pieces are "blob"/<sha256>/<number>. */
struct gl_gc_blob {
    uint64_t size;
    uint32_t pieces;
    gl_ms at;       /* when somebody began to write it, or needed it while it was condemned */
    bool was_whole; /* CONDEMNED: with all of its pieces, which are there until it goes */
};

enum { GL_GC_PIECE_BYTES = 1 << 20 }; /* of each, but the last */

extern const struct gl_schema gl_gc_blob_schema;

/* How many pieces has content of this size? None, if it is empty. */
uint32_t gl_gc_blob_pieces(uint64_t size);

/* False: this is no such record. */
bool gl_gc_blob_read(gl_str value, struct gl_arena *a, struct gl_gc_blob *ret);
gl_str gl_gc_blob_write(const struct gl_gc_blob *b, struct gl_arena *a);

#endif
