#include "sim/sim_damage.h"

#include <stdio.h>

enum { LASTS_MS = 120000, LOOKS = 20 };

/* Only these can be missing and be noticed: messages are counted, and pieces of bodies are named.
 * No record gives the number of a job's steps in the store. */
static const struct {
    const char *kind;
    bool may_miss;
} kinds[] = {{"job", false},   {"step", false}, {"letter", true},
             {"letter", true}, {"body", true},  {"message", true}};

static void mend(struct sim_damage *x, struct sim_damage_item *item)
{
    if (sim_disk_mend(x->disk, SIM_CONTEXT, gl_str_of(item->kind), gl_str_of(item->id),
                      item->rev)) {
        SIM_TRACE(x->world, NODE, .job = item->job->id, .what = "a record is mended");
    }
    item->job->spoilt = false;
    item->job->spoilt_until = x->world->now;
    item->job = NULL;
}

static struct sim_fact_job *owner_of(const struct sim_damage *x, gl_str id)
{
    gl_str rest;
    struct sim_fact_job *j = sim_facts_job(x->facts, gl_str_cut(id, '/', &rest));
    bool fits = j != NULL && j->known && !j->torn && !j->removed && !j->spoilt &&
                !gl_job_status_is_terminal(j->r.status);
    return fits ? j : NULL;
}

static void spoil(struct sim_damage *x, struct sim_damage_item *item)
{
    size_t k = (size_t)gl_rng_below(&x->rng, sizeof(kinds) / sizeof(kinds[0]));
    const struct sim_sorted *rows = sim_disk_kind(x->disk, SIM_CONTEXT, gl_str_of(kinds[k].kind));
    bool is_missing = kinds[k].may_miss && gl_rng_chance(&x->rng, 400000);
    for (int i = 0; i < LOOKS && rows->n > 0 && item->job == NULL; i++) {
        gl_str id = rows->rows[gl_rng_below(&x->rng, rows->n)]->id;
        struct sim_fact_job *j = owner_of(x, id);
        if (j == NULL) {
            continue;
        }
        item->kind = kinds[k].kind;
        (void)snprintf(item->id, sizeof(item->id), "%.*s", GL_STR_ARG(id));
        item->rev = sim_disk_spoil(x->disk, SIM_CONTEXT, gl_str_of(item->kind), gl_str_of(item->id),
                                   is_missing);
        item->mend_at = x->world->now + gl_rng_range(&x->rng, 1000, LASTS_MS);
        item->job = j;
        j->spoilt = true;
        (void)snprintf(j->spoilt_name, sizeof(j->spoilt_name), "%s/%s", item->kind, item->id);
        x->hit_n++;
        SIM_TRACE(x->world, NODE, .job = j->id, .from = item->kind,
                  .what = is_missing ? "a record is missing" : "a record is damaged");
    }
}

static void plan(struct sim_damage *x)
{
    gl_ms now = x->world->now, due = INT64_MAX;
    if (x->left > 0 && x->ends_at > now) {
        due = now + gl_rng_range(&x->rng, 1, 1 + (x->ends_at - now) / x->left);
    }
    for (size_t i = 0; i < SIM_DAMAGES_MAX; i++) {
        if (x->items[i].job != NULL && x->items[i].mend_at < due) {
            due = x->items[i].mend_at;
        }
    }
    if (due != INT64_MAX) {
        sim_world_at(x->world, &x->call, due);
    }
}

static void on_call(struct sim_call *call)
{
    struct sim_damage *x = GL_CONTAINER(call, struct sim_damage, call);
    bool has_mended = false;
    struct sim_damage_item *place = NULL;
    for (size_t i = 0; i < SIM_DAMAGES_MAX; i++) {
        struct sim_damage_item *item = &x->items[i];
        if (item->job != NULL && item->mend_at <= x->world->now) {
            mend(x, item);
            has_mended = true;
        }
        place = item->job == NULL ? item : place;
    }
    if (!has_mended && place != NULL && x->left > 0) {
        x->left--;
        spoil(x, place);
    }
    plan(x);
}

void sim_damage_init(struct sim_damage *x, struct sim_checks *checks, gl_ms span_ms)
{
    struct sim_world *w = checks->world;
    *x = (struct sim_damage){.world = w,
                             .disk = checks->disk,
                             .facts = &checks->facts,
                             .ends_at = w->now + span_ms,
                             .left = w->bundles.damages};
    gl_rng_init(&x->rng, w->seed ^ gl_str_hash(GL_S("damage")));
    sim_call_init(&x->call, on_call, NULL);
    plan(x);
}

void sim_damage_heal(struct sim_damage *x)
{
    sim_world_cancel(x->world, &x->call);
    x->left = 0;
    for (size_t i = 0; i < SIM_DAMAGES_MAX; i++) {
        if (x->items[i].job != NULL) {
            mend(x, &x->items[i]);
        }
    }
}
