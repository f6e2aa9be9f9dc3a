/* Compiles `policies`: job type, recovery mode and restarts. */
#include "base/check.h"
#include "model/bundle/manifest_read.h"

enum { MINUTE_MS = 60000 };

/* A table like `restart` or `reschedule`; absent fields stay as they are. */
static void read_restart(struct gl_manifest *m, gl_jnode n, struct gl_restart *r)
{
    gl_ms longest = r->max_delay_ms;

    r->max_delay_ms = -1;
    gl_manifest_read(m, GL_TABLE_RESTART, n, r);
    if (r->max_delay_ms < 0) { /* not written */
        r->max_delay_ms = longest > r->delay_ms ? longest : r->delay_ms;
    }
}

/* Work moves to another machine only with its job, when its node is lost: nothing to limit. */
static void check_reschedule(struct gl_manifest *m, gl_jnode policies)
{
    gl_jnode n = gl_manifest_object(m, policies, "reschedule");
    struct gl_restart ignored = {0};
    bool unlimited;

    read_restart(m, n, &ignored);
    (void)gl_manifest_bool(m, n, "unlimited", &unlimited);
    if (gl_manifest_is_set(n)) {
        gl_manifest_note(m,
                         "%.*s has no effect: a job moves as a whole when its node is lost, as "
                         "often as needed",
                         GL_STR_ARG(gl_manifest_path(m, n)));
    }
}

void gl_manifest_restart(struct gl_manifest *m, gl_jnode policies, struct gl_restart *r)
{
    gl_jnode n = gl_manifest_object(m, policies, "restart");
    int64_t attempts;

    read_restart(m, n, r);
    if (gl_manifest_get(m, n, "attempts") == NULL &&
        gl_manifest_int(m, policies, "max_agent_restart_attempts", 0, GL_ATTEMPTS_MAX, &attempts)) {
        r->attempts = (uint32_t)attempts;
    }
    check_reschedule(m, policies);
}

static void usual_restart(const struct gl_policies *p, struct gl_restart *r)
{
    bool is_service = p->job_type == GL_TYPE_SERVICE;

    *r = (struct gl_restart){
        .attempts = 3,
        .interval_ms = (gl_ms)MINUTE_MS * (is_service ? 10 : 24 * 60),
        .delay_ms = 1000,
        .max_delay_ms = 30000,
        .delay_function = GL_DELAY_EXPONENTIAL,
        .waits = is_service && p->recovery_mode != GL_RECOVERY_CLUSTER_RECOVER,
    };
}

void gl_manifest_job_type(struct gl_manifest *m, gl_jnode obj, const char *key, void *into)
{
    struct gl_policies *p = into;
    gl_jnode n = gl_manifest_get(m, obj, key);
    gl_str word = gl_json_str(m->r.j, n, m->r.a);

    if (gl_str_is(word, "system") || gl_str_is(word, "sysbatch")) {
        gl_manifest_error(
            m, n, NULL, GL_REASON_UNSUPPORTED,
            "a job of the type `%.*s` would run on every machine of a cluster, which this "
            "release does not support; use batch or service",
            GL_STR_ARG(word));
        return;
    }
    (void)gl_manifest_word(m, obj, key, gl_job_type_words, &p->job_type);
}

/* The job type of the root has been read; that of the table overrides it. */
void gl_manifest_policies(struct gl_manifest *m)
{
    gl_jnode n = gl_manifest_object(m, m->root, "policies");
    struct gl_policies *p = &m->b->policies;

    gl_manifest_read(m, GL_TABLE_POLICIES, n, p);
    usual_restart(p, &p->restart);
    gl_manifest_restart(m, n, &p->restart);
    if (p->recovery_mode == GL_RECOVERY_MANUAL_RECOVER) {
        p->restart.attempts = 0; /* a person decides about every restart */
    }
    if (p->recovery_mode == GL_RECOVERY_CLUSTER_RECOVER) {
        gl_manifest_note(m, "policies.recovery_mode cluster_recover is treated as auto: another "
                            "node on the same store takes over the jobs of a lost node");
    }
}
