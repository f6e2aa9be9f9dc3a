/* cmd_node.c - glia node list and status, glia cluster status: the nodes that share the store. */
#include "base/check.h"
#include "cli/output/rows.h"
#include "model/capacity.h"
#include "model/labels.h"

/* Slots of the pool that attempts of other nodes' jobs use: a number, or a list by owner. */
static long long taken_slots(struct gl_api_reply *p, gl_jnode pool)
{
    gl_jnode taken = gl_json_get(&p->j, pool, "taken");
    long long n = gl_api_reply_number(p, pool, "taken");

    for (gl_jnode e = gl_json_first(&p->j, taken); e; e = gl_json_after(&p->j, taken, e)) {
        n += gl_api_reply_number(p, e, "slots");
    }
    return n;
}

/* "default 2 of 8 (1 taken), gpu 0 of 1", and the number of steps that wait for slots. */
static gl_str pools_cell(const struct gl_row *row)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_api_reply *p = row->p;
    gl_jnode pools = gl_json_get(&p->j, row->node, "pools");

    for (gl_jnode e = gl_json_first(&p->j, pools); e; e = gl_json_after(&p->j, pools, e)) {
        long long waiting = gl_api_reply_number(p, e, "waiting"), taken = taken_slots(p, e);

        gl_buf_fmt(&out, "%s%.*s %lld of %lld", out.n > 0 ? ", " : "",
                   GL_STR_ARG(gl_api_reply_text(p, e, "name")),
                   (long long)gl_api_reply_number(p, e, "in_use"),
                   (long long)gl_api_reply_number(p, e, "slots"));
        if (taken > 0) {
            gl_buf_fmt(&out, " (%lld taken%s", taken, waiting > 0 ? "" : ")");
        }
        if (waiting > 0) {
            gl_buf_fmt(&out, "%s%lld waiting)", taken > 0 ? ", " : " (", waiting);
        }
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

/* "3 (1 elsewhere)": of the node's own jobs. */
static gl_str running_cell(const struct gl_row *row)
{
    struct gl_api_reply *p = row->p;
    long long running = gl_api_reply_number(p, row->node, "running"),
              elsewhere = gl_api_reply_number(p, row->node, "elsewhere");

    return elsewhere > 0 ? gl_str_fmt(&p->arena, "%lld (%lld elsewhere)", running, elsewhere)
                         : gl_str_fmt(&p->arena, "%lld", running);
}

/* "2: default 1 for b.2, gpu 1 for c.3" */
static gl_str taken_cell(const struct gl_row *row)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_api_reply *p = row->p;
    gl_jnode pools = gl_json_get(&p->j, row->node, "pools");

    gl_buf_fmt(&out, "%lld", (long long)gl_api_reply_number(p, row->node, "taken"));
    for (gl_jnode e = gl_json_first(&p->j, pools); e; e = gl_json_after(&p->j, pools, e)) {
        gl_jnode taken = gl_json_get(&p->j, e, "taken");

        for (gl_jnode t = gl_json_first(&p->j, taken); t; t = gl_json_after(&p->j, taken, t)) {
            gl_str owner = gl_api_reply_text(p, t, "owner");

            gl_buf_fmt(&out, "%s%.*s %lld for %.*s", memchr(out.p, ':', out.n) ? ", " : ": ",
                       GL_STR_ARG(gl_api_reply_text(p, e, "name")),
                       (long long)gl_api_reply_number(p, t, "slots"), GL_STR_ARG(owner));
        }
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

/* "8.1s", "late by 3s"; "" for a node without a session deadline. */
static gl_str deadline_cell(const struct gl_row *row)
{
    struct gl_api_reply *p = row->p;
    int64_t left;
    char text[GL_TIMES_BYTES];

    if (!gl_json_i64(&p->j, gl_json_get(&p->j, row->node, "deadline_in_ms"), &left)) {
        return (gl_str){0};
    }
    return left >= 0 ? gl_str_dup(&p->arena, gl_times_format_span(left, text))
                     : gl_str_fmt(&p->arena, "late by %.*s",
                                  GL_STR_ARG(gl_times_format_span(-left, text)));
}

/* ---- the machine; a node of an earlier release, or a dead one, does not tell ---- */

static bool has_machine(const struct gl_row *row, struct gl_capacity *ret)
{
    const struct gl_json *j = &row->p->j;

    return gl_capacity_read(j, gl_json_get(j, row->node, "capacity"), ret);
}

static gl_str size_cell(const struct gl_row *row, uint64_t bytes)
{
    return bytes > 0 ? gl_rows_size(&row->p->arena, bytes) : GL_S("unknown");
}

static gl_str cores_cell(const struct gl_row *row)
{
    char text[GL_CAPACITY_CORES_BYTES];
    struct gl_capacity c;

    return has_machine(row, &c) && c.cores_milli > 0
               ? gl_str_dup(&row->p->arena, gl_capacity_cores_text(c.cores_milli, text))
               : GL_S("unknown");
}

static gl_str memory_cell(const struct gl_row *row)
{
    struct gl_capacity c = {0};

    (void)has_machine(row, &c); /* without one it is unknown */
    return size_cell(row, c.memory_bytes);
}

/* "120.0 GiB of 500.0 GiB" */
static gl_str disk_cell(const struct gl_row *row)
{
    struct gl_arena *a = &row->p->arena;
    struct gl_capacity c;

    return has_machine(row, &c) && c.disk_bytes > 0
               ? gl_str_fmt(a, "%.*s of %.*s", GL_STR_ARG(gl_rows_size(a, c.disk_free_bytes)),
                            GL_STR_ARG(gl_rows_size(a, c.disk_bytes)))
               : GL_S("unknown");
}

/* "zone=a,disk=ssd" */
static gl_str labels_cell(const struct gl_row *row)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_api_reply *p = row->p;
    struct gl_labels labels;

    if (!gl_labels_read(&p->j, gl_json_get(&p->j, row->node, "labels"), &p->arena, &labels)) {
        return GL_S("unknown");
    }
    for (size_t i = 0; i < labels.n; i++) {
        gl_buf_fmt(&out, "%s%.*s=%.*s", i > 0 ? "," : "", GL_STR_ARG(labels.items[i].name),
                   GL_STR_ARG(labels.items[i].value));
    }
    return gl_str_dup(&p->arena, gl_buf_view(&out));
}

/* ---- list ---- */

static gl_str leader_cell(const struct gl_row *row)
{
    return gl_api_reply_is(row->p, row->node, "leader") ? GL_S("leader") : (gl_str){0};
}

static const struct gl_column nodes_columns[] = {
    {"NODE", .key = "name"},
    {"STATUS", .key = "status"},
    {"LEADER", .cell = leader_cell},
    {"SESSION ENDS IN", .cell = deadline_cell, .least = 8},
    {"POOLS", .cell = pools_cell},
    {"VERSION", .key = "version", .least = 2},
    {"JOBS", GL_COLUMN_NUMBER, .key = "jobs", .absent = "0", .least = 7},
    {"HOST", .key = "host", .least = 1},
    {"CORES", .cell = cores_cell, .least = 4},
    {"MEMORY", .cell = memory_cell, .least = 5},
    {"DISK FREE", .cell = disk_cell, .least = 3},
    {"LABELS", .cell = labels_cell, .least = 6},
    {"RUNNING", .cell = running_cell, .least = 9}, /* new columns come last: scripts count them */
    {"TAKEN", GL_COLUMN_NUMBER, .key = "taken", .absent = "0", .least = 10},
};

int gl_cmd_node_list(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_NODES,
                            .nodes.all = gl_cli_option(cli, "--all") != NULL};
    struct gl_rows l = {.cli = cli,
                        GL_COLUMNS(nodes_columns),
                        .list = "nodes",
                        .none = "no node is running; start one with 'glia serve'"};

    return gl_rows_run(&l, &rq);
}

/* ---- one node ---- */

static const struct gl_column node_columns[] = {
    {"node", .key = "name"},           {"status", .key = "status"},
    {"state", .key = "state"},         {"leader", GL_COLUMN_YES_NO, .key = "leader"},
    {"session", .key = "session"},     {"session ends in", .cell = deadline_cell},
    {"host", .key = "host"},           {"process", GL_COLUMN_NUMBER, .key = "pid"},
    {"version", .key = "version"},     {"started", .key = "started_at"},
    {"stack", .key = "stack"},         {"environment", .key = "env_scope"},
    {"pools", .cell = pools_cell},     {"jobs", GL_COLUMN_NUMBER, .key = "jobs"},
    {"running", .cell = running_cell}, {"taken", .cell = taken_cell},
    {"cores", .cell = cores_cell},     {"memory", .cell = memory_cell},
    {"disk free", .cell = disk_cell},  {"labels", .cell = labels_cell},
};

/* Find the name of the data folder's node in the store. */
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
            if (gl_api_reply_is(&page, e, "own")) {
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
    struct gl_rows l = {.cli = cli, GL_COLUMNS(node_columns), .heading = "STATE"};
    int code = GL_EXIT_OK;

    if (cli->words_n > 0) {
        rq.nodes.name = gl_str_of(cli->words[0]);
    } else {
        code = find_own(cli, &rq.nodes.name);
    }
    return code != GL_EXIT_OK ? code : gl_rows_run(&l, &rq);
}

/* ---- the cluster ---- */

static gl_str store_cell(const struct gl_row *row)
{
    return gl_str_fmt(&row->p->arena, "%.*s, %s",
                      GL_STR_ARG(gl_api_reply_text(row->p, row->node, "store")),
                      gl_api_reply_is(row->p, row->node, "shared") ? "shared" : "of one node");
}

static gl_str counts_cell(const struct gl_row *row)
{
    return gl_str_fmt(&row->p->arena, "%lld alive, %lld late, %lld dead",
                      (long long)gl_api_reply_number(row->p, row->node, "alive"),
                      (long long)gl_api_reply_number(row->p, row->node, "late"),
                      (long long)gl_api_reply_number(row->p, row->node, "dead"));
}

/* "step 'a' of job 01J... (pool gpu) on b.2, for 5m" */
static gl_str longest_cell(const struct gl_row *row)
{
    struct gl_api_reply *p = row->p;
    gl_jnode n = gl_json_get(&p->j, row->node, "longest_waiting");
    gl_ms since = gl_api_reply_time(p, n, "since");

    return since == 0
               ? (gl_str){0}
               : gl_str_fmt(&p->arena, "step '%.*s' of job %.*s, for %.*s (pool %.*s, node %.*s)",
                            GL_STR_ARG(gl_api_reply_text(p, n, "step_id")),
                            GL_STR_ARG(gl_api_reply_text(p, n, "job_id")),
                            GL_STR_ARG(gl_api_reply_span(p, since, gl_term_now())),
                            GL_STR_ARG(gl_api_reply_text(p, n, "pool")),
                            GL_STR_ARG(gl_api_reply_text(p, n, "node")));
}

static const struct gl_column cluster_columns[] = {
    {"store", .cell = store_cell},
    {"nodes", .cell = counts_cell},
    {"leader", .key = "leader", .absent = "none"},
    {"pools", .cell = pools_cell},
    {"jobs", GL_COLUMN_NUMBER, .key = "jobs", .absent = "0"},
    {"running", .cell = running_cell},
    {"waiting", GL_COLUMN_NUMBER, .key = "waiting", .absent = "0"},
    {"waits longest", .cell = longest_cell},
    {"versions", GL_COLUMN_JOIN, .key = "versions", .between = ", "},
};

int gl_cmd_cluster_status(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_CLUSTER};
    struct gl_rows l = {.cli = cli, GL_COLUMNS(cluster_columns), .heading = "STATE"};

    return gl_rows_run(&l, &rq);
}
