/* capacity.h - how much of its machine a node may use: cores, memory, the disk of its data folder.
 *
 * A node measures its own (os/machine.h) and publishes it with its session. Other nodes and
 * programs read it there. A number of 0 is unknown, except disk_free_bytes, which is known if
 * disk_bytes is. */
#ifndef GL_MODEL_CAPACITY_H
#define GL_MODEL_CAPACITY_H

#include "base/json.h"

enum { GL_CAPACITY_CORES_BYTES = 24 }; /* a number of cores as text */

struct gl_capacity {
    uint64_t cores_milli; /* thousandths of a core: control groups may allow 1.5 cores */
    uint64_t memory_bytes;
    uint64_t disk_bytes, disk_free_bytes;
};

/* "4", "1.5", "0.125", written into `text`. */
gl_str gl_capacity_cores_text(uint64_t cores_milli, char text[GL_CAPACITY_CORES_BYTES]);

/* Replace what was published by what is known now. The free bytes of a disk change all the time,
 * and a store that is not shared writes what a node publishes only if it has changed: they stay as
 * they are until they differ by more than a sixteenth. */
void gl_capacity_update(struct gl_capacity *published, const struct gl_capacity *now);

/* {"cores": 1.5, "memory_bytes": ..., "disk_bytes": ..., "disk_free_bytes": ...}; null: unknown. */
void gl_capacity_write(const struct gl_capacity *c, struct gl_jw *w);

/* Read what a node has published. False: `n` is not an object, as with releases that publish no
 * capacity. A member that makes no sense is unknown: the text may come from anywhere. */
bool gl_capacity_read(const struct gl_json *j, gl_jnode n, struct gl_capacity *ret);

#endif
