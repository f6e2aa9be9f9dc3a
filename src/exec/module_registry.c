#include "exec/module_registry.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "exec/module_load.h"
#include "exec/module_spawn.h"

enum {
    SCAN_MS_MAX = 30000,
    TEXT_BYTES_MAX = 4 << 20,
    FOLDERS_MAX = 64,
    PROBLEMS_BYTES_MAX = 600, /* they are part of one message */
};

/* ---- the result of a scan ---- */

static bool is_trusted(const struct gl_module_registry *r, gl_str name)
{
    gl_str rest = r->trusted;
    while (rest.n > 0) {
        size_t n = 0;
        while (n < rest.n && rest.p[n] != ',' && (unsigned char)rest.p[n] > ' ') {
            n++;
        }
        if (gl_str_eq((gl_str){.p = rest.p, .n = n}, name)) {
            return true;
        }
        n += n < rest.n ? 1 : 0;
        rest.p += n;
        rest.n -= n;
    }
    return false;
}

static void add_entry(struct gl_module_registry *r, gl_str name, gl_str path)
{
    if (!gl_str_is_id(name) || gl_map_find(&r->entries, name) != NULL ||
        gl_map_count(&r->entries) >= GL_MODULES_MAX) {
        return;
    }
    struct gl_module_entry *e = gl_mem_alloc(sizeof(*e));
    e->name = gl_str_dup(&r->arena, name);
    e->path = gl_str_c(&r->arena, path);
    e->is_trusted = is_trusted(r, name);
    gl_map_add(&r->entries, e->name, e);
}

static void read_line(struct gl_module_registry *r, gl_str line)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_json j;
    if (gl_json_parse(&j, line, TEXT_BYTES_MAX, &a, NULL) != 0) {
        return;
    }
    gl_str path = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "path"), &a);
    gl_str name = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "name"), &a);
    gl_str error = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "error"), &a);
    if (name.n > 0 && path.n > 0) {
        add_entry(r, name, path);
    } else if (error.n > 0 && path.n > 0 && r->problems.n < PROBLEMS_BYTES_MAX) {
        bool has_path = memmem(error.p, error.n, path.p, path.n) != NULL;
        gl_buf_fmt(&r->problems, "%s%.*s%s%.*s", r->problems.n > 0 ? "; " : ". Rejected: ",
                   GL_STR_ARG(has_path ? (gl_str){0} : path), has_path ? "" : ": ",
                   GL_STR_ARG(error));
    }
}

void gl_module_registry_read(struct gl_module_registry *r, gl_str text)
{
    while (text.n > 0) {
        read_line(r, gl_str_cut(text, '\n', &text));
    }
}

/* ---- scanning ---- */

static void end_scan(struct gl_module_registry *r)
{
    if (r->readable != NULL) {
        event_free(r->readable);
        r->readable = NULL;
    }
    if (r->pid > 0) {
        (void)gl_module_end(r->pid);
        (void)close(r->fd);
        r->pid = 0;
        r->fd = -1;
    }
    (void)evtimer_del(r->timer);
}

/* The host has exited, took too long, or is not installed. */
static void finish(struct gl_module_registry *r)
{
    end_scan(r);
    gl_module_registry_read(r, gl_buf_view(&r->text));
    gl_buf_done(&r->text);
    r->state = GL_REGISTRY_READY;
    r->ready(r->owner);
}

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_registry *r = owner;
    (void)what;
    ssize_t n = recv(fd, gl_buf_reserve(&r->text, 4096), 4096, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    r->text.n += n > 0 ? (size_t)n : 0;
    if (n <= 0 || r->text.n > TEXT_BYTES_MAX) {
        finish(r);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
    struct gl_module_registry *r = owner;
    (void)fd;
    (void)what;
    if (r->pid > 0) {
        (void)gl_why(&r->why, GL_E_UNAVAILABLE,
                     "scanning the module folders took longer than 30 s");
    }
    finish(r);
}

static int spawn_scan(struct gl_module_registry *r)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const char **args = GL_NEW_ARRAY(&a, const char *, r->folders_n + 2);
    args[0] = "--scan";
    for (size_t i = 0; i < r->folders_n; i++) {
        args[i + 1] = r->folders[i];
    }
    int err = gl_module_spawn(r->program, args, &r->pid, &r->fd, &r->why);
    r->pid = err == 0 ? r->pid : 0;
    return err;
}

void gl_module_registry_scan(struct gl_module_registry *r)
{
    struct timeval at_once = {0}, most = {.tv_sec = SCAN_MS_MAX / 1000};
    if (r->state != GL_REGISTRY_NEW) {
        return;
    }
    r->state = GL_REGISTRY_SCANNING;
    if (r->program == NULL || r->folders_n == 0 || spawn_scan(r) != 0) {
        (void)evtimer_add(r->timer, &at_once);
        return;
    }
    r->readable = event_new(gl_loop_base(r->loop), r->fd, EV_READ | EV_PERSIST, on_readable, r);
    GL_ASSERT(r->readable != NULL);
    (void)event_add(r->readable, NULL);
    (void)evtimer_add(r->timer, &most);
}

/* ---- finding ---- */

static int open_trusted(struct gl_module_entry *e, struct gl_why *reterr_why)
{
    const struct glia_module *m = NULL;
    int err = gl_module_load(e->path, &e->object, &m, reterr_why);
    if (err == 0 && !gl_str_is(e->name, m->name)) {
        err = gl_why(reterr_why, GL_E_INVALID,
                     "%s is now named %s; it was %.*s when the node "
                     "scanned it: restart the node",
                     e->path, m->name, GL_STR_ARG(e->name));
        gl_module_unload(e->object);
        e->object = NULL;
    }
    if (err == 0) {
        gl_module_box_init(&e->box, m);
        return 0;
    }
    reterr_why->code = GL_E_INVALID;
    return gl_why_prefix(reterr_why, "module %.*s", GL_STR_ARG(e->name));
}

static int open_link(struct gl_module_registry *r, struct gl_module_entry *e,
                     struct gl_why *reterr_why)
{
    e->link = (struct gl_module_link){
        .loop = r->loop,
        .events = r->events,
        .program = r->program,
        .path = e->path,
        .name = e->name,
    };
    e->has_link = true;
    return gl_module_link_init(&e->link, reterr_why);
}

static int refuse(const struct gl_module_registry *r, gl_str name, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf all = {0};
    const struct gl_module_entry *e;
    if (r->why.code != 0) {
        return gl_why(reterr_why, GL_E_INVALID, "no native module %.*s: %s", GL_STR_ARG(name),
                      r->why.text);
    }
    for (size_t i = 0; (e = gl_map_next(&r->entries, &i)) != NULL && all.n < 400;) {
        gl_buf_fmt(&all, "%s%.*s", all.n > 0 ? ", " : "", GL_STR_ARG(e->name));
    }
    for (size_t i = 0; i < r->folders_n && all.n == 0; i++) {
        gl_buf_fmt(&all, "none (searched %s)", r->folders[i]);
    }
    return gl_why(reterr_why, GL_E_INVALID,
                  "no native module %.*s; available: %.*s. Put its shared object into a "
                  "folder listed in GLIA_MODULES_DIR and restart the node%.*s",
                  GL_STR_ARG(name), GL_STR_ARG(all.n > 0 ? gl_buf_view(&all) : GL_S("none")),
                  GL_STR_ARG(gl_buf_view(&r->problems)));
}

int gl_module_registry_find(struct gl_module_registry *r, gl_str name, struct gl_module_entry **ret,
                            struct gl_why *reterr_why)
{
    GL_ASSERT(r->state == GL_REGISTRY_READY);
    struct gl_module_entry *e = gl_map_find(&r->entries, name);
    if (e == NULL && gl_str_starts(name, GL_S("Elixir."))) {
        e = gl_map_find(&r->entries, (gl_str){.p = name.p + 7, .n = name.n - 7});
    }
    const char *dot = name.n > 0 ? memrchr(name.p, '.', name.n) : NULL;
    if (e == NULL && dot != NULL) {
        e = gl_map_find(&r->entries,
                        (gl_str){.p = dot + 1, .n = name.n - (size_t)(dot + 1 - name.p)});
    }
    if (e == NULL) {
        return refuse(r, name, reterr_why);
    }
    int err = 0;
    if (e->is_trusted && e->object == NULL) {
        err = open_trusted(e, reterr_why);
    } else if (!e->is_trusted && !e->has_link) {
        err = open_link(r, e, reterr_why);
    }
    if (err == 0) {
        *ret = e;
    }
    return err;
}

/* ---- opening ---- */

static void add_folder(struct gl_module_registry *r, gl_str folder)
{
    if (folder.n > 0 && r->folders_n < FOLDERS_MAX) {
        r->folders[r->folders_n++] = gl_str_c(&r->arena, folder);
    }
}

/* The folder of modules shipped with Glia, if it is installed. */
static void add_own_folder(struct gl_module_registry *r)
{
    gl_str program = gl_str_of(r->program);
    const char *slash = program.n > 0 ? memrchr(program.p, '/', program.n) : NULL;
    if (slash != NULL) {
        gl_str folder =
            gl_str_fmt(&r->arena, "%.*s/glia-modules", (int)(slash - program.p), program.p);
        if (access(folder.p, X_OK) == 0) {
            add_folder(r, folder);
        }
    }
}

int gl_module_registry_init(struct gl_module_registry *r, const char *folders, const char *trusted,
                            const char *host_path, struct gl_why *reterr_why)
{
    gl_str rest = gl_str_of(folders);
    r->fd = -1;
    gl_map_init(&r->entries);
    r->trusted = gl_str_dup(&r->arena, gl_str_of(trusted));
    r->folders = GL_NEW_ARRAY(&r->arena, const char *, FOLDERS_MAX);
    if (host_path != NULL) {
        r->program = gl_str_c(&r->arena, gl_str_of(host_path));
    } else if (gl_module_host_find(&r->arena, &r->program, &r->why) != 0) {
        r->program = NULL; /* reported when a module is needed; most nodes use none */
    }
    while (rest.n > 0) {
        add_folder(r, gl_str_cut(rest, ':', &rest));
    }
    add_own_folder(r);
    r->timer = evtimer_new(gl_loop_base(r->loop), on_timer, r);
    return r->timer != NULL ? 0
                            : gl_why(reterr_why, GL_E_IO, "cannot create the events of modules");
}

void gl_module_registry_done(struct gl_module_registry *r)
{
    struct gl_module_entry *e;
    if (r->timer != NULL) {
        end_scan(r);
        event_free(r->timer);
    }
    for (size_t i = 0; (e = gl_map_next(&r->entries, &i)) != NULL;) {
        if (e->object != NULL) {
            gl_module_box_done(&e->box);
            gl_module_unload(e->object);
        }
        if (e->has_link) {
            gl_module_link_done(&e->link);
        }
        gl_mem_free(e);
    }
    gl_map_done(&r->entries);
    gl_buf_done(&r->text);
    gl_buf_done(&r->problems);
    gl_arena_done(&r->arena);
}
