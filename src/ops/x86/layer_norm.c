/* Layer normalisation: see _layer_norm.h. */
#ifndef VALUE
#include "ops/x86/_layer_norm.h"

#define VALUE_FILE "ops/x86/layer_norm.c"
#include "ops/x86/_values.h"

KEEL_USES_OP(layer_norm);

const keel_kernel VECTOR_KERNEL(layer_norm) = {
    .op = &keel_op_layer_norm,
    .name = VECTOR_NAME,
    .priority = VECTOR_PRIORITY(VECTOR),
    .needs = VECTOR_LEVEL,
    .prepare = prepare,
    .run = { [KEEL_FORWARD] = forward_f32,
             [KEEL_BACKWARD] = backward_f32,
             [KEEL_WEIGHTS] = weights_f32 },
    .narrow = { [KEEL_FORWARD] = forward_bf16,
                [KEEL_BACKWARD] = backward_bf16,
                [KEEL_WEIGHTS] = weights_bf16 },
};
#else
#include "ops/x86/_layer_norm.h"

static void VALUE_(forward)(const keel_call *c)
{
    VALUE_(normalize)(c, c->in[0], NULL, NULL, c->out[0]);
}

static void VALUE_(backward)(const keel_call *c)
{
    if (c->in_grad[0]) VALUE_(normalize_back)(c, c->in[0], c->out_grad[0], NULL, 1);
}

static void VALUE_(weights)(const keel_call *c)
{
    VALUE_(normalize_weights)(c, c->in[0], c->out_grad[0]);
}
#endif
