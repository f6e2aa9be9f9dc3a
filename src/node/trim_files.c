/* trim_files.c - files that have stayed behind: of jobs that are gone, and the working folders of
 * attempts that failed and were kept for a while.
 *
 * The tidy port tells what is there, the store tells what it belongs to. A job's folder is made
 * after the job was committed, so a folder whose job is not in the store belongs to one that was
 * removed. The working folder of an attempt may go when nothing can run in it any more: its job or
 * step has ended, or a later attempt has begun. */
#include "node/trim_state.h"

enum {
    JOBS_READ = 100, /* at a time */
    STEPS_READ = 16, /* a step's record carries its output */
    WORK_MAX = 1000, /* working folders looked at, before those that may go are removed */
};

static void check_next(struct gl_trim *t);
static void list_work(struct gl_trim *t);

static void part_over(struct gl_trim *t)
{
    bool was_work = t->files.is_work, again = t->files.again;

    gl_arena_reset(&t->arena);
    t->files.again = false;
    if (!was_work ? t->keep.work_ms > 0 : again) {
        list_work(t);
    } else {
        gl_trim_files_over(t);
    }
}

static void on_removed(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_tidied(t, req)) {
        return;
    }
    t->tally.bytes += req->bytes;
    t->tally.work_n += t->files.is_work ? req->removed_n : 0;
    t->files.again = t->files.again && req->removed_n > 0;
    part_over(t);
}

static void remove_going(struct gl_trim *t)
{
    struct gl_tidy_req *req = gl_trim_tidy(t, on_removed);

    if (t->files.going_n == 0) {
        t->files.again = false;
        part_over(t);
    } else if (t->files.is_work) {
        t->tidy->remove_work(t->tidy, req, t->node->config.context, t->files.going,
                             t->files.going_n);
    } else {
        t->tidy->remove_jobs(t->tidy, req, t->node->config.context, t->files.going,
                             t->files.going_n);
    }
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

static bool is_past(struct gl_trim *t, const struct gl_record *step, uint64_t number)
{
    struct gl_json j;
    struct gl_step_record r;

    if (step->rev == 0 ||
        gl_json_parse(&j, step->value, GL_RECORD_BYTES_MAX, &t->arena, NULL) != 0 ||
        gl_schema_read(&gl_step_schema, &j, gl_json_root(&j), false, &t->arena, &r, NULL) != 0) {
        return false;
    }
    return gl_step_status_is_terminal(r.status) || number < r.attempt_count;
}

static void check_work(struct gl_trim *t, gl_str name, const struct gl_record *job,
                       const struct gl_record *step)
{
    gl_str attempt, step_id;
    uint64_t number;

    (void)gl_str_cut(name, '/', &attempt);
    if (split_attempt(attempt, &step_id, &number) &&
        (job->rev == 0 || !job->live || is_past(t, step, number))) {
        t->files.going[t->files.going_n++] = name;
    }
}

static void on_checked(struct gl_store_req *req)
{
    struct gl_trim *t = req->owner;
    size_t per = t->files.is_work ? 2 : 1;

    if (!gl_trim_answered(t, req)) {
        return;
    }
    for (size_t i = 0; i + per <= req->records_n; i += per) {
        gl_str name = t->files.names[t->files.at++];

        if (t->files.is_work) {
            check_work(t, name, &req->records[i], &req->records[i + 1]);
        } else if (req->records[i].rev == 0) {
            t->files.going[t->files.going_n++] = name;
        }
    }
    check_next(t);
}

static void add_key(struct gl_trim *t, const char *kind, gl_str id)
{
    t->files.keys[t->files.keys_n++] = (struct gl_key){.kind = gl_str_of(kind), .id = id};
}

static void check_next(struct gl_trim *t)
{
    struct gl_store *s = t->node->ports.store;
    size_t until = t->files.at + (t->files.is_work ? STEPS_READ : JOBS_READ);

    t->files.keys_n = 0;
    for (size_t i = t->files.at; i < t->files.names_n && i < until; i++) {
        gl_str attempt, step = {0};
        gl_str job = gl_str_cut(t->files.names[i], '/', &attempt);
        uint64_t number;

        add_key(t, "job", job);
        if (t->files.is_work) {
            (void)split_attempt(attempt, &step, &number); /* of nothing there is no record */
            add_key(t, "step",
                    gl_str_fmt(&t->arena, "%.*s/%.*s", GL_STR_ARG(job), GL_STR_ARG(step)));
        }
    }
    if (t->files.keys_n == 0) {
        remove_going(t);
    } else {
        s->ops->get(s, gl_trim_call(t, on_checked), t->node->config.context, t->files.keys,
                    t->files.keys_n);
    }
}

static void on_listed(struct gl_tidy_req *req)
{
    struct gl_trim *t = req->owner;

    if (!gl_trim_tidied(t, req)) {
        return;
    }
    t->files.names = GL_NEW_ARRAY(&t->arena, gl_str, req->names_n + 1);
    t->files.going = GL_NEW_ARRAY(&t->arena, gl_str, req->names_n + 1);
    t->files.keys = GL_NEW_ARRAY(&t->arena, struct gl_key, JOBS_READ);
    for (size_t i = 0; i < req->names_n; i++) {
        t->files.names[i] = gl_str_dup(&t->arena, req->names[i]);
    }
    t->files.names_n = req->names_n;
    t->files.at = t->files.going_n = 0;
    t->files.again = t->files.is_work && req->names_n == WORK_MAX;
    check_next(t);
}

static void list_work(struct gl_trim *t)
{
    t->files.is_work = true;
    t->tidy->list_work(t->tidy, gl_trim_tidy(t, on_listed), t->node->config.context,
                       t->keep.work_ms, WORK_MAX);
}

void gl_trim_files_begin(struct gl_trim *t, bool orphans, bool work)
{
    gl_arena_reset(&t->arena);
    t->files.is_work = !orphans;
    GL_ASSERT(orphans || work);
    if (orphans) {
        t->tidy->list_jobs(t->tidy, gl_trim_tidy(t, on_listed), t->node->config.context);
    } else {
        list_work(t);
    }
}
