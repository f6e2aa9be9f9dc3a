/* main.c - argv becomes a command. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return gl_cli_main(argc, argv);
}
