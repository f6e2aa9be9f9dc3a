/* logfs.h - the logs port over files: contexts/CTX/runs/JOB/STEP:attempt:N/log.
 *
 * May be used by several threads at once. */
#ifndef GL_OS_LOGFS_H
#define GL_OS_LOGFS_H

#include "port/logs.h"

struct gl_logfs {
    struct gl_logs logs; /* what callers of the port get */
    const char *data;    /* the data folder, borrowed */
};

void gl_logfs_init(struct gl_logfs *l, const char *data);

#endif
