/* postgres_notify.c - wake-ups by NOTIFY, on a connection of their own: inside a commit, NOTIFY
 * would serialize all commits of the server. Words that arrive while a notification is in flight
 * are sent together, each once.
 *
 * Wake-ups may be lost: when too many wait, when the connection breaks, when the server refuses.
 * Sweeps find the work anyway. */
#include <event2/event.h>

#include "base/check.h"
#include "store/postgres/postgres_parts.h"

enum { WORDS_MAX = 1000, PAUSE_US = 5000 };

struct queued_word {
    size_t n;
    char text[];
};

/* Drop all words that wait. */
static void clear(struct gl_postgres *s)
{
    struct queued_word *w;
    for (size_t i = 0; (w = gl_map_next(&s->notifications, &i)) != NULL;) {
        gl_mem_free(w);
    }
    gl_map_done(&s->notifications);
    gl_map_init(&s->notifications);
    GL_ASSERT(gl_map_count(&s->notifications) == 0);
}

void gl_postgres_notify_done(struct gl_postgres *s)
{
    clear(s);
    gl_map_done(&s->notifications);
}

void gl_postgres_notify_add(struct gl_postgres *s, gl_str context, gl_str word)
{
    struct queued_word *w = gl_mem_alloc(sizeof(*w) + context.n + 1 + word.n);

    GL_ASSERT(context.n > 0);
    GL_ASSERT(word.n > 0);
    memcpy(w->text, context.p, context.n);
    w->text[context.n] = ' '; /* a context name contains no space */
    memcpy(w->text + context.n + 1, word.p, word.n);
    w->n = context.n + 1 + word.n;
    gl_str key = {w->text, w->n};
    /* Already waiting, or too many: drop it. */
    if (gl_map_find(&s->notifications, key) != NULL ||
        gl_map_count(&s->notifications) >= WORDS_MAX) {
        gl_mem_free(w);
        return;
    }
    gl_map_add(&s->notifications, key, w);
}

/* Send the waiting words. One statement at a time, and a pause after each, so that bursts are
 * merged. */
void gl_postgres_notify_flush(struct gl_postgres *s)
{
    struct gl_postgres_conn *c = &s->conns[GL_POSTGRES_LISTENER];
    if (gl_map_count(&s->notifications) == 0 || c->state != GL_POSTGRES_READY || s->notify_sent ||
        s->notify_pausing) {
        return;
    }
    gl_postgres_args_reset(&s->args);
    int words = gl_postgres_args_array(&s->args, GL_POSTGRES_TEXT);
    struct queued_word *w;
    for (size_t i = 0; (w = gl_map_next(&s->notifications, &i)) != NULL;) {
        gl_postgres_args_add(&s->args, words, &(struct gl_arg){.text = {w->text, w->n}});
    }
    clear(s);
    gl_postgres_args_finish(&s->args);
    if (s->lib.PQsendQueryParams(c->pg, "SELECT pg_notify('glia', w) FROM unnest($1::text[]) AS w",
                                 1, NULL, s->args.values, s->args.lengths, s->args.formats,
                                 1) == 0 ||
        !gl_postgres_conn_write(c)) {
        gl_postgres_conn_drop(c, s->lib.PQerrorMessage(c->pg));
        return;
    }
    GL_ASSERT(!s->notify_sent);
    s->notify_sent = true;
    c->until = gl_calls_now(&s->calls) + s->url.timeout_ms;
    s->notify_pausing = true;
    (void)event_add(s->notify_timer, &(struct timeval){.tv_usec = PAUSE_US});
}

void gl_postgres_notify_readable(struct gl_postgres_conn *c)
{
    struct gl_postgres *s = c->store;

    GL_ASSERT(c->number == GL_POSTGRES_LISTENER);
    PGnotify *n;
    while (s->notify_sent && s->lib.PQisBusy(c->pg) == 0) {
        PGresult *r = s->lib.PQgetResult(c->pg);
        s->notify_sent = r != NULL; /* the result does not matter: wake-ups may be lost */
        s->lib.PQclear(r);
    }
    while ((n = s->lib.PQnotifies(c->pg)) != NULL) {
        gl_str word, context = gl_str_cut(gl_str_of(n->extra), ' ', &word);
        gl_calls_woken(&s->calls, context, word);
        s->lib.PQfreemem(n);
    }
}
