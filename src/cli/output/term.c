#include "cli/output/term.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

void gl_term_measure(struct gl_term *t)
{
    struct winsize size = {0};

    if (t->is_tty && ioctl(fileno(t->file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        t->columns = size.ws_col;
        t->rows = size.ws_row > 4 ? size.ws_row : 24;
    }
}

void gl_term_init(struct gl_term *t, FILE *file, bool no_color)
{
    *t = (struct gl_term){.file = file, .columns = 80, .rows = 24};
    t->is_tty = isatty(fileno(file)) == 1;
    t->has_color = t->is_tty && !no_color;
    gl_term_measure(t);
}

const char *gl_term_on(const struct gl_term *t, enum gl_color color)
{
    static const char *const codes[] = {
        [GL_PLAIN] = "",         [GL_DIM] = "\033[2m",     [GL_RED] = "\033[31m",
        [GL_GREEN] = "\033[32m", [GL_YELLOW] = "\033[33m", [GL_CYAN] = "\033[36m",
        [GL_BOLD] = "\033[1m",
    };

    return t->has_color ? codes[color] : "";
}

const char *gl_term_off(const struct gl_term *t, enum gl_color color)
{
    return t->has_color && color != GL_PLAIN ? "\033[0m" : "";
}

enum gl_color gl_term_status_color(gl_str status)
{
    static const struct {
        const char *word;
        enum gl_color color;
    } colors[] = {
        {"ok", GL_GREEN},       {"warn", GL_YELLOW},       {"fail", GL_RED},
        {"running", GL_CYAN},   {"completed", GL_GREEN},   {"failed", GL_RED},
        {"cancelled", GL_RED},  {"retry_wait", GL_YELLOW}, {"blocked", GL_YELLOW},
        {"paused", GL_YELLOW},  {"pausing", GL_YELLOW},    {"cancelling", GL_YELLOW},
        {"partial", GL_YELLOW}, {"skipped", GL_DIM},       {"pending", GL_DIM},
    };

    for (size_t i = 0; i < GL_COUNT(colors); i++) {
        if (gl_str_is(status, colors[i].word)) {
            return colors[i].color;
        }
    }
    return GL_PLAIN;
}

gl_ms gl_term_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (gl_ms)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- text ---- */

/* U+202A to U+202E and U+2066 to U+2069 change the direction of the following text: it reads
 * differently from what it is. */
static bool is_turning(const char *p)
{
    unsigned char c = (unsigned char)p[2];

    return (unsigned char)p[0] == 0xe2 &&
           (((unsigned char)p[1] == 0x80 && c >= 0xaa && c <= 0xae) ||
            ((unsigned char)p[1] == 0x81 && c >= 0xa6 && c <= 0xa9));
}

/* One character of `n` bytes, 0: not UTF-8. Escapes that are possible in JSON use JSON's form, so
 * that valid JSON stays valid. */
static void escape_one(struct gl_buf *out, const char *p, size_t n)
{
    unsigned c = (unsigned char)p[0];

    if (n == 0 || (n == 1 && c < 0x20)) {
        gl_buf_fmt(out, "\\x%02x", c);
    } else if (n == 1 && c == 0x7f) {
        gl_buf_c(out, "\\u007f");
    } else if (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0) { /* C1 */
        gl_buf_fmt(out, "\\u%04x", (unsigned)(unsigned char)p[1]);
    } else if (n == 3 && is_turning(p)) {
        gl_buf_fmt(out, "\\u20%02x",
                   (((unsigned char)p[1] & 3u) << 6) | ((unsigned char)p[2] & 0x3fu));
    } else {
        gl_buf_add(out, p, n);
    }
}

static void escape(struct gl_buf *out, gl_str text, bool keeps_lines)
{
    for (size_t i = 0; i < text.n;) {
        size_t n = gl_str_utf8_at((gl_str){.p = text.p + i, .n = text.n - i});

        if (text.p[i] == '\t') {
            gl_buf_char(out, keeps_lines ? '\t' : ' ');
        } else if (text.p[i] == '\n' && keeps_lines) {
            gl_buf_char(out, '\n');
        } else {
            escape_one(out, text.p + i, n);
        }
        i += n > 0 ? n : 1;
    }
}

gl_str gl_term_safe(struct gl_arena *a, gl_str text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    escape(&out, text, false);
    return gl_str_dup(a, gl_buf_view(&out));
}

void gl_term_write(const struct gl_term *t, gl_str text)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    if (t->is_tty && !t->is_raw) {
        escape(&out, text, true);
        text = gl_buf_view(&out);
    }
    if (text.n > 0) {
        (void)fwrite(text.p, 1, text.n, t->file); /* gl_cli_main() checks stdout at the end */
    }
}

void gl_term_print(const struct gl_term *t, gl_str text)
{
    gl_term_write(t, text);
    (void)fputc('\n', t->file);
}

static bool is_start(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

size_t gl_term_width(gl_str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += is_start(text.p[i]);
    }
    return n;
}

gl_str gl_term_clip(gl_str text, size_t width)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += is_start(text.p[i]);
        if (n > width) {
            return (gl_str){.p = text.p, .n = i};
        }
    }
    return text;
}

gl_str gl_term_cut(struct gl_arena *a, gl_str text, size_t width)
{
    if (width == 0 || gl_term_width(text) <= width) {
        return gl_term_clip(text, width);
    }
    return gl_str_fmt(a, "%.*s\u2026", GL_STR_ARG(gl_term_clip(text, width - 1)));
}

gl_str gl_term_line(gl_str text, size_t room, gl_str *ret_rest)
{
    size_t n = gl_term_clip(text, room).n;

    if (n < text.n) {
        size_t space = n;

        while (space > 0 && text.p[space] != ' ') {
            space--;
        }
        for (n = space > 0 ? space : n; space == 0 && n < text.n && text.p[n] != ' ';) {
            n++; /* a word longer than the line: for example a path, which people copy */
        }
    }
    *ret_rest = gl_str_trim((gl_str){.p = text.p + n, .n = text.n - n});
    return (gl_str){.p = text.p, .n = n};
}

gl_str gl_term_time(struct gl_arena *a, gl_str time)
{
    gl_ms ms;

    if (time.n != 24 || time.p[19] != '.' || !gl_times_parse(time, &ms)) {
        return time;
    }
    return gl_str_fmt(a, "%.19sZ", time.p);
}
