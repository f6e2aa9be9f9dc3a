/* seats.c - a node's picture of the seats of each key, one byte for each seat, and the writes that
 * take and free them. The picture may be wrong; the guard on the seat's record decides. */
#include "core/scheduling/seats.h"

#include "base/check.h"
#include "core/flow/txn.h"

void gl_seats_set(struct gl_quota *l, uint32_t seat, enum gl_seat state)
{
    GL_ASSERT(state == GL_SEAT_FREE || state == GL_SEAT_OURS || state == GL_SEAT_OTHERS);
    if (seat > 0 && seat <= l->seats_n) {
        l->others_n -= l->seats[seat - 1] == GL_SEAT_OTHERS;
        l->seats[seat - 1] = (char)state;
        l->others_n += state == GL_SEAT_OTHERS;
    }
    GL_ASSERT(l->others_n <= l->seats_n);
}

void gl_seats_grow(struct gl_core *c, struct gl_quota *l, uint32_t n)
{
    char *seats;

    if (n <= l->seats_n) {
        return;
    }
    seats = gl_pool_alloc(&c->mem, n);
    memset(seats, GL_SEAT_FREE, n);
    if (l->seats_n > 0) {
        memcpy(seats, l->seats, l->seats_n);
        gl_pool_free(&c->mem, l->seats, l->seats_n);
    }
    l->seats = seats;
    l->seats_n = n;
    GL_ASSERT(l->seats_n == n);
}

/* A seat that looks free. Each node begins at a different one, so that they seldom try the same. */
static uint32_t find_seat(struct gl_core *c, struct gl_quota *l)
{
    size_t from = (size_t)(gl_str_hash(c->session) ^ gl_str_hash(l->key));

    GL_ASSERT(l->max > 0);
    gl_seats_grow(c, l, l->max);
    for (uint32_t i = 0; i < l->max; i++) {
        uint32_t seat = (uint32_t)((from + i) % l->max);

        if (l->seats[seat] == GL_SEAT_FREE) {
            return seat + 1;
        }
    }
    /* No seat is free, though one was when the start was granted: a job was loaded again, because
     * the end of the attempt that held the seat had not committed. Any seat will do: the guard
     * refuses the start. */
    return (uint32_t)(from % l->max) + 1;
}

static gl_str seat_id(struct gl_core *c, gl_str key, uint32_t seat)
{
    GL_ASSERT(key.n > 0);
    GL_ASSERT(seat > 0);
    return gl_str_fmt(c->out->arena, "%.*s/%u", GL_STR_ARG(key), seat);
}

/* Does the same transaction release the seat for another step of the job? Then the record still
 * exists, and a guard on its absence would fail. */
static bool is_released_here(const struct gl_job *j, gl_str id)
{
    for (size_t i = 0; i < j->extra_n; i++) {
        if (j->extra[i].type == GL_WRITE_DELETE && gl_str_is(j->extra[i].kind, "limit") &&
            gl_str_eq(j->extra[i].id, id)) {
            return true;
        }
    }
    return false;
}

void gl_seats_acquire(struct gl_core *c, struct gl_step *st, struct gl_slot_hold *h)
{
    uint32_t seat = find_seat(c, h->limit);
    gl_str id = seat_id(c, gl_quotas_key(h->limit), seat);

    GL_ASSERT(c->shared);
    /* In memory at once, so that the next start in this step of the core takes another seat. If the
     * transaction is refused, the hold is returned and the mark with it. */
    gl_seats_set(h->limit, seat, GL_SEAT_OURS);
    st->r.seat = h->seat = seat;
    if (gl_list_empty(&st->job->touched) || !is_released_here(st->job, id)) {
        (void)gl_txn_guard(c, st->job, GL_GUARD_ABSENT, GL_S("limit"), id);
    }
    gl_txn_write(c, st->job, GL_WRITE_PUT, GL_S("limit"), id)->value =
        gl_str_fmt(c->out->arena, "{\"job_id\":\"%.*s\",\"step_id\":\"%.*s\"}",
                   GL_STR_ARG(st->job->id), GL_STR_ARG(st->r.step_id));
    GL_ASSERT(st->r.seat > 0);
    GL_ASSERT(h->seat == st->r.seat);
}

void gl_seats_release(struct gl_core *c, struct gl_step *st)
{
    if (st->r.seat > 0) {
        /* The mark in memory is cleared by gl_quotas_return(), when the hold goes. */
        (void)gl_txn_write(c, st->job, GL_WRITE_DELETE, GL_S("limit"),
                           seat_id(c, st->r.limit_key, st->r.seat));
        st->r.seat = 0;
    }
    GL_ASSERT(st->r.seat == 0);
}

void gl_seats_forget_others(struct gl_quota *l)
{
    for (uint32_t i = 0; i < l->seats_n && l->others_n > 0; i++) {
        if (l->seats[i] == GL_SEAT_OTHERS) {
            gl_seats_set(l, i + 1, GL_SEAT_FREE);
        }
    }
    GL_ASSERT(l->others_n == 0);
}

void gl_seats_restore(struct gl_core *c, struct gl_quota *l, gl_str seats)
{
    GL_ASSERT(l->seats_n == 0);
    gl_seats_grow(c, l, seats.n < GL_SLOTS_MAX ? (uint32_t)seats.n : GL_SLOTS_MAX);
    for (uint32_t i = 0; i < l->seats_n; i++) {
        if (seats.p[i] == GL_SEAT_OURS || seats.p[i] == GL_SEAT_OTHERS) {
            gl_seats_set(l, i + 1, (enum gl_seat)seats.p[i]);
        }
    }
}
