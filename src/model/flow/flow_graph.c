#include "model/flow/flow_graph.h"

#include "base/check.h"
#include "model/bundle/agent.h"

void gl_flow_graph_index(struct gl_flow *f, struct gl_arena *a)
{
    uint32_t slots_n = 8;
    while (slots_n < f->steps.n * 2) {
        slots_n *= 2;
    }
    f->slots = GL_NEW_ARRAY(a, uint32_t, slots_n);
    f->slots_n = slots_n;
    for (uint32_t i = 0; i < f->steps.n; i++) {
        gl_str id = gl_flow_step(f, i)->id;
        uint32_t s = (uint32_t)gl_str_hash(id) & (slots_n - 1);
        while (f->slots[s] && !gl_str_eq(gl_flow_step(f, f->slots[s] - 1)->id, id)) {
            s = (s + 1) & (slots_n - 1);
        }
        if (!f->slots[s]) {
            f->slots[s] = i + 1;
        }
    }
}

void gl_flow_graph_link(struct gl_flow *f, struct gl_arena *a)
{
    size_t edges = 0;
    f->roots_n = 0;
    for (size_t i = 0; i < f->steps.n; i++) {
        struct gl_step_spec *s = gl_flow_graph_step(f, i);
        s->children_n = 0;
        edges += s->needs_n;
        f->roots_n += s->needs_n == 0 && !gl_flow_is_unit(f, (uint32_t)i) && !s->is_removed;
    }
    /* Count, then give each step its part of one array, then fill. */
    for (size_t i = 0; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_graph_step(f, i);
        for (uint32_t k = 0; k < s->needs_n; k++) {
            GL_ASSERT(s->needs[k] < f->steps.n);
            gl_flow_graph_step(f, s->needs[k])->children_n++;
        }
    }
    uint32_t *at = GL_NEW_ARRAY(a, uint32_t, edges);
    for (size_t i = 0; i < f->steps.n; i++) {
        struct gl_step_spec *s = gl_flow_graph_step(f, i);
        s->children = at;
        at += s->children_n;
        s->children_n = 0;
    }
    uint32_t roots_n = 0;
    f->roots = GL_NEW_ARRAY(a, uint32_t, f->roots_n);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_graph_step(f, i);
        for (uint32_t k = 0; k < s->needs_n; k++) {
            struct gl_step_spec *parent = gl_flow_graph_step(f, s->needs[k]);
            parent->children[parent->children_n++] = i;
        }
        if (s->needs_n == 0 && !gl_flow_is_unit(f, i) && !s->is_removed) {
            f->roots[roots_n++] = i;
        }
    }
}

/* How many needs of each step are still open after all steps that can run have run (Kahn 1962):
 * steps with open needs are in a cycle or depend on one. */
static uint32_t *open_needs(const struct gl_flow *f, struct gl_arena *a)
{
    uint32_t *open = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    uint32_t *queue = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    size_t head = 0, tail = 0;
    for (uint32_t i = 0; i < f->steps.n; i++) {
        open[i] = gl_flow_step(f, i)->needs_n;
        if (open[i] == 0) {
            queue[tail++] = i;
        }
    }
    while (head < tail) {
        const struct gl_step_spec *s = gl_flow_step(f, queue[head++]);
        for (uint32_t k = 0; k < s->children_n; k++) {
            if (--open[s->children[k]] == 0) {
                queue[tail++] = s->children[k];
            }
        }
    }
    return open;
}

static uint32_t first_open_parent(const struct gl_flow *f, const uint32_t *open, uint32_t number)
{
    const struct gl_step_spec *s = gl_flow_step(f, number);
    for (uint32_t k = 0; k < s->needs_n; k++) {
        if (open[s->needs[k]]) {
            return s->needs[k];
        }
    }
    GL_UNREACHABLE(); /* a step with open needs has an open parent */
}

bool gl_flow_graph_cycle(const struct gl_flow *f, struct gl_arena *a, uint32_t **ret,
                         uint32_t *ret_n)
{
    uint32_t *open = open_needs(f, a);
    uint32_t start = 0;
    while (start < f->steps.n && open[start] == 0) {
        start++;
    }
    if (start == f->steps.n) {
        return false;
    }
    /* Go from parent to parent until a step repeats: the cycle begins there. */
    uint32_t *way = GL_NEW_ARRAY(a, uint32_t, f->steps.n + 1);
    uint32_t *seen_at = GL_NEW_ARRAY(a, uint32_t, f->steps.n); /* position on the path + 1 */
    uint32_t n = 0;
    uint32_t at = start;
    while (!seen_at[at]) {
        way[n++] = at;
        seen_at[at] = n;
        at = first_open_parent(f, open, at);
    }
    uint32_t first = seen_at[at] - 1;
    *ret_n = n - first;
    *ret = GL_NEW_ARRAY(a, uint32_t, *ret_n);
    for (uint32_t i = 0; i < *ret_n; i++) {
        (*ret)[i] = way[n - 1 - i]; /* backwards: each needs the one before it */
    }
    return true;
}
