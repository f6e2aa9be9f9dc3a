/* folder.h - a private folder for one test, removed with everything in it at the end. */
#ifndef GL_TEST_FOLDER_H
#define GL_TEST_FOLDER_H

struct test_folder {
    char path[256];
};

/* In $TMPDIR, else /tmp. */
void test_folder_make(struct test_folder *f);
void test_folder_remove(struct test_folder *f);

#endif
