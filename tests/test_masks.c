/* Masks that an attention removes, in models that are built by calls: Keras fills in the argument
 * `mask` of a layer when the layer is called in Python, before any attention has run, so recurrent
 * layers and means see masks that a loss or a second attention does not. And masks that go into
 * models and come out of them. Numbers are golden/masks.json, made by golden/make_masks.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden.h"
#include "keel/train.h"
#include "must.h"

enum { BATCH = 4, TIME = 4 };

static keel_symbol call(keel_model *m, const char *layer, const keel_arg *args,
                        const keel_symbol *in, int n_in)
{
    keel_symbol out;
    must(keel_model_call(m, layer, args, in, n_in, &out));
    return out;
}

static keel_symbol sum_with_attention(keel_model *m, keel_symbol x)
{
    const keel_arg *heads = KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 3));
    const keel_symbol y = call(m, "MultiHeadAttention", heads, (keel_symbol[]){ x, x }, 2);
    return call(m, "Add", NULL, (keel_symbol[]){ y, x }, 2);
}

static float number(int64_t i, int k)
{
    return (float)((i * 37 + 29 * k + 11) % 101 - 50) / 100;
}

static void set_weights(keel_model *m)
{
    for (int k = 0; k < keel_model_weight_count(m); k++) {
        const char *name = keel_model_weight_name(m, k);
        keel_tensor w;
        must(keel_model_get_weight(m, name, &w));
        int64_t n = 1;
        for (int d = 0; d < w.shape.rank; d++) n *= w.shape.dim[d];
        for (int64_t i = 0; i < n; i++) ((float *)w.data)[i] = number(i, k);
        must(keel_model_set_weight(m, name, &w));
        keel_tensor_free(&w);
    }
}

#define STEPS KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_BOOL("return_sequences", true))

static const struct {
    const char *name;
    bool second;       /* LayerNormalization and another sum with an attention come first */
    const char *layer; /* behind the sum; NULL: none */
    bool steps;        /* it is recurrent */
    bool both;         /* it is called on the sum and the embedding */
} cases[] = {
    { "a loss behind a sum with an attention", false, NULL, false, false },
    { "a GRU behind the sum", false, "GRU", true, false },
    { "an LSTM behind the sum", false, "LSTM", true, false },
    { "a mean over the sum", false, "GlobalAveragePooling1D", false, false },
    { "a second attention", true, NULL, false, false },
    { "a GRU behind a second attention", true, "GRU", true, false },
    { "a mean over a second attention", true, "GlobalAveragePooling1D", false, false },
    { "a product with what attention was called on", false, "Multiply", false, true },
    { "an attention of the sum to its input", false, "Attention", false, true },
};
enum { CASES = sizeof cases / sizeof *cases };

static keel_model *build(int k)
{
    keel_model *m;
    keel_symbol ids, e, x;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_input(m, KEEL_DIMS(TIME), KEEL_ARGS(KEEL_ARG_STR("dtype", "int32")), &ids));
    e = call(m, "Embedding",
             KEEL_ARGS(KEEL_ARG_INT("input_dim", 9), KEEL_ARG_INT("output_dim", 8),
                       KEEL_ARG_BOOL("mask_zero", true)),
             &ids, 1);
    x = sum_with_attention(m, e);
    if (cases[k].second) x = sum_with_attention(m, call(m, "LayerNormalization", NULL, &x, 1));
    if (cases[k].layer)
        x = call(m, cases[k].layer, cases[k].steps ? STEPS : NULL, (keel_symbol[]){ x, e },
                 cases[k].both ? 2 : 1);
    x = call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), &x, 1);
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" }, .loss = { { "mse" } } }));
    set_weights(m);
    return m;
}

static void compare(const char *name, keel_model *m, const json_t *want, keel_dataset *data,
                    keel_strategy *s)
{
    const json_t *out = json_object_get(want, "out");
    keel_tensor got;
    keel_logs logs;
    must(keel_predict(m, s, data, NULL, &got));
    must(keel_evaluate(m, s, data, NULL, &logs));
    for (size_t i = 0; i < json_array_size(out); i++) {
        const double keras = json_number_value(json_array_get(out, i));
        const double keel = (double)((float *)got.data)[i];
        if (!golden_near(keel, keras, 1e-5))
            fail_msg("%s: number %zu is %g, in Keras %g", name, i, keel, keras);
    }
    if (!golden_near(logs.value[0], golden_number(want, "loss"), 1e-5))
        fail_msg("%s: the loss is %g, in Keras %g", name, logs.value[0],
                 golden_number(want, "loss"));
    keel_tensor_free(&got);
}

static const int32_t ids[BATCH][TIME] = {
    { 1, 6, 3, 8 }, { 5, 0, 0, 0 }, { 2, 3, 0, 0 }, { 5, 4, 1, 0 }
};

static void check(int k, keel_model *m, const json_t *want, keel_strategy *s)
{
    float targets[BATCH * TIME];
    const int n = (int)json_array_size(json_object_get(want, "out"));
    keel_tensor x = { KEEL_INT32, { 2, { BATCH, TIME } }, (void *)ids };
    keel_tensor y = { KEEL_FLOAT32, { 3, { BATCH, n / BATCH, 1 } }, targets };
    if (n == BATCH) y.shape.rank = 2;
    keel_dataset *data;
    for (int i = 0; i < n; i++) targets[i] = number(i, 99);
    must(keel_dataset_from_arrays(&data, &x, &y, NULL));
    compare(cases[k].name, m, want, data, s);
    keel_dataset_destroy(data);
}

static void layers_behind_attention_see_the_masks_that_they_see_in_keras(void **unused)
{
    (void)unused;
    json_t *golden = golden_load("masks.json");
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0-1"));
    assert_int_equal(json_object_size(json_object_get(golden, "cases")), CASES);
    for (int k = 0; k < CASES; k++) {
        const json_t *want = json_object_get(json_object_get(golden, "cases"), cases[k].name);
        keel_model *m = build(k), *again;
        assert_non_null(want);
        check(k, m, want, s);
        must(keel_model_save(m, "masks.keras"));
        must(keel_model_load(&again, "masks.keras"));
        check(k, again, want, s);
        keel_model_destroy(m);
        keel_model_destroy(again);
    }
    keel_strategy_destroy(s);
    json_decref(golden);
}

/* Calls on lists and dicts of which only some inputs have masks, before the others or behind them.
 */
static void a_model_inside_a_model_sees_the_masks_of_its_inputs(void **unused)
{
    (void)unused;
    json_t *golden = golden_load("masks.json");
    float rows[BATCH * TIME * 3], targets[BATCH];
    const keel_array_field fields[] = {
        { "rows", KEEL_ROLE_INPUT, NULL, { KEEL_FLOAT32, { 3, { BATCH, TIME, 3 } }, rows } },
        { "ids", KEEL_ROLE_INPUT, NULL, { KEEL_INT32, { 2, { BATCH, TIME } }, (void *)ids } },
        { "y", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT32, { 2, { BATCH, 1 } }, targets } },
    };
    keel_strategy *s;
    keel_dataset *data;
    keel_model *m, *again;
    for (int i = 0; i < BATCH * TIME * 3; i++) rows[i] = number(i, 98);
    for (int i = 0; i < BATCH; i++) targets[i] = number(i, 99);
    must(keel_strategy_create(&s, "cpu:0-1"));
    must(keel_dataset_from_fields(&data, fields, 3));
    must(keel_model_load(&m, golden_path("masks_inside.keras")));
    compare("read", m, json_object_get(golden, "inside"), data, s);
    must(keel_model_save(m, "masks.keras"));
    must(keel_model_load(&again, "masks.keras"));
    compare("read again", again, json_object_get(golden, "inside"), data, s);
    keel_model_destroy(again);
    keel_model_destroy(m);
    keel_dataset_destroy(data);
    keel_strategy_destroy(s);
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_inside_a_model_sees_the_masks_of_its_inputs),
        cmocka_unit_test(layers_behind_attention_see_the_masks_that_they_see_in_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
