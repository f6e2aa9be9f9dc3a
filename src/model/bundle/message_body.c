/* message_body.c - bodies as bytes. A message holds a body as JSON; workers read and write
 * text or bytes of any type, compressed or not. */
#include "base/base64.h"
#include "base/gzip.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "model/bundle/message_parts.h"

static bool is_json_type(gl_str type)
{
    gl_str rest;

    type = gl_str_trim(gl_str_cut(type, ';', &rest));
    return gl_str_is(type, "application/json") || gl_str_ends(type, GL_S("+json"));
}

bool gl_message_is_plain(const struct gl_message *m)
{
    return is_json_type(m->content_type) &&
           (m->content_encoding.n == 0 || gl_str_is(m->content_encoding, "identity"));
}

static gl_str kept(struct gl_buf *b, struct gl_arena *a)
{
    gl_str s = gl_str_dup(a, gl_buf_view(b));

    gl_buf_done(b);
    return s;
}

/* The bytes of a body whose type is not JSON. */
static gl_str plain(gl_str body, struct gl_arena *a)
{
    static const gl_str mark = {.p = GL_BODY_BYTES, .n = sizeof GL_BODY_BYTES - 1};
    struct gl_buf bytes = {0};
    gl_str text;

    if (body.n == 0 || gl_str_is(body, "null")) {
        return (gl_str){0};
    }
    if (body.n < 2 || body.p[0] != '"') {
        return body;
    }
    text = gl_json_unescape((gl_str){.p = body.p + 1, .n = body.n - 2}, a);
    if (gl_str_starts(text, mark) &&
        gl_base64_decode((gl_str){.p = text.p + mark.n, .n = text.n - mark.n}, &bytes)) {
        return kept(&bytes, a);
    }
    gl_buf_done(&bytes);
    return text;
}

int gl_message_body(const struct gl_message *m, struct gl_arena *a, gl_str *ret,
                    struct gl_why *reterr_why)
{
    gl_str text = m->body.n > 0 ? m->body : GL_S("null");

    if (!is_json_type(m->content_type)) {
        text = plain(m->body, a);
    }
    if (gl_str_is(m->content_encoding, "gzip")) {
        struct gl_buf packed = {0};

        gl_gzip_pack(text, &packed);
        text = kept(&packed, a);
    } else if (m->content_encoding.n > 0 && !gl_str_is(m->content_encoding, "identity")) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "`content_encoding` is \"%.*s\"; it must be \"identity\" or \"gzip\"",
                      GL_STR_ARG(m->content_encoding));
    }
    *ret = text;
    return 0;
}

/* Bytes as a JSON string: unchanged if they are text, else as base64 with its prefix. A text that
 * starts with the prefix is also written as base64. */
static gl_str json_string(gl_str bytes, struct gl_arena *a)
{
    struct gl_buf out = {0}, text = {0};
    struct gl_jw w;

    gl_jw_init(&w, &out);
    if (gl_str_is_utf8(bytes, NULL) && !gl_str_starts(bytes, GL_S(GL_BODY_BYTES))) {
        gl_jw_str(&w, bytes);
    } else {
        gl_buf_c(&text, GL_BODY_BYTES);
        gl_base64_encode(bytes, &text);
        gl_jw_str(&w, gl_buf_view(&text));
        gl_buf_done(&text);
    }
    return kept(&out, a);
}

static int take_plain(gl_str bytes, struct gl_arena *a, struct gl_message *m, struct gl_why *why)
{
    struct gl_json j;

    if (!is_json_type(m->content_type)) {
        m->body = json_string(bytes, a);
        return 0;
    }
    if (gl_json_parse(&j, bytes, GL_RECORD_BYTES_MAX, a, why) != 0) {
        return gl_why_prefix(why, "`body_base64` is not JSON, although `content_type` says so");
    }
    if (j.depth > GL_VALUE_DEPTH_MAX) {
        return gl_why(why, GL_E_LIMIT, "`body_base64` has more than %d levels of nesting",
                      GL_VALUE_DEPTH_MAX);
    }
    m->body = gl_json_raw(&j, gl_json_root(&j));
    return 0;
}

int gl_message_set_base64_body(gl_str base64, struct gl_arena *a, struct gl_message *m,
                               struct gl_why *reterr_why)
{
    struct gl_buf out = {0}, unpacked = {0};
    gl_str bytes;
    int rc = 0;

    if (!gl_base64_decode(base64, &out)) {
        gl_buf_done(&out);
        return gl_why(reterr_why, GL_E_INVALID, "`body_base64` is not valid base64");
    }
    bytes = kept(&out, a);
    if (gl_str_is(m->content_encoding, "gzip") && gl_gzip_is(bytes)) {
        rc = gl_gzip_unpack(bytes, GL_STDOUT_BYTES_MAX, &unpacked, reterr_why);
        bytes = kept(&unpacked, a);
    }
    if (rc != 0) {
        (void)gl_why_prefix(reterr_why, "`body_base64`"); /* rc is returned */
        return rc;
    }
    return take_plain(bytes, a, m, reterr_why);
}

/* ---- bodies stored outside of their message ---- */

uint64_t gl_message_pieces(uint64_t bytes)
{
    return (bytes + GL_BODY_PIECE_BYTES - 1) / GL_BODY_PIECE_BYTES;
}

gl_str gl_message_body_artifact(const struct gl_body_ref *ref, struct gl_arena *a)
{
    return gl_str_fmt(
        a, "{\"name\":\"" GL_ARTIFACT_BODY "\",\"sha256\":\"%.*s\",\"bytes\":%llu,\"letter\":%llu}",
        GL_STR_ARG(ref->sha256), (unsigned long long)ref->bytes,
        (unsigned long long)ref->message_number);
}

static bool read_ref(const struct gl_json *j, gl_jnode n, struct gl_arena *a,
                     struct gl_body_ref *ret)
{
    int64_t bytes, number;

    *ret = (struct gl_body_ref){.sha256 = gl_json_str(j, gl_json_get(j, n, "sha256"), a)};
    if (ret->sha256.n != GL_SHA256_HEX - 1 || !gl_json_i64(j, gl_json_get(j, n, "bytes"), &bytes) ||
        bytes <= 0 || bytes > GL_MESSAGE_BYTES_MAX ||
        !gl_json_i64(j, gl_json_get(j, n, "letter"), &number) || number <= 0) {
        return false;
    }
    ret->bytes = (uint64_t)bytes;
    ret->message_number = (uint64_t)number;
    return true;
}

bool gl_message_body_ref(gl_str artifacts, struct gl_arena *a, struct gl_body_ref *ret)
{
    struct gl_json j;

    if (artifacts.n == 0 || gl_json_parse(&j, artifacts, GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return false;
    }
    for (gl_jnode e = gl_json_first(&j, gl_json_root(&j)); e != NULL;
         e = gl_json_after(&j, gl_json_root(&j), e)) {
        if (gl_str_is(gl_json_str(&j, gl_json_get(&j, e, "name"), a), GL_ARTIFACT_BODY)) {
            return read_ref(&j, e, a, ret);
        }
    }
    return false;
}
