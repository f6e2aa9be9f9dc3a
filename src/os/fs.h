/* fs.h - files and folders, written so that a power cut leaves either the old or the new content.
 *
 * Everything is opened close-on-exec and made for its owner only. A failing call has put the path
 * and the system's words into `reterr_why`: not_found, denied, exists, or io. */
#ifndef GL_OS_FS_H
#define GL_OS_FS_H

#include "base/err.h"
#include "base/str.h"

/* The sentence and the code for `err` (an errno) met while trying to `verb` (as in "open") `path`.
 */
int gl_fs_why(struct gl_why *why, int err, const char *verb, const char *path);

/* For GL_CLEANUP: closes *fd unless it is negative. */
void gl_fs_closep(int *fd);
/* Move a descriptor out of a variable that would close it. */
int gl_fs_take(int *fd);

/* Make `path` and all missing folders above it, mode 0700. One that exists is left as it is. */
int gl_fs_mkdirs(const char *path, struct gl_why *reterr_why);
/* The same for an absolute path whose last `own_n` folders are ours alone: none of them may be a
 * symbolic link, which a step could have put there to have us write elsewhere. */
int gl_fs_mkdirs_own(const char *path, size_t own_n, struct gl_why *reterr_why);
/* `path`, relative to the folder `at`, must consist of folders, without a symbolic link, as far as
 * there is anything. */
int gl_fs_refuse_links(int at, const char *path, struct gl_why *reterr_why);

/* Replace the content of `path`, mode 0600: written beside it, synced, renamed, and the folder
 * synced. */
int gl_fs_write(const char *path, gl_str content, struct gl_why *reterr_why);
/* The same with the file first written in another folder of the same file system. */
int gl_fs_write_from(const char *temp_folder, const char *path, gl_str content,
                     struct gl_why *reterr_why);

/* Append the content of `path` to `out`. GL_E_LIMIT, with `out` unchanged, if it has more than
 * `bytes_max`. */
int gl_fs_read(const char *path, size_t bytes_max, struct gl_buf *out, struct gl_why *reterr_why);

/* Make the names in a folder durable. */
int gl_fs_sync_folder(const char *path, struct gl_why *reterr_why);

#endif
