/* narrow_cases.h for the ops that make rounded products, by tiles in plain C. */
#include "narrow_cases.h"
#include "on_tiles.h"

static bool makes_rounded_products(const keel_op *op)
{
    static const char *const ops[] = { "dot_product_attention", "gru", "lstm", "matmul",
                                       "simple_rnn" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op->name, ops[i]) == 0) return true;
    return false;
}

static void every_narrow_pass_by_tiles_equals_its_reference(void **state)
{
    (void)state;
    assert_ptr_equal(keel_rounded_way(), &keel_rounded_tiles);
    compare_ops(makes_rounded_products);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_narrow_pass_by_tiles_equals_its_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return on_emulated_tiles(run_all);
}
