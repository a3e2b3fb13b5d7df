/* A graph: values and the nodes that make them, in the order in which they were emitted, which is a
 * topological order. Layers emit into it, and a program is compiled from it; the graph itself runs
 * nothing. */
#ifndef KEEL_GRAPH_GRAPH_H
#define KEEL_GRAPH_GRAPH_H
#include "ops/op.h"
#include "tensor/host_op.h"
#include "tensor/penalty.h"
#include "tensor/projection.h"

typedef struct keel_graph keel_graph;
typedef int keel_value;    /* index of a value in its graph; -1: none */
typedef int keel_variable; /* index of a weight in its store */

/* A weight of the model as the graph sees it. The model owns the list; the program lays out flat
 * ranges from it. */
typedef struct keel_weight_info {
    const char *name;           /* "conv2d/kernel", for messages */
    keel_spec spec;             /* whole shape, Keras's layout */
    keel_penalty penalty;       /* regulariser */
    keel_projection projection; /* constraint */
    bool undecayed;             /* the optimizer does not decay it */
    int lead; /* ops see a matrix whose rows are the first `lead` dims; 0: they see the shape */
} keel_weight_info;

typedef struct keel_graph_value {
    keel_spec spec;
    int node;  /* the node that makes it; -1: an input of the graph */
    int index; /* which output of that node, or which input of the graph */
} keel_graph_value;

typedef struct keel_graph_node {
    keel_node node; /* what kernels see; it points to the four lists below, which may be edited */
    void *args;
    char *layer;
    keel_spec *in_spec;     /* [node.n_in] */
    keel_spec *weight_spec; /* [node.n_weight] */
    keel_value *in;         /* [node.n_in] */
    keel_value *out;        /* [node.n_out] */
    keel_variable *weight;  /* [node.n_weight] */
    int turn;               /* nodes that move the same state do so in this order */
    bool frozen;            /* its weights get no gradient from here, though others may use them */
    int repeats;            /* as the graph's when it was added */
} keel_graph_node;

/* An input whose rows are computed from rows of other inputs, when rows are read. */
typedef struct keel_graph_host {
    int input, of[KEEL_HOST_INS_MAX], n_of; /* inputs of the graph */
    keel_host_op op;
    const void *args; /* borrowed */
} keel_graph_host;

/* Before each step that trains, `weight` is divided by its largest singular value, seen as a matrix
 * whose columns are its last dim. `u` [1, columns] is what the power iterations left. */
typedef struct keel_graph_spectral {
    keel_variable weight, u;
    int64_t iterations;
} keel_graph_spectral;

/* A value that goes on from step to step: what row i ends with, row i of the next step begins with.
 * Whoever runs the graph keeps it (train/step.c). */
typedef struct keel_graph_carried {
    char *name;     /* "lstm/state_1": the same in every graph of a model */
    int input;      /* of the graph: what rows begin with, in the type `real` */
    keel_value end; /* of the same spec; -1: not said yet */
} keel_graph_carried;

struct keel_graph {
    keel_dtype real;
    keel_dtype held; /* the type in which later nodes store their outputs: real, or narrow */
    bool backward;   /* gradients will flow: for training */
    bool training;   /* what later nodes are told; in a graph that trains, a layer called with
                        training=False emits with false */
    bool scored;     /* losses will follow: layers add their own terms */
    bool outline;    /* it only shows shapes, with numbers in the place of open dims: a layer that
                        calls each step by itself emits one of them, and repeats what it makes */
    int n_value, n_node, n_input;
    keel_graph_value *value;
    keel_graph_node *node;
    int n_host;
    keel_graph_host *host;
    int n_spectral;
    keel_graph_spectral *spectral;
    int64_t batch; /* rows of each step; -1: any number */
    int n_carried;
    keel_graph_carried *carried;
    int n_wanted, *wanted; /* inputs whose gradient is read after a run */
    /* set by whoever emits, read when a node is added */
    const char *layer;
    uint16_t stream;
    int turn;
    int repeats; /* number of a call that is made again, of the same inputs: what an earlier call
                    has moved stays; 0: it is none */
    keel_variable first_weight; /* of the model that is emitted: added to its own numbers */
};

/* training: gradients will flow, and nodes are told training until somebody changes it. */
keel_status keel_graph_create(keel_graph **out, keel_dtype real, bool training);
void keel_graph_destroy(keel_graph *g);
/* Frees what the node points to, not the node itself. */
void keel_graph_node_free(keel_graph_node *n);

/* A new input: rows of `spec`. */
keel_status keel_graph_input(keel_graph *g, const keel_spec *spec, keel_value *out);

/* Adds an input whose rows are computed from those of `of` [n_of], which are inputs themselves, or
 * inputs in another shape: `op` gets rows as they are read. If the same was asked for before,
 * returns the same input. KEEL_EUNSUP: one of them is made by a node, or there are too many. */
keel_status keel_graph_host_input(keel_graph *g, const keel_value *of, int n_of, keel_host_op op,
                                  const void *args, const keel_spec *spec, keel_value *out);

/* KEEL_EUNSUP: the weight has been named before, or the call is made again. */
keel_status keel_graph_normalize(keel_graph *g, const keel_graph_spectral *s);

/* Adds a value that goes on from step to step, the number-th of the layer that emits; *begin is
 * what a row begins with. keel_graph_carry_end says what it ends with. KEEL_EUNSUP: the number of
 * rows is not fixed. */
keel_status keel_graph_carry(keel_graph *g, const keel_shape *shape, int number, keel_value *begin);
keel_status keel_graph_carry_end(keel_graph *g, keel_value begin, keel_value end);

keel_value keel_graph_input_value(const keel_graph *g, int input); /* the value of input i */
keel_status keel_graph_want(keel_graph *g, int input); /* its gradient is read after a run */

/* What a new node is made of; everything is copied. */
typedef struct keel_node_parts {
    const keel_op *op;
    const void *args; /* op->args_size bytes, or op->args_bytes; NULL: zeros */
    int n_in;
    const keel_value *in; /* [n_in] */
    int n_weight;
    const keel_variable *weight;  /* [n_weight] */
    const keel_spec *weight_spec; /* [n_weight] */
} keel_node_parts;

/* Adds a node. infer runs at once, so a wrong shape is reported here, and the caller adds the
 * layer's name. out [n_out]: the op's outputs. KEEL_EARG: the op has another number of outputs. */
keel_status keel_graph_add(keel_graph *g, const keel_node_parts *parts, keel_value *out, int n_out);

/* The value stored as `held`: the value itself, or a cast of it. */
keel_status keel_graph_cast(keel_graph *g, keel_value in, keel_dtype held, keel_value *out);

const keel_spec *keel_graph_spec(const keel_graph *g, keel_value v);

#endif
