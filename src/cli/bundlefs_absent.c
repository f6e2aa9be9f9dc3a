/* bundlefs_absent.c - stands in for model/manifest.c until that is there. */
#include "model/manifest.h"

__attribute__((weak)) bool gl_manifest_is(const struct gl_json *j, gl_jnode root)
{
    return gl_json_get(j, root, "apiVersion") != NULL;
}

__attribute__((weak)) int gl_manifest_parse(const struct gl_json *j, gl_jnode root,
                                            const struct gl_manifest_given *given,
                                            struct gl_arena *a, struct gl_flow **ret,
                                            struct gl_flow_errors *reterr)
{
    (void)j, (void)root, (void)given, (void)a, (void)ret;
    reterr->items[0] = (struct gl_flow_error){.text = GL_S("bundles cannot be run yet")};
    reterr->n = reterr->total = 1;
    return GL_E_INVALID;
}

__attribute__((weak)) int gl_manifest_config(gl_str under, gl_str over, const struct gl_strs *sets,
                                             struct gl_arena *a, gl_str *ret,
                                             struct gl_why *reterr_why)
{
    (void)over, (void)sets, (void)a, (void)reterr_why;
    *ret = under;
    return 0;
}

__attribute__((weak)) int gl_manifest_overlay(const struct gl_strs *sets, struct gl_arena *a,
                                              gl_str *ret, struct gl_why *reterr_why)
{
    (void)sets, (void)a, (void)ret, (void)reterr_why;
    return 0;
}
