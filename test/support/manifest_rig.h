/* manifest_rig.h - compiling manifests in tests. Texts have ' for ". */
#ifndef GL_TEST_MANIFEST_RIG_H
#define GL_TEST_MANIFEST_RIG_H

#include "support/cmocka_all.h"

#include "base/check.h"
#include "model/bundle/manifest.h"

struct fixture {
    struct gl_arena a;
    struct gl_manifest_given given;
    struct gl_flow_errors errors;
};

static struct gl_payload payloads[] = {
    {.path = {"data.txt", 8}},
    {.path = {"skills/alpha/src/alpha/__init__.py", 34}},
    {.path = {"worker/lib/util.py", 18}},
    {.path = {"worker/run.py", 13}, .executable = true},
};

static const char manifest_blob[] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static inline int set_up(void **state)
{
    static struct fixture f;

    f = (struct fixture){.given = {.payloads = {payloads, GL_COUNT(payloads)}}};
    for (size_t i = 0; i < GL_COUNT(payloads); i++) {
        payloads[i].blob = GL_S(manifest_blob);
    }
    *state = &f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    gl_arena_done(&f->a);
    return 0;
}

static inline gl_str quoted(struct fixture *f, const char *text)
{
    gl_str ret = gl_str_dup(&f->a, gl_str_of(text));

    for (char *p = (char *)(uintptr_t)ret.p; *p != 0; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    return ret;
}

static inline int parse(struct fixture *f, gl_str text, struct gl_flow **ret)
{
    struct gl_json j;
    struct gl_why why = {0};

    if (gl_json_parse(&j, text, GL_MANIFEST_BYTES_MAX, &f->a, &why) != 0) {
        fail_msg("%s", why.text);
    }
    return gl_manifest_parse(&j, gl_json_root(&j), &f->given, &f->a, ret, &f->errors);
}

/* Parsed, and read back from its compiled form, which compiles to the same. */
static inline struct gl_flow *compile(struct fixture *f, const char *text)
{
    struct gl_flow *flow, *back;
    struct gl_buf one = {0}, two = {0};
    struct gl_why why = {0};

    if (parse(f, quoted(f, text), &flow) != 0) {
        fail_msg("%.*s: %.*s", GL_STR_ARG(f->errors.items[0].path),
                 GL_STR_ARG(f->errors.items[0].text));
    }
    gl_flow_encode(flow, &one);
    if (gl_flow_decode(gl_buf_view(&one), &f->a, &back, &why) != 0) {
        fail_msg("%s", why.text);
    }
    gl_flow_encode(back, &two);
    assert_true(gl_str_eq(gl_buf_view(&one), gl_buf_view(&two)));
    gl_buf_done(&one);
    gl_buf_done(&two);
    return back;
}

/* An older manifest with one agent, an executor with this config. */
static inline struct gl_flow *with_config(struct fixture *f, const char *config)
{
    return compile(f, gl_str_fmt(&f->a,
                                 "{'manifest_version':'1.0','graph_id':'g','job_name':'j','nodes':["
                                 "{'node_id':'w','agent_type':'executor','role':'root','config':%s}"
                                 "]}",
                                 config)
                          .p);
}

/* A catalog manifest with this workflow, and the agents a, b, c (routers) and w (an executor). */
static inline struct gl_flow *with_workflow(struct fixture *f, const char *steps, const char *edges,
                                            const char *more)
{
    return compile(
        f,
        gl_str_fmt(&f->a,
                   "{'apiVersion':'mn.workflow/v2','id':'i','manifest_version':'1.0','workflow':{"
                   "'workflow_id':'g','steps':%s,'edges':%s%s},'agents':{'nodes':["
                   "{'id':'a','agent_type':'router'},{'id':'b','agent_type':'relay'},"
                   "{'id':'c','agentType':'router'},{'id':'w','agent_type':'executor','config':{"
                   "'timeout_seconds':7,'beacon_timeout_ms':5000,'max_attempts':2,"
                   "'retry_backoff_ms':100}}],'entrypoints':['a']}}",
                   steps, edges, more)
            .p);
}

static inline const struct gl_step_spec *step(const struct gl_flow *f, const char *id)
{
    int64_t number = gl_flow_find(f, gl_str_of(id));

    assert_true(number >= 0);
    return gl_flow_step(f, (uint32_t)number);
}

static inline const struct gl_agent_spec *agent(const struct gl_flow *f, const char *id)
{
    int64_t number = gl_flow_find_agent(f, gl_str_of(id));

    assert_true(number >= 0);
    return gl_flow_agent(f, (uint32_t)number);
}

static inline void assert_text(gl_str got, const char *wanted)
{
    if (!gl_str_is(got, wanted)) {
        fail_msg("expected \"%s\", not \"%.*s\"", wanted, GL_STR_ARG(got));
    }
}

static inline bool has_env(const struct gl_step_spec *s, const char *entry)
{
    for (size_t i = 0; i < s->env.n; i++) {
        if (gl_str_is(s->env.items[i], entry)) {
            return true;
        }
    }
    return false;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
