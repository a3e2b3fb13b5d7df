/* See ops/batch_norm.c. */
#include "ops/cuda/_batch_norm_apply.h"

CUDA_KERNEL(batch_norm) = { .op = &keel_op_batch_norm,
                            .name = "cuda",
                            .prepare = batch_norm_prepare,
                            .run = { forward<float>, backward<float>, weights<float>,
                                     partial<float>, partial_backward<float> },
                            .narrow = { forward<bf16>, backward<bf16>, weights<bf16>, partial<bf16>,
                                        partial_backward<bf16> },
                            .half = { forward<f16>, backward<f16>, weights<f16>, partial<f16>,
                                      partial_backward<f16> } };
