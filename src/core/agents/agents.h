/* agents.h - a bundle's agents: who handles which message when, and what comes of it.
 *
 * Handling a message is one transaction: the agent's new state, the message gone, the messages it
 * caused, and what the ledger makes of it. A unit (model/bundle/agent.h) goes READY, QUEUED,
 * RUNNING as every step does, so slots, starts, lost attempts and review are the same; relays need
 * no process and are done in the step of the core that finds them.
 *
 * Before a message is handled the ledger is asked (gl_agents_dispatch): a step that has ended takes
 * no more, one that may not run yet holds all of them in order, one that may run begins an attempt
 * with it, and a running attempt takes them as they come. */
#ifndef GL_CORE_AGENTS_AGENTS_H
#define GL_CORE_AGENTS_AGENTS_H

#include "core/agents/mailbox.h"

struct gl_turn_end;

/* ---- reconciling (dispatch.c) ---- */

/* Send the first messages, and let units begin what they can; returns what is left of the budget.
 */
uint32_t gl_agents_dispatch(struct gl_core *c, struct gl_job *j, uint32_t budget);
/* To an agent, for the step it is the agent of, or another of its steps. `source` is the step its
 * sender works for; NULL: none. */
void gl_agents_deliver(struct gl_core *c, struct gl_job *j, struct gl_message *m, uint32_t to,
                       const struct gl_step *step, const struct gl_step *source);
/* Not everything an aggregator has got is in memory: have it read. */
void gl_agents_fetch_counted(struct gl_core *c, struct gl_step *unit);
/* The job is ending: what this unit or step of the ledger has open is closed, as far as the
 * budget goes. Returns what that cost. */
uint32_t gl_agents_wind_down(struct gl_core *c, struct gl_step *st, uint32_t budget);
/* Something can be done at once. */
bool gl_agents_have_work(const struct gl_job *j);
/* Nothing is on its way any more: what that means for the job. */
void gl_agents_conclude(struct gl_core *c, struct gl_job *j);
/* What was read for a unit. */
void gl_agents_on_resolved(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
/* After loading a ready unit: a relay's message has to be read again. */
bool gl_agents_refetch(struct gl_core *c, struct gl_step *unit);
/* Its job was held, and goes on. */
void gl_agents_resume(struct gl_core *c, struct gl_step *unit);
/* Drop what is idle and old from memory. */
void gl_agents_evict_idle(struct gl_core *c);

/* ---- units (agent_unit.c) ---- */

/* A message is about to be handled by a process or a module: fill in what its START needs. */
void gl_agent_unit_start(struct gl_core *c, struct gl_step *st);
/* May it join the queue for slots? Else the reason goes into `why`. */
bool gl_agent_unit_may_queue(const struct gl_core *c, const struct gl_step *st, struct gl_why *why);
/* There will never be slots for it, or too many wait for them. */
void gl_agent_unit_on_refused(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_agent_unit_on_slots(struct gl_core *c, struct gl_step *st);
void gl_agent_unit_fill_start(struct gl_core *c, struct gl_step *st, struct gl_effect *e);
/* The executor's result, unless it was stopped. */
void gl_agent_unit_on_result(struct gl_core *c, struct gl_step *st,
                             const struct gl_event_result *how, gl_str why);
/* A file of the bundle is gone or damaged, or its message is, so nothing has run: the job is held
 * until a person resumes it, and then it is tried again. */
void gl_agent_unit_on_missing_files(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_agent_unit_on_bad_message(struct gl_core *c, struct gl_step *st, gl_str why);
/* It cannot be handled, for a reason that is not the worker's: a person, a start that is refused.
 */
void gl_agent_unit_fail(struct gl_core *c, struct gl_step *st, gl_str why);
/* A person says it was done, with this output. */
void gl_agent_unit_mark_done(struct gl_core *c, struct gl_step *st, gl_str output);
/* Its message has been handled, well or not; `st` goes on with the next. */
void gl_agent_unit_ack(struct gl_core *c, struct gl_step *st);
/* Tries again, falls back, or fails the step or the agent. `ev` may be NULL. */
void gl_agent_unit_on_failure(struct gl_core *c, struct gl_step *st,
                              const struct gl_event_result *how, gl_str why);
/* What a worker that failed said last, behind `why`; without secrets (failure.c). */
gl_str gl_failure_text(struct gl_core *c, const struct gl_step *unit,
                       const struct gl_event_result *how, gl_str why);
/* `st`, a step of the ledger or a unit, fails its job: the job's error and result say why. */
void gl_failure_record(struct gl_core *c, struct gl_step *st, gl_str why);
/* Its slots are free from here on, if it has any, and its lease is told to be over. */
void gl_agent_unit_release(struct gl_core *c, struct gl_step *st);
/* The lease of its current attempt. */
gl_str gl_agent_unit_lease(struct gl_core *c, const struct gl_step *st);
/* Its pool by the name its users know. */
gl_str gl_agent_unit_pool(const struct gl_step *st);
/* An agent that is no step's has failed (agent_restart.c). */
void gl_agent_restart_apply(struct gl_core *c, struct gl_step *st, gl_str why);
/* Without a message again. */
void gl_agent_unit_clear(struct gl_core *c, struct gl_step *st);
void gl_agent_unit_on_beacon(struct gl_core *c, struct gl_step *st);
void gl_agent_unit_on_line(struct gl_core *c, struct gl_step *st, gl_str line);
/* It has waited too long for its slots. */
void gl_agent_unit_on_timer(struct gl_core *c, struct gl_step *st);
/* A transaction of ours has committed or the unit was loaded: nothing to do with it now? */
void gl_agent_unit_list_idle(struct gl_core *c, struct gl_step *st);

/* ---- the ledger's side (agent_step.c) ---- */

/* Its rule is satisfied: messages that waited are handed over, or the ledger sends its own. */
void gl_agent_step_on_ready(struct gl_core *c, struct gl_step *st);
void gl_agent_step_begin(struct gl_core *c, struct gl_step *st, struct gl_letter *l);
void gl_agent_step_set_message(struct gl_core *c, struct gl_step *st, struct gl_letter *l);
void gl_agent_step_redeliver(struct gl_core *c, struct gl_step *st);
/* A patch made it, or may take its parents away. */
bool gl_agent_step_is_managed(const struct gl_step *st);
void gl_agent_step_send(struct gl_core *c, struct gl_step *st, const char *type, gl_str body);
/* It has ended: nothing of it is needed any more. */
void gl_agent_step_on_ended(struct gl_core *c, struct gl_step *st);
/* Its current attempt has failed: `why` is for people; the worker that does it is stopped. */
void gl_agent_step_fail(struct gl_core *c, struct gl_step *st, gl_str why);
void gl_agent_step_on_timer(struct gl_core *c, struct gl_step *st);
/* Its worker was heard of. */
void gl_agent_step_on_beacon(struct gl_core *c, struct gl_step *st, gl_ms timeout_ms);
/* The ledger sends its own message to a step that is ready. */
void gl_agent_step_trigger(struct gl_core *c, struct gl_step *st);
/* Its job was held, and goes on: time did not count. */
void gl_agent_step_resume(struct gl_core *c, struct gl_step *st);
/* A node has it in memory again. */
void gl_agent_step_on_load(struct gl_core *c, struct gl_step *st);
/* Instances of a step that a scatter has multiplied (scatter.c). */
uint32_t gl_scatter_make(struct gl_core *c, struct gl_step *st, uint32_t budget);
bool gl_scatter_has_more(const struct gl_step *st);
void gl_scatter_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload);
/* A graph patch (patch_apply.c). */
void gl_patch_apply_on_event(struct gl_core *c, const struct gl_turn_end *t, gl_str payload);
/* A step that a patch has made has ended. */
void gl_patch_apply_on_step_ended(struct gl_core *c, struct gl_step *st);
void gl_patch_apply_forget(struct gl_core *c, struct gl_job *j);
int gl_patch_apply_restore(struct gl_core *c, struct gl_job *j, const struct gl_event_record *rec);
/* Its own flow as text, and back. */
void gl_patch_apply_write(const struct gl_job *j, struct gl_buf *out);
int gl_patch_apply_read(struct gl_core *c, struct gl_job *j, gl_str text, struct gl_arena *a);

/* ---- what an agent does (builtin_agents.c, apply.c, agent_events.c) ---- */

struct gl_turn_end {
    struct gl_step *unit;
    const struct gl_agent_spec *agent;
    struct gl_step *step; /* of the ledger, with the attempt it works for; NULL: none */
    struct gl_message in; /* what was handled */
    gl_str state;         /* of the agent, as it is now */
};

void gl_builtin_agent_handle(struct gl_core *c, struct gl_step *unit, gl_str text);
/* It passes the message on without a look at its body, which need not be read. */
bool gl_builtin_agent_ignores_body(const struct gl_step *unit, const struct gl_letter *l);
/* An aggregator has got it. */
void gl_builtin_agent_count(struct gl_core *c, struct gl_step *unit, struct gl_letter *l);
void gl_builtin_agent_forget(struct gl_core *c, struct gl_job *j);
void gl_builtin_agent_on_counted(struct gl_core *c, struct gl_step *unit, gl_str text,
                                 gl_str result);
/* A message to whoever the agent's routes name. `shape` says more of it (class, headers, ...). */
void gl_route_emit(struct gl_core *c, const struct gl_turn_end *t, const struct gl_message *shape);
/* To one agent, by name. */
void gl_route_emit_to(struct gl_core *c, const struct gl_turn_end *t,
                      const struct gl_message *shape);
/* Something an agent says about itself, its step or the flow. */
void gl_agent_events_take(struct gl_core *c, const struct gl_turn_end *t, gl_str type,
                          gl_str payload);
/* What the unit handles. */
void gl_apply_read_message(struct gl_core *c, struct gl_turn_end *t);
/* complete_step and complete_run. */
void gl_apply_step(struct gl_core *c, const struct gl_turn_end *t, gl_str output, bool is_implied);
void gl_apply_run(struct gl_core *c, const struct gl_turn_end *t, gl_str output);
/* All that a structured document, or a worker's stdout, asks for. false: it cannot be read. */
bool gl_apply_output(struct gl_core *c, struct gl_turn_end *t, const struct gl_event_result *how,
                     gl_str *ret_why);

/* Fit to stand between quotes in JSON as it is: what would not is replaced. */
gl_str gl_agents_json_safe(struct gl_core *c, gl_str s);
/* Log an event of an agent: {agent_id, payload}. */
void gl_agents_log(struct gl_core *c, const struct gl_step *unit, const char *type, gl_str reason,
                   gl_str payload);

/* ---- snapshots (snapshot_agents.c; core/snapshot.h) ---- */

struct gl_snapshot_line;

void gl_snapshot_agents_job(const struct gl_job *j, struct gl_buf *out); /* before its steps */
void gl_snapshot_agents_mailboxes(const struct gl_job *j, struct gl_buf *out); /* behind them */
void gl_snapshot_agents_idle(const struct gl_core *c, struct gl_buf *out);     /* behind all jobs */
int gl_snapshot_agents_restore_job(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_mailbox(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_letter(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_due(struct gl_core *c, struct gl_snapshot_line *l);
int gl_snapshot_agents_restore_idle(struct gl_core *c, struct gl_snapshot_line *l);

/* ---- commands ---- */

void gl_agents_on_send(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);
void gl_agents_on_redrive(struct gl_core *c, struct gl_job *j, const struct gl_event *ev);

#endif
