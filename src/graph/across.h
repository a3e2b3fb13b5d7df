/* What the processes that share a step exchange while it runs: merged records, sums, and gradients.
 * Everybody's rows are cut along the same trees, so each process merges what its own workers have
 * left into the largest nodes inside its range, and all make the same sums of the nodes of all.
 * Gradients have a file of their own: buckets.h. */
#ifndef KEEL_GRAPH_ACROSS_H
#define KEEL_GRAPH_ACROSS_H
#include "graph/gradients.h"

typedef struct keel_across {
    keel_comm *comm;
    const keel_lanes *lanes;
    size_t *at, *bytes;     /* [n_process] of one exchange */
    double *records, *sums; /* nodes of all processes */
    int64_t sums_length;    /* doubles of one node of each op with sums */
    double *temporary;      /* to merge sums */

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
    int64_t buffers; /* of the process, for what comes */
    int exchanges;
} keel_traffic;
keel_status keel_across_traffic(const keel_program *p, int64_t rows, keel_traffic *out);

/* Of n things that a tree divides, the nodes of each process. Call keel_process_nodes_free also
 * after a failure. rows: n rows of a step; else n shards. */
static inline int keel_nodes_of(const keel_process_nodes *x, int process)
{
    return x->before[process + 1] - x->before[process];
}
keel_status keel_process_nodes_make(keel_process_nodes *out, const keel_lanes *l, int64_t n,
                                    bool rows);
void keel_process_nodes_free(keel_process_nodes *x);
/* Both kinds of nodes of a step, when it is bound. */
keel_status keel_across_bind(keel_bound *b, const keel_lanes *l);

/* Process q has before[q + 1] - before[q] units of so many bytes at base + before[q] units;
 * afterwards each has those of all. */
keel_status keel_across_gather(keel_across *x, void *base, const int *before, size_t unit);

/* across_carried.c: by one worker, after a run: the states that rows end with go to everybody. */
keel_status keel_across_carry(const keel_program *p, const keel_bound *b);
/* State i of all rows of that step. */
void keel_across_carried(const keel_program *p, const keel_bound *b, int i, void *out);
keel_status keel_across_make_carried(keel_across *x, const keel_program *p);

/* By one worker, after a run: the sums of all ops with sums go to everybody. */
keel_status keel_sums_exchange(const keel_program *p, const keel_bound *b);

#endif
