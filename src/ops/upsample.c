/* Each place along one axis becomes `factor` places: the nearest one repeated, or linear
 * interpolation between neighbours, where the value of a pixel is at its middle. Keras: repeat;
 * resize with interpolation "bilinear", of which it is one of the two dims. */
#ifndef REAL
#include "base/clones.h"
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/derive.h"
#include "ops/infer.h"
#include "ops/upsample.h"
#include <string.h>

static keel_status infer(keel_node *n)
{
    const keel_upsample_args *a = n->args;
    int axis;
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, a->axis, &axis));
    keel_shape out = n->in[0].shape;
    if (a->factor < 1 || a->factor > INT32_MAX || out.dim[axis] > INT32_MAX)
        return keel_fail(KEEL_EARG, "upsample: %lld times %lld places is too many",
                         (long long)a->factor, (long long)out.dim[axis]);
    out.dim[axis] *= a->factor;
    return keel_infer_out(n, &out);
}

static keel_axis_split split_of(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_shape *in = &c->node->in[0].shape;
    keel_axis_split s = keel_split_at(in, (int)(a->axis < 0 ? a->axis + in->rank : a->axis));
    s.outer *= c->rows;
    return s;
}

#define REAL_FILE "ops/upsample.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_upsample_args *a = args;
    a->factor = 2;
    keel_case_ints(text, "axis", &a->axis, 1);
    keel_case_ints(text, "factor", &a->factor, 1);
    a->between = keel_case_has(text, "between");
}

/* The places of one are side by side: their sum. */
static keel_status derive(const keel_derivation *d, int k __attribute__((unused)), int *out)
{
    const keel_upsample_args *a = d->node->args;
    const keel_shape *in = &d->node->in[0].shape;
    const int axis = (int)(a->axis < 0 ? a->axis + in->rank : a->axis);
    keel_shape apart = { .rank = in->rank + 1 };
    int grad;
    if (a->between || apart.rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_EUNSUP, "upsample: the gradient of an interpolation cannot be "
                                      "differentiated");
    for (int i = 0; i < apart.rank; i++)
        apart.dim[i] = i == axis + 1 ? a->factor : in->dim[i - (i > axis)];
    KEEL_TRY(keel_derive_reshape(d, d->grad, &apart, &grad));
    KEEL_TRY(keel_derive_reduce(d, KEEL_REDUCE_SUM, axis + 1, axis + 2, grad, &grad));
    return keel_derive_reshape(d, grad, in, out);
}

const keel_op keel_op_upsample = {
    .name = "upsample",
    .args_size = sizeof(keel_upsample_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .derive = derive,
    .cases = (const keel_case[]){ { "3,4,2", NULL, "axis 1" },
                                  { "3,4,5", NULL, "factor 3" },
                                  { "3,4,5", NULL, "axis -2 factor 3 between" },
                                  { "4", NULL, "between" },
                                  { "1,3", NULL, "factor 4 between" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
KEEL_CLONES static void REAL_(blend)(REAL *restrict y, const REAL *restrict a,
                                     const REAL *restrict b, double share, int64_t n)
{
    for (int64_t k = 0; k < n; k++) y[k] = (REAL)(a[k] + share * ((double)b[k] - a[k]));
}

KEEL_CLONES static void REAL_(add_share)(REAL *restrict dx, const REAL *restrict dy, double share,
                                         int64_t n)
{
    for (int64_t k = 0; k < n; k++) dx[k] += (REAL)(share * dy[k]);
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const REAL *x = c->in[0];
    REAL *y = c->out[0];
    for (int64_t outer = 0; outer < s.outer; outer++, x += s.n * s.inner)
        for (int64_t o = 0; o < s.n * a->factor; o++, y += s.inner) {
            const keel_upsample_place p = keel_upsample_place_of(a, s.n, o);
            const REAL *first = x + p.first * s.inner;
            if (p.share > 0)
                REAL_(blend)(y, first, x + p.second * s.inner, p.share, s.inner);
            else
                memcpy(y, first, (size_t)s.inner * sizeof *y);
        }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_upsample_args *a = c->node->args;
    const keel_axis_split s = split_of(c);
    const REAL *dy = c->out_grad[0];
    REAL *dx = c->in_grad[0];
    for (int64_t outer = 0; dx && outer < s.outer; outer++, dx += s.n * s.inner) {
        if (!c->in_adds[0]) memset(dx, 0, (size_t)(s.n * s.inner) * sizeof *dx);
        for (int64_t o = 0; o < s.n * a->factor; o++, dy += s.inner) {
            const keel_upsample_place p = keel_upsample_place_of(a, s.n, o);
            REAL_(add_share)(dx + p.first * s.inner, dy, 1 - p.share, s.inner);
            if (p.share > 0) REAL_(add_share)(dx + p.second * s.inner, dy, p.share, s.inner);
        }
    }
}
#endif
