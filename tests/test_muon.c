/* Muon on matrices that are larger than the blocks of its products: against products written out,
 * and the same whoever has which rows. Small ones are compared with Keras in test_optimizers.c. */
#include "base/memory.h"
#include "optimizers/optimizer.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 5, MOST = 130 * 300 };
static const double RATE = 0.02, MOMENTUM = 0.95, A = 3.4445, B = -4.775, C = 2.0315;

static double start[MOST], gradient[MOST];

static int draw_all(void **unused)
{
    uint32_t state = 1;
    (void)unused;
    for (int i = 0; i < 2 * MOST; i++) {
        state = state * 1664525u + 1013904223u;
        *(i < MOST ? &start[i] : &gradient[i - MOST]) = (double)(state >> 8) / 16777216.0 - 0.5;
    }
    return 0;
}

/* ---- written out ----------------------------------------------------------------------------- */

/* to = add_by add + by left right; right_is_turned: its transpose is given. */
static void multiply(double *to, const double *left, const double *right, bool turned,
                     const double *add, double add_by, double by, int rows, int inner, int columns)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = 0;
            for (int k = 0; k < inner; k++)
                sum +=
                    left[i * inner + k] * (turned ? right[j * inner + k] : right[k * columns + j]);
            to[i * columns + j] = by * sum + (add ? add_by * add[i * columns + j] : 0);
        }
}

static void expect_first_step(double *w, int rows, int columns)
{
    static double x[MOST], next[MOST], a[MOST], b[MOST];
    const int few = rows < columns ? rows : columns, many = rows + columns - few;
    double squares = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            const double g = (1 + MOMENTUM) * gradient[i * columns + j]; /* nesterov */
            x[rows > columns ? j * rows + i : i * columns + j] = g;
            squares += g * g;
        }
    for (int i = 0; i < few * many; i++) x[i] /= sqrt(squares) + 1e-7;
    for (int s = 0; s < STEPS; s++) {
        multiply(a, x, x, true, NULL, 0, 1, few, many, few);
        multiply(b, a, a, false, a, B, C, few, few, few);
        multiply(next, b, x, false, x, A, 1, few, few, many);
        memcpy(x, next, sizeof x);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            w[i * columns + j] =
                start[i * columns + j] -
                RATE * 0.2 * sqrt(many) * x[rows > columns ? j * rows + i : i * columns + j];
}

/* ---- by the optimizer ------------------------------------------------------------------------ */

static void *copy_of(const double *from, int n, bool wide)
{
    void *to = keel_aligned_calloc((size_t)n, wide ? 8 : 4);
    for (int i = 0; i < n; i++)
        if (wide)
            ((double *)to)[i] = from[i];
        else
            ((float *)to)[i] = (float)from[i];
    return to;
}

/* One step of a matrix that is one tile, in passes by rows in so many shares. */
static void *move(int rows, int columns, int shares, bool wide)
{
    const keel_optimizer *o = (const keel_optimizer *)keel_optimizer_find("muon");
    const keel_weight_info info = { .name = "dense/kernel",
                                    .spec = { .shape = { 2, { rows, columns } } } };
    const int count = rows * columns;
    const size_t element = wide ? 8 : 4;
    double sum[KEEL_SUM_PASSES][KEEL_UPDATE_SUMS] = { 0 };
    keel_slots slots;
    void *args = keel_calloc(1, o->type.args_size);
    assert_int_equal(keel_fields_read(&o->type, NULL, args), KEEL_OK);
    ((keel_optimizer_common *)args)->weight_decay = NAN;
    assert_int_equal(keel_optimizer_slots(o, args, &info, &slots), KEEL_OK);
    char *w = copy_of(start, count, wide), *g = copy_of(gradient, count, wide);
    char *m = keel_aligned_calloc((size_t)count, element);
    void *scratch = keel_aligned_calloc((size_t)slots.scratch, element);
    for (int pass = 0; pass < o->passes(args); pass++) {
        keel_update_whole whole = {
            .shape = &info.spec.shape, .count = count, .g = g, .w = w, .scratch = scratch
        };
        const keel_update u = { .args = args,
                                .iteration = 1,
                                .learning_rate = RATE,
                                .count = count,
                                .w = w,
                                .g = g,
                                .scale = 1,
                                .clip = INFINITY,
                                .slot = { m },
                                .pass = pass,
                                .sum = pass < KEEL_SUM_PASSES ? sum[pass] : NULL,
                                .whole = &whole };
        memcpy(whole.sum, sum, sizeof sum);
        whole.n_tile = o->by_rows(args, pass) ? shares : 1;
        for (whole.tile = 0; whole.tile < whole.n_tile; whole.tile++) o->apply[wide](&u);
    }
    keel_fields_free(&o->type, args);
    keel_free(args);
    keel_free(g);
    keel_free(m);
    keel_free(scratch);
    return w;
}

static const struct {
    int rows, columns;
} sizes[] = { { 1, 1 },   { 1, 40 },   { 40, 1 },   { 16, 16 },   { 17, 33 },  { 33, 17 },
              { 64, 64 }, { 100, 31 }, { 48, 300 }, { 130, 300 }, { 300, 130 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void a_step_is_that_of_products_written_out(void **unused)
{
    static double want[MOST];
    (void)unused;
    for (int s = 0; s < SIZES; s++) {
        const int count = sizes[s].rows * sizes[s].columns;
        double *w = move(sizes[s].rows, sizes[s].columns, 1, true);
        expect_first_step(want, sizes[s].rows, sizes[s].columns);
        for (int i = 0; i < count; i++)
            if (!(fabs(w[i] - want[i]) <= 1e-11))
                fail_msg("%d x %d, element %d: %.17g instead of %.17g", sizes[s].rows,
                         sizes[s].columns, i, w[i], want[i]);
        keel_free(w);
    }
}

static void rows_may_be_shared_in_any_way(void **unused)
{
    (void)unused;
    for (int s = 0; s < SIZES; s++)
        for (int wide = 0; wide < 2; wide++) {
            const int count = sizes[s].rows * sizes[s].columns;
            void *one = move(sizes[s].rows, sizes[s].columns, 1, wide);
            for (int shares = 2; shares <= 9; shares++) {
                void *more = move(sizes[s].rows, sizes[s].columns, shares, wide);
                assert_memory_equal(one, more, (size_t)count * (wide ? 8 : 4));
                keel_free(more);
            }
            keel_free(one);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_that_of_products_written_out),
        cmocka_unit_test(rows_may_be_shared_in_any_way),
    };
    return cmocka_run_group_tests(tests, draw_all, NULL);
}
