/* Configurations that no Keras would write: each is an error that says what and where, and never a
 * crash; and what Keras does write in several forms is read in all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

#define INPUT(name, dims)                                                                          \
    "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"" name "\",\"batch_shape\":" dims       \
    "},\"name\":\"" name "\",\"inbound_nodes\":[]}"
#define TENSOR(name, node)                                                                         \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":[\"" name "\"," #node      \
    ",0]}}"
#define LAYER(class_name, name, config, nodes)                                                     \
    "{\"class_name\":\"" class_name "\",\"config\":{\"name\":\"" name "\"" config                  \
    "},\"inbound_nodes\":[" nodes "]}"
#define NODE(inputs)        "{\"args\":[" inputs "],\"kwargs\":{}}"
#define DENSE(name, inputs) LAYER("Dense", name, ",\"units\":3", NODE(inputs))
#define FUNCTIONAL(layers, in, out)                                                                \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"layers\":[" layers                \
    "],\"input_layers\":" in ",\"output_layers\":" out "}}"
#define SEQUENTIAL(layers)                                                                         \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" layers "]}}"
#define COMPILED(config)                                                                           \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" INPUT(                \
        "i", "[null,4]") "," DENSE("d", "") "]},\"compile_config\":" config "}"
#define COMPILED_WITH(layer, config)                                                               \
    "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[" INPUT(                \
        "i", "[null,4]") "," layer "]},\"compile_config\":" config "}"
#define HELD(layer)   ",\"layer\":" layer
#define STEPS         INPUT("i", "[null,5,4]")
#define I             INPUT("i", "[null,4]")
#define WIRED(layers) FUNCTIONAL(layers, "[\"i\",0,0]", "[\"d\",0,0]")

static const struct {
    const char *config;
    keel_status want;
    const char *says;
} bad[] = {
    { "[]", KEEL_EFORMAT, "class_name" },
    { "{}", KEEL_EFORMAT, "class_name" },
    { "{\"class_name\":\"Sequential\"}", KEEL_EFORMAT, "config" },
    { "{\"class_name\":7,\"config\":{}}", KEEL_EFORMAT, "class_name" },
    { "{\"class_name\":\"MyModel\",\"config\":{}}", KEEL_EUNSUP,
      "class 'MyModel': only Sequential and Functional are supported; keras.Model(x, model.call" },
    { "{\"class_name\":\"Sequential\",\"config\":{}}", KEEL_EFORMAT, "layers" },
    { SEQUENTIAL(""), KEEL_EFORMAT, "empty" },
    { SEQUENTIAL("7"), KEEL_EUNSUP, "input shape" },
    { SEQUENTIAL(I ",7"), KEEL_EFORMAT, "layers[1]" },
    { SEQUENTIAL(I "," I), KEEL_EFORMAT, "middle" },
    { SEQUENTIAL(I ",{\"class_name\":\"Dense\",\"config\":{\"units\":3}}"), KEEL_EFORMAT, "name" },
    { SEQUENTIAL(I "," DENSE("d", "") "," DENSE("d", "")), KEEL_EARG, "named 'd'" },
    { SEQUENTIAL(STEPS "," LAYER("LSTM", "l", ",\"units\":3,\"return_state\":true", "")),
      KEEL_EUNSUP, "layer 'l' has 3 outputs" },
    { SEQUENTIAL(
          STEPS "," LAYER("GRU", "g", ",\"units\":3,\"return_state\":true", "") "," DENSE("d", "")),
      KEEL_EUNSUP, "layer 'g' has 2 outputs" },
    { SEQUENTIAL(I "," LAYER("MyLayer", "one", "", "") "," LAYER("Flatten", "f", "", "") "," LAYER(
          "YourLayer", "two", "", "")),
      KEEL_EUNSUP, "2 layers are not supported: layer 'one': no class 'MyLayer'; layer 'two'" },
    { SEQUENTIAL(I "," LAYER("Sequential", "inner", "", "")), KEEL_EFORMAT,
      "layer 'inner': layers: expected a list" },
    { SEQUENTIAL(I "," LAYER("MyLayer", "l", "", "")), KEEL_EUNSUP, "MyLayer" },
    { SEQUENTIAL(STEPS "," LAYER("TimeDistributed", "t", "", "")), KEEL_EARG,
      "layer: expected a layer" },
    { SEQUENTIAL(STEPS "," LAYER("TimeDistributed", "t", ",\"layer\":\"Dense\"", "")), KEEL_EARG,
      "layer: expected a layer" },
    { SEQUENTIAL(STEPS "," LAYER("TimeDistributed", "t", HELD(INPUT("j", "[null,4]")), "")),
      KEEL_EARG, "layer: a InputLayer cannot be held" },
    { SEQUENTIAL(STEPS "," LAYER(
          "TimeDistributed", "t",
          HELD(LAYER("TimeDistributed", "u", HELD(LAYER("MyLayer", "one", "", "")), "")),
          "") "," LAYER("Lost", "two", "", "")),
      KEEL_EUNSUP, "2 layers are not supported: layer 'one': no class 'MyLayer'; layer 'two'" },
    { SEQUENTIAL(I "," LAYER("TimeDistributed", "t", HELD(DENSE("d", "")), "")), KEEL_ESHAPE,
      "layer 't': expected rows of (time, ...)" },
    { SEQUENTIAL(INPUT("i", "[null,1025,3]") "," LAYER("TimeDistributed", "t",
                                                       HELD(LAYER("Flatten", "f", "", "")), "")),
      KEEL_EUNSUP, "1025 steps" },
    { SEQUENTIAL(I
                 ",{\"class_name\":\"Mine\",\"config\":{\"name\":\"m\"},\"registered_name\":\"pkg>"
                 "Mine\"}"),
      KEEL_EUNSUP, "pkg>Mine" },
    { SEQUENTIAL(INPUT("i", "[null,null]") "," DENSE("d", "")), KEEL_ESHAPE, "'d'" },
    { SEQUENTIAL(INPUT("i", "[null,\"x\"]")), KEEL_EARG, "batch_shape" },
    { SEQUENTIAL(I ",{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\"},\"module\":\"mine\"}"),
      KEEL_EUNSUP, "'Dense' of the module mine" },
    { SEQUENTIAL(INPUT("i", "[null,1e9]")), KEEL_EARG, "batch_shape" },
    { SEQUENTIAL(INPUT("i", "[null,1000000000000,1000000000000]")), KEEL_ESHAPE, "" },
    { SEQUENTIAL(INPUT("i", "[null,1,1,1,1,1,1,1]")), KEEL_EUNSUP, "batch_shape" },
    { SEQUENTIAL(INPUT("i", "{}")), KEEL_EARG, "batch_shape" },
    { SEQUENTIAL(I "," LAYER("Reshape", "r", ",\"target_shape\":[0]", "")), KEEL_ESHAPE, "'r'" },

    { FUNCTIONAL("", "[]", "[]"), KEEL_EFORMAT, "output" },
    { FUNCTIONAL(I, "[\"i\",0,0]", "[]"), KEEL_EFORMAT, "no output" },
    { WIRED(I "," DENSE("d", TENSOR("x", 0))), KEEL_EFORMAT, "no layer 'x'" },
    { WIRED(I "," DENSE("d", TENSOR("i", 1))), KEEL_EFORMAT, "not a call 1" },
    { WIRED(I "," DENSE("d", TENSOR("i", -1))), KEEL_EFORMAT, "not a call -1" },
    { WIRED(I "," DENSE("d", TENSOR("d", 0))), KEEL_EFORMAT, "cycle" },
    { WIRED(I "," DENSE("d", TENSOR("e", 0)) "," DENSE("e", TENSOR("d", 0))), KEEL_EFORMAT,
      "cycle" },
    { WIRED(I
            "," LAYER("Dense", "d", ",\"units\":4", NODE(TENSOR("d", 1)) "," NODE(TENSOR("i", 0)))),
      KEEL_EFORMAT, "cycle" },
    { WIRED(I "," LAYER("Dense", "d", ",\"units\":3", "")), KEEL_EFORMAT, "never" },
    { WIRED(I "," LAYER("Dense", "d", ",\"units\":3", "7")), KEEL_EFORMAT, "inbound" },
    { WIRED(I "," LAYER("Dense", "d", ",\"units\":3", "[[\"i\",0,0,{}]]")), KEEL_EFORMAT,
      "inbound_nodes" },
    { WIRED(I "," DENSE("d", "5")), KEEL_EUNSUP, "layer 'd'" },
    { WIRED(I "," DENSE("d", "[[[[[[[[[[[[]]]]]]]]]]]]")), KEEL_EFORMAT, "deep" },
    { WIRED(I "," DENSE("d", "")), KEEL_EARG, "takes 1" },
    { WIRED(I "," LAYER("Dense", "d", ",\"units\":3",
                        "{\"args\":[" TENSOR("i", 0) "],\"kwargs\":{\"mask\":1}}")),
      KEEL_EUNSUP, "'mask'" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[\"d\",0,0]", "[\"d\",0,0]"), KEEL_EUNSUP,
      "'d' is no InputLayer" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[]", "[\"d\",0,0]"), KEEL_EFORMAT,
      "input_layers" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[[\"i\",0,0],[\"i\",0,0]]", "[\"d\",0,0]"),
      KEEL_EFORMAT, "twice" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[\"i\",0,0]", "[\"d\",0,1]"), KEEL_EFORMAT,
      "has 1 output, not an output 1" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[\"i\",0,0]", "7"), KEEL_EFORMAT, "output" },
    { FUNCTIONAL(I "," DENSE("d", TENSOR("i", 0)), "[\"i\",0,0]", "[[\"d\",\"0\",0]]"),
      KEEL_EFORMAT, "reference" },
    { WIRED(I "," DENSE("d", TENSOR("i", 0)) "," DENSE("e", TENSOR("i", 0))), KEEL_EARG,
      "'e' leads to no output" },

    { COMPILED_WITH(LAYER("Lambda", "twice", "", ""), "{}"), KEEL_EUNSUP,
      "a Lambda holds Python code" },
    { COMPILED("7"), KEEL_EARG, "compile_config" },
    { COMPILED("{\"optimizer\":7}"), KEEL_EARG, "optimizer" },
    { COMPILED("{\"optimizer\":\"adamant\"}"), KEEL_EUNSUP, "adamant" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":\"hunge\"}"), KEEL_EUNSUP, "hunge" },
    { COMPILED("{\"optimizer\":\"adamant\",\"loss\":[\"mse\"],\"metrics\":[\"acc\",[\"auk\"]],"
               "\"weighted_metrics\":{\"d\":{\"class_name\":\"function\",\"config\":\"own\"}}}"),
      KEEL_EUNSUP, "3 parts are not supported: optimizer 'adamant'; metric 'auk'; metric 'own'" },
    { COMPILED("{\"optimizer\":\"adamant\",\"loss\":{\"class_name\":\"CategoricalCrossentropy\","
               "\"config\":{\"dtype\":\"float16\"}}}"),
      KEEL_EUNSUP,
      "2 parts are not supported: optimizer 'adamant'; loss: CategoricalCrossentropy: dtype" },
    { COMPILED_WITH(LAYER("MyLayer", "one", "", ""),
                    "{\"optimizer\":\"adamant\",\"loss\":\"hunge\",\"metrics\":[\"auk\"]}"),
      KEEL_EUNSUP,
      "4 parts are not supported: layer 'one': no class 'MyLayer'; optimizer 'adamant'; loss "
      "'hunge'; "
      "metric 'auk'" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":7}"), KEEL_EARG, "loss" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":[\"mse\",\"mse\"]}"), KEEL_EARG, "1 output" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":{\"x\":\"mse\"}}"), KEEL_EARG, "no output 'x'" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":{\"d\":[\"mse\",\"mae\"]}}"), KEEL_EUNSUP,
      "2 losses of the output 'd'" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":{\"d\":[]}}"), KEEL_EARG, "loss" },
    { COMPILED("{\"optimizer\":\"sgd\",\"loss\":\"mse\",\"loss_weights\":[\"a\"]}"), KEEL_EARG,
      "loss_weights" },
    { COMPILED("{\"optimizer\":\"sgd\",\"metrics\":\"mae\"}"), KEEL_EARG, "metrics" },
    { COMPILED("{\"optimizer\":\"sgd\",\"metrics\":[7]}"), KEEL_EARG, "metric" },
    { COMPILED("{\"optimizer\":\"sgd\",\"metrics\":[[[[[[[\"mae\"]]]]]]]}"), KEEL_EARG, "deep" },
};

static keel_status load(const char *config, keel_model **out)
{
    keel_model *m = NULL;
    assert_int_equal(keel_model_create(&m, NULL, KEEL_FLOAT32, 0), KEEL_OK);
    m->file_config = json_loads(config, JSON_REJECT_DUPLICATES, NULL);
    if (!m->file_config) fail_msg("no JSON: %s", config);
    keel_status s = keel_model_read_root(m);
    if (s >= 0 && m->refused && !out) s = keel_fail(KEEL_EUNSUP, "%s", m->refused);
    if (s < 0 || !out)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

static void a_damaged_configuration_is_an_error_that_says_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const keel_status s = load(bad[i].config, NULL);
        if (s != bad[i].want || !strstr(keel_error(), bad[i].says))
            fail_msg("%s:\n  %s (%s), expected %s and '%s'", bad[i].config, keel_status_name(s),
                     keel_error(), keel_status_name(bad[i].want), bad[i].says);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static const struct {
    const char *config, *loss, *metric; /* of the first */
    int n_metric;
    const char *left_out;
} good[] = {
    { "null", NULL, NULL, 0 },
    { "{\"optimizer\":null}", NULL, NULL, 0 },
    { "{\"optimizer\":\"sgd\",\"loss\":\"mse\"}", "MeanSquaredError", NULL, 0 },
    { "{\"optimizer\":{\"class_name\":\"SGD\"},\"loss\":\"mse\"}", "MeanSquaredError", NULL, 0 },
    { "{\"optimizer\":\"sgd\",\"loss\":[\"mean_squared_error\"],\"metrics\":[\"mae\"]}",
      "MeanSquaredError", "mae", 1 },
    { "{\"optimizer\":\"sgd\",\"loss\":{\"d\":[\"mse\"]}}", "MeanSquaredError", NULL, 0 },
    { "{\"optimizer\":\"sgd\",\"loss\":{\"d\":\"mse\"},\"metrics\":{\"d\":[\"mae\",\"acc\"]}}",
      "MeanSquaredError", "mae", 2 },
    { "{\"optimizer\":\"sgd\",\"loss\":{\"module\":\"builtins\",\"class_name\":\"function\","
      "\"config\""
      ":\"mean_squared_error\",\"registered_name\":\"mean_squared_error\"},\"metrics\":[[\"mse\"]]"
      "}",
      "MeanSquaredError", "mse", 1 },
    { "{\"optimizer\":{\"class_name\":\"SGD\",\"config\":{\"name\":\"SGD\"}},\"loss\":{\"class_"
      "name\":"
      "\"MeanSquaredError\",\"config\":{\"name\":\"l\",\"reduction\":\"sum\"}},\"loss_weights\":[2]"
      ","
      "\"metrics\":[{\"class_name\":\"MeanAbsoluteError\",\"config\":{\"name\":\"off\",\"dtype\":"
      "\"float32\"}}],\"weighted_metrics\":[]}",
      "MeanSquaredError", "off", 1 },
    { "{\"optimizer\":\"sgd\",\"loss\":{\"class_name\":\"__tuple__\",\"items\":[\"mse\"]}}",
      "MeanSquaredError", NULL, 0 },
    /* metrics that Keel has, but not with these arguments, and one that it does not have */
    { "{\"optimizer\":\"sgd\",\"loss\":\"mse\",\"metrics\":[{\"class_name\":\"MeanIoU\",\"config\":"
      "{\"num_classes\":3,\"axis\":1}},\"mae\",{\"class_name\":\"TopKCategoricalAccuracy\","
      "\"config\":{\"k\":0}},{\"module\":\"mine\",\"class_name\":\"Odd\",\"config\":{}}]}",
      "MeanSquaredError", "mae", 1,
      "MeanIoU (axis (along a dim of classes Keras fails, and 0 is that of rows) must be -1, not "
      "1: nothing else is "
      "supported), TopKCategoricalAccuracy (k must be at least 1, not 0), Odd" },
};

static void every_form_of_compile_config_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        keel_text text = { 0 };
        keel_model *m = NULL;
        keel_text_add(&text, "%s", COMPILED("@"));
        char *at = strchr(text.data, '@');
        *at = 0;
        keel_text whole = { 0 };
        keel_text_add(&whole, "%s%s%s", text.data, good[i].config, at + 1);
        if (load(whole.data, &m) < 0) fail_msg("%s: %s", good[i].config, keel_error());
        const keel_model_compiled *c = &m->compiled;
        if (good[i].loss)
            assert_string_equal(c->loss[0].type->name, good[i].loss);
        else
            assert_null(c->loss[0].type);
        assert_int_equal(c->n_metric, good[i].n_metric);
        if (good[i].metric) assert_string_equal(c->metric[0].name, good[i].metric);
        assert_string_equal(c->left_out ? c->left_out : "",
                            good[i].left_out ? good[i].left_out : "");
        json_t *written = NULL;
        if (keel_model_to_config(m, &written) < 0) fail_msg("%s: %s", good[i].config, keel_error());
        json_decref(written);
        keel_model_destroy(m);
        keel_text_free(&text);
        keel_text_free(&whole);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* A chain of n layers, listed from its end. */
static char *long_chain(int n)
{
    keel_text t = { 0 };
    keel_text_add(&t, "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"layers\":[");
    for (int i = n; i > 0; i--)
        keel_text_add(
            &t,
            "{\"class_name\":\"Flatten\",\"config\":{\"name\":\"l%d\"},\"inbound_nodes\":[{"
            "\"args\":[{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":["
            "\"l%d\",0,0]}}],\"kwargs\":{}}]},",
            i, i - 1);
    keel_text_add(
        &t,
        "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"l0\",\"batch_shape\":[null,2]"
        "},\"inbound_nodes\":[]}],\"input_layers\":[\"l0\",0,0],\"output_layers\":[\"l%d\",0,"
        "0]}}",
        n);
    assert_false(t.failed);
    return t.data;
}

static void a_long_chain_needs_no_deep_stack_and_too_many_layers_are_refused(void **state)
{
    (void)state;
    keel_model *m = NULL;
    char *text = long_chain(3000);
    if (load(text, &m) < 0) fail_msg("%s", keel_error());
    assert_int_equal(m->n_layer, 3001);
    assert_string_equal(m->layer[1].name, "l1");
    keel_model_destroy(m);
    keel_free(text);
    text = long_chain(KEEL_MODEL_LAYERS_MAX + 1);
    assert_int_equal(load(text, NULL), KEEL_EUNSUP);
    keel_free(text);
    assert_int_equal(keel_memory_live(), 0);
}

static void what_compile_asks_in_vain_can_be_replaced(void **state)
{
    (void)state;
    keel_model *m = NULL;
    double rate;
    assert_int_equal(
        load(COMPILED("{\"optimizer\":{\"class_name\":\"MultiOptimizer\",\"config\":{}},"
                      "\"loss\":\"mse\",\"metrics\":[\"mae\"]}"),
             &m),
        KEEL_OK);
    assert_false(keel_model_is_compiled(m));
    assert_non_null(strstr(keel_model_refused(m), "MultiOptimizer"));
    /* what it says is not forgotten: the loss alone mends nothing, another optimizer does */
    assert_int_equal(
        keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .loss = { { "mse" } } }),
        KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "MultiOptimizer"));
    assert_non_null(keel_model_refused(m));
    assert_int_equal(
        keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "sgd" } }), KEEL_OK);
    assert_null(keel_model_refused(m));
    assert_int_equal(keel_model_learning_rate(m, &rate), KEEL_OK);
    assert_string_equal(keel_model_loss_name(m, 0), "MeanSquaredError");
    assert_int_equal(m->compiled.n_metric, 1);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_configuration_is_an_error_that_says_where),
        cmocka_unit_test(every_form_of_compile_config_is_read),
        cmocka_unit_test(a_long_chain_needs_no_deep_stack_and_too_many_layers_are_refused),
        cmocka_unit_test(what_compile_asks_in_vain_can_be_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
