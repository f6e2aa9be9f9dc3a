#include "support/cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/human_timeouts.h"
#include "os/paths.h"
#include "os/run_owner.h"
#include "os/run_questions.h"
#include "support/folder.h"
#include "support/golden.h"

#define OLD "01KA0000000000000000000000"
#define NEW "01KB0000000000000000000000"
#define THIRD "01KC0000000000000000000000"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_why why;
};

static int set_up(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    return 0;
}

static const char *in(struct bench *b, const char *name)
{
    return gl_paths_in(&b->a, b->folder.path, name);
}

static bool is_there(struct bench *b, const char *name)
{
    struct stat st;
    return lstat(in(b, name), &st) == 0;
}

static void put(struct bench *b, const char *name, const char *text)
{
    assert_int_equal(gl_fs_write(in(b, name), gl_str_of(text), &b->why), 0);
}

static void take(struct bench *b, const char *job)
{
    assert_int_equal(gl_run_owner_take(in(b, "run"), gl_str_of(job), &b->why), 0);
}

static void assert_owner(struct bench *b, const char *job)
{
    char owner[GL_ULID_BYTES + 1];
    gl_run_owner_find(b->folder.path, GL_S("run"), owner);
    assert_string_equal(owner, job);
}

/* ---- whose a folder is ---- */

static void what_another_job_left_is_set_aside_once(void **state)
{
    struct bench *b = *state;
    assert_owner(b, "");
    take(b, OLD);
    put(b, "run/human.jsonl", "approved");
    take(b, OLD);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_owner(b, OLD);
    assert_true(gl_run_owner_is_job(b->folder.path, GL_S("run"), GL_S(OLD)));
    assert_false(gl_run_owner_is_job(b->folder.path, GL_S("run"), GL_S(NEW)));
    take(b, NEW);
    assert_owner(b, NEW);
    assert_false(is_there(b, "run/human.jsonl"));
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    put(b, "run/human.jsonl", "asked");
    take(b, NEW);
    take(b, OLD); /* it had its folder: that of a later job is never moved for it */
    assert_true(is_there(b, "run/human.jsonl"));
    assert_owner(b, NEW);
}

/* As kill -9 leaves it: moved; moved and made; everything but the list. */
static void what_was_cut_short_is_made_good(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    put(b, "run/human.jsonl", "approved");
    assert_int_equal(rename(in(b, "run"), in(b, "run." OLD)), 0);
    take(b, NEW);
    assert_owner(b, NEW);
    assert_false(is_there(b, "run." OLD ".2"));
    put(b, ".glia/run", OLD "\n");
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    assert_false(is_there(b, "run." OLD ".2"));
    assert_false(is_there(b, "run/human.jsonl"));
    assert_int_equal(rmdir(in(b, "run")), 0);
    take(b, NEW);
    assert_true(is_there(b, "run"));
}

/* Many begin with that; or they make something else of it. */
static void a_worker_that_empties_its_folder_keeps_it(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(mkdir(in(b, "run"), 0700), 0);
    put(b, "run/human.jsonl", "approved");
    take(b, OLD);
    assert_true(is_there(b, "run/human.jsonl"));
    take(b, NEW);
    assert_false(is_there(b, "run/human.jsonl"));
    assert_true(is_there(b, "run." OLD "/human.jsonl"));
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(symlink("nowhere", in(b, "run")), 0);
    take(b, THIRD);
    assert_owner(b, THIRD);
    assert_true(is_there(b, "run." NEW));
}

/* A job without a run id, and what was set aside, need no list. */
static void a_name_tells_the_job(void **state)
{
    struct bench *b = *state;
    static const char *const names[] = {OLD, "run." OLD, "run." OLD ".12"};
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        char owner[GL_ULID_BYTES + 1];
        gl_run_owner_find(b->folder.path, gl_str_of(names[i]), owner);
        assert_string_equal(owner, OLD);
        assert_int_equal(gl_fs_mkdirs(in(b, names[i]), &b->why), 0);
        put(b, gl_str_fmt(&b->a, "%s/human.jsonl", names[i]).p, "approved");
        assert_int_equal(gl_run_owner_take(in(b, names[i]), GL_S(NEW), &b->why), 0);
        assert_false(is_there(b, gl_str_fmt(&b->a, "%s/human.jsonl", names[i]).p));
        assert_true(is_there(b, gl_str_fmt(&b->a, "%s." OLD "/human.jsonl", names[i]).p));
    }
    assert_int_equal(gl_run_owner_take(in(b, ".glia"), GL_S(NEW), &b->why), GL_E_INVALID);
}

static void a_name_that_is_taken_is_not_replaced(void **state)
{
    struct bench *b = *state;
    take(b, OLD);
    put(b, "run/x", "");
    assert_int_equal(gl_fs_mkdirs(in(b, "run." OLD), &b->why), 0);
    put(b, "run." OLD "/y", "");
    take(b, NEW);
    assert_true(is_there(b, "run." OLD "/y"));
    assert_false(is_there(b, "run." OLD "/x"));
    assert_true(is_there(b, "run." OLD ".2/x"));
}

/* Somebody made the folder before the run. */
static void a_list_that_is_none_names_nobody(void **state)
{
    struct bench *b = *state;
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    assert_int_equal(gl_fs_mkdirs(in(b, ".glia"), &b->why), 0);
    put(b, "run/human.jsonl", "prepared");
    put(b, ".glia/run", "../../etc\n\n\xff");
    assert_owner(b, "");
    take(b, NEW);
    assert_owner(b, NEW);
    assert_true(is_there(b, "run/human.jsonl"));
    assert_int_equal(unlink(in(b, ".glia/run")), 0);
    assert_int_equal(mkfifo(in(b, ".glia/run"), 0600), 0);
    assert_owner(b, "");
    take(b, NEW); /* does not wait for a writer */
    assert_owner(b, NEW);
}

/* ---- questions ---- */

#define ASK "{\"type\":\"human_input_requested\",\"payload\":{\"request_id\":\"%s\"%s}}\n"
#define ANSWER \
    "{\"type\":\"human_input_received\",\"payload\":{\"request_id\":\"%s\",\"decision\":\"x\"}}\n"

static void add_line(struct bench *b, const char *run, const char *fmt, const char *id,
                     const char *more)
{
    assert_int_equal(gl_fs_mkdirs(in(b, run), &b->why), 0);
    FILE *f = fopen(gl_str_fmt(&b->a, "%s/human.jsonl", in(b, run)).p, "ae");
    assert_non_null(f);
    assert_true(fprintf(f, fmt, id, more) > 0);
    assert_int_equal(fclose(f), 0);
}

static void read_file(struct bench *b, struct gl_human_file *f)
{
    assert_int_equal(gl_human_file_read(b->folder.path, GL_S("run"), &b->a, f, &b->why), 0);
}

static bool says(gl_str text, const char *part)
{
    return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static void a_default_must_be_one_of_the_decisions(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    size_t n;
    add_line(b, "run", ASK, "q",
             ",\"expires_at\":\"2020-01-01T00:00:00Z\",\"default_decision\":\"launch\"");
    read_file(b, &f);
    assert_true(f.requests[0].is_refused);
    golden_say("q", gl_human_file_problems(&f, &b->a));
    assert_int_equal(gl_human_file_next_timeout(&f), INT64_MAX);
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 0);
    add_line(b, "run", ANSWER, "q", "");
    read_file(b, &f);
    assert_int_equal(gl_human_file_problems(&f, &b->a).n, 0); /* it does not matter any more */
    add_line(b, "run", ASK, "q", "");
    read_file(b, &f);
    assert_int_equal(f.requests[0].again_n, 1);
}

/* How often a file in the folder was opened, written and closed. */
static int writes_seen(int watch)
{
    char events[64 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t bytes = read(watch, events, sizeof(events));
    int n = 0;
    for (ssize_t at = 0; at < bytes;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);
        n += (e->mask & IN_CLOSE_WRITE) != 0;
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    return n;
}

static void defaults_of_a_file_are_written_together(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    size_t n;
    assert_int_equal(gl_fs_mkdirs(in(b, "run"), &b->why), 0);
    FILE *file = fopen(in(b, "run/human.jsonl"), "ae");
    for (int i = 0; i < 500; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "q%d", i);
        assert_true(fprintf(file, ASK, id,
                            ",\"expires_at\":\"2020-01-01T00:00:00Z\","
                            "\"default_decision\":\"reject\"") > 0);
    }
    assert_true(fputs("torn", file) >= 0);
    assert_int_equal(fclose(file), 0);
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(inotify_add_watch(watch, in(b, "run"), IN_OPEN | IN_CLOSE_WRITE) >= 0);
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 500);
    assert_int_equal(writes_seen(watch), 1);
    assert_int_equal(close(watch), 0);
    read_file(b, &f);
    for (size_t i = 0; i < 500; i++) {
        assert_true(f.requests[i].is_answered);
        assert_true(gl_str_is(f.requests[i].decision, "reject"));
    }
    assert_int_equal(gl_human_file_expire(b->folder.path, GL_S("run"), INT64_MAX, &n, &b->why), 0);
    assert_int_equal(n, 0);
}

static void what_is_too_much_of_a_file_is_counted(void **state)
{
    struct bench *b = *state;
    struct gl_human_file f;
    char id[GL_HUMAN_FILE_ID_MAX + 2];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    add_line(b, "run", ASK, id, "");
    read_file(b, &f);
    assert_int_equal(f.strange_n, 1);
    assert_true(says(gl_human_file_problems(&f, &b->a), "request_id more than 512 bytes"));
    FILE *file = fopen(in(b, "run/human.jsonl"), "ae");
    for (int i = 0; i < GL_HUMAN_FILE_MAX + 1; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "q%d", i);
        assert_true(fprintf(file, ASK, name, "") > 0);
    }
    assert_int_equal(fclose(file), 0);
    read_file(b, &f);
    assert_int_equal(f.n, GL_HUMAN_FILE_MAX);
    assert_int_equal(f.dropped_n, 1);
    assert_false(f.is_cut);
    assert_int_equal(truncate(in(b, "run/human.jsonl"), GL_HUMAN_FILE_BYTES_MAX + 1), 0);
    read_file(b, &f);
    assert_true(f.is_cut);
}

/* ---- who looks ---- */

struct looker {
    struct gl_human_timeouts timeouts;
    enum gl_human_run told;
    size_t asked_n, lines_n, reports_n;
    char line[2048];
    char job[GL_ULID_BYTES + 1]; /* what was reported last: the job, ... */
    gl_ms due;                   /* ... and its next deadline */
    bool is_deaf;                /* reports are not heard */
};

static enum gl_human_run on_ask(void *owner, gl_str run_id)
{
    struct looker *l = owner;
    (void)run_id;
    l->asked_n++;
    return l->told;
}

static void on_log(void *owner, const char *line)
{
    struct looker *l = owner;
    l->lines_n++;
    (void)snprintf(l->line, sizeof(l->line), "%s", line);
}

static bool on_report(void *owner, gl_str job, gl_ms due)
{
    struct looker *l = owner;
    l->reports_n++;
    (void)snprintf(l->job, sizeof(l->job), "%.*s", GL_STR_ARG(job));
    l->due = due;
    return !l->is_deaf;
}

static void make_looker(struct bench *b, struct looker *l)
{
    memset(l, 0, sizeof(*l));
    gl_human_timeouts_init(&l->timeouts);
    l->timeouts.root = b->folder.path;
    l->timeouts.ask = on_ask;
    l->timeouts.log = on_log;
    l->timeouts.report = on_report;
    l->timeouts.owner = l;
}

static const struct gl_questions_run *find(struct bench *b, struct looker *l)
{
    struct gl_questions asks = gl_human_timeouts_asks(&l->timeouts);
    return asks.find(asks.owner, GL_S("run"), &b->a);
}

static uint64_t count(struct bench *b, struct looker *l, size_t limit, size_t *ret_n)
{
    struct gl_questions asks = gl_human_timeouts_asks(&l->timeouts);
    uint64_t open_n;
    (void)asks.all(asks.owner, limit, &b->a, ret_n, &open_n);
    return open_n;
}

static void only_what_a_live_job_asks_is_told(void **state)
{
    struct bench *b = *state;
    struct looker l;
    make_looker(b, &l);
    take(b, OLD);
    add_line(b, "run", ASK, "q", ",\"prompt\":\"launch?\"");
    l.told = GL_HUMAN_RUN_UNKNOWN;
    gl_human_timeouts_scan(&l.timeouts, 1000);
    assert_null(find(b, &l));
    l.told = GL_HUMAN_RUN_LIVE;
    gl_human_timeouts_scan(&l.timeouts, 2000);
    assert_non_null(find(b, &l));
    assert_int_equal(find(b, &l)->open_n, 1);
    assert_true(gl_str_is(find(b, &l)->open[0].prompt, "launch?"));
    assert_true(gl_str_is(find(b, &l)->job_id, OLD));
    size_t asked = l.asked_n;
    gl_human_timeouts_scan(&l.timeouts, 3000);
    assert_int_equal(l.asked_n, asked); /* nothing has changed */
    l.told = GL_HUMAN_RUN_FOREIGN;
    gl_human_timeouts_scan(&l.timeouts, 60000);
    assert_null(find(b, &l)); /* its job has ended meanwhile */
    l.told = GL_HUMAN_RUN_LIVE;
    add_line(b, "run", ASK, "p", "");
    gl_human_timeouts_scan(&l.timeouts, 61000);
    assert_int_equal(find(b, &l)->open_n, 2);
    take(b, NEW); /* sets it aside; nobody knows a run of that name */
    l.told = GL_HUMAN_RUN_FOREIGN;
    gl_human_timeouts_scan(&l.timeouts, 62000);
    assert_null(find(b, &l));
    gl_human_timeouts_done(&l.timeouts);
}

/* On a shared store: on one disk they are told, elsewhere not before the job is here. */
static void what_another_node_has_is_not_decided_here(void **state)
{
    struct bench *b = *state;
    struct looker l;
    struct gl_human_file f;
    make_looker(b, &l);
    add_line(b, "run", ASK, "q",
             ",\"expires_at\":\"1970-01-01T00:00:01Z\",\"default_decision\":\"reject\"");
    l.told = GL_HUMAN_RUN_OTHER_FILE;
    gl_human_timeouts_scan(&l.timeouts, 10000);
    assert_null(find(b, &l));
    l.told = GL_HUMAN_RUN_REMOTE;
    gl_human_timeouts_scan(&l.timeouts, 20000);
    assert_null(find(b, &l)); /* nobody is asked that often */
    gl_human_timeouts_scan(&l.timeouts, 50000);
    assert_non_null(find(b, &l));
    read_file(b, &f);
    assert_false(f.requests[0].is_answered);
    assert_true(
        gl_human_file_is_current(b->folder.path, GL_S("run"), GL_S("2020-01-01T00:00:00Z")));
    assert_false(
        gl_human_file_is_current(b->folder.path, GL_S("run"), GL_S("2999-01-01T00:00:00Z")));
    assert_false(gl_human_file_is_current(b->folder.path, GL_S("run"), (gl_str){0}));
    gl_human_timeouts_done(&l.timeouts);
}

/* The core hears of deadlines, and says when one is over (core/agents/human_requests.h). */
static void deadlines_are_reported_and_defaults_written_on_request(void **state)
{
    struct bench *b = *state;
    struct looker l;
    struct gl_human_file f;
    size_t n;
    make_looker(b, &l);
    take(b, OLD);
    add_line(b, "run", ASK, "q",
             ",\"expires_at\":\"1970-01-01T00:00:09Z\",\"default_decision\":\"reject\"");
    l.is_deaf = true;
    gl_human_timeouts_scan(&l.timeouts, 1000);
    l.is_deaf = false;
    gl_human_timeouts_scan(&l.timeouts, 2000);
    assert_int_equal(l.reports_n, 2);
    assert_string_equal(l.job, OLD);
    assert_int_equal(l.due, 9000);
    gl_human_timeouts_scan(&l.timeouts, 3000);
    assert_int_equal(l.reports_n, 2); /* nothing is new ... */
    gl_human_timeouts_scan(&l.timeouts, 40000);
    assert_int_equal(l.reports_n, 3); /* ... but whoever hears it may have begun anew */
    assert_int_equal(gl_human_timeouts_expire(&l.timeouts, GL_S(NEW), 40000, &n, &b->why), 0);
    assert_int_equal(n, 0);
    assert_int_equal(gl_human_timeouts_expire(&l.timeouts, GL_S(OLD), 8999, &n, &b->why), 0);
    assert_int_equal(n, 0);
    assert_int_equal(gl_human_timeouts_expire(&l.timeouts, GL_S(OLD), 9000, &n, &b->why), 0);
    assert_int_equal(n, 1);
    read_file(b, &f);
    assert_true(f.requests[0].is_answered);
    gl_human_timeouts_scan(&l.timeouts, 41000);
    assert_int_equal(l.due, INT64_MAX);
    gl_human_timeouts_done(&l.timeouts);
}

static void trouble_stands_in_the_log_once(void **state)
{
    struct bench *b = *state;
    struct looker l;
    make_looker(b, &l);
    add_line(b, "run", ASK, "q", ",\"default_decision\":\"launch\"");
    gl_human_timeouts_scan(&l.timeouts, 1000);
    assert_int_equal(l.lines_n, 1);
    golden_say("overdue q", gl_str_of(l.line));
    add_line(b, "run", ASK, "p", "");
    gl_human_timeouts_scan(&l.timeouts, 2000);
    assert_int_equal(l.lines_n, 1);
    assert_true(says(find(b, &l)->trouble, "'launch'"));
    gl_human_timeouts_done(&l.timeouts);
}

static void many_are_counted_and_few_are_told(void **state)
{
    struct bench *b = *state;
    struct looker l;
    size_t n;
    make_looker(b, &l);
    for (int i = 0; i < GL_QUESTIONS_RUNS_MAX + 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "r%d", i);
        add_line(b, name, ASK, "q", "");
        add_line(b, name, ASK, "p", "");
    }
    gl_human_timeouts_scan(&l.timeouts, 1000);
    assert_int_equal(count(b, &l, 3, &n), 2 * (GL_QUESTIONS_RUNS_MAX + 5));
    assert_int_equal(n, GL_QUESTIONS_RUNS_MAX);
    gl_human_timeouts_done(&l.timeouts);
}

/* They come to be told when others are answered, or gone. */
static void who_was_left_out_is_taken_in(void **state)
{
    struct bench *b = *state;
    struct looker l;
    size_t n;
    char name[16];
    make_looker(b, &l);
    for (int i = 0; i < GL_QUESTIONS_RUNS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "r%d", i);
        add_line(b, name, ASK, "q", "");
    }
    gl_human_timeouts_scan(&l.timeouts, 1000);
    take(b, OLD);
    add_line(b, "run", ASK, "q", "");
    add_line(b, "run", ASK, "p", "");
    gl_human_timeouts_scan(&l.timeouts, 2000);
    assert_int_equal(find(b, &l)->open_n, 2);
    assert_int_equal(find(b, &l)->n, 0);
    assert_true(gl_str_is(find(b, &l)->job_id, OLD));
    assert_int_equal(count(b, &l, 3, &n), GL_QUESTIONS_RUNS_MAX + 2);
    add_line(b, "r7", ANSWER, "q", "");
    gl_human_timeouts_scan(&l.timeouts, 3000); /* makes room */
    gl_human_timeouts_scan(&l.timeouts, 4000);
    assert_int_equal(find(b, &l)->n, 2);
    assert_int_equal(count(b, &l, 3, &n), GL_QUESTIONS_RUNS_MAX - 1 + 2);
    assert_int_equal(n, GL_QUESTIONS_RUNS_MAX);
    add_line(b, "r7", ASK, "q", ""); /* left out now, and gone */
    gl_human_timeouts_scan(&l.timeouts, 5000);
    assert_int_equal(unlink(in(b, "r7/human.jsonl")), 0);
    gl_human_timeouts_scan(&l.timeouts, 6000);
    assert_int_equal(count(b, &l, 3, &n), GL_QUESTIONS_RUNS_MAX - 1 + 2);
    gl_human_timeouts_done(&l.timeouts);
}

/* Nothing is waited for, and no link is followed. */
static void what_is_no_file_is_told(void **state)
{
    struct bench *b = *state;
    struct gl_human_file_answer answer = {.request_id = GL_S("q"), .decision = GL_S("x")};
    struct looker l;
    make_looker(b, &l);
    take(b, OLD);
    assert_int_equal(mkfifo(in(b, "run/human.jsonl"), 0600), 0);
    gl_human_timeouts_scan(&l.timeouts, 1000);
    golden_say("pipe", gl_str_of(l.line));
    golden_say("pipe", find(b, &l)->trouble);
    assert_int_equal(gl_human_file_respond(b->folder.path, GL_S("run"), &answer, &b->a, &b->why),
                     GL_E_NOT_FOUND);
    golden_say("pipe", gl_str_of(b->why.text));
    assert_int_equal(unlink(in(b, "run/human.jsonl")), 0);
    assert_int_equal(symlink("other", in(b, "run/human.jsonl")), 0);
    gl_human_timeouts_scan(&l.timeouts, 2000);
    golden_say("link", find(b, &l)->trouble);
    assert_int_equal(unlink(in(b, "run/human.jsonl")), 0);
    add_line(b, "run", ASK, "q", "");
    gl_human_timeouts_scan(&l.timeouts, 3000);
    assert_int_equal(find(b, &l)->trouble.n, 0);
    assert_int_equal(find(b, &l)->n, 1);
    assert_int_equal(l.lines_n, 2);
    gl_human_timeouts_done(&l.timeouts);
}

static void *look_often(void *owner)
{
    struct looker *l = owner;
    for (gl_ms now = 0; now < 50; now++) {
        gl_human_timeouts_scan(&l->timeouts, now * 60000);
    }
    return NULL;
}

static void one_looks_and_another_asks(void **state)
{
    struct bench *b = *state;
    struct looker l;
    pthread_t thread;
    make_looker(b, &l);
    assert_int_equal(pthread_create(&thread, NULL, look_often, &l), 0);
    for (int i = 0; i < 100; i++) {
        size_t n;
        add_line(b, "run", i % 2 == 0 ? ASK : ANSWER, "q", "");
        const struct gl_questions_run *run = find(b, &l);
        assert_true(run == NULL || gl_str_is(run->open[0].request_id, "q"));
        assert_true(count(b, &l, 10, &n) <= 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    gl_human_timeouts_done(&l.timeouts);
}

/* A command that has no node. */
static void files_can_be_read_when_asked(void **state)
{
    struct bench *b = *state;
    struct gl_questions asks = gl_run_questions_reader(b->folder.path);
    uint64_t open_n;
    size_t n;
    assert_null(asks.find(asks.owner, GL_S("run"), &b->a));
    add_line(b, "run", ASK, "q", "");
    add_line(b, "run", ASK, "p", "");
    add_line(b, "other", ASK, "q", "");
    assert_int_equal(asks.find(asks.owner, GL_S("run"), &b->a)->open_n, 2);
    (void)asks.all(asks.owner, 1, &b->a, &n, &open_n);
    assert_int_equal(n, 2);
    assert_int_equal(open_n, 3);
}

/* ---- links ---- */

/* The job itself, or anybody of its user, can put a link where the run's folder is. */
static void a_link_in_place_of_the_folder_is_refused(void **state)
{
    struct bench *b = *state;
    char data[4096];
    struct stat st;

    take(b, NEW);
    assert_int_equal(rmdir(in(b, "run")), 0);
    assert_int_equal(mkdir(in(b, "elsewhere"), 0700), 0);
    assert_int_equal(symlink("elsewhere", in(b, "run")), 0);
    assert_int_equal(gl_run_owner_take(in(b, "run"), GL_S(NEW), &b->why), GL_E_IO);
    assert_non_null(strstr(b->why.text, "symbolic link"));
    (void)snprintf(data, sizeof(data), "%s/data", in(b, "run"));
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), GL_E_IO);
    assert_int_not_equal(stat(in(b, "elsewhere/data"), &st), 0);
    assert_int_equal(unlink(in(b, "run")), 0);
    take(b, NEW);
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), 0);
    assert_int_equal(gl_fs_mkdirs_own(data, 2, &b->why), 0); /* and again */
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/os_runs.golden");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_another_job_left_is_set_aside_once),
        TEST(what_was_cut_short_is_made_good),
        TEST(a_worker_that_empties_its_folder_keeps_it),
        TEST(a_name_tells_the_job),
        TEST(a_name_that_is_taken_is_not_replaced),
        TEST(a_list_that_is_none_names_nobody),
        TEST(a_link_in_place_of_the_folder_is_refused),
        TEST(a_default_must_be_one_of_the_decisions),
        TEST(defaults_of_a_file_are_written_together),
        TEST(what_is_too_much_of_a_file_is_counted),
        TEST(only_what_a_live_job_asks_is_told),
        TEST(what_another_node_has_is_not_decided_here),
        TEST(deadlines_are_reported_and_defaults_written_on_request),
        TEST(trouble_stands_in_the_log_once),
        TEST(many_are_counted_and_few_are_told),
        TEST(who_was_left_out_is_taken_in),
        TEST(what_is_no_file_is_told),
        TEST(one_looks_and_another_asks),
        TEST(files_can_be_read_when_asked),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
