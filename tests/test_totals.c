/* The steps from totals to a loss: values against arithmetic by hand, slopes against differences,
 * and lists that are none. Whole losses are compared with Keras's in test_values.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include "keel/keel.h"
#include "losses/totals.h"
#include "must.h"

enum { TERMS = 4, ROWS = 5 };
static const double totals[TERMS] = { 2.0, -1.5, 0.75, 3.0 };

static const struct {
    const char *of, *total;
    double loss;
} lists[] = {
    { "a total", "[[\"term\", 1, 1]]", -1.5 },
    { "a mean over rows", "[[\"term\", 0, 1], [\"rows\"], [\"divide\", 0, 1]]", 0.4 },
    { "all totals", "[[\"term\", 0, 4], [\"sum\", 0]]", 4.25 },
    { "a ratio of sums of some",
      "[[\"term\", 0, 2], [\"term\", 2, 2], [\"divide\", 0, 1], [\"sum\", 2]]", 2 / 0.75 - 0.5 },
    { "one number with several",
      "[[\"number\", 2.5], [\"term\", 0, 3], [\"subtract\", 1, 0], [\"square\", 2], [\"sum\", 3]]",
      0.25 + 16 + 3.0625 },
    { "twice the same", "[[\"term\", 3, 1], [\"multiply\", 0, 0]]", 9 },
    { "what is larger", "[[\"term\", 0, 2], [\"term\", 2, 2], [\"maximum\", 0, 1], [\"sum\", 2]]",
      5 },
    { "what is smaller", "[[\"term\", 0, 2], [\"term\", 2, 2], [\"minimum\", 0, 1], [\"sum\", 2]]",
      -0.75 },
    { "roots", "[[\"term\", 0, 1], [\"sqrt\", 0], [\"negative\", 1]]", -1.4142135623730951 },
    { "logarithms",
      "[[\"term\", 2, 2], [\"log\", 0], [\"log1p\", 0], [\"add\", 1, 2], [\"sum\", 3]]",
      2.756840365271642 },
    { "sizes and powers",
      "[[\"term\", 1, 1], [\"absolute\", 0], [\"number\", 1.5], [\"power\", 1, 2], [\"exp\", 3]]",
      6.27841341154648 },
    { "a quotient that is there", "[[\"term\", 0, 1], [\"term\", 3, 1], [\"divide_no_nan\", 0, 1]]",
      2.0 / 3 },
    { "none that is not", "[[\"term\", 0, 1], [\"number\", 0], [\"divide_no_nan\", 0, 1]]", 0 },
};

static double loss_of(const json_t *total, const double *of, double *slope)
{
    double loss;
    must(keel_totals_of(total, of, TERMS, ROWS, &loss, slope));
    return loss;
}

static void losses_and_their_slopes_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_t *total = json_loads(lists[i].total, 0, NULL);
        double slope[TERMS];
        const double loss = loss_of(total, totals, slope);
        if (fabs(loss - lists[i].loss) > 1e-6) fail_msg("%s: %.9g", lists[i].of, loss);
        for (int k = 0; k < TERMS; k++) {
            double more[TERMS], less[TERMS];
            memcpy(more, totals, sizeof more);
            memcpy(less, totals, sizeof less);
            more[k] += 1e-5;
            less[k] -= 1e-5;
            const double want = (loss_of(total, more, NULL) - loss_of(total, less, NULL)) / 2e-5;
            if (fabs(slope[k] - want) > 1e-6 * fmax(1, fabs(want)))
                fail_msg("%s: slope %d is %.9g instead of %.9g", lists[i].of, k, slope[k], want);
        }
        json_decref(total);
    }
}

static void what_stops_gradients_has_a_value_alone(void **state)
{
    (void)state;
    json_t *total =
        json_loads("[[\"term\", 0, 1], [\"stop_gradient\", 0], [\"multiply\", 0, 1]]", 0, NULL);
    double slope[TERMS];
    assert_true(loss_of(total, totals, slope) == 4);
    assert_true(slope[0] == 2 && slope[1] == 0);
    json_decref(total);
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "[]",
        "7",
        "[[]]",
        "[7]",
        "[[\"term\"]]",
        "[[\"term\", 0, 5]]",
        "[[\"term\", 4, 1]]",
        "[[\"term\", -1, 1]]",
        "[[\"term\", 3, 2]]",
        "[[\"term\", 0, 0]]",
        "[[\"term\", 0, 2]]",
        "[[\"term\", 0, 9223372036854775807]]",
        "[[\"number\", \"1\"]]",
        "[[\"number\"]]",
        "[[\"sum\", 0]]",
        "[[\"rows\"], [\"add\", 0, 1]]",
        "[[\"rows\"], [\"add\", 0]]",
        "[[\"rows\"], [\"square\", 0, 0]]",
        "[[\"rows\"], [\"square\", 1.5]]",
        "[[\"rows\"], [\"tanh\", 0]]",
        "[[\"term\", 0, 2], [\"term\", 0, 3], [\"add\", 0, 1], [\"sum\", 2]]",
    };
    double loss;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *total = json_loads(wrong[i], JSON_DECODE_ANY, NULL);
        assert_non_null(total);
        if (keel_totals_of(total, totals, TERMS, ROWS, &loss, NULL) != KEEL_EARG)
            fail_msg("%s was taken", wrong[i]);
        json_decref(total);
    }
    json_t *many = json_array();
    for (int i = 0; i < 257; i++) json_array_append_new(many, json_pack("[s]", "rows"));
    assert_int_equal(keel_totals_of(many, totals, TERMS, ROWS, &loss, NULL), KEEL_EARG);
    json_decref(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_their_slopes_are_right),
        cmocka_unit_test(what_stops_gradients_has_a_value_alone),
        cmocka_unit_test(lists_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
