/* Logs are copied into the simulated store by nodes that die and lose their connection, while jobs
 * are removed: what is in the store is a part of the log, the sums are right, and nothing is left
 * of a job that is gone. GLIA_LOGS_SEED=N runs one history, GLIA_LOGS_SEEDS=N more of them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/gzip.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/log_state.h"
#include "support/cmocka_all.h"
#include "support/files_rig.h"

enum { SEEDS = 5, ROUNDS = 40, LINE = 64, KEEP = 200 << 10 };

static struct files_rig rig;
static struct files_rig *const r = &rig;

/* ---- a log that grows each time it is looked at, and is the same on every machine ---- */

struct grown {
    uint64_t size, most;
};

static struct {
    struct gl_logs port;
    struct gl_map by_attempt; /* struct grown */
    struct gl_arena arena;
    bool is_down; /* its disk cannot be read */
} fake;

static gl_str name_of(gl_str job, gl_str step, uint32_t attempt)
{
    return gl_str_fmt(&fake.arena, "%.*s/%.*s:attempt:%u", GL_STR_ARG(job), GL_STR_ARG(step),
                      attempt);
}

static uint64_t hash_of(gl_str s)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s.n; i++) {
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    }
    return h;
}

static struct grown *grown_of(gl_str name)
{
    struct grown *g = gl_map_find(&fake.by_attempt, name);
    if (g == NULL) {
        uint64_t h = hash_of(name) >> 20;
        g = GL_NEW(&fake.arena, struct grown);
        g->most = h % 4 == 0 ? 0 : h % 4 == 1 ? (h % 40) * LINE : (h % 8000) * LINE;
        gl_map_add(&fake.by_attempt, name, g);
    }
    return g;
}

/* Line number `i`, of which the store makes about half. */
static void write_line(gl_str name, uint64_t i, char to[static LINE + 1])
{
    uint64_t h = (hash_of(name) ^ i) * 0x9e3779b97f4a7c15u;
    (void)snprintf(to, LINE + 1, "%013u o %08u %016llx%016llx%05u\n", 1u, (unsigned)i,
                   (unsigned long long)h, (unsigned long long)(h * h), (unsigned)(h % 99999));
    to[LINE - 1] = '\n';
}

static int fake_size(struct gl_logs *l, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                     uint64_t *ret, struct gl_why *reterr_why)
{
    struct grown *g = grown_of(name_of(job, step, attempt));
    (void)l, (void)context;
    if (fake.is_down) {
        return gl_why(reterr_why, GL_E_IO, "the disk is down");
    }
    g->size += (g->most / 3 / LINE + 1) * LINE;
    g->size = g->size > g->most ? g->most : g->size;
    *ret = g->size;
    return 0;
}

static int fake_read(struct gl_logs *l, gl_str context, gl_str job, gl_str step, uint32_t attempt,
                     uint64_t offset, size_t bytes_max, struct gl_buf *out, uint64_t *ret_next,
                     struct gl_why *reterr_why)
{
    gl_str name = name_of(job, step, attempt);
    const struct grown *g = grown_of(name);
    char line[LINE + 1];
    (void)l, (void)context, (void)reterr_why;
    offset = (offset + LINE - 1) / LINE * LINE; /* an incomplete first line is left out */
    for (size_t n = 0; offset < g->size && n + LINE <= bytes_max; n += LINE, offset += LINE) {
        write_line(name, offset / LINE, line);
        gl_buf_add(out, line, LINE);
    }
    *ret_next = offset;
    return 0;
}

/* ---- what must hold ---- */

static gl_str job_of(gl_str id)
{
    gl_str rest;
    return gl_str_cut(id, '/', &rest);
}

static void check_chunk(gl_str attempt, uint32_t number, const struct gl_log_chunk *c)
{
    struct gl_arena a = {0};
    struct gl_buf lines = {0};
    char line[LINE + 1];
    const struct sim_disk_record *record =
        sim_disk_peek(&r->disk, SIM_CONTEXT, GL_LOG_CHUNK_KIND,
                      gl_str_fmt(&a, "%.*s/%u", GL_STR_ARG(attempt), number));
    assert_non_null(record);
    assert_int_equal(record->value.n, c->bytes);
    assert_int_equal(gl_gzip_unpack(record->value, GL_LOG_PAGE_BYTES, &lines, NULL), 0);
    assert_int_equal(lines.n, c->to - c->from);
    assert_int_equal(c->from % LINE, 0);
    for (size_t i = 0; i < lines.n; i += LINE) {
        write_line(attempt, (c->from + i) / LINE, line);
        assert_memory_equal(lines.p + i, line, LINE);
    }
    gl_buf_done(&lines);
    gl_arena_done(&a);
}

/* Returns how many chunks there are, and adds their sizes to *sum. */
static size_t check_head(const struct sim_disk_record *record, uint64_t *sum)
{
    struct gl_arena a = {0};
    struct gl_log_head h;
    uint64_t kept = 0;
    size_t n;
    assert_true(gl_log_head_read(record->value, &a, &h));
    n = h.chunks.n;
    for (size_t i = 0; i < n; i++) {
        const struct gl_log_chunk *c = (const struct gl_log_chunk *)h.chunks.items + i;
        check_chunk(record->row.id, h.first + (uint32_t)i, c);
        *sum += c->bytes;
        kept += c->to - c->from;
    }
    assert_true(kept < KEEP + GL_LOG_PAGE_BYTES);
    assert_true(gl_log_head_dropped(&h) == 0 || kept >= KEEP);
    assert_true(!h.ended || h.full || gl_log_head_end(&h) == h.size);
    gl_arena_done(&a);
    return n;
}

/* Every record belongs to a job and is counted. */
static void check_store(void)
{
    const struct sim_sorted *all = sim_disk_kind(&r->disk, SIM_CONTEXT, GL_LOG_KIND);
    size_t chunks_n = 0;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        const struct sim_disk_record *sum_of = (const void *)all->rows[i];
        gl_str job = job_of(sum_of->row.id);
        struct gl_arena a = {0};
        struct gl_log_job counted;
        uint64_t sum = 0;
        if (sim_disk_peek(&r->disk, SIM_CONTEXT, GL_S("job"), job) == NULL) {
            fail_msg("%.*s is left of a job that is gone", GL_STR_ARG(sum_of->row.id));
        }
        if (sum_of->row.id.n != job.n) {
            continue;
        }
        for (size_t k = 0; k < all->n; k++) {
            const struct sim_disk_record *head = (const void *)all->rows[k];
            if (head->row.id.n > job.n && gl_str_eq(job_of(head->row.id), job)) {
                chunks_n += check_head(head, &sum);
            }
        }
        assert_true(gl_log_job_read(sum_of->value, &a, &counted));
        assert_int_equal(counted.bytes, sum);
        gl_arena_done(&a);
    }
    assert_int_equal(files_rig_count(r, "logchunk"), chunks_n);
}

/* ---- histories ---- */

static void begin(uint64_t seed)
{
    fake.is_down = false;
    fake.port = (struct gl_logs){.size = fake_size, .read = fake_read};
    gl_map_init(&fake.by_attempt);
    files_rig_init(r, seed, 0, &(struct gl_keep){0});
    r->logs = &fake.port;
    r->log_bytes = KEEP;
    r->lasts_ms = 12000;
    r->trimmed = 0;
    for (size_t i = 0; i < FILES_MACHINES; i++) {
        files_rig_start(r, i);
    }
    files_rig_run(r, 1000);
}

static int end(void **state)
{
    (void)state;
    files_rig_done(r);
    gl_map_done(&fake.by_attempt);
    gl_arena_done(&fake.arena);
    fake.arena = (struct gl_arena){0};
    return 0;
}

static bool is_removing;

static void on_removed(void *owner, struct sim_ask *ask, bool answered)
{
    (void)owner, (void)ask, (void)answered;
    is_removing = false;
}

/* A job is removed as soon as it has ended, while the end of its log is copied. */
static void remove_early(struct gl_rng *rng, size_t machine)
{
    struct files_job *job;
    r->lasts_ms = 500; /* all of its log is copied at the end */
    job = r->jobs_n < FILES_JOBS ? files_rig_submit(r, machine, "1", false) : NULL;
    is_removing = false;
    files_rig_run(r, 500);
    r->lasts_ms = 12000;
    for (int i = 0; i < 300 && job != NULL && r->machines[machine].node != NULL; i++) {
        if (!is_removing) {
            struct sim_ask *ask = sim_ask_new(GL_VERB_REMOVE);
            ask->rq.job = gl_str_dup(&ask->arena, gl_str_of(job->id));
            ask->done = on_removed;
            is_removing = true;
            sim_node_ask(r->machines[machine].node, ask);
        }
        files_rig_run(r, (gl_ms)gl_rng_below(rng, 10));
    }
}

static void play_round(struct gl_rng *rng)
{
    size_t machine = gl_rng_below(rng, FILES_MACHINES);
    switch (gl_rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2:
        if (r->jobs_n < FILES_JOBS) {
            (void)files_rig_submit(r, machine, gl_rng_below(rng, 2) == 0 ? "1" : "1234", false);
        }
        break;
    case 3:
        files_rig_trim(r, machine, (int64_t)gl_rng_below(rng, 3));
        break;
    case 4:
        files_rig_kill(r, machine);
        files_rig_run(r, (gl_ms)gl_rng_below(rng, 20000));
        files_rig_start(r, machine);
        break;
    case 5:
    case 6:
        remove_early(rng, machine);
        break;
    default:
        break;
    }
    files_rig_run(r, (gl_ms)gl_rng_below(rng, 8000));
}

static void trim_all(void)
{
    for (int tries = 0; tries < 20 && files_rig_count(r, "job") > 0; tries++) {
        files_rig_trim(r, 0, 0);
        files_rig_run(r, 60000);
    }
    assert_int_equal(files_rig_count(r, "job"), 0);
}

static void play(uint64_t seed)
{
    struct gl_rng rng;
    begin(seed);
    gl_rng_init(&rng, seed);
    r->world.options.store_unavailable = seed % 2 == 0 ? 30000 : 0;
    r->world.options.store_unknown_yes = seed % 3 == 0 ? 30000 : 0;
    r->world.options.store_delay_ms = seed % 5 == 0 ? 200 : 20;
    for (int i = 0; i < ROUNDS && !r->world.failed; i++) {
        play_round(&rng);
    }
    r->world.options.store_unavailable = r->world.options.store_unknown_yes = 0;
    files_rig_run(r, 300000);
    assert_false(r->world.failed);
    check_store();
    trim_all();
    assert_int_equal(files_rig_count(r, "log"), 0);
    assert_int_equal(files_rig_count(r, "logchunk"), 0);
}

static void no_history_leaves_a_wrong_log(void **state)
{
    const char *one = getenv("GLIA_LOGS_SEED"), *more = getenv("GLIA_LOGS_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t n = one != NULL ? 1 : more != NULL ? strtoull(more, NULL, 10) : SEEDS;
    for (uint64_t seed = first; seed < first + n; seed++) {
        (void)printf("seed %llu\n", (unsigned long long)seed);
        play(seed);
        if (seed + 1 < first + n) {
            (void)end(state);
        }
    }
}

static struct files_job *complete(const char *files)
{
    struct files_job *job = files_rig_submit(r, 0, files, false);
    for (int i = 0; i < 600 && !gl_str_is(files_rig_status(r, job), "completed"); i++) {
        files_rig_run(r, 100);
    }
    assert_true(gl_str_is(files_rig_status(r, job), "completed"));
    return job;
}

static void a_running_attempt_is_copied_every_few_seconds(void **state)
{
    (void)state;
    begin(1);
    r->lasts_ms = 60000;
    for (int i = 0; i < 5; i++) {
        (void)files_rig_submit(r, 0, "1", false);
    }
    files_rig_run(r, 3000);
    assert_int_equal(files_rig_count(r, "log"), 0);
    files_rig_run(r, 7000);
    assert_true(files_rig_count(r, "log") > 0);
    check_store();
    files_rig_run(r, 20000);
    check_store();
}

static void without_a_limit_nothing_is_copied(void **state)
{
    (void)state;
    begin(1);
    files_rig_kill(r, 0);
    r->log_bytes = 0;
    files_rig_start(r, 0);
    files_rig_run(r, 1000);
    (void)complete("1234");
    files_rig_run(r, 20000);
    assert_int_equal(files_rig_count(r, "log"), 0);
}

static void a_copy_that_comes_after_the_removal_writes_nothing(void **state)
{
    (void)state;
    begin(1);
    r->lasts_ms = 500;
    fake.is_down = true;
    for (int i = 0; i < 4; i++) { /* some of them print nothing */
        (void)complete("1");
    }
    files_rig_trim(r, 0, 0);
    files_rig_run(r, 3000);
    assert_int_equal(files_rig_count(r, "job"), 0);
    fake.is_down = false;
    files_rig_run(r, 20000);
    assert_int_equal(files_rig_count(r, "log"), 0);
    assert_int_equal(files_rig_count(r, "logchunk"), 0);
}

static void a_log_that_can_be_read_again_is_copied(void **state)
{
    (void)state;
    begin(1);
    r->lasts_ms = 500;
    fake.is_down = true;
    for (int i = 0; i < 4; i++) {
        (void)complete("1");
    }
    files_rig_run(r, 3000);
    assert_int_equal(files_rig_count(r, "log"), 0);
    fake.is_down = false;
    files_rig_run(r, 20000);
    assert_true(files_rig_count(r, "log") > 0);
    check_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_running_attempt_is_copied_every_few_seconds, end),
        cmocka_unit_test_teardown(without_a_limit_nothing_is_copied, end),
        cmocka_unit_test_teardown(a_copy_that_comes_after_the_removal_writes_nothing, end),
        cmocka_unit_test_teardown(a_log_that_can_be_read_again_is_copied, end),
        cmocka_unit_test_teardown(no_history_leaves_a_wrong_log, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
