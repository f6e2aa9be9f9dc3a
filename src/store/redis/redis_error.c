/* redis_error.c - classifies the server's errors by the word in capitals they begin with. What
 * matters is whether the command was carried out and whether a retry can help. An unknown error
 * counts as unknown outcome. */
#include "base/check.h"
#include "store/redis/redis_parts.h"

static const struct {
    gl_str word;
    enum gl_redis_error_class class;
    const char *advice;
} errors[] = {
    {GL_S("NOSCRIPT"), GL_REDIS_RELOAD, "its scripts have been flushed"},
    {GL_S("LOADING"), GL_REDIS_RETRY, "it is still loading its data from disk"},
    {GL_S("BUSY"), GL_REDIS_RETRY, "a long-running script blocks it (SCRIPT KILL ends the script)"},
    {GL_S("NOREPLICAS"), GL_REDIS_RETRY,
     "fewer replicas are connected than min-replicas-to-write requires"},
    {GL_S("TRYAGAIN"), GL_REDIS_RETRY, "it asks for a retry"},
    {GL_S("MASTERDOWN"), GL_REDIS_MOVED, "it is a replica without a connection to its primary"},
    {GL_S("READONLY"), GL_REDIS_MOVED, "it is a replica, or has become one"},
    {GL_S("OTHERSTORE"), GL_REDIS_MOVED, "its data was removed or replaced"}, /* from our scripts */
    {GL_S("UNBLOCKED"), GL_REDIS_MOVED, "it has become a replica"},
    {GL_S("OOM"), GL_REDIS_REFUSED,
     "its memory is full: raise its maxmemory; then `glia store trim` removes old jobs"},
    {GL_S("MISCONF"), GL_REDIS_REFUSED,
     "it cannot write to its disk: check its log and its free disk space"},
    {GL_S("NOAUTH"), GL_REDIS_REFUSED, "it requires a password in the store URL"},
    {GL_S("WRONGPASS"), GL_REDIS_REFUSED, "user or password in the store URL is wrong"},
    {GL_S("WRONGTYPE"), GL_REDIS_UNKNOWN,
     "one of the store's keys holds a value of another type: docs/store-redis.md lists "
     "the type of each key"},
    {GL_S("NOPERM"), GL_REDIS_REFUSED,
     "its ACL denies this user a command: docs/store-redis.md lists the required permissions"},
};

/* Inside a script a missing permission is reported with this text instead of NOPERM. */
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
    return i < GL_COUNT(errors) ? errors[i].class : GL_REDIS_UNKNOWN;
}

int gl_redis_error_why(struct gl_why *why, int code, gl_str error)
{
    size_t i = find_error(error);

    GL_ASSERT(code < 0);
    if (i < GL_COUNT(errors)) {
        (void)gl_why(why, code, "the Redis server refused: %s (%.*s)", errors[i].advice,
                     GL_STR_ARG(error));
        why->needs_help = errors[i].class == GL_REDIS_REFUSED;
        return code;
    }
    return gl_why(why, code, "the Redis server failed: %.*s", GL_STR_ARG(error));
}
