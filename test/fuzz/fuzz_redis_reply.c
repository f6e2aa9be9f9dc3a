/* fuzz_redis_reply - what a server answers, or something that is no Redis server; and records,
 * members and settings that a stranger may have written there. It arrives in two pieces. */
#include <stdint.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const struct gl_redis_reply *r, unsigned depth)
{
    size_t bytes = gl_redis_text(r).n;
    int64_t number;
    uint64_t positive;
    GL_ASSERT(depth < 16);
    (void)gl_redis_i64(r, &number);
    (void)gl_redis_u64(r, &positive);
    for (size_t i = 0; r->type == GL_REDIS_ARRAY && i < r->items_n; i++) {
        bytes += walk(gl_redis_item(r, i), depth + 1);
    }
    return bytes;
}

static void use(const struct gl_redis_reply *r)
{
    struct gl_record record = {.kind = GL_S("job"), .id = GL_S("a")};
    struct gl_redis_info facts;
    struct gl_why why = {0};
    int64_t score;
    gl_str id;
    struct gl_arena a = {0};
    struct gl_findings found = {0};

    (void)walk(r, 0);
    gl_redis_record_decode(&record, r, true);
    GL_ASSERT(GL_IMPLIES(record.damaged, record.rev != 0));
    GL_ASSERT(GL_IMPLIES(r->type != GL_REDIS_NIL, record.rev != 0));
    if (gl_redis_score_decode(gl_redis_text(r), &score, &id)) {
        GL_ASSERT(id.n < gl_redis_text(r).n);
    }
    gl_redis_info_parse(&facts, gl_redis_text(r));
    gl_redis_info_parse_config(&facts, r);
    gl_redis_info_diagnose(&facts, &a, &found);
    GL_ASSERT(found.n > 0);
    if (r->type == GL_REDIS_ERROR) {
        GL_ASSERT(gl_redis_error_why(&why, GL_E_UNAVAILABLE, r->text) == GL_E_UNAVAILABLE);
    }
    gl_arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gl_redis_reader *reader = gl_redis_reader_new();
    const struct gl_redis_reply *reply = NULL;
    struct gl_why why = {0};
    size_t cut = size > 0 ? data[0] % size : 0;
    gl_str pieces[] = {{(const char *)data, cut}, {(const char *)data + cut, size - cut}};
    int err = 0;
    for (size_t i = 0; i < GL_COUNT(pieces) && err == 0; i++) {
        err = gl_redis_reader_feed(reader, pieces[i], &why);
        do {
            reply = NULL;
            err = err < 0 ? err : gl_redis_reader_next(reader, &reply, &why);
            if (err == 0 && reply != NULL) {
                use(reply);
            }
        } while (err == 0 && reply != NULL);
    }
    GL_ASSERT(GL_IMPLIES(err < 0, why.text[0] != '\0'));
    gl_redis_reader_free(reader);
    return 0;
}
