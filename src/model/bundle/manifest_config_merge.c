/* Merges the layers of a configuration, later ones over earlier ones. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

/* Each worker gets the configuration in one variable, with its name and two more fields. */
enum { CONFIG_BYTES_MAX = GL_ARG_BYTES_MAX - 8192 };

static bool is_object(gl_jnode n)
{
    return gl_json_is(n, GL_JSON_OBJECT);
}

/* The equal key in `obj`, which is part of another document. */
static gl_jnode same_key(const struct gl_json *j, gl_jnode obj, gl_str key)
{
    struct gl_arena a = {0};
    gl_jnode ret = NULL;

    for (gl_jnode e = gl_json_first(j, obj); e && ret == NULL; e = gl_json_after(j, obj, e)) {
        ret = gl_str_eq(gl_json_str(j, e, &a), key) ? e : NULL;
    }
    gl_arena_done(&a);
    return ret;
}

static void write_merged(const struct gl_json *ju, gl_jnode under, const struct gl_json *jo,
                         gl_jnode over, struct gl_jw *w);

/* The members of `n` that `but` (in `jb`) does not have. */
static void write_members(const struct gl_json *j, gl_jnode n, const struct gl_json *jb,
                          gl_jnode but, struct gl_jw *w)
{
    struct gl_arena a = {0};

    for (gl_jnode e = gl_json_first(j, n); e; e = gl_json_after(j, n, e)) {
        gl_str key = gl_json_str(j, e, &a);

        if (but == NULL || same_key(jb, but, key) == NULL) {
            gl_jw_key_str(w, key);
            write_merged(NULL, NULL, j, gl_json_value(e), w);
        }
    }
    gl_arena_done(&a);
}

static void write_objects(const struct gl_json *ju, gl_jnode under, const struct gl_json *jo,
                          gl_jnode over, struct gl_jw *w)
{
    struct gl_arena a = {0};

    gl_jw_object(w);
    for (gl_jnode e = gl_json_first(ju, under); e; e = gl_json_after(ju, under, e)) {
        gl_str key = gl_json_str(ju, e, &a);
        gl_jnode same = same_key(jo, over, key);

        gl_jw_key_str(w, key);
        if (same != NULL) {
            write_merged(ju, gl_json_value(e), jo, gl_json_value(same), w);
        } else {
            write_merged(NULL, NULL, ju, gl_json_value(e), w);
        }
    }
    write_members(jo, over, ju, under, w);
    gl_jw_end(w);
    gl_arena_done(&a);
}

/* Recursion is limited by the depth of documents, GL_JSON_DEPTH_MAX. */
static void write_merged(const struct gl_json *ju, gl_jnode under, const struct gl_json *jo,
                         gl_jnode over, struct gl_jw *w)
{
    if (is_object(over)) {
        if (is_object(under)) {
            write_objects(ju, under, jo, over, w);
            return;
        }
        gl_jw_object(w);
        write_members(jo, over, NULL, NULL, w);
        gl_jw_end(w);
    } else if (gl_json_is(over, GL_JSON_ARRAY)) {
        gl_jw_array(w);
        for (gl_jnode e = gl_json_first(jo, over); e; e = gl_json_after(jo, over, e)) {
            write_merged(NULL, NULL, jo, e, w);
        }
        gl_jw_end(w);
    } else {
        gl_jw_raw(w, gl_json_raw(jo, over));
    }
}

void gl_manifest_merge(const struct gl_json *ju, gl_jnode under, const struct gl_json *jo,
                       gl_jnode over, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    write_merged(ju, under, jo, over, &w);
}

/* Sets: "a.b.c=value". */

static int read_value(gl_str text, struct gl_arena *a, gl_str *ret, struct gl_why *why)
{
    struct gl_json j;
    struct gl_buf out = {0};
    struct gl_jw w;
    size_t bad_at;

    if (gl_json_parse(&j, text, CONFIG_BYTES_MAX, a, NULL) == 0) {
        *ret = text;
        return 0;
    }
    if (!gl_str_is_utf8(text, &bad_at)) {
        return gl_why(why, GL_E_INVALID, "the value is not valid UTF-8 at byte %zu", bad_at);
    }
    gl_jw_init(&w, &out);
    gl_jw_str(&w, text);
    *ret = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return 0;
}

/* "a.b=1" becomes {"a":{"b":1}}. */
static int set_document(gl_str set, struct gl_arena *a, gl_str *ret, struct gl_why *why)
{
    gl_str text, value = {0}, path = gl_str_cut(set, '=', &text);
    gl_str rest = path;
    struct gl_buf out = {0};
    struct gl_jw w;
    int depth = 0, rc = 0;

    if (path.n == set.n || gl_str_trim(path).n == 0) {
        return gl_why(why, GL_E_INVALID, "\"%.*s\" is not name=value, like inputs.payload.limit=3",
                      GL_STR_ARG(gl_flow_read_clip(set)));
    }
    rc = read_value(text, a, &value, why);
    gl_jw_init(&w, &out);
    while (rc == 0 && depth < GL_VALUE_DEPTH_MAX / 2) {
        gl_str key = gl_str_cut(rest, '.', &rest);

        if (key.n == 0 || !gl_str_is_utf8(key, NULL)) {
            rc = gl_why(why, GL_E_INVALID, "\"%.*s\" has an empty part or is not text",
                        GL_STR_ARG(gl_flow_read_clip(path)));
            break;
        }
        gl_jw_object(&w);
        gl_jw_key_str(&w, key);
        depth++;
        if (rest.n == 0) {
            break;
        }
    }
    if (rc == 0 && (rest.n > 0 || path.p[path.n - 1] == '.')) {
        rc = gl_why(why, GL_E_INVALID, "\"%.*s\" has too many parts, or an empty one",
                    GL_STR_ARG(gl_flow_read_clip(path)));
    }
    if (rc == 0) {
        gl_jw_raw(&w, value);
        while (depth-- > 0) {
            gl_jw_end(&w);
        }
        *ret = gl_str_dup(a, gl_buf_view(&out));
    }
    gl_buf_done(&out);
    return rc;
}

static int lay(gl_str under, gl_str over, const char *what, struct gl_arena *a, gl_str *ret,
               struct gl_why *why)
{
    struct gl_json ju, jo;
    struct gl_buf out = {0};
    int rc = gl_json_parse(&ju, under, CONFIG_BYTES_MAX, a, why);

    rc = rc == 0 ? gl_json_parse(&jo, over, CONFIG_BYTES_MAX, a, why) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!is_object(gl_json_root(&jo)) || !is_object(gl_json_root(&ju))) {
        return gl_why(why, GL_E_INVALID, "%s must be a JSON object, not %s", what,
                      gl_json_type_name(gl_json_root(is_object(gl_json_root(&jo)) ? &ju : &jo)));
    }
    gl_manifest_merge(&ju, gl_json_root(&ju), &jo, gl_json_root(&jo), &out);
    *ret = gl_str_dup(a, gl_buf_view(&out));
    gl_buf_done(&out);
    return 0;
}

static int lay_sets(gl_str under, const struct gl_strs *sets, struct gl_arena *a, gl_str *ret,
                    struct gl_why *why)
{
    int rc = 0;

    for (size_t i = 0; sets != NULL && i < sets->n && rc == 0; i++) {
        gl_str one = {0};

        rc = set_document(sets->items[i], a, &one, why);
        rc = rc == 0 ? lay(under, one, "a setting", a, &under, why) : rc;
    }
    *ret = rc == 0 ? under : *ret;
    return rc;
}

static int check_config(gl_str config, struct gl_arena *a, struct gl_why *why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, config, CONFIG_BYTES_MAX, a, why);

    if (rc == 0 && j.depth > GL_VALUE_DEPTH_MAX) {
        rc = gl_why(why, GL_E_LIMIT, "the configuration is nested deeper than %d levels",
                    GL_VALUE_DEPTH_MAX);
    }
    return rc;
}

int gl_manifest_config(gl_str under, gl_str over, const struct gl_strs *sets, struct gl_arena *a,
                       gl_str *ret, struct gl_why *reterr_why)
{
    gl_str config = GL_S("{}");
    int rc;

    if (under.n > CONFIG_BYTES_MAX || over.n > CONFIG_BYTES_MAX) {
        return gl_why(reterr_why, GL_E_LIMIT,
                      "a configuration has at most %d bytes: workers get it in one variable",
                      CONFIG_BYTES_MAX);
    }
    rc = under.n > 0 ? lay(config, under, "config/default.json", a, &config, reterr_why) : 0;
    rc = rc == 0 && over.n > 0 ? lay(config, over, "config/overwrite.json", a, &config, reterr_why)
                               : rc;
    rc = rc == 0 ? lay_sets(config, sets, a, &config, reterr_why) : rc;
    rc = rc == 0 ? check_config(config, a, reterr_why) : rc;
    *ret = rc == 0 ? config : *ret;
    return rc;
}

int gl_manifest_overlay(const struct gl_strs *sets, struct gl_arena *a, gl_str *ret,
                        struct gl_why *reterr_why)
{
    gl_str all = {0};
    struct gl_json j;
    gl_jnode payload;
    int rc = lay_sets(GL_S("{}"), sets, a, &all, reterr_why);

    rc = rc == 0 ? check_config(all, a, reterr_why) : rc;
    rc = rc == 0 ? gl_json_parse(&j, all, CONFIG_BYTES_MAX, a, reterr_why) : rc;
    if (rc != 0) {
        return rc;
    }
    payload = gl_json_get(&j, gl_json_get(&j, gl_json_root(&j), "inputs"), "payload");
    if (payload != NULL && !is_object(payload)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "inputs.payload must be an object: set its fields, like "
                      "inputs.payload.limit=3");
    }
    *ret = payload != NULL ? gl_json_raw(&j, payload) : (gl_str){0};
    return 0;
}
