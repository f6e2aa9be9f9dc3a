/* fs.h - files and folders, written so that a power failure leaves either the old or the new
 * content.
 *
 * Everything is opened close-on-exec and created for its owner only. A failing call puts the path
 * and the system's error text into `reterr_why`: not_found, denied, exists, or io. */
#ifndef GL_OS_FS_H
#define GL_OS_FS_H

#include "base/err.h"
#include "base/str.h"

/* The sentence and the code for `err` (an errno) that occurred while trying to `verb` (as in
 * "open") `path`. */
int gl_fs_why(struct gl_why *why, int err, const char *verb, const char *path);

/* For GL_CLEANUP: closes *fd unless it is negative. */
void gl_fs_closep(int *fd);
/* Move a descriptor out of a variable that would close it. */
int gl_fs_take(int *fd);

/* Create `path` and all missing folders above it, mode 0700. Existing ones are left unchanged. */
int gl_fs_mkdirs(const char *path, struct gl_why *reterr_why);
/* The same for an absolute path whose last `own_n` folders are ours alone: none of them may be a
 * symbolic link, because a step could have put one there to redirect our writes. */
int gl_fs_mkdirs_own(const char *path, size_t own_n, struct gl_why *reterr_why);
/* `path`, relative to the folder `at`: every existing component must be a folder, not a symbolic
 * link. */
int gl_fs_refuse_links(int at, const char *path, struct gl_why *reterr_why);

/* Replace the content of `path`, mode 0600: write a temporary file, sync it, rename it, and sync
 * the folder. */
int gl_fs_write(const char *path, gl_str content, struct gl_why *reterr_why);
/* The same with the temporary file in another folder of the same file system. */
int gl_fs_write_from(const char *temp_folder, const char *path, gl_str content,
                     struct gl_why *reterr_why);

/* Append the content of `path` to `out`. GL_E_LIMIT, with `out` unchanged: it has more than
 * `bytes_max`. */
int gl_fs_read(const char *path, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why);

/* Sync a folder, which makes the names in it durable. */
int gl_fs_sync_folder(const char *path, struct gl_why *reterr_why);

#endif
