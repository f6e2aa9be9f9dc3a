#include "http/submission_reader.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "http/http_text.h"

void gl_submission_reader_init(struct gl_submission_reader *s, struct gl_arena *arena,
                               struct gl_blob *blob, gl_str context, const struct gl_json *json)
{
    *s = (struct gl_submission_reader){
        .arena = arena, .blob = blob, .context = context, .json = json};
    gl_map_init(&s->compiled);
}

void gl_submission_reader_done(struct gl_submission_reader *s)
{
    gl_map_done(&s->compiled);
}

/* ---- files ---- */

struct inline_text {
    struct gl_link link;
    gl_str content;
    char hex[GL_SHA256_HEX];
};

/* Supplies the files of a flow while it is parsed. Texts are stored only after the whole flow has
 * been accepted: invalid input changes nothing. */
struct file_loader {
    struct gl_flow_loader loader;
    struct gl_submission_reader *s;
    gl_jnode files;
    struct gl_link texts;
};

static int load_text(struct file_loader *l, gl_str content, char ret_hex[static 65])
{
    struct inline_text *t = GL_NEW(l->s->arena, struct inline_text);

    t->content = content;
    (void)gl_sha256_hex(content, t->hex);
    memcpy(ret_hex, t->hex, sizeof(t->hex));
    gl_list_push(&l->texts, &t->link);
    return 0;
}

bool gl_submission_is_hash(gl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) {
            return false;
        }
    }
    return s.n == GL_SHA256_HEX - 1;
}

static int load_file(struct file_loader *l, gl_str source, char ret_hex[static 65],
                     bool *ret_executable, struct gl_why *reterr_why)
{
    struct gl_submission_reader *s = l->s;
    gl_jnode file = gl_json_get(s->json, l->files, gl_str_c(s->arena, source));
    gl_str hex = gl_json_str(s->json, gl_json_get(s->json, file, "sha256"), s->arena);

    if (file == NULL) {
        return gl_why(reterr_why, GL_R_FILE_NOT_UPLOADED,
                      "files are not read from the node's disk: upload the content to "
                      "/v1/contexts/default/blobs/SHA256 and list it in `files`: "
                      "{\"%.*s\": {\"sha256\": \"...\"}}",
                      GL_STR_ARG(source));
    }
    if (!gl_submission_is_hash(hex)) {
        return gl_why(reterr_why, GL_R_BLOB_HASH_INVALID,
                      "`files` must give its `sha256` as 64 lower-case hex digits");
    }
    if (!s->blob->has(s->blob, s->context, hex)) {
        return gl_why(reterr_why, GL_R_BLOB_MISSING, "there is no blob %.*s: upload it first",
                      GL_STR_ARG(hex));
    }
    memcpy(ret_hex, hex.p, hex.n);
    ret_hex[hex.n] = '\0';
    (void)gl_json_bool(gl_json_get(s->json, file, "executable"), ret_executable);
    return 0;
}

static int load(struct gl_flow_loader *loader, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    struct file_loader *l = GL_CONTAINER(loader, struct file_loader, loader);

    *ret_executable = false;
    return source.n == 0 ? load_text(l, text, ret_hex)
                         : load_file(l, source, ret_hex, ret_executable, reterr_why);
}

static bool put_texts(struct file_loader *l, struct gl_refusal *refusal)
{
    struct gl_blob *blob = l->s->blob;
    struct gl_why why = {0};

    for (struct gl_link *k = l->texts.next; k != &l->texts; k = k->next) {
        struct inline_text *t = GL_CONTAINER(k, struct inline_text, link);

        if (blob->put(blob, l->s->context, gl_str_of(t->hex), t->content, &why) != 0) {
            *refusal = (struct gl_refusal){.code = GL_E_UNAVAILABLE,
                                           .message = gl_str_c(l->s->arena, gl_str_of(why.text))};
            return false;
        }
    }
    return true;
}

/* ---- flows ---- */

/* A flow that was compiled before, or its errors. */
struct compiled {
    gl_str key;
    gl_str flow; /* "": refused */
    struct gl_refusal refusal;
};

bool gl_submission_encode_flow(struct gl_submission_reader *s, const struct gl_flow *flow,
                               const char *field, gl_str *ret, struct gl_refusal *refusal)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf encoded = {0};

    gl_flow_encode(flow, &encoded);
    if (encoded.n > GL_FLOW_BYTES_MAX) {
        *refusal = (struct gl_refusal){.code = GL_R_FLOW_TOO_LARGE,
                                       .status = MHD_HTTP_CONTENT_TOO_LARGE,
                                       .message = "the compiled flow is larger than 32 MiB",
                                       .field = field};
        return false;
    }
    *ret = gl_str_dup(s->arena, gl_buf_view(&encoded));
    return true;
}

static bool compile(struct gl_submission_reader *s, gl_jnode flow_node, gl_jnode files, gl_str *ret,
                    struct gl_refusal *refusal)
{
    struct gl_flow_errors *errors = GL_NEW(s->arena, struct gl_flow_errors);
    struct file_loader l = {.loader = {.load = load}, .s = s, .files = files};
    struct gl_flow *flow;

    gl_list_init(&l.texts);
    if (gl_flow_parse(s->json, flow_node, &l.loader, s->arena, &flow, errors) != 0) {
        *refusal =
            (struct gl_refusal){.code = GL_R_FLOW_INVALID,
                                .message = gl_str_fmt(s->arena, "the flow has %zu error%s",
                                                      errors->total, errors->total == 1 ? "" : "s")
                                               .p,
                                .field = "flow",
                                .details = errors};
        return false;
    }
    return gl_submission_encode_flow(s, flow, "flow", ret, refusal) && put_texts(&l, refusal);
}

static struct compiled *compile_once(struct gl_submission_reader *s, gl_jnode flow, gl_jnode bundle,
                                     gl_jnode files)
{
    gl_str flow_text = gl_json_raw(s->json, bundle != NULL ? bundle : flow);
    gl_str key = flow_text;
    struct compiled *c;

    if (files != NULL) {
        gl_str files_text = gl_json_raw(s->json, files);

        key = gl_str_fmt(s->arena, "%.*s %.*s", GL_STR_ARG(flow_text), GL_STR_ARG(files_text));
    }
    c = gl_map_find(&s->compiled, key);
    if (c == NULL) {
        c = GL_NEW(s->arena, struct compiled);
        c->key = key;
        if (bundle != NULL ? !gl_bundle_submit_compile(s, bundle, &c->flow, &c->refusal)
                           : !compile(s, flow, files, &c->flow, &c->refusal)) {
            c->flow = (gl_str){0};
        }
        gl_map_add(&s->compiled, c->key, c);
    }
    return c;
}

/* ---- one submission ---- */

static bool refuse(struct gl_refusal *refusal, int code, const char *message, const char *field)
{
    *refusal = (struct gl_refusal){
        .code = code, .message = message, .hint = "docs/api.md lists the fields", .field = field};
    return false;
}

static bool check_inputs(struct gl_submission_reader *s, gl_jnode inputs, gl_str text,
                         struct gl_refusal *refusal)
{
    struct gl_json j;

    if (!gl_json_is(inputs, GL_JSON_OBJECT)) {
        return refuse(refusal, GL_R_INPUTS_NOT_OBJECT, "'inputs' must be an object", "inputs");
    }
    /* The limit on the body's nesting does not bound that of a part. */
    if (text.n > GL_INPUTS_BYTES_MAX ||
        gl_json_parse(&j, text, GL_INPUTS_BYTES_MAX, s->arena, NULL) != 0 ||
        j.depth > GL_VALUE_DEPTH_MAX) {
        return refuse(refusal, GL_R_INPUTS_TOO_LARGE,
                      "the inputs of a job can have at most 1 MiB and 48 levels of nesting",
                      "inputs");
    }
    return true;
}

bool gl_submission_reader_next(struct gl_submission_reader *s, gl_jnode one, struct gl_request *rq,
                               struct gl_refusal *refusal)
{
    gl_jnode flow = gl_json_get(s->json, one, "flow");
    gl_jnode files = flow != NULL ? gl_json_get(s->json, one, "files") : s->files;
    gl_jnode inputs = gl_json_get(s->json, one, "inputs");
    gl_jnode bundle = gl_json_get(s->json, one, "bundle");
    struct compiled *c;
    struct gl_submission_request *b = &rq->submission;
    struct gl_why why = {0};

    gl_request_init(rq, GL_VERB_SUBMIT, s->context);
    if (gl_schema_read(gl_verbs[GL_VERB_SUBMIT].takes, s->json, one, true, s->arena, b, &why) !=
        0) {
        return refuse(refusal, gl_err_join(GL_E_INVALID, why.reason),
                      gl_str_c(s->arena, gl_str_of(why.text)), NULL);
    }
    if (bundle != NULL && flow != NULL) {
        return refuse(refusal, GL_R_FLOW_AND_BUNDLE, "give either 'flow' or 'bundle'", "bundle");
    }
    flow = flow != NULL ? flow : s->flow;
    if (flow == NULL && bundle == NULL) {
        return refuse(refusal, GL_R_FLOW_MISSING, "'flow' is missing", "flow");
    }
    if (inputs != NULL && !gl_json_is(inputs, GL_JSON_NULL)) {
        b->inputs = gl_http_text_compact(b->inputs, s->arena);
        if (!check_inputs(s, inputs, b->inputs, refusal)) {
            return false;
        }
    } else {
        b->inputs = (gl_str){0};
    }
    c = compile_once(s, flow, bundle, bundle != NULL ? NULL : files);
    if (c->flow.n == 0) {
        *refusal = c->refusal;
        return false;
    }
    b->compiled = c->flow;
    return true;
}
