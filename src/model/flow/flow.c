#include "model/flow/flow.h"

#include "base/check.h"
#include "model/bundle/agent.h"
#include "model/flow/flow_check.h"
#include "model/flow/flow_graph.h"
#include "model/flow/flow_refs.h"

/* Of the compiled form: 1 had no references and no steps that wait; 3 has agents. */
enum { FORMAT_FLOW = 2, FORMAT = 3 };

const char *const gl_rule_words[] = {
#define X(name, word, alias) word,
    GL_RULES(X)
#undef X
        NULL,
};

const char *const gl_failure_policy_words[] = {
#define X(name, word) word,
    GL_FAILURE_POLICIES(X)
#undef X
        NULL,
};

const char *const gl_safety_words[] = {
#define X(name, word) word,
    GL_SAFETIES(X)
#undef X
        NULL,
};

static const struct gl_field retry_fields[] = {
    GL_FIELD(gl_retry, attempts, U32, 0, "attempts in all, including the first"),
    GL_FIELD(gl_retry, backoff_ms, SPAN, 0, "wait before the second attempt"),
    GL_FIELD(gl_retry, factor_pct, U32, 0, "growth of the wait per attempt, in percent"),
    GL_FIELD(gl_retry, backoff_max_ms, SPAN, 0, "longest wait"),
    GL_FIELD(gl_retry, jitter_pct, U32, 0, "how far the wait varies, in percent"),
    GL_FIELD(gl_retry, on, STRS, 0, "which failures are retried; all if absent"),
};

static const struct gl_schema retry_schema = {
    .name = "retry",
    .doc = "How often and when a step is retried.",
    .bytes = sizeof(struct gl_retry),
    .fields = retry_fields,
    .fields_n = GL_COUNT(retry_fields),
};

static const struct gl_field file_fields[] = {
    GL_FIELD(gl_flow_file, name, STR, GL_FF_REQUIRED, "name in the working folder"),
    GL_FIELD(gl_flow_file, blob, STR, GL_FF_REQUIRED, "SHA-256 of the content, in hex"),
    GL_FIELD(gl_flow_file, executable, BOOL, 0, "whether it may be executed"),
};

static const struct gl_schema file_schema = {
    .name = "file",
    .doc = "A file that a step finds in its working folder.",
    .bytes = sizeof(struct gl_flow_file),
    .fields = file_fields,
    .fields_n = GL_COUNT(file_fields),
};

static const struct gl_field edge_fields[] = {
    GL_FIELD(gl_step_edge, id, STR, 0, "name of the edge"),
    GL_FIELD(gl_step_edge, accepts, U32, GL_FF_ALWAYS, "outcomes of the parent that are accepted"),
};

static const struct gl_schema edge_schema = {
    .name = "edge",
    .doc = "What a step of a bundle needs.",
    .bytes = sizeof(struct gl_step_edge),
    .fields = edge_fields,
    .fields_n = GL_COUNT(edge_fields),
};

static const struct gl_field step_fields[] = {
    GL_FIELD(gl_step_spec, id, STR, GL_FF_REQUIRED, "name of the step, unique in the flow"),
    {.name = "needs",
     .type = GL_F_STRS,
     .offset = offsetof(struct gl_step_spec, needs_ids),
     .doc = "steps that must end before this one"},
    GL_FIELD_ENUM(gl_step_spec, rule, gl_rule_words, 0, "which outcomes of them let it run"),
    GL_FIELD(gl_step_spec, quorum, U32, 0, "successes needed by quorum_success"),
    GL_FIELD_ENUM(gl_step_spec, on_failure, gl_failure_policy_words, 0,
                  "what happens when the last attempt has failed"),
    GL_FIELD_ENUM(gl_step_spec, safety, gl_safety_words, 0,
                  "whether it may run again if its outcome is unknown"),
    GL_FIELD(gl_step_spec, driver, STR, 0, "what runs it; \"process\" if absent"),
    GL_FIELD(gl_step_spec, argv, STRS, 0, "program and arguments"),
    GL_FIELD(gl_step_spec, env, STRS, 0, "environment, as NAME=value"),
    GL_FIELD(gl_step_spec, cwd, STR, 0, "working folder; a private one if absent"),
    GL_FIELD_SUB(gl_step_spec, files, LIST, &file_schema, 0, "files in the working folder"),
    GL_FIELD(gl_step_spec, timeout_ms, SPAN, 0, "longest duration of one attempt"),
    GL_FIELD(gl_step_spec, grace_ms, SPAN, 0, "from SIGTERM to SIGKILL"),
    GL_FIELD(gl_step_spec, heartbeat_ms, SPAN, 0,
             "longest time of one attempt without a sign of "
             "life"),
    GL_FIELD_SUB(gl_step_spec, retry, OBJECT, &retry_schema, 0, "tries"),
    GL_FIELD(gl_step_spec, pool, STR, 0, "the pool its slots come from; \"default\" if absent"),
    GL_FIELD(gl_step_spec, slots, U32, 0, "how many slots it takes; 1 if absent"),
    GL_FIELD(gl_step_spec, priority, I64, 0, "higher goes first"),
    GL_FIELD(gl_step_spec, node_labels, STRS, 0, "what it requires of its node's labels"),
    GL_FIELD(gl_step_spec, expand, U32, 0, "which lists of texts contain references"),
    GL_FIELD(gl_step_spec, refs, STRS, 0, "values written to the input file"),
    GL_FIELD(gl_step_spec, secrets, STRS, 0, "environment from other sources, as NAME=source"),
    GL_FIELD(gl_step_spec, when, STR, 0, "runs only if this condition holds"),
    GL_FIELD(gl_step_spec, foreach, STR, 0, "runs once per element of this list"),
    GL_FIELD(gl_step_spec, items_max, U32, 0, "maximum number of elements"),
    GL_FIELD(gl_step_spec, parallel, U32, 0, "how many elements run at a time"),
    GL_FIELD(gl_step_spec, limit_key, STR, 0, "with this key ..."),
    GL_FIELD(gl_step_spec, limit_max, U32, 0, "... at most this many run at a time"),
    GL_FIELD(gl_step_spec, rate_key, STR, 0, "with this key ..."),
    GL_FIELD(gl_step_spec, rate_ms, SPAN, 0, "... one starts in this time"),
    GL_FIELD(gl_step_spec, sleep, STR, 0, "how long it waits"),
    GL_FIELD(gl_step_spec, until, STR, 0, "until when it waits"),
    GL_FIELD(gl_step_spec, signal, STR, 0, "the signal it waits for"),
    GL_FIELD(gl_step_spec, approval, STR, 0, "the question for a person"),
    GL_FIELD(gl_step_spec, decisions, STRS, 0,
             "the possible answers; approve and reject if absent"),
    GL_FIELD(gl_step_spec, on_timeout, STR, 0, "the answer if nobody answers in time"),
    GL_FIELD(gl_step_spec, agent_ids, STRS, 0, "agents that run it"),
    GL_FIELD_SUB(gl_step_spec, edges, LIST, &edge_schema, 0,
                 "which outcomes of its needs it "
                 "accepts"),
    GL_FIELD(gl_step_spec, label, STR, 0, "its display name"),
    GL_FIELD(gl_step_spec, is_removed, BOOL, 0, "a patch has removed it"),
    GL_FIELD(gl_step_spec, template_id, STR, 0, "the template it was made from"),
    GL_FIELD(gl_step_spec, region_id, STR, 0, "the region it is in"),
    GL_FIELD(gl_step_spec, patch_id, STR, 0, "the patch that added it"),
};

const struct gl_schema gl_flow_step_schema = {
    .name = "step",
    .doc = "One step of a flow, compiled.",
    .bytes = sizeof(struct gl_step_spec),
    .fields = step_fields,
    .fields_n = GL_COUNT(step_fields),
};

static const struct gl_field input_fields[] = {
    GL_FIELD(gl_flow_input, name, STR, GL_FF_REQUIRED, "name of the input"),
    GL_FIELD_ENUM(gl_flow_input, type, gl_input_type_words, 0, "its type"),
    GL_FIELD(gl_flow_input, required, BOOL, 0, "must be given"),
    {.name = "default",
     .type = GL_F_RAW,
     .offset = offsetof(struct gl_flow_input, fallback),
     .doc = "its value if it is not given"},
    GL_FIELD(gl_flow_input, doc, STR, 0, "its description"),
};

static const struct gl_schema input_schema = {
    .name = "input",
    .doc = "An input of a job.",
    .bytes = sizeof(struct gl_flow_input),
    .fields = input_fields,
    .fields_n = GL_COUNT(input_fields),
};

static const struct gl_field flow_fields[] = {
    GL_FIELD(gl_flow, name, STR, GL_FF_REQUIRED, "name of the flow"),
    GL_FIELD_SUB(gl_flow, inputs, LIST, &input_schema, 0, "the inputs of its jobs"),
    GL_FIELD_SUB(gl_flow, steps, LIST, &gl_flow_step_schema, GL_FF_REQUIRED, "its steps"),
};

static const struct gl_schema flow_schema = {
    .name = "flow",
    .doc = "A flow, compiled.",
    .bytes = sizeof(struct gl_flow),
    .fields = flow_fields,
    .fields_n = GL_COUNT(flow_fields),
};

/* The compiled form omits defaults. Each of these is zero only in the compiled form: a step
 * always has a pool, a driver, and at least one slot, one attempt and a millisecond of grace. */

static bool is_default_retry(const struct gl_retry *r)
{
    return r->attempts == GL_FLOW_RETRY_DEFAULT.attempts &&
           r->backoff_ms == GL_FLOW_RETRY_DEFAULT.backoff_ms &&
           r->factor_pct == GL_FLOW_RETRY_DEFAULT.factor_pct &&
           r->backoff_max_ms == GL_FLOW_RETRY_DEFAULT.backoff_max_ms && r->jitter_pct == 0 &&
           r->on.n == 0;
}

static const gl_str usual_decisions[] = {{"approve", 7}, {"reject", 6}};

static bool are_usual(const struct gl_strs *decisions)
{
    return decisions->n == 2 && gl_str_eq(decisions->items[0], usual_decisions[0]) &&
           gl_str_eq(decisions->items[1], usual_decisions[1]);
}

static void remove_defaults(struct gl_step_spec *s)
{
    s->driver = gl_str_is(s->driver, "process") ? (gl_str){0} : s->driver;
    s->pool = gl_str_is(s->pool, "default") ? (gl_str){0} : s->pool;
    s->slots = s->slots == 1 ? 0 : s->slots;
    s->grace_ms = s->grace_ms == GL_GRACE_MS ? 0 : s->grace_ms;
    if (is_default_retry(&s->retry)) {
        s->retry = (struct gl_retry){0};
    }
    s->items_max = s->items_max == GL_ITEMS_DEFAULT ? 0 : s->items_max;
    if (are_usual(&s->decisions)) {
        s->decisions = (struct gl_strs){0};
    }
}

static void add_defaults(struct gl_step_spec *s)
{
    s->driver = s->driver.n ? s->driver : GL_S("process");
    s->pool = s->pool.n ? s->pool : GL_S("default");
    s->slots = s->slots ? s->slots : 1;
    s->grace_ms = s->grace_ms ? s->grace_ms : GL_GRACE_MS;
    s->is_bound = gl_str_is(s->driver, "agent");
    if (s->retry.attempts == 0) {
        s->retry = GL_FLOW_RETRY_DEFAULT;
    }
    if (s->foreach.n && s->items_max == 0) {
        s->items_max = GL_ITEMS_DEFAULT;
    }
    if (s->approval.n && s->decisions.n == 0) {
        s->decisions = (struct gl_strs){usual_decisions, GL_COUNT(usual_decisions)};
    }
}

static void write_inputs(const struct gl_flow *f, struct gl_jw *w)
{
    const struct gl_flow_input *inputs = f->inputs.items;
    if (f->inputs.n == 0) {
        return;
    }
    gl_jw_key(w, "inputs");
    gl_jw_array(w);
    for (size_t i = 0; i < f->inputs.n; i++) {
        gl_jw_object(w);
        gl_schema_write(&input_schema, &inputs[i], w, GL_FOR_STORE);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

void gl_flow_encode(const struct gl_flow *f, struct gl_buf *out)
{
    struct gl_jw w;
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, "format");
    gl_jw_u64(&w, f->bundle != NULL ? FORMAT : FORMAT_FLOW);
    gl_jw_key(&w, "name");
    gl_jw_str(&w, f->name);
    write_inputs(f, &w);
    if (f->bundle != NULL) {
        gl_jw_key(&w, "bundle");
        gl_jw_object(&w);
        gl_bundle_write(f->bundle, &w);
        gl_jw_end(&w);
    }
    gl_jw_key(&w, "steps");
    gl_jw_array(&w);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        struct gl_step_spec s = *gl_flow_step(f, i);
        remove_defaults(&s);
        gl_jw_object(&w);
        gl_schema_write(&gl_flow_step_schema, &s, &w, GL_FOR_STORE);
        gl_jw_end(&w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
}

int64_t gl_flow_find(const struct gl_flow *f, gl_str id)
{
    uint32_t s = (uint32_t)gl_str_hash(id) & (f->slots_n - 1);
    while (f->slots[s]) {
        uint32_t number = f->slots[s] - 1;
        if (gl_str_eq(gl_flow_step(f, number)->id, id)) {
            return number;
        }
        s = (s + 1) & (f->slots_n - 1);
    }
    return -1;
}

/* Decoding. */

static int check_format(const struct gl_json *j, struct gl_why *why)
{
    uint64_t format;
    if (!gl_json_u64(j, gl_json_get(j, gl_json_root(j), "format"), &format) || format == 0) {
        return gl_why(why, GL_E_INVALID, "this is not a compiled flow: \"format\" is missing");
    }
    if (format > FORMAT) {
        return gl_why(why, GL_E_VERSION,
                      "the compiled flow has format %llu; this release knows up to %d",
                      (unsigned long long)format, FORMAT);
    }
    return 0;
}

/* Turn the names in `needs` into numbers. `mark` has one entry per step, to find repetitions. */
static int resolve_needs(struct gl_flow *f, uint32_t number, uint32_t *mark, struct gl_arena *a,
                         struct gl_why *why)
{
    struct gl_step_spec *s = gl_flow_graph_step(f, number);
    s->needs_n = (uint32_t)s->needs_ids.n;
    s->needs = GL_NEW_ARRAY(a, uint32_t, s->needs_n);
    for (uint32_t k = 0; k < s->needs_n; k++) {
        gl_str id = s->needs_ids.items[k];
        int64_t parent = gl_flow_find(f, id);
        if (parent < 0 || parent == number || mark[parent] == number + 1) {
            return gl_why(why, GL_E_INVALID, "step %.*s: it cannot need \"%.*s\": %s",
                          GL_STR_ARG(s->id), (int)(id.n < 100 ? id.n : 100), id.p ? id.p : "",
                          parent < 0         ? "there is no such step"
                          : parent == number ? "a step cannot need itself"
                                             : "it is listed twice");
        }
        mark[parent] = number + 1;
        s->needs[k] = (uint32_t)parent;
    }
    return 0;
}

static int link_steps(struct gl_flow *f, struct gl_arena *a, struct gl_why *why)
{
    gl_flow_graph_index(f, a);
    uint32_t *mark = GL_NEW_ARRAY(a, uint32_t, f->steps.n);
    for (uint32_t i = 0; i < f->steps.n; i++) {
        gl_str id = gl_flow_step(f, i)->id;
        if (gl_flow_find(f, id) != i) {
            return gl_why(why, GL_E_INVALID, "two steps are called %.*s", GL_STR_ARG(id));
        }
        int rc = resolve_needs(f, i, mark, a, why);
        if (rc) {
            return rc;
        }
    }
    gl_flow_graph_link(f, a);
    uint32_t *cycle, cycle_n;
    if (gl_flow_graph_cycle(f, a, &cycle, &cycle_n)) {
        return gl_why(why, GL_E_INVALID, "step %.*s waits for itself: the needs form a cycle",
                      GL_STR_ARG(gl_flow_step(f, cycle[0])->id));
    }
    return 0;
}

/* The tape is needed only here; the values read from it borrow from `text`. */
static int read_compiled(gl_str text, struct gl_arena *a, struct gl_arena *scratch,
                         struct gl_flow *ret, struct gl_why *why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, text, GL_FLOW_BYTES_MAX, scratch, why);
    if (rc || (rc = check_format(&j, why))) {
        return rc;
    }
    rc = gl_schema_read(&flow_schema, &j, gl_json_root(&j), false, a, ret, why);
    gl_jnode bundle = gl_json_get(&j, gl_json_root(&j), "bundle");
    if (rc == 0 && bundle != NULL) {
        ret->bundle = GL_NEW(a, struct gl_bundle_spec);
        rc = gl_schema_read(&gl_bundle_schema, &j, bundle, false, a, ret->bundle, why);
    }
    return rc;
}

int gl_flow_decode(gl_str text, struct gl_arena *a, struct gl_flow **ret, struct gl_why *reterr_why)
{
    struct gl_flow *f = GL_NEW(a, struct gl_flow);
    struct gl_arena scratch = {0};
    int rc = read_compiled(gl_str_dup(a, text), a, &scratch, f, reterr_why);
    gl_arena_done(&scratch);
    if (rc) {
        return rc;
    }
    for (size_t i = 0; i < f->steps.n; i++) {
        add_defaults(gl_flow_graph_step(f, i));
    }
    if ((rc = gl_flow_check(f, reterr_why)) || (rc = link_steps(f, a, reterr_why)) ||
        (rc = gl_flow_refs_link(f, a, reterr_why)) ||
        (f->bundle != NULL && (rc = gl_bundle_link(f, a, reterr_why)))) {
        return rc;
    }
    *ret = f;
    return 0;
}
