/* Types, shapes and host tensors. */
#include "base/error.h"
#include "base/memory.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define SHAPE(...) ((keel_shape[]){ KEEL_SHAPE(__VA_ARGS__) }) /* a shape to point at */

static void types_are_found_by_kerass_names(void **state)
{
    for (int i = 0; i < KEEL_DTYPE_COUNT; i++) {
        keel_dtype t = KEEL_DTYPE_COUNT;
        assert_int_equal(keel_dtype_find(&t, keel_dtype_name((keel_dtype)i)), KEEL_OK);
        assert_int_equal(t, i);
        assert_true(keel_dtype_size(t) > 0);
    }
    keel_dtype t = KEEL_INT32;
    assert_int_equal(keel_dtype_find(&t, "bfloat16"), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "bfloat16"));
    assert_int_equal(t, KEEL_INT32);
    assert_true(keel_dtype_is_real(KEEL_FLOAT64));
    assert_false(keel_dtype_is_real(KEEL_INT64));
    assert_int_equal(keel_dtype_size((keel_dtype)99), 0);
    assert_string_equal(keel_dtype_name((keel_dtype)-1), "?");
}

static void shapes_that_cannot_be_are_refused(void **state)
{
    const struct {
        keel_shape s;
        keel_status want;
        int64_t count;
    } cases[] = {
        { KEEL_SHAPE(2, 3, 4), KEEL_OK, 24 },
        { { 0 }, KEEL_OK, 1 },
        { KEEL_SHAPE(0, 5), KEEL_OK, 0 },
        { KEEL_SHAPE(5, -1), KEEL_ESHAPE, 0 },
        { { .rank = 7 }, KEEL_ESHAPE, 0 },
        { { .rank = -1 }, KEEL_ESHAPE, 0 },
        { KEEL_SHAPE(INT64_MAX, 1), KEEL_ESHAPE, 0 },
        { KEEL_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31), KEEL_ESHAPE, 0 },
        { KEEL_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31, 0), KEEL_ESHAPE, 0 },
        { KEEL_SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40), KEEL_ESHAPE, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(keel_shape_check(&cases[i].s, 4), cases[i].want);
        if (cases[i].want == KEEL_OK)
            assert_int_equal(keel_shape_count(&cases[i].s), cases[i].count);
    }
    assert_int_equal(keel_shape_check(&cases[0].s, SIZE_MAX), KEEL_ESHAPE);
}

static void shapes_are_written_as_python_writes_tuples(void **state)
{
    char text[96];
    keel_shape_text(text, SHAPE(100, 100, 3));
    assert_string_equal(text, "(100, 100, 3)");
    keel_shape_text(text, SHAPE(7));
    assert_string_equal(text, "(7,)");
    keel_shape_text(text, &(keel_shape){ 0 });
    assert_string_equal(text, "()");
    keel_shape_text(
        text,
        &(keel_shape){ 6, { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN } });
    assert_int_equal(strlen(text), 95);
    assert_string_equal(text + 91, "...)");
    keel_shape_text(text, &(keel_shape){ .rank = 99 });
    assert_string_equal(text, "(0, 0, 0, 0, 0, 0, ...)");
}

static void shapes_are_equal_where_rank_and_dims_are(void **state)
{
    assert_true(keel_shape_equal(SHAPE(2, 3), SHAPE(2, 3)));
    assert_false(keel_shape_equal(SHAPE(2, 3), SHAPE(2, 4)));
    assert_false(keel_shape_equal(SHAPE(2, 3), SHAPE(2, 3, 1)));
    assert_true(keel_shape_equal(&(keel_shape){ .dim = { 9 } }, &(keel_shape){ 0 }));
}

static void a_tensor_is_zeros_or_untouched(void **state)
{
    const int64_t live = keel_memory_live();
    keel_tensor t = { .dtype = KEEL_INT64 };
    assert_int_equal(keel_tensor_create(&t, KEEL_UINT8, SHAPE(-2)), KEEL_ESHAPE);
    assert_int_equal(keel_tensor_create(&t, (keel_dtype)9, SHAPE(2)), KEEL_EARG);
    keel_memory_fail_at(0);
    assert_int_equal(keel_tensor_create(&t, KEEL_UINT8, SHAPE(2)), KEEL_ENOMEM);
    assert_int_equal(t.dtype, KEEL_INT64);
    assert_null(t.data);
    assert_int_equal(keel_tensor_create(&t, KEEL_FLOAT32, SHAPE(3, 5)), KEEL_OK);
    for (int i = 0; i < 15; i++) assert_true(((float *)t.data)[i] == 0);
    assert_int_equal(t.shape.rank, 2);
    keel_tensor_free(&t);
    assert_null(t.data);
    keel_tensor_free(&t);
    keel_tensor_free(NULL);
    assert_int_equal(keel_memory_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_found_by_kerass_names),
        cmocka_unit_test(shapes_that_cannot_be_are_refused),
        cmocka_unit_test(shapes_are_written_as_python_writes_tuples),
        cmocka_unit_test(shapes_are_equal_where_rank_and_dims_are),
        cmocka_unit_test(a_tensor_is_zeros_or_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
