/* storeurl.h - store URLs: which engine a URL selects, and which parts of it may be shown. */
#ifndef GL_PORT_STOREURL_H
#define GL_PORT_STOREURL_H

#include "base/err.h"
#include "base/str.h"

enum gl_storeurl_kind {
    GL_STOREURL_SQLITE,   /* "" or "sqlite:", in the data folder; or "sqlite:FOLDER" */
    GL_STOREURL_REDIS,    /* redis://, rediss://, redis+sentinel:// */
    GL_STOREURL_POSTGRES, /* postgres://, postgresql:// */
};

/* Examines only the scheme; the engine parses the rest. GL_E_INVALID: no such engine. */
int gl_storeurl_kind(gl_str url, enum gl_storeurl_kind *ret, struct gl_why *reterr_why);

/* False also if `url` is not a store URL. */
bool gl_storeurl_is_shared(gl_str url);

/* The URL with its passwords masked, for messages, logs, files: "redis://user:***@host:6379/0". */
gl_str gl_storeurl_safe(struct gl_arena *a, gl_str url);

/* Do two URLs name the same place? Users, passwords, options and explicit default ports or
 * databases do not matter. Two host names of one server are two places. */
bool gl_storeurl_is_same(gl_str x, gl_str y);

#endif
