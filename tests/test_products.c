/* The products of matrices that optimizers and regularizers are made of
 * (optimizers/product_impl.h): bit for bit sums in the order of k, whatever rows are computed
 * together. */
#ifndef REAL
#include "base/memory.h"
#include "optimizers/one_pass.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct size {
    int64_t rows, inner, columns;
} size;

static uint32_t state_of_draws = 1;

static double draw(void)
{
    state_of_draws = state_of_draws * 1664525u + 1013904223u;
    return (double)(state_of_draws >> 8) / 16777216.0 - 0.5;
}

#define REAL_FILE "test_products.c"
#include "ops/real.h"

static void a_sum_has_the_same_bits_in_any_block_of_rows(void **unused)
{
    static const int64_t sizes[] = { 1, 2, 5, 6, 7, 15, 16, 17, 31, 40, 255, 256, 257, 515 };
    enum { N = sizeof sizes / sizeof *sizes };
    (void)unused;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) {
                if (sizes[i] * sizes[k] * sizes[j] > 2000000) continue;
                check_f32((size){ sizes[i], sizes[k], sizes[j] });
                check_f64((size){ sizes[i], sizes[k], sizes[j] });
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_has_the_same_bits_in_any_block_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
#include "optimizers/product_impl.h"

static REAL *REAL_(drawn)(int64_t n)
{
    REAL *x = keel_calloc((size_t)n, sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < n; i++) x[i] = (REAL)draw();
    return x;
}

static REAL REAL_(one)(const REAL_(product_t) * p, int64_t i, int64_t j)
{
    REAL sum = 0;
    for (int64_t k = 0; k < p->inner; k++) {
        const REAL product = p->left[i * p->inner + k] * p->right[k * p->columns + j];
        sum += product;
    }
    sum *= p->by;
    if (p->scale != 0) {
        const REAL added = p->scale * p->add[i * p->columns + j];
        sum += added;
    }
    return sum;
}

/* Rows are computed in three parts; with a scale of 0, what is added is what was there. */
static void REAL_(check)(size s)
{
    REAL *left = REAL_(drawn)(s.rows * s.inner), *right = REAL_(drawn)(s.inner * s.columns);
    REAL *add = REAL_(drawn)(s.rows * s.columns), *out = REAL_(drawn)(s.rows * s.columns);
    for (int scaled = 0; scaled < 2; scaled++) {
        const REAL_(product_t)
            p = { out,         left,    right,    scaled ? add : out, scaled ? 3 : 0,
                  (REAL)0.625, s.inner, s.columns };
        for (int64_t i = 0; i < s.rows * s.columns && !scaled; i++) out[i] = NAN;
        const int64_t cut[] = { 0, s.rows / 3, s.rows / 2, s.rows };
        for (int k = 0; k < 3; k++) REAL_(product)(&p, cut[k], cut[k + 1]);
        for (int64_t i = 0; i < s.rows; i++)
            for (int64_t j = 0; j < s.columns; j++)
                if (out[i * s.columns + j] != REAL_(one)(&p, i, j))
                    fail_msg("%lld x %lld x %lld, element %lld, %lld: %.17g instead of %.17g",
                             (long long)s.rows, (long long)s.inner, (long long)s.columns,
                             (long long)i, (long long)j, (double)out[i * s.columns + j],
                             (double)REAL_(one)(&p, i, j));
    }
    keel_free(left);
    keel_free(right);
    keel_free(add);
    keel_free(out);
}
#endif
