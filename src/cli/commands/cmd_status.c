/* cmd_status.c - glia status: the node, its pools, and how many jobs there are. */
#include <sys/stat.h>

#include "base/check.h"
#include "cli/output/overview.h"
#include "cli/output/table.h"
#include "os/lock.h"
#include "os/paths.h"
#include "port/storeurl.h"

static uint64_t file_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The store's file and what is written beside it first; 0: it is not there. */
static uint64_t store_bytes(struct gl_cli *cli)
{
    const char *path = gl_paths_context(&cli->arena, cli->data, cli->context, GL_PATHS_STATE);

    return file_bytes(path) + file_bytes(gl_str_fmt(&cli->arena, "%s-wal", path).p);
}

static void add(struct gl_table *t, const char *what, gl_str value)
{
    gl_table_add(t, gl_str_of(what));
    gl_table_add(t, value);
}

/* Is the node remote (--server)? Then the local data folder says nothing about it. */
static bool is_remote(const struct gl_cli *cli)
{
    return cli->settings->values[GL_SET_SERVER].text[0] != '\0';
}

/* The store the node is on, or without one the store that was asked. */
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

/* "n1, serve, process 123 since ..." */
static gl_str node_text(struct gl_cli *cli, struct gl_overview *o)
{
    char when[GL_TIMES_BYTES];
    struct gl_lock_holder holder;
    bool is_here = !is_remote(cli) && gl_lock_find(cli->data, &holder);
    gl_str name = gl_api_reply_text(&o->node, o->node.root, "name");

    if (!o->has_node) {
        return is_here             ? GL_S("a process holds the data folder but does not answer")
               : is_shared(cli, o) ? GL_S("not running here; 'glia node list' shows other nodes")
                                   : GL_S("not running; unfinished jobs will not progress");
    }
    if (!is_here || holder.pid == 0) {
        return name;
    }
    return gl_str_fmt(&cli->arena, "%.*s%s%s, process %lld since %.*s", GL_STR_ARG(name),
                      holder.what[0] != '\0' ? ", " : "", holder.what, (long long)holder.pid,
                      GL_STR_ARG(gl_times_format(holder.since, when)));
}

/* "1 step", "2 steps, 1 request" */
static gl_str human_text(struct gl_cli *cli, const struct gl_overview *o)
{
    uint64_t steps = o->human_n - o->requests_n;
    gl_str text =
        gl_str_fmt(&cli->arena, "%llu step%s", (unsigned long long)steps, steps == 1 ? "" : "s");

    return o->requests_n == 0
               ? text
               : gl_str_fmt(&cli->arena, "%.*s, %llu request%s", GL_STR_ARG(text),
                            (unsigned long long)o->requests_n, o->requests_n == 1 ? "" : "s");
}

static void print_table(struct gl_cli *cli, struct gl_overview *o)
{
    static const char *const titles[] = {"WHAT", "STATE"};
    struct gl_api_reply *n = &o->node;
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    if (!is_remote(cli)) {
        add(&t, "data folder", gl_str_of(cli->data));
    }
    add(&t, "node", node_text(cli, o));
    if (o->has_node && gl_overview_reason(n).n > 0) {
        add(&t, "not ready", gl_overview_reason(n));
    }
    if (o->has_node) {
        add(&t, "pools", gl_overview_pools(n));
        add(&t, "steps",
            gl_str_fmt(&cli->arena, "%lld running, %lld waiting for slots",
                       (long long)gl_api_reply_number(n, n->root, "attempts_running"),
                       (long long)gl_api_reply_number(n, n->root, "steps_waiting")));
    }
    if (is_shared(cli, o)) {
        add(&t, "store", store_of(cli, o));
    } else if (!is_remote(cli)) {
        add(&t, "store",
            gl_str_fmt(&cli->arena, "%.1f MiB", (double)store_bytes(cli) / (double)(1 << 20)));
    }
    add(&t, "jobs", o->has_jobs ? gl_overview_counts(o, &cli->arena) : GL_S("cannot be read"));
    if (o->has_jobs) {
        add(&t, "waiting for a person", human_text(cli, o));
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
    if (o->has_jobs && o->human_n > 0 && cli->err.is_tty) {
        gl_cli_note(cli, "to see what waits for a person: %s", gl_cli_hint(cli, "human list"));
    }
}

static void put_jobs(struct gl_jw *w, const struct gl_overview *o)
{
    gl_jw_key(w, "jobs");
    if (o->has_jobs) {
        gl_jw_object(w);
        for (size_t i = 0; i < GL_JOB_STATUS_COUNT; i++) {
            gl_jw_put_u64(w, gl_job_status_words[i], o->counts[i]);
        }
        gl_jw_end(w);
    } else {
        gl_jw_null(w);
    }
    gl_jw_key(w, "jobs_complete"); /* were all counted? */
    gl_jw_bool(w, o->has_jobs && !o->has_more);
    gl_jw_key(w, "human");
    if (o->has_jobs) {
        gl_jw_u64(w, o->human_n);
    } else {
        gl_jw_null(w);
    }
}

static void print_json(struct gl_cli *cli, struct gl_overview *o, int err, const char *why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    gl_jw_key(&w, "data_dir");
    if (is_remote(cli)) {
        gl_jw_null(&w);
    } else {
        gl_jw_c(&w, cli->data);
    }
    gl_jw_key(&w, "node");
    if (o->has_node) {
        gl_jw_raw(&w, gl_str_trim(gl_buf_view(&o->node.body)));
    } else {
        gl_jw_null(&w);
    }
    gl_jw_key(&w, "store_bytes");
    if (is_remote(cli) || is_shared(cli, o)) {
        gl_jw_null(&w);
    } else {
        gl_jw_u64(&w, store_bytes(cli));
    }
    put_jobs(&w, o);
    if (!o->has_jobs) {
        gl_cli_put_error(&w, err, why);
    }
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&out));
}

int gl_cmd_status(struct gl_cli *cli)
{
    struct gl_overview o;
    struct gl_connection connection;
    struct gl_why why = {0};
    int code = GL_EXIT_OK, err;

    gl_connect_init(&connection, cli);
    connection.silence_ms = GL_CONNECT_SILENCE_SHORT_MS;
    err = gl_overview_read(&o, &connection, &why);
    if (err != 0 && !o.has_node) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (cli->json) {
        print_json(cli, &o, gl_err_join(err, why.reason), why.text);
    } else {
        print_table(cli, &o);
    }
    if (err != 0 && o.has_node) {
        code = gl_cli_fail_json(cli, gl_err_join(err, why.reason), why.text);
    }
    gl_overview_done(&o);
    gl_connect_done(&connection);
    return code;
}
