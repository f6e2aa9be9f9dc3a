/* posted.c - the bodies of requests: JSON, read strictly, with every error at once where it is a
 * flow. */
#include "base/check.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/sha256.h"
#include "http/call.h"
#include "model/schema.h"

/* ---- small bodies ---- */

struct body {
    gl_str flow, files; /* as JSON */
    gl_str run_id, dedupe_key, stack, env_scope;
    gl_str decision, output, who, reason;
};

#define FIELD(member, type, flags, doc) GL_FIELD(body, member, type, flags, doc)

static const struct gl_field submit_fields[] = {
    FIELD(flow, RAW, GL_FF_REQUIRED, "The flow, as in a flow file."),
    FIELD(files, RAW, 0, "For each `script` of the flow: {\"sha256\": ..., \"executable\": ...}."),
    FIELD(run_id, STR, 0, "The caller's name for the job."),
    FIELD(dedupe_key, STR, 0, "At most one live job has this key."),
    FIELD(stack, STR, 0, "Which stack of nodes may run it."),
    FIELD(env_scope, STR, 0, "The environment it belongs to."),
};

static const struct gl_field command_fields[] = {
    FIELD(who, STR, 0, "Who asks, for the record."),
    FIELD(reason, STR, 0, "Why, for the record."),
};

static const struct gl_field respond_fields[] = {
    FIELD(decision, STR, GL_FF_REQUIRED, "rerun, done or failed."),
    FIELD(output, RAW, 0, "With `done`: the step's output."),
    FIELD(who, STR, 0, "Who decides, for the record."),
    FIELD(reason, STR, 0, "Why, for the record."),
};

static const struct gl_schema submit_schema = {
    .name = "submit",
    .bytes = sizeof(struct body),
    .fields = submit_fields,
    .fields_n = GL_COUNT(submit_fields),
};

static const struct gl_schema command_schema = {
    .name = "command",
    .bytes = sizeof(struct body),
    .fields = command_fields,
    .fields_n = GL_COUNT(command_fields),
};

static const struct gl_schema respond_schema = {
    .name = "respond",
    .bytes = sizeof(struct body),
    .fields = respond_fields,
    .fields_n = GL_COUNT(respond_fields),
};

static bool read_body(struct gl_call *c, const struct gl_schema *schema, struct gl_json *j,
                      struct body *ret)
{
    struct gl_why why = {0};
    gl_str text = gl_buf_view(&c->body);

    if (text.n == 0) {
        text = GL_S("{}");
    }
    if (gl_json_parse(j, text, GL_HTTP_BODY_BYTES_MAX, &c->arena, &why) != 0) {
        (void)gl_why_prefix(&why, "the body is not JSON");
        gl_reply_error(c, GL_E_INVALID, why.text, NULL);
        return false;
    }
    if (gl_schema_read(schema, j, gl_json_root(j), true, &c->arena, ret, &why) != 0) {
        gl_reply_error(c, GL_E_INVALID, why.text, "docs/api.md lists the fields");
        return false;
    }
    if (ret->reason.n > GL_REASON_BYTES_MAX || ret->who.n > GL_NAME_BYTES_MAX) {
        gl_reply_error(c, GL_E_INVALID, "'reason' can have 512 bytes and 'who' 256", NULL);
        return false;
    }
    return true;
}

bool gl_posted_command(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &command_schema, &j, &b)) {
        return false;
    }
    c->rq.who = b.who;
    c->rq.reason = b.reason;
    return true;
}

bool gl_posted_respond(struct gl_call *c)
{
    struct gl_json j;
    struct body b;

    if (!read_body(c, &respond_schema, &j, &b)) {
        return false;
    }
    if (b.output.n > GL_OUTPUT_BYTES_MAX || j.depth > GL_VALUE_DEPTH_MAX) {
        gl_reply_error_at(c, GL_E_INVALID, "an output can have 1 MiB and 48 levels of nesting",
                          NULL, "output", NULL);
        return false;
    }
    c->rq.decision = b.decision;
    c->rq.output = b.output;
    c->rq.who = b.who;
    c->rq.reason = b.reason;
    return true;
}

/* ---- a flow ---- */

struct text {
    struct gl_link link;
    gl_str content;
    char hex[GL_SHA256_HEX];
};

/* Answers for the files of a flow while it is parsed. Texts are kept back until the whole flow is
 * known to be good: bad input changes nothing. */
struct loader {
    struct gl_flow_loader loader;
    struct gl_call *call;
    const struct gl_json *j;
    gl_jnode files;
    struct gl_link texts;
};

static int load_text(struct loader *l, gl_str content, char ret_hex[static 65])
{
    struct text *t = GL_NEW(&l->call->arena, struct text);

    t->content = content;
    (void)gl_sha256_hex(content, t->hex);
    memcpy(ret_hex, t->hex, sizeof(t->hex));
    gl_list_push(&l->texts, &t->link);
    return 0;
}

static bool is_hex(gl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) {
            return false;
        }
    }
    return s.n == GL_SHA256_HEX - 1;
}

static int load_file(struct loader *l, gl_str source, char ret_hex[static 65], bool *ret_executable,
                     struct gl_why *reterr_why)
{
    struct gl_call *c = l->call;
    gl_jnode file = gl_json_get(l->j, l->files, gl_str_c(&c->arena, source));
    gl_str hex = gl_json_str(l->j, gl_json_get(l->j, file, "sha256"), &c->arena);

    if (file == NULL) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "files are not read from the node's disk: put its content under "
                      "/v1/contexts/default/blobs/SHA256 and name it in `files`: "
                      "{\"%.*s\": {\"sha256\": \"...\"}}",
                      GL_STR_ARG(source));
    }
    if (!is_hex(hex)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "`files` must give its `sha256` as 64 lower-case hex digits");
    }
    if (!c->config->blob->has(c->config->blob, c->rq.context, hex)) {
        return gl_why(reterr_why, GL_E_INVALID, "there is no blob %.*s: put it there first",
                      GL_STR_ARG(hex));
    }
    memcpy(ret_hex, hex.p, hex.n);
    ret_hex[hex.n] = '\0';
    (void)gl_json_bool(gl_json_get(l->j, file, "executable"), ret_executable);
    return 0;
}

static int load(struct gl_flow_loader *loader, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    struct loader *l = GL_CONTAINER(loader, struct loader, loader);

    *ret_executable = false;
    return source.n == 0 ? load_text(l, text, ret_hex)
                         : load_file(l, source, ret_hex, ret_executable, reterr_why);
}

static bool put_texts(struct loader *l)
{
    struct gl_blob *blob = l->call->config->blob;
    struct gl_why why = {0};

    for (struct gl_link *k = l->texts.next; k != &l->texts; k = k->next) {
        struct text *t = GL_CONTAINER(k, struct text, link);

        if (blob->put(blob, l->call->rq.context, gl_str_of(t->hex), t->content, &why) != 0) {
            gl_reply_error(l->call, GL_E_UNAVAILABLE, why.text, NULL);
            return false;
        }
    }
    return true;
}

static bool compile(struct gl_call *c, const struct gl_json *j, struct gl_flow_errors *errors)
{
    gl_jnode root = gl_json_root(j);
    struct loader l = {.loader = {.load = load}, .call = c, .j = j};
    struct gl_buf encoded = {0};
    struct gl_flow *flow;

    gl_list_init(&l.texts);
    l.files = gl_json_get(j, root, "files");
    if (gl_flow_parse(j, gl_json_get(j, root, "flow"), &l.loader, &c->arena, &flow, errors) != 0) {
        gl_reply_error_at(c, GL_E_INVALID,
                          gl_str_fmt(&c->arena, "the flow has %zu error%s", errors->total,
                                     errors->total == 1 ? "" : "s")
                              .p,
                          NULL, "flow", errors);
        return false;
    }
    gl_flow_encode(flow, &encoded);
    c->rq.flow = gl_str_dup(&c->arena, gl_buf_view(&encoded));
    gl_buf_done(&encoded);
    if (c->rq.flow.n > GL_FLOW_BYTES_MAX) {
        gl_reply_refusal(c, MHD_HTTP_CONTENT_TOO_LARGE, GL_E_LIMIT,
                         "the compiled flow is larger than 32 MiB");
        return false;
    }
    return put_texts(&l);
}

bool gl_posted_submit(struct gl_call *c)
{
    struct gl_flow_errors *errors = GL_NEW(&c->arena, struct gl_flow_errors);
    struct gl_json j;
    struct body b;

    if (!gl_str_is(c->rq.context, "default")) {
        gl_reply_error(c, GL_E_NOT_FOUND, "there is no such context", NULL);
        return false;
    }
    if (!read_body(c, &submit_schema, &j, &b) || !compile(c, &j, errors)) {
        return false;
    }
    c->rq.run_id = b.run_id;
    c->rq.dedupe_key = b.dedupe_key;
    c->rq.stack = b.stack;
    c->rq.env_scope = b.env_scope;
    return true;
}
