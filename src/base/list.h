/* list.h - an intrusive doubly linked list. A head is a link that points to itself when the list is
 * empty. */
#ifndef GL_BASE_LIST_H
#define GL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct gl_link {
    struct gl_link *prev, *next;
};

static inline void gl_list_init(struct gl_link *l)
{
    l->prev = l->next = l;
}

static inline bool gl_list_empty(const struct gl_link *l)
{
    return l->next == l;
}

/* Insert `x` at the end of the list whose head is `head`. */
static inline void gl_list_push(struct gl_link *head, struct gl_link *x)
{
    x->prev = head->prev;
    x->next = head;
    head->prev->next = x;
    head->prev = x;
}

/* Remove `x` from its list, if any; it then points to itself. */
static inline void gl_list_remove(struct gl_link *x)
{
    x->prev->next = x->next;
    x->next->prev = x->prev;
    gl_list_init(x);
}

/* Move all links of `from` to `to`, which need not be initialized; `from` is then empty. For a walk
 * during which others may be added. */
static inline void gl_list_take_all(struct gl_link *to, struct gl_link *from)
{
    gl_list_init(to);
    if (!gl_list_empty(from)) {
        *to = *from;
        to->next->prev = to->prev->next = to;
        gl_list_init(from);
    }
}

static inline struct gl_link *gl_list_first(struct gl_link *head)
{
    return gl_list_empty(head) ? NULL : head->next;
}

#endif
