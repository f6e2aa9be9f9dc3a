/* module_registry.h - the modules of a node, by name.
 *
 * The folders are scanned once, when the first module is needed, by glia-module-host: what a file
 * contains is known only after loading it, which runs its code. Of two modules with the same name
 * the first counts: folders in their order, files by name. Private to this folder.
 *
 * Call order: gl_module_registry_init(), gl_module_registry_scan(); after `ready`,
 * gl_module_registry_find(); gl_module_registry_done(). */
#ifndef GL_EXEC_MODULE_REGISTRY_H
#define GL_EXEC_MODULE_REGISTRY_H

#include <sys/types.h>

#include "base/list.h"
#include "exec/module_call.h"
#include "exec/module_link.h"

struct event;

struct gl_module_entry {
    gl_str name;
    const char *path;
    bool is_trusted;
    void *object; /* of a trusted module, once loaded */
    struct gl_module_box box;
    bool has_link;
    struct gl_module_link link; /* of an untrusted module, if has_link */
};

struct gl_module_registry {
    struct gl_loop *loop;
    struct gl_module_link_events events; /* for the links */
    void (*ready)(void *owner);          /* once, after gl_module_registry_scan() */
    void *owner;

    struct gl_arena arena;
    const char *program; /* NULL: glia-module-host was not found, see `why` */
    struct gl_why why;   /* why no module can be used; code 0: no error */
    const char **folders;
    size_t folders_n;
    gl_str trusted; /* names, separated by commas or white space */
    enum { GL_REGISTRY_NEW, GL_REGISTRY_SCANNING, GL_REGISTRY_READY } state;
    pid_t pid;
    int fd;
    struct event *readable, *timer;
    struct gl_buf text;
    struct gl_map entries;  /* struct gl_module_entry */
    struct gl_buf problems; /* messages about files that are not valid modules */
};

/* `r` must be all zero except for loop, events, ready and owner. `folders`: absolute paths,
 * separated by ':'; the folder of modules shipped with Glia is scanned after them. */
int gl_module_registry_init(struct gl_module_registry *r, const char *folders, const char *trusted,
                            const char *host_path, struct gl_why *reterr_why);
void gl_module_registry_done(struct gl_module_registry *r);

/* Start the scan, if it was not started yet. */
void gl_module_registry_scan(struct gl_module_registry *r);

/* Find the module with that name, also without a leading "Elixir.", or by the part after the last
 * '.'. A trusted one is loaded then, any other has its link. GL_E_INVALID: there is none; the
 * message lists those available. The state must be READY. */
int gl_module_registry_find(struct gl_module_registry *r, gl_str name, struct gl_module_entry **ret,
                            struct gl_why *reterr_why);

/* Read the output of the host's scan: one line per file. Exported for tests. */
void gl_module_registry_read(struct gl_module_registry *r, gl_str text);

#endif
