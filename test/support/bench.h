/* bench.h - what a test of files needs: a private folder, memory, and a place for a sentence. */
#ifndef GL_TEST_SUPPORT_BENCH_H
#define GL_TEST_SUPPORT_BENCH_H

#include "support/cmocka_all.h"

#include <string.h>
#include <sys/stat.h>

#include "os/fs.h"
#include "os/paths.h"
#include "support/folder.h"

struct bench {
    struct test_folder folder;
    struct gl_arena a;
    struct gl_why why;
};

static inline int set_up(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static inline int tear_down(void **state)
{
    struct bench *b = *state;
    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    return 0;
}

/* A test of this folder. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* The path of something in the folder. */
static inline const char *in(struct bench *b, const char *name)
{
    return gl_paths_in(&b->a, b->folder.path, name);
}

static inline bool is_there(struct bench *b, const char *name)
{
    struct stat st;
    return lstat(in(b, name), &st) == 0;
}

static inline unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* Writes a file, and the folders it is in. */
static inline void write_file(struct bench *b, const char *name, const char *text)
{
    const char *path = in(b, name);
    gl_str folder = {.p = path, .n = (size_t)(strrchr(path, '/') - path)};

    assert_int_equal(gl_fs_mkdirs(gl_str_c(&b->a, folder), &b->why), 0);
    assert_int_equal(gl_fs_write(path, gl_str_of(text), &b->why), 0);
}

#endif
