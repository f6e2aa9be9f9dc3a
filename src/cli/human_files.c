#include "cli/human_files.h"

#include "api/worker_questions.h"
#include "base/check.h"
#include "base/limits.h"
#include "cli/output/overview.h"
#include "os/run_owner.h"

enum {
    REPORTED_MAX = 10,      /* requests reported individually per scan */
    REMEMBERED_MAX = 10000, /* request ids that are remembered */
    ASK_PAUSE_MS = 3000,    /* between requests to a node whose files are not visible */
    PAUSE_MS_MAX = 60000,
    SHARE = 10 /* scanning takes at most this share of the time */
};

/* A text from the status of the node, in the command's arena; "": there is no node to ask. */
static gl_str text_of_node(struct gl_connection *connection, const char *name)
{
    struct gl_arena *a = &connection->cli->arena;
    struct gl_http_client_reply reply;
    struct gl_json j;

    return !connection->has_no_node &&
                   gl_connect_call(connection, "GET", "/v1/node", (gl_str){0}, &reply, NULL) == 0 &&
                   gl_json_parse(&j, gl_str_dup(a, reply.body), SIZE_MAX, a, NULL) == 0
               ? gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), name), a)
               : (gl_str){0};
}

const char *gl_human_files_root(struct gl_connection *connection, const char *given)
{
    struct gl_cli *cli = connection->cli;
    gl_str root = given != NULL ? gl_str_of(given) : text_of_node(connection, "runs_root");

    return given != NULL ? given
           : root.n > 0  ? gl_str_c(&cli->arena, root)
                         : cli->settings->values[GL_SET_RUNS_ROOT].text;
}

bool gl_human_files_is_remote(struct gl_api_reply *status, const char *root, gl_str run_id)
{
    return gl_api_reply_text(status, status->root, "requests_node").n > 0 &&
           !gl_human_file_is_current(root, run_id,
                                     gl_api_reply_text(status, status->root, "requests_since"));
}

/* ---- requests of all jobs ---- */

/* Shared store: `node` has the job. */
static bool is_on_other_node(struct gl_connection *connection, gl_str node, gl_str job,
                             const char *root, gl_str run_id)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = job};
    struct gl_api_reply status;
    bool is_away = false;

    if (node.n > 0) {
        is_away = gl_api_reply_ask(&status, connection, &rq, NULL) == 0 &&
                  gl_human_files_is_remote(&status, root, run_id);
        gl_api_reply_done(&status);
    }
    return is_away;
}

/* Jobs on other nodes, whose folders are not on this machine. */
struct remote_jobs {
    gl_str own;   /* the name of the node we talk to; "": there is none */
    gl_str first; /* one of the other nodes */
    size_t n;
};

static void count_remote(struct gl_connection *connection, struct remote_jobs *remote_jobs,
                         const char *root, struct gl_api_reply *p, gl_jnode job)
{
    struct gl_arena *a = &connection->cli->arena;
    gl_str node = gl_api_reply_text(p, job, "node"), run_id = gl_api_reply_text(p, job, "run_id");
    struct stat st;

    if (node.n == 0 || gl_api_reply_number(p, job, "letters_n") == 0) {
        return; /* the store is not shared, or the job is not a bundle's */
    }
    if (remote_jobs->own.n == 0) {
        remote_jobs->own = text_of_node(connection, "name");
    }
    if (remote_jobs->own.n > 0 && !gl_str_eq(node, remote_jobs->own) &&
        lstat(gl_str_fmt(a, "%s/%.*s", root, GL_STR_ARG(run_id)).p, &st) != 0) {
        remote_jobs->first = remote_jobs->n++ == 0 ? gl_str_dup(a, node) : remote_jobs->first;
    }
}

static void report_remote(struct gl_cli *cli, const struct remote_jobs *remote_jobs)
{
    if (remote_jobs->n > 0) {
        gl_cli_note(
            cli, "%zu job%s on other nodes (%.*s%s); run this there to see %s workers' requests",
            remote_jobs->n, remote_jobs->n == 1 ? " is" : "s are", GL_STR_ARG(remote_jobs->first),
            remote_jobs->n == 1 ? "" : ", ...", remote_jobs->n == 1 ? "its" : "their");
    }
}

static struct gl_open_request **add_open(struct gl_connection *connection,
                                         struct gl_open_request **end, const char *root, gl_str job,
                                         gl_str run_id, gl_str node)
{
    struct gl_cli *cli = connection->cli;
    struct gl_human_file f;
    struct gl_why why = {0};
    gl_str trouble;

    if (run_id.n == 0 || !gl_run_owner_is_job(root, run_id, job)) {
        return end; /* a damaged job; or the folder belongs to an earlier job: this one has not
                       started yet */
    }
    if (gl_human_file_read(root, run_id, &cli->arena, &f, &why) != 0) {
        gl_cli_note(cli, "requests of run %.*s: %s", GL_STR_ARG(run_id), why.text);
        return end;
    }
    trouble = gl_human_file_problems(&f, &cli->arena);
    if ((f.n > 0 || trouble.n > 0) && is_on_other_node(connection, node, job, root, run_id)) {
        gl_cli_note(cli, "run %.*s is on node %.*s; run this there to see its workers' requests",
                    GL_STR_ARG(run_id), GL_STR_ARG(node));
        return end;
    }
    if (trouble.n > 0) {
        gl_cli_note(cli, "requests of run %.*s: %.*s", GL_STR_ARG(run_id),
                    GL_STR_ARG(gl_term_safe(&cli->arena, trouble)));
    }
    for (size_t i = 0; i < f.n; i++) {
        if (!f.requests[i].is_answered) {
            *end = GL_NEW(&cli->arena, struct gl_open_request);
            **end = (struct gl_open_request){.job = gl_str_dup(&cli->arena, job),
                                             .run_id = gl_str_dup(&cli->arena, run_id),
                                             .request = &f.requests[i]};
            end = &(*end)->next;
        }
    }
    return end;
}

struct gl_open_request *gl_human_files_find(struct gl_connection *connection, const char *given)
{
    static const char *const live[] = {"running", "pausing", "paused"};
    const char *root = gl_human_files_root(connection, given);
    struct gl_open_request *first = NULL, **end = &first;
    struct remote_jobs remote_jobs = {0};

    for (size_t i = 0; i < GL_COUNT(live); i++) {
        struct gl_request rq = {.verb = GL_VERB_LIST,
                                .list = {.status = gl_str_of(live[i]), .limit = GL_PAGE_MAX}};
        struct gl_api_reply p;
        gl_jnode jobs = NULL;

        if (gl_api_reply_ask(&p, connection, &rq, NULL) == 0) {
            jobs = gl_json_get(&p.j, p.root, "jobs");
        }
        for (gl_jnode e = gl_json_first(&p.j, jobs); e; e = gl_json_after(&p.j, jobs, e)) {
            count_remote(connection, &remote_jobs, root, &p, e);
            end = add_open(connection, end, root, gl_api_reply_text(&p, e, "job_id"),
                           gl_api_reply_text(&p, e, "run_id"), gl_api_reply_text(&p, e, "node"));
        }
        gl_api_reply_done(&p);
    }
    report_remote(connection->cli, &remote_jobs);
    return first;
}

gl_str gl_human_files_describe(struct gl_arena *a, const struct gl_question *r)
{
    char when[GL_TIMES_BYTES];
    gl_str then = {0};

    if (r->is_refused) {
        then =
            gl_str_fmt(a, "; its default, %.*s, is not allowed", GL_STR_ARG(r->default_decision));
    } else if (r->default_decision.n > 0) {
        then = gl_str_fmt(a, "; then: %.*s", GL_STR_ARG(r->default_decision));
    }
    return r->expires_at == 0
               ? r->prompt
               : gl_str_fmt(a, "%.*s (%s %.*s%.*s)", GL_STR_ARG(r->prompt),
                            gl_human_file_is_expired(r, gl_term_now()) ? "expired" : "until",
                            GL_STR_ARG(gl_times_format(r->expires_at, when)), GL_STR_ARG(then));
}

/* ---- requests of a followed job ---- */

void gl_human_watch_start(struct gl_human_watch *w, struct gl_connection *connection,
                          struct gl_progress *progress, const struct gl_json *j, gl_jnode status)
{
    gl_human_watch_done(w);
    *w = (struct gl_human_watch){.connection = connection, .progress = progress};
    gl_map_init(&w->reported);
    if (gl_json_get(j, status, "bundle") == NULL || progress->is_quiet) {
        return;
    }
    w->job = gl_str_dup(&w->arena, gl_json_str(j, gl_json_get(j, status, "job_id"), &w->arena));
    w->run_id = gl_str_dup(&w->arena, gl_json_str(j, gl_json_get(j, status, "run_id"), &w->arena));
    if (!connection->is_remote) {
        w->root = gl_human_files_root(connection, NULL);
    }
}

void gl_human_watch_done(struct gl_human_watch *w)
{
    if (w->connection != NULL) {
        gl_map_done(&w->reported);
        gl_arena_done(&w->arena);
        w->connection = NULL;
    }
}

struct reported_request {
    gl_str id;
    uint32_t again_n;
};

/* Not reported before, or asked again after an answer. */
static bool is_new(struct gl_human_watch *w, gl_str id, uint32_t again_n)
{
    struct reported_request *t = gl_map_find(&w->reported, id);
    bool is_known = t != NULL && t->again_n == again_n;

    if (t == NULL && gl_map_count(&w->reported) < REMEMBERED_MAX) {
        t = GL_NEW(&w->arena, struct reported_request);
        t->id = gl_str_dup(&w->arena, id);
        gl_map_add(&w->reported, t->id, t);
    }
    if (t != NULL) {
        t->again_n = again_n;
    }
    return t != NULL && !is_known;
}

static void report_request(struct gl_human_watch *w, gl_str id, gl_str prompt,
                           struct gl_strs decisions)
{
    struct gl_cli *cli = w->connection->cli;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str command = gl_term_safe(&a, gl_worker_question_command(&a, w->job, id, decisions));

    gl_str others = gl_term_safe(&a, gl_worker_question_others(&a, decisions));

    gl_progress_clear(w->progress);
    gl_cli_note(cli, "request %.*s waits for a person: %.*s; to answer: %s%.*s",
                GL_STR_ARG(gl_term_safe(&a, id)), GL_STR_ARG(gl_term_safe(&a, prompt)),
                gl_cli_hint(cli, "%.*s", GL_STR_ARG(command)), GL_STR_ARG(others));
}

static void report_more(struct gl_human_watch *w, size_t n)
{
    if (n > REPORTED_MAX) {
        gl_progress_clear(w->progress);
        gl_cli_note(w->connection->cli, "%zu more requests wait for a person: %s", n - REPORTED_MAX,
                    gl_cli_hint(w->connection->cli, "human list"));
    }
}

static void report_file(struct gl_human_watch *w)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_human_file f;
    size_t n = 0;

    if (!gl_run_owner_is_job(w->root, w->run_id, w->job) ||
        gl_human_file_read(w->root, w->run_id, &a, &f, NULL) != 0) {
        return; /* next time */
    }
    for (size_t i = 0; i < f.n; i++) {
        const struct gl_question *r = &f.requests[i];

        if (!r->is_answered && is_new(w, r->request_id, r->again_n) && n++ < REPORTED_MAX) {
            report_request(w, r->request_id, gl_human_files_describe(&w->connection->cli->arena, r),
                           gl_worker_question_decisions(r));
        }
    }
    report_more(w, n);
}

void gl_human_watch_check_file(struct gl_human_watch *w)
{
    gl_ms began = gl_term_now();
    char path[4096];
    struct stat st;

    if (w->connection == NULL || w->root == NULL || w->run_id.n == 0 ||
        (began < w->look_at && w->look_at - began < PAUSE_MS_MAX)) { /* clocks can be set back */
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%.*s/human.jsonl", w->root, GL_STR_ARG(w->run_id));
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        (st.st_ino == w->seen.st_ino && st.st_size == w->seen.st_size &&
         st.st_mtim.tv_sec == w->seen.st_mtim.tv_sec &&
         st.st_mtim.tv_nsec == w->seen.st_mtim.tv_nsec)) {
        return;
    }
    w->seen = st;
    report_file(w);
    w->look_at = gl_term_now() + (gl_term_now() - began) * SHARE;
}

static bool cannot_see_files(const struct gl_human_watch *w)
{
    return w->connection != NULL && w->root == NULL && w->run_id.n > 0;
}

static struct gl_strs decisions_of(struct gl_api_reply *p, gl_jnode request)
{
    gl_jnode words = gl_json_get(&p->j, request, "decisions");
    gl_str *items = GL_NEW_ARRAY(&p->arena, gl_str, words == NULL ? 1 : words->count + 1);
    size_t n = 0;

    for (gl_jnode e = gl_json_first(&p->j, words); e; e = gl_json_after(&p->j, words, e)) {
        items[n++] = gl_json_str(&p->j, e, &p->arena);
    }
    return (struct gl_strs){.items = items, .n = n};
}

void gl_human_watch_ask_node(struct gl_human_watch *w)
{
    gl_ms now = gl_term_now();
    struct gl_api_reply p;
    gl_jnode all;
    size_t n = 0;

    if (!cannot_see_files(w) || now - w->looked_at < ASK_PAUSE_MS) {
        return;
    }
    w->looked_at = now;
    all = gl_overview_human(w->connection, &p, NULL) == 0 ? gl_json_get(&p.j, p.root, "requests")
                                                          : NULL;
    for (gl_jnode e = gl_json_first(&p.j, all); e; e = gl_json_after(&p.j, all, e)) {
        gl_str id = gl_api_reply_text(&p, e, "request_id");

        if (id.n > 0 && gl_str_eq(gl_api_reply_text(&p, e, "job_id"), w->job) && is_new(w, id, 0) &&
            n++ < REPORTED_MAX) {
            report_request(w, id, gl_api_reply_text(&p, e, "reason"), decisions_of(&p, e));
        }
    }
    report_more(w, n);
    gl_api_reply_done(&p);
}
