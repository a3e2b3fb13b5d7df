/* keel_device_orthogonal on the host, written out: for the stand-in, and to compare kernels with.
 * Each sum takes its terms in their order, and nothing is fused. */
#ifndef KEEL_TESTS_ORTHOGONALIZE_H
#define KEEL_TESTS_ORTHOGONALIZE_H
#include <math.h>
#include <string.h>
#include "optimizers/move.h"

/* out = scale add + by left right; strides as in optimizers/cuda/orthogonal.cu. */
#define ORTHOGONALIZE(real_t, multiply, orthogonalize)                                             \
    static void multiply(real_t *out, int64_t out_row, int64_t out_column, const real_t *add,      \
                         double scale, double by, const real_t *left, int64_t left_row,            \
                         int64_t left_column, const real_t *right, int64_t right_row,              \
                         int64_t right_column, int64_t rows, int64_t inner, int64_t columns)       \
    {                                                                                              \
        for (int64_t i = 0; i < rows; i++)                                                         \
            for (int64_t j = 0; j < columns; j++) {                                                \
                const int64_t at = i * out_row + j * out_column;                                   \
                real_t sum = 0;                                                                    \
                for (int64_t k = 0; k < inner; k++)                                                \
                    sum += left[i * left_row + k * left_column] *                                  \
                           right[k * right_row + j * right_column];                                \
                sum *= (real_t)by;                                                                 \
                if (scale != 0) sum += (real_t)scale * add[at];                                    \
                out[at] = sum;                                                                     \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static void orthogonalize(const keel_device_orthogonal *o)                                     \
    {                                                                                              \
        const bool tall = o->rows > o->columns;                                                    \
        const int64_t few = tall ? o->columns : o->rows, many = tall ? o->rows : o->columns;       \
        const int64_t row = tall ? 1 : o->columns, column = tall ? o->columns : 1;                 \
        const int64_t count = o->rows * o->columns;                                                \
        const keel_orthogonal_room room =                                                          \
            keel_orthogonal_room_of(o->rows, o->columns, o->tile, (int64_t)sizeof(real_t));        \
        char *at = o->scratch;                                                                     \
        double *sums = o->scratch, squares = 0;                                                    \
        real_t *x = o->x, *next = (real_t *)(at + room.x);                                         \
        real_t *a = (real_t *)(at + room.a), *b = (real_t *)(at + room.b);                         \
        keel_measure(&(keel_device_measure){ o->real, count, o->tile, x, sums });                  \
        for (int64_t i = 0; i * o->tile < count; i++) squares += sums[2 * i + 1];                  \
        const real_t length = (real_t)sqrt(squares) + (real_t)1e-7;                                \
        for (int64_t i = 0; i < count; i++) x[i] = x[i] / length;                                  \
        for (int64_t s = 0; s < o->steps; s++) {                                                   \
            multiply(a, few, 1, a, 0, 1, x, row, column, x, column, row, few, many, few);          \
            multiply(b, few, 1, a, o->b, o->c, a, few, 1, a, few, 1, few, few, few);               \
            multiply(next, row, column, x, o->a, 1, b, few, 1, x, row, column, few, few, many);    \
            memcpy(x, next, (size_t)count * sizeof *x);                                            \
        }                                                                                          \
    }
ORTHOGONALIZE(float, orthogonal_product_f32, orthogonalize_f32)
ORTHOGONALIZE(double, orthogonal_product_f64, orthogonalize_f64)
#undef ORTHOGONALIZE

static inline void orthogonalize_on_host(const keel_device_orthogonal *o)
{
    if (o->real == KEEL_FLOAT64)
        orthogonalize_f64(o);
    else
        orthogonalize_f32(o);
}

#endif
