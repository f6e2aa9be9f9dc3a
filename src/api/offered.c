#include "api/offered.h"

#include "base/check.h"
#include "model/offer.h"

enum { RECORD_BYTES_MAX = 4 << 10 }; /* a larger record has an output: its attempt has ended */

/* NULL: nothing, or only the status, is known of the step. */
static const struct gl_step_record *record_of(const struct gl_view *v, struct gl_view_pick p)
{
    const struct gl_step_record *r =
        p.item < 0 ? v->steps[p.number] : v->items[p.number].records[p.item];

    return r != NULL && r->step_id.n > 0 ? r : NULL;
}

size_t gl_offered_keys(struct gl_arena *a, const struct gl_view *v, struct gl_key **ret_keys,
                       struct gl_view_offer **ret)
{
    struct gl_view_offer *offers = NULL;
    struct gl_key *keys = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->picks_n && n < GL_OFFERED_MAX; i++) {
        const struct gl_step_record *r = record_of(v, v->picks[i]);

        if (r == NULL || r->status != GL_STEP_RUNNING || !r->is_elsewhere) {
            continue;
        }
        if (keys == NULL) {
            keys = GL_NEW_ARRAY(a, struct gl_key, GL_OFFERED_MAX);
            offers = GL_NEW_ARRAY(a, struct gl_view_offer, GL_OFFERED_MAX);
        }
        keys[n] =
            (struct gl_key){.kind = GL_S("taken"),
                            .id = gl_str_fmt(a, "%.*s/%.*s:attempt:%u", GL_STR_ARG(v->job.job_id),
                                             GL_STR_ARG(r->step_id), r->attempt_count)};
        offers[n++].step_id = r->step_id;
    }
    if (n > 0) {
        *ret_keys = keys;
        *ret = offers;
    }
    return n;
}

void gl_offered_read(struct gl_arena *a, const struct gl_record *records, size_t n,
                     struct gl_view_offer *offers)
{
    GL_ASSERT(n <= GL_OFFERED_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct gl_record *r = &records[i];
        struct gl_taken_record taken = {.state = GL_TAKEN_RUNNING};

        if (r->rev > 0 && r->value.n > RECORD_BYTES_MAX) {
            taken.state = GL_TAKEN_ENDED;
        } else if (r->rev > 0 && !r->damaged) {
            (void)gl_view_record(a, &gl_taken_schema, r->value, &taken, NULL); /* else it runs */
        }
        offers[i].state = taken.state;
        offers[i].is_taken = r->rev > 0 && taken.state != GL_TAKEN_WITHDRAWN;
    }
}
