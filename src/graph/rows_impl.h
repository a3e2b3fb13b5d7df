/* Inside the programs of rows (rows.h): what runs, and where values lie. */
#ifndef KEEL_GRAPH_ROWS_IMPL_H
#define KEEL_GRAPH_ROWS_IMPL_H
#include "graph/rows.h"

typedef enum keel_rows_run_kind {
    RUN_FORWARD, /* the reference of a node */
    RUN_BYTES,   /* the same on an input of bytes */
    RUN_MOVE,    /* bytes as they are */
    RUN_WIDEN,   /* bytes to real numbers: slot `to` from slot `from` */
    RUN_LOOK_UP  /* a host op of the graph */
} keel_rows_run_kind;

typedef struct keel_rows_one {
    keel_rows_run_kind kind;
    int node; /* or the host op */
    int from, to;
    int64_t scratch, saved; /* offsets; saved: of the first of the node's, in `offset` */
} keel_rows_one;

typedef enum keel_rows_slot_kind { SLOT_NONE, SLOT_IN, SLOT_OUT, SLOT_MEMORY } keel_rows_slot_kind;

typedef struct keel_rows_slot {
    keel_rows_slot_kind kind;
    int same; /* the slot whose bytes these are; itself, if they are its own */
    int at;   /* of the inputs or outputs */
    int64_t bytes, offset;
    int first, last; /* runs that write and read it */
} keel_rows_slot;

struct keel_rows {
    keel_graph *graph;
    const void *const *weight;
    int n_output;
    int *output;     /* [n_output] slots */
    keel_spec *spec; /* [n_output] */
    int n_slot, n_run;
    keel_rows_slot *slot; /* [2 * n_value] */
    keel_rows_one *run;
    bool *bytes; /* [n_value] real numbers that are kept as bytes */
    int n_saved;
    int64_t *offset; /* [n_saved] of all saved values */
    int most_in, most_out, most_saved, most_weight;
    int64_t head, memory; /* bytes of pointers, and of values */
};

static inline int keel_rows_wide(const keel_rows *r, int v)
{
    return r->graph->n_value + v;
}

/* The slot of a value as an op reads it: in real numbers, or as its type is. */
static inline int keel_rows_read_slot(const keel_rows *r, keel_value v)
{
    return r->bytes[v] ? keel_rows_wide(r, v) : v;
}

static inline const keel_rows_slot *keel_rows_root(const keel_rows *r, int s)
{
    return &r->slot[r->slot[s].same];
}

#endif
