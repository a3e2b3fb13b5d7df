/* See ops/dense.c and _dense.h. */
#include "ops/cuda/_dense.h"

CUDA_KERNEL(dense) = { .op = &keel_op_dense,
                       .name = "cublaslt",
                       .vendor = true,
                       .prepare = dense_prepare<false>,
                       .run = { dense_forward<float, false>, dense_backward<float, false>,
                                dense_weights<float, false> },
                       .narrow = { dense_forward<bf16, false>, dense_backward<bf16, false>,
                                   dense_weights<bf16, false> },
                       .half = { dense_forward<f16, false>, dense_backward<f16, false>,
                                 dense_weights<f16, false> },
                       .release = dense_release };
