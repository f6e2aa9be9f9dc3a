#include "model/capacity.h"

#include <stdio.h>

enum { MILLI = 1000, CORES_MILLI_MAX = 1000000 * MILLI };

gl_str gl_capacity_cores_text(uint64_t cores_milli, char text[GL_CAPACITY_CORES_BYTES])
{
    unsigned fraction = (unsigned)(cores_milli % MILLI);
    int n = snprintf(text, GL_CAPACITY_CORES_BYTES, "%llu.%03u",
                     (unsigned long long)(cores_milli / MILLI), fraction);
    size_t used = (size_t)n;

    while (text[used - 1] == '0') {
        used--;
    }
    used -= text[used - 1] == '.' ? 1 : 0;
    text[used] = '\0';
    return (gl_str){.p = text, .n = used};
}

void gl_capacity_update(struct gl_capacity *published, const struct gl_capacity *now)
{
    uint64_t before = published->disk_free_bytes, after = now->disk_free_bytes;
    uint64_t change = before > after ? before - after : after - before;
    bool keeps = published->disk_bytes == now->disk_bytes && change <= before / 16;

    *published = *now;
    published->disk_free_bytes = keeps ? before : after;
}

static void put(struct gl_jw *w, const char *key, bool is_known, uint64_t value)
{
    gl_jw_key(w, key);
    if (is_known) {
        gl_jw_u64(w, value);
    } else {
        gl_jw_null(w);
    }
}

void gl_capacity_write(const struct gl_capacity *c, struct gl_jw *w)
{
    char cores[GL_CAPACITY_CORES_BYTES];

    gl_jw_object(w);
    gl_jw_put_raw(w, "cores",
                  c->cores_milli > 0 ? gl_capacity_cores_text(c->cores_milli, cores) : (gl_str){0});
    put(w, "memory_bytes", c->memory_bytes > 0, c->memory_bytes);
    put(w, "disk_bytes", c->disk_bytes > 0, c->disk_bytes);
    put(w, "disk_free_bytes", c->disk_bytes > 0, c->disk_free_bytes);
    gl_jw_end(w);
}

/* "1.5" without floating point: the same on every machine. 0: it is not a number of cores. */
static uint64_t cores_of(gl_str text)
{
    gl_str fraction, whole = gl_str_cut(text, '.', &fraction);
    uint64_t cores, milli = 0, unit = MILLI / 10;

    if (!gl_str_u64(whole, &cores) || cores > CORES_MILLI_MAX / MILLI) {
        return 0;
    }
    for (size_t i = 0; i < fraction.n; i++) {
        if (fraction.p[i] < '0' || fraction.p[i] > '9') {
            return 0; /* an exponent: no node writes one */
        }
        milli += (uint64_t)(fraction.p[i] - '0') * unit;
        unit /= 10;
    }
    return cores * MILLI + milli;
}

static uint64_t bytes_of(const struct gl_json *j, gl_jnode n, const char *key)
{
    int64_t bytes;

    return gl_json_i64(j, gl_json_get(j, n, key), &bytes) && bytes > 0 ? (uint64_t)bytes : 0;
}

bool gl_capacity_read(const struct gl_json *j, gl_jnode n, struct gl_capacity *ret)
{
    gl_jnode cores = gl_json_get(j, n, "cores");

    if (!gl_json_is(n, GL_JSON_OBJECT)) {
        return false;
    }
    *ret = (struct gl_capacity){
        .cores_milli = gl_json_is(cores, GL_JSON_NUMBER) ? cores_of(gl_json_raw(j, cores)) : 0,
        .memory_bytes = bytes_of(j, n, "memory_bytes"),
        .disk_bytes = bytes_of(j, n, "disk_bytes"),
        .disk_free_bytes = bytes_of(j, n, "disk_free_bytes"),
    };
    if (ret->disk_free_bytes > ret->disk_bytes) {
        ret->disk_bytes = ret->disk_free_bytes = 0;
    }
    return true;
}
