/* Compiles the first messages that agents get when the job starts. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

/* The fields of a seed that belong to the envelope, not to the body. */
static const char *const envelope[] = {
    "message_id",   "job_id",           "from",         "to",        "type",     "class",
    "timestamp",    "correlation_id",   "causation_id", "attempt",   "priority", "ttl_ms",
    "content_type", "content_encoding", "headers",      "artifacts", "stream",   "envelope",
    NULL,
};

struct overlay {
    struct gl_json j;
    bool is_given;
};

static void write_value(struct gl_jw *w, const struct gl_json *j, gl_jnode n,
                        const struct overlay *over)
{
    struct gl_buf out = {0};

    if (over != NULL) {
        gl_manifest_merge(j, n, &over->j, gl_json_root(&over->j), &out);
    } else {
        gl_manifest_merge(NULL, NULL, j, n, &out);
    }
    gl_jw_raw(w, gl_buf_view(&out));
    gl_buf_done(&out);
}

/* Fields that are neither envelope nor body, as an object. */
static gl_str loose_fields(struct gl_manifest *m, gl_jnode seed, bool envelopes)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str ret;

    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    for (gl_jnode e = gl_json_first(m->r.j, seed); e; e = gl_json_after(m->r.j, seed, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);

        if ((gl_schema_word(envelope, key) >= 0) == envelopes) {
            gl_jw_key_str(&w, key);
            write_value(&w, m->r.j, gl_json_value(e), NULL);
        }
    }
    gl_jw_end(&w);
    ret = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

/* {"type": "init", "topic": 1} becomes {"type": "init", "body": {"topic": 1, ...}}. */
static void overlay_loose(struct gl_manifest *m, gl_jnode seed, const struct overlay *over,
                          struct gl_buf *out)
{
    gl_str body = loose_fields(m, seed, false), rest = loose_fields(m, seed, true);
    struct gl_json jb;
    struct gl_buf merged = {0};

    /* Both were just written, so they are valid. */
    GL_ASSERT(gl_json_parse(&jb, body, GL_MANIFEST_BYTES_MAX, m->r.a, NULL) == 0);
    gl_manifest_merge(&jb, gl_json_root(&jb), &over->j, gl_json_root(&over->j), &merged);
    gl_buf_fmt(out, "%.*s%s\"body\":", (int)rest.n - 1, rest.p, rest.n > 2 ? "," : "");
    gl_buf_str(out, gl_buf_view(&merged));
    gl_buf_char(out, '}');
    gl_buf_done(&merged);
}

static void overlay_body(struct gl_manifest *m, gl_jnode seed, gl_jnode body,
                         const struct overlay *over, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    for (gl_jnode e = gl_json_first(m->r.j, seed); e; e = gl_json_after(m->r.j, seed, e)) {
        gl_jw_key_str(&w, gl_json_str(m->r.j, e, m->r.a));
        write_value(&w, m->r.j, gl_json_value(e), gl_json_value(e) == body ? over : NULL);
    }
    gl_jw_end(&w);
}

static gl_str seed_text(struct gl_manifest *m, gl_jnode seed, const struct overlay *over)
{
    gl_jnode body = gl_json_get(m->r.j, seed, "body");
    struct gl_buf out = {0};
    gl_str ret;

    body = body != NULL ? body : gl_json_get(m->r.j, seed, "payload");
    if (!over->is_given || !gl_json_is(seed, GL_JSON_OBJECT) ||
        (body != NULL && !gl_json_is(body, GL_JSON_OBJECT))) {
        return gl_manifest_compact(m, seed);
    }
    if (body != NULL) {
        overlay_body(m, seed, body, over, &out);
    } else {
        overlay_loose(m, seed, over, &out);
    }
    ret = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

/* The inputs of an agent. */

struct seeder {
    struct gl_manifest *m;
    struct overlay over;
    struct gl_buf seeds;  /* struct gl_seed */
    gl_jnode shared;      /* a list for every entrypoint ... */
    gl_str *shared_texts; /* ... and its texts, written once */
    gl_str nothing;       /* {} */
};

/* Reports a priority that no message can have. Other mistakes in an envelope are reported when the
 * job sends the message: by then its agent may have been given another one. */
static void check_priority(struct gl_manifest *m, gl_jnode seed)
{
    gl_jnode whole = gl_manifest_get(m, seed, "envelope");
    int64_t priority;

    (void)gl_manifest_int(m, gl_json_is(whole, GL_JSON_OBJECT) ? whole : seed, "priority", 0,
                          GL_MESSAGE_PRIORITY_MAX, &priority); /* reports the error itself */
}

static bool add_seed(struct seeder *s, gl_jnode at, gl_str agent, gl_str text)
{
    struct gl_seed seed = {.agent = agent, .message = text};

    if (s->seeds.n / sizeof(seed) >= GL_JOB_MESSAGES_MAX) {
        gl_manifest_error(s->m, at, NULL, GL_REASON_TOO_MANY,
                          "a job begins with at most %d messages", GL_JOB_MESSAGES_MAX);
        return false;
    }
    if (!gl_manifest_add_expansion(s->m, at, text.n + agent.n + 32)) {
        return false;
    }
    gl_buf_add(&s->seeds, &seed, sizeof(seed));
    return true;
}

static void seed_from(struct seeder *s, gl_str agent, gl_jnode n)
{
    const struct gl_json *j = s->m->r.j;

    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        check_priority(s->m, n);
        (void)add_seed(s, n, agent, seed_text(s->m, n, &s->over));
        return;
    }
    if (n->count > GL_INBOX_MAX) {
        gl_manifest_error(s->m, n, NULL, GL_REASON_TOO_MANY,
                          "at most %d messages can wait for one agent", GL_INBOX_MAX);
        return;
    }
    for (gl_jnode e = gl_json_first(j, n); e; e = gl_json_after(j, n, e)) {
        check_priority(s->m, e);
        if (!add_seed(s, e, agent, seed_text(s->m, e, &s->over))) {
            return;
        }
    }
}

static void seed_shared(struct seeder *s, gl_str agent)
{
    gl_jnode n = s->shared;
    uint32_t i = 0;

    if (n->count > GL_INBOX_MAX) {
        seed_from(s, agent, n); /* reports the error */
        return;
    }
    if (s->shared_texts == NULL) {
        s->shared_texts = GL_NEW_ARRAY(s->m->r.a, gl_str, n->count + 1);
        for (gl_jnode e = gl_json_first(s->m->r.j, n); e; e = gl_json_after(s->m->r.j, n, e)) {
            check_priority(s->m, e);
            s->shared_texts[i++] = seed_text(s->m, e, &s->over);
        }
    }
    for (i = 0; i < n->count && add_seed(s, n, agent, s->shared_texts[i]); i++) {
    }
}

static void seed_agent(struct seeder *s, gl_str agent)
{
    gl_jnode n = gl_map_find(&s->m->inputs_by, agent);

    if (n != NULL && !gl_json_is(n, GL_JSON_NULL)) {
        seed_from(s, agent, n);
    } else if (s->shared != NULL) {
        seed_shared(s, agent);
    } else {
        (void)add_seed(s, s->m->root, agent, s->nothing);
    }
}

/* Entrypoints. */

static bool is_root(struct gl_manifest *m, const struct gl_manifest_node *node)
{
    gl_str role = gl_json_str(m->r.j, gl_manifest_get(m, node->n, "role"), m->r.a);

    return gl_str_is(role, "root") || gl_str_is(role, "root_coordinator");
}

/* In the form with bindings only: the start workers of the entrypoint's binding. */
static struct gl_strs start_workers(struct gl_manifest *m)
{
    gl_str entry = gl_json_str(m->r.j, gl_manifest_get(m, m->graph, "entrypoint"), m->r.a);
    const struct gl_json_node *key = gl_map_find(&m->binding_by, entry);
    gl_jnode binding = key != NULL ? gl_json_value(key) : NULL;
    const char *name =
        gl_manifest_get(m, binding, "start_workers") != NULL ? "start_workers" : "entrypoints";

    return gl_manifest_texts(m, binding, name);
}

static void note_strays(struct gl_manifest *m, const struct gl_map *entrypoints)
{
    gl_jnode n = m->inputs_at;

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        gl_str agent = gl_json_str(m->r.j, e, m->r.a);

        if (gl_map_find(entrypoints, agent) == NULL && gl_manifest_note_has_room(m)) {
            gl_manifest_note(m, "%.*s: `%.*s` is not an entrypoint, so it gets no first message",
                             GL_STR_ARG(gl_manifest_path(m, e)),
                             GL_STR_ARG(gl_flow_read_clip(agent)));
        }
    }
}

static void seed_named(struct seeder *s, struct gl_strs named, struct gl_map *done)
{
    struct gl_manifest *m = s->m;

    for (size_t i = 0; i < named.n; i++) {
        struct gl_manifest_node *node = gl_map_find(&m->by_id, named.items[i]);

        if (node == NULL) {
            gl_jnode at = m->entrypoints_at != NULL ? m->entrypoints_at : m->bindings_at;

            gl_manifest_unknown(m, gl_manifest_element(m, at, i), GL_REASON_UNKNOWN_AGENT, "agent",
                                &m->by_id, named.items[i]);
        } else if (gl_map_find(done, node->id) == NULL) {
            gl_map_add(done, node->id, node);
            seed_agent(s, node->id);
        }
    }
}

static void seed_roots(struct seeder *s, struct gl_map *done)
{
    struct gl_manifest *m = s->m;

    for (size_t i = 0; i < m->nodes_n; i++) {
        if (is_root(m, &m->nodes[i])) {
            gl_map_add(done, m->nodes[i].id, &m->nodes[i]);
            seed_agent(s, m->nodes[i].id);
        }
    }
    if (gl_map_count(done) == 0 && m->form == GL_MANIFEST_BINDINGS && m->nodes_n > 0) {
        gl_map_add(done, m->nodes[0].id, &m->nodes[0]);
        seed_agent(s, m->nodes[0].id);
    }
    if (gl_map_count(done) == 0) {
        gl_manifest_error(m, m->root, "entrypoints", GL_REASON_MISSING,
                          "nothing starts this job: list the agents that get the first messages in "
                          "`%s`, or give one the role root",
                          m->form == GL_MANIFEST_CATALOG ? "agents.entrypoints" : "entrypoints");
    }
}

static void index_one(struct gl_manifest *m, gl_str agent, gl_jnode value)
{
    if (agent.n > 0 && gl_map_find(&m->inputs_by, agent) == NULL) {
        gl_map_add(&m->inputs_by, agent, (void *)(uintptr_t)value);
    }
}

/* Of a binding: by agent, or for all of its workers. */
static void index_binding(struct gl_manifest *m, gl_jnode binding)
{
    gl_jnode n = gl_manifest_either(m, binding, "seed_inputs", "initial_inputs");
    gl_jnode workers = gl_json_get(m->r.j, binding, "workers");
    bool is_map = false;

    for (gl_jnode e = gl_json_is(n, GL_JSON_OBJECT) ? gl_json_first(m->r.j, n) : NULL; e;
         e = gl_json_after(m->r.j, n, e)) {
        gl_str key = gl_json_str(m->r.j, e, m->r.a);

        if (gl_map_find(&m->by_id, key) != NULL) {
            index_one(m, key, gl_json_value(e));
            is_map = true;
        }
    }
    if (n == NULL || is_map || !gl_json_is(workers, GL_JSON_ARRAY)) {
        return;
    }
    for (gl_jnode e = gl_json_first(m->r.j, workers); e; e = gl_json_after(m->r.j, workers, e)) {
        index_one(m, gl_manifest_worker_id(m, e), n);
    }
}

static void index_inputs(struct gl_manifest *m)
{
    gl_jnode n = m->inputs_at;

    if (n != NULL && !gl_json_is(n, GL_JSON_OBJECT) && !gl_json_is(n, GL_JSON_ARRAY)) {
        gl_manifest_error(m, n, NULL, GL_REASON_WRONG_TYPE,
                          "expected messages by agent, or a list of them, not %s",
                          gl_json_type_name(n));
    }
    for (gl_jnode e = gl_json_is(n, GL_JSON_OBJECT) ? gl_json_first(m->r.j, n) : NULL; e;
         e = gl_json_after(m->r.j, n, e)) {
        index_one(m, gl_json_str(m->r.j, e, m->r.a), gl_json_value(e));
    }
    n = m->bindings_at;
    for (gl_jnode e = gl_json_first(m->r.j, n); e; e = gl_json_after(m->r.j, n, e)) {
        index_binding(m, gl_json_value(e));
    }
}

void gl_manifest_seeds(struct gl_manifest *m)
{
    struct seeder s = {.m = m, .nothing = GL_S("{}")};
    struct gl_map done;
    struct gl_strs named;
    struct gl_why why;

    if (m->given->overlay.n > 0) {
        if (gl_json_parse(&s.over.j, m->given->overlay, GL_ARG_BYTES_MAX, m->r.a, &why) != 0) {
            gl_manifest_error(m, m->root, NULL, GL_REASON_INPUTS_OVERLAY,
                              "values set over the inputs: %s", why.text);
            return;
        }
        s.over.is_given = true;
        s.nothing = gl_str_fmt(m->r.a, "{\"body\":%.*s}", GL_STR_ARG(m->given->overlay));
    }
    gl_map_init(&done);
    index_inputs(m);
    s.shared = gl_json_is(m->inputs_at, GL_JSON_ARRAY) ? m->inputs_at : NULL;
    named = m->entrypoints_at != NULL ? gl_manifest_texts(m, m->entrypoints_in, "entrypoints")
            : m->form == GL_MANIFEST_BINDINGS ? start_workers(m)
                                              : (struct gl_strs){0};
    if (named.n > 0) {
        seed_named(&s, named, &done);
    } else {
        seed_roots(&s, &done);
    }
    note_strays(m, &done);
    m->b->seeds = (struct gl_items){.items = gl_arena_copy(m->r.a, s.seeds.p, s.seeds.n),
                                    .n = s.seeds.n / sizeof(struct gl_seed)};
    gl_buf_done(&s.seeds);
    gl_map_done(&done);
}
