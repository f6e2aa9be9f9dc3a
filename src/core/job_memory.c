/* job_memory.c - creates, finds and frees jobs, their steps and their compiled flows in memory.
 *
 * A job that is not hot consists of its identity, the slots its attempts hold and its parked
 * events. Counters (a job's steps by status, the core's jobs and running attempts) change together
 * with what they count; gl_core_free() asserts that they all return to zero. */
#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/offers.h"
#include "core/core_state.h"
#include "core/flow/signals.h"
#include "core/recovery/parked.h"
#include "core/recovery/sweep.h"
#include "core/scheduling/slots.h"

#include <stdio.h>

static bool step_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct gl_step *x = GL_CONTAINER(a, struct gl_step, timer);
    const struct gl_step *y = GL_CONTAINER(b, struct gl_step, timer);

    return x->due != y->due ? x->due < y->due : x->number < y->number;
}

/* ---- jobs ---- */

struct gl_job *gl_job_find(struct gl_core *c, gl_str id)
{
    return gl_map_find(&c->jobs, id);
}

struct gl_job *gl_job_new(struct gl_core *c, gl_str id)
{
    struct gl_job *j = gl_pool_alloc(&c->mem, sizeof(*j));

    GL_ASSERT(id.n == GL_ULID_BYTES);
    memcpy(j->id_text, id.p, GL_ULID_BYTES);
    j->id = (gl_str){.p = j->id_text, .n = GL_ULID_BYTES};
    j->memory = GL_MEM_LOADING;
    c->jobs_loading++;
    j->due = INT64_MAX;
    j->r.wake = GL_WAKE_NONE;
    gl_list_init(&j->live);
    gl_list_init(&j->dirty);
    gl_list_init(&j->spread);
    gl_list_init(&j->ready);
    gl_list_init(&j->making);
    gl_list_init(&j->signals);
    gl_list_init(&j->due_units);
    gl_map_init(&j->bodies);
    gl_map_init(&j->seen);
    gl_list_init(&j->holds);
    gl_list_init(&j->lru);
    gl_list_init(&j->touched);
    gl_list_init(&j->busy);
    gl_list_init(&j->parked);
    gl_heap_init(&j->timers, step_before);
    gl_map_add(&c->jobs, j->id, j);
    GL_ASSERT(c->jobs_loading <= gl_map_count(&c->jobs));
    GL_ASSERT(j->rev == 0);
    GL_ASSERT(!gl_heap_has(&j->timer));
    return j;
}

static void free_pages(struct gl_core *c, struct gl_job *j)
{
    if (j->pages == NULL) {
        return;
    }
    for (size_t i = 0; i < j->pages_n; i++) {
        gl_pool_free(&c->mem, j->pages[i], GL_STEP_PAGE * sizeof(struct gl_step *));
    }
    gl_pool_free(&c->mem, j->pages, j->pages_n * sizeof(*j->pages));
    j->pages = NULL;
    j->pages_n = 0;
    GL_ASSERT(gl_list_empty(&j->live)); /* pages are the only way to find a step by its number */
}

static void free_record(struct gl_core *c, struct gl_job_record *r)
{
    gl_core_disown(c, &gl_job_schema, r);
    *r = (struct gl_job_record){.wake = GL_WAKE_NONE};
}

void gl_job_clear(struct gl_core *c, struct gl_job *j)
{
    for (struct gl_link *l; (l = gl_list_first(&j->live)) != NULL;) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        st->hold = NULL; /* stays in j->holds: loading shows which attempts really run */
        gl_step_free(c, st);
    }
    GL_ASSERT(gl_list_empty(&j->dirty));
    GL_ASSERT(j->timers.n == 0);
    GL_ASSERT(j->items_live == 0 && j->reviews_n == 0);
    gl_signals_clear(c, j);
    gl_builtin_agent_forget(c, j);
    gl_patch_apply_forget(c, j);
    if (j->known != NULL) {
        gl_pool_free(&c->mem, j->known, gl_flow_agents_n(j->spec->flow) / 8 + 1);
        j->known = NULL;
    }
    free_pages(c, j);
    free_record(c, &j->r);
    if (j->spec != NULL) {
        GL_ASSERT(j->spec->jobs > 0);
        j->spec->jobs--;
        if (j->spec->shared != NULL) {
            j->spec->shared->jobs--;
        }
        gl_spec_unref(j->spec);
        j->spec = NULL;
    }
    gl_core_set(c, &j->owner, (gl_str){0});
    j->rev = j->token = 0;
    j->last_message_at = 0;
    j->wakes = (gl_str){0};
    j->changed = j->token_in_flight = j->is_damaged = j->is_deferred = j->lacks = false;
    gl_buf_done(&j->log);
    gl_heap_done(&j->timers);
    gl_heap_init(&j->timers, step_before);
    gl_list_remove(&j->touched);
    gl_list_remove(&j->busy);
    if (gl_heap_has(&j->timer)) {
        gl_heap_remove(&c->timers, &j->timer);
    }
    j->due = INT64_MAX;
    if (j->memory == GL_MEM_HOT) {
        GL_ASSERT(c->jobs_hot > 0);
        c->jobs_hot--;
        gl_list_remove(&j->lru);
        c->jobs_loading++;
    }
    j->memory = GL_MEM_LOADING;
    GL_ASSERT(gl_list_empty(&j->live));
    GL_ASSERT(j->signals_n == 0);
    GL_ASSERT(!gl_heap_has(&j->timer));
}

void gl_job_drop(struct gl_core *c, struct gl_job *j)
{
    gl_job_clear(c, j);
    gl_slots_release_all(c, j);
    gl_parked_take_all(c, j, NULL);
    GL_ASSERT(gl_list_empty(&j->holds));
    GL_ASSERT(gl_list_empty(&j->parked));
    GL_ASSERT(c->inflight_n >= j->inflight_n);
    GL_ASSERT(c->jobs_loading > 0);
    c->inflight_n -= j->inflight_n;
    c->jobs_loading--;
    (void)gl_map_remove(&c->jobs, j->id); /* it is there: gl_job_new() put it in */
    gl_map_done(&j->bodies);
    gl_map_done(&j->seen);
    gl_pool_free(&c->mem, j, sizeof(*j));
}

/* ---- steps ---- */

const struct gl_step_spec *gl_step_spec_of(const struct gl_step *st)
{
    GL_ASSERT(st->of < st->job->spec->flow->steps.n);
    return gl_flow_step(st->job->spec->flow, st->of);
}

struct gl_step *gl_step_find(struct gl_job *j, uint32_t number)
{
    size_t at = number / GL_STEP_PAGE;
    struct gl_step **page = at < j->pages_n ? j->pages[at] : NULL;

    GL_ASSERT(GL_IMPLIES(j->pages_n > 0, j->spec != NULL));
    return page != NULL ? page[number % GL_STEP_PAGE] : NULL;
}

/* Pages of the flow's steps are known from the start; those of instances are added as needed. */
static struct gl_step **page_of(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    size_t at = number / GL_STEP_PAGE;
    size_t wanted = (j->spec->flow->steps.n + GL_STEP_PAGE - 1) / GL_STEP_PAGE;
    struct gl_step ***pages;

    if (at >= j->pages_n) {
        wanted = at < wanted ? wanted : at + at / 2 + 1;
        pages = gl_pool_alloc(&c->mem, wanted * sizeof(*pages));
        if (j->pages != NULL) {
            memcpy(pages, j->pages, j->pages_n * sizeof(*pages));
            gl_pool_free(&c->mem, j->pages, j->pages_n * sizeof(*pages));
        }
        j->pages = pages;
        j->pages_n = wanted;
    }
    if (j->pages[at] == NULL) {
        j->pages[at] = gl_pool_alloc(&c->mem, GL_STEP_PAGE * sizeof(struct gl_step *));
    }
    GL_ASSERT(at < j->pages_n);
    return j->pages[at];
}

static struct gl_step *step_new(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    struct gl_step *st = gl_pool_alloc(&c->mem, sizeof(*st));

    GL_ASSERT(gl_step_find(j, number) == NULL);
    st->job = j;
    st->number = st->of = number;
    st->item = -1;
    st->due = INT64_MAX;
    gl_list_init(&st->dirty);
    gl_list_init(&st->work);
    gl_list_push(&j->live, &st->live);
    page_of(c, j, number)[number % GL_STEP_PAGE] = st;
    GL_ASSERT(gl_step_find(j, number) == st);
    GL_ASSERT(!gl_heap_has(&st->timer));
    return st;
}

/* Count a new step, which starts out as pending. */
static void count_pending(struct gl_step *st)
{
    GL_ASSERT(st->r.status == GL_STEP_PENDING);
    st->job->count[GL_STEP_PENDING]++;
    st->job->bound[GL_STEP_PENDING] += gl_step_is_bound(st);
    st->job->units[GL_STEP_PENDING] += gl_step_is_unit(st);
}

struct gl_step *gl_step_get(struct gl_core *c, struct gl_job *j, uint32_t number)
{
    struct gl_step *st = gl_step_find(j, number);

    GL_ASSERT(number < j->spec->flow->steps.n);
    if (st == NULL) {
        st = step_new(c, j, number);
        st->r.step_id = gl_step_spec_of(st)->id;
        count_pending(st);
    }
    GL_ASSERT(st->number == number);
    return st;
}

struct gl_step *gl_step_item(struct gl_core *c, struct gl_job *j, uint32_t of, uint32_t item,
                             uint32_t instance)
{
    struct gl_step *st = step_new(c, j, gl_flow_items_base(j->spec->flow) + instance);
    char id[GL_STEP_ID_BYTES_MAX + 1];

    GL_ASSERT(of < j->spec->flow->steps.n);
    GL_ASSERT(item < GL_ITEMS_MAX);
    st->of = of;
    st->item = (int32_t)item;
    st->r.items_at = instance;
    (void)snprintf(id, sizeof(id), "%.*s[%u]", GL_STR_ARG(gl_step_spec_of(st)->id), item);
    gl_core_set(c, &st->r.step_id, gl_str_of(id));
    j->items_live++;
    count_pending(st);
    return st;
}

bool gl_step_split_id(const struct gl_flow *flow, gl_str id, uint32_t *ret_of, int32_t *ret_item)
{
    gl_str name;
    int64_t item, of = gl_str_split_step(id, &name, &item) ? gl_flow_find(flow, name) : -1;

    if (of < 0) {
        return false;
    }
    *ret_of = (uint32_t)of;
    *ret_item = (int32_t)item;
    GL_ASSERT(of < (int64_t)flow->steps.n);
    GL_ASSERT(item >= -1);
    return true;
}

static struct gl_step *find_instance(struct gl_job *j, uint32_t of, int32_t item)
{
    struct gl_step *group = gl_step_find(j, of), *st;

    if (item < 0) {
        return group;
    }
    if (group != NULL && (uint32_t)item < group->r.items_n) {
        return gl_step_find(j,
                            gl_flow_items_base(j->spec->flow) + group->r.items_at + (uint32_t)item);
    }
    /* Its foreach step has ended before it, because the job is ending. Few steps are live then. */
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        st = GL_CONTAINER(l, struct gl_step, live);
        if (st->of == of && st->item == item) {
            return st;
        }
    }
    return NULL;
}

struct gl_step *gl_step_by_id(struct gl_job *j, gl_str id)
{
    uint32_t of;
    int32_t item;

    return gl_step_split_id(j->spec->flow, id, &of, &item) ? find_instance(j, of, item) : NULL;
}

uint32_t gl_step_place(const struct gl_step *st)
{
    GL_ASSERT(st->item < GL_ITEMS_MAX);
    return gl_flow_place(st->job->spec->flow, st->of, st->item);
}

struct gl_step *gl_step_at(struct gl_job *j, uint32_t place)
{
    uint32_t base = gl_flow_items_base(j->spec->flow);

    if (place < base) {
        return gl_step_find(j, place);
    }
    return find_instance(j, (place - base) / GL_ITEMS_MAX,
                         (int32_t)((place - base) % GL_ITEMS_MAX));
}

void gl_step_rename(struct gl_job *j, const struct gl_flow *flow)
{
    GL_ASSERT(flow->steps.n >= j->spec->flow->steps.n);
    for (struct gl_link *l = j->live.next; l != &j->live; l = l->next) {
        struct gl_step *st = GL_CONTAINER(l, struct gl_step, live);

        if (st->item < 0) {
            st->r.step_id = gl_flow_step(flow, st->of)->id;
        }
    }
}

void gl_step_free(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;

    GL_ASSERT(j->count[st->r.status] > 0);
    GL_ASSERT(st->hold == NULL);
    GL_ASSERT(gl_step_find(j, st->number) == st);
    gl_offers_forget(c, st); /* its slots are counted at the node that the record names */
    gl_core_disown(c, &gl_step_schema, &st->r);
    if (st->item >= 0) {
        gl_core_set(c, &st->r.step_id, (gl_str){0});
        j->items_live -= !gl_step_status_is_terminal(st->r.status);
    }
    j->reviews_n -= st->r.status == GL_STEP_BLOCKED && st->r.blocked_on == GL_BLOCK_REVIEW;
    if (st->wait != NULL) {
        gl_slots_detach(st); /* it keeps its place in the queue */
    }
    if (gl_heap_has(&st->timer)) {
        gl_heap_remove(&j->timers, &st->timer);
    }
    if (st->r.status == GL_STEP_RUNNING && !gl_step_is_bound(st)) {
        GL_ASSERT(c->running_n > 0);
        c->running_n--;
    }
    j->count[st->r.status]--;
    j->bound[st->r.status] -= gl_step_is_bound(st);
    j->units[st->r.status] -= gl_step_is_unit(st);
    gl_mailbox_free_step(c, st);
    gl_list_remove(&st->live);
    gl_list_remove(&st->dirty);
    gl_list_remove(&st->work);
    GL_ASSERT(j->reviews_n <= j->count[GL_STEP_BLOCKED]);
    GL_ASSERT(st->number / GL_STEP_PAGE < j->pages_n);
    j->pages[st->number / GL_STEP_PAGE][st->number % GL_STEP_PAGE] = NULL;
    gl_pool_free(&c->mem, st, sizeof(*st));
}

static gl_ms sooner(gl_ms due, gl_ms at)
{
    return at != 0 && at < due ? at : due;
}

/* While a job is paused most of its timers are off: its steps must not start until it is resumed.
 */
void gl_step_set_due(struct gl_core *c, struct gl_step *st)
{
    struct gl_job *j = st->job;
    gl_ms due = INT64_MAX;

    if (st->r.status == GL_STEP_RETRY_WAIT && (j->r.status == GL_JOB_RUNNING || st->r.seat > 0) &&
        !GL_PLANT(4)) {
        due = sooner(due, st->r.retry_at); /* a seat is freed even while its job is paused */
    } else if (st->r.status == GL_STEP_BLOCKED && j->r.status == GL_JOB_RUNNING) {
        due = sooner(due, st->r.due_at);
    } else if (st->r.status == GL_STEP_READY && j->r.status == GL_JOB_RUNNING) {
        due = sooner(due, st->probe_at);
    } else if (st->r.status == GL_STEP_RUNNING && gl_step_is_bound(st)) {
        due = j->r.status != GL_JOB_RUNNING
                  ? due
                  : sooner(sooner(due, st->r.deadline_at), st->r.heartbeat_at);
    } else if (st->r.status == GL_STEP_RUNNING) {
        due = sooner(sooner(due, st->heartbeat_at), st->probe_at);
    } else if (st->r.status == GL_STEP_QUEUED && gl_step_is_unit(st) && !st->r.keeps_slots &&
               st->r.queued_at != 0 && j->r.status == GL_JOB_RUNNING) {
        const struct gl_agent_spec *a = gl_flow_agent(j->spec->flow, st->of);
        gl_ms wait = a->kind == GL_AGENT_EXECUTOR ? a->lease_timeout_ms : 0;

        due = wait > 0 ? sooner(due, st->r.queued_at + wait) : due;
    }
    if (due != st->due || gl_heap_has(&st->timer) != (due != INT64_MAX)) {
        if (gl_heap_has(&st->timer)) {
            gl_heap_remove(&j->timers, &st->timer);
        }
        st->due = due;
        if (due != INT64_MAX) {
            gl_heap_push(&j->timers, &st->timer);
        }
    }
    gl_sweep_set_due(c, j);
    GL_ASSERT(gl_heap_has(&st->timer) == (st->due != INT64_MAX));
    GL_ASSERT(j->due <= st->due);
}

/* ---- specs ---- */

int gl_spec_new(gl_str hash, gl_str text, struct gl_spec **ret, struct gl_why *reterr_why)
{
    struct gl_spec *s = gl_mem_alloc(sizeof(*s));
    int rc;

    gl_arena_init(&s->arena);
    s->refs = 1;
    s->hash = gl_str_dup(&s->arena, hash);
    s->text = gl_str_dup(&s->arena, text);
    rc = gl_flow_decode(s->text, &s->arena, &s->flow, reterr_why);
    if (rc != 0) {
        gl_spec_unref(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void gl_spec_ref(struct gl_spec *s)
{
    GL_ASSERT(s->refs > 0);
    s->refs++;
}

void gl_spec_unref(struct gl_spec *s)
{
    GL_ASSERT(s->refs > 0);
    if (--s->refs == 0) {
        GL_ASSERT(s->jobs == 0);
        if (s->shared != NULL) {
            gl_spec_unref(s->shared);
        }
        gl_arena_done(&s->arena);
        gl_mem_free(s);
    }
}
