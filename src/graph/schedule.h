/* The order of a program: which op runs which pass when, cut into segments.
 *
 * Inside a segment a worker runs the calls of one block of rows after the other, then the weight
 * gradients of the segment once over all its rows. A block is all of them or less: so few rows
 * that what one call writes is still in the cache when the next one reads it. A segment begins with
 * a merge where its first op must see all rows; then the one before it ends in a meeting of all
 * workers. */
#ifndef KEEL_GRAPH_SCHEDULE_H
#define KEEL_GRAPH_SCHEDULE_H
#include "graph/graph.h"

typedef enum keel_run_kind {
    KEEL_RUN_FORWARD,
    KEEL_RUN_PARTIAL,
    KEEL_RUN_BACKWARD,
    KEEL_RUN_PARTIAL_BACKWARD,
    KEEL_RUN_WEIGHTS
} keel_run_kind;

typedef struct keel_instruction {
    keel_run_kind kind;
    int node;
} keel_instruction;

typedef struct keel_segment {
    int merge; /* node whose records are merged before it; -1: none */
    bool merge_backward;
    bool meets; /* lanes meet after it */
    int begin, weights,
        end;       /* instructions: [begin, weights) per block, [weights, end) per worker */
    int64_t block; /* rows, at most; what the kernels give does not depend on it */
} keel_segment;

typedef struct keel_turn {
    int turn, node;
} keel_turn;

typedef struct keel_schedule {
    int n_instruction, n_segment, n_order;
    keel_instruction *instruction;
    keel_segment *segment;
    bool *needs_grad;     /* [n_value] a trainable weight lies before it */
    bool *has_grad;       /* [n_value] and a loss behind it: its gradient is written */
    bool *reached;        /* [n_variable] trainable, and some node writes its gradient */
    bool **in_adds;       /* [n_node][n_in] as the backward call of the node is bound */
    bool *weight_adds;    /* [n_node] a node before it in the order wrote these gradients already */
    bool *tiled;          /* [n_node] weight gradients are made by the owners of tiles */
    keel_variable *order; /* trainable weights in the order in which their gradients are ready */

    int n_commit;
    keel_turn *commit; /* [n_commit] nodes that move state after the commit point, in order */
} keel_schedule;

/* Order a graph. trainable [n_variable]: who gets a gradient. In a training graph the chain of
 * gradients starts at the nodes whose op is a `loss` (their backward has no out_grad; their forward
 * is not run, since backward gives the sums as well). */
keel_status keel_schedule_make(keel_schedule *out, const keel_graph *g, const bool *trainable,
                               int n_variable);
void keel_schedule_free(keel_schedule *s, const keel_graph *g);

#endif
