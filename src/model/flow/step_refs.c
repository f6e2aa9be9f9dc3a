#include "base/check.h"
#include "model/flow/step_read.h"

static void unknown_input(struct gl_flow_reader *r, gl_jnode n, struct gl_flow_path at,
                          const struct gl_ref *ref, gl_str text, size_t offset)
{
    const struct gl_flow_input *inputs = r->flow->inputs.items;
    gl_str name = ref->path.items[0];
    struct gl_suggest near;
    gl_suggest_init(&near, name);
    for (size_t i = 0; i < r->flow->inputs.n; i++) {
        if (gl_str_eq(inputs[i].name, name)) {
            return;
        }
        gl_suggest_offer(&near, inputs[i].name);
    }
    gl_flow_read_error_in(r, n, at, text, offset, GL_REASON_UNKNOWN_INPUT,
                          "the flow has no input `%.*s`%s", GL_STR_ARG(gl_flow_read_clip(name)),
                          near.best.n         ? gl_flow_read_suggestion(r, &near)
                          : r->flow->inputs.n ? ""
                                              : ": declare it under `inputs`");
}

void gl_step_refs_note(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path at, const struct gl_ref *ref, gl_str text, size_t offset)
{
    gl_str part = ref->path.items[0];
    struct gl_flow_step_ref found = {n, at, ref->step, text, offset, s->number};
    switch (ref->root) {
    case GL_REF_STEPS:
        gl_buf_add(&r->refs, &found, sizeof(found));
        return;
    case GL_REF_INPUTS:
        unknown_input(r, n, at, ref, text, offset);
        return;
    case GL_REF_JOB:
        if (!gl_str_is(part, "item") && !gl_str_is(part, "index")) {
            return;
        }
        if (!s->has_foreach) {
            gl_flow_read_error_in(r, n, at, text, offset, GL_REASON_FOREACH_MISSING,
                                  "`job.%.*s` exists only in a step with `foreach`",
                                  GL_STR_ARG(part));
        } else if (strcmp(at.field, "when") == 0 || strcmp(at.field, "foreach") == 0) {
            gl_flow_read_error_in(r, n, at, text, offset, GL_REASON_NO_ITEM_YET,
                                  "`%s` is evaluated once, before there are items: there is no "
                                  "`job.%.*s` yet",
                                  at.field, GL_STR_ARG(part));
        }
        return;
    }
    GL_UNREACHABLE();
}

bool gl_step_refs_text(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path at, gl_str text)
{
    size_t pos = 0;
    while (pos < text.n) {
        struct gl_ref_piece piece;
        struct gl_why why;
        if (gl_ref_next(text, &pos, r->a, &piece, &why)) {
            gl_flow_read_error_in(r, n, at, text, piece.at, why.reason, "%s", why.text);
            return false;
        }
        if (piece.is_ref) {
            gl_step_refs_note(r, s, n, at, &piece.ref, text, piece.at);
        }
    }
    return true;
}

/* Programs. */

bool gl_step_code_is_ref(gl_str text, size_t i)
{
    static const char *const roots[] = {"steps.", "inputs.", "job."};
    gl_str rest = {text.p + i, text.n - i};
    if (!gl_str_starts(rest, GL_S("${"))) {
        return false;
    }
    rest.p += 2;
    rest.n -= 2;
    while (rest.n && (rest.p[0] == ' ' || rest.p[0] == '\t')) {
        rest.p++;
        rest.n--;
    }
    for (size_t k = 0; k < GL_COUNT(roots); k++) {
        if (gl_str_starts(rest, gl_str_of(roots[k]))) {
            return true;
        }
    }
    return false;
}

/* The number of this reference: equal texts get the same number. */
static size_t number_of(struct gl_step_code *c, gl_str ref)
{
    const gl_str *known = (const gl_str *)(void *)c->refs.p;
    for (size_t i = 0; i < c->refs_n; i++) {
        if (gl_str_eq(known[i], ref)) {
            return i;
        }
    }
    gl_buf_add(&c->refs, &ref, sizeof(ref));
    return c->refs_n++;
}

static size_t put_ref(struct gl_step_code *c, size_t i, const char *problem)
{
    struct gl_ref_piece piece;
    struct gl_why why;
    size_t end = i;
    if (gl_ref_next(c->text, &end, c->r->a, &piece, &why)) {
        gl_flow_read_error_in(c->r, c->n, c->at, c->text, i, why.reason, "%s", why.text);
        return gl_step_code_copy(c, i, 2);
    }
    if (problem) {
        gl_flow_read_error_in(c->r, c->n, c->at, c->text, i, GL_REASON_REFERENCE_MISPLACED, "%s",
                              problem);
    } else if (c->refs_n >= GL_ENVS_MAX) {
        gl_flow_read_error_in(c->r, c->n, c->at, c->text, i, GL_REASON_TOO_MANY,
                              "a step can have at most %d different references", GL_ENVS_MAX);
    } else {
        gl_step_refs_note(c->r, c->s, c->n, c->at, &piece.ref, c->text, i);
        c->put(c, number_of(c, piece.ref.text), piece.ref.text);
    }
    return end;
}

size_t gl_step_code_copy(struct gl_step_code *c, size_t i, size_t n)
{
    n = n < c->text.n - i ? n : c->text.n - i;
    gl_buf_add(&c->out, c->text.p + i, n);
    return i + n;
}

size_t gl_step_code_put(struct gl_step_code *c, size_t i, const char *problem)
{
    if (gl_step_code_is_ref(c->text, i)) {
        return put_ref(c, i, problem);
    }
    gl_str rest = {c->text.p + i, c->text.n - i};
    if (gl_str_starts(rest, GL_S("$${"))) {
        gl_buf_c(&c->out, "${");
        return i + 3;
    }
    return gl_step_code_copy(c, i, 1);
}
