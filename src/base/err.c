/* err.c - the tables behind err.h. A reasoned code (GL_R_*) packs both numbers into one int: code -
 * reason * GL_REASON_STEP. */
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

struct reason_info {
    int code;
    const char *word;
    const char *meaning;
};

static const struct reason_info reasons[GL_REASON_COUNT] = {
    [GL_REASON_NONE] = {0, "", ""},
#define REASON(name, code, word, meaning) [GL_REASON_##name] = {GL_E_##code, word, meaning},
#include "base/reasons.def"
};

struct why_info {
    const char *word;
    const char *meaning;
};

static const struct why_info whys[GL_BECAUSE_COUNT] = {
    [GL_BECAUSE_NONE] = {"", ""},
#define WHY_CODE(name, word, meaning) [GL_BECAUSE_##name] = {word, meaning},
#include "base/reasons.def"
};

const char *gl_why_code_word(enum gl_why_code code)
{
    GL_ASSERT(code < GL_BECAUSE_COUNT);
    return whys[code].word;
}

const char *gl_why_code_meaning(enum gl_why_code code)
{
    GL_ASSERT(code < GL_BECAUSE_COUNT);
    return whys[code].meaning;
}

int gl_err_code(int code)
{
    return code < 0 ? -(-code % GL_REASON_STEP) : code;
}

enum gl_reason gl_err_reason(int code)
{
    int reason = code < 0 ? -code / GL_REASON_STEP : 0;

    return reason < GL_REASON_COUNT ? (enum gl_reason)reason : GL_REASON_NONE;
}

int gl_err_join(int code, enum gl_reason reason)
{
    return code < 0 ? code - (int)reason * GL_REASON_STEP : code;
}

const char *gl_reason_word(enum gl_reason reason)
{
    GL_ASSERT(reason < GL_REASON_COUNT);
    return reasons[reason].word;
}

int gl_reason_code(enum gl_reason reason)
{
    GL_ASSERT(reason < GL_REASON_COUNT);
    return reasons[reason].code;
}

const char *gl_reason_meaning(enum gl_reason reason)
{
    GL_ASSERT(reason < GL_REASON_COUNT);
    return reasons[reason].meaning;
}

enum gl_reason gl_reason_from_word(const char *word)
{
    for (size_t i = 1; i < GL_COUNT(reasons); i++) {
        if (strcmp(reasons[i].word, word) == 0) {
            return (enum gl_reason)i;
        }
    }
    return GL_REASON_NONE;
}

static const struct error_info *info_find(int code)
{
    code = gl_err_code(code);
    for (size_t i = 0; i < GL_COUNT(errors); i++) {
        if (errors[i].code == code) {
            return &errors[i];
        }
    }
    return NULL;
}

bool gl_err_is_plain(int64_t code)
{
    return code == GL_OK || (code < 0 && code > -GL_REASON_STEP && info_find((int)code) != NULL);
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
        return gl_err_code(code);
    }
    why->code = gl_err_code(code);
    why->reason = gl_err_reason(code);
    why->needs_help = false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(why->text, sizeof(why->text), fmt, args); /* may truncate, by contract */
    va_end(args);
    return why->code;
}

int gl_why_whole(const struct gl_why *why)
{
    return gl_err_join(why->code, why->reason);
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
