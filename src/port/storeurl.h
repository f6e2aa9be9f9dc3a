/* storeurl.h - the URL of a store: which engine it means, and what of it may be shown. */
#ifndef GL_PORT_STOREURL_H
#define GL_PORT_STOREURL_H

#include "base/err.h"
#include "base/str.h"

enum gl_storeurl_kind {
    GL_STOREURL_SQLITE,   /* "" or "sqlite:", in the data folder; or "sqlite:FOLDER" */
    GL_STOREURL_REDIS,    /* redis://, rediss://, redis+sentinel:// */
    GL_STOREURL_POSTGRES, /* postgres://, postgresql:// */
};

/* Only the scheme is looked at: the rest is the maker's. GL_E_INVALID: there is no such engine. */
int gl_storeurl_kind(gl_str url, enum gl_storeurl_kind *ret, struct gl_why *reterr_why);

/* False also for what is no URL of a store. */
bool gl_storeurl_is_shared(gl_str url);

/* Without its passwords, for people, logs and files: "redis://user:***@host:6379/0". */
gl_str gl_storeurl_safe(struct gl_arena *a, gl_str url);

/* Do they mean the same place? Users, passwords and options do not count, nor whether a default
 * port or database is written. Two names of one server are two places. */
bool gl_storeurl_is_same(gl_str x, gl_str y);

#endif
