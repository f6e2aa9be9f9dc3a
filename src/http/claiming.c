/* claiming.c - claims over HTTP: bodies and arguments become requests to the node. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"
#include "http/text.h"

struct wish {
    gl_str key, owner, lease, work_type, error_detail, nonce;
    uint64_t fence;
    uint32_t limit;
    bool once;
};

#define FIELD(member, type, flags, doc) GL_FIELD(wish, member, type, flags, doc)
#define KEY FIELD(key, STR, GL_FF_REQUIRED, "The name of the right: 1 to 512 bytes.")
#define OWNER FIELD(owner, STR, GL_FF_REQUIRED, "Who has it, or wants it: 1 to 128 bytes.")
#define FENCE FIELD(fence, U64, GL_FF_REQUIRED, "The number that came with the claim.")

static const struct gl_field acquire_fields[] = {
    KEY,
    OWNER,
    FIELD(lease, STR, 0, "How long, as \"60s\" (which it is if absent) or \"5m\": 1 s to 1 day."),
    FIELD(work_type, STR, 0, "What kind of work, for the record: at most 128 bytes."),
    FIELD(once, BOOL, 0, "true: not if it is done already (`exists`)."),
    FIELD(nonce, STR, 0,
          "Random text. A request that is repeated with the same one gets the same claim again."),
};

static const struct gl_field renew_fields[] = {
    KEY,
    OWNER,
    FENCE,
    FIELD(lease, STR, 0, "How long from now on; as before if absent."),
};

static const struct gl_field complete_fields[] = {KEY, OWNER, FENCE};

static const struct gl_field fail_fields[] = {
    KEY,
    OWNER,
    FENCE,
    FIELD(error_detail, STR, 0, "Why, for the record: at most 4096 bytes."),
};

static const struct gl_field reclaim_fields[] = {
    FIELD(limit, U32, 0, "At most so many, up to 1000; 100 if absent."),
};

#define SCHEMA(word)                                                                    \
    const struct gl_schema gl_claiming_##word##_schema = {.name = #word,                \
                                                          .bytes = sizeof(struct wish), \
                                                          .fields = word##_fields,      \
                                                          .fields_n = GL_COUNT(word##_fields)}

SCHEMA(acquire);
SCHEMA(renew);
SCHEMA(complete);
SCHEMA(fail);
SCHEMA(reclaim);

static bool read_lease(struct gl_call *c, gl_str text)
{
    if (text.n > 0 && (!gl_when_parse_span(text, &c->rq.lease_ms) || c->rq.lease_ms == 0)) {
        gl_reply_error_at(c, GL_E_INVALID, "'lease' must be a duration, as \"60s\" or \"5m\"", NULL,
                          "lease", NULL);
        return false;
    }
    return true;
}

void gl_claiming_post(struct gl_call *c)
{
    struct gl_why why = {0};
    struct gl_json j;
    struct wish w;

    if (!gl_posted_json(c, &j)) {
        return;
    }
    if (gl_schema_read(c->route->body, &j, gl_json_root(&j), true, &c->arena, &w, &why) != 0) {
        gl_reply_error(c, GL_E_INVALID, why.text, "docs/claims.md lists the fields");
        return;
    }
    if (w.limit > GL_PAGE_MAX) {
        gl_reply_error_at(c, GL_E_INVALID, "'limit' must be a number from 0 to 1000", NULL, "limit",
                          NULL);
        return;
    }
    if (!read_lease(c, w.lease)) {
        return;
    }
    c->rq.claim_key = w.key;
    c->rq.claim_owner = w.owner;
    c->rq.fence = w.fence;
    c->rq.work_type = w.work_type;
    c->rq.error_detail = w.error_detail;
    c->rq.nonce = w.nonce;
    c->rq.once = w.once;
    c->rq.limit = w.limit;
    gl_call_ask(c);
}

void gl_claiming_list(struct gl_call *c)
{
    c->rq.status = gl_call_argument(c, "state");
    c->rq.claim_key = gl_call_argument(c, "prefix");
    c->rq.after = gl_call_argument(c, "after");
    c->rq.limit = (uint32_t)gl_routes_number(c, "limit", 0);
    gl_call_ask(c);
}

void gl_claiming_show(struct gl_call *c)
{
    char *key = gl_arena_copy(&c->arena, c->rq.claim_key.p, c->rq.claim_key.n);

    for (size_t i = 0; i < c->rq.claim_key.n; i++) {
        key[i] = key[i] == GL_TEXT_SLASH ? '/' : key[i];
    }
    c->rq.claim_key.p = key;
    gl_call_ask(c);
}
