/* nodes.c - reads sessions: which is a node's newest, what it publishes, which pools it offers. */
#include "api/nodes.h"

#include "api/migrate.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/times.h"
#include "core/core.h"
#include "core/scheduling/placement.h"
#include "model/capacity.h"
#include "model/labels.h"

const char *const gl_node_status_words[] = {
#define X(name, word) word,
    GL_NODE_STATUSES(X)
#undef X
        NULL};

struct gl_session_info *gl_nodes_copy(struct gl_arena *a, const struct gl_session_info *sessions,
                                      size_t n)
{
    struct gl_session_info *copies = GL_NEW_ARRAY(a, struct gl_session_info, n + 1);

    for (size_t i = 0; i < n; i++) {
        copies[i] = sessions[i];
        copies[i].id = gl_str_dup(a, sessions[i].id);
        copies[i].node = gl_str_dup(a, sessions[i].node);
        copies[i].about = gl_str_dup(a, sessions[i].about);
    }
    return copies;
}

static enum gl_node_status status_of(const struct gl_nodes *n, const struct gl_session_info *s)
{
    return s->dead || (!n->is_shared && !n->has_node) ? GL_NODE_DEAD
           : s->left_ms < 0                           ? GL_NODE_LATE
                                                      : GL_NODE_ALIVE;
}

/* ---- the newest session of each node ---- */

static bool is_newer(const struct gl_session_info *a, const struct gl_session_info *b)
{
    return a->dead != b->dead ? b->dead : a->incarnation > b->incarnation;
}

/* In the order of the store. The caller frees the map. */
static void newest_sessions(const struct gl_nodes *n, struct gl_arena *a, struct gl_map *ret)
{
    gl_map_init(ret);
    for (size_t i = 0; i < n->sessions_n; i++) {
        const struct gl_session_info *s = &n->sessions[i];
        const struct gl_session_info **known = gl_map_find(ret, s->node);

        if (s->dead && gl_str_is(s->node, GL_MIGRATE_NODE)) {
            continue; /* a migration is not a node */
        }
        if (known == NULL) {
            known = GL_NEW(a, const struct gl_session_info *);
            *known = s;
            gl_map_add(ret, s->node, known);
        } else if (is_newer(s, *known)) {
            *known = s;
        }
    }
}

static const struct gl_session_info *next(const struct gl_map *m, size_t *i)
{
    const struct gl_session_info **s = gl_map_next(m, i);

    return s != NULL ? *s : NULL;
}

/* ---- one node ---- */

static bool is_ours(gl_str key)
{
    static const char *const ours[] = {"name", "session",        "incarnation", "status",  "leader",
                                       "own",  "deadline_in_ms", "labels",      "capacity"};

    for (size_t i = 0; i < GL_COUNT(ours); i++) {
        if (gl_str_is(key, ours[i])) {
            return true;
        }
    }
    return false;
}

static bool read_about(const struct gl_session_info *s, struct gl_arena *a, struct gl_json *ret)
{
    return s->about.n > 0 && gl_json_parse(ret, s->about, GL_ABOUT_BYTES_MAX, a, NULL) == 0 &&
           gl_json_is(gl_json_root(ret), GL_JSON_OBJECT);
}

/* Unchanged, except that times are written in the API's format. */
static void write_value(const struct gl_json *j, gl_str key, gl_jnode value, struct gl_jw *w)
{
    char text[GL_TIMES_BYTES];
    int64_t time;

    if (gl_str_ends(key, GL_S("_at")) && gl_json_i64(j, value, &time)) {
        gl_jw_str(w, gl_times_format(time, text));
    } else {
        gl_jw_raw(w, gl_json_raw(j, value));
    }
}

/* Null: unknown. An earlier release does not publish them. */
static void write_machine(const struct gl_json *j, gl_jnode root, struct gl_arena *a,
                          struct gl_jw *w)
{
    struct gl_capacity capacity;
    struct gl_labels labels;

    gl_jw_key(w, "capacity");
    if (gl_capacity_read(j, gl_json_get(j, root, "capacity"), &capacity)) {
        gl_capacity_write(&capacity, w);
    } else {
        gl_jw_null(w);
    }
    gl_jw_key(w, "labels");
    if (gl_labels_read(j, gl_json_get(j, root, "labels"), a, &labels)) {
        gl_labels_write(&labels, w);
    } else {
        gl_jw_null(w);
    }
}

static void write_about(const struct gl_session_info *s, struct gl_arena *a, struct gl_jw *w)
{
    struct gl_json j = {0};
    gl_jnode root;

    if (!read_about(s, a, &j)) {
        write_machine(&j, NULL, a, w);
        return;
    }
    root = gl_json_root(&j);
    for (gl_jnode k = gl_json_first(&j, root); k; k = gl_json_after(&j, root, k)) {
        gl_str key = gl_json_str(&j, k, a);

        if (!is_ours(key)) {
            gl_jw_key_str(w, key);
            write_value(&j, key, gl_json_value(k), w);
        }
    }
    write_machine(&j, root, a, w);
}

static bool leads(const struct gl_nodes *n, const struct gl_session_info *s)
{
    return !s->dead && (n->is_shared ? gl_str_eq(n->leader, s->id) : n->has_node);
}

static void write_node(struct gl_arena *a, const struct gl_nodes *n,
                       const struct gl_session_info *s, struct gl_jw *w)
{
    gl_jw_object(w);
    gl_jw_put_str(w, "name", s->node);
    gl_jw_put_str(w, "session", s->id);
    gl_jw_put_u64(w, "incarnation", s->incarnation);
    gl_jw_put_c(w, "status", gl_node_status_words[status_of(n, s)]);
    gl_jw_put_bool(w, "leader", leads(n, s));
    gl_jw_key(w, "own"); /* the node that answers */
    gl_jw_bool(w, n->own.n > 0 && gl_str_eq(n->own, s->id));
    gl_jw_key(w, "deadline_in_ms");
    if (s->left_ms == INT64_MAX || s->dead) {
        gl_jw_null(w);
    } else {
        gl_jw_i64(w, s->left_ms);
    }
    write_about(s, a, w);
    gl_jw_end(w);
}

void gl_nodes_write(struct gl_arena *a, const struct gl_nodes *n, bool all, struct gl_jw *w)
{
    const struct gl_session_info *s;
    struct gl_map newest;

    newest_sessions(n, a, &newest);
    gl_jw_object(w);
    gl_jw_put_array(w, "nodes");
    for (size_t i = 0; (s = next(&newest, &i)) != NULL;) {
        if (all || status_of(n, s) != GL_NODE_DEAD) {
            write_node(a, n, s, w);
        }
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_map_done(&newest);
}

int gl_nodes_write_one(struct gl_arena *a, const struct gl_nodes *n, gl_str name, struct gl_jw *w,
                       struct gl_why *reterr_why)
{
    const struct gl_session_info *s, *found = NULL;
    struct gl_map newest;
    size_t matches = 0;
    int err = 0;

    newest_sessions(n, a, &newest);
    for (size_t i = 0; (s = next(&newest, &i)) != NULL;) {
        if (gl_str_eq(s->node, name)) {
            found = s;
            matches = 1;
            break;
        }
        if (name.n > 0 && gl_str_starts(s->node, name)) {
            found = s;
            matches++;
        }
    }
    if (matches == 1) {
        write_node(a, n, found, w);
    } else if (matches == 0) {
        err = gl_why(reterr_why, GL_R_NO_SUCH_NODE,
                     "there is no node '%.*s'; 'glia node list --all' shows all nodes",
                     GL_STR_ARG(name));
    } else {
        err = gl_why(reterr_why, GL_R_NODE_AMBIGUOUS,
                     "more than one node name begins with '%.*s'; give more of the name",
                     GL_STR_ARG(name));
    }
    gl_map_done(&newest);
    return err;
}

/* ---- the cluster ---- */

struct pool {
    gl_str name;
    uint64_t slots, in_use, waiting;
    uint64_t taken; /* slots in use by attempts of other nodes' jobs */
};

struct sums {
    uint64_t n[GL_NODE_STATUS_COUNT], jobs, running, elsewhere, waiting;
    struct {
        gl_str node, job_id, step_id, pool;
        int64_t since; /* 0: none */
    } longest;
    struct gl_map pools, versions; /* struct pool; gl_str */
    gl_str leader;
};

static uint64_t number(const struct gl_json *j, gl_jnode n, const char *name)
{
    uint64_t value = 0;

    (void)gl_json_u64(j, gl_json_get(j, n, name), &value); /* absent: 0 */
    return value;
}

static void add_pool(struct sums *sums, const struct gl_json *j, gl_jnode e, struct gl_arena *a)
{
    gl_str name = gl_json_str(j, gl_json_get(j, e, "name"), a);
    struct pool *p = gl_map_find(&sums->pools, name);

    if (p == NULL) {
        p = GL_NEW(a, struct pool);
        p->name = name;
        gl_map_add(&sums->pools, p->name, p);
    }
    p->slots += number(j, e, "slots");
    p->in_use += number(j, e, "in_use");
    p->waiting += number(j, e, "waiting");
    for (gl_jnode taken = gl_json_get(j, e, "taken"), t = gl_json_first(j, taken); t;
         t = gl_json_after(j, taken, t)) {
        p->taken += number(j, t, "slots");
    }
}

static void add_longest(struct sums *sums, const struct gl_session_info *s, const struct gl_json *j,
                        gl_jnode root, struct gl_arena *a)
{
    gl_jnode n = gl_json_get(j, root, "longest_waiting");
    int64_t since = 0;

    if (n == NULL || !gl_json_i64(j, gl_json_get(j, root, "longest_waiting_at"), &since) ||
        since <= 0 || (sums->longest.since > 0 && sums->longest.since <= since)) {
        return;
    }
    sums->longest.since = since;
    sums->longest.node = s->node;
    sums->longest.job_id = gl_json_str(j, gl_json_get(j, n, "job_id"), a);
    sums->longest.step_id = gl_json_str(j, gl_json_get(j, n, "step_id"), a);
    sums->longest.pool = gl_json_str(j, gl_json_get(j, n, "pool"), a);
}

/* Adds what a live node publishes about itself. */
static void add_about(struct sums *sums, const struct gl_session_info *s, struct gl_arena *a)
{
    struct gl_json j;
    gl_jnode root, pools;
    gl_str *version;

    if (!read_about(s, a, &j)) {
        return;
    }
    root = gl_json_root(&j);
    pools = gl_json_get(&j, root, "pools");
    sums->jobs += number(&j, root, "jobs");
    sums->running += number(&j, root, "running");
    sums->elsewhere += number(&j, root, "elsewhere");
    sums->waiting += number(&j, root, "waiting");
    add_longest(sums, s, &j, root, a);
    for (gl_jnode e = gl_json_first(&j, pools); e; e = gl_json_after(&j, pools, e)) {
        add_pool(sums, &j, e, a);
    }
    version = GL_NEW(a, gl_str);
    *version = gl_json_str(&j, gl_json_get(&j, root, "version"), a);
    if (version->n > 0 && gl_map_find(&sums->versions, *version) == NULL) {
        gl_map_add(&sums->versions, *version, version);
    }
}

static void write_longest(const struct sums *sums, struct gl_jw *w)
{
    char since[GL_TIMES_BYTES];

    gl_jw_key(w, "longest_waiting");
    if (sums->longest.since == 0) {
        gl_jw_null(w);
        return;
    }
    gl_jw_object(w);
    gl_jw_put_str(w, "job_id", sums->longest.job_id);
    gl_jw_put_str(w, "step_id", sums->longest.step_id);
    gl_jw_put_str(w, "pool", sums->longest.pool);
    gl_jw_put_str(w, "node", sums->longest.node);
    gl_jw_put_str(w, "since", gl_times_format(sums->longest.since, since));
    gl_jw_end(w);
}

static void write_sums(const struct gl_nodes *n, const struct sums *sums, struct gl_jw *w)
{
    const struct pool *p;
    const gl_str *version;

    gl_jw_object(w);
    gl_jw_put_c(w, "store", n->engine);
    gl_jw_put_bool(w, "shared", n->is_shared);
    for (size_t i = 0; i < GL_NODE_STATUS_COUNT; i++) {
        gl_jw_put_u64(w, gl_node_status_words[i], sums->n[i]);
    }
    gl_jw_put_str(w, "leader", sums->leader);
    gl_jw_put_u64(w, "jobs", sums->jobs);
    gl_jw_put_u64(w, "running", sums->running);
    gl_jw_put_u64(w, "elsewhere", sums->elsewhere);
    gl_jw_put_u64(w, "waiting", sums->waiting);
    write_longest(sums, w);
    gl_jw_put_array(w, "versions");
    for (size_t i = 0; (version = gl_map_next(&sums->versions, &i)) != NULL;) {
        gl_jw_str(w, *version);
    }
    gl_jw_end(w);
    gl_jw_put_array(w, "pools");
    for (size_t i = 0; (p = gl_map_next(&sums->pools, &i)) != NULL;) {
        gl_jw_object(w);
        gl_jw_put_str(w, "name", p->name);
        gl_jw_put_u64(w, "slots", p->slots);
        gl_jw_put_u64(w, "in_use", p->in_use);
        gl_jw_put_u64(w, "waiting", p->waiting);
        gl_jw_put_u64(w, "taken", p->taken);
        gl_jw_end(w);
    }
    gl_jw_end(w);
    gl_jw_end(w);
}

void gl_nodes_write_cluster(struct gl_arena *a, const struct gl_nodes *n, struct gl_jw *w)
{
    const struct gl_session_info *s;
    struct sums sums = {0};
    struct gl_map newest;

    gl_map_init(&sums.pools);
    gl_map_init(&sums.versions);
    newest_sessions(n, a, &newest);
    for (size_t i = 0; (s = next(&newest, &i)) != NULL;) {
        enum gl_node_status status = status_of(n, s);

        sums.n[status]++;
        if (leads(n, s)) {
            sums.leader = s->node;
        }
        if (status == GL_NODE_ALIVE) {
            add_about(&sums, s, a);
        }
    }
    write_sums(n, &sums, w);
    gl_map_done(&newest);
    gl_map_done(&sums.pools);
    gl_map_done(&sums.versions);
}

/* ---- owners ---- */

struct gl_nodes_owner gl_nodes_find_owner(const struct gl_nodes *n, gl_str session)
{
    gl_str rest;
    /* All live sessions are listed, so one that is missing is dead. Its id still names the node. */
    struct gl_nodes_owner o = {.session = session,
                               .node = gl_str_cut(session, '#', &rest),
                               .status = GL_NODE_DEAD,
                               .left_ms = -1};

    for (size_t i = 0; i < n->sessions_n; i++) {
        if (gl_str_eq(n->sessions[i].id, session)) {
            o.node = n->sessions[i].node;
            o.status = status_of(n, &n->sessions[i]);
            o.left_ms = n->sessions[i].left_ms;
            break;
        }
    }
    o.has_successors = true;
    o.is_own = session.n > 0 && gl_str_eq(session, n->own);
    o.was_own =
        session.n > 0 && gl_str_eq(gl_str_cut(session, '#', &rest), gl_str_cut(n->own, '#', &rest));
    return o;
}

/* ---- pools ---- */

enum { NAMES_MAX = 3 };

static bool offers(const struct gl_json *j, const struct gl_step_spec *spec, struct gl_arena *a)
{
    gl_jnode pools = gl_json_get(j, gl_json_root(j), "pools");

    for (gl_jnode e = gl_json_first(j, pools); e; e = gl_json_after(j, pools, e)) {
        if (gl_str_eq(gl_json_str(j, gl_json_get(j, e, "name"), a), spec->pool)) {
            return number(j, e, "slots") >= spec->slots;
        }
    }
    return false;
}

static bool is_in_scope(const struct gl_json *j, const struct gl_job_record *job,
                        struct gl_arena *a)
{
    gl_jnode root = gl_json_root(j);

    return gl_str_eq(gl_json_str(j, gl_json_get(j, root, "stack"), a), job->stack) &&
           gl_str_eq(gl_json_str(j, gl_json_get(j, root, "env_scope"), a), job->env_scope);
}

/* Guests and stopping nodes take over no jobs. */
static bool takes_jobs(const struct gl_json *j, const struct gl_job_record *job, struct gl_arena *a)
{
    gl_str state = gl_json_str(j, gl_json_get(j, gl_json_root(j), "state"), a);

    return !gl_str_is(state, "guest") && !gl_str_is(state, "passive") &&
           !gl_str_is(state, "stopping") && is_in_scope(j, job, a);
}

struct gl_nodes_offer gl_nodes_find_offer(struct gl_arena *a, const struct gl_nodes *n,
                                          const struct gl_job_record *job,
                                          const struct gl_step_spec *spec, gl_str node)
{
    gl_str names[NAMES_MAX];
    size_t total = 0, named_n;
    struct gl_nodes_offer offer = {0};
    struct gl_buf out = {0};
    struct gl_json j;

    for (size_t i = 0; i < n->sessions_n; i++) {
        const struct gl_session_info *s = &n->sessions[i];

        if (status_of(n, s) != GL_NODE_ALIVE || !read_about(s, a, &j) || !offers(&j, spec, a)) {
            continue;
        }
        offer.by_node |= gl_str_eq(s->node, node);
        if (takes_jobs(&j, job, a)) {
            if (total < NAMES_MAX) {
                names[total] = s->node;
            }
            total++;
        }
    }
    named_n = total < NAMES_MAX ? total : NAMES_MAX;
    for (size_t i = 0; i < named_n; i++) {
        const char *gap = i + 1 == total ? " and " : ", ";

        gl_buf_fmt(&out, "%s'%.*s'", i == 0 ? "" : gap, GL_STR_ARG(names[i]));
    }
    if (total > named_n) {
        gl_buf_fmt(&out, " and %zu more", total - named_n);
    }
    offer.names = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return offer;
}

/* ---- where its steps may run ---- */

/* The states of nodes that run attempts for others (core/cluster/other_nodes.c). */
static bool is_ready(gl_str state)
{
    return gl_str_is(state, "ready") || gl_str_is(state, GL_STATE_NO_ROOM);
}

static void read_pools(const struct gl_json *j, struct gl_arena *a, struct gl_place_node *to)
{
    gl_jnode pools = gl_json_get(j, gl_json_root(j), "pools");

    to->pools = GL_NEW_ARRAY(a, struct gl_place_pool, GL_POOLS_MAX);
    for (gl_jnode e = gl_json_first(j, pools); e && to->pools_n < GL_POOLS_MAX;
         e = gl_json_after(j, pools, e)) {
        uint64_t slots = number(j, e, "slots"), in_use = number(j, e, "in_use");

        to->pools[to->pools_n++] = (struct gl_place_pool){
            .name = gl_json_str(j, gl_json_get(j, e, "name"), a),
            .slots = slots < GL_SLOTS_MAX ? (uint32_t)slots : GL_SLOTS_MAX,
            .others = in_use < GL_SLOTS_MAX ? (uint32_t)in_use : GL_SLOTS_MAX};
    }
}

bool gl_nodes_are_placing(struct gl_arena *a, const struct gl_nodes *n,
                          const struct gl_job_record *job)
{
    struct gl_json j;

    for (size_t i = 0; i < n->sessions_n; i++) {
        if (n->sessions[i].dead) {
            continue;
        }
        if (!read_about(&n->sessions[i], a, &j) ||
            (is_in_scope(&j, job, a) && number(&j, gl_json_root(&j), "offers") == 0 &&
             !gl_str_is(gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "state"), a),
                        "passive"))) {
            return false;
        }
    }
    return true;
}

void gl_nodes_read_places(struct gl_arena *a, const struct gl_nodes *n,
                          const struct gl_job_record *job, gl_str owner, struct gl_core_places *ret)
{
    struct gl_place_node *nodes = GL_NEW_ARRAY(a, struct gl_place_node, n->sessions_n + 1);
    const struct gl_session_info *s;
    struct gl_labels labels;
    struct gl_map newest;
    struct gl_json j;
    size_t count = 0;

    *ret = (struct gl_core_places){.nodes = nodes, .is_placing = gl_nodes_are_placing(a, n, job)};
    newest_sessions(n, a, &newest);
    for (size_t i = 0; (s = next(&newest, &i)) != NULL;) {
        struct gl_place_node node = {.id = s->node};
        gl_str state;

        if (status_of(n, s) == GL_NODE_DEAD || !read_about(s, a, &j) || !is_in_scope(&j, job, a)) {
            continue;
        }
        state = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "state"), a);
        if (!gl_str_eq(s->node, owner) &&
            (gl_str_is(state, "guest") || gl_str_is(state, "passive"))) {
            continue; /* they run nothing for others */
        }
        if (gl_str_eq(s->node, owner)) {
            node.takes = !gl_str_is(state, "stopping") && !gl_str_is(state, "passive");
            ret->is_placing &= is_ready(state);
        } else {
            node.takes = is_ready(state) && s->left_ms >= 0 &&
                         (owner.n == 0 || number(&j, gl_json_root(&j), "offers") > 0);
        }
        read_pools(&j, a, &node);
        if (gl_labels_read(&j, gl_json_get(&j, gl_json_root(&j), "labels"), a, &labels)) {
            node.labels = gl_labels_text(&labels, a);
        }
        nodes[count] = node;
        if (gl_str_eq(s->node, owner)) { /* to the front */
            memmove(nodes + 1, nodes, count * sizeof(*nodes));
            nodes[0] = node;
        }
        count++;
    }
    ret->nodes_n = count;
    gl_map_done(&newest);
}

bool gl_nodes_has_successor(struct gl_arena *a, const struct gl_nodes *n, gl_str stack,
                            gl_str env_scope)
{
    /* Without groups, any node that joins can take over. */
    bool found = stack.n == 0 && env_scope.n == 0;

    for (size_t i = 0; i < n->sessions_n; i++) {
        struct gl_json j;

        if (n->sessions[i].dead || !read_about(&n->sessions[i], a, &j)) {
            continue;
        }
        gl_jnode root = gl_json_root(&j);

        if (gl_str_eq(gl_json_str(&j, gl_json_get(&j, root, "stack"), a), stack) &&
            gl_str_eq(gl_json_str(&j, gl_json_get(&j, root, "env_scope"), a), env_scope)) {
            return true;
        }
        found = false;
    }
    return found;
}
