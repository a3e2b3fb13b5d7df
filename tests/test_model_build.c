/* Building models by calls: what comes out, what is refused and by which name, and that a call that
 * fails leaves the model as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "keel/train.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0) fail_msg("%s: %s", #call, keel_error());                                   \
    } while (0)

#define SAYS(call, status, text)                                                                   \
    do {                                                                                           \
        assert_int_equal(call, status);                                                            \
        if (!strstr(keel_error(), text)) fail_msg("'%s' does not say '%s'", keel_error(), text);   \
    } while (0)

static keel_model *sequential(uint64_t seed)
{
    keel_model *m = NULL;
    OK(keel_model_create(&m, NULL, KEEL_FLOAT32, seed));
    OK(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 8, 8, 3))));
    OK(keel_model_add(m, "Conv2D",
                      KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INTS("kernel_size", 3, 3),
                                KEEL_ARG_STR("activation", "relu"),
                                KEEL_ARG_STR("kernel_regularizer", "l2"))));
    OK(keel_model_add(m, "BatchNormalization", NULL));
    OK(keel_model_add(m, "Flatten", NULL));
    OK(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5))));
    OK(keel_model_add(m, "Dense",
                      KEEL_ARGS(KEEL_ARG_INT("units", 5), KEEL_ARG_STR("name", "out"))));
    return m;
}

static void a_sequential_model_has_shapes_weights_and_a_table(void **state)
{
    (void)state;
    keel_model *m = sequential(1);
    keel_shape shape;
    int64_t trainable;
    char *text = NULL;
    assert_int_equal(keel_model_layer_count(m), 6);
    assert_string_equal(keel_model_name(m), "sequential");
    assert_string_equal(keel_model_layer_name(m, 1), "conv2d");
    assert_string_equal(keel_model_layer_class(m, 2), "BatchNormalization");
    assert_null(keel_model_layer_name(m, 6));
    OK(keel_model_input_shape(m, 0, &shape));
    assert_true(keel_shape_equal(&shape, KEEL_DIMS(8, 8, 3)));
    OK(keel_model_output_shape(m, 0, &shape));
    assert_true(keel_shape_equal(&shape, KEEL_DIMS(5)));
    assert_int_equal(keel_model_output_shape(m, 1, &shape), KEEL_EARG);
    assert_int_equal(keel_model_count_params(m, &trainable), 112 + 16 + 725);
    assert_int_equal(trainable, 112 + 8 + 725);
    assert_int_equal(keel_model_weight_count(m), 8);
    assert_string_equal(keel_model_weight_name(m, 5), "batch_normalization/moving_variance");
    assert_string_equal(m->weight[6].path, "layers/dense/vars/0");
    assert_true(m->weight[0].info.penalty.l2 == 0.01 && m->weight[0].info.penalty.l1 == 0);
    OK(keel_model_summary(m, &text));
    assert_non_null(strstr(text, "(None, 6, 6, 4)"));
    assert_non_null(strstr(text, "Not compiled"));
    keel_model_summary_free(text);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void the_same_seed_gives_the_same_weights_and_another_seed_others(void **state)
{
    (void)state;
    keel_model *m[3] = { sequential(5), sequential(5), sequential(6) };
    keel_tensor w[3] = { 0 };
    for (int i = 0; i < 3; i++) OK(keel_model_get_weight(m[i], "out/kernel", &w[i]));
    assert_int_equal(w[0].shape.dim[0], 144);
    const size_t bytes = 144 * 5 * sizeof(float);
    assert_memory_equal(w[0].data, w[1].data, bytes);
    assert_true(memcmp(w[0].data, w[2].data, bytes) != 0);
    const float *x = w[0].data;
    double sum = 0, limit = 0.20066 /* sqrt(6 / 149) */;
    for (int i = 0; i < 720; i++) {
        assert_true(x[i] >= -limit && x[i] <= limit);
        sum += (double)x[i];
    }
    assert_true(sum > -10 && sum < 10 && x[0] != x[1]);
    for (int i = 0; i < 3; i++) {
        keel_tensor_free(&w[i]);
        keel_model_destroy(m[i]);
    }
}

static void weights_go_in_and_out_by_name(void **state)
{
    (void)state;
    keel_model *m = sequential(1);
    keel_tensor t = { 0 }, back = { 0 };
    OK(keel_tensor_create(&t, KEEL_FLOAT64, KEEL_DIMS(5)));
    for (int i = 0; i < 5; i++) ((double *)t.data)[i] = i + 0.5;
    OK(keel_model_set_weight(m, "out/bias", &t));
    OK(keel_model_get_weight(m, "out/bias", &back));
    assert_int_equal(back.dtype, KEEL_FLOAT32);
    for (int i = 0; i < 5; i++) assert_true(((float *)back.data)[i] == (float)i + 0.5f);
    SAYS(keel_model_set_weight(m, "out/kernel", &t), KEEL_ESHAPE, "out/kernel");
    SAYS(keel_model_set_weight(m, "out/b", &t), KEEL_EARG, "out/b");
    t.dtype = KEEL_INT64;
    SAYS(keel_model_set_weight(m, "out/bias", &t), KEEL_EUNSUP, "int64");
    t.dtype = KEEL_FLOAT64;
    OK(keel_model_set_dtype(m, KEEL_FLOAT64));
    keel_tensor_free(&back);
    OK(keel_model_get_weight(m, "out/bias", &back));
    assert_int_equal(back.dtype, KEEL_FLOAT64);
    assert_true(((double *)back.data)[4] == 4.5);
    keel_tensor_free(&t);
    keel_tensor_free(&back);
    keel_model_destroy(m);
}

static void a_wrong_call_is_refused_by_name_and_changes_nothing(void **state)
{
    (void)state;
    keel_model *m = NULL, *s = sequential(1);
    keel_symbol in, a, b, out = 77;
    const keel_arg *units = KEEL_ARGS(KEEL_ARG_INT("units", 4));
    const keel_model_mark before = keel_model_where(s);
    SAYS(keel_model_add(s, "Conv2D",
                        KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INT("kernel_size", 3),
                                  KEEL_ARG_STR("name", "late"))),
         KEEL_ESHAPE, "layer 'late'");
    SAYS(keel_model_add(s, "Dense", KEEL_ARGS(KEEL_ARG_INT("unit", 4))), KEEL_EARG, "unit");
    SAYS(keel_model_add(s, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_INT("units", 5))),
         KEEL_EARG, "twice");
    SAYS(keel_model_add(s, "Dense",
                        KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("name", "out"))),
         KEEL_EARG, "two layers are named 'out'");
    SAYS(keel_model_add(s, "Dense", KEEL_ARGS(KEEL_ARG_JSON("units", "{"))), KEEL_EARG, "JSON");
    SAYS(keel_model_add(s, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 3))), KEEL_EARG, "first");
    SAYS(keel_model_add(s, "Add", NULL), KEEL_OK, "");
    SAYS(keel_model_add(s, "Dense", KEEL_ARGS(KEEL_ARG_FLOAT("units", 0.0 / 0.0))), KEEL_EARG,
         "units");
    SAYS(keel_model_input(s, KEEL_DIMS(3), NULL, &in), KEEL_EARG, "Sequential");
    const keel_model_mark after = keel_model_where(s);
    assert_int_equal(after.n_layer, before.n_layer + 1); /* the Add alone */
    assert_int_equal(after.n_weight, before.n_weight);
    keel_model_destroy(s);

    OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    SAYS(keel_plan_make(&(keel_plan){ 0 }, m, NULL, 8, 8, KEEL_KEEP, NULL), KEEL_EARG, "model ''");
    SAYS(keel_model_add(m, "Dense", units), KEEL_EARG, "InputLayer");
    OK(keel_model_input(m, KEEL_DIMS(6), NULL, &in));
    OK(keel_model_call(m, "Dense", units, &in, 1, &a));
    OK(keel_model_call(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 3)), &in, 1, &b));
    const keel_symbol both[] = { a, b };
    SAYS(keel_model_call(m, "Add", NULL, both, 2, &out), KEEL_ESHAPE, "layer 'add'");
    SAYS(keel_model_call(m, "Dense", units, both, 2, &out), KEEL_EARG, "takes 1 input");
    SAYS(keel_model_call(m, "Add", NULL, NULL, 0, &out), KEEL_EARG, "at least 1");
    SAYS(keel_model_call(m, "ops.Subtract", NULL, (keel_symbol[]){ a, a, a }, 3, &out), KEEL_EARG,
         "takes at most 2 inputs, not 3");
    SAYS(keel_model_call(m, "Dense", units, &(keel_symbol){ 9 }, 1, &out), KEEL_EARG, "symbol");
    SAYS(keel_model_call_again(m, "dense", &b, 1, &out), KEEL_ESHAPE, "kernel");
    SAYS(keel_model_call_again(m, "densely", &b, 1, &out), KEEL_EARG, "densely");
    SAYS(keel_model_call_again(m, "input_layer", &b, 1, &out), KEEL_EARG, "input_layer");
    SAYS(keel_model_call_with(m, "Dense", units, KEEL_ARGS(KEEL_ARG_FLOAT("x2", 1)), &in, 1, &out),
         KEEL_EARG, "a Dense is called with its inputs only, not with 'x2'");
    SAYS(keel_model_call_with(m, "MultiHeadAttention",
                              KEEL_ARGS(KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 3)),
                              KEEL_ARGS(KEEL_ARG_BOOL("causal", true)), both, 2, &out),
         KEEL_EUNSUP, "argument 'causal'");
    SAYS(keel_model_call_with(m, "ops.Subtract", NULL, KEEL_ARGS(KEEL_ARG_STR("x2", "one")), &in, 1,
                              &out),
         KEEL_EUNSUP, "argument x2");
    assert_int_equal(out, 77);
    keel_symbol dropped;
    OK(keel_model_call(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.1)), &a, 1, &dropped));
    SAYS(keel_model_save(m, "/tmp/never.keras"), KEEL_EARG, "not finished");
    SAYS(keel_model_outputs(m, &dropped, 1), KEEL_EARG, "'dense_1' leads to no output");
    assert_false(m->finished);
    OK(keel_model_outputs(m, (keel_symbol[]){ dropped, b }, 2));
    SAYS(keel_model_call(m, "Dense", units, &in, 1, &out), KEEL_EARG, "finished");
    keel_model_destroy(m);
    SAYS(keel_model_create(&m, NULL, KEEL_INT32, 0), KEEL_EUNSUP, "int32");
    SAYS(keel_model_create(&m, "a/b", KEEL_FLOAT32, 0), KEEL_EARG, "'a/b'");
    assert_int_equal(keel_memory_live(), 0);
}

/* In Keras its outputs would all go into the next layer, or out of the model. */
static void a_layer_of_several_outputs_has_no_place_in_a_sequential_model(void **state)
{
    (void)state;
    keel_model *s = NULL;
    const keel_arg *args = KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_BOOL("return_state", true));
    OK(keel_model_create(&s, NULL, KEEL_FLOAT32, 0));
    OK(keel_model_add(s, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 5, 3))));
    const keel_model_mark before = keel_model_where(s);
    SAYS(keel_model_add(s, "LSTM", args), KEEL_EUNSUP, "layer 'lstm' has 3 outputs");
    const keel_model_mark after = keel_model_where(s);
    assert_memory_equal(&before, &after, sizeof before);
    OK(keel_model_add(s, "LSTM", KEEL_ARGS(KEEL_ARG_INT("units", 4))));
    assert_string_equal(s->layer[1].name, "lstm");
    keel_model_destroy(s);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_layer_for_which_there_is_no_memory_is_not_added(void **state)
{
    (void)state;
    keel_model *m = sequential(1);
    const keel_symbol output = m->output[0];
    const keel_model_mark before = keel_model_where(m);
    json_t *was = NULL, *is = NULL;
    keel_status s = KEEL_ENOMEM;
    OK(keel_model_to_config(m, &was));
    for (int64_t k = 0; s < 0; k++) {
        keel_memory_fail_at(k);
        s = keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 4)));
        keel_memory_fail_at(-1);
        if (s >= 0) break;
        const keel_model_mark after = keel_model_where(m);
        assert_int_equal(s, KEEL_ENOMEM);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true(m->finished);
        assert_int_equal(m->output[0], output);
        OK(keel_model_to_config(m, &is));
        assert_true(json_equal(was, is));
        json_decref(is);
    }
    assert_int_not_equal(m->output[0], output);
    json_decref(was);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static keel_model *functional(void)
{
    keel_model *m = NULL;
    keel_symbol i, x, y, z;
    OK(keel_model_create(&m, "net", KEEL_FLOAT32, 3));
    OK(keel_model_input(m, KEEL_DIMS(8, 8, 3), NULL, &i));
    const keel_arg *wide = KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INT("kernel_size", 3),
                                     KEEL_ARG_STR("padding", "same"), KEEL_ARG_STR("name", "wide"));
    OK(keel_model_call(m, "Conv2D", wide, &i, 1, &x));
    const keel_arg *narrow = KEEL_ARGS(KEEL_ARG_INT("filters", 4), KEEL_ARG_INT("kernel_size", 1),
                                       KEEL_ARG_STR("name", "narrow"));
    OK(keel_model_call(m, "Conv2D", narrow, &i, 1, &y));
    OK(keel_model_call(m, "Add", NULL, (keel_symbol[]){ y, x }, 2, &z));
    OK(keel_model_outputs(m, &z, 1));
    return m;
}

static void layers_are_put_in_keras_order_with_their_weights(void **state)
{
    (void)state;
    keel_model *m = functional(); /* the Add asks for narrow first, so Keras lists it first */
    const char *names[] = { "input_layer", "narrow", "wide", "add" };
    const char *paths[] = { "layers/conv2d/vars/0", "layers/conv2d/vars/1",
                            "layers/conv2d_1/vars/0", "layers/conv2d_1/vars/1" };
    const char *weights[] = { "narrow/kernel", "narrow/bias", "wide/kernel", "wide/bias" };
    for (int i = 0; i < 4; i++) {
        assert_string_equal(keel_model_layer_name(m, i), names[i]);
        assert_string_equal(keel_model_weight_name(m, i), weights[i]);
        assert_string_equal(m->weight[i].path, paths[i]);
    }
    keel_model_destroy(m);
}

static void a_model_emits_itself_into_any_graph(void **state)
{
    (void)state;
    keel_model *m = functional();
    for (int k = 0; k < 4; k++) {
        keel_value in, out, mask;
        keel_model_emission e = { .real = k & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32,
                                  .training = k & 2,
                                  .input = &in,
                                  .output = &out,
                                  .mask = &mask };
        OK(keel_model_emit(m, &e));
        keel_graph *const g = e.graph;
        assert_int_equal(mask, KEEL_MASK_NONE);
        assert_int_equal(g->n_node, 3);
        assert_int_equal(g->n_input, 1);
        assert_int_equal(keel_graph_spec(g, out)->dtype, k & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32);
        assert_true(keel_shape_equal(&keel_graph_spec(g, out)->shape, KEEL_DIMS(8, 8, 4)));
        assert_string_equal(g->node[0].node.layer, "wide");
        assert_int_equal(g->node[0].node.stream, 2);
        assert_int_equal(g->node[0].weight[1], 3);
        assert_int_equal(g->node[0].node.training, (k & 2) != 0);
        keel_graph_destroy(g);
    }
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void names_reach_a_terminal_without_what_it_obeys(void **state)
{
    (void)state;
    keel_model *m = NULL;
    char *text = NULL;
    OK(keel_model_create(&m,
                         "m\x1B[2J\xC2\x9B"
                         "31m\n",
                         KEEL_FLOAT32, 0));
    OK(keel_model_add(m, "InputLayer",
                      KEEL_ARGS(KEEL_ARG_INTS("shape", 2), KEEL_ARG_STR("name", "i\x7F\r"))));
    OK(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_STR("name", "\xC3\xA9\x1B]0;t\x07"))));
    json_t *compile =
        json_loads("{\"optimizer\":\"sgd\",\"loss\":\"mse\",\"metrics\":[{\"class_name\":"
                   "\"MeanAbsoluteError\",\"config\":{\"name\":"
                   "\"a\\u001b[1m\\n\\u009bb\"}}]}",
                   0, NULL);
    OK(keel_compiled_from_config(m, compile, true, &m->compiled));
    json_decref(compile);
    OK(keel_model_summary(m, &text));
    assert_non_null(strstr(text, "Model: \"m?[2J?31m \""));
    assert_non_null(strstr(text, "\n\xC3\xA9?]0;t?"));
    assert_non_null(strstr(text, "Metrics: a?[1m ?b\n"));
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if ((*c < 32 && *c != '\n') || *c == 127 || (*c == 0xC2 && c[1] < 0xA0))
            fail_msg("a control character at %s", (const char *)c);
    keel_model_summary_free(text);
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void compile_reads_names_and_arguments_and_keeps_state(void **state)
{
    (void)state;
    keel_model *m = sequential(1);
    double rate;
    keel_compile c = { KEEL_COMPILE,
                       .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.25)) },
                       .loss = { { "SparseCategoricalCrossentropy",
                                   KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true)) } },
                       .metrics = { { "accuracy" }, { "mae" } },
                       .weighted_metrics = { { "mse" } } };
    assert_false(keel_model_is_compiled(m));
    SAYS(keel_model_learning_rate(m, &rate), KEEL_EARG, "compiled");
    OK(keel_model_compile(m, &c));
    assert_true(keel_model_is_compiled(m));
    OK(keel_model_learning_rate(m, &rate));
    assert_true(rate == 0.25);
    OK(keel_model_set_learning_rate(m, 0.5));
    SAYS(keel_model_set_learning_rate(m, -1), KEEL_EARG, "-1");
    const keel_model_compiled *k = &m->compiled;
    assert_int_equal(k->n_slot, 2);
    assert_int_equal(k->n_state, 12);
    assert_true(keel_shape_equal(&k->state[1].shape, KEEL_DIMS(3, 3, 3, 4)));
    assert_true(keel_shape_equal(&k->state[11].shape, KEEL_DIMS(5)));
    assert_int_equal(k->n_metric, 3);
    assert_string_equal(k->metric[0].name, "accuracy");
    assert_null(k->metric[0].metric.type); /* waits for the target */
    assert_string_equal(k->metric[1].metric.type->name, "MeanAbsoluteError");
    assert_true(k->metric[2].weighted && !k->metric[1].weighted);
    assert_string_equal(k->loss[0].type->name, "SparseCategoricalCrossentropy");

    const keel_optimizer_common *before = k->optimizer[0].optimizer.args;
    c.optimizer.name = "adamant";
    SAYS(keel_model_compile(m, &c), KEEL_EUNSUP, "adamant");
    c.optimizer = (keel_named){ "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("beta_1", 1)) };
    SAYS(keel_model_compile(m, &c), KEEL_EARG, "beta_1");
    c.optimizer = (keel_named){ "sgd" };
    c.metrics[1] = (keel_named){ "mae", NULL, 1 };
    SAYS(keel_model_compile(m, &c), KEEL_EARG, "output 1");
    c.metrics[1] = (keel_named){ "maeve" };
    SAYS(keel_model_compile(m, &c), KEEL_EUNSUP, "maeve");
    c.loss[0] = (keel_named){ "lose" };
    c.optimizer = (keel_named){ "adamant" };
    SAYS(keel_model_compile(m, &c), KEEL_EUNSUP,
         "3 parts are not supported: optimizer 'adamant'; loss 'lose'; metric 'maeve'");
    assert_ptr_equal(k->optimizer[0].optimizer.args, before);

    OK(keel_model_set_trainable(m, "conv2d", false));
    assert_int_equal(k->n_state, 8);
    assert_false(m->weight[0].trainable);
    bool trainable = true;
    OK(keel_model_get_trainable(m, "conv2d", &trainable));
    assert_false(trainable);
    OK(keel_model_set_trainable(m, NULL, true));
    SAYS(keel_model_get_trainable(m, NULL, &trainable), KEEL_EARG, "name a layer");
    assert_int_equal(k->n_state, 12);
    assert_false(m->weight[4].trainable); /* a moving mean never is */
    SAYS(keel_model_add(m, "Flatten", NULL), KEEL_EARG, "compiled");
    keel_model_destroy(m);
    assert_int_equal(keel_memory_live(), 0);
}

static void layers_that_keras_calls_with_a_list_are_written_so(void **state)
{
    (void)state;
    static const struct {
        const char *layer;
        const keel_arg args[4];
        size_t n_args; /* in the file: one list, or each input by itself */
    } calls[] = {
        { "Add", { { 0 } }, 1 },
        { "Subtract", { { 0 } }, 1 },
        { "Dot", { KEEL_ARG_INT("axes", 1) }, 1 },
        { "CustomScaleLayer", { KEEL_ARG_FLOAT("scale", 0.5) }, 1 },
        { "GroupedQueryAttention",
          { KEEL_ARG_INT("head_dim", 2), KEEL_ARG_INT("num_query_heads", 2),
            KEEL_ARG_INT("num_key_value_heads", 1) },
          2 },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        keel_model *m = NULL;
        keel_symbol x[2], y;
        json_t *config;
        const bool heads = !strcmp(calls[i].layer, "GroupedQueryAttention");
        const keel_shape shape = heads ? KEEL_SHAPE(3, 4) : KEEL_SHAPE(4);
        OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        for (int k = 0; k < 2; k++) OK(keel_model_input(m, &shape, NULL, &x[k]));
        OK(keel_model_call(m, calls[i].layer, calls[i].args, x, 2, &y));
        OK(keel_model_outputs(m, &y, 1));
        OK(keel_model_to_config(m, &config));
        const json_t *layers =
            json_object_get(json_object_get(config, "config"), "layers"); /* the last one */
        const json_t *last = json_array_get(layers, json_array_size(layers) - 1);
        const json_t *call = json_array_get(json_object_get(last, "inbound_nodes"), 0);
        if (json_array_size(json_object_get(call, "args")) != calls[i].n_args)
            fail_msg("%s: called with %zu arguments", calls[i].layer,
                     json_array_size(json_object_get(call, "args")));
        json_decref(config);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* Of which some are called with a list. */
static void attention_layers_take_arguments_of_a_call(void **state)
{
    (void)state;
    static const struct {
        const char *layer;
        const keel_arg args[4];
        size_t n_args;
    } calls[] = {
        { "Attention", { { 0 } }, 1 },
        { "AdditiveAttention", { { 0 } }, 1 },
        { "MultiHeadAttention", { KEEL_ARG_INT("num_heads", 2), KEEL_ARG_INT("key_dim", 3) }, 2 },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        keel_model *m = NULL;
        keel_symbol x, y;
        json_t *config;
        OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        OK(keel_model_input(m, KEEL_DIMS(3, 4), NULL, &x));
        OK(keel_model_call_with(m, calls[i].layer, calls[i].args,
                                KEEL_ARGS(KEEL_ARG_BOOL("use_causal_mask", true)),
                                (keel_symbol[]){ x, x }, 2, &y));
        OK(keel_model_outputs(m, &y, 1));
        OK(keel_model_to_config(m, &config));
        const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
        const json_t *call =
            json_array_get(json_object_get(json_array_get(layers, 1), "inbound_nodes"), 0);
        const json_t *kwargs = json_object_get(call, "kwargs");
        assert_int_equal(json_array_size(json_object_get(call, "args")), calls[i].n_args);
        assert_true(json_is_true(json_object_get(kwargs, "use_causal_mask")));
        keel_model_destroy(m);
        OK(keel_model_begin(&m, NULL, KEEL_FLOAT32, 1)); /* and what is written is read */
        OK(keel_model_from_config(m, config));
        json_decref(config);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* The shapes with which Keras builds it when it reads the file. Without states it would take the
 * shape of the last one for that of the rows. */
static void a_layer_is_written_with_the_shapes_of_its_first_call(void **state)
{
    (void)state;
    const struct {
        const char *layer;
        const keel_arg args[4];
        int n_in;
        keel_shape in[3];
        const char *build_config;
    } calls[] = {
        { "Dense",
          { KEEL_ARG_INT("units", 2) },
          1,
          { KEEL_SHAPE(3, 4) },
          "{\"input_shape\": [null, 3, 4]}" },
        { "Attention",
          { KEEL_ARG_BOOL("use_scale", true) },
          2,
          { KEEL_SHAPE(3, 4), KEEL_SHAPE(5, 4) },
          "{\"input_shape\": [[null, 3, 4], [null, 5, 4]]}" },
        { "ConvLSTM1D",
          { KEEL_ARG_INT("filters", 3), KEEL_ARG_INT("kernel_size", 3),
            KEEL_ARG_STR("padding", "same") },
          1,
          { KEEL_SHAPE(5, 6, 2) },
          "{\"input_shape\": [null, 5, 6, 2]}" },
        { "ConvLSTM1D",
          { KEEL_ARG_INT("filters", 3), KEEL_ARG_INT("kernel_size", 3),
            KEEL_ARG_STR("padding", "same") },
          3,
          { KEEL_SHAPE(5, 6, 2), KEEL_SHAPE(6, 3), KEEL_SHAPE(6, 3) },
          "{\"shapes_dict\": {\"sequences_shape\": [null, 5, 6, 2], \"initial_state_shape\": "
          "[[null, 6, 3], [null, 6, 3]]}}" },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        keel_model *m = NULL;
        keel_symbol x[3], y;
        json_t *config;
        OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        for (int k = 0; k < calls[i].n_in; k++)
            OK(keel_model_input(m, &calls[i].in[k], NULL, &x[k]));
        OK(keel_model_call(m, calls[i].layer, calls[i].args, x, calls[i].n_in, &y));
        OK(keel_model_outputs(m, &y, 1));
        OK(keel_model_to_config(m, &config));
        const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
        const json_t *last = json_array_get(layers, json_array_size(layers) - 1);
        char *text = json_dumps(json_object_get(last, "build_config"), 0);
        assert_string_equal(text, calls[i].build_config);
        free(text);
        const json_t *call = json_array_get(json_object_get(last, "inbound_nodes"), 0);
        const json_t *kwargs = json_object_get(call, "kwargs");
        const json_t *in = json_array_get(json_object_get(call, "args"), 0);
        if (json_is_array(in)) in = json_array_get(in, 0);
        const json_t *dims = json_object_get(json_object_get(in, "config"), "shape");
        assert_int_equal(json_array_size(dims), calls[i].in[0].rank + 1);
        assert_true(json_is_null(json_array_get(dims, 0))); /* the batch */
        assert_int_equal(json_array_size(json_object_get(kwargs, "initial_state")),
                         calls[i].n_in == 3 ? 2 : 0);
        assert_int_equal(json_array_size(json_object_get(call, "args")), 1);
        keel_model_destroy(m);
        OK(keel_model_begin(&m, NULL, KEEL_FLOAT32, 1)); /* and read as it was called */
        OK(keel_model_from_config(m, config));
        assert_int_equal(m->node[m->n_node - 1].n_in, calls[i].n_in);
        json_decref(config);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequential_model_has_shapes_weights_and_a_table),
        cmocka_unit_test(the_same_seed_gives_the_same_weights_and_another_seed_others),
        cmocka_unit_test(weights_go_in_and_out_by_name),
        cmocka_unit_test(a_wrong_call_is_refused_by_name_and_changes_nothing),
        cmocka_unit_test(a_layer_of_several_outputs_has_no_place_in_a_sequential_model),
        cmocka_unit_test(a_layer_for_which_there_is_no_memory_is_not_added),
        cmocka_unit_test(layers_are_put_in_keras_order_with_their_weights),
        cmocka_unit_test(a_model_emits_itself_into_any_graph),
        cmocka_unit_test(names_reach_a_terminal_without_what_it_obeys),
        cmocka_unit_test(compile_reads_names_and_arguments_and_keeps_state),
        cmocka_unit_test(layers_that_keras_calls_with_a_list_are_written_so),
        cmocka_unit_test(attention_layers_take_arguments_of_a_call),
        cmocka_unit_test(a_layer_is_written_with_the_shapes_of_its_first_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
