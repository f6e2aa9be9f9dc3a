/* http_text.h - pure functions on text that clients send. */
#ifndef GL_HTTP_HTTP_TEXT_H
#define GL_HTTP_HTTP_TEXT_H

#include "base/json.h"

/* Decode percent escapes in place; returns the new length. %00 stays as written, so that it does
 * not cut the text short but becomes part of a name that does not exist. %2f must not separate
 * parts of a path: it becomes GL_HTTP_TEXT_SLASH, which gl_http_call_unescape() turns into a slash.
 */
enum { GL_HTTP_TEXT_SLASH = 0x1f };
size_t gl_http_text_unescape(char *text);

/* "name:port", "[address]:port", "name": the name. */
gl_str gl_http_text_host(gl_str host);

/* JSON without white space between its tokens, on one line. */
gl_str gl_http_text_compact(gl_str json, struct gl_arena *a);

/* Does `accept`, the header, name this type explicitly? */
bool gl_http_text_accepts(gl_str accept, const char *type);

/* Compares in constant time, which does not reveal where the texts differ. */
bool gl_http_text_is_secret(gl_str given, gl_str secret);

#endif
