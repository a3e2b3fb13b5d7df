/* Weight gradients that workers make shard by shard: see gradients.c. Inside the graph room, but
 * for keel_gradient_parts. */
#ifndef KEEL_GRAPH_GRADIENTS_H
#define KEEL_GRAPH_GRADIENTS_H
#include "graph/program.h"

/* So many shards are the same whatever lanes and workers there are; 0: there is no such cut. */
int64_t keel_shards_common(const keel_lanes *l, int64_t rows);

/* Cut b->rows, whose runs are known, into shards; on failure too keel_gradients_uncut. */
keel_status keel_gradients_cut(keel_bound *b, const keel_lanes *l);
void keel_gradients_uncut(keel_bound *b);

/* Lay out a worker's gradients, once the schedule is there. */
keel_status keel_gradients_place(keel_program *p);

/* Where the gradients of a node's weights over a shard go (weight_grad [n_weight]; NULL stays where
 * a weight is frozen), and what is added afterwards: *add [*n_add], which the caller frees. */
keel_status keel_gradients_bind(const keel_program *p, int worker, int node,
                                const keel_shard *shard, void **weight_grad, keel_addition **add,
                                int *n_add);
/* Does the call that makes them add to what is there? */
bool keel_gradients_adds(const keel_program *p, int node, const keel_shard *shard);
void keel_gradients_add(keel_dtype real, const keel_addition *a);

/* What workers are left with of a weight's gradient after a step, in row order, from element
 * `first` of the weight on: part after part goes on a stack, and so many sums are then made of its
 * two top ones. Returns how many parts, at most KEEL_LANES_MAX. The first lies where the sum of
 * all is wanted. */
typedef struct keel_gradient_part {
    void *data;
    int closes;
} keel_gradient_part;
int keel_gradient_parts(const keel_program *p, const keel_bound *b, keel_variable v, int64_t first,
                        keel_gradient_part *out);

#endif
