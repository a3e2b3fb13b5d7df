/* Numbers of shared objects in configurations of Keras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/shared_ids.h"

#define ID "'shared_object_id': "

/* With ' for ". */
static char *numbered(const char *text)
{
    char quoted[1024];
    size_t n = 0;
    for (; text[n]; n++) quoted[n] = text[n] == '\'' ? '"' : text[n];
    json_t *v = json_loadb(quoted, n, 0, NULL);
    assert_non_null(v);
    assert_true(keel_shared_ids_number(v));
    char *out = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(v);
    return out;
}

static void configurations_of_the_same_are_the_same(void **unused)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        { "{'x': {" ID "7}, 'y': {" ID "7}}", "{'x': {" ID "9}, 'y': {" ID "9}}", true },
        { "[{" ID "1}, {" ID "2}, {" ID "2}, {" ID "1}]",
          "[{" ID "2}, {" ID "1}, {" ID "1}, {" ID "2}]", true },
        { "[{" ID "1}, {" ID "2}, {" ID "2}, {" ID "1}]",
          "[{" ID "1}, {" ID "2}, {" ID "1}, {" ID "2}]", false },
        { "[{" ID "139760232670160, 'c': [{" ID "3}]}, {" ID "139760232670160}]",
          "[{" ID "5, 'c': [{" ID "4}]}, {" ID "5}]", true },
        { "[{" ID "1}, {" ID "2}]", "[{}, {}]", true },
        { "[{" ID "1}, {" ID "1}]", "[{}, {}]", false },
        { "[{" ID "'a'}]", "[{" ID "'b'}]", false },
        { "[{" ID "-1}, {" ID "-1}, {" ID "1}, {" ID "1}]",
          "[{" ID "1}, {" ID "1}, {" ID "0}, {" ID "0}]", true },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *a = numbered(rows[i].a), *b = numbered(rows[i].b);
        if (rows[i].same)
            assert_string_equal(a, b);
        else
            assert_string_not_equal(a, b);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_of_the_same_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
