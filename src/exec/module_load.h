/* module_load.h - finds and loads shared objects with native modules.
 *
 * Loading one runs its code, so a node loads only modules it was told to trust. The others are
 * inspected by glia-module-host, each in a process of its own.
 *
 * Call order: gl_module_files(); then for each file gl_module_load(), gl_module_unload(). */
#ifndef GL_EXEC_MODULE_LOAD_H
#define GL_EXEC_MODULE_LOAD_H

#include <glia/module.h>

#include "base/err.h"
#include "base/str.h"

/* May code be loaded from this file? It and its folder must belong to us or root and be writable by
 * nobody else. GL_E_DENIED: the message says what is wrong and what to do. */
int gl_module_check_file(const char *path, struct gl_why *reterr_why);

/* Check the file, load it, and check what it exports. The object stays loaded until
 * gl_module_unload(). */
int gl_module_load(const char *path, void **ret_object, const struct glia_module **ret,
                   struct gl_why *reterr_why);
void gl_module_unload(void *object);

/* The absolute paths of all *.so in a folder, sorted, in `a`. GL_E_LIMIT: too many. */
int gl_module_files(const char *folder, struct gl_arena *a, const char ***ret, size_t *ret_n,
                    struct gl_why *reterr_why);

/* Find glia-module-host: next to our own program, then in ../libexec/glia and ../libexec. */
int gl_module_host_find(struct gl_arena *a, const char **ret, struct gl_why *reterr_why);

#endif
