/* Streams that another process reads: described and made again, damaged descriptions, huge ones,
 * and each failing allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/memory.h"
#include "keel/described.h"
#include "must.h"

static keel_status give(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    (void)context, (void)field, (void)capacity, (void)rows;
    return KEEL_END;
}

static keel_dataset *stream(void)
{
    static const keel_data_field fields[] = {
        { "left/words", KEEL_STRING, { 1, { 4 } } },
        { "image", KEEL_UINT8, { 3, { 8, 9, 3 } } },
        { "y", KEEL_FLOAT64, { 0 }, KEEL_ROLE_TARGET },
        { "w", KEEL_FLOAT32, { 0 }, KEEL_ROLE_WEIGHT, "y" },
    };
    keel_dataset *d, *taken;
    const keel_generator g = { .size = sizeof g,
                               .max_rows = 7,
                               .n_field = 4,
                               .field = fields,
                               .next_fields = give,
                               .name = "a stream" };
    must(keel_dataset_from_generator(&d, &g));
    must(keel_dataset_skip(&taken, d, 1));
    keel_dataset_destroy(d);
    return taken;
}

static void a_stream_is_described_and_made_again(void **unused)
{
    keel_dataset *d = stream(), *again;
    keel_tensor text, same;
    (void)unused;
    assert_int_equal(keel_dataset_describe(d, &text), KEEL_OK);
    must(keel_dataset_from_description(&again, text.data, (size_t)text.shape.dim[0]));
    assert_int_equal(keel_dataset_describe(again, &same), KEEL_OK);
    assert_int_equal(text.shape.dim[0], same.shape.dim[0]);
    assert_memory_equal(text.data, same.data, (size_t)text.shape.dim[0]);
    assert_int_equal(keel_dataset_field_count(again), 4);
    for (int i = 0; i < 4; i++) {
        keel_data_field a, b;
        must(keel_dataset_field(d, i, &a));
        must(keel_dataset_field(again, i, &b));
        assert_string_equal(a.path, b.path);
        assert_int_equal(a.dtype, b.dtype);
        assert_int_equal(a.role, b.role);
    }
    keel_tensor_free(&text);
    keel_tensor_free(&same);
    keel_dataset_destroy(d);
    keel_dataset_destroy(again);
}

static void rows_with_numbers_need_no_description(void **unused)
{
    static float rows[6];
    const keel_tensor x = { KEEL_FLOAT32, { 2, { 3, 2 } }, rows };
    keel_dataset *d;
    keel_tensor text;
    (void)unused;
    must(keel_dataset_from_arrays(&d, &x, NULL, NULL));
    assert_int_equal(keel_dataset_describe(d, &text), KEEL_END);
    keel_dataset_destroy(d);
}

#define HEAD                                                                                       \
    "{\"name\":\"n\",\"stages\":\"\",\"one_shot\":false,\"endless\":false,\"shaped\":false,"       \
    "\"by_row\":false,\"by_pass\":false,\"batched\":false,\"yields\":-1,\"classes\":[],"

static void damaged_descriptions_are_refused(void **unused)
{
    static const struct {
        const char *what, *text;
        keel_status want;
    } bad[] = {
        { "nothing", "", KEEL_EFORMAT },
        { "no JSON", "{\"name\":", KEEL_EFORMAT },
        { "a list", "[1,2]", KEEL_EFORMAT },
        { "no numbers", "{\"name\":\"n\",\"stages\":\"\"}", KEEL_EFORMAT },
        { "no fields", HEAD "\"rows\":1,\"max_rows\":1,\"fields\":[]}", KEEL_EFORMAT },
        { "negative rows", HEAD "\"rows\":-2,\"max_rows\":1,\"fields\":[{}]}", KEEL_EFORMAT },
        { "yields of no rows", HEAD "\"rows\":1,\"max_rows\":0,\"fields\":[{}]}", KEEL_EFORMAT },
        { "yields of too many", HEAD "\"rows\":1,\"max_rows\":99999999999,\"fields\":[{}]}",
          KEEL_EFORMAT },
        { "a field without a path", HEAD "\"rows\":1,\"max_rows\":1,\"fields\":[{\"dtype\":0}]}",
          KEEL_EFORMAT },
        { "no such type",
          HEAD "\"rows\":1,\"max_rows\":1,"
               "\"fields\":[{\"path\":\"x\",\"dtype\":99,\"role\":0,\"shape\":[]}]}",
          KEEL_EFORMAT },
        { "too many dims",
          HEAD "\"rows\":1,\"max_rows\":1,\"fields\":[{\"path\":\"x\",\"dtype\":0,\"role\":0,"
               "\"shape\":[1,1,1,1,1,1,1,1]}]}",
          KEEL_EFORMAT },
        { "a dim of nothing",
          HEAD "\"rows\":1,\"max_rows\":1,"
               "\"fields\":[{\"path\":\"x\",\"dtype\":0,\"role\":0,\"shape\":[0]}]}",
          KEEL_EFORMAT },
        { "more than memory",
          HEAD "\"rows\":1,\"max_rows\":1,\"fields\":[{\"path\":\"x\",\"dtype\":0,\"role\":0,"
               "\"shape\":[4611686018427387904,4]}]}",
          KEEL_ESHAPE },
        { "no input",
          HEAD "\"rows\":1,\"max_rows\":1,"
               "\"fields\":[{\"path\":\"x\",\"dtype\":0,\"role\":1,\"shape\":[]}]}",
          KEEL_EARG },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        keel_dataset *d = NULL;
        const int64_t live = keel_memory_live();
        const keel_status s = keel_dataset_from_description(&d, bad[i].text, strlen(bad[i].text));
        if (s != bad[i].want || d)
            fail_msg("%s: %s: %s", bad[i].what, keel_status_name(s), keel_error());
        assert_int_equal(keel_memory_live(), live);
    }
}

static void a_huge_description_costs_little(void **unused)
{
    enum { BYTES = 65 << 20 };
    char *text = malloc(BYTES);
    keel_dataset *d;
    (void)unused;
    assert_non_null(text);
    memset(text, '[', BYTES);
    const double begin = keel_seconds();
    assert_int_equal(keel_dataset_from_description(&d, text, BYTES), KEEL_EFORMAT);
    assert_int_equal(keel_dataset_from_description(&d, text, BYTES / 2), KEEL_EFORMAT);
    assert_true(keel_seconds() - begin < 2);
    free(text);
}

static void each_failing_allocation_is_an_error_without_a_leak(void **unused)
{
    keel_dataset *d = stream();
    (void)unused;
    const int64_t live = keel_memory_live();
    keel_status s = KEEL_ENOMEM;
    for (int64_t at = 0; s < 0; at++) {
        keel_dataset *again = NULL;
        keel_tensor text = { 0 };
        keel_memory_fail_at(at);
        s = keel_dataset_describe(d, &text);
        if (s >= 0) s = keel_dataset_from_description(&again, text.data, (size_t)text.shape.dim[0]);
        keel_memory_fail_at(-1);
        keel_tensor_free(&text);
        keel_dataset_destroy(again);
        assert_int_equal(keel_memory_live(), live);
        assert_true(at < 1000);
    }
    keel_dataset_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_described_and_made_again),
        cmocka_unit_test(rows_with_numbers_need_no_description),
        cmocka_unit_test(damaged_descriptions_are_refused),
        cmocka_unit_test(a_huge_description_costs_little),
        cmocka_unit_test(each_failing_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
