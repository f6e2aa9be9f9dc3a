/* sim_options.h - the faults of one history and their probabilities.
 *
 * Swarm testing: each seed draws its own subset of the faults and its own probabilities, so that
 * some histories have only torn commits, some only sleepers, and some everything at once. All of it
 * is printed before the history begins. This table is also the list of what Glia promises to
 * survive (docs/SIMULATION.md describes it). */
#ifndef GL_SIM_SIM_OPTIONS_H
#define GL_SIM_SIM_OPTIONS_H

#include "base/rng.h"
#include "base/str.h"

/* name, probability in percent that it is on at all, smallest and largest value when on, meaning */
#define SIM_OPTIONS(X)                                                                             \
    X(store_delay_ms, 90, 1, 40, "typical longest delay of a store request, ms")                   \
    X(store_slow, 50, 1000, 50000, "a store request takes up to 8 s, per million")                 \
    X(store_unavailable, 60, 1000, 60000, "a store request ends unavailable, per million")         \
    X(store_unknown_yes, 60, 1000, 60000, "a commit is applied but ends unknown, per million")     \
    X(store_unknown_no, 60, 1000, 60000, "a commit is not applied and ends unknown, per million")  \
    X(store_resolve_down, 50, 10000, 500000, "resolving an unknown commit fails, per million")     \
    X(store_outages, 40, 1, 4, "times the store is unavailable, each up to 20 s")                  \
    X(exec_delay_ms, 90, 1, 60, "typical longest delay of a message to or from the keeper, ms")    \
    X(exec_slow, 50, 1000, 50000, "such a message takes up to 10 s, per million")                  \
    X(exec_unavailable, 60, 1000, 80000,                                                           \
      "a keeper request is executed but answered unavailable, per million")                        \
    X(exec_dropped, 60, 1000, 80000,                                                               \
      "a keeper request is dropped and answered unavailable, per million")                         \
    X(exec_duplicate, 50, 10000, 300000, "an ended message arrives twice, per million")            \
    X(exec_silent, 50, 1000, 100000, "an ended message is lost until asked for, per million")      \
    X(exec_cycles, 50, 1, 4, "times a node's connection to the keeper breaks")                     \
    X(keeper_crashes, 50, 1, 8, "times the keeper dies with its children")                         \
    X(keeper_lenient, 30, 1, 1, "1: the keeper accepts nodes that have a successor")               \
    X(keeper_unsynced, 50, 10000, 500000, "an exit record is lost with the keeper, per million")   \
    X(process_fails, 90, 10000, 300000, "a process exits with a code other than 0, per million")   \
    X(process_breaks, 40, 1000, 50000, "a process cannot be executed, per million")                \
    X(process_slow, 70, 10000, 200000, "a process runs for up to 4 minutes, per million")          \
    X(process_deaf, 50, 10000, 500000, "a process ignores SIGTERM, per million")                   \
    X(process_mute, 40, 20000, 300000,                                                             \
      "a process with a heartbeat hangs without a beacon, per million")                            \
    X(process_noop, 30, 100000, 900000, "a step uses the noop driver, per million")                \
    X(zombies, 60, 1, 3, "times a node sleeps and wakes up beside its successor")                  \
    X(half_crashes, 60, 100000, 900000,                                                            \
      "a crash happens between two calls of one step, per million")                                \
    X(orderly_stops, 40, 50000, 400000,                                                            \
      "a node is stopped in order instead of killed, per million")                                 \
    X(clock_jumps, 50, 100000, 600000, "the wall clock jumps while the node is down, per million") \
    X(client_pauses, 60, 10000, 150000, "a request pauses a job, per million")                     \
    X(client_cancels, 60, 10000, 120000, "a request cancels a job, per million")                   \
    X(client_repeats, 60, 10000, 300000, "a submission is sent a second time, per million")        \
    X(steps_unsafe, 70, 50000, 500000, "a step is unsafe, per million")                            \
    X(steps_idempotent, 70, 50000, 500000, "a step is idempotent, per million")                    \
    X(steps_max, 100, 1, 40, "steps of the largest flow")                                          \
    X(flows_wide, 5, 257, 300, "steps of one very wide flow (0: none)")                            \
    X(slots_narrow, 50, 1, 3, "slots of the default pool (0: 8)")                                  \
    X(hot_narrow, 30, 4, 12, "jobs a node may hold in memory (0: its default limit)")              \
    X(steps_limited, 60, 100000, 900000, "a step has a concurrency key, per million")              \
    X(steps_rated, 50, 50000, 700000, "a step has a rate, per million")                            \
    X(flows_inputs, 60, 100000, 900000, "a flow has inputs, per million")                          \
    X(steps_when, 60, 20000, 600000, "a step has a condition, per million")                        \
    X(steps_foreach, 60, 20000, 500000, "a step iterates over a list, per million")                \
    X(steps_sleep, 40, 20000, 300000, "a step sleeps, per million")                                \
    X(steps_signal, 50, 20000, 400000, "a step waits for a signal, per million")                   \
    X(steps_approval, 40, 20000, 300000, "a step asks for approval, per million")                  \
    X(steps_refs, 50, 50000, 500000, "a command contains references, per million")                 \
    X(client_signals, 60, 20000, 500000, "a request is a signal, per million")                     \
    X(client_retries, 50, 20000, 400000, "a request retries a job, per million")                   \
    X(client_rivals, 40, 10000, 200000, "a request reuses another's run id, per million")          \
    X(keep_jobs, 40, 1, 12, "ended jobs a node keeps (0: all)")                                    \
    X(keep_ms, 30, 1000, 600000, "how long a node keeps ended jobs, ms (0: always)")               \
    X(store_full, 30, 1, 5, "times the store has no room, each up to 30 s")

/* Further faults, with several machines on one store. */
#define SIM_CLUSTER_OPTIONS(X)                                                                     \
    X(nodes_n, 100, 2, 20, "machines")                                                             \
    X(ttl_ms, 100, 2000, 10000, "TTL of a session, ms")                                            \
    X(orphan_grace_ms, 100, 1000, 12000, "orphan grace of a keeper, ms")                           \
    X(partitions, 60, 1, 6, "times one node is cut off from the store, each up to 3 ttl")          \
    X(outages, 40, 1, 3, "times no node reaches the store, each up to 4 ttl")                      \
    X(failovers, 60, 1, 6, "times another server becomes the primary")                             \
    X(failover_lag_ms, 80, 1, 3000,                                                                \
      "unconfirmed transactions younger than this are lost then, ms")                              \
    X(failover_jump_ms, 50, 1, 3000,                                                               \
      "the store's clock jumps then, forward or back, by up to, ms")                               \
    X(confirm_late, 40, 1000, 200000, "a confirmed commit ends unknown, per million")              \
    X(words_lost, 60, 10000, 900000, "a wake-up is lost, per million")                             \
    X(pauses, 60, 1, 6, "times a node stops for up to 3 ttl, then continues")                      \
    X(machine_crashes, 50, 1, 4, "times a machine dies: node, keeper and processes")               \
    X(losses, 40, 100000, 700000, "a machine whose node died stays away, per million")             \
    X(stacks, 20, 1, 1, "1: the machines belong to two stacks")                                    \
    X(guests, 40, 1, 3, "every, every 2nd, every 3rd machine only runs jobs begun there")          \
    X(restacks, 50, 50000, 500000, "with two stacks: a node begins in the other one, per million") \
    X(graces, 40, 2, 10, "factor of the orphan grace on every 2nd machine")                        \
    X(pools_differ, 50, 100000, 800000, "a machine has fewer or smaller pools, per million")       \
    X(crowds, 50, 300000, 1000000, "a request goes to the first node, per million")

/* Further options, with bundles (glia-sim --agents). */
#define SIM_AGENT_OPTIONS(X)                                                                    \
    X(body_bytes, 60, 200, 3000, "larger message bodies are stored in pieces (0: the default)") \
    X(bodies, 80, 10000, 300000, "a message has such a body, per million")                      \
    X(bodies_huge, 8, 1, 6, "messages from outside whose bodies have several pieces")           \
    X(messages_slow, 40, 50000, 600000, "a message takes up to 8 s to be read, per million")    \
    X(relays, 30, 200000, 800000, "an agent needs no process, per million (0: the default)")    \
    X(damages, 40, 1, 12, "records that are damaged or missing for a while")                    \
    X(blobs, 60, 1, 1, "1: a machine has a folder, and workers get such bodies as files")       \
    X(priorities, 40, 50000, 900000, "a message has a priority of its own, per million")

struct sim_agent_options {
#define X(name, on_pct, lo, hi, doc) uint32_t name;
    SIM_AGENT_OPTIONS(X)
#undef X
};

struct sim_cluster_options {
#define X(name, on_pct, lo, hi, doc) uint32_t name;
    SIM_CLUSTER_OPTIONS(X)
#undef X
};

struct sim_options {
#define X(name, on_pct, lo, hi, doc) uint32_t name;
    SIM_OPTIONS(X)
#undef X
};

/* Draws all of them. Larger values are rarer: the number of digits is drawn roughly uniformly. */
void sim_options_draw(struct sim_options *ret, struct gl_rng *r);
/* "name=value name=value ...", the ones that are on. */
void sim_options_print(const struct sim_options *o, struct gl_buf *out);
/* Sets one by name, for experiments; false: unknown name. */
bool sim_options_set(struct sim_options *o, gl_str name, uint32_t value);

/* The same for the options of several machines. */
void sim_cluster_options_draw(struct sim_cluster_options *ret, struct gl_rng *r);
void sim_cluster_options_print(const struct sim_cluster_options *o, struct gl_buf *out);
bool sim_cluster_options_set(struct sim_cluster_options *o, gl_str name, uint32_t value);

/* The same for those of bundles. */
void sim_agent_options_draw(struct sim_agent_options *ret, struct gl_rng *r);
void sim_agent_options_print(const struct sim_agent_options *o, struct gl_buf *out);
bool sim_agent_options_set(struct sim_agent_options *o, gl_str name, uint32_t value);

#endif
