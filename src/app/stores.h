/* stores.h - the store a setting means: which engine, opened how, and which one a folder is used
 * with.
 *
 * A data folder belongs to one store: its keeper counts the incarnations that store gave out, and
 * the folders of its attempts are those of that store's jobs. So a folder remembers the first
 * shared store it was used with, in the file `store`: its URL, without passwords, and the identity
 * the store told. With SQLite the store is in the folder, and nothing need be remembered.
 *
 * Like daemon.c and offline.c, stores.c names adapters. */
#ifndef GL_APP_STORES_H
#define GL_APP_STORES_H

#include "base/err.h"
#include "base/str.h"
#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_stores_config { /* borrowed during the call */
    const char *url;      /* "" : SQLite in the data folder */
    const char *data;     /* the data folder */
    bool allow_loss;      /* go on although the server may lose data silently */
    bool read_only;       /* nobody will write */
    const char *vfs;      /* of SQLite; NULL: its own */
    const char *identity; /* of a shared store, as the folder remembers it; NULL or "" : any */
};

/* GL_E_INVALID: the URL cannot be used. A shared store is not reached here: requests wait. */
int gl_stores_open(struct gl_store **ret, const struct gl_stores_config *config,
                   struct gl_loop *loop, struct gl_why *reterr_why);

/* Look at all that matters, and report; blocks. GL_E_NOT_FOUND: there is no such file;
 * GL_E_UNAVAILABLE: the server cannot be reached. */
int gl_stores_check(const struct gl_stores_config *config, struct gl_arena *a,
                    struct gl_findings *ret, struct gl_why *reterr_why);

/* The data folder of a SQLite store: that of the URL, or `data`. NULL: the URL means no SQLite. */
const char *gl_stores_folder(struct gl_arena *a, const char *url, const char *data);

/* ---- which store a folder is used with ---- */

enum { GL_STORES_TEXT_MAX = 2048 };

struct gl_stores_memory {
    char url[GL_STORES_TEXT_MAX];      /* without passwords; "" : no shared store yet */
    char identity[GL_STORES_TEXT_MAX]; /* "" : it has never been reached */
    char node[GL_STORES_TEXT_MAX];     /* what the folder's node was called last */
    /* The folder's keeper counts upwards, and has heard of so many incarnations from stores the
     * folder belonged to before, and under other names: those of this one come on top. */
    uint64_t incarnations;
};

int gl_stores_load(const char *data, struct gl_stores_memory *ret, struct gl_why *reterr_why);
int gl_stores_save(const char *data, const struct gl_stores_memory *m, struct gl_why *reterr_why);
/* A store for it to remember; what the keeper has heard of stays. */
void gl_stores_set(struct gl_stores_memory *m, const char *url, gl_str identity);
/* What its node is called now. True if that is new. Stores count incarnations by name, so those of
 * a new name begin at one: they come on top of what the keeper has heard of. */
bool gl_stores_rename(const char *data, struct gl_stores_memory *m, gl_str node);
/* The folder has moved to another store: what its keeper has heard of so far. */
uint64_t gl_stores_incarnations(const char *data);

/* May a node of this folder use this store? GL_E_STATE: it belongs to another one; the sentence
 * tells how to go on. `m` is what the folder remembers. */
int gl_stores_match(const char *data, const char *url, const struct gl_stores_memory *m,
                    struct gl_why *reterr_why);

#endif
