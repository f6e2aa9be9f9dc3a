#include "sim/sim_patches.h"

#include <stdio.h>

enum { STEPS_MAX = 3, NAME_BYTES = 64 };

struct steps {
    uint32_t n;
    bool in_a_row; /* or side by side */
    char names[STEPS_MAX][NAME_BYTES];
};

struct patch_wish {
    gl_str controller, exit; /* exit "": a fan-out */
    struct steps more;
    bool cuts;          /* the edge from the controller to the exit */
    struct steps fewer; /* what it requested last and does not want any more */
    uint32_t from, to;  /* how many of these */
};

static gl_str find_argument(gl_str given)
{
    while (given.n > 0) {
        gl_str line = gl_str_cut(given, '\n', &given), prefix = GL_S(SIM_PATCHES_ARG);
        if (gl_str_starts(line, prefix)) {
            return (gl_str){.p = line.p + prefix.n, .n = line.n - prefix.n};
        }
    }
    return (gl_str){0};
}

static void write_word(struct gl_jw *w, const char *key, gl_str text)
{
    gl_jw_key(w, key);
    gl_jw_str(w, text);
}

static void write_edge(struct gl_jw *w, const char *op, gl_str from, gl_str to)
{
    char id[2 * NAME_BYTES + 2];
    (void)snprintf(id, sizeof(id), "%.*s-%.*s", GL_STR_ARG(from), GL_STR_ARG(to));
    gl_jw_object(w);
    write_word(w, "op", gl_str_of(op));
    write_word(w, "id", gl_str_of(id));
    if (op[0] == 'a') {
        write_word(w, "from", from);
        write_word(w, "to", to);
        gl_jw_key(w, "accepts");
        gl_jw_raw(w, GL_S("[\"done\",\"partial\",\"skipped\"]"));
    }
    gl_jw_end(w);
}

static void write_steps(struct gl_jw *w, const struct patch_wish *x)
{
    for (uint32_t i = 0; i < x->more.n; i++) {
        gl_jw_object(w);
        write_word(w, "op", GL_S("add_step"));
        write_word(w, "id", gl_str_of(x->more.names[i]));
        write_word(w, "template", GL_S("more"));
        gl_jw_key(w, "with");
        gl_jw_raw(w, GL_S("{\"part\":1}"));
        gl_jw_end(w);
    }
    for (uint32_t i = x->from; i < x->to; i++) {
        gl_jw_object(w);
        write_word(w, "op", GL_S("remove_step"));
        write_word(w, "id", gl_str_of(x->fewer.names[i]));
        gl_jw_end(w);
    }
}

/* All edges to these steps, and from the last one to the exit. */
static void write_edges(struct gl_jw *w, const char *op, const struct patch_wish *x,
                        const struct steps *steps, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        gl_str name = gl_str_of(steps->names[i]);
        bool is_first = !steps->in_a_row || i == 0, is_last = !steps->in_a_row || i + 1 == steps->n;
        if (!is_first) {
            write_edge(w, op, gl_str_of(steps->names[i - 1]), name);
        } else if (x->exit.n > 0) {
            write_edge(w, op, x->controller, name);
        }
        if (is_last && x->exit.n > 0) {
            write_edge(w, op, name, x->exit);
        }
    }
}

/* "<id>/<number><r|s>": r for in a row; false: it has another form. */
static bool read_steps(gl_str text, struct steps *ret)
{
    gl_str how, id = gl_str_cut(text, '/', &how);
    if (how.n != 2 || how.p[0] < '1' || how.p[0] > '0' + STEPS_MAX || id.n > NAME_BYTES / 2) {
        return false;
    }
    ret->n = (uint32_t)(how.p[0] - '0');
    ret->in_a_row = how.p[1] == 'r';
    for (uint32_t i = 0; i < ret->n; i++) {
        (void)snprintf(ret->names[i], NAME_BYTES, "x%.*s.%u", GL_STR_ARG(id), i);
    }
    return true;
}

/* It withdraws its last request: all of it, or one step of those side by side; perhaps without a
 * replacement. */
static void draw_fewer(struct gl_rng *r, gl_str before, struct patch_wish *x)
{
    if (!read_steps(before, &x->fewer) || !gl_rng_chance(r, 400000)) {
        return;
    }
    x->to = x->fewer.n;
    if (!x->fewer.in_a_row && gl_rng_chance(r, 500000)) {
        x->from = (uint32_t)gl_rng_below(r, x->fewer.n);
        x->to = x->from + 1;
    }
    if (gl_rng_chance(r, 300000)) {
        x->more.n = 0;
        x->cuts = false;
    }
}

bool sim_patches_write(struct gl_jw *w, struct gl_rng *r, gl_str given, const struct gl_message *m,
                       uint64_t number, gl_str before, char ret_grown[static SIM_PATCHES_GROWN])
{
    struct gl_arena a = {0};
    struct gl_message_ledger ledger = {0};
    struct patch_wish x = {0};
    char id[NAME_BYTES / 2];
    gl_message_ledger_of(m->headers, &a, &ledger);
    x.controller = gl_str_cut(find_argument(given), ':', &x.exit);
    if (x.controller.n == 0 || !gl_str_eq(ledger.step_id, x.controller) ||
        gl_rng_chance(r, 300000)) {
        gl_arena_done(&a);
        return false;
    }
    bool is_old = gl_rng_chance(r, 100000);
    /* Without the attempt in its name it is repeated when the message is given again. */
    (void)snprintf(id, sizeof(id), gl_rng_chance(r, 200000) ? "p%llu" : "p%llu.%u",
                   (unsigned long long)number, ledger.attempt);
    (void)snprintf(ret_grown, SIM_PATCHES_GROWN, "%s/%u%c", id + 1,
                   1 + (unsigned)gl_rng_below(r, STEPS_MAX), gl_rng_chance(r, 500000) ? 'r' : 's');
    (void)read_steps(gl_str_of(ret_grown), &x.more); /* just built */
    x.cuts = x.exit.n > 0 && ledger.graph_revision == 0 && gl_rng_chance(r, 500000);
    draw_fewer(r, before, &x);
    if (x.more.n == 0) {
        ret_grown[0] = '\0';
    }
    gl_jw_object(w);
    write_word(w, "patch_id", gl_str_of(id));
    write_word(w, "region_id", GL_S("r"));
    gl_jw_key(w, "base_revision");
    gl_jw_u64(w, is_old ? ledger.graph_revision + 7 : ledger.graph_revision);
    gl_jw_key(w, "operations");
    gl_jw_array(w);
    write_steps(w, &x);
    write_edges(w, "add_edge", &x, &x.more, 0, x.more.n);
    write_edges(w, "remove_edge", &x, &x.fewer, x.from, x.to);
    if (x.cuts) {
        write_edge(w, "remove_edge", x.controller, x.exit);
    }
    gl_jw_end(w);
    gl_jw_end(w);
    gl_arena_done(&a);
    return true;
}
