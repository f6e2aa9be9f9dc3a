/* cmd_run.c - glia run: submits a flow and waits until it is done. */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "cli/connect/submission.h"
#include "cli/flowfile.h"
#include "cli/follow.h"
#include "cli/job_inputs.h"
#include "cli/output/job_result.h"
#include "model/text/ref.h"

enum { ANSWER_BYTES_MAX = 1 << 20 };

extern char **environ;

struct job_run {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct gl_progress progress;
    struct gl_follow follow;
    struct gl_buf body; /* body of the submission */
    struct gl_buf inputs;
    struct gl_submission submission;
    const char *job;
    gl_str answer;    /* reply to the submission */
    bool is_detached; /* submit and exit */
};

/* ---- glia run -- cmd args... ---- */

static void write_env(struct gl_cli *cli, struct gl_jw *w)
{
    size_t left_out = 0;

    gl_jw_put_object(w, "env");
    for (char **e = environ; *e != NULL; e++) {
        gl_str value, name = gl_str_cut(gl_str_of(*e), '=', &value);
        bool is_name = name.n > 0 && !(name.p[0] >= '0' && name.p[0] <= '9');

        for (size_t i = 0; i < name.n; i++) {
            char c = name.p[i];

            is_name = is_name && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '_');
        }
        if (gl_str_starts(name, GL_S("GLIA_"))) {
            continue; /* for glia, not for the command */
        }
        if (!is_name || !gl_str_is_utf8(value, NULL)) {
            left_out++;
            continue;
        }
        gl_jw_key_str(w, name);
        gl_jw_str(w, gl_ref_escape(value, &cli->arena)); /* literal text: no references */
    }
    gl_jw_end(w);
    if (left_out > 0) {
        gl_cli_note(cli,
                    "%zu environment variables were not passed on (unusual name, or not UTF-8)",
                    left_out);
    }
}

static gl_str base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return gl_str_of(slash != NULL && slash[1] != '\0' ? slash + 1 : path);
}

static int write_command(struct job_run *r, gl_str run_id)
{
    struct gl_cli *cli = r->cli;
    char *cwd = getcwd(NULL, 0);
    struct gl_jw w;

    if (cwd == NULL) {
        return gl_cli_fail(cli, GL_E_INVALID, "cannot find the current folder");
    }
    gl_jw_init(&w, &r->body);
    gl_jw_object(&w);
    gl_submission_write_key(&r->submission, &w);
    if (run_id.n > 0) {
        gl_jw_put_str(&w, "run_id", run_id);
    }
    gl_jw_put_object(&w, "flow");
    gl_jw_put_str(&w, "name", gl_term_clip(base_name(cli->rest[0]), GL_NAME_BYTES_MAX / 4));
    gl_jw_put_object(&w, "steps");
    gl_jw_put_object(&w, "run");
    gl_jw_put_str(&w, "cwd", gl_ref_escape(gl_str_of(cwd), &cli->arena));
    free(cwd);
    gl_jw_put_array(&w, "run");
    for (char **a = cli->rest; *a != NULL; a++) {
        if (!gl_str_is_utf8(gl_str_of(*a), NULL)) {
            return gl_cli_fail(cli, GL_E_INVALID, "an argument of the command is not UTF-8");
        }
        gl_jw_str(&w, gl_ref_escape(gl_str_of(*a), &cli->arena));
    }
    gl_jw_end(&w);
    write_env(cli, &w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_jw_end(&w);
    return 0;
}

/* ---- submitting ---- */

/* Upload this content, even if the node has it. */
static int put(struct job_run *r, const char *hex, gl_str content, struct gl_why *reterr_why)
{
    struct gl_request rq = {.verb = GL_VERB_PUT_BLOB, .blob.sha256 = gl_str_of(hex)};
    const char *path = gl_connect_path(&r->connection, &rq);
    struct gl_http_client_reply reply;

    /* Retrying may turn this process into the node, which must not happen for a detached job. */
    return (r->is_detached ? gl_connect_call : gl_connect_call_retrying)(
        &r->connection, "PUT", path, content, &reply, reterr_why);
}

static int upload_payloads(struct job_run *r, const struct gl_bundle_folder *b,
                           struct gl_why *reterr_why)
{
    const struct gl_payload *all = b->given.payloads.items;
    struct gl_map sent;
    int err = 0;

    gl_map_init(&sent);
    for (size_t i = 0; i < b->given.payloads.n && err == 0; i++) {
        GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};

        if (gl_map_find(&sent, all[i].blob) != NULL) {
            continue;
        }
        gl_map_add(&sent, all[i].blob, (void *)&all[i]);
        err = gl_bundle_folder_read_payload(b, &all[i], &content, reterr_why);
        if (err == 0) {
            err = put(r, gl_str_c(&r->cli->arena, all[i].blob), gl_buf_view(&content), reterr_why);
        }
        if (err == GL_E_INVALID) {
            (void)gl_why(reterr_why, err, "payloads/%.*s changed while it was read; try again",
                         GL_STR_ARG(all[i].path));
        }
    }
    gl_map_done(&sent);
    return err;
}

static int upload(struct job_run *r, const struct gl_flowfile *f, struct gl_why *reterr_why)
{
    if (f->is_bundle) {
        return upload_payloads(r, &f->bundle, reterr_why);
    }
    for (struct gl_link *l = f->parts.next; l != &f->parts; l = l->next) {
        const struct gl_flowfile_part *p = GL_CONTAINER(l, struct gl_flowfile_part, link);
        int err = p->source.n > 0 ? put(r, p->hex, p->content, reterr_why) : 0;

        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static void report_existing(struct job_run *r, gl_str status)
{
    gl_cli_note(r->cli, "this run id exists: it is job %s%s%.*s", r->job,
                status.n > 0 ? ", which is " : "", GL_STR_ARG(status));
}

static int submit(struct job_run *r, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_http_client_reply reply = {0};
    struct gl_json j;
    bool is_existing = false;
    gl_jnode root;
    struct gl_request rq = {.verb = GL_VERB_SUBMIT};
    int err = gl_submission_send(&r->submission, &rq, &r->body, &reply, reterr_why);

    if (err != 0) {
        return err;
    }
    r->answer = gl_str_dup(&r->cli->arena, gl_str_trim(reply.body));
    err = gl_json_parse(&j, r->answer, ANSWER_BYTES_MAX, &a, reterr_why);
    if (err != 0) {
        return err;
    }
    root = gl_json_root(&j);
    r->job = gl_str_c(&r->cli->arena, gl_json_str(&j, gl_json_get(&j, root, "job_id"), &a));
    (void)gl_json_bool(gl_json_get(&j, root, "existing"), &is_existing);
    if (is_existing && r->submission.sent == 1) { /* else it is our own */
        report_existing(r, gl_json_str(&j, gl_json_get(&j, root, "status"), &a));
    }
    return 0;
}

static int refused(struct gl_cli *cli, int err, const char *text)
{
    int code = gl_cli_fail(cli, err, text);

    gl_job_inputs_report_missing(cli, text);
    return code;
}

/* Submit to a running node, and exit. */
static int detach(struct job_run *r, const struct gl_flowfile *f)
{
    struct gl_cli *cli = r->cli;
    struct gl_why why;
    int err = gl_connect_find(&r->connection, &why);

    if (err == 0 && f != NULL) {
        err = upload(r, f, &why);
    }
    if (err == 0) {
        err = submit(r, &why);
    }
    if (err != 0) {
        return refused(cli, gl_err_join(err, why.reason), why.text);
    }
    if (cli->json) {
        gl_term_print(&cli->out, r->answer);
    } else {
        (void)fprintf(cli->out.file, "%s\n", r->job);
    }
    if (cli->err.is_tty) {
        gl_cli_note(cli, "to see its progress: %s", gl_cli_hint(cli, "job status %s", r->job));
    }
    return GL_EXIT_OK;
}

/* ---- the command ---- */

static int submit_and_follow(struct job_run *r, const struct gl_flowfile *f)
{
    struct gl_cli *cli = r->cli;
    bool is_command = f == NULL;
    struct gl_why why;
    int err = gl_connect_open(&r->connection, &why);

    if (err == 0 && f != NULL) {
        err = upload(r, f, &why);
    }
    if (err != 0) {
        return gl_cli_fail_why(cli, err, &why);
    }
    gl_follow_init(&r->follow, &r->connection, &r->progress);
    r->follow.pauses = true;
    r->follow.log_step = is_command && !cli->json ? "run" : NULL;
    err = submit(r, &why);
    if (err == 0) {
        err = gl_follow_begin(&r->follow, r->job, &why);
    }
    if (err != 0) {
        return refused(cli, gl_err_join(err, why.reason), why.text);
    }
    if (!is_command || cli->err.is_tty) { /* otherwise stderr has the command's output only */
        gl_cli_note(cli, "job %s", r->job);
    }
    r->follow.next_seq = 1; /* also report events from before */
    return gl_job_result_show(&r->follow, gl_follow_job(&r->follow), !is_command);
}

static int run_file(struct job_run *r, gl_str run_id)
{
    struct gl_flowfile f;
    struct gl_why why = {0};
    int err = gl_flowfile_read(&f, r->cli, r->cli->words[0], &why), code;

    if (err == GL_E_INVALID && f.errors.n > 0) {
        (r->cli->json ? gl_flowfile_print_json_errors : gl_flowfile_print_errors)(&f);
        code = GL_EXIT_USAGE;
    } else if (err != 0) {
        (void)gl_cli_fail_why(r->cli, err, &why);
        code = GL_EXIT_USAGE;
    } else {
        code = gl_job_inputs_read(r->cli, f.flow, &r->inputs);
        if (code == 0) {
            gl_flowfile_write(&f, &r->submission, run_id, gl_buf_view(&r->inputs), &r->body);
            code = (r->is_detached ? detach : submit_and_follow)(r, &f);
        }
    }
    gl_flowfile_done(&f);
    return code;
}

/* Check for conflicting options; 0, or an exit code. */
static int check(struct gl_cli *cli)
{
    const char *run_id = gl_cli_option(cli, "--run-id");

    if (run_id != NULL && run_id[0] == '\0') {
        return gl_cli_usage(cli, "--run-id is empty");
    }
    if (cli->rest == NULL) {
        return 0;
    }
    if (cli->words_n > 0 || cli->rest[0] == NULL) {
        return gl_cli_usage(cli, cli->words_n > 0 ? "give either a file or a command"
                                                  : "the command after -- is missing");
    }
    if (cli->rest[0][0] == '\0') {
        return gl_cli_usage(cli, "the command after -- is empty");
    }
    if (gl_cli_option(cli, "--set") != NULL || gl_cli_option(cli, "--input-file") != NULL) {
        return gl_cli_usage(cli,
                            "--set and --input-file are for flows only; a command after -- takes "
                            "arguments");
    }
    return 0;
}

static int run_command(struct job_run *r, gl_str run_id)
{
    int code = write_command(r, run_id);

    return code != 0 ? code : (r->is_detached ? detach : submit_and_follow)(r, NULL);
}

int gl_cmd_run(struct gl_cli *cli)
{
    gl_str run_id = gl_str_of(gl_cli_option(cli, "--run-id"));
    struct job_run r = {.cli = cli, .follow = {.signals_fd = -1}};
    int code = check(cli);

    if (code != 0) {
        return code;
    }
    cli->out.is_raw = cli->err.is_raw = gl_cli_option(cli, "--raw") != NULL;
    r.is_detached = gl_cli_option(cli, "--detach") != NULL;
    gl_connect_init(&r.connection, cli);
    gl_submission_init(&r.submission, &r.connection, r.is_detached);
    gl_progress_init(&r.progress, &cli->err, cli->rest != NULL);
    code = (cli->rest != NULL ? run_command : run_file)(&r, run_id);
    r.follow.connection = &r.connection;
    gl_follow_done(&r.follow);
    gl_connect_done(&r.connection);
    gl_progress_done(&r.progress);
    gl_buf_done(&r.body);
    gl_buf_done(&r.inputs);
    return code;
}
