/* cluster_state.h - what the components in this folder remember; part of struct gl_core.
 *
 * The component named above a struct writes it; losing the session also ends leadership
 * (renewal.c). Others read the few flags that concern them (`leads`, `is_lost`, `is_shut`). All of
 * it goes into a snapshot of the core, where the names of the fields are part of the format: see
 * snapshot.h. */
#ifndef GL_CORE_CLUSTER_CLUSTER_STATE_H
#define GL_CORE_CLUSTER_CLUSTER_STATE_H

#include "base/heap.h"
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

/* offers.c: attempts of this node's jobs that run on other nodes. */
struct gl_offers_state {
    struct gl_heap timers; /* struct gl_offer, by the time of the next look */
    uint64_t call;         /* of the scan of the index of results */
    bool is_reading;       /* the call reads the records of a page; else it lists the page */
    bool is_again;         /* woken during the scan: scan again at once */
    bool has_more;         /* another page follows */
    uint64_t look_call;    /* reads the records of offers whose time has come */
    gl_ms due;             /* the next scan */
    int64_t after_score;   /* the last entry of a full page; */
    gl_str after_id;       /* "": at the beginning */
};

/* taken.c: attempts of other nodes' jobs that run here. */
struct gl_taken_attempts {
    struct gl_map all;             /* struct gl_taken, by the id of its record */
    struct gl_map jobs;            /* struct gl_taken_job, by id */
    struct gl_heap timers, checks; /* struct gl_taken, by `due` and by `check_at` */
    struct gl_link idle;           /* struct gl_taken_job without attempts, oldest first */
    size_t idle_n;
    size_t queued_n;         /* offers that wait for slots here */
    struct gl_link to_take;  /* struct gl_taken that have their slots */
    struct gl_link to_write; /* struct gl_taken whose record is to be written */
    uint64_t take_call, write_call, check_call, clean_call, token_call;
    uint64_t scan_call;
    uint8_t stage;        /* enum gl_taken_stage: of the scan */
    bool is_adopted;      /* what an earlier life of this node has taken is known */
    bool is_again;        /* woken during the scan: scan again at once */
    bool is_void;         /* what was taken is to be read again: the scan under way says nothing */
    bool has_more;        /* another page follows */
    gl_ms due;            /* the next scan */
    gl_ms retry_at;       /* after a failed commit: when to try the next one */
    int64_t after_score;  /* the last entry of a full page; */
    gl_str after_id;      /* "": at the beginning */
    struct gl_link found; /* struct gl_taken_entry: the page that is being read */
    struct gl_link stale; /* struct gl_taken_entry: to be removed from its index */
};

/* other_nodes.c: the nodes that could run attempts of this node's jobs. */
struct gl_other_nodes_state {
    struct gl_place_node *items;
    size_t n;
    bool is_heard; /* false: they have not been listed yet */
    bool is_old;   /* another live node does not understand offers */
};

#endif
