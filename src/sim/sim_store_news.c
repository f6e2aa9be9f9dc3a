/* sim_store_news.c - what a simulated store reports by itself: notifications of other nodes'
 * transactions, some of them lost, all of them late; which store it is; and that it was
 * unavailable. */
#include "base/mem.h"
#include "sim/sim_store.h"

enum sim_news_type { NEWS_WORD, NEWS_MET, NEWS_CHANGED };

struct sim_news {
    struct gl_link link;
    struct sim_store *store;
    enum sim_news_type type;
    struct sim_call delivery;
    struct gl_arena text;
    gl_str context, word;
};

static void news_free(struct sim_news *n)
{
    sim_world_cancel(n->store->world, &n->delivery);
    gl_list_remove(&n->link);
    gl_arena_done(&n->text);
    gl_mem_free(n);
}

static void on_delivery(struct sim_call *call)
{
    struct sim_news *n = GL_CONTAINER(call, struct sim_news, delivery);
    const struct gl_store_events *e = &n->store->events;
    switch (n->type) {
    case NEWS_WORD:
        if (e->woken != NULL) {
            e->woken(e->owner, n->context, n->word);
        }
        break;
    case NEWS_MET:
        if (e->met != NULL) {
            e->met(e->owner, GL_S("a simulated store"));
        }
        break;
    case NEWS_CHANGED:
        n->store->untold_n--;
        if (e->changed != NULL) {
            e->changed(e->owner, "simulated: the connection was lost and is back");
        }
        break;
    }
    news_free(n);
}

static struct sim_news *news_new(struct sim_store *s, enum sim_news_type type)
{
    struct sim_news *n = gl_mem_alloc(sizeof(*n));
    uint32_t most = s->world->options.store_delay_ms;
    gl_ms delay = most == 0 ? 0 : (gl_ms)gl_rng_below(&s->gossip, 2 * (uint64_t)most + 1);
    n->store = s;
    n->type = type;
    gl_list_init(&n->link);
    gl_list_push(&s->news, &n->link);
    sim_call_init(&n->delivery, on_delivery, s->gate);
    sim_world_at(s->world, &n->delivery, s->world->now + delay);
    return n;
}

void sim_news_word(struct sim_disk *d, gl_str context, gl_str word)
{
    for (struct gl_link *l = d->handles.next; l != &d->handles; l = l->next) {
        struct sim_store *s = GL_CONTAINER(l, struct sim_store, link);
        struct sim_world *w = s->world;
        if (s->events.woken == NULL || w->now < s->away_until ||
            sim_world_fault(w, &s->gossip, w->cluster.words_lost)) {
            continue;
        }
        struct sim_news *n = news_new(s, NEWS_WORD);
        n->context = gl_str_dup(&n->text, context);
        n->word = gl_str_dup(&n->text, word);
    }
}

void sim_news_listen(struct sim_store *s, const struct gl_store_events *events)
{
    s->events = *events;
    if (s->disk->shared && !s->has_met) {
        s->has_met = true;
        (void)news_new(s, NEWS_MET);
    }
}

void sim_news_changed(struct sim_store *s)
{
    (void)news_new(s, NEWS_CHANGED);
    s->untold_n++;
}

void sim_news_done(struct sim_store *s)
{
    struct gl_link *l;
    while ((l = gl_list_first(&s->news)) != NULL) {
        news_free(GL_CONTAINER(l, struct sim_news, link));
    }
}
