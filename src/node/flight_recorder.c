/* flight_recorder.c - writes segments: when one begins, what it contains, when it ends.
 *
 * The event is written before the core handles it and its digest afterwards, so the last event of a
 * node that crashed has no digest. */
#include "node/flight_recorder.h"

#include "base/check.h"
#include "core/snapshot.h"

enum {
    RETRY_MS = 1000,     /* after the port refused */
    TOO_LARGE_MS = 5000, /* after the core's memory was too large */
    JOB_BYTES = 300,     /* at least, in a snapshot */
    WAIT_BYTES = 80,
};

#define F(member, type) GL_FIELD(gl_flight_recorder_head, member, type, 0, "")

static const struct gl_field head_fields[] = {
    GL_FIELD(gl_flight_recorder_head, format, U32, GL_FF_REQUIRED, ""),
    F(node, STR),
    F(release, STR),
    F(at, I64),
    GL_FIELD(gl_flight_recorder_head, lines, U64, GL_FF_REQUIRED, ""),
};
#undef F

const struct gl_schema gl_flight_recorder_head_schema = {
    .name = "recording",
    .doc = "The first line of a recording.",
    .bytes = sizeof(struct gl_flight_recorder_head),
    .fields = head_fields,
    .fields_n = GL_COUNT(head_fields),
};

void gl_flight_recorder_init(struct gl_flight_recorder *f, struct gl_recording_port *to,
                             struct gl_trace *inner, gl_str node)
{
    *f = (struct gl_flight_recorder){.to = to, .node = node};
    gl_digest_init(&f->digest, inner);
}

static void write_decided(struct gl_flight_recorder *f)
{
    static const char digits[] = "0123456789abcdef";
    char *p;

    GL_ASSERT(f->recording || !f->has_decision);
    GL_ASSERT(f->to != NULL);
    if (!f->has_decision) {
        return;
    }
    f->has_decision = false;
    gl_buf_c(&f->text, "{\"decided\":\"");
    p = gl_buf_reserve(&f->text, 16);
    for (int i = 15; i >= 0; i--) {
        p[15 - i] = digits[f->decided >> (i * 4) & 15];
    }
    f->text.n += 16;
    gl_buf_c(&f->text, "\"}\n");
}

static void flush(struct gl_flight_recorder *f)
{
    if (f->text.n > 0) {
        f->bytes += f->text.n;
        f->recording = f->to->add(f->to, gl_buf_view(&f->text));
        f->has_decision = f->has_decision && f->recording;
    }
    gl_buf_reset(&f->text);
    GL_ASSERT(f->text.n == 0);
    GL_ASSERT(f->recording || !f->has_decision);
}

void gl_flight_recorder_done(struct gl_flight_recorder *f)
{
    if (f->recording) {
        write_decided(f);
        flush(f);
    }
    gl_buf_done(&f->text);
    GL_ASSERT(f->text.n == 0);
}

/* ---- segments ---- */

static void write_head(struct gl_flight_recorder *f, gl_ms now, gl_str snapshot, struct gl_buf *out)
{
    struct gl_flight_recorder_head head = {
        .format = GL_FLIGHT_FORMAT, .node = f->node, .release = GL_S(GL_VERSION), .at = now};

    for (size_t i = 0; i < snapshot.n; i++) {
        head.lines += snapshot.p[i] == '\n';
    }
    gl_snapshot_put(out, "recording", &gl_flight_recorder_head_schema, &head);
}

/* Not even trying is cheaper. */
static bool is_surely_too_large(const struct gl_flight_recorder *f, const struct gl_core *c)
{
    struct gl_core_metrics metrics;

    gl_core_metrics(c, &metrics);
    return metrics.jobs_hot * JOB_BYTES + metrics.steps_waiting * WAIT_BYTES >
           f->to->begin_bytes_max;
}

static void begin(struct gl_flight_recorder *f, const struct gl_core *c, gl_ms now)
{
    struct gl_buf snapshot = {0}, all = {0};
    bool fits = !is_surely_too_large(f, c) && gl_core_save(c, f->to->begin_bytes_max, &snapshot);

    GL_ASSERT(!f->recording);
    if (fits) {
        write_head(f, now, gl_buf_view(&snapshot), &all);
        gl_buf_str(&all, gl_buf_view(&snapshot));
        if (f->was_too_large) {
            gl_buf_c(&all, "{\"gap\":\"the node's memory was too large to record\"}\n");
        }
        f->recording = f->to->begin(f->to, gl_buf_view(&all));
        f->bytes = 0;
        f->bytes_max = snapshot.n * GL_RECORDING_EVENTS_PER_SNAPSHOT;
        f->bytes_max = f->bytes_max > f->to->segment_bytes ? f->bytes_max : f->to->segment_bytes;
    }
    f->was_too_large = !fits || (f->was_too_large && !f->recording);
    if (!f->recording) {
        f->retry_at = now + (fits ? RETRY_MS : TOO_LARGE_MS);
    }
    gl_buf_done(&snapshot);
    gl_buf_done(&all);
    GL_ASSERT(f->recording || f->retry_at > now);
}

/* ---- events ---- */

/* A flow goes once into a segment: it is in the snapshot, or it came before the core knew it. */
static void write_flow(struct gl_flight_recorder *f, const struct gl_core *c, gl_str hash,
                       gl_str text)
{
    struct gl_jw w;

    GL_ASSERT(hash.n > 0);
    if (gl_core_knows_flow(c, hash)) {
        return;
    }
    gl_jw_init(&w, &f->text);
    gl_jw_object(&w);
    gl_jw_put_object(&w, "flow");
    gl_jw_put_str(&w, "hash", hash);
    gl_jw_put_str(&w, "text", text);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_buf_char(&f->text, '\n');
}

/* Leaves out the context, which is that of the core and which the core never reads, and the flow,
 * which has a line of its own. */
static void write_event(struct gl_flight_recorder *f, const struct gl_core *c,
                        const struct gl_event *ev)
{
    struct gl_event less = *ev;
    gl_str hash, *flow = gl_event_flow(&less, &hash);

    GL_ASSERT(f->recording);
    less.context = (gl_str){0};
    if (flow != NULL && flow->n > 0 && hash.n > 0) {
        write_flow(f, c, hash, *flow);
        *flow = (gl_str){0};
    }
    gl_buf_str(&f->text, GL_S("{\"event\":"));
    gl_event_encode(&less, &f->text);
    gl_buf_str(&f->text, GL_S("}\n"));
}

void gl_flight_recorder_event(struct gl_flight_recorder *f, const struct gl_core *c,
                              const struct gl_event *ev)
{
    GL_ASSERT(ev->type < GL_EV_COUNT);
    if (f->recording && f->bytes >= f->bytes_max) {
        write_decided(f);
        flush(f);
        f->recording = false;
    }
    if (!f->recording && ev->now >= f->retry_at) {
        f->has_decision = false;
        begin(f, c, ev->now);
    }
    if (f->recording) {
        write_decided(f);
        write_event(f, c, ev);
        flush(f); /* before the step: it may be the one that brings the node down */
    }
}

void gl_flight_recorder_decided(struct gl_flight_recorder *f, const struct gl_effects *effects)
{
    GL_ASSERT(!f->has_decision || f->recording);
    f->decided = gl_digest_end(&f->digest, effects);
    f->has_decision = f->recording;
    GL_ASSERT(f->has_decision == f->recording);
}
