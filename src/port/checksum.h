/* checksum.h - the checksum every record carries, in every engine.
 *
 * An engine stores gl_checksum_record() with the record and compares it on reading; a record that
 * does not match is returned with `damaged` set. This detects changes by people, other programs and
 * failing disks. It does not protect against forgery. */
#ifndef GL_PORT_CHECKSUM_H
#define GL_PORT_CHECKSUM_H

#include "port/store.h"

/* CRC-32C of the whole record: kind, id, revision, owner, token, live, value. Never 0, which an
 * engine may use for "no checksum stored". */
uint32_t gl_checksum_record(const struct gl_record *r);

/* CRC-32C of `bytes`, continuing from `sum` (0 to begin). */
uint32_t gl_checksum_bytes(uint32_t sum, gl_str bytes);

#endif
