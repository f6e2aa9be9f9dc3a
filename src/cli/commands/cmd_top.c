/* cmd_top.c - glia top: shows jobs and steps live, full-screen.
 *
 * Each frame is built as text, line by line, and written to the alternate screen at once. Between
 * frames the program waits for a key, a resize, or the next refresh. */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/output/overview.h"
#include "cli/output/progress.h"
#include "os/fs.h"

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MS_MIN = 100,
    INTERVAL_MS_MAX = 3600000,
    HEAD_LINES = 4, /* title, node, empty line, column headers */
    STEPS_MAX = 12, /* maximum lines of the lower part */
    BAR_WIDTH = 12,
    BAR_COLUMNS_MIN = 100, /* a narrower terminal has no bars */
    STEPS_WIDTH = 14,
    NAME_WIDTH = 24,
    STATUS_WIDTH = 10,
    TIME_WIDTH = 8,
    KEY_BYTES = 32,
    STALE_MS = 10000, /* positions in a queue change without an event of the job */
};

struct top {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct termios before;
    int signals_fd;
    gl_ms interval_ms;
    bool is_over;
    bool has_steps; /* the lower part is shown */
    size_t chosen, jobs_n;
    char chosen_job[GL_ID_BYTES_MAX + 1]; /* kept when the order changes; "": the first */
    gl_jnode *order;                      /* the jobs in display order, in the arena of `jobs` */

    struct gl_api_reply node, human, jobs, job; /* as last seen */
    char seen_job[GL_ID_BYTES_MAX + 1];         /* which job `job` is, ... */
    int64_t seen_seq;                           /* ... with how many events, ... */
    size_t seen_rows;                           /* ... for a window of this height, ... */
    gl_ms seen_at;                              /* ... and when it was asked for */
    bool has_node;
    const char *trouble; /* why nothing can be shown; NULL: no problem */
    struct gl_why why;

    struct gl_term *term;
    struct gl_buf out;
    size_t lines;
};

/* ---- the terminal ---- */

static int open_screen(struct top *t)
{
    struct termios raw;
    sigset_t set;

    if (tcgetattr(STDIN_FILENO, &t->before) < 0) {
        return gl_cli_fail(t->cli, GL_E_UNAVAILABLE, "cannot set up the terminal");
    }
    raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would get our screen */
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    t->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)fputs("\033[?1049h\033[?25l", t->term->file); /* alternate screen, no cursor */
    (void)fflush(t->term->file);
    return 0;
}

static void close_screen(struct top *t)
{
    (void)fputs("\033[?25h\033[?1049l", t->term->file);
    (void)fflush(t->term->file);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->before);
    gl_fs_closep(&t->signals_fd);
}

/* ---- loading ---- */

static gl_jnode job_list(struct top *t)
{
    return gl_json_get(&t->jobs.j, t->jobs.root, "jobs");
}

static gl_str chosen_id(struct top *t)
{
    return gl_api_reply_text(&t->jobs, t->order[t->chosen], "job_id");
}

static bool is_live(struct top *t, gl_jnode job)
{
    gl_str status = gl_api_reply_text(&t->jobs, job, "status");

    return !gl_str_is(status, "completed") && !gl_str_is(status, "failed") &&
           !gl_str_is(status, "cancelled");
}

/* Jobs that have not ended come first; each group is sorted newest first. */
static void put_in_order(struct top *t)
{
    gl_jnode jobs = t->trouble == NULL ? job_list(t) : NULL;
    size_t n = 0;

    t->jobs_n = jobs != NULL ? jobs->count : 0;
    t->order = GL_NEW_ARRAY(&t->jobs.arena, gl_jnode, t->jobs_n + 1);
    for (int pass = 0; pass < 2; pass++) {
        for (gl_jnode e = gl_json_first(&t->jobs.j, jobs); e;
             e = gl_json_after(&t->jobs.j, jobs, e)) {
            if (is_live(t, e) == (pass == 0)) {
                t->order[n++] = e;
            }
        }
    }
    t->chosen = t->jobs_n == 0 ? 0 : t->chosen < t->jobs_n ? t->chosen : t->jobs_n - 1;
    for (size_t i = 0; i < t->jobs_n && t->chosen_job[0] != '\0'; i++) {
        if (gl_str_is(gl_api_reply_text(&t->jobs, t->order[i], "job_id"), t->chosen_job)) {
            t->chosen = i;
        }
    }
}

static void drop_job(struct top *t)
{
    gl_api_reply_done(&t->job);
    t->job = (struct gl_api_reply){0};
}

/* Load the steps of the selected job, unless nothing has happened since they were last loaded. */
static void load_job(struct top *t)
{
    struct gl_request one = {
        .verb = GL_VERB_STATUS, .job = chosen_id(t), .status.limit = (uint32_t)t->term->rows + 1};
    int64_t seq = gl_api_reply_number(&t->jobs, t->order[t->chosen], "last_seq");
    gl_ms now = gl_term_now();

    if (t->job.root != NULL && gl_str_is(one.job, t->seen_job) && seq == t->seen_seq &&
        t->term->rows == t->seen_rows && now >= t->seen_at && now - t->seen_at < STALE_MS) {
        return;
    }
    drop_job(t);
    /* The job may be gone by now: then show nothing of it. */
    if (gl_api_reply_ask(&t->job, &t->connection, &one, NULL) != 0) {
        t->job.root = NULL;
    }
    (void)snprintf(t->seen_job, sizeof(t->seen_job), "%.*s", GL_STR_ARG(one.job));
    t->seen_seq = seq;
    t->seen_rows = t->term->rows;
    t->seen_at = now;
}

/* Load jobs and questions from the store, or the reason why they cannot be read. */
static void load_jobs(struct top *t)
{
    struct gl_request rq = {.verb = GL_VERB_LIST, .list.limit = GL_PAGE_MAX};

    t->connection.silence_ms =
        t->has_node ? GL_CONNECT_SILENCE_STORE_MS : GL_CONNECT_SILENCE_SHORT_MS;
    t->human = (struct gl_api_reply){0};
    if (gl_api_reply_ask(&t->jobs, &t->connection, &rq, &t->why) != 0) {
        (void)gl_why_prefix(&t->why, "the jobs cannot be read");
        t->trouble = t->why.text; /* the rest would fail, too */
    } else if (gl_overview_human(&t->connection, &t->human, NULL) != 0) {
        t->human.root = NULL; /* the request for jobs reports the same error */
    }
    t->connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
}

static void refresh(struct top *t)
{
    gl_api_reply_done(&t->node);
    gl_api_reply_done(&t->human);
    gl_api_reply_done(&t->jobs);
    t->has_node = gl_overview_node(&t->connection, &t->node);
    if (gl_connect_is_silent(&t->connection)) { /* the node would not answer the rest, either */
        (void)gl_connect_explain_silence(&t->connection, t->connection.client.silence_ms, &t->why);
        t->trouble = t->why.text;
        t->jobs = t->human = (struct gl_api_reply){0};
        drop_job(t);
        put_in_order(t);
        return;
    }
    t->trouble = NULL;
    load_jobs(t);
    put_in_order(t);
    if (t->has_steps && t->jobs_n > 0) {
        load_job(t);
    } else {
        drop_job(t);
    }
}

/* ---- drawing ---- */

/* One line; `text` is escaped and clipped, colours do not count. */
static void put_line(struct top *t, enum gl_color color, gl_str text)
{
    text = gl_term_safe(&t->jobs.arena, text);
    if (t->lines >= t->term->rows) {
        return;
    }
    gl_buf_fmt(&t->out, "%s%s%.*s%s\033[K", t->lines > 0 ? "\r\n" : "", gl_term_on(t->term, color),
               GL_STR_ARG(gl_term_cut(&t->jobs.arena, text, t->term->columns)),
               gl_term_off(t->term, color));
    t->lines++;
}

static void put_head(struct top *t)
{
    struct gl_api_reply *n = &t->node;
    char when[GL_TIMES_BYTES];
    gl_str now = gl_times_format(gl_term_now(), when), asks = {0};

    put_line(t, GL_BOLD,
             gl_str_fmt(&t->jobs.arena, "glia top  %.*s  %s", (int)(now.n - 5), now.p,
                        gl_connect_location(&t->connection)));
    if (!t->has_node) {
        put_line(t, GL_YELLOW,
                 gl_connect_is_silent(&t->connection)
                     ? GL_S("the node does not answer")
                     : GL_S("no node is running: unfinished jobs will not progress"));
    } else {
        if (t->trouble == NULL) {
            asks = gl_str_fmt(&n->arena, ", %llu for a person",
                              (unsigned long long)gl_overview_requests(&t->human, (gl_str){0}));
        }
        put_line(t, GL_PLAIN,
                 gl_str_fmt(&n->arena, "node %.*s  slots %.*s  %.*s, %lld waiting%.*s",
                            GL_STR_ARG(gl_api_reply_text(n, n->root, "name")),
                            GL_STR_ARG(gl_overview_pools(n)),
                            GL_STR_ARG(gl_overview_running(n, n->root)),
                            (long long)gl_api_reply_number(n, n->root, "steps_waiting"),
                            GL_STR_ARG(asks)));
    }
    if (t->has_node && gl_overview_reason(n).n > 0) {
        put_line(t, GL_YELLOW, gl_overview_reason(n));
    } else {
        put_line(t, GL_PLAIN, (gl_str){0});
    }
}

/* "[####....] ", or nothing if there is no room for it. */
static const char *bar(const struct top *t, char buf[static BAR_WIDTH + 4], int64_t done,
                       int64_t all)
{
    int64_t full = all > 0 ? done * BAR_WIDTH / all : 0;

    if (t->term->columns < BAR_COLUMNS_MIN) {
        return "";
    }
    buf[0] = '[';
    for (int64_t i = 0; i < BAR_WIDTH; i++) {
        buf[i + 1] = i < full ? '#' : '.';
    }
    (void)memcpy(buf + BAR_WIDTH + 1, "] ", 3);
    return buf;
}

/* Padded by width, not by bytes. */
static gl_str column(struct gl_arena *a, gl_str text, size_t width)
{
    gl_str clipped = gl_term_clip(gl_term_safe(a, text), width);

    return gl_str_fmt(a, "%.*s%*s", GL_STR_ARG(clipped), (int)(width - gl_term_width(clipped)), "");
}

static void put_job(struct top *t, gl_jnode job, bool is_chosen)
{
    struct gl_api_reply *p = &t->jobs;
    gl_str id = gl_api_reply_text(p, job, "job_id"), status = gl_api_reply_text(p, job, "status");
    uint64_t asks = gl_overview_requests(&t->human, id);
    gl_ms ended = gl_api_reply_time(p, job, "ended_at");
    gl_str took = gl_api_reply_span(p, gl_api_reply_time(p, job, "submitted_at"),
                                    ended != 0 ? ended : gl_term_now());
    gl_str steps = gl_overview_steps(p, job, asks);
    char bar_text[BAR_WIDTH + 4];

    put_line(t,
             is_chosen  ? GL_BOLD
             : asks > 0 ? GL_YELLOW
                        : gl_term_status_color(status),
             gl_str_fmt(&p->arena, "%s %.*s  %.*s  %s%.*s  %.*s  %.*s", is_chosen ? ">" : " ",
                        GL_STR_ARG(id), GL_STR_ARG(column(&p->arena, status, STATUS_WIDTH)),
                        bar(t, bar_text, gl_overview_ended(p, job),
                            gl_api_reply_number(p, job, "steps_n")),
                        GL_STR_ARG(column(&p->arena, steps, STEPS_WIDTH)),
                        GL_STR_ARG(column(&p->arena, took, TIME_WIDTH)),
                        GL_STR_ARG(gl_term_safe(&p->arena, gl_api_reply_text(p, job, "name")))));
}

/* Scroll to keep the selected job visible. */
static void put_jobs(struct top *t, size_t room)
{
    size_t first = t->chosen >= room && room > 0 ? t->chosen - room + 1 : 0;
    int steps_width = STEPS_WIDTH + (t->term->columns < BAR_COLUMNS_MIN ? 0 : BAR_WIDTH + 3);

    put_line(t, GL_DIM,
             gl_str_fmt(&t->jobs.arena, "  %-26s  %-*s  %-*s  %-*s  %s", "JOB", STATUS_WIDTH,
                        "STATUS", steps_width, "STEPS", TIME_WIDTH, "TIME", "NAME"));
    if (t->trouble != NULL || t->jobs_n == 0) {
        put_line(t, GL_YELLOW,
                 t->trouble != NULL ? gl_str_of(t->trouble) : GL_S("  there are no jobs yet"));
    }
    for (size_t i = first; i < t->jobs_n && i < first + room; i++) {
        put_job(t, t->order[i], i == t->chosen);
    }
}

static void put_step(struct top *t, gl_str id, gl_jnode step)
{
    struct gl_api_reply *p = &t->job;
    gl_str status = gl_api_reply_text(p, step, "status");
    gl_str why = gl_api_reply_reason(p, step);
    gl_ms since = gl_api_reply_time(p, step, "attempt_at");
    gl_str took =
        gl_str_is(status, "running") ? gl_api_reply_span(p, since, gl_term_now()) : (gl_str){0};

    put_line(t, gl_term_status_color(status),
             gl_str_fmt(&p->arena, "  %.*s  %.*s  %.*s  %.*s",
                        GL_STR_ARG(column(&p->arena, id, NAME_WIDTH)),
                        GL_STR_ARG(column(&p->arena, status, STATUS_WIDTH)),
                        GL_STR_ARG(column(&p->arena, took, TIME_WIDTH)),
                        GL_STR_ARG(gl_term_safe(&p->arena, why))));
}

/* Running steps first, then others that have begun and not ended. */
static void put_steps(struct top *t, size_t room)
{
    static const char *const order[] = {"running", "blocked", "failed", "retry_wait",
                                        "waiting", "queued",  "ready"};
    struct gl_api_reply *p = &t->job;
    gl_jnode steps = gl_json_get(&p->j, gl_json_get(&p->j, p->root, "workflow_state"), "steps");
    size_t shown = 0;

    put_line(t, GL_PLAIN, (gl_str){0});
    put_line(t, GL_DIM,
             gl_str_fmt(&p->arena, "  %-*s  %-*s  %-*s  WHY", NAME_WIDTH, "STEP", STATUS_WIDTH,
                        "STATUS", TIME_WIDTH, "FOR"));
    for (size_t i = 0; i < GL_COUNT(order); i++) {
        for (gl_jnode k = gl_json_first(&p->j, steps); k && shown + 2 < room;
             k = gl_json_after(&p->j, steps, k)) {
            if (gl_str_is(gl_api_reply_text(p, gl_json_value(k), "status"), order[i])) {
                put_step(t, gl_json_str(&p->j, k, &p->arena), gl_json_value(k));
                shown++;
            }
        }
    }
    if (shown == 0) {
        put_line(t, GL_DIM, GL_S("  no step of this job is in progress"));
    }
}

static void draw(struct top *t)
{
    bool has_steps = t->has_steps && t->job.root != NULL && t->term->rows > HEAD_LINES + 8;
    size_t room = t->term->rows > HEAD_LINES + 1 ? t->term->rows - HEAD_LINES - 1 : 1;
    size_t below = !has_steps ? 0 : room / 2 < STEPS_MAX ? room / 2 : STEPS_MAX;

    gl_buf_reset(&t->out);
    gl_buf_c(&t->out, "\033[H");
    t->lines = 0;
    put_head(t);
    put_jobs(t, room - below);
    if (has_steps) {
        put_steps(t, below);
    }
    while (t->lines + 1 < t->term->rows) {
        put_line(t, GL_PLAIN, (gl_str){0});
    }
    put_line(t, GL_DIM, GL_S("q quit   up/down select   enter steps   space refresh"));
    (void)fwrite(t->out.p, 1, t->out.n, t->term->file);
    (void)fflush(t->term->file);
}

/* ---- keys ---- */

static void choose(struct top *t, size_t number)
{
    t->chosen = number;
    (void)snprintf(t->chosen_job, sizeof(t->chosen_job), "%.*s",
                   GL_STR_ARG(number > 0 ? chosen_id(t) : (gl_str){0}));
}

static void on_key(struct top *t, gl_str keys)
{
    if (gl_str_is(keys, "q") || gl_str_is(keys, "Q") || gl_str_is(keys, "\033")) {
        t->is_over = true;
    } else if (gl_str_is(keys, "\033[A") || gl_str_is(keys, "\033OA") || gl_str_is(keys, "k")) {
        choose(t, t->chosen - (t->chosen > 0));
    } else if (gl_str_is(keys, "\033[B") || gl_str_is(keys, "\033OB") || gl_str_is(keys, "j")) {
        choose(t, t->chosen + (t->chosen + 1 < t->jobs_n));
    } else if (gl_str_is(keys, "\n") || gl_str_is(keys, "\r")) {
        t->has_steps = !t->has_steps;
    }
}

/* Wait until it is time to refresh. */
static void wait(struct top *t)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = t->signals_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    char keys[KEY_BYTES];
    ssize_t n;

    if (poll(fds, GL_COUNT(fds), (int)t->interval_ms) <= 0) {
        return;
    }
    if (fds[0].revents != 0) {
        n = read(STDIN_FILENO, keys, sizeof(keys));
        if (n > 0) {
            on_key(t, (gl_str){.p = keys, .n = (size_t)n});
        }
        t->is_over = t->is_over || n == 0; /* the terminal is gone */
    }
    while (read(t->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        t->is_over = t->is_over || info.ssi_signo != SIGWINCH;
    }
}

int gl_cmd_top(struct gl_cli *cli)
{
    const char *interval = gl_cli_option(cli, "--interval");
    struct top t = {.cli = cli,
                    .term = &cli->out,
                    .signals_fd = -1,
                    .has_steps = true,
                    .interval_ms = INTERVAL_MS};
    int code;

    if (interval != NULL && (!gl_times_parse_span(gl_str_of(interval), &t.interval_ms) ||
                             t.interval_ms < INTERVAL_MS_MIN || t.interval_ms > INTERVAL_MS_MAX)) {
        return gl_cli_usage(cli, "--interval takes a time from 100ms to 1h");
    }
    if (!cli->out.is_tty || isatty(STDIN_FILENO) != 1 || cli->json) {
        return gl_cli_usage(cli, "top needs a terminal; use '%s' instead",
                            gl_cli_hint(cli, "status"));
    }
    gl_connect_init(&t.connection, cli);
    t.connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    code = open_screen(&t);
    while (code == 0 && !t.is_over) {
        gl_term_measure(t.term);
        refresh(&t);
        draw(&t);
        wait(&t);
    }
    if (code == 0) {
        close_screen(&t);
    }
    gl_api_reply_done(&t.node);
    gl_api_reply_done(&t.human);
    gl_api_reply_done(&t.jobs);
    gl_api_reply_done(&t.job);
    gl_buf_done(&t.out);
    gl_connect_done(&t.connection);
    return code;
}
