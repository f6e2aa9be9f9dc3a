/* placement.c - compares nodes pairwise: first by whether they fit, then by how much is free. */
#include "core/scheduling/placement.h"

#include "base/check.h"
#include "model/labels.h"

const char *gl_place_word(enum gl_place_result result)
{
    static const char *const words[] = {
#define X(name, word, doc) word,
        GL_PLACE_RESULTS(X)
#undef X
    };

    GL_ASSERT(result < GL_COUNT(words));
    return words[result];
}

const char *gl_place_doc(enum gl_place_result result)
{
    static const char *const docs[] = {
#define X(name, word, doc) doc,
        GL_PLACE_RESULTS(X)
#undef X
    };

    GL_ASSERT(result < GL_COUNT(docs));
    return docs[result];
}

struct gl_place_pool *gl_place_pool(const struct gl_place_node *node, gl_str name)
{
    GL_ASSERT(name.n > 0);
    for (size_t i = 0; i < node->pools_n; i++) {
        if (gl_str_eq(node->pools[i].name, name)) {
            return &node->pools[i];
        }
    }
    return NULL;
}

static uint32_t free_slots(const struct gl_place_pool *p)
{
    uint64_t used = (uint64_t)p->others + p->ours;

    return used < p->slots ? p->slots - (uint32_t)used : 0;
}

enum gl_place_result gl_place_judge(const struct gl_place_node *node,
                                    const struct gl_place_request *request)
{
    const struct gl_place_pool *p = gl_place_pool(node, request->pool);
    gl_str rule;

    GL_ASSERT(request->slots > 0);
    GL_ASSERT(GL_IMPLIES(p != NULL, gl_str_eq(p->name, request->pool)));
    if (!node->takes) {
        return GL_PLACE_NOT_TAKING;
    }
    if (request->labels != NULL && !gl_labels_meet_all(node->labels, request->labels, &rule)) {
        return GL_PLACE_LABELS;
    }
    if (p == NULL || p->slots == 0) {
        return GL_PLACE_NO_POOL;
    }
    if (p->slots < request->slots) {
        return GL_PLACE_POOL_TOO_SMALL;
    }
    return free_slots(p) >= request->slots ? GL_PLACE_FITS : GL_PLACE_BUSY;
}

/* Is `a` better than `b`? Both have the same result for the request. */
static bool is_better(const struct gl_place_node *a, const struct gl_place_node *b,
                      const struct gl_place_request *request)
{
    const struct gl_place_pool *x = gl_place_pool(a, request->pool);
    const struct gl_place_pool *y = gl_place_pool(b, request->pool);
    bool is_a_avoided = gl_str_eq(a->id, request->avoid);
    bool is_b_avoided = gl_str_eq(b->id, request->avoid);
    uint64_t left, right;

    GL_ASSERT(a != b);
    if (is_a_avoided != is_b_avoided) {
        return is_b_avoided;
    }
    if (x == NULL || y == NULL) {
        return gl_str_cmp(a->id, b->id) < 0;
    }
    left = (uint64_t)free_slots(x) * y->slots; /* a's free part, times both pools' slots */
    right = (uint64_t)free_slots(y) * x->slots;
    GL_ASSERT(left <= (uint64_t)x->slots * y->slots);
    GL_ASSERT(right <= (uint64_t)x->slots * y->slots);
    return left != right ? left > right : gl_str_cmp(a->id, b->id) < 0;
}

int64_t gl_place(const struct gl_place_node *nodes, size_t n,
                 const struct gl_place_request *request, enum gl_place_result *ret)
{
    enum gl_place_result best_result = GL_PLACE_NOT_TAKING;
    int64_t best = -1;

    GL_ASSERT(request->slots > 0);
    GL_ASSERT(request->pool.n > 0);
    for (size_t i = 0; i < n; i++) {
        enum gl_place_result result = gl_place_judge(&nodes[i], request);

        if (request->except.n > 0 && gl_str_eq(nodes[i].id, request->except)) {
            continue;
        }
        if (best < 0 || result < best_result ||
            (result == best_result && is_better(&nodes[i], &nodes[best], request))) {
            best = (int64_t)i;
            best_result = result;
        }
    }
    GL_ASSERT(best < (int64_t)n);
    GL_ASSERT(best_result <= GL_PLACE_NOT_TAKING);
    GL_ASSERT(GL_IMPLIES(best_result <= GL_PLACE_BUSY, best >= 0));
    *ret = best_result;
    return best_result <= GL_PLACE_BUSY ? best : -1;
}
