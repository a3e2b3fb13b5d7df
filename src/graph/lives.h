/* How long the buffers of a scheduled graph live, and which of them share memory. */
#ifndef KEEL_GRAPH_LIVES_H
#define KEEL_GRAPH_LIVES_H
#include "graph/schedule.h"

/* A buffer. Those that share memory are joined to a root, whose life covers all of theirs. */
typedef struct keel_life {
    int64_t row_bytes;
    int first, last; /* instructions; first INT_MAX: never written; last may be their number */
    int until;       /* `last` of what the buffer has itself, before it was joined */
    bool whole;      /* needed for all rows of the worker at the same time */
    int root;        /* itself, or the buffer whose memory it shares */
} keel_life;

typedef struct keel_lives {
    const keel_graph *g;
    const keel_schedule *s;
    const int *saved_at; /* [n_node + 1] the first saved value of each node, of all nodes */
    int n;               /* values, their gradients, values made again, saved values */
    keel_life *life;     /* [n] */
    int *segment_of;     /* [n_instruction + 1] */
    bool *skip_forward, *skip_backward; /* [n_node] views that share memory */
} keel_lives;

/* outputs [n_output]: values that are read after a run. `g`, `s` and `saved_at` are borrowed. */
keel_status keel_lives_find(keel_lives *out, const keel_graph *g, const keel_schedule *s,
                            const int *saved_at, const keel_value *outputs, int n_output);
void keel_lives_free(keel_lives *l);

int keel_life_root(const keel_lives *l, int buffer);

/* Whether the buffer has memory of its own in the arena. */
bool keel_life_is_placed(const keel_lives *l, int buffer);
/* And for all rows of the worker: it crosses a segment, or is read over all rows. What lives inside
 * one segment has a block of rows. */
bool keel_life_has_all_rows(const keel_lives *l, int buffer);

/* A value's buffer is life[v]; the others' are these. */
static inline int keel_life_of_grad(const keel_lives *l, keel_value v)
{
    return l->g->n_value + v;
}
/* As backward reads it, if its node is run again. */
static inline int keel_life_again(const keel_lives *l, keel_value v)
{
    return 2 * l->g->n_value + v;
}
static inline int keel_life_of_saved(const keel_lives *l, int node, int k)
{
    return 3 * l->g->n_value + l->saved_at[node] + k;
}
/* Whether the buffer is an input of the graph, which lies in the batch. */
static inline bool keel_life_is_input(const keel_lives *l, int buffer)
{
    return buffer < l->g->n_value && l->g->value[buffer].node < 0;
}

#endif
