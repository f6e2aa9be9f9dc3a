/* stores.h - opens the store that a URL means, and remembers which store a data folder is used
 * with.
 *
 * A data folder belongs to one store: its keeper counts the incarnations which that store assigned,
 * and its working folders are those of that store's jobs. So a folder remembers the first shared
 * store it was used with, in the file `store`: the URL without passwords, and the store's identity.
 * A SQLite store is inside the folder, and nothing needs to be remembered.
 *
 * Order of calls: gl_stores_load(), gl_stores_match(), gl_stores_open(); then gl_stores_set() and
 * gl_stores_save() when the store has reported its identity. */
#ifndef GL_APP_STORES_H
#define GL_APP_STORES_H

#include "base/err.h"
#include "base/str.h"
#include "port/findings.h"
#include "port/store.h"

struct gl_loop;

struct gl_stores_config { /* borrowed during the call */
    const char *url;      /* "": SQLite in the data folder */
    const char *data;     /* the data folder */
    bool allow_loss;      /* continue although the server may silently lose data */
    bool read_only;       /* open for reading only */
    const char *vfs;      /* VFS of SQLite; NULL: the default */
    const char
        *identity; /* identity of a shared store, as the folder remembers it; NULL or "": any */
};

/* GL_E_INVALID: the URL cannot be used. Does not connect to a shared store; requests wait until it
 * is reachable. */
int gl_stores_open(struct gl_store **ret, const struct gl_stores_config *config,
                   struct gl_loop *loop, struct gl_why *reterr_why);

/* Checks the store and reports findings; blocks. GL_E_NOT_FOUND: no such file; GL_E_UNAVAILABLE:
 * the server is unreachable. */
int gl_stores_check(const struct gl_stores_config *config, struct gl_arena *a,
                    struct gl_findings *ret, struct gl_why *reterr_why);

/* The data folder of a SQLite store: that of the URL, or `data`. NULL: the URL is not SQLite's. */
const char *gl_stores_folder(struct gl_arena *a, const char *url, const char *data);

/* ---- which store a folder is used with ---- */

enum { GL_STORES_TEXT_MAX = 2048 };

struct gl_stores_memory {
    char url[GL_STORES_TEXT_MAX];      /* without passwords; "": no shared store yet */
    char identity[GL_STORES_TEXT_MAX]; /* "": never reached */
    char node[GL_STORES_TEXT_MAX];     /* the last name of the folder's node */
    /* The keeper's incarnations never go back. This is the highest it has seen from earlier stores
     * of the folder and under earlier names; incarnations of the current store are added to it. */
    uint64_t incarnations;
};

int gl_stores_load(const char *data, struct gl_stores_memory *ret, struct gl_why *reterr_why);
int gl_stores_save(const char *data, const struct gl_stores_memory *m, struct gl_why *reterr_why);
/* Sets the store to remember; the count of incarnations stays. */
void gl_stores_set(struct gl_stores_memory *m, const char *url, gl_str identity);
/* Sets the name of the node. True if it is new. Stores count incarnations per name, so those of a
 * new name start at one and are added to what the keeper has seen. */
bool gl_stores_rename(const char *data, struct gl_stores_memory *m, gl_str node);
/* The highest incarnation the folder's keeper has seen; for a folder that moves to another store.
 */
uint64_t gl_stores_incarnations(const char *data);

/* May a node of this folder use this store? GL_E_STATE: the folder belongs to another one; the
 * sentence says what to do. `m` is what the folder remembers. */
int gl_stores_match(const char *data, const char *url, const struct gl_stores_memory *m,
                    struct gl_why *reterr_why);

#endif
