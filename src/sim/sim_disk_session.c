/* sim_disk_session.c - sessions on a simulated disk: which are alive, and until when. */
#include "sim/sim_disk_state.h"

struct sim_disk_session *sim_disk_session_find(const struct sim_disk *d, gl_str id)
{
    return gl_map_find(&d->sessions, id);
}

/* Checkers remember a session permanently, the store does not. */
static bool is_forgotten(const struct sim_disk *d, const struct sim_disk_session *s)
{
    return s->dead && d->sessions_kept_ms != 0 &&
           sim_disk_time(d) - s->died_at > d->sessions_kept_ms;
}

static struct sim_disk_session *find_known(const struct sim_disk *d, gl_str id)
{
    struct sim_disk_session *s = sim_disk_session_find(d, id);
    return s == NULL || is_forgotten(d, s) ? NULL : s;
}

bool sim_disk_is_dead(const struct sim_disk *d, gl_str session)
{
    const struct sim_disk_session *s = find_known(d, session);
    return session.n > 0 && (s == NULL || s->dead);
}

bool sim_disk_is_alive(const struct sim_disk *d, gl_str session)
{
    const struct sim_disk_session *s = find_known(d, session);
    return s != NULL && !s->dead;
}

static void kill(const struct sim_disk *d, struct sim_disk_session *s)
{
    s->dead = true;
    s->died_at = sim_disk_time(d);
}

static gl_ms deadline_in(const struct sim_disk *d, gl_ms ttl_ms)
{
    return d->shared ? sim_disk_time(d) + ttl_ms : INT64_MAX;
}

struct sim_disk_session *sim_disk_session_open(struct sim_disk *d,
                                               const struct gl_session_options *wish)
{
    uint64_t incarnation = 1;
    struct sim_disk_session *old;
    for (size_t i = 0; (old = gl_map_next(&d->sessions, &i)) != NULL;) {
        bool same = gl_str_eq(old->node, wish->node);
        if (!old->dead && (same || !d->shared)) {
            kill(d, old);
        }
        if (same && old->incarnation >= incarnation) {
            incarnation = old->incarnation + 1;
        }
    }
    struct gl_buf id = {0};
    gl_buf_fmt(&id, "%.*s#%llu.%.*s", GL_STR_ARG(wish->node), (unsigned long long)incarnation,
               GL_STR_ARG(wish->nonce));
    struct sim_disk_session *s = gl_mem_alloc(sizeof(*s) + id.n + wish->node.n);
    char *at = (char *)(s + 1);
    s->id = sim_disk_text(&at, gl_buf_view(&id));
    s->node = sim_disk_text(&at, wish->node);
    s->incarnation = incarnation;
    s->deadline = deadline_in(d, wish->ttl_ms);
    gl_buf_str(&s->about, wish->about);
    gl_map_add(&d->sessions, s->id, s);
    gl_buf_done(&id);
    return s;
}

int sim_disk_session_renew(struct sim_disk *d, gl_str id, gl_ms ttl_ms, gl_str about)
{
    struct sim_disk_session *s = find_known(d, id);
    if (s == NULL || s->dead) {
        return GL_E_GONE;
    }
    sim_disk_tail_begin(d, id, 0, true);
    sim_disk_tail_session(d, s);
    s->deadline = deadline_in(d, ttl_ms);
    gl_buf_reset(&s->about);
    gl_buf_str(&s->about, about);
    if (d->watch.on_renewed != NULL) {
        d->watch.on_renewed(d->watch.owner, s);
    }
    return 0;
}

int sim_disk_session_end(struct sim_disk *d, gl_str id)
{
    struct sim_disk_session *s = find_known(d, id);
    if (s == NULL) {
        return GL_E_GONE;
    }
    if (!s->dead) {
        sim_disk_tail_begin(d, id, 0, false);
        sim_disk_tail_session(d, s);
        kill(d, s);
    }
    return 0;
}

int sim_disk_session_dead(struct sim_disk *d, gl_str id, bool declare, bool *ret_dead)
{
    struct sim_disk_session *s = find_known(d, id);
    if (s == NULL) {
        *ret_dead = true;
        return 0;
    }
    if (declare && !s->dead && s->deadline < sim_disk_time(d)) {
        sim_disk_tail_begin(d, (gl_str){0}, 0, false);
        sim_disk_tail_session(d, s);
        kill(d, s);
        if (d->watch.on_declared != NULL) {
            d->watch.on_declared(d->watch.owner, s->node);
        }
    }
    *ret_dead = s->dead;
    return 0;
}

static struct gl_session_info info_of(const struct sim_disk *d, const struct sim_disk_session *s,
                                      struct gl_arena *a)
{
    return (struct gl_session_info){
        .id = gl_str_dup(a, s->id),
        .incarnation = s->incarnation,
        .node = gl_str_dup(a, s->node),
        .about = gl_str_dup(a, gl_buf_view(&s->about)),
        .left_ms = s->deadline == INT64_MAX ? INT64_MAX : s->deadline - sim_disk_time(d),
        .dead = s->dead};
}

const struct gl_session_info *sim_disk_session_list(const struct sim_disk *d, struct gl_arena *a,
                                                    size_t *ret_n)
{
    size_t all = gl_map_count(&d->sessions);
    size_t cap = all < GL_SESSIONS_LISTED ? all : GL_SESSIONS_LISTED;
    struct gl_session_info *out = GL_NEW_ARRAY(a, struct gl_session_info, cap + 1);
    const struct sim_disk_session **dead =
        GL_NEW_ARRAY(a, const struct sim_disk_session *, all + 1);
    size_t n = 0;
    size_t dead_n = 0;
    const struct sim_disk_session *s;
    for (size_t i = 0; (s = gl_map_next(&d->sessions, &i)) != NULL;) {
        if (is_forgotten(d, s)) {
            continue;
        }
        if (s->dead) {
            dead[dead_n++] = s;
        } else if (n < cap) {
            out[n++] = info_of(d, s, a);
        }
    }
    for (; n < cap && dead_n > 0; dead_n--) { /* newest first */
        out[n++] = info_of(d, dead[dead_n - 1], a);
    }
    *ret_n = n;
    return out;
}
