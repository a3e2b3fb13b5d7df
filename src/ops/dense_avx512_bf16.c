/* dense on bfloat16 values, all three passes: see _product_avx512_bf16.c. */
#include "ops/_product_avx512_bf16.h"

const keel_kernel keel_kernel_dense_avx512_bf16 = {
    .op = "dense",
    .name = "avx512_bf16",
    .priority = 200,
    .prepare = keel_product_bf16_prepare,
    .narrow = { [KEEL_FORWARD] = keel_product_bf16_forward,
                [KEEL_BACKWARD] = keel_product_bf16_backward,
                [KEEL_WEIGHTS] = keel_product_bf16_weights },
    .narrow_tile = keel_product_bf16_tile,
};
