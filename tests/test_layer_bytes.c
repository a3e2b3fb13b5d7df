/* Layers on images of bytes give the bits that they give on the same numbers as float32, where rows
 * lie in memory and where they are read from another stage, for any number of channels. */
#include "data/stage.h"
#include "keel/keel.h"
#include "must.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 7, PIXELS_MAX = 4000 };

static uint8_t bytes[ROWS * PIXELS_MAX];
static float numbers[ROWS * PIXELS_MAX];

static const struct {
    const char *layer, *args;
    int64_t channels; /* 0: any number of them */
} layers[] = {
    { "Rescaling", "{\"scale\": 0.00392156862745098, \"offset\": -0.5}", 0 },
    { "Normalization", "{\"mean\": 117.5, \"variance\": 5000}", 0 },
    { "Normalization", "{\"mean\": 117.5, \"variance\": 5000, \"invert\": true}", 0 },
    { "Normalization", "{\"mean\": 120, \"variance\": 0}", 0 },
    { "Normalization", "{\"mean\": [123.68, 116, 0.1], \"variance\": [3411.5, 49, 1e-20]}", 3 },
    { "Normalization", "{\"mean\": [3, 6, 7], \"variance\": [3411.5, 49, 1e9], \"invert\": true}",
      3 },
    { "Normalization", "{\"mean\": [1, 2, 3, 4, 5], \"variance\": [9, 8, 7, 6, 5]}", 5 },
    { "Normalization",
      "{\"mean\": [9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4], "
      "\"variance\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}",
      12 },
    { "RandomBrightness", "{\"factor\": 0.3}", 0 },
    { "RandomContrast", "{\"factor\": 0.5}", 0 },
    { "RandomInvert", "{\"factor\": 0.5}", 0 },
    { "RandomPosterization", "{\"factor\": 4}", 0 },
    { "Solarization", "{\"addition_factor\": 0.3, \"threshold_factor\": 0.4}", 0 },
    { "AutoContrast", "{}", 0 },
    { "RandomGrayscale", "{\"factor\": 0.5}", 3 },
    { "RandomColorDegeneration", "{\"factor\": 0.5}", 3 },
    { "RandomSaturation", "{\"factor\": 0.5}", 3 },
    { "RandomHue", "{\"factor\": 0.5, \"value_range\": [0, 255]}", 3 },
    { "RandomRotation", "{\"factor\": 0.4}", 0 },
    { "RandomRotation", "{\"factor\": 0.4, \"fill_mode\": \"constant\", \"fill_value\": 7}", 0 },
    { "RandomRotation", "{\"factor\": 0.4, \"interpolation\": \"nearest\"}", 0 },
    { "RandomZoom", "{\"height_factor\": 0.5, \"fill_mode\": \"wrap\"}", 0 },
    { "RandomTranslation",
      "{\"height_factor\": 0.9, \"width_factor\": 0.9, \"fill_mode\": \"nearest\"}", 0 },
    { "RandomPerspective", "{\"factor\": 1.0, \"scale\": 0.8}", 0 },
    { "RandomFlip", "{}", 0 },
    { "RandomFlip", "{\"mode\": \"horizontal\"}", 0 },
    { "RandomCrop", "{\"height\": 4, \"width\": 3}", 0 },
};

/* Lines of less than a vector, of several and of more than warp looks at together. */
static const int64_t shapes[][3] = { { 9, 11, 3 },  { 7, 149, 3 }, { 4, 5, 3 },   { 16, 67, 1 },
                                     { 6, 31, 4 },  { 5, 20, 5 },  { 12, 13, 2 }, { 4, 3, 96 },
                                     { 20, 21, 5 }, { 16, 18, 12 } };

static void put(keel_dataset **d, const char *stage, const char *args)
{
    keel_dataset *next = NULL;
    json_t *config = json_loads(args, 0, NULL);
    assert_non_null(config);
    must(keel_stage_apply(&next, keel_stage_find(stage), config, d, 1));
    json_decref(config);
    keel_dataset_destroy(*d);
    *d = next;
}

static void *held; /* the images that are open, with nothing behind them that may be read */

/* Images of bytes, or of the same numbers; in memory, or passed on by a stage. */
static keel_dataset *open_images(bool wide, bool passed, const int64_t shape[3])
{
    keel_dataset *d = NULL;
    const size_t n = (size_t)(ROWS * shape[0] * shape[1] * shape[2]);
    const size_t n_bytes = wide ? n * sizeof *numbers : n;
    free(held);
    assert_non_null(held = malloc(n_bytes));
    memcpy(held, wide ? (const void *)numbers : bytes, n_bytes);
    const keel_tensor x = { wide ? KEEL_FLOAT32 : KEEL_UINT8,
                            { 4, { ROWS, shape[0], shape[1], shape[2] } },
                            held };
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    if (passed) put(&d, "RandomFlip", "{\"training\": false}");
    return d;
}

/* All rows as float32; returns how many numbers. */
static size_t read_all(const keel_dataset *d, float *out)
{
    keel_reader *r = NULL;
    const keel_tensor *x;
    const keel_reader_options o = { .size = sizeof o, .seed = 3, .threads = -1 };
    keel_status s;
    size_t n = 0;
    must(keel_reader_create(&r, d, &o));
    while ((s = keel_reader_next(r, &x)) == KEEL_OK) {
        int64_t count = 1;
        for (int k = 0; k < x->shape.rank; k++) count *= x->shape.dim[k];
        assert_true(n + (size_t)count <= ROWS * PIXELS_MAX);
        assert_int_equal(keel_convert(out + n, KEEL_FLOAT32, x->data, x->dtype, count), count);
        n += (size_t)count;
    }
    must(s);
    keel_reader_destroy(r);
    return n;
}

static size_t read_changed(size_t layer, const int64_t shape[3], bool wide, bool passed, float *out)
{
    keel_dataset *d = open_images(wide, passed, shape);
    put(&d, layers[layer].layer, layers[layer].args);
    const size_t n = read_all(d, out);
    keel_dataset_destroy(d);
    return n;
}

static void check(size_t layer, const int64_t shape[3], bool passed)
{
    static float want[ROWS * PIXELS_MAX], got[ROWS * PIXELS_MAX];
    const size_t n = read_changed(layer, shape, true, passed, want);
    assert_true(n > 0);
    assert_int_equal(read_changed(layer, shape, false, passed, got), n);
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got))
            fail_msg("%s %s of %d x %d x %d%s: number %zu is %.9g, not %.9g", layers[layer].layer,
                     layers[layer].args, (int)shape[0], (int)shape[1], (int)shape[2],
                     passed ? ", of a stage" : "", i, (double)got[i], (double)want[i]);
}

static void bytes_give_the_bits_of_their_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * PIXELS_MAX; i++) {
        bytes[i] = (uint8_t)((uint32_t)i * 2654435761u >> 24);
        numbers[i] = bytes[i];
    }
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
            if (!layers[l].channels || shapes[i / 2][2] == layers[l].channels)
                check(l, shapes[i / 2], i % 2);
    free(held);
    held = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_give_the_bits_of_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
