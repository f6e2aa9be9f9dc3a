/* archive.h - a backup: a folder of files with a list to verify them by.
 *
 * The list is the file MANIFEST. It is written last: a folder without one is not a backup. It has
 * one line per file, with its SHA-256 and size, and a last line with the SHA-256 of all lines
 * before.
 *
 *   glia-backup 1
 *   glia 0.1.0
 *   made 2026-11-15T10:00:00.000Z
 *   file <sha256> <bytes> contexts/default/state.db
 *   end <sha256>
 *
 * Names are relative and never lead outside the folder.
 *
 * To write: gl_archive_create(), gl_archive_add() and gl_archive_add_existing(),
 * gl_archive_finish(), gl_archive_done(). To verify or restore: gl_archive_extract(). */
#ifndef GL_OS_ARCHIVE_H
#define GL_OS_ARCHIVE_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"

enum { GL_ARCHIVE_VERSION = 1 };

struct gl_archive {
    const char *folder; /* borrowed */
    struct gl_buf list;
    uint64_t files_n, bytes;
};

/* ---- writing ---- */

/* Create the folder, or use an empty one. GL_E_EXISTS: it is not empty. */
int gl_archive_create(struct gl_archive *a, const char *folder, const char *release, gl_ms made_at,
                      struct gl_why *reterr_why);
void gl_archive_done(struct gl_archive *a);
/* Copy the file `from` to `name`. A file that has been removed meanwhile is skipped, and a file
 * that was added already is not added again. */
int gl_archive_add(struct gl_archive *a, const char *from, const char *name,
                   struct gl_why *reterr_why);
/* Add the file `name`, which is already in the folder, to the list. */
int gl_archive_add_existing(struct gl_archive *a, const char *name, struct gl_why *reterr_why);
/* Write the list. After that the whole backup is durable. */
int gl_archive_finish(struct gl_archive *a, struct gl_why *reterr_why);

/* ---- reading ---- */

struct gl_archive_info {
    char release[32], made[GL_TIMES_BYTES];
    uint64_t files_n, bytes;
};

/* Verify every file against the list; with `to`, also copy them into that folder, verifying each
 * during the copy. GL_E_DAMAGED names the first file that does not match. */
int gl_archive_extract(const char *folder, const char *to, struct gl_archive_info *ret,
                       struct gl_why *reterr_why);

#endif
