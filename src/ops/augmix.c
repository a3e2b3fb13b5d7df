/* y = m x + (1 - m) (w1 z1 + w2 z2 + ...), clipped, of an image x and its chains z, where the
 * shares w and m are drawn for its row, by Dirichlet's and the Beta distribution. Keras: AugMix. */
#ifndef REAL
#include "ops/augmix.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include <math.h>

enum { CHAINS_MAX = 64, TRIES = 20, DRAWS = 64 /* of one number; each try takes three */ };

static keel_status infer(keel_node *n)
{
    const keel_augmix_args *a = n->args;
    KEEL_TRY(keel_infer_check(n, -1, 0, 0));
    if (n->n_in < 2 || n->n_in > 1 + CHAINS_MAX)
        return keel_fail(KEEL_EARG, "augmix: %d chains are not in [1, %d]", n->n_in - 1,
                         CHAINS_MAX);
    for (int i = 1; i < n->n_in; i++)
        if (!keel_shape_equal(&n->in[i].shape, &n->in[0].shape))
            return keel_fail(KEEL_ESHAPE, "augmix: a chain has another shape than the image");
    if (!(a->alpha > 0)) return keel_fail(KEEL_EARG, "augmix: alpha %g is not above 0", a->alpha);
    return keel_infer_out(n, &n->in[0].shape);
}

/* The logarithm of a gamma draw of shape alpha, which is the k-th of the row (Marsaglia and Tsang
 * 2000). Below 1 by way of alpha + 1. As a logarithm, because small shapes make tiny numbers. */
static double log_gamma_draw(const keel_call *c, int64_t row, uint32_t k)
{
    static const keel_range unit = { 0, 1 };
    const keel_augmix_args *a = c->node->args;
    const uint32_t first = a->first + k * DRAWS;
    const double d = a->alpha + (a->alpha < 1) - 1.0 / 3, step = 1 / sqrt(9 * d);
    const double less =
        a->alpha < 1 ? log(1 - keel_draw(c, row, first + DRAWS - 1, unit)) / a->alpha : 0;
    for (uint32_t i = 0; i < TRIES; i++) {
        const double u = 1 - keel_draw(c, row, first + 3 * i, unit);
        const double turn = 2 * 3.14159265358979323846 * keel_draw(c, row, first + 3 * i + 1, unit);
        const double z = sqrt(-2 * log(u)) * cos(turn), t = 1 + step * z, v = t * t * t;
        const double accept = 1 - keel_draw(c, row, first + 3 * i + 2, unit);
        if (t > 0 && log(accept) < z * z / 2 + d - d * v + d * log(v)) return log(d * v) + less;
    }
    return log(d) + less; /* one of 10^25 draws */
}

/* share[0] of the image, share[i] of chain i. */
static void shares_of(double *share, const keel_call *c, int64_t row)
{
    const int n = c->node->n_in;
    double most = -INFINITY, sum = 0;
    for (int i = 1; i < n; i++) {
        share[i] = log_gamma_draw(c, row, (uint32_t)i + 1);
        most = fmax(most, share[i]);
    }
    for (int i = 1; i < n; i++) sum += share[i] = exp(share[i] - most);
    const double other = log_gamma_draw(c, row, 1) - log_gamma_draw(c, row, 0);
    share[0] = 1 / (1 + exp(other));
    for (int i = 1; i < n; i++) share[i] *= (1 - share[0]) / sum;
}

#define REAL_FILE "ops/augmix.c"
#include "ops/real.h"

static void args_for_case(void *args, const char *text)
{
    keel_augmix_args *a = args;
    *a = (keel_augmix_args){ .alpha = 1, .values = { -1, 1 } };
    keel_case_number(text, "alpha", &a->alpha);
}

const keel_op keel_op_augmix = {
    .name = "augmix",
    .args_size = sizeof(keel_augmix_args),
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .backward_reads = KEEL_READS_IN,
    .costly = true,
    .cases = (const keel_case[]){ { "2,3,2|2,3,2|2,3,2", NULL, NULL },
                                  { "1,4,1|1,4,1", NULL, "alpha 0.3" },
                                  { NULL, NULL, NULL } },
    .args_for_case = args_for_case,
};
#else
/* What stands at element `at` before it is clipped. */
static REAL REAL_(blend)(const keel_call *c, const double *share, int64_t at)
{
    REAL v = 0;
    for (int i = 0; i < c->node->n_in; i++) v += (REAL)share[i] * ((const REAL *)c->in[i])[at];
    return v;
}

static void REAL_(forward)(const keel_call *c)
{
    const keel_augmix_args *a = c->node->args;
    const int64_t count = keel_row_count(&c->node->in[0]);
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high;
    REAL *y = c->out[0];
    double share[1 + CHAINS_MAX];
    for (int64_t row = 0; row < c->rows; row++) {
        shares_of(share, c, row);
        for (int64_t at = row * count; at < (row + 1) * count; at++) {
            const REAL v = REAL_(blend)(c, share, at);
            y[at] = v < low ? low : v > high ? high : v;
        }
    }
}

static void REAL_(backward)(const keel_call *c)
{
    const keel_augmix_args *a = c->node->args;
    const int64_t count = keel_row_count(&c->node->in[0]);
    const REAL low = (REAL)a->values.low, high = (REAL)a->values.high;
    const REAL *dy = c->out_grad[0];
    double share[1 + CHAINS_MAX];
    for (int64_t row = 0; row < c->rows; row++) {
        shares_of(share, c, row);
        for (int64_t at = row * count; at < (row + 1) * count; at++) {
            const REAL v = REAL_(blend)(c, share, at);
            for (int i = 0; i < c->node->n_in; i++) {
                REAL *dx = c->in_grad[i];
                const REAL g = v >= low && v <= high ? (REAL)share[i] * dy[at] : 0;
                if (dx) dx[at] = c->in_adds[i] ? dx[at] + g : g;
            }
        }
    }
}
#endif
