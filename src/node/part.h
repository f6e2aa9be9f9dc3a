/* part.h - what a running node consists of, besides its core.
 *
 * Each part is a file (or a few) of this room with a row in the table of node.c, and memory that
 * nobody else looks into: node->parts[its number]. The node calls, for all parts alike,
 *
 *     init       when it is made, in the order of the table; `bytes` of zeroed memory are there.
 *                Ports and configuration can be read, the core is not there yet
 *     due        whenever it is armed: when does the part want to do something by itself?
 *     on_time    when its alarm has gone off, whether this part is due or not
 *     stop       once, when it begins to stop: nothing new is begun from here on
 *     is_busy    before it has stopped: does the part wait for something that is no call of a port?
 *                Those are counted in node->outstanding
 *     measure    for /metrics: the part's own figures, whole lines
 *     done       when it is freed, stopped or not; chains (chain.h) have gone before, no port calls
 *                back any more. The memory itself is given back afterwards
 *
 * Each of them may be NULL. */
#ifndef GL_NODE_PART_H
#define GL_NODE_PART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "base/when.h"

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
    GL_PART_LIVE,
    GL_PART_FEED,
    GL_PARTS
};

struct gl_node_part {
    size_t bytes; /* of its memory */
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
    gl_live_part, gl_feed_part;

#endif
