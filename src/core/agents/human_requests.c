/* human_requests.c - one entry per job with a deadline, in a queue ordered by that deadline.
 *
 *   WAITING ──due──► CHECKING (who owns the job? has it ended?) ──ours──► WRITING ──► forgotten
 *      ▲                │  not ours, or no answer: again later               │ failed
 *      └────────────────┴────────────────────────────────────────────────────┘
 *
 * A deadline that is reported while a call is under way waits in `next_due` until the answer. */
#include "core/agents/human_requests.h"

#include "base/check.h"
#include "core/component.h"
#include "model/job.h"

enum {
    NOT_OURS_MS = 30000,   /* then look again: the job may have moved to this node */
    WRITE_AGAIN_MS = 1000, /* after a failure, such as a lock on the file */
    CALLS_MAX = 16,        /* under way at the same time */
};

enum run_stage { RUN_WAITING, RUN_CHECKING, RUN_WRITING };

struct human_run {
    struct gl_heap_item place; /* in the queue while WAITING, ... */
    struct gl_link link;       /* ... else in the list of calls under way */
    gl_str job;                /* belongs to the pool */
    gl_ms due;
    gl_ms next_due; /* reported while a call is under way; -1: nothing was */
    uint64_t call;  /* under way; 0: none */
    uint32_t stage; /* enum run_stage */
    int64_t failed; /* the code of the last failed write that was logged */
};

static bool comes_before(const struct gl_heap_item *a, const struct gl_heap_item *b)
{
    const struct human_run *x = GL_CONTAINER(a, struct human_run, place);
    const struct human_run *y = GL_CONTAINER(b, struct human_run, place);

    return x->due != y->due ? x->due < y->due : gl_str_cmp(x->job, y->job) < 0;
}

void gl_human_requests_init(struct gl_core *c)
{
    gl_map_init(&c->human.runs);
    gl_heap_init(&c->human.queue, comes_before);
    gl_list_init(&c->human.under_way);
    c->human.calls_n = 0;
}

static void forget(struct gl_core *c, struct human_run *r)
{
    GL_ASSERT(gl_heap_has(&r->place) == (r->stage == RUN_WAITING));
    if (gl_heap_has(&r->place)) {
        gl_heap_remove(&c->human.queue, &r->place);
    }
    (void)gl_map_remove(&c->human.runs, r->job); /* every entry is in the map */
    gl_core_set(c, &r->job, (gl_str){0});
    gl_pool_free(&c->mem, r, sizeof(*r));
}

void gl_human_requests_done(struct gl_core *c)
{
    struct human_run *r;

    for (size_t i = 0; (r = gl_map_next(&c->human.runs, &i)) != NULL;) {
        gl_core_set(c, &r->job, (gl_str){0});
        gl_pool_free(&c->mem, r, sizeof(*r));
    }
    gl_map_done(&c->human.runs);
    gl_heap_done(&c->human.queue);
}

static struct human_run *add(struct gl_core *c, gl_str job)
{
    struct human_run *r = gl_pool_alloc(&c->mem, sizeof(*r));

    GL_ASSERT(job.n == GL_ULID_BYTES);
    *r = (struct human_run){.next_due = -1};
    gl_core_set(c, &r->job, job);
    gl_map_add(&c->human.runs, r->job, r);
    return r;
}

static void begin_call(struct gl_core *c, struct human_run *r, enum run_stage stage, uint64_t call)
{
    GL_ASSERT(r->call == 0);
    GL_ASSERT(call > 0);
    r->stage = stage;
    r->call = call;
    gl_list_push(&c->human.under_way, &r->link);
    c->human.calls_n++;
}

static void end_call(struct gl_core *c, struct human_run *r)
{
    GL_ASSERT(r->stage != RUN_WAITING);
    GL_ASSERT(c->human.calls_n > 0);
    r->call = 0;
    gl_list_remove(&r->link);
    c->human.calls_n--;
}

/* Back into the queue, or out of memory if nothing has a deadline any more. */
static void wait_until(struct gl_core *c, struct human_run *r, gl_ms due)
{
    GL_ASSERT(!gl_heap_has(&r->place));
    GL_ASSERT(r->call == 0);
    r->stage = RUN_WAITING;
    r->due = due;
    r->next_due = -1;
    gl_heap_push(&c->human.queue, &r->place);
    if (due == INT64_MAX) {
        forget(c, r);
    }
}

void gl_human_requests_on_asked(struct gl_core *c, const struct gl_event *ev)
{
    struct human_run *r = gl_map_find(&c->human.runs, ev->job);

    GL_ASSERT(ev->type == GL_EV_ASKED);
    if (ev->job.n != GL_ULID_BYTES || ev->asked.due < 0) {
        return;
    }
    if (r != NULL && r->stage != RUN_WAITING) {
        r->next_due = ev->asked.due;
        return;
    }
    if (r == NULL) {
        /* The reader of the files remembers no more than this either, and reports again. */
        if (ev->asked.due == INT64_MAX || gl_map_count(&c->human.runs) >= GL_HUMAN_RUNS_MAX) {
            return;
        }
        r = add(c, ev->job);
    } else {
        gl_heap_remove(&c->human.queue, &r->place);
    }
    wait_until(c, r, ev->asked.due);
}

/* ---- when a deadline is over ---- */

static const struct gl_field status_fields[] = {
    GL_FIELD_ENUM(gl_job_record, status, gl_job_status_words, 0, "")};
static const struct gl_schema status_schema = {.name = "job",
                                               .bytes = sizeof(struct gl_job_record),
                                               .fields = status_fields,
                                               .fields_n = GL_COUNT(status_fields)};
static const struct gl_core_view status_view = {
    .type = GL_VIEW_MEMBERS, .schema = &gl_job_schema, .members = &status_schema};

static gl_ms due(const struct gl_core *c)
{
    const struct gl_heap_item *top = gl_heap_top(&c->human.queue);

    return top != NULL && c->human.calls_n < CALLS_MAX
               ? GL_CONTAINER(top, const struct human_run, place)->due
               : INT64_MAX;
}

static void check_owner(struct gl_core *c, struct human_run *r)
{
    struct gl_key key = {.kind = GL_S("job"), .id = r->job};

    GL_ASSERT(r->stage == RUN_WAITING);
    gl_heap_remove(&c->human.queue, &r->place);
    begin_call(c, r, RUN_CHECKING, gl_component_view(c, GL_COMPONENT_HUMAN, &key, 1, &status_view));
}

static void on_time(struct gl_core *c)
{
    while (due(c) <= c->now) {
        check_owner(c, GL_CONTAINER(gl_heap_top(&c->human.queue), struct human_run, place));
    }
    GL_ASSERT(c->human.calls_n <= CALLS_MAX);
}

/* A job of a store that is not shared is ours, whichever of our sessions has written it last. */
static bool is_ours(const struct gl_core *c, const struct gl_event_record *job)
{
    return !c->shared || gl_str_eq(job->owner, c->session) || GL_PLANT(90); /* planted: anybody */
}

static bool has_ended(struct gl_core *c, const struct gl_event_record *job)
{
    struct gl_job_record r = {0};
    struct gl_json j;
    bool is_readable =
        job->rev != 0 && !job->damaged &&
        gl_json_parse(&j, job->value, SIZE_MAX, c->out->arena, NULL) == 0 &&
        gl_schema_read(&status_schema, &j, gl_json_root(&j), false, c->out->arena, &r, NULL) == 0;

    return !is_readable || gl_job_status_is_terminal(r.status);
}

static void on_checked(struct gl_core *c, struct human_run *r, const struct gl_event *ev)
{
    const struct gl_event_record *job = ev->answer.records.items;

    if (r->next_due >= 0) { /* the file has changed meanwhile */
        wait_until(c, r, r->next_due);
    } else if (ev->answer.code != 0 || ev->answer.records.n == 0) {
        wait_until(c, r, c->now + NOT_OURS_MS);
    } else if (has_ended(c, job)) {
        GL_MARK(c->trace, "human.nobody_waits");
        wait_until(c, r, INT64_MAX);
    } else if (!is_ours(c, job)) {
        GL_MARK(c->trace, "human.not_ours");
        wait_until(c, r, c->now + NOT_OURS_MS);
    } else {
        begin_call(c, r, RUN_WRITING, gl_component_expire(c, GL_COMPONENT_HUMAN, r->job));
    }
}

/* What was written changes the file, so its next deadline is reported by itself. */
static void on_written(struct gl_core *c, struct human_run *r, const struct gl_event *ev)
{
    gl_ms next = r->next_due >= 0 && !GL_PLANT(91) ? r->next_due : INT64_MAX; /* planted: lost */

    if (ev->answer.code != 0) {
        if (ev->answer.code != r->failed) { /* logged once */
            gl_component_say(c, gl_str_fmt(c->out->arena, "job %.*s: %.*s", GL_STR_ARG(r->job),
                                           GL_STR_ARG(ev->answer.why)));
        }
        r->failed = ev->answer.code;
        wait_until(c, r, c->now + WRITE_AGAIN_MS);
        return;
    }
    if (ev->answer.n > 0) {
        GL_MARK(c->trace, "human.expired");
        gl_component_say(c, gl_str_fmt(c->out->arena,
                                       "job %.*s: a worker's request was not answered in time; its "
                                       "default decision was applied",
                                       GL_STR_ARG(r->job)));
    }
    wait_until(c, r, next);
}

static struct human_run *find_call(const struct gl_core *c, uint64_t number)
{
    for (struct gl_link *l = c->human.under_way.next; l != &c->human.under_way; l = l->next) {
        struct human_run *r = GL_CONTAINER(l, struct human_run, link);

        if (r->call == number) {
            return r;
        }
    }
    return NULL;
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct human_run *r = find_call(c, ev->answer.number);

    GL_ASSERT(ev->type == GL_EV_ANSWER);
    if (r == NULL) {
        return;
    }
    end_call(c, r);
    if (!gl_components_are_on(c)) {
        wait_until(c, r, c->now + NOT_OURS_MS); /* nothing is due to a core without a session */
    } else if (r->stage == RUN_CHECKING) {
        on_checked(c, r, ev);
    } else {
        on_written(c, r, ev);
    }
}

/* ---- in a snapshot of the core ---- */

#define F(member, type) GL_FIELD(human_run, member, type, 0, "")

static const struct gl_field run_fields[] = {
    F(job, STR), F(due, I64), F(next_due, I64), F(call, U64), F(stage, U32), F(failed, I64),
};
#undef F

static const struct gl_schema run_schema = {.name = "human_run",
                                            .bytes = sizeof(struct human_run),
                                            .fields = run_fields,
                                            .fields_n = GL_COUNT(run_fields)};

struct saved_human {
    struct gl_items runs; /* struct human_run */
};

static const struct gl_field human_fields[] = {
    GL_FIELD_SUB(saved_human, runs, LIST, &run_schema, 0, ""),
};

GL_SNAPSHOT_SCHEMA(human);

static void save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct human_run *all = GL_NEW_ARRAY(&a, struct human_run, gl_map_count(&c->human.runs) + 1);
    struct saved_human s = {.runs = {.items = all}};
    const struct human_run *r;

    for (size_t i = 0; (r = gl_map_next(&c->human.runs, &i)) != NULL;) {
        all[s.runs.n++] = *r;
    }
    gl_snapshot_put(out, "human", &human_schema, &s);
}

static int fill(struct gl_core *c, struct gl_snapshot_line *l, const struct human_run *from)
{
    struct human_run *r;

    if (from->job.n != GL_ULID_BYTES || gl_map_find(&c->human.runs, from->job) != NULL ||
        from->stage > RUN_WRITING || (from->stage == RUN_WAITING) != (from->call == 0)) {
        return gl_snapshot_bad(l, "the deadline of a job's requests cannot be");
    }
    r = add(c, from->job);
    r->next_due = from->next_due;
    r->failed = from->failed;
    r->due = from->due;
    if (from->stage == RUN_WAITING) {
        gl_heap_push(&c->human.queue, &r->place);
    } else {
        begin_call(c, r, from->stage, from->call);
    }
    return 0;
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_human s;
    const struct human_run *all;
    int rc = gl_snapshot_get(l, &human_schema, &s);

    all = s.runs.items;
    for (size_t i = 0; rc == 0 && i < s.runs.n; i++) {
        rc = fill(c, l, &all[i]);
    }
    return rc;
}

const struct gl_component gl_human_requests = {.name = "human",
                                               .due = due,
                                               .on_time = on_time,
                                               .on_answer = on_answer,
                                               .save = save,
                                               .restore = restore};
