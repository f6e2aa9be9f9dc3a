/* part.h - the parts of a running node, besides its core.
 *
 * Each part is a file (or a few) of this room with a row in the table of node.c, and memory that no
 * other file touches: node->parts[its number]. The node calls every part in the same way:
 *
 *    init       when the node is made, in the order of the table; `bytes` of zeroed memory are
 *               allocated. Ports and configuration can be read; the core does not exist yet
 *    due        whenever the node is armed: when does the part need to act next?
 *    on_time    when the alarm has gone off, whether this part is due or not
 *    stop       once, when the node begins to stop: start nothing new from here on
 *    is_busy    before the node counts as stopped: is the part waiting for anything besides calls
 *               of ports, which node->outstanding counts?
 *    measure    for /metrics: append the part's own metrics, as whole lines
 *    done       when the node is freed, stopped or not. All chains (chain.h) are gone, and no port
 *               calls back any more. The part's memory is freed afterwards
 *
 * Each of them may be NULL. */
#ifndef GL_NODE_PART_H
#define GL_NODE_PART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/times.h"

struct gl_node;

enum gl_node_part_number {
    GL_PART_SESSIONS,
    GL_PART_COMMITS,
    GL_PART_REQUESTS,
    GL_PART_STARTS,
    GL_PART_SUBMIT_WAIT,
    GL_PART_BLOBS,
    GL_PART_EXEC_EVENTS,
    GL_PART_REFUSALS,
    GL_PART_LOG_COPIES,
    GL_PART_LIVE,
    GL_PART_AGENT_INPUT,
    GL_PART_FEED,
    GL_PARTS
};

struct gl_node_part {
    size_t bytes; /* size of its memory */
    void (*init)(struct gl_node *n);
    gl_ms (*due)(const struct gl_node *n);
    void (*on_time)(struct gl_node *n);
    void (*stop)(struct gl_node *n);
    bool (*is_busy)(const struct gl_node *n);
    void (*measure)(struct gl_node *n, struct gl_buf *out);
    void (*done)(struct gl_node *n);
};

extern const struct gl_node_part *const gl_node_parts[GL_PARTS];

extern const struct gl_node_part gl_sessions_part, gl_commits_part, gl_requests_part,
    gl_starts_part, gl_submit_wait_part, gl_blobs_part, gl_exec_events_part, gl_refusals_part,
    gl_log_copies_part, gl_live_part, gl_agent_input_part, gl_feed_part;

#endif
