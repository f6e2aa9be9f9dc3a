#include "os/run_questions.h"

#include <dirent.h>

#include "base/check.h"
#include "os/run_owner.h"

enum {
    DECISIONS_MAX = 16,
    WORD_BYTES_MAX = 64,
    ALL_BYTES_MAX = 64 << 20, /* bytes read of all files together: the rest is skipped */
};

/* Not in the middle of a character. */
static gl_str cut(gl_str text, size_t max, struct gl_arena *a)
{
    size_t n = max;

    if (text.n <= max) {
        return gl_str_dup(a, text);
    }
    while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80) {
        n--;
    }
    return gl_str_fmt(a, "%.*s...", (int)n, text.p);
}

static struct gl_strs copy_words(const struct gl_strs *from, struct gl_arena *a)
{
    size_t n = from->n < DECISIONS_MAX ? from->n : DECISIONS_MAX;
    gl_str *items = GL_NEW_ARRAY(a, gl_str, n + 1);

    for (size_t i = 0; i < n; i++) {
        items[i] = cut(from->items[i], WORD_BYTES_MAX, a);
    }
    return (struct gl_strs){.items = items, .n = n};
}

static struct gl_question copy_ask(const struct gl_question *r, struct gl_arena *a)
{
    return (struct gl_question){
        .request_id = gl_str_dup(a, r->request_id),
        .prompt = cut(r->prompt, GL_QUESTION_PROMPT_BYTES, a),
        .decisions = copy_words(&r->decisions, a),
        .expires_at = r->expires_at,
        .default_decision = cut(r->default_decision, WORD_BYTES_MAX, a),
        .is_refused = r->is_refused,
    };
}

void gl_run_questions_from_file(const char *root, gl_str run_id, const struct gl_human_file *f,
                                struct gl_arena *a, struct gl_questions_run *ret)
{
    char owner[GL_ULID_BYTES + 1];

    gl_run_owner_find(root, run_id, owner);
    *ret = (struct gl_questions_run){
        .run_id = gl_str_dup(a, run_id),
        .job_id = gl_str_dup(a, gl_str_of(owner)),
        .asked_at = f->changed_at,
        .open = GL_NEW_ARRAY(a, struct gl_question, GL_QUESTIONS_TOLD_MAX),
        .trouble = gl_human_file_problems(f, a),
    };
    for (size_t i = 0; i < f->n; i++) {
        if (!f->requests[i].is_answered) {
            ret->open_n++;
            if (ret->n < GL_QUESTIONS_TOLD_MAX) {
                ret->open[ret->n++] = copy_ask(&f->requests[i], a);
            }
        }
    }
}

struct gl_questions_run gl_run_questions_copy(const struct gl_questions_run *r, size_t limit,
                                              struct gl_arena *a)
{
    size_t n = r->n < limit ? r->n : limit;
    struct gl_questions_run to = {
        .run_id = gl_str_dup(a, r->run_id),
        .job_id = gl_str_dup(a, r->job_id),
        .asked_at = r->asked_at,
        .open_n = r->open_n,
        .open = GL_NEW_ARRAY(a, struct gl_question, n + 1),
        .n = n,
        .trouble = gl_str_dup(a, r->trouble),
    };

    for (size_t i = 0; i < n; i++) {
        to.open[i] = copy_ask(&r->open[i], a);
    }
    return to;
}

/* ---- reading on request ---- */

static bool read_run(const char *root, gl_str run_id, uint64_t *bytes, struct gl_arena *a,
                     struct gl_questions_run *ret)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena scratch = {0};
    struct gl_human_file f;

    if (gl_human_file_read(root, run_id, &scratch, &f, NULL) != 0) {
        return false;
    }
    *bytes += f.bytes;
    gl_run_questions_from_file(root, run_id, &f, a, ret);
    return ret->open_n > 0 || ret->trouble.n > 0;
}

static const struct gl_questions_run *read_one(void *owner, gl_str run_id, struct gl_arena *a)
{
    struct gl_questions_run *r = GL_NEW(a, struct gl_questions_run);

    uint64_t bytes = 0;

    return read_run(owner, run_id, &bytes, a, r) ? r : NULL;
}

static struct gl_questions_run *read_all(void *owner, size_t limit, struct gl_arena *a,
                                         size_t *ret_n, uint64_t *ret_open_n)
{
    struct gl_questions_run *all = GL_NEW_ARRAY(a, struct gl_questions_run, GL_QUESTIONS_RUNS_MAX);
    DIR *folder = opendir(owner);
    const struct dirent *e;
    uint64_t bytes = 0;

    *ret_n = 0;
    *ret_open_n = 0;
    while (folder != NULL && *ret_n < GL_QUESTIONS_RUNS_MAX && bytes < ALL_BYTES_MAX &&
           (e = readdir(folder)) != NULL) {
        gl_str run_id = gl_str_of(e->d_name);

        if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && gl_str_is_id(run_id) &&
            read_run(owner, run_id, &bytes, a, &all[*ret_n])) {
            struct gl_questions_run *r = &all[(*ret_n)++];

            r->n = r->n < limit ? r->n : limit;
            limit -= r->n;
            *ret_open_n += r->open_n;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return all;
}

struct gl_questions gl_run_questions_reader(const char *root)
{
    return (struct gl_questions){
        .owner = (void *)(uintptr_t)root, .find = read_one, .all = read_all};
}
