/* claims.c - requests for one claim: read, decide, write, answer; and their lines in a snapshot. */
#include "core/claims/claims_parts.h"

#include "base/limits.h"
#include "core/component.h"

enum { ROUNDS_MAX = 16, RECLAIM_DEFAULT = 100 };

static const char *const phase_words[] = {
#define X(name, word) word,
    GL_CLAIM_PHASES(X)
#undef X
        NULL};

#define AT(label, member, ftype) \
    .name = #label, .type = GL_F_##ftype, .offset = offsetof(struct gl_claim_op, member)
#define F(label, member, ftype)   \
    {                             \
        AT(label, member, ftype), \
    }

#define REQUEST_FIELDS                                                                        \
    {AT(phase, phase, ENUM), .flags = GL_FF_ALWAYS, .words = phase_words},                    \
        {AT(act, act, ENUM), .flags = GL_FF_ALWAYS, .words = gl_claim_act_words},             \
        F(request, request, U64), F(key, args.key, STR), F(owner, args.owner, STR),           \
        F(fence, args.fence, U64), F(lease_ms, args.lease_ms, I64), F(once, args.once, BOOL), \
        F(work_type, args.work_type, STR), F(error_detail, args.error_detail, STR),           \
        F(nonce, args.nonce, STR), F(limit, limit, U32), F(tries, rounds, U32),               \
        F(was_unknown, was_unknown, BOOL), F(time_call, time_call, U64),                      \
        F(record_call, record_call, U64), F(error, error, I64), F(why, why, STR),             \
        F(now, now, I64), F(value, value, STR), F(rev, rev, U64), F(shown, shown, STR),       \
        F(attempt, attempt, U32)

static const struct gl_field request_fields[] = {REQUEST_FIELDS};

static const struct gl_schema request_schema = {.name = "request",
                                                .bytes = sizeof(struct gl_claim_op),
                                                .fields = request_fields,
                                                .fields_n = GL_COUNT(request_fields)};

/* ---- requests in memory ---- */

static struct gl_claim_op *request_of(struct gl_link *l)
{
    return GL_CONTAINER(l, struct gl_claim_op, link);
}

static struct gl_claim_op *request_new(struct gl_core *c)
{
    struct gl_claim_op *r = gl_pool_alloc(&c->mem, sizeof(*r));

    gl_list_init(&r->link);
    gl_list_init(&r->changes);
    gl_list_push(&c->claims.under_way, &r->link);
    return r;
}

static void request_drop(struct gl_core *c, struct gl_claim_op *r)
{
    GL_ASSERT(!gl_list_empty(&r->link));
    gl_list_remove(&r->link);
    gl_reclaim_free_changes(c, r);
    gl_core_disown(c, &request_schema, r);
    gl_pool_free(&c->mem, r, sizeof(*r));
}

void gl_claims_init(struct gl_core *c)
{
    gl_list_init(&c->claims.under_way);
}

void gl_claims_done(struct gl_core *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->claims.under_way)) != NULL;) {
        request_drop(c, request_of(l));
    }
    GL_ASSERT(gl_list_empty(&c->claims.under_way));
}

/* ---- answering ---- */

static void count(struct gl_core *c, const struct gl_claim_op *r, int code)
{
    struct gl_claim_counts *n = &c->claims.counts;
    bool is_fine = code == 0;

    GL_ASSERT(code <= 0);
    GL_ASSERT(GL_IMPLIES(is_fine && r->act == GL_CLAIM_ACQUIRE, r->attempt > 0));
    switch ((enum gl_claim_act)r->act) {
    case GL_CLAIM_ACQUIRE:
        n->acquired += is_fine;
        n->steals += is_fine && r->attempt > 1;
        n->busy += code == GL_E_BUSY;
        break;
    case GL_CLAIM_RENEW:
        n->renewed += is_fine;
        n->renew_failed += !is_fine;
        break;
    case GL_CLAIM_COMPLETE:
        n->completed += is_fine;
        break;
    case GL_CLAIM_FAIL:
        n->failed += is_fine;
        break;
    case GL_CLAIM_RECLAIM:
        for (const struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
            n->expired += GL_CONTAINER(l, struct gl_claim_change, link)->is_done;
        }
        break;
    case GL_CLAIM_ACT_COUNT:
        GL_UNREACHABLE();
    }
    GL_ASSERT(n->steals <= n->acquired);
}

static void reply(struct gl_core *c, uint64_t request, int code, gl_str why, gl_str body)
{
    struct gl_effect *e = gl_effect_add(c->out, GL_FX_REPLY, 0);

    GL_ASSERT(GL_IMPLIES(code == 0, body.n > 0));
    GL_ASSERT(GL_IMPLIES(code == 0, why.n == 0));
    e->context = gl_str_dup(c->out->arena, c->context);
    e->request = request;
    e->code = gl_err_code(code);
    e->reason = gl_err_reason(code);
    e->why = gl_str_dup(c->out->arena, why);
    e->body = body;
}

void gl_claims_finish(struct gl_core *c, struct gl_claim_op *r, int code, gl_str why, gl_str body)
{
    GL_ASSERT(GL_IMPLIES(code == 0 && r->act != GL_CLAIM_RECLAIM, r->phase == GL_CLAIM_WRITING));
    count(c, r, gl_err_code(code));
    reply(c, r->request, code, why, body);
    request_drop(c, r);
}

void gl_claims_fail(struct gl_core *c, struct gl_claim_op *r, int code, gl_str why)
{
    GL_ASSERT(code != 0);
    if (r->was_unknown && !GL_PLANT(88)) { /* planted: an earlier commit counts as not made */
        why = gl_str_fmt(c->out->arena, "the outcome is unknown: %.*s", GL_STR_ARG(why));
        code = GL_R_OUTCOME_UNKNOWN;
    }
    gl_claims_finish(c, r, code, why, (gl_str){0});
}

/* The store may not be called any more. An earlier commit that may have been made is reported as an
 * unknown outcome. */
static void fail_stopped(struct gl_core *c, struct gl_claim_op *r)
{
    GL_ASSERT(!gl_components_are_on(c));
    GL_MARK(c->trace, "claims.stopped");
    gl_claims_fail(c, r, GL_E_UNAVAILABLE,
                   c->ending ? GL_S("this node is stopping")
                             : GL_S("this node has no session with its store"));
}

gl_str gl_claims_format(struct gl_core *c, gl_str key, const struct gl_claim *claim, gl_ms now)
{
    struct gl_buf body = {0};
    struct gl_jw w;
    gl_str ret;

    GL_ASSERT(key.n > 0);
    gl_jw_init(&w, &body);
    gl_claim_write(&w, key, claim, now);
    ret = gl_str_dup(c->out->arena, gl_buf_view(&body));
    gl_buf_done(&body);
    return ret;
}

/* gl_claim_decide() refused it: nothing is written. */
static void refuse(struct gl_core *c, struct gl_claim_op *r, const struct gl_claim *found,
                   const struct gl_why *why)
{
    gl_str text = gl_str_of(why->text);

    GL_ASSERT(r->phase == GL_CLAIM_READING);
    GL_ASSERT(gl_why_whole(why) != 0);
    if (r->was_unknown && (r->act == GL_CLAIM_COMPLETE || r->act == GL_CLAIM_FAIL)) {
        /* Our commit may have ended the claim as requested, and another owner may have acquired it
         * since. */
        gl_claims_fail(c, r, gl_why_whole(why), text);
        return;
    }
    gl_claims_finish(c, r, gl_why_whole(why), text,
                     found != NULL ? gl_claims_format(c, r->args.key, found, r->now) : (gl_str){0});
}

static void succeed(struct gl_core *c, struct gl_claim_op *r)
{
    GL_ASSERT(r->phase == GL_CLAIM_WRITING);
    GL_ASSERT(r->act != GL_CLAIM_RECLAIM);
    GL_ASSERT(r->shown.n > 0);
    gl_claims_finish(c, r, 0, (gl_str){0}, gl_str_dup(c->out->arena, r->shown));
}

/* ---- reading and writing ---- */

int gl_claims_read(struct gl_core *c, gl_str key, uint64_t rev, gl_str value, bool *ret_is_found,
                   struct gl_claim *ret, struct gl_why *reterr_why)
{
    *ret_is_found = rev != 0;
    if (rev != 0 && (value.n == 0 || gl_claim_decode(gl_str_dup(c->out->arena, value),
                                                     c->out->arena, ret, NULL) != 0)) {
        return gl_why(reterr_why, GL_R_CLAIM_DAMAGED, "the record of the claim '%.*s' is damaged",
                      GL_STR_ARG(key));
    }
    GL_ASSERT(rev == 0 || (ret->fence > 0 && ret->attempt > 0)); /* gl_claim_decode() checks it */
    return 0;
}

uint64_t gl_claims_commit(struct gl_core *c, gl_str key, uint64_t rev, const struct gl_claim *found,
                          const struct gl_claim *made)
{
    struct gl_guard guard = {.type = rev != 0 ? GL_GUARD_AT : GL_GUARD_ABSENT,
                             .kind = GL_S("claim"),
                             .id = key,
                             .rev = rev};
    struct gl_write writes[3];
    struct gl_buf value = {0};
    struct gl_tx *tx;
    size_t n = 0;

    GL_ASSERT((rev != 0) == (found != NULL));
    GL_ASSERT(made->fence == 1 || (found != NULL && made->fence - found->fence <= 1));
    gl_claim_encode(made, &value);
    /* The index changes in the same transaction, so it lists every claim that is held. */
    if (found != NULL && found->state == GL_CLAIM_CLAIMED) {
        writes[n++] = (struct gl_write){.type = GL_WRITE_UNINDEX,
                                        .kind = GL_S("claims"),
                                        .id = key,
                                        .score = found->lease_until};
    }
    if (made->state == GL_CLAIM_CLAIMED) {
        writes[n++] = (struct gl_write){
            .type = GL_WRITE_INDEX, .kind = GL_S("claims"), .id = key, .score = made->lease_until};
    }
    writes[n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                    .kind = GL_S("claim"),
                                    .id = key,
                                    .rev = rev + 1,
                                    .owner = made->owner,
                                    .token = made->fence,
                                    .live = made->state == GL_CLAIM_CLAIMED,
                                    .value = gl_str_dup(c->out->arena, gl_buf_view(&value))};
    gl_buf_done(&value);
    GL_ASSERT(n <= GL_COUNT(writes));
    /* planted: written even if the record has changed */
    tx = gl_component_tx(c, &guard, GL_PLANT(87) ? 0 : 1, writes, n);
    tx->confirm = true; /* a claim lost in a failover would have two holders */
    return gl_component_commit(c, GL_COMPONENT_CLAIMS, tx);
}

/* Ask for the time and the record. A store that is not shared has no clock of its own: the core's
 * time, which never goes back, decides.
 *
 * On a shared store both are asked for at once, and it does not matter which is older: the commit
 * fails unless the record is as it was read, and the time has not gone back since it was asked for.
 */
static void begin(struct gl_core *c, struct gl_claim_op *r)
{
    struct gl_key key = {.kind = GL_S("claim"), .id = r->args.key};

    GL_ASSERT(r->phase == GL_CLAIM_READING || r->phase == GL_CLAIM_WRITING);
    GL_ASSERT(r->rounds < ROUNDS_MAX);
    GL_ASSERT(r->time_call == 0);
    r->phase = GL_CLAIM_READING;
    r->rounds++;
    r->error = 0;
    r->rev = 0;
    r->record_call = 0;
    gl_core_set(c, &r->why, (gl_str){0});
    gl_core_set(c, &r->value, (gl_str){0});
    gl_core_set(c, &r->shown, (gl_str){0});
    r->now = c->now;
    r->time_call = c->shared ? gl_component_time(c, GL_COMPONENT_CLAIMS) : 0;
    if (r->act != GL_CLAIM_RECLAIM) {
        r->record_call = gl_component_get(c, GL_COMPONENT_CLAIMS, &key, 1);
    } else if (!c->shared) {
        gl_reclaim_begin(c, r);
    }
    GL_ASSERT(r->time_call != 0 || r->record_call != 0);
    GL_ASSERT(c->shared == (r->time_call != 0));
}

/* The answer is prepared before the commit, and sent only when the commit has succeeded. */
static void decide(struct gl_core *c, struct gl_claim_op *r)
{
    struct gl_claim found = {0}, made = {0};
    struct gl_why why = {0};
    bool is_found = false;
    int rc = gl_claims_read(c, r->args.key, r->rev, r->value, &is_found, &found, &why);

    GL_ASSERT(r->phase == GL_CLAIM_READING);
    GL_ASSERT(r->act != GL_CLAIM_RECLAIM);
    GL_ASSERT(r->time_call == 0 && r->record_call == 0);
    if (rc != 0) {
        gl_claims_fail(c, r, gl_why_whole(&why), gl_str_of(why.text));
        return;
    }
    rc = gl_claim_decide(is_found ? &found : NULL, &r->args, r->now, &made, &why);
    if (rc != 0) {
        refuse(c, r, is_found ? &found : NULL, &why);
        return;
    }
    GL_ASSERT(GL_IMPLIES(is_found, made.fence >= found.fence));
    GL_ASSERT(GL_IMPLIES(made.state == GL_CLAIM_CLAIMED, made.lease_until > r->now));
    r->phase = GL_CLAIM_WRITING;
    r->attempt = made.attempt;
    gl_core_set(c, &r->shown, gl_claims_format(c, r->args.key, &made, r->now));
    r->record_call = gl_claims_commit(c, r->args.key, r->rev, is_found ? &found : NULL, &made);
    if (GL_PLANT(89)) { /* planted: the answer does not wait for the commit */
        succeed(c, r);
    }
}

static void on_committed(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    int code = (int)ev->answer.code;

    GL_ASSERT(r->phase == GL_CLAIM_WRITING);
    GL_ASSERT(r->record_call == ev->answer.number);
    if (code == 0) {
        succeed(c, r);
    } else if (code != GL_E_UNKNOWN && code != GL_E_CONFLICT) {
        gl_claims_fail(c, r, code, ev->answer.why);
    } else {
        r->was_unknown = r->was_unknown || code == GL_E_UNKNOWN; /* stays, until it is answered */
        if (!gl_components_are_on(c)) {
            fail_stopped(c, r);
        } else if (r->rounds < ROUNDS_MAX) {
            GL_MARK(c->trace, "claims.again");
            begin(c, r); /* if it was committed after all, that is read, and written again */
        } else {
            gl_claims_fail(c, r, GL_E_UNAVAILABLE,
                           GL_S("too many concurrent changes to the claim: try again later"));
        }
    }
}

/* Keep the first error; the request is answered when both calls have been. */
static void note_error(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    if (ev->answer.code != 0 && r->error == 0) {
        r->error = ev->answer.code;
        gl_core_set(c, &r->why, ev->answer.why);
    }
}

static void note_read(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    const struct gl_event_record *record = ev->answer.records.items;

    GL_ASSERT(ev->answer.number == r->time_call || ev->answer.number == r->record_call);
    note_error(c, r, ev);
    if (ev->answer.number == r->time_call) {
        r->time_call = 0;
        r->now = ev->answer.time;
        return;
    }
    r->record_call = 0;
    if (ev->answer.code == 0 && ev->answer.records.n > 0) {
        r->rev = record->rev;
        gl_core_set(c, &r->value, record->damaged ? (gl_str){0} : record->value);
    }
}

static void on_read(struct gl_core *c, struct gl_claim_op *r, const struct gl_event *ev)
{
    GL_ASSERT(r->phase == GL_CLAIM_READING);
    note_read(c, r, ev);
    if (r->time_call != 0 || r->record_call != 0) {
        return;
    }
    if (r->error != 0) {
        gl_claims_fail(c, r, (int)r->error, gl_str_dup(c->out->arena, r->why));
    } else if (!gl_components_are_on(c)) {
        fail_stopped(c, r);
    } else if (r->act == GL_CLAIM_RECLAIM) {
        gl_reclaim_begin(c, r);
    } else {
        decide(c, r);
    }
}

/* ---- the component ---- */

void gl_claims_on_request(struct gl_core *c, const struct gl_event *ev)
{
    const struct gl_event_claim *x = &ev->claim;
    struct gl_claim_op *r;

    GL_ASSERT(ev->type == GL_EV_CLAIM);
    GL_ASSERT(x->act < GL_CLAIM_ACT_COUNT);
    if (!gl_components_are_on(c)) {
        reply(c, x->request, GL_E_UNAVAILABLE, GL_S("this node has no session with its store"),
              (gl_str){0});
        return;
    }
    r = request_new(c);
    r->request = x->request;
    r->act = x->act;
    r->args = (struct gl_claim_args){
        .act = x->act, .fence = x->fence, .lease_ms = x->lease_ms, .once = x->once};
    gl_core_set(c, &r->args.key, x->key);
    gl_core_set(c, &r->args.owner, x->owner);
    gl_core_set(c, &r->args.work_type, x->work_type);
    gl_core_set(c, &r->args.error_detail, x->error_detail);
    gl_core_set(c, &r->args.nonce, x->nonce);
    r->limit = x->limit == 0 ? RECLAIM_DEFAULT : x->limit > GL_PAGE_MAX ? GL_PAGE_MAX : x->limit;
    GL_ASSERT(r->limit > 0 && r->limit <= GL_PAGE_MAX);
    begin(c, r);
}

static bool has_call(const struct gl_claim_op *r, uint64_t call)
{
    if (r->time_call == call || r->record_call == call) {
        return true;
    }
    for (const struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
        if (GL_CONTAINER(l, struct gl_claim_change, link)->call == call) {
            return true;
        }
    }
    return false;
}

static void on_answer(struct gl_core *c, const struct gl_event *ev)
{
    struct gl_link *l = c->claims.under_way.next;

    GL_ASSERT(ev->answer.by == GL_COMPONENT_CLAIMS);
    while (l != &c->claims.under_way && !has_call(request_of(l), ev->answer.number)) {
        l = l->next;
    }
    if (l == &c->claims.under_way || ev->answer.number == 0) {
        return;
    }
    switch ((enum gl_claim_phase)request_of(l)->phase) {
    case GL_CLAIM_READING:
        on_read(c, request_of(l), ev);
        break;
    case GL_CLAIM_WRITING:
        on_committed(c, request_of(l), ev);
        break;
    case GL_CLAIM_LISTING:
    case GL_CLAIM_FETCHING:
        if (!gl_components_are_on(c)) {
            fail_stopped(c, request_of(l));
            break;
        }
        gl_reclaim_on_answer(c, request_of(l), ev);
        break;
    case GL_CLAIM_MARKING:
        gl_reclaim_on_answer(c, request_of(l), ev);
        break;
    }
}

static gl_ms due(const struct gl_core *c)
{
    (void)c;
    return INT64_MAX; /* it acts only on requests and answers */
}

/* ---- in a snapshot of the core ---- */

struct saved_request {
    struct gl_claim_op r; /* must come first: it shares its fields with request_schema */
    struct gl_items all;  /* struct gl_claim_change */
};

static const struct gl_field saved_fields[] = {
    REQUEST_FIELDS,
    {.name = "changes",
     .type = GL_F_LIST,
     .offset = offsetof(struct saved_request, all),
     .sub = &gl_claim_change_schema},
};

static const struct gl_schema saved_schema = {.name = "request",
                                              .bytes = sizeof(struct saved_request),
                                              .fields = saved_fields,
                                              .fields_n = GL_COUNT(saved_fields)};

struct saved_claims {
    struct gl_claim_counts counts;
    struct gl_items requests; /* struct saved_request */
};

#define CF(member)                                                                                \
    {                                                                                             \
        .name = #member, .type = GL_F_U64, .offset = offsetof(struct saved_claims, counts.member) \
    }

static const struct gl_field claims_fields[] = {
    CF(acquired),
    CF(steals),
    CF(busy),
    CF(renewed),
    CF(renew_failed),
    CF(completed),
    CF(failed),
    CF(expired),
    GL_FIELD_SUB(saved_claims, requests, LIST, &saved_schema, 0, ""),
};
#undef CF

GL_SNAPSHOT_SCHEMA(claims);

static size_t length(const struct gl_link *head)
{
    size_t n = 0;

    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        n++;
    }
    return n;
}

static struct gl_items list_changes(const struct gl_claim_op *r, struct gl_arena *a)
{
    struct gl_items ret = {.n = length(&r->changes)};
    struct gl_claim_change *all = GL_NEW_ARRAY(a, struct gl_claim_change, ret.n + 1);

    ret.items = all;
    for (const struct gl_link *l = r->changes.next; l != &r->changes; l = l->next) {
        *all++ = *GL_CONTAINER(l, struct gl_claim_change, link);
    }
    GL_ASSERT(all == (const struct gl_claim_change *)ret.items + ret.n);
    return ret;
}

/* What each phase relies on. Asserted when a snapshot is saved, and checked when one is restored,
 * because anyone may have written it. */
static bool is_sound(const struct gl_claim_op *r, const struct gl_claim_change *changes,
                     size_t changes_n)
{
    bool is_page = r->phase >= GL_CLAIM_LISTING, is_marking = r->phase == GL_CLAIM_MARKING;
    bool is_good = r->rounds > 0 && r->rounds <= ROUNDS_MAX && r->limit > 0 &&
                   r->limit <= GL_PAGE_MAX && (r->act == GL_CLAIM_RECLAIM || r->args.key.n > 0) &&
                   (r->phase == GL_CLAIM_READING || is_page == (r->act == GL_CLAIM_RECLAIM)) &&
                   (r->phase == GL_CLAIM_READING || r->time_call == 0) &&
                   (r->time_call != 0 || (r->record_call != 0) == !is_marking) &&
                   (r->phase == GL_CLAIM_READING || is_marking || r->error == 0) &&
                   (r->phase != GL_CLAIM_WRITING || (r->shown.n > 0 && r->attempt > 0)) &&
                   (changes_n > 0) == (r->phase > GL_CLAIM_LISTING);

    for (size_t i = 0; i < changes_n; i++) {
        is_good = is_good && (!changes[i].is_done || changes[i].shown.n > 0) &&
                  (is_marking ? changes[i].call == 0 || !changes[i].is_done
                              : changes[i].call == 0 && changes[i].shown.n == 0);
    }
    return is_good;
}

static void save(const struct gl_core *c, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    const struct gl_link *head = &c->claims.under_way;
    struct saved_claims s = {.counts = c->claims.counts, .requests = {.n = length(head)}};
    struct saved_request *all = GL_NEW_ARRAY(&a, struct saved_request, s.requests.n + 1);

    s.requests.items = all;
    for (const struct gl_link *l = head->next; l != head; l = l->next) {
        const struct gl_claim_op *r = GL_CONTAINER(l, struct gl_claim_op, link);

        *all = (struct saved_request){.r = *r, .all = list_changes(r, &a)};
        GL_ASSERT(is_sound(r, all->all.items, all->all.n));
        all++;
    }
    GL_ASSERT(all == (const struct saved_request *)s.requests.items + s.requests.n);
    gl_snapshot_put(out, "claims", &claims_schema, &s);
}

/* The act is saved once; the copy in `args` follows from it. */
static void restore_request(struct gl_core *c, const struct saved_request *from)
{
    const struct gl_claim_change *changes = from->all.items;
    struct gl_claim_op *r = request_new(c);

    GL_ASSERT(is_sound(&from->r, changes, from->all.n));
    gl_core_adopt(c, &request_schema, r, &from->r);
    r->args.act = r->act;
    for (size_t i = 0; i < from->all.n; i++) {
        struct gl_claim_change *x = gl_pool_alloc(&c->mem, sizeof(*x));

        gl_list_init(&x->link);
        gl_core_adopt(c, &gl_claim_change_schema, x, &changes[i]);
        gl_list_push(&r->changes, &x->link);
    }
}

static int restore(struct gl_core *c, struct gl_snapshot_line *l)
{
    const struct saved_request *all;
    struct saved_claims s = {0};
    int rc = gl_snapshot_get(l, &claims_schema, &s);

    if (rc != 0) {
        return rc;
    }
    if (s.counts.steals > s.counts.acquired) {
        return gl_snapshot_bad(l, "more claims were taken over than acquired");
    }
    c->claims.counts = s.counts;
    all = s.requests.items;
    for (size_t i = 0; i < s.requests.n; i++) {
        if (!is_sound(&all[i].r, all[i].all.items, all[i].all.n)) {
            return gl_snapshot_bad(l, "a request for a claim does not fit its phase");
        }
        restore_request(c, &all[i]);
    }
    return 0;
}

const struct gl_component gl_claims = {
    .name = "claims", .due = due, .on_answer = on_answer, .save = save, .restore = restore};
