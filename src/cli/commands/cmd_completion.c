/* cmd_completion.c - glia completion: scripts for shells, which call `glia __complete`. */
#include "base/check.h"
#include "cli/cli.h"

static const char bash_script[] =
    "# bash completion for glia:  source <(glia completion bash)\n"
    "_glia() {\n"
    "    local line word\n"
    "    local -a words=(\"${COMP_WORDS[@]:1:COMP_CWORD}\")\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o default; COMPREPLY=() ;;\n"
    "        :folders) compopt -o dirnames; COMPREPLY=() ;;\n"
    "        *) printf -v word %q \"${line%%$'\\t'*}\"; COMPREPLY+=(\"$word\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete -- \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _glia glia\n";

static const char zsh_script[] =
    "#compdef glia\n"
    "# zsh completion for glia:  source <(glia completion zsh)\n"
    "_glia() {\n"
    "    local line\n"
    "    local -a found\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) _files ;;\n"
    "        :folders) _files -/ ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[1]}\" __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    (( $#found )) && _describe -V glia found\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _glia ]; then _glia \"$@\"; else compdef _glia glia; fi\n";

static const char fish_script[] =
    "# fish completion for glia:  glia completion fish | source\n"
    "function __glia_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path (commandline -ct)\n"
    "            case :folders\n"
    "                __fish_complete_directories (commandline -ct)\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c glia -f -a '(__glia_complete)'\n";

int gl_cmd_completion(struct gl_cli *cli)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

    for (size_t i = 0; i < GL_COUNT(scripts); i++) {
        if (strcmp(cli->words[0], scripts[i].shell) == 0) {
            (void)fputs(scripts[i].script, cli->out.file);
            return GL_EXIT_OK;
        }
    }
    return gl_cli_usage(cli, "there is no completion for '%s': bash, zsh or fish", cli->words[0]);
}
