/* dir_cache.h - folders of attempts that said nothing and left nothing, kept for later attempts.
 *
 * Making folders and files is the dearest part of a short step, so a folder that is as good as new
 * is renamed to its next place instead: one that holds what the keeper has put there and nothing
 * else. It stays where it was until then. With the folders of jobs it is the same: a new job may
 * get that of the one that has been idle for longest, with the one folder that is left in it. What
 * is still on the shelf when the keeper ends is removed. */
#ifndef GL_KEEPER_DIR_CACHE_H
#define GL_KEEPER_DIR_CACHE_H

#include "keeper/attempt.h"

/* Of the files in it. */
struct gl_dir_cache_sizes {
    int64_t input_bytes, env_bytes;
};

/* One folder: that of `attempt` of a job. */
struct gl_cached_dir {
    struct gl_floor *job;
    struct gl_dir_cache_sizes sizes;
    size_t attempt_n;
    char attempt[GL_ATTEMPT_ID_BYTES_MAX];
};

/* Get a folder from the shelf to `path`; it has an input file and a note of an environment. False:
 * it has to be made. The folder of the job is there afterwards, if it can be made. */
bool gl_dir_cache_take(struct gl_keeper *k, struct gl_floor *job, gl_str path,
                       struct gl_dir_cache_sizes *ret);

/* The attempt is over. Keep its folder if nothing was changed in it (true); else it stays as it is.
 */
bool gl_dir_cache_put(struct gl_keeper *k, struct gl_attempt *a, gl_str path);

/* The job is forgotten: remove its folders that are on the shelf. */
void gl_dir_cache_forget(struct gl_keeper *k, struct gl_floor *job);
/* The keeper ends. */
void gl_dir_cache_clear(struct gl_keeper *k);

#endif
