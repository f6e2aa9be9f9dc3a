/* cmd_status.c - glia status: the node, its pools, and the number of jobs. */
#include <sys/stat.h>

#include "base/check.h"
#include "cli/output/overview.h"
#include "cli/output/rows.h"
#include "os/lock.h"
#include "os/paths.h"
#include "port/storeurl.h"

static uint64_t file_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The size of the store's file and its write-ahead log; 0: it does not exist. */
static uint64_t store_bytes(struct gl_cli *cli)
{
    const char *path = gl_paths_context(&cli->arena, cli->data, cli->context, GL_PATHS_STATE);

    return file_bytes(path) + file_bytes(gl_str_fmt(&cli->arena, "%s-wal", path).p);
}

/* Is the node remote (--server)? Then the local data folder says nothing about it. */
static bool is_remote(const struct gl_cli *cli)
{
    return cli->settings->values[GL_SET_SERVER].text[0] != '\0';
}

/* The store that the node uses or, without a node, the store that was read. */
static gl_str store_of(struct gl_cli *cli, struct gl_overview *o)
{
    gl_str told = o->has_node ? gl_api_reply_text(&o->node, o->node.root, "store") : (gl_str){0};

    return told.n > 0 ? told
                      : gl_str_of(gl_settings_shown(cli->settings, GL_SET_STORE, &cli->arena));
}

/* Are the jobs on a server? Then the local store file says nothing about them. */
static bool is_shared(struct gl_cli *cli, struct gl_overview *o)
{
    return !is_remote(cli) && gl_storeurl_is_shared(store_of(cli, o));
}

/* ---- the table ---- */

struct status_command {
    struct gl_cli *cli;
    struct gl_overview o;
};

/* "n1, serve, process 123 since ..." */
static gl_str node_cell(const struct gl_row *row)
{
    struct status_command *s = row->owner;
    char when[GL_TIMES_BYTES];
    struct gl_lock_holder holder;
    bool is_here = !is_remote(s->cli) && gl_lock_find(s->cli->data, &holder);
    gl_str name = gl_api_reply_text(&s->o.node, s->o.node.root, "name");

    if (!s->o.has_node) {
        return is_here ? GL_S("a process holds the data folder but does not answer")
               : is_shared(s->cli, &s->o)
                   ? GL_S("not running here; 'glia node list' shows other nodes")
                   : GL_S("not running; unfinished jobs will not progress");
    }
    if (!is_here || holder.pid == 0) {
        return name;
    }
    return gl_str_fmt(&row->p->arena, "%.*s%s%s, process %lld since %.*s", GL_STR_ARG(name),
                      holder.what[0] != '\0' ? ", " : "", holder.what, (long long)holder.pid,
                      GL_STR_ARG(gl_times_format(holder.since, when)));
}

static gl_str reason_cell(const struct gl_row *row)
{
    return gl_api_reply_text(row->p, gl_json_get(&row->p->j, row->node, "node"), "reason");
}

static gl_str pools_cell(const struct gl_row *row)
{
    struct status_command *s = row->owner;

    return s->o.has_node ? gl_overview_pools(&s->o.node) : (gl_str){0};
}

static gl_str steps_cell(const struct gl_row *row)
{
    gl_jnode node = gl_json_get(&row->p->j, row->node, "node");

    return gl_json_is(node, GL_JSON_OBJECT)
               ? gl_str_fmt(&row->p->arena, "%.*s, %lld waiting for slots",
                            GL_STR_ARG(gl_overview_running(row->p, node)),
                            (long long)gl_api_reply_number(row->p, node, "steps_waiting"))
               : (gl_str){0};
}

/* The URL of a shared store, or the size of a local file. */
static gl_str store_cell(const struct gl_row *row)
{
    struct status_command *s = row->owner;
    int64_t bytes = gl_api_reply_number(row->p, row->node, "store_bytes");

    return is_shared(s->cli, &s->o) ? store_of(s->cli, &s->o)
           : is_remote(s->cli)
               ? (gl_str){0}
               : gl_str_fmt(&row->p->arena, "%.1f MiB", (double)bytes / (double)(1 << 20));
}

static gl_str jobs_cell(const struct gl_row *row)
{
    struct status_command *s = row->owner;

    return s->o.has_jobs ? gl_overview_counts(&s->o, &row->p->arena) : GL_S("cannot be read");
}

/* "1 step", "2 steps, 1 request" */
static gl_str human_cell(const struct gl_row *row)
{
    const struct gl_overview *o = &((struct status_command *)row->owner)->o;
    unsigned long long steps = o->human_n - o->requests_n, requests = o->requests_n;
    gl_str text = gl_str_fmt(&row->p->arena, "%llu step%s", steps, steps == 1 ? "" : "s");

    return !o->has_jobs    ? (gl_str){0}
           : requests == 0 ? text
                           : gl_str_fmt(&row->p->arena, "%.*s, %llu request%s", GL_STR_ARG(text),
                                        requests, requests == 1 ? "" : "s");
}

static const struct gl_column columns[] = {
    {"data folder", .key = "data_dir"}, {"node", .cell = node_cell},
    {"not ready", .cell = reason_cell}, {"pools", .cell = pools_cell},
    {"steps", .cell = steps_cell},      {"store", .cell = store_cell},
    {"jobs", .cell = jobs_cell},        {"waiting for a person", .cell = human_cell},
};

/* ---- the document ---- */

static void write_jobs(struct gl_jw *w, const struct gl_overview *o)
{
    if (o->has_jobs) {
        gl_jw_put_object(w, "jobs");
        for (size_t i = 0; i < GL_JOB_STATUS_COUNT; i++) {
            gl_jw_put_u64(w, gl_job_status_words[i], o->counts[i]);
        }
        gl_jw_end(w);
    } else {
        gl_jw_put_raw(w, "jobs", GL_S("null"));
    }
    gl_jw_put_bool(w, "jobs_complete", o->has_jobs && !o->has_more); /* all were counted */
    if (o->has_jobs) {
        gl_jw_put_u64(w, "human", o->human_n);
    } else {
        gl_jw_put_raw(w, "human", GL_S("null"));
    }
}

static void write_status(struct gl_jw *w, struct gl_cli *cli, struct gl_overview *o)
{
    if (is_remote(cli)) {
        gl_jw_put_raw(w, "data_dir", GL_S("null"));
    } else {
        gl_jw_put_c(w, "data_dir", cli->data);
    }
    gl_jw_put_raw(w, "node", o->has_node ? gl_str_trim(gl_buf_view(&o->node.body)) : (gl_str){0});
    if (is_remote(cli) || is_shared(cli, o)) {
        gl_jw_put_raw(w, "store_bytes", GL_S("null"));
    } else {
        gl_jw_put_u64(w, "store_bytes", store_bytes(cli));
    }
    write_jobs(w, o);
}

/* `err`, `why`: why the jobs cannot be read, if they cannot. */
static int show(struct status_command *s, int err, const char *why)
{
    struct gl_rows l = {.cli = s->cli, GL_COLUMNS(columns), .heading = "STATE", .owner = s};
    struct gl_jw *w = gl_rows_begin(&l);
    int code;

    write_status(w, s->cli, &s->o);
    if (!s->o.has_jobs) {
        gl_cli_put_error(w, err, why);
    }
    code = gl_rows_end(&l);
    if (s->o.has_jobs && s->o.human_n > 0 && s->cli->err.is_tty && !s->cli->json) {
        gl_cli_note(s->cli, "to see what waits for a person: %s",
                    gl_cli_hint(s->cli, "human list"));
    }
    return code;
}

int gl_cmd_status(struct gl_cli *cli)
{
    struct status_command s = {.cli = cli};
    struct gl_connection connection;
    struct gl_why why = {0};
    int code, err;

    gl_connect_init(&connection, cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    err = gl_overview_read(&s.o, &connection, &why);
    if (err != 0 && !s.o.has_node) {
        code = gl_cli_fail_why(cli, err, &why);
    } else {
        code = show(&s, gl_err_join(err, why.reason), why.text);
    }
    if (err != 0 && s.o.has_node) {
        code = gl_cli_fail_json(cli, gl_err_join(err, why.reason), why.text);
    }
    gl_overview_done(&s.o);
    gl_connect_done(&connection);
    return code;
}
