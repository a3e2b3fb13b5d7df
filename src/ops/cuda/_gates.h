/* The functions of gates that kernels have, whose slopes are known from what they gave. A layer
 * with another function is left to the reference. */
#ifndef KEEL_OPS_CUDA_GATES_H
#define KEEL_OPS_CUDA_GATES_H
#include "ops/cuda/_kernel.h"
extern "C" {
KEEL_USES_OP(hard_sigmoid);
KEEL_USES_OP(relu);
KEEL_USES_OP(sigmoid);
KEEL_USES_OP(tanh);
}

enum gate_kind { GATE_OTHER, GATE_TANH, GATE_SIGMOID, GATE_LINEAR, GATE_RELU, GATE_HARD_SIGMOID };

static inline gate_kind gate_kind_of(const keel_gate *g)
{
    if (!g->op) return GATE_LINEAR;
    if (g->op == &keel_op_tanh) return GATE_TANH;
    if (g->op == &keel_op_sigmoid) return GATE_SIGMOID;
    if (g->op == &keel_op_hard_sigmoid) return GATE_HARD_SIGMOID;
    if (g->op != &keel_op_relu) return GATE_OTHER;
    const keel_relu_args *a = reinterpret_cast<const keel_relu_args *>(g->args);
    return !a->capped && a->negative_slope == 0 && a->threshold == 0 ? GATE_RELU : GATE_OTHER;
}

static __device__ __forceinline__ float gate_value(gate_kind kind, float x)
{
    switch (kind) {
    case GATE_TANH:
        return tanhf(x);
    case GATE_SIGMOID:
        return 1 / (1 + expf(-x));
    case GATE_RELU:
        return x <= 0 ? 0 : x; /* NaN stays */
    case GATE_HARD_SIGMOID:
        return x <= -3 ? 0.0f : x >= 3 ? 1.0f : (x + 3) * (1.0f / 6);
    default:
        return x;
    }
}

static __device__ __forceinline__ float gate_slope(gate_kind kind, float y)
{
    switch (kind) {
    case GATE_TANH:
        return 1 - y * y;
    case GATE_SIGMOID:
        return y * (1 - y);
    case GATE_RELU:
        return y > 0 ? 1.0f : 0.0f;
    case GATE_HARD_SIGMOID:
        return y > 0 && y < 1 ? 1.0f / 6 : 0.0f;
    default:
        return 1;
    }
}

#endif
