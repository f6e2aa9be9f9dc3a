/* pyenv_script.h - the program that `glia pyenv` runs in python3. */
#ifndef GL_CLI_COMMANDS_PYENV_SCRIPT_H
#define GL_CLI_COMMANDS_PYENV_SCRIPT_H

extern const char gl_pyenv_script[];

#endif
