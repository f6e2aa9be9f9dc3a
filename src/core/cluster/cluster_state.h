/* cluster_state.h - the memory of the components in this room; a part of the core's memory. */
#ifndef GL_CORE_CLUSTER_CLUSTER_STATE_H
#define GL_CORE_CLUSTER_CLUSTER_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/when.h"

/* renewal.c: our session is kept alive. */
struct gl_renewal_state {
    uint64_t call;      /* under way; 0: none. The same below */
    gl_ms due;          /* when to renew */
    gl_ms ttl_ms;       /* 0: nobody renews (the core is driven without a store) */
    gl_ms sent_at;      /* when the last renewal left */
    gl_ms steady_since; /* since when every renewal has succeeded, over one connection; INT64_MAX:
                           the last one has not */
    gl_ms valid_until;  /* from then on others may take us for dead; INT64_MAX: nobody does */
    bool is_lost;       /* somebody has declared it dead */
};

/* store_full.c: a store that answers and writes nothing. */
struct gl_store_full_state {
    uint64_t call;
    gl_ms due;       /* when to ask the store, or to remove what it has kept for us */
    gl_ms since;     /* when it refused first */
    gl_ms opened_at; /* when it last took something again; 0: it never had to */
    gl_ms quiet_ms;  /* nothing must have been refused for so long before it is asked */
    bool is_shut;
    bool is_doubted;  /* another node met no room */
    bool is_left;     /* the store may still have what we asked it to keep */
    bool is_removing; /* the call under way removes that; else it asks */
    gl_str why;       /* what the store said last */
};

/* membership.c: the other nodes. */
struct gl_membership_state {
    uint64_t call;
    bool is_declaring;   /* the call under way declares one dead; else it lists all */
    gl_ms due;           /* the next listing */
    struct gl_map alive; /* struct gl_peer, by session, in the order of the listing ... */
    struct gl_map dead;  /* ... and in the order in which they died */
    uint64_t asked_n;    /* listings begun ... */
    uint64_t listed_n;   /* ... and the number of the last one that has ended */
    uint64_t unsure;     /* a death was heard of during this listing; UINT64_MAX: none was */
};

/* leader.c: who does what only one node should do. */
struct gl_leader_state {
    uint64_t call;
    bool is_standing; /* the call under way takes the lead; else it reads who has it */
    bool leads;       /* we do; always, if the store is not shared */
    gl_ms due;
    uint64_t token;
};

/* inbox.c: commands that other nodes have sent to the owners of jobs. */
struct gl_inbox_state {
    uint64_t call;           /* of the look under way */
    bool is_reading;         /* the call reads the entries of a page; else it lists the page */
    bool is_again;           /* woken meanwhile: look again at once */
    gl_ms due;               /* the next look */
    int64_t after_score;     /* the last entry of a full page: the next page begins after it; */
    gl_str after_id;         /* "": at the beginning */
    uint64_t last_request;   /* number given to a command */
    struct gl_link found;    /* struct gl_inbox_entry: of the page that is being read */
    struct gl_link accepted; /* struct gl_inbox_entry: those that are being carried out */
};

/* outbox.c: commands of this node's clients for jobs that another node owns. */
struct gl_outbox_state {
    struct gl_link sent; /* struct gl_sent_command */
};

#endif
