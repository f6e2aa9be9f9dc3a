/* main.c - argv becomes a command. */
#include "base/mem.h"
#include "cli/cli.h"
#include "os/harden.h"

int main(int argc, char **argv)
{
    char **args = gl_harden_arguments(argv);
    int code;

    gl_harden_environment();
    code = gl_cli_main(argc, args);
    gl_mem_free(args);
    return code;
}
