#include "cli/mask_facts.h"

#include "base/limits.h"
#include "base/times.h"
#include "model/text/cond_tree.h"
#include "model/text/ref.h"

#define MASK "***"

/* If the size of the facts times the number of references is larger, references are not tried one
 * by one. */
enum { TRIED_BYTES_MAX = 32 << 20 };

/* How much of a value is kept. Each level includes those before it. */
enum level {
    HIDDEN,  /* its type */
    LENGTH,  /* and the number of elements */
    SHALLOW, /* and a number, a truth value, a token for a text; whether an object is empty */
    DEEP,    /* and the same of all its members */
    WHOLE,
};

/* A reference, and how much of its value has to be kept. */
struct wanted {
    struct gl_ref ref;
    enum level least, level;
};

struct masking {
    struct gl_mask_facts *f;
    const struct gl_step_spec *step;
    const struct gl_json *facts;
    struct gl_arena *a;
    struct wanted *wanted;
    size_t wanted_n, cap;
    bool is_item;
};

struct pseudonym {
    gl_str text;
    size_t number;
};

/* The references that may name a part of the current value: `depth` parts of their paths are
 * already matched. */
struct leads {
    const struct wanted **items;
    size_t n, depth;
};

void gl_mask_facts_init(struct gl_mask_facts *f, struct gl_arena *a)
{
    gl_map_init(&f->texts);
    f->arena = a;
}

void gl_mask_facts_done(struct gl_mask_facts *f)
{
    gl_map_done(&f->texts);
}

/* ---- what the gate depends on ---- */

static void want(struct masking *m, const struct gl_ref *ref, enum level least)
{
    if (m->wanted_n == m->cap) {
        size_t cap = m->cap * 2 + 8;
        struct wanted *more = GL_NEW_ARRAY(m->a, struct wanted, cap);

        if (m->wanted_n > 0) {
            memcpy(more, m->wanted, m->wanted_n * sizeof(*more));
        }
        m->wanted = more;
        m->cap = cap;
    }
    m->wanted[m->wanted_n++] = (struct wanted){.ref = *ref, .least = least};
}

static void want_text(struct masking *m, gl_str text, enum level least)
{
    struct gl_ref_piece piece;

    for (size_t pos = 0; pos < text.n && gl_ref_next(text, &pos, m->a, &piece, NULL) == 0;) {
        if (piece.is_ref) {
            want(m, &piece.ref, least);
        }
    }
}

static void want_value(struct masking *m, const struct gl_cond_value *v, enum level least)
{
    if (v != NULL && v->is_ref) {
        want(m, &v->ref, least);
    }
    for (size_t i = 0; v != NULL && i < v->items_n; i++) {
        want_value(m, &v->items[i], least);
    }
}

static void want_condition(struct masking *m, const struct gl_cond *c)
{
    enum level least = c->op == GL_COND_EXISTS ? HIDDEN : SHALLOW;

    for (const struct gl_cond *part = c->first; part != NULL; part = part->next) {
        want_condition(m, part);
    }
    want_value(m, c->left, least);
    want_value(m, c->right, least);
}

static const struct gl_cond *condition_of(const struct masking *m)
{
    const struct gl_cond *c;
    size_t at;

    if (m->is_item || m->step->when.n == 0 ||
        gl_cond_parse(m->step->when, m->a, &c, &at, NULL) != 0) {
        return NULL;
    }
    return c;
}

static void want_all(struct masking *m)
{
    const struct gl_step_spec *s = m->step;
    const struct gl_cond *c = condition_of(m);

    if (c != NULL) {
        want_condition(m, c);
    }
    if (!m->is_item && gl_ref_has(s->foreach)) {
        want_text(m, s->foreach, LENGTH);
    }
    want_text(m, s->limit_key, SHALLOW);
    want_text(m, s->sleep, SHALLOW);
    want_text(m, s->until, SHALLOW);
    want_text(m, s->approval, HIDDEN);
}

/* ---- evaluating, as core/flow/gate.c does ---- */

static void decide_items(const struct masking *m, const struct gl_json *facts, struct gl_buf *out)
{
    struct gl_json list;
    gl_str text;

    if (gl_ref_json(m->step->foreach, facts, m->a, &text, NULL) != 0 ||
        gl_json_parse(&list, text, GL_RECORD_BYTES_MAX, m->a, NULL) != 0 ||
        !gl_json_is(gl_json_root(&list), GL_JSON_ARRAY)) {
        gl_buf_c(out, "no list\n");
    } else {
        gl_buf_fmt(out, "%u items\n", gl_json_root(&list)->count);
    }
}

/* What the gate takes from a text with references, besides whether it can be resolved. */
enum matter { NOTHING, TEXT, SPAN, TIME };

static void decide_text(const struct masking *m, gl_str text, enum matter matter,
                        const struct gl_json *facts, struct gl_buf *out)
{
    gl_ms t = 0;

    if (!gl_ref_has(text)) {
        return;
    }
    if (gl_ref_expand(text, facts, m->a, &text, NULL) != 0 ||
        (matter == SPAN && !gl_times_parse_span(gl_str_trim(text), &t)) ||
        (matter == TIME && !gl_times_parse(gl_str_trim(text), &t))) {
        gl_buf_c(out, "fails\n");
        return;
    }
    gl_buf_fmt(out, "text, %lld ", (long long)t);
    gl_buf_str(out, matter == TEXT ? text : (gl_str){0});
    gl_buf_char(out, '\n');
}

/* Everything that the gate takes from the facts. */
static gl_str decide(const struct masking *m, const struct gl_json *facts)
{
    const struct gl_step_spec *s = m->step;
    const struct gl_cond *c = condition_of(m);
    struct gl_buf out = {0};
    bool yes = true;
    gl_str all;
    int rc = c != NULL ? gl_cond_eval(c, facts, m->a, &yes, NULL) : 0;

    gl_buf_c(&out, rc != 0 ? "cannot be judged\n" : yes ? "yes\n" : "no\n");
    if (rc == 0 && yes) {
        if (!m->is_item && gl_ref_has(s->foreach)) {
            decide_items(m, facts, &out);
        }
        if (s->foreach.n == 0 || m->is_item) {
            decide_text(m, s->limit_key, TEXT, facts, &out);
        }
        decide_text(m, s->sleep, SPAN, facts, &out);
        decide_text(m, s->until, TIME, facts, &out);
        decide_text(m, s->approval, NOTHING, facts, &out);
    }
    all = gl_str_dup(m->a, gl_buf_view(&out));
    gl_buf_done(&out);
    return all;
}

/* ---- values ---- */

void gl_mask_hide(gl_jnode value, struct gl_jw *w)
{
    static const char *const left[] = {
        [GL_JSON_NULL] = "null", [GL_JSON_FALSE] = "false",         [GL_JSON_TRUE] = "false",
        [GL_JSON_NUMBER] = "0",  [GL_JSON_STRING] = "\"" MASK "\"", [GL_JSON_ARRAY] = "[]",
        [GL_JSON_OBJECT] = "{}"};

    gl_jw_raw(w, gl_str_of(left[value->type]));
}

void gl_mask_hide_list(const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    if (!gl_json_is(value, GL_JSON_ARRAY)) {
        gl_mask_hide(value, w);
        return;
    }
    gl_jw_array(w);
    for (gl_jnode e = gl_json_first(j, value); e != NULL; e = gl_json_after(j, value, e)) {
        gl_mask_hide(e, w);
    }
    gl_jw_end(w);
}

static void write_pseudonym(struct masking *m, gl_str text, struct gl_jw *w)
{
    struct pseudonym *p = gl_map_find(&m->f->texts, text);

    if (p == NULL) {
        p = GL_NEW(m->f->arena, struct pseudonym);
        p->text = gl_str_dup(m->f->arena, text);
        p->number = gl_map_count(&m->f->texts) + 1;
        gl_map_add(&m->f->texts, p->text, p);
    }
    gl_jw_str(w, gl_str_fmt(m->a, MASK "%zu", p->number));
}

/* A text that is in the condition is not a secret, and may have to be equal to it. */
static bool stands_in_condition(const struct masking *m, gl_str text)
{
    gl_str when = m->step->when;

    return text.n > 0 && text.n <= when.n && memmem(when.p, when.n, text.p, text.n) != NULL;
}

static void write_text(struct masking *m, gl_str text, enum level level, struct gl_jw *w)
{
    if (level == WHOLE || text.n == 0 || stands_in_condition(m, text)) {
        gl_jw_str(w, text);
    } else {
        write_pseudonym(m, text, w);
    }
}

static bool leads_to(gl_str part, gl_str name, int64_t index)
{
    uint64_t number;

    return index < 0 ? gl_str_eq(part, name)
                     : gl_str_u64(part, &number) && number == (uint64_t)index;
}

/* The references into the member of that name, or the element of that index (-1: a member). */
static struct leads into(struct masking *m, struct leads l, gl_str name, int64_t index)
{
    struct leads ret = {.depth = l.depth + 1};

    for (size_t i = 0; i < l.n; i++) {
        const struct gl_strs *path = &l.items[i]->ref.path;

        if (path->n > l.depth && leads_to(path->items[l.depth], name, index)) {
            if (ret.items == NULL) {
                ret.items = GL_NEW_ARRAY(m->a, const struct wanted *, l.n);
            }
            ret.items[ret.n++] = l.items[i];
        }
    }
    return ret;
}

static void write_value(struct masking *m, const struct gl_json *j, gl_jnode value, struct leads l,
                        enum level level, struct gl_jw *w);

static void write_list(struct masking *m, const struct gl_json *j, gl_jnode list, struct leads l,
                       enum level level, struct gl_jw *w)
{
    int64_t index = 0;

    gl_jw_array(w);
    for (gl_jnode e = gl_json_first(j, list); e != NULL; e = gl_json_after(j, list, e)) {
        write_value(m, j, e, into(m, l, (gl_str){0}, index++), level >= DEEP ? level : HIDDEN, w);
    }
    gl_jw_end(w);
}

static void write_object(struct masking *m, const struct gl_json *j, gl_jnode object,
                         struct leads l, enum level level, struct gl_jw *w)
{
    bool is_empty = true;

    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(j, object); k != NULL; k = gl_json_after(j, object, k)) {
        gl_str name = gl_json_str(j, k, m->a);
        struct leads inner = into(m, l, name, -1);

        if (level >= DEEP || inner.n > 0) {
            gl_jw_key_str(w, name);
            write_value(m, j, gl_json_value(k), inner, level >= DEEP ? level : HIDDEN, w);
            is_empty = false;
        }
    }
    if (is_empty && level == SHALLOW && object->count > 0) {
        gl_jw_key(w, MASK);
        gl_jw_c(w, MASK);
    }
    gl_jw_end(w);
}

/* `level`: how much the enclosing value requires to be kept. */
static void write_value(struct masking *m, const struct gl_json *j, gl_jnode value, struct leads l,
                        enum level level, struct gl_jw *w)
{
    bool leads_on = false;

    for (size_t i = 0; i < l.n; i++) {
        bool ends = l.items[i]->ref.path.n == l.depth;

        leads_on |= !ends;
        level = ends && l.items[i]->level > level ? l.items[i]->level : level;
    }
    if (gl_json_is(value, GL_JSON_ARRAY) && (level >= LENGTH || leads_on)) {
        write_list(m, j, value, l, level, w);
    } else if (gl_json_is(value, GL_JSON_OBJECT) && (level >= SHALLOW || leads_on)) {
        write_object(m, j, value, l, level, w);
    } else if (level < SHALLOW) {
        gl_mask_hide(value, w);
    } else if (gl_json_is(value, GL_JSON_STRING)) {
        write_text(m, gl_json_str(j, value, m->a), level, w);
    } else {
        gl_jw_raw(w, gl_json_raw(j, value));
    }
}

/* ---- the document of model/text/ref.h ---- */

/* The references of a root; for `steps`, those of that step. */
static struct leads of_root(struct masking *m, enum gl_ref_root root, gl_str step)
{
    struct leads l = {.items = GL_NEW_ARRAY(m->a, const struct wanted *, m->wanted_n + 1)};

    for (size_t i = 0; i < m->wanted_n; i++) {
        const struct gl_ref *ref = &m->wanted[i].ref;

        if (ref->root == root && (root != GL_REF_STEPS || gl_str_eq(ref->step, step))) {
            l.items[l.n++] = &m->wanted[i];
        }
    }
    return l;
}

/* Keep the names of inputs. */
static void write_inputs(struct masking *m, gl_jnode inputs, struct gl_jw *w)
{
    struct leads l = of_root(m, GL_REF_INPUTS, (gl_str){0});

    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(m->facts, inputs); k != NULL;
         k = gl_json_after(m->facts, inputs, k)) {
        gl_str name = gl_json_str(m->facts, k, m->a);

        gl_jw_key_str(w, name);
        write_value(m, m->facts, gl_json_value(k), into(m, l, name, -1), HIDDEN, w);
    }
    gl_jw_end(w);
}

/* All members but one are written by the node: status, exit code, ids, times. */
static void write_but(struct masking *m, gl_jnode object, const char *data, struct leads l,
                      struct gl_jw *w)
{
    if (!gl_json_is(object, GL_JSON_OBJECT)) {
        gl_mask_hide(object, w);
        return;
    }
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(m->facts, object); k != NULL;
         k = gl_json_after(m->facts, object, k)) {
        gl_str name = gl_json_str(m->facts, k, m->a);

        gl_jw_key_str(w, name);
        if (gl_str_is(name, data)) {
            write_value(m, m->facts, gl_json_value(k), into(m, l, name, -1), HIDDEN, w);
        } else {
            gl_jw_raw(w, gl_json_raw(m->facts, gl_json_value(k)));
        }
    }
    gl_jw_end(w);
}

static void write_steps(struct masking *m, gl_jnode steps, struct gl_jw *w)
{
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(m->facts, steps); k != NULL;
         k = gl_json_after(m->facts, steps, k)) {
        gl_str id = gl_json_str(m->facts, k, m->a);

        gl_jw_key_str(w, id);
        write_but(m, gl_json_value(k), "output", of_root(m, GL_REF_STEPS, id), w);
    }
    gl_jw_end(w);
}

static void write_member(struct masking *m, gl_str key, gl_jnode value, struct gl_jw *w)
{
    bool is_object = gl_json_is(value, GL_JSON_OBJECT);

    if (is_object && gl_str_is(key, "steps")) {
        write_steps(m, value, w);
    } else if (is_object && gl_str_is(key, "inputs")) {
        write_inputs(m, value, w);
    } else if (is_object && gl_str_is(key, "job")) {
        write_but(m, value, "item", of_root(m, GL_REF_JOB, (gl_str){0}), w);
    } else if (is_object && gl_str_is(key, "earlier")) {
        write_but(m, value, "output", (struct leads){0}, w);
    } else {
        gl_mask_hide(value, w);
    }
}

static gl_str write_all(struct masking *m)
{
    gl_jnode root = gl_json_root(m->facts);
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    gl_jw_init(&w, &out);
    if (gl_json_is(root, GL_JSON_OBJECT)) {
        gl_jw_object(&w);
        for (gl_jnode k = gl_json_first(m->facts, root); k != NULL;
             k = gl_json_after(m->facts, root, k)) {
            gl_str key = gl_json_str(m->facts, k, m->a);

            gl_jw_key_str(&w, key);
            write_member(m, key, gl_json_value(k), &w);
        }
        gl_jw_end(&w);
    } else {
        gl_mask_hide(root, &w);
    }
    text = gl_str_dup(m->a, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* ---- keeping the minimum ---- */

static void set_levels(struct masking *m, enum level level)
{
    for (size_t i = 0; i < m->wanted_n; i++) {
        m->wanted[i].level = level > m->wanted[i].least ? level : m->wanted[i].least;
    }
}

static bool is_enough(struct masking *m, gl_str decided, gl_str *ret)
{
    struct gl_json j;

    *ret = write_all(m);
    return gl_json_parse(&j, *ret, SIZE_MAX, m->a, NULL) == 0 && gl_str_eq(decide(m, &j), decided);
}

/* Try with one of the references at that level. */
static bool try_one(struct masking *m, enum level level, gl_str decided, gl_str *ret)
{
    for (size_t i = 0; i < m->wanted_n; i++) {
        set_levels(m, HIDDEN);
        m->wanted[i].level = level;
        if (is_enough(m, decided, ret)) {
            return true;
        }
    }
    return false;
}

static bool try_all(struct masking *m, enum level level, gl_str decided, gl_str *ret)
{
    set_levels(m, level);
    return is_enough(m, decided, ret);
}

/* Reduce every reference that need not be kept whole. */
static gl_str reduce(struct masking *m, gl_str decided)
{
    gl_str text;

    set_levels(m, WHOLE);
    for (size_t i = 0; i < m->wanted_n; i++) {
        m->wanted[i].level = m->wanted[i].least;
        if (!is_enough(m, decided, &text)) {
            m->wanted[i].level = WHOLE;
        }
    }
    return write_all(m);
}

bool gl_mask_facts_write(struct gl_mask_facts *f, const struct gl_step_spec *step, bool is_item,
                         const struct gl_json *facts, struct gl_arena *line, struct gl_buf *out)
{
    struct masking m = {.f = f, .step = step, .facts = facts, .a = line, .is_item = is_item};
    bool is_whole = false, has_time;
    gl_str decided, text;

    if (step == NULL) {
        gl_buf_str(out, write_all(&m));
        return false;
    }
    want_all(&m);
    has_time = facts->text.n <= TRIED_BYTES_MAX / (m.wanted_n + 1);
    decided = decide(&m, facts);
    if (!try_all(&m, HIDDEN, decided, &text) && !(has_time && try_one(&m, DEEP, decided, &text)) &&
        !try_all(&m, DEEP, decided, &text)) {
        is_whole = true;
        if (!has_time) {
            (void)try_all(&m, WHOLE, decided, &text);
        } else if (!try_one(&m, WHOLE, decided, &text)) {
            text = reduce(&m, decided);
        }
    }
    gl_buf_str(out, text);
    return is_whole;
}
