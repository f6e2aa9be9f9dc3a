/* agents.h - runs the agents of a bundle: which agent handles which message, when, and what
 * follows.
 *
 * Terms:
 *   queued message  a message on its way: a record, and an entry in memory (mailbox.h)
 *   turn            one handling of a message by an agent
 *   agent unit      the step "@<agent>" through which the core runs an agent (model/bundle/agent.h)
 *   ledger step     a step of the bundle; one of its attempts is the work of an agent
 *
 * Rules:
 *   - A turn is one transaction: the agent's new state, the removal of the message, the messages
 *     the turn sends, and its effect on the ledger. A crash therefore never repeats or loses half
 *     of a turn.
 *   - An agent unit moves through READY, QUEUED and RUNNING like any other step, so slots, starts,
 *     lost attempts and reviews need no second implementation. Built-in agents (aggregator, router,
 *     sensor) need no process; the core runs their turns itself, in the step that finds the
 *     message.
 *   - The status of the ledger step decides what happens to a message: an ended step ignores it, a
 *     step that may not run yet defers it, a ready step begins an attempt with it, and a running
 *     attempt handles it.
 *
 * Order of calls: gl_agents_deliver() queues a message; gl_agents_dispatch() takes the next message
 * of each idle unit and begins a turn; a turn with a process continues with gl_agent_unit_start(),
 * the START and gl_agent_unit_on_result(), a built-in agent's with gl_builtin_agent_handle();
 * gl_apply_output() carries the result out; gl_agent_unit_ack() ends the turn. */
#ifndef GL_CORE_AGENTS_AGENTS_H
#define GL_CORE_AGENTS_AGENTS_H

#include "core/agents/mailbox.h"

struct gl_turn_end;

/* ---- reconciling (dispatch.c) ---- */

/* Sends the manifest's seed messages and begins a turn on every idle unit that has a message.
 * Returns what is left of the budget. */
uint32_t gl_agents_dispatch(struct gl_core *c, struct gl_job *j, uint32_t budget);
/* Sends `m` to agent `to`. `step` is the ledger step it is for; NULL: the agent's own step, if it
 * has one. `source` is the ledger step its sender works for, or NULL. */
void gl_agents_deliver(struct gl_core *c, struct gl_job *j, struct gl_message *m, uint32_t to,
                       const struct gl_step *step, const struct gl_step *source);
/* Reads an aggregator's counted messages from the store, because not all of them are in memory. */
void gl_agents_fetch_counted(struct gl_core *c, struct gl_step *unit);
/* Closes what `st`, a unit or a ledger step of an ending job, still has open, within the budget.
 * Returns what that cost. */
uint32_t gl_agents_wind_down(struct gl_core *c, struct gl_step *st, uint32_t budget);
/* Would gl_agents_dispatch() find anything to do? */
bool gl_agents_have_work(const struct gl_job *j);
/* Decides whether the job is complete, or triggers a step, once no message is on its way. */
void gl_agents_conclude(struct gl_core *c, struct gl_job *j);
/* The event RESOLVED: what a unit asked for has been read. */
void gl_agents_on_resolved(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
/* After a load, for a ready unit: asks again for the message of a built-in agent. False: the unit
 * is not one, or has no message. */
bool gl_agents_refetch(struct gl_core *c, struct gl_step *unit);
/* The job was paused and has been resumed. */
void gl_agents_resume(struct gl_core *c, struct gl_step *unit);
/* Drops the longest idle units from memory, down to GL_IDLE_AGENTS_MAX. */
void gl_agents_evict_idle(struct gl_core *c);

/* ---- agent units (agent_unit.c) ---- */

/* Queues the unit for slots, or delays it by the agent's startup delay. The message is chosen. */
void gl_agent_unit_start(struct gl_core *c, struct gl_step *st);
/* May it join the queue for slots? If not, `why` receives the reason. */
bool gl_agent_unit_may_queue(const struct gl_core *c, const struct gl_step *st, struct gl_why *why);
/* It will never get slots, or too many wait for them already. */
void gl_agent_unit_on_refused(struct gl_core *c, struct gl_step *st, gl_str why);
/* An executor has got its slots and its attempt begins. */
void gl_agent_unit_on_slots(struct gl_core *c, struct gl_step *st);
/* Adds the turn to the START of its attempt: the message, the state, the ledger's fields. */
void gl_agent_unit_fill_start(struct gl_core *c, struct gl_step *st, struct gl_effect *e);
/* Its attempt has ended by itself, not by a stop. */
void gl_agent_unit_on_result(struct gl_core *c, struct gl_step *st,
                             const struct gl_event_result *how, gl_str why);
/* A file of the bundle, or the message, is missing or damaged, so nothing has run. The job is
 * paused until a person resumes it; then the turn is attempted again. */
void gl_agent_unit_on_missing_files(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_agent_unit_on_bad_message(struct gl_core *c, struct gl_step *st, gl_str why);
/* The turn fails for a reason outside the worker: a person decided so, or its start was refused. */
void gl_agent_unit_fail(struct gl_core *c, struct gl_step *st, gl_str why);
/* A person decided that the work was done, with this output. */
void gl_agent_unit_mark_done(struct gl_core *c, struct gl_step *st, gl_str output);
/* Ends the turn, successful or not: the message is removed, or kept if the ledger may deliver it
 * again, and the unit is free for the next one. */
void gl_agent_unit_ack(struct gl_core *c, struct gl_step *st);
/* The turn has failed: retries it, sends the fallback message, or fails the step or the agent.
 * `how` may be NULL. */
void gl_agent_unit_on_failure(struct gl_core *c, struct gl_step *st,
                              const struct gl_event_result *how, gl_str why);
/* `why`, followed by the last line a failed worker wrote to stderr, without secrets (failure.c). */
gl_str gl_failure_text(struct gl_core *c, const struct gl_step *unit,
                       const struct gl_event_result *how, gl_str why);
/* Records in the job's error and result that `st`, a ledger step or a unit, failed it. */
void gl_failure_record(struct gl_core *c, struct gl_step *st, gl_str why);
/* Gives its slots back, if it has any, and logs that its lease is released. */
void gl_agent_unit_release(struct gl_core *c, struct gl_step *st);
/* The id of its current lease of slots. */
gl_str gl_agent_unit_lease(struct gl_core *c, const struct gl_step *st);
/* The name of its pool as manifests write it. */
gl_str gl_agent_unit_pool(const struct gl_step *st);
/* An agent without a ledger step has failed: applies its restart policy (agent_restart.c). */
void gl_agent_restart_apply(struct gl_core *c, struct gl_step *st, gl_str why);
/* Makes the unit idle: no message, no slots. */
void gl_agent_unit_clear(struct gl_core *c, struct gl_step *st);
/* The executor reports that the attempt is alive. */
void gl_agent_unit_on_beacon(struct gl_core *c, struct gl_step *st);
/* A line its worker wrote for the runtime: a beacon or an event. */
void gl_agent_unit_on_line(struct gl_core *c, struct gl_step *st, gl_str line);
/* Its wait for slots has timed out. */
void gl_agent_unit_on_timer(struct gl_core *c, struct gl_step *st);
/* Lists the unit for eviction if it has nothing to do. */
void gl_agent_unit_list_idle(struct gl_core *c, struct gl_step *st);

/* ---- ledger steps (agent_step.c) ---- */

/* Its trigger rule is satisfied: releases the messages it deferred, or sends it one. */
void gl_agent_step_on_ready(struct gl_core *c, struct gl_step *st);
/* Begins an attempt, with this message. */
void gl_agent_step_begin(struct gl_core *c, struct gl_step *st, struct gl_queued_message *q);
/* Makes this the message that a retry would deliver again. */
void gl_agent_step_set_message(struct gl_core *c, struct gl_step *st, struct gl_queued_message *q);
/* Its next attempt may begin: delivers the kept message again, before all others. */
void gl_agent_step_redeliver(struct gl_core *c, struct gl_step *st);
/* Did a patch create it, or may a patch remove its parents? */
bool gl_agent_step_is_managed(const struct gl_step *st);
/* Sends its agent a message from the ledger, of class command. */
void gl_agent_step_send(struct gl_core *c, struct gl_step *st, const char *type, gl_str body);
/* It has ended: stops its worker if it has one and drops the messages it has deferred. */
void gl_agent_step_on_ended(struct gl_core *c, struct gl_step *st);
/* Fails its current attempt and stops the worker. `why` is for people. */
void gl_agent_step_fail(struct gl_core *c, struct gl_step *st, gl_str why);
/* Its backoff is over, or the deadline of its attempt has passed. */
void gl_agent_step_on_timer(struct gl_core *c, struct gl_step *st);
/* Its worker has given a sign of life: extends the heartbeat deadline. */
void gl_agent_step_on_beacon(struct gl_core *c, struct gl_step *st, gl_ms timeout_ms);
/* Sends a ready step the message workflow_trigger, since no agent will send it one. */
void gl_agent_step_trigger(struct gl_core *c, struct gl_step *st);
/* The job was paused and has been resumed: its deadlines start again. */
void gl_agent_step_resume(struct gl_core *c, struct gl_step *st);
/* Its job has been loaded. */
void gl_agent_step_on_load(struct gl_core *c, struct gl_step *st);

/* Scatter: a step is replaced by instances, one for each item (scatter.c). */
uint32_t gl_scatter_make(struct gl_core *c, struct gl_step *st, uint32_t budget);
bool gl_scatter_has_more(const struct gl_step *st);
void gl_scatter_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload);

/* Graph patches: a running job gets a flow of its own (patch_apply.c). */
void gl_patch_apply_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload);
/* A step that a patch created has ended. */
void gl_patch_apply_on_step_ended(struct gl_core *c, struct gl_step *st);
/* Frees the list of applied patches. */
void gl_patch_apply_forget(struct gl_core *c, struct gl_job *j);
int gl_patch_apply_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* The job's own flow and its patches as text, and back. */
void gl_patch_apply_write(const struct gl_job *j, struct gl_buf *out);
int gl_patch_apply_read(struct gl_core *c, struct gl_job *j, gl_str text, struct gl_arena *a);

/* ---- the result of a turn (builtin_agents.c, outgoing.c, apply.c, agent_events.c) ---- */

/* A turn whose agent has done its part. */
struct gl_turn_end {
    struct gl_step *unit;
    const struct gl_agent_spec *agent;
    struct gl_step
        *step; /* the ledger step, if the attempt the turn began in still runs; or NULL */
    struct gl_message in; /* the message handled */
    gl_str state;         /* the agent's state, as of now */
};

/* Runs the whole turn of an aggregator, router or sensor. */
void gl_builtin_agent_handle(struct gl_core *c, struct gl_step *unit, gl_str text);
/* Will it pass the message on without looking at the body? Then the body need not be read. */
bool gl_builtin_agent_ignores_body(const struct gl_step *unit, const struct gl_queued_message *q);
/* Counts a message an aggregator has received, and remembers its sender. */
void gl_builtin_agent_count(struct gl_core *c, struct gl_step *unit, struct gl_queued_message *q);
/* Frees the senders that aggregators remember. */
void gl_builtin_agent_forget(struct gl_core *c, struct gl_job *j);
/* An aggregator's counted messages have been read: `result` is built from them. */
void gl_builtin_agent_on_counted(struct gl_core *c, struct gl_step *unit, gl_str text,
                                 gl_str result);
/* Sends a message along the agent's routes that match. `shape` gives type, body, class, headers. */
void gl_route_emit(struct gl_core *c, const struct gl_turn_end *t, const struct gl_message *shape);
/* Sends it to the agent named by shape->to. */
void gl_route_emit_to(struct gl_core *c, const struct gl_turn_end *t,
                      const struct gl_message *shape);
/* Logs an event that an agent reports, and applies it if it concerns a step or the flow. */
void gl_agent_events_take(struct gl_core *c, const struct gl_turn_end *t, gl_str type,
                          gl_str payload);
/* Fills in t->in and t->state from the unit's message and record. */
void gl_apply_read_message(struct gl_core *c, struct gl_turn_end *t);
/* complete_step, explicit or implied, and complete_run. */
void gl_apply_step(struct gl_core *c, const struct gl_turn_end *t, gl_str output, bool is_implied);
void gl_apply_run(struct gl_core *c, const struct gl_turn_end *t, gl_str output);
/* Carries out everything that a worker's stdout, or a module's answer, asks for. False: it cannot
 * be read, and nothing has been done. */
bool gl_apply_output(struct gl_core *c, struct gl_turn_end *t, const struct gl_event_result *how,
                     gl_str *ret_why);

/* `s`, safe between the quotes of a JSON string: '?' replaces what would need an escape. */
gl_str gl_agents_json_safe(struct gl_core *c, gl_str s);
/* Logs an event of an agent: {agent_id, payload}. */
void gl_agents_log(struct gl_core *c, const struct gl_step *unit, const char *type, gl_str reason,
                   gl_str payload);

/* ---- snapshots (snapshot_agents.c; core/snapshot.h) ---- */

struct gl_snapshot_line;

/* A job's lines go before those of its steps, its mailboxes after them, and the idle agents after
 * all jobs. They are restored in the same order. */
void gl_snapshot_agents_job(const struct gl_job *j, struct gl_buf *out);
void gl_snapshot_agents_mailboxes(const struct gl_job *j, struct gl_buf *out);
void gl_snapshot_agents_idle(const struct gl_core *c, struct gl_buf *out);
int gl_snapshot_agents_restore_job(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_mailbox(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_message(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_due(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_idle(struct gl_core *c, struct gl_snapshot_line *l);

/* ---- commands (external_send.c) ---- */

void gl_agents_on_send(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
void gl_agents_on_redrive(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);

#endif
