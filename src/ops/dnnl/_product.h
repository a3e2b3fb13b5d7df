/* What dense.c and conv2d_1x1.c share: see _product.c. */
#ifndef KEEL_OPS_DNNL_PRODUCT_H
#define KEEL_OPS_DNNL_PRODUCT_H
#include "ops/op.h"

/* stride: of a 1x1 window over an image, NULL: every place. A stride above 1 is for KEEL_WEIGHTS
 * only. */
keel_status keel_product_dnnl_prepare(keel_prepare *p, const int64_t stride[2]);
void keel_product_dnnl_forward(const keel_call *c);
void keel_product_dnnl_backward(const keel_call *c);
void keel_product_dnnl_weights(const keel_call *c);
void keel_product_dnnl_release(void *plan);

#endif
