/* A border of zeros around an image. Keras: ZeroPadding2D. */
#ifndef REAL
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    enum { LIMIT = 1 << 24 };
    const keel_zero_pad2d_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_image(n));
    keel_shape out = n->in[0].shape;
    for (int i = 0; i < 4; i++) {
        if (a->pad[i] < 0 || a->pad[i] > LIMIT)
            return keel_fail(KEEL_EARG, "zero_pad2d: padding %lld is not from 0 to %d",
                             (long long)a->pad[i], (int)LIMIT);
        out.dim[i / 2] += a->pad[i];
    }
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/zero_pad2d.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_case_ints(text, "pad", ((keel_zero_pad2d_args *)args)->pad, 4);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_zero_pad2d_args *a = d->node->args;
    keel_slice_args within = keel_slice_all(&d->node->in[0].shape);
    within.begin[0] = a->pad[0];
    within.begin[1] = a->pad[2];
    return keel_derive_one(d, &keel_op_slice, &within, d->grad, out);
}

const keel_op keel_op_zero_pad2d = {
    .name = "zero_pad2d",
    .args_size = sizeof(keel_zero_pad2d_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "2,3,4", NULL, "pad 1,2,0,3" },
                                  { "3,3,1", NULL, "pad 1,1,1,1" },
                                  { "2,2,2", NULL, NULL },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
static void REAL_(forward)(const keel_call *call)
{
    const keel_zero_pad2d_args *a = call->node->args;
    const int64_t *in = call->node->in[0].shape.dim, *out = call->node->out[0].shape.dim;
    const int64_t in_line = in[1] * in[2], out_line = out[1] * out[2];
    for (int64_t row = 0; row < call->rows; row++) {
        const REAL *x = (const REAL *)call->in[0] + row * in[0] * in_line;
        REAL *y = (REAL *)call->out[0] + row * out[0] * out_line;
        memset(y, 0, (size_t)(out[0] * out_line) * sizeof(REAL));
        for (int64_t h = 0; h < in[0]; h++)
            memcpy(y + (h + a->pad[0]) * out_line + a->pad[2] * out[2], x + h * in_line,
                   (size_t)in_line * sizeof(REAL));
    }
}

static void REAL_(backward)(const keel_call *call)
{
    const keel_zero_pad2d_args *a = call->node->args;
    const int64_t *in = call->node->in[0].shape.dim, *out = call->node->out[0].shape.dim;
    const int64_t in_line = in[1] * in[2], out_line = out[1] * out[2];
    for (int64_t line = 0; call->in_grad[0] && line < call->rows * in[0]; line++) {
        const int64_t row = line / in[0], h = line % in[0] + a->pad[0];
        const REAL *dy =
            (const REAL *)call->out_grad[0] + (row * out[0] + h) * out_line + a->pad[2] * out[2];
        REAL *dx = (REAL *)call->in_grad[0] + line * in_line;
        for (int64_t i = 0; i < in_line; i++) dx[i] = call->in_adds[0] ? dx[i] + dy[i] : dy[i];
    }
}
#endif
