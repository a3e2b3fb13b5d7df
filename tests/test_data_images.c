/* Images as Keras reads them: golden pixels, the order of a class folder, and what is refused. */
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include "data/resize.h"
#include "golden.h"
#include "io/png_write.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static json_t *golden;

static unsigned char *golden_file(const char *name, size_t *n_bytes)
{
    return files_base64(golden_text(json_object_get(golden, "files"), name), n_bytes);
}

static void put_image(const char *path, const char *name, size_t cut)
{
    size_t n;
    unsigned char *data = golden_file(name, &n);
    files_write(path, data, cut ? cut : n);
    free(data);
}

static void pixels_are_those_of_keras(void **state)
{
    keel_scratch scratch = { 0 };
    const json_t *cases = json_object_get(golden, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *name = golden_text(c, "file");
        const int64_t h = (int64_t)golden_number(c, "height"),
                      w = (int64_t)golden_number(c, "width");
        const int channels = (int)golden_number(c, "channels");
        const bool nearest = !strcmp(golden_text(c, "interpolation"), "nearest");
        size_t n;
        unsigned char *data = golden_file(name, &n);
        keel_image image;
        if (keel_image_decode(&image, data, n, channels, &scratch, 0, name) < 0)
            fail_msg("%s", keel_error());
        const size_t count = (size_t)(h * w * channels);
        float *out = calloc(count, sizeof *out);
        if (nearest) {
            unsigned char *bytes = malloc(count);
            keel_resize_nearest(&image, bytes, h, w);
            for (size_t k = 0; k < count; k++) out[k] = bytes[k];
            free(bytes);
        } else {
            assert_int_equal(keel_resize(&image, out, h, w, &scratch, 1), KEEL_OK);
        }
        double sum = 0, weighted = 0;
        for (size_t k = 0; k < count; k++) {
            sum += (double)out[k];
            weighted += (double)out[k] * (double)(k % 97);
        }
        const json_t *some = json_object_get(c, "some");
        for (size_t k = 0; k < json_array_size(some); k++)
            if (!golden_near((double)out[397 * k], json_number_value(json_array_get(some, k)),
                             1e-4))
                fail_msg("%s to %dx%dx%d: element %zu is %g", name, (int)h, (int)w, channels,
                         397 * k, (double)out[397 * k]);
        if (!golden_near(sum, golden_number(c, "sum"), 1e-6) ||
            !golden_near(weighted, golden_number(c, "weighted"), 1e-6))
            fail_msg("%s to %dx%dx%d: sums differ", name, (int)h, (int)w, channels);
        free(out);
        free(data);
    }
    keel_scratch_free(&scratch);
}

static void no_gray_is_made_of_inks(void **state)
{
    keel_scratch scratch = { 0 };
    size_t n;
    keel_image image;
    unsigned char *data = golden_file("cmyk.jpg", &n);
    assert_int_equal(keel_image_decode(&image, data, n, 1, &scratch, 0, "a.jpg"), KEEL_EUNSUP);
    assert_string_equal(keel_error(), "a.jpg: a JPEG in CMYK, of which no gray is made");
    free(data);
    keel_scratch_free(&scratch);
}

static keel_dataset_options options_of(int64_t height, int64_t width)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = height;
    o.width = width;
    return o;
}

/* Three classes, six images; folders below a class, links and other files. */
static const char *make_set(void)
{
    files_folder("set");
    files_folder("set/b");
    files_folder("set/a");
    files_folder("set/c c");
    files_folder("set/a/z");
    files_folder("set/.hidden");
    put_image("set/a/2.JPG", "photo.jpg", 0);
    put_image("set/a/10.jpg", "gray.jpg", 0);
    put_image("set/a/z/1.png", "rgb.png", 0);
    put_image("set/b/1.jpeg", "progressive.jpg", 0);
    put_image("set/b/0.png", "palette.png", 0);
    put_image("set/c c/5.png", "gray.png", 0);
    files_text("set/a/notes.txt", "not an image");
    files_text("set/readme.md", "not a class");
    put_image("set/.hidden/1.jpg", "photo.jpg", 0);
    assert_int_equal(symlink("..", files_path("set/a/loop")), 0);
    return files_path("set");
}

static void classes_and_rows_are_sorted_as_keras_sorts_them(void **state)
{
    files_begin();
    static const char *const want[] = { "a/10.jpg", "a/2.JPG",  "a/z/1.png",
                                        "b/0.png",  "b/1.jpeg", "c c/5.png" };
    static const int label[] = { 0, 0, 0, 1, 1, 2 };
    keel_dataset *d = NULL;
    const keel_dataset_options o = options_of(8, 9);
    if (keel_dataset_open(&d, make_set(), &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_rows(d), 6);
    assert_int_equal(keel_dataset_class_count(d), 3);
    assert_string_equal(keel_dataset_class_name(d, 2), "c c");
    assert_null(keel_dataset_class_name(d, 3));
    assert_int_equal(keel_dataset_x_shape(d).dim[1], 9);
    assert_int_equal(keel_dataset_y_shape(d).rank, 0);
    keel_feed *f = NULL;
    keel_batch b;
    const keel_feed_options fo = { .batch_size = 6 };
    assert_int_equal(keel_feed_create(&f, d, &fo), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    if (keel_feed_next(f, &b) < 0) fail_msg("%s", keel_error());
    for (int i = 0; i < 6; i++) {
        const char *name = keel_dataset_row_name(d, i);
        assert_string_equal(name + strlen(files_path("set/")), want[i]);
        assert_true(((const int32_t *)b.field[1])[i] == label[i]);
    }
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    files_end();
}

static void labels_can_be_one_hot_binary_or_absent(void **state)
{
    files_begin();
    const char *root = make_set();
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    keel_dataset_options o = options_of(4, 4);
    const keel_feed_options fo = { .batch_size = 4, .real = KEEL_FLOAT64 };
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    o.color_mode = KEEL_COLOR_GRAYSCALE;
    assert_int_equal(keel_dataset_from_image_directory(&d, root, &o), KEEL_OK);
    assert_int_equal(keel_dataset_x_shape(d).dim[2], 1);
    assert_int_equal(keel_dataset_y_shape(d).dim[0], 3);
    assert_int_equal(keel_feed_create(&f, d, &fo), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    static const double hot[] = { 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0 };
    assert_memory_equal(b.field[1], hot, sizeof hot);
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    o.label_mode = KEEL_LABEL_BINARY;
    assert_int_equal(keel_dataset_from_image_directory(&d, root, &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "two folders"));
    o.label_mode = KEEL_LABEL_NONE;
    assert_int_equal(keel_dataset_from_image_directory(&d, root, &o), KEEL_OK);
    assert_int_equal(keel_dataset_y_shape(d).rank, -1);
    keel_dataset_destroy(d);
    files_end();
}

static void a_split_of_folders_is_shuffled_by_the_seed_and_disjoint(void **state)
{
    files_begin();
    files_folder("many");
    for (int c = 0; c < 2; c++) {
        files_folder(c ? "many/dog" : "many/cat");
        for (int i = 0; i < 20; i++) {
            char name[64];
            snprintf(name, sizeof name, "many/%s/%02d.jpg", c ? "dog" : "cat", i);
            put_image(name, "gray.jpg", 0);
        }
    }
    keel_dataset *t = NULL, *v = NULL, *other = NULL;
    keel_dataset_options o = options_of(4, 4);
    o.validation_split = 0.25;
    o.seed = 7;
    o.subset = KEEL_SUBSET_TRAINING;
    assert_int_equal(keel_dataset_from_image_directory(&t, files_path("many"), &o), KEEL_OK);
    o.subset = KEEL_SUBSET_VALIDATION;
    assert_int_equal(keel_dataset_from_image_directory(&v, files_path("many"), &o), KEEL_OK);
    o.seed = 8;
    assert_int_equal(keel_dataset_from_image_directory(&other, files_path("many"), &o), KEEL_OK);
    assert_int_equal(keel_dataset_rows(t), 30);
    assert_int_equal(keel_dataset_rows(v), 10);
    int cats = 0, same = 0;
    for (int i = 0; i < 10; i++) {
        const char *name = keel_dataset_row_name(v, i);
        cats += strstr(name, "/cat/") != NULL;
        same += !strcmp(name, keel_dataset_row_name(other, i));
        for (int k = 0; k < 30; k++) assert_string_not_equal(name, keel_dataset_row_name(t, k));
    }
    assert_in_range(cats, 1, 9); /* both classes are in both parts */
    assert_in_range(same, 0, 9); /* another seed, another part */
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
    keel_dataset_destroy(other);
    files_end();
}

static void a_file_tells_its_size_without_being_decoded(void **state)
{
    static const struct {
        const char *name;
        int64_t height, width;
    } files[] = { { "photo.jpg", 37, 53 }, { "full_chroma.jpg", 37, 53 },
                  { "gray.jpg", 37, 53 },  { "progressive.jpg", 37, 53 },
                  { "rgb.png", 20, 20 },   { "deep.png", 20, 20 },
                  { "bits.png", 37, 53 },  { "palette.png", 37, 53 } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int64_t h = 0, w = 0;
        size_t n, least = 0;
        unsigned char *data = golden_file(files[i].name, &n);
        assert_true(keel_image_size(data, n, &h, &w));
        if (h != files[i].height || w != files[i].width)
            fail_msg("%s: %d x %d", files[i].name, (int)h, (int)w);
        /* cut anywhere, the answer is the same or none */
        while (!keel_image_size(data, least, &h, &w)) least++;
        assert_in_range(least, 20, n - 1);
        for (size_t k = least; k < n; k++) {
            unsigned char *part = malloc(k); /* so that reading behind it is seen */
            memcpy(part, data, k);
            assert_true(keel_image_size(part, k, &h, &w));
            assert_true(h == files[i].height && w == files[i].width);
            free(part);
        }
        free(data);
    }
}

/* All rows of a folder in one batch, as whoever asks for float64 gets them. */
static double *all_rows(const char *folder, const keel_dataset_options *o, keel_dtype own)
{
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    if (keel_dataset_from_image_directory(&d, folder, o) < 0) fail_msg("%s", keel_error());
    const int64_t rows = keel_dataset_rows(d), each = o->height * o->width * 3;
    assert_int_equal(d->origin->spec.field[0].dtype, own);
    double *out = malloc((size_t)(rows * each) * sizeof *out);
    static const keel_dtype types[] = { KEEL_FLOAT64, KEEL_FLOAT32, KEEL_UINT8 };
    for (size_t t = 0; t < (own == KEEL_UINT8 ? 3u : 2u); t++) {
        const keel_dtype want[] = { types[t], KEEL_INT32 };
        const keel_feed_options fo = { .batch_size = rows, .want = want };
        assert_int_equal(keel_feed_create(&f, d, &fo), KEEL_OK);
        assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
        if (keel_feed_next(f, &b) < 0) fail_msg("%s", keel_error());
        for (int64_t i = 0; i < rows * each; i++) {
            const double v = types[t] == KEEL_UINT8     ? ((const uint8_t *)b.field[0])[i]
                             : types[t] == KEEL_FLOAT32 ? (double)((const float *)b.field[0])[i]
                                                        : ((const double *)b.field[0])[i];
            if (t == 0)
                out[i] = v;
            else if (out[i] != v && (own == KEEL_UINT8 || out[i] != (double)(float)v))
                fail_msg("%s: value %d is %g in another type", folder, (int)i, v);
        }
        keel_feed_release(f, &b);
        keel_feed_destroy(f);
    }
    keel_dataset_destroy(d);
    return out;
}

static void pixels_stay_bytes_where_that_is_exact_for_all_files(void **state)
{
    files_begin();
    files_folder("same");
    files_folder("same/a");
    files_folder("mixed");
    files_folder("mixed/a");
    static const char *const names[] = { "0.jpg", "1.jpg", "2.png", "3.png" };
    static const char *const images[] = { "photo.jpg", "progressive.jpg", "bits.png",
                                          "palette.png" };
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "same/a/%s", names[i]);
        put_image(path, images[i], 0);
        snprintf(path, sizeof path, "mixed/a/%s", names[i]);
        put_image(path, images[i], 0);
    }
    put_image("mixed/a/9.png", "rgb.png", 0); /* 20 x 20: the last row alone needs a resize */
    keel_dataset_options o = options_of(37, 53);
    const size_t count = (size_t)4 * 37 * 53 * 3;
    double *same = all_rows(files_path("same"), &o, KEEL_UINT8);
    double *mixed = all_rows(files_path("mixed"), &o, KEEL_FLOAT32);
    assert_memory_equal(same, mixed, count * sizeof *same);
    o.interpolation = KEEL_NEAREST;
    double *near = all_rows(files_path("mixed"), &o, KEEL_UINT8);
    assert_memory_equal(same, near, count * sizeof *same);
    free(same);
    free(mixed);
    free(near);
    files_end();
}

static void an_image_that_changes_its_size_after_the_choice_is_refused(void **state)
{
    files_begin();
    files_folder("set");
    files_folder("set/a");
    put_image("set/a/0.jpg", "photo.jpg", 0);
    put_image("set/a/1.jpg", "photo.jpg", 0);
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    const keel_dataset_options o = options_of(37, 53);
    assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
    put_image("set/a/1.jpg", "rgb.png", 0);
    assert_int_equal(keel_feed_create(&f, d, &(keel_feed_options){ .batch_size = 2 }), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "20 x 20 pixels, but 37 x 53 when the directory"));
    assert_non_null(strstr(keel_error(), "set/a/1.jpg"));
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    files_end();
}

static void a_bad_file_is_named_and_what_is_wrong_with_it(void **state)
{
    static const struct {
        const char *image, *text; /* which file, or what is in it */
        size_t cut;
        const char *says;
    } bad[] = {
        { "photo.jpg", NULL, 900, "remature end" },
        { "progressive.jpg", NULL, 700, "remature end" },
        { "photo.jpg", NULL, 10, "JPEG" },
        { "rgb.png", NULL, 300, "PNG" },
        { "rgb.png", NULL, 20, "PNG" },
        { NULL, "", 0, "empty" },
        { NULL, "hello, I am a text", 0, "but text" },
        { NULL, "GIF89a\1\2\3\4", 0, "GIF" },
        { NULL, "\1\2\3\4\5\6\7", 0, "no image (jpg, jpeg, png, bmp, gif, webp);" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int threads = -1; threads <= 2; threads += 3) {
            files_begin();
            files_folder("set");
            files_folder("set/a");
            put_image("set/a/0.jpg", "photo.jpg", 0);
            put_image("set/a/1.jpg", "gray.jpg", 0);
            put_image("set/a/2.jpg", "gray.jpg", 0);
            put_image("set/a/3.jpg", "gray.jpg", 0);
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_feed *f = NULL;
            keel_batch b;
            const keel_dataset_options o = options_of(5, 5);
            const keel_feed_options fo = { .batch_size = 2, .threads = threads };
            assert_int_equal(keel_dataset_open(&d, files_path("set"), &o), KEEL_OK);
            if (bad[i].image) /* it goes bad after it was looked at */
                put_image("set/a/2.jpg", bad[i].image, bad[i].cut);
            else
                files_text("set/a/2.jpg", bad[i].text);
            files_text("set/a/3.jpg", "also bad, but later");
            keel_dataset *reopened = NULL;
            assert_true(keel_dataset_open(&reopened, files_path("set"), &o) < 0);
            if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "set/a/2.jpg"))
                fail_msg("case %zu: %s", i, keel_error());
            assert_int_equal(keel_feed_create(&f, d, &fo), KEEL_OK);
            assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
            assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
            keel_feed_release(f, &b);
            for (int again = 0; again < 3; again++) {
                assert_true(keel_feed_next(f, &b) < 0);
                if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "set/a/2.jpg") ||
                    !strstr(keel_error(), "step 2 of epoch 1, row 2"))
                    fail_msg("case %zu: %s", i, keel_error());
            }
            /* put right, the same step goes on */
            put_image("set/a/2.jpg", "gray.jpg", 0);
            put_image("set/a/3.jpg", "gray.jpg", 0);
            assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
            assert_int_equal(b.step, 1);
            keel_feed_release(f, &b);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            files_end();
        }
}

static void a_flat_folder_serves_without_labels(void **state)
{
    files_begin();
    files_folder("flat");
    put_image("flat/b.jpg", "photo.jpg", 0);
    put_image("flat/a.png", "rgb.png", 0);
    files_folder("flat/0");
    put_image("flat/0/z.jpg", "gray.jpg", 0);
    files_text("flat/notes.txt", "no image");
    keel_dataset_options o = options_of(5, 5);
    o.label_mode = KEEL_LABEL_NONE;
    keel_dataset *d = NULL;
    if (keel_dataset_open(&d, files_path("flat"), &o) < 0) fail_msg("%s", keel_error());
    static const char *const want[] = { "a.png", "b.jpg", "0/z.jpg" };
    assert_int_equal(keel_dataset_rows(d), 3);
    assert_int_equal(keel_dataset_class_count(d), 0);
    assert_int_equal(keel_dataset_y_shape(d).rank, -1);
    for (int i = 0; i < 3; i++)
        assert_string_equal(keel_dataset_row_name(d, i) + strlen(files_path("flat/")), want[i]);
    keel_dataset_destroy(d);
    files_end();
}

static void folders_get_the_numbers_of_a_models_classes(void **state)
{
    static const char *const names[] = { "c c", "x", "b", "a" };
    files_begin();
    const char *root = make_set();
    keel_dataset_options o = options_of(4, 4);
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    o.class_names = names;
    o.class_name_count = 4;
    if (keel_dataset_from_image_directory(&d, root, &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_class_count(d), 4);
    assert_string_equal(keel_dataset_class_name(d, 1), "x");
    assert_int_equal(keel_feed_create(&f, d, &(keel_feed_options){ .batch_size = 6 }), KEEL_OK);
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    assert_int_equal(keel_feed_next(f, &b), KEEL_OK);
    for (int i = 0; i < 6; i++) {
        const char *folder = keel_dataset_row_name(d, i) + strlen(root) + 1;
        const char *name = names[((const int32_t *)b.field[1])[i]];
        assert_int_equal(strncmp(folder, name, strlen(name)), 0);
    }
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    d = NULL;
    o.class_name_count = 3; /* without "a" */
    const int64_t live = keel_memory_live();
    assert_int_equal(keel_dataset_from_image_directory(&d, root, &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "'a' is not one of the model's classes: c c, x, b"));
    assert_int_equal(keel_memory_live(), live);
    files_end();
}

static void a_folder_that_cannot_serve_is_refused_when_it_is_opened(void **state)
{
    files_begin();
    files_folder("empty");
    files_folder("flat");
    put_image("flat/1.jpg", "photo.jpg", 0);
    files_folder("bare");
    files_folder("bare/a");
    files_text("bare/a/notes.txt", "no image");
    const struct {
        const char *name, *says;
        keel_status status;
    } bad[] = { { "missing", "No such file", KEEL_EIO },
                { "empty", "no folders", KEEL_EDATA },
                { "flat", "folder of its own", KEEL_EDATA },
                { "bare", "no images", KEEL_EDATA } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const keel_dataset_options o = options_of(5, 5);
        keel_dataset *d = NULL;
        assert_int_equal(keel_dataset_from_image_directory(&d, files_path(bad[i].name), &o),
                         bad[i].status);
        assert_null(d);
        if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), bad[i].name))
            fail_msg("%s", keel_error());
    }
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_image_directory(&d, files_path("flat"), NULL), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "height"));
    files_end();
}

static int begin(void **state)
{
    golden = golden_load("images.json");
    return 0;
}

static int end(void **state)
{
    json_decref(golden);
    return 0;
}

static void an_image_that_is_written_reads_as_itself(void **state)
{
    static const int channels[] = { 1, 3, 4 };
    unsigned char pixel[5 * 7 * 4];
    keel_scratch scratch = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof pixel; i++) pixel[i] = (unsigned char)(i * 37 + 11);
    for (size_t k = 0; k < 3; k++) {
        void *file = NULL;
        size_t n;
        keel_image image;
        assert_int_equal(keel_png_write(&file, &n, pixel, 5, 7, channels[k]), KEEL_OK);
        const int read = channels[k] == 1 ? 1 : 3;
        assert_int_equal(keel_image_decode(&image, file, n, read, &scratch, 0, "written"), KEEL_OK);
        assert_true(image.height == 5 && image.width == 7);
        for (int i = 0; i < 5 * 7 * read; i++)
            assert_int_equal(image.pixels[i], pixel[i / read * channels[k] + i % read]);
        keel_free(file);
    }
    void *none = NULL;
    size_t n;
    assert_int_equal(keel_png_write(&none, &n, pixel, 5, 7, 2), KEEL_EARG);
    assert_int_equal(keel_png_write(&none, &n, pixel, 0, 7, 1), KEEL_EARG);
    assert_int_equal(keel_png_write(&none, &n, pixel, 65535, 65535, 4), KEEL_EARG);
    assert_null(none);
    keel_scratch_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_that_is_written_reads_as_itself),
        cmocka_unit_test(pixels_are_those_of_keras),
        cmocka_unit_test(no_gray_is_made_of_inks),
        cmocka_unit_test(classes_and_rows_are_sorted_as_keras_sorts_them),
        cmocka_unit_test(labels_can_be_one_hot_binary_or_absent),
        cmocka_unit_test(a_split_of_folders_is_shuffled_by_the_seed_and_disjoint),
        cmocka_unit_test(a_file_tells_its_size_without_being_decoded),
        cmocka_unit_test(pixels_stay_bytes_where_that_is_exact_for_all_files),
        cmocka_unit_test(an_image_that_changes_its_size_after_the_choice_is_refused),
        cmocka_unit_test(a_bad_file_is_named_and_what_is_wrong_with_it),
        cmocka_unit_test(a_flat_folder_serves_without_labels),
        cmocka_unit_test(folders_get_the_numbers_of_a_models_classes),
        cmocka_unit_test(a_folder_that_cannot_serve_is_refused_when_it_is_opened),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
