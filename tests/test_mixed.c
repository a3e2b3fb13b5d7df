/* Training under Keras's policy mixed_bfloat16: as the real Keras does it, the same on every number
 * of devices, in a file that says so. The numbers are golden/mixed.json, by golden/make_mixed.py.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/cpu/cpu.h"
#include "golden.h"
#include "keel/keel.h"
#include "must.h"
#include "norm_of_one.h"
#include "training_rows.h"

enum { EPOCHS = 12 };

static const struct work {
    const char *name;
    int is_image;
    const char *policy; /* of the model as Keras made it */
} works[] = {
    { "mlp", 0, "mixed_bfloat16" },
    { "cnn", 1, "float32 and mixed_bfloat16" }, /* the last layer is of float32 */
};
enum { WORKS = sizeof works / sizeof *works };

static rows data[WORKS];

static keel_model *load(const struct work *w)
{
    char path[64];
    keel_model *m;
    snprintf(path, sizeof path, "golden/mixed_%s.keras", w->name);
    must(keel_model_load(&m, path));
    return m;
}

static void fit(keel_model *m, const struct work *w, const char *devices, int64_t epochs,
                keel_history *h)
{
    rows *r = &data[w - works];
    const keel_shape shape =
        w->is_image ? (keel_shape){ 4, { ROWS, 12, 12, 3 } } : (keel_shape){ 2, { ROWS, 20 } };
    const keel_tensor x = { KEEL_FLOAT32, shape, r->x },
                      y = { KEEL_FLOAT32, { 1, { ROWS } }, r->y };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = epochs,
                                 .no_shuffle = true, .profile = true };
    keel_dataset *d;
    keel_strategy *s;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d, &o, h));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
}

static double loss_of(const keel_history *h, int64_t epoch)
{
    for (int i = 0; i < h->count; i++)
        if (!strcmp(h->name[i], "loss")) return h->value[epoch * h->count + i];
    fail_msg("no loss");
    return NAN;
}

/* The two round at other places, so what may differ is what the policy itself changes: the distance
 * between Keras's history under it and in float32. */
static void losses_are_those_of_keras_within_what_the_policy_changes(void **state)
{
    (void)state;
    json_t *all = golden_load("mixed.json");
    for (const struct work *w = works; w < works + WORKS; w++) {
        json_t *of = json_object_get(all, w->name);
        const json_t *mixed = json_object_get(json_object_get(of, "mixed"), "loss");
        const json_t *plain = json_object_get(json_object_get(of, "float32"), "loss");
        keel_model *m = load(w);
        keel_history h = { 0 };
        double changed = 0;
        assert_string_equal(keel_model_dtype_policy(m), w->policy);
        fit(m, w, "cpu:0-1", EPOCHS, &h);
        assert_int_equal(json_array_size(mixed), EPOCHS);
        for (size_t e = 0; e < EPOCHS; e++) {
            const double a = json_real_value(json_array_get(mixed, e));
            changed = fmax(changed, fabs(a - json_real_value(json_array_get(plain, e))) / a);
        }
        for (size_t e = 0; e < EPOCHS; e++) {
            const double want = json_real_value(json_array_get(mixed, e));
            const double got = loss_of(&h, (int64_t)e);
            if (!(fabs(got - want) <= 2 * changed * want))
                fail_msg("%s, epoch %zu: loss %.6f, Keras %.6f; more than twice the %.2g that the "
                         "policy changes",
                         w->name, e, got, want, changed);
        }
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    json_decref(all);
}

/* Largest difference of any weight, over the largest weight of its kind. */
static double difference(const keel_model *a, const keel_model *b)
{
    static const char *const names[] = { "hidden/kernel", "hidden/bias", "conv/kernel",
                                         "bn/gamma",      "bn/beta",     "bn/moving_mean",
                                         "out/kernel",    "out/bias" };
    double worst = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        keel_tensor x, y;
        double most = 0, largest = 0;
        if (keel_model_get_weight(a, names[k], &x) < 0) continue;
        must(keel_model_get_weight(b, names[k], &y));
        int64_t n = 1;
        for (int d = 0; d < x.shape.rank; d++) n *= x.shape.dim[d];
        for (int64_t i = 0; i < n; i++) {
            const double p = ((float *)x.data)[i], q = ((float *)y.data)[i];
            most = fmax(most, fabs(p - q));
            largest = fmax(largest, fabs(p));
        }
        worst = fmax(worst, most / largest);
        keel_tensor_free(&x);
        keel_tensor_free(&y);
    }
    return worst;
}

static void weights_do_not_depend_on_the_number_of_devices(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu:0-1", "cpu:0+1", "cpu:0-2", "cpu:0-3", "cpu:0-6" };
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (const struct work *w = works; w < works + WORKS; w++) {
        keel_model *one = load(w);
        fit(one, w, "cpu:0", 3, NULL);
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
            if (cores < 2 && strchr(devices[i], '+')) continue;
            keel_model *many = load(w);
            fit(many, w, devices[i], 3, NULL);
            const double d = difference(one, many);
            /* Sums of convolutions' gradients are cut where workers are; up to two, equal to the
             * bit. With more, a sum may round to another bfloat16 a step later. */
            const double allowed = !w->is_image || cores <= 2 || i < 2 ? 0 : 0.02;
            if (!(d <= allowed)) fail_msg("%s on %s: weights differ by %g", w->name, devices[i], d);
            keel_model_destroy(many);
        }
        keel_model_destroy(one);
    }
}

/* The share of the peak is that of the type a layer multiplies, where the processor has one. */
static void a_profile_measures_layers_against_the_peak_of_their_type(void **state)
{
    (void)state;
    keel_model *m = load(&works[0]);
    keel_history h;
    fit(m, &works[0], "cpu:0-1", 1, &h);
    const keel_profile *p = h.profile;
    const double narrow = p->peak_bf16_flops > 0 ? p->peak_bf16_flops : p->peak_flops;
    bool held = false;
    assert_true(p->peak_flops > 0 && narrow > 0);
    for (int i = 0; i < p->count; i++) {
        const keel_profile_row *r = &p->row[i];
        assert_true(r->peak_flops == p->peak_flops || r->peak_flops == narrow);
        held = held || (r->forward_flops > 0 && r->peak_flops == narrow);
    }
    assert_true(held);
    keel_history_free(&h);
    keel_model_destroy(m);
}

static void float64_has_no_policy(void **state)
{
    (void)state;
    keel_model *mixed = load(&works[1]), *plain = load(&works[1]);
    must(keel_model_set_dtype_policy(plain, "float32"));
    must(keel_model_set_dtype(mixed, KEEL_FLOAT64));
    must(keel_model_set_dtype(plain, KEEL_FLOAT64));
    assert_string_equal(keel_model_dtype_policy(mixed), "float64");
    fit(mixed, &works[1], "cpu:0-1", 1, NULL);
    fit(plain, &works[1], "cpu:0-1", 1, NULL);
    must(keel_model_set_dtype(mixed, KEEL_FLOAT32));
    must(keel_model_set_dtype(plain, KEEL_FLOAT32));
    assert_true(difference(mixed, plain) == 0);
    keel_model_destroy(mixed);
    keel_model_destroy(plain);
}

static void the_policy_counts_and_is_saved(void **state)
{
    (void)state;
    static const struct {
        const char *from; /* file */
        const char *policy;
    } cases[] = {
        { "golden/train_cnn_sgd.keras", "mixed_bfloat16" },
        { "golden/mixed_cnn.keras", "float32" },
        { "golden/functional_sgd.keras", "mixed_bfloat16" },
        { "golden/functional_sgd.keras", "mixed_float16" },
        { "golden/mixed_mlp.keras", "mixed_float16" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/keel_test_XXXXXX.keras";
        const int file = mkstemps(path, 6);
        keel_model *m, *again;
        assert_true(file >= 0);
        close(file);
        must(keel_model_load(&m, cases[i].from));
        assert_string_not_equal(keel_model_dtype_policy(m), cases[i].policy);
        must(keel_model_set_dtype_policy(m, cases[i].policy));
        assert_string_equal(keel_model_dtype_policy(m), cases[i].policy);
        must(keel_model_save(m, path));
        must(keel_model_load(&again, path));
        assert_string_equal(keel_model_dtype_policy(again), cases[i].policy);
        unlink(path);
        keel_model_destroy(again);
        keel_model_destroy(m);
    }
    keel_model *plain = load(&works[1]), *mixed = load(&works[1]);
    must(keel_model_set_dtype_policy(plain, "float32"));
    fit(plain, &works[1], "cpu:0", 1, NULL);
    fit(mixed, &works[1], "cpu:0", 1, NULL);
    const double d = difference(plain, mixed);
    assert_true(d > 1e-6 && d < 0.05); /* another arithmetic, the same training */
    keel_model_destroy(plain);
    keel_model_destroy(mixed);
}

static void other_policies_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const names[] = { "mixed_float8", "bfloat16", "float16", "int8", "" };
    keel_model *m = load(&works[0]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(keel_model_set_dtype_policy(m, names[i]), KEEL_EUNSUP);
        assert_non_null(strstr(keel_error(), names[i]));
        assert_string_equal(keel_model_dtype_policy(m), "mixed_bfloat16");
    }
    keel_model_destroy(m);
}

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < WORKS; i++) make_rows(&data[i], works[i].is_image, ROWS, 7);
    return 0;
}

/* A mask is made in the type of one layer and read in that of another. */
static void masks_go_between_layers_of_any_policy(void **unused)
{
    (void)unused;
    static const char *const policies[] = { "float32", "mixed_bfloat16" };
    for (int k = 0; k < 4; k++) {
        keel_model *m;
        keel_symbol x, y, both[2];
        const keel_arg mixed = KEEL_ARG_STR("dtype", policies[k & 1]);
        const keel_arg *words =
            KEEL_ARGS(KEEL_ARG_INT("input_dim", 9), KEEL_ARG_INT("output_dim", 4),
                      KEEL_ARG_BOOL("mask_zero", true), KEEL_ARG_STR("dtype", policies[k >> 1]));
        const keel_arg *heads =
            KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 2), mixed);
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        must(keel_model_input(m, KEEL_DIMS(6), NULL, &x));
        must(keel_model_call(m, "Embedding", words, &x, 1, &x));
        both[0] = both[1] = x;
        must(keel_model_call(m, "MultiHeadAttention", heads, both, 2, &y));
        must(keel_model_call(m, "LayerNormalization", KEEL_ARGS(mixed), &y, 1, &y));
        must(keel_model_call(m, "GlobalAveragePooling1D", KEEL_ARGS(mixed), &y, 1, &y));
        must(keel_model_outputs(m, &y, 1));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
        const float ids[12] = { 1, 2, 3, 0, 0, 0, 4, 5, 6, 7, 8, 0 }, target[8] = { 0 };
        const keel_tensor in = { KEEL_FLOAT32, { 2, { 2, 6 } }, (void *)ids },
                          out = { KEEL_FLOAT32, { 2, { 2, 4 } }, (void *)target };
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 2 };
        keel_dataset *d;
        keel_strategy *s;
        keel_history h;
        must(keel_dataset_from_arrays(&d, &in, &out, NULL));
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_fit(m, s, d, &o, &h));
        assert_true(isfinite(h.value[0]));
        keel_history_free(&h);
        keel_dataset_destroy(d);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

enum { PLACES = 300, WIDTH = 4 };

/* One step of a table whose rows are asked for in `way`; by how much it moved. */
static void moved_table(int way, const char *policy, const char *devices, float *moved)
{
    static float ids[3 * PLACES], target[3 * PLACES];
    keel_model *m;
    keel_symbol x, y;
    keel_tensor before, after;
    keel_dataset *d;
    keel_strategy *s;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(PLACES), NULL, &x));
    if (way == 0) { /* counted by operations: above 256 bfloat16 has not all whole numbers */
        x = must_call(m, "ops.OnesLike", NULL, x);
        x = must_call(m, "ops.Cumsum", KEEL_ARGS(KEEL_ARG_INT("axis", 1)), x);
        must(keel_model_call_with(m, "ops.Subtract", NULL, KEEL_ARGS(KEEL_ARG_INT("x2", 1)), &x, 1,
                                  &x));
    } else /* read in bfloat16, which a layer makes of them */
        x = must_call(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1)), x);
    y = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_STR("name", "table"), KEEL_ARG_INT("input_dim", PLACES),
                            KEEL_ARG_INT("output_dim", WIDTH)),
                  x);
    y = must_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), y);
    must(keel_model_outputs(m, &y, 1));
    must(keel_model_set_dtype_policy(m, policy));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 9)) },
                            .loss = { { "mse" } } }));
    for (int i = 0; i < 3 * PLACES; i++) {
        ids[i] = (float)(i * 7 % 256);
        target[i] = (float)(i % PLACES * 37 % 101) / 50 - 1;
    }
    const keel_tensor in = { KEEL_FLOAT32, { 2, { 3, PLACES } }, ids },
                      out = { KEEL_FLOAT32, { 3, { 3, PLACES, 1 } }, target };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 3 };
    must(keel_model_get_weight(m, "table/embeddings", &before));
    must(keel_dataset_from_arrays(&d, &in, &out, NULL));
    must(keel_strategy_create(&s, devices));
    must(keel_fit(m, s, d, &o, NULL));
    must(keel_model_get_weight(m, "table/embeddings", &after));
    for (int i = 0; i < PLACES * WIDTH; i++)
        moved[i] = ((float *)after.data)[i] - ((float *)before.data)[i];
    keel_tensor_free(&before);
    keel_tensor_free(&after);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

/* Rows of a table are those of float32, and so are their gradients, whatever type holds numbers of
 * rows. */
static void tables_are_read_and_trained_as_in_float32(void **unused)
{
    (void)unused;
    static const char *const policies[] = { "mixed_bfloat16", "mixed_float16" };
    static float want[PLACES * WIDTH], got[PLACES * WIDTH], two[PLACES * WIDTH];
    for (int k = 0; k < 4; k++) {
        const int way = k & 1;
        double most = 0;
        moved_table(way, "float32", "cpu:0", want);
        moved_table(way, policies[k >> 1], "cpu:0", got);
        moved_table(way, policies[k >> 1], "cpu:0-1", two);
        for (int i = 0; i < PLACES * WIDTH; i++) most = fmax(most, fabsf(want[i]));
        assert_true(most > 0);
        for (int i = 0; i < PLACES * WIDTH; i++)
            if (!(fabsf(got[i] - want[i]) <= 0.02 * most))
                fail_msg("%s, way %d: row %d moved by %g, in float32 by %g", policies[k >> 1], way,
                         i / WIDTH, got[i], want[i]);
        assert_memory_equal(got, two, sizeof got);
    }
}

/* The weight 1 of a line, after one step on x behind a rectifier with the cap 1.26. */
static float after_step(const keel_arg *activation, const char *policy, float x)
{
    static const float target = 0.5f;
    keel_model *m;
    keel_symbol in, y;
    keel_tensor weight;
    keel_dataset *d;
    keel_strategy *s;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(1), NULL, &in));
    y = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_STR("name", "line"), KEEL_ARG_INT("units", 1),
                            KEEL_ARG_BOOL("use_bias", false),
                            KEEL_ARG_STR("kernel_initializer", "ones"),
                            activation ? *activation : (keel_arg){ 0 }),
                  in);
    if (!activation) y = must_call(m, "ReLU", KEEL_ARGS(KEEL_ARG_FLOAT("max_value", 1.26)), y);
    must(keel_model_outputs(m, &y, 1));
    must(keel_model_set_dtype_policy(m, policy));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    const keel_tensor one = { KEEL_FLOAT32, { 2, { 1, 1 } }, &x },
                      targets = { KEEL_FLOAT32, { 2, { 1, 1 } }, (void *)&target };
    must(keel_dataset_from_arrays(&d, &one, &targets, NULL));
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_fit(m, s, d, NULL, NULL));
    must(keel_model_get_weight(m, "line/kernel", &weight));
    const float after = *(const float *)weight.data;
    keel_tensor_free(&weight);
    keel_dataset_destroy(d);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return after;
}

/* Backward knows by the output that a value was capped; bfloat16 has no 1.26, but 1.2578. */
static void capped_values_have_no_gradient_in_any_type(void **unused)
{
    (void)unused;
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16" };
    static const keel_arg of_layer =
        KEEL_ARG_JSON("activation", "{\"module\": \"keras.layers\", \"class_name\": \"ReLU\", "
                                    "\"config\": {\"max_value\": 1.26}}");
    const keel_arg *const activations[] = { NULL, &of_layer };
    for (int k = 0; k < 6; k++) {
        const keel_arg *activation = activations[k / 3];
        const float capped = after_step(activation, policies[k % 3], 2);
        const float below = after_step(activation, policies[k % 3], 1);
        if (capped != 1 || !(fabsf(below - 0.99f) < 1e-3f))
            fail_msg("%s, %s: the weight is %g behind the cap and %g below it, not 1 and 0.99",
                     activation ? "activation" : "layer", policies[k % 3], capped, below);
    }
}

/* Also where a processor has no kernel of a narrow type, or none at all. The last test: oneDNN
 * keeps a limit. */
static void a_norm_of_one_number_behind_a_sum_moves_no_gamma(void **unused)
{
    (void)unused;
    static const keel_cpu_isa levels[] = { KEEL_CPU_AMX, KEEL_CPU_AVX2, KEEL_CPU_BASE };
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        keel_cpu_limit(levels[i]);
        norm_of_one_check(s, keel_cpu_isa_name(levels[i]));
    }
    keel_cpu_limit(KEEL_CPU_AMX);
    keel_strategy_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_keras_within_what_the_policy_changes),
        cmocka_unit_test(weights_do_not_depend_on_the_number_of_devices),
        cmocka_unit_test(a_profile_measures_layers_against_the_peak_of_their_type),
        cmocka_unit_test(float64_has_no_policy),
        cmocka_unit_test(the_policy_counts_and_is_saved),
        cmocka_unit_test(other_policies_are_refused_by_name),
        cmocka_unit_test(masks_go_between_layers_of_any_policy),
        cmocka_unit_test(tables_are_read_and_trained_as_in_float32),
        cmocka_unit_test(capped_values_have_no_gradient_in_any_type),
        cmocka_unit_test(a_norm_of_one_number_behind_a_sum_moves_no_gamma),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
