/* loads.c - reads what the core wants in memory: a job with its flow and live steps, or a page of
 * an index.
 *
 * The reads are not one snapshot. So the job's record is read again at the end, and if it has
 * changed meanwhile (a former owner may still be writing) everything is read again. The core thus
 * gets records that belong together. */
#include "base/check.h"
#include "node/node_state.h"

#include "model/job.h"

enum { STEPS_PAGE = 1000 };

struct load {
    struct gl_chain chain;
    gl_str job;
    struct gl_event_record job_record;
    gl_str flow_hash, flow, stack, env_scope;
    struct gl_event_record *steps; /* grows in the arena */
    size_t steps_n, steps_cap;
    size_t steps_first; /* index of the first of the kind being listed */
    /* The kinds to list, one after the other: steps, then the other kinds this job has. */
    const char *kinds[4];
    size_t kinds_n, kind;
    unsigned attempts;
};

static void finish(struct load *l, int code)
{
    struct gl_node *n = l->chain.node;
    struct gl_event ev = {
        .type = GL_EV_LOADED, .context = l->chain.context, .job = l->job, .loaded = {.code = code}};
    struct gl_event_record *all;

    GL_ASSERT(l->job.n == GL_ULID_BYTES);
    if (code == 0) {
        all = GL_NEW_ARRAY(&l->chain.arena, struct gl_event_record, l->steps_n + 1);
        all[0] = l->job_record;
        if (l->steps_n > 0) {
            memcpy(all + 1, l->steps, l->steps_n * sizeof(*all));
        }
        ev.loaded.records = (struct gl_items){.items = all, .n = l->steps_n + 1};
        ev.loaded.flow = l->flow;
        ev.loaded.flow_hash = l->flow_hash; /* even if the core knows the flow: a replay needs it */
        ev.loaded.stack = l->stack;
        ev.loaded.env_scope = l->env_scope;
    }
    gl_node_feed(n, &ev);
    gl_chain_end(&l->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    (void)why;
    finish(chain, code == GL_E_UNAVAILABLE ? GL_E_UNAVAILABLE : GL_E_DAMAGED);
}

static const struct gl_chain_kind loads = {.bytes = sizeof(struct load), .failed = on_failed};

static struct gl_event_record keep(struct load *l, const struct gl_record *r)
{
    return (struct gl_event_record){.kind = gl_str_dup(&l->chain.arena, r->kind),
                                    .id = gl_str_dup(&l->chain.arena, r->id),
                                    .owner = gl_str_dup(&l->chain.arena, r->owner),
                                    .value = gl_str_dup(&l->chain.arena, r->value),
                                    .rev = r->rev,
                                    .token = r->token,
                                    .damaged = r->damaged};
}

static void begin(struct load *l);
static void on_flow(struct gl_store_req *req);

static void on_checked(struct gl_store_req *req)
{
    struct load *l = req->owner;

    GL_ASSERT(l->kind + 1 == l->kinds_n);
    if (req->records[0].rev != l->job_record.rev) {
        GL_MARK(l->chain.node->config.trace, "loads.moved_meanwhile");
        l->steps_n = l->steps_first = 0;
        l->kind = 0;
        l->flow = (gl_str){0};
        if (++l->attempts > 8) {
            finish(l, GL_E_UNAVAILABLE); /* the core retries a little later */
        } else {
            begin(l);
        }
        return;
    }
    if (l->flow.n == 0 && !gl_core_knows_flow(l->chain.node->core, l->flow_hash)) {
        GL_MARK(l->chain.node->config.trace, "loads.flow_forgotten_meanwhile");
        l->steps_n = l->steps_first = 0;
        l->kind = 0;
        gl_chain_get(&l->chain, GL_S("flow"), l->flow_hash, on_flow);
        return;
    }
    finish(l, 0);
}

static void list_steps(struct load *l);

static void on_steps(struct gl_store_req *req)
{
    struct load *l = req->owner;
    bool more;

    GL_ASSERT(l->kind < l->kinds_n);
    GL_ASSERT(req->records_n <= STEPS_PAGE);
    more = req->records_n == STEPS_PAGE;
    if (l->steps_n + req->records_n > l->steps_cap) {
        size_t cap = (l->steps_n + req->records_n) * 2;
        struct gl_event_record *steps = GL_NEW_ARRAY(&l->chain.arena, struct gl_event_record, cap);

        if (l->steps_n > 0) {
            memcpy(steps, l->steps, l->steps_n * sizeof(*steps));
        }
        l->steps = steps;
        l->steps_cap = cap;
        GL_ASSERT(l->steps_n + req->records_n <= l->steps_cap);
    }
    for (size_t i = 0; i < req->records_n; i++) {
        l->steps[l->steps_n++] = keep(l, &req->records[i]);
    }
    if (more) {
        list_steps(l);
    } else if (l->kind + 1 < l->kinds_n) {
        l->kind++;
        l->steps_first = l->steps_n;
        list_steps(l);
    } else {
        gl_chain_get(&l->chain, GL_S("job"), l->job, on_checked);
    }
}

static void list_steps(struct load *l)
{
    struct gl_listing what = {
        .kind = gl_str_of(l->kinds[l->kind]),
        .prefix = gl_str_fmt(&l->chain.arena, "%.*s/", GL_STR_ARG(l->job)),
        .after = l->steps_n > l->steps_first ? l->steps[l->steps_n - 1].id : (gl_str){0},
        .limit = STEPS_PAGE,
        .live_only = l->kind == 0,
    };

    GL_ASSERT(l->kind < l->kinds_n);
    gl_chain_list(&l->chain, what, on_steps);
}

static void on_flow(struct gl_store_req *req)
{
    struct load *l = req->owner;

    GL_ASSERT(req->records_n == 1);
    GL_ASSERT(l->flow.n == 0);
    if (req->records[0].rev == 0 || req->records[0].damaged) {
        finish(l, GL_E_DAMAGED);
        return;
    }
    l->flow = gl_str_dup(&l->chain.arena, req->records[0].value);
    list_steps(l);
}

static void get_flow(struct load *l)
{
    GL_ASSERT(l->flow_hash.n > 0);
    if (gl_core_knows_flow(l->chain.node->core, l->flow_hash)) {
        list_steps(l);
    } else {
        gl_chain_get(&l->chain, GL_S("flow"), l->flow_hash, on_flow);
    }
}

static void on_owner(struct gl_store_req *req)
{
    struct load *l = req->owner;

    GL_ASSERT(l->job_record.owner.n > 0);
    l->job_record.owner_dead = req->session_dead || GL_PLANT(23); /* planted: without asking */
    if (l->chain.node->ports.store->ops->shared && !l->job_record.owner_dead) {
        finish(l, 0); /* another node's job: the core needs nothing else */
        return;
    }
    get_flow(l);
}

static void find_kinds(struct load *l, const struct gl_json *job)
{
    static const struct {
        const char *field, *kind;
    } more[] = {{"signals_n", "signal"}, {"patches_n", "patch"}, {"letters_n", "letter"}};

    l->kinds_n = 0;
    l->kinds[l->kinds_n++] = "step";
    for (size_t i = 0; i < GL_COUNT(more); i++) {
        if (gl_json_get(job, gl_json_root(job), more[i].field) != NULL) {
            l->kinds[l->kinds_n++] = more[i].kind;
        }
    }
    GL_ASSERT(l->kinds_n <= GL_COUNT(l->kinds));
}

static int read_flow_hash(struct load *l)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, l->job_record.value, GL_RECORD_BYTES_MAX, &l->chain.arena, NULL);

    if (rc == 0) {
        l->flow_hash = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "flow"), &l->chain.arena);
        find_kinds(l, &j);
        l->stack = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "stack"), &l->chain.arena);
        l->env_scope =
            gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "env_scope"), &l->chain.arena);
    }
    return rc == 0 && l->flow_hash.n > 0 ? 0 : GL_E_DAMAGED;
}

static void on_job(struct gl_store_req *req)
{
    struct load *l = req->owner;
    struct gl_node *n = l->chain.node;

    GL_ASSERT(req->records_n == 1);
    if (req->records[0].rev == 0) {
        finish(l, GL_E_NOT_FOUND);
        return;
    }
    l->job_record = keep(l, &req->records[0]);
    if (l->job_record.damaged || read_flow_hash(l) != 0) {
        finish(l, GL_E_DAMAGED);
        return;
    }
    if (gl_str_eq(l->job_record.owner, n->session) || l->job_record.owner.n == 0) {
        get_flow(l);
        return;
    }
    if (gl_core_is_dead(n->core, l->job_record.owner)) {
        l->job_record.owner_dead = true;
        get_flow(l);
        return;
    }
    n->ports.store->ops->session_dead(n->ports.store, gl_chain_store(&l->chain, on_owner),
                                      l->job_record.owner, false);
}

static void begin(struct load *l)
{
    gl_chain_get(&l->chain, GL_S("job"), l->job, on_job);
}

void gl_loads_begin(struct gl_node *n, const struct gl_effect *e)
{
    struct load *l = gl_chain_new(n, &loads, e->context);

    GL_ASSERT(e->type == GL_FX_LOAD);
    GL_ASSERT(e->job.n > 0);
    l->job = gl_str_dup(&l->chain.arena, e->job);
    begin(l);
}

/* ---- pages of an index ---- */

struct find {
    struct gl_chain chain;
    size_t limit;
    int status;
    struct gl_event_entry *entries;
    size_t entries_n;
    struct gl_key *keys;
};

static const struct gl_chain_kind finds = {.bytes = sizeof(struct find)};

static void finish_find(struct find *f)
{
    struct gl_event ev = {.type = GL_EV_FOUND,
                          .context = f->chain.context,
                          .found = {.code = f->status,
                                    .entries = {.items = f->entries, .n = f->entries_n},
                                    .more = f->status == 0 && f->entries_n == f->limit}};

    GL_ASSERT(f->entries_n <= f->limit);
    gl_node_feed(f->chain.node, &ev);
    gl_chain_end(&f->chain);
}

/* The pools that a node must offer to take this job; "" if any node may. */
static gl_str read_needs(struct find *f, const struct gl_record *r)
{
    struct gl_json j;
    gl_str next;

    if (r->rev == 0 || r->damaged ||
        gl_json_parse(&j, r->value, GL_RECORD_BYTES_MAX, &f->chain.arena, NULL) != 0) {
        return (gl_str){0};
    }
    next = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "pools_next"), &f->chain.arena);
    return next.n > 0
               ? next
               : gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "pools"), &f->chain.arena);
}

/* The owners of the jobs on this page. */
static void on_owners(struct gl_store_req *req)
{
    struct find *f = req->owner;
    struct gl_node *n = f->chain.node;
    size_t at = 0;

    GL_ASSERT(req->status != 0 || req->records_n <= f->entries_n);
    f->status = req->status;
    for (size_t i = 0; req->status == 0 && i < f->entries_n; i++) {
        if (gl_core_owns(n->core, f->entries[i].id)) {
            continue; /* possibly since the request; then one record was read for nothing */
        }
        while (at < req->records_n && !gl_str_eq(f->keys[at].id, f->entries[i].id)) {
            at++;
        }
        if (at < req->records_n) {
            const struct gl_record *r = &req->records[at];

            f->entries[i].rev = r->rev;
            f->entries[i].owner = r->owner;
            f->entries[i].needs = read_needs(f, r);
            f->entries[i].is_wanted = gl_requests_is_watched(n, f->entries[i].id);
        }
    }
    f->entries_n = req->status == 0 ? f->entries_n : 0;
    finish_find(f);
}

static void ask_for_owners(struct find *f)
{
    struct gl_node *n = f->chain.node;
    size_t keys_n = 0;

    GL_ASSERT(f->entries_n > 0);
    GL_ASSERT(f->keys == NULL);
    f->keys = GL_NEW_ARRAY(&f->chain.arena, struct gl_key, f->entries_n + 1);
    for (size_t i = 0; i < f->entries_n; i++) {
        if (!gl_core_owns(n->core, f->entries[i].id)) {
            f->keys[keys_n++] = (struct gl_key){.kind = GL_S("job"), .id = f->entries[i].id};
        }
    }
    if (keys_n == 0) {
        finish_find(f);
        return;
    }
    gl_chain_get_all(&f->chain, f->keys, keys_n, on_owners);
}

static void on_found(struct gl_store_req *req)
{
    struct find *f = req->owner;

    GL_ASSERT(req->status != 0 || req->entries_n <= f->limit);
    f->status = req->status;
    f->entries_n = req->status == 0 ? req->entries_n : 0;
    f->entries = GL_NEW_ARRAY(&f->chain.arena, struct gl_event_entry, f->entries_n + 1);
    for (size_t i = 0; i < f->entries_n; i++) {
        f->entries[i] = (struct gl_event_entry){
            .score = req->entries[i].score, .id = gl_str_dup(&f->chain.arena, req->entries[i].id)};
    }
    if (f->chain.node->ports.store->ops->shared && f->entries_n > 0) {
        ask_for_owners(f);
    } else {
        finish_find(f);
    }
}

void gl_loads_find(struct gl_node *n, const struct gl_effect *e)
{
    struct find *f = gl_chain_new(n, &finds, e->context);
    struct gl_range range = e->range;

    GL_ASSERT(range.limit > 0);
    GL_ASSERT(range.limit <= GL_PAGE_MAX);
    GL_ASSERT(e->type == GL_FX_FIND);
    f->limit = range.limit;
    range.index = gl_str_dup(&f->chain.arena, range.index);
    range.after_id = gl_str_dup(&f->chain.arena, range.after_id);
    gl_chain_range(&f->chain, range, on_found);
}
