#include "lib/vfs_cut.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"

enum { PAGE = 4096, SECTOR = 512, SECTORS = PAGE / SECTOR };

/* A page that has been written since the last sync. */
struct page {
    uint8_t dirty; /* one bit per sector */
    char bytes[PAGE];
};

/* What the process sees of a file, in so far as it differs from the disk. Outlives its handles:
 * data that nobody synced stays in the page cache when the file is closed. */
struct disk {
    struct disk *next;
    char *path;
    int refs;  /* handles */
    bool gone; /* removed from the folder, or lost with the power */
    bool lost; /* its handles are from before the power cut */
    bool wal;
    struct page **pages; /* by number; NULL: as on the disk */
    size_t pages_n;
    int64_t size;    /* as the process sees it */
    int64_t hide_at; /* the disk's content from here on was truncated away */
};

struct vfs_cut {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    pthread_mutex_t lock; /* guards all below, and every disk */
    struct disk *disks;
    enum vfs_cut_fault fault;
    const char *fault_suffix;
    bool off;
    uint64_t cut_in, cut_seed; /* at the cut_in-th sync; 0: never */
    bool deadly;               /* the process ends with the power */
    uint64_t fail_in; /* only the fail_in-th sync fails; 0: all, as long as the fault lasts */
    size_t syncs_wal, syncs_other;
    bool holds; /* syncs wait until this is over */
    pthread_cond_t released;
};

/* Behind it in memory stands the file of the real VFS. */
struct file {
    sqlite3_file base;
    struct vfs_cut *v;
    struct disk *disk;
};

static sqlite3_file *real_of(struct file *f)
{
    return (sqlite3_file *)(void *)(f + 1);
}

static struct file *of(sqlite3_file *base)
{
    return (struct file *)(void *)base;
}

static struct vfs_cut *of_vfs(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* ---- what the process sees ---- */

static int64_t real_size(sqlite3_file *real)
{
    sqlite3_int64 size = 0;
    return real->pMethods->xFileSize(real, &size) == SQLITE_OK ? size : 0;
}

/* Read from the real file, with zeros where it ends or was truncated. */
static int read_real(sqlite3_file *real, const struct disk *d, char *to, int n, int64_t at)
{
    memset(to, 0, (size_t)n);
    int64_t end = real_size(real);
    end = d->hide_at < end ? d->hide_at : end;
    if (at >= end) {
        return SQLITE_OK;
    }
    int there = at + n > end ? (int)(end - at) : n;
    return real->pMethods->xRead(real, to, there, at);
}

static void grow_pages(struct disk *d, size_t n)
{
    if (n <= d->pages_n) {
        return;
    }
    size_t want = d->pages_n * 2 > n ? d->pages_n * 2 : n;
    d->pages = gl_mem_realloc(d->pages, want * sizeof(struct page *));
    memset(d->pages + d->pages_n, 0, (want - d->pages_n) * sizeof(struct page *));
    d->pages_n = want;
}

static struct page *find_page(const struct disk *d, int64_t number)
{
    return (size_t)number < d->pages_n ? d->pages[number] : NULL;
}

static int get_page(struct file *f, int64_t number, struct page **ret)
{
    struct disk *d = f->disk;
    *ret = find_page(d, number);
    if (*ret != NULL) {
        return SQLITE_OK;
    }
    struct page *p = gl_mem_alloc(sizeof(*p));
    int rc = read_real(real_of(f), d, p->bytes, PAGE, number * PAGE);
    if (rc != SQLITE_OK) {
        gl_mem_free(p);
        return rc;
    }
    grow_pages(d, (size_t)number + 1);
    d->pages[number] = *ret = p;
    return SQLITE_OK;
}

static void drop_pages(struct disk *d, size_t from)
{
    for (size_t i = from; i < d->pages_n; i++) {
        gl_mem_free(d->pages[i]);
        d->pages[i] = NULL;
    }
}

static int read_some(struct file *f, char *to, int n, int64_t at)
{
    while (n > 0) {
        int64_t number = at / PAGE;
        int in = (int)(at % PAGE);
        int part = n < PAGE - in ? n : PAGE - in;
        const struct page *p = find_page(f->disk, number);
        if (p != NULL) {
            memcpy(to, p->bytes + in, (size_t)part);
        } else {
            int rc = read_real(real_of(f), f->disk, to, part, at);
            if (rc != SQLITE_OK) {
                return rc;
            }
        }
        to += part;
        at += part;
        n -= part;
    }
    return SQLITE_OK;
}

static int write_some(struct file *f, const char *from, int n, int64_t at)
{
    struct disk *d = f->disk;
    while (n > 0) {
        int in = (int)(at % PAGE);
        int part = n < PAGE - in ? n : PAGE - in;
        struct page *p;
        int rc = get_page(f, at / PAGE, &p);
        if (rc != SQLITE_OK) {
            return rc;
        }
        memcpy(p->bytes + in, from, (size_t)part);
        for (int s = in / SECTOR; s <= (in + part - 1) / SECTOR; s++) {
            p->dirty |= (uint8_t)(1u << s);
        }
        from += part;
        at += part;
        n -= part;
        d->size = at > d->size ? at : d->size;
    }
    return SQLITE_OK;
}

static int truncate_to(struct file *f, int64_t size)
{
    struct disk *d = f->disk;
    if (size % PAGE != 0) {
        struct page *p;
        int rc = get_page(f, size / PAGE, &p);
        if (rc != SQLITE_OK) {
            return rc;
        }
        memset(p->bytes + size % PAGE, 0, (size_t)(PAGE - size % PAGE));
    }
    drop_pages(d, (size_t)((size + PAGE - 1) / PAGE));
    d->hide_at = size < d->hide_at ? size : d->hide_at;
    d->size = size;
    return SQLITE_OK;
}

/* ---- what reaches the disk ---- */

static int put_page(sqlite3_file *real, const struct disk *d, size_t number, struct gl_rng *chance)
{
    const struct page *p = d->pages[number];
    for (int s = 0; s < SECTORS; s++) {
        int64_t at = (int64_t)number * PAGE + s * SECTOR;
        if ((p->dirty & (1u << s)) == 0 || at >= d->size) {
            continue;
        }
        if (chance != NULL && gl_rng_below(chance, 2) == 0) {
            continue;
        }
        int n = at + SECTOR > d->size ? (int)(d->size - at) : SECTOR;
        int rc = real->pMethods->xWrite(real, p->bytes + s * SECTOR, n, at);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/* All of it, or with `chance` an arbitrary part. Without a real sync: the test's power cut does not
 * reach the kernel. */
static int flush(sqlite3_file *real, struct disk *d, struct gl_rng *chance)
{
    int rc = SQLITE_OK;
    if (d->hide_at < real_size(real) && (chance == NULL || gl_rng_below(chance, 2) == 0)) {
        rc = real->pMethods->xTruncate(real, d->hide_at);
    }
    for (size_t i = 0; i < d->pages_n && rc == SQLITE_OK; i++) {
        if (d->pages[i] != NULL) {
            rc = put_page(real, d, i, chance);
        }
    }
    if (rc == SQLITE_OK && chance == NULL) {
        drop_pages(d, 0);
        d->hide_at = INT64_MAX;
    }
    return rc;
}

static void free_disk(struct disk *d)
{
    drop_pages(d, 0);
    gl_mem_free(d->pages);
    gl_mem_free(d->path);
    gl_mem_free(d);
}

/* Forget those without handles; after a power cut also what the others have not synced. */
static void sweep(struct vfs_cut *v, bool all)
{
    struct disk **at = &v->disks;
    while (*at != NULL) {
        struct disk *d = *at;
        if (d->refs == 0 && (all || d->gone)) {
            *at = d->next;
            free_disk(d);
        } else {
            at = &d->next;
        }
    }
}

/* Write an arbitrary part of what is not synced, through a handle of our own. */
static void tear(struct vfs_cut *v, struct disk *d, struct gl_rng *chance)
{
    sqlite3_file *real = gl_mem_alloc((size_t)v->real->szOsFile);
    int flags = SQLITE_OPEN_READWRITE | (d->wal ? SQLITE_OPEN_WAL : SQLITE_OPEN_MAIN_DB);
    if (v->real->xOpen(v->real, d->path, real, flags, NULL) == SQLITE_OK) {
        (void)flush(real, d,
                    chance); /* An error leaves less on the disk, which is a cut as well. */
        (void)real->pMethods->xClose(real);
    }
    gl_mem_free(real);
}

static void cut_power(struct vfs_cut *v, uint64_t seed)
{
    struct gl_rng chance;
    gl_rng_init(&chance, seed);
    for (struct disk *d = v->disks; d != NULL; d = d->next) {
        if (seed != 0 && !d->gone) {
            tear(v, d, &chance);
        }
        drop_pages(d, 0);
        d->gone = d->lost = true; /* What is opened when the power is back is another disk. */
    }
    v->off = true;
    v->cut_in = 0;
    if (v->deadly) {
        (void)raise(SIGKILL);
    }
    sweep(v, false);
}

/* ---- faults ---- */

static bool hit(const struct file *f, enum vfs_cut_fault fault)
{
    const struct vfs_cut *v = f->v;
    return v->fault == fault && gl_str_ends(gl_str_of(f->disk->path), gl_str_of(v->fault_suffix));
}

static bool is_dead(const struct file *f)
{
    return f->v->off || f->disk->lost;
}

static int write_fault(const struct file *f)
{
    if (is_dead(f) || hit(f, VFS_CUT_WRITE_ERROR)) {
        return SQLITE_IOERR_WRITE;
    }
    if (hit(f, VFS_CUT_READ_ONLY)) {
        return SQLITE_READONLY;
    }
    return hit(f, VFS_CUT_FULL) ? SQLITE_FULL : SQLITE_OK;
}

/* ---- files ---- */

static int file_close(sqlite3_file *base)
{
    struct file *f = of(base);
    struct vfs_cut *v = f->v;
    pthread_mutex_lock(&v->lock);
    f->disk->refs--;
    sweep(v, false);
    pthread_mutex_unlock(&v->lock);
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_read(sqlite3_file *base, void *to, int n, sqlite3_int64 at)
{
    struct file *f = of(base);
    pthread_mutex_lock(&f->v->lock);
    int rc = SQLITE_IOERR_READ;
    if (!is_dead(f) && !hit(f, VFS_CUT_READ_ERROR)) {
        rc = read_some(f, to, n, at);
        if (rc == SQLITE_OK && at + n > f->disk->size) {
            rc = SQLITE_IOERR_SHORT_READ; /* The rest is zeros, as SQLite wants it. */
        }
    }
    pthread_mutex_unlock(&f->v->lock);
    return rc;
}

static int file_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 at)
{
    struct file *f = of(base);
    pthread_mutex_lock(&f->v->lock);
    int rc = write_fault(f);
    if (rc == SQLITE_OK) {
        rc = write_some(f, from, n, at);
    }
    pthread_mutex_unlock(&f->v->lock);
    return rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *f = of(base);
    pthread_mutex_lock(&f->v->lock);
    int rc = is_dead(f) ? SQLITE_IOERR_TRUNCATE : truncate_to(f, size);
    pthread_mutex_unlock(&f->v->lock);
    return rc;
}

static int sync_or_fail(struct file *f, bool may_fail)
{
    struct vfs_cut *v = f->v;
    if (is_dead(f) || (may_fail && hit(f, VFS_CUT_SYNC_LOST))) {
        return SQLITE_IOERR_FSYNC;
    }
    *(f->disk->wal ? &v->syncs_wal : &v->syncs_other) += 1;
    int rc = flush(real_of(f), f->disk, NULL);
    return rc == SQLITE_OK && may_fail && hit(f, VFS_CUT_SYNC_LATE) ? SQLITE_IOERR_FSYNC : rc;
}

static int sync_locked(struct file *f)
{
    struct vfs_cut *v = f->v;
    if (v->cut_in > 0 && --v->cut_in == 0) {
        cut_power(v, v->cut_seed);
    }
    bool once = v->fail_in > 0;
    bool now = !once || --v->fail_in == 0;
    int rc = sync_or_fail(f, now);
    if (once && now) {
        v->fault = VFS_CUT_OK;
    }
    return rc;
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    struct file *f = of(base);
    pthread_mutex_lock(&f->v->lock);
    while (f->v->holds) {
        pthread_cond_wait(&f->v->released, &f->v->lock);
    }
    int rc = sync_locked(f);
    pthread_mutex_unlock(&f->v->lock);
    return rc;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    struct file *f = of(base);
    pthread_mutex_lock(&f->v->lock);
    *ret = f->disk->size;
    int rc = is_dead(f) ? SQLITE_IOERR_FSTAT : SQLITE_OK;
    pthread_mutex_unlock(&f->v->lock);
    return rc;
}

static int file_lock(sqlite3_file *base, int level)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xLock(real, level);
}

static int file_unlock(sqlite3_file *base, int level)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xUnlock(real, level);
}

static int file_check_reserved(sqlite3_file *base, int *ret)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xCheckReservedLock(real, ret);
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
    if (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE) {
        return SQLITE_OK; /* They would change the real file behind our back. */
    }
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xFileControl(real, op, arg);
}

static int file_sector_size(sqlite3_file *base)
{
    (void)base;
    return SECTOR;
}

static int file_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE; /* as SQLite's own VFS has it by default */
}

static int file_shm_map(sqlite3_file *base, int region, int bytes, int extend, void volatile **ret)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xShmMap(real, region, bytes, extend, ret);
}

static int file_shm_lock(sqlite3_file *base, int at, int n, int flags)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xShmLock(real, at, n, flags);
}

static void file_shm_barrier(sqlite3_file *base)
{
    sqlite3_file *real = real_of(of(base));
    real->pMethods->xShmBarrier(real);
}

static int file_shm_unmap(sqlite3_file *base, int remove)
{
    sqlite3_file *real = real_of(of(base));
    return real->pMethods->xShmUnmap(real, remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* shared memory, but no memory-mapped content */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- the VFS ---- */

static struct disk *find_disk(struct vfs_cut *v, const char *path)
{
    struct disk *d = v->disks;
    while (d != NULL && (d->gone || strcmp(d->path, path) != 0)) {
        d = d->next;
    }
    return d;
}

static struct disk *get_disk(struct vfs_cut *v, const char *path, int flags, sqlite3_file *real)
{
    struct disk *d = find_disk(v, path);
    if (d == NULL) {
        d = gl_mem_alloc(sizeof(*d));
        d->path = gl_mem_alloc(strlen(path) + 1);
        memcpy(d->path, path, strlen(path));
        d->wal = (flags & SQLITE_OPEN_WAL) != 0;
        d->size = real_size(real);
        d->hide_at = INT64_MAX;
        d->next = v->disks;
        v->disks = d;
    }
    d->refs++;
    return d;
}

static bool is_off(struct vfs_cut *v)
{
    pthread_mutex_lock(&v->lock);
    bool off = v->off;
    pthread_mutex_unlock(&v->lock);
    return off;
}

/* On a read-only file system a file is opened for reading, and SQLite is told so. */
static int open_flags(struct vfs_cut *v, int flags)
{
    pthread_mutex_lock(&v->lock);
    bool read_only = v->fault == VFS_CUT_READ_ONLY && (flags & SQLITE_OPEN_READWRITE) != 0;
    pthread_mutex_unlock(&v->lock);
    int writing = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    return read_only ? (flags & ~writing) | SQLITE_OPEN_READONLY : flags;
}

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *base, int flags,
                    int *ret_flags)
{
    const int kept = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    struct vfs_cut *v = of_vfs(vfs);
    struct file *f = of(base);
    f->base.pMethods = NULL; /* SQLite closes only what has methods. */
    if (is_off(v)) {
        return SQLITE_CANTOPEN;
    }
    if ((flags & kept) == 0 || path == NULL) {
        return v->real->xOpen(v->real, path, base, flags, ret_flags);
    }
    int rc = v->real->xOpen(v->real, path, real_of(f), open_flags(v, flags), ret_flags);
    if (rc != SQLITE_OK) {
        return rc;
    }
    f->base.pMethods = &methods;
    f->v = v;
    pthread_mutex_lock(&v->lock);
    f->disk = get_disk(v, path, flags, real_of(f));
    pthread_mutex_unlock(&v->lock);
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    struct vfs_cut *v = of_vfs(vfs);
    pthread_mutex_lock(&v->lock);
    bool off = v->off;
    struct disk *d = find_disk(v, path);
    if (!off && d != NULL) {
        d->gone = true;
        sweep(v, false);
    }
    pthread_mutex_unlock(&v->lock);
    return off ? SQLITE_IOERR_DELETE : v->real->xDelete(v->real, path, sync_folder);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    struct vfs_cut *v = of_vfs(vfs);
    pthread_mutex_lock(&v->lock);
    bool off = v->off;
    struct disk *d = find_disk(v, path);
    bool known = d != NULL && flags == SQLITE_ACCESS_EXISTS;
    int64_t size = known ? d->size : 0;
    pthread_mutex_unlock(&v->lock);
    if (off) {
        return SQLITE_IOERR_ACCESS;
    }
    if (known) { /* To SQLite's own VFS, too, an empty file does not exist. */
        *ret = size > 0;
        return SQLITE_OK;
    }
    return v->real->xAccess(v->real, path, flags, ret);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int n, char *ret)
{
    sqlite3_vfs *real = of_vfs(vfs)->real;
    return real->xFullPathname(real, path, n, ret);
}

static int vfs_randomness(sqlite3_vfs *vfs, int n, char *ret)
{
    sqlite3_vfs *real = of_vfs(vfs)->real;
    return real->xRandomness(real, n, ret);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *real = of_vfs(vfs)->real;
    return real->xSleep(real, microseconds);
}

static int vfs_now(sqlite3_vfs *vfs, double *ret)
{
    sqlite3_vfs *real = of_vfs(vfs)->real;
    return real->xCurrentTime(real, ret);
}

static int vfs_last_error(sqlite3_vfs *vfs, int n, char *ret)
{
    (void)vfs;
    (void)n;
    (void)ret;
    return 0; /* The faults have no errno. */
}

struct vfs_cut *vfs_cut_new(const char *name)
{
    struct vfs_cut *v = gl_mem_alloc(sizeof(*v));
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->released, NULL);
    v->fault_suffix = "";
    v->real = sqlite3_vfs_find(NULL);
    GL_ASSERT(v->real != NULL);
    v->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct file) + v->real->szOsFile,
        .mxPathname = v->real->mxPathname,
        .zName = name,
        .pAppData = v,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_now,
        .xGetLastError = vfs_last_error,
    };
    int rc = sqlite3_vfs_register(&v->vfs, 0);
    GL_ASSERT(rc == SQLITE_OK);
    return v;
}

static void fail_once(struct vfs_cut *v, enum vfs_cut_fault fault, gl_str at)
{
    bool is_number = gl_str_u64(at, &v->fail_in);
    GL_ASSERT(is_number);
    v->fault = fault;
}

struct vfs_cut *vfs_cut_from_environment(void)
{
    gl_str number, seed, how, rest;
    gl_str name = gl_str_cut(gl_str_of(getenv("GLIA_TEST_VFS")), ':', &rest);
    if (!gl_str_is(name, "cut")) {
        return NULL;
    }
    struct vfs_cut *v = vfs_cut_new("cut");
    how = gl_str_cut(gl_str_cut(rest, ':', &seed), '=', &number);
    if (gl_str_is(how, "tear")) {
        bool is_number = gl_str_u64(number, &v->cut_in) && gl_str_u64(seed, &v->cut_seed);
        GL_ASSERT(is_number);
        v->deadly = true;
    } else if (gl_str_is(how, "late")) {
        fail_once(v, VFS_CUT_SYNC_LATE, number);
    } else if (gl_str_is(how, "lost")) {
        fail_once(v, VFS_CUT_SYNC_LOST, number);
    } else {
        GL_ASSERT(how.n == 0);
    }
    return v;
}

void vfs_cut_free(struct vfs_cut *v)
{
    (void)sqlite3_vfs_unregister(&v->vfs); /* It was registered, which is the only requirement. */
    sweep(v, true);
    GL_ASSERT(v->disks == NULL);
    pthread_cond_destroy(&v->released);
    pthread_mutex_destroy(&v->lock);
    gl_mem_free(v);
}

void vfs_cut_fail(struct vfs_cut *v, enum vfs_cut_fault fault, const char *suffix)
{
    pthread_mutex_lock(&v->lock);
    v->fault = fault;
    v->fault_suffix = suffix;
    pthread_mutex_unlock(&v->lock);
}

void vfs_cut_power(struct vfs_cut *v, uint64_t seed)
{
    pthread_mutex_lock(&v->lock);
    cut_power(v, seed);
    pthread_mutex_unlock(&v->lock);
}

void vfs_cut_power_at_sync(struct vfs_cut *v, uint64_t n, uint64_t seed)
{
    pthread_mutex_lock(&v->lock);
    v->cut_in = n;
    v->cut_seed = seed;
    pthread_mutex_unlock(&v->lock);
}

bool vfs_cut_is_off(struct vfs_cut *v)
{
    return is_off(v);
}

void vfs_cut_restore(struct vfs_cut *v)
{
    pthread_mutex_lock(&v->lock);
    v->off = false;
    v->cut_in = 0;
    pthread_mutex_unlock(&v->lock);
}

void vfs_cut_hold(struct vfs_cut *v, bool holds)
{
    pthread_mutex_lock(&v->lock);
    v->holds = holds;
    pthread_cond_broadcast(&v->released);
    pthread_mutex_unlock(&v->lock);
}

size_t vfs_cut_syncs_wal(struct vfs_cut *v)
{
    pthread_mutex_lock(&v->lock);
    size_t n = v->syncs_wal;
    pthread_mutex_unlock(&v->lock);
    return n;
}

size_t vfs_cut_syncs_other(struct vfs_cut *v)
{
    pthread_mutex_lock(&v->lock);
    size_t n = v->syncs_other;
    pthread_mutex_unlock(&v->lock);
    return n;
}
