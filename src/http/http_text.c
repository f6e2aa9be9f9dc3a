#include "http/http_text.h"

#include <strings.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

size_t gl_http_text_unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0';) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        int byte = low >= 0 ? high * 16 + low : -1;

        if (byte > 0 && byte != GL_HTTP_TEXT_SLASH) {
            *to++ = (char)(byte == '/' ? GL_HTTP_TEXT_SLASH : byte);
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

gl_str gl_http_text_host(gl_str host)
{
    gl_str rest;

    if (host.n > 0 && host.p[0] == '[') {
        return gl_str_cut((gl_str){.p = host.p + 1, .n = host.n - 1}, ']', &rest);
    }
    return gl_str_cut(host, ':', &rest);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

gl_str gl_http_text_compact(gl_str json, struct gl_arena *a)
{
    char *to = gl_arena_alloc(a, json.n + 1);
    bool in_string = false;
    size_t n = 0;

    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];

        if (!in_string && is_space(c)) {
            continue;
        }
        to[n++] = c;
        if (in_string && c == '\\' && i + 1 < json.n) {
            to[n++] = json.p[++i];
        } else if (c == '"') {
            in_string = !in_string;
        }
    }
    return (gl_str){.p = to, .n = n};
}

bool gl_http_text_accepts(gl_str accept, const char *type)
{
    while (accept.n > 0) {
        gl_str rest;
        gl_str one = gl_str_trim(gl_str_cut(gl_str_cut(accept, ',', &accept), ';', &rest));

        if (one.n == strlen(type) && strncasecmp(one.p, type, one.n) == 0) {
            return true;
        }
    }
    return false;
}

bool gl_http_text_is_secret(gl_str given, gl_str secret)
{
    unsigned difference = given.n != secret.n;

    for (size_t i = 0; i < given.n && i < secret.n; i++) {
        difference |= (unsigned)(unsigned char)given.p[i] ^ (unsigned char)secret.p[i];
    }
    return difference == 0 && secret.n > 0;
}
