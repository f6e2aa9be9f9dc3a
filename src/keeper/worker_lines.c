#include "keeper/worker_lines.h"

#include "base/check.h"
#include "base/mem.h"
#include "keeper/client.h"
#include "keeper/redact.h"

enum {
    MERGE_BEACONS_ABOVE =
        100, /* with more lines waiting, consecutive beacons are merged into the last */
    CODE_POINT_BYTES = 4,
};

/* ---- life ---- */

struct gl_worker_lines *gl_worker_lines_new(struct gl_attempt *a, uint32_t out_max)
{
    struct gl_worker_lines *w = gl_mem_alloc(sizeof(*w));
    w->attempt = a;
    w->out_max = out_max > 0 ? out_max : GL_STDOUT_BYTES;
    gl_list_init(&w->waiting);
    gl_list_init(&w->lines);
    gl_list_init(&w->beacons);
    GL_ASSERT(w->out_max > 0);
    GL_ASSERT(w->state == GL_WORKER_LINE_BEGIN);
    return w;
}

void gl_worker_lines_free(struct gl_keeper *k, struct gl_worker_lines *w)
{
    if (w == NULL) {
        return;
    }
    while (gl_worker_lines_first(w) != NULL) {
        gl_worker_lines_pop(w);
    }
    gl_list_remove(&w->waiting);
    GL_ASSERT(k->worker_bytes >= w->out.n);
    GL_ASSERT(w->lines_n == 0);
    k->worker_bytes -= w->out.n;
    gl_buf_done(&w->out);
    gl_buf_done(&w->err);
    gl_buf_done(&w->line);
    gl_mem_free(w);
}

/* ---- lines for the runtime ---- */

struct gl_worker_line *gl_worker_lines_first(struct gl_worker_lines *w)
{
    struct gl_link *l = gl_list_first(&w->lines);
    return l != NULL ? GL_CONTAINER(l, struct gl_worker_line, link) : NULL;
}

static void forget(struct gl_worker_lines *w, struct gl_worker_line *s)
{
    GL_ASSERT(w->lines_n > 0);
    GL_ASSERT(w->lines_bytes >= s->n);
    gl_list_remove(&s->link);
    gl_list_remove(&s->beacon);
    w->lines_n--;
    w->lines_bytes -= s->n;
    gl_mem_free(s);
}

void gl_worker_lines_pop(struct gl_worker_lines *w)
{
    GL_ASSERT(w->lines_n > 0);
    forget(w, gl_worker_lines_first(w));
}

bool gl_worker_lines_is_full(const struct gl_worker_lines *w)
{
    return w->lines_n >= GL_SAID_WAITING_MAX || w->lines_bytes >= GL_SAID_WAITING_BYTES_MAX;
}

static void drop_one(struct gl_worker_lines *w)
{
    struct gl_link *beacon = gl_list_first(&w->beacons);

    GL_ASSERT(w->lines_n > 0);
    forget(w, beacon != NULL ? GL_CONTAINER(beacon, struct gl_worker_line, beacon)
                             : gl_worker_lines_first(w));
    w->dropped_n++;
}

/* Consecutive beacons carry no more news than the last one. */
static void merge_beacon(struct gl_worker_lines *w)
{
    struct gl_worker_line *last = GL_CONTAINER(w->lines.prev, struct gl_worker_line, link);
    if (w->lines_n > MERGE_BEACONS_ABOVE && !gl_list_empty(&last->beacon)) {
        forget(w, last);
    }
}

static void add_runtime_line(struct gl_keeper *k, struct gl_worker_lines *w, gl_str text)
{
    bool is_beacon = gl_str_starts(text, GL_S(GL_EXEC_BEACON));
    struct gl_worker_line *s = gl_mem_alloc(sizeof(*s) + text.n);
    memcpy(s->text, text.p, text.n);
    s->n = text.n;
    gl_list_init(&s->beacon);
    if (is_beacon) {
        merge_beacon(w);
    }
    gl_list_push(&w->lines, &s->link);
    if (is_beacon) {
        gl_list_push(&w->beacons, &s->beacon);
    }
    w->lines_n++;
    w->lines_bytes += s->n;
    /* While a node is connected nothing is dropped: stdout is not read until it has caught up. */
    while ((w->is_over || !gl_client_takes_lines(k)) &&
           (w->lines_n > GL_SAID_WAITING_MAX || w->lines_bytes > GL_SAID_WAITING_BYTES_MAX)) {
        drop_one(w);
    }
    if (gl_list_empty(&w->waiting)) {
        gl_list_push(&k->lines_waiting, &w->waiting);
    }
}

/* ---- stdout, line by line ---- */

static bool may_begin(gl_str line, gl_str prefix)
{
    return line.n <= prefix.n ? gl_str_starts(prefix, line) : gl_str_starts(line, prefix);
}

static bool is_runtime_line(gl_str line)
{
    return gl_str_starts(line, GL_S(GL_EXEC_BEACON)) || gl_str_starts(line, GL_S(GL_EXEC_SAYS));
}

/* Hold the bytes back until the kind of line is known. */
static void begin_line(struct gl_worker_lines *w, gl_str *part, struct gl_buf *plain)
{
    size_t room = strlen(GL_EXEC_BEACON) - w->line.n;
    size_t n = part->n < room ? part->n : room;

    GL_ASSERT(w->state == GL_WORKER_LINE_BEGIN);
    GL_ASSERT(w->line.n < strlen(GL_EXEC_BEACON));
    gl_buf_add(&w->line, part->p, n);
    part->p += n;
    part->n -= n;
    gl_str line = gl_buf_view(&w->line);
    if (is_runtime_line(line)) {
        w->state = GL_WORKER_LINE_RUNTIME;
    } else if (!may_begin(line, GL_S(GL_EXEC_BEACON)) && !may_begin(line, GL_S(GL_EXEC_SAYS))) {
        w->state = GL_WORKER_LINE_PLAIN;
        gl_buf_str(plain, line);
        gl_buf_reset(&w->line);
    }
}

static void take_part(struct gl_worker_lines *w, gl_str part, struct gl_buf *plain)
{
    if (w->state == GL_WORKER_LINE_BEGIN && part.n > 0) {
        begin_line(w, &part, plain);
    }
    if (w->state == GL_WORKER_LINE_PLAIN) {
        gl_buf_str(plain, part);
    } else if (w->state == GL_WORKER_LINE_RUNTIME && w->line.n + part.n > GL_SAID_BYTES_MAX) {
        w->state = GL_WORKER_LINE_LONG;
        gl_buf_done(&w->line);
    } else if (w->state == GL_WORKER_LINE_RUNTIME) {
        gl_buf_str(&w->line, part);
    }
    GL_ASSERT(w->line.n <= GL_SAID_BYTES_MAX);
}

static void end_line(struct gl_keeper *k, struct gl_worker_lines *w, struct gl_buf *plain)
{
    gl_str line = gl_buf_view(&w->line);
    if (w->state == GL_WORKER_LINE_RUNTIME) {
        line.n -= line.p[line.n - 1] == '\r';
        add_runtime_line(k, w, line);
    } else if (w->state == GL_WORKER_LINE_LONG) {
        gl_worker_lines_err(w,
                            GL_S("-- a line for the runtime has more than 64 KiB: dropped --\n"));
    } else {
        gl_buf_str(plain, line);
    }
    gl_buf_reset(&w->line);
    w->state = GL_WORKER_LINE_BEGIN;
    GL_ASSERT(w->line.n == 0);
}

static void keep_out(struct gl_keeper *k, struct gl_worker_lines *w, gl_str text)
{
    size_t room = w->out_max - w->out.n;
    size_t all = k->worker_bytes < GL_KEEPER_WORKER_BYTES_MAX
                     ? GL_KEEPER_WORKER_BYTES_MAX - k->worker_bytes
                     : 0;

    GL_ASSERT(w->out.n <= w->out_max);
    w->out_bytes += text.n;
    room = w->is_cut ? 0 : room < all ? room : all;
    if (text.n > room) {
        w->is_cut = true;
        text.n = room;
    }
    gl_buf_str(&w->out, text);
    k->worker_bytes += text.n;
    GL_ASSERT(w->out.n <= w->out_max);
    GL_ASSERT(w->out_bytes >= w->out.n);
}

void gl_worker_lines_out(struct gl_keeper *k, struct gl_worker_lines *w, gl_str text,
                         struct gl_buf *plain)
{
    size_t begin = plain->n;
    const char *newline;
    while (text.n > 0 && (newline = memchr(text.p, '\n', text.n)) != NULL) {
        size_t n = (size_t)(newline - text.p);
        bool was_runtime;
        take_part(w, (gl_str){.p = text.p, .n = n}, plain);
        was_runtime = w->state == GL_WORKER_LINE_RUNTIME || w->state == GL_WORKER_LINE_LONG;
        end_line(k, w, plain);
        if (!was_runtime) {
            gl_buf_char(plain, '\n');
        }
        text.p += n + 1;
        text.n -= n + 1;
    }
    take_part(w, text, plain);
    keep_out(k, w, (gl_str){.p = plain->p + begin, .n = plain->n - begin});
}

void gl_worker_lines_end_out(struct gl_keeper *k, struct gl_worker_lines *w, struct gl_buf *plain)
{
    size_t begin = plain->n;
    if (w->line.n > 0 || w->state == GL_WORKER_LINE_LONG) {
        end_line(k, w, plain);
        keep_out(k, w, (gl_str){.p = plain->p + begin, .n = plain->n - begin});
    }
    gl_buf_done(&w->line);
}

/* ---- stderr ---- */

/* Keep the last GL_STDERR_BYTES_MAX bytes; hold at most twice as many in between. */
void gl_worker_lines_err(struct gl_worker_lines *w, gl_str text)
{
    if (text.n > GL_STDERR_BYTES_MAX) {
        text.p += text.n - GL_STDERR_BYTES_MAX;
        text.n = GL_STDERR_BYTES_MAX;
    }
    gl_buf_str(&w->err, text);
    if (w->err.n > 2 * GL_STDERR_BYTES_MAX) {
        memmove(w->err.p, w->err.p + w->err.n - GL_STDERR_BYTES_MAX, GL_STDERR_BYTES_MAX);
        w->err.n = GL_STDERR_BYTES_MAX;
    }
    GL_ASSERT(w->err.n <= 2 * GL_STDERR_BYTES_MAX);
}

/* ---- the end ---- */

/* A cut may split a code point. */
static size_t whole_bytes(gl_str s)
{
    for (size_t back = 1; back < CODE_POINT_BYTES && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        if (c >= 0xc0) { /* a first byte: is the code point complete? */
            size_t n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
            return n > back ? s.n - back : s.n;
        }
        if (c < 0x80) {
            break;
        }
    }
    return s.n;
}

static void note_cut(struct gl_worker_lines *w)
{
    GL_ASSERT(w->is_cut);
    w->out.n = whole_bytes(gl_buf_view(&w->out));
    size_t begin = w->out.n;
    gl_buf_fmt(&w->out, "\n-- stdout cut: %zu of %llu bytes kept --\n", begin,
               (unsigned long long)w->out_bytes);
    GL_ASSERT(w->out.n - begin <= GL_KEEPER_NOTE_BYTES);
}

static void note_dropped(struct gl_worker_lines *w)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf note = {0};

    GL_ASSERT(w->dropped_n > 0);
    gl_buf_fmt(&note, "-- %llu lines for the runtime dropped: no node took them in time --\n",
               (unsigned long long)w->dropped_n);
    gl_worker_lines_err(w, gl_buf_view(&note));
}

/* Cut at the start of a line, if there is one. */
static void cut_err(struct gl_worker_lines *w)
{
    size_t skip = w->err.n - GL_STDERR_BYTES_MAX;
    const char *newline = memchr(w->err.p + skip, '\n', GL_STDERR_BYTES_MAX - 1);

    GL_ASSERT(w->err.n > GL_STDERR_BYTES_MAX);
    if (newline != NULL) {
        skip = (size_t)(newline + 1 - w->err.p);
    }
    memmove(w->err.p, w->err.p + skip, w->err.n - skip);
    w->err.n -= skip;
    GL_ASSERT(w->err.n <= GL_STDERR_BYTES_MAX);
}

/* A secret that was a number left "***" where JSON needs a value. Only what looks like a document
 * is repaired: the whole text, or its last line. */
static void repair_json(struct gl_worker_lines *w)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf last = {0};
    gl_str text = gl_str_trim(gl_buf_view(&w->out));
    const char *newline = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
    const char *from = text.p;
    if (text.n > 0 && text.p[0] != '{' && text.p[0] != '[' && newline != NULL) {
        from = newline + 1;
    }
    if (text.n > 0 && (from[0] == '{' || from[0] == '[')) {
        gl_buf_add(&last, from, (size_t)(w->out.p + w->out.n - from));
        gl_redact_repair_json(&last);
        w->out.n = (size_t)(from - w->out.p);
        gl_buf_str(&w->out, gl_buf_view(&last));
    }
    if (w->out.n > w->out_max) { /* mending can make it longer */
        w->out.n = w->out_max;
        w->is_cut = true;
    }
    GL_ASSERT(w->out.n <= w->out_max);
}

void gl_worker_lines_end(struct gl_keeper *k, struct gl_worker_lines *w, bool redacted)
{
    GL_ASSERT(w->is_over);
    GL_ASSERT(k->worker_bytes >= w->out.n);
    k->worker_bytes -= w->out.n;
    if (redacted) {
        repair_json(w);
    }
    if (w->is_cut) {
        note_cut(w);
    }
    k->worker_bytes += w->out.n;
    if (w->dropped_n > 0) {
        note_dropped(w);
    }
    if (w->err.n > GL_STDERR_BYTES_MAX) {
        cut_err(w);
    }
}

void gl_worker_lines_restore(struct gl_keeper *k, struct gl_worker_lines *w,
                             const struct gl_keeper_worker *result)
{
    GL_ASSERT(w->out.n == 0);
    gl_buf_str(&w->out, result->out);
    gl_buf_str(&w->err, result->err);
    k->worker_bytes += result->out.n;
    w->is_cut = result->is_cut;
    w->out_bytes = result->out_bytes;
}

struct gl_keeper_worker gl_worker_lines_result(const struct gl_worker_lines *w)
{
    return (struct gl_keeper_worker){
        .out = gl_buf_view(&w->out),
        .err = gl_buf_view(&w->err),
        .is_cut = w->is_cut,
        .out_bytes = w->out_bytes,
    };
}
