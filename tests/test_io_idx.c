/* MNIST's idx files, plain and gzipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/memory.h"
#include "io/idx.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void every_type_is_read(void **state)
{
    (void)state;
    const struct {
        unsigned char bytes[24];
        size_t n;
        keel_dtype dtype;
        double want[2];
    } cases[] = {
        { { 0, 0, 8, 1, 0, 0, 0, 2, 255, 3 }, 10, KEEL_UINT8, { 255, 3 } },
        { { 0, 0, 9, 1, 0, 0, 0, 2, 255, 3 }, 10, KEEL_INT32, { -1, 3 } },
        { { 0, 0, 11, 1, 0, 0, 0, 2, 255, 254, 1, 2 }, 12, KEEL_INT32, { -2, 258 } },
        { { 0, 0, 12, 1, 0, 0, 0, 2, 255, 255, 255, 253, 0, 1, 0, 0 },
          16,
          KEEL_INT32,
          { -3, 65536 } },
        { { 0, 0, 13, 1, 0, 0, 0, 2, 0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0 },
          16,
          KEEL_FLOAT32,
          { 1, -2 } },
        { { 0, 0, 14, 1, 0, 0, 0, 2, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0, 0xC0 },
          24,
          KEEL_FLOAT64,
          { 1, -2 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_tensor t = { 0 };
        assert_int_equal(keel_idx_decode(&t, cases[i].bytes, cases[i].n, "t"), KEEL_OK);
        assert_int_equal(t.dtype, cases[i].dtype);
        assert_int_equal(t.shape.rank, 1);
        for (int k = 0; k < 2; k++) {
            const double got = t.dtype == KEEL_UINT8     ? ((uint8_t *)t.data)[k]
                               : t.dtype == KEEL_INT32   ? ((int32_t *)t.data)[k]
                               : t.dtype == KEEL_FLOAT32 ? ((float *)t.data)[k]
                                                         : ((double *)t.data)[k];
            assert_true(got == cases[i].want[k]);
        }
        keel_tensor_free(&t);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void a_file_that_lies_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *says;
        size_t n;
        unsigned char bytes[28];
    } bad[] = {
        { "cut short", 0, { 0 } },
        { "two zero bytes", 9, { 1, 0, 8, 1, 0, 0, 0, 1, 9 } },
        { "type 7", 9, { 0, 0, 7, 1, 0, 0, 0, 1, 9 } },
        { "type 255", 9, { 0, 0, 255, 1, 0, 0, 0, 1, 9 } },
        { "0 dimensions", 5, { 0, 0, 8, 0, 9 } },
        { "7 dimensions", 5, { 0, 0, 8, 7, 9 } },
        { "cut short", 6, { 0, 0, 8, 1, 0, 0 } },
        { "more bytes after", 10, { 0, 0, 8, 1, 0, 0, 0, 1, 9, 9 } },
        { "larger than the address", 28, { 0,   0,   8,   6,   255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255, 255, 255 } },
        { "cut short", 13, { 0, 0, 14, 2, 255, 255, 255, 255, 0, 0, 255, 255 } },
        { "gzip", 12, { 0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 99, 99 } },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char *copy = malloc(bad[i].n + 1);
        keel_tensor t = { .data = copy };
        memcpy(copy, bad[i].bytes, bad[i].n);
        assert_true(keel_idx_decode(&t, copy, bad[i].n, "t.idx") < 0);
        if (!strstr(keel_error(), bad[i].says) || !strstr(keel_error(), "t.idx"))
            fail_msg("%zu: %s", i, keel_error());
        assert_ptr_equal(t.data, copy);
        free(copy);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static size_t zip_up(unsigned char *out, size_t size, const void *data, size_t n)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t length = z.total_out;
    deflateEnd(&z);
    return length;
}

/* More than its buffer has, too: these bytes are not compressed to less than 64 KiB. */
static void a_dim_may_have_four_bytes(void **state)
{
    (void)state;
    enum { N = 0x10000 + 0x203 };
    static unsigned char plain[8 + N] = { 0, 0, 8, 1, 0, 1, 2, 3 }, zipped[2 * N];
    uint32_t random = 1;
    for (int i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        plain[8 + i] = (unsigned char)(random >> 24);
    }
    const size_t n = zip_up(zipped, sizeof zipped, plain, sizeof plain);
    assert_true(n > 0x10000);
    for (int i = 0; i < 2; i++) {
        keel_tensor t = { 0 };
        assert_int_equal(keel_idx_decode(&t, i ? zipped : plain, i ? n : sizeof plain, "t"),
                         KEEL_OK);
        assert_int_equal(t.shape.dim[0], N);
        assert_memory_equal(t.data, plain + 8, N);
        keel_tensor_free(&t);
    }
    assert_int_equal(keel_memory_live(), 0);
}

static void gzip_is_read_and_held_to_its_word(void **state)
{
    (void)state;
    unsigned char plain[8 + 300] = { 0, 0, 8, 1, 0, 0, 1, 44 }, zipped[512];
    keel_tensor t = { 0 };
    for (int i = 0; i < 300; i++) plain[8 + i] = (unsigned char)(i * i);
    size_t n = zip_up(zipped, sizeof zipped, plain, sizeof plain);
    assert_int_equal(keel_idx_decode(&t, zipped, n, "t"), KEEL_OK);
    assert_int_equal(t.shape.dim[0], 300);
    assert_memory_equal(t.data, plain + 8, 300);
    keel_tensor_free(&t);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = malloc(cut + 1);
        memcpy(copy, zipped, cut);
        assert_true(keel_idx_decode(&t, copy, cut, "t") < 0);
        free(copy);
    }
    zipped[n] = 0; /* something after the stream */
    assert_int_equal(keel_idx_decode(&t, zipped, n + 1, "t"), KEEL_EFORMAT);
    plain[4] = 127; /* 2 GiB from 300 bytes */
    n = zip_up(zipped, sizeof zipped, plain, sizeof plain);
    const int64_t calls = keel_memory_calls();
    assert_int_equal(keel_idx_decode(&t, zipped, n, "t"), KEEL_EFORMAT);
    assert_int_equal(keel_memory_calls(), calls);
    assert_int_equal(keel_memory_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(a_file_that_lies_is_refused),
        cmocka_unit_test(a_dim_may_have_four_bytes),
        cmocka_unit_test(gzip_is_read_and_held_to_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
