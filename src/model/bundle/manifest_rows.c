/* Reads the fields of an object by the rows of manifest_fields.c, in the order of the rows: notes
 * appear in this order, and a row read by hand may rely on the rows before it. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

const struct gl_manifest_field *gl_manifest_field(enum gl_manifest_table_id of, gl_str name)
{
    for (enum gl_manifest_table_id t = of; t != GL_TABLE_NONE; t = gl_manifest_tables[t].more) {
        for (size_t i = 0; i < gl_manifest_tables[t].n; i++) {
            const struct gl_manifest_field *f = &gl_manifest_tables[t].rows[i];

            if (gl_str_is(name, f->name) || (f->alias != NULL && gl_str_is(name, f->alias))) {
                return f;
            }
        }
    }
    return NULL;
}

static void read_idle(struct gl_manifest *m, gl_jnode n, const struct gl_manifest_field *f,
                      uint32_t *count)
{
    gl_str number = gl_json_raw(m->r.j, n);

    if (!gl_json_is(n, GL_JSON_NUMBER) || number.p[0] == '-') {
        gl_manifest_error(m, n, NULL, GL_REASON_OUT_OF_RANGE, "expected a number of at least 0");
    } else if (f->how == GL_READ_COUNTED) {
        ++*count;
    } else if (!gl_str_is(number, "0") && !gl_str_is(number, "0.0")) {
        gl_manifest_error(m, n, NULL, GL_REASON_UNSUPPORTED, "this release does not support %s",
                          f->what);
    }
}

static void refuse(struct gl_manifest *m, gl_jnode obj, gl_jnode n, const char *what)
{
    if (gl_manifest_is_set(n)) {
        gl_manifest_error(m, n, NULL, GL_REASON_UNSUPPORTED, "this release does not support %s%s",
                          what, obj == m->root ? ": the bundle cannot run as intended" : "");
    }
}

static void read_reference(struct gl_manifest *m, gl_jnode n, enum gl_reason reason,
                           const char *what, const struct gl_map *known, gl_str *ret)
{
    gl_str id = gl_json_str(m->r.j, n, m->r.a);

    if (gl_map_find(known, id) != NULL) {
        *ret = id;
    } else {
        gl_manifest_unknown(m, n, reason, what, known, id);
    }
}

static bool read_seconds(struct gl_manifest *m, gl_jnode obj, const char *key, gl_ms lo, gl_ms *ret)
{
    gl_jnode n = gl_manifest_get(m, obj, key);
    gl_ms v;

    if (n == NULL) {
        return false;
    }
    if (!gl_json_is(n, GL_JSON_NUMBER) || !gl_times_parse_span(gl_json_raw(m->r.j, n), &v)) {
        gl_manifest_error(m, n, NULL, GL_REASON_NOT_A_DURATION,
                          "expected a number of seconds, at most ten years");
        return false;
    }
    if (v < lo) {
        gl_manifest_error(m, n, NULL, GL_REASON_TOO_SHORT, "the shortest time here is %g seconds",
                          (double)lo / 1000);
        return false;
    }
    *ret = v;
    return true;
}

/* False: it is absent or invalid. */
static bool read_field(struct gl_manifest *m, const struct gl_manifest_field *f, gl_jnode obj,
                       const char *key, void *into)
{
    void *at = (char *)into + f->at;
    gl_jnode n = gl_manifest_get(m, obj, key);
    int64_t number;
    uint8_t word;
    bool value;

    if (f->how == GL_READ_BY_HAND) { /* it may be a null */
        f->read(m, obj, key, into);
        return true;
    }
    if (n == NULL) {
        return false;
    }
    switch (f->how) {
    case GL_READ_NOT:
    case GL_READ_BY_HAND:
    case GL_READ_SEEN:
        break;
    case GL_READ_TEXT:
        return gl_manifest_text(m, obj, key, at);
    case GL_READ_AGENT:
        read_reference(m, n, GL_REASON_UNKNOWN_AGENT, "agent", &m->by_id, at);
        break;
    case GL_READ_STEP:
        read_reference(m, n, GL_REASON_UNKNOWN_STEP, "step", &m->steps_by, at);
        break;
    case GL_READ_TEXTS:
        *(struct gl_strs *)at = gl_manifest_texts(m, obj, key);
        break;
    case GL_READ_FLAGS:
        if (!gl_manifest_bool(m, obj, key, &value)) {
            return false;
        }
        *(uint8_t *)at |= (uint8_t)(value ? f->min : f->max);
        break;
    case GL_READ_U32:
        if (!gl_manifest_int(m, obj, key, f->min, f->max, &number)) {
            return false;
        }
        *(uint32_t *)at = (uint32_t)number;
        break;
    case GL_READ_MS:
        return gl_manifest_int(m, obj, key, f->min, f->max, at);
    case GL_READ_SECONDS:
        return read_seconds(m, obj, key, f->min, at);
    case GL_READ_WORD:
        return gl_manifest_word(m, obj, key, f->words, at);
    case GL_READ_CHECKED:
        return gl_manifest_word(m, obj, key, f->words, &word);
    case GL_READ_COUNTED:
    case GL_READ_ZERO:
        read_idle(m, n, f, at);
        break;
    case GL_READ_REFUSED:
        refuse(m, obj, n, f->what);
        break;
    }
    return true;
}

static void note_field(struct gl_manifest *m, gl_jnode obj, const struct gl_manifest_field *f)
{
    gl_str path;

    if (gl_manifest_is_set(gl_manifest_get(m, obj, f->name)) && gl_manifest_note_has_room(m)) {
        path = gl_manifest_path(m, obj);
        gl_manifest_note(m, "%.*s%s%s %s", GL_STR_ARG(path), path.n > 0 ? "." : "", f->name,
                         f->note);
    }
}

void gl_manifest_read(struct gl_manifest *m, enum gl_manifest_table_id of, gl_jnode obj, void *into)
{
    for (size_t i = 0; i < gl_manifest_tables[of].n; i++) {
        const struct gl_manifest_field *f = &gl_manifest_tables[of].rows[i];
        bool is_there;

        if (f->how == GL_READ_NOT) {
            continue;
        }
        is_there = read_field(m, f, obj, f->name, into) ||
                   (f->missing != NULL && gl_manifest_get(m, obj, f->name) != NULL) ||
                   (f->alias != NULL && (read_field(m, f, obj, f->alias, into) ||
                                         gl_manifest_get(m, obj, f->alias) != NULL));
        if (!is_there && f->missing != NULL) {
            gl_manifest_error(m, obj, f->name, GL_REASON_MISSING, "it is missing: %s", f->missing);
        }
        if (f->note != NULL) {
            note_field(m, obj, f);
        }
    }
}
