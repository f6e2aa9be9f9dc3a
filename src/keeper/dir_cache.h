/* dir_cache.h - folders of silent attempts, kept for later attempts.
 *
 * Creating folders and files is the most expensive part of a short step. A folder that holds
 * exactly what the keeper put there is therefore renamed to its next place instead of being
 * removed. It stays where it is until then.
 *
 * Job folders work the same way: a new job may take the folder of the job that has been idle
 * longest, with the one cached attempt folder that is left in it.
 *
 * Only untouched folders get in (gl_dir_cache_put checks every name and mode), so a step cannot
 * plant files, links or open modes for a later one. What is still cached when the keeper ends is
 * removed. */
#ifndef GL_KEEPER_DIR_CACHE_H
#define GL_KEEPER_DIR_CACHE_H

#include "keeper/attempt.h"

/* Sizes of the files in a cached folder. */
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

/* Move a cached folder to `path`; it has an input file and an env file. False: there is none, and
 * the caller must create the folder. Either way the job's folder exists afterwards, if it can be
 * created. */
bool gl_dir_cache_take(struct gl_keeper *k, struct gl_floor *job, gl_str path,
                       struct gl_dir_cache_sizes *ret);

/* The attempt is over. True: its folder is untouched and is now cached; false: it is not cached. */
bool gl_dir_cache_put(struct gl_keeper *k, struct gl_attempt *a, gl_str path);

/* The job is forgotten: remove its cached folders. */
void gl_dir_cache_forget(struct gl_keeper *k, struct gl_floor *job);
/* The keeper ends: remove all. */
void gl_dir_cache_clear(struct gl_keeper *k);

#endif
