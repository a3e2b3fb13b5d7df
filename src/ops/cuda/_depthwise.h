/* Depthwise convolutions: depthwise_conv2d, and conv2d with as many groups as channels and outputs,
 * whose kernel [KH, KW, 1, C] lies in memory as that of depthwise_conv2d does. */
#ifndef KEEL_OPS_CUDA_DEPTHWISE_H
#define KEEL_OPS_CUDA_DEPTHWISE_H
#include "ops/cuda/_library.h"

/* For values of any type; no plan is made. */
keel_status cuda_depthwise_prepare(keel_prepare *p);
void cuda_depthwise_forward(const keel_call *c);
void cuda_depthwise_backward(const keel_call *c);
void cuda_depthwise_weights(const keel_call *c);

#endif
