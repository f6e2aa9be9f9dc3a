#include "cli/connect/connect.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "app/daemon.h"
#include "app/offline.h"
#include "base/check.h"
#include "base/json.h"
#include "cli/connect/await_reply.h"
#include "os/fs.h"
#include "os/lock.h"
#include "os/paths.h"
#include "port/storeurl.h"

enum {
    PAUSE_MS = 20,
    ANSWER_BYTES_MAX = 1 << 30,
    TOKEN_FILE_BYTES_MAX = 4096,
    UNAUTHORIZED = 401, /* of HTTP */
};

/* The token for a node over TCP: GLIA_TOKEN, the configured file, or that of the data folder. */
static const char *read_token(struct gl_connection *r)
{
    struct gl_cli *cli = r->cli;
    const char *given = getenv("GLIA_TOKEN");
    const char *named = cli->settings->values[GL_SET_TOKEN_FILE].text;
    const char *path =
        named[0] != '\0' ? named : gl_paths_in(&cli->arena, cli->data, GL_PATHS_TOKEN);
    struct gl_buf text = {0};
    const char *token = NULL;
    int err;

    if (given != NULL && given[0] != '\0') {
        return given;
    }
    err = gl_fs_read(path, TOKEN_FILE_BYTES_MAX, &text, &r->broken_why);
    if (err == 0) {
        token = gl_str_c(&cli->arena, gl_str_trim(gl_buf_view(&text)));
    } else if (named[0] != '\0') {
        r->broken = err;
    }
    gl_buf_done(&text);
    return token; /* NULL: if the node needs a token, it refuses the request */
}

/* A token with a line break would inject a header. */
static bool is_printable(const char *token)
{
    for (const char *p = token != NULL ? token : ""; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            return false;
        }
    }
    return true;
}

void gl_connect_init(struct gl_connection *r, struct gl_cli *cli)
{
    const char *server = cli->settings->values[GL_SET_SERVER].text;
    const char *http = "http://", *token;

    *r = (struct gl_connection){.cli = cli, .is_remote = server[0] != '\0'};
    if (!r->is_remote) {
        gl_http_client_init(&r->client, gl_paths_in(&cli->arena, cli->data, GL_PATHS_SOCKET));
    } else if (strncmp(server, http, strlen(http)) == 0) {
        token = read_token(r);
        if (!is_printable(token)) {
            r->broken = gl_why(&r->broken_why, GL_E_INVALID,
                               "the token contains characters that are not allowed in a header");
        }
        gl_http_client_init_tcp(&r->client, server + strlen(http), token);
    } else {
        gl_http_client_init(&r->client, server + strlen("unix:"));
    }
}

void gl_connect_done(struct gl_connection *r)
{
    gl_http_client_done(&r->client);
    gl_daemon_stop(r->daemon);
    r->daemon = NULL;
}

const char *gl_connect_location(const struct gl_connection *r)
{
    return r->is_remote ? r->cli->settings->values[GL_SET_SERVER].text : r->cli->data;
}

void gl_connect_pause(void)
{
    struct timespec t = {.tv_nsec = PAUSE_MS * 1000000L};

    (void)nanosleep(&t, NULL);
}

void gl_connect_node_config(const struct gl_cli *cli, struct gl_daemon_config *ret)
{
    const struct gl_setting *values = cli->settings->values;

    *ret = (struct gl_daemon_config){
        .context = cli->context,
        .data = cli->data,
        .store = values[GL_SET_STORE].text,
        .allow_loss = values[GL_SET_STORE_ALLOW_LOSS].number != 0,
        .session_ttl_ms = values[GL_SET_SESSION_TTL].number,
        .orphan_grace_ms = values[GL_SET_ORPHAN_GRACE].number,
        .name = values[GL_SET_NODE_NAME].text,
        .stack = values[GL_SET_STACK].text,
        .env_scope = values[GL_SET_ENV_SCOPE].text,
        .pools = values[GL_SET_POOLS].text,
        .labels = values[GL_SET_LABELS].text,
        .executor_pools = values[GL_SET_EXECUTOR_POOLS].text,
        .executor_slots = (uint32_t)values[GL_SET_EXECUTOR_SLOTS].number,
        .runs_root = values[GL_SET_RUNS_ROOT].text,
        .modules = values[GL_SET_MODULES].text,
        .modules_trusted = values[GL_SET_MODULES_TRUSTED].text,
        .debug = strcmp(values[GL_SET_LOG].text, "debug") == 0,
        .keep_ms = values[GL_SET_KEEP_FOR].number,
        .keep_jobs = values[GL_SET_KEEP_JOBS].number,
        .keep_bytes = values[GL_SET_KEEP_BYTES].number,
        .body_bytes = (uint32_t)values[GL_SET_BODY_BYTES].number,
        .log_bytes = values[GL_SET_LOG_STORE_BYTES].number,
        .record_bytes = values[GL_SET_RECORD_BYTES].number,
        .keep_workspaces_ms = values[GL_SET_KEEP_WORKSPACES_FOR].number,
    };
}

static int become_node(struct gl_connection *r, struct gl_why *reterr_why)
{
    struct gl_daemon_config config;
    int err;

    gl_connect_node_config(r->cli, &config);
    config.what = r->is_passive ? "command" : "run";
    config.passive = r->is_passive;
    if (gl_lock_is_reserved(r->cli->data)) {
        return gl_why(reterr_why, GL_R_SERVE_STARTING, "a 'glia serve' is about to start in %s",
                      r->cli->data);
    }
    err = gl_daemon_start(&r->daemon, &config, reterr_why);
    if (err == 0 && !r->is_passive && gl_daemon_warning(r->daemon)[0] != '\0') {
        gl_cli_note(r->cli, "%s", gl_daemon_warning(r->daemon));
    }
    return err;
}

static bool is_absent(int code)
{
    return code == GL_E_NOT_FOUND || code == GL_E_GONE;
}

/* Stop being the node if a `glia serve` asked us to. */
static void leave_if_asked(struct gl_connection *r)
{
    if (r->daemon == NULL || !gl_daemon_is_yielding(r->daemon)) {
        return;
    }
    gl_http_client_disconnect(&r->client);
    gl_daemon_stop(r->daemon);
    r->daemon = NULL;
    gl_cli_note(r->cli, "'glia serve' takes over the data folder; the job continues there");
}

static int check_store(struct gl_connection *r, struct gl_why *reterr_why);

/* Try to connect once. GL_E_GONE: nobody is listening. */
static int try_connect(struct gl_connection *r, struct gl_why *reterr_why)
{
    bool is_new = r->client.fd < 0;
    int err = r->broken;

    if (err != 0) {
        return gl_why(reterr_why, gl_err_join(err, r->broken_why.reason), "%s", r->broken_why.text);
    }
    err = gl_http_client_connect(&r->client, reterr_why);
    r->was_connected = r->was_connected || err == 0;
    if (err == 0 && is_new) {
        err = check_store(r, reterr_why);
    }
    return is_absent(err) ? GL_E_GONE : err;
}

int gl_connect_find(struct gl_connection *r, struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + GL_CONNECT_TIMEOUT_MS;

    for (;;) {
        int err = try_connect(r, reterr_why);

        if (err != GL_E_GONE) {
            return err;
        }
        /* Wait for a node that is starting, or was connected before. */
        if ((!r->was_connected && (r->is_remote || !gl_lock_is_reserved(r->cli->data))) ||
            gl_term_now() > until) {
            return r->is_remote ? gl_why(reterr_why, GL_R_NODE_NOT_FOUND, "no node answers at %s",
                                         r->cli->settings->values[GL_SET_SERVER].text)
                                : gl_why(reterr_why, GL_R_NODE_NOT_FOUND,
                                         "no node is running in %s; start one with 'glia serve'",
                                         r->cli->data);
        }
        gl_connect_pause();
    }
}

int gl_connect_open(struct gl_connection *r, struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + GL_CONNECT_TIMEOUT_MS;

    r->is_store_down = false;
    if (r->is_remote) {
        return gl_connect_find(r, reterr_why);
    }
    for (;;) {
        int err;

        leave_if_asked(r);
        err = try_connect(r, reterr_why);
        if (err == GL_E_GONE && r->daemon != NULL && gl_daemon_is_yielding(r->daemon)) {
            continue; /* this process has just been asked to yield the folder */
        }
        if (err != GL_E_GONE || r->daemon != NULL) {
            return err;
        }
        err = become_node(r, reterr_why);
        r->is_store_down = err == GL_E_UNAVAILABLE;
        if (err == 0) {
            continue; /* and connect to it */
        }
        if (err != GL_E_BUSY) {
            return err;
        }
        /* Another process holds the lock but does not listen yet, or no longer. */
        if (gl_term_now() > until) {
            (void)gl_why_prefix(reterr_why, "no node answers");
            return GL_E_UNAVAILABLE;
        }
        gl_connect_pause();
    }
}

/* ---- calls ---- */

static gl_str member(struct gl_arena *a, const struct gl_json *j, gl_jnode n, const char *name)
{
    return gl_json_str(j, gl_json_get(j, n, name), a);
}

static int read_error(const struct gl_http_client_reply *reply, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    gl_jnode error, first;
    int whole;
    gl_str hint, code;

    if (gl_json_parse(&j, reply->body, ANSWER_BYTES_MAX, &a, NULL) != 0) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE, "the node answered with status %u",
                      reply->status);
    }
    error = gl_json_get(&j, gl_json_root(&j), "error");
    code = member(&a, &j, error, "code");
    whole = gl_err_join(gl_err_from_word(gl_str_c(&a, code)),
                        gl_reason_from_word(gl_str_c(&a, member(&a, &j, error, "reason"))));
    hint = member(&a, &j, error, "hint");
    first = gl_json_first(&j, gl_json_get(&j, error, "details"));
    if (first != NULL) {
        return gl_why(reterr_why, whole, "%.*s: %.*s", GL_STR_ARG(member(&a, &j, first, "path")),
                      GL_STR_ARG(member(&a, &j, first, "message")));
    }
    return gl_why(reterr_why, whole, "%.*s%s%.*s", GL_STR_ARG(member(&a, &j, error, "message")),
                  hint.n > 0 ? "; " : "", GL_STR_ARG(hint));
}

/* The node requires a token, or the token is wrong. */
static int fail_token(const struct gl_connection *r, struct gl_why *reterr_why)
{
    return gl_why(reterr_why, r->client.token != NULL ? GL_R_TOKEN_WRONG : GL_R_TOKEN_MISSING,
                  "%s; it is in the file token of the node's data folder: set GLIA_TOKEN or "
                  "GLIA_TOKEN_FILE",
                  r->client.token != NULL ? "the token is wrong" : "the node requires its token");
}

bool gl_connect_is_silent(const struct gl_connection *r)
{
    return r->client.is_silent;
}

int gl_connect_explain_silence(const struct gl_connection *r, gl_ms ms, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_lock_holder holder = {0};
    bool is_held = !r->is_remote && gl_lock_find(r->cli->data, &holder) && holder.pid != 0;
    long long pid = holder.pid, seconds = ms / 1000;
    gl_str reason;

    if (gl_await_reply_is_healthy(r, &a, &reason)) { /* do not suggest ending it */
        reason = reason.n > 0 ? reason : GL_S("it is busy or waiting for its store");
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "no answer for %lld s, though the node is healthy: %.*s", seconds,
                      GL_STR_ARG(reason));
    }
    if (!is_held) {
        return gl_why(
            reterr_why, GL_E_UNAVAILABLE,
            "the node at %s has not answered for %lld s; run 'glia doctor' on its machine",
            r->client.path, seconds);
    }
    return gl_why(
        reterr_why, GL_E_UNAVAILABLE,
        "the node of %s (process %lld) has not answered for %lld s; if it is stopped, "
        "'kill -CONT %lld' continues it, otherwise 'kill %lld' ends it: jobs and running steps "
        "survive",
        r->cli->data, pid, seconds, pid, pid);
}

/* There is no timeout if the node is in this process. */
static int quiet_of(const struct gl_connection *r, const char *method)
{
    return r->daemon != NULL            ? 0
           : r->silence_ms > 0          ? r->silence_ms
           : strcmp(method, "GET") == 0 ? GL_CONNECT_SILENCE_MS
                                        : GL_CONNECT_SILENCE_COMMAND_MS;
}

/* Like gl_connect_call(), with `more_ms` of additional time for the reply. */
static int call(struct gl_connection *r, const char *method, const char *path, gl_str body,
                int more_ms, struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    int quiet = quiet_of(r, method), err;

    r->client.silence_ms = quiet > 0 ? quiet + more_ms : 0;
    err = strcmp(method, "GET") != 0 && r->client.wait == NULL
              ? gl_await_reply(r, method, path, body, r->client.silence_ms, ret, reterr_why)
              : gl_http_client_call(&r->client, method, path, body, ret, reterr_why);
    if (r->client.is_silent) {
        return gl_connect_explain_silence(r, r->client.silence_ms, reterr_why);
    }
    if (err == 0 && ret->status >= 400) {
        err = ret->status == UNAUTHORIZED ? fail_token(r, reterr_why) : read_error(ret, reterr_why);
    }
    if (err == GL_E_GONE || err == GL_E_UNAVAILABLE) {
        leave_if_asked(r);
    }
    return err;
}

int gl_connect_call(struct gl_connection *r, const char *method, const char *path, gl_str body,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    return call(r, method, path, body, 0, ret, reterr_why);
}

bool gl_connect_is_lost(const struct gl_connection *r, int code)
{
    return r->daemon == NULL && !r->client.is_silent &&
           (code == GL_E_GONE || code == GL_E_UNAVAILABLE);
}

int gl_connect_call_retrying(struct gl_connection *r, const char *method, const char *path,
                             gl_str body, struct gl_http_client_reply *ret,
                             struct gl_why *reterr_why)
{
    gl_ms until = gl_term_now() + GL_CONNECT_TIMEOUT_MS;

    for (;;) {
        int err = gl_connect_open(r, reterr_why);

        if (err != 0) {
            return err;
        }
        err = gl_connect_call(r, method, path, body, ret, reterr_why);
        /* "not_found" may also be the node's reply; only a broken connection means that there is no
         * node. */
        if (err == 0 || (err == GL_E_NOT_FOUND && r->client.fd >= 0) ||
            !gl_connect_is_lost(r, err) || gl_term_now() > until) {
            return err;
        }
        gl_http_client_disconnect(&r->client);
        gl_connect_pause();
    }
}

/* ---- the requested store ---- */

/* "sqlite:" means the one in the data folder. */
static bool is_our_store(const struct gl_connection *r, gl_str of_node)
{
    struct gl_arena *a = &r->cli->arena;
    gl_str given = gl_str_of(r->cli->settings->values[GL_SET_STORE].text);
    gl_str here = gl_str_fmt(a, "sqlite:%s", r->cli->data);

    return gl_storeurl_is_same(gl_str_is(given, "sqlite:") ? here : given,
                               gl_str_is(of_node, "sqlite:") ? here : of_node);
}

/* A user who names a store wants its jobs, not those of a node on another store. Without --store
 * any store will do. */
static int check_store(struct gl_connection *r, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_http_client_reply reply;
    struct gl_json j;
    gl_str store;
    int err;

    if (r->is_remote || r->daemon != NULL ||
        r->cli->settings->values[GL_SET_STORE].text[0] == '\0') {
        return 0;
    }
    err = call(r, "GET", "/v1/node", (gl_str){0}, 0, &reply, reterr_why);
    if (err != 0 || gl_json_parse(&j, reply.body, ANSWER_BYTES_MAX, &a, NULL) != 0) {
        return gl_connect_is_silent(r) || is_absent(err) ? err : 0; /* it may be stopping */
    }
    store = member(&a, &j, gl_json_root(&j), "store");
    if (store.n == 0 || is_our_store(r, store)) { /* earlier releases do not report it */
        return 0;
    }
    gl_http_client_disconnect(&r->client);
    return gl_why(reterr_why, GL_R_NODE_WRONG_STORE,
                  "the node of %s uses the store %.*s, but %s was given (%s): give the same store, "
                  "choose another folder with --data-dir, or restart the node with this store",
                  r->cli->data, GL_STR_ARG(store),
                  gl_settings_shown(r->cli->settings, GL_SET_STORE, &r->cli->arena),
                  gl_settings_origin(r->cli->settings, GL_SET_STORE, &r->cli->arena));
}

/* ---- requests ---- */

const char *gl_connect_path(const struct gl_connection *r, struct gl_request *rq)
{
    rq->context = r->cli->context;
    return gl_request_path(&r->cli->arena, rq);
}

int gl_connect_send(struct gl_connection *r, enum gl_connect_how how, struct gl_request *rq,
                    struct gl_http_client_reply *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf body = {0};
    const char *method = gl_verbs[rq->verb].method, *path;
    int err;

    rq->context = r->cli->context;
    path = gl_request_path(&a, rq);
    gl_request_write(rq, &body);
    if (how == GL_CONNECT_RETRY) {
        return gl_connect_call_retrying(r, method, path, gl_buf_view(&body), ret, reterr_why);
    }
    err = how == GL_CONNECT_OPEN ? gl_connect_open(r, reterr_why) : 0;
    return err != 0 ? err : gl_connect_call(r, method, path, gl_buf_view(&body), ret, reterr_why);
}

/* A node on a shared store has replied that it cannot read the store. */
static bool is_shared_store_down(const struct gl_connection *r, int err)
{
    return err == GL_E_UNAVAILABLE && r->client.fd >= 0 &&
           gl_storeurl_is_shared(gl_str_of(r->cli->settings->values[GL_SET_STORE].text));
}

static int query_node(struct gl_connection *r, const struct gl_request *rq, struct gl_buf *body,
                      struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0}; /* some commands ask repeatedly */
    struct gl_http_client_reply reply;
    int err = r->is_remote ? gl_connect_find(r, reterr_why) : try_connect(r, reterr_why);

    if (err == 0) {
        err = call(r, gl_verbs[rq->verb].method, gl_request_path(&a, rq), (gl_str){0},
                   rq->verb == GL_VERB_EVENTS ? (int)rq->events.wait_ms : 0, &reply, reterr_why);
    }
    if (err == 0) {
        gl_buf_str(body, reply.body);
    }
    return err;
}

/* A command that follows a job waits out a silent node: it may recover or be replaced. */
static int query_waiting(struct gl_connection *r, const struct gl_request *rq, struct gl_buf *body,
                         struct gl_why *reterr_why)
{
    struct gl_why why = {0};
    int err = query_node(r, rq, body, &why);

    while (err != 0 && r->waits_for_node && gl_connect_is_silent(r)) {
        if (!r->has_reported) {
            gl_cli_note(r->cli, "%s; waiting", why.text);
        }
        r->has_reported = true;
        err = query_node(r, rq, body, &why);
    }
    if (err == 0 && r->has_reported) {
        gl_cli_note(r->cli, "the node answers again");
        r->has_reported = false;
    }
    return err != 0 ? gl_why(reterr_why, gl_err_join(err, why.reason), "%s", why.text) : 0;
}

/* --data-dir names no folder: it may be mistyped, and the answer would just be empty. */
static void note_missing_folder(struct gl_connection *r)
{
    if (r->cli->data_option != NULL && !r->has_noted_folder && access(r->cli->data, F_OK) != 0 &&
        !gl_storeurl_is_shared(gl_str_of(r->cli->settings->values[GL_SET_STORE].text))) {
        gl_cli_note(r->cli, "the data folder %s does not exist", r->cli->data);
        r->has_noted_folder = true;
    }
}

int gl_connect_ask(struct gl_connection *r, struct gl_request *rq, struct gl_buf *body,
                   struct gl_why *reterr_why)
{
    bool is_left = false;
    int err;

    rq->context = r->cli->context;
    err = query_waiting(r, rq, body, reterr_why);
    if (is_shared_store_down(r, err) && !r->is_remote) {
        /* Its store is unreachable, also for this process. Or the node is about to stop: then it no
         * longer listens, and the store can be read without it. */
        gl_http_client_disconnect(&r->client);
        is_left = try_connect(r, NULL) == GL_E_GONE;
    }
    r->has_no_node =
        !r->is_remote && (is_left || (gl_connect_is_lost(r, err) && !is_shared_store_down(r, err)));
    if (r->has_no_node) {
        note_missing_folder(r);
    }
    return r->has_no_node
               ? gl_offline_query(r->cli->data, r->cli->settings->values[GL_SET_STORE].text,
                                  r->cli->settings->values[GL_SET_RUNS_ROOT].text, rq, body,
                                  reterr_why)
               : err;
}

bool gl_connect_warn_no_node(const struct gl_connection *r, gl_str status)
{
    static const char *const driven[] = {"pending", "running", "pausing", "cancelling"};

    if (gl_storeurl_is_shared(gl_str_of(r->cli->settings->values[GL_SET_STORE].text))) {
        return false; /* another node may run the job: see `why` */
    }
    for (size_t i = 0; i < GL_COUNT(driven) && r->has_no_node && !r->cli->json; i++) {
        if (gl_str_is(status, driven[i])) {
            gl_cli_note(
                r->cli,
                "no node is running, so unfinished jobs will not progress; '%s' resumes one",
                gl_cli_hint(r->cli, "job resume ID"));
            return true;
        }
    }
    return false;
}
