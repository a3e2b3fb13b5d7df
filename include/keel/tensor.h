/* Host tensors: shape, type and row-major memory. */
#ifndef KEEL_TENSOR_H
#define KEEL_TENSOR_H
#include <keel/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_dtype {
    KEEL_FLOAT32,
    KEEL_FLOAT64,
    KEEL_UINT8,
    KEEL_INT32,
    KEEL_INT64,
    KEEL_BOOL,   /* one byte, 0 or 1 */
    KEEL_STRING, /* keel_string of dataset.h: texts, for layers that look them up */
    KEEL_DTYPE_COUNT
} keel_dtype;

/* How dense layers and convolutions compute products of float32 values. */
typedef enum keel_float32 {
    KEEL_FLOAT32_EXACT, /* multiply-adds, or if measured to be faster and with the same accuracy,
                           AMX with each value as three bfloat16 numbers */
    KEEL_FLOAT32_FMA,   /* only multiply-adds of float32 */
    KEEL_FLOAT32_FAST   /* AMX with each value as two bfloat16 numbers: about 16 bits */
} keel_float32;

enum { KEEL_RANK_MAX = 6 };

/* An open dim, Keras's None, of a model's input or output or of a dataset's field: its size depends
 * on the rows. Tensors have no open dims. */
enum { KEEL_DIM_OPEN = -1 };

typedef struct keel_shape {
    int rank; /* 0: one number */
    int64_t dim[KEEL_RANK_MAX];
} keel_shape;

typedef struct keel_tensor {
    keel_dtype dtype;
    keel_shape shape; /* of a tensor of rows, the first dim is their number */
    void *data;       /* dense, row-major */
} keel_tensor;

/* Create a tensor of zeros.
 *
 * Returns  KEEL_OK; KEEL_ESHAPE: a dim is negative, the rank is too high or the size overflows;
 *          KEEL_ENOMEM
 * Owns     the caller frees *out with keel_tensor_free; on failure *out is unchanged
 * Threads  any */
keel_status keel_tensor_create(keel_tensor *out, keel_dtype dtype, const keel_shape *shape);

/* Free a tensor's memory; the tensor becomes empty. NULL and empty tensors are allowed.
 *
 * Returns  nothing
 * Owns     frees t->data
 * Threads  any, not concurrently on one tensor */
void keel_tensor_free(keel_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
