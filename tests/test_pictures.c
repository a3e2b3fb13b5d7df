/* How keel data shows rows: what looks like an image or a sound, which values are black and white,
 * and the characters and PNG files that come of it. */
#include "picture.h"
#include <math.h>
#include <setjmp.h>
#include <spng.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SHAPE(...)                                                                                 \
    {                                                                                              \
        (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static void shapes_and_types_tell_images_and_sounds_from_numbers(void **state)
{
    static float zeros[4096];
    const struct {
        const char *what;
        keel_tensor t;
        keel_look want;
    } cases[] = {
        { "grey", { KEEL_UINT8, SHAPE(28, 28, 1), zeros }, KEEL_LOOK_IMAGE },
        { "colours", { KEEL_FLOAT32, SHAPE(2, 5, 3), zeros }, KEEL_LOOK_IMAGE },
        { "colours and alpha", { KEEL_FLOAT32, SHAPE(9, 9, 4), zeros }, KEEL_LOOK_IMAGE },
        { "grey without a dim of channels", { KEEL_UINT8, SHAPE(28, 28), zeros }, KEEL_LOOK_IMAGE },
        { "two channels", { KEEL_UINT8, SHAPE(28, 28, 2), zeros }, KEEL_LOOK_VALUES },
        { "a small matrix", { KEEL_FLOAT32, SHAPE(4, 4), zeros }, KEEL_LOOK_VALUES },
        { "no pixels", { KEEL_UINT8, SHAPE(0, 28, 3), zeros }, KEEL_LOOK_VALUES },
        { "a sound", { KEEL_FLOAT32, SHAPE(1000, 1), zeros }, KEEL_LOOK_SOUND },
        { "a sound in stereo", { KEEL_FLOAT32, SHAPE(1000, 2), zeros }, KEEL_LOOK_SOUND },
        { "a long vector", { KEEL_FLOAT32, SHAPE(64), zeros }, KEEL_LOOK_SOUND },
        { "tokens", { KEEL_INT32, SHAPE(500), zeros }, KEEL_LOOK_VALUES },
        { "a short vector", { KEEL_FLOAT32, SHAPE(13), zeros }, KEEL_LOOK_VALUES },
        { "a number", { KEEL_FLOAT32, { 0 }, zeros }, KEEL_LOOK_VALUES },
        { "texts", { KEEL_STRING, SHAPE(8, 8), zeros }, KEEL_LOOK_VALUES },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (keel_look_at(&cases[i].t) != cases[i].want) fail_msg("%s", cases[i].what);
}

static void black_and_white_are_those_of_the_values(void **state)
{
    const struct {
        keel_dtype dtype;
        float v[3];
        const char *want;
    } cases[] = {
        { KEEL_FLOAT32, { 0, 0.5f, 0.9f }, "0 to 1 is black to white; values are 0 to 0.9" },
        { KEEL_FLOAT32, { -0.2f, 0.5f, 1 }, "-1 to 1 is black to white; values are -0.2 to 1" },
        { KEEL_FLOAT32, { 0, 3, 200.5f }, "0 to 255 is black to white; values are 0 to 200.5" },
        { KEEL_FLOAT32, { -3, 0, 2 }, "-3 to 2 is black to white; values are -3 to 2" },
        { KEEL_FLOAT32, { 0, 256, 1 }, "0 to 256 is black to white; values are 0 to 256" },
        { KEEL_FLOAT32,
          { NAN, 0.5f, INFINITY },
          "0 to 1 is black to white; values are 0.5 to 0.5, and 2 that are not finite are black" },
        { KEEL_FLOAT32, { NAN, NAN, NAN }, "no value is finite" },
        { KEEL_UINT8, { 0, 1, 1 }, "0 to 255 is black to white; values are 0 to 1" },
        { KEEL_BOOL, { 0, 1, 1 }, "0 to 1 is black to white; values are 0 to 1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[3];
        char text[200];
        keel_range r = KEEL_RANGE;
        keel_tensor t = { cases[i].dtype, SHAPE(3), NULL };
        for (int k = 0; k < 3; k++)
            bytes[k] = (unsigned char)(isfinite(cases[i].v[k]) ? cases[i].v[k] : 0);
        t.data = t.dtype == KEEL_FLOAT32 ? (void *)(uintptr_t)cases[i].v : bytes;
        keel_range_add(&r, &t);
        keel_range_decide(&r, t.dtype);
        assert_string_equal(keel_range_text(text, sizeof text, &r), cases[i].want);
    }
}

/* The picture of values, as large as it may be. */
static keel_picture made(const keel_tensor *t, int64_t height, int64_t width)
{
    keel_range r = KEEL_RANGE;
    keel_picture p;
    keel_range_add(&r, t);
    keel_range_decide(&r, t->dtype);
    assert_true(keel_picture_make(&p, t, &r, height, width));
    return p;
}

static void a_large_image_is_made_smaller_by_means(void **state)
{
    (void)state;
    unsigned char v[4][6] = { { 0, 100, 10, 10, 255, 255 },
                              { 100, 0, 10, 10, 255, 255 },
                              { 7, 7, 8, 8, 9, 9 },
                              { 7, 7, 8, 8, 9, 9 } };
    static const unsigned char want[] = { 50, 10, 255, 7, 8, 9 };
    keel_tensor t = { KEEL_UINT8, SHAPE(4, 6, 1), v };
    keel_picture p = made(&t, 2, 100);
    assert_int_equal(p.height, 2);
    assert_int_equal(p.width, 3);
    assert_memory_equal(p.pixel, want, sizeof want);
    free(p.pixel);
    p = made(&t, 100, 1);
    assert_int_equal(p.height, 1);
    assert_int_equal(p.width, 1);
    free(p.pixel);
}

static void a_png_has_the_pixels(void **state)
{
    (void)state;
    float v[3 * 5 * 4];
    for (int channels = 1; channels <= 4; channels++) {
        size_t n, size;
        unsigned char got[sizeof v / sizeof *v];
        if (channels == 2) continue;
        for (int i = 0; i < 3 * 5 * channels; i++) v[i] = (float)(i * 4) / 255;
        keel_tensor t = { KEEL_FLOAT32, SHAPE(3, 5, channels), v };
        keel_picture p = made(&t, 64, 64);
        unsigned char *png = keel_picture_png(&p, &n);
        assert_non_null(png);
        spng_ctx *c = spng_ctx_new(0);
        assert_int_equal(spng_set_png_buffer(c, png, n), 0);
        assert_int_equal(spng_decoded_image_size(c, SPNG_FMT_PNG, &size), 0);
        assert_int_equal(size, 3 * 5 * channels);
        assert_int_equal(spng_decode_image(c, got, size, SPNG_FMT_PNG, 0), 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(got[i], 4 * i);
        spng_ctx_free(c);
        free(png);
        free(p.pixel);
    }
}

#define FG(rgb) "\033[38;2;" rgb "m"
#define BG(rgb) "\033[48;2;" rgb "m"
#define OFF     "\033[0m"

static void pictures_in_a_terminal_are_this_text(void **state)
{
    (void)state;
    unsigned char grey[3][2] = { { 0, 0 }, { 9, 255 }, { 128, 128 } };
    unsigned char colour[2][1][3] = { { { 255, 0, 1 } }, { { 2, 3, 4 } } };
    unsigned char clear[1][1][4] = { { { 255, 255, 255, 0 } } };
    keel_tensor t[3] = { { KEEL_UINT8, SHAPE(3, 2, 1), grey },
                         { KEEL_UINT8, SHAPE(2, 1, 3), colour },
                         { KEEL_UINT8, SHAPE(1, 1, 4), clear } };
    static const char *const label[] = { "0: cat", "1: a long name of a class",
                                         "2: \xc3\xa9t\xc3\xa9" };
    static const char want[] =
        FG("0;0;0") BG("9;9;9") "\u2580" BG("255;255;255") "\u2580" OFF "            " FG("255;0;1")
            BG("2;3;4") "\u2580" OFF
                        "\n" FG("128;128;128") "\u2580\u2580" OFF "            \n"
                                               "0: cat        1: a long na\n" FG(
                                                   "153;153;153") "\u2580" OFF "\n"
                                                                  "2: \xc3\xa9t\xc3\xa9\n";
    keel_picture p[3];
    char *text;
    size_t n;
    for (int i = 0; i < 3; i++) p[i] = made(&t[i], KEEL_CELLS_HEIGHT, KEEL_CELLS_WIDTH);
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    keel_picture_print(f, p, label, 3, 30); /* room for two */
    fclose(f);
    assert_string_equal(text, want);
    free(text);
    for (int i = 0; i < 3; i++) free(p[i].pixel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_types_tell_images_and_sounds_from_numbers),
        cmocka_unit_test(black_and_white_are_those_of_the_values),
        cmocka_unit_test(a_large_image_is_made_smaller_by_means),
        cmocka_unit_test(a_png_has_the_pixels),
        cmocka_unit_test(pictures_in_a_terminal_are_this_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
