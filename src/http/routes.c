#include "http/routes.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/near.h"
#include "http/submits.h"

/* ---- the table ---- */

#define PAGE                                                                  \
    {                                                                         \
        "limit", GL_ARG_NUMBER, GL_PAGE_MAX, "Rows of a page; 100 if absent." \
    }
#define END                        \
    {                              \
        NULL, GL_ARG_TEXT, 0, NULL \
    }

static const struct gl_argument list_arguments[] = {
    {"status", GL_ARG_TEXT, 0, "Only jobs with this status."},
    {"name", GL_ARG_TEXT, 0, "Only jobs of flows with this name."},
    {"after", GL_ARG_TEXT, 0, "Continue behind this job: `next` of the page before."},
    PAGE,
    END,
};

static const struct gl_argument events_arguments[] = {
    {"from", GL_ARG_NUMBER, INT64_MAX, "The number of the first event wanted."},
    {"wait_ms", GL_ARG_NUMBER, GL_CALL_WAIT_MS_MAX, "Wait so long if there is nothing to tell."},
    PAGE,
    END,
};

static const struct gl_argument logs_arguments[] = {
    {"step", GL_ARG_TEXT, 0, "The log of this step. Without it: which logs there are."},
    {"attempt", GL_ARG_NUMBER, UINT32_MAX, "Of this attempt; the last one if absent."},
    {"offset", GL_ARG_NUMBER, INT64_MAX, "From this byte on: `Glia-Next-Offset` of the last page."},
    {"follow", GL_ARG_FLAG, 0, "true: a stream that ends with the attempt."},
    END,
};

static const struct gl_argument nodes_arguments[] = {
    {"all", GL_ARG_FLAG, 0, "true: also nodes that are dead."},
    END,
};

static const struct gl_argument status_arguments[] = {
    {"step", GL_ARG_TEXT, 0, "Only this step, with its whole output."},
    {"page", GL_ARG_TEXT, 0, "Steps in the order of the flow, from here on: `next` of an answer."},
    {"limit", GL_ARG_NUMBER, GL_PAGE_MAX, "Steps of one answer; 1000 if absent."},
    {"brief", GL_ARG_FLAG, 0, "true: only the job, without its steps."},
    END,
};

static const struct gl_argument why_arguments[] = {
    {"step", GL_ARG_TEXT, 0, "Only this step."},
    END,
};

static const struct gl_argument signal_arguments[] = {
    {"who", GL_ARG_TEXT, 0, "Who sends it, for the record."},
    END,
};

static const struct gl_argument human_arguments[] = {PAGE, END};

static const struct gl_argument agents_arguments[] = {
    {"agent", GL_ARG_TEXT, 0, "Only this agent."},
    {"after", GL_ARG_TEXT, 0, "Continue behind this agent: `next` of the page before."},
    PAGE,
    END,
};

static const struct gl_argument messages_arguments[] = {
    {"agent", GL_ARG_TEXT, 0, "Only those to this agent."},
    {"number", GL_ARG_NUMBER, INT64_MAX, "Only this one, whole."},
    {"after", GL_ARG_TEXT, 0, "Continue behind this number: `next` of the page before."},
    PAGE,
    END,
};

static const struct gl_argument artifacts_arguments[] = {
    {"path", GL_ARG_TEXT, 0, "The content of this file. Without it: which files there are."},
    END,
};

static const struct gl_argument claims_arguments[] = {
    {"state", GL_ARG_TEXT, 0, "Only claims in this state: claimed, done, failed or expired."},
    {"prefix", GL_ARG_TEXT, 0, "Only claims whose keys begin so."},
    {"after", GL_ARG_TEXT, 0, "Continue behind this key: `next` of the page before."},
    PAGE,
    END,
};

#define CONTEXT "/v1/contexts/{context}"
#define JOBS CONTEXT "/jobs"
#define JOB JOBS "/{job}"
#define CLAIMS CONTEXT "/claims"
#define NO_ARGUMENTS NULL
#define NO_BODY GL_BODY_NONE, NULL
#define FIELDS(schema) GL_BODY_FIELDS, &(schema)

const struct gl_http_route gl_routes[] = {
    {"GET", "/healthz", GL_VERB_COUNT, gl_verbs_health, "health", "Does the node's loop turn?",
     "{\"status\": \"ok\"}", 200, NO_ARGUMENTS, NO_BODY},
    {"GET", "/readyz", GL_VERB_NODE, gl_verbs_ready, "ready",
     "Can it take work: is its store writable, and do its loops progress?",
     "{\"status\": \"ready\"}", 200, NO_ARGUMENTS, NO_BODY},
    {"GET", "/metrics", GL_VERB_METRICS, gl_verbs_metrics, "metrics",
     "Figures in the text format of Prometheus.", "text", 200, NO_ARGUMENTS, NO_BODY},
    {"GET", "/v1/node", GL_VERB_NODE, gl_verbs_node, "node",
     "The node: name, session, running attempts, pools.", "an object", 200, NO_ARGUMENTS, NO_BODY},
    {"POST", "/v1/node/yield", GL_VERB_COUNT, gl_verbs_yield, "yield",
     "Ask a node that came with `glia run` to leave its folder to another.", "{\"yielding\": true}",
     202, NO_ARGUMENTS, NO_BODY},
    {"GET", "/v1/nodes", GL_VERB_NODES, gl_verbs_nodes, "nodes",
     "The nodes that share the store, as their sessions tell.", "{\"nodes\": [...]}", 200,
     nodes_arguments, NO_BODY},
    {"GET", "/v1/nodes/{name}", GL_VERB_NODE_SHOW, gl_verbs_node_show, "node_show",
     "One of them, by its name or the beginning of it.", "an object", 200, NO_ARGUMENTS, NO_BODY},
    {"GET", "/v1/cluster", GL_VERB_CLUSTER, gl_verbs_node, "cluster",
     "All nodes together: how many, who leads, slots by pool.", "an object", 200, NO_ARGUMENTS,
     NO_BODY},
    {"GET", "/v1/openapi.json", GL_VERB_COUNT, gl_openapi_route, "openapi",
     "This API as an OpenAPI document.", "an object", 200, NO_ARGUMENTS, NO_BODY},
    {"POST", JOBS, GL_VERB_SUBMIT, gl_verbs_submit, "submit", "Submit a job.",
     "{\"job_id\", \"run_id\", \"status\"}, committed; 200 with \"existing\": true if it was there",
     201, NO_ARGUMENTS, FIELDS(gl_submits_schema)},
    {"GET", JOBS, GL_VERB_LIST, gl_verbs_list, "list", "List jobs, newest first.",
     "{\"jobs\": [...], \"next\"}", 200, list_arguments, NO_BODY},
    {"POST", JOBS ":batch", GL_VERB_SUBMIT, gl_batch_route, "submit_batch",
     "Submit many jobs at once.",
     "{\"jobs\": [...]}: for each, in order, what a single one gets, or {\"error\"}", 200,
     NO_ARGUMENTS, FIELDS(gl_submits_batch_schema)},
    {"GET", JOB, GL_VERB_STATUS, gl_verbs_status, "status",
     "A job with its steps, or the first of them.", "an object", 200, status_arguments, NO_BODY},
    {"DELETE", JOB, GL_VERB_REMOVE, gl_verbs_ask, "remove", "Remove a job that has ended.",
     "{\"job_id\"}", 200, NO_ARGUMENTS, NO_BODY},
    {"GET", JOB "/events", GL_VERB_EVENTS, gl_verbs_events, "events",
     "Events of a job, as a page or, with `Accept: text/event-stream`, as a stream.",
     "{\"events\": [...], \"next_seq\", \"status\", \"ended\"}", 200, events_arguments, NO_BODY},
    {"GET", JOB "/logs", GL_VERB_STATUS, gl_verbs_logs, "logs",
     "What the steps of a job have written.",
     "{\"attempts\": [...]}, or with `step` text: a page, or a stream", 200, logs_arguments,
     NO_BODY},
    {"GET", JOB "/why", GL_VERB_WHY, gl_verbs_why, "why",
     "Why a job or a step is in the state it is in.", "an object", 200, why_arguments, NO_BODY},
    {"POST", JOB "/pause", GL_VERB_PAUSE, gl_verbs_command, "pause", "Pause a job.",
     "{\"job_id\"}, committed", 200, NO_ARGUMENTS, FIELDS(gl_posted_command_schema)},
    {"POST", JOB "/resume", GL_VERB_RESUME, gl_verbs_command, "resume", "Let a paused job go on.",
     "{\"job_id\"}, committed", 200, NO_ARGUMENTS, FIELDS(gl_posted_command_schema)},
    {"POST", JOB "/cancel", GL_VERB_CANCEL, gl_verbs_command, "cancel", "Cancel a job.",
     "{\"job_id\"}, committed", 200, NO_ARGUMENTS, FIELDS(gl_posted_command_schema)},
    {"POST", JOB "/retry", GL_VERB_RETRY, gl_verbs_retry, "retry",
     "A new job that reuses what an ended one has completed.",
     "{\"job_id\", \"run_id\", \"status\"}, committed; 200 with \"existing\": true if it was there",
     201, NO_ARGUMENTS, FIELDS(gl_posted_retry_schema)},
    {"POST", JOB "/signals/{name}", GL_VERB_SIGNAL, gl_verbs_signal, "signal",
     "Send a job a signal; the body is its data, or empty.", "{\"job_id\"}, committed", 200,
     signal_arguments, GL_BODY_JSON, NULL},
    {"POST", JOB "/steps/{step}/respond", GL_VERB_RESPOND, gl_verbs_respond, "respond",
     "Decide about a step that waits for a person.", "{\"job_id\"}, committed", 200, NO_ARGUMENTS,
     FIELDS(gl_posted_respond_schema)},
    {"GET", JOB "/agents", GL_VERB_AGENTS, gl_verbs_agents, "agents",
     "The agents of a bundle's job, and what each has become.", "{\"agents\": [...], \"next\"}",
     200, agents_arguments, NO_BODY},
    {"GET", JOB "/messages", GL_VERB_MESSAGES, gl_verbs_messages, "messages",
     "Messages that wait for agents, or are being handled.", "{\"messages\": [...], \"next\"}", 200,
     messages_arguments, NO_BODY},
    {"POST", JOB "/messages", GL_VERB_SEND, gl_verbs_send, "send", "Send an agent a message.",
     "{\"job_id\"}, committed", 200, NO_ARGUMENTS, FIELDS(gl_posted_message_schema)},
    {"GET", JOB "/dead-letters", GL_VERB_DEAD_LETTERS, gl_verbs_messages, "dead_letters",
     "Messages that nobody could be given, and why.", "{\"dead_letters\": [...], \"next\"}", 200,
     messages_arguments, NO_BODY},
    {"POST", JOB "/dead-letters/{number}/redrive", GL_VERB_REDRIVE, gl_redrive_route, "redrive",
     "Deliver a dead letter again; `all` for all of them.", "{\"job_id\", \"redriven\"}, committed",
     200, NO_ARGUMENTS, FIELDS(gl_posted_command_schema)},
    {"GET", JOB "/artifacts", GL_VERB_STATUS, gl_artifacts_route, "artifacts",
     "Files that the workers of a job have left in its run's folder.",
     "{\"artifacts\": [...]}, or with `path` that file", 200, artifacts_arguments, NO_BODY},
    {"GET", CONTEXT "/human", GL_VERB_HUMAN, gl_verbs_human, "human",
     "Steps and questions of workers that wait for a person.", "{\"requests\": [...]}", 200,
     human_arguments, NO_BODY},
    {"POST", CONTEXT "/trim", GL_VERB_TRIM, gl_verbs_trim, "trim",
     "Remove ended jobs, as configured or as the body says.", "an object", 200, NO_ARGUMENTS,
     FIELDS(gl_posted_trim_schema)},
    {"PUT", CONTEXT "/blobs/{sha256}", GL_VERB_COUNT, gl_verbs_put_blob, "put_blob",
     "Keep a file for flows to use; the body is its content.", "{\"sha256\", \"bytes\"}", 201,
     NO_ARGUMENTS, GL_BODY_BYTES, NULL},
    {"GET", CONTEXT "/blobs/{sha256}", GL_VERB_COUNT, gl_artifacts_blob_route, "get_blob",
     "A file that was put.", "its content", 200, NO_ARGUMENTS, NO_BODY},
    {"POST", CLAIMS "/acquire", GL_VERB_CLAIM_ACQUIRE, gl_claiming_post, "claim_acquire",
     "Get the exclusive right to a key, for a while.",
     "the claim, committed; 409 `busy` with the claim in the way", 200, NO_ARGUMENTS,
     FIELDS(gl_claiming_acquire_schema)},
    {"POST", CLAIMS "/renew", GL_VERB_CLAIM_RENEW, gl_claiming_post, "claim_renew",
     "Keep a claim: its lease begins anew.", "the claim, committed; 409 `not_owner`", 200,
     NO_ARGUMENTS, FIELDS(gl_claiming_renew_schema)},
    {"POST", CLAIMS "/complete", GL_VERB_CLAIM_COMPLETE, gl_claiming_post, "claim_complete",
     "The work is done: the claim ends.", "the claim, committed; 409 `not_owner`", 200,
     NO_ARGUMENTS, FIELDS(gl_claiming_complete_schema)},
    {"POST", CLAIMS "/fail", GL_VERB_CLAIM_FAIL, gl_claiming_post, "claim_fail",
     "The work has failed: the claim ends.", "the claim, committed; 409 `not_owner`", 200,
     NO_ARGUMENTS, FIELDS(gl_claiming_fail_schema)},
    {"POST", CLAIMS "/reclaim", GL_VERB_CLAIM_RECLAIM, gl_claiming_post, "claim_reclaim",
     "Mark claims whose leases are over as expired, and tell which.",
     "{\"expired\": [...], \"more\"}", 200, NO_ARGUMENTS, FIELDS(gl_claiming_reclaim_schema)},
    {"GET", CLAIMS, GL_VERB_CLAIM_LIST, gl_claiming_list, "claim_list", "List claims, by key.",
     "{\"claims\": [...], \"next\"}", 200, claims_arguments, NO_BODY},
    {"GET", CLAIMS "/{key}", GL_VERB_CLAIM_SHOW, gl_claiming_show, "claim_show", "A claim.",
     "an object", 200, NO_ARGUMENTS, NO_BODY},
};

const size_t gl_routes_n = GL_COUNT(gl_routes);

/* ---- paths ---- */

/* The next segment of a path; a path ends where there is nothing behind a slash. */
static bool next_segment(gl_str *rest, gl_str *ret)
{
    if (rest->n > 0 && rest->p[0] == '/') {
        rest->p++;
        rest->n--;
    }
    if (rest->n == 0) {
        return false;
    }
    for (ret->p = rest->p, ret->n = 0; ret->n < rest->n && rest->p[ret->n] != '/'; ret->n++) {
    }
    rest->p += ret->n;
    rest->n -= ret->n;
    return true;
}

static gl_str *capture(struct gl_captures *c, gl_str name)
{
    return gl_str_is(name, "{context}")  ? &c->context
           : gl_str_is(name, "{job}")    ? &c->job
           : gl_str_is(name, "{sha256}") ? &c->sha256
           : gl_str_is(name, "{key}")    ? &c->key
                                         : &c->step;
}

static bool matches(const char *path, gl_str url, struct gl_captures *ret)
{
    gl_str pattern = gl_str_of(path);
    gl_str want, have;

    *ret = (struct gl_captures){0};
    for (;;) {
        bool has_want = next_segment(&pattern, &want);
        bool has_have = next_segment(&url, &have);

        if (!has_want || !has_have) {
            return has_want == has_have;
        }
        if (want.n > 0 && want.p[0] == '{') {
            if (have.n == 0) {
                return false;
            }
            *capture(ret, want) = have;
        } else if (!gl_str_eq(want, have)) {
            return false;
        }
    }
}

const struct gl_http_route *gl_routes_match(gl_str method, gl_str url, struct gl_captures *ret,
                                            bool *ret_known)
{
    *ret_known = false;
    for (size_t i = 0; i < gl_routes_n; i++) {
        if (!matches(gl_routes[i].path, url, ret)) {
            continue;
        }
        *ret_known = true;
        if (gl_str_is(method, gl_routes[i].method)) {
            return &gl_routes[i];
        }
    }
    return NULL;
}

/* ---- arguments ---- */

struct query {
    struct gl_call *call;
    bool is_fine;
};

static void suggest(struct gl_call *c, const struct gl_argument *known, gl_str name)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf hint = {0};
    struct gl_near near;

    gl_near_init(&near, name);
    for (; known != NULL && known->name != NULL; known++) {
        gl_near_offer(&near, gl_str_of(known->name));
        gl_buf_fmt(&hint, "%s%s", hint.n > 0 ? ", " : "it knows: ", known->name);
    }
    if (near.best.n > 0) {
        gl_buf_reset(&hint);
        gl_buf_fmt(&hint, "did you mean '%.*s'?", GL_STR_ARG(near.best));
    } else if (hint.n == 0) {
        gl_buf_c(&hint, "it takes none");
    }
    gl_reply_error_at(c, GL_E_INVALID, "this request knows no such argument",
                      gl_str_c(&c->arena, gl_buf_view(&hint)), gl_str_c(&c->arena, name), NULL);
}

static bool is_good(struct gl_call *c, const struct gl_argument *a, gl_str text)
{
    uint64_t number;
    const char *message = NULL;

    if (a->type == GL_ARG_NUMBER && (!gl_str_u64(text, &number) || number > a->max)) {
        message = gl_str_fmt(&c->arena, "'%s' must be a number from 0 to %llu", a->name,
                             (unsigned long long)a->max)
                      .p;
    } else if (a->type == GL_ARG_FLAG && !gl_str_is(text, "true") && !gl_str_is(text, "false")) {
        message = gl_str_fmt(&c->arena, "'%s' must be true or false", a->name).p;
    }
    if (message != NULL) {
        gl_reply_error_at(c, GL_E_INVALID, message, NULL, a->name, NULL);
    }
    return message == NULL;
}

static enum MHD_Result check_argument(void *owner, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    struct query *q = owner;
    const struct gl_argument *a = q->call->route->arguments;

    (void)kind;
    while (a != NULL && a->name != NULL && strcmp(a->name, key) != 0) {
        a++;
    }
    if (a == NULL || a->name == NULL) {
        suggest(q->call, q->call->route->arguments, gl_str_of(key));
        q->is_fine = false;
    } else {
        q->is_fine = is_good(q->call, a, gl_str_of(value));
    }
    return q->is_fine ? MHD_YES : MHD_NO;
}

static bool check_arguments(struct gl_call *c)
{
    struct query q = {.call = c, .is_fine = true};

    (void)MHD_get_connection_values(c->connection, MHD_GET_ARGUMENT_KIND, check_argument, &q);
    return q.is_fine;
}

uint64_t gl_routes_number(struct gl_call *c, const char *name, uint64_t otherwise)
{
    uint64_t number = otherwise;

    (void)gl_str_u64(gl_call_argument(c, name), &number); /* checked before; else it is absent */
    return number;
}

/* ---- finding ---- */

static const char *methods_of(struct gl_call *c)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    struct gl_captures ignored;

    for (size_t i = 0; i < gl_routes_n; i++) {
        if (matches(gl_routes[i].path, gl_str_of(c->url), &ignored)) {
            gl_buf_fmt(&out, "%s%s", out.n > 0 ? ", " : "", gl_routes[i].method);
        }
    }
    return gl_str_c(&c->arena, gl_buf_view(&out));
}

static void refuse(struct gl_call *c, bool is_known)
{
    if (!is_known) {
        gl_reply_error(c, GL_E_NOT_FOUND, "there is no such path",
                       "docs/api.md and /v1/openapi.json list them");
        return;
    }
    c->allow = methods_of(c);
    if (strcmp(c->method, MHD_HTTP_METHOD_OPTIONS) == 0) {
        c->status = MHD_HTTP_NO_CONTENT; /* and not a word about other origins */
        return;
    }
    gl_reply_refusal(
        c, &(struct gl_refusal){.code = GL_E_INVALID,
                                .status = MHD_HTTP_METHOD_NOT_ALLOWED,
                                .message = "this path does not know that method",
                                .hint = gl_str_fmt(&c->arena, "it knows: %s", c->allow).p});
}

void gl_routes_find(struct gl_call *c)
{
    struct gl_captures found;
    bool is_known;

    c->route = gl_routes_match(gl_str_of(c->method), gl_str_of(c->url), &found, &is_known);
    if (c->route == NULL) {
        refuse(c, is_known);
        return;
    }
    if (found.context.n > 0 && !gl_str_is(found.context, "default")) {
        gl_reply_error(c, GL_E_NOT_FOUND, "there is no such context", "there is one: default");
        return;
    }
    c->rq.verb = c->route->verb;
    c->rq.context = found.context; /* c->url lives as long as the call */
    c->rq.job = found.job;
    c->rq.step = found.step;
    c->sha256 = found.sha256;
    c->rq.claim_key = found.key;
    if (check_arguments(c)) {
        c->route->handle(c);
    }
}
