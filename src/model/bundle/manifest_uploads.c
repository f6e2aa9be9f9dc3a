/* Compiles uploads (files of payloads/ that a worker gets in its workspace) and skills. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

static const struct gl_payload *payload_at(const struct gl_manifest *m, size_t i)
{
    return &((const struct gl_payload *)m->given->payloads.items)[i];
}

/* The number of the first payload whose path is not before `path`. */
static size_t first_from(const struct gl_manifest *m, gl_str path)
{
    size_t lo = 0, hi = m->given->payloads.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (gl_str_cmp(payload_at(m, mid)->path, path) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool has_file(const struct gl_manifest *m, gl_str path)
{
    size_t i = first_from(m, path);

    return i < m->given->payloads.n && gl_str_eq(payload_at(m, i)->path, path);
}

static bool has_folder(struct gl_manifest *m, gl_str path)
{
    gl_str prefix = gl_str_fmt(m->r.a, "%.*s/", GL_STR_ARG(path));
    size_t i = first_from(m, prefix);

    return i < m->given->payloads.n && gl_str_starts(payload_at(m, i)->path, prefix);
}

/* Whether it is a folder without any files below it, so that there is nothing to copy. */
static bool is_empty(const struct gl_manifest *m, gl_str path)
{
    const struct gl_strs *all = &m->given->folders;

    for (size_t i = 0; i < all->n; i++) {
        gl_str f = all->items[i];

        if (gl_str_starts(f, path) && (f.n == path.n || f.p[path.n] == '/')) {
            return true;
        }
    }
    return false;
}

static bool has(struct gl_manifest *m, gl_str path)
{
    return has_file(m, path) || has_folder(m, path);
}

static bool is_all(gl_str path)
{
    return path.n == 0 || gl_str_is(path, ".") || gl_str_is(path, "./");
}

static gl_str tidy_path(gl_str path)
{
    while (gl_str_starts(path, GL_S("./")) && path.n > 2) {
        path = (gl_str){path.p + 2, path.n - 2};
    }
    while (path.n > 1 && path.p[path.n - 1] == '/') {
        path.n--;
    }
    return path;
}

static gl_str base_name(gl_str path)
{
    for (size_t i = path.n; i > 0; i--) {
        if (path.p[i - 1] == '/') {
            return (gl_str){path.p + i, path.n - i};
        }
    }
    return path;
}

static const char *near_payload(struct gl_manifest *m, gl_str path)
{
    struct gl_suggest near;
    gl_str inside, prefix = GL_S("payloads/");

    if (gl_str_starts(path, prefix)) {
        inside = (gl_str){path.p + prefix.n, path.n - prefix.n};
        if (has(m, inside)) {
            return "; sources are below payloads/ already: leave `payloads/` out";
        }
    }
    if (!gl_flow_read_error_has_room(&m->r)) {
        return "";
    }
    gl_suggest_init(&near, path);
    for (size_t i = 0; i < m->given->payloads.n; i++) {
        gl_suggest_offer(&near, payload_at(m, i)->path);
        gl_suggest_offer(&near, gl_str_cut(payload_at(m, i)->path, '/', &(gl_str){0}));
    }
    return gl_flow_read_suggestion(&m->r, &near);
}

/* False: it is invalid (with an error), or there is nothing to copy. Errors name `n`, or its
 * field `source` or `target`. */
static bool check_upload(struct gl_manifest *m, gl_jnode n, struct gl_upload *u)
{
    gl_jnode source = gl_manifest_get(m, n, "source"), target = gl_manifest_get(m, n, "target");

    source = gl_json_is(source, GL_JSON_STRING) ? source : n;
    target = target != NULL ? target : n;
    u->source = is_all(u->source) ? GL_S("") : tidy_path(u->source);
    u->target = is_all(u->target) ? GL_S("") : tidy_path(u->target);
    if (u->source.n > 0 &&
        (!gl_flow_check_file_path(u->source) || !gl_manifest_is_program_text(u->source))) {
        gl_manifest_error(m, source, NULL, GL_REASON_LEADS_OUT,
                          "the source `%.*s` is outside payloads/: give a path below it, without "
                          "`..`",
                          GL_STR_ARG(gl_flow_read_clip(u->source)));
        return false;
    }
    if (u->target.n > 0 &&
        (!gl_flow_check_file_path(u->target) || !gl_manifest_is_program_text(u->target))) {
        gl_manifest_error(m, target, NULL, GL_REASON_LEADS_OUT,
                          "the target `%.*s` is outside the workspace: give a path below it, "
                          "without `..`",
                          GL_STR_ARG(gl_flow_read_clip(u->target)));
        return false;
    }
    if (u->source.n > 0 ? !has(m, u->source) && is_empty(m, u->source)
                        : m->given->payloads.n == 0) {
        return false; /* valid, but there is nothing to copy */
    }
    if (u->source.n > 0 && !has(m, u->source)) {
        gl_manifest_error(m, source, NULL, GL_REASON_NO_SUCH_FILE,
                          "there is no file or folder `%.*s` in payloads/%s",
                          GL_STR_ARG(gl_flow_read_clip(u->source)), near_payload(m, u->source));
        return false;
    }
    if (u->target.n == 0 && u->source.n > 0 && has_file(m, u->source)) {
        u->target = base_name(u->source);
    }
    return true;
}

static bool read_listed(struct gl_manifest *m, gl_jnode e, struct gl_upload *ret)
{
    if (gl_json_is(e, GL_JSON_STRING)) {
        ret->source = gl_json_str(m->r.j, e, m->r.a);
        ret->target = base_name(tidy_path(ret->source));
        return check_upload(m, e, ret);
    }
    if (!gl_manifest_expect(m, e, GL_JSON_OBJECT, "{source, target}")) {
        return false;
    }
    if (gl_manifest_get(m, e, "source") == NULL) {
        gl_manifest_error(m, e, "source", GL_REASON_MISSING,
                          "it is missing: a file or folder below payloads/");
        return false;
    }
    if (!gl_manifest_text(m, e, "source", &ret->source)) {
        return false;
    }
    ret->target = is_all(ret->source) ? GL_S("") : base_name(tidy_path(ret->source));
    (void)gl_manifest_text(m, e, "target", &ret->target);
    return check_upload(m, e, ret);
}

static size_t read_list(struct gl_manifest *m, gl_jnode list, struct gl_upload *ret)
{
    size_t n = 0;

    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        n += read_listed(m, e, &ret[n]) ? 1 : 0;
    }
    return n;
}

/* upload_path and upload_as. */
static size_t read_one(struct gl_manifest *m, gl_jnode config, struct gl_upload *ret)
{
    if (!gl_manifest_text(m, config, "upload_path", &ret->source)) {
        return 0;
    }
    ret->target = is_all(ret->source) ? GL_S("") : base_name(tidy_path(ret->source));
    (void)gl_manifest_text(m, config, "upload_as", &ret->target);
    return check_upload(m, gl_manifest_get(m, config, "upload_path"), ret) ? 1 : 0;
}

void gl_manifest_uploads(struct gl_manifest *m, const struct gl_manifest_node *node,
                         struct gl_agent_spec *ret)
{
    gl_jnode list = gl_manifest_list(m, node->config, "upload_paths");
    struct gl_upload *uploads;
    size_t n;

    list = list != NULL ? list : gl_manifest_list(m, node->config, "uploads");
    if (list != NULL && list->count > GL_PAYLOADS_MAX) {
        gl_manifest_error(m, list, NULL, GL_REASON_TOO_MANY, "there are at most %d uploads",
                          GL_PAYLOADS_MAX);
        return;
    }
    uploads =
        GL_NEW_ARRAY(m->r.a, struct gl_upload, m->skills.n + (list != NULL ? list->count : 1) + 1);
    n = list != NULL ? read_list(m, list, uploads) : read_one(m, node->config, uploads);
    for (size_t i = 0; i < m->skills.n; i++) {
        const struct gl_upload *skill = &((const struct gl_upload *)m->skills.items)[i];

        if (!gl_manifest_add_expansion(m, node->n, skill->source.n + skill->target.n + 32)) {
            break;
        }
        uploads[n++] = *skill;
    }
    ret->uploads = (struct gl_items){.items = uploads, .n = n};
}

/* Skills: Python packages in payloads/ that every executor can import. */

static gl_str skill_folder(struct gl_manifest *m, gl_jnode e, gl_str name)
{
    gl_str path = {0}, guess = gl_str_fmt(m->r.a, "skills/%.*s", GL_STR_ARG(name));
    gl_jnode source = gl_manifest_get(m, e, "source");

    if (gl_manifest_text(m, e, "path", &path) || gl_manifest_text(m, e, "payload_path", &path) ||
        (gl_json_is(source, GL_JSON_OBJECT) && gl_manifest_text(m, source, "path", &path))) {
        path = tidy_path(path);
        return gl_str_starts(path, GL_S("payloads/"))
                   ? (gl_str){path.p + strlen("payloads/"), path.n - strlen("payloads/")}
                   : path;
    }
    return has_folder(m, guess) ? guess : name;
}

static bool is_from_payload(struct gl_manifest *m, gl_jnode e)
{
    gl_jnode source = gl_manifest_get(m, e, "source");
    gl_str word = {0};

    if (gl_json_is(source, GL_JSON_OBJECT)) {
        (void)gl_manifest_text(m, source, "type", &word);
    } else {
        (void)gl_manifest_text(m, e, "source", &word);
    }
    if (gl_str_is(word, "payload") || gl_str_is(word, "payloads")) {
        return true;
    }
    gl_manifest_error(
        m, e, gl_json_is(e, GL_JSON_OBJECT) ? "source" : NULL, GL_REASON_UNSUPPORTED,
        "this release supports only skills that the bundle ships (source \"payload\")");
    return false;
}

static bool read_skill(struct gl_manifest *m, gl_jnode e, struct gl_upload *ret,
                       struct gl_buf *path)
{
    gl_str name = {0}, src;

    if (!is_from_payload(m, e)) {
        return false;
    }
    if (!gl_manifest_text(m, e, "name", &name) && !gl_manifest_text(m, e, "id", &name)) {
        gl_manifest_error(m, e, "name", GL_REASON_MISSING, "it is missing: the name of the skill");
        return false;
    }
    if (!gl_str_is_id(name)) {
        gl_manifest_error(m, e, "name", GL_REASON_NAME_INVALID,
                          "a skill's name has letters, digits, _ . and -");
        return false;
    }
    ret->source = skill_folder(m, e, name);
    ret->target = gl_str_fmt(m->r.a, "skills/%.*s", GL_STR_ARG(name));
    if (!check_upload(m, e, ret)) {
        return false;
    }
    src = gl_str_fmt(m->r.a, "%.*s/src", GL_STR_ARG(ret->source));
    gl_buf_fmt(path, "%s" GL_MANIFEST_WORK "/skills/%.*s%s", path->n > 0 ? ":" : "",
               GL_STR_ARG(name), has_folder(m, src) ? "/src" : "");
    return true;
}

void gl_manifest_skills(struct gl_manifest *m)
{
    enum { SKILLS_MAX = 256 };
    gl_jnode list = gl_manifest_list(m, m->root, "skill_dependencies");
    struct gl_upload *skills;
    struct gl_buf path = {0};
    size_t n = 0;

    if (list == NULL) {
        return;
    }
    if (list->count > SKILLS_MAX) {
        gl_manifest_error(m, list, NULL, GL_REASON_TOO_MANY, "there are at most %d skills",
                          SKILLS_MAX);
        return;
    }
    skills = GL_NEW_ARRAY(m->r.a, struct gl_upload, list->count);
    for (gl_jnode e = gl_json_first(m->r.j, list); e; e = gl_json_after(m->r.j, list, e)) {
        n += read_skill(m, e, &skills[n], &path) ? 1 : 0;
    }
    m->skills = (struct gl_items){.items = skills, .n = n};
    m->skills_path = gl_str_dup(m->r.a, gl_buf_view(&path));
    gl_buf_done(&path);
}
