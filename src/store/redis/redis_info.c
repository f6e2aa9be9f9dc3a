/* redis_info.c - parses INFO and CONFIG GET, and judges whether the server's settings can lose
 * data. The judgement is used twice: a BAD finding refuses the server unless the user allowed it,
 * and `glia store check` prints all findings. */
#include <stdio.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

static void copy(char *to, size_t bytes, gl_str from)
{
    (void)snprintf(to, bytes, "%.*s", GL_STR_ARG(from));
}

static uint64_t number(gl_str s)
{
    uint64_t n = 0;
    return gl_str_u64(s, &n) ? n : 0;
}

static void take_version(struct gl_redis_info *f, gl_str value)
{
    gl_str rest, major = gl_str_cut(value, '.', &rest);
    copy(f->version, sizeof(f->version), value);
    f->version_major = (unsigned)number(major);
    f->version_minor = (unsigned)number(gl_str_cut(rest, '.', &rest));
}

/* Fields we do not know are ignored. */
static void take_line(struct gl_redis_info *f, gl_str name, gl_str value)
{
    if (gl_str_is(name, "redis_version")) {
        take_version(f, value);
    } else if (gl_str_is(name, "run_id")) {
        copy(f->run_id, sizeof(f->run_id), value);
    } else if (gl_str_is(name, "role")) {
        f->replica = !gl_str_is(value, "master");
    } else if (gl_str_is(name, "loading")) {
        f->loading = !gl_str_is(value, "0");
    } else if (gl_str_is(name, "aof_enabled")) {
        f->aof = gl_str_is(value, "1");
    } else if (gl_str_is(name, "used_memory")) {
        f->memory = number(value);
    } else if (gl_str_is(name, "maxmemory")) {
        f->maxmemory = number(value);
    } else if (gl_str_is(name, "maxmemory_policy")) {
        copy(f->policy, sizeof(f->policy), value);
    } else if (gl_str_is(name, "connected_slaves")) {
        f->replicas = (unsigned)number(value);
    }
}

void gl_redis_info_parse(struct gl_redis_info *f, gl_str info)
{
    *f = (struct gl_redis_info){0};
    while (info.n > 0) {
        gl_str value, line = gl_str_trim(gl_str_cut(info, '\n', &info));
        gl_str name = gl_str_cut(line, ':', &value);
        take_line(f, name, value);
    }
    /* Without maxmemory the policy is never applied. */
    f->evicts = f->maxmemory > 0 && strcmp(f->policy, "noeviction") != 0;
}

/* CONFIG may be forbidden by an ACL; then the settings stay unknown and only a warning is
 * possible. */
void gl_redis_info_parse_config(struct gl_redis_info *f, const struct gl_redis_reply *reply)
{
    f->config_known = reply->type == GL_REDIS_ARRAY && reply->items_n > 0;
    for (size_t i = 0; i + 1 < reply->items_n && f->config_known; i += 2) {
        gl_str name = gl_redis_text(gl_redis_item(reply, i));
        gl_str value = gl_redis_text(gl_redis_item(reply, i + 1));
        if (gl_str_is(name, "appendfsync")) {
            copy(f->appendfsync, sizeof(f->appendfsync), value);
        } else if (gl_str_is(name, "min-replicas-to-write")) {
            f->min_replicas = (unsigned)number(value);
        } else if (gl_str_is(name, "no-appendfsync-on-rewrite")) {
            f->no_appendfsync_on_rewrite = gl_str_is(value, "yes");
        }
    }
}

int gl_redis_info_check(const struct gl_redis_info *f, struct gl_why *reterr_why)
{
    if (f->version_major < 7) {
        return gl_why(reterr_why, GL_E_VERSION,
                      "the Redis server is version %s; 7.0 or later is required",
                      f->version[0] != '\0' ? f->version : "(unknown)");
    }
    if (f->loading) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "the Redis server is still loading its data from disk");
    }
    if (f->replica) {
        return gl_why(reterr_why, GL_E_UNAVAILABLE,
                      "the Redis server is a replica: the store URL must name the primary, or "
                      "the sentinels that monitor it");
    }
    return 0;
}

static void diagnose_fsync(const struct gl_redis_info *f, struct gl_arena *a,
                           struct gl_findings *ret)
{
    if (!f->config_known) {
        gl_findings_add(ret, a, GL_FINDING_WARNING,
                        "the server's settings cannot be read (the ACL denies CONFIG GET): check "
                        "yourself that appendfsync is 'always', or accept that a power cut loses "
                        "the last second");
        return;
    }
    if (strcmp(f->appendfsync, "always") == 0) {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "every commit is synced to disk (appendfsync always)");
    } else if (strcmp(f->appendfsync, "everysec") == 0) {
        gl_findings_add(
            ret, a, GL_FINDING_WARNING,
            "writes are synced to disk once a second (appendfsync everysec): a power cut or "
            "a crash of the server's machine can lose up to two seconds of committed "
            "work, including the record that an unsafe step has begun; set appendfsync to "
            "'always', or have commits confirmed by replicas");
    } else {
        gl_findings_add(
            ret, a, GL_FINDING_WARNING,
            "writes are synced to disk when the system chooses (appendfsync %s): a power cut "
            "can lose half a minute of committed work; set appendfsync to 'always'",
            f->appendfsync);
    }
}

static void diagnose_replication(const struct gl_redis_info *f, struct gl_arena *a,
                                 struct gl_findings *ret)
{
    if (f->replicas == 0) {
        gl_findings_add(ret, a, GL_FINDING_GOOD,
                        "no replica is connected: a failover cannot lose commits");
        return;
    }
    if (!f->config_known || f->min_replicas > 0) {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "%u replica%s connected", f->replicas,
                        f->replicas == 1 ? " is" : "s are");
        return;
    }
    gl_findings_add(
        ret, a, GL_FINDING_WARNING,
        "%u replica%s connected, but min-replicas-to-write is 0: a primary that is cut "
        "off keeps accepting writes that a failover then discards, and unsafe steps may "
        "run twice; set min-replicas-to-write to 1 and min-replicas-max-lag to 10",
        f->replicas, f->replicas == 1 ? " is" : "s are");
}

/* When memory is full not even a session can be renewed, nor anything removed. So the warning comes
 * at 90 %. */
static void diagnose_memory(const struct gl_redis_info *f, struct gl_arena *a,
                            struct gl_findings *ret)
{
    if (f->evicts) {
        gl_findings_add(ret, a, GL_FINDING_BAD,
                        "the server evicts data when its memory is full (maxmemory %llu, "
                        "maxmemory-policy %s): set maxmemory-policy to 'noeviction'",
                        (unsigned long long)f->maxmemory, f->policy);
    } else if (f->maxmemory > 0 && f->memory / 9 >= f->maxmemory / 10) {
        gl_findings_add(ret, a, f->memory >= f->maxmemory ? GL_FINDING_BAD : GL_FINDING_WARNING,
                        "the server uses %llu of %llu bytes of memory (maxmemory): "
                        "when it is full all nodes stop, and nothing can be removed either; "
                        "raise maxmemory, then remove old jobs with 'glia store trim'",
                        (unsigned long long)f->memory, (unsigned long long)f->maxmemory);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "no data is evicted when memory is full");
    }
}

void gl_redis_info_diagnose(const struct gl_redis_info *f, struct gl_arena *a,
                            struct gl_findings *ret)
{
    struct gl_why why;
    if (gl_redis_info_check(f, &why) < 0) {
        gl_findings_add(ret, a, GL_FINDING_BAD, "%s", why.text);
    } else {
        gl_findings_add(ret, a, GL_FINDING_GOOD, "Redis %s", f->version);
    }
    diagnose_memory(f, a, ret);
    if (!f->aof) {
        gl_findings_add(ret, a, GL_FINDING_BAD,
                        "the server keeps no append-only file (appendonly no): a restart loses "
                        "everything since its last snapshot; set appendonly to 'yes'");
    } else {
        diagnose_fsync(f, a, ret);
    }
    diagnose_replication(f, a, ret);
}
