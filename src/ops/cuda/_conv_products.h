/* Convolutions of float32 as products of matrices, where each multiply-add is one of float32: cuDNN
 * has no fast engine for these in NHWC. Measured on an H200: the 53 convolutions of ResNet-50 at
 * batch 256 take cuDNN 360 ms, and a stride of 2 alone up to 130.
 *
 *     forward   y[places, k]     = windows(x)[places, taps c] F[taps c, k]
 *     data      dx               = the places' shares of dy[places, k] F^T[k, taps c]
 *     filter    dF[taps c, k]    = windows(x)^T dy
 *
 * F lies as Keras has it, so nothing is turned. Windows are copied into scratch for as many rows at
 * a time as fit into the GPU's cache. */
#ifndef KEEL_OPS_CUDA_CONV_PRODUCTS_H
#define KEEL_OPS_CUDA_CONV_PRODUCTS_H
#include "ops/cuda/_conv_graph.h"

struct conv_products;

/* KEEL_EUNSUP: values are not float32, TF32 is allowed, there are groups, or one row has more
 * windows than scratch may hold. `bias`: the run adds one. */
keel_status conv_products_create(const keel_prepare *p, const conv_graph *x, bool bias,
                                 conv_products **out, int64_t *scratch);
void conv_products_destroy(conv_products *pl); /* NULL is allowed */
/* Whether the bias must be in the output before, and the run add to it. */
bool conv_products_fills(const conv_products *pl);
/* x, y and the filter w in Keras's order; which of them is written is the direction's. */
void conv_products_run(const keel_call *c, const conv_products *pl, const float *x, const float *w,
                       const float *y, const float *bias, bool adds);

#endif
