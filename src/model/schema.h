/* schema.h - one table per object, which drives everything that knows its fields.
 *
 * A schema lists the fields of a C struct: name, type, offset, and a description. The record in
 * the store, the JSON of the API, the errors for wrong input and the page in the reference all
 * come from that table. */
#ifndef GL_MODEL_SCHEMA_H
#define GL_MODEL_SCHEMA_H

#include "base/json.h"
#include "base/times.h"

enum gl_field_type {
    GL_F_BOOL,     /* bool */
    GL_F_I64,      /* int64_t */
    GL_F_U64,      /* uint64_t */
    GL_F_U32,      /* uint32_t */
    GL_F_STR,      /* gl_str */
    GL_F_TIME,     /* gl_ms: a number in the store, RFC 3339 in the API; 0 = absent */
    GL_F_SPAN,     /* gl_ms: a number of milliseconds */
    GL_F_DURATION, /* gl_ms: a text, as "7d" or "500ms" */
    GL_F_ENUM,     /* uint8_t: a word from `words` */
    GL_F_RAW,      /* gl_str: any JSON value, as its text; "" = absent */
    GL_F_STRS,     /* struct gl_strs */
    GL_F_LIST,     /* struct gl_items of `sub` */
    GL_F_OBJECT,   /* the sub struct, embedded */
};

enum gl_field_flag {
    GL_FF_REQUIRED = 1,   /* absent is an error when decoding */
    GL_FF_ALWAYS = 2,     /* written even when zero or empty */
    GL_FF_STORE_ONLY = 4, /* not in the API */
    /* In requests: the field is in the path or in the query, not in the body. */
    GL_FF_PATH = 8,
    GL_FF_QUERY = 16,
    GL_FF_OR_UNSET = 32, /* a number or a duration: -1 if absent */
    GL_FF_NOT_ZERO = 64, /* zero always means absent */
    GL_FF_LENT = 128,    /* a string that is not owned by the object */
};

struct gl_strs {
    const gl_str *items;
    size_t n;
};

struct gl_items {
    void *items; /* an array of sub structs */
    size_t n;
};

struct gl_schema;

struct gl_field {
    const char *name;
    enum gl_field_type type;
    uint32_t offset;
    uint32_t flags;
    const char *const *words;    /* GL_F_ENUM: NULL-terminated; index = value */
    const struct gl_schema *sub; /* GL_F_LIST, GL_F_OBJECT */
    const char *doc;
    uint64_t max; /* a number's value or a text's bytes; 0: no limit */
};

struct gl_schema {
    const char *name;
    const char *doc;
    size_t bytes; /* sizeof the struct */
    const struct gl_field *fields;
    size_t fields_n;
};

#define GL_FIELD(s, member, ftype, fflags, fdoc)                                     \
    {                                                                                \
        .name = #member, .type = GL_F_##ftype, .offset = offsetof(struct s, member), \
        .flags = (fflags), .doc = (fdoc)                                             \
    }
#define GL_FIELD_ENUM(s, member, fwords, fflags, fdoc)                            \
    {                                                                             \
        .name = #member, .type = GL_F_ENUM, .offset = offsetof(struct s, member), \
        .flags = (fflags), .words = (fwords), .doc = (fdoc)                       \
    }
#define GL_FIELD_SUB(s, member, ftype, fsub, fflags, fdoc)                           \
    {                                                                                \
        .name = #member, .type = GL_F_##ftype, .offset = offsetof(struct s, member), \
        .flags = (fflags), .sub = (fsub), .doc = (fdoc)                              \
    }

enum gl_audience { GL_FOR_STORE, GL_FOR_API };

/* Write the fields of `object` into the object that is open in `w` (so that a caller can add more).
 * Fields that are zero or empty are omitted unless GL_FF_ALWAYS. */
void gl_schema_write(const struct gl_schema *s, const void *object, struct gl_jw *w,
                     enum gl_audience audience);

/* Read an object. Zero-fills `ret` first; strings borrow from the tape or live in `a`. Unknown
 * fields are refused when `strict`, else ignored (records written by a later release). */
int gl_schema_read(const struct gl_schema *s, const struct gl_json *j, gl_jnode n, bool strict,
                   struct gl_arena *a, void *ret, struct gl_why *reterr_why);

/* The same in two steps, for an object some of whose fields come from elsewhere. */
void gl_schema_clear(const struct gl_schema *s, void *ret);
int gl_schema_read_more(const struct gl_schema *s, const struct gl_json *j, gl_jnode n, bool strict,
                        struct gl_arena *a, void *ret, struct gl_why *reterr_why);

/* Read one field from plain text, as in a query; *ret is the object. */
int gl_schema_read_text(const struct gl_field *f, gl_str text, void *ret,
                        struct gl_why *reterr_why);

/* Whether this field belongs in a body. */
bool gl_schema_is_body(const struct gl_field *f);

/* A word's number in a NULL-terminated list; -1 if absent. */
int gl_schema_word(const char *const *words, gl_str word);

#endif
