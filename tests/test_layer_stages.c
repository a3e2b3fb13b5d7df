/* Layers of preprocessing as stages of pipelines: equal to Keras's layers in tf.data where they
 * draw nothing (golden/layer_stages.json); where they draw, equal to the layer in a model with the
 * same random numbers, which are the same for any number of threads, by index and as a stream, from
 * any element on. */
#include "golden.h"
#include "layer_stages.h"
#include "model/model.h"
#include "model/parts.h"
#include "ops_harness.h"
#include <unistd.h>

enum { ROWS = 6, SIDE = 12 };

/* ---- what draws nothing ---------------------------------------------------------------------- */

static keel_dtype dtype_of(const char *name)
{
    return !strcmp(name, "uint8")    ? KEEL_UINT8
           : !strcmp(name, "int64")  ? KEEL_INT64
           : !strcmp(name, "string") ? KEEL_STRING
                                     : KEEL_FLOAT32;
}

static double number_at(const keel_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case KEEL_FLOAT32:
        return (double)((const float *)t->data)[i];
    case KEEL_UINT8:
        return ((const uint8_t *)t->data)[i];
    case KEEL_INT32:
        return ((const int32_t *)t->data)[i];
    default:
        return (double)((const int64_t *)t->data)[i];
    }
}

/* Whole numbers exactly; bytes may stand for the float32 that Keras has, if they are the same, and
 * float32 for the integers of a multi_hot. */
static void it_gives(const json_t *c, keel_dataset *d, const char *what)
{
    const json_t *y = json_object_get(c, "y");
    const keel_shape out = golden_shape(c, "out");
    const bool whole = strcmp(golden_text(c, "out_dtype"), "float32") != 0;
    /* of spectra in decibels Keras's own results in tf.data and outside of it differ by 7e-5 */
    const bool mel = !strcmp(golden_text(c, "name"), "MelSpectrogram");
    const double tolerance = whole ? 0 : mel ? 1e-4 : 2e-6;
    keel_data_field f;
    keel_reader *r;
    const keel_tensor *x;
    size_t k = 0;
    must(keel_dataset_field(d, 0, &f));
    if (!keel_shape_equal(&f.shape, &out)) fail_msg("%s: another shape", what);
    const bool hot = json_object_get(json_object_get(c, "config"), "output_mode") != NULL;
    if (keel_dtype_is_real(f.dtype) ? whole && !hot : !whole && f.dtype != KEEL_UINT8)
        fail_msg("%s: another type", what);
    must(keel_reader_create(&r, d, NULL));
    while (keel_reader_next(r, &x) == KEEL_OK) {
        int64_t n = 1;
        for (int i = 0; i < x->shape.rank; i++) n *= x->shape.dim[i];
        for (int64_t i = 0; i < n; i++, k++) {
            const double want = json_number_value(json_array_get(y, k)), got = number_at(x, i);
            if (!golden_near(got, want, tolerance))
                fail_msg("%s: y[%zu] is %.9g, in Keras %.9g", what, k, got, want);
        }
    }
    assert_int_equal(k, json_array_size(y));
    keel_reader_destroy(r);
}

static void rows_and_batches_are_those_of_keras(void **unused)
{
    (void)unused;
    json_t *cases = golden_load("layer_stages.json"), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        const keel_shape row = golden_shape(c, "row");
        char *args = json_dumps(json_object_get(c, "config"), 0), what[80];
        for (int way = 0; way < 3; way++) { /* rows by index, as a stream, batches */
            source s;
            snprintf(what, sizeof what, "%s %zu, way %d", golden_text(c, "name"), i, way);
            must(open_source(&s, dtype_of(golden_text(c, "dtype")), &row, 3, false));
            if (way == 1) stream_of(&s.d);
            if (way == 2) must(apply(&s.d, "batch", "{\"batch_size\": 2}"));
            must(apply(&s.d, golden_text(c, "name"), args));
            it_gives(c, s.d, what);
            close_source(&s);
        }
        free(args);
    }
    json_decref(cases);
}

/* ---- what draws ------------------------------------------------------------------------------ */

static const struct draw {
    const char *name, *args;
    bool bytes; /* it only moves bytes of an image */
    bool exact; /* its op is compared with the stage */
} draws[] = {
    { "AugMix", "", false, false },
    { "RandAugment", "", false, false },
    { "RandAugment", "{\"num_ops\": 1}", false, true },
    { "RandomBrightness", "{\"factor\": 0.5}", false, true },
    { "RandomColorDegeneration", "{\"factor\": 0.5}", false, true },
    { "RandomColorJitter", "{\"brightness_factor\": 0.5, \"hue_factor\": 0.3}", false, false },
    { "RandomContrast", "{\"factor\": 0.5}", false, true },
    { "RandomCrop", "{\"height\": 5, \"width\": 7}", true, true },
    { "RandomElasticTransform", "{\"scale\": 0.9}", false, true },
    { "RandomErasing", "", false, true },
    { "RandomFlip", "", true, true },
    { "RandomFlip", "{\"mode\": \"horizontal\"}", true, true },
    { "RandomFlip", "{\"mode\": \"vertical\"}", true, true },
    { "RandomGaussianBlur", "", false, true },
    { "RandomGrayscale", "", false, true },
    { "RandomHue", "{\"factor\": 0.5}", false, true },
    { "RandomInvert", "{\"factor\": 0.5}", false, true },
    { "RandomPerspective", "", false, true },
    { "RandomPosterization", "{\"factor\": [2, 7]}", false, true },
    { "RandomRotation", "{\"factor\": 0.2}", false, true },
    { "RandomRotation", "{\"factor\": 0.2, \"interpolation\": \"nearest\"}", true, true },
    { "RandomSaturation", "{\"factor\": 0.5}", false, true },
    { "RandomSharpness", "{\"factor\": 0.5}", false, true },
    { "RandomShear", "{\"x_factor\": 0.5}", false, true },
    { "RandomTranslation", "{\"height_factor\": 0.5, \"width_factor\": 0.5}", false, true },
    { "RandomTranslation",
      "{\"height_factor\": 0.5, \"width_factor\": 0.5, \"interpolation\": \"nearest\", "
      "\"fill_mode\": \"wrap\"}",
      true, true },
    { "RandomZoom", "{\"height_factor\": 0.5}", false, true },
    { "Solarization", "{\"addition_factor\": 0.5, \"threshold_factor\": 0.5}", false, true },
};
enum { DRAWS = sizeof draws / sizeof *draws };

static const keel_shape image = { 3, { SIDE, SIDE + 1, 3 } };

/* Rows of images that the stage changes, which is the second; way 0: by index, 1: a stream, 2:
 * batches of 4. */
static void open_drawn(source *s, const struct draw *c, int way)
{
    must(open_source(s, KEEL_UINT8, &image, ROWS, false));
    if (way == 0) must(apply(&s->d, "take", "{\"count\": -1}"));
    if (way == 1) stream_of(&s->d);
    if (way == 2) must(apply(&s->d, "batch", "{\"batch_size\": 4}"));
    must(apply(&s->d, c->name, c->args));
}

static void threads_and_begins_change_no_bit(void **state)
{
    const struct draw *c = *state;
    static const int threads[] = { 1, 2, 7, 16 };
    bytes by_index = { 0 };
    for (int way = 0; way < 3; way++) {
        source s;
        open_drawn(&s, c, way);
        bytes all = read_all(s.d, 0, 0, -1), next = read_all(s.d, 1, 0, 2);
        for (int i = 0; i < 4; i++) {
            bytes b = read_all(s.d, 0, 0, threads[i]);
            same_bytes("threads", &b, &all, 0);
            free(b.at);
        }
        for (int k = 1; k < all.elements; k++) {
            bytes b = read_all(s.d, 0, k, 2);
            same_bytes("from an element on", &b, &all, all.first[k]);
            free(b.at);
        }
        assert_int_equal(all.n, next.n);
        if (!memcmp(all.at, next.at, all.n)) fail_msg("two passes draw the same");
        if (way == 1) same_bytes("a stream and by index", &all, &by_index, 0);
        free(next.at);
        if (way == 0)
            by_index = all;
        else
            free(all.at);
        close_source(&s);
    }
    free(by_index.at);
}

/* The op of a lab that is opened on a node's arguments instead of a case's words. */
static const keel_node *given;

static void give_args(void *args, const char *text)
{
    (void)text;
    memcpy(args, given->args, given->op->args_size);
}

/* A model of the layer alone, on float32 images, and its only node. */
static keel_model *model_of(const struct draw *c, keel_graph **g)
{
    keel_model *m;
    keel_symbol in, out;
    keel_value from, to;
    int layer;
    json_t *config = json_loads(*c->args ? c->args : "{}", 0, NULL);
    must(keel_model_create(&m, "m", KEEL_FLOAT32, 1));
    must(keel_model_input(m, &image, NULL, &in));
    must(keel_model_new_layer(m, c->name, config, &layer));
    must(keel_model_new_node(m, layer, &(keel_model_call_of){ &in, 1 }, &out));
    must(keel_model_outputs(m, &out, 1));
    json_decref(config);
    keel_model_emission e = {
        .real = KEEL_FLOAT32, .training = true, .input = &from, .output = &to
    };
    must(keel_model_emit(m, &e));
    assert_int_equal(e.graph->n_node, 1);
    *g = e.graph;
    return m;
}

/* The seed of the second stage, as change.h says. */
static uint64_t seed_of(uint64_t seed)
{
    uint32_t word[4];
    const keel_chance own = { .seed = seed, .stream = KEEL_STREAM_STAGES + 2 };
    keel_philox(word, &own, (UINT64_C(1) << 48) - 1, UINT32_MAX);
    return (uint64_t)word[0] << 32 | word[1];
}

static void it_is_the_layer_of_a_model(void **state)
{
    const struct draw *c = *state;
    source s;
    keel_graph *g;
    lab l;
    if (!c->exact) return;
    keel_model *m = model_of(c, &g);
    given = &g->node[0].node;
    static keel_op op;
    op = *given->op;
    op.args_for_case = give_args;
    char in[40];
    snprintf(in, sizeof in, "%d,%d,3", SIDE, SIDE + 1);
    must(lab_open(&l, &op, &(keel_case){ in, NULL, NULL }, false, true, ROWS));
    l.node.stream = given->stream;
    l.step.seed = seed_of(7);
    l.step.epoch = 2;
    l.step.first_row = 0;
    l.row = 0;
    open_drawn(&s, c, 0);
    for (int64_t k = 0; k < lab_in_count(&l, 0); k++) lab_set(&l, l.in[0], k, ((uint8_t *)s.x)[k]);
    lab_forward(&l, (int64_t[]){ ROWS }, 1);
    bytes b = read_all(s.d, 2, 0, 2);
    keel_data_field f;
    must(keel_dataset_field(s.d, 0, &f));
    const int64_t n = lab_out_count(&l) / ROWS;
    assert_int_equal(f.dtype, c->bytes ? KEEL_UINT8 : KEEL_FLOAT32);
    assert_int_equal(b.elements, ROWS);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < n; i++) {
            const char *at = b.at + b.first[r] + (size_t)i * keel_dtype_size(f.dtype);
            float got;
            if (c->bytes)
                got = *(const uint8_t *)at;
            else
                memcpy(&got, at, sizeof got);
            if ((double)got != lab_get(&l, l.out, r * n + i))
                fail_msg("row %d, number %d is %g, in a model %g", (int)r, (int)i, (double)got,
                         lab_get(&l, l.out, r * n + i));
        }
    free(b.at);
    lab_close(&l);
    close_source(&s);
    keel_graph_destroy(g);
    keel_model_destroy(m);
}

static void outside_of_training_images_stay(void **unused)
{
    (void)unused;
    source s;
    must(open_source(&s, KEEL_UINT8, &image, ROWS, false));
    bytes before = read_all(s.d, 0, 0, 1);
    must(apply(&s.d, "RandomRotation", "{\"factor\": 0.2, \"training\": false}"));
    bytes after = read_all(s.d, 0, 0, 2);
    same_bytes("inference", &after, &before, 0);
    must(apply(&s.d, "cache", "")); /* which is refused behind what draws */
    free(before.at);
    free(after.at);
    close_source(&s);
}

/* ---- every layer ----------------------------------------------------------------------------- */

static bool has_case(const char *name, const json_t *golden)
{
    static const char *const others[] = { "MixUp", "CutMix", "HashedCrossing",
                                          "ContrastLimitedAdaptiveHistogramEqualization" };
    size_t i;
    json_t *c;
    bool found = false;
    for (int k = 0; k < DRAWS; k++) found = found || !strcmp(draws[k].name, name);
    for (int k = 0; k < 4; k++) found = found || !strcmp(others[k], name);
    json_array_foreach((json_t *)golden, i, c) found =
        found || !strcmp(golden_text(c, "name"), name);
    return found;
}

static void every_layer_of_preprocessing_is_a_stage_with_a_test(void **unused)
{
    (void)unused;
    extern const keel_layer *const keel_preprocessing_layers[];
    json_t *golden = golden_load("layer_stages.json");
    for (int i = 0; keel_preprocessing_layers[i]; i++) {
        const char *name = keel_preprocessing_layers[i]->type.name;
        char *help;
        if (!keel_stage_find(name)) fail_msg("%s is no stage", name);
        if (!has_case(name, golden)) fail_msg("%s has no case here", name);
        must(keel_stage_help(name, &help));
        assert_non_null(strstr(help, name));
        keel_model_summary_free(help);
    }
    json_decref(golden);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static keel_status two_fields(source *s, keel_dtype first, const keel_shape *shape,
                              keel_dtype second)
{
    keel_array_field f[2] = {
        { "left", KEEL_ROLE_INPUT, NULL, { first, { shape->rank + 1, { ROWS } }, NULL } },
        { "right", KEEL_ROLE_INPUT, NULL, { second, { shape->rank + 1, { ROWS } }, NULL } },
    };
    int64_t n = ROWS;
    for (int d = 0; d < shape->rank; d++) n *= shape->dim[d];
    for (int i = 0; i < 2; i++)
        memcpy(f[i].array.shape.dim + 1, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
    s->x = f[0].array.data = numbers_of(first, n);
    s->y = f[1].array.data = numbers_of(second, n);
    return keel_dataset_from_fields(&s->d, f, 2);
}

/* An image and its mask are turned alike. */
static void several_fields_draw_the_same(void **unused)
{
    (void)unused;
    for (int stream = 0; stream < 2; stream++) {
        source s;
        must(two_fields(&s, KEEL_UINT8, &image, KEEL_UINT8));
        if (stream) stream_of(&s.d);
        must(apply(&s.d, "RandomFlip", "{\"field\": [\"left\", \"right\"]}"));
        bytes b = read_all(s.d, 0, 0, 2);
        const size_t half = b.n / ROWS / 2;
        int turned = 0;
        for (int r = 0; r < ROWS; r++) {
            assert_memory_equal(b.at + b.first[r], b.at + b.first[r] + half, half);
            turned += memcmp(b.at + b.first[r], (char *)s.x + (size_t)r * half, half) != 0;
        }
        assert_in_range(turned, 1, ROWS - 1);
        free(b.at);
        close_source(&s);
    }
}

static void a_layer_of_two_inputs_makes_a_new_field(void **unused)
{
    (void)unused;
    const keel_shape one = { 1, { 1 } };
    for (int stream = 0; stream < 2; stream++) {
        source s;
        keel_data_field f;
        must(two_fields(&s, KEEL_STRING, &one, KEEL_INT64));
        if (stream) stream_of(&s.d);
        must(apply(&s.d, "HashedCrossing",
                   "{\"num_bins\": 5, \"field\": [\"left\", \"right\"], \"to\": \"cross\"}"));
        assert_int_equal(keel_dataset_field_count(s.d), 3);
        must(keel_dataset_field(s.d, 2, &f));
        assert_string_equal(f.path, "cross");
        keel_reader *r;
        const keel_tensor *x;
        must(keel_reader_create(&r, s.d, NULL));
        for (int i = 0; i < ROWS; i++) {
            must(keel_reader_next(r, &x));
            assert_int_equal(((keel_string *)x[0].data)->n_bytes, strlen(words[i % 6]));
            assert_int_equal(((int64_t *)x[1].data)[0], (i * 37 + 11) % 101);
            assert_in_range(number_at(&x[2], 0), 0, 4);
        }
        keel_reader_destroy(r);
        close_source(&s);
    }
}

/* ---- a whole model --------------------------------------------------------------------------- */

/* Rescaling behind two layers that draw, and its file. */
static keel_model *augmenter(const char *path)
{
    keel_model *m;
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", SIDE, SIDE + 1, 3))));
    must(keel_model_add(m, "RandomFlip", NULL));
    must(keel_model_add(m, "RandomRotation", KEEL_ARGS(KEEL_ARG_FLOAT("factor", 0.1))));
    must(keel_model_add(m, "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 0.5))));
    must(keel_model_save(m, path));
    return m;
}

static void a_model_changes_rows_from_c_and_by_its_file(void **unused)
{
    (void)unused;
    char path[64], args[96];
    snprintf(path, sizeof path, "/tmp/keel-stage-%d.keras", (int)getpid());
    snprintf(args, sizeof args, "{\"file\": \"%s\"}", path);
    keel_model *m = augmenter(path);
    bytes all[3];
    for (int way = 0; way < 3; way++) { /* from C, by its file, as it predicts */
        source s;
        keel_dataset *next;
        must(open_source(&s, KEEL_UINT8, &image, ROWS, false));
        if (way == 1) must(apply(&s.d, "model", args));
        if (way != 1) {
            must(keel_dataset_map_model(&next, s.d, m, way == 0));
            put(&s.d, next);
        }
        all[way] = read_all(s.d, 0, 0, 2);
        for (size_t k = 0; way == 2 && k < ROWS * SIDE * (SIDE + 1) * 3; k++) {
            const size_t row = k / (SIDE * (SIDE + 1) * 3), at = k % (SIDE * (SIDE + 1) * 3);
            float got;
            memcpy(&got, all[2].at + all[2].first[row] + at * sizeof got, sizeof got);
            assert_true(got == 0.5F * (float)((uint8_t *)s.x)[k]);
        }
        close_source(&s);
    }
    same_bytes("from C and by its file", &all[1], &all[0], 0);
    assert_memory_not_equal(all[0].at, all[2].at, all[0].n);
    for (int way = 0; way < 3; way++) free(all[way].at);
    unlink(path);
    keel_model_destroy(m);
}

static void a_model_that_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    const struct {
        const char *layer;
        const keel_arg *args;
        keel_status status;
        const char *text;
    } all[] = {
        { "BatchNormalization", NULL, KEEL_EUNSUP, "all rows of a step" },
        { "Rescaling", KEEL_ARGS(KEEL_ARG_FLOAT("scale", 1)), KEEL_ESHAPE, "takes (5, 3)" },
    };
    for (int i = 0; i < 2; i++) {
        source s;
        keel_dataset *next = NULL;
        keel_model *m;
        must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
        if (i) must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 5, 3))));
        if (!i)
            must(keel_model_add(m, "InputLayer",
                                KEEL_ARGS(KEEL_ARG_INTS("shape", SIDE, SIDE + 1, 3))));
        must(open_source(&s, KEEL_UINT8, &image, ROWS, false));
        assert_int_equal(keel_dataset_map_model(&next, s.d, m, true), KEEL_EARG); /* no output */
        must(keel_model_add(m, all[i].layer, all[i].args));
        const keel_status got = keel_dataset_map_model(&next, s.d, m, true);
        if (got != all[i].status || !strstr(keel_error(), all[i].text))
            fail_msg("%s", got < 0 ? keel_error() : "accepted");
        assert_int_equal(apply(&s.d, "model", ""), KEEL_EARG); /* no file */
        close_source(&s);
        keel_model_destroy(m);
    }
}

/* ---- rows that differ in shape --------------------------------------------------------------- */

enum { RAGGED = 60 }; /* more shapes than are kept compiled */

/* Image k has k + 2 lines of 70 - k pixels of 3 bytes. */
static keel_status next_image(void *context, const void **data, keel_shape *shape)
{
    static uint8_t pixels[RAGGED + 2][71 * 3];
    int *at = context;
    if (*at == RAGGED) return KEEL_END;
    for (int i = 0; i < RAGGED + 2; i++)
        for (int j = 0; j < 71 * 3; j++) pixels[i][j] = (uint8_t)(*at + i * 7 + j);
    data[0] = pixels;
    shape[0].dim[0] = *at + 2;
    shape[0].dim[1] = 70 - *at;
    ++*at;
    return KEEL_OK;
}

static keel_status to_first(void *context)
{
    *(int *)context = 0;
    return KEEL_OK;
}

static void images_of_any_size_are_changed(void **unused)
{
    (void)unused;
    static const keel_data_field field = {
        "image", KEEL_UINT8, { 3, { KEEL_DIM_OPEN, KEEL_DIM_OPEN, 3 } }, KEEL_ROLE_INPUT
    };
    bytes first = { 0 };
    for (int threads = -1; threads < 4; threads += 2) {
        int at = 0;
        keel_dataset *d;
        keel_data_field f;
        must(keel_dataset_from_generator(&d, &(keel_generator){ .size = sizeof(keel_generator),
                                                                .context = &at,
                                                                .reset = to_first,
                                                                .next_row = next_image,
                                                                .n_field = 1,
                                                                .field = &field }));
        must(apply(&d, "Rescaling", "{\"scale\": 0.5}"));
        must(keel_dataset_field(d, 0, &f));
        assert_int_equal(f.shape.dim[0], KEEL_DIM_OPEN);
        must(apply(&d, "RandomFlip", ""));
        must(apply(&d, "Resizing", "{\"height\": 4, \"width\": 5}"));
        must(keel_dataset_field(d, 0, &f));
        assert_true(keel_shape_equal(&f.shape, &(keel_shape){ 3, { 4, 5, 3 } }));
        bytes b = read_all(d, 0, 0, threads);
        assert_int_equal(b.elements, RAGGED);
        if (first.at) same_bytes("threads", &b, &first, 0);
        if (first.at)
            free(b.at);
        else
            first = b;
        keel_dataset_destroy(d);
    }
    free(first.at);
}

static void texts_of_any_length_are_looked_up(void **unused)
{
    (void)unused;
    bytes all[2];
    for (int stream = 0; stream < 2; stream++) {
        keel_dataset *d;
        keel_data_field f;
        must(keel_dataset_open(&d, golden_path("dims_words.npz"), NULL));
        if (stream) stream_of(&d);
        must(apply(&d, "Hashing", "{\"num_bins\": 7}"));
        must(keel_dataset_field(d, 0, &f));
        assert_int_equal(f.dtype, KEEL_INT64);
        assert_int_equal(f.shape.dim[0], KEEL_DIM_OPEN);
        all[stream] = read_all(d, 0, 0, 2);
        keel_dataset_destroy(d);
    }
    assert_true(all[0].elements > 10);
    same_bytes("by index and as a stream", &all[1], &all[0], 0);
    free(all[0].at);
    free(all[1].at);
}

/* ---- rows that mix --------------------------------------------------------------------------- */

/* What is not `own` in an image of 8 x 9 x 2 fills a box of whole pixels. */
static void check_box(const float *pixel, float own)
{
    int low[2] = { 8, 9 }, high[2] = { 0, 0 }, n = 0;
    for (int i = 0; i < 8 * 9 * 2; i++) {
        const int at[2] = { i / 18, i % 18 / 2 };
        if (pixel[i] == own) continue;
        n++;
        for (int k = 0; k < 2; k++) {
            if (at[k] < low[k]) low[k] = at[k];
            if (at[k] >= high[k]) high[k] = at[k] + 1;
        }
    }
    if (n) assert_int_equal(n, (high[0] - low[0]) * (high[1] - low[1]) * 2);
}

/* Image r is r everywhere and label r is class r, so the labels say what the image must be. */
static void mixed(const char *name, const char *args, double *own, int *alone)
{
    enum { N = 4, PIXELS = 8 * 9 * 2 };
    static float x[N * PIXELS], y[N * N];
    const keel_tensor xs = { KEEL_FLOAT32, { 4, { N, 8, 9, 2 } }, x };
    const keel_tensor ys = { KEEL_FLOAT32, { 2, { N, N } }, y };
    keel_dataset *d;
    *own = *alone = 0;
    for (int i = 0; i < N * PIXELS; i++) x[i] = (float)(i / PIXELS);
    for (int i = 0; i < N; i++) y[i * N + i] = 1;
    must(keel_dataset_from_arrays(&d, &xs, &ys, NULL));
    must(apply(&d, "repeat", "{\"count\": 50}"));
    must(apply(&d, "batch", "{\"batch_size\": 4}"));
    must(apply(&d, name, args));
    bytes b = read_all(d, 0, 0, 3), again = read_all(d, 0, 0, -1), late = read_all(d, 0, 31, 2);
    same_bytes("threads", &again, &b, 0);
    same_bytes("from an element on", &late, &b, b.first[31]);
    assert_int_equal(b.elements, 50);
    for (int e = 0; e < b.elements; e++) {
        const float *image_at = (const float *)(const void *)(b.at + b.first[e]);
        const float *label = image_at + N * PIXELS;
        for (int r = 0; r < N; r++) {
            double sum = 0, want = 0, seen = 0;
            for (int k = 0; k < N; k++) {
                sum += (double)label[r * N + k];
                want += (double)label[r * N + k] * k;
            }
            for (int i = 0; i < PIXELS; i++) seen += (double)image_at[r * PIXELS + i] / PIXELS;
            assert_true(fabs(sum - 1) < 1e-5);
            if (!strcmp(name, "CutMix")) check_box(image_at + r * PIXELS, (float)r);
            /* a box of CutMix covers whole pixels, and its area is counted in parts of them */
            if (fabs(seen - want) > (strcmp(name, "CutMix") ? 1e-5 : 3 * 0.25))
                fail_msg("%s: the image has %g, and the labels say %g", name, seen, want);
            *own += (double)label[r * N + r] / (50 * N);
            *alone += label[r * N + r] > 0.99f;
        }
    }
    free(b.at);
    free(again.at);
    free(late.at);
    keel_dataset_destroy(d);
}

/* A share has a mean of 1/2, and a quarter of the rows meets itself: 0.625, of 200 rows with a
 * deviation of 0.03. With alpha 0.2 most shares are near 0 or 1, with alpha 50 none is. */
static void labels_are_mixed_as_their_images(void **unused)
{
    (void)unused;
    double own;
    int few, many;
    mixed("MixUp", "{\"alpha\": 0.2}", &own, &many);
    assert_true(fabs(own - 0.625) < 5 * 0.03);
    mixed("MixUp", "{\"alpha\": 50}", &own, &few);
    assert_true(fabs(own - 0.625) < 5 * 0.03);
    assert_true(few < 80 && many > few + 20);
    mixed("CutMix", "{\"factor\": [1, 1]}", &own, &few);
    assert_true(fabs(own - 0.625) < 5 * 0.03);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct refused {
    const char *what, *name, *args;
    bool batched, encoded;
    keel_status status;
    const char *text;
} refused[] = {
    { "statistics that nobody has learned", "Normalization", "", false, false, KEEL_EARG,
      "give mean and variance" },
    { "boundaries that nobody has learned", "Discretization", "", false, false, KEEL_EARG,
      "bin_boundaries" },
    { "an argument that the layer lacks", "RandomFlip", "{\"modes\": 1}", false, false, KEEL_EARG,
      "there is no argument 'modes'" },
    { "a field that rows lack", "RandomFlip", "{\"field\": [\"z\"]}", false, false, KEEL_EARG,
      "no field 'z'; they have 'x', 'y'" },
    { "a field twice", "RandomFlip", "{\"field\": [\"x\", \"x\"]}", false, false, KEEL_EARG,
      "twice" },
    { "a new field with an old name", "Rescaling", "{\"scale\": 2, \"to\": \"y\"}", false, false,
      KEEL_EARG, "a field 'y' already" },
    { "one new field for two", "Rescaling",
      "{\"scale\": 2, \"field\": [\"x\", \"y\"], \"to\": \"z\"}", false, false, KEEL_EARG,
      "one field, and 2" },
    { "labels as images", "RandomFlip", "{\"field\": [\"y\"]}", false, false, KEEL_ESHAPE,
      "RandomFlip" },
    { "numbers as texts", "TextVectorization", "{\"vocabulary\": [\"a\"]}", false, false, KEEL_EARG,
      "TextVectorization" },
    { "one field for a layer of two", "HashedCrossing", "{\"num_bins\": 3}", false, false,
      KEEL_EARG, "2 fields" },
    { "to mix rows", "MixUp", "", false, true, KEEL_EARG, "behind batch" },
    { "to mix numbers of classes", "CutMix", "", true, false, KEEL_EARG, "CategoryEncoding" },
    { "an alpha of 0", "MixUp", "{\"alpha\": 0}", true, true, KEEL_EARG, "above 0" },
};
enum { REFUSED = sizeof refused / sizeof *refused };

static void it_is_refused(void **state)
{
    const struct refused *c = *state;
    source s;
    must(open_source(&s, KEEL_UINT8, &image, ROWS, c->encoded));
    if (c->batched) must(apply(&s.d, "batch", "{\"batch_size\": 4}"));
    const keel_status r = apply(&s.d, c->name, c->args);
    if (r != c->status || !strstr(keel_error(), c->text) || !strstr(keel_error(), c->name))
        fail_msg("%s: %s", keel_status_name(r), r < 0 ? keel_error() : "accepted");
    close_source(&s);
}

static void a_cache_behind_what_draws_is_refused(void **unused)
{
    (void)unused;
    source s;
    must(open_source(&s, KEEL_UINT8, &image, ROWS, false));
    must(apply(&s.d, "RandomFlip", ""));
    assert_int_equal(apply(&s.d, "cache", ""), KEEL_EARG);
    close_source(&s);
}

static void a_row_that_a_layer_refuses_fails_with_its_name(void **unused)
{
    (void)unused;
    source s;
    keel_reader *r;
    const keel_tensor *x;
    must(open_source(&s, KEEL_INT64, &(keel_shape){ 1, { 2 } }, ROWS, false));
    must(apply(&s.d, "CategoryEncoding", "{\"num_tokens\": 60}"));
    must(keel_reader_create(&r, s.d, NULL));
    keel_status got = KEEL_OK;
    while (got == KEEL_OK) got = keel_reader_next(r, &x);
    assert_int_equal(got, KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "CategoryEncoding"));
    assert_non_null(strstr(keel_error(), "is no category"));
    keel_reader_destroy(r);
    close_source(&s);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static keel_status build_and_read(source *s, bool stream)
{
    keel_dataset *d, *next;
    keel_reader *r;
    const keel_tensor *x;
    KEEL_TRY(keel_dataset_take(&d, s->d, 3));
    keel_status got = KEEL_OK;
    if (stream && (got = keel_dataset_batch(&next, d, 2, false)) >= 0) put(&d, next);
    if (got >= 0) got = apply(&d, "RandomFlip", "");
    if (got >= 0) got = apply(&d, "RandomRotation", "{\"factor\": 0.1}");
    if (got >= 0)
        got = apply(&d, "CategoryEncoding",
                    "{\"num_tokens\": 9, \"field\": [\"y\"], \"output_mode\": \"one_hot\"}");
    if (got >= 0 && stream) got = apply(&d, "MixUp", "");
    if (got >= 0)
        got = keel_reader_create(&r, d,
                                 &(keel_reader_options){ KEEL_READER_OPTIONS.size, .threads = 2 });
    if (got >= 0) {
        while ((got = keel_reader_next(r, &x)) == KEEL_OK) continue;
        keel_reader_destroy(r);
    }
    keel_dataset_destroy(d);
    return got;
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    source s;
    must(open_source(&s, KEEL_UINT8, &(keel_shape){ 3, { 4, 4, 1 } }, ROWS, false));
    for (int stream = 0; stream < 2; stream++) {
        must(build_and_read(&s, stream));
        const int64_t before = keel_memory_live();
        int64_t calls = keel_memory_calls();
        must(build_and_read(&s, stream));
        calls = keel_memory_calls() - calls;
        for (int64_t i = 0; i < calls; i += 1 + i / 60) {
            keel_memory_fail_at(i);
            const keel_status got = build_and_read(&s, stream);
            keel_memory_fail_at(-1);
            if (got < 0 && got != KEEL_ENOMEM) fail_msg("allocation %d: %s", (int)i, keel_error());
            assert_int_equal(keel_memory_live(), before);
        }
    }
    close_source(&s);
}

/* Once a reader has read a row, it allocates as much for each as it does without the stage. */
static void a_row_allocates_nothing_of_its_own(void **unused)
{
    (void)unused;
    int64_t calls[2];
    for (int with = 0; with < 2; with++) {
        source s;
        keel_reader *r;
        const keel_tensor *x;
        must(open_source(&s, KEEL_UINT8, &image, 40, false));
        if (with) must(apply(&s.d, "RandomRotation", "{\"factor\": 0.2}"));
        must(keel_reader_create(&r, s.d,
                                &(keel_reader_options){ KEEL_READER_OPTIONS.size, .threads = -1 }));
        for (int i = 0; i < 20; i++) must(keel_reader_next(r, &x));
        calls[with] = keel_memory_calls();
        for (int i = 0; i < 15; i++) must(keel_reader_next(r, &x));
        calls[with] = keel_memory_calls() - calls[with];
        keel_reader_destroy(r);
        close_source(&s);
    }
    assert_int_equal(calls[1], calls[0]);
}

static int nothing_is_left(void **state)
{
    (void)state;
    return keel_memory_live() != 0;
}

int main(void)
{
    static struct CMUnitTest test[2 * DRAWS + REFUSED + 16];
    static char name[2 * DRAWS][96];
    int n = 0;
    for (int i = 0; i < 2 * DRAWS; i++) {
        const struct draw *c = &draws[i / 2];
        snprintf(name[i], sizeof name[i], "%s %s: %s", c->name, c->args,
                 i % 2 ? "is the layer of a model" : "is the same for threads, streams and begins");
        test[n++] = (struct CMUnitTest){ name[i],
                                         i % 2 ? it_is_the_layer_of_a_model
                                               : threads_and_begins_change_no_bit,
                                         NULL, NULL, (void *)c };
    }
    for (int i = 0; i < REFUSED; i++)
        test[n++] =
            (struct CMUnitTest){ refused[i].what, it_is_refused, NULL, NULL, (void *)&refused[i] };
    test[n++] = (struct CMUnitTest)cmocka_unit_test(rows_and_batches_are_those_of_keras);
    test[n++] =
        (struct CMUnitTest)cmocka_unit_test(every_layer_of_preprocessing_is_a_stage_with_a_test);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(outside_of_training_images_stay);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(several_fields_draw_the_same);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_layer_of_two_inputs_makes_a_new_field);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_model_changes_rows_from_c_and_by_its_file);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_model_that_does_not_fit_is_refused);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(images_of_any_size_are_changed);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(texts_of_any_length_are_looked_up);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(labels_are_mixed_as_their_images);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_cache_behind_what_draws_is_refused);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_row_that_a_layer_refuses_fails_with_its_name);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(every_allocation_may_fail);
    test[n++] = (struct CMUnitTest)cmocka_unit_test(a_row_allocates_nothing_of_its_own);
    return _cmocka_run_group_tests("layer stages", test, (size_t)n, NULL, nothing_is_left);
}
