/* keeper_protocol.h - the messages between a node and its keeper, and the records of the keeper's
 * journal.
 *
 * A frame is a 32-bit length (little endian, without itself) and a message. A message is one byte
 * of type and fields, each with a tag and a length. Unknown tags are skipped and absent fields are
 * zero or empty, so a node and a keeper of different releases can talk. What must not be skipped
 * needs a version; the version is agreed in the first two messages, whose shape never changes:
 *
 *     node                                  keeper
 *     HELLO versions, incarnation     ->
 *                                     <-    WELCOME version, epoch, features | REFUSED status, text
 *     START ATTACH STOP LIST (req)    ->
 *                                     <-    INFO* REPLY (req)
 *     ACK PING                        ->
 *                                     <-    LINE* ENDED BEACON
 *
 * A journal record is a length, a checksum and a message (BEGUN, ENDED, ACK).
 *
 * Pure functions: bytes in, values out. Every length is checked against limits.h; a decoded message
 * borrows its bytes. */
#ifndef GL_PORT_KEEPER_PROTOCOL_H
#define GL_PORT_KEEPER_PROTOCOL_H

#include "base/arena.h"
#include "base/limits.h"
#include "port/exec.h"

enum {
    GL_KEEPER_FILES_MAX = 65536,  /* the open-file limit that the keeper asks for */
    GL_KEEPER_FILES_SPARE = 64,   /* reserved for its sockets and files */
    GL_KEEPER_RUNNING_MAX = 16384 /* attempts running at once */
};

/* The number of attempts a keeper with this open-file limit runs at once; each needs two
 * descriptors. Keeper and node share it, so that a node offers no slots its keeper would refuse. */
static inline size_t gl_keeper_attempts_max(uint64_t files)
{
    uint64_t most = files < GL_KEEPER_FILES_MAX ? files : GL_KEEPER_FILES_MAX;
    uint64_t room = most > 2 * GL_KEEPER_FILES_SPARE ? (most - GL_KEEPER_FILES_SPARE) / 2 : 1;

    return room < GL_KEEPER_RUNNING_MAX ? (size_t)room : GL_KEEPER_RUNNING_MAX;
}

enum {
    GL_KEEPER_VERSION_MIN = 1, /* the oldest this release supports */
    GL_KEEPER_VERSION_MAX = 4,
    GL_KEEPER_VERSION_SECRETS = 2,  /* from here on: secrets, and inputs above 1 MiB */
    GL_KEEPER_VERSION_WORKERS = 3,  /* workers, LINE, and frames above GL_KEEPER_FRAME_BYTES_OLD */
    GL_KEEPER_VERSION_SESSIONS = 4, /* needs_session and session_until: an older keeper takes any
                                       message of its node as a sign of life for all of its steps */
    GL_KEEPER_FRAME_BYTES_OLD = 4 << 20,
    GL_KEEPER_NOTE_BYTES = 128,  /* maximum length of the note after a stdout that was cut */
    GL_KEEPER_PREFIX_BYTES = 4,  /* of a frame: its length */
    GL_KEEPER_RECORD_BYTES = 12, /* before a record: length and checksum */
    GL_KEEPER_EPOCH_BYTES = 32,  /* an epoch, in hex */
};

#define GL_KEEPER_TYPES(X)                                                    \
    X(HELLO, 1)                                                               \
    X(WELCOME, 2)                                                             \
    X(REFUSED, 3) /* the connection is closed after it */                     \
    X(START, 4)                                                               \
    X(ATTACH, 5)                                                              \
    X(STOP, 6)                                                                \
    X(ACK, 7)                                                                 \
    X(LIST, 8)                                                                \
    X(PING, 9) /* the node is alive; sent only if there is an orphan grace */ \
    X(REPLY, 10)                                                              \
    X(INFO, 11)  /* one line of a list; a REPLY ends it */                    \
    X(ENDED, 12) /* an event, and the journal's record of it */               \
    X(BEACON, 13)                                                             \
    X(BEGUN, 14) /* journal: a process was started */                         \
    X(LINE, 15)  /* a line of a worker for the runtime */

enum gl_keeper_type {
#define X(name, value) GL_KEEPER_##name = value,
    GL_KEEPER_TYPES(X)
#undef X
};

/* What a keeper can do on its machine; sent in WELCOME. */
enum {
    GL_KEEPER_HAS_CGROUP =
        1 << 0, /* its processes are in a control group: none can hide from the next keeper */
    GL_KEEPER_HAS_CHILDREN =
        1 << 1, /* it sees orphaned grandchildren without a search (/proc/.../children) */
    GL_KEEPER_HAS_MARKS = 1 << 2, /* it can attribute orphans to their attempts */
};

/* Where the output of a result was found; the node checks it by different rules. */
enum gl_keeper_source {
    GL_KEEPER_NO_OUTPUT,
    GL_KEEPER_FROM_FILE,   /* $GLIA_OUTPUT: must be JSON */
    GL_KEEPER_FROM_LINE,   /* the last line of stdout: counts only if it is a JSON object */
    GL_KEEPER_FROM_WORKER, /* the output is `worker`, which the node turns into a document */
};

/* The output of a worker: raw bytes, without the lines for the runtime. */
struct gl_keeper_worker {
    gl_str out; /* the beginning; followed by a note if it was cut */
    gl_str err; /* the end */
    bool is_cut;
    uint64_t out_bytes; /* length of stdout before it was cut */
};

/* Any message; which fields are used depends on the type. */
struct gl_keeper_msg {
    enum gl_keeper_type type;
    uint64_t req; /* request number, chosen by the node; 0: none */

    uint64_t version_min,
        version_max;       /* HELLO; WELCOME: the agreed version, and the keeper's newest */
    uint64_t incarnation;  /* HELLO */
    gl_ms orphan_grace_ms; /* HELLO; 0: steps outlive a silent node */
    gl_ms clock_offset_ms; /* HELLO: the node's wall clock minus CLOCK_BOOTTIME, which both can read
                            */
    gl_ms session_until; /* PING, by the node's clock: keeps steps that need its session alive until
                            then; 0: unchanged */
    uint64_t features;   /* WELCOME */
    uint64_t pid;        /* WELCOME: the keeper's; BEGUN: the step's */

    /* START; key, token and epoch are used by other types too. Secrets are "NAME=value", already
     * read by the node; they are never in a journal. */
    struct gl_exec_start start;

    int status;  /* REPLY, REFUSED: 0 or GL_E_*. ACK: non-zero if the node considers the attempt
                    failed */
    gl_str text; /* REPLY, REFUSED: the sentence */
    int state;   /* REPLY to ATTACH, INFO: enum gl_exec_state */

    struct gl_exec_result result;   /* ENDED, REPLY to ATTACH; the output is not validated */
    int output_source;              /* enum gl_keeper_source */
    struct gl_keeper_worker worker; /* the same */
    gl_str line;                    /* SAID: with its prefix, without the newline */

    /* BEGUN: enough to identify the process, and no other. */
    gl_str boot;                   /* id of the machine's boot */
    uint64_t ticks_min, ticks_max; /* its start time, as in /proc/PID/stat, lies between */
    uint64_t mark;                 /* inherited by all its descendants */
};

/* ---- frames ---- */

/* Append one frame. The message must fit (asserted): validate a START with gl_keeper_check_start()
 * first. */
void gl_keeper_encode(const struct gl_keeper_msg *m, struct gl_buf *out);

/* Find the first frame in `bytes`. 0 with *ret_used = 0: more bytes are needed. GL_E_INVALID: this
 * cannot be the start of a frame. */
int gl_keeper_frame(gl_str bytes, gl_str *ret_message, size_t *ret_used, struct gl_why *reterr_why);

/* Decode a message. Lists are allocated in `a`; text is borrowed from `message`. */
int gl_keeper_decode(struct gl_keeper_msg *ret, gl_str message, struct gl_arena *a,
                     struct gl_why *reterr_why);

/* Remove from a message what a peer with this protocol version would not understand. */
void gl_keeper_lower(struct gl_keeper_msg *m, uint64_t version);

/* ---- records ---- */

void gl_keeper_add_record(const struct gl_keeper_msg *m, struct gl_buf *out);

/* Find the first record in `bytes`. GL_E_DAMAGED: there is no complete record here (the torn end of
 * a journal). */
int gl_keeper_record(gl_str bytes, gl_str *ret_message, size_t *ret_used);
/* The length that the record at the beginning of `bytes` claims, valid or damaged; 0: longer than
 * `bytes` or than any record. */
size_t gl_keeper_record_bytes(gl_str bytes);

/* ---- validation ---- */

/* Names become parts of paths: letters, digits and "_.-" (in an attempt also ":[]"), not beginning
 * with '.' or '-'. */
int gl_keeper_check_key(const struct gl_attempt_key *key, struct gl_why *reterr_why);
/* A relative path without empty components, "." and "..". */
int gl_keeper_check_file(gl_str name, struct gl_why *reterr_why);
/* A value that can be redacted from the log: 4 bytes to 64 KiB, no NUL. */
int gl_keeper_check_secret(gl_str name, gl_str value, struct gl_why *reterr_why);
/* Check everything about a start (with its secrets already read) that does not depend on the
 * machine. */
int gl_keeper_check_start(const struct gl_exec_start *s, struct gl_why *reterr_why);

/* The newest version both support, or 0. */
uint64_t gl_keeper_agree(uint64_t min_a, uint64_t max_a, uint64_t min_b, uint64_t max_b);

#endif
