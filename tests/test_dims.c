/* Open dims (None): what can be built with them, programs by the shape of a batch, rows that differ
 * in length. What comes of training is compared with the real Keras: golden/make_dims.py. */
#define _GNU_SOURCE /* nftw */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "data/feed.h"
#include "data_files.h"
#include "io/npz.h"
#include "keel/keel.h"
#include "tensor/shape.h"

enum { BATCH = 4, EPOCHS = 3, LANES = 4 };

static keel_zip *golden;
static keel_strategy *strategy[LANES]; /* of 1 to 4 lanes */

static void must(keel_status s)
{
    if (s < 0) fail_msg("%s", keel_error());
}

static int start(void **unused)
{
    static const char *const devices[LANES] = { "cpu:0", "cpu:0-1", "cpu:0-2", "cpu:0-3" };
    (void)unused;
    files_begin();
    for (int i = 0; i < LANES; i++)
        if (keel_strategy_create(&strategy[i], devices[i]) < 0) return -1;
    return keel_zip_open(&golden, "golden/dims.npz") < 0 ? -1 : 0;
}

static int finish(void **unused)
{
    (void)unused;
    keel_zip_close(golden);
    for (int i = 0; i < LANES; i++) keel_strategy_destroy(strategy[i]);
    files_end();
    return 0;
}

static keel_tensor stored(const char *format, ...)
{
    char name[96];
    keel_tensor t;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    must(keel_npz_read(&t, golden, name));
    return t;
}

/* ---- what can be built -------------------------------------------------------------------------
 */

static const struct {
    const char *layer, *config; /* behind an input of: */
    int64_t rank, dim[4];
    const char *want; /* the shape of its output */
    const char *says; /* or why there is none */
} built[] = {
    { "Conv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, -1, 3 }, "(None, None, 4)" },
    { "Conv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, 8, 3 }, "(None, 6, 4)" },
    { "DepthwiseConv2D", "{\"kernel_size\":3,\"strides\":2}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "MaxPooling2D", "{}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "AveragePooling2D",
      "{\"pool_size\":2,\"padding\":\"same\"}",
      3,
      { 7, -1, 3 },
      "(4, None, 3)" },
    { "GlobalAveragePooling2D", "{}", 3, { -1, -1, 3 }, "(3,)" },
    { "GlobalAveragePooling1D", "{\"keepdims\":true}", 2, { -1, 3 }, "(1, 3)" },
    { "ZeroPadding2D", "{}", 3, { -1, 5, 3 }, "(None, 7, 3)" },
    { "BatchNormalization", "{}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "Conv3D", "{\"filters\":4,\"kernel_size\":3}", 4, { -1, 8, -1, 3 }, "(None, 6, None, 4)" },
    { "MaxPooling3D", "{}", 4, { -1, 8, -1, 3 }, "(None, 4, None, 3)" },
    { "UpSampling2D", "{\"interpolation\":\"bilinear\"}", 3, { -1, 4, 3 }, "(None, 8, 3)" },
    { "Cropping2D", "{\"cropping\":1}", 3, { -1, 4, 3 }, "(None, 2, 3)" },
    { "Conv2DTranspose",
      "{\"filters\":4,\"kernel_size\":3,\"strides\":2}",
      3,
      { -1, -1, 3 },
      "(None, None, 4)" },
    { "SeparableConv2D", "{\"filters\":4,\"kernel_size\":3}", 3, { -1, -1, 3 }, "(None, None, 4)" },
    { "SpatialDropout1D", "{\"rate\":0.5}", 2, { -1, 3 }, "(None, 3)" },
    { "Permute", "{\"dims\":[2,1]}", 2, { -1, 3 }, "(3, None)" },
    { "PReLU", "{\"shared_axes\":[1]}", 2, { -1, 3 }, "(None, 3)" },
    { "GlobalAveragePooling3D", "{}", 4, { -1, -1, -1, 3 }, "(3,)" },
    { "GlobalMaxPooling3D", "{}", 4, { -1, -1, -1, 3 }, "(3,)" },
    { "ZeroPadding3D", "{}", 4, { 2, -1, 5, 3 }, "(4, None, 7, 3)" },
    { "Dense", "{\"units\":5}", 2, { -1, 3 }, "(None, 5)" },
    { "Embedding", "{\"input_dim\":9,\"output_dim\":2}", 1, { -1 }, "(None, 2)" },
    { "Embedding",
      "{\"input_dim\":9,\"output_dim\":2,\"mask_zero\":true}",
      1,
      { -1 },
      "(None, 2)" },
    { "Masking", "{}", 2, { -1, 3 }, "(None, 3)" },
    { "Activation", "{\"activation\":\"gelu\"}", 1, { -1 }, "(None,)" },
    { "Softmax", "{}", 2, { -1, 3 }, "(None, 3)" },
    { "Dropout", "{\"rate\":0.5}", 2, { -1, 3 }, "(None, 3)" },
    { "Rescaling", "{\"scale\":0.5}", 3, { -1, -1, 3 }, "(None, None, 3)" },
    { "Flatten", "{}", 3, { -1, -1, 3 }, "(None,)" },
    { "Flatten", "{}", 2, { 4, 3 }, "(12,)" },
    { "Reshape", "{\"target_shape\":[-1,6]}", 2, { -1, 12 }, "(None, 6)" },
    { "Dense", "{\"units\":5}", 1, { -1 }, NULL, "layer 'it': the shape of its weights would" },
    { "Conv2D",
      "{\"filters\":4,\"kernel_size\":3}",
      3,
      { 8, 8, -1 },
      NULL,
      "layer 'it': the shape" },
    { "PReLU", "{}", 2, { -1, 3 }, NULL, "layer 'it': the shape of its weights would" },
    { "BatchNormalization", "{}", 1, { -1 }, NULL, "layer 'it': the shape of its weights would" },
    { "Reshape", "{\"target_shape\":[4,3]}", 2, { -1, 3 }, NULL, "layer 'it'" },
};

static void layers_are_built_on_open_dims_or_refused_by_name(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        keel_model *m = NULL;
        keel_symbol x, y;
        json_t *config = json_loads(built[i].config, 0, NULL);
        keel_arg args[8] = { KEEL_ARG_STR("name", "it") };
        char value[4][64], shape[96];
        const char *key;
        json_t *v;
        int n = 1;
        json_object_foreach(config, key, v)
        {
            value[n - 1][json_dumpb(v, value[n - 1], 63, JSON_ENCODE_ANY)] = 0;
            args[n] = (keel_arg)KEEL_ARG_JSON(key, value[n - 1]);
            n++;
        }
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
        const keel_shape in = keel_shape_of((int)built[i].rank, built[i].dim);
        must(keel_model_input(m, &in, NULL, &x));
        const keel_status s = keel_model_call(m, built[i].layer, args, &x, 1, &y);
        if (built[i].want) {
            must(s);
            must(keel_model_outputs(m, &y, 1));
            keel_shape got;
            must(keel_model_output_shape(m, 0, &got));
            keel_shape_text(shape, &got);
            if (strcmp(shape, built[i].want)) fail_msg("%s: %s", built[i].layer, shape);
        } else if (s != KEEL_ESHAPE || !strstr(keel_error(), built[i].says) ||
                   !strstr(keel_error(), "None")) {
            fail_msg("%s: %s (%s)", built[i].layer, keel_status_name(s), keel_error());
        }
        keel_model_destroy(m);
        json_decref(config);
    }
}

static void flatten_into_dense_is_refused_and_the_model_stays(void **unused)
{
    (void)unused;
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 0));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", KEEL_DIM_OPEN, 4))));
    must(keel_model_add(m, "Flatten", NULL));
    assert_int_equal(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2))), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "rows of (None,)"));
    assert_int_equal(keel_model_layer_count(m), 2);
    assert_int_equal(keel_model_weight_count(m), 0);
    keel_model_destroy(m);
}

/* ---- against Keras -----------------------------------------------------------------------------
 */

typedef struct tokens {
    keel_tensor x, lengths, splits, y;
} tokens;

/* tagged: a target for each token. */
static keel_dataset *open_tokens(tokens *t, bool tagged)
{
    keel_dataset *d;
    t->x = stored("tokens");
    t->lengths = stored("tokens_row_lengths");
    t->y = stored(tagged ? "tags" : "labels");
    const int64_t n = t->lengths.shape.dim[0];
    const keel_shape shape = KEEL_SHAPE(n + 1);
    must(keel_tensor_create(&t->splits, KEEL_INT64, &shape));
    int64_t *at = t->splits.data;
    for (int64_t i = 0; i < n; i++) at[i + 1] = at[i] + ((int64_t *)t->lengths.data)[i];
    const keel_array_field f[2] = {
        { "tokens", KEEL_ROLE_INPUT, NULL, t->x, t->splits },
        { "y", KEEL_ROLE_TARGET, NULL, t->y, tagged ? t->splits : (keel_tensor){ 0 } },
    };
    must(keel_dataset_from_fields(&d, f, 2));
    return d;
}

static void close_tokens(tokens *t, keel_dataset *d)
{
    keel_dataset_destroy(d);
    keel_tensor_free(&t->x);
    keel_tensor_free(&t->lengths);
    keel_tensor_free(&t->splits);
    keel_tensor_free(&t->y);
}

static keel_model *load(const char *name)
{
    char path[96];
    keel_model *m;
    snprintf(path, sizeof path, "golden/dims_%s.keras", name);
    must(keel_model_load(&m, path));
    return m;
}

static double apart(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = d > most ? d : most; /* no number stays no number */
        if (isnan(d)) return d;
    }
    return most;
}

static void compare_weights(const keel_model *m, const char *name, int lanes)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor want = stored("%s_weight_%d", name, i), got;
        must(keel_model_get_weight(m, keel_model_weight_name(m, i), &got));
        const double d = apart(got.data, want.data, keel_shape_count(&want.shape));
        if (!(d < 2e-5)) fail_msg("%s, %d lanes: weight %d is %g off", name, lanes, i, d);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
    }
}

static const int64_t buckets[] = { 4, 8, 16 };

static void train_tokens(const char *name, bool tagged, bool bucketed, int lanes, int64_t programs,
                         keel_program_counts *counts)
{
    char full[64];
    tokens t;
    keel_dataset *d = open_tokens(&t, tagged);
    keel_model *m = load(name);
    keel_history h;
    keel_fit_options o = { KEEL_FIT_OPTIONS,   .batch_size = BATCH,  .epochs = EPOCHS,
                           .no_shuffle = true, .programs = programs, .counts = counts };
    if (bucketed) {
        o.bucket = buckets;
        o.bucket_count = 3;
    }
    must(keel_fit(m, strategy[lanes - 1], d, &o, &h));
    assert_int_equal(h.steps, EPOCHS * 6);
    snprintf(full, sizeof full, "%s%s", name, bucketed ? "_buckets" : "");
    compare_weights(m, full, lanes);
    if (!tagged) {
        keel_tensor want = stored("%s_predicted", full), got;
        must(keel_predict(m, strategy[lanes - 1], d, &o, &got));
        assert_true(keel_shape_equal(&got.shape, &want.shape));
        const double off = apart(got.data, want.data, keel_shape_count(&want.shape));
        if (!(off < 1e-5)) fail_msg("%s: predictions are %g off", full, off);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
    }
    keel_history_free(&h);
    keel_model_destroy(m);
    close_tokens(&t, d);
}

static void rows_of_any_length_train_as_in_keras_on_any_number_of_lanes(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int k = 0; k < 4; k++)
            train_tokens(k & 1 ? "tags" : "text", k & 1, k & 2, lanes, 0, NULL);
}

/* ---- streams -----------------------------------------------------------------------------------
 */

typedef struct stream { /* the rows of golden/dims.npz, one by one, or as batches that are padded */
    tokens t;
    int64_t at;
    int32_t padded[BATCH * 64], labels[BATCH];
} stream;

static keel_status next_row(void *context, const void **data, keel_shape *shape)
{
    stream *s = context;
    const int64_t *splits = s->t.splits.data;
    if (s->at == s->t.lengths.shape.dim[0]) return KEEL_END;
    data[0] = (int32_t *)s->t.x.data + splits[s->at];
    data[1] = (int32_t *)s->t.y.data + s->at;
    shape[0].dim[0] = splits[s->at + 1] - splits[s->at];
    s->at++;
    return KEEL_OK;
}

static keel_status reset(void *context)
{
    ((stream *)context)->at = 0;
    return KEEL_OK;
}

static int64_t length(void *context)
{
    return (((stream *)context)->t.lengths.shape.dim[0] + BATCH - 1) / BATCH;
}

static keel_status get_shaped(void *context, int64_t i, const void **data, keel_shape *shape,
                              int64_t *rows)
{
    stream *s = context;
    const int64_t *lengths = s->t.lengths.data, *splits = s->t.splits.data;
    const int64_t n = s->t.lengths.shape.dim[0], first = i * BATCH;
    int64_t longest = 0;
    *rows = n - first < BATCH ? n - first : BATCH;
    for (int64_t k = 0; k < *rows; k++)
        longest = lengths[first + k] > longest ? lengths[first + k] : longest;
    memset(s->padded, 0, sizeof s->padded);
    for (int64_t k = 0; k < *rows; k++) {
        memcpy(s->padded + k * longest, (int32_t *)s->t.x.data + splits[first + k],
               (size_t)lengths[first + k] * sizeof(int32_t));
        s->labels[k] = ((int32_t *)s->t.y.data)[first + k];
    }
    data[0] = s->padded;
    data[1] = s->labels;
    shape[0].dim[0] = longest;
    return KEEL_OK;
}

static const keel_data_field stream_fields[2] = {
    { "tokens", KEEL_INT32, { 1, { KEEL_DIM_OPEN } }, KEEL_ROLE_INPUT },
    { "y", KEEL_INT32, { 0 }, KEEL_ROLE_TARGET },
};

static void generators_and_sequences_give_rows_of_their_own_shapes(void **unused)
{
    (void)unused;
    static stream s;
    keel_dataset *arrays = open_tokens(&s.t, false), *d;
    for (int k = 0; k < 4; k++) {
        const bool sequence = k & 1, bucketed = k & 2;
        keel_model *m = load("text");
        s.at = 0;
        if (sequence)
            must(keel_dataset_from_sequence(&d, &(keel_sequence){ .size = sizeof(keel_sequence),
                                                                  .context = &s,
                                                                  .max_rows = BATCH,
                                                                  .length = length,
                                                                  .get_shaped = get_shaped,
                                                                  .n_field = 2,
                                                                  .field = stream_fields }));
        else
            must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                                    .context = &s,
                                                                    .reset = reset,
                                                                    .next_row = next_row,
                                                                    .n_field = 2,
                                                                    .field = stream_fields }));
        const keel_fit_options o = { KEEL_FIT_OPTIONS,  .batch_size = sequence ? 0 : BATCH,
                                     .epochs = EPOCHS,  .no_shuffle = true,
                                     .bucket = buckets, .bucket_count = bucketed ? 3 : 0 };
        must(keel_fit(m, strategy[2], d, &o, NULL));
        compare_weights(m, bucketed ? "text_buckets" : "text", 3);
        keel_model_destroy(m);
        keel_dataset_destroy(d);
    }
    close_tokens(&s.t, arrays);
}

/* Two images, of one row and of one column. */
static keel_status next_image(void *context, const void **data, keel_shape *shape)
{
    static const uint8_t pixels[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    int *at = context;
    if (*at == 2) return KEEL_END;
    data[0] = pixels[*at == 1];
    shape[0].dim[*at == 0] = 2;
    shape[0].dim[*at != 0] = 1;
    if (*at < 0) shape[0].dim[2] = 9; /* a lie */
    ++*at;
    return KEEL_OK;
}

static void a_batch_is_padded_in_every_open_dim(void **unused)
{
    (void)unused;
    static const float want[16] = { 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8, 0, 0 };
    static const keel_data_field field = {
        "image", KEEL_UINT8, { 3, { KEEL_DIM_OPEN, KEEL_DIM_OPEN, 2 } }, KEEL_ROLE_INPUT
    };
    for (int begin = 0; begin > -2; begin--) {
        int at = begin;
        keel_dataset *d;
        keel_feed *f;
        keel_batch b;
        const keel_dtype real = KEEL_FLOAT32;
        must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                                .context = &at,
                                                                .next_row = next_image,
                                                                .n_field = 1,
                                                                .field = &field }));
        must(keel_feed_create(
            &f, d,
            &(keel_feed_options){
                .real = real, .want = &real, .batch_size = 2, .epochs = 1, .threads = -1 }));
        must(keel_feed_begin_epoch(f, 0));
        if (begin < 0) { /* a row that is not as it says */
            assert_int_equal(keel_feed_next(f, &b), KEEL_ECALLBACK);
            assert_non_null(strstr(keel_error(), "(None, None, 2)"));
        } else {
            must(keel_feed_next(f, &b));
            assert_int_equal(b.rows, 2);
            assert_true(keel_shape_equal(&b.spec[0].shape, &(keel_shape){ 3, { 2, 2, 2 } }));
            assert_memory_equal(b.field[0], want, sizeof want);
            keel_feed_release(f, &b);
        }
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

static void images_of_two_sizes_train_as_in_keras(void **unused)
{
    (void)unused;
    for (int lanes = 1; lanes <= LANES; lanes++) {
        keel_model *m = load("images");
        keel_tensor first = { 0 };
        for (int k = 0; k < 2; k++) {
            keel_tensor x = stored("images_%d", k), y = stored("images_%d_labels", k);
            keel_dataset *d;
            keel_program_counts counts;
            const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH, .epochs = EPOCHS,
                                         .no_shuffle = true, .counts = &counts };
            must(keel_dataset_from_arrays(&d, &x, &y, NULL));
            must(keel_fit(m, strategy[lanes - 1], d, &o, NULL));
            assert_int_equal(counts.training, 1);
            assert_int_equal(counts.inference, 0);
            keel_dataset_destroy(d);
            keel_tensor_free(&y);
            if (k == 0)
                first = x;
            else
                keel_tensor_free(&x);
        }
        compare_weights(m, "images", lanes);
        keel_tensor want = stored("images_predicted"), got;
        keel_dataset *d;
        must(keel_dataset_from_arrays(&d, &first, NULL, NULL));
        must(keel_predict(m, strategy[lanes - 1], d, NULL, &got));
        assert_true(apart(got.data, want.data, keel_shape_count(&want.shape)) < 1e-5);
        keel_tensor_free(&want);
        keel_tensor_free(&got);
        keel_tensor_free(&first);
        keel_dataset_destroy(d);
        keel_model_destroy(m);
    }
}

/* ---- programs ----------------------------------------------------------------------------------
 */

static void few_programs_give_the_same_and_are_counted(void **unused)
{
    (void)unused;
    keel_program_counts c;
    /* the lengths of the six batches, from golden/dims.npz */
    tokens t;
    keel_dataset *d = open_tokens(&t, false);
    const int64_t *length = t.lengths.data, n = t.lengths.shape.dim[0];
    bool seen[64] = { false };
    int shapes = 0;
    for (int64_t i = 0; i < n; i += BATCH) {
        int64_t longest = 0;
        for (int64_t k = i; k < n && k < i + BATCH; k++)
            if (length[k] > longest) longest = length[k];
        shapes += !seen[longest];
        seen[longest] = true;
    }
    close_tokens(&t, d);
    assert_true(shapes > 2);
    train_tokens("text", false, false, 3, 0, &c); /* counts are of the predict at its end */
    assert_int_equal(c.training, 0);
    assert_int_equal(c.inference, shapes);
    assert_int_equal(c.kept, shapes);
    assert_int_equal(c.dropped, 0);
    train_tokens("tags", true, false, 3, 2, &c);
    assert_true(c.training > shapes); /* made again and again */
    assert_int_equal(c.kept, 2);
    assert_int_equal(c.dropped, c.training - 2);
    train_tokens("tags", true, true, 3, 2, &c);
    assert_true(c.training <= 3 * EPOCHS * 6);
    train_tokens("tags", true, true, 2, 0, &c);
    assert_true(c.training >= 2 && c.training <= 3);
    assert_int_equal(c.dropped, 0);
}

/* ---- what is refused ---------------------------------------------------------------------------
 */

static void lengths_that_cannot_be_are_refused_before_step_1(void **unused)
{
    (void)unused;
    const keel_tensor x = { KEEL_INT32, { 1, { 5 } }, (int32_t[]){ 1, 2, 3, 4, 5 } },
                      y = { KEEL_INT32, { 1, { 2 } }, (int32_t[]){ 0, 1 } };
    const struct {
        int64_t splits[3];
        keel_status status;
        const char *says;
    } bad[] = {
        { { 0, 3, 4 }, KEEL_EDATA, "from 0 to 4" },
        { { 1, 3, 5 }, KEEL_EDATA, "from 1 to 5" },
        { { 0, 6, 5 }, KEEL_EDATA, "row 1, from 6" },
        { { 0, -1, 5 }, KEEL_EDATA, "row 0, from 0 to -1" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_dataset *d = NULL;
        const keel_tensor splits = { KEEL_INT64, { 1, { 3 } }, (void *)bad[i].splits };
        const keel_array_field f[2] = { { "x", KEEL_ROLE_INPUT, NULL, x, splits },
                                        { "y", KEEL_ROLE_TARGET, NULL, y } };
        assert_int_equal(keel_dataset_from_fields(&d, f, 2), bad[i].status);
        if (!strstr(keel_error(), bad[i].says)) fail_msg("%s", keel_error());
        assert_null(d);
    }
}

static void options_that_cannot_be_followed_are_refused_by_name(void **unused)
{
    (void)unused;
    static const int64_t falling[] = { 8, 4 }, small[] = { 4, 8 }, one[] = { 16 };
    const struct {
        keel_fit_options o;
        keel_status status;
        const char *says;
    } bad[] = {
        { { KEEL_FIT_OPTIONS, .programs = 1 }, KEEL_EARG, "programs is 1" },
        { { KEEL_FIT_OPTIONS, .programs = 31 }, KEEL_EARG, "2 to 30" },
        { { KEEL_FIT_OPTIONS, .bucket_count = 2 }, KEEL_EARG, "buckets" },
        { { KEEL_FIT_OPTIONS, .bucket = falling, .bucket_count = 2 }, KEEL_EARG, "ascend" },
        { { KEEL_FIT_OPTIONS, .bucket = small, .bucket_count = 2 }, KEEL_EDATA, "largest bucket" },
        { { KEEL_FIT_OPTIONS, .profile = true }, KEEL_EUNSUP, "one bucket" },
        { { KEEL_FIT_OPTIONS, .profile = true, .bucket = one, .bucket_count = 1 }, KEEL_OK, "" },
    };
    tokens t;
    keel_dataset *d = open_tokens(&t, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_model *m = load("text");
        keel_history h = { 0 };
        const keel_status s = keel_fit(m, strategy[1], d, &bad[i].o, &h);
        if (s != bad[i].status || (s < 0 && !strstr(keel_error(), bad[i].says)))
            fail_msg("%zu: %s, %s", i, keel_status_name(s), keel_error());
        if (s < 0) assert_int_equal(h.steps, 0);
        keel_history_free(&h);
        keel_model_destroy(m);
    }
    close_tokens(&t, d);
}

static void predictions_of_several_shapes_are_no_one_array(void **unused)
{
    (void)unused;
    static const int64_t bucket[] = { 20 };
    tokens t;
    keel_dataset *d = open_tokens(&t, true);
    keel_model *m = load("tags");
    keel_tensor out = { 0 };
    keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = BATCH };
    assert_int_equal(keel_predict(m, strategy[1], d, &o, &out), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "one bucket"));
    o.bucket = bucket;
    o.bucket_count = 1;
    must(keel_predict(m, strategy[1], d, &o, &out));
    assert_int_equal(out.shape.dim[1], 20);
    keel_tensor_free(&out);
    keel_model_destroy(m);
    close_tokens(&t, d);
}

/* Reshape to pairs serves rows of even length only, which the third is not. */
static void a_shape_that_cannot_be_compiled_fails_its_step_only(void **unused)
{
    (void)unused;
    const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3 }, y[4] = { 1, 2, 3, 4 };
    const int64_t at[5] = { 0, 4, 6, 9, 12 }; /* lengths 4, 2, 3, 3 */
    const keel_array_field f[2] = {
        { "x",
          KEEL_ROLE_INPUT,
          NULL,
          { KEEL_FLOAT32, { 2, { 12, 1 } }, (void *)x },
          { KEEL_INT64, { 1, { 5 } }, (void *)at } },
        { "y", KEEL_ROLE_TARGET, NULL, { KEEL_FLOAT32, { 2, { 4, 1 } }, (void *)y } },
    };
    float kernel[2][2] = { { 0 } };
    for (int k = 0; k < 2; k++) { /* all of the data; then what the first step does */
        keel_dataset *d;
        keel_model *m;
        keel_history h = { 0 };
        keel_program_counts c;
        must(keel_dataset_from_fields(&d, f, 2));
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
        must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", KEEL_DIM_OPEN, 1))));
        must(keel_model_add(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", -1, 2))));
        must(keel_model_add(m, "GlobalAveragePooling1D", NULL));
        must(keel_model_add(m, "Dense",
                            KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_STR("name", "d"))));
        must(keel_model_compile(
            m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
        const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 1, .no_shuffle = true,
                                     .steps_per_epoch = 2 * k, .counts = &c };
        const keel_status s = keel_fit(m, strategy[3], d, &o, &h);
        if (k) must(s);
        if (!k) {
            assert_int_equal(s, KEEL_ESHAPE);
            assert_non_null(strstr(keel_error(), "epoch 1, step 3"));
            assert_non_null(strstr(keel_error(), "layer 'reshape'"));
        }
        assert_int_equal(h.steps, 2);
        assert_int_equal(c.training, 2);
        keel_tensor w;
        must(keel_model_get_weight(m, "d/kernel", &w));
        memcpy(kernel[k], w.data, sizeof kernel[k]);
        keel_tensor_free(&w);
        keel_history_free(&h);
        keel_model_destroy(m);
        keel_dataset_destroy(d);
    }
    assert_memory_equal(kernel[0], kernel[1], sizeof *kernel);
    assert_true(kernel[0][0] != 0);
}

static void a_plan_wants_to_know_the_shape(void **unused)
{
    (void)unused;
    keel_model *m = load("images");
    keel_plan p, larger;
    const keel_shape good = KEEL_SHAPE(20, 24, 2), twice = KEEL_SHAPE(40, 24, 2);
    const keel_shape bad[] = {
        KEEL_SHAPE(20, 24, 3), KEEL_SHAPE(20, 24), { -1 }, KEEL_SHAPE(20, -1, 2)
    };
    assert_int_equal(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, NULL), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "'image'"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, &bad[i]), KEEL_ESHAPE);
    must(keel_plan_make(&p, m, NULL, 64, 8, KEEL_KEEP, &good));
    must(keel_plan_make(&larger, m, NULL, 64, 8, KEEL_KEEP, &twice));
    assert_true(larger.activation_bytes[0] > p.activation_bytes[0]);
    assert_int_equal(larger.weight_bytes, p.weight_bytes);
    keel_plan_free(&p);
    keel_plan_free(&larger);
    keel_model_destroy(m);
}

/* ---- files and faults --------------------------------------------------------------------------
 */

static void a_saved_model_has_null_for_open_dims(void **unused)
{
    (void)unused;
    const char *path = files_path("open.keras");
    keel_model *m = load("images");
    keel_shape shape;
    char *text;
    must(keel_model_save(m, path));
    keel_model_destroy(m);
    must(keel_model_load(&m, path));
    must(keel_model_input_shape(m, 0, &shape));
    assert_true(keel_shape_equal(&shape, &(keel_shape){ 3, { -1, -1, 2 } }));
    must(keel_model_summary(m, &text));
    assert_non_null(strstr(text, "(None, None, None, 4)"));
    keel_model_summary_free(text);
    keel_model_destroy(m);
}

/* Every allocation of a fit over several shapes, with programs that go, fails once. */
static void fail_every_allocation(keel_dataset *d)
{
    keel_model *m = load("text");
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 8, .no_shuffle = true,
                                 .programs = 2 };
    must(keel_fit(m, strategy[1], d, &o, NULL)); /* what is made once is there */
    const int64_t live = keel_memory_live();
    keel_status s = KEEL_ENOMEM;
    int64_t n = 0;
    for (; s < 0 && n < 20000; n++) {
        keel_memory_fail_at(n);
        s = keel_fit(m, strategy[1], d, &o, NULL);
        keel_memory_fail_at(-1);
        assert_int_equal(keel_memory_live(), live);
        if (s < 0 && s != KEEL_ENOMEM) fail_msg("%lld: %s", (long long)n, keel_error());
    }
    assert_int_equal(s, KEEL_OK);
    assert_true(n > 100);
    keel_model_destroy(m);
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    static stream s;
    keel_dataset *arrays = open_tokens(&s.t, false), *d;
    must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                            .context = &s,
                                                            .reset = reset,
                                                            .next_row = next_row,
                                                            .n_field = 2,
                                                            .field = stream_fields }));
    fail_every_allocation(arrays);
    fail_every_allocation(d);
    keel_dataset_destroy(d);
    close_tokens(&s.t, arrays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_built_on_open_dims_or_refused_by_name),
        cmocka_unit_test(flatten_into_dense_is_refused_and_the_model_stays),
        cmocka_unit_test(rows_of_any_length_train_as_in_keras_on_any_number_of_lanes),
        cmocka_unit_test(generators_and_sequences_give_rows_of_their_own_shapes),
        cmocka_unit_test(a_batch_is_padded_in_every_open_dim),
        cmocka_unit_test(images_of_two_sizes_train_as_in_keras),
        cmocka_unit_test(few_programs_give_the_same_and_are_counted),
        cmocka_unit_test(lengths_that_cannot_be_are_refused_before_step_1),
        cmocka_unit_test(options_that_cannot_be_followed_are_refused_by_name),
        cmocka_unit_test(predictions_of_several_shapes_are_no_one_array),
        cmocka_unit_test(a_shape_that_cannot_be_compiled_fails_its_step_only),
        cmocka_unit_test(a_plan_wants_to_know_the_shape),
        cmocka_unit_test(a_saved_model_has_null_for_open_dims),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
