/* docs/keras.md: every public name of Keras that a saved model can hold, and what Keel does with
 * it. The page is made of Keel's own lists and of golden/surface.json, Keras's names, made by
 * golden/make_surface.py. This program holds that the page is up to date;
 * in the build folder, tests/test_surface --write ../docs/keras.md writes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "constraints/constraint.h"
#include "activations/activation.h"
#include "base/memory.h"
#include "base/text.h"
#include "golden.h"
#include "initializers/initializer.h"
#include "layers/layer.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "optimizers/loss_scale.h"
#include "optimizers/multi.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedules/rate.h"
#include "regularizers/regularizer.h"
#include "train/callbacks/watcher.h"

static const keel_type *find_layer(const char *name)
{
    const keel_layer *l = keel_layer_find(name);
    return l ? &l->type : NULL;
}

static const keel_type *find_operation(const char *name)
{
    char with_module[160];
    snprintf(with_module, sizeof with_module, "ops.%.150s", name);
    return find_layer(with_module);
}

/* Also those that hold others. */
static const keel_type *find_optimizer(const char *name)
{
    const keel_type *t = keel_optimizer_find(name);
    if (!t) t = keel_loss_scale_find(name);
    if (!t) t = keel_multi_find(name);
    return t ? t : keel_optimizer_map_find(name);
}

static const struct {
    const char *group, *title;
    const keel_type *(*find)(const char *name);
} groups[] = {
    { "layers", "Layers", find_layer },
    { "activations", "Activations", keel_activation_find },
    { "losses", "Losses", keel_loss_find },
    { "metrics", "Metrics", keel_metric_find },
    { "optimizers", "Optimizers", find_optimizer },
    { "optimizers.schedules", "Learning rate schedules", keel_rate_find },
    { "initializers", "Initializers", keel_initializer_find },
    { "regularizers", "Regularizers", keel_regularizer_find },
    { "constraints", "Constraints", keel_constraint_find },
    { "callbacks", "Callbacks", keel_watcher_find },
    { "ops", "Operations between layers", find_operation },
    { "ops.image", "Operations on images between layers", find_operation },
};
enum { GROUPS = sizeof groups / sizeof *groups };

/* Why a name is missing, where it is not only a matter of time. */
static const struct {
    const char *name, *why;
} reasons[] = {
    { "Lambda", "its function is Python code" },
    { "Layer", "base of layers in Python" },
    { "Wrapper", "base of layers in Python" },
    { "Pipeline", "holds layers that run in Python only" },
    { "MaxNumBoundingBoxes", "changes bounding boxes, which no model passes on" },
    { "AbstractRNNCell", "base of cells in Python" },
    { "InputSpec", "no layer" },
    { "TFSMLayer", "runs a TensorFlow graph" },
    { "JaxLayer", "runs JAX code" },
    { "FlaxLayer", "runs JAX code" },
    { "TorchModuleWrapper", "runs PyTorch code" },
    { "Loss", "base of losses in Python" },
    { "Metric", "base of metrics in Python" },
    { "Mean", "takes values, not targets and predictions" },
    { "Sum", "takes values, not targets and predictions" },
    { "Optimizer", "base of optimizers in Python" },
    { "LearningRateSchedule", "base of schedules in Python" },
    { "Initializer", "base of initializers in Python" },
    { "RandomInitializer", "base of initializers in Python" },
    { "Regularizer", "base of regularizers in Python" },
    { "Constraint", "base of constraints in Python" },
    { "Callback", "base of callbacks in Python; in C it is the struct keel_callback" },
    { "CallbackList", "keel_fit_options.callbacks is the list" },
    { "LambdaCallback", "it is the C struct keel_callback itself" },
    { "History", "every fit has one, keel_history" },
    { "RemoteMonitor", "Keel opens no connections" },
    { "OrbaxCheckpoint", "the format of another library" },
    { "Cond", "its branches are Python code" },
    { "ForiLoop", "its body is Python code" },
    { "Map", "its function is Python code" },
    { "Scan", "its function is Python code" },
    { "AssociativeScan", "its function is Python code" },
    { "Switch", "its branches are Python code" },
    { "VectorizedMap", "its function is Python code" },
    { "WhileLoop", "its body is Python code" },
    { "AllClose", "it would mix the rows of a batch" },
    { "Bincount", "it would mix the rows of a batch" },
    { "Corrcoef", "it would mix the rows of a batch" },
    { "Correlate", "it would mix the rows of a batch" },
    { "Diag", "it would mix the rows of a batch" },
    { "Diagflat", "it would mix the rows of a batch" },
    { "Flipud", "it would mix the rows of a batch" },
    { "Histogram", "it would mix the rows of a batch" },
    { "Lstsq", "it would mix the rows of a batch" },
    { "Meshgrid", "it would mix the rows of a batch" },
    { "Outer", "it would mix the rows of a batch" },
    { "PSNR", "it would mix the rows of a batch" },
    { "Ravel", "it would mix the rows of a batch" },
    { "SegmentMax", "it would mix the rows of a batch" },
    { "SegmentMin", "it would mix the rows of a batch" },
    { "SegmentProd", "it would mix the rows of a batch" },
    { "SegmentSum", "it would mix the rows of a batch" },
    { "Unique", "it would mix the rows of a batch" },
    { "Vdot", "it would mix the rows of a batch" },
    { "Vsplit", "it would mix the rows of a batch" },
    { "Vstack", "it would mix the rows of a batch" },
    { "Scatter", "its result has no row for each row of a batch" },
    { "MapCoordinates", "its coordinates count the rows of a batch" },
    { "ElasticTransform",
      "it draws numbers, in predict too, that Keras's backends draw differently; the layer "
      "RandomElasticTransform is there" },
    { "ScatterUpdate", "its indices count the rows of a batch" },
    { "CTCDecode", "its result has no row for each row of a batch" },
    { "Ndim", "its result has no row for each row of a batch" },
    { "Size", "its result has no row for each row of a batch" },
    { "Arange", "its size depends on numbers" },
    { "Nonzero", "its size depends on numbers" },
    { "Argpartition", "Keras leaves the order of its places open, and mixes rows on TensorFlow" },
    { "Nextafter", "Keras's backends disagree: TensorFlow steps in float64" },
    { "View", "it reads the bits of numbers as those of another type" },
    { "ViewAsComplex", "its values are complex numbers" },
    { "ViewAsReal", "its values are complex numbers" },
    { "Polar", "its values are complex numbers" },
    { "Eig", "its values are complex numbers" },
    { "LuFactor", "Keras's backends disagree: TensorFlow takes no batch of matrices" },
    { "Eigh", "the signs of its vectors are open, and Keras's backends disagree" },
    { "JVP", "its function is Python code" },
    { "CTCLoss", "the loss CTC has it" },
    { "Conv", "its kernel is no weight of a layer" },
    { "ConvTranspose", "its kernel is no weight of a layer" },
    { "DepthwiseConv", "its kernel is no weight of a layer" },
    { "SeparableConv", "its kernel is no weight of a layer" },
};

/* What a model's file holds besides, which is read by code of its own: what Keel does with each
 * name of these groups. */
#define QUANTIZED                                                                                  \
    "missing: what `quantize()` makes of a layer is for inference, and without its kernels in "    \
    "float32. Train the model as it was before, and quantize it then"
static const struct {
    const char *group, *title, *name, *what;
} others[] = {
    { "models", "Models", "Sequential", "trains here" },
    { "models", "Models", "Model",
      "trains here where it is made of inputs and outputs (Functional). missing: a subclass, whose "
      "`call` is Python code" },
    { "dtype_policies", "Dtype policies", "DTypePolicy",
      "trains here: `float32`, `mixed_bfloat16` and `mixed_float16`. missing: `bfloat16` and "
      "`float16`, whose weights lose small updates; `float64`, which is for checks, from C" },
    { "dtype_policies", "Dtype policies", "FloatDTypePolicy", "DTypePolicy by another name" },
    { "dtype_policies", "Dtype policies", "DTypePolicyMap",
      "missing: what is inside a layer has the layer's policy" },
    { "dtype_policies", "Dtype policies", "QuantizedDTypePolicy", QUANTIZED " (`int8`)" },
    { "dtype_policies", "Dtype policies", "Int4DTypePolicy", QUANTIZED " (`int4`)" },
    { "dtype_policies", "Dtype policies", "GPTQDTypePolicy", QUANTIZED " (`gptq`)" },
    { "dtype_policies", "Dtype policies", "AWQDTypePolicy", QUANTIZED " (`awq`)" },
    { "dtype_policies", "Dtype policies", "QuantizedFloat8DTypePolicy",
      "missing: products in float8, with scales that Keras trains. Kernel and bias are float32 in "
      "such a file: the first weights of each layer, which `set_weights` takes in a model that was "
      "not quantized" },
    { "quantizers", "Quantizers", "AbsMaxQuantizer", "left alone inside `quantization_config`" },
    { "quantizers", "Quantizers", "Quantizer", "left alone inside `quantization_config`" },
    { "quantizers", "Quantizers", "QuantizationConfig", "left alone" },
    { "quantizers", "Quantizers", "Int8QuantizationConfig", "left alone" },
    { "quantizers", "Quantizers", "Int4QuantizationConfig", "left alone" },
    { "quantizers", "Quantizers", "Float8QuantizationConfig", "left alone" },
    { "quantizers", "Quantizers", "GPTQConfig", "left alone" },
    { "quantizers", "Quantizers", "AWQConfig", "left alone" },
    { "random", "Random numbers", "SeedGenerator",
      "read as its seed; numbers are drawn as ARCHITECTURE.md says" },
};

static const char *reason(const char *class_name)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strcmp(reasons[i].name, class_name)) return reasons[i].why;
    return "not there yet";
}

static const keel_field *field_of(const keel_type *t, const char *key)
{
    for (const keel_field *f = t->fields; f && f->key; f++)
        if (!strcmp(f->key, key)) return f;
    return NULL;
}

/* Why an argument without a field has only its default: a file cannot have another value. */
static const char *never_saved(const char *group, const char *key)
{
    if (!strcmp(group, "activations")) return "a file has only the function's name";
    return !strcmp(key, "input_tensor") ? "Keras leaves it out of files" : NULL;
}

/* Of every layer, or read with the keys that all layers share. */
static bool is_common(const char *key)
{
    static const char *const common[] = { "activity_regularizer", "shape", "batch_size",
                                          "batch_shape" };
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (!strcmp(key, common[i])) return true;
    return false;
}

/* Arguments of Keras that Keel has, and those that it accepts only with their default, each with
 * its reason. Those of an operation that are no fields are its operands. */
static void add_arguments(keel_text *out, int group, const json_t *args, const keel_type *t,
                          bool taken)
{
    const char *key;
    json_t *dflt;
    int n = 0;
    json_object_foreach((json_t *)args, key, dflt)
    {
        const keel_field *f = field_of(t, key);
        const bool has = f ? f->kind != KEEL_FIELD_REFUSE
                           : groups[group].find == find_operation || is_common(key);
        if (has != taken) continue;
        if (taken) {
            keel_text_add(out, "%s%s", n++ ? ", " : "", key);
            continue;
        }
        const char *why = f ? f->help : never_saved(groups[group].group, key);
        if (!why) fail_msg("%s: %s has only its default, without a reason", t->name, key);
        keel_text_add(out, "%s%s: %s", n++ ? "; " : "", key, why);
    }
}

/* It becomes the metric of its function when a file is read. */
static bool is_wrapper(const char *class_name)
{
    return !strcmp(class_name, "MeanMetricWrapper");
}

static void add_group(keel_text *out, const json_t *names, int group)
{
    const char *name;
    json_t *v;
    int there = 0;
    json_object_foreach((json_t *)names, name, v)
    {
        const char *class_name = golden_text(v, "class");
        there += groups[group].find(class_name) || is_wrapper(class_name);
    }
    keel_text_add(out, "\n## %s\n%d of %d names of `keras.%s`.\n\n", groups[group].title, there,
                  (int)json_object_size(names), groups[group].group);
    keel_text_add(out,
                  "| name | state | arguments | with their default only |\n|---|---|---|---|\n");
    json_object_foreach((json_t *)names, name, v)
    {
        const char *class_name = golden_text(v, "class");
        const keel_type *t = *class_name ? groups[group].find(class_name) : NULL;
        if (!t) continue;
        keel_text_add(out, "| %s | trains here | ", name);
        add_arguments(out, group, json_object_get(v, "args"), t, true);
        keel_text_add(out, " | ");
        add_arguments(out, group, json_object_get(v, "args"), t, false);
        keel_text_add(out, " |\n");
    }
    json_object_foreach((json_t *)names, name, v)
    {
        const char *class_name = golden_text(v, "class");
        if (!*class_name || groups[group].find(class_name)) continue;
        if (is_wrapper(class_name))
            keel_text_add(
                out,
                "| %s | trains here, around a function of Keras's | fn, and its arguments "
                "| |\n",
                name);
        else
            keel_text_add(out, "| %s | missing: %s | | |\n", name, reason(class_name));
    }
}

static void add_others(keel_text *out, const json_t *surface)
{
    const char *group = "", *name;
    json_t *v;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *names = json_object_get(surface, others[i].group);
        if (!json_object_get(names, others[i].name))
            fail_msg("keras.%s has no %s", others[i].group, others[i].name);
        if (strcmp(group, others[i].group)) {
            group = others[i].group;
            keel_text_add(out, "\n## %s\n", others[i].title);
            if (!strcmp(group, "quantizers"))
                keel_text_add(out,
                              "What a layer that is not quantized has as `quantization_config` "
                              "is for a later `quantize()`: it changes no number, and stays in "
                              "the file.\n");
            keel_text_add(out, "\n| name | state |\n|---|---|\n");
            json_object_foreach((json_t *)names, name, v)
            {
                bool said = false;
                for (size_t k = 0; k < sizeof others / sizeof *others; k++)
                    said =
                        said || (!strcmp(others[k].group, group) && !strcmp(others[k].name, name));
                if (!said) fail_msg("keras.%s.%s: nothing is said of it", group, name);
            }
        }
        keel_text_add(out, "| %s | %s |\n", others[i].name, others[i].what);
    }
}

static void add_nodeless(keel_text *out, const json_t *names)
{
    const char *name;
    json_t *v;
    int n = 0;
    keel_text_add(out, "\nThese functions leave no node of their own in a model's file: ");
    json_object_foreach((json_t *)names, name, v)
    {
        if (!*golden_text(v, "class")) keel_text_add(out, "%s%s", n++ ? ", " : "", name);
    }
    keel_text_add(out, ".\n");
}

static void make_page(keel_text *out)
{
    json_t *surface = golden_load("surface.json");
    keel_text_add(
        out, "# What of Keras trains here\n\n"
             "All public names of Keras 3.15 that a saved model can hold, and what Keel does "
             "with each. This page is made from Keel's own tables (`test_surface --write`), and "
             "a test compares it with them.\n\n"
             "*trains here*: read from a `.keras` file and trained. *arguments*: those that may "
             "have any value that Keras allows, unless an error names it. *with their default "
             "only*: another value is refused by name, for the reason given. *missing*: a model "
             "with it is refused by "
             "name, before the first step. Classes of your own can be registered in C: "
             "[custom.md](custom.md).\n");
    for (int i = 0; i < GROUPS; i++) add_group(out, json_object_get(surface, groups[i].group), i);
    add_nodeless(out, json_object_get(surface, "ops"));
    add_others(out, surface);
    json_decref(surface);
    assert_false(out->failed);
}

/* Keras's default, as Python writes it, as JSON: a new reference. */
static json_t *python_value(const char *text)
{
    json_t *v = !strcmp(text, "None")    ? json_null()
                : !strcmp(text, "True")  ? json_true()
                : !strcmp(text, "False") ? json_false()
                                         : json_loads(text, JSON_DECODE_ANY, NULL);
    return v ? v : json_string(text); /* without quotes */
}

/* Of what is given by its arguments: of layers, losses and metrics the configurations are compared
 * (golden/make_layers.py and others). */
static void defaults_are_those_of_keras(void **state)
{
    static const char *const which[] = { "optimizers", "optimizers.schedules", "initializers",
                                         "regularizers", "constraints" };
    json_t *surface = golden_load("surface.json"), *v, *dflt;
    const char *name, *key;
    int compared = 0;
    (void)state;
    for (int g = 0; g < GROUPS; g++) {
        bool wanted = false;
        for (size_t i = 0; i < sizeof which / sizeof *which; i++)
            wanted = wanted || !strcmp(groups[g].group, which[i]);
        json_object_foreach(json_object_get(surface, groups[g].group), name, v)
        {
            const char *class_name = golden_text(v, "class");
            const keel_type *t = wanted && *class_name ? groups[g].find(class_name) : NULL;
            json_object_foreach(t ? json_object_get(v, "args") : NULL, key, dflt)
            {
                const keel_field *f = field_of(t, key);
                if (!f) fail_msg("%s: no argument '%s'", name, key);
                if (f->kind == KEEL_FIELD_IGNORE) continue;
                if (!json_is_string(dflt)) {
                    if (f->dflt) fail_msg("%s: %s must be given", name, key);
                    continue;
                }
                json_t *want = python_value(json_string_value(dflt));
                json_t *got = f->dflt ? json_loads(f->dflt, JSON_DECODE_ANY, NULL) : NULL;
                const bool same = json_is_number(want) && json_is_number(got)
                                      ? json_number_value(want) == json_number_value(got)
                                      : json_equal(want, got);
                if (!same)
                    fail_msg("%s: %s is %s by default, in Keras %s", name, key,
                             f->dflt ? f->dflt : "not there", json_string_value(dflt));
                json_decref(want);
                json_decref(got);
                compared++;
            }
        }
    }
    json_decref(surface);
    assert_true(compared > 200);
}

static void docs_keras_md_says_what_the_tables_say(void **state)
{
    const char *path = golden_path("../../docs/keras.md");
    keel_text page = { 0 };
    (void)state;
    make_page(&page);
    FILE *f = fopen(path, "rb");
    char *have = calloc(1, page.length + 2);
    assert_non_null(f);
    assert_non_null(have);
    const size_t n = fread(have, 1, page.length + 1, f);
    fclose(f);
    if (n != page.length || memcmp(have, page.data, n))
        fail_msg(
            "docs/keras.md is old: run in build/: tests/test_surface --write ../docs/keras.md");
    free(have);
    keel_text_free(&page);
}

static int write_page(const char *path)
{
    keel_text page = { 0 };
    make_page(&page);
    FILE *f = fopen(path, "wb");
    const bool written = f && fwrite(page.data, 1, page.length, f) == page.length;
    keel_text_free(&page);
    return f && fclose(f) == 0 && written ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_keras),
        cmocka_unit_test(docs_keras_md_says_what_the_tables_say),
    };
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_page(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
