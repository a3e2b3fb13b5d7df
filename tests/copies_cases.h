/* Packed copies of dense weights that owners make again tile by tile. test_copies_emulated.c has
 * the kernels of AMX on tiles in plain C, test_copies.c on those of the processor. */
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
#include "keel/keel.h"
#include "must.h"
#include "ops/all.h"

/* ---- rows of a copy -------------------------------------------------------------------------- */

static const struct size {
    int64_t c, k;
} sizes[] = { { 1, 1 },    { 32, 32 },  { 33, 47 },  { 100, 16 }, { 64, 130 },
              { 784, 50 }, { 40, 512 }, { 130, 70 }, { 97, 1 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct lab {
    keel_node node;
    keel_spec in, weight;
    keel_derived copy;
    float *w;
} lab;

static uint32_t state = 1;
static void change(float *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        w[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static void lab_open(lab *l, const struct size *s)
{
    *l = (lab){ .in = { KEEL_BFLOAT16, { 1, { s->c } } },
                .weight = { KEEL_FLOAT32, { 2, { s->c, s->k } } } };
    l->node = (keel_node){ .op = keel_op_find("dense"),
                           .layer = "a layer",
                           .training = true,
                           .backward = true,
                           .real = KEEL_FLOAT32,
                           .held = KEEL_BFLOAT16,
                           .n_in = 1,
                           .in = &l->in,
                           .n_weight = 1,
                           .weight = &l->weight };
    if (keel_node_infer(&l->node) < 0) fail_msg("%s", keel_error());
    l->w = keel_calloc((size_t)(s->c * s->k), sizeof *l->w);
    change(l->w, s->c * s->k);
}

static void lab_close(lab *l)
{
    keel_node_clear(&l->node);
    keel_free(l->w);
}

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    lab *l = context;
    want->data = keel_aligned_calloc(want->bytes, 1);
    l->copy = *want;
    *got = &l->copy;
    return KEEL_OK;
}

/* Asks a kernel for its copy; false: it has none, or none with rows. */
static bool ask(lab *l, const keel_kernel *k, keel_pass pass)
{
    keel_prepare p = { .node = &l->node, .pass = pass, .rows = 8, .derive = derive, .context = l };
    l->copy = (keel_derived){ 0 };
    if (k->op != l->node.op || !k->narrow[pass] || keel_kernel_prepare(k, &p) < 0) return false;
    if (k->release) k->release(p.plan);
    if (l->copy.refresh_rows) return true;
    if (l->copy.release) l->copy.release(l->copy.plan);
    keel_free(l->copy.data);
    return false;
}

static void expect_whole(lab *l, const char *name, const char *what)
{
    void *mine = l->copy.data;
    keel_derived whole = l->copy;
    whole.data = keel_aligned_calloc(whole.bytes, 1);
    whole.refresh(&whole, l->w);
    if (memcmp(whole.data, mine, whole.bytes))
        fail_msg("%s: %lld x %lld, %s: not the copy of the whole", name,
                 (long long)l->weight.shape.dim[0], (long long)l->weight.shape.dim[1], what);
    keel_free(whole.data);
}

/* Groups of rows in any order, by as many owners as there are groups. */
static void make_by_rows(const lab *l, int64_t every)
{
    const int64_t c = l->weight.shape.dim[0], rows = l->copy.rows * every;
    const int64_t groups = (c + rows - 1) / rows;
    for (int64_t g = groups - 1; g >= 0; g--) {
        const int64_t first = g % 2 ? (groups / 2 * 2 - g) * rows : g * rows;
        l->copy.refresh_rows(&l->copy, l->w, first, c - first < rows ? c - first : rows);
    }
}

static void copies_made_by_rows_are_those_of_the_whole(void **unused)
{
    (void)unused;
    int taken = 0;
    for (int i = 0; keel_kernels[i]; i++)
        for (int s = 0; s < SIZES; s++)
            for (keel_pass pass = KEEL_FORWARD; pass <= KEEL_BACKWARD; pass++) {
                lab l;
                lab_open(&l, &sizes[s]);
                if (ask(&l, keel_kernels[i], pass)) {
                    const int64_t c = sizes[s].c, rows = l.copy.rows;
                    taken++;
                    for (int64_t every = 1; every <= 3; every++) {
                        change(l.w, c * sizes[s].k);
                        make_by_rows(&l, every);
                        expect_whole(&l, keel_kernels[i]->name, "all rows");
                    }
                    for (int64_t first = 0; first < c; first += rows) {
                        const int64_t n = c - first < rows ? c - first : rows;
                        change(l.w + first * sizes[s].k, n * sizes[s].k);
                        l.copy.refresh_rows(&l.copy, l.w, first, n);
                        expect_whole(&l, keel_kernels[i]->name, "some rows");
                    }
                    if (l.copy.release) l.copy.release(l.copy.plan);
                    keel_free(l.copy.data);
                }
                lab_close(&l);
            }
    assert_int_equal(taken, 2 * SIZES); /* by the kernel of AMX */
}

/* ---- a fit ----------------------------------------------------------------------------------- */

enum { ROWS = 90, FEATURES = 64, CLASSES = 10 };

/* waits: with a clip by a norm that no gradient reaches, for which no tile can be moved before all
 * gradients are there, so that copies are made as wholes after the step. */
static keel_model *fitted(const char *optimizer, bool waits, const char *devices)
{
    static float x[ROWS * FEATURES];
    static int32_t y[ROWS];
    keel_model *m;
    keel_dataset *d;
    keel_strategy *s;
    state = 5;
    change(x, ROWS * FEATURES);
    for (int i = 0; i < ROWS; i++) y[i] = i * 7 % CLASSES;
    const keel_tensor tx = { KEEL_FLOAT32, { 2, { ROWS, FEATURES } }, x };
    const keel_tensor ty = { KEEL_INT32, { 1, { ROWS } }, y };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 7));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", FEATURES))));
    for (int i = 0; i < 2; i++)
        must(keel_model_add(
            m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 512), KEEL_ARG_STR("activation", "relu"))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", CLASSES))));
    must(keel_model_add(m, "Softmax", NULL));
    must(keel_model_set_dtype_policy(m, "mixed_bfloat16"));
    must(keel_model_compile(
        m, &(keel_compile){
               KEEL_COMPILE,
               .optimizer = { optimizer, waits ? KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01),
                                                           KEEL_ARG_FLOAT("global_clipnorm", 1e30))
                                               : KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01)) },
               .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 40, .epochs = 2, .seed = 3 },
                  NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    return m;
}

static void a_fit_whose_owners_copy_has_the_bits_of_one_whose_owners_wait(void **unused)
{
    (void)unused;
    static const char *const optimizers[] = { "SGD", "Adam" };
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2" };
    for (int o = 0; o < 2; o++)
        for (int k = 0; k < 3; k++) {
            keel_model *at_once = fitted(optimizers[o], false, devices[k]);
            keel_model *waits = fitted(optimizers[o], true, devices[k]);
            for (int v = 0; v < keel_model_weight_count(waits); v++) {
                keel_tensor p, q;
                const char *name = keel_model_weight_name(waits, v);
                must(keel_model_get_weight(waits, name, &p));
                must(keel_model_get_weight(at_once, name, &q));
                int64_t n = 1;
                for (int i = 0; i < p.shape.rank; i++) n *= p.shape.dim[i];
                if (memcmp(p.data, q.data, (size_t)n * sizeof(float)))
                    fail_msg("%s on %s: %s has other bits", optimizers[o], devices[k], name);
                keel_tensor_free(&p);
                keel_tensor_free(&q);
            }
            keel_model_destroy(at_once);
            keel_model_destroy(waits);
        }
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_made_by_rows_are_those_of_the_whole),
        cmocka_unit_test(a_fit_whose_owners_copy_has_the_bits_of_one_whose_owners_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
