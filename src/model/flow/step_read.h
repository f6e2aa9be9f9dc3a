/* step_read.h - one step while it is being read: shared by the files that each read some of its
 * fields.
 *
 *   step_parse.c     the table of fields, and rules that involve several of them
 *   step_command.c   what it runs: sh, run, python, script, noop, files
 *   step_env.c       env, with secrets; cwd
 *   step_wait.c      what it waits for instead: sleep, until, signal, approval
 *   step_limit.c     whether, how often, how many at a time: when, foreach, concurrency, rate
 *   step_retry.c     retry
 *   step_refs.c      references in plain texts
 *   code_sh.c, code_python.c   references in programs */
#ifndef GL_MODEL_FLOW_STEP_READ_H
#define GL_MODEL_FLOW_STEP_READ_H

#include "model/flow/flow_read.h"
#include "model/text/ref.h"

struct gl_step_reading {
    struct gl_step_spec *spec;
    gl_str where;    /* "steps.fetch" */
    uint32_t number; /* of the step */
    gl_jnode node;
    gl_jnode needs, rule, cwd, files; /* as written, or NULL */
    const char *command; /* the first field that sets its kind, such as "sh"; NULL: none yet */
    bool idempotent, unsafe, has_foreach;
    struct gl_strs env;      /* as written: whether it has references is known only at the end */
    struct gl_strs code_env; /* GLIA_REF_n=${...}, for `sh` */
    struct gl_buf own_files; /* struct gl_flow_file: of the command, then of `files` */
};

#define GL_STEP_AT(s, name) ((struct gl_flow_path){.of = (s)->where, .field = (name)})
#define GL_STEP_AT_KEY(at, name) \
    ((struct gl_flow_path){.of = (at).of, .field = (at).field, .key = GL_S(name)})

typedef void gl_step_read_fn(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n);

gl_step_read_fn gl_step_command_sh, gl_step_command_run, gl_step_command_python,
    gl_step_command_script, gl_step_command_noop, gl_step_command_files;
gl_step_read_fn gl_step_env_read, gl_step_env_cwd;
gl_step_read_fn gl_step_wait_sleep, gl_step_wait_until, gl_step_wait_signal, gl_step_wait_approval;
gl_step_read_fn gl_step_limit_when, gl_step_limit_foreach, gl_step_limit_items,
    gl_step_limit_parallel, gl_step_limit_concurrency, gl_step_limit_rate;
gl_step_read_fn gl_step_retry_read;

/* Called when all fields are known. */
void gl_step_command_finish(struct gl_flow_reader *r, struct gl_step_reading *s);
void gl_step_env_finish(struct gl_flow_reader *r, struct gl_step_reading *s);
void gl_step_wait_finish(struct gl_flow_reader *r, struct gl_step_reading *s);
void gl_step_limit_finish(struct gl_flow_reader *r, struct gl_step_reading *s);

/* One reference: reports an unknown input, and job.item without foreach; records references to
 * steps for later. It is at `offset` in the text of `n`. */
void gl_step_refs_note(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path at, const struct gl_ref *ref, gl_str text,
                       size_t offset);
/* All references of a text. False: one is bad. */
bool gl_step_refs_text(struct gl_flow_reader *r, struct gl_step_reading *s, gl_jnode n,
                       struct gl_flow_path at, gl_str text);

/* Programs: `${` begins a reference only if one of our roots follows; everything else belongs to
 * the program. `$${` becomes `${`. Values are never inserted into the text. */
struct gl_step_code {
    struct gl_flow_reader *r;
    struct gl_step_reading *s;
    gl_jnode n;
    struct gl_flow_path at;
    gl_str text;        /* as written */
    struct gl_buf out;  /* as it will run */
    struct gl_buf refs; /* gl_str: the references, each once */
    size_t refs_n;
    /* Writes the expression that replaces reference number `number` (from 0). */
    void (*put)(struct gl_step_code *c, size_t number, gl_str ref);
};

/* Whether one of our references begins at i. */
bool gl_step_code_is_ref(gl_str text, size_t i);
/* Copy the item at i: a reference is replaced (or, with `problem`, reported with
 * that sentence), `$${` becomes `${`, anything else is one byte. Returns the offset after it. */
size_t gl_step_code_put(struct gl_step_code *c, size_t i, const char *problem);
/* Copy unchanged. */
size_t gl_step_code_copy(struct gl_step_code *c, size_t i, size_t n);

/* The text as it will run, valid as long as `out`; `refs` are the values it needs. */
gl_str gl_code_sh(struct gl_step_code *c);
gl_str gl_code_python(struct gl_step_code *c);

#endif
