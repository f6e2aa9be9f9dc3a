/* redis_scripts.h - the Lua scripts that run inside the server. docs/store-redis.md describes the
 * keys.
 *
 * A script is atomic, so a transaction is one script. Its arguments begin with the context ("" :
 * "default") and the number of the database in the store URL, which is selected when the script
 * starts. */
#ifndef GL_STORE_REDIS_SCRIPTS_H
#define GL_STORE_REDIS_SCRIPTS_H

enum gl_redis_script {
    GL_REDIS_SCRIPT_COMMIT,
    GL_REDIS_SCRIPT_RESOLVE,
    GL_REDIS_SCRIPT_SESSION,
    GL_REDIS_SCRIPT_SESSION_READ, /* read-only: "list", "dead". The last one loaded on the writer
                                     link */
    GL_REDIS_SCRIPT_GET,
    GL_REDIS_SCRIPT_LIST,
    GL_REDIS_SCRIPT_RANGE,
    GL_REDIS_SCRIPT_LOG,
    GL_REDIS_SCRIPT_MEASURE,
    GL_REDIS_SCRIPT_SCAN,
    GL_REDIS_SCRIPTS_N,
};

/* Version of the key layout. A server with a higher version is refused. */
enum { GL_REDIS_SCHEMA = 1 };

/* A script consists of up to eight pieces, concatenated when it is loaded. */
enum { GL_REDIS_PIECES = 8 };
extern const char *const gl_redis_scripts[GL_REDIS_SCRIPTS_N][GL_REDIS_PIECES];

/* Returns the store's identity, creating it if there is none. ARGV: the identity to use, the
 * version. Returns identity, version, and the context this database belongs to (nil: the store's
 * own database). */
extern const char *const gl_redis_script_identity;

/* Runs every command of the other scripts once, so that a missing permission is found now and not
 * in the middle of a transaction. ARGV: the number of the database. */
extern const char *const gl_redis_script_probe;

#endif
