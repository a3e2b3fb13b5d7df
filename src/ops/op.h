/* An op is a piece of differentiable mathematics on rows: what it computes, what its backward
 * reads, and a plain reference in C for float32 and float64. The files of an op begin with its
 * name: ops/conv2d.c has the shapes and the reference, ops/dnnl/conv2d.c oneDNN's kernel,
 * ops/x86/conv2d_*.c our kernels.
 *
 * Letters: B rows (never in a shape, because the shape of a value is that of one row), H W C image,
 * K outputs.
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
typedef struct keel_derivation keel_derivation;

/* A value: one row of it has `shape`, and a worker holds it for all rows that it has. */
typedef struct keel_spec {
    keel_dtype dtype;
    keel_shape shape;
} keel_spec;

enum {
    KEEL_SUMS_MAX = 16
}; /* with up to so many sums any worker may read them; with more, one thread */

/* What an op is told when a graph is built, and what it answers. The graph owns everything that is
 * pointed to, except `out` and `saved`, which infer makes and keel_node_clear frees. */
typedef struct keel_node {
    const keel_op *op;
    const void *args;   /* op->args_size bytes */
    const char *layer;  /* name of the layer that emitted it, for messages and profiles */
    bool training;      /* Keras's training=True: dropout drops, BatchNorm uses the batch */
    bool backward;      /* backward will follow: what it reads must be saved */
    keel_dtype real;    /* float32 or float64: the type of its arithmetic and of its weights */
    keel_dtype held;    /* the type its output is stored in: real, or bfloat16 or float16 if real is
                           float32 */
    keel_dtype rounded; /* on widened copies (graph/widen.h): the narrow type that the outputs are
                           rounded to behind the call; else KEEL_FLOAT32 */
    uint16_t stream;    /* of random numbers: index of the layer in the model */

    int n_in;
    const keel_spec *in; /* [n_in] */
    int n_weight;
    const keel_spec *weight; /* [n_weight] whole shapes, Keras's layout */

    /* infer() fills these; the lists by keel_node_add_out and keel_node_add_saved */
    int n_out;
    keel_spec *out; /* [n_out] */
    int n_saved;
    keel_spec *saved;                  /* [n_saved] per row, written by forward for backward */
    int64_t partial, partial_backward; /* doubles of a record; 0: rows need not meet */
    int64_t leaf; /* of what one row leaves, if records grow as rows are joined; 0: they do not */
    int64_t merged, merged_backward; /* one more than these, if rows meet: see keel_op.partial */
    int64_t sums;     /* doubles of one row's record that are only added: loss, metrics */
    int64_t scratch;  /* bytes that a reference call needs in c->scratch */
    bool reads_state; /* in training it reads the state that it moves: later calls of one layer see
                         what the earlier ones made of it */
} keel_node;

/* Facts of a step that a call may read; the same for all calls of the step. */
typedef struct keel_step_facts {
    uint64_t seed;
    uint32_t epoch;
    uint64_t first_row;      /* position in the epoch's order of the step's row 0 */
    int64_t rows;            /* of the whole global step */
    const double *loss_seed; /* [1 + losses] the loss scale, then what the gradient of each loss is
                                multiplied by; NULL: one loss, divided when it is reduced */
    int loss_seeds;          /* how many; at most KEEL_LOSS_SEEDS_MAX */
} keel_step_facts;
enum { KEEL_LOSS_SEEDS_MAX = 128 };

/* Columns that a call makes; of a count of 0 it makes all. */
typedef struct keel_columns {
    int64_t first, count;
} keel_columns;

/* One call of a kernel: pointers for `rows` rows, bound before the step. A pointer points to the
 * first row of this call; rows lie one after another, and a row of input i has the elements of
 * node->in[i].shape. */
typedef struct keel_call {
    const keel_node *node;
    const keel_step_facts *step;
    int64_t rows;
    int64_t row; /* first row of this call, in the step; random numbers are keyed by step->first_row
                    + row */

    const void **in;     /* [n_in] */
    void **out;          /* [n_out]; NULL entry: nothing reads it, so an op with several outputs may
                            leave it out. If an op has one output, it is never NULL */
    void **saved;        /* [n_saved] */
    const void **weight; /* [n_weight] */

    /* backward */
    const void **out_grad; /* [n_out]; NULL entry: nothing flows back, as if it were 0. If an op has
                              one output, it is never NULL */
    void **in_grad;        /* [n_in]; NULL entry: not wanted */
    const bool *in_adds;   /* [n_in]; true: add to in_grad[i], false: overwrite it */
    void **weight_grad;    /* [n_weight]; NULL entry: frozen */
    bool weight_adds;      /* true: add to weight_grad, false: overwrite it */

    double *partial;      /* the records of this call's rows, one after another: overwritten */
    const double *merged; /* the merged record of all rows */
    const double *merged_forward; /* in backward: what forward had merged */
    void *scratch;              /* the worker's, at least as large as prepare or infer asked for */
    bool scratch_ready;         /* the last call of this node left scratch, for the same row */
    void *plan;                 /* what the kernel's prepare made */
    struct keel_device *device; /* whose memory the pointers point to; NULL: the host's */
    const keel_step_facts *facts; /* with a device, *step there, with its seeds. Kernels read it
                                     when they run, since a graph runs in other steps again */
    keel_columns columns;         /* see keel_op.columns */
} keel_call;

typedef void (*keel_run)(const keel_call *c);

/* What place i of the first dim of an output's row is made of, in an input's row. */
typedef enum keel_going {
    KEEL_GOES_NOT,   /* that dim has no such places */
    KEEL_GOES_ALONG, /* of place i of its first dim */
    KEEL_GOES_WHOLE, /* of all of it */
} keel_going;

/* Combines the records of neighbouring rows, left and right, into `out`, which may be one of them.
 */
typedef struct keel_record {
    double rows;
    const double *data;
} keel_record;
typedef void (*keel_combine)(const keel_node *n, keel_record left, keel_record right, double *out);

enum {
    KEEL_READS_IN = 1, /* all inputs */
    KEEL_READS_OUT = 2,
    KEEL_READS_SAVED = 4,
    KEEL_READS_FIRST = 8,     /* in[0] only */
    KEEL_READS_FIRST_OUT = 16 /* out[0] only */
};

/* Test cases for the conformance test: shapes of one row and arguments as words. */
typedef struct keel_case {
    const char *in;      /* "4,5,3" or, for several inputs, "4,5,3|4,5,1" */
    const char *weights; /* "3,3,3,8|8"; NULL: none */
    const char *args;    /* "strides 2,2 groups 2", read by args_for_case; NULL: its defaults */
} keel_case;

/* One tile of a weight gradient over all rows of the step, whichever workers hold them. */
typedef struct keel_span { /* neighbouring rows */
    const void *in, *out_grad;
    int64_t rows;
} keel_span;

/* An update so simple that the kernel that computes the gradient g may do it at once. In float32,
 * with each product and sum rounded separately: m = m keep - g scale rate; w = w + m. */
typedef struct keel_tile_move {
    float *w, *m;
    float keep, scale, rate;
    bool moved; /* out: true if the kernel did it; grad is then not written */
} keel_tile_move;

/* The first part of a tile that is not 0. Elements before `skip` are 0; grad has the `count`
 * elements after them. Elements after those need another call. */
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
                            next: a kernel may prefetch them */
    void *scratch;           /* the worker's, at least as large as prepare asked for */
    bool scratch_ready;      /* the last call left scratch for this weight and these rows */
    const void *plan;        /* what prepare made */
    bool *checked, *bad;  /* out: whether the kernel has looked for numbers that are not finite, and
                            whether it found any; may be NULL */
    keel_tile_move *move; /* the update that a kernel may do; NULL: only the gradient is wanted */
    keel_tile_part *part; /* out: may be narrowed to what is not 0; NULL: all is wanted */
} keel_tile_call;

typedef void (*keel_tile_run)(const keel_tile_call *c);

/* Functions come in pairs: [0] float32, [1] float64; see ops/real.h. */
struct keel_op {
    const char *name; /* "conv2d"; the file is name.c, the symbol keel_op_<name> */
    size_t args_size; /* copied into the graph: plain bytes, whose only pointers are to ops */
    /* As many as these args have, where their last member may go on behind args_size. NULL: no. */
    size_t (*args_bytes)(const void *args);

    /* Checks node->in, weight and args; fills out, saved, records, scratch. Called by
     * keel_node_infer, which clears these first. KEEL_ESHAPE or KEEL_EUNSUP, with a text that says
     * which dims do not fit. */
    keel_status (*infer)(keel_node *n);

    /* Computes out (and saved) from in and weights. Rows are independent, except for `merged`. */
    keel_run forward[2];
    /* Of an op whose outputs may be elements of in[0] as they are: forward on elements of `element`
     * bytes, of whatever type. The input may be the output if their shapes are alike. false: this
     * node also computes, and nothing was done. rows 0 only asks. NULL: it always computes. */
    bool (*move)(const keel_call *c, size_t element);
    /* The float32 forward on an in[0] of bytes, with the bits of their copy in float32. NULL: they
     * must be copied. */
    keel_run forward_bytes;
    /* Computes in_grad from out_grad. NULL: no gradient flows (labels, integer inputs). */
    keel_run backward[2];
    unsigned backward_reads;
    /* Computes weight_grad from in, saved and out_grad over all rows of the call. NULL: no weights.
     */
    keel_run weights[2];
    /* The same tile by tile, by the owner of the tile, after backward. So workers hold no gradients
     * of their own that must be added, and because rows are taken one after another, neither the
     * cut of the rows nor that of the tiles changes a bit. Used if a row has one place (rank 1).
     * NULL: weights. The float32 function reads spans of bfloat16 if the node stores them so
     * (held). */
    keel_tile_run weights_tile[2];
    unsigned weights_reads; /* KEEL_READS_IN ...; out_grad is always read */
    /* weights reads what backward writes to saved values, so backward runs before it, even if no
     * gradient of an input is wanted. */
    bool weights_after_backward;

    /* The gradient of input k as ops, so that it can be differentiated: see ops/derive.h. Rows must
     * be independent. NULL: it cannot. */
    keel_status (*derive)(const keel_derivation *d, int k, int *out);

    /* How often one call reads weight `weight`, independent of its number of rows: an op over time
     * reads it at each step; an op that looks up rows reads only those (0). Decides how many rows a
     * call gets. NULL: each weight once. */
    int64_t (*weight_reads)(const keel_node *n, int weight);

    /* For ops that must see all rows of the global step (BatchNorm). partial writes a record for
     * each row of the call to c->partial, one after another, from in (and, in backward, out_grad).
     * The engine combines them in the order of the step's tree (base/tree.h), so no cut of the rows
     * changes a bit. combine NULL: records are added, as records of backward always are; combine of
     * an op without partial is of its sums. merged: {rows, the record of all rows}. */
    keel_run partial[2];
    keel_run partial_backward[2];
    keel_combine combine;
    /* Weight gradients are read from the merged backward record, by one worker. Holds for nodes
     * with partial_backward > 0; other nodes of the op run weights as usual. */
    bool weights_from_merged;
    /* After the commit point, once per step, for nodes in training mode: moves state weights
     * (moving mean). merged: that of forward, node->merged doubles, which may be 0. weight[] is
     * writable. */
    void (*commit)(const keel_node *n, const double *merged, void *const *weight);

    /* Floating-point operations of forward for one row; backward and weights have as many each.
     * NULL: so few that the bytes decide the cost. */
    double (*flops)(const keel_node *n);
    /* Those of backward for one row, if they are not as many. NULL: as forward. */
    double (*backward_flops)(const keel_node *n);
    bool costly; /* a function such as exp or tanh of each element: slow in plain C */

    /* Of an image [H, W, C]: each pixel of the output is made of that pixel of the input alone, by
     * what does not depend on its place. So it may be run on some of the lines, and on lines in
     * another order. forward may then write over its input. NULL: no. */
    bool (*by_pixels)(const keel_node *n);

    /* How input k goes with the first dim of the only output, so that a large row can be made in
     * parts by several workers: each is a call of a node of some of its places. Backward goes
     * likewise: the gradient of an input that goes along is made of its own places of the output's
     * gradient, and of inputs that are whole. For nodes without weights, records and random
     * numbers, whose kernels make no plan. NULL: it does not. ops/goes.h has what ops share. */
    keel_going (*goes)(const keel_node *n, int k);
    /* Of values of the node's real type, a call may make some columns alone: in backward of the
     * gradient of a second input; of an only input that is whole, those that are places of out. */
    bool columns;

    bool casts; /* reads and writes the types of the node's specs, also narrow ones: the engine
                 * never widens
                 */
    bool loss;  /* gradients begin here: backward has no out_grad, and computes the sums */
    /* The program may let out share the memory of in[0], and in_grad[0] that of out_grad. */
    bool view;    /* the same bytes in another shape: forward and backward need not run */
    bool inplace; /* pointwise: each element is read before it is written. Used if neither backward
                     nor another op reads in[0] */
    bool inplace_second; /* the same for in[1]; for its gradient only if weight gradients are read
                            from the merged record */

    const keel_case *cases;                              /* at least two, ends with in NULL */
    void (*args_for_case)(void *args, const char *text); /* NULL: args stay zero */
    /* Bytes that weights_tile is computed in, for steps of so many rows; NULL: none. */
    int64_t (*tile_scratch)(const keel_node *n, int64_t rows);
};

/* The passes of an op that a kernel can run. */
typedef enum keel_pass {
    KEEL_FORWARD,
    KEEL_BACKWARD,
    KEEL_WEIGHTS,
    KEEL_PARTIAL, /* the op's partial and partial_backward */
    KEEL_PARTIAL_BACKWARD,
    KEEL_PASS_COUNT
} keel_pass;

/* A copy of weights in another layout, shared by all workers, and made again after the weights have
 * moved. */
typedef struct keel_derived keel_derived;
struct keel_derived {
    void *data; /* `bytes`, 64-byte aligned, allocated by derive */
    size_t bytes;
    int weight;   /* index into node->weight */
    uint64_t key; /* kernels that ask with the same key share the copy */
    void (*refresh)(const keel_derived *d, const void *weight); /* writes data */
    /* Writes what is made of rows [first, first + count) of the weight, seen as a matrix of its
     * last dim, so that whoever moves them makes it while they are in the cache. Both are multiples
     * of `rows`, but for the count of the last rows. NULL: there is no such part. */
    void (*refresh_rows)(const keel_derived *d, const void *weight, int64_t first, int64_t count);
    int64_t rows;
    void (*release)(void *plan); /* frees plan; NULL: nothing */
    void *plan;
};

/* What prepare may ask for. */
typedef struct keel_prepare {
    const keel_node *node;
    keel_pass pass;
    int64_t rows;
    bool in_adds, weight_adds;  /* as in the call (in_adds: of input 0) */
    keel_float32 float32;       /* how products may be computed */
    struct keel_device *device; /* that will run it; NULL: the host */
    bool measured;              /* ops/tuned.h names this kernel for the node and pass */
    int64_t scratch;            /* out: bytes of scratch */
    void *plan;                 /* out */
    /* Asks for a derived copy: returns the shared one with that key, or takes over *want with its
     * plan and allocates data. Valid as long as the program lives. */
    keel_status (*derive)(void *context, keel_derived *want, const keel_derived **got);
    void *context;
} keel_prepare;

/* The order in which the kernels of an op are asked: the last of this list first, and after all of
 * them the reference. No two kernels of an op have the same priority. */
typedef enum keel_priority {
    /* Our kernels with vectors of 8 and of 16 lanes, for ops that no library has. */
    KEEL_PRIORITY_VECTOR_AVX2,
    KEEL_PRIORITY_VECTOR_AVX512,
    /* oneDNN: its kernel for any shape; its matrix product, if a convolution is one. */
    KEEL_PRIORITY_LIBRARY,
    KEEL_PRIORITY_LIBRARY_1X1,
    /* Values stored in bfloat16: our products of pairs, by Winograd for windows of 3, 3x3,
     * 2x2 and larger. On the tiles of AMX, which multiply more at a time: our convolutions, which
     * were not measured yet beside oneDNN's, and oneDNN's. */
    KEEL_PRIORITY_PAIRS,
    KEEL_PRIORITY_PAIRS_WINOGRAD_1D,
    KEEL_PRIORITY_PAIRS_WINOGRAD,
    KEEL_PRIORITY_PAIRS_WINOGRAD_2X2,
    KEEL_PRIORITY_PAIRS_WINOGRAD_PIECES,
    KEEL_PRIORITY_OWN_CONV_TILES,
    KEEL_PRIORITY_TILES,
    /* Our dense on those tiles, for rows of one place: measured parts of it were several times as
     * fast as pairs. */
    KEEL_PRIORITY_OWN_TILES,
    /* Our convolutions of 1x1 windows, which need no copy in another layout as a library does. */
    KEEL_PRIORITY_OWN_1X1_AVX2,
    KEEL_PRIORITY_OWN_1X1_AVX512,
    /* Our kernels for ops that a library has, too, but slower. */
    KEEL_PRIORITY_OWN_AVX2,
    /* Convolutions by Winograd: tiles of 2x2 outputs; with strides; over one dim; tiles of 4x4,
     * which need the fewest products; windows of 2x2; larger windows in pieces by these. All with
     * 16 lanes come before those with 8. In between comes the kernel for images with few channels.
     */
    KEEL_PRIORITY_WINOGRAD_AVX2,
    KEEL_PRIORITY_WINOGRAD_STRIDED_AVX2,
    KEEL_PRIORITY_WINOGRAD_1D_AVX2,
    KEEL_PRIORITY_FEW_CHANNELS_AVX512,
    KEEL_PRIORITY_WINOGRAD4_AVX2,
    KEEL_PRIORITY_WINOGRAD4_2X2_AVX2,
    KEEL_PRIORITY_WINOGRAD3_2X2_AVX2,
    KEEL_PRIORITY_WINOGRAD_PIECES_AVX2,
    KEEL_PRIORITY_OWN_AVX512,
    KEEL_PRIORITY_WINOGRAD_AVX512,
    KEEL_PRIORITY_WINOGRAD_STRIDED_AVX512,
    KEEL_PRIORITY_WINOGRAD_1D_AVX512,
    KEEL_PRIORITY_WINOGRAD4_AVX512,
    KEEL_PRIORITY_WINOGRAD4_2X2_AVX512,
    KEEL_PRIORITY_WINOGRAD3_2X2_AVX512,
    KEEL_PRIORITY_WINOGRAD_PIECES_AVX512,
    /* Convolutions to few filters and from few channels: take nothing else. */
    KEEL_PRIORITY_FEW_FILTERS_AVX2,
    KEEL_PRIORITY_FEW_FILTERS_AVX512,
    KEEL_PRIORITY_FEW_CHANNELS_BACK_AVX2,
    KEEL_PRIORITY_FEW_CHANNELS_BACK_AVX512,
    /* Convolutions that are depthwise: take nothing else. */
    KEEL_PRIORITY_DEPTHWISE_AVX2,
    KEEL_PRIORITY_DEPTHWISE_AVX512,
    /* float32 by pieces of bfloat16 on AMX: refuses what was not measured to be faster; the same by
     * Winograd. */
    KEEL_PRIORITY_SPLIT,
    KEEL_PRIORITY_SPLIT_WINOGRAD
} keel_priority;

/* A kernel: a faster way to run the passes of one op. */
struct keel_kernel {
    const keel_op *op;
    const char *name; /* "avx512"; the symbol is keel_kernel_<op>_<name> */
    keel_priority priority;
    int needs; /* a keel_cpu_isa, for which its file is compiled. No function of the file, not even
                  prepare, may be called on a lesser processor (see graph/choose.h) */
    bool vendor; /* the bits of a row may depend on how many rows a call has */
    /* Whether the kernel can run this pass for that many rows. KEEL_OK: p->plan and p->scratch are
     * set; KEEL_EUNSUP: ask the next kernel; anything else fails the compilation. Pure: the same
     * question has the same answer. */
    keel_status (*prepare)(keel_prepare *p);
    keel_run run[KEEL_PASS_COUNT];
    keel_tile_run weights_tile; /* prepare is called with KEEL_WEIGHTS; its plan is not released */
    int64_t tile_rows; /* rows of the weight: with more it is not faster; 0: a whole tile */
    /* The same for a node whose inputs (except labels and the like), output and their gradients are
     * stored in bfloat16 (node->held): in, out, out_grad and in_grad point to keel_bf16; weights,
     * weight gradients, saved values and records are as always. Sums are at least float32; a result
     * is rounded once, to nearest even. If a pass is NULL here, `run` runs on copies widened to
     * float32 (graph/widen.h), prepared with the widened node. */
    keel_run narrow[KEEL_PASS_COUNT];
    keel_tile_run narrow_tile;
    keel_run half[KEEL_PASS_COUNT]; /* the same of float16, keel_f16 */
    void (*release)(void *plan);
};

/* Reports a failure inside a run. Kernels return no status, so a kernel whose vendor library fails
 * calls this once, and the step fails at its next meeting with the error text of the thread. */
void keel_call_failed(const keel_call *c, keel_status s);
/* What the calls of this thread have reported since the last time: the first failure, or KEEL_OK;
 * keel_error() has the text. The engine asks after each segment. */
keel_status keel_call_status_take(void);

const keel_op *keel_op_find(const char *name);
extern const keel_op *const keel_ops[]; /* generated from the folder; ends with NULL */
extern const keel_kernel *const keel_kernels[];

/* A kernel's file declares the op it is for, src/ops/NAME.c; a name that is not there fails at
 * link. ops/all.h declares them all. */
#define KEEL_USES_OP(name) extern const keel_op keel_op_##name

/* Combines records of `length` doubles by `combine`; if that is NULL, adds them. */
void keel_combine_records(const keel_node *n, keel_combine combine, int64_t length,
                          keel_record left, keel_record right, double *out);
/* Merges the records of all rows of a step, which are overwritten. */
void keel_node_merge(const keel_node *n, bool backward, double *records, int64_t rows,
                     double *merged);

/* Adds an output or a saved value to a node whose infer is running. KEEL_ENOMEM. */
keel_status keel_node_add_out(keel_node *n, const keel_spec *spec);
keel_status keel_node_add_saved(keel_node *n, const keel_spec *spec);
/* Runs the op's infer, also on a node that has been inferred before. */
keel_status keel_node_infer(keel_node *n);
void keel_node_clear(keel_node *n); /* frees what infer made */

/* Doubles that one row leaves in a call of the pass, which are the first of a record. */
static inline int64_t keel_node_leaf(const keel_node *n, keel_pass pass)
{
    if (pass <= KEEL_BACKWARD) return n->sums;
    if (pass < KEEL_PARTIAL) return 0;
    const int64_t record = pass == KEEL_PARTIAL ? n->partial : n->partial_backward;
    return record > 0 && n->leaf > 0 ? n->leaf : record;
}

static inline int64_t keel_row_count(const keel_spec *s) /* elements of one row */
{
    return keel_shape_count(&s->shape);
}

#endif
