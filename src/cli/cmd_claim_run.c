/* cmd_claim_run.c - glia claim run: a command that runs only while its claim is held.
 *
 * The lease is counted from the moment a request was sent, by our own clock: the store granted it
 * later, so ours is over before the store's. It is renewed at a third of it. If that fails for too
 * long, the command gets SIGTERM when a fifth of the lease is left and SIGKILL when a twentieth is:
 * before anybody else can have the claim. The minder sees to that, whatever happens to us.
 *
 * A claim that is lost is neither completed nor failed: it is somebody else's. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/claimant.h"
#include "cli/minder.h"

enum {
    GRACE_MS = 5000,
    POLL_MS = 500,  /* how often one who waits looks again, at most */
    RETRY_MS = 200, /* after a renewal that was not answered */
};

struct run {
    struct gl_cli *cli;
    struct gl_claimant claimant;
    gl_ms wait_ms, grace_ms;
    struct gl_minder minder;
    bool is_minded; /* the command runs */
    int signals;    /* descriptor */
    sigset_t before;
    int caught;    /* the first signal, while the command does not run */
    gl_ms sent_at; /* when the last renewal that succeeded was sent */
    gl_ms renew_at;
    gl_ms give_up_at; /* of the call under way */
    bool is_lost;     /* somebody else has it */
    bool is_told;     /* that it could not be renewed */
    struct gl_why why;
};

static gl_ms term_at(const struct run *r)
{
    return r->sent_at + r->claimant.lease_ms - r->claimant.lease_ms / 5;
}

static gl_ms kill_at(const struct run *r)
{
    return r->sent_at + r->claimant.lease_ms - r->claimant.lease_ms / 20;
}

/* ---- signals ---- */

static int open_signals(struct run *r)
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

/* Each is the command's business; without one, ours. */
static void hear_signals(struct run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (r->is_minded) {
            gl_minder_signal(&r->minder, (int)info.ssi_signo);
        } else if (r->caught == 0 && info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2) {
            r->caught = (int)info.ssi_signo;
        }
    }
}

/* Until `fd` can be read, a signal comes, the command has ended, or it is `until`. */
static void rest(struct run *r, int fd, gl_ms until)
{
    struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                           {.fd = r->is_minded ? r->minder.from : -1, .events = POLLIN},
                           {.fd = fd, .events = POLLIN}};
    gl_ms left = until - gl_minder_now();

    left = left < 0 ? 0 : left > 60000 ? 60000 : left;
    (void)poll(fds, GL_COUNT(fds), (int)left); /* whatever it was: who called looks for itself */
    hear_signals(r);
}

static bool has_ended(const struct run *r)
{
    struct pollfd fd = {.fd = r->minder.from, .events = POLLIN};

    return r->is_minded && poll(&fd, 1, 0) > 0;
}

/* While the node has not answered. */
static int wait_answer(void *owner, int fd)
{
    struct run *r = owner;
    struct pollfd one = {.fd = fd, .events = POLLIN};

    while (poll(&one, 1, 0) <= 0) {
        if (gl_minder_now() >= r->give_up_at || has_ended(r)) {
            return GL_E_UNAVAILABLE;
        }
        rest(r, fd, r->give_up_at);
    }
    return 0;
}

/* ---- getting it ---- */

static int acquire(struct run *r, gl_ms *ret_remaining, struct gl_why *reterr_why)
{
    struct gl_claim_answer answer;
    gl_ms sent_at = gl_minder_now();
    gl_ms lease_ms = r->claimant.lease_ms != 0 ? r->claimant.lease_ms : GL_LEASE_MS_DEFAULT;
    int err;

    r->give_up_at = sent_at + (lease_ms > GL_REACH_PATIENCE_MS ? lease_ms : GL_REACH_PATIENCE_MS);
    err = gl_claimant_call(&r->claimant, GL_VERB_CLAIM_ACQUIRE, true, &answer, reterr_why);
    *ret_remaining = answer.remaining_ms;
    gl_claimant_done(&answer);
    r->sent_at = sent_at;
    r->renew_at = sent_at + r->claimant.lease_ms / 3;
    return err;
}

/* As soon as nobody else has it, or its time of waiting is over. */
static int acquire_in_time(struct run *r, struct gl_why *reterr_why)
{
    gl_ms until = gl_minder_now() + r->wait_ms, remaining;
    bool has_said = false;

    for (;;) {
        int err = acquire(r, &remaining, reterr_why);
        gl_ms now = gl_minder_now();

        if (err == 0 && now >= term_at(r) && r->caught == 0) {
            continue; /* the answer came too late to begin: the same claim once more */
        }
        if (err != GL_E_BUSY || r->caught != 0 || now >= until) {
            return err;
        }
        if (!has_said) {
            gl_cli_say(r->cli, "%s; waiting", reterr_why->text);
            has_said = true;
        }
        remaining = remaining < 1 ? 1 : remaining > POLL_MS ? POLL_MS : remaining;
        rest(r, -1, now + remaining < until ? now + remaining : until);
        if (r->caught != 0) {
            return err;
        }
    }
}

/* ---- holding it ---- */

static void renew(struct run *r)
{
    struct gl_claim_answer answer;
    gl_ms sent_at = gl_minder_now();
    int err;

    r->give_up_at = sent_at + r->claimant.lease_ms / 3; /* a slow store needs time, too */
    err = gl_claimant_call(&r->claimant, GL_VERB_CLAIM_RENEW, false, &answer, &r->why);
    gl_claimant_done(&answer);
    if (err == 0) {
        r->sent_at = sent_at;
        r->renew_at = sent_at + r->claimant.lease_ms / 3;
        r->is_told = false;
        gl_minder_allow(&r->minder, term_at(r), kill_at(r));
    } else if (err == GL_E_NOT_OWNER) {
        r->is_lost = true;
        r->renew_at = INT64_MAX;
        gl_cli_say(r->cli, "the claim is lost: %s", r->why.text);
        gl_minder_forbid(&r->minder);
    } else {
        r->renew_at = gl_minder_now() + RETRY_MS;
        if (!r->is_told && !has_ended(r)) {
            gl_cli_say(r->cli, "the claim could not be renewed: %s; trying again", r->why.text);
            r->is_told = true;
        }
    }
}

static void hold(struct run *r, struct gl_minder_end *ret)
{
    while (!gl_minder_wait(&r->minder, 0, ret)) {
        gl_ms now = gl_minder_now();

        if (now >= r->renew_at && now < kill_at(r)) {
            renew(r);
        } else {
            rest(r, -1, now >= kill_at(r) ? now + POLL_MS : r->renew_at);
        }
    }
    r->is_minded = false;
}

/* ---- giving it back ---- */

static int exit_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Say how it ended, until somebody hears it or the lease is over anyway. */
static int tell(struct run *r, enum gl_verb verb, int code)
{
    gl_ms until = r->sent_at + r->claimant.lease_ms;

    for (;;) {
        struct gl_claim_answer answer;
        struct gl_why why;
        int err;

        r->give_up_at = gl_minder_now() + GL_REACH_PATIENCE_MS;
        err = gl_claimant_call(&r->claimant, verb, false, &answer, &why);
        gl_claimant_done(&answer);
        if (err == 0) {
            return code;
        }
        if (err == GL_E_NOT_OWNER) {
            return gl_claimant_fail(r->cli, gl_err_join(err, why.reason), why.text);
        }
        if (gl_minder_now() >= until) {
            gl_cli_say(r->cli, "the command has ended, but the claim runs out by itself:");
            return gl_cli_fail_why(r->cli, err, &why);
        }
        rest(r, -1, gl_minder_now() + RETRY_MS);
    }
}

static int finish(struct run *r, const struct gl_minder_end *end)
{
    int code = exit_of(end->status);

    if (end->is_stopped || r->is_lost) {
        return gl_claimant_fail(r->cli, GL_E_NOT_OWNER,
                                r->is_lost
                                    ? "the command was stopped: somebody else has its claim"
                                    : "the command was stopped: its claim could not be renewed "
                                      "in time");
    }
    if (code == 0) {
        return tell(r, GL_VERB_CLAIM_COMPLETE, 0);
    }
    r->claimant.error_detail =
        WIFSIGNALED(end->status)
            ? gl_str_fmt(&r->cli->arena, "ended by signal %d", WTERMSIG(end->status)).p
            : gl_str_fmt(&r->cli->arena, "exit code %d", code).p;
    return tell(r, GL_VERB_CLAIM_FAIL, code);
}

/* ---- the command ---- */

/* What a 'glia claim ...' inside needs to know. */
static void set_environment(const struct run *r)
{
    struct gl_cli *cli = r->cli;
    const char *server = cli->settings->values[GL_SET_SERVER].text;

    (void)setenv("GLIA_CLAIM_KEY", r->claimant.key, 1);
    (void)setenv("GLIA_CLAIM_OWNER", r->claimant.owner, 1);
    (void)setenv("GLIA_CLAIM_FENCE",
                 gl_str_fmt(&cli->arena, "%llu", (unsigned long long)r->claimant.fence).p, 1);
    (void)setenv("GLIA_CLAIM_ATTEMPT",
                 gl_str_fmt(&cli->arena, "%llu", (unsigned long long)r->claimant.attempt).p, 1);
    (void)setenv("GLIA_DATA_DIR", cli->data, 1);
    if (server[0] != '\0') {
        (void)setenv("GLIA_SERVER", server, 1);
    }
}

static int start(struct run *r)
{
    struct gl_minder_wish wish = {.argv = r->cli->rest,
                                  .mask = &r->before,
                                  .grace_ms = r->grace_ms,
                                  .term_at = term_at(r),
                                  .kill_at = kill_at(r)};
    struct gl_minder_end end;
    struct gl_why why;
    int err;

    set_environment(r);
    (void)fflush(NULL);
    err = gl_minder_start(&r->minder, &wish, &why);
    if (err != 0) {
        (void)gl_cli_fail_why(r->cli, err, &why);
        r->claimant.error_detail = why.text;
        return tell(r, GL_VERB_CLAIM_FAIL,
                    err == GL_E_NOT_FOUND ? 127 : 126); /* as a shell has it */
    }
    r->is_minded = true;
    hold(r, &end);
    return finish(r, &end);
}

static int claim_and_run(struct run *r)
{
    struct gl_why why;
    int err = acquire_in_time(r, &why);

    if (r->caught != 0) {
        if (err == 0) {
            r->claimant.error_detail = "interrupted before it began";
            (void)tell(r, GL_VERB_CLAIM_FAIL, 0); /* if it cannot be told, the lease runs out */
        }
        return 128 + r->caught;
    }
    if (err == GL_E_EXISTS) {
        gl_cli_say(r->cli, "%s; nothing to do", why.text);
        return GL_EXIT_OK;
    }
    return err != 0 ? gl_claimant_fail(r->cli, gl_err_join(err, why.reason), why.text) : start(r);
}

static int read_options(struct run *r)
{
    static const struct {
        const char *name;
        size_t at;
    } spans[] = {{"--wait", offsetof(struct run, wait_ms)},
                 {"--grace", offsetof(struct run, grace_ms)}};
    struct gl_cli *cli = r->cli;
    int code =
        gl_claimant_read(&r->claimant, cli,
                         gl_claimant_name(cli, gl_str_fmt(&cli->arena, ":%ld", (long)getpid()).p));

    for (size_t i = 0; i < GL_COUNT(spans) && code == 0; i++) {
        const char *text = gl_cli_option(cli, spans[i].name);

        if (text != NULL &&
            !gl_when_parse_span(gl_str_of(text), (gl_ms *)((char *)r + spans[i].at))) {
            code =
                gl_cli_usage(cli, "%s needs a duration, like 30s, not '%s'", spans[i].name, text);
        }
    }
    if (code == 0 && r->claimant.key == NULL) {
        code = gl_cli_usage(cli, "KEY is missing");
    }
    if (code == 0 && (cli->rest == NULL || cli->rest[0] == NULL)) {
        code = gl_cli_usage(cli, "what shall run? It stands behind --");
    }
    return code;
}

int gl_cmd_claim_run(struct gl_cli *cli)
{
    struct run r = {.cli = cli, .grace_ms = GRACE_MS, .signals = -1};
    int code = read_options(&r);

    code = code != 0 ? code : open_signals(&r);
    if (code == 0) {
        r.claimant.wait = wait_answer;
        r.claimant.wait_owner = &r;
        code = claim_and_run(&r);
        (void)close(r.signals);
    }
    return code;
}
