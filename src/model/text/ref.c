#include "model/text/ref.h"

#include "base/check.h"
#include "base/suggest.h"
#include "model/flow/flow_check.h"

enum { SEGMENTS_MAX = 64, CLIP_BYTES = 80, SUGGESTED_KEYS_MAX = 1000 };

static const char *const step_parts[] = {"output", "status", "outcome", "exit_code", NULL};
static const char *const job_parts[] = {"id",   "run_id", "name", "submitted_at",
                                        "item", "index",  NULL};

static gl_str clip(gl_str s)
{
    if (s.n > CLIP_BYTES) {
        s.n = CLIP_BYTES;
        while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80) {
            s.n--;
        }
    }
    return s;
}

static bool is_word_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Reading one reference: segment by segment. */

struct ref_reading {
    gl_str text;
    size_t at;
    struct gl_arena *a;
    struct gl_why *why;
};

static gl_str eat_word(struct ref_reading *r)
{
    size_t from = r->at;
    while (r->at < r->text.n && is_word_char(r->text.p[r->at])) {
        r->at++;
    }
    return (gl_str){r->text.p + from, r->at - from};
}

static int bad(struct ref_reading *r, const char *what)
{
    return gl_why(r->why, GL_R_REFERENCE_INVALID, "`${%.*s}` is not a reference: %s",
                  GL_STR_ARG(clip(r->text)), what);
}

/* The text between quotes, with \" and \\ unescaped. */
static int eat_quoted(struct ref_reading *r, gl_str *ret)
{
    char quote = r->text.p[r->at++];
    char *out = gl_arena_alloc(r->a, r->text.n - r->at + 1);
    size_t n = 0;
    while (r->at < r->text.n && r->text.p[r->at] != quote) {
        if (r->text.p[r->at] == '\\' && ++r->at == r->text.n) {
            break;
        }
        out[n++] = r->text.p[r->at++];
    }
    if (r->at >= r->text.n) {
        return bad(r, "a quote is not closed");
    }
    r->at++;
    *ret = (gl_str){out, n};
    return 0;
}

/* [3], ["a name"] or ['a name'] */
static int eat_brackets(struct ref_reading *r, gl_str *ret)
{
    static const char expected[] = "brackets take a number or a name in quotes";
    r->at++;
    char c = r->at < r->text.n ? r->text.p[r->at] : 0;
    if (c == '"' || c == '\'') {
        int rc = eat_quoted(r, ret);
        if (rc) {
            return rc;
        }
    } else {
        uint64_t number;
        *ret = eat_word(r);
        if (!gl_str_u64(*ret, &number)) {
            return bad(r, expected);
        }
    }
    if (r->at >= r->text.n || r->text.p[r->at] != ']') {
        return bad(r, expected);
    }
    r->at++;
    return 0;
}

static int eat_segment(struct ref_reading *r, gl_str *ret)
{
    bool dot = r->text.p[r->at] == '.';
    r->at += dot;
    if (r->at < r->text.n && r->text.p[r->at] == '[') {
        return eat_brackets(r, ret);
    }
    *ret = eat_word(r);
    if (!dot || ret->n == 0) {
        return bad(r, "write it like steps.fetch.output.rows[0] or inputs.name; a name with other "
                      "characters than letters, digits, _ and - goes in brackets and quotes: [\"a "
                      "b\"]");
    }
    return 0;
}

static int read_root(struct ref_reading *r, enum gl_ref_root *ret)
{
    gl_str root = eat_word(r);
    if (gl_str_is(root, "steps")) {
        *ret = GL_REF_STEPS;
    } else if (gl_str_is(root, "inputs")) {
        *ret = GL_REF_INPUTS;
    } else if (gl_str_is(root, "job")) {
        *ret = GL_REF_JOB;
    } else {
        return bad(r, "it begins with steps, inputs or job; for a literal `${` write `$${`");
    }
    return 0;
}

static int check_part(struct ref_reading *r, const struct gl_ref *ref, const char *const *parts)
{
    gl_str part = ref->path.items[0];
    struct gl_suggest near;
    gl_suggest_init(&near, part);
    struct gl_buf list = {0};
    for (unsigned i = 0; parts[i]; i++) {
        gl_suggest_offer(&near, gl_str_of(parts[i]));
        gl_buf_fmt(&list, "%s%s", i ? ", " : "", parts[i]);
        if (gl_str_is(part, parts[i])) {
            gl_buf_done(&list);
            bool leads_on = i == 0 ? parts == step_parts : gl_str_is(part, "item");
            return ref->path.n > 1 && !leads_on ? bad(r, "nothing can follow a plain value") : 0;
        }
    }
    int rc = gl_why(r->why, GL_R_REFERENCE_NO_FIELD,
                    "`${%.*s}`: %s has no `%.*s`, only %.*s%s%.*s%s", GL_STR_ARG(clip(r->text)),
                    ref->root == GL_REF_JOB ? "job" : "a step", GL_STR_ARG(clip(part)),
                    GL_STR_ARG(gl_buf_view(&list)), near.best.n ? "; did you mean `" : "",
                    GL_STR_ARG(near.best), near.best.n ? "`?" : "");
    gl_buf_done(&list);
    return rc;
}

static int check_shape(struct ref_reading *r, const struct gl_ref *ref)
{
    switch (ref->root) {
    case GL_REF_STEPS:
        if (!gl_str_is_id(ref->step)) {
            return bad(r, "`steps` must be followed by the id of a step");
        }
        if (ref->path.n == 0) {
            return bad(r, "add a field of the step: .output, .status, .outcome or .exit_code");
        }
        return check_part(r, ref, step_parts);
    case GL_REF_INPUTS:
        return ref->path.n ? 0 : bad(r, "`inputs` must be followed by the name of an input");
    case GL_REF_JOB:
        return ref->path.n ? check_part(r, ref, job_parts)
                           : bad(r, "add a field of the job: .id, .run_id, .name or .submitted_at");
    }
    GL_UNREACHABLE();
}

int gl_ref_parse(gl_str text, struct gl_arena *a, struct gl_ref *ret, struct gl_why *reterr_why)
{
    struct ref_reading r = {.text = gl_str_trim(text), .a = a, .why = reterr_why};
    struct gl_ref ref = {.text = r.text};
    gl_str segments[SEGMENTS_MAX];
    size_t n = 0;
    int rc = read_root(&r, &ref.root);
    while (!rc && r.at < r.text.n) {
        if (n == SEGMENTS_MAX) {
            return bad(&r, "it has too many parts");
        }
        rc = eat_segment(&r, &segments[n++]);
    }
    if (rc) {
        return rc;
    }
    size_t skipped = 0;
    if (ref.root == GL_REF_STEPS && n) {
        ref.step = segments[0];
        skipped = 1;
    }
    ref.path.n = n - skipped;
    ref.path.items = gl_arena_copy(a, segments + skipped, ref.path.n * sizeof(segments[0]));
    if ((rc = check_shape(&r, &ref))) {
        return rc;
    }
    *ret = ref;
    return 0;
}

/* Texts. */

static bool is_escape(gl_str text, size_t i)
{
    return text.n - i >= 3 && memcmp(text.p + i, "$${", 3) == 0;
}

static bool is_open(gl_str text, size_t i)
{
    return text.n - i >= 2 && memcmp(text.p + i, "${", 2) == 0;
}

/* The offset of the next `${` or `$${`, from i on; text.n if there is none. */
static size_t find_special(gl_str text, size_t i)
{
    while (i < text.n) {
        const char *hit = memchr(text.p + i, '$', text.n - i);
        if (!hit) {
            break;
        }
        i = (size_t)(hit - text.p);
        if (is_escape(text, i) || is_open(text, i)) {
            return i;
        }
        i++;
    }
    return text.n;
}

bool gl_ref_has(gl_str text)
{
    for (size_t i = find_special(text, 0); i < text.n; i = find_special(text, i + 3)) {
        if (is_open(text, i)) {
            return true;
        }
    }
    return false;
}

gl_str gl_ref_literal(gl_str text, struct gl_arena *a)
{
    size_t i = find_special(text, 0), from = 0, n = 0;
    if (i == text.n) {
        return text;
    }
    char *out = gl_arena_alloc(a, text.n + 1);
    while (i < text.n) {
        memcpy(out + n, text.p + from, i - from);
        n += i - from;
        from = is_escape(text, i) ? i + 1 : i;
        i = find_special(text, is_escape(text, i) ? i + 3 : i + 2);
    }
    memcpy(out + n, text.p + from, text.n - from);
    return (gl_str){out, n + text.n - from};
}

gl_str gl_ref_escape(gl_str text, struct gl_arena *a)
{
    struct gl_buf out = {0};
    for (size_t i = 0; i < text.n; i++) {
        if (is_open(text, i)) {
            gl_buf_char(&out, '$');
        }
        gl_buf_char(&out, text.p[i]);
    }
    gl_str ret = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return ret;
}

bool gl_ref_end(gl_str text, size_t at, size_t *ret)
{
    char quote = 0;
    for (size_t i = at + 2; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n') {
            return false;
        }
        if (quote) {
            i += c == '\\';
            quote = c == quote ? 0 : quote;
        } else if ((c == '"' || c == '\'') && text.p[i - 1] == '[') {
            quote = c;
        } else if (c == '}') {
            *ret = i + 1;
            return true;
        }
    }
    return false;
}

static int next_ref(gl_str text, size_t *pos, struct gl_arena *a, struct gl_ref_piece *ret,
                    struct gl_why *why)
{
    size_t end;
    ret->is_ref = true;
    if (!gl_ref_end(text, *pos, &end)) {
        return gl_why(why, GL_R_REFERENCE_OPEN,
                      "`${` has no end: a reference ends with `}` in the same line; for a literal "
                      "`${` write `$${`");
    }
    gl_str inside = {text.p + *pos + 2, end - *pos - 3};
    int rc = gl_ref_parse(inside, a, &ret->ref, why);
    *pos = rc ? *pos : end;
    return rc;
}

int gl_ref_next(gl_str text, size_t *pos, struct gl_arena *a, struct gl_ref_piece *ret,
                struct gl_why *reterr_why)
{
    GL_ASSERT(*pos < text.n);
    *ret = (struct gl_ref_piece){.at = *pos};
    if (is_open(text, *pos)) {
        return next_ref(text, pos, a, ret, reterr_why);
    }
    size_t end = *pos;
    for (;;) {
        end = find_special(text, end);
        if (end == text.n || !is_escape(text, end)) {
            break;
        }
        end += 3;
    }
    ret->literal = gl_ref_literal((gl_str){text.p + *pos, end - *pos}, a);
    *pos = end;
    return 0;
}

/* Values. */

static gl_jnode member(const struct gl_json *j, gl_jnode object, gl_str name, struct gl_arena *a)
{
    if (!gl_json_is(object, GL_JSON_OBJECT)) {
        return NULL;
    }
    for (gl_jnode key = gl_json_first(j, object); key; key = gl_json_after(j, object, key)) {
        if (gl_str_eq(gl_json_str(j, key, a), name)) {
            return gl_json_value(key);
        }
    }
    return NULL;
}

static gl_jnode element(const struct gl_json *j, gl_jnode list, gl_str number)
{
    uint64_t wanted;
    if (!gl_str_u64(number, &wanted) || wanted >= list->count) {
        return NULL;
    }
    gl_jnode e = gl_json_first(j, list);
    while (wanted--) {
        e = gl_json_after(j, list, e);
    }
    return e;
}

static int missing_in_object(const struct gl_ref *ref, size_t depth, const struct gl_json *j,
                             gl_jnode object, struct gl_arena *a, struct gl_why *why)
{
    struct gl_suggest near;
    gl_str name = ref->path.items[depth];
    size_t looked_at = 0;
    gl_suggest_init(&near, name);
    for (gl_jnode key = gl_json_first(j, object); key && looked_at < SUGGESTED_KEYS_MAX;
         key = gl_json_after(j, object, key), looked_at++) {
        gl_suggest_offer(&near, gl_json_str(j, key, a));
    }
    return gl_why(why, GL_R_VALUE_NO_MEMBER, "`${%.*s}` has no value: there is no `%.*s`%s%.*s%s",
                  GL_STR_ARG(clip(ref->text)), GL_STR_ARG(clip(name)),
                  near.best.n ? "; did you mean `" : "", GL_STR_ARG(clip(near.best)),
                  near.best.n ? "`?" : "");
}

/* path[depth] is not in `holder`. */
static int missing(const struct gl_ref *ref, size_t depth, const struct gl_json *j, gl_jnode holder,
                   struct gl_arena *a, struct gl_why *why)
{
    gl_str name = clip(ref->path.items[depth]), text = clip(ref->text);
    if (gl_json_is(holder, GL_JSON_OBJECT)) {
        return missing_in_object(ref, depth, j, holder, a, why);
    }
    if (gl_json_is(holder, GL_JSON_ARRAY)) {
        return gl_why(why, GL_R_VALUE_NO_ELEMENT,
                      "`${%.*s}` has no value: a list of %u has no element `%.*s`",
                      GL_STR_ARG(text), holder->count, GL_STR_ARG(name));
    }
    return gl_why(why, GL_R_VALUE_NO_CONTAINER,
                  "`${%.*s}` has no value: cannot look up `%.*s` in %s", GL_STR_ARG(text),
                  GL_STR_ARG(name), gl_json_type_name(holder));
}

/* A step that has not completed has no output; this gets its own message. */
static int check_step(const struct gl_ref *ref, const struct gl_json *j, gl_jnode step,
                      struct gl_arena *a, struct gl_why *why)
{
    gl_str id = clip(ref->step), part = ref->path.items[0];
    gl_str status = gl_json_str(j, gl_json_get(j, step, "status"), a);
    gl_jnode value = member(j, step, part, a);
    if (!step) {
        return gl_why(why, GL_R_STEP_NOT_RUN, "`${%.*s}` has no value: step `%.*s` has not run",
                      GL_STR_ARG(clip(ref->text)), GL_STR_ARG(id));
    }
    bool is_nothing = !value || gl_json_is(value, GL_JSON_NULL);
    if (!is_nothing || !gl_str_is(part, "output") || gl_str_is(status, "completed")) {
        return 0;
    }
    bool skipped = gl_str_is(status, "skipped");
    bool failed = gl_str_is(status, "failed") || gl_str_is(status, "partial");
    return gl_why(why, GL_R_STEP_NO_OUTPUT, "step `%.*s` %s: it has no output", GL_STR_ARG(id),
                  skipped  ? "was skipped"
                  : failed ? "has failed"
                           : "has not ended");
}

int gl_ref_value(const struct gl_ref *ref, const struct gl_json *facts, struct gl_arena *a,
                 gl_jnode *ret, struct gl_why *reterr_why)
{
    static const char *const roots[] = {"steps", "inputs", "job"};
    gl_jnode at = gl_json_get(facts, gl_json_root(facts), roots[ref->root]);
    if (ref->root == GL_REF_STEPS) {
        at = member(facts, at, ref->step, a);
        int rc = check_step(ref, facts, at, a, reterr_why);
        if (rc) {
            return rc;
        }
    }
    for (size_t i = 0; i < ref->path.n; i++) {
        gl_jnode inner = gl_json_is(at, GL_JSON_ARRAY) ? element(facts, at, ref->path.items[i])
                                                       : member(facts, at, ref->path.items[i], a);
        if (!inner) {
            return missing(ref, i, facts, at, a, reterr_why);
        }
        at = inner;
    }
    *ret = at;
    return 0;
}

void gl_ref_compact(gl_str json, struct gl_buf *out)
{
    bool quoted = false;
    char *to = gl_buf_reserve(out, json.n);
    size_t n = 0;
    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (quoted && c == '\\') {
            to[n++] = c;
            to[n++] = json.p[++i]; /* valid JSON: a backslash is never the last byte */
            continue;
        }
        quoted = c == '"' ? !quoted : quoted;
        if (quoted || !(c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
            to[n++] = c;
        }
    }
    out->n += n;
}

static int put_value(const struct gl_ref *ref, const struct gl_json *facts, struct gl_arena *a,
                     struct gl_buf *out, struct gl_why *why)
{
    gl_jnode value;
    int rc = gl_ref_value(ref, facts, a, &value, why);
    if (rc || gl_json_is(value, GL_JSON_NULL)) {
        return rc;
    }
    if (!gl_json_is(value, GL_JSON_STRING)) {
        gl_ref_compact(gl_json_raw(facts, value), out);
        return 0;
    }
    gl_str text = gl_json_str(facts, value, a);
    if (!gl_flow_check_is_text(text)) {
        return gl_why(why, GL_R_VALUE_NUL_BYTE,
                      "`${%.*s}` contains a NUL byte, which cannot be passed to a program",
                      GL_STR_ARG(clip(ref->text)));
    }
    gl_buf_str(out, text);
    return 0;
}

static int expand(gl_str text, const struct gl_json *facts, struct gl_arena *a, struct gl_buf *out,
                  struct gl_why *why)
{
    size_t pos = 0;
    while (pos < text.n) {
        struct gl_ref_piece piece;
        int rc = gl_ref_next(text, &pos, a, &piece, why);
        if (!rc && piece.is_ref) {
            rc = put_value(&piece.ref, facts, a, out, why);
        } else if (!rc) {
            gl_buf_str(out, piece.literal);
        }
        if (rc) {
            return rc;
        }
        if (out->n > GL_ARG_BYTES_MAX) {
            return gl_why(why, GL_R_TEXT_TOO_LARGE,
                          "a text has more than %d bytes when its references are replaced; read "
                          "large values from GLIA_INPUT_FILE",
                          GL_ARG_BYTES_MAX);
        }
    }
    return 0;
}

int gl_ref_expand(gl_str text, const struct gl_json *facts, struct gl_arena *a, gl_str *ret,
                  struct gl_why *reterr_why)
{
    struct gl_buf out = {0};
    int rc = expand(text, facts, a, &out, reterr_why);
    if (!rc) {
        *ret = gl_str_dup(a, gl_buf_view(&out));
    }
    gl_buf_done(&out);
    return rc;
}

bool gl_ref_is_one(gl_str text)
{
    size_t end;
    return is_open(text, 0) && gl_ref_end(text, 0, &end) && end == text.n;
}

int gl_ref_json(gl_str text, const struct gl_json *facts, struct gl_arena *a, gl_str *ret,
                struct gl_why *reterr_why)
{
    struct gl_buf out = {0};
    struct gl_ref_piece piece;
    size_t pos = 0;
    gl_jnode value;
    int rc;
    if (gl_ref_is_one(text)) {
        rc = gl_ref_next(text, &pos, a, &piece, reterr_why);
        rc = rc ? rc : gl_ref_value(&piece.ref, facts, a, &value, reterr_why);
        if (!rc) {
            gl_ref_compact(gl_json_raw(facts, value), &out);
        }
    } else {
        gl_str expanded;
        struct gl_jw w;
        rc = gl_ref_expand(text, facts, a, &expanded, reterr_why);
        if (!rc) {
            gl_jw_init(&w, &out);
            gl_jw_str(&w, expanded);
        }
    }
    if (!rc) {
        *ret = gl_str_dup(a, gl_buf_view(&out));
    }
    gl_buf_done(&out);
    return rc;
}
