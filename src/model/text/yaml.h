/* yaml.h - YAML into the same tape as JSON.
 *
 * YAML 1.2 core schema: null ~ true false, integers (also 0x, 0o) and floats are typed, everything
 * else that is plain is text (so `on`, `yes`, `1.2.3` and `2026-11-15`). Tags other than
 * !!str !!int !!float !!bool !!null !!map !!seq are refused, as are .inf and .nan, keys that are
 * not scalars, duplicate keys and more than one document. Aliases are expanded, at most
 * GL_YAML_ALIASES_MAX of them and at most `bytes_max` bytes of JSON in all. */
#ifndef GL_MODEL_TEXT_YAML_H
#define GL_MODEL_TEXT_YAML_H

#include "base/json.h"

/* The tape's `text` is JSON in `a`, `source` is `text` as given (borrowed), nodes point into
 * it. */
int gl_yaml_parse(struct gl_json *ret, gl_str text, size_t bytes_max, struct gl_arena *a,
                  struct gl_why *reterr_why);

#endif
