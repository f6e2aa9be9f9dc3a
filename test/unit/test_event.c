/* Events are values: what is written down comes back the same, whatever its kind. */
#include "core/event.h"

#include "base/check.h"
#include "support/cmocka_all.h"

enum { NUMBER = 7 };

static void fill(const struct gl_schema *s, struct gl_arena *a, void *object);

/* Anything but zero, and different from field to field. */
static void fill_field(const struct gl_field *f, size_t number, struct gl_arena *a, void *at)
{
    struct gl_items *list = at;
    struct gl_strs *texts = at;
    gl_str *text;

    switch (f->type) {
    case GL_F_BOOL:
        *(bool *)at = true;
        break;
    case GL_F_I64:
    case GL_F_U64:
        *(uint64_t *)at = NUMBER + number;
        break;
    case GL_F_U32:
        *(uint32_t *)at = NUMBER + (uint32_t)number;
        break;
    case GL_F_ENUM:
        *(uint8_t *)at = 1;
        break;
    case GL_F_STR:
        *(gl_str *)at = gl_str_fmt(a, "\"%s\"\n%zu", f->name, number);
        break;
    case GL_F_LIST:
        list->items = gl_arena_alloc(a, f->sub->bytes);
        list->n = 1;
        fill(f->sub, a, list->items);
        break;
    case GL_F_STRS:
        text = GL_NEW(a, gl_str);
        *text = gl_str_fmt(a, "%s %zu", f->name, number);
        *texts = (struct gl_strs){.items = text, .n = 1};
        break;
    default:
        fail_msg("%s: this test does not know that type", f->name);
    }
}

static void fill(const struct gl_schema *s, struct gl_arena *a, void *object)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        fill_field(&s->fields[i], i, a, (char *)object + s->fields[i].offset);
    }
}

static struct gl_event full(enum gl_event_type type, struct gl_arena *a)
{
    struct gl_event ev = {0};

    fill(gl_event_schema(type), a, &ev);
    ev.type = (uint8_t)type;
    return ev;
}

static gl_str text_of(const struct gl_event *ev, struct gl_arena *a)
{
    struct gl_buf text = {0};
    gl_str copy;

    gl_event_encode(ev, &text);
    copy = gl_str_dup(a, gl_buf_view(&text));
    gl_buf_done(&text);
    return copy;
}

static size_t keys_of(gl_str text, struct gl_arena *a)
{
    struct gl_json j;
    size_t n = 0;

    assert_int_equal(gl_json_parse(&j, text, SIZE_MAX, a, NULL), 0);
    for (gl_jnode k = gl_json_first(&j, gl_json_root(&j)); k != NULL;
         k = gl_json_after(&j, gl_json_root(&j), k)) {
        n++;
    }
    return n;
}

static void each_kind_comes_back_with_all_its_fields(void **state)
{
    (void)state;
    for (enum gl_event_type type = 0; type < GL_EV_COUNT; type++) {
        struct gl_arena a = {0};
        struct gl_event ev = full(type, &a), back;
        gl_str text = text_of(&ev, &a);

        assert_int_equal(keys_of(text, &a), gl_event_schema(type)->fields_n);
        assert_int_equal(gl_event_decode(text, &a, &back, NULL), 0);
        assert_int_equal(back.type, type);
        assert_true(gl_str_eq(text, text_of(&back, &a)));
        gl_arena_done(&a);
    }
}

static void an_event_of_zeroes_is_its_time_and_its_kind(void **state)
{
    (void)state;
    for (enum gl_event_type type = 0; type < GL_EV_COUNT; type++) {
        struct gl_arena a = {0};
        struct gl_event ev = {.type = (uint8_t)type}, back;
        gl_str text = text_of(&ev, &a);

        assert_true(gl_str_eq(
            text, gl_str_fmt(&a, "{\"now\":0,\"type\":\"%s\"}", gl_event_schema(type)->name)));
        assert_int_equal(gl_event_decode(text, &a, &back, NULL), 0);
        assert_true(gl_str_eq(text, text_of(&back, &a)));
        gl_arena_done(&a);
    }
}

static bool has(const struct gl_schema *s, const char *name)
{
    for (size_t i = 0; i < s->fields_n; i++) {
        if (strcmp(s->fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Each event, with the word of each other kind. */
static void no_kind_takes_a_field_of_another(void **state)
{
    size_t refused_n = 0;

    (void)state;
    for (enum gl_event_type one = 0; one < GL_EV_COUNT; one++) {
        const struct gl_schema *s = gl_event_schema(one);
        struct gl_arena a = {0};
        struct gl_event ev = full(one, &a), back;
        gl_str text = text_of(&ev, &a);
        gl_str word = gl_str_fmt(&a, "\"type\":\"%s\"", s->name);
        const char *at = memmem(text.p, text.n, word.p, word.n);

        assert_non_null(at);
        for (enum gl_event_type other = 0; other < GL_EV_COUNT; other++) {
            const struct gl_schema *its = gl_event_schema(other);
            size_t before = (size_t)(at - text.p), after = text.n - before - word.n;
            gl_str said = gl_str_fmt(&a, "%.*s\"type\":\"%s\"%.*s", (int)before, text.p, its->name,
                                     (int)after, at + word.n);
            bool fits = true;

            for (size_t i = 0; i < s->fields_n; i++) {
                fits = fits && has(its, s->fields[i].name);
            }
            assert_int_equal(gl_event_decode(said, &a, &back, NULL), fits ? 0 : GL_E_INVALID);
            refused_n += !fits;
        }
        gl_arena_done(&a);
    }
    assert_true(refused_n > GL_EV_COUNT * (GL_EV_COUNT - 1) / 2);
}

/* As a node of an earlier release put it into the inbox of a job. Nodes of that release read ours,
 * too. */
static void a_command_of_an_earlier_release_is_understood(void **state)
{
    gl_str then = GL_S("{\"now\":1763539200000,\"type\":\"command\",\"context\":\"default\","
                       "\"job\":\"01JCZ5V0000000000000000000\",\"verb\":\"respond\","
                       "\"step\":\"ask[2]\",\"decision\":\"approve\",\"output\":\"{\\\"a\\\":1}\","
                       "\"who\":\"ann\",\"reason\":\"looks good\"}");
    struct gl_arena a = {0};
    struct gl_event ev;

    (void)state;
    assert_int_equal(gl_event_decode(then, &a, &ev, NULL), 0);
    assert_int_equal(ev.now, 1763539200000);
    assert_int_equal(ev.type, GL_EV_COMMAND);
    assert_true(gl_str_is(ev.job, "01JCZ5V0000000000000000000"));
    assert_int_equal(ev.command.request, 0);
    assert_int_equal(ev.command.verb, GL_CMD_RESPOND);
    assert_true(gl_str_is(ev.command.step, "ask[2]"));
    assert_true(gl_str_is(ev.command.decision, "approve"));
    assert_true(gl_str_is(ev.command.output, "{\"a\":1}"));
    assert_true(gl_str_is(ev.command.who, "ann"));
    assert_true(gl_str_is(ev.command.reason, "looks good"));
    assert_true(gl_str_eq(text_of(&ev, &a), then));
    gl_arena_done(&a);
}

/* Lines of a recording that an earlier release made. */
static void events_of_an_earlier_release_are_understood(void **state)
{
    static const char *const lines[] = {
        "{\"now\":5,\"type\":\"ended\",\"job\":\"j\",\"attempt\":\"a:attempt:1\",\"token\":3,"
        "\"output\":\"{}\",\"end\":\"timeout\",\"exit_code\":-3,\"signal\":9,\"started_at\":1,"
        "\"ended_at\":4,\"error\":\"e\"}",
        "{\"now\":5,\"type\":\"attached\",\"job\":\"j\",\"attempt\":\"a:attempt:1\",\"token\":3,"
        "\"code\":-3,\"output\":\"{}\",\"state\":\"ended\",\"end\":\"signaled\",\"signal\":9}",
        "{\"now\":5,\"type\":\"submit\",\"job\":\"j\",\"request\":1,\"run_id\":\"r\","
        "\"flow_hash\":\"h\",\"flow\":\"{}\",\"dedupe_key\":\"d\",\"stack\":\"s\","
        "\"env_scope\":\"e\",\"inputs\":\"{}\",\"request_key\":\"k\"}",
        "{\"now\":5,\"type\":\"answer\",\"code\":-3,\"why\":\"w\",\"number\":4,\"by\":\"peers\","
        "\"sessions\":[{\"id\":\"n#1\",\"left_ms\":-5,\"is_told\":true,\"has_pools\":true,"
        "\"pools\":[{\"name\":\"default\",\"slots\":4}]}]}",
        "{\"now\":5,\"type\":\"exec_down\",\"why\":\"gone\"}",
    };

    (void)state;
    for (size_t i = 0; i < GL_COUNT(lines); i++) {
        struct gl_arena a = {0};
        struct gl_event ev;

        assert_int_equal(gl_event_decode(gl_str_of(lines[i]), &a, &ev, NULL), 0);
        assert_int_equal(keys_of(text_of(&ev, &a), &a), keys_of(gl_str_of(lines[i]), &a));
        gl_arena_done(&a);
    }
}

static void what_is_no_event_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "[]",
        "{}",
        "{\"now\":1}",
        "{\"type\":\"tick\"}",
        "{\"now\":1,\"type\":\"tock\"}",
        "{\"now\":1,\"type\":7}",
        "{\"now\":\"1\",\"type\":\"tick\"}",
        "{\"now\":1,\"type\":\"tick\",\"colour\":\"red\"}",
    };
    struct gl_event ev = {.now = NUMBER};

    (void)state;
    for (size_t i = 0; i < GL_COUNT(lines); i++) {
        struct gl_arena a = {0};

        assert_int_not_equal(gl_event_decode(gl_str_of(lines[i]), &a, &ev, NULL), 0);
        assert_int_equal(ev.now, NUMBER); /* untouched */
        gl_arena_done(&a);
    }
}

static void who_only_tells_of_events_sees_what_kinds_share(void **state)
{
    struct gl_event ended = {.type = GL_EV_ENDED, .ended = {.attempt = GL_S("a:attempt:1")}};
    struct gl_event loaded = {.type = GL_EV_LOADED,
                              .loaded = {.code = GL_E_CONFLICT, .flow_hash = GL_S("h")}};
    gl_str hash = {0};

    (void)state;
    assert_true(gl_str_is(gl_event_attempt(&ended), "a:attempt:1"));
    assert_int_equal(gl_event_code(&ended), 0);
    assert_null(gl_event_flow(&ended, &hash));
    assert_int_equal(gl_event_attempt(&loaded).n, 0);
    assert_int_equal(gl_event_code(&loaded), GL_E_CONFLICT);
    assert_ptr_equal(gl_event_flow(&loaded, &hash), &loaded.loaded.flow);
    assert_true(gl_str_is(hash, "h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_comes_back_with_all_its_fields),
        cmocka_unit_test(an_event_of_zeroes_is_its_time_and_its_kind),
        cmocka_unit_test(no_kind_takes_a_field_of_another),
        cmocka_unit_test(a_command_of_an_earlier_release_is_understood),
        cmocka_unit_test(events_of_an_earlier_release_are_understood),
        cmocka_unit_test(what_is_no_event_is_refused),
        cmocka_unit_test(who_only_tells_of_events_sees_what_kinds_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
