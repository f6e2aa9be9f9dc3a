/* follow.h - follows a job until it has ended or waits for a person.
 *
 * If the node goes away, the command finds the next one or becomes it. The first interrupt pauses
 * the job if this process is its node, otherwise it only stops following; the second one exits at
 * once.
 *
 *   gl_follow_init()     from here on signals are read by gl_follow_job()
 *   gl_follow_begin()    load the job
 *   gl_follow_job()      follow it; returns an exit code
 *   gl_follow_done() */
#ifndef GL_CLI_FOLLOW_H
#define GL_CLI_FOLLOW_H

#include "cli/connect/api_reply.h"
#include "cli/connect/connect.h"
#include "cli/human_files.h"
#include "cli/output/progress.h"

struct gl_follow {
    struct gl_connection *connection;
    struct gl_progress *progress;
    const char *job;      /* its id; borrowed */
    const char *log_step; /* show the log of this step; NULL: none */
    bool pauses;          /* an interrupt pauses the job, if we are its node */
    bool only_stops;      /* stay only while we are the node and the job is being stopped */

    int signals_fd;
    unsigned interrupts; /* number seen */
    bool is_pausing;     /* because of an interrupt */
    int64_t next_seq;
    gl_str status; /* of the job, in the command's arena */
    uint32_t log_attempt;
    uint64_t log_offset;
    uint64_t log_dropped; /* bytes dropped before they could be read */
    gl_ms called_at;      /* when the node was asked for events, ... */
    gl_ms wait_ms;        /* ... how long it may wait for one, ... */
    bool is_silent;       /* ... and its silence was reported */
    gl_ms moved_at;       /* when the last event arrived, or the node's health was last checked */
    gl_ms looked_at;      /* when the job's status was last requested */
    bool is_stuck;        /* reported: the node is not ready */
    bool is_stranded;     /* reported: no node may take the job */
    gl_ms away_since;     /* the outage that was reported */
    uint32_t log_told;    /* reported: the log of this attempt is not available here */
    gl_ms log_pause_ms;
    const char *asked; /* the step that waits for a person, in the command's arena; NULL: none */
    bool is_review;    /* the step waits for a review; else for an approval */
    bool has_asked;    /* the question was reported */
    bool is_new;       /* the job is on another node: check its state there */
    bool has_told_quarantine;    /* reported: the job is in quarantine */
    struct gl_human_watch watch; /* questions of its workers */
};

/* From here on gl_follow_job() handles interrupts. */
void gl_follow_init(struct gl_follow *f, struct gl_connection *connection,
                    struct gl_progress *progress);
void gl_follow_done(struct gl_follow *f);

/* Load the state of `job`. */
int gl_follow_begin(struct gl_follow *f, const char *job, struct gl_why *reterr_why);

/* Returns the exit code. For GL_EXIT_UNAVAILABLE and GL_EXIT_INTERRUPTED the message has been
 * printed. */
int gl_follow_job(struct gl_follow *f);

/* A query about the job; like following, it waits while the node or store is unavailable. Returns
 * 0, or an exit code after printing the message. Always release `p`. */
int gl_follow_ask(struct gl_follow *f, struct gl_request *rq, struct gl_api_reply *p);

#endif
