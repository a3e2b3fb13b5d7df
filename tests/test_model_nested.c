/* Models as layers, built by calls: what they are named, which weights are moved, what a call
 * draws, and what is refused. (What Keras saves and predicts: tests/test_model_keras.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "model/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0) fail_msg("%s: %s", #call, keel_error());                                   \
    } while (0)
#define SAYS(call, want, text)                                                                     \
    do {                                                                                           \
        assert_int_equal(call, want);                                                              \
        if (!strstr(keel_error(), text)) fail_msg("%s: %s", #call, keel_error());                  \
    } while (0)

static keel_model *base_model(const char *name)
{
    keel_model *m = NULL;
    OK(keel_model_create(&m, name, KEEL_FLOAT32, 3));
    OK(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 6, 6, 1))));
    OK(keel_model_add(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", 2), KEEL_ARG_INT("kernel_size", 3))));
    OK(keel_model_add(m, "BatchNormalization", NULL));
    OK(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5))));
    OK(keel_model_add(m, "Flatten", NULL));
    return m;
}

/* base twice, the second time for inference only, and a head. */
static keel_model *outer_model(void)
{
    keel_model *m = NULL;
    keel_symbol x, y[2];
    OK(keel_model_create(&m, "outer", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call_model(m, base_model("base"), NULL, &x, 1, &y[0]));
    OK(keel_model_call_again(m, "base", &x, 1, &y[1]));
    OK(keel_model_call(m, "Add", NULL, y, 2, &x));
    OK(keel_model_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 3)), &x, 1, &x));
    OK(keel_model_outputs(m, &x, 1));
    return m;
}

static void weights_of_models_inside_have_names_paths_and_values(void **state)
{
    (void)state;
    keel_model *m = outer_model(), *alone = base_model("base");
    const struct {
        const char *name, *path;
    } want[] = {
        { "base/conv2d/kernel", "layers/sequential/layers/conv2d/vars/0" },
        { "base/conv2d/bias", "layers/sequential/layers/conv2d/vars/1" },
        { "base/batch_normalization/gamma", "layers/sequential/layers/batch_normalization/vars/0" },
        { "base/batch_normalization/beta", "layers/sequential/layers/batch_normalization/vars/1" },
        { "base/batch_normalization/moving_mean",
          "layers/sequential/layers/batch_normalization/vars/2" },
        { "base/batch_normalization/moving_variance",
          "layers/sequential/layers/batch_normalization/vars/3" },
        { "dense/kernel", "layers/dense/vars/0" },
        { "dense/bias", "layers/dense/vars/1" },
    };
    assert_int_equal(m->n_weight, 8);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(m->weight[i].info.name, want[i].name);
        assert_string_equal(m->weight[i].path, want[i].path);
    }
    assert_memory_equal(m->weight[0].data, alone->weight[0].data, 9 * 2 * sizeof(float));
    keel_model_destroy(m);
    keel_model_destroy(alone);
}

/* Does the summary call the layer frozen? */
static bool said_frozen(const keel_model *m, const char *layer)
{
    char *text, *line;
    OK(keel_model_summary(m, &text));
    line = strstr(text, layer);
    assert_non_null(line);
    line[strcspn(line, "\n")] = 0;
    const bool frozen = strstr(line, "(frozen)");
    keel_model_summary_free(text);
    return frozen;
}

static void a_frozen_model_freezes_each_layer_inside(void **state)
{
    (void)state;
    keel_model *m = outer_model();
    bool trainable;
    assert_int_equal(keel_model_trainable_count(m), 6);
    OK(keel_model_set_trainable(m, "base/conv2d", false));
    assert_int_equal(keel_model_trainable_count(m), 4);
    OK(keel_model_set_trainable(m, "base", false));
    assert_int_equal(keel_model_trainable_count(m), 2);
    assert_true(said_frozen(m, "base") && said_frozen(m, "conv2d"));
    OK(keel_model_get_trainable(m, "base/batch_normalization", &trainable));
    assert_false(trainable);
    OK(keel_model_set_trainable(m, "base/conv2d", true)); /* as Keras's model.trainable_variables */
    assert_int_equal(keel_model_trainable_count(m), 4);
    assert_false(said_frozen(m, "base") || said_frozen(m, "conv2d"));
    assert_true(said_frozen(m, "batch_normalization") && !said_frozen(m, "dense"));
    OK(keel_model_get_trainable(m, "base", &trainable));
    assert_false(trainable);
    OK(keel_model_set_trainable(m, "base", true));
    assert_int_equal(keel_model_trainable_count(m), 6);
    SAYS(keel_model_set_trainable(m, "base/dense", false), KEEL_EARG, "base/dense");
    SAYS(keel_model_set_trainable(m, "dense/kernel", false), KEEL_EARG, "dense/kernel");
    keel_model_destroy(m);
}

static keel_graph *emitted(const keel_model *m)
{
    keel_value in[2], out[2];
    keel_model_emission e = { .real = KEEL_FLOAT32, .training = true, .input = in, .output = out };
    OK(keel_model_emit(m, &e));
    return e.graph;
}

static void every_call_of_a_shared_layer_draws_anew(void **state)
{
    (void)state;
    keel_model *m = outer_model();
    keel_graph *g = emitted(m), *again = emitted(m);
    int stream[2], n = 0;
    for (int i = 0; i < g->n_node; i++) {
        if (strcmp(g->node[i].node.op->name, "dropout")) continue;
        assert_true(n < 2);
        assert_int_equal(g->node[i].node.stream, again->node[i].node.stream);
        stream[n++] = g->node[i].node.stream;
    }
    assert_int_equal(n, 2);
    assert_int_not_equal(stream[0], stream[1]);
    assert_int_equal(stream[0], 5); /* input, base, its input, conv2d, batch_normalization */
    keel_graph_destroy(g);
    keel_graph_destroy(again);
    keel_model_destroy(m);
}

static void a_model_called_for_inference_does_not_train(void **state)
{
    (void)state;
    keel_model *m = NULL;
    keel_symbol x;
    OK(keel_model_create(&m, "outer", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call_model(m, base_model("base"), KEEL_ARGS(KEEL_ARG_BOOL("training", false)), &x,
                             1, &x));
    OK(keel_model_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5)), &x, 1, &x));
    OK(keel_model_outputs(m, &x, 1));
    keel_graph *g = emitted(m);
    for (int i = 0; i < g->n_node; i++)
        assert_int_equal(g->node[i].node.training, !strcmp(g->node[i].node.layer, "dropout"));
    keel_graph_destroy(g);
    keel_model_destroy(m);
}

/* A model whose outer one has weights already, called for inference, and an operation with a number
 * in its call: what comes back from the file is the same. */
static keel_model *headed_model(void)
{
    keel_model *m = NULL;
    keel_symbol x, y[2];
    OK(keel_model_create(&m, "headed", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1)), &x, 1, &x));
    OK(keel_model_call_model(m, base_model("base"), KEEL_ARGS(KEEL_ARG_BOOL("training", false)), &x,
                             1, &y[0]));
    OK(keel_model_call_with(m, "ops.Multiply", NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", 2.5)), y, 1,
                            &y[1]));
    OK(keel_model_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 3)), &y[1], 1, &y[1]));
    OK(keel_model_outputs(m, y, 2));
    return m;
}

static void a_model_is_taken_into_one_that_has_weights(void **state)
{
    (void)state;
    keel_model *m = headed_model(), *alone = base_model("base");
    static const char *const names[] = {
        "dense/kernel",
        "dense/bias",
        "base/conv2d/kernel",
        "base/conv2d/bias",
        "base/batch_normalization/gamma",
        "base/batch_normalization/beta",
        "base/batch_normalization/moving_mean",
        "base/batch_normalization/moving_variance",
        "dense_1/kernel",
        "dense_1/bias",
    };
    assert_int_equal(m->n_weight, 10);
    for (int i = 0; i < 10; i++) assert_string_equal(m->weight[i].info.name, names[i]);
    for (int i = 0; i < 6; i++) {
        const keel_shape *shape = &alone->weight[i].info.spec.shape;
        assert_true(keel_shape_equal(&m->weight[i + 2].info.spec.shape, shape));
        assert_memory_equal(m->weight[i + 2].data, alone->weight[i].data,
                            (size_t)keel_shape_count(shape) * sizeof(float));
    }
    keel_model_destroy(m);
    keel_model_destroy(alone);
}

static void the_summary_shows_models_inside_and_what_each_output_is_compiled_with(void **state)
{
    (void)state;
    static const char want[] =
        "Model: \"headed\" (Functional)\n"
        "Layer                  Class               Output shape     Parameters  Connected to\n"
        "input_layer            InputLayer          (None, 6, 6, 1)           0\n"
        "base                   Sequential          (None, 32)               28  input_layer\n"
        "  input_layer          InputLayer          (None, 6, 6, 1)           0\n"
        "  conv2d               Conv2D              (None, 4, 4, 2)          20  (frozen)\n"
        "  batch_normalization  BatchNormalization  (None, 4, 4, 2)           8\n"
        "  dropout              Dropout             (None, 4, 4, 2)           0\n"
        "  flatten              Flatten             (None, 32)                0\n"
        "head                   Dense               (None, 3)                99  base\n"
        "add                    Add                 (None, 3)                 0  head, head\n"
        "Total parameters: 127 (508 B)\n"
        "Trainable parameters: 103 (412 B)\n"
        "Not trainable parameters: 24 (96 B)\n"
        "Dtype policy: float32\n"
        "Optimizer: Adam, learning rate 0.25, 0 steps done, 206 numbers of state\n"
        "Loss: MeanSquaredError of add\n"
        "Loss: MeanAbsoluteError of head, times 0.5\n"
        "Metrics: add_mae, head_accuracy, head_mse (weighted)\n";
    keel_model *m = NULL;
    keel_symbol x, y[2];
    char *text;
    OK(keel_model_create(&m, "headed", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call_model(m, base_model("base"), NULL, &x, 1, &x));
    OK(keel_model_call(m, "Dense",
                       KEEL_ARGS(KEEL_ARG_INT("units", 3), KEEL_ARG_STR("name", "head")), &x, 1,
                       &y[1]));
    OK(keel_model_call(m, "Add", NULL, (keel_symbol[]){ y[1], y[1] }, 2, &y[0]));
    OK(keel_model_outputs(m, y, 2));
    OK(keel_model_compile(
        m,
        &(keel_compile){ KEEL_COMPILE,
                         .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.25)) },
                         .loss = { { "mse" }, { "mae", NULL, 1 } }, .loss_weights = { 1, 0.5 },
                         .metrics = { { "accuracy", NULL, 1 }, { "mae" } },
                         .weighted_metrics = { { "mse", NULL, 1 } } }));
    OK(keel_model_set_trainable(m, "base/conv2d", false));
    OK(keel_model_summary(m, &text));
    assert_string_equal(text, want);
    keel_model_summary_free(text);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void what_cannot_be_a_layer_stays_the_callers(void **state)
{
    (void)state;
    keel_model *m = NULL, *base = base_model("base"), *other = NULL;
    keel_symbol x, flat, y;
    OK(keel_model_create(&m, "outer", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call(m, "Flatten", NULL, &x, 1, &flat));
    SAYS(keel_model_call_model(m, base, NULL, &flat, 1, &y), KEEL_ESHAPE, "base");
    SAYS(keel_model_call_model(m, base, KEEL_ARGS(KEEL_ARG_BOOL("train", true)), &x, 1, &y),
         KEEL_EARG, "'train'");
    SAYS(keel_model_call_model(m, base, NULL, (keel_symbol[]){ x, x }, 2, &y), KEEL_EARG,
         "1 input");
    assert_string_equal(keel_model_weight_name(base, 0), "conv2d/kernel");
    assert_int_equal(base->n_weight, 6);
    assert_int_equal(m->n_weight, 0);
    assert_int_equal(m->n_layer, 2);
    OK(keel_model_call_model(m, base, NULL, &x, 1, &y));
    SAYS(keel_model_call_model(m, base, NULL, &x, 1, &y), KEEL_EARG, "a layer already");
    other = base_model("base");
    SAYS(keel_model_call_model(m, other, NULL, &x, 1, &y), KEEL_EARG, "two layers are named");
    OK(keel_model_set_dtype(other, KEEL_FLOAT64));
    keel_model *half = NULL;
    OK(keel_model_create(&half, "half", KEEL_FLOAT32, 1));
    OK(keel_model_input(half, KEEL_DIMS(6, 6, 1), NULL, &flat));
    SAYS(keel_model_call_model(m, half, NULL, &x, 1, &y), KEEL_EARG, "'half' is not finished");
    keel_model_destroy(half);
    SAYS(keel_model_call_model(m, other, NULL, &x, 1, &y), KEEL_EARG, "float64");
    keel_model_destroy(other);
    keel_model_destroy(m);
}

static const char *scratch(void)
{
    static char path[512];
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(path, sizeof path, "%s/nested.%ld.keras", folder ? folder : "/tmp", (long)getpid());
    return path;
}

static void a_saved_model_comes_back_and_can_be_a_layer_again(void **state)
{
    (void)state;
    keel_model *m = outer_model(), *back = NULL, *third = NULL;
    keel_symbol x, y;
    OK(keel_model_set_trainable(m, "base", false));
    OK(keel_model_save(m, scratch()));
    OK(keel_model_load(&back, scratch()));
    assert_int_equal(back->n_weight, m->n_weight);
    assert_int_equal(keel_model_trainable_count(back), 2);
    for (int i = 0; i < m->n_weight; i++) {
        assert_string_equal(back->weight[i].info.name, m->weight[i].info.name);
        assert_memory_equal(back->weight[i].data, m->weight[i].data,
                            (size_t)keel_shape_count(&m->weight[i].info.spec.shape) * 4);
    }
    OK(keel_model_create(&third, "third", KEEL_FLOAT32, 1));
    OK(keel_model_input(third, KEEL_DIMS(6, 6, 1), NULL, &x));
    OK(keel_model_call_model(third, back, NULL, &x, 1, &y));
    OK(keel_model_outputs(third, &y, 1));
    assert_string_equal(third->weight[0].info.name, "outer/base/conv2d/kernel");
    OK(keel_model_save(third, scratch()));
    keel_model_destroy(third);
    OK(keel_model_load(&third, scratch()));
    assert_int_equal(keel_model_trainable_count(third), 2);
    unlink(scratch());
    keel_model_destroy(third);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void calls_of_a_program_come_back_with_their_arguments(void **state)
{
    (void)state;
    keel_model *m = headed_model(), *back = NULL;
    json_t *config;
    OK(keel_model_to_config(m, &config));
    const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
    const json_t *base = json_array_get(layers, 2), *multiply = json_array_get(layers, 3), *call;
    assert_string_equal(json_string_value(json_object_get(base, "name")), "base");
    call = json_array_get(json_object_get(base, "inbound_nodes"), 0);
    assert_true(json_is_false(json_object_get(json_object_get(call, "kwargs"), "training")));
    assert_true(json_is_object(json_array_get(json_object_get(call, "args"), 0)));
    call = json_array_get(json_object_get(multiply, "inbound_nodes"), 0);
    assert_true(json_real_value(json_object_get(json_object_get(call, "kwargs"), "x2")) == 2.5);
    OK(keel_model_begin(&back, NULL, KEEL_FLOAT32, 1));
    OK(keel_model_from_config(back, config));
    json_decref(config);
    keel_graph *g[2] = { emitted(m), emitted(back) };
    assert_int_equal(g[0]->n_node, g[1]->n_node);
    for (int i = 0; i < g[0]->n_node; i++) {
        const keel_node *a = &g[0]->node[i].node, *b = &g[1]->node[i].node;
        assert_string_equal(a->layer, b->layer);
        assert_string_equal(a->op->name, b->op->name);
        assert_int_equal(a->training, b->training);
        if (strncmp(a->layer, "base/", 5) == 0) assert_false(a->training);
    }
    for (int i = 0; i < 2; i++) keel_graph_destroy(g[i]);
    keel_model_destroy(m);
    keel_model_destroy(back);
    assert_int_equal(keel_memory_live(), 0);
}

/* A layer that another holds is frozen with it, also in the file of a model that was loaded. */
static void held_layers_of_a_loaded_model_are_written_frozen(void **state)
{
    (void)state;
    keel_model *m = NULL, *back = NULL;
    keel_symbol x;
    json_t *config;
    OK(keel_model_create(&m, "held", KEEL_FLOAT32, 1));
    OK(keel_model_input(m, KEEL_DIMS(3, 4), NULL, &x));
    OK(keel_model_call(m, "TimeDistributed",
                       KEEL_ARGS(KEEL_ARG_JSON("layer", "{\"class_name\": \"Dense\", \"config\": "
                                                        "{\"name\": \"d\", \"units\": 2}}")),
                       &x, 1, &x));
    OK(keel_model_outputs(m, &x, 1));
    OK(keel_model_save(m, scratch()));
    keel_model_destroy(m);
    OK(keel_model_load(&back, scratch()));
    OK(keel_model_set_trainable(back, "time_distributed", false));
    OK(keel_model_to_config(back, &config));
    const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
    const json_t *own = json_object_get(json_array_get(layers, 1), "config");
    const json_t *inside = json_object_get(json_object_get(own, "layer"), "config");
    assert_true(json_is_false(json_object_get(own, "trainable")));
    assert_true(json_is_false(json_object_get(inside, "trainable")));
    json_decref(config);
    keel_model_destroy(back);
    unlink(scratch());
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_models_inside_have_names_paths_and_values),
        cmocka_unit_test(a_frozen_model_freezes_each_layer_inside),
        cmocka_unit_test(every_call_of_a_shared_layer_draws_anew),
        cmocka_unit_test(a_model_called_for_inference_does_not_train),
        cmocka_unit_test(what_cannot_be_a_layer_stays_the_callers),
        cmocka_unit_test(a_saved_model_comes_back_and_can_be_a_layer_again),
        cmocka_unit_test(the_summary_shows_models_inside_and_what_each_output_is_compiled_with),
        cmocka_unit_test(a_model_is_taken_into_one_that_has_weights),
        cmocka_unit_test(calls_of_a_program_come_back_with_their_arguments),
        cmocka_unit_test(held_layers_of_a_loaded_model_are_written_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
