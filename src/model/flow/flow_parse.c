#include <stdio.h>

#include "base/check.h"
#include "model/flow/flow_check.h"
#include "model/flow/flow_graph.h"
#include "model/flow/flow_refs.h"
#include "model/flow/input_parse.h"
#include "model/flow/step_parse.h"

enum {
    SUGGESTED_STEPS_MAX = 20000, /* ids compared for one suggestion */
    CYCLE_NAMES_MAX = 12,
};

struct flow_parser {
    struct gl_flow_reader r;
    struct gl_flow *f;
    struct gl_step_source *sources; /* of each step */
    bool has_bad_needs, has_cycle;
};

#define AT(where, name) ((struct gl_flow_path){.of = (where), .field = (name)})
#define TOP(name) ((struct gl_flow_path){.field = (name)})

static const char id_rule[] =
    "an id has 1 to 128 ASCII letters, digits, _ . and -, and does not start with . or -";

static gl_str join(struct flow_parser *p, const char *before, gl_str s)
{
    size_t n = strlen(before);
    char *out = gl_arena_alloc(p->r.a, n + s.n + 1);
    memcpy(out, before, n);
    if (s.n) {
        memcpy(out + n, s.p, s.n);
    }
    return (gl_str){.p = out, .n = n + s.n};
}

/* The id of a step in a list; "" with an error if it has none. */
static gl_str listed_id(struct flow_parser *p, gl_jnode n, uint32_t index)
{
    gl_jnode id = gl_json_get(p->r.j, n, "id");
    struct gl_flow_path at = {.field = "steps", .item = index + 1};
    gl_str ret = {0};
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return ret; /* gl_step_parse() reports it */
    }
    if (!id) {
        gl_flow_read_error(&p->r, n, at, GL_REASON_ID_MISSING,
                           "`id` is missing; each step in a list needs one");
    } else if (gl_flow_read_scalar(&p->r, id, at, &ret) && !gl_str_is_id(ret)) {
        gl_flow_read_error(&p->r, id, at, GL_REASON_NAME_INVALID, "%s", id_rule);
        ret = (gl_str){0};
    }
    return ret;
}

static gl_str keyed_id(struct flow_parser *p, gl_jnode key)
{
    gl_str id = gl_json_str(p->r.j, key, p->r.a);
    struct gl_flow_path at = {.field = "steps", .key = id};
    if (!gl_str_is_id(id)) {
        gl_flow_read_error(&p->r, key, at, GL_REASON_NAME_INVALID, "%s", id_rule);
        return (gl_str){0};
    }
    gl_jnode inner = gl_json_get(p->r.j, gl_json_value(key), "id");
    if (inner && !gl_str_eq(gl_json_str(p->r.j, inner, p->r.a), id)) {
        gl_flow_read_error(&p->r, inner, at, GL_REASON_ID_REDUNDANT,
                           "the id of this step is its key, `%.*s`; leave `id` out",
                           GL_STR_ARG(id));
    }
    return id;
}

static void read_step(struct flow_parser *p, gl_jnode e, bool is_map, uint32_t i)
{
    struct gl_step_spec *spec = gl_flow_graph_step(p->f, i);
    struct gl_step_source *source = &p->sources[i];
    spec->id = is_map ? keyed_id(p, e) : listed_id(p, e, i);
    source->node = is_map ? gl_json_value(e) : e;
    source->number = i;
    source->where = spec->id.n ? join(p, "steps.", spec->id) : gl_str_fmt(p->r.a, "steps[%u]", i);
    gl_step_parse(&p->r, source, spec);
}

static void read_steps(struct flow_parser *p, gl_jnode n)
{
    bool is_map = gl_json_is(n, GL_JSON_OBJECT);
    if (!is_map && !gl_json_is(n, GL_JSON_ARRAY)) {
        gl_flow_read_error(&p->r, n, TOP("steps"), GL_REASON_WRONG_TYPE,
                           "expected a map from id to step, or a list of steps, not %s",
                           gl_json_type_name(n));
        return;
    }
    if (n->count == 0 || n->count > GL_STEPS_MAX) {
        gl_flow_read_error(&p->r, n, TOP("steps"), GL_REASON_TOO_MANY_STEPS,
                           "a flow has 1 to %d steps, not %u", GL_STEPS_MAX, n->count);
        return;
    }
    p->f->steps = (struct gl_items){GL_NEW_ARRAY(p->r.a, struct gl_step_spec, n->count), n->count};
    p->sources = GL_NEW_ARRAY(p->r.a, struct gl_step_source, n->count);
    uint32_t i = 0;
    for (gl_jnode e = gl_json_first(p->r.j, n); e; e = gl_json_after(p->r.j, n, e), i++) {
        read_step(p, e, is_map, i);
    }
}

/* The graph. */

/* "; did you mean `x`?", or nothing. */
static const char *near_step(struct flow_parser *p, gl_str id)
{
    struct gl_suggest near;
    gl_suggest_init(&near, id);
    size_t looked_at = p->f->steps.n < SUGGESTED_STEPS_MAX ? p->f->steps.n : SUGGESTED_STEPS_MAX;
    for (uint32_t i = 0; gl_flow_read_error_has_room(&p->r) && i < looked_at; i++) {
        gl_suggest_offer(&near, gl_flow_step(p->f, i)->id);
    }
    return gl_flow_read_suggestion(&p->r, &near);
}

/* Turn the ids of one step's needs into numbers; invalid ones are reported and omitted. */
static void resolve_needs(struct flow_parser *p, uint32_t number, uint32_t *mark)
{
    struct gl_step_spec *s = gl_flow_graph_step(p->f, number);
    gl_jnode list = p->sources[number].needs;
    struct gl_flow_path at = AT(p->sources[number].where, "needs");
    gl_jnode n = gl_json_is(list, GL_JSON_ARRAY) ? gl_json_first(p->r.j, list) : list;
    s->needs = GL_NEW_ARRAY(p->r.a, uint32_t, s->needs_ids.n);
    for (size_t k = 0; k < s->needs_ids.n; k++) {
        gl_str id = s->needs_ids.items[k];
        int64_t parent = id.n ? gl_flow_find(p->f, id) : -1;
        if (!id.p) {
            ; /* not text: reported when it was read */
        } else if (parent < 0) {
            gl_flow_read_error(&p->r, n, at, GL_REASON_UNKNOWN_STEP, "there is no step `%.*s`%s",
                               GL_STR_ARG(gl_flow_read_clip(id)), near_step(p, id));
        } else if (parent == number) {
            gl_flow_read_error(&p->r, n, at, GL_REASON_SELF_DEPENDENCY, "the step needs itself");
        } else if (mark[parent] == number + 1) {
            gl_flow_read_error(&p->r, n, at, GL_REASON_REPEATED, "`%.*s` is listed twice",
                               GL_STR_ARG(id));
        } else {
            mark[parent] = number + 1;
            s->needs[s->needs_n++] = (uint32_t)parent;
        }
        n = gl_json_is(list, GL_JSON_ARRAY) ? gl_json_after(p->r.j, list, n) : NULL;
    }
    p->has_bad_needs = p->has_bad_needs || s->needs_n != s->needs_ids.n;
}

static void report_cycle(struct flow_parser *p)
{
    uint32_t *cycle, n;
    if (!gl_flow_graph_cycle(p->f, p->r.a, &cycle, &n)) {
        return;
    }
    p->has_cycle = true;
    struct gl_buf names = {0};
    uint32_t shown = n <= CYCLE_NAMES_MAX ? n : CYCLE_NAMES_MAX;
    for (uint32_t i = 0; i < shown; i++) { /* backwards: from a step to one that it needs */
        gl_str id = gl_flow_step(p->f, cycle[(n - i) % n])->id;
        gl_str need = gl_flow_step(p->f, cycle[(2 * n - i - 1) % n])->id;
        gl_buf_fmt(&names, "%s%.*s needs %.*s", i ? ", " : "", GL_STR_ARG(id), GL_STR_ARG(need));
    }
    if (shown < n) {
        gl_buf_fmt(&names, ", and so on (%u more)", n - shown);
    }
    const struct gl_step_source *source = &p->sources[cycle[0]];
    gl_flow_read_error(&p->r, source->needs, AT(source->where, "needs"), GL_REASON_DEPENDENCY_CYCLE,
                       "these steps wait for each other: %.*s", GL_STR_ARG(gl_buf_view(&names)));
    gl_buf_done(&names);
}

/* With one_failed, some parent must be able to fail without failing the job. */
static void check_rule(struct flow_parser *p, uint32_t number)
{
    const struct gl_step_spec *s = gl_flow_step(p->f, number);
    const struct gl_step_source *source = &p->sources[number];
    if (s->rule != GL_RULE_ONE_FAILED || s->needs_n == 0 || s->needs_n != s->needs_ids.n) {
        return;
    }
    for (uint32_t k = 0; k < s->needs_n; k++) {
        if (gl_flow_step(p->f, s->needs[k])->on_failure != GL_ON_FAILURE_FAIL) {
            return;
        }
    }
    gl_flow_read_error(&p->r, gl_json_get(p->r.j, source->node, "trigger_rule"),
                       AT(source->where, "trigger_rule"), GL_REASON_NEVER_RUNS,
                       "with the rule one_failed this step could never run: when a step it needs "
                       "fails, the job fails; give one of them `on_failure: continue` or `skip`");
}

/* References to steps. */

static void check_reads(struct flow_parser *p, const struct gl_flow_step_ref *found,
                        struct gl_flow_read *reads, size_t n)
{
    if (p->has_bad_needs || p->has_cycle) {
        return; /* the ancestors are not known in that case */
    }
    gl_flow_refs_find_unordered(p->f, p->r.a, reads, n);
    for (size_t i = 0; i < n; i++) {
        const struct gl_flow_step_ref *f = &found[i];
        if (reads[i].is_unordered && reads[i].read != reads[i].reader) {
            gl_flow_read_error_in(
                &p->r, f->n, f->at, f->text, f->offset, GL_REASON_NOT_A_DEPENDENCY,
                "step `%.*s` need not have ended by then: add it to `needs`", GL_STR_ARG(f->step));
        }
    }
}

static void check_refs(struct flow_parser *p)
{
    struct gl_flow_step_ref *found = (struct gl_flow_step_ref *)(void *)p->r.refs.p;
    size_t n = p->r.refs.n / sizeof(found[0]), known = 0;
    struct gl_flow_read *reads = GL_NEW_ARRAY(p->r.a, struct gl_flow_read, n);
    for (size_t i = 0; i < n; i++) {
        struct gl_flow_step_ref *f = &found[i];
        int64_t number = gl_flow_find(p->f, f->step);
        if (number < 0) {
            gl_flow_read_error_in(&p->r, f->n, f->at, f->text, f->offset, GL_REASON_UNKNOWN_STEP,
                                  "there is no step `%.*s`%s",
                                  GL_STR_ARG(gl_flow_read_clip(f->step)), near_step(p, f->step));
        } else if (number == f->reader) {
            gl_flow_read_error_in(&p->r, f->n, f->at, f->text, f->offset, GL_REASON_SELF_REFERENCE,
                                  "a step cannot refer to itself");
        } else {
            reads[known] = (struct gl_flow_read){.reader = f->reader, .read = (uint32_t)number};
            found[known++] = *f;
        }
    }
    check_reads(p, found, reads, known);
}

static void check_graph(struct flow_parser *p)
{
    struct gl_flow *f = p->f;
    gl_flow_graph_index(f, p->r.a);
    uint32_t *mark = GL_NEW_ARRAY(p->r.a, uint32_t, f->steps.n);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        gl_str id = gl_flow_step(f, i)->id;
        if (id.n && gl_flow_find(f, id) != i) {
            gl_flow_read_error(&p->r, p->sources[i].node, AT(p->sources[i].where, "id"),
                               GL_REASON_ID_TAKEN, "there is another step with the id `%.*s`",
                               GL_STR_ARG(id));
        }
        resolve_needs(p, i, mark);
    }
    gl_flow_graph_link(f, p->r.a);
    report_cycle(p);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        check_rule(p, i);
    }
    check_refs(p);
}

/* The flow. */

static void read_name(struct flow_parser *p, gl_jnode n)
{
    gl_str name;
    if (!gl_flow_read_scalar(&p->r, n, TOP("name"), &name)) {
        return;
    }
    if (!gl_flow_check_name(name)) {
        gl_flow_read_error(&p->r, n, TOP("name"), GL_REASON_NAME_INVALID,
                           "a name has 1 to %d bytes of printable text", GL_NAME_BYTES_MAX);
        return;
    }
    p->f->name = name;
}

static void read_flow(struct flow_parser *p, gl_jnode root)
{
    if (!gl_json_is(root, GL_JSON_OBJECT)) {
        gl_flow_read_error(&p->r, root, TOP(NULL), GL_REASON_WRONG_TYPE,
                           "expected a flow: a map with `steps`, not %s", gl_json_type_name(root));
        return;
    }
    /* Steps come last: they need to know the name and the inputs. */
    gl_jnode name = gl_json_get(p->r.j, root, "name");
    gl_jnode inputs = gl_json_get(p->r.j, root, "inputs");
    gl_jnode steps = gl_json_get(p->r.j, root, "steps");
    for (gl_jnode key = gl_json_first(p->r.j, root); key; key = gl_json_after(p->r.j, root, key)) {
        if (!gl_flow_read_is_field("flow", gl_json_str(p->r.j, key, p->r.a))) {
            gl_flow_read_unknown(&p->r, key, "flow", TOP(NULL));
        }
    }
    if (name) {
        read_name(p, name);
    }
    if (inputs) {
        p->f->inputs = gl_input_parse(&p->r, inputs);
    }
    if (steps) {
        read_steps(p, steps);
    } else {
        gl_flow_read_error(&p->r, root, TOP("steps"), GL_REASON_MISSING,
                           "`steps` is missing: a map from id to step");
    }
    if (p->f->steps.n) {
        check_graph(p);
    }
}

/* Whether the compiled form could be too large to be read back. It can be several times as long as
 * the flow file, but less than sixteen times, except for the two keys of a step that begin with the
 * flow's name. */
static void check_size(struct flow_parser *p, gl_jnode root)
{
    size_t keys = p->f->steps.n * 2 * (p->f->name.n * 2 + GL_ID_BYTES_MAX);
    if (p->r.j->text.n * 16 + keys <= GL_FLOW_BYTES_MAX) {
        return;
    }
    struct gl_buf out = {0};
    gl_flow_encode(p->f, &out);
    if (out.n > GL_FLOW_BYTES_MAX) {
        gl_flow_read_error(&p->r, root, TOP("steps"), GL_REASON_TOO_LARGE,
                           "the flow has %zu bytes when compiled; at most %d are allowed", out.n,
                           GL_FLOW_BYTES_MAX);
    }
    gl_buf_done(&out);
}

static void sort_errors(struct gl_flow_errors *all)
{
    for (size_t i = 1; i < all->n; i++) {
        struct gl_flow_error e = all->items[i];
        size_t k = i;
        for (; k > 0; k--) {
            const struct gl_flow_error *before = &all->items[k - 1];
            if (before->line < e.line || (before->line == e.line && before->column <= e.column)) {
                break;
            }
            all->items[k] = *before;
        }
        all->items[k] = e;
    }
}

int gl_flow_parse(const struct gl_json *j, gl_jnode root, struct gl_flow_loader *loader,
                  struct gl_arena *a, struct gl_flow **ret, struct gl_flow_errors *reterr)
{
    *reterr = (struct gl_flow_errors){0};
    struct flow_parser p = {.r = {.j = j, .loader = loader, .a = a, .errors = reterr}};
    p.f = GL_NEW(a, struct gl_flow);
    p.f->name = GL_S("flow");
    p.r.flow = p.f;
    read_flow(&p, root);
    if (reterr->total == 0) {
        check_size(&p, root);
        /* A flow that was accepted must also be accepted when read back: an error here is a bug,
         * so it has no place in the source. */
        struct gl_why why;
        if (gl_flow_check(p.f, &why) || gl_flow_refs_link(p.f, a, &why)) {
            gl_flow_read_error(&p.r, NULL, TOP(NULL), why.reason, "%s", why.text);
        }
    }
    gl_map_done(&p.r.texts);
    gl_map_done(&p.r.paths);
    gl_buf_done(&p.r.refs);
    if (reterr->total) {
        sort_errors(reterr);
        return GL_E_INVALID;
    }
    *ret = p.f;
    return 0;
}
