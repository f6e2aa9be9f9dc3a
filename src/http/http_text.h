/* http_text.h - small readers of what clients send: pure functions on bytes from outside. */
#ifndef GL_HTTP_HTTP_TEXT_H
#define GL_HTTP_HTTP_TEXT_H

#include "base/json.h"

/* Percent decoding in place; gives back the new length. What would end a text stays as it was
 * written, so that it is part of a name that nobody has: the text behind %00 must not be lost. And
 * %2f is no slash that parts a path: it becomes GL_HTTP_TEXT_SLASH, and a slash where that is
 * wanted. */
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
