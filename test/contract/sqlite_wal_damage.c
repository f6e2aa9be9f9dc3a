/* Damage in the write-ahead log. Each test copies the files of an open store, as a crash would
 * leave them, changes the copy and opens it: either everything acknowledged is there, or the copy
 * is refused. A torn commit that was not acknowledged is no reason to refuse. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "contract/maker_sqlite.h"
#include "os/fs.h"
#include "store/sqlite/sqlite_backup.h"

enum {
    COMMITS = 14,
    BYTES_MAX = 64 << 20,
    SECTOR = 512,
    HEADER = 32,
    FRAME = 24 + 8192,
};

/* The files of a database at one moment. */
struct files {
    struct gl_buf db, wal, note;
};

struct fixture {
    struct contract c;
    struct sqlite_world w;           /* still open */
    struct sqlite_world copy;        /* its copies are opened here */
    struct files after[COMMITS + 1]; /* after each commit; [0] before the first */
};

static void read_file(const char *path, const char *suffix, struct gl_buf *ret)
{
    char name[PATH_MAX];
    struct gl_why why;
    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    int err = gl_fs_read(name, BYTES_MAX, ret, &why);
    assert_true(err == 0 || err == GL_E_NOT_FOUND);
}

static void write_file(const char *path, const char *suffix, const struct gl_buf *content)
{
    char name[PATH_MAX];
    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    (void)unlink(name);
    if (content->n > 0) {
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(content->p, 1, content->n, file), content->n);
        assert_int_equal(fclose(file), 0);
    }
}

static void take_files(const struct sqlite_world *w, struct files *ret)
{
    read_file(w->path, "", &ret->db);
    read_file(w->path, "-wal", &ret->wal);
    read_file(w->path, "-synced", &ret->note);
}

static int set_up(void **state)
{
    static struct fixture f; /* tests run one at a time */
    f = (struct fixture){0};
    sqlite_contract_begin(&f.c, &f.w, NULL);
    contract_session(&f.c, "a");
    take_files(&f.w, &f.after[0]);
    static char text[20000];
    memset(text, 'x', sizeof(text));
    for (int i = 1; i <= COMMITS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "j%04d", i);
        gl_str value = {text, (size_t)(i * 7919 % 19000)};
        assert_int_equal(contract_commit(&f.c, NO_GUARDS,
                                         WRITES(put_bytes("job", id, value),
                                                append("events", "all", i, "{\"n\":1}"))),
                         0);
        take_files(&f.w, &f.after[i]);
    }
    sqlite_world_init(&f.copy, NULL);
    char folder[PATH_MAX];
    struct gl_why why;
    (void)snprintf(folder, sizeof(folder), "%s/default", f.copy.contexts);
    assert_int_equal(gl_fs_mkdirs(folder, &why), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i <= COMMITS; i++) {
        gl_buf_done(&f->after[i].db);
        gl_buf_done(&f->after[i].wal);
        gl_buf_done(&f->after[i].note);
    }
    sqlite_world_done(&f->copy);
    sqlite_contract_end(&f->c, &f->w);
    return 0;
}

static void lay_out(struct fixture *f, const struct gl_buf *db, const struct gl_buf *wal,
                    const struct gl_buf *note)
{
    write_file(f->copy.path, "", db);
    write_file(f->copy.path, "-wal", wal);
    write_file(f->copy.path, "-synced", note);
    write_file(f->copy.path, "-shm", &(struct gl_buf){0});
}

/* The number of jobs present; -1: refused, with a sentence that says so. */
static int open_copy(struct fixture *f)
{
    struct gl_why why = {0};
    int err = sqlite_world_open(&f->copy, &why);
    if (err == GL_E_DAMAGED) {
        assert_non_null(strstr(why.text, f->copy.path));
        assert_non_null(strstr(why.text, "backup"));
        return -1;
    }
    assert_int_equal(err, 0);
    sqlite_world_close(&f->copy);
    return (int)sqlite_world_sql(&f->copy, "SELECT count(*) FROM record WHERE kind = 'job'");
}

static const struct gl_buf nothing = {0};

static uint32_t frames_of(const struct gl_buf *wal)
{
    return (uint32_t)((wal->n - HEADER) / FRAME);
}

/* ---- flipped bits ---- */

/* Where bits are flipped: in all bytes of the log's header, in each field of each frame's header,
 * and in some bytes of its page. */
static size_t places(const struct gl_buf *wal, size_t *ret, size_t max)
{
    const int in_frame[] = {3, 7, 11, 14, 16, 23, 24, 1000, 4000, FRAME - 1};
    size_t n = 0;
    for (size_t i = 0; i < HEADER; i++) {
        ret[n++] = i;
    }
    for (uint32_t i = 0; i < frames_of(wal); i++) {
        for (size_t k = 0; k < GL_COUNT(in_frame); k++) {
            assert_true(n < max);
            ret[n++] = HEADER + (size_t)i * FRAME + (size_t)in_frame[k];
        }
    }
    return n;
}

static int flip(struct fixture *f, size_t at, int bit, const struct gl_buf *note)
{
    struct files *all = &f->after[COMMITS];
    all->wal.p[at] = (char)(all->wal.p[at] ^ (1 << bit));
    lay_out(f, &all->db, &all->wal, note);
    all->wal.p[at] = (char)(all->wal.p[at] ^ (1 << bit));
    return open_copy(f);
}

static void a_flipped_bit_is_refused_wherever_it_is(void **state)
{
    struct fixture *f = *state;
    struct files *all = &f->after[COMMITS];
    static size_t at[8192];
    size_t n = places(&all->wal, at, GL_COUNT(at));
    int refused_n = 0;
    lay_out(f, &all->db, &all->wal, &all->note);
    assert_int_equal(open_copy(f), COMMITS);
    for (size_t i = 0; i < n; i++) {
        int jobs = flip(f, at[i], (int)(i % 8), &all->note);
        if (jobs != -1 && jobs != COMMITS) {
            fail_msg("a flip at byte %zu has lost jobs: %d are left", at[i], jobs);
        }
        refused_n += jobs == -1;
    }
    assert_int_equal(refused_n, n);
}

/* From an older release, or without the note: the last two commits cannot be distinguished from a
 * torn end. */
static void so_is_one_before_the_last_commits_without_a_note(void **state)
{
    struct fixture *f = *state;
    struct files *all = &f->after[COMMITS];
    static size_t at[8192];
    size_t covered = f->after[COMMITS - 2].wal.n, n = places(&all->wal, at, GL_COUNT(at));
    for (size_t i = 0; i < n; i++) {
        int jobs = flip(f, at[i], (int)(i % 8), &nothing);
        if (at[i] < covered) {
            assert_int_equal(jobs, -1);
        } else {
            assert_true(jobs == -1 || jobs >= COMMITS - 2);
        }
    }
}

static void a_refusal_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct files *all = &f->after[COMMITS], now = {0};
    assert_int_equal(flip(f, HEADER + 5 * FRAME + 100, 3, &all->note), -1);
    f->copy.read_only = true;
    assert_int_equal(open_copy(f), -1);
    struct gl_why why;
    uint64_t jobs, unfinished;
    char to[PATH_MAX];
    (void)snprintf(to, sizeof(to), "%s/saved.db", f->copy.folder.path);
    assert_int_equal(gl_sqlite_check(f->copy.path, &why), GL_E_DAMAGED);
    assert_int_equal(gl_sqlite_backup_make(f->copy.path, to, false, &jobs, &unfinished, &why),
                     GL_E_DAMAGED);
    take_files(&f->copy, &now);
    assert_true(gl_str_eq(gl_buf_view(&now.db), gl_buf_view(&all->db)));
    assert_int_equal(now.wal.n, all->wal.n);
    assert_true(gl_str_eq(gl_buf_view(&now.note), gl_buf_view(&all->note)));
    /* A person who accepts the loss gets what is left. */
    assert_int_equal(gl_sqlite_backup_make(f->copy.path, to, true, &jobs, &unfinished, &why), 0);
    assert_true(jobs < COMMITS);
    gl_buf_done(&now.db);
    gl_buf_done(&now.wal);
    gl_buf_done(&now.note);
}

/* ---- incomplete logs ---- */

static void a_log_that_was_cut_off_emptied_or_removed_is_refused(void **state)
{
    struct fixture *f = *state;
    struct files *all = &f->after[COMMITS];
    struct gl_buf cut = all->wal;
    for (uint32_t i = 0; i < frames_of(&all->wal); i++) {
        cut.n = HEADER + (size_t)i * FRAME;
        lay_out(f, &all->db, &cut, &all->note);
        assert_int_equal(open_copy(f), -1);
        cut.n += 700;
        lay_out(f, &all->db, &cut, &all->note);
        assert_int_equal(open_copy(f), -1);
    }
    lay_out(f, &all->db, &nothing, &all->note);
    assert_int_equal(open_copy(f), -1);
    f->copy.read_only = true;
    lay_out(f, &all->db, &nothing, &all->note);
    assert_int_equal(open_copy(f), -1);
}

static void a_log_of_an_earlier_moment_is_refused(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < COMMITS; i++) {
        lay_out(f, &f->after[i].db, &f->after[i].wal, &f->after[COMMITS].note);
        assert_int_equal(open_copy(f), -1);
    }
}

static void a_note_that_is_old_torn_or_missing_refuses_nothing(void **state)
{
    struct fixture *f = *state;
    struct files *all = &f->after[COMMITS];
    for (int i = 0; i < COMMITS; i++) { /* as after a power loss */
        lay_out(f, &all->db, &all->wal, &f->after[i].note);
        assert_int_equal(open_copy(f), COMMITS);
    }
    struct gl_buf torn = {0};
    for (size_t i = 0; i < all->note.n; i += 5) {
        gl_buf_reset(&torn);
        gl_buf_str(&torn, gl_buf_view(&all->note));
        torn.p[i] = (char)(torn.p[i] ^ 0x40);
        lay_out(f, &all->db, &all->wal, &torn);
        assert_int_equal(open_copy(f), COMMITS);
    }
    gl_buf_done(&torn);
    lay_out(f, &all->db, &all->wal, &nothing);
    assert_int_equal(open_copy(f), COMMITS);
}

static void a_note_without_a_database_is_forgotten(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    struct contract c;
    lay_out(f, &nothing, &nothing, &f->after[COMMITS].note);
    assert_int_equal(sqlite_world_open(&f->copy, &why), 0);
    contract_adopt(&c, &contract_maker_sqlite, &f->copy, f->copy.store);
    assert_int_equal(contract_commit(&c, NO_GUARDS, WRITES(put("job", "a", 1, "{}"))), 0);
    sqlite_world_close(&f->copy);
    contract_forget(&c);
    assert_int_equal(open_copy(f), 1);
}

/* ---- torn ends ---- */

/* The log after commit k with some sectors of commit k + 1, and a note about k or older. */
static void tear(struct fixture *f, int k, struct gl_rng *rng, struct gl_buf *ret)
{
    const struct gl_buf *old = &f->after[k].wal, *new = &f->after[k + 1].wal;
    gl_buf_reset(ret);
    gl_buf_str(ret, gl_buf_view(new));
    for (size_t at = 0; at < ret->n; at += SECTOR) {
        size_t n = ret->n - at < SECTOR ? ret->n - at : SECTOR;
        if (gl_rng_below(rng, 4) != 0) {
            continue;
        }
        for (size_t i = at; i < at + n; i++) {
            ret->p[i] = (char)(i < old->n ? old->p[i] : 0);
        }
    }
}

static void a_torn_last_commit_refuses_nothing(void **state)
{
    struct fixture *f = *state;
    struct gl_buf torn = {0};
    struct gl_rng rng;
    int lost_n = 0;
    gl_rng_init(&rng, 20261118);
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < COMMITS; k++) {
            const struct gl_buf *note = &f->after[gl_rng_below(&rng, (uint64_t)k + 1)].note;
            tear(f, k, &rng, &torn);
            lay_out(f, &f->after[k].db, &torn, round % 3 == 0 ? &nothing : note);
            int jobs = open_copy(f);
            assert_true(jobs == k || jobs == k + 1);
            lost_n += jobs == k;
        }
    }
    assert_true(lost_n > 0);
    gl_buf_done(&torn);
}

/* Torn, continued, torn again before the first tear is overwritten: commit frames of both are
 * present, and neither was acknowledged. */
static void nor_does_a_tear_on_top_of_an_earlier_one(void **state)
{
    struct fixture *f = *state;
    struct gl_buf twice = {0};
    for (int k = 1; k < COMMITS; k++) {
        size_t end = f->after[k].wal.n;
        const struct gl_buf *next = &f->after[k + 1 <= COMMITS ? k + 1 : COMMITS].wal;
        gl_buf_reset(&twice);
        gl_buf_str(&twice, gl_buf_view(next));
        memset(twice.p + end, 0, SECTOR); /* the first frame of commit k + 1 */
        /* After it, the end of another torn commit: frames that continue nothing here. */
        gl_buf_str(&twice, (gl_str){f->after[k].wal.p + end - 2 * FRAME, 2 * FRAME});
        lay_out(f, &f->after[k].db, &twice, &f->after[k].note);
        assert_int_equal(open_copy(f), k);
    }
    gl_buf_done(&twice);
}

/* A restarted log has frames of the previous one at its end. */
static void frames_of_an_earlier_log_refuse_nothing(void **state)
{
    struct fixture *f = *state;
    struct files now = {0};
    assert_int_equal(sqlite_world_sql(&f->w, "PRAGMA wal_checkpoint(RESTART)"), 0);
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "new", 1, "{}"))), 0);
    take_files(&f->w, &now);
    assert_int_equal(now.wal.n, f->after[COMMITS].wal.n);
    lay_out(f, &now.db, &now.wal, &now.note);
    assert_int_equal(open_copy(f), COMMITS + 1);
    lay_out(f, &now.db, &now.wal, &f->after[COMMITS].note);
    assert_int_equal(open_copy(f), COMMITS + 1);
    lay_out(f, &now.db, &nothing, &now.note); /* the one new commit */
    assert_int_equal(open_copy(f), -1);
    gl_buf_done(&now.db);
    gl_buf_done(&now.wal);
    gl_buf_done(&now.note);
}

/* ---- a running store ---- */

static void a_log_is_emptied_when_nothing_happens(void **state)
{
    struct fixture *f = *state;
    struct files now = {0};
    f->w.idle_ms = 1;
    contract_reopen(&f->c);
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "new", 1, "{}"))), 0);
    char wal[PATH_MAX];
    struct stat st = {.st_size = 1};
    (void)snprintf(wal, sizeof(wal), "%s-wal", f->w.path);
    while (st.st_size > 0) { /* the test's own time limit bounds it */
        assert_int_equal(stat(wal, &st), 0);
    }
    take_files(&f->w, &now);
    assert_int_equal(now.wal.n, 0);
    lay_out(f, &now.db, &nothing, &now.note);
    assert_int_equal(open_copy(f), COMMITS + 1);
    assert_int_equal(contract_commit(&f->c, NO_GUARDS, WRITES(put("job", "b", 1, "{}"))), 0);
    gl_buf_done(&now.db);
    gl_buf_done(&now.wal);
    gl_buf_done(&now.note);
}

static void a_store_can_be_checked_while_it_is_written(void **state)
{
    struct fixture *f = *state;
    struct gl_why why;
    static char text[30000];
    memset(text, 'y', sizeof(text));
    for (int i = 0; i < 60; i++) { /* enough for checkpoints and new logs */
        struct contract_call *last = NULL;
        for (int k = 0; k < 20; k++) {
            gl_str value = {text, sizeof(text)};
            last = contract_start(&f->c, NO_GUARDS, WRITES(put_bytes("job", "x", value)));
        }
        assert_int_equal(gl_sqlite_check(f->w.path, &why), 0);
        contract_wait(last);
        assert_int_equal(last->req.status, 0);
    }
}

#define DAMAGE_TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DAMAGE_TEST(a_flipped_bit_is_refused_wherever_it_is),
        DAMAGE_TEST(so_is_one_before_the_last_commits_without_a_note),
        DAMAGE_TEST(a_refusal_changes_nothing),
        DAMAGE_TEST(a_log_that_was_cut_off_emptied_or_removed_is_refused),
        DAMAGE_TEST(a_log_of_an_earlier_moment_is_refused),
        DAMAGE_TEST(a_note_that_is_old_torn_or_missing_refuses_nothing),
        DAMAGE_TEST(a_note_without_a_database_is_forgotten),
        DAMAGE_TEST(a_torn_last_commit_refuses_nothing),
        DAMAGE_TEST(nor_does_a_tear_on_top_of_an_earlier_one),
        DAMAGE_TEST(frames_of_an_earlier_log_refuse_nothing),
        DAMAGE_TEST(a_log_is_emptied_when_nothing_happens),
        DAMAGE_TEST(a_store_can_be_checked_while_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
