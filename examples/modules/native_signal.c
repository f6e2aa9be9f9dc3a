/* MnBlueprints.NativeSignalAgent, which bundles include as Elixir source: it sorts
 * signals into "alert" (60 and above) and "normal", and sends the result.
 *
 * The signals come from the message, else from the configuration, else they are 12, 71 and 38. */
#include <glia/module_json.h>

enum { ALERT_MIN = 60 };

static struct glia_text member(const struct glia_message *m, struct glia_text config,
                               const char *key)
{
    struct glia_text value = glia_json_get(m->body, key);

    return value.length > 0 ? value : glia_json_get(config, key);
}

/* An instance is only its configuration. */
struct agent {
    struct glia_writer config;
};

static int init(struct glia_text config, void **ret_instance, struct glia_error *error)
{
    struct agent *a = calloc(1, sizeof(*a));

    if (a == NULL) {
        (void)snprintf(error->text, sizeof(error->text), "no memory");
        return -1;
    }
    glia_write(&a->config, config);
    *ret_instance = a;
    return 0;
}

static void destroy(void *instance)
{
    struct agent *a = instance;

    glia_writer_done(&a->config);
    free(a);
}

static int write_signals(struct glia_writer *w, struct glia_text signals)
{
    const char *comma = "";

    glia_write_c(w, "{\"runner\":\"beam_native\",\"signals\":");
    glia_write(w, signals);
    glia_write_c(w, ",\"classes\":[");
    for (struct glia_text e = glia_json_first(signals); e.length > 0;
         e = glia_json_next(signals, e)) {
        if (strchr("-0123456789", e.bytes[0]) == NULL) {
            return -1;
        }
        glia_write_c(w, comma);
        glia_write_c(w, glia_json_number(e, 0) >= ALERT_MIN ? "\"alert\"" : "\"normal\"");
        comma = ",";
    }
    glia_write_c(w, "],\"mode\":");
    return 0;
}

static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    struct agent *a = instance;
    struct glia_text config = glia_written(&a->config);
    struct glia_text signals = member(m, config, "signals"), mode = member(m, config, "mode");
    struct glia_text type = glia_json_string(glia_json_get(config, "emit_type"), "");
    struct glia_writer w = {0};

    (void)state;
    signals = signals.length > 0 && signals.bytes[0] == '[' ? signals : glia_text("[12,71,38]");
    if (write_signals(&w, signals) != 0) {
        glia_writer_done(&w);
        return out->fail(out, glia_text("signals must be a list of numbers"));
    }
    glia_write(&w, mode.length > 0 ? mode : glia_text("\"native\""));
    glia_write_c(&w, "}");
    out->event(out, glia_text("native_signal_classified"), glia_written(&w));
    out->complete_step(out, glia_written(&w));
    if (type.length > 0) {
        out->emit(out, type, glia_written(&w));
    }
    glia_writer_done(&w);
    return 0;
}

GLIA_EXPORT const struct glia_module glia_module = {
    GLIA_MODULE_HEAD,   .name = "MnBlueprints.NativeSignalAgent", .init = init, .handle = handle,
    .destroy = destroy,
};
