/* Training in micro-batches: that it is the training of whole batches but for rounding, for any
 * number of rows and devices, in less memory; and what cannot be trained so. */
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
#include "keel/keel.h"
#include "must.h"
#include "standin.h"
#include "train/pairing.h"
#include "train/strategy.h"
#include "train/trainer.h"

/* Rows and batch leave a short step, and no micro-batch but 1 divides them. */
enum { ROWS = 37, BATCH = 15, STEPS = 6, WIDTH = 8, CLASSES = 4, EPOCHS = 2 };

/* ---- networks --------------------------------------------------------------------------------
 */

static keel_symbol dense(keel_model *m, keel_symbol x, int64_t units, const char *activation)
{
    return must_call(m, "Dense",
                     KEEL_ARGS(KEEL_ARG_INT("units", units), KEEL_ARG_STR("activation", activation),
                               KEEL_ARG_STR("kernel_regularizer", "l2")),
                     x);
}

static keel_symbol of_one_place(keel_model *m, keel_symbol x)
{
    x = dense(m, must_call(m, "Flatten", NULL, x), 19, "relu");
    return dense(m, must_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.3)), x), 7, "gelu");
}

static keel_symbol of_places(keel_model *m, keel_symbol x)
{
    return must_call(m, "GlobalMaxPooling1D", NULL, dense(m, dense(m, x, 9, "silu"), 6, "tanh"));
}

static keel_symbol convolved(keel_model *m, keel_symbol x)
{
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", STEPS, WIDTH, 1)), x);
    for (int i = 0; i < 2; i++)
        x = must_call(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", 5), KEEL_ARG_INT("kernel_size", 3),
                                KEEL_ARG_STR("padding", "same"),
                                KEEL_ARG_STR("activation", "relu")),
                      x);
    x = must_call(m, "DepthwiseConv2D", KEEL_ARGS(KEEL_ARG_INT("kernel_size", 3)), x);
    return must_call(m, "Flatten", NULL, must_call(m, "MaxPooling2D", NULL, x));
}

static keel_symbol attending(keel_model *m, keel_symbol x)
{
    for (int i = 0; i < 2; i++) {
        keel_symbol pair[2] = { x, x };
        must(keel_model_call(m, "MultiHeadAttention",
                             KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 4)),
                             pair, 2, &pair[1]));
        must(keel_model_call(m, "Add", NULL, pair, 2, &x));
        x = must_call(m, "LayerNormalization", NULL, x);
    }
    return must_call(m, "GlobalAveragePooling1D", NULL, x);
}

static keel_symbol over_time(keel_model *m, keel_symbol x)
{
    x = must_call(m, "Masking", NULL, x);
    x = must_call(m, "LSTM",
                  KEEL_ARGS(KEEL_ARG_INT("units", 7), KEEL_ARG_BOOL("return_sequences", true)), x);
    return must_call(m, "GRU", KEEL_ARGS(KEEL_ARG_INT("units", 6)), x);
}

/* Its weights get gradients of both calls, and of rows in no order of their own. */
static keel_symbol called_twice(keel_model *m, keel_symbol x)
{
    x = dense(m, must_call(m, "Flatten", NULL, x), 11, "tanh");
    x = dense(m, x, 11, "tanh");
    must(keel_model_call_again(m, "dense_1", &x, 1, &x));
    return x;
}

/* Weights of rows of a table, and a kernel that does not move. */
static keel_symbol looked_up(keel_model *m, keel_symbol x)
{
    x = must_call(m, "Discretization", KEEL_ARGS(KEEL_ARG_JSON("bin_boundaries", "[-1, 0, 1]")), x);
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", 4), KEEL_ARG_INT("output_dim", 5)), x);
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_BOOL("trainable", false)), x);
    return must_call(m, "Flatten", NULL, x);
}

typedef struct network {
    const char *name;
    keel_symbol (*body)(keel_model *m, keel_symbol x);
    double most; /* of the activations' memory, one row at a time in a batch of 64 */
} network;

static const network networks[] = {
    { "dense layers of one place", of_one_place, 0.05 },
    { "dense layers of places", of_places, 0.05 },
    { "convolutions", convolved, 0.05 },
    { "attention", attending, 0.05 },
    { "layers over time", over_time, 0.05 },
    { "a layer that is called twice", called_twice, 0.05 },
    { "an embedding before a frozen layer", looked_up, 0.2 },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static keel_model *model_of(const network *n, keel_dtype dtype, const char *policy)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, NULL, dtype, 7));
    must(keel_model_input(m, KEEL_DIMS(STEPS, WIDTH), NULL, &x));
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", CLASSES), KEEL_ARG_STR("activation", "softmax")),
                  n->body(m, x));
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                                .loss = { { "sparse_categorical_crossentropy" } },
                                                .metrics = { { "accuracy" } } }));
    if (policy) must(keel_model_set_dtype_policy(m, policy));
    return m;
}

/* Steps at the end of a row are zeros, which Masking leaves out; rows have weights. */
static keel_dataset *rows_made(void)
{
    static float x[ROWS][STEPS][WIDTH], y[ROWS], w[ROWS];
    uint32_t state = 5;
    keel_dataset *d;
    for (int i = 0; i < ROWS; i++) {
        for (int t = 0; t < STEPS; t++)
            for (int k = 0; k < WIDTH; k++) {
                state = state * 1664525u + 1013904223u;
                x[i][t][k] = t < 1 + i % STEPS ? (float)(state >> 8) / 8388608.0f - 1 : 0;
            }
        y[i] = (float)(i * 7 % CLASSES);
        w[i] = 0.5f + (float)(i % 5);
    }
    const keel_tensor rows = { KEEL_FLOAT32, { 3, { ROWS, STEPS, WIDTH } }, x };
    const keel_tensor labels = { KEEL_FLOAT32, { 1, { ROWS } }, y };
    const keel_tensor weights = { KEEL_FLOAT32, { 1, { ROWS } }, w };
    must(keel_dataset_from_arrays(&d, &rows, &labels, &weights));
    return d;
}

/* ---- the same training -----------------------------------------------------------------------
 */

static keel_model *train(const network *n, keel_dtype dtype, const char *policy, keel_strategy *s,
                         int64_t micro, keel_history *h)
{
    keel_model *m = model_of(n, dtype, policy);
    keel_dataset *d = rows_made();
    must(keel_strategy_micro_batch(s, micro));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                       .validation = d },
                  h));
    keel_dataset_destroy(d);
    return m;
}

static double number(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((const double *)t->data)[i]
                                    : (double)((const float *)t->data)[i];
}

/* How far apart the weights are: the largest difference of two numbers. */
static double apart(const keel_model *a, const keel_model *b)
{
    double most = 0;
    for (int i = 0; i < keel_model_weight_count(a); i++) {
        const char *name = keel_model_weight_name(a, i);
        keel_tensor u, v;
        must(keel_model_get_weight(a, name, &u));
        must(keel_model_get_weight(b, name, &v));
        for (int64_t k = 0; k < keel_shape_count(&u.shape); k++)
            most = fmax(most, fabs(number(&u, k) - number(&v, k)));
        keel_tensor_free(&u);
        keel_tensor_free(&v);
    }
    return most;
}

static void micro_batches_train_as_the_whole_batch_does(void **unused)
{
    static const struct {
        const char *devices;
        int shards;
        keel_dtype dtype;
        const char *policy;
        bool recompute;
        double limit;
    } cases[] = {
        { "cpu:0", 0, KEEL_FLOAT64, NULL, false, 1e-11 },
        { "cpu:0-2", 0, KEEL_FLOAT64, NULL, true, 1e-11 },
        { "cpu:0+1", 0, KEEL_FLOAT64, NULL, false, 1e-11 },
        { "cpu:0-4", 16, KEEL_FLOAT64, NULL, true, 1e-11 },
        { "cpu:0-1", 0, KEEL_FLOAT32, NULL, false, 1e-3 },
        { "cpu:0-1", 0, KEEL_FLOAT32, "mixed_bfloat16", false, 2e-2 },
        { "cpu:0-1", 0, KEEL_FLOAT32, "mixed_float16", false, 2e-2 },
    };
    static const int64_t micro[] = { 1, 2, 4, BATCH, 1000 };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_strategy *s;
        must(keel_strategy_create(&s, cases[i].devices));
        if (cases[i].shards) must(keel_strategy_reproducible(s, cases[i].shards));
        keel_strategy_recompute(s, cases[i].recompute);
        for (int k = 0; k < NETWORKS; k++) {
            keel_history whole = { 0 };
            keel_model *a = train(&networks[k], cases[i].dtype, cases[i].policy, s, 0, &whole);
            for (size_t j = 0; j < sizeof micro / sizeof *micro; j++) {
                keel_history h = { 0 };
                keel_model *b =
                    train(&networks[k], cases[i].dtype, cases[i].policy, s, micro[j], &h);
                const double far = apart(a, b);
                if (!(far <= cases[i].limit))
                    fail_msg("case %d, %s, %s, %d rows at a time: weights are %.3g apart", (int)i,
                             networks[k].name, cases[i].devices, (int)micro[j], far);
                for (int64_t at = 0; at < h.epochs * h.count; at++)
                    if (!(fabs(h.value[at] - whole.value[at]) <= 10 * cases[i].limit))
                        fail_msg("case %d, %s: value %d of the history is %.9g, not %.9g", (int)i,
                                 networks[k].name, (int)at, h.value[at], whole.value[at]);
                keel_history_free(&h);
                keel_model_destroy(b);
            }
            keel_history_free(&whole);
            keel_model_destroy(a);
        }
        keel_strategy_destroy(s);
    }
}

/* Fits the network on each of the devices, of which all give the same bits. */
static void same_bits(const network *n, const char *const *devices, int shards, int64_t micro)
{
    keel_model *first = NULL;
    for (int i = 0; devices[i]; i++) {
        keel_history h = { 0 };
        keel_strategy *s;
        must(keel_strategy_create(&s, devices[i]));
        if (shards) must(keel_strategy_reproducible(s, shards));
        keel_model *m = train(n, KEEL_FLOAT32, NULL, s, micro, &h);
        if (first && apart(first, m) != 0)
            fail_msg("%s, %d rows at a time: other bits on %s", n->name, (int)micro, devices[i]);
        if (!first) first = m;
        if (first != m) keel_model_destroy(m);
        keel_history_free(&h);
        keel_strategy_destroy(s);
    }
    keel_model_destroy(first);
}

/* Where steps are cut into shards, blocks are parts of them, so that they and their order do not
 * depend on the devices. Halves are such shards for one core and two. */
static void bits_depend_on_devices_no_more_than_without(void **unused)
{
    static const char *const any[] = { "cpu:0", "cpu:0-2", "cpu:0+1", "cpu:0-7", NULL };
    static const char *const two[] = { "cpu:0", "cpu:0-1", NULL };
    static const int64_t micro[] = { 0, 1, 2, 3, 7 };
    (void)unused;
    for (int k = 0; k < NETWORKS; k++)
        for (size_t j = 0; j < sizeof micro / sizeof *micro; j++) {
            same_bits(&networks[k], any, 8, micro[j]);
            same_bits(&networks[k], two, 0, micro[j]);
        }
}

/* ---- without being asked for -----------------------------------------------------------------
 */

static keel_symbol images(keel_model *m, keel_symbol x, int64_t height, int64_t filters)
{
    x = must_call(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", STEPS, WIDTH, 1)), x);
    x = must_call(m, "Resizing",
                  KEEL_ARGS(KEEL_ARG_INT("height", height), KEEL_ARG_INT("width", height)), x);
    for (int i = 0; i < 2; i++)
        x = must_call(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", filters), KEEL_ARG_INT("kernel_size", 3)),
                      x);
    return must_call(m, "GlobalMaxPooling2D", NULL, x);
}

static keel_symbol of_digits(keel_model *m, keel_symbol x)
{
    return images(m, x, 28, 32);
}

static keel_symbol of_photos(keel_model *m, keel_symbol x)
{
    return images(m, x, 224, 64);
}

static keel_symbol with_statistics(keel_model *m, keel_symbol x)
{
    return must_call(m, "BatchNormalization", NULL, of_digits(m, x));
}

static keel_symbol of_many_weights(keel_model *m, keel_symbol x)
{
    for (int i = 0; i < 4; i++) x = dense(m, x, 1024, "relu");
    return must_call(m, "GlobalMaxPooling1D", NULL, x);
}

static void blocks_go_through_at_once_where_the_cache_has_room(void **unused)
{
    static const struct {
        network n;
        bool at_once;
    } cases[] = {
        { { "dense layers of one place, made tile by tile", of_one_place }, true },
        { { "convolutions of small images", of_digits }, true },
        { { "attention", attending }, true },
        { { "images whose values are larger than caches", of_photos }, false },
        { { "more weights than values", of_many_weights }, false },
        { { "statistics of all rows", with_statistics }, false },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m = model_of(&cases[i].n, KEEL_FLOAT32, NULL);
        keel_strategy *s;
        keel_trainer *t;
        keel_pairing pairing;
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_pairing_guess(&pairing, m, NULL));
        must(keel_trainer_create(&t, m, s, &(keel_trainer_work){ &pairing, 64 },
                                 &(keel_trainer_work){ 0 },
                                 &(keel_trainer_options){ .dry = true }));
        if (t->train.program->schedule.at_once != cases[i].at_once)
            fail_msg("%s: %sat once", cases[i].n.name, cases[i].at_once ? "not " : "");
        keel_trainer_destroy(t);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

/* ---- memory ----------------------------------------------------------------------------------
 */

static void values_take_the_memory_of_one_micro_batch(void **unused)
{
    (void)unused;
    for (int k = 0; k < NETWORKS; k++) {
        keel_model *m = model_of(&networks[k], KEEL_FLOAT32, NULL);
        keel_strategy *s;
        keel_plan p[4] = { 0 };
        static const int64_t micro[4] = { 0, 16, 4, 1 };
        must(keel_strategy_create(&s, "cpu:0"));
        for (int i = 0; i < 4; i++) {
            must(keel_strategy_micro_batch(s, micro[i]));
            must(keel_plan_make(&p[i], m, s, 64, 64, KEEL_KEEP, NULL));
        }
        for (int i = 0; i < 4; i++) /* values of blocks count in the bound, too */
            assert_in_range(2 * p[i].activation_bound, p[i].activation_bytes[0],
                            2 * p[i].activation_bytes[0]);
        for (int i = 1; i < 4; i++)
            if (p[i].activation_bytes[0] >= p[i - 1].activation_bytes[0])
                fail_msg("%s: %d rows at a time need %lld bytes, %d need %lld", networks[k].name,
                         (int)micro[i], (long long)p[i].activation_bytes[0], (int)micro[i - 1],
                         (long long)p[i - 1].activation_bytes[0]);
        if (!((double)p[3].activation_bytes[0] <=
              networks[k].most * (double)p[0].activation_bytes[0]))
            fail_msg("%s: %lld bytes instead of %lld", networks[k].name,
                     (long long)p[3].activation_bytes[0], (long long)p[0].activation_bytes[0]);
        for (int i = 0; i < 4; i++) keel_plan_free(&p[i]);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

static void a_failing_allocation_leaves_nothing(void **unused)
{
    keel_model *m = model_of(&networks[3], KEEL_FLOAT32, NULL);
    keel_dataset *d = rows_made();
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    keel_strategy *s;
    keel_status status = KEEL_ENOMEM;
    (void)unused;
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_strategy_micro_batch(s, 2));
    must(keel_fit(m, s, d, &o, NULL)); /* what is made once is made */
    const int64_t live = keel_memory_live();
    for (int64_t at = 0; status == KEEL_ENOMEM; at += 1 + at / 16) {
        keel_memory_fail_at(at);
        status = keel_fit(m, s, d, &o, NULL);
        keel_memory_fail_at(-1);
        assert_int_equal(keel_memory_live(), live);
    }
    must(status);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

/* ---- refused ---------------------------------------------------------------------------------
 */

static keel_symbol normalised(keel_model *m, keel_symbol x)
{
    return must_call(m, "BatchNormalization", NULL, of_one_place(m, x));
}

static void refuse(keel_status s, keel_status wanted, const char *text)
{
    assert_int_equal(s, wanted);
    if (!strstr(keel_error(), text)) fail_msg("'%s' is not in: %s", text, keel_error());
}

static void refuse_fit(keel_model *m, keel_strategy *s, const char *text)
{
    keel_dataset *d = rows_made();
    keel_plan p = { 0 };
    must(keel_strategy_micro_batch(s, 2));
    refuse(keel_fit(m, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH }, NULL),
           KEEL_EUNSUP, text);
    refuse(keel_plan_make(&p, m, s, ROWS, BATCH, KEEL_KEEP, NULL), KEEL_EUNSUP, text);
    must(keel_evaluate(m, s, d, NULL, &(keel_logs){ 0 })); /* nothing is added up there */
    keel_dataset_destroy(d);
}

static void what_needs_all_rows_is_refused_by_name(void **unused)
{
    static const network norm = { "normalised", normalised, 1 };
    keel_strategy *s;
    (void)unused;
    must(keel_strategy_create(&s, "cpu:0-1"));
    keel_model *m = model_of(&norm, KEEL_FLOAT32, NULL);
    refuse_fit(m, s, "layer 'batch_normalization' (batch_norm) must see all rows of a step");
    must(keel_model_set_trainable(m, "batch_normalization", false)); /* by moving averages */
    keel_history h = { 0 };
    keel_dataset *d = rows_made();
    must(keel_fit(m, s, d, &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = BATCH }, &h));
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    m = model_of(&networks[0], KEEL_FLOAT32, "mixed_float16"); /* divided before it is scaled */
    must(keel_model_compile(
        m, &(keel_compile){
               KEEL_COMPILE, .optimizer = { "adam" },
               .loss = { { "sparse_categorical_crossentropy",
                           KEEL_ARGS(KEEL_ARG_STR("reduction", "mean_with_sample_weight")) } } }));
    refuse_fit(m, s, "the loss ('loss') depends on values, weights or masks of all rows of a step");
    keel_model_destroy(m);
    refuse(keel_strategy_micro_batch(s, -1), KEEL_EARG, "micro-batches of -1 rows");
    refuse(keel_strategy_micro_batch(s, (int64_t)INT32_MAX + 1), KEEL_EARG, "2147483648 rows");
    must(keel_strategy_micro_batch(s, INT32_MAX));
    keel_strategy_destroy(s);
}

static void devices_compute_all_their_rows_at_once(void **unused)
{
    keel_device *device[1] = { standin_open(&standin_runs, 0) };
    keel_model *m = model_of(&networks[0], KEEL_FLOAT32, NULL);
    keel_strategy *s;
    (void)unused;
    must(keel_strategy_create_devices(&s, device, 1));
    refuse_fit(m, s, "micro-batches are for CPU devices only");
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    device[0]->type->close(device[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_train_as_the_whole_batch_does),
        cmocka_unit_test(bits_depend_on_devices_no_more_than_without),
        cmocka_unit_test(blocks_go_through_at_once_where_the_cache_has_room),
        cmocka_unit_test(values_take_the_memory_of_one_micro_batch),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
        cmocka_unit_test(what_needs_all_rows_is_refused_by_name),
        cmocka_unit_test(devices_compute_all_their_rows_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
