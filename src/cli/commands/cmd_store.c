/* cmd_store.c - glia store: trim, status, check and migrate. */
#include <fcntl.h>
#include <sys/stat.h>

#include "app/offline.h"
#include "base/check.h"
#include "cli/output/rows.h"
#include "os/paths.h"
#include "os/tree.h"
#include "port/storeurl.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

/* ---- trim ---- */

static int read_limits(struct gl_cli *cli, struct gl_request *ret)
{
    const char *keep_for = gl_cli_option(cli, "--keep-for");
    const char *keep_jobs = gl_cli_option(cli, "--keep-jobs");
    uint64_t jobs;

    gl_request_init(ret, GL_VERB_TRIM, cli->context);
    if (keep_for != NULL && !gl_times_parse_span(gl_str_of(keep_for), &ret->trim.keep_for)) {
        return gl_cli_usage(cli, "--keep-for needs a duration, like 7d or 12h, not '%s'", keep_for);
    }
    if (keep_jobs != NULL) {
        if (!gl_str_u64(gl_str_of(keep_jobs), &jobs) || jobs > INT64_MAX) {
            return gl_cli_usage(cli, "--keep-jobs needs a number, not '%s'", keep_jobs);
        }
        ret->trim.keep_jobs = (int64_t)jobs;
    }
    return GL_EXIT_OK;
}

static uint64_t member(const struct gl_json *j, const char *name)
{
    uint64_t n = 0;

    (void)gl_json_u64(j, gl_json_get(j, gl_json_root(j), name), &n); /* absent: 0 */
    return n;
}

static int show_removed(struct gl_cli *cli, gl_str answer)
{
    struct gl_json j;
    struct gl_why why;
    int err;

    if (cli->json) {
        gl_term_print(&cli->out, gl_str_trim(answer));
        return GL_EXIT_OK;
    }
    err = gl_json_parse(&j, answer, ANSWER_BYTES_MAX, &cli->arena, &why);
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    (void)fprintf(cli->out.file, "removed: %llu jobs, %llu flows, %llu files, %llu workspaces\n",
                  (unsigned long long)member(&j, "removed_jobs"),
                  (unsigned long long)member(&j, "removed_flows"),
                  (unsigned long long)member(&j, "removed_blobs"),
                  (unsigned long long)member(&j, "removed_workspaces"));
    (void)fprintf(cli->out.file, "freed: %.*s\n",
                  GL_STR_ARG(gl_rows_size(&cli->arena, member(&j, "freed_bytes"))));
    return GL_EXIT_OK;
}

int gl_cmd_store_trim(struct gl_cli *cli)
{
    struct gl_http_client_reply reply;
    struct gl_request rq;
    struct gl_connection connection;
    struct gl_why why;
    int err, code = read_limits(cli, &rq);

    if (code != GL_EXIT_OK) {
        return code;
    }
    gl_connect_init(&connection, cli);
    connection.is_passive = true;
    err = gl_connect_send(&connection, GL_CONNECT_RETRY, &rq, &reply, &why);
    code = err != 0 ? gl_cli_fail_why(cli, err, &why) : show_removed(cli, reply.body);
    gl_connect_done(&connection);
    return code;
}

/* ---- status ---- */

static uint64_t size_of(const char *path)
{
    struct gl_tree_sum sum = {0};

    gl_tree_measure(AT_FDCWD, path, &sum);
    return sum.bytes;
}

static gl_str size_cell(const struct gl_row *row)
{
    uint64_t bytes = 0;

    (void)gl_json_u64(&row->p->j, row->node, &bytes); /* always a number */
    return gl_rows_size(&row->p->arena, bytes);
}

static const struct gl_column sizes_columns[] = {
    {"WHAT", .kind = GL_COLUMN_NAME},
    {"BYTES", .kind = GL_COLUMN_NUMBER},
    {"SIZE", .cell = size_cell},
};

/* The rows are the numeric members of the document: "store_bytes" is the row `store`. */
static int show_sizes(struct gl_cli *cli, struct gl_api_reply *p)
{
    struct gl_rows l = {.cli = cli, GL_COLUMNS(sizes_columns)};
    struct gl_why why;
    int err = gl_api_reply_parse(p, &why);

    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    for (gl_jnode k = gl_json_first(&p->j, p->root); k; k = gl_json_after(&p->j, p->root, k)) {
        gl_str name = gl_json_str(&p->j, k, &p->arena);

        if (gl_json_is(gl_json_value(k), GL_JSON_NUMBER)) {
            gl_rows_add(&l, p, gl_json_value(k),
                        (gl_str){.p = name.p, .n = name.n - strlen("_bytes")});
        }
    }
    gl_rows_print(&l);
    gl_rows_done(&l);
    return GL_EXIT_OK;
}

int gl_cmd_store_status(struct gl_cli *cli)
{
    struct gl_arena *a = &cli->arena;
    const char *folder = gl_paths_context(a, cli->data, cli->context, "");
    struct gl_api_reply made = {0};
    struct gl_jw w;
    struct stat st;
    int code;

    if (stat(folder, &st) < 0) {
        return gl_cli_fail(cli, GL_R_NOTHING_HAS_RUN,
                           gl_str_fmt(a, "nothing has run in %s yet", cli->data).p);
    }
    gl_jw_init(&w, &made.body);
    gl_jw_object(&w);
    gl_jw_put_c(&w, "data_dir", cli->data);
    gl_jw_put_u64(&w, "store_bytes",
                  size_of(gl_paths_in(a, folder, GL_PATHS_STATE)) +
                      size_of(gl_paths_in(a, folder, GL_PATHS_STATE "-wal")));
    gl_jw_put_u64(&w, "runs_bytes", size_of(gl_paths_in(a, folder, GL_PATHS_RUNS)));
    gl_jw_put_u64(&w, "blobs_bytes", size_of(gl_paths_in(a, folder, GL_PATHS_BLOBS)));
    gl_jw_put_u64(&w, "total_bytes", size_of(cli->data));
    gl_jw_end(&w);
    code = cli->json ? gl_api_reply_print_json(&made, cli) : show_sizes(cli, &made);
    gl_api_reply_done(&made);
    return code;
}

/* ---- check ---- */

static const char *const levels[] = {
    [GL_FINDING_GOOD] = "good", [GL_FINDING_WARNING] = "warning", [GL_FINDING_BAD] = "bad"};

static const struct gl_column findings_columns[] = {
    {"STATUS", .key = "level"},
    {"FINDING", .key = "text"},
};

static int show_findings(struct gl_cli *cli, const char *url, const struct gl_findings *f,
                         bool is_good)
{
    struct gl_rows l = {.cli = cli, GL_COLUMNS(findings_columns), .list = "findings"};
    struct gl_jw *w = gl_rows_begin(&l);

    gl_jw_put_str(w, "store", gl_storeurl_safe(&cli->arena, gl_str_of(url)));
    gl_jw_put_bool(w, "good", is_good);
    gl_jw_put_array(w, "findings");
    for (size_t i = 0; i < f->n; i++) {
        gl_jw_object(w);
        gl_jw_put_c(w, "level", levels[f->items[i].level]);
        gl_jw_put_str(w, "text", f->items[i].text);
        gl_jw_end(w);
    }
    gl_jw_end(w);
    return gl_rows_end(&l);
}

int gl_cmd_store_check(struct gl_cli *cli)
{
    const char *url = cli->words_n > 0 ? cli->words[0] : cli->settings->values[GL_SET_STORE].text;
    struct gl_findings findings = {0};
    bool is_good = true;
    struct gl_why why;
    int err = cli->words_n > 0 ? gl_offline_check(cli->data, url, &cli->arena, &findings, &why)
                               : gl_offline_check_own(cli->data, url, &cli->arena, &findings, &why);

    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    for (size_t i = 0; i < findings.n; i++) {
        is_good = is_good && findings.items[i].level != GL_FINDING_BAD;
    }
    err = show_findings(cli, url, &findings, is_good);
    return is_good ? err : GL_EXIT_FAILED;
}

/* ---- migrate ---- */

enum { TELL_EVERY_MS = 5000 };

struct migration_progress {
    struct gl_cli *cli;
    gl_ms at;
};

static void on_progress(void *owner, uint64_t entries)
{
    struct migration_progress *t = owner;
    gl_ms now = gl_term_now();

    if (now - t->at >= TELL_EVERY_MS) {
        t->at = now;
        gl_cli_note(t->cli, "%llu entries so far", (unsigned long long)entries);
    }
}

static void show_migration(struct gl_cli *cli, const struct gl_offline_migration *m)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "from", gl_storeurl_safe(&cli->arena, gl_str_of(m->from)));
    gl_jw_put_str(&w, "to", gl_storeurl_safe(&cli->arena, gl_str_of(m->to)));
    gl_jw_put_u64(&w, "entries", m->entries);
    gl_jw_put_bool(&w, "continued", m->is_continued);
    gl_jw_put_bool(&w, "moved", m->has_moved); /* this data folder now belongs to the target */
    gl_jw_end(&w);
    if (cli->json) {
        gl_term_print(&cli->out, gl_buf_view(&text));
        return;
    }
    (void)fprintf(cli->out.file, "%s: %llu entries are in both stores and identical\n",
                  m->is_continued ? "migrated, continuing an earlier run" : "migrated",
                  (unsigned long long)m->entries);
    (void)fflush(cli->out.file);
    gl_cli_note(cli, "files of flows, logs and working folders stay in the data "
                     "folders");
    if (m->has_moved) {
        gl_cli_note(cli, "%s now belongs to the target: name it with --store or GLIA_STORE",
                    cli->data);
    }
}

int gl_cmd_store_migrate(struct gl_cli *cli)
{
    struct migration_progress migration_progress = {.cli = cli, .at = gl_term_now()};
    struct gl_offline_migration m = {
        .context = cli->context,
        .data = cli->data,
        .from = cli->words[0],
        .to = cli->words[1],
        .allow_loss = cli->settings->values[GL_SET_STORE_ALLOW_LOSS].number != 0,
        .on_progress = on_progress,
        .owner = &migration_progress,
    };
    struct gl_why why;
    int err = gl_offline_migrate(&m, &why);

    if (err != 0) {
        if (m.entries > 0) {
            gl_cli_note(cli, "%llu entries were copied; run the same command again to continue",
                        (unsigned long long)m.entries);
        }
        return gl_cli_fail(cli, gl_err_join(err == GL_E_BUSY ? GL_E_STATE : err, why.reason),
                           why.text);
    }
    show_migration(cli, &m);
    return GL_EXIT_OK;
}
