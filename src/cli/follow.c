#include "cli/follow.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/daemon.h"
#include "base/check.h"
#include "base/limits.h"
#include "os/fs.h"
#include "port/storeurl.h"

enum {
    QUIET_MS = 2000, /* longest wait for events; without any, the node is asked for its health */
    LOOK_MS = 5000,  /* a quiet job is asked for its status at this interval */
    MUTE_MS = 5000,  /* a node whose answer is this late is reported as not responding */
    LOG_PAUSE_MS_MIN = 20,
    LOG_PAUSE_MS_MAX = 500,
    TICK_MS = 250,
    AWAY_PAUSE_MS = 200, /* while the store is away ... */
    AWAY_SAID_MS = 2000, /* ... which is reported after this time */
    ANSWER_BYTES_MAX = 1 << 30,
};

/* ---- interrupts ---- */

void gl_follow_init(struct gl_follow *f, struct gl_connection *connection,
                    struct gl_progress *progress)
{
    sigset_t set;

    *f = (struct gl_follow){.connection = connection, .progress = progress, .signals_fd = -1};
    f->log_pause_ms = LOG_PAUSE_MS_MIN;
    f->next_seq = 1;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    f->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void gl_follow_done(struct gl_follow *f)
{
    f->connection->client.wait = NULL;
    gl_human_watch_done(&f->watch);
    gl_fs_closep(&f->signals_fd);
}

/* True if a signal came. The second one ends the process at once: the store and the keeper are made
 * for that. */
static bool take_interrupt(struct gl_follow *f)
{
    struct signalfd_siginfo info;

    if (f->signals_fd < 0 || read(f->signals_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return false;
    }
    f->interrupts++;
    if (f->is_pausing) {
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "exiting; running steps continue. To resume the job: %s",
                    gl_cli_hint(f->connection->cli, "job resume %s", f->job));
        (void)fflush(NULL);
        _exit(GL_EXIT_INTERRUPTED);
    }
    return true;
}

/* The node does not answer. The job may be fine, so keep waiting, but report it. */
static void report_silence(struct gl_follow *f)
{
    gl_ms silent = gl_term_now() - f->called_at;
    struct gl_why why;

    if (f->is_silent || f->connection->daemon != NULL || silent < f->wait_ms + MUTE_MS) {
        return;
    }
    f->is_silent = true;
    (void)gl_connect_explain_silence(f->connection, silent, &why);
    gl_progress_clear(f->progress);
    gl_cli_note(f->connection->cli, "%s; waiting", why.text);
}

/* While waiting for the node: update the clock on the screen, and react to interrupts. */
static int on_wait(void *owner, int fd)
{
    struct gl_follow *f = owner;

    for (;;) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
                               {.fd = f->signals_fd, .events = POLLIN}};
        int n = poll(fds, GL_COUNT(fds), TICK_MS);

        if (fds[1].revents != 0 && n > 0 && take_interrupt(f)) {
            return GL_E_STALE;
        }
        if (n > 0 && fds[0].revents != 0) {
            return 0;
        }
        report_silence(f);
        gl_human_watch_check_file(&f->watch);
        gl_progress_draw(f->progress, gl_term_now());
    }
}

/* The same without a request. */
static void wait_interruptible(struct gl_follow *f, gl_ms ms)
{
    struct pollfd fd = {.fd = f->signals_fd, .events = POLLIN};

    if (poll(&fd, 1, (int)ms) > 0) {
        (void)take_interrupt(f);
    }
}

/* ---- the log of a step ---- */

static void print_line(struct gl_follow *f, gl_str line)
{
    gl_str rest, stream;
    uint64_t dropped = 0;
    const struct gl_term *out;

    (void)gl_str_cut(line, ' ', &rest); /* the time */
    stream = gl_str_cut(rest, ' ', &rest);
    if (gl_str_starts(line, GL_S("-- "))) {
        out = &f->connection->cli->err;
        rest = line;
        (void)gl_str_u64(stream, &dropped); /* "-- N bytes dropped --" */
        f->log_dropped += dropped;
    } else {
        out = gl_str_is(stream, "e") ? &f->connection->cli->err : &f->connection->cli->out;
    }
    gl_term_print(out, rest);
}

/* Print one page; true: more may be available at once. */
static bool show_page(struct gl_follow *f, uint32_t attempt)
{
    struct gl_request rq = {.verb = GL_VERB_LOGS,
                            .job = gl_str_of(f->job),
                            .logs = {.step = gl_str_of(f->log_step),
                                     .attempt = attempt,
                                     .offset = (int64_t)f->log_offset}};
    struct gl_http_client_reply reply;
    uint64_t next = f->log_offset;
    struct gl_why why;
    gl_str rest;
    int err;

    /* A log that is not available now is requested again with the next event. */
    err = gl_connect_send(f->connection, GL_CONNECT_CALL, &rq, &reply, &why);
    if (err == GL_E_NOT_FOUND && f->connection->client.fd >= 0 && f->log_told != attempt) {
        f->log_told = attempt; /* it runs on another node */
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "%s", why.text);
    }
    if (err != 0) {
        return false;
    }
    (void)gl_str_u64(gl_http_client_header(&reply, "Glia-Next-Offset"), &next);
    f->log_offset = next;
    for (rest = reply.body; rest.n > 0;) {
        print_line(f, gl_str_cut(rest, '\n', &rest));
    }
    (void)fflush(stdout);
    return reply.body.n > 0;
}

/* Print the log of the step so far, attempt by attempt. */
static void show_log(struct gl_follow *f)
{
    const struct gl_progress_step *s =
        f->log_step == NULL ? NULL : gl_map_find(&f->progress->by_id, gl_str_of(f->log_step));
    bool any = false;

    if (s == NULL || s->attempt == 0) {
        return;
    }
    f->log_attempt = f->log_attempt == 0 ? 1 : f->log_attempt;
    for (;;) {
        while (f->interrupts == 0 && show_page(f, f->log_attempt)) {
            any = true;
        }
        if (f->log_attempt >= s->attempt) {
            break;
        }
        f->log_attempt++;
        f->log_offset = 0;
    }
    f->log_pause_ms = any ? LOG_PAUSE_MS_MIN : f->log_pause_ms * 3 / 2;
    f->log_pause_ms = f->log_pause_ms > LOG_PAUSE_MS_MAX ? LOG_PAUSE_MS_MAX : f->log_pause_ms;
}

/* ---- events ---- */

/* Remember a step that waits for a person, until it is reported or decided. */
static void note_request(struct gl_follow *f, const struct gl_json *j, gl_jnode event,
                         struct gl_arena *a)
{
    gl_str step = gl_json_str(j, gl_json_get(j, event, "step_id"), a);
    gl_str on = gl_json_str(j, gl_json_get(j, event, "blocked_on"), a);

    if (gl_str_is(on, "approval") || gl_str_is(on, "review")) {
        f->asked = gl_str_c(&f->connection->cli->arena, step);
        f->is_review = gl_str_is(on, "review");
        f->has_asked = false;
    } else if (f->asked != NULL && gl_str_is(step, f->asked)) {
        f->asked = NULL;
    }
}

/* The first of the offered decisions; WORD if it is not known. */
static gl_str first_decision(struct gl_follow *f, struct gl_api_reply *page)
{
    struct gl_request rq = {
        .verb = GL_VERB_STATUS, .job = gl_str_of(f->job), .status.step = gl_str_of(f->asked)};
    gl_str word = {0};

    if (gl_api_reply_ask(page, f->connection, &rq, NULL) == 0) {
        gl_jnode state = gl_json_get(&page->j, page->root, "workflow_state");
        gl_jnode step = gl_json_get(&page->j, gl_json_get(&page->j, state, "steps"), f->asked);
        gl_str rest;

        word = gl_str_cut(gl_api_reply_text(page, step, "choices"), ',', &rest);
    }
    return word.n > 0 ? word : GL_S("WORD");
}

/* Is a record of the job damaged? Then an answer is refused once the node has loaded the job, even
 * if the job is not paused yet. The status of a single step does not read the other ones. */
static bool has_damage(struct gl_follow *f)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(f->job)};
    struct gl_api_reply page;
    bool is_damaged = gl_api_reply_ask(&page, f->connection, &rq, NULL) == 0 &&
                      gl_api_reply_is(&page, page.root, "damaged");

    gl_api_reply_done(&page);
    return is_damaged;
}

/* The result of the step is unknown while others continue. If nothing else could continue, the job
 * would be paused, which is reported at the end. */
static void report_review(struct gl_follow *f)
{
    struct gl_cli *cli = f->connection->cli;
    bool is_agent = f->asked[0] == '@';
    const char *name = f->asked + is_agent;

    gl_progress_clear(f->progress);
    gl_cli_note(
        cli,
        "%s %s waits for a person: the result of its last attempt is unknown; to decide: %s "
        "(or done, failed)",
        is_agent ? "agent" : "step", name,
        gl_cli_hint(cli, "human respond %s %s --decision rerun", f->job, name));
    f->has_asked = true;
}

static void report_request(struct gl_follow *f)
{
    struct gl_cli *cli = f->connection->cli;
    struct gl_api_reply page;
    gl_str word;

    if (f->asked == NULL || f->has_asked || f->progress->is_quiet) {
        return;
    }
    if (f->is_review) {
        if (!gl_str_is(f->status, "paused")) {
            report_review(f);
        }
        return;
    }
    word = first_decision(f, &page);
    if (!has_damage(f)) {
        gl_progress_clear(f->progress);
        gl_cli_note(cli, "step %s waits for a person; to answer: %s", f->asked,
                    gl_cli_hint(cli, "human respond %s %s --decision %.*s", f->job, f->asked,
                                GL_STR_ARG(word)));
        f->has_asked = true;
    }
    gl_api_reply_done(&page);
}

/* The job is in quarantine and will not continue by itself. The status is that of a node that has
 * just been found. */
static void report_quarantine(struct gl_follow *f, const struct gl_json *j)
{
    struct gl_cli *cli = f->connection->cli;
    bool is_quarantined = false;

    f->is_new = false;
    (void)gl_json_bool(gl_json_get(j, gl_json_root(j), "quarantined"), &is_quarantined);
    if (is_quarantined && !f->has_told_quarantine) {
        gl_progress_clear(f->progress);
        gl_cli_note(cli,
                    "the job is in quarantine: its node crashed three times in a row while "
                    "handling it; to resume it: %s",
                    gl_cli_hint(cli, "job resume %s", f->job));
    }
    f->has_told_quarantine |= is_quarantined; /* unknown while there is no node */
}

static void check_quarantine(struct gl_follow *f)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(f->job), .status.brief = true};
    struct gl_api_reply page;

    if (gl_api_reply_ask(&page, f->connection, &rq, NULL) == 0) {
        report_quarantine(f, &page.j);
    }
    gl_api_reply_done(&page);
}

static int read_events(struct gl_follow *f, gl_str body, bool *ret_ended, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    gl_jnode root, events;
    gl_str status;
    int err = gl_json_parse(&j, body, ANSWER_BYTES_MAX, &a, reterr_why);

    if (err != 0) {
        return err;
    }
    root = gl_json_root(&j);
    events = gl_json_get(&j, root, "events");
    for (gl_jnode e = gl_json_first(&j, events); e; e = gl_json_after(&j, events, e)) {
        gl_progress_apply(f->progress, &j, e);
        note_request(f, &j, e, &a);
    }
    (void)gl_json_i64(&j, gl_json_get(&j, root, "next_seq"), &f->next_seq);
    (void)gl_json_bool(gl_json_get(&j, root, "ended"), ret_ended);
    status = gl_json_str(&j, gl_json_get(&j, root, "status"), &a);
    if (!gl_str_eq(status, f->status)) {
        f->status = gl_str_dup(&f->connection->cli->arena, status);
    }
    return 0;
}

/* Send a request that the node answers at once, or after `wait_ms`. */
static int ask(struct gl_follow *f, struct gl_request *rq, gl_ms wait_ms,
               struct gl_http_client_reply *reply, struct gl_why *reterr_why)
{
    int err;

    f->called_at = gl_term_now();
    f->wait_ms = wait_ms;
    f->connection->client.wait = on_wait;
    f->connection->client.owner = f;
    err = gl_connect_send(f->connection, GL_CONNECT_CALL, rq, reply, reterr_why);
    f->connection->client.wait = NULL;
    return err;
}

static int ask_events(struct gl_follow *f, gl_ms wait_ms, bool *ret_ended,
                      struct gl_why *reterr_why)
{
    struct gl_request rq = {
        .verb = GL_VERB_EVENTS,
        .job = gl_str_of(f->job),
        .events = {.from = f->next_seq, .wait_ms = wait_ms, .limit = GL_PAGE_MAX}};
    struct gl_http_client_reply reply;
    int err = ask(f, &rq, wait_ms, &reply, reterr_why);

    if (err == 0 && f->is_silent) {
        f->is_silent = false;
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "the node answers again");
    }
    if (err == 0) {
        err = read_events(f, reply.body, ret_ended, reterr_why);
        report_request(f); /* may send requests, which invalidates the reply */
        gl_human_watch_check_file(&f->watch);
        gl_human_watch_ask_node(&f->watch);
        if (f->is_new) {
            check_quarantine(f);
        }
    }
    return err;
}

/* ---- beginning ---- */

/* The node is there, but its shared store is not, or it is about to begin a new session: that is
 * temporary, and the job does not depend on us. */
static bool is_temporary(const struct gl_follow *f, int err)
{
    const struct gl_connection *r = f->connection;

    return err == GL_E_UNAVAILABLE && r->client.fd >= 0 && !r->is_remote &&
           gl_storeurl_is_shared(gl_str_of(r->cli->settings->values[GL_SET_STORE].text)) &&
           (r->daemon == NULL || gl_daemon_lost(r->daemon) == NULL);
}

static void wait_for_recovery(struct gl_follow *f, const char *text, gl_ms *since)
{
    gl_ms now = gl_term_now();

    *since = *since == 0 ? now : *since;
    if (now - *since > AWAY_SAID_MS && f->away_since != *since) {
        f->away_since = *since;
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "%s; waiting", text);
    }
    wait_interruptible(f, AWAY_PAUSE_MS);
}

static int ask_job(struct gl_follow *f, const char *job, struct gl_http_client_reply *ret,
                   struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(job)};
    gl_ms since = 0;

    for (;;) {
        struct gl_why why = {0};
        int err = gl_connect_send(f->connection, GL_CONNECT_RETRY, &rq, ret, &why);

        if (err == 0) {
            return 0;
        }
        if (!is_temporary(f, err) || f->interrupts > 0) {
            return gl_why(reterr_why, gl_err_join(err, why.reason), "%s", why.text);
        }
        wait_for_recovery(f, why.text, &since);
    }
}

int gl_follow_begin(struct gl_follow *f, const char *job, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_http_client_reply reply;
    struct gl_json j;
    int64_t last_seq = 0;
    int err = ask_job(f, job, &reply, reterr_why);

    if (err == 0) {
        err = gl_json_parse(&j, reply.body, ANSWER_BYTES_MAX, &a, reterr_why);
    }
    if (err != 0) {
        return err;
    }
    f->job = gl_str_c(&f->connection->cli->arena,
                      gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "job_id"), &a));
    (void)gl_json_i64(&j, gl_json_get(&j, gl_json_root(&j), "last_seq"), &last_seq);
    f->next_seq = last_seq + 1;
    f->status = gl_str_dup(&f->connection->cli->arena,
                           gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "status"), &a));
    gl_progress_load(f->progress, &j, gl_json_root(&j));
    report_quarantine(f, &j);
    gl_human_watch_start(&f->watch, f->connection, f->progress, &j, gl_json_root(&j));
    return 0;
}

/* ---- following ---- */

/* This process is the node: pause the job, and stay until nothing runs that may be stopped. */
static void pause_job(struct gl_follow *f)
{
    struct gl_cli *cli = f->connection->cli;
    struct gl_request rq = {
        .verb = GL_VERB_PAUSE,
        .job = gl_str_of(f->job),
        .command = {.who = gl_str_of(gl_cli_user()), .reason = GL_S("interrupted")}};
    struct gl_http_client_reply reply;
    struct gl_why why;
    int err;

    gl_progress_clear(f->progress);
    gl_cli_note(cli, "interrupted: pausing the job; interrupt again to exit at once");
    f->is_pausing = true;
    err = gl_connect_send(f->connection, GL_CONNECT_CALL, &rq, &reply, &why);
    if (err != 0 && err != GL_E_STATE) {
        gl_cli_note(cli, "%s", why.text);
    }
}

static int exit_code(const struct gl_follow *f)
{
    if (gl_str_is(f->status, "completed")) {
        return GL_EXIT_OK;
    }
    if (gl_str_is(f->status, "paused")) {
        return f->is_pausing ? GL_EXIT_INTERRUPTED : GL_EXIT_WAITING;
    }
    return GL_EXIT_FAILED;
}

/* 0: continue; else an exit code. */
static int on_interrupt(struct gl_follow *f)
{
    struct gl_cli *cli = f->connection->cli;

    f->interrupts = 0;
    if (f->pauses && f->connection->daemon != NULL) {
        pause_job(f);
        return 0;
    }
    gl_progress_clear(f->progress);
    gl_cli_note(cli,
                "stopped waiting; the job continues as long as its node runs. To see its state: %s",
                gl_cli_hint(cli, "job status %s", f->job));
    gl_cli_note(cli, "to resume it after the node has stopped: %s",
                gl_cli_hint(cli, "job resume %s", f->job));
    return GL_EXIT_INTERRUPTED;
}

/* The node is gone or cannot answer: find the next one. Returns 0 or an exit code. */
static int on_trouble(struct gl_follow *f, int err, const char *text, gl_ms *since)
{
    struct gl_why why;

    if (is_temporary(f, err)) {
        wait_for_recovery(f, text, since);
        return 0;
    }
    if (!gl_connect_is_lost(f->connection, err) ||
        (*since != 0 && gl_term_now() - *since > GL_CONNECT_TIMEOUT_MS &&
         !f->connection->is_store_down)) {
        gl_progress_clear(f->progress);
        return gl_cli_fail(f->connection->cli, err, text);
    }
    *since = *since == 0 ? gl_term_now() : *since;
    gl_http_client_disconnect(&f->connection->client);
    err = gl_connect_open(f->connection, &why);
    if (err != 0 && f->connection->is_store_down) { /* e.g. a full disk: temporary, too */
        wait_for_recovery(f, why.text, since);
        return 0;
    }
    if (err != 0) {
        gl_progress_clear(f->progress);
        return gl_cli_fail_why(f->connection->cli, err, &why);
    }
    f->is_new = true;
    if (f->connection->daemon == NULL) {
        wait_interruptible(f, 20);
    }
    return 0;
}

static bool is_settled(const struct gl_follow *f, bool ended)
{
    bool is_stopping = gl_str_is(f->status, "pausing") || gl_str_is(f->status, "cancelling");
    bool is_obeyed = !is_stopping || f->connection->daemon == NULL;

    return ended || gl_str_is(f->status, "paused") || (f->only_stops && is_obeyed);
}

/* A node that is not ready (for example, its disk is full) does not end the job, but the user
 * should know. */
static void check_node(struct gl_follow *f)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_request rq = {.verb = GL_VERB_NODE};
    struct gl_http_client_reply reply;
    struct gl_json j;
    gl_str reason;

    if (ask(f, &rq, 0, &reply, NULL) != 0 ||
        gl_json_parse(&j, reply.body, ANSWER_BYTES_MAX, &a, NULL) != 0) {
        return; /* the next question meets the same trouble */
    }
    reason = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reason"), &a);
    if ((reason.n > 0) != f->is_stuck) {
        f->is_stuck = reason.n > 0;
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "%.*s%s", GL_STR_ARG(reason),
                    f->is_stuck ? "; waiting" : "the node works normally again");
    }
}

/* The same for a job that no node may take. If the job cannot be read, that is an error. */
static int check_job(struct gl_follow *f, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(f->job), .status.brief = true};
    struct gl_api_reply page;
    int err = gl_api_reply_ask(&page, f->connection, &rq, reterr_why);

    if (err == 0 && gl_api_reply_is(&page, page.root, "stranded") != f->is_stranded) {
        f->is_stranded = !f->is_stranded;
        gl_progress_clear(f->progress);
        gl_cli_note(f->connection->cli, "%.*s%s",
                    GL_STR_ARG(gl_api_reply_text(&page, page.root, "why")),
                    f->is_stranded ? "; waiting" : "");
    }
    gl_api_reply_done(&page);
    return err == GL_E_DAMAGED ? err : 0; /* the next question meets any other trouble */
}

/* No events for a while: does the node or the job report a problem? Both intervals are constant, so
 * that a problem shows within seconds however long the job has been quiet. */
static int check_health(struct gl_follow *f, bool has_news, struct gl_why *reterr_why)
{
    bool is_odd = f->is_stuck || f->is_stranded;
    gl_ms now = gl_term_now();

    f->moved_at = has_news && !is_odd ? now : f->moved_at;
    if (now - f->moved_at < QUIET_MS) {
        return 0;
    }
    f->moved_at = now;
    check_node(f);
    if (now - f->looked_at < LOOK_MS) {
        return 0;
    }
    f->looked_at = now;
    return check_job(f, reterr_why);
}

int gl_follow_job(struct gl_follow *f)
{
    bool ended = false;
    gl_ms trouble_since = 0, wait_ms = 0; /* the current state first, then new events */
    int code = 0;

    f->moved_at = gl_term_now();
    while (code == 0) {
        struct gl_why why;
        int64_t seq = f->next_seq;
        int err = ask_events(f, wait_ms, &ended, &why);

        if (f->interrupts > 0) {
            code = on_interrupt(f);
        } else if (err != 0) {
            code = on_trouble(f, err, why.text, &trouble_since);
            wait_ms = 0;
        } else {
            trouble_since = 0;
            wait_ms = f->log_step != NULL ? f->log_pause_ms : QUIET_MS;
            show_log(f);
            gl_progress_draw(f->progress, gl_term_now());
            if (is_settled(f, ended)) {
                break;
            }
            err = check_health(f, f->next_seq != seq, &why);
            code = err != 0 ? on_trouble(f, err, why.text, &trouble_since) : 0;
            wait_ms = f->interrupts > 0 ? 0 : wait_ms;
        }
    }
    f->progress->drawn_at = 0; /* always draw the final state */
    gl_progress_draw(f->progress, gl_term_now());
    f->progress->drawn = 0;
    if (f->log_dropped > 0) {
        gl_cli_note(f->connection->cli, "%llu bytes of its output were dropped",
                    (unsigned long long)f->log_dropped);
    }
    return code != 0 ? code : exit_code(f);
}

int gl_follow_ask(struct gl_follow *f, struct gl_request *rq, struct gl_api_reply *p)
{
    gl_ms trouble_since = 0;
    int code = 0;

    for (;;) {
        struct gl_why why;
        int err = gl_api_reply_ask(p, f->connection, rq, &why);

        if (err == 0) {
            return 0;
        }
        code = on_trouble(f, err, why.text, &trouble_since);
        if (code != 0 || f->interrupts > 0) {
            return code != 0 ? code : GL_EXIT_INTERRUPTED;
        }
        gl_api_reply_done(p);
    }
}
