#include "cli/output/progress.h"

#include "base/check.h"
#include "model/job.h"

enum {
    REDRAW_MS = 100,       /* shortest interval between redraws */
    TICK_MS = 1000,        /* longest interval between redraws, to update the times */
    ROWS_SPARE = 4,        /* lines of the terminal that are not used */
    SHOWN_MAX = 12,        /* number of steps shown when there is no room for all */
    PLAIN_STEPS_MAX = 100, /* with more steps, plain lines report only problems */
    PLAIN_TICK_MS = 5000,
    STATUS_WIDTH = 10,
    ID_WIDTH_MAX = 32,
    STEPS_FIRST = 16, /* initial capacity */
};

void gl_progress_init(struct gl_progress *p, const struct gl_term *term, bool quiet)
{
    *p = (struct gl_progress){.term = term, .is_quiet = quiet};
    gl_map_init(&p->by_id);
}

void gl_progress_done(struct gl_progress *p)
{
    gl_map_done(&p->by_id);
    gl_arena_done(&p->arena);
}

bool gl_progress_is_end(gl_str status)
{
    return gl_str_is(status, "completed") || gl_str_is(status, "failed") ||
           gl_str_is(status, "skipped") || gl_str_is(status, "partial");
}

/* ---- state ---- */

static gl_str text(struct gl_progress *p, const struct gl_json *j, gl_jnode n, const char *name)
{
    return gl_str_dup(&p->arena, gl_json_str(j, gl_json_get(j, n, name), &p->arena));
}

static gl_ms when(struct gl_progress *p, const struct gl_json *j, gl_jnode n, const char *name)
{
    gl_ms t = 0;

    (void)gl_times_parse(gl_json_str(j, gl_json_get(j, n, name), &p->arena), &t);
    return t;
}

static void set_status(struct gl_progress *p, struct gl_progress_step *s, gl_str status)
{
    int word = gl_schema_word(gl_step_status_words, status);

    status = word < 0 ? GL_S("unknown") : gl_str_of(gl_step_status_words[word]);
    p->ended_n += (size_t)gl_progress_is_end(status) - (size_t)gl_progress_is_end(s->status);
    s->status = status;
}

static void read_step(struct gl_progress *p, const struct gl_json *j, gl_jnode n,
                      struct gl_progress_step *s)
{
    int64_t attempt = 0;

    set_status(p, s, gl_json_str(j, gl_json_get(j, n, "status"), &p->arena));
    (void)gl_json_i64(j, gl_json_get(j, n, "attempt_count"), &attempt);
    s->attempt = (uint32_t)attempt;
    s->started_at = when(p, j, n, "attempt_at");
    s->ended_at = when(p, j, n, "ended_at");
    s->retry_at = when(p, j, n, "retry_at");
    s->is_reused = gl_json_get(j, n, "reused_from") != NULL;
    s->reason = text(p, j, n, "terminal_reason");
    if (s->reason.n == 0) {
        s->reason = text(p, j, n, "last_error");
    }
}

static void note_width(struct gl_progress *p, gl_str id)
{
    size_t width = gl_term_width(id);

    width = width < ID_WIDTH_MAX ? width : ID_WIDTH_MAX;
    p->id_width = width > p->id_width ? width : p->id_width;
}

static void grow(struct gl_progress *p, size_t cap)
{
    struct gl_progress_step *steps = GL_NEW_ARRAY(&p->arena, struct gl_progress_step, cap);

    if (p->steps_n > 0) {
        memcpy(steps, p->steps, p->steps_n * sizeof(*steps));
    }
    p->steps = steps;
    p->steps_cap = cap;
    gl_map_done(&p->by_id);
    gl_map_init(&p->by_id);
    for (size_t i = 0; i < p->steps_n; i++) {
        gl_map_add(&p->by_id, steps[i].id, &steps[i]);
    }
}

/* "each[3]": 3, and *ret_step is "each". False: not an instance. */
static bool read_instance(gl_str id, gl_str *ret_step, uint64_t *ret)
{
    size_t at = id.n;

    while (at > 0 && id.p[at - 1] != '[') {
        at--;
    }
    if (at == 0 || id.p[id.n - 1] != ']') {
        return false;
    }
    *ret_step = (gl_str){.p = id.p, .n = at - 1};
    return gl_str_u64((gl_str){.p = id.p + at, .n = id.n - at - 1}, ret);
}

/* The line above it: instances follow their step, by number; other steps go to the bottom. */
static size_t place_of(struct gl_progress *p, gl_str id)
{
    struct gl_progress_step *step;
    uint64_t number, other;
    gl_str name = {0};
    size_t at;

    step = read_instance(id, &name, &number) ? gl_map_find(&p->by_id, name) : NULL;
    if (step == NULL) {
        return p->bottom;
    }
    at = step->last; /* most arrive in order */
    if (at == 0 || !read_instance(p->steps[at].id, &name, &other) || other > number) {
        at = (size_t)(step - p->steps);
        while (at != step->last && p->steps[at].next != 0 &&
               read_instance(p->steps[p->steps[at].next - 1].id, &name, &other) && other < number) {
            at = p->steps[at].next - 1;
        }
    }
    if (at == step->last || step->last == 0) {
        step->last = p->steps_n;
    }
    return at;
}

static void put_behind(struct gl_progress *p, size_t at)
{
    size_t number = p->steps_n;

    if (number > 0) {
        p->steps[number].next = p->steps[at].next;
        p->steps[at].next = number + 1;
    }
    p->bottom = number == 0 || at == p->bottom ? number : p->bottom;
}

/* The step with this id; instances of `foreach` are added as they appear. */
static struct gl_progress_step *step_of(struct gl_progress *p, gl_str id)
{
    struct gl_progress_step *s = gl_map_find(&p->by_id, id);

    if (s != NULL) {
        return s;
    }
    if (p->steps_n == p->steps_cap) {
        grow(p, p->steps_cap == 0 ? STEPS_FIRST : p->steps_cap * 2);
    }
    put_behind(p, place_of(p, id));
    s = &p->steps[p->steps_n++];
    s->id = gl_str_dup(&p->arena, id);
    gl_map_add(&p->by_id, s->id, s);
    note_width(p, s->id);
    return s;
}

/* For a large job, a status has only some of the steps, and counts of all. */
static void count_others(struct gl_progress *p, const struct gl_json *j, gl_jnode counts)
{
    size_t all_n = 0, ended_n = 0;

    for (gl_jnode k = gl_json_first(j, counts); k; k = gl_json_after(j, counts, k)) {
        int64_t n = 0;

        if (gl_json_i64(j, gl_json_value(k), &n) && n > 0) {
            all_n += (size_t)n;
            ended_n += gl_progress_is_end(gl_json_str(j, k, &p->arena)) ? (size_t)n : 0;
        }
    }
    p->others_n = all_n > p->steps_n ? all_n - p->steps_n : 0;
    p->others_ended_n = ended_n > p->ended_n ? ended_n - p->ended_n : 0;
}

void gl_progress_load(struct gl_progress *p, const struct gl_json *j, gl_jnode status)
{
    gl_jnode state = gl_json_get(j, status, "workflow_state");
    gl_jnode steps = gl_json_get(j, state, "steps");

    for (gl_jnode k = gl_json_first(j, steps); k; k = gl_json_after(j, steps, k)) {
        read_step(p, j, gl_json_value(k), step_of(p, gl_json_str(j, k, &p->arena)));
    }
    count_others(p, j, gl_json_get(j, state, "counts"));
    p->is_changed = true;
}

/* ---- lines ---- */

static void add_times(struct gl_buf *line, const struct gl_progress_step *s, gl_ms now)
{
    char span[GL_TIMES_BYTES];
    gl_ms until = s->ended_at != 0 ? s->ended_at : now;

    if (s->attempt > 1) {
        gl_buf_fmt(line, "  attempt %u", s->attempt);
    }
    if (gl_str_is(s->status, "retry_wait") && s->retry_at > now) {
        gl_buf_fmt(line, "  again in %.*s",
                   GL_STR_ARG(gl_times_format_span(s->retry_at - now, span)));
    } else if (s->started_at != 0 && until > s->started_at && !gl_str_is(s->status, "ready")) {
        gl_buf_fmt(line, "  %.*s", GL_STR_ARG(gl_times_format_span(until - s->started_at, span)));
    }
}

static size_t all_n(const struct gl_progress *p)
{
    return p->steps_n + p->others_n;
}

/* "completed  fetch   attempt 2  0.4s  why"; clipped to `width`, 0: no limit. */
static void add_step(const struct gl_progress *p, const struct gl_progress_step *s, size_t width,
                     gl_ms now, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf rest = {0};
    enum gl_color color = gl_term_status_color(s->status);
    size_t used = gl_term_width(s->id), pad = used < p->id_width ? p->id_width - used : 0;
    gl_str tail;

    gl_buf_fmt(&rest, "%.*s%*s", GL_STR_ARG(s->id), (int)pad, "");
    add_times(&rest, s, now);
    if (s->is_reused) {
        gl_buf_c(&rest, "  not run: reused");
    }
    if (s->reason.n > 0 && !gl_str_is(s->status, "completed") && !gl_str_is(s->status, "running")) {
        gl_buf_fmt(&rest, "  %.*s", GL_STR_ARG(s->reason));
    }
    while (rest.n > 0 && rest.p[rest.n - 1] == ' ') {
        rest.n--;
    }
    tail = gl_term_safe(&a, gl_buf_view(&rest));
    if (width > STATUS_WIDTH + 5) {
        tail = gl_term_clip(tail, width - STATUS_WIDTH - 5);
    }
    gl_buf_fmt(out, "  %s%-*.*s%s  %.*s", gl_term_on(p->term, color), STATUS_WIDTH,
               GL_STR_ARG(s->status), gl_term_off(p->term, color), GL_STR_ARG(tail));
}

static size_t count(const struct gl_progress *p, const char *status)
{
    size_t n = 0;

    for (size_t i = 0; i < p->steps_n; i++) {
        n += gl_str_is(p->steps[i].status, status);
    }
    return n;
}

static void add_counters(const struct gl_progress *p, struct gl_buf *out)
{
    static const char *const shown[] = {"running", "retry_wait", "blocked", "failed", "skipped"};

    gl_buf_fmt(out, "  %zu of %zu steps ended", p->ended_n + p->others_ended_n, all_n(p));
    for (size_t i = 0; i < GL_COUNT(shown); i++) {
        size_t n = count(p, shown[i]);

        if (n > 0) {
            gl_buf_fmt(out, ", %zu %s", n, shown[i]);
        }
    }
}

/* In one write, so that the terminal does not flicker. */
static void put_line(const struct gl_progress *p, const struct gl_buf *out)
{
    (void)fwrite(out->p, 1, out->n, p->term->file);
    (void)fflush(p->term->file);
}

/* ---- a terminal ---- */

void gl_progress_clear(struct gl_progress *p)
{
    if (p->drawn > 0) {
        (void)fprintf(p->term->file, "\033[%zuA\r\033[J", p->drawn);
        p->drawn = 0;
        p->is_changed = true;
    }
}

static bool needs_attention(const struct gl_progress_step *s)
{
    return gl_str_is(s->status, "running") || gl_str_is(s->status, "failed") ||
           gl_str_is(s->status, "blocked") || gl_str_is(s->status, "retry_wait") ||
           gl_str_is(s->status, "partial");
}

/* Redraw over the previous lines, and erase what remains of longer lines and of lines below. */
static void draw_block(struct gl_progress *p, gl_ms now)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};
    bool all = all_n(p) + ROWS_SPARE <= p->term->rows;
    size_t lines = 0;
    size_t max = p->term->rows > SHOWN_MAX + ROWS_SPARE ? SHOWN_MAX : 4;

    if (p->drawn > 0) {
        gl_buf_fmt(&out, "\033[%zuA\r", p->drawn);
    }
    for (size_t i = p->steps_n > 0; i != 0 && (all || lines < max); i = p->steps[i - 1].next) {
        if (all || needs_attention(&p->steps[i - 1])) {
            add_step(p, &p->steps[i - 1], p->term->columns, now, &out);
            gl_buf_c(&out, "\033[K\n");
            lines++;
        }
    }
    if (!all) {
        add_counters(p, &out);
        gl_buf_c(&out, "\033[K\n");
        lines++;
    }
    gl_buf_c(&out, "\033[J");
    put_line(p, &out);
    p->drawn = lines;
}

static void print_counters(struct gl_progress *p)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    add_counters(p, &out);
    gl_buf_char(&out, '\n');
    put_line(p, &out);
}

void gl_progress_draw(struct gl_progress *p, gl_ms now)
{
    gl_ms since = now - p->drawn_at;

    if (p->is_quiet || all_n(p) == 0 || since < (p->is_changed ? REDRAW_MS : TICK_MS)) {
        return;
    }
    if (p->term->is_tty) {
        draw_block(p, now);
    } else if (all_n(p) > PLAIN_STEPS_MAX && p->is_changed && since >= PLAIN_TICK_MS) {
        print_counters(p);
    } else {
        return;
    }
    p->drawn_at = now;
    p->is_changed = false;
}

/* ---- events ---- */

static void print_event(struct gl_progress *p, const struct gl_progress_step *s, gl_ms now)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    if (p->is_quiet || p->term->is_tty) {
        return;
    }
    if (all_n(p) > PLAIN_STEPS_MAX &&
        (gl_str_is(s->status, "running") || gl_str_is(s->status, "completed"))) {
        return;
    }
    add_step(p, s, 0, now, &out);
    gl_buf_char(&out, '\n');
    put_line(p, &out);
}

/* False: the event is about the job itself, or about a step that was not in its flow. */
static bool is_of_step(struct gl_progress *p, gl_str id)
{
    if (gl_map_find(&p->by_id, id) != NULL || gl_str_ends(id, GL_S("]"))) {
        return true;
    }
    if (p->others_n == 0 || id.n == 0 || id.p[0] == '@') {
        return false;
    }
    p->others_n--; /* the step is known from now on */
    return true;
}

void gl_progress_apply(struct gl_progress *p, const struct gl_json *j, gl_jnode event)
{
    gl_str id = gl_json_str(j, gl_json_get(j, event, "step_id"), &p->arena);
    gl_ms at = when(p, j, event, "timestamp");
    struct gl_progress_step *s;
    int64_t number = 0;

    p->is_changed = true;
    if (!is_of_step(p, id)) {
        return;
    }
    s = step_of(p, id);
    set_status(p, s, gl_json_str(j, gl_json_get(j, event, "status"), &p->arena));
    if (gl_json_i64(j, gl_json_get(j, event, "attempt"), &number)) {
        s->attempt = (uint32_t)number;
    }
    s->reason = text(p, j, event, "reason");
    s->is_reused = gl_json_get(j, event, "reused_from") != NULL;
    if (gl_str_is(s->status, "running")) {
        if (s->attempt != 0 && s->attempt == s->ran) {
            return; /* its deadline has passed, but it has not ended yet */
        }
        s->started_at = at;
        s->ended_at = 0;
    } else if (gl_progress_is_end(s->status)) {
        s->ended_at = at;
    }
    s->ran = gl_str_is(s->status, "running") ? s->attempt : 0;
    s->retry_at = gl_json_i64(j, gl_json_get(j, event, "retry_in_ms"), &number) ? at + number : 0;
    print_event(p, s, at);
}
