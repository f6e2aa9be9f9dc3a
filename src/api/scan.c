/* scan.c - the scan of a job's steps.
 *
 * Two heaps hold the most important steps and units; whatever falls out of them shares one constant
 * record per status. */
#include "api/scan.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "model/bundle/agent.h"

/* A kept step: its record as text, without an output that is too large. */
struct kept {
    struct gl_heap_item place;
    uint8_t rank;
    uint32_t number;
    int64_t item;
    size_t text_n;
    char text[];
};

enum { WANTED = 0 }; /* the rank of a step requested by name */

/* The order in which steps are kept when there is no room for all. */
static uint8_t rank_of(const struct gl_step_record *r)
{
    switch ((enum gl_step_status)r->status) {
    case GL_STEP_FAILED:
    case GL_STEP_PARTIAL:
        return 1;
    case GL_STEP_RUNNING:
        return 2;
    case GL_STEP_BLOCKED:
    case GL_STEP_RETRY_WAIT:
        return 3;
    case GL_STEP_WAITING:
        return 4;
    case GL_STEP_READY:
    case GL_STEP_QUEUED:
        return 5;
    case GL_STEP_PENDING:
    case GL_STEP_COMPLETED:
    case GL_STEP_SKIPPED:
        return 6;
    case GL_STEP_STATUS_COUNT:
        break;
    }
    GL_UNREACHABLE();
}

static int compare(const struct kept *a, const struct kept *b)
{
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return a->item == b->item ? 0 : a->item < b->item ? -1 : 1;
}

static bool is_less_important(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    return compare(GL_CONTAINER(a, struct kept, place), GL_CONTAINER(b, struct kept, place)) > 0;
}

/* Steps that are not kept share these: only their status is known. `blocked_on` is set because a
 * step blocked on nothing means a damaged record. */
static const struct gl_step_record known_only[GL_STEP_STATUS_COUNT] = {
    [GL_STEP_READY] = {.status = GL_STEP_READY},
    [GL_STEP_QUEUED] = {.status = GL_STEP_QUEUED},
    [GL_STEP_RUNNING] = {.status = GL_STEP_RUNNING},
    [GL_STEP_RETRY_WAIT] = {.status = GL_STEP_RETRY_WAIT},
    [GL_STEP_BLOCKED] = {.status = GL_STEP_BLOCKED, .blocked_on = GL_BLOCK_LIMIT},
    [GL_STEP_WAITING] = {.status = GL_STEP_WAITING},
    [GL_STEP_COMPLETED] = {.status = GL_STEP_COMPLETED},
    [GL_STEP_PARTIAL] = {.status = GL_STEP_PARTIAL},
    [GL_STEP_SKIPPED] = {.status = GL_STEP_SKIPPED},
    [GL_STEP_FAILED] = {.status = GL_STEP_FAILED},
};

/* Counts the steps of the flow and the instances of some of them, without agents and removed steps.
 */
static uint64_t count_all(const struct gl_job_record *job, const struct gl_flow *flow)
{
    uint64_t n = job->items_n;

    for (uint32_t i = gl_flow_agents_n(flow); i < flow->steps.n; i++) {
        n += !gl_flow_step(flow, i)->is_removed;
    }
    return n;
}

void gl_scan_begin(struct gl_scan *s, struct gl_arena *a, const struct gl_job_record *job,
                   const struct gl_flow *flow, uint32_t limit, size_t inline_max)
{
    *s = (struct gl_scan){.items_max = inline_max,
                          .arena = a,
                          .limit = limit,
                          .inline_max = inline_max,
                          .outputs_max = SIZE_MAX,
                          .wanted_number = -1};
    s->view = (struct gl_view){.job = *job, .flow = flow, .steps_total = count_all(job, flow)};
    s->view.steps = GL_NEW_ARRAY(s->arena, const struct gl_step_record *, flow->steps.n + 1);
    s->view.items = GL_NEW_ARRAY(s->arena, struct gl_view_items, flow->steps.n + 1);
    s->items_bytes = GL_NEW_ARRAY(s->arena, uint64_t, flow->steps.n + 1);
    s->items_n = GL_NEW_ARRAY(s->arena, uint32_t, flow->steps.n + 1);
    gl_heap_init(&s->steps, is_less_important);
    gl_heap_init(&s->units, is_less_important);
}

static void heap_done(struct gl_heap *h)
{
    for (size_t i = 0; i < h->n; i++) {
        gl_mem_free(GL_CONTAINER(h->items[i], struct kept, place));
    }
    gl_heap_done(h);
}

void gl_scan_done(struct gl_scan *s)
{
    if (s->steps.before != NULL) { /* it was begun */
        heap_done(&s->steps);
        heap_done(&s->units);
    }
    *s = (struct gl_scan){0};
}

bool gl_scan_want(struct gl_scan *s, gl_str step)
{
    gl_str name;
    int64_t item = -1;
    int64_t number = gl_str_split_step(step, &name, &item) ? gl_flow_find(s->view.flow, name) : -1;

    if (number < 0 && s->view.flow->bundle != NULL) {
        number = gl_flow_find_agent(s->view.flow, step);
        item = -1;
    }
    s->wanted_number = number;
    s->wanted_item = item;
    return number >= 0;
}

/* ---- one record ---- */

static void put_item(struct gl_arena *a, struct gl_view_items *items, uint32_t item,
                     const struct gl_step_record *r)
{
    if (item >= items->n) { /* records come in bytewise order of ids, so large indexes come early */
        uint32_t n = item + item / 2 + 16;
        const struct gl_step_record **more;

        n = n < GL_ITEMS_MAX ? n : GL_ITEMS_MAX;
        more = GL_NEW_ARRAY(a, const struct gl_step_record *, n);
        if (items->n > 0) {
            memcpy(more, items->records, items->n * sizeof(*more));
        }
        items->records = more;
        items->n = n;
    }
    items->records[item] = r;
}

static void put(struct gl_arena *a, struct gl_view *v, uint32_t number, int64_t item,
                const struct gl_step_record *r)
{
    if (item < 0) {
        v->steps[number] = r;
    } else {
        put_item(a, &v->items[number], (uint32_t)item, r);
    }
}

static struct kept *kept_new(const struct kept *which, const struct gl_step_record *r)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;
    struct kept *k;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_schema_write(&gl_step_schema, r, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    k = gl_mem_alloc(sizeof(*k) + text.n);
    *k = *which;
    k->text_n = text.n;
    memcpy(k->text, text.p, text.n);
    return k;
}

static void keep(struct gl_scan *s, const struct kept *which, const struct gl_step_record *r)
{
    struct gl_heap *h = gl_flow_is_unit(s->view.flow, which->number) ? &s->units : &s->steps;
    struct kept *k, *last;

    if (h->n >= s->limit) {
        last = h->n > 0 ? GL_CONTAINER(gl_heap_top(h), struct kept, place) : NULL;
        if (last == NULL || compare(which, last) >= 0) {
            return;
        }
        gl_heap_remove(h, &last->place);
        gl_mem_free(last);
    }
    k = kept_new(which, r);
    gl_heap_push(h, &k->place);
}

/* Only the name of an unreadable record is known. Its step is blocked on nothing, so that no
 * decision is requested; damage.h says how to recover. */
static struct gl_step_record damaged(const struct gl_record *step, gl_str job)
{
    struct gl_step_record r = {.status = GL_STEP_BLOCKED,
                               .last_error = GL_S("the record of this step is damaged")};

    if (step->id.n > job.n) {
        r.step_id = (gl_str){.p = step->id.p + job.n + 1, .n = step->id.n - job.n - 1};
    }
    return r;
}

static void note_damage(struct gl_scan *s, const struct gl_step_record *r)
{
    struct gl_step_record *damaged_step;

    if (s->view.damaged_step != NULL) {
        return;
    }
    damaged_step = GL_NEW(s->arena, struct gl_step_record);
    *damaged_step = *r; /* its other strings are constants */
    damaged_step->step_id = gl_str_dup(s->arena, r->step_id);
    s->view.damaged_step = damaged_step;
}

/* A unit's output is its agent's state, which is not part of a status. */
static void cut_output(struct gl_scan *s, struct gl_step_record *r, const struct kept *which)
{
    if (gl_flow_is_unit(s->view.flow, which->number)) {
        r->output = (gl_str){0};
        return;
    }
    if (which->item >= 0) {
        s->items_bytes[which->number] += (r->output.n > 0 ? r->output.n : 4) + 1; /* "null" */
    }
    if (which->rank == WANTED) {
        return;
    }
    s->outputs_bytes += r->output.n <= s->inline_max ? r->output.n : 0;
    if (r->output.n > s->inline_max || (r->output.n > 0 && s->outputs_bytes > s->outputs_max)) {
        r->output_bytes = r->output.n;
        r->output = (gl_str){0};
    }
}

static void add(struct gl_scan *s, const struct gl_record *record)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    struct gl_view *v = &s->view;
    struct kept which = {.item = -1};
    struct gl_step_record r;
    gl_str name;
    int64_t number;
    bool is_damaged = record->damaged ||
                      gl_view_record(&scratch, &gl_step_schema, record->value, &r, NULL) != 0 ||
                      r.items_n > GL_JOB_ITEMS_MAX; /* its output is a list of that length */

    if (is_damaged) {
        r = damaged(record, v->job.job_id);
        note_damage(s, &r);
    }
    number = gl_str_split_step(r.step_id, &name, &which.item) ? gl_flow_find(v->flow, name) : -1;
    if (number < 0) {
        return; /* added by a patch that this flow does not include yet */
    }
    which.number = (uint32_t)number;
    which.rank = number == s->wanted_number && which.item == s->wanted_item ? WANTED : rank_of(&r);
    v->asks_person |= gl_step_asks_a_person(&r);
    if (!gl_flow_is_unit(v->flow, which.number)) {
        v->counts[r.status]++;
    }
    if (which.item < 0) {
        s->items_n[number] = r.items_n;
    }
    cut_output(s, &r, &which);
    put(s->arena, v, which.number, which.item, &known_only[r.status]);
    keep(s, &which, &r);
}

void gl_scan_add(struct gl_scan *s, const struct gl_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(s, &records[i]);
    }
}

/* ---- the view ---- */

static const struct gl_step_record *read_kept(const struct kept *k, struct gl_arena *a)
{
    struct gl_step_record *r = GL_NEW(a, struct gl_step_record);
    gl_str text = gl_str_dup(a, (gl_str){.p = k->text, .n = k->text_n});
    int rc = gl_view_record(a, &gl_step_schema, text, r, NULL);

    GL_ASSERT(rc == 0); /* kept_new() wrote this text */
    return r;
}

/* The least important step comes out first, so the list is filled from its end. */
static void take(struct gl_scan *s, struct gl_heap *h)
{
    size_t n = h->n;

    for (size_t i = n; i > 0; i--) {
        struct kept *k = GL_CONTAINER(gl_heap_top(h), struct kept, place);

        gl_heap_remove(h, &k->place);
        put(s->arena, &s->view, k->number, k->item, read_kept(k, s->arena));
        if (h == &s->steps) {
            s->view.picks[i - 1] = (struct gl_view_pick){.number = k->number, .item = k->item};
        }
        gl_mem_free(k);
    }
    s->view.picks_n += h == &s->steps ? n : 0;
}

void gl_scan_end(struct gl_scan *s, struct gl_view *ret)
{
    struct gl_view *v = &s->view;
    uint64_t reached = 0;

    for (size_t i = 0; i < GL_STEP_STATUS_COUNT; i++) {
        reached += v->counts[i];
    }
    v->counts[GL_STEP_PENDING] +=
        v->steps_total > reached ? (uint32_t)(v->steps_total - reached) : 0;
    v->is_partial = v->steps_total > s->limit;
    v->items_max = s->items_max;
    v->items_bytes = s->items_bytes;
    v->picks = GL_NEW_ARRAY(s->arena, struct gl_view_pick, s->steps.n + 1);
    take(s, &s->steps);
    take(s, &s->units);
    *ret = *v;
}
