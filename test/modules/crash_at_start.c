/* A shared object that ends whoever opens it. */
#include <unistd.h>

__attribute__((constructor)) static void at_start(void)
{
    _exit(9);
}
