/* Trainings by each of Keras's optimizers against the real Keras, on one, two and four devices: the
 * weights and what the optimizer keeps after 20 steps, begun here or in a file of Keras. The
 * numbers are golden/optimizer_training.json, made by golden/make_optimizer_training.py, whose
 * arithmetic is repeated here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"
#include "must.h"

enum { BATCH = 16, ROWS = 32, CLASSES = 4, TOKENS = 50, LANES = 3, WIDEST = 192 };

static const char *const devices[LANES] = { "cpu:0", "cpu:0-1", "cpu:0-3" };
static keel_strategy *strategy[LANES];

static int start(void **unused)
{
    (void)unused;
    for (int i = 0; i < LANES; i++)
        if (keel_strategy_create(&strategy[i], devices[i]) < 0) return -1;
    return 0;
}

static int finish(void **unused)
{
    (void)unused;
    for (int i = 0; i < LANES; i++) keel_strategy_destroy(strategy[i]);
    return 0;
}

/* ---- the models and rows of the script --------------------------------------------------------
 */

static keel_symbol dense(keel_model *m, const char *name, int64_t units, const char *activation,
                         keel_symbol in)
{
    return must_call(m, "Dense",
                     KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("units", units),
                               KEEL_ARG_STR("activation", activation)),
                     in);
}

static keel_shape shape_of(const char *kind)
{
    return !strcmp(kind, "wide")   ? (keel_shape){ 1, { 100 } }
           : !strcmp(kind, "conv") ? (keel_shape){ 3, { 8, 8, 3 } }
                                   : (keel_shape){ 1, { 6 } };
}

static keel_model *model_of(const char *kind, keel_dtype real)
{
    const keel_shape shape = shape_of(kind);
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, NULL, real, 1));
    must(keel_model_input(m, &shape, NULL, &x));
    if (!strcmp(kind, "wide")) {
        x = dense(m, "d2", 90, "tanh", dense(m, "d1", 200, "tanh", x));
    } else if (!strcmp(kind, "conv")) {
        x = must_call(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_STR("name", "conv"), KEEL_ARG_INT("filters", 20),
                                KEEL_ARG_INT("kernel_size", 3), KEEL_ARG_STR("activation", "tanh")),
                      x);
        x = must_call(m, "Flatten", NULL, x);
    } else if (!strcmp(kind, "tokens")) {
        x = must_call(m, "Embedding",
                      KEEL_ARGS(KEEL_ARG_STR("name", "embedding"),
                                KEEL_ARG_INT("input_dim", TOKENS), KEEL_ARG_INT("output_dim", 8)),
                      x);
        x = dense(m, "body", 16, "tanh", must_call(m, "Flatten", NULL, x));
    } else {
        x = dense(m, "body", 16, "tanh", x);
    }
    x = dense(m, "out", CLASSES, "softmax", x);
    must(keel_model_outputs(m, &x, 1));
    for (int k = 0; k < m->n_weight; k++)
        for (int64_t n = 0; n < keel_shape_count(&m->weight[k].info.spec.shape); n++) {
            const double v = (double)((n * 7919 + 131 * k) % 1021 - 510) / 4096;
            if (real == KEEL_FLOAT64)
                ((double *)m->weight[k].data)[n] = v;
            else
                ((float *)m->weight[k].data)[n] = (float)v;
        }
    return m;
}

/* Rows from `first` on, and then those before it. */
static keel_dataset *rows_of(const char *kind, int first)
{
    static float x[ROWS * WIDEST];
    static int32_t y[ROWS];
    const bool tokens = !strcmp(kind, "tokens");
    keel_shape shape = shape_of(kind);
    const int64_t n = keel_shape_count(&shape);
    keel_dataset *d;
    for (int r = 0; r < ROWS; r++) {
        const int64_t i = (r + first) % ROWS;
        y[r] = (int32_t)(i * 5 / 3 % CLASSES);
        for (int64_t k = 0; k < n; k++) {
            const int64_t mixed = i * 131 + k * 37 + i * k * 7;
            x[r * n + k] = tokens ? (float)(mixed % TOKENS) : (float)(mixed % 256 - 128) / 128;
        }
    }
    for (int i = shape.rank++; i > 0; i--) shape.dim[i] = shape.dim[i - 1];
    shape.dim[0] = ROWS;
    const keel_tensor tx = { KEEL_FLOAT32, shape, x }, ty = { KEEL_INT32, { 1, { ROWS } }, y };
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    return d;
}

static void compile(keel_model *m, const json_t *k)
{
    json_t *config =
        json_pack("{s:{s:s, s:s, s:O, s:n}, s:s}", "optimizer", "module", "keras.optimizers",
                  "class_name", golden_text(k, "optimizer"), "config", json_object_get(k, "config"),
                  "registered_name", "loss", "sparse_categorical_crossentropy");
    assert_non_null(config);
    must(keel_compiled_from_config(m, config, false, &m->compiled));
    must(keel_compiled_state_create(m, &m->compiled));
    json_decref(config);
}

static keel_model *begin(const json_t *k)
{
    char path[96];
    keel_model *m;
    if (!golden_text(k, "file")) {
        m = model_of(golden_text(k, "model"),
                     !strcmp(golden_text(k, "real"), "float64") ? KEEL_FLOAT64 : KEEL_FLOAT32);
        compile(m, k);
        return m;
    }
    snprintf(path, sizeof path, "golden/optimizer_%s.keras", golden_text(k, "file"));
    must(keel_model_load(&m, path));
    assert_true(keel_model_is_compiled(m));
    assert_int_equal(m->compiled.iterations, 3);
    return m;
}

static void fit(keel_model *m, int lanes, const char *kind, int first, int64_t epochs,
                int64_t steps)
{
    keel_history h;
    keel_dataset *d = rows_of(kind, first);
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = epochs,
                                       .steps_per_epoch = steps, .no_shuffle = true };
    must(keel_fit(m, strategy[lanes], d, &options, &h));
    keel_history_free(&h);
    keel_dataset_destroy(d);
}

static void train(keel_model *m, int lanes, const json_t *k)
{
    const char *kind = golden_text(k, "model");
    if (golden_text(k, "file")) { /* 17 steps from the second batch on */
        fit(m, lanes, kind, BATCH, 8, 2);
        fit(m, lanes, kind, BATCH, 1, 1);
    } else {
        fit(m, lanes, kind, 0, 10, 2);
    }
}

/* ---- comparing ---------------------------------------------------------------------------------
 */

static double sample(const void *data, bool f64, int64_t i)
{
    return f64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* How far the numbers are from those of Keras, over the size of the weight or slot. */
static double apart(const json_t *want, const void *data, bool f64, int64_t count)
{
    enum { SAMPLES = 12 };
    const json_t *some = json_array_get(want, 4);
    const int64_t stride = count / SAMPLES > 1 ? count / SAMPLES : 1;
    double sum = 0, squares = 0, far = 0;
    assert_int_equal(json_integer_value(json_array_get(want, 1)), count);
    for (int64_t i = 0; i < count; i++) {
        sum += sample(data, f64, i);
        squares += sample(data, f64, i) * sample(data, f64, i);
    }
    const double norm = sqrt(json_number_value(json_array_get(want, 3))), size = norm + 1e-30;
    const double each = size / sqrt((double)count);
    far = fmax(far, fabs(sum - json_number_value(json_array_get(want, 2))) / size);
    far = fmax(far, fabs(sqrt(squares) - norm) / size);
    for (size_t i = 0; i < json_array_size(some); i++)
        far = fmax(far, fabs(sample(data, f64, (int64_t)i * stride) -
                             json_number_value(json_array_get(some, i))) /
                            (8 * each));
    return far >= 0 && isfinite(squares) ? far : INFINITY;
}

/* The optimizer's variables as a file has them, by way of a file. */
static void compare_slots(const keel_model *m, const json_t *k, double limit, size_t index)
{
    const json_t *slots = json_object_get(k, "slots");
    const bool f64 = m->dtype == KEEL_FLOAT64;
    size_t at = 0;
    const keel_model_compiled *c = &m->compiled;
    const keel_object *object = &c->optimizer[0].optimizer;
    const keel_optimizer *o = (const keel_optimizer *)object->type;
    for (int group = 0; group < KEEL_SLOTS_MAX; group++)
        for (int t = 0; t < keel_model_trainable_count(m); t++) {
            keel_slots kept = { 0 };
            must(keel_optimizer_slots(o, object->args, &m->weight[keel_model_trainable(m, t)].info,
                                      &kept));
            for (int s = 0; s < kept.count; s++) {
                if (kept.at[s].group != group || kept.at[s].kind == KEEL_SLOT_NONE) continue;
                const json_t *want = json_array_get(slots, at++);
                const keel_tensor *got = &c->state[t * c->n_slot + s];
                if (!got->data) {
                    assert_true(json_number_value(json_array_get(want, 2)) == 0);
                    continue;
                }
                const double far = apart(want, got->data, f64, keel_shape_count(&got->shape));
                if (!(far <= limit))
                    fail_msg("case %zu, %s: slot '%s' of %s is %.2g from Keras", index,
                             golden_text(k, "optimizer"), kept.at[s].name,
                             m->weight[keel_model_trainable(m, t)].info.name, far);
            }
        }
    if (o->number[f64]) {
        const double want = json_number_value(json_array_get(json_array_get(slots, at++), 2));
        assert_true(golden_near(c->optimizer[0].number, want, 1e-6));
    }
    assert_int_equal(at, json_array_size(slots));
}

static double compare(const keel_model *m, const json_t *k, double limit, size_t index)
{
    const json_t *weights = json_object_get(k, "weights");
    double most = 0;
    assert_int_equal(keel_model_trainable_count(m), json_array_size(weights));
    for (int t = 0; t < keel_model_trainable_count(m); t++) {
        const keel_model_weight *w = &m->weight[keel_model_trainable(m, t)];
        const double far = apart(json_array_get(weights, (size_t)t), w->data,
                                 m->dtype == KEEL_FLOAT64, keel_shape_count(&w->info.spec.shape));
        if (!(far <= limit))
            fail_msg("case %zu, %s: %s is %.2g from Keras", index, golden_text(k, "optimizer"),
                     w->info.name, far);
        most = fmax(most, far);
    }
    compare_slots(m, k, 50 * limit, index);
    return most;
}

static bool same_bits(const keel_model *a, const keel_model *b)
{
    bool same = true;
    for (int i = 0; i < a->n_weight; i++)
        same = same && !memcmp(a->weight[i].data, b->weight[i].data,
                               (size_t)keel_shape_count(&a->weight[i].info.spec.shape) *
                                   keel_dtype_size(a->dtype));
    for (int i = 0; i < a->compiled.n_state; i++)
        if (a->compiled.state[i].data)
            same = same && !memcmp(a->compiled.state[i].data, b->compiled.state[i].data,
                                   (size_t)keel_shape_count(&a->compiled.state[i].shape) *
                                       keel_dtype_size(a->dtype));
    return same;
}

static void train_all(const char *file, size_t least)
{
    json_t *all = golden_load(file), *cases = json_object_get(all, "cases"), *k;
    size_t index;
    json_array_foreach(cases, index, k)
    {
        const bool f64 = !strcmp(golden_text(k, "real"), "float64");
        /* the gradients of convolutions and embeddings are sums over workers */
        const bool bits =
            !strcmp(golden_text(k, "model"), "wide") || !strcmp(golden_text(k, "model"), "small");
        keel_model *m[LANES];
        for (int lanes = 0; lanes < LANES; lanes++) {
            m[lanes] = begin(k);
            train(m[lanes], lanes, k);
            const double far = compare(m[lanes], k, f64 ? 1e-9 : 1e-4, index);
            if (lanes == 0)
                print_message("%-10s %-7s %-8s %.1e\n", golden_text(k, "optimizer"),
                              golden_text(k, "model"), golden_text(k, "real"), far);
            if (bits && !same_bits(m[0], m[lanes]))
                fail_msg("case %zu, %s: other bits on %s", index, golden_text(k, "optimizer"),
                         devices[lanes]);
        }
        for (int lanes = 0; lanes < LANES; lanes++) keel_model_destroy(m[lanes]);
    }
    assert_true(index > least);
    json_decref(all);
}

static void any_number_of_devices_trains_as_keras(void **unused)
{
    (void)unused;
    train_all("optimizer_training.json", 30);
    train_all("optimizer_training_jax.json", 4);
}

static void averages_and_gradients_of_several_steps_are_those_of_keras(void **unused)
{
    (void)unused;
    train_all("optimizer_keeps.json", 10);
}

/* At the end of a training, averages become weights. Without a step there are none yet. */
static void a_training_without_a_step_leaves_the_weights(void **unused)
{
    (void)unused;
    static const double none[CLASSES] = { 0 };
    json_t *ema = json_pack("{s:s, s:{s:b}}", "optimizer", "Adam", "config", "use_ema", 1);
    keel_model *m = model_of("small", KEEL_FLOAT32), *before = model_of("small", KEEL_FLOAT32);
    keel_dataset *d = rows_of("small", 0);
    keel_history h;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .class_weight = none,
                                       .class_weight_count = CLASSES };
    compile(m, ema);
    must(keel_fit(m, strategy[1], d, &options, &h));
    assert_int_equal(m->compiled.iterations, 0);
    for (int i = 0; i < m->n_weight; i++)
        assert_memory_equal(m->weight[i].data, before->weight[i].data,
                            (size_t)keel_shape_count(&m->weight[i].info.spec.shape) *
                                sizeof(float));
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    keel_model_destroy(before);
    json_decref(ema);
}

static void through_a_file(const char *file)
{
    json_t *all = golden_load(file), *cases = json_object_get(all, "cases"), *k;
    char path[4096];
    size_t index;
    snprintf(path, sizeof path, "%s/kept.keras", getenv("KEEL_TEST_TMP"));
    json_array_foreach(cases, index, k)
    {
        if (strcmp(golden_text(k, "real"), "float32")) continue;
        keel_model *m = begin(k), *back;
        train(m, 1, k);
        must(keel_model_save(m, path));
        must(keel_model_load(&back, path));
        assert_int_equal(back->compiled.iterations, 20);
        assert_true(back->compiled.optimizer[0].number == m->compiled.optimizer[0].number);
        assert_true(same_bits(m, back));
        keel_model_destroy(m);
        keel_model_destroy(back);
    }
    json_decref(all);
}

static void what_an_optimizer_keeps_goes_through_a_file(void **unused)
{
    (void)unused;
    through_a_file("optimizer_training.json");
    through_a_file("optimizer_training_jax.json");
    through_a_file("optimizer_keeps.json");
}

static void a_schedule_that_keel_does_not_have_waits_for_a_number(void **unused)
{
    (void)unused;
    json_t *mine = json_pack("{s:s, s:{s:{s:s, s:{s:i}}}}", "optimizer", "SGD", "config",
                             "learning_rate", "class_name", "Mine", "config", "steps", 3);
    keel_model *m = model_of("small", KEEL_FLOAT32);
    keel_dataset *d = rows_of("small", 0);
    keel_history h;
    assert_non_null(mine);
    compile(m, mine);
    assert_string_equal(keel_model_schedule(m), "Mine");
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    assert_int_equal(keel_fit(m, strategy[0], d, &options, &h), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "'Mine'"));
    assert_non_null(strstr(keel_error(), "--learning-rate"));
    must(keel_model_set_learning_rate(m, 0.5));
    assert_null(keel_model_schedule(m));
    must(keel_fit(m, strategy[0], d, &options, &h));
    keel_history_free(&h);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    json_decref(mine);
}

/* The rate that a model speaks of is that of the step to come. */
static void a_schedule_is_replaced_by_a_number(void **unused)
{
    (void)unused;
    keel_model *m;
    double rate;
    must(keel_model_load(&m, "golden/optimizer_schedule.keras"));
    assert_string_equal(keel_model_schedule(m), "CosineDecay");
    must(keel_model_learning_rate(m, &rate)); /* 3 of 5 steps from 1/32 to 1/16 */
    assert_true(golden_near(rate, 0.03125 + 0.03125 * 0.6, 1e-8));
    must(keel_model_set_learning_rate(m, 0.25));
    must(keel_model_learning_rate(m, &rate));
    assert_true(rate == 0.25 && !keel_model_schedule(m));
    keel_model_destroy(m);
}

/* A schedule that was set goes through a file, as one that came with it. */
static void a_schedule_can_be_set(void **unused)
{
    (void)unused;
    char path[4096];
    keel_model *m, *back;
    double rate, again;
    snprintf(path, sizeof path, "%s/scheduled.keras", getenv("KEEL_TEST_TMP"));
    for (int before = 0; before < 2; before++) { /* in place of a number, of a schedule */
        must(keel_model_load(&m, before ? "golden/optimizer_schedule.keras"
                                        : "golden/optimizer_adamax.keras"));
        assert_int_equal(keel_model_set_schedule(m, "PolynomialDecay(0.5, 0)"), KEEL_EARG);
        must(keel_model_set_schedule(m, "PolynomialDecay(0.5, 6, 0.25)"));
        assert_string_equal(keel_model_schedule(m), "PolynomialDecay");
        must(keel_model_learning_rate(m, &rate)); /* 3 steps are done */
        assert_true(golden_near(rate, 0.375, 1e-8));
        must(keel_model_save(m, path));
        must(keel_model_load(&back, path));
        must(keel_model_learning_rate(back, &again));
        assert_true(again == rate && same_bits(m, back));
        fit(m, 0, "small", 0, 1, 2);
        fit(back, 1, "small", 0, 1, 2);
        assert_true(same_bits(m, back));
        must(keel_model_set_learning_rate(m, 0.125));
        assert_null(keel_model_schedule(m));
        must(keel_model_save(m, path));
        keel_model_destroy(back);
        must(keel_model_load(&back, path));
        must(keel_model_learning_rate(back, &again));
        assert_true(again == 0.125 && !keel_model_schedule(back));
        keel_model_destroy(back);
        keel_model_destroy(m);
    }
}

/* Rates as of PolynomialDecay(0.5, 6, 0.25); after `ends` steps there are none. */
typedef struct falls {
    int64_t ends;
    int calls;
} falls;

static double falling(void *context, int64_t step)
{
    falls *f = context;
    f->calls++;
    if (step >= f->ends) return NAN;
    return (double)(0.25F * (1 - (float)(step < 6 ? step : 6) / 6) + 0.25F);
}

static void a_function_can_give_the_rate(void **unused)
{
    (void)unused;
    char path[4096];
    keel_model *m, *like, *back;
    double rate;
    falls f = { .ends = 1000 };
    snprintf(path, sizeof path, "%s/function.keras", getenv("KEEL_TEST_TMP"));
    must(keel_model_load(&m, "golden/optimizer_schedule.keras"));
    must(keel_model_load(&like, "golden/optimizer_schedule.keras"));
    must(keel_model_set_rate(m, falling, &f));
    must(keel_model_set_schedule(like, "PolynomialDecay(0.5, 6, 0.25)"));
    assert_string_equal(keel_model_schedule(m), "function");
    must(keel_model_learning_rate(m, &rate)); /* 3 steps are done */
    assert_true(rate == 0.375);
    fit(m, 0, "small", 0, 1, 2);
    fit(like, 1, "small", 0, 1, 2);
    assert_true(same_bits(m, like));
    f.calls = 0;
    must(keel_model_save(m, path)); /* the rate stays */
    assert_int_equal(f.calls, 1);
    must(keel_model_load(&back, path));
    must(keel_model_learning_rate(back, &rate));
    assert_true(rate == falling(&f, keel_model_steps_done(m)));
    assert_string_equal(keel_model_schedule(back), "ExponentialDecay");
    assert_true(same_bits(m, back));
    keel_model_destroy(back);
    keel_model_destroy(like);
    keel_model_destroy(m);
}

static void a_rate_that_is_no_number_ends_the_fit_before_its_step(void **unused)
{
    (void)unused;
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = 3,
                                       .steps_per_epoch = 2, .no_shuffle = true };
    keel_dataset *d = rows_of("small", 0);
    keel_model *m, *like;
    keel_history h;
    falls f = { .ends = 5 }, g = { .ends = 1000 }; /* 3 steps are done */
    must(keel_model_load(&m, "golden/optimizer_schedule.keras"));
    must(keel_model_load(&like, "golden/optimizer_schedule.keras"));
    must(keel_model_set_rate(m, falling, &f));
    must(keel_model_set_rate(like, falling, &g));
    assert_int_equal(keel_fit(m, strategy[1], d, &options, &h), KEEL_ENUMERIC);
    assert_non_null(strstr(keel_error(), "the learning rate of step 6 is nan"));
    keel_history_free(&h);
    fit(like, 1, "small", 0, 1, 2);
    assert_true(same_bits(m, like));
    keel_dataset_destroy(d);
    keel_model_destroy(like);
    keel_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_devices_trains_as_keras),
        cmocka_unit_test(averages_and_gradients_of_several_steps_are_those_of_keras),
        cmocka_unit_test(a_training_without_a_step_leaves_the_weights),
        cmocka_unit_test(what_an_optimizer_keeps_goes_through_a_file),
        cmocka_unit_test(a_schedule_that_keel_does_not_have_waits_for_a_number),
        cmocka_unit_test(a_schedule_is_replaced_by_a_number),
        cmocka_unit_test(a_schedule_can_be_set),
        cmocka_unit_test(a_function_can_give_the_rate),
        cmocka_unit_test(a_rate_that_is_no_number_ends_the_fit_before_its_step),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
