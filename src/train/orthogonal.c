/* See orthogonal.h. With unit vectors u, P = u u^T and s = sign(P) off the diagonal, the loss is
 * factor sum |P_ij| over the pairs, divided by their number. Its gradient by u_i is
 * factor / pairs * g_i, g_i = sum_j s_ij u_j, and by the vector itself that times
 * (g_i - u_i (u_i g_i)) / length. Blocks of vectors do not depend on the workers, and each sum has
 * one order, so neither do the bits. */
#ifndef REAL
#include "train/orthogonal.h"
#include "base/memory.h"
#include "base/round.h"
#include "optimizers/one_pass.h"
#include <string.h>

/* As in Keras, whose epsilon is 1e-7, no vector is multiplied by more. */
#define MOST_INVERSE 1e7

enum { BLOCK = 64, LINE = 64 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One line from `memory` on for each array of a weight; NULL: only measures. Returns the bytes. */
static int64_t place(keel_orthogonal_weight *w, char *memory, int64_t element)
{
    const int64_t whole = keel_round_up(w->n * w->length * element, LINE);
    const int64_t numbers = keel_round_up(w->n * (int64_t)sizeof(double), LINE);
    if (memory) {
        w->unit = memory;
        w->across = memory + whole;
        w->gradient = memory + 2 * whole;
        w->inverse = (double *)(memory + 3 * whole);
        w->sum = (double *)(memory + 3 * whole + numbers);
    }
    return 3 * whole + 2 * numbers;
}

static keel_orthogonal_weight weight_of(const keel_weight_info *info, keel_variable v)
{
    const int64_t rows = info->spec.shape.dim[0], columns = info->spec.shape.dim[1];
    const bool by_columns = info->penalty.columns;
    const double n = (double)(by_columns ? columns : rows);
    return (keel_orthogonal_weight){
        .variable = v,
        .n = by_columns ? columns : rows,
        .length = by_columns ? rows : columns,
        .vector_step = by_columns ? 1 : columns,
        .element = by_columns ? columns : 1,
        .factor = info->penalty.orthogonal / (n * (n - 1) / 2),
    };
}

keel_status keel_orthogonal_create(keel_orthogonal *out, const keel_store *store,
                                   const bool *trains, int n_worker)
{
    keel_orthogonal o = { .store = store };
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    int64_t end = 0;
    for (int v = 0; v < store->n_weight; v++)
        o.n += trains[v] && store->weight[v].info.penalty.orthogonal != 0;
    if (o.n == 0) {
        *out = o;
        return KEEL_OK;
    }
    o.weight = keel_calloc((size_t)o.n, sizeof *o.weight);
    o.of = keel_calloc((size_t)store->n_weight, sizeof *o.of);
    if (!o.weight || !o.of) goto no_memory;
    for (int v = 0, i = 0; v < store->n_weight; v++) {
        const keel_weight_info *info = &store->weight[v].info;
        o.of[v] = -1;
        if (!trains[v] || info->penalty.orthogonal == 0) continue;
        const keel_orthogonal_weight w = weight_of(info, v);
        const int64_t most = INT64_MAX / 64 / element / o.n;
        if (w.n > most / w.length || w.n + w.length > most / BLOCK) {
            keel_orthogonal_free(&o);
            return keel_fail(KEEL_EUNSUP, "'%s' is too large for an OrthogonalRegularizer",
                             info->name);
        }
        const int64_t room = keel_round_up(BLOCK * (w.n + w.length) * element, LINE);
        if (room > o.room_bytes) o.room_bytes = room;
        o.of[v] = i;
        o.weight[i] = w;
        end += place(&o.weight[i++], NULL, element);
    }
    o.bytes = end + n_worker * o.room_bytes;
    if (!(o.memory = keel_aligned_calloc((size_t)o.bytes, 1))) goto no_memory;
    o.room = o.memory + end;
    for (int64_t i = 0, at = 0; i < o.n; i++) at += place(&o.weight[i], o.memory + at, element);
    *out = o;
    return KEEL_OK;
no_memory:
    keel_orthogonal_free(&o);
    return KEEL_ENOMEM;
}

void keel_orthogonal_free(keel_orthogonal *o)
{
    keel_free(o->weight);
    keel_free(o->of);
    keel_free(o->memory);
    *o = (keel_orthogonal){ 0 };
}

#define REAL_FILE "train/orthogonal.c"
#include "ops/real.h"

void keel_orthogonal_normalize(const keel_orthogonal *o, int worker, int n_worker)
{
    for (int i = 0; i < o->n; i++) {
        const keel_orthogonal_weight *w = &o->weight[i];
        const void *data = keel_store_data(o->store, w->variable);
        for (int64_t at = worker * BLOCK; at < w->n; at += n_worker * BLOCK)
            if (o->store->real == KEEL_FLOAT64)
                normalize_f64(w, data, at, smaller(at + BLOCK, w->n));
            else
                normalize_f32(w, data, at, smaller(at + BLOCK, w->n));
    }
}

void keel_orthogonal_compare(const keel_orthogonal *o, int worker, int n_worker)
{
    void *room = o->n ? o->room + worker * o->room_bytes : NULL;
    for (int i = 0; i < o->n; i++) {
        const keel_orthogonal_weight *w = &o->weight[i];
        for (int64_t at = worker * BLOCK; at < w->n; at += n_worker * BLOCK)
            if (o->store->real == KEEL_FLOAT64)
                compare_f64(w, room, at, smaller(at + BLOCK, w->n));
            else
                compare_f32(w, room, at, smaller(at + BLOCK, w->n));
    }
}

const void *keel_orthogonal_gradient(const keel_orthogonal *o, keel_variable v, int64_t first)
{
    if (o->n == 0 || o->of[v] < 0) return NULL;
    return o->weight[o->of[v]].gradient + first * (int64_t)keel_dtype_size(o->store->real);
}

double keel_orthogonal_loss(const keel_orthogonal *o)
{
    double loss = 0;
    for (int i = 0; i < o->n; i++) {
        const keel_orthogonal_weight *w = &o->weight[i];
        double sum = 0; /* each pair is in it twice */
        for (int64_t k = 0; k < w->n; k++) sum += w->sum[k];
        loss += w->factor * 0.5 * sum;
    }
    return loss;
}

#else
#include "optimizers/product_impl.h"

static void REAL_(normalize)(const keel_orthogonal_weight *w, const REAL *data, int64_t begin,
                             int64_t end)
{
    REAL *unit = (REAL *)w->unit, *across = (REAL *)w->across;
    for (int64_t i = begin; i < end; i++) {
        const REAL *x = data + i * w->vector_step;
        double squares = 0;
        for (int64_t k = 0; k < w->length; k++)
            squares += (double)x[k * w->element] * (double)x[k * w->element];
        const double inverse = squares > 0 ? 1 / sqrt(squares) : MOST_INVERSE;
        w->inverse[i] = inverse < MOST_INVERSE ? inverse : MOST_INVERSE;
        for (int64_t k = 0; k < w->length; k++)
            unit[i * w->length + k] = across[k * w->n + i] =
                (REAL)((double)x[k * w->element] * w->inverse[i]);
    }
}

static void REAL_(compare)(const keel_orthogonal_weight *w, REAL *room, int64_t begin, int64_t end)
{
    const REAL *unit = (const REAL *)w->unit;
    const int64_t rows = end - begin;
    REAL *cosine = room, *pull = room + BLOCK * w->n; /* [rows, n], [rows, length] */
    const REAL_(product_t) cosines = {
        cosine, unit + begin * w->length, (const REAL *)w->across, cosine, 0, 1, w->length, w->n
    };
    const REAL_(product_t) pulls = { pull, cosine, unit, pull, 0, 1, w->n, w->length };
    REAL_(product)(&cosines, 0, rows);
    for (int64_t r = 0; r < rows; r++) {
        REAL *c = cosine + r * w->n;
        double sum = 0;
        c[begin + r] = 0;
        for (int64_t j = 0; j < w->n; j++) {
            sum += fabs((double)c[j]);
            c[j] = (REAL)((c[j] > 0) - (c[j] < 0));
        }
        w->sum[begin + r] = sum;
    }
    REAL_(product)(&pulls, 0, rows);
    for (int64_t r = 0; r < rows; r++) {
        const REAL *u = unit + (begin + r) * w->length, *g = pull + r * w->length;
        REAL *out = (REAL *)w->gradient + (begin + r) * w->vector_step;
        const double inverse = w->inverse[begin + r];
        double along = 0;
        for (int64_t k = 0; inverse < MOST_INVERSE && k < w->length; k++)
            along += (double)u[k] * (double)g[k];
        for (int64_t k = 0; k < w->length; k++)
            out[k * w->element] =
                (REAL)(w->factor * inverse * ((double)g[k] - along * (double)u[k]));
    }
}
#endif
