/* redrive.c - redelivers dead letters.
 *
 * Each dead letter is read first and then passed to the core with the command that removes it. They
 * are processed one by one: those already delivered stay delivered if a later one is refused. */
#include "base/check.h"
#include "base/limits.h"
#include "http/routes.h"

enum { DEAD_LETTERS_BYTES_MAX = 1 << 30 };

struct gl_redrive {
    int64_t *numbers;
    size_t n, at;
    gl_str after; /* of a list: where the next page begins; "": there is none */
    uint64_t done_n;
    gl_str who, reason;
};

static void ask_page(struct gl_http_call *c);

/* The reply to DEAD_LETTERS, taken out of c->out; NULL: the call was answered with an error. */
static gl_jnode parse_dead_letters(struct gl_http_call *c, struct gl_json *j)
{
    gl_str text = gl_str_dup(&c->arena, gl_buf_view(&c->out));

    gl_buf_reset(&c->out);
    if (gl_json_parse(j, text, DEAD_LETTERS_BYTES_MAX, &c->arena, NULL) != 0) {
        gl_reply_error(c, GL_E_DAMAGED, "the dead letters of this job cannot be read", NULL);
        return NULL;
    }
    return gl_json_get(j, gl_json_root(j), "dead_letters");
}

static void ask_node(struct gl_http_call *c, void (*then)(struct gl_http_call *c))
{
    gl_buf_reset(&c->out);
    c->then = then;
    gl_http_call_ask_node(c);
}

/* Select dead letters: one by its number, or a page. */
static void ask_dead_letters(struct gl_http_call *c, struct gl_messages_request which,
                             void (*then)(struct gl_http_call *c))
{
    c->rq.verb = GL_VERB_DEAD_LETTERS;
    c->rq.messages = which;
    ask_node(c, then);
}

static void reply_done(struct gl_http_call *c)
{
    gl_reply_json(c, MHD_HTTP_OK,
                  gl_str_fmt(&c->arena, "{\"job_id\":\"%s\",\"redriven\":%llu}", c->rq.job_id,
                             (unsigned long long)c->redrive->done_n));
}

static void ask_next(struct gl_http_call *c);

static void on_delivered(struct gl_http_call *c)
{
    c->redrive->done_n++;
    ask_next(c);
}

static void on_dead_letter(struct gl_http_call *c)
{
    struct gl_redrive *r = c->redrive;
    struct gl_json j;
    gl_jnode dead = parse_dead_letters(c, &j), message;

    if (dead == NULL) {
        return;
    }
    message = gl_json_get(&j, gl_json_first(&j, dead), "message");
    if (!gl_json_is(message, GL_JSON_OBJECT)) {
        gl_reply_error(c, GL_R_MESSAGE_LOST, "the message of this dead letter is lost", NULL);
        return;
    }
    c->rq.verb = GL_VERB_REDRIVE;
    c->rq.command = (struct gl_command_request){
        .about = gl_str_fmt(&c->arena, "%lld", (long long)r->numbers[r->at - 1]),
        .value = gl_json_raw(&j, message),
        .who = r->who,
        .reason = r->reason};
    ask_node(c, on_delivered);
}

static void ask_next(struct gl_http_call *c)
{
    struct gl_redrive *r = c->redrive;

    if (r->at < r->n) {
        ask_dead_letters(c, (struct gl_messages_request){.number = r->numbers[r->at++]},
                         on_dead_letter);
    } else if (r->after.n > 0) {
        ask_page(c);
    } else {
        reply_done(c);
    }
}

/* ---- all ---- */

static void on_page(struct gl_http_call *c)
{
    struct gl_redrive *r = c->redrive;
    struct gl_json j;
    gl_jnode dead = parse_dead_letters(c, &j);

    if (dead == NULL) {
        return;
    }
    r->numbers = GL_NEW_ARRAY(&c->arena, int64_t, dead->count + 1);
    r->n = r->at = 0;
    for (gl_jnode e = gl_json_first(&j, dead); e; e = gl_json_after(&j, dead, e)) {
        r->n += gl_json_i64(&j, gl_json_get(&j, e, "number"), &r->numbers[r->n]);
    }
    r->after = gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "next"), &c->arena);
    ask_next(c);
}

static void ask_page(struct gl_http_call *c)
{
    ask_dead_letters(
        c, (struct gl_messages_request){.after = c->redrive->after, .limit = GL_PAGE_MAX}, on_page);
}

void gl_route_redrive(struct gl_http_call *c)
{
    gl_str which = c->rq.command.about;
    struct gl_redrive *r = GL_NEW(&c->arena, struct gl_redrive);
    int64_t number = 0;

    if (!gl_str_is(which, "all") && (!gl_str_i64(which, &number) || number <= 0)) {
        gl_reply_error_at(c, GL_R_LETTER_INVALID,
                          "`number` must be the number of a dead letter, or `all`",
                          "GET .../dead-letters lists them", "number", NULL);
        return;
    }
    if (!gl_routes_read_body(c)) {
        return;
    }
    r->who = c->rq.command.who;
    r->reason = c->rq.command.reason;
    c->redrive = r;
    if (number == 0) {
        ask_page(c);
        return;
    }
    r->numbers = GL_NEW_ARRAY(&c->arena, int64_t, 1);
    r->numbers[0] = number;
    r->n = 1;
    ask_next(c);
}
