/* dense with oneDNN, all three passes: see _product.c. */
#include "ops/dnnl/_product.h"

KEEL_USES_OP(dense);

static keel_status prepare(keel_prepare *p)
{
    return keel_product_dnnl_prepare(p, NULL);
}

const keel_kernel keel_kernel_dense_dnnl = {
    .op = &keel_op_dense,
    .name = "dnnl",
    .priority = KEEL_PRIORITY_LIBRARY,
    .vendor = true,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = keel_product_dnnl_forward,
             [KEEL_BACKWARD] = keel_product_dnnl_backward,
             [KEEL_WEIGHTS] = keel_product_dnnl_weights },
    .release = keel_product_dnnl_release,
};
