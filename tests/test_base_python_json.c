/* Infinity and NaN of Python's JSON: read as numbers, written as they were, and left alone inside
 * strings. */
#include "base/memory.h"
#include "base/python_json.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    const char *text;
    double first; /* of the list; NAN also where it is no number */
} lists[] = {
    { "[1.5]", 1.5 },
    { "[Infinity,2]", INFINITY },
    { "[-Infinity,[NaN]]", -INFINITY },
    { "[NaN,-1]", NAN },
    { "[\"Infinity\",\"-Infinity NaN\"]", NAN },
    { "[\"a\\\"Infinity\\\\\",Infinity]", NAN },
    { "[]", NAN },
};

static void texts_are_read_and_written_back(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t n = 0;
        double first = NAN;
        char *plain = keel_python_json_read(lists[i].text, strlen(lists[i].text), &n);
        assert_int_equal(strlen(plain), n);
        json_t *v = json_loadb(plain, n, 0, NULL);
        assert_non_null(v);
        keel_json_number(json_array_get(v, 0), &first);
        assert_true(isnan(lists[i].first) ? isnan(first) : first == lists[i].first);
        json_decref(v);
        keel_python_json_write(plain);
        assert_string_equal(plain, lists[i].text);
        keel_free(plain);
    }
}

static void text_that_is_cut_short_stays_as_it_is(void **unused)
{
    (void)unused;
    const char *cut[] = { "[\"Infinity", "[\"a\\", "[Infinit", "-Infinit", "Na", "\"" };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        size_t n = 0;
        char *plain = keel_python_json_read(cut[i], strlen(cut[i]), &n);
        assert_string_equal(plain, cut[i]);
        keel_python_json_write(plain);
        assert_string_equal(plain, cut[i]);
        keel_free(plain);
    }
}

static void numbers_of_any_kind_have_a_value(void **unused)
{
    (void)unused;
    const double numbers[] = { 0, -2.5, INFINITY, -INFINITY, NAN };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double x = 7;
        json_t *v = keel_json_of_number(numbers[i]);
        assert_true(keel_json_number(v, &x));
        assert_true(x == numbers[i] || (isnan(x) && isnan(numbers[i])));
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_written_back),
        cmocka_unit_test(text_that_is_cut_short_stays_as_it_is),
        cmocka_unit_test(numbers_of_any_kind_have_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
