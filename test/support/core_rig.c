#include "support/core_rig.h"

#include "core/scheduling/slots.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the store ---- */

static gl_str row_key(struct rig *r, gl_str kind, gl_str id)
{
    return gl_str_fmt(&r->arena, "%.*s/%.*s", GL_STR_ARG(kind), GL_STR_ARG(id));
}

static struct rig_row *row_find(struct rig *r, gl_str kind, gl_str id)
{
    uintptr_t number = (uintptr_t)gl_map_find(&r->index, row_key(r, kind, id));

    return number > 0 ? &r->rows[number - 1] : NULL;
}

struct rig_row *rig_row(struct rig *r, gl_str kind, gl_str id)
{
    struct rig_row *row = row_find(r, kind, id);

    if (row == NULL) {
        if (r->rows_n == r->rows_cap) {
            r->rows_cap = r->rows_cap * 2 + 64;
            r->rows = realloc(r->rows, r->rows_cap * sizeof(*r->rows));
        }
        row = &r->rows[r->rows_n++];
        *row =
            (struct rig_row){.kind = gl_str_dup(&r->arena, kind), .id = gl_str_dup(&r->arena, id)};
        gl_map_add(&r->index, row_key(r, kind, id), (void *)(uintptr_t)r->rows_n);
    }
    return row;
}

static void apply(struct rig *r, const struct gl_write *w)
{
    struct rig_row *row;

    switch (w->type) {
    case GL_WRITE_PUT:
    case GL_WRITE_PUT_NEW:
        row = rig_row(r, w->kind, w->id);
        row->value = gl_str_dup(&r->arena, w->value);
        row->owner = gl_str_dup(&r->arena, w->owner);
        row->rev = w->rev;
        row->token = w->token;
        row->live = w->live;
        break;
    case GL_WRITE_INDEX:
        row = rig_row(r, w->kind, w->id);
        row->score = w->score;
        row->live = true;
        break;
    case GL_WRITE_UNINDEX:
        rig_row(r, w->kind, w->id)->live = false;
        break;
    default:
        break;
    }
}

static void commit(struct rig *r, const struct gl_effect *e)
{
    int64_t code = r->refuse_next ? GL_E_CONFLICT : 0;

    r->refused_op = r->refuse_next ? e->op : r->refused_op;
    r->refuse_next = false;
    for (size_t i = 0; code == 0 && i < e->tx->writes_n; i++) {
        apply(r, &e->tx->writes[i]);
    }
    rig_feed(r, (struct gl_event){
                    .type = GL_EV_DONE, .job = e->job, .done = {.op = e->op, .code = code}});
}

static struct gl_event_record record_of(const struct rig *r, const struct rig_row *row)
{
    char session[16];

    (void)snprintf(session, sizeof(session), "n#%u", r->life);
    return (struct gl_event_record){.kind = row->kind,
                                    .id = row->id,
                                    .owner = row->owner,
                                    .value = row->value,
                                    .rev = row->rev,
                                    .token = row->token,
                                    .owner_dead = !gl_str_is(row->owner, session)};
}

void rig_load(struct rig *r, gl_str job)
{
    struct gl_event_record *records = calloc(r->rows_n + 1, sizeof(*records));
    gl_str prefix = gl_str_fmt(&r->arena, "%.*s/", GL_STR_ARG(job));
    struct rig_row *row = row_find(r, GL_S("job"), job);
    size_t n = 0;
    gl_str flow = {0};

    r->loads_n++;
    assert_non_null(row);
    records[n++] = record_of(r, row);
    for (size_t i = 0; i < r->rows_n; i++) {
        row = &r->rows[i];
        if (gl_str_is(row->kind, "step") && row->live && gl_str_starts(row->id, prefix)) {
            records[n++] = record_of(r, row);
        }
    }
    for (size_t i = 0; i < r->rows_n; i++) { /* flows are named like the jobs of this test */
        row = &r->rows[i];
        flow = gl_str_is(row->kind, "flow") && gl_str_ends(row->id, job) ? row->value : flow;
    }
    rig_feed(r, (struct gl_event){.type = GL_EV_LOADED,
                                  .job = job,
                                  .loaded = {.flow = flow, .records = {.items = records, .n = n}}});
    free(records);
}

static void find(struct rig *r, const struct gl_range *range)
{
    struct gl_event_entry *entries = calloc(r->rows_n + 1, sizeof(*entries));
    size_t n = 0;

    for (int64_t score = GL_WAKE_RUNNING; score <= GL_WAKE_READY; score++) {
        for (size_t i = 0; i < r->rows_n && score >= range->score_min && score <= range->score_max;
             i++) {
            const struct rig_row *row = &r->rows[i];

            if (gl_str_is(row->kind, "wake") && row->live && row->score == score) {
                entries[n++] = (struct gl_event_entry){.score = score, .id = row->id};
            }
        }
    }
    rig_feed(r, (struct gl_event){.type = GL_EV_FOUND,
                                  .found = {.entries = {.items = entries, .n = n}}});
    free(entries);
}

/* ---- the executor, and the rest of the world ---- */

static void start(struct rig *r, const struct gl_effect *e)
{
    struct rig_run *run = &r->runs[r->runs_n++];

    assert_true(r->runs_n < RIG_RUNS_MAX);
    (void)snprintf(run->job, sizeof(run->job), "%.*s", GL_STR_ARG(e->job));
    (void)snprintf(run->attempt, sizeof(run->attempt), "%.*s", GL_STR_ARG(e->attempt));
    run->token = e->token;
    run->at = r->now;
    run->ended = false;
    gl_spec_unref(e->spec);
    rig_feed(r, (struct gl_event){.type = GL_EV_STARTED,
                                  .job = e->job,
                                  .started = {.attempt = e->attempt, .number = e->start_number}});
}

static void on_effect(struct rig *r, const struct gl_effect *e)
{
    if (e->after != 0 && e->after == r->refused_op) { /* what depends on it does not happen */
        if (e->spec != NULL) {
            gl_spec_unref(e->spec);
        }
        return;
    }
    switch (e->type) {
    case GL_FX_COMMIT:
        commit(r, e);
        break;
    case GL_FX_START:
        start(r, e);
        break;
    case GL_FX_LOAD:
        if (!r->deaf) {
            rig_load(r, e->job);
        }
        break;
    case GL_FX_FIND:
        find(r, &e->range);
        break;
    case GL_FX_LIST:
        rig_feed(r, (struct gl_event){.type = GL_EV_LISTED});
        break;
    case GL_FX_ATTACH:
        rig_feed(r, (struct gl_event){.type = GL_EV_ATTACHED,
                                      .job = e->job,
                                      .attached = {.attempt = e->attempt,
                                                   .token = e->token,
                                                   .state = (uint8_t)r->attached}});
        break;
    case GL_FX_STOP:
        r->stopped_n++;
        break;
    case GL_FX_TELL:
        r->ended_n += e->ended;
        break;
    default:
        break;
    }
}

void rig_feed(struct rig *r, struct gl_event ev)
{
    struct gl_arena arena = {0};
    struct gl_effects out = {.arena = &arena};
    struct gl_arena mine = {0}; /* the event may borrow from effects that are freed meanwhile */

    ev.now = r->now;
    ev.context = GL_S("default");
    ev.job = gl_str_dup(&mine, ev.job);
    if (ev.type == GL_EV_STARTED) {
        ev.started.attempt = gl_str_dup(&mine, ev.started.attempt);
    } else if (ev.type == GL_EV_ATTACHED) {
        ev.attached.attempt = gl_str_dup(&mine, ev.attached.attempt);
    }
    gl_core_step(r->core, &ev, &out);
    for (size_t i = 0; i < out.n; i++) {
        on_effect(r, &out.items[i]);
    }
    gl_arena_done(&arena);
    gl_arena_done(&mine);
}

void rig_settle(struct rig *r)
{
    while (gl_core_next_due(r->core) <= r->now) {
        rig_feed(r, (struct gl_event){.type = GL_EV_TICK});
    }
}

void rig_at(struct rig *r, gl_ms now)
{
    r->now = now;
    rig_settle(r);
}

/* A node begins, over what the last one left behind. */
void rig_begin(struct rig *r)
{
    struct gl_core_config config = {.context = GL_S("default"),
                                    .pools = r->pools,
                                    .pools_n = GL_COUNT(r->pools),
                                    .hot_jobs_max = r->hot_max,
                                    .trace = &r->trace};
    struct gl_event_record *rates = calloc(r->rows_n + 1, sizeof(*rates));
    char session[16];
    size_t n = 0;

    r->core = gl_core_new(&config);
    (void)snprintf(session, sizeof(session), "n#%u", ++r->life);
    for (size_t i = 0; i < r->rows_n; i++) {
        if (gl_str_is(r->rows[i].kind, "rate")) {
            rates[n++] = record_of(r, &r->rows[i]);
        }
    }
    rig_feed(
        r, (struct gl_event){.type = GL_EV_RATES, .rates = {.records = {.items = rates, .n = n}}});
    free(rates);
    rig_feed(r, (struct gl_event){.type = GL_EV_SESSION,
                                  .session = {.session = gl_str_of(session), .number = r->life}});
    rig_feed(r, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e1")}});
    rig_settle(r);
}

void rig_restart(struct rig *r)
{
    gl_core_free(r->core);
    rig_begin(r);
}

struct rig *rig_new(uint32_t slots, uint32_t gpu_slots)
{
    struct rig *r = calloc(1, sizeof(*r));

    r->runs = calloc(RIG_RUNS_MAX, sizeof(*r->runs));
    r->now = 1000000;
    r->attached = GL_EXEC_RUNNING;
    r->pools[0] = (struct gl_core_pool){.name = GL_S("default"), .slots = slots};
    r->pools[1] = (struct gl_core_pool){.name = GL_S("gpu"), .slots = gpu_slots};
    rig_begin(r);
    return r;
}

void rig_free(struct rig *r)
{
    gl_core_free(r->core);
    gl_arena_done(&r->arena);
    gl_map_done(&r->index);
    free(r->rows);
    free(r->runs);
    free(r);
}

/* ---- flows ---- */

/* What limits a step, in words: "c=KEY/MAX r=KEY/MS p=PRIORITY pool=NAME n=SLOTS". */
static void wish(struct gl_step_spec *s, gl_str word)
{
    gl_str value, number, name = gl_str_cut(word, '=', &value);
    gl_str key = gl_str_cut(value, '/', &number);
    int64_t n = 0;

    (void)gl_str_i64(gl_str_is(name, "p") || gl_str_is(name, "n") ? value : number, &n);
    if (gl_str_is(name, "c")) {
        s->limit_key = key;
        s->limit_max = (uint32_t)n;
    } else if (gl_str_is(name, "r")) {
        s->rate_key = key;
        s->rate_ms = n;
    } else if (gl_str_is(name, "p")) {
        s->priority = n;
    } else if (gl_str_is(name, "pool")) {
        s->pool = value;
    } else if (gl_str_is(name, "n")) {
        s->slots = (uint32_t)n;
    } else {
        fail_msg("no such wish: %.*s", GL_STR_ARG(name));
    }
}

/* "a c=db/1; b c=db/1": steps without parents, and what each wishes. */
static gl_str compile(struct rig *r, const char *text)
{
    gl_str rest = gl_str_dup(&r->arena, gl_str_of(text)), word;
    struct gl_flow flow = {.name = GL_S("test")};
    struct gl_step_spec *steps = GL_NEW_ARRAY(&r->arena, struct gl_step_spec, strlen(text) / 2 + 2);
    struct gl_buf out = {0};
    gl_str compiled;

    while (rest.n > 0) {
        gl_str one = gl_str_trim(gl_str_cut(rest, ';', &rest));
        struct gl_step_spec *s = &steps[flow.steps.n++];

        s->id = gl_str_cut(one, ' ', &one);
        s->driver = GL_S("noop");
        s->pool = GL_S("default");
        s->slots = 1;
        s->grace_ms = GL_GRACE_MS;
        s->retry = (struct gl_retry){
            .attempts = 1, .backoff_ms = 1000, .factor_pct = 200, .backoff_max_ms = 300000};
        while (one.n > 0) {
            word = gl_str_cut(one, ' ', &one);
            wish(s, word);
        }
    }
    flow.steps.items = steps;
    gl_flow_encode(&flow, &out);
    compiled = gl_str_dup(&r->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

void rig_submit(struct rig *r, const char *text)
{
    gl_str flow = compile(r, text);

    (void)snprintf(r->job, sizeof(r->job), "01HZZZZZZZZZZZZZZZZZ%06u", ++r->jobs_n);
    rig_feed(
        r, (struct gl_event){.type = GL_EV_SUBMIT,
                             .job = gl_str_of(r->job),
                             .submit = {.request = 1,
                                        .flow = flow,
                                        .flow_hash = gl_str_fmt(&r->arena, "flow of %s", r->job)}});
    rig_settle(r);
}

void rig_finish(struct rig *r, size_t run)
{
    struct rig_run *it = &r->runs[run];

    assert_true(run < r->runs_n);
    assert_false(it->ended);
    it->ended = true;
    rig_feed(
        r, (struct gl_event){.type = GL_EV_ENDED,
                             .job = gl_str_of(it->job),
                             .ended = {.attempt = gl_str_of(it->attempt),
                                       .token = row_find(r, GL_S("job"), gl_str_of(it->job))->token,
                                       .result = {.end = GL_EXEC_EXITED}}});
    rig_settle(r);
}

void rig_command(struct rig *r, const char *job, enum gl_command verb)
{
    rig_feed(r, (struct gl_event){.type = GL_EV_COMMAND,
                                  .job = gl_str_of(job),
                                  .command = {.request = 2, .verb = (uint8_t)verb}});
    rig_settle(r);
}

/* The steps started since the last call, in order: "a,b". */
const char *rig_started(struct rig *r)
{
    struct gl_buf b = {0};
    const char *text;

    for (; r->taken_n < r->runs_n; r->taken_n++) {
        gl_str rest;

        gl_buf_c(&b, b.n > 0 ? "," : "");
        gl_buf_str(&b, gl_str_cut(gl_str_of(r->runs[r->taken_n].attempt), ':', &rest));
    }
    text = gl_str_c(&r->arena, gl_buf_view(&b));
    gl_buf_done(&b);
    return text;
}

const char *rig_why(struct rig *r, const char *job, uint32_t step)
{
    struct gl_buf b = {0};
    const char *text = "";

    if (gl_slots_explain(r->core, gl_str_of(job), step, &b)) {
        text = gl_str_c(&r->arena, gl_buf_view(&b));
    }
    gl_buf_done(&b);
    return text;
}
