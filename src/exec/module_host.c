/* module_host.c - glia-module-host: runs native modules outside the node.
 *
 *   glia-module-host --run PATH        handle calls with the module in PATH (module_wire.h) on
 *                                      descriptor 3 until the other end is closed
 *   glia-module-host --scan FOLDER...  list the modules in these folders on descriptor 3: one JSON
 *                                      object per line, {"path", "name"} or {"path", "error"}
 *
 * It is stateless: a node may kill it at any time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "exec/module_call.h"
#include "exec/module_load.h"
#include "exec/module_wire.h"
#include "os/harden.h"

enum { SCAN_MS_MAX = 2000, READ_BYTES = 256 << 10 };

static bool write_all(int fd, gl_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes.p += n > 0 ? n : 0;
        bytes.n -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---- calls ---- */

struct host {
    struct gl_module_box box;
    struct gl_buf in, out;
};

static void answer(struct host *h, uint64_t id, gl_str input)
{
    struct gl_why why = {0};
    gl_str document = {0};
    int err = gl_module_call(&h->box, input, &document, &why);
    enum gl_module_frame type = err == 0              ? GL_MODULE_DONE
                                : err == GL_E_INVALID ? GL_MODULE_REFUSED
                                                      : GL_MODULE_FAILED;
    gl_module_frame_add(&h->out, type, id, err == 0 ? document : gl_str_of(why.text));
}

/* Send each answer before handling the next call, so that a crash affects only that call. */
static bool answer_all(struct host *h)
{
    struct gl_module_head head;
    gl_str bytes = gl_buf_view(&h->in), input;
    size_t used = 0;
    while (gl_module_frame_read(bytes, &head, &input, &used) == 0 && used > 0) {
        if (head.type != GL_MODULE_CALL) {
            return false;
        }
        answer(h, head.id, input);
        if (!write_all(GL_MODULE_FD, gl_buf_view(&h->out))) {
            return false;
        }
        gl_buf_reset(&h->out);
        bytes.p += used;
        bytes.n -= used;
    }
    if (bytes.n > 0) {
        memmove(h->in.p, bytes.p, bytes.n);
    }
    h->in.n = bytes.n;
    return true;
}

static int run(const char *path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf hello = {0};
    const struct glia_module *module = NULL;
    struct gl_why why = {0};
    struct host h = {0};
    void *object = NULL;
    int err = gl_module_load(path, &object, &module, &why);
    gl_module_frame_add(&hello, GL_MODULE_READY, 0, err != 0 ? gl_str_of(why.text) : (gl_str){0});
    if (!write_all(GL_MODULE_FD, gl_buf_view(&hello)) || err != 0) {
        return 1;
    }
    gl_module_box_init(&h.box, module);
    for (;;) {
        ssize_t n = read(GL_MODULE_FD, gl_buf_reserve(&h.in, READ_BYTES), READ_BYTES);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        h.in.n += (size_t)n;
        if (!answer_all(&h)) {
            break;
        }
    }
    gl_module_box_done(&h.box);
    gl_buf_done(&h.in);
    gl_buf_done(&h.out);
    gl_module_unload(object);
    return 0;
}

/* ---- scanning ---- */

/* Write one line about a module. Runs in a child, because loading a file runs its code. */
static void describe(const char *path, int fd)
{
    struct gl_buf line = {0};
    const struct glia_module *module = NULL;
    struct gl_why why = {0};
    struct gl_jw w;
    void *object;
    int err = gl_module_load(path, &object, &module, &why);
    gl_jw_init(&w, &line);
    gl_jw_object(&w);
    gl_jw_key(&w, "path");
    gl_jw_c(&w, path);
    gl_jw_key(&w, err == 0 ? "name" : "error");
    gl_jw_c(&w, err == 0 ? module->name : why.text);
    gl_jw_end(&w);
    gl_buf_char(&line, '\n');
    (void)!write_all(fd, gl_buf_view(&line));
    _exit(0);
}

static void write_error(const char *path, const char *error)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf line = {0};
    struct gl_jw w;
    gl_jw_init(&w, &line);
    gl_jw_object(&w);
    gl_jw_key(&w, "path");
    gl_jw_c(&w, path);
    gl_jw_key(&w, "error");
    gl_jw_c(&w, error);
    gl_jw_end(&w);
    gl_buf_char(&line, '\n');
    (void)!write_all(GL_MODULE_FD, gl_buf_view(&line));
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Read the child's output until it exits or the time is up. */
static void read_line(int fd, struct gl_buf *line)
{
    int64_t until = now_ms() + SCAN_MS_MAX, left;
    while ((left = until - now_ms()) > 0 && line->n <= GL_MODULE_FRAME_BYTES_MAX) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)left) <= 0) {
            continue;
        }
        ssize_t n = read(fd, gl_buf_reserve(line, 4096), 4096);
        if (n <= 0) {
            return;
        }
        line->n += (size_t)n;
    }
}

static void describe_in_child(const char *path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf line = {0};
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        write_error(path, strerror(errno));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(GL_MODULE_FD);
        describe(path, ends[1]);
    }
    (void)close(ends[1]);
    if (child > 0) {
        read_line(ends[0], &line);
        (void)kill(child, SIGKILL); /* its output is complete */
        (void)waitpid(child, &status, 0);
    }
    (void)close(ends[0]);
    if (line.n > 0 && line.p[line.n - 1] == '\n') {
        (void)!write_all(GL_MODULE_FD, gl_buf_view(&line));
    } else {
        write_error(path, child < 0 ? "cannot create a process to inspect it"
                          : WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                              ? "it crashed while being loaded"
                          : WIFEXITED(status) ? "it exited while being loaded"
                                              : "loading it took longer than 2 s");
    }
}

static int scan(char **folders)
{
    for (; *folders != NULL; folders++) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        const char **paths = NULL;
        struct gl_why why = {0};
        size_t n = 0;
        if (gl_module_files(*folders, &a, &paths, &n, &why) != 0) {
            write_error(*folders, why.text);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            describe_in_child(paths[i]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit none = {0};
    gl_harden_environment(); /* it is the node's environment */
    gl_harden_memory();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without its node it has no purpose */
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "--run") == 0 && fcntl(GL_MODULE_FD, F_GETFD) >= 0) {
        return run(argv[2]);
    }
    if (argc >= 3 && strcmp(argv[1], "--scan") == 0 && fcntl(GL_MODULE_FD, F_GETFD) >= 0) {
        return scan(argv + 2);
    }
    (void)fprintf(stderr,
                  "glia-module-host runs native modules for a Glia node and is started by it\n");
    return 2;
}
