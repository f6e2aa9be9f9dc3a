/* reply.c - answers. All errors have one form: {"error": {"code", "reason", "message", ...}}. */
#include "base/check.h"
#include "base/mem.h"
#include "http/http_call.h"
#include "os/failpoint.h"

static unsigned status_of(int code)
{
    switch (code) {
    case GL_E_INVALID:
        return MHD_HTTP_BAD_REQUEST;
    case GL_E_DENIED:
        return MHD_HTTP_FORBIDDEN;
    case GL_E_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case GL_E_EXISTS:
    case GL_E_CONFLICT:
    case GL_E_STATE:
    case GL_E_STALE:
    case GL_E_NOT_OWNER:
        return MHD_HTTP_CONFLICT;
    case GL_E_LIMIT:
        return MHD_HTTP_TOO_MANY_REQUESTS;
    case GL_E_UNAVAILABLE:
    case GL_E_UNKNOWN:
    case GL_E_BUSY:
    case GL_E_GONE:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

void gl_reply_finish_json(struct gl_http_call *c, unsigned status)
{
    c->status = status;
    c->type = "application/json";
    gl_buf_char(&c->out, '\n');
}

void gl_reply_json(struct gl_http_call *c, unsigned status, gl_str body)
{
    gl_buf_reset(&c->out);
    gl_buf_str(&c->out, body);
    gl_reply_finish_json(c, status);
}

bool gl_reply_stream(struct gl_http_call *c, const char *type, size_t block_bytes,
                     MHD_ContentReaderCallback on_room, void *owner,
                     MHD_ContentReaderFreeCallback done)
{
    c->stream =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, block_bytes, on_room, owner, done);
    if (c->stream == NULL) {
        done(owner);
        gl_reply_error(c, GL_R_NODE_BUSY, "out of memory for this stream", NULL);
        return false;
    }
    c->status = MHD_HTTP_OK;
    c->type = type;
    return true;
}

static void write_reason(struct gl_jw *w, enum gl_reason reason)
{
    if (reason != GL_REASON_NONE) {
        gl_jw_put_c(w, "reason", gl_reason_word(reason));
    }
}

static void write_details(struct gl_jw *w, const struct gl_flow_errors *details)
{
    gl_jw_put_array(w, "details");
    for (size_t i = 0; i < details->n; i++) {
        const struct gl_flow_error *e = &details->items[i];

        gl_jw_object(w);
        if (e->line > 0) {
            gl_jw_put_u64(w, "line", e->line);
            gl_jw_put_u64(w, "column", e->column);
        }
        gl_jw_put_str(w, "path", e->path);
        gl_jw_put_str(w, "message", e->text);
        write_reason(w, e->reason);
        gl_jw_end(w);
    }
    gl_jw_end(w);
}

void gl_reply_write_error(struct gl_jw *w, const struct gl_refusal *r, const char *id)
{
    gl_jw_object(w);
    gl_jw_put_c(w, "code", gl_err_word(r->code));
    write_reason(w, gl_err_reason(r->code));
    gl_jw_put_c(w, "message", r->message);
    if (r->field != NULL) {
        gl_jw_put_c(w, "field", r->field);
    }
    if (r->hint != NULL) {
        gl_jw_put_c(w, "hint", r->hint);
    }
    if (r->details != NULL) {
        write_details(w, r->details);
    }
    if (r->claim.n > 0) {
        gl_jw_put_raw(w, "claim", r->claim);
    }
    if (id != NULL) {
        gl_jw_put_c(w, "request_id", id);
    }
    gl_jw_end(w);
}

void gl_reply_refusal(struct gl_http_call *c, const struct gl_refusal *r)
{
    struct gl_jw w;

    c->status = r->status != 0   ? r->status
                : r->claim.n > 0 ? MHD_HTTP_CONFLICT
                                 : status_of(gl_err_code(r->code));
    c->type = "application/json";
    gl_buf_reset(&c->out);
    gl_jw_init(&w, &c->out);
    gl_jw_object(&w);
    gl_jw_key(&w, "error");
    gl_reply_write_error(&w, r, c->id);
    gl_jw_end(&w);
    gl_buf_char(&c->out, '\n');
}

void gl_reply_error_at(struct gl_http_call *c, int code, const char *message, const char *hint,
                       const char *field, const struct gl_flow_errors *details)
{
    gl_reply_refusal(
        c, &(struct gl_refusal){
               .code = code, .message = message, .hint = hint, .field = field, .details = details});
}

void gl_reply_error(struct gl_http_call *c, int code, const char *message, const char *hint)
{
    gl_reply_error_at(c, code, message, hint, NULL, NULL);
}

void gl_reply_status(struct gl_http_call *c, unsigned status, int code, const char *message)
{
    gl_reply_refusal(c, &(struct gl_refusal){.code = code, .status = status, .message = message});
}

static void add_log_headers(const struct gl_http_call *c, struct MHD_Response *r)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};

    (void)MHD_add_response_header(r, "Glia-Next-Offset",
                                  gl_str_fmt(&a, "%llu", (unsigned long long)c->log_next).p);
    (void)MHD_add_response_header(r, "Glia-Ended", c->log_ended ? "true" : "false");
    (void)MHD_add_response_header(r, "Glia-Attempt", gl_str_fmt(&a, "%u", c->log.attempt).p);
    if (c->log_node.n > 0) {
        (void)MHD_add_response_header(r, "Glia-Log-Node", gl_str_c(&a, c->log_node));
        (void)MHD_add_response_header(r, "Glia-Log-Copied", c->log_copied ? "true" : "false");
    }
    if (c->log_missing.n > 0) {
        (void)MHD_add_response_header(r, "Glia-Log-Missing", gl_str_c(&a, c->log_missing));
    }
}

static struct MHD_Response *make_response(struct gl_http_call *c)
{
    struct MHD_Response *r = c->stream;

    c->stream = NULL;
    if (r == NULL) {
        /* The response takes the buffer: nothing is copied. */
        r = MHD_create_response_from_buffer_with_free_callback(c->out.n, c->out.p, gl_mem_free);
        if (r != NULL) {
            c->out = (struct gl_buf){0};
        }
    }
    return r;
}

enum MHD_Result gl_reply_queue(struct gl_http_call *c)
{
    struct MHD_Response *r = make_response(c);
    enum MHD_Result queued;

    if (r == NULL) {
        return MHD_NO;
    }
    if (c->type != NULL) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, c->type);
    }
    (void)MHD_add_response_header(r, "Glia-Request-Id", c->id);
    /* Browsers must neither guess the type of an answer nor cache it. */
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (c->is_last) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (c->allow != NULL) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, c->allow);
    }
    if (c->status == MHD_HTTP_UNAUTHORIZED) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    if (c->has_log_headers) {
        add_log_headers(c, r);
    }
    GL_FAILPOINT("http.before_reply");
    queued = MHD_queue_response(c->connection, c->status, r);
    MHD_destroy_response(r);
    return queued;
}
