/* Going through time: what lstm, gru and simple_rnn share. A step is one product of all rows of the
 * call with recurrent_kernel, and then the cell's gates, a row at a time. Every sum takes its terms
 * in one order, so a row's bits do not depend on the rows beside it. The gradient of
 * recurrent_kernel is one product over all steps of all rows.
 *
 * Each gate has its own product where the state is dropped, because the factors differ. A GRU
 * without reset_after needs the reset gate before its last product: `reset` makes it, and in
 * backward takes the gradient of what it multiplies.
 *
 * States, gates and their gradients are float32 also where inputs and outputs are bfloat16; the
 * products may round them then: _recurrent_products.h. Steps follow
 * one another in _recurrent_time.h.
 *
 * A cell defines step_forward and step_backward below, and then the kernel by RECURRENT_KERNEL. */
#ifndef KEEL_OPS_X86_RECURRENT_H
#define KEEL_OPS_X86_RECURRENT_H
#include "base/memory.h"
#include "ops/recurrent.h"
#include "ops/x86/_blocks.h"
#include "ops/x86/_pointwise.h"

KEEL_USES_OP(hard_sigmoid);
KEEL_USES_OP(relu);
KEEL_USES_OP(sigmoid);
KEEL_USES_OP(tanh);

/* The functions of gates that have vectors here, whose slopes are known from what they gave. */
typedef enum gate_kind {
    GATE_OTHER, /* for the reference */
    GATE_TANH,
    GATE_SIGMOID,
    GATE_LINEAR,
    GATE_RELU,
    GATE_HARD_SIGMOID
} gate_kind;

static gate_kind kind_of(const keel_gate *g)
{
    if (!g->op) return GATE_LINEAR;
    if (g->op == &keel_op_tanh) return GATE_TANH;
    if (g->op == &keel_op_sigmoid) return GATE_SIGMOID;
    if (g->op == &keel_op_hard_sigmoid) return GATE_HARD_SIGMOID;
    const keel_relu_args *a = (const keel_relu_args *)g->args;
    return g->op == &keel_op_relu && !a->capped && a->negative_slope == 0 && a->threshold == 0
               ? GATE_RELU
               : GATE_OTHER;
}

INLINE vf gate_value(gate_kind kind, vf x)
{
    const vf zero = vf_zero();
    switch (kind) {
    case GATE_TANH:
        return tangent(x);
    case GATE_SIGMOID:
        return logistic(x);
    case GATE_RELU:
        return vf_max(zero, x);
    case GATE_HARD_SIGMOID:
        return vf_min(vf_set(1), vf_max(zero, vf_div(vf_add(x, vf_set(3)), vf_set(6))));
    default:
        return x;
    }
}

INLINE vf gate_slope(gate_kind kind, vf y)
{
    const vf zero = vf_zero(), one = vf_set(1);
    switch (kind) {
    case GATE_TANH:
        return vf_sub(one, vf_mul(y, y));
    case GATE_SIGMOID:
        return vf_mul(y, vf_sub(one, y));
    case GATE_RELU:
        return vf_choose(vf_greater(y, zero), one, zero);
    case GATE_HARD_SIGMOID:
        return vf_choose(vf_greater(y, zero), vf_choose(vf_greater(one, y), vf_set(1.0f / 6), zero),
                         zero);
    default:
        return one;
    }
}

/* One step of one row. */
typedef struct step {
    const keel_call *call;
    gate_kind activation, recurrent;
    int64_t units;
    const float *z, *product;    /* [gates U] of the inputs; of the state before */
    const float *before, *carry; /* [U] state and carry before the step; carry NULL: 0 */
    const float *drop;           /* [U] factors of the state for the last gate; NULL: none */
    float *of;                   /* [parts U] what gates give; backward: then their gradients */
    float *h, *cell;             /* forward: [U] the new state and carry; backward: cell is given */
    float *dh, *dc;              /* [U] in: of the state and carry after the step; out: of the carry
                                    before it, and what of dh does not come by the product */
    const float *of_inner; /* [U] reset, backward: gradient of what the reset gate multiplies */
    float *ddrop;          /* [U] of `drop`, added to; NULL: nobody asks */
} step;

static inline void step_forward(const step *s);
static inline void step_backward(const step *s);
typedef void (*reset_run)(const step *s);

/* Runs `with` with constants for the usual functions, and with those of the step for others. */
#define BY_GATES(with, s)                                                                          \
    do {                                                                                           \
        if ((s)->activation == GATE_TANH && (s)->recurrent == GATE_SIGMOID)                        \
            with(s, GATE_TANH, GATE_SIGMOID);                                                      \
        else                                                                                       \
            with(s, (s)->activation, (s)->recurrent);                                              \
    } while (0)

#include "ops/x86/_recurrent_products.h"
#define VALUE_FILE "ops/x86/_recurrent_time.h"
#include "ops/x86/_values.h"

/* resets, resets_back: for a gate before the last product; more: weights besides recurrent_kernel;
 * NULL: there is none. */
#define RECURRENT_KERNEL(stem, resets, resets_back, more)                                          \
    static keel_status prepare(keel_prepare *p)                                                    \
    {                                                                                              \
        return prepare_recurrent(p, &keel_cell_##stem);                                            \
    }                                                                                              \
    RECURRENT_PASSES(stem, f32, resets, resets_back, more)                                         \
    RECURRENT_PASSES(stem, bf16, resets, resets_back, more)                                        \
    VECTOR_BOTH_WEIGHTS(stem, prepare)

#define RECURRENT_PASSES(stem, type, resets, resets_back, more)                                    \
    static void forward_##type(const keel_call *c)                                                 \
    {                                                                                              \
        run_forward_##type(c, &keel_cell_##stem, resets);                                          \
    }                                                                                              \
    static void backward_##type(const keel_call *c)                                                \
    {                                                                                              \
        run_backward_##type(c, &keel_cell_##stem, resets_back);                                    \
    }                                                                                              \
    static void weights_##type(const keel_call *c)                                                 \
    {                                                                                              \
        void (*const others)(const keel_call *) = more;                                            \
        run_weights_##type(c, &keel_cell_##stem);                                                  \
        if (others) others(c);                                                                     \
    }

#endif
