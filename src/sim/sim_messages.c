#include "sim/sim_messages.h"

#include "base/limits.h"
#include "base/sha256.h"

bool sim_messages_body(const struct sim_disk *d, gl_str job, const struct gl_body_ref *ref,
                       struct gl_arena *a, gl_str *ret)
{
    struct gl_buf whole = {0};
    char hex[GL_SHA256_HEX];
    bool ok = true;
    for (uint64_t i = 0; ok && i < gl_message_pieces(ref->bytes); i++) {
        gl_str id = gl_str_fmt(a, "%.*s/%012llu/%04llu", GL_STR_ARG(job),
                               (unsigned long long)ref->message_number, (unsigned long long)i);
        const struct sim_disk_record *r = sim_disk_peek(d, SIM_CONTEXT, GL_S("body"), id);
        ok = r != NULL;
        if (ok) {
            gl_buf_str(&whole, r->value);
        }
    }
    ok = ok && whole.n == ref->bytes &&
         gl_str_eq(gl_sha256_hex(gl_buf_view(&whole), hex), ref->sha256);
    if (ok) {
        *ret = gl_str_dup(a, gl_buf_view(&whole));
    }
    gl_buf_done(&whole);
    return ok;
}

bool sim_messages_read(const struct sim_disk *d, gl_str id, gl_str value, struct gl_arena *a,
                       struct gl_message *ret, bool *ret_has_ref, struct gl_body_ref *ret_ref)
{
    struct gl_json json;
    if (gl_json_parse(&json, gl_str_dup(a, value), GL_RECORD_BYTES_MAX, a, NULL) != 0) {
        return false;
    }
    gl_jnode root = gl_json_root(&json), n = gl_json_get(&json, root, "message");
    gl_str text = n != NULL && gl_json_is(n, GL_JSON_OBJECT) ? gl_json_raw(&json, n) : (gl_str){0};
    if (gl_json_get(&json, root, "large") != NULL || text.n == 0) {
        const struct sim_disk_record *r = sim_disk_peek(d, SIM_CONTEXT, GL_S("message"), id);
        text = r != NULL ? gl_str_dup(a, r->value) : text;
    }
    if (text.n == 0 || gl_message_read(text, a, ret, NULL) != 0) {
        return false;
    }
    *ret_has_ref = ret->body.n == 0 && gl_message_body_ref(ret->artifacts, a, ret_ref);
    return true;
}
