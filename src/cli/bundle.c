#include "cli/bundle.h"

#include <time.h>

#include "base/check.h"
#include "base/json.h"
#include "base/when.h"
#include "build.h"
#include "cli/mask.h"
#include "cli/mask_data.h"
#include "os/fs.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/recorder.h"

enum { FORMAT = 1, LOG_LINES = 200, LOG_BYTES_MAX = 8 << 20, NOTES_MAX = 64 };
#define SEGMENT_BYTES_MAX ((size_t)1 << 30)

struct making {
    struct gl_bundle *b;
    struct gl_arena *a;
    struct gl_mask *mask; /* NULL: nothing is taken out */
    struct gl_buf body;   /* everything but the first line */
    gl_str notes[NOTES_MAX];
    size_t notes_n;
};

static void note(struct making *m, gl_str sentence)
{
    if (m->notes_n < NOTES_MAX) {
        m->notes[m->notes_n++] = sentence;
    }
}

/* ---- segments ---- */

static bool is_check(gl_str line)
{
    return gl_str_starts(line, GL_S("{\"check\":"));
}

static bool is_true(gl_str check, gl_str bytes)
{
    struct gl_buf wanted = {0};
    bool yes;

    gl_recorder_put_check(bytes, &wanted);
    yes = gl_str_eq((gl_str){.p = wanted.p, .n = wanted.n - 1}, check);
    gl_buf_done(&wanted);
    return yes;
}

/* The line at the front, which ends in a newline; false: there is none that does. */
static bool cut_line(gl_str *text, gl_str *ret)
{
    const char *end = text->n > 0 ? memchr(text->p, '\n', text->n) : NULL;

    if (end == NULL) {
        return false;
    }
    *ret = (gl_str){.p = text->p, .n = (size_t)(end - text->p)};
    text->n -= ret->n + 1;
    text->p = end + 1;
    return true;
}

static int add_line(struct making *m, gl_str line, struct gl_buf *out, struct gl_why *why)
{
    m->b->events_n += gl_str_starts(line, GL_S("{\"event\":"));
    if (m->mask != NULL) {
        return gl_mask_line(m->mask, line, out, why);
    }
    gl_buf_str(out, line);
    gl_buf_char(out, '\n');
    return 0;
}

/* The lines of a segment, up to the first that cannot be trusted. Its checks are made anew. */
static void add_lines(struct making *m, uint64_t number, gl_str text, struct gl_buf *out)
{
    const char *from = text.p;
    struct gl_why why;
    gl_str line;

    while (cut_line(&text, &line)) {
        if (is_check(line)) {
            if (!is_true(line, (gl_str){.p = from, .n = (size_t)(line.p - from)})) {
                note(m, gl_str_fmt(m->a, "segment %llu is damaged: it is replayed up to there",
                                   (unsigned long long)number));
                return;
            }
            from = text.p;
        } else if (add_line(m, line, out, &why) != 0) {
            note(m, gl_str_fmt(m->a, "segment %llu: %s", (unsigned long long)number, why.text));
            return;
        }
    }
    if (text.n > 0) {
        note(m, gl_str_fmt(m->a, "segment %llu breaks off in the middle of a line",
                           (unsigned long long)number));
    }
}

static void add_segment(struct making *m, const char *folder, uint64_t number)
{
    const char *path = gl_recorder_path(m->a, folder, number);
    struct gl_buf text = {0}, lines = {0};
    struct gl_why why;
    int rc = gl_fs_read(path, SEGMENT_BYTES_MAX, &text, &why);

    if (rc == 0) {
        add_lines(m, number, gl_buf_view(&text), &lines);
    } else if (rc != GL_E_NOT_FOUND) { /* that is: it made room for a newer one */
        note(m, gl_str_fmt(m->a, "%s", why.text));
    }
    if (lines.n > 0) {
        gl_buf_fmt(&m->body, "{\"segment\":{\"number\":%llu}}\n", (unsigned long long)number);
        gl_buf_str(&m->body, gl_buf_view(&lines));
        gl_recorder_put_check(gl_buf_view(&lines), &m->body);
        m->b->segments_n++;
    }
    gl_buf_done(&text);
    gl_buf_done(&lines);
}

static int add_segments(struct making *m, struct gl_why *reterr_why)
{
    const char *folder = gl_paths_in(m->a, m->b->data, GL_RECORDER_FOLDER);
    uint64_t *numbers;
    size_t n;
    int rc = gl_recorder_list(folder, m->a, &numbers, &n, reterr_why);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        add_segment(m, folder, numbers[i]);
    }
    if (rc == 0 && m->b->segments_n == 0) {
        rc = gl_why(reterr_why, GL_E_NOT_FOUND,
                    "nothing has been recorded in %s: is record_bytes 0, or has no node run?",
                    folder);
    }
    return rc;
}

/* ---- what stands around them ---- */

static void add_settings(struct making *m)
{
    const struct gl_settings *s = m->b->settings;

    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        struct gl_jw w;

        gl_jw_init(&w, &m->body);
        gl_jw_object(&w);
        gl_jw_key(&w, "setting");
        gl_jw_object(&w);
        gl_jw_key(&w, "name");
        gl_jw_c(&w, gl_settings_table[i].name);
        gl_jw_key(&w, "value");
        gl_jw_c(&w, gl_settings_shown(s, (enum gl_setting_id)i, m->a));
        gl_jw_key(&w, "origin");
        gl_jw_c(&w, gl_settings_origin(s, (enum gl_setting_id)i, m->a));
        gl_jw_end(&w);
        gl_jw_end(&w);
        gl_buf_char(&m->body, '\n');
    }
}

/* The last lines of the log. One that cannot be read is not worth failing for. */
static void add_log(struct making *m)
{
    struct gl_buf text = {0};
    gl_str rest, line;
    size_t lines = 0, skip;

    (void)gl_fs_read(gl_paths_in(m->a, m->b->data, "node.log"), LOG_BYTES_MAX, &text, NULL);
    for (rest = gl_buf_view(&text); cut_line(&rest, &line);) {
        lines++;
    }
    skip = lines > LOG_LINES ? lines - LOG_LINES : 0;
    for (rest = gl_buf_view(&text); cut_line(&rest, &line);) {
        struct gl_jw w;

        if (skip > 0) {
            skip--;
            continue;
        }
        gl_jw_init(&w, &m->body);
        gl_jw_object(&w);
        gl_jw_key(&w, "log");
        gl_jw_str(&w, line);
        gl_jw_end(&w);
        gl_buf_char(&m->body, '\n');
        m->b->logs_n++;
    }
    gl_buf_done(&text);
}

static void put_list(struct gl_jw *w, const char *key, const struct gl_strs *list)
{
    gl_jw_key(w, key);
    gl_jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        gl_jw_str(w, list->items[i]);
    }
    gl_jw_end(w);
}

static void put_head(struct making *m, struct gl_buf *out)
{
    char when[GL_WHEN_BYTES];
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_key(&w, "bundle");
    gl_jw_object(&w);
    gl_jw_key(&w, "format");
    gl_jw_u64(&w, FORMAT);
    gl_jw_key(&w, "release");
    gl_jw_c(&w, GL_VERSION);
    gl_jw_key(&w, "build");
    gl_jw_c(&w, GL_BUILD);
    gl_jw_key(&w, "made_at");
    gl_jw_str(&w, gl_when_format((gl_ms)time(NULL) * 1000, when));
    gl_jw_key(&w, "redacted");
    gl_jw_bool(&w, !m->b->with_values);
    put_list(&w, "facts_left_in", &m->b->kept);
    put_list(&w, "notes", &m->b->damaged);
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_buf_char(out, '\n');
}

static void list_kept(struct making *m)
{
    gl_str *all = GL_NEW_ARRAY(m->a, gl_str, NOTES_MAX), name;
    size_t n = 0;

    while (m->mask != NULL && n < NOTES_MAX && gl_mask_kept(m->mask, n, &name)) {
        all[n++] = gl_str_dup(m->a, name);
    }
    m->b->kept = (struct gl_strs){.items = all, .n = n};
    all = GL_NEW_ARRAY(m->a, gl_str, m->notes_n);
    if (m->notes_n > 0) {
        memcpy(all, m->notes, m->notes_n * sizeof(*all));
    }
    m->b->damaged = (struct gl_strs){.items = all, .n = m->notes_n};
}

int gl_bundle_make(struct gl_bundle *b, struct gl_arena *a, struct gl_buf *out,
                   struct gl_why *reterr_why)
{
    struct making m = {.b = b, .a = a};
    struct gl_entropy entropy = gl_random_entropy();
    uint8_t key[GL_MASK_KEY_BYTES];
    int rc;

    entropy.fill(&entropy, key, sizeof(key));
    m.mask = b->with_values ? NULL : gl_mask_new(key);

    add_settings(&m);
    add_log(&m);
    rc = add_segments(&m, reterr_why);
    if (rc == 0) {
        list_kept(&m);
        put_head(&m, out);
        gl_buf_str(out, gl_buf_view(&m.body));
    }
    if (m.mask != NULL) {
        gl_mask_free(m.mask);
    }
    gl_buf_done(&m.body);
    return rc;
}
