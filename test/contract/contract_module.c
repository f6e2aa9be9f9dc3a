/* Native modules through their executor: their output, their errors, and how the node handles both.
 * Tests that apply to both kinds run twice: with a trusted module in this process, and with the
 * module in a process of its own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "contract/module_world.h"

#define TRUSTED "test.say, example.counter,MnBlueprints.NativeSignalAgent"

static int open_hosted(void **state)
{
    static struct module_world w;
    module_world_open(&w, "");
    *state = &w;
    return 0;
}

static int open_trusted(void **state)
{
    static struct module_world w;
    module_world_open(&w, TRUSTED);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    module_world_close(*state);
    return 0;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", text, part);
    }
}

static void assert_failed(struct module_end *e, const char *part)
{
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 1);
    assert_string_equal(e->output, "");
    assert_has(e->error, part);
}

/* ---- both kinds ---- */

static void all_output_becomes_one_document(void **state)
{
    struct module_end *e = module_run(
        *state, (struct module_message){.attempt = "a:attempt:1", .body = "{\"do\":\"all\"}"});
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
    assert_string_equal(e->error, "");
    assert_true(e->result.started_at > 0);
    assert_true(e->result.ended_at >= e->result.started_at);
    assert_string_equal(
        e->output,
        "{\"next_state\":\"new\",\"events\":[{\"type\":\"seen\",\"payload\":{\"id\":\"m-1\","
        "\"from\":\"so\\u0022me\",\"type\":\"ping\",\"job\":\"job1\",\"agent\":\"me\","
        "\"headers\":{\"a\":1}}},{\"type\":\"bare\",\"payload\":{}}],\"emit_messages\":["
        "{\"type\":\"first\",\"body\":{\"do\":\"all\"}},"
        "{\"to\":\"other\",\"type\":\"second\",\"body\":null},"
        "{\"type\":\"third\",\"body\":3}],\"complete_step\":true,\"complete_run\":[1]}");
}

static void an_empty_output_has_the_same_shape(void **state)
{
    struct module_end *e = module_run(*state, (struct module_message){.attempt = "a:attempt:1"});
    assert_int_equal(e->result.exit_code, 0);
    assert_string_equal(e->output, "{\"events\":[],\"emit_messages\":[]}");
}

static void a_failure_has_its_reason_and_nothing_else(void **state)
{
    struct module_world *w = *state;
    static const struct {
        const char *attempt, *body, *config, *part;
    } all[] = {
        {"a:attempt:1", "{\"do\":\"fail\"}", NULL, "module test.say: told to"},
        {"b:attempt:1", "{\"do\":\"return\"}", NULL, "handle() returned 7"},
        {"c:attempt:1", "{\"do\":\"bad_json\"}", NULL, "emit x: invalid JSON"},
        {"d:attempt:1", "{\"do\":\"bad_event\"}", NULL, "must be an object"},
        {"e:attempt:1", "{\"do\":\"bad_message\"}", NULL, "an object with a type"},
        {"f:attempt:1", "{\"do\":\"bad_name\"}", NULL, "a name must be"},
        {"g:attempt:1", "{\"do\":\"many\"}", NULL, "at most 10000 messages"},
        {"h:attempt:1", "{}", "{\"bad\":true}", "init() failed: this configuration is bad"},
    };
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        assert_failed(module_run(w, (struct module_message){.attempt = all[i].attempt,
                                                            .body = all[i].body,
                                                            .config = all[i].config}),
                      all[i].part);
    }
    /* It still works afterwards. */
    assert_int_equal(
        module_run(w, (struct module_message){.attempt = "z:attempt:1"})->result.exit_code, 0);
}

static void an_input_that_is_none_fails_the_call(void **state)
{
    assert_failed(
        module_run(*state, (struct module_message){.attempt = "a:attempt:1", .input = "{\"mess"}),
        "input");
    assert_failed(
        module_run(*state, (struct module_message){.attempt = "b:attempt:1", .input = "[]"}),
        "message");
}

static struct module_end *count(struct module_world *w, const char *attempt, const char *agent,
                                const char *old)
{
    return module_run(w, (struct module_message){.module = "example.counter",
                                                 .attempt = attempt,
                                                 .agent = agent,
                                                 .state = old,
                                                 .config = "{\"limit\":3}"});
}

static void a_state_goes_round(void **state)
{
    struct module_world *w = *state;
    static const char one[] = "{\"total\":1,\"types\":{\"ping\":1}}";
    static const char two[] = "{\"total\":2,\"types\":{\"ping\":2}}";
    struct module_end *e = count(w, "a:attempt:1", "me", NULL);
    assert_has(e->output, "{\"next_state\":{\"total\":1,\"types\":{\"ping\":1}},");
    assert_has(count(w, "a:attempt:2", "me", one)->output, "{\"next_state\":{\"total\":2,");
    /* Its transaction failed: it is handled again with the former state. */
    assert_has(count(w, "a:attempt:3", "me", one)->output, "{\"next_state\":{\"total\":2,");
    /* Another agent has its own state, */
    assert_has(count(w, "b:attempt:1", "you", NULL)->output, "{\"next_state\":{\"total\":1,");
    /* and an agent that starts over has none. */
    assert_has(count(w, "a:attempt:4", "me", NULL)->output, "{\"next_state\":{\"total\":1,");
    e = count(w, "a:attempt:5", "me", two);
    assert_has(e->output, "{\"next_state\":{\"total\":3,");
    assert_has(e->output, "\"events\":[{\"type\":\"limit_reached\"");
    assert_has(e->output, "\"complete_step\":{\"total\":3,");
}

static void a_state_outlives_the_executor(void **state)
{
    struct module_world *w = *state;
    (void)count(w, "a:attempt:1", "me", NULL);
    module_exec_stop(w);
    module_exec_start(w, TRUSTED);
    assert_has(count(w, "a:attempt:2", "me", "{\"total\":7,\"types\":{\"ping\":7}}")->output,
               "{\"next_state\":{\"total\":8,");
}

static void the_counterpart_of_the_elixir_module_does_the_same(void **state)
{
    struct module_world *w = *state;
    struct module_end *e = module_run(
        w, (struct module_message){.module = "MnBlueprints.NativeSignalAgent",
                                   .attempt = "a:attempt:1",
                                   .config = "{\"emit_type\":\"classified\",\"mode\":\"demo\"}"});
#define RESULT                                                         \
    "{\"runner\":\"beam_native\",\"signals\":[12,71,38],\"classes\":[" \
    "\"normal\",\"alert\",\"normal\"],\"mode\":\"demo\"}"
    assert_string_equal(e->output,
                        "{\"events\":[{\"type\":\"native_signal_classified\",\"payload\":" RESULT
                        "}],\"emit_messages\":[{\"type\":\"classified\",\"body\":" RESULT
                        "}],\"complete_step\":" RESULT "}");
    /* With the full Elixir name, and with signals in the message. */
    e = module_run(w, (struct module_message){.module = "Elixir.MnBlueprints.NativeSignalAgent",
                                              .attempt = "b:attempt:1",
                                              .body = "{\"signals\":[60, 59.5]}"});
    assert_has(e->output, "\"signals\":[60, 59.5],\"classes\":[\"alert\",\"normal\"]");
    assert_has(e->output, "\"emit_messages\":[]");
    assert_failed(module_run(w, (struct module_message){.module = "MnBlueprints.NativeSignalAgent",
                                                        .attempt = "c:attempt:1",
                                                        .body = "{\"signals\":[\"a\"]}"}),
                  "signals");
}

static void a_dotted_name_may_find_its_last_part(void **state)
{
    struct module_world *w = *state;
    assert_int_equal(module_run(w, (struct module_message){.attempt = "a:attempt:1",
                                                           .module = "Some.Where.Plain"})
                         ->result.exit_code,
                     0);
    assert_int_equal(
        module_start(w, (struct module_message){.attempt = "b:attempt:1", .module = "Plain.Where"}),
        GL_E_INVALID);
}

static void two_modules_work_at_once(void **state)
{
    struct module_world *w = *state;
    struct module_question q[20];
    char attempts[20][32];
    for (size_t i = 0; i < GL_COUNT(q); i++) {
        snprintf(attempts[i], sizeof(attempts[i]), "s%zu:attempt:1", i);
        module_ask(w, &q[i],
                   (struct module_message){.attempt = attempts[i],
                                           .module = i % 2 ? "test.say" : "example.counter",
                                           .agent = attempts[i]});
    }
    for (size_t i = 0; i < GL_COUNT(q); i++) {
        module_wait_answer(&q[i]);
        assert_int_equal(q[i].req.status, 0);
        struct module_end *e = module_end_of(w, attempts[i]);
        assert_int_equal(e->result.exit_code, 0);
        assert_true((strstr(e->output, "counted") != NULL) == (i % 2 == 0));
    }
    assert_int_equal(w->ends_n, 20);
}

static void an_unknown_module_is_refused_with_the_names_there_are(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    module_ask(w, &q, (struct module_message){.attempt = "a:attempt:1", .module = "No.Such"});
    module_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_INVALID);
    assert_has(q.req.why.text, "No.Such");
    assert_has(q.req.why.text, "example.counter, MnBlueprints.NativeSignalAgent, Plain, test.say");
    assert_has(q.req.why.text, "GLIA_MODULES_DIR");
    /* It has never started. */
    struct gl_attempt_key key = module_key("a:attempt:1");
    module_prepare(w, &q);
    w->x->ops->attach(w->x, &q.req, &key, 1, gl_str_of(w->epoch));
    module_wait_answer(&q);
    assert_int_equal(q.req.state, GL_EXEC_NEVER);
}

static void an_end_is_kept_until_it_is_acknowledged(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    struct gl_attempt_key key = module_key("a:attempt:1");
    (void)module_run(w, (struct module_message){.attempt = "a:attempt:1"});
    module_prepare(w, &q);
    w->x->ops->attach(w->x, &q.req, &key, 1, gl_str_of("another"));
    module_wait_answer(&q);
    assert_int_equal(q.req.state, GL_EXEC_ENDED);
    assert_string_equal(q.output, "{\"events\":[],\"emit_messages\":[]}");
    /* A second start changes nothing. */
    assert_int_equal(module_start(w, (struct module_message){.attempt = "a:attempt:1"}), 0);
    module_prepare(w, &q);
    w->x->ops->list(w->x, &q.req);
    module_wait_answer(&q);
    assert_int_equal(q.infos_n, 1);
    w->x->ops->ack(w->x, &key, 1);
    module_prepare(w, &q);
    w->x->ops->attach(w->x, &q.req, &key, 1, gl_str_of("another"));
    module_wait_answer(&q);
    assert_int_equal(q.req.state, GL_EXEC_LOST);
    assert_int_equal(w->ends_n, 1);
}

static void old_tokens_and_late_starts_are_refused(void **state)
{
    struct module_world *w = *state;
    struct gl_clock *clock = gl_loop_clock(w->loop);
    assert_int_equal(module_start(w, (struct module_message){.attempt = "a:attempt:1", .token = 5}),
                     0);
    assert_int_equal(module_start(w, (struct module_message){.attempt = "b:attempt:1", .token = 4}),
                     GL_E_STALE);
    assert_int_equal(module_start(w, (struct module_message){.attempt = "c:attempt:1",
                                                             .token = 5,
                                                             .start_by = clock->now(clock) - 1000}),
                     GL_E_STALE);
    (void)module_end_of(w, "a:attempt:1");
    assert_int_equal(w->ends_n, 1);
}

static void closing_answers_what_is_in_progress(void **state)
{
    struct module_world *w = *state;
    struct module_question q[3];
    module_ask(w, &q[0], (struct module_message){.attempt = "a:attempt:1"});
    module_ask(w, &q[1],
               (struct module_message){.attempt = "b:attempt:1", .body = "{\"do\":\"linger\"}"});
    module_ask(w, &q[2], (struct module_message){.attempt = "c:attempt:1", .module = "none"});
    module_exec_stop(w);
    for (size_t i = 0; i < GL_COUNT(q); i++) {
        assert_true(q[i].is_answered);
        assert_int_equal(q[i].req.status, GL_E_UNAVAILABLE);
    }
    module_exec_start(w, "");
}

/* ---- modules in processes of their own ---- */

static void a_crash_fails_its_own_message_only(void **state)
{
    struct module_world *w = *state;
    struct module_question q[3];
    module_ask(w, &q[0], (struct module_message){.attempt = "a:attempt:1"});
    module_ask(w, &q[1],
               (struct module_message){.attempt = "b:attempt:1", .body = "{\"do\":\"crash\"}"});
    module_ask(w, &q[2], (struct module_message){.attempt = "c:attempt:1"});
    assert_int_equal(module_end_of(w, "a:attempt:1")->result.exit_code, 0);
    struct module_end *e = module_end_of(w, "b:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_SIGNALED);
    assert_int_equal(e->result.signal, SIGSEGV);
    assert_has(e->error, "signal 11");
    e = module_end_of(w, "c:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_EXITED);
    assert_int_equal(e->result.exit_code, 0);
}

static void a_call_that_takes_too_long_is_killed_alone(void **state)
{
    struct module_world *w = *state;
    struct module_question q[2];
    module_ask(w, &q[0],
               (struct module_message){
                   .attempt = "a:attempt:1", .body = "{\"do\":\"loop\"}", .timeout_ms = 200});
    /* Its own time begins when the one before it has ended. */
    module_ask(w, &q[1], (struct module_message){.attempt = "b:attempt:1", .timeout_ms = 10000});
    struct module_end *e = module_end_of(w, "a:attempt:1");
    assert_int_equal(e->result.end, GL_EXEC_TIMEOUT);
    assert_has(e->error, "200 ms");
    assert_true(e->result.ended_at - e->result.started_at >= 200);
    assert_int_equal(module_end_of(w, "b:attempt:1")->result.exit_code, 0);
}

static void a_process_that_exits_or_breaks_the_protocol_is_replaced(void **state)
{
    struct module_world *w = *state;
    struct module_end *e = module_run(
        w, (struct module_message){.attempt = "a:attempt:1", .body = "{\"do\":\"exit\"}"});
    assert_failed(e, "test.say exited");
    e = module_run(
        w, (struct module_message){.attempt = "b:attempt:1", .body = "{\"do\":\"scribble\"}"});
    assert_failed(e, "module test.say: its process");
    e = module_run(w, (struct module_message){.attempt = "c:attempt:1"});
    assert_int_equal(e->result.exit_code, 0);
}

/* The process that the module left running. */
static long child_in(const char *path)
{
    long pid = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    (void)fclose(file);
    assert_true(pid > 1);
    return pid;
}

/* Dead, though perhaps not reaped yet. */
static void wait_dead(long pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    for (int i = 0; i < 6000 && state != 'Z' && state != 'X'; i++) {
        FILE *file = fopen(path, "r");
        if (file == NULL) {
            return;
        }
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            state = 'X';
        }
        (void)fclose(file);
        (void)usleep(10000);
    }
    assert_true(state == 'Z' || state == 'X');
}

static void a_child_of_a_module_hides_no_crash_and_dies_with_it(void **state)
{
    struct module_world *w = *state;
    char path[512], body[600];
    snprintf(path, sizeof(path), "%s/child", w->folder.path);
    snprintf(body, sizeof(body), "{\"do\":\"fork_crash\",\"path\":\"%s\"}", path);
    struct module_end *e = module_run(
        w, (struct module_message){.attempt = "a:attempt:1", .body = body, .timeout_ms = 60000});
    assert_int_equal(e->result.end, GL_EXEC_SIGNALED);
    assert_int_equal(e->result.signal, SIGSEGV);
    wait_dead(child_in(path));

    snprintf(body, sizeof(body), "{\"do\":\"fork\",\"path\":\"%s\"}", path);
    e = module_run(w, (struct module_message){.attempt = "b:attempt:1", .body = body});
    assert_int_equal(e->result.exit_code, 0);
    long child = child_in(path);
    assert_int_equal(kill((pid_t)child, 0), 0); /* it may work for the messages that follow */
    module_exec_stop(w);
    wait_dead(child);
    module_exec_start(w, "");
}

static void a_process_that_closes_its_descriptors_is_replaced(void **state)
{
    struct module_world *w = *state;
    struct module_end *e = module_run(
        w, (struct module_message){.attempt = "a:attempt:1", .body = "{\"do\":\"close\"}"});
    assert_failed(e, "test.say exited");
    e = module_run(w, (struct module_message){.attempt = "b:attempt:1"});
    assert_int_equal(e->result.exit_code, 0);
}

static void a_process_that_keeps_dying_is_restarted_less_often(void **state)
{
    struct module_world *w = *state;
    struct gl_clock *clock = gl_loop_clock(w->loop);
    gl_ms began = clock->now(clock);
    char attempt[32];
    for (int i = 0; i < 4; i++) { /* before the third 100 ms pass, before the fourth 200 */
        snprintf(attempt, sizeof(attempt), "a:attempt:%d", i + 1);
        struct module_end *e = module_run(
            w, (struct module_message){.attempt = attempt, .body = "{\"do\":\"crash\"}"});
        assert_int_equal(e->result.end, GL_EXEC_SIGNALED);
    }
    assert_true(clock->now(clock) - began >= 300);
    assert_int_equal(
        module_run(w, (struct module_message){.attempt = "b:attempt:1"})->result.exit_code, 0);
}

static void a_module_stays_in_one_process_that_is_not_ours(void **state)
{
    struct module_world *w = *state;
    struct module_end *a = module_run(
        w, (struct module_message){.attempt = "a:attempt:1", .body = "{\"do\":\"pid\"}"});
    struct module_end *b = module_run(
        w, (struct module_message){.attempt = "b:attempt:1", .body = "{\"do\":\"pid\"}"});
    long pid = strtol(a->output + strlen("{\"next_state\":"), NULL, 10);
    assert_true(pid > 1);
    assert_int_not_equal(pid, getpid());
    assert_string_equal(a->output, b->output);
    /* It exits with the executor. */
    module_exec_stop(w);
    assert_int_equal(kill((pid_t)pid, 0), -1);
    module_exec_start(w, "");
}

static int stop(struct module_world *w, const char *attempt)
{
    struct module_question q;
    struct gl_attempt_key key = module_key(attempt);
    module_prepare(w, &q);
    w->x->ops->stop(w->x, &q.req, &key, 1, 0);
    module_wait_answer(&q);
    return q.req.status;
}

static void what_is_stopped_has_ended_and_holds_nobody_up(void **state)
{
    struct module_world *w = *state;
    assert_int_equal(module_start(w, (struct module_message){.attempt = "a:attempt:1",
                                                             .body = "{\"do\":\"loop\"}",
                                                             .grace_ms = 50}),
                     0);
    assert_int_equal(module_start(w, (struct module_message){.attempt = "b:attempt:1"}), 0);
    assert_int_equal(module_start(w, (struct module_message){.attempt = "c:attempt:1"}), 0);
    assert_int_equal(stop(w, "b:attempt:1"), 0);
    assert_int_equal(stop(w, "a:attempt:1"), 0);
    assert_int_equal(stop(w, "nobody:attempt:1"), 0);
    assert_int_equal(module_end_of(w, "a:attempt:1")->result.end, GL_EXEC_STOPPED);
    assert_int_equal(module_end_of(w, "b:attempt:1")->result.end, GL_EXEC_STOPPED);
    assert_int_equal(module_end_of(w, "c:attempt:1")->result.end, GL_EXEC_EXITED);
    assert_int_equal(w->ends_n, 3);
}

/* ---- which files are modules ---- */

/* The executor finds one file only. */
static void leave_only(struct module_world *w, const char *file)
{
    char to[512], from[512];
    snprintf(to, sizeof(to), "%s/only-%s", w->folder.path, file);
    assert_int_equal(mkdir(to, 0700), 0);
    w->folders = gl_str_c(&w->arena, gl_str_of(to));
    snprintf(from, sizeof(from), "%s/%s", w->folder.path, file);
    snprintf(to, sizeof(to), "%s/%s", w->folders, file);
    assert_int_equal(rename(from, to), 0);
}

static void what_cannot_be_a_module_is_named_with_its_reason(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    static const struct {
        const char *file, *part;
    } all[] = {
        {"test_future.so", "built for version 2 of glia/module.h, but this release has version 1"},
        {"test_foreign.so", "exports no symbol glia_module"},
        {"test_nameless.so", "its name must be 1 to"},
        {"test_reserved.so", "a reserved callback"},
        {"test_crash_at_start.so", "exited while being loaded"},
    };
    for (size_t i = 0; i < GL_COUNT(all); i++) {
        leave_only(w, all[i].file);
        module_exec_stop(w);
        module_exec_start(w, "test.future,test.reserved");
        module_ask(w, &q,
                   (struct module_message){.attempt = "a:attempt:1", .module = "test.future"});
        module_wait_answer(&q);
        assert_int_equal(q.req.status, GL_E_INVALID);
        assert_has(q.req.why.text, "available: none");
        assert_has(q.req.why.text, all[i].part);
    }
}

static void what_others_can_change_is_not_opened(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    char path[512];
    leave_only(w, "test_say.so");
    snprintf(path, sizeof(path), "%s/test_say.so", w->folders);
    assert_int_equal(chmod(path, 0620), 0);
    module_exec_stop(w);
    module_exec_start(w, "");
    module_ask(w, &q, (struct module_message){.attempt = "a:attempt:1"});
    module_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_INVALID);
    assert_has(q.req.why.text, "test_say.so");
    assert_has(q.req.why.text, "(mode 620)");
    /* Nor is a module in a folder that others can change. */
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(w->folders, 0777), 0);
    module_exec_stop(w);
    module_exec_start(w, "test.say");
    module_ask(w, &q, (struct module_message){.attempt = "a:attempt:1"});
    module_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_INVALID);
    assert_has(q.req.why.text, "(mode 777)");
    assert_int_equal(chmod(w->folders, 0700), 0);
}

/* It was fine when the folder was scanned, and is not when it is loaded. */
static void a_file_is_looked_at_again_when_it_is_opened(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    char path[512];
    (void)module_run(
        w, (struct module_message){.attempt = "a:attempt:1", .module = "example.counter"});
    snprintf(path, sizeof(path), "%s/test_say.so", w->folder.path);
    assert_int_equal(chmod(path, 0606), 0);
    module_ask(w, &q, (struct module_message){.attempt = "b:attempt:1"});
    module_wait_answer(&q);
    if (q.req.status == 0) { /* in a process of its own: the attempt ends */
        struct module_end *e = module_end_of(w, "b:attempt:1");
        assert_int_equal(e->result.end, GL_EXEC_NOT_EXECUTED);
        assert_has(e->error, "(mode 606)");
    } else {
        assert_int_equal(q.req.status, GL_E_INVALID);
        assert_has(q.req.why.text, "(mode 606)");
    }
}

static void a_node_without_folders_reports_it(void **state)
{
    struct module_world *w = *state;
    struct module_question q;
    module_exec_stop(w);
    w->folders = "";
    module_exec_start(w, "");
    module_ask(w, &q, (struct module_message){.attempt = "a:attempt:1"});
    module_wait_answer(&q);
    assert_int_equal(q.req.status, GL_E_INVALID);
    assert_has(q.req.why.text, "available: none");
}

/* ---- trusted modules ---- */

static void a_trusted_module_is_in_our_process(void **state)
{
    struct module_end *e = module_run(
        *state, (struct module_message){.attempt = "a:attempt:1", .body = "{\"do\":\"pid\"}"});
    assert_int_equal(strtol(e->output + strlen("{\"next_state\":"), NULL, 10), getpid());
}

static void a_trusted_module_that_was_slow_has_timed_out(void **state)
{
    struct module_end *e =
        module_run(*state, (struct module_message){.attempt = "a:attempt:1",
                                                   .timeout_ms = 5,
                                                   .body = "{\"do\":\"linger\",\"ms\":30}"});
    assert_int_equal(e->result.end, GL_EXEC_TIMEOUT);
    assert_has(e->error, " 5 ms");
}

enum { MANY = 5000, WINDOW = 100 };

static void many_messages_are_handled_each_once(void **state)
{
    struct module_world *w = *state;
    static struct module_question q[MANY];
    static char attempts[MANY][32];
    (void)module_run(w, (struct module_message){.attempt = "a:attempt:1"});
    w->acks = true;
    w->ends_n = 0;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(attempts[i], sizeof(attempts[i]), "m%zu:attempt:1", i);
        module_ask(w, &q[i], (struct module_message){.attempt = attempts[i]});
        while (i + 1 >= WINDOW + w->ends_n) {
            module_wait(w);
        }
    }
    while (w->ends_n < MANY) {
        module_wait(w);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_true(q[i].is_answered);
    }
}

#define BOTH(test)                                                   \
    cmocka_unit_test_setup_teardown(test, open_hosted, close_world), \
        cmocka_unit_test_setup_teardown(test, open_trusted, close_world)
#define HOSTED(test) cmocka_unit_test_setup_teardown(test, open_hosted, close_world)
#define IN_NODE(test) cmocka_unit_test_setup_teardown(test, open_trusted, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(all_output_becomes_one_document),
        BOTH(an_empty_output_has_the_same_shape),
        BOTH(a_failure_has_its_reason_and_nothing_else),
        BOTH(an_input_that_is_none_fails_the_call),
        BOTH(a_state_goes_round),
        BOTH(a_state_outlives_the_executor),
        BOTH(the_counterpart_of_the_elixir_module_does_the_same),
        HOSTED(a_dotted_name_may_find_its_last_part),
        BOTH(two_modules_work_at_once),
        BOTH(an_unknown_module_is_refused_with_the_names_there_are),
        BOTH(an_end_is_kept_until_it_is_acknowledged),
        BOTH(old_tokens_and_late_starts_are_refused),
        BOTH(closing_answers_what_is_in_progress),
        HOSTED(a_crash_fails_its_own_message_only),
        HOSTED(a_call_that_takes_too_long_is_killed_alone),
        HOSTED(a_process_that_exits_or_breaks_the_protocol_is_replaced),
        HOSTED(a_child_of_a_module_hides_no_crash_and_dies_with_it),
        HOSTED(a_process_that_closes_its_descriptors_is_replaced),
        HOSTED(a_process_that_keeps_dying_is_restarted_less_often),
        HOSTED(a_module_stays_in_one_process_that_is_not_ours),
        HOSTED(what_is_stopped_has_ended_and_holds_nobody_up),
        HOSTED(what_cannot_be_a_module_is_named_with_its_reason),
        HOSTED(what_others_can_change_is_not_opened),
        BOTH(a_file_is_looked_at_again_when_it_is_opened),
        HOSTED(a_node_without_folders_reports_it),
        IN_NODE(a_trusted_module_is_in_our_process),
        IN_NODE(a_trusted_module_that_was_slow_has_timed_out),
        BOTH(many_messages_are_handled_each_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
