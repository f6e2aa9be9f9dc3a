#include "node/workers.h"

bool gl_worker_is_private(gl_str name)
{
    return gl_str_starts(name, GL_S("GLIA_")) || gl_str_is(name, "NOTIFY_SOCKET") ||
           gl_str_is(name, "WATCHDOG_PID") || gl_str_is(name, "WATCHDOG_USEC") ||
           gl_str_is(name, "LISTEN_FDS") || gl_str_is(name, "LISTEN_PID") ||
           gl_str_is(name, "LISTEN_FDNAMES");
}

gl_str gl_worker_run_folder(const struct gl_worker_place *p, gl_str run_id, struct gl_arena *a)
{
    return gl_str_fmt(a, "%.*s/%.*s", GL_STR_ARG(p->runs_root), GL_STR_ARG(run_id));
}
