/* offered.h - what has become of running steps whose attempts were offered to other nodes, from the
 * records of model/offer.h.
 *
 * Order of calls: gl_offered_keys() names the records to read, gl_offered_read() parses them. */
#ifndef GL_API_OFFERED_H
#define GL_API_OFFERED_H

#include "api/view.h"

enum { GL_OFFERED_MAX = 64 }; /* records of one answer */

/* Returns their number; both arrays are in `a`. 0: no step of the view runs elsewhere. */
size_t gl_offered_keys(struct gl_arena *a, const struct gl_view *v, struct gl_key **ret_keys,
                       struct gl_view_offer **ret);
/* `records`: one for each key, in their order. */
void gl_offered_read(struct gl_arena *a, const struct gl_record *records, size_t n,
                     struct gl_view_offer *offers);

#endif
