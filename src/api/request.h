/* request.h - requests to a node, and their answers. No HTTP, no sockets.
 *
 * verbs.def lists all verbs, requests.def the fields of each; both are expanded here. Submissions
 * and commands become events of the core and are answered when their transaction has committed.
 * Queries read the store and never enter the core. Remove and trim become events of retention,
 * which answers at the end of its pass. Claims are handled by a component of the core. Metrics are
 * in Prometheus's text format, all other answers are JSON.
 *
 *   gl_request_init()      an empty request
 *   gl_verb_find()         the verb of a method and a path
 *   gl_request_place()     fill in what the path says, ...
 *   gl_request_argument()  ... an argument of the query, ...
 *   gl_request_body()      ... the body
 *   gl_request_path()      the reverse, for clients: path and query, ...
 *   gl_request_write()     ... and the body
 *
 * Field names in answers are those of docs/api.md. */
#ifndef GL_API_REQUEST_H
#define GL_API_REQUEST_H

#include "base/err.h"
#include "base/str.h"
#include "base/times.h"
#include "model/schema.h"

enum gl_verb {
#define VERB(name, ...) GL_VERB_##name,
#include "api/verbs.def"
#undef VERB
    GL_VERB_COUNT
};

enum gl_verb_kind {
    GL_KIND_LOCAL,      /* answered by the server that receives the request */
    GL_KIND_NODE,       /* about the node itself */
    GL_KIND_QUERY,      /* reads the store */
    GL_KIND_SUBMISSION, /* creates a job */
    GL_KIND_COMMAND,    /* acts on an existing job */
    GL_KIND_CLEANUP,    /* removes ended jobs */
    GL_KIND_CLAIM,
};

enum gl_content { GL_CONTENT_NONE, GL_CONTENT_FIELDS, GL_CONTENT_JSON, GL_CONTENT_BYTES };

struct gl_verb_row {
    const char *word; /* unique, for programs */
    enum gl_verb_kind kind;
    const char *method, *path;     /* {context}, {job}, {name}, ...: any single segment */
    const struct gl_schema *takes; /* no fields: nothing beyond context and job */
    enum gl_content body;
    unsigned status;          /* HTTP status on success */
    const char *doc, *answer; /* what it does, and what it returns */
};

extern const struct gl_verb_row gl_verbs[GL_VERB_COUNT];

/* Queries do not queue behind commands; neither do claims, which expire if they are renewed late.
 */
bool gl_verb_is_urgent(enum gl_verb verb);

enum { GL_EVENTS_WAIT_MS_MAX = 30000 };

#define REQUEST(name) struct gl_##name##_request {
#define END(name) \
    }             \
    ;
#define TEXT(s, member, flags, max, doc) gl_str member;
#define JSON(s, member, flags, max, doc) gl_str member;
#define COUNT(s, member, flags, max, doc) uint32_t member;
#define NUMBER(s, member, flags, max, doc) int64_t member;
#define SPAN(s, member, flags, max, doc) gl_ms member;
#define FLAG(s, member, flags, doc) bool member;
#define INNER(s, type, member) type member;
#define VARIANT(name, of)
#define SHOWN(s, member, word, type, flags, max, doc)
#define END_VARIANT(name, of)
#include "api/requests.def"
#undef REQUEST
#undef END
#undef TEXT
#undef JSON
#undef COUNT
#undef NUMBER
#undef SPAN
#undef FLAG
#undef INNER
#undef VARIANT
#undef SHOWN
#undef END_VARIANT

struct gl_request;
typedef void gl_request_done(struct gl_request *rq);

struct gl_request {
    enum gl_verb verb;
    gl_str context;

    /* The job: its id, a unique prefix of it (4 characters or more), or its run id. "" if the path
     * has none. */
    gl_str job;

    /* The fields of the verb: the struct described by gl_verbs[verb].takes. */
    union {
        struct gl_submission_request submission;
        struct gl_command_request command;
        struct gl_message_request message; /* of SEND, before it is encoded */
        struct gl_trim_request trim;
        struct gl_list_request list;
        struct gl_status_request status;
        struct gl_events_request events;
        struct gl_human_request human;
        struct gl_messages_request messages;
        struct gl_nodes_request nodes;
        struct gl_claims_request claims;
        struct gl_claim_request claim;
        struct gl_logs_request logs;
        struct gl_stored_logs_request stored_logs;
        struct gl_artifacts_request artifacts;
        struct gl_blob_request blob;
    };

    /* Everything above is borrowed until `done` runs: exactly once, on the control thread, never
     * from inside the call. */
    gl_request_done *done;
    void *owner;

    /* The answer, valid inside `done` only. */
    int code; /* 0 or GL_E_* */
    struct gl_why why;
    gl_str body;     /* JSON; on failure "", or the conflicting claim */
    char job_id[27]; /* the id of the job that `job` named; "": not found */
    uint32_t count;  /* EVENTS: number of events */
    bool ended;      /* EVENTS: the job has ended, and these are the last */
    bool existing;   /* SUBMIT: the job existed already, with the same run id and content */

    /* Private to the node. */
    struct {
        void *watcher;
        uint32_t conflicts, resubmits; /* how often it was retried, by cause */
    } node;
};

void gl_request_init(struct gl_request *rq, enum gl_verb verb, gl_str context);

/* ---- reading ---- */

enum { GL_CAPTURES_MAX = 4 };

/* The values of the braces of a path, in order. */
struct gl_captures {
    gl_str values[GL_CAPTURES_MAX];
    size_t n;
};

/* The verb of a method and a path; GL_VERB_COUNT: none. *ret_known: the path exists, with this or
 * another method. */
enum gl_verb gl_verb_find(gl_str method, gl_str path, struct gl_captures *ret, bool *ret_known);
bool gl_verb_has_path(enum gl_verb verb, gl_str path);

/* What is read is borrowed from the texts and the JSON, or lives in `a`. */
void gl_request_place(struct gl_request *rq, const struct gl_captures *captures);
/* GL_E_NOT_FOUND: no such argument. */
int gl_request_argument(struct gl_request *rq, gl_str name, gl_str value,
                        struct gl_why *reterr_why);
int gl_request_body(struct gl_request *rq, const struct gl_json *j, struct gl_arena *a,
                    struct gl_why *reterr_why);

/* ---- writing ---- */

/* Path and query. Absent and zero values are left out. */
const char *gl_request_path(struct gl_arena *a, const struct gl_request *rq);
/* The body, if it consists of fields. */
void gl_request_write(const struct gl_request *rq, struct gl_buf *out);
/* Escapes a text as a segment of a path or a value of a query. */
gl_str gl_request_escape(struct gl_arena *a, gl_str text);

#endif
