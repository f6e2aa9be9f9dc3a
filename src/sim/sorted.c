#include "sim/sorted.h"

#include "base/check.h"
#include "base/mem.h"

void sim_sorted_init(struct sim_sorted *s, bool id_first)
{
    *s = (struct sim_sorted){.id_first = id_first};
}

void sim_sorted_done(struct sim_sorted *s)
{
    gl_mem_free(s->rows);
    *s = (struct sim_sorted){0};
}

static int compare(const struct sim_sorted *s, const struct sim_row *row, int64_t score, gl_str id)
{
    int by_score = (row->score > score) - (row->score < score);
    if (!s->id_first && by_score != 0) {
        return by_score;
    }
    int by_id = gl_str_cmp(row->id, id);
    return by_id != 0 ? by_id : by_score;
}

size_t sim_sorted_seek(const struct sim_sorted *s, int64_t score, gl_str id)
{
    size_t lo = 0;
    size_t hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(s, s->rows[mid], score, id) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct sim_row *sim_sorted_find(const struct sim_sorted *s, int64_t score, gl_str id)
{
    size_t at = sim_sorted_seek(s, score, id);
    bool there = at < s->n && compare(s, s->rows[at], score, id) == 0;
    return there ? s->rows[at] : NULL;
}

void sim_sorted_add(struct sim_sorted *s, struct sim_row *row)
{
    size_t at = sim_sorted_seek(s, row->score, row->id);
    GL_ASSERT(at == s->n || compare(s, s->rows[at], row->score, row->id) != 0);
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 16 : s->cap * 2;
        s->rows = gl_mem_realloc(s->rows, s->cap * sizeof(struct sim_row *));
    }
    memmove(&s->rows[at + 1], &s->rows[at], (s->n - at) * sizeof(struct sim_row *));
    s->rows[at] = row;
    s->n++;
}

struct sim_row *sim_sorted_remove_at(struct sim_sorted *s, size_t place)
{
    GL_ASSERT(place < s->n);
    struct sim_row *row = s->rows[place];
    s->n--;
    memmove(&s->rows[place], &s->rows[place + 1], (s->n - place) * sizeof(struct sim_row *));
    return row;
}
