#include "support/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"

void test_folder_make(struct test_folder *f)
{
    const char *parent = getenv("TMPDIR");
    int n = snprintf(f->path, sizeof(f->path), "%s/glia-test-XXXXXX", parent ? parent : "/tmp");
    GL_ASSERT(n > 0 && (size_t)n < sizeof(f->path));
    GL_ASSERT(mkdtemp(f->path) != NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void test_folder_remove(struct test_folder *f)
{
    GL_ASSERT(nftw(f->path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}
