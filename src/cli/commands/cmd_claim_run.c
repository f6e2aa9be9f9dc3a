/* cmd_claim_run.c - glia claim run: runs a command only while its claim is held.
 *
 * The lease is counted from the moment a request was sent, by our own clock: the store granted it
 * later, so our count ends before the store's. The claim is renewed at a third of the lease. If
 * renewals keep failing, the command gets SIGTERM when a fifth of the lease is left and SIGKILL
 * when a twentieth is left: before anyone else can acquire the claim. The supervisor enforces that,
 * even if this process hangs or dies.
 *
 * A lost claim is neither completed nor failed: it belongs to someone else. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/connect/claim_client.h"
#include "cli/supervise.h"

enum {
    GRACE_MS = 5000,
    POLL_MS = 500,  /* longest pause between two acquisition attempts */
    RETRY_MS = 200, /* after a renewal without a reply */
};

struct claim_run {
    struct gl_cli *cli;
    struct gl_claim_client claim;
    gl_ms wait_ms, grace_ms;
    struct gl_supervisor supervisor;
    bool is_running; /* the command runs */
    int signals;     /* descriptor of the signals */
    sigset_t before;
    int caught;    /* the first signal, while the command does not run */
    gl_ms sent_at; /* when the last renewal that succeeded was sent */
    gl_ms renew_at;
    gl_ms give_up_at;  /* deadline of the current call */
    bool is_lost;      /* someone else holds it */
    bool has_reported; /* reported: the claim could not be renewed */
    struct gl_why why;
};

static gl_ms term_at(const struct claim_run *r)
{
    return r->sent_at + r->claim.lease_ms - r->claim.lease_ms / 5;
}

static gl_ms kill_at(const struct claim_run *r)
{
    return r->sent_at + r->claim.lease_ms - r->claim.lease_ms / 20;
}

/* ---- signals ---- */

static int open_signals(struct claim_run *r)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < GL_COUNT(numbers); i++) {
        sigaddset(&set, numbers[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, &r->before);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals < 0 ? gl_cli_fail(r->cli, GL_E_IO, "cannot watch for signals") : 0;
}

/* Pass signals to the command; before it runs, the first one ends us. */
static void read_signals(struct claim_run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (r->is_running) {
            gl_supervise_signal(&r->supervisor, (int)info.ssi_signo);
        } else if (r->caught == 0 && info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2) {
            r->caught = (int)info.ssi_signo;
        }
    }
}

/* Wait until `fd` can be read, a signal arrives, the command ends, or the time is `until`. */
static void wait_for_event(struct claim_run *r, int fd, gl_ms until)
{
    struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                           {.fd = r->is_running ? r->supervisor.from : -1, .events = POLLIN},
                           {.fd = fd, .events = POLLIN}};
    gl_ms left = until - gl_supervise_now();

    left = left < 0 ? 0 : left > 60000 ? 60000 : left;
    (void)poll(fds, GL_COUNT(fds), (int)left); /* the caller checks what happened */
    read_signals(r);
}

static bool has_ended(const struct claim_run *r)
{
    struct pollfd fd = {.fd = r->supervisor.from, .events = POLLIN};

    return r->is_running && poll(&fd, 1, 0) > 0;
}

/* Called while waiting for a reply of the node. */
static int wait_answer(void *owner, int fd)
{
    struct claim_run *r = owner;
    struct pollfd one = {.fd = fd, .events = POLLIN};

    while (poll(&one, 1, 0) <= 0) {
        if (gl_supervise_now() >= r->give_up_at || has_ended(r)) {
            return GL_E_UNAVAILABLE;
        }
        wait_for_event(r, fd, r->give_up_at);
    }
    return 0;
}

/* ---- acquiring ---- */

static int acquire(struct claim_run *r, gl_ms *ret_remaining, struct gl_why *reterr_why)
{
    struct gl_claim_answer answer;
    gl_ms sent_at = gl_supervise_now();
    gl_ms lease_ms = r->claim.lease_ms != 0 ? r->claim.lease_ms : GL_LEASE_MS_DEFAULT;
    int err;

    r->give_up_at = sent_at + (lease_ms > GL_CONNECT_TIMEOUT_MS ? lease_ms : GL_CONNECT_TIMEOUT_MS);
    err = gl_claim_client_call(&r->claim, GL_VERB_CLAIM_ACQUIRE, true, &answer, reterr_why);
    *ret_remaining = answer.remaining_ms;
    gl_claim_answer_done(&answer);
    r->sent_at = sent_at;
    r->renew_at = sent_at + r->claim.lease_ms / 3;
    return err;
}

/* Acquire the claim as soon as it is free, within --wait. */
static int acquire_in_time(struct claim_run *r, struct gl_why *reterr_why)
{
    gl_ms until = gl_supervise_now() + r->wait_ms, remaining;
    bool has_reported = false;

    for (;;) {
        int err = acquire(r, &remaining, reterr_why);
        gl_ms now = gl_supervise_now();

        if (err == 0 && now >= term_at(r) && r->caught == 0) {
            continue; /* the reply came too late to begin: ask for the same claim once more */
        }
        if (err != GL_E_BUSY || r->caught != 0 || now >= until) {
            return err;
        }
        if (!has_reported) {
            gl_cli_note(r->cli, "%s; waiting", reterr_why->text);
            has_reported = true;
        }
        remaining = remaining < 1 ? 1 : remaining > POLL_MS ? POLL_MS : remaining;
        wait_for_event(r, -1, now + remaining < until ? now + remaining : until);
        if (r->caught != 0) {
            return err;
        }
    }
}

/* ---- holding ---- */

static void renew(struct claim_run *r)
{
    struct gl_claim_answer answer;
    gl_ms sent_at = gl_supervise_now();
    int err;

    r->give_up_at = sent_at + r->claim.lease_ms / 3; /* a slow store needs time, too */
    err = gl_claim_client_call(&r->claim, GL_VERB_CLAIM_RENEW, false, &answer, &r->why);
    gl_claim_answer_done(&answer);
    if (err == 0) {
        r->sent_at = sent_at;
        r->renew_at = sent_at + r->claim.lease_ms / 3;
        r->has_reported = false;
        gl_supervise_extend(&r->supervisor, term_at(r), kill_at(r));
    } else if (err == GL_E_NOT_OWNER) {
        r->is_lost = true;
        r->renew_at = INT64_MAX;
        gl_cli_note(r->cli, "the claim is lost: %s", r->why.text);
        gl_supervise_terminate(&r->supervisor);
    } else {
        r->renew_at = gl_supervise_now() + RETRY_MS;
        if (!r->has_reported && !has_ended(r)) {
            gl_cli_note(r->cli, "cannot renew the claim: %s; trying again", r->why.text);
            r->has_reported = true;
        }
    }
}

static void hold_claim(struct claim_run *r, struct gl_supervise_result *ret)
{
    while (!gl_supervise_wait(&r->supervisor, 0, ret)) {
        gl_ms now = gl_supervise_now();

        if (now >= r->renew_at && now < kill_at(r)) {
            renew(r);
        } else {
            wait_for_event(r, -1, now >= kill_at(r) ? now + POLL_MS : r->renew_at);
        }
    }
    r->is_running = false;
}

/* ---- ending ---- */

static int exit_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* End the claim; retry until the node answers or the lease has expired. */
static int end_claim(struct claim_run *r, enum gl_verb verb, int code)
{
    gl_ms until = r->sent_at + r->claim.lease_ms;

    for (;;) {
        struct gl_claim_answer answer;
        struct gl_why why;
        int err;

        r->give_up_at = gl_supervise_now() + GL_CONNECT_TIMEOUT_MS;
        err = gl_claim_client_call(&r->claim, verb, false, &answer, &why);
        gl_claim_answer_done(&answer);
        if (err == 0) {
            return code;
        }
        if (err == GL_E_NOT_OWNER) {
            return gl_claim_client_fail(r->cli, gl_err_join(err, why.reason), why.text);
        }
        if (gl_supervise_now() >= until) {
            gl_cli_note(r->cli,
                        "the command has ended, but its claim could not be ended and will expire:");
            return gl_cli_fail_why(r->cli, err, &why);
        }
        wait_for_event(r, -1, gl_supervise_now() + RETRY_MS);
    }
}

static int finish(struct claim_run *r, const struct gl_supervise_result *end)
{
    int code = exit_of(end->status);

    if (end->is_stopped || r->is_lost) {
        return gl_claim_client_fail(r->cli, GL_E_NOT_OWNER,
                                    r->is_lost
                                        ? "the command was stopped: someone else holds its claim"
                                        : "the command was stopped: its claim could not be renewed "
                                          "in time");
    }
    if (code == 0) {
        return end_claim(r, GL_VERB_CLAIM_COMPLETE, 0);
    }
    r->claim.error_detail =
        WIFSIGNALED(end->status)
            ? gl_str_fmt(&r->cli->arena, "ended by signal %d", WTERMSIG(end->status)).p
            : gl_str_fmt(&r->cli->arena, "exit code %d", code).p;
    return end_claim(r, GL_VERB_CLAIM_FAIL, code);
}

/* ---- the command ---- */

/* The environment for 'glia claim' inside the command. */
static void set_environment(const struct claim_run *r)
{
    struct gl_cli *cli = r->cli;
    const char *server = cli->settings->values[GL_SET_SERVER].text;

    (void)setenv("GLIA_CLAIM_KEY", r->claim.key, 1);
    (void)setenv("GLIA_CLAIM_OWNER", r->claim.owner, 1);
    (void)setenv("GLIA_CLAIM_FENCE",
                 gl_str_fmt(&cli->arena, "%llu", (unsigned long long)r->claim.fence).p, 1);
    (void)setenv("GLIA_CLAIM_ATTEMPT",
                 gl_str_fmt(&cli->arena, "%llu", (unsigned long long)r->claim.attempt).p, 1);
    (void)setenv("GLIA_DATA_DIR", cli->data, 1);
    if (server[0] != '\0') {
        (void)setenv("GLIA_SERVER", server, 1);
    }
}

static int start(struct claim_run *r)
{
    struct gl_supervise_config wish = {.argv = r->cli->rest,
                                       .mask = &r->before,
                                       .grace_ms = r->grace_ms,
                                       .term_at = term_at(r),
                                       .kill_at = kill_at(r)};
    struct gl_supervise_result end;
    struct gl_why why;
    int err;

    set_environment(r);
    (void)fflush(NULL);
    err = gl_supervise_start(&r->supervisor, &wish, &why);
    if (err != 0) {
        (void)gl_cli_fail_why(r->cli, err, &why);
        r->claim.error_detail = why.text;
        return end_claim(r, GL_VERB_CLAIM_FAIL,
                         err == GL_E_NOT_FOUND ? 127 : 126); /* as in a shell */
    }
    r->is_running = true;
    hold_claim(r, &end);
    return finish(r, &end);
}

static int claim_and_run(struct claim_run *r)
{
    struct gl_why why;
    int err = acquire_in_time(r, &why);

    if (r->caught != 0) {
        if (err == 0) {
            r->claim.error_detail = "interrupted before it began";
            (void)end_claim(r, GL_VERB_CLAIM_FAIL, 0); /* if this fails, the lease expires */
        }
        return 128 + r->caught;
    }
    if (err == GL_E_EXISTS) {
        gl_cli_note(r->cli, "%s; nothing to do", why.text);
        return GL_EXIT_OK;
    }
    return err != 0 ? gl_claim_client_fail(r->cli, gl_err_join(err, why.reason), why.text)
                    : start(r);
}

static int read_options(struct claim_run *r)
{
    static const struct {
        const char *name;
        size_t at;
    } spans[] = {{"--wait", offsetof(struct claim_run, wait_ms)},
                 {"--grace", offsetof(struct claim_run, grace_ms)}};
    struct gl_cli *cli = r->cli;
    int code = gl_claim_client_read_options(
        &r->claim, cli,
        gl_claim_client_default_owner(cli, gl_str_fmt(&cli->arena, ":%ld", (long)getpid()).p));

    for (size_t i = 0; i < GL_COUNT(spans) && code == 0; i++) {
        const char *text = gl_cli_option(cli, spans[i].name);

        if (text != NULL &&
            !gl_times_parse_span(gl_str_of(text), (gl_ms *)((char *)r + spans[i].at))) {
            code =
                gl_cli_usage(cli, "%s needs a duration, like 30s, not '%s'", spans[i].name, text);
        }
    }
    if (code == 0 && r->claim.key == NULL) {
        code = gl_cli_usage(cli, "KEY is missing");
    }
    if (code == 0 && (cli->rest == NULL || cli->rest[0] == NULL)) {
        code = gl_cli_usage(cli, "COMMAND is missing; put it after --");
    }
    return code;
}

int gl_cmd_claim_run(struct gl_cli *cli)
{
    struct claim_run r = {.cli = cli, .grace_ms = GRACE_MS, .signals = -1};
    int code = read_options(&r);

    code = code != 0 ? code : open_signals(&r);
    if (code == 0) {
        r.claim.wait = wait_answer;
        r.claim.wait_owner = &r;
        code = claim_and_run(&r);
        (void)close(r.signals);
    }
    return code;
}
