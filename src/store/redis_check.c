#include "base/check.h"
#include "store/redis.h"
#include "store/redis_parts.h"

int gl_redis_check(const struct gl_redis_config *cfg, struct gl_arena *a, struct gl_findings *ret,
                   struct gl_why *reterr_why)
{
    (void)cfg;
    (void)a;
    (void)ret;
    return gl_why(reterr_why, GL_E_UNAVAILABLE, "not yet");
}
