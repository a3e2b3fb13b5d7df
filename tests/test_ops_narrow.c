/* Every kernel's passes on bfloat16 values compute what its op's reference computes in float32 on
 * the same values: rounded once, so within half a unit in the last place of bfloat16, and a hundred
 * thousandth of the largest for sums in another order.
 *
 * Numbers are multiples of 1/16 below 2 in size, which bfloat16 holds, as do weights: sums of their
 * products are exact in float32 whatever their order, so that a product's result is held to its
 * rounding alone; windows have ties, rectifiers zeros. Weights of products are tried once more with
 * numbers that the kernel has to round, to nearest even.
 *
 * Kernels of our own treat a row alike whatever rows are beside it, to the last bit, and a tile of
 * a weight gradient wherever the step and the tiles are cut. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "graph/widen.h"
#include "ops/op.h"
#include "tensor/bfloat16.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { IN_MAX = 4, COPIES_MAX = 16 };

/* Beside the ops' own cases. An op that is added here is tried wherever it has narrow passes. */
static const struct extra {
    const char *op;
    keel_case c;
} extra[] = {
    { "conv2d", { "28,28,1", "3,3,1,32|32", NULL } },
    { "conv2d", { "13,13,32", "3,3,32,64|64", NULL } },
    { "conv2d", { "14,15,20", "3,3,20,30", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", { "29,29,3", "7,7,3,16|16", "strides 2,2 pad 3,2,3,2" } },
    { "conv2d", { "9,9,64", "1,1,64,48|48", NULL } },
    { "conv2d", { "5,6,70", "1,1,70,150", NULL } },
    { "conv2d", { "5,5,33", "1,1,33,67|67", NULL } },
    { "conv2d", { "9,8,64", "1,1,64,48", "strides 2,2" } },
    { "conv2d", { "9,9,12", "3,3,4,24|24", "groups 3 pad 1,1,1,1" } },
    { "conv2d", { "17,17,5", "3,3,5,7|7", "dilation 2,3 pad 2,2,3,3" } },
    { "conv2d", { "9,6,64", "3,3,64,96|96", "pad 1,1,1,1" } },
    { "conv2d", { "7,13,96", "3,3,96,32", "pad 2,1,0,2" } },
    { "conv2d", { "7,7,32", "3,3,32,288|288", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "14,14,32", "3,3,32,1|32", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "15,14,19", "3,3,19,1", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", { "9,9,8", "5,5,8,1|8", "pad 2,2,2,2" } },
    { "depthwise_conv2d", { "9,9,6", "3,3,6,2|12", NULL } },
    { "depthwise_conv2d", { "7,7,40", "3,3,40,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "5,11,17", "3,3,17,1|17", NULL } },
    { "depthwise_conv2d", { "2,1,33", "3,3,33,1|33", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "9,12,16", "3,3,16,1|16", "strides 2,2 pad 1,1,1,1" } },
    { "depthwise_conv2d", { "12,9,48", "3,3,48,1", "strides 2,2 pad 2,1,3,2" } },
    { "depthwise_conv2d", { "13,18,21", "3,3,21,1|21", "strides 2,2" } },
    { "depthwise_conv2d", { "11,10,35", "3,3,35,1|35", "strides 2,1 pad 1,1,1,1" } },
    { "depthwise_conv2d", { "11,10,35", "3,3,35,1|35", "strides 3,3 pad 1,0,1,0" } },
    { "depthwise_conv2d", { "12,12,20", "3,3,20,1|20", "dilation 2,3 pad 2,2,3,3" } },
    { "depthwise_conv2d", { "41,50,67", "3,3,67,1", "pad 1,1,1,1" } },
    { "depthwise_conv2d", { "50,41,67", "3,3,67,1|67", "strides 2,2 pad 0,1,0,1" } },
    { "depthwise_conv2d", { "8,9,36", "2,5,36,1|36", "strides 1,2 pad 0,1,2,2" } },
    { "depthwise_conv2d", { "9,9,9", "11,11,9,1", "pad 5,5,5,5" } },
    { "dense", { "784", "784,512|512", NULL } },
    { "dense", { "512", "512,10|10", NULL } },
    { "dense", { "129", "129,67", NULL } },
    { "dense", { "5,33", "33,130", NULL } },
    { "dense",
      { "2050", "2050,2047|2047", NULL } }, /* packed call by call: no shared copy so large */
    { "max_pool2d", { "12,12,64", NULL, NULL } },
    { "max_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1" } },
    { "max_pool2d", { "9,9,33", NULL, "pool 2,3 strides 1,1" } },
    { "max_pool2d", { "11,10,33", NULL, NULL } },
    { "average_pool2d", { "12,12,64", NULL, NULL } },
    { "average_pool2d", { "11,13,33", NULL, NULL } },
    { "average_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1" } },
    { "global_average_pool2d", { "7,7,100", NULL, NULL } },
    { "relu", { "7,7,33", NULL, NULL } },
    { "relu", { "7,7,33", NULL, "max_value 0.5 negative_slope 0.25 threshold 0.25" } },
    { "relu6", { "7,7,33", NULL, NULL } },
    { "sigmoid", { "7,7,33", NULL, NULL } },
    { "tanh", { "7,7,33", NULL, NULL } },
    { "silu", { "7,7,33", NULL, NULL } },
    { "gelu", { "7,7,33", NULL, NULL } },
    { "leaky_relu", { "7,7,33", NULL, "negative_slope 0.3" } },
    { "zero_pad2d", { "7,9,33", NULL, "pad 1,2,3,0" } },
    { "add", { "7,9,33|7,9,33", NULL, NULL } },
    { "add", { "1001|1001|1001", NULL, NULL } },
    { "softmax", { "1000", NULL, NULL } },
    { "softmax", { "7,37,5", NULL, "axis 1" } },
    { "dropout", { "1003", NULL, "rate 0.5" } },
    { "dropout", { "7,9,31", NULL, "rate 0.2" } },
    { "batch_norm", { "6,7,64", "64|64|64|64", NULL } },
    { "batch_norm", { "5,5,19", "19|19|19|19", NULL } },
    { "batch_norm", { "300", "300|300|300|300", NULL } },
};

/* One op twice over the same numbers: in float32 for the reference, held in bfloat16. */
typedef struct bench {
    keel_node wide, narrow;
    keel_spec wide_in[IN_MAX], narrow_in[IN_MAX];
    _Alignas(16) char args[256];
    keel_step_facts step;
    int64_t rows;
    float *in[IN_MAX], *weight[KEEL_WEIGHTS_MAX], *out_grad;
    keel_bf16 *in16[IN_MAX], *out_grad16;
    double *merged, *merged_backward;
} bench;

typedef struct results { /* of a pass; values are keel_bf16 where it ran on such */
    void *out, *saved[KEEL_SAVED_MAX], *in_grad[IN_MAX];
    float *weight_grad[KEEL_WEIGHTS_MAX];
    double *partial;
} results;

static uint32_t seed = 1;
static float draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)((int)(seed >> 26) - 32) / 16;
}

static float *numbers(int64_t count, bool positive)
{
    float *f = keel_aligned_calloc((size_t)count, sizeof *f);
    for (int64_t i = 0; i < count; i++) f[i] = positive ? fabsf(draw()) + 0.5f : draw();
    return f;
}

static keel_bf16 *narrowed(const float *f, int64_t count)
{
    keel_bf16 *b = keel_aligned_calloc((size_t)count, sizeof *b);
    keel_bf16_narrow(b, f, count);
    return b;
}

static int shapes(keel_spec *out, keel_dtype t, int max, const char *text)
{
    int n = 0;
    for (; text && *text && n < max; n++) {
        char *end = (char *)text;
        out[n] = (keel_spec){ .dtype = t };
        do {
            out[n].shape.dim[out[n].shape.rank++] = strtoll(text, &end, 10);
            text = *end ? end + 1 : end;
        } while (*end == ',');
    }
    return n;
}

static keel_status node_of(keel_node *n, keel_spec *in, const bench *b, const keel_op *op,
                           const keel_case *c, bool training, keel_dtype held)
{
    *n = (keel_node){ .op = op,
                      .args = b->args,
                      .layer = "a layer",
                      .training = training,
                      .real = KEEL_FLOAT32,
                      .held = held,
                      .stream = 5,
                      .in = in };
    n->n_in = shapes(in, held, IN_MAX, c->in);
    n->n_weight = shapes(n->weight, KEEL_FLOAT32, KEEL_WEIGHTS_MAX, c->weights);
    return op->infer(n);
}

static keel_status bench_open(bench *b, const keel_op *op, const keel_case *c, bool training,
                              int64_t rows)
{
    *b =
        (bench){ .rows = rows, .step = { .seed = 7, .epoch = 3, .first_row = 1000, .rows = rows } };
    assert_true(op->args_size <= sizeof b->args);
    if (op->args_for_case) op->args_for_case(b->args, c->args);
    KEEL_TRY(node_of(&b->wide, b->wide_in, b, op, c, training, KEEL_FLOAT32));
    KEEL_TRY(node_of(&b->narrow, b->narrow_in, b, op, c, training, KEEL_BFLOAT16));
    for (int i = 0; i < b->wide.n_in; i++) {
        const int64_t n = rows * keel_row_count(&b->wide_in[i]);
        b->in[i] = numbers(n, false);
        b->in16[i] = narrowed(b->in[i], n);
    }
    for (int i = 0; i < b->wide.n_weight; i++) {
        const int64_t n = keel_row_count(&b->wide.weight[i]);
        b->weight[i] = numbers(n, strcmp(op->name, "batch_norm") == 0);
        /* so that bfloat16 holds a quarter of the sum of nine, which Winograd makes of them */
        for (int64_t e = 0; strcmp(op->name, "conv2d") == 0 && e < n; e++)
            b->weight[i][e] = fminf(fmaxf(b->weight[i][e], -1.75f), 1.75f);
    }
    b->out_grad = numbers(rows * keel_row_count(&b->wide.out), false);
    b->out_grad16 = narrowed(b->out_grad, rows * keel_row_count(&b->wide.out));
    return KEEL_OK;
}

static void bench_close(bench *b)
{
    for (int i = 0; i < IN_MAX; i++) keel_free(b->in[i]), keel_free(b->in16[i]);
    for (int i = 0; i < KEEL_WEIGHTS_MAX; i++) keel_free(b->weight[i]);
    keel_free(b->out_grad);
    keel_free(b->out_grad16);
    keel_free(b->merged);
    keel_free(b->merged_backward);
}

static void results_free(results *r)
{
    keel_free(r->out);
    for (int i = 0; i < KEEL_SAVED_MAX; i++) keel_free(r->saved[i]);
    for (int i = 0; i < IN_MAX; i++) keel_free(r->in_grad[i]);
    for (int i = 0; i < KEEL_WEIGHTS_MAX; i++) keel_free(r->weight_grad[i]);
    keel_free(r->partial);
}

static void *begin(int64_t count, bool narrow)
{
    float *f = numbers(count, false);
    if (!narrow) return f;
    keel_bf16 *b = narrowed(f, count);
    keel_free(f);
    return b;
}

/* Gradients start as equal numbers on both sides, so that adding is seen. */
static void results_open(results *r, const bench *b, bool narrow)
{
    const keel_node *n = &b->wide;
    *r = (results){ 0 };
    seed = 99;
    r->out = begin(b->rows * keel_row_count(&n->out), narrow);
    for (int i = 0; i < n->n_saved; i++)
        r->saved[i] = keel_aligned_calloc((size_t)(b->rows * keel_row_count(&n->saved[i])),
                                          keel_dtype_size(n->saved[i].dtype));
    for (int i = 0; i < n->n_in; i++)
        r->in_grad[i] = begin(b->rows * keel_row_count(&n->in[i]), narrow);
    for (int i = 0; i < n->n_weight; i++)
        r->weight_grad[i] = numbers(keel_row_count(&n->weight[i]), false);
    const int64_t one = n->partial > n->partial_backward ? n->partial : n->partial_backward;
    r->partial = keel_aligned_calloc((size_t)(one * b->rows) + 1, sizeof(double));
}

static keel_derived *copies[COPIES_MAX];
static int n_copies;
static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const bench *b = context;
    keel_derived *d = keel_calloc(1, sizeof *d);
    *d = *want;
    d->data = keel_aligned_calloc(want->bytes, 1);
    d->refresh(d, b->weight[d->weight]);
    assert_true(n_copies < COPIES_MAX);
    copies[n_copies++] = d;
    *got = d;
    return KEEL_OK;
}

static void forget_copies(void)
{
    while (n_copies > 0) {
        keel_derived *d = copies[--n_copies];
        if (d->release) d->release(d->plan);
        keel_free(d->data);
        keel_free(d);
    }
}

static keel_run reference_of(const keel_op *op, keel_pass pass)
{
    const keel_run all[] = { op->forward[0], op->backward[0], op->weights[0], op->partial[0],
                             op->partial_backward[0] };
    return all[pass];
}

/* Rows [first, first + rows) of the bench as the call of a pass. */
static void call_some(bench *b, const keel_kernel *kernel, keel_run run, keel_pass pass,
                      const keel_prepare *p, results *r, int64_t first, int64_t rows)
{
    const keel_node *n = kernel ? &b->narrow : &b->wide;
    const size_t size = kernel ? sizeof(keel_bf16) : sizeof(float);
    const void *in[IN_MAX];
    void *in_grad[IN_MAX];
    bool in_adds[IN_MAX];
    void *scratch = keel_aligned_calloc((size_t)p->scratch + 64, 1);
    memset(scratch, 0xff, (size_t)p->scratch); /* NaN: nobody may rely on zeros */
    const size_t at_out = (size_t)(first * keel_row_count(&n->out)) * size;
    keel_call c = { .node = n,
                    .step = &b->step,
                    .rows = rows,
                    .row = 40 + first,
                    .in = in,
                    .out = (char *)r->out + at_out,
                    .out_grad = (kernel ? (char *)b->out_grad16 : (char *)b->out_grad) + at_out,
                    .in_grad = in_grad,
                    .in_adds = in_adds,
                    .weight_adds = p->weight_adds,
                    .partial = r->partial,
                    .merged = pass == KEEL_BACKWARD ? b->merged_backward : b->merged,
                    .merged_forward = b->merged,
                    .scratch = scratch,
                    .plan = p->plan };
    for (int i = 0; i < n->n_in; i++) {
        const size_t at = (size_t)(first * keel_row_count(&n->in[i])) * size;
        in[i] = (kernel ? (const char *)b->in16[i] : (const char *)b->in[i]) + at;
        in_grad[i] = (char *)r->in_grad[i] + at;
        in_adds[i] = p->in_adds;
    }
    for (int i = 0; i < n->n_saved; i++)
        c.saved[i] = (char *)r->saved[i] + (size_t)(first * keel_row_count(&n->saved[i])) *
                                               keel_dtype_size(n->saved[i].dtype);
    for (int i = 0; i < n->n_weight; i++) {
        c.weight[i] = b->weight[i];
        c.weight_grad[i] = r->weight_grad[i];
    }
    if (pass == KEEL_PARTIAL) c.partial += first * n->partial;
    if (pass == KEEL_PARTIAL_BACKWARD) c.partial += first * n->partial_backward;
    run(&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    keel_free(scratch);
}

/* One pass in `parts` calls: the kernel's narrow one, or with NULL the reference in float32.
 * false: the kernel declines. */
static bool pass_run(bench *b, const keel_kernel *kernel, keel_pass pass, bool adds, int parts,
                     results *r)
{
    for (int i = 0; i < parts; i++) {
        const int64_t first = i * b->rows / parts, rows = (i + 1) * b->rows / parts - first;
        keel_prepare p = { .node = kernel ? &b->narrow : &b->wide,
                           .pass = pass,
                           .rows = rows,
                           .in_adds = adds,
                           .weight_adds = adds || i > 0,
                           .scratch = kernel ? 0 : b->wide.scratch,
                           .derive = derive,
                           .context = b };
        if (rows == 0) continue;
        if (kernel) {
            const keel_status s = kernel->prepare(&p);
            if (s == KEEL_EUNSUP) return false;
            if (s < 0) fail_msg("%s_%s: prepare: %s", kernel->op, kernel->name, keel_error());
        }
        call_some(b, kernel, kernel ? kernel->narrow[pass] : reference_of(b->wide.op, pass), pass,
                  &p, r, first, rows);
        if (kernel && kernel->release) kernel->release(p.plan);
        forget_copies();
    }
    return true;
}

/* Half a unit in the last place of the bfloat16 nearest to x. */
static double half_unit(double x)
{
    int e;
    if (x == 0 || !isfinite(x)) return 0;
    frexp(x, &e);
    return ldexp(1, (e < -125 ? -125 : e) - 9);
}

/* got: keel_bf16, or float where `wide`. */
static void same(const char *what, const float *want, const void *got, bool wide, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i])) most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++) {
        const double x = want[i];
        const double y = wide ? ((const float *)got)[i] : keel_bf16_wide(((keel_bf16 *)got)[i]);
        const double room = 1e-5 * most + 1e-30 + (wide ? 0 : half_unit(x) * (1 + 1e-6));
        if (isnan(x) ? !isnan(y) : !(fabs(x - y) <= room))
            fail_msg("%s: element %lld is %.9g, the reference has %.9g (%.3g may lie between; "
                     "largest %.3g)",
                     what, (long long)i, y, x, room, most);
    }
}

static void same_doubles(const char *what, const double *want, const double *got, int64_t n)
{
    double most = 0;
    for (int64_t i = 1; i < n; i++) most = fmax(most, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - got[i]) <= 4e-7 * most))
            fail_msg("%s: record [%lld] is %.12g, the reference has %.12g", what, (long long)i,
                     got[i], want[i]);
}

static void compare(const bench *b, keel_pass pass, const char *what, const results *want,
                    const results *got)
{
    const keel_node *n = &b->wide;
    if (pass == KEEL_FORWARD) {
        same(what, want->out, got->out, false, b->rows * keel_row_count(&n->out));
        for (int i = 0; i < n->n_saved; i++)
            assert_memory_equal(want->saved[i], got->saved[i],
                                (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                                    keel_dtype_size(n->saved[i].dtype));
    }
    for (int i = 0; pass == KEEL_BACKWARD && i < n->n_in; i++)
        same(what, want->in_grad[i], got->in_grad[i], false, b->rows * keel_row_count(&n->in[i]));
    for (int i = 0; pass == KEEL_WEIGHTS && i < n->n_weight; i++)
        same(what, want->weight_grad[i], got->weight_grad[i], true, keel_row_count(&n->weight[i]));
    if (pass == KEEL_PARTIAL) same_doubles(what, want->partial, got->partial, n->partial * b->rows);
    if (pass == KEEL_PARTIAL_BACKWARD)
        same_doubles(what, want->partial, got->partial, n->partial_backward * b->rows);
}

/* The same values to the last bit: what forward or backward wrote in one call and in several. */
static void compare_bits(const bench *b, keel_pass pass, const char *what, const results *whole,
                         const results *cut)
{
    const keel_node *n = &b->narrow;
    const bool forward = pass == KEEL_FORWARD;
    for (int i = 0; i < (forward ? 1 : n->n_in); i++) {
        const keel_bf16 *x = forward ? whole->out : whole->in_grad[i];
        const keel_bf16 *y = forward ? cut->out : cut->in_grad[i];
        const int64_t count = b->rows * keel_row_count(forward ? &n->out : &n->in[i]);
        for (int64_t e = 0; e < count; e++)
            if (x[e] != y[e])
                fail_msg("%s: element %lld depends on the rows beside it (%04x, %04x)", what,
                         (long long)e, x[e], y[e]);
    }
}

/* Records of the whole, by the reference: what forward and backward of such an op read. */
static void merge(bench *b)
{
    const keel_node *n = &b->wide;
    results r;
    results_open(&r, b, false);
    if (n->merged > 0) {
        b->merged = keel_aligned_calloc((size_t)n->merged, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL, false, 1, &r);
        n->op->merge(n, r.partial, b->rows, b->merged);
    }
    if (n->merged_backward > 0) {
        b->merged_backward = keel_aligned_calloc((size_t)n->merged_backward, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL_BACKWARD, false, 1, &r);
        n->op->merge_backward(n, r.partial, b->rows, b->merged_backward);
    }
    results_free(&r);
}

/* What backward reads of forward: the reference's, out held in bfloat16. */
static void after_forward(bench *b, results *want, results *got)
{
    const keel_node *n = &b->wide;
    const int64_t count = b->rows * keel_row_count(&n->out);
    pass_run(b, NULL, KEEL_FORWARD, false, 1, want);
    keel_bf16_narrow(got->out, want->out, count);
    keel_bf16_widen(want->out, got->out, count);
    for (int i = 0; i < n->n_saved; i++)
        memcpy(got->saved[i], want->saved[i],
               (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                   keel_dtype_size(n->saved[i].dtype));
}

/* Weight gradients that are added are summed apart: the halves of a step give the same bits in one
 * call or in two. What is added to is no multiple of 1/16, so that the order shows. */
static void compare_adding(bench *b, const keel_kernel *k, const char *what)
{
    const keel_node *n = &b->narrow;
    results sum, added;
    results_open(&sum, b, true);
    results_open(&added, b, true);
    for (int i = 0; i < n->n_weight; i++)
        for (int64_t e = 0; e < keel_row_count(&n->weight[i]); e++)
            added.weight_grad[i][e] = 0.001f * (float)(e % 1000);
    assert_true(pass_run(b, k, KEEL_WEIGHTS, false, 1, &sum));
    assert_true(pass_run(b, k, KEEL_WEIGHTS, true, 1, &added));
    for (int i = 0; i < n->n_weight; i++)
        for (int64_t e = 0; e < keel_row_count(&n->weight[i]); e++) {
            const float want = 0.001f * (float)(e % 1000) + sum.weight_grad[i][e];
            if (added.weight_grad[i][e] != want)
                fail_msg("%s: element %lld of weight %d is not summed apart (%.9g, %.9g)", what,
                         (long long)e, i, added.weight_grad[i][e], want);
        }
    results_free(&sum);
    results_free(&added);
}

static int compare_pass(bench *b, const keel_kernel *k, const char *name, keel_pass pass, bool adds)
{
    static const char *const passes[] = { "forward", "backward", "weights", "partial",
                                          "partial_backward" };
    results want, got, cut;
    char what[200];
    if (!k->narrow[pass] || !reference_of(b->wide.op, pass)) return 0;
    if (pass == KEEL_PARTIAL && b->wide.partial == 0) return 0;
    if (pass == KEEL_PARTIAL_BACKWARD && b->wide.partial_backward == 0) return 0;
    if (pass == KEEL_WEIGHTS && b->wide.op->weights_from_merged && !b->merged_backward) return 0;
    snprintf(what, sizeof what, "%s %s of %lld rows", name, passes[pass], (long long)b->rows);
    results_open(&want, b, false);
    results_open(&got, b, true);
    results_open(&cut, b, true);
    if (pass != KEEL_FORWARD) {
        after_forward(b, &want, &got);
        after_forward(b, &want, &cut);
    }
    const bool ran = pass_run(b, k, pass, adds, 1, &got);
    if (ran) {
        pass_run(b, NULL, pass, adds, 1, &want);
        compare(b, pass, what, &want, &got);
    }
    if (ran && pass <= KEEL_BACKWARD && !strstr(k->name, "dnnl") &&
        pass_run(b, k, pass, adds, 3, &cut))
        compare_bits(b, pass, what, &got, &cut);
    if (ran && pass == KEEL_WEIGHTS && adds && b->wide.n_saved == 0 && b->wide.partial == 0)
        compare_adding(b, k, what);
    results_free(&want);
    results_free(&got);
    results_free(&cut);
    return ran;
}

/* Products read their weights rounded: numbers that bfloat16 does not hold, and for the reference
 * their roundings. */
static int compare_rounded_weights(const keel_kernel *k, const char *name, const keel_op *op,
                                   const keel_case *c)
{
    int ran = 0;
    if (strcmp(op->name, "dense") != 0 && strcmp(op->name, "conv2d") != 0) return 0;
    /* rounds them transformed, see tests/test_conv_winograd.c */
    if (strncmp(k->name, "winograd", 8) == 0) return 0;
    for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
        bench b;
        results want, got;
        assert_int_equal(bench_open(&b, op, c, true, 3), KEEL_OK);
        results_open(&want, &b, false);
        results_open(&got, &b, true);
        const int64_t n = keel_row_count(&b.wide.weight[0]);
        for (int64_t i = 0; i < n; i++) /* ties among them */
            b.weight[0][i] = b.weight[0][i] * (1 + 0x1p-8f) + (i % 3 ? 0 : 0x1p-14f);
        const bool does = k->narrow[pass] && pass_run(&b, k, pass, false, 1, &got);
        for (int64_t i = 0; i < n; i++)
            b.weight[0][i] = keel_bf16_wide(keel_bf16_round(b.weight[0][i]));
        if (does) {
            pass_run(&b, NULL, pass, false, 1, &want);
            compare(&b, pass, name, &want, &got);
            ran++;
        }
        results_free(&want);
        results_free(&got);
        bench_close(&b);
    }
    return ran;
}

static _Alignas(64) char tile_scratch[1 << 20];

/* A tile over the rows cut into spans at `cuts` (ascending, ends with rows); again: behind another
 * of that weight and these rows. */
static void tile_run(const bench *b, keel_tile_run run, bool narrow, const int64_t *cuts,
                     int weight, int64_t first, int64_t count, bool again, float *grad)
{
    const keel_node *n = narrow ? &b->narrow : &b->wide;
    const int64_t in = keel_row_count(&n->in[0]), out = keel_row_count(&n->out);
    keel_span span[4];
    keel_tile_call c = { .node = n,
                         .span = span,
                         .weight = weight,
                         .first = first,
                         .count = count,
                         .grad = grad,
                         .scratch = tile_scratch,
                         .again = again };
    for (int64_t row = 0; row < b->rows; row = *cuts++)
        span[c.n_span++] = (keel_span){
            .in = narrow ? (void *)(b->in16[0] + row * in) : (void *)(b->in[0] + row * in),
            .out_grad =
                narrow ? (void *)(b->out_grad16 + row * out) : (void *)(b->out_grad + row * out),
            .rows = *cuts - row,
        };
    run(&c);
}

static int compare_tiles(bench *b, const keel_kernel *k, const char *name)
{
    const keel_node *n = &b->wide;
    keel_prepare p = { .node = &b->narrow, .pass = KEEL_WEIGHTS, .rows = b->rows };
    const int64_t rows = b->rows, cuts[][4] = { { rows },
                                                { (rows + 1) / 2, rows },
                                                { rows / 3, rows / 3 + rows / 2, rows } };
    if (!k->narrow_tile || n->in[0].shape.rank != 1 || k->prepare(&p) < 0) return 0;
    assert_null(p.plan);
    assert_true(p.scratch <= (int64_t)sizeof tile_scratch);
    for (int w = 0; w < n->n_weight; w++) {
        const keel_shape *shape = &n->weight[w].shape;
        const int64_t count = keel_row_count(&n->weight[w]), last = shape->dim[shape->rank - 1];
        float *want = numbers(count, false), *got = numbers(count, false);
        float *cut = numbers(count, false);
        tile_run(b, n->op->weights_tile[0], false, cuts[0], w, 0, count, false, want);
        tile_run(b, k->narrow_tile, true, cuts[0], w, 0, count, false, got);
        same(name, want, got, true, count);
        for (int i = 1; i < 3; i++) {
            const int64_t whole = count / last,
                          some = shape->rank > 1 ? whole / 3 * last : last / 3;
            if (cuts[i][0] == 0 || (i == 2 && cuts[i][0] == cuts[i][1])) continue;
            if (some) tile_run(b, k->narrow_tile, true, cuts[i], w, 0, some, false, cut);
            tile_run(b, k->narrow_tile, true, cuts[i], w, some, count - some, some > 0, cut + some);
            for (int64_t e = 0; e < count; e++)
                if (memcmp(&got[e], &cut[e], sizeof *got) != 0)
                    fail_msg("%s: tile: element %lld of weight %d depends on the cut (%.9g, %.9g)",
                             name, (long long)e, w, got[e], cut[e]);
        }
        keel_free(want);
        keel_free(got);
        keel_free(cut);
    }
    return 1;
}

static int compare_case(const keel_kernel *k, const keel_op *op, const keel_case *c)
{
    static const int64_t rows[] = { 1, 2, 3, 7, 16, 65 };
    char name[160];
    int ran = 0;
    snprintf(name, sizeof name, "%s_%s in %s weights %s args %s", k->op, k->name, c->in,
             c->weights ? c->weights : "-", c->args ? c->args : "-");
    for (int training = 0; training < 2; training++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bench b;
            if (rows[i] > 16 && strcmp(op->name, "dense") != 0) continue;
            if (bench_open(&b, op, c, training, rows[i]) < 0)
                fail_msg("%s: %s", name, keel_error());
            merge(&b);
            ran += compare_pass(&b, k, name, KEEL_FORWARD, false);
            for (int adds = 0; training && adds < 2; adds++) {
                ran += compare_pass(&b, k, name, KEEL_BACKWARD, adds);
                ran += compare_pass(&b, k, name, KEEL_WEIGHTS, adds);
            }
            if (training) {
                ran += compare_pass(&b, k, name, KEEL_PARTIAL, false);
                ran += compare_pass(&b, k, name, KEEL_PARTIAL_BACKWARD, false);
                ran += compare_tiles(&b, k, name);
            }
            bench_close(&b);
        }
    return ran + compare_rounded_weights(k, name, op, c);
}

static bool has_narrow(const keel_kernel *k)
{
    for (int pass = 0; pass < KEEL_PASS_COUNT; pass++)
        if (k->narrow[pass]) return true;
    return k->narrow_tile != NULL;
}

static void every_narrow_pass_equals_its_reference(void **state)
{
    (void)state;
    keel_cpu_single_thread();
    const int64_t live = keel_memory_live();
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        const keel_op *op = keel_op_find(k->op);
        int ran = 0;
        if (!op || !has_narrow(k)) continue;
        for (const keel_case *c = op->cases; c->in; c++) ran += compare_case(k, op, c);
        for (size_t e = 0; e < sizeof extra / sizeof *extra; e++)
            if (strcmp(extra[e].op, k->op) == 0) ran += compare_case(k, op, &extra[e].c);
        print_message("%s_%s: %d narrow passes compared\n", k->op, k->name, ran);
        assert_int_equal(keel_memory_live(), live);
    }
}

static void bfloat16_is_rounded_as_by_the_plain_function(void **state)
{
    enum { N = 1 << 16 };
    static const keel_case two = { "65536|65536", NULL, NULL };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        bench b;
        results r;
        if (strcmp(k->op, "add") != 0 || !k->narrow[KEEL_FORWARD]) continue;
        assert_int_equal(bench_open(&b, keel_op_find("add"), &two, true, 1), KEEL_OK);
        results_open(&r, &b, true);
        keel_bf16 *x = b.in16[0], *y = b.in16[1];
        const keel_bf16 *sum = r.out;
        for (int e = 0; e < N; e++) { /* any bits, and beside them some as large, or smaller */
            x[e] = (keel_bf16)e;
            y[e] = (keel_bf16)((e & 0x7f80) - (e % 11 << 7) + e * 77 % 128);
        }
        const bool ran = pass_run(&b, k, KEEL_FORWARD, false, 1, &r);
        for (int e = 0; ran && e < N; e++) {
            const keel_bf16 want = keel_bf16_round(keel_bf16_wide(x[e]) + keel_bf16_wide(y[e]));
            const bool number = !isnan(keel_bf16_wide(want));
            if (number ? sum[e] != want : !isnan(keel_bf16_wide(sum[e])))
                fail_msg("add_%s: %#x + %#x is %#x, not %#x", k->name, x[e], y[e], sum[e], want);
        }
        results_free(&r);
        bench_close(&b);
    }
}

/* Casts say both types themselves, so their kernels' plain passes are tried on each pair. */
static void casts_equal_their_reference(void **state)
{
    enum { N = 1003 };
    static const keel_dtype types[] = { KEEL_FLOAT32, KEEL_BFLOAT16 };
    const keel_op *op = keel_op_find("cast");
    (void)state;
    for (int i = 0; keel_kernels[i]; i++)
        for (int test = 0; test < 8; test++) {
            const keel_kernel *k = keel_kernels[i];
            const bool adds = test & 4;
            float from[N], want[N], got[N];
            const void *in = from;
            void *want_grad = want, *got_grad = got;
            keel_spec spec = { types[test & 1], KEEL_SHAPE(N) };
            keel_node n = {
                .op = op, .real = KEEL_FLOAT32, .held = types[test >> 1 & 1], .n_in = 1, .in = &spec
            };
            keel_call c = { .node = &n,
                            .rows = 1,
                            .in = &in,
                            .out = want,
                            .out_grad = from,
                            .in_grad = &want_grad,
                            .in_adds = &adds };
            keel_prepare p = { .node = &n, .rows = 1 };
            if (strcmp(k->op, "cast") != 0) continue;
            assert_int_equal(op->infer(&n), KEEL_OK);
            if (k->prepare(&p) < 0) continue;
            for (int e = 0; e < N; e++) from[e] = draw() * 1.01f, want[e] = got[e] = draw();
            op->forward[0](&c);
            c.out = got;
            k->run[KEEL_FORWARD](&c);
            assert_memory_equal(want, got, sizeof got);
            op->backward[0](&c);
            c.in_grad = &got_grad;
            k->run[KEEL_BACKWARD](&c);
            assert_memory_equal(want, got, sizeof got);
        }
}

/* Where rows met, batch_norm reads its weight gradients off the merged record, and what a worker
 * holds of inputs and gradients may be gone by then. */
static void a_weight_gradient_read_off_the_record_widens_no_values(void **state)
{
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) {
        const keel_case c = { "3,4,6", "6|6|6|6", frozen ? "frozen" : NULL };
        bench b;
        keel_widened *w;
        assert_int_equal(bench_open(&b, keel_op_find("batch_norm"), &c, true, 2), KEEL_OK);
        assert_int_equal(keel_widened_create(&w, &b.narrow, KEEL_WEIGHTS), KEEL_OK);
        assert_int_equal(keel_widened_bytes(w, 2) > 0, frozen);
        keel_widened_destroy(w);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_gradient_read_off_the_record_widens_no_values),
        cmocka_unit_test(every_narrow_pass_equals_its_reference),
        cmocka_unit_test(bfloat16_is_rounded_as_by_the_plain_function),
        cmocka_unit_test(casts_equal_their_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
