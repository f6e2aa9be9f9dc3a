/* module_registry.h - the modules of a node, by name.
 *
 * The folders are looked through once, when the first module is wanted, by glia-module-host: what a
 * file has in it is known only when it has been opened, and opening it runs code of it. Of two
 * modules with one name the first counts: folders in their order, files by their names. Private to
 * this folder. */
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
    void *object; /* of a trusted one that has been opened */
    struct gl_module_box box;
    bool has_link;
    struct gl_module_link link; /* of the others */
};

struct gl_module_registry {
    struct gl_loop *loop;
    struct gl_module_link_events events; /* for links */
    void (*ready)(void *owner);          /* once, after gl_module_registry_scan() */
    void *owner;

    struct gl_arena arena;
    const char *program; /* NULL: there is no glia-module-host, `why` says so */
    struct gl_why why;   /* why there is no module at all; code 0: there may be some */
    const char **folders;
    size_t folders_n;
    gl_str trusted; /* names, separated by commas or white space */
    enum { GL_REGISTRY_NEW, GL_REGISTRY_SCANNING, GL_REGISTRY_READY } state;
    pid_t pid;
    int fd;
    struct event *readable, *timer;
    struct gl_buf text;
    struct gl_map entries;  /* struct gl_module_entry */
    struct gl_buf problems; /* about files that are no modules, for people */
};

/* `r` is all zero but for loop, events, ready and owner. `folders`: absolute paths, separated by
 * ':'; the folder of modules that come with Glia is looked into after them. */
int gl_module_registry_init(struct gl_module_registry *r, const char *folders, const char *trusted,
                            const char *host_path, struct gl_why *reterr_why);
void gl_module_registry_done(struct gl_module_registry *r);

/* Begin to look, if nobody has yet. */
void gl_module_registry_scan(struct gl_module_registry *r);

/* The module of that name, with or without "Elixir." before it; or of its last part, behind the
 * last '.'. A trusted one is open then, another has its link. GL_E_INVALID: there is none, and
 * which there are. It must be READY. */
int gl_module_registry_find(struct gl_module_registry *r, gl_str name, struct gl_module_entry **ret,
                            struct gl_why *reterr_why);

/* What the host says of the folders: a line for each file. Apart for tests. */
void gl_module_registry_read(struct gl_module_registry *r, gl_str text);

#endif
