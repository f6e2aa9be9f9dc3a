#include "model/job.h"

#include "base/check.h"
#include "base/limits.h"

static_assert(GL_STEP_STATUS_COUNT <= 32, "a set of statuses fits 32 bits");

#define WORDS(list)  \
    {                \
        list(X) NULL \
    }

#define X(name, word, terminal) word,
const char *const gl_job_status_words[] = WORDS(GL_JOB_STATUSES);
const char *const gl_step_status_words[] = WORDS(GL_STEP_STATUSES);
#undef X
#define X(name, word) word,
const char *const gl_outcome_words[] = WORDS(GL_OUTCOMES);
const char *const gl_block_words[] = WORDS(GL_BLOCKS);
const char *const gl_stop_words[] = WORDS(GL_STOPS);
static const char *const verdict_words[] = WORDS(GL_VERDICTS);
static const char *const hold_words[] = WORDS(GL_HOLDS);
#undef X

#define S(name) GL_BIT(GL_STEP_##name)
#define STEP_ENDS (S(COMPLETED) | S(PARTIAL) | S(SKIPPED) | S(FAILED))

static const uint32_t step_moves[GL_STEP_STATUS_COUNT] = {
    [GL_STEP_PENDING] = S(READY) | S(SKIPPED),
    [GL_STEP_READY] = S(QUEUED) | S(BLOCKED) | S(WAITING) | STEP_ENDS,
    [GL_STEP_QUEUED] = S(RUNNING) | S(READY) | S(SKIPPED),
    [GL_STEP_RUNNING] = S(READY) | S(RETRY_WAIT) | S(BLOCKED) | STEP_ENDS,
    [GL_STEP_RETRY_WAIT] = S(READY) | S(SKIPPED) | S(PARTIAL) | S(FAILED),
    [GL_STEP_BLOCKED] = S(READY) | S(RETRY_WAIT) | STEP_ENDS,
    [GL_STEP_WAITING] = STEP_ENDS,
};

/* A unit of an agent: WAITING without a message; it never ends. */
static const uint32_t unit_moves[GL_STEP_STATUS_COUNT] = {
    [GL_STEP_PENDING] = S(READY) | S(WAITING) | S(RETRY_WAIT) | S(BLOCKED),
    [GL_STEP_READY] = S(QUEUED) | S(WAITING) | S(RETRY_WAIT) | S(BLOCKED),
    [GL_STEP_QUEUED] = S(RUNNING) | S(READY) | S(WAITING) | S(RETRY_WAIT) | S(BLOCKED),
    [GL_STEP_RUNNING] = S(READY) | S(RETRY_WAIT) | S(BLOCKED) | S(WAITING),
    [GL_STEP_RETRY_WAIT] = S(READY) | S(WAITING),
    [GL_STEP_BLOCKED] = S(READY) | S(RETRY_WAIT) | S(WAITING),
    [GL_STEP_WAITING] = S(READY) | S(RETRY_WAIT) | S(BLOCKED),
};

/* A step of a bundle's ledger: an attempt begins with a message. */
static const uint32_t bound_moves[GL_STEP_STATUS_COUNT] = {
    [GL_STEP_PENDING] = S(READY) | S(BLOCKED) | STEP_ENDS,
    [GL_STEP_READY] = S(RUNNING) | STEP_ENDS,
    [GL_STEP_RUNNING] = S(RETRY_WAIT) | S(WAITING) | STEP_ENDS,
    [GL_STEP_RETRY_WAIT] = S(READY) | STEP_ENDS,
    [GL_STEP_BLOCKED] = S(READY) | STEP_ENDS,
    [GL_STEP_WAITING] = S(READY) | STEP_ENDS,
};

#define J(name) GL_BIT(GL_JOB_##name)

static const uint32_t job_moves[GL_JOB_STATUS_COUNT] = {
    [GL_JOB_PENDING] = J(RUNNING),
    [GL_JOB_RUNNING] = J(PAUSING) | J(PAUSED) | J(CANCELLING) | J(COMPLETED) | J(FAILED),
    [GL_JOB_PAUSING] = J(RUNNING) | J(PAUSED) | J(CANCELLING) | J(COMPLETED) | J(FAILED),
    [GL_JOB_PAUSED] = J(RUNNING) | J(CANCELLING) | J(COMPLETED) | J(FAILED),
    [GL_JOB_CANCELLING] = J(CANCELLED),
};

bool gl_job_status_is_terminal(uint8_t status)
{
    return status >= GL_JOB_COMPLETED;
}

bool gl_step_status_is_terminal(uint8_t status)
{
    return status >= GL_STEP_COMPLETED;
}

bool gl_step_asks_a_person(const struct gl_step_record *r)
{
    return r->status == GL_STEP_BLOCKED &&
           (r->blocked_on == GL_BLOCK_REVIEW || r->blocked_on == GL_BLOCK_APPROVAL);
}

/* Detected by its reason (core/recovery/load.c), the only record of why the job is paused. */
bool gl_job_is_paused_for_damage(const struct gl_job_record *r)
{
    gl_str damaged = GL_S(" is damaged"), why = r->reason;

    return r->status == GL_JOB_PAUSED && r->hold == GL_HOLD_REVIEW &&
           ((gl_str_starts(why, GL_S("the record ")) && gl_str_ends(why, damaged)) ||
            gl_str_starts(why, GL_S("a record of it is missing")));
}

bool gl_step_may_move(uint8_t from, uint8_t to)
{
    GL_ASSERT(from < GL_STEP_STATUS_COUNT && to < GL_STEP_STATUS_COUNT);
    return (step_moves[from] & GL_BIT(to)) != 0;
}

bool gl_agent_unit_may_move(uint8_t from, uint8_t to)
{
    return (unit_moves[from] & GL_BIT(to)) != 0;
}

bool gl_agent_step_may_move(uint8_t from, uint8_t to)
{
    return (bound_moves[from] & GL_BIT(to)) != 0;
}

bool gl_job_may_move(uint8_t from, uint8_t to)
{
    GL_ASSERT(from < GL_JOB_STATUS_COUNT && to < GL_JOB_STATUS_COUNT);
    return (job_moves[from] & GL_BIT(to)) != 0;
}

#define JF(member, type, flags, doc) GL_FIELD(gl_job_record, member, type, flags, doc)
#define JE(member, words, flags, doc) GL_FIELD_ENUM(gl_job_record, member, words, flags, doc)

static const struct gl_field job_fields[] = {
    JF(job_id, STR, GL_FF_REQUIRED, "The job's id, a ULID."),
    JF(run_id, STR, GL_FF_REQUIRED, "The caller's name for the job; the job_id if none was given."),
    JF(name, STR, 0, "The name of its flow."),
    JF(flow, STR, GL_FF_REQUIRED, "SHA-256 of the compiled flow."),
    JE(status, gl_job_status_words, GL_FF_REQUIRED | GL_FF_ALWAYS, "The status of the job."),
    JE(verdict, verdict_words, 0, "How it will end once its last attempt has stopped."),
    JE(hold, hold_words, 0, "Who paused the job: a person, or steps that wait for review."),
    JF(is_strayed, BOOL, GL_FF_STORE_ONLY,
       "It was paused by a node other than the one that knows its attempts."),
    JF(reason, STR, 0, "Why it is paused, or why it ended."),
    JF(failed_step, STR, 0, "The step whose failure ended the job."),
    JF(stack, STR, 0, "Which stack of nodes may run it."),
    JF(env_scope, STR, 0, "The environment it belongs to."),
    JF(dedupe_key, STR, 0, "At most one live job has this key."),
    JF(request_key, STR, 0, "Names the submission: sending it again returns this job."),
    JF(submitted_at, TIME, 0, "When it was accepted."),
    JF(updated_at, TIME, 0, "When its record last changed."),
    JF(started_at, TIME, 0, "When its first attempt started."),
    JF(ended_at, TIME, 0, "When it became terminal."),
    JF(last_seq, I64, 0, "Number of its last event."),
    JF(wake, I64, GL_FF_ALWAYS | GL_FF_STORE_ONLY, "Its place in the index of due jobs."),
    JF(steps_n, U32, GL_FF_ALWAYS, "How many steps it has."),
    JF(completed_n, U32, 0, "How many have completed."),
    JF(partial_n, U32, 0, "How many ended with a failure that was handled."),
    JF(skipped_n, U32, 0, "How many were skipped."),
    JF(failed_n, U32, 0, "How many have failed."),
    JF(roots_spread, U32, GL_FF_STORE_ONLY, "How many steps without parents have been reached."),
    JF(items_n, U32, GL_FF_STORE_ONLY, "How many instances `foreach` has created so far."),
    JF(retry_of, STR, 0, "The ended job whose completed outputs it reuses."),
    JF(retry_from, STR, 0, "Nothing is reused from this step on."),
    JF(signals_n, I64, GL_FF_STORE_ONLY, "How many signals it has received."),
    JF(pools, STR, GL_FF_STORE_ONLY, "Which pools its steps need, and how many slots of each."),
    JF(pools_next, STR, GL_FF_STORE_ONLY, "Which of them its next owner must have."),
    JF(letters_n, U64, 0, "How many messages have been sent to its agents."),
    JF(waiting_n, U32, 0, "How many of them are waiting or being handled."),
    JF(dead_n, U32, 0, "How many could not be delivered."),
    JF(turns_n, U32, GL_FF_STORE_ONLY, "How often an agent has started to handle one."),
    JF(seeds_n, U32, GL_FF_STORE_ONLY, "How many of the first messages have been sent."),
    JF(graph_revision, U64, 0, "How often its flow has been changed."),
    JF(patches_n, U32, GL_FF_STORE_ONLY, "How many patches it has."),
    JF(result, RAW, 0, "What completed it."),
    JF(error, RAW, 0, "Why it failed, as an mn.error.v1 document."),
    JF(completion, RAW, GL_FF_STORE_ONLY, "The result that will complete it after its last steps."),
    JF(recovery_status, STR, 0, "What recovery did with it."),
    JF(recovery_requires_review, BOOL, 0, "A person must decide before it can continue."),
};

const struct gl_schema gl_job_schema = {
    .name = "job",
    .doc = "One submitted execution of a flow.",
    .bytes = sizeof(struct gl_job_record),
    .fields = job_fields,
    .fields_n = GL_COUNT(job_fields),
};

#define SF(member, type, flags, doc) GL_FIELD(gl_step_record, member, type, flags, doc)
#define SE(member, words, flags, doc) GL_FIELD_ENUM(gl_step_record, member, words, flags, doc)

static const struct gl_field step_fields[] = {
    SF(step_id, STR, GL_FF_REQUIRED | GL_FF_LENT, "Its name in the flow."),
    SE(status, gl_step_status_words, GL_FF_REQUIRED | GL_FF_ALWAYS, "The status of the step."),
    SE(terminal_outcome, gl_outcome_words, 0, "How it ended; a handled failure is `failed` here."),
    SE(blocked_on, gl_block_words, 0, "What a blocked step waits for."),
    SE(stopping, gl_stop_words, 0, "Why the running attempt has been asked to stop."),
    SF(attempt_count, U32, GL_FF_ALWAYS, "Attempts so far, also those that did not count."),
    SF(counted, U32, 0, "Attempts that `retry` counts."),
    SF(up_ended, U32, GL_FF_STORE_ONLY, "Parents that have ended."),
    SF(up_success, U32, GL_FF_STORE_ONLY, "Parents that succeeded."),
    SF(up_failed, U32, GL_FF_STORE_ONLY, "Parents that failed."),
    SF(up_accepted, U32, GL_FF_STORE_ONLY, "Parents whose outcome all_success accepts."),
    SF(spread, U32, GL_FF_STORE_ONLY, "Children that have been updated after the end."),
    SF(epoch, STR, GL_FF_STORE_ONLY, "The executor's epoch when the attempt was decided."),
    SF(seat, U32, GL_FF_STORE_ONLY, "Which seat of its concurrency key it has."),
    SF(node, STR, 0, "The node whose executor has the attempt."),
    SF(orphan_grace_ms, I64, GL_FF_STORE_ONLY,
       "How long that executor keeps the attempt without contact to its node."),
    SF(is_elsewhere, BOOL, GL_FF_STORE_ONLY, "Its attempt was offered to that node."),
    SF(is_given_up, BOOL, GL_FF_STORE_ONLY, "It fails when its lost attempt has ended."),
    SF(started_at, TIME, 0, "When its first attempt was decided."),
    SF(attempt_at, TIME, 0, "When its current or last attempt was decided."),
    SF(deadline_at, TIME, 0, "When the current attempt will be killed."),
    SF(retry_at, TIME, 0, "When the next attempt is due."),
    SF(ended_at, TIME, 0, "When it became terminal."),
    SF(lost_at_1, TIME, GL_FF_STORE_ONLY, "The latest loss of an attempt."),
    SF(lost_at_2, TIME, GL_FF_STORE_ONLY, "The one before it."),
    SF(lost_at_3, TIME, GL_FF_STORE_ONLY, "The one before that."),
    SF(exit_code, I64, 0, "Exit code of its last attempt (128 + n: killed by signal n)."),
    SF(terminal_reason, STR, 0, "Why it ended this way."),
    SF(last_error, STR, 0, "What went wrong in its last attempt, or why it waits."),
    SF(output, RAW, 0, "The output that its dependents get."),
    SF(output_bytes, U64, 0, "Size of an output that is left out: `output_ref` has it."),
    SF(decision, STR, 0, "What a person decided."),
    SF(decided_by, STR, 0, "Who decided."),
    SF(decided_at, TIME, 0, "When."),
    SF(gate, U32, GL_FF_STORE_ONLY, "What was decided before its first attempt."),
    SF(queued_at, TIME, 0, "When its current or last wait for slots began."),
    SF(limit_key, STR, 0, "Its `concurrency` key, references resolved."),
    SF(due_at, TIME, 0, "When a waiting step continues by itself, or times out."),
    SF(asked, STR, 0, "What a person is asked."),
    SF(choices, STR, 0, "What the person may decide, separated by commas."),
    SF(items_n, U32, 0, "foreach: how many items."),
    SF(items_at, U32, GL_FF_STORE_ONLY, "foreach: number of its first instance."),
    SF(items_made, U32, 0, "foreach: how many instances have been created."),
    SF(items_ended, U32, 0, "foreach: how many have ended."),
    SF(items_failed, U32, 0, "foreach: how many have failed."),
    SF(up_reused, U32, GL_FF_STORE_ONLY, "Parents that are unchanged from the earlier job."),
    SF(reused_from, STR, 0, "The job that completed it, if not this one."),
    SF(letter, U64, 0, "The message it handles, or would get again."),
    SF(processed, U64, 0, "Messages an agent has handled."),
    SF(tries, U32, 0, "How many immediate tries this message has had."),
    SF(keeps_slots, BOOL, 0, "It waits for its next try and keeps its slots until then."),
    SF(mail_attempt, U32, GL_FF_STORE_ONLY, "The attempt of the step it works for."),
    SF(more_needs, U32, GL_FF_STORE_ONLY, "Parents that a scatter has added."),
    SF(map_index, U32, 0, "Which item of a scatter it has."),
    SF(beacon_at, TIME, 0, "When its last beacon arrived."),
    SF(heartbeat_at, TIME, 0, "When its next beacon is due."),
    SF(policy_state, RAW, 0, "When the agent was restarted."),
    SF(waits_for, STR, GL_FF_STORE_ONLY, "The step its message is for."),
};

const struct gl_schema gl_step_schema = {
    .name = "step",
    .doc = "One step of a job.",
    .bytes = sizeof(struct gl_step_record),
    .fields = step_fields,
    .fields_n = GL_COUNT(step_fields),
};

gl_str gl_job_index(struct gl_arena *a, const char *name, gl_str stack, gl_str env_scope)
{
    if (stack.n == 0 && env_scope.n == 0) {
        return gl_str_dup(a, gl_str_of(name));
    }
    return gl_str_fmt(a, "%s/%.*s/%.*s", name, GL_STR_ARG(stack), GL_STR_ARG(env_scope));
}
