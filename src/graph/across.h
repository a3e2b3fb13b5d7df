/* What the processes that share a step exchange while it runs: merged records, sums, and gradients.
 * Everybody's rows are cut along the same trees, so each process merges what its own workers have
 * left into the largest nodes inside its range. How those of all become one: rounds.h. Gradients
 * have a file of their own: buckets.h. */
#ifndef KEEL_GRAPH_ACROSS_H
#define KEEL_GRAPH_ACROSS_H
#include "graph/gradients.h"
#include "graph/rounds.h"

typedef struct keel_across {
    keel_comm *comm;
    const keel_lanes *lanes;
    size_t *at, *bytes; /* [n_process] of one exchange */
    keel_round_tables tables;
    double *records;     /* nodes of an op, and after its rounds the root */
    keel_rounds_way way; /* of these */
    int segment;         /* that merges them */
    double *sums;        /* the same of all ops with sums: the records of one node lie together */
    int64_t sums_length; /* doubles of such a node */
    double *temporary;   /* to merge sums */
    int64_t record_doubles, sums_doubles, temporary_doubles;

    struct keel_buckets *buckets; /* of gradients; NULL: none, as in a test */
    char *carried;         /* [max_rows] states of stateful layers, of all processes; NULL: none */
    int64_t carried_bytes; /* of one row */
} keel_across;

/* For a program whose records and gradients have their places. Alone, p->across stays NULL. */
keel_status keel_across_create(keel_program *p);
void keel_across_destroy(keel_across *x);

/* What a process sends to all others in a step of so many rows, in bytes, and how often it waits
 * for an exchange. The program may be dry. */
typedef struct keel_traffic {
    int64_t gradients, statistics, others;
    int exchanges;
} keel_traffic;
keel_status keel_across_traffic(const keel_program *p, int64_t rows, keel_traffic *out);
/* Bytes that this process keeps for what comes; 0: alone. The program may be dry. */
int64_t keel_across_bytes(const keel_program *p);

/* Of n shards, the nodes of each process. Call keel_process_nodes_free also after a failure. */
static inline int keel_nodes_of(const keel_process_nodes *x, int process)
{
    return x->before[process + 1] - x->before[process];
}
keel_status keel_process_nodes_make(keel_process_nodes *out, const keel_lanes *l, int64_t n);
void keel_process_nodes_free(keel_process_nodes *x);
/* The rounds and the nodes of gradients of a step, when it is bound. */
keel_status keel_across_bind(keel_bound *b, const keel_lanes *l);
void keel_across_unbind(keel_bound *b);

/* across_carried.c: by one worker, after a run: the states that rows end with go to everybody. */
keel_status keel_across_carry(const keel_program *p, const keel_bound *b);
/* State i of all rows of that step. */
void keel_across_carried(const keel_program *p, const keel_bound *b, int i, void *out);
keel_status keel_across_make_carried(keel_across *x, const keel_program *p);

/* By one worker, after a run: everybody gets the sums of all ops with sums. */
keel_status keel_sums_exchange(const keel_program *p, const keel_bound *b);

#endif
