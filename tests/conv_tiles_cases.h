/* Tests of conv2d on bfloat16 values by tiles. test_conv_emulated.c runs the kernel on tiles in
 * plain C, on any machine; test_conv_tiles.c runs it on the processor's AMX tiles.
 *
 * The truth is the op's reference in float64, on weights that are rounded as the kernel rounds
 * them: so a result may be off by its own rounding, and by what sums in float32 lose. Operands lie
 * between numbers that are NaN or end where memory ends, and so does what is written; scratch is
 * full of NaN. Long because all tests share one small laboratory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "device/cpu/cpu.h"
#include "graph/choose.h"
#include "graph/tuned.h"
#include "guarded.h"
#include "keel/keel.h"
#include "must.h"
#include "ops/all.h"
#include "ops/cases.h"

/* The table names the kernel for the shapes of the network below, on every kind of processor. */
#define ON(level, pass, window, stride, c, k, places, fma, bfloat16)                               \
    { level,                                                                                       \
      &keel_op_conv2d,                                                                             \
      pass,                                                                                        \
      window,                                                                                      \
      stride,                                                                                      \
      c,                                                                                           \
      k,                                                                                           \
      places,                                                                                      \
      { [KEEL_FLOAT32_FMA] = fma,                                                                  \
        [KEEL_FLOAT32_EXACT] = "",                                                                 \
        [KEEL_FLOAT32_FAST] = "",                                                                  \
        [KEEL_TUNED_BFLOAT16] = bfloat16 } },
#define PASSES(level, window, stride, c, k, places)                                                \
    ON(level, KEEL_FORWARD, window, stride, c, k, places, "dnnl", "amx")                           \
    ON(level, KEEL_BACKWARD, window, stride, c, k, places, "", "amx")                              \
    ON(level, KEEL_WEIGHTS, window, stride, c, k, places, "", "amx")
#define LEVEL(level)                                                                               \
    PASSES(level, 3, 1, 3, 20, 64)                                                                 \
    PASSES(level, 3, 2, 20, 40, 16)                                                                \
    ON(level, KEEL_FORWARD, 5, 1, 3, 20, 64, "dnnl", "")
const keel_tuned keel_tuned_rows[] = { LEVEL("base") LEVEL("avx2") LEVEL("avx512")
                                           LEVEL("avx512_bf16") LEVEL("amx"){ 0 } };

static const struct shape {
    const char *in, *weights, *args;
    int64_t rows;
} shapes[] = {
    /* channels: parts of a step and of a block, on either side */
    { "5,6,1", "3,3,1,1|1", "pad 1,1,1,1", 3 },
    { "5,6,3", "3,3,3,16", "pad 1,1,1,1", 3 },
    { "5,6,16", "3,3,16,31|31", "pad 1,1,1,1", 2 },
    { "6,5,31", "3,3,31,32|32", "pad 1,1,1,1", 2 },
    { "5,5,32", "3,3,32,33|33", NULL, 3 },
    { "5,5,33", "3,3,33,64|64", "pad 1,1,1,1", 2 },
    { "4,4,64", "3,3,64,100|100", "pad 1,1,1,1", 2 },
    { "4,4,100", "3,3,100,3", "pad 1,1,1,1", 2 },
    /* windows of one pixel: rows where they are, every second one, a border of zeros */
    { "4,5,40", "1,1,40,48|48", NULL, 5 },
    { "1,1,64", "1,1,64,16|16", NULL, 1 },
    { "7,7,100", "1,1,100,33", NULL, 3 },
    { "7,6,35", "1,1,35,20|20", "strides 2,2", 3 },
    { "4,4,16", "1,1,16,17", "pad 1,0,0,1", 2 },
    /* strides, also such that lines remain unread; larger and oblong windows; dilation */
    { "9,8,20", "3,3,20,18|18", "strides 2,2 pad 1,1,1,1", 3 },
    { "7,8,40", "3,3,40,18|18", "strides 2,2 pad 1,1,1,1", 2 },
    { "8,8,16", "3,3,16,33", "strides 2,2 pad 0,1,0,1", 3 },
    { "10,9,17", "3,3,17,16|16", "strides 2,2", 2 },
    { "11,12,3", "5,5,3,20|20", "pad 2,2,2,2", 2 },
    { "13,11,5", "5,5,5,32", "strides 2,2 pad 2,1,1,2", 3 },
    { "12,13,3", "7,7,3,16|16", "strides 2,2 pad 3,3,3,3", 2 },
    { "7,9,6", "2,3,6,4", "strides 3,1 pad 1,0,2,2", 4 },
    { "9,9,5", "3,3,5,7|7", "dilation 2,3 pad 2,2,3,3", 3 },
    { "9,9,4", "2,2,4,5", "strides 2,3 dilation 3,2 pad 1,2,0,1", 2 },
    { "4,4,4", "3,3,4,5", "pad 2,2,2,2", 3 },
    { "2,9,8", "1,1,8,8", "strides 3,3", 2 },
    /* a place; a window that lies wholly in the border; a sequence, with strides too */
    { "1,1,32", "3,3,32,32|32", "pad 1,1,1,1", 1 },
    { "1,1,7", "2,2,7,5", "pad 2,2,2,2", 2 },
    { "20,1,16", "3,1,16,24|24", "pad 1,1,0,0", 3 },
    { "21,1,9", "4,1,9,16", "strides 2,1 pad 1,2,0,0", 2 },
    { "600,1,16", "3,1,16,16", "pad 1,1,0,0", 2 },
    { "2,2100,1", "2,3,1,2", "pad 0,1,1,1", 2 },
    /* stretches of lines and of many images, several runs of accumulators, and copied tiles */
    { "50,50,2", "3,3,2,4|4", "pad 1,1,1,1", 1 },
    { "60,37,3", "3,2,3,4", "strides 2,1 pad 1,0,1,0", 1 },
    { "3,3,8", "3,3,8,8|8", "pad 1,1,1,1", 150 },
    { "5,120,3", "1,3,3,258|258", "pad 0,0,1,1", 1 },
    { "6,100,2", "1,1,2,1040|1040", NULL, 1 },
    { "30,30,400", "1,2,400,2", "pad 0,0,1,0", 1 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int start(void **unused)
{
    (void)unused;
    keel_cpu_single_thread();
    return 0;
}

/* ---- the laboratory -------------------------------------------------------------------------- */

typedef struct lab {
    const struct shape *shape;
    char args[256];
    keel_node node, wide; /* on bfloat16 values, and in float64 */
    keel_spec in[2], weight[2][2];
    int64_t rows, n_x, n_y, n_w, n_b; /* of all rows */
    keel_bf16 *x, *dy;
    float *w, *b;
    double *x8, *dy8, *w8, *b8; /* w8: rounded to bfloat16 */
    keel_derived copies[4];
    int n_copy;
} lab;

static const keel_kernel *kernel(void)
{
    for (int i = 0; keel_kernels[i]; i++)
        if (keel_kernels[i]->op == &keel_op_conv2d && !strcmp(keel_kernels[i]->name, "amx"))
            return keel_kernels[i];
    fail_msg("there is no such kernel");
    return NULL;
}

static double *widened(const keel_bf16 *x, int64_t n)
{
    double *out = keel_calloc((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (double)keel_bf16_wide(x[i]);
    return out;
}

static void node_open(lab *l, keel_node *n, int wide, const char *args)
{
    const keel_dtype held = wide ? KEEL_FLOAT64 : KEEL_BFLOAT16;
    keel_case_shapes(l->shape->in, held, &l->in[wide], 1);
    *n = (keel_node){ .op = &keel_op_conv2d,
                      .args = l->args,
                      .layer = "a layer",
                      .training = true,
                      .backward = true,
                      .real = wide ? KEEL_FLOAT64 : KEEL_FLOAT32,
                      .held = held,
                      .n_in = 1,
                      .in = &l->in[wide],
                      .weight = l->weight[wide] };
    n->op->args_for_case(l->args, args);
    n->n_weight = keel_case_shapes(l->shape->weights, n->real, l->weight[wide], 2);
    must(keel_node_infer(n));
}

static void lab_open(lab *l, const struct shape *s)
{
    *l = (lab){ .shape = s, .rows = s->rows };
    node_open(l, &l->node, 0, s->args);
    node_open(l, &l->wide, 1, s->args);
    l->n_x = s->rows * keel_row_count(&l->in[0]);
    l->n_y = s->rows * keel_row_count(&l->node.out[0]);
    l->n_w = keel_row_count(&l->weight[0][0]);
    l->n_b = l->node.n_weight > 1 ? keel_row_count(&l->weight[0][1]) : 0;
    l->x = last_values(l->n_x);
    l->dy = last_values(l->n_y);
    l->w = floats(l->n_w);
    l->b = floats(l->n_b);
    l->x8 = widened(l->x, l->n_x);
    l->dy8 = widened(l->dy, l->n_y);
    l->w8 = keel_calloc((size_t)l->n_w, sizeof *l->w8);
    l->b8 = keel_calloc((size_t)l->n_b + 1, sizeof *l->b8);
    for (int64_t i = 0; i < l->n_w; i++)
        l->w8[i] = (double)keel_bf16_wide(keel_bf16_round(l->w[i]));
    for (int64_t i = 0; i < l->n_b; i++) l->b8[i] = (double)l->b[i];
}

static void lab_close(lab *l)
{
    last_values_free(l->x, l->n_x);
    last_values_free(l->dy, l->n_y);
    guarded_free(l->w, sizeof *l->w);
    guarded_free(l->b, sizeof *l->b);
    double *const wide[] = { l->x8, l->dy8, l->w8, l->b8 };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) keel_free(wide[i]);
    keel_node_clear(&l->node);
    keel_node_clear(&l->wide);
}

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    lab *l = context;
    assert_true(l->n_copy < 4);
    want->data = guarded((int64_t)want->bytes / 64, 64);
    want->refresh(want, l->w);
    check_guards(want->data, (int64_t)want->bytes / 64, 64);
    l->copies[l->n_copy] = *want;
    *got = &l->copies[l->n_copy++];
    return KEEL_OK;
}

static void drop_copies(lab *l)
{
    while (l->n_copy > 0) {
        keel_derived *const d = &l->copies[--l->n_copy];
        d->release(d->plan);
        guarded_free(d->data, 64);
    }
}

static int64_t result_count(const lab *l, keel_pass pass)
{
    return pass == KEEL_FORWARD ? l->n_y : pass == KEEL_BACKWARD ? l->n_x : l->n_w;
}

static keel_prepare asked(lab *l, keel_pass pass, int64_t rows, bool adds)
{
    return (keel_prepare){ .node = &l->node,
                           .pass = pass,
                           .rows = rows,
                           .in_adds = adds,
                           .weight_adds = adds,
                           .measured = true,
                           .derive = derive,
                           .context = l };
}

/* The pass of rows [first, first + rows) in one call. `out` has the values of all rows, or dW; db
 * may be NULL. */
static void run_rows(lab *l, keel_pass pass, int64_t first, int64_t rows, bool adds, void *out,
                     float *db)
{
    keel_prepare p = asked(l, pass, rows, adds);
    must(kernel()->prepare(&p));
    void *scratch = guarded(p.scratch / 64 + 1, 64);
    keel_bf16 *const y = (keel_bf16 *)out + first * (l->n_y / l->rows);
    keel_bf16 *const dx = (keel_bf16 *)out + first * (l->n_x / l->rows);
    kernel()->narrow[pass](
        &(keel_call){ .node = &l->node,
                      .rows = rows,
                      .in = (const void *[]){ l->x + first * (l->n_x / l->rows) },
                      .out = (void *[]){ y },
                      .weight = (const void *[]){ l->w, l->b },
                      .out_grad = (const void *[]){ l->dy + first * (l->n_y / l->rows) },
                      .in_grad = (void *[]){ dx },
                      .in_adds = &adds,
                      .weight_grad = (void *[]){ out, db },
                      .weight_adds = adds,
                      .scratch = scratch,
                      .plan = p.plan });
    check_guards(scratch, p.scratch / 64 + 1, 64);
    guarded_free(scratch, 64);
    kernel()->release(p.plan);
    drop_copies(l);
}

/* Of values: all rows, `part` in a call. */
static void run_cut(lab *l, keel_pass pass, int64_t part, bool adds, keel_bf16 *out)
{
    for (int64_t at = 0; at < l->rows; at += part)
        run_rows(l, pass, at, l->rows - at < part ? l->rows - at : part, adds, out, NULL);
}

/* The same by the reference in float64; or of magnitudes, which bounds what is lost in sums. */
static void truth(const lab *l, keel_pass pass, bool magnitudes, double *out, double *db)
{
    const double *from[] = { l->x8, l->dy8, l->w8, l->b8 };
    const int64_t n[] = { l->n_x, l->n_y, l->n_w, l->n_b };
    double *all[4];
    for (int i = 0; i < 4; i++) {
        all[i] = keel_calloc((size_t)n[i] + 1, sizeof **all);
        for (int64_t e = 0; e < n[i]; e++) all[i][e] = magnitudes ? fabs(from[i][e]) : from[i][e];
    }
    const keel_op *op = &keel_op_conv2d;
    const keel_run run = pass == KEEL_FORWARD    ? op->forward[1]
                         : pass == KEEL_BACKWARD ? op->backward[1]
                                                 : op->weights[1];
    run(&(keel_call){ .node = &l->wide,
                      .rows = l->rows,
                      .in = (const void *[]){ all[0] },
                      .out = (void *[]){ out },
                      .weight = (const void *[]){ all[2], all[3] },
                      .out_grad = (const void *[]){ all[1] },
                      .in_grad = (void *[]){ out },
                      .in_adds = (const bool[]){ false },
                      .weight_grad = (void *[]){ out, db } });
    for (int i = 0; i < 4; i++) keel_free(all[i]);
}

static const char *const pass_name[] = { "forward", "backward", "weights" };

static void say(const lab *l, keel_pass pass, const char *what, int64_t e, double is, double right)
{
    fail_msg("%s of %s by %s, %s, %s: [%lld] is %.9g, not %.9g", pass_name[pass], l->shape->in,
             l->shape->weights, l->shape->args ? l->shape->args : "", what, (long long)e, is,
             right);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Half a unit in the last place of bfloat16 numbers of this size. */
static double half_place(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 9);
}

/* By that, and by what float32 loses of the sum. */
static void values_are_off_by_their_rounding_alone(void **unused)
{
    (void)unused;
    for (int i = 0; i < SHAPES; i++)
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++)
            for (int adds = 0; adds <= (pass == KEEL_BACKWARD); adds++) {
                lab l;
                lab_open(&l, &shapes[i]);
                const int64_t n = result_count(&l, pass);
                keel_bf16 *out = values(n), *was = values(n);
                double *right = keel_calloc((size_t)n, sizeof *right);
                double *size = keel_calloc((size_t)n, sizeof *size);
                memcpy(was, out, (size_t)n * sizeof *out);
                if (!adds) memset(out, 0xff, (size_t)n * sizeof *out);
                truth(&l, pass, false, right, NULL);
                truth(&l, pass, true, size, NULL);
                run_rows(&l, pass, 0, l.rows, adds, out, NULL);
                for (int64_t e = 0; e < n; e++) {
                    const double add = adds ? (double)keel_bf16_wide(was[e]) : 0;
                    const double most = half_place(right[e] + add) + 4e-7 * (size[e] + fabs(add));
                    const double is = (double)keel_bf16_wide(out[e]);
                    if (!(fabs(is - right[e] - add) <= most))
                        say(&l, pass, adds ? "added" : "alone", e, is, right[e] + add);
                }
                check_guards(out, n, sizeof *out);
                guarded_free(out, sizeof *out);
                guarded_free(was, sizeof *was);
                keel_free(right);
                keel_free(size);
                lab_close(&l);
            }
}

static void weight_gradients_err_no_more_than_float32(void **unused)
{
    (void)unused;
    for (int i = 0; i < SHAPES; i++)
        for (int adds = 0; adds < 2; adds++) {
            lab l;
            lab_open(&l, &shapes[i]);
            const int64_t all = l.n_w + l.n_b;
            float *dw = floats(l.n_w), *db = floats(l.n_b);
            double *right = keel_calloc((size_t)all, sizeof *right);
            double *size = keel_calloc((size_t)all, sizeof *size);
            double *was = keel_calloc((size_t)all, sizeof *was);
            for (int64_t e = 0; e < all && adds; e++)
                was[e] = (double)(e < l.n_w ? dw[e] : db[e - l.n_w]);
            truth(&l, KEEL_WEIGHTS, false, right, right + l.n_w);
            truth(&l, KEEL_WEIGHTS, true, size, size + l.n_w);
            run_rows(&l, KEEL_WEIGHTS, 0, l.rows, adds, dw, db);
            for (int64_t e = 0; e < all; e++) {
                const double is = (double)(e < l.n_w ? dw[e] : db[e - l.n_w]);
                if (!(fabs(is - right[e] - was[e]) <= 4e-7 * (size[e] + fabs(was[e]))))
                    say(&l, KEEL_WEIGHTS, adds ? "added" : "alone", e, is, right[e] + was[e]);
            }
            check_guards(dw, l.n_w, sizeof *dw);
            check_guards(db, l.n_b, sizeof *db);
            guarded_free(dw, sizeof *dw);
            guarded_free(db, sizeof *db);
            keel_free(right);
            keel_free(size);
            keel_free(was);
            lab_close(&l);
        }
}

/* One place makes 2^24, to which an accumulator could not add the ones of later steps. */
static void a_long_sum_keeps_what_is_small(void **unused)
{
    (void)unused;
    static const struct shape one = { "50,40,1", "1,1,1,1", NULL, 1 };
    float dw;
    lab l;
    lab_open(&l, &one);
    for (int64_t i = 0; i < l.n_x; i++) {
        l.x[i] = keel_bf16_round(1);
        l.dy[i] = keel_bf16_round(i == 0 ? 0x1p24f : 1 / 32.0f);
    }
    run_rows(&l, KEEL_WEIGHTS, 0, 1, false, &dw, NULL);
    const double right = 0x1p24 + (double)(l.n_x - 1) / 32;
    if (!(fabs((double)dw - right) <= 20)) /* those of 512 places may be lost */
        fail_msg("%.9g, not %.9g", (double)dw, right);
    lab_close(&l);
}

static void rows_have_the_same_bits_however_they_are_cut(void **unused)
{
    (void)unused;
    static const int64_t parts[] = { 1, 2, 67 };
    for (int i = 0; i < SHAPES; i++)
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++)
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
                lab l;
                if (parts[k] >= shapes[i].rows) continue;
                lab_open(&l, &shapes[i]);
                const int64_t n = result_count(&l, pass);
                keel_bf16 *whole = values(n), *cut = values(n);
                run_rows(&l, pass, 0, l.rows, false, whole, NULL);
                run_cut(&l, pass, parts[k], false, cut);
                if (memcmp(whole, cut, (size_t)n * sizeof *cut))
                    fail_msg("%s of %s by %s: other bits by %d rows", pass_name[pass], shapes[i].in,
                             shapes[i].weights, (int)parts[k]);
                guarded_free(whole, sizeof *whole);
                guarded_free(cut, sizeof *cut);
                lab_close(&l);
            }
}

/* One worker adds the second half to the first; two have one each, which the owner adds. */
static void halves_of_a_gradient_add_up_to_the_same_bits(void **unused)
{
    (void)unused;
    for (int i = 0; i < SHAPES; i++) {
        lab l;
        if (shapes[i].rows < 2) continue;
        lab_open(&l, &shapes[i]);
        const int64_t half = l.rows / 2;
        float *one = floats(l.n_w), *first = floats(l.n_w), *second = floats(l.n_w);
        float *one_b = floats(l.n_b), *first_b = floats(l.n_b), *second_b = floats(l.n_b);
        run_rows(&l, KEEL_WEIGHTS, 0, half, false, one, one_b);
        run_rows(&l, KEEL_WEIGHTS, half, l.rows - half, true, one, one_b);
        run_rows(&l, KEEL_WEIGHTS, 0, half, false, first, first_b);
        run_rows(&l, KEEL_WEIGHTS, half, l.rows - half, false, second, second_b);
        for (int64_t e = 0; e < l.n_w; e++) assert_true(one[e] == first[e] + second[e]);
        for (int64_t e = 0; e < l.n_b; e++) assert_true(one_b[e] == first_b[e] + second_b[e]);
        float *const all[] = { one, first, second, one_b, first_b, second_b };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) guarded_free(all[k], sizeof **all);
        lab_close(&l);
    }
}

static void a_row_of_nan_spoils_no_other(void **unused)
{
    (void)unused;
    for (int i = 0; i < SHAPES; i++)
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
            lab l;
            if (shapes[i].rows < 3) continue;
            lab_open(&l, &shapes[i]);
            const int64_t n = result_count(&l, pass), row = n / l.rows;
            keel_bf16 *out = values(n), *spoilt = values(n);
            run_rows(&l, pass, 0, l.rows, false, out, NULL);
            memset(l.x + l.n_x / l.rows, 0xff, (size_t)(l.n_x / l.rows) * sizeof *l.x);
            memset(l.dy + l.n_y / l.rows, 0xff, (size_t)(l.n_y / l.rows) * sizeof *l.dy);
            run_rows(&l, pass, 0, l.rows, false, spoilt, NULL);
            for (int64_t e = 0; e < n; e++)
                if (e / row != 1 && spoilt[e] != out[e])
                    fail_msg("%s of %s by %s: [%d]", pass_name[pass], shapes[i].in,
                             shapes[i].weights, (int)e);
            guarded_free(out, sizeof *out);
            guarded_free(spoilt, sizeof *spoilt);
            lab_close(&l);
        }
}

/* Strides may leave out lines and columns, whose numbers then matter to nothing. */
static void pixels_that_no_window_reads_may_be_nan(void **unused)
{
    (void)unused;
    int64_t found = 0;
    for (int i = 0; i < SHAPES; i++) {
        lab l;
        lab_open(&l, &shapes[i]);
        double *size = keel_calloc((size_t)l.n_x, sizeof *size);
        keel_bf16 *y = values(l.n_y);
        float *dw = floats(l.n_w);
        truth(&l, KEEL_BACKWARD, true, size, NULL);
        for (int64_t e = 0; e < l.n_x; e++)
            if (size[e] == 0) {
                l.x[e] = 0xffff;
                found++;
            }
        run_rows(&l, KEEL_FORWARD, 0, l.rows, false, y, NULL);
        run_rows(&l, KEEL_WEIGHTS, 0, l.rows, false, dw, NULL);
        for (int64_t e = 0; e < l.n_y; e++) assert_false(isnan(keel_bf16_wide(y[e])));
        for (int64_t e = 0; e < l.n_w; e++) assert_false(isnan(dw[e]));
        guarded_free(y, sizeof *y);
        guarded_free(dw, sizeof *dw);
        keel_free(size);
        lab_close(&l);
    }
    assert_true(found > 0);
}

static void what_it_cannot_do_is_left_to_others(void **unused)
{
    (void)unused;
    enum { BF16 = KEEL_BFLOAT16, F16 = KEEL_FLOAT16, F32 = KEEL_FLOAT32 };
    static const struct {
        const char *what;
        struct shape shape;
        int held, in;
        bool measured, runs;
    } all[] = {
        { "as it is", { "4,4,16", "3,3,16,16", NULL, 1 }, BF16, BF16, false, true },
        { "groups", { "4,4,32", "3,3,16,32", "groups 2", 1 }, BF16, BF16, true, false },
        { "float16", { "4,4,16", "3,3,16,16", NULL, 1 }, F16, F16, true, false },
        { "float32", { "4,4,16", "3,3,16,16", NULL, 1 }, F32, F32, true, false },
        { "a float32 image", { "4,4,16", "3,3,16,16", NULL, 1 }, BF16, F32, true, false },
        { "few channels", { "4,4,15", "3,3,15,16", NULL, 1 }, BF16, BF16, false, false },
        { "few outputs", { "4,4,16", "3,3,16,15", NULL, 1 }, BF16, BF16, false, false },
        { "few, measured", { "4,4,3", "3,3,3,1", NULL, 1 }, BF16, BF16, true, true },
        { "65 taps", { "13,5,16", "13,5,16,16", NULL, 1 }, BF16, BF16, true, false },
        { "20 phases", { "20,4,16", "5,4,16,16", "strides 5,4", 1 }, BF16, BF16, true, false },
        { "2^24 pixels", { "1,16777216,1", "1,3,1,1", NULL, 1 }, BF16, BF16, true, true },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++) {
            lab l = { .shape = &all[i].shape };
            node_open(&l, &l.node, 0, all[i].shape.args);
            l.node.held = (keel_dtype)all[i].held;
            l.in[0].dtype = (keel_dtype)all[i].in;
            l.w = floats(keel_row_count(&l.weight[0][0]));
            keel_prepare p = asked(&l, pass, 1, false);
            p.measured = all[i].measured;
            const keel_status s = kernel()->prepare(&p);
            if (s != (all[i].runs ? KEEL_OK : KEEL_EUNSUP))
                fail_msg("%s, %s: %d", all[i].what, pass_name[pass], (int)s);
            if (s >= 0) kernel()->release(p.plan);
            drop_copies(&l);
            guarded_free(l.w, sizeof *l.w);
            keel_node_clear(&l.node);
        }
}

static uint64_t key_of_copy(keel_pass pass, const char *args)
{
    const struct shape shape = { "9,9,16", "2,2,16,16", args, 1 };
    lab l = { .shape = &shape };
    node_open(&l, &l.node, 0, args);
    l.w = floats(keel_row_count(&l.weight[0][0]));
    keel_prepare p = asked(&l, pass, 1, false);
    must(kernel()->prepare(&p));
    assert_int_equal(l.n_copy, 1);
    const uint64_t key = l.copies[0].key;
    kernel()->release(p.plan);
    drop_copies(&l);
    guarded_free(l.w, sizeof *l.w);
    keel_node_clear(&l.node);
    return key;
}

/* Of a weight that two layers share. */
static void copies_of_weights_are_shared_if_their_taps_have_one_order(void **unused)
{
    (void)unused;
    static const char *const args[] = { NULL, "pad 1,1,1,1", "strides 2,2",
                                        "strides 2,2 pad 1,1,1,1", "strides 2,2 pad 2,2,2,2" };
    enum { ARGS = sizeof args / sizeof *args };
    uint64_t forward[ARGS], backward[ARGS];
    for (int i = 0; i < ARGS; i++) {
        forward[i] = key_of_copy(KEEL_FORWARD, args[i]);
        backward[i] = key_of_copy(KEEL_BACKWARD, args[i]);
        assert_true(forward[i] == forward[0]);
        assert_true(backward[i] != forward[0]);
    }
    assert_true(backward[0] == backward[1]);
    assert_true(backward[2] != backward[0]); /* four classes */
    assert_true(backward[3] != backward[2]); /* as many taps each, but others */
    assert_true(backward[4] == backward[2]);
}

static keel_status no_copy(void *context, keel_derived *want, const keel_derived **got)
{
    (void)context, (void)got;
    want->release(want->plan);
    return KEEL_ENOMEM;
}

static void without_memory_prepare_fails_and_leaves_nothing(void **unused)
{
    (void)unused;
    for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_WEIGHTS; pass++) {
        lab l;
        lab_open(&l, &shapes[0]);
        const int64_t live = keel_memory_live();
        for (int64_t fail = 0; fail < 3; fail++) { /* the plan, that of the copy, the copy */
            keel_prepare p = asked(&l, pass, 1, false);
            if (pass == KEEL_WEIGHTS && fail > 0) continue;
            if (fail == 2) p.derive = no_copy;
            keel_memory_fail_at(fail < 2 ? fail : -1);
            assert_int_equal(kernel()->prepare(&p), KEEL_ENOMEM);
            keel_memory_fail_at(-1);
            assert_int_equal(keel_memory_live(), live);
        }
        lab_close(&l);
    }
}

/* ---- the table, and a whole fit -------------------------------------------------------------- */

static void the_table_has_a_column_for_bfloat16(void **unused)
{
    (void)unused;
    static const struct {
        struct shape shape;
        int column;
        const char *want;
    } look[] = { { { "8,8,3", "3,3,3,20", "pad 1,1,1,1", 1 }, KEEL_TUNED_BFLOAT16, "amx" },
                 { { "8,8,3", "3,3,3,20", "pad 1,1,1,1", 1 }, KEEL_FLOAT32_FMA, "dnnl" },
                 { { "8,8,3", "3,3,3,20", "pad 1,1,1,1", 1 }, KEEL_FLOAT32_EXACT, "dnnl" },
                 { { "8,8,3", "5,5,3,20", "pad 2,2,2,2", 1 }, KEEL_TUNED_BFLOAT16, NULL },
                 { { "8,8,3", "5,5,3,20", "pad 2,2,2,2", 1 }, KEEL_FLOAT32_FAST, "dnnl" },
                 { { "8,8,3", "3,3,3,41", "pad 1,1,1,1", 1 }, KEEL_TUNED_BFLOAT16, NULL } };
    for (size_t i = 0; i < sizeof look / sizeof *look; i++) {
        lab l = { .shape = &look[i].shape };
        node_open(&l, &l.node, 0, look[i].shape.args);
        const char *const name = keel_tuned_kernel(&l.node, KEEL_FORWARD, look[i].column);
        if (look[i].want)
            assert_string_equal(name, look[i].want);
        else
            assert_null(name);
        keel_node_clear(&l.node);
    }
}

/* oneDNN's on the same tiles, until a table says otherwise; pairs of vectors after both. */
static void others_on_tiles_are_asked_first(void **unused)
{
    (void)unused;
    for (int i = 0; keel_kernels[i]; i++) {
        const keel_kernel *const k = keel_kernels[i];
        if (k->op != &keel_op_conv2d) continue;
        if (!strcmp(k->name, "amx_dnnl")) assert_true(k->priority > kernel()->priority);
        if (!strcmp(k->name, "avx512_bf16") || !strcmp(k->name, "winograd_avx512_bf16"))
            assert_true(k->priority < kernel()->priority);
    }
}

enum { ROWS = 50, EDGE = 8, CLASSES = 10 };

static keel_model *fitted(const char *devices)
{
    static float x[ROWS * EDGE * EDGE * 3];
    static int32_t y[ROWS];
    keel_model *m;
    keel_dataset *d;
    keel_strategy *s;
    keel_history h;
    state = 5;
    for (int i = 0; i < ROWS * EDGE * EDGE * 3; i++) x[i] = drawn();
    for (int i = 0; i < ROWS; i++) y[i] = (i * 7) % CLASSES;
    const keel_tensor tx = { KEEL_FLOAT32, { 4, { ROWS, EDGE, EDGE, 3 } }, x };
    const keel_tensor ty = { KEEL_INT32, { 1, { ROWS } }, y };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", EDGE, EDGE, 3))));
    for (int stride = 1; stride <= 2; stride++)
        must(keel_model_add(
            m, "Conv2D",
            KEEL_ARGS(KEEL_ARG_INT("filters", 20 * stride), KEEL_ARG_INT("kernel_size", 3),
                      KEEL_ARG_INT("strides", stride), KEEL_ARG_STR("padding", "same"),
                      KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", CLASSES))));
    must(keel_model_add(m, "Softmax", NULL));
    must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.1)) },
                            .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 16, .epochs = 3, .seed = 3,
                                       .profile = true },
                  &h));
    int seen = 0;
    for (int i = 0; i < h.profile->count; i++) {
        const keel_profile_row *r = &h.profile->row[i];
        if (strcmp(r->op, "conv2d")) continue;
        assert_string_equal(r->forward_kernel, "amx");
        if (seen++ > 0) assert_string_equal(r->backward_kernel, "amx");
        assert_string_equal(r->weights_kernel, "amx");
    }
    assert_int_equal(seen, 2);
    assert_string_equal(h.name[0], "loss");
    assert_true(h.value[2 * h.count] < h.value[0]);
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return m;
}

/* More workers than two have other shards, whose sums are rounded otherwise. */
static void a_fit_learns_and_is_the_same_on_two_lanes(void **unused)
{
    (void)unused;
    keel_model *one = fitted("cpu:0"), *two = fitted("cpu:0-1");
    for (int i = 0; i < keel_model_weight_count(one); i++) {
        const char *const name = keel_model_weight_name(one, i);
        keel_tensor p, q;
        must(keel_model_get_weight(one, name, &p));
        must(keel_model_get_weight(two, name, &q));
        assert_memory_equal(p.data, q.data, (size_t)keel_shape_count(&p.shape) * sizeof(float));
        keel_tensor_free(&p);
        keel_tensor_free(&q);
    }
    keel_model_destroy(one);
    keel_model_destroy(two);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_off_by_their_rounding_alone),
        cmocka_unit_test(weight_gradients_err_no_more_than_float32),
        cmocka_unit_test(a_long_sum_keeps_what_is_small),
        cmocka_unit_test(rows_have_the_same_bits_however_they_are_cut),
        cmocka_unit_test(halves_of_a_gradient_add_up_to_the_same_bits),
        cmocka_unit_test(a_row_of_nan_spoils_no_other),
        cmocka_unit_test(pixels_that_no_window_reads_may_be_nan),
        cmocka_unit_test(what_it_cannot_do_is_left_to_others),
        cmocka_unit_test(copies_of_weights_are_shared_if_their_taps_have_one_order),
        cmocka_unit_test(without_memory_prepare_fails_and_leaves_nothing),
        cmocka_unit_test(the_table_has_a_column_for_bfloat16),
        cmocka_unit_test(others_on_tiles_are_asked_first),
        cmocka_unit_test(a_fit_learns_and_is_the_same_on_two_lanes),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
