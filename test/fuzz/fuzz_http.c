/* What strangers can send to the API, behind libmicrohttpd: paths, headers and submissions.
 *
 * The first line of the input is "METHOD /path", the second a header, the rest a body. The input as
 * a whole is also what may arrive on a connection. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "http/framing.h"
#include "http/http_text.h"
#include "http/routes.h"
#include "http/submission_reader.h"

static int put(struct gl_blob *b, gl_str context, gl_str hex, gl_str content,
               struct gl_why *reterr_why)
{
    (void)b, (void)context, (void)hex;
    return content.n % 7 == 6 ? gl_why(reterr_why, GL_E_IO, "the disk is full") : 0;
}

static bool has(struct gl_blob *b, gl_str context, gl_str hex)
{
    (void)b, (void)context;
    return hex.p[0] != '0';
}

static void check(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void read_head(gl_str line, gl_str header)
{
    struct gl_arena a = {0};
    struct gl_captures found;
    gl_str url, method = gl_str_cut(line, ' ', &url);
    char *text = gl_arena_alloc(&a, url.n + 1);
    enum gl_verb verb;
    struct gl_request rq;
    bool is_known;
    gl_str name;
    int64_t item;

    if (url.n > 0) {
        memcpy(text, url.p, url.n);
    }
    check(gl_http_text_unescape(text) == strlen(text));
    verb = gl_verb_find(method, gl_str_of(text), &found, &is_known);
    if (verb != GL_VERB_COUNT) {
        check(is_known);
        gl_request_init(&rq, verb, (gl_str){0});
        gl_request_place(&rq, &found);
        check(rq.job.n <= strlen(text));
        (void)gl_request_argument(&rq, header, header, NULL); /* any answer is fine */
        (void)gl_request_argument(&rq, GL_S("limit"), header, NULL);
        check(gl_request_path(&a, &rq)[0] == '/');
    }
    check(gl_http_text_host(header).n <= header.n);
    (void)gl_http_text_accepts(header, "text/event-stream");
    (void)gl_str_split_step(header, &name, &item); /* any answer is fine */
    check(!gl_http_text_is_secret(header, GL_S("")));
    check(gl_http_text_is_secret(header, header) == (header.n > 0));
    gl_arena_done(&a);
}

/* What is made of a value must be the same value. */
static void check_compact(gl_str text, struct gl_arena *a)
{
    gl_str once = gl_http_text_compact(text, a);
    struct gl_json j;

    check(gl_json_parse(&j, once, 1 << 20, a, NULL) == 0);
    check(gl_str_eq(once, gl_http_text_compact(once, a)));
    check(memchr(once.p, '\n', once.n) == NULL);
}

static void read_body(gl_str text)
{
    struct gl_blob blob = {.put = put, .has = has};
    struct gl_arena a = {0};
    struct gl_request rq = {0};
    struct gl_refusal refusal = {0};
    struct gl_submission_reader s;
    struct gl_json j;
    gl_jnode root, jobs;

    if (gl_json_parse(&j, text, 1 << 20, &a, NULL) == 0) {
        check_compact(text, &a);
        root = gl_json_root(&j);
        gl_submission_reader_init(&s, &a, &blob, GL_S("default"), &j);
        check(gl_submission_reader_next(&s, root, &rq, &refusal) == (refusal.code == 0));
        check(GL_IMPLIES(refusal.code == 0, rq.submission.compiled.n > 0));
        s.flow = gl_json_get(&j, root, "flow");
        s.files = gl_json_get(&j, root, "files");
        jobs = gl_json_get(&j, root, "jobs");
        for (gl_jnode n = gl_json_first(&j, jobs); n != NULL; n = gl_json_after(&j, jobs, n)) {
            struct gl_request one = {0};

            refusal = (struct gl_refusal){0};
            check(gl_submission_reader_next(&s, n, &one, &refusal) == (refusal.code == 0));
            check(refusal.code == 0 || refusal.message != NULL);
        }
        gl_submission_reader_done(&s);
    }
    gl_arena_done(&a);
}

/* However the bytes arrive, the same of them are good, for the same reason. */
static void read_framing(gl_str text)
{
    struct gl_framing whole = {0}, single = {0};
    size_t good = gl_framing_feed(&whole, text.p, text.n), n = 0;

    while (n < text.n && gl_framing_feed(&single, text.p + n, 1) == 1) {
        n++;
    }
    check(good == n && whole.why == single.why);
    check((good < text.n) == (whole.why != NULL));
    check(whole.begun_n == single.begun_n && whole.heads_n == single.heads_n);
    check(whole.begun_n - whole.heads_n <= 1);
    check(whole.head_at <= good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gl_str rest = {.p = (const char *)data, .n = size};
    gl_str line = gl_str_cut(rest, '\n', &rest);
    gl_str header = gl_str_cut(rest, '\n', &rest);

    if (line.n > 0 && memchr(line.p, '\0', line.n) == NULL) { /* libmicrohttpd ends it there */
        read_head(line, header);
    }
    read_body(rest);
    read_framing((gl_str){.p = (const char *)data, .n = size});
    return 0;
}
