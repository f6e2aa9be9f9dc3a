/* check_counted.c - an aggregator counts each sender once, even if a message arrives twice. */
#include <stdio.h>

#include "base/mem.h"
#include "sim/sim_checks.h"

struct counted_state {
    struct gl_map senders; /* "<job> <agent> <sender>" -> struct counted */
    bool is_made;
};

struct counted {
    uint64_t number; /* of the message */
    char key[];
};

static void count(struct sim_checks *c, struct counted_state *s, const char *key, uint64_t number)
{
    struct counted *x = gl_map_find(&s->senders, gl_str_of(key));
    if (x == NULL) {
        x = gl_mem_alloc(sizeof(*x) + strlen(key) + 1);
        memcpy(x->key, key, strlen(key) + 1);
        x->number = number;
        gl_map_add(&s->senders, gl_str_of(x->key), x);
    } else if (x->number != number) {
        sim_world_fail(c->world, "counted: %s is counted with message %llu and with %llu", key,
                       (unsigned long long)x->number, (unsigned long long)number);
    }
}

static void on_record(struct sim_checks *c, void *me, const struct sim_change *ch,
                      const struct gl_record *before, const struct gl_record *after)
{
    struct counted_state *s = me;
    struct gl_json j;
    if (!gl_str_is(before->kind, "letter") || after->rev == 0 ||
        gl_json_parse(&j, after->value, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0) {
        return;
    }
    gl_jnode root = gl_json_root(&j);
    gl_str sender = gl_json_str(&j, gl_json_get(&j, root, "sender"), &c->arena);
    gl_str to = gl_json_str(&j, gl_json_get(&j, root, "to"), &c->arena);
    uint64_t number = 0;
    char key[256];
    if (sender.n == 0 || !gl_json_u64(&j, gl_json_get(&j, root, "number"), &number) ||
        !gl_str_is(gl_json_str(&j, gl_json_get(&j, root, "status"), &c->arena), "counted")) {
        return;
    }
    if (!s->is_made) {
        gl_map_init(&s->senders);
        s->is_made = true;
    }
    (void)snprintf(key, sizeof(key), "%.*s %.*s %.*s", GL_STR_ARG(ch->job->id), GL_STR_ARG(to),
                   GL_STR_ARG(sender));
    count(c, s, key, number);
}

static void done(void *me)
{
    struct counted_state *s = me;
    struct counted *x;
    for (size_t i = 0; s->is_made && (x = gl_map_next(&s->senders, &i)) != NULL;) {
        gl_mem_free(x);
    }
    if (s->is_made) {
        gl_map_done(&s->senders);
    }
}

const struct sim_check sim_check_counted = {.name = "counted",
                                            .state_bytes = sizeof(struct counted_state),
                                            .on_record = on_record,
                                            .done = done};
