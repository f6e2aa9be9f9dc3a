/* module.h - native modules: agents written as a shared object.
 *
 * A module exports one symbol, `glia_module`. It handles messages: each call of handle() gets one
 * message and the agent's state, and says through `out` what shall happen. Nothing of that happens
 * before the runtime has committed all of it, together with the end of the message, in one
 * transaction; if the machine dies before that, the message is handled again with the same state.
 * So handle() should compute and say, and leave the world alone. What it does outside (a file, a
 * socket) may happen more than once; `message_id` is the key to do it once.
 *
 * A module needs nothing of Glia but this header: it is linked with no library of it, and every
 * function it calls comes with `out`. Calls come one at a time, always from one thread.
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
 * docs/modules.md says where it goes and how it is run. */
#ifndef GLIA_MODULE_H
#define GLIA_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Within a version fields are only ever added, at the ends of the
 * structs, and `size` tells who was compiled with which; a change that old modules could not bear
 * makes a new version, and a module of another version is refused with a sentence that says so. */
#define GLIA_MODULE_ABI 1u

/* The first two fields of a module. */
#define GLIA_MODULE_HEAD .abi = GLIA_MODULE_ABI, .size = sizeof(struct glia_module)

#if defined(__GNUC__)
#define GLIA_EXPORT __attribute__((visibility("default")))
#else
#define GLIA_EXPORT
#endif

/* Text is a place and a length; nothing ends in NUL. Text that a module is given lasts until the
 * call returns; text that it gives is copied before the function it calls returns. */
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

/* A message. Names and ids are plain text, "" where the message has none; what is marked JSON is
 * the text of one JSON value, valid, and may have any white space in it. */
struct glia_message {
    uint32_t size;             /* of this struct, as the runtime has it */
    uint32_t attempt;          /* of the message: 1 unless it was sent again */
    int64_t priority;          /* higher is sooner */
    int64_t ttl_ms;            /* 0: it does not expire */
    struct glia_text job_id;   /* the job ... */
    struct glia_text agent_id; /* ... and the agent that handles it */
    struct glia_text message_id;
    struct glia_text from; /* the agent that sent it, or "runtime" */
    struct glia_text to;
    struct glia_text type; /* what edges of the manifest name */
    struct glia_text kind; /* its class: "event", "command" */
    struct glia_text timestamp;
    struct glia_text correlation_id;
    struct glia_text causation_id; /* the message this one came of */
    struct glia_text content_type, content_encoding;
    struct glia_text headers;   /* JSON: an object */
    struct glia_text body;      /* JSON: any value */
    struct glia_text artifacts; /* JSON: a list */
    struct glia_text stream;    /* JSON: an object, or null */
};

/* What a message leads to. Every function returns 0, or another number if it was given what cannot
 * be taken (text that is no JSON, too much of it): then the message fails whatever handle()
 * returns, with a sentence that says what was wrong. So most modules ignore these results. */
struct glia_out {
    uint32_t size; /* of this struct, as the runtime has it */

    /* Send a message along the agent's edges; its body is JSON ("" : null). What a message has
     * besides comes from the one that is being handled: correlation, class, artifacts. */
    int (*emit)(struct glia_out *out, struct glia_text type, struct glia_text body);
    /* Send it to one agent of the job, with or without an edge. */
    int (*emit_to)(struct glia_out *out, struct glia_text agent, struct glia_text type,
                   struct glia_text body);
    /* The same with everything that can be said of a message, as a JSON object: to, type, body,
     * headers, class, correlation_id, content_type, artifacts, stream. */
    int (*emit_message)(struct glia_out *out, struct glia_text message);
    /* Something to be seen in the job's events; the payload is a JSON object ("" : {}). */
    int (*event)(struct glia_out *out, struct glia_text type, struct glia_text payload);
    /* The agent's state from here on: JSON, any value. Without it the state stays what it was.
     * The last call counts. */
    int (*set_state)(struct glia_out *out, struct glia_text state);
    /* The step of the workflow that this agent is bound to is complete, or the whole run is; the
     * value is JSON ("" : the runtime's usual one). The last call counts. */
    int (*complete_step)(struct glia_out *out, struct glia_text value);
    int (*complete_run)(struct glia_out *out, struct glia_text value);
    /* The message cannot be handled, for this reason, in words. Nothing else that was said counts.
     * Returns non-zero: `return out->fail(out, ...)`. */
    int (*fail)(struct glia_out *out, struct glia_text reason);
};

/* Why init() or restore() failed, for people; ends in NUL. */
struct glia_error {
    char text[256];
};

/* Reserved for later versions of the runtime: must be NULL. */
typedef void glia_reserved(void);

struct glia_module {
    uint32_t abi;     /* GLIA_MODULE_ABI, and ... */
    uint32_t size;    /* ... sizeof(struct glia_module): GLIA_MODULE_HEAD is both */
    const char *name; /* what manifests call it: letters, digits, '_', '.', '-' */

    /* Prepare to handle messages of agents with this configuration (the node's `config` in the
     * manifest, a JSON object). *ret_instance is given to all other functions. NULL: nothing needs
     * preparing. 0, or another number with a reason in `error`. */
    int (*init)(struct glia_text config, void **ret_instance, struct glia_error *error);

    /* Handle one message. `state` is JSON; "" : the agent has none yet. 0, or another number: the
     * message was not handled, and nothing of what was said counts. */
    int (*handle)(void *instance, const struct glia_message *message, struct glia_text state,
                  struct glia_out *out);

    /* For modules that would rather keep an agent's state in memory than read it for each message.
     * With these two an instance belongs to one agent. restore() sets it to a state that snapshot()
     * has told, and is called only when the instance has another one; snapshot() is called after
     * each message and tells the state by set_state(). Both or none. */
    int (*snapshot)(void *instance, struct glia_out *out);
    int (*restore)(void *instance, struct glia_text state, struct glia_error *error);

    /* The instance is not needed any more; it may be made again. */
    void (*destroy)(void *instance);

    glia_reserved *recover, *migrate, *expand, *schedule_recover, *work_remaining, *aggregate;
    glia_reserved *reserved[8];
};

#ifdef __cplusplus
}
#endif

#endif
