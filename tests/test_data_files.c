/* Files of arrays and tables: what is read, how SRC is understood, and what is refused. */
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include "io/npy.h"
#include "io/zip.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <zlib.h>

#define COUNT(list) (sizeof list / sizeof *list)

/* All rows in order, as float64: x and y of row i. */
static double *rows_of(const keel_dataset *d, bool want_y)
{
    keel_dtype want[KEEL_FIELDS_MAX];
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    const keel_feed_options o = { .real = KEEL_FLOAT64,
                                  .want = want,
                                  .batch_size = keel_dataset_rows(d) };
    keel_feed *f = NULL;
    keel_batch b;
    if (keel_feed_create(&f, d, &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_feed_begin_epoch(f, 0), KEEL_OK);
    if (keel_feed_next(f, &b) < 0) fail_msg("%s", keel_error());
    keel_shape s = want_y ? keel_dataset_y_shape(d) : keel_dataset_x_shape(d);
    int64_t n = b.rows;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    double *out = calloc((size_t)n, sizeof *out);
    memcpy(out, keel_batch_field(&b, want_y ? KEEL_ROLE_TARGET : KEEL_ROLE_INPUT, 0),
           (size_t)n * sizeof *out);
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    return out;
}

static void check_rows(const keel_dataset *d, bool want_y, const double *want, size_t n)
{
    double *got = rows_of(d, want_y);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%c[%zu] is %g, not %g", want_y ? 'y' : 'x', i, got[i], want[i]);
    free(got);
}

static void a_csv_gives_features_and_labels(void **state)
{
    static const struct {
        const char *text, *label;
        int64_t rows, columns, classes;
        double x[8], y[4];
    } good[] = {
        { "a,b,y\n1,2,0\n3,4.5,1\n", "y", 2, 2, 0, { 1, 2, 3, 4.5 }, { 0, 1 } },
        { "y,a\r\n0.5,1e2\r\n-1, -3 \r\n", "y", 2, 1, 0, { 100, -3 }, { 0.5, -1 } },
        { "a,kind\n1,dog\n2,cat\n3,dog\n\n", "kind", 3, 1, 2, { 1, 2, 3 }, { 1, 0, 1 } },
        { "\xef\xbb\xbf\"a\",\"the \"\"b\"\"\"\n\"1\",\"x,y\"",
          "the \"b\"",
          1,
          1,
          1,
          { 1 },
          { 0 } },
        { "a\n1\n2\n", NULL, 2, 1, 0, { 1, 2 }, { 0 } },
        { "a,k\n1,\"two\nlines\"\n2,b\n", "k", 2, 1, 2, { 1, 2 }, { 1, 0 } },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(good); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        const char *path = files_text("t.csv", good[i].text);
        if (keel_dataset_from_csv(&d, path, good[i].label, NULL) < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_rows(d), good[i].rows);
        assert_int_equal(keel_dataset_x_shape(d).dim[0], good[i].columns);
        assert_int_equal(keel_dataset_class_count(d), good[i].classes);
        check_rows(d, false, good[i].x, (size_t)(good[i].rows * good[i].columns));
        if (good[i].label)
            check_rows(d, true, good[i].y, (size_t)good[i].rows);
        else
            assert_int_equal(keel_dataset_y_shape(d).rank, -1);
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void named_labels_can_be_one_hot(void **state)
{
    files_begin();
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d = NULL;
    o.label_mode = KEEL_LABEL_CATEGORICAL;
    o.label = "k";
    files_text("t.csv", "a,k\n1,b\n2,a\n3,c\n");
    assert_int_equal(keel_dataset_open(&d, files_path("t.csv"), &o), KEEL_OK);
    static const double want[] = { 0, 1, 0, 1, 0, 0, 0, 0, 1 };
    check_rows(d, true, want, 9);
    assert_string_equal(keel_dataset_class_name(d, 1), "b");
    keel_dataset_destroy(d);
    files_end();
}

static void a_bad_csv_is_one_clear_line(void **state)
{
    static const struct {
        const char *text, *label, *says;
        keel_status status;
    } bad[] = {
        { "", "y", "empty", KEEL_EFORMAT },
        { "a,y\n", "y", "no rows", KEEL_EDATA },
        { "a,b\n1,2\n", "y", "no column 'y'", KEEL_EARG },
        { "a,y,y\n1,2,3\n", "y", "two columns", KEEL_EARG },
        { "y\n1\n", "y", "no column except", KEEL_EFORMAT },
        { "a,y\na film of 2012,2\n", "y", "--inputs COLUMN gives a model its texts", KEEL_EFORMAT },
        { "a,y\n1,2\n3\n", "y", "t.csv:3: 1 field, but the header has 2", KEEL_EFORMAT },
        { "a,y\n1,2,3\n", "y", "t.csv:2: 3 fields", KEEL_EFORMAT },
        { "a,y\n\n\nx,2\n", "y", "t.csv:4: column 'a' has 'x'", KEEL_EFORMAT },
        { "a,y\n,2\n", "y", "t.csv:2: column 'a' has ''", KEEL_EFORMAT },
        { "a,y\nnan,2\n", "y", "not a number", KEEL_EFORMAT },
        { "a,y\n1e999,2\n", "y", "not a number", KEEL_EFORMAT },
        { "a,y\n1,\n", "y", "no label", KEEL_EFORMAT },
        { "a,y\n\"1,2\n", "y", "never closed", KEEL_EFORMAT },
        { "a,y\n\"1\"2,2\n", "y", "follows a closed quote", KEEL_EFORMAT },
    };
    files_begin();
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        const char *path = files_text("t.csv", bad[i].text);
        const keel_status s = keel_dataset_from_csv(&d, path, bad[i].label, NULL);
        if (s != bad[i].status || d || !strstr(keel_error(), bad[i].says) ||
            !strstr(keel_error(), "t.csv"))
            fail_msg("case %zu: %d, %s", i, (int)s, keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
    files_write("t.csv", "a,y\n\0,1\n", 8);
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_csv(&d, files_path("t.csv"), "y", NULL), KEEL_EFORMAT);
    assert_int_equal(keel_dataset_from_csv(&d, files_path("no.csv"), "y", NULL), KEEL_EIO);
    assert_non_null(strstr(keel_error(), "no.csv"));
    files_end();
}

static float x_data[24];
static int64_t y_data[4] = { 3, 1, 0, 2 };
static const double y_want[4] = { 3, 1, 0, 2 };

static keel_tensor x_tensor(void)
{
    for (int i = 0; i < 24; i++) x_data[i] = (float)i;
    return (keel_tensor){ KEEL_FLOAT32, { 3, { 4, 2, 3 } }, x_data };
}

static keel_tensor y_tensor(int64_t rows)
{
    return (keel_tensor){ KEEL_INT64, { 1, { rows } }, y_data };
}

static void check_x(const keel_dataset *d)
{
    double want[24];
    for (int i = 0; i < 24; i++) want[i] = i;
    assert_int_equal(keel_dataset_rows(d), 4);
    check_rows(d, false, want, 24);
}

static void npy_pairs_and_npz_archives_are_arrays(void **state)
{
    files_begin();
    const keel_tensor x = x_tensor(), y = y_tensor(4);
    assert_int_equal(keel_npy_write(files_path("x.npy"), &x), KEEL_OK);
    assert_int_equal(keel_npy_write(files_path("y.npy"), &y), KEEL_OK);
    char both[1200];
    snprintf(both, sizeof both, "%s,%s", files_path("x.npy"), files_path("y.npy"));
    keel_dataset *d = NULL;
    if (keel_dataset_open(&d, both, NULL) < 0) fail_msg("%s", keel_error());
    check_x(d);
    check_rows(d, true, y_want, 4);
    assert_int_equal(keel_dataset_y_dtype(d), KEEL_INT64);
    keel_dataset_destroy(d);
    if (keel_dataset_open(&d, files_path("x.npy"), NULL) < 0) fail_msg("%s", keel_error());
    check_x(d);
    assert_int_equal(keel_dataset_y_shape(d).rank, -1);
    keel_dataset_destroy(d);

    void *xb, *yb;
    size_t xn, yn;
    assert_int_equal(keel_file_read(files_path("x.npy"), 1 << 20, &xb, &xn), KEEL_OK);
    assert_int_equal(keel_file_read(files_path("y.npy"), 1 << 20, &yb, &yn), KEEL_OK);
    const keel_zip_member plain[] = { { "x.npy", xb, xn }, { "y.npy", yb, yn } };
    const keel_zip_member parts[] = { { "x_train.npy", xb, xn },
                                      { "y_train.npy", yb, yn },
                                      { "x_test.npy", xb, xn } };
    const keel_zip_member none[] = { { "z.npy", xb, xn } };
    assert_int_equal(keel_zip_write(files_path("a.npz"), plain, 2), KEEL_OK);
    assert_int_equal(keel_zip_write(files_path("b.npz"), parts, 3), KEEL_OK);
    assert_int_equal(keel_zip_write(files_path("c.npz"), none, 1), KEEL_OK);
    assert_int_equal(keel_dataset_open(&d, files_path("a.npz"), NULL), KEEL_OK);
    check_x(d);
    check_rows(d, true, y_want, 4);
    keel_dataset_destroy(d);
    assert_int_equal(keel_dataset_from_npz(&d, files_path("b.npz")), KEEL_OK);
    check_rows(d, true, y_want, 4);
    keel_dataset_destroy(d);
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.subset = KEEL_SUBSET_VALIDATION;
    assert_int_equal(keel_dataset_open(&d, files_path("b.npz"), &o), KEEL_OK);
    assert_int_equal(keel_dataset_y_shape(d).rank, -1); /* x_test has no y_test */
    keel_dataset_destroy(d);
    d = NULL;
    assert_int_equal(keel_dataset_open(&d, files_path("c.npz"), NULL), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "no array named x"));
    assert_null(d);
    ((char *)xb)[0] = 0;
    assert_int_equal(keel_zip_write(files_path("d.npz"), plain, 2), KEEL_OK);
    assert_int_equal(keel_dataset_open(&d, files_path("d.npz"), NULL), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "d.npz: array 'x': not a .npy"));
    keel_free(xb);
    keel_free(yb);
    files_end();
}

static void rows_of_x_and_y_must_be_as_many(void **state)
{
    files_begin();
    const keel_tensor x = x_tensor(), y = y_tensor(3);
    const int64_t live = keel_memory_live();
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_arrays(&d, &x, &y, NULL), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "x has 4 rows but y has 3"));
    assert_int_equal(keel_npy_write(files_path("x.npy"), &x), KEEL_OK);
    assert_int_equal(keel_npy_write(files_path("y.npy"), &y), KEEL_OK);
    assert_int_equal(keel_dataset_from_npy(&d, files_path("x.npy"), files_path("y.npy")),
                     KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "x.npy: x has 4 rows but y has 3"));
    assert_null(d);
    assert_int_equal(keel_memory_live(), live);
    files_end();
}

static void write_gz(const char *path, const void *data, size_t n)
{
    gzFile f = gzopen(path, "wb");
    assert_int_equal(gzwrite(f, data, (unsigned)n), n);
    gzclose(f);
}

static void mnist_files_are_found_by_pair_or_by_directory(void **state)
{
    static const unsigned char images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0,
                                            0, 1, 0, 0, 0, 2, 9, 8, 7, 6 };
    static const unsigned char labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 5, 4 };
    static const double x[] = { 9, 8, 7, 6 }, y[] = { 5, 4 };
    files_begin();
    files_folder("mnist");
    files_write("mnist/train-images-idx3-ubyte", images, sizeof images);
    write_gz(files_path("mnist/train-labels-idx1-ubyte.gz"), labels, sizeof labels);
    char pair[1200];
    snprintf(pair, sizeof pair, "%s,%s", files_path("mnist/train-images-idx3-ubyte"),
             files_path("mnist/train-labels-idx1-ubyte.gz"));
    const char *spec[] = { pair, files_path("mnist") };
    for (int i = 0; i < 2; i++) {
        keel_dataset *d = NULL;
        if (keel_dataset_open(&d, spec[i], NULL) < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_x_shape(d).rank, 3);
        assert_int_equal(keel_dataset_x_shape(d).dim[2], 1);
        assert_int_equal(keel_dataset_x_dtype(d), KEEL_UINT8);
        check_rows(d, false, x, 4);
        check_rows(d, true, y, 2);
        keel_dataset_destroy(d);
    }
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d = NULL;
    o.subset = KEEL_SUBSET_VALIDATION;
    assert_int_equal(keel_dataset_open(&d, files_path("mnist"), &o), KEEL_EDATA);
    assert_non_null(strstr(keel_error(), "t10k"));
    files_end();
}

static void what_nobody_understands_is_refused_with_what_is_understood(void **state)
{
    static const char understood[] = "is not a kind of data that Keel reads: ",
                      listed[] = ".npz file with x and y";
    static const struct {
        const char *spec, *says[2];
        keel_status status;
    } cases[] = {
        { "/nowhere/at/all", { "/nowhere/at/all: does not exist", "" }, KEEL_EIO },
        { "gs://bucket/x.npz", { "Keel reads no URLs", "exec:CMD" } },
        { "x.npy,y.csv.gz", { understood, listed } },
        { "synthetc(x=float32(2))", { understood, listed } },
        { "/dev/null", { understood, listed } },
        { "", { "give a path", "" } },
    };
    static const char *const foreign[][2] = { { "a.parquet", "does not read Parquet; let a" },
                                              { "a.XLSX", "does not read Excel's format" },
                                              { "a.jpeg", "is one image; give its folder" },
                                              { "a.keras", "is a model; give data" } };
    keel_dataset *d = NULL;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(keel_dataset_open(&d, cases[i].spec, NULL),
                         cases[i].status ? cases[i].status : KEEL_EARG);
        for (int k = 0; k < 2; k++)
            if (!strstr(keel_error(), cases[i].says[k])) fail_msg("%s", keel_error());
    }
    files_begin();
    for (size_t i = 0; i < COUNT(foreign); i++) {
        files_text(foreign[i][0], "?");
        assert_int_equal(keel_dataset_open(&d, files_path(foreign[i][0]), NULL), KEEL_EARG);
        if (!strstr(keel_error(), foreign[i][1])) fail_msg("%s", keel_error());
    }
    files_end();
    assert_null(d);
}

static void arrays_give_their_last_rows_to_validation(void **state)
{
    const keel_tensor x = x_tensor(), y = y_tensor(4);
    keel_dataset *d = NULL, *t = NULL, *v = NULL;
    assert_int_equal(keel_dataset_from_arrays(&d, &x, &y, NULL), KEEL_OK);
    assert_int_equal(keel_dataset_split(d, 0.3, 1, &t, &v), KEEL_OK);
    keel_dataset_destroy(d);                   /* the parts live on */
    assert_int_equal(keel_dataset_rows(t), 2); /* Keras: floor(4 * 0.7) */
    assert_int_equal(keel_dataset_rows(v), 2);
    check_rows(t, true, y_want, 2);
    check_rows(v, true, y_want + 2, 2);
    keel_dataset *a = NULL, *b = NULL;
    static const double wrong[] = { 0, 1, -0.1, 0.999999 };
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_true(keel_dataset_split(v, wrong[i], 1, &a, &b) < 0);
    keel_dataset_destroy(t);
    keel_dataset_destroy(v);
}

static void every_failed_allocation_is_survived(void **state)
{
    files_begin();
    files_text("t.csv", "a,k\n1,b\n2,a\n3,c\n");
    files_folder("set");
    files_folder("set/a");
    static const char whole[] = "\xff\xd8\xff"
                                "nothing between is looked into: "
                                "\xff\xd9";
    files_write("set/a/1.jpg", whole, sizeof whole - 1);
    const keel_tensor x = x_tensor(), y = y_tensor(4);
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.label = "k";
    o.height = o.width = 4;
    for (int kind = 0; kind < 3; kind++) {
        bool done = false;
        for (int n = 0; !done; n++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_feed *f = NULL;
            const keel_feed_options fo = { .batch_size = 2, .threads = 1, .wants_weight = true };
            keel_memory_fail_at(n);
            keel_status s = kind == 2
                                ? keel_dataset_from_arrays(&d, &x, &y, NULL)
                                : keel_dataset_open(&d, files_path(kind ? "set" : "t.csv"), &o);
            if (s >= 0) s = keel_feed_create(&f, d, &fo);
            keel_memory_fail_at(-1);
            done = s >= 0;
            if (!done) assert_int_equal(s, KEEL_ENOMEM);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            assert_in_range(n, 0, 500);
        }
    }
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_csv_gives_features_and_labels),
        cmocka_unit_test(named_labels_can_be_one_hot),
        cmocka_unit_test(a_bad_csv_is_one_clear_line),
        cmocka_unit_test(npy_pairs_and_npz_archives_are_arrays),
        cmocka_unit_test(rows_of_x_and_y_must_be_as_many),
        cmocka_unit_test(mnist_files_are_found_by_pair_or_by_directory),
        cmocka_unit_test(what_nobody_understands_is_refused_with_what_is_understood),
        cmocka_unit_test(arrays_give_their_last_rows_to_validation),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
