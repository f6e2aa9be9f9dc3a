/* sum.h - the checksum every record carries, whoever keeps it.
 *
 * A maker stores gl_checksum_record() beside the record and compares it on reading; one that does
 * not match is given out with `damaged` set. It finds what a person, a stranger's program or a
 * broken disk has changed; it is no protection against anybody who wants to forge a record. */
#ifndef GL_PORT_CHECKSUM_H
#define GL_PORT_CHECKSUM_H

#include "port/store.h"

/* CRC-32C of everything in it: kind, id, revision, owner, token, live, value. Never 0, which a
 * maker may use for "none was stored". */
uint32_t gl_checksum_record(const struct gl_record *r);

/* CRC-32C of `bytes`, continuing `sum` (0 to begin). */
uint32_t gl_checksum_bytes(uint32_t sum, gl_str bytes);

#endif
