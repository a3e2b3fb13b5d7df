/* See ops/dense_transposed.c and _dense.h. */
#include "ops/cuda/_dense.h"

CUDA_KERNEL(dense_transposed) = {
    .op = &keel_op_dense_transposed,
    .name = "cublaslt",
    .vendor = true,
    .prepare = dense_prepare<true>,
    .run = { dense_forward<float, true>, dense_backward<float, true>, dense_weights<float, true> },
    .narrow = { dense_forward<bf16, true>, dense_backward<bf16, true>, dense_weights<bf16, true> },
    .half = { dense_forward<f16, true>, dense_backward<f16, true>, dense_weights<f16, true> },
    .release = dense_release
};
