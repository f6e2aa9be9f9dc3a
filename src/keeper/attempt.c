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

void gl_attempt_update_job_folder(struct gl_keeper *k, struct gl_floor *f)
{
    bool listed = !gl_list_empty(&f->empty);
    bool empty = f->attempts_n == 0 && f->has_folder && !f->has_files && f->cached_n <= 1;
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
    GL_ASSERT(f->attempts_n == 0);
    gl_list_remove(&f->link);
    k->floors_idle_n--;
    gl_dir_cache_forget(k, f);
    f->has_folder = false;
    gl_attempt_update_job_folder(k, f);
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
    GL_ASSERT(f->attempts_n > 0 || k->floors_idle_n > 0);
    if (f->attempts_n++ == 0) {
        gl_list_remove(&f->link);
        k->floors_idle_n--;
        gl_attempt_update_job_folder(k, f);
    }
    GL_ASSERT(f->attempts_n > 0);
}

static void release_floor(struct gl_keeper *k, struct gl_floor *f)
{
    GL_ASSERT(f->attempts_n > 0);
    if (--f->attempts_n == 0) {
        gl_list_push(&k->floors_idle, &f->link);
        k->floors_idle_n++;
        gl_attempt_update_job_folder(k, f);
        if (k->floors_idle_n > GL_KEEPER_FLOORS_MAX) {
            forget_floor(k, GL_CONTAINER(gl_list_first(&k->floors_idle), struct gl_floor, link));
        }
    }
}

int gl_attempt_raise_floor(struct gl_keeper *k, const struct gl_attempt_key *key, uint64_t token,
                           struct gl_why *reterr_why)
{
    gl_str name = job_key(&k->scratch, key);
    struct gl_floor *f = gl_map_find(&k->floors, name);
    if (f == NULL) {
        f = new_floor(k, name);
    }
    if (token < f->token) {
        return gl_why(
            reterr_why, GL_E_STALE, "token %llu for job %.*s is stale: %llu has been seen",
            (unsigned long long)token, GL_STR_ARG(key->job), (unsigned long long)f->token);
    }
    f->token = token;
    if (f->attempts_n == 0) { /* just used: the last to be forgotten */
        gl_list_remove(&f->link);
        gl_list_push(&k->floors_idle, &f->link);
    }
    GL_ASSERT(f->token == token);
    return 0;
}

/* ---- attempts ---- */

static gl_str attempt_id(struct gl_arena *a, const struct gl_attempt_key *key)
{
    return gl_rundir_join(a, job_key(a, key), key->attempt);
}

struct gl_attempt *gl_attempt_find(struct gl_keeper *k, const struct gl_attempt_key *key)
{
    return gl_map_find(&k->attempts, attempt_id(&k->scratch, key));
}

/* The parts of the key are slices of the id. */
static void set_key(struct gl_attempt *a, const struct gl_attempt_key *key)
{
    const char *p = a->id.p;
    a->key.context = (gl_str){.p = p, .n = key->context.n};
    p += key->context.n + 1;
    a->key.job = (gl_str){.p = p, .n = key->job.n};
    p += key->job.n + 1;
    a->key.attempt = (gl_str){.p = p, .n = key->attempt.n};
    GL_ASSERT(a->key.attempt.p + a->key.attempt.n == a->id.p + a->id.n);
}

struct gl_attempt *gl_attempt_new(struct gl_keeper *k, const struct gl_attempt_key *key,
                                  uint64_t token, enum gl_attempt_state state)
{
    gl_str id = attempt_id(&k->scratch, key);
    struct gl_attempt *a = gl_mem_alloc(sizeof(*a) + id.n);

    GL_ASSERT(state == GL_ATTEMPT_RUNNING || state == GL_ATTEMPT_ENDED);
    memcpy(a->text, id.p, id.n);
    a->id = (gl_str){.p = a->text, .n = id.n};
    set_key(a, key);
    a->state = state;
    a->token = token;
    a->deadline = a->kill_at = a->beacon_at = a->clear_at = INT64_MAX;
    gl_list_init(&a->link);
    gl_list_init(&a->adopted);
    gl_capture_init(&a->capture);
    a->floor = gl_map_find(&k->floors, job_key(&k->scratch, key));
    GL_ASSERT(a->floor != NULL);
    hold_floor(k, a->floor);
    gl_map_add(&k->attempts, a->id, a);
    k->running_n += state == GL_ATTEMPT_RUNNING;
    if (state == GL_ATTEMPT_ENDED) {
        gl_list_push(&k->unreported, &a->link);
    }
    GL_ASSERT(a->floor->attempts_n > 0);
    GL_ASSERT(a->floor->token >= token);
    return a;
}

void gl_attempt_move(struct gl_keeper *k, struct gl_attempt *a, enum gl_attempt_state next)
{
    GL_ASSERT(next < GL_COUNT(states));
    GL_ASSERT(states[a->state].next & GL_BIT(next));
    GL_ASSERT(k->running_n > 0 || a->state != GL_ATTEMPT_RUNNING);
    k->running_n -= a->state == GL_ATTEMPT_RUNNING;
    a->state = next;
    gl_list_remove(&a->link);
    if (next == GL_ATTEMPT_CLEARING) {
        gl_list_push(&k->clearing, &a->link);
    } else if (next == GL_ATTEMPT_ENDING) {
        GL_ASSERT(gl_list_empty(&a->adopted));
        gl_keeper_clear_timer(k, &a->timer);
        gl_list_push(&k->ending, &a->link);
    } else if (next == GL_ATTEMPT_ENDED) {
        gl_list_push(&k->unreported, &a->link);
    }
    GL_ASSERT(a->state == next);
}

size_t gl_attempt_bytes(const struct gl_attempt *a)
{
    size_t worker_bytes = a->worker != NULL ? a->worker->out.n + a->worker->err.n : 0;
    return GL_ATTEMPT_BYTES + a->output.n + worker_bytes;
}

struct gl_keeper_msg gl_attempt_begun(const struct gl_keeper *k, const struct gl_attempt *a)
{
    return (struct gl_keeper_msg){
        .type = GL_KEEPER_BEGUN,
        .start = {.key = a->key, .token = a->token, .is_worker = a->worker != NULL},
        .pid = (uint64_t)a->proc.pid,
        .boot = gl_str_of(k->boot),
        .ticks_min = a->ticks_min,
        .ticks_max = a->ticks_max,
        .mark = a->mark,
    };
}

struct gl_keeper_msg gl_attempt_ended(const struct gl_attempt *a)
{
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_ENDED,
        .start = {.key = a->key, .token = a->token},
        .result = a->result,
        .output_source = a->output_source,
    };

    GL_ASSERT(a->state >= GL_ATTEMPT_ENDING);
    m.result.output = gl_buf_view(&a->output);
    m.result.error = gl_buf_view(&a->error);
    if (a->worker != NULL) {
        m.output_source = GL_KEEPER_FROM_WORKER;
        m.worker = gl_worker_lines_result(a->worker);
    }
    return m;
}

static void free_attempt(struct gl_keeper *k, struct gl_attempt *a)
{
    gl_list_remove(&a->link);
    gl_capture_done(k, &a->capture);
    gl_redact_put(&k->redactors, a->redactor);
    gl_worker_lines_free(k, a->worker);
    gl_buf_done(&a->output);
    gl_buf_done(&a->error);
    gl_mem_free(a);
}

void gl_attempt_remove(struct gl_keeper *k, struct gl_attempt *a)
{
    GL_ASSERT(k->running_n > 0 || a->state != GL_ATTEMPT_RUNNING);
    GL_ASSERT(gl_list_empty(&a->adopted));
    k->running_n -= a->state == GL_ATTEMPT_RUNNING;
    gl_keeper_clear_timer(k, &a->timer);
    (void)gl_map_remove(&k->attempts, a->id);
    release_floor(k, a->floor);
    gl_list_remove(&a->link);
    gl_list_push(&k->removed, &a->link);
    GL_ASSERT(!gl_heap_has(&a->timer.item));
}

void gl_attempt_free_removed(struct gl_keeper *k)
{
    while (!gl_list_empty(&k->removed)) {
        free_attempt(k, GL_CONTAINER(gl_list_first(&k->removed), struct gl_attempt, link));
    }
    GL_ASSERT(gl_list_empty(&k->removed));
}

void gl_attempt_free_all(struct gl_keeper *k)
{
    struct gl_attempt *a;
    gl_attempt_free_removed(k);
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        free_attempt(k, a);
    }
    struct gl_floor *f;
    for (size_t i = 0; (f = gl_map_next(&k->floors, &i)) != NULL;) {
        gl_mem_free(f);
    }
    gl_map_done(&k->attempts);
    gl_map_done(&k->floors);
}
