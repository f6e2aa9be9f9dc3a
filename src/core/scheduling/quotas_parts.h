/* quotas_parts.h - what quotas.c shares with its explanations and its snapshot. */
#ifndef GL_CORE_SCHEDULING_QUOTAS_PARTS_H
#define GL_CORE_SCHEDULING_QUOTAS_PARTS_H

#include "core/scheduling/quotas.h"

/* How many more could start now, as far as this key is concerned. */
uint32_t gl_quotas_available(const struct gl_core *c, const struct gl_quota *l);
/* Would it need keys that are not in use, when too many are? */
bool gl_quotas_lacks_keys(const struct gl_core *c, const struct gl_quota_group *g);
struct gl_quota_group *gl_quotas_group_of(const struct gl_wait *w);

struct gl_quota *gl_quotas_limit_new(struct gl_core *c, gl_str key, bool is_rate);
struct gl_quota_group *gl_quotas_group_new(struct gl_core *c, gl_str key,
                                           struct gl_quota *concurrency, struct gl_quota *rate,
                                           uint8_t pool);

#endif
