/* run_files.h - the files that the workers of a bundle leave in the folder of a run, <runs
 * root>/<run id>.
 *
 * Workers may write anything there. Symbolic links are never followed, neither in the folder nor
 * on the path to a file in it, and only regular files are listed. */
#ifndef GL_OS_RUN_FILES_H
#define GL_OS_RUN_FILES_H

#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/times.h"

struct gl_run_file {
    gl_str path; /* relative to the folder */
    uint64_t bytes;
    gl_ms modified_at;
    char hex[GL_SHA256_HEX]; /* "" : unreadable, or too large to be hashed here */
};

struct gl_run_files_list {
    struct gl_run_file *files; /* by path */
    size_t n;
    bool is_cut; /* there are more than GL_RUN_FILES_MAX */
};

enum { GL_RUN_FILES_MAX = 10000 };

/* All files, allocated in `a`. Files larger than `hash_max` are not hashed. A missing folder is
 * empty. */
int gl_run_files_list(const char *root, gl_str run_id, uint64_t hash_max, struct gl_arena *a,
                      struct gl_run_files_list *ret, struct gl_why *reterr_why);

/* Open a file for reading. GL_E_INVALID: the path leaves the folder; GL_E_NOT_FOUND. */
int gl_run_files_open(const char *root, gl_str run_id, gl_str path, int *ret_fd,
                      uint64_t *ret_bytes, struct gl_why *reterr_why);

/* Append one or more lines to a file of the folder, in one write, synced. The file is created if it
 * does not exist; if it does not end with a newline, one is added first. */
int gl_run_files_append(const char *root, gl_str run_id, const char *name, gl_str line,
                        struct gl_why *reterr_why);

/* {"job_id", "run_id", "folder", "artifacts": [...], "truncated"}, as the API returns it. */
void gl_run_files_write(const struct gl_run_files_list *l, const char *root, gl_str job,
                        gl_str run_id, struct gl_buf *out);

/* The content type of a file, by its suffix. */
const char *gl_run_files_type(gl_str path);

#endif
