/* Products of matrices by cuBLASLt, for dense, dense_transposed, matmul and what goes through time.
 * Matrices are row by row:
 *
 *     y[m, n] = a[m, k] b[k, n] (+ bias[n]), or +=, for each of `batch` neighbouring products
 *
 * cuBLASLt counts column by column. A matrix that lies row by row is to it the transposed one, so
 * it is asked for y^T = b^T a^T, and copies nothing.
 *
 * Sums are float32. Of float32 values they are exact multiply-adds, and with --float32 fast the
 * factors are rounded to TF32, 11 bits. Where the inner dim is cut, the parts are added in a step
 * of their own and not by atomic functions, so a call has the same bits each time. The algorithm is
 * chosen once, by shape and alignment: for rows of 16 bytes or multiples the faster ones. */
#ifndef KEEL_OPS_CUDA_PRODUCT_H
#define KEEL_OPS_CUDA_PRODUCT_H
#include "ops/cuda/_library.h"

struct cuda_matrix {
    bool turned;     /* it lies as its transposed one */
    int64_t stride;  /* elements from one product to the next */
    int aligned;     /* bytes, of all its places: 16, or fewer */
    int64_t row = 0; /* elements from one row to the next, as it lies; 0: they are neighbours */
};

struct cuda_product {
    int64_t m, n, k, batch;
    cuda_matrix a, b, y; /* y is not turned */
    keel_dtype type;     /* of a and b */
    keel_dtype type_out; /* of y and bias: the same, or float32 */
    bool bias;
};

struct cuda_product_plan;

/* KEEL_EUNSUP: there is no cuBLASLt, or it has no algorithm. *scratch: bytes that the run needs,
 * aligned to 256. */
keel_status cuda_product_prepare(const keel_prepare *p, const cuda_product *x,
                                 cuda_product_plan **out, int64_t *scratch);
void cuda_product_release(cuda_product_plan *plan); /* NULL is allowed */
/* false: it could not be launched, which the call's step knows by now. */
bool cuda_product_run(const keel_call *c, const cuda_product_plan *plan, const void *a,
                      const void *b, const void *bias, void *y, bool adds, void *scratch);

#endif
