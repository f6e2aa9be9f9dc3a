/* cmd_node.c - glia node list and status, glia cluster status: the nodes that share the store. */
#include "base/check.h"
#include "cli/connect/api_reply.h"
#include "cli/output/table.h"

/* "default 2 of 8, gpu 0 of 1", and how many steps wait for them. */
static gl_str pools_of(struct gl_api_reply *p, gl_jnode node)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode pools = gl_json_get(&p->j, node, "pools");

    for (gl_jnode e = gl_json_first(&p->j, pools); e; e = gl_json_after(&p->j, pools, e)) {
        long long waiting = gl_api_reply_number(p, e, "waiting");

        gl_buf_fmt(&out, "%s%.*s %lld of %lld", out.n > 0 ? ", " : "",
                   GL_STR_ARG(gl_api_reply_text(p, e, "name")),
                   (long long)gl_api_reply_number(p, e, "in_use"),
                   (long long)gl_api_reply_number(p, e, "slots"));
        if (waiting > 0) {
            gl_buf_fmt(&out, " (%lld wait)", waiting);
        }
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

static bool flag(const struct gl_api_reply *p, gl_jnode n, const char *name)
{
    bool value = false;

    (void)gl_json_bool(gl_json_get(&p->j, n, name), &value); /* absent: no */
    return value;
}

/* "8.1s", "late by 3s"; "" of a node that needs none. */
static gl_str deadline_of(struct gl_api_reply *p, gl_jnode node)
{
    int64_t left;
    char text[GL_TIMES_BYTES];

    if (!gl_json_i64(&p->j, gl_json_get(&p->j, node, "deadline_in_ms"), &left)) {
        return (gl_str){0};
    }
    return left >= 0 ? gl_str_dup(&p->arena, gl_times_format_span(left, text))
                     : gl_str_fmt(&p->arena, "late by %.*s",
                                  GL_STR_ARG(gl_times_format_span(-left, text)));
}

static gl_str number_of(struct gl_api_reply *p, gl_jnode node, const char *name)
{
    return gl_str_fmt(&p->arena, "%lld", (long long)gl_api_reply_number(p, node, name));
}

/* ---- list ---- */

static void print_list(struct gl_cli *cli, struct gl_api_reply *p)
{
    static const char *const titles[] = {"NODE",  "STATUS",  "LEADER", "SESSION ENDS IN",
                                         "POOLS", "VERSION", "JOBS",   "HOST"};
    static const char *const least[] = {"HOST", "VERSION", "JOBS", "SESSION ENDS IN", NULL};
    gl_jnode nodes = gl_json_get(&p->j, p->root, "nodes");
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    t.least = least;
    for (gl_jnode e = gl_json_first(&p->j, nodes); e; e = gl_json_after(&p->j, nodes, e)) {
        gl_table_add(&t, gl_api_reply_text(p, e, "name"));
        gl_table_add(&t, gl_api_reply_text(p, e, "status"));
        gl_table_add(&t, flag(p, e, "leader") ? GL_S("leader") : GL_S(""));
        gl_table_add(&t, deadline_of(p, e));
        gl_table_add(&t, pools_of(p, e));
        gl_table_add(&t, gl_api_reply_text(p, e, "version"));
        gl_table_add(&t, number_of(p, e, "jobs"));
        gl_table_add(&t, gl_api_reply_text(p, e, "host"));
    }
    if (t.n > 0) {
        gl_table_print(&t, &cli->out);
    } else {
        gl_cli_note(cli, "no node is running");
    }
    gl_table_done(&t);
}

/* ---- one ---- */

static void add(struct gl_table *t, const char *what, gl_str value)
{
    if (value.n > 0) {
        gl_table_add(t, gl_str_of(what));
        gl_table_add(t, value);
    }
}

static void print_node(struct gl_cli *cli, struct gl_api_reply *p)
{
    static const char *const titles[] = {"WHAT", "HOW IT STANDS"};
    gl_jnode n = p->root;
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    add(&t, "node", gl_api_reply_text(p, n, "name"));
    add(&t, "status", gl_api_reply_text(p, n, "status"));
    add(&t, "state", gl_api_reply_text(p, n, "state"));
    add(&t, "leader", flag(p, n, "leader") ? GL_S("yes") : GL_S("no"));
    add(&t, "session", gl_api_reply_text(p, n, "session"));
    add(&t, "session ends in", deadline_of(p, n));
    add(&t, "host", gl_api_reply_text(p, n, "host"));
    add(&t, "process", gl_json_get(&p->j, n, "pid") ? number_of(p, n, "pid") : (gl_str){0});
    add(&t, "version", gl_api_reply_text(p, n, "version"));
    add(&t, "started", gl_api_reply_text(p, n, "started_at"));
    add(&t, "stack", gl_api_reply_text(p, n, "stack"));
    add(&t, "environment", gl_api_reply_text(p, n, "env_scope"));
    add(&t, "pools", pools_of(p, n));
    add(&t, "jobs", gl_json_get(&p->j, n, "jobs") ? number_of(p, n, "jobs") : (gl_str){0});
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

/* ---- all together ---- */

static gl_str versions_of(struct gl_api_reply *p)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    gl_jnode all = gl_json_get(&p->j, p->root, "versions");

    for (gl_jnode e = gl_json_first(&p->j, all); e; e = gl_json_after(&p->j, all, e)) {
        gl_buf_fmt(&out, "%s%.*s", out.n > 0 ? ", " : "",
                   GL_STR_ARG(gl_json_str(&p->j, e, &p->arena)));
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

static void print_cluster(struct gl_cli *cli, struct gl_api_reply *p)
{
    static const char *const titles[] = {"WHAT", "HOW IT STANDS"};
    gl_jnode n = p->root;
    gl_str leader = gl_api_reply_text(p, n, "leader");
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    add(&t, "store",
        gl_str_fmt(&p->arena, "%.*s, %s", GL_STR_ARG(gl_api_reply_text(p, n, "store")),
                   flag(p, n, "shared") ? "shared" : "of one node"));
    add(&t, "nodes",
        gl_str_fmt(&p->arena, "%lld alive, %lld late, %lld dead",
                   (long long)gl_api_reply_number(p, n, "alive"),
                   (long long)gl_api_reply_number(p, n, "late"),
                   (long long)gl_api_reply_number(p, n, "dead")));
    add(&t, "leader", leader.n > 0 ? leader : GL_S("none"));
    add(&t, "pools", pools_of(p, n));
    add(&t, "jobs", number_of(p, n, "jobs"));
    add(&t, "versions", versions_of(p));
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

/* ---- the commands ---- */

static int ask(struct gl_cli *cli, struct gl_request *rq,
               void (*print)(struct gl_cli *cli, struct gl_api_reply *p))
{
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err, code = GL_EXIT_OK;

    gl_connect_init(&connection, cli);
    err = gl_api_reply_ask(&page, &connection, rq, &why);
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (cli->json) {
        code = gl_api_reply_print_json(&page, cli);
    } else {
        print(cli, &page);
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return code;
}

int gl_cmd_node_list(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_NODES,
                            .nodes.all = gl_cli_option(cli, "--all") != NULL};

    return ask(cli, &rq, print_list);
}

/* The node of the data folder, as the store knows it. */
static int find_own(struct gl_cli *cli, gl_str *ret)
{
    struct gl_request rq = {.verb = GL_VERB_NODES};
    struct gl_connection connection;
    struct gl_api_reply page;
    struct gl_why why;
    int err, code = GL_EXIT_OK;

    gl_connect_init(&connection, cli);
    err = gl_api_reply_ask(&page, &connection, &rq, &why);
    if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else {
        gl_jnode nodes = gl_json_get(&page.j, page.root, "nodes");

        for (gl_jnode e = gl_json_first(&page.j, nodes); e; e = gl_json_after(&page.j, nodes, e)) {
            if (flag(&page, e, "own")) {
                *ret = gl_str_dup(&cli->arena, gl_api_reply_text(&page, e, "name"));
            }
        }
        if (ret->n == 0) {
            code = gl_cli_fail(cli, GL_R_NODE_NOT_FOUND,
                               gl_str_fmt(&cli->arena,
                                          "no node is running in %s: name one of 'glia node list'",
                                          gl_connect_location(&connection))
                                   .p);
        }
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return code;
}

int gl_cmd_node_status(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_NODE_SHOW};
    int code = GL_EXIT_OK;

    if (cli->words_n > 0) {
        rq.nodes.name = gl_str_of(cli->words[0]);
    } else {
        code = find_own(cli, &rq.nodes.name);
    }
    return code != GL_EXIT_OK ? code : ask(cli, &rq, print_node);
}

int gl_cmd_cluster_status(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_CLUSTER};

    return ask(cli, &rq, print_cluster);
}
