/* The order of a program: which op runs which pass when, divided into segments.
 *
 * Inside a segment a worker runs all calls on one block of rows, then on the next block, and then
 * the weight gradients of the segment once over all its rows. A block is all rows, or so few that
 * the output of one call is still in the cache when the next call reads it. A segment begins with a
 * merge if its first op must see all rows; then the segment before it ends in a meeting of all
 * workers.
 *
 * Where no op must see all rows there can be one segment: each block goes through forward, backward
 * and its weight gradients, which are added to those of the blocks before. Values live for a block
 * then. That is so in micro-batches, which are blocks of a given size, and where it is faster.
 *
 * A value that backward reads is kept until then, or its node is run again before the first call
 * of backward that reads it: see recompute.h. */
#ifndef KEEL_GRAPH_SCHEDULE_H
#define KEEL_GRAPH_SCHEDULE_H
#include "graph/graph.h"
#include "ops/reads.h"

typedef enum keel_run_kind {
    KEEL_RUN_FORWARD,
    KEEL_RUN_PARTIAL,
    KEEL_RUN_AGAIN, /* forward, once more; from here on between or in calls of backward */
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
        end;       /* at most so many rows; what the kernels compute does not depend on it */
    int64_t block; /* rows, at most; what the kernels give does not depend on it */
} keel_segment;

typedef struct keel_turn {
    int turn, node;
} keel_turn;

typedef struct keel_schedule {
    bool at_once; /* each block goes through forward and backward before the next one begins */
    int n_instruction, n_segment, n_order;
    keel_instruction *instruction;
    keel_segment *segment;
    bool *needs_grad; /* [n_value] a trainable weight lies before it, or a wanted input; or it is
                         one */
    bool *has_grad;   /* [n_value] and a loss lies behind it: its gradient is written */
    bool *reached;    /* [n_variable] it is trainable, and some node writes its gradient */
    bool **in_adds;   /* [n_node][n_in] as the backward call of the node is bound */
    bool *
        weight_adds; /* [n_node] an earlier node of the order has already written these gradients */
    uint32_t *weight_clears; /* [n_node] bit k: its weight k is written here first, although others
                                of its weights have been written before */
    bool *tiled;             /* [n_node] the owners of tiles make its weight gradients */
    bool *again;             /* [n_node] it is run again, for backward */
    keel_variable *order;    /* trainable weights in the order in which gradients are complete */

    int n_commit;
    keel_turn *commit; /* [n_commit] nodes that move state after the commit point, in order */
} keel_schedule;

/* Orders a graph. trainable [n_variable]: which weights get a gradient. In a training graph the
 * chain of gradients begins at the nodes whose op is a `loss`. Their backward has no out_grad;
 * their forward does not run, because backward computes the sums as well. on_device: the values are
 * not in the host's memory, so no gradient is made tile by tile, and a block is all rows of a
 * worker. micro_batch: rows of a block that goes through forward and backward at once; 0: chosen
 * here; below 0: no block does. KEEL_EUNSUP: micro_batch is given, and a layer must see all rows,
 * or it is on_device. */
keel_status keel_schedule_make(keel_schedule *out, const keel_graph *g, const bool *trainable,
                               int n_variable, bool on_device, int64_t micro_batch);
/* The first node that must see all rows of a step before the next one runs, which micro-batches
 * never have; NULL: there is none. */
const keel_graph_node *keel_schedule_waits(const keel_graph *g);
void keel_schedule_free(keel_schedule *s, const keel_graph *g);
/* Whether two nodes have the same state: they are of one op, with the same weights. */
bool keel_schedule_same_state(const keel_graph_node *a, const keel_graph_node *b);
/* Whether the node moves state after the commit point. */
bool keel_schedule_moves(const keel_schedule *s, int node);

/* ---- what an instruction reads --------------------------------------------------------------- */

static inline bool keel_is_backward(keel_run_kind kind)
{
    return kind > KEEL_RUN_AGAIN;
}

keel_pass keel_run_pass(keel_run_kind kind);

/* Whether the call reads values as they are made again, where they are. */
static inline bool keel_reads_again(const keel_schedule *s, const keel_graph *g, keel_run_kind kind,
                                    keel_value v)
{
    return kind >= KEEL_RUN_AGAIN && g->value[v].node >= 0 && s->again[g->value[v].node];
}

#endif
