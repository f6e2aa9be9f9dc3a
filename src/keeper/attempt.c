#include "keeper/attempt.h"

#include "base/check.h"
#include "base/mem.h"
#include "keeper/dir_cache.h"
#include "keeper/rundir.h"

static const struct {
    const char *word;
    uint32_t next;
} states[] = {
#define X(name, word, next) [GL_ATTEMPT_##name] = {word, next},
    GL_ATTEMPT_STATES(X)
#undef X
};

/* ---- floors ---- */

static gl_str job_key(struct gl_arena *a, const struct gl_attempt_key *key)
{
    return gl_rundir_join(a, key->context, key->job);
}

void gl_attempt_review(struct gl_keeper *k, struct gl_floor *f)
{
    bool listed = !gl_list_empty(&f->empty);
    bool empty = f->charges_n == 0 && f->has_folder && !f->has_left && f->shelved_n <= 1;
    if (empty && !listed) {
        gl_list_push(&k->floors_empty, &f->empty);
        k->floors_empty_n++;
    } else if (!empty && listed) {
        gl_list_remove(&f->empty);
        k->floors_empty_n--;
    }
}

static void forget_floor(struct gl_keeper *k, struct gl_floor *f)
{
    GL_ASSERT(k->floors_idle_n > 0);
    GL_ASSERT(f->charges_n == 0);
    gl_list_remove(&f->link);
    k->floors_idle_n--;
    gl_dir_cache_forget(k, f);
    f->has_folder = false;
    gl_attempt_review(k, f);
    (void)gl_map_remove(&k->floors, f->key);
    gl_mem_free(f);
}

static struct gl_floor *new_floor(struct gl_keeper *k, gl_str key)
{
    GL_ASSERT(key.n > 0);
    if (k->floors_idle_n >= GL_KEEPER_FLOORS_MAX) {
        forget_floor(k, GL_CONTAINER(gl_list_first(&k->floors_idle), struct gl_floor, link));
    }
    struct gl_floor *f = gl_mem_alloc(sizeof(*f) + key.n);
    memcpy(f->text, key.p, key.n);
    f->key = (gl_str){.p = f->text, .n = key.n};
    gl_list_init(&f->link);
    gl_list_init(&f->empty);
    gl_list_push(&k->floors_idle, &f->link);
    k->floors_idle_n++;
    gl_map_add(&k->floors, f->key, f);
    GL_ASSERT(k->floors_idle_n <= GL_KEEPER_FLOORS_MAX);
    return f;
}

static void hold_floor(struct gl_keeper *k, struct gl_floor *f)
{
    GL_ASSERT(f->charges_n > 0 || k->floors_idle_n > 0);
    if (f->charges_n++ == 0) {
        gl_list_remove(&f->link);
        k->floors_idle_n--;
        gl_attempt_review(k, f);
    }
    GL_ASSERT(f->charges_n > 0);
}

static void release_floor(struct gl_keeper *k, struct gl_floor *f)
{
    GL_ASSERT(f->charges_n > 0);
    if (--f->charges_n == 0) {
        gl_list_push(&k->floors_idle, &f->link);
        k->floors_idle_n++;
        gl_attempt_review(k, f);
        if (k->floors_idle_n > GL_KEEPER_FLOORS_MAX) {
            forget_floor(k, GL_CONTAINER(gl_list_first(&k->floors_idle), struct gl_floor, link));
        }
    }
}

int gl_attempt_raise(struct gl_keeper *k, const struct gl_attempt_key *key, uint64_t token,
                     struct gl_why *reterr_why)
{
    gl_str name = job_key(&k->scratch, key);
    struct gl_floor *f = gl_map_find(&k->floors, name);
    if (f == NULL) {
        f = new_floor(k, name);
    }
    if (token < f->token) {
        return gl_why(
            reterr_why, GL_E_STALE, "token %llu for job %.*s is old: somebody came with %llu",
            (unsigned long long)token, GL_STR_ARG(key->job), (unsigned long long)f->token);
    }
    f->token = token;
    if (f->charges_n == 0) { /* used now: last to be forgotten */
        gl_list_remove(&f->link);
        gl_list_push(&k->floors_idle, &f->link);
    }
    GL_ASSERT(f->token == token);
    return 0;
}

/* ---- charges ---- */

static gl_str charge_id(struct gl_arena *a, const struct gl_attempt_key *key)
{
    return gl_rundir_join(a, job_key(a, key), key->attempt);
}

struct gl_attempt *gl_attempt_find(struct gl_keeper *k, const struct gl_attempt_key *key)
{
    return gl_map_find(&k->charges, charge_id(&k->scratch, key));
}

/* The parts of the key are slices of the id. */
static void set_key(struct gl_attempt *c, const struct gl_attempt_key *key)
{
    const char *p = c->id.p;
    c->key.context = (gl_str){.p = p, .n = key->context.n};
    p += key->context.n + 1;
    c->key.job = (gl_str){.p = p, .n = key->job.n};
    p += key->job.n + 1;
    c->key.attempt = (gl_str){.p = p, .n = key->attempt.n};
    GL_ASSERT(c->key.attempt.p + c->key.attempt.n == c->id.p + c->id.n);
}

struct gl_attempt *gl_attempt_new(struct gl_keeper *k, const struct gl_attempt_key *key,
                                  uint64_t token, enum gl_attempt_state state)
{
    gl_str id = charge_id(&k->scratch, key);
    struct gl_attempt *c = gl_mem_alloc(sizeof(*c) + id.n);

    GL_ASSERT(state == GL_ATTEMPT_RUNNING || state == GL_ATTEMPT_ENDED);
    memcpy(c->text, id.p, id.n);
    c->id = (gl_str){.p = c->text, .n = id.n};
    set_key(c, key);
    c->state = state;
    c->token = token;
    c->deadline = c->kill_at = c->beacon_at = c->clear_at = INT64_MAX;
    gl_list_init(&c->link);
    gl_list_init(&c->adopted);
    gl_capture_init(&c->capture);
    c->floor = gl_map_find(&k->floors, job_key(&k->scratch, key));
    GL_ASSERT(c->floor != NULL);
    hold_floor(k, c->floor);
    gl_map_add(&k->charges, c->id, c);
    k->running_n += state == GL_ATTEMPT_RUNNING;
    if (state == GL_ATTEMPT_ENDED) {
        gl_list_push(&k->unsaid, &c->link);
    }
    GL_ASSERT(c->floor->charges_n > 0);
    GL_ASSERT(c->floor->token >= token);
    return c;
}

void gl_attempt_move(struct gl_keeper *k, struct gl_attempt *c, enum gl_attempt_state next)
{
    GL_ASSERT(next < GL_COUNT(states));
    GL_ASSERT(states[c->state].next & GL_BIT(next));
    GL_ASSERT(k->running_n > 0 || c->state != GL_ATTEMPT_RUNNING);
    k->running_n -= c->state == GL_ATTEMPT_RUNNING;
    c->state = next;
    gl_list_remove(&c->link);
    if (next == GL_ATTEMPT_CLEARING) {
        gl_list_push(&k->clearing, &c->link);
    } else if (next == GL_ATTEMPT_ENDING) {
        GL_ASSERT(gl_list_empty(&c->adopted));
        gl_keeper_clear_timer(k, &c->timer);
        gl_list_push(&k->ending, &c->link);
    } else if (next == GL_ATTEMPT_ENDED) {
        gl_list_push(&k->unsaid, &c->link);
    }
    GL_ASSERT(c->state == next);
}

size_t gl_attempt_bytes(const struct gl_attempt *c)
{
    size_t heard = c->heard != NULL ? c->heard->out.n + c->heard->err.n : 0;
    return GL_ATTEMPT_BYTES + c->output.n + heard;
}

struct gl_keeper_msg gl_attempt_begun(const struct gl_keeper *k, const struct gl_attempt *c)
{
    return (struct gl_keeper_msg){
        .type = GL_KEEPER_BEGUN,
        .start = {.key = c->key, .token = c->token, .is_worker = c->heard != NULL},
        .pid = (uint64_t)c->proc.pid,
        .boot = gl_str_of(k->boot),
        .ticks_min = c->ticks_min,
        .ticks_max = c->ticks_max,
        .mark = c->mark,
    };
}

struct gl_keeper_msg gl_attempt_ended(const struct gl_attempt *c)
{
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_ENDED,
        .start = {.key = c->key, .token = c->token},
        .result = c->result,
        .output_source = c->output_source,
    };

    GL_ASSERT(c->state >= GL_ATTEMPT_ENDING);
    m.result.output = gl_buf_view(&c->output);
    m.result.error = gl_buf_view(&c->error);
    if (c->heard != NULL) {
        m.output_source = GL_KEEPER_FROM_WORKER;
        m.worker = gl_worker_lines_result(c->heard);
    }
    return m;
}

static void free_charge(struct gl_keeper *k, struct gl_attempt *c)
{
    gl_list_remove(&c->link);
    gl_capture_done(k, &c->capture);
    gl_redact_put(&k->redactors, c->redactor);
    gl_worker_lines_free(k, c->heard);
    gl_buf_done(&c->output);
    gl_buf_done(&c->error);
    gl_mem_free(c);
}

void gl_attempt_bury(struct gl_keeper *k, struct gl_attempt *c)
{
    GL_ASSERT(k->running_n > 0 || c->state != GL_ATTEMPT_RUNNING);
    GL_ASSERT(gl_list_empty(&c->adopted));
    k->running_n -= c->state == GL_ATTEMPT_RUNNING;
    gl_keeper_clear_timer(k, &c->timer);
    (void)gl_map_remove(&k->charges, c->id);
    release_floor(k, c->floor);
    gl_list_remove(&c->link);
    gl_list_push(&k->buried, &c->link);
    GL_ASSERT(!gl_heap_has(&c->timer.item));
}

void gl_attempt_free_buried(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->buried)) {
        free_charge(k, GL_CONTAINER(gl_list_first(&k->buried), struct gl_attempt, link));
    }
    GL_ASSERT(gl_list_empty(&k->buried));
}

void gl_attempt_free_all(struct gl_keeper *k)
{
    struct gl_attempt *c;
    gl_attempt_free_buried(k);
    for (size_t i = 0; (c = gl_map_next(&k->charges, &i)) != NULL;) {
        free_charge(k, c);
    }
    struct gl_floor *f;
    for (size_t i = 0; (f = gl_map_next(&k->floors, &i)) != NULL;) {
        gl_mem_free(f);
    }
    gl_map_done(&k->charges);
    gl_map_done(&k->floors);
}
