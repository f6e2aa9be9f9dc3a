/* patch_graph.c - checks a changed flow: it must have no loose ends or cycles, and must be able to
 * reach its exit. */
#include "base/check.h"
#include "base/limits.h"
#include "model/bundle/patch_parts.h"
#include "model/flow/flow_graph.h"

static int check_loose(struct gl_patch *p)
{
    for (uint32_t i = gl_flow_agents_n(p->f); i < p->f->steps.n; i++) {
        const struct gl_step_spec *s = gl_patch_step(p, i);
        const struct gl_step_edge *edges = s->edges.items;

        for (uint32_t k = 0; k < s->needs_n; k++) {
            const struct gl_step_spec *parent = gl_patch_step(p, s->needs[k]);

            if (s->is_removed || parent->is_removed) {
                return gl_why(
                    p->why, GL_R_PATCH_EDGE_LEFT_OVER,
                    "the edge `%.*s` from `%.*s` to `%.*s` would be left dangling: remove it, "
                    "too",
                    GL_STR_ARG(edges[k].id), GL_STR_ARG(parent->id), GL_STR_ARG(s->id));
            }
        }
        if (s->rule == GL_RULE_QUORUM && s->quorum > s->needs_n) {
            return gl_why(p->why, GL_R_PATCH_QUORUM,
                          "only %u edges would lead to `%.*s`, whose quorum is %u", s->needs_n,
                          GL_STR_ARG(s->id), s->quorum);
        }
    }
    return 0;
}

static int check_cycle(struct gl_patch *p)
{
    uint32_t *cycle, n;
    struct gl_buf text = {0};
    int rc;

    if (!gl_flow_graph_cycle(p->f, p->a, &cycle, &n)) {
        return 0;
    }
    for (uint32_t i = 0; i < n && i < 8; i++) {
        gl_buf_fmt(&text, "%s`%.*s`", i > 0 ? ", " : "",
                   GL_STR_ARG(gl_patch_step(p, cycle[i])->id));
    }
    rc = gl_why(p->why, GL_R_PATCH_CYCLE, "these steps would wait for each other: %.*s%s",
                GL_STR_ARG(gl_buf_view(&text)), n > 8 ? ", ..." : "");
    gl_buf_done(&text);
    return rc;
}

/* All steps reachable from a step, along the edges or against them. */
static bool *reached(struct gl_patch *p, uint32_t from, bool is_forward)
{
    bool *seen = GL_NEW_ARRAY(p->a, bool, p->f->steps.n);
    uint32_t *queue = GL_NEW_ARRAY(p->a, uint32_t, p->f->steps.n);
    size_t head = 0, tail = 0;

    seen[from] = true;
    queue[tail++] = from;
    while (head < tail) {
        const struct gl_step_spec *s = gl_patch_step(p, queue[head++]);
        const uint32_t *next = is_forward ? s->children : s->needs;
        uint32_t n = is_forward ? s->children_n : s->needs_n;

        for (uint32_t i = 0; i < n; i++) {
            if (!seen[next[i]]) {
                seen[next[i]] = true;
                queue[tail++] = next[i];
            }
        }
    }
    return seen;
}

static int check_path(struct gl_patch *p)
{
    const bool *behind, *before;

    if (p->region->is_fanout) {
        return 0;
    }
    behind = reached(p, p->controller, true);
    before = reached(p, p->exit, false);
    if (!behind[p->exit]) {
        return gl_why(p->why, GL_R_PATCH_NO_PATH, "no path would lead from `%.*s` to `%.*s`",
                      GL_STR_ARG(p->region->controller), GL_STR_ARG(p->region->exit));
    }
    for (uint32_t i = gl_flow_agents_n(p->f); i < p->f->steps.n; i++) {
        if (gl_patch_is_instance(p, i) && (!behind[i] || !before[i])) {
            return gl_why(p->why, GL_R_PATCH_OFF_PATH,
                          "the step `%.*s` would not be on a path from `%.*s` to `%.*s`",
                          GL_STR_ARG(gl_patch_step(p, i)->id), GL_STR_ARG(p->region->controller),
                          GL_STR_ARG(p->region->exit));
        }
    }
    return 0;
}

int gl_patch_finish(struct gl_patch *p)
{
    int rc = check_loose(p);

    if (rc != 0) {
        return rc;
    }
    gl_flow_graph_index(p->f, p->a);
    gl_flow_graph_link(p->f, p->a);
    rc = check_cycle(p);
    rc = rc == 0 ? check_path(p) : rc;
    return rc == 0 ? gl_bundle_link_accepts(p->f, p->a, p->why) : rc;
}
