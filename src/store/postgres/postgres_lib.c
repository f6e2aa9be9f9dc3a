/* postgres_lib.c - loads libpq with dlopen(). */
#include "store/postgres/postgres_lib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"

/* Copies the address through a void *, as POSIX recommends. */
static bool find(void *handle, const char *name, void *ret_function)
{
    void *address = dlsym(handle, name);
    memcpy(ret_function, &address, sizeof(address));
    return address != NULL;
}

int gl_postgres_lib_load(struct gl_postgres_lib *ret, struct gl_why *reterr_why)
{
    /* RTLD_NODELETE: OpenSSL, which libpq loads, does not survive being unloaded. */
    struct gl_postgres_lib lib = {.handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_NODELETE)};
    if (lib.handle == NULL) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "a store on PostgreSQL needs the library libpq.so.5, which cannot be loaded "
                      "(%s): install it (Debian: apt-get install libpq5)",
                      dlerror());
    }
    const char *missing = NULL;
#define X(name)                                \
    if (!find(lib.handle, #name, &lib.name)) { \
        missing = #name;                       \
    }
    GL_POSTGRES_FUNCTIONS(X)
#undef X
    if (missing != NULL) {
        (void)dlclose(lib.handle);
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "libpq.so.5 has no function %s: libpq of PostgreSQL 14 or later is required",
                      missing);
    }
    *ret = lib;
    return 0;
}

void gl_postgres_lib_free(struct gl_postgres_lib *lib)
{
    if (lib->handle != NULL) {
        (void)dlclose(lib->handle);
    }
}
