/* The vector kernels of pointwise functions against the op's own reference in float64, over every
 * size and sign that a float can have: numbers too small to be normal, infinities and what is no
 * number too. The bound is in units of the last place of the float32 result. References that would
 * be easily written so that they cancel are held against exact numbers before that. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "graph/choose.h"
#include "ops/cases.h"
#include "ops/op.h"
#include "tensor/bfloat16.h"

enum { COUNT = 1 << 16 };

static float x[COUNT], dy[COUNT], y[COUNT], dx[COUNT];
static double x8[COUNT], dy8[COUNT], y8[COUNT], dx8[COUNT];

/* The distance from a float to its neighbour, and of the smallest numbers the least there is. */
static double ulp_of(double want)
{
    const float f = fabsf((float)want);
    if (!(f < INFINITY)) return ldexp(1, 104);
    return (double)nextafterf(f, INFINITY) - (double)f;
}

/* How many last places `got` is off; 0 where both are no number, or both as infinite, or no more
 * than `least` apart. */
static double off_by(float got, double want, double least)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got)) return (float)want == got ? 0 : INFINITY;
    const double off = fabs((double)got - want);
    return off <= least ? 0 : off / ulp_of(want);
}

typedef struct function {
    const char *op, *args;
    double forward, backward; /* bounds */
    double slope_0;           /* how far off a slope may be that is a difference of terms near 1 */
} function;

static const function functions[] = {
    { "celu", "alpha 1", 1, 1.5 },
    { "celu", "alpha 0.5", 1, 1.5 },
    { "cos", NULL, 1, 1.5 },
    { "elu", "alpha 1", 1, 1.5 },
    { "exponential", NULL, 1, 1.5 },
    { "gelu", NULL, 1, 1.5 },
    { "gelu", "approximate", 1, 1.5 },
    { "hard_shrink", "threshold 0.5", 1, 1.5 },
    { "hard_sigmoid", NULL, 1, 1.5 },
    { "hard_silu", NULL, 1, 1.5 },
    { "hard_tanh", NULL, 1, 1.5 },
    { "leaky_relu", "negative_slope 0.2", 1, 1.5 },
    { "log_sigmoid", NULL, 1, 1.5 },
    { "log", NULL, 1, 1.5 },
    { "mish", NULL, 1, 1.5 },
    { "power", "right 2", 1, 1.5 },
    { "power", "right 3", 1, 1.5 },
    { "power", "right 0.5", 1, 1.5 },
    { "power", "right -1.5", 1, 1.5 },
    { "power", "right 0", 1, 1.5 },
    { "power", "left 1.5", 1, 1.5 },
    { "power", "left -2", 1, 1.5 },
    { "relu", NULL, 1, 1.5 },
    { "relu6", NULL, 1, 1.5 },
    { "selu", NULL, 1, 1.5 },
    { "sin", NULL, 1, 1.5 },
    { "soft_shrink", "threshold 0.5", 1, 1.5 },
    { "softplus", NULL, 1, 1.5 },
    { "softsign", NULL, 1, 1.5 },
    { "sparse_plus", NULL, 1, 1.5 },
    { "sparse_sigmoid", NULL, 1, 1.5 },
    { "squareplus", "b 4", 1, 1.5 },
    { "threshold", "threshold 0.5", 1, 1.5 },
    { "sigmoid", NULL, 4, 8 },
    { "silu", NULL, 4, 8, 5e-7 },
    { "tanh", NULL, 4, 8 },
    { "tanh_shrink", NULL, 1, 1.5 },
};

static void make_numbers(void)
{
    uint32_t low = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        low = low * 1664525u + 1013904223u;
        const uint32_t bits = i << 16 | low >> 16;
        memcpy(&x[i], &bits, sizeof bits);
        dy[i] = 1;
        x8[i] = (double)x[i];
        dy8[i] = 1;
    }
}

static keel_status node_of(keel_node *n, keel_spec *in, const keel_op *op, const void *args,
                           keel_dtype real)
{
    *in = (keel_spec){ real, KEEL_SHAPE(COUNT) };
    *n = (keel_node){ .op = op,
                      .args = args,
                      .layer = "a layer",
                      .training = true,
                      .backward = true,
                      .real = real,
                      .held = real,
                      .n_in = 1,
                      .in = in };
    return keel_node_infer(n);
}

static void run(const keel_node *n, keel_run pass, const void *in, void *out, const void *out_grad,
                void *in_grad)
{
    const bool adds = false;
    pass(&(keel_call){ .node = n,
                       .rows = 1,
                       .in = &in,
                       .out = &out,
                       .out_grad = &out_grad,
                       .in_grad = &in_grad,
                       .in_adds = &adds });
}

/* A reference in float64 against what more digits say, relative. */
static void references_have_twelve_digits(void **state)
{
    (void)state;
    _Alignas(16) char args[256];
    json_t *all = golden_load("exact.json"), *c;
    size_t i;
    json_array_foreach(all, i, c)
    {
        const char *text = golden_text(c, "args");
        const keel_op *op = keel_op_find(golden_text(c, "op"));
        const json_t *value = json_object_get(c, "y"), *slope = json_object_get(c, "slope");
        const json_t *at = json_object_get(c, "x");
        const size_t n = json_array_size(at);
        keel_node wide;
        keel_spec in;
        memset(args, 0, sizeof args);
        assert_non_null(op);
        assert_true(n > 0 && n <= COUNT && op->args_size <= sizeof args);
        for (size_t k = 0; k < COUNT; k++) {
            x8[k] = k < n ? json_number_value(json_array_get(at, k)) : 0;
            dy8[k] = 1;
        }
        if (op->args_for_case) op->args_for_case(args, text);
        assert_int_equal(node_of(&wide, &in, op, args, KEEL_FLOAT64), KEEL_OK);
        run(&wide, op->forward[1], x8, y8, dy8, dx8);
        run(&wide, op->backward[1], x8, y8, dy8, dx8);
        for (size_t k = 0; k < n; k++)
            for (int backward = 0; backward < 2; backward++) {
                const double want = json_number_value(json_array_get(backward ? slope : value, k));
                const double got = backward ? dx8[k] : y8[k];
                if (!(fabs(got - want) <= 1e-12 * fabs(want) + 1e-290))
                    fail_msg("%s %s: %s of %g is %.15g, not %.15g", op->name, text ? text : "",
                             backward ? "slope" : "value", x8[k], got, want);
            }
        keel_node_clear(&wide);
    }
    json_decref(all);
}

typedef struct edge {
    const char *op, *args;
    double x, y, slope;
} edge;

/* On the edge of a range, at both zeros, and of infinite numbers: what Keras says of them on
 * TensorFlow and on JAX, where the two agree. ANY: they do not, or it is no number to learn by. */
#define ANY 77
static const edge edges[] = {
    { "hard_tanh", NULL, 1, 1, 1 },
    { "hard_tanh", NULL, -1, -1, 1 },
    { "hard_tanh", NULL, 1.0000001, 1, 0 },
    { "hard_tanh", NULL, -1.0000001, -1, 0 },
    { "rounded", "to 4", INFINITY, 1, 0 },
    { "rounded", "to 4", -INFINITY, -1, 0 },
    { "relu", "threshold 0.5 negative_slope 0.25", 0.5, 0, 0 },
    { "relu", "threshold 0.5 negative_slope 0.25", 0.25, -0.0625, 0.25 },
    { "relu", "max_value 4 negative_slope 0.25", 0, 0, 0 },
    { "relu", "max_value 4 negative_slope 0.25", -1, -0.25, 0.25 },
    { "relu", "max_value 4 threshold 0.5 negative_slope 0.25", 0.5, 0, 0 },
    { "relu", "max_value 6", -INFINITY, 0, 0 },
    { "relu", "max_value 6", NAN, NAN, ANY },
    { "relu", "threshold 0.5", -INFINITY, 0, 0 },
    { "relu", "max_value 6 negative_slope 0.25", -INFINITY, -INFINITY, 0.25 },
    { "relu", NULL, -INFINITY, 0, 0 },
    { "relu", NULL, NAN, NAN, ANY },
    { "relu6", NULL, -INFINITY, 0, 0 },
    { "relu6", NULL, NAN, NAN, ANY },
    { "relu", "negative_slope 0.25", 0, 0, 0.25 }, /* TensorFlow's; JAX's is 1 */
    { "hard_silu", NULL, -INFINITY, NAN, ANY },
    { "hard_silu", NULL, INFINITY, INFINITY, ANY },
    { "hard_silu", NULL, -4, -0.0, 0 },
    { "squareplus", "b 4", -INFINITY, NAN, ANY },
    { "squareplus", "b 4", INFINITY, INFINITY, ANY },
    { "gelu", NULL, -INFINITY, NAN, ANY },
    { "gelu", NULL, INFINITY, INFINITY, ANY },
    { "gelu", NULL, 0x1.fcp127, 0x1.fcp127, 1 },
    { "gelu", NULL, -0x1.fcp127, -0.0, 0 },
    { "gelu", NULL, NAN, NAN, NAN },
    { "rounded", "to 6", -1e10, -2147483648.0, 0 }, /* to int32 */
    { "rounded", "to 6", -INFINITY, -2147483648.0, 0 },
    { "rounded", "to 6", 1e10, 2147483648.0, 0 }, /* JAX's; TensorFlow's is -2147483648 */
    { "rounded", "to 6", -2.5, -2, 0 },
    { "rounded", "to 6", -0.5, 0, 0 },
    { "rounded", "to 7", -0.5, 0, 0 }, /* to int64 */
    { "rounded", "to 7", -1e20, -0x1p63, 0 },
    { "rounded", "to 7", -1e10, -1e10, 0 },
    { "rounded", "to 3", -0.5, -0.0, 0 },
    { "rounded", "to 3", -1e10, -1e10, 0 },
    { "tanh", NULL, -0.0, -0.0, 1 },
    { "tanh", NULL, 0, 0, 1 },
    { "sin", NULL, -0.0, -0.0, 1 },
    { "expm1", NULL, -0.0, -0.0, 1 },
    { "elu", "alpha 1", -0.0, -0.0, 1 },
    { "elu", "alpha 1", 0, 0, 1 },
    { "selu", NULL, -0.0, -0.0, ANY },
    { "celu", "alpha 1", -0.0, -0.0, ANY },
};

static bool is_edge(double got, double want, double near)
{
    if (want == ANY || isnan(want) || isnan(got)) return want == ANY || (isnan(want) && isnan(got));
    return (got == want && signbit(got) == signbit(want)) || fabs(got - want) < near * fabs(want);
}

/* How many are wrong: 0 or 1. */
static int check_edge(const edge *e, const char *by, double value, double slope, double near)
{
    if (is_edge(value, e->y, near) && is_edge(slope == 0 ? 0 : slope, e->slope, near)) return 0;
    print_error("%s %s by %s: of %g the value is %g and the slope %g, not %g and %g\n", e->op,
                e->args ? e->args : "", by, e->x, value, slope, e->y, e->slope);
    return 1;
}

/* Of numbers that bfloat16 has. */
static int check_edge_of_bfloat16(const edge *e, const keel_kernel *k, const keel_node *n)
{
    static keel_bf16 x2[COUNT], y2[COUNT], dy2[COUNT], dx2[COUNT];
    const bool has = isnan(x[0]) || keel_bf16_wide(keel_bf16_round(x[0])) == x[0];
    if (!k->narrow[KEEL_FORWARD] || !has) return 0;
    keel_bf16_narrow(x2, x, COUNT);
    keel_bf16_narrow(dy2, dy, COUNT);
    run(n, k->narrow[KEEL_FORWARD], x2, y2, dy2, dx2);
    run(n, k->narrow[KEEL_BACKWARD], x2, y2, dy2, dx2);
    keel_bf16_widen(y, y2, COUNT);
    keel_bf16_widen(dx, dx2, COUNT);
    return check_edge(e, "bfloat16", (double)y[0], (double)dx[0], 0.01);
}

static void edges_are_those_of_keras(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const edge *e = &edges[i];
        _Alignas(16) char args[256] = { 0 };
        const keel_op *op = keel_op_find(e->op);
        keel_node wide, narrow;
        keel_spec in[2];
        for (size_t k = 0; k < COUNT; k++) {
            x8[k] = e->x, x[k] = (float)e->x;
            dy8[k] = dy[k] = 1;
        }
        if (op->args_for_case) op->args_for_case(args, e->args);
        assert_int_equal(node_of(&wide, &in[0], op, args, KEEL_FLOAT64), KEEL_OK);
        assert_int_equal(node_of(&narrow, &in[1], op, args, KEEL_FLOAT32), KEEL_OK);
        run(&wide, op->forward[1], x8, y8, dy8, dx8);
        run(&wide, op->backward[1], x8, y8, dy8, dx8);
        wrong += check_edge(e, "its reference", y8[0], dx8[0], 1e-6);
        for (int k = 0; keel_kernels[k]; k++) {
            keel_prepare p = { .node = &narrow, .pass = KEEL_FORWARD, .rows = 1 };
            const keel_kernel *kernel = keel_kernels[k];
            if (kernel->op != op || keel_kernel_prepare(kernel, &p) < 0) continue;
            run(&narrow, kernel->run[KEEL_FORWARD], x, y, dy, dx);
            run(&narrow, kernel->run[KEEL_BACKWARD], x, y, dy, dx);
            wrong += check_edge(e, kernel->name, (double)y[0], (double)dx[0], 1e-6);
            wrong += check_edge_of_bfloat16(e, kernel, &narrow);
            if (kernel->release) kernel->release(p.plan);
        }
        keel_node_clear(&wide);
        keel_node_clear(&narrow);
    }
    assert_int_equal(wrong, 0);
}

/* The worst of a pass; *at: where. */
static double worst_of(const function *f, const float *got, const double *want, double least,
                       int *at)
{
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        const double off = off_by(got[i], want[i], least);
        if (off > worst) worst = off, *at = i;
    }
    return worst;
}

static void compare(const function *f, const keel_kernel *k, const keel_node *n)
{
    for (int pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
        keel_prepare p = { .node = n, .pass = (keel_pass)pass, .rows = 1 };
        if (!k->run[pass] || keel_kernel_prepare(k, &p) < 0) continue;
        run(n, k->run[pass], x, y, dy, dx);
        int at = 0;
        const bool forward = pass == KEEL_FORWARD;
        /* a slope that is read off the output knows it to a last place of 1 */
        const bool from_out = n->op->backward_reads == KEEL_READS_OUT;
        const double least = forward ? 1e-36 : from_out ? 2.4e-7 : 1e-36 + f->slope_0;
        const double worst = worst_of(f, forward ? y : dx, forward ? y8 : dx8, least, &at);
        const double most = forward ? f->forward : f->backward;
        if (getenv("KEEL_TEST_SHOW"))
            printf("%s %s %s %s: %.3g at %g\n", f->op, f->args ? f->args : "", k->name,
                   forward ? "forward" : "backward", worst, (double)x[at]);
        else if (worst > most)
            fail_msg("%s %s by %s, %s of %g: %.9g, not %.9g, %.3g last places off", f->op,
                     f->args ? f->args : "", k->name, forward ? "value" : "slope", (double)x[at],
                     (double)(forward ? y : dx)[at], (forward ? y8 : dx8)[at], worst);
        if (k->release) k->release(p.plan);
    }
}

static void every_function_is_within_its_bound(void **state)
{
    _Alignas(16) char args[256];
    (void)state;
    make_numbers();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        const keel_op *op = keel_op_find(f->op);
        keel_node narrow, wide;
        keel_spec in[2];
        memset(args, 0, sizeof args);
        assert_non_null(op);
        assert_true(op->args_size <= sizeof args);
        if (op->args_for_case) op->args_for_case(args, f->args);
        assert_int_equal(node_of(&narrow, &in[0], op, args, KEEL_FLOAT32), KEEL_OK);
        assert_int_equal(node_of(&wide, &in[1], op, args, KEEL_FLOAT64), KEEL_OK);
        run(&wide, op->forward[1], x8, y8, dy8, dx8);
        run(&wide, op->backward[1], x8, y8, dy8, dx8);
        int n = 0;
        for (int k = 0; keel_kernels[k]; k++) {
            if (keel_kernels[k]->op != op) continue;
            n++;
            /* backward may read the output, which is then float32's */
            run(&narrow, op->forward[0], x, y, dy, dx);
            compare(f, keel_kernels[k], &narrow);
        }
        if (!n) fail_msg("%s has no vector kernel", f->op);
        keel_node_clear(&narrow);
        keel_node_clear(&wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_have_twelve_digits),
        cmocka_unit_test(edges_are_those_of_keras),
        cmocka_unit_test(every_function_is_within_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
