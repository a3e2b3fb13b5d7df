/* Directories of images, sounds and texts as Keras reads them: pixels of every format,
 * interpolation and aspect, order and labels of files, samples, texts; and what is refused. One
 * long file, since all of it reads the same golden file and the same tree of files. */
#include "data_files.h"
#include "base/memory.h"
#include "data/codecs/wav.h"
#include "data/feed.h"
#include "data/folders.h"
#include "data/resample.h"
#include "golden.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static json_t *golden;

static const json_t *of(const json_t *j, const char *key)
{
    return json_object_get(j, key);
}

static void put(const char *path, const char *group, const char *name)
{
    size_t n;
    const json_t *from = *group ? of(golden, group) : golden;
    unsigned char *data = files_base64(golden_text(from, name), &n);
    files_write(path, data, n);
    free(data);
}

/* Make the folders that a path lies in. */
static void make_folders(const char *path)
{
    char part[256];
    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (access(files_path(part), F_OK)) files_folder(part);
    }
}

static keel_dataset_options options_of(int64_t height, int64_t width)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = height;
    o.width = width;
    return o;
}

/* The first batch of a dataset, of all its rows. */
typedef struct all {
    keel_dataset *d;
    keel_feed *f;
    keel_batch b;
} all;

static void open_all(all *a, const char *spec, const keel_dataset_options *o)
{
    *a = (all){ 0 };
    if (keel_dataset_open(&a->d, spec, o) < 0) fail_msg("%s", keel_error());
    const keel_feed_options fo = { .batch_size = keel_dataset_rows(a->d) };
    assert_int_equal(keel_feed_create(&a->f, a->d, &fo), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(a->f, 0), KEEL_OK);
    if (keel_feed_next(a->f, &a->b) < 0) fail_msg("%s", keel_error());
}

static void close_all(all *a)
{
    keel_feed_release(a->f, &a->b);
    keel_feed_destroy(a->f);
    keel_dataset_destroy(a->d);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void compare_pixels(const json_t *c, const float *out, size_t count)
{
    double sum = 0, weighted = 0;
    const size_t step = (size_t)golden_number(c, "step");
    const json_t *some = of(c, "some");
    for (size_t k = 0; k < count; k++) {
        sum += (double)out[k];
        weighted += (double)out[k] * (double)(k % 97);
    }
    for (size_t k = 0; k < json_array_size(some); k++) {
        const double want = json_number_value(json_array_get(some, k));
        if (fabs((double)out[step * k] - want) > 1e-3)
            fail_msg("%s, channels %g, to %g x %g, method %g %s: element %zu is %g, not %g",
                     golden_text(c, "file"), golden_number(c, "channels"),
                     golden_number(c, "height"), golden_number(c, "width"),
                     golden_number(c, "interpolation"), golden_text(c, "aspect"), step * k,
                     (double)out[step * k], want);
    }
    if (!golden_near(sum, golden_number(c, "sum"), 1e-6) ||
        !golden_near(weighted, golden_number(c, "weighted"), 1e-6))
        fail_msg("%s, method %g: sums differ", golden_text(c, "file"),
                 golden_number(c, "interpolation"));
}

static void pixels_are_those_of_keras_for_every_format_and_method(void **state)
{
    files_begin();
    files_folder("one");
    const json_t *cases = of(golden, "cases");
    int compared = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *name = golden_text(c, "file"), *aspect = golden_text(c, "aspect");
        const int channels = (int)golden_number(c, "channels");
        keel_dataset_options o =
            options_of((int64_t)golden_number(c, "height"), (int64_t)golden_number(c, "width"));
        char path[64];
        all a;
        o.label_mode = KEEL_LABEL_NONE;
        o.interpolation = (keel_interpolation)golden_number(c, "interpolation");
        o.color_mode = channels == 1   ? KEEL_COLOR_GRAYSCALE
                       : channels == 4 ? KEEL_COLOR_RGBA
                                       : KEEL_COLOR_RGB;
        o.crop_to_aspect_ratio = !strcmp(aspect, "crop");
        o.pad_to_aspect_ratio = !strcmp(aspect, "pad");
        snprintf(path, sizeof path, "one/%s", name);
        put(path, "files", name);
        if (json_is_true(of(c, "refused")) && *aspect) { /* as in Keras */
            keel_dataset *d = NULL;
            assert_int_equal(keel_dataset_open(&d, files_path("one"), &o), KEEL_EUNSUP);
            assert_non_null(strstr(keel_error(), "crop_to_aspect_ratio does not go with"));
        } else {
            open_all(&a, files_path("one"), &o);
            const size_t count = (size_t)(o.height * o.width * channels);
            float *x = calloc(count, sizeof *x);
            assert_true(keel_convert(x, KEEL_FLOAT32, a.b.field[0], a.b.spec[0].dtype,
                                     (int64_t)count) == (int64_t)count);
            if (!json_is_true(of(c, "refused")))
                compare_pixels(c, x, count); /* else more than Keras */
            compared += !json_is_true(of(c, "refused"));
            free(x);
            close_all(&a);
        }
        unlink(files_path(path));
    }
    assert_in_range(compared, 180, 400);
    files_end();
}

static void formats_that_lack_gray_or_alpha_are_converted(void **state)
{
    static const char *const names[] = { "bits24.bmp", "palette.gif", "lossless.webp" };
    keel_scratch scratch = { 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n;
        keel_image image;
        unsigned char *data = files_base64(golden_text(of(golden, "files"), names[i]), &n);
        assert_int_equal(keel_image_decode(&image, data, n, 3, &scratch, 1, names[i]), KEEL_OK);
        const size_t count = (size_t)(image.height * image.width);
        unsigned char *rgb = malloc(3 * count);
        memcpy(rgb, image.pixels, 3 * count);
        assert_int_equal(keel_image_decode(&image, data, n, 4, &scratch, 1, names[i]), KEEL_OK);
        for (size_t k = 0; k < count; k++) {
            assert_memory_equal(image.pixels + 4 * k, rgb + 3 * k, 3);
            assert_int_equal(image.pixels[4 * k + 3], 255);
        }
        assert_int_equal(keel_image_decode(&image, data, n, 1, &scratch, 1, names[i]), KEEL_OK);
        keel_image_gray(rgb, count);
        assert_memory_equal(image.pixels, rgb, count);
        free(rgb);
        free(data);
    }
    keel_scratch_free(&scratch);
}

/* Each file cut anywhere, and with any one byte changed, is read or refused, never more. */
static void damaged_images_and_sounds_are_refused_or_read(void **state)
{
    static const char *const names[] = { "bits8.bmp", "bits32.bmp", "part.gif", "interlaced.gif",
                                         "alpha.webp" };
    keel_scratch scratch = { 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n, read = 0;
        keel_image image;
        unsigned char *data = files_base64(golden_text(of(golden, "files"), names[i]), &n);
        const size_t step = n > 600 ? n / 300 : 1;
        for (size_t cut = 0; cut < n; cut += step) {
            unsigned char *part = malloc(cut + 1); /* so that reading behind it is seen */
            int64_t h, w;
            memcpy(part, data, cut);
            part = realloc(part, cut ? cut : 1);
            keel_image_size(part, cut, &h, &w);
            read += keel_image_decode(&image, part, cut, 3, &scratch, 1, "cut") >= 0;
            free(part);
        }
        for (size_t at = 0; at < n; at += step) {
            data[at] ^= 0x55;
            const keel_status s = keel_image_decode(&image, data, n, 4, &scratch, 1, "changed");
            if (s < 0)
                assert_in_set(s, ((uintmax_t[]){ (uintmax_t)KEEL_EFORMAT, (uintmax_t)KEEL_EUNSUP }),
                              2);
            data[at] ^= 0x55;
        }
        assert_in_range(read, 0, strstr(names[i], "gif") ? n : 0);
        free(data);
    }
    keel_scratch_free(&scratch);
}

static void a_kind_of_bmp_or_webp_that_is_not_read_is_named(void **state)
{
    static const struct {
        const char *file, *says;
        int at, value;
    } bad[] = {
        { "bits24.bmp", "16 bits a pixel", 28, 16 },
        { "bits8.bmp", "a compressed BMP", 30, 1 },
        { "bits8.bmp", "palette of colours", 54 + 4 * 7, 99 },
        { "bits8.bmp", "palette of colours", 54 + 4 * 7 + 2, 99 },
        { "bits24.bmp", "OS/2", 14, 12 },
        { "bits24.bmp", "do not fit into", 18, 60 },
        { "alpha.webp", "damaged or truncated", 40, 77 },
    };
    keel_scratch scratch = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n;
        keel_image image;
        unsigned char *data = files_base64(golden_text(of(golden, "files"), bad[i].file), &n);
        data[bad[i].at] = (unsigned char)bad[i].value;
        assert_true(keel_image_decode(&image, data, n, 3, &scratch, 1, "x/y.img") < 0);
        if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "x/y.img"))
            fail_msg("case %zu: %s", i, keel_error());
        free(data);
    }
    keel_scratch_free(&scratch);
}

static void what_cannot_be_padded_is_refused_with_its_size(void **state)
{
    static const unsigned char line[1000] = { 0 };
    keel_image image = { line, 1000, 1, 1 };
    float out[100];
    keel_scratch scratch = { 0 };
    const keel_resample r = { 10, 10, KEEL_BICUBIC, false, true };
    assert_int_equal(keel_resample_floats(&r, &image, out, &scratch, 2), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "1000 x 1 pixels are too narrow"));
    keel_scratch_free(&scratch);
}

/* ---- files and labels ------------------------------------------------------------------------ */

static void make_tree(void)
{
    const json_t *tree = of(golden, "tree"), *links = of(golden, "links");
    for (size_t i = 0; i < json_array_size(tree); i++) {
        const char *path = json_string_value(json_array_get(tree, i));
        make_folders(path);
        put(path, "", "tiny");
    }
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *l = json_array_get(links, i);
        assert_int_equal(symlink(json_string_value(json_array_get(l, 1)),
                                 files_path(json_string_value(json_array_get(l, 0)))),
                         0);
    }
}

static const char **texts_of(const json_t *list, int64_t *n)
{
    const char **t = calloc(json_array_size(list) + 1, sizeof *t);
    *n = (int64_t)json_array_size(list);
    for (int64_t i = 0; i < *n; i++) t[i] = json_string_value(json_array_get(list, (size_t)i));
    return t;
}

static void compare_listing(const json_t *want, const keel_dataset *d, const keel_batch *b,
                            keel_label_mode mode)
{
    const json_t *files = of(want, "files"), *names = of(want, "class_names"),
                 *labels = of(want, "labels");
    const size_t root = strlen(files_path("set/"));
    assert_int_equal(keel_dataset_rows(d), json_array_size(files));
    assert_int_equal(keel_dataset_class_count(d), json_array_size(names));
    for (size_t i = 0; i < json_array_size(files); i++)
        assert_string_equal(keel_dataset_row_name(d, (int64_t)i) + root,
                            json_string_value(json_array_get(files, i)));
    for (size_t i = 0; i < json_array_size(names); i++)
        assert_string_equal(keel_dataset_class_name(d, (int64_t)i),
                            json_string_value(json_array_get(names, i)));
    if (mode == KEEL_LABEL_NONE) assert_int_equal(keel_dataset_y_shape(d).rank, -1);
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const json_t *row = json_array_get(labels, i);
        if (mode == KEEL_LABEL_INT) {
            assert_int_equal(((const int32_t *)b->field[1])[i], json_integer_value(row));
            continue;
        }
        const size_t n = json_array_size(row);
        for (size_t k = 0; k < n; k++)
            assert_true((double)((const float *)b->field[1])[i * n + k] ==
                        json_number_value(json_array_get(row, k)));
    }
}

static void order_labels_and_errors_are_those_of_keras(void **state)
{
    static const char *const says[] = { "4 labels for 14 files",
                                        "class names choose folders",
                                        "class names have no meaning",
                                        "has no folder 'nothing'",
                                        "two folders",
                                        "0 and 1" };
    files_begin();
    make_tree();
    int refused = 0;
    const json_t *listings = of(golden, "listings");
    for (size_t i = 0; i < json_array_size(listings); i++) {
        const json_t *want = json_array_get(listings, i), *args = of(want, "args");
        const json_t *mode = of(args, "label_mode"), *labels = of(args, "labels");
        keel_dataset_options o = options_of(1, 1);
        o.folders = texts_of(of(args, "class_names"), &o.folder_count);
        o.follow_links = json_is_true(of(args, "follow_links"));
        o.label_mode = !mode                                             ? KEEL_LABEL_INT
                       : json_is_null(mode)                              ? KEEL_LABEL_NONE
                       : !strcmp(json_string_value(mode), "categorical") ? KEEL_LABEL_CATEGORICAL
                                                                         : KEEL_LABEL_BINARY;
        int32_t list[32];
        for (size_t k = 0; k < json_array_size(labels); k++)
            list[k] = (int32_t)json_integer_value(json_array_get(labels, k));
        o.labels = json_array_size(labels) ? list : NULL;
        o.label_count = (int64_t)json_array_size(labels);
        if (json_is_true(of(want, "refused"))) {
            keel_dataset *d = NULL;
            assert_true(keel_dataset_open(&d, files_path("set"), &o) < 0);
            assert_in_range(refused, 0, 5);
            if (!strstr(keel_error(), says[refused++])) fail_msg("case %zu: %s", i, keel_error());
        } else {
            all a;
            open_all(&a, files_path("set"), &o);
            compare_listing(want, a.d, &a.b, o.label_mode);
            close_all(&a);
        }
        free((void *)(uintptr_t)o.folders);
    }
    assert_int_equal(refused, 6);
    files_end();
}

static void a_split_has_as_many_rows_as_that_of_keras(void **state)
{
    files_begin();
    make_tree();
    const json_t *splits = of(golden, "splits");
    for (size_t i = 0; i < json_array_size(splits); i++)
        for (int part = 0; part < 2; part++) {
            keel_dataset *d = NULL;
            keel_dataset_options o = options_of(1, 1);
            o.validation_split = json_number_value(json_array_get(json_array_get(splits, i), 0));
            o.subset = part ? KEEL_SUBSET_VALIDATION : KEEL_SUBSET_TRAINING;
            assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
            assert_int_equal(
                keel_dataset_rows(d),
                json_integer_value(json_array_get(json_array_get(splits, i), 1 + (size_t)part)));
            keel_dataset_destroy(d);
        }
    files_end();
}

static void links_that_lead_in_a_circle_are_refused(void **state)
{
    files_begin();
    make_tree();
    keel_dataset_options o = options_of(1, 1);
    keel_dataset *d = NULL;
    assert_int_equal(symlink("../..", files_path("set/a/z/up")), 0);
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK); /* not followed */
    keel_dataset_destroy(d);
    o.follow_links = true;
    o.label_mode = KEEL_LABEL_NONE;
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "a/z/up: a link to a folder that it lies in"));
    unlink(files_path("set/a/z/up"));
    /* folders that double at each level */
    char at[64], to[64];
    files_folder("deep");
    for (int i = 0; i < 24; i++) {
        snprintf(at, sizeof at, "deep/%d", i);
        files_folder(at);
        for (int k = 0; k < 2 && i; k++) {
            snprintf(at, sizeof at, "deep/%d/%d", i - 1, k);
            snprintf(to, sizeof to, "../%d", i);
            assert_int_equal(symlink(to, files_path(at)), 0);
        }
    }
    assert_int_equal(keel_dataset_open(&d, files_path("deep"), &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "more than 262144 folders"));
    files_end();
}

static void labels_in_a_file_are_checked(void **state)
{
    static const struct {
        const char *text, *says;
        keel_status status;
    } files[] = {
        { "0 1 2\n0,1,2\r\n0 1 2 0 1 2 0\t1\n", NULL, KEEL_OK },
        { "\xef\xbb\xbf"
          "0 1 2 0 1 2 0 1 2 0 1 2 0 1\r\n",
          NULL, KEEL_OK },
        { "\xef\xbb", "labels:1:", KEEL_EFORMAT },
        { "0 1 2\n0 1 -2", "labels:2: labels are whole numbers", KEEL_EFORMAT },
        { "0\n1\nx", "labels:3:", KEEL_EFORMAT },
        { "1.5", "whole numbers from 0", KEEL_EFORMAT },
        { "99999999999999999999", "whole numbers from 0", KEEL_EFORMAT },
        { "", "0 labels for 14 files", KEEL_EDATA },
        { "0 1 2 0 1 2 0 1 2 0 1 2 0 1 1", "more labels than the 14 files", KEEL_EDATA },
        { "0 1 2 0 1 2 0 1 2 0 1 2 0 3", "label 3 of file 13 is not from 0 to 2", KEEL_EDATA },
    };
    files_begin();
    make_tree();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        keel_dataset_options o = options_of(1, 1);
        keel_dataset *d = NULL;
        files_text("labels", files[i].text);
        o.labels_path = files_path("labels");
        o.class_count = 3;
        o.label_mode = KEEL_LABEL_CATEGORICAL;
        assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), files[i].status);
        if (files[i].says && !strstr(keel_error(), files[i].says)) fail_msg("%s", keel_error());
        keel_dataset_destroy(d);
    }
    files_end();
}

static void other_files_are_counted_in_a_note(void **state)
{
    files_begin();
    make_tree();
    keel_dataset *d = NULL;
    const keel_dataset_options o = options_of(1, 1);
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
    assert_non_null(keel_dataset_note(d)); /* notes.md and top.png */
    assert_non_null(strstr(keel_dataset_note(d), "2 files are left out: no images (jpg, jpeg"));
    keel_dataset_destroy(d);
    unlink(files_path("set/a/notes.md"));
    unlink(files_path("set/top.png"));
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
    assert_null(keel_dataset_note(d));
    keel_dataset_destroy(d);
    put("set/a/new.webp", "files", "lossless.webp");
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
    assert_non_null(
        strstr(keel_dataset_note(d), "set: 1 webp file is read, which Keras leaves out"));
    keel_dataset_destroy(d);
    files_end();
}

/* ---- sounds and texts ------------------------------------------------------------------------ */

static void make_files(const char *root, const char *group)
{
    const char *name;
    json_t *value;
    char path[128];
    json_object_foreach((json_t *)(uintptr_t)of(golden, group), name, value)
    {
        snprintf(path, sizeof path, "%s/%s", root, name);
        make_folders(path);
        put(path, group, name);
    }
}

static void samples_are_those_of_keras(void **state)
{
    files_begin();
    make_files("wavs", "wavs");
    const json_t *sounds = of(golden, "sounds");
    for (size_t i = 0; i < json_array_size(sounds); i++) {
        const json_t *want = json_array_get(sounds, i), *x = of(want, "x");
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        const keel_shape shape = golden_shape(want, "shape");
        all a;
        o.audio_length = (int64_t)golden_number(want, "length");
        open_all(&a, files_path("wavs"), &o);
        assert_int_equal(a.b.spec[0].shape.dim[0], shape.dim[1]);
        assert_int_equal(a.b.spec[0].shape.dim[1], shape.dim[2]);
        for (size_t k = 0; k < json_array_size(x); k++)
            assert_true((double)((const float *)a.b.field[0])[k] ==
                        json_number_value(json_array_get(x, k)));
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(((const int32_t *)a.b.field[1])[k],
                             json_integer_value(json_array_get(of(want, "y"), k)));
        close_all(&a);
    }
    files_end();
}

/* A WAV file of one frame of two samples. */
static size_t make_wav(unsigned char out[96], int code, int bits, const void *frame)
{
    const unsigned char block = (unsigned char)(bits / 4);
    const unsigned char head[] = { 'R',
                                   'I',
                                   'F',
                                   'F',
                                   0,
                                   0,
                                   0,
                                   0,
                                   'W',
                                   'A',
                                   'V',
                                   'E',
                                   'o',
                                   'd',
                                   'd',
                                   ' ',
                                   3,
                                   0,
                                   0,
                                   0,
                                   1,
                                   2,
                                   3,
                                   0,
                                   'f',
                                   'm',
                                   't',
                                   ' ',
                                   16,
                                   0,
                                   0,
                                   0,
                                   (unsigned char)code,
                                   0,
                                   2,
                                   0,
                                   0x40,
                                   0x1f,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   block,
                                   0,
                                   (unsigned char)bits,
                                   0,
                                   'd',
                                   'a',
                                   't',
                                   'a',
                                   block,
                                   0,
                                   0,
                                   0 };
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, frame, block);
    return sizeof head + block;
}

static void every_width_of_samples_is_read(void **state)
{
    static const float one[] = { 0.25f, -1.5f };
    static const double two[] = { 0.25, -0.5 };
    static const struct {
        int code, bits;
        const void *frame;
        float want[2];
    } cases[] = {
        { 1, 8, "\x80\x00", { 0, -1 } },
        { 1, 16, "\xff\x7f\x00\x80", { 32767.0f / 32768, -1 } },
        { 1, 24, "\xff\xff\xff\x00\x00\x40", { -1.0f / 8388608, 0.5f } },
        { 1, 32, "\x00\x00\x00\x80\x00\x00\x00\x20", { -1, 0.25f } },
        { 3, 32, one, { 0.25f, -1.5f } },
        { 3, 64, two, { 0.25f, -0.5f } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[96];
        keel_wav w;
        float out[2];
        const size_t n = make_wav(file, cases[i].code, cases[i].bits, cases[i].frame);
        for (size_t head = 0; head < n - 32; head++) /* never a wrong answer from the begin alone */
            if (keel_wav_header(&w, file, head, n, "a.wav") == KEEL_OK)
                assert_int_equal(w.frames, 1);
        assert_int_equal(keel_wav_header(&w, file, n, n, "a.wav"), KEEL_OK);
        assert_true(w.frames == 1 && w.channels == 2 && w.rate == 8000);
        assert_int_equal(keel_wav_convert(&w, file + w.at, 1, out, "a.wav"), KEEL_OK);
        assert_memory_equal(out, cases[i].want, sizeof out);
    }
    static const float not_finite[][2] = { { 0, NAN }, { INFINITY, 0 }, { 0, -INFINITY } };
    for (size_t i = 0; i < sizeof not_finite / sizeof *not_finite; i++) {
        unsigned char file[96];
        keel_wav w;
        float out[2];
        const size_t n = make_wav(file, 3, 32, not_finite[i]);
        assert_int_equal(keel_wav_header(&w, file, n, n, "a.wav"), KEEL_OK);
        assert_int_equal(keel_wav_convert(&w, file + w.at, 1, out, "a.wav"), KEEL_EDATA);
        assert_non_null(strstr(keel_error(), "a.wav: frame 0 is not finite"));
    }
}

static void a_sound_that_cannot_be_read_is_named(void **state)
{
    static const struct {
        const char *says;
        int at, value;
        keel_status status;
    } bad[] = {
        { "no WAV file", 0, 'X', KEEL_EFORMAT },
        { "a WAV in mu-law", 32, 7, KEEL_EUNSUP },
        { "of 12 bits", 46, 12, KEEL_EUNSUP },
        { "0 channels", 34, 0, KEEL_EFORMAT },
        { "a frame of 9 bytes", 44, 9, KEEL_EFORMAT },
        { "cut short", 52, 200, KEEL_EFORMAT },
        { "cut short", 28, 250, KEEL_EFORMAT },
        { "before their format", 24, 'x', KEEL_EFORMAT },
        { "only 4 bytes", 28, 4, KEEL_EFORMAT },
    };
    files_begin();
    files_folder("set");
    files_folder("set/a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char file[96];
        keel_dataset *d = NULL;
        const size_t n = make_wav(file, 1, 16, "\1\2\3\4");
        files_write("set/a/0.wav", file, n);
        file[bad[i].at] = (unsigned char)bad[i].value;
        files_write("set/a/1.wav", file, n);
        assert_int_equal(keel_dataset_open(&d, files_path("set"), NULL), bad[i].status);
        if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "a/1.wav"))
            fail_msg("case %zu: %s", i, keel_error());
    }
    unsigned char file[96];
    keel_dataset *d = NULL;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    files_write("set/a/1.wav", file, make_wav(file, 1, 16, "\1\2\3\4"));
    o.sampling_rate = 16000;
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_EUNSUP);
    assert_non_null(
        strstr(keel_error(), "a sampling rate of 8000; Keel does not resample to 16000"));
    const size_t n = make_wav(file, 1, 16, "\1\2\3\4");
    file[34] = 1;
    file[44] = 2;
    files_write("set/a/1.wav", file, n);
    assert_int_equal(keel_dataset_open(&d, files_path("set"), NULL), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "1 channels"));
    files_end();
}

static void texts_are_those_of_keras(void **state)
{
    files_begin();
    make_files("texts", "texts");
    const json_t *read = of(golden, "read");
    for (size_t i = 0; i < json_array_size(read); i++) {
        const json_t *want = json_array_get(read, i), *x = of(want, "x");
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        all a;
        o.max_length = (int64_t)golden_number(want, "max_length");
        open_all(&a, files_path("texts"), &o);
        assert_int_equal(keel_dataset_rows(a.d), json_array_size(x));
        for (size_t k = 0; k < json_array_size(x); k++) {
            size_t n;
            unsigned char *text = files_base64(json_string_value(json_array_get(x, k)), &n);
            const keel_string *s = (const keel_string *)a.b.field[0] + k;
            assert_int_equal(s->n_bytes, n);
            assert_memory_equal(s->data, text, n);
            assert_int_equal(((const int32_t *)a.b.field[1])[k],
                             json_integer_value(json_array_get(of(want, "y"), k)));
            free(text);
        }
        close_all(&a);
    }
    files_end();
}

/* ---- what a directory is --------------------------------------------------------------------- */

static void a_directory_tells_what_it_is_or_is_told(void **state)
{
    files_begin();
    make_files("mixed", "wavs");
    make_files("mixed", "texts");
    put("mixed/a/1.png", "", "tiny");
    keel_dataset *d = NULL;
    char spec[600];
    const keel_dataset_options o = options_of(1, 1);
    assert_int_equal(keel_dataset_open(&d, files_path("mixed"), &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "has 1 images, 3 sounds (wav) and 4 texts (txt)"));
    static const struct {
        const char *kind;
        int64_t rows;
    } kinds[] = { { "images", 1 }, { "audio", 3 }, { "text", 4 } };
    for (size_t i = 0; i < 3; i++) {
        snprintf(spec, sizeof spec, "%s:%s", kinds[i].kind, files_path("mixed"));
        if (keel_dataset_open(&d, spec, &o) < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_rows(d), kinds[i].rows);
        assert_string_equal(keel_dataset_name(d), files_path("mixed"));
        assert_non_null(strstr(keel_dataset_note(d), "files are left out"));
        keel_dataset_destroy(d);
    }
    files_folder("few"); /* a few texts beside images are notes */
    files_folder("few/a");
    put("few/a/1.png", "", "tiny");
    put("few/a/2.png", "", "tiny");
    put("few/a/3.png", "", "tiny");
    files_text("few/a/read me.txt", "text");
    assert_int_equal(keel_dataset_open(&d, files_path("few"), &o), KEEL_OK);
    assert_int_equal(keel_dataset_rows(d), 3);
    keel_dataset_destroy(d);
    files_text("few/a/4.txt", "text");
    assert_int_equal(keel_dataset_open(&d, files_path("few"), &o), KEEL_EDATA);
    files_end();
}

static void every_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    files_begin();
    make_files("wavs", "wavs");
    make_files("texts", "texts");
    make_tree();
    files_text("labels", "0 1 2 0 1 2 0 1 2 0 1 2 0 1");
    static const char *const roots[] = { "set", "set", "wavs", "texts", "set" };
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char root[512], labels[512];
        snprintf(root, sizeof root, "%s", files_path(roots[i]));
        snprintf(labels, sizeof labels, "%s", files_path("labels"));
        keel_dataset_options o = options_of(2, 2);
        static const char *const folders[] = { "c", "a" };
        o.interpolation = KEEL_LANCZOS3;
        if (i == 1) o.labels_path = labels;
        if (i == 4) {
            o.folders = folders;
            o.folder_count = 2;
        }
        const int64_t live = keel_memory_live();
        for (int64_t k = 0;; k++) {
            keel_dataset *d = NULL;
            keel_feed *f = NULL;
            keel_batch b;
            const keel_feed_options fo = { .batch_size = 2, .threads = -1 };
            const int64_t calls = keel_memory_calls();
            keel_memory_fail_at(k);
            keel_status s = keel_dataset_open(&d, root, &o);
            if (s >= 0) s = keel_feed_create(&f, d, &fo);
            if (s >= 0) s = keel_feed_begin_epoch(f, 0);
            if (s >= 0) s = keel_feed_next(f, &b);
            keel_memory_fail_at(-1);
            const bool reached = keel_memory_calls() - calls > k;
            if (s >= 0) keel_feed_release(f, &b);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            if (!reached) {
                assert_in_range(k, 10, 4000);
                assert_int_equal(s, KEEL_OK);
                break;
            }
            /* a source that cannot look at the name does not claim it; another one may */
            if (s < 0) assert_int_equal(s, KEEL_ENOMEM);
        }
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static int begin(void **state)
{
    golden = golden_load("directories.json");
    return 0;
}

static int end(void **state)
{
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_of_keras_for_every_format_and_method),
        cmocka_unit_test(formats_that_lack_gray_or_alpha_are_converted),
        cmocka_unit_test(damaged_images_and_sounds_are_refused_or_read),
        cmocka_unit_test(a_kind_of_bmp_or_webp_that_is_not_read_is_named),
        cmocka_unit_test(what_cannot_be_padded_is_refused_with_its_size),
        cmocka_unit_test(order_labels_and_errors_are_those_of_keras),
        cmocka_unit_test(a_split_has_as_many_rows_as_that_of_keras),
        cmocka_unit_test(links_that_lead_in_a_circle_are_refused),
        cmocka_unit_test(labels_in_a_file_are_checked),
        cmocka_unit_test(other_files_are_counted_in_a_note),
        cmocka_unit_test(samples_are_those_of_keras),
        cmocka_unit_test(every_width_of_samples_is_read),
        cmocka_unit_test(a_sound_that_cannot_be_read_is_named),
        cmocka_unit_test(texts_are_those_of_keras),
        cmocka_unit_test(a_directory_tells_what_it_is_or_is_told),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
