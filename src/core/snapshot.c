/* snapshot.c - the core itself, its flows and lists, and the order of all lines. Restoring checks
 * each line as it comes, so an error names its line. */
#include "core/snapshot.h"

#include "base/check.h"
#include "core/agents/agents.h"
#include "core/cluster/offers.h"
#include "core/cluster/other_nodes.h"
#include "core/cluster/taken.h"
#include "core/component.h"
#include "core/flow/signals.h"
#include "core/recovery/parked.h"
#include "core/scheduling/quotas.h"
#include "core/scheduling/slots.h"

/* ---- lines ---- */

void gl_snapshot_put(struct gl_buf *out, const char *kind, const struct gl_schema *schema,
                     const void *object)
{
    struct gl_jw w;

    GL_ASSERT(schema->fields_n > 0);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, kind);
    gl_jw_object(&w);
    gl_schema_write(schema, object, &w, GL_FOR_STORE);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_buf_char(out, '\n');
}

int gl_snapshot_get(const struct gl_snapshot_line *l, const struct gl_schema *schema, void *ret)
{
    GL_ASSERT(schema->fields_n > 0);
    return gl_schema_read(schema, l->json, l->value, true, l->arena, ret, l->why);
}

int gl_snapshot_bad(const struct gl_snapshot_line *l, const char *what)
{
    return gl_why(l->why, GL_E_DAMAGED, "%s", what);
}

/* ---- the core itself ---- */

struct saved_pool {
    gl_str name;
    uint32_t slots, others_free;
};

static const struct gl_field pool_fields[] = {
    GL_FIELD(saved_pool, name, STR, GL_FF_REQUIRED, ""),
    GL_FIELD(saved_pool, slots, U32, 0, ""),
    GL_FIELD(saved_pool, others_free, U32, 0, ""),
};

GL_SNAPSHOT_SCHEMA(pool);

/* The configuration a core is created with ... */
struct saved_core {
    struct gl_items pools; /* struct saved_pool */
    struct gl_strs quarantined;
    gl_str context, node, labels, stack, env_scope;
    uint32_t hot_max, body_bytes;
    bool passive, shared, guest;
    gl_ms ttl_ms, orphan_grace_ms;
};

#define F(member, type) GL_FIELD(saved_core, member, type, 0, "")

static const struct gl_field core_fields[] = {
    GL_FIELD_SUB(saved_core, pools, LIST, &pool_schema, GL_FF_REQUIRED, ""),
    F(quarantined, STRS),
    F(context, STR),
    F(node, STR),
    F(labels, STR),
    F(stack, STR),
    F(env_scope, STR),
    F(hot_max, U32),
    F(body_bytes, U32),
    F(passive, BOOL),
    F(shared, BOOL),
    F(guest, BOOL),
    F(ttl_ms, I64),
    F(orphan_grace_ms, I64),
};
#undef F

GL_SNAPSHOT_SCHEMA(core);

/* ... and its state since. A field whose name has changed keeps its old name in the text: AS(). */
#define F(member, type) GL_FIELD(gl_core, member, type, 0, "")
#define AS(label, member, ftype)                                                                   \
    {                                                                                              \
        .name = label, .type = GL_F_##ftype, .offset = offsetof(struct gl_core, member), .doc = "" \
    }

static const struct gl_field state_fields[] = {
    F(now, I64),
    F(session, STR),
    F(epoch, STR),
    F(exec_up, BOOL),
    F(stopping, BOOL),
    F(ending, BOOL),
    F(listing, BOOL),
    F(adoption_over, BOOL),
    F(last_op, U64),
    F(last_start, U64),
    F(last_call, U64),
    F(wait_seq, U64),
    F(cold_due, I64),
    F(active_due, I64),
    F(list_due, I64),
    F(offers, STR),
    F(offers_heard, BOOL),
    F(offers_unknown, BOOL),
    F(lacks_due, I64),
    F(sweep.under_way, BOOL),
    F(sweep.asked, BOOL),
    F(sweep.first, BOOL),
    F(sweep.page_only, BOOL),
    AS("sweep.is_hunt", sweep.is_orphan_scan, BOOL),
    F(sweep.left, BOOL),
    F(sweep.passed_over, BOOL),
    F(sweep.max, I64),
    F(sweep.after_score, I64),
    F(sweep.after_id, STR),
    F(sweep.ready_id, STR),
    F(sweep.turn, U32),
    AS("sweep.hunt_due", sweep.orphans_due, I64),
    AS("sweep.hunts", sweep.orphan_parts, U32),
};
#undef AS
#undef F

static const struct gl_schema state_schema = {.name = "state",
                                              .bytes = sizeof(struct gl_core),
                                              .fields = state_fields,
                                              .fields_n = GL_COUNT(state_fields)};

static struct gl_strs list_quarantined(const struct gl_core *c, struct gl_arena *a)
{
    gl_str *ids = GL_NEW_ARRAY(a, gl_str, gl_map_count(&c->quarantined));
    struct gl_strs all = {.items = ids};
    const gl_str *id;

    for (size_t i = 0; (id = gl_map_next(&c->quarantined, &i)) != NULL;) {
        ids[all.n++] = *id;
    }
    GL_ASSERT(all.n == gl_map_count(&c->quarantined));
    return all;
}

static void save_core(const struct gl_core *c, struct gl_buf *out)
{
    struct saved_pool pools[GL_POOLS_MAX];
    struct gl_arena a = {0};
    struct saved_core s = {
        .pools = {.items = pools, .n = c->pools_n},
        .quarantined = list_quarantined(c, &a),
        .context = c->context,
        .node = c->node,
        .labels = c->labels,
        .stack = c->stack,
        .env_scope = c->env_scope,
        .hot_max = (uint32_t)c->hot_max,
        .body_bytes = c->body_bytes,
        .passive = c->passive,
        .shared = c->shared,
        .guest = c->guest,
        .ttl_ms = c->renewal.ttl_ms,
        .orphan_grace_ms = c->orphan_grace_ms,
    };

    GL_ASSERT(c->pools_n > 0);
    GL_ASSERT(c->pools_n <= GL_POOLS_MAX);
    for (size_t i = 0; i < c->pools_n; i++) {
        pools[i] = (struct saved_pool){.name = c->pools[i].name,
                                       .slots = c->pools[i].slots,
                                       .others_free = c->pools[i].others_free};
    }
    gl_snapshot_put(out, "core", &core_schema, &s);
    gl_snapshot_put(out, "state", &state_schema, c);
    gl_arena_done(&a);
}

static int restore_state(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct gl_core *s = GL_NEW(l->arena, struct gl_core);
    int rc = gl_snapshot_get(l, &state_schema, s);

    if (rc == 0) {
        gl_core_adopt(c, &state_schema, c, s);
    }
    return rc;
}

/* The first line creates the core. */
static int make_core(const struct gl_snapshot_line *l, struct gl_trace *trace, struct gl_core **ret)
{
    struct gl_core_pool pools[GL_POOLS_MAX];
    const struct saved_pool *saved;
    struct saved_core s;
    size_t own_n = 0;
    int rc = gl_snapshot_get(l, &core_schema, &s);

    if (rc != 0) {
        return rc;
    }
    saved = s.pools.items;
    if (s.pools.n == 0 || s.pools.n > GL_POOLS_MAX) {
        return gl_snapshot_bad(l, "the core has no pools, or too many");
    }
    while (own_n < s.pools.n && saved[own_n].slots > 0) { /* those of other nodes follow */
        own_n++;
    }
    for (size_t i = 0; i < s.pools.n; i++) {
        if ((i < own_n) != (saved[i].slots > 0) || own_n == 0 || saved[i].slots > GL_SLOTS_MAX) {
            return gl_snapshot_bad(l, "a pool has no slots, or too many");
        }
        pools[i] = (struct gl_core_pool){.name = saved[i].name, .slots = saved[i].slots};
    }
    *ret = gl_core_new(&(struct gl_core_config){.context = s.context,
                                                .pools = pools,
                                                .pools_n = own_n,
                                                .hot_jobs_max = s.hot_max,
                                                .passive = s.passive,
                                                .shared = s.shared,
                                                .guest = s.guest,
                                                .node = s.node,
                                                .labels = s.labels,
                                                .stack = s.stack,
                                                .env_scope = s.env_scope,
                                                .ttl_ms = s.ttl_ms,
                                                .orphan_grace_ms = s.orphan_grace_ms,
                                                .body_bytes = s.body_bytes,
                                                .quarantined = s.quarantined.items,
                                                .quarantined_n = s.quarantined.n,
                                                .trace = trace});
    for (size_t i = 0; i < s.pools.n; i++) {
        if (i >= own_n && gl_slots_add_pool(*ret, saved[i].name) != (int)i) {
            return gl_snapshot_bad(l, "a pool appears twice");
        }
        (*ret)->pools[i].others_free = saved[i].others_free;
    }
    GL_ASSERT((*ret)->pools_n == s.pools.n);
    return 0;
}

/* The counters: an array of 64-bit numbers. */
static_assert(sizeof(struct gl_core_counts) % sizeof(uint64_t) == 0, "nothing but 64-bit numbers");
enum { COUNTS_N = sizeof(struct gl_core_counts) / sizeof(uint64_t) };

static void save_counts(const struct gl_core *c, struct gl_buf *out)
{
    uint64_t all[COUNTS_N];

    memcpy(all, &c->counts, sizeof(all));
    gl_buf_c(out, "{\"counts\":[");
    for (size_t i = 0; i < COUNTS_N; i++) {
        gl_buf_fmt(out, "%s%llu", i > 0 ? "," : "", (unsigned long long)all[i]);
    }
    gl_buf_c(out, "]}\n");
}

static int restore_counts(struct gl_core *c, struct gl_snapshot_line *l)
{
    uint64_t all[COUNTS_N] = {0};
    size_t i = 0;

    if (!gl_json_is(l->value, GL_JSON_ARRAY) || l->value->count != COUNTS_N) {
        return gl_snapshot_bad(l, "wrong number of counters");
    }
    for (gl_jnode n = gl_json_first(l->json, l->value); n;
         n = gl_json_after(l->json, l->value, n)) {
        if (!gl_json_u64(l->json, n, &all[i++])) {
            return gl_snapshot_bad(l, "a counter is not a number");
        }
    }
    memcpy(&c->counts, all, sizeof(all));
    return 0;
}

/* ---- lists of jobs ---- */

struct saved_names {
    struct gl_strs ids;
};

static const struct gl_field names_fields[] = {GL_FIELD(saved_names, ids, STRS, GL_FF_ALWAYS, "")};

GL_SNAPSHOT_SCHEMA(names);

static void names_begin(struct gl_jw *w, struct gl_buf *out, const char *kind)
{
    gl_jw_init(w, out);
    gl_jw_object(w);
    gl_jw_key(w, kind);
    gl_jw_object(w);
    gl_jw_key(w, "ids");
    gl_jw_array(w);
}

static void names_end(struct gl_jw *w)
{
    gl_jw_end(w);
    gl_jw_end(w);
    gl_jw_end(w);
    gl_buf_char(w->out, '\n');
}

static void save_lists(const struct gl_core *c, struct gl_buf *out)
{
    struct gl_jw w;

    GL_ASSERT(c->jobs_hot + c->jobs_loading <= gl_map_count(&c->jobs));
    names_begin(&w, out, "lru");
    for (const struct gl_link *l = c->lru.next; l != &c->lru; l = l->next) {
        gl_jw_str(&w, GL_CONTAINER(l, struct gl_job, lru)->id);
    }
    names_end(&w);
    names_begin(&w, out, "busy");
    for (const struct gl_link *l = c->busy.next; l != &c->busy; l = l->next) {
        gl_jw_str(&w, GL_CONTAINER(l, struct gl_job, busy)->id);
    }
    names_end(&w);
}

/* Append the named jobs to the list; `place` is the offset of the link in struct gl_job. */
static int restore_list(struct gl_core *c, struct gl_snapshot_line *l, struct gl_link *head,
                        size_t place)
{
    struct saved_names s;
    int rc = gl_snapshot_get(l, &names_schema, &s);

    for (size_t i = 0; rc == 0 && i < s.ids.n; i++) {
        struct gl_job *j = gl_job_find(c, s.ids.items[i]);
        struct gl_link *link = j != NULL ? (void *)((char *)j + place) : NULL;

        if (j == NULL || j->memory != GL_MEM_HOT || !gl_list_empty(link)) {
            return gl_snapshot_bad(l, "a list names a job that cannot be in it");
        }
        GL_ASSERT(gl_str_eq(j->id, s.ids.items[i]));
        gl_list_push(head, link);
    }
    return rc;
}

static int restore_lru(struct gl_core *c, struct gl_snapshot_line *l)
{
    return restore_list(c, l, &c->lru, offsetof(struct gl_job, lru));
}

static int restore_busy(struct gl_core *c, struct gl_snapshot_line *l)
{
    return restore_list(c, l, &c->busy, offsetof(struct gl_job, busy));
}

/* ---- flows ---- */

struct saved_flow {
    gl_str hash, text;
    bool is_stored;
};

static const struct gl_field flow_fields[] = {
    GL_FIELD(saved_flow, hash, STR, GL_FF_REQUIRED, ""),
    GL_FIELD(saved_flow, text, STR, GL_FF_REQUIRED, ""),
    GL_FIELD(saved_flow, is_stored, BOOL, 0, ""),
};

GL_SNAPSHOT_SCHEMA(flow);

static bool save_flows(const struct gl_core *c, size_t bytes_max, struct gl_buf *out)
{
    const struct gl_spec *s;

    for (size_t i = 0; (s = gl_map_next(&c->specs, &i)) != NULL;) {
        struct saved_flow f = {.hash = s->hash, .text = s->text, .is_stored = s->is_stored};
        GL_ASSERT(s->refs > 0);
        GL_ASSERT(s->jobs <= s->refs);
        GL_ASSERT(s->hash.n > 0);

        if (out->n + s->text.n > bytes_max) {
            return false;
        }
        gl_snapshot_put(out, "flow", &flow_schema, &f);
    }
    return true;
}

static int restore_flow(struct gl_core *c, struct gl_snapshot_line *l)
{
    struct saved_flow f;
    struct gl_spec *s;
    int rc = gl_snapshot_get(l, &flow_schema, &f);

    if (rc != 0) {
        return rc;
    }
    if (gl_map_find(&c->specs, f.hash) != NULL) {
        return gl_snapshot_bad(l, "a flow appears twice");
    }
    s = l->lender != NULL ? gl_map_find(&l->lender->specs, f.hash) : NULL;
    if (s != NULL) {
        GL_ASSERT(gl_str_eq(s->text, f.text));
        gl_spec_ref(s);
    } else {
        rc = gl_spec_new(f.hash, f.text, &s, l->why);
    }
    if (rc == 0) {
        GL_ASSERT(s->refs > 0);
        GL_ASSERT(gl_str_eq(s->hash, f.hash));
        s->is_stored = f.is_stored;
        gl_map_add(&c->specs, s->hash, s);
    }
    return rc;
}

/* ---- all of it ---- */

bool gl_core_save(const struct gl_core *c, size_t bytes_max, struct gl_buf *out)
{
    const struct gl_job *j;

    GL_ASSERT(gl_list_empty(&c->touched));
    GL_ASSERT(c->out == NULL);
    GL_ASSERT(c->left == NULL);
    bytes_max = bytes_max < SIZE_MAX - out->n ? out->n + bytes_max : SIZE_MAX;
    save_core(c, out);
    save_counts(c, out);
    gl_components_save(c, out);
    gl_other_nodes_save(c, out);
    if (!save_flows(c, bytes_max, out)) {
        return false;
    }
    gl_quotas_save(c, out);
    for (size_t i = 0; (j = gl_map_next(&c->jobs, &i)) != NULL;) {
        gl_snapshot_jobs_save(j, out);
        if (out->n > bytes_max) {
            return false;
        }
    }
    save_lists(c, out);
    gl_snapshot_agents_idle(c, out);
    if (!gl_slots_save_waits(c, bytes_max, out)) {
        return false;
    }
    gl_taken_save_all(c, out);
    return out->n <= bytes_max;
}

/* Which function reads which kind of line. `line->job` is the last job named before the line. */
static const struct {
    const char *kind;
    int (*restore)(struct gl_core *c, struct gl_snapshot_line *l);
} kinds[] = {
    {"state", restore_state},
    {"counts", restore_counts},
    {"flow", restore_flow},
    {"limit", gl_quotas_restore_limit},
    {"group", gl_quotas_restore_group},
    {"shorted", gl_quotas_restore_lacking_keys},
    {"job", gl_snapshot_jobs_job},
    {"record", gl_snapshot_jobs_record},
    {"agents", gl_snapshot_agents_restore_job},
    {"hold", gl_slots_restore_hold},
    {"step", gl_snapshot_jobs_step},
    {"work", gl_snapshot_jobs_work},
    {"mail", gl_snapshot_agents_restore_mailbox},
    {"letter", gl_snapshot_agents_restore_message},
    {"mailed", gl_snapshot_agents_restore_due},
    {"idle", gl_snapshot_agents_restore_idle},
    {"signal", gl_signals_restore_kept},
    {"parked", gl_parked_restore},
    {"lru", restore_lru},
    {"busy", restore_busy},
    {"wait", gl_slots_restore_wait},
    {"granted", gl_slots_restore_granted},
    {"offer", gl_offers_restore},
    {"others", gl_other_nodes_restore},
    {"taken_job", gl_taken_restore_job},
    {"taken_attempt", gl_taken_restore_attempt},
    {"taken_list", gl_taken_restore_list},
    {"taken_entry", gl_taken_restore_entry},
};

static int read_line(struct gl_snapshot_line *l, gl_str text, struct gl_json *json,
                     gl_str *ret_kind)
{
    gl_jnode key;
    int rc = gl_json_parse(json, text, SIZE_MAX, l->arena, l->why);

    if (rc != 0) {
        return rc;
    }
    key = gl_json_first(json, gl_json_root(json));
    if (!gl_json_is(gl_json_root(json), GL_JSON_OBJECT) || key == NULL) {
        return gl_snapshot_bad(l, "the line is empty");
    }
    l->json = json;
    l->value = gl_json_value(key);
    *ret_kind = gl_json_str(json, key, l->arena);
    return 0;
}

static int restore_line(struct gl_core **c, struct gl_trace *trace, struct gl_snapshot_line *l,
                        gl_str text)
{
    struct gl_json json;
    gl_str kind = {0};
    int rc = read_line(l, text, &json, &kind);

    if (rc != 0) {
        return rc;
    }
    if (*c == NULL || gl_str_is(kind, "core")) {
        return *c == NULL && gl_str_is(kind, "core")
                   ? make_core(l, trace, c)
                   : gl_snapshot_bad(l, "the first line, and no other, must be the core");
    }
    if (gl_components_restore(*c, kind, l, &rc)) {
        return rc;
    }
    for (size_t i = 0; i < GL_COUNT(kinds); i++) {
        if (gl_str_is(kind, kinds[i].kind)) {
            return kinds[i].restore(*c, l);
        }
    }
    return gl_why(l->why, GL_E_VERSION, "unknown kind of line '%.*s'", GL_STR_ARG(kind));
}

static int check_all(struct gl_core *c, const struct gl_snapshot_line *l)
{
    size_t lru_n = 0;

    for (const struct gl_link *k = c->lru.next; k != &c->lru; k = k->next) {
        lru_n++;
    }
    if (lru_n != c->jobs_hot) {
        return gl_snapshot_bad(l, "the list of jobs in memory is incomplete");
    }
    return 0;
}

int gl_core_restore(gl_str text, struct gl_trace *trace, const struct gl_core *lender,
                    struct gl_core **ret, struct gl_why *reterr_why)
{
    struct gl_arena arena = {0};
    struct gl_why why = {0};
    struct gl_snapshot_line l = {.arena = &arena, .lender = lender, .why = &why};
    struct gl_core *c = NULL;
    size_t number = 0;
    int rc = 0;

    while (rc == 0 && text.n > 0) {
        gl_str line = gl_str_cut(text, '\n', &text);

        number++;
        gl_arena_reset(&arena);
        rc = restore_line(&c, trace, &l, line);
    }
    if (rc == 0) {
        rc = c != NULL ? check_all(c, &l) : gl_snapshot_bad(&l, "the text is empty");
    }
    if (c != NULL && !gl_quotas_drop_empty(c) && rc == 0) {
        rc = gl_snapshot_bad(&l, "a limit is listed as awaited, but no step waits for it");
    }
    gl_arena_done(&arena);
    if (rc == 0) {
        GL_ASSERT(gl_list_empty(&c->touched));
        GL_ASSERT(c->jobs_hot + c->jobs_loading <= gl_map_count(&c->jobs));
        GL_ASSERT(c->out == NULL);
        *ret = c;
        return 0;
    }
    if (c != NULL) {
        gl_core_free(c);
    }
    return gl_why(reterr_why, rc, "the core's memory, line %zu: %s", number, why.text);
}
