/* model.weights.h5: our reader against libhdf5, what we write read by both, and hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "io/npz.h"
#include "io/weights_h5.h"
#include "io/zip.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const golden[] = { "sequential_adam", "sequential_plain", "sequential_dropout",
                                      "functional_sgd", "functional_adamw" };

static void *golden_image(const char *name, size_t *n)
{
    char path[128];
    keel_zip *z = NULL;
    void *image = NULL;
    snprintf(path, sizeof path, "golden/%s.keras", name);
    assert_int_equal(keel_zip_open(&z, path), KEEL_OK);
    assert_int_equal(keel_zip_read(z, "model.weights.h5", 1 << 20, &image, n), KEEL_OK);
    keel_zip_close(z);
    return image;
}

/* ---- libhdf5 as the judge ---- */

static hid_t open_image(void *image, size_t n)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, 0);
    H5Pset_file_image(access, image, n);
    const hid_t file = H5Fopen("image", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    assert_true(file >= 0);
    return file;
}

typedef struct judge {
    const keel_weights *w;
    int arrays, groups;
} judge;

static herr_t compare(hid_t file, const char *name, const H5O_info_t *info, void *data)
{
    judge *j = data;
    if (info->type == H5O_TYPE_GROUP) {
        if (strcmp(name, ".") != 0) {
            assert_true(keel_weights_has_group(j->w, name));
            j->groups++;
        }
        return 0;
    }
    const keel_weight *a = keel_weights_find(j->w, name);
    assert_non_null(a);
    const hid_t array = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(array);
    hsize_t dims[KEEL_RANK_MAX];
    assert_int_equal(H5Sget_simple_extent_ndims(space), a->shape.rank);
    H5Sget_simple_extent_dims(space, dims, NULL);
    for (int i = 0; i < a->shape.rank; i++) assert_int_equal(dims[i], a->shape.dim[i]);
    const size_t n = (size_t)keel_shape_count(&a->shape) * keel_dtype_size(a->dtype);
    const hid_t type = a->dtype == KEEL_FLOAT32   ? H5T_NATIVE_FLOAT
                       : a->dtype == KEEL_FLOAT64 ? H5T_NATIVE_DOUBLE
                       : a->dtype == KEEL_UINT8   ? H5T_NATIVE_UINT8
                       : a->dtype == KEEL_INT32   ? H5T_NATIVE_INT32
                                                  : H5T_NATIVE_INT64;
    void *theirs = calloc(n + 1, 1), *ours = calloc(n + 1, 1);
    if (n) assert_true(H5Dread(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, theirs) >= 0);
    keel_weight_copy(a, ours);
    assert_memory_equal(theirs, ours, n);
    free(theirs);
    free(ours);
    H5Sclose(space);
    H5Dclose(array);
    j->arrays++;
    return 0;
}

static void judge_image(void *image, size_t n)
{
    keel_weights *w = NULL;
    if (keel_weights_decode(&w, image, n) < 0) fail_msg("%s", keel_error());
    judge j = { .w = w };
    const hid_t file = open_image(image, n);
    assert_true(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, compare, &j, H5O_INFO_BASIC) >= 0);
    H5Fclose(file);
    assert_int_equal(j.arrays, keel_weights_count(w));
    assert_true(j.groups > 0);
    keel_weights_destroy(w);
}

static void our_reader_and_libhdf5_see_the_same_in_files_of_keras(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        size_t n;
        void *image = golden_image(golden[i], &n);
        judge_image(image, n);
        keel_free(image);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void weights_are_what_h5py_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        char path[128], name[600];
        size_t n;
        void *image = golden_image(golden[i], &n);
        keel_weights *w = NULL;
        keel_zip *z = NULL;
        snprintf(path, sizeof path, "golden/%s.npz", golden[i]);
        assert_int_equal(keel_weights_decode(&w, image, n), KEEL_OK);
        assert_int_equal(keel_zip_open(&z, path), KEEL_OK);
        for (int64_t k = 0; k < keel_weights_count(w); k++) {
            const keel_weight *a = keel_weights_at(w, k);
            keel_tensor t = { 0 };
            snprintf(name, sizeof name, "saved/%s", a->path);
            assert_int_equal(keel_npz_read(&t, z, name), KEEL_OK);
            const size_t bytes = (size_t)keel_shape_count(&t.shape) * keel_dtype_size(t.dtype);
            void *got = calloc(bytes, 1);
            assert_int_equal(keel_weights_read(w, a->path, t.dtype, &t.shape, got), KEEL_OK);
            assert_memory_equal(got, t.data, bytes);
            free(got);
            keel_tensor_free(&t);
        }
        keel_zip_close(z);
        keel_weights_destroy(w);
        keel_free(image);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- writing ---- */

static float numbers[6] = { 1, -2, 3.5f, 4, 5, 6 };
static int64_t iteration = 41;

/* A small list; order 1 adds in another order than 0. */
static keel_weights *make_list(int order)
{
    const struct {
        const char *path, *name;
        keel_tensor t;
    } rows[] = {
        { "vars", "model", { 0 } },
        { "layers/flatten/vars", "flatten", { 0 } },
        { "layers/dense/vars", "my_dense", { 0 } },
        { "layers/dense/vars/0", NULL, { KEEL_FLOAT32, { 2, { 2, 3 } }, numbers } },
        { "layers/dense/vars/1", NULL, { KEEL_FLOAT32, { 1, { 3 } }, numbers } },
        { "layers/empty/vars/0", NULL, { KEEL_FLOAT32, { 2, { 0, 3 } }, NULL } },
        { "optimizer/vars", "adam", { 0 } },
        { "optimizer/vars/0", NULL, { KEEL_INT64, { 0 }, &iteration } },
        { "optimizer/vars/1", NULL, { KEEL_FLOAT64, { 0 }, &(double){ 0.25 } } },
    };
    const int n = sizeof rows / sizeof *rows;
    keel_weights *w = NULL;
    assert_int_equal(keel_weights_create(&w), KEEL_OK);
    for (int k = 0; k < n; k++) {
        const int i = order ? n - 1 - k : k;
        if (rows[i].name)
            assert_int_equal(keel_weights_add_group(w, rows[i].path, rows[i].name), KEEL_OK);
        else
            assert_int_equal(keel_weights_add(w, rows[i].path, &rows[i].t), KEEL_OK);
    }
    return w;
}

/* The bytes of the list as a part of a file, behind others. */
static keel_status encode(const keel_weights *w, void **image, size_t *n)
{
    enum { BEFORE = 1001 };
    static const char before[BEFORE] = "what was there";
    const char *folder = getenv("KEEL_TEST_TMP");
    char path[512];
    keel_new_file *f = NULL;
    uint64_t n_bytes = 0;
    snprintf(path, sizeof path, "%s/part.bin", folder ? folder : "/tmp");
    KEEL_TRY(keel_new_file_create(&f, path));
    keel_status s = keel_new_file_write(f, before, BEFORE);
    if (s >= 0) s = keel_weights_write(w, f, BEFORE, &n_bytes);
    void *bytes = s >= 0 ? keel_calloc((size_t)n_bytes, 1) : NULL;
    if (s >= 0) s = bytes ? keel_new_file_read_at(f, BEFORE, bytes, (size_t)n_bytes) : KEEL_ENOMEM;
    if (s >= 0) {
        char one, first[BEFORE];
        assert_int_equal(keel_new_file_read_at(f, BEFORE + (int64_t)n_bytes, &one, 1), KEEL_EIO);
        assert_int_equal(keel_new_file_read_at(f, 0, first, BEFORE), KEEL_OK);
        assert_memory_equal(first, before, BEFORE);
    }
    keel_new_file_abort(f);
    if (s < 0) {
        keel_free(bytes);
        return s;
    }
    *image = bytes;
    *n = (size_t)n_bytes;
    return KEEL_OK;
}

static void *make_image(int order, size_t *n)
{
    void *image = NULL;
    keel_weights *w = make_list(order);
    if (encode(w, &image, n) < 0) fail_msg("%s", keel_error());
    keel_weights_destroy(w);
    return image;
}

static void what_is_written_is_read_by_both(void **state)
{
    (void)state;
    size_t n, n_other;
    void *image = make_image(0, &n), *other = make_image(1, &n_other);
    assert_int_equal(n, n_other);
    assert_memory_equal(image, other, n);
    judge_image(image, n);

    const hid_t file = open_image(image, n);
    const hid_t group = H5Gopen2(file, "layers/dense/vars", H5P_DEFAULT);
    const hid_t attribute = H5Aopen(group, "name", H5P_DEFAULT), type = H5Aget_type(attribute);
    char *text = NULL;
    assert_true(H5Aread(attribute, type, &text) >= 0);
    assert_string_equal(text, "my_dense");
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Gclose(group);
    H5Fclose(file);
    keel_free(image);
    keel_free(other);
    assert_int_equal(keel_memory_live(), 0);
}

static void hundreds_of_layers_make_a_high_tree(void **state)
{
    (void)state;
    keel_weights *w = NULL;
    void *image = NULL;
    size_t n;
    assert_int_equal(keel_weights_create(&w), KEEL_OK);
    for (int i = 0; i < 400; i++) {
        char path[64];
        const keel_tensor t = { KEEL_FLOAT32, KEEL_SHAPE(6), numbers };
        snprintf(path, sizeof path, "layers/dense_%d/vars", i);
        assert_int_equal(keel_weights_add_group(w, path, "dense"), KEEL_OK);
        strcat(path, "/0");
        assert_int_equal(keel_weights_add(w, path, &t), KEEL_OK);
    }
    assert_int_equal(encode(w, &image, &n), KEEL_OK);
    judge_image(image, n);
    keel_weights_destroy(w);
    keel_free(image);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_wrong_path_or_a_second_one_is_refused(void **state)
{
    (void)state;
    const char *bad[] = { "", "/a", "a/", "a//b", "layers/dense/vars/0" };
    keel_weights *w = make_list(0);
    const keel_tensor t = { KEEL_FLOAT32, KEEL_SHAPE(6), numbers };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(keel_weights_add(w, bad[i], &t), KEEL_EARG);
    assert_int_equal(keel_weights_add_group(w, "vars", "again"), KEEL_EARG);
    void *image = NULL;
    size_t n;
    assert_int_equal(keel_weights_add(w, "layers/dense/vars/0/below", &t), KEEL_OK);
    assert_int_equal(encode(w, &image, &n), KEEL_EIO); /* an array is no group */
    assert_non_null(strstr(keel_error(), "layers/dense/vars/0/below"));
    keel_weights_destroy(w);
    assert_int_equal(keel_memory_live(), 0);
}

static void a_full_disk_is_told_as_such_and_libhdf5_goes_on(void **state)
{
    (void)state;
    uint64_t n_bytes = 7;
    size_t n;
    keel_new_file *full = NULL;
    keel_weights *w = make_list(0);
    assert_int_equal(keel_new_file_join(&full, "/dev/full"), KEEL_OK);
    assert_int_equal(keel_weights_write(w, full, 0, &n_bytes), KEEL_EIO);
    assert_non_null(strstr(keel_error(), "/dev/full: writing: No space left on device"));
    assert_int_equal(n_bytes, 7);
    keel_new_file_abort(full);
    keel_weights_destroy(w);
    void *image = make_image(0, &n);
    judge_image(image, n);
    keel_free(image);
    assert_int_equal(keel_memory_live(), 0);
}

static keel_status read_image(const void *image, uint64_t at, void *to, size_t n)
{
    memcpy(to, (const char *)image + at, n);
    return KEEL_OK;
}

/* The list of an image, or of a file that is not in memory. */
static keel_weights *list_of(const void *image, size_t n, bool in_memory)
{
    keel_weights *w = NULL;
    const keel_h5_source source = { read_image, image, n };
    assert_int_equal(in_memory ? keel_weights_decode(&w, image, n) : keel_weights_open(&w, &source),
                     KEEL_OK);
    return w;
}

static void converts_and_refuses(bool in_memory)
{
    size_t n;
    void *image = make_image(0, &n);
    double reals[6];
    int32_t small = 0;
    uint8_t tiny = 0;
    const keel_shape scalar = { 0 }, right = KEEL_SHAPE(2, 3), turned = KEEL_SHAPE(3, 2);
    keel_weights *w = list_of(image, n, in_memory);
    const char *dense = "layers/dense/vars/0";
    assert_int_equal(keel_weights_read(w, dense, KEEL_FLOAT64, &right, reals), KEEL_OK);
    for (int i = 0; i < 6; i++) assert_true(reals[i] == numbers[i]);
    assert_int_equal(keel_weights_read(w, "optimizer/vars/0", KEEL_INT32, &scalar, &small),
                     KEEL_OK);
    assert_int_equal(small, 41);
    assert_int_equal(keel_weights_read(w, dense, KEEL_FLOAT32, &turned, reals), KEEL_ESHAPE);
    assert_non_null(strstr(keel_error(), "(2, 3)"));
    assert_int_equal(keel_weights_read(w, dense, KEEL_INT32, &right, reals), KEEL_EUNSUP);
    assert_int_equal(keel_weights_read(w, "layers/dense/vars/2", KEEL_FLOAT32, &scalar, reals),
                     KEEL_EFORMAT);
    assert_false(keel_weights_has_group(w, "layers/dense/vars/0"));
    assert_true(keel_weights_has_group(w, "layers/flatten/vars"));
    keel_weights_destroy(w);
    keel_free(image);
    iteration = 300;
    image = make_image(0, &n);
    w = list_of(image, n, in_memory);
    assert_int_equal(keel_weights_read(w, "optimizer/vars/0", KEEL_UINT8, &scalar, &tiny),
                     KEEL_EFORMAT);
    keel_weights_destroy(w);
    keel_free(image);
    iteration = 41;
    assert_int_equal(keel_memory_live(), 0);
}

static void reading_converts_by_value_and_refuses_the_rest(void **state)
{
    (void)state;
    converts_and_refuses(true);
    converts_and_refuses(false);
}

static void a_list_that_is_not_in_memory_reads_what_one_in_memory_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        size_t n;
        void *image = golden_image(golden[i], &n);
        keel_weights *w = list_of(image, n, true), *there = list_of(image, n, false);
        assert_int_equal(keel_weights_count(there), keel_weights_count(w));
        for (int64_t k = 0; k < keel_weights_count(w); k++) {
            const keel_weight *a = keel_weights_at(w, k);
            const bool real = keel_dtype_is_real(a->dtype);
            const keel_dtype as[] = { a->dtype, real ? KEEL_FLOAT64 : KEEL_INT64 };
            const size_t bytes = 8 * (size_t)keel_shape_count(&a->shape);
            for (int d = 0; d < 2; d++) {
                char *p = calloc(bytes + 1, 1), *q = calloc(bytes + 1, 1);
                assert_int_equal(keel_weights_read(w, a->path, as[d], &a->shape, p), KEEL_OK);
                assert_int_equal(keel_weights_read(there, a->path, as[d], &a->shape, q), KEEL_OK);
                assert_memory_equal(p, q, bytes);
                free(p);
                free(q);
            }
        }
        keel_weights_destroy(w);
        keel_weights_destroy(there);
        keel_free(image);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* ---- hostile files ---- */

/* The place of the nth block that begins with `mark`. */
static size_t block(const unsigned char *image, size_t n, const char *mark, int nth)
{
    for (size_t i = 0; i + 4 <= n; i++)
        if (!memcmp(image + i, mark, 4) && nth-- == 0) return i;
    fail_msg("no %s", mark);
    return 0;
}

/* The place of the nth header message of this type with at least this size, in any header. */
static size_t message(const unsigned char *image, size_t n, unsigned type, int nth)
{
    for (size_t i = 96; i + 16 <= n; i += 8) {
        if (image[i] != 1 || image[i + 1] || image[i + 3] || image[i + 4] != 1 || image[i + 5])
            continue; /* not a header: version, messages, one link */
        const size_t length = image[i + 8] + 256u * image[i + 9];
        for (size_t k = i + 16; k + 8 <= i + 16 + length && k + 8 <= n;
             k += 8u + image[k + 2] + 256u * image[k + 3])
            if (image[k] == type && !image[k + 1] && nth-- == 0) return k;
    }
    fail_msg("no message %u", type);
    return 0;
}

static void a_crafted_file_is_refused_by_name(void **state)
{
    (void)state;
    enum { ABSOLUTE, MARK, MESSAGE };
    const struct {
        const char *says;
        int from;
        const char *mark; /* of a block */
        int type, nth;    /* of a message; nth of either */
        int at, n_bytes;  /* what is changed, from there */
        uint64_t value;
    } bad[] = {
        { "not an HDF5 file", ABSOLUTE, 0, 0, 0, 0, 1, 'X' },
        { "superblock version 2", ABSOLUTE, 0, 0, 0, 8, 1, 2 },
        { "does not write", ABSOLUTE, 0, 0, 0, 13, 1, 4 },
        { "B-trees of order", ABSOLUTE, 0, 0, 0, 16, 2, 0 },
        { "B-trees of order", ABSOLUTE, 0, 0, 0, 18, 2, 65535 },
        { "base address", ABSOLUTE, 0, 0, 0, 24, 8, 8 },
        { "cut short", ABSOLUTE, 0, 0, 0, 40, 8, UINT64_MAX },
        { "damaged superblock", ABSOLUTE, 0, 0, 0, 40, 8, 95 },
        { "cut short", ABSOLUTE, 0, 0, 0, 64, 8, UINT64_MAX },
        { "of version", ABSOLUTE, 0, 0, 0, 64, 8, 0 },
        { "wrong level", MARK, "TREE", 0, 0, 5, 1, 200 },
        { "not the B-tree", MARK, "TREE", 0, 0, 4, 1, 1 },
        { "children", MARK, "TREE", 0, 0, 6, 2, 33 },
        { "does not fit", MARK, "TREE", 0, 0, 32, 8, UINT64_MAX - 7 },
        { "not a symbol node", MARK, "SNOD", 0, 0, 6, 2, 9 },
        { "not a symbol node", MARK, "SNOD", 0, 0, 0, 1, 'X' },
        { "symbolic link", MARK, "SNOD", 0, 0, 8 + 16, 4, 2 },
        { "outside its heap", MARK, "SNOD", 0, 0, 8, 8, 1 << 20 },
        { "overlaps another", MARK, "SNOD", 0, 0, 8 + 8, 8, 96 }, /* the first child is the root */
        { "not a local heap", MARK, "HEAP", 0, 0, 4, 1, 1 },
        { "does not fit", MARK, "HEAP", 0, 0, 8, 8, UINT64_MAX },
        { "does not fit", MARK, "HEAP", 0, 0, 24, 8, 1 << 30 },
        { "shared", MESSAGE, 0, 1, 0, 4, 1, 2 },
        { "outside its header", MESSAGE, 0, 1, 0, 2, 2, 0xFFF8 },
        { "outside its header", MESSAGE, 0, 1, 0, 2, 2, 3 },
        { "filter", MESSAGE, 0, 1, 0, 0, 2, 0x0B },
        { "external file", MESSAGE, 0, 1, 0, 0, 2, 0x07 },
        { "a link", MESSAGE, 0, 1, 0, 0, 2, 0x06 },
        { "0x1234", MESSAGE, 0, 1, 0, 0, 2, 0x1234 },
        { "second dataspace", MESSAGE, 0, 3, 0, 0, 2, 1 },
        { "dimensions", MESSAGE, 0, 1, 0, 9, 1, 200 },
        { "cut short", MESSAGE, 0, 1, 0, 9, 1, 6 },
        { "null dataspace", MESSAGE, 0, 1, 0, 8, 4, 0x02000002 },
        { "can grow", MESSAGE, 0, 1, 0, 16, 8, INT64_MAX },
        { "can grow", MESSAGE, 0, 1, 0, 32, 8, UINT64_MAX },
        { "(2, 3, 2, 3)", MESSAGE, 0, 1, 0, 8, 8, 0x0401 },
        { "float with 2 bytes", MESSAGE, 0, 3, 0, 12, 4, 2 },
        { "train before quantize()", MESSAGE, 0, 3, 0, 8, 8, 0x0000000100000810 },
        { "supported are", MESSAGE, 0, 3, 0, 9, 1, 0x21 }, /* big-endian */
        { "chunked", MESSAGE, 0, 8, 0, 9, 1, 2 },
        { "compact", MESSAGE, 0, 8, 0, 9, 1, 0 },
        { "layout of unknown", MESSAGE, 0, 8, 0, 8, 1, 9 },
        { "does not fit", MESSAGE, 0, 8, 0, 10, 8, 1 << 30 },
        { "does not fit", MESSAGE, 0, 8, 0, 10, 8, UINT64_MAX },
        { "lies within", MESSAGE, 0, 8, 0, 10, 8, 0 }, /* the elements lie in the superblock */
        { "it needs", MESSAGE, 0, 8, 0, 18, 8, 1 << 30 },
        { "attribute", MARK, "name", 0, 0, -6, 2, 60000 },
        { "attribute", MARK, "name", 0, 0, -8, 1, 9 },
        { "group and an array", MESSAGE, 0, 8, 0, 0, 2, 0x11 },
    };
    size_t n;
    unsigned char *image = make_image(0, &n);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char *copy = malloc(n);
        memcpy(copy, image, n);
        const size_t at =
            (size_t)bad[i].at + (bad[i].from == MARK ? block(image, n, bad[i].mark, bad[i].nth)
                                 : bad[i].from == MESSAGE
                                     ? message(image, n, (unsigned)bad[i].type, bad[i].nth)
                                     : 0);
        for (int k = 0; k < bad[i].n_bytes; k++)
            copy[at + (size_t)k] = (unsigned char)(bad[i].value >> (8 * k));
        keel_weights *w = NULL;
        const keel_status s = keel_weights_decode(&w, copy, n);
        if (s >= 0) fail_msg("%zu: %s: accepted", i, bad[i].says);
        if (!strstr(keel_error(), bad[i].says))
            fail_msg("%zu: %s: %s", i, bad[i].says, keel_error());
        assert_null(w);
        free(copy);
    }
    keel_free(image);
    assert_int_equal(keel_memory_live(), 0);
}

static void any_cut_or_changed_byte_is_survived(void **state)
{
    (void)state;
    size_t n;
    unsigned char *image = make_image(0, &n);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = malloc(cut + 1);
        keel_weights *w = NULL;
        memcpy(copy, image, cut);
        assert_true(keel_weights_decode(&w, copy, cut) < 0);
        free(copy);
    }
    const unsigned char flips[] = { 0x01, 0x10, 0x80, 0xFF };
    for (size_t i = 0; i < 4 * n; i++) {
        keel_weights *w = NULL;
        image[i / 4] ^= flips[i % 4];
        if (keel_weights_decode(&w, image, n) >= 0) {
            unsigned char all[256]; /* the shapes may have changed, the sizes not much */
            for (int64_t k = 0; k < keel_weights_count(w); k++)
                if (keel_shape_count(&keel_weights_at(w, k)->shape) <= 32)
                    keel_weight_copy(keel_weights_at(w, k), all);
            keel_weights_destroy(w);
        }
        image[i / 4] ^= flips[i % 4];
    }
    keel_free(image);
    assert_int_equal(keel_memory_live(), 0);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    keel_status s = KEEL_ENOMEM;
    for (int i = 0; s < 0 && i < 200; i++) {
        keel_weights *w = NULL, *again = NULL;
        const keel_tensor t = { KEEL_FLOAT32, KEEL_SHAPE(6), numbers };
        void *image = NULL;
        size_t n = 0;
        keel_memory_fail_at(i);
        s = keel_weights_create(&w);
        if (s >= 0) s = keel_weights_add_group(w, "layers/dense/vars", "dense");
        if (s >= 0) s = keel_weights_add(w, "layers/dense/vars/0", &t);
        if (s >= 0) s = encode(w, &image, &n);
        if (s >= 0) s = keel_weights_decode(&again, image, n);
        keel_memory_fail_at(-1);
        keel_weights_destroy(w);
        keel_weights_destroy(again);
        keel_free(image);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
        assert_int_equal(keel_memory_live(), 0);
    }
    assert_int_equal(s, KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_reader_and_libhdf5_see_the_same_in_files_of_keras),
        cmocka_unit_test(weights_are_what_h5py_read),
        cmocka_unit_test(what_is_written_is_read_by_both),
        cmocka_unit_test(hundreds_of_layers_make_a_high_tree),
        cmocka_unit_test(a_wrong_path_or_a_second_one_is_refused),
        cmocka_unit_test(a_full_disk_is_told_as_such_and_libhdf5_goes_on),
        cmocka_unit_test(reading_converts_by_value_and_refuses_the_rest),
        cmocka_unit_test(a_list_that_is_not_in_memory_reads_what_one_in_memory_does),
        cmocka_unit_test(a_crafted_file_is_refused_by_name),
        cmocka_unit_test(any_cut_or_changed_byte_is_survived),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
