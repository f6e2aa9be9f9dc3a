/* pyenv_script.h - what python3 does for `glia pyenv`. */
#ifndef GL_CLI_COMMANDS_PYENV_SCRIPT_H
#define GL_CLI_COMMANDS_PYENV_SCRIPT_H

extern const char gl_pyenv_script[];

#endif
