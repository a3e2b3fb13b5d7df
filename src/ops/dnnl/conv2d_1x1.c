/* conv2d with 1x1 windows as a product of matrices: where every pixel is read, backward, the
 * weight gradient and, without a bias, forward; with strides the weight gradient. See
 * _product.c for why. */
#include "ops/dnnl/_product.h"
#include "ops/args.h"

KEEL_USES_OP(conv2d);

static keel_status prepare(keel_prepare *p)
{
    const keel_conv2d_args *a = p->node->args;
    const int64_t *w = p->node->weight[0].shape.dim;
    const bool pad = a->pad[0] || a->pad[1] || a->pad[2] || a->pad[3];
    if (w[0] != 1 || w[1] != 1 || a->groups != 1 || pad) return KEEL_EUNSUP;
    if (p->pass == KEEL_FORWARD && p->node->n_weight > 1) return KEEL_EUNSUP;
    return keel_product_dnnl_prepare(p, a->strides);
}

const keel_kernel keel_kernel_conv2d_1x1_dnnl = {
    .op = &keel_op_conv2d,
    .name = "1x1_dnnl",
    .priority = KEEL_PRIORITY_LIBRARY_1X1,
    .vendor = true,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = keel_product_dnnl_forward,
             [KEEL_BACKWARD] = keel_product_dnnl_backward,
             [KEEL_WEIGHTS] = keel_product_dnnl_weights },
    .release = keel_product_dnnl_release,
};
