/* leftovers.c - removes small records and files that are no longer needed and that nothing else
 * removes:
 *
 *   rates     a day after the time in it, nothing waits for it any more
 *   answers   to a command that came through an inbox, if the asking node has died
 *   inbox     an entry of the index without its record, or of a job that is removed
 *   orphans   files of jobs that are removed
 *   work      working folders of failed attempts, which were kept for a while
 *
 * Each is a row of the table: what to list, which records to compare it with, and what to remove. A
 * job's folder is made after the job is committed, so a folder whose job is not in the store
 * belongs to a job that was removed. The working folder of an attempt may be removed when nothing
 * can run in it any more: its job or step has ended, or a later attempt has started. */
#include "base/id.h"
#include "base/limits.h"
#include "core/retention/parts.h"

enum {
    RATE_MS = 24 * 60 * 60 * 1000,
    ANSWER_MS = 10 * 60 * 1000, /* longer than any client waits for one */
    PAGE = 100,
    STEPS_READ = 16, /* at a time: a step's record contains its output */
};

struct rate_record {
    int64_t next_at;
};

static const struct gl_field rate_fields[] = {
    GL_FIELD(rate_record, next_at, I64, GL_FF_REQUIRED, "")};

static const struct gl_schema rate_schema = {
    .name = "rate", .bytes = sizeof(struct rate_record), .fields = rate_fields, .fields_n = 1};

static const struct gl_field step_fields[] = {
    GL_FIELD_ENUM(gl_step_record, status, gl_step_status_words, 0, ""),
    GL_FIELD(gl_step_record, attempt_count, U32, 0, ""),
};

static const struct gl_schema some_of_step = {.name = "step",
                                              .bytes = sizeof(struct gl_step_record),
                                              .fields = step_fields,
                                              .fields_n = GL_COUNT(step_fields)};

static const struct gl_core_view rates = {
    .type = GL_VIEW_MEMBERS, .schema = &rate_schema, .members = &rate_schema};
static const struct gl_core_view steps = {
    .type = GL_VIEW_MEMBERS, .schema = &gl_step_schema, .members = &some_of_step};

/* A listed thing, and the records it is compared with. */
struct compared {
    const struct gl_candidate *thing;
    const struct gl_event_record *job, *other;
};

static gl_str inbox_index(struct gl_core *c)
{
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_INBOX);
    return gl_job_index(c->out->arena, "inbox", c->stack, c->env_scope);
}

/* "step:attempt:n" */
static bool split_attempt(gl_str name, gl_str *ret_step, uint64_t *ret_number)
{
    static const gl_str infix = GL_S(":attempt:");

    for (size_t i = name.n; i-- > 0;) {
        gl_str rest = {.p = name.p + i, .n = name.n - i};

        if (gl_str_starts(rest, infix)) {
            *ret_step = (gl_str){.p = name.p, .n = i};
            GL_ASSERT(i + infix.n <= name.n);
            return gl_str_u64((gl_str){.p = rest.p + infix.n, .n = rest.n - infix.n}, ret_number);
        }
    }
    return false;
}

static bool is_past(struct gl_core *c, const struct gl_event_record *step, uint64_t number)
{
    struct gl_step_record r;

    return step->rev != 0 && gl_retention_read(c->out->arena, &some_of_step, step->value, &r) &&
           (gl_step_status_is_terminal(r.status) || number < r.attempt_count);
}

/* ---- what is removed ---- */

static bool is_rate_over(struct gl_core *c, const struct compared *x)
{
    struct rate_record r;

    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_RATES);
    return gl_retention_read(c->out->arena, &rate_schema, x->thing->value, &r) &&
           r.next_at < c->now - RATE_MS;
}

static bool is_answer_old(struct gl_core *c, const struct compared *x)
{
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_ANSWERS);
    return !gl_id_valid(x->thing->id) || gl_id_time(x->thing->id) < c->now - ANSWER_MS;
}

static bool is_gone(struct gl_core *c, const struct compared *x)
{
    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_INBOX || gl_pass(c)->chore == GL_CHORE_ORPHANS);
    return x->job->rev == 0 || (x->other != NULL && x->other->rev == 0);
}

static bool is_work_over(struct gl_core *c, const struct compared *x)
{
    gl_str attempt, step;
    uint64_t number;

    GL_ASSERT(gl_pass(c)->chore == GL_CHORE_WORK);
    (void)gl_str_cut(x->thing->id, '/', &attempt);
    return split_attempt(attempt, &step, &number) &&
           (x->job->rev == 0 || !x->job->live || is_past(c, x->other, number));
}

static const struct leftover {
    const char *kind;                       /* of the records; NULL: files, ... */
    enum gl_core_files_type lists, removes; /* ... listed and removed by these calls */
    const struct gl_core_view *view;        /* to list records; NULL: their index is listed */
    bool (*goes)(struct gl_core *c, const struct compared *x);
    size_t keys_n;                   /* records to compare with: its job, ... */
    const char *other;               /* ... and one of this kind */
    const struct gl_core_view *seen; /* to read these */
} leftovers[GL_CHORE_COUNT] = {
    [GL_CHORE_RATES] = {.kind = "rate", .view = &rates, .goes = is_rate_over},
    [GL_CHORE_ANSWERS] = {.kind = "answer", .view = &gl_view_stamps, .goes = is_answer_old},
    [GL_CHORE_INBOX] =
        {.kind = "inbox", .goes = is_gone, .keys_n = 2, .other = "inbox", .seen = &gl_view_stamps},
    [GL_CHORE_ORPHANS] = {.lists = GL_FILES_LIST_JOBS,
                          .removes = GL_FILES_REMOVE_JOBS,
                          .goes = is_gone,
                          .keys_n = 1,
                          .seen = &gl_view_stamps},
    [GL_CHORE_WORK] = {.lists = GL_FILES_LIST_WORK,
                       .removes = GL_FILES_REMOVE_WORK,
                       .goes = is_work_over,
                       .keys_n = 2,
                       .other = "step",
                       .seen = &steps},
};

static const struct leftover *row(struct gl_core *c)
{
    GL_ASSERT(gl_leftovers_handle(gl_pass(c)->chore));
    return &leftovers[gl_pass(c)->chore];
}

bool gl_leftovers_handle(uint8_t chore)
{
    GL_ASSERT(chore < GL_CHORE_COUNT);
    return leftovers[chore].goes != NULL;
}

/* ---- the loop ---- */

void gl_leftovers_begin(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct leftover *l = row(c);

    gl_arena_reset(&p->arena); /* the page before this one */
    p->candidates = NULL;
    p->candidates_n = p->candidates_cap = p->at = 0;
    if (l->kind == NULL) {
        gl_retention_files(c, GL_STAGE_LEFT_LIST, l->lists, NULL, 0, c->retention.keep.work_ms);
    } else if (l->view != NULL) {
        gl_retention_list(c, GL_STAGE_LEFT_LIST, l->kind, 0, l->view);
    } else {
        gl_retention_range(c, GL_STAGE_LEFT_LIST,
                           (struct gl_range){.index = inbox_index(c),
                                             .score_min = 0,
                                             .score_max = c->now - ANSWER_MS,
                                             .after_score = p->after_score,
                                             .after_id = p->after,
                                             .limit = PAGE});
    }
}

static void next_page(struct gl_core *c)
{
    GL_ASSERT(gl_pass(c)->at == gl_pass(c)->candidates_n);
    if (gl_pass(c)->after.n > 0 || gl_pass(c)->is_full) {
        gl_leftovers_begin(c);
    } else {
        gl_chores_next(c);
    }
}

/* If one is in use again, its whole page is refused, and left to a later pass. */
static void remove_records(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    struct gl_guard guards[GL_TRIM_PAGE + 1];
    struct gl_write writes[2 * GL_TRIM_PAGE];
    gl_str kind = gl_str_of(row(c)->kind);
    size_t guards_n = 0, n = 0;

    GL_ASSERT(p->at == p->candidates_n);
    GL_ASSERT(p->candidates_n <= GL_TRIM_PAGE);
    for (size_t i = 0; i < p->candidates_n; i++) {
        const struct gl_candidate *d = &p->candidates[i];

        if (!d->is_ours) {
            continue;
        }
        writes[n++] = (struct gl_write){.type = GL_WRITE_DELETE, .kind = kind, .id = d->id};
        /* A rate may be written again; answers and inbox entries are written once. */
        if (p->chore == GL_CHORE_RATES) {
            guards[guards_n++] =
                (struct gl_guard){.type = GL_GUARD_AT, .kind = kind, .id = d->id, .rev = d->rev};
        } else if (p->chore == GL_CHORE_INBOX) {
            writes[n++] = (struct gl_write){
                .type = GL_WRITE_UNINDEX, .kind = inbox_index(c), .id = d->id, .score = d->score};
        }
    }
    GL_ASSERT(n >= guards_n && n <= 2 * p->candidates_n);
    if (n == 0) {
        next_page(c);
        return;
    }
    if (guards_n > 0) {
        GL_MARK(c->trace, "trim.rates");
    }
    gl_retention_enter(c, GL_STAGE_LEFT_REMOVE,
                       gl_component_commit(c, GL_COMPONENT_RETENTION,
                                           gl_retention_tx(c, guards, guards_n, writes, n)));
}

static void remove_files(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    gl_str *names = GL_NEW_ARRAY(c->out->arena, gl_str, p->candidates_n + 1);
    size_t n = 0;

    GL_ASSERT(p->at == p->candidates_n);
    GL_ASSERT(p->chore == GL_CHORE_ORPHANS || p->chore == GL_CHORE_WORK);
    for (size_t i = 0; i < p->candidates_n; i++) {
        if (p->candidates[i].is_ours) {
            names[n++] = p->candidates[i].id;
        }
    }
    if (n == 0) {
        gl_chores_next(c);
    } else {
        gl_retention_files(c, GL_STAGE_LEFT_REMOVE, row(c)->removes, names, n, 0);
    }
}

/* The keys of the records to compare one with. */
static void add_keys(struct gl_core *c, const struct gl_candidate *d, struct gl_key *keys)
{
    const struct leftover *l = row(c);
    gl_str rest, step = {0}, job = gl_str_cut(d->id, '/', &rest);
    uint64_t number;

    GL_ASSERT(l->keys_n > 0 && l->keys_n <= 2);
    keys[0] = (struct gl_key){.kind = GL_S("job"), .id = job};
    if (l->keys_n == 2 && l->kind != NULL) {
        keys[1] = (struct gl_key){.kind = gl_str_of(l->other), .id = d->id};
    } else if (l->keys_n == 2) {
        (void)split_attempt(rest, &step, &number); /* if it fails, the empty id has no record */
        keys[1] = (struct gl_key){
            .kind = gl_str_of(l->other),
            .id = gl_str_fmt(c->out->arena, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(step))};
    }
}

/* Decide about the next ones, from their own values or from the records they are compared with. */
static void check_next(struct gl_core *c)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct leftover *l = row(c);
    struct gl_key keys[2 * PAGE];
    size_t at_once = p->chore == GL_CHORE_WORK ? STEPS_READ : PAGE;

    GL_ASSERT(p->at <= p->candidates_n);
    GL_ASSERT(l->keys_n <= 2); /* or `keys` is too short */
    if (p->at == p->candidates_n) {
        (l->kind != NULL ? remove_records : remove_files)(c);
        return;
    }
    for (p->batch = p->at; p->batch < p->candidates_n && p->batch < p->at + at_once; p->batch++) {
        if (l->keys_n > 0) {
            add_keys(c, &p->candidates[p->batch], keys + (p->batch - p->at) * l->keys_n);
        } else {
            struct compared x = {.thing = &p->candidates[p->batch]};

            p->candidates[p->batch].is_ours = l->goes(c, &x);
        }
    }
    GL_ASSERT(p->batch > p->at && p->batch <= p->at + PAGE);
    GL_ASSERT(p->batch <= p->candidates_n);
    if (l->keys_n > 0) {
        gl_retention_get(c, GL_STAGE_LEFT_CHECK, keys, (p->batch - p->at) * l->keys_n, l->seen);
    } else {
        p->at = p->batch;
        check_next(c);
    }
}

void gl_leftovers_on_list(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_answer *a = &ev->answer;
    const struct gl_event_record *records = a->records.items;
    const struct gl_event_entry *entries = a->entries.items;

    GL_ASSERT(p->stage == GL_STAGE_LEFT_LIST);
    GL_ASSERT(p->candidates_n == 0);
    GL_ASSERT(p->at == 0);
    if (!gl_retention_check(c, a->records.n + a->entries.n <= GL_TRIM_PAGE)) {
        return;
    }
    for (size_t i = 0; i < a->records.n; i++) {
        struct gl_candidate *d = gl_retention_add_candidate(p, records[i].id);

        d->rev = records[i].rev;
        d->value = gl_str_dup(&p->arena, records[i].value);
    }
    for (size_t i = 0; i < a->entries.n; i++) {
        gl_retention_add_candidate(p, entries[i].id)->score = entries[i].score;
        p->after_score = entries[i].score;
    }
    for (size_t i = 0; i < a->names.n && row(c)->kind == NULL; i++) {
        (void)gl_retention_add_candidate(p, a->names.items[i]);
    }
    /* The next page begins after this one, whatever of it is kept. */
    gl_core_set(c, &p->after, a->entries.n == PAGE ? entries[PAGE - 1].id : a->next);
    p->is_full = p->chore == GL_CHORE_WORK && a->names.n == GL_PAGE_MAX;
    GL_ASSERT(p->candidates_n <= p->candidates_cap);
    check_next(c);
}

void gl_leftovers_on_check(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);
    const struct gl_event_record *r = ev->answer.records.items;
    size_t keys_n = row(c)->keys_n;

    GL_ASSERT(p->stage == GL_STAGE_LEFT_CHECK);
    GL_ASSERT(p->at < p->batch && p->batch <= p->candidates_n);
    GL_ASSERT(keys_n > 0);
    if (!gl_retention_check(c, ev->answer.records.n == (p->batch - p->at) * keys_n)) {
        return;
    }
    for (; p->at < p->batch; p->at++, r += keys_n) {
        struct compared x = {
            .thing = &p->candidates[p->at], .job = r, .other = keys_n == 2 ? r + 1 : NULL};

        p->candidates[p->at].is_ours = row(c)->goes(c, &x);
    }
    check_next(c);
}

void gl_leftovers_on_removed(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = gl_pass(c);

    GL_ASSERT(p->stage == GL_STAGE_LEFT_REMOVE);
    GL_ASSERT(GL_IMPLIES(p->is_full, p->chore == GL_CHORE_WORK));
    p->work_n += p->chore == GL_CHORE_WORK ? ev->answer.n : 0;
    p->is_full = p->is_full && ev->answer.n > 0; /* or the same list would come back endlessly */
    next_page(c);
}
