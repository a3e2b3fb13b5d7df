/* The rows that a random model is trained on, as many as its graph says. */
#ifndef TESTS_RANDOM_ROWS_H
#define TESTS_RANDOM_ROWS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "random_steps.h"

typedef struct random_rows {
    keel_dtype dtype;
    void *array[STEPS_MAX + OUTS_MAX]; /* of inputs, then of targets */
    int n_array;
    float *weight;
    keel_dataset *data;
} random_rows;

static void put(void *array, keel_dtype dtype, int64_t i, double x)
{
    if (dtype == KEEL_FLOAT64)
        ((double *)array)[i] = x;
    else
        ((float *)array)[i] = (float)x;
}

static double at(const void *array, keel_dtype dtype, int64_t i)
{
    return dtype == KEEL_FLOAT64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void *numbers(keel_dtype dtype, int64_t n)
{
    void *p = calloc((size_t)n + 1, keel_dtype_size(dtype));
    assert_non_null(p);
    return p;
}

/* One more array of rows of that shape. ids: whole numbers below it; 0: real ones */
static keel_tensor draw_array(random_rows *t, const random_graph *g, keel_shape row, int ids)
{
    keel_tensor a = { t->dtype, { row.rank + 1, { g->rows } }, NULL };
    for (int i = 0; i < row.rank; i++) a.shape.dim[i + 1] = row.dim[i];
    const int64_t n = keel_shape_count(&a.shape);
    a.data = t->array[t->n_array++] = numbers(t->dtype, n);
    for (int64_t i = 0; i < n; i++)
        put(a.data, t->dtype, i, ids ? chance(ids) : (float)chance_real());
    return a;
}

static keel_status draw_rows(random_rows *t, const random_graph *g, keel_dtype dtype)
{
    *t = (random_rows){ .dtype = dtype };
    keel_array_field field[KEEL_FIELDS_MAX];
    char path[KEEL_FIELDS_MAX][16];
    bool reached[STEPS_MAX];
    int n = 0;
    reached_steps(g, reached);
    for (int i = 0; i < g->n; i++) {
        if (!reached[i] || !is_input(&g->step[i])) continue;
        snprintf(path[n], sizeof path[n], "x_%d", i);
        field[n] = (keel_array_field){ path[n], KEEL_ROLE_INPUT, NULL,
                                       draw_array(t, g, g->step[i].shape, g->step[i].ids) };
        n++;
    }
    for (int k = 0; k < g->n_out; k++) {
        keel_shape out = g->step[g->out[k]].shape;
        const int classes = (int)out.dim[out.rank - 1];
        if (g->loss[k] == LOSS_SPARSE) out.rank--;
        snprintf(path[n], sizeof path[n], "y_%d", k);
        field[n] = (keel_array_field){ path[n], KEEL_ROLE_TARGET, NULL,
                                       draw_array(t, g, out,
                                                  g->loss[k] == LOSS_MSE      ? 0
                                                  : g->loss[k] == LOSS_SPARSE ? classes
                                                                              : 2) };
        n++;
    }
    t->weight = numbers(KEEL_FLOAT32, g->rows);
    for (int64_t i = 0; i < g->rows; i++) t->weight[i] = (float)(1.25 + chance_real());
    if (g->weighted)
        field[n++] = (keel_array_field){
            "weight", KEEL_ROLE_WEIGHT, NULL, { KEEL_FLOAT32, { 1, { g->rows } }, t->weight }
        };
    return keel_dataset_from_fields(&t->data, field, n);
}

static void free_rows(random_rows *t)
{
    keel_dataset_destroy(t->data);
    for (int i = 0; i < t->n_array; i++) free(t->array[i]);
    free(t->weight);
}

#endif
