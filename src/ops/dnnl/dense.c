/* dense with oneDNN, all three passes: see _product.c. */
#include "ops/dnnl/_product.h"

static keel_status prepare(keel_prepare *p)
{
    return keel_product_dnnl_prepare(p, NULL);
}

const keel_kernel keel_kernel_dense_dnnl = {
    .op = "dense",
    .name = "dnnl",
    .priority = 100,
    .vendor = true,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = keel_product_dnnl_forward,
             [KEEL_BACKWARD] = keel_product_dnnl_backward,
             [KEEL_WEIGHTS] = keel_product_dnnl_weights },
    .release = keel_product_dnnl_release,
};
