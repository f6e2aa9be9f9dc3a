/* cmd_doctor.c - glia doctor: checks what a node needs. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/offline.h"
#include "base/check.h"
#include "base/json.h"
#include "base/map.h"
#include "cli/commands/doctor_check.h"
#include "cli/output/overview.h"
#include "cli/output/rows.h"
#include "os/fs.h"
#include "os/lock.h"
#include "os/paths.h"
#include "os/sock.h"
#include "port/keeper_protocol.h"
#include "port/storeurl.h"

enum { KEEPER_PATIENCE_MS = 2000, ANSWER_BYTES = 4096 };

/* ---- the data folder ---- */

static void check_folder(struct gl_doctor_check *c)
{
    const char *data = c->cli->data;
    struct stat st;

    if (stat(data, &st) < 0) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "",
                               "%s does not exist yet; the first job creates it", data);
    } else if (access(data, W_OK | X_OK) < 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "give it to the user who runs the node",
                               "%s cannot be written: %s", data, strerror(errno));
    } else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        gl_doctor_check_report(
            c, GL_DOCTOR_FAIL, gl_str_fmt(&c->cli->arena, "chmod 700 %s", data).p,
            "other users may write to %s (mode %03o)", data, (unsigned)(st.st_mode & 0777));
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%s", data);
    }
}

static void check_node(struct gl_doctor_check *c)
{
    struct gl_lock_holder holder = {0};
    bool is_held = gl_lock_find(c->cli->data, &holder), answers;
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err;

    gl_connect_init(&connection, c->cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    err = gl_connect_find(&connection, &why);
    answers = gl_overview_node(&connection, &page);
    if (err == GL_E_STATE) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "", "%s", why.text);
    } else if (answers && gl_overview_reason(&page).n > 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "", "it is not ready: %.*s",
                               GL_STR_ARG(gl_overview_reason(&page)));
    } else if (answers && holder.pid != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "it answers: process %lld (%s)",
                               (long long)holder.pid,
                               holder.what[0] != '\0' ? holder.what : "a node");
    } else if (answers) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "it answers");
    } else if (is_held) {
        gl_doctor_check_report(
            c, GL_DOCTOR_FAIL,
            gl_str_fmt(&c->cli->arena,
                       "if it is stopped, 'kill -CONT %lld' continues it; otherwise wait some "
                       "seconds, then end that process",
                       (long long)holder.pid)
                .p,
            "process %lld holds the folder and does not answer", (long long)holder.pid);
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "none is running");
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
}

/* The first bad finding, else the first warning. */
static void check_own_node(struct gl_doctor_check *c, const char *url)
{
    static const char hint[] = "see 'glia store check'";
    const struct gl_finding *worst = NULL;
    struct gl_findings f = {0};
    struct gl_why why;

    if (gl_offline_check_own(c->cli->data, url, &c->cli->arena, &f, &why) != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, hint, "%s", why.text);
        return;
    }
    for (size_t i = 0; i < f.n; i++) {
        if (f.items[i].level != GL_FINDING_GOOD &&
            (worst == NULL || f.items[i].level > worst->level)) {
            worst = &f.items[i];
        }
    }
    if (worst == NULL) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "",
                               "it answers, and is configured not to lose data");
    } else {
        gl_doctor_check_report(c, worst->level == GL_FINDING_BAD ? GL_DOCTOR_FAIL : GL_DOCTOR_WARN,
                               hint, "%.*s", GL_STR_ARG(worst->text));
    }
}

static void check_store(struct gl_doctor_check *c)
{
    const char *url = c->cli->settings->values[GL_SET_STORE].text;
    struct gl_lock_holder holder;
    struct gl_why why;
    int err;

    if (url[0] == '\0' && gl_offline_is_other_store(c->cli->data, url) &&
        gl_lock_find(c->cli->data, &holder)) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "",
                               "not checked: give the node's store with --store to check it");
        return;
    }
    if (gl_storeurl_is_shared(gl_str_of(url)) || gl_offline_is_other_store(c->cli->data, url)) {
        check_own_node(c, url);
        return;
    }
    err = gl_offline_check_store(c->cli->data, &why);
    if (err == GL_E_NOT_FOUND) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "there is none yet");
    } else if (err != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "restore a backup: glia help restore", "%s",
                               why.text);
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "sound");
    }
}

/* Report two live nodes whose orphan_grace differs: the longer one applies. false: all are the
 * same, or no node can be asked. */
static bool find_other_grace(struct gl_doctor_check *c, struct gl_api_reply *p)
{
    gl_jnode nodes = gl_json_get(&p->j, p->root, "nodes");
    gl_str first = {0}, name = {0};

    for (gl_jnode e = gl_json_first(&p->j, nodes); e; e = gl_json_after(&p->j, nodes, e)) {
        gl_str grace = gl_json_raw(&p->j, gl_json_get(&p->j, e, "orphan_grace_ms"));

        if (gl_str_is(gl_api_reply_text(p, e, "status"), "dead") || grace.n == 0) {
            continue; /* nodes of earlier releases do not report it */
        }
        if (first.n > 0 && !gl_str_eq(grace, first)) {
            gl_doctor_check_report(
                c, GL_DOCTOR_WARN, "give all nodes the same orphan_grace",
                "nodes differ in orphan_grace: %.*s ms on '%.*s', %.*s ms on '%.*s'; "
                "takeovers wait for the longer one",
                GL_STR_ARG(first), GL_STR_ARG(name), GL_STR_ARG(grace),
                GL_STR_ARG(gl_api_reply_text(p, e, "name")));
            return true;
        }
        first = first.n > 0 ? first : grace;
        name = name.n > 0 ? name : gl_api_reply_text(p, e, "name");
    }
    return false;
}

static void check_cluster(struct gl_doctor_check *c)
{
    struct gl_request rq = {.verb = GL_VERB_NODES};
    struct gl_connection connection;
    struct gl_api_reply page = {0};
    struct gl_why why;

    gl_connect_init(&connection, c->cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    if (gl_connect_find(&connection, &why) != 0 ||
        gl_api_reply_ask(&page, &connection, &rq, &why) != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "not checked: no node answers");
    } else if (!find_other_grace(c, &page)) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "all live nodes have the same orphan_grace");
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
}

/* Files that only their owner may read. */
static void check_secrets(struct gl_doctor_check *c)
{
    static const char *const names[] = {GL_PATHS_TOKEN, GL_PATHS_SOCKET, GL_PATHS_NODE};
    size_t seen = 0;

    for (size_t i = 0; i < GL_COUNT(names); i++) {
        const char *path = gl_paths_in(&c->cli->arena, c->cli->data, names[i]);
        struct stat st;

        if (lstat(path, &st) < 0) {
            continue;
        }
        seen++;
        if ((st.st_mode & 077) != 0) {
            gl_doctor_check_report(
                c, GL_DOCTOR_FAIL, gl_str_fmt(&c->cli->arena, "chmod 600 %s", path).p,
                "other users may use %s (mode %03o)", path, (unsigned)(st.st_mode & 0777));
            return;
        }
    }
    gl_doctor_check_report(c, GL_DOCTOR_OK, "",
                           seen > 0 ? "token, socket and identity are private"
                                    : "there are none yet");
}

/* ---- the keeper ---- */

static void check_program(struct gl_doctor_check *c)
{
    const char *path;
    struct gl_why why;

    if (gl_offline_find_keeper(&c->cli->arena, &path, &why) != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "install glia-keeper beside glia", "%s",
                               why.text);
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%s", path);
    }
}

/* A handshake that offers no version: the keeper refuses it, which changes nothing and shows that
 * it responds. */
static bool keeper_handshake(int fd)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf hello = {0};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char answer[ANSWER_BYTES];

    gl_keeper_encode(&(struct gl_keeper_msg){.type = GL_KEEPER_HELLO}, &hello);
    return send(fd, hello.p, hello.n, MSG_NOSIGNAL) == (ssize_t)hello.n &&
           poll(&p, 1, KEEPER_PATIENCE_MS) > 0 && recv(fd, answer, sizeof(answer), 0) > 0;
}

static void check_keeper(struct gl_doctor_check *c)
{
    const char *path = gl_paths_in(
        &c->cli->arena, gl_paths_in(&c->cli->arena, c->cli->data, GL_PATHS_KEEPER), "sock");
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    struct gl_why why;
    int err = gl_sock_connect(path, &fd, &why);

    if (err == GL_E_NOT_FOUND || err == GL_E_GONE) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "none is running; a node starts it");
    } else if (err != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL, "check who owns the data folder", "%s", why.text);
    } else if (!keeper_handshake(fd)) {
        gl_doctor_check_report(c, GL_DOCTOR_FAIL,
                               "kill it; the steps it runs are lost: see docs/keeper.md",
                               "it is running but does not answer");
    } else {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "it answers");
    }
}

/* ---- pools ---- */

static bool has_pool(struct gl_api_reply *p, gl_jnode node, gl_str pool)
{
    gl_jnode pools = gl_json_get(&p->j, node, "pools");

    for (gl_jnode e = gl_json_first(&p->j, pools); e; e = gl_json_after(&p->j, pools, e)) {
        if (gl_str_eq(gl_api_reply_text(p, e, "name"), pool)) {
            return true;
        }
    }
    return false;
}

/* The live nodes that have this pool; "": all of them. */
static gl_str only_on(struct gl_api_reply *p, gl_jnode nodes, gl_str pool)
{
    struct gl_buf out = {0};
    size_t without = 0;
    gl_str text = {0};

    for (gl_jnode n = gl_json_first(&p->j, nodes); n; n = gl_json_after(&p->j, nodes, n)) {
        if (!gl_str_is(gl_api_reply_text(p, n, "status"), "alive")) {
            continue;
        }
        if (has_pool(p, n, pool)) {
            gl_buf_fmt(&out, "%s%.*s", out.n > 0 ? ", " : "",
                       GL_STR_ARG(gl_api_reply_text(p, n, "name")));
        } else {
            without++;
        }
    }
    if (without > 0) {
        text = gl_str_dup(&p->arena, gl_buf_view(&out));
    }
    gl_buf_done(&out);
    return text;
}

static void report_pool(struct gl_api_reply *p, gl_jnode nodes, gl_str pool, struct gl_map *seen,
                        struct gl_buf *out)
{
    gl_str *name;
    gl_str where;

    if (gl_map_find(seen, pool) != NULL) {
        return;
    }
    name = GL_NEW(&p->arena, gl_str);
    *name = pool;
    gl_map_add(seen, *name, name);
    where = only_on(p, nodes, pool);
    if (where.n > 0) {
        gl_buf_fmt(out, "%s'%.*s' only on %.*s", out->n > 0 ? "; " : "", GL_STR_ARG(pool),
                   GL_STR_ARG(where));
    }
}

static void report_pools(struct gl_api_reply *p, struct gl_buf *out)
{
    gl_jnode nodes = gl_json_get(&p->j, p->root, "nodes");
    struct gl_map seen;

    gl_map_init(&seen);
    for (gl_jnode n = gl_json_first(&p->j, nodes); n; n = gl_json_after(&p->j, nodes, n)) {
        gl_jnode pools = gl_json_get(&p->j, n, "pools");

        for (gl_jnode e = gl_json_first(&p->j, pools); e; e = gl_json_after(&p->j, pools, e)) {
            report_pool(p, nodes, gl_api_reply_text(p, e, "name"), &seen, out);
        }
    }
    gl_map_done(&seen);
}

/* A job runs only on nodes that have its pools. Nodes with different pools are not an error, but
 * worth knowing. */
static void check_pools(struct gl_doctor_check *c)
{
    struct gl_request rq = {.verb = GL_VERB_NODES};
    struct gl_connection connection;
    struct gl_api_reply p = {0};
    struct gl_buf out = {0};
    bool answers;

    gl_connect_init(&connection, c->cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    answers = gl_overview_node(&connection, &p);
    gl_api_reply_done(&p);
    p = (struct gl_api_reply){0};
    if (!answers) {
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "not checked: no node is running");
    } else if (gl_api_reply_ask(&p, &connection, &rq, NULL) != 0) {
        gl_doctor_check_report(c, GL_DOCTOR_WARN, "", "the nodes could not be listed");
    } else {
        report_pools(&p, &out);
        gl_doctor_check_report(c, GL_DOCTOR_OK, "", "%.*s",
                               GL_STR_ARG(out.n > 0 ? gl_buf_view(&out)
                                                    : GL_S("all live nodes offer the same pools")));
    }
    gl_buf_done(&out);
    gl_api_reply_done(&p);
    gl_connect_done(&connection);
}

static const struct gl_doctor_check_item items[] = {
    {"data folder", check_folder},  {"node", check_node},
    {"store", check_store},         {"other nodes", check_cluster},
    {"permissions", check_secrets}, {"keeper's program", check_program},
    {"keeper", check_keeper},       {"pools", check_pools},
};

/* ---- the command ---- */

static const char *const grades[] = {"ok", "warn", "fail"};

static gl_str found_cell(const struct gl_row *row)
{
    gl_str todo = gl_api_reply_text(row->p, row->node, "to_do");

    return gl_str_fmt(&row->p->arena, "%.*s%s%.*s",
                      GL_STR_ARG(gl_api_reply_text(row->p, row->node, "found")),
                      todo.n > 0 ? "; to do: " : "", GL_STR_ARG(todo));
}

static const struct gl_column columns[] = {
    {"STATUS", .key = "result"},
    {"CHECK", .key = "check"},
    {"FOUND", .cell = found_cell},
};

/* `counts`: number of checks by grade. */
static void run_checks(struct gl_cli *cli, const struct gl_doctor_check_item *checks, size_t n,
                       size_t *counts, struct gl_jw *w)
{
    for (size_t i = 0; i < n; i++) {
        struct gl_doctor_check c = {.cli = cli, .found = "", .todo = ""};

        checks[i].look(&c);
        counts[c.grade]++;
        gl_jw_object(w);
        gl_jw_put_c(w, "check", checks[i].name);
        gl_jw_put_c(w, "result", grades[c.grade]);
        gl_jw_put_c(w, "found", c.found);
        gl_jw_put_c(w, "to_do", c.todo);
        gl_jw_end(w);
    }
}

int gl_cmd_doctor(struct gl_cli *cli)
{
    struct gl_rows l = {.cli = cli, GL_COLUMNS(columns), .list = "checks"};
    size_t counts[GL_COUNT(grades)] = {0};
    struct gl_jw *w = gl_rows_begin(&l);
    int code;

    gl_jw_put_array(w, "checks");
    run_checks(cli, items, GL_COUNT(items), counts, w);
    run_checks(cli, gl_doctor_checks_machine, gl_doctor_checks_machine_n, counts, w);
    gl_jw_end(w);
    code = gl_rows_end(&l);
    if (!cli->json) {
        gl_cli_note(cli, "%zu failed, %zu warnings", counts[GL_DOCTOR_FAIL],
                    counts[GL_DOCTOR_WARN]);
    }
    return counts[GL_DOCTOR_FAIL] > 0 ? GL_EXIT_FAILED : code;
}
