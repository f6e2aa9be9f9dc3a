/* cluster_state.h - what the components in this folder remember; part of struct gl_core.
 *
 * The component named above a struct writes it; losing the session also ends leadership
 * (renewal.c). Others read the few flags that concern them (`leads`, `is_lost`, `is_shut`). All of
 * it goes into a snapshot of the core, where the names of the fields are part of the format: see
 * snapshot.h. */
#ifndef GL_CORE_CLUSTER_CLUSTER_STATE_H
#define GL_CORE_CLUSTER_CLUSTER_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/times.h"

/* renewal.c: keeps our session alive. */
struct gl_renewal_state {
    uint64_t call;      /* the call in flight; 0: none. The same in the structs below */
    gl_ms due;          /* when to renew */
    gl_ms ttl_ms;       /* 0: the session is not renewed (the core runs without a store) */
    gl_ms sent_at;      /* when the last renewal was sent */
    gl_ms steady_since; /* every renewal since then has succeeded, over one connection; INT64_MAX:
                           the last one failed */
    gl_ms valid_until;  /* after this others may declare us dead; INT64_MAX: never */
    bool is_lost;       /* our session has been declared dead */
};

/* store_full.c: a store that answers but refuses writes. */
struct gl_store_full_state {
    uint64_t call;
    gl_ms due;       /* when to send a test write, or to remove the one that was kept */
    gl_ms since;     /* the first refusal */
    gl_ms opened_at; /* when it last accepted writes again; 0: it was never full */
    gl_ms quiet_ms;  /* time without a refusal before the next test write */
    bool is_shut;
    bool is_doubted;  /* another node reports that the store is full */
    bool is_left;     /* the test write may still be in the store */
    bool is_removing; /* the call in flight removes it; else it is the test write */
    gl_str why;       /* the store's last error */
};

/* membership.c: the other nodes. */
struct gl_membership_state {
    uint64_t call;
    bool is_declaring;   /* the call in flight declares one dead; else it lists all */
    gl_ms due;           /* the next listing */
    struct gl_map alive; /* struct gl_peer by session, in the order of the listing */
    struct gl_map dead;  /* the same, in the order in which they died */
    uint64_t asked_n;    /* listings started; also the number of the last one */
    uint64_t listed_n;   /* number of the last listing that was answered */
    uint64_t unsure;     /* we learned of a death during this listing; UINT64_MAX: of none */
};

/* leader.c: does this node do the work that only one node should do? */
struct gl_leader_state {
    uint64_t call;
    bool is_standing; /* the call in flight takes the lease; else it reads the lease */
    bool leads;       /* we are the leader; always true if the store is not shared */
    gl_ms due;
    uint64_t token; /* of our lease */
};

/* inbox.c: commands that other nodes have sent for our jobs. */
struct gl_inbox_state {
    uint64_t call;           /* of the scan */
    bool is_reading;         /* the call reads the entries of a page; else it lists the page */
    bool is_again;           /* woken during the scan: scan again at once */
    gl_ms due;               /* the next scan */
    int64_t after_score;     /* the last entry of a full page: the next page begins after it; */
    gl_str after_id;         /* "": at the beginning */
    uint64_t last_request;   /* last request number given to a command */
    struct gl_link found;    /* struct gl_inbox_entry: the page that is being read */
    struct gl_link accepted; /* struct gl_inbox_entry: commands in progress */
};

/* outbox.c: commands of this node's clients for jobs that another node owns. */
struct gl_outbox_state {
    struct gl_link sent; /* struct gl_sent_command, oldest first */
};

#endif
