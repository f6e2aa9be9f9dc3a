#include "model/schema.h"

#include <stdio.h>

#include "base/check.h"

enum { FIELDS_MAX = 64 }; /* one bit each while reading */

static const void *place_in(const void *object, const struct gl_field *f)
{
    return (const char *)object + f->offset;
}

#define AS(type, at) (*(const type *)(at))

int gl_schema_word(const char *const *words, gl_str word)
{
    for (int i = 0; words[i]; i++) {
        if (gl_str_is(word, words[i])) {
            return i;
        }
    }
    return -1;
}

static const char *word_of(const char *const *words, unsigned value)
{
    for (unsigned i = 0; i < value; i++) {
        GL_ASSERT(words[i]);
    }
    GL_ASSERT(words[value]);
    return words[value];
}

bool gl_schema_is_body(const struct gl_field *f)
{
    return (f->flags & (GL_FF_PATH | GL_FF_QUERY)) == 0;
}

/* Writing. */

static bool is_empty_object(const struct gl_field *f, const void *at);

/* Inline: records have dozens of fields, and most of them are empty. */
static inline bool is_empty(const struct gl_field *f, const void *at)
{
    switch (f->type) {
    case GL_F_BOOL:
        return !AS(bool, at);
    case GL_F_I64:
    case GL_F_TIME:
    case GL_F_SPAN:
    case GL_F_DURATION:
        return AS(int64_t, at) == ((f->flags & GL_FF_OR_UNSET) != 0 ? -1 : 0);
    case GL_F_U64:
        return AS(uint64_t, at) == 0;
    case GL_F_U32:
        return AS(uint32_t, at) == 0;
    case GL_F_ENUM:
        return AS(uint8_t, at) == 0;
    case GL_F_STR:
    case GL_F_RAW:
        return AS(gl_str, at).n == 0;
    case GL_F_STRS:
        return AS(struct gl_strs, at).n == 0;
    case GL_F_LIST:
        return AS(struct gl_items, at).n == 0;
    case GL_F_OBJECT:
        return is_empty_object(f, at);
    }
    GL_UNREACHABLE();
}

static bool is_empty_object(const struct gl_field *f, const void *at)
{
    for (size_t i = 0; i < f->sub->fields_n; i++) {
        if (!is_empty(&f->sub->fields[i], place_in(at, &f->sub->fields[i]))) {
            return false;
        }
    }
    return true;
}

static void write_time(gl_ms t, struct gl_jw *w, enum gl_audience audience)
{
    char buf[GL_TIMES_BYTES];
    if (audience == GL_FOR_STORE) {
        gl_jw_i64(w, t);
    } else if (t == 0) {
        gl_jw_null(w);
    } else {
        gl_jw_str(w, gl_times_format(t, buf));
    }
}

static void write_duration(gl_ms ms, struct gl_jw *w)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%lldms", (long long)ms);
    gl_jw_c(w, text);
}

static void write_list(const struct gl_field *f, const struct gl_items *list, struct gl_jw *w,
                       enum gl_audience audience)
{
    gl_jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        gl_jw_object(w);
        gl_schema_write(f->sub, (const char *)list->items + i * f->sub->bytes, w, audience);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

static void write_value(const struct gl_field *f, const void *at, struct gl_jw *w,
                        enum gl_audience audience)
{
    switch (f->type) {
    case GL_F_BOOL:
        gl_jw_bool(w, AS(bool, at));
        return;
    case GL_F_I64:
    case GL_F_SPAN:
        gl_jw_i64(w, AS(int64_t, at));
        return;
    case GL_F_U64:
        gl_jw_u64(w, AS(uint64_t, at));
        return;
    case GL_F_U32:
        gl_jw_u64(w, AS(uint32_t, at));
        return;
    case GL_F_STR:
        gl_jw_str(w, AS(gl_str, at));
        return;
    case GL_F_TIME:
        write_time(AS(gl_ms, at), w, audience);
        return;
    case GL_F_DURATION:
        write_duration(AS(gl_ms, at), w);
        return;
    case GL_F_ENUM:
        gl_jw_c(w, word_of(f->words, AS(uint8_t, at)));
        return;
    case GL_F_RAW:
        gl_jw_raw(w, AS(gl_str, at).n ? AS(gl_str, at) : GL_S("null"));
        return;
    case GL_F_STRS:
        gl_jw_array(w);
        for (size_t i = 0; i < AS(struct gl_strs, at).n; i++) {
            gl_jw_str(w, AS(struct gl_strs, at).items[i]);
        }
        gl_jw_end(w);
        return;
    case GL_F_LIST:
        write_list(f, at, w, audience);
        return;
    case GL_F_OBJECT:
        gl_jw_object(w);
        gl_schema_write(f->sub, at, w, audience);
        gl_jw_end(w);
        return;
    }
    GL_UNREACHABLE();
}

void gl_schema_write(const struct gl_schema *s, const void *object, struct gl_jw *w,
                     enum gl_audience audience)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        const struct gl_field *f = &s->fields[i];
        const void *at = place_in(object, f);
        if (((f->flags & GL_FF_STORE_ONLY) && audience != GL_FOR_STORE) || !gl_schema_is_body(f)) {
            continue;
        }
        if ((f->flags & GL_FF_ALWAYS) || !is_empty(f, at)) {
            gl_jw_name(w, f->name);
            write_value(f, at, w, audience);
        }
    }
}

/* Reading. */

struct schema_reading {
    const struct gl_json *j;
    bool strict;
    struct gl_arena *a;
    struct gl_why *why;
};

/* The current position, for errors: a chain to the outermost object. */
struct path {
    const struct path *up;
    gl_str name;
    size_t index; /* in a list, if there is no name */
};

static int read_object(const struct schema_reading *r, const struct gl_schema *s, gl_jnode n,
                       const struct path *path, void *ret);

static void put_path(struct gl_buf *out, const struct path *p)
{
    if (p->up) {
        put_path(out, p->up);
    }
    if (!p->name.p) {
        gl_buf_fmt(out, "[%zu]", p->index);
    } else {
        gl_buf_fmt(out, "%s%.*s", out->n ? "." : "", (int)(p->name.n < 80 ? p->name.n : 80),
                   p->name.p);
    }
}

static int fail(const struct schema_reading *r, gl_jnode n, const struct path *path,
                const char *text)
{
    if (!r->why) {
        return GL_E_INVALID;
    }
    struct gl_buf out = {0};
    if (path) {
        put_path(&out, path);
        gl_buf_c(&out, ": ");
    }
    unsigned line, column;
    gl_json_place(r->j, n ? n : gl_json_root(r->j), &line, &column);
    (void)gl_why(r->why, GL_E_INVALID, "%.*s%s (line %u, column %u)", GL_STR_ARG(gl_buf_view(&out)),
                 text, line, column);
    gl_buf_done(&out);
    return GL_E_INVALID;
}

static int expected(const struct schema_reading *r, gl_jnode n, const struct path *path,
                    const char *what)
{
    char text[160];
    (void)snprintf(text, sizeof(text), "expected %s, not %s", what, gl_json_type_name(n));
    return fail(r, n, path, text);
}

static int read_time(const struct schema_reading *r, gl_jnode n, const struct path *path,
                     gl_ms *ret)
{
    if (gl_json_is(n, GL_JSON_NULL) || gl_json_i64(r->j, n, ret)) {
        return 0;
    }
    if (gl_json_is(n, GL_JSON_STRING) && gl_times_parse(gl_json_str(r->j, n, r->a), ret)) {
        return 0;
    }
    return expected(r, n, path, "a time like \"2026-11-15T10:55:49Z\" or milliseconds since 1970");
}

static int read_enum(const struct schema_reading *r, gl_jnode n, const struct path *path,
                     const char *const *words, uint8_t *ret)
{
    int value =
        gl_json_is(n, GL_JSON_STRING) ? gl_schema_word(words, gl_json_str(r->j, n, r->a)) : -1;
    if (value >= 0) {
        *ret = (uint8_t)value;
        return 0;
    }
    struct gl_buf text = {0};
    gl_buf_c(&text, "expected one of");
    for (unsigned i = 0; words[i]; i++) {
        gl_buf_fmt(&text, "%s %s", i ? "," : "", words[i]);
    }
    gl_buf_char(&text, 0);
    int rc = fail(r, n, path, text.p);
    gl_buf_done(&text);
    return rc;
}

static int read_strs(const struct schema_reading *r, gl_jnode n, const struct path *path,
                     struct gl_strs *ret)
{
    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        return expected(r, n, path, "an array of strings");
    }
    gl_str *items = GL_NEW_ARRAY(r->a, gl_str, n->count);
    size_t i = 0;
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e), i++) {
        if (!gl_json_is(e, GL_JSON_STRING)) {
            return expected(r, e, &(struct path){.up = path, .index = i}, "a string");
        }
        items[i] = gl_json_str(r->j, e, r->a);
    }
    *ret = (struct gl_strs){.items = items, .n = i};
    return 0;
}

static int read_list(const struct schema_reading *r, gl_jnode n, const struct path *path,
                     const struct gl_schema *sub, struct gl_items *ret)
{
    if (!gl_json_is(n, GL_JSON_ARRAY)) {
        return expected(r, n, path, "an array of objects");
    }
    char *items = gl_arena_alloc(r->a, sub->bytes * n->count);
    size_t i = 0;
    for (gl_jnode e = gl_json_first(r->j, n); e; e = gl_json_after(r->j, n, e), i++) {
        int rc =
            read_object(r, sub, e, &(struct path){.up = path, .index = i}, items + i * sub->bytes);
        if (rc) {
            return rc;
        }
    }
    *ret = (struct gl_items){.items = items, .n = i};
    return 0;
}

static int read_number(const struct schema_reading *r, gl_jnode n, const struct path *path,
                       enum gl_field_type type, void *at)
{
    uint64_t u;
    if (type == GL_F_U64) {
        return gl_json_u64(r->j, n, at) ? 0 : expected(r, n, path, "an integer from 0");
    }
    if (type == GL_F_U32) {
        if (!gl_json_u64(r->j, n, &u) || u > UINT32_MAX) {
            return expected(r, n, path, "an integer from 0 to 4294967295");
        }
        *(uint32_t *)at = (uint32_t)u;
        return 0;
    }
    return gl_json_i64(r->j, n, at)
               ? 0
               : expected(r, n, path,
                          type == GL_F_SPAN ? "a number of milliseconds" : "an integer");
}

static int read_duration(const struct schema_reading *r, gl_jnode n, const struct path *path,
                         gl_ms *ret)
{
    if (gl_json_is(n, GL_JSON_STRING) && gl_times_parse_span(gl_json_str(r->j, n, r->a), ret)) {
        return 0;
    }
    return fail(r, n, path, "expected a duration, as \"60s\" or \"7d\"");
}

static int read_value(const struct schema_reading *r, const struct gl_field *f, gl_jnode n,
                      const struct path *path, void *at)
{
    switch (f->type) {
    case GL_F_DURATION:
        return read_duration(r, n, path, at);
    case GL_F_BOOL:
        return gl_json_bool(n, at) ? 0 : expected(r, n, path, "true or false");
    case GL_F_I64:
    case GL_F_U64:
    case GL_F_U32:
    case GL_F_SPAN:
        return read_number(r, n, path, f->type, at);
    case GL_F_STR:
        if (!gl_json_is(n, GL_JSON_STRING)) {
            return expected(r, n, path, "a string");
        }
        *(gl_str *)at = gl_json_str(r->j, n, r->a);
        return 0;
    case GL_F_TIME:
        return read_time(r, n, path, at);
    case GL_F_ENUM:
        return read_enum(r, n, path, f->words, at);
    case GL_F_RAW:
        *(gl_str *)at = gl_json_raw(r->j, n);
        return 0;
    case GL_F_STRS:
        return read_strs(r, n, path, at);
    case GL_F_LIST:
        return read_list(r, n, path, f->sub, at);
    case GL_F_OBJECT:
        return read_object(r, f->sub, n, path, at);
    }
    GL_UNREACHABLE();
}

/* The error in the value of a field, or NULL. */
static const char *outside(const struct gl_field *f, const void *at, char text[static 96])
{
    bool is_number = f->type == GL_F_I64 || f->type == GL_F_U64 || f->type == GL_F_U32;
    bool is_text = f->type == GL_F_STR;
    uint64_t value = f->type == GL_F_U32 ? AS(uint32_t, at)
                     : is_number ? AS(uint64_t, at) /* a negative value exceeds every limit */
                     : is_text   ? AS(gl_str, at).n
                                 : 0;
    if ((f->flags & GL_FF_NOT_ZERO) && is_empty(f, at)) {
        return "must be more than 0";
    }
    if (f->max == 0 || value <= f->max) {
        return NULL;
    }
    (void)snprintf(text, 96, is_text ? "can have %llu bytes" : "must be a number from 0 to %llu",
                   (unsigned long long)f->max);
    return text;
}

static int check_bounds(const struct schema_reading *r, const struct gl_field *f, gl_jnode n,
                        const struct path *path, const void *at)
{
    char text[96];
    const char *wrong = outside(f, at, text);
    return wrong != NULL ? fail(r, n, path, wrong) : 0;
}

/* The number of the field called `name`, trying `hint` first, since our own records have their
 * fields in order. fields_n if there is none. */
static size_t field_of(const struct gl_schema *s, gl_str name, size_t hint)
{
    for (size_t k = 0; k < s->fields_n; k++) {
        size_t i = hint + k < s->fields_n ? hint + k : hint + k - s->fields_n;
        if (gl_str_is(name, s->fields[i].name) && gl_schema_is_body(&s->fields[i])) {
            return i;
        }
    }
    return s->fields_n;
}

static int check_required(const struct schema_reading *r, const struct gl_schema *s, gl_jnode n,
                          const struct path *path, uint64_t seen)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        const struct gl_field *f = &s->fields[i];
        if ((f->flags & GL_FF_REQUIRED) && gl_schema_is_body(f) && !(seen & (uint64_t)1 << i)) {
            struct path missing = {.up = path, .name = gl_str_of(f->name)};
            return fail(r, n, &missing, "this field is required and missing");
        }
    }
    return 0;
}

static int read_object(const struct schema_reading *r, const struct gl_schema *s, gl_jnode n,
                       const struct path *path, void *ret)
{
    GL_ASSERT(s->fields_n <= FIELDS_MAX);
    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return expected(r, n, path, "an object");
    }
    uint64_t seen = 0;
    size_t hint = 0;
    for (gl_jnode key = gl_json_first(r->j, n); key; key = gl_json_after(r->j, n, key)) {
        gl_str name = gl_json_str(r->j, key, r->a);
        struct path here = {.up = path, .name = name.p ? name : GL_S("")};
        size_t i = field_of(s, name, hint);
        if (i == s->fields_n) {
            if (r->strict) {
                return fail(r, key, &here, "there is no such field");
            }
            continue;
        }
        const struct gl_field *f = &s->fields[i];
        void *at = (char *)ret + f->offset;
        int rc = read_value(r, f, gl_json_value(key), &here, at);
        if (rc == 0 && (f->max != 0 || (f->flags & GL_FF_NOT_ZERO))) {
            rc = check_bounds(r, f, gl_json_value(key), &here, at);
        }
        if (rc) {
            return rc;
        }
        seen |= (uint64_t)1 << i;
        hint = i + 1 < s->fields_n ? i + 1 : 0;
    }
    return check_required(r, s, n, path, seen);
}

int gl_schema_read(const struct gl_schema *s, const struct gl_json *j, gl_jnode n, bool strict,
                   struct gl_arena *a, void *ret, struct gl_why *reterr_why)
{
    gl_schema_clear(s, ret);
    return gl_schema_read_more(s, j, n, strict, a, ret, reterr_why);
}

int gl_schema_read_more(const struct gl_schema *s, const struct gl_json *j, gl_jnode n, bool strict,
                        struct gl_arena *a, void *ret, struct gl_why *reterr_why)
{
    struct schema_reading r = {.j = j, .strict = strict, .a = a, .why = reterr_why};
    return read_object(&r, s, n, NULL, ret);
}

void gl_schema_clear(const struct gl_schema *s, void *ret)
{
    memset(ret, 0, s->bytes);
    for (size_t i = 0; i < s->fields_n; i++) {
        if (s->fields[i].flags & GL_FF_OR_UNSET) {
            *(int64_t *)((char *)ret + s->fields[i].offset) = -1;
        }
    }
}

/* False: the text is not a value of that type. */
static bool read_plain(const struct gl_field *f, gl_str text, void *at)
{
    uint64_t number = 0;
    bool is_number = gl_str_u64(text, &number);
    switch (f->type) {
    case GL_F_STR:
        *(gl_str *)at = text;
        return true;
    case GL_F_BOOL:
        *(bool *)at = gl_str_is(text, "true");
        return *(bool *)at || gl_str_is(text, "false");
    case GL_F_U32:
        *(uint32_t *)at = (uint32_t)number;
        return is_number && number <= UINT32_MAX;
    case GL_F_I64:
        *(int64_t *)at = (int64_t)number;
        return is_number && number <= INT64_MAX;
    default:
        GL_UNREACHABLE();
    }
}

int gl_schema_read_text(const struct gl_field *f, gl_str text, void *ret, struct gl_why *reterr_why)
{
    void *at = (char *)ret + f->offset;
    char wrong[96];
    const char *what;
    if (!read_plain(f, text, at)) {
        (void)snprintf(wrong, sizeof(wrong),
                       f->type == GL_F_BOOL ? "must be true or false"
                                            : "must be a number from 0 to %llu",
                       (unsigned long long)f->max);
        what = wrong;
    } else {
        what = outside(f, at, wrong);
    }
    return what != NULL ? gl_why(reterr_why, GL_E_INVALID, "'%s' %s", f->name, what) : 0;
}
