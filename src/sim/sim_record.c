#include "sim/sim_record.h"

#include "base/check.h"
#include "sim/replay.h"

enum { SEGMENT_BYTES = 40 << 10, BEGIN_BYTES_MAX = 4 << 20, REFUSED_PER_MILLION = 2000 };

static void play(struct sim_record *r)
{
    struct sim_replay_options options = {.is_bare = true};
    struct sim_replay_result result = {0};
    struct gl_why why;

    if (r->text.n > 0 && !r->world->failed) {
        if (sim_replay_run(gl_buf_view(&r->text), &options, &result, &why) != 0) {
            sim_world_fail(r->world, "recorder: a recording cannot be replayed: %s", why.text);
        } else if (result.differs_at != 0) {
            sim_world_fail(r->world, "recorder: a replay decides differently: %.*s",
                           GL_STR_ARG(gl_buf_view(&result.difference)));
        }
        sim_replay_done(&result);
    }
    gl_buf_reset(&r->text);
}

static bool begin(struct gl_recording_port *p, gl_str bytes)
{
    struct sim_record *r = GL_CONTAINER(p, struct sim_record, port);

    play(r);
    if (gl_rng_chance(&r->whim, REFUSED_PER_MILLION)) {
        return false;
    }
    gl_buf_str(&r->text, bytes);
    return true;
}

static bool add(struct gl_recording_port *p, gl_str bytes)
{
    struct sim_record *r = GL_CONTAINER(p, struct sim_record, port);

    if (gl_rng_chance(&r->whim, REFUSED_PER_MILLION)) {
        return false;
    }
    gl_buf_str(&r->text, bytes);
    return true;
}

void sim_record_init(struct sim_record *r, struct sim_world *w, uint64_t seed)
{
    *r = (struct sim_record){.port = {.segment_bytes = SEGMENT_BYTES,
                                      .begin_bytes_max = BEGIN_BYTES_MAX,
                                      .begin = begin,
                                      .add = add},
                             .world = w};
    gl_rng_init(&r->whim, seed);
}

void sim_record_done(struct sim_record *r)
{
    play(r);
    gl_buf_done(&r->text);
}
