/* options.c - table-driven parsing of URL options. A message names the option but never its
 * value. */
#include "store/common/options.h"

#include "base/check.h"

/* The value of a hex digit; -1 for any other character. */
static int hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool gl_options_decode(gl_str s, struct gl_arena *a, gl_str *ret)
{
    char *p = gl_arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            int high = i + 2 < s.n ? hex(s.p[i + 1]) : -1;
            int low = i + 2 < s.n ? hex(s.p[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        /* A NUL would end the C strings these texts become. */
        if (c == '\0') {
            return false;
        }
        p[n++] = c;
    }
    *ret = (gl_str){p, n};
    GL_ASSERT(n <= s.n);
    return true;
}

/* Convert `value` to the option's type and store it at its offset in `to`. */
static int set_value(const struct gl_option *o, void *to, gl_str value, struct gl_why *why)
{
    int64_t number;

    GL_ASSERT(o->type != GL_OPTION_NUMBER || o->min <= o->max);
    switch (o->type) {
    case GL_OPTION_TEXT:
        *(gl_str *)to = value;
        return 1;
    case GL_OPTION_NUMBER:
        if (!gl_str_i64(value, &number) || number < o->min || number > o->max) {
            return gl_why(why, GL_E_INVALID,
                          "store URL: option %s must be a number from %lld to %lld", o->name,
                          (long long)o->min, (long long)o->max);
        }
        *(int64_t *)to = number;
        return 1;
    case GL_OPTION_WORD:
        if (!gl_str_is(value, o->off) && !gl_str_is(value, o->on)) {
            return gl_why(why, GL_E_INVALID, "store URL: option %s must be %s or %s", o->name,
                          o->off, o->on);
        }
        *(bool *)to = gl_str_is(value, o->on);
        return 1;
    }
    GL_UNREACHABLE();
}

int gl_options_set(const struct gl_option *table, size_t n, void *to, gl_str option,
                   struct gl_arena *a, struct gl_why *reterr_why)
{
    gl_str value, name = gl_str_cut(option, '=', &value);

    GL_ASSERT(n > 0);
    for (size_t i = 0; i < n; i++) {
        if (!gl_str_is(name, table[i].name)) {
            continue;
        }
        if (!gl_options_decode(value, a, &value)) {
            return gl_why(reterr_why, GL_E_INVALID,
                          "store URL: option %s has a '%%' that is not followed by two hexadecimal "
                          "digits (write '%%25' for a '%%' itself)",
                          table[i].name);
        }
        /* The decoded text is in the arena, so a TEXT option may keep it. */
        return set_value(&table[i], (char *)to + table[i].at, value, reterr_why);
    }
    return 0;
}

gl_str gl_options_names(const struct gl_option *table, size_t n, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf names = {0};

    GL_ASSERT(n > 0);
    for (size_t i = 0; i < n; i++) {
        gl_buf_fmt(&names, "%s%s", i > 0 ? ", " : "", table[i].name);
    }
    return gl_str_dup(a, gl_buf_view(&names));
}
