/* cmd_claim.c - glia claim acquire, renew, complete, fail, reclaim, list and show. */
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "cli/connect/claim_client.h"
#include "cli/output/rows.h"

/* ---- options ---- */

/* From the environment that 'glia claim run' sets. */
static const char *or_env(const char *given, const char *name)
{
    return given != NULL ? given : getenv(name);
}

/* Not every command has all of these options. */
static const char *given_for(const struct gl_cli *cli, const char *name)
{
    const struct gl_command_option *o = cli->command->options;

    for (size_t i = 0; i < GL_CLI_OPTIONS_MAX && o[i].name != NULL; i++) {
        if (strcmp(o[i].name, name) == 0) {
            return gl_cli_option(cli, name);
        }
    }
    return NULL;
}

static int read_span(struct gl_cli *cli, const char *option, gl_ms *ret)
{
    const char *text = given_for(cli, option);

    if (text != NULL && !gl_times_parse_span(gl_str_of(text), ret)) {
        return gl_cli_usage(cli, "%s needs a duration, like 60s or 5m, not '%s'", option, text);
    }
    return 0;
}

int gl_claim_client_read_options(struct gl_claim_client *c, struct gl_cli *cli, const char *owner)
{
    const char *given = given_for(cli, "--owner");
    int code;

    *c = (struct gl_claim_client){.cli = cli,
                                  .key = cli->words_n > 0 ? cli->words[0] : NULL,
                                  .owner = given != NULL ? given : owner,
                                  .work_type = given_for(cli, "--work-type"),
                                  .error_detail = given_for(cli, "--error"),
                                  .once = given_for(cli, "--once") != NULL};
    gl_claim_client_new_nonce(c);
    code = read_span(cli, "--lease", &c->lease_ms);
    if (code == 0 && given_for(cli, "--lease") != NULL &&
        (c->lease_ms < GL_LEASE_MS_MIN || c->lease_ms > GL_LEASE_MS_MAX)) {
        code = gl_cli_usage(cli, "--lease must be from 1s to 1d");
    }
    return code;
}

/* The held claim: from options, or from the environment of 'glia claim run'. */
static int read_held(struct gl_claim_client *c, struct gl_cli *cli)
{
    const char *fence = or_env(gl_cli_option(cli, "--fence"), "GLIA_CLAIM_FENCE");
    const char *owner = getenv("GLIA_CLAIM_OWNER");
    int code = gl_claim_client_read_options(
        c, cli, owner != NULL ? owner : gl_claim_client_default_owner(cli, ""));

    if (code != 0) {
        return code;
    }
    c->key = or_env(c->key, "GLIA_CLAIM_KEY");
    if (c->key == NULL) {
        return gl_cli_usage(cli, "KEY is missing; it is optional only inside 'glia claim run'");
    }
    if (fence == NULL) {
        return gl_cli_usage(
            cli,
            "--fence is missing: the number that came with the claim; it is optional only inside "
            "'glia claim run'");
    }
    if (!gl_str_u64(gl_str_of(fence), &c->fence) || c->fence == 0) {
        return gl_cli_usage(cli, "--fence must be a number from 1 on, not '%s'", fence);
    }
    return 0;
}

/* ---- output ---- */

/* For a claim that may still be held. */
static gl_str lease_cell(const struct gl_row *row)
{
    gl_str state = gl_api_reply_text(row->p, row->node, "state");
    bool is_over = gl_str_is(state, "done") || gl_str_is(state, "failed");

    return is_over ? (gl_str){0} : gl_api_reply_text(row->p, row->node, "lease_until");
}

static const struct gl_column columns[] = {
    {"KEY", .key = "key"},
    {"STATE", .key = "state"},
    {"OWNER", .key = "owner"},
    {"FENCE", GL_COLUMN_NUMBER, .key = "fence"},
    {"ATTEMPT", GL_COLUMN_NUMBER, .key = "attempt", .least = 3},
    {"TYPE", .key = "work_type", .least = 1},
    {"LEASE UNTIL", .cell = lease_cell},
    {"ERROR", .key = "error_detail", .least = 2},
};

/* ---- commands ---- */

static int call(struct gl_claim_client *c, enum gl_verb verb)
{
    struct gl_rows l = {.cli = c->cli, GL_COLUMNS(columns)};
    struct gl_claim_answer answer;
    struct gl_why why;
    int err = gl_claim_client_call(c, verb, true, &answer, &why);
    int code = err != 0 ? gl_claim_client_fail(c->cli, gl_err_join(err, why.reason), why.text)
                        : gl_rows_show(&l, &answer.page);

    gl_claim_answer_done(&answer);
    return code;
}

int gl_cmd_claim_acquire(struct gl_cli *cli)
{
    struct gl_claim_client c;
    int code = gl_claim_client_read_options(&c, cli, gl_claim_client_default_owner(cli, ""));

    return code != 0 ? code : call(&c, GL_VERB_CLAIM_ACQUIRE);
}

static int change(struct gl_cli *cli, enum gl_verb verb)
{
    struct gl_claim_client c;
    int code = read_held(&c, cli);

    return code != 0 ? code : call(&c, verb);
}

int gl_cmd_claim_renew(struct gl_cli *cli)
{
    return change(cli, GL_VERB_CLAIM_RENEW);
}

int gl_cmd_claim_complete(struct gl_cli *cli)
{
    return change(cli, GL_VERB_CLAIM_COMPLETE);
}

int gl_cmd_claim_fail(struct gl_cli *cli)
{
    return change(cli, GL_VERB_CLAIM_FAIL);
}

int gl_cmd_claim_reclaim(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_CLAIM_RECLAIM};
    struct gl_rows l = {.cli = cli,
                        GL_COLUMNS(columns),
                        .list = "expired",
                        .none = "no claim has an expired lease"};
    struct gl_http_client_reply reply;
    struct gl_connection connection;
    struct gl_api_reply page = {0};
    struct gl_why why;
    uint64_t limit = 100;
    int code = gl_cli_number(cli, "--limit", 1, GL_PAGE_MAX, &limit), err;

    if (code != 0) {
        return code;
    }
    gl_connect_init(&connection, cli);
    connection.is_passive = true;
    rq.claim.limit = (uint32_t)limit;
    err = gl_connect_send(&connection, GL_CONNECT_RETRY, &rq, &reply, &why);
    if (err == 0) {
        gl_buf_str(&page.body, reply.body);
        code = gl_rows_show(&l, &page);
    } else {
        code = gl_cli_fail_why(cli, err, &why);
    }
    gl_api_reply_done(&page);
    gl_connect_done(&connection);
    return code;
}

int gl_cmd_claim_list(struct gl_cli *cli)
{
    uint64_t limit = 100;
    int code = gl_cli_number(cli, "--limit", 1, GL_PAGE_MAX, &limit);
    struct gl_request rq = {.verb = GL_VERB_CLAIM_LIST,
                            .claims.state = gl_str_of(gl_cli_option(cli, "--state")),
                            .claims.prefix = gl_str_of(gl_cli_option(cli, "--prefix")),
                            .claims.after = gl_str_of(gl_cli_option(cli, "--after"))};
    struct gl_rows l = {.cli = cli,
                        GL_COLUMNS(columns),
                        .list = "claims",
                        .none = "no such claims",
                        .after = &rq.claims.after,
                        .has_next = true};

    if (code != 0) {
        return code;
    }
    rq.claims.limit = (uint32_t)limit;
    code = gl_rows_run(&l, &rq);
    if (code == GL_EXIT_OK && rq.claims.after.n > 0 && !cli->json) {
        gl_cli_note(cli, "there may be more; use --after '%.*s'", GL_STR_ARG(rq.claims.after));
    }
    return code;
}

int gl_cmd_claim_show(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_CLAIM_SHOW, .claim.key = gl_str_of(cli->words[0])};
    struct gl_rows l = {.cli = cli, GL_COLUMNS(columns)};

    return gl_rows_run(&l, &rq);
}
