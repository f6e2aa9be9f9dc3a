#include "os/machine.h"

#include <sched.h>
#include <sys/statvfs.h>

#include "base/check.h"
#include "os/fs.h"

enum {
    MILLI = 1000,
    FILE_BYTES_MAX = 4 << 20, /* of mountinfo: a line for each mount */
    LEVELS_MAX = 64,          /* of nested control groups */
    CPUS_MAX = 1 << 20,
};

/* The three hierarchies that can limit us. */
enum hierarchy { V2, V1_CPU, V1_MEMORY, HIERARCHIES };

struct machine {
    const char *root;
    struct gl_arena a;
    gl_str folder[HIERARCHIES]; /* our control group; "": none */
    gl_str top[HIERARCHIES];    /* where its hierarchy is mounted; a prefix of `folder` */
};

/* "": it cannot be read. */
static gl_str read_file(struct machine *m, gl_str path)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};

    if (gl_fs_read(gl_str_fmt(&m->a, "%s%.*s", m->root, GL_STR_ARG(path)).p, FILE_BYTES_MAX,
                   &content, NULL) != 0) {
        return (gl_str){0};
    }
    return gl_str_dup(&m->a, gl_buf_view(&content));
}

/* The next line of `text`. */
static gl_str line_of(gl_str *text)
{
    return gl_str_cut(*text, '\n', text);
}

static gl_str word_of(gl_str *line)
{
    return gl_str_cut(*line, ' ', line);
}

/* Is `word` in "rw,cpu,cpuacct"? */
static bool is_listed(gl_str list, const char *word)
{
    while (list.n > 0) {
        if (gl_str_is(gl_str_cut(list, ',', &list), word)) {
            return true;
        }
    }
    return false;
}

/* The value after `name` in a file of "name: value" lines. */
static gl_str field_of(gl_str text, const char *name)
{
    while (text.n > 0) {
        gl_str value, line = line_of(&text);

        if (gl_str_is(gl_str_cut(line, ':', &value), name)) {
            return gl_str_trim(value);
        }
    }
    return (gl_str){0};
}

/* ---- our control groups ---- */

/* The path in /proc/self/cgroup: a line "4:cpu,cpuacct:/a/b" for each hierarchy of version 1, and
 * "0::/a/b". "": we are in none. */
static gl_str path_of(gl_str groups, const char *controller)
{
    while (groups.n > 0) {
        gl_str controllers, path, line = line_of(&groups);

        (void)gl_str_cut(line, ':', &controllers); /* the number of the hierarchy */
        controllers = gl_str_cut(controllers, ':', &path);
        if (gl_str_starts(path, GL_S("/")) &&
            (controller == NULL ? controllers.n == 0 : is_listed(controllers, controller))) {
            return path;
        }
    }
    return (gl_str){0};
}

/* The path below a mount whose root is the group `mounted`. A container may see the host's name of
 * its group, while its mount begins at that group; a group outside the mount shows as its top. */
static gl_str below(gl_str path, gl_str mounted)
{
    gl_str dots = GL_S("/..");

    if (gl_str_is(mounted, "/")) {
        mounted.n = 0;
    }
    if (!gl_str_starts(path, mounted) || gl_str_starts(path, dots)) {
        return (gl_str){0};
    }
    path = (gl_str){.p = path.p + mounted.n, .n = path.n - mounted.n};
    return path.n > 1 && path.p[0] == '/' ? path : (gl_str){0};
}

static void set_group(struct machine *m, enum hierarchy h, gl_str path, gl_str mounted, gl_str at)
{
    if (path.n > 0 && m->top[h].n == 0 && gl_str_starts(at, GL_S("/"))) {
        m->top[h] = gl_str_dup(&m->a, at);
        m->folder[h] =
            gl_str_fmt(&m->a, "%.*s%.*s", GL_STR_ARG(at), GL_STR_ARG(below(path, mounted)));
    }
}

/* Lines of /proc/self/mountinfo: "36 35 98:0 ROOT MOUNTPOINT OPTIONS ... - TYPE SOURCE OPTIONS". */
static void find_groups(struct machine *m)
{
    gl_str groups = read_file(m, GL_S("/proc/self/cgroup"));
    gl_str mounts = read_file(m, GL_S("/proc/self/mountinfo"));

    while (mounts.n > 0) {
        gl_str root, at, type, line = line_of(&mounts);

        for (int i = 0; i < 3; i++) {
            (void)word_of(&line);
        }
        root = word_of(&line);
        at = word_of(&line);
        while (line.n > 0 && !gl_str_is(word_of(&line), "-")) {
        }
        type = word_of(&line);
        (void)word_of(&line); /* the source */
        if (gl_str_is(type, "cgroup2")) {
            set_group(m, V2, path_of(groups, NULL), root, at);
        }
        if (gl_str_is(type, "cgroup") && is_listed(line, "cpu")) {
            set_group(m, V1_CPU, path_of(groups, "cpu"), root, at);
        }
        if (gl_str_is(type, "cgroup") && is_listed(line, "memory")) {
            set_group(m, V1_MEMORY, path_of(groups, "memory"), root, at);
        }
    }
}

/* ---- their limits; UINT64_MAX: none ---- */

/* The time `quota` in each `period`, in thousandths of a core. */
static uint64_t share_of(gl_str quota, gl_str period)
{
    uint64_t time, of;

    if (!gl_str_u64(gl_str_trim(quota), &time) || !gl_str_u64(gl_str_trim(period), &of) ||
        of == 0 || time == 0 || time > UINT64_MAX / MILLI) {
        return UINT64_MAX; /* "max", "-1" */
    }
    return time * MILLI / of > 0 ? time * MILLI / of : 1;
}

static gl_str read_in(struct machine *m, gl_str folder, const char *name)
{
    return read_file(m, gl_str_fmt(&m->a, "%.*s/%s", GL_STR_ARG(folder), name));
}

static uint64_t cpu_limit(struct machine *m, enum hierarchy h, gl_str folder)
{
    if (h == V2) {
        gl_str period, quota = gl_str_cut(read_in(m, folder, "cpu.max"), ' ', &period);

        return share_of(quota, period);
    }
    return share_of(read_in(m, folder, "cpu.cfs_quota_us"),
                    read_in(m, folder, "cpu.cfs_period_us"));
}

static uint64_t memory_limit(struct machine *m, enum hierarchy h, gl_str folder)
{
    uint64_t bytes;
    gl_str text = read_in(m, folder, h == V2 ? "memory.max" : "memory.limit_in_bytes");

    return gl_str_u64(gl_str_trim(text), &bytes) && bytes > 0 ? bytes : UINT64_MAX;
}

/* The least limit of our group and those above it. */
static uint64_t least_limit(struct machine *m, enum hierarchy h,
                            uint64_t (*limit)(struct machine *m, enum hierarchy h, gl_str folder))
{
    uint64_t least = UINT64_MAX;
    gl_str at = m->folder[h];

    for (int i = 0; i < LEVELS_MAX && at.n > 0; i++) {
        uint64_t here = limit(m, h, at);

        least = here < least ? here : least;
        if (at.n <= m->top[h].n) {
            break;
        }
        do {
            at.n--;
        } while (at.n > m->top[h].n && at.p[at.n] != '/');
    }
    return least;
}

/* ---- the machine ---- */

/* "0-3,8" names five CPUs; 0: it cannot be read. */
static uint64_t count_cpus(gl_str list)
{
    uint64_t n = 0;

    while (list.n > 0) {
        gl_str end, begin = gl_str_cut(gl_str_cut(list, ',', &list), '-', &end);
        uint64_t first, last;

        if (!gl_str_u64(gl_str_trim(begin), &first)) {
            return 0;
        }
        last = first;
        if (end.n > 0 && !gl_str_u64(gl_str_trim(end), &last)) {
            return 0;
        }
        if (last < first || last >= CPUS_MAX) {
            return 0;
        }
        n += last - first + 1;
    }
    return n;
}

/* The CPUs that this process may run on: cpusets count, too. */
static uint64_t allowed_cpus(struct machine *m)
{
    gl_str status = read_file(m, GL_S("/proc/self/status"));
    uint64_t n = count_cpus(field_of(status, "Cpus_allowed_list"));
    cpu_set_t set;

    if (n == 0 && sched_getaffinity(0, sizeof(set), &set) == 0) { /* there is no /proc */
        n = (uint64_t)CPU_COUNT(&set);
    }
    return n;
}

static uint64_t total_memory(struct machine *m)
{
    gl_str kib = field_of(read_file(m, GL_S("/proc/meminfo")), "MemTotal");
    uint64_t n;

    return gl_str_u64(gl_str_cut(kib, ' ', &kib), &n) && n <= (uint64_t)INT64_MAX / 1024 ? n * 1024
                                                                                         : 0;
}

/* Some file systems report sizes that make no sense. */
static uint64_t disk_size(uint64_t blocks, uint64_t block_bytes)
{
    return block_bytes > 0 && blocks <= (uint64_t)INT64_MAX / block_bytes ? blocks * block_bytes
                                                                          : 0;
}

static void measure_disk(const char *folder, struct gl_capacity *ret)
{
    struct statvfs disk;

    if (statvfs(folder, &disk) == 0) {
        ret->disk_bytes = disk_size(disk.f_blocks, disk.f_frsize);
        ret->disk_free_bytes = disk_size(disk.f_bavail, disk.f_frsize); /* without root's reserve */
    }
    if (ret->disk_free_bytes > ret->disk_bytes) {
        ret->disk_free_bytes = ret->disk_bytes;
    }
}

static uint64_t least(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t n = a < b ? a : b;

    return n < c ? n : c;
}

void gl_machine_measure(const char *root, const char *folder, struct gl_capacity *ret)
{
    struct machine m = {.root = root};
    uint64_t cpus, memory;

    *ret = (struct gl_capacity){0};
    find_groups(&m);
    cpus = allowed_cpus(&m) * MILLI;
    ret->cores_milli =
        least(cpus, least_limit(&m, V2, cpu_limit), least_limit(&m, V1_CPU, cpu_limit));
    memory = total_memory(&m);
    ret->memory_bytes =
        least(memory, least_limit(&m, V2, memory_limit), least_limit(&m, V1_MEMORY, memory_limit));
    measure_disk(folder, ret);
    gl_arena_done(&m.a);
}
