/* cmd_complete.c - glia __complete: prints candidates for the last word on a command line.
 *
 * Called by the scripts of `glia completion` with the words after "glia", the last one incomplete.
 * Prints one candidate per line, with a tab and a description. A line ":files" or ":folders" means
 * that the shell should complete paths. */
#include <strings.h>

#include "base/check.h"
#include "cli/connect/api_reply.h"
#include "model/job.h"

enum { JOBS_MAX = 200, QUIET_MS = 2000 };

struct complete_line {
    struct gl_cli *cli;
    const struct gl_command *command; /* NULL: not known yet */
    const char *last;                 /* the word to complete */
    const char *first_word;           /* first word of the command's arguments: usually a job */
    size_t words_n;                   /* number of words after the command, without options */
    char *names[4];                   /* words of the command itself, so far */
    size_t names_n;
    const struct gl_command_option *open; /* an option whose value comes next; NULL: none */
    bool is_rest;                         /* after "--" */
};

/* ---- reading ---- */

static const struct gl_command_option *find_option(const struct complete_line *l, const char *word)
{
    for (size_t i = 0; i < gl_cli_common_n; i++) {
        if (strcmp(gl_cli_common[i].name, word) == 0) {
            return &gl_cli_common[i];
        }
    }
    for (size_t i = 0; l->command != NULL && i < GL_CLI_OPTIONS_MAX; i++) {
        const struct gl_command_option *o = &l->command->options[i];

        if (o->name != NULL && strcmp(o->name, word) == 0) {
            return o;
        }
    }
    return NULL;
}

/* Use the data folder that the command line names. */
static void note_common(struct complete_line *l, const struct gl_command_option *o,
                        const char *value)
{
    if (strcmp(o->name, "--data-dir") == 0) {
        l->cli->data_option = value;
    } else if (strcmp(o->name, "--server") == 0) {
        l->cli->server_option = value;
    } else if (strcmp(o->name, "--config") == 0) {
        l->cli->config_option = value;
    }
}

static void read_word(struct complete_line *l, char *word)
{
    const struct gl_command_option *o;
    size_t used = 0;

    if (l->open != NULL) {
        note_common(l, l->open, word);
        l->open = NULL;
    } else if (word[0] == '-' && word[1] != '\0') {
        o = find_option(l, word);
        l->open = o != NULL && o->value != NULL ? o : NULL;
        l->is_rest = strcmp(word, "--") == 0;
    } else if (l->command != NULL) {
        l->first_word = l->words_n++ == 0 ? word : l->first_word;
    } else if (l->names_n < GL_COUNT(l->names)) {
        l->names[l->names_n++] = word;
        l->command = gl_cli_find(l->names_n, l->names, &used);
    }
}

static void read_line(struct complete_line *l, char **words)
{
    l->last = "";
    for (; *words != NULL; words++) {
        if (words[1] == NULL) {
            l->last = *words;
        } else if (!l->is_rest) {
            read_word(l, *words);
        }
    }
}

/* ---- candidates ---- */

static bool begins(gl_str text, const char *with)
{
    size_t n = strlen(with);

    return text.n >= n && strncasecmp(text.p != NULL ? text.p : "", with, n) == 0;
}

static void offer(struct complete_line *l, gl_str word, gl_str doc)
{
    if (word.n > 0 && begins(word, l->last)) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

        (void)fprintf(l->cli->out.file, "%.*s\t%.*s\n", GL_STR_ARG(word),
                      GL_STR_ARG(gl_term_safe(&a, doc)));
    }
}

static bool is_ready(struct complete_line *l)
{
    return l->cli->data != NULL || gl_cmd_config_load(l->cli) == 0;
}

static void offer_jobs(struct complete_line *l)
{
    struct gl_request rq = {.verb = GL_VERB_LIST, .list.limit = JOBS_MAX};
    struct gl_connection connection;
    struct gl_api_reply p;

    if (!is_ready(l)) {
        return;
    }
    gl_connect_init(&connection, l->cli);
    connection.silence_ms = QUIET_MS;
    if (gl_api_reply_ask(&p, &connection, &rq, NULL) == 0) {
        gl_jnode jobs = gl_json_get(&p.j, p.root, "jobs");

        for (gl_jnode e = gl_json_first(&p.j, jobs); e; e = gl_json_after(&p.j, jobs, e)) {
            gl_str id = gl_api_reply_text(&p, e, "job_id"),
                   run = gl_api_reply_text(&p, e, "run_id");
            gl_str doc =
                gl_str_fmt(&p.arena, "%.*s %.*s", GL_STR_ARG(gl_api_reply_text(&p, e, "status")),
                           GL_STR_ARG(gl_api_reply_text(&p, e, "name")));

            offer(l, id, doc);
            if (!gl_str_eq(run, id)) {
                offer(l, run, doc);
            }
        }
    }
    gl_api_reply_done(&p);
    gl_connect_done(&connection);
}

static void offer_steps(struct complete_line *l)
{
    struct gl_request rq = {.verb = GL_VERB_STATUS, .job = gl_str_of(l->first_word)};
    struct gl_connection connection;
    struct gl_api_reply p;

    if (l->first_word == NULL || !is_ready(l)) {
        return;
    }
    gl_connect_init(&connection, l->cli);
    connection.silence_ms = QUIET_MS;
    if (gl_api_reply_ask(&p, &connection, &rq, NULL) == 0) {
        gl_jnode steps = gl_json_get(&p.j, gl_json_get(&p.j, p.root, "workflow_state"), "steps");

        for (gl_jnode k = gl_json_first(&p.j, steps); k; k = gl_json_after(&p.j, steps, k)) {
            offer(l, gl_json_str(&p.j, k, &p.arena),
                  gl_api_reply_text(&p, gl_json_value(k), "status"));
        }
    }
    gl_api_reply_done(&p);
    gl_connect_done(&connection);
}

static void offer_statuses(struct complete_line *l)
{
    for (size_t i = 0; i < GL_JOB_STATUS_COUNT; i++) {
        offer(l, gl_str_of(gl_job_status_words[i]), (gl_str){0});
    }
}

static void offer_options(struct complete_line *l)
{
    for (size_t i = 0; l->command != NULL && i < GL_CLI_OPTIONS_MAX; i++) {
        const struct gl_command_option *o = &l->command->options[i];

        offer(l, gl_str_of(o->name), gl_str_of(o->doc));
    }
    for (size_t i = 0; i < gl_cli_common_n; i++) {
        offer(l, gl_str_of(gl_cli_common[i].name), gl_str_of(gl_cli_common[i].doc));
    }
}

/* The next words of the commands that match so far, each once. */
static void offer_commands(struct complete_line *l)
{
    gl_str before = {0};

    for (size_t i = 0; i < gl_cli_commands_n; i++) {
        const struct gl_command *c = &gl_cli_commands[i];
        gl_str rest = gl_str_of(c->name), word = gl_str_cut(rest, ' ', &rest);
        bool fits = !c->is_hidden;

        for (size_t n = 0; n < l->names_n; n++) {
            fits = fits && gl_str_is(word, l->names[n]);
            word = gl_str_cut(rest, ' ', &rest);
        }
        if (fits && !gl_str_eq(word, before)) {
            offer(l, word, rest.n == 0 ? gl_str_of(c->summary) : GL_S("a group of commands"));
            before = word;
        }
    }
}

/* The kind of an argument, in capitals; other words are literal. */
static void offer_kind(struct complete_line *l, gl_str kind)
{
    while (kind.n > 0) {
        gl_str one = gl_str_cut(kind, '|', &kind), trimmed = one;

        while (trimmed.n > 0 && trimmed.p[trimmed.n - 1] == '.') {
            trimmed.n--; /* "ID..." */
        }
        if (gl_str_is(trimmed, "ID") || gl_str_is(trimmed, "JOB")) {
            offer_jobs(l);
        } else if (gl_str_is(trimmed, "STEP")) {
            offer_steps(l);
        } else if (gl_str_is(trimmed, "STATUS")) {
            offer_statuses(l);
        } else if (gl_str_is(trimmed, "COMMAND")) {
            l->names_n = 0; /* of `help`: from the beginning */
            offer_commands(l);
        } else if (gl_str_is(trimmed, "FILE") || gl_str_is(trimmed, "BACKUP")) {
            (void)fputs(":files\n", l->cli->out.file);
        } else if (gl_str_is(trimmed, "DIR")) {
            (void)fputs(":folders\n", l->cli->out.file);
        } else if (trimmed.n > 0 && trimmed.p[0] >= 'a' && trimmed.p[0] <= 'z') {
            offer(l, trimmed, (gl_str){0});
        }
    }
}

/* Word number `n` of "ID [STEP] [--from N]"; "" if there is none. The last one may repeat. */
static gl_str kind_of(const struct gl_command *c, size_t n)
{
    gl_str rest = gl_str_of(c->arguments), kind = {0};

    for (size_t i = 0; rest.n > 0; i++) {
        gl_str word = gl_str_cut(rest, ' ', &rest);

        if (word.n > 0 && word.p[0] == '[') {
            word.p++;
            word.n--;
        }
        if (word.n == 0 || word.p[0] == '-' || word.p[0] == '|') {
            break;
        }
        kind = word.p[word.n - 1] == ']' ? (gl_str){.p = word.p, .n = word.n - 1} : word;
        if (i == n) {
            return kind;
        }
    }
    return gl_str_ends(kind, GL_S("...")) ? kind : (gl_str){0};
}

int gl_cmd_complete(struct gl_cli *cli)
{
    struct complete_line l = {.cli = cli};

    if (cli->rest == NULL) {
        return gl_cli_usage(cli, "put the words after --");
    }
    read_line(&l, cli->rest);
    if (l.is_rest) {
        (void)fputs(":files\n", cli->out.file);
    } else if (l.open != NULL) {
        offer_kind(&l, gl_str_of(l.open->value));
    } else if (l.last[0] == '-') {
        offer_options(&l);
    } else if (l.command == NULL) {
        offer_commands(&l);
    } else {
        offer_kind(&l, kind_of(l.command, l.words_n));
    }
    return GL_EXIT_OK;
}
