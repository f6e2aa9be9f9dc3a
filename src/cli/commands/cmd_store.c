/* cmd_store.c - glia store: what the data folder holds, and less of it; whether the store is fit;
 * and from one store into another. */
#include <fcntl.h>
#include <sys/stat.h>

#include "app/offline.h"
#include "base/check.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/connect/connect.h"
#include "cli/output/table.h"
#include "os/paths.h"
#include "os/tree.h"
#include "port/storeurl.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

/* "12.3 MiB" */
static gl_str size_text(struct gl_arena *a, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    uint64_t tenths = bytes * 10;
    size_t unit = 0;

    while (tenths >= 10240 && unit + 1 < GL_COUNT(units)) {
        tenths /= 1024;
        unit++;
    }
    if (unit == 0) {
        return gl_str_fmt(a, "%llu B", (unsigned long long)bytes);
    }
    return gl_str_fmt(a, "%llu.%llu %s", (unsigned long long)tenths / 10,
                      (unsigned long long)tenths % 10, units[unit]);
}

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
                  GL_STR_ARG(size_text(&cli->arena, member(&j, "freed_bytes"))));
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

static void show_sizes(struct gl_cli *cli, const char *const *names, const uint64_t *sizes,
                       size_t n)
{
    static const char *const titles[] = {"WHAT", "BYTES", "SIZE"};
    struct gl_table table;

    gl_table_init(&table, titles, GL_COUNT(titles));
    for (size_t i = 0; i < n; i++) {
        gl_table_add(&table, gl_str_of(names[i]));
        gl_table_add(&table, gl_str_fmt(&cli->arena, "%llu", (unsigned long long)sizes[i]));
        gl_table_add(&table, size_text(&cli->arena, sizes[i]));
    }
    gl_table_print(&table, &cli->out);
    gl_table_done(&table);
}

static void show_json(struct gl_cli *cli, const char *const *names, const uint64_t *sizes, size_t n)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "data_dir");
    gl_jw_c(&w, cli->data);
    for (size_t i = 0; i < n; i++) {
        gl_jw_key_str(&w, gl_str_fmt(&cli->arena, "%s_bytes", names[i]));
        gl_jw_u64(&w, sizes[i]);
    }
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&text));
}

int gl_cmd_store_status(struct gl_cli *cli)
{
    static const char *const names[] = {"store", "runs", "blobs", "total"};
    const char *folder = gl_paths_context(&cli->arena, cli->data, cli->context, "");
    uint64_t sizes[GL_COUNT(names)];
    struct stat st;

    if (stat(folder, &st) < 0) {
        return gl_cli_fail(cli, GL_R_NOTHING_HAS_RUN,
                           gl_str_fmt(&cli->arena, "nothing has run in %s yet", cli->data).p);
    }
    sizes[1] = size_of(gl_paths_in(&cli->arena, folder, GL_PATHS_RUNS));
    sizes[2] = size_of(gl_paths_in(&cli->arena, folder, GL_PATHS_BLOBS));
    sizes[3] = size_of(cli->data);
    sizes[0] = size_of(gl_paths_in(&cli->arena, folder, GL_PATHS_STATE)) +
               size_of(gl_paths_in(&cli->arena, folder, GL_PATHS_STATE "-wal"));
    (cli->json ? show_json : show_sizes)(cli, names, sizes, GL_COUNT(names));
    return GL_EXIT_OK;
}

/* ---- check ---- */

static const char *const levels[] = {
    [GL_FINDING_GOOD] = "good", [GL_FINDING_WARNING] = "warning", [GL_FINDING_BAD] = "bad"};

static void show_findings(struct gl_cli *cli, const struct gl_findings *f)
{
    static const char *const titles[] = {"STATUS", "WHAT WAS FOUND"};
    struct gl_table t;

    gl_table_init(&t, titles, GL_COUNT(titles));
    for (size_t i = 0; i < f->n; i++) {
        gl_table_add(&t, gl_str_of(levels[f->items[i].level]));
        gl_table_add(&t, f->items[i].text);
    }
    gl_table_print(&t, &cli->out);
    gl_table_done(&t);
}

static void show_findings_json(struct gl_cli *cli, const char *url, const struct gl_findings *f,
                               bool is_good)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_key(&w, "store");
    gl_jw_str(&w, gl_storeurl_safe(&cli->arena, gl_str_of(url)));
    gl_jw_key(&w, "good");
    gl_jw_bool(&w, is_good);
    gl_jw_key(&w, "findings");
    gl_jw_array(&w);
    for (size_t i = 0; i < f->n; i++) {
        gl_jw_object(&w);
        gl_jw_key(&w, "level");
        gl_jw_c(&w, levels[f->items[i].level]);
        gl_jw_key(&w, "text");
        gl_jw_str(&w, f->items[i].text);
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&text));
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
    if (cli->json) {
        show_findings_json(cli, url, &findings, is_good);
    } else {
        show_findings(cli, &findings);
    }
    return is_good ? GL_EXIT_OK : GL_EXIT_FAILED;
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
    gl_jw_key(&w, "from");
    gl_jw_str(&w, gl_storeurl_safe(&cli->arena, gl_str_of(m->from)));
    gl_jw_key(&w, "to");
    gl_jw_str(&w, gl_storeurl_safe(&cli->arena, gl_str_of(m->to)));
    gl_jw_key(&w, "entries");
    gl_jw_u64(&w, m->entries);
    gl_jw_key(&w, "continued");
    gl_jw_bool(&w, m->is_continued);
    gl_jw_key(&w, "moved"); /* this data folder belongs to the target now */
    gl_jw_bool(&w, m->has_moved);
    gl_jw_end(&w);
    if (cli->json) {
        gl_term_print(&cli->out, gl_buf_view(&text));
        return;
    }
    (void)fprintf(cli->out.file, "%s: %llu entries are in both stores, and the same\n",
                  m->is_continued ? "migrated, after an earlier try" : "migrated",
                  (unsigned long long)m->entries);
    (void)fflush(cli->out.file);
    gl_cli_note(cli, "files of flows, logs and working folders stay in the data "
                     "folders");
    if (m->has_moved) {
        gl_cli_note(cli, "%s belongs to the target now: give that with --store or GLIA_STORE",
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
