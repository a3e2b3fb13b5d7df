/* JPEGs that become rows while they are decoded, against images that are decoded first: the same
 * bits for any size, colour sampling, crop and kind of scan. */
#include "base/memory.h"
#include "data/photo.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "made_jpegs.h"

/* The row of keel_photo_read, and that of the image decoded first, in memory of just their size. */
static void compare(const made_jpeg *j, const keel_photo *p, keel_scratch *scratch)
{
    keel_data_field field = { 0 };
    keel_image image;
    keel_photo_field(p, &field);
    for (int k = 0; k < 2; k++) {
        const keel_dtype want = k ? KEEL_FLOAT32 : field.dtype;
        const size_t n =
            (size_t)(p->height * p->width * p->channels) * (want == KEEL_UINT8 ? 1 : sizeof(float));
        char *one = malloc(n), *two = malloc(n);
        memset(one, 1, n);
        memset(two, 2, n);
        assert_int_equal(keel_image_decode(&image, j->data, j->n, p->channels, scratch, 1, "whole"),
                         KEEL_OK);
        assert_int_equal(keel_photo_write(p, &field, &image, one, want, scratch, "whole"), KEEL_OK);
        if (keel_photo_read(p, &field, j->data, j->n, two, want, scratch, "lines") != KEEL_OK)
            fail_msg("%s", keel_error());
        if (memcmp(one, two, n))
            fail_msg("%dx%d to %dx%dx%d, method %d, crop %d, pad %d: the rows differ", j->height,
                     j->width, (int)p->height, (int)p->width, p->channels, (int)p->interpolation,
                     p->crop, p->pad);
        free(one);
        free(two);
    }
}

/* Of each of these, all ways to make a row of it. */
static void compare_all(const made_jpeg *j, int64_t height, int64_t width, keel_scratch *scratch)
{
    for (int channels = j->inks ? 3 : 1; channels <= 3; channels += 2)
        for (int way = 0; way < 3; way++) {
            keel_photo p = { .height = height,
                             .width = width,
                             .channels = channels,
                             .crop = way == 1,
                             .pad = way == 2 };
            const keel_resample r = keel_photo_resample(&p);
            compare(j, &p, scratch);
            p.interpolation = KEEL_BICUBIC;
            compare(j, &p, scratch);
            p.exact = keel_resample_keeps_bytes(&r, j->height, j->width);
            if (p.exact) compare(j, &p, scratch);
            p.exact = true;
            p.interpolation = KEEL_NEAREST;
            compare(j, &p, scratch);
        }
}

static void a_row_has_the_bits_of_the_image_decoded_first(void **state)
{
    static const int sampling[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 } };
    static const int sizes[][2] = { { 1, 1 },   { 7, 9 },    { 16, 16 },  { 17, 33 },
                                    { 40, 31 }, { 150, 64 }, { 61, 200 }, { 90, 120 } };
    static const int rows[][2] = { { 16, 16 }, { 5, 9 }, { 40, 31 }, { 64, 64 } };
    keel_scratch scratch = { 0 };
    (void)state;
    chance_state = 5;
    for (size_t s = 0; s < sizeof sampling / sizeof *sampling; s++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const coding how = (coding)((s + i) % CODINGS);
            made_jpeg j =
                made_jpeg_of(sizes[i][0], sizes[i][1], sampling[s][0], sampling[s][1], false, how);
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
                if (sizes[i][0] > 1) compare_all(&j, rows[k][0], rows[k][1], &scratch);
            const keel_photo same = {
                .height = j.height, .width = j.width, .channels = 3, .exact = true
            };
            compare(&j, &same, &scratch);
            free(j.data);
        }
    for (int i = 0; i < 6; i++) { /* larger than a cache */
        made_jpeg j =
            made_jpeg_of(600 + i, 1200 - 5 * i, 2, 1 + i % 2, false, (coding)(i % CODINGS));
        for (int channels = 1; channels <= 3; channels += 2) {
            keel_photo p = { .height = 50 + 90 * i, .width = 70, .channels = channels };
            p.pad = i == 3;
            compare(&j, &p, &scratch);
        }
        free(j.data);
    }
    for (int i = 0; i < 12; i++) {
        made_jpeg j = made_jpeg_of(40 + (int)(chance() % 200), 40 + (int)(chance() % 200), 2,
                                   1 + i % 2, i == 5, (coding)(i % CODINGS));
        compare_all(&j, 8 + chance() % 60, 8 + chance() % 60, &scratch);
        free(j.data);
    }
    for (int i = 0; i < 12; i++) {
        const int size = i < 6 ? 40 + (int)(chance() % 100) : 700;
        made_jpeg j = made_jpeg_in(i % 2 ? JCS_CMYK : JCS_YCCK, size, size + 9, 1 + i % 2,
                                   1 + i / 2 % 2, (coding)(i % CODINGS));
        compare_all(&j, 8 + chance() % 60, 8 + chance() % 60, &scratch);
        free(j.data);
    }
    keel_scratch_free(&scratch);
}

/* A crop in the middle, of all widths and of the heights that a JPEG of some blocks can have. */
static void a_crop_has_the_bits_of_the_image_cut_afterwards(void **state)
{
    keel_scratch scratch = { 0 };
    (void)state;
    chance_state = 6;
    for (int down = 1; down <= 2; down++) {
        made_jpeg wide = made_jpeg_of(48, 260, 2, down, false, down == 1 ? PROGRESSIVE : PLAIN);
        made_jpeg high = made_jpeg_of(260, 48, 2, down, false, RESTARTS);
        for (int64_t side = 3; side < 250; side += 7) {
            keel_photo p = { .height = 48, .width = side, .channels = 3, .exact = true };
            p.crop = true;
            compare(&wide, &p, &scratch);
            p.height = side;
            p.width = 48;
            compare(&high, &p, &scratch);
            p.exact = false;
            p.height = p.width = 20 + side % 50;
            compare(&wide, &p, &scratch);
            compare(&high, &p, &scratch);
        }
        free(wide.data);
        free(high.data);
    }
    keel_scratch_free(&scratch);
}

static void a_file_that_is_cut_off_is_refused_even_if_the_rest_is_not_needed(void **state)
{
    const keel_photo photos[] = {
        { .height = 20, .width = 60, .channels = 3, .crop = true },
        { .height = 20, .width = 60, .channels = 3, .crop = true, .exact = true },
        { .height = 3, .width = 3, .channels = 1 },
    };
    keel_scratch scratch = { 0 };
    (void)state;
    for (coding how = PLAIN; how < CODINGS; how++) {
        made_jpeg j = made_jpeg_of(200, 60, 2, 2, false, how);
        for (size_t i = 0; i < sizeof photos / sizeof *photos; i++)
            for (unsigned long cut = j.n - 2; cut > j.n / 8; cut -= j.n / 9) {
                keel_data_field field = { 0 };
                float *out = calloc(20 * 60 * 3, sizeof *out);
                keel_photo_field(&photos[i], &field);
                unsigned char *data = malloc(cut);
                memcpy(data, j.data, cut);
                assert_int_equal(keel_photo_read(&photos[i], &field, data, cut, out, field.dtype,
                                                 &scratch, "cut.jpg"),
                                 KEEL_EFORMAT);
                assert_non_null(strstr(keel_error(), "cut.jpg"));
                free(data);
                free(out);
            }
        free(j.data);
    }
    keel_scratch_free(&scratch);
}

/* The decoder's means of 8x8 pixels and bilinear samples are alike in a smooth image. */
static void an_image_that_the_decoder_shrinks_looks_the_same(void **state)
{
    keel_photo p = { .height = 30, .width = 40, .channels = 3 };
    static float plain[30 * 40 * 3], shrunk[30 * 40 * 3];
    keel_scratch scratch = { 0 };
    keel_data_field field = { 0 };
    (void)state;
    chance_state = 7;
    keel_photo_field(&p, &field);
    for (int k = 0; k < 4; k++) {
        made_jpeg j =
            made_jpeg_of(k == 3 ? 31 : 271 + 60 * k, k == 3 ? 41 : 353, 2, 2, false, PLAIN);
        p.pad = k == 1;
        p.crop = k == 2;
        p.shrinks = false;
        assert_int_equal(
            keel_photo_read(&p, &field, j.data, j.n, plain, KEEL_FLOAT32, &scratch, "p"), KEEL_OK);
        p.shrinks = true;
        assert_int_equal(
            keel_photo_read(&p, &field, j.data, j.n, shrunk, KEEL_FLOAT32, &scratch, "s"), KEEL_OK);
        double apart = 0;
        for (int i = 0; i < 30 * 40 * 3; i++) apart += fabs((double)(plain[i] - shrunk[i]));
        apart /= 30 * 40 * 3;
        assert_true(apart < 14);
        if (k == 3) /* it could not be shrunk */
            assert_true(apart == 0);
        else
            assert_true(apart > 0.1);
        free(j.data);
    }
    p.exact = true; /* rows of the image's own size are not shrunk */
    p.crop = p.pad = false;
    keel_photo_field(&p, &field);
    made_jpeg j = made_jpeg_of(30, 40, 2, 2, false, PLAIN);
    compare(&j, &p, &scratch);
    free(j.data);
    keel_scratch_free(&scratch);
}

static void memory_may_run_out_at_any_point(void **state)
{
    const keel_photo p = { .height = 9, .width = 9, .channels = 3, .crop = true };
    static float out[9 * 9 * 3];
    keel_data_field field = { 0 };
    (void)state;
    keel_photo_field(&p, &field);
    made_jpeg j = made_jpeg_of(50, 70, 2, 2, false, PLAIN);
    keel_status s = KEEL_ENOMEM;
    for (int64_t n = 0; s != KEEL_OK; n++) {
        keel_scratch scratch = { 0 };
        keel_memory_fail_at(n);
        s = keel_photo_read(&p, &field, j.data, j.n, out, KEEL_FLOAT32, &scratch, "p");
        keel_memory_fail_at(-1);
        keel_scratch_free(&scratch);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
    }
    free(j.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_the_bits_of_the_image_decoded_first),
        cmocka_unit_test(a_crop_has_the_bits_of_the_image_cut_afterwards),
        cmocka_unit_test(a_file_that_is_cut_off_is_refused_even_if_the_rest_is_not_needed),
        cmocka_unit_test(an_image_that_the_decoder_shrinks_looks_the_same),
        cmocka_unit_test(memory_may_run_out_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
