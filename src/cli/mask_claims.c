#include "cli/mask_claims.h"

#include <stdio.h>

#include "base/sha256.h"
#include "cli/mask_facts.h"

enum { TOKEN_BYTES = 8 }; /* bytes of the hash */

static void write_token(const uint8_t key[static GL_MASK_KEY_BYTES], gl_str text, struct gl_jw *w)
{
    uint8_t sum[32];
    char token[TOKEN_BYTES * 2 + 2] = "*";
    struct gl_sha256 s;

    gl_sha256_init(&s);
    gl_sha256_add(&s, key, GL_MASK_KEY_BYTES);
    gl_sha256_add(&s, text.p, text.n);
    gl_sha256_done(&s, sum);
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        (void)snprintf(token + 1 + i * 2, 3, "%02x", sum[i]);
    }
    gl_jw_c(w, text.n > 0 ? token : "");
}

/* A record as text in a string. A record that cannot be parsed must remain unparsable. */
static void write_record(const uint8_t key[static GL_MASK_KEY_BYTES], gl_str text,
                         struct gl_arena *a, struct gl_jw *w)
{
    struct gl_buf out = {0};
    struct gl_json inner;
    struct gl_jw iw;

    if (text.n > 0 && gl_json_parse(&inner, text, SIZE_MAX, a, NULL) == 0) {
        gl_jw_init(&iw, &out);
        gl_mask_claims(key, &inner, gl_json_root(&inner), a, &iw);
        gl_jw_str(w, gl_buf_view(&out));
        gl_buf_done(&out);
    } else {
        gl_jw_c(w, text.n > 0 ? "***" : "");
    }
}

static void write_list(const uint8_t key[static GL_MASK_KEY_BYTES], const struct gl_json *j,
                       gl_jnode list, struct gl_arena *a, struct gl_jw *w)
{
    gl_jw_array(w);
    for (gl_jnode e = gl_json_first(j, list); e != NULL; e = gl_json_after(j, list, e)) {
        gl_mask_claims(key, j, e, a, w);
    }
    gl_jw_end(w);
}

static bool is_one_of(gl_str name, const char *const *names)
{
    while (*names != NULL && !gl_str_is(name, *names)) {
        names++;
    }
    return *names != NULL;
}

static void write_member(const uint8_t key[static GL_MASK_KEY_BYTES], const struct gl_json *j,
                         gl_str name, gl_jnode value, struct gl_arena *a, struct gl_jw *w)
{
    static const char *const names[] = {"key", "owner", "nonce", "id", NULL};
    static const char *const records[] = {"value", "shown", NULL};
    static const char *const hidden[] = {"work_type", "error_detail", "why", NULL};

    if (gl_json_is(value, GL_JSON_ARRAY)) {
        write_list(key, j, value, a, w);
    } else if (gl_json_is(value, GL_JSON_STRING) && is_one_of(name, names)) {
        write_token(key, gl_json_str(j, value, a), w);
    } else if (gl_json_is(value, GL_JSON_STRING) && is_one_of(name, records)) {
        write_record(key, gl_json_str(j, value, a), a, w);
    } else if (is_one_of(name, hidden) || gl_json_is(value, GL_JSON_OBJECT)) {
        gl_mask_hide(value, w);
    } else {
        gl_jw_raw(w, gl_json_raw(j, value));
    }
}

void gl_mask_claims(const uint8_t key[static GL_MASK_KEY_BYTES], const struct gl_json *j,
                    gl_jnode object, struct gl_arena *a, struct gl_jw *w)
{
    if (!gl_json_is(object, GL_JSON_OBJECT)) {
        gl_mask_hide(object, w);
        return;
    }
    gl_jw_object(w);
    for (gl_jnode k = gl_json_first(j, object); k != NULL; k = gl_json_after(j, object, k)) {
        gl_str name = gl_json_str(j, k, a);

        gl_jw_key_str(w, name);
        write_member(key, j, name, gl_json_value(k), a, w);
    }
    gl_jw_end(w);
}
