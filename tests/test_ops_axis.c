/* The vector kernels of ops along an axis against the op's own reference in float64, on rows of
 * every length that ends in another tail, and of numbers that lie close or far apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "graph/choose.h"
#include "ops/all.h"
#include "ops/args.h"

enum { ROWS = 3, LONGEST = 1000, MOST = 2 * ROWS * LONGEST };

static float x[MOST], y[MOST], dy[MOST], dx[MOST];
static double x8[MOST], y8[MOST], dy8[MOST], dx8[MOST];

static const struct function {
    const keel_op *op;
    /* bounds: in last places of float32, or so small an absolute distance that it is that of two
     * terms which cancel in double */
    double forward, backward, least;
} functions[] = {
    { &keel_op_glu, 1, 1, 0 },
    { &keel_op_log_softmax, 1, 1, 1e-9 },
    { &keel_op_sparsemax, 1, 1, 1e-9 },
};

static double off_by(float got, double want, double least)
{
    const float size = fabsf((float)want);
    const double off = fabs((double)got - want);
    return off <= least ? 0 : off / ((double)nextafterf(size, INFINITY) - (double)size);
}

static void node_of(keel_node *n, keel_spec *in, const keel_op *op, const keel_axis_args *args,
                    keel_shape shape, keel_dtype real)
{
    *in = (keel_spec){ real, shape };
    *n = (keel_node){ .op = op,
                      .args = args,
                      .layer = "a layer",
                      .training = true,
                      .backward = true,
                      .real = real,
                      .held = real,
                      .n_in = 1,
                      .in = in };
    assert_int_equal(keel_node_infer(n), KEEL_OK);
}

static void run(const keel_node *n, keel_run pass, bool adds, const void *in, void *out,
                const void *out_grad, void *in_grad)
{
    pass(&(keel_call){ .node = n,
                       .rows = ROWS,
                       .in = &in,
                       .out = &out,
                       .out_grad = &out_grad,
                       .in_grad = &in_grad,
                       .in_adds = &adds });
}

static void compare_list(const struct function *f, const char *kernel, const char *what,
                         int64_t length, double spread, const float *got, const double *want,
                         int64_t count, double most)
{
    for (int64_t i = 0; i < count; i++) {
        const double off = off_by(got[i], want[i], f->least * spread);
        if (off > most)
            fail_msg("%s_%s, rows of %lld spread by %g: %s %lld is %.9g, not %.9g, %.3g last "
                     "places off",
                     f->op->name, kernel, (long long)length, spread, what, (long long)i,
                     (double)got[i], want[i], off);
    }
}

/* Numbers as far apart as `spread`, and gradients that are there already. */
static void fill(double spread)
{
    static uint32_t low = 1;
    for (int i = 0; i < MOST; i++) {
        low = low * 1664525u + 1013904223u;
        x[i] = (float)(spread * ((double)(low >> 8) / (1 << 23) - 1));
        low = low * 1664525u + 1013904223u;
        dy[i] = (float)((double)(low >> 8) / (1 << 23) - 1);
        x8[i] = (double)x[i];
        dy8[i] = (double)dy[i];
        dx8[i] = (double)(dx[i] = 0.5f * dy[i]);
    }
}

/* Both passes of a kernel; false: it does not take the shape. */
static bool compare(const struct function *f, const keel_kernel *k, int64_t axis, keel_shape shape,
                    double spread, bool adds)
{
    const keel_axis_args args = { .axis = axis };
    const int64_t length = shape.dim[shape.rank - 1];
    keel_node narrow, wide;
    keel_spec in[2];
    node_of(&narrow, &in[0], f->op, &args, shape, KEEL_FLOAT32);
    node_of(&wide, &in[1], f->op, &args, shape, KEEL_FLOAT64);
    keel_prepare p = { .node = &narrow, .pass = KEEL_FORWARD, .rows = ROWS };
    const keel_status s = keel_kernel_prepare(k, &p);
    if (s >= 0) {
        const int64_t n_in = ROWS * keel_row_count(&in[0]);
        const int64_t n_out = ROWS * keel_row_count(&narrow.out[0]);
        assert_true(n_in <= MOST && p.scratch == 0);
        fill(spread);
        run(&narrow, k->run[KEEL_FORWARD], false, x, y, dy, dx);
        run(&wide, f->op->forward[1], false, x8, y8, dy8, dx8);
        compare_list(f, k->name, "output", length, spread, y, y8, n_out, f->forward);
        for (int64_t i = 0; i < n_out; i++) y8[i] = (double)y[i]; /* backward may read it */
        run(&narrow, k->run[KEEL_BACKWARD], adds, x, y, dy, dx);
        run(&wide, f->op->backward[1], adds, x8, y8, dy8, dx8);
        compare_list(f, k->name, "gradient", length, spread, dx, dx8, n_in, f->backward);
    }
    keel_node_clear(&narrow);
    keel_node_clear(&wide);
    return s >= 0;
}

static void every_length_is_within_its_bound(void **state)
{
    static const double spreads[] = { 0.01, 1, 20, 1000 };
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int k = 0; keel_kernels[k]; k++) {
            const struct function *f = &functions[i];
            const bool halves = f->op == &keel_op_glu;
            if (keel_kernels[k]->op != f->op) continue;
            for (int64_t n = 1; n <= LONGEST; n = n < 80 ? n + 1 : n * 3)
                for (size_t at = 0; at < sizeof spreads / sizeof *spreads; at++)
                    compare(f, keel_kernels[k], -1, KEEL_SHAPE(halves ? 2 * n : n), spreads[at],
                            at % 2);
        }
}

/* glu's halves are whole stretches along any axis; the others would take elements from afar. (Rows
 * are as long as the kernel of sparsemax wants them.) */
static void only_glu_takes_another_axis_than_the_last(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int k = 0; keel_kernels[k]; k++) {
            const struct function *f = &functions[i];
            if (keel_kernels[k]->op != f->op ||
                !compare(f, keel_kernels[k], -1, KEEL_SHAPE(4, 70), 1, false))
                continue;
            assert_true(compare(f, keel_kernels[k], 1, KEEL_SHAPE(4, 70), 1, true));
            assert_int_equal(compare(f, keel_kernels[k], 0, KEEL_SHAPE(4, 69), 1, true),
                             f->op == &keel_op_glu);
        }
}

/* Each row has one number that is odd: what follows is what the reference makes of it. */
static void what_is_no_number_spreads_as_in_the_reference(void **state)
{
    static const float odd[] = { NAN, INFINITY, -INFINITY, 0 };
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int k = 0; keel_kernels[k]; k++)
            for (size_t at = 0; at < ROWS * sizeof odd / sizeof *odd; at++) {
                enum { LENGTH = 72 };
                const keel_axis_args args = { .axis = -1 };
                keel_node n;
                keel_spec in;
                if (keel_kernels[k]->op != functions[i].op) continue;
                node_of(&n, &in, functions[i].op, &args, KEEL_SHAPE(LENGTH), KEEL_FLOAT32);
                keel_prepare p = { .node = &n, .pass = KEEL_FORWARD, .rows = ROWS };
                fill(1);
                x[at / ROWS * LENGTH / 4 + at % ROWS * LENGTH] = odd[at / ROWS];
                if (keel_kernel_prepare(keel_kernels[k], &p) >= 0) {
                    float want[ROWS * LENGTH];
                    run(&n, functions[i].op->forward[0], false, x, want, dy, dx);
                    run(&n, keel_kernels[k]->run[KEEL_FORWARD], false, x, y, dy, dx);
                    for (int64_t e = 0; e < ROWS * keel_row_count(&n.out[0]); e++)
                        if (isnan(want[e]) != isnan(y[e]) || isinf(want[e]) != isinf(y[e]))
                            fail_msg("%s_%s: %g in a row makes output %d %g, not %g",
                                     functions[i].op->name, keel_kernels[k]->name,
                                     (double)odd[at / ROWS], (int)e, (double)y[e], (double)want[e]);
                }
                keel_node_clear(&n);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_within_its_bound),
        cmocka_unit_test(only_glu_takes_another_axis_than_the_last),
        cmocka_unit_test(what_is_no_number_spreads_as_in_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
