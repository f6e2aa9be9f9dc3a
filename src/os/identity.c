#include "os/identity.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "os/fs.h"
#include "os/paths.h"

/* The machine's name, converted to a valid name. */
static void machine_name(char ret[static 64])
{
    char host[64] = "";
    (void)gethostname(host, sizeof(host) - 1); /* Without one the node is just "node". */
    size_t n = 0;
    for (const char *p = host; *p != '\0'; p++) {
        char c = gl_str_is_id((gl_str){.p = (char[]){'a', *p}, .n = 2}) ? *p : '-';
        if (n > 0 || (c != '-' && c != '.')) {
            ret[n++] = c;
        }
    }
    ret[n] = '\0';
    if (n == 0) {
        memcpy(ret, "node", 5);
    }
}

static void make(struct gl_entropy *entropy, struct gl_identity *ret)
{
    struct timespec now;
    uint8_t chance[10];
    entropy->fill(entropy, chance, sizeof(chance));
    (void)clock_gettime(CLOCK_REALTIME, &now);
    machine_name(ret->name);
    gl_id_make(&ret->id, (gl_ms)now.tv_sec * 1000, chance);
}

/* Two lines: "name=..." and "id=...". Other lines are reserved for later releases. */
static bool parse(gl_str text, struct gl_identity *ret)
{
    while (text.n > 0) {
        gl_str value;
        gl_str key = gl_str_cut(gl_str_trim(gl_str_cut(text, '\n', &text)), '=', &value);
        if (gl_str_is(key, "name") && gl_str_is_id(value) && value.n < sizeof(ret->name)) {
            memcpy(ret->name, value.p, value.n);
            ret->name[value.n] = '\0';
        }
        if (gl_str_is(key, "id") && gl_id_valid(value)) {
            memcpy(ret->id.text, value.p, value.n);
            ret->id.text[value.n] = '\0';
        }
    }
    return ret->name[0] != '\0' && ret->id.text[0] != '\0';
}

int gl_identity_load(const char *data, struct gl_entropy *entropy, struct gl_identity *ret,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct gl_identity found = {.name = ""};
    const char *path = gl_paths_in(&a, data, GL_PATHS_NODE);
    int err = gl_fs_read(path, 4096, &text, reterr_why);
    if (err == GL_E_NOT_FOUND) {
        make(entropy, &found);
        gl_buf_fmt(&text, "name=%s\nid=%s\n", found.name, found.id.text);
        err = gl_fs_write(path, gl_buf_view(&text), reterr_why);
    } else if (err == 0 && !parse(gl_buf_view(&text), &found)) {
        err = gl_why(reterr_why, GL_E_DAMAGED,
                     "%s has no name and id; remove it to get a new identity", path);
    }
    if (err < 0) {
        return err;
    }
    *ret = found;
    return 0;
}

static void make_token(struct gl_entropy *entropy, char ret[static GL_TOKEN_BYTES])
{
    uint8_t chance[32];
    entropy->fill(entropy, chance, sizeof(chance));
    for (size_t i = 0; i < sizeof(chance); i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", chance[i]);
    }
}

static bool is_token(gl_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (strchr("0123456789abcdef", s.p[i]) == NULL || s.p[i] == '\0') {
            return false;
        }
    }
    return s.n == GL_TOKEN_BYTES - 1;
}

int gl_identity_token(const char *data, struct gl_entropy *entropy, char ret[static GL_TOKEN_BYTES],
                      struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    const char *path = gl_paths_in(&a, data, GL_PATHS_TOKEN);
    int err = gl_fs_read(path, 4096, &text, reterr_why);
    if (err == GL_E_NOT_FOUND) {
        char made[GL_TOKEN_BYTES];
        make_token(entropy, made);
        gl_buf_fmt(&text, "%s\n", made);
        err = gl_fs_write(path, gl_buf_view(&text), reterr_why);
    }
    if (err < 0) {
        return err;
    }
    gl_str token = gl_str_trim(gl_buf_view(&text));
    if (!is_token(token)) {
        return gl_why(reterr_why, GL_E_DAMAGED, "%s has no token; remove it to get a new one",
                      path);
    }
    memcpy(ret, token.p, token.n);
    ret[token.n] = '\0';
    return 0;
}
