/* reason_nodes.c - the part of `why` that depends on which node owns the job, on a store that nodes
 * share. */
#include "api/reason_parts.h"
#include "base/check.h"

void gl_reason_add_code(struct gl_because *b, enum gl_why_code code)
{
    if (b->also_n < GL_COUNT(b->also)) {
        b->also[b->also_n++] = code;
    }
}

static gl_str span(struct gl_arena *a, gl_ms ms)
{
    char buf[GL_TIMES_BYTES];

    /* Rounded up to whole seconds. */
    return gl_str_dup(a, gl_times_format_span((ms + 999) / 1000 * 1000, buf));
}

bool gl_reason_is_elsewhere(const struct gl_view *v)
{
    return v->owner != NULL && !v->owner->is_own;
}

/* The nodes that may take the job over, if not all may. */
static gl_str group(struct gl_arena *a, const struct gl_view *v)
{
    gl_str stack = v->job.stack, scope = v->job.env_scope;

    if (stack.n > 0 && scope.n > 0) {
        return gl_str_fmt(a, "of stack '%.*s' and env_scope '%.*s'", GL_STR_ARG(stack),
                          GL_STR_ARG(scope));
    }
    return stack.n > 0   ? gl_str_fmt(a, "of stack '%.*s'", GL_STR_ARG(stack))
           : scope.n > 0 ? gl_str_fmt(a, "of env_scope '%.*s'", GL_STR_ARG(scope))
                         : GL_S("without a stack or env_scope");
}

bool gl_reason_is_stranded(const struct gl_view *v)
{
    const struct gl_nodes_owner *o = v->owner;

    return gl_reason_is_elsewhere(v) && !o->has_successors && v->job.status != GL_JOB_PAUSED &&
           !gl_job_status_is_terminal(v->job.status) &&
           (o->session.n == 0 || o->status == GL_NODE_DEAD);
}

gl_str gl_reason_stranded(struct gl_arena *a, const struct gl_view *v)
{
    return gl_str_fmt(a, "it has no owner; only a node %.*s can take it over, and none is running",
                      GL_STR_ARG(group(a, v)));
}

/* Appended to any sentence about the job; "" if the node that answers owns it. */
gl_str gl_reason_where(struct gl_arena *a, const struct gl_view *v, struct gl_because *b)
{
    const struct gl_nodes_owner *o = v->owner;

    if (!gl_reason_is_elsewhere(v)) {
        return (gl_str){0};
    }
    if ((o->session.n == 0 || o->status == GL_NODE_DEAD) && v->job.status == GL_JOB_PAUSED) {
        return (gl_str){0}; /* a paused job needs no owner */
    }
    if (gl_reason_is_stranded(v)) {
        gl_reason_add_code(b, GL_BECAUSE_STRANDED);
        return gl_str_fmt(a, "; %.*s", GL_STR_ARG(gl_reason_stranded(a, v)));
    }
    if (o->session.n == 0) {
        gl_reason_add_code(b, GL_BECAUSE_NO_OWNER);
        return GL_S("; it has no owner; the next node with free slots takes it over");
    }
    switch (o->status) {
    case GL_NODE_ALIVE:
        gl_reason_add_code(b, GL_BECAUSE_OTHER_NODE);
        return o->left_ms == INT64_MAX
                   ? gl_str_fmt(a, " (on node %.*s)", GL_STR_ARG(o->node))
                   : gl_str_fmt(
                         a,
                         " (on node %.*s; if it goes silent, another node takes over in about "
                         "%.*s)",
                         GL_STR_ARG(o->node), GL_STR_ARG(span(a, o->left_ms)));
    case GL_NODE_LATE:
        gl_reason_add_code(b, GL_BECAUSE_NODE_LATE);
        return gl_str_fmt(
            a,
            "; its node %.*s is %.*s late with its heartbeat; another node takes over "
            "once it is declared dead",
            GL_STR_ARG(o->node), GL_STR_ARG(span(a, -o->left_ms)));
    case GL_NODE_DEAD:
        gl_reason_add_code(b, GL_BECAUSE_NODE_DEAD);
        return gl_str_fmt(
            a,
            "; its node %.*s is dead; the next node to start on this store takes over, or "
            "that node itself when it returns",
            GL_STR_ARG(o->node));
    case GL_NODE_STATUS_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

gl_str gl_reason_inbox(struct gl_arena *a, const struct gl_view *v, struct gl_because *b)
{
    uint32_t n = v->owner != NULL ? v->owner->inbox_n : 0;

    if (n == 0) {
        return (gl_str){0};
    }
    gl_reason_add_code(b, GL_BECAUSE_COMMANDS_WAIT);
    return gl_str_fmt(a, "; %u command%s for it %s queued for %s%.*s", n, n == 1 ? "" : "s",
                      n == 1 ? "is" : "are", v->owner->node.n > 0 ? "node " : "",
                      GL_STR_ARG(v->owner->node.n > 0 ? v->owner->node : GL_S("its next owner")));
}
