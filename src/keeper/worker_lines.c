#include "keeper/worker_lines.h"

#include "base/check.h"
#include "base/mem.h"
#include "keeper/client.h"
#include "keeper/redact.h"

enum {
    CROWD = 100, /* when more wait, of beacons that follow each other only the last does */
    CODE_POINT_BYTES = 4,
};

/* ---- life ---- */

struct gl_worker_lines *gl_worker_lines_new(struct gl_attempt *c, uint32_t out_max)
{
    struct gl_worker_lines *h = gl_mem_alloc(sizeof(*h));
    h->charge = c;
    h->out_max = out_max > 0 ? out_max : GL_STDOUT_BYTES;
    gl_list_init(&h->talking);
    gl_list_init(&h->lines);
    gl_list_init(&h->beacons);
    GL_ASSERT(h->out_max > 0);
    GL_ASSERT(h->state == GL_WORKER_LINE_BEGIN);
    return h;
}

void gl_worker_lines_free(struct gl_keeper *k, struct gl_worker_lines *h)
{
    if (h == NULL) {
        return;
    }
    while (gl_worker_lines_first(h) != NULL) {
        gl_worker_lines_pop(h);
    }
    gl_list_remove(&h->talking);
    GL_ASSERT(k->heard_bytes >= h->out.n);
    GL_ASSERT(h->lines_n == 0);
    k->heard_bytes -= h->out.n;
    gl_buf_done(&h->out);
    gl_buf_done(&h->err);
    gl_buf_done(&h->line);
    gl_mem_free(h);
}

/* ---- lines for the runtime ---- */

struct gl_said *gl_worker_lines_first(struct gl_worker_lines *h)
{
    struct gl_link *l = gl_list_first(&h->lines);
    return l != NULL ? GL_CONTAINER(l, struct gl_said, link) : NULL;
}

static void forget(struct gl_worker_lines *h, struct gl_said *s)
{
    GL_ASSERT(h->lines_n > 0);
    GL_ASSERT(h->lines_bytes >= s->n);
    gl_list_remove(&s->link);
    gl_list_remove(&s->beacon);
    h->lines_n--;
    h->lines_bytes -= s->n;
    gl_mem_free(s);
}

void gl_worker_lines_pop(struct gl_worker_lines *h)
{
    GL_ASSERT(h->lines_n > 0);
    forget(h, gl_worker_lines_first(h));
}

bool gl_worker_lines_is_full(const struct gl_worker_lines *h)
{
    return h->lines_n >= GL_SAID_WAITING_MAX || h->lines_bytes >= GL_SAID_WAITING_BYTES_MAX;
}

static void drop_one(struct gl_worker_lines *h)
{
    struct gl_link *beacon = gl_list_first(&h->beacons);

    GL_ASSERT(h->lines_n > 0);
    forget(h, beacon != NULL ? GL_CONTAINER(beacon, struct gl_said, beacon)
                             : gl_worker_lines_first(h));
    h->dropped_n++;
}

/* Beacons in a row say the same; in a crowd the last one is enough. */
static void thin_out(struct gl_worker_lines *h)
{
    struct gl_said *last = GL_CONTAINER(h->lines.prev, struct gl_said, link);
    if (h->lines_n > CROWD && !gl_list_empty(&last->beacon)) {
        forget(h, last);
    }
}

static void add_said(struct gl_keeper *k, struct gl_worker_lines *h, gl_str text)
{
    bool is_beacon = gl_str_starts(text, GL_S(GL_EXEC_BEACON));
    struct gl_said *s = gl_mem_alloc(sizeof(*s) + text.n);
    memcpy(s->text, text.p, text.n);
    s->n = text.n;
    gl_list_init(&s->beacon);
    if (is_beacon) {
        thin_out(h);
    }
    gl_list_push(&h->lines, &s->link);
    if (is_beacon) {
        gl_list_push(&h->beacons, &s->beacon);
    }
    h->lines_n++;
    h->lines_bytes += s->n;
    /* While the node listens nothing is lost: stdout is not read until it has caught up. */
    while ((h->is_over || !gl_client_hears(k)) &&
           (h->lines_n > GL_SAID_WAITING_MAX || h->lines_bytes > GL_SAID_WAITING_BYTES_MAX)) {
        drop_one(h);
    }
    if (gl_list_empty(&h->talking)) {
        gl_list_push(&k->talking, &h->talking);
    }
}

/* ---- stdout, line by line ---- */

static bool may_begin(gl_str line, gl_str prefix)
{
    return line.n <= prefix.n ? gl_str_starts(prefix, line) : gl_str_starts(line, prefix);
}

static bool is_said(gl_str line)
{
    return gl_str_starts(line, GL_S(GL_EXEC_BEACON)) || gl_str_starts(line, GL_S(GL_EXEC_SAYS));
}

/* Held back until it is known what the line is. */
static void begin_line(struct gl_worker_lines *h, gl_str *part, struct gl_buf *plain)
{
    size_t room = strlen(GL_EXEC_BEACON) - h->line.n;
    size_t n = part->n < room ? part->n : room;

    GL_ASSERT(h->state == GL_WORKER_LINE_BEGIN);
    GL_ASSERT(h->line.n < strlen(GL_EXEC_BEACON));
    gl_buf_add(&h->line, part->p, n);
    part->p += n;
    part->n -= n;
    gl_str line = gl_buf_view(&h->line);
    if (is_said(line)) {
        h->state = GL_WORKER_LINE_SAID;
    } else if (!may_begin(line, GL_S(GL_EXEC_BEACON)) && !may_begin(line, GL_S(GL_EXEC_SAYS))) {
        h->state = GL_WORKER_LINE_PLAIN;
        gl_buf_str(plain, line);
        gl_buf_reset(&h->line);
    }
}

static void take_part(struct gl_worker_lines *h, gl_str part, struct gl_buf *plain)
{
    if (h->state == GL_WORKER_LINE_BEGIN && part.n > 0) {
        begin_line(h, &part, plain);
    }
    if (h->state == GL_WORKER_LINE_PLAIN) {
        gl_buf_str(plain, part);
    } else if (h->state == GL_WORKER_LINE_SAID && h->line.n + part.n > GL_SAID_BYTES_MAX) {
        h->state = GL_WORKER_LINE_LONG;
        gl_buf_done(&h->line);
    } else if (h->state == GL_WORKER_LINE_SAID) {
        gl_buf_str(&h->line, part);
    }
    GL_ASSERT(h->line.n <= GL_SAID_BYTES_MAX);
}

static void end_line(struct gl_keeper *k, struct gl_worker_lines *h, struct gl_buf *plain)
{
    gl_str line = gl_buf_view(&h->line);
    if (h->state == GL_WORKER_LINE_SAID) {
        line.n -= line.p[line.n - 1] == '\r';
        add_said(k, h, line);
    } else if (h->state == GL_WORKER_LINE_LONG) {
        gl_worker_lines_err(h,
                            GL_S("-- a line for the runtime has more than 64 KiB: dropped --\n"));
    } else {
        gl_buf_str(plain, line);
    }
    gl_buf_reset(&h->line);
    h->state = GL_WORKER_LINE_BEGIN;
    GL_ASSERT(h->line.n == 0);
}

static void keep_out(struct gl_keeper *k, struct gl_worker_lines *h, gl_str text)
{
    size_t room = h->out_max - h->out.n;
    size_t all =
        k->heard_bytes < GL_KEEPER_HEARD_BYTES_MAX ? GL_KEEPER_HEARD_BYTES_MAX - k->heard_bytes : 0;

    GL_ASSERT(h->out.n <= h->out_max);
    h->out_bytes += text.n;
    room = h->is_cut ? 0 : room < all ? room : all;
    if (text.n > room) {
        h->is_cut = true;
        text.n = room;
    }
    gl_buf_str(&h->out, text);
    k->heard_bytes += text.n;
    GL_ASSERT(h->out.n <= h->out_max);
    GL_ASSERT(h->out_bytes >= h->out.n);
}

void gl_worker_lines_out(struct gl_keeper *k, struct gl_worker_lines *h, gl_str text,
                         struct gl_buf *plain)
{
    size_t begin = plain->n;
    const char *newline;
    while (text.n > 0 && (newline = memchr(text.p, '\n', text.n)) != NULL) {
        size_t n = (size_t)(newline - text.p);
        bool was_said;
        take_part(h, (gl_str){.p = text.p, .n = n}, plain);
        was_said = h->state == GL_WORKER_LINE_SAID || h->state == GL_WORKER_LINE_LONG;
        end_line(k, h, plain);
        if (!was_said) {
            gl_buf_char(plain, '\n');
        }
        text.p += n + 1;
        text.n -= n + 1;
    }
    take_part(h, text, plain);
    keep_out(k, h, (gl_str){.p = plain->p + begin, .n = plain->n - begin});
}

void gl_worker_lines_end_out(struct gl_keeper *k, struct gl_worker_lines *h, struct gl_buf *plain)
{
    size_t begin = plain->n;
    if (h->line.n > 0 || h->state == GL_WORKER_LINE_LONG) {
        end_line(k, h, plain);
        keep_out(k, h, (gl_str){.p = plain->p + begin, .n = plain->n - begin});
    }
    gl_buf_done(&h->line);
}

/* ---- stderr ---- */

/* Keep the last bytes of the limit, and no more than twice as many in between. */
void gl_worker_lines_err(struct gl_worker_lines *h, gl_str text)
{
    if (text.n > GL_STDERR_BYTES_MAX) {
        text.p += text.n - GL_STDERR_BYTES_MAX;
        text.n = GL_STDERR_BYTES_MAX;
    }
    gl_buf_str(&h->err, text);
    if (h->err.n > 2 * GL_STDERR_BYTES_MAX) {
        memmove(h->err.p, h->err.p + h->err.n - GL_STDERR_BYTES_MAX, GL_STDERR_BYTES_MAX);
        h->err.n = GL_STDERR_BYTES_MAX;
    }
    GL_ASSERT(h->err.n <= 2 * GL_STDERR_BYTES_MAX);
}

/* ---- the end ---- */

/* A cut may go through the middle of a code point. */
static size_t whole_bytes(gl_str s)
{
    for (size_t back = 1; back < CODE_POINT_BYTES && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        if (c >= 0xc0) { /* a first byte: is the rest there? */
            size_t n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
            return n > back ? s.n - back : s.n;
        }
        if (c < 0x80) {
            break;
        }
    }
    return s.n;
}

static void note_cut(struct gl_worker_lines *h)
{
    GL_ASSERT(h->is_cut);
    h->out.n = whole_bytes(gl_buf_view(&h->out));
    size_t begin = h->out.n;
    gl_buf_fmt(&h->out, "\n-- stdout cut: %zu of %llu bytes kept --\n", begin,
               (unsigned long long)h->out_bytes);
    GL_ASSERT(h->out.n - begin <= GL_KEEPER_NOTE_BYTES);
}

static void note_dropped(struct gl_worker_lines *h)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf note = {0};

    GL_ASSERT(h->dropped_n > 0);
    gl_buf_fmt(&note, "-- %llu lines for the runtime dropped: nobody took them in time --\n",
               (unsigned long long)h->dropped_n);
    gl_worker_lines_err(h, gl_buf_view(&note));
}

/* From the beginning of a line on, if there is one. */
static void cut_err(struct gl_worker_lines *h)
{
    size_t skip = h->err.n - GL_STDERR_BYTES_MAX;
    const char *newline = memchr(h->err.p + skip, '\n', GL_STDERR_BYTES_MAX - 1);

    GL_ASSERT(h->err.n > GL_STDERR_BYTES_MAX);
    if (newline != NULL) {
        skip = (size_t)(newline + 1 - h->err.p);
    }
    memmove(h->err.p, h->err.p + skip, h->err.n - skip);
    h->err.n -= skip;
    GL_ASSERT(h->err.n <= GL_STDERR_BYTES_MAX);
}

/* A secret that was a number has left "***" where no JSON can be. Only what looks like a document
 * is touched: all of it, or its last line. */
static void mend(struct gl_worker_lines *h)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf last = {0};
    gl_str text = gl_str_trim(gl_buf_view(&h->out));
    const char *newline = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
    const char *from = text.p;
    if (text.n > 0 && text.p[0] != '{' && text.p[0] != '[' && newline != NULL) {
        from = newline + 1;
    }
    if (text.n > 0 && (from[0] == '{' || from[0] == '[')) {
        gl_buf_add(&last, from, (size_t)(h->out.p + h->out.n - from));
        gl_redact_mend_json(&last);
        h->out.n = (size_t)(from - h->out.p);
        gl_buf_str(&h->out, gl_buf_view(&last));
    }
    if (h->out.n > h->out_max) { /* mending can make it longer */
        h->out.n = h->out_max;
        h->is_cut = true;
    }
    GL_ASSERT(h->out.n <= h->out_max);
}

void gl_worker_lines_end(struct gl_keeper *k, struct gl_worker_lines *h, bool redacted)
{
    GL_ASSERT(h->is_over);
    GL_ASSERT(k->heard_bytes >= h->out.n);
    k->heard_bytes -= h->out.n;
    if (redacted) {
        mend(h);
    }
    if (h->is_cut) {
        note_cut(h);
    }
    k->heard_bytes += h->out.n;
    if (h->dropped_n > 0) {
        note_dropped(h);
    }
    if (h->err.n > GL_STDERR_BYTES_MAX) {
        cut_err(h);
    }
}

void gl_worker_lines_recall(struct gl_keeper *k, struct gl_worker_lines *h,
                            const struct gl_keeper_worker *w)
{
    GL_ASSERT(h->out.n == 0);
    gl_buf_str(&h->out, w->out);
    gl_buf_str(&h->err, w->err);
    k->heard_bytes += w->out.n;
    h->is_cut = w->is_cut;
    h->out_bytes = w->out_bytes;
}

struct gl_keeper_worker gl_worker_lines_result(const struct gl_worker_lines *h)
{
    return (struct gl_keeper_worker){
        .out = gl_buf_view(&h->out),
        .err = gl_buf_view(&h->err),
        .is_cut = h->is_cut,
        .out_bytes = h->out_bytes,
    };
}
