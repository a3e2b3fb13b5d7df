/* See move.h. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

/* Lane l of a tile adds up elements l, l + LANES, ...; then they are folded. */
enum { LANES = KEEL_MEASURE_LANES };

#define REAL_FILE "optimizers/_measure.c"
#include "ops/real.h"

void keel_measure(const keel_device_measure *m)
{
    if (m->real == KEEL_FLOAT64)
        measure_f64(m);
    else
        measure_f32(m);
}

void keel_add_squares(keel_dtype real, const void *part, int64_t count, double lanes[LANES])
{
    if (real == KEEL_FLOAT64)
        add_squares_f64(lanes, part, count);
    else
        add_squares_f32(lanes, part, count);
}

#else
KEEL_ONE_PASS
static void REAL_(add)(double *restrict sizes, double *restrict squares, const REAL *restrict w,
                       int64_t n)
{
    for (int64_t l = 0; l < n; l++) {
        const double x = (double)w[l];
        sizes[l] += x < 0 ? -x : x;
        squares[l] += x * x;
    }
}

static void REAL_(measure_tile)(const REAL *w, int64_t n, double sums[2])
{
    double sizes[LANES] = { 0 }, squares[LANES] = { 0 };
    for (int64_t i = 0; i < n; i += LANES)
        REAL_(add)(sizes, squares, w + i, n - i < LANES ? n - i : LANES);
    sums[0] = keel_fold_lanes(sizes, LANES);
    sums[1] = keel_fold_lanes(squares, LANES);
}

static void REAL_(measure)(const keel_device_measure *m)
{
    double *sums = m->sums;
    for (int64_t i = 0; i < m->count; i += m->tile, sums += 2) {
        const int64_t n = m->count - i < m->tile ? m->count - i : m->tile;
        REAL_(measure_tile)((const REAL *)m->w + i, n, sums);
    }
}

KEEL_ONE_PASS
static void REAL_(add_squares)(double *restrict squares, const REAL *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES, x += LANES) {
        const int64_t end = n - i < LANES ? n - i : LANES;
        for (int64_t l = 0; l < end; l++) squares[l] += (double)x[l] * (double)x[l];
    }
}
#endif
