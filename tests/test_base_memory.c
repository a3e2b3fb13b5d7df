/* Memory: zeroed, counted, overflow-checked, failing on demand; and the texts built in it. */
#include "base/memory.h"
#include "base/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void blocks_are_zeroed_aligned_and_counted(void **state)
{
    const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, (4u << 20) - 1, 4u << 20, (5u << 20) + 3 };
    const int64_t live = keel_memory_live();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = keel_aligned_calloc(sizes[i], 1), *q = keel_calloc(1, sizes[i]);
        assert_non_null(p);
        assert_non_null(q);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_int_equal(keel_memory_live(), live + 2);
        for (size_t k = 0; k < sizes[i]; k++) assert_true(p[k] == 0 && q[k] == 0);
        memset(p, 0xAB, sizes[i]); /* so that a block used again would show it */
        keel_free(p);
        keel_free(q);
    }
    keel_free(NULL);
    assert_int_equal(keel_memory_live(), live);
}

static void sizes_that_overflow_are_refused(void **state)
{
    const int64_t live = keel_memory_live();
    keel_fail(KEEL_EARG, "before");
    assert_null(keel_calloc(SIZE_MAX / 2, 4));
    assert_non_null(strstr(keel_error(), "out of memory"));
    assert_null(keel_aligned_calloc(1, SIZE_MAX));
    assert_null(keel_grow(NULL, SIZE_MAX, SIZE_MAX));
    assert_int_equal(keel_memory_live(), live);
    size_t s;
    int64_t n;
    assert_true(keel_mul(3, 4, &s) && s == 12);
    assert_false(keel_mul(SIZE_MAX, 2, &s));
    assert_true(keel_mul_i64(3, 4, &n) && n == 12);
    assert_false(keel_mul_i64(INT64_MAX, 2, &n));
    assert_false(keel_mul_i64(-1, 0, &n));
}

static void growing_keeps_contents_and_the_count(void **state)
{
    const int64_t live = keel_memory_live();
    char *p = keel_grow(NULL, 4, 1);
    assert_int_equal(keel_memory_live(), live + 1);
    memcpy(p, "abc", 4);
    p = keel_grow(p, 100000, 1);
    assert_string_equal(p, "abc");
    assert_int_equal(keel_memory_live(), live + 1);
    keel_memory_fail_at(0);
    assert_null(keel_grow(p, 200000, 1));
    assert_string_equal(p, "abc"); /* a failure leaves the old block */
    assert_int_equal(keel_memory_live(), live + 1);
    keel_free(p);
    assert_int_equal(keel_memory_live(), live);
}

static void the_call_that_was_chosen_fails_once(void **state)
{
    keel_memory_fail_at(2);
    const int64_t calls = keel_memory_calls();
    for (int i = 0; i < 5; i++) {
        void *p = i % 2 ? keel_calloc(1, 8) : keel_aligned_calloc(1, 8);
        assert_int_equal(p == NULL, i == 2);
        keel_free(p);
    }
    assert_int_equal(keel_memory_calls(), calls + 5);
    keel_memory_fail_at(0);
    keel_memory_fail_at(-1);
    char *s = keel_strdup("x");
    assert_non_null(s);
    keel_free(s);
}

static void texts_are_copied_up_to_a_length(void **state)
{
    char *a = keel_strdup("hello"), *b = keel_strndup("hello", 3), *c = keel_strndup("hi", 99);
    assert_string_equal(a, "hello");
    assert_string_equal(b, "hel");
    assert_string_equal(c, "hi");
    keel_free(a);
    keel_free(b);
    keel_free(c);
}

static void a_text_grows_and_remembers_a_failure(void **state)
{
    const int64_t live = keel_memory_live();
    keel_text t = { 0 };
    for (int i = 0; i < 1000; i++) keel_text_add(&t, "%d,", i);
    assert_false(t.failed);
    assert_int_equal(t.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(strlen(t.data), t.length);
    keel_text_free(&t);
    keel_memory_fail_at(0);
    keel_text_add(&t, "%s", "x");
    keel_text_add(&t, "%s", "y");
    assert_true(t.failed);
    assert_null(t.data);
    keel_text_free(&t);
    assert_int_equal(keel_memory_live(), live);
}

static void names_become_snake_case_as_in_keras(void **state)
{
    /* keras.src.utils.naming.to_snake_case of each */
    const char *const pairs[][2] = {
        { "Conv2D", "conv2d" },
        { "MaxPooling2D", "max_pooling2d" },
        { "ReLU", "re_lu" },
        { "LeakyReLU", "leaky_re_lu" },
        { "GlobalAveragePooling2D", "global_average_pooling2d" },
        { "L1L2", "l1l2" },
        { "SGD", "sgd" },
        { "AdamW", "adam_w" },
        { "RMSprop", "rm_sprop" },
        { "Conv2DTranspose", "conv2d_transpose" },
        { "BatchNormalization", "batch_normalization" },
        { "MeanSquaredError", "mean_squared_error" },
        { "GlorotUniform", "glorot_uniform" },
        { "softmax", "softmax" },
        { "ABCdEF", "ab_cd_ef" },
        { "my-Layer x", "my_layerx" },
        { "", "" },
    };
    char out[64];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        keel_snake_case(out, sizeof out, pairs[i][0]);
        assert_string_equal(out, pairs[i][1]);
    }
    char tiny[6];
    keel_snake_case(tiny, sizeof tiny, "BatchNormalization");
    assert_string_equal(tiny, "batch");
    keel_snake_case(tiny, 1, "Batch");
    assert_string_equal(tiny, "");
}

static void numbers_and_sizes_read_well(void **state)
{
    char out[32];
    assert_string_equal(keel_group_digits(out, 0), "0");
    assert_string_equal(keel_group_digits(out, 999), "999");
    assert_string_equal(keel_group_digits(out, 1234567), "1,234,567");
    assert_string_equal(keel_group_digits(out, -123456), "-123,456");
    assert_string_equal(keel_group_digits(out, INT64_MIN), "-9,223,372,036,854,775,808");
    assert_string_equal(keel_bytes_text(out, 0), "0 B");
    assert_string_equal(keel_bytes_text(out, 1023), "1023 B");
    assert_string_equal(keel_bytes_text(out, 1536 * 1024), "1.5 MiB");
    assert_string_equal(keel_bytes_text(out, (1 << 20) - 1), "1.0 MiB");
    assert_string_equal(keel_bytes_text(out, 1000LL << 30), "1000.0 GiB");
    assert_string_equal(keel_bytes_text(out, -2048), "-2.0 KiB");
    assert_string_equal(keel_bytes_text(out, INT64_MAX), "8.0 EiB");
}

static void large_blocks_are_zero_aligned_and_given_back(void **unused)
{
    (void)unused;
    const int64_t live = keel_memory_live();
    for (size_t size = 3 << 20; size < (size_t)20 << 20; size += (3 << 20) + 4097) {
        unsigned char *p = keel_aligned_calloc(1, size), *q = keel_aligned_calloc(1, size);
        assert_non_null(p);
        assert_non_null(q);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < size; i += 997) assert_int_equal(p[i], 0);
        assert_int_equal(p[size - 1], 0);
        memset(p, 0xff, size);
        memset(q, 0xee, size);
        assert_int_equal(p[0], 0xff);
        assert_int_equal(p[size - 1], 0xff);
        keel_free(p);
        assert_int_equal(q[size - 1], 0xee);
        keel_free(q);
    }
    assert_int_equal(keel_memory_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_blocks_are_zero_aligned_and_given_back),
        cmocka_unit_test(blocks_are_zeroed_aligned_and_counted),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(growing_keeps_contents_and_the_count),
        cmocka_unit_test(the_call_that_was_chosen_fails_once),
        cmocka_unit_test(texts_are_copied_up_to_a_length),
        cmocka_unit_test(a_text_grows_and_remembers_a_failure),
        cmocka_unit_test(names_become_snake_case_as_in_keras),
        cmocka_unit_test(numbers_and_sizes_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
