/* A module with state: it counts the messages that its agent gets, by type, and sends the counts
 * after each one. With {"limit": 3} in its configuration it completes its step
 * with the third message.
 *
 *     cc -shared -fPIC -I/usr/local/include -o counter.so counter.c
 *
 * The agent's state is {"total": 3, "types": {"ping": 2, "pong": 1}}. Reading that for each message
 * would also be simple; this module keeps it in memory instead, so it has snapshot() and
 * restore(). */
#include <glia/module_json.h>

enum { TYPES_MAX = 32, TYPE_BYTES_MAX = 64 };

struct counter {
    long long limit; /* 0: none */
    long long total;
    size_t types_n;
    struct {
        char name[TYPE_BYTES_MAX];
        long long n;
    } types[TYPES_MAX];
};

static int init(struct glia_text config, void **ret_instance, struct glia_error *error)
{
    double limit = glia_json_number(glia_json_get(config, "limit"), 0);
    struct counter *c;

    if (limit < 0 || limit > 1e9) {
        (void)snprintf(error->text, sizeof(error->text), "config.limit must be between 0 and 1e9");
        return -1;
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        (void)snprintf(error->text, sizeof(error->text), "no memory");
        return -1;
    }
    c->limit = (long long)limit;
    *ret_instance = c;
    return 0;
}

static void destroy(void *instance)
{
    free(instance);
}

/* Returns 0, or -1 if there are too many types or the type is too long. */
static int add(struct counter *c, struct glia_text type, long long n)
{
    size_t i = 0;

    while (i < c->types_n && !glia_text_is(type, c->types[i].name)) {
        i++;
    }
    if (i == c->types_n) {
        if (i == TYPES_MAX || type.length >= TYPE_BYTES_MAX) {
            return -1;
        }
        memcpy(c->types[i].name, type.bytes, type.length);
        c->types[i].name[type.length] = 0;
        c->types[i].n = 0;
        c->types_n++;
    }
    c->types[i].n += n;
    c->total += n;
    return 0;
}

static void write_state(const struct counter *c, struct glia_writer *w)
{
    glia_write_c(w, "{\"total\":");
    glia_write_int(w, c->total);
    glia_write_c(w, ",\"types\":{");
    for (size_t i = 0; i < c->types_n; i++) {
        glia_write_c(w, i > 0 ? "," : "");
        glia_write_string(w, glia_text(c->types[i].name));
        glia_write_c(w, ":");
        glia_write_int(w, c->types[i].n);
    }
    glia_write_c(w, "}}");
}

static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    struct counter *c = instance;
    struct glia_writer w = {0};

    (void)state; /* the instance has it */
    if (add(c, m->type, 1) != 0) {
        return out->fail(out, glia_text("too many message types, or the type is too long"));
    }
    write_state(c, &w);
    out->emit(out, glia_text("counted"), glia_written(&w));
    if (c->limit > 0 && c->total == c->limit) {
        out->event(out, glia_text("limit_reached"), glia_written(&w));
        out->complete_step(out, glia_written(&w));
    }
    glia_writer_done(&w);
    return 0;
}

static int snapshot(void *instance, struct glia_out *out)
{
    struct glia_writer w = {0};
    int r;

    write_state(instance, &w);
    r = out->set_state(out, glia_written(&w));
    glia_writer_done(&w);
    return r;
}

static int restore(void *instance, struct glia_text state, struct glia_error *error)
{
    struct counter *c = instance;
    struct glia_text types = glia_json_get(state, "types");
    struct glia_text name = glia_json_first(types);

    c->total = 0;
    c->types_n = 0;
    while (name.length > 0) {
        struct glia_text n = glia_json_next(types, name);

        if (add(c, glia_json_string(name, ""), (long long)glia_json_number(n, 0)) != 0) {
            (void)snprintf(error->text, sizeof(error->text),
                           "this state belongs to another module");
            return -1;
        }
        name = glia_json_next(types, n);
    }
    return 0;
}

GLIA_EXPORT const struct glia_module glia_module = {
    GLIA_MODULE_HEAD,     .name = "example.counter", .init = init,       .handle = handle,
    .snapshot = snapshot, .restore = restore,        .destroy = destroy,
};
