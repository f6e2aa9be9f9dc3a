/* What the server's errors mean. They begin with a word in capitals. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

static const struct {
    gl_str word;
    enum gl_redis_error_class verdict;
    const char *advice;
} errors[] = {
    {GL_S("NOSCRIPT"), GL_REDIS_RELOAD, "its scripts were flushed"},
    {GL_S("LOADING"), GL_REDIS_RETRY, "it is still reading its data from the disk"},
    {GL_S("BUSY"), GL_REDIS_RETRY,
     "a script of somebody runs there and nothing else can (SCRIPT KILL ends it)"},
    {GL_S("NOREPLICAS"), GL_REDIS_RETRY,
     "too few replicas are connected for its setting min-replicas-to-write"},
    {GL_S("TRYAGAIN"), GL_REDIS_RETRY, "it asks to try again"},
    {GL_S("MASTERDOWN"), GL_REDIS_MOVED, "it is a replica whose primary is away"},
    {GL_S("READONLY"), GL_REDIS_MOVED, "it is a replica, or has become one"},
    {GL_S("OTHERSTORE"), GL_REDIS_MOVED, "its data was removed or replaced"}, /* by our script */
    {GL_S("UNBLOCKED"), GL_REDIS_MOVED, "it has become a replica"},
    {GL_S("OOM"), GL_REDIS_REFUSED,
     "its memory is full: raise its maxmemory; then `glia store trim` removes old jobs"},
    {GL_S("MISCONF"), GL_REDIS_REFUSED,
     "it cannot write to its disk: look at its log and at the room there"},
    {GL_S("NOAUTH"), GL_REDIS_REFUSED, "it wants a password in the store's address"},
    {GL_S("WRONGPASS"), GL_REDIS_REFUSED, "user or password in the store's address are wrong"},
    {GL_S("WRONGTYPE"), GL_REDIS_UNKNOWN,
     "somebody has put something else into one of the store's keys: docs/store-redis.md lists "
     "what each of them is"},
    {GL_S("NOPERM"), GL_REDIS_REFUSED,
     "its ACL forbids that to this user: docs/store-redis.md lists what is needed"},
};

/* How a script is told that its user may not do something. */
static const char forbidden[] = "The user executing the script";

static size_t find_error(gl_str error)
{
    if (memmem(error.p, error.n, forbidden, sizeof(forbidden) - 1) != NULL) {
        error = GL_S("NOPERM");
    }
    for (size_t i = 0; i < GL_COUNT(errors); i++) {
        if (gl_str_starts(error, errors[i].word)) {
            return i;
        }
    }
    return GL_COUNT(errors);
}

enum gl_redis_error_class gl_redis_error_classify(gl_str error)
{
    size_t i = find_error(error);
    return i < GL_COUNT(errors) ? errors[i].verdict : GL_REDIS_UNKNOWN;
}

int gl_redis_error_why(struct gl_why *why, int code, gl_str error)
{
    size_t i = find_error(error);

    GL_ASSERT(code < 0);
    if (i < GL_COUNT(errors)) {
        (void)gl_why(why, code, "the Redis server refused: %s (%.*s)", errors[i].advice,
                     GL_STR_ARG(error));
        why->needs_help = errors[i].verdict == GL_REDIS_REFUSED;
        return code;
    }
    return gl_why(why, code, "the Redis server failed: %.*s", GL_STR_ARG(error));
}
