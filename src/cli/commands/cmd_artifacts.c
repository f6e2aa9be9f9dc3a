/* cmd_artifacts.c - glia job artifacts and job export: the files of a job. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "cli/output/rows.h"
#include "cli/output/tarfile.h"
#include "os/blobfs.h"
#include "os/fs.h"
#include "os/run_files.h"
#include "os/run_owner.h"

enum { PIECE_BYTES = 64 << 10 };

/* A job and its files: from the node if there is one, else from the store and the folders. */
struct look {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct gl_api_reply status;
    struct gl_api_reply files;
    gl_str job, run_id;
    const char *root; /* the folder of runs; "": the files are on the machine of a remote node */
};

static int list_here(struct look *l, struct gl_why *reterr_why)
{
    struct gl_run_files_list files = {0};
    int err = 0;

    l->root = l->cli->settings->values[GL_SET_RUNS_ROOT].text;
    if (gl_run_owner_is_job(l->root, l->run_id, l->job)) { /* else an earlier job's */
        err =
            gl_run_files_list(l->root, l->run_id, UINT64_MAX, &l->files.arena, &files, reterr_why);
    }
    if (err == 0) {
        gl_run_files_write(&files, l->root, l->job, l->run_id, &l->files.body);
    }
    return err;
}

static int list_there(struct look *l, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_ARTIFACTS, .job = l->job};
    struct gl_http_client_reply reply;
    int err = gl_connect_send(&l->connection, GL_CONNECT_CALL, &rq, &reply, reterr_why);

    if (err == 0) {
        gl_buf_str(&l->files.body, reply.body);
    }
    return err;
}

/* <root>/<run id>, without the run id. */
static const char *root_of(struct look *l)
{
    gl_str folder = gl_api_reply_text(&l->files, l->files.root, "folder");

    return folder.n > l->run_id.n + 1
               ? gl_str_c(&l->cli->arena, (gl_str){.p = folder.p, .n = folder.n - l->run_id.n - 1})
               : "";
}

/* Always call close_look(). */
static int open_look(struct look *l, struct gl_cli *cli, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(cli->words[0])};
    int err;

    *l = (struct look){.cli = cli, .root = ""};
    gl_connect_init(&l->connection, cli);
    err = gl_api_reply_ask(&l->status, &l->connection, &rq, reterr_why);
    if (err != 0) {
        return err;
    }
    l->job = gl_api_reply_text(&l->status, l->status.root, "job_id");
    l->run_id = gl_api_reply_text(&l->status, l->status.root, "run_id");
    err = (l->connection.has_no_node ? list_here : list_there)(l, reterr_why);
    err = err == 0 ? gl_api_reply_parse(&l->files, reterr_why) : err;
    if (err == 0 && !l->connection.has_no_node && !l->connection.is_remote) {
        l->root = root_of(l);
    }
    return err;
}

static void close_look(struct look *l)
{
    gl_api_reply_done(&l->files);
    gl_api_reply_done(&l->status);
    gl_connect_done(&l->connection);
}

/* ---- one file ---- */

/* Pass the whole file to `take`, piece by piece. */
static int copy(struct look *l, gl_str path, void (*take)(void *owner, gl_str piece), void *owner,
                struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    struct gl_http_client_reply reply;
    char piece[PIECE_BYTES];
    uint64_t bytes;
    ssize_t n;
    int err;

    if (l->root[0] == '\0') {
        struct gl_request rq = {.verb = GL_VERB_ARTIFACTS, .job = l->job, .artifacts.path = path};

        err = gl_connect_send(&l->connection, GL_CONNECT_CALL, &rq, &reply, reterr_why);
        if (err == 0) {
            take(owner, reply.body);
        }
        return err;
    }
    err = gl_run_files_open(l->root, l->run_id, path, &fd, &bytes, reterr_why);
    if (err != 0) {
        return err;
    }
    while ((n = read(fd, piece, sizeof(piece))) > 0) {
        take(owner, (gl_str){.p = piece, .n = (size_t)n});
    }
    return n == 0 ? 0 : gl_fs_why(reterr_why, errno, "read", gl_str_c(&l->cli->arena, path));
}

static void print_piece(void *owner, gl_str piece)
{
    gl_term_write(owner, piece);
}

/* ---- the list ---- */

static const struct gl_column columns[] = {
    {"PATH", .key = "path"},
    {"BYTES", GL_COLUMN_NUMBER, .key = "bytes", .absent = "0"},
    {"TYPE", .key = "content_type"},
    {"MODIFIED", .key = "modified_at", .least = 2},
    {"SHA-256", .key = "sha256", .least = 1},
};

static int show_files(struct look *l)
{
    struct gl_rows rows = {.cli = l->cli, GL_COLUMNS(columns), .list = "artifacts"};

    rows.none = gl_str_fmt(&l->cli->arena, "no files in %.*s",
                           GL_STR_ARG(gl_api_reply_text(&l->files, l->files.root, "folder")))
                    .p;
    return gl_rows_show(&rows, &l->files);
}

int gl_cmd_artifacts_list(struct gl_cli *cli)
{
    struct gl_why why;
    struct look l;
    int err = open_look(&l, cli, &why), code = GL_EXIT_OK;

    if (err == 0 && cli->words_n > 1) {
        err = copy(&l, gl_str_of(cli->words[1]), print_piece, &cli->out, &why);
    } else if (err == 0) {
        code = show_files(&l);
    }
    code = err != 0 ? gl_cli_fail_why(cli, err, &why) : code;
    close_look(&l);
    return code;
}

/* ---- export ---- */

static void add_piece(void *owner, gl_str piece)
{
    gl_tarfile_add(owner, piece);
}

static gl_str text_of(const struct gl_api_reply *p)
{
    return gl_str_trim(gl_buf_view(&p->body));
}

static int export_events(struct look *l, struct gl_tarfile *t, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf lines = {0};
    struct gl_request rq = {
        .verb = GL_VERB_EVENTS, .job = l->job, .events = {.from = 1, .limit = GL_PAGE_MAX}};
    int64_t before;
    int err;

    do {
        struct gl_api_reply page;

        before = rq.events.from;
        err = gl_api_reply_ask(&page, &l->connection, &rq, reterr_why);
        if (err == 0) {
            gl_jnode all = gl_json_get(&page.j, page.root, "events");

            for (gl_jnode e = gl_json_first(&page.j, all); e; e = gl_json_after(&page.j, all, e)) {
                gl_buf_str(&lines, gl_json_raw(&page.j, e));
                gl_buf_char(&lines, '\n');
            }
            rq.events.from = gl_api_reply_number(&page, page.root, "next_seq");
        }
        gl_api_reply_done(&page);
    } while (err == 0 && rq.events.from > before);
    if (err == 0) {
        gl_tarfile_text(t, GL_S("events.jsonl"), gl_buf_view(&lines), gl_term_now());
    }
    return err;
}

static int read_blob(struct look *l, gl_str hex, struct gl_buf *out, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_GET_BLOB, .blob.sha256 = hex};
    struct gl_http_client_reply reply;
    int err;

    if (l->connection.has_no_node) {
        return gl_fs_read(gl_blobfs_path(&l->cli->arena, l->cli->data, l->cli->context, hex),
                          GL_BLOB_BYTES_MAX, out, reterr_why);
    }
    err = gl_connect_send(&l->connection, GL_CONNECT_CALL, &rq, &reply, reterr_why);
    if (err == 0) {
        gl_buf_str(out, reply.body);
    }
    return err;
}

/* The manifest of a bundle. On a shared store it may be on another node: then it is left out, with
 * a message. */
static void export_manifest(struct look *l, struct gl_tarfile *t)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    gl_jnode bundle = gl_json_get(&l->status.j, l->status.root, "bundle");
    gl_str hex = gl_api_reply_text(&l->status, bundle, "manifest");
    char made[GL_SHA256_HEX];
    struct gl_why why = {0};

    if (hex.n != GL_SHA256_HEX - 1) {
        return;
    }
    if (read_blob(l, hex, &text, &why) != 0) {
        gl_cli_note(l->cli, "left out the manifest: %s", why.text);
    } else if (!gl_str_eq(gl_sha256_hex(gl_buf_view(&text), made), hex)) {
        gl_cli_note(l->cli, "left out the manifest: its copy is damaged");
    } else {
        gl_tarfile_text(t, GL_S("manifest.json"), gl_buf_view(&text),
                        gl_api_reply_time(&l->status, l->status.root, "submitted_at"));
    }
}

static int export_files(struct look *l, struct gl_tarfile *t, struct gl_why *reterr_why)
{
    struct gl_api_reply *p = &l->files;
    gl_jnode all = gl_json_get(&p->j, p->root, "artifacts");

    for (gl_jnode e = gl_json_first(&p->j, all); e; e = gl_json_after(&p->j, all, e)) {
        gl_str path = gl_api_reply_text(p, e, "path");
        int err;

        gl_tarfile_begin(t, gl_str_fmt(&p->arena, "artifacts/%.*s", GL_STR_ARG(path)),
                         (uint64_t)gl_api_reply_number(p, e, "bytes"),
                         gl_api_reply_time(p, e, "modified_at"));
        err = copy(l, path, add_piece, t, reterr_why);
        if (!gl_tarfile_end(t) || err == GL_E_NOT_FOUND) {
            gl_cli_note(l->cli, "%.*s shrank while it was read; the rest is filled with zeros",
                        GL_STR_ARG(path));
            err = err == GL_E_NOT_FOUND ? 0 : err;
        }
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static int export_all(struct look *l, FILE *out, struct gl_why *reterr_why)
{
    struct gl_tarfile t = {.out = out};
    gl_jnode result = gl_json_get(&l->status.j, l->status.root, "result");
    gl_ms now = gl_term_now();
    int err;

    gl_tarfile_text(&t, GL_S("status.json"), text_of(&l->status), now);
    if (result != NULL) {
        gl_tarfile_text(&t, GL_S("result.json"), gl_json_raw(&l->status.j, result), now);
    }
    gl_tarfile_text(&t, GL_S("artifacts.json"), text_of(&l->files), now);
    export_manifest(l, &t);
    err = export_events(l, &t, reterr_why);
    err = err == 0 ? export_files(l, &t, reterr_why) : err;
    gl_tarfile_close(&t);
    if (err == 0 && (fflush(out) != 0 || ferror(out) != 0)) {
        err = gl_fs_why(reterr_why, errno, "write", "the archive");
    }
    return err;
}

/* Write to a new file, which is removed if something fails. */
static int export_to(struct look *l, const char *path, struct gl_why *reterr_why)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err;
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (out == NULL) {
        return gl_fs_why(reterr_why, errno, "make", path);
    }
    err = export_all(l, out, reterr_why);
    if (err == 0 && fsync(fd) < 0) {
        err = gl_fs_why(reterr_why, errno, "sync", path);
    }
    if (fclose(out) != 0 && err == 0) {
        err = gl_fs_why(reterr_why, errno, "write", path);
    }
    if (err != 0) {
        (void)unlink(path); /* the partial output is not an archive, and tar reports that */
    }
    return err;
}

int gl_cmd_artifacts_export(struct gl_cli *cli)
{
    const char *to = gl_cli_option(cli, "--to");
    struct gl_why why;
    struct look l;
    int err;

    if (to == NULL || to[0] == '\0') {
        return gl_cli_usage(cli, "--to FILE.tar is missing");
    }
    err = open_look(&l, cli, &why);
    if (err == 0) {
        err = strcmp(to, "-") == 0 ? export_all(&l, cli->out.file, &why) : export_to(&l, to, &why);
    }
    if (err != 0) {
        err = gl_cli_fail_why(cli, err, &why);
    } else if (strcmp(to, "-") != 0) {
        gl_cli_note(cli, "written: %s", to);
    }
    close_look(&l);
    return err;
}
