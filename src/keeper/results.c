#include "keeper/results.h"

#include "base/check.h"
#include "keeper/cgroup.h"
#include "keeper/proctree.h"
#include "keeper/rundir.h"
#include "keeper/workdir.h"

enum {
    JOURNAL_BYTES_SMALL =
        1 << 20, /* a journal without live records is emptied above this size ... */
    JOURNAL_BYTES_LARGE =
        4 << 20, /* ... any other is rewritten above this, when less than half of it is live */
    JOURNAL_RETRY_MS = 500,
};

/* ---- the journal ---- */

/* Ends in the new file count once it is synced, like any other record. */
static void rewrite_journal(struct gl_keeper *k)
{
    GL_CLEANUP(gl_buf_done) struct gl_buf content = {0};
    struct gl_attempt *a;
    struct gl_why why;

    GL_ASSERT(k->journal.syncing == 0);
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        bool ended = a->state == GL_ATTEMPT_ENDED || a->state == GL_ATTEMPT_ENDING;
        struct gl_keeper_msg m = ended ? gl_attempt_ended(a) : gl_attempt_begun(k, a);
        gl_keeper_add_record(&m, &content);
    }
    if (gl_journal_replace(&k->journal, gl_buf_view(&content), &why) < 0) {
        gl_keeper_log("%s; keeping the old journal", why.text);
        return;
    }
    for (struct gl_link *l = k->ending.next; l != &k->ending; l = l->next) {
        GL_CONTAINER(l, struct gl_attempt, link)->journal_at = k->journal.bytes;
    }
}

/* Rewrite the journal when most of it no longer matters; cut it off when nothing does. */
static void tidy_journal(struct gl_keeper *k)
{
    uint64_t live = k->result_bytes + k->running_n * GL_ATTEMPT_BYTES;

    GL_ASSERT(k->journal.syncing == 0);
    if (gl_map_count(&k->attempts) == 0) {
        if (k->journal.bytes > JOURNAL_BYTES_SMALL) {
            gl_journal_clear(&k->journal);
        }
    } else if (k->journal.bytes > JOURNAL_BYTES_LARGE && live < k->journal.bytes / 2) {
        rewrite_journal(k);
    }
}

static void on_retry(struct gl_keeper *k, struct gl_timer *t)
{
    (void)k; /* every turn flushes; the timer only causes a turn */
    (void)t;
}

/* Log once per outage, not once per retry. */
static void on_journal_error(struct gl_keeper *k, const struct gl_why *why)
{
    if (k->retry.fire == NULL) {
        gl_keeper_log("%s; retrying", why->text);
    }
    k->retry.fire = on_retry;
    gl_keeper_set_timer(k, &k->retry, gl_keeper_after(k, JOURNAL_RETRY_MS));
    GL_ASSERT(gl_heap_has(&k->retry.item));
}

static void on_journal_ok(struct gl_keeper *k)
{
    k->retry.fire = NULL;
    gl_keeper_clear_timer(k, &k->retry);
    GL_ASSERT(!gl_heap_has(&k->retry.item));
}

/* Ends that are now on disk count. */
static void take_synced(struct gl_keeper *k)
{
    GL_ASSERT(k->journal.synced <= k->journal.bytes);
    while (!gl_list_empty(&k->ending)) {
        struct gl_attempt *a = GL_CONTAINER(gl_list_first(&k->ending), struct gl_attempt, link);
        if (a->journal_at == 0 || a->journal_at > k->journal.synced) {
            break;
        }
        gl_attempt_move(k, a, GL_ATTEMPT_ENDED);
    }
}

void gl_results_synced(struct gl_keeper *k)
{
    struct gl_why why;
    if (gl_journal_sync_done(&k->journal, &why) < 0) {
        on_journal_error(k, &why);
    } else {
        on_journal_ok(k);
    }
    take_synced(k);
}

void gl_results_flush(struct gl_keeper *k)
{
    struct gl_why why;
    for (struct gl_link *l = k->ending.next; l != &k->ending; l = l->next) {
        struct gl_attempt *a = GL_CONTAINER(l, struct gl_attempt, link);
        if (a->journal_at == 0) {
            struct gl_keeper_msg m = gl_attempt_ended(a);
            a->journal_at = gl_journal_add(&k->journal, &m);
        }
    }
    if (gl_heap_has(&k->retry.item)) {
        return; /* the disk has just failed */
    }
    if (k->journal.syncing == 0) {
        tidy_journal(k);
    }
    if (gl_journal_flush(&k->journal, &why) < 0) {
        on_journal_error(k, &why);
    } else if (k->journal.syncing == 0) {
        on_journal_ok(k);
    }
    take_synced(k);
}

/* ---- what an earlier keeper wrote ---- */

static void replay_begun(struct gl_keeper *k, const struct gl_keeper_msg *m)
{
    struct gl_attempt *a = gl_attempt_new(k, &m->start.key, m->start.token, GL_ATTEMPT_RUNNING);

    GL_ASSERT(m->type == GL_KEEPER_BEGUN);
    a->worker = m->start.is_worker ? gl_worker_lines_new(a, 0) : NULL;
    if (gl_str_is(m->boot, k->boot)) { /* else the reboot ended it */
        a->proc.pid = (pid_t)m->pid;
        a->ticks_min = m->ticks_min;
        a->ticks_max = m->ticks_max;
    }
}

static void replay_ended(struct gl_keeper *k, const struct gl_keeper_msg *m)
{
    struct gl_attempt *a = gl_attempt_new(k, &m->start.key, m->start.token, GL_ATTEMPT_ENDED);

    GL_ASSERT(m->type == GL_KEEPER_ENDED);
    a->result = m->result;
    a->result.output = a->result.error = (gl_str){0};
    gl_buf_str(&a->output, m->result.output);
    gl_buf_str(&a->error, m->result.error);
    a->output_source = m->output_source;
    if (m->output_source == GL_KEEPER_FROM_WORKER) {
        a->worker = gl_worker_lines_new(a, 0);
        gl_worker_lines_restore(k, a->worker, &m->worker);
    }
    a->has_files = a->worker == NULL; /* unknown: assume there is something to remove */
    k->result_bytes += gl_attempt_bytes(a);
    GL_ASSERT(k->result_bytes >= GL_ATTEMPT_BYTES);
}

static void forget_replayed(struct gl_keeper *k, struct gl_attempt *a)
{
    GL_ASSERT(k->result_bytes >= gl_attempt_bytes(a) || a->state != GL_ATTEMPT_ENDED);
    if (a->state == GL_ATTEMPT_ENDED) {
        k->result_bytes -= gl_attempt_bytes(a);
    }
    gl_attempt_remove(k, a);
}

int gl_results_replay(void *keeper, const struct gl_keeper_msg *m)
{
    struct gl_keeper *k = keeper;
    if (gl_keeper_check_key(&m->start.key, NULL) < 0) {
        return 0;
    }
    gl_arena_reset(&k->scratch);
    (void)gl_attempt_raise_floor(k, &m->start.key, m->start.token,
                                 NULL); /* a lower token leaves the floor as it is */
    struct gl_attempt *a = gl_attempt_find(k, &m->start.key);
    if (a != NULL) {
        forget_replayed(k, a);
    }
    if (m->type == GL_KEEPER_BEGUN) {
        replay_begun(k, m);
    } else if (m->type == GL_KEEPER_ENDED) {
        replay_ended(k, m);
    }
    gl_attempt_free_removed(k);
    return 0;
}

void gl_results_replayed(struct gl_keeper *k)
{
    struct gl_attempt *a;
    bool lost = false;
    for (size_t i = 0; (a = gl_map_next(&k->attempts, &i)) != NULL;) {
        if (a->state == GL_ATTEMPT_RUNNING) {
            gl_proctree_end_process((uint64_t)a->proc.pid, a->ticks_min, a->ticks_max);
            gl_keeper_log("lost: %.*s", GL_STR_ARG(a->id));
            if (a->worker != NULL) {
                gl_workdir_remove(k, gl_rundir_path(&k->scratch, &a->key), false);
            }
            forget_replayed(k, a);
            lost = true;
        }
    }
    gl_attempt_free_removed(k);
    if (k->before.running && strcmp(k->before.boot, k->boot) == 0) {
        gl_cgroup_end(k->before.cgroup);
        size_t left = gl_proctree_end_marked(k->before.mark);
        if (left > 0) {
            gl_keeper_log("cannot kill %zu processes of an earlier keeper", left);
        }
    }
    GL_ASSERT(k->running_n == 0);
    if (lost || k->journal.has_hole) {
        rewrite_journal(k);
    }
}
