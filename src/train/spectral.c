/* See spectral.h. Sums are in double, each over one vector in the order of its elements, so a
 * weight has the same bits whichever worker divides it. */
#include "train/spectral.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

#define LEAST_LENGTH 1e-7 /* Keras's backend.epsilon(): no vector is divided by less */

keel_status keel_spectral_create(keel_spectral *out, const keel_graph *g, keel_store *store)
{
    keel_spectral s = { .store = store, .n = g->n_spectral };
    if (s.n == 0) {
        *out = s;
        return KEEL_OK;
    }
    if (!(s.weight = keel_calloc((size_t)s.n, sizeof *s.weight))) return KEEL_ENOMEM;
    for (int i = 0; i < s.n; i++) {
        keel_spectral_weight *w = &s.weight[i];
        const keel_shape *shape = &store->weight[g->spectral[i].weight].info.spec.shape;
        w->of = g->spectral[i];
        w->columns = shape->dim[shape->rank - 1];
        w->rows = keel_shape_count(shape) / w->columns;
        const int64_t count = w->rows * w->columns + 2 * w->columns + w->rows;
        if (!(w->was = keel_aligned_calloc((size_t)count, sizeof(double)))) {
            keel_spectral_free(&s);
            return KEEL_ENOMEM;
        }
        w->u_was = w->was + w->rows * w->columns;
        w->u = w->u_was + w->columns;
        w->v = w->u + w->columns;
        s.bytes += count * (int64_t)sizeof(double);
    }
    *out = s;
    return KEEL_OK;
}

void keel_spectral_free(keel_spectral *s)
{
    for (int i = 0; s->weight && i < s->n; i++) keel_free(s->weight[i].was);
    keel_free(s->weight);
    *s = (keel_spectral){ 0 };
}

static void load(const keel_store *s, keel_variable v, double *to, int64_t n)
{
    const void *data = keel_store_data(s, v);
    for (int64_t i = 0; i < n; i++)
        to[i] =
            s->real == KEEL_FLOAT64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void put(const keel_store *s, keel_variable v, const double *from, double divisor, int64_t n)
{
    void *data = keel_store_data(s, v);
    for (int64_t i = 0; i < n; i++)
        if (s->real == KEEL_FLOAT64)
            ((double *)data)[i] = from[i] / divisor;
        else
            ((float *)data)[i] = (float)(from[i] / divisor);
}

static void normalize(double *v, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += v[i] * v[i];
    const double length = sqrt(squares) > LEAST_LENGTH ? sqrt(squares) : LEAST_LENGTH;
    for (int64_t i = 0; i < n; i++) v[i] /= length;
}

/* v = u W^T */
static void to_rows(const keel_spectral_weight *w)
{
    for (int64_t r = 0; r < w->rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < w->columns; c++) sum += w->u[c] * w->was[r * w->columns + c];
        w->v[r] = sum;
    }
}

/* u = v W */
static void to_columns(const keel_spectral_weight *w)
{
    memset(w->u, 0, (size_t)w->columns * sizeof *w->u);
    for (int64_t r = 0; r < w->rows; r++)
        for (int64_t c = 0; c < w->columns; c++) w->u[c] += w->v[r] * w->was[r * w->columns + c];
}

/* v W u^T of the last two vectors. */
static double singular_value(const keel_spectral_weight *w)
{
    double sigma = 0;
    for (int64_t r = 0; r < w->rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < w->columns; c++) sum += w->was[r * w->columns + c] * w->u[c];
        sigma += w->v[r] * sum;
    }
    return sigma;
}

static bool all_zero(const keel_spectral_weight *w)
{
    for (int64_t i = 0; i < w->rows * w->columns; i++)
        if (w->was[i] != 0) return false;
    return true;
}

static void divide(const keel_store *s, const keel_spectral_weight *w)
{
    load(s, w->of.weight, w->was, w->rows * w->columns);
    load(s, w->of.u, w->u_was, w->columns);
    if (all_zero(w)) return; /* as in Keras, both stay */
    memcpy(w->u, w->u_was, (size_t)w->columns * sizeof *w->u);
    for (int64_t k = 0; k < w->of.iterations; k++) {
        to_rows(w);
        normalize(w->v, w->rows);
        to_columns(w);
        normalize(w->u, w->columns);
    }
    put(s, w->of.weight, w->was, singular_value(w), w->rows * w->columns);
    put(s, w->of.u, w->u, 1, w->columns);
}

void keel_spectral_apply(const keel_spectral *s, int worker, int n_worker)
{
    for (int i = worker; i < s->n; i += n_worker) divide(s->store, &s->weight[i]);
}

void keel_spectral_undo(const keel_spectral *s)
{
    for (int i = 0; i < s->n; i++) {
        const keel_spectral_weight *w = &s->weight[i];
        put(s->store, w->of.weight, w->was, 1, w->rows * w->columns);
        put(s->store, w->of.u, w->u_was, 1, w->columns);
    }
    if (s->n > 0) keel_store_refresh(s->store, 0, 1, NULL);
}
