#include "model/offer.h"

#include "base/check.h"
#include "model/job.h"

const char *const gl_taken_state_words[] = {
#define X(name, word) word,
    GL_TAKEN_STATES(X)
#undef X
        NULL};

#define F(member, type, doc) GL_FIELD(gl_taken_record, member, type, 0, doc)

static const struct gl_field fields[] = {
    GL_FIELD_ENUM(gl_taken_record, state, gl_taken_state_words, GL_FF_REQUIRED | GL_FF_ALWAYS,
                  "What has become of the offer."),
    F(session, STR, "The session that took or withdrew it."),
    F(node, STR, "The node of that session."),
    F(owner, STR, "The session that owned the job when it was taken."),
    F(token, U64, "The owner's token, which the executor was given."),
    F(epoch, STR, "The executor's epoch."),
    F(at, TIME, "When the attempt was decided."),
    F(end, STR, "How it ended."),
    F(exit_code, I64, "Its exit code."),
    F(signal, I64, "The signal that killed it."),
    F(started_at, TIME, "When its process started."),
    F(ended_at, TIME, "When it ended."),
    F(error, STR, "What went wrong."),
    F(output, RAW, "Its output."),
    GL_FIELD_ENUM(gl_taken_record, stopped, gl_stop_words, 0, "Why its node stopped it."),
    F(is_final, BOOL, "It would fail the same way again."),
};

const struct gl_schema gl_taken_schema = {
    .name = "taken",
    .doc = "An attempt on a node that does not own its job.",
    .bytes = sizeof(struct gl_taken_record),
    .fields = fields,
    .fields_n = GL_COUNT(fields),
};

gl_str gl_offer_index(struct gl_arena *a, const char *name, gl_str node)
{
    GL_ASSERT(node.n > 0);
    return gl_str_fmt(a, "%s/%.*s", name, GL_STR_ARG(node));
}

gl_str gl_offer_node_of(gl_str session)
{
    size_t n = session.n;

    while (n > 0 && session.p[n - 1] != '#') {
        n--;
    }
    return (gl_str){.p = session.p, .n = n > 0 ? n - 1 : 0};
}
