/* bench.pingpong - two agents and a ball, to measure message throughput.
 *
 * A message's body is {"left": N}. While N is above 0, the next message, with N - 1, goes to the
 * agent that config.peer names, or back to the sender without it. The message with 0 completes the
 * step and, with config.complete_run, the run. The state is the number of messages an agent has
 * received, unless config.stateless is true. With config.scatter N, the first message turns the
 * step "work" into N instances instead, and completes the step. */
#include <glia/module_json.h>

struct player {
    char peer[160];
    int is_stateless, completes_run;
    long long scatter;
};

static int init(struct glia_text config, void **ret_instance, struct glia_error *error)
{
    struct glia_text peer = glia_json_string(glia_json_get(config, "peer"), "");
    struct player *p = calloc(1, sizeof(*p));

    if (p == NULL || peer.length >= sizeof(p->peer)) {
        (void)snprintf(error->text, sizeof(error->text), "config.peer is too long");
        free(p);
        return -1;
    }
    memcpy(p->peer, peer.bytes, peer.length);
    p->is_stateless = glia_text_is(glia_json_get(config, "stateless"), "true");
    p->completes_run = glia_text_is(glia_json_get(config, "complete_run"), "true");
    p->scatter = (long long)glia_json_number(glia_json_get(config, "scatter"), 0);
    *ret_instance = p;
    return 0;
}

static void destroy(void *instance)
{
    free(instance);
}

static int scatter(long long n, struct glia_out *out)
{
    size_t cap = 100 + (size_t)n * 8, at = 0;
    char *text = malloc(cap);
    int rc = -1;

    if (text != NULL) {
        at += (size_t)snprintf(text + at, cap - at,
                               "{\"target\":\"work\",\"max_items\":%lld,\"items\":[", n);
        for (long long i = 0; i < n; i++) {
            at += (size_t)snprintf(text + at, cap - at, "%s%lld", i > 0 ? "," : "", i);
        }
        at += (size_t)snprintf(text + at, cap - at, "]}");
        rc = out->event(out, glia_text("workflow_step_scatter"), glia_text_n(text, at));
        free(text);
    }
    return rc == 0 ? out->complete_step(out, glia_text("{\"done\":true}")) : rc;
}

static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    const struct player *p = instance;
    long long left = (long long)glia_json_number(glia_json_get(m->body, "left"), 0);
    char text[64];
    int n;

    if (!p->is_stateless) {
        n = snprintf(text, sizeof(text), "%lld", (long long)glia_json_number(state, 0) + 1);
        out->set_state(out, glia_text_n(text, (size_t)n));
    }
    if (p->scatter > 0) {
        return scatter(p->scatter, out);
    }
    if (left > 0) {
        n = snprintf(text, sizeof(text), "{\"left\":%lld}", left - 1);
        return out->emit_to(out, p->peer[0] != 0 ? glia_text(p->peer) : m->from, glia_text("ball"),
                            glia_text_n(text, (size_t)n));
    }
    if (p->completes_run) {
        return out->complete_run(out, glia_text("{\"done\":true}"));
    }
    return out->complete_step(out, glia_text("{\"done\":true}"));
}

GLIA_EXPORT const struct glia_module glia_module = {
    GLIA_MODULE_HEAD, .name = "bench.pingpong", .init = init, .handle = handle, .destroy = destroy,
};
