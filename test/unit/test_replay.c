/* What the flight recorder writes, told again. */
#include "base/check.h"
#include "core/claims/claim.h"
#include "model/flow/flow.h"
#include "port/recording.h"
#include "sim/replay.h"
#include "support/cmocka_all.h"

#include <stdio.h>

#define JOB "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OTHER "01ARZ3NDEKTSV4RRFFQ69G5FAW"
#define NUMBER "01ARZ3NDEKTSV4RRFFQ69G5FAX"

/* A core with a recorder around it that writes into memory. */
struct box {
    struct gl_recording_port port;
    struct gl_buf text;
    struct gl_trace trace;
    struct gl_flight_recorder flight;
    struct gl_core *core;
    struct gl_arena arena;
    gl_ms now;
    size_t begun, refuse_after;
    gl_str flow, job; /* compiled; the record of the job that was written last */
    uint64_t replies; /* the request numbers that were answered, added up */
    int claims_n;     /* records of claims written */
    bool is_answered; /* a command from the inbox */
};

static bool on_begin(struct gl_recording_port *p, gl_str bytes)
{
    struct box *b = GL_CONTAINER(p, struct box, port);

    b->begun++;
    gl_buf_str(&b->text, bytes);
    return true;
}

static bool on_add(struct gl_recording_port *p, gl_str bytes)
{
    struct box *b = GL_CONTAINER(p, struct box, port);

    if (b->refuse_after > 0 && b->text.n > b->refuse_after) {
        b->refuse_after = 0;
        return false;
    }
    gl_buf_str(&b->text, bytes);
    return true;
}

static void feed(struct box *b, struct gl_event ev);

/* A store with one command in its inbox, and an answer for whoever asks. */
static struct gl_event_record record_for(struct box *b, const struct gl_key *key)
{
    struct gl_event_record r = {.kind = key->kind, .id = key->id};

    if (gl_str_is(key->kind, "job")) {
        r.rev = 1;
    } else if (gl_str_is(key->kind, "inbox")) {
        r.rev = 1;
        r.value = GL_S("{\"now\":1,\"type\":\"command\",\"job\":\"" JOB "\",\"verb\":\"pause\"}");
    } else if (gl_str_is(key->kind, "answer")) {
        r.rev = 1;
        r.value = GL_S("{\"code\":0,\"why\":\"\"}");
    } else if (gl_str_is(key->kind, "claim") && b->claims_n > 0) {
        r.rev = (uint64_t)b->claims_n;
        r.value = GL_S("{\"state\":\"claimed\",\"owner\":\"me\",\"lease_until\":9000,"
                       "\"lease_ms\":4000,\"attempt\":1,\"fence\":1}");
    }
    return r;
}

static void note_writes(struct box *b, const struct gl_tx *tx)
{
    for (size_t i = 0; i < tx->writes_n; i++) {
        b->claims_n += gl_str_is(tx->writes[i].kind, "claim");
        b->is_answered = b->is_answered || gl_str_is(tx->writes[i].kind, "answer");
        if (gl_str_is(tx->writes[i].kind, "job")) {
            b->job = gl_str_dup(&b->arena, tx->writes[i].value);
        }
    }
}

static void answer_call(struct box *b, const struct gl_core_call *call)
{
    static struct gl_event_peer other = {.id = GL_S("other#1.x"), .left_ms = 5000, .is_told = true};
    static struct gl_event_entry in_inbox = {.score = 5, .id = GL_S(JOB "/" NUMBER)};
    struct gl_event_record *records =
        GL_NEW_ARRAY(&b->arena, struct gl_event_record, call->keys_n + 1);
    struct gl_event_answer a = {.by = (uint8_t)call->by, .number = call->number};

    for (size_t i = 0; i < call->keys_n; i++) {
        records[i] = record_for(b, &call->keys[i]);
    }
    a.records = (struct gl_items){.items = records, .n = call->keys_n};
    a.time = call->type == GL_CORE_CALL_TIME ? 5000 : 0;
    if (call->type == GL_CORE_CALL_SESSIONS) {
        a.sessions = (struct gl_items){.items = &other, .n = 1};
    } else if (call->type == GL_CORE_CALL_COMMIT) {
        note_writes(b, call->tx);
    } else if (call->type == GL_CORE_CALL_RANGE && gl_str_is(call->range.index, "inbox") &&
               !b->is_answered) {
        a.entries = (struct gl_items){.items = &in_inbox, .n = 1};
    }
    feed(b, (struct gl_event){.type = GL_EV_ANSWER, .answer = a});
}

/* A job that another node owns. */
static void load(struct box *b, gl_str id)
{
    struct gl_event_record job = {.kind = GL_S("job"),
                                  .id = id,
                                  .owner = GL_S("other#1.x"),
                                  .rev = 3,
                                  .token = 2,
                                  .value = b->job};

    feed(b, (struct gl_event){.type = GL_EV_LOADED,
                              .job = id,
                              .loaded = {.flow_hash = GL_S("the-hash"),
                                         .flow = b->flow,
                                         .records = {.items = &job, .n = 1}}});
}

static void on_effect(struct box *b, const struct gl_effect *e)
{
    if (e->type == GL_FX_CALL) {
        answer_call(b, e->call);
    } else if (e->type == GL_FX_REPLY) {
        b->replies += e->request;
    } else if (e->type == GL_FX_LOAD) {
        load(b, e->job);
    } else if (e->type == GL_FX_COMMIT) {
        note_writes(b, e->tx);
        feed(b, (struct gl_event){.type = GL_EV_DONE, .job = e->job, .done = {.op = e->op}});
    } else if (e->type == GL_FX_START) {
        gl_spec_unref(e->spec);
        feed(b, (struct gl_event){.type = GL_EV_STARTED,
                                  .job = e->job,
                                  .started = {.attempt = e->attempt, .number = e->start_number}});
    } else if (e->type == GL_FX_FIND) {
        feed(b, (struct gl_event){.type = GL_EV_FOUND});
    } else if (e->type == GL_FX_LIST) {
        feed(b, (struct gl_event){.type = GL_EV_LISTED});
    }
}

static void feed(struct box *b, struct gl_event ev)
{
    struct gl_effects out = {.arena = &b->arena};

    ev.now = ++b->now;
    ev.context = GL_S("default");
    gl_flight_recorder_event(&b->flight, b->core, &ev);
    gl_core_step(b->core, &ev, &out);
    gl_flight_recorder_decided(&b->flight, &out);
    for (size_t i = 0; i < out.n; i++) {
        on_effect(b, &out.items[i]);
    }
}

static gl_str compile(struct box *b, const char *text)
{
    struct gl_flow_errors *errors = GL_NEW(&b->arena, struct gl_flow_errors);
    struct gl_flow *flow;
    struct gl_json j;
    struct gl_buf out = {0};
    gl_str compiled;

    assert_int_equal(gl_json_parse(&j, gl_str_of(text), 1 << 20, &b->arena, NULL), 0);
    assert_int_equal(gl_flow_parse(&j, gl_json_root(&j), NULL, &b->arena, &flow, errors), 0);
    gl_flow_encode(flow, &out);
    compiled = gl_str_dup(&b->arena, gl_buf_view(&out));
    gl_buf_done(&out);
    return compiled;
}

static void box_begin(struct box *b, size_t segment_bytes, gl_ms ttl_ms)
{
    static const struct gl_core_pool pool = {.name = GL_S("default"), .slots = 2};

    *b = (struct box){.now = 1000};
    b->port = (struct gl_recording_port){.segment_bytes = segment_bytes,
                                         .begin_bytes_max = 1 << 20,
                                         .begin = on_begin,
                                         .add = on_add};
    gl_flight_recorder_init(&b->flight, &b->port, &b->trace, GL_S("node"));
    b->core = gl_core_new(&(struct gl_core_config){.context = GL_S("default"),
                                                   .pools = &pool,
                                                   .pools_n = 1,
                                                   .node = GL_S("s"),
                                                   .shared = ttl_ms > 0,
                                                   .ttl_ms = ttl_ms,
                                                   .trace = &b->flight.digest.tap});
    feed(b,
         (struct gl_event){.type = GL_EV_SESSION, .session = {.session = GL_S("s"), .number = 1}});
    feed(b, (struct gl_event){.type = GL_EV_EXEC_UP, .exec_up = {.epoch = GL_S("e")}});
}

static void box_open(struct box *b, size_t segment_bytes)
{
    box_begin(b, segment_bytes, 0);
}

static void run_a_job(struct box *b, const char *id)
{
    gl_str flow = compile(b, "{\"steps\":{\"a\":{\"noop\":true},"
                             "\"b\":{\"noop\":true,\"needs\":[\"a\"]}}}");

    feed(b,
         (struct gl_event){.type = GL_EV_SUBMIT,
                           .job = gl_str_of(id),
                           .submit = {.flow_hash = GL_S("the-hash"), .flow = flow, .request = 1}});
    feed(b, (struct gl_event){.type = GL_EV_ENDED,
                              .job = gl_str_of(id),
                              .ended = {.attempt = GL_S("a:attempt:1"), .token = 1}});
    feed(b, (struct gl_event){.type = GL_EV_ENDED,
                              .job = gl_str_of(id),
                              .ended = {.attempt = GL_S("b:attempt:1"), .token = 1}});
}

static void box_close(struct box *b)
{
    gl_core_free(b->core);
    gl_flight_recorder_done(&b->flight);
    gl_buf_done(&b->text);
    gl_arena_done(&b->arena);
}

static int play(gl_str text, struct sim_replay_result *ret, struct gl_why *why)
{
    struct sim_replay_options options = {.is_bare = true};

    *why = (struct gl_why){0};
    return sim_replay_run(text, &options, ret, why);
}

static void a_recording_is_decided_the_same_again(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;

    (void)state;
    box_open(&b, 1 << 20);
    run_a_job(&b, JOB);
    assert_int_equal(play(gl_buf_view(&b.text), &result, &why), 0);
    assert_int_equal(result.differs_at, 0);
    assert_int_equal(result.segments_n, 1);
    assert_true(result.events_n >= 9);
    assert_true(result.compared_n + 1 >= result.events_n);
    sim_replay_done(&result);
    box_close(&b);
}

static void every_segment_can_be_told_by_itself(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;
    char id[] = JOB;

    (void)state;
    box_open(&b, 1);
    for (char c = 'A'; c < 'K'; c++) {
        id[25] = c;
        run_a_job(&b, id);
    }
    assert_true(b.begun > 3);
    assert_int_equal(play(gl_buf_view(&b.text), &result, &why), 0);
    assert_int_equal(result.differs_at, 0);
    assert_int_equal(result.segments_n, b.begun);
    sim_replay_done(&result);
    box_close(&b);
}

static void what_was_not_taken_ends_the_segment_and_the_next_one_begins(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;
    char id[] = JOB;

    (void)state;
    box_open(&b, 1 << 20);
    b.refuse_after = 1;
    run_a_job(&b, JOB); /* its first event is refused */
    b.now += 2000;
    id[25] = 'B';
    run_a_job(&b, id);
    assert_int_equal(b.begun, 2);
    assert_int_equal(play(gl_buf_view(&b.text), &result, &why), 0);
    assert_int_equal(result.differs_at, 0);
    sim_replay_done(&result);
    box_close(&b);
}

/* The flow stands in it once, however often it is submitted. */
static void a_flow_is_written_once(void **state)
{
    struct box b;
    char id[] = JOB;
    size_t flows = 0;

    (void)state;
    box_open(&b, 1 << 20);
    run_a_job(&b, JOB);
    id[25] = 'B';
    run_a_job(&b, id);
    for (gl_str rest = gl_buf_view(&b.text); rest.n > 0;) {
        flows += gl_str_starts(gl_str_cut(rest, '\n', &rest), GL_S("{\"flow\":"));
    }
    assert_int_equal(flows, 1);
    box_close(&b);
}

static void another_decision_is_told_with_its_event(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;
    char *at;

    (void)state;
    box_open(&b, 1 << 20);
    run_a_job(&b, JOB);
    gl_buf_char(&b.text, 0);
    at = strstr(strstr(b.text.p, "\"ended\""), "decided\":\"") + 10;
    *at = *at == '0' ? '1' : '0';
    b.text.n--;
    assert_int_equal(play(gl_buf_view(&b.text), &result, &why), 0);
    assert_true(result.differs_at > 0);
    gl_buf_char(&result.difference, 0);
    assert_non_null(strstr(result.difference.p, JOB));
    assert_non_null(strstr(result.difference.p, "running->completed"));
    sim_replay_done(&result);
    box_close(&b);
}

static void a_torn_end_is_fine_and_told(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;

    (void)state;
    box_open(&b, 1 << 20);
    run_a_job(&b, JOB);
    assert_int_equal(play((gl_str){.p = b.text.p, .n = b.text.n - 5}, &result, &why), 0);
    assert_true(result.is_torn);
    assert_int_equal(result.differs_at, 0);
    sim_replay_done(&result);
    box_close(&b);
}

static void a_flipped_bit_is_damage_and_not_another_decision(void **state)
{
    struct sim_replay_result result;
    struct gl_buf text = {0};
    struct gl_why why;
    struct box b;

    (void)state;
    box_open(&b, 1 << 20);
    run_a_job(&b, JOB);
    gl_buf_str(&text, gl_buf_view(&b.text));
    gl_recording_put_check(&(struct gl_recording_chain){0}, gl_buf_view(&b.text), &text);
    assert_int_equal(play(gl_buf_view(&text), &result, &why), 0);
    sim_replay_done(&result);
    for (size_t at = 0; at < b.text.n; at += 97) {
        text.p[at] ^= 4;
        assert_int_equal(play(gl_buf_view(&text), &result, &why), GL_E_DAMAGED);
        assert_non_null(strstr(why.text, "damaged"));
        sim_replay_done(&result);
        text.p[at] ^= 4;
    }
    gl_buf_done(&text);
    box_close(&b);
}

#define CLAIM_OF_7_MS                                                                   \
    "{\"event\":{\"now\":9999999,\"type\":\"claim\",\"act\":\"acquire\",\"key\":\"k\"," \
    "\"owner\":\"o\",\"lease_ms\":7}}\n"

/* A node checks requests before the core gets them; an edited recording was not checked. */
static void an_event_that_no_node_writes_is_refused(void **state)
{
    static const char *const events[] = {
        "{\"event\":{\"now\":9999999,\"type\":\"clean\",\"is_removal\":true}}\n",
        CLAIM_OF_7_MS,
        "{\"event\":{\"now\":9999999,\"type\":\"submit\",\"job\":\"x\"}}\n",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(events); i++) {
        struct sim_replay_result result;
        struct gl_why why;
        struct box b;

        box_open(&b, 1 << 20);
        run_a_job(&b, JOB);
        gl_buf_str(&b.text, gl_str_of(events[i]));
        assert_int_equal(play(gl_buf_view(&b.text), &result, &why), GL_E_DAMAGED);
        sim_replay_done(&result);
        box_close(&b);
    }
}

static void what_is_no_recording_is_refused_with_a_sentence(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "hello\n",
        "{\"name\":\"flow\"}\n",
        "[1,2]\n",
        "{\"event\":{}}\n",
        "{\"recording\":{\"format\":1}}\n",
        "{\"recording\":{\"format\":1,\"lines\":3}}\n{\"a\":1}\n",
        "{\"recording\":{\"format\":99,\"lines\":0}}\n",
        "{\"recording\":{\"format\":1,\"lines\":1}}\n{\"core\":{}}\n",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        struct sim_replay_result result;
        struct gl_why why;

        assert_int_not_equal(play(gl_str_of(texts[i]), &result, &why), 0);
        assert_true(strlen(why.text) > 10);
        sim_replay_done(&result);
    }
}

static void what_travels_between_nodes_is_decided_the_same_again(void **state)
{
    struct sim_replay_result result;
    struct gl_why why;
    struct box b;

    (void)state;
    box_begin(&b, 1, 9000); /* in as many segments as there can be: each begins with a snapshot */
    b.flow = compile(&b, "{\"steps\":{\"a\":{\"noop\":true}}}");
    feed(&b, (struct gl_event){.type = GL_EV_SUBMIT,
                               .job = GL_S(JOB),
                               .submit = {.flow_hash = GL_S("the-hash"), .flow = b.flow}});
    feed(&b, (struct gl_event){.type = GL_EV_TICK}); /* who else is there; and the inbox */
    assert_true(b.is_answered);
    feed(&b, (struct gl_event){
                 .type = GL_EV_COMMAND,
                 .job = GL_S(OTHER),
                 .command = {.request = 7, .verb = GL_CMD_PAUSE, .send_as = GL_S(NUMBER)}});
    assert_int_equal(b.replies, 0);
    feed(&b, (struct gl_event){.type = GL_EV_WOKEN, .woken = {.word = GL_S("answer")}});
    feed(&b, (struct gl_event){.type = GL_EV_TICK});
    assert_int_equal(b.replies, 7);
    for (uint64_t i = 0; i < 2; i++) { /* it is given, and then it is busy */
        feed(&b, (struct gl_event){.type = GL_EV_CLAIM,
                                   .claim = {.request = 100 * (i + 1),
                                             .act = GL_CLAIM_ACQUIRE,
                                             .key = GL_S("k"),
                                             .owner = GL_S("me"),
                                             .nonce = GL_S("n")}});
    }
    assert_int_equal(b.claims_n, 1);
    assert_int_equal(b.replies, 307);
    feed(&b, (struct gl_event){.type = GL_EV_CLAIM,
                               .claim = {.request = 1000, .act = GL_CLAIM_RECLAIM}});
    assert_int_equal(b.replies, 1307);
    assert_true(b.begun > 1);
    assert_int_equal(play(gl_buf_view(&b.text), &result, &why), 0);
    assert_int_equal(result.differs_at, 0);
    assert_int_equal(result.segments_n, b.begun);
    sim_replay_done(&result);
    box_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_decided_the_same_again),
        cmocka_unit_test(what_travels_between_nodes_is_decided_the_same_again),
        cmocka_unit_test(every_segment_can_be_told_by_itself),
        cmocka_unit_test(what_was_not_taken_ends_the_segment_and_the_next_one_begins),
        cmocka_unit_test(a_flow_is_written_once),
        cmocka_unit_test(another_decision_is_told_with_its_event),
        cmocka_unit_test(a_torn_end_is_fine_and_told),
        cmocka_unit_test(a_flipped_bit_is_damage_and_not_another_decision),
        cmocka_unit_test(an_event_that_no_node_writes_is_refused),
        cmocka_unit_test(what_is_no_recording_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
