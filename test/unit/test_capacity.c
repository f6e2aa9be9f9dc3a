/* What a node offers: its labels, and the capacity of its machine, measured in fake files of /proc
 * and /sys. */
#include "support/cmocka_all.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "model/capacity.h"
#include "model/labels.h"
#include "os/fs.h"
#include "os/machine.h"
#include "support/folder.h"
#include "support/golden.h"

struct bench {
    struct test_folder folder; /* holds proc and sys */
    struct gl_arena a;
    struct gl_buf text;
    struct gl_capacity c;
    struct gl_labels labels;
    struct gl_why why;
};

static int set_up(void **state)
{
    static struct bench b;

    memset(&b, 0, sizeof(b));
    test_folder_make(&b.folder);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    test_folder_remove(&b->folder);
    gl_arena_done(&b->a);
    gl_buf_done(&b->text);
    return 0;
}

/* ---- labels ---- */

static int parse(struct bench *b, const char *text)
{
    b->labels = (struct gl_labels){.n = 77};
    return gl_labels_parse(gl_str_of(text), &b->a, &b->labels, &b->why);
}

static void assert_json(struct bench *b, const char *json)
{
    struct gl_jw w;

    gl_buf_reset(&b->text);
    gl_jw_init(&w, &b->text);
    gl_labels_write(&b->labels, &w);
    assert_string_equal(gl_str_c(&b->a, gl_buf_view(&b->text)), json);
}

static void labels_are_read_as_written(void **state)
{
    struct bench *b = *state;

    assert_int_equal(parse(b, " zone = a, disk=ssd,example.org/rack-1=eu_1/7.b "), 0);
    assert_json(b, "{\"zone\":\"a\",\"disk\":\"ssd\",\"example.org/rack-1\":\"eu_1/7.b\"}");
    assert_int_equal(parse(b, ""), 0);
    assert_json(b, "{}");
}

static void assert_refuses(struct bench *b, const char *text)
{
    assert_int_equal(parse(b, text), GL_E_INVALID);
    assert_int_equal(b->labels.n, 77); /* nothing is returned */
    golden_say(text, gl_str_of(b->why.text));
}

static void other_labels_are_refused(void **state)
{
    struct bench *b = *state;

    assert_refuses(b, "zone");
    assert_refuses(b, "zone=");
    assert_refuses(b, "=a");
    assert_refuses(b, "zone=a,,disk=ssd");
    assert_refuses(b, "zone=a=b");
    assert_refuses(b, "zo ne=a");
    assert_refuses(b, "zone=\xc3\xa4");
    assert_refuses(b, "zone=a,disk=ssd,zone=a");
}

/* "k1=VALUE,k2=VALUE,..." */
static const char *many(struct bench *b, size_t n, gl_str value)
{
    gl_buf_reset(&b->text);
    for (size_t i = 1; i <= n; i++) {
        gl_buf_fmt(&b->text, "%sk%zu=%.*s", i > 1 ? "," : "", i, GL_STR_ARG(value));
    }
    return gl_str_c(&b->a, gl_buf_view(&b->text));
}

static void there_are_limits_to_labels(void **state)
{
    struct bench *b = *state;
    char longest[GL_LABEL_BYTES_MAX + 2];

    memset(longest, 'x', sizeof(longest));
    assert_int_equal(parse(b, many(b, GL_LABELS_MAX, (gl_str){longest, GL_LABEL_BYTES_MAX})), 0);
    assert_int_equal(b->labels.n, GL_LABELS_MAX);
    assert_refuses(b, many(b, GL_LABELS_MAX + 1, GL_S("v")));
    assert_refuses(b, many(b, 1, (gl_str){longest, GL_LABEL_BYTES_MAX + 1}));
    longest[GL_LABEL_BYTES_MAX + 1] = '\0';
    assert_refuses(b, gl_str_fmt(&b->a, "%s=v", longest).p);
}

static void every_sentence_reads_as_in_the_golden(void **state)
{
    (void)state;
    golden_check(GL_SOURCE_ROOT "/test/unit/capacity.golden");
}

/* ---- what another node has published ---- */

static bool reads_labels(struct bench *b, const char *json)
{
    struct gl_json j;

    assert_int_equal(gl_json_parse(&j, gl_str_of(json), 1 << 20, &b->a, &b->why), 0);
    return gl_labels_read(&j, gl_json_root(&j), &b->a, &b->labels);
}

static void published_labels_are_checked(void **state)
{
    struct bench *b = *state;

    assert_true(reads_labels(b, "{\"zone\":\"a\",\"rack\":\"\\u0037\"}"));
    assert_json(b, "{\"zone\":\"a\",\"rack\":\"7\"}");
    assert_true(reads_labels(b, "{}"));
    assert_int_equal(b->labels.n, 0);
    assert_false(reads_labels(b, "null"));
    assert_false(reads_labels(b, "[\"zone\"]"));
    assert_false(reads_labels(b, "{\"zone\":7}"));
    assert_false(reads_labels(b, "{\"zone\":\"\\u001b[2J\"}"));
    assert_false(reads_labels(b, "{\"\":\"a\"}"));
    assert_false(reads_labels(b, "{\"zone\":{\"a\":1}}"));
}

static bool reads_capacity(struct bench *b, const char *json)
{
    struct gl_json j;

    assert_int_equal(gl_json_parse(&j, gl_str_of(json), 1 << 20, &b->a, &b->why), 0);
    return gl_capacity_read(&j, gl_json_root(&j), &b->c);
}

static void assert_is(struct bench *b, uint64_t cores, uint64_t memory, uint64_t disk,
                      uint64_t disk_free)
{
    assert_int_equal(b->c.cores_milli, cores);
    assert_int_equal(b->c.memory_bytes, memory);
    assert_int_equal(b->c.disk_bytes, disk);
    assert_int_equal(b->c.disk_free_bytes, disk_free);
}

static void a_capacity_is_read_as_it_was_written(void **state)
{
    static const char text[] =
        "{\"cores\":1.5,\"memory_bytes\":1024,\"disk_bytes\":100,\"disk_free_bytes\":0}";
    struct bench *b = *state;
    struct gl_jw w;

    assert_true(reads_capacity(b, text));
    assert_is(b, 1500, 1024, 100, 0);
    gl_jw_init(&w, &b->text);
    gl_capacity_write(&b->c, &w);
    assert_string_equal(gl_str_c(&b->a, gl_buf_view(&b->text)), text);
    gl_buf_reset(&b->text);
    gl_jw_init(&w, &b->text);
    gl_capacity_write(&(struct gl_capacity){0}, &w);
    assert_string_equal(gl_str_c(&b->a, gl_buf_view(&b->text)),
                        "{\"cores\":null,\"memory_bytes\":null,\"disk_bytes\":null,"
                        "\"disk_free_bytes\":null}");
}

static void a_published_capacity_is_checked(void **state)
{
    struct bench *b = *state;

    assert_true(reads_capacity(b, "{\"cores\":-1,\"memory_bytes\":\"9\",\"disk_bytes\":5,"
                                  "\"disk_free_bytes\":6,\"gpus\":1}"));
    assert_is(b, 0, 0, 0, 0); /* more is free than there is */
    assert_true(reads_capacity(b, "{\"cores\":1e300,\"memory_bytes\":99999999999999999999}"));
    assert_is(b, 0, 0, 0, 0);
    assert_true(reads_capacity(b, "{\"cores\":2.00099e5}"));
    assert_is(b, 0, 0, 0, 0);
    assert_true(reads_capacity(b, "{\"cores\":99999999999}"));
    assert_is(b, 0, 0, 0, 0);
    assert_true(reads_capacity(b, "{\"cores\":0.1259}"));
    assert_is(b, 125, 0, 0, 0);
    assert_false(reads_capacity(b, "null"));
    assert_false(reads_capacity(b, "[1]"));
}

static void cores_are_written_without_needless_digits(void **state)
{
    char text[GL_CAPACITY_CORES_BYTES];

    (void)state;
    assert_true(gl_str_is(gl_capacity_cores_text(4000, text), "4"));
    assert_true(gl_str_is(gl_capacity_cores_text(10000, text), "10"));
    assert_true(gl_str_is(gl_capacity_cores_text(1500, text), "1.5"));
    assert_true(gl_str_is(gl_capacity_cores_text(1, text), "0.001"));
    assert_true(gl_str_is(gl_capacity_cores_text(UINT64_MAX, text), "18446744073709551.615"));
}

static void small_changes_of_a_disk_are_not_published(void **state)
{
    struct gl_capacity shown = {0};
    struct gl_capacity now = {.cores_milli = 1000, .disk_bytes = 1000, .disk_free_bytes = 160};

    (void)state;
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 160);
    now.disk_free_bytes = 150;
    now.cores_milli = 2000;
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 160);
    assert_int_equal(shown.cores_milli, 2000);
    now.disk_free_bytes = 149;
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 149);
    now.disk_free_bytes = 0; /* full */
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 0);
    now.disk_free_bytes = 1;
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 1);
    now = (struct gl_capacity){.disk_bytes = 1}; /* another disk */
    gl_capacity_update(&shown, &now);
    assert_int_equal(shown.disk_free_bytes, 0);
}

/* ---- measuring ---- */

static void put(struct bench *b, const char *path, const char *content)
{
    const char *whole = gl_str_fmt(&b->a, "%s%s", b->folder.path, path).p;
    const char *slash = strrchr(whole, '/');

    assert_int_equal(
        gl_fs_mkdirs(gl_str_fmt(&b->a, "%.*s", (int)(slash - whole), whole).p, &b->why), 0);
    assert_int_equal(gl_fs_write(whole, gl_str_of(content), &b->why), 0);
}

/* Eight CPUs, of which we may use five, and 16 GiB. */
static void put_machine(struct bench *b, const char *groups, const char *mounts)
{
    put(b, "/proc/self/status",
        "Name:\tglia\nCpus_allowed:\tcf\nCpus_allowed_list:\t0-3,7\nMems_allowed_list:\t0\n");
    put(b, "/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\n");
    put(b, "/proc/self/cgroup", groups);
    put(b, "/proc/self/mountinfo", mounts);
}

static void measure(struct bench *b)
{
    gl_machine_measure(b->folder.path, b->folder.path, &b->c);
}

static void assert_measures(struct bench *b, uint64_t cores, uint64_t memory)
{
    measure(b);
    assert_int_equal(b->c.cores_milli, cores);
    assert_int_equal(b->c.memory_bytes, memory);
}

static const uint64_t GIB = 1ULL << 30;

#define V2_MOUNT                                   \
    "24 1 0:21 / /proc rw,nosuid - proc proc rw\n" \
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void without_control_groups_the_machine_counts(void **state)
{
    struct bench *b = *state;

    put_machine(b, "", "");
    assert_measures(b, 5000, 16 * GIB);
    put_machine(b, "0::/\n", V2_MOUNT); /* the root group has no limits */
    assert_measures(b, 5000, 16 * GIB);
}

static void a_group_of_version_2_limits(void **state)
{
    struct bench *b = *state;

    put_machine(b, "0::/system.slice/glia.service\n", V2_MOUNT);
    put(b, "/sys/fs/cgroup/system.slice/glia.service/cpu.max", "150000 100000\n");
    put(b, "/sys/fs/cgroup/system.slice/glia.service/memory.max", "2147483648\n");
    assert_measures(b, 1500, 2 * GIB);
    put(b, "/sys/fs/cgroup/system.slice/glia.service/cpu.max", "max 100000\n");
    put(b, "/sys/fs/cgroup/system.slice/glia.service/memory.max", "max\n");
    assert_measures(b, 5000, 16 * GIB);
    put(b, "/sys/fs/cgroup/system.slice/glia.service/cpu.max", "1000000 100000\n");
    assert_measures(b, 5000, 16 * GIB); /* ten cores of five */
}

static void the_groups_above_limit_too(void **state)
{
    struct bench *b = *state;

    put_machine(b, "0::/a/b\n", V2_MOUNT);
    put(b, "/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put(b, "/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    put(b, "/sys/fs/cgroup/memory.max", "1073741824\n"); /* a container's own top */
    put(b, "/sys/fs/cgroup/a/memory.max", "4294967296\n");
    put(b, "/sys/fs/cgroup/a/b/memory.max", "8589934592\n");
    assert_measures(b, 500, GIB);
}

static void groups_of_version_1_limit(void **state)
{
    struct bench *b = *state;

    /* As in a container: the groups have the host's names, the mounts begin at them. */
    put_machine(b, "4:memory:/docker/01ab\n3:cpuacct,cpu:/docker/01ab/x\n1:name=systemd:/q\n0::/\n",
                "32 31 0:29 /docker/01ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup "
                "rw,cpu,cpuacct\n"
                "35 31 0:32 /docker/01ab /sys/fs/cgroup/memory ro master:7 - cgroup cgroup "
                "rw,memory\n");
    put(b, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
    put(b, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    put(b, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    assert_measures(b, 2500, GIB / 2);
    put(b, "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
    put(b, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_measures(b, 5000, 16 * GIB);
}

static void a_group_outside_the_mount_is_its_top(void **state)
{
    struct bench *b = *state;

    put_machine(b, "0::/../other\n", V2_MOUNT);
    put(b, "/sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_measures(b, 1000, 16 * GIB);
    put_machine(b, "4:memory:/elsewhere\n",
                "35 31 0:32 /docker/01 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put(b, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    put(b, "/sys/fs/cgroup/memory/elsewhere/memory.limit_in_bytes", "4096\n");
    assert_measures(b, 5000, GIB);
}

static void files_that_make_no_sense_limit_nothing(void **state)
{
    struct bench *b = *state;

    put_machine(b, "0\n::\n:::\n0::/a\n", "-\n - \n30 23 0:26 /\nx x x x x - cgroup2\n" V2_MOUNT);
    put(b, "/sys/fs/cgroup/a/cpu.max", "99999999999999999999 0\n");
    put(b, "/sys/fs/cgroup/a/memory.max", "-5\n");
    assert_measures(b, 5000, 16 * GIB);
    put(b, "/sys/fs/cgroup/a/cpu.max", "1 100000\n");
    put(b, "/sys/fs/cgroup/a/memory.max", "");
    assert_measures(b, 1, 16 * GIB); /* never none */
    put(b, "/proc/meminfo", "MemTotal: much\n");
    put(b, "/proc/self/status", "Cpus_allowed_list:\t3-1\n");
    put(b, "/sys/fs/cgroup/a/cpu.max", "");
    measure(b);
    assert_int_equal(b->c.memory_bytes, 0);
    assert_true(b->c.cores_milli > 0); /* those of this process */
}

static void the_machine_of_this_test_can_be_measured(void **state)
{
    struct bench *b = *state;

    gl_machine_measure("", b->folder.path, &b->c);
    assert_true(b->c.cores_milli > 0 && b->c.memory_bytes > 0 && b->c.disk_bytes > 0);
    assert_true(b->c.disk_free_bytes <= b->c.disk_bytes);
    gl_machine_measure("", "/nowhere/at/all", &b->c);
    assert_int_equal(b->c.disk_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(labels_are_read_as_written),
        TEST(other_labels_are_refused),
        TEST(there_are_limits_to_labels),
        TEST(published_labels_are_checked),
        TEST(a_capacity_is_read_as_it_was_written),
        TEST(a_published_capacity_is_checked),
        TEST(cores_are_written_without_needless_digits),
        TEST(small_changes_of_a_disk_are_not_published),
        TEST(without_control_groups_the_machine_counts),
        TEST(a_group_of_version_2_limits),
        TEST(the_groups_above_limit_too),
        TEST(groups_of_version_1_limit),
        TEST(a_group_outside_the_mount_is_its_top),
        TEST(files_that_make_no_sense_limit_nothing),
        TEST(the_machine_of_this_test_can_be_measured),
        cmocka_unit_test(every_sentence_reads_as_in_the_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
