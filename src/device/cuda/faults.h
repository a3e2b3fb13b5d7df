/* What kernels find wrong with the data: an id that is in no table, a label of no class. A kernel
 * cannot fail, so it leaves one word, and whoever waits for the device (finish) makes the error of
 * it. The word lies in memory that the device and the host share, so that it costs nothing while
 * all is well. Of several faults the one of the lowest row is kept.
 *
 *     63 .. 40  row of the step    39 .. 32  which of the nodes below    31 .. 0  the number
 *
 * The number is an int32 where the data are whole numbers, cut to its range; else a float. */
#ifndef KEEL_DEVICE_CUDA_FAULTS_H
#define KEEL_DEVICE_CUDA_FAULTS_H
#include "device/cuda/gpu.h"
#define _Alignas alignas
extern "C" {
#include "ops/op.h"
}

typedef unsigned long long cuda_word;
static const cuda_word CUDA_NO_FAULT = ~0ull;

/* What a number is that a node reports. */
enum cuda_fault_kind {
    CUDA_FAULT_ID,    /* of a row of the node's table, in input 0 */
    CUDA_FAULT_LABEL, /* of no class; of a loss or a metric, in input 1, as any below */
    CUDA_FAULT_SIDE   /* of no side of a margin */
};

struct cuda_faults {
    enum { NODES = 256, ROWS = 1 << 24 };
    cuda_word *word;             /* the device's pointer */
    volatile cuda_word *on_host; /* the host's pointer to the same */
    const keel_node *node[NODES];
    cuda_fault_kind kind[NODES];
    int n;
};

/* For a launch: what its kernel needs to report a fault of a node. */
struct cuda_report {
    cuda_word *word;
    cuda_word node; /* its number */
    int64_t row;    /* of the step, of the call's first row */
};

static inline cuda_report cuda_report_of(cuda_faults *f, const keel_call *c, cuda_fault_kind kind)
{
    int i = 0;
    while (i < f->n && f->node[i] != c->node) i++;
    if (i == cuda_faults::NODES) i--; /* the last one is taken again */
    f->node[i] = c->node;
    f->kind[i] = kind;
    if (i == f->n) f->n++;
    return { f->word, (cuda_word)i, c->row };
}

/* `row` counts from the call's first. */
static __device__ __forceinline__ void cuda_fault(const cuda_report &r, int64_t row,
                                                  unsigned number)
{
    const int64_t at = r.row + row, last = cuda_faults::ROWS - 1;
    const cuda_word in_step = (cuda_word)(at < last ? at : last);
    atomicMin(r.word, in_step << 40 | r.node << 32 | number);
}

static __device__ __forceinline__ unsigned cuda_number(int64_t x)
{
    const int64_t most = INT32_MAX, least = INT32_MIN;
    return (unsigned)(int32_t)(x > most ? most : x < least ? least : x);
}

static __device__ __forceinline__ unsigned cuda_number(float x)
{
    return __float_as_uint(x);
}

/* The fault as an error, once; KEEL_OK: there is none. All work of the device has ended. */
static inline keel_status cuda_faults_take(cuda_faults *f)
{
    const cuda_word word = *f->on_host;
    if (word == CUDA_NO_FAULT) return KEEL_OK;
    *f->on_host = CUDA_NO_FAULT;
    const keel_node *n = f->node[word >> 32 & 255];
    const cuda_fault_kind kind = f->kind[word >> 32 & 255];
    const keel_dtype type = n->in[kind == CUDA_FAULT_ID ? 0 : 1].dtype;
    const keel_shape *s = &n->in[0].shape;
    const long long row = (long long)(word >> 40);
    const unsigned bits = (unsigned)word;
    float real;
    memcpy(&real, &bits, sizeof real);
    const double number = type < KEEL_DTYPE_COUNT && type != KEEL_FLOAT32 && type != KEEL_FLOAT64
                              ? (double)(int32_t)bits
                              : (double)real;
    switch (kind) { /* the words of the host */
    case CUDA_FAULT_LABEL:
        return keel_fail(KEEL_EDATA,
                         "label %.9g at row %lld of the step is not in 0..%lld, the classes of the "
                         "prediction",
                         number, row, (long long)s->dim[s->rank - 1] - 1);
    case CUDA_FAULT_SIDE:
        return keel_fail(KEEL_EDATA,
                         "target %.9g at row %lld of the step: a hinge loss takes -1 or 1, or 0 "
                         "or 1",
                         number, row);
    default:
        return keel_fail(KEEL_EARG, "layer '%s': there is no row %.10g in a table of %lld",
                         n->layer, number, (long long)n->weight[0].shape.dim[0]);
    }
}

#endif
