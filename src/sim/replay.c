#include "sim/replay.h"

#include <stdio.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/claims/claim.h"
#include "core/snapshot.h"
#include "port/recording.h"

enum { LINE_BYTES = 512, HEX_BYTES = 16 };

/* The result for lines that no check follows. */
struct span {
    struct span *next;
    const char *from, *to;
    size_t lines;
};

struct replay {
    const struct sim_replay_options *options;
    struct sim_replay_result *result;
    struct gl_why *why;
    gl_str rest;   /* of the text */
    size_t number; /* of the current line */
    struct gl_arena line, step, flows, spans;
    struct span *spans_first, **span_last; /* what is skipped: the next of these places, ... */
    const struct span *span;               /* ... and the ones after it */
    struct gl_map texts;                   /* flows by their hashes: gl_str in `flows` */
    struct gl_digest digest;
    struct gl_trace trace;
    struct gl_core *core; /* NULL: no segment has begun, or it is only read */
    bool begun;           /* a segment */
    gl_ms now;
    bool owes; /* an event has been fed and its `decided` has not come yet */
    uint64_t decided;
    struct gl_event last; /* that event, without its strings ... */
    char last_job[GL_ULID_BYTES + 1];
    struct gl_buf moves; /* ... and the core's decision */
    bool is_redacted;    /* values have been redacted */
    bool has_agents;     /* it contains jobs of bundles */
};

static int bad(struct replay *r, int code, const char *what)
{
    return gl_why(r->why, code, "line %zu: %s", r->number, what);
}

/* ---- output ---- */

static void on_trace(struct gl_trace *t, const struct gl_trace_record *rec)
{
    struct replay *r = GL_CONTAINER(t, struct replay, trace);
    struct gl_trace_record copy = *rec;
    char line[LINE_BYTES];

    copy.now = 0;
    (void)gl_trace_format(&copy, line, sizeof(line));
    gl_buf_fmt(&r->moves, "    %s\n", line + sizeof("t=0"));
    if (r->options->print != NULL && rec->job.n > 0 && gl_str_starts(rec->job, r->options->job)) {
        char when[GL_TIMES_BYTES], out[LINE_BYTES + GL_TIMES_BYTES];

        (void)snprintf(out, sizeof(out), "%.*s   %s", GL_STR_ARG(gl_times_format(rec->now, when)),
                       line + sizeof("t=0"));
        r->options->print(r->options->owner, out);
    }
}

static void tell_event(const struct replay *r, const struct gl_event *ev)
{
    char when[GL_TIMES_BYTES], line[LINE_BYTES];
    gl_str attempt = gl_event_attempt(ev);
    int64_t code = gl_event_code(ev);
    bool wanted =
        r->options->job.n == 0 || (ev->job.n > 0 && gl_str_starts(ev->job, r->options->job));

    if (r->options->print == NULL || !wanted) {
        return;
    }
    (void)snprintf(line, sizeof(line), "%.*s #%llu %s%s%.*s%s%.*s%s%s",
                   GL_STR_ARG(gl_times_format(ev->now, when)),
                   (unsigned long long)r->result->events_n, gl_event_schema(ev->type)->name,
                   ev->job.n > 0 ? " " : "", GL_STR_ARG(ev->job), attempt.n > 0 ? " " : "",
                   GL_STR_ARG(attempt), code != 0 ? " " : "",
                   code != 0 ? gl_err_word((int)code) : "");
    r->options->print(r->options->owner, line);
}

/* ---- lines ---- */

static bool next_line(struct replay *r, gl_str *ret)
{
    const char *end;

    while (r->span != NULL && r->rest.p == r->span->from) {
        r->rest.n -= (size_t)(r->span->to - r->span->from);
        r->rest.p = r->span->to;
        r->number += r->span->lines;
        r->span = r->span->next;
    }
    end = r->rest.n > 0 ? memchr(r->rest.p, '\n', r->rest.n) : NULL;
    if (end == NULL) {
        return false;
    }
    *ret = (gl_str){.p = r->rest.p, .n = (size_t)(end - r->rest.p)};
    r->rest.n -= ret->n + 1;
    r->rest.p = end + 1;
    r->number++;
    return true;
}

static bool read_hex(gl_str text, uint64_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
        v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret = v;
    return text.n == HEX_BYTES;
}

static void segment_ends(struct replay *r)
{
    if (r->core != NULL) {
        gl_core_free(r->core);
        r->core = NULL;
    }
    gl_map_done(&r->texts);
    gl_map_init(&r->texts);
    gl_arena_done(&r->flows);
    r->begun = r->owes = false;
}

static void keep_flow(struct replay *r, gl_str hash, gl_str text)
{
    gl_str *copy;

    if (hash.n > 0 && gl_map_find(&r->texts, hash) == NULL) {
        copy = GL_NEW_ARRAY(&r->flows, gl_str, 2);
        copy[0] = gl_str_dup(&r->flows, text);
        copy[1] = gl_str_dup(&r->flows, hash);
        gl_map_add(&r->texts, copy[1], copy);
    }
}

static int on_flow(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    gl_str text = gl_json_str(j, gl_json_get(j, value, "text"), &r->line);
    gl_str word = GL_S("\"bundle\":{");

    r->has_agents |= text.n > 0 && memmem(text.p, text.n, word.p, word.n) != NULL;
    keep_flow(r, gl_json_str(j, gl_json_get(j, value, "hash"), &r->line), text);
    return 0;
}

/* The flows of a snapshot are needed again if the core forgets them: which other parts of the node
 * used them during the recording is not known here. */
static void keep_flows_of(struct replay *r, gl_str snapshot)
{
    while (snapshot.n > 0) {
        gl_str line = gl_str_cut(snapshot, '\n', &snapshot);
        struct gl_json j;

        if (gl_str_starts(line, GL_S("{\"flow\":")) &&
            gl_json_parse(&j, line, SIZE_MAX, &r->line, NULL) == 0) {
            (void)on_flow(r, &j, gl_json_get(&j, gl_json_root(&j), "flow")); /* cannot fail */
        }
    }
}

static int on_recording(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    struct gl_flight_recorder_head head;
    const char *start = r->rest.p;
    size_t first = r->number;
    gl_str line, snapshot;
    int rc =
        gl_schema_read(&gl_flight_recorder_head_schema, j, value, false, &r->line, &head, NULL);

    if (rc != 0) {
        return bad(r, GL_E_DAMAGED, "the header of the recording is damaged");
    }
    if (head.format != GL_FLIGHT_FORMAT) {
        return bad(r, GL_E_VERSION, "the recording was made by another release of Glia");
    }
    if (!gl_str_is(head.release, GL_VERSION) && r->result->release.n == 0) {
        gl_buf_str(&r->result->release, head.release);
    }
    segment_ends(r);
    for (uint64_t i = 0; i < head.lines; i++) {
        if (!next_line(r, &line)) {
            return bad(r, GL_E_DAMAGED, "the recording ends before its first event");
        }
    }
    snapshot = (gl_str){.p = start, .n = (size_t)(r->rest.p - start)};
    r->result->segments_n++;
    r->begun = true;
    r->now = INT64_MIN;
    rc = gl_core_restore(snapshot, &r->digest.tap, NULL, &r->core, r->why);
    if (rc != 0) {
        r->number = first + 1;
        return gl_why_prefix(r->why, "line %zu", r->number);
    }
    keep_flows_of(r, snapshot);
    if (r->options->read_only) {
        gl_core_free(r->core);
        r->core = NULL;
    }
    return 0;
}

static void unref_specs(const struct gl_effects *effects)
{
    for (size_t i = 0; i < effects->n; i++) {
        if (effects->items[i].spec != NULL) {
            gl_spec_unref(effects->items[i].spec);
        }
    }
}

static void feed(struct replay *r, struct gl_event *ev)
{
    struct gl_effects effects = {.arena = &r->step};
    gl_str hash = {0}, *flow = gl_event_flow(ev, &hash);
    const gl_str *text = hash.n > 0 ? gl_map_find(&r->texts, hash) : NULL;

    if (flow != NULL && flow->n == 0 && text != NULL) {
        *flow = *text;
    }
    gl_buf_reset(&r->moves);
    r->result->events_n++;
    tell_event(r, ev);
    gl_core_step(r->core, ev, &effects);
    r->decided = gl_digest_end(&r->digest, &effects);
    unref_specs(&effects);
    gl_arena_reset(&r->step);
    r->last = *ev;
    (void)snprintf(r->last_job, sizeof(r->last_job), "%.*s", GL_STR_ARG(ev->job));
    r->owes = true;
}

static bool is_claim_possible(const struct gl_event_claim *x)
{
    struct gl_claim_args args = {.act = x->act,
                                 .key = x->key,
                                 .owner = x->owner,
                                 .fence = x->fence,
                                 .lease_ms = x->lease_ms,
                                 .once = x->once,
                                 .work_type = x->work_type,
                                 .error_detail = x->error_detail,
                                 .nonce = x->nonce};

    return x->act < GL_CLAIM_ACT_COUNT &&
           (x->act == GL_CLAIM_RECLAIM || gl_claim_check(&args, NULL) == 0);
}

/* A node checks requests before it makes events of them, so the core only asserts what it relies
 * on. A recording may have been edited. */
static bool is_possible(const struct gl_event *ev)
{
    if (ev->now < 0 || ev->now > INT64_MAX / 2) {
        return false;
    }
    switch ((enum gl_event_type)ev->type) {
    case GL_EV_SUBMIT:
        return ev->job.n == GL_ULID_BYTES;
    case GL_EV_CLEAN:
        return !ev->clean.is_removal || ev->clean.code != 0 || ev->job.n == GL_ULID_BYTES;
    case GL_EV_CLAIM:
        return is_claim_possible(&ev->claim);
    default:
        return true;
    }
}

static int on_event(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    struct gl_event ev;
    int rc;

    if (!r->begun) {
        return bad(r, GL_E_DAMAGED, "an event comes before the start of its recording");
    }
    rc = gl_event_read(j, value, &r->line, &ev, r->why);
    if (rc != 0) {
        return gl_why_prefix(r->why, "line %zu", r->number);
    }
    if (ev.now < r->now || !is_possible(&ev)) {
        return bad(r, GL_E_DAMAGED, "this event is impossible in this state");
    }
    r->now = ev.now;
    if (r->options->read_only) {
        r->result->events_n++;
    } else {
        feed(r, &ev);
    }
    return 0;
}

static int on_decided(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    char when[GL_TIMES_BYTES];
    uint64_t then;

    if (!read_hex(gl_json_str(j, value, &r->line), &then)) {
        return bad(r, GL_E_DAMAGED, "a digest is not a number");
    }
    if (!r->owes) {
        return 0;
    }
    r->owes = false;
    r->result->compared_n++;
    if (then != r->decided && r->result->differs_at == 0) {
        r->result->differs_at = r->result->events_n;
        gl_buf_fmt(&r->result->difference, "event %llu, %s%s%s at %.*s (line %zu): ",
                   (unsigned long long)r->result->events_n, gl_event_schema(r->last.type)->name,
                   r->last_job[0] != 0 ? " of job " : "", r->last_job,
                   GL_STR_ARG(gl_times_format(r->last.now, when)), r->number - 1);
        gl_buf_fmt(&r->result->difference,
                   "recorded decision %016llx, replayed decision %016llx; the replay did:\n",
                   (unsigned long long)then, (unsigned long long)r->decided);
        gl_buf_str(&r->result->difference,
                   r->moves.n > 0 ? gl_buf_view(&r->moves) : GL_S("    nothing\n"));
        if (r->is_redacted && r->has_agents) { /* agents are routed by the content of messages */
            gl_buf_c(
                &r->result->difference,
                "    This file is redacted. A bundle's job whose graph was changed by a patch may\n"
                "    be decided differently without the values; a file made with --no-redact has "
                "them.\n");
        }
    }
    return 0;
}

/* Checks were verified before anything was replayed. */
static int on_check(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    (void)r;
    (void)j;
    (void)value;
    return 0;
}

static int on_gap(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    (void)j;
    (void)value;
    r->result->gaps_n++;
    return 0;
}

static int on_bundle(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    segment_ends(r);
    r->is_redacted = gl_json_is(gl_json_get(j, value, "redacted"), GL_JSON_TRUE);
    return 0;
}

static int on_other(struct replay *r, const struct gl_json *j, gl_jnode value)
{
    (void)j;
    (void)value;
    segment_ends(r);
    return 0;
}

static const struct {
    const char *kind;
    int (*read)(struct replay *r, const struct gl_json *j, gl_jnode value);
} kinds[] = {
    {"event", on_event},   {"decided", on_decided},     {"check", on_check},
    {"flow", on_flow},     {"recording", on_recording}, {"gap", on_gap},
    {"bundle", on_bundle}, {"setting", on_other},       {"log", on_other},
    {"segment", on_other},
};

static int read_line(struct replay *r, gl_str text)
{
    struct gl_json j;
    gl_jnode key;
    gl_str kind;
    int rc = gl_json_parse(&j, text, SIZE_MAX, &r->line, NULL);

    key = rc == 0 ? gl_json_first(&j, gl_json_root(&j)) : NULL;
    if (key == NULL || !gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        return bad(r, r->result->segments_n > 0 ? GL_E_DAMAGED : GL_E_INVALID,
                   r->result->segments_n > 0 ? "the recording is damaged here"
                                             : "this is not a recording of a node");
    }
    kind = gl_json_str(&j, key, &r->line);
    for (size_t i = 0; i < GL_COUNT(kinds); i++) {
        if (gl_str_is(kind, kinds[i].kind)) {
            return kinds[i].read(r, &j, gl_json_value(key));
        }
    }
    return bad(r, r->result->segments_n > 0 ? GL_E_VERSION : GL_E_INVALID,
               r->result->segments_n > 0 ? "the recording contains a line of unknown kind"
                                         : "this is not a recording of a node");
}

/* Lines between segments, which no check covers. */
static bool is_apart(gl_str line)
{
    return gl_str_starts(line, GL_S("{\"bundle\":")) ||
           gl_str_starts(line, GL_S("{\"setting\":")) || gl_str_starts(line, GL_S("{\"log\":")) ||
           gl_str_starts(line, GL_S("{\"segment\":"));
}

/* ---- integrity ---- */

struct checking {
    struct gl_recording_chain chain;
    const char *from; /* what no check has covered yet: its start, ... */
    size_t lines;     /* ... and number of lines */
    uint64_t segment; /* its number, or its position in the file; 0: none has begun */
    bool is_numbered; /* its number comes from a dump */
    bool has_checks;
};

/* No check confirms that the lines up to `to` are complete. */
static void leave_out(struct replay *r, struct checking *k, const char *to)
{
    if (to > k->from && k->segment > 0 && !r->options->is_bare) {
        struct span *more = GL_NEW(&r->spans, struct span);

        *more = (struct span){.from = k->from, .to = to, .lines = k->lines};
        *r->span_last = more;
        r->span_last = &more->next;
        r->result->left_out_n += k->lines;
    }
    k->lines = 0;
}

/* {"segment":{...}} of a dump: its number, and what `glia debug dump` has found. */
static void check_number(struct replay *r, struct checking *k, gl_str line)
{
    struct gl_buf *holes = &r->result->holes;
    uint64_t number = 0;
    struct gl_json j;
    gl_jnode value;
    gl_str why;

    gl_arena_reset(&r->line);
    if (gl_json_parse(&j, line, SIZE_MAX, &r->line, NULL) != 0) {
        return; /* it is refused later, when it is read */
    }
    value = gl_json_get(&j, gl_json_root(&j), "segment");
    if (!gl_json_u64(&j, gl_json_get(&j, value, "number"), &number)) {
        number = 0;
    }
    if (k->is_numbered && number > k->segment + 1) {
        gl_recording_put_missing(k->segment + 1, number - 1, holes);
        gl_buf_char(holes, '\n');
    }
    r->result->torn_n += gl_json_is(gl_json_get(&j, value, "torn"), GL_JSON_TRUE);
    why = gl_json_str(&j, gl_json_get(&j, value, "damaged"), &r->line);
    if (why.n > 0) {
        gl_buf_str(holes, why);
        gl_buf_char(holes, '\n');
    }
    k->segment = number;
    k->is_numbered = number > 0;
}

static int check_line(struct replay *r, struct checking *k, gl_str line)
{
    gl_str piece = {.p = k->from, .n = (size_t)(line.p - k->from)};
    enum gl_recording_result found = gl_recording_check(&k->chain, line, piece);

    if (found == GL_RECORDING_NO_CHECK) {
        k->lines++;
        return 0;
    }
    if (found == GL_RECORDING_DAMAGED || found == GL_RECORDING_MISSING) {
        return gl_why(r->why, GL_E_DAMAGED, "line %zu: segment %llu%s is damaged: %s", r->number,
                      (unsigned long long)k->segment + (k->segment == 0),
                      k->is_numbered ? "" : " of this file",
                      found == GL_RECORDING_MISSING
                          ? "lines before this point are missing"
                          : "lines before this one have been changed or damaged");
    }
    if (found == GL_RECORDING_END_LOST) {
        gl_buf_fmt(&r->result->holes,
                   "line %zu: the end of the segment before this one, or whole segments, are "
                   "missing: the events between are unknown\n",
                   r->number);
    }
    k->has_checks = true;
    k->from = r->rest.p;
    k->lines = 0;
    return 0;
}

/* Before everything else: a flipped bit must not look like a different decision. */
static int check_all(struct replay *r)
{
    gl_str all = r->rest, line;
    struct checking k = {.from = all.p};
    int rc = 0;

    while (rc == 0 && next_line(r, &line)) {
        if (is_apart(line)) {
            leave_out(r, &k, line.p);
            k.from = r->rest.p;
            if (gl_str_starts(line, GL_S("{\"segment\":"))) {
                check_number(r, &k, line);
            }
        } else if (gl_str_starts(line, GL_S("{\"recording\":"))) {
            leave_out(r, &k, line.p);
            k.from = line.p;
            k.lines = 1;
            k.segment += !k.is_numbered;
            gl_recording_segment(&k.chain, true);
        } else {
            rc = check_line(r, &k, line);
        }
    }
    if (rc == 0) {
        r->result->is_torn = r->rest.n > 0;
        leave_out(r, &k, all.p + all.n);
    }
    if (rc == 0 && k.segment > 0 && !k.has_checks && !r->options->is_bare) {
        rc = gl_why(r->why, GL_E_DAMAGED,
                    "no check follows any line of this recording: it is damaged or incomplete");
    }
    r->rest = all;
    r->number = 0;
    r->span = r->spans_first;
    return rc;
}

int sim_replay_run(gl_str text, const struct sim_replay_options *options,
                   struct sim_replay_result *ret, struct gl_why *reterr_why)
{
    struct replay r = {.options = options,
                       .result = ret,
                       .why = reterr_why,
                       .rest = text,
                       .trace = {.write = on_trace}};
    gl_str line;
    int rc;

    *ret = (struct sim_replay_result){0};
    r.span_last = &r.spans_first;
    gl_map_init(&r.texts);
    gl_digest_init(&r.digest, &r.trace);
    rc = check_all(&r);
    while (rc == 0 && ret->differs_at == 0 && next_line(&r, &line)) {
        gl_arena_reset(&r.line);
        rc = read_line(&r, line);
        if (options->until != 0 && ret->events_n >= options->until && !r.owes) {
            break;
        }
    }
    if (rc == 0 && ret->segments_n == 0) {
        rc = gl_why(reterr_why, GL_E_INVALID, "this is not a recording of a node, or an empty one");
    }
    segment_ends(&r);
    gl_map_done(&r.texts);
    gl_buf_done(&r.moves);
    gl_arena_done(&r.line);
    gl_arena_done(&r.step);
    gl_arena_done(&r.flows);
    gl_arena_done(&r.spans);
    return rc;
}

void sim_replay_done(struct sim_replay_result *r)
{
    gl_buf_done(&r->difference);
    gl_buf_done(&r->release);
    gl_buf_done(&r->holes);
}
