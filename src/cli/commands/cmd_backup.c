/* cmd_backup.c - glia backup and restore.
 *
 * A backup is a folder (os/archive.h) with the store as it was at one moment, the blobs that its
 * flows name, and on request the logs. It can be made at any time; a node that works in the folder
 * is not disturbed. The backup leaves out what belongs to one life of one node: its identity, its
 * token, and the keeper's state.
 *
 * That is what makes a restored folder safe. A step that ran when the backup was made is still
 * recorded as running, under the epoch of the keeper of that time. The restored folder has no such
 * keeper, and none can ever claim that epoch: so nothing can prove that the step never started, and
 * it counts as lost. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/offline.h"
#include "base/check.h"
#include "base/json.h"
#include "build.h"
#include "cli/cli.h"
#include "os/archive.h"
#include "os/fs.h"
#include "os/paths.h"
#include "os/tree.h"
#include "port/storeurl.h"

#define STAGING "restoring" /* path in the data folder */

struct backup {
    struct gl_cli *cli;
    struct gl_archive archive;
    bool salvage;
    uint64_t jobs_n, unfinished_n;
    struct gl_why why;
};

/* "contexts/CONTEXT/NAME": the path of a file of the context, in a data folder and in a backup. */
static const char *in_context(struct gl_cli *cli, const char *name)
{
    return gl_str_fmt(&cli->arena, "contexts/%.*s%s%s", GL_STR_ARG(cli->context),
                      name[0] != '\0' ? "/" : "", name)
        .p;
}

/* ---- walking ---- */

typedef int visit(struct backup *b, const char *name, struct gl_arena *a);

static void closedirp(DIR **d)
{
    if (*d != NULL) {
        (void)closedir(*d);
    }
}

/* Visit each entry of the folder `name` in the data folder, by its path relative to the data
 * folder. */
static int for_each_record(struct backup *b, const char *name, visit *visit_one)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *path = gl_paths_in(&a, b->cli->data, name);
    GL_CLEANUP(closedirp) DIR *d = opendir(path);
    int err = 0;

    if (d == NULL) { /* removed meanwhile, or never existed */
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : gl_fs_why(&b->why, errno, "open the folder", path);
    }
    for (struct dirent *e; err == 0 && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            GL_CLEANUP(gl_arena_done) struct gl_arena one = {0};

            err = visit_one(b, gl_str_fmt(&one, "%s/%s", name, e->d_name).p, &one);
        }
    }
    return err;
}

static int add(struct backup *b, const char *name, struct gl_arena *a)
{
    return gl_archive_add(&b->archive, gl_paths_in(a, b->cli->data, name), name, &b->why);
}

static int add_blobs_of(struct backup *b, const char *name, struct gl_arena *a)
{
    (void)a;
    /* "tmp" has files that are still being written. */
    return gl_str_ends(gl_str_of(name), GL_S("/tmp")) ? 0 : for_each_record(b, name, add);
}

static int add_attempt(struct backup *b, const char *name, struct gl_arena *a)
{
    static const char *const files[] = {"log", "input.json", "output.json"};
    int err = 0;

    for (size_t i = 0; i < GL_COUNT(files) && err == 0; i++) {
        const char *file = gl_str_fmt(a, "%s/%s", name, files[i]).p;
        struct stat st;

        /* The output file of a step may be anything: a link, a folder. */
        if (lstat(gl_paths_in(a, b->cli->data, file), &st) == 0 && S_ISREG(st.st_mode)) {
            err = add(b, file, a);
        }
    }
    return err;
}

static int add_job(struct backup *b, const char *name, struct gl_arena *a)
{
    (void)a;
    return for_each_record(b, name, add_attempt);
}

/* ---- backup ---- */

static int copy_store(struct backup *b)
{
    struct gl_arena *a = &b->cli->arena;
    const char *name = in_context(b->cli, GL_PATHS_STATE);
    const char *to = gl_paths_in(a, b->archive.folder, name);
    int err = gl_fs_mkdirs(gl_paths_in(a, b->archive.folder, in_context(b->cli, "")), &b->why);

    if (err == 0) {
        err = gl_offline_backup(gl_paths_in(a, b->cli->data, name), to, b->salvage, &b->jobs_n,
                                &b->unfinished_n, &b->why);
    }
    return err == 0 ? gl_archive_add_existing(&b->archive, name, &b->why) : err;
}

/* Copy blobs before the store, because retention may remove one that the store still names a moment
 * later; and again after the store, because new ones have come. */
static int fill(struct backup *b, bool logs)
{
    int err = for_each_record(b, in_context(b->cli, GL_PATHS_BLOBS), add_blobs_of);

    if (err == 0) {
        err = copy_store(b);
    }
    if (err == 0) {
        err = for_each_record(b, in_context(b->cli, GL_PATHS_BLOBS), add_blobs_of);
    }
    if (err == 0 && logs) {
        err = for_each_record(b, in_context(b->cli, GL_PATHS_RUNS), add_job);
    }
    return err == 0 ? gl_archive_finish(&b->archive, &b->why) : err;
}

static void print_summary(struct gl_cli *cli, const char *key, const char *folder, const char *made,
                          uint64_t files_n, uint64_t bytes, uint64_t jobs_n, uint64_t unfinished_n)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_jw w;

    if (!cli->json) {
        (void)fprintf(cli->out.file, "%s\n", folder);
        gl_cli_note(cli, "%llu job%s, %llu of them not ended; %llu file%s, %llu bytes",
                    (unsigned long long)jobs_n, jobs_n == 1 ? "" : "s",
                    (unsigned long long)unfinished_n, (unsigned long long)files_n,
                    files_n == 1 ? "" : "s", (unsigned long long)bytes);
        return;
    }
    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    gl_jw_put_c(&w, key, folder);
    gl_jw_put_c(&w, "made_at", made);
    gl_jw_put_u64(&w, "jobs", jobs_n);
    gl_jw_put_u64(&w, "unfinished_jobs", unfinished_n);
    gl_jw_put_u64(&w, "files", files_n);
    gl_jw_put_u64(&w, "bytes", bytes);
    gl_jw_end(&w);
    gl_term_print(&cli->out, gl_buf_view(&text));
}

/* The folder as an absolute path, so that messages about it are valid anywhere. */
static int absolute(struct gl_cli *cli, const char *path, const char **ret, struct gl_why *why)
{
    struct gl_paths_env env = {.option = path};

    return gl_paths_data(&env, &cli->arena, ret, why);
}

int gl_cmd_backup(struct gl_cli *cli)
{
    struct backup b = {.cli = cli, .salvage = gl_cli_option(cli, "--salvage") != NULL};
    gl_ms now = gl_term_now();
    char made[GL_TIMES_BYTES];
    const char *store = cli->settings->values[GL_SET_STORE].text, *folder;
    int err = absolute(cli, cli->words[0], &folder, &b.why);

    if (err == 0 && gl_storeurl_is_shared(gl_str_of(store))) {
        err = gl_why(
            &b.why, GL_R_BACKUP_OTHER_STORE,
            "the jobs are in the store %s, not in the data folder: back it up with the server's "
            "own tools, or copy it into a folder with 'glia store migrate' while no node "
            "runs",
            gl_settings_shown(cli->settings, GL_SET_STORE, &cli->arena));
    }

    if (err == 0) {
        err = gl_archive_create(&b.archive, folder, GL_VERSION, now, &b.why);
    }
    if (err == 0) {
        err = fill(&b, gl_cli_option(cli, "--logs") != NULL);
    }
    if (err == 0) {
        (void)gl_times_format(now, made);
        print_summary(cli, "backup", folder, made, b.archive.files_n, b.archive.bytes, b.jobs_n,
                      b.unfinished_n);
    }
    gl_archive_done(&b.archive);
    return err == 0 ? GL_EXIT_OK : gl_cli_fail_why(cli, err, &b.why);
}

/* ---- restore ---- */

struct restore {
    struct gl_cli *cli;
    const char *from, *to, *staging;
    struct gl_archive_info info;
    uint64_t jobs_n, unfinished_n;
    struct gl_why why;
};

/* Never overwrites anything, except the remains of an interrupted restore. */
static int check_target(struct restore *r)
{
    GL_CLEANUP(closedirp) DIR *d = opendir(r->to);
    struct gl_tree_sum sum = {0};

    if (d == NULL) {
        return errno == ENOENT ? 0 : gl_fs_why(&r->why, errno, "open the folder", r->to);
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, STAGING) != 0) {
            return gl_why(&r->why, GL_R_FOLDER_NOT_EMPTY,
                          "%s is not empty: name an empty or new folder with "
                          "--data-dir",
                          r->to);
        }
    }
    (void)gl_tree_remove(AT_FDCWD, r->staging, &sum); /* left by an interrupted restore */
    return 0;
}

/* Restore into a separate folder first, so that an interrupted restore leaves nothing that a node
 * would take for its store. */
static int stage(struct restore *r, bool resume)
{
    struct gl_arena *a = &r->cli->arena;
    const char *reason =
        gl_str_fmt(a, "restored from a backup of %s; work done since then is unknown", r->info.made)
            .p;
    int err = gl_fs_mkdirs(r->staging, &r->why);

    if (err == 0) {
        err = gl_archive_extract(r->from, r->staging, &r->info, &r->why);
    }
    if (err == 0) {
        err = gl_offline_pause(gl_paths_in(a, r->staging, in_context(r->cli, GL_PATHS_STATE)),
                               resume ? NULL : reason, &r->jobs_n, &r->unfinished_n, &r->why);
    }
    if (err == 0 &&
        rename(gl_paths_in(a, r->staging, "contexts"), gl_paths_in(a, r->to, "contexts")) < 0) {
        err = gl_fs_why(&r->why, errno, "move the restored data to", r->to);
    }
    return err == 0 ? gl_fs_sync_folder(r->to, &r->why) : err;
}

static void print_advice(struct gl_cli *cli, const struct restore *r, bool resume)
{
    if (cli->json || r->unfinished_n == 0) {
        return;
    }
    if (resume) {
        gl_cli_note(cli, "unfinished jobs resume as soon as a node runs in this folder");
    } else {
        gl_cli_note(cli,
                    "unfinished jobs are paused, because some of their steps may have run since "
                    "the backup was made; '%s' resumes one",
                    gl_cli_hint(cli, "job resume ID"));
    }
}

int gl_cmd_backup_restore(struct gl_cli *cli)
{
    bool resume = gl_cli_option(cli, "--resume") != NULL;
    struct restore r = {.cli = cli, .to = cli->data};
    struct gl_tree_sum sum = {0};
    int err = absolute(cli, cli->words[0], &r.from, &r.why);

    r.staging = gl_paths_in(&cli->arena, r.to, STAGING);
    if (err == 0) {
        err = gl_archive_extract(r.from, NULL, &r.info, &r.why);
    }
    if (err == 0) {
        err = check_target(&r);
    }
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &r.why);
    }
    err = stage(&r, resume);
    (void)gl_tree_remove(AT_FDCWD, r.staging, &sum); /* remains do no harm */
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &r.why);
    }
    print_summary(cli, "data_dir", r.to, r.info.made, r.info.files_n, r.info.bytes, r.jobs_n,
                  r.unfinished_n);
    print_advice(cli, &r, resume);
    return GL_EXIT_OK;
}
