/* module.h - native modules: agents implemented as a shared object.
 *
 * A module exports one symbol, `glia_module`. It handles messages: each call of handle() gets one
 * message and the agent's state, and requests effects through `out`. The runtime commits all
 * effects together with the end of the message, in one transaction. If the machine dies before
 * that, the message is handled again with the same state.
 *
 * So handle() should only compute and request effects. Any other effect (a file, a socket) may
 * happen more than once; use `message_id` as the key to recognise a repetition.
 *
 * A module needs nothing of Glia but this header: it links no Glia library, and every function it
 * calls comes with `out`. Calls come one at a time, always from one thread.
 *
 *     #include <glia/module.h>
 *
 *     static int handle(void *instance, const struct glia_message *m, struct glia_text state,
 *                       struct glia_out *out)
 *     {
 *         return out->emit(out, glia_text("pong"), m->body);
 *     }
 *
 *     GLIA_EXPORT const struct glia_module glia_module = {
 *         GLIA_MODULE_HEAD, .name = "pong", .handle = handle,
 *     };
 *
 *     cc -shared -fPIC -o pong.so pong.c
 *
 * Order of calls: init() once per instance; [restore()], handle(), [snapshot()] for each message;
 * destroy(). See docs/modules.md for installing and running modules. */
#ifndef GLIA_MODULE_H
#define GLIA_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Within a version, fields are only added at the ends of the
 * structs, and `size` shows which fields exist. An incompatible change gets a new version, and a
 * module built for another version is refused with a message that names both. */
#define GLIA_MODULE_ABI 1u

/* The first two fields of a module. */
#define GLIA_MODULE_HEAD .abi = GLIA_MODULE_ABI, .size = sizeof(struct glia_module)

#if defined(__GNUC__)
#define GLIA_EXPORT __attribute__((visibility("default")))
#else
#define GLIA_EXPORT
#endif

/* Text is a pointer and a length, not NUL-terminated. Text passed to a module is valid until the
 * call returns; text a module passes is copied before the called function returns. */
struct glia_text {
    const char *bytes;
    size_t length;
};

static inline struct glia_text glia_text_n(const char *bytes, size_t length)
{
    struct glia_text t;
    t.bytes = bytes;
    t.length = length;
    return t;
}

static inline struct glia_text glia_text(const char *c_string)
{
    return glia_text_n(c_string, strlen(c_string));
}

static inline int glia_text_is(struct glia_text t, const char *c_string)
{
    return t.length == strlen(c_string) && memcmp(t.bytes, c_string, t.length) == 0;
}

/* A message. Names and ids are plain text, "" if absent. Fields marked JSON hold one valid JSON
 * value, which may contain any white space. */
struct glia_message {
    uint32_t size;             /* size of this struct in the runtime */
    uint32_t attempt;          /* 1 unless the message was sent again */
    int64_t priority;          /* higher is handled sooner */
    int64_t ttl_ms;            /* 0: does not expire */
    struct glia_text job_id;   /* the job ... */
    struct glia_text agent_id; /* ... and the agent that handles it */
    struct glia_text message_id;
    struct glia_text from; /* the agent that sent it, or "runtime" */
    struct glia_text to;
    struct glia_text type; /* as named by edges in the manifest */
    struct glia_text kind; /* its class: "event", "command" */
    struct glia_text timestamp;
    struct glia_text correlation_id;
    struct glia_text causation_id; /* the message that caused this one */
    struct glia_text content_type, content_encoding;
    struct glia_text headers;   /* JSON: an object */
    struct glia_text body;      /* JSON: any value */
    struct glia_text artifacts; /* JSON: a list */
    struct glia_text stream;    /* JSON: an object, or null */
};

/* The effects of a message. Every function returns 0, or non-zero if its argument is invalid (text
 * that is not JSON, or is too long). Then the message fails whatever handle() returns, with a
 * reason that describes the mistake, so most modules can ignore these results. */
struct glia_out {
    uint32_t size; /* size of this struct in the runtime */

    /* Send a message along the agent's edges; the body is JSON ("" : null). Correlation, class and
     * artifacts are inherited from the message being handled. */
    int (*emit)(struct glia_out *out, struct glia_text type, struct glia_text body);
    /* Send a message to one agent of the job, with or without an edge. */
    int (*emit_to)(struct glia_out *out, struct glia_text agent, struct glia_text type,
                   struct glia_text body);
    /* Send a message with all fields given as a JSON object: to, type, body, headers, class,
     * correlation_id, content_type, artifacts, stream. */
    int (*emit_message)(struct glia_out *out, struct glia_text message);
    /* Add an event to the job's history; the payload is a JSON object ("" : {}). */
    int (*event)(struct glia_out *out, struct glia_text type, struct glia_text payload);
    /* Set the agent's state: any JSON value. Without this call the state stays unchanged. The last
     * call counts. */
    int (*set_state)(struct glia_out *out, struct glia_text state);
    /* Complete the workflow step this agent is bound to, or the whole run; the value is JSON ("" :
     * the runtime's default). The last call counts. */
    int (*complete_step)(struct glia_out *out, struct glia_text value);
    int (*complete_run)(struct glia_out *out, struct glia_text value);
    /* Fail the message with this reason, a sentence. All other effects are discarded. Returns
     * non-zero: `return out->fail(out, ...)`. */
    int (*fail)(struct glia_out *out, struct glia_text reason);
};

/* Why init() or restore() failed; NUL-terminated. */
struct glia_error {
    char text[256];
};

/* Reserved for later versions of the runtime: must be NULL. */
typedef void glia_reserved(void);

struct glia_module {
    uint32_t abi;     /* GLIA_MODULE_ABI, and ... */
    uint32_t size;    /* ... sizeof(struct glia_module): GLIA_MODULE_HEAD is both */
    const char *name; /* the name manifests use: letters, digits, '_', '.', '-' */

    /* Create an instance for agents with this configuration (the node's `config` in the manifest, a
     * JSON object). *ret_instance is passed to all other functions. NULL: no setup needed. Returns
     * 0, or non-zero with a reason in `error`. */
    int (*init)(struct glia_text config, void **ret_instance, struct glia_error *error);

    /* Handle one message. `state` is JSON; "" : the agent has none yet. Returns 0, or non-zero: the
     * message fails and its effects are discarded. */
    int (*handle)(void *instance, const struct glia_message *message, struct glia_text state,
                  struct glia_out *out);

    /* For modules that keep an agent's state in memory instead of reading it for each message. With
     * these two, an instance belongs to one agent. restore() sets it to a state that snapshot()
     * returned, and is called only when the instance has a different one; snapshot() is called
     * after each message and returns the state by set_state(). Set both or neither. */
    int (*snapshot)(void *instance, struct glia_out *out);
    int (*restore)(void *instance, struct glia_text state, struct glia_error *error);

    /* Destroy the instance. It may be created again later. */
    void (*destroy)(void *instance);

    glia_reserved *recover, *migrate, *expand, *schedule_recover, *work_remaining, *aggregate;
    glia_reserved *reserved[8];
};

#ifdef __cplusplus
}
#endif

#endif
