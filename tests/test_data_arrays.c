/* Arrays that stay in their files: HDF5, records of one length, and rows that are drawn. What h5py
 * wrote is read; what nobody should trust is refused. */
#include "data_files.h"
#include "base/memory.h"
#include "data/feed.h"
#include "data/source.h"
#include "io/h5_data.h"
#include "keel/pipeline.h"
#include "tensor/shape.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(list) (sizeof list / sizeof *list)
#define KINDS_H5    "golden/data_kinds.h5" /* by golden/make_data_files.py */

/* Field 0 of all rows in order, as float64, and y if there is one. */
static keel_status read_rows(const keel_dataset *d, double *x, double *y, bool shuffle, int threads)
{
    keel_dtype want[KEEL_FIELDS_MAX];
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    const keel_feed_options o = {
        .real = KEEL_FLOAT64, .want = want, .batch_size = 8, .shuffle = shuffle, .threads = threads
    };
    keel_feed *f = NULL;
    keel_batch b;
    keel_status s = keel_feed_create(&f, d, &o);
    keel_shape row = keel_dataset_x_shape(d);
    const size_t count = (size_t)keel_shape_count(&row);
    if (s >= 0) s = keel_feed_begin_epoch(f, 0);
    while (s >= 0 && (s = keel_feed_next(f, &b)) == KEEL_OK) {
        const size_t n = (size_t)b.rows * count;
        memcpy(x, keel_batch_field(&b, KEEL_ROLE_INPUT, 0), n * sizeof *x);
        x += n;
        const double *label = keel_batch_field(&b, KEEL_ROLE_TARGET, 0);
        for (int64_t i = 0; y && label && i < b.rows; i++) *y++ = label[i];
        keel_feed_release(f, &b);
    }
    keel_feed_destroy(f);
    return s == KEEL_END ? KEEL_OK : s;
}

/* Open the arrays of an .h5 by name; y NULL: none. */
static keel_status open_h5(keel_dataset **d, const char *path, const char *x, const char *y)
{
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    char input[64], target[64];
    snprintf(input, sizeof input, "x=%s", x);
    snprintf(target, sizeof target, "y=%s", y ? y : "");
    const char *const inputs[] = { input }, *const targets[] = { target };
    o.inputs = inputs;
    o.n_input = 1;
    o.targets = targets;
    o.n_target = y != NULL;
    return keel_dataset_open(d, path, &o);
}

static void what_h5py_wrote_is_read(void **state)
{
    enum { ROWS = 37, MOST = ROWS * 90 };
    static double x[MOST], y[ROWS];
    static const struct {
        const char *name;
        int each, modulo; /* numbers of a row; values are their index, modulo this */
        double scale;
        keel_dtype dtype;
    } good[] = {
        { "x", 4, 1000, 0.5, KEEL_FLOAT32 },
        { "/train/images", 90, 251, 1, KEEL_UINT8 },
        { "types/f2", 3, 100, 1, KEEL_FLOAT32 },
        { "types/f8", 3, 100, 1, KEEL_FLOAT64 },
        { "types/i1", 3, 100, 1, KEEL_INT32 },
        { "types/i2", 3, 100, 1, KEEL_INT32 },
        { "types/u2", 3, 100, 1, KEEL_INT32 },
        { "types/i4", 3, 100, 1, KEEL_INT32 },
        { "types/u4", 3, 100, 1, KEEL_INT64 },
        { "types/big_f4", 3, 100, 1, KEEL_FLOAT32 },
        { "types/big_i2", 3, 100, 1, KEEL_INT32 },
        { "types/big_i8", 3, 100, 1, KEEL_INT64 },
        { "types/bool", 3, 2, 1, KEEL_BOOL },
        { "chunks/plain", 30, 1000, 1, KEEL_INT32 },
        { "chunks/gzip", 30, 1000, 1, KEEL_INT32 },
        { "chunks/all", 30, 1000, 1, KEEL_INT32 },
        { "chunks/sum", 7, 256, 1, KEEL_UINT8 },
        { "chunks/rank1", 1, 1000, 1, KEEL_FLOAT32 },
        { "chunks/grows", 2, 1000, 1, KEEL_FLOAT32 },
        { "bad/whole", 1, 1000, 1, KEEL_INT64 },
        { "soft", 4, 1000, 0.5, KEEL_FLOAT32 },
        { "links/chain", 4, 1000, 0.5, KEEL_FLOAT32 },
        { "links/beside", 4, 1000, 0.5, KEEL_FLOAT32 },
        { "links/deep", 30, 1000, 1, KEEL_INT32 },
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        if (open_h5(&d, KINDS_H5, good[i].name, "train/labels") < 0) fail_msg("%s", keel_error());
        assert_int_equal(keel_dataset_rows(d), ROWS);
        assert_int_equal(keel_dataset_x_dtype(d), good[i].dtype);
        for (int threads = -1; threads < 5; threads += 2) {
            if (read_rows(d, x, y, false, threads) < 0) fail_msg("%s", keel_error());
            for (int k = 0; k < ROWS * good[i].each; k++)
                if (x[k] != k % 1000 % good[i].modulo * good[i].scale)
                    fail_msg("%s: number %d is %g", good[i].name, k, x[k]);
            for (int k = 0; k < ROWS; k++) assert_true(y[k] == k % 3);
        }
        if (read_rows(d, x, y, true, 3) < 0) fail_msg("%s", keel_error());
        for (int k = 0; k < ROWS; k++) {
            const int row = (int)(x[k * good[i].each] / good[i].scale + 0.5);
            if (good[i].modulo == 1000 && (good[i].each == 4 || good[i].each == 2))
                assert_true(y[k] == row / good[i].each % 3);
        }
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
    }
    keel_dataset *d = NULL;
    if (keel_dataset_open(&d, KINDS_H5, NULL) < 0) fail_msg("%s", keel_error());
    assert_true(keel_dataset_has_weight(d)); /* x, y and sample_weight by their names */
    assert_int_equal(keel_dataset_field_count(d), 3);
    keel_dataset_destroy(d);
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.label = "bad/none";
    d = NULL;
    assert_int_equal(keel_dataset_open(&d, KINDS_H5, &o), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "no array named bad/none"));
    o.label = "/types/f2"; /* of 3 numbers a row */
    if (keel_dataset_open(&d, KINDS_H5, &o) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_y_shape(d).rank, 1);
    keel_dataset_destroy(d);
}

static void an_array_that_cannot_be_read_is_refused_by_name(void **state)
{
    static const struct {
        const char *path, *x, *y, *says;
        keel_status status;
    } bad[] = {
        { KINDS_H5, "nothing", NULL, "no array named nothing; there are 'bad/", KEEL_EFORMAT },
        { KINDS_H5, "bad/text", NULL,
          "'bad/text' cannot be read: it has lists or texts of any length, not numbers; .npz and "
          ".csv can have texts",
          KEEL_EUNSUP },
        { KINDS_H5, "bad/pair", NULL, "it has compounds", KEEL_EUNSUP },
        { KINDS_H5, "bad/lzf", NULL, "compressed by lzf; gzip", KEEL_EUNSUP },
        { KINDS_H5, "bad/scalar", NULL, "one number", KEEL_ESHAPE },
        { KINDS_H5, "bad/empty", NULL, "has no rows", KEEL_EDATA },
        { KINDS_H5, "x", "bad/short", "'x' has 37 rows but 'bad/short' has 36", KEEL_ESHAPE },
        { KINDS_H5, "links/nowhere", NULL, "no array named links/nowhere", KEEL_EFORMAT },
        { KINDS_H5, "links/circle", NULL, "no array named links/circle", KEEL_EFORMAT },
        { KINDS_H5, "links/group", NULL, "no array named links/group", KEEL_EFORMAT },
        { "golden/data_newer.h5", "x", NULL, "libver='latest'", KEEL_EUNSUP },
        { "golden/weights_old.h5", "x", NULL, "weights of a Keras model", KEEL_EARG },
        { "golden/weights_new.weights.h5", "x", NULL, "weights of a Keras model", KEEL_EARG },
        { "golden/weights_whole.h5", "x", NULL, "weights of a Keras model", KEEL_EARG },
        { "golden/no.h5", "x", NULL, "No such file", KEEL_EIO },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        const keel_status s = open_h5(&d, bad[i].path, bad[i].x, bad[i].y);
        if (s != bad[i].status || d || !strstr(keel_error(), bad[i].says))
            fail_msg("%s: %d, %s", bad[i].x, (int)s, keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
    double x[80];
    keel_dataset *d = NULL;
    assert_int_equal(open_h5(&d, KINDS_H5, "bad/holes", NULL), KEEL_OK);
    assert_int_equal(read_rows(d, x, NULL, false, 2), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "it was never written"));
    keel_dataset_destroy(d);
}

static unsigned char *load(const char *path, size_t *n)
{
    void *data = NULL;
    assert_int_equal(keel_file_read(path, 1 << 20, &data, n), KEEL_OK);
    return data;
}

/* Whatever it gives, it must not crash, nor read outside. */
static void read_whatever(const char *path)
{
    static double x[37 * 90];
    static const char *const names[] = { "x", "train/images", "chunks/gzip", "chunks/all",
                                         "chunks/sum" };
    for (size_t i = 0; i < COUNT(names); i++) {
        keel_dataset *d = NULL;
        if (open_h5(&d, path, names[i], NULL) < 0) continue;
        const keel_shape row = keel_dataset_x_shape(d);
        if (keel_dataset_rows(d) <= 37 && keel_shape_count(&row) <= 90)
            read_rows(d, x, NULL, false, -1);
        keel_dataset_destroy(d);
    }
}

static void damaged_files_are_refused_and_hurt_nobody(void **state)
{
    size_t n = 0;
    const int64_t before = keel_memory_live();
    files_begin();
    unsigned char *bytes = load(KINDS_H5, &n);
    for (size_t cut = 0; cut < n; cut += 997) {
        keel_dataset *d = NULL;
        const char *path = files_write("cut.h5", bytes, cut);
        assert_true(open_h5(&d, path, "x", NULL) < 0);
    }
    uint32_t seed = 1;
    for (int round = 0; round < 400; round++) {
        unsigned char was[3];
        size_t at[3];
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            at[k] = seed % (k ? n : 4096);
            was[k] = bytes[at[k]];
            bytes[at[k]] = (unsigned char)(seed >> 24);
        }
        read_whatever(files_write("flip.h5", bytes, n));
        for (int k = 3; k-- > 0;) bytes[at[k]] = was[k];
    }
    keel_free(bytes);
    files_end();
    assert_int_equal(keel_memory_live(), before);
}

static void a_damaged_chunk_is_named(void **state)
{
    size_t n = 0;
    double x[37 * 30];
    keel_h5_data *h = NULL;
    keel_dataset *d = NULL;
    files_begin();
    unsigned char *bytes = load(KINDS_H5, &n);
    assert_int_equal(keel_h5_data_open(&h, KINDS_H5), KEEL_OK);
    for (size_t i = 0; i < h->count; i++) {
        const bool sum = !strcmp(keel_h5_data_name(h, i), "chunks/sum");
        if (!sum && strcmp(keel_h5_data_name(h, i), "chunks/gzip") != 0) continue;
        assert_int_equal(keel_h5_data_index(h, i), KEEL_OK);
        bytes[h->arrays[i].chunks[1].at + 4] ^= 1;
    }
    keel_h5_data_close(h);
    const char *path = files_write("chunk.h5", bytes, n);
    assert_int_equal(open_h5(&d, path, "chunks/sum", NULL), KEEL_OK);
    assert_int_equal(read_rows(d, x, NULL, false, 3), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "'chunks/sum', chunk 1: its checksum is wrong"));
    keel_dataset_destroy(d);
    assert_int_equal(open_h5(&d, path, "chunks/gzip", NULL), KEEL_OK);
    assert_int_equal(read_rows(d, x, NULL, false, 3), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "'chunks/gzip', chunk 1: its compressed bytes"));
    keel_dataset_destroy(d);
    keel_free(bytes);
    files_end();
}

/* ---- records --------------------------------------------------------------------------------- */

static const char *raw_spec(const char *list, const char *files)
{
    static char spec[1024];
    char rest[700] = "";
    for (const char *p = files; *p; p += strcspn(p, ","), p += *p == ',') {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
        snprintf(rest + strlen(rest), sizeof rest - strlen(rest), "%s%s", *rest ? "," : "",
                 files_path(name));
    }
    snprintf(spec, sizeof spec, "raw(%s):%s", list, rest);
    return spec;
}

/* "path=number " of every field of a dataset's first row, and for weights ":target". */
static void describe(char *out, size_t size, const keel_dataset *d)
{
    keel_dtype want[KEEL_FIELDS_MAX];
    for (int i = 0; i < KEEL_FIELDS_MAX; i++) want[i] = KEEL_FLOAT64;
    const keel_feed_options o = { .real = KEEL_FLOAT64, .want = want, .batch_size = 1 };
    keel_feed *f = NULL;
    keel_batch b;
    size_t at = 0;
    if (keel_feed_create(&f, d, &o) < 0 || keel_feed_begin_epoch(f, 0) < 0 ||
        keel_feed_next(f, &b) != KEEL_OK)
        fail_msg("%s", keel_error());
    for (int k = 0; k < b.n_field; k++)
        at += (size_t)snprintf(out + at, size - at, "%s=%g%s%s ", b.spec[k].path,
                               *(const double *)b.field[k], b.spec[k].target ? ":" : "",
                               b.spec[k].target ? b.spec[k].target : "");
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
}

static void fields_are_chosen_by_their_names(void **state)
{
    /* Two records of six bytes, and of a weight of 0.5. */
    static const unsigned char bytes[] = { 0,   1,   2,   3,   4,   5,   0, 0, 0, 63,
                                           100, 101, 102, 103, 104, 105, 0, 0, 0, 63 };
    static const struct {
        const char *list, *weight;
        keel_subset subset;
        double split;
        const char *says; /* fields, or the error */
    } cases[] = {
        { "x=u1,_=u1(4),y=u1,sample_weight=f4", .says = "x=0 y=5 sample_weight=0.5 " },
        { "x=u1,_=u1(4),y=u1,w=f4", "w", .says = "x=0 y=5 sample_weight=0.5 " },
        { "x=u1,_=u1(4),y=u1,w=f4", "v", .says = "no array named v" },
        { "x=u1,_=u1(4),y=u1,sample_weights=f4", .says = "'sample_weights' is not used" },
        { "x=u1,_=u1(5),sample_weights=f4", .says = "x=0 " }, /* there is nothing to weigh */
        { "x_1=u1,x_0=u1,_=u1(2),y_0=u1,y_1=u1,sample_weight_1=f4",
          .says = "x_0=1 x_1=0 y_0=4 y_1=5 sample_weight_1=0.5:y_1 " },
        { "x=u1,_=u1(3),y_0=u1,y_1=u1,sample_weight_y_0=f4",
          .says = "x=0 y_0=4 y_1=5 sample_weight_y_0=0.5:y_0 " },
        { "x_train=u1,y_train=u1,x_test=u1,y_test=u1,_=u1(6)", .says = "x=0 y=1 " },
        { "x_train=u1,y_train=u1,x_test=u1,y_test=u1,_=u1(6)", .subset = KEEL_SUBSET_VALIDATION,
          .says = "x=2 y=3 " },
        { "x_train=u1,y_train=u1,x_test=u1,y_test=u1,_=u1(6)", .subset = KEEL_SUBSET_VALIDATION,
          .split = 0.5, .says = "x=100 y=101 " },
        { "x=u1,y=u1,x_test=u1,y_test=u1,_=u1(6)", .subset = KEEL_SUBSET_TRAINING, .split = 0.5,
          .says = "x=0 y=1 " },
    };
    files_begin();
    files_write("a.bin", bytes, sizeof bytes);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        char got[256] = "";
        keel_dataset_options o = KEEL_DATASET_OPTIONS;
        o.sample_weight = cases[i].weight;
        o.subset = cases[i].subset;
        o.validation_split = cases[i].split;
        if (keel_dataset_open(&d, raw_spec(cases[i].list, "a.bin"), &o) < 0)
            snprintf(got, sizeof got, "%s", keel_error());
        if (d) assert_int_equal(keel_dataset_rows(d), cases[i].split > 0 ? 1 : 2);
        if (d) describe(got, sizeof got, d);
        keel_dataset_destroy(d);
        if (d ? !!strcmp(got, cases[i].says) : !strstr(got, cases[i].says))
            fail_msg("%s: %s", cases[i].list, got);
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void numbers_that_nobody_wants_are_not_made(void **state)
{
    const keel_feed_options o = { .batch_size = 4, .unwanted = 2, .threads = -1 };
    keel_dataset *d = NULL, *numbered = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    if (keel_dataset_open(&d, "range:10:16", NULL) < 0 ||
        keel_dataset_apply(&numbered, "enumerate", NULL, &d, 1) < 0 ||
        keel_feed_create(&f, numbered, &o) < 0 || keel_feed_begin_epoch(f, 0) < 0 ||
        keel_feed_next(f, &b) != KEEL_OK)
        fail_msg("%s", keel_error());
    assert_null(b.field[1]);
    for (int64_t k = 0; k < 4; k++) assert_int_equal(((int64_t *)b.field[0])[k], k);
    keel_feed_release(f, &b);
    keel_feed_destroy(f);
    keel_dataset_destroy(numbered);
    keel_dataset_destroy(d);
}

static void records_are_read_by_their_list(void **state)
{
    /* Two records: y, then x of [2 channels, 1, 3]. */
    static const unsigned char one[] = { 3, 10, 11, 12, 20, 21, 22, 4, 30, 31, 32, 40, 41, 42 };
    static const unsigned char two[] = { 'h', 'e', 5, 50, 51, 52, 60, 61, 62, 'f' };
    static const struct {
        const char *what, *list, *files;
        int rows, each;
        double x[18], y[3];
    } good[] = {
        { "as CIFAR-10",
          "y=uint8,x=uint8(2,1,3):chw",
          "a.bin",
          2,
          6,
          { 10, 20, 11, 21, 12, 22, 30, 40, 31, 41, 32, 42 },
          { 3, 4 } },
        { "not turned",
          "y=uint8,x=uint8(2,1,3)",
          "a.bin",
          2,
          6,
          { 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42 },
          { 3, 4 } },
        { "several files",
          "y=uint8,x=uint8(2,1,3)",
          "a.bin,a.bin",
          4,
          6,
          { 10, 11, 12, 20, 21, 22 },
          { 3, 4, 3 } },
        { "header and footer",
          "header=2,y=u1,x=u1(2,1,3),footer=1",
          "b.bin",
          1,
          6,
          { 50, 51, 52, 60, 61, 62 },
          { 5 } },
        { "skipped bytes",
          "y=uint8,_=uint8(2),x=uint8(2),_=uint8(2)",
          "a.bin",
          2,
          2,
          { 12, 20, 32, 40 },
          { 3, 4 } },
        { "big-endian",
          "y=uint8,x=>uint16(3)",
          "a.bin",
          2,
          3,
          { 2571, 3092, 5398, 7711, 8232, 10538 },
          { 3, 4 } },
        { "little-endian",
          "y=uint8,x=<i2(3)",
          "a.bin",
          2,
          3,
          { 2826, 5132, 5653, 7966, 10272, 10793 },
          { 3, 4 } },
    };
    files_begin();
    files_write("a.bin", one, sizeof one);
    files_write("b.bin", two, sizeof two);
    for (size_t i = 0; i < COUNT(good); i++) {
        double x[64], y[8];
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        if (keel_dataset_open(&d, raw_spec(good[i].list, good[i].files), NULL) < 0)
            fail_msg("%s: %s", good[i].what, keel_error());
        assert_int_equal(keel_dataset_rows(d), good[i].rows);
        if (read_rows(d, x, y, false, 2) < 0) fail_msg("%s: %s", good[i].what, keel_error());
        const int rows = good[i].rows < 3 ? good[i].rows : 1;
        for (int k = 0; k < rows * good[i].each; k++)
            if (x[k] != good[i].x[k]) fail_msg("%s: x[%d] is %g", good[i].what, k, x[k]);
        for (int k = 0; k < good[i].rows && k < 3; k++)
            if (y[k] != good[i].y[k]) fail_msg("%s: y[%d] is %g", good[i].what, k, y[k]);
        if (i == 0) assert_int_equal(keel_dataset_x_shape(d).dim[2], 2);
        keel_dataset_destroy(d);
        assert_int_equal(keel_memory_live(), live);
    }
    files_end();
}

static void a_wrong_list_of_records_is_one_clear_line(void **state)
{
    static const struct {
        const char *list, *says;
        keel_status status;
    } bad[] = {
        { "y=uint8,x=uint8(2,1,4)", "14 bytes are not a whole number of records of 9 bytes (5 are",
          KEEL_EFORMAT },
        { "y=uint8,x=uint8(2,3):chw", "only three", KEEL_ESHAPE },
        { "y=uint8,x=uint8(6):hwc", "only chw is known", KEEL_EARG },
        { "y=uint8,x=uint9(6)", "'x': type 'uint9'; supported are", KEEL_EUNSUP },
        { "y=uint8,z=uint8(6)", "no array named x; there are 'y', 'z'", KEEL_EFORMAT },
        { "y=uint8,x", "'x': give its type", KEEL_EARG },
        { "y=uint8,x=uint8(0)", "at least 1", KEEL_EARG },
        { "y=uint8,x=uint8(6", "a comma or ')'", KEEL_EARG },
        { "y=uint8,x=uint8(99999999999999999999)", "too large", KEEL_EARG },
        { "y=uint8,x=uint8(999999999,999999999,999999999)", "raw: 'x'", KEEL_ESHAPE },
        { "y=uint8,x=uint8(999999999,9)", "more than 1 GiB", KEEL_ESHAPE },
        { "y=uint8,x=uint8(1,1,1,1,1,1,1)", "more than 6", KEEL_EARG },
        { "header=a,y=uint8,x=uint8(6)", "header=a: a whole number", KEEL_EARG },
        { "header=15,x=uint8(6)", "14 bytes, less than its header and footer", KEEL_EFORMAT },
        { "header=14,x=uint8(6)", "has no records", KEEL_EDATA },
        { "header=9223372036854775807,footer=9223372036854775807,x=u1", "less than its header",
          KEEL_EFORMAT },
        { "_=uint8(14)", "give the fields", KEEL_EARG },
    };
    files_begin();
    files_write("a.bin", "abcdefghijklmn", 14);
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t live = keel_memory_live();
        keel_dataset *d = NULL;
        const keel_status s = keel_dataset_open(&d, raw_spec(bad[i].list, "a.bin"), NULL);
        if (s != bad[i].status || d || !strstr(keel_error(), bad[i].says))
            fail_msg("%s: %d, %s", bad[i].list, (int)s, keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_open(&d, "raw(x=uint8):", NULL), KEEL_EARG);
    assert_int_equal(keel_dataset_open(&d, "raw(x=uint8):/no/such,/file", NULL), KEEL_EIO);
    assert_int_equal(keel_dataset_open(&d, "raw:x", NULL), KEEL_EARG);
    files_end();
}

/* A file of more than 1 GiB, nearly all of it holes, so that only what is read costs anything. */
static void a_large_npy_is_read_row_by_row(void **state)
{
    enum { EACH = 1 << 20, ROWS = 300 }; /* float32: 4 MiB in a row */
    static const char dict[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (300, 1048576)}     ";
    const float mark[] = { 0.5F, 299.0F };
    unsigned char head[128] = "\x93NUMPY\1";
    files_begin();
    head[8] = (unsigned char)(sizeof dict - 1);
    memcpy(head + 10, dict, sizeof dict - 1);
    const size_t begin = 10 + sizeof dict - 1;
    const char *path = files_write("large.npy", head, begin);
    FILE *f = fopen(path, "r+b");
    assert_int_equal(ftruncate(fileno(f), (off_t)(begin + 4LL * EACH * ROWS)), 0);
    assert_int_equal(fseek(f, (long)begin, SEEK_SET), 0);
    assert_int_equal(fwrite(&mark[0], 4, 1, f), 1);
    assert_int_equal(fseek(f, (long)(begin + 4LL * EACH * (ROWS - 1)), SEEK_SET), 0);
    assert_int_equal(fwrite(&mark[1], 4, 1, f), 1);
    fclose(f);
    double labels[ROWS];
    for (int i = 0; i < ROWS; i++) labels[i] = i % 5;
    const keel_tensor y = { KEEL_FLOAT64, { 1, { ROWS } }, labels };
    assert_int_equal(keel_npy_write(files_path("y.npy"), &y), KEEL_OK);
    char spec[512];
    snprintf(spec, sizeof spec, "%s,%s", path, files_path("y.npy"));
    const int64_t live = keel_memory_live();
    keel_dataset *d = NULL;
    if (keel_dataset_open(&d, spec, NULL) < 0) fail_msg("%s", keel_error());
    assert_int_equal(keel_dataset_rows(d), ROWS);
    assert_null(d->origin->source->tensor);
    keel_dataset *first = NULL, *last = NULL;
    assert_int_equal(keel_dataset_split(d, 1.0 / ROWS, 0, &first, &last), KEEL_OK);
    const keel_feed_options o = { .batch_size = 1, .slots = 1, .threads = -1 };
    keel_feed *feed = NULL;
    keel_batch b;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(keel_feed_create(&feed, k ? last : first, &o), KEEL_OK);
        assert_int_equal(keel_feed_begin_epoch(feed, 0), KEEL_OK);
        if (keel_feed_next(feed, &b) < 0) fail_msg("%s", keel_error());
        assert_true(((const float *)b.field[0])[0] == mark[k]);
        assert_true(((const float *)b.field[1])[0] == (k ? 299 % 5 : 0));
        keel_feed_release(feed, &b);
        if (k) assert_int_equal(truncate(path, 1 << 20), 0);
        if (!k) {
            keel_feed_destroy(feed);
            continue;
        }
        assert_int_equal(keel_feed_begin_epoch(feed, 1), KEEL_OK); /* it has shrunk */
        assert_int_equal(keel_feed_next(feed, &b), KEEL_EIO);
        assert_non_null(strstr(keel_error(), "truncated while it was read"));
        keel_feed_destroy(feed);
    }
    keel_dataset_destroy(first);
    keel_dataset_destroy(last);
    keel_dataset_destroy(d);
    assert_int_equal(keel_memory_live(), live);
    files_end();
}

/* ---- rows that are drawn -----------------------------------------------------------------------
 */

static void drawn_rows_are_a_function_of_seed_and_index(void **state)
{
    enum { ROWS = 500 };
    static double x[2][ROWS * 7], y[2][ROWS];
    static const struct {
        const char *field;
        double least, most, mean;
    } kinds[] = {
        { "float32(7)", 0, 1, 0.5 },   { "float64(7)", 0, 1, 0.5 }, { "normal(7)", -6, 6, 0 },
        { "uint8(7)", 0, 255, 127.5 }, { "bool(7)", 0, 1, 0.5 },    { "int(11,7)", 0, 10, 5 },
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char spec[128];
        double sum = 0;
        for (int run = 0; run < 2; run++) {
            keel_dataset *d = NULL;
            snprintf(spec, sizeof spec, "synthetic(x=%s,y=int(3),rows=%d,seed=7)", kinds[i].field,
                     ROWS);
            if (keel_dataset_open(&d, spec, NULL) < 0) fail_msg("%s", keel_error());
            assert_int_equal(keel_dataset_rows(d), ROWS);
            assert_int_equal(keel_dataset_y_shape(d).rank, 0);
            if (read_rows(d, x[run], y[run], false, run ? 3 : -1) < 0) fail_msg("%s", keel_error());
            keel_dataset_destroy(d);
        }
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        for (int k = 0; k < ROWS * 7; k++) {
            assert_true(x[0][k] >= kinds[i].least && x[0][k] <= kinds[i].most);
            sum += x[0][k];
        }
        const double mean = sum / (ROWS * 7), wide = kinds[i].most - kinds[i].least;
        if (mean < kinds[i].mean - 0.04 * wide || mean > kinds[i].mean + 0.04 * wide)
            fail_msg("%s: the mean is %g", kinds[i].field, mean);
        assert_true(memcmp(x[0], x[0] + 7, 7 * sizeof **x) != 0);
    }
}

static void a_wrong_drawn_field_is_one_clear_line(void **state)
{
    static const char *const bad[][2] = {
        { "synthetic(x=float32(3))", "give the number of rows" },
        { "synthetic(x=float32(3),rows=0)", "rows=0: a whole number of at least 1" },
        { "synthetic(x=float16(3),rows=4)", "'x=float16'; a field is" },
        { "synthetic(x,rows=4)", "'x='; a field is" },
        { "synthetic(x=int,rows=4)", "give the limit" },
        { "synthetic(y=int(3),rows=4)", "no array named x" },
        { "synthetic(x=float32(3),rows=4):more", "nothing follows" },
        { "synthetic(x=float32(999999999,999999999,999999999),rows=4)", "larger" },
        { "synthetic:x", "nothing follows" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        keel_dataset *d = NULL;
        const int64_t live = keel_memory_live();
        assert_true(keel_dataset_open(&d, bad[i][0], NULL) < 0);
        if (!strstr(keel_error(), bad[i][1])) fail_msg("%s: %s", bad[i][0], keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void each_failed_allocation_is_reported_and_nothing_leaks(void **state)
{
    static double x[37 * 90];
    files_begin();
    files_write("a.bin", "abcdefghijklmn", 14);
    const char *const specs[] = { KINDS_H5, raw_spec("y=uint8,x=uint8(2,1,3):chw", "a.bin"),
                                  "synthetic(x=float32(7),y=int(3),rows=12)" };
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int64_t i = 0, done = 0; !done; i++) {
            const int64_t live = keel_memory_live();
            keel_dataset *d = NULL;
            keel_dataset_options o = KEEL_DATASET_OPTIONS;
            const char *const inputs[] = { "x=chunks/all" };
            o.inputs = inputs;
            o.n_input = k == 0;
            keel_memory_fail_at(i);
            keel_status s = keel_dataset_open(&d, specs[k], &o);
            if (s >= 0) s = read_rows(d, x, NULL, false, -1);
            keel_memory_fail_at(-1);
            if (s < 0 && s != KEEL_ENOMEM) fail_msg("%s: %s", specs[k], keel_error());
            keel_dataset_destroy(d);
            assert_int_equal(keel_memory_live(), live);
            assert_true(i < 400);
            done = s >= 0 && i > 40; /* a chunk that the cache has no memory for is read too */
        }
    files_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_h5py_wrote_is_read),
        cmocka_unit_test(an_array_that_cannot_be_read_is_refused_by_name),
        cmocka_unit_test(damaged_files_are_refused_and_hurt_nobody),
        cmocka_unit_test(a_damaged_chunk_is_named),
        cmocka_unit_test(fields_are_chosen_by_their_names),
        cmocka_unit_test(numbers_that_nobody_wants_are_not_made),
        cmocka_unit_test(records_are_read_by_their_list),
        cmocka_unit_test(a_wrong_list_of_records_is_one_clear_line),
        cmocka_unit_test(a_large_npy_is_read_row_by_row),
        cmocka_unit_test(drawn_rows_are_a_function_of_seed_and_index),
        cmocka_unit_test(a_wrong_drawn_field_is_one_clear_line),
        cmocka_unit_test(each_failed_allocation_is_reported_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
