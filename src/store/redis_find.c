/* Which server is it? */
#include "base/check.h"
#include "store/redis_parts.h"

void gl_redis_find(struct gl_redis_link *l)
{
    const struct gl_redis_host *h = &l->store->url.hosts[0];
    gl_redis_link_connect(l, h->host, h->port);
}

void gl_redis_find_stop(struct gl_redis_link *l)
{
    (void)l;
}
