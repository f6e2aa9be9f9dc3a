/* The keeper's protocol: what is written is read back, and nothing else is accepted. */
#include "base/check.h"
#include "port/keeper_protocol.h"
#include "support/cmocka_all.h"

static gl_str message_of(const struct gl_buf *b)
{
    struct gl_why why;
    gl_str message = {0};
    size_t used = 0;
    assert_int_equal(gl_keeper_frame(gl_buf_view(b), &message, &used, &why), 0);
    assert_int_equal(used, b->n);
    return message;
}

static void assert_str(gl_str s, const char *expected)
{
    assert_true(gl_str_is(s, expected));
}

/* ---- messages ---- */

static void a_start_is_read_as_it_was_written(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_str argv[] = {GL_S("sh"), GL_S("-c"), GL_S(""), GL_S("echo \xff")};
    gl_str env[] = {GL_S("A=1"), GL_S("B=")};
    gl_str secrets[] = {GL_S("S=1234")};
    struct gl_exec_file files[] = {{GL_S("run.sh"), GL_S("abc"), .executable = true},
                                   {GL_S("d/x"), GL_S("def"), .text = {0}}};
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_START,
        .req = UINT64_MAX,
        .start = {.key = {GL_S("default"), GL_S("JOB"), GL_S("a:attempt:1")},
                  .token = 1ull << 63,
                  .epoch = GL_S("e"),
                  .start_by = -5,
                  .driver = GL_S("process"),
                  .argv = argv,
                  .argv_n = GL_COUNT(argv),
                  .env = env,
                  .env_n = GL_COUNT(env),
                  .secrets = secrets,
                  .secrets_n = GL_COUNT(secrets),
                  .cwd = GL_S("/tmp"),
                  .files = files,
                  .files_n = GL_COUNT(files),
                  .input = GL_S("{}"),
                  .timeout_ms = 1,
                  .grace_ms = 2,
                  .beacon_ms = 3},
    };
    gl_keeper_encode(&m, &b);
    struct gl_keeper_msg got;
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_int_equal(got.type, GL_KEEPER_START);
    assert_true(got.req == UINT64_MAX);
    assert_str(got.start.key.context, "default");
    assert_str(got.start.key.job, "JOB");
    assert_str(got.start.key.attempt, "a:attempt:1");
    assert_true(got.start.token == 1ull << 63);
    assert_int_equal(got.start.start_by, -5);
    assert_int_equal(got.start.argv_n, 4);
    assert_str(got.start.argv[2], "");
    assert_str(got.start.argv[3], "echo \xff");
    assert_int_equal(got.start.env_n, 2);
    assert_str(got.start.env[1], "B=");
    assert_int_equal(got.start.secrets_n, 1);
    assert_str(got.start.secrets[0], "S=1234");
    assert_int_equal(got.start.files_n, 2);
    assert_str(got.start.files[0].name, "run.sh");
    assert_true(got.start.files[0].executable);
    assert_str(got.start.files[1].blob, "def");
    assert_false(got.start.files[1].executable);
    assert_str(got.start.cwd, "/tmp");
    assert_str(got.start.input, "{}");
    assert_int_equal(got.start.beacon_ms, 3);
}

static void a_result_is_read_as_it_was_written(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_ENDED,
        .status = GL_E_STALE,
        .state = GL_EXEC_LOST,
        .result = {.end = GL_EXEC_ORPHANED,
                   .exit_code = 255,
                   .signal = 9,
                   .started_at = 1,
                   .ended_at = INT64_MAX,
                   .output = GL_S("[1]"),
                   .error = GL_S("why")},
        .output_source = GL_KEEPER_FROM_LINE,
        .mark = 77,
    };
    gl_keeper_encode(&m, &b);
    struct gl_keeper_msg got;
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_int_equal(got.status, GL_E_STALE);
    assert_int_equal(got.state, GL_EXEC_LOST);
    assert_int_equal(got.result.end, GL_EXEC_ORPHANED);
    assert_int_equal(got.result.exit_code, 255);
    assert_int_equal(got.result.signal, 9);
    assert_true(got.result.ended_at == INT64_MAX);
    assert_str(got.result.output, "[1]");
    assert_str(got.result.error, "why");
    assert_int_equal(got.output_source, GL_KEEPER_FROM_LINE);
    assert_int_equal(got.mark, 77);
}

static void a_worker_is_read_as_it_was_written(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_exec_file files[] = {{.name = GL_S("a"), .blob = GL_S("abc"), .executable = true},
                                   {.name = GL_S("b"), .text = GL_S("t\0\1")},
                                   {.name = GL_S("c")}};
    struct gl_keeper_msg got,
        m = {
            .type = GL_KEEPER_START,
            .start = {.is_worker = true,
                      .stdout_max = 77,
                      .make_folder = GL_S("/x"),
                      .take_folder = GL_S("/y"),
                      .files = files,
                      .files_n = GL_COUNT(files)},
            .output_source = GL_KEEPER_FROM_WORKER,
            .worker = {.out = GL_S("o\xff"), .err = GL_S("e"), .is_cut = true, .out_bytes = 9},
            .line = GL_S(GL_EXEC_SAYS "{}"),
        };
    gl_keeper_encode(&m, &b);
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_true(got.start.is_worker);
    assert_int_equal(got.start.stdout_max, 77);
    assert_str(got.start.make_folder, "/x");
    assert_str(got.start.take_folder, "/y");
    assert_int_equal(got.start.files_n, 3);
    assert_str(got.start.files[0].blob, "abc");
    assert_int_equal(got.start.files[0].text.n, 0);
    assert_int_equal(got.start.files[1].text.n, 3);
    assert_memory_equal(got.start.files[1].text.p, "t\0\1", 3);
    assert_str(got.start.files[2].name, "c");
    assert_str(got.worker.out, "o\xff");
    assert_str(got.worker.err, "e");
    assert_true(got.worker.is_cut);
    assert_int_equal(got.worker.out_bytes, 9);
    assert_str(got.line, GL_EXEC_SAYS "{}");
    gl_keeper_lower(&got, GL_KEEPER_VERSION_WORKERS);
    assert_int_equal(got.output_source, GL_KEEPER_FROM_WORKER);
    gl_keeper_lower(&got, GL_KEEPER_VERSION_WORKERS - 1);
    assert_int_equal(got.output_source, GL_KEEPER_NO_OUTPUT);
    assert_int_equal(got.worker.out.n, 0);
}

static void an_empty_message_has_only_its_type(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_PING}, got;
    gl_keeper_encode(&m, &b);
    assert_int_equal(b.n, GL_KEEPER_PREFIX_BYTES + 1);
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_int_equal(got.start.argv_n, 0);
    assert_int_equal(got.start.key.job.n, 0);
}

/* The bytes on the wire are fixed for other releases: they must never change. */
static void hello_looks_the_same_for_ever(void **state)
{
    (void)state;
    static const unsigned char expected[] = {
        0x28, 0, 0, 0, 1,                                      /* length, HELLO */
        2,    8, 0, 0, 0, 1,    0,    0,    0,    0, 0, 0, 0,  /* version_min 1 */
        3,    8, 0, 0, 0, 1,    0,    0,    0,    0, 0, 0, 0,  /* version_max 1 */
        4,    8, 0, 0, 0, 0x04, 0x03, 0x02, 0x01, 0, 0, 0, 0}; /* incarnation */
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    struct gl_keeper_msg m = {
        .type = GL_KEEPER_HELLO, .version_min = 1, .version_max = 1, .incarnation = 0x01020304};
    gl_keeper_encode(&m, &b);
    assert_int_equal(b.n, sizeof(expected));
    assert_memory_equal(b.p, expected, sizeof(expected));
}

static void an_unknown_field_is_skipped(void **state)
{
    (void)state;
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    static const char bytes[] = "\x09\xf0\x03\x00\x00\x00new\x01\x08\x00\x00\x00\x05\0\0\0\0\0\0\0";
    struct gl_keeper_msg got;
    assert_int_equal(gl_keeper_decode(&got, (gl_str){bytes, sizeof(bytes) - 1}, &a, NULL), 0);
    assert_int_equal(got.type, GL_KEEPER_PING);
    assert_int_equal(got.req, 5);
}

static void a_message_cut_off_anywhere_is_refused_or_whole(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    gl_str argv[] = {GL_S("one"), GL_S("two")};
    struct gl_keeper_msg m = {.type = GL_KEEPER_START,
                              .start = {.key = {GL_S("c"), GL_S("j"), GL_S("a")},
                                        .argv = argv,
                                        .argv_n = 2,
                                        .input = GL_S("{}")}};
    gl_keeper_encode(&m, &b);
    gl_str whole = message_of(&b);
    for (size_t n = 0; n < whole.n; n++) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        struct gl_keeper_msg got;
        int r = gl_keeper_decode(&got, (gl_str){whole.p, n}, &a, NULL);
        /* A message cut between two fields has fewer fields; cut anywhere else it is invalid. */
        assert_true(r == GL_E_INVALID || (r == 0 && got.start.input.n == 0));
    }
}

static void a_message_that_makes_no_sense_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {"", 0},
        {"\x00", 1},
        {"\x10", 1},
        {"\xff", 1},
        {"\x04\x01\x07\x00\x00\x00\0\0\0\0\0\0\0", 13},                   /* a number of 7 bytes */
        {"\x04\x17\x08\x00\x00\x00\x01\0\0\0\0\0\0\0", 14},               /* a positive status */
        {"\x04\x19\x08\x00\x00\x00\x04\0\0\0\0\0\0\0", 14},               /* an unknown state */
        {"\x04\x1a\x08\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", 14}, /* an end of -1 */
        {"\x04\x21\x08\x00\x00\x00\x04\0\0\0\0\0\0\0", 14},               /* an unknown source */
        {"\x04\x1b\x08\x00\x00\x00\0\0\0\0\x01\0\0\0", 14},               /* a code above 32 bits */
        {"\x04\x0f\x05\x00\x00\x00\x02\0\0\0x", 11}, /* a list cut in an element */
        {"\x04\x12\x01\x00\x00\x00\x01", 7},         /* a file without a name */
        {"\x04\x08\xff\xff\xff\xff", 6},             /* longer than the available bytes */
    };
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
        struct gl_why why = {0};
        struct gl_keeper_msg got;
        assert_int_equal(gl_keeper_decode(&got, (gl_str){bad[i].bytes, bad[i].n}, &a, &why),
                         GL_E_INVALID);
        assert_true(strlen(why.text) > 0);
    }
}

static void a_field_longer_than_its_limit_is_refused(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    char name[GL_ID_BYTES_MAX + 1];
    memset(name, 'x', sizeof(name));
    struct gl_keeper_msg m = {.type = GL_KEEPER_STOP, .start.key.job = {name, sizeof(name)}}, got;
    gl_keeper_encode(&m, &b);
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), GL_E_LIMIT);
}

static void a_list_with_too_many_elements_is_refused(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    static gl_str argv[GL_ARGS_MAX + 1];
    struct gl_keeper_msg m = {.type = GL_KEEPER_START,
                              .start = {.argv = argv, .argv_n = GL_ARGS_MAX + 1}};
    struct gl_keeper_msg got;
    gl_keeper_encode(&m, &b);
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), GL_E_LIMIT);
    gl_buf_reset(&b);
    m.start.argv_n = GL_ARGS_MAX;
    gl_keeper_encode(&m, &b);
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_int_equal(got.start.argv_n, GL_ARGS_MAX);
}

/* ---- frames ---- */

static void a_frame_waits_for_its_last_byte(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_LIST, .req = 1};
    gl_keeper_encode(&m, &b);
    size_t one = b.n;
    gl_keeper_encode(&m, &b);
    for (size_t n = 0; n <= b.n; n++) {
        gl_str message;
        size_t used = 99;
        assert_int_equal(gl_keeper_frame((gl_str){b.p, n}, &message, &used, NULL), 0);
        assert_int_equal(used, n < one ? 0 : one);
    }
}

static void a_frame_of_no_or_too_many_bytes_is_refused(void **state)
{
    (void)state;
    gl_str message;
    size_t used = 0;
    struct gl_why why = {0};
    assert_int_equal(gl_keeper_frame((gl_str){"\0\0\0\0", 4}, &message, &used, &why), GL_E_INVALID);
    assert_true(strlen(why.text) > 0);
    assert_int_equal(gl_keeper_frame((gl_str){"\x01\x00\x00\x01", 4}, &message, &used, &why),
                     GL_E_INVALID);
    assert_int_equal(gl_keeper_frame((gl_str){"\xff\xff\xff\xff", 4}, &message, &used, &why),
                     GL_E_INVALID);
    assert_int_equal(gl_keeper_frame((gl_str){"\x00\x00\x00\x01", 4}, &message, &used, &why), 0);
    assert_int_equal(used, 0);
}

/* ---- records ---- */

static void a_record_is_whole_or_not_there(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_BEGUN, .pid = 77, .boot = GL_S("b")}, got;
    gl_keeper_add_record(&m, &b);
    gl_str message;
    size_t used = 0;
    for (size_t n = 0; n < b.n; n++) {
        assert_int_equal(gl_keeper_record((gl_str){b.p, n}, &message, &used), GL_E_DAMAGED);
    }
    assert_int_equal(gl_keeper_record(gl_buf_view(&b), &message, &used), 0);
    assert_int_equal(used, b.n);
    assert_int_equal(gl_keeper_decode(&got, message, &a, NULL), 0);
    assert_int_equal(got.pid, 77);
}

static void a_record_with_any_bit_changed_is_damaged(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    struct gl_keeper_msg m = {.type = GL_KEEPER_ACK, .start = {.key.job = GL_S("job"), .token = 3}};
    gl_keeper_add_record(&m, &b);
    for (size_t i = 0; i < b.n * 8; i++) {
        gl_str message;
        size_t used = 0;
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
        assert_int_equal(gl_keeper_record(gl_buf_view(&b), &message, &used), GL_E_DAMAGED);
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
    }
}

static void zeros_are_the_end_of_a_journal(void **state)
{
    (void)state;
    static const char zeros[64];
    gl_str message;
    size_t used;
    assert_int_equal(gl_keeper_record((gl_str){zeros, sizeof(zeros)}, &message, &used),
                     GL_E_DAMAGED);
}

/* ---- validation ---- */

static void names_that_could_be_paths_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "a/b", "/", "-a", ".a", "a b", "a\n", "\xc3"};
    struct gl_attempt_key good = {GL_S("default"), GL_S("01ARZ"), GL_S("fetch-1.b_2:attempt:10")};
    struct gl_why why = {0};
    assert_int_equal(gl_keeper_check_key(&good, &why), 0);
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        struct gl_attempt_key key = good;
        key.context = gl_str_of(bad[i]);
        assert_int_equal(gl_keeper_check_key(&key, &why), GL_E_INVALID);
        key = good;
        key.job = gl_str_of(bad[i]);
        assert_int_equal(gl_keeper_check_key(&key, &why), GL_E_INVALID);
        key = good;
        key.attempt = gl_str_of(bad[i]);
        assert_int_equal(gl_keeper_check_key(&key, &why), GL_E_INVALID);
    }
    struct gl_attempt_key instance = good;
    instance.attempt = GL_S("fetch[9999]:attempt:1");
    assert_int_equal(gl_keeper_check_key(&instance, &why), 0);
    instance.attempt = (gl_str){"a\0b", 3};
    assert_int_equal(gl_keeper_check_key(&instance, &why), GL_E_INVALID);
    good.job = GL_S("a:b"); /* only an attempt has colons */
    assert_int_equal(gl_keeper_check_key(&good, &why), GL_E_INVALID);
    good.job = GL_S("a[1]"); /* ... and brackets */
    assert_int_equal(gl_keeper_check_key(&good, &why), GL_E_INVALID);
}

static void file_names_stay_inside_the_folder(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b", "a b", ".hidden", "...", "-x", "\xff"};
    static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "./a", "a/."};
    for (size_t i = 0; i < GL_COUNT(good); i++) {
        assert_int_equal(gl_keeper_check_file(gl_str_of(good[i]), NULL), 0);
    }
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        assert_int_equal(gl_keeper_check_file(gl_str_of(bad[i]), NULL), GL_E_INVALID);
    }
    assert_int_equal(gl_keeper_check_file((gl_str){"a\0b", 3}, NULL), GL_E_INVALID);
}

static const gl_str true_argv[] = {{"true", 4}};

static struct gl_exec_start good_start(void)
{
    return (struct gl_exec_start){
        .key = {GL_S("default"), GL_S("J"), GL_S("a:attempt:1")}, .argv = true_argv, .argv_n = 1};
}

static void a_start_needs_a_command(void **state)
{
    (void)state;
    struct gl_why why = {0};
    struct gl_exec_start s = good_start();
    assert_int_equal(gl_keeper_check_start(&s, &why), 0);
    s.argv_n = 0;
    assert_int_equal(gl_keeper_check_start(&s, &why), GL_E_INVALID);
    gl_str empty[] = {GL_S("")};
    s.argv = empty;
    s.argv_n = 1;
    assert_int_equal(gl_keeper_check_start(&s, &why), GL_E_INVALID);
    gl_str nul[] = {GL_S("true"), {"a\0b", 3}};
    s.argv = nul;
    s.argv_n = 2;
    assert_int_equal(gl_keeper_check_start(&s, &why), GL_E_INVALID);
}

static void an_environment_entry_is_name_and_value(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "NAME", "=value"};
    struct gl_exec_start s = good_start();
    gl_str env[1] = {GL_S("NAME=")};
    s.env = env;
    s.env_n = 1;
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        env[0] = gl_str_of(bad[i]);
        assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    }
}

static void a_secret_is_name_and_value_and_long_enough(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "NAME", "=value", "NAME=", "NAME=123", "GLIA_X=1234"};
    static char big[GL_SECRET_BYTES_MAX + 4];
    struct gl_exec_start s = good_start();
    gl_str secrets[5] = {GL_S("N=1234")};
    s.secrets = secrets;
    s.secrets_n = 1;
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    for (size_t i = 0; i < GL_COUNT(bad); i++) {
        secrets[0] = gl_str_of(bad[i]);
        assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    }
    memset(big, 'x', sizeof(big));
    big[1] = '=';
    for (size_t i = 0; i < GL_COUNT(secrets); i++) {
        secrets[i] = (gl_str){big, GL_SECRET_BYTES_MAX + 2};
    }
    s.secrets_n = GL_SECRETS_BYTES_MAX / GL_SECRET_BYTES_MAX;
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    s.secrets_n++;
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_LIMIT);
    secrets[0].n++;
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
}

static void a_start_that_cannot_fit_a_frame_is_refused(void **state)
{
    (void)state;
    static char big[GL_COMMAND_BYTES_MAX];
    memset(big, 'x', sizeof(big));
    gl_str argv[] = {GL_S("echo"), {big, sizeof(big)}};
    struct gl_exec_start s = good_start();
    s.argv = argv;
    s.argv_n = 2;
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_LIMIT);
    static char input[GL_INPUT_BYTES_MAX + 1];
    s = good_start();
    s.input = (gl_str){input, GL_INPUT_BYTES_MAX};
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    s.input.n++;
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_LIMIT);
}

static void the_largest_start_fits_a_frame(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    static char big[GL_INPUT_BYTES_MAX];
    static gl_str env[GL_ENVS_MAX];
    static struct gl_exec_file files[GL_FILES_MAX];
    memset(big, '=', sizeof(big));
    big[0] = 'x';
    gl_str argv[] = {{big, GL_COMMAND_BYTES_MAX / 2}};
    struct gl_exec_start s = good_start();
    s.argv = argv;
    s.env = env;
    s.env_n = GL_ENVS_MAX;
    for (size_t i = 0; i < GL_ENVS_MAX; i++) {
        env[i] = (gl_str){big, GL_COMMAND_BYTES_MAX / 2 / GL_ENVS_MAX - 2};
    }
    s.input = (gl_str){big, GL_INPUT_BYTES_MAX};
    s.files = files;
    s.files_n = GL_FILES_MAX;
    for (size_t i = 0; i < GL_FILES_MAX; i++) {
        files[i] = (struct gl_exec_file){
            .name = {big, 255},
            .blob = GL_S("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")};
    }
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    struct gl_keeper_msg m = {.type = GL_KEEPER_START, .start = s};
    gl_keeper_encode(&m, &b); /* asserts that it fits */
    assert_true(b.n > GL_INPUT_BYTES_MAX + GL_COMMAND_BYTES_MAX / 2);
}

static int check_worker(struct gl_exec_start s)
{
    s.is_worker = true;
    return gl_keeper_check_start(&s, NULL);
}

static void what_only_a_worker_may_have(void **state)
{
    (void)state;
    struct gl_exec_file text = {.name = GL_S("d/x"), .text = GL_S("hello")};
    struct gl_exec_start s = good_start();
    s.files = &text;
    s.files_n = 1;
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    assert_int_equal(check_worker(s), 0);
    text.name = GL_S("../x");
    assert_int_equal(check_worker(s), GL_E_INVALID);
    s = good_start();
    s.make_folder = GL_S("/tmp/x");
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    assert_int_equal(check_worker(s), 0);
    s.make_folder = GL_S("tmp/x");
    assert_int_equal(check_worker(s), GL_E_INVALID);
    s = good_start();
    s.take_folder = GL_S("/tmp/x");
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    assert_int_equal(check_worker(s), 0);
    s.take_folder = GL_S("tmp/x");
    assert_int_equal(check_worker(s), GL_E_INVALID);
    s = good_start();
    s.stdout_max = GL_STDOUT_BYTES_MAX + 1;
    assert_int_equal(check_worker(s), GL_E_LIMIT);
    s = good_start();
    s.key.attempt = GL_S("@agent:attempt:1");
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    s.key.attempt = GL_S("@@agent:attempt:1");
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
}

static void a_worker_runs_in_its_folder_or_below_or_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *cwd;
        int result;
    } cases[] = {
        {"", 0},
        {GL_EXEC_WORK, 0},
        {GL_EXEC_WORK "/worker", 0},
        {GL_EXEC_WORK "/a/b", 0},
        {"/tmp", 0},
        {"tmp", GL_E_INVALID},
        {GL_EXEC_WORK "worker", GL_E_INVALID},
        {GL_EXEC_WORK "/", GL_E_INVALID},
        {GL_EXEC_WORK "/../x", GL_E_INVALID},
        {GL_EXEC_WORK "/a/../../x", GL_E_INVALID},
    };
    for (size_t i = 0; i < GL_COUNT(cases); i++) {
        struct gl_exec_start s = good_start();
        s.cwd = gl_str_of(cases[i].cwd);
        assert_int_equal(check_worker(s), cases[i].result);
    }
    struct gl_exec_start s = good_start();
    s.cwd = GL_S(GL_EXEC_WORK);
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_INVALID);
    static char places[4097];
    memset(places, GL_EXEC_WORK[0], sizeof(places));
    gl_str argv[] = {{places, sizeof(places)}};
    s = good_start();
    s.argv = argv;
    assert_int_equal(check_worker(s), GL_E_LIMIT);
    argv[0].n--;
    assert_int_equal(check_worker(s), 0);
}

static void the_largest_worker_fits_a_frame(void **state)
{
    (void)state;
    GL_CLEANUP(gl_buf_done) struct gl_buf b = {0};
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    static char big[GL_TEXTS_BYTES_MAX];
    static struct gl_exec_file files[GL_WORKER_FILES_MAX];
    memset(big, 'x', sizeof(big));
    gl_str argv[] = {{big, GL_COMMAND_BYTES_MAX - 1}};
    struct gl_exec_start s = good_start();
    s.is_worker = true;
    s.argv = argv;
    s.input = (gl_str){big, GL_INPUT_BYTES_MAX};
    s.files = files;
    s.files_n = GL_WORKER_FILES_MAX;
    for (size_t i = 0; i < GL_WORKER_FILES_MAX; i++) {
        files[i] = (struct gl_exec_file){
            .name = {big, 255},
            .blob = GL_S("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")};
    }
    files[0].blob = (gl_str){0};
    files[0].text = (gl_str){big, sizeof(big)};
    assert_int_equal(gl_keeper_check_start(&s, NULL), 0);
    struct gl_keeper_msg got, m = {.type = GL_KEEPER_START, .start = s};
    gl_keeper_encode(&m, &b); /* asserts that it fits */
    assert_int_equal(gl_keeper_decode(&got, message_of(&b), &a, NULL), 0);
    assert_int_equal(got.start.files[0].text.n, sizeof(big));
    files[1].text = GL_S("x");
    files[1].blob = (gl_str){0};
    assert_int_equal(gl_keeper_check_start(&s, NULL), GL_E_LIMIT);
}

static void the_newest_common_version_is_agreed_on(void **state)
{
    (void)state;
    assert_int_equal(gl_keeper_agree(1, 1, 1, 1), 1);
    assert_int_equal(gl_keeper_agree(1, 5, 2, 3), 3);
    assert_int_equal(gl_keeper_agree(2, 3, 1, 9), 3);
    assert_int_equal(gl_keeper_agree(4, 5, 1, 3), 0);
    assert_int_equal(gl_keeper_agree(1, 3, 4, 5), 0);
    assert_int_equal(gl_keeper_agree(0, 0, 1, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_read_as_it_was_written),
        cmocka_unit_test(a_result_is_read_as_it_was_written),
        cmocka_unit_test(a_worker_is_read_as_it_was_written),
        cmocka_unit_test(an_empty_message_has_only_its_type),
        cmocka_unit_test(hello_looks_the_same_for_ever),
        cmocka_unit_test(an_unknown_field_is_skipped),
        cmocka_unit_test(a_message_cut_off_anywhere_is_refused_or_whole),
        cmocka_unit_test(a_message_that_makes_no_sense_is_refused_with_a_sentence),
        cmocka_unit_test(a_field_longer_than_its_limit_is_refused),
        cmocka_unit_test(a_list_with_too_many_elements_is_refused),
        cmocka_unit_test(a_frame_waits_for_its_last_byte),
        cmocka_unit_test(a_frame_of_no_or_too_many_bytes_is_refused),
        cmocka_unit_test(a_record_is_whole_or_not_there),
        cmocka_unit_test(a_record_with_any_bit_changed_is_damaged),
        cmocka_unit_test(zeros_are_the_end_of_a_journal),
        cmocka_unit_test(names_that_could_be_paths_are_refused),
        cmocka_unit_test(file_names_stay_inside_the_folder),
        cmocka_unit_test(a_start_needs_a_command),
        cmocka_unit_test(an_environment_entry_is_name_and_value),
        cmocka_unit_test(a_secret_is_name_and_value_and_long_enough),
        cmocka_unit_test(a_start_that_cannot_fit_a_frame_is_refused),
        cmocka_unit_test(the_largest_start_fits_a_frame),
        cmocka_unit_test(what_only_a_worker_may_have),
        cmocka_unit_test(a_worker_runs_in_its_folder_or_below_or_elsewhere),
        cmocka_unit_test(the_largest_worker_fits_a_frame),
        cmocka_unit_test(the_newest_common_version_is_agreed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
