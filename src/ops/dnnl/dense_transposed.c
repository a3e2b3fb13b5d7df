/* dense_transposed with oneDNN: the three products of dense with their sides exchanged (see
 * _product.c). x W^T is dense's backward, dy W its forward, and in dy^T x the gradient of the
 * output stands where dense has its input. */
#include "ops/dnnl/_product.h"

KEEL_USES_OP(dense_transposed);

static keel_status prepare(keel_prepare *p)
{
    static const keel_pass passes[] = { [KEEL_FORWARD] = KEEL_BACKWARD,
                                        [KEEL_BACKWARD] = KEEL_FORWARD,
                                        [KEEL_WEIGHTS] = KEEL_WEIGHTS };
    if (p->pass > KEEL_WEIGHTS) return KEEL_EUNSUP;
    if (p->pass == KEEL_BACKWARD && p->in_adds) return KEEL_EUNSUP; /* dense's forward overwrites */
    keel_prepare turned = *p;
    keel_node node = *p->node;
    node.out = (keel_spec *)(uintptr_t)p->node->in;
    node.in = p->node->out;
    turned.node = &node;
    turned.pass = passes[p->pass];
    KEEL_TRY(keel_product_dnnl_prepare(&turned, NULL));
    p->plan = turned.plan;
    p->scratch = turned.scratch;
    return KEEL_OK;
}

static void forward(const keel_call *c)
{
    const bool adds = false;
    keel_call turned = *c;
    turned.out_grad = c->in;
    turned.in_grad = c->out;
    turned.in_adds = &adds;
    keel_product_dnnl_backward(&turned);
}

static void backward(const keel_call *c)
{
    keel_call turned = *c;
    if (!c->in_grad[0]) return;
    turned.in = c->out_grad;
    turned.out = c->in_grad;
    keel_product_dnnl_forward(&turned);
}

static void weights(const keel_call *c)
{
    keel_call turned = *c;
    turned.in = c->out_grad;
    turned.out_grad = c->in;
    keel_product_dnnl_weights(&turned);
}

const keel_kernel keel_kernel_dense_transposed_dnnl = {
    .op = &keel_op_dense_transposed,
    .name = "dnnl",
    .priority = KEEL_PRIORITY_LIBRARY,
    .vendor = true,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward, [KEEL_WEIGHTS] = weights },
    .release = keel_product_dnnl_release,
};
