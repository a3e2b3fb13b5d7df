/* Files of the real Keras (tests/golden/(name).keras and .npz): what Keel reads is what Keras
 * saved, what it computes is what Keras predicted, what it writes is read back the same; and the
 * order of layers and weights in models with branches (models.json). No Keras is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "golden.h"
#include "io/npz.h"
#include "io/weights_h5.h"
#include "io/zip.h"
#include "model/parts.h"
#include <string.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0) fail_msg("%s: %s", #call, keel_error());                                   \
    } while (0)

static const char *const files[] = {
    "sequential_adam",       "sequential_plain",     "sequential_dropout",
    "functional_sgd",        "functional_adamw",     "functional_nested",
    "functional_operations", "functional_attention", "functional_recurrent",
    "functional_words",      "sequential_masked",    "functional_reversible",
    "functional_merged",     "functional_blocks",    "keras_3_0"
};

static const char *scratch_path(const char *name)
{
    static char path[512];
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(path, sizeof path, "%s/%s.%ld.keras", folder ? folder : "/tmp", name, (long)getpid());
    return path;
}

/* ---- the graph on reference ops, all rows at once ---------------------------------------------
 */

static void *run(const keel_model *m, const keel_tensor *x, keel_value *out, void **values)
{
    keel_value in;
    keel_model_emission e = { .real = KEEL_FLOAT32, .input = &in, .output = out };
    const int64_t rows = x->shape.dim[0];
    OK(keel_model_emit(m, &e));
    keel_graph *const g = e.graph;
    values[in] = x->data;
    const keel_step_facts step = { .rows = rows };
    for (int i = 0; i < g->n_node; i++) {
        keel_graph_node *n = &g->node[i];
        const void *inputs[8], *weight[8];
        void *outputs[4];
        keel_call c = { .node = &n->node,
                        .step = &step,
                        .rows = rows,
                        .in = inputs,
                        .out = outputs,
                        .weight = weight };
        assert_true(n->node.n_in <= 8 && n->node.n_weight <= 8);
        assert_true(n->node.n_out <= 4 && n->node.n_saved == 0);
        for (int k = 0; k < n->node.n_in; k++) inputs[k] = values[n->in[k]];
        for (int k = 0; k < n->node.n_weight; k++) weight[k] = m->weight[n->weight[k]].data;
        void *scratch = keel_aligned_calloc((size_t)n->node.scratch, 1);
        c.scratch = scratch;
        for (int k = 0; k < n->node.n_out; k++)
            outputs[k] = values[n->out[k]] = keel_aligned_calloc(
                (size_t)(rows * keel_row_count(&n->node.out[k])), sizeof(float));
        n->node.op->forward[0](&c);
        keel_free(scratch);
    }
    const keel_value first = in;
    const int n_value = g->n_value;
    void *result = values[*out];
    for (int v = 0; v < n_value; v++)
        if (v != first && v != *out) keel_free(values[v]);
    keel_graph_destroy(g);
    return result;
}

static void keras_files_predict_what_keras_predicted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        keel_model *m = NULL;
        keel_tensor x = { 0 }, want = { 0 };
        keel_value out;
        void *values[256] = { 0 };
        OK(keel_model_load(&m, golden_path("%s.keras", files[i])));
        OK(keel_npz_read_file(&x, golden_path("%s.npz", files[i]), "x"));
        OK(keel_npz_read_file(&want, golden_path("%s.npz", files[i]), "predict"));
        float *y = run(m, &x, &out, values);
        for (int64_t k = 0; k < keel_shape_count(&want.shape); k++)
            if (!golden_near((double)y[k], (double)((float *)want.data)[k], 1e-5))
                fail_msg("%s: output %d is %g, Keras %g", files[i], (int)k, (double)y[k],
                         (double)((float *)want.data)[k]);
        keel_free(y);
        keel_tensor_free(&x);
        keel_tensor_free(&want);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static keel_weights *weights_of(const char *path, void **image, json_t **config)
{
    keel_zip *zip = NULL;
    keel_weights *w = NULL;
    size_t n;
    void *text;
    OK(keel_zip_open(&zip, path));
    OK(keel_zip_read(zip, "config.json", 1 << 20, &text, &n));
    *config = json_loadb(text, n, 0, NULL);
    keel_free(text);
    OK(keel_zip_read(zip, "model.weights.h5", 1 << 24, image, &n));
    OK(keel_weights_decode(&w, *image, n));
    assert_true(keel_zip_find(zip, "metadata.json") >= 0);
    keel_zip_close(zip);
    return w;
}

static void what_is_saved_again_equals_the_file_of_keras(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        keel_model *m = NULL;
        void *image[2];
        json_t *config[2];
        OK(keel_model_load(&m, golden_path("%s.keras", files[i])));
        OK(keel_model_save(m, scratch_path(files[i])));
        keel_model_destroy(m);
        keel_weights *a = weights_of(golden_path("%s.keras", files[i]), &image[0], &config[0]);
        keel_weights *b = weights_of(scratch_path(files[i]), &image[1], &config[1]);
        assert_true(json_equal(config[0], config[1]));
        assert_int_equal(keel_weights_count(a), keel_weights_count(b));
        for (int64_t k = 0; k < keel_weights_count(a); k++) {
            const keel_weight *p = keel_weights_at(a, k), *q = keel_weights_at(b, k);
            assert_string_equal(p->path, q->path);
            assert_int_equal(p->stored, q->stored);
            assert_true(keel_shape_equal(&p->shape, &q->shape));
            assert_memory_equal(p->data, q->data,
                                (size_t)keel_shape_count(&p->shape) * keel_dtype_size(p->dtype));
        }
        assert_int_equal(keel_weights_has_group(a, "optimizer/vars"),
                         keel_weights_has_group(b, "optimizer/vars"));
        assert_true(keel_weights_has_group(b, "vars"));
        keel_weights_destroy(a);
        keel_weights_destroy(b);
        for (int k = 0; k < 2; k++) {
            json_decref(config[k]);
            keel_free(image[k]);
        }
        unlink(scratch_path(files[i]));
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void the_optimizer_s_state_comes_with_the_file(void **state)
{
    (void)state;
    keel_model *m = NULL;
    keel_tensor velocity = { 0 };
    OK(keel_model_load(&m, golden_path("sequential_adam.keras")));
    assert_true(keel_model_is_compiled(m));
    assert_int_equal(m->compiled.iterations, 1);
    assert_int_equal(m->compiled.n_slot, 2);
    assert_int_equal(m->compiled.n_state, 2 * keel_model_trainable_count(m));
    OK(keel_npz_read_file(&velocity, golden_path("sequential_adam.npz"),
                          "saved/optimizer/vars/5")); /* of the second weight */
    assert_memory_equal(velocity.data, m->compiled.state[3].data,
                        (size_t)keel_shape_count(&velocity.shape) * sizeof(float));
    keel_tensor_free(&velocity);

    /* With other losses the state goes; a saved model of float64 is one of float32 again. */
    OK(keel_model_set_dtype(m, KEEL_FLOAT64));
    m->compiled.iterations = 12;
    OK(keel_model_set_learning_rate(m, 0.125));
    OK(keel_model_save(m, scratch_path("again")));
    keel_model *again = NULL;
    OK(keel_model_load(&again, scratch_path("again")));
    assert_int_equal(again->compiled.iterations, 12);
    assert_true(again->compiled.optimizer[0].learning_rate == 0.125);
    assert_int_equal(again->dtype, KEEL_FLOAT32);
    assert_true(((float *)again->compiled.state[3].data)[1] ==
                (float)((double *)m->compiled.state[3].data)[1]);
    keel_model_destroy(again);
    keel_model_destroy(m);
    unlink(scratch_path("again"));
    assert_int_equal(keel_memory_live(), 0);
}

/* Keel has not every metric: what it leaves alone is in the file as it was. */
static void a_schedule_and_an_unknown_metric_go_through_a_file(void **state)
{
    (void)state;
    keel_model *m[2] = { NULL };
    OK(keel_model_load(&m[0], golden_path("compiled_schedule.keras")));
    OK(keel_model_save(m[0], scratch_path("schedule")));
    OK(keel_model_load(&m[1], scratch_path("schedule")));
    for (int i = 0; i < 2; i++) {
        const keel_model_compiled *c = &m[i]->compiled;
        assert_true(keel_model_is_compiled(m[i]));
        assert_null(keel_model_refused(m[i]));
        assert_string_equal(keel_model_schedule(m[i]), "CosineDecay");
        assert_string_equal(keel_model_metrics_left_out(m[i]), "Overlap");
        assert_int_equal(c->n_metric, 1);
        assert_int_equal(c->iterations, 5);
        assert_int_equal(c->n_state, 8);
        for (int k = 0; k < c->n_state; k++)
            assert_memory_equal(c->state[k].data, m[0]->compiled.state[k].data,
                                (size_t)keel_shape_count(&c->state[k].shape) * sizeof(float));
    }
    assert_true(((float *)m[0]->compiled.state[7].data)[0] != 0);
    /* a number takes its place; chosen metrics take that of the file's */
    OK(keel_model_set_learning_rate(m[1], 0.125));
    OK(keel_model_save(m[1], scratch_path("schedule")));
    keel_model_destroy(m[1]);
    OK(keel_model_load(&m[1], scratch_path("schedule")));
    assert_null(keel_model_schedule(m[1]));
    assert_true(m[1]->compiled.optimizer[0].learning_rate == 0.125);
    assert_int_equal(m[1]->compiled.iterations, 5);
    OK(keel_model_recompile(m[1], &(keel_compile){ KEEL_COMPILE, .metrics = { { "mae" } } }));
    assert_null(keel_model_metrics_left_out(m[1]));
    assert_int_equal(
        keel_model_recompile(m[1], &(keel_compile){ KEEL_COMPILE, .metrics = { { "Mean" } } }),
        KEEL_EUNSUP);
    for (int i = 0; i < 2; i++) keel_model_destroy(m[i]);
    unlink(scratch_path("schedule"));
    assert_int_equal(keel_memory_live(), 0);
}

/* Keras 3.15 refuses them, too. */
static void a_state_in_the_order_of_an_older_keras_is_refused_with_what_to_do(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "nadam", "'optimizer/vars/10' in the weights file has shape (2,)" },
        { "ema", "'optimizer/vars/3' in the weights file has shape (3, 4)" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keel_model *m = NULL;
        assert_int_equal(keel_model_load(&m, golden_path("old_state_%s.keras", names[i][0])),
                         KEEL_EUNSUP);
        assert_null(m);
        const char *says[] = { names[i][1], "older than 3.10", "compile=False" };
        for (int k = 0; k < 3; k++)
            if (!strstr(keel_error(), says[k])) fail_msg("%s: %s", names[i][0], keel_error());
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* Keras skips such a state, with a warning. */
static void the_state_of_weights_that_were_frozen_since_is_left_out(void **state)
{
    (void)state;
    keel_model *m = NULL;
    OK(keel_model_load(&m, golden_path("compiled_frozen.keras")));
    const keel_model_compiled *c = &m->compiled;
    assert_true(keel_model_is_compiled(m));
    assert_int_equal(keel_model_state_left_out(m), 2 + 2 * 4);
    assert_int_equal(c->iterations, 0);
    assert_int_equal(c->n_state, 2 * 2);
    for (int k = 0; k < c->n_state; k++) assert_true(((float *)c->state[k].data)[0] == 0);
    assert_true((float)c->optimizer[0].learning_rate == 0.01F);
    OK(keel_model_recompile(m, &(keel_compile){ KEEL_COMPILE, .metrics = { { "mae" } } }));
    assert_int_equal(keel_model_state_left_out(m), 2 + 2 * 4);
    OK(keel_model_save(m, scratch_path("frozen")));
    keel_model_destroy(m);
    OK(keel_model_load(&m, scratch_path("frozen")));
    assert_int_equal(keel_model_state_left_out(m), 0);
    keel_model_destroy(m);
    unlink(scratch_path("frozen"));
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void check_order(const json_t *c, const json_t *config, const char *how)
{
    keel_model *m = NULL;
    const json_t *layers = json_object_get(c, "layers"), *weights = json_object_get(c, "weights");
    const json_t *paths = json_object_get(c, "paths"), *moved = json_object_get(c, "trainable");
    OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    m->file_config = json_deep_copy(config);
    if (keel_model_read_root(m) < 0)
        fail_msg("%s %s: %s", golden_text(c, "name"), how, keel_error());
    assert_int_equal(m->n_layer, json_array_size(layers));
    for (int i = 0; i < m->n_layer; i++)
        if (strcmp(m->layer[i].name, json_string_value(json_array_get(layers, (size_t)i))))
            fail_msg("%s %s: layer %d is %s", golden_text(c, "name"), how, i, m->layer[i].name);
    assert_int_equal(m->n_weight, json_array_size(weights));
    assert_int_equal(keel_model_trainable_count(m), json_array_size(moved));
    for (int i = 0; i < m->n_weight; i++) {
        const json_t *w = json_array_get(weights, (size_t)i);
        const json_t *stored = json_object_get(paths, m->weight[i].path);
        assert_string_equal(m->weight[i].info.name, json_string_value(json_array_get(w, 0)));
        assert_non_null(stored);
        assert_true(json_equal((json_t *)stored, json_array_get(w, 1)));
    }
    for (int t = 0; t < keel_model_trainable_count(m); t++) {
        const char *path = json_string_value(json_array_get(moved, (size_t)t));
        const char *name = m->weight[keel_model_trainable(m, t)].info.name;
        const size_t n = strlen(path), k = strlen(name);
        assert_true(n >= k && !strcmp(path + n - k, name));
    }
    keel_model_destroy(m);
}

static void layers_and_weights_stand_in_keras_order(void **state)
{
    (void)state;
    json_t *cases = golden_load("models.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        json_t *config = json_object_get(c, "config");
        check_order(c, config, "as written");
        if (!strcmp(golden_text(config, "class_name"), "Functional")) {
            /* The same graph whose layers are listed from the end to the begin. */
            json_t *inner = json_object_get(config, "config");
            json_t *layers = json_incref(json_object_get(inner, "layers")), *turned = json_array();
            for (size_t k = json_array_size(layers); k > 0; k--)
                json_array_append(turned, json_array_get(layers, k - 1));
            json_object_set_new(inner, "layers", turned);
            check_order(c, config, "turned round");
            json_decref(layers);
        }
    }
    json_decref(cases);
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- models of our own ----------------------------------------------------------------------- */

static void a_model_built_here_comes_back_from_its_file(void **state)
{
    (void)state;
    keel_model *m = NULL, *back = NULL;
    keel_symbol a, b, c, d, e;
    const keel_arg *units = KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("name", "shared"));
    OK(keel_model_create(&m, "own", KEEL_FLOAT32, 9));
    OK(keel_model_input(m, KEEL_DIMS(4), KEEL_ARGS(KEEL_ARG_STR("name", "left")), &a));
    OK(keel_model_input(m, KEEL_DIMS(4), KEEL_ARGS(KEEL_ARG_STR("name", "right")), &b));
    OK(keel_model_call(m, "Dense", units, &a, 1, &c));
    OK(keel_model_call_again(m, "shared", &b, 1, &d));
    OK(keel_model_call(m, "Concatenate", NULL, (keel_symbol[]){ d, c, a }, 3, &e));
    OK(keel_model_call(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_BOOL("trainable", false)), &e, 1,
                       &e));
    OK(keel_model_outputs(m, (keel_symbol[]){ e, c }, 2));
    OK(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "AdamW" },
                                              .loss = { { "mse", NULL, 1 }, { "mse", NULL, 0 } },
                                              .loss_weights = { 1, 0.5 },
                                              .metrics = { { "mae", NULL, 1 } } }));
    OK(keel_model_save(m, scratch_path("own")));
    OK(keel_model_load(&back, scratch_path("own")));
    assert_string_equal(keel_model_name(back), "own");
    assert_int_equal(back->n_layer, m->n_layer);
    assert_int_equal(back->n_node, m->n_node);
    assert_int_equal(back->n_weight, m->n_weight);
    assert_string_equal(keel_model_layer_name(back, keel_model_maker(back, back->input[1])->layer),
                        "right");
    for (int i = 0; i < m->n_weight; i++) {
        assert_string_equal(m->weight[i].info.name, back->weight[i].info.name);
        assert_int_equal(m->weight[i].trainable, back->weight[i].trainable);
        assert_memory_equal(m->weight[i].data, back->weight[i].data,
                            (size_t)keel_shape_count(&m->weight[i].info.spec.shape) *
                                sizeof(float));
    }
    assert_true(back->compiled.loss_weight[1] == 0.5);
    assert_int_equal(back->compiled.n_metric, 1);
    assert_int_equal(back->compiled.metric[0].output, 1);
    assert_string_equal(back->compiled.metric[0].name, "mae");
    OK(keel_model_set_trainable(back, "batch_normalization", true));
    OK(keel_model_save(back, scratch_path("own")));
    keel_model_destroy(back);
    OK(keel_model_load(&back, scratch_path("own")));
    bool trainable = false;
    OK(keel_model_get_trainable(back, "batch_normalization", &trainable));
    assert_true(trainable);
    assert_int_equal(keel_model_add(back, "Flatten", NULL), KEEL_EUNSUP);
    keel_model_destroy(back);
    keel_model_destroy(m);
    unlink(scratch_path("own"));
    assert_int_equal(keel_memory_live(), 0);
}

static void names_of_classes_come_back_with_the_model(void **state)
{
    (void)state;
    static const char *const names[] = { "iris \"setosa\"", "h\xC3\xA4us", "z\ny" };
    keel_model *m = NULL;
    OK(keel_model_load(&m, golden_path("sequential_adam.keras")));
    assert_int_equal(keel_model_class_count(m), 0);
    assert_null(keel_model_class_name(m, 0));
    OK(keel_model_set_class_names(m, (const char *const[]){ "old" }, 1));
    OK(keel_model_set_class_names(m, names, 3));
    OK(keel_model_save(m, scratch_path("names")));
    keel_model_destroy(m);
    OK(keel_model_load(&m, scratch_path("names")));
    assert_int_equal(keel_model_class_count(m), 3);
    for (int i = 0; i < 3; i++) assert_string_equal(keel_model_class_name(m, i), names[i]);
    assert_null(keel_model_class_name(m, 3));
    assert_null(keel_model_class_name(m, -1));
    OK(keel_model_set_class_names(m, NULL, 0)); /* then the file is Keras's alone again */
    OK(keel_model_save(m, scratch_path("names")));
    keel_model_destroy(m);
    keel_zip *zip = NULL;
    OK(keel_zip_open(&zip, scratch_path("names")));
    assert_int_equal(keel_zip_find(zip, "keel.json"), -1);
    keel_zip_close(zip);
    unlink(scratch_path("names"));
    assert_int_equal(keel_memory_live(), 0);
}

static void wrong_names_of_classes_are_refused_and_change_nothing(void **state)
{
    (void)state;
    char *longest = keel_calloc(4098, 1);
    memset(longest, 'x', 4097);
    const struct {
        const char *names[2];
        int64_t n;
        const char *says;
    } bad[] = {
        { { "a", "a" }, 2, "two classes are called 'a'" },
        { { "a", "" }, 2, "class 1 is empty" },
        { { "a", NULL }, 2, "class 1 is empty" },
        { { "a\xFF" }, 1, "class 0 is not UTF-8" },
        { { longest }, 1, "class 0 has 4097 bytes" },
        { { "a" }, -1, "names of -1 classes" },
        { { "a" }, (1 << 20) + 1, "names of 1048577 classes" },
    };
    keel_model *m = NULL;
    OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    OK(keel_model_set_class_names(m, (const char *const[]){ "kept" }, 1));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(keel_model_set_class_names(m, bad[i].names, bad[i].n), KEEL_EARG);
        if (!strstr(keel_error(), bad[i].says)) fail_msg("%s", keel_error());
        assert_string_equal(keel_model_class_name(m, 0), "kept");
    }
    static const struct {
        const char *text, *says;
        keel_status status;
    } damaged[] = {
        { "{", "keel.json: line 1", KEEL_EFORMAT },
        { "[]", "keel.json: expected an object", KEEL_EFORMAT },
        { "{\"class_names\":3}", "expected a list", KEEL_EFORMAT },
        { "{\"class_names\":[\"a\",3]}", "class_names: 1 is no text", KEEL_EFORMAT },
        { "{\"class_names\":[\"a\",\"a\"]}", "called 'a'", KEEL_EARG },
        { "{\"cursor\":3}", "'cursor' is not known to this Keel", KEEL_EUNSUP },
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        assert_int_equal(keel_model_read_extra(m, damaged[i].text, strlen(damaged[i].text)),
                         damaged[i].status);
        if (!strstr(keel_error(), damaged[i].says)) fail_msg("%s", keel_error());
        assert_string_equal(keel_model_class_name(m, 0), "kept");
    }
    keel_model_destroy(m);
    keel_free(longest);
    assert_int_equal(keel_memory_live(), 0);
}

/* What is parsed takes memory for each value, so these are counted before; commas and brackets of
 * names are none. */
static void values_of_keel_json_are_counted_and_letters_of_names_are_not(void **state)
{
    (void)state;
    enum { NAMES = 300, COMMAS = 4000, MOST = (1 << 20) + 16 };
    keel_model *m = NULL;
    char *text = malloc(NAMES * (COMMAS + 16) + 64), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{\"class_names\":[");
    for (int i = 0; i < NAMES; i++) {
        at += sprintf(at, "%s\"%d\\\"", i ? "," : "", i);
        memset(at, ",[{"[i % 3], COMMAS);
        at += COMMAS;
        *at++ = '"';
    }
    at += sprintf(at, "]}");
    OK(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    OK(keel_model_read_extra(m, text, (size_t)(at - text)));
    assert_int_equal(keel_model_class_count(m), NAMES);
    for (int more = 0; more < 2; more++) { /* a text that is no JSON: which of the two is told? */
        memset(text, ',', MOST + (size_t)more);
        assert_int_equal(keel_model_read_extra(m, text, MOST + (size_t)more), KEEL_EFORMAT);
        if (!strstr(keel_error(), more ? "more than 1048592 values" : "line 1"))
            fail_msg("%s", keel_error());
    }
    keel_model_destroy(m);
    free(text);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keras_files_predict_what_keras_predicted),
        cmocka_unit_test(what_is_saved_again_equals_the_file_of_keras),
        cmocka_unit_test(a_schedule_and_an_unknown_metric_go_through_a_file),
        cmocka_unit_test(a_state_in_the_order_of_an_older_keras_is_refused_with_what_to_do),
        cmocka_unit_test(the_state_of_weights_that_were_frozen_since_is_left_out),
        cmocka_unit_test(the_optimizer_s_state_comes_with_the_file),
        cmocka_unit_test(layers_and_weights_stand_in_keras_order),
        cmocka_unit_test(a_model_built_here_comes_back_from_its_file),
        cmocka_unit_test(names_of_classes_come_back_with_the_model),
        cmocka_unit_test(wrong_names_of_classes_are_refused_and_change_nothing),
        cmocka_unit_test(values_of_keel_json_are_counted_and_letters_of_names_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
