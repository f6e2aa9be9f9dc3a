/* values.c - checks the arguments and variables of a program against the system's limits. */
#include "node/node_state.h"

#include "base/limits.h"

/* Values of references become arguments and variables. A NUL byte would silently truncate one, and
 * the system limits the size of each and of all together. */
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
                          "an argument or variable is %zu bytes, over the limit of %d; read large "
                          "values from the input file",
                          v.n, GL_ARG_BYTES_MAX);
        }
        bytes += v.n + 1;
    }
    if (bytes > GL_COMMAND_BYTES_MAX) {
        return gl_why(why, GL_E_LIMIT,
                      "arguments and environment total %zu bytes, over the limit of %d; read large "
                      "values from the input file",
                      bytes, GL_COMMAND_BYTES_MAX);
    }
    return 0;
}
