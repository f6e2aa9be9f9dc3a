/* References in the texts of steps: what becomes of them, and where they are refused. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/flow/flow.h"
#include "model/text/ref.h"
#include "support/golden.h"

static struct gl_arena arena;
static struct gl_why why;
static struct gl_flow_errors errors;
static gl_str loaded; /* the last text */

static int tear_down(void **state)
{
    (void)state;
    gl_arena_done(&arena);
    return 0;
}

static int load(struct gl_flow_loader *l, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    (void)l, (void)reterr_why;
    (void)gl_sha256_hex(source.n ? source : text, ret_hex);
    *ret_executable = false;
    loaded = text;
    return 0;
}

/* A step "s" with one text, as JSON so that the text needs no care; steps "a" and "b.c" are its
 * parents, "n" and "who" are inputs. */
static int parse(const char *field, const char *text, const struct gl_step_spec **ret)
{
    struct gl_buf out = {0};
    struct gl_jw w;
    struct gl_json j;
    struct gl_flow *flow;
    struct gl_flow_loader loader = {.load = load};
    gl_jw_init(&w, &out);
    gl_buf_c(&out, "{\"inputs\":{\"n\":1,\"who\":\"x\"},\"steps\":{\"a\":{\"noop\":true},"
                   "\"b.c\":{\"noop\":true},\"s\":{\"needs\":[\"a\",\"b.c\"],");
    gl_buf_fmt(&out, "\"%s\":", field);
    gl_jw_str(&w, gl_str_of(text));
    gl_buf_c(&out, "}}}");
    assert_int_equal(
        gl_json_parse(&j, gl_str_dup(&arena, gl_buf_view(&out)), 1 << 20, &arena, &why), 0);
    gl_buf_done(&out);
    int rc = gl_flow_parse(&j, gl_json_root(&j), &loader, &arena, &flow, &errors);
    *ret = rc ? NULL : gl_flow_step(flow, 2);
    return rc;
}

static const struct gl_step_spec *good(const char *field, const char *text)
{
    const struct gl_step_spec *s;
    if (parse(field, text, &s)) {
        fail_msg("%s\n%.*s", text, GL_STR_ARG(errors.items[0].text));
    }
    return s;
}

static void bad(const char *field, const char *text, enum gl_reason reason)
{
    const struct gl_step_spec *s;
    if (!parse(field, text, &s)) {
        fail_msg("%s\nis accepted", text);
    }
    if (errors.items[0].reason != reason) {
        fail_msg("%s\n%.*s", text, GL_STR_ARG(errors.items[0].text));
    }
    golden_say(gl_reason_word(reason), errors.items[0].text);
}

/* Shell text. */

static void sh_becomes(const char *text, const char *becomes, size_t refs)
{
    const struct gl_step_spec *s = good("sh", text);
    assert_int_equal(s->argv.n, 3);
    assert_string_equal(gl_str_c(&arena, s->argv.items[2]), becomes);
    assert_int_equal(s->env.n, refs);
    assert_int_equal(s->expand, refs ? GL_EXPAND_ENV : 0);
}

static void in_shell_text_a_reference_becomes_a_variable(void **state)
{
    (void)state;
    sh_becomes("echo ${steps.a.output.x}", "echo ${GLIA_REF_1}", 1);
    sh_becomes("echo \"${inputs.who}\" ${steps.a.status} ${inputs.who}",
               "echo \"${GLIA_REF_1}\" ${GLIA_REF_2} ${GLIA_REF_1}", 2);
    sh_becomes("x=${ job.id }", "x=${GLIA_REF_1}", 1);
    sh_becomes("${steps.[\"b.c\"].output}", "${GLIA_REF_1}", 1);
    const struct gl_step_spec *s = good("sh", "${inputs.who} ${steps.a.output[0][\"x y\"]}");
    assert_true(gl_str_is(s->env.items[0], "GLIA_REF_1=${inputs.who}"));
    assert_true(gl_str_is(s->env.items[1], "GLIA_REF_2=${steps.a.output[0][\"x y\"]}"));
    assert_int_equal(s->reads_n, 1);
    assert_int_equal(s->reads[0], 0);
}

static void the_shells_own_expansions_stay(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "echo ${HOME} $HOME ${x:-y} ${#x} $((1 + 2)) $(date) `date` $$ $1 ${1}",
        "echo ${job} ${steps} ${inputs} ${steps[0]} ${x%.c} ${x:-a.b} ${1.5}",
        "echo \\${steps.a.output} \"\\${steps.a.output}\"",
        "# ${steps.nobody.output} in a comment, and '",
        "true # ${steps.nobody.output}\necho '#' \"# x\" a#b",
        "cat <<'E'\n${HOME} ${input.x}\nE\n",
        "cat <<E\n${HOME} \\${input.x}\nE\n",
        "echo '${input.x}' \\${input.x} \"\\${input.x}\" # ${input.x}",
    };
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        sh_becomes(texts[i], texts[i], 0);
    }
    sh_becomes("echo '$${steps.a.output}' $${HOME}", "echo '${steps.a.output}' ${HOME}", 0);
}

static void references_stand_wherever_the_shell_expands(void **state)
{
    (void)state;
    sh_becomes("echo '\"' ${job.id} \"'${job.id}'\"", "echo '\"' ${GLIA_REF_1} \"'${GLIA_REF_1}'\"",
               1);
    sh_becomes("x=\"$(echo 'a' \"${job.id}\")\"", "x=\"$(echo 'a' \"${GLIA_REF_1}\")\"", 1);
    sh_becomes("x=`echo ${job.id}` ${job.id}", "x=`echo ${GLIA_REF_1}` ${GLIA_REF_1}", 1);
    sh_becomes("${x:-${job.id}} \"${x:-'${job.id}'}\"",
               "${x:-${GLIA_REF_1}} \"${x:-'${GLIA_REF_1}'}\"", 1);
    sh_becomes("cat <<E\n'${job.id}' \"\nE\necho \"${job.id}\"",
               "cat <<E\n'${GLIA_REF_1}' \"\nE\necho \"${GLIA_REF_1}\"", 1);
    sh_becomes("cat <<-E <<F\n\t'\n\tE\n${job.id}\nF\n${job.id}",
               "cat <<-E <<F\n\t'\n\tE\n${GLIA_REF_1}\nF\n${GLIA_REF_1}", 1);
    sh_becomes("case \"${job.id}\" in a) echo \"it's\";; *) echo ${job.id};; esac",
               "case \"${GLIA_REF_1}\" in a) echo \"it's\";; *) echo ${GLIA_REF_1};; esac", 1);
    sh_becomes("x=\"$(case y in y) echo \"a\";; esac)\" ${job.id}",
               "x=\"$(case y in y) echo \"a\";; esac)\" ${GLIA_REF_1}", 1);
    sh_becomes("echo $((1 << 2)) ${job.id}\nE\n'", "echo $((1 << 2)) ${GLIA_REF_1}\nE\n'", 1);
    sh_becomes("echo \"$(( (1) ))\" ${job.id}", "echo \"$(( (1) ))\" ${GLIA_REF_1}", 1);
    sh_becomes("( echo ${job.id} ) | (cat) && echo a#b ${job.id}",
               "( echo ${GLIA_REF_1} ) | (cat) && echo a#b ${GLIA_REF_1}", 1);
}

static void where_the_shell_would_not_expand_a_reference_is_refused(void **state)
{
    (void)state;
    bad("sh", "echo '${steps.a.output}'", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "echo \"x\" 'y ${job.id} z'", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "x=\"$(echo '${job.id}')\"", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "python3 -c 'print(${steps.a.output})'", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "echo ${x:-'${job.id}'}", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "cat <<'E'\n${job.id}\nE\n", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "cat <<\\E\n${job.id}\nE\n", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "cat <<\"E\"\n${job.id}\nE\n", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "echo $(( ${job.id} + 1 ))", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "echo \"$(( x + \"${job.id}\" ))\"", GL_REASON_REFERENCE_MISPLACED);
    bad("sh", "echo ${steps.a}", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo ${steps.a.output", GL_REASON_REFERENCE_OPEN);
    bad("sh", "echo ${steps.aa.output}", GL_REASON_UNKNOWN_STEP);
    bad("sh", "echo ${inputs.whoo}", GL_REASON_UNKNOWN_INPUT);
    bad("sh", "echo ${job.item}", GL_REASON_FOREACH_MISSING);
    bad("sh", "echo ${steps.s.output}", GL_REASON_SELF_REFERENCE);
}

static void in_shell_text_a_name_with_a_dot_is_a_slip(void **state)
{
    (void)state;
    bad("sh", "echo ${input.n}", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo \"${step.a.output}\"", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo $(cat ${jobs.id})", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo ${x:-${input.n}}", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo $((1 + ${input.n}))", GL_REASON_REFERENCE_INVALID);
    bad("sh", "cat <<E\n${input.n}\nE\n", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo ${env.HOME}", GL_REASON_REFERENCE_INVALID);
    bad("sh", "echo ${_x1.", GL_REASON_REFERENCE_INVALID);
    sh_becomes("echo $${a.b}", "echo ${a.b}", 0);
}

/* Python. */

#define LOOKUP(key)                                                                     \
    "(__import__(\"json\").load(open(__import__(\"os\").environ[\"GLIA_INPUT_FILE\"]))" \
    "[\"refs\"][\"" key "\"])"

static void py_becomes(const char *text, const char *becomes, size_t refs)
{
    const struct gl_step_spec *s = good("python", text);
    assert_string_equal(gl_str_c(&arena, loaded), becomes);
    assert_int_equal(s->refs.n, refs);
    assert_int_equal(s->expand, 0);
    assert_int_equal(s->env.n, 0);
}

static void in_python_a_reference_is_read_from_the_input_file(void **state)
{
    (void)state;
    py_becomes("x = ${steps.a.output.rows}", "x = " LOOKUP("steps.a.output.rows"), 1);
    py_becomes("print(${inputs.n} + 1,\n      ${inputs.n}, \"it's\")",
               "print(" LOOKUP("inputs.n") " + 1,\n      " LOOKUP("inputs.n") ", \"it's\")", 1);
    py_becomes("x = ${steps.a.output[\"a\"]}", "x = " LOOKUP("steps.a.output[\\\"a\\\"]"), 1);
    const struct gl_step_spec *s = good("python", "${inputs.n}, ${steps.a.output}");
    assert_true(gl_str_is(s->refs.items[0], "inputs.n"));
    assert_true(gl_str_is(s->refs.items[1], "steps.a.output"));
    assert_int_equal(s->reads_n, 1);
}

static void what_is_pythons_own_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x = {1: 2}\ny = '${HOME}' + \"${x}\"",
        "# ${steps.nobody.output}\nx = 1 # it's\ny = '#' \"#\"",
        "x = r'\\'\n'\"\"\"'\n\"'''\"",
        "x = '''a\n\\''' ' \" # b\n'''\ny = 1",
    };
    for (size_t i = 0; i < GL_COUNT(texts); i++) {
        py_becomes(texts[i], texts[i], 0);
    }
    py_becomes("x = '$${steps.a.output}'", "x = '${steps.a.output}'", 0);
}

static void in_a_python_string_a_reference_is_refused(void **state)
{
    (void)state;
    bad("python", "x = '${steps.a.output}'", GL_REASON_REFERENCE_MISPLACED);
    bad("python", "x = f\"{1} ${steps.a.output}\"", GL_REASON_REFERENCE_MISPLACED);
    bad("python", "x = '''\n${job.id}\n'''", GL_REASON_REFERENCE_MISPLACED);
    bad("python", "x = \"\"\"a\"\" ${job.id}\"\"\"", GL_REASON_REFERENCE_MISPLACED);
    bad("python", "x = 'a\\' ${job.id}'", GL_REASON_REFERENCE_MISPLACED);
    bad("python", "x = ${steps.a}", GL_REASON_REFERENCE_INVALID);
}

/* The guarantee: whatever a value contains, the text of the program is the same. */
static void no_value_ever_enters_the_text_of_a_program(void **state)
{
    (void)state;
    static const char *const roots[] = {"steps.a.output",    "steps.a.output.x", "inputs.who",
                                        "steps.a.status",    "job.name",         "job.run_id",
                                        "steps.a.exit_code", "job.submitted_at", "job.id"};
    static const char facts_text[] =
        "{\"steps\":{\"a\":{\"status\":\"$(touch x)\",\"exit_code\":\"`id`\",\"output\":{\"x\":"
        "\"'; rm -rf / #\\n\\\"$(id)\\\"\"}}},\"inputs\":{\"who\":\"${steps.a.output.x} $(id)\"},"
        "\"job\":{\"id\":\"$(id)\",\"run_id\":\"';id;'\",\"name\":\"`id`\","
        "\"submitted_at\":\"|id\"}}";
    struct gl_json facts;
    assert_int_equal(gl_json_parse(&facts, gl_str_of(facts_text), 1 << 16, &arena, &why), 0);
    for (size_t i = 0; i < GL_COUNT(roots); i++) {
        gl_str text = gl_str_fmt(&arena, "echo \"${%s}\"", roots[i]);
        const struct gl_step_spec *s = good("sh", text.p);
        gl_str value;
        assert_true(gl_str_is(s->argv.items[2], "echo \"${GLIA_REF_1}\""));
        assert_int_equal(s->expand, GL_EXPAND_ENV); /* argv is never expanded */
        assert_int_equal(gl_ref_expand(s->env.items[0], &facts, &arena, &value, &why), 0);
        assert_true(gl_str_starts(value, GL_S("GLIA_REF_1=")));
        (void)good("python", gl_str_fmt(&arena, "print(${%s})", roots[i]).p);
        assert_true(gl_str_ends(loaded, gl_str_fmt(&arena, "[\"%s\"]))", roots[i])));
    }
}

static void every_sentence_reads_as_it_should(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/flow_text.golden");
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(in_shell_text_a_reference_becomes_a_variable),
        T(the_shells_own_expansions_stay),
        T(references_stand_wherever_the_shell_expands),
        T(where_the_shell_would_not_expand_a_reference_is_refused),
        T(in_shell_text_a_name_with_a_dot_is_a_slip),
        T(in_python_a_reference_is_read_from_the_input_file),
        T(what_is_pythons_own_stays),
        T(in_a_python_string_a_reference_is_refused),
        T(no_value_ever_enters_the_text_of_a_program),
        cmocka_unit_test(every_sentence_reads_as_it_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
