/* event.c - the fields of each kind of event, and their JSON form. */
#include "core/event.h"

#include "base/check.h"
#include "base/limits.h"
#include "core/claims/claim.h"

#define X(name, word, fields) word,
static const char *const event_words[] = {GL_EVENTS(X) NULL};
#undef X
#define X(name, word) word,
static const char *const command_words[] = {GL_COMMANDS(X) NULL};
static const char *const state_words[] = {GL_EXEC_STATES(X) NULL};
static const char *const end_words[] = {GL_EXEC_ENDS(X) NULL};
static const char *const component_words[] = {GL_COMPONENTS(X) NULL};
#undef X

#define RF(member, type) GL_FIELD(gl_event_record, member, type, 0, "")

static const struct gl_field record_fields[] = {
    RF(kind, STR),  RF(id, STR),          RF(owner, STR),    RF(value, STR), RF(rev, U64),
    RF(token, U64), RF(owner_dead, BOOL), RF(damaged, BOOL), RF(live, BOOL),
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
    PF(name, STR), PF(slots, U64), PF(in_use, U64), PF(waiting, U64), PF(ours, U64),
};

static const struct gl_schema pool_schema = {
    .name = "pool",
    .bytes = sizeof(struct gl_event_pool),
    .fields = pool_fields,
    .fields_n = GL_COUNT(pool_fields),
};

#define NF(member, type) GL_FIELD(gl_event_peer, member, type, 0, "")

static const struct gl_field peer_fields[] = {
    NF(id, STR),         NF(left_ms, I64),
    NF(dead, BOOL),      NF(is_told, BOOL),
    NF(has_pools, BOOL), NF(takes, BOOL),
    NF(grace_ms, I64),   NF(labels, STR),
    NF(state, STR),      NF(stack, STR),
    NF(env_scope, STR),  GL_FIELD_SUB(gl_event_peer, pools, LIST, &pool_schema, 0, ""),
};

static const struct gl_schema peer_schema = {
    .name = "peer",
    .bytes = sizeof(struct gl_event_peer),
    .fields = peer_fields,
    .fields_n = GL_COUNT(peer_fields),
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

/* ---- the kinds ---- */

/* A field has the same name in JSON and in the struct of its kind. */
#define AT(label, path, ftype) \
    .name = #label, .type = GL_F_##ftype, .offset = offsetof(struct gl_event, path), .doc = ""
#define F(kind, member, ftype)         \
    {                                  \
        AT(member, kind.member, ftype) \
    }
#define FE(kind, member, its)                                \
    {                                                        \
        AT(member, kind.member, ENUM), .words = its##_words, \
    }
#define FL(kind, member, its)                                \
    {                                                        \
        AT(member, kind.member, LIST), .sub = &its##_schema, \
    }

#define HEAD                                                                           \
    GL_FIELD(gl_event, now, I64, GL_FF_REQUIRED | GL_FF_ALWAYS, ""),                   \
        GL_FIELD_ENUM(gl_event, type, event_words, GL_FF_REQUIRED | GL_FF_ALWAYS, ""), \
        GL_FIELD(gl_event, context, STR, 0, ""), GL_FIELD(gl_event, job, STR, 0, "")

#define RESULT(kind)                                                                              \
    {AT(output, kind.result.output, STR)}, {AT(end, kind.result.end, ENUM), .words = end_words},  \
        {AT(exit_code, kind.result.exit_code, I64)}, {AT(signal, kind.result.signal, I64)},       \
        {AT(started_at, kind.result.started_at, I64)}, {AT(ended_at, kind.result.ended_at, I64)}, \
    {                                                                                             \
        AT(error, kind.result.error, STR)                                                         \
    }

static const struct gl_field nothing_fields[] = {HEAD};

static const struct gl_field session_fields[] = {
    HEAD,
    F(session, session, STR),
    F(session, number, U64),
    F(session, sent_at, I64),
};

static const struct gl_field submit_fields[] = {
    HEAD,
    F(submit, request, U64),
    F(submit, run_id, STR),
    F(submit, request_key, STR),
    F(submit, flow_hash, STR),
    F(submit, flow, STR),
    F(submit, dedupe_key, STR),
    F(submit, stack, STR),
    F(submit, env_scope, STR),
    F(submit, inputs, STR),
    F(submit, retry_of, STR),
    F(submit, retry_from, STR),
};

static const struct gl_field command_fields[] = {
    HEAD,
    F(command, request, U64),
    FE(command, verb, command),
    F(command, step, STR),
    F(command, decision, STR),
    F(command, output, STR),
    F(command, who, STR),
    F(command, reason, STR),
    F(command, inbox, STR),
    F(command, sent_at, I64),
    F(command, send_as, STR),
};

static const struct gl_field claim_fields[] = {
    HEAD,
    F(claim, request, U64),
    {AT(act, claim.act, ENUM), .words = gl_claim_act_words},
    F(claim, key, STR),
    F(claim, owner, STR),
    F(claim, fence, U64),
    F(claim, lease_ms, I64),
    F(claim, once, BOOL),
    F(claim, work_type, STR),
    F(claim, error_detail, STR),
    F(claim, nonce, STR),
    F(claim, limit, U32),
};

static const struct gl_field done_fields[] = {
    HEAD,
    F(done, op, U64),
    F(done, guard, STR),
    F(done, code, I64),
    F(done, why, STR),
    F(done, number, U64),
    F(done, needs_help, BOOL),
};

static const struct gl_field loaded_fields[] = {
    HEAD,
    F(loaded, code, I64),
    F(loaded, flow_hash, STR),
    F(loaded, flow, STR),
    F(loaded, stack, STR),
    F(loaded, env_scope, STR),
    FL(loaded, records, record),
};

static const struct gl_field resolved_fields[] = {
    HEAD,
    F(resolved, code, I64),
    F(resolved, why, STR),
    F(resolved, number, U64),
    F(resolved, step_number, U32),
    F(resolved, facts, STR),
};

static const struct gl_field rates_fields[] = {
    HEAD,
    FL(rates, records, record),
};

static const struct gl_field answer_fields[] = {
    HEAD,
    F(answer, code, I64),
    F(answer, why, STR),
    F(answer, session, STR),
    F(answer, number, U64),
    FE(answer, by, component),
    F(answer, is_dead, BOOL),
    F(answer, time, I64),
    F(answer, needs_help, BOOL),
    FL(answer, records, record),
    FL(answer, entries, entry),
    FL(answer, sessions, peer),
    F(answer, names, STRS),
    F(answer, next, STR),
    F(answer, n, U64),
    F(answer, bytes, U64),
    F(answer, young, U64),
};

static const struct gl_field woken_fields[] = {
    HEAD,
    F(woken, word, STR),
};

static const struct gl_field refused_fields[] = {
    HEAD,
    F(refused, code, I64),
    F(refused, why, STR),
    F(refused, needs_help, BOOL),
};

static const struct gl_field found_fields[] = {
    HEAD,
    F(found, code, I64),
    F(found, more, BOOL),
    FL(found, entries, entry),
};

static const struct gl_field exec_up_fields[] = {
    HEAD,
    F(exec_up, epoch, STR),
};

static const struct gl_field exec_down_fields[] = {
    HEAD,
    F(exec_down, why, STR),
};

static const struct gl_field started_fields[] = {
    HEAD,
    F(started, attempt, STR),
    F(started, token, U64),
    F(started, code, I64),
    F(started, why, STR),
    F(started, number, U64),
};

static const struct gl_field attached_fields[] = {
    HEAD,
    F(attached, attempt, STR),
    F(attached, token, U64),
    F(attached, code, I64),
    FE(attached, state, state),
    RESULT(attached),
};

static const struct gl_field ended_fields[] = {
    HEAD,
    F(ended, attempt, STR),
    F(ended, token, U64),
    RESULT(ended),
};

static const struct gl_field beacon_fields[] = {
    HEAD,
    F(beacon, attempt, STR),
    F(beacon, token, U64),
};

static const struct gl_field said_fields[] = {
    HEAD,
    F(said, attempt, STR),
    F(said, token, U64),
    F(said, why, STR),
};

static const struct gl_field listed_fields[] = {
    HEAD,
    F(listed, code, I64),
    FL(listed, infos, info),
};

static const struct gl_field asked_fields[] = {
    HEAD,
    F(asked, due, I64),
};

static const struct gl_field clean_fields[] = {
    HEAD,
    F(clean, request, U64),
    F(clean, is_removal, BOOL),
    F(clean, code, I64),
    F(clean, why, STR),
    F(clean, name, STR),
    F(clean, keep_for, I64),
    F(clean, keep_jobs, I64),
};

#define X(kind, word, its)                  \
    [GL_EV_##kind] = {                      \
        .name = word,                       \
        .doc = "One event of the core.",    \
        .bytes = sizeof(struct gl_event),   \
        .fields = its##_fields,             \
        .fields_n = GL_COUNT(its##_fields), \
    },

static const struct gl_schema schemas[GL_EV_COUNT] = {GL_EVENTS(X)};
#undef X

const struct gl_schema *gl_event_schema(enum gl_event_type type)
{
    GL_ASSERT(type < GL_EV_COUNT);
    return &schemas[type];
}

void gl_event_encode(const struct gl_event *ev, struct gl_buf *out)
{
    struct gl_jw w;

    GL_ASSERT(ev->type < GL_EV_COUNT);
    GL_ASSERT(ev->now >= 0);
    gl_jw_init(&w, out);
    gl_jw_object(&w);
    gl_schema_write(gl_event_schema(ev->type), ev, &w, GL_FOR_STORE);
    gl_jw_end(&w);
}

int gl_event_read(const struct gl_json *j, gl_jnode object, struct gl_arena *a,
                  struct gl_event *ret, struct gl_why *reterr_why)
{
    static const struct gl_schema head = {.name = "event",
                                          .bytes = sizeof(struct gl_event),
                                          .fields = nothing_fields,
                                          .fields_n = GL_COUNT(nothing_fields)};
    struct gl_event ev;
    int rc = gl_schema_read(&head, j, object, false, a, &ev, reterr_why);

    if (rc == 0) { /* its kind is known now */
        rc = gl_schema_read(gl_event_schema(ev.type), j, object, true, a, &ev, reterr_why);
    }
    if (rc == 0) {
        GL_ASSERT(ev.type < GL_EV_COUNT);
        *ret = ev;
    }
    return rc;
}

int gl_event_decode(gl_str text, struct gl_arena *a, struct gl_event *ret,
                    struct gl_why *reterr_why)
{
    struct gl_json j;
    int rc = gl_json_parse(&j, text, SIZE_MAX, a, reterr_why);

    return rc != 0 ? rc : gl_event_read(&j, gl_json_root(&j), a, ret, reterr_why);
}

gl_str *gl_event_flow(struct gl_event *ev, gl_str *ret_hash)
{
    if (ev->type == GL_EV_SUBMIT) {
        *ret_hash = ev->submit.flow_hash;
        return &ev->submit.flow;
    }
    if (ev->type == GL_EV_LOADED) {
        *ret_hash = ev->loaded.flow_hash;
        return &ev->loaded.flow;
    }
    return NULL;
}

/* The event's field of this name; NULL if its kind has none. */
static const void *find(const struct gl_event *ev, const char *name)
{
    const struct gl_schema *s = gl_event_schema(ev->type);

    for (size_t i = 0; i < s->fields_n; i++) {
        if (strcmp(s->fields[i].name, name) == 0) {
            return (const char *)ev + s->fields[i].offset;
        }
    }
    return NULL;
}

gl_str gl_event_attempt(const struct gl_event *ev)
{
    const gl_str *at = find(ev, "attempt");

    return at != NULL ? *at : (gl_str){0};
}

int64_t gl_event_code(const struct gl_event *ev)
{
    const int64_t *at = find(ev, "code");

    return at != NULL ? *at : 0;
}
