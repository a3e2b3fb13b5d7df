/* Tests of dense on bfloat16 values by tiles. test_dense_emulated.c runs the kernel on tiles in
 * plain C, on any machine; test_dense_tiles.c runs it on the processor's AMX tiles.
 *
 * What tiles compute is known to the bit, so the kernel is held to a model that computes each
 * element by itself, from Intel's description of the instruction, and knows no tile and no packing.
 * All operands lie between numbers that are NaN, and so does what is written; values that are read
 * in place end where memory ends. */
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
#include "graph/choose.h"
#include "guarded.h"
#include "keel/keel.h"
#include "must.h"
#include "sweep.h"
#include "ops/all.h"
#include "tensor/bfloat16.h"

/* Whole blocks and parts of them; more rows than pass at a time; several chunks of a gradient. */
static const struct size {
    int64_t rows, c, k;
} sizes[] = { { 1, 1, 1 },     { 7, 5, 3 },    { 16, 32, 32 },  { 17, 33, 47 },  { 32, 64, 10 },
              { 33, 100, 16 }, { 3, 784, 50 }, { 64, 48, 130 }, { 270, 40, 70 }, { 530, 20, 24 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* ---- the model ------------------------------------------------------------------------------- */

/* Subnormal operands and results are zeros. A double holds the product of two bfloat16 numbers, and
 * its sum with a float32 so finely that rounding it gives one multiply-add. */
static float flushed(double x)
{
    return fabs(x) < 0x1.ffffffp-127 ? (float)copysign(0, x) : (float)x;
}

static float number(const keel_bf16 *x, int64_t i, int64_t n)
{
    return i < n ? flushed((double)keel_bf16_wide(*x)) : 0;
}

/* The sum of n products, a step apart in either operand. */
static float model(const keel_bf16 *a, int64_t a_step, const keel_bf16 *b, int64_t b_step,
                   int64_t n)
{
    float sum = 0;
    for (int64_t s = 0; s < n; s += 32) {
        float half[2] = { 0, 0 };
        for (int64_t i = s; i < s + 32; i++) {
            const double x = number(a + (i < n ? i : 0) * a_step, i, n);
            half[i % 2] =
                flushed(half[i % 2] + x * (double)number(b + (i < n ? i : 0) * b_step, i, n));
        }
        sum = flushed((double)sum + (double)flushed((double)half[0] + (double)half[1]));
    }
    return sum;
}

/* ---- the laboratory -------------------------------------------------------------------------- */

typedef struct lab {
    struct size size;
    keel_node node;
    keel_spec in, weight[2];
    keel_bf16 *x, *dy, *w16; /* w16: W rounded */
    float *w, *b;
    keel_derived copies[4];
    int n_copy;
} lab;

static const keel_kernel *kernel(void)
{
    for (int i = 0; keel_kernels[i]; i++)
        if (keel_kernels[i]->op == &keel_op_dense && !strcmp(keel_kernels[i]->name, "amx"))
            return keel_kernels[i];
    fail_msg("there is no such kernel");
    return NULL;
}

static void lab_open(lab *l, const struct size *size)
{
    const int64_t c = size->c, k = size->k;
    *l = (lab){ .size = *size,
                .in = { KEEL_BFLOAT16, { 1, { c } } },
                .weight = { { KEEL_FLOAT32, { 2, { c, k } } }, { KEEL_FLOAT32, { 1, { k } } } } };
    l->node = (keel_node){ .op = &keel_op_dense,
                           .layer = "a layer",
                           .training = true,
                           .backward = true,
                           .real = KEEL_FLOAT32,
                           .held = KEEL_BFLOAT16,
                           .n_in = 1,
                           .in = &l->in,
                           .n_weight = 2,
                           .weight = l->weight };
    must(keel_node_infer(&l->node));
    l->x = last_values(size->rows * c);
    l->dy = last_values(size->rows * k);
    l->w = floats(c * k);
    l->b = floats(k);
    l->w16 = guarded(c * k, sizeof *l->w16);
    for (int64_t i = 0; i < c * k; i++) l->w16[i] = keel_bf16_round(l->w[i]);
}

static void lab_close(lab *l)
{
    for (int i = 0; i < l->n_copy; i++) {
        l->copies[i].release(l->copies[i].plan);
        keel_free(l->copies[i].data);
    }
    last_values_free(l->x, l->size.rows * l->size.c);
    last_values_free(l->dy, l->size.rows * l->size.k);
    guarded_free(l->w16, sizeof *l->w16);
    guarded_free(l->w, sizeof *l->w);
    guarded_free(l->b, sizeof *l->b);
    keel_node_clear(&l->node);
}

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    lab *l = context;
    assert_true(l->n_copy < 4);
    want->data = keel_aligned_calloc(want->bytes, 1);
    assert_non_null(want->data);
    want->refresh(want, l->w);
    l->copies[l->n_copy] = *want;
    *got = &l->copies[l->n_copy++];
    return KEEL_OK;
}

/* out = or += the pass of rows, `part` in a call. */
static void run(lab *l, keel_pass pass, int64_t part, bool adds, keel_bf16 *out)
{
    const struct size *s = &l->size;
    keel_prepare p = {
        .node = &l->node, .pass = pass, .rows = part, .derive = derive, .context = l
    };
    assert_int_equal(kernel()->prepare(&p), KEEL_OK);
    void *scratch = guarded((p.scratch + 1) / 2, 2);
    for (int64_t at = 0; at < s->rows; at += part) {
        void *dx = out + at * s->c;
        const keel_call call = { .node = &l->node,
                                 .rows = s->rows - at < part ? s->rows - at : part,
                                 .in = (const void *[]){ l->x + at * s->c },
                                 .out = (void *[]){ out + at * s->k },
                                 .weight = (const void *[]){ l->w, l->b },
                                 .out_grad = (const void *[]){ l->dy + at * s->k },
                                 .in_grad = &dx,
                                 .in_adds = &adds,
                                 .scratch = scratch,
                                 .plan = p.plan };
        kernel()->narrow[pass](&call);
    }
    check_guards(scratch, (p.scratch + 1) / 2, 2);
    guarded_free(scratch, 2);
}

/* One element before it is rounded, and its exact value. */
static float element(const lab *l, keel_pass pass, int64_t row, int64_t j)
{
    const struct size *s = &l->size;
    return pass == KEEL_FORWARD ? model(l->x + row * s->c, 1, l->w16 + j, s->k, s->c) + l->b[j]
                                : model(l->dy + row * s->k, 1, l->w16 + j * s->k, 1, s->k);
}

static double exact(const lab *l, keel_pass pass, int64_t row, int64_t j)
{
    const struct size *s = &l->size;
    double sum = 0;
    if (pass == KEEL_BACKWARD) {
        for (int64_t i = 0; i < s->k; i++)
            sum += (double)keel_bf16_wide(l->dy[row * s->k + i]) * (double)l->w[j * s->k + i];
        return sum;
    }
    for (int64_t i = 0; i < s->c; i++)
        sum += (double)keel_bf16_wide(l->x[row * s->c + i]) * (double)l->w[i * s->k + j];
    return sum + (double)l->b[j];
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void values_are_those_of_the_model_to_the_bit(void **unused)
{
    (void)unused;
    for (int i = 0; i < SIZES; i += thin(1, 1, 7))
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++)
            for (int adds = 0; adds <= (pass == KEEL_BACKWARD); adds++) {
                lab l;
                lab_open(&l, &sizes[i]);
                const int64_t width = pass == KEEL_FORWARD ? sizes[i].k : sizes[i].c;
                const int64_t n = sizes[i].rows * width;
                keel_bf16 *out = values(n), *was = values(n);
                memcpy(was, out, (size_t)n * sizeof *out);
                run(&l, pass, sizes[i].rows, adds, out);
                for (int64_t e = 0; e < n; e++) {
                    float want = element(&l, pass, e / width, e % width);
                    if (adds) want += keel_bf16_wide(was[e]);
                    if (out[e] != keel_bf16_round(want))
                        fail_msg("pass %d of %d x %d x %d: [%d] is %04x, not %04x", pass,
                                 (int)sizes[i].rows, (int)sizes[i].c, (int)sizes[i].k, (int)e,
                                 out[e], keel_bf16_round(want));
                    const double right = exact(&l, pass, e / width, e % width) +
                                         (adds ? (double)keel_bf16_wide(was[e]) : 0);
                    const double most = 0x1p-8 * (fabs(right) + sqrt((double)sizes[i].c + 1));
                    assert_true(fabs((double)keel_bf16_wide(out[e]) - right) <= most);
                }
                check_guards(out, n, sizeof *out);
                guarded_free(out, sizeof *out);
                guarded_free(was, sizeof *was);
                lab_close(&l);
            }
}

static void rows_have_the_same_bits_however_they_are_cut(void **unused)
{
    (void)unused;
    static const int64_t parts[] = { 1, 5, 16, 17, 48 };
    for (int i = 0; i < SIZES; i += thin(1, 1, 7))
        for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++)
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
                lab l;
                if (parts[k] >= sizes[i].rows) continue;
                lab_open(&l, &sizes[i]);
                const int64_t n = sizes[i].rows * (pass == KEEL_FORWARD ? sizes[i].k : sizes[i].c);
                keel_bf16 *whole = values(n), *cut = values(n);
                run(&l, pass, sizes[i].rows, false, whole);
                run(&l, pass, parts[k], false, cut);
                assert_memory_equal(whole, cut, (size_t)n * sizeof *cut);
                guarded_free(whole, sizeof *whole);
                guarded_free(cut, sizeof *cut);
                lab_close(&l);
            }
}

static void a_row_of_nan_spoils_no_other(void **unused)
{
    (void)unused;
    const struct size size = { 37, 45, 39 };
    for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
        lab l;
        lab_open(&l, &size);
        const int64_t width = pass == KEEL_FORWARD ? size.k : size.c;
        keel_bf16 *out = values(size.rows * width), *spoilt = values(size.rows * width);
        run(&l, pass, size.rows, false, out);
        memset(l.x + 20 * size.c, 0xff, (size_t)size.c * sizeof *l.x);
        memset(l.dy + 20 * size.k, 0xff, (size_t)size.k * sizeof *l.dy);
        run(&l, pass, size.rows, false, spoilt);
        for (int64_t e = 0; e < size.rows * width; e++) {
            const bool is_nan = isnan(keel_bf16_wide(spoilt[e]));
            assert_true(e / width == 20 ? is_nan : spoilt[e] == out[e]);
        }
        guarded_free(out, sizeof *out);
        guarded_free(spoilt, sizeof *spoilt);
        lab_close(&l);
    }
}

/* Rows [0, cut) in one span, the others in another; `tile` rows of the weight in a call. moves: W
 * and m move at once. */
static void gradient(lab *l, int weight, int64_t cut, int64_t tile, void *kept, float *grad,
                     float *w, float *m)
{
    const struct size *s = &l->size;
    const int64_t row = weight ? 1 : s->k, rows = weight ? s->k : s->c;
    const keel_span span[] = { { l->x, l->dy, cut },
                               { l->x + cut * s->c, l->dy + cut * s->k, s->rows - cut } };
    for (int64_t at = 0; at < rows; at += tile) {
        keel_tile_move move = { .w = w + at * row, .m = m + at * row, 0.9f, 0.3f, 0.7f, false };
        const keel_tile_call c = { .node = &l->node,
                                   .n_span = cut < s->rows ? 2 : 1,
                                   .span = span,
                                   .weight = weight,
                                   .first = at * row,
                                   .count = (rows - at < tile ? rows - at : tile) * row,
                                   .grad = grad + at * row,
                                   .scratch = kept,
                                   .scratch_ready = at > 0,
                                   .move = w ? &move : NULL };
        kernel()->narrow_tile(&c);
        assert_true(!w || move.moved);
    }
}

static void gradients_are_those_of_the_model_for_any_cut(void **unused)
{
    (void)unused;
    static const int64_t tiles[] = { 1, 7, 32, 40, 1000 };
    for (int i = 0; i < SIZES; i += thin(1, 1, 7)) {
        const struct size *s = &sizes[i];
        enum { AT_ONCE = 512 }; /* rows; then the sums begin anew */
        lab l;
        lab_open(&l, s);
        keel_prepare p = { .node = &l.node, .pass = KEEL_WEIGHTS, .rows = s->rows };
        assert_int_equal(kernel()->prepare(&p), KEEL_OK);
        const int64_t n = s->c * s->k, n_kept = (p.scratch + 1) / 2;
        float *grad = floats(n), *db = floats(s->k), *want = floats(n);
        void *kept = guarded(n_kept, 2);
        for (int64_t e = 0; e < n; e++) {
            want[e] = 0;
            for (int64_t row = 0; row < s->rows; row += AT_ONCE)
                want[e] += model(l.x + row * s->c + e / s->k, s->c, l.dy + row * s->k + e % s->k,
                                 s->k, s->rows - row < AT_ONCE ? s->rows - row : AT_ONCE);
        }
        for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++)
            for (int64_t cut = s->rows; cut > 0; cut = cut * 2 / 3) {
                memset(grad, 0xff, (size_t)n * sizeof *grad);
                gradient(&l, 0, cut, tiles[t], kept, grad, NULL, NULL);
                for (int64_t e = 0; e < n; e++)
                    if (grad[e] != want[e])
                        fail_msg("%d x %d x %d, cut %d, tile %d: [%d] is %.9g, not %.9g",
                                 (int)s->rows, (int)s->c, (int)s->k, (int)cut, (int)tiles[t],
                                 (int)e, grad[e], want[e]);
                gradient(&l, 1, cut, tiles[t], kept, db, NULL, NULL);
                for (int64_t k = 0; k < s->k; k++) {
                    double sum = 0;
                    for (int64_t r = 0; r < s->rows; r++)
                        sum += (double)keel_bf16_wide(l.dy[r * s->k + k]);
                    assert_true(fabs((double)db[k] - sum) <= 1e-6 * (double)(s->rows + 1));
                }
            }
        check_guards(grad, n, sizeof *grad);
        check_guards(db, s->k, sizeof *db);
        check_guards(kept, n_kept, 2);
        guarded_free(grad, sizeof *grad);
        guarded_free(db, sizeof *db);
        guarded_free(want, sizeof *want);
        guarded_free(kept, 2);
        lab_close(&l);
    }
}

/* Each product and sum rounded by itself, as optimizers/sgd.c does. */
static void moved(float *w, float *m, float g)
{
    const volatile float kept = *m * 0.9f, scaled = g * 0.3f;
    const volatile float step = scaled * 0.7f;
    *m = kept - step;
    *w += *m;
}

static void a_move_has_the_bits_of_the_optimizer(void **unused)
{
    (void)unused;
    for (int i = 0; i < SIZES; i += thin(1, 1, 7)) {
        const struct size *s = &sizes[i];
        lab l;
        if (s->rows > 512) continue;
        lab_open(&l, s);
        keel_prepare p = { .node = &l.node, .pass = KEEL_WEIGHTS, .rows = s->rows };
        assert_int_equal(kernel()->prepare(&p), KEEL_OK);
        const int64_t n = s->c * s->k, n_kept = (p.scratch + 1) / 2;
        float *grad = floats(n), *w = floats(n), *m = floats(n), *w2 = floats(n), *m2 = floats(n);
        void *kept = guarded(n_kept, 2);
        memcpy(w2, w, (size_t)n * sizeof *w);
        memcpy(m2, m, (size_t)n * sizeof *m);
        gradient(&l, 0, s->rows, 33, kept, grad, NULL, NULL);
        for (int64_t e = 0; e < n; e++) moved(&w2[e], &m2[e], grad[e]);
        gradient(&l, 0, s->rows, 33, kept, grad, w, m);
        assert_memory_equal(w, w2, (size_t)n * sizeof *w);
        assert_memory_equal(m, m2, (size_t)n * sizeof *m);
        check_guards(w, n, sizeof *w);
        check_guards(m, n, sizeof *m);
        float *const all[] = { grad, w, m, w2, m2 };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) guarded_free(all[k], sizeof *w);
        guarded_free(kept, 2);
        lab_close(&l);
    }
}

/* ---- a whole fit ----------------------------------------------------------------------------- */

enum { ROWS = 100, FEATURES = 70, CLASSES = 10 };

static keel_model *fitted(const char *devices)
{
    static float x[ROWS * FEATURES];
    static int32_t y[ROWS];
    keel_model *m;
    keel_dataset *d;
    keel_strategy *s;
    keel_history h;
    state = 5;
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = drawn();
    for (int i = 0; i < ROWS; i++) y[i] = (i * 7) % CLASSES;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_INT32, { 1, { ROWS } }, y };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    must(keel_model_add(m, "Dense",
                        KEEL_ARGS(KEEL_ARG_INT("units", 90), KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", CLASSES))));
    must(keel_model_add(m, "Softmax", NULL));
    must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.05),
                                                            KEEL_ARG_FLOAT("momentum", 0.9)) },
                            .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 40, .epochs = 3, .seed = 3,
                                       .profile = true },
                  &h));
    for (int i = 0; i < h.profile->count; i++) { /* chosen before all others */
        const keel_profile_row *r = &h.profile->row[i];
        if (strcmp(r->op, "dense")) continue;
        assert_string_equal(r->forward_kernel, "amx");
        assert_string_equal(r->weights_kernel, "amx");
    }
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return m;
}

static void a_fit_is_the_same_on_any_number_of_lanes(void **unused)
{
    (void)unused;
    static const char *const lanes[] = { "cpu:0-1", "cpu:0-2", "cpu:0-6" };
    keel_model *one = fitted("cpu:0");
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        keel_model *many = fitted(lanes[i]);
        for (int v = 0; v < keel_model_weight_count(one); v++) {
            keel_tensor p, q;
            must(keel_model_get_weight(one, keel_model_weight_name(one, v), &p));
            must(keel_model_get_weight(many, keel_model_weight_name(one, v), &q));
            int64_t n = 1;
            for (int k = 0; k < p.shape.rank; k++) n *= p.shape.dim[k];
            assert_memory_equal(p.data, q.data, (size_t)n * sizeof(float));
            keel_tensor_free(&p);
            keel_tensor_free(&q);
        }
        keel_model_destroy(many);
    }
    keel_model_destroy(one);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_model_to_the_bit),
        cmocka_unit_test(rows_have_the_same_bits_however_they_are_cut),
        cmocka_unit_test(a_row_of_nan_spoils_no_other),
        cmocka_unit_test(gradients_are_those_of_the_model_for_any_cut),
        cmocka_unit_test(a_move_has_the_bits_of_the_optimizer),
        cmocka_unit_test(a_fit_is_the_same_on_any_number_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
