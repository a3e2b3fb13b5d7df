/* What the kernels by oneDNN's convolutions share: see _conv.c. */
#ifndef KEEL_OPS_DNNL_CONV_H
#define KEEL_OPS_DNNL_CONV_H
#include "ops/op.h"

/* dense: with several places, as a 1x1 window. */
typedef enum keel_conv_dnnl_op {
    KEEL_CONV,
    KEEL_CONV_3D,
    KEEL_CONV_TRANSPOSE,
    KEEL_CONV_DEPTHWISE,
    KEEL_CONV_DENSE
} keel_conv_dnnl_op;

keel_status keel_conv_dnnl_prepare(keel_prepare *p, keel_conv_dnnl_op op);
/* Only on values stored in bfloat16, and only what oneDNN runs on AMX's tiles. */
keel_status keel_conv_dnnl_prepare_tiles(keel_prepare *p, keel_conv_dnnl_op op);
void keel_conv_dnnl_forward(const keel_call *c);
void keel_conv_dnnl_backward(const keel_call *c);
void keel_conv_dnnl_weights(const keel_call *c);
void keel_conv_dnnl_release(void *plan);

/* What is the same in the kernels that run all passes, in both types. `prepare` is the file's. */
#define KEEL_CONV_DNNL_KERNEL                                                                      \
    .name = "dnnl", .priority = KEEL_PRIORITY_LIBRARY, .vendor = true, .prepare = prepare,         \
    .run = { [KEEL_FORWARD] = keel_conv_dnnl_forward,                                              \
             [KEEL_BACKWARD] = keel_conv_dnnl_backward,                                            \
             [KEEL_WEIGHTS] = keel_conv_dnnl_weights },                                            \
    .narrow = { [KEEL_FORWARD] = keel_conv_dnnl_forward,                                           \
                [KEEL_BACKWARD] = keel_conv_dnnl_backward,                                         \
                [KEEL_WEIGHTS] = keel_conv_dnnl_weights },                                         \
    .release = keel_conv_dnnl_release

#endif
