/* The mean over the first axis of the places whose mask is above one half: x [T, C] and mask [T]
 * give [C], or [1, C] with keepdims. If no place is left it is 0 / 0, NaN, as in Keras. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_global_pool2d_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 2, 0, 0));
    const keel_shape *x = &n->in[0].shape, *mask = &n->in[1].shape;
    if (x->rank != 2 || mask->rank != 1 || mask->dim[0] != x->dim[0])
        return keel_fail(KEEL_ESHAPE, "masked_mean: needs values of (T, C) and a mask of (T,)");
    const keel_shape out = a->keepdims ? KEEL_SHAPE(1, x->dim[1]) : KEEL_SHAPE(x->dim[1]);
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/masked_mean.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    ((keel_global_pool2d_args *)args)->keepdims = keel_case_has(text, "keepdims");
}

const keel_op keel_op_masked_mean = {
    .name = "masked_mean",
    .args_size = sizeof(keel_global_pool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "12,5|12", NULL, NULL },
                                  { "20,2|20", NULL, "keepdims" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static int64_t REAL_(places_of)(const REAL *mask, int64_t steps)
{
    int64_t n = 0;
    for (int64_t t = 0; t < steps; t++) n += mask[t] > (REAL)0.5;
    return n;
}

static void REAL_(forward)(const keel_call *call)
{
    const int64_t steps = call->node->in[0].shape.dim[0], c = call->node->in[0].shape.dim[1];
    for (int64_t row = 0; row < call->rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * steps * c;
        const REAL *mask = (const REAL *)call->in[1] + row * steps;
        const double n = (double)REAL_(places_of)(mask, steps);
        REAL *y = (REAL *)call->out[0] + row * c;
        for (int64_t k = 0; k < c; k++) {
            double sum = 0;
            for (int64_t t = 0; t < steps; t++)
                if (mask[t] > (REAL)0.5) sum += x[t * c + k];
            y[k] = (REAL)(sum / n);
        }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const int64_t steps = call->node->in[0].shape.dim[0], c = call->node->in[0].shape.dim[1];
    REAL *dx = call->in_grad[0], *dmask = call->in_grad[1];
    for (int64_t row = 0; dx && row < call->rows; row++) {
        const REAL *mask = (const REAL *)call->in[1] + row * steps;
        const REAL *dy = (const REAL *)call->out_grad[0] + row * c;
        const double n = (double)REAL_(places_of)(mask, steps);
        for (int64_t i = 0; i < steps * c; i++) {
            REAL *to = &dx[row * steps * c + i];
            const double g = mask[i / c] > (REAL)0.5 ? dy[i % c] / n : 0;
            *to = (REAL)(call->in_adds[0] ? *to + g : g);
        }
    }
    for (int64_t i = 0; dmask && !call->in_adds[1] && i < call->rows * steps; i++) dmask[i] = 0;
}
#endif
