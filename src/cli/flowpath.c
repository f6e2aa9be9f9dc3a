#include "cli/flowpath.h"

#include <sys/stat.h>

#include "base/check.h"

static bool is_there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static const char *in(struct gl_arena *a, const char *folder, const char *name)
{
    bool has_slash = gl_str_ends(gl_str_of(folder), GL_S("/"));

    return gl_str_fmt(a, "%s%s%s", folder, has_slash ? "" : "/", name).p;
}

int gl_flowpath_find(struct gl_arena *a, const char *word, const char **ret,
                     struct gl_why *reterr_why)
{
    static const char *const names[] = {"manifest.json", "flow.yaml", "flow.yml", "flow.json"};
    struct stat st;

    if (strcmp(word, "-") == 0 || stat(word, &st) < 0 || !S_ISDIR(st.st_mode)) {
        *ret = gl_str_c(a, gl_str_of(word));
        return 0;
    }
    for (size_t i = 0; i < GL_COUNT(names); i++) {
        const char *path = in(a, word, names[i]);

        if (is_there(path)) {
            *ret = path;
            return 0;
        }
    }
    return gl_why(reterr_why, GL_R_NO_FLOW_IN_FOLDER,
                  "the folder %s has no manifest.json, flow.yaml, flow.yml or flow.json", word);
}

const char *gl_flowpath_open(const char *path)
{
    return strcmp(path, "-") == 0 ? "/dev/stdin" : path;
}
