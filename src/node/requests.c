/* requests.c - requests of clients: commands become events of the core, queries go to the store.
 * Answers are queued; gl_requests_drain() delivers them outside of any step of the core. */
#include "base/check.h"
#include "node/node_state.h"

#include "base/id.h"
#include "base/sha256.h"

enum { WATCH_MS = 250, ATTEMPTS_MAX = 16, NONCE_BYTES = 16 };

struct requests {
    struct gl_map commands;    /* struct command, by number */
    uint64_t last;             /* the last number given out */
    bool is_inside;            /* gl_node_request() is on the stack: answers wait */
    struct gl_link answers;    /* struct answer: answers to deliver */
    struct gl_link watchers;   /* struct watcher: requests that wait for events */
    struct gl_link unresolved; /* watchers whose job is not known yet */
    struct gl_map watched;     /* struct watched: the other watchers, by job */
    gl_ms due;                 /* when the next watcher queries again */
};

static struct requests *own(const struct gl_node *n)
{
    return n->parts[GL_PART_REQUESTS];
}

/* ---- answering ---- */

struct answer {
    struct gl_link link;
    struct gl_request *rq;
    struct gl_buf body;
};

void gl_requests_answer(struct gl_node *n, struct gl_request *rq, int code, const char *why,
                        struct gl_buf *body)
{
    struct answer *a = gl_mem_alloc(sizeof(*a));

    a->rq = rq;
    rq->code = gl_err_code(code);
    if (code != 0 && why != rq->why.text) { /* a query has filled it in already */
        (void)gl_why(&rq->why, code, "%s", why[0] != '\0' ? why : gl_err_text(code));
    }
    if (body != NULL) {
        a->body = *body;
        *body = (struct gl_buf){0};
    }
    gl_list_push(&own(n)->answers, &a->link);
}

void gl_requests_drain(struct gl_node *n)
{
    if (own(n)->is_inside || gl_feed_is_on(n)) {
        return;
    }
    for (struct gl_link *l; (l = gl_list_first(&own(n)->answers)) != NULL;) {
        struct answer *a = GL_CONTAINER(l, struct answer, link);

        gl_list_remove(l);
        a->rq->body = gl_buf_view(&a->body);
        a->rq->done(a->rq);
        gl_buf_done(&a->body);
        gl_mem_free(a);
    }
}

/* ---- commands ---- */

/* A command in flight. The core knows it by its number only. */
struct command {
    struct gl_request *rq;
    struct gl_node *node;
    uint64_t number;
    gl_str key;             /* the bytes of `number` */
    struct gl_ulid send_as; /* see struct gl_event_command */
};

static struct command *command_new(struct gl_node *n, struct gl_request *rq)
{
    struct command *c = gl_mem_alloc(sizeof(*c));

    c->rq = rq;
    c->node = n;
    c->number = ++own(n)->last;
    c->key = (gl_str){.p = (const char *)&c->number, .n = sizeof(c->number)};
    gl_map_add(&own(n)->commands, c->key, c);
    return c;
}

static struct gl_request *command_end(struct gl_node *n, uint64_t number)
{
    GL_ASSERT(number <= own(n)->last);
    gl_str key = {.p = (const char *)&number, .n = sizeof(number)};
    struct command *c = gl_map_remove(&own(n)->commands, key);
    struct gl_request *rq = c != NULL ? c->rq : NULL;

    gl_mem_free(c);
    return rq;
}

void gl_requests_reply(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_request *rq = command_end(n, e->request);
    const char *why = e->why.n > 0 ? e->why.p : "";
    struct gl_buf body = {0};
    enum gl_verb_kind kind;
    struct gl_jw w;

    GL_ASSERT(e->type == GL_FX_REPLY);
    if (rq == NULL) {
        return; /* already refused because the node is stopping */
    }
    kind = gl_verbs[rq->verb].kind;
    if (e->code != 0 && kind == GL_KIND_SUBMISSION) {
        gl_run_ids_refuse(n, rq, gl_err_join(e->code, e->reason), why);
        return;
    }
    if (e->code != 0 || e->body.n > 0 || kind == GL_KIND_CLAIM) {
        gl_buf_str(&body, e->body);
        gl_requests_answer(n, rq, gl_err_join(e->code, e->reason), why, &body);
        return;
    }
    gl_jw_init(&w, &body);
    gl_jw_object(&w);
    gl_jw_put_str(&w, "job_id", e->job);
    if (kind == GL_KIND_SUBMISSION) {
        gl_str run_id = rq->submission.run_id;

        gl_jw_put_str(&w, "run_id", run_id.n > 0 ? run_id : e->job);
        gl_jw_put_c(&w, "status", "running");
    }
    gl_jw_end(&w);
    memcpy(rq->job_id, e->job.p, GL_ULID_BYTES);
    rq->job_id[GL_ULID_BYTES] = '\0';
    gl_requests_answer(n, rq, 0, "", &body);
}

/* The flow that a new job's transaction names. */
static gl_str flow_of(const struct gl_tx *tx)
{
    for (size_t i = 0; i < tx->guards_n; i++) {
        if (gl_str_is(tx->guards[i].kind, "flow")) {
            return tx->guards[i].id;
        }
    }
    for (size_t i = 0; i < tx->writes_n; i++) {
        if (gl_str_is(tx->writes[i].kind, "flow")) {
            return tx->writes[i].id;
        }
    }
    return (gl_str){0};
}

static void on_resolved(void *owner, int code, gl_str job, const char *why);

/* A command that had no effect because another node was faster: the job changed hands, or a limit
 * was used up. It is retried a bounded number of times. */
static bool may_retry(struct gl_node *n, struct gl_request *rq)
{
    return n->ports.store->ops->shared && !n->stopping && !n->lost &&
           gl_verbs[rq->verb].kind == GL_KIND_COMMAND && rq->node.conflicts++ < ATTEMPTS_MAX;
}

void gl_requests_fail(struct gl_node *n, const struct gl_effect *e, const struct gl_tx *tx,
                      int code, size_t refused, const char *why)
{
    GL_ASSERT(code != 0);
    struct gl_request *rq = command_end(n, e->request);
    struct gl_why text;
    gl_str kind = {0};

    if (rq == NULL) {
        return;
    }
    if (code == GL_E_CONFLICT && refused < tx->guards_n) {
        kind = tx->guards[refused].kind;
    }
    if ((gl_str_is(kind, "run") || gl_str_is(kind, "request")) && !n->stopping) {
        gl_run_ids_compare(n, rq, gl_str_is(kind, "request"));
        return;
    }
    if (code == GL_E_CONFLICT && may_retry(n, rq)) {
        gl_query_resolve(&n->queries, rq->context, rq->job, on_resolved, command_new(n, rq));
        return;
    }
    if (kind.n > 0 && gl_submit_wait_retry(n, rq, kind, tx->guards[refused].id, flow_of(tx))) {
        return;
    }
    if (gl_str_is(kind, "run") || gl_str_is(kind, "request")) {
        code = gl_why(&text, GL_R_NODE_STOPPING, "this node is stopping"); /* not compared */
    } else if (gl_str_is(kind, "dedupe")) {
        code = gl_why(&text, GL_R_DEDUPE_KEY_TAKEN,
                      "the dedupe key '%.*s' is in use by an unfinished job",
                      GL_STR_ARG(rq->submission.dedupe_key));
    } else if (code == GL_E_CONFLICT && refused < tx->guards_n &&
               tx->guards[refused].type == GL_GUARD_ALIVE) {
        code = gl_why(&text, GL_R_NODE_LOST, "this node has lost its session with the store");
    } else if (code == GL_E_CONFLICT && refused < tx->guards_n &&
               tx->guards[refused].type == GL_GUARD_PRESENT) {
        code = gl_why(&text, GL_R_JOB_REMOVED, "the job has been removed");
    } else if (code == GL_E_CONFLICT) {
        (void)gl_why(&text, GL_R_JOB_CHANGED, "the job was changed concurrently; try again");
    } else {
        (void)gl_why(&text, code, "%s", why);
    }
    gl_requests_answer(n, rq, gl_why_whole(&text), text.text, NULL);
}

void gl_requests_accept(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored)
{
    char hex[GL_SHA256_HEX];
    struct gl_ulid id;
    uint8_t chance[10];
    struct gl_event ev = {.type = GL_EV_SUBMIT, .context = n->config.context};
    const struct gl_submission_request *s = &rq->submission;

    n->ports.entropy->fill(n->ports.entropy, chance, sizeof(chance));
    gl_id_make(&id, n->now, chance);
    ev.submit.request = command_new(n, rq)->number;
    ev.job = gl_str_of(id.text);
    ev.submit.run_id = s->run_id;
    ev.submit.flow = stored != NULL ? stored->flow : s->compiled;
    ev.submit.flow_hash = stored != NULL ? stored->hash : gl_sha256_hex(s->compiled, hex);
    ev.submit.inputs = stored != NULL ? stored->inputs : s->inputs;
    ev.submit.retry_of = stored != NULL ? stored->retry_of : (gl_str){0};
    ev.submit.retry_from = stored != NULL ? stored->retry_from : (gl_str){0};
    ev.submit.dedupe_key = s->dedupe_key;
    ev.submit.request_key = s->request_key;
    ev.submit.stack = s->stack.n > 0 ? s->stack : n->config.stack;
    ev.submit.env_scope = s->env_scope.n > 0 ? s->env_scope : n->config.env_scope;
    gl_node_feed(n, &ev);
}

void gl_requests_submit(struct gl_node *n, struct gl_request *rq,
                        const struct gl_requests_stored *stored)
{
    const struct gl_submission_request *s = &rq->submission;

    if (s->run_id.n > 0 && !gl_str_is_id(s->run_id)) {
        gl_requests_answer(
            n, rq, GL_R_RUN_ID_INVALID,
            "a run id is 1 to 128 ASCII letters, digits, '_', '.' or '-', and does not begin with "
            "'.' or '-'",
            NULL);
        return;
    }
    if (gl_id_valid(s->run_id)) {
        gl_requests_answer(n, rq, GL_R_RUN_ID_LIKE_ID,
                           "the run id looks like a job id (26 characters, as in 01JABC...); "
                           "choose another",
                           NULL);
        return;
    }
    if (s->request_key.n > 0 && !gl_str_is_id(s->request_key)) {
        gl_requests_answer(n, rq, GL_R_REQUEST_KEY_INVALID,
                           "a request key is 1 to 128 ASCII letters, digits, '_', '.' or '-', and "
                           "does not begin with '.' or '-'",
                           NULL);
        return;
    }
    if (s->dedupe_key.n > GL_ID_BYTES_MAX) {
        gl_requests_answer(n, rq, GL_E_INVALID, "a dedupe key is at most 128 bytes", NULL);
        return;
    }
    if (!gl_submit_wait_for_files(n, rq, stored)) {
        gl_requests_accept(n, rq, stored);
    }
}

/* The job that is to be retried has been found. */
static void on_retry_resolved(void *owner, int code, gl_str job, const char *why)
{
    struct command *c = owner;
    struct gl_node *n = c->node;
    struct gl_request *rq = command_end(n, c->number);

    if (code != 0) {
        gl_requests_answer(n, rq, code, why, NULL);
    } else {
        gl_run_ids_retry(n, rq, job);
    }
    gl_node_rearm(n);
}

/* The job may be owned by another node; the command is sent there under an id of its own. */
static void make_send_as(struct command *c)
{
    struct gl_entropy *entropy = c->node->ports.entropy;
    uint8_t chance[10];

    if (c->node->ports.store->ops->shared) {
        entropy->fill(entropy, chance, sizeof(chance));
        gl_id_make(&c->send_as, c->node->now, chance);
    }
}

static struct gl_event event_of(const struct command *c, gl_str job)
{
    static const uint8_t verbs[] = {
        [GL_VERB_PAUSE] = GL_CMD_PAUSE,     [GL_VERB_RESUME] = GL_CMD_RESUME,
        [GL_VERB_CANCEL] = GL_CMD_CANCEL,   [GL_VERB_SIGNAL] = GL_CMD_SIGNAL,
        [GL_VERB_RESPOND] = GL_CMD_RESPOND, [GL_VERB_SEND] = GL_CMD_SEND,
        [GL_VERB_REDRIVE] = GL_CMD_REDRIVE};
    const struct gl_request *rq = c->rq;

    return (struct gl_event){.type = GL_EV_COMMAND,
                             .context = c->node->config.context,
                             .job = job,
                             .command = {.request = c->number,
                                         .verb = verbs[rq->verb],
                                         .step = rq->command.about,
                                         .decision = rq->command.decision,
                                         .output = rq->command.value,
                                         .who = rq->command.who,
                                         .reason = rq->command.reason,
                                         .send_as = gl_str_of(c->send_as.text)}};
}

static void on_resolved(void *owner, int code, gl_str job, const char *why)
{
    struct command *c = owner;
    struct gl_node *n = c->node;
    struct gl_request *rq = c->rq;
    struct gl_event ev;

    if (code != 0) {
        (void)command_end(n, c->number); /* it is rq */
        gl_requests_answer(n, rq, code, why, NULL);
    } else {
        make_send_as(c);
        ev = event_of(c, job);
        gl_node_feed(n, &ev);
    }
    gl_node_rearm(n);
}

/* ---- queries, and clients that wait for events ---- */

/* Thousands of clients may wait for a job each, and must not slow down others: watchers are grouped
 * by job. */
struct watched {
    char job[GL_ULID_BYTES + 1];
    gl_str key;              /* `job` */
    struct gl_link watchers; /* struct watcher, by `peers`; never empty */
};

struct watcher {
    struct gl_link link;
    struct gl_link peers; /* in requests->unresolved, or in file->watchers */
    struct watched *file; /* NULL: the job is not known yet */
    struct gl_request *rq;
    gl_ms until;
    gl_ms ask_at; /* when to query again: another node may own the job, and sends us no notice */
    bool asking;  /* a query is in flight */
    bool has_changed; /* the job has changed since the query began */
};

static void on_answer(void *owner, struct gl_request *rq)
{
    struct gl_node *n = owner;
    struct gl_buf body = {0};

    if (rq->code == 0) {
        gl_buf_str(&body, rq->body);
    }
    gl_requests_answer(n, rq, rq->code, rq->why.text, &body);
    gl_node_rearm(n);
}

static void watcher_attach(struct gl_node *n, struct watcher *w)
{
    struct watched *f = gl_map_find(&own(n)->watched, gl_str_of(w->rq->job_id));

    GL_ASSERT(w->rq->job_id[0] != '\0');
    if (w->file != NULL) {
        return;
    }
    if (f == NULL) {
        f = gl_mem_alloc(sizeof(*f));
        memcpy(f->job, w->rq->job_id, sizeof(f->job));
        f->key = gl_str_of(f->job);
        gl_list_init(&f->watchers);
        gl_map_add(&own(n)->watched, f->key, f);
    }
    gl_list_remove(&w->peers);
    gl_list_push(&f->watchers, &w->peers);
    w->file = f;
}

static void watcher_free(struct gl_node *n, struct watcher *w)
{
    gl_list_remove(&w->link);
    gl_list_remove(&w->peers);
    if (w->file != NULL && gl_list_empty(&w->file->watchers)) {
        (void)gl_map_remove(&own(n)->watched, w->file->key); /* it is this group */
        gl_mem_free(w->file);
    }
    gl_mem_free(w);
}

static void watch_again(struct gl_node *n, struct watcher *w);

static void on_watched(void *owner, struct gl_request *rq)
{
    struct gl_node *n = owner;
    struct watcher *w = rq->node.watcher;

    GL_ASSERT(w->rq == rq);
    w->asking = false;
    n->now = n->ports.clock->now(n->ports.clock);
    if (rq->code == 0 && rq->count == 0 && !rq->ended && n->now < w->until && !n->stopping) {
        if (w->has_changed) {
            watch_again(n, w);
            return;
        }
        watcher_attach(n, w);
        w->ask_at = w->until;
        if (n->ports.store->ops->shared && !gl_core_owns(n->core, gl_str_of(rq->job_id)) &&
            n->now + WATCH_MS < w->until) {
            w->ask_at = n->now + WATCH_MS;
        }
        own(n)->due = w->ask_at < own(n)->due ? w->ask_at : own(n)->due;
        gl_node_rearm(n);
        return;
    }
    watcher_free(n, w);
    on_answer(n, rq);
}

static void watch_again(struct gl_node *n, struct watcher *w)
{
    GL_ASSERT(!w->asking);
    w->asking = true;
    w->has_changed = false;
    gl_query_run(&n->queries, w->rq, on_watched, n);
}

static void watch(struct gl_node *n, struct gl_request *rq)
{
    struct watcher *w = gl_mem_alloc(sizeof(*w));

    GL_ASSERT(rq->events.wait_ms > 0);
    w->rq = rq;
    rq->node.watcher = w;
    w->until = n->now + rq->events.wait_ms;
    gl_list_push(&own(n)->watchers, &w->link);
    gl_list_push(&own(n)->unresolved, &w->peers);
    watch_again(n, w);
}

/* A query never finishes inside the call that begins it, so the list does not change here. */
static void notify(struct gl_node *n, struct gl_link *watchers, gl_str job)
{
    for (struct gl_link *l = watchers->next; l != watchers; l = l->next) {
        struct watcher *w = GL_CONTAINER(l, struct watcher, peers);

        if (w->rq->job_id[0] != '\0' && !gl_str_is(job, w->rq->job_id)) {
            continue;
        }
        if (w->asking) {
            w->has_changed = true;
        } else {
            watch_again(n, w);
        }
    }
}

void gl_requests_notify(struct gl_node *n, gl_str job, bool ended)
{
    struct watched *f = gl_map_find(&own(n)->watched, job);

    if (ended && n->config.on_ended != NULL) {
        n->config.on_ended(n->config.owner, job);
    }
    notify(n, &own(n)->unresolved, job);
    if (f != NULL) {
        notify(n, &f->watchers, job);
    }
}

bool gl_requests_is_watched(const struct gl_node *n, gl_str job)
{
    return gl_map_find(&own(n)->watched, job) != NULL;
}

static void on_time(struct gl_node *n)
{
    struct gl_link *next;

    if (own(n)->due > n->now) {
        return;
    }
    own(n)->due = INT64_MAX;
    for (struct gl_link *l = own(n)->watchers.next; l != &own(n)->watchers; l = next) {
        struct watcher *w = GL_CONTAINER(l, struct watcher, link);

        next = l->next;
        if (w->asking) {
            continue;
        }
        if (w->ask_at <= n->now) {
            watch_again(n, w); /* if its time is over, it is answered whatever the query finds */
        } else if (w->ask_at < own(n)->due) {
            own(n)->due = w->ask_at;
        }
    }
}

/* ---- claims ---- */

static enum gl_claim_act act_of(enum gl_verb verb)
{
    switch (verb) {
    case GL_VERB_CLAIM_ACQUIRE:
        return GL_CLAIM_ACQUIRE;
    case GL_VERB_CLAIM_RENEW:
        return GL_CLAIM_RENEW;
    case GL_VERB_CLAIM_COMPLETE:
        return GL_CLAIM_COMPLETE;
    case GL_VERB_CLAIM_FAIL:
        return GL_CLAIM_FAIL;
    case GL_VERB_CLAIM_RECLAIM:
        return GL_CLAIM_RECLAIM;
    default:
        GL_UNREACHABLE();
    }
}

static gl_str make_nonce(struct gl_node *n, char ret[static NONCE_BYTES])
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[NONCE_BYTES];

    n->ports.entropy->fill(n->ports.entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ret[i] = alphabet[bytes[i] & 31];
    }
    return (gl_str){.p = ret, .n = NONCE_BYTES};
}

static void claim(struct gl_node *n, struct gl_request *rq)
{
    const struct gl_claim_request *x = &rq->claim;
    char nonce[NONCE_BYTES];
    struct gl_claim_args args = {.act = act_of(rq->verb),
                                 .key = x->key,
                                 .owner = x->owner,
                                 .fence = x->fence,
                                 .lease_ms = x->lease,
                                 .once = x->once,
                                 .work_type = x->work_type,
                                 .error_detail = x->error_detail,
                                 .nonce = x->nonce};
    struct gl_event ev = {.type = GL_EV_CLAIM, .context = n->config.context};
    struct gl_why why = {0};

    if (args.act != GL_CLAIM_RECLAIM && gl_claim_check(&args, &why) != 0) {
        gl_requests_answer(n, rq, gl_why_whole(&why), why.text, NULL);
        return;
    }
    if (args.act == GL_CLAIM_ACQUIRE && args.nonce.n == 0) {
        args.nonce = make_nonce(n, nonce);
    }
    ev.claim = (struct gl_event_claim){.request = command_new(n, rq)->number,
                                       .act = (uint8_t)args.act,
                                       .key = args.key,
                                       .owner = args.owner,
                                       .fence = args.fence,
                                       .lease_ms = args.lease_ms,
                                       .once = args.once,
                                       .work_type = args.work_type,
                                       .error_detail = args.error_detail,
                                       .nonce = args.nonce,
                                       .limit = x->limit};
    gl_node_feed(n, &ev);
}

static void describe(struct gl_node *n, struct gl_request *rq,
                     void (*write)(struct gl_node *n, struct gl_buf *out))
{
    struct gl_buf body = {0};

    write(n, &body);
    gl_requests_answer(n, rq, 0, "", &body);
}

/* ---- routing ---- */

static void submission(struct gl_node *n, struct gl_request *rq)
{
    if (rq->verb == GL_VERB_RETRY) {
        gl_query_resolve(&n->queries, rq->context, rq->job, on_retry_resolved, command_new(n, rq));
    } else {
        gl_requests_submit(n, rq, NULL);
    }
}

static void feed_cleanup(struct command *c, int code, gl_str job, const char *why)
{
    const struct gl_request *rq = c->rq;
    bool is_removal = rq->verb == GL_VERB_REMOVE;
    struct gl_event ev = {.type = GL_EV_CLEAN,
                          .context = c->node->config.context,
                          .job = job,
                          .clean = {.request = c->number,
                                    .is_removal = is_removal,
                                    .code = code,
                                    .why = gl_str_of(code != 0 ? why : ""),
                                    .name = rq->job,
                                    .keep_for = is_removal ? -1 : rq->trim.keep_for,
                                    .keep_jobs = is_removal ? -1 : rq->trim.keep_jobs}};

    gl_node_feed(c->node, &ev);
}

static void on_named(void *owner, int code, gl_str job, const char *why)
{
    struct command *c = owner;
    struct gl_node *n = c->node;

    feed_cleanup(c, code, job, why); /* the event may already end the command */
    gl_node_rearm(n);
}

/* Remove one job, or all except those to keep. */
static void cleanup(struct gl_node *n, struct gl_request *rq)
{
    struct command *c = command_new(n, rq);

    if (rq->verb == GL_VERB_REMOVE) {
        gl_query_resolve(&n->queries, rq->context, rq->job, on_named, c);
    } else {
        feed_cleanup(c, 0, (gl_str){0}, "");
    }
}

static void route(struct gl_node *n, struct gl_request *rq)
{
    switch (gl_verbs[rq->verb].kind) {
    case GL_KIND_SUBMISSION:
        submission(n, rq);
        break;
    case GL_KIND_COMMAND:
        gl_query_resolve(&n->queries, rq->context, rq->job, on_resolved, command_new(n, rq));
        break;
    case GL_KIND_QUERY:
        if (rq->verb == GL_VERB_EVENTS && rq->events.wait_ms > 0) {
            watch(n, rq);
        } else {
            gl_query_run(&n->queries, rq, on_answer, n);
        }
        break;
    case GL_KIND_CLAIM:
        claim(n, rq);
        break;
    case GL_KIND_NODE:
        describe(n, rq, rq->verb == GL_VERB_METRICS ? gl_metrics_write : gl_metrics_write_node);
        break;
    case GL_KIND_CLEANUP:
        cleanup(n, rq);
        break;
    case GL_KIND_LOCAL:
        GL_UNREACHABLE();
    }
}

void gl_node_request(struct gl_node *n, struct gl_request *rq)
{
    GL_ASSERT(!own(n)->is_inside);
    GL_ASSERT(rq->done != NULL);
    own(n)->is_inside = true;
    n->now = n->ports.clock->now(n->ports.clock);
    rq->code = 0;
    rq->body = (gl_str){0};
    rq->job_id[0] = '\0';
    rq->count = 0;
    rq->node.conflicts = rq->node.resubmits = 0;
    rq->ended = false;
    if (n->stopping || n->lost || n->session.n == 0) {
        gl_requests_answer(n, rq, GL_E_UNAVAILABLE,
                           n->stopping ? "this node is stopping"
                                       : "this node has no session with its store",
                           NULL);
    } else if (!gl_str_eq(rq->context, n->config.context)) {
        gl_requests_answer(n, rq, GL_E_NOT_FOUND, "no such context", NULL);
    } else {
        route(n, rq);
    }
    own(n)->is_inside = false;
    if (!gl_list_empty(&own(n)->answers)) { /* never answer from inside the call */
        n->alarm_at = n->now;
        n->ports.clock->alarm(n->ports.clock, n->now);
    } else {
        gl_node_rearm(n);
    }
}

/* ---- the part ---- */

static void stop(struct gl_node *n)
{
    struct gl_link *next;

    GL_ASSERT(n->stopping);
    for (struct gl_link *l = own(n)->watchers.next; l != &own(n)->watchers; l = next) {
        struct watcher *w = GL_CONTAINER(l, struct watcher, link);

        next = l->next;
        if (!w->asking) { /* one with a query in flight is answered by that */
            gl_requests_answer(n, w->rq, GL_E_UNAVAILABLE, "this node is stopping", NULL);
            watcher_free(n, w);
        }
    }
}

void gl_requests_refuse_commands(struct gl_node *n)
{
    struct command *c;

    GL_ASSERT(n->stopping);
    for (size_t i = 0; (c = gl_map_next(&own(n)->commands, &i)) != NULL;) {
        gl_requests_answer(n, command_end(n, c->number), GL_E_UNAVAILABLE, "this node is stopping",
                           NULL);
    }
}

static void done(struct gl_node *n)
{
    struct command *c;

    for (struct gl_link *l; (l = gl_list_first(&own(n)->answers)) != NULL;) {
        struct answer *a = GL_CONTAINER(l, struct answer, link);

        gl_list_remove(l);
        gl_buf_done(&a->body);
        gl_mem_free(a);
    }
    for (struct gl_link *l; (l = gl_list_first(&own(n)->watchers)) != NULL;) {
        watcher_free(n, GL_CONTAINER(l, struct watcher, link));
    }
    for (size_t i = 0; (c = gl_map_next(&own(n)->commands, &i)) != NULL;) {
        (void)gl_map_remove(&own(n)->commands, c->key); /* the one just visited */
        gl_mem_free(c);
    }
    gl_map_done(&own(n)->watched);
    gl_map_done(&own(n)->commands);
}

static void init(struct gl_node *n)
{
    struct requests *m = own(n);

    gl_list_init(&m->answers);
    gl_list_init(&m->watchers);
    gl_list_init(&m->unresolved);
    gl_map_init(&m->watched);
    gl_map_init(&m->commands);
    m->due = INT64_MAX;
}

static gl_ms due(const struct gl_node *n)
{
    return gl_list_empty(&own(n)->answers) ? own(n)->due : n->now;
}

static bool is_busy(const struct gl_node *n)
{
    return n->queries.under_way_n > 0;
}

static void measure(struct gl_node *n, struct gl_buf *out)
{
    gl_metrics_claims(out, gl_core_claim_counts(n->core));
}

bool gl_requests_is_inside(const struct gl_node *n)
{
    return own(n)->is_inside;
}

bool gl_requests_are_answered(const struct gl_node *n)
{
    return gl_list_empty(&own(n)->answers);
}

bool gl_requests_have_watchers(const struct gl_node *n)
{
    return !gl_list_empty(&own(n)->watchers);
}

const struct gl_node_part gl_requests_part = {.bytes = sizeof(struct requests),
                                              .init = init,
                                              .due = due,
                                              .on_time = on_time,
                                              .stop = stop,
                                              .is_busy = is_busy,
                                              .done = done,
                                              .measure = measure};
