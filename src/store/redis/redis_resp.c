/* redis_resp.c - RESP2 on top of hiredis' reader. The reader calls back for each element of a
 * reply; the elements are allocated in an arena that is reset when the next reply is read. */
#include "store/redis/redis_resp.h"

#include <hiredis/read.h>

#include "base/check.h"
#include "base/mem.h"

/* ---- commands ---- */

static void add_number(struct gl_buf *b, char mark, uint64_t n)
{
    gl_buf_char(b, mark);
    gl_buf_u64(b, n);
    gl_buf_add(b, "\r\n", 2);
}

void gl_redis_command_open(struct gl_buf *b, size_t n)
{
    GL_ASSERT(n > 0);
    add_number(b, '*', n);
}

static void open_arg(struct gl_buf *b, size_t bytes)
{
    add_number(b, '$', bytes);
}

static void close_arg(struct gl_buf *b)
{
    gl_buf_add(b, "\r\n", 2);
}

void gl_redis_arg(struct gl_buf *b, gl_str s)
{
    open_arg(b, s.n);
    gl_buf_str(b, s);
    close_arg(b);
}

void gl_redis_arg_c(struct gl_buf *b, const char *s)
{
    gl_redis_arg(b, gl_str_of(s));
}

void gl_redis_arg_char(struct gl_buf *b, char c)
{
    gl_redis_arg(b, (gl_str){&c, 1});
}

/* Numbers are formatted by hand: a commit has dozens of them. */
static void arg_digits(struct gl_buf *b, uint64_t v, bool negative)
{
    char digits[21];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    if (negative) {
        digits[--at] = '-';
    }
    gl_redis_arg(b, (gl_str){digits + at, sizeof(digits) - at});
}

void gl_redis_arg_u64(struct gl_buf *b, uint64_t v)
{
    arg_digits(b, v, false);
}

void gl_redis_arg_i64(struct gl_buf *b, int64_t v)
{
    arg_digits(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

/* Booleans and 32-bit numbers are sent as plain numbers, too. */
void gl_redis_args(struct gl_buf *b, const struct gl_arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (args[i].type == GL_ARG_TEXT) {
            gl_redis_arg(b, args[i].text);
        } else if (args[i].type == GL_ARG_U64) {
            gl_redis_arg_u64(b, (uint64_t)args[i].number);
        } else {
            gl_redis_arg_i64(b, args[i].number);
        }
    }
}

void gl_redis_command_n(struct gl_buf *b, const struct gl_arg *args, size_t n)
{
    GL_ASSERT(n > 0);
    gl_redis_command_open(b, n);
    gl_redis_args(b, args, n);
}

/* RESP announces the size of an argument in advance. */
void gl_redis_joined_n(struct gl_buf *b, const struct gl_arg *texts, size_t n)
{
    size_t bytes = 0;

    GL_ASSERT(n > 0);
    for (size_t i = 0; i < n; i++) {
        bytes += texts[i].text.n;
    }
    open_arg(b, bytes);
    for (size_t i = 0; i < n; i++) {
        gl_buf_str(b, texts[i].text);
    }
    close_arg(b);
}

void gl_redis_auth(struct gl_buf *b, gl_str user, gl_str password)
{
    GL_ASSERT(password.n > 0 || user.n > 0);
    if (user.n > 0) {
        gl_redis_command(b, gl_arg_c("AUTH"), gl_arg_text(user), gl_arg_text(password));
    } else {
        gl_redis_command(b, gl_arg_c("AUTH"), gl_arg_text(password));
    }
}

/* ---- accessors ---- */

const struct gl_redis_reply *gl_redis_item(const struct gl_redis_reply *r, size_t i)
{
    static const struct gl_redis_reply nil = {.type = GL_REDIS_NIL};
    return r->type == GL_REDIS_ARRAY && i < r->items_n && r->items[i] != NULL ? r->items[i] : &nil;
}

gl_str gl_redis_text(const struct gl_redis_reply *r)
{
    bool is_text = r->type == GL_REDIS_STRING || r->type == GL_REDIS_STATUS;
    return is_text ? r->text : (gl_str){"", 0};
}

bool gl_redis_i64(const struct gl_redis_reply *r, int64_t *ret)
{
    if (r->type == GL_REDIS_INTEGER) {
        *ret = r->integer;
        return true;
    }
    return r->type == GL_REDIS_STRING && gl_str_i64(r->text, ret);
}

bool gl_redis_u64(const struct gl_redis_reply *r, uint64_t *ret)
{
    if (r->type == GL_REDIS_INTEGER && r->integer >= 0) {
        *ret = (uint64_t)r->integer;
        return true;
    }
    return r->type == GL_REDIS_STRING && gl_str_u64(r->text, ret);
}

/* ---- the reader ---- */

enum { ITEMS_MAX = 4 << 20 }; /* of one array: larger than any page we request */

struct gl_redis_reader {
    redisReader *hiredis;
    redisReplyObjectFunctions functions;
    struct gl_arena arena; /* holds the reply returned last, and the one being read */
    bool given;
};

/* Allocate an element and link it into its array. */
static struct gl_redis_reply *new_reply(const redisReadTask *task, enum gl_redis_type type)
{
    struct gl_redis_reader *r = task->privdata;
    struct gl_redis_reply *reply = GL_NEW(&r->arena, struct gl_redis_reply);

    GL_ASSERT(task->parent == NULL || task->idx >= 0);
    reply->type = type;
    if (task->parent != NULL) {
        struct gl_redis_reply *parent = task->parent->obj;
        parent->items[task->idx] = reply;
    }
    return reply;
}

static void *create_string(const redisReadTask *task, char *bytes, size_t n)
{
    struct gl_redis_reader *r = task->privdata;
    enum gl_redis_type type = task->type == REDIS_REPLY_ERROR    ? GL_REDIS_ERROR
                              : task->type == REDIS_REPLY_STATUS ? GL_REDIS_STATUS
                                                                 : GL_REDIS_STRING;
    struct gl_redis_reply *reply = new_reply(task, type);
    reply->text = gl_str_dup(&r->arena, (gl_str){bytes, n});
    return reply;
}

static void *create_array(const redisReadTask *task, int n)
{
    /* The length is from the network: check it before allocating. */
    if (n < 0 || n > ITEMS_MAX) {
        return NULL; /* makes hiredis report an error */
    }
    struct gl_redis_reader *r = task->privdata;
    struct gl_redis_reply *reply = new_reply(task, GL_REDIS_ARRAY);
    reply->items = GL_NEW_ARRAY(&r->arena, struct gl_redis_reply *, n > 0 ? n : 1);
    reply->items_n = (size_t)n;
    return reply;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct gl_redis_reply *reply = new_reply(task, GL_REDIS_INTEGER);
    reply->integer = value;
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    return new_reply(task, GL_REDIS_NIL);
}

static void free_object(void *reply)
{
    (void)reply; /* owned by the arena */
}

struct gl_redis_reader *gl_redis_reader_new(void)
{
    struct gl_redis_reader *r = gl_mem_alloc(sizeof(*r));
    r->functions = (redisReplyObjectFunctions){
        .createString = create_string,
        .createArray = create_array,
        .createInteger = create_integer,
        .createNil = create_nil,
        .freeObject = free_object,
    };
    r->hiredis = redisReaderCreateWithFunctions(&r->functions);
    GL_ASSERT(r->hiredis != NULL);
    r->hiredis->privdata = r;
    return r;
}

void gl_redis_reader_free(struct gl_redis_reader *r)
{
    if (r != NULL) {
        redisReaderFree(r->hiredis);
        gl_arena_done(&r->arena);
        gl_mem_free(r);
    }
}

static int broken(const struct gl_redis_reader *r, struct gl_why *reterr_why)
{
    return gl_why(reterr_why, GL_E_INVALID,
                  "the reply is not Redis protocol (%s): is another program listening "
                  "there, or does it require TLS?",
                  r->hiredis->errstr);
}

int gl_redis_reader_feed(struct gl_redis_reader *r, gl_str bytes, struct gl_why *reterr_why)
{
    return redisReaderFeed(r->hiredis, bytes.p, bytes.n) == 0 ? 0 : broken(r, reterr_why);
}

int gl_redis_reader_next(struct gl_redis_reader *r, const struct gl_redis_reply **ret,
                         struct gl_why *reterr_why)
{
    void *reply = NULL;
    if (r->given) { /* The next reply has not been started before this call, so nothing else is in
                       the arena. */
        gl_arena_reset(&r->arena);
        r->given = false;
    }
    if (redisReaderGetReply(r->hiredis, &reply) != 0) {
        return broken(r, reterr_why);
    }
    r->given = reply != NULL;
    *ret = reply;
    return 0;
}
