/* Cast between float32 and bfloat16, 8 or 16 elements at a time. The types are the node's, so these
 * are plain passes, not narrow ones. */
#include "ops/x86/_vector.h"

KEEL_USES_OP(cast);

/* To bfloat16 from `from`, or to float32. */
static void to_narrow(keel_bf16 *to, const void *from, keel_dtype type, int64_t n, bool adds)
{
    if (type == KEEL_FLOAT32)
        VECTOR_MOVE(to, (const float *)from, n, adds);
    else
        VECTOR_MOVE(to, (const keel_bf16 *)from, n, adds);
}

static void to_wide(float *to, const void *from, keel_dtype type, int64_t n, bool adds)
{
    if (type == KEEL_FLOAT32)
        VECTOR_MOVE(to, (const float *)from, n, adds);
    else
        VECTOR_MOVE(to, (const keel_bf16 *)from, n, adds);
}

static void forward(const keel_call *c)
{
    const keel_dtype to = c->node->out[0].dtype, from = c->node->in[0].dtype;
    const int64_t n = c->rows * keel_row_count(&c->node->out[0]);
    if (to == KEEL_FLOAT32)
        to_wide(c->out[0], c->in[0], from, n, false);
    else
        to_narrow(c->out[0], c->in[0], from, n, false);
}

static void backward(const keel_call *c)
{
    const keel_dtype to = c->node->in[0].dtype, from = c->node->out[0].dtype;
    const int64_t n = c->rows * keel_row_count(&c->node->out[0]);
    if (!c->in_grad[0]) return;
    if (to == KEEL_FLOAT32)
        to_wide(c->in_grad[0], c->out_grad[0], from, n, c->in_adds[0]);
    else
        to_narrow(c->in_grad[0], c->out_grad[0], from, n, c->in_adds[0]);
}

static keel_status prepare(keel_prepare *p)
{
    const keel_dtype in = p->node->in[0].dtype, out = p->node->out[0].dtype;
    if (!keel_dtype_flows(in) || in == KEEL_FLOAT16 || out == KEEL_FLOAT16) return KEEL_EUNSUP;
    return vector_prepare(p);
}

const keel_kernel VECTOR_KERNEL(cast) = {
    .op = &keel_op_cast,
    .name = VECTOR_NAME,
    .needs = VECTOR_LEVEL,
    .priority = VECTOR_PRIORITY(VECTOR),
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward, [KEEL_BACKWARD] = backward },
};
