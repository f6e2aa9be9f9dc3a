/* fuzz_redis_url - a store's address. What is taken must be usable; what is refused is explained,
 * and no password is repeated. */
#include <stdint.h>

#include "base/check.h"
#include "store/redis/redis_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gl_redis_url *u)
{
    GL_ASSERT(u->hosts_n > 0);
    GL_ASSERT(u->hosts_n <= GL_REDIS_HOSTS_MAX);
    GL_ASSERT(u->hosts_n == 1 || u->sentinel);
    for (size_t i = 0; i < u->hosts_n; i++) {
        GL_ASSERT(u->hosts[i].host.n > 0);
        GL_ASSERT(u->hosts[i].port > 0);
        GL_ASSERT(u->hosts[i].host.p[u->hosts[i].host.n] == '\0');
    }
    GL_ASSERT(GL_IMPLIES(u->sentinel, u->name.n > 0));
    GL_ASSERT(u->timeout_ms > 0);
    GL_ASSERT(u->wait_ms < u->timeout_ms || u->timeout_ms < 2);
    GL_ASSERT(u->connect_timeout_ms > 0);
    GL_ASSERT(u->wait_replicas >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_arena a = {0};
    struct gl_redis_url u;
    struct gl_why why = {0};
    gl_str text = {gl_arena_copy(&a, data, size), size}; /* its end is guarded under ASan */
    if (gl_redis_url_parse(&u, text, &a, &why) == 0) {
        check(&u);
    } else {
        GL_ASSERT(why.code == GL_E_INVALID);
        GL_ASSERT(why.text[0] != '\0');
    }
    gl_arena_done(&a);
    return 0;
}
