/* redis_scripts.h - what runs inside the server. docs/store-redis.md describes the keys.
 *
 * A script sees and changes everything at one moment, so a transaction is one. Its arguments begin
 * with the context ("" : "default") and the number of the database the store's address names, which
 * is selected when it starts. */
#ifndef GL_STORE_REDIS_SCRIPTS_H
#define GL_STORE_REDIS_SCRIPTS_H

enum gl_redis_script {
    GL_REDIS_SCRIPT_COMMIT,
    GL_REDIS_SCRIPT_RESOLVE,
    GL_REDIS_SCRIPT_SESSION,
    GL_REDIS_SCRIPT_SESSION_READ, /* its questions: "list", "dead". The last on the link that writes
                                   */
    GL_REDIS_SCRIPT_GET,
    GL_REDIS_SCRIPT_LIST,
    GL_REDIS_SCRIPT_RANGE,
    GL_REDIS_SCRIPT_LOG,
    GL_REDIS_SCRIPT_MEASURE,
    GL_REDIS_SCRIPT_SCAN,
    GL_REDIS_SCRIPTS_N,
};

/* The layout of the keys. A server whose schema is higher is refused. */
enum { GL_REDIS_SCHEMA = 1 };

/* Scripts are made of up to eight pieces, sent one behind the other. */
enum { GL_REDIS_PIECES = 8 };
extern const char *const gl_redis_scripts[GL_REDIS_SCRIPTS_N][GL_REDIS_PIECES];

/* The store's identity, made if there is none. ARGV: the one to take, the schema. Answers the
 * identity, the schema, and the context whose database this is (nil: it is a store's own). */
extern const char *const gl_redis_script_identity;

/* Everything the other scripts do, once: a right that is missing must not show in the middle of a
 * transaction. ARGV: the database's number. */
extern const char *const gl_redis_script_probe;

#endif
