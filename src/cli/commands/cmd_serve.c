/* cmd_serve.c - glia serve: runs a node until it is stopped. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/daemon.h"
#include "base/check.h"
#include "cli/cli.h"
#include "cli/connect/connect.h"
#include "cli/connect/http_client.h"
#include "os/fs.h"
#include "os/lock.h"
#include "os/notify.h"
#include "os/paths.h"

enum {
    TAKE_OVER_MS_MAX = 10000, /* how long the previous node may take to stop */
    TICK_MS = 1000,
    WAIT_TICK_MS = 100,     /* while the node is not ready */
    PATIENCE_MS = 500,      /* report a stuck operation after this time: it may recover before */
    START_EXTRA_MS = 60000, /* time requested from systemd while the store is unreachable */
    DRAIN_TICK_MS = 50,
};

struct serve {
    struct gl_cli *cli;
    struct gl_daemon *daemon;
    struct gl_notify notify;
    struct gl_lock reservation;
    int signals_fd;
    bool was_ready;              /* at the last check */
    enum gl_store_health mood;   /* the same for the store */
    uint64_t births;             /* the same */
    char reported[GL_WHY_BYTES]; /* why the node was not ready at the last check */
    gl_ms stuck_at;              /* since when something has been stuck; 0: nothing is */
    bool has_asked;              /* another node was asked to stop, and this was reported */
    gl_ms extended_at;           /* when systemd was last asked for more time to start */
    gl_ms beat_at;               /* when the watchdog was last fed */
};

/* ---- signals ---- */

static int block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Wait at most `ms`; true: stop. */
static bool wait_signal(struct serve *s, gl_ms ms)
{
    struct pollfd fd = {.fd = s->signals_fd, .events = POLLIN};
    struct signalfd_siginfo info;

    (void)poll(&fd, 1, (int)ms);
    while (read(s->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGHUP) {
            return true;
        }
        gl_cli_note(s->cli, "SIGHUP is ignored: settings are read when the node starts");
    }
    return false;
}

static void exit_now(int number)
{
    (void)number;
    _exit(GL_EXIT_OK); /* the store and the keeper tolerate it */
}

/* The descriptor is no longer read: a further signal ends the process at once.
 */
static void restore_signals(void)
{
    struct sigaction action = {.sa_handler = exit_now};
    sigset_t set;

    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- starting ---- */

static int start(struct serve *s, struct gl_why *reterr_why)
{
    struct gl_daemon_config config;

    gl_connect_node_config(s->cli, &config);
    config.what = "serve";
    config.listen = s->cli->settings->values[GL_SET_LISTEN].text;
    config.stays = true;
    return gl_daemon_start(&s->daemon, &config, reterr_why);
}

/* Ask the current node to stop. False: it is another `glia serve`. If the node does not answer, it
 * is starting or stopping; ask again. */
static bool ask_to_yield(struct serve *s)
{
    struct gl_http_client client;
    struct gl_http_client_reply reply = {0};
    int err;

    gl_http_client_init(&client, gl_paths_in(&s->cli->arena, s->cli->data, GL_PATHS_SOCKET));
    client.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    err = gl_http_client_connect(&client, NULL);
    if (err == 0) {
        err = gl_http_client_call(&client, "POST", "/v1/node/yield", (gl_str){0}, &reply, NULL);
        /* The node may be gone before its reply is sent. */
        if ((err == GL_E_GONE || reply.status == 202) && !s->has_asked) {
            s->has_asked = true;
            gl_cli_note(s->cli, "taking over %s from a command that is its node", s->cli->data);
        }
    }
    gl_http_client_done(&client);
    return err != 0 || reply.status != 409;
}

/* 0, a code, or GL_E_STALE: a signal came first. */
static int take_over(struct serve *s, struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + TAKE_OVER_MS_MAX;
    int err = gl_paths_prepare(s->cli->data, s->cli->context, reterr_why);

    if (err == 0) {
        err = gl_lock_reserve(&s->reservation, s->cli->data, reterr_why);
    }
    while (err == 0) {
        err = start(s, reterr_why);
        if (err != GL_E_BUSY || !ask_to_yield(s) || gl_term_now() > until) {
            break;
        }
        err = wait_signal(s, 20) ? GL_E_STALE : 0;
    }
    gl_lock_drop(&s->reservation);
    return err;
}

static void report_ready(struct serve *s)
{
    struct gl_cli *cli = s->cli;
    const gl_str *jobs;
    size_t n = gl_daemon_quarantined(s->daemon, &jobs);
    bool is_local;
    const char *address = gl_daemon_address(s->daemon, &is_local);

    for (size_t i = 0; i < n; i++) {
        gl_cli_note(cli, "job %.*s is in quarantine: the node crashed three times in a row on it",
                    GL_STR_ARG(jobs[i]));
    }
    if (address[0] != '\0' && !is_local) {
        gl_cli_note(cli,
                    "%s can be reached from other machines without encryption: "
                    "anyone on the network path can read the token",
                    address);
    }
    if (gl_daemon_warning(s->daemon)[0] != '\0') {
        gl_cli_note(cli, "%s", gl_daemon_warning(s->daemon));
    }
    gl_cli_note(cli, "ready: process %ld, data folder %s%s%s", (long)getpid(), cli->data,
                address[0] != '\0' ? ", http://" : "", address);
    gl_notify_send(&s->notify, "READY=1\nSTATUS=Serving %s", cli->data);
}

/* ---- running ---- */

/* Feed the watchdog only while the control thread makes progress. */
static void feed_watchdog(struct serve *s)
{
    gl_ms now = gl_term_now();

    if (s->notify.watchdog_ms == 0 || now - s->beat_at < s->notify.watchdog_ms / 2) {
        return;
    }
    if (gl_daemon_is_responsive(s->daemon)) {
        gl_notify_send(&s->notify, "WATCHDOG=1");
        s->beat_at = now;
    }
}

static gl_ms tick_of(const struct serve *s, gl_ms usual)
{
    gl_ms feed = s->notify.watchdog_ms / 4;

    return s->notify.watchdog_ms > 0 && feed < usual ? (feed > 0 ? feed : 1) : usual;
}

static void report_store_health(struct serve *s)
{
    struct gl_why why;
    enum gl_store_health mood = gl_daemon_store_health(s->daemon, &why);

    if (mood == s->mood) {
        return;
    }
    if (mood != GL_STORE_OK) {
        gl_cli_note(s->cli, "%s; running steps continue, trying again", why.text);
        gl_notify_send(&s->notify, "STATUS=Not ready: %s", why.text);
    } else {
        gl_cli_note(s->cli, "the store %s again",
                    s->mood == GL_STORE_READ_ONLY ? "accepts commits" : "answers");
        gl_notify_send(&s->notify, "STATUS=Serving %s", s->cli->data);
    }
    s->mood = mood;
}

/* Report when the store is lost, or other nodes declare this node dead, and when that is over. */
static void report_changes(struct serve *s)
{
    struct gl_why why;
    bool is_ready = gl_daemon_is_ready(s->daemon, &why);
    uint64_t births = gl_daemon_sessions_opened(s->daemon);

    if (s->births > 0 && births > s->births) {
        gl_cli_note(s->cli, "other nodes declared this node dead; it has started a new session");
    }
    s->births = births;
    if (is_ready || why.code == 0) {
        s->stuck_at = 0;
    } else if (s->stuck_at == 0) {
        s->stuck_at = gl_term_now();
    }
    if (is_ready && !s->was_ready) {
        report_ready(s);
        s->reported[0] = '\0';
    } else if (s->stuck_at != 0 && gl_term_now() - s->stuck_at >= PATIENCE_MS &&
               strcmp(s->reported, why.text) != 0) {
        (void)snprintf(s->reported, sizeof(s->reported), "%s", why.text);
        gl_cli_note(s->cli, "not ready: %s; trying again", why.text);
        gl_notify_send(&s->notify, "STATUS=Not ready: %s", why.text);
    }
    if (!is_ready && gl_term_now() - s->extended_at > START_EXTRA_MS / 4) {
        /* Has an effect only before the first READY=1. */
        gl_notify_send(&s->notify, "EXTEND_TIMEOUT_USEC=%lld", (long long)START_EXTRA_MS * 1000);
        s->extended_at = gl_term_now();
    }
    s->was_ready = is_ready;
    report_store_health(s);
}

/* Returns NULL if stopped by a signal, otherwise the error. */
static const char *serve_until_stopped(struct serve *s)
{
    const char *lost = NULL;

    report_changes(s);
    while (lost == NULL && !wait_signal(s, tick_of(s, s->was_ready ? TICK_MS : WAIT_TICK_MS))) {
        feed_watchdog(s);
        lost = gl_daemon_lost(s->daemon);
        if (lost == NULL) { /* otherwise there is nothing to retry */
            report_changes(s);
        }
    }
    return lost;
}

/* Wait for running steps. */
static void drain(struct serve *s)
{
    gl_ms grace = s->cli->settings->values[GL_SET_GRACE].number;
    gl_ms until = gl_term_now() + grace;
    char text[GL_TIMES_BYTES];
    uint64_t running = UINT64_MAX, reported_n = 0;

    gl_notify_send(&s->notify, "EXTEND_TIMEOUT_USEC=%lld", (long long)(grace + 30000) * 1000);
    while (running > 0 && gl_term_now() < until) {
        running = gl_daemon_drain(s->daemon);
        if (running != UINT64_MAX && running != reported_n) {
            gl_notify_send(&s->notify, "STATUS=Waiting for %llu running steps",
                           (unsigned long long)running);
        }
        if (running != UINT64_MAX && reported_n == 0 && running > 0) {
            gl_cli_note(s->cli, "waiting up to %.*s for %llu running step%s",
                        GL_STR_ARG(gl_times_format_span(grace, text)), (unsigned long long)running,
                        running == 1 ? "" : "s");
        }
        reported_n = running != UINT64_MAX ? running : reported_n;
        feed_watchdog(s);
        if (running > 0 && wait_signal(s, tick_of(s, DRAIN_TICK_MS))) {
            break; /* a second request: stop now */
        }
    }
    if (running > 0 && running != UINT64_MAX) {
        gl_cli_note(s->cli, "%llu running step%s left to the keeper", (unsigned long long)running,
                    running == 1 ? " is" : "s are");
    }
}

static int run(struct serve *s)
{
    struct gl_why why;
    const char *lost;
    int err = take_over(s, &why);

    if (err == GL_E_STALE) {
        gl_cli_note(s->cli, "stopped before the node was ready");
        return GL_EXIT_OK;
    }
    if (err != 0) {
        return gl_cli_fail(
            s->cli, gl_err_join(err == GL_E_BUSY ? GL_E_UNAVAILABLE : err, why.reason), why.text);
    }
    lost = serve_until_stopped(s);
    gl_notify_send(&s->notify, "STOPPING=1\nSTATUS=Stopping");
    if (lost == NULL) {
        gl_cli_note(s->cli, "stopping: accepting no more work");
        if (s->cli->settings->values[GL_SET_FINISH].number != 0) {
            drain(s);
        }
    }
    restore_signals();
    lost = lost != NULL ? gl_str_c(&s->cli->arena, gl_str_of(lost)) : NULL;
    gl_daemon_stop(s->daemon);
    s->daemon = NULL;
    if (lost != NULL) {
        return gl_cli_fail(s->cli, GL_E_UNAVAILABLE, lost);
    }
    gl_cli_note(s->cli, "stopped");
    return GL_EXIT_OK;
}

int gl_cmd_serve(struct gl_cli *cli)
{
    struct serve s = {.cli = cli, .reservation = {.fd = -1}, .signals_fd = block_signals()};
    struct gl_notify_env env = gl_notify_env();
    struct gl_why why;
    int code;

    if (cli->settings->values[GL_SET_SERVER].origin == GL_ORIGIN_FLAG) {
        return gl_cli_usage(cli,
                            "--server cannot be used here: a node does not connect to a server");
    }
    if (gl_notify_open(&s.notify, &env, &why) != 0) {
        gl_cli_note(cli, "%s", why.text);
    }
    code = run(&s);
    gl_notify_close(&s.notify);
    gl_fs_closep(&s.signals_fd);
    return code;
}
