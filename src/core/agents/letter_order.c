#include "core/agents/letter_order.h"

#include "base/check.h"
#include "core/agents/agents.h"

/* Does `a` go before `b`? */
static bool letter_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_letter *x = GL_CONTAINER(a, struct gl_letter, waits);
    const struct gl_letter *y = GL_CONTAINER(b, struct gl_letter, waits);

    return x->rank != y->rank ? x->rank < y->rank : x->r.number < y->r.number;
}

static gl_ms rank_of(const struct gl_letter_record *r)
{
    GL_ASSERT(gl_letter_order_is_valid(r));
    if (r->again) {
        return INT64_MIN;
    }
    /* planted: waiting is worth nothing */
    return (GL_PLANT(49) ? 0 : r->created_at) - r->urgency * GL_MESSAGE_AGEING_MS;
}

void gl_letter_order_init(struct gl_heap *inbox)
{
    gl_heap_init(inbox, letter_before);
}

bool gl_letter_order_is_valid(const struct gl_letter_record *r)
{
    return r->number > 0 && r->created_at >= 0 && r->created_at < INT64_MAX / 2 &&
           r->urgency >= -GL_MESSAGE_PRIORITY_MAX && r->urgency <= GL_MESSAGE_PRIORITY_MAX;
}

void gl_letter_order_put(struct gl_step *unit, struct gl_letter *l)
{
    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(l->unit == unit->of);
    l->rank = rank_of(&l->r);
    gl_heap_push(&unit->mail->inbox, &l->waits);
    GL_ASSERT(unit->mail->inbox.n <= unit->mail->n);
}

void gl_letter_order_enqueue(struct gl_step *unit, struct gl_letter *l)
{
    GL_ASSERT(gl_step_is_unit(unit));
    gl_list_push(&unit->mail->letters, &l->link);
    unit->mail->n++;
    gl_letter_order_put(unit, l);
    GL_ASSERT(unit->mail->inbox.n == unit->mail->n);
}

struct gl_letter *gl_letter_order_next(const struct gl_step *unit)
{
    GL_ASSERT(unit->mail->n > 0);
    GL_ASSERT(unit->mail->inbox.n == unit->mail->n);
    return GL_CONTAINER(gl_heap_top(&unit->mail->inbox), struct gl_letter, waits);
}

/* Their order must not depend on when they were handled: a load knows only their numbers. */
void gl_letter_order_collect(struct gl_step *unit, struct gl_letter *l)
{
    struct gl_link *k = unit->mail->counted.prev;

    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(l->unit == unit->of);
    while (k != &unit->mail->counted &&
           GL_CONTAINER(k, struct gl_letter, link)->r.number > l->r.number) {
        k = k->prev;
    }
    gl_list_push(k->next, &l->link); /* after k */
}

gl_ms gl_letter_order_date(const struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->mail_at >= 0);
    /* planted: an earlier owner's clock does not matter */
    j->mail_at = j->mail_at > c->now && !GL_PLANT(57) ? j->mail_at : c->now;
    return j->mail_at;
}

int64_t gl_letter_order_urgency(const struct gl_message *m)
{
    /* planted: priority has no effect */
    return GL_PLANT(48) ? 0 : gl_message_clamp_priority(m->priority) - GL_MESSAGE_PRIORITY;
}
