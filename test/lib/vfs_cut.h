/* vfs_cut.h - an SQLite VFS on which the power can fail.
 *
 * It stands on SQLite's own VFS. Writes to databases, write-ahead logs and journals stay in the
 * memory of the process until they are synced; readers of the same process see them, as they would
 * see the page cache. So
 *   - kill -9 of a process that uses it is a power cut;
 *   - vfs_cut_power() is one inside a test: every open file is dead, and what was not synced is
 *     gone, or, with a seed, an arbitrary part of it is on the disk, torn at sectors of 512 bytes.
 * It can also fail on demand, and counts syncs.
 *
 * Not modelled: the loss of a file's name (making and removing files is durable at once). No second
 * process may use the database meanwhile: it would see the shared memory but not the writes.
 *
 * All functions may be called from any thread. */
#ifndef GL_TEST_VFS_CUT_H
#define GL_TEST_VFS_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vfs_cut;

enum vfs_cut_fault {
    VFS_CUT_OK,
    VFS_CUT_FULL,        /* writes fail: no space */
    VFS_CUT_WRITE_ERROR, /* writes fail with an I/O error */
    VFS_CUT_SYNC_LOST,   /* syncs fail, and nothing reaches the disk */
    VFS_CUT_SYNC_LATE,   /* syncs fail, although everything has reached the disk */
    VFS_CUT_READ_ERROR,  /* reads fail */
    VFS_CUT_READ_ONLY,   /* the file system was remounted read-only */
};

/* Register it with SQLite as `name` (which must stay valid), and take it away again; then no file
 * may be open. */
struct vfs_cut *vfs_cut_new(const char *name);
void vfs_cut_free(struct vfs_cut *v);

/* What GLIA_TEST_VFS asks for, registered as "cut"; NULL: nothing. For the real node:
 *     cut                a disk that forgets, at kill -9, what was not synced
 *     cut:tear=N:SEED    the power fails at the N-th sync, and a part of what was not synced
 *                        arrives, torn; the process ends as by kill -9
 *     cut:late=N         the N-th sync fails although everything has arrived
 *     cut:lost=N         the N-th sync fails and nothing arrives; a later one may bring it */
struct vfs_cut *vfs_cut_from_environment(void);

/* From now on everything fails like this. Only files whose name ends in `suffix` are affected
 * ("-wal"; "" is all). */
void vfs_cut_fail(struct vfs_cut *v, enum vfs_cut_fault fault, const char *suffix);

/* The power fails: until vfs_cut_restore() every call fails, and what is open now is dead for ever.
 * seed 0: all that was not synced is lost.
 */
void vfs_cut_power(struct vfs_cut *v, uint64_t seed);
/* The same when the n-th sync from now on begins (1 is the next). */
void vfs_cut_power_at_sync(struct vfs_cut *v, uint64_t n, uint64_t seed);
bool vfs_cut_is_off(struct vfs_cut *v);
void vfs_cut_restore(struct vfs_cut *v);

/* A slow disk: from now on syncs wait, until they are released. */
void vfs_cut_hold(struct vfs_cut *v, bool holds);

/* Syncs so far: of write-ahead logs, and of all other files. */
size_t vfs_cut_syncs_wal(struct vfs_cut *v);
size_t vfs_cut_syncs_other(struct vfs_cut *v);

#endif
