#include "exec/module_call.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

struct instance {
    struct gl_link link;
    gl_str key;
    void *data;
    bool has_state;      /* it holds `state`; for modules that keep state in memory */
    struct gl_buf state; /* the last result of snapshot() */
    char text[];
};

/* The parts of a call, as slices of its input. */
struct module_input {
    struct gl_json j;
    gl_str config, state; /* state "" : none */
    struct glia_message message;
};

static struct glia_text text_of(gl_str s)
{
    return (struct glia_text){.bytes = s.p != NULL ? s.p : "", .length = s.n};
}

static gl_str str_of(struct glia_text t)
{
    return (gl_str){.p = t.bytes, .n = t.bytes != NULL ? t.length : 0};
}

/* ---- checking a module ---- */

int gl_module_check(const struct glia_module *m, struct gl_why *reterr_why)
{
    if (m->abi != GLIA_MODULE_ABI) {
        return gl_why(reterr_why, GL_E_VERSION,
                      "it was built for version %u of glia/module.h, but this release has version "
                      "%u: rebuild it with the header of this release",
                      m->abi, GLIA_MODULE_ABI);
    }
    if (m->size < offsetof(struct glia_module, reserved)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "its struct glia_module has %u bytes, not %zu: begin it with "
                      "GLIA_MODULE_HEAD",
                      m->size, sizeof(*m));
    }
    if (m->name == NULL || !gl_str_is_id((gl_str){.p = m->name, .n = strnlen(m->name, 256)})) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "its name must be 1 to %d letters, digits, '_', '.' and '-'",
                      GL_ID_BYTES_MAX);
    }
    if (m->handle == NULL) {
        return gl_why(reterr_why, GL_E_INVALID, "it has no handle()");
    }
    if ((m->snapshot == NULL) != (m->restore == NULL)) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "it has only one of snapshot() and restore(); set both or neither");
    }
    if (m->recover || m->migrate || m->expand || m->schedule_recover || m->work_remaining ||
        m->aggregate) {
        return gl_why(reterr_why, GL_E_INVALID,
                      "it sets a reserved callback: recover, migrate, expand, "
                      "schedule_recover, work_remaining and aggregate must be NULL");
    }
    return 0;
}

/* ---- output of a module ---- */

static struct gl_module_output *output_of(struct glia_out *out)
{
    return GL_CONTAINER(out, struct gl_module_output, face);
}

/* The first error is kept. */
#define FAIL_CALL(output, ...) \
    ((output)->why.code != 0 ? (output)->why.code : gl_why(&(output)->why, GL_E_STATE, __VA_ARGS__))

/* Check one piece of JSON. `what` and `name` are for error messages. */
static int check_json(struct gl_module_output *s, gl_str json, const char *what, gl_str name,
                      struct gl_json *ret)
{
    struct gl_why why;
    s->bytes += json.n;
    if (s->bytes > GL_STDOUT_BYTES_MAX) {
        return FAIL_CALL(s, "%s %.*s: one message may produce at most %d bytes", what,
                         GL_STR_ARG(name), GL_STDOUT_BYTES_MAX);
    }
    gl_arena_reset(&s->arena);
    if (gl_json_parse(ret, json, GL_STDOUT_BYTES_MAX, &s->arena, &why) != 0) {
        return FAIL_CALL(s, "%s %.*s: invalid JSON: %s", what, GL_STR_ARG(name), why.text);
    }
    if (ret->depth > GL_VALUE_DEPTH_MAX) {
        return FAIL_CALL(s, "%s %.*s: nested deeper than %d", what, GL_STR_ARG(name),
                         GL_VALUE_DEPTH_MAX);
    }
    return 0;
}

static int check_name(struct gl_module_output *s, gl_str name, const char *what)
{
    if (name.n == 0 || name.n > GL_NAME_BYTES_MAX || !gl_str_is_utf8(name, NULL)) {
        return FAIL_CALL(s, "%s: a name must be UTF-8 of 1 to %d bytes", what, GL_NAME_BYTES_MAX);
    }
    return 0;
}

static void add_item(struct gl_buf *list, gl_str item)
{
    if (list->n > 0) {
        gl_buf_char(list, ',');
    }
    gl_buf_str(list, item);
}

static int count_emit(struct gl_module_output *s)
{
    if (++s->emits_n > GL_EMITS_MAX) {
        return FAIL_CALL(s, "one message may produce at most %d messages", GL_EMITS_MAX);
    }
    return 0;
}

static int add_message(struct gl_module_output *s, const char *what, gl_str to, gl_str type,
                       gl_str body)
{
    struct gl_json j;
    struct gl_jw w;
    body = body.n > 0 ? body : GL_S("null");
    if (s->why.code != 0 || check_name(s, type, what) != 0 ||
        check_json(s, body, what, type, &j) != 0 || count_emit(s) != 0) {
        return s->why.code;
    }
    if (s->emits.n > 0) {
        gl_buf_char(&s->emits, ',');
    }
    gl_jw_init(&w, &s->emits);
    gl_jw_object(&w);
    if (to.n > 0) {
        gl_jw_name(&w, "to");
        gl_jw_str(&w, to);
    }
    gl_jw_name(&w, "type");
    gl_jw_str(&w, type);
    gl_jw_name(&w, "body");
    gl_jw_raw(&w, body);
    gl_jw_end(&w);
    return 0;
}

static int out_emit(struct glia_out *out, struct glia_text type, struct glia_text body)
{
    return add_message(output_of(out), "emit", (gl_str){0}, str_of(type), str_of(body));
}

static int out_emit_to(struct glia_out *out, struct glia_text agent, struct glia_text type,
                       struct glia_text body)
{
    struct gl_module_output *s = output_of(out);
    return check_name(s, str_of(agent), "emit_to") != 0
               ? s->why.code
               : add_message(s, "emit_to", str_of(agent), str_of(type), str_of(body));
}

static int out_emit_message(struct glia_out *out, struct glia_text message)
{
    struct gl_module_output *s = output_of(out);
    struct gl_json j;
    if (s->why.code != 0 || check_json(s, str_of(message), "emit_message", (gl_str){0}, &j) != 0) {
        return s->why.code;
    }
    if (!gl_json_is(gl_json_root(&j), GL_JSON_OBJECT) ||
        !gl_json_is(gl_json_get(&j, gl_json_root(&j), "type"), GL_JSON_STRING)) {
        return FAIL_CALL(s, "emit_message: a message must be an object with a type");
    }
    if (count_emit(s) != 0) {
        return s->why.code;
    }
    add_item(&s->emits, gl_json_raw(&j, gl_json_root(&j)));
    return 0;
}

static int out_event(struct glia_out *out, struct glia_text type, struct glia_text payload)
{
    struct gl_module_output *s = output_of(out);
    struct gl_json j;
    struct gl_jw w;
    gl_str json = payload.length > 0 ? str_of(payload) : GL_S("{}");
    if (s->why.code != 0 || check_name(s, str_of(type), "event") != 0 ||
        check_json(s, json, "event", str_of(type), &j) != 0) {
        return s->why.code;
    }
    if (!gl_json_is(gl_json_root(&j), GL_JSON_OBJECT)) {
        return FAIL_CALL(s, "event %.*s: its payload is %s, but must be an object",
                         GL_STR_ARG(str_of(type)), gl_json_type_name(gl_json_root(&j)));
    }
    if (s->events.n > 0) {
        gl_buf_char(&s->events, ',');
    }
    gl_jw_init(&w, &s->events);
    gl_jw_object(&w);
    gl_jw_name(&w, "type");
    gl_jw_str(&w, str_of(type));
    gl_jw_name(&w, "payload");
    gl_jw_raw(&w, json);
    gl_jw_end(&w);
    return 0;
}

static int set_value(struct gl_module_output *s, struct gl_buf *to, bool *has, const char *what,
                     gl_str json)
{
    struct gl_json j;
    if (s->why.code != 0 || check_json(s, json, what, (gl_str){0}, &j) != 0) {
        return s->why.code;
    }
    gl_buf_reset(to);
    gl_buf_str(to, json);
    *has = true;
    return 0;
}

static int out_set_state(struct glia_out *out, struct glia_text state)
{
    struct gl_module_output *s = output_of(out);
    if (s->why.code == 0 && state.length > GL_STATE_BYTES_MAX) {
        return FAIL_CALL(s, "set_state: a state may have at most %d bytes, not %zu",
                         GL_STATE_BYTES_MAX, state.length);
    }
    return set_value(s, &s->state, &s->has_state, "set_state", str_of(state));
}

static int out_complete_step(struct glia_out *out, struct glia_text value)
{
    struct gl_module_output *s = output_of(out);
    return set_value(s, &s->step, &s->completes_step, "complete_step",
                     value.length > 0 ? str_of(value) : GL_S("true"));
}

static int out_complete_run(struct glia_out *out, struct glia_text value)
{
    struct gl_module_output *s = output_of(out);
    return set_value(s, &s->run, &s->completes_run, "complete_run",
                     value.length > 0 ? str_of(value) : GL_S("true"));
}

static int out_fail(struct glia_out *out, struct glia_text reason)
{
    struct gl_module_output *s = output_of(out);
    gl_str r = str_of(reason);
    r.n = r.n < GL_REASON_BYTES_MAX ? r.n : GL_REASON_BYTES_MAX;
    return FAIL_CALL(s, "%.*s",
                     GL_STR_ARG(r.n > 0 ? r : GL_S("the module failed without a reason")));
}

static void output_reset(struct gl_module_output *s)
{
    gl_buf_reset(&s->state);
    gl_buf_reset(&s->events);
    gl_buf_reset(&s->emits);
    s->has_state = s->completes_step = s->completes_run = false;
    s->emits_n = s->bytes = 0;
    s->why.code = 0;
}

static void output_write(const struct gl_module_output *s, struct gl_buf *out)
{
    gl_buf_reset(out);
    gl_buf_char(out, '{');
    if (s->has_state) {
        gl_buf_c(out, "\"next_state\":");
        gl_buf_str(out, gl_buf_view(&s->state));
        gl_buf_char(out, ',');
    }
    /* Always present, so that an empty output has the same shape. */
    gl_buf_c(out, "\"events\":[");
    gl_buf_str(out, gl_buf_view(&s->events));
    gl_buf_c(out, "],\"emit_messages\":[");
    gl_buf_str(out, gl_buf_view(&s->emits));
    gl_buf_char(out, ']');
    if (s->completes_step) {
        gl_buf_c(out, ",\"complete_step\":");
        gl_buf_str(out, gl_buf_view(&s->step));
    }
    if (s->completes_run) {
        gl_buf_c(out, ",\"complete_run\":");
        gl_buf_str(out, gl_buf_view(&s->run));
    }
    gl_buf_char(out, '}');
}

/* ---- input of a call ---- */

static gl_str raw_of(const struct gl_json *j, gl_jnode object, const char *key,
                     const char *otherwise)
{
    gl_jnode n = gl_json_get(j, object, key);
    return n != NULL ? gl_json_raw(j, n) : gl_str_of(otherwise);
}

static void read_envelope(struct module_input *c, gl_jnode envelope, struct gl_arena *a)
{
    static const struct {
        const char *key;
        size_t at;
    } texts[] = {
        {"message_id", offsetof(struct glia_message, message_id)},
        {"from", offsetof(struct glia_message, from)},
        {"to", offsetof(struct glia_message, to)},
        {"type", offsetof(struct glia_message, type)},
        {"class", offsetof(struct glia_message, kind)},
        {"timestamp", offsetof(struct glia_message, timestamp)},
        {"correlation_id", offsetof(struct glia_message, correlation_id)},
        {"causation_id", offsetof(struct glia_message, causation_id)},
        {"content_type", offsetof(struct glia_message, content_type)},
        {"content_encoding", offsetof(struct glia_message, content_encoding)},
    };
    struct glia_message *m = &c->message;
    int64_t attempt = 1;
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        struct glia_text t =
            text_of(gl_json_str(&c->j, gl_json_get(&c->j, envelope, texts[i].key), a));
        memcpy((char *)m + texts[i].at, &t, sizeof(t));
    }
    (void)gl_json_i64(&c->j, gl_json_get(&c->j, envelope, "attempt"), &attempt);
    (void)gl_json_i64(&c->j, gl_json_get(&c->j, envelope, "priority"), &m->priority);
    (void)gl_json_i64(&c->j, gl_json_get(&c->j, envelope, "ttl_ms"), &m->ttl_ms);
    m->attempt = attempt > 0 && attempt <= UINT32_MAX ? (uint32_t)attempt : 1;
}

static int read_call(struct module_input *c, gl_str input, struct gl_arena *a,
                     struct gl_why *reterr_why)
{
    struct gl_json *j = &c->j;
    int err = gl_json_parse(j, input, input.n, a, reterr_why);
    if (err != 0) {
        return gl_why_prefix(reterr_why, "the input of the call");
    }
    gl_jnode root = gl_json_root(j), message = gl_json_get(j, root, "message");
    if (!gl_json_is(message, GL_JSON_OBJECT)) {
        return gl_why(reterr_why, GL_E_INVALID, "the input of the call has no message");
    }
    c->message = (struct glia_message){.size = sizeof(c->message)};
    read_envelope(c, gl_json_get(j, message, "envelope"), a);
    c->message.job_id = text_of(gl_json_str(j, gl_json_get(j, root, "job_id"), a));
    c->message.agent_id = text_of(gl_json_str(j, gl_json_get(j, root, "agent_id"), a));
    c->message.headers = text_of(raw_of(j, message, "headers", "{}"));
    c->message.body = text_of(raw_of(j, message, "body", "null"));
    c->message.artifacts = text_of(raw_of(j, message, "artifacts", "[]"));
    c->message.stream = text_of(raw_of(j, message, "stream", "null"));
    c->config = raw_of(j, root, "config", "{}");
    c->state = raw_of(j, root, "state", "");
    c->state = gl_str_is(c->state, "null") ? (gl_str){0} : c->state;
    return 0;
}

/* ---- instances ---- */

static void drop_instance(struct gl_module_box *b, struct instance *i)
{
    if (b->module->destroy != NULL) {
        b->module->destroy(i->data);
    }
    gl_list_remove(&i->link);
    (void)gl_map_remove(&b->instances, i->key);
    gl_buf_done(&i->state);
    gl_mem_free(i);
}

static gl_str make_key(struct gl_module_box *b, const struct module_input *c)
{
    gl_buf_reset(&b->key);
    if (b->module->restore != NULL) {
        gl_buf_str(&b->key, str_of(c->message.job_id));
        gl_buf_char(&b->key, '\0');
        gl_buf_str(&b->key, str_of(c->message.agent_id));
        gl_buf_char(&b->key, '\0');
    }
    gl_buf_str(&b->key, c->config);
    return gl_buf_view(&b->key);
}

static int make_instance(struct gl_module_box *b, const struct module_input *c, gl_str key,
                         struct instance **ret, struct gl_why *reterr_why)
{
    struct glia_error error = {0};
    void *data = NULL;
    int r = b->module->init != NULL ? b->module->init(text_of(c->config), &data, &error) : 0;
    if (r != 0) {
        error.text[sizeof(error.text) - 1] = 0;
        return gl_why(reterr_why, GL_E_STATE, "init() failed: %s",
                      error.text[0] != 0 ? error.text : "no reason given");
    }
    if (gl_map_count(&b->instances) >= GL_MODULE_INSTANCES_MAX) {
        drop_instance(b, GL_CONTAINER(gl_list_first(&b->order), struct instance, link));
    }
    struct instance *i = gl_mem_alloc(sizeof(*i) + key.n);
    memcpy(i->text, key.p, key.n);
    i->key = (gl_str){.p = i->text, .n = key.n};
    i->data = data;
    gl_list_init(&i->link);
    gl_list_push(&b->order, &i->link);
    gl_map_add(&b->instances, i->key, i);
    *ret = i;
    return 0;
}

/* Find or create an instance and bring it to the state of the call, if there is one. */
static int find_instance(struct gl_module_box *b, const struct module_input *c,
                         struct instance **ret, struct gl_why *reterr_why)
{
    gl_str key = make_key(b, c);
    struct instance *i = gl_map_find(&b->instances, key);
    struct glia_error error = {0};
    bool fits = i != NULL &&
                (b->module->restore == NULL ||
                 (c->state.n == 0 ? !i->has_state
                                  : i->has_state && gl_str_eq(gl_buf_view(&i->state), c->state)));
    if (i != NULL && (fits || c->state.n > 0)) {
        gl_list_remove(&i->link);
        gl_list_push(&b->order, &i->link);
    } else {
        if (i != NULL) {
            drop_instance(b, i); /* the agent starts over */
        }
        int err = make_instance(b, c, key, &i, reterr_why);
        if (err != 0) {
            return err;
        }
        fits = b->module->restore == NULL || c->state.n == 0;
    }
    if (!fits && b->module->restore(i->data, text_of(c->state), &error) != 0) {
        error.text[sizeof(error.text) - 1] = 0;
        drop_instance(b, i);
        return gl_why(reterr_why, GL_E_STATE, "restore() failed: %s",
                      error.text[0] != 0 ? error.text : "no reason given");
    }
    *ret = i;
    return 0;
}

/* ---- a call ---- */

static int handle(struct gl_module_box *b, const struct module_input *c, struct instance *i)
{
    struct gl_module_output *s = &b->output;
    output_reset(s);
    int r = b->module->handle(i->data, &c->message, text_of(c->state), &s->face);
    if (r != 0 && s->why.code == 0) {
        return gl_why(&s->why, GL_E_STATE, "handle() returned %d", r);
    }
    if (s->why.code == 0 && b->module->snapshot != NULL) {
        r = b->module->snapshot(i->data, &s->face);
        if (s->why.code == 0 && (r != 0 || !s->has_state)) {
            return gl_why(&s->why, GL_E_STATE, "snapshot() %s",
                          r != 0 ? "failed" : "did not call set_state()");
        }
    }
    return s->why.code;
}

int gl_module_call(struct gl_module_box *b, gl_str input, gl_str *ret, struct gl_why *reterr_why)
{
    struct instance *i = NULL;
    struct module_input c;
    gl_arena_reset(&b->arena);
    int err = read_call(&c, input, &b->arena, reterr_why);
    err = err != 0 ? err : find_instance(b, &c, &i, reterr_why);
    if (err != 0) {
        return err;
    }
    if (handle(b, &c, i) != 0) {
        if (b->module->restore != NULL) {
            drop_instance(b, i); /* its state is unknown now */
        }
        return gl_why(reterr_why, GL_E_STATE, "%s", b->output.why.text);
    }
    if (b->module->restore != NULL) {
        gl_buf_reset(&i->state);
        gl_buf_str(&i->state, gl_buf_view(&b->output.state));
        i->has_state = true;
    }
    output_write(&b->output, &b->document);
    *ret = gl_buf_view(&b->document);
    return 0;
}

void gl_module_box_init(struct gl_module_box *b, const struct glia_module *module)
{
    *b = (struct gl_module_box){.module = module};
    gl_map_init(&b->instances);
    gl_list_init(&b->order);
    b->output.face = (struct glia_out){
        .size = sizeof(b->output.face),
        .emit = out_emit,
        .emit_to = out_emit_to,
        .emit_message = out_emit_message,
        .event = out_event,
        .set_state = out_set_state,
        .complete_step = out_complete_step,
        .complete_run = out_complete_run,
        .fail = out_fail,
    };
}

void gl_module_box_done(struct gl_module_box *b)
{
    struct instance *i;
    for (size_t n = 0; (i = gl_map_next(&b->instances, &n)) != NULL;) {
        drop_instance(b, i);
    }
    struct gl_buf *all[] = {&b->key,          &b->document,    &b->output.state, &b->output.events,
                            &b->output.emits, &b->output.step, &b->output.run};
    for (size_t n = 0; n < GL_COUNT(all); n++) {
        gl_buf_done(all[n]);
    }
    gl_arena_done(&b->arena);
    gl_arena_done(&b->output.arena);
    gl_map_done(&b->instances);
}
