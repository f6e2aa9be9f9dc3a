/* bundle_submit.c - the member `bundle` of a submission: the manifest and the blobs of its files.
 *
 *     {"manifest": {...}, "payloads": [{"path", "sha256", "executable"}], "folders": [...],
 *      "config": {...}, "overlay": {...}, "scenario": ...}
 *
 * The manifest is stored as a blob. The flow refers to that blob, which keeps it from garbage
 * collection as long as the flow exists. */
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "http/http_text.h"
#include "http/submission_reader.h"
#include "model/bundle/manifest.h"

struct bundle_fields {
    gl_str manifest, config, overlay, scenario; /* as JSON */
    struct gl_items payloads;                   /* struct payload_file */
    struct gl_strs folders;
};

struct payload_file {
    gl_str path, sha256;
    bool executable;
};

static const struct gl_field file_fields[] = {
    GL_FIELD(payload_file, path, STR, GL_FF_REQUIRED, "Its path below payloads/."),
    GL_FIELD(payload_file, sha256, STR, GL_FF_REQUIRED,
             "SHA-256 of its content, which was uploaded before."),
    GL_FIELD(payload_file, executable, BOOL, 0, "Whether it is executable."),
};

static const struct gl_schema file_schema = {
    .name = "payload",
    .bytes = sizeof(struct payload_file),
    .fields = file_fields,
    .fields_n = GL_COUNT(file_fields),
};

static const struct gl_field bundle_schema_fields[] = {
    GL_FIELD(bundle_fields, manifest, RAW, GL_FF_REQUIRED,
             "The unchanged content of manifest.json."),
    GL_FIELD_SUB(bundle_fields, payloads, LIST, &file_schema, 0, "The files in payloads/."),
    GL_FIELD(bundle_fields, folders, STRS, 0, "Empty folders below payloads/."),
    GL_FIELD(bundle_fields, config, RAW, 0, "The configuration, all layers merged."),
    GL_FIELD(bundle_fields, overlay, RAW, 0, "Merged over every message that starts the job."),
    GL_FIELD(bundle_fields, scenario, RAW, 0, "scenario.json."),
};

const struct gl_schema gl_bundle_submit_schema = {
    .name = "bundle",
    .bytes = sizeof(struct bundle_fields),
    .fields = bundle_schema_fields,
    .fields_n = GL_COUNT(bundle_schema_fields),
};

static bool refuse(struct gl_submission_reader *s, struct gl_refusal *refusal,
                   const struct gl_why *why)
{
    *refusal = (struct gl_refusal){.code = gl_err_join(GL_E_INVALID, why->reason),
                                   .message = gl_str_c(s->arena, gl_str_of(why->text)),
                                   .hint = "docs/api.md lists the fields",
                                   .field = "bundle"};
    return false;
}

/* ---- files ---- */

/* Relative, without empty parts, "." or "..". */
static bool is_path(gl_str path)
{
    gl_str rest = path;
    bool is_good = path.n > 0 && path.n < 4096 && memchr(path.p, 0, path.n) == NULL &&
                   path.p[path.n - 1] != '/';

    while (is_good && rest.n > 0) {
        gl_str part = gl_str_cut(rest, '/', &rest);

        is_good = part.n > 0 && part.n < 256 && !gl_str_is(part, ".") && !gl_str_is(part, "..");
    }
    for (size_t i = 0; i < path.n && is_good; i++) {
        is_good = (unsigned char)path.p[i] >= ' ' && path.p[i] != 0x7f;
    }
    return is_good;
}

static int by_path(const void *a, const void *b)
{
    const struct gl_payload *x = a, *y = b;

    return gl_str_cmp(x->path, y->path);
}

static int take_file(struct gl_submission_reader *s, const struct payload_file *f,
                     struct gl_payload *ret, struct gl_why *why)
{
    if (!is_path(f->path)) {
        return gl_why(why, GL_R_PAYLOAD_PATH_INVALID,
                      "payload '%.*s': a path below payloads/ is relative and has no empty parts, "
                      "no '..' and no control characters",
                      GL_STR_ARG(f->path));
    }
    if (!gl_submission_is_hash(f->sha256)) {
        return gl_why(why, GL_R_BLOB_HASH_INVALID,
                      "payload '%.*s': `sha256` has 64 lower-case hex digits", GL_STR_ARG(f->path));
    }
    if (!s->blob->has(s->blob, s->context, f->sha256)) {
        return gl_why(why, GL_R_BLOB_MISSING,
                      "payload '%.*s': there is no blob %.*s: upload it first", GL_STR_ARG(f->path),
                      GL_STR_ARG(f->sha256));
    }
    *ret = (struct gl_payload){.path = f->path, .blob = f->sha256, .executable = f->executable};
    return 0;
}

static int take_files(struct gl_submission_reader *s, const struct bundle_fields *p,
                      struct gl_items *ret, struct gl_why *why)
{
    const struct payload_file *from = p->payloads.items;
    size_t n = p->payloads.n;
    struct gl_payload *to = GL_NEW_ARRAY(s->arena, struct gl_payload, n + 1);

    if (n > GL_PAYLOADS_MAX) {
        return gl_why(why, GL_E_INVALID, "there are more than %d payloads", GL_PAYLOADS_MAX);
    }
    if (p->folders.n > GL_PAYLOADS_MAX) {
        return gl_why(why, GL_E_INVALID, "there are more than %d folders", GL_PAYLOADS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        int err = take_file(s, &from[i], &to[i], why);

        if (err != 0) {
            return err;
        }
    }
    if (n > 0) {
        qsort(to, n, sizeof(*to), by_path);
    }
    for (size_t i = 1; i < n; i++) {
        if (gl_str_eq(to[i - 1].path, to[i].path)) {
            return gl_why(why, GL_R_PAYLOAD_REPEATED, "payload '%.*s' is listed twice",
                          GL_STR_ARG(to[i].path));
        }
    }
    *ret = (struct gl_items){.items = to, .n = n};
    return 0;
}

/* The snapshot's name is the hash of this list of all files, in the order of their paths. */
static gl_str hash_of(struct gl_submission_reader *s, gl_str manifest,
                      const struct gl_items *payloads)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf listing = {0};
    const struct gl_payload *all = payloads->items;
    char hex[GL_SHA256_HEX];

    gl_buf_fmt(&listing, "%.*s - manifest.json\n", GL_STR_ARG(manifest));
    for (size_t i = 0; i < payloads->n; i++) {
        gl_buf_fmt(&listing, "%.*s %s payloads/%.*s\n", GL_STR_ARG(all[i].blob),
                   all[i].executable ? "x" : "-", GL_STR_ARG(all[i].path));
    }
    return gl_str_dup(s->arena, gl_sha256_hex(gl_buf_view(&listing), hex));
}

/* ---- the whole ---- */

static bool check_object(struct gl_submission_reader *s, gl_jnode bundle, const char *name,
                         struct gl_why *why)
{
    gl_jnode n = gl_json_get(s->json, bundle, name);

    if (n != NULL && !gl_json_is(n, GL_JSON_OBJECT)) {
        (void)gl_why(why, GL_E_INVALID, "'%s' of a bundle must be an object, not %s", name,
                     gl_json_type_name(n));
        return false;
    }
    return true;
}

static bool keep_manifest(struct gl_submission_reader *s, gl_str text,
                          char ret[static GL_SHA256_HEX], struct gl_refusal *refusal)
{
    struct gl_why why = {0};
    gl_str hex = gl_sha256_hex(text, ret);

    if (s->blob->put(s->blob, s->context, hex, text, &why) != 0) {
        *refusal = (struct gl_refusal){.code = GL_E_UNAVAILABLE,
                                       .message = gl_str_c(s->arena, gl_str_of(why.text))};
        return false;
    }
    return true;
}

static bool parse(struct gl_submission_reader *s, gl_str text,
                  const struct gl_manifest_given *given, struct gl_flow **ret,
                  struct gl_refusal *refusal)
{
    struct gl_flow_errors *errors = GL_NEW(s->arena, struct gl_flow_errors);
    struct gl_why why = {0};
    struct gl_json j;

    /* Parse the manifest by itself, so that errors have its own line numbers. */
    if (gl_json_parse(&j, text, GL_MANIFEST_BYTES_MAX, s->arena, &why) != 0) {
        return refuse(s, refusal, &why);
    }
    if (gl_manifest_parse(&j, gl_json_root(&j), given, s->arena, ret, errors) != 0) {
        *refusal =
            (struct gl_refusal){.code = GL_R_MANIFEST_INVALID,
                                .message = gl_str_fmt(s->arena, "the manifest has %zu error%s",
                                                      errors->total, errors->total == 1 ? "" : "s")
                                               .p,
                                .field = "bundle",
                                .details = errors};
        return false;
    }
    return true;
}

bool gl_bundle_submit_compile(struct gl_submission_reader *s, gl_jnode bundle, gl_str *ret,
                              struct gl_refusal *refusal)
{
    struct gl_manifest_given given = {0};
    char hex[GL_SHA256_HEX];
    struct gl_flow *flow;
    struct gl_why why = {0};
    struct bundle_fields p;

    if (gl_schema_read(&gl_bundle_submit_schema, s->json, bundle, true, s->arena, &p, &why) != 0 ||
        !check_object(s, bundle, "config", &why) || !check_object(s, bundle, "overlay", &why) ||
        take_files(s, &p, &given.payloads, &why) != 0) {
        return refuse(s, refusal, &why);
    }
    given.folders = p.folders; /* only compared with the folders that the manifest names */
    given.config = gl_http_text_compact(p.config, s->arena);
    given.overlay = gl_http_text_compact(p.overlay, s->arena);
    given.scenario = gl_http_text_compact(p.scenario, s->arena);
    given.hash = hash_of(s, gl_sha256_hex(p.manifest, hex), &given.payloads);
    if (!parse(s, p.manifest, &given, &flow, refusal)) {
        return false;
    }
    flow->bundle->manifest = gl_str_of(hex);
    return gl_submission_encode_flow(s, flow, "bundle", ret, refusal) &&
           keep_manifest(s, p.manifest, hex, refusal);
}
