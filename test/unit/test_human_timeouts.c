#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/human_file.h"
#include "os/human_timeouts.h"
#include "os/run_owner.h"
#include "support/golden.h"
#include "support/human_lines.h"

#define OLD "01KA0000000000000000000000"
#define NEW "01KB0000000000000000000000"

static void take(struct bench *b, const char *job)
{
    assert_int_equal(gl_run_owner_take(in(b, "run"), gl_str_of(job), &b->why), 0);
}

static void read_file(struct bench *b, struct gl_human_file *f)
{
    assert_int_equal(gl_human_file_read(b->folder.path, GL_S("run"), &b->a, f, &b->why), 0);
}

static bool says(gl_str text, const char *part)
{
    return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

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

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/human_timeouts.golden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_what_a_live_job_asks_is_told),
        TEST(what_another_node_has_is_not_decided_here),
        TEST(deadlines_are_reported_and_defaults_written_on_request),
        TEST(trouble_stands_in_the_log_once),
        TEST(many_are_counted_and_few_are_told),
        TEST(who_was_left_out_is_taken_in),
        TEST(what_is_no_file_is_told),
        TEST(one_looks_and_another_asks),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
