/* Winograd's convolution against the direct sum: its error, measured in double, is at most twice
 * that of a plain float32 sum (tiles of 4: three times for wide-range numbers), for normal,
 * wide-range and all-positive numbers and for long sums; a row gives the same bits whatever rows
 * are beside it. (That it computes what the reference does, over odd shapes, is held by
 * tests/test_ops_kernels.c.)
 *
 * On values held in bfloat16 it is measured against the direct products of the same values, and
 * both against sums of the numbers before they were rounded: so the direct error is that of
 * rounding values, weights and results. Winograd rounds values and weights once more, transformed.
 * Where numbers have either sign a transformed value has 4 times the variance of a value, and a
 * result is made of roundings with 25 / 9 of the direct variance for each operand in forward and
 * backward, 4 times it in weights: an error of sqrt((1 + 2 x 25/9) / 2) = 1.8 and of
 * sqrt((2 + 2 x 4) / 2) = 2.2 times the direct one; hence the bound of 3. Over one dim, with tiles
 * of 4, both are 2.2 on average; for wide-range numbers, of which the largest of a tile decides how
 * all are rounded, the bound is 4.5. Tiles of 3x3 for 2x2 windows add up to nine outputs before
 * rounding, which counts where all have one sign: 3.5 in their weights. (Odd shapes, and rows
 * apart: tests/narrow_cases.h.) */
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "ops/args.h"
#include "ops_harness.h"
#include "tensor/bfloat16.h"

typedef enum numbers { NORMAL, WIDE, POSITIVE, NUMBERS } numbers;
static const char *const numbers_name[] = { "normal", "wide-range", "positive" };

static uint32_t seed = 1;
static double uniform(void) /* in (0, 1) */
{
    seed = seed * 1664525u + 1013904223u;
    return ((double)(seed >> 8) + 0.5) / (1 << 24);
}

static void fill(float *x, int64_t n, numbers kind)
{
    for (int64_t i = 0; i < n; i++) {
        const double sign = uniform() < 0.5 ? -1 : 1;
        if (kind == NORMAL) x[i] = (float)(sqrt(-2 * log(uniform())) * cos(6.2831853 * uniform()));
        if (kind == WIDE) x[i] = (float)(sign * exp2(24 * uniform() - 12));
        if (kind == POSITIVE) x[i] = (float)uniform();
    }
}

/* The three passes as plain sums in T, terms one after the other. Sanitizers look at kernels and
 * not at these loops, where the test spends its time. */
#define DIRECT(name, T)                                                                            \
    __attribute__((no_sanitize("address", "undefined"))) static void name(                         \
        const lab *l, keel_pass pass, const float *a, const float *b, T *restrict out)             \
    {                                                                                              \
        const keel_conv2d_args *g = (const void *)l->args;                                         \
        const int64_t *x = l->in_spec[0].shape.dim, *y = l->node.out->shape.dim, nc = x[2];        \
        const int64_t nk = y[2], *window = l->node.weight[0].shape.dim;                            \
        for (int64_t at = 0; at < l->rows * y[0] * y[1]; at++)                                     \
            for (int64_t tap = 0; tap < window[0] * window[1]; tap++) {                            \
                const int64_t row = at / (y[0] * y[1]);                                            \
                const int64_t h = at / y[1] % y[0] * g->strides[0] + tap / window[1] - g->pad[0];  \
                const int64_t w = at % y[1] * g->strides[1] + tap % window[1] - g->pad[2];         \
                if (h < 0 || w < 0 || h >= x[0] || w >= x[1]) continue;                            \
                const int64_t pixel = ((row * x[0] + h) * x[1] + w) * nc;                          \
                for (int64_t c = 0; c < nc; c++) {                                                 \
                    const int64_t in = pixel + c, to = at * nk, kernel = (tap * nc + c) * nk;      \
                    if (pass == KEEL_FORWARD)                                                      \
                        for (int64_t k = 0; k < nk; k++)                                           \
                            out[to + k] += (T)a[in] * (T)b[kernel + k];                            \
                    if (pass == KEEL_WEIGHTS)                                                      \
                        for (int64_t k = 0; k < nk; k++)                                           \
                            out[kernel + k] += (T)a[in] * (T)b[to + k];                            \
                    T sum = pass == KEEL_BACKWARD ? out[in] : 0;                                   \
                    if (pass == KEEL_BACKWARD) {                                                   \
                        for (int64_t k = 0; k < nk; k++) sum += (T)a[to + k] * (T)b[kernel + k];   \
                        out[in] = sum;                                                             \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
    }
DIRECT(direct_float, float)
DIRECT(direct_double, double)

static keel_derived *copies[4];
static int n_copies;
static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const lab *l = context;
    keel_derived *d = keel_calloc(1, sizeof *d);
    assert_true(d && n_copies < 4);
    *d = *want;
    d->data = keel_aligned_calloc(d->bytes, 1);
    d->refresh(d, l->weight[d->weight]);
    *got = copies[n_copies++] = d;
    return KEEL_OK;
}

/* As a table of measured kernels would have it, without which products of pieces are not made. */
static keel_prepare asked(lab *l, keel_pass pass, int64_t rows)
{
    return (keel_prepare){ .node = &l->node,
                           .pass = pass,
                           .rows = rows,
                           .float32 = KEEL_FLOAT32_EXACT,
                           .measured = true,
                           .derive = derive,
                           .context = l };
}

/* Rows [first, first + rows) of the lab; false: the kernel declines. */
static bool run(lab *l, const keel_kernel *kernel, keel_pass pass, int64_t first, int64_t rows)
{
    keel_prepare p = asked(l, pass, rows);
    const keel_status s = keel_kernel_prepare(kernel, &p);
    if (s == KEEL_EUNSUP) return false;
    assert_int_equal(s, KEEL_OK);
    float *scratch = keel_aligned_calloc((size_t)p.scratch + 64, 1);
    memset(scratch, 0xff, (size_t)p.scratch);
    const int64_t in_at = first * keel_row_count(&l->in_spec[0]);
    const int64_t out_at = first * keel_row_count(&l->node.out[0]);
    const void *in[] = { (float *)l->in[0] + in_at };
    void *in_grad[] = { (float *)l->in_grad[0] + in_at }, *weight_grad[LAB_WEIGHTS_MAX];
    const void *weight[LAB_WEIGHTS_MAX];
    keel_call c = { .node = &l->node,
                    .step = &l->step,
                    .rows = rows,
                    .in = in,
                    .out = (void *[]){ (float *)l->out + out_at },
                    .out_grad = (const void *[]){ (float *)l->out_grad + out_at },
                    .weight = weight,
                    .weight_grad = weight_grad,
                    .in_grad = in_grad,
                    .in_adds = &l->in_adds,
                    .weight_adds = l->weight_adds,
                    .scratch = scratch,
                    .plan = p.plan };
    for (int i = 0; i < l->node.n_weight; i++) {
        weight[i] = l->weight[i];
        weight_grad[i] = l->frozen[i] ? NULL : l->weight_grad[i];
    }
    kernel->run[pass](&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    kernel->release(p.plan);
    while (n_copies > 0) {
        keel_derived *d = copies[--n_copies];
        d->release(d->plan);
        keel_free(d->data);
        keel_free(d);
    }
    keel_free(scratch);
    return true;
}

static double largest_error(const float *got, const double *want, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = fabs(got[i] - want[i]);
        if (!(off <= most)) most = off;
    }
    return most;
}

/* The largest error over that of the plain float32 sum; 0: the kernel declines. */
static double error_ratio(lab *l, const keel_kernel *kernel, keel_pass pass)
{
    const float *a = pass == KEEL_BACKWARD ? l->out_grad : l->in[0];
    const float *b = pass == KEEL_WEIGHTS ? l->out_grad : l->weight[0];
    float *got = pass == KEEL_FORWARD    ? l->out
                 : pass == KEEL_BACKWARD ? l->in_grad[0]
                                         : l->weight_grad[0];
    const int64_t n = pass == KEEL_FORWARD    ? lab_out_count(l)
                      : pass == KEEL_BACKWARD ? lab_in_count(l, 0)
                                              : keel_row_count(&l->node.weight[0]);
    float *plain = keel_calloc((size_t)n, sizeof *plain);
    double *exact = keel_calloc((size_t)n, sizeof *exact);
    if (!run(l, kernel, pass, 0, l->rows)) {
        keel_free(plain);
        keel_free(exact);
        return 0;
    }
    direct_float(l, pass, a, b, plain);
    direct_double(l, pass, a, b, exact);
    const double ratio = largest_error(got, exact, n) / largest_error(plain, exact, n);
    keel_free(plain);
    keel_free(exact);
    return ratio;
}

/* Of those that this processor can run; on emulated tiles, of those that use tiles. */
static bool is_winograd(const keel_kernel *k)
{
    return k->op == &keel_op_conv2d && strstr(k->name, "winograd") && k->run[KEEL_FORWARD] &&
           k->needs <= (int)keel_cpu_level() && (!EMULATED || strstr(k->name, "split"));
}

/* Volumes: conv2d's kernels on slices side by side, so the errors are theirs. */
static bool is_of_volumes(const keel_kernel *k)
{
    return k->op == keel_op_find("conv3d") && strstr(k->name, "winograd") && k->run[KEEL_FORWARD] &&
           k->needs <= (int)keel_cpu_level() && !EMULATED;
}

/* What a kernel takes: 3x3 windows that move by one pixel, by two, windows over one dim, larger
 * ones in pieces, volumes, or 2x2 windows. */
typedef enum way { SQUARE, STRIDED, LINES, PIECES, VOLUMES, TWOS, WAYS } way;
static way way_of(const keel_kernel *k)
{
    if (is_of_volumes(k)) return VOLUMES;
    if (strstr(k->name, "pieces")) return PIECES;
    if (strstr(k->name, "2x2")) return TWOS;
    return strstr(k->name, "strided") ? STRIDED : strstr(k->name, "1d") ? LINES : SQUARE;
}

static bool takes(const keel_kernel *k, const keel_case *c)
{
    const bool strided = c->args && strstr(c->args, "strides 2,2");
    if (strncmp(c->weights, "2,2", 3) == 0) return way_of(k) == TWOS;
    if (c->weights[0] > '3' && c->weights[2] > '3') return way_of(k) == PIECES;
    const bool lines = strncmp(c->weights, "3,3", 3) != 0;
    return way_of(k) == (strided ? STRIDED : lines ? LINES : SQUARE);
}

static void fill_lab(lab *l, numbers kind)
{
    fill(l->in[0], lab_in_count(l, 0), kind);
    fill(l->weight[0], keel_row_count(&l->node.weight[0]), kind);
    fill(l->out_grad, lab_out_count(l), kind);
}

/* Long sums over channels, over filters, over places. */
static const struct {
    keel_case c;
    int64_t rows;
} cases[] = {
    { { "7,7,512", "3,3,512,64", "pad 1,1,1,1" }, 1 },
    { { "8,8,64", "3,3,64,512", "pad 1,1,1,1" }, 1 },
    { { "8,8,576", "3,3,576,64", "pad 1,1,1,1" }, 1 },
    { { "30,30,32", "3,3,32,32", NULL }, 6 },
    { { "14,14,256", "3,3,256,64", "pad 1,1,1,1" }, 3 },
    { { "16,15,64", "3,3,64,256", "pad 1,1,1,1" }, 3 },
    { { "14,14,512", "3,3,512,64", "strides 2,2 pad 1,1,1,1" }, 1 },
    { { "16,16,64", "3,3,64,512", "strides 2,2 pad 0,1,0,1" }, 1 },
    { { "57,59,32", "3,3,32,32", "strides 2,2" }, 6 },
    { { "14,14,256", "5,5,256,64", "pad 2,2,2,2" }, 1 },
    { { "31,32,64", "5,5,64,256", "strides 2,2 pad 1,2,1,2" }, 1 },
    { { "30,30,32", "5,5,32,32", NULL }, 6 },
    { { "16,16,256", "4,4,256,64", "strides 2,2 pad 1,1,1,1" }, 1 },
    { { "31,32,64", "4,4,64,256", "pad 1,2,1,2" }, 1 },
    { { "16,16,512", "2,2,512,64", "pad 0,1,0,1" }, 1 },
    { { "9,10,256", "2,2,256,64", "pad 0,1,1,0" }, 1 },
    { { "25,25,64", "2,2,64,512", "pad 1,0,1,0" }, 1 },
    { { "34,35,32", "2,2,32,32", "pad 0,1,1,0" }, 6 },
    { { "50,1,512", "3,1,512,64", "pad 1,1,0,0" }, 1 },
    { { "1,61,64", "1,3,64,512", "pad 0,0,1,1" }, 1 },
    { { "1001,1,32", "3,1,32,32", NULL }, 6 },
};

static void errors_are_those_of_a_plain_float32_sum_within_twice(void **state)
{
    (void)state;
    const keel_op *op = keel_op_find("conv2d");
    for (int i = 0; keel_kernels[i]; i++) {
        int taken[3] = { 0 };
        for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
            for (numbers kind = 0; kind < NUMBERS; kind++) {
                const keel_kernel *k = keel_kernels[i];
                lab l;
                double ratio[3];
                if (!is_winograd(k) || !takes(k, &cases[at].c)) continue;
                assert_int_equal(lab_open(&l, op, &cases[at].c, false, true, cases[at].rows), 0);
                seed = 1; /* the same numbers whatever kernels there are */
                fill_lab(&l, kind);
                for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++) {
                    ratio[pass] = error_ratio(&l, k, pass);
                    taken[pass] += ratio[pass] > 0;
                }
                print_message("%s, %s, %s: forward %.2f, backward %.2f, weights %.2f\n", k->name,
                              cases[at].c.weights, numbers_name[kind], ratio[0], ratio[1],
                              ratio[2]);
                const bool larger = strstr(k->name, "winograd4_avx") || strstr(k->name, "split") ||
                                    way_of(k) == LINES || way_of(k) == PIECES;
                for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++)
                    assert_true(ratio[pass] <= (larger && kind == WIDE ? 3 : 2));
                lab_close(&l);
            }
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++)
            assert_true(!is_winograd(keel_kernels[i]) || taken[pass] >= 2 * NUMBERS);
    }
}

static void bits_of_a_row_do_not_depend_on_the_rows_beside_it(void **state)
{
    static const keel_case of[] = { { "15,14,64", "3,3,64,90|90", "pad 1,1,2,0" },
                                    { "13,9,64", "3,3,64,94|94", "strides 2,2 pad 1,1,2,1" },
                                    { "121,1,64", "3,1,64,90|90", "pad 2,0,0,0" },
                                    { "15,16,24", "5,5,24,90|90", "pad 3,1,2,2" },
                                    { "5,15,14,24", "3,3,3,24,90|90", "pad 2,0,1,1,2,0" },
                                    { "20,21,64", "2,2,64,90|90", "pad 1,0,0,1" } };
    enum { ALL = 9 };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++) {
        lab whole, cut;
        const keel_case *c = &of[way_of(keel_kernels[i])];
        if (!is_winograd(keel_kernels[i]) && !is_of_volumes(keel_kernels[i])) continue;
        assert_int_equal(lab_open(&whole, keel_kernels[i]->op, c, false, true, ALL), 0);
        assert_int_equal(lab_open(&cut, keel_kernels[i]->op, c, false, true, ALL), 0);
        seed = 5;
        fill_lab(&whole, NORMAL);
        seed = 5;
        fill_lab(&cut, NORMAL);
        for (int64_t each = 1; each < ALL; each++)
            for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
                const bool forward = pass == KEEL_FORWARD;
                const int64_t n = forward ? lab_out_count(&cut) : lab_in_count(&cut, 0);
                void *of_cut = forward ? cut.out : cut.in_grad[0];
                lab_fill(&cut, of_cut, n, NAN);
                assert_true(run(&whole, keel_kernels[i], pass, 0, ALL));
                for (int64_t row = 0; row < ALL; row += each)
                    run(&cut, keel_kernels[i], pass, row, row + each < ALL ? each : ALL - row);
                assert_memory_equal(forward ? whole.out : whole.in_grad[0], of_cut,
                                    (size_t)n * sizeof(float));
            }
        lab_close(&whole);
        lab_close(&cut);
    }
}

static void frozen_weights_leave_the_gradient_of_the_bias_alone(void **state)
{
    static const keel_case of[] = { { "14,14,160", "3,3,160,64|64", "pad 1,1,1,1" },
                                    { "9,13,160", "3,3,160,64|64", "strides 2,2 pad 1,1,1,1" },
                                    { "1,30,160", "1,3,160,64|64", NULL },
                                    { "14,14,40", "5,5,40,64|64", "pad 2,2,2,2" },
                                    { "3,14,14,54", "3,3,3,54,64|64", "pad 1,1,1,1,1,1" },
                                    { "25,25,160", "2,2,160,64|64", "pad 1,0,0,1" } };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++) {
        lab l;
        float bias[64];
        const keel_case *c = &of[way_of(keel_kernels[i])];
        if (!is_winograd(keel_kernels[i]) && !is_of_volumes(keel_kernels[i])) continue;
        assert_int_equal(lab_open(&l, keel_kernels[i]->op, c, false, true, 3), 0);
        const int64_t count = keel_row_count(&l.node.weight[0]);
        assert_true(run(&l, keel_kernels[i], KEEL_WEIGHTS, 0, 3));
        memcpy(bias, l.weight_grad[1], sizeof bias);
        lab_fill(&l, l.weight_grad[0], count, 7);
        lab_fill(&l, l.weight_grad[1], 64, NAN);
        l.frozen[0] = true;
        run(&l, keel_kernels[i], KEEL_WEIGHTS, 0, 3);
        assert_memory_equal(bias, l.weight_grad[1], sizeof bias);
        for (int64_t e = 0; e < count; e++) assert_true(((float *)l.weight_grad[0])[e] == 7);
        l.frozen[0] = false;
        l.frozen[1] = true;
        lab_fill(&l, l.weight_grad[1], 64, 7);
        run(&l, keel_kernels[i], KEEL_WEIGHTS, 0, 3);
        for (int64_t e = 0; e < 64; e++) assert_true(((float *)l.weight_grad[1])[e] == 7);
        lab_close(&l);
    }
}

static void small_or_unfit_shapes_are_left_to_others(void **state)
{
    enum { EACH = 7 };
    static const keel_case unfit[WAYS][EACH] = {
        { { "9,9,8", "3,3,8,32", NULL },            /* few channels */
          { "14,14,64", "3,3,64,4", NULL },         /* few filters */
          { "1,1,64", "3,3,64,64", "pad 1,1,1,1" }, /* tiles mostly empty */
          { "14,14,64", "3,3,64,64", "strides 2,2" },
          { "14,14,64", "3,3,64,64", "dilation 2,2" },
          { "14,14,64", "3,3,32,64", "groups 2" },
          { "14,14,64", "3,2,64,64", NULL } },
        { { "17,17,8", "3,3,8,32", "strides 2,2" },
          { "17,17,64", "3,3,64,8", "strides 2,2" },
          { "14,14,64", "3,3,64,64", NULL },
          { "14,14,64", "3,3,64,64", "strides 2,1" },
          { "14,14,64", "3,3,64,64", "strides 2,2 dilation 2,2" },
          { "14,14,64", "3,3,32,64", "strides 2,2 groups 2" },
          { "14,14,64", "3,2,64,64", "strides 2,2" } },
        { { "40,1,8", "3,1,8,64", NULL },
          { "40,1,64", "3,1,64,8", NULL },
          { "2,1,64", "3,1,64,64", "pad 1,1,0,0" },
          { "40,1,64", "3,1,64,64", "strides 2,1" },
          { "40,1,64", "3,1,64,64", "dilation 2,1" },
          { "40,1,64", "3,1,32,64", "groups 2" },
          { "40,1,64", "5,1,64,64", NULL } },
        { { "14,14,8", "5,5,8,32", NULL },
          { "19,19,64", "5,5,64,2", NULL },
          { "7,7,64", "5,5,64,64", "pad 2,2,2,2" },
          { "19,19,64", "4,1,64,64", "strides 2,2" },
          { "19,19,64", "5,5,64,64", "dilation 2,2 pad 4,4,4,4" },
          { "19,19,64", "5,5,32,64", "groups 2" },
          { "39,39,64", "7,7,64,64", "strides 2,2" } },
        { { "3,9,9,4", "3,3,3,4,32", NULL },
          { "3,14,14,64", "3,3,3,64,2", NULL },
          { "3,2,1,64", "3,3,3,64,64", "pad 1,1,1,1,1,1" },
          { "3,14,14,64", "3,3,3,64,64", "strides 1,2,1" },
          { "3,14,14,64", "3,3,3,64,64", "dilation 1,2,2" },
          { "3,14,14,64", "3,3,3,32,64", "groups 2" },
          { "3,14,14,64", "3,3,2,64,64", NULL } },
        { { "9,9,4", "2,2,4,64", "pad 0,1,0,1" },
          { "25,25,64", "2,2,64,4", "pad 0,1,0,1" },
          { "1,1,64", "2,2,64,64", "pad 0,1,0,1" },
          { "25,25,64", "2,2,64,64", "strides 2,2" },
          { "25,25,64", "2,2,64,64", "dilation 2,2" },
          { "25,25,64", "2,2,32,64", "groups 2" },
          { "25,25,64", "3,2,64,64", NULL } },
    };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++)
        for (size_t at = 0; at < EACH; at++)
            for (keel_pass pass = 0; pass < KEEL_PASS_COUNT; pass++) {
                const way of = way_of(keel_kernels[i]);
                lab l;
                if (!is_winograd(keel_kernels[i]) && !is_of_volumes(keel_kernels[i])) continue;
                assert_int_equal(lab_open(&l, keel_kernels[i]->op, &unfit[of][at], false, true, 2),
                                 0);
                keel_prepare p = asked(&l, pass, 2);
                if (of != SQUARE || pass != KEEL_BACKWARD || at > 0)
                    assert_int_equal(keel_kernel_prepare(keel_kernels[i], &p), KEEL_EUNSUP);
                lab_close(&l);
            }
}

/* Values held in bfloat16 ---------------------------------------------------------------------- */

static keel_bf16 *narrowed(const float *f, int64_t n)
{
    keel_bf16 *b = keel_aligned_calloc((size_t)n, sizeof *b);
    assert_non_null(b);
    keel_bf16_narrow(b, f, n);
    return b;
}

/* The same node, its values in bfloat16. */
static keel_node narrow_node(const lab *l, keel_spec spec[2])
{
    keel_node n = l->node;
    spec[0] = l->in_spec[0];
    spec[1] = n.out[0];
    spec[0].dtype = spec[1].dtype = n.held = KEEL_BFLOAT16;
    n.in = &spec[0];
    n.out = &spec[1];
    return n;
}

/* A pass on the lab's numbers, rounded; the result, widened, in `out` [n]. false: declined. */
static bool run_narrow(lab *l, const keel_kernel *kernel, keel_pass pass, float *out, int64_t n)
{
    keel_spec spec[2];
    const keel_node node = narrow_node(l, spec);
    keel_prepare p = {
        .node = &node, .pass = pass, .rows = l->rows, .derive = derive, .context = l
    };
    const keel_status s = keel_kernel_prepare(kernel, &p);
    if (s == KEEL_EUNSUP) return false;
    assert_int_equal(s, KEEL_OK);
    keel_bf16 *x = narrowed(l->in[0], lab_in_count(l, 0));
    keel_bf16 *dy = narrowed(l->out_grad, lab_out_count(l));
    keel_bf16 *result = keel_aligned_calloc((size_t)n, sizeof *result);
    void *scratch = keel_aligned_calloc((size_t)p.scratch + 64, 1);
    memset(scratch, 0xff, (size_t)p.scratch);
    const void *in[] = { x };
    void *in_grad[] = { result };
    keel_call c = { .node = &node,
                    .step = &l->step,
                    .rows = l->rows,
                    .in = in,
                    .out = (void *[]){ result },
                    .weight = (const void *[]){ l->weight[0], NULL },
                    .out_grad = (const void *[]){ dy },
                    .in_grad = in_grad,
                    .in_adds = &l->in_adds,
                    .weight_grad = (void *[]){ out },
                    .scratch = scratch,
                    .plan = p.plan };
    kernel->narrow[pass](&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    if (pass != KEEL_WEIGHTS) keel_bf16_widen(out, result, n);
    kernel->release(p.plan);
    while (n_copies > 0) {
        keel_derived *d = copies[--n_copies];
        d->release(d->plan);
        keel_free(d->data);
        keel_free(d);
    }
    keel_free(scratch);
    keel_free(result);
    keel_free(dy);
    keel_free(x);
    return true;
}

static const keel_kernel *kernel_of(const char *name)
{
    for (int i = 0; keel_kernels[i]; i++)
        if (keel_kernels[i]->op == &keel_op_conv2d && strcmp(keel_kernels[i]->name, name) == 0)
            return keel_kernels[i];
    return NULL;
}

/* The largest error over that of the direct products; 0: the processor has none, or the kernel
 * declines. */
static double narrow_ratio(lab *l, const keel_kernel *kernel, keel_pass pass)
{
    const float *a = pass == KEEL_BACKWARD ? l->out_grad : l->in[0];
    const float *b = pass == KEEL_WEIGHTS ? l->out_grad : l->weight[0];
    const int64_t n = pass == KEEL_FORWARD    ? lab_out_count(l)
                      : pass == KEEL_BACKWARD ? lab_in_count(l, 0)
                                              : keel_row_count(&l->node.weight[0]);
    float *got = keel_aligned_calloc((size_t)n, sizeof *got);
    double *exact = keel_calloc((size_t)n, sizeof *exact), ratio = 0;
    if (run_narrow(l, kernel_of("avx512_bf16"), pass, got, n)) {
        direct_double(l, pass, a, b, exact);
        const double direct = largest_error(got, exact, n);
        if (run_narrow(l, kernel, pass, got, n)) ratio = largest_error(got, exact, n) / direct;
    }
    keel_free(exact);
    keel_free(got);
    return ratio;
}

/* The kernels by pairs, as far as there are any. */
static const char *const by_pairs[] = { "winograd_avx512_bf16", "1d_winograd_avx512_bf16",
                                        "winograd_2x2_avx512_bf16", "winograd_pieces_avx512_bf16" };
enum { BY_PAIRS = sizeof by_pairs / sizeof *by_pairs };

/* See the top. */
static double narrow_bound(const keel_kernel *k, numbers kind, keel_pass pass)
{
    if (way_of(k) == LINES && kind == WIDE) return 4.5;
    const bool tiles_of_3 = way_of(k) == TWOS || way_of(k) == PIECES;
    return tiles_of_3 && kind == POSITIVE && pass == KEEL_WEIGHTS ? 3.5 : 3;
}

static void compare_narrow(const keel_kernel *k)
{
    int taken[3] = { 0 };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        for (numbers kind = 0; kind < NUMBERS; kind++) {
            lab l;
            double ratio[3];
            if (!takes(k, &cases[at].c)) continue;
            assert_int_equal(
                lab_open(&l, keel_op_find("conv2d"), &cases[at].c, false, true, cases[at].rows), 0);
            seed = 1;
            fill_lab(&l, kind);
            for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++) {
                ratio[pass] = narrow_ratio(&l, k, pass);
                taken[pass] += ratio[pass] > 0;
            }
            print_message("%s, %s, %s: forward %.2f, backward %.2f, weights %.2f\n", k->name,
                          cases[at].c.weights, numbers_name[kind], ratio[0], ratio[1], ratio[2]);
            for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++)
                assert_true(ratio[pass] <= narrow_bound(k, kind, pass));
            lab_close(&l);
        }
    for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++)
        assert_true(taken[pass] >= NUMBERS);
}

static void errors_in_bfloat16_are_at_most_three_times_the_direct_ones(void **state)
{
    (void)state;
    if (!kernel_of(by_pairs[0])) skip();
    for (int i = 0; i < BY_PAIRS; i++) compare_narrow(kernel_of(by_pairs[i]));
}

static void decline(const keel_kernel *k, const keel_case *c)
{
    for (keel_pass pass = 0; pass < KEEL_PASS_COUNT; pass++) {
        lab l;
        keel_spec spec[2];
        assert_int_equal(lab_open(&l, keel_op_find("conv2d"), c, false, true, 2), 0);
        const keel_node n = narrow_node(&l, spec);
        keel_prepare p = { .node = &n, .pass = pass, .rows = 2, .derive = derive, .context = &l };
        assert_int_equal(keel_kernel_prepare(k, &p), KEEL_EUNSUP);
        p.node = &l.node; /* float32 */
        assert_int_equal(keel_kernel_prepare(k, &p), KEEL_EUNSUP);
        lab_close(&l);
    }
}

static void bfloat16_of_unfit_shapes_is_left_to_others(void **state)
{
    enum { EACH = 7 };
    static const keel_case unfit[BY_PAIRS][EACH] = {
        { { "14,14,48", "3,3,48,64", NULL },        /* not whole vectors of channels */
          { "14,14,64", "3,3,64,48", NULL },        /* or of filters */
          { "3,3,64", "3,3,64,64", "pad 1,1,1,1" }, /* tiles mostly empty */
          { "14,14,64", "3,3,64,64", "strides 2,2" },
          { "14,14,64", "3,3,64,64", "dilation 2,2" },
          { "14,14,64", "3,3,32,64", "groups 2" },
          { "14,14,64", "5,5,64,64", NULL } },
        { { "40,1,8", "3,1,8,64", NULL }, /* few channels, few filters */
          { "40,1,64", "3,1,64,8", NULL },
          { "2,1,64", "3,1,64,64", "pad 1,1,0,0" }, /* tiles mostly empty */
          { "40,1,64", "3,1,64,64", "strides 2,1" },
          { "40,1,64", "3,1,64,64", "dilation 2,1" },
          { "40,1,64", "3,1,32,64", "groups 2" },
          { "40,1,64", "5,1,64,64", NULL } },
        { { "14,14,48", "2,2,48,64", NULL },
          { "14,14,64", "2,2,64,48", NULL },
          { "5,5,64", "2,2,64,64", "pad 0,1,0,1" },
          { "14,14,64", "2,2,64,64", "strides 2,2" },
          { "14,14,64", "2,2,64,64", "dilation 2,2" },
          { "14,14,64", "2,2,32,64", "groups 2" },
          { "14,14,64", "3,3,64,64", NULL } },
        { { "28,28,20", "4,4,20,64", "strides 2,2 pad 1,1,1,1" },
          { "28,28,64", "4,4,64,48", "strides 2,2 pad 1,1,1,1" },
          { "8,8,64", "4,4,64,64", "strides 2,2 pad 1,1,1,1" },
          { "28,28,64", "5,5,64,64", "strides 2,2 pad 2,2,2,2" },
          { "28,28,64", "4,4,64,64", "dilation 2,2" },
          { "28,28,64", "4,4,32,64", "groups 2" },
          { "28,28,64", "2,2,64,64", NULL } },
    };
    (void)state;
    if (!kernel_of(by_pairs[0])) skip();
    for (int i = 0; i < BY_PAIRS; i++)
        for (int at = 0; at < EACH; at++) decline(kernel_of(by_pairs[i]), &unfit[i][at]);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_of_a_plain_float32_sum_within_twice),
        cmocka_unit_test(bits_of_a_row_do_not_depend_on_the_rows_beside_it),
        cmocka_unit_test(frozen_weights_leave_the_gradient_of_the_bias_alone),
        cmocka_unit_test(small_or_unfit_shapes_are_left_to_others),
        cmocka_unit_test(errors_in_bfloat16_are_at_most_three_times_the_direct_ones),
        cmocka_unit_test(bfloat16_of_unfit_shapes_is_left_to_others),
    };
    return cmocka_run_group_tests_name("conv_winograd", tests, NULL, NULL);
}
