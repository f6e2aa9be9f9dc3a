#include "model/text/compare.h"

#include "base/check.h"
#include "base/map.h"

enum { FEW_MEMBERS = 8, EXPONENT_MAX = 1000000000 };

/* A value is a node of a document. */
struct compared_value {
    const struct gl_json *j;
    gl_jnode n;
};

/* Numbers. */

/* 0.<digits> times ten to the `point`; zero has no digits. The digits have no leading or trailing
 * zeros; they may still contain the decimal point. */
struct decimal {
    bool negative;
    gl_str digits;
    int64_t point;
};

static int64_t read_exponent(gl_str s)
{
    uint64_t v = EXPONENT_MAX;
    bool negative = s.n && s.p[0] == '-';
    if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
        s.p++;
        s.n--;
    }
    if (!gl_str_u64(s, &v) || v > EXPONENT_MAX) {
        v = EXPONENT_MAX;
    }
    return negative ? -(int64_t)v : (int64_t)v;
}

static struct decimal decimal_of(gl_str s)
{
    struct decimal d = {0};
    d.negative = s.p[0] == '-';
    s.p += d.negative;
    s.n -= d.negative;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == 'e' || s.p[i] == 'E') {
            d.point = read_exponent((gl_str){s.p + i + 1, s.n - i - 1});
            s.n = i;
        }
    }
    gl_str rest;
    d.point += (int64_t)gl_str_cut(s, '.', &rest).n;
    while (s.n && (s.p[0] == '0' || s.p[0] == '.')) {
        d.point -= s.p[0] == '0';
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == '0' || s.p[s.n - 1] == '.')) {
        s.n--;
    }
    d.digits = s;
    d.negative = d.negative && s.n;
    return d;
}

/* Both positive, with the same point: digit by digit, skipping the decimal points. */
static int cmp_digits(gl_str a, gl_str b)
{
    size_t i = 0, k = 0;
    for (;;) {
        i += i < a.n && a.p[i] == '.';
        k += k < b.n && b.p[k] == '.';
        if (i >= a.n || k >= b.n) {
            return (i < a.n) - (k < b.n);
        }
        if (a.p[i] != b.p[k]) {
            return a.p[i] < b.p[k] ? -1 : 1;
        }
        i++;
        k++;
    }
}

int gl_compare_numbers(gl_str a, gl_str b)
{
    struct decimal x = decimal_of(a), y = decimal_of(b);
    int sign = x.negative ? -1 : 1;
    if (x.negative != y.negative || x.digits.n == 0 || y.digits.n == 0) {
        int left = x.digits.n == 0 ? 0 : sign, right = y.digits.n == 0 ? 0 : y.negative ? -1 : 1;
        return (left > right) - (left < right);
    }
    if (x.point != y.point) {
        return x.point < y.point ? -sign : sign;
    }
    return sign * cmp_digits(x.digits, y.digits);
}

/* Equality. */

gl_jnode gl_compare_find_key(const struct gl_json *j, gl_jnode object, gl_str name,
                             struct gl_arena *a)
{
    for (gl_jnode k = gl_json_first(j, object); k; k = gl_json_after(j, object, k)) {
        if (gl_str_eq(gl_json_str(j, k, a), name)) {
            return k;
        }
    }
    return NULL;
}

static bool is_equal(struct compared_value a, struct compared_value b, struct gl_arena *arena);

static bool equal_lists(struct compared_value a, struct compared_value b, struct gl_arena *arena)
{
    gl_jnode x = gl_json_first(a.j, a.n), y = gl_json_first(b.j, b.n);
    while (x && y &&
           is_equal((struct compared_value){a.j, x}, (struct compared_value){b.j, y}, arena)) {
        x = gl_json_after(a.j, a.n, x);
        y = gl_json_after(b.j, b.n, y);
    }
    return !x && !y;
}

/* Members in any order. Large objects get a map: an output may have a hundred thousand members. */
static bool equal_objects(struct compared_value a, struct compared_value b, struct gl_arena *arena)
{
    struct gl_map map = {0};
    bool few = b.n->count <= FEW_MEMBERS, equal = true;
    for (gl_jnode k = few ? NULL : gl_json_first(b.j, b.n); k; k = gl_json_after(b.j, b.n, k)) {
        gl_map_add(&map, gl_json_str(b.j, k, arena), (void *)(uintptr_t)k);
    }
    for (gl_jnode k = gl_json_first(a.j, a.n); k && equal; k = gl_json_after(a.j, a.n, k)) {
        gl_str name = gl_json_str(a.j, k, arena);
        gl_jnode other = few ? gl_compare_find_key(b.j, b.n, name, arena) : gl_map_find(&map, name);
        equal = other && is_equal((struct compared_value){a.j, gl_json_value(k)},
                                  (struct compared_value){b.j, gl_json_value(other)}, arena);
    }
    gl_map_done(&map);
    return equal;
}

static bool is_equal(struct compared_value a, struct compared_value b, struct gl_arena *arena)
{
    if (a.n->type != b.n->type) {
        return false;
    }
    switch ((enum gl_json_type)a.n->type) {
    case GL_JSON_NULL:
    case GL_JSON_FALSE:
    case GL_JSON_TRUE:
        return true;
    case GL_JSON_NUMBER:
        return gl_compare_numbers(gl_json_raw(a.j, a.n), gl_json_raw(b.j, b.n)) == 0;
    case GL_JSON_STRING:
        return gl_str_eq(gl_json_str(a.j, a.n, arena), gl_json_str(b.j, b.n, arena));
    case GL_JSON_ARRAY:
        return a.n->count == b.n->count && equal_lists(a, b, arena);
    case GL_JSON_OBJECT:
        return a.n->count == b.n->count && equal_objects(a, b, arena);
    }
    GL_UNREACHABLE();
}

bool gl_compare_equal(const struct gl_json *ja, gl_jnode a, const struct gl_json *jb, gl_jnode b,
                      struct gl_arena *arena)
{
    return is_equal((struct compared_value){ja, a}, (struct compared_value){jb, b}, arena);
}
