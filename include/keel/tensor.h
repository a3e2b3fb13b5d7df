/* Host tensors: shape, type and plain row-major memory. */
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
    KEEL_STRING, /* keel_string of dataset.h: texts on the way to a layer that looks them up */
    KEEL_DTYPE_COUNT
} keel_dtype;

/* How products of float32 values are computed, where dense layers and convolutions multiply. */
typedef enum keel_float32 {
    KEEL_FLOAT32_EXACT, /* as accurate as multiply-adds: by AMX, with each value as three bfloat16
                           numbers, where that was measured to be faster; by multiply-adds elsewhere
                         */
    KEEL_FLOAT32_FMA,   /* multiply-adds of float32 only */
    KEEL_FLOAT32_FAST   /* by AMX, with each value as two bfloat16 numbers: about 16 bits */
} keel_float32;

enum { KEEL_RANK_MAX = 6 };

/* A dim that is open, as None is in Keras: of a model's input or output, or of a field of a
 * dataset, it is what the rows have. Tensors have none. */
enum { KEEL_DIM_OPEN = -1 };

typedef struct keel_shape {
    int rank; /* 0: one number */
    int64_t dim[KEEL_RANK_MAX];
} keel_shape;

typedef struct keel_tensor {
    keel_dtype dtype;
    keel_shape shape; /* the first dim counts rows where the tensor holds rows */
    void *data;       /* dense, row-major */
} keel_tensor;

/* A new tensor of zeros.
 *
 * Returns  KEEL_OK; KEEL_ESHAPE: a dim is negative, the rank is too high or the size overflows;
 *          KEEL_ENOMEM
 * Owns     the caller frees *out with keel_tensor_free; on failure *out is untouched
 * Threads  any */
keel_status keel_tensor_create(keel_tensor *out, keel_dtype dtype, const keel_shape *shape);

/* Give back a tensor's memory; the tensor becomes empty. NULL and empty tensors are fine.
 *
 * Returns  nothing
 * Owns     frees t->data
 * Threads  any, not concurrently on one tensor */
void keel_tensor_free(keel_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
