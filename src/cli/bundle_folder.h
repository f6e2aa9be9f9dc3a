/* bundle_folder.h - reads the folder of a bundle: its configuration and its payloads.
 *
 *     manifest.json             the manifest (model/bundle/manifest.h)
 *     payloads/                 files for its workers
 *     config/default.json       its configuration, ...
 *     config/overwrite.json     ... and an overlay
 *     scenario.json             passed to the workers unchanged
 *
 * Links that stay inside the folder are followed. Links that leave it are refused, and so is
 * anything that is neither a file nor a folder. Files are hashed when they are listed and read
 * again when they are sent; the receiver refuses a file that changed in between. */
#ifndef GL_CLI_BUNDLE_FOLDER_H
#define GL_CLI_BUNDLE_FOLDER_H

#include "base/err.h"
#include "model/bundle/manifest.h"

struct gl_bundle_folder {
    const char *root; /* the folder that has payloads/; "" : of the file's own folder */
    bool has_payloads;
    struct gl_manifest_given given; /* everything but `hash` */
    struct gl_strs problems;        /* errors in its files, each with its path */
    const enum gl_reason *reasons;  /* one for each problem */
};

/* Read everything but the manifest. `sets` are "a.b=value" (--set). Everything lives in `a`. On
 * errors `problems` lists all of them, and the result is GL_E_INVALID. */
int gl_bundle_folder_read(struct gl_bundle_folder *b, const char *root, const struct gl_strs *sets,
                          struct gl_arena *a);

/* Append the content of a payload. */
int gl_bundle_folder_read_payload(const struct gl_bundle_folder *b, const struct gl_payload *p,
                                  struct gl_buf *out, struct gl_why *reterr_why);

/* GL_E_INVALID if `path`, in the folder `root`, is a link that leads out of it. */
int gl_bundle_folder_check_link(const char *root, const char *path, struct gl_why *reterr_why);

/* Write `payloads` and the merged layers as members of the object that is open in `w`. */
void gl_bundle_folder_write(const struct gl_bundle_folder *b, struct gl_jw *w);

#endif
