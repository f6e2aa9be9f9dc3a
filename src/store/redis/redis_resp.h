/* redis_resp.h - the Redis protocol (RESP2): encodes commands, decodes replies.
 *
 * hiredis parses replies into an arena, within limits of our own, because a hostile or
 * misconfigured server may send anything. The accessors for replies never fail: a reply of the
 * wrong type reads as nil, "" or false, and the caller decides what that means. */
#ifndef GL_STORE_REDIS_RESP_H
#define GL_STORE_REDIS_RESP_H

#include "base/err.h"
#include "base/str.h"
#include "store/common/arg.h"

/* ---- commands ---- */

/* Begin a command of `n` arguments, which must follow. */
void gl_redis_command_open(struct gl_buf *b, size_t n);
void gl_redis_arg(struct gl_buf *b, gl_str s);
void gl_redis_arg_c(struct gl_buf *b, const char *s);
void gl_redis_arg_char(struct gl_buf *b, char c);
void gl_redis_arg_u64(struct gl_buf *b, uint64_t v);
void gl_redis_arg_i64(struct gl_buf *b, int64_t v);
/* A complete command: gl_redis_command(b, gl_arg_c("SELECT"), gl_arg_i64(1)). */
#define gl_redis_command(b, ...) gl_redis_command_n((b), GL_ARGS(__VA_ARGS__))
void gl_redis_command_n(struct gl_buf *b, const struct gl_arg *args, size_t n);
void gl_redis_args(struct gl_buf *b, const struct gl_arg *args, size_t n);
/* AUTH; `user` may be empty. */
void gl_redis_auth(struct gl_buf *b, gl_str user, gl_str password);
/* One argument, concatenated from several texts. */
#define gl_redis_joined(b, ...) gl_redis_joined_n((b), GL_ARGS(__VA_ARGS__))
void gl_redis_joined_n(struct gl_buf *b, const struct gl_arg *texts, size_t n);

/* ---- replies ---- */

enum gl_redis_type {
    GL_REDIS_NIL,
    GL_REDIS_STATUS,
    GL_REDIS_ERROR,
    GL_REDIS_INTEGER,
    GL_REDIS_STRING,
    GL_REDIS_ARRAY,
};

struct gl_redis_reply {
    enum gl_redis_type type;
    int64_t integer;
    gl_str text;                   /* STATUS, ERROR, STRING; followed by a NUL */
    struct gl_redis_reply **items; /* ARRAY */
    size_t items_n;
};

/* Item `i` of an array, or a nil; never NULL, whatever the type of the reply. */
const struct gl_redis_reply *gl_redis_item(const struct gl_redis_reply *r, size_t i);
/* The text of a string or status, "" for any other type. */
gl_str gl_redis_text(const struct gl_redis_reply *r);
/* An integer, or a string that is one. */
bool gl_redis_i64(const struct gl_redis_reply *r, int64_t *ret);
bool gl_redis_u64(const struct gl_redis_reply *r, uint64_t *ret);

struct gl_redis_reader;

struct gl_redis_reader *gl_redis_reader_new(void);
void gl_redis_reader_free(struct gl_redis_reader *r); /* NULL is fine */
/* Feed received bytes. GL_E_INVALID: they are not RESP, and the connection is unusable. */
int gl_redis_reader_feed(struct gl_redis_reader *r, gl_str bytes, struct gl_why *reterr_why);
/* The next complete reply, valid until the next call; NULL: none yet. */
int gl_redis_reader_next(struct gl_redis_reader *r, const struct gl_redis_reply **ret,
                         struct gl_why *reterr_why);

#endif
