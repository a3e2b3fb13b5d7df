/* See mean.h. */
#ifndef REAL
#include "train/mean.h"
#include "optimizers/one_pass.h"

#define REAL_FILE "train/mean.c"
#include "ops/real.h"

void keel_mean_add(keel_dtype real, void *sum, const void *grad, int64_t count)
{
    if (real == KEEL_FLOAT64)
        add_f64(sum, grad, count);
    else
        add_f32(sum, grad, count);
}

void keel_mean_join(keel_dtype real, void *grad, const void *sum, int64_t count, double steps,
                    double *norm)
{
    if (real == KEEL_FLOAT64)
        join_f64(grad, sum, count, steps, norm);
    else
        join_f32(grad, sum, count, (float)steps, norm);
}

void keel_mean_move(keel_dtype real, void *average, const void *w, int64_t count, double momentum)
{
    if (real == KEEL_FLOAT64)
        move_f64(average, w, count, momentum);
    else
        move_f32(average, w, count, (float)momentum);
}

#else
KEEL_ONE_PASS
static void REAL_(add)(REAL *restrict sum, const REAL *restrict g, int64_t n)
{
    for (int64_t i = 0; i < n; i++) sum[i] += g[i];
}

KEEL_ONE_PASS
static void REAL_(mean)(REAL *restrict g, const REAL *restrict sum, int64_t n, REAL steps)
{
    for (int64_t i = 0; i < n; i++) g[i] = (g[i] + sum[i]) / steps;
}

static void REAL_(join)(REAL *g, const REAL *sum, int64_t n, REAL steps, double *norm)
{
    REAL_(mean)(g, sum, n, steps);
    if (norm) *norm = 0;
    for (int64_t i = 0; norm && i < n; i++) *norm += (double)g[i] * (double)g[i];
}

KEEL_ONE_PASS
static void REAL_(move)(REAL *restrict average, const REAL *restrict w, int64_t n, REAL momentum)
{
    for (int64_t i = 0; i < n; i++) average[i] = momentum * average[i] + (1 - momentum) * w[i];
}
#endif
