/* A module whose name has no dot, and that does nothing. */
#include <glia/module.h>

static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    (void)instance;
    (void)m;
    (void)state;
    (void)out;
    return 0;
}

GLIA_EXPORT const struct glia_module glia_module = {
    GLIA_MODULE_HEAD,
    .name = "Plain",
    .handle = handle,
};
