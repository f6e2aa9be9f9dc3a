/* quotas_parts.h - internals of quotas.c that quotas_why.c and quotas_snapshot.c use. No other file
 * includes it. */
#ifndef GL_CORE_SCHEDULING_QUOTAS_PARTS_H
#define GL_CORE_SCHEDULING_QUOTAS_PARTS_H

#include "core/scheduling/quotas.h"

/* How many more attempts this key admits now. */
uint32_t gl_quotas_available(const struct gl_core *c, const struct gl_quota *l);
/* Would a start activate a key when GL_LIMITS_MAX are active already? */
bool gl_quotas_lacks_keys(const struct gl_core *c, const struct gl_quota_group *g);
/* The group of a wait that has one. */
struct gl_quota_group *gl_quotas_group_of(const struct gl_wait *w);

struct gl_quota *gl_quotas_limit_new(struct gl_core *c, gl_str key, bool is_rate);
struct gl_quota_group *gl_quotas_group_new(struct gl_core *c, gl_str key,
                                           struct gl_quota *concurrency, struct gl_quota *rate,
                                           uint8_t pool);

#endif
