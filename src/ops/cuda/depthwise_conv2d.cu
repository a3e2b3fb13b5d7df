/* See ops/depthwise_conv2d.c and _depthwise.h. */
#include "ops/cuda/_depthwise.h"

CUDA_KERNEL(depthwise_conv2d) = {
    .op = &keel_op_depthwise_conv2d,
    .name = "cuda",
    .prepare = cuda_depthwise_prepare,
    .run = { cuda_depthwise_forward, cuda_depthwise_backward, cuda_depthwise_weights },
    .narrow = { cuda_depthwise_forward, cuda_depthwise_backward, cuda_depthwise_weights },
    .half = { cuda_depthwise_forward, cuda_depthwise_backward, cuda_depthwise_weights },
};
