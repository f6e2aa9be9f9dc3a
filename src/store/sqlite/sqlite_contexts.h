/* sqlite_contexts.h - the open databases of one thread, by context. They are opened on demand and
 * stay open; one whose COMMIT failed is opened again and made certain before it is handed out. */
#ifndef GL_STORE_SQLITE_CONTEXTS_H
#define GL_STORE_SQLITE_CONTEXTS_H

#include "base/map.h"
#include "store/sqlite/sqlite_db.h"

struct gl_sqlite;

struct gl_sqlite_contexts {
    const struct gl_sqlite *store;
    enum gl_sqlite_role role;
    struct gl_map slots; /* of a struct private to this module */
};

void gl_sqlite_contexts_init(struct gl_sqlite_contexts *c, const struct gl_sqlite *s,
                             enum gl_sqlite_role role);
void gl_sqlite_contexts_done(struct gl_sqlite_contexts *c); /* closes all */

/* The database of a context, ready for use. For a reader GL_E_NOT_FOUND: the context is empty. */
int gl_sqlite_contexts_get(struct gl_sqlite_contexts *c, gl_str context, struct gl_sqlite_db **ret,
                           struct gl_why *reterr_why);
/* The same if it is open, else NULL. */
struct gl_sqlite_db *gl_sqlite_contexts_find(struct gl_sqlite_contexts *c, gl_str context);
/* Something went wrong on this connection: close it, the next call opens another. With `doubt`: it
 * was a COMMIT, and nobody knows what the file holds. */
void gl_sqlite_contexts_drop(struct gl_sqlite_contexts *c, struct gl_sqlite_db *db, bool doubt);

/* Call `each` for every open database. */
void gl_sqlite_contexts_each(struct gl_sqlite_contexts *c, void (*each)(struct gl_sqlite_db *db));

#endif
