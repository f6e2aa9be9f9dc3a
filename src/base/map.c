/* map.c - entries in an array in insertion order, and a table of slots that index it. Removing
 * leaves a hole in the array; a rebuild closes the holes. */
#include "base/map.h"

#include "base/check.h"
#include "base/mem.h"

enum { ENTRIES_MIN = 8 };

void gl_map_init(struct gl_map *m)
{
    *m = (struct gl_map){0};
}

void gl_map_done(struct gl_map *m)
{
    gl_mem_free(m->entries);
    gl_mem_free(m->slots);
    *m = (struct gl_map){0};
}

size_t gl_map_count(const struct gl_map *m)
{
    return m->live_n;
}

/* The slot of `key`, or the free slot where it would go. There is always a free one: there are at
 * least twice as many slots as entries. */
static size_t slot_of(const struct gl_map *m, gl_str key, uint64_t hash)
{
    size_t mask = m->slots_n - 1;
    size_t s = (size_t)hash & mask;
    while (m->slots[s]) {
        const struct gl_map_entry *e = &m->entries[m->slots[s] - 1];
        if (e->hash == hash && gl_str_eq(e->key, key)) {
            break;
        }
        s = (s + 1) & mask;
    }
    return s;
}

void *gl_map_find(const struct gl_map *m, gl_str key)
{
    if (m->live_n == 0) {
        return NULL;
    }
    uint32_t number = m->slots[slot_of(m, key, gl_str_hash(key))];
    return number ? m->entries[number - 1].value : NULL;
}

/* Close the holes, keeping the order, and refill the slots. */
static void rebuild(struct gl_map *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->entries_n; i++) {
        if (m->entries[i].value) {
            m->entries[n++] = m->entries[i];
        }
    }
    m->entries_n = n;
    GL_ASSERT(n == m->live_n);
    memset(m->slots, 0, m->slots_n * sizeof(m->slots[0]));
    size_t mask = m->slots_n - 1;
    for (size_t i = 0; i < n; i++) {
        size_t s = (size_t)m->entries[i].hash & mask;
        while (m->slots[s]) {
            s = (s + 1) & mask;
        }
        m->slots[s] = (uint32_t)(i + 1);
    }
}

static void make_room(struct gl_map *m)
{
    if (m->entries_n < m->entries_cap) {
        return;
    }
    /* If many entries are holes, reuse them instead of growing: otherwise a map with steady
     * insertions and removals would grow forever. */
    if (m->live_n > m->entries_cap / 4 * 3 || m->entries_cap == 0) {
        size_t cap = m->entries_cap ? m->entries_cap * 2 : ENTRIES_MIN;
        GL_ASSERT(cap < UINT32_MAX / 4);
        m->entries = gl_mem_realloc(m->entries, cap * sizeof(m->entries[0]));
        m->entries_cap = cap;
        m->slots_n = cap * 2;
        m->slots = gl_mem_realloc(m->slots, m->slots_n * sizeof(m->slots[0]));
    }
    rebuild(m);
}

void gl_map_add(struct gl_map *m, gl_str key, void *value)
{
    GL_ASSERT(value);
    make_room(m);
    uint64_t hash = gl_str_hash(key);
    size_t s = slot_of(m, key, hash);
    GL_ASSERT(m->slots[s] == 0);
    m->entries[m->entries_n++] = (struct gl_map_entry){.key = key, .hash = hash, .value = value};
    m->slots[s] = (uint32_t)m->entries_n;
    m->live_n++;
}

/* Free a slot, and move later entries of the probe sequence back, so that no search stops too
 * early. */
static void slot_remove(struct gl_map *m, size_t hole)
{
    size_t mask = m->slots_n - 1;
    for (size_t s = (hole + 1) & mask; m->slots[s]; s = (s + 1) & mask) {
        size_t home = (size_t)m->entries[m->slots[s] - 1].hash & mask;
        if (((s - home) & mask) >= ((s - hole) & mask)) {
            m->slots[hole] = m->slots[s];
            hole = s;
        }
    }
    m->slots[hole] = 0;
}

void *gl_map_remove(struct gl_map *m, gl_str key)
{
    if (m->live_n == 0) {
        return NULL;
    }
    size_t s = slot_of(m, key, gl_str_hash(key));
    if (m->slots[s] == 0) {
        return NULL;
    }
    struct gl_map_entry *e = &m->entries[m->slots[s] - 1];
    void *value = e->value;
    slot_remove(m, s);
    *e = (struct gl_map_entry){0};
    m->live_n--;
    while (m->entries_n && !m->entries[m->entries_n - 1].value) {
        m->entries_n--;
    }
    return value;
}

void *gl_map_prev(const struct gl_map *m, size_t *i)
{
    *i = *i < m->entries_n ? *i : m->entries_n;
    while (*i > 0) {
        void *value = m->entries[--(*i)].value;
        if (value) {
            return value;
        }
    }
    return NULL;
}

void *gl_map_next(const struct gl_map *m, size_t *i)
{
    while (*i < m->entries_n) {
        void *value = m->entries[(*i)++].value;
        if (value) {
            return value;
        }
    }
    return NULL;
}
