#include "cli/debug_dump.h"

#include <time.h>

#include "base/check.h"
#include "base/json.h"
#include "base/times.h"
#include "build.h"
#include "cli/mask.h"
#include "cli/mask_data.h"
#include "os/fs.h"
#include "os/paths.h"
#include "os/random.h"
#include "os/recorder.h"
#include "port/recording.h"

enum { FORMAT = 1, LOG_LINES = 200, LOG_BYTES_MAX = 8 << 20, NOTES_MAX = 64 };
#define SEGMENT_BYTES_MAX ((size_t)1 << 30)

struct making {
    struct gl_debug_dump *b;
    struct gl_arena *a;
    struct gl_mask *mask;                 /* NULL: no redaction */
    struct gl_buf body;                   /* all lines but the first */
    struct gl_recording_chain read, made; /* checksums: of the segments, and of this file */
    bool is_torn;                         /* the end of the current segment is incomplete */
    bool was_damaged;                     /* the previous segment */
    gl_str notes[NOTES_MAX];
    size_t notes_n;
};

static void note_damage(struct making *m, gl_str sentence)
{
    if (m->notes_n < NOTES_MAX) {
        m->notes[m->notes_n++] = sentence;
    }
}

/* ---- segments ---- */

/* The first line, which ends in a newline; false: there is none. */
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

/* Append the lines of a block whose checksum is valid, with a new checksum. */
static int add_piece(struct making *m, gl_str piece, struct gl_buf *out, struct gl_why *why)
{
    struct gl_buf lines = {0};
    gl_str line;
    int rc = 0;

    while (rc == 0 && cut_line(&piece, &line)) {
        rc = add_line(m, line, &lines, why);
    }
    if (rc == 0) {
        gl_buf_str(out, gl_buf_view(&lines));
        gl_recording_put_check(&m->made, gl_buf_view(&lines), out);
    }
    gl_buf_done(&lines);
    return rc;
}

/* Append the blocks of a segment up to the first invalid one. Returns a sentence about the damage,
 * unless it is only the incomplete end that a crash leaves behind. */
static gl_str add_pieces(struct making *m, uint64_t number, gl_str text, struct gl_buf *out)
{
    unsigned long long n = number;
    const char *from = text.p;
    gl_str line, what = {0};
    struct gl_why why;

    while (cut_line(&text, &line)) {
        gl_str piece = {.p = from, .n = (size_t)(line.p - from)};
        enum gl_recording_result found = gl_recording_check(&m->read, line, piece);

        if (found == GL_RECORDING_NO_CHECK) {
            continue;
        }
        if (found == GL_RECORDING_DAMAGED || found == GL_RECORDING_MISSING) {
            return gl_str_fmt(m->a, "segment %llu is damaged: %s; replay stops there", n,
                              found == GL_RECORDING_MISSING ? "a part is missing"
                                                            : "a checksum does not match");
        }
        if (found == GL_RECORDING_END_LOST) {
            what = gl_str_fmt(m->a,
                              "the end of segment %llu is missing, and what happened then is "
                              "unknown",
                              n - 1);
        }
        if (add_piece(m, piece, out, &why) != 0) {
            return gl_str_fmt(m->a, "segment %llu is damaged: %s", n, why.text);
        }
        from = text.p;
    }
    m->is_torn = text.p + text.n > from || out->n == 0;
    if (m->is_torn) {
        note_damage(m,
                    gl_str_fmt(m->a,
                               "segment %llu: left out the incomplete end, which is normal after a "
                               "crash or while a node writes",
                               n));
    }
    return what;
}

static void put_segment(struct making *m, uint64_t number, bool is_torn, gl_str damaged)
{
    struct gl_jw w;

    gl_jw_init(&w, &m->body);
    gl_jw_object(&w);
    gl_jw_put_object(&w, "segment");
    gl_jw_put_u64(&w, "number", number);
    if (is_torn) {
        gl_jw_put_bool(&w, "torn", true);
    }
    if (damaged.n > 0) {
        gl_jw_put_str(&w, "damaged", damaged);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_buf_char(&m->body, '\n');
}

/* False: the file does not exist. */
static bool add_segment(struct making *m, const char *folder, uint64_t number, uint64_t before)
{
    const char *path = gl_recorder_path(m->a, folder, number);
    struct gl_buf text = {0}, lines = {0};
    struct gl_why why;
    gl_str damaged = {0};
    int rc = gl_fs_read(path, SEGMENT_BYTES_MAX, &text, &why);

    m->is_torn = false;
    if (rc == 0) {
        gl_recording_segment(&m->read, before + 1 == number && !m->was_damaged);
        damaged = add_pieces(m, number, gl_buf_view(&text), &lines);
    } else if (rc != GL_E_NOT_FOUND) {
        damaged = gl_str_fmt(m->a, "segment %llu: %s", (unsigned long long)number, why.text);
    }
    if (damaged.n > 0) {
        note_damage(m, damaged);
    }
    m->was_damaged = damaged.n > 0 && gl_str_starts(damaged, GL_S("segment"));
    if (rc != GL_E_NOT_FOUND) {
        put_segment(m, number, m->is_torn, damaged);
        gl_buf_str(&m->body, gl_buf_view(&lines));
        m->b->segments_n += lines.n > 0;
    }
    gl_buf_done(&text);
    gl_buf_done(&lines);
    return rc != GL_E_NOT_FOUND;
}

static void note_missing(struct making *m, uint64_t first, uint64_t last)
{
    struct gl_buf text = {0};

    gl_recording_put_missing(first, last, &text);
    note_damage(m, gl_str_dup(m->a, gl_buf_view(&text)));
    gl_buf_done(&text);
}

/* A node running here may remove its oldest segments meanwhile; then the ones before them are left
 * out, too. */
static int add_segments(struct making *m, struct gl_why *reterr_why)
{
    const char *folder = gl_paths_in(m->a, m->b->data, GL_RECORDER_FOLDER);
    size_t n, body = m->body.n, notes = m->notes_n;
    uint64_t *numbers, before = 0;
    int rc = gl_recorder_list(folder, m->a, &numbers, &n, reterr_why);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (before != 0 && numbers[i] > before + 1) {
            note_missing(m, before + 1, numbers[i] - 1);
        }
        if (add_segment(m, folder, numbers[i], before)) {
            before = numbers[i];
            continue;
        }
        before = 0;
        m->body.n = body;
        m->notes_n = notes;
        m->made = (struct gl_recording_chain){0};
        m->b->segments_n = m->b->events_n = 0;
    }
    if (rc == 0 && m->b->segments_n == 0) {
        rc = gl_why(reterr_why, GL_R_NOTHING_RECORDED,
                    "nothing has been recorded in %s: either record_bytes is 0, or no node has run",
                    folder);
    }
    return rc;
}

/* ---- the other lines ---- */

static void add_settings(struct making *m)
{
    const struct gl_settings *s = m->b->settings;

    for (size_t i = 0; i < GL_SET_COUNT; i++) {
        struct gl_jw w;

        gl_jw_init(&w, &m->body);
        gl_jw_object(&w);
        gl_jw_put_object(&w, "setting");
        gl_jw_put_c(&w, "name", gl_settings_table[i].name);
        gl_jw_put_c(&w, "value", gl_settings_shown(s, (enum gl_setting_id)i, m->a));
        gl_jw_put_c(&w, "origin", gl_settings_origin(s, (enum gl_setting_id)i, m->a));
        gl_jw_end(&w);
        gl_jw_end(&w);
        gl_buf_char(&m->body, '\n');
    }
}

/* The last lines of the log. A log that cannot be read is skipped. */
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
        gl_jw_put_str(&w, "log", line);
        gl_jw_end(&w);
        gl_buf_char(&m->body, '\n');
        m->b->logs_n++;
    }
    gl_buf_done(&text);
}

static void put_list(struct gl_jw *w, const char *key, const struct gl_strs *list)
{
    gl_jw_put_array(w, key);
    for (size_t i = 0; i < list->n; i++) {
        gl_jw_str(w, list->items[i]);
    }
    gl_jw_end(w);
}

static void put_head(struct making *m, struct gl_buf *out)
{
    char when[GL_TIMES_BYTES];
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_jw_put_object(&w, "bundle");
    gl_jw_put_u64(&w, "format", FORMAT);
    gl_jw_put_c(&w, "release", GL_VERSION);
    gl_jw_put_c(&w, "build", GL_BUILD);
    gl_jw_put_str(&w, "made_at", gl_times_format((gl_ms)time(NULL) * 1000, when));
    gl_jw_put_bool(&w, "redacted", !m->b->with_values);
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

int gl_debug_dump_make(struct gl_debug_dump *b, struct gl_arena *a, struct gl_buf *out,
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
