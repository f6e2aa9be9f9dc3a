#include "os/human_file.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/map.h"
#include "os/fs.h"
#include "os/run_files.h"

#define FILE_NAME "human.jsonl"

enum {
    SECONDS_MAX = 1000000000,
    LOCK_WAIT_MS = 3000, /* how long a command waits; the node retries later */
    LOCK_PAUSE_MS = 20,
    DEFAULTS_BYTES = 4 << 20, /* answers written at a time; the rest by the next scan */
};

/* ---- reading ---- */

struct human_file_reading {
    struct gl_arena *a;
    struct gl_human_file *file;
    struct gl_map by_id;
    size_t cap;
};

static gl_str text_in(struct human_file_reading *r, const struct gl_json *j, gl_jnode n,
                      const char *name)
{
    return gl_str_dup(r->a, gl_json_str(j, gl_json_get(j, n, name), r->a));
}

static struct gl_strs list_in(struct human_file_reading *r, const struct gl_json *j, gl_jnode list)
{
    gl_str *items =
        GL_NEW_ARRAY(r->a, gl_str, gl_json_is(list, GL_JSON_ARRAY) ? list->count + 1 : 1);
    size_t n = 0;

    for (gl_jnode e = gl_json_is(list, GL_JSON_ARRAY) ? gl_json_first(j, list) : NULL; e;
         e = gl_json_after(j, list, e)) {
        if (gl_json_is(e, GL_JSON_STRING)) {
            items[n++] = gl_str_dup(r->a, gl_json_str(j, e, r->a));
        }
    }
    return (struct gl_strs){.items = items, .n = n};
}

static struct gl_question *find(struct human_file_reading *r, gl_str id)
{
    const size_t *number = gl_map_find(&r->by_id, id);

    return number != NULL ? &r->file->requests[*number] : NULL;
}

/* When the request expires; 0: never, or the field is invalid. */
static gl_ms end_of(struct human_file_reading *r, const struct gl_json *j, gl_jnode root,
                    gl_jnode payload)
{
    gl_jnode timeout = gl_json_get(j, payload, "timeout_seconds");
    gl_str fraction,
        text = gl_json_is(timeout, GL_JSON_NUMBER) ? gl_json_raw(j, timeout) : (gl_str){0};
    gl_ms end = 0, asked = 0;
    uint64_t seconds = 0;

    if (gl_times_parse(text_in(r, j, payload, "expires_at"), &end)) {
        return end;
    }
    if (gl_str_u64(gl_str_cut(text, '.', &fraction), &seconds) && seconds <= SECONDS_MAX &&
        (gl_times_parse(text_in(r, j, root, "timestamp"), &asked) ||
         gl_times_parse(text_in(r, j, payload, "requested_at"), &asked))) {
        return asked + (gl_ms)(seconds + (fraction.n > 0)) * 1000;
    }
    return 0;
}

/* The place of a request in the list; NULL: the list is full. */
static struct gl_question *place_of(struct human_file_reading *r, gl_str id)
{
    struct gl_human_file *f = r->file;
    struct gl_question *found = find(r, id);
    size_t *number;

    if (found != NULL || f->n == GL_HUMAN_FILE_MAX) {
        return found;
    }
    if (f->n == r->cap) {
        size_t cap = r->cap * 2 + 8;
        struct gl_question *more = GL_NEW_ARRAY(r->a, struct gl_question, cap);

        if (f->n > 0) {
            memcpy(more, f->requests, f->n * sizeof(*more));
        }
        f->requests = more;
        r->cap = cap;
    }
    number = GL_NEW(r->a, size_t);
    *number = f->n++;
    gl_map_add(&r->by_id, id, number);
    return &f->requests[*number];
}

static bool allows(const struct gl_question *r, gl_str decision)
{
    for (size_t i = 0; i < r->decisions.n; i++) {
        if (gl_str_eq(r->decisions.items[i], decision)) {
            return true;
        }
    }
    return r->decisions.n == 0 && (gl_str_is(decision, "approve") || gl_str_is(decision, "reject"));
}

/* Asked again by another attempt: the new line counts, and earlier answers belong to the earlier
 * question. */
static void add_request(struct human_file_reading *r, const struct gl_json *j, gl_jnode root,
                        gl_jnode payload)
{
    gl_str id = text_in(r, j, payload, "request_id");
    struct gl_question *q = id.n > 0 && id.n <= GL_HUMAN_FILE_ID_MAX ? place_of(r, id) : NULL;

    if (q == NULL) {
        r->file->strange_n += id.n > GL_HUMAN_FILE_ID_MAX;
        r->file->dropped_n += id.n > 0 && id.n <= GL_HUMAN_FILE_ID_MAX;
    } else {
        *q = (struct gl_question){
            .request_id = id,
            .prompt = text_in(r, j, payload, "prompt"),
            .decisions = list_in(r, j, gl_json_get(j, payload, "allowed_decisions")),
            .expires_at = end_of(r, j, root, payload),
            .default_decision = text_in(r, j, payload, "default_decision"),
            .again_n = q->again_n + (q->is_answered ? 1 : 0),
        };
        q->is_refused = q->default_decision.n > 0 && !allows(q, q->default_decision);
    }
}

static void add_answer(struct human_file_reading *r, const struct gl_json *j, gl_jnode payload)
{
    struct gl_question *q = find(r, text_in(r, j, payload, "request_id"));

    if (q != NULL && !q->is_answered) {
        q->is_answered = true;
        q->decision = text_in(r, j, payload, "decision");
        q->reviewer = text_in(r, j, payload, "reviewer");
        q->answered_at = text_in(r, j, payload, "at");
    }
}

/* The line is too long to be read. */
static bool asks(gl_str line)
{
    static const char word[] = "human_input_requested";

    return memmem(line.p, line.n, word, sizeof(word) - 1) != NULL;
}

static void take_line(struct human_file_reading *r, gl_str line)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    gl_jnode root, payload;
    struct gl_json j;
    gl_str type;

    line = gl_str_trim(line);
    if (line.n > GL_HUMAN_FILE_LINE_MAX) {
        r->file->strange_n += asks(line);
        return;
    }
    if (line.n == 0 || gl_json_parse(&j, line, GL_HUMAN_FILE_LINE_MAX, &a, NULL) != 0) {
        return;
    }
    root = gl_json_root(&j);
    payload = gl_json_get(&j, root, "payload");
    type = gl_json_str(&j, gl_json_get(&j, root, "type"), &a);
    if (gl_str_is(type, "human_input_requested")) {
        add_request(r, &j, root, payload);
    } else if (gl_str_is(type, "human_input_received")) {
        add_answer(r, &j, payload);
    }
}

/* The end of the file, without its first line if that is incomplete. */
static int read_tail(int fd, off_t bytes, struct gl_buf *out, struct gl_why *reterr_why)
{
    off_t at = bytes > GL_HUMAN_FILE_BYTES_MAX ? bytes - GL_HUMAN_FILE_BYTES_MAX : 0;
    char piece[64 << 10];
    ssize_t n;

    while (out->n <= GL_HUMAN_FILE_BYTES_MAX && (n = pread(fd, piece, sizeof(piece), at)) != 0) {
        if (n < 0) {
            return gl_fs_why(reterr_why, errno, "read", FILE_NAME);
        }
        gl_buf_add(out, piece, (size_t)n);
        at += n;
    }
    return 0;
}

static int read_open(int fd, struct gl_arena *a, struct gl_human_file *ret,
                     struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf text = {0};
    struct human_file_reading r = {.a = a, .file = ret};
    off_t bytes = lseek(fd, 0, SEEK_END);
    int err = read_tail(fd, bytes, &text, reterr_why);
    gl_str rest = gl_buf_view(&text);
    struct stat st;

    if (err != 0) {
        return err;
    }
    if (fstat(fd, &st) == 0) {
        ret->changed_at = (gl_ms)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    }
    ret->bytes = text.n;
    ret->is_cut = bytes > GL_HUMAN_FILE_BYTES_MAX;
    gl_map_init(&r.by_id);
    if (bytes > GL_HUMAN_FILE_BYTES_MAX) {
        (void)gl_str_cut(rest, '\n', &rest);
    }
    while (rest.n > 0) {
        take_line(&r, gl_str_cut(rest, '\n', &rest));
    }
    gl_map_done(&r.by_id);
    return 0;
}

/* What the path is if it is not a regular file; NULL: there is nothing, or a file. */
static const char *other_kind(const char *root, gl_str run_id)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct stat st;

    if (lstat(gl_str_fmt(&a, "%s/%.*s/" FILE_NAME, root, GL_STR_ARG(run_id)).p, &st) != 0 ||
        S_ISREG(st.st_mode)) {
        return NULL;
    }
    return S_ISDIR(st.st_mode)    ? "a folder"
           : S_ISLNK(st.st_mode)  ? "a link"
           : S_ISFIFO(st.st_mode) ? "a pipe"
           : S_ISSOCK(st.st_mode) ? "a socket"
                                  : "a device";
}

#define NO_FILE \
    "human.jsonl is %s, not a regular file: workers' questions cannot be read; remove it"

int gl_human_file_read(const char *root, gl_str run_id, struct gl_arena *a,
                       struct gl_human_file *ret, struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    uint64_t bytes;
    int err = gl_run_files_open(root, run_id, GL_S(FILE_NAME), &fd, &bytes, reterr_why);

    *ret = (struct gl_human_file){0};
    if (err == GL_E_NOT_FOUND) {
        ret->is_other = other_kind(root, run_id);
        return 0;
    }
    return err == 0 ? read_open(fd, a, ret, reterr_why) : err;
}

bool gl_human_file_is_current(const char *root, gl_str run_id, gl_str since)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    struct stat st;
    gl_ms began;

    return gl_times_parse(since, &began) &&
           lstat(gl_str_fmt(&a, "%s/%.*s/" FILE_NAME, root, GL_STR_ARG(run_id)).p, &st) == 0 &&
           gl_question_is_since((gl_ms)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
                                began);
}

/* ---- answering ---- */

/* "approve, reject" */
static gl_str decisions_text(const struct gl_question *r, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < r->decisions.n; i++) {
        gl_buf_fmt(&out, "%s%.*s", i > 0 ? ", " : "", GL_STR_ARG(r->decisions.items[i]));
    }
    if (r->decisions.n == 0) {
        gl_buf_c(&out, "approve, reject");
    }
    return gl_str_dup(a, gl_buf_view(&out));
}

bool gl_human_file_is_expired(const struct gl_question *r, gl_ms now)
{
    return r->expires_at != 0 && r->expires_at <= now;
}

/* "open requests: a, b" */
static gl_str open_ones(const struct gl_human_file *f, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    for (size_t i = 0; i < f->n && out.n < 400; i++) {
        if (!f->requests[i].is_answered) {
            gl_buf_fmt(&out, "%s%.*s",
                       out.n > 0 ? ", " : "open requests: ", GL_STR_ARG(f->requests[i].request_id));
        }
    }
    return out.n > 0 ? gl_str_dup(a, gl_buf_view(&out)) : GL_S("no request is open");
}

static int check(const struct gl_human_file *f, const struct gl_human_file_answer *answer,
                 struct gl_arena *a, struct gl_why *reterr_why)
{
    const struct gl_question *r = NULL;

    for (size_t i = 0; i < f->n; i++) {
        r = gl_str_eq(f->requests[i].request_id, answer->request_id) ? &f->requests[i] : r;
    }
    if (r == NULL) {
        gl_str trouble = gl_human_file_problems(f, a);

        return gl_why(reterr_why, GL_R_NO_SUCH_REQUEST, "the run has no request '%.*s'; %.*s%s%.*s",
                      GL_STR_ARG(answer->request_id), GL_STR_ARG(open_ones(f, a)),
                      trouble.n > 0 ? "; " : "", GL_STR_ARG(trouble));
    }
    if (r->is_answered) {
        return gl_why(reterr_why, GL_R_REQUEST_ANSWERED,
                      "request '%.*s' is answered: %.*s%s%.*s%s%.*s", GL_STR_ARG(r->request_id),
                      GL_STR_ARG(r->decision), r->reviewer.n > 0 ? " by " : "",
                      GL_STR_ARG(r->reviewer), r->answered_at.n > 0 ? " at " : "",
                      GL_STR_ARG(r->answered_at));
    }
    if (gl_human_file_is_expired(r, answer->now)) {
        char when[GL_TIMES_BYTES];

        return gl_why(reterr_why,
                      r->is_refused               ? GL_R_REQUEST_DEFAULT_REFUSED
                      : r->default_decision.n > 0 ? GL_R_REQUEST_DEFAULTED
                                                  : GL_R_REQUEST_TIMED_OUT,
                      "request '%.*s' awaited an answer until %.*s%s%.*s",
                      GL_STR_ARG(r->request_id), GL_STR_ARG(gl_times_format(r->expires_at, when)),
                      r->is_refused               ? "; it does not allow its own default: "
                      : r->default_decision.n > 0 ? "; its default applies: "
                                                  : "; it has no default",
                      GL_STR_ARG(r->default_decision));
    }
    if (answer->ended.n > 0) {
        return gl_why(reterr_why, GL_R_JOB_ENDED,
                      "the job has ended (%.*s): it no longer reads answers to request '%.*s'",
                      GL_STR_ARG(answer->ended), GL_STR_ARG(r->request_id));
    }
    if (!allows(r, answer->decision)) {
        return gl_why(reterr_why, GL_R_DECISION_INVALID, "the decision must be one of: %.*s",
                      GL_STR_ARG(decisions_text(r, a)));
    }
    return 0;
}

static void write_text(struct gl_jw *w, const char *name, gl_str text)
{
    gl_jw_key(w, name);
    gl_jw_str(w, text);
}

static void write_answer(const struct gl_human_file_answer *answer, struct gl_buf *out)
{
    struct gl_jw w;

    gl_jw_init(&w, out);
    gl_jw_object(&w);
    write_text(&w, "type", GL_S("human_input_received"));
    write_text(&w, "timestamp", answer->at);
    gl_jw_key(&w, "payload");
    gl_jw_object(&w);
    write_text(&w, "request_id", answer->request_id);
    write_text(&w, "decision", answer->decision);
    write_text(&w, "reviewer", answer->reviewer);
    gl_jw_key(&w, "approved");
    gl_jw_bool(&w,
               gl_str_is(answer->decision, "approve") || gl_str_is(answer->decision, "approved"));
    write_text(&w, "at", answer->at);
    if (answer->reason.n > 0) {
        write_text(&w, "reason", answer->reason);
    }
    if (answer->output.n > 0) {
        gl_jw_key(&w, "output");
        gl_jw_raw(&w, answer->output);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
}

/* The lock is held until the answer is written. A worker may hold it as long as it likes. */
static int open_locked(const char *root, gl_str run_id, gl_ms wait, int *ret_fd,
                       struct gl_why *reterr_why)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    uint64_t bytes;
    int err = gl_run_files_open(root, run_id, GL_S(FILE_NAME), ret_fd, &bytes, reterr_why);
    const char *other = err == GL_E_NOT_FOUND ? other_kind(root, run_id) : NULL;

    if (other != NULL) {
        return gl_why(reterr_why, err, NO_FILE, other);
    }
    while (err == 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return gl_fs_why(reterr_why, errno, "lock", FILE_NAME);
        }
        if (wait <= 0) {
            return gl_why(reterr_why, GL_R_REQUESTS_LOCKED,
                          "another process, perhaps the worker itself, holds a lock on "
                          "human.jsonl: nothing can be written until it releases it; try again");
        }
        (void)nanosleep(&pause, NULL);
        wait -= LOCK_PAUSE_MS;
    }
    return err;
}

int gl_human_file_respond(const char *root, gl_str run_id,
                          const struct gl_human_file_answer *answer, struct gl_arena *a,
                          struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf line = {0};
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    struct gl_human_file f = {0};
    int err = open_locked(root, run_id, LOCK_WAIT_MS, &fd, reterr_why);

    err = err == 0 ? read_open(fd, a, &f, reterr_why) : err;
    err = err == 0 ? check(&f, answer, a, reterr_why) : err;
    if (err == 0) {
        write_answer(answer, &line);
        err = gl_run_files_append(root, run_id, FILE_NAME, gl_buf_view(&line), reterr_why);
    }
    return err;
}

/* ---- expired requests ---- */

static bool has_default(const struct gl_question *r)
{
    return !r->is_answered && r->expires_at != 0 && r->default_decision.n > 0 && !r->is_refused;
}

gl_ms gl_human_file_next_timeout(const struct gl_human_file *f)
{
    gl_ms due = INT64_MAX;

    for (size_t i = 0; i < f->n; i++) {
        if (has_default(&f->requests[i]) && f->requests[i].expires_at < due) {
            due = f->requests[i].expires_at;
        }
    }
    return due;
}

static void write_default(const struct gl_question *r, gl_ms now, struct gl_buf *out)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    char when[GL_TIMES_BYTES], until[GL_TIMES_BYTES];
    struct gl_human_file_answer answer = {
        .request_id = r->request_id,
        .decision = r->default_decision,
        .reviewer = GL_S(GL_HUMAN_FILE_TIMEOUT),
        .reason = gl_str_fmt(&a, "no answer until %.*s: the default applies",
                             GL_STR_ARG(gl_times_format(r->expires_at, until))),
        .at = gl_times_format(now, when),
    };

    gl_buf_c(out, out->n > 0 ? "\n" : "");
    write_answer(&answer, out);
}

/* All defaults of a file are written together: one sync instead of one each, during which other
 * runs would wait. */
int gl_human_file_expire(const char *root, gl_str run_id, gl_ms now, size_t *ret_n,
                         struct gl_why *reterr_why)
{
    GL_CLEANUP(gl_arena_done) struct gl_arena a = {0};
    GL_CLEANUP(gl_buf_done) struct gl_buf lines = {0};
    GL_CLEANUP(gl_fs_closep) int fd = -1;
    struct gl_human_file f = {0};
    int err = open_locked(root, run_id, 0, &fd, reterr_why);

    err = err == 0 ? read_open(fd, &a, &f, reterr_why) : err;
    *ret_n = 0;
    for (size_t i = 0; i < f.n && err == 0 && lines.n < DEFAULTS_BYTES; i++) {
        if (has_default(&f.requests[i]) && gl_human_file_is_expired(&f.requests[i], now)) {
            write_default(&f.requests[i], now, &lines);
            ++*ret_n;
        }
    }
    if (err == 0 && lines.n > 0) {
        err = gl_run_files_append(root, run_id, FILE_NAME, gl_buf_view(&lines), reterr_why);
    }
    return err;
}

/* ---- limits ---- */

static void tell(struct gl_buf *out, gl_str sentence)
{
    gl_buf_c(out, out->n > 0 ? "; " : "");
    gl_buf_str(out, sentence);
}

/* Report only the first one. */
static void tell_refused(const struct gl_human_file *f, struct gl_arena *a, struct gl_buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct gl_question *r = &f->requests[i];

        if (r->is_refused && !r->is_answered) {
            tell(out, gl_str_fmt(a,
                                 "the default '%.100s' of request '%.100s' is not one of the "
                                 "decisions it allows (%.200s), so it will not be applied",
                                 gl_str_c(a, r->default_decision), gl_str_c(a, r->request_id),
                                 gl_str_c(a, decisions_text(r, a))));
            return;
        }
    }
}

gl_str gl_human_file_problems(const struct gl_human_file *f, struct gl_arena *a)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf out = {0};

    if (f->is_other != NULL) {
        tell(&out, gl_str_fmt(a, NO_FILE, f->is_other));
    }
    if (f->is_cut) {
        tell(&out, gl_str_fmt(a,
                              "human.jsonl has more than %d MiB: only the end of it is read, and a "
                              "question before that is ignored",
                              GL_HUMAN_FILE_BYTES_MAX >> 20));
    }
    if (f->dropped_n > 0) {
        tell(&out, gl_str_fmt(a,
                              "human.jsonl has more than %d requests: later ones are "
                              "taken",
                              GL_HUMAN_FILE_MAX));
    }
    if (f->strange_n > 0) {
        tell(&out, gl_str_fmt(a,
                              "a question in human.jsonl is ignored because its line has more "
                              "than 1 MiB or its request_id more than %d bytes",
                              GL_HUMAN_FILE_ID_MAX));
    }
    tell_refused(f, a, &out);
    return gl_str_dup(a, gl_buf_view(&out));
}
