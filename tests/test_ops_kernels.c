/* Every fast kernel computes what its op's reference computes: over the cases of the op and some
 * larger ones, odd numbers of rows, results that overwrite and results that are added, training and
 * not. Inputs are multiples of 1/16, so that windows have ties and rectifiers zeros. For passes
 * on bfloat16 see test_ops_narrow.c. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "ops/args.h"
#include "ops/op.h"
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { IN_MAX = 4 };

static const struct extra {
    const char *op;
    keel_case c;
} extra[] = {
    { "conv2d", { "28,28,1", "3,3,1,32|32", NULL } },
    { "conv2d", { "13,13,32", "3,3,32,64|64", NULL } },
    { "conv2d", { "14,15,20", "3,3,20,30", "strides 2,2 pad 1,1,1,1" } },
    { "conv2d", { "29,29,3", "7,7,3,16|16", "strides 2,2 pad 3,2,3,2" } },
    { "conv2d", { "13,14,4", "2,2,4,70", "strides 3,3" } },
    { "conv2d", { "11,9,3", "4,5,3,133|133", "strides 1,2 pad 3,1,2,4" } },
    { "conv2d", { "9,9,64", "1,1,64,48|48", NULL } },
    { "conv2d", { "9,8,64", "1,1,64,48", "strides 2,2" } },
    { "conv2d", { "13,11,70", "1,1,70,133|133", "strides 3,2" } },
    { "conv2d", { "31,30,20", "1,1,20,18|18", "strides 1,2" } },
    { "conv2d", { "3,3,530", "1,1,530,37", "strides 2,2" } },
    { "conv2d", { "2,3,1030", "1,1,1030,1030|1030", NULL } },
    { "conv2d", { "12,11,66", "1,1,66,70|70", NULL } },
    { "conv2d", { "12,15,900", "1,1,900,300|300", NULL } },
    { "conv2d", { "9,7,290", "1,1,290,1010", NULL } },
    { "conv2d", { "9,9,12", "3,3,4,24|24", "groups 3 pad 1,1,1,1" } },
    { "conv2d", { "17,17,5", "3,3,5,7|7", "dilation 2,3 pad 2,2,3,3" } },
    { "conv2d", { "6,6,16", "3,3,16,16|16", "strides 2,2" } },
    { "conv2d", { "7,7,35", "3,3,35,61|61", "pad 1,1,1,1" } },
    { "conv2d", { "4,9,32", "3,3,32,64", "pad 1,0,0,2" } },
    { "conv2d", { "9,3,96", "3,3,96,48|48", "pad 2,1,1,2" } },
    { "conv2d", { "6,3,48", "3,3,48,160|160", "pad 2,2,3,3" } },
    { "conv2d", { "14,14,128", "3,3,128,32", NULL } },
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
    { "dense", { "5,33", "33,130", NULL } },
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
    { "sigmoid", { "7,7,33", NULL, NULL } },
    { "tanh", { "7,7,33", NULL, NULL } },
    { "silu", { "7,7,33", NULL, NULL } },
    { "leaky_relu", { "7,7,33", NULL, "negative_slope 0.3" } },
    { "add", { "7,9,33|7,9,33", NULL, NULL } },
    { "add", { "1001|1001|1001", NULL, NULL } },
    { "softmax", { "1000", NULL, NULL } },
    { "softmax", { "7,37", NULL, NULL } },
    { "softmax", { "7,37,5", NULL, "axis 1" } },
    { "dropout", { "1003", NULL, "rate 0.5" } },
    { "dropout", { "7,9,31", NULL, "rate 0.2" } },
    { "batch_norm", { "6,7,64", "64|64|64|64", NULL } },
    { "batch_norm", { "5,5,19", "19|19|19|19", NULL } },
    { "batch_norm", { "300", "300|300|300|300", NULL } },
    { "batch_norm", { "9,7,64", "64|64|64|64", "relu" } },
    { "batch_norm", { "5,5,19", "19|19|19|19", "relu max_value 1" } },
    { "batch_norm", { "9,9,40|9,9,40", "40|40|40|40", "relu" } },
    { "batch_norm", { "5,5,19|5,5,19", "19|19|19|19", NULL } },
    { "batch_norm", { "7,7,24|7,7,24", "24|24|24|24", "relu frozen" } },
    { "max_pool2d", { "12,12,64", NULL, "relu" } },
    { "max_pool2d", { "13,12,19", NULL, "pool 3,3 strides 2,2 pad 0,1,1,1 relu" } },
};

/* Something to run passes on, with room for the largest count of rows. */
typedef struct bench {
    keel_node node;
    keel_spec in_spec[IN_MAX];
    char args[256];
    keel_step_facts step;
    int64_t rows;
    void *in[IN_MAX], *weight[KEEL_WEIGHTS_MAX], *out_grad;
    double *merged, *merged_backward;
} bench;

typedef struct results { /* what a pass writes */
    void *out, *saved[KEEL_SAVED_MAX], *in_grad[IN_MAX], *weight_grad[KEEL_WEIGHTS_MAX];
    double *partial;
} results;

static uint32_t seed = 1;
static float draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)((int)(seed >> 26) - 32) / 16;
}

static void *numbers(int64_t count, bool positive)
{
    float *f = keel_aligned_calloc((size_t)count, sizeof *f);
    for (int64_t i = 0; i < count; i++) f[i] = positive ? fabsf(draw()) + 0.5f : draw();
    return f;
}

static int shapes(keel_spec *out, int max, const char *text)
{
    int n = 0;
    while (text && *text && n < max) {
        out[n] = (keel_spec){ .dtype = KEEL_FLOAT32 };
        for (bool more = true; more;) {
            char *end;
            out[n].shape.dim[out[n].shape.rank++] = strtoll(text, &end, 10);
            more = *end == ',';
            text = *end ? end + 1 : end;
            if (*end == '|') break;
        }
        n++;
    }
    return n;
}

static bool bench_open(bench *b, const keel_op *op, const keel_case *c, bool training, int64_t rows)
{
    *b =
        (bench){ .rows = rows, .step = { .seed = 7, .epoch = 3, .first_row = 1000, .rows = rows } };
    b->node = (keel_node){ .op = op,
                           .args = b->args,
                           .layer = "a layer",
                           .training = training,
                           .real = KEEL_FLOAT32,
                           .held = KEEL_FLOAT32,
                           .stream = 5,
                           .in = b->in_spec };
    assert_true(op->args_size <= sizeof b->args);
    if (op->args_for_case) op->args_for_case(b->args, c->args);
    b->node.n_in = shapes(b->in_spec, IN_MAX, c->in);
    b->node.n_weight = shapes(b->node.weight, KEEL_WEIGHTS_MAX, c->weights);
    if (op->infer(&b->node) < 0) return false;
    for (int i = 0; i < b->node.n_in; i++)
        b->in[i] = numbers(rows * keel_row_count(&b->in_spec[i]), false);
    for (int i = 0; i < b->node.n_weight; i++)
        b->weight[i] =
            numbers(keel_row_count(&b->node.weight[i]), strcmp(op->name, "batch_norm") == 0);
    b->out_grad = numbers(rows * keel_row_count(&b->node.out), false);
    return true;
}

static void bench_close(bench *b)
{
    for (int i = 0; i < IN_MAX; i++) keel_free(b->in[i]);
    for (int i = 0; i < KEEL_WEIGHTS_MAX; i++) keel_free(b->weight[i]);
    keel_free(b->out_grad);
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

/* Gradients start as equal numbers on both sides, so that adding is seen; outputs start as rubbish.
 */
static void results_open(results *r, const bench *b)
{
    const keel_node *n = &b->node;
    *r = (results){ 0 };
    seed = 99;
    r->out = numbers(b->rows * keel_row_count(&n->out), false);
    for (int i = 0; i < n->n_saved; i++)
        r->saved[i] = keel_aligned_calloc((size_t)(b->rows * keel_row_count(&n->saved[i])),
                                          keel_dtype_size(n->saved[i].dtype));
    for (int i = 0; i < n->n_in; i++)
        r->in_grad[i] = numbers(b->rows * keel_row_count(&n->in[i]), false);
    for (int i = 0; i < n->n_weight; i++)
        r->weight_grad[i] = numbers(keel_row_count(&n->weight[i]), false);
    const int64_t one = n->partial > n->partial_backward ? n->partial : n->partial_backward;
    const int64_t partial = one * b->rows;
    r->partial = keel_aligned_calloc((size_t)partial + 1, sizeof(double));
}

static keel_derived *copies[16];
static int n_copies;
static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const bench *b = context;
    keel_derived *d = keel_calloc(1, sizeof *d);
    *d = *want;
    d->data = keel_aligned_calloc(want->bytes, 1);
    d->refresh(d, b->weight[d->weight]);
    assert_true(n_copies < 16);
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
    switch (pass) {
    case KEEL_FORWARD:
        return op->forward[0];
    case KEEL_BACKWARD:
        return op->backward[0];
    case KEEL_WEIGHTS:
        return op->weights[0];
    case KEEL_PARTIAL:
        return op->partial[0];
    default:
        return op->partial_backward[0];
    }
}

/* Run one pass: the kernel's, or with kernel NULL the reference's. false: the kernel declines. */
static bool pass_run(bench *b, const keel_kernel *kernel, keel_pass pass, bool adds, results *r)
{
    const keel_node *n = &b->node;
    const keel_run run = kernel ? kernel->run[pass] : reference_of(n->op, pass);
    bool in_adds[IN_MAX];
    for (int i = 0; i < IN_MAX; i++) in_adds[i] = adds;
    keel_prepare p = { .node = n,
                       .pass = pass,
                       .rows = b->rows,
                       .in_adds = adds,
                       .weight_adds = adds,
                       .scratch = n->scratch,
                       .derive = derive,
                       .context = b };
    if (kernel) {
        p.scratch = 0;
        if (!run) return false;
        const keel_status s = kernel->prepare(&p);
        if (s == KEEL_EUNSUP) return false;
        if (s < 0) fail_msg("%s_%s: prepare: %s", kernel->op, kernel->name, keel_error());
    }
    void *scratch = keel_aligned_calloc((size_t)p.scratch + 64, 1);
    memset(scratch, 0xff, (size_t)p.scratch); /* NaN: nobody may rely on zeros */
    keel_call c = { .node = n,
                    .step = &b->step,
                    .rows = b->rows,
                    .row = 40,
                    .in = (const void **)b->in,
                    .out = r->out,
                    .out_grad = b->out_grad,
                    .in_grad = r->in_grad,
                    .in_adds = in_adds,
                    .weight_adds = adds,
                    .partial = r->partial,
                    .merged = pass == KEEL_BACKWARD ? b->merged_backward : b->merged,
                    .merged_forward = b->merged,
                    .scratch = scratch,
                    .plan = p.plan };
    for (int i = 0; i < n->n_saved; i++) c.saved[i] = r->saved[i];
    for (int i = 0; i < n->n_weight; i++) {
        c.weight[i] = b->weight[i];
        c.weight_grad[i] = r->weight_grad[i];
    }
    run(&c);
    assert_int_equal(keel_call_status_take(), KEEL_OK);
    if (kernel && kernel->release) kernel->release(p.plan);
    forget_copies();
    keel_free(scratch);
    return true;
}

static void same_floats(const char *what, const float *want, const float *got, int64_t n)
{
    double most = 0, off = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (fabs((double)want[i]) > most) most = fabs((double)want[i]);
        const double d = fabs((double)want[i] - got[i]);
        if (!(d <= off)) off = d, at = i;
    }
    if (!(off <= 1e-5 * most + 1e-30))
        fail_msg("%s: element %lld is %.9g, the reference has %.9g (largest %.3g)", what,
                 (long long)at, got[at], want[at], most);
}

static void same_doubles(const char *what, const double *want, const double *got, int64_t n)
{
    double most = 0;
    for (int64_t i = 1; i < n; i++) most = fabs(want[i]) > most ? fabs(want[i]) : most;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(want[i] - got[i]) <= 4e-7 * most))
            fail_msg("%s: record [%lld] is %.12g, the reference has %.12g", what, (long long)i,
                     got[i], want[i]);
}

static void compare(const bench *b, keel_pass pass, const char *name, const results *want,
                    const results *got)
{
    const keel_node *n = &b->node;
    char what[200];
    static const char *const passes[] = { "forward", "backward", "weights", "partial",
                                          "partial_backward" };
    snprintf(what, sizeof what, "%s %s of %lld rows", name, passes[pass], (long long)b->rows);
    if (pass == KEEL_FORWARD) {
        same_floats(what, want->out, got->out, b->rows * keel_row_count(&n->out));
        for (int i = 0; i < n->n_saved; i++)
            assert_memory_equal(want->saved[i], got->saved[i],
                                (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                                    keel_dtype_size(n->saved[i].dtype));
    }
    for (int i = 0; pass == KEEL_BACKWARD && i < n->n_in; i++)
        same_floats(what, want->in_grad[i], got->in_grad[i], b->rows * keel_row_count(&n->in[i]));
    for (int i = 0; pass == KEEL_WEIGHTS && i < n->n_weight; i++)
        same_floats(what, want->weight_grad[i], got->weight_grad[i], keel_row_count(&n->weight[i]));
    if (pass == KEEL_PARTIAL) same_doubles(what, want->partial, got->partial, n->partial * b->rows);
    if (pass == KEEL_PARTIAL_BACKWARD)
        same_doubles(what, want->partial, got->partial, n->partial_backward * b->rows);
}

/* Records of the whole, by the reference: what forward and backward of such an op read. */
static void merge(bench *b)
{
    const keel_op *op = b->node.op;
    results r;
    results_open(&r, b);
    if (b->node.merged > 0) {
        b->merged = keel_aligned_calloc((size_t)b->node.merged, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL, false, &r);
        op->merge(&b->node, r.partial, b->rows, b->merged);
        pass_run(b, NULL, KEEL_FORWARD, false, &r); /* what it saves is read below */
    }
    if (b->node.merged_backward > 0) {
        b->merged_backward = keel_aligned_calloc((size_t)b->node.merged_backward, sizeof(double));
        pass_run(b, NULL, KEEL_PARTIAL_BACKWARD, false, &r);
        op->merge_backward(&b->node, r.partial, b->rows, b->merged_backward);
    }
    results_free(&r);
}

static int compare_pass(bench *b, const keel_kernel *k, const char *name, keel_pass pass, bool adds)
{
    const keel_op *op = b->node.op;
    results want, got;
    if (!k->run[pass]) return 0;
    if (!reference_of(op, pass)) return 0;
    if (pass == KEEL_PARTIAL && b->node.partial == 0) return 0;
    if (pass == KEEL_PARTIAL_BACKWARD && b->node.partial_backward == 0) return 0;
    results_open(&want, b);
    results_open(&got, b);
    if (pass != KEEL_FORWARD) { /* what backward reads of forward */
        pass_run(b, NULL, KEEL_FORWARD, false, &want);
        pass_run(b, NULL, KEEL_FORWARD, false, &got);
    }
    const bool ran = pass_run(b, k, pass, adds, &got);
    if (ran) {
        pass_run(b, NULL, pass, adds, &want);
        compare(b, pass, name, &want, &got);
    }
    results_free(&want);
    results_free(&got);
    return ran;
}

static int compare_case(const keel_kernel *k, const keel_op *op, const keel_case *c)
{
    static const int64_t rows[] = { 1, 2, 3, 7, 16 };
    char name[160];
    int ran = 0;
    snprintf(name, sizeof name, "%s_%s in %s weights %s args %s", k->op, k->name, c->in,
             c->weights ? c->weights : "-", c->args ? c->args : "-");
    for (int training = 0; training < 2; training++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bench b;
            if (!bench_open(&b, op, c, training, rows[i])) fail_msg("%s: %s", name, keel_error());
            merge(&b);
            ran += compare_pass(&b, k, name, KEEL_FORWARD, false);
            for (int adds = 0; training && adds < 2; adds++) {
                ran += compare_pass(&b, k, name, KEEL_BACKWARD, adds);
                if (!op->weights_from_merged || b.merged_backward)
                    ran += compare_pass(&b, k, name, KEEL_WEIGHTS, adds);
            }
            if (training) {
                ran += compare_pass(&b, k, name, KEEL_PARTIAL, false);
                ran += compare_pass(&b, k, name, KEEL_PARTIAL_BACKWARD, false);
            }
            bench_close(&b);
        }
    return ran;
}

static void every_kernel_equals_its_reference(void **state)
{
    (void)state;
    keel_cpu_single_thread();
    const int64_t live = keel_memory_live();
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        const keel_op *op = keel_op_find(k->op);
        int ran = 0;
        if (!op) continue;
        for (const keel_case *c = op->cases; c->in; c++) ran += compare_case(k, op, c);
        for (size_t e = 0; e < sizeof extra / sizeof *extra; e++)
            if (strcmp(extra[e].op, k->op) == 0) ran += compare_case(k, op, &extra[e].c);
        print_message("%s_%s: %d passes compared\n", k->op, k->name, ran);
        assert_int_equal(keel_memory_live(), live);
    }
}

static void no_kernel_starts_a_thread(void **state)
{
    (void)state;
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks) skip();
#ifdef __SANITIZE_THREAD__
    n--; /* its own */
#endif
    for (struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    assert_int_equal(n, 1);
}

static void odd_numbers_come_out_as_the_references(void **state)
{
    static const float odd[] = {
        NAN, 100, -100, 1e-8f, -1e-8f, 88, -88, 0, 0.62f, 0.63f, 3, -0.5f
    };
    static const char *const ops[] = { "relu", "relu6", "leaky_relu", "sigmoid",
                                       "tanh", "silu",  "max_pool2d" };
    static const keel_case flat = { "12", NULL, NULL }, image = { "2,3,2", NULL, "strides 1,1" };
    (void)state;
    for (int i = 0; keel_kernels[i]; i++)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            const keel_kernel *k = keel_kernels[i];
            bench b;
            results want, got;
            if (strcmp(k->op, ops[o]) != 0) continue;
            const bool pool = strcmp(k->op, "max_pool2d") == 0;
            assert_true(bench_open(&b, keel_op_find(k->op), pool ? &image : &flat, true, 1));
            memcpy(b.in[0], odd, sizeof odd);
            results_open(&want, &b);
            results_open(&got, &b);
            pass_run(&b, NULL, KEEL_FORWARD, false, &want);
            if (pass_run(&b, k, KEEL_FORWARD, false, &got))
                for (int64_t e = 0; e < keel_row_count(&b.node.out); e++) {
                    const float x = ((float *)want.out)[e], y = ((float *)got.out)[e];
                    if (isnan(x) ? !isnan(y) : !(fabsf(x - y) <= 2e-6f * fabsf(x) + 1e-30f))
                        fail_msg("%s_%s: element %lld is %.9g, the reference has %.9g", k->op,
                                 k->name, (long long)e, y, x);
                }
            results_free(&want);
            results_free(&got);
            bench_close(&b);
        }
}

static void kernels_decline_on_a_lesser_processor(void **state)
{
    (void)state;
    const keel_op *op = keel_op_find("relu");
    keel_cpu_limit(KEEL_CPU_BASE);
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        bench b;
        if (strcmp(k->op, "relu") != 0 || strcmp(k->name, "dnnl") == 0) continue;
        assert_true(bench_open(&b, op, &op->cases[0], true, 2));
        keel_prepare p = { .node = &b.node, .pass = KEEL_FORWARD, .rows = 2 };
        assert_int_equal(k->prepare(&p), KEEL_EUNSUP);
        bench_close(&b);
    }
    keel_cpu_limit(KEEL_CPU_AMX);
}

/* A window's largest is what is no number, the last of those, whatever is beside it. */
static void pooling_lets_what_is_no_number_win(void **state)
{
    enum { IN = 7 * 7 * 19, OUT = 3 * 3 * 19 };
    static const float odd[] = { NAN, INFINITY, -INFINITY, NAN, 0, -0.0f };
    static float x[IN], want[OUT], got[OUT];
    static uint8_t want_taps[OUT], got_taps[OUT];
    const keel_op *op = keel_op_find("max_pool2d");
    const void *in = x;
    (void)state;
    for (int i = 0; i < IN; i++)
        x[i] = i * 37 % 11 < 2 ? odd[i * 13 % 6] : (float)(i * 29 % 17) - 8;
    for (int i = 0; keel_kernels[i]; i++)
        for (int relu = 0; relu < 2; relu++) {
            const keel_kernel *k = keel_kernels[i];
            const keel_pool2d_args a = { .pool = { 3, 3 }, .strides = { 2, 2 }, .relu = relu };
            keel_spec spec = { KEEL_FLOAT32, KEEL_SHAPE(7, 7, 19) };
            keel_node n = { .op = op,
                            .args = &a,
                            .training = true,
                            .real = KEEL_FLOAT32,
                            .held = KEEL_FLOAT32,
                            .n_in = 1,
                            .in = &spec };
            keel_call c = { .node = &n, .rows = 1, .in = &in, .out = want, .saved = { want_taps } };
            keel_prepare p = { .node = &n, .rows = 1 };
            if (strcmp(k->op, "max_pool2d") != 0 || strstr(k->name, "dnnl")) continue;
            assert_int_equal(op->infer(&n), KEEL_OK);
            if (k->prepare(&p) < 0) continue;
            op->forward[0](&c);
            c.out = got;
            c.saved[0] = got_taps;
            k->run[KEEL_FORWARD](&c);
            for (int e = 0; e < OUT; e++)
                assert_true(isnan(want[e]) ? isnan(got[e]) : want[e] == got[e]);
            assert_memory_equal(want_taps, got_taps, sizeof want_taps);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_lets_what_is_no_number_win),
        cmocka_unit_test(every_kernel_equals_its_reference),
        cmocka_unit_test(no_kernel_starts_a_thread),
        cmocka_unit_test(odd_numbers_come_out_as_the_references),
        cmocka_unit_test(kernels_decline_on_a_lesser_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
