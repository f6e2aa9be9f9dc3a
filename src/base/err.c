#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

struct error_info {
    int code;
    const char *word;
    const char *text;
};

static const struct error_info errors[] = {
#define X(name, value, word, text) {name, word, text},
    GL_ERRORS(X)
#undef X
};

static const struct error_info *info_find(int code)
{
    for (size_t i = 0; i < GL_COUNT(errors); i++) {
        if (errors[i].code == code) {
            return &errors[i];
        }
    }
    return NULL;
}

const char *gl_err_word(int code)
{
    if (code == GL_OK) {
        return "ok";
    }
    const struct error_info *info = info_find(code);
    return info ? info->word : "unknown";
}

const char *gl_err_text(int code)
{
    if (code == GL_OK) {
        return "fine";
    }
    const struct error_info *info = info_find(code);
    return info ? info->text : "an error without a name";
}

int gl_err_from_word(const char *word)
{
    if (strcmp(word, "ok") == 0) {
        return GL_OK;
    }
    for (size_t i = 0; i < GL_COUNT(errors); i++) {
        if (strcmp(errors[i].word, word) == 0) {
            return errors[i].code;
        }
    }
    return GL_E_UNKNOWN;
}

int gl_why(struct gl_why *why, int code, const char *fmt, ...)
{
    GL_ASSERT(code < 0);
    if (!why) {
        return code;
    }
    why->code = code;
    why->needs_help = false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(why->text, sizeof(why->text), fmt, args); /* truncation is the contract */
    va_end(args);
    return code;
}

int gl_why_prefix(struct gl_why *why, const char *fmt, ...)
{
    GL_ASSERT(why);
    char old[GL_WHY_BYTES];
    memcpy(old, why->text, sizeof(old));
    old[sizeof(old) - 1] = 0;

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(why->text, sizeof(why->text), fmt, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used + 3 < sizeof(why->text)) {
        size_t left = sizeof(why->text) - used - 3;
        size_t keep = strlen(old) < left ? strlen(old) : left;
        memcpy(why->text + used, ": ", 2);
        memcpy(why->text + used + 2, old, keep);
        why->text[used + 2 + keep] = 0;
    }
    return why->code;
}
