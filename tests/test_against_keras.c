/* Whole trainings against the real Keras on one device: the same initial weights from its own file,
 * the same rows in their order, an uneven tail in every epoch; weights, history, evaluate and
 * predict afterwards. The numbers are golden/training.npz, made by golden/make_training.py.
 *
 * Keras's own float32 is up to 1.4e-6 away from its float64 in these runs, so what is asked for
 * here leaves little more than rounding; float64 against float64 leaves no room for another rule.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "io/npz.h"
#include "keel/keel.h"
#include "must.h"
#include "training_rows.h"

#ifdef __SANITIZE_THREAD__ /* takes its time, and one device has no lanes that could meet */
enum { LANES_ONLY = 1 };
#else
enum { LANES_ONLY = 0 };
#endif

static keel_zip *golden;
static keel_strategy *one, *four;

/* ---- the rows ----------------------------------------------------------------------------------
 */

static rows flat, flat_held_out, images, images_held_out;
static float sample_weight[ROWS];

static int start(void **unused)
{
    (void)unused;
    make_rows(&flat, 0, ROWS, 7);
    make_rows(&flat_held_out, 0, HELD_OUT, 8);
    make_rows(&images, 1, ROWS, 7);
    make_rows(&images_held_out, 1, HELD_OUT, 8);
    for (int i = 0; i < ROWS; i++) sample_weight[i] = (float)(i % 4) * 0.5f;
    return keel_zip_open(&golden, "golden/training.npz") < 0 ||
                   keel_strategy_create(&one, "cpu:0") < 0 ||
                   keel_strategy_create(&four, "cpu:0-3") < 0
               ? -1
               : 0;
}

static int finish(void **unused)
{
    (void)unused;
    keel_zip_close(golden);
    keel_strategy_destroy(one);
    keel_strategy_destroy(four);
    return 0;
}

static keel_dataset *dataset(int is_image, rows *r, int64_t n, float *weight)
{
    const keel_shape shape =
        is_image ? (keel_shape){ 4, { n, 12, 12, 3 } } : (keel_shape){ 2, { n, 20 } };
    const keel_tensor x = { KEEL_FLOAT32, shape, r->x }, y = { KEEL_FLOAT32, { 1, { n } }, r->y },
                      w = { KEEL_FLOAT32, { 1, { n } }, weight };
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &x, &y, weight ? &w : NULL));
    return d;
}

/* ---- what is trained: the same table as in make_training.py ------------------------------------
 */

typedef struct training {
    const char *name, *file;
    int64_t epochs;
    keel_named optimizer; /* name NULL: as the file says */
    bool sample_weight, class_weight;
    bool rounds; /* Keras takes Adam's betas through float32, in float64 too: these show it */
} training;

#define RATE      KEEL_ARG_FLOAT("learning_rate", 0.0625), KEEL_ARG_FLOAT("momentum", 0.875)
#define CNN_RATE  KEEL_ARG_FLOAT("learning_rate", 0.015625), KEEL_ARG_FLOAT("momentum", 0.875)
#define DECAY     KEEL_ARG_FLOAT("weight_decay", 0.0625)
#define ADAM_RATE KEEL_ARG_FLOAT("learning_rate", 0.00390625)
#define BETAS     KEEL_ARG_FLOAT("beta_1", 0.875), KEEL_ARG_FLOAT("beta_2", 1 - 1.0 / 1024)

static const keel_arg clipnorm[] = { RATE, KEEL_ARG_FLOAT("clipnorm", 0.25), { 0 } };
static const keel_arg global[] = { RATE, KEEL_ARG_FLOAT("global_clipnorm", 0.5), { 0 } };
static const keel_arg clipvalue[] = { RATE, KEEL_ARG_FLOAT("clipvalue", 0.03125), { 0 } };
static const keel_arg nesterov[] = { RATE, KEEL_ARG_BOOL("nesterov", true), { 0 } };
static const keel_arg decay[] = { ADAM_RATE, DECAY, { 0 } };
static const keel_arg decay_betas[] = { ADAM_RATE, DECAY, BETAS, { 0 } };
static const keel_arg amsgrad[] = { ADAM_RATE, KEEL_ARG_BOOL("amsgrad", true), { 0 } };

static const training trainings[] = {
    { "mlp_sgd", "mlp_sgd", 20 },
    { "mlp_adam", "mlp_adam", 20 },
    { "cnn_sgd", "cnn_sgd", 20 },
    { "cnn_adam", "cnn_adam", 20 },
    { "mlp_l2", "mlp_l2", 4 },
    { "cnn_shared", "cnn_shared", 4 },
    { "sample_weight", "mlp_sgd", 4, .sample_weight = true },
    { "class_weight", "mlp_adam", 4, .class_weight = true },
    { "cnn_sample_weight", "cnn_sgd", 4, .sample_weight = true },
    { "clipnorm", "mlp_sgd", 4, { "SGD", clipnorm } },
    { "global_clipnorm", "mlp_sgd", 4, { "SGD", global } },
    { "clipvalue", "mlp_sgd", 4, { "SGD", clipvalue } },
    { "nesterov", "mlp_sgd", 4, { "SGD", nesterov } },
    { "adamw", "mlp_sgd", 4, { "AdamW", decay }, .rounds = true },
    { "cnn_adamw", "cnn_sgd", 4, { "AdamW", decay_betas } },
    { "amsgrad", "mlp_sgd", 4, { "Adam", amsgrad }, .rounds = true },
    { "activity", "mlp_activity", 4 },
    { "activity_weights", "mlp_activity", 4, .sample_weight = true },
    { "cnn_steps", "cnn_steps", 4 },
    { "cnn_1d", "cnn_1d", 4 },
    { "attention", "mlp_attention", 4 },
    { "cnn_3d", "cnn_3d", 4 },
    { "cnn_up", "cnn_up", 4 },
    { "attentions", "mlp_attentions", 4 },
    { "over_time", "mlp_over_time", 4 },
    { "masked", "mlp_masked", 4 },
};

/* The file as it is, or with the optimizer and weighted metric of the case. */
static keel_model *load(const training *t)
{
    char path[96];
    keel_model *m;
    snprintf(path, sizeof path, "golden/train_%s.keras", t->file);
    must(keel_model_load(&m, path));
    assert_true(keel_model_is_compiled(m));
    if (!t->optimizer.name && !t->sample_weight && !t->class_weight) return m;
    keel_compile c = { KEEL_COMPILE, .optimizer = t->optimizer,
                       .loss = { { "sparse_categorical_crossentropy" } },
                       .metrics = { { "accuracy" } } };
    if (!t->optimizer.name) {
        static const keel_arg sgd[] = { RATE, { 0 } }, cnn_sgd[] = { CNN_RATE, { 0 } },
                              adam[] = { ADAM_RATE, BETAS, { 0 } };
        c.optimizer = strstr(t->file, "adam")  ? (keel_named){ "Adam", adam }
                      : strstr(t->file, "cnn") ? (keel_named){ "SGD", cnn_sgd }
                                               : (keel_named){ "SGD", sgd };
    }
    if (t->sample_weight || t->class_weight)
        c.weighted_metrics[0] = (keel_named){ "sparse_categorical_crossentropy" };
    must(keel_model_compile(m, &c));
    return m;
}

/* ---- comparing ---------------------------------------------------------------------------------
 */

typedef struct way {
    const char *what, *type; /* type: f32 or f64 */
    keel_dtype dtype;
    keel_strategy **strategy;
    bool reference_kernels;
    double tolerance; /* of everything */
} way;

typedef struct worst {
    double weights, history, evaluate, predict;
    char weight[64];
} worst;

static double at(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT32 ? ((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static int64_t count(const keel_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->shape.rank; i++) n *= t->shape.dim[i];
    return n;
}

static keel_tensor expected(const training *t, const way *w, const char *what)
{
    char name[160];
    keel_tensor a;
    snprintf(name, sizeof name, "%s/%s/%s", t->name, w->type, what);
    must(keel_npz_read(&a, golden, name));
    return a;
}

/* The largest |a - b| over the largest |b|; NAN is the largest of all. */
static double difference(const keel_tensor *a, const keel_tensor *b)
{
    double most = 0, apart = 0;
    assert_int_equal(a->shape.rank, b->shape.rank);
    assert_memory_equal(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim);
    for (int64_t i = 0; i < count(b); i++) {
        most = fmax(most, fabs(at(b, i)));
        const double d = fabs(at(a, i) - at(b, i));
        apart = d >= 0 ? fmax(apart, d) : INFINITY;
    }
    return apart / most;
}

static double near(double got, double want)
{
    const double d = fabs(got - want) / fmax(1, fabs(want));
    return d >= 0 ? d : INFINITY;
}

static void compare_weights(const keel_model *m, const training *t, const way *w, worst *o)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        char name[96];
        keel_tensor got;
        snprintf(name, sizeof name, "weights/%s", keel_model_weight_name(m, i));
        keel_tensor want = expected(t, w, name);
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &got));
        assert_int_equal(got.dtype, w->dtype);
        const double d = difference(&got, &want);
        if (d >= o->weights) {
            o->weights = d;
            snprintf(o->weight, sizeof o->weight, "%s", keel_model_weight_name(m, i));
        }
        keel_tensor_free(&got);
        keel_tensor_free(&want);
    }
}

static void compare_history(const keel_history *h, const training *t, const way *w, worst *o)
{
    assert_int_equal(h->epochs, t->epochs);
    assert_int_equal(h->steps, 5 * t->epochs);
    assert_int_equal(h->rows, ROWS * t->epochs);
    assert_int_equal(h->count, t->sample_weight || t->class_weight ? 3 : 2);
    for (int c = 0; c < h->count; c++) {
        char name[96];
        snprintf(name, sizeof name, "history/%s", h->name[c]);
        keel_tensor want = expected(t, w, name);
        assert_int_equal(count(&want), h->epochs);
        for (int64_t e = 0; e < h->epochs; e++)
            o->history = fmax(o->history, near(h->value[e * h->count + c], at(&want, e)));
        keel_tensor_free(&want);
    }
}

static void compare_evaluate(const keel_logs *logs, const training *t, const way *w, worst *o)
{
    for (int i = 0; i < logs->count; i++) {
        char name[96];
        snprintf(name, sizeof name, "evaluate/%s", logs->name[i]);
        keel_tensor want = expected(t, w, name);
        o->evaluate = fmax(o->evaluate, near(logs->value[i], at(&want, 0)));
        keel_tensor_free(&want);
    }
}

static void train_and_compare(const training *t, const way *w)
{
    static const double class_weight[CLASSES] = { 1, 2, 0.5, 1, 1.5 };
    const int is_image = strncmp(t->file, "cnn", 3) == 0;
    worst o = { 0 };
    keel_history h;
    keel_logs logs;
    keel_tensor got;
    keel_model *m = load(t);
    rows *held_out = is_image ? &images_held_out : &flat_held_out;
    keel_dataset *data = dataset(is_image, is_image ? &images : &flat, ROWS,
                                 t->sample_weight ? sample_weight : NULL),
                 *test = dataset(is_image, held_out, HELD_OUT, NULL),
                 *some = dataset(is_image, held_out, PREDICT, NULL);
    const keel_fit_options options = { KEEL_FIT_OPTIONS,
                                       .batch_size = BATCH,
                                       .epochs = t->epochs,
                                       .no_shuffle = true,
                                       .reference_kernels = w->reference_kernels,
                                       .class_weight = t->class_weight ? class_weight : NULL,
                                       .class_weight_count = t->class_weight ? CLASSES : 0 };
    if (w->dtype == KEEL_FLOAT64) must(keel_model_set_dtype(m, KEEL_FLOAT64));
    must(keel_fit(m, *w->strategy, data, &options, &h));
    compare_weights(m, t, w, &o);
    compare_history(&h, t, w, &o);
    must(keel_evaluate(m, *w->strategy, test, &options, &logs));
    compare_evaluate(&logs, t, w, &o);
    must(keel_predict(m, *w->strategy, some, &options, &got));
    keel_tensor want = expected(t, w, "predict");
    o.predict = difference(&got, &want);
    print_message("%-18s %-28s weights %.1e (%s) history %.1e evaluate %.1e predict %.1e\n",
                  t->name, w->what, o.weights, o.weight, o.history, o.evaluate, o.predict);
    const double allowed = t->rounds ? fmax(w->tolerance, 1e-5) : w->tolerance;
    if (!(fmax(fmax(o.weights, o.history), fmax(o.evaluate, o.predict)) <= allowed))
        fail_msg("%s, %s: further from Keras than %g", t->name, w->what, allowed);
    keel_tensor_free(&got);
    keel_tensor_free(&want);
    keel_history_free(&h);
    keel_dataset_destroy(data);
    keel_dataset_destroy(test);
    keel_dataset_destroy(some);
    keel_model_destroy(m);
}

static void all(const way *w)
{
    if (LANES_ONLY && w->strategy == &one) return;
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        train_and_compare(&trainings[i], w);
}

static void one_device_trains_as_keras(void **unused)
{
    (void)unused;
    if (LANES_ONLY) skip();
    all(&(way){ "one device", "f32", KEEL_FLOAT32, &one, false, 1e-5 });
}

static void four_devices_train_as_keras_on_one(void **unused)
{
    (void)unused;
    all(&(way){ "four devices", "f32", KEEL_FLOAT32, &four, false, 1e-5 });
}

static void reference_kernels_train_as_keras(void **unused)
{
    (void)unused;
    all(&(way){ "one device, reference", "f32", KEEL_FLOAT32, &one, true, 1e-5 });
    all(&(way){ "four devices, reference", "f32", KEEL_FLOAT32, &four, true, 1e-5 });
}

static void float64_trains_as_keras_in_float64(void **unused)
{
    (void)unused;
    all(&(way){ "one device, float64", "f64", KEEL_FLOAT64, &one, false, 1e-11 });
    all(&(way){ "four devices, float64", "f64", KEEL_FLOAT64, &four, false, 1e-11 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_trains_as_keras),
        cmocka_unit_test(four_devices_train_as_keras_on_one),
        cmocka_unit_test(reference_kernels_train_as_keras),
        cmocka_unit_test(float64_trains_as_keras_in_float64),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
