/* cmd_agents.c - glia job agents, messages and dead-letters, and glia send: the agents of a
 * bundle's job and their messages. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/output/rows.h"
#include "os/fs.h"

/* Show all rows, page by page. */
static int show(struct gl_rows *l, struct gl_request *rq)
{
    rq->job = gl_str_of(l->cli->words[0]);
    rq->messages.limit = GL_PAGE_MAX;
    l->after = &rq->messages.after;
    l->all = true;
    return gl_rows_run(l, rq);
}

/* ---- agents ---- */

static gl_str size_cell(const struct gl_row *row)
{
    int64_t bytes = gl_api_reply_number(row->p, row->node, "state_bytes");

    return bytes >= 10000 ? gl_str_fmt(&row->p->arena, "%lldK", (long long)((bytes + 512) / 1024))
                          : gl_str_fmt(&row->p->arena, "%lld", (long long)bytes);
}

static const struct gl_column agents_columns[] = {
    {"AGENT", .key = "agent_id"},
    {"KIND", .key = "agent_type", .least = 4},
    {"STATUS", .key = "status"},
    {"PROCESSED", GL_COLUMN_NUMBER, .key = "processed", .absent = "?"},
    {"WAITING", GL_COLUMN_NUMBER, .key = "waiting", .absent = "?"},
    {"NODE", .key = "node", .least = 1},
    {"LAST ACTIVITY", .key = "last_activity", .least = 2},
    {"STATE", .cell = size_cell, .least = 3},
};

int gl_cmd_agents_list(struct gl_cli *cli)
{
    struct gl_request rq = {.verb = GL_VERB_AGENTS};
    struct gl_rows l = {
        .cli = cli, GL_COLUMNS(agents_columns), .list = "agents", .none = "the job has no agents"};

    rq.messages.agent = cli->words_n > 1 ? gl_str_of(cli->words[1]) : (gl_str){0};
    return show(&l, &rq);
}

/* ---- messages ---- */

static const struct gl_column messages_columns[] = {
    {"NUMBER", GL_COLUMN_NUMBER, .key = "number", .absent = "?"},
    {"TO", .key = "to"},
    {"FROM", .key = "from"},
    {"TYPE", .key = "type"},
    {"STATUS", .key = "status"},
    {"PRIORITY", GL_COLUMN_NUMBER, .key = "priority", .absent = "?", .least = 3},
    {"STEP", .key = "step", .least = 2},
    {"CREATED", .key = "created_at", .least = 1},
};

static const struct gl_column dead_letters_columns[] = {
    {"NUMBER", GL_COLUMN_NUMBER, .key = "number", .absent = "?"},
    {"TO", .key = "to"},
    {"FROM", .key = "from"},
    {"TYPE", .key = "type"},
    {"CREATED", .key = "created_at", .least = 1},
    {"REASON", .key = "reason"},
};

/* One message in full: the message is the data. */
static void print_messages(struct gl_rows *l, struct gl_api_reply *p)
{
    gl_jnode all = gl_json_get(&p->j, p->root, l->list);

    for (gl_jnode e = gl_json_first(&p->j, all); e && !l->cli->json;
         e = gl_json_after(&p->j, all, e)) {
        gl_jnode message = gl_json_get(&p->j, e, "message");

        gl_term_print(&l->cli->out, message != NULL ? gl_json_raw(&p->j, message) : GL_S("null"));
    }
}

/* Show messages or dead letters, selected by --agent or --number. */
static int show_messages(struct gl_rows *l, enum gl_verb verb)
{
    struct gl_request rq = {.verb = verb};
    uint64_t number = 0;
    int code = gl_cli_number(l->cli, "--number", 1, INT64_MAX, &number);

    rq.messages.number = (int64_t)number;
    rq.messages.agent = gl_str_of(gl_cli_option(l->cli, "--agent"));
    if (number > 0) {
        l->columns_n = 0;
        l->on_page = print_messages;
    }
    return code != 0 ? code : show(l, &rq);
}

int gl_cmd_agents_messages(struct gl_cli *cli)
{
    struct gl_rows l = {.cli = cli,
                        GL_COLUMNS(messages_columns),
                        .list = "messages",
                        .none = "no messages are waiting"};

    return show_messages(&l, GL_VERB_MESSAGES);
}

/* ---- commands ---- */

/* Send only once: a repeated request would have its effect twice. */
static int command(struct gl_cli *cli, struct gl_request *rq, const char *done)
{
    struct gl_http_client_reply reply;
    struct gl_connection connection;
    struct gl_why why;
    int code = GL_EXIT_OK, err;

    gl_connect_init(&connection, cli);
    connection.is_passive = true;
    err = gl_connect_send(&connection, GL_CONNECT_OPEN, rq, &reply, &why);
    if (err == GL_E_GONE) {
        code = gl_cli_fail(
            cli, GL_R_ANSWER_LOST,
            "lost the connection to the node; the command may have taken effect: see 'glia job "
            "events'");
    } else if (err != 0) {
        code = gl_cli_fail_why(cli, err, &why);
    } else if (cli->json) {
        gl_term_print(&cli->out, gl_str_trim(reply.body));
    } else {
        gl_cli_note(cli, "%s", done);
    }
    gl_connect_done(&connection);
    return code;
}

static int redrive(struct gl_cli *cli, const char *which)
{
    struct gl_request rq = {
        .verb = GL_VERB_REDRIVE,
        .job = gl_str_of(cli->words[0]),
        .command = {.about = gl_str_of(which), .who = gl_str_of(gl_cli_user())}};
    uint64_t number;

    if (strcmp(which, "all") != 0 && (!gl_str_u64(gl_str_of(which), &number) || number == 0)) {
        return gl_cli_usage(cli, "--redrive takes the number of a dead letter, or all");
    }
    return command(cli, &rq, "redelivered");
}

int gl_cmd_agents_dead(struct gl_cli *cli)
{
    const char *which = gl_cli_option(cli, "--redrive");
    struct gl_rows l = {.cli = cli,
                        GL_COLUMNS(dead_letters_columns),
                        .list = "dead_letters",
                        .none = "there are no dead letters"};

    return which != NULL ? redrive(cli, which) : show_messages(&l, GL_VERB_DEAD_LETTERS);
}

/* The JSON of --body or --body-file; "null" without them. */
static int read_message_body(struct gl_cli *cli, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char *text = gl_cli_option(cli, "--body"), *file = gl_cli_option(cli, "--body-file");
    struct gl_why why;
    struct gl_json j;
    int err = 0;

    if (text != NULL && file != NULL) {
        return gl_cli_usage(cli, "give either --body or --body-file");
    }
    if (file != NULL) {
        err = gl_fs_read(strcmp(file, "-") == 0 ? "/dev/stdin" : file, GL_MESSAGE_BYTES_MAX, out,
                         &why);
    } else {
        gl_buf_c(out, text != NULL ? text : "null");
    }
    if (err != 0) {
        (void)gl_cli_fail_why(cli, err, &why);
        return GL_EXIT_USAGE;
    }
    return gl_json_parse(&j, gl_buf_view(out), GL_MESSAGE_BYTES_MAX, &a, &why) == 0
               ? 0
               : gl_cli_usage(cli, "the body of the message is not valid JSON: %s", why.text);
}

int gl_cmd_agents_send(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct gl_request rq = {.verb = GL_VERB_SEND,
                            .job = gl_str_of(cli->words[0]),
                            .message = {.to = gl_str_of(cli->words[1]),
                                        .type = gl_str_of(gl_cli_option(cli, "--type")),
                                        .who = gl_str_of(gl_cli_user())}};
    uint64_t priority = GL_MESSAGE_PRIORITY;
    int code = gl_cli_number(cli, "--priority", 0, GL_MESSAGE_PRIORITY_MAX, &priority);

    code = code == 0 ? read_message_body(cli, &content) : code;
    if (code != 0) {
        return code;
    }
    rq.message.priority =
        gl_cli_option(cli, "--priority") != NULL ? (int64_t)priority : -1; /* -1: the usual one */
    rq.message.body = gl_str_trim(gl_buf_view(&content));
    return command(cli, &rq, "sent");
}
