/* module_wire.h - the protocol between a node and glia-module-host, over a socket pair.
 *
 * A frame is a header and its payload. Both ends come from one build on one machine, so the header
 * is the struct as it is in memory.
 *
 *     node                       host
 *                          <-    READY (empty, or why the module cannot be used)
 *     CALL id, input       ->
 *                          <-    DONE id, document  |  FAILED id, reason  |  REFUSED id, reason
 *
 * Calls are answered in the order they arrive, so the first unanswered one is the one being
 * handled. The node trusts nothing the host sends. */
#ifndef GL_EXEC_MODULE_WIRE_H
#define GL_EXEC_MODULE_WIRE_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

enum gl_module_frame {
    GL_MODULE_READY = 1,
    GL_MODULE_CALL,
    GL_MODULE_DONE,
    GL_MODULE_FAILED,  /* the module failed */
    GL_MODULE_REFUSED, /* the input is malformed */
};

struct gl_module_head {
    uint32_t bytes; /* after the header */
    uint32_t type;  /* enum gl_module_frame */
    uint64_t id;
};

enum { GL_MODULE_FD = 3 }; /* the host's end */

static inline void gl_module_frame_add(struct gl_buf *out, enum gl_module_frame type, uint64_t id,
                                       gl_str text)
{
    struct gl_module_head head = {.bytes = (uint32_t)text.n, .type = type, .id = id};
    gl_buf_add(out, &head, sizeof(head));
    gl_buf_str(out, text);
}

/* Read the frame at the start of `bytes`. *ret_used is 0 if it is incomplete. GL_E_LIMIT: too
 * large. */
static inline int gl_module_frame_read(gl_str bytes, struct gl_module_head *ret, gl_str *ret_text,
                                       size_t *ret_used)
{
    *ret_used = 0;
    if (bytes.n < sizeof(*ret)) {
        return 0;
    }
    memcpy(ret, bytes.p, sizeof(*ret));
    if (ret->bytes > GL_MODULE_FRAME_BYTES_MAX) {
        return GL_E_LIMIT;
    }
    if (bytes.n - sizeof(*ret) >= ret->bytes) {
        *ret_text = (gl_str){.p = bytes.p + sizeof(*ret), .n = ret->bytes};
        *ret_used = sizeof(*ret) + ret->bytes;
    }
    return 0;
}

#endif
