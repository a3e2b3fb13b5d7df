/* See projection.h. */
#include "tensor/projection.h"
#include "tensor/shape.h"
#include <math.h>

/* Each product and sum is rounded separately, as on devices. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#endif

/* Go to the next place of the dims in `dims`; its offset moves along. False: there is none. */
static bool next_place(const keel_shape *s, unsigned dims, int64_t *at, int64_t *offset)
{
    int64_t step = 1;
    for (int d = s->rank - 1; d >= 0; step *= s->dim[d], d--) {
        if (!(dims >> d & 1)) continue;
        *offset += step;
        if (++at[d] < s->dim[d]) return true;
        *offset -= at[d] * step;
        at[d] = 0;
    }
    return false;
}

static double get(keel_dtype real, const void *data, int64_t i)
{
    return real == KEEL_FLOAT64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void set(keel_dtype real, void *data, int64_t i, double v)
{
    if (real == KEEL_FLOAT64)
        ((double *)data)[i] = v;
    else
        ((float *)data)[i] = (float)v;
}

static void project_vector(const keel_projection *p, const keel_shape *shape, keel_dtype real,
                           void *data, int64_t begin)
{
    enum { LANES = KEEL_PROJECT_LANES };
    int64_t at[KEEL_RANK_MAX] = { 0 }, offset = 0, n = 0;
    double squares[LANES] = { 0 };
    do {
        const double v = get(real, data, begin + offset);
        squares[n++ % LANES] += v * v;
    } while (next_place(shape, p->over, at, &offset));
    for (int by = LANES / 2; by > 0; by /= 2)
        for (int l = 0; by < n && l < by; l++) squares[l] += squares[l + by];
    const double length = sqrt(squares[0]);
    const double near = fmax(fmin(length, p->most), p->least);
    const double scale = (p->rate * near + (1 - p->rate) * length) / (KEEL_LEAST_LENGTH + length);
    offset = 0;
    do set(real, data, begin + offset, get(real, data, begin + offset) * scale);
    while (next_place(shape, p->over, at, &offset));
}

void keel_project(const keel_projection *p, const keel_shape *shape, keel_dtype real, void *data)
{
    int64_t at[KEEL_RANK_MAX] = { 0 }, begin = 0;
    for (int64_t i = 0, n = keel_shape_count(shape); p->non_negative && i < n; i++)
        if (get(real, data, i) < 0) set(real, data, i, 0);
    if (!p->lengths) return;
    do project_vector(p, shape, real, data, begin);
    while (next_place(shape, ~p->over, at, &begin));
}
