/* Tests of float32 products by bfloat16 tiles. test_split_emulated.c runs the kernels on tiles in
 * plain C, on any machine; test_split.c runs them on the processor's AMX tiles. They check the
 * error against float64, next to that of other kernels; the same bits for any cut of the rows; and
 * the values that the pieces cannot represent. Long because all tests share one small laboratory,
 * which runs one op at one shape. */
#include <float.h>
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
#include "device/cpu/cpu.h"
#include "graph/tuned.h"
#include "ops/all.h"
#include "keel/keel.h"
#include "must.h"
#include "sweep.h"
#include "ops/cases.h"

/* Every shape that the networks below have, on every kind of processor: the kernels run in a whole
 * fit too. */
#define ON(level, op, pass, window, stride, c, k, places)                                          \
    { level, op, pass, window, stride, c, k, places, { "split_amx", "", "split_amx", "" } },
#define PASSES(level, op, window, stride, c, k, places)                                            \
    ON(level, op, KEEL_FORWARD, window, stride, c, k, places)                                      \
    ON(level, op, KEEL_BACKWARD, window, stride, c, k, places)                                     \
    ON(level, op, KEEL_WEIGHTS, window, stride, c, k, places)
#define LEVEL(level)                                                                               \
    PASSES(level, &keel_op_conv2d, 3, 1, 3, 8, 64)                                                 \
    PASSES(level, &keel_op_conv2d, 3, 2, 8, 20, 16)                                                \
    PASSES(level, &keel_op_dense, 1, 1, 320, 40, 1)
const keel_tuned keel_tuned_rows[] = { LEVEL("base") LEVEL("avx2") LEVEL("avx512")
                                           LEVEL("avx512_bf16") LEVEL("amx"){ 0 } };

typedef enum data { NORMAL, WIDE, POSITIVE, KINDS } data;
static const char *const data_name[] = { "normal", "wide", "positive" };

static uint32_t state = 1;
static double uniform(void) /* -1 .. 1 */
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / 8388608.0 - 1;
}
static float number(data kind)
{
    double x = 0;
    for (int i = 0; i < 6; i++) x += uniform();
    if (kind == WIDE) return (float)ldexp(x, (int)(20 * uniform()));
    return (float)(kind == POSITIVE ? fabs(x) : x);
}

/* A node in float32 and in float64, and what its passes read and write. */
typedef struct lab {
    keel_node node[2];
    keel_spec in[2], weight[2][2];
    char args[256];
    int64_t rows, n_x, n_y, n_w, n_b;
    float *x, *w, *b, *dy, *result;
    double *x8, *w8, *b8, *dy8, *result8, *size8; /* size8: the same of magnitudes */
} lab;

static double *widened(const float *x, int64_t n)
{
    double *out = keel_calloc((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = x[i];
    return out;
}

static int64_t most_of(const lab *l)
{
    const int64_t a = l->n_x > l->n_y ? l->n_x : l->n_y;
    return a > l->n_w ? a : l->n_w;
}

static float *numbers(int64_t n, data kind)
{
    float *x = keel_calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = number(kind);
    return x;
}

static void lab_open(lab *l, const char *op, const char *in, const char *weights, const char *args,
                     int64_t rows, data kind)
{
    *l = (lab){ .rows = rows };
    keel_case_shapes(in, KEEL_FLOAT32, l->in, 1);
    l->in[1] = l->in[0];
    l->in[1].dtype = KEEL_FLOAT64;
    for (int r = 0; r < 2; r++) {
        keel_node *n = &l->node[r];
        *n = (keel_node){ .op = keel_op_find(op),
                          .args = l->args,
                          .layer = "a layer",
                          .training = true,
                          .backward = true,
                          .real = r ? KEEL_FLOAT64 : KEEL_FLOAT32,
                          .held = r ? KEEL_FLOAT64 : KEEL_FLOAT32,
                          .n_in = 1,
                          .in = &l->in[r],
                          .weight = l->weight[r] };
        if (n->op->args_for_case) n->op->args_for_case(l->args, args);
        n->n_weight = keel_case_shapes(weights, n->real, l->weight[r], 2);
        if (keel_node_infer(n) < 0) fail_msg("%s", keel_error());
    }
    const keel_node *n = &l->node[0];
    l->n_x = rows * keel_row_count(&l->in[0]);
    l->n_y = rows * keel_row_count(&n->out[0]);
    l->n_w = keel_row_count(&n->weight[0]);
    l->n_b = n->n_weight > 1 ? keel_row_count(&n->weight[1]) : 0;
    l->x = numbers(l->n_x, kind);
    l->w = numbers(l->n_w, kind);
    l->b = numbers(l->n_b, kind);
    l->dy = numbers(l->n_y, kind);
    l->result = keel_calloc((size_t)most_of(l), sizeof(float));
    l->result8 = keel_calloc((size_t)most_of(l), sizeof(double));
    l->size8 = keel_calloc((size_t)most_of(l), sizeof(double));
}

static void lab_close(lab *l)
{
    for (int r = 0; r < 2; r++) keel_node_clear(&l->node[r]);
    float *const f[] = { l->x, l->w, l->b, l->dy, l->result };
    double *const d[] = { l->x8, l->w8, l->b8, l->dy8, l->result8, l->size8 };
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) keel_free(f[i]);
    for (size_t i = 0; i < sizeof d / sizeof *d; i++) keel_free(d[i]);
}

static int64_t result_count(const lab *l, keel_pass pass)
{
    return pass == KEEL_FORWARD ? l->n_y : pass == KEEL_BACKWARD ? l->n_x : l->n_w;
}

/* The same pass of rows [first, first + rows) for either type. */
static void call_rows(const lab *l, keel_run run, keel_pass pass, int r, int64_t first,
                      int64_t rows, bool adds, void *plan, void *scratch, void *result)
{
    const size_t size = r ? sizeof(double) : sizeof(float);
    const size_t at_x = size * (size_t)(first * (l->n_x / l->rows));
    const size_t at_y = size * (size_t)(first * (l->n_y / l->rows));
    const char *x = r ? (const char *)l->x8 : (const char *)l->x;
    const char *dy = r ? (const char *)l->dy8 : (const char *)l->dy;
    char bias_grad[8192];
    keel_call c = { .node = &l->node[r],
                    .rows = rows,
                    .in = (const void *[]){ x + at_x },
                    .out = (void *[]){ (char *)result + at_y },
                    .out_grad = (const void *[]){ dy + at_y },
                    .in_grad = (void *[]){ (char *)result + at_x },
                    .in_adds = (const bool[]){ adds },
                    .weight = (const void *[]){ r ? (void *)l->w8 : (void *)l->w,
                                                r ? (void *)l->b8 : (void *)l->b },
                    .weight_grad = (void *[]){ result, l->n_b ? bias_grad : NULL },
                    .weight_adds = adds,
                    .plan = plan,
                    .scratch = scratch };
    assert_true((size_t)l->n_b * size <= sizeof bias_grad);
    memset(bias_grad, 0, sizeof bias_grad);
    run(&c);
}

static keel_run reference(const lab *l, keel_pass pass, int r)
{
    const keel_op *op = l->node[r].op;
    return pass == KEEL_FORWARD    ? op->forward[r]
           : pass == KEEL_BACKWARD ? op->backward[r]
                                   : op->weights[r];
}

static void truth(lab *l, keel_pass pass)
{
    double **const wide[] = { &l->x8, &l->w8, &l->b8, &l->dy8 };
    const float *const from[] = { l->x, l->w, l->b, l->dy };
    const int64_t n[] = { l->n_x, l->n_w, l->n_b, l->n_y };
    for (int magnitudes = 1; magnitudes >= 0; magnitudes--) {
        for (int i = 0; i < 4; i++) {
            keel_free(*wide[i]);
            *wide[i] = widened(from[i], n[i]);
            for (int64_t e = 0; magnitudes && e < n[i]; e++) (*wide[i])[e] = fabs((*wide[i])[e]);
        }
        call_rows(l, reference(l, pass, 1), pass, 1, 0, l->rows, false, NULL, NULL,
                  magnitudes ? l->size8 : l->result8);
    }
}

/* The largest error of an element over the sum of the magnitudes that were added up for it. */
static double error_of(const lab *l, keel_pass pass)
{
    double worst = 0;
    for (int64_t i = 0; i < result_count(l, pass); i++) {
        const double off = fabs((double)l->result[i] - l->result8[i]);
        if (l->size8[i] > 0) worst = fmax(worst, off / l->size8[i]);
        if (!(off <= INFINITY) || (l->size8[i] == 0 && off > 0)) return INFINITY;
    }
    return worst;
}

static keel_derived copies[4];
static int n_copies;
static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const lab *l = context;
    assert_true(n_copies < 4);
    want->data = keel_aligned_calloc(want->bytes, 1);
    want->refresh(want, want->weight ? l->b : l->w);
    copies[n_copies] = *want;
    *got = &copies[n_copies++];
    return KEEL_OK;
}

static const keel_kernel *kernel_of(const char *op, const char *name)
{
    for (int i = 0; keel_kernels[i]; i++)
        if (!strcmp(keel_kernels[i]->op->name, op) && !strcmp(keel_kernels[i]->name, name))
            return keel_kernels[i];
    return NULL;
}

/* Run a kernel over all rows, in pieces of `cut` rows (0: at once). false: it refuses. */
static bool run_kernel(lab *l, const keel_kernel *k, keel_pass pass, keel_float32 float32,
                       int64_t cut, bool adds)
{
    if (!k->run[pass]) return false;
    for (int64_t row = 0, rows; row < l->rows; row += rows) {
        rows = cut && cut < l->rows - row ? cut : l->rows - row;
        keel_prepare p = { .node = &l->node[0],
                           .pass = pass,
                           .rows = rows,
                           .in_adds = adds,
                           .weight_adds = adds || row > 0,
                           .float32 = float32,
                           .measured = true,
                           .derive = derive,
                           .context = l };
        const keel_status s = k->prepare(&p);
        if (s == KEEL_EUNSUP) return false;
        if (s < 0) fail_msg("%s: %s", k->name, keel_error());
        char *scratch = keel_aligned_calloc((size_t)p.scratch + 64, 1);
        memset(scratch, 0xff, (size_t)p.scratch); /* NaN: nobody may rely on zeros */
        call_rows(l, k->run[pass], pass, 0, row, rows, pass == KEEL_WEIGHTS ? p.weight_adds : adds,
                  p.plan, scratch, l->result);
        if (k->release) k->release(p.plan);
        keel_free(scratch);
        while (n_copies > 0) {
            n_copies--;
            if (copies[n_copies].release) copies[n_copies].release(copies[n_copies].plan);
            keel_free(copies[n_copies].data);
        }
    }
    return true;
}

/* The error of the best of the other kernels; -1: there is none. */
static double error_of_others(lab *l, keel_pass pass)
{
    double least = -1;
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *k = keel_kernels[i];
        if (k->op != l->node[0].op || strstr(k->name, "split_amx")) continue;
        if (strstr(k->name, "winograd")) continue; /* rounds more often */
        if (!run_kernel(l, k, pass, KEEL_FLOAT32_FMA, 0, false)) continue;
        const double e = error_of(l, pass);
        if (least < 0 || e < least) least = e;
    }
    return least;
}

/* Winograd's errors are those of other tiles: test_conv_winograd.c has their bounds. */
#define WINOGRAD "winograd_split_amx"
static const struct shape {
    const char *op, *in, *weights, *args;
    int64_t rows;
    const char *kernel; /* NULL: the direct products, "split_amx" */
} shapes[] = {
    { "dense", "784", "784,64|64", NULL, 33 },
    { "dense", "2048", "2048,40", NULL, 17 },
    { "dense", "64", "64,130|130", NULL, 3000 }, /* a long sum for the weight gradient */
    { "dense", "5,33", "33,50|50", NULL, 7 },
    { "dense", "3", "3,1|1", NULL, 1 },
    { "conv2d", "14,14,32", "3,3,32,64|64", "pad 1,1,1,1", 3 },
    { "conv2d", "7,7,100", "3,3,100,33", "pad 1,1,1,1", 5 },
    { "conv2d", "9,8,64", "1,1,64,48|48", NULL, 5 },
    { "conv2d", "9,8,40", "1,1,40,20", "strides 2,2", 5 },
    { "conv2d", "40,39,5", "3,3,5,7|7", "pad 1,1,1,1", 2 },
    { "conv2d", "29,29,3", "7,7,3,16|16", "strides 2,2 pad 3,2,3,2", 3 },
    { "conv2d", "14,15,20", "3,3,20,30", "strides 2,2 pad 1,1,1,1", 3 },
    { "conv2d", "17,17,5", "3,3,5,7|7", "dilation 2,3 pad 2,2,3,3", 3 },
    { "conv2d", "7,5,6", "2,3,6,4", "strides 3,1 pad 1,0,2,2", 4 },
    { "conv2d", "5,5,4", "3,3,4,5", "pad 2,2,2,2", 3 },
    { "conv2d", "6,6,9", "3,2,9,5|5", NULL, 20 },
    { "conv2d", "4,4,3", "3,3,3,4", "pad 2,0,0,2", 6 },
    { "conv2d", "7,7,100", "3,3,100,65", "pad 1,1,1,1", 5, WINOGRAD },
    { "conv2d", "26,23,70", "3,3,70,75|75", NULL, 5, WINOGRAD },
    { "conv2d", "5,6,600", "3,3,600,64|64", "pad 1,1,1,1", 3, WINOGRAD },
    { "conv2d", "4,4,140", "3,3,140,70", "pad 2,0,0,2", 6, WINOGRAD },
};
enum { SHAPES = sizeof shapes / sizeof *shapes, DIRECT = SHAPES - 4 };
static int every = 1; /* which shapes are taken: plain C tiles are slow */
static const char *const pass_name[] = { "forward", "backward", "weights" };

static const keel_kernel *kernel_at(int i)
{
    return kernel_of(shapes[i].op, shapes[i].kernel ? shapes[i].kernel : "split_amx");
}

static void open_shape(lab *l, const struct shape *s, data kind)
{
    lab_open(l, s->op, s->in, s->weights, s->args, s->rows, kind);
}

static int start(void **unused)
{
    (void)unused;
    every = thin(1, 4, 5);
    keel_cpu_single_thread();
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Bounds: of an element, over the sum of magnitudes. Rounding the result alone may cost 6e-8. */
static void exact_errs_no_more_than_multiply_adds(void **unused)
{
    (void)unused;
    int ran = 0;
    for (int i = 0; i < DIRECT; i += every)
        for (data kind = 0; kind < KINDS; kind++)
            for (keel_pass pass = 0; pass <= KEEL_WEIGHTS; pass++) {
                lab l;
                open_shape(&l, &shapes[i], kind);
                truth(&l, pass);
                const double others = error_of_others(&l, pass);
                if (run_kernel(&l, kernel_at(i), pass, KEEL_FLOAT32_EXACT, 0, false)) {
                    const double e = error_of(&l, pass);
                    const double bound = others < 0 ? 4e-7 : 2 * others + 6e-8;
                    ran++;
                    print_message("%-6s %-8s %-12s %-8s %-8s %.2g, multiply-adds %.2g\n",
                                  shapes[i].op, shapes[i].in, shapes[i].weights, pass_name[pass],
                                  data_name[kind], e, others);
                    if (!(e <= bound && e <= 6e-7))
                        fail_msg("that is more than %.2g", bound < 6e-7 ? bound : 6e-7);
                }
                lab_close(&l);
            }
    assert_true(ran * every >= 3 * (3 * DIRECT - 5)); /* strides: no gradient of the image */
}

/* Two pieces leave out three parts of 2^-16 of a product, at most. */
static void fast_keeps_fourteen_bits_and_more(void **unused)
{
    (void)unused;
    double most = 0;
    for (int i = 0; i < DIRECT; i += every)
        for (data kind = 0; kind < KINDS; kind++)
            for (keel_pass pass = 0; pass <= KEEL_WEIGHTS; pass++) {
                lab l;
                open_shape(&l, &shapes[i], kind);
                truth(&l, pass);
                if (run_kernel(&l, kernel_at(i), pass, KEEL_FLOAT32_FAST, 0, false)) {
                    const double e = error_of(&l, pass);
                    most = fmax(most, e);
                    if (!(e <= 3 * 0x1p-16))
                        fail_msg("%s %s %s, %s: %.2g", shapes[i].op, shapes[i].in, pass_name[pass],
                                 data_name[kind], e);
                }
                lab_close(&l);
            }
    print_message("at most %.2g\n", most);
    assert_true(most > 1e-6); /* it is not the exact kernel that ran */
}

static void results_are_added_where_that_is_asked(void **unused)
{
    (void)unused;
    for (int i = 0; i < SHAPES; i += every)
        for (keel_pass pass = KEEL_BACKWARD; pass <= KEEL_WEIGHTS; pass++) {
            const keel_kernel *k = kernel_at(i);
            lab l;
            open_shape(&l, &shapes[i], NORMAL);
            const int64_t n = result_count(&l, pass);
            if (run_kernel(&l, k, pass, KEEL_FLOAT32_EXACT, 0, false)) {
                float *once = keel_calloc((size_t)n, sizeof *once);
                memcpy(once, l.result, (size_t)n * sizeof *once);
                run_kernel(&l, k, pass, KEEL_FLOAT32_EXACT, 0, true);
                for (int64_t e = 0; e < n; e++)
                    if (!(fabsf(l.result[e] - 2 * once[e]) <= 4e-6f * fabsf(once[e]) + 1e-4f))
                        fail_msg("%s %s %s: [%d] is %g, twice %g", shapes[i].op, shapes[i].in,
                                 pass_name[pass], (int)e, (double)l.result[e], (double)once[e]);
                keel_free(once);
            }
            lab_close(&l);
        }
}

static void rows_have_the_same_bits_however_they_are_cut(void **unused)
{
    (void)unused;
    static const keel_float32 modes[] = { KEEL_FLOAT32_EXACT, KEEL_FLOAT32_FAST };
    for (int i = 0; i < SHAPES; i += every)
        for (keel_pass pass = 0; pass <= KEEL_BACKWARD; pass++)
            for (int m = 0; m < 2; m++) {
                const keel_kernel *k = kernel_at(i);
                lab l;
                open_shape(&l, &shapes[i], WIDE);
                const size_t bytes = (size_t)result_count(&l, pass) * sizeof(float);
                if (run_kernel(&l, k, pass, modes[m], 0, false)) {
                    float *whole = keel_calloc(1, bytes);
                    memcpy(whole, l.result, bytes);
                    for (int64_t cut = 1; cut < l.rows && cut < 9; cut += 2) {
                        run_kernel(&l, k, pass, modes[m], l.rows > 100 ? 100 * cut : cut, false);
                        if (memcmp(whole, l.result, bytes))
                            fail_msg("%s %s %s: other bits by %d rows", shapes[i].op, shapes[i].in,
                                     pass_name[pass], (int)cut);
                    }
                    keel_free(whole);
                }
                lab_close(&l);
            }
}

/* What pieces cannot hold is computed by the reference: infinity stays infinity, numbers next to
 * the largest are right, and so are the smallest. Nothing is added twice on the way. */
static void what_pieces_would_lose_comes_out_right(void **unused)
{
    (void)unused;
    static const struct {
        const char *what;
        float first, scale; /* the first number of x and of dy; a factor for all numbers */
    } odd[] = { { "infinity", INFINITY, 1 },    { "no number", NAN, 1 },
                { "the largest", -FLT_MAX, 1 }, { "small products", 0, 1e-18f },
                { "small numbers", 0, 1e-36f }, { "large products", 0, 1e18f },
                { "a payload", 0, 1 } };
    for (int i = 0; i < SHAPES; i += 3 * every)
        for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
            for (keel_pass pass = 0; pass <= KEEL_WEIGHTS; pass++)
                for (int adds = 0; adds < (pass ? 2 : 1); adds++) {
                    const keel_kernel *k = kernel_at(i);
                    lab l;
                    open_shape(&l, &shapes[i], NORMAL);
                    const int64_t n = result_count(&l, pass);
                    float *want = keel_calloc((size_t)n, sizeof *want);
                    float *const all[] = { l.x, l.w, l.dy };
                    const int64_t counts[] = { l.n_x, l.n_w, l.n_y };
                    for (int a = 0; a < 3; a++) {
                        for (int64_t e = 0; e < counts[a]; e++) all[a][e] *= odd[o].scale;
                        if (odd[o].first != 0)
                            all[a == 1 ? 0 : a][counts[a] / 2 % l.n_y] = odd[o].first;
                    }
                    if (!strcmp(odd[o].what, "a payload")) {
                        const uint32_t nan = 0x7fffffff;
                        memcpy(l.x, &nan, sizeof nan);
                        memcpy(l.dy, &nan, sizeof nan);
                    }
                    for (int64_t e = 0; e < n; e++) want[e] = l.result[e] = 1;
                    call_rows(&l, reference(&l, pass, 0), pass, 0, 0, l.rows, adds, NULL, NULL,
                              want);
                    if (run_kernel(&l, k, pass, KEEL_FLOAT32_EXACT, 0, adds))
                        for (int64_t e = 0; e < n; e++)
                            if (memcmp(&l.result[e], &want[e], sizeof *want) &&
                                !(isnan(want[e]) && isnan(l.result[e])))
                                fail_msg("%s %s %s, %s: [%d] is %g, not %g", shapes[i].op,
                                         shapes[i].in, pass_name[pass], odd[o].what, (int)e,
                                         (double)l.result[e], (double)want[e]);
                    keel_free(want);
                    lab_close(&l);
                }
}

/* A gradient of zeros is no reason to leave the fast way. */
static void zeros_are_multiplied_as_others(void **unused)
{
    (void)unused;
    for (keel_pass pass = 0; pass <= KEEL_WEIGHTS; pass++) {
        lab l;
        open_shape(&l, &shapes[5], NORMAL);
        memset(l.x, 0, (size_t)l.n_x * sizeof *l.x);
        memset(l.dy, 0, (size_t)l.n_y * sizeof *l.dy);
        memset(l.b, 0, (size_t)l.n_b * sizeof *l.b);
        for (int64_t e = 0; e < result_count(&l, pass); e++) l.result[e] = 1;
        assert_true(
            run_kernel(&l, kernel_of("conv2d", "split_amx"), pass, KEEL_FLOAT32_EXACT, 0, false));
        for (int64_t e = 0; e < result_count(&l, pass); e++) assert_true(l.result[e] == 0);
        lab_close(&l);
    }
}

static void nothing_runs_that_was_not_asked_for(void **unused)
{
    (void)unused;
    lab l;
    open_shape(&l, &shapes[0], NORMAL);
    static const struct {
        keel_float32 float32;
        bool measured, runs;
    } when[] = { { KEEL_FLOAT32_FMA, true, false },
                 { KEEL_FLOAT32_FMA, false, false },
                 { KEEL_FLOAT32_EXACT, false, false },
                 { KEEL_FLOAT32_EXACT, true, true },
                 { KEEL_FLOAT32_FAST, false, true } };
    for (size_t i = 0; i < sizeof when / sizeof *when; i++) {
        const keel_kernel *k = kernel_of("dense", "split_amx");
        keel_prepare p = { .node = &l.node[0],
                           .pass = KEEL_WEIGHTS,
                           .rows = 1,
                           .float32 = when[i].float32,
                           .measured = when[i].measured };
        assert_int_equal(k->prepare(&p), when[i].runs ? KEEL_OK : KEEL_EUNSUP);
    }
    lab_close(&l);
}

/* The table above has dense of 320 x 40. */
static void a_measured_class_reaches_to_twice_and_half_its_sizes(void **unused)
{
    (void)unused;
    static const struct {
        const char *in, *weights, *kernel;
        keel_float32 float32;
    } look[] = { { "320", "320,40", "split_amx", KEEL_FLOAT32_EXACT },
                 { "640", "640,20", "split_amx", KEEL_FLOAT32_FAST },
                 { "320", "320,40", NULL, KEEL_FLOAT32_FMA },
                 { "641", "641,40", NULL, KEEL_FLOAT32_EXACT },
                 { "2,320", "320,40", "split_amx", KEEL_FLOAT32_EXACT },
                 { "3,320", "320,40", NULL, KEEL_FLOAT32_EXACT } };
    for (size_t i = 0; i < sizeof look / sizeof *look; i++) {
        lab l;
        lab_open(&l, "dense", look[i].in, look[i].weights, NULL, 1, NORMAL);
        const char *name = keel_tuned_kernel(&l.node[0], KEEL_FORWARD, look[i].float32);
        if (!look[i].kernel)
            assert_null(name);
        else
            assert_string_equal(name, look[i].kernel);
        lab_close(&l);
    }
}

/* ---- a whole fit ----------------------------------------------------------------------------- */

enum { ROWS = 50, SIZE = 8, CLASSES = 40 };

static keel_model *fitted(const char *devices, keel_float32 float32)
{
    static float x[ROWS * SIZE * SIZE * 3];
    static int32_t y[ROWS];
    keel_model *m;
    keel_dataset *d;
    keel_strategy *s;
    state = 5;
    for (int i = 0; i < ROWS * SIZE * SIZE * 3; i++) x[i] = (float)uniform();
    for (int i = 0; i < ROWS; i++) y[i] = (i * 7) % CLASSES;
    const keel_tensor tx = { KEEL_FLOAT32, { 4, { ROWS, SIZE, SIZE, 3 } }, x };
    const keel_tensor ty = { KEEL_INT32, { 1, { ROWS } }, y };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", SIZE, SIZE, 3))));
    must(keel_model_add(m, "Conv2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 8), KEEL_ARG_INT("kernel_size", 3),
                                  KEEL_ARG_STR("padding", "same"),
                                  KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Conv2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 20), KEEL_ARG_INT("kernel_size", 3),
                                  KEEL_ARG_INT("strides", 2), KEEL_ARG_STR("padding", "same"),
                                  KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax"))));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.1)) },
                            .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16, .epochs = 2, .seed = 3,
                                       .float32 = float32 },
                  NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return m;
}

/* The largest difference over the largest weight of a tensor; 0: the same bits. */
static double difference(const keel_model *a, const keel_model *b)
{
    double worst = 0;
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        keel_tensor p, q;
        must(keel_model_get_weight(a, keel_model_weight_name(a, i), &p));
        must(keel_model_get_weight(b, keel_model_weight_name(a, i), &q));
        double most = 1e-30, off = 0;
        int64_t n = 1;
        for (int k = 0; k < p.shape.rank; k++) n *= p.shape.dim[k];
        for (int64_t k = 0; k < n; k++) {
            const double u = ((float *)p.data)[k], v = ((float *)q.data)[k];
            most = fmax(most, fabs(v));
            off = fmax(off, fabs(u - v));
        }
        worst = fmax(worst, off / most);
        keel_tensor_free(&p);
        keel_tensor_free(&q);
    }
    return worst;
}

static void a_fit_is_the_same_on_any_number_of_lanes(void **unused)
{
    (void)unused;
    static const char *const lanes[] = { "cpu:0-1", "cpu:0-2", "cpu:0-3", "cpu:0-6" };
    keel_model *fma = fitted("cpu:0", KEEL_FLOAT32_FMA);
    for (keel_float32 mode = KEEL_FLOAT32_EXACT; mode <= KEEL_FLOAT32_FAST; mode += 2) {
        keel_model *one = fitted("cpu:0", mode);
        const double off = difference(one, fma);
        print_message("off multiply-adds by %.2g\n", off);
        assert_true(off > 0 && off < (mode == KEEL_FLOAT32_EXACT ? 3e-6 : 1e-4));
        for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
            keel_model *many = fitted(lanes[i], mode);
            const double apart = difference(many, one);
            print_message("%s: off by %.2g\n", lanes[i], apart);
            assert_true(i == 0 ? apart == 0 : apart <= 1e-6);
            keel_model_destroy(many);
        }
        keel_model_destroy(one);
    }
    keel_model_destroy(fma);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_errs_no_more_than_multiply_adds),
        cmocka_unit_test(fast_keeps_fourteen_bits_and_more),
        cmocka_unit_test(results_are_added_where_that_is_asked),
        cmocka_unit_test(rows_have_the_same_bits_however_they_are_cut),
        cmocka_unit_test(what_pieces_would_lose_comes_out_right),
        cmocka_unit_test(zeros_are_multiplied_as_others),
        cmocka_unit_test(nothing_runs_that_was_not_asked_for),
        cmocka_unit_test(a_measured_class_reaches_to_twice_and_half_its_sizes),
        cmocka_unit_test(a_fit_is_the_same_on_any_number_of_lanes),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
