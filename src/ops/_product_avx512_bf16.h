/* What dense_avx512_bf16.c and conv2d_1x1_avx512_bf16.c share: see _product_avx512_bf16.c. */
#ifndef KEEL_OPS_PRODUCT_AVX512_BF16_H
#define KEEL_OPS_PRODUCT_AVX512_BF16_H
#include "ops/op.h"

/* For nodes that are held in bfloat16: dense, and conv2d with 1x1 windows and any strides. */
keel_status keel_product_bf16_prepare(keel_prepare *p);
void keel_product_bf16_forward(const keel_call *c);
void keel_product_bf16_backward(const keel_call *c);
void keel_product_bf16_weights(const keel_call *c);
void keel_product_bf16_tile(const keel_tile_call *c); /* rows of one place */

#endif
