/* check_sent.c - a message from outside is delivered once: a message whose sending was
 * acknowledged is queued, or a dead letter, and none exists twice, however often a node died
 * meanwhile. A redriven dead letter is queued in the same transaction, unchanged, and is no
 * longer dead. A job counts its dead letters correctly. */
#include <stdio.h>

#include "base/mem.h"
#include "model/bundle/agent.h"
#include "model/bundle/message.h"
#include "sim/sim_checks.h"

enum { MOVES_MAX = 64 };

struct sent_message { /* "<job> post-<n>" */
    int births;
    char key[];
};

struct dead_job { /* the dead letters of a job */
    uint32_t n;
    char id[GL_ULID_BYTES + 1];
};

struct move { /* a queued message or dead letter that is added or removed in this transaction */
    gl_str type, from, to, body;
    uint64_t number;
    bool is_dead, comes;
};

struct sent_state {
    struct gl_map sent, jobs;
    bool is_made;
    struct move moves[MOVES_MAX];
    size_t moves_n;
    gl_str texts[MOVES_MAX];          /* records "message" written in this transaction, ... */
    uint64_t text_numbers[MOVES_MAX]; /* ... and the messages they belong to */
    size_t texts_n;
};

static void make(struct sent_state *s)
{
    if (!s->is_made) {
        gl_map_init(&s->sent);
        gl_map_init(&s->jobs);
        s->is_made = true;
    }
}

static struct sent_message *sent_message_of(struct sent_state *s, gl_str job, gl_str type)
{
    char key[96];
    (void)snprintf(key, sizeof(key), "%.*s %.*s", GL_STR_ARG(job), GL_STR_ARG(type));
    struct sent_message *p = gl_map_find(&s->sent, gl_str_of(key));
    if (p == NULL) {
        p = gl_mem_alloc(sizeof(*p) + strlen(key) + 1);
        memcpy(p->key, key, strlen(key) + 1);
        gl_map_add(&s->sent, gl_str_of(p->key), p);
    }
    return p;
}

static struct dead_job *dead_of(struct sent_state *s, gl_str job)
{
    struct dead_job *d = gl_map_find(&s->jobs, job);
    if (d == NULL) {
        d = gl_mem_alloc(sizeof(*d));
        (void)snprintf(d->id, sizeof(d->id), "%.*s", GL_STR_ARG(job));
        gl_map_add(&s->jobs, gl_str_of(d->id), d);
    }
    return d;
}

static gl_str text_of(struct sim_checks *c, const struct sent_state *s, const struct gl_record *r,
                      uint64_t number, const struct gl_json *j)
{
    gl_jnode n = gl_json_get(j, gl_json_root(j), "message");
    bool is_large = gl_json_get(j, gl_json_root(j), "large") != NULL;
    if (!is_large && n != NULL && gl_json_is(n, GL_JSON_OBJECT)) {
        return gl_json_raw(j, n);
    }
    for (size_t i = 0; i < s->texts_n; i++) {
        if (s->text_numbers[i] == number) {
            return s->texts[i];
        }
    }
    const struct sim_disk_record *there =
        sim_disk_peek(c->disk, SIM_CONTEXT, GL_S("message"), r->id);
    return there != NULL ? there->value : GL_S("null");
}

static void note(struct sim_checks *c, struct sent_state *s, const struct gl_record *r,
                 bool is_dead, bool comes)
{
    struct gl_json j;
    struct gl_message m = {0};
    struct gl_body_ref ref;
    struct move *x = &s->moves[s->moves_n];
    gl_str digits, value = gl_str_dup(&c->arena, r->value);
    if (s->moves_n == MOVES_MAX ||
        gl_json_parse(&j, value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    gl_jnode root = gl_json_root(&j);
    *x = (struct move){.is_dead = is_dead, .comes = comes};
    (void)gl_str_cut(r->id, '/', &digits);
    (void)gl_str_u64(digits, &x->number);
    x->type = gl_json_str(&j, gl_json_get(&j, root, "type"), &c->arena);
    x->from = gl_json_str(&j, gl_json_get(&j, root, "from"), &c->arena);
    x->to = gl_json_str(&j, gl_json_get(&j, root, "to"), &c->arena);
    if (gl_message_read(gl_str_dup(&c->arena, text_of(c, s, r, x->number, &j)), &c->arena, &m,
                        NULL) == 0) {
        bool is_elsewhere = m.body.n == 0 && gl_message_body_ref(m.artifacts, &c->arena, &ref);
        x->body =
            is_elsewhere ? ref.sha256 : m.body; /* check_bodies.c checks that the body exists */
    }
    s->moves_n++;
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct sent_state *s = me;
    bool is_dead = gl_str_is(before->kind, "deadletter");
    gl_str digits;
    if (ch->job->flow->bundle == NULL) {
        return;
    }
    make(s);
    if (gl_str_is(before->kind, "message") && after->rev != 0 && s->texts_n < MOVES_MAX) {
        (void)gl_str_cut(after->id, '/', &digits);
        (void)gl_str_u64(digits, &s->text_numbers[s->texts_n]);
        s->texts[s->texts_n++] = gl_str_dup(&c->arena, after->value);
    } else if ((is_dead || gl_str_is(before->kind, "letter")) &&
               (before->rev == 0) != (after->rev == 0)) {
        note(c, s, after->rev != 0 ? after : before, is_dead, after->rev != 0);
    }
}

static bool is_sent(const struct move *x)
{
    return gl_str_is(x->from, "sim") && gl_str_starts(x->type, GL_S("post-"));
}

/* One is removed: has it become the one that was added? */
static bool becomes(const struct move *gone, const struct move *come)
{
    bool kin = gone->is_dead || gone->number == come->number; /* else: handled, and sent on */
    return come->comes && !gone->comes && kin && (gone->is_dead || come->is_dead) &&
           gl_str_eq(gone->type, come->type) && gl_str_eq(gone->from, come->from) &&
           gl_str_eq(gone->to, come->to) && gl_str_eq(gone->body, come->body);
}

static const struct move *other_end(const struct sent_state *s, const struct move *x)
{
    for (size_t i = 0; i < s->moves_n; i++) {
        if (x->comes ? becomes(&s->moves[i], x) : becomes(x, &s->moves[i])) {
            return &s->moves[i];
        }
    }
    return NULL;
}

static void judge(struct sim_checks *c, struct sent_state *s, const struct sim_change *ch)
{
    struct dead_job *d = dead_of(s, ch->job->id);
    for (size_t i = 0; i < s->moves_n; i++) {
        const struct move *x = &s->moves[i];
        d->n += x->is_dead ? (x->comes ? 1 : -1u) : 0;
        if (x->is_dead && !x->comes && other_end(s, x) == NULL) {
            sim_world_fail(c->world,
                           "sent: dead letter %llu of job %.*s is gone and was not redriven",
                           (unsigned long long)x->number, GL_STR_ARG(ch->job->id));
        }
        if (!is_sent(x) || !x->comes || other_end(s, x) != NULL) {
            continue;
        }
        if (++sent_message_of(s, ch->job->id, x->type)->births > 1) {
            sim_world_fail(c->world, "sent: message %.*s of job %.*s exists twice",
                           GL_STR_ARG(x->type), GL_STR_ARG(ch->job->id));
        }
    }
    if (s->moves_n < MOVES_MAX && ch->job_now->dead_n != d->n) {
        sim_world_fail(c->world, "sent: job %.*s has %u dead letters, and counts %u",
                       GL_STR_ARG(ch->job->id), d->n, ch->job_now->dead_n);
    }
    d->n = ch->job_now->dead_n; /* more than fit: not checked */
}

static void on_change(struct sim_checks *c, void *me, const struct sim_change *ch)
{
    struct sent_state *s = me;
    if (ch->job->flow->bundle == NULL || ch->step != NULL) {
        return;
    }
    make(s);
    judge(c, s, ch);
    s->moves_n = s->texts_n = 0;
}

static gl_str type_of(struct sim_checks *c, const struct gl_request *rq)
{
    struct gl_json j;
    if (rq->verb != GL_VERB_SEND ||
        gl_json_parse(&j, rq->command.value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return (gl_str){0};
    }
    return gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "type"), &c->arena);
}

static void on_answer(struct sim_checks *c, void *me, const struct gl_request *rq,
                      struct sim_fact_job *j)
{
    struct sent_state *s = me;
    gl_str type = type_of(c, rq);
    make(s);
    if (type.n > 0 && sent_message_of(s, j->id, type)->births == 0) {
        sim_world_fail(c->world, "sent: message %.*s was sent to job %.*s, and is lost",
                       GL_STR_ARG(type), GL_STR_ARG(j->id));
    }
}

static void on_refused(struct sim_checks *c, void *me, const struct gl_request *rq,
                       struct sim_fact_job *j)
{
    struct sent_state *s = me;
    gl_str type = type_of(c, rq);
    bool is_sure = rq->code == GL_E_STATE || rq->code == GL_E_BUSY || rq->code == GL_E_NOT_FOUND ||
                   rq->code == GL_E_INVALID;
    make(s);
    if (type.n > 0 && is_sure && sent_message_of(s, j->id, type)->births > 0) {
        sim_world_fail(c->world, "sent: message %.*s was refused by job %.*s, which has it",
                       GL_STR_ARG(type), GL_STR_ARG(j->id));
    }
}

static void done(void *me)
{
    struct sent_state *s = me;
    void *x;
    for (size_t i = 0; s->is_made && (x = gl_map_next(&s->sent, &i)) != NULL;) {
        gl_mem_free(x);
    }
    for (size_t i = 0; s->is_made && (x = gl_map_next(&s->jobs, &i)) != NULL;) {
        gl_mem_free(x);
    }
    if (s->is_made) {
        gl_map_done(&s->sent);
        gl_map_done(&s->jobs);
    }
}

const struct sim_check sim_check_sent = {.name = "sent",
                                         .state_bytes = sizeof(struct sent_state),
                                         .on_record = on_record,
                                         .on_change = on_change,
                                         .on_answer = on_answer,
                                         .on_refused = on_refused,
                                         .done = done};
