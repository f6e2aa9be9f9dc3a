/* recorder.h - the record port over files: DATA/recorder/NNNNNN.rec.
 *
 * The control thread only copies into a queue in memory. A second thread writes the queue to the
 * file and never syncs, so a crash of the process loses the last few hundredths of a second.
 * Each piece is followed by a line {"check":...} (port/recording.h).
 *
 * The total size is bounded: before a segment begins, the oldest segments are removed until all
 * fit. The remaining numbers are contiguous. A full queue ends the segment with a line
 * {"gap":...}; a write error ends the recording until the next segment, which begins with such a
 * line. The recorder never fails the node. */
#ifndef GL_OS_RECORDER_H
#define GL_OS_RECORDER_H

#include "base/err.h"
#include "port/recording.h"

enum {
    GL_RECORDER_SEGMENTS = 4,   /* usual size */
    GL_RECORDER_FILES_MAX = 64, /* small segments, of nodes that ran only briefly */
    GL_RECORDER_BYTES_MIN = 1 << 20,
};
#define GL_RECORDER_FOLDER "recorder"
#define GL_RECORDER_ENDING ".rec"

struct gl_recorder;

/* Creates `folder` if it is missing; `bytes_max` limits all segments together. */
int gl_recorder_open(struct gl_recorder **ret, const char *folder, uint64_t bytes_max,
                     struct gl_why *reterr_why);
struct gl_recording_port *gl_recorder_port(struct gl_recorder *r); /* NULL if `r` is NULL */
/* Writes the rest of the queue. Call it when the port is no longer used. NULL is fine. */
void gl_recorder_close(struct gl_recorder *r);

/* The numbers of the segments in a folder, oldest first. A missing folder has none. */
int gl_recorder_list(const char *folder, struct gl_arena *a, uint64_t **ret, size_t *ret_n,
                     struct gl_why *reterr_why);
const char *gl_recorder_path(struct gl_arena *a, const char *folder, uint64_t number);
#endif
