/* lookup.c - reads the values that references can name: outputs of ended steps, inputs, the job
 * itself.
 *
 * The result is one JSON document (model/text/ref.h), and it is final: only ended steps are read,
 * and their records never change. The output of a step with foreach is not stored with the step; it
 * is the list of its instances' outputs, assembled here. A retry that reuses such a step stores the
 * list unless it is very large, because the job that has the instances may be removed before the
 * retry is retried itself. */
#include "base/check.h"
#include "node/node_state.h"

#include "base/limits.h"
#include "model/job.h"
#include "model/text/ref.h"

enum { STEPS_PAGE = 256, ITEMS_PAGE = 1000 };

/* One step that is to be read. */
struct looked_up_step {
    const struct gl_step_spec *spec;
    bool is_there;
    gl_str status, outcome, exit_code, output; /* raw JSON */
    gl_str from;   /* raw JSON: the job that completed it, if another one */
    gl_str source; /* the job that has its instances; "": no instances */
    gl_str *items; /* their outputs, by item */
    uint32_t items_n, items_cap;
    size_t bytes; /* of all items together */
};

struct gl_lookup {
    struct gl_chain chain;
    struct gl_lookup_wish wish;
    struct looked_up_step *known; /* followed by the step itself as the earlier job has it */
    uint32_t known_n, read_n;     /* number of steps, and how many have been read */
    uint32_t group;               /* the step whose instances are being read */
    gl_str group_after;
    gl_str inputs;
    bool has_common; /* inputs and the earlier job's step have been read */
    struct gl_key keys[STEPS_PAGE + 2];
    size_t bytes;
    gl_lookup_done *done;
    void *owner;
};

static void finish(struct gl_lookup *f, int code, const char *why, gl_str json)
{
    GL_ASSERT(f->read_n <= f->known_n);
    f->done(f->owner, &f->wish, code, why, json);
    gl_chain_end(&f->chain);
}

static void on_failed(void *chain, int code, const char *why)
{
    (void)code; /* whatever it was, the lookup may be retried */
    finish(chain, GL_E_UNAVAILABLE, why, (gl_str){0});
}

static void on_end(void *chain)
{
    struct gl_lookup *f = chain;

    gl_spec_unref(f->wish.spec);
}

static const struct gl_chain_kind lookups = {
    .bytes = sizeof(struct gl_lookup), .failed = on_failed, .done = on_end};

static struct looked_up_step *past_of(const struct gl_lookup *f)
{
    return &f->known[f->known_n];
}

/* ---- composing the document ---- */

static void write_items(struct gl_jw *w, const char *key, const struct looked_up_step *k)
{
    GL_ASSERT(k->items_n <= k->items_cap);
    gl_jw_put_array(w, key);
    for (uint32_t i = 0; i < k->items_n; i++) {
        gl_jw_raw(w, k->items[i].n > 0 ? k->items[i] : GL_S("null"));
    }
    gl_jw_end(w);
}

static void write_step(struct gl_lookup *f, struct gl_jw *w, const struct looked_up_step *k)
{
    gl_jw_key_str(w, k->spec->id);
    if (!k->is_there) {
        gl_jw_null(w);
        return;
    }
    gl_jw_object(w);
    gl_jw_put_raw(w, "status", k->status);
    gl_jw_put_raw(w, "outcome", k->outcome);
    gl_jw_put_raw(w, "terminal_outcome", k->outcome);
    if (k->exit_code.n > 0) {
        gl_jw_put_raw(w, "exit_code", k->exit_code);
    }
    if (f->bytes > GL_INPUT_BYTES_MAX - (64 << 10)) {
        gl_jw_put_c(w, "omitted",
                    "the outputs of the steps it needs exceed the limit for the input");
        gl_jw_put_raw(w, "output", (gl_str){0});
    } else if (k->source.n > 0) {
        write_items(w, "output", k);
    } else {
        gl_jw_put_raw(w, "output", k->output);
    }
    gl_jw_end(w);
}

static void write_job(struct gl_lookup *f, struct gl_jw *w, gl_str item)
{
    char when[GL_TIMES_BYTES];

    GL_ASSERT(f->wish.job.n > 0);
    gl_jw_put_object(w, "job");
    gl_jw_put_str(w, "id", f->wish.job);
    gl_jw_put_str(w, "run_id", f->wish.run_id);
    gl_jw_put_str(w, "name", f->wish.spec->flow->name);
    gl_jw_put_str(w, "submitted_at", gl_times_format(f->wish.submitted_at, when));
    if (item.n > 0) {
        gl_jw_put_raw(w, "item", item);
        gl_jw_put_i64(w, "index", f->wish.item);
    }
    gl_jw_end(w);
}

/* The step as the retried job has it, as far as that decides whether the step must run. null: not
 * requested. An empty object: nothing is known. */
static void write_earlier(struct gl_lookup *f, struct gl_jw *w)
{
    const struct looked_up_step *k = past_of(f);

    gl_jw_key(w, "earlier");
    if (f->wish.retry_of.n == 0) {
        gl_jw_null(w);
        return;
    }
    gl_jw_object(w);
    if (k->is_there) {
        gl_jw_put_raw(w, "status", k->status);
        if (k->output.n > 0) {
            gl_jw_put_raw(w, "output", k->output);
        }
        if (k->from.n > 0) {
            gl_jw_put_raw(w, "reused_from", k->from);
        }
    }
    gl_jw_end(w);
}

static gl_str compose(struct gl_lookup *f, gl_str item)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    gl_str text;

    GL_ASSERT(f->read_n == f->known_n);
    gl_jw_init(&w, &out);
    gl_jw_object(&w);
    write_job(f, &w, item);
    gl_jw_put_raw(&w, "inputs", f->inputs.n > 0 ? f->inputs : GL_S("{}"));
    write_earlier(f, &w);
    if (past_of(f)->source.n > 0 && past_of(f)->bytes <= GL_OUTPUT_BYTES_MAX) {
        write_items(&w, "earlier_output", past_of(f));
    }
    gl_jw_put_object(&w, "steps");
    for (uint32_t i = 0; i < f->known_n; i++) {
        write_step(f, &w, &f->known[i]);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    text = gl_str_dup(&f->chain.arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return text;
}

/* The item of an instance: the element of its step's list with that index. */
static int find_item(struct gl_lookup *f, gl_str facts, gl_str *ret, struct gl_why *why)
{
    GL_ASSERT(f->wish.item >= 0);
    gl_str list = gl_flow_step(f->wish.spec->flow, f->wish.of)->foreach;
    struct gl_json j;
    gl_jnode e;
    int rc;

    if (gl_ref_has(list)) {
        rc = gl_json_parse(&j, facts, GL_RECORD_BYTES_MAX, &f->chain.arena, why);
        if (rc == 0) {
            rc = gl_ref_json(list, &j, &f->chain.arena, &list, why);
        }
        if (rc != 0) {
            return rc;
        }
    }
    rc = gl_json_parse(&j, list, GL_RECORD_BYTES_MAX, &f->chain.arena, why);
    if (rc != 0) {
        return rc;
    }
    e = gl_json_first(&j, gl_json_root(&j));
    for (int64_t i = GL_PLANT(20); e != NULL && i < f->wish.item; i++) {
        e = gl_json_after(&j, gl_json_root(&j), e);
    }
    if (e == NULL) {
        return gl_why(why, GL_E_DAMAGED, "foreach: the list no longer has an item %lld",
                      (long long)f->wish.item);
    }
    *ret = gl_json_raw(&j, e);
    return 0;
}

static void conclude(struct gl_lookup *f)
{
    GL_ASSERT(f->read_n == f->known_n);
    gl_str facts = compose(f, (gl_str){0}), item;
    struct gl_why why = {0};
    int rc = 0;

    if (f->wish.item >= 0) {
        rc = find_item(f, facts, &item, &why);
        if (rc == 0) {
            facts = compose(f, item);
        }
    }
    finish(f, rc, rc != 0 ? why.text : "", facts);
}

/* ---- instances ---- */

static void read_groups(struct gl_lookup *f);

/* False: a record is damaged, and the lookup has ended. */
static bool is_whole(struct gl_lookup *f, const struct gl_store_req *req)
{
    struct gl_why why;

    for (size_t i = 0; i < req->records_n; i++) {
        const struct gl_record *r = &req->records[i];

        if (r->damaged) {
            (void)gl_why(&why, GL_E_DAMAGED, "the record %.*s/%.*s is damaged", GL_STR_ARG(r->kind),
                         GL_STR_ARG(r->id));
            finish(f, GL_E_DAMAGED, why.text, (gl_str){0});
            return false;
        }
    }
    return true;
}

static gl_str raw_of(struct gl_lookup *f, const struct gl_json *j, const char *name)
{
    gl_jnode v = gl_json_get(j, gl_json_root(j), name);

    return v != NULL ? gl_str_dup(&f->chain.arena, gl_json_raw(j, v)) : (gl_str){0};
}

static bool parse_record(struct gl_lookup *f, const struct gl_record *r, struct gl_json *ret)
{
    gl_str text = gl_str_dup(&f->chain.arena, r->value);

    return r->rev != 0 && gl_json_parse(ret, text, GL_RECORD_BYTES_MAX, &f->chain.arena, NULL) == 0;
}

static void add_item(struct gl_lookup *f, struct looked_up_step *k, const struct gl_record *r)
{
    GL_ASSERT(k->source.n > 0);
    gl_str id, name;
    struct gl_json j;
    int64_t item;

    (void)gl_str_cut(r->id, '/', &id); /* "job/step[n]" */
    if (!gl_str_split_step(id, &name, &item) || item < 0 || !parse_record(f, r, &j)) {
        return;
    }
    if (item >= k->items_cap) {
        uint32_t cap = (uint32_t)item * 2 + 16;
        gl_str *more = GL_NEW_ARRAY(&f->chain.arena, gl_str, cap);

        if (k->items_n > 0) {
            memcpy(more, k->items, k->items_n * sizeof(*more));
        }
        k->items = more;
        k->items_cap = cap;
    }
    k->items_n = item >= k->items_n ? (uint32_t)item + 1 : k->items_n;
    k->items[item] = raw_of(f, &j, "output");
    k->bytes += k->items[item].n + 1;
    f->bytes += k == past_of(f) ? 0 : k->items[item].n;
    GL_ASSERT((uint32_t)item < k->items_n);
    GL_ASSERT(k->items_n <= k->items_cap);
}

static void on_items(struct gl_store_req *req)
{
    struct gl_lookup *f = req->owner;
    struct looked_up_step *k = &f->known[f->group];
    struct gl_why why;

    GL_ASSERT(f->group <= f->known_n);
    GL_ASSERT(req->records_n <= ITEMS_PAGE);
    if (!is_whole(f, req)) {
        return;
    }
    for (size_t i = 0; i < req->records_n; i++) {
        add_item(f, k, &req->records[i]);
    }
    if (req->records_n == ITEMS_PAGE) {
        f->group_after = gl_str_dup(&f->chain.arena, req->records[req->records_n - 1].id);
    } else if (k->items_n == 0) { /* an empty list has an output */
        GL_MARK(f->chain.node->config.trace, "lookup.items_are_gone");
        (void)gl_why(&why, GL_E_NOT_FOUND,
                     "the outputs of the items of step '%.*s' were removed together with job %.*s",
                     GL_STR_ARG(k->spec->id), GL_STR_ARG(k->source));
        finish(f, GL_E_NOT_FOUND, why.text, (gl_str){0});
        return;
    } else {
        f->group++;
        f->group_after = (gl_str){0};
    }
    read_groups(f);
}

static void read_groups(struct gl_lookup *f)
{
    struct gl_listing what;

    GL_ASSERT(f->read_n == f->known_n);
    GL_ASSERT(f->group_after.n == 0 || f->group <= f->known_n);
    while (f->group <= f->known_n && f->known[f->group].source.n == 0) {
        f->group++;
    }
    if (f->group > f->known_n) {
        conclude(f);
        return;
    }
    what = (struct gl_listing){
        .kind = GL_S("step"),
        .prefix = gl_str_fmt(&f->chain.arena, "%.*s/%.*s[", GL_STR_ARG(f->known[f->group].source),
                             GL_STR_ARG(f->known[f->group].spec->id)),
        .after = f->group_after,
        .limit = ITEMS_PAGE,
    };
    gl_chain_list(&f->chain, what, on_items);
}

/* ---- steps, inputs, and the step of an earlier job ---- */

static void read_steps(struct gl_lookup *f);

/* Only a step that ran a process has an exit code. */
static bool has_run(const struct looked_up_step *k, const struct gl_json *record,
                    gl_str reused_from)
{
    uint64_t attempts = 0;

    (void)gl_json_u64(record, gl_json_get(record, gl_json_root(record), "attempt_count"),
                      &attempts); /* none: 0 */
    return !gl_flow_waits(k->spec) && k->spec->foreach.n == 0 &&
           (attempts > 0 || reused_from.n > 0);
}

static void take_step(struct gl_lookup *f, struct looked_up_step *k, const struct gl_record *r,
                      gl_str job)
{
    GL_ASSERT(!k->is_there);
    struct gl_json j;
    gl_str from;
    uint64_t items_n = 0;

    if (!parse_record(f, r, &j)) {
        return;
    }
    k->is_there = true;
    k->status = raw_of(f, &j, "status");
    k->outcome = raw_of(f, &j, "terminal_outcome");
    k->exit_code = raw_of(f, &j, "exit_code");
    k->output = raw_of(f, &j, "output");
    k->from = raw_of(f, &j, "reused_from");
    f->bytes += k == past_of(f) ? 0 : k->output.n;
    from = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "reused_from"), &f->chain.arena);
    if (k->exit_code.n == 0 && has_run(k, &j, from)) {
        k->exit_code = GL_S("0"); /* records omit zeros */
    }
    (void)gl_json_u64(&j, gl_json_get(&j, gl_json_root(&j), "items_n"), &items_n); /* none: 0 */
    if (k->output.n == 0 && !gl_str_is(k->status, "\"skipped\"") &&
        (items_n > 0 || (k->spec->foreach.n > 0 && from.n > 0))) {
        k->source = from.n > 0 ? from : job;
    }
}

static void on_steps(struct gl_store_req *req)
{
    struct gl_lookup *f = req->owner;
    size_t i = 0;

    if (!is_whole(f, req)) {
        return;
    }
    if (!f->has_common) {
        f->has_common = true;
        f->inputs = gl_str_dup(&f->chain.arena, req->records[i++].value);
        take_step(f, past_of(f), &req->records[i++], f->wish.retry_of);
    }
    for (; i < req->records_n; i++) {
        take_step(f, &f->known[f->read_n++], &req->records[i], f->wish.job);
    }
    read_steps(f); /* may end the chain: `f` is not looked at again */
}

static void read_steps(struct gl_lookup *f)
{
    size_t n = 0;

    GL_ASSERT(f->read_n <= f->known_n);
    if (f->has_common && f->read_n == f->known_n) {
        read_groups(f);
        return;
    }
    if (!f->has_common) {
        f->keys[n++] = (struct gl_key){.kind = GL_S("inputs"), .id = f->wish.job};
        f->keys[n++] = (struct gl_key){.kind = GL_S("step"),
                                       .id = gl_str_fmt(&f->chain.arena, "%.*s/%.*s",
                                                        GL_STR_ARG(f->wish.retry_of),
                                                        GL_STR_ARG(f->wish.step_id))};
    }
    for (uint32_t i = f->read_n; i < f->known_n && n < STEPS_PAGE; i++) {
        f->keys[n++] =
            (struct gl_key){.kind = GL_S("step"),
                            .id = gl_str_fmt(&f->chain.arena, "%.*s/%.*s", GL_STR_ARG(f->wish.job),
                                             GL_STR_ARG(f->known[i].spec->id))};
    }
    GL_ASSERT(n > 0);
    GL_ASSERT(n <= GL_COUNT(f->keys));
    gl_chain_get_all(&f->chain, f->keys, n, on_steps);
}

/* Adds each step once, whether it is needed, named by a reference, or both. */
static void want(struct gl_lookup *f, uint8_t *seen, const uint32_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t bit = (uint8_t)(1u << (numbers[i] % 8));

        if ((seen[numbers[i] / 8] & bit) == 0) {
            seen[numbers[i] / 8] |= bit;
            f->known[f->known_n++] =
                (struct looked_up_step){.spec = gl_flow_step(f->wish.spec->flow, numbers[i])};
        }
    }
}

void gl_lookup_gather(struct gl_node *n, const struct gl_lookup_wish *wish, gl_lookup_done *done,
                      void *owner)
{
    struct gl_lookup *f = gl_chain_new(n, &lookups, wish->context);
    const struct gl_step_spec *spec = gl_flow_step(wish->spec->flow, wish->of);
    uint8_t *seen;

    GL_ASSERT(wish->item >= -1);
    GL_ASSERT(wish->of < wish->spec->flow->steps.n);
    f->wish = *wish;
    gl_spec_ref(wish->spec);
    f->wish.context = f->chain.context;
    f->wish.job = gl_str_dup(&f->chain.arena, wish->job);
    f->wish.run_id = gl_str_dup(&f->chain.arena, wish->run_id);
    f->wish.step_id = gl_str_dup(&f->chain.arena, wish->step_id);
    f->wish.retry_of = gl_str_dup(&f->chain.arena, wish->retry_of);
    f->done = done;
    f->owner = owner;
    f->known =
        GL_NEW_ARRAY(&f->chain.arena, struct looked_up_step, spec->reads_n + spec->needs_n + 1);
    seen = gl_arena_alloc(&f->chain.arena, wish->spec->flow->steps.n / 8 + 1);
    memset(seen, 0, wish->spec->flow->steps.n / 8 + 1);
    want(f, seen, spec->reads, spec->reads_n);
    if (wish->with_needs) {
        want(f, seen, spec->needs, spec->needs_n);
    }
    past_of(f)->spec = spec;
    /* Always read something, so that `done` never runs from inside the call. */
    f->has_common = wish->spec->flow->inputs.n == 0 && wish->retry_of.n == 0 && f->known_n > 0;
    read_steps(f);
}

/* ---- for a gate ---- */

static void on_resolved(void *owner, const struct gl_lookup_wish *wish, int code, const char *why,
                        gl_str json)
{
    struct gl_event ev = {
        .type = GL_EV_RESOLVED,
        .context = wish->context,
        .job = wish->job,
        .resolved = {
            .step_number = wish->step_number, .code = code, .why = gl_str_of(why), .facts = json}};

    GL_ASSERT(wish->job.n == GL_ULID_BYTES);
    gl_node_feed(owner, &ev);
}

void gl_lookup_resolve(struct gl_node *n, const struct gl_effect *e)
{
    struct gl_lookup_wish wish = {.spec = e->spec,
                                  .of = e->of,
                                  .item = e->item,
                                  .step_number = e->step_number,
                                  .context = e->context,
                                  .job = e->job,
                                  .run_id = e->run_id,
                                  .step_id = e->step_id,
                                  .submitted_at = e->submitted_at,
                                  .retry_of = e->retry_of};

    GL_ASSERT(e->type == GL_FX_RESOLVE);
    GL_ASSERT(e->wants == 0);
    gl_lookup_gather(n, &wish, on_resolved, n);
    gl_spec_unref(e->spec); /* the effect's reference */
}
