#include "api/request.h"

#include "base/check.h"

/* Every verb is listed: a new one has to be put on one side. */
bool gl_verb_is_urgent(enum gl_verb verb)
{
    switch (verb) {
    case GL_VERB_LIST:
    case GL_VERB_STATUS:
    case GL_VERB_EVENTS:
    case GL_VERB_HUMAN:
    case GL_VERB_WHY:
    case GL_VERB_NODE:
    case GL_VERB_METRICS:
    case GL_VERB_NODES:
    case GL_VERB_NODE_SHOW:
    case GL_VERB_CLUSTER:
    case GL_VERB_AGENTS:
    case GL_VERB_MESSAGES:
    case GL_VERB_DEAD_LETTERS:
    case GL_VERB_CLAIM_ACQUIRE:
    case GL_VERB_CLAIM_RENEW:
    case GL_VERB_CLAIM_COMPLETE:
    case GL_VERB_CLAIM_FAIL:
    case GL_VERB_CLAIM_RECLAIM:
    case GL_VERB_CLAIM_LIST:
    case GL_VERB_CLAIM_SHOW:
        return true;
    case GL_VERB_SUBMIT:
    case GL_VERB_PAUSE:
    case GL_VERB_RESUME:
    case GL_VERB_CANCEL:
    case GL_VERB_RESPOND:
    case GL_VERB_SIGNAL:
    case GL_VERB_RETRY:
    case GL_VERB_REMOVE:
    case GL_VERB_TRIM:
    case GL_VERB_SEND:
    case GL_VERB_REDRIVE:
        return false;
    case GL_VERB_COUNT:
        break;
    }
    GL_UNREACHABLE();
}
