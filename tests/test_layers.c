/* Layers against Keras: shapes, weights, configurations and what they compute
 * (tests/golden/layers.json), TensorFlow's 'same' padding, and what is refused, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "base/memory.h"
#include "golden.h"
#include "keel/keel.h"
#include "model/parts.h"

/* Equal, where 6 and 6.0 are the same number. */
static bool same_json(const json_t *a, const json_t *b)
{
    size_t i;
    const char *key;
    json_t *v;
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (json_is_array(a) && json_array_size(a) == json_array_size(b)) {
        json_array_foreach((json_t *)a, i, v) if (!same_json(v, json_array_get(b, i))) return false;
        return true;
    }
    if (!json_is_object(a) || !json_is_object(b)) return json_equal((json_t *)a, (json_t *)b);
    json_object_foreach((json_t *)a, key,
                        v) if (!same_json(v, json_object_get(b, key))) return false;
    return true;
}

static void check_weights(const keel_model *m, const json_t *weights, const char *what)
{
    assert_int_equal(m->n_weight, json_array_size(weights));
    for (int i = 0; i < m->n_weight; i++) {
        const json_t *w = json_array_get(weights, (size_t)i);
        const char *slash = strchr(m->weight[i].info.name, '/');
        const json_t *dims = json_array_get(w, 1);
        const keel_shape *shape = &m->weight[i].info.spec.shape;
        if (strcmp(slash + 1, json_string_value(json_array_get(w, 0)))) fail_msg("%s: name", what);
        if (shape->rank != (int)json_array_size(dims)) fail_msg("%s: rank", what);
        for (int k = 0; k < shape->rank; k++)
            assert_int_equal(shape->dim[k], json_integer_value(json_array_get(dims, (size_t)k)));
        assert_int_equal(m->weight[i].trainable, json_is_true(json_array_get(w, 2)));
    }
}

enum { ROWS = 2, INS = 4 };
static keel_strategy *one;

static void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

/* As number() in make_layers.py. */
static void numbers(float *out, const keel_shape *shape, int k)
{
    for (int64_t i = 0; i < keel_shape_count(shape); i++)
        out[i] = (float)((i * 37 + 29 * k + 11) % 101 - 50) / 32;
}

static bool is_variance(const keel_model_weight *w)
{
    const char *slash = strchr(w->info.name, '/');
    return slash && strstr(slash, "variance");
}

static void check_computed(keel_model *m, keel_symbol out, int n, const json_t *want,
                           const char *what)
{
    static const char *const names[INS] = { "a", "b", "c", "d" };
    keel_array_field field[INS] = { { 0 } };
    keel_dataset *d;
    keel_tensor y;
    must(keel_model_fill_weights(m));
    must(keel_model_outputs(m, &out, 1));
    for (int i = 0; i < m->n_weight; i++) {
        keel_tensor w;
        must(keel_tensor_create(&w, KEEL_FLOAT32, &m->weight[i].info.spec.shape));
        numbers(w.data, &w.shape, i);
        for (int64_t k = 0; is_variance(&m->weight[i]) && k < keel_shape_count(&w.shape); k++)
            ((float *)w.data)[k] = fabsf(((float *)w.data)[k]);
        must(keel_model_set_weight(m, m->weight[i].info.name, &w));
        keel_tensor_free(&w);
    }
    for (int i = 0; i < n; i++) {
        keel_shape shape = { .rank = 1, .dim = { ROWS } };
        must(keel_model_input_shape(m, i, &shape));
        for (int k = shape.rank++; k > 0; k--) shape.dim[k] = shape.dim[k - 1];
        shape.dim[0] = ROWS;
        field[i] = (keel_array_field){ .path = names[i], .role = KEEL_ROLE_INPUT };
        must(keel_tensor_create(&field[i].array, KEEL_FLOAT32, &shape));
        numbers(field[i].array.data, &shape, i);
    }
    must(keel_dataset_from_fields(&d, field, n));
    must(keel_predict(m, one, d, NULL, &y));
    assert_int_equal(keel_shape_count(&y.shape), json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++) {
        const double got = (double)((float *)y.data)[i];
        if (!golden_near(got, json_number_value(json_array_get(want, i)), 4e-6))
            fail_msg("%s: output %zu is %.9g, in Keras %.9g", what, i, got,
                     json_number_value(json_array_get(want, i)));
    }
    keel_tensor_free(&y);
    keel_dataset_destroy(d);
    for (int i = 0; i < n; i++) keel_tensor_free(&field[i].array);
}

static void layers_have_keras_shapes_weights_configurations_and_outputs(void **state)
{
    (void)state;
    must(keel_strategy_create(&one, "cpu:0"));
    json_t *cases = golden_load("layers.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        keel_model *m = NULL;
        keel_symbol in[INS], out;
        int layer;
        const char *class_name = golden_text(c, "class");
        const json_t *config = json_object_get(c, "config"), *inputs = json_object_get(c, "in");
        const keel_shape want = golden_shape(c, "out");
        assert_int_equal(keel_model_create(&m, "m", KEEL_FLOAT32, 1), KEEL_OK);
        const int n = (int)json_array_size(inputs);
        for (int k = 0; k < n; k++) {
            const json_t *dims = json_array_get(inputs, (size_t)k);
            keel_shape shape = { .rank = (int)json_array_size(dims) };
            for (int d = 0; d < shape.rank; d++)
                shape.dim[d] = json_integer_value(json_array_get(dims, (size_t)d));
            assert_int_equal(keel_model_input(m, &shape, NULL, &in[k]), KEEL_OK);
        }
        if (keel_model_new_layer(m, class_name, config, &layer) < 0 ||
            keel_model_new_node(m, layer, &(keel_model_call_of){ in, n }, &out) < 0)
            fail_msg("%s %zu: %s", class_name, i, keel_error());
        if (!keel_shape_equal(&m->symbol[out].spec.shape, &want)) fail_msg("%s %zu", class_name, i);
        check_weights(m, json_object_get(c, "weights"), class_name);

        const keel_model_layer *l = &m->layer[layer];
        const keel_layer_common common = { .name = l->name, .trainable = l->trainable };
        json_t *written = NULL;
        assert_int_equal(keel_layer_config(l->kind, l->args, &common, &written), KEEL_OK);
        if (!same_json(written, config))
            fail_msg("%s %zu is written as %s", class_name, i, json_dumps(written, 0));
        json_decref(written);
        char what[64];
        snprintf(what, sizeof what, "%s %zu", class_name, i);
        if (json_object_get(c, "y")) check_computed(m, out, n, json_object_get(c, "y"), what);
        keel_model_destroy(m);
    }
    json_decref(cases);
    keel_strategy_destroy(one);
    assert_int_equal(keel_memory_live(), 0);
}

static void same_padding_is_tensorflow_s(void **state)
{
    (void)state;
    for (int64_t in = 1; in <= 17; in++)
        for (int64_t size = 1; size <= 5; size++)
            for (int64_t stride = 1; stride <= 4; stride++)
                for (int64_t dilation = 1; dilation <= 3; dilation++) {
                    const keel_shape image = KEEL_SHAPE(in, in, 1);
                    const keel_ints k = { 2, { size, size } }, s = { 2, { stride, stride } },
                                    d = { 2, { dilation, dilation } };
                    int64_t pad[4], none[4];
                    keel_same_padding(&image, true, &k, &s, &d, pad);
                    keel_same_padding(&image, false, &k, &s, &d, none);
                    const int64_t reach = (size - 1) * dilation + 1;
                    const int64_t left = in % stride;
                    int64_t want = left ? reach - left : reach - stride; /* TF's own formula */
                    if (want < 0) want = 0;
                    assert_int_equal(pad[0], want / 2);
                    assert_int_equal(pad[1], want - want / 2);
                    assert_memory_equal(pad, pad + 2, 2 * sizeof *pad);
                    for (int i = 0; i < 4; i++) assert_int_equal(none[i], 0);
                }
}

#define EINSUM(equation, output_shape)                                                             \
    "{\"equation\": \"" equation "\", \"output_shape\": " output_shape "}"
#define WINDOW(more) "{\"filters\": 3, \"kernel_size\": 2" more "}"
#define FEW_HEADS(more)                                                                            \
    "{\"head_dim\": 2, \"num_key_value_heads\": 2, \"num_query_heads\": " more "}"
#define SIZE(more)  "{\"height\": 4, \"width\": 4" more "}"
#define HEADS(more) "{\"num_heads\": 2, \"key_dim\": 3" more "}"

/* Layers that must have two inputs or more have the same twice. */
static const struct {
    const char *class_name, *config;
    int64_t shape[KEEL_RANK_MAX + 1]; /* ends with 0 */
    keel_status want;
    const char *says;
} refused[] = {
    { "ops.Split", "{\"indices_or_sections\": 2}", { 4 }, KEEL_EUNSUP, "batch" },
    { "ops.Reshape", "{\"newshape\": [-1, 2]}", { 3, 2 }, KEEL_EUNSUP, "the batch comes first" },
    { "ops.Reshape", "{\"newshape\": [-1, 1000000000000, 1000000000000]}", { 6 }, KEEL_ESHAPE, "" },
    { "ops.BroadcastTo", "{\"shape\": [3, 4, 6]}", { 6 }, KEEL_EUNSUP, "rows do not mix" },
    { "ops.Einsum", "{\"subscripts\": \"bi->ib\"}", { 6 }, KEEL_EUNSUP, "rows do not mix" },
    { "ops.Einsum", "{\"subscripts\": \"bi\"}", { 6, 6 }, KEEL_ESHAPE, "1 letter for 2 dims" },
    { "ops.Einsum", "{\"subscripts\": \"cab\"}", { 6, 6 }, KEEL_EUNSUP, "rows do not mix" },
    { "ops.Einsum", "{\"subscripts\": \"bb->b\"}", { 6 }, KEEL_EUNSUP, "rows do not mix" },
    { "ops.Einsum", "{\"subscripts\": \"bii->bi\"}", { 2, 3 }, KEEL_ESHAPE, "'i' is 2 and 3" },
    { "ops.Einsum", "{\"subscripts\": \"bi->bii\"}", { 2 }, KEEL_EARG, "twice in the result" },
    { "ops.Dot", "{}", { 6 }, KEEL_EUNSUP, "each row of a batch would meet" },
    { "ops.TopK", "{\"k\": 7}", { 6 }, KEEL_ESHAPE, "k is 7" },
    { "TimeDistributed",
      "{\"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": 2, \"name\": \"d\", "
      "\"dtype\": \"mixed_bfloat16\"}}}",
      { 3, 2 },
      KEEL_EUNSUP,
      "'d' that it holds has another dtype" },
    { "ops.Cast", "{\"dtype\": \"uint8\"}", { 4 }, KEEL_EUNSUP, "uint8" },
    { "ops.Quantile", "{\"axis\": 1}", { 4 }, KEEL_EUNSUP, "argument q: one number" },
    { "ops.Quantile", "{\"axis\": 1, \"method\": \"lower\"}", { 4 }, KEEL_EUNSUP, "method" },
    { "ops.Median", "{}", { 4 }, KEEL_EUNSUP, "axis null is the batch" },
    { "ops.Median", "{\"axis\": []}", { 1, 1, 1, 1, 1, 1 }, KEEL_EARG, "axis" },
    { "ops.UnravelIndex", "{\"shape\": [2]}", { 4 }, KEEL_EUNSUP, "rows of one number" },
    { "ops.Nansum", "{}", { 4 }, KEEL_EUNSUP, "axis null is the batch" },
    { "ops.Append", "{}", { 4 }, KEEL_EUNSUP, "axis null is the batch" },
    { "ops.Diagonal", "{}", { 4, 4 }, KEEL_EUNSUP, "rows do not see each other" },
    { "ops.Rot90", "{}", { 4, 4 }, KEEL_EUNSUP, "rows do not see each other" },
    { "ops.Tril", "{}", { 4 }, KEEL_ESHAPE, "rows must be matrices" },
    { "ops.IsIn", "{}", { 4 }, KEEL_EUNSUP, "rows do not see each other" },
    { "ops.Vander", "{}", { 4 }, KEEL_EUNSUP, "rows of one number" },
    { "ops.Full", "{\"shape\": [6]}", { 6 }, KEEL_EUNSUP, "rows do not mix" },
    { "ops.Trapezoid", "{}", { 1 }, KEEL_ESHAPE, "no area" },
    { "ops.Unfold", "{\"kernel_size\": 5}", { 1, 4, 4 }, KEEL_ESHAPE, "does not fit" },
    { "ops.DotProductAttention", "{}", { 2, 2, 3 }, KEEL_EUNSUP, "key: a value of the model" },
    { "ops.Prod",
      "{\"dtype\": \"int32\"}",
      { 3 },
      KEEL_EUNSUP,
      "only float32: Keras on TensorFlow" },
    { "ops.Det", "{}", { 2, 3 }, KEEL_ESHAPE, "square matrices" },
    { "ops.Qr", "{}", { 3 }, KEEL_ESHAPE, "rows must be matrices" },
    { "ops.SVD", "{}", { 3, 3 }, KEEL_EUNSUP, "signs of the vectors" },
    { "ops.Norm", "{\"axis\": 1, \"ord\": \"nuc\"}", { 4 }, KEEL_EUNSUP, "nuc" },
    { "ops.Norm", "{\"axis\": [1, 2], \"ord\": 3}", { 3, 3 }, KEEL_EUNSUP, "ord 3" },
    { "ops.FFT", "{}", { 4 }, KEEL_EUNSUP, "real, imaginary" },
    { "ops.STFT",
      "{\"sequence_length\": 4, \"sequence_stride\": 2, \"fft_length\": 4, \"window\": "
      "\"bartlett\"}",
      { 8 },
      KEEL_EUNSUP,
      "bartlett" },
    { "ops.ISTFT",
      "{\"sequence_length\": 4, \"sequence_stride\": 2, \"fft_length\": 4, \"window\": "
      "[[1, 2], [3, 4]]}",
      { 8 },
      KEEL_EARG,
      "4 numbers" },
    { "Dense", "{}", { 3 }, KEEL_EARG, "units must be given" },
    { "Dense", "{\"units\": 0}", { 3 }, KEEL_EARG, "units" },
    { "Dense", "{\"units\": 2.5}", { 3 }, KEEL_EARG, "units" },
    { "Dense", "{\"units\": 2, \"unit\": 3}", { 3 }, KEEL_EARG, "unit" },
    { "Dense", "{\"units\": 2, \"activation\": \"nope\"}", { 3 }, KEEL_EUNSUP, "nope" },
    { "Dense",
      "{\"units\": 2, \"kernel_constraint\": \"no_neg\"}",
      { 3 },
      KEEL_EUNSUP,
      "kernel_constraint" },
    { "Dense", "{\"units\": 2, \"lora_rank\": 0}", { 3 }, KEEL_EARG, "lora_rank" },
    { "Dense",
      "{\"units\": 2, \"lora_rank\": 2, \"kernel_constraint\": \"non_neg\"}",
      { 3 },
      KEEL_EUNSUP,
      "Keras refuses" },
    { "Dense",
      "{\"units\": 2, \"dtype\": {\"class_name\": \"QuantizedDTypePolicy\", \"config\": "
      "{\"mode\": \"int8\", \"source_name\": \"float32\"}}}",
      { 3 },
      KEEL_EUNSUP,
      "train before quantize()" },
    { "Dense",
      "{\"units\": 2, \"dtype\": {\"class_name\": \"GPTQDTypePolicy\", \"config\": "
      "{\"mode\": \"gptq/4/128\", \"source_name\": \"float32\"}}}",
      { 3 },
      KEEL_EUNSUP,
      "GPTQDTypePolicy of mode gptq/4/128" },
    { "EinsumDense",
      "{\"equation\": \"ab,cb->ac\", \"output_shape\": 5, \"lora_rank\": 2}",
      { 3 },
      KEEL_EUNSUP,
      "with a lora_rank" },
    { "EinsumDense",
      "{\"equation\": \"ab,bc->ac\", \"output_shape\": 2, \"dtype\": "
      "\"float8_from_mixed_bfloat16\"}",
      { 3 },
      KEEL_EUNSUP,
      "quantized layers" },
    { "Dense",
      "{\"units\": 2, \"dtype\": {\"class_name\": \"DTypePolicyMap\", \"config\": "
      "{\"default_policy\": null, \"policy_map\": {}}}}",
      { 3 },
      KEEL_EUNSUP,
      "DTypePolicyMap" },
    { "Dense",
      "{\"units\": 2, \"activity_regularizer\": \"l3\"}",
      { 3 },
      KEEL_EUNSUP,
      "activity_regularizer" },
    { "Dense", "{\"units\": 2, \"dtype\": \"float16\"}", { 3 }, KEEL_EUNSUP, "float16" },
    { "Dense",
      "{\"units\": 2, \"dtype\": {\"class_name\": \"DTypePolicy\", \"config\": {\"name\": "
      "\"mixed_float8\"}}}",
      { 3 },
      KEEL_EUNSUP,
      "mixed_float8" },
    { "Dense", "{\"units\": 2, \"dtype\": \"bfloat16\"}", { 3 }, KEEL_EUNSUP, "bfloat16" },
    { "Dense", "{\"units\": 2, \"dtype\": 3}", { 3 }, KEEL_EARG, "dtype" },
    { "Dense", "{\"units\": 2, \"name\": \"a/b\"}", { 3 }, KEEL_EARG, "a/b" },
    { "Dense", "{\"units\": 2, \"trainable\": 1}", { 3 }, KEEL_EARG, "trainable" },
    { "Dense", "{\"units\": 4611686018427387904}", { 3 }, KEEL_EARG, "units" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"groups\": 2, \"lora_rank\": 2}",
      { 8, 8, 2 },
      KEEL_EUNSUP,
      "lora_rank with groups" },
    { "Conv2D", "{\"filters\": 2, \"kernel_size\": 3}", { 8, 8 }, KEEL_ESHAPE, "channels" },
    { "Conv2D", "{\"filters\": 2, \"kernel_size\": 9}", { 8, 8, 1 }, KEEL_ESHAPE, "conv2d" },
    { "Conv2D", "{\"filters\": 2, \"kernel_size\": [3]}", { 8, 8, 1 }, KEEL_EARG, "kernel_size" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"groups\": 2}",
      { 8, 8, 3 },
      KEEL_ESHAPE,
      "groups" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"strides\": 0}",
      { 8, 8, 1 },
      KEEL_EARG,
      "strides" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"padding\": \"full\"}",
      { 8, 8, 1 },
      KEEL_EARG,
      "padding" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"data_format\": \"channels_first\", \"activation\": "
      "\"softmax\"}",
      { 1, 8, 8 },
      KEEL_EUNSUP,
      "activation softmax with data_format channels_first" },
    { "Conv2D",
      "{\"filters\": 2, \"kernel_size\": 3, \"data_format\": \"channels_first\"}",
      { 8, 8 },
      KEEL_ESHAPE,
      "(height, width, channels)" },
    { "MaxPooling2D", "{}", { 1, 8, 1 }, KEEL_ESHAPE, "max_pool" },
    { "AveragePooling2D", "{}", { 8, 8, 1 }, KEEL_EARG, "pool_size" },
    { "GlobalAveragePooling2D", "{}", { 8 }, KEEL_ESHAPE, "(8,)" },
    { "Reshape", "{\"target_shape\": [5, -1]}", { 12 }, KEEL_ESHAPE, "reshape" },
    { "Reshape", "{\"target_shape\": [-1, -1]}", { 12 }, KEEL_ESHAPE, "-1" },
    { "Reshape", "{\"target_shape\": [1,1,1,1,1,1,12]}", { 12 }, KEEL_EUNSUP, "target_shape" },
    { "ZeroPadding2D", "{\"padding\": [1, 2, 3]}", { 8, 8, 1 }, KEEL_EARG, "padding" },
    { "Dropout", "{\"rate\": 1.5}", { 8 }, KEEL_EARG, "rate" },
    { "Dropout", "{\"rate\": 0.5, \"noise_shape\": [1, 8]}", { 8 }, KEEL_EUNSUP, "noise_shape" },
    { "Dropout", "{\"rate\": 0.5, \"noise_shape\": [null, 3]}", { 8 }, KEEL_ESHAPE, "noise_shape" },
    { "Dropout", "{\"rate\": 0.5, \"noise_shape\": [null]}", { 8 }, KEEL_ESHAPE, "noise_shape" },
    { "BatchNormalization", "{\"axis\": 0}", { 8, 8, 3 }, KEEL_EUNSUP, "axis 0 is the batch" },
    { "BatchNormalization", "{\"axis\": 4}", { 8, 8, 3 }, KEEL_EARG, "axis 4" },
    { "BatchNormalization",
      "{\"renorm\": true, \"renorm_clipping\": {\"max\": 1}}",
      { 8 },
      KEEL_EARG,
      "'max' is not rmin, rmax or dmax" },
    { "BatchNormalization",
      "{\"renorm\": true, \"renorm_clipping\": {\"rmax\": 1, \"rmin\": 2}}",
      { 8 },
      KEEL_EARG,
      "rmax 1 is less than rmin 2" },
    { "BatchNormalization",
      "{\"renorm\": true, \"renorm_clipping\": {\"dmax\": -1}}",
      { 8 },
      KEEL_EARG,
      "dmax -1 is negative" },
    { "BatchNormalization",
      "{\"renorm\": true, \"renorm_clipping\": {\"dmax\": \"1\"}}",
      { 8 },
      KEEL_EARG,
      "dmax must be a number" },
    { "BatchNormalization",
      "{\"renorm\": true, \"renorm_clipping\": [1]}",
      { 8 },
      KEEL_EARG,
      "a dictionary" },
    { "GroupNormalization", "{\"groups\": 3}", { 2, 8 }, KEEL_EARG, "multiple of 3" },
    { "GroupNormalization", "{\"axis\": -3}", { 2, 8 }, KEEL_EUNSUP, "axis -3 is the batch" },
    { "GroupNormalization", "{\"groups\": 0}", { 8 }, KEEL_EARG, "groups" },
    { "UnitNormalization", "{\"axis\": 0}", { 8 }, KEEL_EUNSUP, "batch" },
    { "AdaptiveMaxPooling2D", "{\"output_size\": 2}", { 8, 3 }, KEEL_ESHAPE, "3 dims" },
    { "AdaptiveMaxPooling2D", "{\"output_size\": 0}", { 8, 8, 3 }, KEEL_EARG, "output_size" },
    { "Normalization", "{\"mean\": 1}", { 8 }, KEEL_EARG, "given together" },
    { "Normalization",
      "{\"mean\": [1], \"variance\": 1}",
      { 8 },
      KEEL_EARG,
      "must have the same shape" },
    { "Normalization",
      "{\"mean\": [1, 2], \"variance\": [1, 2]}",
      { 8 },
      KEEL_ESHAPE,
      "mean has shape (2,)" },
    { "Normalization", "{\"mean\": [[]], \"variance\": [[]]}", { 8 }, KEEL_EARG, "numbers" },
    { "Normalization",
      "{\"mean\": [[1, 2], [3]], \"variance\": [[1, 2], [3, 4]]}",
      { 8 },
      KEEL_EARG,
      "as many numbers" },
    { "Normalization", "{\"axis\": 0}", { 8 }, KEEL_EUNSUP, "batch" },
    { "LayerNormalization", "{\"axis\": 0}", { 8 }, KEEL_EUNSUP, "batch" },
    { "LayerNormalization", "{\"axis\": []}", { 8 }, KEEL_EARG, "there must be one" },
    { "LayerNormalization", "{\"axis\": [1, -1]}", { 8, 3 }, KEEL_EUNSUP, "some from the end" },
    { "LayerNormalization", "{\"axis\": [1, 1]}", { 8, 3 }, KEEL_EARG, "axis 1 twice" },
    { "RMSNormalization", "{\"axis\": 1}", { 8, 3 }, KEEL_EUNSUP, "Keras 3.15 fails" },
    { "Softmax", "{\"axis\": 0}", { 8 }, KEEL_EUNSUP, "batch" },
    { "Softmax", "{\"axis\": [1, 0]}", { 8 }, KEEL_EUNSUP, "batch" },
    { "Softmax", "{\"axis\": []}", { 8 }, KEEL_EARG, "axis" },
    { "Rescaling", "{\"scale\": [1, 2]}", { 8, 3 }, KEEL_ESHAPE, "do not fit rows of (8, 3)" },
    { "Rescaling", "{\"scale\": [1, [2]]}", { 8, 2 }, KEEL_EUNSUP, "lists of them" },
    { "Rescaling", "{\"scale\": \"large\"}", { 8 }, KEEL_EUNSUP, "argument scale" },
    { "Rescaling", "{\"scale\": [[[1]], [[2]]]}", { 8, 2 }, KEEL_EUNSUP, "each row of a batch" },
    { "Dense",
      "{\"units\": 2, \"activation\": {\"module\": \"keras.layers\", \"class_name\": \"PReLU\"}}",
      { 8 },
      KEEL_EUNSUP,
      "make it a layer behind this one" },
    { "Dense",
      "{\"units\": 2, \"activation\": {\"module\": \"keras.layers\", \"class_name\": \"Softmax\", "
      "\"config\": {\"axis\": 2}}}",
      { 8 },
      KEEL_EARG,
      "axis 2" },
    { "Softmax", "{\"axis\": 2}", { 8 }, KEEL_EARG, "axis 2" },
    { "ReLU", "{\"negative_slope\": -1}", { 8 }, KEEL_EARG, "negative_slope" },
    { "Activation", "{}", { 8 }, KEEL_EARG, "activation" },
    { "Conv3D", "{\"filters\": 2, \"kernel_size\": 3}", { 8, 8, 1 }, KEEL_ESHAPE, "depth" },
    { "Conv3D", "{\"filters\": 2, \"kernel_size\": 3}", { 8, 8, 2, 1 }, KEEL_ESHAPE, "conv3d" },
    { "MaxPooling3D", "{\"strides\": [1, 1]}", { 8, 8, 8, 1 }, KEEL_EARG, "strides" },
    { "Conv2DTranspose",
      "{\"filters\": 2, \"kernel_size\": 3, \"strides\": 2, \"output_padding\": 2}",
      { 8, 8, 1 },
      KEEL_EARG,
      "output_padding" },
    { "Conv2DTranspose",
      "{\"filters\": 2, \"kernel_size\": 2, \"padding\": \"same\", \"output_padding\": 0}",
      { 8, 8, 1 },
      KEEL_ESHAPE,
      "output_padding 0" },
    { "Cropping2D", "{\"cropping\": 4}", { 8, 8, 1 }, KEEL_ESHAPE, "cropping" },
    { "UpSampling2D", "{\"interpolation\": \"area\"}", { 8, 8, 1 }, KEEL_EARG, "interpolation" },
    { "Resizing", "{\"height\": 4}", { 8, 8, 1 }, KEEL_EARG, "width must be given" },
    { "Resizing", SIZE(", \"interpolation\": \"mitchell\""), { 8, 8, 1 }, KEEL_EARG, "mitchell" },
    { "Resizing", SIZE(", \"fill_mode\": \"wrap\""), { 8, 8, 1 }, KEEL_EARG, "fill_mode" },
    { "Resizing",
      SIZE(", \"crop_to_aspect_ratio\": true, \"pad_to_aspect_ratio\": true"),
      { 8, 8, 1 },
      KEEL_EARG,
      "only one" },
    { "CenterCrop", SIZE(""), { 8, 8 }, KEEL_ESHAPE, "(8, 8)" },
    { "RandomCrop", "{\"height\": 0, \"width\": 4}", { 8, 8, 1 }, KEEL_EARG, "height" },
    { "RandomFlip", "{\"mode\": \"diagonal\"}", { 8, 8, 1 }, KEEL_EARG, "diagonal" },
    { "AutoContrast",
      "{\"data_format\": \"channels_first\"}",
      { 8, 8, 1 },
      KEEL_EUNSUP,
      "channels_first: Keras 3.15 stretches along the width" },
    { "RandomColorJitter",
      "{\"data_format\": \"channels_first\"}",
      { 8, 8, 1 },
      KEEL_EUNSUP,
      "channels_first" },
    { "RandomRotation", "{}", { 8, 8, 1 }, KEEL_EARG, "factor must be given" },
    { "RandomRotation", "{\"factor\": 1.5}", { 8, 8, 1 }, KEEL_EARG, "factor 1.5" },
    { "RandomRotation", "{\"factor\": [0.1, 0.2, 0.3]}", { 8, 8, 1 }, KEEL_EARG, "pair" },
    { "RandomRotation",
      "{\"factor\": 0.5, \"fill_mode\": \"mirror\"}",
      { 8, 8, 1 },
      KEEL_EARG,
      "mirror" },
    { "RandomRotation",
      "{\"factor\": 0.5, \"interpolation\": \"bicubic\"}",
      { 8, 8, 1 },
      KEEL_EARG,
      "bicubic" },
    { "RandomRotation", "{\"factor\": 0.5}", { 8, 8 }, KEEL_ESHAPE, "(8, 8)" },
    { "RandomZoom", "{\"height_factor\": -1}", { 8, 8, 1 }, KEEL_EARG, "height_factor" },
    { "RandomZoom",
      "{\"height_factor\": 0.5, \"width_factor\": [0.5, 2]}",
      { 8, 8, 1 },
      KEEL_EARG,
      "width_factor 2" },
    { "RandomTranslation",
      "{\"height_factor\": [-2, 0.5], \"width_factor\": 0}",
      { 8, 8, 1 },
      KEEL_EARG,
      "height_factor -2" },
    { "RandomBrightness",
      "{\"factor\": 0.5, \"value_range\": [1]}",
      { 8, 8, 1 },
      KEEL_EARG,
      "value_range" },
    { "RandomBrightness", "{\"factor\": [2, 3]}", { 8, 8, 1 }, KEEL_EARG, "factor 3" },
    { "RandomContrast", "{\"factor\": -0.5}", { 8, 8, 1 }, KEEL_EARG, "factor -0.5" },
    { "RandomHue", "{\"factor\": 0.5}", { 8, 8, 1 }, KEEL_ESHAPE, "red, green and blue" },
    { "RandomSharpness", "{\"factor\": -0.5}", { 8, 8, 3 }, KEEL_EARG, "factor -0.5" },
    { "RandomGaussianBlur", "{\"sigma\": 2}", { 8, 8, 3 }, KEEL_EARG, "sigma 2" },
    { "RandomGaussianBlur", "{\"kernel_size\": [3, 2]}", { 8, 8, 3 }, KEEL_EARG, "is not odd" },
    { "RandomErasing", "{\"fill_value\": [1, 2]}", { 8, 8, 3 }, KEEL_EARG, "fill_value" },
    { "RandomErasing", "{\"scale\": 2}", { 8, 8, 3 }, KEEL_EARG, "scale 2" },
    { "RandomColorJitter", "{\"hue_factor\": 2}", { 8, 8, 3 }, KEEL_EARG, "hue_factor 2" },
    { "RandomColorJitter", "{\"hue_factor\": 0.5}", { 8, 8, 2 }, KEEL_ESHAPE, "red, green" },
    { "AutoContrast", "{\"value_range\": 255}", { 8, 8, 3 }, KEEL_EARG, "value_range" },
    { "Equalization", "{\"bins\": 0}", { 8, 8, 3 }, KEEL_EARG, "bins" },
    { "Equalization", "{\"value_range\": [1]}", { 8, 8, 3 }, KEEL_EARG, "value_range" },
    { "ContrastLimitedAdaptiveHistogramEqualization",
      "{\"tile_grid_size\": [0, 8]}",
      { 8, 8, 3 },
      KEEL_EARG,
      "tile_grid_size" },
    { "ContrastLimitedAdaptiveHistogramEqualization",
      "{}",
      { 3, 8, 3 },
      KEEL_ESHAPE,
      "8 tiles reach beyond" },
    { "RandAugment", "{\"factor\": 1.5}", { 8, 8, 3 }, KEEL_EARG, "factor 1.5" },
    { "RandAugment", "{\"num_ops\": -1}", { 8, 8, 3 }, KEEL_EARG, "num_ops" },
    { "RandAugment", "{}", { 8, 8, 2 }, KEEL_ESHAPE, "red, green" },
    { "AugMix", "{\"alpha\": 0}", { 8, 8, 3 }, KEEL_EARG, "alpha" },
    { "AugMix", "{\"num_chains\": 0}", { 8, 8, 3 }, KEEL_EARG, "num_chains" },
    { "RandomElasticTransform", "{\"scale\": 2}", { 8, 8, 3 }, KEEL_EARG, "scale 2" },
    { "RandomElasticTransform",
      "{\"fill_mode\": \"mirror\"}",
      { 8, 8, 3 },
      KEEL_EARG,
      "fill_mode" },
    { "ReversibleEmbedding",
      "{\"input_dim\": 5, \"output_dim\": 3, \"logit_soft_cap\": 0}",
      { 4 },
      KEEL_EARG,
      "logit_soft_cap" },
    { "ReversibleEmbedding",
      "{\"input_dim\": 5, \"output_dim\": 3, \"lora_rank\": 2, \"tie_weights\": false}",
      { 4 },
      KEEL_EUNSUP,
      "tie_weights false: Keras refuses" },
    { "EinsumDense",
      "{\"equation\": \"ab,bc->ac\", \"output_shape\": [2], \"lora_rank\": 2, "
      "\"kernel_constraint\": \"non_neg\"}",
      { 3 },
      KEEL_EUNSUP,
      "Keras refuses" },
    { "ReversibleEmbedding",
      "{\"input_dim\": 5, \"output_dim\": 3, \"reverse_dtype\": \"float64\"}",
      { 4 },
      KEEL_EARG,
      "reverse_dtype" },
    { "ops.AffineTransform", "{}", { 8, 8, 3 }, KEEL_EUNSUP, "8 numbers" },
    { "ops.PerspectiveTransform", "{}", { 8, 8, 3 }, KEEL_EUNSUP, "four points" },
    { "ops.SobelEdges", "{}", { 8, 1, 3 }, KEEL_ESHAPE, "no edges" },
    { "ops.PadImages", "{\"top_padding\": 1}", { 8, 8, 3 }, KEEL_EARG, "two must be given" },
    { "ops.CropImages",
      "{\"top_cropping\": 1, \"target_height\": 9, \"left_cropping\": 0, \"target_width\": 2}",
      { 8, 8, 3 },
      KEEL_ESHAPE,
      "cannot make 9 places of 8" },
    { "ops.ExtractPatches", "{\"size\": 9}", { 8, 8, 3 }, KEEL_ESHAPE, "does not fit" },
    { "ops.RGBToHSV", "{}", { 8, 8, 1 }, KEEL_ESHAPE, "3 numbers" },
    { "ops.Resize",
      "{\"size\": 4, \"data_format\": \"channels_first\"}",
      { 8, 8, 3 },
      KEEL_EUNSUP,
      "channels_first" },
    { "CutMix", "{\"factor\": 2}", { 8, 8, 3 }, KEEL_EARG, "factor 2" },
    { "MixUp", "{\"alpha\": -1}", { 8, 8, 3 }, KEEL_EARG, "alpha" },
    { "RandomGrayscale", "{\"factor\": 1.5}", { 8, 8, 3 }, KEEL_EARG, "factor" },
    { "RandomPosterization", "{\"factor\": 9}", { 8, 8, 3 }, KEEL_EARG, "factor 9" },
    { "RandomPosterization", "{\"factor\": 2.5}", { 8, 8, 3 }, KEEL_EARG, "whole" },
    { "Solarization", "{\"addition_factor\": -1}", { 8, 8, 3 }, KEEL_EARG, "addition_factor -1" },
    { "RandomShear", "{\"x_factor\": 2}", { 8, 8, 3 }, KEEL_EARG, "x_factor 2" },
    { "RandomPerspective", "{\"scale\": 2}", { 8, 8, 3 }, KEEL_EARG, "scale" },
    { "RandomInvert", "{\"factor\": 2}", { 8, 8, 1 }, KEEL_EARG, "factor 2" },
    { "Permute", "{\"dims\": [1, 1]}", { 8, 8 }, KEEL_EARG, "dims" },
    { "RepeatVector", "{\"n\": 2}", { 8, 8 }, KEEL_ESHAPE, "(8, 8)" },
    { "PReLU", "{\"alpha_constraint\": \"no_neg\"}", { 8 }, KEEL_EUNSUP, "alpha_constraint" },
    { "GaussianDropout", "{\"rate\": 1}", { 8 }, KEEL_EUNSUP, "rate" },
    { "AlphaDropout",
      "{\"rate\": 0.5, \"noise_shape\": [1, 8]}",
      { 8 },
      KEEL_EUNSUP,
      "every row draws by itself" },
    { "AlphaDropout",
      "{\"rate\": 0.5, \"noise_shape\": [null, 3]}",
      { 8 },
      KEEL_ESHAPE,
      "dim 1 is 3" },
    { "Dot", "{\"axes\": 2}", { 8 }, KEEL_EARG, "axes: 2" },
    { "InputLayer", "{\"batch_shape\": [null, -3]}", { 8 }, KEEL_EARG, "batch_shape" },
    { "InputLayer", "{\"batch_shape\": [0, 3]}", { 8 }, KEEL_EARG, "batch" },
    { "InputLayer", "{\"shape\": [3], \"ragged\": true}", { 8 }, KEEL_EUNSUP, "ragged" },
    { "InputLayer", "{\"shape\": [4000000000, 4000000000]}", { 8 }, KEEL_ESHAPE, "" },
    { "InputLayer", "{}", { 8 }, KEEL_EARG, "shape" },
    { "EinsumDense", EINSUM("ab,bc->ac", "5"), { 2, 3 }, KEEL_ESHAPE, "3 dims with the batch" },
    { "EinsumDense", EINSUM("ab,bc", "5"), { 3 }, KEEL_EARG, "the form" },
    { "EinsumDense", EINSUM("a b,bc->ac", "5"), { 3 }, KEEL_EARG, "letters" },
    { "EinsumDense", EINSUM("abb,bc->ac", "5"), { 3, 3 }, KEEL_EUNSUP, "'b' twice" },
    { "EinsumDense", EINSUM("ab,bc->ca", "5"), { 3 }, KEEL_EUNSUP, "the batch must stay" },
    { "EinsumDense", EINSUM("ab,bc->ad", "5"), { 3 }, KEEL_EARG, "in neither" },
    { "EinsumDense", EINSUM("ab,bcd->ac", "5"), { 3 }, KEEL_EARG, "in neither" },
    { "EinsumDense", EINSUM("a...b,bc->a...c", "5"), { 3 }, KEEL_EARG, "may open or close" },
    { "EinsumDense", EINSUM("ab,bc->ac", "[5, 6]"), { 3 }, KEEL_EARG, "more than those" },
    { "EinsumDense", EINSUM("ab,bcd->acd", "5"), { 3 }, KEEL_EARG, "fewer than those" },
    { "EinsumDense", EINSUM("ab,bc->ac", "null"), { 3 }, KEEL_EARG, "'c' needs a number" },
    { "EinsumDense", EINSUM("abc,cd->abd", "[3, 5]"), { 4, 3 }, KEEL_ESHAPE, "'b' is 3" },
    { "EinsumDense",
      "{\"equation\": \"ab,bc->ac\", \"output_shape\": 5, \"bias_axes\": \"d\"}",
      { 3 },
      KEEL_EARG,
      "bias_axes 'd'" },
    { "MultiHeadAttention", "{\"num_heads\": 2}", { 5, 4 }, KEEL_EARG, "key_dim must be given" },
    { "MultiHeadAttention", HEADS(""), { 4 }, KEEL_ESHAPE, "(time, ..., features)" },
    { "MultiHeadAttention",
      HEADS(", \"attention_axes\": 2"),
      { 5, 4 },
      KEEL_EARG,
      "no dim between" },
    { "MultiHeadAttention", HEADS(", \"attention_axes\": []"), { 5, 4 }, KEEL_EARG, "none" },
    { "MultiHeadAttention",
      HEADS(", \"sliding_window\": 2"),
      { 3, 5, 4 },
      KEEL_EUNSUP,
      "sliding_window are supported for" },
    { "MultiHeadAttention", HEADS(""), { 1, 2, 1, 2, 3, 4 }, KEEL_EUNSUP, "more than 6 dims" },
    { "GroupQueryAttention", FEW_HEADS("3"), { 5, 4 }, KEEL_EARG, "not a multiple" },
    { "GroupQueryAttention", FEW_HEADS("4"), { 4 }, KEEL_ESHAPE, "(time, features)" },
    { "Attention", "{}", { 4 }, KEEL_ESHAPE, "(time, features)" },
    { "Attention", "{}", { 3, 5, 4 }, KEEL_EUNSUP, "(time, features)" },
    { "Attention", "{\"score_mode\": \"sum\"}", { 5, 4 }, KEEL_EARG, "score_mode" },
    { "AdditiveAttention", "{\"score_mode\": \"dot\"}", { 5, 4 }, KEEL_EARG, "score_mode" },
    { "LSTM", "{\"units\": 3}", { 8 }, KEEL_ESHAPE, "(time, features)" },
    { "LSTM", "{\"units\": 3, \"stateful\": true}", { 5, 8 }, KEEL_EUNSUP, "stateful" },
    { "LSTM",
      "{\"units\": 3, \"bias_constraint\": {\"class_name\": \"MaxNorm\", \"config\": {\"axis\": "
      "1}}}",
      { 5, 8 },
      KEEL_EARG,
      "axis 1 of a weight of 1 dims" },
    { "GRU", "{\"units\": 3, \"activation\": \"glu\"}", { 5, 8 }, KEEL_ESHAPE, "glu" },
    { "LSTMCell", "{\"units\": 3}", { 8 }, KEEL_EUNSUP, "use RNN" },
    { "RNN",
      "{\"cell\": {\"class_name\": \"Dense\", \"config\": {\"units\": 3}}}",
      { 5, 8 },
      KEEL_EUNSUP,
      "Dense is no cell" },
    { "RNN",
      "{\"cell\": {\"class_name\": \"StackedRNNCells\", \"config\": {\"cells\": []}}}",
      { 5, 8 },
      KEEL_EUNSUP,
      "cells: a list of 1 to 16" },
    { "RNN",
      "{\"cell\": {\"class_name\": \"StackedRNNCells\", \"config\": {\"cells\": ["
      "{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]}}}",
      { 5, 8 },
      KEEL_EUNSUP,
      "Dense is no cell that can be one of several" },
    { "SpectralNormalization",
      "{\"layer\": {\"class_name\": \"DepthwiseConv2D\", \"config\": {\"kernel_size\": 2}}}",
      { 3, 3, 1 },
      KEEL_EUNSUP,
      "DepthwiseConv2D has no kernel" },
    { "SpectralNormalization",
      "{\"layer\": {\"class_name\": \"LSTM\", \"config\": {\"units\": 2}}}",
      { 3, 3 },
      KEEL_EUNSUP,
      "LSTM has no kernel" },
    { "SpectralNormalization",
      "{\"power_iterations\": 0, \"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": "
      "2}}}",
      { 3 },
      KEEL_EARG,
      "power_iterations" },
    { "STFTSpectrogram", "{\"frame_length\": 4}", { 8 }, KEEL_ESHAPE, "(time, channels)" },
    { "STFTSpectrogram", "{\"frame_length\": 9}", { 8, 1 }, KEEL_ESHAPE, "conv2d" },
    { "STFTSpectrogram", "{\"frame_length\": 1}", { 8, 1 }, KEEL_EARG, "frame_step" },
    { "STFTSpectrogram",
      "{\"frame_length\": 4, \"fft_length\": 3}",
      { 8, 1 },
      KEEL_EARG,
      "fft_length" },
    { "STFTSpectrogram",
      "{\"window\": \"kaiser\"}",
      { 8, 1 },
      KEEL_EUNSUP,
      "'kaiser' has parameters" },
    { "STFTSpectrogram", "{\"window\": \"hanning\"}", { 8, 1 }, KEEL_EUNSUP, "'hanning' is none" },
    { "STFTSpectrogram", "{\"window\": \"tukey|tuk\"}", { 8, 1 }, KEEL_EUNSUP, "is none" },
    { "ConvLSTM1D",
      "{\"filters\": 2, \"kernel_size\": 2, \"data_format\": \"channels_first\"}",
      { 4, 3 },
      KEEL_ESHAPE,
      "(time, channels, 1 dims of places)" },
    { "ConvLSTM1D",
      "{\"filters\": 2, \"kernel_size\": 2, \"data_format\": \"channels_first\", "
      "\"recurrent_activation\": \"softmax\"}",
      { 4, 2, 3 },
      KEEL_EUNSUP,
      "recurrent_activation softmax with data_format channels_first" },
    { "MelSpectrogram", "{}", { 1024 }, KEEL_ESHAPE, "1024 samples" },
    { "MelSpectrogram", "{\"fft_length\": 8}", { 16, 1 }, KEEL_ESHAPE, "(samples,)" },
    { "MelSpectrogram", "{\"window\": [1, 2]}", { 4096 }, KEEL_EARG, "2048 numbers" },
    { "MelSpectrogram", "{\"window\": 2}", { 4096 }, KEEL_EARG, "2048 numbers" },
    { "MelSpectrogram", "{\"window\": \"bartlett\"}", { 4096 }, KEEL_EUNSUP, "as numbers" },
    { "MelSpectrogram",
      "{\"fft_length\": 3, \"window\": [1, \"2\", 3]}",
      { 4096 },
      KEEL_EARG,
      "no number" },
    { "MelSpectrogram", "{\"sequence_length\": 4096}", { 4096 }, KEEL_EARG, "sequence_length" },
    { "MelSpectrogram", "{\"max_freq\": 10}", { 4096 }, KEEL_EARG, "max_freq" },
    { "Bidirectional",
      "{\"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": 3}},"
      " \"backward_layer\": {\"class_name\": \"LSTM\", \"config\": {\"units\": 3}}}",
      { 5, 8 },
      KEEL_EUNSUP,
      "Dense cannot go both ways" },
    { "MyLayer", "{\"filters\": 3}", { 5, 8, 8, 1 }, KEEL_EUNSUP, "MyLayer" },
    { "ConvLSTM2D", WINDOW(""), { 8, 8, 1 }, KEEL_ESHAPE, "2 dims of places" },
    { "ConvLSTM1D", WINDOW(", \"stateful\": true"), { 5, 8, 1 }, KEEL_EUNSUP, "stateful" },
    { "ConvLSTM1D",
      WINDOW(", \"strides\": 2, \"dilation_rate\": 2"),
      { 5, 8, 1 },
      KEEL_EARG,
      "both" },
    { "Dense", "[]", { 8 }, KEEL_EARG, "object" },
};

static void what_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        keel_model *m = NULL;
        keel_symbol in[2] = { -1, -1 }, out = 77;
        int layer = 77;
        keel_shape shape = { 0 };
        json_t *config = json_loads(refused[i].config, JSON_DECODE_ANY, NULL);
        while (refused[i].shape[shape.rank]) {
            shape.dim[shape.rank] = refused[i].shape[shape.rank];
            shape.rank++;
        }
        assert_non_null(config);
        assert_int_equal(keel_model_create(&m, NULL, KEEL_FLOAT32, 1), KEEL_OK);
        assert_int_equal(keel_model_input(m, &shape, NULL, &in[0]), KEEL_OK);
        in[1] = in[0];
        keel_status s = keel_model_new_layer(m, refused[i].class_name, config, &layer);
        const int n = s >= 0 ? m->layer[layer].kind->min_inputs : 0;
        if (s >= 0) s = keel_model_new_node(m, layer, &(keel_model_call_of){ in, n }, &out);
        if (s != refused[i].want || !strstr(keel_error(), refused[i].says))
            fail_msg("%s %s: %s (%s), expected %s and '%s'", refused[i].class_name,
                     refused[i].config, keel_status_name(s), keel_error(),
                     keel_status_name(refused[i].want), refused[i].says);
        assert_int_equal(out, 77);
        json_decref(config);
        keel_model_destroy(m);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void every_layer_has_a_page_with_all_its_arguments(void **state)
{
    (void)state;
    int n = 0;
    for (; keel_layer_class(n); n++) {
        char *text = NULL;
        assert_int_equal(keel_layer_help(keel_layer_class(n), &text), KEEL_OK);
        const keel_layer *l = keel_layer_find(keel_layer_class(n));
        for (const keel_field *f = l->type.fields; f && f->key; f++)
            if (f->kind != KEEL_FIELD_IGNORE && !strstr(text, f->key)) fail_msg("%s", f->key);
        assert_non_null(strstr(text, "name"));
        keel_model_summary_free(text);
    }
    assert_true(n >= 18);
    assert_null(keel_layer_class(n + 5));
    assert_null(keel_layer_class(-1));
    char *text = NULL;
    assert_int_equal(keel_layer_help("MyLayer", &text), KEEL_EARG);
    assert_null(text);
}

/* Models that need no newer Keras are read by Keras 3.5. */
static void keys_that_an_older_keras_refuses_are_written_only_where_they_say_something(void **state)
{
    static const struct {
        const char *class_name, *config, *key;
        bool written;
    } cases[] = {
        { "Dense", "{\"units\": 2}", "input_axes", false },
        { "Dense",
          "{\"units\": 2, \"kernel_initializer\": {\"class_name\": \"GlorotUniform\", \"config\": "
          "{\"input_axes\": [0], \"output_axes\": [1]}}}",
          "output_axes", true },
        { "BatchNormalization", "{}", "renorm", false },
        { "BatchNormalization", "{\"renorm\": true}", "\"renorm\": true", true },
        { "BatchNormalization", "{\"renorm\": true, \"renorm_momentum\": 0.9}",
          "\"renorm_momentum\": 0.9", true },
        { "MultiHeadAttention", "{\"num_heads\": 2, \"key_dim\": 2}", "use_gate", false },
        { "MultiHeadAttention", "{\"num_heads\": 2, \"key_dim\": 2}", "sliding_window", false },
        { "MultiHeadAttention", "{\"num_heads\": 2, \"key_dim\": 2, \"sliding_window\": 3}",
          "\"sliding_window\": 3", true },
        { "Resizing", "{\"height\": 2, \"width\": 2}", "antialias", false },
        { "Resizing", "{\"height\": 2, \"width\": 2, \"antialias\": true}", "\"antialias\": true",
          true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_model *m;
        int layer;
        json_t *config = json_loads(cases[i].config, 0, NULL), *written = NULL;
        must(keel_model_create(&m, "m", KEEL_FLOAT32, 1));
        must(keel_model_new_layer(m, cases[i].class_name, config, &layer));
        const keel_model_layer *l = &m->layer[layer];
        const keel_layer_common common = { .name = l->name, .trainable = true };
        must(keel_layer_config(l->kind, l->args, &common, &written));
        char *text = json_dumps(written, 0);
        assert_non_null(text);
        if (!!strstr(text, cases[i].key) != cases[i].written)
            fail_msg("%s %s is written as %s", cases[i].class_name, cases[i].config, text);
        free(text);
        json_decref(written);
        json_decref(config);
        keel_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_keras_shapes_weights_configurations_and_outputs),
        cmocka_unit_test(
            keys_that_an_older_keras_refuses_are_written_only_where_they_say_something),
        cmocka_unit_test(same_padding_is_tensorflow_s),
        cmocka_unit_test(what_is_not_there_is_refused_by_name),
        cmocka_unit_test(every_layer_has_a_page_with_all_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
