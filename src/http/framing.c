#include "http/framing.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool refuse(struct gl_framing *f, const char *why)
{
    f->why = why;
    return false;
}

/* RFC 9110: token */
static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static void append(char *text, size_t max, size_t *n, char c)
{
    if (*n < max) {
        text[*n] = c;
    }
    (*n)++; /* too long to be equal to anything */
}

static bool equals(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(text, word, n) == 0;
}

/* ---- the request line ---- */

static void begin_line(struct gl_framing *f)
{
    f->begun_n++;
    f->spaces_n = 0;
    f->value_n = 0;
    f->is_trailer = f->has_length = f->has_coding = f->is_old = false;
    f->left = 0;
    f->state = GL_FRAMING_LINE;
}

static bool end_line(struct gl_framing *f)
{
    bool is_version = f->spaces_n == 2 && f->value_n == 8 && memcmp(f->value, "HTTP/1.", 7) == 0 &&
                      f->value[7] >= '0' && f->value[7] <= '9';

    if (!is_version) {
        return refuse(f, "the request line is not METHOD TARGET HTTP/1.1");
    }
    f->is_old = f->value[7] == '0';
    f->state = GL_FRAMING_LINE_LF;
    return true;
}

static bool take_line(struct gl_framing *f, char c)
{
    if (c == '\r') {
        return end_line(f);
    }
    if (is_control(c) || c == '\t') {
        return refuse(f, c == '\n' ? "a line ends with LF alone"
                                   : "a control character in the request line");
    }
    if (c == ' ') {
        f->spaces_n++;
        f->value_n = 0;
    } else {
        append(f->value, sizeof(f->value), &f->value_n, c);
    }
    return true;
}

/* ---- headers ---- */

static bool take_name(struct gl_framing *f, char c)
{
    if (c == ':' && f->name_n > 0) {
        f->value_n = 0;
        f->state = GL_FRAMING_VALUE;
        return true;
    }
    if (!is_token(c)) {
        return refuse(f, c == '\n' ? "a line ends with LF alone"
                                   : "a header's name is not followed by a colon");
    }
    append(f->name, sizeof(f->name), &f->name_n, c);
    return true;
}

static bool take_length(struct gl_framing *f)
{
    uint64_t n = 0;
    bool is_number = f->value_n > 0 && f->value_n <= 18; /* so it cannot overflow */

    if (f->has_length) {
        return refuse(f, "Content-Length is given more than once");
    }
    for (size_t i = 0; is_number && i < f->value_n; i++) {
        is_number = f->value[i] >= '0' && f->value[i] <= '9';
        n = n * 10 + (uint64_t)(f->value[i] - '0');
    }
    if (!is_number) {
        return refuse(f, "Content-Length is not a number");
    }
    f->has_length = true;
    f->left = n;
    return true;
}

static bool take_coding(struct gl_framing *f)
{
    if (f->has_coding) {
        return refuse(f, "Transfer-Encoding is given more than once");
    }
    if (!equals(f->value, f->value_n, "chunked")) {
        return refuse(f, "a Transfer-Encoding other than chunked");
    }
    f->has_coding = true;
    return true;
}

static bool end_field(struct gl_framing *f)
{
    bool is_length = equals(f->name, f->name_n, "Content-Length");
    bool is_coding = equals(f->name, f->name_n, "Transfer-Encoding");

    while (f->value_n > 0 && f->value_n <= sizeof(f->value) &&
           (f->value[f->value_n - 1] == ' ' || f->value[f->value_n - 1] == '\t')) {
        f->value_n--;
    }
    if (f->is_trailer && (is_length || is_coding)) {
        return refuse(f, "a trailer sets the length of the body");
    }
    f->state = GL_FRAMING_VALUE_LF;
    return is_length ? take_length(f) : is_coding ? take_coding(f) : true;
}

static bool take_value(struct gl_framing *f, char c)
{
    bool is_space = c == ' ' || c == '\t';

    if (c == '\r') {
        return end_field(f);
    }
    if (is_control(c)) {
        return refuse(f,
                      c == '\n' ? "a line ends with LF alone" : "a control character in a header");
    }
    if (!is_space || f->value_n > 0) {
        append(f->value, sizeof(f->value), &f->value_n, c);
    }
    return true;
}

static bool begin_field(struct gl_framing *f, char c)
{
    if (c == '\r') {
        f->state = GL_FRAMING_END_LF;
        return true;
    }
    if (c == ' ' || c == '\t') {
        return refuse(f, "a header is folded, or begins with a space");
    }
    f->name_n = 0;
    f->state = GL_FRAMING_NAME;
    return take_name(f, c);
}

static bool end_fields(struct gl_framing *f)
{
    if (f->is_trailer) {
        f->state = GL_FRAMING_START;
        return true;
    }
    if (f->has_coding && (f->has_length || f->is_old)) {
        return refuse(f, f->has_length ? "Content-Length and Transfer-Encoding exclude each other"
                                       : "HTTP/1.0 has no Transfer-Encoding");
    }
    f->heads_n++;
    f->digits_n = 0;
    f->state = f->has_coding ? GL_FRAMING_SIZE : f->left > 0 ? GL_FRAMING_BODY : GL_FRAMING_START;
    return true;
}

/* ---- chunks ---- */

static bool take_size(struct gl_framing *f, char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;

    if (digit != NULL && f->digits_n < 15) {
        f->left = (f->digits_n == 0 ? 0 : f->left) * 16 + (uint64_t)((digit - digits) & 15);
        f->digits_n++;
        return true;
    }
    if (f->digits_n == 0 || (c != '\r' && c != ';')) {
        return refuse(f, "the size of a chunk is not a number");
    }
    f->state = c == ';' ? GL_FRAMING_EXTENSION : GL_FRAMING_SIZE_LF;
    return true;
}

static bool take_extension(struct gl_framing *f, char c)
{
    if (c == '\r') {
        f->state = GL_FRAMING_SIZE_LF;
    } else if (is_control(c)) {
        return refuse(f, "a control character in the extension of a chunk");
    }
    return true;
}

static bool take_chunk_end(struct gl_framing *f, char c)
{
    if (f->state == GL_FRAMING_CHUNK_CR && c == '\r') {
        f->state = GL_FRAMING_CHUNK_LF;
        return true;
    }
    if (f->state == GL_FRAMING_CHUNK_LF && c == '\n') {
        f->digits_n = 0;
        f->state = GL_FRAMING_SIZE;
        return true;
    }
    return refuse(f, "a chunk is longer than its size");
}

/* ---- bytes ---- */

/* After a CR. */
static bool take_lf(struct gl_framing *f, char c)
{
    if (c != '\n') {
        f->begun_n += f->state == GL_FRAMING_START_LF; /* we are inside a request now */
        return refuse(f, "CR without LF");
    }
    switch (f->state) {
    case GL_FRAMING_START_LF:
        f->state = GL_FRAMING_START;
        return true;
    case GL_FRAMING_LINE_LF:
    case GL_FRAMING_VALUE_LF:
        f->state = GL_FRAMING_FIELD;
        return true;
    case GL_FRAMING_SIZE_LF:
        f->is_trailer = f->left == 0;
        f->state = f->left > 0 ? GL_FRAMING_CHUNK : GL_FRAMING_FIELD;
        return true;
    default:
        return end_fields(f);
    }
}

static bool take_byte(struct gl_framing *f, char c)
{
    switch (f->state) {
    case GL_FRAMING_START:
        if (c == '\r') {
            f->state = GL_FRAMING_START_LF;
            return true;
        }
        begin_line(f);
        return is_token(c) ? take_line(f, c) : refuse(f, "a request does not begin with a method");
    case GL_FRAMING_LINE:
        return take_line(f, c);
    case GL_FRAMING_FIELD:
        return begin_field(f, c);
    case GL_FRAMING_NAME:
        return take_name(f, c);
    case GL_FRAMING_VALUE:
        return take_value(f, c);
    case GL_FRAMING_SIZE:
        return take_size(f, c);
    case GL_FRAMING_EXTENSION:
        return take_extension(f, c);
    case GL_FRAMING_CHUNK_CR:
    case GL_FRAMING_CHUNK_LF:
        return take_chunk_end(f, c);
    default:
        return take_lf(f, c);
    }
}

size_t gl_framing_feed(struct gl_framing *f, const char *bytes, size_t n)
{
    size_t i = 0;

    f->head_at = 0;
    while (i < n && f->why == NULL) {
        if (f->state == GL_FRAMING_BODY || f->state == GL_FRAMING_CHUNK) {
            size_t some = f->left < n - i ? (size_t)f->left : n - i;

            i += some;
            f->left -= some;
            if (f->left == 0) {
                f->state = f->state == GL_FRAMING_BODY ? GL_FRAMING_START : GL_FRAMING_CHUNK_CR;
            }
        } else {
            f->head_at = gl_framing_is_in_head(f) ? f->head_at : i;
            i += take_byte(f, bytes[i]);
        }
    }
    return i;
}
