/* leftovers.c - small records and files that nobody needs any more and nobody else removes:
 *
 *   rates     a day after the time it speaks of, nothing waits for one
 *   answers   to a command that came through an inbox, whose asker has died
 *   inbox     an entry of the index without its record, or one whose job is gone
 *   orphans   files of jobs that are gone
 *   work      working folders of attempts that failed and were kept for a while
 *
 * Each is a row of the table: what there is, which records it is compared with, and whether it goes
 * then. A job's folder is made after the job was committed, so a folder whose job is not in the
 * store belongs to one that was removed. The working folder of an attempt may go when nothing can
 * run in it any more: its job or step has ended, or a later attempt has begun. */
#include "base/id.h"
#include "base/limits.h"
#include "core/retention/parts.h"

enum {
    RATE_MS = 24 * 60 * 60 * 1000,
    ANSWER_MS = 10 * 60 * 1000, /* longer than anybody waits for one */
    PAGE = 100,
    STEPS_READ = 16, /* a step's record carries its output */
};

struct rate {
    int64_t next_at;
};

static const struct gl_field rate_fields[] = {GL_FIELD(rate, next_at, I64, GL_FF_REQUIRED, "")};

static const struct gl_schema rate_schema = {
    .name = "rate", .bytes = sizeof(struct rate), .fields = rate_fields, .fields_n = 1};

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
static const struct gl_core_view ids = {.type = GL_VIEW_IDS};
static const struct gl_core_view stamps = {.type = GL_VIEW_STAMPS};

static struct gl_retention_pass *pass(struct gl_core *c)
{
    return &c->retention.pass;
}

/* ---- rates ---- */

static uint64_t list_rates(struct gl_core *c)
{
    struct gl_listing page = {.kind = GL_S("rate"), .after = pass(c)->after, .limit = PAGE};

    return gl_component_list(c, GL_COMPONENT_RETENTION, &page, &rates);
}

static void take_rates(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_record *all = ev->answer.records.items;

    for (size_t i = 0; i < ev->answer.records.n; i++) {
        struct gl_doomed *d = gl_retention_doom(pass(c), all[i].id);
        struct rate r;

        d->rev = all[i].rev;
        d->is_ours = gl_retention_read(c->out->arena, &rate_schema, all[i].value, &r) &&
                     r.next_at < c->now - RATE_MS;
    }
    gl_core_set(c, &pass(c)->after, ev->answer.next);
}

/* ---- answers ---- */

static uint64_t list_answers(struct gl_core *c)
{
    struct gl_listing page = {
        .kind = GL_S("answer"), .after = pass(c)->after, .limit = PAGE, .ids_only = true};

    return gl_component_list(c, GL_COMPONENT_RETENTION, &page, &ids);
}

static void take_answers(struct gl_core *c, const struct gl_event *ev)
{
    for (size_t i = 0; i < ev->answer.names.n; i++) {
        gl_str id = ev->answer.names.items[i];

        gl_retention_doom(pass(c), id)->is_ours =
            !gl_id_valid(id) || gl_id_time(id) < c->now - ANSWER_MS;
    }
    gl_core_set(c, &pass(c)->after, ev->answer.next);
}

/* ---- the inbox of our scope ---- */

static gl_str inbox_index(struct gl_core *c)
{
    return gl_job_index(c->out->arena, "inbox", c->stack, c->env_scope);
}

static uint64_t list_inbox(struct gl_core *c)
{
    struct gl_range page = {.index = inbox_index(c),
                            .score_min = 0,
                            .score_max = c->now - ANSWER_MS,
                            .after_score = pass(c)->after_score,
                            .after_id = pass(c)->after,
                            .limit = PAGE};

    return gl_component_range(c, GL_COMPONENT_RETENTION, &page);
}

static void take_inbox(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_entry *all = ev->answer.entries.items;

    for (size_t i = 0; i < ev->answer.entries.n; i++) {
        gl_retention_doom(pass(c), all[i].id)->score = all[i].score;
    }
    if (ev->answer.entries.n == PAGE) { /* those that stay must not hide the ones after them */
        pass(c)->after_score = all[PAGE - 1].score;
        gl_core_set(c, &pass(c)->after, all[PAGE - 1].id);
    }
}

/* ---- files ---- */

static uint64_t list_orphans(struct gl_core *c)
{
    return gl_retention_files(c, GL_FILES_LIST_JOBS, NULL, 0, 0);
}

static uint64_t list_work(struct gl_core *c)
{
    return gl_retention_files(c, GL_FILES_LIST_WORK, NULL, 0, c->retention.keep.work_ms);
}

static void take_files(struct gl_core *c, const struct gl_event *ev)
{
    for (size_t i = 0; i < ev->answer.names.n; i++) {
        (void)gl_retention_doom(pass(c), ev->answer.names.items[i]);
    }
    pass(c)->is_full = pass(c)->chore == GL_CHORE_WORK && ev->answer.names.n == GL_PAGE_MAX;
}

/* "step:attempt:n" */
static bool split_attempt(gl_str name, gl_str *ret_step, uint64_t *ret_number)
{
    static const gl_str infix = GL_S(":attempt:");

    for (size_t i = name.n; i-- > 0;) {
        gl_str rest = {.p = name.p + i, .n = name.n - i};

        if (gl_str_starts(rest, infix)) {
            *ret_step = (gl_str){.p = name.p, .n = i};
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

/* ---- what they are compared with ---- */

static gl_str job_of(const struct gl_doomed *d, gl_str *ret_rest)
{
    return gl_str_cut(d->id, '/', ret_rest);
}

static gl_str entry_of(struct gl_core *c, const struct gl_doomed *d)
{
    (void)c;
    return d->id;
}

static gl_str step_of(struct gl_core *c, const struct gl_doomed *d)
{
    gl_str attempt, step = {0}, job = job_of(d, &attempt);
    uint64_t number;

    (void)split_attempt(attempt, &step, &number); /* of nothing there is no record */
    return gl_str_fmt(c->out->arena, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(step));
}

static bool is_gone(struct gl_core *c, const struct gl_doomed *d, const struct gl_event_record *job,
                    const struct gl_event_record *entry)
{
    (void)c;
    (void)d;
    return job->rev == 0 || (entry != NULL && entry->rev == 0);
}

static bool is_work_over(struct gl_core *c, const struct gl_doomed *d,
                         const struct gl_event_record *job, const struct gl_event_record *step)
{
    gl_str attempt, step_id;
    uint64_t number;

    (void)job_of(d, &attempt);
    return split_attempt(attempt, &step_id, &number) &&
           (job->rev == 0 || !job->live || is_past(c, step, number));
}

static const struct leftover {
    uint64_t (*list)(struct gl_core *c);
    void (*take)(struct gl_core *c, const struct gl_event *ev); /* what was listed */
    /* Compared with its job, and with a record of this kind; NULL: with none. */
    bool (*goes)(struct gl_core *c, const struct gl_doomed *d, const struct gl_event_record *job,
                 const struct gl_event_record *other);
    const char *other;
    gl_str (*other_id)(struct gl_core *c, const struct gl_doomed *d);
    const struct gl_core_view *view;
    const char *kind; /* of the records that go; NULL: files do */
    enum gl_core_files_type files;
} leftovers[GL_CHORE_COUNT] = {
    [GL_CHORE_RATES] = {.list = list_rates, .take = take_rates, .kind = "rate"},
    [GL_CHORE_ANSWERS] = {.list = list_answers, .take = take_answers, .kind = "answer"},
    [GL_CHORE_INBOX] = {.list = list_inbox,
                        .take = take_inbox,
                        .goes = is_gone,
                        .other = "inbox",
                        .other_id = entry_of,
                        .view = &stamps,
                        .kind = "inbox"},
    [GL_CHORE_ORPHANS] = {.list = list_orphans,
                          .take = take_files,
                          .goes = is_gone,
                          .view = &stamps,
                          .files = GL_FILES_REMOVE_JOBS},
    [GL_CHORE_WORK] = {.list = list_work,
                       .take = take_files,
                       .goes = is_work_over,
                       .other = "step",
                       .other_id = step_of,
                       .view = &steps,
                       .files = GL_FILES_REMOVE_WORK},
};

static const struct leftover *row(struct gl_core *c)
{
    return &leftovers[pass(c)->chore];
}

bool gl_left_has(uint8_t chore)
{
    return leftovers[chore].list != NULL;
}

/* ---- the loop ---- */

void gl_left_begin(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);

    p->doomed_n = p->at = 0;
    gl_retention_stage(c, GL_STAGE_LEFT_LIST, row(c)->list(c));
}

static void next_page(struct gl_core *c)
{
    if (pass(c)->after.n > 0 || pass(c)->is_full) {
        gl_left_begin(c);
    } else {
        gl_chores_next(c);
    }
}

static void remove_records(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);
    struct gl_guard guards[PAGE + 1];
    struct gl_write writes[2 * PAGE];
    gl_str kind = gl_str_of(row(c)->kind);
    size_t guards_n = 0, n = 0;

    for (size_t i = 0; i < p->doomed_n; i++) {
        const struct gl_doomed *d = &p->doomed[i];

        if (!d->is_ours) {
            continue;
        }
        writes[n++] = (struct gl_write){.type = GL_WRITE_DELETE, .kind = kind, .id = d->id};
        if (p->chore == GL_CHORE_RATES) {
            guards[guards_n++] =
                (struct gl_guard){.type = GL_GUARD_AT, .kind = kind, .id = d->id, .rev = d->rev};
        } else if (p->chore == GL_CHORE_INBOX) {
            writes[n++] = (struct gl_write){
                .type = GL_WRITE_UNINDEX, .kind = inbox_index(c), .id = d->id, .score = d->score};
        }
    }
    if (n == 0) {
        next_page(c);
        return;
    }
    if (p->chore == GL_CHORE_RATES) {
        GL_MARK(c->trace, "trim.rates");
    }
    gl_retention_stage(c, GL_STAGE_LEFT_REMOVE,
                       gl_component_commit(c, GL_COMPONENT_RETENTION,
                                           gl_retention_tx(c, guards, guards_n, writes, n)));
}

static void remove_files(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);
    gl_str *names = GL_NEW_ARRAY(c->out->arena, gl_str, p->doomed_n + 1);
    size_t n = 0;

    for (size_t i = 0; i < p->doomed_n; i++) {
        if (p->doomed[i].is_ours) {
            names[n++] = p->doomed[i].id;
        }
    }
    if (n == 0) {
        gl_chores_next(c);
    } else {
        gl_retention_stage(c, GL_STAGE_LEFT_REMOVE,
                           gl_retention_files(c, row(c)->files, names, n, 0));
    }
}

static void check_next(struct gl_core *c)
{
    struct gl_retention_pass *p = pass(c);
    const struct leftover *l = row(c);
    struct gl_key keys[2 * PAGE];
    size_t n = 0, at_once = p->chore == GL_CHORE_WORK ? STEPS_READ : PAGE;
    gl_str rest;

    p->batch = p->at;
    for (; l->goes != NULL && p->batch < p->doomed_n && p->batch < p->at + at_once; p->batch++) {
        const struct gl_doomed *d = &p->doomed[p->batch];

        keys[n++] = (struct gl_key){.kind = GL_S("job"), .id = job_of(d, &rest)};
        if (l->other != NULL) {
            keys[n++] = (struct gl_key){.kind = gl_str_of(l->other), .id = l->other_id(c, d)};
        }
    }
    if (n > 0) {
        gl_retention_stage(c, GL_STAGE_LEFT_CHECK,
                           gl_component_view(c, GL_COMPONENT_RETENTION, keys, n, l->view));
    } else if (l->kind != NULL) {
        remove_records(c);
    } else {
        remove_files(c);
    }
}

void gl_left_on_list(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = pass(c);

    size_t listed_n = ev->answer.names.n + ev->answer.records.n + ev->answer.entries.n;

    if (!gl_retention_is_good(c, ev) ||
        (row(c)->kind != NULL && !gl_retention_has_room(c, listed_n, PAGE))) {
        return;
    }
    gl_core_set(c, &p->after, (gl_str){0});
    row(c)->take(c, ev);
    GL_ASSERT(row(c)->kind == NULL || p->doomed_n <= PAGE);
    check_next(c);
}

void gl_left_on_check(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = pass(c);
    const struct gl_event_record *r = ev->answer.records.items;
    bool has_other = row(c)->other != NULL;

    if (!gl_retention_has_records(c, ev, (p->batch - p->at) * (has_other ? 2 : 1))) {
        return;
    }
    for (; p->at < p->batch; p->at++, r += has_other ? 2 : 1) {
        p->doomed[p->at].is_ours = row(c)->goes(c, &p->doomed[p->at], r, has_other ? r + 1 : NULL);
    }
    check_next(c);
}

void gl_left_on_removed(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_retention_pass *p = pass(c);
    bool is_refused; /* one of them is in use again: another time */

    if (row(c)->kind != NULL) {
        if (gl_retention_has_landed(c, ev, &is_refused)) {
            next_page(c);
        }
    } else if (gl_retention_has_tidied(c, ev)) {
        p->work_n += p->chore == GL_CHORE_WORK ? ev->answer.n : 0;
        p->is_full = p->is_full && ev->answer.n > 0;
        next_page(c);
    }
}
