/* values.c - what a program can be given. */
#include "node/node_state.h"

#include "base/limits.h"

/* Values become arguments and variables: a NUL in one would cut it silently, and all together must
 * be what a program can be given. */
int gl_starts_check(const struct gl_exec_start *x, struct gl_why *why)
{
    size_t bytes = x->cwd.n;

    for (size_t i = 0; i < x->argv_n + x->env_n; i++) {
        gl_str v = i < x->argv_n ? x->argv[i] : x->env[i - x->argv_n];

        if (v.n > 0 && memchr(v.p, '\0', v.n) != NULL) {
            return gl_why(why, GL_E_INVALID, "a value contains a NUL byte");
        }
        if (v.n > GL_ARG_BYTES_MAX) {
            return gl_why(why, GL_E_LIMIT,
                          "one of its arguments or variables has %zu bytes, and %d is the limit: "
                          "read large values from the input file",
                          v.n, GL_ARG_BYTES_MAX);
        }
        bytes += v.n + 1;
    }
    if (bytes > GL_COMMAND_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "its arguments and environment have %zu bytes together, and %d is the limit: "
                      "read large values from the input file",
                      bytes, GL_COMMAND_BYTES_MAX);
    }
    return 0;
}
