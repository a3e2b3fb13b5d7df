/* An op is a piece of differentiable mathematics on rows: what it computes, what its backward
 * reads, and a plain reference in C for float32 and float64. One stem an op: ops/conv2d.c holds the
 * shapes and the reference, ops/dnnl/conv2d.c oneDNN's kernel, ops/x86/conv2d_*.c ours.
 *
 * Letters: B rows (never in a shape: a value's shape is that of one row), H W C image, K outputs.
 */
#ifndef KEEL_OPS_OP_H
#define KEEL_OPS_OP_H
#include "base/error.h"
#include "base/philox.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stdbool.h>

typedef struct keel_op keel_op;
typedef struct keel_kernel keel_kernel;

/* A value: one row of it has `shape`; it is held for as many rows as a worker has. */
typedef struct keel_spec {
    keel_dtype dtype;
    keel_shape shape;
} keel_spec;

enum { KEEL_SUMS_MAX = 16 }; /* sums that any worker may read; of more, one thread alone */

/* What an op is told, and tells, when a graph is built. The graph owns everything pointed to but
 * `out` and `saved`, which infer makes and keel_node_clear frees. */
typedef struct keel_node {
    const keel_op *op;
    const void *args;  /* op->args_size bytes */
    const char *layer; /* name of the layer that emitted it, for messages and profiles */
    bool training;     /* Keras's training=True: dropout drops, BatchNorm looks at the batch */
    bool backward;     /* backward will follow: what it reads must be saved */
    keel_dtype real;   /* float32 or float64: the type of its mathematics and of its weights */
    keel_dtype held;   /* what its output is held in: real, or bfloat16 where real is float32 */
    uint16_t stream;   /* of chance: index of the layer in the model */

    int n_in;
    const keel_spec *in; /* [n_in] */
    int n_weight;
    const keel_spec *weight; /* [n_weight] whole shapes, Keras's layout */

    /* infer() fills these, the lists by keel_node_add_out and keel_node_add_saved */
    int n_out;
    keel_spec *out; /* [n_out] */
    int n_saved;
    keel_spec *saved;                  /* [n_saved] per row, written by forward for backward */
    int64_t partial, partial_backward; /* doubles of one row's record; 0: rows need not meet */
    int64_t merged, merged_backward;   /* one more, where rows meet: see keel_op.partial */
    int64_t sums;                      /* doubles of one row's record, only added: loss, metrics */
    int64_t scratch;                   /* bytes a reference call wants in c->scratch */
} keel_node;

/* Facts of a step that a call may read; the same for all calls of the step. */
typedef struct keel_step_facts {
    uint64_t seed;
    uint32_t epoch;
    uint64_t first_row;      /* position in the epoch's order of the step's row 0 */
    int64_t rows;            /* of the whole global step */
    const double *loss_seed; /* [losses] what the gradient of each is multiplied by; NULL: a lone
                                loss, whose gradient is divided when it is reduced */
} keel_step_facts;

/* One call of a kernel: pointers for `rows` rows, bound ahead of the step. A pointer is to the
 * first row of this call; a row of input i is node->in[i].shape elements, dense. */
typedef struct keel_call {
    const keel_node *node;
    const keel_step_facts *step;
    int64_t rows;
    int64_t row; /* of the step: this call's first row; chance is keyed by step->first_row + row */

    const void **in;     /* [n_in] */
    void **out;          /* [n_out]; NULL entry: nobody reads it, and an op of several outputs need
                            not make it. The only output of an op is never NULL */
    void **saved;        /* [n_saved] */
    const void **weight; /* [n_weight] */

    /* backward */
    const void **out_grad; /* [n_out]; NULL entry: nothing flows back, as if all were 0. The only
                              one of an op is never NULL */
    void **in_grad;        /* [n_in]; NULL entry: nobody asks for it */
    const bool *in_adds;   /* [n_in]; true: add to in_grad[i], false: overwrite it */
    void **weight_grad;    /* [n_weight]; NULL entry: frozen */
    bool weight_adds;      /* add to weight_grad, or overwrite it */

    double *partial; /* the record of this call's first row, the others behind it: overwritten */
    const double *merged;         /* the merged record of all rows */
    const double *merged_forward; /* in backward: what forward had merged */
    void *scratch;                /* of the worker; at least what prepare or infer asked for */
    void *plan;                   /* of a kernel: what its prepare made */
} keel_call;

typedef void (*keel_run)(const keel_call *c);

/* The record of neighbouring rows from those of its left and its right rows, which may also be
 * `out`. */
typedef struct keel_record {
    double rows;
    const double *data;
} keel_record;
typedef void (*keel_combine)(const keel_node *n, keel_record left, keel_record right, double *out);

enum {
    KEEL_READS_IN = 1, /* all inputs */
    KEEL_READS_OUT = 2,
    KEEL_READS_SAVED = 4,
    KEEL_READS_FIRST = 8 /* in[0] only */
};

/* Test cases for the conformance test: shapes of one row and arguments as words. */
typedef struct keel_case {
    const char *in;      /* "4,5,3" or, for several inputs, "4,5,3|4,5,1" */
    const char *weights; /* "3,3,3,8|8"; NULL: none */
    const char *args;    /* "strides 2,2 groups 2", read by args_for_case; NULL: its defaults */
} keel_case;

/* One tile of a weight gradient over all rows of the step, wherever workers hold them. */
typedef struct keel_span { /* neighbouring rows */
    const void *in, *out_grad;
    int64_t rows;
} keel_span;

/* How a tile is moved, where that is so plain that the kernel which makes its gradient g may do it:
 * m = m keep - g scale rate and w = w + m, every product and sum rounded by itself. float32. */
typedef struct keel_tile_move {
    float *w, *m;
    float keep, scale, rate;
    bool moved; /* out: grad is not written then */
} keel_tile_move;

/* The first part of a tile that is not 0: elements before `skip` are, and grad has `count` from
 * there. Elements behind it are for another call. */
typedef struct keel_tile_part {
    int64_t skip, count; /* whole rows; a count of 0: all of the tile is 0 */
} keel_tile_part;

typedef struct keel_tile_call {
    const keel_node *node;
    int n_span;
    const keel_span *span; /* in row order */
    int weight;            /* which of the node's weights */
    int64_t first, count;  /* elements of it, whole rows of its last dim */
    void *grad;            /* [count], overwritten */
    int n_prefetch;
    const void *prefetch[4]; /* [count] these elements of the weight, and of what else is written
                            next: a kernel that asks for them early hides the wait */
    void *scratch;           /* of the worker, at least what prepare asked for */
    bool scratch_ready;   /* scratch is as the last call left it: of this weight, from these rows */
    const void *plan;     /* what prepare left */
    bool *checked, *bad;  /* out: a kernel that looks for numbers that are not finite while it has
                            them says so, and whether there are any; may be NULL */
    keel_tile_move *move; /* what a kernel may do with the gradient; NULL: it is asked for */
    keel_tile_part *part; /* may be narrowed to what is not 0; NULL: all is asked for */
} keel_tile_call;

typedef void (*keel_tile_run)(const keel_tile_call *c);

/* Functions come in pairs: [0] float32, [1] float64; see ops/real.h. */
struct keel_op {
    const char *name; /* "conv2d"; the file is name.c, the symbol keel_op_<name> */
    size_t args_size; /* copied into the graph; plain bytes, no pointers but to ops */

    /* Check node->in, weight and args; fill out, saved, records, scratch. Called by
     * keel_node_infer, which clears these first. KEEL_ESHAPE or KEEL_EUNSUP with a text that says
     * which dims do not fit. */
    keel_status (*infer)(keel_node *n);

    /* out (and saved) from in and weights, row by row independent but for what `merged` tells. */
    keel_run forward[2];
    /* in_grad from out_grad; NULL: no gradient flows (labels, integer inputs). */
    keel_run backward[2];
    unsigned backward_reads;
    /* weight_grad from in, saved and out_grad over all rows of one worker; NULL: no weights. */
    keel_run weights[2];
    /* The same tile by tile, by whoever owns the tile, once backward is through: nothing is held or
     * added once a worker, and as rows are taken one after the other, neither the cut of the rows
     * nor the tiles change a bit. Used where a row has one place only (rank 1); NULL: weights. The
     * float32 one reads spans of bfloat16 where the node says so (held). */
    keel_tile_run weights_tile[2];
    unsigned weights_reads; /* KEEL_READS_IN ...; out_grad is always read */
    /* weights reads what backward has put into saved values, so backward runs before it although
     * nobody may ask for the gradient of an input. */
    bool weights_after_backward;

    /* How often one call reads weight `weight`, however many rows it has: an op that goes through
     * time reads it at each step, one that looks up rows only what its rows ask for (0). Decides on
     * how many rows a call gets. NULL: each weight once. */
    int64_t (*weight_reads)(const keel_node *n, int weight);

    /* Ops that must see all rows of the global step (BatchNorm). partial: a record for each row of
     * the call, one after the other at c->partial, from in (and, in backward, out_grad). The engine
     * combines them in the order of the step's tree (base/tree.h), so that no cut of the rows
     * changes a bit; combine NULL: records are added, as those of backward and sums always are.
     * merged: {rows, the record of all rows}. */
    keel_run partial[2];
    keel_run partial_backward[2];
    keel_combine combine;
    /* Weight gradients that are read off the merged backward record: run by one worker only. Holds
     * for nodes with partial_backward > 0; other nodes of the op run weights as usual. */
    bool weights_from_merged;
    /* After the commit point, once per step, of nodes in training mode: move state weights (moving
     * mean). merged: forward's, of node->merged doubles, maybe none. weight[] is writable here. */
    void (*commit)(const keel_node *n, const double *merged, void *const *weight);

    /* Floating-point operations of forward for one row; backward and weights have as many each.
     * NULL: so few that bytes tell the cost. */
    double (*flops)(const keel_node *n);
    bool costly; /* a function such as exp or tanh of each element: slow in plain C */

    bool casts; /* reads and writes what the node's specs say, bfloat16 too: the engine never widens
                 */
    bool loss;  /* a chain of gradients begins here: backward has no out_grad, and gives the sums */
    /* The program may let out share the memory of in[0], and in_grad[0] that of out_grad: */
    bool view;    /* the same bytes in another shape: forward and backward need not even run */
    bool inplace; /* pointwise: each element is read before it is written (only where backward
                     does not read in[0], and nobody else does) */
    bool inplace_second; /* the same of in[1], where there is one; of gradients as above, but only
                            where weight gradients are read off the merged record */

    const keel_case *cases;                              /* at least two, ends with in NULL */
    void (*args_for_case)(void *args, const char *text); /* NULL: args stay zero */
    /* Bytes that weights_tile is computed in, for steps of so many rows; NULL: none. */
    int64_t (*tile_scratch)(const keel_node *n, int64_t rows);
};

/* What a kernel can run of an op. */
typedef enum keel_pass {
    KEEL_FORWARD,
    KEEL_BACKWARD,
    KEEL_WEIGHTS,
    KEEL_PARTIAL, /* the op's partial and partial_backward, where it has them */
    KEEL_PARTIAL_BACKWARD,
    KEEL_PASS_COUNT
} keel_pass;

/* Weights in another layout, shared by all workers, made again whenever the weights moved. */
typedef struct keel_derived keel_derived;
struct keel_derived {
    void *data; /* `bytes`, 64-byte aligned, allocated by the asker of prepare */
    size_t bytes;
    int weight;   /* index into node->weight */
    uint64_t key; /* kernels that ask with the same key share the copy */
    void (*refresh)(const keel_derived *d, const void *weight); /* writes data */
    void (*release)(void *plan);                                /* frees plan; NULL: nothing */
    void *plan;
};

/* What prepare may ask for. */
typedef struct keel_prepare {
    const keel_node *node;
    keel_pass pass;
    int64_t rows;
    bool in_adds, weight_adds; /* as the call will be bound (in_adds: of input 0) */
    keel_float32 float32;      /* how products may be computed */
    bool measured;             /* ops/tuned.h names this kernel for the node and pass */
    int64_t scratch;           /* out: bytes of scratch */
    void *plan;                /* out */
    /* Ask for a derived copy: returns the shared one of that key, or takes over *want (its plan
     * included) and allocates data. Valid as long as the program lives. */
    keel_status (*derive)(void *context, keel_derived *want, const keel_derived **got);
    void *context;
} keel_prepare;

/* In which order the kernels of an op are asked: the last of this list first, the reference after
 * all of them. No two kernels of an op have the same. */
typedef enum keel_priority {
    /* Our vectors of 8 and of 16 lanes, for an op that no library has. */
    KEEL_PRIORITY_VECTOR_AVX2,
    KEEL_PRIORITY_VECTOR_AVX512,
    /* oneDNN: its kernel for any shape; its matrix product, where a convolution is one. */
    KEEL_PRIORITY_LIBRARY,
    KEEL_PRIORITY_LIBRARY_1X1,
    /* Values held in bfloat16: our products of pairs, by Winograd where windows are 3x3; oneDNN's
     * on the tiles of AMX, which multiply more at a time. */
    KEEL_PRIORITY_PAIRS,
    KEEL_PRIORITY_PAIRS_WINOGRAD,
    KEEL_PRIORITY_TILES,
    /* Our convolutions of 1x1 windows: no copy into another layout, as a library makes. */
    KEEL_PRIORITY_OWN_1X1_AVX2,
    KEEL_PRIORITY_OWN_1X1_AVX512,
    /* Our vectors for an op that a library has too, and is slower at. */
    KEEL_PRIORITY_OWN_AVX2,
    /* Convolutions by Winograd: tiles of 2x2 outputs; with strides; tiles of 4x4, with the fewest
     * products. Vectors of 16 lanes come before all of 8. In between the weight gradient of an
     * image of a few channels. */
    KEEL_PRIORITY_WINOGRAD_AVX2,
    KEEL_PRIORITY_WINOGRAD_STRIDED_AVX2,
    KEEL_PRIORITY_FEW_CHANNELS_AVX512,
    KEEL_PRIORITY_WINOGRAD4_AVX2,
    KEEL_PRIORITY_OWN_AVX512,
    KEEL_PRIORITY_WINOGRAD_AVX512,
    KEEL_PRIORITY_WINOGRAD_STRIDED_AVX512,
    KEEL_PRIORITY_WINOGRAD4_AVX512,
    /* float32 by pieces of bfloat16 on AMX: refuses what was not measured to be faster so. */
    KEEL_PRIORITY_SPLIT
} keel_priority;

/* A faster way to run one op's passes. */
struct keel_kernel {
    const keel_op *op;
    const char *name; /* "avx512"; the symbol is keel_kernel_<op>_<name> */
    keel_priority priority;
    int needs;   /* a keel_cpu_isa: its file is compiled for that, so no function of it, prepare
                    neither, may be called on less (keel_kernel_prepare in graph/choose.h) */
    bool vendor; /* nobody promises that a row's bits do not depend on how many rows a call has */
    /* Can you run this pass for that many rows? KEEL_OK: p->plan and p->scratch are set;
     * KEEL_EUNSUP: ask the next; anything else fails the compile. Pure: same answer every time. */
    keel_status (*prepare)(keel_prepare *p);
    keel_run run[KEEL_PASS_COUNT];
    keel_tile_run weights_tile; /* prepare is asked for KEEL_WEIGHTS; nobody releases its plan */
    int64_t tile_rows;          /* of the weight, that it makes as fast as more; 0: a whole tile */
    /* The same where the node's output is held in bfloat16, and so are its inputs (node->held;
     * labels and the like aside) and their gradients: in, out, out_grad and in_grad point to
     * keel_bf16, while weights, weight gradients, saved values and records stay as they are. Sums
     * are float32 at least; a result is rounded once, to nearest even. A pass that is NULL here
     * runs by `run` on copies widened to float32 (graph/widen.h), prepared with a node that says
     * so. */
    keel_run narrow[KEEL_PASS_COUNT];
    keel_tile_run narrow_tile;
    void (*release)(void *plan);
};

/* Failing inside a run: kernels have no status; a vendor library that fails calls this, once, and
 * the step fails at its next meeting with the thread's error text. */
void keel_call_failed(const keel_call *c, keel_status s);
/* What this thread's calls reported since it was last asked: the first failure, or KEEL_OK; the
 * text is keel_error()'s. The engine asks after each segment. */
keel_status keel_call_status_take(void);

const keel_op *keel_op_find(const char *name);
extern const keel_op *const keel_ops[]; /* generated from the folder; ends with NULL */
extern const keel_kernel *const keel_kernels[];

/* A kernel's file declares the op it is for, src/ops/NAME.c; a name that is not there fails at
 * link. ops/all.h declares them all. */
#define KEEL_USES_OP(name) extern const keel_op keel_op_##name

/* By `combine`, or added where that is NULL: records of `length` doubles. */
void keel_combine_records(const keel_node *n, keel_combine combine, int64_t length,
                          keel_record left, keel_record right, double *out);
/* The records of all rows of a step, which are overwritten, into the merged one. */
void keel_node_merge(const keel_node *n, bool backward, double *records, int64_t rows,
                     double *merged);

/* One more output or saved value of a node whose infer is running. KEEL_ENOMEM. */
keel_status keel_node_add_out(keel_node *n, const keel_spec *spec);
keel_status keel_node_add_saved(keel_node *n, const keel_spec *spec);
/* Run the op's infer on a node that may have been inferred before. */
keel_status keel_node_infer(keel_node *n);
void keel_node_clear(keel_node *n); /* frees what infer made */

static inline int64_t keel_row_count(const keel_spec *s) /* elements of one row */
{
    return keel_shape_count(&s->shape);
}

#endif
