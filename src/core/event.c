#include "core/event.h"

#include "base/check.h"
#include "base/limits.h"

#define X(name, word) word,
static const char *const event_words[] = {GL_EVENTS(X) NULL};
static const char *const command_words[] = {GL_COMMANDS(X) NULL};
static const char *const state_words[] = {GL_EXEC_STATES(X) NULL};
static const char *const end_words[] = {GL_EXEC_ENDS(X) NULL};
static const char *const component_words[] = {GL_COMPONENTS(X) NULL};
#undef X

#define RF(member, type) GL_FIELD(gl_event_record, member, type, 0, "")

static const struct gl_field record_fields[] = {
    RF(kind, STR), RF(id, STR),    RF(owner, STR),       RF(value, STR),
    RF(rev, U64),  RF(token, U64), RF(owner_dead, BOOL), RF(damaged, BOOL),
};

static const struct gl_schema record_schema = {
    .name = "record",
    .bytes = sizeof(struct gl_event_record),
    .fields = record_fields,
    .fields_n = GL_COUNT(record_fields),
};

static const struct gl_field entry_fields[] = {
    GL_FIELD(gl_event_entry, score, I64, 0, ""), GL_FIELD(gl_event_entry, id, STR, 0, ""),
    GL_FIELD(gl_event_entry, rev, U64, 0, ""),   GL_FIELD(gl_event_entry, owner, STR, 0, ""),
    GL_FIELD(gl_event_entry, needs, STR, 0, ""), GL_FIELD(gl_event_entry, is_wanted, BOOL, 0, ""),
};

static const struct gl_schema entry_schema = {
    .name = "entry",
    .bytes = sizeof(struct gl_event_entry),
    .fields = entry_fields,
    .fields_n = GL_COUNT(entry_fields),
};

#define PF(member, type) GL_FIELD(gl_event_pool, member, type, 0, "")

static const struct gl_field pool_fields[] = {
    PF(name, STR),
    PF(slots, U64),
    PF(in_use, U64),
    PF(waiting, U64),
};

static const struct gl_schema pool_schema = {
    .name = "pool",
    .bytes = sizeof(struct gl_event_pool),
    .fields = pool_fields,
    .fields_n = GL_COUNT(pool_fields),
};

#define SF(member, type) GL_FIELD(gl_event_session, member, type, 0, "")

static const struct gl_field session_fields[] = {
    SF(id, STR),
    SF(left_ms, I64),
    SF(dead, BOOL),
    SF(is_told, BOOL),
    SF(has_pools, BOOL),
    SF(state, STR),
    SF(stack, STR),
    SF(env_scope, STR),
    GL_FIELD_SUB(gl_event_session, pools, LIST, &pool_schema, 0, ""),
};

static const struct gl_schema session_schema = {
    .name = "session",
    .bytes = sizeof(struct gl_event_session),
    .fields = session_fields,
    .fields_n = GL_COUNT(session_fields),
};

#define IF(member, type) GL_FIELD(gl_event_info, member, type, 0, "")

static const struct gl_field info_fields[] = {
    IF(context, STR),
    IF(job, STR),
    IF(attempt, STR),
    IF(token, U64),
    GL_FIELD_ENUM(gl_event_info, state, state_words, 0, ""),
};

static const struct gl_schema info_schema = {
    .name = "info",
    .bytes = sizeof(struct gl_event_info),
    .fields = info_fields,
    .fields_n = GL_COUNT(info_fields),
};

#define EF(member, type) GL_FIELD(gl_event, member, type, 0, "")
#define EE(member, words) GL_FIELD_ENUM(gl_event, member, words, 0, "")
#define EL(member, sub) GL_FIELD_SUB(gl_event, member, LIST, &sub, 0, "")

static const struct gl_field event_fields[] = {
    GL_FIELD(gl_event, now, I64, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
    GL_FIELD_ENUM(gl_event, type, event_words, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),
    EF(context, STR),
    EF(job, STR),
    EF(attempt, STR),
    EF(token, U64),
    EF(op, U64),
    EF(guard, STR),
    EF(request, U64),
    EF(code, I64),
    EF(why, STR),
    EF(session, STR),
    EF(epoch, STR),
    EF(number, U64),
    EE(by, component_words),
    EF(is_dead, BOOL),
    EF(time, I64),
    EF(needs_help, BOOL),
    EF(run_id, STR),
    EF(request_key, STR),
    EF(flow_hash, STR),
    EF(flow, STR),
    EF(dedupe_key, STR),
    EF(stack, STR),
    EF(env_scope, STR),
    EF(inputs, STR),
    EF(retry_of, STR),
    EF(retry_from, STR),
    EF(step_number, U32),
    EF(facts, STR),
    EE(verb, command_words),
    EF(step, STR),
    EF(decision, STR),
    EF(output, STR),
    EF(who, STR),
    EF(reason, STR),
    EF(inbox, STR),
    EF(sent_at, I64),
    EE(state, state_words),
    EE(end, end_words),
    EF(exit_code, I64),
    EF(signal, I64),
    EF(started_at, I64),
    EF(ended_at, I64),
    EF(error, STR),
    EF(more, BOOL),
    EL(records, record_schema),
    EL(entries, entry_schema),
    EL(infos, info_schema),
    EL(sessions, session_schema),
};

const struct gl_schema gl_event_schema = {
    .name = "event",
    .doc = "One thing the core was told.",
    .bytes = sizeof(struct gl_event),
    .fields = event_fields,
    .fields_n = GL_COUNT(event_fields),
};

/* Most of what happens is of a few types, and an event of one type uses few of the fields. Looking
 * at all of them would take longer than writing those. */
#define EHEAD                                                                           \
    GL_FIELD(gl_event, now, I64, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),                    \
        GL_FIELD_ENUM(gl_event, type, event_words, GL_FF_ALWAYS, ""), EF(context, STR), \
        EF(job, STR)

static const struct gl_field tick_fields[] = {EHEAD};
static const struct gl_field done_fields[] = {EHEAD, EF(op, U64), EF(code, I64), EF(why, STR),
                                              EF(number, U64)};
static const struct gl_field started_fields[] = {EHEAD,         EF(attempt, STR), EF(token, U64),
                                                 EF(code, I64), EF(why, STR),     EF(number, U64)};
static const struct gl_field ended_fields[] = {
    EHEAD,           EF(attempt, STR),    EF(token, U64),
    EF(output, STR), EE(end, end_words),  EF(exit_code, I64),
    EF(signal, I64), EF(started_at, I64), EF(ended_at, I64),
    EF(error, STR),
};
static const struct gl_field submit_fields[] = {
    EHEAD,           EF(request, U64),     EF(run_id, STR), EF(flow_hash, STR),
    EF(flow, STR),   EF(dedupe_key, STR),  EF(stack, STR),  EF(env_scope, STR),
    EF(inputs, STR), EF(request_key, STR),
};

#define USUAL(fs)                                                                \
    {                                                                            \
        .bytes = sizeof(struct gl_event), .fields = fs, .fields_n = GL_COUNT(fs) \
    }

static const struct gl_schema usual_schemas[GL_EV_COUNT] = {
    [GL_EV_TICK] = USUAL(tick_fields),       [GL_EV_DONE] = USUAL(done_fields),
    [GL_EV_STARTED] = USUAL(started_fields), [GL_EV_ENDED] = USUAL(ended_fields),
    [GL_EV_SUBMIT] = USUAL(submit_fields),
};

static size_t bytes_of(const struct gl_field *f)
{
    return f->type == GL_F_STR ? sizeof(gl_str) : f->type == GL_F_ENUM ? 1 : sizeof(uint64_t);
}

/* Is everything else zero? If padding is not, the long way is taken. */
static bool has_only(const struct gl_event *ev, const struct gl_schema *s)
{
    static const struct gl_event zero;
    struct gl_event rest;

    memcpy(&rest, ev, sizeof(rest));
    for (size_t i = 0; i < s->fields_n; i++) {
        memset((char *)&rest + s->fields[i].offset, 0, bytes_of(&s->fields[i]));
    }
    return memcmp(&rest, &zero, sizeof(rest)) == 0;
}

void gl_event_encode(const struct gl_event *ev, struct gl_buf *out)
{
    const struct gl_schema *usual = &usual_schemas[ev->type];
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_schema_write(usual->fields_n > 0 && has_only(ev, usual) ? usual : &gl_event_schema, ev, &w,
                    GL_FOR_STORE);
    gl_jw_end(&w);
}

int gl_event_decode(gl_str text, struct gl_arena *a, struct gl_event *ret,
                    struct gl_why *reterr_why)
{
    struct gl_json j;
    struct gl_event ev;
    int rc = gl_json_parse(&j, text, SIZE_MAX, a, reterr_why);

    if (rc == 0) {
        rc = gl_schema_read(&gl_event_schema, &j, gl_json_root(&j), true, a, &ev, reterr_why);
    }
    if (rc == 0) {
        *ret = ev;
    }
    return rc;
}
