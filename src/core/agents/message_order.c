#include "core/agents/message_order.h"

#include "base/check.h"
#include "core/agents/agents.h"

/* Does `a` go before `b`? */
static bool message_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_queued_message *x = GL_CONTAINER(a, struct gl_queued_message, waits);
    const struct gl_queued_message *y = GL_CONTAINER(b, struct gl_queued_message, waits);

    return x->rank != y->rank ? x->rank < y->rank : x->r.number < y->r.number;
}

static gl_ms rank_of(const struct gl_message_record *r)
{
    GL_ASSERT(gl_message_order_is_valid(r));
    if (r->again) {
        return INT64_MIN;
    }
    /* planted: waiting is worth nothing */
    return (GL_PLANT(49) ? 0 : r->created_at) - r->urgency * GL_MESSAGE_AGEING_MS;
}

void gl_message_order_init(struct gl_heap *inbox)
{
    gl_heap_init(inbox, message_before);
}

bool gl_message_order_is_valid(const struct gl_message_record *r)
{
    return r->number > 0 && r->created_at >= 0 && r->created_at < INT64_MAX / 2 &&
           r->urgency >= -GL_MESSAGE_PRIORITY_MAX && r->urgency <= GL_MESSAGE_PRIORITY_MAX;
}

void gl_message_order_put(struct gl_step *unit, struct gl_queued_message *q)
{
    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(q->unit == unit->of);
    q->rank = rank_of(&q->r);
    gl_heap_push(&unit->mailbox->inbox, &q->waits);
    GL_ASSERT(unit->mailbox->inbox.n <= unit->mailbox->n);
}

void gl_message_order_enqueue(struct gl_step *unit, struct gl_queued_message *q)
{
    GL_ASSERT(gl_step_is_unit(unit));
    gl_list_push(&unit->mailbox->messages, &q->link);
    unit->mailbox->n++;
    gl_message_order_put(unit, q);
    GL_ASSERT(unit->mailbox->inbox.n == unit->mailbox->n);
}

struct gl_queued_message *gl_message_order_next(const struct gl_step *unit)
{
    GL_ASSERT(unit->mailbox->n > 0);
    GL_ASSERT(unit->mailbox->inbox.n == unit->mailbox->n);
    return GL_CONTAINER(gl_heap_top(&unit->mailbox->inbox), struct gl_queued_message, waits);
}

/* Their order must not depend on when they were handled: a load knows only their numbers. */
void gl_message_order_collect(struct gl_step *unit, struct gl_queued_message *q)
{
    struct gl_link *k = unit->mailbox->counted.prev;

    GL_ASSERT(gl_step_is_unit(unit));
    GL_ASSERT(q->unit == unit->of);
    while (k != &unit->mailbox->counted &&
           GL_CONTAINER(k, struct gl_queued_message, link)->r.number > q->r.number) {
        k = k->prev;
    }
    gl_list_push(k->next, &q->link); /* after k */
}

gl_ms gl_message_order_date(const struct gl_core *c, struct gl_job *j)
{
    GL_ASSERT(j->last_message_at >= 0);
    /* planted: an earlier owner's clock does not matter */
    j->last_message_at = j->last_message_at > c->now && !GL_PLANT(57) ? j->last_message_at : c->now;
    return j->last_message_at;
}

int64_t gl_message_order_urgency(const struct gl_message *m)
{
    /* planted: priority has no effect */
    return GL_PLANT(48) ? 0 : gl_message_clamp_priority(m->priority) - GL_MESSAGE_PRIORITY;
}
