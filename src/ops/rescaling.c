/* y = x scale + offset. Keras: Rescaling. */
#ifndef REAL
#include "base/clones.h"
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/goes.h"
#include "ops/infer.h"

#define REAL_FILE "ops/rescaling.c"
#include "ops/real.h"

KEEL_CLONES static void rescale_bytes(float *restrict y, const uint8_t *restrict x, int64_t n,
                                      float scale, float offset)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i] * scale + offset;
}

static void forward_bytes(const keel_call *c)
{
    const keel_rescaling_args *a = c->node->args;
    rescale_bytes(c->out[0], c->in[0], c->rows * keel_row_count(&c->node->out[0]), (float)a->scale,
                  (float)a->offset);
}

static bool by_pixels(const keel_node *n)
{
    (void)n;
    return true;
}

static void args_for_case(void *args, const char *text)
{
    keel_rescaling_args *a = args;
    a->scale = 1;
    keel_case_number(text, "scale", &a->scale);
    keel_case_number(text, "offset", &a->offset);
}

static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_rescaling_args *a = d->node->args;
    return keel_derive_with(d, &keel_op_multiply, d->grad, a->scale, out);
}

const keel_op keel_op_rescaling = {
    .name = "rescaling",
    .args_size = sizeof(keel_rescaling_args),
    .infer = keel_infer_like,
    .forward = REALS(forward),
    .forward_bytes = forward_bytes,
    .backward = REALS(backward),
    .derive = derive,
    .goes = keel_goes_like,
    .inplace = true,
    .by_pixels = by_pixels,
    .cases = (const keel_case[]){ { "4,5,3", NULL, "scale 0.00392156862745098 offset -0.5" },
                                  { "7", NULL, "scale 2" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* y may be x */
KEEL_CLONES static void REAL_(rescale)(REAL *y, const REAL *x, int64_t n, REAL scale, REAL offset)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale + offset;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_rescaling_args *a = c->node->args;
    REAL_(rescale)
    (c->out[0], c->in[0], c->rows * keel_row_count(&c->node->out[0]), (REAL)a->scale,
     (REAL)a->offset);
}

static void REAL_(backward)(const keel_call *c)
{
    const REAL scale = (REAL)((const keel_rescaling_args *)c->node->args)->scale;
    const int64_t count = c->rows * keel_row_count(&c->node->out[0]);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    if (!dx) return;
    if (c->in_adds[0])
        for (int64_t i = 0; i < count; i++) dx[i] += dy[i] * scale;
    else
        for (int64_t i = 0; i < count; i++) dx[i] = dy[i] * scale;
}
#endif
