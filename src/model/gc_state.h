/* gc_state.h - flows and blobs in the store: content that many jobs share, named by its hash.
 *
 * No session owns such a record, and any node of a shared store may use, write or remove it. Its
 * revision is its state, and every change guards on it:
 *
 *     none ─► PARTIAL ─► WHOLE ◄─► CONDEMNED ─► none
 *
 * WHOLE: complete. A transaction that relies on the record without writing it guards on this
 * state: a submission on the record of its flow, and the transaction that writes a flow on those
 * of all its blobs. So everything that a job in the store names is in the store.
 *
 * CONDEMNED: retention has found no reference to it. From then on no new reference can be made.
 * Retention checks again, then removes the record or makes it WHOLE. The record is owned by the
 * session that condemned it, with its own number, so that no other session removes it. A
 * submission may write a condemned flow again, which makes it WHOLE. A flow may have come to
 * rely on a blob just before the blob was condemned; so the pieces of a blob that was whole stay
 * until it is removed, and a node that needs the blob makes it WHOLE again.
 *
 * PARTIAL: a blob is written piece by piece, and its record names the session that writes it.
 * Pieces are written only under PARTIAL and removed only under CONDEMNED, so writers and
 * removers never meet. */
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
    gl_ms at;       /* when writing began, or when a node needed it while it was condemned */
    bool was_whole; /* CONDEMNED: with all of its pieces, which stay until it is removed */
};

enum { GL_GC_PIECE_BYTES = 1 << 20 }; /* of each piece except the last */

extern const struct gl_schema gl_gc_blob_schema;

/* The number of pieces of content of this size; 0 if it is empty. */
uint32_t gl_gc_blob_pieces(uint64_t size);

/* False: not a valid record. */
bool gl_gc_blob_read(gl_str value, struct gl_arena *a, struct gl_gc_blob *ret);
gl_str gl_gc_blob_write(const struct gl_gc_blob *b, struct gl_arena *a);

#endif
