/* What conv2d_dnnl.c and depthwise_conv2d_dnnl.c share: see _conv_dnnl.c. */
#ifndef KEEL_OPS_CONV_DNNL_H
#define KEEL_OPS_CONV_DNNL_H
#include "ops/op.h"

keel_status keel_conv_dnnl_prepare(keel_prepare *p, bool depthwise);
void keel_conv_dnnl_forward(const keel_call *c);
void keel_conv_dnnl_backward(const keel_call *c);
void keel_conv_dnnl_weights(const keel_call *c);
void keel_conv_dnnl_release(void *plan);

#endif
