#include "cli/mask.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/mask_claims.h"
#include "cli/mask_data.h"
#include "cli/mask_facts.h"
#include "model/bundle/agent.h"
#include "model/flow/flow.h"
#include "model/job.h"
#include "model/text/ref.h"

#define MASK "***"

struct gl_mask {
    struct gl_arena arena; /* state kept between lines */
    struct gl_arena line;
    struct gl_map flows;            /* by hash: struct gl_flow */
    struct gl_map jobs;             /* by id: struct known_job */
    struct gl_map kept;             /* "flow/step": gl_str */
    struct gl_map data;             /* of bundles, by hash: struct gl_mask_data */
    uint8_t key[GL_MASK_KEY_BYTES]; /* key of the tokens */
    gl_str flow_hash;               /* of the current flow */
    gl_str job;                     /* of the snapshot: the last job named */
    gl_str kind;                    /* of the current record */
    gl_str event_job;               /* of the current event ... */
    uint64_t place;                 /* ... and the step it is about */
    struct gl_mask_facts facts;
};

struct known_job {
    gl_str id;
    const struct gl_flow *flow;
    struct gl_mask_data *data; /* NULL: not a bundle */
};

/* How a field is written. */
typedef void apply(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w);

struct rule {
    const char *key;
    apply *apply;
};

struct gl_mask *gl_mask_new(const uint8_t key[static 32])
{
    struct gl_mask *m = gl_mem_alloc(sizeof(*m));

    memcpy(m->key, key, sizeof(m->key));
    gl_map_init(&m->data);
    gl_map_init(&m->flows);
    gl_map_init(&m->jobs);
    gl_map_init(&m->kept);
    gl_mask_facts_init(&m->facts, &m->arena);
    return m;
}

void gl_mask_free(struct gl_mask *m)
{
    gl_map_done(&m->flows);
    gl_map_done(&m->jobs);
    gl_map_done(&m->kept);
    gl_mask_facts_done(&m->facts);
    gl_map_done(&m->data);
    gl_arena_done(&m->arena);
    gl_arena_done(&m->line);
    gl_mem_free(m);
}

bool gl_mask_kept(const struct gl_mask *m, size_t number, gl_str *ret)
{
    const gl_str *name = NULL;
    size_t i = 0;

    for (size_t k = 0; k <= number; k++) {
        name = gl_map_next(&m->kept, &i);
    }
    if (name != NULL) {
        *ret = *name;
    }
    return name != NULL;
}

/* ---- values ---- */

/* Keep only the type. */
static void hide(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    (void)m;
    (void)j;
    gl_mask_hide(value, w);
}

static void write_object(struct gl_mask *m, const struct gl_json *j, gl_jnode object,
                         const struct rule *rules, struct gl_jw *w)
{
    if (!gl_json_is(object, GL_JSON_OBJECT)) { /* not our field */
        hide(m, j, object, w);
        return;
    }
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(j, object); k != NULL; k = gl_json_after(j, object, k)) {
        gl_str key = gl_json_str(j, k, &m->line);
        const struct rule *r = rules;

        gl_jw_key_str(w, key);
        while (r->key != NULL && !gl_str_is(key, r->key)) {
            r++;
        }
        if (r->key != NULL) {
            r->apply(m, j, gl_json_value(k), w);
        } else {
            gl_jw_raw(w, gl_json_raw(j, gl_json_value(k)));
        }
    }
    gl_jw_end(w);
}

/* Apply `each` to the elements of a list. Anything but a list is hidden. */
static void write_list(struct gl_mask *m, const struct gl_json *j, gl_jnode value, apply *each,
                       struct gl_jw *w)
{
    if (!gl_json_is(value, GL_JSON_ARRAY)) {
        hide(m, j, value, w);
        return;
    }
    gl_jw_array(w);
    for (gl_jnode e = gl_json_first(j, value); e != NULL; e = gl_json_after(j, value, e)) {
        each(m, j, e, w);
    }
    gl_jw_end(w);
}

/* JSON inside a string: apply `each`, and write the result as a string again. */
static void rewrite_text(struct gl_mask *m, const struct gl_json *j, gl_jnode value, apply *each,
                         struct gl_jw *w)
{
    gl_str text = gl_json_str(j, value, &m->line);
    struct gl_buf out = {0};
    struct gl_json inner;
    struct gl_jw iw;

    if (text.n == 0 || gl_json_parse(&inner, text, SIZE_MAX, &m->line, NULL) != 0) {
        gl_jw_c(w, text.n == 0 ? "" : MASK);
        return;
    }
    gl_jw_init(&iw, &out);
    each(m, &inner, gl_json_root(&inner), &iw);
    gl_jw_str(w, gl_buf_view(&out));
    gl_buf_done(&out);
}

static void hide_text(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    rewrite_text(m, j, value, hide, w);
}

/* Keep the keys and apply `each` to the values. Anything but an object is hidden. */
static void rewrite_members(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            void (*each)(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                                         struct gl_jw *w),
                            struct gl_jw *w)
{
    if (!gl_json_is(value, GL_JSON_OBJECT)) {
        hide(m, j, value, w);
        return;
    }
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(j, value); k != NULL; k = gl_json_after(j, value, k)) {
        gl_jw_key_str(w, gl_json_str(j, k, &m->line));
        each(m, j, gl_json_value(k), w);
    }
    gl_jw_end(w);
}

static void hide_members(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                         struct gl_jw *w)
{
    rewrite_members(m, j, value, hide, w);
}

static void hide_inputs(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    rewrite_text(m, j, value, hide_members, w);
}

/* ---- data of agents ---- */

/* The data of the current job; NULL: not a bundle's job. */
static struct gl_mask_data *data_of(const struct gl_mask *m)
{
    const struct known_job *job = gl_map_find(&m->jobs, m->event_job);

    return job != NULL ? job->data : NULL;
}

/* A value could not be replaced: remember its flow, for the report. */
static void note_kept_data(struct gl_mask *m, struct gl_mask_data *d)
{
    const struct known_job *job = gl_map_find(&m->jobs, m->event_job);
    gl_str *name;

    if (d->kept_n == 0 || d->is_told) {
        return;
    }
    d->is_told = true;
    name = GL_NEW(&m->arena, gl_str);
    *name = gl_str_fmt(&m->arena, "%.*s/(agents)", GL_STR_ARG(job->flow->name));
    if (gl_map_find(&m->kept, *name) == NULL) {
        gl_map_add(&m->kept, *name, name);
    }
}

static void write_data(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    struct gl_mask_data *d = data_of(m);

    if (d != NULL) {
        gl_mask_data_value(d, j, value, &m->line, w);
        note_kept_data(m, d);
    } else {
        hide(m, j, value, w);
    }
}

/* A text, or JSON inside a text. */
static void write_data_text(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            struct gl_jw *w)
{
    struct gl_mask_data *d = data_of(m);
    gl_str text = gl_json_str(j, value, &m->line);

    if (d == NULL) {
        hide(m, j, value, w);
    } else {
        gl_jw_str(w, gl_mask_data_text(d, text, text.n, &m->line));
        note_kept_data(m, d);
    }
}

static void write_output(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                         struct gl_jw *w)
{
    (data_of(m) != NULL ? write_data_text : hide_text)(m, j, value, w);
}

/* ---- facts ---- */

/* The step these facts belong to; NULL: not known. */
static const struct gl_step_spec *find_step(const struct gl_mask *m, bool *ret_is_item)
{
    const struct known_job *job = gl_map_find(&m->jobs, m->event_job);
    uint64_t base = job != NULL ? gl_flow_items_base(job->flow) : 0;
    uint64_t number = m->place < base ? m->place : (m->place - base) / GL_ITEMS_MAX;

    *ret_is_item = m->place >= base;
    return job != NULL && number < job->flow->steps.n ? gl_flow_step(job->flow, (uint32_t)number)
                                                      : NULL;
}

static void note_kept(struct gl_mask *m, const struct gl_step_spec *step)
{
    const struct known_job *job = gl_map_find(&m->jobs, m->event_job);
    gl_str *name = GL_NEW(&m->arena, gl_str);

    *name = gl_str_fmt(&m->arena, "%.*s/%.*s", GL_STR_ARG(job->flow->name), GL_STR_ARG(step->id));
    if (gl_map_find(&m->kept, *name) == NULL) {
        gl_map_add(&m->kept, *name, name);
    }
}

static void write_facts(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    struct gl_buf out = {0};
    bool is_item;
    const struct gl_step_spec *step = find_step(m, &is_item);

    (void)value; /* the document */
    if (gl_mask_facts_write(&m->facts, step, is_item, j, &m->line, &out)) {
        note_kept(m, step);
    }
    gl_jw_raw(w, gl_buf_view(&out));
    gl_buf_done(&out);
}

static void hide_facts(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    if (data_of(m) != NULL) {
        write_data_text(m, j, value, w);
        return;
    }
    rewrite_text(m, j, value, write_facts, w);
}

/* ---- flows ---- */

static gl_str name_only(struct gl_mask *m, gl_str entry)
{
    gl_str rest, name = gl_str_cut(entry, '=', &rest);

    return gl_str_fmt(&m->line, "%.*s=" MASK, GL_STR_ARG(name));
}

static struct gl_strs hide_list(struct gl_mask *m, struct gl_strs list, bool with_names)
{
    gl_str *items = GL_NEW_ARRAY(&m->line, gl_str, list.n);

    for (size_t i = 0; i < list.n; i++) {
        items[i] = with_names ? name_only(m, list.items[i]) : GL_S(MASK);
    }
    return (struct gl_strs){.items = items, .n = list.n};
}

/* A question keeps its references: they decide whether it can be asked. */
static gl_str hide_question(struct gl_mask *m, gl_str text)
{
    struct gl_ref_piece piece;
    gl_str left = GL_S(MASK);

    if (text.n == 0 || !gl_ref_has(text)) {
        return text.n == 0 ? text : left;
    }
    for (size_t pos = 0; pos < text.n && gl_ref_next(text, &pos, &m->line, &piece, NULL) == 0;) {
        if (piece.is_ref) {
            left =
                gl_str_fmt(&m->line, "%.*s${%.*s}", GL_STR_ARG(left), GL_STR_ARG(piece.ref.text));
        }
    }
    return left;
}

static gl_str rewrite(struct gl_mask *m, gl_str json, apply *each)
{
    struct gl_buf out = {0};
    struct gl_json j;
    struct gl_jw w;
    gl_str text = GL_S("null");

    if (gl_json_parse(&j, json, SIZE_MAX, &m->line, NULL) == 0) {
        gl_jw_init(&w, &out);
        each(m, &j, gl_json_root(&j), &w);
        text = gl_str_dup(&m->line, gl_buf_view(&out));
        gl_buf_done(&out);
    }
    return text;
}

/* The number of elements matters. */
static void hide_elements(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                          struct gl_jw *w)
{
    (void)m;
    gl_mask_hide_list(j, value, w);
}

static void hide_step(struct gl_mask *m, struct gl_step_spec *s)
{
    s->argv = hide_list(m, s->argv, false);
    s->env = hide_list(m, s->env, true);
    s->cwd = s->cwd.n > 0 ? GL_S("/" MASK) : s->cwd;
    s->expand = 0;
    s->approval = hide_question(m, s->approval);
    if (s->foreach.n > 0 && !gl_ref_has(s->foreach)) {
        s->foreach = rewrite(m, s->foreach, hide_elements);
    }
}

static void hide_input(struct gl_mask *m, struct gl_flow_input *in)
{
    in->doc = in->doc.n > 0 ? GL_S(MASK) : in->doc;
    if (in->fallback.n > 0) {
        in->fallback = rewrite(m, in->fallback, hide);
    }
}

static const struct gl_flow *remember_flow(struct gl_mask *m, gl_str hash, gl_str text)
{
    struct gl_flow *flow = gl_map_find(&m->flows, hash);

    if (flow == NULL && hash.n > 0 && gl_flow_decode(text, &m->arena, &flow, NULL) == 0) {
        gl_map_add(&m->flows, gl_str_dup(&m->arena, hash), flow);
    }
    return flow;
}

static gl_str encode(struct gl_mask *m, const struct gl_flow *flow)
{
    struct gl_buf out = {0};
    gl_str text;

    gl_flow_encode(flow, &out);
    text = gl_str_dup(&m->line, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

static struct gl_mask_data *remember_data(struct gl_mask *m, gl_str shown)
{
    const struct gl_flow *flow = gl_map_find(&m->flows, m->flow_hash);
    struct gl_mask_data *d = gl_map_find(&m->data, m->flow_hash);

    if (d == NULL && flow != NULL && flow->bundle != NULL) {
        d = GL_NEW(&m->arena, struct gl_mask_data);
        gl_mask_data_init(d, m->key, flow, shown, &m->arena);
        gl_map_add(&m->data, gl_str_dup(&m->arena, m->flow_hash), d);
    }
    return d;
}

/* Hide the configuration of workers. Seeds are messages, and are masked like messages of agents. */
static void hide_bundle(struct gl_mask *m, struct gl_flow *flow)
{
    struct gl_bundle_spec *b = (struct gl_bundle_spec *)flow->bundle;
    struct gl_seed *seeds = (struct gl_seed *)b->seeds.items;
    gl_str *messages = GL_NEW_ARRAY(&m->line, gl_str, b->seeds.n + 1);
    struct gl_mask_data *d;

    for (size_t i = 0; i < b->agents.n; i++) {
        struct gl_agent_spec *a = &((struct gl_agent_spec *)b->agents.items)[i];

        a->config = a->python_env = a->allocation = (gl_str){0};
    }
    b->config = b->scenario = (gl_str){0};
    for (size_t i = 0; i < b->seeds.n; i++) {
        messages[i] = seeds[i].message;
        seeds[i].message = GL_S("null");
    }
    d = remember_data(m, encode(m, flow));
    for (size_t i = 0; d != NULL && i < b->seeds.n; i++) {
        struct gl_buf out = {0};
        struct gl_json j;
        struct gl_jw w;

        if (gl_json_parse(&j, messages[i], SIZE_MAX, &m->line, NULL) == 0) {
            gl_jw_init(&w, &out);
            gl_mask_data_value(d, &j, gl_json_root(&j), &m->line, &w);
            seeds[i].message = gl_str_dup(&m->line, gl_buf_view(&out));
        }
        gl_buf_done(&out);
    }
}

static gl_str hide_flow(struct gl_mask *m, gl_str text)
{
    struct gl_flow *flow;

    if (gl_flow_decode(text, &m->line, &flow, NULL) != 0) {
        return GL_S(MASK);
    }
    for (size_t i = 0; i < flow->steps.n; i++) {
        hide_step(m, &((struct gl_step_spec *)flow->steps.items)[i]);
    }
    for (size_t i = 0; i < flow->inputs.n; i++) {
        hide_input(m, &((struct gl_flow_input *)flow->inputs.items)[i]);
    }
    if (flow->bundle != NULL) {
        hide_bundle(m, flow);
    }
    return encode(m, flow);
}

static void hide_flow_text(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                           struct gl_jw *w)
{
    gl_jw_str(w, hide_flow(m, gl_json_str(j, value, &m->line)));
}

/* ---- records, by their keys ---- */

static void write_job_record(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                             struct gl_jw *w)
{
    static const struct rule rules[] = {
        {"reason", hide}, {"result", hide}, {"error", hide}, {"completion", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_step_record(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                              struct gl_jw *w)
{
    static const struct rule rules[] = {{"terminal_reason", hide}, {"last_error", hide},
                                        {"output", write_data},    {"decided_by", hide},
                                        {"asked", hide},           {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_signal(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                         struct gl_jw *w)
{
    static const struct rule rules[] = {{"data", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_whole(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    (void)m;
    gl_jw_raw(w, gl_json_raw(j, value));
}

static void write_message(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                          struct gl_jw *w)
{
    static const struct rule rules[] = {
        {"message", write_data}, {"sender", write_data}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

/* Retention reads only job ids and file sizes from these. */
static bool is_name(gl_str kind)
{
    return gl_str_is(kind, "run") || gl_str_is(kind, "dedupe") || gl_str_is(kind, "request") ||
           gl_str_is(kind, "retried") || gl_str_is(kind, "blob");
}

/* The result of a command in the inbox. */
static void write_told(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    static const struct rule rules[] = {{"why", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_event(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                        struct gl_jw *w);

/* An attempt on another node. Only steps of flow files run there. */
static void write_taken(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    static const struct rule rules[] = {{"error", hide}, {"output", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

/* The value of a record, by its kind. An inbox record contains a command, which is an event. */
static apply *by_kind(gl_str kind)
{
    return gl_str_is(kind, "job")       ? write_job_record
           : gl_str_is(kind, "step")    ? write_step_record
           : gl_str_is(kind, "signal")  ? write_signal
           : gl_str_is(kind, "rate")    ? write_whole
           : is_name(kind)              ? write_whole
           : gl_str_is(kind, "letter")  ? write_message
           : gl_str_is(kind, "message") ? write_data
           : gl_str_is(kind, "inbox")   ? write_event
           : gl_str_is(kind, "answer")  ? write_told
           : gl_str_is(kind, "taken")   ? write_taken
                                        : hide;
}

static void write_record_value(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                               struct gl_jw *w)
{
    if (gl_str_is(m->kind, "flow")) { /* of a job of which an attempt runs here */
        hide_flow_text(m, j, value, w);
        return;
    }
    rewrite_text(m, j, value, by_kind(m->kind), w);
}

static void write_record(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                         struct gl_jw *w)
{
    static const struct rule rules[] = {{"value", write_record_value}, {NULL, NULL}};

    m->kind = gl_json_str(j, gl_json_get(j, value, "kind"), &m->line);
    if (gl_str_is(m->kind, "flow")) {
        m->flow_hash = gl_json_str(j, gl_json_get(j, value, "id"), &m->line);
    }
    write_object(m, j, value, rules, w);
}

static void write_records(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                          struct gl_jw *w)
{
    write_list(m, j, value, write_record, w);
}

/* ---- lines ---- */

static void remember_job(struct gl_mask *m, gl_str id, gl_str hash)
{
    const struct gl_flow *flow = gl_map_find(&m->flows, hash);
    struct known_job *job = gl_map_find(&m->jobs, id);

    if (id.n == 0 || flow == NULL) {
        return;
    }
    if (job == NULL) {
        job = GL_NEW(&m->arena, struct known_job);
        job->id = gl_str_dup(&m->arena, id);
        gl_map_add(&m->jobs, job->id, job);
    }
    job->flow = flow;
    job->data = gl_map_find(&m->data, hash);
}

static void write_claims(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                         struct gl_jw *w)
{
    gl_mask_claims(m->key, j, value, &m->line, w);
}

/* A claim request, or the store's reply to one. */
static bool is_about_claims(struct gl_mask *m, const struct gl_json *j, gl_jnode event)
{
    return gl_str_is(gl_json_str(j, gl_json_get(j, event, "type"), &m->line), "claim") ||
           gl_str_is(gl_json_str(j, gl_json_get(j, event, "by"), &m->line), "claims");
}

static void write_event(struct gl_mask *m, const struct gl_json *j, gl_jnode value, struct gl_jw *w)
{
    static const struct rule rules[] = {{"why", write_data_text},
                                        {"inputs", hide_inputs},
                                        {"facts", hide_facts},
                                        {"output", write_output},
                                        {"who", hide},
                                        {"reason", hide},
                                        {"error", write_data_text},
                                        {"records", write_records},
                                        {"flow", hide_flow_text},
                                        {NULL, NULL}};

    if (is_about_claims(m, j, value)) {
        write_claims(m, j, value, w);
        return;
    }
    m->event_job = gl_json_str(j, gl_json_get(j, value, "job"), &m->line);
    m->flow_hash = gl_json_str(j, gl_json_get(j, value, "flow_hash"), &m->line);
    m->place = 0;
    (void)gl_json_u64(j, gl_json_get(j, value, "step_number"), &m->place); /* absent: the first */
    remember_job(m, m->event_job, m->flow_hash);
    write_object(m, j, value, rules, w);
}

static void write_flow_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            struct gl_jw *w)
{
    static const struct rule rules[] = {{"text", hide_flow_text}, {NULL, NULL}};

    m->flow_hash = gl_json_str(j, gl_json_get(j, value, "hash"), &m->line);
    (void)remember_flow(m, m->flow_hash, gl_json_str(j, gl_json_get(j, value, "text"), &m->line));
    write_object(m, j, value, rules, w);
}

static void write_job_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                           struct gl_jw *w)
{
    m->job = gl_str_dup(&m->arena, gl_json_str(j, gl_json_get(j, value, "id"), &m->line));
    write_whole(m, j, value, w);
}

static void write_record_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                              struct gl_jw *w)
{
    remember_job(m, m->job, gl_json_str(j, gl_json_get(j, value, "flow"), &m->line));
    write_job_record(m, j, value, w);
}

static void write_step_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            struct gl_jw *w)
{
    static const struct rule rules[] = {{"r", write_step_record}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_message_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                               struct gl_jw *w)
{
    static const struct rule rules[] = {{"r", write_message}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_agents_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                              struct gl_jw *w)
{
    static const struct rule rules[] = {{"graph", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_room_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            struct gl_jw *w)
{
    static const struct rule rules[] = {{"why", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_retention(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                            struct gl_jw *w)
{
    static const struct rule rules[] = {
        {"pass.why", hide}, {"pass.broken_why", hide}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_retention_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                                 struct gl_jw *w)
{
    static const struct rule rules[] = {{"state", write_retention}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_taken_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                             struct gl_jw *w)
{
    static const struct rule rules[] = {{"end", write_taken}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

static void write_entries(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                          struct gl_jw *w)
{
    write_list(m, j, value, write_told, w);
}

static void write_inbox_line(struct gl_mask *m, const struct gl_json *j, gl_jnode value,
                             struct gl_jw *w)
{
    static const struct rule rules[] = {
        {"found", write_entries}, {"accepted", write_entries}, {NULL, NULL}};

    write_object(m, j, value, rules, w);
}

/* All other kinds of lines have no values: they describe queues, slots and limits
 * (node/flight_recorder.h, and the core's snapshot). A line of an unknown kind is an error. */
static const struct rule kinds[] = {
    {"event", write_event},        {"decided", write_whole},
    {"flow", write_flow_line},     {"job", write_job_line},
    {"record", write_record_line}, {"step", write_step_line},
    {"signal", write_signal},      {"parked", write_event},
    {"core", write_whole},         {"counts", write_whole},
    {"limit", write_whole},        {"group", write_whole},
    {"shorted", write_whole},      {"hold", write_whole},
    {"work", write_whole},         {"lru", write_whole},
    {"busy", write_whole},         {"wait", write_whole},
    {"granted", write_whole},      {"recording", write_whole},
    {"gap", write_whole},          {"agents", write_agents_line},
    {"mail", write_whole},         {"letter", write_message_line},
    {"mailed", write_whole},       {"idle", write_whole},
    {"renewal", write_whole},      {"room", write_room_line},
    {"peers", write_whole},        {"leader", write_whole},
    {"state", write_whole},        {"retention", write_retention_line},
    {"inbox", write_inbox_line},   {"outbox", write_whole},
    {"claims", write_claims},      {"human", write_whole},
    {"others", write_whole},       {"offers", write_whole},
    {"offer", write_whole},        {"taken", write_whole},
    {"taken_job", write_whole},    {"taken_attempt", write_taken_line},
    {"taken_list", write_whole},   {"taken_entry", write_whole},
};

int gl_mask_line(struct gl_mask *m, gl_str line, struct gl_buf *out, struct gl_why *reterr_why)
{
    struct gl_json j;
    struct gl_jw w;
    gl_jnode key;
    gl_str kind;

    gl_arena_reset(&m->line);
    m->event_job = m->job;
    m->flow_hash = (gl_str){0};
    if (gl_json_parse(&j, line, SIZE_MAX, &m->line, NULL) != 0 ||
        !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT) || gl_json_root(&j)->count != 1) {
        return gl_why(reterr_why, GL_R_RECORDING_DAMAGED, "the recording is damaged");
    }
    key = gl_json_first(&j, gl_json_root(&j));
    kind = gl_json_str(&j, key, &m->line);
    for (size_t i = 0; i < GL_COUNT(kinds); i++) {
        if (gl_str_is(kind, kinds[i].key)) {
            gl_jw_init(&w, out);
            gl_jw_object(&w);
            gl_jw_key_str(&w, kind);
            kinds[i].apply(m, &j, gl_json_value(key), &w);
            gl_jw_end(&w);
            gl_buf_char(out, '\n');
            return 0;
        }
    }
    return gl_why(reterr_why, GL_E_VERSION, "a recording has no lines of kind '%.*s'",
                  GL_STR_ARG(kind));
}
