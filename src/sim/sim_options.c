#include "sim/sim_options.h"

#include "base/check.h"

struct option {
    const char *name;
    uint32_t on_pct, lo, hi;
    size_t offset;
};

static const struct option table[] = {
#define X(name, on_pct, lo, hi, doc) {#name, on_pct, lo, hi, offsetof(struct sim_options, name)},
    SIM_OPTIONS(X)
#undef X
};

static const struct option cluster_table[] = {
#define X(name, on_pct, lo, hi, doc) \
    {#name, on_pct, lo, hi, offsetof(struct sim_cluster_options, name)},
    SIM_CLUSTER_OPTIONS(X)
#undef X
};

static const struct option agent_table[] = {
#define X(name, on_pct, lo, hi, doc) \
    {#name, on_pct, lo, hi, offsetof(struct sim_agent_options, name)},
    SIM_AGENT_OPTIONS(X)
#undef X
};

static uint32_t *value_of(void *o, const struct option *row)
{
    return (uint32_t *)(void *)((char *)o + row->offset);
}

/* Between lo and hi, small values as likely as large ones: halves the range a random number of
 * times. */
static uint32_t draw(struct gl_rng *r, uint32_t lo, uint32_t hi)
{
    uint32_t span = hi - lo;
    uint64_t halvings = gl_rng_below(r, 4);
    return lo + (uint32_t)gl_rng_below(r, (uint64_t)(span >> halvings) + 1);
}

static void draw_all(const struct option *rows, size_t n, void *ret, struct gl_rng *r)
{
    for (size_t i = 0; i < n; i++) {
        const struct option *row = &rows[i];
        bool on = gl_rng_chance(r, row->on_pct * 10000);
        uint32_t v = draw(
            r, row->lo, row->hi); /* drawn even if off: switching one off changes no other value */
        *value_of(ret, row) = on ? v : 0;
    }
}

static void print_all(const struct option *rows, size_t n, const void *o, struct gl_buf *out)
{
    const char *sep = "";
    for (size_t i = 0; i < n; i++) {
        uint32_t v = *(const uint32_t *)(const void *)((const char *)o + rows[i].offset);
        if (v != 0) {
            gl_buf_fmt(out, "%s%s=%u", sep, rows[i].name, v);
            sep = " ";
        }
    }
}

static bool set_one(const struct option *rows, size_t n, void *o, gl_str name, uint32_t value)
{
    for (size_t i = 0; i < n; i++) {
        if (gl_str_is(name, rows[i].name)) {
            *value_of(o, &rows[i]) = value;
            return true;
        }
    }
    return false;
}

void sim_options_draw(struct sim_options *ret, struct gl_rng *r)
{
    draw_all(table, GL_COUNT(table), ret, r);
}

void sim_options_print(const struct sim_options *o, struct gl_buf *out)
{
    print_all(table, GL_COUNT(table), o, out);
}

bool sim_options_set(struct sim_options *o, gl_str name, uint32_t value)
{
    return set_one(table, GL_COUNT(table), o, name, value);
}

void sim_cluster_options_draw(struct sim_cluster_options *ret, struct gl_rng *r)
{
    draw_all(cluster_table, GL_COUNT(cluster_table), ret, r);
}

void sim_cluster_options_print(const struct sim_cluster_options *o, struct gl_buf *out)
{
    print_all(cluster_table, GL_COUNT(cluster_table), o, out);
}

bool sim_cluster_options_set(struct sim_cluster_options *o, gl_str name, uint32_t value)
{
    return set_one(cluster_table, GL_COUNT(cluster_table), o, name, value);
}

void sim_agent_options_draw(struct sim_agent_options *ret, struct gl_rng *r)
{
    draw_all(agent_table, GL_COUNT(agent_table), ret, r);
}

void sim_agent_options_print(const struct sim_agent_options *o, struct gl_buf *out)
{
    print_all(agent_table, GL_COUNT(agent_table), o, out);
}

bool sim_agent_options_set(struct sim_agent_options *o, gl_str name, uint32_t value)
{
    return set_one(agent_table, GL_COUNT(agent_table), o, name, value);
}
