/* Subtracts a number from scores of attention, [.., T, S], that are masked: by a mask [S], which is
 * above one half where an element counts, or because they are causal. Keras's Attention subtracts
 * 1e9 before its softmax. If all elements of a step are masked, float32 then keeps no digits of its
 * scores, and float64 some. */
#ifndef REAL
#include "ops/masked_scores.h"
#include "ops/cases.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    char x[96], mask[96];
    KEEL_TRY(keel_infer_check(n, n->n_in == 1 ? 1 : 2, 0, 0));
    const keel_shape *in = &n->in[0].shape;
    keel_shape_text(x, in);
    if (in->rank < 2) return keel_fail(KEEL_ESHAPE, "masked_scores: rows of %s, not (.., T, S)", x);
    if (n->n_in == 1 ||
        (n->in[1].shape.rank == 1 && n->in[1].shape.dim[0] == in->dim[in->rank - 1]))
        return keel_infer_out(n, in);
    keel_shape_text(mask, &n->in[1].shape);
    return keel_fail(KEEL_ESHAPE, "masked_scores: a mask of %s does not fit scores of %s", mask, x);
}

#define REAL_FILE "ops/masked_scores.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_masked_scores_args *a = args;
    a->causal = keel_case_has(text, "causal");
    a->less = 3; /* 1e9 would leave no digits to compare */
}

const keel_op keel_op_masked_scores = {
    .name = "masked_scores",
    .args_size = sizeof(keel_masked_scores_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .cases = (const keel_case[]){ { "3,4", NULL, "causal" },
                                  { "2,3,5|5", NULL, NULL },
                                  { "4,3|3", NULL, "causal" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const keel_shape *in = &n->in[0].shape;
    const keel_masked_scores_args *a = n->args;
    const int64_t steps = in->dim[in->rank - 2], s = in->dim[in->rank - 1];
    const int64_t lines = keel_row_count(&n->in[0]) / s;
    for (int64_t i = 0; i < c->rows * lines; i++) {
        const REAL *x = (const REAL *)c->in[0] + i * s;
        const REAL *mask = n->n_in > 1 ? (const REAL *)c->in[1] + i / lines * s : NULL;
        REAL *y = (REAL *)c->out[0] + i * s;
        for (int64_t j = 0; j < s; j++) {
            const bool seen = (!mask || mask[j] > (REAL)0.5) && (!a->causal || j <= i % steps);
            y[j] = seen ? x[j] : x[j] - (REAL)a->less;
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_node *n = c->node;
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0], *dmask = n->n_in > 1 ? c->in_grad[1] : NULL;
    for (int64_t i = 0; dx && i < c->rows * keel_row_count(&n->in[0]); i++)
        dx[i] = (c->in_adds[0] ? dx[i] : 0) + dy[i];
    for (int64_t i = 0; dmask && !c->in_adds[1] && i < c->rows * keel_row_count(&n->in[1]); i++)
        dmask[i] = 0;
}
#endif
