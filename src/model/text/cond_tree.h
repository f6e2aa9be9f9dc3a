/* cond_tree.h - the syntax tree of a condition. Shared by cond.c, which builds it, and
 * cond_eval.c, which evaluates it. */
#ifndef GL_MODEL_TEXT_COND_TREE_H
#define GL_MODEL_TEXT_COND_TREE_H

#include "model/text/cond.h"
#include "model/text/ref.h"

enum gl_cond_op {
    GL_COND_OR,
    GL_COND_AND,
    GL_COND_NOT,
    GL_COND_EQ,
    GL_COND_NE,
    GL_COND_LT,
    GL_COND_LE,
    GL_COND_GT,
    GL_COND_GE,
    GL_COND_IN,
    GL_COND_CONTAINS,
    GL_COND_EXISTS,
    GL_COND_TRUTH, /* a value by itself */
};

/* A reference, a literal (a separate document), or a list that contains references. */
struct gl_cond_value {
    gl_str text; /* as written, for errors */
    bool is_ref;
    struct gl_ref ref;
    struct gl_json literal;
    struct gl_cond_value *items; /* of a list with references; else NULL */
    size_t items_n;
};

struct gl_cond {
    enum gl_cond_op op;
    struct gl_cond *first;                    /* OR AND NOT: its parts ... */
    struct gl_cond *next;                     /* ... and the part after this one */
    const struct gl_cond_value *left, *right; /* all others */
};

#endif
