/* paths.h - the layout of the data folder.
 *
 *   DATA/lock                     held by the node of this folder (os/lock.h)
 *   DATA/claim                    held by a node that waits for the lock
 *   DATA/node                     identity of the node (os/identity.h)
 *   DATA/token                    the secret of its TCP clients
 *   DATA/store                    the shared store it belongs to, if any (stores.h)
 *   DATA/node.sock                the socket it listens on
 *   DATA/keeper/                  files of the keeper
 *   DATA/contexts/CTX/state.db    the store of a context
 *   DATA/contexts/CTX/blobs/      content by hash (os/blobfs.h)
 *   DATA/contexts/CTX/runs/       working folders and logs of attempts
 *
 * Returned strings live in the arena of the caller. */
#ifndef GL_OS_PATHS_H
#define GL_OS_PATHS_H

#include "base/err.h"
#include "base/str.h"

#define GL_PATHS_LOCK "lock"
#define GL_PATHS_RESERVATION "claim"
#define GL_PATHS_NODE "node"
#define GL_PATHS_TOKEN "token"
#define GL_PATHS_STORE "store"
#define GL_PATHS_SOCKET "node.sock"
#define GL_PATHS_KEEPER "keeper"
#define GL_PATHS_STATE "state.db"
#define GL_PATHS_BLOBS "blobs"
#define GL_PATHS_RUNS "runs"

/* The inputs to the choice of the data folder. */
struct gl_paths_env {
    const char *option;        /* --data-dir; NULL: not given */
    const char *glia_data_dir; /* GLIA_DATA_DIR */
    const char *xdg_data_home; /* XDG_DATA_HOME */
    const char *home;          /* HOME */
    bool root;
};

/* As this process sees it. */
struct gl_paths_env gl_paths_env(const char *option);

/* The data folder, as an absolute path without a trailing slash: the option, GLIA_DATA_DIR, then
 * for root /var/lib/glia, for others $XDG_DATA_HOME/glia or ~/.local/share/glia. An empty variable
 * counts as unset. */
int gl_paths_data(const struct gl_paths_env *env, struct gl_arena *a, const char **ret,
                  struct gl_why *reterr_why);

/* Where the run folders of bundles are created: `given`, else ~/.mn/runs; without HOME below the
 * data folder. Absolute. */
int gl_paths_runs_root(const struct gl_paths_env *env, const char *given, const char *data,
                       struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

const char *gl_paths_in(struct gl_arena *a, const char *data, const char *name);
/* `name` "" gives the context's own folder. `context` must be valid (gl_str_is_id). */
const char *gl_paths_context(struct gl_arena *a, const char *data, gl_str context,
                             const char *name);

/* Create the folders of `data` and of one context. Refuses a data folder that belongs to another
 * user or that everyone may write to. */
int gl_paths_prepare(const char *data, gl_str context, struct gl_why *reterr_why);

#endif
