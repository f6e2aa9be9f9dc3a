#include "os/pools.h"

#include <unistd.h>

#include "base/check.h"
#include "base/limits.h"

enum { SLOTS_PER_CORE = 4 };

static uint32_t default_slots(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return (uint32_t)(cores > 0 ? cores : 1) * SLOTS_PER_CORE;
}

static int bad(struct gl_why *why, gl_str part, const char *what)
{
    return gl_why(why, GL_E_INVALID, "'%.*s': %s; write pools like default=8,gpu=1",
                  GL_STR_ARG(part), what);
}

static bool is_known(const struct gl_pools_entry *pools, size_t n, gl_str name)
{
    for (size_t i = 0; i < n; i++) {
        if (gl_str_eq(pools[i].name, name)) {
            return true;
        }
    }
    return false;
}

static int read_one(gl_str part, struct gl_pools_entry *ret, struct gl_why *reterr_why)
{
    gl_str slots;
    gl_str name = gl_str_trim(gl_str_cut(part, '=', &slots));
    uint64_t number;
    if (!gl_str_is_id(name)) {
        return bad(reterr_why, part, "a pool needs a name of letters, digits, '_', '.' and '-'");
    }
    if (!gl_str_u64(gl_str_trim(slots), &number) || number < 1 || number > GL_SLOTS_MAX) {
        return bad(reterr_why, part, "a pool needs a number of slots from 1 to 100000");
    }
    *ret = (struct gl_pools_entry){.name = name, .slots = (uint32_t)number};
    return 0;
}

static int read_list(const char *text, struct gl_pools_entry *pools, size_t *ret_n,
                     struct gl_why *reterr_why)
{
    gl_str rest = gl_str_trim(gl_str_of(text));
    size_t n = 0;
    while (rest.n > 0) {
        gl_str part = gl_str_trim(gl_str_cut(rest, ',', &rest));
        if (n == GL_POOLS_MAX) {
            return bad(reterr_why, part, "there can be at most 64 pools");
        }
        int err = read_one(part, &pools[n], reterr_why);
        if (err < 0) {
            return err;
        }
        if (is_known(pools, n, pools[n].name)) {
            return bad(reterr_why, part, "this pool is named twice");
        }
        n++;
    }
    *ret_n = n;
    return 0;
}

int gl_pools_read(const char *text, struct gl_arena *a, struct gl_pools_entry **ret, size_t *ret_n,
                  struct gl_why *reterr_why)
{
    struct gl_pools_entry *pools = GL_NEW_ARRAY(a, struct gl_pools_entry, GL_POOLS_MAX + 1);
    size_t n;
    int err = read_list(text, pools, &n, reterr_why);
    if (err < 0) {
        return err;
    }
    if (!is_known(pools, n, GL_S("default"))) {
        if (n == GL_POOLS_MAX) {
            return bad(reterr_why, GL_S("default"), "there can be at most 64 pools with this one");
        }
        pools[n++] = (struct gl_pools_entry){.name = GL_S("default"), .slots = default_slots()};
    }
    *ret = pools;
    *ret_n = n;
    return 0;
}

int gl_pools_add_executor(const char *text, uint32_t slots, struct gl_arena *a,
                          struct gl_pools_entry *pools, size_t *pools_n, struct gl_why *reterr_why)
{
    struct gl_pools_entry named[GL_POOLS_MAX + 1];
    size_t n;
    int err = read_list(text, named, &n, reterr_why);
    if (err == 0 && !is_known(named, n, GL_S("default"))) {
        named[n++] = (struct gl_pools_entry){.name = GL_S("default"), .slots = slots};
    }
    for (size_t i = 0; i < n && err == 0; i++) {
        gl_str name = gl_str_fmt(a, "executor.%.*s", GL_STR_ARG(named[i].name));
        if (is_known(pools, *pools_n, name)) {
            continue;
        }
        if (!gl_str_is_id(name)) {
            err = bad(reterr_why, named[i].name, "its name is too long");
        } else if (*pools_n == GL_POOLS_MAX) {
            err = bad(reterr_why, name, "there can be at most 64 pools, those of workers included");
        } else {
            pools[(*pools_n)++] = (struct gl_pools_entry){.name = name, .slots = named[i].slots};
        }
    }
    return err;
}
