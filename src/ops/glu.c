/* Gated linear unit: the input is split into halves a and b along one axis; y = a sigmoid(b).
 * Dauphin et al. 2016, arXiv 1612.08083. Keras: glu. */
#ifndef REAL
#include "ops/axis.h"
#include <math.h>

static keel_status infer(keel_node *n)
{
    int axis;
    char text[96];
    KEEL_TRY(keel_infer_check(n, 1, 0, 0));
    KEEL_TRY(keel_infer_axis(n, ((const keel_axis_args *)n->args)->axis, &axis));
    keel_shape out = n->in[0].shape;
    keel_shape_text(text, &out);
    if (out.dim[axis] % 2)
        return keel_fail(KEEL_ESHAPE, "glu: input is %s; axis %d must be even", text, axis);
    out.dim[axis] /= 2;
    return keel_infer_out(n, &out);
}

#define REAL_FILE "ops/glu.c"
#include "ops/real.h"

const keel_op keel_op_glu = {
    .name = "glu",
    .costly = true,
    .args_size = sizeof(keel_axis_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .cases = (const keel_case[]){ { "10", NULL, NULL },
                                  { "4,3,2", NULL, "axis 0" },
                                  { NULL, NULL, NULL } },
    .args_for_case = keel_axis_for_case,
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const keel_axis_split s = keel_axis_of(c, &c->node->out[0]);
    const int64_t half = s.n * s.inner;
    for (int64_t o = 0; o < c->rows * s.outer; o++) {
        const REAL *a = (const REAL *)c->in[0] + o * 2 * half, *b = a + half;
        REAL *y = (REAL *)c->out[0] + o * half;
        for (int64_t i = 0; i < half; i++) y[i] = (REAL)(a[i] / (1 + exp(-(double)b[i])));
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_axis_split s = keel_axis_of(c, &c->node->out[0]);
    const int64_t half = s.n * s.inner;
    for (int64_t o = 0; c->in_grad[0] && o < c->rows * s.outer; o++) {
        const REAL *a = (const REAL *)c->in[0] + o * 2 * half, *b = a + half;
        const REAL *dy = (const REAL *)c->out_grad[0] + o * half;
        REAL *da = (REAL *)c->in_grad[0] + o * 2 * half, *db = da + half;
        for (int64_t i = 0; i < half; i++) {
            const double gate = 1 / (1 + exp(-(double)b[i]));
            const double closed =
                1 / (1 + exp((double)b[i])); /* computed without 1 - gate, which would cancel */
            const double ga = dy[i] * gate, gb = dy[i] * a[i] * gate * closed;
            da[i] = (REAL)(c->in_adds[0] ? da[i] + ga : ga);
            db[i] = (REAL)(c->in_adds[0] ? db[i] + gb : gb);
        }
    }
}
#endif
