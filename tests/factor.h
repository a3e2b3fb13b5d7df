/* keel_device_factored on the host, written out: for the stand-in, and to compare kernels with.
 * Each sum takes its terms in the order that device/move.h says, and nothing is fused. */
#ifndef KEEL_TESTS_FACTOR_H
#define KEEL_TESTS_FACTOR_H
#include <math.h>
#include <stdlib.h>
#include "device/move.h"

/* Of `n` terms, by so many lanes: lane l has terms l, l + lanes, ... */
static double factor_fold(const double *term, int64_t n, int lanes)
{
    double lane[KEEL_MEASURE_LANES] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % lanes] += term[i];
    for (int by = lanes / 2; by > 0; by /= 2)
        for (int l = 0; l < by; l++) lane[l] += lane[l + by];
    return lane[0];
}

/* Squares of all elements, tile by tile. */
static double factor_squares(double *x, int64_t count, int64_t tile)
{
    double all = 0;
    for (int64_t i = 0; i < count; i++) x[i] *= x[i];
    for (int64_t i = 0; i < count; i += tile)
        all += factor_fold(x + i, count - i < tile ? count - i : tile, KEEL_MEASURE_LANES);
    return all;
}

/* term: room for each element of the weight. */
#define FACTOR(real_t, root, factor)                                                               \
    static void factor##_means(const keel_device_factored *f, double *term)                        \
    {                                                                                              \
        const real_t kept = (real_t)f->number.rho, fresh = (real_t)f->number.one_less_rho;         \
        const int64_t one = f->rows * f->columns;                                                  \
        real_t *r = f->r, *c = f->c;                                                               \
        for (int64_t i = 0; i < f->matrices * f->rows; i++) {                                      \
            const double sum =                                                                     \
                factor_fold(term + i * f->columns, f->columns, KEEL_FACTORED_LANES);               \
            r[i] = kept * r[i] + fresh * (real_t)(sum / (double)f->columns);                       \
        }                                                                                          \
        for (int64_t i = 0; i < f->matrices * f->columns; i++) {                                   \
            const double *at = term + i / f->columns * one + i % f->columns;                       \
            double sum = 0, part = 0;                                                              \
            for (int64_t k = 0; k < f->rows; k++) {                                                \
                if (k > 0 && k % KEEL_FACTORED_ROWS == 0) sum += part, part = 0;                   \
                part += at[k * f->columns];                                                        \
            }                                                                                      \
            sum += part;                                                                           \
            c[i] = kept * c[i] + fresh * (real_t)(sum / (double)f->rows);                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void factor##_spread(const keel_device_factored *f, double *term)                       \
    {                                                                                              \
        const int64_t part = f->matrices == 1 ? f->tile / f->columns : f->rows;                    \
        const real_t *r = f->r, *c = f->c;                                                         \
        real_t *v = f->v;                                                                          \
        for (int64_t m = 0; m < f->matrices; m++) {                                                \
            double sum = 0;                                                                        \
            for (int64_t i = 0; i < f->rows; i++) term[i] = (double)r[m * f->rows + i];            \
            for (int64_t i = 0; i < f->rows; i += part)                                            \
                sum += factor_fold(term + i, f->rows - i < part ? f->rows - i : part,              \
                                   KEEL_MEASURE_LANES);                                            \
            const real_t mean = (real_t)(sum / (double)f->rows);                                   \
            for (int64_t i = 0; i < f->rows * f->columns; i++)                                     \
                v[m * f->rows * f->columns + i] =                                                  \
                    r[m * f->rows + i / f->columns] / mean * c[m * f->columns + i % f->columns];   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void factor(const keel_device_factored *f)                                              \
    {                                                                                              \
        const real_t scale = (real_t)f->number.scale, clip = (real_t)f->number.clip;               \
        const real_t kept = (real_t)f->number.rho, fresh = (real_t)f->number.one_less_rho;         \
        const real_t decay = (real_t)f->number.decay, rate = (real_t)f->number.rate;               \
        real_t *w = f->w, *v = f->v;                                                               \
        double *term = malloc((size_t)f->count * sizeof *term);                                    \
        real_t *g = malloc((size_t)f->count * sizeof *g);                                          \
        if (!term || !g) abort();                                                                  \
        for (int64_t i = 0; i < f->count; i++) {                                                   \
            if (decay != 0) w[i] = w[i] - w[i] * decay * rate;                                     \
            term[i] = (double)w[i];                                                                \
        }                                                                                          \
        const real_t size =                                                                        \
            root((real_t)(factor_squares(term, f->count, f->tile) / (double)f->count));            \
        for (int64_t i = 0; i < f->count; i++) {                                                   \
            g[i] = ((const real_t *)f->g)[i] * scale;                                              \
            if (g[i] > clip) g[i] = clip;                                                          \
            if (g[i] < -clip) g[i] = -clip;                                                        \
            const real_t square = g[i] * g[i] + (real_t)f->number.epsilon;                         \
            term[i] = (double)square;                                                              \
            if (f->matrices == 0) v[i] = kept * v[i] + fresh * square;                             \
        }                                                                                          \
        factor##_means(f, term);                                                                   \
        factor##_spread(f, term);                                                                  \
        for (int64_t i = 0; i < f->count; i++) {                                                   \
            g[i] = g[i] / root(v[i]);                                                              \
            term[i] = (double)g[i];                                                                \
        }                                                                                          \
        const real_t steps =                                                                       \
            root((real_t)(factor_squares(term, f->count, f->tile) / (double)f->count));            \
        const real_t least = (real_t)f->least, ratio = steps / (real_t)f->threshold;               \
        const real_t length = (size > least ? size : least) * (real_t)f->number.alpha;             \
        for (int64_t i = 0; i < f->count; i++)                                                     \
            w[i] = w[i] - length * (g[i] / (ratio > 1 ? ratio : 1));                               \
        free(term);                                                                                \
        free(g);                                                                                   \
    }
FACTOR(float, sqrtf, factor_f32)
FACTOR(double, sqrt, factor_f64)
#undef FACTOR

static inline void factor_on_host(const keel_device_factored *f)
{
    if (f->real == KEEL_FLOAT64)
        factor_f64(f);
    else
        factor_f32(f);
}

#endif
