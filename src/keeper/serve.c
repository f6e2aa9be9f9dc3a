#include "keeper/serve.h"

#include <unistd.h>

#include "base/check.h"
#include "keeper/attempt_life.h"

static void reply(struct gl_client *c, const struct gl_keeper_msg *rq, int status,
                  const struct gl_why *why)
{
    struct gl_keeper_msg m = {.type = GL_KEEPER_REPLY, .req = rq->req, .status = status};

    GL_ASSERT(status <= 0);
    if (status < 0) {
        m.text = gl_str_of(why->text);
    }
    gl_client_send(c, &m);
}

/* ---- hello ---- */

/* A node of an earlier incarnation may still be running somewhere. No keeper may obey it any more,
 * so the new number is on disk before WELCOME is sent. The same write says that this keeper is
 * running. */
static int save_incarnation(struct gl_keeper *k, uint64_t incarnation, struct gl_why *why)
{
    if (incarnation < k->epoch.incarnation) {
        return gl_why(
            why, GL_E_STALE,
            "incarnation %llu of the node is outdated: the keeper has seen %llu (if the database "
            "or the file 'node' was removed on purpose, remove keeper/epoch too)",
            (unsigned long long)incarnation, (unsigned long long)k->epoch.incarnation);
    }
    if (incarnation == k->epoch.incarnation && k->epoch_saved) {
        return 0;
    }
    struct gl_epoch e = k->epoch;
    e.incarnation = incarnation;
    e.running = true;
    const char *folder = gl_str_fmt(&k->scratch, "%s/keeper", k->config.data_dir).p;
    if (gl_epoch_save(&e, folder, why) < 0) {
        return GL_E_UNAVAILABLE;
    }
    gl_attempt_life_save_contact(k);
    k->session_until = e.incarnation != k->epoch.incarnation ? 0 : k->session_until;
    k->epoch = e;
    k->epoch_saved = true;
    GL_ASSERT(k->epoch.incarnation == incarnation);
    GL_ASSERT(k->epoch.running);
    return 0;
}

static void on_hello(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    struct gl_why why;
    uint64_t version = gl_keeper_agree(m->version_min, m->version_max, GL_KEEPER_VERSION_MIN,
                                       GL_KEEPER_VERSION_MAX);

    GL_ASSERT(m->type == GL_KEEPER_HELLO);
    if (version == 0) {
        (void)gl_why(&why, GL_E_VERSION,
                     "the keeper speaks versions %d to %d of its protocol, the node %llu to %llu",
                     GL_KEEPER_VERSION_MIN, GL_KEEPER_VERSION_MAX,
                     (unsigned long long)m->version_min, (unsigned long long)m->version_max);
        gl_client_refuse(c, GL_E_VERSION, why.text);
        return;
    }
    int r = k->shutting_down ? gl_why(&why, GL_E_UNAVAILABLE, "the keeper is shutting down")
                             : save_incarnation(k, m->incarnation, &why);
    if (r < 0) {
        gl_client_refuse(c, r, why.text);
        return;
    }
    c->version = version;
    GL_ASSERT(k->epoch_saved);
    GL_ASSERT(k->epoch.incarnation == m->incarnation);
    gl_client_activate(k, c);
    k->orphan_grace_ms = m->orphan_grace_ms > 0 ? m->orphan_grace_ms : 0;
    if (version < GL_KEEPER_VERSION_SESSIONS) {
        k->session_until = INT64_MAX;
    }
    if (m->clock_offset_ms != 0) {
        k->wall_offset = m->clock_offset_ms;
    }
    struct gl_keeper_msg welcome = {
        .type = GL_KEEPER_WELCOME,
        .version_min = version,
        .version_max = GL_KEEPER_VERSION_MAX,
        .features = (k->epoch.cgroup[0] != 0 ? GL_KEEPER_HAS_CGROUP : 0u) |
                    (k->children_fd >= 0 ? GL_KEEPER_HAS_CHILDREN : 0u) |
                    (k->epoch.mark != 0 ? GL_KEEPER_HAS_MARKS : 0u),
        .pid = (uint64_t)getpid(),
        .start = {.epoch = gl_str_of(k->epoch.id)},
    };
    gl_client_send(c, &welcome);
}

/* ---- requests ---- */

/* Is it too late to start? (A known attempt is never started again, so this is only checked for
 * unknown ones.) */
static int check_time(struct gl_keeper *k, const struct gl_exec_start *s, struct gl_why *why)
{
    if (s->start_by > 0 && gl_keeper_wall(k) > s->start_by) {
        return gl_why(why, GL_E_STALE, "the start deadline %lld has passed (now %lld)",
                      (long long)s->start_by, (long long)gl_keeper_wall(k));
    }
    /* Decided in another epoch: the keeper of that epoch may have started it. */
    if (s->epoch.n > 0 && !gl_str_is(s->epoch, k->epoch.id)) {
        return gl_why(why, GL_E_STALE, "the keeper was replaced since this start was decided");
    }
    return 0;
}

/* "step:attempt:n" -> "step:attempt:" */
static gl_str step_part(gl_str attempt)
{
    while (attempt.n > 0 && attempt.p[attempt.n - 1] != ':') {
        attempt.n--;
    }
    return attempt;
}

/* Is an earlier attempt of the same step still running? Attempt 1 has no earlier one. */
static int check_earlier(struct gl_keeper *k, const struct gl_exec_start *s, struct gl_why *why)
{
    gl_str step = step_part(s->key.attempt);
    struct gl_attempt *a;
    bool runs = false;

    GL_ASSERT(s->key.attempt.n > 0);
    if (s->key.attempt.n == step.n + 1 && s->key.attempt.p[step.n] == '1') {
        return 0;
    }
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (a->state != GL_ATTEMPT_ENDED && gl_str_eq(a->key.job, s->key.job) &&
            gl_str_eq(a->key.context, s->key.context) &&
            gl_str_eq(step_part(a->key.attempt), step)) {
            gl_attempt_life_stop(k, a, GL_EXEC_STOPPED);
            runs = true;
        }
    }
    return runs ? gl_why(why, GL_E_UNAVAILABLE, "an earlier attempt of this step is still ending")
                : 0;
}

static int start(struct gl_keeper *k, const struct gl_exec_start *s, struct gl_why *why)
{
    int r = gl_keeper_check_start(s, why);
    if (r < 0) {
        return r;
    }
    if (s->driver.n > 0 && !gl_str_is(s->driver, s->is_worker ? "worker" : "process")) {
        return gl_why(why, GL_E_INVALID, "unknown driver '%.*s'", GL_STR_ARG(s->driver));
    }
    r = gl_attempt_raise_floor(k, &s->key, s->token, why);
    struct gl_attempt *known = r < 0 ? NULL : gl_attempt_find(k, &s->key);
    if (known != NULL) {
        gl_attempt_life_set_node(k, known);
    }
    if (r < 0 || known != NULL) {
        return r;
    }
    r = check_time(k, s, why);
    if (r == 0) {
        r = check_earlier(k, s, why);
    }
    return r < 0 ? r : gl_attempt_life_begin(k, s, why);
}

/* Raise the floor and look up the attempt a request is about. *ret stays NULL if it is unknown. */
static int find(struct gl_keeper *k, const struct gl_exec_start *s, struct gl_attempt **ret,
                struct gl_why *why)
{
    int r = gl_keeper_check_key(&s->key, why);
    if (r == 0) {
        r = gl_attempt_raise_floor(k, &s->key, s->token, why);
    }
    if (r == 0) {
        *ret = gl_attempt_find(k, &s->key);
    }
    return r;
}

static void on_start(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    struct gl_why why;
    int r = start(k, &m->start, &why);

    GL_ASSERT(m->type == GL_KEEPER_START);
    reply(c, m, r, &why);
}

static void on_attach(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    struct gl_why why;
    struct gl_attempt *found = NULL;
    int r = find(k, &m->start, &found, &why);

    GL_ASSERT(m->type == GL_KEEPER_ATTACH);
    if (r < 0) {
        reply(c, m, r, &why);
        return;
    }
    if (found != NULL && found->state == GL_ATTEMPT_ENDED) {
        gl_client_send_end(c, found, m->req);
        return;
    }
    struct gl_keeper_msg answer = {
        .type = GL_KEEPER_REPLY, .state = GL_EXEC_RUNNING, .req = m->req};
    if (found != NULL) {
        gl_attempt_life_set_node(k, found);
    } else {
        /* A keeper that is shutting down has forgotten the attempts it stopped: it proves
         * nothing. */
        bool proof = gl_str_is(m->start.epoch, k->epoch.id) && !k->lost;
        answer.state = proof ? GL_EXEC_NEVER : GL_EXEC_LOST;
    }
    gl_client_send(c, &answer);
}

static void on_stop(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    struct gl_why why;
    struct gl_attempt *found = NULL;
    int r = find(k, &m->start, &found, &why);

    GL_ASSERT(m->type == GL_KEEPER_STOP);
    if (r == 0 && found != NULL) {
        if (m->start.grace_ms > 0) {
            gl_attempt_life_limit_grace(k, found, m->start.grace_ms);
        }
        gl_attempt_life_stop(k, found, GL_EXEC_STOPPED);
    }
    reply(c, m, r, &why);
}

static void on_ack(struct gl_keeper *k, const struct gl_keeper_msg *m)
{
    struct gl_attempt *found = NULL;

    GL_ASSERT(m->type == GL_KEEPER_ACK);
    if (find(k, &m->start, &found, NULL) == 0 && found != NULL) {
        gl_attempt_life_ack(k, found, m->status != 0);
    }
}

static void on_list(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    struct gl_attempt *one;

    GL_ASSERT(m->type == GL_KEEPER_LIST);
    for (size_t i = 0; (one = gl_map_next(&k->attempts, &i)) != NULL;) {
        struct gl_keeper_msg info = {
            .type = GL_KEEPER_INFO,
            .req = m->req,
            .start = {.key = one->key, .token = one->token},
            .state = one->state == GL_ATTEMPT_ENDED ? GL_EXEC_ENDED : GL_EXEC_RUNNING,
        };
        gl_client_send(c, &info);
    }
    reply(c, m, 0, NULL);
}

static void dispatch(struct gl_keeper *k, struct gl_client *c, const struct gl_keeper_msg *m)
{
    GL_ASSERT(k->active == c);
    switch (m->type) {
    case GL_KEEPER_START:
        on_start(k, c, m);
        break;
    case GL_KEEPER_ATTACH:
        on_attach(k, c, m);
        break;
    case GL_KEEPER_STOP:
        on_stop(k, c, m);
        break;
    case GL_KEEPER_ACK:
        on_ack(k, m);
        break;
    case GL_KEEPER_LIST:
        on_list(k, c, m);
        break;
    case GL_KEEPER_PING:
        if (m->session_until != 0) { /* 0: only a sign of life */
            k->session_until = m->session_until - k->wall_offset;
        }
        break;
    case GL_KEEPER_HELLO:
    case GL_KEEPER_WELCOME:
    case GL_KEEPER_REFUSED:
    case GL_KEEPER_REPLY:
    case GL_KEEPER_INFO:
    case GL_KEEPER_ENDED:
    case GL_KEEPER_BEACON:
    case GL_KEEPER_BEGUN:
    case GL_KEEPER_LINE:
        gl_client_refuse(c, GL_E_INVALID, "this message is not valid for a keeper");
        break;
    }
}

void gl_serve_message(struct gl_keeper *k, struct gl_client *c, gl_str message)
{
    struct gl_why why;
    struct gl_keeper_msg m;
    gl_arena_reset(&k->scratch);
    if (gl_keeper_decode(&m, message, &k->scratch, &why) < 0) {
        gl_client_refuse(c, GL_E_INVALID, why.text);
        return;
    }
    if (k->active == c) {
        k->contact_at = k->now;
        dispatch(k, c, &m);
    } else if (m.type == GL_KEEPER_HELLO) {
        on_hello(k, c, &m);
    } else {
        gl_client_refuse(c, GL_E_STATE, "expected HELLO first");
    }
}
