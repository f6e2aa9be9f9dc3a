/* cli.h - what all commands have in common: parsing, output, errors, exit codes.
 *
 * Data goes to stdout, messages go to stderr. A command returns one of the exit codes below.
 *
 *   gl_cli_main()      parses the arguments, reads the settings, runs the command
 *   gl_cli_option()    in a command: the value of an option
 *   gl_cli_note()      prints a message
 *   gl_cli_fail()      prints an error and returns its exit code */
#ifndef GL_CLI_CLI_H
#define GL_CLI_CLI_H

#include "base/err.h"
#include "cli/output/term.h"
#include "cli/settings.h"

enum gl_exit {
    GL_EXIT_OK = 0,
    GL_EXIT_FAILED = 1, /* the job failed or was cancelled */
    GL_EXIT_USAGE = 2,  /* wrong usage or bad input */
    GL_EXIT_NOT_FOUND = 3,
    GL_EXIT_DENIED = 4,
    GL_EXIT_UNAVAILABLE = 5, /* node, store or stdout */
    GL_EXIT_WAITING = 6,     /* paused, or waiting for a person */
    GL_EXIT_CLAIM_BUSY = 75, /* someone else holds the claim: try again later */
    GL_EXIT_CLAIM_LOST = 76, /* the caller does not hold the claim, or lost it */
    GL_EXIT_INTERRUPTED = 130,
};

struct gl_cli;
struct gl_jw;

struct gl_command_option {
    const char *name;  /* "--run-id" */
    const char *value; /* name of its value, for the help ("ID"); NULL: no value. If it ends in
                          "...", the option may be repeated */
    const char *doc;
};

enum { GL_CLI_OPTIONS_MAX = 20, GL_CLI_WORDS_MAX = 10000 };

/* Completion knows these words in `arguments`: ID, JOB, STEP (of the ID before it), FILE, DIR. */
struct gl_command {
    const char *name;      /* "job list" */
    const char *arguments; /* "ID [STEP]", for the help */
    const char *summary;   /* one line */
    const char *help;      /* further paragraphs; may be "" */
    size_t words_min, words_max;
    bool takes_rest;    /* words after "--" are passed to the command */
    bool needs_no_data; /* does not use the data folder */
    bool is_hidden;     /* internal: no help, no manual page, no completion */
    int (*run)(struct gl_cli *cli);
    struct gl_command_option
        options[GL_CLI_OPTIONS_MAX]; /* besides the common ones; ended by a NULL name */
};

/* A value of a repeatable option. */
struct gl_cli_value {
    struct gl_cli_value *next; /* in the order given */
    const char *text;
};

struct gl_cli {
    struct gl_arena arena;
    struct gl_term out, err;
    const char *program; /* the name for hints: argv[0] if it is a path, else "glia" */
    const struct gl_command *command;
    const char *values[GL_CLI_OPTIONS_MAX];         /* by option of the command; NULL: not given */
    struct gl_cli_value *lists[GL_CLI_OPTIONS_MAX]; /* the same, of repeatable options */
    const char **words;
    size_t words_n;
    char **rest; /* after "--"; NULL: there was none */
    const char *data_option, *config_option, *server_option, *store_option;
    const char *data;                   /* the data folder */
    gl_str context;                     /* of all requests */
    const struct gl_settings *settings; /* NULL: the command needs no data folder */
    bool json;
};

extern const struct gl_command gl_cli_commands[];
extern const size_t gl_cli_commands_n;

/* Options that all commands accept, before or after the command name. */
extern const struct gl_command_option gl_cli_common[];
extern const size_t gl_cli_common_n;

int gl_cli_main(int argc, char **argv);

/* The value of an option of this command, or NULL. A flag that was given has the value "". */
const char *gl_cli_option(const struct gl_cli *cli, const char *name);
/* All values of a repeatable option. */
const struct gl_cli_value *gl_cli_option_list(const struct gl_cli *cli, const char *name);
/* A number in [min, max]; if absent, *ret is unchanged. Returns 0 or an exit code. */
int gl_cli_number(const struct gl_cli *cli, const char *name, uint64_t min, uint64_t max,
                  uint64_t *ret);

/* Prints one message, "glia: ...", on stderr. */
void gl_cli_note(const struct gl_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Print an error; returns its exit code. `code` may be a GL_R_*. */
int gl_cli_fail(const struct gl_cli *cli, int code, const char *text);
/* The same with the sentence and the reason of `why`; `err` is the code returned with it. */
int gl_cli_fail_why(const struct gl_cli *cli, int err, const struct gl_why *why);
/* The same for a command whose JSON document contains the error: gl_cli_put_error() writes it. */
int gl_cli_fail_json(const struct gl_cli *cli, int code, const char *text);
void gl_cli_put_error(struct gl_jw *w, int code, const char *text);
int gl_cli_usage(const struct gl_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Report an unknown command and suggest a similar one; `second` may be "". */
int gl_cli_unknown(struct gl_cli *cli, gl_str first, gl_str second);
bool gl_cli_is_group(gl_str word); /* "job" */
/* The command that the first words name, and the number of those words; NULL: none. */
const struct gl_command *gl_cli_find(size_t words_n, char **words, size_t *ret_used);

/* The name of the user, for the record; may be "". */
const char *gl_cli_user(void);

/* "glia job logs 01ABC", with --data-dir if that was given. */
const char *gl_cli_hint(struct gl_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the commands, one file per group ---- */
int gl_cmd_run(struct gl_cli *cli);
int gl_cmd_list(struct gl_cli *cli);
int gl_cmd_job_status(struct gl_cli *cli);
int gl_cmd_job_result(struct gl_cli *cli);
int gl_cmd_job_events(struct gl_cli *cli);
int gl_cmd_agents_list(struct gl_cli *cli);
int gl_cmd_agents_messages(struct gl_cli *cli);
int gl_cmd_agents_dead(struct gl_cli *cli);
int gl_cmd_agents_send(struct gl_cli *cli);
int gl_cmd_artifacts_list(struct gl_cli *cli);
int gl_cmd_artifacts_export(struct gl_cli *cli);
int gl_cmd_logs(struct gl_cli *cli);
int gl_cmd_job_pause(struct gl_cli *cli);
int gl_cmd_job_resume(struct gl_cli *cli);
int gl_cmd_job_cancel(struct gl_cli *cli);
int gl_cmd_job_retry(struct gl_cli *cli);
int gl_cmd_job_rm(struct gl_cli *cli);
int gl_cmd_job_signal(struct gl_cli *cli);
int gl_cmd_shell(struct gl_cli *cli);
int gl_cmd_human_list(struct gl_cli *cli);
int gl_cmd_human_respond(struct gl_cli *cli);
int gl_cmd_claim_run(struct gl_cli *cli);
int gl_cmd_claim_acquire(struct gl_cli *cli);
int gl_cmd_claim_renew(struct gl_cli *cli);
int gl_cmd_claim_complete(struct gl_cli *cli);
int gl_cmd_claim_fail(struct gl_cli *cli);
int gl_cmd_claim_reclaim(struct gl_cli *cli);
int gl_cmd_claim_list(struct gl_cli *cli);
int gl_cmd_claim_show(struct gl_cli *cli);
int gl_cmd_why(struct gl_cli *cli);
int gl_cmd_status(struct gl_cli *cli);
int gl_cmd_top(struct gl_cli *cli);
int gl_cmd_doctor(struct gl_cli *cli);
int gl_cmd_completion(struct gl_cli *cli);
int gl_cmd_complete(struct gl_cli *cli);
int gl_cmd_pyenv(struct gl_cli *cli);
int gl_cmd_man(struct gl_cli *cli);
int gl_cmd_validate(struct gl_cli *cli);
int gl_cmd_schema(struct gl_cli *cli);
int gl_cmd_serve(struct gl_cli *cli);
int gl_cmd_node_list(struct gl_cli *cli);
int gl_cmd_node_status(struct gl_cli *cli);
int gl_cmd_cluster_status(struct gl_cli *cli);
int gl_cmd_store_trim(struct gl_cli *cli);
int gl_cmd_store_status(struct gl_cli *cli);
int gl_cmd_store_check(struct gl_cli *cli);
int gl_cmd_store_migrate(struct gl_cli *cli);
int gl_cmd_backup(struct gl_cli *cli);
int gl_cmd_backup_restore(struct gl_cli *cli);
int gl_cmd_debug_dump(struct gl_cli *cli);
int gl_cmd_debug_replay(struct gl_cli *cli);
int gl_cmd_config_show(struct gl_cli *cli);
/* Read the settings of this command. On failure the error has been printed. */
int gl_cmd_config_load(struct gl_cli *cli);
int gl_cmd_version(struct gl_cli *cli);
int gl_cmd_help(struct gl_cli *cli);
void gl_cmd_help_group(FILE *out, gl_str group); /* lists the commands of a group */

#endif
