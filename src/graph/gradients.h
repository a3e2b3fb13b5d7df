/* Weight gradients that workers compute shard by shard: see gradients.c. Inside the graph room,
 * except for keel_gradient_parts. */
#ifndef KEEL_GRAPH_GRADIENTS_H
#define KEEL_GRAPH_GRADIENTS_H
#include "graph/program.h"

/* The number of shards of a step if it is the same for any lanes and workers; else 0. */
int64_t keel_shards_common(const keel_lanes *l, int64_t rows);

/* Cuts b->rows, whose runs are known, into shards. Call keel_gradients_uncut afterwards, also on
 * failure. */
keel_status keel_gradients_cut(keel_bound *b, const keel_lanes *l);
void keel_gradients_uncut(keel_bound *b);

/* Lays out a worker's gradients, once the schedule is known. */
keel_status keel_gradients_place(keel_program *p);

/* Sets in a call where the gradients of its node's weights over a shard are written (entries of
 * frozen weights stay NULL), what is cleared before and what is added afterwards; the caller frees
 * c->add. */
keel_status keel_gradients_bind(const keel_program *p, int worker, const keel_shard *shard,
                                keel_bound_call *c);
/* Whether the call that computes them adds to what is there. */
bool keel_gradients_adds(const keel_program *p, int node, const keel_shard *shard);
void keel_gradients_add(keel_dtype real, const keel_addition *a);

/* segment [n_weight]: that after which a worker has its part of each weight's gradient. */
void keel_gradients_segments(const keel_program *p, int *segment);

/* The parts of a weight's gradient that workers have left after a step, in row order, from element
 * `first` of the weight on. Each part is pushed on a stack, and then `closes` sums are made of the
 * two top ones. Returns the number of parts, at most KEEL_LANES_MAX (of all processes:
 * KEEL_PROCESSES_MAX, too). The first part is where the total is wanted. */
typedef struct keel_gradient_part {
    void *data;
    int closes;
} keel_gradient_part;
int keel_gradient_parts(const keel_program *p, const keel_bound *b, keel_variable v, int64_t first,
                        keel_gradient_part *out);

#endif
