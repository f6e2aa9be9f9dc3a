#include "os/harden.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

/* A list of strings in one block: the pointers, then the texts. */
static char **copy_strings(char *const *from)
{
    size_t n = 0, bytes = 0;
    for (; from[n] != NULL; n++) {
        bytes += strlen(from[n]) + 1;
    }
    char **copy = gl_mem_alloc((n + 1) * sizeof(*copy) + bytes);
    char *at = (char *)(copy + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(from[i]) + 1;
        copy[i] = memcpy(at, from[i], size);
        at += size;
    }
    copy[n] = NULL;
    return copy;
}

static void mask(char *text, size_t n)
{
    memset(text, '*', n);
}

/* "?sentinel_password=PASSWORD&wait=all" */
static void mask_options(char *options)
{
    while (*options != '\0') {
        size_t n = strcspn(options, "&"), name_n = strcspn(options, "=&");
        if (name_n < n && memmem(options, name_n, "pass", 4) != NULL) {
            mask(options + name_n + 1, n - name_n - 1);
        }
        options += n + (options[n] == '&');
    }
}

/* "--store=redis://user:PASSWORD@host". If someone forgot to escape an '@', a '/' or a '?' in the
 * password, the last '@' ends it, as in port/storeurl.h: rather too much is hidden. */
static void mask_password(char *argument)
{
    char *rest = strstr(argument, "://");
    if (rest == NULL) {
        return;
    }
    rest += 3;
    char *at = strrchr(rest, '@');
    char *colon = at != NULL ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    if (colon != NULL) {
        mask(colon + 1, (size_t)(at - colon - 1));
    }
    rest = at != NULL ? at : rest;
    rest += strcspn(rest, "?");
    mask_options(rest + (*rest == '?'));
}

char **gl_harden_arguments(char **argv)
{
    char **copy = copy_strings(argv);
    for (char **a = argv; *a != NULL; a++) {
        mask_password(*a);
    }
    return copy;
}

void gl_harden_environment(void)
{
    char **original = environ;
    if (original == NULL) {
        return;
    }
    environ = copy_strings(original);
    for (char **e = original; *e != NULL; e++) {
        /* The dynamic linker keeps pointers into its own variables. */
        if (!gl_str_starts(gl_str_of(*e), GL_S("LD_"))) {
            explicit_bzero(*e, strlen(*e));
        }
    }
}

void gl_harden_memory(void)
{
    const char *core = getenv("GLIA_CORE");
    if (core == NULL || strcmp(core, "1") != 0) {
        (void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
    }
}
