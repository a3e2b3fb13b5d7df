/* .npy and .npz: what NumPy writes is read, what nobody should trust is refused. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "data_files.h"
#include "io/npz.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[512];

static const char *in_scratch(const char *name)
{
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(place, sizeof place, "%s/%s", folder ? folder : "/tmp", name);
    return place;
}

/* A .npy in memory: version 1, the dict as given, then n zero bytes. */
static size_t build(unsigned char *out, const char *dict, size_t n)
{
    const size_t length = strlen(dict);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (unsigned char)length;
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + 10, dict, length);
    memset(out + 10 + length, 0, n);
    return 10 + length + n;
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    const keel_shape shapes[] = {
        { 0 }, KEEL_SHAPE(3), KEEL_SHAPE(2, 3), KEEL_SHAPE(0, 4), KEEL_SHAPE(1, 2, 1, 2, 1, 2)
    };
    for (int type = 0; type <= KEEL_BOOL; type++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const char *path = in_scratch("round.npy");
            keel_tensor a = { 0 }, b = { 0 };
            assert_int_equal(keel_tensor_create(&a, (keel_dtype)type, &shapes[i]), KEEL_OK);
            const size_t n = (size_t)keel_shape_count(&a.shape) * keel_dtype_size((keel_dtype)type);
            for (size_t k = 0; k < n; k++)
                ((unsigned char *)a.data)[k] =
                    (unsigned char)(type == KEEL_BOOL ? k % 2 : 7 * k + 1);
            assert_int_equal(keel_npy_write(path, &a), KEEL_OK);
            struct stat st;
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(((size_t)st.st_size - n) % 64, 0);
            assert_int_equal(keel_npy_read(&b, path), KEEL_OK);
            assert_int_equal(b.dtype, type);
            assert_true(keel_shape_equal(&a.shape, &b.shape));
            assert_memory_equal(a.data, b.data, n);
            keel_tensor_free(&a);
            keel_tensor_free(&b);
        }
    assert_int_equal(keel_memory_live(), 0);
}

#define DICT(descr, order, shape)                                                                  \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"

static void small_types_are_widened(void **state)
{
    (void)state;
    const struct {
        const char *descr;
        unsigned char bytes[16];
        size_t n;
        keel_dtype dtype;
        int64_t want[2];
    } cases[] = {
        { "|b1", { 1, 0 }, 2, KEEL_BOOL, { 1, 0 } },
        { "|b1", { 255, 2 }, 2, KEEL_BOOL, { 1, 1 } },
        { "|i1", { 255, 127 }, 2, KEEL_INT32, { -1, 127 } },
        { "<i2", { 255, 255, 0, 128 }, 4, KEEL_INT32, { -1, -32768 } },
        { "<u2", { 255, 255, 0, 128 }, 4, KEEL_INT32, { 65535, 32768 } },
        { "|u1", { 255, 3 }, 2, KEEL_UINT8, { 255, 3 } },
        { "<u4", { 255, 255, 255, 255, 1 }, 8, KEEL_INT64, { 4294967295, 1 } },
        { "<u1", { 255, 3 }, 2, KEEL_UINT8, { 255, 3 } },
        { "<i1", { 255, 127 }, 2, KEEL_INT32, { -1, 127 } },
        { "<u8", { 255, 255, 255, 255, 255, 255, 255, 127, 1 }, 16, KEEL_INT64, { INT64_MAX, 1 } },
        { ">u8", { 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3 }, 16, KEEL_INT64, { 258, 3 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[256];
        char dict[128];
        snprintf(dict, sizeof dict, "{'shape': (2,), 'fortran_order': False, 'descr': '%s'}\n",
                 cases[i].descr);
        const size_t n = build(file, dict, cases[i].n);
        memcpy(file + n - cases[i].n, cases[i].bytes, cases[i].n);
        keel_tensor t = { 0 };
        assert_int_equal(keel_file_write(in_scratch("w.npy"), file, n), KEEL_OK);
        for (int from = 0; from < 2; from++) {
            assert_int_equal(
                from ? keel_npy_read(&t, place) : keel_npy_decode(&t, file, n, "t.npy"), KEEL_OK);
            assert_int_equal(t.dtype, cases[i].dtype);
            for (int k = 0; k < 2; k++)
                assert_int_equal(keel_dtype_size(t.dtype) == 1 ? ((uint8_t *)t.data)[k]
                                 : t.dtype == KEEL_INT64       ? ((int64_t *)t.data)[k]
                                                               : ((int32_t *)t.data)[k],
                                 cases[i].want[k]);
            keel_tensor_free(&t);
        }
    }
}

static void either_byte_order_and_half_precision_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        int n; /* bytes of both elements */
        unsigned char bytes[16];
        double want[2];
    } cases[] = {
        { "<f2", 4, { 0x00, 0x3E, 0x00, 0xC0 }, { 1.5, -2 } },
        { ">f2", 4, { 0x3E, 0x00, 0xC0, 0x00 }, { 1.5, -2 } },
        { "<f2", 4, { 0x01, 0x00, 0xFF, 0x83 }, { 0x1p-24, -1023 * 0x1p-24 } }, /* subnormal */
        { "<f2", 4, { 0x00, 0x04, 0xFF, 0x7B }, { 0x1p-14, 65504 } },
        { "<f2", 4, { 0x00, 0x7C, 0x00, 0xFC }, { INFINITY, -INFINITY } },
        { "<f2", 4, { 0x00, 0x00, 0x00, 0x80 }, { 0, -0.0 } },
        { ">f4", 8, { 0x40, 0x49, 0, 0, 0xBF, 0x80, 0, 0 }, { 3.140625, -1 } },
        { ">f8", 16, { 0x3F, 0xF8, 0, 0, 0, 0, 0, 0, 0xC0 }, { 1.5, -2 } },
        { ">i2", 4, { 0x01, 0x02, 0xFF, 0xFE }, { 258, -2 } },
        { ">u2", 4, { 0x01, 0x02, 0xFF, 0xFE }, { 258, 65534 } },
        { ">i4", 8, { 0, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFE }, { 258, -2 } },
        { ">u4", 8, { 0, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFE }, { 258, 4294967294 } },
        { ">i8", 16, { 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1 }, { 258, 4294967296 } },
        { ">u1", 2, { 7, 200 }, { 7, 200 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[256];
        char dict[128];
        keel_tensor t = { 0 };
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}",
                 cases[i].descr);
        const size_t n = build(file, dict, (size_t)cases[i].n);
        memcpy(file + n - cases[i].n, cases[i].bytes, (size_t)cases[i].n);
        assert_int_equal(keel_file_write(in_scratch("order.npy"), file, n), KEEL_OK);
        for (int from = 0; from < 2; from++) {
            if ((from ? keel_npy_read(&t, place) : keel_npy_decode(&t, file, n, "t.npy")) < 0)
                fail_msg("%s: %s", cases[i].descr, keel_error());
            for (int k = 0; k < 2; k++) {
                const double got = t.dtype == KEEL_FLOAT32   ? (double)((float *)t.data)[k]
                                   : t.dtype == KEEL_FLOAT64 ? ((double *)t.data)[k]
                                   : t.dtype == KEEL_UINT8   ? ((uint8_t *)t.data)[k]
                                   : t.dtype == KEEL_INT32   ? ((int32_t *)t.data)[k]
                                                             : (double)((int64_t *)t.data)[k];
                if (got != cases[i].want[k] || signbit(got) != signbit(cases[i].want[k]))
                    fail_msg("%s: %g, not %g", cases[i].descr, got, cases[i].want[k]);
            }
            keel_tensor_free(&t);
        }
    }
}

static void an_array_in_fortran_order_is_read_row_by_row(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        int size;
    } types[] = { { "<i4", 4 }, { "|u1", 1 }, { "<i2", 2 }, { "<u4", 4 }, { "<i8", 8 } };
    const struct {
        const char *text;
        keel_shape shape;
    } shapes[] = { { "(7,)", KEEL_SHAPE(7) },
                   { "(3, 5)", KEEL_SHAPE(3, 5) },
                   { "(2, 3, 4)", KEEL_SHAPE(2, 3, 4) },
                   { "(0, 4)", KEEL_SHAPE(0, 4) },
                   { "(1, 1, 1)", KEEL_SHAPE(1, 1, 1) },
                   { "(2, 600)", KEEL_SHAPE(2, 600) } }; /* longer than a piece */
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            unsigned char file[256 + 1200 * 8];
            char dict[128];
            keel_tensor got = { 0 };
            keel_zip *z = NULL;
            const keel_shape *shape = &shapes[i].shape;
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': True, 'shape': %s}",
                     types[t].descr, shapes[i].text);
            const int64_t count = keel_shape_count(shape);
            const size_t bytes = (size_t)(count * types[t].size), n = build(file, dict, bytes);
            for (int64_t f = 0; f < count; f++) { /* the f-th stored has row-major index r */
                int64_t rest = f, r = 0, at[KEEL_RANK_MAX];
                for (int d = 0; d < shape->rank; d++) {
                    at[d] = rest % shape->dim[d];
                    rest /= shape->dim[d];
                }
                for (int d = 0; d < shape->rank; d++) r = r * shape->dim[d] + at[d];
                file[n - bytes + (size_t)(f * types[t].size)] = (unsigned char)(r % 100);
            }
            const keel_zip_member m[] = { { "a.npy", file, n } };
            assert_int_equal(keel_zip_write(in_scratch("f.npz"), m, 1), KEEL_OK);
            assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
            assert_int_equal(keel_file_write(in_scratch("f.npy"), file, n), KEEL_OK);
            for (int from = 0; from < 3; from++) {
                if (from == 0)
                    assert_int_equal(keel_npz_read(&got, z, "a"), KEEL_OK);
                else if (from == 1)
                    assert_int_equal(keel_npy_read(&got, place), KEEL_OK);
                else
                    assert_int_equal(keel_npy_decode(&got, file, n, "f.npy"), KEEL_OK);
                assert_true(keel_shape_equal(&got.shape, shape));
                const size_t wide = keel_dtype_size(got.dtype);
                for (int64_t r = 0; r < count; r++)
                    assert_int_equal(((unsigned char *)got.data)[(size_t)r * wide], r % 100);
                keel_tensor_free(&got);
            }
            keel_zip_close(z);
        }
    assert_int_equal(keel_memory_live(), 0);
}

static void arrays_of_texts_are_handed_out_as_utf_8(void **state)
{
    (void)state;
    /* As NumPy stores ['cat', '', 'hä€😀'] and [b'cat', b'', b'dog.']; the last four in two orders.
     */
    static const uint32_t wide[3][4] = { { 'c', 'a', 't' }, { 0 }, { 'h', 0xE4, 0x20AC, 0x1F600 } };
    static const unsigned char swapped[48] = {
        [3] = 'c',   [7] = 'a',   [11] = 't',  [35] = 'h', [39] = 0xE4,
        [42] = 0x20, [43] = 0xAC, [45] = 0x01, [46] = 0xF6
    };
    static const char narrow[] = "cat\0\0\0\0\0dog.", square[] = "abcd";
    const struct {
        const char *dict;
        const void *data;
        size_t n;
        const char *want[4];
    } cases[] = {
        { DICT("'<U4'", "False", "(3,)"),
          wide,
          48,
          { "cat", "", "h\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80" } },
        { DICT("'>U4'", "False", "(3,)"),
          swapped,
          48,
          { "cat", "", "h\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80" } },
        { DICT("'|S4'", "False", "(3,)"), narrow, 12, { "cat", "", "dog." } },
        { DICT("'|S1'", "False", "(2, 2)"), square, 4, { "a", "b", "c", "d" } },
        { DICT("'|S1'", "True", "(2, 2)"), square, 4, { "a", "c", "b", "d" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[256];
        keel_npy_texts t = { 0 };
        keel_zip *z = NULL;
        const size_t n = build(file, cases[i].dict, cases[i].n);
        memcpy(file + n - cases[i].n, cases[i].data, cases[i].n);
        const keel_zip_member m[] = { { "a.npy", file, n } };
        assert_int_equal(keel_zip_write(in_scratch("t.npz"), m, 1), KEEL_OK);
        assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
        assert_int_equal(keel_file_write(in_scratch("t.npy"), file, n), KEEL_OK);
        for (int from = 0; from < 3; from++) {
            if (from == 0)
                assert_int_equal(keel_npz_read_texts(&t, z, "a"), KEEL_OK);
            else if (from == 1)
                assert_int_equal(keel_npy_read_texts(&t, place), KEEL_OK);
            else
                assert_int_equal(keel_npy_decode_texts(&t, file, n, "t.npy"), KEEL_OK);
            assert_int_equal(t.count, keel_shape_count(&t.shape));
            for (int64_t k = 0; k < t.count; k++) assert_string_equal(t.text[k], cases[i].want[k]);
            keel_npy_texts_free(&t);
        }
        keel_zip_close(z);
    }
    static const struct {
        const char *dict, *data;
        size_t n;
        keel_status want;
    } bad[] = {
        { DICT("'<U1'", "False", "(1,)"), "\0\0\x11\0", 4, KEEL_EFORMAT },      /* above U+10FFFF */
        { DICT("'<U1'", "False", "(1,)"), "\0\xD8\0\0", 4, KEEL_EFORMAT },      /* a surrogate */
        { DICT("'<U2'", "False", "(1,)"), "\0\0\0\0a\0\0\0", 8, KEEL_EFORMAT }, /* a zero inside */
        { DICT("'|S2'", "False", "(1,)"), "a\xFF", 2, KEEL_EFORMAT },
        { DICT("'<i4'", "False", "(1,)"), "\0\0\0\0", 4, KEEL_EUNSUP },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char file[256];
        keel_npy_texts t = { 0 };
        const size_t n = build(file, bad[i].dict, bad[i].n);
        memcpy(file + n - bad[i].n, bad[i].data, bad[i].n);
        assert_int_equal(keel_npy_decode_texts(&t, file, n, "t.npy"), bad[i].want);
        assert_null(t.text);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void a_whole_number_that_int64_has_not_is_refused(void **state)
{
    (void)state;
    static const char *const orders[] = { DICT("'<u8'", "False", "(1, 2)"),
                                          DICT("'>u8'", "False", "(1, 2)"),
                                          DICT("'<u8'", "True", "(1, 2)") };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        unsigned char file[256];
        keel_tensor t = { 0 };
        const size_t n = build(file, orders[i], 16);
        memset(file + n - 16, 255, 16);
        assert_int_equal(keel_file_write(in_scratch("w.npy"), file, n), KEEL_OK);
        for (int from = 0; from < 2; from++) {
            assert_int_equal(from ? keel_npy_read(&t, place)
                                  : keel_npy_decode(&t, file, n, "w.npy"),
                             KEEL_EDATA);
            assert_non_null(strstr(keel_error(), "w.npy: 18446744073709551615 of a uint64"));
        }
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void a_hostile_header_is_refused_by_name(void **state)
{
    (void)state;
    const struct {
        const char *dict, *says;
        size_t n;
        keel_status want;
    } bad[] = {
        { DICT("'<f4'", "True", "(2, 3)"), "needs 24", 23, KEEL_EFORMAT },
        { DICT("'<f4'", "True", "(4294967296, 4294967296)"), "larger", 4, KEEL_ESHAPE },
        { DICT("'<U3'", "False", "(1,)"), "texts", 12, KEEL_EUNSUP },
        { DICT("'|S3'", "True", "(1, 2)"), "texts", 6, KEEL_EUNSUP },
        { DICT("'|S0'", "False", "(9,)"), "'|S0'", 0, KEEL_EUNSUP },
        { DICT("'<U99999999999999999999'", "False", "(9,)"), "'<U9", 0, KEEL_EUNSUP },
        { DICT("'<U1000000000'", "False", "(9,)"), "'<U1", 0, KEEL_EUNSUP },
        { DICT("'|S268435456'", "False", "(99999999999, 1024)"), "larger", 4, KEEL_ESHAPE },
        { DICT("'|S268435456'", "False", "(1024, 1024)"), "needs", 4, KEEL_EFORMAT },
        { DICT("'=f4'", "False", "(2,)"), "'=f4'", 8, KEEL_EUNSUP },
        { DICT("'|i2'", "False", "(2,)"), "'|i2'", 4, KEEL_EUNSUP },
        { DICT("'<c8'", "False", "(1,)"), "'<c8'", 8, KEEL_EUNSUP },
        { DICT("'|O'", "False", "(1,)"), "'|O', Python objects: convert", 8, KEEL_EUNSUP },
        { DICT("'|f4'", "False", "(1,)"), "'|f4'", 4, KEEL_EUNSUP },
        { DICT("''", "False", "(1,)"), "''", 4, KEEL_EUNSUP },
        { DICT("[('a', '<f4')]", "False", "(1,)"), "structured", 4, KEEL_EUNSUP },
        { DICT("'<f4'", "False", "(4611686018427387904,)"), "larger", 4, KEEL_ESHAPE },
        { DICT("'<f4'", "False", "(4294967296, 4294967296)"), "larger", 4, KEEL_ESHAPE },
        { DICT("'<f4'", "False", "(99999999999999999999,)"), "number", 4, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(-1,)"), "number", 4, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1)"), "dimensions", 4, KEEL_EUNSUP },
        { DICT("'<f4'", "False", "(3)"), "tuple", 12, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(3,"), "number", 12, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "3"), "tuple", 12, KEEL_EFORMAT },
        { DICT("'<f4'", "Maybe", "(3,)"), "neither", 12, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(3,)") "x", "more after", 12, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(3,)"), "needs 12", 11, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(3,)"), "needs 12", 13, KEEL_EFORMAT },
        { DICT("'<f4'", "False", "(268435456, 1024)"), "needs", 4, KEEL_EFORMAT },
        { "{'descr': '<f4', 'shape': (3,)}", "lacks", 12, KEEL_EFORMAT },
        { "{'descr': '<f4', 'descr': '<f4'}", "second key", 12, KEEL_EFORMAT },
        { "{'other': 1}", "'other'", 12, KEEL_EFORMAT },
        { "{'descr'", "dict", 0, KEEL_EFORMAT },
        { "{'descr': '<f4", "string", 0, KEEL_EFORMAT },
        { "", "dict", 0, KEEL_EFORMAT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char file[512];
        keel_tensor t = { .data = file };
        const size_t n = build(file, bad[i].dict, bad[i].n);
        const keel_status s = keel_npy_decode(&t, file, n, "t.npy");
        if (s != bad[i].want || !strstr(keel_error(), bad[i].says) ||
            !strstr(keel_error(), "t.npy"))
            fail_msg("%s: %s", bad[i].dict, keel_error());
        assert_ptr_equal(t.data, file);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void every_cut_of_a_file_is_refused(void **state)
{
    (void)state;
    unsigned char file[256];
    const size_t n = build(file, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }", 16);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = malloc(cut + 1); /* exactly so long, for the sanitizer */
        memcpy(copy, file, cut);
        keel_tensor t;
        assert_true(keel_npy_decode(&t, copy, cut, "t.npy") < 0);
        free(copy);
    }
    file[6] = 3; /* a header of 4 GiB */
    memset(file + 8, 255, 4);
    keel_tensor t;
    assert_int_equal(keel_npy_decode(&t, file, n, "t.npy"), KEEL_EFORMAT);
    assert_int_equal(keel_memory_live(), 0);
}

/* NumPy fills the header up with blanks, and takes version 2 for one of more than 64 KiB. */
static void a_header_may_be_longer_than_its_dict(void **state)
{
    (void)state;
    static const struct {
        int version;
        size_t length;
        const char *says; /* NULL: it is read */
    } cases[] = { { 1, 300, NULL },
                  { 1, 65535, NULL },
                  { 2, 300, NULL },
                  { 3, 65536, NULL },
                  { 2, 65537, "a header of 65537 bytes, more than 65536" } };
    static unsigned char file[70000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t length = cases[i].length, begin = cases[i].version == 1 ? 10 : 12;
        const char *dict = DICT("'|u1'", "False", "(2,)");
        keel_tensor t = { 0 };
        memcpy(file, "\x93NUMPY", 6);
        file[6] = (unsigned char)cases[i].version;
        file[7] = 0;
        for (size_t k = 8; k < begin; k++) file[k] = (unsigned char)(length >> 8 * (k - 8));
        memset(file + begin, ' ', length);
        memcpy(file + begin, dict, strlen(dict));
        memcpy(file + begin + length, "\5\7", 2);
        const keel_status s = keel_npy_decode(&t, file, begin + length + 2, "long.npy");
        if (cases[i].says) {
            assert_int_equal(s, KEEL_EFORMAT);
            assert_non_null(strstr(keel_error(), cases[i].says));
            continue;
        }
        assert_int_equal(s, KEEL_OK);
        assert_memory_equal(t.data, "\5\7", 2);
        keel_tensor_free(&t);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void a_failed_write_leaves_what_was_there(void **state)
{
    (void)state;
    float numbers[4] = { 1, 2, 3, 4 };
    const keel_tensor t = { KEEL_FLOAT32, KEEL_SHAPE(4), numbers };
    const char *path = in_scratch("keep.npy");
    void *bytes = NULL;
    size_t n = 0;
    assert_int_equal(keel_file_write(path, "old", 3), KEEL_OK);
    keel_new_file *f = NULL;
    assert_int_equal(keel_new_file_create(&f, path), KEEL_OK);
    assert_int_equal(keel_npy_write_header(f, KEEL_FLOAT32, &t.shape), KEEL_OK);
    keel_new_file_abort(f);
    assert_int_equal(keel_file_read(path, 100, &bytes, &n), KEEL_OK);
    assert_int_equal(n, 3);
    assert_string_equal(bytes, "old");
    keel_free(bytes);
    assert_int_equal(keel_file_read(path, 2, &bytes, &n), KEEL_EFORMAT);
    assert_int_equal(keel_npy_write(in_scratch("no/such/folder.npy"), &t), KEEL_EIO);
    assert_int_equal(keel_npy_write(in_scratch("keep.npy"), &t), KEEL_OK);
    assert_int_equal(keel_memory_live(), 0);
}

static void arrays_of_an_npz_are_found_by_name(void **state)
{
    (void)state;
    keel_zip *z = NULL;
    keel_tensor t = { 0 };
    keel_npy_header h;
    char name[64];
    assert_int_equal(keel_zip_open(&z, "golden/sequential_plain.npz"), KEEL_OK);
    assert_int_equal(keel_npz_count(z), 11);
    assert_int_equal(keel_npz_name(z, 2, name, sizeof name), KEEL_OK);
    assert_string_equal(name, "predict");
    assert_int_equal(keel_npz_name(z, 11, name, sizeof name), KEEL_EARG);
    assert_int_equal(keel_npz_name(z, -1, name, sizeof name), KEEL_EARG);
    assert_true(keel_npz_has(z, "x"));
    assert_false(keel_npz_has(z, "x.npy"));
    assert_int_equal(keel_npz_header(&h, z, "x"), KEEL_OK);
    assert_true(keel_shape_equal(&h.shape, &(keel_shape){ 4, { 6, 8, 8, 3 } }));
    assert_int_equal(keel_npz_read(&t, z, "y"), KEEL_OK);
    assert_int_equal(t.dtype, KEEL_INT64);
    assert_int_equal(t.shape.dim[0], 6);
    assert_in_range(((int64_t *)t.data)[5], 0, 4);
    keel_tensor_free(&t);
    assert_int_equal(keel_npz_read(&t, z, "absent"), KEEL_EFORMAT);
    keel_zip_close(z);
    assert_int_equal(keel_npz_read_file(&t, "golden/sequential_plain.npz", "absent"), KEEL_EFORMAT);
    assert_non_null(strstr(keel_error(), "sequential_plain.npz"));
    assert_int_equal(keel_memory_live(), 0);
}

static void a_lying_npz_is_refused_before_memory_is_taken(void **state)
{
    (void)state;
    const char *path = in_scratch("lying.npz");
    const char *dicts[] = {
        DICT("'<f4'", "False", "(268435456, 1024)"), /* 1 TiB */
        DICT("'<f4'", "False", "(1,)"),
        DICT("'<f4'", "True", "(268435456, 1024)"),
        DICT("'|S8'", "False", "(268435456, 1024)"),
    };
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        unsigned char file[256];
        const keel_zip_member m[] = { { "a.npy", file, build(file, dicts[i], 8) },
                                      { "b.npy", "short", 5 } };
        assert_int_equal(keel_zip_write(path, m, 2), KEEL_OK);
        keel_tensor t = { .data = file };
        assert_true(keel_npz_read_file(&t, path, "a") < 0);
        assert_ptr_equal(t.data, file);
        assert_int_equal(keel_npz_read_file(&t, path, "b"), KEEL_EFORMAT);
    }
    assert_int_equal(keel_memory_live(), 0);
}

/* Elements are converted in pieces of 64 KiB. */
static void arrays_of_several_pieces_are_read(void **state)
{
    (void)state;
    enum { N = 100003 };
    static const struct {
        const char *dict;
        size_t size;
        bool big; /* the low byte of an element is its last */
    } cases[] = { { DICT("'|i1'", "False", "(100003,)"), 1, false },
                  { DICT("'<u2'", "False", "(100003,)"), 2, false },
                  { DICT("'>i4'", "False", "(100003,)"), 4, true },
                  { DICT("'<f8'", "True", "(1, 100003)"), 8, false } };
    static unsigned char file[8 * N + 256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = cases[i].size, n = build(file, cases[i].dict, size * N);
        const keel_zip_member m[] = { { "a.npy", file, n } };
        unsigned char *low = file + n - size * N + (cases[i].big ? size - 1 : 0);
        for (size_t k = 0; k < N; k++) low[k * size] = (unsigned char)(k * k % 101);
        assert_int_equal(keel_file_write(in_scratch("p.npy"), file, n), KEEL_OK);
        for (int from = 0; from < 3; from++) {
            keel_tensor t = { 0 };
            if (from == 0)
                assert_int_equal(keel_npy_read(&t, place), KEEL_OK);
            else if (from == 1)
                assert_int_equal(keel_npy_decode(&t, file, n, "p.npy"), KEEL_OK);
            else {
                assert_int_equal(keel_zip_write(in_scratch("p.npz"), m, 1), KEEL_OK);
                assert_int_equal(keel_npz_read_file(&t, place, "a"), KEEL_OK);
            }
            assert_int_equal(keel_shape_count(&t.shape), N);
            const size_t wide = keel_dtype_size(t.dtype);
            for (size_t k = 0; k < N; k++) /* all types here begin with their low byte */
                assert_int_equal(((unsigned char *)t.data)[k * wide], k * k % 101);
            keel_tensor_free(&t);
        }
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void only_members_that_end_in_npy_are_arrays(void **state)
{
    (void)state;
    const keel_zip_member m[] = {
        { "readme.txt", "x", 1 }, { ".npy", "x", 1 }, { "a.npy", "x", 1 }, { "a.npy.bak", "x", 1 }
    };
    keel_zip *z = NULL;
    char name[8];
    assert_int_equal(keel_zip_write(in_scratch("m.npz"), m, 4), KEEL_OK);
    assert_int_equal(keel_zip_open(&z, place), KEEL_OK);
    assert_int_equal(keel_npz_count(z), 1);
    assert_int_equal(keel_npz_name(z, 0, name, sizeof name), KEEL_OK);
    assert_string_equal(name, "a");
    assert_int_equal(keel_npz_name(z, 1, name, sizeof name), KEEL_EARG);
    keel_zip_close(z);
    assert_int_equal(keel_memory_live(), 0);
}

/* Whichever way elements are read: as numbers, turned from Fortran order, or as texts. */
static void a_damaged_element_of_an_npz_is_refused(void **state)
{
    (void)state;
    static const char *const dicts[] = { DICT("'|u1'", "False", "(2, 4)"),
                                         DICT("'|u1'", "True", "(2, 4)"),
                                         DICT("'|S4'", "False", "(2,)") };
    for (int i = 0; i < 3; i++) {
        unsigned char file[256];
        keel_tensor t = { 0 };
        keel_npy_texts texts = { 0 };
        keel_zip *z = NULL;
        void *archive = NULL;
        size_t n_archive;
        const size_t n = build(file, dicts[i], 8);
        memcpy(file + n - 8, "elements", 8);
        assert_int_equal(
            keel_zip_write(in_scratch("bit.npz"), &(keel_zip_member){ "a.npy", file, n }, 1),
            KEEL_OK);
        assert_int_equal(keel_file_read(place, 1000, &archive, &n_archive), KEEL_OK);
        *(char *)memmem(archive, n_archive, "elements", 8) = 'E';
        assert_int_equal(keel_zip_open_memory(&z, archive, n_archive, "bit.npz"), KEEL_OK);
        assert_int_equal(i < 2 ? keel_npz_read(&t, z, "a") : keel_npz_read_texts(&texts, z, "a"),
                         KEEL_EFORMAT);
        assert_non_null(strstr(keel_error(), "bit.npz: member 'a.npy' is damaged: its checksum"));
        keel_zip_close(z);
        keel_free(archive);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static int open_at_first;

static void no_file_stays_open(void **state)
{
    (void)state;
    assert_int_equal(files_open(), open_at_first);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    keel_status s = KEEL_ENOMEM;
    for (int i = 0; s < 0 && i < 100; i++) {
        keel_tensor t = { 0 };
        keel_memory_fail_at(i);
        s = keel_npz_read_file(&t, "golden/sequential_plain.npz", "predict");
        keel_memory_fail_at(-1);
        assert_true(s == KEEL_OK || s == KEEL_ENOMEM);
        keel_tensor_free(&t);
        assert_int_equal(keel_memory_live(), 0);
    }
    assert_int_equal(s, KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(small_types_are_widened),
        cmocka_unit_test(either_byte_order_and_half_precision_are_read),
        cmocka_unit_test(an_array_in_fortran_order_is_read_row_by_row),
        cmocka_unit_test(arrays_of_texts_are_handed_out_as_utf_8),
        cmocka_unit_test(a_whole_number_that_int64_has_not_is_refused),
        cmocka_unit_test(a_hostile_header_is_refused_by_name),
        cmocka_unit_test(every_cut_of_a_file_is_refused),
        cmocka_unit_test(a_header_may_be_longer_than_its_dict),
        cmocka_unit_test(a_failed_write_leaves_what_was_there),
        cmocka_unit_test(arrays_of_an_npz_are_found_by_name),
        cmocka_unit_test(a_lying_npz_is_refused_before_memory_is_taken),
        cmocka_unit_test(arrays_of_several_pieces_are_read),
        cmocka_unit_test(only_members_that_end_in_npy_are_arrays),
        cmocka_unit_test(a_damaged_element_of_an_npz_is_refused),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(no_file_stays_open),
    };
    open_at_first = files_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
