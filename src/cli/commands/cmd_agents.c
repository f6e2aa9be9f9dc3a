/* cmd_agents.c - glia job agents, messages and dead-letters, and glia send: what goes on between
 * the agents of a bundle's job. */
#include "base/check.h"
#include "base/limits.h"
#include "cli/connect/api_reply.h"
#include "cli/output/table.h"
#include "os/fs.h"

/* One listing, page by page, as a table or as one JSON document. */
struct agent_listing {
    struct gl_cli *cli;
    struct gl_connection connection;
    struct gl_request rq;
    const char *rows; /* the member that is the list */
    void (*add)(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row);
    struct gl_table table;
    struct gl_buf json;
    struct gl_jw w;
    size_t n;
};

static void add_page(struct agent_listing *l, struct gl_api_reply *p)
{
    gl_jnode rows = gl_json_get(&p->j, p->root, l->rows);

    for (gl_jnode e = gl_json_first(&p->j, rows); e; e = gl_json_after(&p->j, rows, e)) {
        if (l->cli->json) {
            gl_jw_raw(&l->w, gl_json_raw(&p->j, e));
        } else {
            l->add(l, p, e);
        }
        l->n++;
    }
    l->rq.messages.after = gl_str_dup(&l->cli->arena, gl_api_reply_text(p, p->root, "next"));
}

static int ask_pages(struct agent_listing *l, struct gl_why *reterr_why)
{
    int err;

    gl_jw_init(&l->w, &l->json);
    gl_jw_object(&l->w);
    gl_jw_key(&l->w, l->rows);
    gl_jw_array(&l->w);
    do {
        struct gl_api_reply page;

        err = gl_api_reply_ask(&page, &l->connection, &l->rq, reterr_why);
        if (err == 0) {
            add_page(l, &page);
        }
        gl_api_reply_done(&page);
    } while (err == 0 && l->rq.messages.after.n > 0);
    gl_jw_end(&l->w);
    gl_jw_end(&l->w);
    return err;
}

/* `nothing`: the message for an empty list. */
static int show(struct agent_listing *l, const char *nothing)
{
    struct gl_why why;
    int err;

    l->rq.job = gl_str_of(l->cli->words[0]);
    l->rq.messages.limit = GL_PAGE_MAX;
    gl_connect_init(&l->connection, l->cli);
    err = ask_pages(l, &why);
    if (err != 0) {
        err = gl_cli_fail_why(l->cli, err, &why);
    } else if (l->cli->json) {
        gl_term_print(&l->cli->out, gl_buf_view(&l->json));
    } else if (l->n == 0) {
        gl_cli_note(l->cli, "%s", nothing);
    } else if (l->table.columns > 0) {
        gl_table_print(&l->table, &l->cli->out);
    }
    gl_connect_done(&l->connection);
    gl_buf_done(&l->json);
    gl_table_done(&l->table);
    return err;
}

static void add_number(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row,
                       const char *name)
{
    gl_jnode n = gl_json_get(&p->j, row, name);

    gl_table_add(&l->table, n != NULL ? gl_json_raw(&p->j, n) : GL_S("?"));
}

/* ---- agents ---- */

static gl_str size_of(struct gl_api_reply *p, gl_jnode row)
{
    int64_t bytes = gl_api_reply_number(p, row, "state_bytes");

    return bytes >= 10000 ? gl_str_fmt(&p->arena, "%lldK", (long long)((bytes + 512) / 1024))
                          : gl_str_fmt(&p->arena, "%lld", (long long)bytes);
}

static void add_agent(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row)
{
    gl_table_add(&l->table, gl_api_reply_text(p, row, "agent_id"));
    gl_table_add(&l->table, gl_api_reply_text(p, row, "agent_type"));
    gl_table_add(&l->table, gl_api_reply_text(p, row, "status"));
    add_number(l, p, row, "processed");
    add_number(l, p, row, "waiting");
    gl_table_add(&l->table, gl_api_reply_text(p, row, "node"));
    gl_table_add(&l->table, gl_api_reply_text(p, row, "last_activity"));
    gl_table_add(&l->table, size_of(p, row));
}

int gl_cmd_agents_list(struct gl_cli *cli)
{
    static const char *const titles[] = {"AGENT",   "KIND", "STATUS",        "PROCESSED",
                                         "WAITING", "NODE", "LAST ACTIVITY", "STATE"};
    static const char *const least[] = {"NODE", "LAST ACTIVITY", "STATE", "KIND", NULL};
    struct agent_listing l = {.cli = cli, .rows = "agents", .add = add_agent};

    l.rq.verb = GL_VERB_AGENTS;
    l.rq.messages.agent = cli->words_n > 1 ? gl_str_of(cli->words[1]) : (gl_str){0};
    gl_table_init(&l.table, titles, GL_COUNT(titles));
    l.table.least = least;
    return show(&l, "the job has no agents");
}

/* ---- messages ---- */

static void add_message(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row)
{
    static const char *const texts[] = {"to", "from", "type", "status", "step", "created_at"};

    add_number(l, p, row, "number");
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        gl_table_add(&l->table, gl_api_reply_text(p, row, texts[i]));
    }
}

static void add_dead(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row)
{
    static const char *const texts[] = {"to", "from", "type", "created_at", "reason"};

    add_number(l, p, row, "number");
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        gl_table_add(&l->table, gl_api_reply_text(p, row, texts[i]));
    }
}

/* One, whole: the message is the data. */
static void print_message(struct agent_listing *l, struct gl_api_reply *p, gl_jnode row)
{
    gl_jnode message = gl_json_get(&p->j, row, "message");

    gl_term_print(&l->cli->out, message != NULL ? gl_json_raw(&p->j, message) : GL_S("null"));
}

static int read_number(struct gl_cli *cli, struct agent_listing *l)
{
    uint64_t number = 0;
    int code = gl_cli_number(cli, "--number", 1, INT64_MAX, &number);

    l->rq.messages.number = (int64_t)number;
    l->rq.messages.agent = gl_str_of(gl_cli_option(cli, "--agent"));
    if (number > 0) {
        l->add = print_message;
        l->table.columns = 0;
    }
    return code;
}

int gl_cmd_agents_messages(struct gl_cli *cli)
{
    static const char *const titles[] = {"NUMBER", "TO",   "FROM",   "TYPE",
                                         "STATUS", "STEP", "CREATED"};
    static const char *const least[] = {"CREATED", "STEP", NULL};
    struct agent_listing l = {.cli = cli, .rows = "messages", .add = add_message};
    int code;

    l.rq.verb = GL_VERB_MESSAGES;
    gl_table_init(&l.table, titles, GL_COUNT(titles));
    l.table.least = least;
    code = read_number(cli, &l);
    if (code != 0) {
        gl_table_done(&l.table);
        return code;
    }
    return show(&l, "no message waits");
}

/* ---- commands ---- */

/* Once: what is sent twice arrives twice. */
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
    return command(cli, &rq, "delivered again");
}

int gl_cmd_agents_dead(struct gl_cli *cli)
{
    static const char *const titles[] = {"NUMBER", "TO", "FROM", "TYPE", "CREATED", "REASON"};
    static const char *const least[] = {"CREATED", NULL};
    const char *which = gl_cli_option(cli, "--redrive");
    struct agent_listing l = {.cli = cli, .rows = "dead_letters", .add = add_dead};
    int code;

    if (which != NULL) {
        return redrive(cli, which);
    }
    l.rq.verb = GL_VERB_DEAD_LETTERS;
    gl_table_init(&l.table, titles, GL_COUNT(titles));
    l.table.least = least;
    code = read_number(cli, &l);
    if (code != 0) {
        gl_table_done(&l.table);
        return code;
    }
    return show(&l, "there are no dead letters");
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
               : gl_cli_usage(cli, "the body of a message is JSON: %s", why.text);
}

int gl_cmd_agents_send(struct gl_cli *cli)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct gl_request rq = {.verb = GL_VERB_SEND,
                            .job = gl_str_of(cli->words[0]),
                            .message = {.to = gl_str_of(cli->words[1]),
                                        .type = gl_str_of(gl_cli_option(cli, "--type")),
                                        .who = gl_str_of(gl_cli_user())}};
    int code = read_message_body(cli, &content);

    if (code != 0) {
        return code;
    }
    rq.message.body = gl_str_trim(gl_buf_view(&content));
    return command(cli, &rq, "sent");
}
