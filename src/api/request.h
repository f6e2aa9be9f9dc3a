/* request.h - what can be asked of a node, and what it answers. No bytes of HTTP, no sockets.
 *
 * verbs.def lists all verbs, requests.def what goes with each; both are read here. Submissions and
 * commands become events of the core and are answered when their transaction has committed. Queries
 * read the store and never enter the core. Remove and trim become events of retention, which
 * answers when its pass is over. Claims are changed past the core. Metrics answers in Prometheus's
 * text format, all others in JSON.
 *
 *   gl_request_init()      a request that says nothing yet
 *   gl_verb_find()         the verb of a method and a path
 *   gl_request_place()     take over what the path says, ...
 *   gl_request_argument()  ... an argument of the query, ...
 *   gl_request_body()      ... the body
 *   gl_request_path()      the other way round, for clients: path and query, ...
 *   gl_request_write()     ... and the body
 *
 * The answer's body is JSON for the API's users; field names are those of docs/api.md. */
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
    GL_KIND_LOCAL,      /* whoever takes the request answers it */
    GL_KIND_NODE,       /* the node tells of itself */
    GL_KIND_QUERY,      /* the store is read */
    GL_KIND_SUBMISSION, /* a new job */
    GL_KIND_COMMAND,    /* of a job that exists */
    GL_KIND_CLEANUP,    /* of ended jobs */
    GL_KIND_CLAIM,
};

enum gl_content { GL_CONTENT_NONE, GL_CONTENT_FIELDS, GL_CONTENT_JSON, GL_CONTENT_BYTES };

struct gl_verb_row {
    const char *word; /* unique, for programs */
    enum gl_verb_kind kind;
    const char *method, *path;     /* {context}, {job}, {name}, ...: any one segment */
    const struct gl_schema *takes; /* no fields: nothing but what every path has */
    enum gl_content body;
    unsigned status;          /* of HTTP, of success */
    const char *doc, *answer; /* what it does, and what it answers */
};

extern const struct gl_verb_row gl_verbs[GL_VERB_COUNT];

/* Queries do not queue behind commands, and neither do claims, which expire if they are renewed
 * late. */
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

    /* Which job: its id, a unique prefix of it (4 characters or more), or its run id. "" where the
     * path has none. */
    gl_str job;

    /* The rest, by verb: the struct of which gl_verbs[verb].takes is the schema. */
    union {
        struct gl_submission_request submission;
        struct gl_command_request command;
        struct gl_message_request message; /* of SEND, until it is one text */
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
    gl_str body;     /* JSON; on failure "", or the claim that stands in the way */
    char job_id[27]; /* the job that `job` meant; "" if none was found */
    uint32_t count;  /* EVENTS: how many there are */
    bool ended;      /* EVENTS: the job is terminal, and these were the last */
    bool existing;   /* SUBMIT: a job with this run id and the same content was there already */

    /* The node's own use while under way. */
    struct {
        void *watcher;
        uint32_t conflicts, resubmits; /* how often it was tried again, and why */
    } node;
};

void gl_request_init(struct gl_request *rq, enum gl_verb verb, gl_str context);

/* ---- reading ---- */

enum { GL_CAPTURES_MAX = 4 };

/* What the braces of a path stand for, in their order. */
struct gl_captures {
    gl_str values[GL_CAPTURES_MAX];
    size_t n;
};

/* The verb of a path, if it has that method; GL_VERB_COUNT if not. *ret_known: the path has some.
 */
enum gl_verb gl_verb_find(gl_str method, gl_str path, struct gl_captures *ret, bool *ret_known);
bool gl_verb_has_path(enum gl_verb verb, gl_str path);

/* What is read is borrowed from the texts and the tape, or lives in `a`. */
void gl_request_place(struct gl_request *rq, const struct gl_captures *captures);
/* GL_E_NOT_FOUND: there is no such argument. */
int gl_request_argument(struct gl_request *rq, gl_str name, gl_str value,
                        struct gl_why *reterr_why);
int gl_request_body(struct gl_request *rq, const struct gl_json *j, struct gl_arena *a,
                    struct gl_why *reterr_why);

/* ---- writing ---- */

/* Path and query. What is absent or zero is left out. */
const char *gl_request_path(struct gl_arena *a, const struct gl_request *rq);
/* The body, if the verb has one with fields. */
void gl_request_write(const struct gl_request *rq, struct gl_buf *out);
/* A text as one segment of a path, or as a value of a query. */
gl_str gl_request_escape(struct gl_arena *a, gl_str text);

#endif
