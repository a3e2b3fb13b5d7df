/* Rectifier: y = min(x, max_value) where x > threshold, else negative_slope (x - threshold).
 * Backward reads the output: no argument may be negative (Keras refuses them, too), so the sign of
 * y tells on which side x was, and the input is not kept. At the threshold y is 0; the slope there
 * is 0, as in Keras, but for a leaky rectifier, which Keras leaves to TensorFlow's. */
#ifndef REAL
#include "ops/goes.h"
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    const keel_relu_args *a = n->args;
    if (!(a->negative_slope >= 0 && a->threshold >= 0) || (a->capped && !(a->max_value >= 0)))
        return keel_fail(KEEL_EARG,
                         "relu: negative_slope %g, threshold %g and max_value %g must not be "
                         "negative",
                         a->negative_slope, a->threshold, a->max_value);
    return keel_infer_like(n);
}

#define REAL_FILE "ops/relu.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_relu_args *a = args;
    a->capped = keel_case_number(text, "max_value", &a->max_value) > 0;
    keel_case_number(text, "negative_slope", &a->negative_slope);
    keel_case_number(text, "threshold", &a->threshold);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_relu_args *a = d->node->args;
    int slope;
    if (a->capped || a->threshold != 0)
        return keel_fail(KEEL_EUNSUP, "relu: its gradient cannot be differentiated with a "
                                      "max_value or a threshold");
    KEEL_TRY(keel_derive_choice(d, 1, a->negative_slope, &slope));
    return keel_derive_times(d, slope, out);
}

const keel_op keel_op_relu = {
    .name = "relu",
    .args_size = sizeof(keel_relu_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .backward_reads = KEEL_READS_OUT,
    .goes = keel_goes_like,
    .inplace = true,
    .cases = (const keel_case[]){ { "2,3", NULL, NULL },
                                  { "1000", NULL, NULL },
                                  { "4,5,3", NULL, "max_value 1 negative_slope 0.25" },
                                  { "40", NULL, "max_value 0.75 negative_slope 0.5 threshold 0.5" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const REAL slope = (REAL)a->negative_slope, threshold = (REAL)a->threshold;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++)
        y[i] = !(x[i] <= threshold) ? x[i] /* NaN stays */
               : slope != 0         ? slope * (x[i] - threshold)
                                    : 0;
    if (!a->capped) return;
    const REAL max = (REAL)a->max_value;
    for (int64_t i = 0; i < count; i++) y[i] = y[i] > max ? max : y[i];
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_relu_args *a = c->node->args;
    const REAL below = (REAL)a->negative_slope, at = a->capped || a->threshold != 0 ? 0 : below;
    const REAL max = a->capped ? (REAL)a->max_value : (REAL)INFINITY;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *y = c->out[0], *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    for (int64_t i = 0; i < count; i++) {
        const REAL low = (y[i] < 0 ? below : at) * dy[i], high = y[i] >= max ? 0 : dy[i];
        dx[i] = (c->in_adds[0] ? dx[i] : 0) + (y[i] > 0 ? high : low);
    }
}
#endif
