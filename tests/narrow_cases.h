/* Every kernel's passes on bfloat16 values compute what its op's reference computes in float32 on
 * the same values: rounded once, so within half a unit in the last place of bfloat16, and a hundred
 * thousandth of the largest for sums in another order.
 *
 * Sums of products of the bench's numbers are exact, so that a product's result is held to its
 * rounding alone. Weights of products are tried once more with numbers that the kernel has to
 * round, to nearest even.
 *
 * Kernels of our own treat a row alike whatever rows are beside it, to the last bit, and a tile of
 * a weight gradient wherever the step and the tiles are cut. */
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "graph/widen.h"
#include "kernel_bench.h"
#include "ops/args.h"
#include "ops/x86/_rounded.h"
#include "sweep.h"

/* Packed call by call: no shared copy so large. */
static const kernel_case large_dense = { "dense", { "2050", "2050,2047|2047", NULL } };

/* The same values to the last bit: what forward or backward wrote in one call and in several. */
static void compare_bits(const bench *b, keel_pass pass, const char *what, const results *whole,
                         const results *cut)
{
    const keel_node *n = &b->narrow;
    const bool forward = pass == KEEL_FORWARD;
    for (int i = 0; i < (forward ? n->n_out : n->n_in); i++) {
        if (forward && i > 0 && !is_narrow(b, i)) continue;
        const keel_bf16 *x = forward ? (i ? whole->more_out[i] : whole->out) : whole->in_grad[i];
        const keel_bf16 *y = forward ? (i ? cut->more_out[i] : cut->out) : cut->in_grad[i];
        const int64_t count = b->rows * keel_row_count(forward ? &n->out[i] : &n->in[i]);
        for (int64_t e = 0; e < count; e++)
            if (x[e] != y[e])
                fail_msg("%s %s: element %lld depends on the rows beside it (%04x, %04x)", what,
                         forward ? "forward" : "backward", (long long)e, x[e], y[e]);
    }
}

/* What the reference says of one bench, each pass once, whichever kernels are held against it. */
typedef struct answers {
    results forward; /* out as float32, rounded to bfloat16 and back */
    bool has_forward;
    results of[KEEL_PASS_COUNT][2]; /* [pass][adds] */
    bool has[KEEL_PASS_COUNT][2];
} answers;

static void answers_free(answers *a)
{
    if (a->has_forward) results_free(&a->forward);
    for (int pass = 0; pass < KEEL_PASS_COUNT; pass++)
        for (int adds = 0; adds < 2; adds++)
            if (a->has[pass][adds]) results_free(&a->of[pass][adds]);
}

static void copy_saved(const bench *b, results *to, const results *from)
{
    const keel_node *n = &b->wide;
    for (int i = 0; i < n->n_saved; i++)
        memcpy(to->saved[i], from->saved[i],
               (size_t)(b->rows * keel_row_count(&n->saved[i])) *
                   keel_dtype_size(n->saved[i].dtype));
}

/* What backward reads of forward: the reference's, out held in bfloat16. */
static void after_forward(bench *b, answers *a, results *r, bool narrow)
{
    const int64_t count = b->rows * keel_row_count(&b->wide.out[0]);
    if (!a->has_forward) {
        results_open(&a->forward, b, false);
        pass_run(b, NULL, KEEL_FORWARD, false, 1, &a->forward);
        keel_bf16 *rounded = narrowed(a->forward.out, count);
        keel_bf16_widen(a->forward.out, rounded, count);
        keel_free(rounded);
        a->has_forward = true;
    }
    if (narrow)
        keel_bf16_narrow(r->out, a->forward.out, count);
    else
        memcpy(r->out, a->forward.out, (size_t)count * sizeof(float));
    copy_saved(b, r, &a->forward);
}

static const results *answer(bench *b, answers *a, keel_pass pass, bool adds)
{
    results *r = &a->of[pass][adds];
    if (a->has[pass][adds]) return r;
    results_open(r, b, false);
    if (pass != KEEL_FORWARD) after_forward(b, a, r, false);
    pass_run(b, NULL, pass, adds, 1, r);
    a->has[pass][adds] = true;
    return r;
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

/* Attention whose lines are longer than what backward takes at once. */
static bool in_blocks(const bench *b)
{
    const keel_shape *q = &b->wide.in[0].shape, *k = &b->wide.in[1].shape;
    const keel_shape *v = &b->wide.in[2].shape;
    const int64_t s = k->dim[k->rank - 3], d = q->dim[q->rank - 1], wide = v->dim[v->rank - 1];
    return s > 512 || (s > 128 && (d > 256 || wide > 256));
}

/* Winograd over one dim rounds what it has transformed (how much that is, tests/winograd_cases.h
 * holds). Attention by rounded products rounds its weights and their gradients; where backward
 * takes a line in blocks, it goes on from the rounded output. Rounded products of a recurrent op
 * round the state of each step, and its gradient, and the next steps go on from those: by how many
 * units results may differ. A given state is rounded as it is, so that the step after it is held to
 * its own rounding, unless the state is reset or dropped before. The same loops by AVX2 round
 * nothing between. */
static int rounded_inside(const bench *b, const keel_kernel *k, keel_pass pass)
{
    const char *op = b->wide.op->name;
    if (strcmp(k->name, "1d_winograd_avx512_bf16") == 0) return 2;
    if (strcmp(op, "dot_product_attention") == 0 && in_blocks(b)) return 2;
    if (strcmp(k->name, "avx512") != 0 || !keel_rounded_way()) return 0;
    if (strcmp(op, "dot_product_attention") == 0) return 2;
    const bool gru = strcmp(op, "gru") == 0;
    const int64_t steps = b->wide.in[0].shape.dim[0];
    if (!gru && strcmp(op, "lstm") != 0 && strcmp(op, "simple_rnn") != 0) return 0;
    const keel_recurrent_args *a = b->wide.args;
    const bool exact = steps == 1 && pass == KEEL_FORWARD && !gru && !a->dropped;
    return exact ? 0 : 24 * (int)steps;
}

static int compare_pass(bench *b, answers *a, const keel_kernel *k, const char *name,
                        keel_pass pass, bool adds)
{
    results got, cut;
    if (!has_pass(b, pass) || !pass_takes(b, k, pass, adds)) return 0;
    results_open(&got, b, true);
    if (pass != KEEL_FORWARD) after_forward(b, a, &got, true);
    const bool ran = pass_run(b, k, pass, adds, 1, &got);
    narrow_inside = rounded_inside(b, k, pass);
    if (ran) compare(b, pass, name, answer(b, a, pass, adds), &got);
    narrow_inside = 0;
    if (ran && pass <= KEEL_BACKWARD && !strstr(k->name, "dnnl")) {
        results_open(&cut, b, true);
        if (pass != KEEL_FORWARD) after_forward(b, a, &cut, true);
        if (pass_run(b, k, pass, adds, 3, &cut)) compare_bits(b, pass, name, &got, &cut);
        results_free(&cut);
    }
    if (ran && pass == KEEL_WEIGHTS && adds && b->wide.n_saved == 0 && b->wide.partial == 0)
        compare_adding(b, k, name);
    results_free(&got);
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
    if (strstr(k->name, "winograd")) return 0;
    /* multiplies in float32, by the weights as they are, like the kernels of depthwise_conv2d */
    if (strncmp(k->name, "depthwise", 9) == 0) return 0;
    for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
        bench b;
        results want, got;
        assert_int_equal(bench_open(&b, op, c, true, 3, true), KEEL_OK);
        results_open(&want, &b, false);
        results_open(&got, &b, true);
        const int64_t n = keel_row_count(&b.wide.weight[0]);
        for (int64_t i = 0; i < n; i++) /* ties among them */
            b.weight[0][i] = b.weight[0][i] * (1 + 0x1p-8f) + (i % 3 ? 0 : 0x1p-14f);
        const bool does = pass_run(&b, k, pass, false, 1, &got);
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
    const int64_t in = keel_row_count(&n->in[0]), out = keel_row_count(&n->out[0]);
    keel_span span[4];
    keel_tile_call c = { .node = n,
                         .span = span,
                         .weight = weight,
                         .first = first,
                         .count = count,
                         .grad = grad,
                         .scratch = tile_scratch,
                         .scratch_ready = again };
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
    if (!k->narrow_tile || n->in[0].shape.rank != 1 || keel_kernel_prepare(k, &p) < 0) return 0;
    assert_null(p.plan);
    assert_true(p.scratch <= (int64_t)sizeof tile_scratch);
    for (int w = 0; w < n->n_weight; w++) {
        const keel_shape *shape = &n->weight[w].shape;
        const int64_t count = keel_row_count(&n->weight[w]), last = shape->dim[shape->rank - 1];
        float *want = numbers(count, false), *got = numbers(count, false);
        float *cut = numbers(count, false);
        tile_run(b, n->op->weights_tile[0], false, cuts[0], w, 0, count, false, want);
        tile_run(b, k->narrow_tile, true, cuts[0], w, 0, count, false, got);
        same(name, want, got, false, count);
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

static bool has_narrow(const keel_kernel *k)
{
    for (int pass = 0; pass < KEEL_PASS_COUNT; pass++)
        if (k->narrow[pass]) return true;
    return k->narrow_tile != NULL;
}

static int compare_bench(bench *b, answers *a, const keel_kernel *k, const char *name)
{
    int ran = compare_pass(b, a, k, name, KEEL_FORWARD, false);
    for (int adds = 0; b->wide.training && adds < 2; adds++) {
        ran += compare_pass(b, a, k, name, KEEL_BACKWARD, adds);
        ran += compare_pass(b, a, k, name, KEEL_WEIGHTS, adds);
    }
    if (b->wide.training) {
        ran += compare_pass(b, a, k, name, KEEL_PARTIAL, false);
        ran += compare_pass(b, a, k, name, KEEL_PARTIAL_BACKWARD, false);
        ran += compare_tiles(b, k, name);
    }
    return ran;
}

/* Which numbers of rows a case is tried with: all of them, where a row takes few products; else one
 * of each kind, since references are slow, above all under sanitizers. */
static bool tries_rows(const bench *b)
{
    const keel_node *n = &b->wide;
    const keel_shape *out = &n->out[0].shape;
    const bool dense = strcmp(n->op->name, "dense") == 0;
    int64_t products = keel_row_count(&n->out[0]);
    if (n->n_weight) products *= keel_row_count(&n->weight[0]) / out->dim[out->rank - 1];
    if (products < 1 << 20) return b->rows <= 16 || dense;
    return dense ? b->rows == 1 || b->rows == 16 : b->rows == 1 || b->rows == 3 || b->rows == 7;
}

enum { OP_KERNELS_MAX = 32 };

/* All kernels of an op on one case: the reference, which is slow, runs once for all of them. */
static void compare_case(const keel_op *op, const keel_kernel *const *kernels, int n, int *ran,
                         const keel_case *c)
{
    static const int64_t rows[] = { 1, 2, 3, 7, 16, 65 };
    char name[160];
    for (int training = 0; training < 2; training++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bench b;
            answers a = { 0 };
            snprintf(name, sizeof name, "%s in %s weights %s args %s", op->name, c->in,
                     c->weights ? c->weights : "-", c->args ? c->args : "-");
            if (bench_open(&b, op, c, training, rows[i], true) < 0)
                fail_msg("%s: %s", name, keel_error());
            const bool tries = tries_rows(&b);
            if (tries) merge(&b);
            for (int k = 0; tries && k < n; k++) {
                snprintf(name, sizeof name, "%s_%s in %s weights %s args %s", op->name,
                         kernels[k]->name, c->in, c->weights ? c->weights : "-",
                         c->args ? c->args : "-");
                ran[k] += compare_bench(&b, &a, kernels[k], name);
            }
            answers_free(&a);
            bench_close(&b);
        }
    for (int k = 0; k < n; k++) {
        snprintf(name, sizeof name, "%s_%s in %s", op->name, kernels[k]->name, c->in);
        ran[k] += compare_rounded_weights(kernels[k], name, op, c);
    }
}

/* Of the ops that are wanted; NULL: all. */
static void compare_ops(bool (*wants)(const keel_op *))
{
    keel_cpu_single_thread();
    const int64_t live = keel_memory_live();
    for (int o = 0; keel_ops[o]; o++) {
        const keel_op *op = keel_ops[o];
        if (wants && !wants(op)) continue;
        const keel_kernel *kernels[OP_KERNELS_MAX];
        int n = 0, ran[OP_KERNELS_MAX] = { 0 };
        for (int i = 0; keel_kernels[i]; i++) {
            if (keel_kernels[i]->op != op || !has_narrow(keel_kernels[i])) continue;
            assert_true(n < OP_KERNELS_MAX);
            kernels[n++] = keel_kernels[i];
        }
        if (n == 0) continue;
        same_unbounded = strcmp(op->name, "divide") == 0;
        for (const keel_case *c = op->cases; c->in; c++) compare_case(op, kernels, n, ran, c);
        const int every = thin(1, 2, 5);
        for (int e = o % every; e < KERNEL_CASES; e += every)
            if (strcmp(kernel_cases[e].op, op->name) == 0)
                compare_case(op, kernels, n, ran, &kernel_cases[e].c);
        if (strcmp(large_dense.op, op->name) == 0)
            compare_case(op, kernels, n, ran, &large_dense.c);
        for (int k = 0; k < n; k++)
            print_message("%s_%s: %d narrow passes compared\n", op->name, kernels[k]->name, ran[k]);
        assert_int_equal(keel_memory_live(), live);
    }
}
