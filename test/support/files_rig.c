#include "support/files_rig.h"

#include <stdio.h>

#include "base/check.h"
#include "base/sha256.h"
#include "model/gc_state.h"
#include "support/cmocka_all.h"

static const gl_str context = SIM_CONTEXT;

/* ---- what must always hold ---- */

static const struct sim_disk_record *peek(struct files_rig *r, const char *kind, gl_str id)
{
    return sim_disk_peek(&r->disk, context, gl_str_of(kind), id);
}

static bool is_whole(struct files_rig *r, gl_str hash)
{
    struct gl_arena a = {0};
    const struct sim_disk_record *head = peek(r, "blob", hash);
    struct gl_gc_blob blob;
    struct gl_buf content = {0};
    char hex[GL_SHA256_HEX];
    bool is_good =
        head != NULL && head->rev != GL_GC_PARTIAL && gl_gc_blob_read(head->value, &a, &blob);
    for (uint32_t i = 0; is_good && i < blob.pieces; i++) {
        const struct sim_disk_record *piece =
            peek(r, "blob", gl_str_fmt(&a, "%.*s/%u", GL_STR_ARG(hash), i));
        is_good = piece != NULL;
        if (is_good) {
            gl_buf_str(&content, piece->value);
        }
    }
    is_good = is_good && gl_str_eq(gl_sha256_hex(gl_buf_view(&content), hex), hash);
    gl_buf_done(&content);
    gl_arena_done(&a);
    return is_good;
}

static void check_flow(struct files_rig *r, gl_str hash, gl_str text)
{
    struct gl_arena a = {0};
    struct gl_flow *flow;
    assert_int_equal(gl_flow_decode(text, &a, &flow, NULL), 0);
    for (uint32_t i = 0; i < flow->steps.n; i++) {
        const struct gl_items *files = &gl_flow_step(flow, i)->files;
        for (size_t f = 0; f < files->n; f++) {
            gl_str blob = ((const struct gl_flow_file *)files->items)[f].blob;
            if (!is_whole(r, blob)) {
                fail_msg("flow %.8s is in the store, and its file %.8s is not", hash.p, blob.p);
            }
        }
    }
    gl_arena_done(&a);
}

static gl_str text_of(struct files_rig *r, gl_str job, const char *field, struct gl_arena *a)
{
    const struct sim_disk_record *record = peek(r, "job", job);
    struct gl_json j;
    assert_non_null(record);
    assert_int_equal(gl_json_parse(&j, record->value, GL_RECORD_BYTES_MAX, a, NULL), 0);
    return gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), field), a);
}

static gl_str flow_of(struct files_rig *r, gl_str job, struct gl_arena *a)
{
    return text_of(r, job, "flow", a);
}

/* Changes with every flow and blob that comes, goes, or is worth something else. */
static uint64_t sum_kind(struct files_rig *r, const char *kind)
{
    const struct sim_sorted *all = sim_disk_kind(&r->disk, context, gl_str_of(kind));
    uint64_t sum = 0;
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        sum = sum * 31 + gl_str_hash(all->rows[i]->id) + peek(r, kind, all->rows[i]->id)->rev;
    }
    return sum;
}

static void check(struct files_rig *r)
{
    struct gl_arena a = {0};
    const struct sim_sorted *jobs = sim_disk_kind(&r->disk, context, GL_S("job"));
    const struct sim_sorted *flows = sim_disk_kind(&r->disk, context, GL_S("flow"));
    uint64_t sum = sum_kind(r, "flow") * 7 + sum_kind(r, "blob");
    bool is_news = sum != r->checked_what;
    r->checked_what = sum;
    for (size_t i = 0; jobs != NULL && i < jobs->n; i++) {
        gl_str hash = flow_of(r, jobs->rows[i]->id, &a);
        if (peek(r, "flow", hash) == NULL) {
            fail_msg("job %.*s is in the store, and its flow is not",
                     GL_STR_ARG(jobs->rows[i]->id));
        }
        gl_str earlier = text_of(r, jobs->rows[i]->id, "retry_of", &a);
        if (earlier.n > 0 && peek(r, "job", jobs->rows[i]->id)->live &&
            peek(r, "job", earlier) == NULL) {
            fail_msg("job %.*s runs, and the one it retries is gone",
                     GL_STR_ARG(jobs->rows[i]->id));
        }
    }
    for (size_t i = 0; flows != NULL && i < flows->n && is_news; i++) {
        const struct sim_disk_record *f = peek(r, "flow", flows->rows[i]->id);
        if (f->rev == GL_GC_WHOLE) {
            check_flow(r, flows->rows[i]->id, f->value);
        }
    }
    gl_arena_done(&a);
}

static void on_plan(void *owner, const struct sim_process *p, struct sim_behaviour *b)
{
    struct files_machine *m = owner;
    struct files_rig *r = m->rig;
    struct gl_arena a = {0};
    struct gl_flow *flow;
    gl_str content;
    char hex[GL_SHA256_HEX];
    *b = (struct sim_behaviour){
        .lasts_ms = r->lasts_ms, .result = {.end = GL_EXEC_EXITED}, .term_ms = 10};
    const struct sim_disk_record *f = peek(r, "flow", flow_of(r, p->job, &a));
    assert_non_null(f);
    assert_int_equal(gl_flow_decode(f->value, &a, &flow, NULL), 0);
    const struct gl_step_spec *step = gl_flow_step(flow, (uint32_t)gl_flow_find(flow, p->step));
    for (size_t i = 0; i < step->files.n; i++) {
        const struct gl_flow_file *file = &((const struct gl_flow_file *)step->files.items)[i];
        if (!sim_blobs_find(&m->blobs, file->blob, &content) ||
            !gl_str_eq(gl_sha256_hex(content, hex), file->blob)) {
            fail_msg("%.*s started on %s without its file", GL_STR_ARG(p->attempt), m->keeper.node);
        }
    }
    gl_arena_done(&a);
}

/* ---- nodes ---- */

void files_rig_start(struct files_rig *r, size_t machine)
{
    struct files_machine *m = &r->machines[machine];
    struct sim_node_options options = {.machine = (uint32_t)machine + 1,
                                       .incarnation = ++m->incarnation,
                                       .pools = {.default_slots = 4, .gpu_slots = 1},
                                       .keep = r->keep,
                                       .blob = &m->blobs.port,
                                       .logs = r->logs,
                                       .log_bytes = r->log_bytes,
                                       .round_trip = true};
    assert_null(m->node);
    m->node = sim_node_new(&r->world, &r->disk, &m->keeper, &options);
}

void files_rig_kill(struct files_rig *r, size_t machine)
{
    struct files_machine *m = &r->machines[machine];
    sim_blobs_crash(&m->blobs);
    sim_node_kill(m->node);
    m->node = NULL;
}

void files_rig_run(struct files_rig *r, gl_ms span)
{
    gl_ms until = r->world.now + span;
    while (!r->world.failed && r->world.agenda.n > 0) {
        const struct sim_call *next =
            GL_CONTAINER(gl_heap_top(&r->world.agenda), struct sim_call, item);
        if (next->due > until) {
            break;
        }
        (void)sim_world_step(&r->world); /* there is one */
        for (size_t i = 0; i < FILES_MACHINES; i++) {
            if (r->machines[i].node != NULL && r->machines[i].node->lost) {
                files_rig_kill(r, i);
                files_rig_start(r, i);
            }
        }
        if (r->disk.commits_n != r->checked_at && !r->is_meddled) {
            r->checked_at = r->disk.commits_n;
            check(r);
        }
    }
    if (r->world.failed) {
        fail_msg("%s", r->world.failure);
    }
    sim_world_run(&r->world, until);
}

static void make_contents(struct files_rig *r, uint64_t seed)
{
    static const size_t sizes[FILES_CONTENTS] = {
        0, 1, 100, 1000, GL_GC_PIECE_BYTES, GL_GC_PIECE_BYTES + 77};
    char hex[GL_SHA256_HEX];
    struct gl_rng rng;
    gl_rng_init(&rng, seed);
    for (size_t i = 0; i < FILES_CONTENTS; i++) {
        char *p = gl_arena_alloc(&r->arena, sizes[i] + 1);
        gl_rng_fill(&rng, p, (uint32_t)sizes[i]);
        r->contents[i] = (gl_str){.p = p, .n = sizes[i]};
        r->hashes[i] = gl_str_dup(&r->arena, gl_sha256_hex(r->contents[i], hex));
    }
}

void files_rig_init(struct files_rig *r, uint64_t seed, size_t machines_n,
                    const struct gl_keep *keep)
{
    *r = (struct files_rig){.lasts_ms = 100, .trimmed = 1, .keep = *keep};
    make_contents(r, seed);
    sim_world_init(&r->world, seed);
    sim_disk_init(&r->disk);
    r->disk.shared = true;
    for (size_t i = 0; i < FILES_MACHINES; i++) {
        struct files_machine *m = &r->machines[i];
        char name[16];
        (void)snprintf(name, sizeof(name), "blobs%zu", i);
        m->rig = r;
        sim_keeper_init_at(&m->keeper, &r->world, (uint32_t)i + 1, &r->wall);
        m->keeper.watch = (struct sim_keeper_watch){.owner = m, .on_plan = on_plan};
        sim_blobs_init(&m->blobs, &r->world, name);
    }
    for (size_t i = 0; i < machines_n; i++) {
        files_rig_start(r, i);
    }
    files_rig_run(r, 1000);
}

void files_rig_done(struct files_rig *r)
{
    for (size_t i = 0; i < FILES_MACHINES; i++) {
        struct files_machine *m = &r->machines[i];
        if (m->node != NULL) {
            files_rig_kill(r, i);
        }
        sim_keeper_done(&m->keeper);
        sim_blobs_done(&m->blobs);
    }
    sim_disk_done(&r->disk);
    sim_world_done(&r->world);
    gl_buf_done(&r->body);
    gl_arena_done(&r->arena);
}

/* ---- submissions ---- */

struct loader {
    struct gl_flow_loader loader;
    struct files_rig *rig;
    struct files_machine *machine;
    bool bare;
};

static int load(struct gl_flow_loader *loader, gl_str source, gl_str text, char ret_hex[static 65],
                bool *ret_executable, struct gl_why *reterr_why)
{
    struct loader *l = GL_CONTAINER(loader, struct loader, loader);
    size_t i = (size_t)(source.p[4] - '0');
    gl_str content = l->rig->contents[i];
    (void)text;
    *ret_executable = false;
    gl_str hex = l->rig->hashes[i];
    memcpy(ret_hex, hex.p, hex.n + 1);
    return l->bare ? 0
                   : l->machine->blobs.port.put(&l->machine->blobs.port, context, hex, content,
                                                reterr_why);
}

static void on_submitted(void *owner, struct sim_ask *ask, bool answered)
{
    struct files_job *job = owner;
    job->code = answered ? ask->rq.code : GL_E_UNAVAILABLE;
    job->why = ask->rq.why;
    if (answered && ask->rq.code == 0) {
        memcpy(job->id, ask->rq.job_id, sizeof(job->id));
    }
}

static gl_str make_flow(struct files_rig *r, struct files_machine *m, const char *files, bool bare,
                        struct gl_arena *a)
{
    struct loader l = {.loader = {.load = load}, .rig = r, .machine = m, .bare = bare};
    struct gl_buf text = {0}, encoded = {0};
    struct gl_flow_errors errors = {0};
    struct gl_flow *flow;
    struct gl_json j;
    gl_buf_c(&text, "{\"name\":\"f\",\"steps\":{");
    for (size_t i = 0; files[i] != 0; i++) {
        gl_buf_fmt(&text, "%s\"s%zu\":{", i > 0 ? "," : "", i);
        if (files[i] == '-') {
            gl_buf_c(&text, "\"noop\":true}");
        } else {
            gl_buf_fmt(&text, "\"script\":\"file%c.sh\",\"idempotent\":true}", files[i]);
        }
    }
    gl_buf_c(&text, "}}");
    assert_int_equal(gl_json_parse(&j, gl_str_dup(a, gl_buf_view(&text)), 1 << 20, a, NULL), 0);
    if (gl_flow_parse(&j, gl_json_root(&j), &l.loader, a, &flow, &errors) != 0) {
        fail_msg("%.*s", GL_STR_ARG(errors.items[0].text));
    }
    gl_flow_encode(flow, &encoded);
    gl_str out = gl_str_dup(a, gl_buf_view(&encoded));
    gl_buf_done(&text);
    gl_buf_done(&encoded);
    return out;
}

static struct files_job *job_new(struct files_rig *r, struct sim_ask *ask)
{
    struct files_job *job = &r->jobs[r->jobs_n++];
    GL_ASSERT(r->jobs_n <= FILES_JOBS);
    *job = (struct files_job){.code = 1};
    (void)snprintf(job->run_id, sizeof(job->run_id), "run%zu", ++r->runs_n);
    ask->rq.submission.run_id = gl_str_of(job->run_id);
    ask->done = on_submitted;
    ask->owner = job;
    ask->asked_at = r->world.now;
    return job;
}

struct files_job *files_rig_submit(struct files_rig *r, size_t machine, const char *files,
                                   bool bare)
{
    struct files_machine *m = &r->machines[machine];
    struct sim_ask *ask = sim_ask_new(GL_VERB_SUBMIT);
    struct files_job *job = job_new(r, ask);
    ask->rq.submission.compiled = make_flow(r, m, files, bare, &ask->arena);
    sim_node_ask(m->node, ask);
    return job;
}

struct files_job *files_rig_retry(struct files_rig *r, size_t machine,
                                  const struct files_job *earlier)
{
    struct sim_ask *ask = sim_ask_new(GL_VERB_RETRY);
    struct files_job *job = job_new(r, ask);
    ask->rq.job = gl_str_of(earlier->id);
    sim_node_ask(r->machines[machine].node, ask);
    return job;
}

static void on_trimmed(void *owner, struct sim_ask *ask, bool answered)
{
    struct files_rig *r = owner;
    r->trimmed = answered ? ask->rq.code : GL_E_UNAVAILABLE;
    gl_buf_reset(&r->body);
    gl_buf_str(&r->body, answered && ask->rq.code == 0 ? ask->rq.body : (gl_str){0});
    gl_buf_char(&r->body, 0);
}

void files_rig_trim(struct files_rig *r, size_t machine, int64_t keep_jobs)
{
    struct sim_ask *ask = sim_ask_new(GL_VERB_TRIM);
    r->trimmed = 1;
    ask->rq.trim.keep_jobs = keep_jobs;
    ask->done = on_trimmed;
    ask->owner = r;
    sim_node_ask(r->machines[machine].node, ask);
}

/* ---- what is there ---- */

uint64_t files_rig_rev(struct files_rig *r, size_t content)
{
    const struct sim_disk_record *head = peek(r, "blob", r->hashes[content]);
    return head != NULL ? head->rev : 0;
}

gl_str files_rig_status(struct files_rig *r, const struct files_job *job)
{
    const struct sim_disk_record *record = peek(r, "job", gl_str_of(job->id));
    struct gl_json j;
    if (record == NULL ||
        gl_json_parse(&j, record->value, GL_RECORD_BYTES_MAX, &r->arena, NULL) != 0) {
        return (gl_str){0};
    }
    return gl_str_dup(&r->arena,
                      gl_json_str(&j, gl_json_get(&j, gl_json_root(&j), "status"), &r->arena));
}

size_t files_rig_count(struct files_rig *r, const char *kind)
{
    const struct sim_sorted *all = sim_disk_kind(&r->disk, context, gl_str_of(kind));
    return all != NULL ? all->n : 0;
}
