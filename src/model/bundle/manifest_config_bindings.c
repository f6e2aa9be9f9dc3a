/* manifest_config_bindings: values of the configuration that replace values of the manifest.
 *
 *   {"model.name": "agents.nodes[writer].config.environment.MODEL"}
 *   [{"config": "model.name", "manifest": "agents.nodes[0].config.environment.MODEL"}]
 *
 * A part in brackets is a number, or the id of an element. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum { BINDINGS_MAX = 64, PARTS_MAX = GL_VALUE_DEPTH_MAX / 2 };

struct target {
    gl_str parts[PARTS_MAX];
    size_t n;
    const struct gl_json *jv;
    gl_jnode value;
    bool is_found;
};

static bool split(gl_str path, struct target *t)
{
    while (path.n > 0) {
        size_t n = 0;

        while (n < path.n && strchr(".[]", path.p[n]) == NULL) {
            n++;
        }
        if (n > 0 && t->n == PARTS_MAX) {
            return false;
        }
        if (n > 0) {
            t->parts[t->n++] = (gl_str){.p = path.p, .n = n};
        }
        n += n < path.n ? 1 : 0;
        path = (gl_str){.p = path.p + n, .n = path.n - n};
    }
    return t->n > 0;
}

static bool is_named(const struct gl_json *j, gl_jnode e, uint32_t index, gl_str part)
{
    static const char *const ids[] = {"node_id", "id", "edge_id"};
    struct gl_arena a = {0};
    uint64_t number;
    bool ret = gl_str_u64(part, &number) && number == index;

    for (size_t i = 0; i < GL_COUNT(ids) && !ret; i++) {
        ret = part.n > 0 && gl_str_eq(gl_json_str(j, gl_json_get(j, e, ids[i]), &a), part);
    }
    gl_arena_done(&a);
    return ret;
}

static void write_with(const struct gl_json *j, gl_jnode n, struct target *t, size_t part,
                       struct gl_jw *w);

static void write_member(const struct gl_json *j, gl_jnode n, struct target *t, size_t part,
                         struct gl_jw *w)
{
    struct gl_buf out = {0};

    if (part == t->n) {
        gl_manifest_merge(NULL, NULL, t->jv, t->value, &out);
        gl_jw_raw(w, gl_buf_view(&out));
        t->is_found = true;
    } else {
        write_with(j, n, t, part, w);
    }
    gl_buf_done(&out);
}

/* `n` with the value at the rest of the path, which begins with `part`. */
static void write_with(const struct gl_json *j, gl_jnode n, struct target *t, size_t part,
                       struct gl_jw *w)
{
    bool is_map = gl_json_is(n, GL_JSON_OBJECT), was_there = false;
    struct gl_arena a = {0};
    uint32_t i = 0;

    if (!is_map && !gl_json_is(n, GL_JSON_ARRAY)) {
        gl_jw_raw(w, gl_json_raw(j, n)); /* the path does not exist */
        return;
    }
    (is_map ? gl_jw_object : gl_jw_array)(w);
    for (gl_jnode e = gl_json_first(j, n); e; e = gl_json_after(j, n, e), i++) {
        gl_str key = gl_json_str(j, e, &a);
        bool is_it = is_map ? gl_str_eq(key, t->parts[part]) : is_named(j, e, i, t->parts[part]);

        if (is_map) {
            gl_jw_key_str(w, key);
        }
        if (is_it && !was_there) {
            write_member(j, is_map ? gl_json_value(e) : e, t, part + 1, w);
            was_there = true;
        } else {
            gl_jw_raw(w, gl_json_raw(j, is_map ? gl_json_value(e) : e));
        }
    }
    if (is_map && !was_there && part + 1 == t->n) {
        gl_jw_key_str(w, t->parts[part]);
        write_member(j, NULL, t, part + 1, w);
    }
    gl_jw_end(w);
    gl_arena_done(&a);
}

static gl_jnode config_value(const struct gl_json *j, gl_str path, struct gl_arena *a)
{
    gl_jnode n = gl_json_root(j);
    struct target t = {0};

    if (!split(path, &t)) {
        return NULL;
    }
    for (size_t i = 0; i < t.n && n != NULL; i++) {
        n = gl_json_get(j, n, gl_str_c(a, t.parts[i]));
    }
    return n;
}

static bool bind_one(struct gl_manifest *m, const struct gl_json *jc, gl_str from, gl_str to,
                     struct gl_json *ret)
{
    struct target t = {.jv = jc, .value = config_value(jc, from, m->r.a)};
    struct gl_buf out = {0};
    struct gl_jw w;
    bool is_fine = false;
    gl_str text;

    if (t.value == NULL || !split(to, &t)) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_BINDING_NO_SOURCE,
                          "manifest_config_bindings: the configuration has no value at `%.*s`",
                          GL_STR_ARG(gl_flow_read_clip(from)));
        return false;
    }
    gl_jw_init(&w, &out);
    write_with(m->r.j, m->root, &t, 0, &w);
    text = gl_str_dup(m->r.a, gl_buf_view(&out));
    gl_buf_done(&out);
    is_fine = t.is_found &&
              gl_json_parse(ret, text, GL_MANIFEST_BYTES_MAX * (size_t)2, m->r.a, NULL) == 0;
    if (!is_fine) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_BINDING_NO_TARGET,
                          "manifest_config_bindings: the manifest has no path `%.*s`",
                          GL_STR_ARG(gl_flow_read_clip(to)));
        return false;
    }
    m->r.j = ret;
    m->root = gl_json_root(ret);
    m->is_rewritten = true;
    return true;
}

/* One element of a list. */
static bool read_pair(const struct gl_json *j, gl_jnode e, struct gl_arena *a, gl_str *from,
                      gl_str *to)
{
    static const char *const sources[] = {"config", "config_path", "from", "source"};
    static const char *const targets[] = {"manifest", "manifest_path", "to", "target"};

    for (size_t i = 0; i < GL_COUNT(sources); i++) {
        *from = from->n > 0 ? *from : gl_json_str(j, gl_json_get(j, e, sources[i]), a);
        *to = to->n > 0 ? *to : gl_json_str(j, gl_json_get(j, e, targets[i]), a);
    }
    return from->n > 0 && to->n > 0;
}

static bool bind_all(struct gl_manifest *m, const struct gl_json *jc, gl_jnode list)
{
    struct gl_json *docs = GL_NEW_ARRAY(m->r.a, struct gl_json, list->count);
    size_t n = 0;

    for (gl_jnode e = gl_json_first(jc, list); e; e = gl_json_after(jc, list, e), n++) {
        gl_str from = {0}, to = {0};

        if (e->is_key) {
            from = gl_json_str(jc, e, m->r.a);
            to = gl_json_str(jc, gl_json_value(e), m->r.a);
        } else {
            (void)read_pair(jc, e, m->r.a, &from, &to);
        }
        if (from.n == 0 || to.n == 0) {
            gl_manifest_error(m, m->root, NULL, GL_REASON_BINDING_INVALID,
                              "manifest_config_bindings: expected {\"config\": path, \"manifest\": "
                              "path}");
            return false;
        }
        if (!bind_one(m, jc, from, to, &docs[n])) {
            return false;
        }
    }
    return true;
}

bool gl_manifest_config_bindings(struct gl_manifest *m)
{
    struct gl_json *jc = GL_NEW(m->r.a, struct gl_json);
    gl_jnode list;

    if (m->given->config.n == 0 ||
        gl_json_parse(jc, m->given->config, GL_INPUTS_BYTES_MAX, m->r.a, NULL) != 0) {
        return true; /* take_given() reports the error */
    }
    list = gl_json_get(jc, gl_json_root(jc), "manifest_config_bindings");
    if (!gl_manifest_is_set(list)) {
        return true;
    }
    if (list->count > BINDINGS_MAX ||
        !(gl_json_is(list, GL_JSON_ARRAY) || gl_json_is(list, GL_JSON_OBJECT))) {
        gl_manifest_error(m, m->root, NULL, GL_REASON_TOO_MANY,
                          "manifest_config_bindings is a list of at most %d bindings",
                          BINDINGS_MAX);
        return false;
    }
    return bind_all(m, jc, list);
}
