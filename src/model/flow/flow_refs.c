#include "model/flow/flow_refs.h"

#include "base/check.h"
#include "model/flow/flow_graph.h"
#include "model/text/cond.h"

struct flow_refs_walk {
    struct gl_arena *a;
    void (*each)(void *owner, const struct gl_ref *ref);
    void *owner;
    struct gl_why *why;
};

static int walk_text(struct flow_refs_walk *w, gl_str text)
{
    size_t pos = 0;
    while (pos < text.n) {
        struct gl_ref_piece piece;
        int rc = gl_ref_next(text, &pos, w->a, &piece, w->why);
        if (rc) {
            return rc;
        }
        if (piece.is_ref) {
            w->each(w->owner, &piece.ref);
        }
    }
    return 0;
}

static int walk_list(struct flow_refs_walk *w, const struct gl_strs *list, bool is_marked)
{
    for (size_t i = 0; is_marked && i < list->n; i++) {
        int rc = walk_text(w, list->items[i]);
        if (rc) {
            return rc;
        }
    }
    return 0;
}

static int walk_refs(struct flow_refs_walk *w, const struct gl_strs *refs)
{
    for (size_t i = 0; i < refs->n; i++) {
        struct gl_ref ref;
        int rc = gl_ref_parse(refs->items[i], w->a, &ref, w->why);
        if (rc) {
            return rc;
        }
        w->each(w->owner, &ref);
    }
    return 0;
}

static int walk_when(struct flow_refs_walk *w, gl_str when)
{
    const struct gl_cond *cond;
    size_t at;
    int rc = when.n ? gl_cond_parse(when, w->a, &cond, &at, w->why) : 0;
    if (!rc && when.n) {
        gl_cond_refs(cond, w->each, w->owner);
    }
    return rc;
}

int gl_flow_refs_each(const struct gl_step_spec *s, struct gl_arena *a,
                      void (*each)(void *owner, const struct gl_ref *ref), void *owner,
                      struct gl_why *reterr_why)
{
    struct flow_refs_walk w = {.a = a, .each = each, .owner = owner, .why = reterr_why};
    bool is_list = s->foreach.n && s->foreach.p[0] == '[';
    gl_str texts[] = {
        s->expand & GL_EXPAND_CWD ? s->cwd : (gl_str){0},
        is_list ? (gl_str){0} : s->foreach,
        s->limit_key,
        s->sleep,
        s->until,
        s->approval,
    };
    int rc = walk_list(&w, &s->argv, s->expand & GL_EXPAND_ARGV);
    rc = rc ? rc : walk_list(&w, &s->env, s->expand & GL_EXPAND_ENV);
    rc = rc ? rc : walk_refs(&w, &s->refs);
    rc = rc ? rc : walk_when(&w, s->when);
    for (size_t i = 0; !rc && i < GL_COUNT(texts); i++) {
        rc = walk_text(&w, texts[i]);
    }
    return rc;
}

/* Deriving. */

struct linking {
    struct gl_flow *f;
    uint32_t reader;
    uint32_t *mark;      /* per step: the last reader + 1 */
    struct gl_buf reads; /* uint32_t, of the step at hand */
    struct gl_ref bad;   /* the first one without a target */
    bool has_bad;
};

static bool is_input(const struct gl_flow *f, gl_str name)
{
    const struct gl_flow_input *inputs = f->inputs.items;
    for (size_t i = 0; i < f->inputs.n; i++) {
        if (gl_str_eq(inputs[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void note_ref(void *owner, const struct gl_ref *ref)
{
    struct linking *l = owner;
    bool is_step = ref->root == GL_REF_STEPS;
    int64_t number = is_step ? gl_flow_find(l->f, ref->step) : 0;
    bool bad = is_step ? number < 0 || number == l->reader
                       : ref->root == GL_REF_INPUTS && !is_input(l->f, ref->path.items[0]);
    if (bad) {
        l->bad = l->has_bad ? l->bad : *ref;
        l->has_bad = true;
    } else if (is_step && l->mark[number] != l->reader + 1) {
        uint32_t read = (uint32_t)number;
        l->mark[read] = l->reader + 1;
        gl_buf_add(&l->reads, &read, sizeof(read));
    }
}

static bool has_dollar_brace(gl_str s)
{
    return s.n && memmem(s.p, s.n, "${", 2);
}

static void derive(struct gl_step_spec *s)
{
    static const char *const waiting[] = {"sleep", "until", "signal", "approval", NULL};
    s->waits = gl_schema_word(waiting, s->driver) >= 0;
    /* Also for `$${`, which is replaced together with the references. */
    s->has_gate = s->when.n || s->foreach.n || has_dollar_brace(s->limit_key) ||
                  has_dollar_brace(s->sleep) || has_dollar_brace(s->until) ||
                  has_dollar_brace(s->approval);
}

static int link_step(struct linking *l, struct gl_arena *a, struct gl_arena *scratch,
                     struct gl_why *why)
{
    struct gl_step_spec *s = gl_flow_graph_step(l->f, l->reader);
    derive(s);
    gl_buf_reset(&l->reads);
    int rc = gl_flow_refs_each(s, scratch, note_ref, l, why);
    if (rc) {
        return gl_why_prefix(why, "step %.*s", GL_STR_ARG(s->id));
    }
    if (l->has_bad) {
        gl_str text = l->bad.text;
        text.n = text.n < 100 ? text.n : 100;
        return gl_why(why, GL_E_INVALID, "step %.*s: `${%.*s}` refers to nothing in the flow",
                      GL_STR_ARG(s->id), GL_STR_ARG(text));
    }
    s->reads_n = (uint32_t)(l->reads.n / sizeof(uint32_t));
    s->reads = s->reads_n ? gl_arena_copy(a, l->reads.p, l->reads.n) : NULL;
    return 0;
}

int gl_flow_refs_link(struct gl_flow *f, struct gl_arena *a, struct gl_why *reterr_why)
{
    struct gl_arena marks = {0}, scratch = {0};
    struct gl_why why = {0};
    struct linking l = {.f = f, .mark = GL_NEW_ARRAY(&marks, uint32_t, f->steps.n)};
    int rc = 0;
    for (; !rc && l.reader < f->steps.n; l.reader++) {
        rc = link_step(&l, a, &scratch, &why);
        gl_arena_reset(&scratch);
    }
    if (rc) {
        (void)gl_why(reterr_why, gl_why_whole(&why), "%s", why.text);
    }
    gl_buf_done(&l.reads);
    gl_arena_done(&scratch);
    gl_arena_done(&marks);
    return rc;
}

/* Finding ancestors. */

enum { PER_PASS = 64 }; /* bits of a mask */

struct strays {
    const struct gl_flow *f;
    uint32_t *order;   /* parents before children */
    uint64_t *above;   /* per step: which steps of this pass are its ancestors */
    uint32_t *bit;     /* per step: its bit in this pass + 1 */
    uint32_t *head;    /* per step: the first of the reads of it + 1 */
    uint32_t *next;    /* per read: the next of the same step + 1 */
    uint32_t *targets; /* the distinct steps that are read */
    uint32_t targets_n;
};

static uint32_t *parents_first(const struct gl_flow *f, struct gl_arena *a)
{
    uint32_t *order = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    uint32_t *open = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    size_t tail = 0;
    for (uint32_t i = 0; i < f->steps.n; i++) {
        open[i] = gl_flow_step(f, i)->needs_n;
        if (open[i] == 0) {
            order[tail++] = i;
        }
    }
    for (size_t head = 0; head < tail; head++) {
        const struct gl_step_spec *s = gl_flow_step(f, order[head]);
        for (uint32_t k = 0; k < s->children_n; k++) {
            if (--open[s->children[k]] == 0) {
                order[tail++] = s->children[k];
            }
        }
    }
    GL_ASSERT(tail == f->steps.n); /* no cycles */
    return order;
}

static bool is_parent(const struct gl_flow *f, const struct gl_flow_read *r)
{
    const struct gl_step_spec *s = gl_flow_step(f, r->reader);
    for (uint32_t k = 0; k < s->needs_n; k++) {
        if (s->needs[k] == r->read) {
            return true;
        }
    }
    return false;
}

/* All reads of the targets first..first+PER_PASS. */
static void run_pass(struct strays *t, struct gl_flow_read *reads, uint32_t first)
{
    uint32_t n = t->targets_n - first < PER_PASS ? t->targets_n - first : PER_PASS;
    for (uint32_t i = 0; i < n; i++) {
        t->bit[t->targets[first + i]] = i + 1;
    }
    for (size_t i = 0; i < t->f->steps.n; i++) {
        const struct gl_step_spec *s = gl_flow_step(t->f, t->order[i]);
        uint64_t mask = 0;
        for (uint32_t k = 0; k < s->needs_n; k++) {
            uint32_t bit = t->bit[s->needs[k]];
            mask |= t->above[s->needs[k]] | (bit ? (uint64_t)1 << (bit - 1) : 0);
        }
        t->above[t->order[i]] = mask;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t target = t->targets[first + i];
        for (uint32_t r = t->head[target]; r; r = t->next[r - 1]) {
            reads[r - 1].is_unordered = !(t->above[reads[r - 1].reader] & (uint64_t)1 << i);
        }
        t->bit[target] = 0;
    }
}

void gl_flow_refs_find_unordered(const struct gl_flow *f, struct gl_arena *a,
                                 struct gl_flow_read *reads, size_t reads_n)
{
    struct strays t = {.f = f};
    GL_ASSERT(reads_n < UINT32_MAX);
    t.head = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    t.next = GL_NEW_ARRAY(a, uint32_t, reads_n);
    t.targets = GL_NEW_ARRAY(a, uint32_t, reads_n);
    for (uint32_t i = 0; i < reads_n; i++) {
        uint32_t read = reads[i].read;
        if (is_parent(f, &reads[i])) {
            continue; /* the usual case, which needs no pass */
        }
        if (!t.head[read]) {
            t.targets[t.targets_n++] = read;
        }
        t.next[i] = t.head[read];
        t.head[read] = i + 1;
    }
    if (t.targets_n == 0) {
        return;
    }
    t.order = parents_first(f, a);
    t.above = GL_NEW_ARRAY(a, uint64_t, f->steps.n);
    t.bit = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    for (uint32_t first = 0; first < t.targets_n; first += PER_PASS) {
        run_pass(&t, reads, first);
    }
}
