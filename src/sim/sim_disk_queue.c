/* sim_disk_queue.c - queues of a simulated disk: items in the order of their coming, and who has
 * claimed them. */
#include "sim/sim_disk_state.h"

/* Simulated queues are short: looking through them is enough. */
static struct sim_item *item_find(const struct sim_table *t, gl_str id)
{
    for (size_t i = 0; t != NULL && i < t->rows.n; i++) {
        if (gl_str_eq(t->rows.rows[i]->id, id)) {
            return (void *)t->rows.rows[i];
        }
    }
    return NULL;
}

/* As `like`, with another claim. */
static struct sim_item *item_new(const struct sim_item *like, gl_str taker, uint64_t token,
                                 gl_ms until)
{
    struct sim_item *it = gl_mem_alloc(sizeof(*it) + like->row.id.n + like->value.n + taker.n);
    char *at = (char *)(it + 1);
    it->row.score = like->row.score;
    it->row.id = sim_disk_text(&at, like->row.id);
    it->value = sim_disk_text(&at, like->value);
    it->taker = sim_disk_text(&at, taker);
    it->token = token;
    it->claimed_until = until;
    return it;
}

bool sim_disk_is_claimed(const struct sim_disk *d, gl_str context, const struct gl_guard *g)
{
    const struct sim_item *it = item_find(sim_disk_table(d, context, SIM_QUEUE, g->kind), g->id);
    return it != NULL && it->token != 0 && it->token == g->token;
}

void sim_disk_write_queue(struct sim_disk *d, struct sim_disk_context *c, const struct gl_write *w)
{
    struct sim_table *t = sim_disk_table_make(c, SIM_QUEUE, w->kind);
    struct sim_item *it = item_find(t, w->id);
    if (w->type == GL_WRITE_PUSH && it == NULL) {
        struct sim_item fresh = {.row = {.score = t->pushed_n++, .id = w->id}, .value = w->value};
        sim_disk_swap(d, t, NULL, &item_new(&fresh, (gl_str){0}, 0, 0)->row);
    } else if (w->type == GL_WRITE_POP && it != NULL) {
        sim_disk_swap(d, t, &it->row, NULL);
    } else if (w->type == GL_WRITE_UNCLAIM && it != NULL) {
        sim_disk_swap(d, t, &it->row, &item_new(it, (gl_str){0}, it->token, 0)->row);
    }
}

static bool is_free(const struct sim_disk *d, const struct sim_item *it)
{
    return it->taker.n == 0 || it->claimed_until <= sim_disk_time(d) ||
           sim_disk_is_dead(d, it->taker);
}

const struct gl_queue_item *sim_disk_take(struct sim_disk *d, gl_str context,
                                          const struct gl_take *take, struct gl_arena *a,
                                          size_t *ret_n)
{
    struct sim_table *t = sim_disk_table(d, context, SIM_QUEUE, take->queue);
    size_t n = 0;
    size_t have = t == NULL ? 0 : t->rows.n;
    struct gl_queue_item *out =
        GL_NEW_ARRAY(a, struct gl_queue_item, (take->limit < have ? take->limit : have) + 1);
    sim_disk_tail_begin(d, take->session, 0, false);
    for (size_t i = 0; i < have && n < take->limit; i++) {
        struct sim_item *it = (void *)t->rows.rows[i];
        if (!is_free(d, it)) {
            continue;
        }
        struct sim_item *mine =
            item_new(it, take->session, ++t->claimed_n, sim_disk_time(d) + take->lease_ms);
        sim_disk_swap(d, t, &it->row, &mine->row);
        out[n++] = (struct gl_queue_item){.id = gl_str_dup(a, mine->row.id),
                                          .value = gl_str_dup(a, mine->value),
                                          .token = mine->token};
    }
    *ret_n = n;
    return out;
}
