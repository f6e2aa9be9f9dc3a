#include "support/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

/* Of longer texts only the beginning stands before the sentence. */
#define CODE_MAX 200

static struct gl_buf said;

static const char *hidden = "";

void golden_hide(const char *folder)
{
    hidden = folder;
}

void golden_say(const char *code, gl_str sentence)
{
    size_t n = strlen(hidden);

    for (const char *p = code; *p != '\0' && p < code + CODE_MAX; p++) {
        bool plain = *p >= ' ' && *p <= '~';

        gl_buf_fmt(&said, plain ? "%c" : "\\x%02x", (unsigned char)*p);
    }
    gl_buf_c(&said, ": ");
    for (size_t i = 0; i < sentence.n; i++) {
        if (n > 0 && sentence.n - i >= n && memcmp(sentence.p + i, hidden, n) == 0) {
            i += n - 1;
        } else {
            gl_buf_char(&said, sentence.p[i]);
        }
    }
    gl_buf_char(&said, '\n');
}

static void read_file(const char *path, struct gl_buf *out)
{
    FILE *file = fopen(path, "r");
    char part[4096];
    size_t n;

    assert_non_null(file);
    while ((n = fread(part, 1, sizeof(part), file)) > 0) {
        gl_buf_str(out, (gl_str){.p = part, .n = n});
    }
    (void)fclose(file);
}

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(said.p, 1, said.n, file), said.n);
    assert_int_equal(fclose(file), 0);
}

void golden_check(const char *path)
{
    const char *wish = getenv("GLIA_GOLDEN");
    struct gl_buf wanted = {0};
    gl_str is, shall;

    if (wish != NULL && strcmp(wish, "write") == 0) {
        write_file(path);
    }
    read_file(path, &wanted);
    is = gl_buf_view(&said);
    shall = gl_buf_view(&wanted);
    while (is.n > 0 || shall.n > 0) {
        gl_str got = gl_str_cut(is, '\n', &is), want = gl_str_cut(shall, '\n', &shall);

        if (!gl_str_eq(got, want)) {
            fail_msg("%s has '%.*s', not '%.*s'", path, GL_STR_ARG(want), GL_STR_ARG(got));
        }
    }
    gl_buf_done(&wanted);
    gl_buf_done(&said);
}
