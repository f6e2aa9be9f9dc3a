#include "node/claims.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/claims/claim.h"

enum { TRIES_MAX = 16, WRITES = 3, RECLAIM_DEFAULT = 100 };

/* A change of one claim. */
struct change {
    struct gl_store_req req;
    struct call *call;
    gl_str key;
    struct gl_claim found, made;
    gl_str value;
    bool is_found;
    uint64_t rev; /* of what was found */
    struct gl_guard guard;
    struct gl_write writes[WRITES];
    struct gl_tx tx;
    bool is_done; /* RECLAIM: marked */
};

/* A request under way. */
struct call {
    struct gl_link link;
    struct gl_claims *claims;
    struct gl_request *rq;
    gl_claims_answer *answer;
    void *owner;
    struct gl_claim_wish wish;
    char nonce[17];
    struct gl_arena arena; /* of this try */
    unsigned tries;
    bool was_unknown; /* an earlier try may have been committed */
    struct gl_store_req time_req, read_req;
    unsigned waiting;  /* answers of the store to wait for */
    int error;         /* the first of them that was bad */
    struct gl_why why; /* of it */
    gl_ms now;         /* the store's */
    struct gl_key key;
    struct change one;
    /* RECLAIM */
    struct gl_range range;
    struct gl_key *keys;
    struct change *many;
    const int64_t *scores;
    size_t many_n;
};

static void begin(struct call *c);

void gl_claims_init(struct gl_claims *c, struct gl_store *store, struct gl_clock *clock,
                    struct gl_entropy *entropy)
{
    *c = (struct gl_claims){.store = store, .clock = clock, .entropy = entropy};
    gl_list_init(&c->under_way);
}

static void call_free(struct call *c)
{
    gl_arena_done(&c->arena);
    gl_mem_free(c);
}

void gl_claims_done(struct gl_claims *c)
{
    for (struct gl_link *l; (l = gl_list_first(&c->under_way)) != NULL;) {
        gl_list_remove(l);
        c->under_way_n--;
        call_free(GL_CONTAINER(l, struct call, link));
    }
}

/* ---- answering ---- */

static void count(struct call *c, int code)
{
    struct gl_claim_counts *n = &c->claims->counts;
    bool is_fine = code == 0;

    switch (c->wish.act) {
    case GL_CLAIM_ACQUIRE:
        n->acquired += is_fine;
        n->steals += is_fine && c->one.made.attempt > 1;
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
        for (size_t i = 0; i < c->many_n; i++) {
            n->expired += c->many[i].is_done;
        }
        break;
    }
}

static void end(struct call *c, int code, const char *why, struct gl_buf *body)
{
    count(c, gl_err_code(code));
    gl_list_remove(&c->link);
    c->claims->under_way_n--;
    if (code != 0) { /* with its reason */
        code = gl_why(&c->rq->why, code, "%s", why[0] != '\0' ? why : gl_err_text(code));
        why = c->rq->why.text;
    }
    c->answer(c->owner, c->rq, code, why, body);
    gl_buf_done(body);
    call_free(c);
}

/* The store did not do it, or nobody knows whether it did. */
static void give_up(struct call *c, int code, const char *why)
{
    struct gl_buf none = {0};
    struct gl_why text;

    if (c->was_unknown) {
        (void)gl_why(&text, GL_R_OUTCOME_UNKNOWN, "whether this was done is not known: %s", why);
        code = GL_R_OUTCOME_UNKNOWN;
        why = text.text;
    }
    end(c, code, why, &none);
}

static void tell(struct call *c, int code, const char *why, const struct gl_claim *claim)
{
    struct gl_buf body = {0};
    struct gl_jw w;

    if (claim != NULL) {
        gl_jw_init(&w, &body);
        gl_claim_write(&w, c->wish.key, claim, c->now);
    }
    end(c, code, why, &body);
}

/* It is decided that there is nothing to change. */
static void refuse(struct call *c, int code, const char *why)
{
    const struct gl_claim *found = c->one.is_found ? &c->one.found : NULL;
    bool is_end = c->wish.act == GL_CLAIM_COMPLETE || c->wish.act == GL_CLAIM_FAIL;

    if (c->was_unknown && is_end) {
        /* It may have ended as it was told to, and been acquired by the next since. */
        give_up(c, code, why);
        return;
    }
    tell(c, code, why, found);
}

/* ---- writing ---- */

static void commit(struct change *x, gl_store_done *done)
{
    struct gl_store *s = x->call->claims->store;
    struct gl_buf value = {0};

    gl_claim_encode(&x->made, &value);
    x->value = gl_str_dup(&x->call->arena, gl_buf_view(&value));
    gl_buf_done(&value);
    x->guard = (struct gl_guard){.type = x->is_found ? GL_GUARD_AT : GL_GUARD_ABSENT,
                                 .kind = GL_S("claim"),
                                 .id = x->key,
                                 .rev = x->rev};
    x->tx = (struct gl_tx){.context = x->call->rq->context,
                           .session = x->call->claims->session,
                           .guards = &x->guard,
                           .guards_n = 1,
                           .writes = x->writes,
                           .confirm = true};
    if (x->is_found && x->found.state == GL_CLAIM_CLAIMED) {
        x->writes[x->tx.writes_n++] = (struct gl_write){.type = GL_WRITE_UNINDEX,
                                                        .kind = GL_S("claims"),
                                                        .id = x->key,
                                                        .score = x->found.lease_until};
    }
    if (x->made.state == GL_CLAIM_CLAIMED) {
        x->writes[x->tx.writes_n++] = (struct gl_write){.type = GL_WRITE_INDEX,
                                                        .kind = GL_S("claims"),
                                                        .id = x->key,
                                                        .score = x->made.lease_until};
    }
    x->writes[x->tx.writes_n++] = (struct gl_write){.type = GL_WRITE_PUT,
                                                    .kind = GL_S("claim"),
                                                    .id = x->key,
                                                    .rev = x->rev + 1,
                                                    .owner = x->made.owner,
                                                    .token = x->made.fence,
                                                    .live = x->made.state == GL_CLAIM_CLAIMED,
                                                    .value = x->value};
    x->req = (struct gl_store_req){.done = done, .owner = x};
    s->ops->commit(s, &x->req, &x->tx);
}

static void note_failed(struct gl_claims *c, const struct gl_store_req *req)
{
    if (req->status != 0 && c->on_failed != NULL) {
        c->on_failed(c->owner, req);
    }
}

static void on_commit(struct gl_store_req *req)
{
    struct change *x = req->owner;
    struct call *c = x->call;

    note_failed(c->claims, req);
    if (req->status == 0) {
        tell(c, 0, "", &x->made);
    } else if (req->status == GL_E_UNKNOWN || req->status == GL_E_CONFLICT) {
        c->was_unknown = c->was_unknown || req->status == GL_E_UNKNOWN;
        if (c->tries < TRIES_MAX) {
            begin(c); /* if it was committed after all, that is found, and confirmed by writing */
        } else {
            give_up(c, GL_E_UNAVAILABLE, "others changed this claim again and again: try again");
        }
    } else {
        give_up(c, req->status, req->why.text);
    }
}

/* ---- reading ---- */

/* What a record says. False: nothing that can be used. */
static bool read_claim(struct change *x, const struct gl_record *r, struct gl_why *reterr_why)
{
    x->rev = r->rev;
    x->is_found = r->rev != 0;
    if (!x->is_found) {
        return true;
    }
    if (r->damaged || gl_claim_decode(gl_str_dup(&x->call->arena, r->value), &x->call->arena,
                                      &x->found, reterr_why) != 0) {
        (void)gl_why(reterr_why, GL_R_CLAIM_DAMAGED, "the record of the claim '%.*s' is damaged",
                     GL_STR_ARG(x->key));
        return false;
    }
    return true;
}

static void decide(struct call *c)
{
    struct gl_why why = {0};
    int code = gl_claim_decide(c->one.is_found ? &c->one.found : NULL, &c->wish, c->now,
                               &c->one.made, &why);

    if (code != 0) {
        refuse(c, gl_why_whole(&why), why.text);
    } else {
        commit(&c->one, on_commit);
    }
}

/* One of the answers has come; true: it was the last. */
static bool arrived(struct call *c, const struct gl_store_req *req)
{
    if (req->status != 0 && c->error == 0) {
        c->error = gl_why(&c->why, req->status, "%s", req->why.text);
    }
    return --c->waiting == 0;
}

static void on_both(struct call *c)
{
    if (c->error != 0) {
        give_up(c, gl_why_whole(&c->why), c->why.text);
    } else {
        decide(c);
    }
}

static void on_time(struct gl_store_req *req)
{
    struct call *c = req->owner;

    c->now = req->time;
    if (arrived(c, req)) {
        on_both(c);
    }
}

static void on_read(struct gl_store_req *req)
{
    struct call *c = req->owner;
    struct gl_why why = {0};

    if (req->status == 0 && !read_claim(&c->one, &req->records[0], &why) && c->error == 0) {
        c->error = gl_why(&c->why, gl_err_join(GL_E_DAMAGED, why.reason), "%s", why.text);
    }
    if (arrived(c, req)) {
        on_both(c);
    }
}

static void ask_time(struct call *c, gl_store_done *done)
{
    struct gl_store *s = c->claims->store;

    c->waiting++;
    c->time_req = (struct gl_store_req){.done = done, .owner = c};
    (s->ops->time)(s, &c->time_req); /* in brackets: plain, the name belongs to the C library */
}

/* Time and record are asked for at once. Whichever is older: what is committed holds only while the
 * record is as it was read, and time has not gone back since it was asked for. */
static void begin(struct call *c)
{
    struct gl_store *s = c->claims->store;

    c->tries++;
    gl_arena_reset(&c->arena);
    c->one = (struct change){.call = c, .key = c->wish.key};
    c->waiting = 1;
    c->error = 0;
    if (s->ops->time != NULL) {
        ask_time(c, on_time);
    } else {
        c->now = c->claims->clock->now(c->claims->clock);
    }
    c->key = (struct gl_key){.kind = GL_S("claim"), .id = c->wish.key};
    c->read_req = (struct gl_store_req){.done = on_read, .owner = c};
    s->ops->get(s, &c->read_req, c->rq->context, &c->key, 1);
}

/* ---- reclaim: a page of claims whose leases are over ---- */

static void end_reclaim(struct call *c)
{
    struct gl_buf body = {0};
    struct gl_jw w;

    gl_jw_init(&w, &body);
    gl_jw_object(&w);
    gl_jw_key(&w, "expired");
    gl_jw_array(&w);
    for (size_t i = 0; i < c->many_n; i++) {
        if (c->many[i].is_done) {
            gl_claim_write(&w, c->many[i].key, &c->many[i].made, c->now);
        }
    }
    gl_jw_end(&w);
    gl_jw_key(&w, "more");
    gl_jw_bool(&w, c->many_n == c->range.limit);
    gl_jw_end(&w);
    end(c, 0, "", &body);
}

static void on_marked(struct gl_store_req *req)
{
    struct change *x = req->owner;
    struct call *c = x->call;

    x->is_done = req->status == 0 && x->made.state == GL_CLAIM_EXPIRED && x->tx.guards_n > 0;
    if (req->status == GL_E_CONFLICT) {
        req->status = 0; /* somebody was faster: nothing to do any more */
    }
    note_failed(c->claims, req);
    if (!arrived(c, req)) {
        return;
    }
    if (c->error != 0) {
        give_up(c, gl_why_whole(&c->why), c->why.text); /* what is left is found by the next one */
    } else {
        end_reclaim(c);
    }
}

/* A place in the index that leads to nothing: it would come first for ever. */
static void forget_place(struct change *x, int64_t score)
{
    struct gl_store *s = x->call->claims->store;

    x->writes[0] = (struct gl_write){
        .type = GL_WRITE_UNINDEX, .kind = GL_S("claims"), .id = x->key, .score = score};
    x->tx = (struct gl_tx){.context = x->call->rq->context,
                           .session = x->call->claims->session,
                           .writes = x->writes,
                           .writes_n = 1};
    x->req = (struct gl_store_req){.done = on_marked, .owner = x};
    s->ops->commit(s, &x->req, &x->tx);
}

static void mark(struct call *c, struct change *x, const struct gl_record *r, int64_t score)
{
    struct gl_claim_wish wish = {.act = GL_CLAIM_RECLAIM, .key = x->key};
    struct gl_why why;

    if (!read_claim(x, r, &why) || !x->is_found || x->found.state != GL_CLAIM_CLAIMED ||
        x->found.lease_until != score) {
        c->waiting++;
        forget_place(x, score);
    } else if (gl_claim_decide(&x->found, &wish, c->now, &x->made, &why) == 0) {
        c->waiting++;
        commit(x, on_marked);
    }
}

static void on_expired(struct gl_store_req *req)
{
    struct call *c = req->owner;

    if (req->status != 0) {
        give_up(c, req->status, req->why.text);
        return;
    }
    c->waiting = 1; /* a completion never runs from inside a call, but who knows */
    for (size_t i = 0; i < c->many_n; i++) {
        mark(c, &c->many[i], &req->records[i], c->scores[i]);
    }
    if (--c->waiting == 0) {
        end_reclaim(c);
    }
}

static void on_range(struct gl_store_req *req)
{
    struct call *c = req->owner;
    struct gl_store *s = c->claims->store;
    int64_t *scores;

    if (req->status != 0) {
        give_up(c, req->status, req->why.text);
        return;
    }
    c->many_n = req->entries_n;
    c->many = GL_NEW_ARRAY(&c->arena, struct change, c->many_n + 1);
    c->keys = GL_NEW_ARRAY(&c->arena, struct gl_key, c->many_n + 1);
    c->scores = scores = GL_NEW_ARRAY(&c->arena, int64_t, c->many_n + 1);
    for (size_t i = 0; i < c->many_n; i++) {
        c->many[i].call = c;
        c->many[i].key = gl_str_dup(&c->arena, req->entries[i].id);
        c->keys[i] = (struct gl_key){.kind = GL_S("claim"), .id = c->many[i].key};
        scores[i] = req->entries[i].score;
    }
    if (c->many_n == 0) {
        end_reclaim(c);
        return;
    }
    c->read_req = (struct gl_store_req){.done = on_expired, .owner = c};
    s->ops->get(s, &c->read_req, c->rq->context, c->keys, c->many_n);
}

static void read_range(struct call *c)
{
    struct gl_store *s = c->claims->store;
    uint32_t limit = c->rq->claim.limit == 0 ? RECLAIM_DEFAULT : c->rq->claim.limit;

    c->range = (struct gl_range){.index = GL_S("claims"),
                                 .score_max = c->now,
                                 .limit = limit > GL_PAGE_MAX ? GL_PAGE_MAX : limit};
    c->read_req = (struct gl_store_req){.done = on_range, .owner = c};
    s->ops->range(s, &c->read_req, c->rq->context, &c->range);
}

static void on_reclaim_time(struct gl_store_req *req)
{
    struct call *c = req->owner;

    c->waiting = 0;
    c->now = req->time;
    if (req->status != 0) {
        give_up(c, req->status, req->why.text);
    } else {
        read_range(c);
    }
}

static void reclaim(struct call *c)
{
    if (c->claims->store->ops->time != NULL) {
        ask_time(c, on_reclaim_time);
    } else {
        c->now = c->claims->clock->now(c->claims->clock);
        read_range(c);
    }
}

/* ---- the door ---- */

static enum gl_claim_act act_of(enum gl_verb verb)
{
    switch (verb) {
    case GL_VERB_CLAIM_ACQUIRE:
        return GL_CLAIM_ACQUIRE;
    case GL_VERB_CLAIM_RENEW:
        return GL_CLAIM_RENEW;
    case GL_VERB_CLAIM_COMPLETE:
        return GL_CLAIM_COMPLETE;
    case GL_VERB_CLAIM_FAIL:
        return GL_CLAIM_FAIL;
    case GL_VERB_CLAIM_RECLAIM:
        return GL_CLAIM_RECLAIM;
    default:
        GL_UNREACHABLE();
    }
}

static gl_str make_nonce(struct call *c)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";
    uint8_t bytes[sizeof(c->nonce) - 1];

    c->claims->entropy->fill(c->claims->entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        c->nonce[i] = alphabet[bytes[i] & 31];
    }
    return (gl_str){.p = c->nonce, .n = sizeof(bytes)};
}

void gl_claims_run(struct gl_claims *claims, struct gl_request *rq, gl_claims_answer *answer,
                   void *owner)
{
    struct call *c = gl_mem_alloc(sizeof(*c));
    struct gl_why why = {0};
    int err = 0;

    c->claims = claims;
    c->rq = rq;
    c->answer = answer;
    c->owner = owner;
    c->wish =
        (struct gl_claim_wish){.act = act_of(rq->verb),
                               .key = rq->claim.key,
                               .owner = rq->claim.owner,
                               .fence = rq->claim.fence,
                               .lease_ms = rq->claim.lease,
                               .once = rq->claim.once,
                               .work_type = rq->claim.work_type,
                               .error_detail = rq->claim.error_detail,
                               .nonce = rq->claim.nonce.n > 0 ? rq->claim.nonce : make_nonce(c)};
    gl_list_push(&claims->under_way, &c->link);
    claims->under_way_n++;
    if (c->wish.act != GL_CLAIM_RECLAIM) {
        err = gl_claim_check(&c->wish, &why);
    }
    if (err != 0) {
        give_up(c, gl_why_whole(&why), why.text);
    } else if (c->wish.act == GL_CLAIM_RECLAIM) {
        reclaim(c);
    } else {
        begin(c);
    }
}
