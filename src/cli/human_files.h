/* human_files.h - requests of workers, read by a command from the files of runs.
 *
 * The node reports only what it read a moment ago (port/questions.h), and only the first requests
 * of a run. A command on the same machine can read the files itself.
 *
 *   gl_human_files_find()     the open requests of all live jobs
 *   gl_human_watch_start()    while following a job: report each request once */
#ifndef GL_CLI_HUMAN_FILES_H
#define GL_CLI_HUMAN_FILES_H

#include <sys/stat.h>

#include "base/map.h"
#include "cli/connect/api_reply.h"
#include "cli/output/progress.h"
#include "os/human_file.h"

/* The folder of runs: `given`, else the node's, else the setting. */
const char *gl_human_files_root(struct gl_connection *connection, const char *given);

/* According to its status, the job is on another node, and the files here are not its requests. */
bool gl_human_files_is_remote(struct gl_api_reply *status, const char *root, gl_str run_id);

/* An open request. */
struct gl_open_request {
    struct gl_open_request *next;
    gl_str job, run_id;
    const struct gl_question *request;
};

/* The open requests of the newest live jobs, in the command's arena. Prints why a file or request
 * was left out. */
struct gl_open_request *gl_human_files_find(struct gl_connection *connection, const char *given);

/* "ship it? (until 2026-...; then: reject)" */
gl_str gl_human_files_describe(struct gl_arena *a, const struct gl_question *r);

/* While a job is followed: reports each request once, with the command that answers it. */
struct gl_human_watch {
    struct gl_connection *connection;
    struct gl_progress *progress;
    const char *root; /* NULL: the files are not visible from here, and the node is asked */
    gl_str job, run_id;
    gl_ms looked_at, look_at; /* the last scan, and the next */
    struct stat seen;
    struct gl_arena arena;
    struct gl_map reported; /* by request id */
};

/* `status`: of the job. Does nothing if the job is not a bundle's. Always call
 * gl_human_watch_done(). */
void gl_human_watch_start(struct gl_human_watch *w, struct gl_connection *connection,
                          struct gl_progress *progress, const struct gl_json *j, gl_jnode status);
void gl_human_watch_done(struct gl_human_watch *w);
/* Checks the file system. */
void gl_human_watch_check_file(struct gl_human_watch *w);
/* Call when the node can be asked: if the file is not visible, asks the node every few seconds. */
void gl_human_watch_ask_node(struct gl_human_watch *w);

#endif
