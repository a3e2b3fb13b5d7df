/* TFRecord files and tar shards as datasets: rows, types, shapes and names as TensorFlow and
 * WebDataset read them, and what is refused. */
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include "golden.h"
#include "io/npy.h"
#include "must.h"
#include "record_files.h"
#include "tensor/shape.h"
#include <sys/resource.h>

#define COUNT(list) (sizeof list / sizeof *list)

static json_t *golden;

/* Write a golden file into the test's folder. */
static const char *give(const char *name, const char *as)
{
    size_t n;
    unsigned char *data = files_base64(golden_text(json_object_get(golden, "files"), name), &n);
    const char *path = files_write(as, data, n);
    free(data);
    return path;
}

/* A list of words for options; ends with NULL. */
typedef const char *words[4];

static int count_of(const words list)
{
    int n = 0;
    while (list[n]) n++;
    return n;
}

/* Field `field` of all rows: numbers as float64 or, with `texts`, keel_strings. The caller frees
 * it; *n: elements, of padded rows. */
static keel_status read_field(const keel_dataset *d, int field, bool texts, void **out, size_t *n)
{
    keel_dtype want[KEEL_FIELDS_MAX];
    for (int i = 0; i < KEEL_FIELDS_MAX; i++)
        want[i] = texts && i == field ? KEEL_STRING : KEEL_FLOAT64;
    const keel_feed_options o = { .real = KEEL_FLOAT64,
                                  .want = want,
                                  .unwanted = ~(UINT64_C(1) << field),
                                  .batch_size = keel_dataset_rows(d),
                                  .threads = 2 };
    keel_feed *f = NULL;
    keel_batch b;
    keel_status s = keel_feed_create(&f, d, &o);
    if (s >= 0) s = keel_feed_begin_epoch(f, 0);
    if (s >= 0) s = keel_feed_next(f, &b);
    if (s >= 0) {
        const size_t size = texts ? sizeof(keel_string) : sizeof(double);
        *n = (size_t)(b.rows * keel_shape_count(&b.spec[field].shape));
        *out = malloc(*n * size + 1);
        memcpy(*out, b.field[field], *n * size);
        keel_feed_release(f, &b);
    }
    keel_feed_destroy(f);
    return s;
}

static void check_field(const keel_dataset *d, int field, const char *key, double tolerance,
                        size_t step)
{
    const json_t *want = json_object_get(json_object_get(golden, "rows"), key);
    double *got = NULL;
    size_t n;
    must(read_field(d, field, false, (void **)&got, &n));
    assert_true(json_array_size(want) > 0 && json_array_size(want) <= n);
    const size_t each = n / (size_t)keel_dataset_rows(d); /* every step-th of each row */
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (i % each % step) continue;
        const json_t *v = json_array_get(want, k++);
        const double is =
            json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
        if (!(fabs(got[i] - is) <= tolerance))
            fail_msg("%s[%zu] is %g, not %g", key, i, got[i], is);
    }
    assert_int_equal(k, json_array_size(want));
    free(got);
}

static void check_texts(const keel_dataset *d, int field, const char *key)
{
    const json_t *want = json_object_get(json_object_get(golden, "rows"), key);
    keel_string *got = NULL;
    size_t n;
    must(read_field(d, field, true, (void **)&got, &n));
    assert_int_equal(n, json_array_size(want));
    for (size_t i = 0; i < n; i++) {
        const char *is = json_string_value(json_array_get(want, i));
        if (strlen(is) != (size_t)got[i].n_bytes || memcmp(is, got[i].data, strlen(is)))
            fail_msg("%s[%zu] is %.*s", key, i, (int)got[i].n_bytes, got[i].data);
    }
    free(got);
}

static keel_dataset_options options(const words inputs, const words targets, const words features)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.inputs = inputs;
    o.n_input = count_of(inputs);
    o.targets = targets;
    o.n_target = count_of(targets);
    o.features = features;
    o.n_feature = count_of(features);
    return o;
}

/* ---- TFRecord -------------------------------------------------------------------------------- */

static void features_have_the_values_that_tensorflow_reads(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        words inputs, features;
        keel_dtype dtype;
        const char *shape, *key;
    } cases[] = {
        { "numbers.tfrecord", { "x" }, { 0 }, KEEL_FLOAT32, "(4,)", "x" },
        { "numbers.tfrecord", { 0 }, { 0 }, KEEL_FLOAT32, "(4,)", "x" },
        { "numbers.tfrecord", { "a=x" }, { "x=(2,2)" }, KEEL_FLOAT32, "(2, 2)", "x" },
        { "numbers.tfrecord", { "a=raw" }, { "raw=uint8(2,3)" }, KEEL_UINT8, "(2, 3)", "raw" },
        { "numbers.tfrecord", { "a=raw" }, { "raw=uint8" }, KEEL_UINT8, "(6,)", "raw" },
        { "numbers.tfrecord",
          { "a=halves" },
          { "halves=float64" },
          KEEL_FLOAT64,
          "(2,)",
          "halves" },
        { "numbers.tfrecord", { "big" }, { 0 }, KEEL_INT64, "(3,)", "big" },
        { "numbers.tfrecord", { "tokens" }, { 0 }, KEEL_INT64, "(None,)", "tokens" },
        { "numbers.tfrecord", { "y" }, { "y=int64(None)" }, KEEL_INT64, "(None,)", "y" },
        { "numbers.tfrecord.gz", { "x" }, { 0 }, KEEL_FLOAT32, "(4,)", "x" },
        { "zlib.tfrecord", { "a=raw" }, { "raw=uint8(6)" }, KEEL_UINT8, "(6,)", "raw" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char shape[96];
        keel_dataset *d = NULL;
        keel_data_field f;
        const keel_dataset_options o =
            options(cases[i].inputs, (words){ "label=y" }, cases[i].features);
        must(keel_dataset_open(&d, give(cases[i].file, "a.tfrecord"), &o));
        assert_int_equal(keel_dataset_rows(d), 6);
        must(keel_dataset_field(d, 0, &f));
        keel_shape_text(shape, &f.shape);
        if (strcmp(shape, cases[i].shape) || f.dtype != cases[i].dtype)
            fail_msg("case %zu: %s of type %d", i, shape, f.dtype);
        check_field(d, 0, cases[i].key, 0, 1);
        check_field(d, 1, "y", 0, 1);
        assert_true(keel_dataset_has_weight(d));
        check_field(d, 2, "sample_weight", 0, 1);
        keel_dataset_destroy(d);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void texts_are_inputs_and_labels(void **state)
{
    (void)state;
    files_begin();
    keel_dataset *d = NULL;
    double *y = NULL;
    size_t n;
    const keel_dataset_options o = options((words){ "word" }, (words){ "y=label" }, (words){ 0 });
    must(keel_dataset_open(&d, give("numbers.tfrecord", "a.tfrecord"), &o));
    assert_int_equal(keel_dataset_x_dtype(d), KEEL_STRING);
    check_texts(d, 0, "word");
    assert_int_equal(keel_dataset_class_count(d), 2);
    assert_string_equal(keel_dataset_class_name(d, 1), "dog");
    must(read_field(d, 1, false, (void **)&y, &n));
    for (size_t i = 0; i < 6; i++) assert_true(y[i] == (double)(i % 2));
    free(y);
    keel_dataset_destroy(d);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void labels_are_classes_where_the_model_has_classes(void **state)
{
    (void)state;
    keel_dataset *d = NULL;
    double *y = NULL;
    size_t n;
    files_begin();
    const char *path = give("numbers.tfrecord", "a.tfrecord");
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    for (int given = 0; given < 2; given++) { /* counted, or given */
        o.label_mode = KEEL_LABEL_CATEGORICAL;
        o.class_count = given ? 4 : 0;
        must(keel_dataset_open(&d, path, &o));
        const int64_t classes = keel_dataset_y_shape(d).dim[0];
        assert_int_equal(classes, given ? 4 : 3);
        must(read_field(d, 1, false, (void **)&y, &n));
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < classes; k++) assert_true(y[i * classes + k] == (i % 3 == k));
        free(y);
        keel_dataset_destroy(d);
    }
    o.label_mode = KEEL_LABEL_INT;
    o.class_count = 2; /* there is a label 2 */
    must(keel_dataset_open(&d, path, &o));
    assert_int_equal(read_field(d, 1, false, (void **)&y, &n), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "label 2 is not a class"));
    assert_non_null(strstr(keel_error(), "record 2 at byte"));
    keel_dataset_destroy(d);
    o.label_mode = KEEL_LABEL_NONE;
    must(keel_dataset_open(&d, path, &o));
    assert_int_equal(keel_dataset_field_count(d), 1);
    keel_dataset_destroy(d);
    files_end();
}

static void images_are_decoded_and_resized_as_by_tensorflow(void **state)
{
    (void)state;
    static const struct {
        int64_t height, width;
        const char *key;
        keel_dtype dtype;
    } cases[] = {
        { 14, 18, "images_same", KEEL_UINT8 },
        { 7, 10, "images_small", KEEL_FLOAT32 },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        keel_dataset *d = NULL;
        keel_dataset_options o = options((words){ "x=image" }, (words){ "y=label" }, (words){ 0 });
        o.height = cases[i].height;
        o.width = cases[i].width;
        must(keel_dataset_open(&d, give("images.tfrecord", "a.tfrecord"), &o));
        assert_int_equal(keel_dataset_x_dtype(d), cases[i].dtype);
        check_field(d, 0, cases[i].key, 1e-3, 17);
        keel_dataset_destroy(d);
        o.height = 0;
        assert_int_equal(keel_dataset_open(&d, files_path("a.tfrecord"), &o), KEEL_EARG);
        assert_non_null(strstr(keel_error(), "height and width"));
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void rows_go_on_over_the_files_of_a_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int64_t rows;
    } cases[] = {
        { "shards", 12 },
        { "shards/*.tfrecord-*", 12 },
        { "shards/a.tfrecord-{0..1}-of-2", 12 },
        { "shards/{a,a}.tfrecord-0-of-2", 12 },
        { "shards/a.tfrecord-1-of-2", 6 },
    };
    files_begin();
    files_folder("shards");
    give("numbers.tfrecord", "shards/a.tfrecord-0-of-2");
    give("numbers.tfrecord.gz", "shards/a.tfrecord-1-of-2");
    for (size_t i = 0; i < COUNT(cases); i++) {
        keel_dataset *d = NULL;
        keel_dataset_options o = options((words){ "x" }, (words){ 0 }, (words){ 0 });
        double *x;
        size_t n;
        must(keel_dataset_open(&d, files_path(cases[i].spec), &o));
        assert_int_equal(keel_dataset_rows(d), cases[i].rows);
        must(read_field(d, 0, false, (void **)&x, &n));
        const json_t *want = json_object_get(json_object_get(golden, "rows"), "x");
        for (size_t k = 0; k < n; k++)
            assert_true(x[k] == json_number_value(json_array_get(want, k % 24)));
        free(x);
        keel_dataset_destroy(d);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static record_bytes plain_example(int n_x, int y)
{
    record_bytes f = { 0 }, list = { 0 };
    unsigned char integer[] = { 0x08, (unsigned char)y };
    record_le(&list, 0x0a, 1);
    record_le(&list, (uint64_t)(4 * n_x), 1);
    for (int i = 0; i < n_x; i++) record_le(&list, 0x3f800000, 4);
    record_entry(&f, "x", 2, list.at, list.n);
    record_entry(&f, "y", 3, integer, 2);
    free(list.at);
    return record_example(f);
}

/* More shards than stay open: the others are opened with each of their rows. */
static void a_thousand_shards_need_no_thousand_descriptors(void **state)
{
    (void)state;
    enum { SHARDS = 600 };
    struct rlimit limit, few;
    char name[64];
    double *y;
    size_t n;
    record_bytes b = { 0 };
    files_begin();
    files_folder("many");
    for (int i = 0; i < SHARDS; i++) {
        record_bytes e = plain_example(2, i % 100);
        b.n = 0;
        record_put(&b, e.at, e.n);
        snprintf(name, sizeof name, "many/s.tfrecord-%05d", i);
        files_write(name, b.at, b.n);
        free(e.at);
    }
    free(b.at);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = 300;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    keel_dataset *d = NULL;
    must(keel_dataset_open(&d, files_path("many"), NULL));
    assert_int_equal(keel_dataset_rows(d), SHARDS);
    must(read_field(d, 1, false, (void **)&y, &n));
    for (int i = 0; i < SHARDS; i++) assert_true(y[i] == i % 100);
    free(y);
    keel_dataset_destroy(d);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void weights_must_be_finite_and_not_negative(void **state)
{
    (void)state;
    static const float weights[] = { 0.5f, -1, INFINITY, NAN };
    files_begin();
    for (size_t i = 0; i < COUNT(weights); i++) {
        record_bytes f = { 0 }, b = { 0 };
        unsigned char list[6] = { 0x0a, 4 };
        memcpy(list + 2, &weights[i], 4);
        record_entry(&f, "x", 2, list, 6);
        record_entry(&f, "y", 2, "\x0a\4\0\0\0\0", 6);
        record_entry(&f, "sample_weight", 2, list, 6);
        record_bytes e = record_example(f);
        record_put(&b, e.at, e.n);
        keel_dataset *d = NULL;
        void *w = NULL;
        size_t n;
        must(keel_dataset_open(&d, files_write("a.tfrecord", b.at, b.n), NULL));
        assert_int_equal(read_field(d, 2, false, &w, &n), i ? KEEL_EDATA : KEEL_OK);
        if (i) assert_non_null(strstr(keel_error(), "the weight of row 0"));
        free(w);
        keel_dataset_destroy(d);
        free(b.at);
        free(e.at);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void weights_are_those_of_the_target_that_is_named(void **state)
{
    (void)state;
    files_begin();
    keel_dataset *d = NULL;
    keel_data_field f;
    keel_dataset_options o = options((words){ "in=x" }, (words){ "label=y" }, (words){ 0 });
    static const char *const weights[] = { "label=sample_weight" }, *const none[] = { "z=big" };
    o.sample_weights = weights;
    o.n_sample_weight = 1;
    must(keel_dataset_open(&d, give("numbers.tfrecord", "a.tfrecord"), &o));
    must(keel_dataset_field(d, 2, &f));
    assert_string_equal(f.path, "sample_weight_label");
    assert_string_equal(f.target, "label");
    check_field(d, 2, "sample_weight", 0, 1);
    keel_dataset_destroy(d);
    d = NULL;
    o.sample_weights = none;
    assert_int_equal(keel_dataset_open(&d, files_path("a.tfrecord"), &o), KEEL_EARG);
    assert_non_null(strstr(keel_error(), "weights for 'z', but there is no such target"));
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void one_feature_can_be_input_and_target(void **state)
{
    (void)state;
    files_begin();
    keel_dataset *d = NULL;
    const keel_dataset_options o = options((words){ "in=x" }, (words){ "out=x" }, (words){ 0 });
    must(keel_dataset_open(&d, give("numbers.tfrecord", "a.tfrecord"), &o));
    check_field(d, 0, "x", 0, 1);
    check_field(d, 1, "x", 0, 1);
    keel_dataset_destroy(d);
    files_end();
}

/* What cannot be right is refused when the file is opened, or with the row. */
static void what_cannot_be_read_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        words inputs, targets, features;
        const char *says;
    } cases[] = {
        { "numbers.tfrecord",
          { "x=nothing" },
          { 0 },
          { 0 },
          "has no feature 'nothing'; there are '" },
        { "numbers.tfrecord", { "p", "q" }, { 0 }, { 0 }, "has no feature 'p'" },
        { "numbers.tfrecord", { "x=raw,y" }, { 0 }, { 0 }, "is one feature, not several" },
        { "numbers.tfrecord", { "x=raw" }, { 0 }, { 0 }, "features 'raw=uint8(28,28,1)'" },
        { "numbers.tfrecord", { "x=raw" }, { 0 }, { "raw=uint8(7)" }, "has 6 values, but 7" },
        { "numbers.tfrecord", { "x=raw" }, { 0 }, { "raw=int32" }, "are no int32 numbers" },
        { "numbers.tfrecord", { "x=tokens" }, { 0 }, { "tokens=(3)" }, "record 0 at byte 0" },
        { "numbers.tfrecord", { "x=tokens" }, { 0 }, { "tokens=(None,2)" }, "multiple of 2" },
        { "numbers.tfrecord",
          { "x" },
          { 0 },
          { "x=uint8" },
          "is a float_list, so its type is not" },
        { "numbers.tfrecord", { "x" }, { 0 }, { "x=(2" }, "is not understood" },
        { "numbers.tfrecord", { "x" }, { 0 }, { "x=(0)" }, "is not understood" },
        { "numbers.tfrecord", { "x" }, { 0 }, { "x=bool" }, "is not understood" },
        { "numbers.tfrecord", { "x" }, { 0 }, { "x=(4)", "x=(4)" }, "is there twice" },
        { "numbers.tfrecord", { "x" }, { 0 }, { "z=(4)" }, "has no feature 'z', of which" },
        { "sequence.tfrecord", { 0 }, { 0 }, { 0 }, "SequenceExample" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        keel_dataset *d = NULL;
        const keel_dataset_options o =
            options(cases[i].inputs, cases[i].targets, cases[i].features);
        if (keel_dataset_open(&d, give(cases[i].file, "a.tfrecord"), &o) >= 0)
            fail_msg("case %zu is read", i);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("case %zu: %s", i, keel_error());
    }
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_open(&d, files_text("b.tfrecord", ""), NULL), KEEL_EDATA);
    assert_int_equal(keel_dataset_open(&d, files_path("c.tfrecord"), NULL), KEEL_EIO);
    assert_int_equal(keel_dataset_open(&d, files_path("c-*.tfrecord"), NULL), KEEL_EIO);
    assert_int_equal(keel_dataset_open(&d, files_path("{0..9999999}.tfrecord"), NULL), KEEL_EARG);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

/* A data set of more than 64 MiB is not read whole: a record that differs is found with its row. */
static void in_large_files_a_wrong_record_is_found_with_its_row(void **state)
{
    (void)state;
    enum { ROWS = 4200, WRONG = 1234, EACH = 16000 };
    record_bytes b = { 0 };
    char *filler = calloc(1, EACH);
    for (int i = 0; i < ROWS; i++) {
        record_bytes f = plain_example(i == WRONG ? 3 : 2, i % 2);
        record_bytes more = { 0 };
        record_entry(&more, "filler", 1, filler, EACH);
        /* Fields of a message may follow each other: the features of both, in one. */
        record_bytes all = { 0 };
        record_add(&all, f.at + 2, f.n - 2);
        record_add(&all, more.at, more.n);
        record_bytes e = record_example(all);
        record_put(&b, e.at, e.n);
        free(e.at);
        free(f.at);
        free(more.at);
    }
    free(filler);
    files_begin();
    keel_dataset *d = NULL;
    void *x;
    size_t n;
    must(keel_dataset_open(&d, files_write("a.tfrecord", b.at, b.n), NULL));
    assert_int_equal(keel_dataset_rows(d), ROWS);
    assert_int_equal(read_field(d, 0, false, &x, &n), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "record 1234 at byte"));
    assert_non_null(strstr(keel_error(), "'x' has 3 values, but 2 in the first record"));
    keel_dataset_destroy(d);
    free(b.at);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- tar ------------------------------------------------------------------------------------- */

static void members_of_one_key_form_a_row_in_every_format(void **state)
{
    (void)state;
    static const char *const names[] = { "ustar.tar", "pax.tar", "gnu.tar" };
    files_begin();
    for (size_t i = 0; i < COUNT(names); i++) {
        keel_dataset *d = NULL;
        must(keel_dataset_open(&d, give(names[i], "a.tar"), NULL));
        assert_int_equal(keel_dataset_rows(d), 3);
        assert_int_equal(keel_dataset_y_dtype(d), KEEL_INT64);
        check_field(d, 0, "tar_x", 0, 1);
        check_field(d, 1, "tar_y", 0, 1);
        const char *name = keel_dataset_row_name(d, 2);
        assert_string_equal(name + strlen(name) - 7, "/000002");
        keel_dataset_destroy(d);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

/* Size in GNU's form for 8 GiB and more: a big-endian number behind a byte of 128. */
static void sizes_in_base_256_are_read(void **state)
{
    (void)state;
    static const struct {
        unsigned char byte[12];
        const char *refused; /* NULL: rows are read */
    } cases[] = {
        { { 128, [11] = 3 }, NULL },
        { { 255, [11] = 3 }, "size" }, /* a negative number */
        { { 129, [11] = 3 }, "size" }, /* of more than 64 bits */
        { { 128, [1] = 1, [11] = 3 }, "size" },
        { { 128, [4] = 127, [11] = 3 }, "cut short" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        record_bytes b = { 0 };
        keel_dataset *d = NULL;
        tar_put(&b, "a.txt", '0', "one", 3);
        memcpy(b.at + 124, cases[i].byte, 12);
        tar_sum(b.at);
        tar_put(&b, "a.cls", '0', "1", 1);
        tar_end(&b);
        const keel_dataset_options o = options((words){ "x=txt" }, (words){ 0 }, (words){ 0 });
        const keel_status s = keel_dataset_open(&d, files_write("a.tar", b.at, b.n), &o);
        if ((s < 0) != !!cases[i].refused || (s < 0 && !strstr(keel_error(), cases[i].refused)))
            fail_msg("case %zu: %s", i, s < 0 ? keel_error() : "is read");
        if (s >= 0) assert_int_equal(keel_dataset_rows(d), 1);
        keel_dataset_destroy(d);
        free(b.at);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void shards_of_webdataset_are_rows_of_images_texts_and_arrays(void **state)
{
    (void)state;
    files_begin();
    files_folder("shards");
    give("wds-000.tar", "shards/wds-000.tar");
    give("wds-001.tar", "shards/wds-001.tar");
    for (int i = 0; i < 2; i++) {
        keel_dataset *d = NULL;
        keel_dataset_options o =
            options((words){ "x=png", "text=txt", "v=v.npy" }, (words){ "y=cls" }, (words){ 0 });
        o.height = 14;
        o.width = 18;
        must(keel_dataset_open(&d, files_path(i ? "shards" : "shards/wds-{000..001}.tar"), &o));
        assert_int_equal(keel_dataset_rows(d), 4);
        assert_int_equal(keel_dataset_x_dtype(d), KEEL_UINT8);
        check_field(d, 0, "wds_png", 0, 17);
        check_texts(d, 1, "wds_txt");
        check_field(d, 3, "wds_cls", 0, 1);
        const json_t *keys = json_object_get(json_object_get(golden, "rows"), "wds_keys");
        for (int64_t k = 0; k < 4; k++)
            assert_string_equal(keel_dataset_row_name(d, k),
                                json_string_value(json_array_get(keys, (size_t)k)));
        double *v;
        size_t n;
        must(read_field(d, 2, false, (void **)&v, &n)); /* 1 to 4 numbers a row */
        assert_int_equal(n, 16);
        for (int k = 0; k < 16; k++) assert_true(v[k] == (k % 4 <= k / 4 ? k % 4 : 0));
        free(v);
        keel_dataset_destroy(d);
    }
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

static void a_row_of_a_shard_that_is_not_whole_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name[4], *data[4];
        words inputs;
        const char *says;
    } cases[] = {
        { { "a.txt", "a.cls", "b.txt" },
          { "x", "1", "y" },
          { "x=txt" },
          "row 'b' has no member 'cls'" },
        { { "a.txt", "a.cls" }, { "x", "1" }, { 0 }, "has no member 'npy'" },
        { { "a.txt", "a.TXT", "a.cls" }, { "x", "x", "1" }, { "x=txt" }, "is there twice" },
        { { "a.pth", "a.cls" }, { "x", "1" }, { "x=pth" }, "its ending is not read" },
        { { "a.txt", "a.cls" }, { "\xff", "1" }, { "x=txt" }, "not UTF-8" },
        { { "a.npy", "a.cls" }, { "x", "1" }, { "x=npy" }, "not a .npy" },
        { { "README", ".hidden.txt" }, { "x", "1" }, { "x=txt" }, "has no rows" },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        record_bytes b = { 0 };
        keel_dataset *d = NULL;
        for (int k = 0; k < 4 && cases[i].name[k]; k++)
            tar_put(&b, cases[i].name[k], '0', cases[i].data[k], strlen(cases[i].data[k]));
        tar_end(&b);
        const keel_dataset_options o = options(cases[i].inputs, (words){ 0 }, (words){ 0 });
        if (keel_dataset_open(&d, files_write("a.tar", b.at, b.n), &o) >= 0)
            fail_msg("case %zu is read", i);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("case %zu: %s", i, keel_error());
        free(b.at);
    }
    record_bytes b = { 0 };
    keel_dataset *d = NULL;
    void *y;
    size_t n;
    tar_put(&b, "a.txt", '0', "x", 1);
    tar_put(&b, "a.cls", '0', "one", 3);
    tar_end(&b);
    const keel_dataset_options o = options((words){ "x=txt" }, (words){ 0 }, (words){ 0 });
    must(keel_dataset_open(&d, files_write("a.tar", b.at, b.n), &o));
    assert_int_equal(read_field(d, 1, false, &y, &n), KEEL_EFORMAT); /* with its row */
    assert_non_null(strstr(keel_error(), "member 'a.cls' at byte 1536: is no whole number"));
    keel_dataset_destroy(d);
    free(b.at);
    files_end();
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *file, *as;
        words inputs, targets;
    } cases[] = {
        { "numbers.tfrecord", "a.tfrecord", { "word", "tokens" }, { "y=label" } },
        { "numbers.tfrecord.gz", "a.tfrecord", { "x" }, { 0 } },
        { "images.tfrecord", "a.tfrecord", { "x=image" }, { "y=label" } },
        { "wds-001.tar", "a.tar", { "x=png", "t=txt", "v=v.npy" }, { "y=cls" } },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *path = give(cases[i].file, cases[i].as);
        keel_dataset_options o = options(cases[i].inputs, cases[i].targets, (words){ 0 });
        o.height = 14;
        o.width = 18;
        keel_status s = KEEL_ENOMEM;
        int64_t at = 0;
        for (; s == KEEL_ENOMEM && at < 1000; at++) {
            keel_dataset *d = NULL;
            void *rows = NULL;
            size_t n;
            keel_memory_fail_at(at);
            s = keel_dataset_open(&d, path, &o);
            if (s >= 0) s = read_field(d, 0, i == 0, &rows, &n);
            keel_memory_fail_at(-1);
            free(rows);
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), 0);
        }
        if (s < 0) fail_msg("case %zu: %s", i, keel_error());
        assert_true(at > 10);
    }
    files_end();
}

static int begin(void **state)
{
    (void)state;
    golden = golden_load("records.json");
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_have_the_values_that_tensorflow_reads),
        cmocka_unit_test(texts_are_inputs_and_labels),
        cmocka_unit_test(labels_are_classes_where_the_model_has_classes),
        cmocka_unit_test(images_are_decoded_and_resized_as_by_tensorflow),
        cmocka_unit_test(rows_go_on_over_the_files_of_a_pattern),
        cmocka_unit_test(a_thousand_shards_need_no_thousand_descriptors),
        cmocka_unit_test(weights_must_be_finite_and_not_negative),
        cmocka_unit_test(weights_are_those_of_the_target_that_is_named),
        cmocka_unit_test(one_feature_can_be_input_and_target),
        cmocka_unit_test(what_cannot_be_read_is_refused_by_name),
        cmocka_unit_test(in_large_files_a_wrong_record_is_found_with_its_row),
        cmocka_unit_test(members_of_one_key_form_a_row_in_every_format),
        cmocka_unit_test(sizes_in_base_256_are_read),
        cmocka_unit_test(shards_of_webdataset_are_rows_of_images_texts_and_arrays),
        cmocka_unit_test(a_row_of_a_shard_that_is_not_whole_is_refused),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
