/* Mean over the whole image: [H, W, C] -> [C], or [1, 1, C] with keepdims. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"

static keel_status infer(keel_node *n)
{
    const keel_global_pool2d_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    const int64_t c = n->in[0].shape.dim[2];
    const keel_shape out = a->keepdims ? KEEL_SHAPE(1, 1, c) : KEEL_SHAPE(c);
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/global_average_pool2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    ((keel_global_pool2d_args *)args)->keepdims = keel_case_has(text, "keepdims");
}

/* Each place has its part of the mean's gradient. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const int64_t *in = d->node->in[0].shape.dim;
    const keel_shape one = KEEL_SHAPE(1, 1, in[2]);
    int ones, spread;
    KEEL_TRY(keel_derive_choice(d, 1, 1, &ones));
    KEEL_TRY(keel_derive_reshape(d, d->grad, &one, &spread));
    KEEL_TRY(keel_derive_two(d, &keel_op_multiply, spread, ones, out));
    return keel_derive_with(d, &keel_op_multiply, *out, 1 / (double)(in[0] * in[1]), out);
}

const keel_op keel_op_global_average_pool2d = {
    .name = "global_average_pool2d",
    .args_size = sizeof(keel_global_pool2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "4,5,3", NULL, NULL },
                                  { "1,3,70", NULL, "keepdims" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
#include "ops/sums.h"

static void REAL_(forward)(const keel_call *call)
{
    const keel_shape *in = &call->node->in[0].shape;
    const int64_t places = in->dim[0] * in->dim[1], c = in->dim[2];
    for (int64_t row = 0; row < call->rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * places * c;
        REAL *y = (REAL *)call->out[0] + row * c;
        for (int64_t k0 = 0; k0 < c; k0 += KEEL_SUMS_BLOCK) {
            const int64_t nk = c - k0 < KEEL_SUMS_BLOCK ? c - k0 : KEEL_SUMS_BLOCK;
            double acc[KEEL_SUMS_BLOCK] = { 0 };
            for (int64_t p = 0; p < places; p++) REAL_(add_scaled)(acc, 1, x + p * c + k0, nk);
            for (int64_t k = 0; k < nk; k++) y[k0 + k] = (REAL)(acc[k] / (double)places);
        }
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const keel_shape *in = &call->node->in[0].shape;
    const int64_t places = in->dim[0] * in->dim[1], c = in->dim[2];
    const REAL *dy = call->out_grad[0];
    REAL *dx = call->in_grad[0];
    for (int64_t p = 0; dx && p < call->rows * places; p++) {
        const REAL *from = dy + p / places * c;
        REAL *to = dx + p * c;
        for (int64_t k = 0; k < c; k++) {
            const double share = from[k] / (double)places;
            to[k] = (REAL)(call->in_adds[0] ? to[k] + share : share);
        }
    }
}
#endif
